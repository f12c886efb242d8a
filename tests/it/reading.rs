//! What is read from a list: keys and replies to state and effects, the screen on the sample, and `eval reader`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use parallax::detect::LabelSource;
use parallax::engine::{Heard, Survey, Want};
use parallax::pipeline::Opening;
use parallax::read::Answer;
use parallax::read::incremental::Reordered;
use parallax::read::stance::Stance::{self, Balanced, Opposes, Supports};
use parallax::tui::app::{App, Screen};
use parallax::tui::message::Effect;
use parallax::tui::script::parse;
use parallax::tui::{Start, play};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::server::{Fate, Server};
use crate::stage::{self, QUESTION, asked, empty, heard, many_sided, press};

fn stances(app: &App) -> Vec<Stance> {
    app.strip(app.lane).unwrap().stances
}

fn said(text: &str) -> Answer {
    Answer { text: text.into(), ..Answer::default() }
}

fn ended(app: &mut App) {
    heard(app, Heard::Ended(None));
}

/// The lane with the cursor read, with these answers.
fn read(app: &mut App, answers: &[&str]) {
    press(app, "<Enter>");
    for (i, text) in answers.iter().enumerate() {
        heard(app, Heard::Answer(i + 1, said(text)));
    }
    ended(app);
}

#[test]
fn r_shows_the_stance_after_every_passage_and_asks_nothing() {
    let mut app = asked(140, 40);
    assert_eq!(press(&mut app, "r"), []);
    assert_eq!(app.screen, Screen::Answer);
    assert_eq!(stances(&app), [Supports, Supports, Supports, Balanced, Balanced]);
    let strip = app.strip(0).unwrap();
    assert_eq!((strip.turns, strip.removed), (vec![3], Some(vec![0])));
    assert!(matches!(press(&mut app, "r").as_slice(), [Effect::StopSurvey(_)]));
    assert_eq!(app.screen, Screen::Explore);
}

#[test]
fn dropping_and_moving_change_the_stance_at_once_and_undo_takes_back_one_after_another() {
    let mut app = asked(140, 40);
    press(&mut app, "rx");
    assert_eq!(stances(&app), [Opposes; 4]);
    press(&mut app, "x");
    assert_eq!(stances(&app).len(), 5, "the same key restores it");
    press(&mut app, "J");
    assert_eq!(stances(&app), [Opposes, Opposes, Opposes, Balanced, Opposes]);
    assert_eq!(app.answering.at, 1, "the mark goes with the passage");
    assert_eq!(app.rows(0).iter().map(|row| row.rank).collect::<Vec<_>>(), [2, 1, 3, 4, 5]);
    press(&mut app, "K");
    assert_eq!(stances(&app), [Supports, Supports, Supports, Balanced, Balanced]);
    press(&mut app, "uuu");
    assert_eq!(stances(&app), [Opposes; 4]);
    press(&mut app, "u");
    assert_eq!(stances(&app).len(), 5);
    press(&mut app, "u");
    assert!(app.notice.as_deref().is_some_and(|notice| notice.contains("nothing was changed")));
    press(&mut app, "KjjjjJJ");
    assert!(app.answering.past.is_empty(), "nothing moves beyond the ends");
}

#[test]
fn every_lane_has_a_list_of_its_own_and_undo_returns_to_the_lane_of_the_change() {
    let mut app = asked(140, 40);
    press(&mut app, "rx<Tab>x");
    assert_eq!((app.kept(0).len(), app.kept(1).len(), app.kept(2).len()), (4, 4, 5));
    press(&mut app, "uu");
    assert_eq!((app.lane, app.kept(0).len(), app.kept(1).len()), (0, 5, 5));
}

#[test]
fn another_depth_keeps_what_was_changed() {
    let mut app = asked(140, 40);
    press(&mut app, "rJ");
    assert!(matches!(press(&mut app, "+").as_slice(), [Effect::Start { .. }]));
    let ranks: Vec<usize> = app.rows(0).iter().map(|row| row.rank).collect();
    assert_eq!(ranks, [2, 1, 3, 4, 5, 6]);
}

