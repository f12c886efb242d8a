//! The parsers of texts, each as a function of bytes. Every error must have a message.

use std::cell::OnceCell;
use std::fmt::Display;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use parallax::annotate::formats::{Format as LabelFormat, Reading};
use parallax::annotate::{History, Material, Project, Read, repair};
use parallax::corpus::library::Library;
use parallax::corpus::source::{CorpusFormat, Source, Wanted};
use parallax::corpus::{Corpus, main_text, sample};
use parallax::detect::labels::Absent;
use parallax::detect::{Fitted, Labels};
use parallax::engine::Recipe;
use parallax::input;
use parallax::llm::Recorded;
use parallax::measure::Measure;
use parallax::measure::trec::{
    RunOrder, read_beir_qrels, read_diversity_qrels, read_jsonl_qrels, read_qrels, read_rank_llm, read_run,
    write_diversity_qrels, write_qrels,
};
use parallax::question::{Question, pir, set, statements as stated};
use parallax::read::{Answers, files};
use parallax::report::safe;
use parallax::tui::query_history::QueryHistory;
use parallax::tui::session::{self, Replay};
use parallax::tui::{config as settings, script};
use parallax::web::Store;
use parallax::work::Stop;
use tempfile::TempDir;

thread_local! {
    static FOLDER: OnceCell<TempDir> = const { OnceCell::new() };
}

/// A path in a temporary folder of this thread.
pub fn place(name: &str) -> PathBuf {
    FOLDER.with(|folder| folder.get_or_init(|| tempfile::tempdir().unwrap()).path().join(name))
}

/// Writes the input to a file of that name.
pub fn file(name: &str, input: &[u8]) -> PathBuf {
    let path = place(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, input).unwrap();
    path
}

/// Copies a folder of the fixtures and writes the input to the file `name` in it.
pub fn folder(fixture: &str, name: &str, input: &[u8]) -> PathBuf {
    let copy = place(&format!("{fixture}-{}", name.replace('/', "-")));
    if !copy.exists() {
        copy_folder(&fixtures(fixture), &copy);
    }
    fs::write(copy.join(name), input).unwrap();
    copy
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        let to = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy_folder(&entry.path(), &to),
            false => drop(fs::copy(entry.path(), to).unwrap()),
        }
    }
}

pub fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

pub fn fixtures(path: &str) -> PathBuf {
    root("tests/fixtures").join(path)
}

