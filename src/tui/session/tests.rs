use std::fs;
use std::path::Path;

use super::*;

const HEAD: &str =
    r#"{"parallax-session":1,"size":"100x30","label-source":"gold","lanes":["bm25","minilm+mmr@.75"],"k":5}"#;

fn reading(text: &str) -> Result<Session, String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.session.jsonl");
    fs::write(&file, text).unwrap();
    read(&file).map_err(|error| error.to_string())
}

#[test]
fn keys_pauses_pasted_text_and_words_are_read() {
    let lines = [
        HEAD,
        r#"{"after":50,"keys":"ab<Wait>"}"#,
        r#"{"after":7,"pasted":"<m>"}"#,
        r#"{"after":0,"say":"Look."}"#,
    ];
    let session = reading(&lines.join("\n")).unwrap();
    let after: Vec<u128> = session.acts.iter().map(|(after, _)| after.as_millis()).collect();
    assert_eq!(after, [50, 50, 0, 7, 0]);
    assert_eq!(session.acts[2].1, Act::Step(Step::Wait));
    assert_eq!(session.acts[3].1, Act::Paste("<m>".into()));
    assert_eq!(session.head.size, Size { width: 100, height: 30 });
}

#[test]
fn every_wrong_line_is_told_with_its_number_and_what_was_expected() {
    let lines = [
        HEAD,
        r#"{"after":50,"keys":"<Entr>"}"#,
        r#"{"after":-1,"keys":"a"}"#,
        r#"{"after":1}"#,
        r#"{"after":1,"keys":"a","say":"b"}"#,
        r#"{"after":99999999999,"keys":"a"}"#,
        r#"{"after":1,"kyes":"a"}"#,
        r#"{"after":1,"ke"#,
    ];
    let error = reading(&lines.join("\n")).unwrap_err();
    for line in 2..=8 {
        assert!(error.contains(&format!("a.session.jsonl:{line}: expected ")), "{line}: {error}");
    }
    let long = reading(&format!("{HEAD}\n{{\"after\":1,\"{}\":2}}", "x".repeat(300_000))).unwrap_err();
    assert!(long.contains(":2: expected an act") && long.len() < 1_000, "{}", long.len());
    assert!(error.contains("<Entr>") && error.contains("at most a day"), "{error}");
}

#[test]
fn a_session_of_more_acts_or_bytes_than_are_held_is_refused_where_it_becomes_too_long() {
    let keys = |n: usize| format!("{{\"after\":0,\"keys\":\"{}\"}}", "j".repeat(n));
    let fits = reading(&[HEAD, &keys(ACTS - 1), &keys(1)].join("\n")).unwrap();
    assert_eq!(fits.acts.len(), ACTS);
    for (wrong, line) in
        [([keys(ACTS), keys(1)], 3), ([keys(4 * ACTS), keys(1)], 2), ([keys(1), keys(BYTES)], 3)]
    {
        let error = reading(&[HEAD, &wrong[0], &wrong[1], "nonsense"].join("\n")).unwrap_err();
        assert!(error.contains(&format!(":{line}: expected a session of at most {ACTS} acts")), "{error}");
        assert!(!error.contains("nonsense") && error.len() < 1_000, "{}", error.len());
    }
}

#[test]
fn a_first_line_that_is_none_is_told_and_nothing_after_it_is_looked_at() {
    let wrong = |from: &str, to: &str| reading(&format!("{}\n{{}}", HEAD.replace(from, to))).unwrap_err();
    for (from, to, told) in [
        ("parallax-session", "session", "a session's first line"),
        (":1,", ":2,", "another Parallax reads version 2"),
        ("100x30", "100", "expected columns and rows"),
        ("gold", "golden", "auto, model, gold or human"),
        ("bm25", "bm52", "a recipe"),
        ("[\"bm25\",\"minilm+mmr@.75\"]", "[]", "at least one of \"lanes\""),
        ("\"k\":5", "\"k\":0", "a \"k\" from 1 to 100"),
        ("\"k\":5", "\"k\":5,\"widths\":[1000]", "as many \"widths\""),
        ("\"k\":5", "\"k\":5,\"widths\":[1000,0]", "from 1 to 10000"),
        ("\"k\":5", "\"k\":5,\"theme\":\"pink\"", "deuteranopia"),
        ("\"k\":5", "\"k\":5,\"config\":\"[keys\"", "a configuration"),
        ("\"k\":5", "\"k\":5,\"speed\":2", "unknown field"),
    ] {
        let error = wrong(from, to);
        assert!(error.contains(told) && error.contains(":1: expected"), "{error}");
        assert!(!error.contains(":2:"), "{error}");
    }
    assert!(reading("").unwrap_err().contains("record one with R"));
    assert!(read(Path::new("not-there.jsonl")).unwrap_err().to_string().contains("no such file"));
}

#[test]
fn the_carried_tour_is_a_session_whose_words_fit_a_small_terminal() {
    let tour = tour().unwrap();
    let replay = Replay::begin(&tour, 1.0);
    assert!(replay.captions.len() > 20);
    for words in replay.captions.iter() {
        let rows = crate::tui::wrap::wrap(words, 38, 9).len();
        assert!(rows <= 3, "{words}");
    }
    let whole: Duration = tour.acts.iter().map(|(after, _)| *after).sum();
    assert!((90..180).contains(&whole.as_secs()), "{whole:?}");
}

#[test]
fn a_pause_is_as_long_as_the_pace_makes_it_and_a_wait_ends_when_all_has_come() {
    let ms = Duration::from_millis;
    let text = format!(
        "{HEAD}\n{{\"after\":100,\"keys\":\"a\"}}\n{{\"after\":50,\"keys\":\"<Wait>\"}}\n{{\"after\":80,\"keys\":\"b\"}}"
    );
    let mut replay = Replay::begin(&reading(&text).unwrap(), 2.0);
    assert_eq!(replay.due(true), None);
    replay.pass(ms(49));
    assert_eq!(replay.due(true), None);
    assert_eq!(replay.left(true), Some(ms(2)));
    replay.pass(ms(2));
    assert!(matches!(replay.due(true), Some(Act::Step(Step::Key(_)))));
    replay.pass(ms(500));
    assert_eq!((replay.left(false), replay.due(false)), (None, None));
    assert_eq!(replay.due(true), Some(Act::Step(Step::Wait)));
    assert_eq!(replay.due(true), None, "what follows a wait counts from its end");
    replay.paused = true;
    replay.pass(ms(500));
    assert_eq!((replay.left(true), replay.due(true)), (None, None));
    replay.skip();
    assert!(replay.due(true).is_some() && replay.ended());
}
