//! The open corpus with its indices, models and labels.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, Weak};

use lru::LruCache;
use parking_lot::{Mutex, RwLock};

use super::opening::{
    EncoderStore, Judges, MODELS, NamedChats, Opening, Part, RerankerStore, SetupError, expansion_chat,
    judges, language_model, model_threads, reader, unusable,
};
use super::recipe::RunFile;
use super::run_files::RunFiles;
use crate::annotate::{Human, is_name, journals};
use crate::corpus::library::{Called, Library};
use crate::corpus::source::{CorpusFormat, Source};
use crate::corpus::store::Fields;
use crate::corpus::{BuildError, Corpus, Passage, PassageIx, results, sample};
use crate::detect::labels::Absent;
use crate::detect::{Cache, Choice, Detector, Fitted, LabelSource, Labels, Predictions, foreign_corpus};
use crate::input::{Expected, InputError};
use crate::llm::{Chat, Prompts};
use crate::measure::trec::RunOrder;
use crate::question::pir::{self, Task};
use crate::question::{self, Question};
use crate::read::Reader;
use crate::remote::Remotes;
use crate::retrieve::{RetrieveError, TermIndex};
use crate::storage::checked::{Damaged, open_sums, sum_folder};
use crate::storage::{replace, replace_folder};
use crate::work::{OnProgress, Stop, Stopped};

/// Everything that is needed to run queries.
pub struct Setup {
    /// The passages.
    pub corpus: Arc<Corpus>,
    /// The question set; may be empty.
    pub questions: Vec<Question>,
    /// Gold labels, from the label file or the sample.
    pub labels: Option<Labels>,
    /// Finished runs that lanes read.
    pub runs: RunFiles,
    /// Engines on other machines that lanes ask.
    pub remotes: Remotes,
    /// Labels by hand, which change while the user labels.
    pub(super) human: RwLock<Human>,
    /// The folder for annotators' journals on this corpus that belong to no project.
    pub journals: PathBuf,
    /// The journal or folder that the user named for new labels; `None` if they go to `journals`.
    pub named_journal: Option<PathBuf>,
    /// The journals, or folders of them, whose labels count.
    pub(super) label_paths: Vec<PathBuf>,
    /// The name under which labels are written.
    pub annotator: String,
    /// Notes about the labels: lines that do not count, and why.
    pub notes: Vec<String>,
    /// What was damaged on disk, where it was set aside, and what is made again.
    pub damage: Vec<String>,
    /// The cache of verdicts.
    pub verdicts: Cache,
    /// Writes expansions: recorded replies first, then the language model, if there is one.
    pub chat: Option<Arc<dyn Chat>>,
    pub(super) named_chats: NamedChats,
    /// The prompts for language models.
    pub prompts: Prompts,
    /// Answers from passages: recorded answers, a reading model from a folder, or a general language model with recorded replies.
    pub reader: Option<Arc<dyn Reader>>,
    /// The threads that models run on.
    pub models: rayon::ThreadPool,
    /// The folder of this corpus's indices; `None` for the sample, which is indexed in memory.
    pub(super) folder: Option<PathBuf>,
    pub(super) library: Library,
    pub(super) terms: Part<TermIndex>,
    pub(super) encoders: EncoderStore,
    pub(super) rerankers: RerankerStore,
    pub(super) judges: Option<Judges>,
    pub(super) choice: Choice,
    pub(super) detector: Part<dyn Detector>,
    pub(super) models_folder: PathBuf,
    /// The language model that the user named.
    pub(super) llm: Option<(String, String)>,
    pub(super) offline: bool,
    pub(super) fitted: Option<Fitted>,
    pub(super) fields: Part<Fields>,
    /// The least and the median of the greatest similarities of the set's questions to a passage.
    pub(super) nearness: OnceLock<(f32, f32)>,
    pub(super) shown: Shown,
}

/// Passages of lists that still exist: hundreds of lists are kept for undo, and most hold the same passages.
pub(super) struct Shown(Mutex<LruCache<PassageIx, Weak<Passage>>>);

