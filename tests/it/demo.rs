//! Sessions: recorded, read, played and filmed; the built-in tour; the pictures of the documents.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parallax::engine::{AnnotationState, Labelling, Reply};
use parallax::tui::app::App;
use parallax::tui::config;
use parallax::tui::keymap::Screen;
use parallax::tui::message::{Effect, Msg, Recording};
use parallax::tui::script::{self, Step};
use parallax::tui::session::{self, Recorder, Replay, Session};
use parallax::tui::update::update;
use parallax::tui::{Start, film};

use crate::program::{Workspace, printed};
use crate::stage::{self, asked, press};

const HEAD: &str = r#"{"parallax-session":1,"size":"100x30","label-source":"gold","lanes":["bm25"],"k":5}"#;

fn session(acts: &str) -> Session {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.session.jsonl");
    fs::write(&file, format!("{HEAD}\n{acts}")).unwrap();
    session::read(&file).unwrap()
}

fn playing(acts: &str) -> App {
    let mut app = asked(100, 30);
    Replay::begin(&session(acts), 1.0).onto(&mut app);
    app
}

fn pass(app: &mut App, milliseconds: u64) -> Vec<Effect> {
    update(app, Msg::Passed(Duration::from_millis(milliseconds)))
}

#[test]
fn acts_happen_at_their_time_and_then_the_user_has_control() {
    let mut app = playing("{\"after\":100,\"keys\":\"?\"}\n{\"after\":100,\"say\":\"Keys.\"}");
    pass(&mut app, 99);
    assert_eq!(app.screen, Screen::LANES);
    pass(&mut app, 1);
    assert_eq!(app.screen, Screen::HELP);
    pass(&mut app, 100);
    assert!(app.replay.is_none());
    assert!(app.notice.is_some_and(|notice| notice.contains("now the keys are yours")));
}

#[test]
fn the_viewer_can_pause_speed_up_skip_and_take_over() {
    let mut app = playing("{\"after\":100,\"keys\":\"?\"}\n{\"after\":900,\"keys\":\"<Esc>\"}");
    press(&mut app, "<Space>");
    pass(&mut app, 5_000);
    assert_eq!(app.screen, Screen::LANES, "it stands still");
    press(&mut app, "<Space><Right>");
    pass(&mut app, 50);
    assert_eq!(app.screen, Screen::HELP, "twice as fast");
    press(&mut app, "m");
    assert!(app.replay.as_ref().is_some_and(|replay| replay.paused), "any other key stops it");
    press(&mut app, "<Enter>");
    assert_eq!(app.screen, Screen::LANES, "the next act at once");
    let mut app = playing("{\"after\":100,\"keys\":\"?\"}");
    press(&mut app, "q");
    assert!(app.replay.is_none());
    press(&mut app, "?");
    assert_eq!(app.screen, Screen::HELP, "the keys are the user's own");
}

#[test]
fn a_replay_writes_no_files_never_quits_and_does_not_click_in_another_size() {
    let mut app = playing("{\"after\":0,\"keys\":\"SYRq<Resize:50x10>\"}\n{\"after\":9,\"keys\":\"?\"}");
    assert_eq!(pass(&mut app, 0), []);
    assert!(app.recording.is_none() && app.replay.is_some());
    assert_eq!((app.size.width, app.size.height), (100, 30));
    let mut app = playing("{\"after\":0,\"keys\":\"<Click:60,6>\"}\n{\"after\":9,\"keys\":\"?\"}");
    app.size = stage::size(80, 24);
    pass(&mut app, 0);
    assert!(app.notice.is_some_and(|notice| notice.contains("another size")));
}

#[test]
fn many_acts_without_a_pause_are_done_in_several_frames() {
    let mut app = playing(&format!("{{\"after\":0,\"keys\":\"{}\"}}", "j".repeat(600)));
    let done = |app: &App| app.replay.as_ref().map(|replay| replay.done);
    for so_far in [Some(256), Some(512), None] {
        pass(&mut app, 0);
        assert_eq!(done(&app), so_far);
    }
}

