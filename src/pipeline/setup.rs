//! What is open: the corpus, its indices, the models, the labels. Parts are made when first asked for, once.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use super::carried::{asked_by, carried_by};
use super::detector::{Judges, judges};
use super::indexed::index_terms;
use super::labels::{annotator, human, unused};
use super::reading::reader;
use super::recipe::RunFile;
use super::runs::Runs;
use super::shelves::Shelves;
use crate::annotate::Human;
use crate::corpus::fields::Fields;
use crate::corpus::import::Format;
use crate::corpus::library::{Called, Library};
use crate::corpus::{Corpus, Passage, PassageIx, sample};
use crate::detect::labels::Absent;
use crate::detect::{Choice, DetectError, Detector, Fitted, Labels, cache::Cache};
use crate::encode::{EmbedError, EncodeError, ReadyError};
use crate::input::InputError;
use crate::llm::{self, Chat, Recorded, Recording};
use crate::question::{self, Question};
use crate::read::Reader;
use crate::remote::Remotes;
use crate::retrieve::{RetrieveError, TermIndex};
use crate::work::{Stop, Stopped, Tell};

/// The folder in the data folder where models from the hub are kept.
pub const MODELS: &str = "models";

/// What to open, as the user named it.
#[derive(Clone, Debug, Default)]
pub struct Opening {
    /// A corpus, by its file, folder or name, else the carried sample.
    pub corpus: Option<PathBuf>,
    /// A question set, else the carried one (with the carried corpus) or none.
    pub questions: Option<PathBuf>,
    /// A label file with its declaration, else the carried ones or none.
    pub labels: Option<String>,
    /// Finished runs among the lanes: what they carry is the corpus where none is named.
    pub runs: Vec<RunFile>,
    /// What judges.
    pub detector: Choice,
    /// A threshold fitted on labels by hand, instead of the detector's own.
    pub threshold: Option<PathBuf>,
    /// Where indices and verdicts are kept.
    pub data_dir: PathBuf,
    /// A language model to write expansions: the address of an OpenAI-compatible server and the model's name there, or
    /// `gguf:FILE`, whose name is its own.
    pub llm: Option<(String, String)>,
    /// Replies recorded before, which are taken instead of asking.
    pub replies: Option<PathBuf>,
    /// Answers that a reader gave before (`read::Answers`).
    pub answers: Option<PathBuf>,
    /// A folder with a model that reads (`read::brought`).
    pub reader: Option<PathBuf>,
    /// Journals of labels by hand, or folders of them, instead of those kept for the corpus.
    pub journals: Vec<PathBuf>,
    /// Under which name labels are written; the system's name of the user if not given.
    pub annotator: Option<String>,
    /// Where journals are kept by corpus, if not below `data_dir`: what can be made again lies there, labels by hand cannot.
    pub annotations: Option<PathBuf>,
}