#[test]
fn a_question_without_two_sides_needs_a_reader() {
    let mut app = many_sided(140, 40);
    press(&mut app, "r");
    assert_eq!(app.screen, Screen::Explore);
    assert!(app.notice.as_deref().is_some_and(|notice| notice.contains("two sides")));
    stage::give_reader(&mut app, "m", false);
    press(&mut app, "r");
    assert_eq!((app.screen, app.strip(0)), (Screen::Answer, None));
    let mut app = empty(140, 40);
    press(&mut app, "<Esc>r");
    assert_eq!(app.screen, Screen::Explore);
}

#[test]
fn answers_stream_in_hold_for_what_is_read_alike_and_go_on_from_there() {
    let mut app = asked(140, 40);
    press(&mut app, "r<Enter>");
    assert!(app.notice.as_deref().is_some_and(|notice| notice.contains("--llm")));
    stage::give_reader(&mut app, "m", false);
    let effects = press(&mut app, "<Enter>");
    let [Effect::Survey(number, Survey::Read(hearing))] = effects.as_slice() else { panic!("{effects:?}") };
    assert_eq!(
        (hearing.want, hearing.passages.len(), hearing.question.as_str()),
        (Want::EachK(0), 5, QUESTION)
    );
    assert_eq!(*number, app.answering.number);
    heard(&mut app, Heard::Answer(1, said("Yes")));
    heard(&mut app, Heard::Answer(3, said("out of turn")));
    heard(&mut app, Heard::Answer(2, said("No")));
    assert_eq!(app.answers().len(), 2);
    assert!(matches!(press(&mut app, "<Enter>").as_slice(), [Effect::StopSurvey(_)]), "it can be given up");
    heard(&mut app, Heard::Answer(3, said("too late")));
    assert_eq!(app.answers().len(), 2);
    // Only the answer from the first passage holds once the second is dropped.
    press(&mut app, "jx");
    assert_eq!(app.answers(), [said("Yes")]);
    let effects = press(&mut app, "<Enter>");
    let [Effect::Survey(_, Survey::Read(hearing))] = effects.as_slice() else { panic!("{effects:?}") };
    let ranks: Vec<usize> = hearing.passages.iter().map(|context| context.rank).collect();
    assert_eq!((hearing.want, ranks), (Want::EachK(1), vec![1, 3, 4, 5]));
    assert!(matches!(press(&mut app, "u").as_slice(), [Effect::StopSurvey(_)]), "a change gives it up");
}

#[test]
fn an_answer_of_an_older_survey_is_dropped_and_a_failure_is_shown() {
    let mut app = asked(140, 40);
    stage::give_reader(&mut app, "m", false);
    press(&mut app, "r<Enter>");
    let number = app.answering.number - 1;
    let late = parallax::engine::Reply::Heard { number, heard: Heard::Answer(1, said("late")) };
    parallax::tui::update::update(&mut app, parallax::tui::message::Msg::Engine(late));
    assert!(app.answers().is_empty());
    heard(&mut app, Heard::Ended(Some("the server is gone".into())));
    assert!(!app.answering.going && app.answering.failed.as_deref() == Some("the server is gone"));
}

#[test]
fn a_probe_keeps_what_its_kinds_were_and_needs_gold_answers_at_every_depth() {
    let mut app = asked(140, 40);
    stage::give_reader(&mut app, "m", false);
    press(&mut app, "r1");
    assert!(app.notice.as_deref().is_some_and(|notice| notice.contains("gold answers")));
    app.question.answers = vec!["yes".into()];
    press(&mut app, "1");
    assert!(app.notice.as_deref().is_some_and(|notice| notice.contains("every depth")));
    // 0 1 1 0 1: IZ DP SP DN DP
    read(&mut app, &["no", "Yes", "yes.", "no", "Yes"]);
    press(&mut app, "1");
    let kept =
        |app: &App| app.rows(0).iter().filter(|row| !row.dropped).map(|row| row.rank).collect::<Vec<_>>();
    assert_eq!(kept(&app), [2, 3, 5]);
    press(&mut app, "u4");
    assert_eq!(kept(&app), [1, 2, 5]);
    assert_eq!(app.answers().len(), 2, "the first two were read in this order");
}

