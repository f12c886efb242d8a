//! Ranks: retrieves a lane's list, then re-ranks it as the recipe says.

use std::sync::Arc;

use parking_lot::Mutex;

use super::judge::{Pair, judge};
use super::judgments::Judgments;
use super::list::{LaneError, List, Lists, Ranked, Ranking, Retrieved, Step, Trace};
use super::opening::{Part, SetupError};
use super::query::LaneQuery;
use super::recipe::{ByModel, Diversify, Listwise, Mmr, Norm, Recipe, Rerank, Switches};
use super::retrieved::retrieve;
use super::setup::Setup;
use crate::corpus::PassageIx;
use crate::detect::{LabelSource, PairLabels};
use crate::encode::{EncodeError, Named, PassageScorer, Source, reranker};
use crate::expand::{Talk, first_words, one_line};
use crate::llm::Job;
use crate::rerank::{POOL, by_rank, mmr, of_maximum, permutation, pm2, windows, xquad};
use crate::retrieve::{Hit, RetrieveError};
use crate::vector::dot;
use crate::work::{Stop, Stopped, on_all};

/// Ranks the corpus as the recipe says.
///
/// # Errors
/// See [`LaneError`].
pub fn rank(
    setup: &Setup,
    recipe: &Recipe,
    query: LaneQuery<'_>,
    lists: &mut Lists,
    stop: &Stop,
) -> Result<Ranking, LaneError> {
    let ranking = ranked_list(setup, recipe, query, lists, stop);
    match &ranking {
        Ok(list) => tracing::info!(lane = %recipe, passages = list.len(), "ranked"),
        Err(error) if error.is_stop() => {}
        Err(error) => tracing::warn!(lane = %recipe, "failed: {error}"),
    }
    ranking
}

fn ranked_list(
    setup: &Setup,
    recipe: &Recipe,
    query: LaneQuery<'_>,
    lists: &mut Lists,
    stop: &Stop,
) -> Result<Ranking, LaneError> {
    let depth = lists.depth;
    let retrieved = match &recipe.switches.rerank {
        Some(Rerank::Model(own)) if own.depth > depth => {
            // A deeper list than other lanes read, so it is not shared with them.
            let mut deeper = Lists { retrieved: Vec::new(), depth: own.depth, ..lists.clone() };
            let retrieved = retrieve(setup, &recipe.retrieval(), query, &mut deeper, stop)?;
            lists.expanded = deeper.expanded;
            retrieved
        }
        _ => retrieve(setup, &recipe.retrieval(), query, lists, stop)?,
    };
    let mut trace = retrieved.trace.clone();
    trace.probed().into_iter().for_each(|probed| trace.note(probed.to_string()));
    let hits = match &recipe.switches.rerank {
        None => retrieved.hits.clone(),
        Some(rerank) => {
            let retrieval = recipe.retrieval();
            let maximum = lists.maxima.iter().find(|(known, _)| *known == retrieval).map(|(_, score)| *score);
            reorder(setup, recipe, rerank, query, &retrieved, maximum, &mut trace, stop)?
        }
    };
    // Passages below the pool keep their places.
    let below = retrieved.hits.iter().skip(hits.len()).copied();
    let ranked = hits.iter().copied().chain(below).take(depth).map(|hit| Ranked {
        at: hit.passage,
        passage: setup.listed(hit.passage),
        score: hit.score,
    });
    let ranked = ranked.collect();
    setup.corpus.sound()?;
    Ok(Arc::new(List { ranked, trace }))
}

/// The passages to re-rank.
struct Pool<'a> {
    hits: &'a [Hit],
    /// The relevance of each, from its score or rank.
    relevance: Vec<f32>,
}