/// Why something could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// A file of the user's is not right.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The corpus could not be imported or opened.
    #[error(transparent)]
    Corpus(#[from] crate::corpus::library::BuildError),
    /// The term index could not be built or read.
    #[error(transparent)]
    Terms(#[from] RetrieveError),
    /// Vectors made elsewhere could not be taken.
    #[error(transparent)]
    Ready(#[from] ReadyError),
    /// The encoder could not be loaded.
    #[error(transparent)]
    Encoder(#[from] EncodeError),
    /// The corpus could not be embedded.
    #[error(transparent)]
    Embedding(#[from] EmbedError),
    /// The detector could not be loaded.
    #[error(transparent)]
    Detector(#[from] DetectError),
    /// The cache folder cannot be used.
    #[error("{0}")]
    Cache(String),
}

/// A part that is made when first asked for.
pub(super) struct Part<T: ?Sized>(Mutex<Option<Arc<T>>>);

impl<T: ?Sized> Part<T> {
    pub(super) const fn new() -> Self {
        Part(Mutex::new(None))
    }

    pub(super) fn get<E>(&self, make: impl FnOnce() -> Result<Arc<T>, E>) -> Result<Arc<T>, E> {
        let mut part = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*part {
            Some(made) => Ok(Arc::clone(made)),
            None => Ok(Arc::clone(part.insert(make()?))),
        }
    }
}

/// Everything a plan is carried out with.
pub struct Setup {
    /// The passages.
    pub corpus: Arc<Corpus>,
    /// The question set; may be empty.
    pub questions: Vec<Question>,
    /// Labels that came with the data.
    pub labels: Option<Labels>,
    /// Finished runs that lanes are made of.
    pub runs: Runs,
    /// Engines on other machines that lanes ask.
    pub remotes: Remotes,
    /// Labels made here by hand; they change while they are made.
    pub(super) human: RwLock<Human>,
    /// The folder where an annotator's journal on this corpus lies, if it belongs to no project.
    pub journals: PathBuf,
    /// The journal or folder that was named, where labels are written; none if they lie in `journals`.
    pub named_journal: Option<PathBuf>,
    /// Under which name labels are written.
    pub annotator: String,
    /// What is to be told of the labels: lines that do not count, and why.
    pub notes: Vec<String>,
    /// Verdicts made before.
    pub verdicts: Cache,
    /// What writes expansions: replies recorded before, then the language model, if there is one.
    pub chat: Option<Arc<dyn Chat>>,
    /// What answers from passages: answers recorded before, else the model that reads, else the language model or the replies that
    /// were named, if any.
    pub reader: Option<Arc<dyn Reader>>,
    /// The threads that models run on.
    pub models: rayon::ThreadPool,
    /// Where this corpus's indices lie; none for the carried one, which is indexed in memory.
    pub(super) folder: Option<PathBuf>,
    pub(super) library: Library,
    terms: Part<TermIndex>,
    pub(super) shelves: Shelves,
    pub(super) judges: Option<Judges>,
    pub(super) choice: Choice,
    pub(super) detector: Part<dyn Detector>,
    pub(super) models_folder: PathBuf,
    pub(super) fitted: Option<Fitted>,
    fields: Part<Fields>,
}

impl Setup {
    /// Opens what the user named, importing and indexing what is not known yet.
    ///
    /// # Errors
    /// See [`SetupError`].
    pub fn open(opening: &Opening, tell: Tell<'_>, stop: &Stop) -> Result<Self, SetupError> {
        let library = Library::at(&opening.data_dir);
        let named = match &opening.corpus {
            Some(path) => Some(library.named(path)?),
            None => carried_by(&opening.runs, stop)?.map(Called::Source),
        };
        let carried = named.is_none();
        let questions = match (&opening.questions, &named) {
            (Some(path), _) => question::set::read(path)?,
            (None, None) => question::set::carried(sample::QUESTIONS),
            (None, Some(Called::Source(source))) if source.format == Format::Results => {
                asked_by(source.paths())?
            }
            (None, Some(_)) => Vec::new(),
        };
        let labels = match &opening.labels {
            Some(name) => Some(Labels::read(name, &questions)?),
            None if carried => Some(Labels::carried(sample::LABELS, &questions, Absent::No)?),
            None => None,
        };
        let (corpus, folder) = match &named {
            None => (sample::corpus(), None),
            Some(named) => {
                let corpus = library.open_named(named, tell, stop)?;
                let folder = library.folder(&corpus.fingerprint);
                (corpus, Some(folder))
            }
        };
        let kept = opening.annotations.clone().unwrap_or_else(|| opening.data_dir.join("annotate"));
        let place = kept.join(&corpus.fingerprint.0);
        let (human, mut notes) = human(opening, &place, &corpus, &questions)?;
        if let (Some(labels), Some(_)) = (&labels, &opening.labels) {
            notes.extend(unused(labels, &corpus, &questions));
        }
        let fitted = opening.threshold.as_deref().map(Fitted::read).transpose()?;
        notes.extend(fitted.as_ref().map(Fitted::told));
        let model = client(opening)?;
        let chat = chat(opening, carried, model.clone())?;
        let judges = judges(opening, model.clone())?;
        let reader = reader(opening, model)?;
        let setup = Setup {
            human: RwLock::new(human),
            journals: place,
            named_journal: opening.journals.first().cloned(),
            annotator: opening.annotator.clone().unwrap_or_else(annotator),
            notes,
            corpus: Arc::new(corpus),
            questions,
            labels,
            verdicts: Cache::open(&opening.data_dir).map_err(|error| SetupError::Cache(error.to_string()))?,
            runs: Runs::default(),
            remotes: Remotes::default(),
            chat,
            reader,
            models: model_threads()?,
            judges,
            folder,
            library,
            terms: Part::new(),
            shelves: Mutex::default(),
            choice: opening.detector.clone(),
            detector: Part::new(),
            fitted,
            fields: Part::new(),
            models_folder: opening.data_dir.join(MODELS),
        };
        if setup.folder.is_some() {
            index_terms(&setup.library, &setup.corpus, tell, stop)?;
        }
        Ok(setup)
    }

    /// The passage at a place; one that the corpus does not hold says so.
    pub fn passage(&self, at: PassageIx) -> Passage {
        match at.as_outside() {
            Some(number) => self.runs.outside(number),
            None => self.corpus.passage(at),
        }
    }

    /// The term index.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn terms(&self) -> Result<Arc<TermIndex>, SetupError> {
        self.terms.get(|| {
            Ok(Arc::new(match &self.folder {
                Some(folder) => TermIndex::open(&folder.join(TermIndex::FOLDER))?,
                None => TermIndex::in_memory(&self.corpus)?,
            }))
        })
    }

    /// The metadata fields of the corpus, counted when first asked for.
    ///
    /// # Errors
    /// `stop` was set before all passages were looked at.
    pub fn fields(&self, tell: Tell<'_>, stop: &Stop) -> Result<Arc<Fields>, Stopped> {
        self.fields.get(|| Ok(Arc::new(Fields::read(&self.corpus, tell, stop)?)))
    }
}

/// The language model that was named.
///
/// # Errors
/// The server's address is none, or the file is no model that can be read.
pub(super) fn client(opening: &Opening) -> Result<Option<Arc<dyn Chat>>, SetupError> {
    let Some((llm, model)) = &opening.llm else { return Ok(None) };
    llm::named(llm, model).map(Some).map_err(|error| SetupError::Cache(error.to_string()))
}

/// What writes expansions: recorded replies first, then the model. What a model writes is recorded, so that nothing is asked or paid
/// for twice, and every expansion says which model wrote it. Who names a model wants its words: the carried replies of another one
/// are left aside then.
fn chat(
    opening: &Opening,
    carried: bool,
    model: Option<Arc<dyn Chat>>,
) -> Result<Option<Arc<dyn Chat>>, SetupError> {
    let mut recorded = if carried && opening.llm.is_none() {
        Recorded::parse("the sample's replies", sample::REPLIES)?
    } else {
        Recorded::default()
    };
    if let Some(path) = &opening.replies {
        recorded = recorded.with(Recorded::read(path)?);
    }
    let journal = opening.data_dir.join("replies.jsonl");
    if recorded.is_empty() && model.is_none() && !journal.exists() {
        return Ok(None);
    }
    Ok(Some(Arc::new(Recording::open(recorded, model, journal)?)))
}

/// One thread a core: BM25 and the screen need little, and the scheduler lets them through.
///
/// # Errors
/// The system gives no threads.
pub fn model_threads() -> Result<rayon::ThreadPool, SetupError> {
    rayon::ThreadPoolBuilder::new()
        .thread_name(|i| format!("model-{i}"))
        .build()
        .map_err(|error| SetupError::Cache(format!("no threads for the models: {error}")))
}

pub(super) fn unwritable(place: &Path, error: &std::io::Error) -> String {
    format!(
        "{} cannot be used ({error}); make room there or name another folder with --data-dir",
        place.display()
    )
}
