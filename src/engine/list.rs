//! A lane's list with the steps that made it, or the error if there is none.

use std::collections::HashMap;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use super::opening::SetupError;
use super::query::Query;
use super::recipe::{Base, Diversify, Listwise, Mmr, Recipe, RunFile, Toward};
use super::run_files::RunError;
use crate::corpus::{Passage, PassageIx};
use crate::encode::{EncodeError, Source};
use crate::expand::{Cost, Expand, Expansion, Form};
use crate::project::Variant;
use crate::remote::RemoteError;
use crate::rerank::{Choice, Pick};
use crate::retrieve::bm25::{Bm25, TermRetriever};
use crate::retrieve::{Fusion, Hit, RetrieveError};
use crate::storage::checked::Damaged;
use crate::work::Stopped;

/// A passage in a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranked {
    /// Its number in the corpus.
    pub at: PassageIx,
    /// The passage.
    pub passage: Arc<Passage>,
    /// The lane's score for it.
    pub score: f32,
}

/// Passages, best first, and how the list was made.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct List {
    pub(super) ranked: Vec<Ranked>,
    /// How the list was made.
    pub trace: Trace,
}

impl Deref for List {
    type Target = [Ranked];

    fn deref(&self) -> &[Ranked] {
        &self.ranked
    }
}

impl From<Vec<Ranked>> for List {
    fn from(ranked: Vec<Ranked>) -> Self {
        List { ranked, trace: Trace::default() }
    }
}

impl List {
    /// A passage's rank, from 1.
    pub fn rank_of(&self, at: PassageIx) -> Option<usize> {
        self.iter().position(|ranked| ranked.at == at).map(|i| i + 1)
    }
}

/// A lane's list, shared.
pub type Ranking = Arc<List>;

/// The list of a retrieval, before re-ranking.
pub(super) struct Retrieved {
    pub(super) hits: Vec<Hit>,
    pub(super) trace: Trace,
    /// Whether the scores can be compared with each other; those of a merged list cannot.
    pub(super) comparable: bool,
}

/// The lists and expansions made so far for one wording of a question. Lanes share them.
#[derive(Clone)]
pub struct Lists {
    pub(super) retrieved: Vec<(Recipe, Arc<Retrieved>)>,
    /// By the expansion and the constants of its first pass.
    pub(super) expanded: Vec<((Expand, Bm25), Arc<Expansion>)>,
    /// The lists of other wordings, by their text.
    pub(super) worded: Vec<(String, Lists)>,
    pub(super) depth: usize,
    /// For MMR's normalisation over a question set: recipes without re-ranking, with their greatest score over all questions.
    pub maxima: Vec<(Recipe, f32)>,
}

impl Default for Lists {
    fn default() -> Self {
        Lists::to_depth(Query::DEPTH)
    }
}

impl Lists {
    /// Lists of `depth` passages.
    pub fn to_depth(depth: usize) -> Self {
        Lists { retrieved: Vec::new(), expanded: Vec::new(), worded: Vec::new(), depth, maxima: Vec::new() }
    }

    /// The lists of another wording.
    pub(super) fn of_wording(&mut self, text: &str) -> &mut Lists {
        let known = self.worded.iter().position(|(known, _)| known == text);
        let place = known.unwrap_or_else(|| {
            let lists = Lists { maxima: self.maxima.clone(), ..Lists::to_depth(self.depth) };
            self.worded.push((text.to_owned(), lists));
            self.worded.len() - 1
        });
        &mut self.worded[place].1
    }
}

/// Why a lane has no list.
#[derive(Debug, thiserror::Error)]
pub enum LaneError {
    /// Its passages have no vectors yet.
    #[error("the passages are still being embedded")]
    NotEmbedded,
    /// The question has no such statement.
    #[error("{0}")]
    NoPerspective(String),
    /// The run has no list for the question.
    #[error("{0}")]
    NotInRun(String),
    /// No language model put the list in order, or worded the question.
    #[error("{0}")]
    NoOrder(String),
    /// The run could not be read.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The engine on another machine failed.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// An index, a model or a file could not be opened.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// A passage could not be read back, so the list does not count.
    #[error(transparent)]
    Damaged(#[from] Damaged),
    /// The retriever failed or was stopped.
    #[error(transparent)]
    Retrieve(#[from] RetrieveError),
}

impl From<Stopped> for LaneError {
    fn from(stopped: Stopped) -> Self {
        LaneError::Retrieve(stopped.into())
    }
}

impl From<EncodeError> for LaneError {
    fn from(error: EncodeError) -> Self {
        LaneError::Retrieve(error.into())
    }
}

impl LaneError {
    /// Whether it was stopped on request, which is not a failure.
    pub fn is_stop(&self) -> bool {
        matches!(
            self,
            LaneError::Retrieve(RetrieveError::Stopped(_))
                | LaneError::Run(RunError::Stopped(_))
                | LaneError::Remote(RemoteError::Stopped(_))
        )
    }
}

/// The steps that made a list, and notes about them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// The steps, in the order in which they ran.
    pub steps: Vec<Step>,
    /// Fallbacks and warnings, for the user.
    pub notes: Vec<String>,
}

/// Searches of some lists of vectors, beside exact ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Probed {
    /// How many lists were searched, and how many there are: none if all passages were compared.
    pub lists: (usize, usize),
    /// How many of the first ten passages of each exact list were found.
    pub found: usize,
    /// How many these passages are.
    pub of: usize,
}

