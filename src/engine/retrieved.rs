//! Retrieves a lane's list, before any re-ranking: asks the retrievers here, engines on other machines or finished runs with the query
//! expanded and projected as the recipe says.

use std::collections::HashMap;
use std::sync::Arc;

use super::learned;
use super::list::{LaneError, Lists, Probed, Retrieved, Step, Stood, Trace, Wording};
use super::query::LaneQuery;
use super::recipe::{Ask, Base, Recipe, RunFile, Switches};
use super::setup::Setup;
use super::wording::{PerspectiveQuery, expansion, for_terms, for_vectors, geometry, mean};
use crate::corpus::PassageIx;
use crate::encode::{Codes, Directions, Encoder, Instructed, Named, Similarity};
use crate::expand::Expansion;
use crate::project::Projection;
use crate::question::wordings::texts_to_ask;
use crate::remote::{By, Engine, Remote, Scored};
use crate::rerank::by_rank;
use crate::retrieve::bm25::{Bm25, TermRetriever};
use crate::retrieve::dense::DenseRetriever;
use crate::retrieve::{Fusion, Hit, RetrieveError, fuse, round_robin};
use crate::vector::dot;
use crate::work::Stop;

/// Retrieves the list of a recipe without re-ranking, or takes it from `lists`.
pub(super) fn retrieve(
    setup: &Setup,
    recipe: &Recipe,
    query: LaneQuery<'_>,
    lists: &mut Lists,
    stop: &Stop,
) -> Result<Arc<Retrieved>, LaneError> {
    if let Some((_, retrieved)) = lists.retrieved.iter().find(|(known, _)| known == recipe) {
        return Ok(Arc::clone(retrieved));
    }
    if let Some(ask) = recipe.switches.ask {
        let retrieved = Arc::new(many(setup, recipe, ask, query, lists, stop)?);
        lists.retrieved.push((recipe.clone(), Arc::clone(&retrieved)));
        return Ok(retrieved);
    }
    let retrieved = match &recipe.base {
        Base::Bm25(constants) => {
            let expansion = expansion(setup, recipe, query, lists, stop)?;
            by_terms(setup, *constants, query, expansion, lists.depth, stop)?
        }
        Base::MiniLm | Base::Custom(_) => {
            let expansion = expansion(setup, recipe, query, lists, stop)?;
            let mut own = by_vectors(setup, recipe, query, expansion, lists.depth, stop)?;
            if let Some(probes) = recipe.switches.ivf {
                let exact = Switches { ivf: None, ..recipe.switches.clone() };
                let exact = Recipe { base: recipe.base.clone(), switches: exact };
                let exact = retrieve(setup, &exact, query, lists, stop)?;
                let probed = Probed::new((probes, lists_of(setup, recipe)?), &own.hits, &exact.hits);
                own.trace.steps.push(Step::Probe(probed));
            }
            own
        }
        Base::Sparse(named) | Base::Late(named) => {
            let expansion = expansion(setup, recipe, query, lists, stop)?;
            let queries = for_vectors(query, expansion.as_deref(), None);
            let search = |query: &Wording| match named.is_late() {
                true => learned::search_tokens(setup, named, query, lists.depth, stop),
                false => learned::search_terms(setup, named, query, lists.depth, stop),
            };
            let hits = queries.iter().map(search).collect::<Result<Vec<_>, _>>()?;
            merged(recipe.base.clone(), queries, hits, expansion, Trace::default(), lists.depth)
        }
        Base::Remote(engine) => {
            let expansion = expansion(setup, recipe, query, lists, stop)?;
            by_engine(setup, (recipe, engine), query, expansion, lists.depth, stop)?
        }
        Base::Hybrid => fused(setup, recipe, query, lists, stop)?,
        Base::Run(file) => from_run(setup, file, query, lists.depth, stop)?,
    };
    let retrieved = Arc::new(retrieved);
    lists.retrieved.push((recipe.clone(), Arc::clone(&retrieved)));
    Ok(retrieved)
}

