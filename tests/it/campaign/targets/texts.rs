//! Corpora, questions, runs, judgements, settings: what is text.

use std::io::Read;

use parallax::corpus::html::main_text;
use parallax::corpus::import::{Format, Source, Wanted};
use parallax::corpus::library::Library;
use parallax::input;
use parallax::measure::Measure;
use parallax::measure::trec::{
    RunOrder, read_beir_qrels, read_diversity_qrels, read_jsonl_qrels, read_qrels, read_rank_llm, read_run,
    write_diversity_qrels, write_qrels,
};
use parallax::pipeline::Recipe;
use parallax::question::{pir, set, statements as stated};
use parallax::report::safe;
use parallax::tui::session::{self, Replay};
use parallax::tui::{config as settings, script};
use parallax::work::Stop;

use super::{file, place, refused};

fn corpus(name: &str, input: &[u8], format: Option<Format>) {
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
    let _ = std::fs::remove_dir_all(library);
}

pub fn corpus_jsonl(input: &[u8]) {
    corpus("corpus.jsonl", input, Some(Format::Jsonl));
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

fn corpus_of(folder: &std::path::Path) {
    let library = place("data");
    if let Some(source) = refused(Source::recognise(folder)) {
        let _ = refused(Library::at(&library).open(&source, &|_| (), &Stop::never()));
    }
    let _ = std::fs::remove_dir_all(library);
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

/// A question of any wording has statements without controls, or none.
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

/// What is read and written is read again as the same.
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

/// A session that is read can be played.
pub fn session(input: &[u8]) {
    if let Some(session) = refused(session::read(&file("a.session.jsonl", input))) {
        assert_eq!(Replay::begin(&session, 1.0).count(), session.acts.len());
    }
}

/// A recipe that is read is written as one that is read as the same.
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

/// Nothing that a terminal obeys comes through, and nothing that turns or hides text.
pub fn safe_text(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let shown = safe::line(&text);
    let obeyed = |c: char| {
        c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{61c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    assert!(!shown.contains(obeyed), "{shown:?}");
    assert_eq!(safe::line(&shown), shown, "what is safe stays as it is");
}
