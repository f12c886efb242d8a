//! Memory over long use: the explorer is used as a person would use it, faster, and what it holds is looked at after every round.
//!
//! A person is taken to press a key a second, so that 7,200 keys are two hours.

use std::fs;
use std::time::{Duration, Instant};

use super::keys::sent;
use super::peak::held;
use super::pty::{Answer, Screen};
use super::targets::root;
use super::{long, tell};

/// Rounds of a brief run.
const BRIEF: usize = 4;
/// Caches fill in the beginning. After it, no more than this may be added from the second quarter to the last, in MB and as a share.
const GROWTH: (f64, f64) = (24.0, 1.08);
/// However long it is used, in MB.
const MOST: u64 = 500;

/// What is done with a question: lists read, switches turned, every screen looked at, labels set and taken back.
const ROUND: &[&str] = &[
    "<Enter>",
    "jjj<Tab>jj<Tab>k",
    "<Enter>",
    "jj",
    "<Esc>",
    "m",
    "e",
    "p",
    "v",
    "m",
    "e",
    "p",
    "v",
    "x",
    "x",
    "t",
    "jj",
    "<Esc>",
    "y",
    "j",
    "<Esc>",
    "b",
    "j",
    "<Esc>",
    "r",
    "j",
    "<Esc>",
    "a",
    "s",
    "o",
    "u",
    "u",
    "<Esc>",
    "?",
    "G",
    "<Esc>",
    ":read",
    "<Esc>",
];

#[test]
fn memory_stays_bounded_and_over_hours_flat() {
    let questions = fs::read_to_string(root("sample_data/questions.jsonl")).unwrap();
    let questions: Vec<String> = questions
        .lines()
        .map(|line| {
            serde_json::from_str::<serde_json::Value>(line).unwrap()["question"].as_str().unwrap().to_owned()
        })
        .collect();
    let (began, end) = (Instant::now(), long().map(Duration::from_secs));
    let mut screen = Screen::open(&["--annotator", "anna"]);
    let (mut keys, mut samples) = (0, Vec::new());
    let mut probes = 0;
    let mut probe = |screen: &mut Screen| {
        // A size of which a late frame may still be on its way is no change to the program, and gets no answer.
        probes += 1;
        let size = (122 + probes % 8, screen.size.1);
        assert!(matches!(screen.probe(size), Answer::After(..)), "{}", screen.told());
    };
    probe(&mut screen);
    while end.map_or(samples.len() < BRIEF, |end| began.elapsed() < end) {
        // A question of one's own now and then: what is kept by its text must not be kept for ever.
        let number = samples.len();
        let question = match number % 3 {
            0 => format!("Should town {number} ban {} by law?", ["zoos", "cars", "kites"][number % 2]),
            _ => questions[number % questions.len()].clone(),
        };
        let typed = ["/", "<C-u>"].map(sent).concat();
        screen.send(&typed);
        screen.send(question.as_bytes());
        keys += 2 + question.chars().count();
        for part in ROUND {
            screen.send(&sent(part));
            keys += parallax::tui::script::parse(part).unwrap().len();
            probe(&mut screen);
            // What was ordered is waited for, as a person would: until the screen stands still.
            screen.settle(Duration::from_millis(if end.is_some() { 120 } else { 30 }));
        }
        samples.push(held(screen.id(), "VmRSS").unwrap() as f64 / 1_024.0);
    }
    let peak = held(screen.id(), "VmHWM").unwrap() / 1_024;
    screen.send(&[3]);
    assert_eq!(screen.ended(), None);
    let quarter = (samples.len() / 4).max(1);
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    let (first, second) =
        (mean(&samples[..quarter]), mean(&samples[quarter..(2 * quarter).min(samples.len())]));
    let last = mean(&samples[samples.len() - quarter..]);
    tell(&format!(
        "memory: {keys} keys in {} rounds and {:.0?}, {:.1} hours at a key a second; {first:.0} MB in the first quarter, {second:.0} in the \
         second, {last:.0} in the last, {:+.2} MB an hour by the slope after the first quarter, at most {peak}",
        samples.len(),
        began.elapsed(),
        keys as f64 / 3_600.0,
        slope(&samples[quarter..]) * samples.len() as f64 / (keys as f64 / 3_600.0),
    ));
    assert!(peak < MOST, "{peak} MB: {samples:.0?}");
    // A brief run is over before the caches are full.
    if end.is_some() {
        assert!(last < second * GROWTH.1 + GROWTH.0, "{second:.0} MB became {last:.0}: {samples:.0?}");
    }
}

/// By least squares, a round.
fn slope(all: &[f64]) -> f64 {
    let n = all.len() as f64;
    let (x, y) = ((n - 1.0) / 2.0, all.iter().sum::<f64>() / n);
    let above: f64 = all.iter().enumerate().map(|(i, mb)| (i as f64 - x) * (mb - y)).sum();
    let below: f64 = (0..all.len()).map(|i| (i as f64 - x).powi(2)).sum();
    if below == 0.0 { 0.0 } else { above / below }
}