impl Probed {
    /// Compares the list of a search of so many lists, of all that there are, with the exact one.
    pub fn new((probes, lists): (usize, usize), hits: &[Hit], exact: &[Hit]) -> Self {
        const FIRST: usize = 10;
        let first = &exact[..exact.len().min(FIRST)];
        let found = first.iter().filter(|hit| hits.iter().any(|own| own.passage == hit.passage)).count();
        Probed { lists: (probes.min(lists), lists), found, of: first.len() }
    }

    /// Both together; they chose from the same lists.
    pub fn plus(self, other: Probed) -> Self {
        let lists = (self.lists.0.max(other.lists.0), self.lists.1.max(other.lists.1));
        Probed { lists, found: self.found + other.found, of: self.of + other.of }
    }
}

impl fmt::Display for Probed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Probed { lists: (probes, lists), found, of } = self;
        match lists {
            0 => f.write_str("ivf: all passages were compared, because there are no lists for this search"),
            _ => write!(
                f,
                "ivf: nprobe {probes} of {lists} lists, {found} of {of} first passages of an exact search found"
            ),
        }
    }
}

/// One step of making a list.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// The query was expanded.
    Expand(Arc<Expansion>),
    /// The query was projected.
    Project(Box<Projected>),
    /// Some lists of vectors were searched.
    Probe(Probed),
    /// A retriever was asked, once per query.
    Retrieve {
        /// The retriever.
        by: Base,
        /// The queries.
        queries: Vec<Wording>,
        /// The number of passages that it gave in all.
        pool: usize,
    },
    /// A finished run was read.
    Given {
        /// The run.
        run: RunFile,
        /// Its name for itself; may be empty.
        tag: String,
        /// The question as the run names it.
        question: String,
        /// The line of each passage in the file.
        stood: HashMap<PassageIx, Stood>,
    },
    /// The lists of several queries were merged in turn.
    Merge {
        /// The query, from 0, that found each passage.
        from: HashMap<PassageIx, usize>,
    },
    /// The lists of two retrievers were fused by reciprocal rank.
    Fuse {
        /// A passage's rank in each, from 1.
        ranks: HashMap<PassageIx, [Option<usize>; 2]>,
    },
    /// The question was asked in several wordings, and their lists were fused.
    Ask {
        /// The wordings.
        texts: Vec<String>,
        /// How the lists became one.
        by: Fusion,
        /// A passage's rank in the list of each, from 1.
        ranks: HashMap<PassageIx, Vec<Option<usize>>>,
    },
    /// The list was re-ranked by MMR.
    Mmr {
        /// The options.
        options: Mmr,
        /// The choices, best first. They number passages by the incoming order.
        picks: Vec<Pick>,
        /// The passages in the incoming order.
        pool: Vec<PassageIx>,
    },
    /// The list was re-ranked by verdicts.
    Diversify {
        /// The method.
        method: Diversify,
        /// Its λ.
        weight: f32,
        /// The choices, best first. They number passages by the incoming order.
        choices: Vec<Choice>,
        /// The passages in the incoming order.
        pool: Vec<PassageIx>,
        /// The number of pairs that were judged for it.
        judged: usize,
    },
    /// A language model put the list in order.
    Listwise {
        /// The options.
        options: Listwise,
        /// The model.
        model: String,
        /// The passages in their new order, by their places in the incoming one.
        order: Vec<usize>,
        /// The passages in the incoming order.
        pool: Vec<PassageIx>,
        /// The number of windows, and of those that the model put in order.
        windows: (usize, usize),
        /// What its replies cost.
        cost: Cost,
    },
    /// A model scored every passage with the query.
    Score {
        /// The model's name.
        model: String,
        /// Where it lies.
        source: Source,
        /// The passages in their new order, by their places in the incoming one, each with its score.
        order: Vec<(usize, f32)>,
        /// The passages in the incoming order.
        pool: Vec<PassageIx>,
    },
}

/// A passage's line in a run's file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stood {
    /// The rank as written, if there is one.
    pub rank: Option<i64>,
    /// The score as written.
    pub score: f64,
    /// The number of the line, from 1.
    pub line: usize,
}

/// A query as a retriever is asked.
#[derive(Clone, Debug, PartialEq)]
pub enum Wording {
    /// A text.
    Text(String),
    /// The mean of these texts' vectors.
    Mean(Vec<String>),
    /// Terms with weights.
    Terms(Vec<(String, f32)>),
}

