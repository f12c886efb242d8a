//! Turns a question into the queries of its retrievers: expands it, and words it from one perspective for a projection.
//!
//! A projection needs the full query `q`, its root `r` and the perspective `p`. For a question with two sides, `r` is the supporting
//! statement, `p` is a fixed clause that names the side, and `q` is both together; projecting out the statement itself would remove
//! the topic. For any other question, and for a perspective that the user typed, `q` is the perspective, `r` is the question, and
//! `q − r` replaces `p`. A query of PIR brings its own root and perspective, which are taken as they stand.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use super::list::{LaneError, Lists, Point, Projected, Wording};
use super::query::LaneQuery;
use super::recipe::{Base, Project, Recipe, Toward};
use super::setup::Setup;
use crate::corpus::PassageIx;
use crate::encode::{Encoder, Role, Similarity, first_tokens};
use crate::expand::{self, Expansion, ExpansionInputs, FirstPassHit, Queries};
use crate::project::{Degenerate, Parts, Perspective, Projection};
use crate::question::pir::PERSPECTIVE;
use crate::retrieve::Retriever;
use crate::retrieve::bm25::{Bm25, TermRetriever};
use crate::vector::dot;
use crate::work::Stop;

/// Expands the query, once for all lanes with the same query, expansion and first pass. A BM25 lane's first pass has its own constants.
pub fn expansion(
    setup: &Setup,
    recipe: &Recipe,
    query: LaneQuery<'_>,
    lists: &mut Lists,
    stop: &Stop,
) -> Result<Option<Arc<Expansion>>, LaneError> {
    let Some(expand) = recipe.switches.expand.clone() else { return Ok(None) };
    let constants = if let Base::Bm25(constants) = recipe.base { constants } else { Bm25::default() };
    let wanted = (expand, constants);
    if let Some((_, expansion)) = lists.expanded.iter().find(|(known, _)| *known == wanted) {
        return Ok(Some(Arc::clone(expansion)));
    }
    let terms = TermRetriever::new(Arc::clone(&setup.corpus), setup.terms()?, constants);
    let chat = setup.lane_chat(wanted.0.llm.as_deref())?;
    let first = |depth| -> Result<Vec<FirstPassHit>, LaneError> {
        let hits = terms.search(query.text, depth, stop)?;
        let listed = hits.into_iter().map(|hit| FirstPassHit {
            at: hit.passage,
            passage: setup.listed(hit.passage),
            score: hit.score,
        });
        Ok(listed.collect())
    };
    let similarity = |texts: &[&str]| -> Result<Vec<f32>, LaneError> {
        let encoder = setup.encoder(None)?;
        let question = encoder.encode(query.text, Role::Query)?;
        texts
            .iter()
            .map(|text| {
                if stop.is_set() {
                    return Err(crate::work::Stopped.into());
                }
                Ok(dot(&question, &encoder.encode(text, Role::Query)?))
            })
            .collect()
    };
    let inputs = ExpansionInputs {
        question: query.text,
        statements: &query.question.perspectives,
        given: &query.question.expansions,
        chat: chat.as_deref(),
        prompts: &setup.prompts,
        first: &first,
        similarity: &similarity,
        tokens: &|text, count| Ok(first_tokens(text, count)?),
        document_frequency: &|term| Ok(terms.frequency(term)?),
        passages: setup.corpus.len(),
        stop,
    };
    let expansion = Arc::new(expand::expand(&wanted.0, &inputs)?);
    lists.expanded.push((wanted, Arc::clone(&expansion)));
    Ok(Some(expansion))
}

/// The queries for an engine that compares terms.
pub fn for_terms(query: LaneQuery<'_>, expansion: Option<&Expansion>) -> Vec<Wording> {
    match expansion.map(|expansion| &expansion.queries) {
        None => vec![Wording::Text(query.text.into())],
        Some(Queries::Each(texts)) => texts.iter().cloned().map(Wording::Text).collect(),
        Some(Queries::Joined { terms, .. }) => vec![Wording::Text(terms.clone())],
        Some(Queries::Terms(weights)) => vec![Wording::Terms(weights.clone())],
    }
}

