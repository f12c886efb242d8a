//! The public library API: opens a corpus, runs lanes, judges and measures.
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

/// The error of a call to the library.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The corpus, a model or the data folder cannot be opened.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// A lane's recipe is wrong.
    #[error(transparent)]
    Recipe(#[from] RecipeError),
    /// A lane failed.
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
    /// Opens the built-in sample: 24 questions, 600 passages and labels. `data` is the folder for caches.
    ///
    /// # Errors
    /// `data` cannot be used.
    pub fn sample(data: &Path) -> Result<Self, Error> {
        let opening = Opening { data_dir: data.into(), ..Opening::default() };
        Self::open_with(&opening, &Stop::never(), &|_| ())
    }

    /// Opens a file or folder in any format that `parallax --corpus` reads. The first call imports and indexes it; indices and vectors
    /// are stored in the folder `data` for later calls.
    ///
    /// # Errors
    /// The corpus has a bad line, or `data` cannot be used.
    pub fn open(corpus: &Path, data: &Path) -> Result<Self, Error> {
        let opening = Opening { corpus: Some(corpus.into()), data_dir: data.into(), ..Opening::default() };
        Self::open_with(&opening, &Stop::never(), &|_| ())
    }

    /// Opens everything that `opening` names, including question sets, labels, detectors and language models. If `data_dir` is empty, the
    /// cache folder of the `parallax` program is used. Importing and indexing report their progress and end early once `stop` is set.
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

    /// Selects which labels count. By default, as in the program, each passage is judged by its most trusted source: labels by hand, else
    /// gold labels, else the model.
    #[must_use]
    pub fn with_labels(self, source: LabelSource) -> Self {
        OpenCorpus { source, ..self }
    }

    /// The passages.
    pub fn passages(&self) -> &Corpus {
        &self.setup.corpus
    }

    /// Makes a question of a text. If the question set has a question with this text (ignoring case), returns that; else derives
    /// statements by rule. If no rule applies, the question has no statements.
    pub fn question(&self, text: &str) -> Question {
        question::resolve(text, &[], &self.setup.questions).0
    }

    /// Makes a question with statements of your own. If there are two, the first is the supporting one.
    pub fn question_with<S: AsRef<str>>(&self, text: &str, statements: &[S]) -> Question {
        let statements: Vec<String> = statements.iter().map(|text| text.as_ref().to_owned()).collect();
        question::resolve(text, &statements, &self.setup.questions).0
    }

    /// Runs lanes on a question, and judges each list until it covers every statement. `recipes` has one recipe per lane. If a lane needs
    /// vectors, embeds the corpus first.
    ///
    /// # Errors
    /// A recipe is wrong, or a model cannot be loaded. If a lane fails, its error is in the outcome, and the other lanes have lists.
    pub fn ask(&self, text: &str, recipes: &[&str], k: usize) -> Result<Outcome, Error> {
        self.run(self.query(self.question(text), recipes, k)?, &Stop::never(), &|_| (), &|_| ())
    }

    /// Makes a query for [`run`](Self::run).
    ///
    /// # Errors
    /// A recipe is wrong.
    pub fn query(&self, question: Question, recipes: &[&str], k: usize) -> Result<Query, Error> {
        let lanes = recipes.iter().map(|recipe| recipe.parse()).collect::<Result<Vec<Recipe>, _>>()?;
        Ok(Query { question, lanes, k, source: self.source })
    }

    /// Like [`ask`](Self::ask), for any query. Embedding reports its progress; each list and each judgment is reported as an event. Once
    /// `stop` is set, the call ends early with an incomplete outcome.
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

    /// Asks a retriever of your own, and judges its list as for any lane. The list is in `lanes[0]` of the outcome; `query.lanes` is empty,
    /// because the retriever has no recipe.
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

/// The program's cache folder on this system; a temporary folder if the system has none.
pub(crate) fn cache_folder() -> PathBuf {
    let home = directories::ProjectDirs::from("", "", "parallax");
    home.map_or_else(|| std::env::temp_dir().join("parallax"), |home| home.cache_dir().to_owned())
}
