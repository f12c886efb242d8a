//! Reads the tasks of PIR, and the claims of Perspectrum, which one of them is made of.

use std::collections::HashMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::Question;
use crate::input::{self, BadLine, InputError, LISTED, excerpt};

/// The label of queries that do not ask for a side.
pub const NO_SIDE: &str = "general";

/// One task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Its name in the file.
    pub name: String,
    /// The passages.
    pub corpus: Vec<String>,
    /// The queries in the order of the file; several may share a root or a text.
    pub rows: Vec<Row>,
}

/// One query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The full query.
    pub query: String,
    /// The query without its perspective.
    pub root: String,
    /// The perspective in words, if there is one.
    pub perspective: Option<String>,
    /// The side that it asks for, such as `support`.
    pub label: String,
    /// Its gold passages, as positions in the corpus; may be empty.
    pub gold: Vec<usize>,
}

/// Splits a query by PIR's templates, `Find PERSPECTIVE: ROOT`, into perspective and root; `None` for any other text.
pub fn split(query: &str) -> Option<(&str, &str)> {
    const LINKS: [&str; 5] = [
        " and similar to the following news",
        " and similar the following news",
        " to the following story",
        " with the following story",
        " on the topic",
    ];
    let query = query.trim();
    let begins = query.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("find "));
    let (head, root) = query.get(5..).filter(|_| begins)?.split_once(':')?;
    let head = LINKS.iter().find_map(|link| head.strip_suffix(link)).unwrap_or(head);
    let (head, root) = (head.trim(), root.trim());
    (!head.is_empty() && !root.is_empty()).then_some((head, root))
}

/// The place that a query asks for by PIR's template `a news article happened in PLACE`.
pub fn place_of(row: &Row) -> Option<&str> {
    let perspective = row.perspective.as_deref().filter(|text| *text != row.query);
    let perspective = perspective.or_else(|| split(&row.query).map(|(perspective, _)| perspective))?;
    let (_, place) = perspective.split_once(" happened in ")?;
    Some(place.trim()).filter(|place| !place.is_empty())
}

/// Bytes read to recognise a file.
const LOOK: u64 = 1 << 12;
/// The fields of a task.
const FIELDS: [&str; 6] = ["corpus", "queries", "source_queries", "perspectives", "query_labels", "key_ref"];

/// Whether a file begins as tasks do: an object with an object in it, whose first field is one of a task's.
pub fn is_tasks(path: &Path) -> bool {
    let mut begins = Vec::new();
    let read = input::open(path).map(|file| file.take(LOOK).read_to_end(&mut begins));
    let text = String::from_utf8_lossy(&begins);
    let after = |text: &str, mark: char| Some(text.trim_start().strip_prefix(mark)?.to_owned());
    let name = |text: &str| {
        let rest = after(text, '"')?;
        let (name, rest) = rest.split_once('"')?;
        Some((name.to_owned(), after(rest, ':')?))
    };
    let first = || {
        let (_, task) = name(&after(text.trim_start_matches('\u{feff}'), '{')?)?;
        Some(name(&after(&task, '{')?)?.0)
    };
    matches!(read, Ok(Ok(_))) && first().is_some_and(|first| FIELDS.contains(&first.as_str()))
}

/// Reads the one task that `FILE` or `FILE:TASK` names as a corpus; `None` if the file holds no tasks.
///
/// # Errors
/// A task is not valid, the file has no task of that name, or it has several and none is named.
pub fn as_corpus(path: &Path) -> Result<Option<Task>, InputError> {
    let split = || path.to_str()?.rsplit_once(':').map(|(file, task)| (PathBuf::from(file), task.to_owned()));
    let (file, wanted) = match split().filter(|(file, _)| !path.exists() && file.is_file()) {
        Some((file, task)) => (file, Some(task)),
        None => (path.to_owned(), None),
    };
    let json = input::ending(&file) == Some("json") && file.is_file() && !input::is_stream(&file);
    if !json || !is_tasks(&file) {
        return Ok(None);
    }
    let mut tasks = read(&file)?;
    let names: Vec<String> = tasks.iter().map(|task| task.name.clone()).collect();
    let place = match &wanted {
        Some(wanted) => names.iter().position(|name| name == wanted),
        None => (names.len() == 1).then_some(0),
    };
    let Some(place) = place else {
        let reason = format!("it holds the tasks {}; name one of them: FILE:{}", names.join(", "), names[0]);
        return Err(InputError::Unreadable { path: file, reason });
    };
    Ok(Some(tasks.swap_remove(place)))
}

