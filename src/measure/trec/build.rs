//! A run while it is read: questions by id, repeated passages, and no more of each list than is wanted.

use std::cmp::Ordering;
use std::collections::HashMap;

use super::lines::{Problems, quoted};
use super::run::{RankedPassage, RankedQuestion, Run, RunOrder};

/// A run being read, with what is needed only until its order is settled.
pub(super) struct RunBuilder {
    run: Run,
    order: RunOrder,
    depth: usize,
    /// The line of every passage held, by question.
    seen: Vec<HashMap<String, usize>>,
}

impl RunBuilder {
    /// A run of which the first `depth` passages of each question are kept.
    pub fn new(order: RunOrder, depth: usize) -> Self {
        RunBuilder { run: Run::default(), order, depth, seen: Vec::new() }
    }

    /// The first tag names the run.
    pub fn tag(&mut self, tag: &str) {
        if self.run.tag.is_empty() {
            self.run.tag = tag.to_owned();
        }
    }

    /// Notes that the file holds texts of passages.
    pub fn has_texts(&mut self) {
        self.run.texts = true;
    }

    /// The place of a question, made at its first mention.
    pub fn place_of(&mut self, question: &str) -> usize {
        if let Some(&place) = self.run.places.get(question) {
            return place;
        }
        let place = self.run.questions.len();
        self.run.places.insert(question.to_owned(), place);
        self.run.questions.push(RankedQuestion { id: question.to_owned(), ..RankedQuestion::default() });
        self.seen.push(HashMap::new());
        place
    }

    /// What the file says of the question itself.
    pub fn describe(&mut self, place: usize, text: &str, perspectives: Vec<String>, supports: Option<usize>) {
        let question = &mut self.run.questions[place];
        (question.text, question.perspectives) = (Some(text.to_owned()), perspectives);
        question.supports = supports;
    }

    /// Adds the next passage of a question.
    pub fn add(&mut self, problems: &mut Problems, place: usize, passage: RankedPassage) {
        if let Some(&first) = self.seen[place].get(&passage.id) {
            let what = format!("passage of question {}", quoted(&self.run.questions[place].id));
            problems.report_repeated(passage.line, &what, &passage.id, first);
            return;
        }
        self.seen[place].insert(passage.id.clone(), passage.line);
        self.run.questions[place].passages.push(passage);
        if self.run.questions[place].passages.len() >= self.depth.saturating_mul(2) {
            self.settle(place);
        }
    }

    /// Puts a question's passages in order and drops those below the depth.
    fn settle(&mut self, place: usize) {
        let passages = &mut self.run.questions[place].passages;
        match self.order {
            RunOrder::AsGiven => follow_ranks(passages),
            RunOrder::TrecEval => passages.sort_by(|one, other| {
                // Scores are finite, so they always compare; `total_cmp` would part 0 from −0.
                (other.score as f32)
                    .partial_cmp(&(one.score as f32))
                    .unwrap_or(Ordering::Equal)
                    .then_with(|| other.id.cmp(&one.id))
            }),
        }
        for below in passages.drain(self.depth.min(passages.len())..) {
            self.seen[place].remove(&below.id);
        }
    }

    /// The run, in order.
    pub fn finish(mut self) -> Run {
        for place in 0..self.run.questions.len() {
            self.settle(place);
        }
        self.run.learn_texts();
        self.run
    }
}

/// Stable, so that a column of equal ranks (some tools write only 0) leaves the lines as they are.
fn follow_ranks(passages: &mut [RankedPassage]) {
    if passages.iter().all(|passage| passage.rank.is_some()) {
        passages.sort_by_key(|passage| passage.rank);
    }
}