impl Shown {
    fn new() -> Self {
        const REMEMBERED: NonZeroUsize = NonZeroUsize::new(1 << 16).unwrap();
        Shown(Mutex::new(LruCache::new(REMEMBERED)))
    }

    /// The passage at a position, read anew only if no list holds it.
    pub(super) fn get(&self, at: PassageIx, read: impl FnOnce() -> Passage) -> Arc<Passage> {
        if let Some(held) = self.0.lock().get(&at).and_then(Weak::upgrade) {
            return held;
        }
        let passage = Arc::new(read());
        self.0.lock().put(at, Arc::downgrade(&passage));
        passage
    }
}

impl Setup {
    /// Opens the corpus, models and labels that the user named; imports and indexes a new corpus.
    ///
    /// # Errors
    /// See [`SetupError`].
    pub fn open(opening: &Opening, on_progress: OnProgress<'_>, stop: &Stop) -> Result<Self, SetupError> {
        let library = Library::at(&opening.data_dir);
        let task = opening.corpus.as_deref().map(pir::as_corpus).transpose()?.flatten();
        let stored = task.as_ref().map(|task| store_texts(task, &opening.data_dir)).transpose()?;
        let named = match stored.as_ref().or(opening.corpus.as_ref()) {
            Some(path) => Some(library.named(path)?),
            None => corpus_of_runs(&opening.runs, stop)?.map(Called::Source),
        };
        let is_sample = named.is_none();
        let asked = task.as_ref().map(Task::questions);
        let questions = match (&opening.questions, &named) {
            (Some(path), _) => question::set::read(path)?,
            _ if asked.is_some() => asked.iter().flatten().map(|(question, _)| question.clone()).collect(),
            (None, None) => question::set::builtin(sample::QUESTIONS),
            (None, Some(Called::Source(source))) if source.format == CorpusFormat::Results => {
                questions_of_runs(source.paths())?
            }
            (None, Some(_)) => Vec::new(),
        };
        let mut labels = match &opening.labels {
            Some(name) => Some(Labels::read(name, &questions)?),
            None if is_sample => Some(Labels::builtin(sample::LABELS, &questions, Absent::No)?),
            // The gold of the task's own queries.
            None => {
                match asked.as_ref().filter(|_| opening.questions.is_none()).map(|asked| gold_of(asked)) {
                    Some(gold) if !gold.is_empty() => Some(Labels::builtin(&gold, &questions, Absent::No)?),
                    _ => None,
                }
            }
        };
        let (mut corpus, folder) = match &named {
            None => (sample::corpus(), None),
            Some(named) => {
                let corpus = library.open_named(named, on_progress, stop)?;
                let folder = library.folder(&corpus.fingerprint);
                (corpus, Some(folder))
            }
        };
        if let Some(labels) = &mut labels {
            labels.resolve_text_ids(&corpus);
        }
        if let Some(task) = &task {
            corpus.name.clone_from(&task.name);
        }
        let annotations = opening.annotations.clone().unwrap_or_else(|| opening.data_dir.join("annotate"));
        let place = annotations.join(&corpus.fingerprint.0);
        let (human, mut notes) = human(opening, &place, &corpus, &questions)?;
        if let (Some(labels), Some(_)) = (&labels, &opening.labels) {
            notes.extend(unused_labels(labels, &corpus, &questions));
        }
        notes.extend(file_note(&opening.detector, &corpus, &questions)?);
        notes.extend(language_note(opening, &corpus, &questions));
        let fitted = opening.threshold.as_deref().map(Fitted::read).transpose()?;
        notes.extend(fitted.as_ref().map(Fitted::described));
        let model = language_model(opening)?;
        let chat = expansion_chat(opening, is_sample, model.clone())?;
        let named_chats = NamedChats::new(opening, is_sample, model.clone());
        let prompts = Prompts::with(&opening.prompts)?;
        let judges = judges(opening, model.clone(), &prompts)?;
        let mut damage = Vec::new();
        let reader = reader(opening, model, &prompts, &mut damage)?;
        damage.extend(chat.as_ref().and_then(|chat| chat.damage()));
        let verdicts = Cache::open(&opening.data_dir)?;
        let mut setup = Setup {
            human: RwLock::new(human),
            label_paths: label_paths(opening, &place),
            journals: place,
            named_journal: opening.journals.first().cloned(),
            annotator: opening.annotator.clone().unwrap_or_else(annotator),
            notes,
            corpus: Arc::new(corpus),
            questions,
            labels,
            damage,
            verdicts,
            runs: RunFiles::default(),
            remotes: Remotes::new(opening.offline),
            chat,
            named_chats,
            prompts,
            reader,
            models: model_threads()?,
            judges,
            folder,
            library,
            terms: Part::new(),
            encoders: Mutex::default(),
            rerankers: Mutex::default(),
            choice: opening.detector.clone(),
            detector: Part::new(),
            fitted,
            fields: Part::new(),
            nearness: OnceLock::new(),
            shown: Shown::new(),
            models_folder: opening.data_dir.join(MODELS),
            llm: opening.llm.clone(),
            offline: opening.offline,
        };
        if setup.folder.is_some() {
            index_terms(&setup.library, &setup.corpus, on_progress, stop)?;
            check_vectors(&setup.library, &setup.corpus)?;
        }
        setup.corpus.sound().map_err(BuildError::from)?;
        setup.damage.extend(setup.library.take_notes());
        let (corpus, passages) = (&setup.corpus.name, setup.corpus.len());
        tracing::info!(corpus, passages, questions = setup.questions.len(), "opened");
        Ok(setup)
    }