fn by_terms(
    setup: &Setup,
    constants: Bm25,
    query: LaneQuery<'_>,
    expansion: Option<Arc<Expansion>>,
    depth: usize,
    stop: &Stop,
) -> Result<Retrieved, LaneError> {
    let retriever = TermRetriever::new(Arc::clone(&setup.corpus), setup.terms()?, constants);
    let queries = for_terms(query, expansion.as_deref());
    let search = |query: &Wording| retriever.search_weighted(&query.terms(), depth, stop);
    let lists = queries.iter().map(search).collect::<Result<Vec<_>, _>>()?;
    Ok(merged(Base::Bm25(constants), queries, lists, expansion, Trace::default(), depth))
}

/// Searches the corpus's own vectors.
fn by_vectors(
    setup: &Setup,
    recipe: &Recipe,
    query: LaneQuery<'_>,
    expansion: Option<Arc<Expansion>>,
    depth: usize,
    stop: &Stop,
) -> Result<Retrieved, LaneError> {
    let vectors = setup.vectors(recipe.model())?.ok_or(LaneError::NotEmbedded)?;
    let encoder = setup.encoder(recipe.model())?;
    let similarity = encoder.similarity();
    let retriever = DenseRetriever::new(Arc::clone(&setup.corpus), encoder, vectors);
    let retriever = retriever.probing(recipe.switches.ivf.unwrap_or(usize::MAX));
    let search = |full: &[f32], projection: Option<&Projection>, _: &mut Trace| {
        let Some(projection) = projection else { return Ok(retriever.nearest(full, depth, stop)?) };
        let score = |passage: &[f32]| projection.score(&similarity.unit(passage));
        Ok(match projection.direction().filter(|_| similarity == Similarity::Cosine) {
            Some((direction, slack)) => retriever.best_along((&direction, slack), depth, stop, score)?,
            None => retriever.best(depth, stop, score)?,
        })
    };
    by_query_vectors(setup, recipe, query, expansion, depth, &search)
}

/// How many lists of vectors a lane chooses from; none if it compares all passages anyway.
fn lists_of(setup: &Setup, recipe: &Recipe) -> Result<usize, LaneError> {
    let scales = recipe.switches.project.is_some()
        && setup.encoder(recipe.model())?.similarity() != Similarity::Cosine;
    let vectors = setup.vectors(recipe.model())?.ok_or(LaneError::NotEmbedded)?;
    Ok(vectors.codes().filter(|_| !scales).map_or(0, Codes::lists))
}

/// Returns the list for a query's vector, by the projection if there is one.
type SearchVectors<'a> = &'a dyn Fn(&[f32], Option<&Projection>, &mut Trace) -> Result<Vec<Hit>, LaneError>;