#[test]
fn a_list_that_was_read_can_be_read_without_each_and_in_other_orders() {
    let mut app = asked(140, 40);
    stage::give_reader(&mut app, "m", false);
    press(&mut app, "r");
    assert_eq!(press(&mut app, "w"), []);
    assert!(app.notice.as_deref().is_some_and(|notice| notice.contains("no answer yet")));
    read(&mut app, &["a", "a", "a", "b", "b"]);
    let effects = press(&mut app, "w");
    assert!(matches!(effects.as_slice(), [Effect::Survey(_, Survey::Read(h))] if h.want == Want::Without));
    assert_eq!(app.attention(), [] as [f64; 0]);
    heard(&mut app, Heard::Attention(vec![0.05, 0.2, 0.125, 0.5, 0.125]));
    for (place, text) in ["b", "B", "b", "a", "b"].into_iter().enumerate() {
        heard(&mut app, Heard::Without(place, said(text)));
    }
    ended(&mut app);
    let hangs: Vec<_> = (0..5).map(|place| app.hangs_on(place)).collect();
    assert_eq!(hangs, [Some(false), Some(false), Some(false), Some(true), Some(false)]);
    press(&mut app, "o");
    heard(&mut app, Heard::Reordered(Reordered { same: 7, of: 10 }));
    ended(&mut app);
    assert_eq!(app.reordered(), Some(Reordered { same: 7, of: 10 }));
    assert_eq!(app.attention()[3], 0.5);
    press(&mut app, "x");
    assert_eq!((app.reordered(), app.hangs_on(0)), (None, None), "it was another list");
    assert_eq!(app.attention(), [] as [f64; 0]);
}

fn played(opening: Opening, keys: &str) -> String {
    let start =
        Start { opening, source: LabelSource::Model, lanes: vec!["bm25".parse().unwrap()], ..stage::start() };
    let keys = parse(&format!("{QUESTION}<Enter><Wait>{keys}")).unwrap();
    play(start, stage::size(140, 40), &keys, Duration::from_secs(600)).unwrap().dump(false)
}

#[test]
fn on_the_sample_the_stance_is_shown_and_recorded_answers_are_marked() {
    let desk = TempDir::new().unwrap();
    let answers = desk.path().join("answers.jsonl");
    let line = |k: usize, answer: &str| {
        format!("{{\"question\":\"{QUESTION}\",\"k\":{k},\"answer\":\"{answer}\"}}\n")
    };
    fs::write(&answers, (1..=5).map(|k| line(k, if k < 4 { "Yes" } else { "No" })).collect::<String>())
        .unwrap();
    let opening = |answers| Opening { data_dir: desk.path().into(), answers, ..Opening::default() };
    let frame = played(opening(Some(answers)), "r<Enter>");
    for words in
        ["stance after each of the first 5", "BM25", "answer at each k, recorded answers", "4 changed", "No"]
    {
        assert!(frame.contains(words), "no `{words}` in\n{frame}");
    }
    let frame = played(opening(None), "rx");
    assert!(frame.contains("1 dropped") && !frame.contains("answer at each k"), "{frame}");
}

#[test]
fn a_model_reads_the_list_and_what_it_said_is_not_asked_again() {
    let server = Server::start(vec![], |prompt| if prompt.contains("[2]") { "No." } else { "Yes." }.into());
    let desk = TempDir::new().unwrap();
    let opening = || Opening {
        data_dir: desk.path().into(),
        llm: Some((server.url.clone(), "tiny".into())),
        ..Opening::default()
    };
    let frame = played(opening(), "r<Enter><Wait>w<Wait>o");
    for words in ["by the model tiny", "Yes.", "No.", "shuffled orders", "another answer without 0 of the 5"]
    {
        assert!(frame.contains(words), "no `{words}` in\n{frame}");
    }
    let asked = server.asked.lock().unwrap().len();
    played(opening(), "r<Enter><Wait>w<Wait>o");
    assert_eq!(server.asked.lock().unwrap().len(), asked);
}