    /// The name of a source in tables: for the label file it may be that of a judge.
    pub fn source_name(&self, source: LabelSource) -> String {
        match (self.counted(source), &self.labels) {
            (LabelSource::Gold, Some(labels)) => labels.source().to_owned(),
            (source, _) => source.to_string(),
        }
    }

    /// The labels of the label file in words.
    pub fn label_words(&self) -> String {
        self.labels.as_ref().map_or_else(|| "gold labels".into(), Labels::described)
    }
}

/// Writes a task's passages into the data folder, as a corpus whose ids are their positions, and returns the file.
///
/// # Errors
/// The folder cannot be written.
pub(super) fn store_texts(task: &Task, data_dir: &Path) -> Result<PathBuf, SetupError> {
    let folder = data_dir.join("texts");
    let unusable = unusable(&folder);
    fs::create_dir_all(&folder).map_err(&unusable)?;
    let corpus = Corpus::of_texts(&task.name, &task.corpus).map_err(|error| unusable(error.into()))?;
    let path = folder.join(format!("{}.jsonl", corpus.fingerprint.0));
    if !path.exists() {
        let mut lines = Vec::new();
        for at in corpus.places() {
            serde_json::to_writer(&mut lines, &corpus.passage(at)).map_err(|error| unusable(error.into()))?;
            lines.push(b'\n');
        }
        replace(&path, &lines).map_err(&unusable)?;
    }
    Ok(path)
}

/// The gold passages of a task's questions as diversity qrels.
fn gold_of(asked: &[(Question, Vec<usize>)]) -> String {
    let lines = asked.iter().flat_map(|(question, gold)| {
        // The ids that `Corpus::of_texts` gives.
        gold.iter().map(|passage| format!("{} 1 {passage:010} 1\n", question.id))
    });
    lines.collect()
}

