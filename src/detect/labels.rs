//! Gold labels: which passage supports which statement.
//!
//! There are four formats: a table with a header that names `id` (the passage's), `perspective` (the statement) and `label`; TREC
//! diversity qrels (`question perspective passage label`, statements numbered from 1); Perspectrum's JSON; and BERDS results with the
//! verdicts of a named judge (`FILE:preds=NAME`). A label belongs to the exact text of its statement.
//!
//! In Perspectrum a claim is a question of the set, by number (`cId`) or text, and its evidence is a list of passages, by number.
//! Evidence of a perspective that supports the claim supports the question's supporting statement; other evidence supports the
//! opposite one.
//!
//! This module reads `--labels`. Label files of other tools are imported by `annotate::formats`.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use serde_json::Value;
use serde_json::value::RawValue;

use super::decision::truth;
use super::predictions::results;
use crate::corpus::{Corpus, PassageIx, exact_object};
use crate::input::{self, BadLine, Expected, InputError, lines, unquote};
use crate::measure::trec::{diversity_line, is_text_id, text_id};
use crate::question::Question;
use crate::question::pir::perspectrum;

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

/// The source's name where no judge is named.
const GOLD: &str = "gold";

type Row = ((String, String), Label);

/// The labels of one file.
#[derive(Clone, Debug)]
pub struct Labels {
    absent: Absent,
    by_pair: HashMap<(String, String), Label>,
    /// The statements that the file covers.
    statements: HashSet<String>,
    /// The number of lines about questions that the set does not have: one file may serve several sets.
    pub unknown_questions: usize,
    /// Who made the labels, where the file has the verdicts of a named judge.
    by: Option<String>,
}

impl Labels {
    /// The name of their source: `gold`, or the judge whose verdicts they are.
    pub fn source(&self) -> &str {
        self.by.as_deref().unwrap_or(GOLD)
    }

    /// The labels in words: `gold labels`, or `verdicts of NAME`.
    pub fn described(&self) -> String {
        self.by.as_ref().map_or_else(|| "gold labels".into(), |name| format!("verdicts of {name}"))
    }

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

    /// The number of pairs whose passage is not in the corpus.
    pub fn count_missing_passages(&self, is_there: impl Fn(&str) -> bool) -> usize {
        let mut present: HashMap<&str, bool> = HashMap::new();
        let ids = self.by_pair.keys().map(|(_, id)| id.as_str());
        ids.filter(|id| !*present.entry(id).or_insert_with(|| is_there(id))).count()
    }

    /// The number of pairs whose statement is not, word for word, in `statements`.
    pub fn count_unknown_statements(&self, statements: &HashSet<&str>) -> usize {
        self.by_pair.keys().filter(|(statement, _)| !statements.contains(statement.as_str())).count()
    }

    /// The number of pairs.
    pub fn len(&self) -> usize {
        self.by_pair.len()
    }

    /// Whether there are no pairs.
    pub fn is_empty(&self) -> bool {
        self.by_pair.is_empty()
    }

    /// Reads `FILE` (the same as `FILE:positives`), `FILE:complete`, or `FILE:preds=NAME`, the verdicts of a named judge.
    ///
    /// # Errors
    /// A line does not follow its format, or the file has no label for the questions.
    pub fn read(name: &str, questions: &[Question]) -> Result<Self, InputError> {
        if let Some((path, judge)) = name.rsplit_once(":preds=") {
            return Self::of_judge(Path::new(path), judge, questions);
        }
        let (path, absent) = match name.rsplit_once(':') {
            Some((path, "complete")) => (path, Absent::No),
            Some((path, "positives")) => (path, Absent::Unjudged),
            _ => (name, Absent::Unjudged),
        };
        let path = Path::new(path);
        let mut reader = Reader::new(questions);
        if input::ending(path) == Some("json") {
            for pair in perspectrum(path, questions)? {
                reader.statements.insert(pair.0.clone());
                reader.by_pair.insert(pair, Label { supports: true, evidence: None });
            }
            return reader.labels(path.into(), absent);
        }
        lines(path, |number, line| reader.line(number, line))?;
        reader.labels(path.into(), absent)
    }

    /// Reads the booleans `JUDGE-preds` of BERDS results: one object per line, or a list of them.
    fn of_judge(path: &Path, judge: &str, questions: &[Question]) -> Result<Self, InputError> {
        let text = input::text(path)?;
        let bad = |line: usize, Expected(expected): Expected, found: &str| BadLine {
            file: path.into(),
            line,
            expected,
            found: found.chars().take(100).collect(),
        };
        let objects: Vec<(usize, &str)> = if text.trim_start().starts_with('[') {
            let all: Vec<&RawValue> = serde_json::from_str(&text).map_err(|error| {
                let expected = Expected(format!("a JSON list of BERDS results ({error})"));
                InputError::BadLines(vec![bad(error.line(), expected, &text)])
            })?;
            all.into_iter().enumerate().map(|(i, object)| (i + 1, object.get())).collect()
        } else {
            let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
            lines.map(|(i, line)| (i + 1, line)).collect()
        };
        let (mut reader, mut bad_lines) = (Reader::new(questions), Vec::new());
        for (number, object) in objects {
            if let Err(expected) = reader.results(number, object, judge) {
                bad_lines.push(bad(number, expected, object));
            }
        }
        if !bad_lines.is_empty() {
            return Err(InputError::BadLines(bad_lines));
        }
        if reader.by_pair.is_empty() {
            let reason = format!("no passage has `{judge}-preds` with a verdict");
            return Err(InputError::Unreadable { path: path.into(), reason });
        }
        let mut labels = reader.labels(path.into(), Absent::Unjudged)?;
        // A judge called `human` must not pass for labels by hand.
        let taken = [GOLD, "human", "model", "auto"].contains(&judge.to_ascii_lowercase().as_str());
        labels.by = Some(if taken { format!("{judge}-preds") } else { judge.to_owned() });
        Ok(labels)
    }

