//! Questions drawn at random to be labelled, so that their labels represent all questions of the set. They must be labelled in the order
//! of the draw.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::question::Question;

/// The draw of a project. The project's questions are in the order of the draw.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// The seed of the draw.
    pub seed: u64,
    /// The number of questions it was drawn from.
    pub of: usize,
    /// A hash of the texts of these questions and their statements.
    pub set: String,
    /// The ids of the drawn questions, in the order of the draw.
    pub draw: Vec<String>,
}

/// Why questions cannot be drawn.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SampleError {
    /// There are fewer questions.
    #[error(
        "--sample {wanted}: expected at most {available}, the number of questions of the set that have statements"
    )]
    TooMany {
        /// The number of questions to draw.
        wanted: usize,
        /// The number of questions in the set.
        available: usize,
    },
    /// Two questions have the same text, by which labels are stored.
    #[error(
        "two questions have the same text: \"{0}\"; leave one of them out, because a label belongs to the text of its question"
    )]
    SameWords(String),
}

/// Refuses questions of which two have the same text.
///
/// # Errors
/// [`SampleError::SameWords`] with the first such text.
pub fn distinct<'a>(questions: impl IntoIterator<Item = &'a Question>) -> Result<(), SampleError> {
    let mut texts = HashSet::new();
    for question in questions {
        if !texts.insert(question.text.as_str()) {
            return Err(SampleError::SameWords(question.text.clone()));
        }
    }
    Ok(())
}

impl Sample {
    /// Draws without replacement. A question's place in the draw depends only on the seed and its text, so a smaller draw is the
    /// beginning of a larger one, and the order of the file does not matter.
    ///
    /// # Errors
    /// See [`SampleError`].
    pub fn draw(
        questions: &[Question],
        count: usize,
        seed: u64,
    ) -> Result<(Self, Vec<Question>), SampleError> {
        if count > questions.len() {
            return Err(SampleError::TooMany { wanted: count, available: questions.len() });
        }
        let mut order: Vec<([u8; 32], &Question)> =
            questions.iter().map(|question| (place(question, seed), question)).collect();
        order.sort_by_key(|(place, _)| *place);
        distinct(questions)?;
        let drawn: Vec<Question> = order.into_iter().take(count).map(|(_, one)| one.clone()).collect();
        let draw = drawn.iter().map(|question| question.id.clone()).collect();
        Ok((Sample { seed, of: questions.len(), set: hash(questions), draw }, drawn))
    }

    /// Whether it was drawn from exactly these questions.
    pub fn is_of(&self, questions: &[Question]) -> bool {
        self.set == hash(questions)
    }
}

fn place(question: &Question, seed: u64) -> [u8; 32] {
    *blake3::Hasher::new().update(&seed.to_le_bytes()).update(question.text.as_bytes()).finalize().as_bytes()
}

fn hash(questions: &[Question]) -> String {
    let mut all: Vec<Vec<&str>> = questions
        .iter()
        .map(|question| {
            std::iter::once(&question.text).chain(&question.perspectives).map(String::as_str).collect()
        })
        .collect();
    all.sort_unstable();
    let mut hasher = blake3::Hasher::new();
    for words in all {
        hasher.update(&(words.len() as u64).to_le_bytes());
        for word in words {
            hasher.update(&(word.len() as u64).to_le_bytes()).update(word.as_bytes());
        }
    }
    hasher.finalize().to_hex()[..32].to_owned()
}

/// How many of a question's passages are labelled for every statement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// The number of labelled passages.
    pub labelled: usize,
    /// The number of all passages.
    pub of: usize,
}

impl Share {
    /// Counts passages; each item says whether a passage is labelled.
    pub fn of(passages: impl IntoIterator<Item = bool>) -> Self {
        passages.into_iter().fold(Share::default(), |share, labelled| Share {
            labelled: share.labelled + usize::from(labelled),
            of: share.of + 1,
        })
    }

    /// The sum of both.
    pub fn and(self, other: Share) -> Self {
        Share { labelled: self.labelled + other.labelled, of: self.of + other.of }
    }

    /// Whether all are labelled.
    pub fn is_whole(self) -> bool {
        self.labelled == self.of
    }
}

/// A question that breaks the order of the draw, by its place in the draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gap {
    /// Some of its passages are labelled, and some are not.
    HalfDone(usize),
    /// The first question has no label, but the second one, later in the draw, has.
    Skipped(usize, usize),
}

