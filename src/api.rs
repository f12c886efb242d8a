//! The public library API: open a corpus, run lanes, judge, measure.
//!
//! May use: every room but `cli` and `tui`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::corpus::{Corpus, PassageIx};
use crate::detect::LabelSource;
use crate::engine::recipe::RecipeError;
use crate::engine::{
    Depth, Event, LaneError, List, Lists, Opening, Outcome, Query, Ranked, Recipe, Run, Setup, SetupError,
    run,
};
use crate::question::{self, Question};
use crate::retrieve::{RetrieveError, Retriever};
use crate::work::{OnProgress, Stop};

/// Why the library could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The corpus, a model or the data folder cannot be opened.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// A lane's recipe is wrong.
    #[error(transparent)]
    Recipe(#[from] RecipeError),
    /// A lane has no list.
    #[error(transparent)]
    Lane(#[from] Arc<LaneError>),
    /// A [`Retriever`] of your own failed.
    #[error(transparent)]
    Retriever(#[from] RetrieveError),
}

/// An open corpus, with the models that search and judge it.
///
/// ```no_run
/// # fn main() -> Result<(), parallax::Error> {
/// let corpus = parallax::OpenCorpus::sample("data".as_ref())?;
/// let outcome = corpus.ask("Should zoos be banned?", &["bm25", "minilm+mmr@.75"], 5)?;
/// for (lane, recipe) in outcome.query.lanes.iter().enumerate() {
///     if let Some(figures) = outcome.figures(lane) {
///         println!("{recipe}: MRecall@5 {}", figures.mrecall);
///     }
/// }
/// # Ok(())
/// # }
/// ```
pub struct OpenCorpus {
    setup: Setup,
    source: LabelSource,
}

impl OpenCorpus {
    /// Opens the built-in sample: 24 questions, 600 passages and their labels. `data` is the folder for caches.
    ///
    /// # Errors
    /// `data` cannot be used.
    pub fn sample(data: &Path) -> Result<Self, Error> {
        let opening = Opening { data_dir: data.into(), ..Opening::default() };
        Self::open_with(&opening, &Stop::never(), &|_| ())
    }

    /// Opens a file or folder in any format that `parallax --corpus` reads. The first call imports and indexes it; indices and vectors
    /// are stored in the folder `data`.
    ///
    /// # Errors
    /// The corpus has a bad line, or `data` cannot be used.
    pub fn open(corpus: &Path, data: &Path) -> Result<Self, Error> {
        let opening = Opening { corpus: Some(corpus.into()), data_dir: data.into(), ..Opening::default() };
        Self::open_with(&opening, &Stop::never(), &|_| ())
    }

    /// Opens what `opening` names: also question sets, labels, detectors and language models. An empty `data_dir` means the cache
    /// folder that the `parallax` program uses. Importing and indexing report their progress and end early once `stop` is set.
    ///
    /// # Errors
    /// See [`SetupError`].
    pub fn open_with(opening: &Opening, stop: &Stop, on_progress: OnProgress<'_>) -> Result<Self, Error> {
        let mut opening = opening.clone();
        if opening.data_dir.as_os_str().is_empty() {
            opening.data_dir = cache_folder();
        }
        let setup = Setup::open(&opening, on_progress, stop)?;
        Ok(OpenCorpus { setup, source: LabelSource::default() })
    }

    /// Selects which labels count. Default, as in the program: passage by passage the most trusted, human, else gold, else the
    /// model's.
    #[must_use]
    pub fn with_labels(self, source: LabelSource) -> Self {
        OpenCorpus { source, ..self }
    }

    /// The passages.
    pub fn passages(&self) -> &Corpus {
        &self.setup.corpus
    }

    /// The question with its statements: those of the question set, else those derived by rule; none if no rule applies.
    pub fn question(&self, text: &str) -> Question {
        question(text, &[], &self.setup.questions)
    }

    /// The question with statements of your own. If there are two, the first is the supporting one.
    pub fn question_with<S: AsRef<str>>(&self, text: &str, statements: &[S]) -> Question {
        let statements: Vec<String> = statements.iter().map(|text| text.as_ref().to_owned()).collect();
        question(text, &statements, &self.setup.questions)
    }

    /// Runs lanes, given by their recipes, on a question, and judges what they return until each covers every statement. Embeds the
    /// corpus first if a lane needs vectors.
    ///
    /// # Errors
    /// A recipe is wrong, or a model cannot be loaded. A lane that fails has its error in the outcome; the other lanes have lists.
    pub fn ask(&self, text: &str, recipes: &[&str], k: usize) -> Result<Outcome, Error> {
        self.run(self.query(self.question(text), recipes, k)?, &Stop::never(), &|_| (), &|_| ())
    }

    /// A query for [`run`](Self::run).
    ///
    /// # Errors
    /// A recipe is wrong.
    pub fn query(&self, question: Question, recipes: &[&str], k: usize) -> Result<Query, Error> {
        let lanes = recipes.iter().map(|recipe| recipe.parse()).collect::<Result<Vec<Recipe>, _>>()?;
        Ok(Query { question, lanes, k, source: self.source })
    }

    /// Like [`ask`](Self::ask), for any query. Embedding reports its progress, each list and each judgment is an event, and all ends
    /// early once `stop` is set: the outcome is then incomplete.
    ///
    /// # Errors
    /// A model cannot be loaded, or `stop` was set while the corpus was embedded.
    pub fn run(
        &self,
        query: Query,
        stop: &Stop,
        on_progress: OnProgress<'_>,
        on_event: &(dyn Fn(Event) + Sync),
    ) -> Result<Outcome, Error> {
        self.setup.embed_for(&query.lanes, on_progress, stop)?;
        Ok(run(&self.setup, query, Depth::Covered, Lists::default(), stop, on_event)?)
    }

    /// Asks a retriever of your own, and judges and measures its list like that of any lane. `lanes[0]` of the outcome is its list;
    /// `query.lanes` is empty, because the retriever has no recipe.
    ///
    /// # Errors
    /// The retriever failed, or the detector cannot be loaded.
    pub fn ask_retriever(&self, text: &str, retriever: &dyn Retriever, k: usize) -> Result<Outcome, Error> {
        let stop = Stop::never();
        let hits = retriever.search(text, Query::DEPTH, &stop)?;
        let passage = |at: PassageIx| Arc::new(self.setup.passage(at));
        let ranked = hits.iter().map(|hit| Ranked {
            at: hit.passage,
            passage: passage(hit.passage),
            score: hit.score,
        });
        let list = List::from(ranked.collect::<Vec<_>>());
        let query = self.query(self.question(text), &[], k)?;
        let mut run = Run::over(query, Depth::Covered, [Arc::new(list)]);
        run.judge(&self.setup, &stop, &|_| ())?;
        Ok(run.outcome())
    }
}

/// The cache folder of the program on this system; without one, a temporary folder.
pub(crate) fn cache_folder() -> PathBuf {
    let home = directories::ProjectDirs::from("", "", "parallax");
    home.map_or_else(|| std::env::temp_dir().join("parallax"), |home| home.cache_dir().to_owned())
}

/// A question with its statements: those given, else those of the question set, else those by rule.
pub(crate) fn question(text: &str, given: &[String], set: &[Question]) -> Question {
    let text = text.trim();
    if !given.is_empty() {
        let supports = (given.len() == 2).then_some(0);
        return Question { text: text.into(), perspectives: given.to_vec(), supports, ..Question::default() };
    }
    set.iter().find(|one| one.text.eq_ignore_ascii_case(text)).cloned().unwrap_or_else(|| {
        let ruled = question::statements(text);
        let (perspectives, supports) = (ruled.perspectives, ruled.supports);
        Question { text: text.into(), perspectives, supports, ..Question::default() }
    })
}