#[test]
fn suspending_pauses_a_replay() {
    let mut app = playing("{\"after\":100,\"keys\":\"?\"}");
    assert_eq!(press(&mut app, "<C-z>"), [Effect::Suspend]);
    pass(&mut app, 60_000);
    assert!(app.screen == Screen::LANES && app.replay.is_some());
}

#[test]
fn a_replay_shows_labels_but_writes_none() {
    let mut app = playing("{\"after\":1,\"keys\":\"a\"}\n{\"after\":9,\"keys\":\"?\"}");
    let effects = pass(&mut app, 1);
    assert!(matches!(effects[..], [Effect::Label(Labelling::Show(..))]), "{effects:?}");
    let mut app = asked(100, 30);
    let effects = press(&mut app, "a");
    assert!(matches!(effects[..], [Effect::Label(Labelling::Open(..))]), "{effects:?}");
}

#[test]
fn a_note_of_a_session_is_typed_when_it_is_played_though_it_is_not_stored() {
    let keys = |keys: &str| format!("{{\"after\":1,\"keys\":\"{keys}\"}}\n");
    let mut app = playing(&["a", "t", "q", "?"].map(keys).concat());
    let effects = pass(&mut app, 1);
    let [Effect::Label(Labelling::Show(items, questions))] = effects.as_slice() else {
        panic!("{effects:?}")
    };
    let annotation = AnnotationState {
        by: "anna".into(),
        items: items.clone(),
        questions: questions.clone(),
        read_only: Some("it is only shown".into()),
        ..AnnotationState::default()
    };
    update(&mut app, Msg::Engine(Reply::AnnotationState(Ok(Box::new(annotation)))));
    pass(&mut app, 2);
    assert_eq!(app.labelling.typed.as_ref().map(|note| note.value()), Some("q"));
}

/// The frame without the notice.
fn seen(app: &App) -> String {
    let app = App { notice: None, ..app.clone() };
    parallax::tui::frame(&app, stage::start().theme()).unwrap().dump(true)
}

/// Records in a folder and reads the file, with a last act that is never due.
fn recorded(folder: &Path, app: &App, acts: &[(u64, Msg)]) -> Session {
    let mut now = Instant::now();
    let mut recorder = Recorder::begin(folder, &stage::start(), app, now).unwrap();
    for (hours, msg) in acts {
        now += Duration::from_secs(hours * 3600);
        recorder.take(msg, now).unwrap();
    }
    let file = folder.join(&recorder.name);
    let mut text = fs::read_to_string(&file).unwrap();
    text += "{\"after\":86400000,\"keys\":\"?\"}\n";
    fs::write(&file, text).unwrap();
    session::read(&file).unwrap()
}

#[test]
fn a_recording_that_begins_under_a_filter_with_lanes_moved_and_dragged_plays_the_same_frame() {
    let plain = asked(140, 24);
    let mut app = asked(140, 24);
    app.layout.passage_rows = 2;
    press(&mut app, "fzoos <lt><BS><BS><Enter>ljjjl=jjj=kh");
    app.lanes[0].width = 1400;
    app.lanes[1].width = 600;
    press(&mut app, "=");
    let now = seen(&app);
    assert!(now.contains("filter: zoos") && now != seen(&plain), "{now}");
    let folder = tempfile::tempdir().unwrap();
    let session = recorded(folder.path(), &app, &[]);
    let mut again = plain;
    Replay::filmed(&session).onto(&mut again);
    pass(&mut again, 1);
    assert_eq!(seen(&again), now);
    assert_eq!((again.together, again.lane), (app.together, app.lane));
    let places = |app: &App| app.lanes.iter().map(|lane| (lane.selected, lane.top)).collect::<Vec<_>>();
    assert_eq!(places(&again), places(&app));
}

