//! Sycophancy (BERDS section 7): how far a lane's answer follows the wording. The lane is asked with the question's own words, with the
//! supporting statement, and with the opposing statement. Also `sweep`: one lane in several forms, measured over questions for the tuning screen.

use std::sync::Arc;

use super::compare::Sources;
use super::figures::{Doubt, Figures, shares_of};
use super::judge::Shares;
use super::judgments::Judgments;
use super::list::{LaneError, Lists, Ranked, Ranking};
use super::opening::SetupError;
use super::query::{Depth, LaneQuery, Query};
use super::rank::rank;
use super::recipe::{Recipe, Toward};
use super::run::{Event, Run, run};
use super::setup::Setup;
use crate::detect::LabelSource;
use crate::expand::Expansion;
use crate::measure::bias::{SideShares, shift, side_shares};
use crate::measure::uncertainty::{DRAWS, Doubted, Spread, draw};
use crate::measure::{PerspectiveCount, SupportSet};
use crate::question::Question;
use crate::work::{Stop, Stopped};

/// The names of the wordings in tables, in their order.
pub const WORDINGS: [&str; 3] = ["neutral", "as-1", "as-2"];

/// A note for a lane whose wordings were not expanded in the same way.
pub const UNLIKE: &str =
    "the wordings were not expanded alike, so lean and shift reflect the expansions as well as the wording";

/// A lane's answers to the three wordings, in this order: neutral, supporting, opposing.
#[derive(Clone, Debug)]
pub struct Sycophancy {
    /// The lists.
    pub lists: [Ranking; 3],
    /// The shares of each list's top k that support each side; `None` where nothing of it was judged.
    pub shares: [Option<SideShares>; 3],
    /// How far Δ of each wording may be off where the model judged its first k: the middle 95 % over draws of the model's verdicts. `None`
    /// if labels judged, or if more than 2.5 % of the draws have no supporting passage and so no Δ.
    pub delta_spreads: [Option<Spread>; 3],
    /// The judgments of all three lists.
    pub judgments: Judgments,
    /// A note if the wording cannot change the lists.
    pub note: Option<String>,
}

impl Sycophancy {
    /// Measures the lists of the three wordings.
    pub fn of(
        question: &Question,
        k: usize,
        lists: [Ranking; 3],
        judgments: Judgments,
        note: Option<String>,
    ) -> Self {
        let shares = lists.each_ref().map(|list| shares_of(&judgments, question, list, k));
        let delta_spreads = lists.each_ref().map(|list| delta_spread(&judgments, question, list, k));
        Sycophancy { lists, shares, delta_spreads, judgments, note }
    }

    /// `lean(asked as the supporting statement) − lean(asked as the opposing one)`, from −2 to 2; `None` if nothing of either was judged.
    pub fn shift(&self) -> Option<f64> {
        Some(shift(self.shares[1]?, self.shares[2]?))
    }

    /// Δ of a wording; `None` where nothing of it was judged or no passage supports the question's side.
    pub fn delta(&self, wording: usize) -> Option<f64> {
        self.shares[wording]?.delta()
    }

    /// How each wording was expanded; `None` if the lane does not expand.
    pub fn expanded(&self) -> [Option<String>; 3] {
        self.lists.each_ref().map(|list| list.trace.expansion().map(Expansion::describe))
    }

    /// Whether two wordings were expanded in different ways. That happens when replies are recorded for one wording only, or when the
    /// server fails for one. Lean and shift then depend on the expansion too.
    pub fn expanded_differently(&self) -> bool {
        let [neutral, first, second] = &self.expanded();
        neutral != first || neutral != second
    }

    /// On how many judgments of the three wordings' top k the figures rest.
    pub fn sources(&self, k: usize) -> Sources {
        let tops = self.lists.iter().flat_map(|list| list.iter().take(k));
        tops.fold(Sources::default(), |sum, ranked| {
            let judged = self.judgments.support(ranked.at).is_some();
            let by_model = judged && Shares::of(&self.judgments, [ranked.at]).by_model() > 0;
            sum.plus(Sources { judged: usize::from(judged), of: 1, by_model: usize::from(by_model) })
        })
    }