/// Encodes and projects the queries, and calls `search` for each.
fn by_query_vectors(
    setup: &Setup,
    recipe: &Recipe,
    query: LaneQuery<'_>,
    expansion: Option<Arc<Expansion>>,
    depth: usize,
    search: SearchVectors<'_>,
) -> Result<Retrieved, LaneError> {
    let encoder = setup.encoder(recipe.model())?;
    let project = recipe.switches.project.as_ref();
    let perspective = project.map(|project| PerspectiveQuery::new(project, query)).transpose()?;
    let queries = for_vectors(query, expansion.as_deref(), perspective.as_ref());
    let (mut trace, mut lists) = (Trace::default(), Vec::new());
    let wants = recipe.model().is_some_and(Named::instructs);
    let instructed = instructed(encoder.as_ref(), query).filter(|_| wants);
    if wants && instructed.is_none() {
        trace.note(
            "the query has no perspective beside itself: it stands behind the model's own prefix".into(),
        );
    }
    let own: &dyn Encoder = instructed.as_ref().map_or(encoder.as_ref(), |one| one as &dyn Encoder);
    for query in &queries {
        let full = mean(own, query.texts())?;
        let Some(perspective) = &perspective else {
            lists.push(search(&full, None, &mut trace)?);
            continue;
        };
        // A projection works on directions, even if the encoder compares by dot product.
        let similarity = encoder.similarity();
        let encoder = Directions(encoder.as_ref());
        let full = similarity.unit(&full).into_owned();
        let (projection, degenerate) = perspective.projection(&encoder, full.clone())?;
        degenerate.into_iter().for_each(|reason| trace.note(reason.to_string()));
        let hits = search(&full, Some(&projection), &mut trace)?;
        // The trace shows the geometry of the passages whose vectors are here.
        let mut points = HashMap::new();
        if let Some(vectors) = setup.vectors(recipe.model())? {
            let point = geometry(perspective, &encoder, &projection, full)?;
            for hit in hits.iter().filter(|hit| hit.passage.as_outside().is_none()) {
                let row = vectors.row(hit.passage).map_err(RetrieveError::Vectors)?;
                points.insert(hit.passage, point(&similarity.unit(&row)));
            }
        }
        trace.steps.push(Step::Project(Box::new(perspective.projected(query, &projection, points))));
        lists.push(hits);
    }
    Ok(merged(recipe.base.clone(), queries, lists, expansion, trace, depth))
}

/// The encoder that reads a query of PIR behind its perspective; `None` if it has none beside itself.
fn instructed<'a>(encoder: &'a dyn Encoder, query: LaneQuery<'a>) -> Option<Instructed<'a>> {
    let root = query.question.root.as_deref()?;
    let perspective = query.question.perspectives.first().filter(|text| *text != query.text)?;
    Some(Instructed::new(encoder, query.text, root, perspective))
}

/// Returns one list as it is, and merges several: the first passage of each, then the second of each, without repeats.
fn merged(
    by: Base,
    queries: Vec<Wording>,
    mut lists: Vec<Vec<Hit>>,
    expansion: Option<Arc<Expansion>>,
    steps: Trace,
    depth: usize,
) -> Retrieved {
    let mut trace = Trace::default();
    if let Some(expansion) = expansion {
        expansion.notes.iter().for_each(|note| trace.note(note.clone()));
        trace.steps.push(Step::Expand(expansion));
    }
    trace.extend(&steps);
    let pool = lists.iter().map(Vec::len).sum();
    trace.steps.push(Step::Retrieve { by, queries, pool });
    if lists.len() == 1 {
        return Retrieved { hits: lists.remove(0), trace, comparable: true };
    }
    let passages: Vec<Vec<PassageIx>> =
        lists.iter().map(|hits| hits.iter().map(|hit| hit.passage).collect()).collect();
    let merged = round_robin(&passages, depth);
    let hits = merged.iter().zip(by_rank(merged.len()));
    let hits = hits.map(|((passage, _), score)| Hit { passage: *passage, score }).collect();
    trace.steps.push(Step::Merge { from: merged.into_iter().collect() });
    Retrieved { hits, trace, comparable: false }
}

