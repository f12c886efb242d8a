//! One question of a set under several lanes: what the comparison of lanes over a set is made of.

use super::{Depth, Figures, Lists, Plan, Setup, SetupError, answer};
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
    /// How many perspectives the question has.
    pub perspectives: usize,
    /// Which of two is the supporting one.
    pub supports_first: usize,
}

impl Compared {
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
    let mut compared = Compared {
        figures: (0..plan.lanes.len()).map(|lane| answered.figures(&plan, lane)).collect(),
        supports: Vec::new(),
        tops: Vec::new(),
        perspectives: question.perspectives.len(),
        supports_first: question.supports.unwrap_or(0).min(1),
    };
    for (ranking, _) in &answered.lanes {
        let top = ranking.as_ref().map(|list| &list[..list.len().min(plan.k)]).unwrap_or_default();
        compared.supports.push(answered.book.supports(top));
        compared.tops.push(top.iter().map(|ranked| ranked.passage.id.clone()).collect());
    }
    Ok(compared)
}
