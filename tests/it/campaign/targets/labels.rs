//! Labels, journals, and files of what models said.

use std::sync::OnceLock;

use parallax::annotate::formats::{Format, Reading};
use parallax::annotate::{History, Material, Project, Read, repair};
use parallax::corpus::{Corpus, sample};
use parallax::detect::{Fitted, Labels};
use parallax::llm::Recorded;
use parallax::question::{Question, set};
use parallax::read::Answers;
use parallax::read::files;
use parallax::tui::kept::Kept;
use parallax::web::Store;

use super::{file, place, refused, root};

fn questions() -> &'static [Question] {
    static READ: OnceLock<Vec<Question>> = OnceLock::new();
    READ.get_or_init(|| set::read(&root("sample_data/questions.jsonl")).unwrap())
}

fn corpus() -> &'static Corpus {
    static READ: OnceLock<Corpus> = OnceLock::new();
    READ.get_or_init(sample::corpus)
}

pub fn labels(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let _ = refused(Labels::carried(&text, questions(), parallax::detect::labels::Absent::No));
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

/// What a journal holds is what its repaired copy holds.
pub fn journal(input: &[u8]) {
    let path = file("anna.jsonl", input);
    let read = refused(Read::file(&path)).unwrap();
    let _ = read.told(&path);
    let mut history = History::default();
    for entry in &read.entries {
        history.take(entry.clone());
    }
    repair(&path).unwrap();
    let again = Read::file(&path).unwrap();
    assert_eq!(again.entries, read.entries);
    assert!(again.bad.is_empty() && again.torn == 0 && again.newer == read.newer);
    for kept in std::fs::read_dir(path.parent().unwrap()).unwrap().flatten() {
        if kept.file_name().to_string_lossy().contains(".damaged-") {
            std::fs::remove_file(kept.path()).unwrap();
        }
    }
}

/// Questions asked before. Whatever the file, the program begins.
pub fn asked(input: &[u8]) {
    let kept = Kept::read(file("asked.jsonl", input), "zoos".into());
    let _ = kept.last();
    refused::<(), _>(kept.told.map_or(Ok(()), Err));
}

pub fn project(input: &[u8]) {
    file("project/pool.jsonl", b"");
    file("project/project.json", input);
    let _ = refused(Project::open(&place("project")));
    // The same bytes as a pool of a project that is right.
    let card = r#"{"v":1,"corpus":"c","fingerprint":"f","questions":[{"id":"q","text":"Q?","perspectives":["A.","B."]}],
        "lanes":["bm25"],"depth":3,"order":"ranks","seed":1,"blind":false,"annotators":[],"overlap":0.0}"#;
    file("project/project.json", card.as_bytes());
    file("project/pool.jsonl", input);
    let _ = refused(Project::open(&place("project")));
}

fn brought(format: Format, name: &str, input: &[u8]) {
    let material = Material::new(questions(), corpus());
    let path = file(name, input);
    let _ = refused(format.read(&path, &Reading { material: &material, by: Some("anna"), at: 7 }));
    let _ = refused(format.read(&path, &Reading { material: &material, by: None, at: 7 }));
}

pub fn labels_tsv(input: &[u8]) {
    brought(Format::Tsv, "labels.tsv", input);
}

pub fn labels_qrels(input: &[u8]) {
    brought(Format::Qrels, "anna.div.qrels", input);
}

pub fn labels_berds(input: &[u8]) {
    brought(Format::Berds, "labels.jsonl", input);
}

pub fn label_studio(input: &[u8]) {
    brought(Format::LabelStudio, "tasks.json", input);
}

pub fn argilla(input: &[u8]) {
    brought(Format::Argilla, "records.json", input);
}

pub fn web_journal(input: &[u8]) {
    file("web/pages.jsonl", input);
    if let Some(store) = refused(Store::open(&place("web"))) {
        let _ = store.searched();
    }
}