/// The number of labelled questions at the beginning of the draw, and the gap after them, if there is one. Only the beginning of a draw is
/// a random sample; questions that somebody chose to label, or to leave out, are not.
pub fn labelled_prefix(draw: &[Share]) -> (usize, Option<Gap>) {
    let whole = draw.iter().take_while(|share| share.is_whole()).count();
    let begun = |place: &usize| draw[*place].labelled > 0;
    let gap = match draw.get(whole) {
        Some(share) if share.labelled > 0 => Some(Gap::HalfDone(whole)),
        _ => (whole..draw.len()).find(begun).map(|later| Gap::Skipped(whole, later)),
    };
    (whole, gap)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn questions(count: usize) -> Vec<Question> {
        let one = |n: usize| Question {
            id: format!("q{n}"),
            text: format!("Should {n} be banned?"),
            perspectives: vec![format!("{n} should be banned."), format!("{n} should not be banned.")],
            supports: Some(0),
            ..Question::default()
        };
        (0..count).map(one).collect()
    }

    #[test]
    fn a_draw_is_fixed_by_its_seed_and_a_smaller_one_is_its_beginning() {
        let mut set = questions(30);
        let (sample, drawn) = Sample::draw(&set, 20, 7).unwrap();
        assert_eq!((sample.of, sample.draw.len(), drawn.len()), (30, 20, 20));
        assert!(drawn.iter().zip(&sample.draw).all(|(question, id)| question.id == *id));
        let mut once = sample.draw.clone();
        once.sort();
        once.dedup();
        assert_eq!(once.len(), 20, "without replacement");
        set.reverse();
        assert_eq!(Sample::draw(&set, 20, 7).unwrap().0, sample, "the order of the file does not matter");
        assert_eq!(Sample::draw(&set, 8, 7).unwrap().0.draw, sample.draw[..8]);
        assert_ne!(Sample::draw(&set, 20, 8).unwrap().0.draw, sample.draw);
        assert_ne!(sample.draw, (0..20).map(|n| format!("q{n}")).collect::<Vec<_>>());
    }

    #[test]
    fn every_question_is_drawn_as_often_as_any_other() {
        let set = questions(10);
        let mut first = [0; 10];
        for seed in 0..2_000 {
            let (sample, _) = Sample::draw(&set, 3, seed).unwrap();
            for id in &sample.draw {
                first[id[1..].parse::<usize>().unwrap()] += 1;
            }
        }
        // 600 each, with a standard deviation of 20.
        assert!(first.iter().all(|count| (510..690).contains(count)), "{first:?}");
    }

    #[test]
    fn more_questions_than_there_are_and_two_of_the_same_text_are_refused() {
        let mut set = questions(3);
        let error = Sample::draw(&set, 4, 0).unwrap_err().to_string();
        assert!(error.contains("--sample 4: expected at most 3"), "{error}");
        set[2].text = set[0].text.clone();
        assert!(Sample::draw(&set, 2, 0).unwrap_err().to_string().contains("have the same text"));
    }

    #[test]
    fn a_draw_knows_the_questions_it_was_drawn_from() {
        let mut set = questions(5);
        let (sample, _) = Sample::draw(&set, 2, 0).unwrap();
        set.reverse();
        assert!(sample.is_of(&set));
        assert!(!sample.is_of(&set[1..]));
        set[0].perspectives[1] = "Another statement.".into();
        assert!(!sample.is_of(&set), "labels belong to the words of a statement");
    }

    #[test]
    fn what_is_labelled_is_the_beginning_of_the_draw_or_the_gap_is_named() {
        let share = |labelled| Share { labelled, of: 5 };
        let prefix = |all: &[usize]| labelled_prefix(&all.iter().map(|n| share(*n)).collect::<Vec<_>>());
        assert_eq!(prefix(&[5, 5, 0, 0]), (2, None));
        assert_eq!(prefix(&[5, 5]), (2, None));
        assert_eq!(prefix(&[0, 0]), (0, None));
        assert_eq!(prefix(&[5, 3, 0]), (1, Some(Gap::HalfDone(1))));
        assert_eq!(prefix(&[5, 0, 5]), (1, Some(Gap::Skipped(1, 2))));
        assert_eq!(prefix(&[5, 0, 0, 1]), (1, Some(Gap::Skipped(1, 3))));
        // A lane that returned nothing has nothing to label.
        assert_eq!(labelled_prefix(&[share(5), Share::default(), share(5), share(0)]), (3, None));
    }
}