/// Returns the runs that contain passages, as a corpus; `None` if no run does or the sample holds all of the passages.
///
/// # Errors
/// A run cannot be read, or `stop` was set.
pub fn corpus_of_runs(runs: &[RunFile], stop: &Stop) -> Result<Option<Source>, SetupError> {
    let (mut files, mut known) = (Vec::<PathBuf>::new(), true);
    let sample = sample::corpus();
    for RunFile { path, .. } in runs {
        if stop.is_set() {
            return Err(SetupError::Corpus(Stopped.into()));
        }
        let path = path.canonicalize().map_err(|error| InputError::unreadable(path, &error))?;
        if files.contains(&path) || !results::is_results(&path)? {
            continue;
        }
        let held = |id: &str| sample.find(id).is_some();
        let run = results::read_run(&path, RunOrder::AsGiven, &mut |passage| known &= held(passage.id))?;
        if run.texts {
            files.push(path);
        }
    }
    Ok((!known && !files.is_empty()).then(|| Source::results(files)))
}

/// Returns the questions that runs contain, each once.
///
/// # Errors
/// A run cannot be read or has an invalid question.
pub fn questions_of_runs(files: &[PathBuf]) -> Result<Vec<Question>, SetupError> {
    let mut all: Vec<Question> = Vec::new();
    let mut seen = HashSet::new();
    for file in files {
        for asked in results::read_run(file, RunOrder::AsGiven, &mut |_| {})?.questions() {
            let Some(text) = &asked.text else { continue };
            // If the id is only a copy of the text, number the question instead.
            let id = if asked.id == *text { (all.len() + 1).to_string() } else { asked.id.clone() };
            if !seen.insert(asked.id.clone()) {
                continue;
            }
            let wrong = |Expected(expected)| InputError::Unreadable {
                path: file.clone(),
                reason: format!("question {}: expected {expected}", asked.id),
            };
            all.push(
                question::set::question(id, text, asked.perspectives.clone(), asked.supports)
                    .map_err(wrong)?,
            );
        }
    }
    Ok(all)
}

/// Builds the term index of a corpus of the library if it does not exist.
///
/// # Errors
/// The library cannot be written, or `stop` was set.
pub fn index_terms(
    library: &Library,
    corpus: &Corpus,
    on_progress: OnProgress<'_>,
    stop: &Stop,
) -> Result<(), SetupError> {
    let place = library.folder(&corpus.fingerprint).join(TermIndex::FOLDER);
    if matches!(state(&place)?, State::Sound) {
        return Ok(());
    }
    let _lock = library.lock(&corpus.fingerprint, on_progress, stop)?;
    // Another process may have built it while this one waited.
    match state(&place)? {
        State::Sound => return Ok(()),
        State::Damaged(damaged) => library.set_aside(&place, &damaged)?,
        State::Missing => {}
    }
    let building = place.with_extension("building");
    let unusable = unusable(&place);
    if building.exists() {
        fs::remove_dir_all(&building).map_err(&unusable)?;
    }
    fs::create_dir_all(&building).map_err(&unusable)?;
    TermIndex::build(&building, corpus, on_progress, stop).map_err(|error| match error {
        RetrieveError::Index(reason) => unusable(std::io::Error::other(reason)),
        other => other.into(),
    })?;
    sum_folder(&building, &place).and_then(|()| replace_folder(&building, &place)).map_err(&unusable)
}

/// The state of a derived file or folder.
enum State {
    Sound,
    Missing,
    Damaged(Damaged),
}

fn state(place: &Path) -> Result<State, SetupError> {
    if !place.exists() {
        return Ok(State::Missing);
    }
    match open_sums(place) {
        Ok(_) => Ok(State::Sound),
        Err(error) => match Damaged::of(&error) {
            Some(damaged) => Ok(State::Damaged(damaged.clone())),
            None => Err(unusable(place)(error)),
        },
    }
}

/// Sets the damaged vectors, codes, impact and token indexes of a corpus aside. They are made again when a lane needs them.
///
/// # Errors
/// The library cannot be read or written.
fn check_vectors(library: &Library, corpus: &Corpus) -> Result<(), SetupError> {
    let folder = library.folder(&corpus.fingerprint);
    for entry in fs::read_dir(&folder).map_err(unusable(&folder))? {
        let path = entry.map_err(unusable(&folder))?.path();
        if path.extension().is_some_and(|end| ["f32", "i8", "impact", "tokens"].iter().any(|own| end == *own))
            && let State::Damaged(damaged) = state(&path)?
        {
            library.set_aside(&path, &damaged)?;
        }
    }
    Ok(())
}

