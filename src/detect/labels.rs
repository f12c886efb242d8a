//! Gold labels: which passage supports which statement; and which of several labels counts.
//!
//! There are three formats: a table with a header that names `id` (the passage's), `perspective` (the statement) and `label`; TREC
//! diversity qrels (`question perspective passage label`, statements numbered from 1); and Perspectrum's JSON. A label belongs to
//! the exact text of its statement.
//!
//! In Perspectrum a claim is a question of the set, by number (`cId`) or text, and its evidence is a list of passages, by number.
//! Evidence of a perspective that supports the claim supports the question's supporting statement; other evidence supports the
//! opposite one.
//!
//! This module reads `--labels`. Label files of other tools are imported by `annotate::formats`.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::input::{self, BadLine, Expected, InputError, lines, unquote};
use crate::measure::trec::{diversity_line, grade};
use crate::question::Question;

/// The meaning of a passage that has no line in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absent {
    /// It was judged and supports nothing: the file is `complete`.
    No,
    /// It was not judged: the file has `positives` only.
    Unjudged,
}

/// One label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Does the passage support the statement?
    pub supports: bool,
    /// The sentence that shows it, if the file gives one.
    pub evidence: Option<String>,
}

type Row = ((String, String), Label);

/// The labels of one file.
#[derive(Clone, Debug)]
pub struct Labels {
    absent: Absent,
    by_pair: HashMap<(String, String), Label>,
    /// The statements that the file covers.
    statements: HashSet<String>,
    /// The lines about questions that the set does not have: one file may serve several.
    pub elsewhere: usize,
}

impl Labels {
    /// The label of a pair, by statement and passage id.
    pub fn supports(&self, statement: &str, id: &str) -> Option<bool> {
        match (self.label(statement, id), self.absent) {
            (Some(label), _) => Some(label.supports),
            (None, Absent::No) if self.statements.contains(statement) => Some(false),
            (None, _) => None,
        }
    }

    /// The label itself, if a line gives one.
    pub fn label(&self, statement: &str, id: &str) -> Option<&Label> {
        self.by_pair.get(&(statement.to_owned(), id.to_owned()))
    }

    /// The pairs of statement and passage that the file labels as support, in no order.
    pub fn positives(&self) -> impl Iterator<Item = (&str, &str)> {
        let supports = self.by_pair.iter().filter(|(_, label)| label.supports);
        supports.map(|((statement, id), _)| (statement.as_str(), id.as_str()))
    }

    /// The passages that have a line about one of these statements.
    pub fn passages(&self, statements: &[String]) -> Vec<String> {
        let about = |(statement, _): &&(String, String)| statements.contains(statement);
        self.by_pair.keys().filter(about).map(|(_, id)| id.clone()).collect()
    }

    /// The number of lines about passages that are not in the corpus.
    pub fn astray(&self, is_there: impl Fn(&str) -> bool) -> usize {
        let mut present: HashMap<&str, bool> = HashMap::new();
        let ids = self.by_pair.keys().map(|(_, id)| id.as_str());
        ids.filter(|id| !*present.entry(id).or_insert_with(|| is_there(id))).count()
    }

    /// The number of lines about statements that are not, word for word, in `statements`.
    pub fn unasked(&self, statements: &HashSet<&str>) -> usize {
        self.by_pair.keys().filter(|(statement, _)| !statements.contains(statement.as_str())).count()
    }

    /// The number of lines.
    pub fn len(&self) -> usize {
        self.by_pair.len()
    }

    /// Whether there are no lines.
    pub fn is_empty(&self) -> bool {
        self.by_pair.is_empty()
    }

    /// Reads `FILE`, `FILE:complete` or `FILE:positives`; the last is the default.
    ///
    /// # Errors
    /// A line does not follow its format, or names a question that is not in the set.
    pub fn read(name: &str, questions: &[Question]) -> Result<Self, InputError> {
        let (path, absent) = match name.rsplit_once(':') {
            Some((path, "complete")) => (path, Absent::No),
            Some((path, "positives")) => (path, Absent::Unjudged),
            _ => (name, Absent::Unjudged),
        };
        let path = Path::new(path);
        let mut reader = Reader::new(questions);
        if input::ending(path) == Some("json") {
            for pair in read_perspectrum(path, questions)? {
                reader.statements.insert(pair.0.clone());
                reader.by_pair.insert(pair, Label { supports: true, evidence: None });
            }
            return reader.labels(path.into(), absent);
        }
        lines(path, |number, line| reader.line(number, line))?;
        reader.labels(path.into(), absent)
    }