#[test]
fn a_recording_that_begins_with_a_field_beside_passages_shows_it_again() {
    let counted = || Msg::Engine(Reply::Fields(Arc::new(stage::fields())));
    let plain = asked(140, 30);
    let mut app = plain.clone();
    press(&mut app, "F");
    update(&mut app, counted());
    press(&mut app, "<Tab><Enter>jj");
    let now = seen(&app);
    assert!(app.biasing.on_lanes == Some(1) && now != seen(&plain), "{now}");
    let folder = tempfile::tempdir().unwrap();
    let session = recorded(folder.path(), &app, &[]);
    let mut again = plain;
    Replay::filmed(&session).onto(&mut again);
    pass(&mut again, 1);
    assert_eq!(again.screen, Screen::BIAS, "the fields are waited for");
    update(&mut again, counted());
    pass(&mut again, 1);
    assert_eq!((seen(&again), again.biasing.on_lanes), (now, Some(1)));
}

#[test]
fn a_pause_of_days_is_shortened_to_a_day() {
    let folder = tempfile::tempdir().unwrap();
    let [Step::Key(key)] = script::parse("j").unwrap()[..] else { panic!("no key") };
    let session = recorded(folder.path(), &asked(100, 30), &[(50, Msg::Key(key))]);
    assert!(session.acts.iter().any(|(after, _)| after.as_secs() == 24 * 3600));
}

#[test]
fn new_keys_or_a_new_layout_end_a_recording_with_a_notice() {
    let folder = tempfile::tempdir().unwrap();
    let (mut app, now) = (asked(100, 30), Instant::now());
    let mut recorder = Recorder::begin(folder.path(), &stage::start(), &app, now).unwrap();
    let read = |text: &str| Msg::Configured(Ok(config::read(text).0));
    recorder.take(&read("glyphs = 'ascii'"), now).unwrap();
    for text in ["[keys]\nhelp = '<C-g>'", "[layout]\npassage-rows = 2"] {
        let error = recorder.take(&read(text), now).unwrap_err();
        update(&mut app, Msg::Recorded(Recording::Failed(error.to_string())));
        let notice = app.notice.clone().unwrap();
        assert!(notice.contains("keys or layout have changed; parallax-1.session.jsonl holds"), "{notice}");
    }
}

#[test]
fn options_that_a_recording_cannot_contain_are_named() {
    let mut start = stage::start();
    let app = asked(100, 30);
    assert!(session::unrecorded_options(&start, &app).is_empty());
    start.opening.llm = Some(("http://localhost:1/v1".into(), "m".into()));
    start.opening.reader = Some("reader".into());
    assert_eq!(session::unrecorded_options(&start, &app), ["--llm", "--reader"]);
}

#[test]
fn r_records_in_the_lanes_and_the_same_key_ends_it_anywhere() {
    let mut app = asked(100, 30);
    assert_eq!(press(&mut app, "R"), [Effect::Record]);
    update(&mut app, Msg::Recorded(Recording::Began("parallax-1.session.jsonl".into(), vec!["--llm"])));
    let shown = parallax::tui::frame(&app, stage::start().theme()).unwrap().dump(false);
    assert!(shown.contains("● recording") && shown.contains("to play it, name again: --llm"), "{shown}");
    press(&mut app, "<Enter>");
    assert!(press(&mut app, "R").contains(&Effect::StopRecording));
    update(&mut app, Msg::Recorded(Recording::Ended("parallax-1.session.jsonl".into())));
    assert!(
        app.notice.as_ref().is_some_and(|notice| notice.contains("parallax demo parallax-1.session.jsonl"))
    );
    assert_eq!(press(&mut app, "R"), [], "elsewhere it does not begin");
}

/// Captions, each with a text that must be on the same frame.
const CLAIMS: [(&str, &[&str]); 13] = [
    (
        "Every column is",
        &["▲ Secondary schools should start", "▼ Secondary schools should not", "BM25", "MiniLM", "Hybrid"],
    ),
    ("gold labels", &["judged by gold labels"]),
    ("BM25: two of", &["MRecall@5 0", "0 support · 2 oppose · 3 neither"]),
    ("MiniLM compares", &["MRecall@5 0", "0 support · 1 oppose · 4 neither"]),
    ("Hybrid fuses", &["0 support · 1 oppose · 4 neither"]),
    ("Arrows say", &["Hybrid +mmr", "↑", "↓", "0 support · 2 oppose · 3 neither"]),
    ("Now both", &["Hybrid +perspectives", "MRecall@5 1 (+1)"]),
    ("Its scores and", &["MiniLM +pap-plus→2", "MRecall@5 1 (+1)", "1 support · 1 oppose · 3 neither"]),
    ("The detector is", &["+xquad", "0 support · 1 oppose · 4 neither", "experimental"]),
    ("Asked as ▼, MiniLM", &["asked as ▼", "supporting .40, opposing .20", "shift -.40"]),
    ("Hybrid's shift says", &["not expanded alike: Hybrid"]),
    ("Means over the set", &["24/24 questions", ".96 (", ".92 (", ".75 ("]),
    ("MiniLM's list ends", &["opposes · turned by 2"]),
];

