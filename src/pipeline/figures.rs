//! The measures of one lane on one question, as the screen and the commands show them.

use serde_json::{Map, Value, json};

use super::{Book, Ranked};
use crate::measure::lean::{SideShares, side_shares};
use crate::measure::mrecall::mrecall;
use crate::measure::prec::prec;
use crate::measure::uncertainty::{DRAWS, Spread, spread};
use crate::measure::{PerspectiveCount, SupportSet};
use crate::question::Question;

/// Where a perspective first appears in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstRank {
    /// At this rank, all before it being judged.
    At(usize),
    /// Not within the first so many, and no more are judged yet.
    Below(usize),
}

/// What a lane's top k is worth.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// How many passages count.
    pub k: usize,
    /// How many of them have a verdict on every perspective.
    pub judged: usize,
    /// How many the lane returned, at most k.
    pub returned: usize,
    /// MRecall@k.
    pub mrecall: f64,
    /// Prec@k.
    pub prec: f64,
    /// Perspectives covered by the top k.
    pub covered: SupportSet,
    /// Passages of the top k that support each perspective.
    pub supporting: Vec<usize>,
    /// Judged passages of the top k that support none.
    pub none: usize,
    /// First rank of each perspective.
    pub first: Vec<FirstRank>,
    /// Shares of the two sides, for a two-sided question.
    pub sides: Option<SideShares>,
}

/// What figures of model verdicts would be if each verdict were drawn with its own probability.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Doubt {
    /// MRecall@k; its mean is the chance that the sides are covered.
    pub mrecall: Spread,
    /// Prec@k.
    pub prec: Spread,
    /// The lean, for a two-sided question.
    pub lean: Option<Spread>,
}

impl Figures {
    /// Measures a list, or says nothing where the question has no perspectives.
    pub fn of(ranking: &[Ranked], book: &Book, question: &Question, k: usize) -> Option<Self> {
        let m = PerspectiveCount::new(book.perspectives).ok()?;
        let supports = book.supports(ranking);
        let top = &supports[..supports.len().min(k)];
        let judged = supports.iter().take_while(|set| set.is_some()).count();
        let first = (0..m.get()).map(|perspective| {
            let at =
                supports[..judged].iter().position(|set| set.is_some_and(|set| set.contains(perspective)));
            at.map_or(FirstRank::Below(judged), |i| FirstRank::At(i + 1))
        });
        Some(Figures {
            k,
            judged: top.iter().flatten().count(),
            returned: top.len(),
            mrecall: mrecall(&supports, m, k).value,
            prec: prec(&supports, m, k).value,
            covered: top.iter().flatten().fold(SupportSet::EMPTY, |all, set| all.union(*set)),
            supporting: (0..m.get())
                .map(|i| top.iter().flatten().filter(|set| set.contains(i)).count())
                .collect(),
            none: top.iter().flatten().filter(|set| set.is_empty()).count(),
            first: first.collect(),
            sides: question
                .supports
                .and_then(|i| side_shares(&supports, m, i, k).ok())
                .map(|shares| shares.value),
        })
    }

    /// The doubt that the detector leaves in MRecall, Prec and lean of a list's top k; none where labels alone count.
    pub fn doubt(ranking: &[Ranked], book: &Book, question: &Question, k: usize) -> Option<Doubt> {
        let m = PerspectiveCount::new(book.perspectives).ok()?;
        let top = &ranking[..ranking.len().min(k)];
        let by_model = |ranked: &Ranked| {
            (0..book.perspectives).any(|i| book.verdict(ranked.at, i).is_some_and(|v| v.p.is_some()))
        };
        if !top.iter().any(by_model) {
            return None;
        }
        let rows: Vec<Option<Vec<f64>>> = top.iter().map(|ranked| book.probabilities(ranked.at)).collect();
        let drawn = |measure: &dyn Fn(&[Option<SupportSet>]) -> f64| spread(&rows, DRAWS, 0, measure);
        let lean = question.supports.and_then(|first| {
            drawn(&|set| side_shares(set, m, first, k).map_or(0.0, |shares| shares.value.lean()))
        });
        Some(Doubt {
            mrecall: drawn(&|set| mrecall(set, m, k).value)?,
            prec: drawn(&|set| prec(set, m, k).value)?,
            lean,
        })
    }

    /// Whether every returned passage of the top k has its verdicts.
    pub fn complete(&self) -> bool {
        self.judged == self.returned
    }

    /// Whether there is anything to measure by: with passages but no verdict, a zero would be no finding.
    pub fn known(&self) -> bool {
        self.judged > 0 || self.returned == 0
    }

    /// A measure in words, or a dash while nothing is known.
    pub fn shown(&self, text: impl FnOnce() -> String) -> String {
        if self.known() { text() } else { "–".into() }
    }

    /// The measures by name, as `search --format json` prints them.
    pub fn by_name(&self) -> Map<String, Value> {
        let k = self.k;
        let mut all = Map::new();
        let shown = |value: f64| self.known().then_some(value);
        all.insert(format!("MRecall@{k}"), json!(shown(self.mrecall)));
        all.insert(format!("Prec@{k}"), json!(shown(self.prec)));
        if let Some(sides) = self.sides {
            all.insert(format!("Lean@{k}"), json!(shown(sides.lean())));
        }
        all
    }
}
