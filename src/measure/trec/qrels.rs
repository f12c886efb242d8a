//! Graded judgements of (question, passage) pairs: TREC qrels, BEIR's TSV, and PIR's JSONL.

use std::collections::{BTreeMap, HashMap};
use std::io::BufRead;

use super::lines::{Problems, TrecError, each_line, quoted};
use super::run::columns_found;

/// Grades by question and passage, in a fixed order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Qrels {
    questions: BTreeMap<String, BTreeMap<String, i32>>,
}

impl Qrels {
    /// Questions with their judgements, ordered by id.
    pub fn questions(&self) -> impl Iterator<Item = (&str, &BTreeMap<String, i32>)> {
        self.questions.iter().map(|(id, judged)| (id.as_str(), judged))
    }

    /// The judgements of one question.
    pub fn question(&self, id: &str) -> Option<&BTreeMap<String, i32>> {
        self.questions.get(id)
    }

    /// How many questions have a judgement.
    pub fn len(&self) -> usize {
        self.questions.len()
    }

    /// Whether none has.
    pub fn is_empty(&self) -> bool {
        self.questions.is_empty()
    }

    /// Sets one grade, and gives back the one it replaces.
    pub fn insert(&mut self, question: &str, passage: &str, grade: i32) -> Option<i32> {
        self.questions.entry(question.to_owned()).or_default().insert(passage.to_owned(), grade)
    }
}

/// Reads `qid iter docid rel`; the second column is ignored.
///
/// # Errors
/// Lines without four columns, grades that are not whole numbers, and a pair judged twice, which is what
/// a file per perspective looks like here: that one is for
/// [`read_diversity_qrels`](super::read_diversity_qrels).
pub fn read_qrels(file: &str, reader: impl BufRead) -> Result<Qrels, TrecError> {
    let mut problems = Problems::of(file);
    let mut building = QrelsBuilder::default();
    each_line(reader, &mut problems, |problems, number, line| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let [question, _, passage, grade] = columns[..] else {
            let found = format!("{} in {}", columns_found(columns.len()), quoted(line));
            problems.report(number, "4 columns (qid iter docid rel)", found);
            return;
        };
        let Ok(grade) = grade.parse() else {
            problems.report(number, "a whole number as grade (column 4)", quoted(grade));
            return;
        };
        building.add(problems, number, [question, passage], grade);
    })?;
    problems.finish(building.qrels)
}

/// The columns BEIR names in its header.
const BEIR_COLUMNS: [&str; 3] = ["query-id", "corpus-id", "score"];

/// Reads BEIR's `qrels/*.tsv`, whose header names the columns `query-id`, `corpus-id` and `score`.
///
/// # Errors
/// A header without those names, short lines, grades that are not whole numbers, unbalanced quotes, and a
/// pair judged twice.
pub fn read_beir_qrels(file: &str, reader: impl BufRead) -> Result<Qrels, TrecError> {
    let mut problems = Problems::of(file);
    let mut building = QrelsBuilder::default();
    let mut header: Option<Option<[usize; 3]>> = None;
    each_line(reader, &mut problems, |problems, number, line| {
        let Some(known) = header else {
            header = Some(beir_header(line));
            if header == Some(None) {
                let expected = format!("the header {}", quoted(&BEIR_COLUMNS.join("\t")));
                problems.report(number, expected, quoted(line));
            }
            return;
        };
        // Without a header no column is known; one error tells more than one for every line.
        let Some(places) = known else { return };
        let columns: Vec<&str> = line.split('\t').collect();
        let [Some(question), Some(passage), Some(grade)] = places.map(|place| columns.get(place).copied())
        else {
            let found = format!("{} in {}", columns_found(columns.len()), quoted(line));
            problems.report(number, "3 columns separated by tabs", found);
            return;
        };
        let Ok(grade) = grade.trim().parse() else {
            problems.report(number, "a whole number as score", quoted(grade));
            return;
        };
        match (unquoted(question), unquoted(passage)) {
            (Some(question), Some(passage)) => {
                building.add(problems, number, [&question, &passage], grade);
            }
            _ => problems.report(number, "balanced quotes", quoted(line)),
        }
    })?;
    problems.finish(building.qrels)
}

/// Reads PIR's judgements: a JSON object a line with `query-id`, `corpus-id` and `score`.
///
/// # Errors
/// Lines that are no such objects, and a pair judged twice.
pub fn read_jsonl_qrels(file: &str, reader: impl BufRead) -> Result<Qrels, TrecError> {
    #[derive(serde::Deserialize)]
    struct Line {
        #[serde(rename = "query-id")]
        question: Name,
        #[serde(rename = "corpus-id")]
        passage: Name,
        score: f64,
    }
    #[derive(serde::Deserialize)]
    #[serde(untagged)]
    enum Name {
        Text(String),
        Number(i64),
    }
    let text = |name: Name| match name {
        Name::Text(text) => text,
        Name::Number(number) => number.to_string(),
    };
    let mut problems = Problems::of(file);
    let mut building = QrelsBuilder::default();
    each_line(reader, &mut problems, |problems, number, line| match serde_json::from_str::<Line>(line) {
        Ok(judged) if judged.score.fract() == 0.0 => {
            let pair = [&*text(judged.question), &*text(judged.passage)];
            building.add(problems, number, pair, judged.score as i32);
        }
        _ => {
            let expected = "a JSON object with `query-id`, `corpus-id` and a whole number as `score`";
            problems.report(number, expected, quoted(line));
        }
    })?;
    problems.finish(building.qrels)
}