#[test]
fn the_tour_plays_to_its_end_and_shows_what_its_captions_say() {
    let workspace = tempfile::tempdir().unwrap();
    let tour = session::tour().unwrap();
    let mut start = stage::start();
    start.opening.data_dir = workspace.path().into();
    start.lanes = tour.head.lanes.iter().map(|lane| lane.parse().unwrap()).collect();
    start.source = parallax::detect::LabelSource::Gold;
    let start = Start { k: usize::from(tour.head.k), ..start };
    let mut frames: Vec<String> = Vec::new();
    film(start, &tour, Duration::from_secs(1800), |frame, _| frames.push(frame.dump(false))).unwrap();
    for (words, all) in CLAIMS {
        let said: Vec<&String> = frames.iter().filter(|frame| frame.contains(words)).collect();
        let last = said.last().unwrap_or_else(|| panic!("`{words}` is never said"));
        for shown in all {
            // Beside a difference there is only room for the marks.
            let marks = shown.replace(" support", "▲").replace(" oppose", "▼").replace(" neither", "○");
            let is_there = |frame: &&String| frame.contains(shown) || frame.contains(&marks);
            assert!(said.iter().any(is_there), "no `{shown}` in\n{last}");
        }
    }
    assert!(frames.iter().any(|frame| frame.contains("Why rank 2 in MiniLM")));
    let last = frames.last().unwrap();
    assert!(last.contains("That was the tour.") && last.contains("⏎ read"), "{last}");
}

#[test]
fn a_session_becomes_a_film_and_other_files_are_refused() {
    let workspace = Workspace::new();
    let acts = r#"{"after":9,"say":"Look."}
{"after":9,"keys":"Should zoos be banned?<Enter><Wait>"}
{"after":900,"keys":"j"}
"#;
    workspace.write("a.session.jsonl", format!("{HEAD}\n{acts}"));
    workspace.run(&["demo", "a.session.jsonl", "--out", "a.svg"]).good();
    let picture = fs::read_to_string(workspace.files.path().join("a.svg")).unwrap();
    assert!(picture.starts_with("<svg ") && picture.contains("@keyframes") && picture.contains("Look."));
    workspace.run(&["demo", "a.session.jsonl", "--out", "a.gif"]).bad(&["a.gif", ".svg"]);
    workspace.run(&["demo", "a.session.jsonl"]).bad(&["a terminal", "--out"]);
    workspace.run(&["demo", "--speed", "0"]).bad(&["0.125 to 64"]);
    workspace.write("b.session.jsonl", format!("{HEAD}\n{{\"after\":1,\"keys\":\"<Entr>\"}}\n"));
    workspace.run(&["demo", "b.session.jsonl"]).bad(&["b.session.jsonl:2: expected", "<Entr>"]);
}