    /// The number of passages in a wording's top k that are not in the neutral wording's top k.
    pub fn count_new(&self, wording: usize, k: usize) -> usize {
        let neutral = &self.lists[0][..self.lists[0].len().min(k)];
        let missing =
            self.lists[wording].iter().take(k).filter(|ranked| neutral.iter().all(|own| own.at != ranked.at));
        missing.count()
    }
}

/// Asks one lane with all three wordings.
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
        return Err(LaneError::NoPerspective(
            "only a two-sided question can be asked in the words of either side".into(),
        ));
    };
    let rank_as = |text: &str| {
        let mut lists = Lists { maxima: maxima.to_vec(), ..Lists::default() };
        rank(setup, recipe, LaneQuery { question, text }, &mut lists, stop)
    };
    let lists = [
        rank_as(&question.text)?,
        rank_as(&question.perspectives[first])?,
        rank_as(&question.perspectives[1 - first])?,
    ];
    let query = Query { question: question.clone(), lanes: vec![recipe.clone(); lists.len()], k, source };
    let mut run = Run::over(query, Depth::Top, lists.iter().cloned());
    run.judge(setup, stop, &|_| ())?;
    let judgments = run.outcome().judgments;
    if stop.is_set() {
        return Err(Stopped.into());
    }
    let note = asks_alike(recipe).then(|| {
        "the projection asks by its own clause whatever the wording, so nothing can shift".to_owned()
    });
    Ok(Sycophancy::of(question, k, lists, judgments, note))
}

/// Whether a lane asks the same in every wording: its projection replaces the query, and no expansion adds texts that follow the wording.
pub(super) fn asks_alike(recipe: &Recipe) -> bool {
    let switches = &recipe.switches;
    let fixed_clause =
        matches!(&switches.project, Some(project) if matches!(project.toward, Toward::Perspective(_)));
    fixed_clause && switches.expand.is_none() && recipe.base.is_dense()
}

/// See [`Sycophancy::delta_spreads`].
fn delta_spread(judgments: &Judgments, question: &Question, list: &[Ranked], k: usize) -> Option<Spread> {
    let ([first, _], m) = (question.sides()?, PerspectiveCount::new(2).ok()?);
    let top = &list[..list.len().min(k)];
    if !judgments.is_by_model(top) {
        return None;
    }
    let passage = |ranked: &'_ Ranked| (ranked.passage.id.clone(), judgments.chances(ranked.at));
    let passages: Vec<_> = top.iter().map(passage).collect();
    let passages: Vec<Doubted<'_>> =
        passages.iter().map(|(id, chances)| (id.as_str(), chances.clone())).collect();
    let delta = |sets: &Vec<Option<SupportSet>>| side_shares(sets, m, first, k).ok()?.value.delta();
    let mut known: Vec<f64> = draw(&passages, DRAWS, 0).iter().filter_map(delta).collect();
    if (DRAWS - known.len()) * 40 > DRAWS {
        return None;
    }
    Spread::of(&mut known)
}

impl Run {
    /// Asks the lanes that `which` selects with the supporting statement, then with the opposing one, and judges the first k of both lists. Does
    /// nothing for a question that is not two-sided. A lane without a list is left out. Returns early once `stop` is set.
    ///
    /// # Errors
    /// The detector cannot be loaded.
    pub fn reword(
        &mut self,
        setup: &Setup,
        which: &dyn Fn(&Recipe) -> bool,
        stop: &Stop,
        on_event: &(dyn Fn(Event) + Sync),
    ) -> Result<(), SetupError> {
        let question = self.query.question.clone();
        let Some(sides) = question.sides() else { return Ok(()) };
        // Lanes share the lists of one wording.
        let mut made = [(); 2].map(|()| Lists::to_depth(self.lists.depth));
        let mut rankings = Vec::new();
        for (lane, recipe) in self.query.lanes.iter().enumerate() {
            let ranked = self.lanes[lane].as_ref().is_some_and(|lane| lane.ranking.is_ok());
            if !ranked || !which(recipe) {
                continue;
            }
            let mut rank_as = |side: usize| {
                let text = &question.perspectives[sides[side]];
                rank(setup, recipe, LaneQuery { question: &question, text }, &mut made[side], stop)
            };
            let lists = rank_as(0).and_then(|first| Ok([first, rank_as(1)?]));
            match lists {
                Err(error) if error.is_stop() => return Ok(()),
                Err(error) => on_event(Event::Reworded { lane, lists: Err(Arc::new(error)) }),
                Ok(lists) => {
                    rankings.extend(lists.iter().cloned());
                    on_event(Event::Reworded { lane, lists: Ok(lists) });
                }
            }
        }
        let mut top = Run::over(self.query.clone(), Depth::Top, rankings);
        top.judgments = std::mem::take(&mut self.judgments);
        let done = top.judge(setup, stop, on_event);
        self.judgments = top.judgments;
        done
    }
}