#[test]
fn a_stance_is_asked_for_only_between_two_sides_without_gold_answers_and_the_supporting_one_comes_first() {
    let sides = |change: fn(&mut App)| {
        let mut app = asked(140, 40);
        stage::give_reader(&mut app, "m", false);
        change(&mut app);
        let effects = press(&mut app, "r<Enter>");
        let [Effect::Survey(_, Survey::Read(hearing))] = effects.as_slice() else { panic!("{effects:?}") };
        hearing
            .sides
            .clone()
            .map(|sides| sides.map(|side| app.question.perspectives.iter().position(|own| *own == side)))
    };
    assert_eq!(sides(|_| ()), Some([Some(0), Some(1)]));
    assert_eq!(sides(|app| app.question.supports = Some(1)), Some([Some(1), Some(0)]));
    assert_eq!(sides(|app| app.question.supports = None), None);
    assert_eq!(sides(|app| app.question.answers = vec!["yes".into()]), None);
}

#[test]
fn of_two_sides_a_model_is_asked_which_one_the_passages_take() {
    let server = Server::start(vec![], |prompt| {
        let both = prompt.contains("A. Zoos should be banned.\nB. Zoos should not be banned.");
        if !both {
            "nonsense"
        } else if prompt.contains("[3]") {
            "B."
        } else {
            "A"
        }
        .into()
    });
    let desk = TempDir::new().unwrap();
    let llm = Some((server.url.clone(), "tiny".into()));
    let frame = played(Opening { data_dir: desk.path().into(), llm, ..Opening::default() }, "r<Enter><Wait>");
    let turned = frame.lines().find(|line| line.contains("3 changed")).unwrap_or_else(|| panic!("{frame}"));
    assert!(turned.contains("opposes"), "{frame}");
    assert!(frame.lines().any(|line| line.contains(" 2         supports")), "{frame}");
    assert!(!frame.contains("nonsense"), "{frame}");
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
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{told}");
    for word in words {
        assert!(told.contains(word), "no `{word}` in {told}");
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

/// Patterns 01100 and 11010; what is read again for probe 1, a part of probe 2, and with the first question's gold passage.
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

#[test]
fn recorded_answers_give_the_figures_that_are_computed_by_hand() {
    let desk = TempDir::new().unwrap();
    fs::write(desk.path().join("fid.json"), FID).unwrap();
    fs::write(desk.path().join("mine.jsonl"), recorded()).unwrap();
    let plan = ["--questions", "fid.json", "--answers", "mine.jsonl"];
    let all = table(&eval(desk.path(), &[&plan[..], &["--format", "json"]].concat()));
    assert_eq!((all["questions"].as_u64(), all["rows"][0]["lane"].as_str()), (Some(2), Some("mine")));
    assert_eq!(
        ["EM@5", "AcEM@5", "Gap@5", "Held@5"].map(|name| mean(&all, 0, name)),
        [0.0, 1.0, 1.0, 0.5].map(Some)
    );
    let [over, types, probes, stability] = [0, 1, 2, 3].map(|i| all["further"][i].clone());
    let curve = |row| (1..=5).map(|k| mean(&over, row, &format!("k={k}")).unwrap()).collect::<Vec<_>>();
    assert_eq!(curve(0), [0.5, 1.0, 0.5, 0.5, 0.0]);
    assert_eq!(curve(1), [0.5, 1.0, 1.0, 1.0, 1.0]);
    assert_eq!(curve(2), [0.0, 0.0, 0.5, 0.5, 1.0]);
    let count = |code| mean(&types, 0, code).unwrap() * 2.0;
    assert_eq!(["IZ", "DP", "DN", "SP", "SN"].map(count), [1.0, 3.0, 3.0, 2.0, 1.0]);
    let notes = all["notes"].to_string();
    for words in [
        "IZ 1, DP 3, DN 3, SP 2, SN 1",
        "3 questions, 10 passages",
        "1 questions have no gold",
        "1 empty",
        "1 refusals",
        "recorded before",
    ] {
        assert!(notes.contains(words), "no `{words}` in {notes}");
    }
    let probe = |row| ["kept", "EM@1", "EM@2", "EM@3"].map(|name| mean(&probes, row, name));
    assert_eq!(probe(0), [2.5, 1.0, 0.5, 0.5].map(Some));
    assert_eq!(probes["rows"][1]["measures"]["EM@2"]["n"], 1, "what was not recorded is not counted");
    let retrieved = [1, 2, 3, 4].map(|n| mean(&stability, 0, &format!("SER@{n}")));
    assert_eq!(retrieved, [0.0, 1.0, 0.0, 1.0].map(Some));
    assert_eq!(mean(&stability, 1, "SER@1"), None, "nothing was recorded with random passages");
    let plots = eval(desk.path(), &[&plan[..], &["--plots", "plots", "--format", "html"]].concat());
    assert_eq!(plots.status.code(), Some(0));
    let svg = fs::read_to_string(desk.path().join("plots/reader-over-k.svg")).unwrap();
    assert!(svg.contains(">AcEM</text>") && svg.contains(">EM</text>"));
}

#[test]
fn without_a_reader_only_what_the_passages_hold_is_told() {
    let desk = TempDir::new().unwrap();
    fs::write(desk.path().join("fid.json"), FID).unwrap();
    let told = table(&eval(desk.path(), &["--questions", "fid.json", "--format", "json"]));
    assert_eq!((mean(&told, 0, "Held@5"), mean(&told, 0, "EM@5")), (Some(0.5), None));
    assert!(told["notes"].to_string().contains("nothing was read"));
}

#[test]
fn a_model_is_right_by_its_own_words_where_another_takes_them_for_the_same() {
    let desk = TempDir::new().unwrap();
    let docs = r#"{"question":"Who?","gold_answers":["Ann"],"wrong_answers":[],"documents":[{"text":"x","type":"correct","answer":"Ann"},{"text":"y","type":"noise","answer":""}]}"#;
    fs::write(desk.path().join("ramdocs.jsonl"), docs).unwrap();
    let server = Server::start(vec![Fate::TooMany], |prompt| {
        if prompt.contains("mean the same") {
            "Yes, it does."
        } else if prompt.contains("[2]") {
            "Annie"
        } else {
            "Ann"
        }
        .into()
    });
    let plan = [
        "--questions",
        "ramdocs.jsonl",
        "--llm",
        &server.url,
        "--llm-model",
        "tiny",
        "-k",
        "2",
        "--format",
        "json",
    ];
    let told = table(&eval(desk.path(), &plan));
    let figures = ["EM@2", "AcEM@2", "SeEM@2", "SeAcEM@2"].map(|name| mean(&told, 0, name));
    assert_eq!(figures, [0.0, 1.0, 1.0, 1.0].map(Some));
    let notes = told["notes"].to_string();
    assert!(
        notes.contains("1 answers joined") && notes.contains("tiny judged") && notes.contains("order"),
        "{notes}"
    );
}

#[test]
fn what_one_model_said_is_never_told_under_the_name_of_another() {
    let desk = TempDir::new().unwrap();
    fs::write(desk.path().join("fid.json"), CITIES).unwrap();
    let [lyon, rome] = [
        Server::start(vec![], |prompt| if prompt.contains("mean the same") { "No." } else { "Lyon" }.into()),
        Server::start(vec![], |prompt| if prompt.contains("mean the same") { "Yes." } else { "Rome" }.into()),
    ];
    let read = |server: &Server, name: &str| {
        let plan = ["--questions", "fid.json", "--llm", &server.url, "--llm-model", name, "-k", "2"];
        let told = table(&eval(desk.path(), &[&plan[..], &["--format", "json"]].concat()));
        assert_eq!(told["rows"][0]["lane"].as_str(), Some(name));
        (mean(&told, 0, "EM@2"), mean(&told, 0, "SeEM@2"), server.asked.lock().unwrap().len())
    };
    let one = read(&lyon, "one");
    let two = read(&rome, "two");
    assert_eq!((one.0, one.1), (Some(0.5), Some(0.5)));
    assert_eq!((two.0, two.1), (Some(0.0), Some(1.0)));
    assert!(one.2 > 0 && two.2 > 0);
    assert_eq!((read(&lyon, "one"), read(&rome, "two")), (one, two), "nothing is asked twice");
}

#[test]
fn a_server_that_is_not_there_is_told_and_the_questions_count_as_failed() {
    let desk = TempDir::new().unwrap();
    fs::write(desk.path().join("fid.json"), FID).unwrap();
    let plan = [
        "--questions",
        "fid.json",
        "--llm",
        "http://127.0.0.1:9/v1",
        "--llm-model",
        "tiny",
        "--format",
        "json",
    ];
    let output = eval(desk.path(), &plan);
    assert_eq!(output.status.code(), Some(1));
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((told["failed"].as_u64(), mean(&told, 0, "EM@5")), (Some(2), Some(0.0)));
}

#[test]
fn bad_files_and_options_that_do_not_fit_are_refused() {
    let desk = TempDir::new().unwrap();
    let write = |name: &str, text: &str| fs::write(desk.path().join(name), text).unwrap();
    write("fid.json", FID);
    write("bad.jsonl", "{\"question\":\"Who?\",\"answers\":[\"a\"],\"ctxs\":[]}\n{\"question\":\"Who?\"}\n");
    write("answers.jsonl", "{\"question\":\"Who?\"}\n");
    write("nogold.jsonl", "{\"question\":\"Who?\",\"answers\":[],\"ctxs\":[]}\n");
    refused(&eval(desk.path(), &["--questions", "bad.jsonl"]), &["bad.jsonl:2", "`ctxs` (FiD)"]);
    refused(
        &eval(desk.path(), &["--questions", "fid.json", "--answers", "answers.jsonl"]),
        &["answers.jsonl:1", "`k`"],
    );
    refused(&eval(desk.path(), &["--questions", "nogold.jsonl"]), &["no question has a gold answer"]);
    refused(&eval(desk.path(), &["--questions", "fid.json", "--lane", "bm25"]), &["leave --lane out"]);
    refused(&eval(desk.path(), &["--answers", "answers.jsonl"]), &["--answers is for questions that bring"]);
}

#[test]
fn lanes_over_a_question_set_have_a_stance_each() {
    let desk = TempDir::new().unwrap();
    let told =
        table(&eval(desk.path(), &["--lanes", "bm25,minilm", "--label-source", "gold", "--format", "json"]));
    let columns = ["supports@5", "opposes@5", "balanced@5", "silent@5"];
    for row in 0..2 {
        let shares = columns.map(|name| mean(&told, row, name).unwrap());
        assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{shares:?}");
        assert!(mean(&told, row, "turned@5").unwrap() <= mean(&told, row, "turns@5").unwrap());
        assert!(mean(&told, row, "removed@5").unwrap() >= 1.0);
    }
}

/// A model of a few words (`tools/reader/make_span_fixture.py`): Paris .9, Rome .6, Lyon .4.
fn words() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/readers/words")
}

/// Rome turns the right answer, which a third passage brings back; the second question is right at once.
const CITIES: &str = r#"[
{"question":"Where?","answers":["Lyon"],"ctxs":[{"id":"a1","text":"It is in Lyon.","isgold":true},{"id":"a2","title":"Rome","text":"It is there."},{"id":"a3","text":"In Lyon, they say."},{"id":"a4","text":"No city here."}]},
{"question":"Which?","answers":["paris"],"ctxs":[{"id":"b1","text":"Paris","isgold":true},{"id":"b2","text":"Rome"},{"id":"b3","text":"Lyon"},{"id":"b4","text":""}]}
]"#;

