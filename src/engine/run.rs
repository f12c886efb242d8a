//! Runs a query: ranks its lanes, then judges their passages, and reports every step as an [`Event`].
//!
//! Only this file decides when a lane is ranked and which pair is judged next. The stages are functions that can be read alone:
//! [`rank`], [`next_pairs`], [`judge`], [`Figures::of`].

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::figures::{Change, Doubt, Figures, Named, named};
use super::judge::{Judged, Shares, judge, next_pairs};
use super::judgments::Judgments;
use super::list::{LaneError, Lists, Ranked, Ranking};
use super::opening::SetupError;
use super::query::{Depth, LaneQuery, Query};
use super::rank::rank;
use super::recipe::{Recipe, Rerank};
use super::setup::Setup;
use crate::measure::{Measure, SupportSet};
use crate::work::{Stop, Stopped};

/// A step of a run.
#[derive(Clone, Debug)]
pub enum Event {
    /// A lane has its list.
    LaneReady {
        /// Which lane, from 0.
        lane: usize,
        /// The list.
        ranking: Ranking,
        /// How long its query took.
        took: Duration,
    },
    /// A lane has no list.
    LaneFailed {
        /// Which lane, from 0.
        lane: usize,
        /// Why.
        error: Arc<LaneError>,
    },
    /// A lane was asked as the supporting and as the opposing statement.
    Reworded {
        /// Which lane, from 0.
        lane: usize,
        /// Its two lists, or why there are none.
        lists: Result<[Ranking; 2], Arc<LaneError>>,
    },
    /// A pair has a label or a verdict.
    Judged(Judged),
    /// A note about the verdicts, such as what a server charged for them.
    Note(String),
}

/// A lane's list, or why it has none.
#[derive(Clone, Debug)]
pub struct Lane {
    /// The list.
    pub ranking: Result<Ranking, Arc<LaneError>>,
    /// How long its query took, without the time to open index, models and vectors.
    pub took: Duration,
}

/// A query and its results so far. Cloning is cheap: lists are shared.
#[derive(Clone)]
pub struct Run {
    pub(super) query: Query,
    pub(super) depth: Depth,
    pub(super) lists: Lists,
    pub(super) lanes: Vec<Option<Lane>>,
    pub(super) judgments: Judgments,
}

/// The results of a run.
pub struct Outcome {
    /// The query.
    pub query: Query,
    /// One for each lane of the query.
    pub lanes: Vec<Lane>,
    /// All labels and verdicts.
    pub judgments: Judgments,
}

/// A lane with nothing switched on, for comparison with the lane itself.
#[derive(Clone, Debug)]
pub struct Plain {
    /// Its list.
    pub ranking: Ranking,
    /// How the switches changed the measures; `None` unless the top k of both lists are judged.
    pub change: Option<Change>,
    /// Its values of the measures that were asked for by name.
    pub named: Named,
}

/// Ranks all lanes, then judges them. A lane that fails has an error; the others go on. Once `stop` is set, the outcome is incomplete.
///
/// # Errors
/// The detector cannot be loaded.
pub fn run(
    setup: &Setup,
    query: Query,
    depth: Depth,
    lists: Lists,
    stop: &Stop,
    on_event: &(dyn Fn(Event) + Sync),
) -> Result<Outcome, SetupError> {
    let mut run = Run::new(query, depth, lists);
    run.rank(setup, &|_| true, stop, on_event);
    run.judge(setup, stop, on_event)?;
    Ok(run.outcome())
}

/// Ranks all lanes and judges nothing.
pub fn rank_lanes(setup: &Setup, query: Query, lists: Lists, stop: &Stop) -> Vec<Lane> {
    let mut run = Run::new(query, Depth::Top, lists);
    run.rank(setup, &|_| true, stop, &|_| ());
    run.outcome().lanes
}

/// Ranks a query's first lane.
///
/// # Errors
/// See [`LaneError`].
pub fn lane(setup: &Setup, query: Query, lists: Lists, stop: &Stop) -> Result<Ranking, Arc<LaneError>> {
    let first = rank_lanes(setup, query, lists, stop).into_iter().next();
    first.map_or_else(|| Err(Arc::new(Stopped.into())), |lane| lane.ranking)
}

impl Run {
    /// A run that has done nothing yet. `lists` says how deep lanes are read, and holds the lists made before.
    pub fn new(query: Query, depth: Depth, lists: Lists) -> Self {
        let lanes = vec![None; query.lanes.len()];
        let judgments = Judgments::new(&query.question, query.source, Arc::default());
        Run { query, depth, lists, lanes, judgments }
    }