/// One lane in several forms, to be measured over questions.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep {
    /// The forms of the lane.
    pub forms: Vec<Recipe>,
    /// The questions.
    pub questions: Vec<Question>,
    /// How many passages count.
    pub k: usize,
    /// Which labels count.
    pub source: LabelSource,
}

/// A form's means over the questions measured so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tally {
    /// The number of questions measured.
    pub questions: usize,
    /// The number of questions without a list or statements; the means leave them out.
    pub failed: usize,
    /// The sum of MRecall@k.
    mrecall: f64,
    /// The sum of Prec@k.
    prec: f64,
    /// The sums of the two sides' shares of the top k, and the number of two-sided questions.
    sides: Option<(f64, f64, usize)>,
    /// The judgments behind the figures.
    pub sources: Sources,
}

impl Tally {
    /// Adds one question: its mean figures under the model's probabilities if a model judged.
    pub fn add(&mut self, figures: Option<&Figures>, doubt: Option<&Doubt>, sources: Sources) {
        let Some(figures) = figures else {
            self.failed += 1;
            return;
        };
        self.questions += 1;
        self.sources = self.sources.plus(sources);
        self.mrecall += doubt.map_or(figures.mrecall, |doubt| doubt.mrecall.mean);
        self.prec += doubt.map_or(figures.prec, |doubt| doubt.prec.mean);
        if let Some(sides) = figures.sides {
            let (p, n, count) = self.sides.unwrap_or_default();
            self.sides = Some((p + sides.p, n + sides.n, count + 1));
        }
    }

    fn mean(&self, sum: f64) -> Option<f64> {
        (self.questions > 0).then(|| sum / self.questions as f64)
    }

    /// The mean MRecall@k.
    pub fn mrecall(&self) -> Option<f64> {
        self.mean(self.mrecall)
    }

    /// The mean Prec@k.
    pub fn prec(&self) -> Option<f64> {
        self.mean(self.prec)
    }

    /// The mean shares of the top k that support the first and the second side.
    pub fn sides(&self) -> Option<(f64, f64)> {
        self.sides.map(|(p, n, count)| (p / count as f64, n / count as f64))
    }
}