/// Puts the first passages of a list in their new order.
#[expect(clippy::too_many_arguments, reason = "one call, from the function above it")]
fn reorder(
    setup: &Setup,
    recipe: &Recipe,
    rerank: &Rerank,
    query: LaneQuery<'_>,
    retrieved: &Retrieved,
    maximum: Option<f32>,
    trace: &mut Trace,
    stop: &Stop,
) -> Result<Vec<Hit>, LaneError> {
    let most = if let Rerank::Model(own) = rerank { own.depth } else { POOL };
    let pool = &retrieved.hits[..retrieved.hits.len().min(most)];
    // Passages that the corpus does not hold can be neither compared nor judged, so they come last.
    let (outside, hits): (Vec<Hit>, Vec<Hit>) =
        pool.iter().copied().partition(|hit| hit.passage.as_outside().is_some());
    let hits = hits.as_slice();
    if !outside.is_empty() {
        let count = outside.len();
        trace.note(format!(
            "passages that are not in the corpus cannot be re-ranked ({count} of {})",
            pool.len()
        ));
    }
    let scores: Vec<f32> = hits.iter().map(|hit| hit.score).collect();
    let relevance =
        |maximum| if retrieved.comparable { of_maximum(&scores, maximum) } else { by_rank(scores.len()) };
    let ordered = match rerank {
        Rerank::Listwise(own) => by_model(setup, own, query, hits, trace, stop),
        Rerank::Model(own) => by_scores(setup, own, query, hits, trace, stop),
        Rerank::Mmr(options) => {
            let options = *options;
            let maximum = maximum.filter(|_| options.norm == Norm::Dataset);
            if options.norm == Norm::Dataset && maximum.is_none() {
                trace.note("one question has no maximum over a question set: its own was taken".into());
            }
            let by = setup.similarity_by(recipe);
            let title = by.as_ref().map_or("MiniLM", Named::title);
            let also = recipe.base.encodes_query() && by.as_ref() == recipe.model();
            let also = if also { ", which this lane also ranks by" } else { "" };
            trace.note(format!("MMR compares passages by {title}{also}"));
            if options.sim.is_none() && lacks_usual(setup) {
                let sim = Mmr { sim: Some(Mmr::USUAL), ..options };
                let switch = Switches { rerank: Some(Rerank::Mmr(sim)), ..Switches::default() };
                trace.note(format!(
                    "{} is fetched, but the corpus has no vectors of it; {switch} makes them and compares by it",
                    Mmr::USUAL
                ));
            }
            by_similarity(setup, by.as_ref(), options, Pool { hits, relevance: relevance(maximum) }, trace)
        }
        Rerank::Diversify(method, weight) => by_verdicts(
            setup,
            (*method, *weight),
            query,
            Pool { hits, relevance: relevance(None) },
            trace,
            stop,
        ),
    }?;
    Ok(ordered.into_iter().chain(outside).collect())
}

/// Whether the usual encoder of MMR was fetched, but the corpus has no vectors of it.
fn lacks_usual(setup: &Setup) -> bool {
    let usual = Source::parse(Mmr::USUAL).ok().map(Named::from);
    usual.is_some_and(|usual| {
        usual.towers(&setup.models_folder).is_ok() && matches!(setup.vectors(Some(&usual)), Ok(None))
    })
}

/// Re-ranks by MMR.
fn by_similarity(
    setup: &Setup,
    by: Option<&Named>,
    options: Mmr,
    pool: Pool<'_>,
    trace: &mut Trace,
) -> Result<Vec<Hit>, LaneError> {
    let vectors = setup.vectors(by)?.ok_or(LaneError::NotEmbedded)?;
    let similarity = setup.encoder(by)?.similarity();
    let row = |hit: &Hit| Ok(similarity.unit(&vectors.row(hit.passage)?).into_owned());
    let rows = pool.hits.iter().map(row).collect::<std::io::Result<Vec<_>>>();
    let rows = rows.map_err(RetrieveError::Vectors)?;
    let picks = mmr(&pool.relevance, |a, b| dot(&rows[a], &rows[b]), options.lambda);
    let hits = picks.iter().map(|pick| pool.hits[pick.passage]).collect();
    trace.steps.push(Step::Mmr { options, picks, pool: passages(pool.hits) });
    Ok(hits)
}