#[test]
fn a_brought_reader_gives_the_figures_that_its_passages_vote_for() {
    let desk = TempDir::new().unwrap();
    fs::write(desk.path().join("fid.json"), CITIES).unwrap();
    let folder = words();
    let plan =
        ["--questions", "fid.json", "--reader", folder.to_str().unwrap(), "-k", "4", "--format", "json"];
    let all = table(&eval(desk.path(), &plan));
    assert_eq!(all["rows"][0]["lane"].as_str(), Some("words"));
    let card: Value = serde_json::from_slice(&fs::read(folder.join("reader.json")).unwrap()).unwrap();
    let digits = &card["sha256"].as_str().unwrap()[..12];
    assert!(all.to_string().contains(&format!("\"reader_weights\":\"{digits}\"")), "{}", all["provenance"]);
    assert_eq!(["EM@4", "AcEM@4", "Gap@4"].map(|name| mean(&all, 0, name)), [1.0, 1.0, 0.0].map(Some));
    let curve =
        |row| (1..=4).map(|k| mean(&all["further"][0], row, &format!("k={k}")).unwrap()).collect::<Vec<_>>();
    assert_eq!(curve(0), [1.0, 0.5, 1.0, 1.0]);
    assert_eq!(curve(1), [1.0; 4]);
    let notes = all["notes"].to_string();
    assert!(notes.contains("DP 3, DN 1, SP 4") && !notes.contains("the order of"), "{notes}");
}