    /// Reads built-in labels in the table format.
    ///
    /// # Errors
    /// As [`Labels::read`].
    pub fn builtin(text: &str, questions: &[Question], absent: Absent) -> Result<Self, InputError> {
        let mut reader = Reader::new(questions);
        for (i, line) in text.lines().enumerate() {
            reader.line(i + 1, line).map_err(|Expected(expected)| {
                let file = PathBuf::from("built-in labels");
                InputError::BadLines(vec![BadLine { file, line: i + 1, expected, found: line.into() }])
            })?;
        }
        reader.labels("built-in labels".into(), absent)
    }
}

/// Columns of the table format, by position.
struct Columns {
    id: usize,
    perspective: usize,
    label: usize,
    evidence: Option<usize>,
}

struct Reader<'a> {
    questions: HashMap<&'a str, &'a Question>,
    columns: Option<Columns>,
    by_pair: HashMap<(String, String), Label>,
    /// The line of each pair.
    lines: HashMap<(String, String), usize>,
    statements: HashSet<String>,
    elsewhere: usize,
}

impl<'a> Reader<'a> {
    fn new(questions: &'a [Question]) -> Self {
        let by_name = questions.iter().flat_map(|q| [(q.id.as_str(), q), (q.text.as_str(), q)]);
        Reader {
            questions: by_name.collect(),
            columns: None,
            by_pair: HashMap::new(),
            lines: HashMap::new(),
            statements: HashSet::new(),
            elsewhere: 0,
        }
    }

    fn labels(self, path: PathBuf, absent: Absent) -> Result<Labels, InputError> {
        if self.by_pair.is_empty() && self.elsewhere > 0 {
            let reason = format!("none of its {} lines names a question of the question set", self.elsewhere);
            return Err(InputError::Unreadable { path, reason });
        }
        if self.by_pair.is_empty() {
            let advice = "expected a table with a header (id, perspective, label) or diversity qrels";
            return Err(InputError::Empty { path, what: "the label file", advice });
        }
        Ok(Labels { absent, by_pair: self.by_pair, statements: self.statements, elsewhere: self.elsewhere })
    }

    fn line(&mut self, number: usize, line: &str) -> Result<(), Expected> {
        let fields: Vec<&str> = line.split('\t').collect();
        if self.columns.is_none() && self.by_pair.is_empty() && fields.contains(&"perspective") {
            self.columns = Some(Columns::named(&fields)?);
            return Ok(());
        }
        let (pair, label) = match &self.columns {
            Some(columns) => columns.label(&fields)?,
            None => {
                let Some(found) = self.qrel(line)? else { return Ok(()) };
                found
            }
        };
        self.statements.insert(pair.0.clone());
        let earlier = *self.lines.entry(pair.clone()).or_insert(number);
        match self.by_pair.insert(pair, label.clone()) {
            Some(other) if other.supports != label.supports => {
                let (first, second) =
                    if label.supports { ("does not support", "does") } else { ("supports", "does not") };
                Err(format!(
                    "one decision for each passage and statement; line {earlier} says that this passage {first} the statement, and \
                     line {number} that it {second}: remove one of them"
                )
                .into())
            }
            Some(other) if other != label => {
                Err(format!("the same evidence as on line {earlier} for this pair").into())
            }
            _ => Ok(()),
        }
    }

