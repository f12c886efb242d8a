//! Opens the models that the user named: language models, readers and detectors.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::recipe::RunFile;
use crate::corpus::sample;
use crate::detect::{
    Choice, CrossEncoder, CustomCrossEncoder, DetectError, Detector, EnglishOnly, Fitted, Predictions,
    PromptedDetector, Refitted,
};
use crate::encode::{EmbedError, EncodeError, Encoder, ImportError, Named, PassageScorer, Source};
use crate::encode::{LateScorer, SparseEncoder, Vectors};
use crate::input::{self, InputError};
use crate::llm::{self, AT_ONCE, BadEndpoint, Chat, Job, Prompts, Recorded, Recording};
use crate::read;
use crate::read::{Answers, Prompted, Reader};
use crate::retrieve::RetrieveError;
use crate::retrieve::impact::ImpactIndex;
use crate::retrieve::late::TokenIndex;

/// The folder in the data folder for models from the hub.
pub const MODELS: &str = "models";

/// The options that say what to open.
#[derive(Clone, Debug, Default)]
pub struct Opening {
    /// A corpus, by its file, folder or name. Default: the built-in sample.
    pub corpus: Option<PathBuf>,
    /// A question set. Default: that of the sample for the sample, else none.
    pub questions: Option<PathBuf>,
    /// A label file with its declaration. Default: that of the sample for the sample, else none.
    pub labels: Option<String>,
    /// The finished runs among the lanes. If no corpus is named, the passages in them are the corpus.
    pub runs: Vec<RunFile>,
    /// The detector.
    pub detector: Choice,
    /// A threshold fitted on labels by hand. Default: the detector's own.
    pub threshold: Option<PathBuf>,
    /// The folder for indices, models and verdicts.
    pub data_dir: PathBuf,
    /// A language model: the address of an OpenAI-compatible server and the model's name there, or `gguf:FILE`, which holds its own name.
    pub llm: Option<(String, String)>,
    /// The number of requests to the language model that run at once. Default: four.
    pub at_once: Option<usize>,
    /// The model whose recorded replies are used when no language model is named. Default: any model's.
    pub llm_model: Option<String>,
    /// A file of recorded replies, which are used before a language model is asked.
    pub replies: Option<PathBuf>,
    /// Prompts that replace built-in ones: files, or names of built-in ones.
    pub prompts: Vec<PathBuf>,
    /// A file of recorded answers of a reader (`read::Answers`).
    pub answers: Option<PathBuf>,
    /// A folder with a reading model (`read::custom`).
    pub reader: Option<PathBuf>,
    /// Journals of labels by hand, or folders of them. Default: those of the corpus.
    pub journals: Vec<PathBuf>,
    /// The name under which labels are written. Default: the system's name of the user.
    pub annotator: Option<String>,
    /// Whether no server may be contacted: no hub, no language model, no search engine.
    pub offline: bool,
    /// The folder for the journals of each corpus. Default: in `data_dir`. That folder is a cache, and labels by hand cannot be made again,
    /// so programs should name another one.
    pub annotations: Option<PathBuf>,
}