#[test]
fn a_folder_without_a_reader_is_told_what_was_expected() {
    let desk = TempDir::new().unwrap();
    fs::write(desk.path().join("fid.json"), CITIES).unwrap();
    fs::create_dir(desk.path().join("none")).unwrap();
    let with = |more: &[&str]| eval(desk.path(), &[&["--questions", "fid.json"], more].concat());
    refused(&with(&["--reader", "none"]), &["none: no reader is in it", "expected reader.json", "`nothing`"]);
    refused(&with(&["--reader", "fid.json"]), &["fid.json: a reader is a folder"]);
    refused(&with(&["--reader", "none", "--answers", "fid.json"]), &["--reader", "cannot be used with"]);
    refused(&eval(desk.path(), &["--reader", "none"]), &["--reader is for questions that bring"]);
}

#[test]
fn a_brought_reader_answers_on_the_screen_and_one_that_is_none_is_told_there() {
    let desk = TempDir::new().unwrap();
    let opening =
        |reader| Opening { data_dir: desk.path().into(), reader: Some(reader), ..Opening::default() };
    let frame = played(opening(words()), "r<Enter><Wait>o");
    for words in ["by the model words", "10 of 10 shuffled orders"] {
        assert!(frame.contains(words), "no `{words}` in\n{frame}");
    }
    let start = Start { opening: opening(desk.path().into()), ..stage::start() };
    let frame = play(start, stage::size(140, 40), &[], Duration::from_secs(600)).unwrap().dump(false);
    assert!(frame.contains("no reader is in it"), "{frame}");
}