/// Re-ranks by the model's verdicts alone, because labels measure the result.
fn by_verdicts(
    setup: &Setup,
    (method, weight): (Diversify, f32),
    query: LaneQuery<'_>,
    pool: Pool<'_>,
    trace: &mut Trace,
    stop: &Stop,
) -> Result<Vec<Hit>, LaneError> {
    let perspectives = query.question.perspectives.len();
    if perspectives == 0 {
        return Err(LaneError::NoPerspective(format!(
            "{method} needs the question's perspectives; give them with --perspective, or i in the explorer"
        )));
    }
    let mut pairs = Vec::new();
    for hit in pool.hits {
        let passage = setup.listed(hit.passage);
        for perspective in 0..perspectives {
            pairs.push(Pair { at: hit.passage, passage: Arc::clone(&passage), perspective });
        }
    }
    let judgments = Mutex::new(Judgments::new(query.question, LabelSource::Model, setup.rule()?));
    judge(setup, query.question, &pairs, stop, &|judged| {
        let mut judgments = judgments.lock();
        judgments.write(
            judged.at,
            judged.perspective,
            PairLabels { model: judged.known.model, ..PairLabels::default() },
        );
    })?;
    if stop.is_set() {
        return Err(Stopped.into());
    }
    let judgments = judgments.into_inner();
    let p = |hit: &Hit, perspective| judgments.by_model(hit.passage, perspective)?.p;
    let row = |hit: &Hit| (0..perspectives).map(|perspective| p(hit, perspective)).collect::<Vec<_>>();
    let supports: Vec<Vec<Option<f32>>> = pool.hits.iter().map(row).collect();
    let missing = supports.iter().flatten().filter(|p| p.is_none()).count();
    if missing > 0 {
        trace.note(format!("{missing} verdicts could not be made; they count as nothing"));
    }
    let supports: Vec<Vec<f32>> =
        supports.into_iter().map(|row| row.into_iter().map(|p| p.unwrap_or(0.0)).collect()).collect();
    let choices = match method {
        Diversify::Xquad => xquad(&pool.relevance, &supports, weight),
        Diversify::Pm2 => pm2(&pool.relevance, &supports, weight),
    };
    let hits = choices.iter().map(|choice| pool.hits[choice.passage]).collect();
    let judged = pairs.len() - missing;
    trace.steps.push(Step::Diversify { method, weight, choices, pool: passages(pool.hits), judged });
    Ok(hits)
}