/// Seeds: files of the repository (the beginnings of long ones) and texts.
pub fn seeds(files: &[&str], written: &[&str]) -> Vec<Vec<u8>> {
    let beginning = |path: &&str| {
        let mut bytes = fs::read(root(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
        if [".jsonl", ".tsv", ".md"].iter().any(|end| path.ends_with(end)) {
            bytes.truncate(6_000);
            bytes.truncate(bytes.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1));
        }
        bytes
    };
    files.iter().map(beginning).chain(written.iter().map(|text| text.as_bytes().to_vec())).collect()
}

/// Checks an error message: it must be neither empty nor very long.
pub fn refused<T, E: Display>(result: Result<T, E>) -> Option<T> {
    match result {
        Ok(read) => Some(read),
        Err(error) => {
            let message = error.to_string();
            assert!(!message.trim().is_empty(), "an error without a message");
            assert!(message.len() < 200_000, "a message of {} bytes", message.len());
            None
        }
    }
}

fn corpus(name: &str, input: &[u8], format: Option<CorpusFormat>) {
    let path = file(name, input);
    let wanted = Wanted { format, segment: input.len().is_multiple_of(2), ..Wanted::default() };
    let Some(source) = refused(Source::wanted(&path, wanted)) else { return };
    let _ = refused(source.recognised());
    let library = place("data");
    let opened = Library::at(&library).open(&source, &|_| (), &Stop::never());
    if let Some(corpus) = refused(opened) {
        for at in corpus.places() {
            let passage = corpus.passage(at);
            assert_eq!(corpus.find(&passage.id), Some(at), "{:?}", passage.id);
        }
    }
    let _ = fs::remove_dir_all(library);
}

pub fn corpus_jsonl(input: &[u8]) {
    corpus("corpus.jsonl", input, Some(CorpusFormat::Jsonl));
}

pub fn corpus_csv(input: &[u8]) {
    corpus("corpus.csv", input, None);
}

pub fn corpus_tsv(input: &[u8]) {
    corpus("corpus.tsv", input, None);
}

pub fn corpus_results(input: &[u8]) {
    corpus("results.json", input, None);
}

pub fn markdown_page(input: &[u8]) {
    file("pages/page.md", input);
    let path = place("pages");
    corpus_of(&path);
}

fn corpus_of(folder: &Path) {
    let library = place("data");
    if let Some(source) = refused(Source::recognise(folder)) {
        let _ = refused(Library::at(&library).open(&source, &|_| (), &Stop::never()));
    }
    let _ = fs::remove_dir_all(library);
}

pub fn html_page(input: &[u8]) {
    let _ = refused(main_text(&String::from_utf8_lossy(input)));
}

fn packed(name: &str, input: &[u8]) {
    let path = file(name, input);
    let _ = refused(input::lines(&path, |_, _| Ok(())));
    let _ = refused(input::text(&path));
    if let Some(mut reader) = refused(input::open(&path)) {
        let _ = refused(reader.read_to_end(&mut Vec::new()));
    }
}

pub fn packed_gz(input: &[u8]) {
    packed("packed.txt.gz", input);
}

pub fn packed_zst(input: &[u8]) {
    packed("packed.txt.zst", input);
}

pub fn question_set(input: &[u8]) {
    if let Some(questions) = refused(set::read(&file("questions.jsonl", input))) {
        assert!(!questions.is_empty());
        assert!(questions.iter().all(|q| q.supports.is_none_or(|side| side < q.perspectives.len())));
    }
}

/// Whatever the question, its statements hold no control characters.
pub fn statements(input: &[u8]) {
    let made = stated(&String::from_utf8_lossy(input));
    assert!(made.perspectives.iter().all(|text| !text.chars().any(char::is_control)), "{made:?}");
    assert!(made.supports.is_none_or(|side| side < made.perspectives.len()), "{made:?}");
}

pub fn pir_tasks(input: &[u8]) {
    let _ = refused(pir::read(&file("tasks.json", input)));
}

pub fn trec_run(input: &[u8]) {
    for order in [RunOrder::AsGiven, RunOrder::TrecEval] {
        let _ = refused(read_run("run", input, order));
    }
}

/// What was read is the same after it is written and read again.
pub fn trec_qrels(input: &[u8]) {
    if let Some(qrels) = refused(read_qrels("qrels", input)) {
        let mut written = Vec::new();
        write_qrels(&mut written, &qrels).unwrap();
        assert_eq!(read_qrels("written", written.as_slice()).unwrap(), qrels);
    }
}

pub fn trec_diversity(input: &[u8]) {
    if let Some(qrels) = refused(read_diversity_qrels("qrels", input)) {
        let mut written = Vec::new();
        write_diversity_qrels(&mut written, &qrels).unwrap();
        assert_eq!(read_diversity_qrels("written", written.as_slice()).unwrap(), qrels);
    }
}

pub fn beir_qrels(input: &[u8]) {
    let _ = refused(read_beir_qrels("qrels.tsv", input));
}

pub fn jsonl_qrels(input: &[u8]) {
    let _ = refused(read_jsonl_qrels("qrels.jsonl", input));
}

pub fn rank_llm(input: &[u8]) {
    let _ = refused(read_rank_llm("run.json", input, RunOrder::AsGiven));
}

pub fn config(input: &[u8]) {
    let (_, problems) = settings::read(&String::from_utf8_lossy(input));
    for problem in problems {
        let _ = refused::<(), _>(Err(problem.what));
    }
}

pub fn key_script(input: &[u8]) {
    let _ = refused(script::parse(&String::from_utf8_lossy(input)));
}

/// Every session that can be read can be played.
pub fn session(input: &[u8]) {
    if let Some(session) = refused(session::read(&file("a.session.jsonl", input))) {
        assert_eq!(Replay::begin(&session, 1.0).count(), session.acts.len());
    }
}

/// A recipe is the same after it is written and read again.
pub fn recipe(input: &[u8]) {
    if let Ok(recipe) = String::from_utf8_lossy(input).parse::<Recipe>() {
        assert_eq!(recipe.to_string().parse::<Recipe>().as_ref(), Ok(&recipe));
    }
}

pub fn measure_name(input: &[u8]) {
    if let Ok(measure) = String::from_utf8_lossy(input).parse::<Measure>() {
        assert_eq!(measure.to_string().parse::<Measure>().as_ref(), Ok(&measure));
    }
}

/// The result contains no control sequence, and nothing that reverses or hides text.
pub fn safe_text(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let shown = safe::line(&text);
    let obeyed = |c: char| {
        c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{61c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    assert!(!shown.contains(obeyed), "{shown:?}");
    assert_eq!(safe::line(&shown), shown, "safe text does not change");
}

fn questions() -> &'static [Question] {
    static READ: OnceLock<Vec<Question>> = OnceLock::new();
    READ.get_or_init(|| set::read(&root("sample_data/questions.jsonl")).unwrap())
}

fn sample_corpus() -> &'static Corpus {
    static READ: OnceLock<Corpus> = OnceLock::new();
    READ.get_or_init(sample::corpus)
}

pub fn labels(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let _ = refused(Labels::builtin(&text, questions(), Absent::No));
    let path = file("labels.tsv", input);
    let _ = refused(Labels::read(path.to_str().unwrap(), questions()));
}

pub fn perspectrum(input: &[u8]) {
    let path = file("claims.json", input);
    let _ = refused(Labels::read(path.to_str().unwrap(), questions()));
}

pub fn fitted_threshold(input: &[u8]) {
    if let Some(fitted) = refused(Fitted::read(&file("threshold.json", input))) {
        assert!((0.0..=1.0).contains(&fitted.threshold));
    }
}

pub fn reading_files(input: &[u8]) {
    for name in ["reading.json", "reading.jsonl"] {
        let path = file(name, input);
        let _ = refused(files::is_reading(&path));
        let _ = refused(files::read(&path));
    }
}

pub fn recorded_answers(input: &[u8]) {
    let _ = refused(Answers::read(&file("answers.jsonl", input)));
}

pub fn recorded_replies(input: &[u8]) {
    let _ = refused(Recorded::parse("replies.jsonl", input));
}

/// Repairing a journal changes none of its entries.
pub fn journal(input: &[u8]) {
    let path = file("anna.jsonl", input);
    let read = refused(Read::file(&path)).unwrap();
    let _ = read.damage(&path);
    let mut history = History::default();
    for entry in &read.entries {
        history.take(entry.clone());
    }
    repair(&path).unwrap();
    let again = Read::file(&path).unwrap();
    assert_eq!(again.entries, read.entries);
    assert!(again.bad.is_empty() && again.torn == 0 && again.newer == read.newer);
    for entry in fs::read_dir(path.parent().unwrap()).unwrap().flatten() {
        if entry.file_name().to_string_lossy().contains(".damaged-") {
            fs::remove_file(entry.path()).unwrap();
        }
    }
}

/// The queries of earlier runs. Whatever the file holds, the program starts.
pub fn query_history(input: &[u8]) {
    let history = QueryHistory::read(file("asked.jsonl", input), "zoos".into());
    let _ = history.last();
    refused::<(), _>(history.problem.map_or(Ok(()), Err));
}

pub fn project(input: &[u8]) {
    file("project/pool.jsonl", b"");
    file("project/project.json", input);
    let _ = refused(Project::open(&place("project")));
    // The same bytes as the pool of a correct project.
    let card = r#"{"v":1,"corpus":"c","fingerprint":"f","questions":[{"id":"q","text":"Q?","perspectives":["A.","B."]}],
        "lanes":["bm25"],"depth":3,"order":"ranks","seed":1,"blind":false,"annotators":[],"overlap":0.0}"#;
    file("project/project.json", card.as_bytes());
    file("project/pool.jsonl", input);
    let _ = refused(Project::open(&place("project")));
}

fn imported(format: LabelFormat, name: &str, input: &[u8]) {
    let material = Material::new(questions(), sample_corpus());
    let path = file(name, input);
    let _ = refused(format.read(&path, &Reading { material: &material, by: Some("anna"), at: 7 }));
    let _ = refused(format.read(&path, &Reading { material: &material, by: None, at: 7 }));
}

pub fn labels_tsv(input: &[u8]) {
    imported(LabelFormat::Tsv, "labels.tsv", input);
}

pub fn labels_qrels(input: &[u8]) {
    imported(LabelFormat::Qrels, "anna.div.qrels", input);
}

pub fn labels_berds(input: &[u8]) {
    imported(LabelFormat::Berds, "labels.jsonl", input);
}

pub fn label_studio(input: &[u8]) {
    imported(LabelFormat::LabelStudio, "tasks.json", input);
}

pub fn argilla(input: &[u8]) {
    imported(LabelFormat::Argilla, "records.json", input);
}

pub fn web_journal(input: &[u8]) {
    file("web/pages.jsonl", input);
    if let Some(store) = refused(Store::open(&place("web"))) {
        let _ = store.searched();
    }
}