/// The queries for an engine that compares vectors.
pub fn for_vectors(
    query: LaneQuery<'_>,
    expansion: Option<&Expansion>,
    perspective: Option<&PerspectiveQuery<'_>>,
) -> Vec<Wording> {
    let own = perspective.map_or_else(|| query.text.to_owned(), |perspective| perspective.full(query.text));
    match expansion.map(|expansion| &expansion.queries) {
        None | Some(Queries::Terms(_)) => vec![Wording::Text(own)],
        Some(Queries::Each(texts)) => {
            let full =
                |text: &String| perspective.map_or_else(|| text.clone(), |perspective| perspective.of(text));
            texts.iter().map(|text| Wording::Text(full(text))).collect()
        }
        Some(Queries::Joined { vectors, .. }) => {
            // The first text is the question itself.
            vec![Wording::Mean(std::iter::once(own).chain(vectors.iter().skip(1).cloned()).collect())]
        }
    }
}

/// The mean of the texts' vectors, scaled to unit length if the encoder compares by cosine.
pub fn mean(encoder: &dyn Encoder, texts: &[String]) -> Result<Vec<f32>, LaneError> {
    let mut sum = vec![0f32; encoder.dimensions()];
    for text in texts {
        for (sum, x) in sum.iter_mut().zip(encoder.encode(text, Role::Query)?) {
            *sum += x;
        }
    }
    let length = match encoder.similarity() {
        Similarity::Cosine => dot(&sum, &sum).sqrt(),
        Similarity::Dot => texts.len() as f32,
    };
    Ok(if length > 0.0 { sum.into_iter().map(|x| x / length).collect() } else { sum })
}

/// The clauses that name the two sides in a query.
const CLAUSES: [&str; 2] = ["a passage that supports the statement", "a passage that opposes the statement"];

/// What the full query and the perspective's vector are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Made {
    /// Two sides: a clause that names the side, before the root.
    Clause,
    /// The query is the perspective, and `q − r` replaces its vector.
    Perspective,
    /// PIR: the query as asked, with its perspective.
    Given,
    /// PIR: the query as asked, which is its perspective too.
    GivenAsQuery,
    /// PIR: the query as asked, without a perspective.
    GivenWithout,
}

/// A question from one perspective, as the texts of a projected query.
pub struct PerspectiveQuery<'a> {
    project: &'a Project,
    root: String,
    /// The clause that names a side; without two sides, the perspective in full.
    perspective: String,
    made: Made,
    /// The two texts that passages are compared with: the two statements, or the perspective and the question.
    poles: [String; 2],
}

impl<'a> PerspectiveQuery<'a> {
    /// The question from the perspective that the recipe names.
    ///
    /// # Errors
    /// The question has no such perspective.
    pub fn new(project: &'a Project, query: LaneQuery<'_>) -> Result<Self, LaneError> {
        let question = query.question;
        if let (Toward::Perspective(i), Some(root)) = (&project.toward, &question.root)
            && query.text == question.text
        {
            // A query of PIR has one perspective, so every number means it. The metadata has it where the statement is the query.
            let stated = question.metadata.get(PERSPECTIVE).and_then(Value::as_str);
            let own = match stated {
                Some(stated) => Some(stated).filter(|stated| !stated.is_empty()),
                None => question.perspectives.get(*i).or(question.perspectives.first()).map(String::as_str),
            };
            let made = match own {
                None => Made::GivenWithout,
                Some(own) if own == query.text => Made::GivenAsQuery,
                Some(_) => Made::Given,
            };
            let perspective = own.unwrap_or_default().to_owned();
            let poles = [own.unwrap_or(&question.text).to_owned(), root.clone()];
            return Ok(PerspectiveQuery { project, root: root.clone(), perspective, made, poles });
        }
        let text = match &project.toward {
            Toward::Text(text) => text,
            Toward::Perspective(i) => question.perspectives.get(*i).ok_or_else(|| {
                LaneError::NoPerspective(match question.perspectives.len() {
                    0 => "the question has no statements to project toward: type some, or turn the projection off".into(),
                    1 => format!("the question has 1 statement, so there is no number {}", i + 1),
                    of => format!("the question has {of} statements, so there is no number {}", i + 1),
                })
            })?,
        };
        if let (Toward::Perspective(i), [first, second], Some(supports)) =
            (&project.toward, question.perspectives.as_slice(), question.supports)
        {
            let clause = CLAUSES[usize::from(*i != supports)];
            let root = [first, second][supports.min(1)].clone();
            let poles = [first.clone(), second.clone()];
            return Ok(PerspectiveQuery {
                project,
                root,
                perspective: clause.into(),
                made: Made::Clause,
                poles,
            });
        }
        let poles = [text.clone(), query.text.to_owned()];
        Ok(PerspectiveQuery {
            project,
            root: query.text.to_owned(),
            perspective: text.clone(),
            made: Made::Perspective,
            poles,
        })
    }

