//! Judgements per perspective: qrels whose second column is the perspective, from 1.
//!
//! How many perspectives a question has is *not* read from here: a side without any judged passage would
//! vanish from the denominators. Take it from the question.

use std::collections::{BTreeMap, HashMap};
use std::io::BufRead;

use super::super::support::{MAX_PERSPECTIVES, SupportSet};
use super::lines::{Problems, TrecError, each_line, quoted};
use super::qrels::Qrels;
use super::run::columns_found;

/// What it means that a label file says nothing about a passage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absent {
    /// The file is `complete`: it supports nothing.
    SupportsNothing,
    /// The file holds `positives`: nobody knows.
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
    /// Ids of the questions that have a judgement, in order.
    pub fn questions(&self) -> impl Iterator<Item = &str> {
        self.questions.keys().map(String::as_str)
    }

    /// Every judgement of one question: passage, perspective from 0, grade; in order.
    pub fn judgements(&self, question: &str) -> impl Iterator<Item = (&str, usize, i32)> {
        self.questions.get(question).into_iter().flatten().flat_map(|(passage, grades)| {
            grades.iter().map(|(&perspective, &grade)| (passage.as_str(), perspective, grade))
        })
    }

    /// The highest perspective judged, from 0: a lower bound of m, never m itself.
    pub fn highest_perspective(&self, question: &str) -> Option<usize> {
        self.judgements(question).map(|(_, perspective, _)| perspective).max()
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

    /// Judgements for `NAME.qrels`: a passage's highest grade over the perspectives.
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

    /// Sets one grade, the perspective counted from 0, and gives back the one it replaces.
    ///
    /// # Errors
    /// For a perspective no [`SupportSet`] can hold.
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
        let columns: Vec<&str> = line.split_whitespace().collect();
        let [question, perspective, passage, grade] = columns[..] else {
            let found = format!("{} in {}", columns_found(columns.len()), quoted(line));
            problems.report(number, "4 columns (qid perspective docid rel)", found);
            return;
        };
        let from_one: Option<usize> = perspective.parse().ok();
        let Some(from_one) = from_one.filter(|p| (1..=MAX_PERSPECTIVES).contains(p)) else {
            let expected = format!("a perspective from 1 to {MAX_PERSPECTIVES} (column 2)");
            problems.report(number, expected, quoted(perspective));
            return;
        };
        let Ok(grade) = grade.parse() else {
            problems.report(number, "a whole number as grade (column 4)", quoted(grade));
            return;
        };
        let triple = (question.to_owned(), passage.to_owned(), from_one);
        let first = *lines.entry(triple).or_insert(number);
        if first != number {
            let what = format!("passage of question {}, perspective {from_one}", quoted(question));
            problems.report_repeated(number, &what, passage, first);
        } else if let Err(error) = qrels.insert(question, passage, from_one - 1, grade) {
            problems.report(number, "a perspective", error.to_string());
        }
    })?;
    problems.finish(qrels)
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn bad_lines_and_repeated_triples_are_told() {
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
    fn a_perspective_beyond_the_last_cannot_be_put_in() {
        assert!(DiversityQrels::default().insert("q", "a", 128, 1).is_err());
    }
}