/// The system's name of the user, or `me` if that cannot be the name of a file.
pub(super) fn annotator() -> String {
    let name = ["USER", "USERNAME"].into_iter().find_map(|name| std::env::var(name).ok());
    name.filter(|name| is_name(name)).unwrap_or_else(|| "me".into())
}

/// The journals that the user named, else the folder of those of the corpus.
fn label_paths(opening: &Opening, place: &Path) -> Vec<PathBuf> {
    if opening.journals.is_empty() { vec![place.to_owned()] } else { opening.journals.clone() }
}

/// Reads the labels by hand from the journals that the user named, else from those of the corpus, with notes about them.
pub(super) fn human(
    opening: &Opening,
    place: &Path,
    corpus: &Corpus,
    questions: &[Question],
) -> Result<(Human, Vec<String>), SetupError> {
    let paths = label_paths(opening, place);
    let there: Vec<PathBuf> = paths.into_iter().filter(|path| path != place || path.is_dir()).collect();
    let (history, mut notes) = journals(&there)?;
    let human = Human::of(&history, corpus, &statements(questions));
    notes.extend(human.notes.iter().cloned());
    Ok((human, notes))
}

/// Notes about lines of a label file that do not belong to this corpus and these questions.
pub(super) fn unused_labels(labels: &Labels, corpus: &Corpus, questions: &[Question]) -> Vec<String> {
    let missing = labels.count_missing_passages(|id| corpus.find(id).is_some());
    let unasked =
        if questions.is_empty() { 0 } else { labels.count_unknown_statements(&statements(questions)) };
    let note = |count: usize, what: &str| {
        (count > 0).then(|| format!("--labels: {count} of {} {what}", labels.len()))
    };
    let passages = note(missing, "labels are of passages that this corpus does not hold");
    let unknown = labels.unknown_questions;
    let others = (unknown > 0)
        .then(|| format!("--labels: {unknown} lines are about questions that the set does not have"));
    passages
        .into_iter()
        .chain(others)
        .chain(note(unasked, "labels are of statements that no question of the set has word for word"))
        .collect()
}

/// A note about predictions in a file that belong to other passages and statements.
fn file_note(choice: &Choice, corpus: &Corpus, questions: &[Question]) -> Result<Option<String>, SetupError> {
    let Choice::File(file) = choice else { return Ok(None) };
    let predictions = Predictions::read(file)?;
    let passages = (0..corpus.len()).map(|i| Cow::Owned(corpus.passage(PassageIx(i as u32))));
    Ok(predictions.unmatched_texts(passages, &statements(questions)).words(&choice.to_string()))
}

/// Says why there are no sides if passages or questions are not in English. With a detector that may read other languages, only the
/// questions matter, because rules make the statements.
fn language_note(opening: &Opening, corpus: &Corpus, questions: &[Question]) -> Option<String> {
    const RULES: &str = "rules make statements of English questions alone";
    let passages = foreign_corpus(corpus.len(), |i| corpus.passage(PassageIx(i as u32)).text);
    let asked = foreign_corpus(questions.len(), |i| questions[i].text.clone());
    let judge = (opening.detector == Choice::Builtin)
        .then_some("the built-in detector reads English only, so it shows no sides; labels count as ever, and --detector names another");
    match (passages, asked, judge) {
        (Some(language), _, Some(judge)) => Some(format!("the passages seem to be {language}: {judge}")),
        (None, Some(language), Some(judge)) => {
            Some(format!("the questions seem to be {language}: {RULES}, and {judge}"))
        }
        (_, Some(language), None) => Some(format!("the questions seem to be {language}: {RULES}")),
        _ => None,
    }
}

/// The statements of all questions.
pub(super) fn statements(questions: &[Question]) -> HashSet<&str> {
    questions.iter().flat_map(|question| &question.perspectives).map(String::as_str).collect()
}