#[test]
fn a_session_contacts_no_server_and_no_language_model_that_the_command_line_does_not_name() {
    let (workspace, server) = (Workspace::new(), TcpListener::bind("127.0.0.1:0").unwrap());
    server.set_nonblocking(true).unwrap();
    let remote = format!("os:http://{}/arguments", server.local_addr().unwrap());
    let acts = r#"{"after":1,"keys":"Should zoos be banned?<Enter>"}"#;
    workspace.write("a.jsonl", format!("{}\n{acts}\n", HEAD.replace("bm25", &remote)));
    const PLAY: [&str; 4] = ["demo", "a.jsonl", "--out", "a.svg"];
    let ended = workspace.run(&PLAY);
    ended.bad(&["a.jsonl:1: the lane `os:", "asks another machine", "repeat it with --lane"]);
    workspace.run(&[&PLAY[..], &["--lane", "os:http://127.0.0.1:1/a"]].concat()).bad(&["has no such lane"]);
    let none = server.accept().map(|_| ()).map_err(|error| error.kind());
    assert_eq!(none, Err(std::io::ErrorKind::WouldBlock), "a request was sent");

    let llm = format!("{}\n{acts}\n", HEAD.replace("\"k\":5", "\"k\":5,\"detector\":\"llm\""));
    workspace.write("a.jsonl", llm);
    let ended = workspace.run(&PLAY);
    ended.bad(&["a.jsonl:1: the session judges with a language model", "--detector llm"]);

    // A language model named by the environment gets no request, although the lane could use it.
    workspace.write("a.jsonl", format!("{}\n{acts}\n", HEAD.replace("bm25", "bm25+csqe")));
    let address = format!("http://{}/v1", server.local_addr().unwrap());
    let mut command = workspace.command(&PLAY);
    command.env("PARALLAX_LLM", &address).env("PARALLAX_LLM_MODEL", "m").env("PARALLAX_LLM_KEY", "hush");
    printed(&mut command).good();
    let none = server.accept().map(|_| ()).map_err(|error| error.kind());
    assert_eq!(none, Err(std::io::ErrorKind::WouldBlock), "a request was sent");
}

#[test]
fn options_that_a_session_contains_are_refused_on_the_command_line() {
    let workspace = Workspace::new();
    workspace.write("a.jsonl", format!("{HEAD}\n"));
    let play = |more: &[&str]| workspace.run(&[&["demo", "a.jsonl", "--out", "a.svg"], more].concat());
    for (option, value) in [
        ("--corpus", "a.jsonl"),
        ("--questions", "a.jsonl"),
        ("--labels", "a.jsonl"),
        ("--label-source", "gold"),
        ("--perspective", "Zoos are good."),
        ("-k", "7"),
    ] {
        play(&[option, value]).bad(&[option, "opens what it was recorded with"]);
    }
    play(&["--lanes", "minilm"]).bad(&["--lane minilm: a.jsonl has no such lane"]);
    play(&["--detector", "llm"]).bad(&["--detector llm: a.jsonl was recorded with builtin"]);
    play(&["--lane", "bm25", "--detector", "builtin"]).good();
}

#[test]
fn the_page_of_screens_shows_exactly_the_pictures_of_the_script() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |name: &str| fs::read_to_string(root.join(name)).unwrap();
    let names = |text: &str, before: &str| {
        let parts = text.split(before).skip(1).filter_map(|rest| rest.split_once(')'));
        let mut names: Vec<String> = parts.map(|(name, _)| name.to_owned()).collect();
        names.sort();
        names.dedup();
        names
    };
    let script = read("tools/pictures/make.sh");
    let named = |prefix: &'static str| {
        script
            .lines()
            .filter_map(move |line| line.trim_start().strip_prefix(prefix))
            .filter_map(|line| line.split_whitespace().next().map(str::to_owned))
    };
    let mut made: Vec<String> = named("picture ").map(|name| format!("{name}.svg")).collect();
    for view in named("view ") {
        for size in ["", "-80x24", "-40x12"] {
            made.extend(["", "-light"].map(|theme| format!("{view}{size}{theme}.png")));
        }
    }
    made.sort();
    assert!(made.len() > 10);
    assert_eq!(names(&read("docs/screens.md"), "(pictures/"), made);
    for name in &made {
        assert!(root.join(format!("docs/pictures/{name}")).exists(), "{name}: run tools/pictures/make.sh");
    }
    assert!(
        read("README.md").contains("(docs/pictures/explore.png)") && made.contains(&"explore.png".to_owned())
    );
    assert!(script.contains("docs/pictures/tour.svg"));
    assert!(read("docs/sessions.md").contains("(pictures/tour.svg)"));
}
