//! One lane asked in three wordings: the question's own, its supporting statement, and the opposing one. How far the answer
//! follows the wording is the lane's sycophancy (BERDS section 7).

use super::judgments::Judgments;
use super::list::{LaneError, Lists, Ranking};
use super::query::{Depth, LaneQuery, Query};
use super::rank::rank;
use super::recipe::{Recipe, Toward};
use super::run::Run;
use super::setup::Setup;
use crate::detect::LabelSource;
use crate::expand::Expansion;
use crate::measure::PerspectiveCount;
use crate::measure::bias::{SideShares, shift, side_shares};
use crate::measure::expected::expected;
use crate::question::Question;
use crate::work::{Stop, Stopped};

/// What the wordings are called in tables, in their order.
pub const WORDINGS: [&str; 3] = ["neutral", "as-1", "as-2"];

/// What is to be known of a lane whose wordings were not expanded by the same means.
pub const UNLIKE: &str = "the wordings were not expanded alike: lean and shift are of the expansions too, and not of the wording alone";

/// A lane's answers to the three wordings, in this order: neutral, supporting, opposing.
#[derive(Clone, Debug)]
pub struct Sycophancy {
    /// The lists.
    pub lists: [Ranking; 3],
    /// What of each list's top k supports either side.
    pub shares: [SideShares; 3],
    /// The verdicts on all of them.
    pub judgments: Judgments,
    /// Why the wording cannot matter, where it cannot.
    pub note: Option<String>,
}

impl Sycophancy {
    /// `lean(asked as the supporting statement) − lean(asked as the opposing one)`, from −2 to 2.
    pub fn shift(&self) -> f64 {
        shift(self.shares[1], self.shares[2])
    }

    /// How each wording was expanded, where the lane expands.
    pub fn expanded(&self) -> [Option<String>; 3] {
        self.lists.each_ref().map(|list| list.trace.expansion().map(Expansion::describe))
    }

    /// Whether one wording was expanded otherwise than another: recorded replies are those to one wording, and a server may be
    /// down for one. Lean and shift are then of the expansion too, and not of the wording alone.
    pub fn unlike(&self) -> bool {
        let [neutral, first, second] = &self.expanded();
        neutral != first || neutral != second
    }

    /// How many of a wording's top k the neutral wording does not bring.
    pub fn came(&self, wording: usize, k: usize) -> usize {
        let neutral = &self.lists[0][..self.lists[0].len().min(k)];
        let missing =
            self.lists[wording].iter().take(k).filter(|ranked| neutral.iter().all(|own| own.at != ranked.at));
        missing.count()
    }
}

/// Asks one lane in all three wordings.
///
/// # Errors
/// The question is not two-sided, a list could not be made, or `stop` was set.
pub fn sycophancy(
    setup: &Setup,
    recipe: &Recipe,
    question: &Question,
    (k, source): (usize, LabelSource),
    maxima: &[(Recipe, f32)],
    stop: &Stop,
) -> Result<Sycophancy, LaneError> {
    let (Some(first), [_, _]) = (question.supports, question.perspectives.as_slice()) else {
        return Err(LaneError::NoPerspective("only a question of two sides can be asked as either".into()));
    };
    let ranked = |text: &str| {
        let mut lists = Lists { maxima: maxima.to_vec(), ..Lists::default() };
        rank(setup, recipe, LaneQuery { question, text }, &mut lists, stop)
    };
    let lists = [
        ranked(&question.text)?,
        ranked(&question.perspectives[first])?,
        ranked(&question.perspectives[1 - first])?,
    ];
    let query = Query { question: question.clone(), lanes: vec![recipe.clone(); lists.len()], k, source };
    let mut run = Run::over(query, Depth::Top, lists.iter().cloned());
    run.judge(setup, stop, &|_| ())?;
    let judgments = run.outcome().judgments;
    if stop.is_set() {
        return Err(Stopped.into());
    }
    let sides = |list: &Ranking| {
        let m = PerspectiveCount::new(2).ok()?;
        let top = &list[..list.len().min(k)];
        if !judgments.is_by_model(top) {
            return side_shares(&judgments.supports(list), m, first, k).ok().map(|sides| sides.value);
        }
        // What the model's probabilities expect.
        let chances: Vec<_> = top.iter().map(|ranked| judgments.chances(ranked.at)).collect();
        let mean = |part: fn(SideShares) -> f64| {
            expected(&chances, |set| side_shares(set, m, first, k).ok().map(|sides| part(sides.value)))
        };
        Some(SideShares { p: mean(|sides| sides.p)?, n: mean(|sides| sides.n)? })
    };
    let shares = lists.each_ref().map(|list| sides(list).unwrap_or(SideShares { p: 0.0, n: 0.0 }));
    let lens =
        matches!(&recipe.switches.project, Some(project) if matches!(project.toward, Toward::Perspective(_)));
    let note = (lens && recipe.base.is_dense()).then(|| {
        "the projection asks by its own clause whatever the wording, so nothing can shift".to_owned()
    });
    Ok(Sycophancy { lists, shares, judgments, note })
}