    /// A run over finished lists that are not judged yet.
    pub fn over(query: Query, depth: Depth, rankings: impl IntoIterator<Item = Ranking>) -> Self {
        let lanes = rankings.into_iter().map(|ranking| Some(Lane::from(ranking))).collect();
        Run { lanes, ..Run::new(query, depth, Lists::default()) }
    }

    /// The query.
    pub fn query(&self) -> &Query {
        &self.query
    }

    /// Ranks the lanes that `which` selects and that have not been ranked, from left to right. Returns early once `stop` is set.
    pub fn rank(
        &mut self,
        setup: &Setup,
        which: &dyn Fn(&Recipe) -> bool,
        stop: &Stop,
        on_event: &dyn Fn(Event),
    ) {
        for lane in 0..self.query.lanes.len() {
            let recipe = &self.query.lanes[lane];
            if self.lanes[lane].is_some() || !which(recipe) {
                continue;
            }
            let open = open_parts(setup, recipe, self.lists.depth, stop);
            let began = Instant::now();
            let text = LaneQuery::neutral(&self.query.question);
            let ranking = open.and_then(|()| rank(setup, recipe, text, &mut self.lists, stop));
            let took = began.elapsed();
            let ranking = match ranking {
                Err(error) if error.is_stop() => return,
                ranking => ranking.map_err(Arc::new),
            };
            on_event(match &ranking {
                Ok(ranking) => Event::LaneReady { lane, ranking: Arc::clone(ranking), took },
                Err(error) => Event::LaneFailed { lane, error: Arc::clone(error) },
            });
            // Labels cost nothing, and a lane after this one may have to judge a hundred passages before it is ranked.
            if let Ok(ranking) = &ranking {
                self.label(setup, std::slice::from_ref(ranking), on_event);
            }
            self.lanes[lane] = Some(Lane { ranking, took });
        }
    }

    /// Judges the passages of the ranked lanes that are not judged yet. Labels come first, because they cost nothing. Then the model
    /// judges the first k of every lane, rank by rank, and goes deeper as [`Depth`] says; if labels alone count, it is not asked.
    /// Returns early once `stop` is set.
    ///
    /// # Errors
    /// The detector cannot be loaded.
    pub fn judge(
        &mut self,
        setup: &Setup,
        stop: &Stop,
        on_event: &(dyn Fn(Event) + Sync),
    ) -> Result<(), SetupError> {
        self.judgments.decide_by(setup.rule()?);
        let rankings = self.rankings();
        self.label(setup, &rankings, on_event);
        if self.query.source.is_labels() || self.judgments.perspectives == 0 {
            return Ok(());
        }
        let detector = setup.detector()?;
        let note = detector.usage();
        loop {
            let pairs = next_pairs(&rankings, self.query.k, self.depth, &self.judgments, setup.deep());
            if pairs.is_empty() || stop.is_set() {
                break;
            }
            let judgments = Mutex::new(&mut self.judgments);
            judge(setup, &self.query.question, &pairs, stop, &|judged| {
                on_event(Event::Judged(judged.clone()));
                judgments.lock().write(judged.at, judged.perspective, judged.known);
            })?;
        }
        if let Some(after) = detector.usage().filter(|after| note.as_ref() != Some(after)) {
            on_event(Event::Note(after));
        }
        Ok(())
    }

    /// Judges the first k of every ranked lane and nothing deeper.
    ///
    /// # Errors
    /// The detector cannot be loaded.
    pub fn judge_top(
        &mut self,
        setup: &Setup,
        stop: &Stop,
        on_event: &(dyn Fn(Event) + Sync),
    ) -> Result<(), SetupError> {
        let depth = std::mem::replace(&mut self.depth, Depth::Top);
        let done = self.judge(setup, stop, on_event);
        self.depth = depth;
        done
    }

    /// Takes over the labels of ranked passages: of whole lists if labels alone count or lists are judged until every statement is
    /// covered, else as deep as the model judges.
    fn label(&mut self, setup: &Setup, rankings: &[Ranking], on_event: &dyn Fn(Event)) {
        let whole = self.query.source.is_labels();
        let depth = match self.depth {
            Depth::Top if !whole => self.query.k,
            Depth::To(depth) if !whole => depth.max(self.query.k),
            _ => usize::MAX,
        };
        for ranked in rankings.iter().flat_map(|ranking| ranking.iter().take(depth)) {
            for (perspective, statement) in self.query.question.perspectives.iter().enumerate() {
                let known = setup.labelled(statement, &ranked.passage.id);
                let new = known.is_labelled() && self.judgments.pair(ranked.at, perspective).is_none();
                if new {
                    self.judgments.write(ranked.at, perspective, known.clone());
                    on_event(Event::Judged(Judged { at: ranked.at, perspective, known }));
                }
            }
        }
    }

