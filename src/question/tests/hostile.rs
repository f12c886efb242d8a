//! Texts that nobody would ask: nothing may panic, hang, or come back malformed.

use std::time::{Duration, Instant};

use crate::question::{opposite, statements};

const PIECES: [&str; 44] = [
    "Is",
    "are",
    "DOES",
    "do",
    "shouldn't",
    "can’t",
    "the",
    "you",
    "your",
    "I",
    "it",
    "there",
    "not",
    "never",
    "no",
    "any",
    "ever",
    "than",
    "better",
    "more",
    "harm",
    "good",
    "and",
    "or",
    "if",
    "that",
    "who",
    ",",
    ":",
    "—",
    "(",
    ")",
    "\"",
    "“",
    "'s",
    "🙂",
    "动物",
    "שלום",
    "\u{202e}",
    "\u{0}",
    "\u{7}",
    "e\u{301}",
    "İ",
    "ﬃ?",
];

/// A fixed linear congruential generator: the same texts every time.
fn draws() -> impl Iterator<Item = usize> {
    let mut state: u64 = 0x9e37_79b9_7f4a_7c15;
    std::iter::repeat_with(move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 40).unwrap()
    })
}

#[test]
fn any_mixture_of_words_gives_two_sentences_or_none() {
    let mut draw = draws();
    let mut next = |below: usize| draw.next().unwrap() % below;
    for _ in 0..20_000 {
        let length = 1 + next(14);
        let glue = [" ", "", "  ", "\t"][next(4)];
        let text = (0..length).map(|_| PIECES[next(PIECES.len())]).collect::<Vec<_>>().join(glue);
        let made = statements(&text);
        assert!(matches!(made.perspectives.len(), 0 | 2), "for {text:?}");
        for perspective in &made.perspectives {
            assert!(perspective.ends_with('.'), "{perspective:?} for {text:?}");
            assert!(!perspective.chars().any(char::is_control), "{perspective:?} for {text:?}");
        }
        let _ = opposite(&text);
    }
}

#[test]
fn a_hundred_thousand_characters_take_no_time() {
    let start = Instant::now();
    for piece in [
        "a",
        "Is ",
        "not ",
        "really, ",
        "that people ",
        "(",
        "🙂",
        "动物园 ",
        "\u{0}",
        "'",
        "s' ",
        "? ",
        "ever ",
    ] {
        let text = piece.repeat(100_000 / piece.len());
        assert!(statements(&text).perspectives.len() != 1);
        let _ = opposite(&text);
        let _ = statements(&format!("Should {text} be banned?"));
    }
    assert!(start.elapsed() < Duration::from_secs(20), "took {:?}", start.elapsed());
}

#[test]
fn control_characters_never_reach_a_statement() {
    let made = statements("Should\u{7} we ban\u{1b}[31m \u{202e}kites\u{0}?");
    assert!(made.perspectives.iter().all(|text| !text.contains(['\u{7}', '\u{1b}', '\u{202e}', '\u{0}'])));
}
