//! One question of a set under several lanes: what the comparison of lanes over a set is made of.

use serde_json::{Map, Value};

use super::{Book, Depth, Figures, Lists, Plan, Ranked, Setup, SetupError, answer};
use crate::measure::compare::{jaccard, rbo};
use crate::measure::{PerspectiveCount, SupportSet, mrecall::mrecall, prec::prec};
use crate::question::Question;
use crate::work::Stop;

/// How much RBO looks at the top.
const P: f64 = 0.9;

/// A question's outcome, one entry a lane.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// Its figures; none where a lane failed.
    pub figures: Vec<Option<Figures>>,
    /// What each of the first k supports.
    pub supports: Vec<Vec<Option<SupportSet>>>,
    /// The first k themselves, by id.
    pub tops: Vec<Vec<String>>,
    /// What else is known of those of the first k that the corpus holds.
    pub metadata: Vec<Vec<Map<String, Value>>>,
    /// How many perspectives the question has.
    pub perspectives: usize,
    /// Which of two is the supporting one.
    pub supports_first: usize,
}

impl Compared {
    /// What several lanes' lists come to; none for a lane that failed.
    pub fn of(question: &Question, k: usize, lists: &[Option<&[Ranked]>], book: &Book) -> Self {
        let tops: Vec<&[Ranked]> =
            lists.iter().map(|list| list.map_or(&[][..], |list| &list[..list.len().min(k)])).collect();
        let each = |top: &&[Ranked]| top.iter().map(|ranked| ranked.passage.id.clone()).collect();
        let held = |ranked: &&Ranked| ranked.at.as_outside().is_none();
        let known =
            |top: &&[Ranked]| top.iter().filter(held).map(|ranked| ranked.passage.metadata.clone()).collect();
        Compared {
            figures: lists.iter().map(|list| Figures::of((*list)?, book, question, k)).collect(),
            supports: tops.iter().map(|top| book.supports(top)).collect(),
            tops: tops.iter().map(each).collect(),
            metadata: tops.iter().map(known).collect(),
            perspectives: question.perspectives.len(),
            supports_first: question.supports.unwrap_or(0).min(1),
        }
    }

    /// MRecall and Prec of a lane's first `k`, at most as many as were judged.
    pub fn at(&self, lane: usize, k: usize) -> Option<(f64, f64)> {
        let m = PerspectiveCount::new(self.perspectives).ok()?;
        self.figures[lane].as_ref()?;
        let supports = &self.supports[lane];
        Some((mrecall(supports, m, k).value, prec(supports, m, k).value))
    }

    /// Jaccard and RBO of two lanes' first k; none where both are empty.
    pub fn overlap(&self, one: usize, other: usize) -> Option<(f64, f64)> {
        let ids = |lane: usize| self.tops[lane].iter().map(String::as_str).collect::<Vec<_>>();
        let (one, other) = (ids(one), ids(other));
        Some((jaccard(&one, &other, one.len().max(other.len()))?, rbo(&one, &other, P)?))
    }

    /// How far the lanes' Prec lies apart, and whether their MRecall does.
    pub fn disagreement(&self) -> f64 {
        let spread = |value: &dyn Fn(&Figures) -> f64| {
            let values = self.figures.iter().flatten().map(value);
            let (low, high) = values.fold((f64::MAX, f64::MIN), |(l, h), x| (l.min(x), h.max(x)));
            (high - low).max(0.0)
        };
        spread(&|figures| figures.mrecall) + spread(&|figures| figures.prec)
    }
}

/// Puts one question to all lanes.
///
/// # Errors
/// The detector could not be loaded.
pub fn compare(setup: &Setup, question: &Question, plan: &Plan, stop: &Stop) -> Result<Compared, SetupError> {
    let plan = Plan { question: question.clone(), ..plan.clone() };
    let answered = answer(setup, &plan, Depth::Top, &mut Lists::default(), stop)?;
    let lists: Vec<Option<&[Ranked]>> =
        answered.lanes.iter().map(|(list, _)| list.as_ref().ok().map(|list| &list[..])).collect();
    Ok(Compared::of(question, plan.k, &lists, &answered.book))
}