    /// The lists made so far.
    fn rankings(&self) -> Vec<Ranking> {
        let lanes = self.lanes.iter().flatten();
        lanes.filter_map(|lane| lane.ranking.as_ref().ok().cloned()).collect()
    }

    /// Takes over the lanes that a clone of this run ranked.
    pub fn adopt(&mut self, other: Run) {
        for (own, lane) in self.lanes.iter_mut().zip(other.lanes) {
            *own = own.take().or(lane);
        }
    }

    /// Computes measures for each lane, judged as deep as the measures look. A lane without a list has no values.
    ///
    /// # Errors
    /// The detector cannot be loaded.
    pub fn named(&self, setup: &Setup, measures: &[Measure], stop: &Stop) -> Result<Vec<Named>, SetupError> {
        let outcome = self.judge_for(setup, measures, stop)?;
        let pool = setup.label_pool(&self.query.question, self.query.source);
        let values = |lane: &Lane| {
            let list = lane.ranking.as_ref().ok()?;
            Some(named(measures, list, &outcome.judgments, &pool, &outcome.query.question))
        };
        Ok(outcome.lanes.iter().map(|lane| values(lane).unwrap_or_default()).collect())
    }

    /// Judges the lanes again, as deep as the measures look and no deeper.
    fn judge_for(&self, setup: &Setup, measures: &[Measure], stop: &Stop) -> Result<Outcome, SetupError> {
        let mut deep = self.clone();
        deep.depth = Depth::To(deepest(measures));
        deep.judgments = Judgments::new(&self.query.question, self.query.source, Arc::default());
        if !measures.is_empty() {
            deep.judge(setup, stop, &|_| ())?;
        }
        Ok(deep.outcome())
    }

    /// Makes, for each lane with a switch on, the same lane with nothing switched on. Its first k are judged too, unless every verdict
    /// costs money. The run itself does not change.
    ///
    /// # Errors
    /// The detector cannot be loaded.
    pub fn plain(
        &mut self,
        setup: &Setup,
        measures: &[Measure],
        stop: &Stop,
    ) -> Result<Vec<Option<Plain>>, SetupError> {
        let Query { question, lanes, k, source } = &self.query;
        let text = LaneQuery::neutral(question);
        let mut plain = Vec::new();
        for recipe in lanes {
            let switched = *recipe != recipe.plain();
            let list = switched.then(|| rank(setup, &recipe.plain(), text, &mut self.lists, stop).ok());
            plain.push(list.flatten());
        }
        let free = source.is_labels() || setup.deep() > 0;
        let added: Vec<Option<Lane>> =
            plain.iter().flatten().cloned().map(|list| Some(list.into())).collect();
        let mut top = Run { depth: Depth::Top, ..self.clone() };
        if free && !added.is_empty() {
            top.lanes.extend(added.iter().cloned());
            top.judge(setup, stop, &|_| ())?;
        }
        let own = self.judge_for(setup, measures, stop)?;
        let pool = setup.label_pool(question, *source);
        let mut deep =
            Run { depth: Depth::To(deepest(measures)), judgments: own.judgments.clone(), ..self.clone() };
        if free && !added.is_empty() && !measures.is_empty() {
            deep.lanes.extend(added);
            deep.judge(setup, stop, &|_| ())?;
        }
        let compare = |(lane, plain): (&Option<Lane>, Option<Ranking>)| {
            let ranking = plain?;
            let own = lane.as_ref().and_then(|lane| lane.ranking.as_ref().ok());
            let change = own.and_then(|own| Figures::change((own, &ranking), &top.judgments, question, *k));
            let named = named(measures, &ranking, &deep.judgments, &pool, question);
            Some(Plain { ranking, change, named })
        };
        Ok(self.lanes.iter().zip(plain).map(compare).collect())
    }

    /// Ends the run. A lane that was not ranked counts as stopped.
    pub fn outcome(self) -> Outcome {
        let stopped = || Lane { ranking: Err(Arc::new(Stopped.into())), took: Duration::ZERO };
        let lanes = self.lanes.into_iter().map(|lane| lane.unwrap_or_else(stopped)).collect();
        Outcome { query: self.query, lanes, judgments: self.judgments }
    }
}

/// The greatest depth that any of the measures looks to.
fn deepest(measures: &[Measure]) -> usize {
    measures.iter().map(|measure| measure.cutoff().unwrap_or(Query::DEPTH)).max().unwrap_or(0)
}