/// Re-ranks by a language model that puts windows of the list in order. A window without a usable reply keeps its order; without any
/// usable reply the lane has no list, because the plain one would pass for a re-ranked one.
fn by_model(
    setup: &Setup,
    own: &Listwise,
    query: LaneQuery<'_>,
    hits: &[Hit],
    trace: &mut Trace,
    stop: &Stop,
) -> Result<Vec<Hit>, LaneError> {
    let Some(chat) = setup.lane_chat(own.llm.as_deref())? else {
        return Err(LaneError::NoOrder(
            "+listwise asks a language model; name one with --llm URL, or recorded replies with --replies FILE".into(),
        ));
    };
    let (top, below) = hits.split_at(hits.len().min(own.top));
    let shown = |hit: &Hit| {
        let text = one_line(&setup.passage(hit.passage).contents());
        first_words(&text, own.words).to_owned()
    };
    let shown: Vec<String> = top.iter().map(shown).collect();
    let windows = windows(top.len(), own.window, own.step);
    let (prompt, mut talk) = (setup.prompts.get(Job::Listwise), Talk::new(chat.as_ref(), stop));
    let (mut order, mut ordered): (Vec<usize>, usize) = ((0..top.len()).collect(), 0);
    for window in &windows {
        let before = order[window.clone()].to_vec();
        let numbered: Vec<String> =
            before.iter().zip(1..).map(|(place, number)| format!("[{number}] {}", shown[*place])).collect();
        let values = [("question", query.text), ("passages", &numbered.join("\n"))];
        let Some(reply) = talk.ask(&prompt.request(&values, 0))? else { continue };
        let Some(places) = permutation(&reply.text, before.len()) else {
            talk.trouble("a reply without the number of a passage".into());
            continue;
        };
        for (place, from) in window.clone().zip(places) {
            order[place] = before[from];
        }
        ordered += 1;
    }
    let model = chat.model().to_owned();
    let all = windows.len();
    if ordered == 0 && all > 0 {
        let trouble = talk.note("so the list has no order by it");
        return Err(LaneError::NoOrder(trouble.unwrap_or_else(|| format!("{model}: no reply"))));
    }
    trace.note(format!("the list was put in order by {model}"));
    trace.notes.extend(talk.note(&format!("{ordered} of {all} windows were put in order, the others stay")));
    let ranked = order.iter().map(|place| top[*place]).chain(below.iter().copied()).collect();
    trace.steps.push(Step::Listwise {
        options: own.clone(),
        model,
        order,
        pool: passages(top),
        windows: (all, ordered),
        cost: talk.cost,
    });
    Ok(ranked)
}

impl Setup {
    /// The re-rankers with a short name that were fetched.
    pub fn fetched_rerankers(&self) -> Vec<Source> {
        let all = reranker::RERANKERS.iter().map(|entry| Source::Hub(entry.repository.into()));
        all.filter(|source| reranker::place(source, &self.models_folder).is_ok()).collect()
    }

    /// A re-ranker.
    ///
    /// # Errors
    /// It does not exist or cannot be loaded.
    pub fn reranker(&self, source: &Source) -> Result<Arc<dyn PassageScorer>, SetupError> {
        let slot = {
            let mut all = self.rerankers.lock();
            match all.iter().find(|(known, _)| known == source) {
                Some((_, slot)) => Arc::clone(slot),
                None => {
                    let slot = Arc::new(Part::new());
                    all.push((source.clone(), Arc::clone(&slot)));
                    slot
                }
            }
        };
        slot.get(|| Ok(reranker::load(source, &self.models_folder)?))
    }
}

/// Re-ranks by a model that scores every passage with the query, on all model threads. Equal scores keep their order. Scores are cached by
/// (model, passage, query).
fn by_scores(
    setup: &Setup,
    own: &ByModel,
    query: LaneQuery<'_>,
    hits: &[Hit],
    trace: &mut Trace,
    stop: &Stop,
) -> Result<Vec<Hit>, LaneError> {
    let scorer = setup.reranker(&own.model)?;
    let of_query = scorer.with_query(query.text)?;
    let scores = on_all(&setup.models, hits.len(), stop, |i| {
        let passage = setup.corpus.passage(hits[i].passage);
        setup.verdicts.score(scorer.key(), &passage, query.text, || of_query(&passage))
    });
    if stop.is_set() {
        return Err(Stopped.into());
    }
    let mut order = scores
        .into_iter()
        .enumerate()
        .map(|(i, score)| Ok((i, score?)))
        .collect::<Result<Vec<_>, EncodeError>>()?;
    order.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    trace.note(format!("the first {} passages were re-ranked by {}", hits.len(), own.name()));
    let ranked = order.iter().map(|(place, _)| hits[*place]).collect();
    trace.steps.push(Step::Score {
        model: own.name(),
        source: own.model.clone(),
        order,
        pool: passages(hits),
    });
    Ok(ranked)
}

fn passages(hits: &[Hit]) -> Vec<PassageIx> {
    hits.iter().map(|hit| hit.passage).collect()
}
