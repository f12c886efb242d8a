//! What needs many lists, and a list that is read.

use crate::annotate::Item;
use crate::pipeline::{Plan, Sweep};
use crate::question::Question;
use crate::read::incremental::Reordered;
use crate::read::{Answer, Context};

/// Something that needs many lists, asked for now and then.
#[derive(Clone, Debug, PartialEq)]
pub enum Survey {
    /// One lane in several forms.
    Sweep(Sweep),
    /// Every lane asked neutrally and as either side.
    Sway(Plan),
    /// Every question of the set put to every lane.
    Compare(Plan),
    /// What the model says of passages that are to be labelled, and of which questions they are.
    Weigh(Vec<Item>, Vec<Question>),
    /// A list read by whatever reads.
    Read(Hearing),
    /// The metadata fields of the corpus, and, if said so, every question of the set put to every lane.
    Bias(Plan, bool),
}

/// A list to be read.
#[derive(Clone, Debug, PartialEq)]
pub struct Hearing {
    /// The question.
    pub question: String,
    /// Its two statements, where a stance is asked for: there are no gold answers to measure by.
    pub sides: Option<[String; 2]>,
    /// The passages in their order.
    pub passages: Vec<Context>,
    /// How they are to be read.
    pub want: Want,
}

/// How a list is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// At every depth beyond this one.
    EachK(usize),
    /// Without each passage.
    Without,
    /// In shuffled orders.
    Reordered,
}

/// What came of reading.
#[derive(Clone, Debug, PartialEq)]
pub enum Heard {
    /// The answer from the first so many.
    Answer(usize, Answer),
    /// How the reader shared its attention out among the passages.
    Attention(Vec<f64>),
    /// The answer without the passage at this place, from 0.
    Without(usize, Answer),
    /// How the answer stood the shuffles.
    Reordered(Reordered),
    /// There is no more, with the reason if it was ended early.
    Ended(Option<String>),
}
