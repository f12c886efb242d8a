//! What the user named, and the models made from it: language models, readers and detectors.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::recipe::RunFile;
use crate::corpus::sample;
use crate::detect::{
    Choice, CrossEncoder, CustomCrossEncoder, DetectError, Detector, EnglishOnly, Fitted, Predictions,
    PromptedDetector, Refitted,
};
use crate::encode::{EmbedError, EncodeError, Encoder, Named, ReadyError, Vectors};
use crate::input::{self, InputError};
use crate::llm::{self, AT_ONCE, BadEndpoint, Chat, Job, Prompts, Recorded, Recording};
use crate::read;
use crate::read::{Answers, Prompted, Reader};
use crate::retrieve::RetrieveError;

/// The folder in the data folder where models from the hub are kept.
pub const MODELS: &str = "models";

/// What to open, as the user named it.
#[derive(Clone, Debug, Default)]
pub struct Opening {
    /// A corpus, by its file, folder or name, else the built-in sample.
    pub corpus: Option<PathBuf>,
    /// A question set, else that of the sample (with its corpus) or none.
    pub questions: Option<PathBuf>,
    /// A label file with its declaration, else those of the sample or none.
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
    /// How many requests to the language model run at once. Default: four.
    pub at_once: Option<usize>,
    /// The model whose recorded replies count, where there is no model to ask. Default: any.
    pub llm_model: Option<String>,
    /// Replies recorded before, which are taken instead of asking.
    pub replies: Option<PathBuf>,
    /// Prompts in place of the built-in ones: files, or names of built-in ones.
    pub prompts: Vec<PathBuf>,
    /// Answers that a reader gave before (`read::Answers`).
    pub answers: Option<PathBuf>,
    /// A folder with a model that reads (`read::custom`).
    pub reader: Option<PathBuf>,
    /// Journals of labels by hand, or folders of them, instead of those kept for the corpus.
    pub journals: Vec<PathBuf>,
    /// Under which name labels are written; the system's name of the user if not given.
    pub annotator: Option<String>,
    /// No server is contacted: no hub, no language model, no search engine.
    pub offline: bool,
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
    Corpus(#[from] crate::corpus::BuildError),
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
    /// A folder below the data folder cannot be used.
    #[error("{} cannot be used ({error}); make room there or name another folder with --data-dir", place.display())]
    Folder {
        /// The folder or file.
        place: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// Verdicts cannot be kept, not even in memory.
    #[error("verdicts cannot be kept: {0}")]
    Verdicts(#[from] rusqlite::Error),
    /// The language model's address or file is not right.
    #[error(transparent)]
    Llm(#[from] BadEndpoint),
    /// A language model behind a server was named, and no server may be contacted.
    #[error("--offline: no language model behind a server is asked; leave --llm out, or --offline")]
    Offline,
    /// The detector is a language model and none was named.
    #[error(
        "the detector llm has no model to ask; give --llm URL and --llm-model NAME, or recorded replies with --replies FILE"
    )]
    NoModel,
    /// The system gives no threads.
    #[error("no threads for the models: {0}")]
    Threads(#[from] rayon::ThreadPoolBuildError),
}

/// A part that is made when first asked for.
pub(super) struct Part<T: ?Sized>(Mutex<Option<Arc<T>>>);

impl<T: ?Sized> Part<T> {
    pub(super) const fn new() -> Self {
        Part(Mutex::new(None))
    }

    pub(super) fn get<E>(&self, make: impl FnOnce() -> Result<Arc<T>, E>) -> Result<Arc<T>, E> {
        let mut part = self.0.lock();
        match &*part {
            Some(made) => Ok(Arc::clone(made)),
            None => Ok(Arc::clone(part.insert(make()?))),
        }
    }
}

/// What belongs to one encoder: its weights are in memory once, however many lanes read it.
pub(super) struct EncoderSlot {
    pub(super) encoder: Part<dyn Encoder>,
    pub(super) vectors: Part<Vectors>,
}

/// A slot for each encoder; the built-in one has no name.
pub(super) type EncoderStore = Mutex<Vec<(Option<Named>, Arc<EncoderSlot>)>>;

/// The language model that was named.
///
/// # Errors
/// The server's address is none, or the file is no model that can be read.
pub(super) fn client(opening: &Opening) -> Result<Option<Arc<dyn Chat>>, SetupError> {
    let Some((llm, model)) = &opening.llm else { return Ok(None) };
    if opening.offline && !llm.trim().starts_with("gguf:") {
        return Err(SetupError::Offline);
    }
    Ok(Some(llm::named(llm, model, opening.at_once.unwrap_or(AT_ONCE))?))
}

/// What writes expansions: recorded replies first, then the model. What a model writes is recorded, so that nothing is asked or paid
/// for twice, and every expansion says which model wrote it. If the user names a model, replies of others are not used.
pub(super) fn expansion_chat(
    opening: &Opening,
    sample: bool,
    model: Option<Arc<dyn Chat>>,
) -> Result<Option<Arc<dyn Chat>>, SetupError> {
    let mut recorded = Recorded::default();
    if sample {
        recorded = of_model(Recorded::parse("the sample's replies", sample::REPLIES)?, opening);
    }
    if let Some(path) = &opening.replies {
        recorded = recorded.with(of_model(Recorded::read(path)?, opening));
    }
    let journal = opening.data_dir.join("replies.jsonl");
    if recorded.is_empty() && model.is_none() && !journal.exists() {
        return Ok(None);
    }
    Ok(Some(Arc::new(Recording::open(recorded, model, journal)?)))
}

/// Replies of the model that was named, or all of them. Where there is a server or a file, its name is compared later.
fn of_model(recorded: Recorded, opening: &Opening) -> Recorded {
    match &opening.llm_model {
        Some(model) if opening.llm.is_none() => recorded.of_model(model),
        _ => recorded,
    }
}

/// One thread a core: BM25 and the screen need little, and the scheduler lets them through.
///
/// # Errors
/// The system gives no threads.
pub fn model_threads() -> Result<rayon::ThreadPool, SetupError> {
    Ok(rayon::ThreadPoolBuilder::new().thread_name(|i| format!("model-{i}")).build()?)
}

/// What a folder that cannot be used becomes.
pub(super) fn unusable(place: &Path) -> impl Fn(std::io::Error) -> SetupError + '_ {
    |error| SetupError::Folder { place: place.to_owned(), error }
}

/// Where the replies of models that read or judge answers are kept, in the data folder: a file a model.
const READ: &str = "read";

/// Answers from a file before a model's, and a model that was made to read before one that can be asked anything.
///
/// A reader from a folder is looked at here, and its weights are read when it is first asked.
pub(super) fn reader(
    opening: &Opening,
    model: Option<Arc<dyn Chat>>,
    prompts: &Prompts,
) -> Result<Option<Arc<dyn Reader>>, InputError> {
    if let Some(path) = &opening.answers {
        return Ok(Some(Arc::new(Answers::read(path)?)));
    }
    if let Some(folder) = &opening.reader {
        return Ok(Some(Arc::new(read::LazyReader::at(folder)?)));
    }
    Ok(reading_chat(opening, model)?.map(|chat| prompted_reader(chat, prompts)))
}

/// What reads and what judges answers, without a corpus: both only where the user named them. All of a reader is read at once.
///
/// # Errors
/// A file is not right, or the server's address is none.
#[allow(clippy::type_complexity)]
pub fn readers(opening: &Opening) -> Result<(Option<Arc<dyn Chat>>, Option<Arc<dyn Reader>>), SetupError> {
    let (chat, prompts) = (reading_chat(opening, client(opening)?)?, Prompts::with(&opening.prompts)?);
    let reader = match (&opening.answers, &opening.reader) {
        (None, None) => chat.clone().map(|chat| prompted_reader(chat, &prompts)),
        (None, Some(folder)) => Some(read::open(folder)?),
        (Some(path), _) => Some(Arc::new(Answers::read(path)?) as Arc<dyn Reader>),
    };
    Ok((chat, reader))
}

fn prompted_reader(chat: Arc<dyn Chat>, prompts: &Prompts) -> Arc<dyn Reader> {
    Arc::new(Prompted::new(chat, prompts.clone()))
}

/// The replies that were named, then the model. What it says is recorded in a file of its own: what one model was asked is asked in
/// the same words of the next, and must not be answered for it.
fn reading_chat(
    opening: &Opening,
    model: Option<Arc<dyn Chat>>,
) -> Result<Option<Arc<dyn Chat>>, InputError> {
    let recorded = match &opening.replies {
        Some(path) => of_model(Recorded::read(path)?, opening),
        None => Recorded::default(),
    };
    let Some(model) = model else {
        return Ok(opening.replies.is_some().then(|| Arc::new(recorded) as Arc<dyn Chat>));
    };
    let journal = opening.data_dir.join(READ).join(file(model.model()));
    Ok(Some(Arc::new(Recording::open(recorded, Some(model), journal)?)))
}

/// The name of a model's file: its own as far as every system takes it, and a hash that distinguishes it.
fn file(model: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let slug: String = model.chars().take(40).map(plain).collect();
    format!("{slug}-{}.jsonl", &blake3::hash(model.as_bytes()).to_hex()[..12])
}

/// Where a prompted detector's replies are kept, in the data folder: a file a model.
const JUDGED: &str = "judged";

/// A language model that judges, and the threads that wait for its server.
pub(super) struct Judges {
    pub(super) detector: Arc<dyn Detector>,
    pub(super) model: String,
    pub(super) threads: rayon::ThreadPool,
}

/// A detector without a corpus, with the threshold that was fitted for it where there is one.
///
/// # Errors
/// It cannot be loaded, there is no language model to ask, or the threshold is of another one.
pub fn detector(
    choice: &Choice,
    fitted: Option<&Fitted>,
    opening: &Opening,
) -> Result<Arc<dyn Detector>, SetupError> {
    let own = match choice {
        Choice::Llm => prompted(opening, client(opening)?, &Prompts::with(&opening.prompts)?)?.0,
        choice => loaded(choice, &opening.data_dir.join(MODELS))?,
    };
    refitted(own, fitted)
}

/// The detectors that run here.
pub(super) fn loaded(choice: &Choice, models: &Path) -> Result<Arc<dyn Detector>, SetupError> {
    Ok(match choice {
        Choice::Custom { source, supports } => {
            Arc::new(CustomCrossEncoder::load(source, supports.as_deref(), models)?)
        }
        Choice::File(file) => Arc::new(Predictions::read(file)?),
        _ => Arc::new(EnglishOnly(Arc::new(CrossEncoder::builtin()?))),
    })
}

pub(super) fn refitted(
    own: Arc<dyn Detector>,
    fitted: Option<&Fitted>,
) -> Result<Arc<dyn Detector>, SetupError> {
    Ok(match fitted {
        Some(fitted) => Arc::new(Refitted::new(own, fitted.clone())?),
        None => own,
    })
}

/// The language model where it is to judge: opened at once, so that a missing one is reported before anything waits.
pub(super) fn judges(
    opening: &Opening,
    model: Option<Arc<dyn Chat>>,
    prompts: &Prompts,
) -> Result<Option<Judges>, SetupError> {
    if opening.detector != Choice::Llm {
        return Ok(None);
    }
    let (detector, model) = prompted(opening, model, prompts)?;
    let threads = rayon::ThreadPoolBuilder::new()
        .num_threads(detector.at_once().unwrap_or(AT_ONCE))
        .thread_name(|i| format!("judge-{i}"));
    Ok(Some(Judges { detector, model, threads: threads.build()? }))
}

/// The replies that were named, then the model. What it says is recorded in a file of its own: what one model was asked is asked in
/// the same words of the next, and must not be answered for it.
fn prompted(
    opening: &Opening,
    model: Option<Arc<dyn Chat>>,
    prompts: &Prompts,
) -> Result<(Arc<dyn Detector>, String), SetupError> {
    let (recorded, bytes) = match &opening.replies {
        Some(path) => (of_model(Recorded::read(path)?, opening), input::text(path)?),
        None if model.is_some() => (Recorded::default(), String::new()),
        None => return Err(SetupError::NoModel),
    };
    let name = model.as_ref().map_or_else(|| recorded.model(), |model| model.model()).to_owned();
    // A model of that name elsewhere may be another one; a file's name holds a hash of what it is.
    let server = opening.llm.as_ref().map(|(url, _)| url.trim().trim_end_matches('/'));
    let server = server.filter(|url| !url.starts_with("gguf:")).unwrap_or_default();
    let prompt = Arc::clone(prompts.get(Job::Detect));
    let key = PromptedDetector::key_of(&name, &prompt, server, bytes.as_bytes());
    let journal = opening.data_dir.join(JUDGED).join(format!("{key}.jsonl"));
    let (recording, own) = (Recording::open(recorded, model, journal)?, Arc::clone(&prompt));
    let chat = recording.keeping(move |reply| PromptedDetector::usable(&own, reply));
    let detector = PromptedDetector::new(Arc::new(chat), prompt, key);
    Ok((Arc::new(detector.with_at_once(opening.at_once.unwrap_or(AT_ONCE))), name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_look_alike_have_files_of_their_own() {
        assert!(file("org/Model:8b").starts_with("org-model-8b-"), "{}", file("org/Model:8b"));
        assert_ne!(file("org/Model:8b"), file("org-model-8b"));
        assert!(file(&"../".repeat(100)).len() < 70 && file("../x").starts_with("---x-"));
    }
}