/// A random T5 (`tools/reader/make_fid_fixture.py`), and what Python read with it.
fn fused() -> (PathBuf, Vec<Value>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/fid/gated");
    let told = fs::read(folder.join("expected.json")).unwrap();
    (folder, serde_json::from_slice(&told).unwrap())
}

#[test]
fn fid_is_a_brought_reader_whose_answers_are_python_s_at_every_k() {
    let desk = TempDir::new().unwrap();
    let (folder, told) = fused();
    let answer = |k: usize| told[k]["text"].as_str().unwrap();
    // Python read the first one, two and three of these, and a long one with others.
    let question = |at: usize, gold: &str| {
        let ctxs = told[at]["passages"].as_array().unwrap().iter();
        let ctxs: Vec<Value> = ctxs.map(|ctx| json!({"title": ctx[0], "text": ctx[1]})).collect();
        json!({"question": told[at]["question"], "answers": [gold], "ctxs": ctxs})
    };
    let questions = json!([question(3, answer(2)), question(4, answer(4))]);
    fs::write(desk.path().join("fid.json"), questions.to_string()).unwrap();
    let plan =
        ["--questions", "fid.json", "--reader", folder.to_str().unwrap(), "-k", "3", "--format", "json"];
    let all = table(&eval(desk.path(), &plan));
    assert_eq!(all["rows"][0]["lane"].as_str(), Some("gated"));
    assert!(answer(1) != answer(2) && answer(2) != answer(3));
    assert_eq!(mean(&all, 0, "EM@3"), Some(0.5));
    assert_eq!(mean(&all, 0, "AcEM@3"), Some(1.0));
    let notes = all["notes"].to_string();
    assert!(notes.contains("2 readings were cut at 200 tokens a passage"), "{notes}");
    assert!(!notes.contains("the order of"), "{notes}");
}

#[test]
fn fid_answers_on_the_screen_and_shows_where_it_looks() {
    let desk = TempDir::new().unwrap();
    let opening = Opening { data_dir: desk.path().into(), reader: Some(fused().0), ..Opening::default() };
    let shown = played(opening, "r<Enter><Wait>w<Wait>o<Wait>");
    for words in ["by the model gated", "attention as the answer begins: 1:0.", "in 10 of 10 shuffled orders"]
    {
        assert!(shown.contains(words), "{words}: {shown}");
    }
}