/// Fuses the lists of BM25 and MiniLM, each with the switches that it can use.
fn fused(
    setup: &Setup,
    recipe: &Recipe,
    query: LaneQuery<'_>,
    lists: &mut Lists,
    stop: &Stop,
) -> Result<Retrieved, LaneError> {
    let switches = &recipe.switches;
    let project = |base: &Base| {
        let project = switches.project.clone();
        project.filter(|project| base.refuses_projection(project.variant).is_none())
    };
    let expand = |base: &Base| {
        let expand = switches.expand.clone();
        expand.filter(|expand| base.refuses_expansion(expand.kind).is_none())
    };
    let mut part = |base: Base| {
        let switches = Switches {
            project: project(&base),
            expand: expand(&base),
            ivf: switches.ivf.filter(|_| base.refuses_probing().is_none()),
            ..switches.clone()
        };
        retrieve(setup, &Recipe { base, switches }, query, lists, stop)
    };
    let parts = [part(Base::Bm25(Bm25::default()))?, part(Base::MiniLm)?];
    let mut trace = Trace::default();
    let mut ranks: HashMap<PassageIx, [Option<usize>; 2]> = HashMap::new();
    for (i, part) in parts.iter().enumerate() {
        trace.extend(&part.trace);
        for (rank, hit) in part.hits.iter().enumerate() {
            ranks.entry(hit.passage).or_default()[i] = Some(rank + 1);
        }
    }
    let both: Vec<&[Hit]> = parts.iter().map(|part| part.hits.as_slice()).collect();
    let hits = fuse(&setup.corpus, &both, lists.depth);
    trace.steps.push(Step::Fuse { ranks });
    Ok(Retrieved { hits, trace, comparable: true })
}

/// Asks in several wordings and fuses their lists. The trace has the steps of the question's own words, then the rank in every list.
fn many(
    setup: &Setup,
    recipe: &Recipe,
    ask: Ask,
    query: LaneQuery<'_>,
    lists: &mut Lists,
    stop: &Stop,
) -> Result<Retrieved, LaneError> {
    let once =
        Recipe { base: recipe.base.clone(), switches: Switches { ask: None, ..recipe.switches.clone() } };
    let texts = texts_to_ask(query.question, query.text, ask.times);
    let (mut trace, mut parts) = (Trace::default(), Vec::new());
    for (number, text) in texts.iter().enumerate() {
        let part = match number {
            0 => retrieve(setup, &once, query, lists, stop)?,
            _ => {
                let other = LaneQuery { question: query.question, text };
                retrieve(setup, &once, other, lists.of_wording(text), stop)?
            }
        };
        match number {
            0 => trace.extend(&part.trace),
            // Their expansions cost replies too, and each search of some lists may miss passages.
            _ => {
                let kept = |step: &&Step| matches!(step, Step::Expand(_) | Step::Probe(_));
                trace.steps.extend(part.trace.steps.iter().filter(kept).cloned());
            }
        }
        parts.push(part);
    }
    let mut ranks: HashMap<PassageIx, Vec<Option<usize>>> = HashMap::new();
    for (number, part) in parts.iter().enumerate() {
        for (rank, hit) in part.hits.iter().enumerate() {
            ranks.entry(hit.passage).or_insert_with(|| vec![None; parts.len()])[number] = Some(rank + 1);
        }
    }
    if texts.len() < ask.times {
        trace.note(format!("the rules word this question in {} ways, not in {}", texts.len(), ask.times));
    }
    let all: Vec<&[Hit]> = parts.iter().map(|part| part.hits.as_slice()).collect();
    let hits = match all.as_slice() {
        [only] => only.to_vec(),
        all => ask.by.combine(&setup.corpus, all, lists.depth),
    };
    // A single list keeps its own scores.
    let comparable = parts.first().is_some_and(|part| part.comparable);
    let comparable = comparable && (parts.len() == 1 || ask.by == Fusion::Rrf);
    trace.steps.push(Step::Ask { texts, by: ask.by, ranks });
    Ok(Retrieved { hits, trace, comparable })
}