impl Task {
    /// The queries as questions, each once, and its gold passages. The statement of a question is the query itself: a perspective such as
    /// "a claim that supports the argument" is shared by many queries, and gold is not. The perspective stands in the metadata.
    pub fn questions(&self) -> Vec<(Question, Vec<usize>)> {
        let mut all: Vec<(Question, Vec<usize>)> = Vec::new();
        for (number, row) in self.rows.iter().enumerate() {
            let text = row.query.trim();
            if text.is_empty() {
                continue;
            }
            if let Some((_, gold)) = all.iter_mut().find(|(known, _)| known.text == text) {
                gold.extend(
                    row.gold.iter().filter(|passage| !gold.contains(passage)).copied().collect::<Vec<_>>(),
                );
                continue;
            }
            let mut metadata = Map::new();
            metadata.insert(PERSPECTIVE.into(), json!(row.perspective.as_deref().unwrap_or_default()));
            metadata.insert("label".into(), json!(row.label));
            let question = Question {
                id: format!("{}/{number}", self.name.split_whitespace().collect::<Vec<_>>().join("-")),
                text: text.to_owned(),
                perspectives: vec![text.to_owned()],
                root: Some(row.root.clone()),
                metadata,
                ..Question::default()
            };
            all.push((question, row.gold.clone()));
        }
        all
    }
}

/// The field of a query's metadata that holds its perspective; empty for a query without one.
pub const PERSPECTIVE: &str = "perspective";

/// Reads the tasks, in order of their names.
///
/// # Errors
/// The file is not an object of tasks; the error lists the faults of each task.
pub fn read(path: &Path) -> Result<Vec<Task>, InputError> {
    let wrong = |reason: String| InputError::Unreadable { path: path.into(), reason };
    let expected =
        "a JSON object of PIR tasks (corpus, queries, source_queries, perspectives, query_labels, key_ref)";
    let tasks: Map<String, Value> = input::read_json(path, expected)?;
    if tasks.is_empty() {
        return Err(InputError::Empty { path: path.into(), what: "the set of tasks", advice: "give it one" });
    }
    let (mut read, mut faults) = (Vec::new(), Vec::new());
    for (name, task) in &tasks {
        match self::task(name, task) {
            Ok(task) => read.push(task),
            Err(fault) => faults.push(format!("task {}: {fault}", excerpt(name))),
        }
    }
    if faults.is_empty() {
        return Ok(read);
    }
    let more = faults.len().saturating_sub(LISTED);
    faults.truncate(LISTED);
    if more > 0 {
        faults.push(format!("… and {more} more tasks"));
    }
    Err(wrong(faults.join("\n")))
}

/// Why a task is invalid.
#[derive(Debug, thiserror::Error)]
enum TaskError {
    #[error("expected an object")]
    NoObject,
    #[error("expected at least one passage in `corpus` and one query in `queries`")]
    Empty,
    #[error("`{0}` is missing")]
    Missing(&'static str),
    #[error("`{0}` is no list")]
    NoList(&'static str),
    #[error("`{field}` entry {at} is no text: {}", excerpt(found))]
    NoText { field: &'static str, at: usize, found: String },
    #[error("`{field}` has {found} entries, `queries` has {queries}")]
    Uneven { field: &'static str, found: usize, queries: usize },
    #[error("`key_ref` is no object of query number to passage numbers")]
    NoRows,
    #[error("`key_ref` has the row {}, which is no number", excerpt(.0))]
    NoNumber(String),
    #[error("`key_ref` has the row {row}, there are {queries} queries (from 0)")]
    NoQuery { row: usize, queries: usize },
    #[error(
        "`key_ref` row {row} has the gold passage {}, expected a number below {passages}",
        excerpt(found)
    )]
    NoPassage { row: usize, found: String, passages: usize },
}

fn task(name: &str, value: &Value) -> Result<Task, TaskError> {
    let fields = value.as_object().ok_or(TaskError::NoObject)?;
    let corpus = texts(fields, "corpus")?;
    let queries = texts(fields, "queries")?;
    if corpus.is_empty() || queries.is_empty() {
        return Err(TaskError::Empty);
    }
    let parallel = |field, found| match found == queries.len() {
        true => Ok(()),
        false => Err(TaskError::Uneven { field, found, queries: queries.len() }),
    };
    let roots = texts(fields, "source_queries")?;
    parallel("source_queries", roots.len())?;
    let labels = texts(fields, "query_labels")?;
    parallel("query_labels", labels.len())?;
    let perspectives = perspectives(fields)?;
    parallel("perspectives", perspectives.len())?;
    let gold = gold(fields, queries.len(), corpus.len())?;
    let sides = perspectives.into_iter().zip(labels);
    let rows =
        queries.into_iter().zip(roots).zip(sides).zip(gold).map(
            |(((query, root), (perspective, label)), gold)| Row { query, root, perspective, label, gold },
        );
    Ok(Task { name: name.to_owned(), corpus, rows: rows.collect() })
}

fn list<'a>(fields: &'a Map<String, Value>, field: &'static str) -> Result<&'a Vec<Value>, TaskError> {
    fields.get(field).ok_or(TaskError::Missing(field))?.as_array().ok_or(TaskError::NoList(field))
}

fn texts(fields: &Map<String, Value>, field: &'static str) -> Result<Vec<String>, TaskError> {
    let text = |(at, value): (usize, &Value)| match value.as_str() {
        Some(text) => Ok(text.to_owned()),
        None => Err(TaskError::NoText { field, at, found: value.to_string() }),
    };
    list(fields, field)?.iter().enumerate().map(text).collect()
}

fn perspectives(fields: &Map<String, Value>) -> Result<Vec<Option<String>>, TaskError> {
    let field = "perspectives";
    let one = |(at, value): (usize, &Value)| match value {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text.clone()).filter(|text| !text.trim().is_empty())),
        other => Err(TaskError::NoText { field, at, found: other.to_string() }),
    };
    list(fields, field)?.iter().enumerate().map(one).collect()
}

