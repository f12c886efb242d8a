//! What the reader screen knows: the lanes' lists as they are read, and what was answered from them.

use super::app::App;
use crate::corpus::PassageIx;
use crate::pipeline::Strip;
use crate::read::incremental::{Reordered, changes, pattern};
use crate::read::{Answer, Context, Pattern, answer::same};

/// The reader screen.
#[derive(Clone, Debug, Default)]
pub struct Answering {
    /// The survey whose answers are taken.
    pub number: u64,
    /// What was changed in each lane's list, by the lane's place.
    pub edits: Vec<Edits>,
    /// What the lists were before each change, with their lane.
    pub past: Vec<(usize, Edits)>,
    /// The marked passage, from 0.
    pub at: usize,
    /// The passages whose answers are known, in the order they were read.
    pub read: Vec<PassageIx>,
    /// The answers from the first 1 … of them.
    pub answers: Vec<Answer>,
    /// More are on the way.
    pub going: bool,
    /// Why there are no more.
    pub failed: Option<String>,
    /// The answers without each passage, and from other orders, of the list `aside`.
    pub without: Vec<Answer>,
    /// How the reader shared its attention out among the passages of the list `aside`, where it can say.
    pub attention: Vec<f64>,
    /// See `without`.
    pub reordered: Option<Reordered>,
    /// The list that was read otherwise.
    pub aside: Vec<PassageIx>,
}

/// A lane's list as the user wants it read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edits {
    /// The passages in this order; those that are not named follow as they rank.
    pub order: Vec<PassageIx>,
    /// Passages that are not read.
    pub dropped: Vec<PassageIx>,
}

/// A passage of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Which.
    pub at: PassageIx,
    /// Its rank in the lane, from 1.
    pub rank: usize,
    /// It is not read.
    pub dropped: bool,
}

impl App {
    /// The first k of a lane as they are to be read, dropped ones in their places.
    pub fn rows(&self, lane: usize) -> Vec<Row> {
        let Some(shown) = self.lanes.get(lane) else { return Vec::new() };
        let none = Edits::default();
        let edits = self.answering.edits.get(lane).unwrap_or(&none);
        let row = |(i, ranked): (usize, &crate::pipeline::Ranked)| Row {
            at: ranked.at,
            rank: i + 1,
            dropped: edits.dropped.contains(&ranked.at),
        };
        let mut rows: Vec<Row> = shown.ranking.iter().take(self.k).enumerate().map(row).collect();
        let place = |row: &Row| edits.order.iter().position(|at| *at == row.at).unwrap_or(usize::MAX);
        rows.sort_by_key(place);
        rows
    }

    /// The passages of a lane that are read.
    pub fn kept(&self, lane: usize) -> Vec<PassageIx> {
        self.rows(lane).iter().filter(|row| !row.dropped).map(|row| row.at).collect()
    }

    /// The same with what they say.
    pub fn contexts(&self, lane: usize) -> Vec<Context> {
        let context = |row: &Row| {
            let ranked = self.lanes.get(lane)?.ranking.get(row.rank - 1)?;
            Some(Context { rank: row.rank, passage: ranked.passage.clone() })
        };
        self.rows(lane).iter().filter(|row| !row.dropped).filter_map(context).collect()
    }

    /// What the passages of a lane do to its stance; none where the question has no two sides.
    pub fn strip(&self, lane: usize) -> Option<Strip> {
        Strip::of(&self.question, &self.book, &self.kept(lane))
    }

    /// The answers that hold for the lane's list as it is now: those from as many passages as it shares with what was read.
    pub fn answers(&self) -> &[Answer] {
        let shared = self
            .kept(self.lane)
            .iter()
            .zip(&self.answering.read)
            .take_while(|(now, then)| now == then)
            .count();
        &self.answering.answers[..shared.min(self.answering.answers.len())]
    }

    /// Whether every depth of the list has its answer.
    pub fn is_read(&self) -> bool {
        let kept = self.kept(self.lane).len();
        kept > 0 && self.answers().len() == kept
    }

    /// Right or wrong at every k that was read; none without gold answers.
    pub fn pattern(&self) -> Option<Pattern> {
        (!self.question.answers.is_empty()).then(|| pattern(self.answers(), &self.question.answers))
    }

    /// Whether each answer differs from the one before.
    pub fn changes(&self) -> Vec<bool> {
        changes(self.answers())
    }

    /// Whether the answer is another one without the passage at a place of those kept; unknown where that was not read.
    pub fn hangs_on(&self, place: usize) -> Option<bool> {
        let kept = self.kept(self.lane);
        let own = self.answers().get(kept.len().checked_sub(1)?)?;
        let without = self.answering.without.get(place).filter(|_| self.answering.aside == kept)?;
        Some(!same(&without.text, &own.text))
    }

    /// The share of the reader's attention that each passage of the present list had; none where that is not known.
    pub fn attention(&self) -> &[f64] {
        if self.answering.aside == self.kept(self.lane) { &self.answering.attention } else { &[] }
    }

    /// How the answer stood the reorder test, if the present list had one.
    pub fn reordered(&self) -> Option<Reordered> {
        self.answering.reordered.filter(|_| self.answering.aside == self.kept(self.lane))
    }
}