/// A projection as it ran.
#[derive(Clone, Debug, PartialEq)]
pub struct Projected {
    /// The variant that was asked for.
    pub asked: Variant,
    /// The variant that ran: `none` if the other was impossible.
    pub ran: Variant,
    /// The perspective that the query was projected toward.
    pub toward: Toward,
    /// The full query.
    pub q: String,
    /// Its root.
    pub r: String,
    /// The perspective as a text; `None` if `q − r` replaces it.
    pub p: Option<String>,
    /// Every passage of the list, before and after the projection.
    pub points: HashMap<PassageIx, Point>,
}

/// A passage in the geometry of a projected query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// `cos(q, c)`, the score without the projection.
    pub plain: f32,
    /// The score with it.
    pub score: f32,
    /// How much nearer the passage is to the first pole than to the second, as a difference of cosines.
    pub before: f32,
    /// The same with the perspective removed from passage and poles.
    pub after: f32,
}

impl Trace {
    /// Adds the steps and notes of another trace; an expansion that both share is added once.
    pub fn extend(&mut self, other: &Trace) {
        for step in &other.steps {
            let shared =
                |own: &Step| matches!((own, step), (Step::Expand(a), Step::Expand(b)) if Arc::ptr_eq(a, b));
            if !self.steps.iter().any(shared) {
                self.steps.push(step.clone());
            }
        }
        for note in &other.notes {
            self.note(note.clone());
        }
    }

    /// Adds a note, once.
    pub fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// The expansion, if there was one.
    pub fn expansion(&self) -> Option<&Expansion> {
        self.steps.iter().find_map(|step| match step {
            Step::Expand(expansion) => Some(expansion.as_ref()),
            _ => None,
        })
    }

    /// The form in which the query was expanded, without the method's name, and the model that put the list in order; `None` if the methods
    /// have one form only.
    pub fn form(&self) -> Option<String> {
        let described = self.expansion().map(Expansion::describe);
        let expanded = described.and_then(|described| match described.split_once(", ") {
            Some((_, form)) => Some(form.to_owned()),
            None => (described == Form::QuestionAlone.to_string()).then_some(described),
        });
        let ordered = self.ordered_by().map(|model| format!("order by {model}"));
        let forms: Vec<String> = expanded.into_iter().chain(ordered).collect();
        (!forms.is_empty()).then(|| forms.join(", "))
    }

    /// The searches of some lists of vectors, together.
    pub fn probed(&self) -> Option<Probed> {
        let probed = |step: &Step| if let Step::Probe(probed) = step { Some(*probed) } else { None };
        self.steps.iter().filter_map(probed).reduce(Probed::plus)
    }

    /// The notes that count, not those that [`Probed`] sums over questions.
    pub fn own_notes(&self) -> impl Iterator<Item = &String> {
        let summed = self.probed().filter(|probed| probed.lists.1 > 0).map(|probed| probed.to_string());
        self.notes.iter().filter(move |note| Some(*note) != summed.as_ref())
    }

    /// The language model that put the list in order, if one did.
    pub fn ordered_by(&self) -> Option<&str> {
        self.steps.iter().find_map(|step| match step {
            Step::Listwise { model, .. } => Some(model.as_str()),
            _ => None,
        })
    }

    /// What all replies of language models cost.
    pub fn cost(&self) -> Cost {
        let costs = self.steps.iter().filter_map(|step| match step {
            Step::Expand(expansion) => Some(expansion.cost),
            Step::Listwise { cost, .. } => Some(*cost),
            _ => None,
        });
        costs.fold(Cost::default(), Cost::plus)
    }

    /// The projection, if there was one.
    pub fn projected(&self) -> Option<&Projected> {
        self.steps.iter().find_map(|step| match step {
            Step::Project(projected) => Some(projected.as_ref()),
            _ => None,
        })
    }
}

impl Wording {
    /// The query as one line of text.
    pub fn shown(&self) -> String {
        match self {
            Wording::Text(text) => text.clone(),
            Wording::Mean(texts) => texts.join(" · "),
            Wording::Terms(weights) => {
                let weights = weights.iter().map(|(term, weight)| format!("{term} {weight:.3}"));
                weights.collect::<Vec<_>>().join(", ")
            }
        }
    }

    /// The terms that BM25 looks for, with their weights.
    pub fn terms(&self) -> Vec<(String, f32)> {
        match self {
            Wording::Text(text) => TermRetriever::query_terms(text),
            Wording::Mean(texts) => TermRetriever::query_terms(&texts.join(" ")),
            Wording::Terms(weights) => weights.clone(),
        }
    }

    /// The texts that an encoder reads.
    pub(super) fn texts(&self) -> &[String] {
        match self {
            Wording::Text(text) => std::slice::from_ref(text),
            Wording::Mean(texts) => texts,
            Wording::Terms(_) => &[],
        }
    }
}
