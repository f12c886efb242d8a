//! Key scripts and their frames, on the built-in sample with the built-in models.

use std::sync::LazyLock;
use std::time::Duration;

use parallax::detect::LabelSource;
use parallax::engine::Opening;
use parallax::tui::script::parse;
use parallax::tui::{Start, play};
use tempfile::TempDir;
use unicode_width::UnicodeWidthStr;

use crate::stage::{self, QUESTION};

/// Long enough for any machine, so that a hang fails and does not block the tests.
const PATIENCE: Duration = Duration::from_secs(600);

/// One data folder per test: verdicts are stored from one script to the next.
struct Theatre(TempDir);

impl Theatre {
    fn new() -> Self {
        Theatre(tempfile::tempdir().unwrap())
    }

    fn play(&self, width: u16, height: u16, keys: &str) -> String {
        let opening = Opening { data_dir: self.0.path().into(), ..Opening::default() };
        let start = Start { opening, source: LabelSource::Model, ..stage::start() };
        play(start, stage::size(width, height), &parse(keys).unwrap(), PATIENCE).unwrap().dump(false)
    }
}

/// The question, asked on 140 columns.
static ASKED: LazyLock<String> = LazyLock::new(|| Theatre::new().play(140, 40, &asking("")));

fn asking(then: &str) -> String {
    format!("{QUESTION}<Enter><Wait>{then}")
}

#[track_caller]
fn has(frame: &str, words: &[&str]) {
    for word in words {
        assert!(frame.contains(word), "no `{word}` in\n{frame}");
    }
}

/// The lines of a frame, less those that say how long a lane took.
fn untimed(frame: &str) -> Vec<&str> {
    frame.lines().filter(|line| !line.contains(" ms")).collect()
}

/// The column of `text` in a line.
fn column(line: &str, text: &str) -> Option<u16> {
    line.find(text).map(|at| line[..at].width() as u16)
}

#[test]
fn the_suggestions_of_the_first_screen_leave_its_welcome_in_sight() {
    for (columns, rows) in [(140, 40), (80, 24)] {
        let frame = Theatre::new().play(columns, rows, "");
        has(&frame, &["Should voting be compulsory?", "Ask a question. To be shown", "parallax demo"]);
    }
}

#[test]
fn a_corpus_that_cannot_be_opened_leaves_the_one_before_it() {
    let frame = Theatre::new().play(
        140,
        40,
        "Should zoos be banned?<Enter><Wait>:labels human<Enter><Wait>C/no/such.jsonl<Enter><Wait><Wait>",
    );
    has(&frame, &["no such file", "the corpus from before is", "Zoos should be banned.", "MRecall@5"]);
}

#[test]
fn a_question_of_the_sample_fills_three_lanes_with_verdicts_and_figures() {
    has(
        &ASKED,
        &[
            QUESTION,
            "Zoos should be banned.",
            "Zoos should not be banned.",
            "BM25",
            "MiniLM",
            "Hybrid",
            "MRecall@5",
            "support",
            "lean",
            "asked as ▲",
            "judged by parallax-mpnet",
        ],
    );
    // Once a lane, and once in the line that explains it.
    assert_eq!(ASKED.matches("MRecall@5").count(), 4);
    assert!(!ASKED.contains("Searching"));
}

#[test]
fn typing_alone_brings_the_same_lists_as_enter() {
    let typed = Theatre::new().play(140, 40, QUESTION);
    let figures = |frame: &str| {
        frame
            .lines()
            .filter(|line| line.contains("MRecall"))
            .map(|line| line.replace('┃', "│"))
            .collect::<Vec<_>>()
    };
    assert_eq!(figures(&typed), figures(&ASKED));
}

#[test]
fn a_passage_is_read_with_its_evidence_and_left_again() {
    let theatre = Theatre::new();
    let first = theatre.play(140, 40, &asking("<Enter><Wait>"));
    has(&first, &["rank: BM25 1", "voice:", "(model", "Zoos should not be banned."]);
    let second = theatre.play(140, 40, &asking("j<Enter><Wait>"));
    has(&second, &["rank: BM25 2"]);
    let next = theatre.play(140, 40, &asking("<Enter>n<Wait>"));
    assert_eq!(untimed(&next), untimed(&second), "n reads what j marks");
    let back = theatre.play(140, 40, &asking("<Enter><Wait>q"));
    assert_eq!(untimed(&back), untimed(&ASKED));
}

#[test]
fn lanes_change_by_tab_and_by_click_and_a_second_click_opens() {
    let theatre = Theatre::new();
    has(&theatre.play(140, 40, &asking("<Tab><Enter><Wait>")), &["MiniLM 1 "]);
    has(&theatre.play(140, 40, &asking("<S-Tab><Enter><Wait>")), &["Hybrid 1"]);
    let lines: Vec<&str> = ASKED.lines().collect();
    let (row, head) = lines.iter().enumerate().find(|(_, line)| line.contains(" MiniLM ")).unwrap();
    let x = column(head, " MiniLM ").unwrap() + 8;
    // The second passage begins where the first one's rows end.
    let second = lines
        .iter()
        .position(|line| ["│  2 ", "┃  2 ", "│▌ 2 ", "┃▌ 2 "].iter().any(|edge| line.contains(edge)))
        .unwrap();
    assert!(second > row);
    let click = format!("<Click:{x},{second}>");
    has(&theatre.play(140, 40, &asking(&format!("{click}{click}<Wait>"))), &["MiniLM 2"]);
    has(&theatre.play(140, 40, &asking(&format!("{click}<Enter><Wait>"))), &["MiniLM 2"]);
}

#[test]
fn help_lists_the_keys_and_closes() {
    let theatre = Theatre::new();
    let help = theatre.play(140, 400, "<Esc>?");
    has(&help, &["Keys", "edit the question", "Everywhere", "supports the other side"]);
    let closed = theatre.play(140, 90, "<Esc>?q");
    assert!(!closed.contains("Everywhere"));
}

#[test]
fn a_smaller_terminal_shows_fewer_lanes_with_the_same_figures() {
    let theatre = Theatre::new();
    let small = theatre.play(140, 40, &asking("<Resize:80x24>"));
    assert_eq!(small.lines().count(), 24);
    assert!(small.lines().all(|line| line.width() <= 80), "{small}");
    has(&small, &[" BM25 ", " MiniLM ", " Hybrid", "MRecall@5"]);
    assert_eq!(small.matches("MRecall@5").count(), 2);
}

#[test]
fn statements_typed_by_the_user_are_judged() {
    let frame = Theatre::new().play(140, 40, &asking("i<C-x><C-n>Zoos save species.<Enter><Wait>"));
    has(&frame, &["Zoos save species.", "(yours)", "judged by parallax-mpnet"]);
}

#[test]
fn a_question_without_a_word_of_the_corpus_is_not_an_error() {
    let theatre = Theatre::new();
    let lanes = theatre.play(140, 40, "qzxv wvkj<Enter><Wait>");
    has(&lanes, &["Nothing found", "press i to type them"]);
    has(&theatre.play(140, 40, "qzxv wvkj<Enter><Wait>i"), &["There is a good case for qzxv wvkj."]);
}