/// Opens the index, models and files that the recipe needs, before the clock starts. That happens once, and would otherwise count as
/// the time of the first lane that needs them.
fn open_parts(setup: &Setup, recipe: &Recipe, depth: usize, stop: &Stop) -> Result<(), LaneError> {
    // An expansion may read the question's BM25 list.
    if recipe.base.reads_terms() || recipe.switches.expand.is_some() {
        setup.terms()?;
    }
    if recipe.base.encodes_query() {
        setup.encoder(recipe.model())?;
    }
    for model in setup.encoders_of(recipe) {
        setup.is_embedded(model.as_ref())?;
    }
    match &recipe.switches.rerank {
        Some(Rerank::Diversify(..)) => drop(setup.detector()?),
        Some(Rerank::Model(own)) => drop(setup.reranker(&own.model)?),
        Some(Rerank::Mmr(_) | Rerank::Listwise(_)) | None => {}
    }
    if let Some(run) = recipe.run() {
        setup.runs.locate(run, depth, &setup.corpus, stop)?;
    }
    Ok(())
}

impl From<Ranking> for Lane {
    /// A finished list, which took no time.
    fn from(ranking: Ranking) -> Self {
        Lane { ranking: Ok(ranking), took: Duration::ZERO }
    }
}

impl Outcome {
    /// The list of each lane; `None` if it failed.
    pub fn lists(&self) -> Vec<Option<&[Ranked]>> {
        self.lanes.iter().map(|lane| lane.ranking.as_ref().ok().map(|list| &list[..])).collect()
    }

    /// Counts who judged the first k of all lanes.
    pub fn shares(&self) -> Shares {
        let tops = self.lists().into_iter().flatten().flat_map(|list| list.iter().take(self.query.k));
        Shares::of(&self.judgments, tops.map(|ranked| ranked.at))
    }

    /// Counts who judged the first k of each lane.
    pub fn shares_by_lane(&self) -> Vec<Shares> {
        let top = |list: Option<&[Ranked]>| {
            let top = list.unwrap_or_default().iter().take(self.query.k);
            Shares::of(&self.judgments, top.map(|ranked| ranked.at))
        };
        self.lists().into_iter().map(top).collect()
    }

    /// The figures of a lane by the model's probabilities; `None` if labels alone count or there is no such lane.
    pub fn doubt(&self, lane: usize) -> Option<Doubt> {
        let ranking = self.list(lane)?;
        Figures::doubt(ranking, &self.judgments, &self.query.question, self.query.k)
    }

    /// The figures of a lane; `None` if it failed, the question has no statements, or there is no such lane.
    pub fn figures(&self, lane: usize) -> Option<Figures> {
        let ranking = self.list(lane)?;
        Figures::of(ranking, &self.judgments, &self.query.question, self.query.k)
    }

    fn list(&self, lane: usize) -> Option<&Ranking> {
        self.lanes.get(lane)?.ranking.as_ref().ok()
    }

    /// The first k of a lane's passages in the best order that the judgments allow; no re-ranking can be better. `None` if the lane
    /// failed or there is no such lane.
    pub fn best_order(&self, lane: usize) -> Option<Vec<Ranked>> {
        let mut left: Vec<Ranked> = self.list(lane)?.to_vec();
        let support = |ranked: &Ranked| self.judgments.support(ranked.at).unwrap_or(SupportSet::EMPTY);
        let (mut best, mut covered) = (Vec::new(), SupportSet::EMPTY);
        while best.len() < self.query.k && !left.is_empty() {
            let worth = |ranked: &Ranked| {
                let set = support(ranked);
                (covered.union(set).len(), set.len())
            };
            // The first of equal ones, so that the incoming order decides.
            let mut place = 0;
            for i in 1..left.len() {
                if worth(&left[i]) > worth(&left[place]) {
                    place = i;
                }
            }
            let taken = left.remove(place);
            covered = covered.union(support(&taken));
            best.push(taken);
        }
        Some(best)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::LabelSource;
    use crate::engine::opening::Opening;

    #[test]
    fn the_labels_of_a_lane_come_before_the_next_lane_is_ranked() {
        let folder = tempfile::tempdir().unwrap();
        let opening = Opening { data_dir: folder.path().to_owned(), ..Opening::default() };
        let setup = Setup::open(&opening, &|_| (), &Stop::never()).unwrap();
        let lanes = ["bm25", "bm25@k1=1.2,b=0.75"].map(|recipe| recipe.parse().unwrap()).to_vec();
        let query = Query { question: setup.questions[0].clone(), lanes, k: 5, source: LabelSource::Auto };
        let events = Mutex::new(Vec::new());
        let mut run = Run::new(query, Depth::Top, Lists::default());
        run.rank(&setup, &|_| true, &Stop::never(), &|event| {
            events.lock().push(match event {
                Event::LaneReady { .. } => "list",
                Event::Judged(judged) if judged.known.is_labelled() => "label",
                _ => "other",
            });
        });
        let mut order = events.into_inner();
        order.dedup();
        assert_eq!(order[..3], ["list", "label", "list"], "{order:?}");
    }
}
