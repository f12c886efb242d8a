//! Judgments: grades of (question, passage) pairs as TREC, BEIR and PIR write them, and grades per perspective.
//!
//! A file per perspective has the perspective in its second column, from 1. Take the number of perspectives from the question and *not*
//! from this file: a side without a judged passage would be missing in the denominators.

use std::collections::{BTreeMap, HashMap};
use std::io::BufRead;

use super::run::columns_found;
use super::{Problems, TrecError, each_line, quoted};
use crate::input::unquote;
use crate::measure::support::{MAX_PERSPECTIVES, SupportSet};

/// Grades by question and passage, in a fixed order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Qrels {
    questions: BTreeMap<String, BTreeMap<String, i32>>,
}

impl Qrels {
    /// Questions with their judgments, ordered by id.
    pub fn questions(&self) -> impl Iterator<Item = (&str, &BTreeMap<String, i32>)> {
        self.questions.iter().map(|(id, judged)| (id.as_str(), judged))
    }

    /// The judgments of one question.
    pub fn question(&self, id: &str) -> Option<&BTreeMap<String, i32>> {
        self.questions.get(id)
    }

    /// The number of questions with a judgment.
    pub fn len(&self) -> usize {
        self.questions.len()
    }

    /// Whether there are no judgments.
    pub fn is_empty(&self) -> bool {
        self.questions.is_empty()
    }

    /// Keeps the judgments of these questions alone.
    pub fn retain(&mut self, mut keep: impl FnMut(&str) -> bool) {
        self.questions.retain(|id, _| keep(id));
    }

    /// Sets one grade, and returns the one it replaces.
    pub fn insert(&mut self, question: &str, passage: &str, grade: i32) -> Option<i32> {
        self.questions.entry(question.to_owned()).or_default().insert(passage.to_owned(), grade)
    }
}

/// Reads `qid iter docid rel`; the second column is ignored.
///
/// # Errors
/// Lines without four columns, grades that are not whole numbers, and a pair judged twice. A file per perspective has such pairs; read it
/// with [`read_diversity_qrels`].
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

/// The columns that BEIR names in its header.
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
        // Without a header the columns are unknown; one error is enough.
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
        match (unquote(question), unquote(passage)) {
            (Ok(question), Ok(passage)) => {
                building.add(problems, number, [&question, &passage], grade);
            }
            _ => problems.report(number, "balanced quotes", quoted(line)),
        }
    })?;
    problems.finish(building.qrels)
}

/// Reads PIR's judgments: one JSON object per line, with `query-id`, `corpus-id` and `score`.
///
/// # Errors
/// Lines that are not such objects, and a pair judged twice.
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

/// The meaning of a passage that a label file does not mention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absent {
    /// The file is `complete`: the passage supports nothing.
    SupportsNothing,
    /// The file holds `positives`: the passage is not judged.
    Unjudged,
}

/// Grades of one passage by perspective, from 0.
type ByPerspective = BTreeMap<usize, i32>;

/// Grades by question, passage and perspective.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiversityQrels {
    questions: BTreeMap<String, BTreeMap<String, ByPerspective>>,
}

impl DiversityQrels {
    /// The ids of the questions with a judgment, in order.
    pub fn questions(&self) -> impl Iterator<Item = &str> {
        self.questions.keys().map(String::as_str)
    }

    /// Every judgment of one question: passage, perspective from 0, grade; in order.
    pub fn judgments(&self, question: &str) -> impl Iterator<Item = (&str, usize, i32)> {
        self.questions.get(question).into_iter().flatten().flat_map(|(passage, grades)| {
            grades.iter().map(|(&perspective, &grade)| (passage.as_str(), perspective, grade))
        })
    }

    /// The highest perspective judged, from 0: a lower bound of m, never m itself.
    pub fn highest_perspective(&self, question: &str) -> Option<usize> {
        self.judgments(question).map(|(_, perspective, _)| perspective).max()
    }

    /// Every judged passage with the perspectives it supports at a grade of at least `rel`; in order.
    pub fn pool(&self, question: &str, rel: i32) -> Vec<(&str, SupportSet)> {
        self.questions
            .get(question)
            .into_iter()
            .flatten()
            .map(|(passage, grades)| (passage.as_str(), supported(grades, rel)))
            .collect()
    }