    /// The full query; `asked` is the query's own text.
    pub fn full(&self, asked: &str) -> String {
        match self.made {
            Made::Clause => self.of(&self.root),
            Made::Perspective => self.perspective.clone(),
            Made::Given | Made::GivenAsQuery | Made::GivenWithout => asked.to_owned(),
        }
    }

    /// Words another text of the query from the same perspective.
    pub fn of(&self, text: &str) -> String {
        match self.made {
            Made::Clause | Made::Perspective => format!("{}: {text}", self.perspective),
            // The expanded text begins with the full query.
            Made::Given | Made::GivenAsQuery | Made::GivenWithout => text.to_owned(),
        }
    }

    /// The projection of a full query's vector.
    pub fn projection(
        &self,
        encoder: &dyn Encoder,
        q: Vec<f32>,
    ) -> Result<(Projection, Option<Degenerate>), LaneError> {
        let r = encoder.encode(&self.root, Role::Query)?;
        let p = match self.made {
            Made::Clause | Made::Given => Perspective::Text(encoder.encode(&self.perspective, Role::Query)?),
            Made::Perspective | Made::GivenAsQuery => Perspective::Query,
            Made::GivenWithout => Perspective::Missing,
        };
        Ok(Projection::new(self.project.variant, Parts { q, r, p }))
    }

    /// The projection, as the trace records it.
    pub fn projected(
        &self,
        wording: &Wording,
        projection: &Projection,
        points: HashMap<PassageIx, Point>,
    ) -> Projected {
        let q = match wording {
            Wording::Text(text) => text.clone(),
            Wording::Mean(texts) => format!("the mean of {} texts", texts.len()),
            Wording::Terms(_) => String::new(),
        };
        Projected {
            asked: self.project.variant,
            ran: projection.variant(),
            toward: self.project.toward.clone(),
            q,
            r: self.root.clone(),
            p: matches!(self.made, Made::Clause | Made::Given).then(|| self.perspective.clone()),
            points,
        }
    }
}

/// Returns a function that places a passage's vector between the two poles, before and after the projection.
pub fn geometry(
    perspective: &PerspectiveQuery<'_>,
    encoder: &dyn Encoder,
    projection: &Projection,
    q: Vec<f32>,
) -> Result<impl Fn(&[f32]) -> Point, LaneError> {
    let [first, second] = &perspective.poles;
    let [first, second] = [encoder.encode(first, Role::Query)?, encoder.encode(second, Role::Query)?];
    let projected = [projection.remove(&first), projection.remove(&second)];
    let projection = projection.clone();
    Ok(move |c: &[f32]| {
        let rest = projection.remove(c);
        Point {
            plain: dot(&q, c),
            score: projection.score(c),
            before: dot(&first, c) - dot(&second, c),
            after: dot(&projected[0], &rest) - dot(&projected[1], &rest),
        }
    })
}
