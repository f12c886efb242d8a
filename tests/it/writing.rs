//! Expansion by a language model behind a server: every form works, bad servers are survived, and nothing is asked twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use parallax::expand::{Form, Source};
use parallax::pipeline::{Asked, LaneError, Lists, Opening, Ranking, Recipe, Setup, rank};
use parallax::question::Question;
use parallax::work::Stop;

use crate::server::{Fate, Server};

/// A question that has no recorded replies.
fn question() -> Question {
    Question {
        text: "Should every bear have a pension?".into(),
        perspectives: vec![
            "Every bear should have a pension.".into(),
            "No bear should have a pension.".into(),
        ],
        supports: Some(0),
        ..Question::default()
    }
}

/// What the server's model says: it tells the prompts apart by their words.
fn says(prompt: &str) -> String {
    if prompt.contains("JSON array") && prompt.contains("perspectives") {
        r#"[{"name": "Duty", "text": "Bears have worked in forests all their lives."}, {"name": "Cost", "text": "Zoos cannot pay."}, {"name": "Cost", "text": "zoos cannot pay"}]"#.into()
    } else if prompt.contains("Passages found by a search") {
        let passage = prompt.lines().find(|line| line.starts_with("[1]")).unwrap();
        let sentence = passage.split_once("] ").unwrap().1.split(". ").next().unwrap();
        serde_json::json!([{"passage": 1, "sentences": [sentence, "Bears are owed this, says nobody here."]}])
            .to_string()
    } else {
        "Pensions for bears would be paid by visitors — or by nobody.".into()
    }
}

fn setup(folder: &tempfile::TempDir, server: Option<&Server>) -> Setup {
    let llm = server.map(|server| (server.url.clone(), "bear-7b".to_owned()));
    let opening = Opening { data_dir: folder.path().into(), llm, ..Opening::default() };
    Setup::open(&opening, &|_| (), &Stop::never()).unwrap()
}

fn ranked(setup: &Setup, recipe: &str, stop: &Stop) -> Result<Ranking, LaneError> {
    let (recipe, question): (Recipe, _) = (recipe.parse().unwrap(), question());
    rank(setup, &recipe, Asked::plainly(&question), &mut Lists::default(), stop)
}

#[test]
fn every_expansion_works_over_a_server_that_streams_and_is_recorded_for_the_next_time() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(Vec::new(), says);
    let live = setup(&folder, Some(&server));
    let offline = setup(&folder, None);
    assert!(offline.chat.is_some(), "the sample has recorded replies");
    for (kind, form) in [
        ("perspectives", Form::PerspectivesByModel),
        ("keqe", Form::KeqeByModel),
        ("csqe", Form::CsqeByModel),
    ] {
        for base in ["bm25", "minilm"] {
            let list = ranked(&live, &format!("{base}+{kind}"), &Stop::never()).unwrap();
            let expansion = list.trace.expansion().unwrap();
            assert_eq!(expansion.form, form, "{base}+{kind}: {:?}", expansion.notes);
            assert!(!list.is_empty());
        }
    }
    let asked = server.asked.lock().unwrap().len();
    // Perspectives once, five answers, two replies over passages; their two answers are the first of the five.
    assert_eq!(asked, 8, "no prompt is sent twice");
    assert!(server.asked.lock().unwrap().iter().all(|body| body.contains("bear-7b")));

    let again = setup(&folder, None);
    let list = ranked(&again, "bm25+csqe", &Stop::never()).unwrap();
    let expansion = list.trace.expansion().unwrap();
    assert_eq!(expansion.form, Form::CsqeByModel);
    let recorded =
        |source: &Source| matches!(source, Source::Model { recorded: true, model, .. } if model == "bear-7b");
    assert!(expansion.added.iter().all(|added| recorded(&added.source)), "{:?}", expansion.added);
    let missing: Vec<&str> = expansion
        .added
        .iter()
        .flat_map(|added| {
            added.sentences.iter().map(move |(range, found)| (&added.text[range.clone()], found))
        })
        .filter(|(_, found)| found.is_none())
        .map(|(text, _)| text)
        .collect();
    assert!(missing.iter().any(|text| text.contains("says nobody here")), "{missing:?}");
    assert_eq!(server.asked.lock().unwrap().len(), asked);
}

#[test]
fn a_server_that_refuses_breaks_and_cuts_is_asked_again_until_it_answers() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(vec![Fate::TooMany, Fate::Broken, Fate::Cut], says);
    let list = ranked(&setup(&folder, Some(&server)), "bm25+perspectives", &Stop::never()).unwrap();
    let expansion = list.trace.expansion().unwrap();
    assert_eq!(expansion.form, Form::PerspectivesByModel, "{:?}", expansion.notes);
    assert_eq!(expansion.added.len(), 2, "the third repeats the second");
    assert_eq!(server.asked.lock().unwrap().len(), 4);
}

#[test]
fn a_server_that_talks_nonsense_or_is_not_there_leaves_the_form_without_a_model_and_a_note() {
    let folder = tempfile::tempdir().unwrap();
    let nonsense = Server::start(vec![Fate::Nonsense; 20], says);
    let gone = Server { url: "http://127.0.0.1:1/v1".into(), asked: Arc::default() };
    for server in [nonsense, gone] {
        let setup = setup(&folder, Some(&server));
        for (kind, form) in [
            ("perspectives", Form::Statements),
            ("keqe", Form::KeqeStatements),
            ("csqe", Form::CsqeExtractive),
        ] {
            let list = ranked(&setup, &format!("bm25+{kind}"), &Stop::never()).unwrap();
            assert_eq!(list.trace.expansion().unwrap().form, form);
            assert!(!list.trace.notes.is_empty() && !list.is_empty());
        }
    }
}

#[test]
fn a_turn_that_has_passed_leaves_a_silent_server_and_keeps_what_was_written() {
    let folder = tempfile::tempdir().unwrap();
    // Two answers come, the third request is never answered.
    fn one(_: &str) -> String {
        "Bears retire in autumn.".into()
    }
    let first = Server::start(Vec::new(), one);
    ranked(&setup(&folder, Some(&first)), "bm25+perspectives", &Stop::never()).unwrap();
    let server = Server::start(vec![Fate::Silent; 20], one);
    let live = setup(&folder, Some(&server));
    let now = Arc::new(AtomicU64::new(7));
    let stop = Stop::when_past(&now, 7);
    let asked = Arc::clone(&server.asked);
    let watch = thread::spawn(move || {
        while asked.lock().unwrap().is_empty() {
            thread::yield_now();
        }
        now.store(8, Ordering::Relaxed);
    });
    let stopped = ranked(&live, "bm25+keqe", &stop);
    watch.join().unwrap();
    assert!(stopped.is_err_and(|error| error.is_stop()));
    let kept = std::fs::read_to_string(folder.path().join("replies.jsonl")).unwrap();
    assert_eq!(kept.lines().count(), 1, "{kept}");
}

#[test]
fn a_key_for_the_server_is_never_told_and_a_wrong_address_says_what_to_give() {
    let folder = tempfile::tempdir().unwrap();
    for url in ["", "localhost:11434", "ftp://models/v1"] {
        let opening = Opening {
            data_dir: folder.path().into(),
            llm: Some((url.into(), "bear-7b".into())),
            ..Opening::default()
        };
        let error = Setup::open(&opening, &|_| (), &Stop::never()).err().unwrap().to_string();
        assert!(error.contains("http"), "{url}: {error}");
    }
}