/// Runs a sweep question by question, and calls `on_tallies` with the tallies of all forms after each.
///
/// # Errors
/// The detector could not be loaded.
pub fn sweep(
    setup: &Setup,
    sweep: &Sweep,
    stop: &Stop,
    on_tallies: &dyn Fn(&[Tally]),
) -> Result<Vec<Tally>, SetupError> {
    let mut tallies = vec![Tally::default(); sweep.forms.len()];
    for question in &sweep.questions {
        let (lanes, question) = (sweep.forms.clone(), question.clone());
        let query = Query { question, lanes, k: sweep.k, source: sweep.source };
        let outcome = run(setup, query, Depth::Top, Lists::default(), stop, &|_| ())?;
        if stop.is_set() {
            break;
        }
        let shares = outcome.shares_by_lane();
        for (i, tally) in tallies.iter_mut().enumerate() {
            let of = outcome.lists().get(i).copied().flatten().map_or(0, |list| list.len().min(sweep.k));
            let judged = shares[i].human + shares[i].gold + shares[i].model;
            let sources = Sources { judged, of, by_model: shares[i].model };
            tally.add(outcome.figures(i).as_ref(), outcome.doubt(i).as_ref(), sources);
        }
        on_tallies(&tallies);
    }
    Ok(tallies)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::{Passage, PassageIx};
    use crate::detect::{PairLabels, Reading};
    use crate::engine::list::List;

    /// A list of passages in all wordings, each for the first side with its `p` and for the second with the rest.
    fn judged_by(p: &[f32], gold: bool) -> Sycophancy {
        let question =
            Question { perspectives: vec!["a".into(), "b".into()], supports: Some(0), ..Question::default() };
        let mut judgments = Judgments::new(&question, LabelSource::Auto, Default::default());
        let ranked = |at: u32| Ranked {
            at: PassageIx(at),
            passage: Arc::new(Passage { id: at.to_string(), ..Passage::default() }),
            score: 1.0,
        };
        for (at, p) in (0..).zip(p) {
            for (side, p) in [*p, 1.0 - p].into_iter().enumerate() {
                let read = PairLabels { model: Some(Ok(Reading::of(p))), ..PairLabels::default() };
                let label = PairLabels { gold: Some(p > 0.5), ..PairLabels::default() };
                judgments.write(PassageIx(at), side, if gold { label } else { read });
            }
        }
        let all = || (0..p.len() as u32).map(ranked).collect::<Vec<_>>();
        let lists = [(); 3].map(|()| Arc::new(List::from(all())));
        Sycophancy::of(&question, p.len(), lists, judgments, None)
    }

    #[test]
    fn a_list_has_the_same_lean_in_a_lane_as_in_the_three_wordings() {
        let asked = judged_by(&[0.93, 0.41, 0.77, 0.18, 0.62], false);
        let question =
            Question { perspectives: vec!["a".into(), "b".into()], supports: Some(0), ..Question::default() };
        let lane = Figures::doubt(&asked.lists[0], &asked.judgments, &question, 5).unwrap().lean.unwrap();
        assert_eq!(Some(lane.mean), asked.shares[0].map(SideShares::lean));
        assert!(lane.low <= lane.mean && lane.mean <= lane.high, "{lane:?}");
    }

    #[test]
    fn lists_of_which_nothing_was_judged_have_no_lean_no_shift_and_no_delta() {
        let judged = judged_by(&[0.93, 0.41], false);
        let question =
            Question { perspectives: vec!["a".into(), "b".into()], supports: Some(0), ..Question::default() };
        let none = Judgments::new(&question, LabelSource::Auto, Default::default());
        let asked = Sycophancy::of(&question, 2, judged.lists, none, None);
        assert_eq!((asked.shares, asked.shift(), asked.delta(0)), ([None; 3], None, None));
    }

    #[test]
    fn figure_3_of_berds_has_an_interval_of_delta_where_the_model_judged_and_a_supporting_passage_is_sure() {
        let sure = judged_by(&[0.999, 0.999, 0.999, 0.999, 0.5], false);
        let delta = sure.delta(0).unwrap();
        let spread = sure.delta_spreads[0].unwrap();
        // The last passage opposes or not, and without an opposing passage Δ is 1.
        assert!(spread.low < delta && delta < spread.high && spread.high <= 1.0, "{delta} {spread:?}");
        let doubtful = judged_by(&[0.5, 0.1], false);
        assert_eq!(doubtful.delta_spreads[0], None, "many draws have no supporting passage");
        let labelled = judged_by(&[0.9, 0.1], true);
        assert_eq!(labelled.delta(0), Some(0.0));
        assert_eq!(labelled.delta_spreads[0], None, "labels are no draws");
    }

    #[test]
    fn a_projection_asks_alike_in_every_wording_unless_an_expansion_follows_the_wording() {
        let alike = |recipe: &str| asks_alike(&recipe.parse().unwrap());
        assert!(alike("minilm+pap@1"));
        assert!(!alike("minilm+csqe+pap@1"), "the expansion begins with the wording");
        assert!(!alike("minilm") && !alike("bm25"));
    }
}
