//! Reading answers from a list: the screen's state and effects, its frames on the sample, and `eval reader`.

mod beyond;
mod screen;
mod tables;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use parallax::detect::LabelSource;
use parallax::engine::Opening;
use parallax::engine::{Batch, ReadEvent, Want};
use parallax::read::Answer;
use parallax::read::incremental::Reordered;
use parallax::read::pattern::Stance::{self, Balanced, Opposes, Supports};
use parallax::tui::app::App;
use parallax::tui::keymap::Screen;
use parallax::tui::message::Effect;
use parallax::tui::script::parse;
use parallax::tui::{Start, play};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::server::{Fate, Server};
use crate::stage::{self, QUESTION, asked, empty, heard, many_sided, press};

fn stances(app: &App) -> Vec<Stance> {
    app.stance_timeline(app.lane).unwrap().stances
}

fn said(text: &str) -> Answer {
    Answer { text: text.into(), ..Answer::default() }
}

fn ended(app: &mut App) {
    heard(app, ReadEvent::Ended(None));
}

/// Reads the lane with the cursor; the reader gives these answers.
fn read(app: &mut App, answers: &[&str]) {
    press(app, "<Enter>");
    for (i, text) in answers.iter().enumerate() {
        heard(app, ReadEvent::Answer(i + 1, said(text)));
    }
    ended(app);
}

fn played(opening: Opening, keys: &str) -> String {
    let start =
        Start { opening, source: LabelSource::Model, lanes: vec!["bm25".parse().unwrap()], ..stage::start() };
    let keys = parse(&format!("{QUESTION}<Enter><Wait>{keys}")).unwrap();
    play(start, stage::size(140, 40), &keys, Duration::from_secs(600)).unwrap().dump(false)
}

fn eval(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_parallax"));
    command
        .args(["eval", "reader"])
        .args(arguments)
        .args(["--data-dir", "data"])
        .current_dir(folder)
        .stdin(Stdio::null());
    for name in
        ["PARALLAX_CORPUS", "PARALLAX_QUESTIONS", "PARALLAX_LABELS", "PARALLAX_LLM", "PARALLAX_REPLIES"]
    {
        command.env_remove(name);
    }
    command.output().unwrap()
}

#[track_caller]
fn table(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[track_caller]
fn refused(output: &Output, words: &[&str]) {
    let printed = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{printed}");
    for word in words {
        assert!(printed.contains(word), "no `{word}` in {printed}");
    }
}

fn mean(table: &Value, row: usize, measure: &str) -> Option<f64> {
    table["rows"][row]["measures"][measure]["mean"].as_f64()
}

/// Two questions of five passages, the gold passage of the first being its second.
const FID: &str = r#"[
{"question":"Who?","answers":["Ann"],"ctxs":[{"id":"a1","text":"x"},{"id":"a2","text":"y","isgold":true},{"id":"a3","text":"z"},{"id":"a4","text":"u"},{"id":"a5","text":"v"}]},
{"question":"Where?","answers":["Paris"],"ctxs":[{"id":"b1","text":"In Paris","isgold":true},{"id":"b2","text":"q"},{"id":"b3","text":"r"},{"id":"b4","text":"s"},{"id":"b5","text":"t"}]},
{"question":"Why?","answers":[],"ctxs":[]}
]"#;

/// Recorded answers with the patterns 01100 and 11010, then second readings: all of probe 1, a part of probe 2, and those with added
/// passages after the first question's gold passage.
fn recorded() -> String {
    let mut lines = String::new();
    let mut line = |question: &str, k: usize, answer: &str, passages: Option<&[&str]>| {
        let mut line = serde_json::json!({"question": question, "k": k, "answer": answer});
        if let Some(ids) = passages {
            line["passages"] = serde_json::json!(ids);
        }
        lines += &format!("{line}\n");
    };
    for (i, answer) in ["bob", "Ann", "the Ann", "", "I don't know"].into_iter().enumerate() {
        line("Who?", i + 1, answer, None);
    }
    for (i, answer) in ["Paris", "paris", "Rome", "Paris.", "Rome"].into_iter().enumerate() {
        line("Where?", i + 1, answer, None);
    }
    line("Who?", 1, "Ann", Some(&["a2"]));
    line("Who?", 2, "bob", Some(&["a2", "a3"]));
    line("Where?", 3, "Paris", Some(&["b1", "b2", "b4"]));
    line("Who?", 2, "Ann", Some(&["a2", "a1"]));
    line("Who?", 3, "bob", Some(&["a2", "a1", "a3"]));
    lines
}

/// An extractive reader with a tiny vocabulary (`tools/reader/make_span_fixture.py`): Paris .9, Rome .6, Lyon .4.
fn words() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/readers/words")
}

/// The second passage (Rome) makes the first answer wrong, and the third makes it right again; the second question is right at once.
const CITIES: &str = r#"[
{"question":"Where?","answers":["Lyon"],"ctxs":[{"id":"a1","text":"It is in Lyon.","isgold":true},{"id":"a2","title":"Rome","text":"It is there."},{"id":"a3","text":"In Lyon, they say."},{"id":"a4","text":"No city here."}]},
{"question":"Which?","answers":["paris"],"ctxs":[{"id":"b1","text":"Paris","isgold":true},{"id":"b2","text":"Rome"},{"id":"b3","text":"Lyon"},{"id":"b4","text":""}]}
]"#;

/// A random T5 (`tools/reader/make_fid_fixture.py`), and the answers that Python got from it.
fn fused() -> (PathBuf, Vec<Value>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/fid/gated");
    let printed = fs::read(folder.join("expected.json")).unwrap();
    (folder, serde_json::from_slice(&printed).unwrap())
}