    /// The support of each passage of a ranking, in rank order.
    pub fn ranked<'a>(
        &self,
        question: &str,
        ranking: impl IntoIterator<Item = &'a str>,
        rel: i32,
        absent: Absent,
    ) -> Vec<Option<SupportSet>> {
        let judged = self.questions.get(question);
        let unlabelled = match absent {
            Absent::SupportsNothing => Some(SupportSet::EMPTY),
            Absent::Unjudged => None,
        };
        ranking
            .into_iter()
            .map(|passage| {
                judged
                    .and_then(|judged| judged.get(passage))
                    .map(|grades| supported(grades, rel))
                    .or(unlabelled)
            })
            .collect()
    }

    /// The judgments for `NAME.qrels`: each passage with its highest grade over the perspectives.
    pub fn any_perspective(&self) -> Qrels {
        let mut any = Qrels::default();
        for (question, passages) in &self.questions {
            for (passage, grades) in passages {
                if let Some(&highest) = grades.values().max() {
                    any.insert(question, passage, highest);
                }
            }
        }
        any
    }

    /// Sets one grade, with the perspective counted from 0, and returns the one it replaces.
    ///
    /// # Errors
    /// No [`SupportSet`] can hold the perspective.
    pub fn insert(
        &mut self,
        question: &str,
        passage: &str,
        perspective: usize,
        grade: i32,
    ) -> Result<Option<i32>, super::super::PerspectiveError> {
        SupportSet::EMPTY.with(perspective)?;
        Ok(self
            .questions
            .entry(question.to_owned())
            .or_default()
            .entry(passage.to_owned())
            .or_default()
            .insert(perspective, grade))
    }
}

fn supported(grades: &ByPerspective, rel: i32) -> SupportSet {
    grades
        .iter()
        .filter(|&(_, &grade)| grade >= rel)
        // `insert` lets no other perspective in.
        .fold(SupportSet::EMPTY, |set, (&perspective, _)| set.with(perspective).unwrap_or(set))
}

/// The grade that a label stands for: a whole number, or 1 for `true` and `yes`, 0 for `false` and `no`. `None` for other texts.
pub fn grade(label: &str) -> Option<i64> {
    match label {
        "true" | "yes" => Some(1),
        "false" | "no" => Some(0),
        number => number.parse().ok(),
    }
}

/// Parses a line `qid perspective docid rel`, the perspective counted from 1, into question, perspective from 0, passage and grade.
///
/// # Errors
/// What was expected and what was found.
pub fn diversity_line(line: &str) -> Result<(&str, usize, &str, i64), (String, String)> {
    let columns: Vec<&str> = line.split_whitespace().collect();
    let [question, perspective, passage, label] = columns[..] else {
        let found = format!("{} in {}", columns_found(columns.len()), quoted(line));
        return Err(("4 columns (qid perspective docid rel)".into(), found));
    };
    let from_one: Option<usize> = perspective.parse().ok();
    let Some(from_one) = from_one.filter(|p| (1..=MAX_PERSPECTIVES).contains(p)) else {
        let expected = format!("a perspective from 1 to {MAX_PERSPECTIVES} (column 2)");
        return Err((expected, quoted(perspective)));
    };
    let grade = grade(label).ok_or_else(|| ("a whole number as grade (column 4)".into(), quoted(label)))?;
    Ok((question, from_one - 1, passage, grade))
}