/// The gold passages of every query.
fn gold(fields: &Map<String, Value>, queries: usize, passages: usize) -> Result<Vec<Vec<usize>>, TaskError> {
    let named = fields.get("key_ref").ok_or(TaskError::Missing("key_ref"))?;
    let named = named.as_object().ok_or(TaskError::NoRows)?;
    let mut gold = vec![Vec::new(); queries];
    for (row, passages_named) in named {
        let Ok(number) = row.parse::<usize>() else {
            return Err(TaskError::NoNumber(row.clone()));
        };
        let Some(place) = gold.get_mut(number) else {
            return Err(TaskError::NoQuery { row: number, queries });
        };
        // The authors also write a single passage without a list.
        let lone = std::slice::from_ref(passages_named);
        for value in passages_named.as_array().map_or(lone, Vec::as_slice) {
            let passage = value.as_u64().and_then(|passage| usize::try_from(passage).ok());
            match passage.filter(|passage| *passage < passages) {
                Some(passage) => place.push(passage),
                None => {
                    let found = value.to_string();
                    return Err(TaskError::NoPassage { row: number, found, passages });
                }
            }
        }
    }
    Ok(gold)
}

#[derive(Deserialize)]
struct Claim {
    #[serde(rename = "cId")]
    id: u64,
    text: String,
    perspectives: Vec<Cluster>,
}

#[derive(Deserialize)]
struct Cluster {
    stance_label_3: String,
    #[serde(default)]
    evidence: Vec<u64>,
}