fn beir_header(line: &str) -> Option<[usize; 3]> {
    let names: Vec<&str> = line.split('\t').map(str::trim).collect();
    let place = |name| names.iter().position(|other| *other == name);
    let [question, passage, score] = BEIR_COLUMNS.map(place);
    Some([question?, passage?, score?])
}

/// A field counts as quoted only if it begins and ends with `"` and its inner ones are doubled; `None` for
/// one that begins with a quote and does not end so.
fn unquoted(field: &str) -> Option<String> {
    let Some(rest) = field.strip_prefix('"') else {
        return Some(field.to_owned());
    };
    let inner = rest.strip_suffix('"')?;
    let undoubled = inner.replace("\"\"", "");
    (!undoubled.contains('"')).then(|| inner.replace("\"\"", "\""))
}

#[derive(Default)]
struct QrelsBuilder {
    qrels: Qrels,
    lines: HashMap<[String; 2], usize>,
}

impl QrelsBuilder {
    fn add(&mut self, problems: &mut Problems, line: usize, pair: [&str; 2], grade: i32) {
        let [question, passage] = pair;
        let first = *self.lines.entry(pair.map(str::to_owned)).or_insert(line);
        if first == line {
            self.qrels.insert(question, passage, grade);
        } else {
            let what = format!("passage of question {}", quoted(question));
            problems.report_repeated(line, &what, passage, first);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trec(text: &str) -> Result<Qrels, TrecError> {
        read_qrels("q.qrels", text.as_bytes())
    }

    fn beir(text: &str) -> Result<Qrels, TrecError> {
        read_beir_qrels("q.tsv", text.as_bytes())
    }

    #[test]
    fn trec_qrels_keep_every_grade_even_zero_and_below() {
        let qrels = trec("1 0 a 2\n1 Q0 b 0\n2\t0\ta\t-1\n").unwrap();
        assert_eq!(qrels.len(), 2);
        assert_eq!(qrels.question("1").unwrap()["b"], 0);
        assert_eq!(qrels.question("2").unwrap()["a"], -1);
        assert!(qrels.question("3").is_none());
    }

    #[test]
    fn bad_and_repeated_lines_of_qrels_are_told() {
        let message = trec("1 0 a 2\n1 0 a\n1 0 b 1.5\n1 1 a 2\n").unwrap_err().to_string();
        assert_eq!(
            message,
            "q.qrels:2: expected 4 columns (qid iter docid rel), found 3 columns in `1 0 a`\n\
             q.qrels:3: expected a whole number as grade (column 4), found `1.5`\n\
             q.qrels:4: expected one line for each passage of question `1`, found `a` again (first on line 1)"
        );
    }

    #[test]
    fn judgements_as_json_lines_say_the_same() {
        let jsonl = |text: &str| read_jsonl_qrels("q.jsonl", text.as_bytes());
        let line = "{\"query-id\": \"1\", \"corpus-id\": 7, \"score\": 2}\n";
        assert_eq!(jsonl(line).unwrap(), trec("1 0 7 2").unwrap());
        for bad in ["{\"query-id\": \"1\"}", "{\"query-id\": \"1\", \"corpus-id\": 7, \"score\": 0.5}", line]
        {
            let error = jsonl(&format!("{line}{bad}")).unwrap_err().to_string();
            assert!(error.starts_with("q.jsonl:2: expected "), "{error}");
        }
    }

    #[test]
    fn beirs_columns_are_found_by_name() {
        let usual = beir("query-id\tcorpus-id\tscore\nq 1\ta\t1\r\n").unwrap();
        assert_eq!(usual.question("q 1").unwrap()["a"], 1);
        let turned = beir("corpus-id\tquery-id\tscore\na\tq\t1\n").unwrap();
        assert_eq!(turned.question("q").unwrap()["a"], 1);
    }

    #[test]
    fn beir_without_its_header_is_one_error() {
        let message = beir("q\ta\t1\nq\tb\t1\n").unwrap_err().to_string();
        assert_eq!(message, "q.tsv:1: expected the header `query-id\\tcorpus-id\\tscore`, found `q\\ta\\t1`");
    }

    #[test]
    fn quotes_in_beir_fields_are_undone_or_refused() {
        let header = "query-id\tcorpus-id\tscore\n";
        let qrels = beir(&format!("{header}\"a \"\"b\"\"\"\td\"x\t1\n")).unwrap();
        assert_eq!(qrels.question("a \"b\"").unwrap()["d\"x"], 1);
        for field in ["\"a", "\"a\"b\"", "\""] {
            let message = beir(&format!("{header}{field}\td\t1\n")).unwrap_err().to_string();
            assert!(message.starts_with("q.tsv:2: expected balanced quotes"), "{message}");
        }
    }

    #[test]
    fn short_lines_and_grades_that_are_no_numbers_are_told() {
        let message = beir("query-id\tcorpus-id\tscore\nq\ta\nq\ta\tyes\n").unwrap_err().to_string();
        assert_eq!(
            message,
            "q.tsv:2: expected 3 columns separated by tabs, found 2 columns in `q\\ta`\n\
             q.tsv:3: expected a whole number as score, found `yes`"
        );
    }
}