    /// Replaces text ids with corpus ids, for passages that the file gives only as text.
    pub fn resolve_text_ids(&mut self, corpus: &Corpus) {
        let nameless = |id: &str| is_text_id(id) && corpus.find(id).is_none();
        if !self.by_pair.keys().any(|(_, id)| nameless(id)) {
            return;
        }
        let mut ids: HashMap<String, Vec<String>> = HashMap::new();
        for place in 0..corpus.len() {
            let passage = corpus.passage(PassageIx(place as u32));
            ids.entry(text_id(&passage.text)).or_default().push(passage.id);
        }
        for ((statement, id), label) in std::mem::take(&mut self.by_pair) {
            match ids.get(&id).filter(|_| nameless(&id)) {
                Some(own) => {
                    self.by_pair.extend(own.iter().map(|id| ((statement.clone(), id.clone()), label.clone())))
                }
                None => {
                    self.by_pair.insert((statement, id), label);
                }
            }
        }
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
    unknown_questions: usize,
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
            unknown_questions: 0,
        }
    }

    fn labels(self, path: PathBuf, absent: Absent) -> Result<Labels, InputError> {
        if self.by_pair.is_empty() && self.unknown_questions > 0 {
            let reason =
                format!("none of its {} lines names a question of the question set", self.unknown_questions);
            return Err(InputError::Unreadable { path, reason });
        }
        if self.by_pair.is_empty() {
            let advice = "expected a table with a header (id, perspective, label) or diversity qrels";
            return Err(InputError::Empty { path, what: "the label file", advice });
        }
        let Reader { by_pair, statements, unknown_questions, .. } = self;
        Ok(Labels { absent, by_pair, statements, unknown_questions, by: None })
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
        self.take(number, pair, label)
    }

    /// The verdicts of a judge on the passages of one question.
    fn results(&mut self, number: usize, object: &str, judge: &str) -> Result<(), Expected> {
        let object = exact_object(object)
            .map_err(|error| Expected(format!("an object of BERDS results ({error})")))?;
        results(&object, Some(judge), &mut |passage, statement, supports| {
            let id = match passage.get("id").or_else(|| passage.get("docid")) {
                Some(Value::String(id)) => id.clone(),
                Some(Value::Null) | None => match passage.get("text").and_then(Value::as_str) {
                    Some(text) => text_id(text),
                    None => return Err("an id or a text for each passage".into()),
                },
                Some(other) => other.to_string(),
            };
            self.take(number, (statement.to_owned(), id), Label { supports, evidence: None })
        })
    }

    fn take(&mut self, number: usize, pair: (String, String), label: Label) -> Result<(), Expected> {
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
            self.unknown_questions += 1;
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

#[cfg(test)]
mod tests {
    use super::*;

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
    fn verdicts_of_a_named_judge_are_labels_under_its_name_and_never_labels_by_hand() {
        use std::io::Write;
        let read = |text: &str, judge: &str| {
            let mut file = tempfile::Builder::new().suffix(".jsonl").tempfile().unwrap();
            file.write_all(text.as_bytes()).unwrap();
            let name = format!("{}:preds={judge}", file.path().display());
            Labels::read(&name, &questions()).map_err(|error| error.to_string())
        };
        let line = r#"{"question": "Should zoos be banned?", "perspectives": ["Zoos should be banned.", "Zoos should not be banned."], "ctxs": [{"id": 7, "text": "a", "mistral-preds": [true, false], "human-preds": [false, null]}, {"text": "B  c", "mistral-preds": [false, true]}, {"id": "d9", "text": "x"}]}"#;
        let (yes, no) = ("Zoos should be banned.", "Zoos should not be banned.");
        for text in [line.to_owned(), format!("[{line}]"), format!("{line}\n{line}\n")] {
            let labels = read(&text, "mistral").unwrap();
            let known = ["7", &text_id("b C"), "d9"].map(|id| [yes, no].map(|one| labels.supports(one, id)));
            assert_eq!(known, [[Some(true), Some(false)], [Some(false), Some(true)], [None, None]]);
            assert_eq!((labels.source(), labels.described().as_str()), ("mistral", "verdicts of mistral"));
        }
        let human = read(line, "human").unwrap();
        assert_eq!((human.source(), human.supports(yes, "7")), ("human-preds", Some(false)));
        let torn = line.replace("[false, true]", "[false]");
        let both = format!("{line}\n{}", line.replace("[true, false]", "[false, true]"));
        for (text, judge, expected) in [
            (line, "gpt", "no passage has `gpt-preds` with a verdict"),
            (torn.as_str(), "mistral", ":1: expected BERDS results with 2 booleans at passage 2"),
            (&both, "mistral", ":2: expected one decision for each passage and statement; line 1 says"),
            ("{\"a\": 1}", "mistral", ":1: expected BERDS results with a list `perspectives`"),
            ("[{]", "mistral", "a JSON list of BERDS results"),
        ] {
            let error = read(text, judge).unwrap_err();
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