/// Asks an engine on another machine. Its passages are those of the open corpus with the same ids.
fn by_engine(
    setup: &Setup,
    (recipe, remote): (&Recipe, &Remote),
    query: LaneQuery<'_>,
    expansion: Option<Arc<Expansion>>,
    depth: usize,
    stop: &Stop,
) -> Result<Retrieved, LaneError> {
    let engine = setup.remotes.engine(&remote.place)?;
    match remote.by {
        By::Terms => {
            let queries = for_terms(query, expansion.as_deref());
            let search = |query: &Wording| engine.by_text(&query.shown(), depth, stop);
            let lists = queries.iter().map(search).collect::<Result<Vec<_>, _>>()?;
            let mut trace = Trace::default();
            let lists = lists.into_iter().map(|list| to_hits(setup, list, &mut trace)).collect();
            Ok(merged(recipe.base.clone(), queries, lists, expansion, trace, depth))
        }
        By::Vectors => {
            let search = |full: &[f32], projection: Option<&Projection>, trace: &mut Trace| {
                let list = match projection {
                    None => engine.by_vector(full, depth, stop)?,
                    Some(projection) => along(engine.as_ref(), projection, full.len(), depth, stop)?,
                };
                Ok(to_hits(setup, list, trace))
            };
            by_query_vectors(setup, recipe, query, expansion, depth, &search)
        }
    }
}

/// Searches by a projection. A server gives the cosine with the projection's direction: the order is the same, and the score follows
/// from it.
fn along(
    engine: &dyn Engine,
    projection: &Projection,
    dimensions: usize,
    depth: usize,
    stop: &Stop,
) -> Result<Vec<Scored>, LaneError> {
    let Some((direction, _)) = projection.direction() else {
        return Err(LaneError::NoPerspective(format!(
            "{} projects the passages too, and a server compares one vector with those it holds; try pap",
            projection.variant()
        )));
    };
    let length = dot(&direction, &direction).sqrt();
    let constant = projection.score(&vec![0.0; dimensions]);
    let list = engine.by_vector(&direction, depth, stop)?;
    Ok(list.into_iter().map(|hit| Scored { score: hit.score * length + constant, ..hit }).collect())
}

/// Finds a server's passages in the corpus by their ids, and notes those that it does not hold.
fn to_hits(setup: &Setup, list: Vec<Scored>, trace: &mut Trace) -> Vec<Hit> {
    let (places, note) = setup.runs.places(list.iter().map(|hit| hit.id.as_str()), &setup.corpus);
    note.into_iter().for_each(|note| trace.note(note));
    places.into_iter().zip(&list).map(|(passage, hit)| Hit { passage, score: hit.score }).collect()
}

/// Reads the list from a finished run: for the question by its id, else by its words; for another wording by its words.
fn from_run(
    setup: &Setup,
    file: &RunFile,
    query: LaneQuery<'_>,
    depth: usize,
    stop: &Stop,
) -> Result<Retrieved, LaneError> {
    let located = setup.runs.locate(file, depth, &setup.corpus, stop)?;
    let own_words = query.text == query.question.text;
    let id = Some(query.question.id.as_str()).filter(|id| own_words && !id.is_empty());
    let place = located.run.place(id, query.text).ok_or_else(|| {
        LaneError::NotInRun(match (own_words, id) {
            (true, Some(id)) => format!("the run has no list for this question, neither by its id `{id}` nor by its words"),
            (true, None) => "the run has no list for these words; a finished run knows its own questions only".into(),
            (false, _) => "the run has no list for this wording; a finished run is asked as either side only if it holds the statements as questions".into(),
        })
    })?;
    let question = &located.run.questions()[place];
    let mut trace = Trace::default();
    let (mut hits, mut stood) = (Vec::new(), HashMap::new());
    for (passage, at) in question.passages.iter().zip(&located.places[place]).take(depth) {
        // A score that 32 bits cannot hold becomes the greatest or least that they can.
        let score = (passage.score as f32).clamp(f32::MIN, f32::MAX);
        hits.push(Hit { passage: *at, score });
        stood.insert(*at, Stood { rank: passage.rank, score: passage.score, line: passage.line });
    }
    if hits.iter().any(|hit| hit.passage.as_outside().is_some()) {
        located.note.iter().for_each(|note| trace.note(note.clone()));
    }
    trace.steps.push(Step::Given {
        run: file.clone(),
        tag: located.run.tag.clone(),
        question: question.id.clone(),
        stood,
    });
    Ok(Retrieved { hits, trace, comparable: true })
}