/// Reads pairs of statement and passage id: all evidence in a Perspectrum file that supports a statement of these questions.
///
/// # Errors
/// The file is not a list of claims, a claim's question does not have two sides, a stance is unknown, or no claim is in the set.
pub fn perspectrum(path: &Path, questions: &[Question]) -> Result<Vec<(String, String)>, InputError> {
    let text = input::text(path)?;
    let claims: Vec<Claim> = serde_json::from_str(&text).map_err(|error| {
        let found = text.lines().nth(error.line().saturating_sub(1)).unwrap_or_default();
        let expected = format!("a JSON list of Perspectrum's claims (cId, text, perspectives; {error})");
        let (file, line) = (path.into(), error.line());
        InputError::BadLines(vec![BadLine { file, line, expected, found: found.chars().take(100).collect() }])
    })?;
    let by_name: HashMap<&str, &Question> =
        questions.iter().flat_map(|q| [(q.id.as_str(), q), (q.text.as_str(), q)]).collect();
    let wrong = |reason: String| InputError::Unreadable { path: path.into(), reason };
    let mut pairs = Vec::new();
    for claim in &claims {
        let number = claim.id.to_string();
        let Some(question) = by_name.get(claim.text.as_str()).or_else(|| by_name.get(number.as_str())) else {
            // The file covers all claims; the question set may have only some.
            continue;
        };
        let (Some(yes), [first, second]) = (question.supports, question.perspectives.as_slice()) else {
            return Err(wrong(format!(
                "claim {number} needs a question with two statements; expected them in the question set"
            )));
        };
        let sides = if yes == 0 { [first, second] } else { [second, first] };
        for cluster in &claim.perspectives {
            let side = match cluster.stance_label_3.as_str() {
                "SUPPORT" => sides[0],
                "UNDERMINE" => sides[1],
                other => {
                    let found = input::excerpt(other);
                    return Err(wrong(format!(
                        "claim {number}: expected SUPPORT or UNDERMINE, found {found}"
                    )));
                }
            };
            pairs.extend(cluster.evidence.iter().map(|passage| (side.clone(), passage.to_string())));
        }
    }
    if pairs.is_empty() {
        return Err(wrong(
            "expected a claim of the question set, by its cId or its text; there is none".into(),
        ));
    }
    Ok(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::io::Write;

    fn good() -> Value {
        json!({"t": {
            "corpus": ["a", "b", "c"], "queries": ["q0", "q1", "q2"], "source_queries": ["r", "r", "s"],
            "perspectives": ["p", "", null], "query_labels": ["support", "undermine", "general"],
            "key_ref": {"0": [0, 2], "1": 1},
        }})
    }

    fn read_text(text: &str) -> Result<Vec<Task>, String> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        read(file.path()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_query_of_a_template_is_split_and_another_text_is_not() {
        for (query, expected) in [
            (
                "Find a claim that opposes the argument: It should be allowed",
                Some(("a claim that opposes the argument", "It should be allowed")),
            ),
            (
                "Find a news article happened in Canada and similar to the following news: An inquiry: it began",
                Some(("a news article happened in Canada", "An inquiry: it began")),
            ),
            (
                "find a news article from the left wing on the topic: politics",
                Some(("a news article from the left wing", "politics")),
            ),
            ("What is the legal age of marriage in usa?", None),
            ("Find: nothing", None),
            ("Find a claim:", None),
            ("", None),
        ] {
            assert_eq!(split(query), expected, "{query}");
        }
    }

    #[test]
    fn a_task_is_read_row_by_row_and_what_is_not_said_is_none() {
        let tasks = read_text(&good().to_string()).unwrap();
        let rows = &tasks[0].rows;
        assert_eq!((tasks[0].name.as_str(), tasks[0].corpus.len(), rows.len()), ("t", 3, 3));
        let found: Vec<_> = rows.iter().map(|row| (row.perspective.as_deref(), row.gold.clone())).collect();
        assert_eq!(found, [(Some("p"), vec![0, 2]), (None, vec![1]), (None, vec![])]);
    }

    #[test]
    fn what_is_no_json_is_reported_with_its_line() {
        for (text, expected) in [
            ("", ":1: expected a JSON object of PIR tasks"),
            ("{\n\"t\": oops\n}", ":2: expected a JSON object of PIR tasks"),
            ("[1, 2]", ":1: expected a JSON object of PIR tasks"),
            ("{}", "the set of tasks is empty"),
        ] {
            let error = read_text(text).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn every_wrong_field_is_reported_by_name() {
        let cases = [
            ("corpus", Value::Null, "`corpus` is no list"),
            ("corpus", json!(["a", 5]), "`corpus` entry 1 is no text: `5`"),
            ("queries", json!([]), "at least one passage"),
            ("source_queries", json!(["r"]), "`source_queries` has 1 entries, `queries` has 3"),
            ("perspectives", json!(["p", "p"]), "`perspectives` has 2 entries, `queries` has 3"),
            ("perspectives", json!(["p", 1, "p"]), "`perspectives` entry 1 is no text: `1`"),
            ("query_labels", json!(["x", "x", "x", "x"]), "`query_labels` has 4 entries, `queries` has 3"),
            ("key_ref", json!([]), "`key_ref` is no object"),
            ("key_ref", json!({"first": [0]}), "has the row `first`, which is no number"),
            ("key_ref", json!({"3": [0]}), "has the row 3, there are 3 queries"),
            ("key_ref", json!({"0": [0, 3]}), "row 0 has the gold passage `3`, expected a number below 3"),
            ("key_ref", json!({"0": ["1"]}), "row 0 has the gold passage `\"1\"`"),
        ];
        for (field, value, expected) in cases {
            let mut tasks = good();
            tasks["t"][field] = value;
            let error = read_text(&tasks.to_string()).unwrap_err();
            assert!(error.contains("task `t`: ") && error.contains(expected), "{error}");
            tasks["t"].as_object_mut().unwrap().remove(field);
            let error = read_text(&tasks.to_string()).unwrap_err();
            assert!(error.contains(&format!("`{field}` is missing")), "{error}");
        }
    }
}