    /// A line of qrels; `None` if the set does not have its question: TREC ships one file for several sets.
    fn qrel(&mut self, line: &str) -> Result<Option<Row>, Expected> {
        if line.split_whitespace().count() != 4 {
            return Err(
                "QUESTION PERSPECTIVE PASSAGE LABEL, or a header that names id, perspective and label".into(),
            );
        }
        let (question, perspective, passage, grade) =
            diversity_line(line).map_err(|(expected, _)| Expected(expected))?;
        let Some(question) = self.questions.get(question) else {
            self.elsewhere += 1;
            return Ok(None);
        };
        // A judged question was judged for all its statements.
        self.statements.extend(question.perspectives.iter().cloned());
        let statement = question.perspectives.get(perspective);
        let statement =
            statement.ok_or_else(|| format!("a perspective from 1 to {}", question.perspectives.len()))?;
        Ok(Some(((statement.clone(), passage.to_owned()), Label { supports: grade > 0, evidence: None })))
    }
}

impl Columns {
    fn named(header: &[&str]) -> Result<Self, Expected> {
        let place = |names: &[&str]| header.iter().position(|column| names.contains(column));
        Ok(Columns {
            id: place(&["id", "passage", "document_id"]).ok_or("a column `id` with the passage's id")?,
            perspective: place(&["perspective"]).ok_or("a column `perspective` with the statement's text")?,
            label: place(&["label"]).ok_or("a column `label` with 1 or 0")?,
            evidence: place(&["evidence"]),
        })
    }

    fn label(&self, fields: &[&str]) -> Result<((String, String), Label), Expected> {
        let field = |place: usize| fields.get(place).map(|field| unquote(field));
        let (Some(id), Some(perspective), Some(label)) =
            (field(self.id), field(self.perspective), field(self.label))
        else {
            return Err("as many fields as the header has".into());
        };
        let evidence = self.evidence.and_then(field).transpose()?.filter(|text| !text.is_empty());
        Ok(((perspective?, id?), Label { supports: truth(&label?)?, evidence }))
    }
}

/// Whether a label means support: true, yes and every number above 0 do.
pub(crate) fn truth(label: &str) -> Result<bool, Expected> {
    grade(label.trim()).map(|grade| grade > 0).ok_or_else(|| "a label of 1 or 0".into())
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
fn read_perspectrum(path: &Path, questions: &[Question]) -> Result<Vec<(String, String)>, InputError> {
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

/// The source of a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// A detector.
    Model,
    /// Gold labels, from a file or the built-in data.
    Gold,
    /// A person, in Parallax.
    Human,
}

/// Which labels count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum LabelSource {
    /// The most trusted label of each passage: human, else gold, else the model's. Sources are never mixed within a passage.
    #[default]
    Auto,
    /// The detector alone.
    Model,
    /// Gold labels alone.
    Gold,
    /// Human labels alone.
    Human,
}

impl LabelSource {
    /// The next source in the cycle, skipping those without labels.
    pub fn next(self, gold: bool, human: bool) -> Self {
        let next = match self {
            LabelSource::Auto => LabelSource::Model,
            LabelSource::Model => LabelSource::Gold,
            LabelSource::Gold => LabelSource::Human,
            LabelSource::Human => LabelSource::Auto,
        };
        match next {
            LabelSource::Gold if !gold => next.next(gold, human),
            LabelSource::Human if !human => next.next(gold, human),
            _ => next,
        }
    }

    /// Whether only labels count, so no detector needs to run.
    pub fn is_labels(self) -> bool {
        matches!(self, LabelSource::Gold | LabelSource::Human)
    }
}