/// Reads `qid perspective docid rel`, the perspective counted from 1.
///
/// # Errors
/// Lines without four columns, perspectives outside 1 to [`MAX_PERSPECTIVES`], grades that are not whole
/// numbers, and a triple judged twice.
pub fn read_diversity_qrels(file: &str, reader: impl BufRead) -> Result<DiversityQrels, TrecError> {
    let mut problems = Problems::of(file);
    let mut qrels = DiversityQrels::default();
    let mut lines: HashMap<(String, String, usize), usize> = HashMap::new();
    each_line(reader, &mut problems, |problems, number, line| {
        let (question, perspective, passage, grade) = match diversity_line(line) {
            Ok(parsed) => parsed,
            Err((expected, found)) => return problems.report(number, expected, found),
        };
        let Ok(grade) = i32::try_from(grade) else {
            problems.report(number, "a grade of 32 bits (column 4)", grade.to_string());
            return;
        };
        let triple = (question.to_owned(), passage.to_owned(), perspective);
        let first = *lines.entry(triple).or_insert(number);
        if first != number {
            let what = format!("passage of question {}, perspective {}", quoted(question), perspective + 1);
            problems.report_repeated(number, &what, passage, first);
        } else if let Err(error) = qrels.insert(question, passage, perspective, grade) {
            problems.report(number, "a perspective", error.to_string());
        }
    })?;
    problems.finish(qrels)
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
    fn bad_and_repeated_lines_of_qrels_are_reported() {
        let message = trec("1 0 a 2\n1 0 a\n1 0 b 1.5\n1 1 a 2\n").unwrap_err().to_string();
        assert_eq!(
            message,
            "q.qrels:2: expected 4 columns (qid iter docid rel), found 3 columns in `1 0 a`\n\
         q.qrels:3: expected a whole number as grade (column 4), found `1.5`\n\
         q.qrels:4: expected one line for each passage of question `1`, found `a` again (first on line 1)"
        );
    }

    #[test]
    fn judgments_as_json_lines_say_the_same() {
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
    fn short_lines_and_grades_that_are_no_numbers_are_reported() {
        let message = beir("query-id\tcorpus-id\tscore\nq\ta\nq\ta\tyes\n").unwrap_err().to_string();
        assert_eq!(
            message,
            "q.tsv:2: expected 3 columns separated by tabs, found 2 columns in `q\\ta`\n\
         q.tsv:3: expected a whole number as score, found `yes`"
        );
    }

    fn read(text: &str) -> Result<DiversityQrels, TrecError> {
        read_diversity_qrels("d.qrels", text.as_bytes())
    }

    fn sample() -> DiversityQrels {
        read("q 1 a 1\nq 2 a 1\nq 2 b 0\nq 2 c 2\n").unwrap()
    }

    #[test]
    fn one_passage_may_support_several_perspectives() {
        let both = SupportSet::of([0, 1]).unwrap();
        let second = SupportSet::of([1]).unwrap();
        let qrels = sample();
        assert_eq!(qrels.pool("q", 1), [("a", both), ("b", SupportSet::EMPTY), ("c", second)]);
        assert_eq!(qrels.pool("q", 2), [("a", SupportSet::EMPTY), ("b", SupportSet::EMPTY), ("c", second)]);
        assert_eq!(qrels.highest_perspective("q"), Some(1));
        assert_eq!(qrels.highest_perspective("other"), None);
    }

    #[test]
    fn what_silence_means_depends_on_the_file() {
        let qrels = sample();
        let ranked = |absent| qrels.ranked("q", ["b", "x"], 1, absent);
        assert_eq!(ranked(Absent::Unjudged), [Some(SupportSet::EMPTY), None]);
        assert_eq!(ranked(Absent::SupportsNothing), [Some(SupportSet::EMPTY); 2]);
    }

    #[test]
    fn over_all_perspectives_the_highest_grade_stays() {
        let any = sample().any_perspective();
        let judged = any.question("q").unwrap();
        assert_eq!((judged["a"], judged["b"], judged["c"]), (1, 0, 2));
    }

    #[test]
    fn bad_lines_and_repeated_triples_are_reported() {
        let message =
            read("q 0 a 1\nq 129 a 1\nq 1 a x\nq 1 a\nq 1 a 1\nq 2 a 1\nq 1 a 0\n").unwrap_err().to_string();
        assert_eq!(
            message,
            "d.qrels:1: expected a perspective from 1 to 128 (column 2), found `0`\n\
         d.qrels:2: expected a perspective from 1 to 128 (column 2), found `129`\n\
         d.qrels:3: expected a whole number as grade (column 4), found `x`\n\
         d.qrels:4: expected 4 columns (qid perspective docid rel), found 3 columns in `q 1 a`\n\
         d.qrels:7: expected one line for each passage of question `q`, perspective 1, found `a` again (first on line 5)"
        );
    }

    #[test]
    fn words_are_labels_too() {
        assert_eq!(read("q 1 a yes\nq 2 a false\n").unwrap(), read("q 1 a 1\nq 2 a 0\n").unwrap());
        assert!(read("q 1 a 9999999999").unwrap_err().to_string().contains("a grade of 32 bits"));
    }

    #[test]
    fn a_perspective_beyond_the_last_cannot_be_put_in() {
        assert!(DiversityQrels::default().insert("q", "a", 128, 1).is_err());
    }
}