/// Why something could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// One of the user's files cannot be read or has bad lines.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The corpus could not be imported or opened.
    #[error(transparent)]
    Corpus(#[from] crate::corpus::BuildError),
    /// The term index could not be built or read.
    #[error(transparent)]
    Terms(#[from] RetrieveError),
    /// Vectors made by another program could not be imported.
    #[error(transparent)]
    Ready(#[from] ImportError),
    /// The encoder could not be loaded.
    #[error(transparent)]
    Encoder(#[from] EncodeError),
    /// The corpus could not be embedded.
    #[error(transparent)]
    Embedding(#[from] EmbedError),
    /// The detector could not be loaded.
    #[error(transparent)]
    Detector(#[from] DetectError),
    /// A folder or file in the data folder cannot be used.
    #[error("{} cannot be used ({error}); make room there or name another folder with --data-dir", place.display())]
    Folder {
        /// The folder or file.
        place: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// The cache of verdicts cannot be opened, not even in memory.
    #[error("verdicts cannot be kept: {0}")]
    Verdicts(#[from] rusqlite::Error),
    /// The language model's address or file is not valid.
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

/// A part that is made once, when it is first needed.
pub(super) struct Part<T: ?Sized>(Mutex<Option<Arc<T>>>);

impl<T: ?Sized> Default for Part<T> {
    fn default() -> Self {
        Part::new()
    }
}

impl<T: ?Sized> Part<T> {
    pub(super) const fn new() -> Self {
        Part(Mutex::new(None))
    }

    pub(super) fn get<E>(&self, make: impl FnOnce() -> Result<Arc<T>, E>) -> Result<Arc<T>, E> {
        let mut part = self.0.lock();
        match &*part {
            Some(value) => Ok(Arc::clone(value)),
            None => Ok(Arc::clone(part.insert(make()?))),
        }
    }
}

/// One encoder with its vectors, or one learned sparse or late-interaction model with its index. All lanes share it, so that its weights are in memory once.
#[derive(Default)]
pub(super) struct EncoderSlot {
    pub(super) encoder: Part<dyn Encoder>,
    pub(super) vectors: Part<Vectors>,
    pub(super) sparse: Part<SparseEncoder>,
    pub(super) impacts: Part<ImpactIndex>,
    pub(super) late: Part<LateScorer>,
    pub(super) tokens: Part<TokenIndex>,
}

/// All encoders in use; the built-in one has no name.
pub(super) type EncoderStore = Mutex<Vec<(Option<Named>, Arc<EncoderSlot>)>>;

/// All re-rankers in use.
pub(super) type RerankerStore = Mutex<Vec<(Source, Arc<Part<dyn PassageScorer>>)>>;

/// Opens the language model that the user named.
///
/// # Errors
/// The server's address is not valid, or the file is not a model that can be read.
pub(super) fn language_model(opening: &Opening) -> Result<Option<Arc<dyn Chat>>, SetupError> {
    let Some((llm, model)) = &opening.llm else { return Ok(None) };
    if opening.offline && !llm.trim().starts_with("gguf:") {
        return Err(SetupError::Offline);
    }
    Ok(Some(llm::named(llm, model, opening.at_once.unwrap_or(AT_ONCE))?))
}

/// Opens the source of expansions: recorded replies first, then the model. The model's replies are recorded, so that nothing is asked
/// or paid for twice, and every expansion says which model wrote it. If the user names a model, replies of others are not used.
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
    let journal = opening.data_dir.join(REPLIES);
    if recorded.is_empty() && model.is_none() && !journal.exists() {
        return Ok(None);
    }
    let named = opening.llm_model.as_ref().filter(|_| model.is_none());
    let recording = Recording::open(recorded, model, journal)?;
    Ok(Some(Arc::new(match named {
        Some(model) => recording.of_model(model),
        None => recording,
    })))
}

/// The language models that lanes name, each opened when it is first needed.
pub(super) struct NamedChats {
    opening: Opening,
    sample: bool,
    /// The model that the user named for all lanes.
    model: Option<Arc<dyn Chat>>,
    open: Mutex<Vec<(String, Arc<dyn Chat>)>>,
}

impl NamedChats {
    pub(super) fn new(opening: &Opening, sample: bool, model: Option<Arc<dyn Chat>>) -> Self {
        NamedChats { opening: opening.clone(), sample, model, open: Mutex::default() }
    }

    /// The model of this name: recorded replies first, then the server, if one is named. A GGUF file holds one model only.
    ///
    /// # Errors
    /// A file of recorded replies cannot be read, or the server's address is not valid.
    pub(super) fn get(&self, name: &str) -> Result<Arc<dyn Chat>, SetupError> {
        let mut open = self.open.lock();
        if let Some((_, chat)) = open.iter().find(|(known, _)| known == name) {
            return Ok(Arc::clone(chat));
        }
        let mut opening = self.opening.clone();
        opening.llm_model = Some(name.to_owned());
        opening.llm = opening.llm.filter(|(llm, _)| !llm.trim().starts_with("gguf:"));
        opening.llm = opening.llm.map(|(url, _)| (url, name.to_owned()));
        let model = match &self.model {
            Some(model) if model.model() == name => Some(Arc::clone(model)),
            _ => language_model(&opening)?,
        };
        let chat: Arc<dyn Chat> = match expansion_chat(&opening, self.sample, model)? {
            Some(chat) => chat,
            // Its name stands in the note that it has no replies.
            None => Arc::new(
                Recording::open(Recorded::default(), None, opening.data_dir.join(REPLIES))?.of_model(name),
            ),
        };
        open.push((name.to_owned(), Arc::clone(&chat)));
        Ok(chat)
    }
}

/// The journal of replies in the data folder.
const REPLIES: &str = "replies.jsonl";

/// Selects the replies of the model that the user named, if any. If a language model can be asked, names are compared later.
fn of_model(recorded: Recorded, opening: &Opening) -> Recorded {
    match &opening.llm_model {
        Some(model) if opening.llm.is_none() => recorded.of_model(model),
        _ => recorded,
    }
}

/// Starts one thread per core. BM25 and the screen use other threads; they need little time.
///
/// # Errors
/// The system gives no threads.
pub fn model_threads() -> Result<rayon::ThreadPool, SetupError> {
    Ok(rayon::ThreadPoolBuilder::new().thread_name(|i| format!("model-{i}")).build()?)
}

/// Makes the error for a folder that cannot be used.
pub(super) fn unusable(place: &Path) -> impl Fn(std::io::Error) -> SetupError + '_ {
    |error| SetupError::Folder { place: place.to_owned(), error }
}

/// The folder in the data folder for the replies of models that read or judge answers, one file per model.
const READ: &str = "read";

/// Chooses the reader, in this order: recorded answers, a reading model from a folder, a general language model.
///
/// Notes about its damaged record go to `notes`. The folder is checked here; the model's weights are loaded when it is first asked.
pub(super) fn reader(
    opening: &Opening,
    model: Option<Arc<dyn Chat>>,
    prompts: &Prompts,
    notes: &mut Vec<String>,
) -> Result<Option<Arc<dyn Reader>>, InputError> {
    if let Some(path) = &opening.answers {
        return Ok(Some(Arc::new(Answers::read(path)?)));
    }
    if let Some(folder) = &opening.reader {
        return Ok(Some(Arc::new(read::LazyReader::at(folder)?)));
    }
    let chat = reading_chat(opening, model)?;
    notes.extend(chat.as_ref().and_then(|chat| chat.damage()));
    Ok(chat.map(|chat| prompted_reader(chat, prompts)))
}

/// Opens the language model that judges answers and the reader, without a corpus; `None` for one that the user did not name. The
/// weights of a reading model are loaded at once.
///
/// # Errors
/// A file cannot be read, or the server's address is not valid.
#[allow(clippy::type_complexity)]
pub fn readers(opening: &Opening) -> Result<(Option<Arc<dyn Chat>>, Option<Arc<dyn Reader>>), SetupError> {
    let (chat, prompts) =
        (reading_chat(opening, language_model(opening)?)?, Prompts::with(&opening.prompts)?);
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

/// Recorded replies first, then the model. Each model records into its own file, because the next model gets the same prompts and
/// must not be given another's replies.
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
    let journal = opening.data_dir.join(READ).join(file_name(model.model()));
    Ok(Some(Arc::new(Recording::open(recorded, Some(model), journal)?)))
}

/// The name of a model's file: the model's name with characters that every system allows, and a hash that keeps it unique.
fn file_name(model: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let slug: String = model.chars().take(40).map(plain).collect();
    format!("{slug}-{}.jsonl", &blake3::hash(model.as_bytes()).to_hex()[..12])
}

/// The folder in the data folder for the replies of prompted detectors, one file per model.
const JUDGED: &str = "judged";

/// A language model that judges, and the threads that wait for its verdicts.
pub(super) struct Judges {
    pub(super) detector: Arc<dyn Detector>,
    pub(super) model: String,
    pub(super) threads: rayon::ThreadPool,
}

/// Opens a detector without a corpus, with the fitted threshold if there is one.
///
/// # Errors
/// It cannot be loaded, there is no language model to ask, or the threshold was fitted for another detector.
pub fn detector(
    choice: &Choice,
    fitted: Option<&Fitted>,
    opening: &Opening,
) -> Result<Arc<dyn Detector>, SetupError> {
    let own = match choice {
        Choice::Llm => {
            prompted_detector(opening, language_model(opening)?, &Prompts::with(&opening.prompts)?)?.0
        }
        choice => load_detector(choice, &opening.data_dir.join(MODELS))?,
    };
    with_threshold(own, fitted)
}

/// Loads a detector that runs in this process.
pub(super) fn load_detector(choice: &Choice, models: &Path) -> Result<Arc<dyn Detector>, SetupError> {
    Ok(match choice {
        Choice::Custom { source, supports } => {
            Arc::new(CustomCrossEncoder::load(source, supports.as_deref(), models)?)
        }
        Choice::File(file) => Arc::new(Predictions::read(file)?),
        _ => Arc::new(EnglishOnly(Arc::new(CrossEncoder::builtin()?))),
    })
}

/// The detector with the fitted threshold, if there is one.
pub(super) fn with_threshold(
    own: Arc<dyn Detector>,
    fitted: Option<&Fitted>,
) -> Result<Arc<dyn Detector>, SetupError> {
    Ok(match fitted {
        Some(fitted) => Arc::new(Refitted::new(own, fitted.clone())?),
        None => own,
    })
}

/// Opens the language model that judges, if the detector is one. It is opened early, so that an error is reported before anything waits.
pub(super) fn judges(
    opening: &Opening,
    model: Option<Arc<dyn Chat>>,
    prompts: &Prompts,
) -> Result<Option<Judges>, SetupError> {
    if opening.detector != Choice::Llm {
        return Ok(None);
    }
    let (detector, model) = prompted_detector(opening, model, prompts)?;
    let threads = rayon::ThreadPoolBuilder::new()
        .num_threads(detector.at_once().unwrap_or(AT_ONCE))
        .thread_name(|i| format!("judge-{i}"));
    Ok(Some(Judges { detector, model, threads: threads.build()? }))
}

/// Opens a prompted detector and returns the model's name with it. Replies are recorded as in [`reading_chat`].
fn prompted_detector(
    opening: &Opening,
    model: Option<Arc<dyn Chat>>,
    prompts: &Prompts,
) -> Result<(Arc<dyn Detector>, String), SetupError> {
    let (recorded, mut bytes) = match &opening.replies {
        Some(path) => (of_model(Recorded::read(path)?, opening), input::text(path)?),
        None if model.is_some() => (Recorded::default(), String::new()),
        None => return Err(SetupError::NoModel),
    };
    let name = model.as_ref().map_or_else(|| recorded.model(), |model| model.model()).to_owned();
    // Two servers may have different models of one name, so the server is part of the key. The name of a GGUF file has its hash.
    let server = opening.llm.as_ref().map(|(url, _)| url.trim().trim_end_matches('/'));
    let server = server.filter(|url| !url.starts_with("gguf:")).unwrap_or_default();
    let prompt = Arc::clone(prompts.get(Job::Detect));
    // A name selects among the recorded replies.
    if let (None, Some(selected)) = (&opening.llm, &opening.llm_model) {
        bytes.push('\0');
        bytes.push_str(selected);
    }
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
    fn the_name_that_selects_recorded_replies_is_part_of_the_detectors_key() {
        let folder = tempfile::tempdir().unwrap();
        let replies = folder.path().join("replies.jsonl");
        std::fs::write(&replies, "\n").unwrap();
        let key = |model: Option<&str>| {
            let opening = Opening {
                data_dir: folder.path().into(),
                replies: Some(replies.clone()),
                llm_model: model.map(str::to_owned),
                ..Opening::default()
            };
            let prompts = Prompts::with(&opening.prompts).unwrap();
            prompted_detector(&opening, None, &prompts).unwrap().0.key().to_owned()
        };
        assert_ne!(key(Some("m-2024")), key(Some("m-2025")));
        assert_ne!(key(Some("m-2024")), key(None));
    }

    #[test]
    fn names_that_look_alike_have_files_of_their_own() {
        assert!(file_name("org/Model:8b").starts_with("org-model-8b-"), "{}", file_name("org/Model:8b"));
        assert_ne!(file_name("org/Model:8b"), file_name("org-model-8b"));
        assert!(file_name(&"../".repeat(100)).len() < 70 && file_name("../x").starts_with("---x-"));
    }
}
