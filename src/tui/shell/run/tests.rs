use crossterm::event::KeyCode;

use super::*;
use crate::detect::LabelSource;
use crate::engine::{Opening, Recipe};
use crate::tui::session;
use crate::tui::theme::Depth;

fn shell() -> (Shell, Receiver<Msg>) {
    let start = Start {
        opening: Opening { corpus: Some("no-such-corpus.jsonl".into()), ..Opening::default() },
        lanes: Recipe::defaults(),
        k: 5,
        source: LabelSource::Auto,
        question: String::new(),
        perspectives: Vec::new(),
        history: None,
        config: Default::default(),
        config_from: Default::default(),
        depth: Depth::Millions,
    };
    let (send, messages) = mpsc::channel();
    (Shell::new(start, None, Size { width: 80, height: 24 }, send).unwrap(), messages)
}

#[test]
fn what_was_not_saved_at_the_end_is_reported() {
    let labelled = |reason: &str| Msg::Engine(Reply::Labelled(Err(reason.into())));
    let messages = [Msg::Saved(Ok("a.svg".into())), Msg::Saved(Err("no room".into())), labelled("read only")];
    assert_eq!(unsaved(messages.into_iter()).as_deref(), Some("no room; read only"));
    assert_eq!(unsaved([Msg::Terminated, Msg::Saved(Ok("a.svg".into()))].into_iter()), None);
}

#[test]
fn a_stopped_process_adds_nothing_to_the_time_of_a_label_or_of_a_replay() {
    let (mut shell, _messages) = shell();
    let since = Instant::now();
    (shell.clock.since, shell.before) = (Some(since), since);
    shell.leave_out(Duration::from_secs(60));
    let later = since + Duration::from_secs(60);
    assert_eq!((shell.clock.since, shell.before), (Some(later), later));
}

#[test]
fn the_time_before_a_key_passes_before_it() {
    let (mut shell, messages) = shell();
    let tour = session::tour().unwrap();
    Replay::begin(&tour, 1.0).onto(&mut shell.app);
    shell.send.send(Msg::Key(KeyCode::Char(' ').into())).unwrap();
    assert!(matches!(shell.next(&messages)[0], Msg::Passed(_)));
}

#[test]
fn a_recording_holds_the_theme_that_was_read_again() {
    let (mut shell, _messages) = shell();
    shell.set_look(Look::Light);
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::begin(folder.path(), &shell.start, &shell.app, Instant::now()).unwrap();
    let text = std::fs::read_to_string(folder.path().join(recorder.name)).unwrap();
    assert!(text.contains(r#""theme":"light""#), "{text}");
    assert_eq!(shell.theme.look, Look::Light);
}