impl fmt::Display for LabelSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LabelSource::Auto => "auto",
            LabelSource::Model => "model",
            LabelSource::Gold => "gold",
            LabelSource::Human => "human",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sources_cycle_and_skip_those_without_labels() {
        let round = |gold, human| {
            let mut source = LabelSource::Auto;
            std::iter::from_fn(|| {
                source = source.next(gold, human);
                (source != LabelSource::Auto).then(|| source.to_string())
            })
            .collect::<Vec<_>>()
            .join(" ")
        };
        assert_eq!(round(true, true), "model gold human");
        assert_eq!(round(false, true), "model human");
        assert_eq!(round(true, false), "model gold");
        assert_eq!(round(false, false), "model");
    }

    fn questions() -> Vec<Question> {
        let perspectives = vec!["Zoos should be banned.".into(), "Zoos should not be banned.".into()];
        vec![Question {
            id: "q1".into(),
            text: "Should zoos be banned?".into(),
            perspectives,
            supports: Some(0),
            ..Question::default()
        }]
    }

    fn read(text: &str, absent: Absent) -> Result<Labels, String> {
        Labels::builtin(text, &questions(), absent).map_err(|error| error.to_string())
    }

    #[test]
    fn a_table_and_diversity_qrels_give_the_same_labels() {
        let table = read(
            "question\tid\tperspective\tlabel\nq1\td1\tZoos should not be banned.\t1\n",
            Absent::Unjudged,
        );
        let qrels = read("q1 2 d1 1\n", Absent::Unjudged);
        for labels in [table.unwrap(), qrels.unwrap()] {
            assert_eq!(labels.supports("Zoos should not be banned.", "d1"), Some(true));
            assert_eq!(labels.supports("Zoos should be banned.", "d1"), None);
        }
    }

    #[test]
    fn evidence_of_perspectrum_supports_the_side_of_its_stance() {
        use std::io::Write;
        let read = |text: &str| {
            let mut file = tempfile::Builder::new().suffix(".json").tempfile().unwrap();
            file.write_all(text.as_bytes()).unwrap();
            Labels::read(file.path().to_str().unwrap(), &questions()).map_err(|error| error.to_string())
        };
        let claim = |text: &str, stance: &str| {
            format!(
                "[{{\"cId\": 9, \"text\": \"{text}\", \"perspectives\": [{{\"pids\": [1], \"stance_label_3\": \"{stance}\", \"evidence\": [5, 6]}}]}}]"
            )
        };
        let labels = read(&claim("Should zoos be banned?", "UNDERMINE")).unwrap();
        assert_eq!((labels.len(), labels.supports("Zoos should not be banned.", "6")), (2, Some(true)));
        assert_eq!(labels.supports("Zoos should be banned.", "6"), None);
        for (text, expected) in [
            (claim("Should zoos be banned?", "SO-SO"), "expected SUPPORT or UNDERMINE, found `SO-SO`"),
            (claim("Another claim", "SUPPORT"), "expected a claim of the question set"),
            ("{}".into(), ":1: expected a JSON list of Perspectrum's claims"),
        ] {
            let error = read(&text).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn qrels_may_have_words_as_labels_and_the_same_line_twice() {
        let labels =
            read("q1 1 d1 yes\nq1\t2\td1\tfalse\nq1 1 d2 2\nq1 1 d2 true", Absent::Unjudged).unwrap();
        assert_eq!(labels.supports("Zoos should be banned.", "d1"), Some(true));
        assert_eq!(labels.supports("Zoos should not be banned.", "d1"), Some(false));
        assert_eq!((labels.len(), labels.supports("Zoos should be banned.", "d2")), (3, Some(true)));
    }

    #[test]
    fn in_a_complete_file_absent_means_no() {
        let labels = read("q1 1 d1 1", Absent::No).unwrap();
        assert_eq!(labels.supports("Zoos should be banned.", "d2"), Some(false));
        assert_eq!(labels.supports("Zoos should not be banned.", "d1"), Some(false));
        assert_eq!(labels.supports("Nobody labelled this.", "d1"), None);
    }

    #[test]
    fn a_bad_line_is_reported_with_its_number_and_what_was_expected() {
        for (text, expected) in [
            ("q1 1 d1 1\nq1 3 d1 1", "built-in labels:2: expected a perspective from 1 to 2"),
            ("q9 1 d1 1\nq8 1 d1 1", "none of its 2 lines names a question of the question set"),
            ("id\tperspective\tlabel\nd1\tx\tmaybe", ":2: expected a label of 1 or 0"),
            ("id\tperspective\tlabel\n\"d1\tx\t1", ":2: expected quotes that are closed"),
            (
                "q1 1 d1 1\nq1 1 d1 0",
                "line 1 says that this passage supports the statement, and line 2 that it does not",
            ),
            ("", "the label file is empty"),
        ] {
            let error = read(text, Absent::No).unwrap_err();
            assert!(error.contains(expected), "{text:?}: {error}");
        }
    }
}
