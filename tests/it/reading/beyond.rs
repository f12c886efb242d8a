//! Key points, mixed lists and the sides of an answer: their screens, `eval nuggets` and `eval mix`.

use std::sync::Arc;

use parallax::engine::{AnswerEvent, PointsEvent, Reply};
use parallax::tui::message::Msg;
use parallax::tui::theme::{Look, Theme};
use parallax::tui::update::update;

use super::*;
use crate::stage::{mixer, pointed, sided};

fn text(app: &App) -> String {
    parallax::tui::frame(app, Theme::of(Look::Terminal)).unwrap().dump(false)
}

fn names(app: &App) -> Vec<String> {
    let found = app.points.found.as_ref().unwrap().as_ref().unwrap();
    found.iter().map(|point| point.name.clone()).collect()
}

#[test]
fn the_key_points_show_the_rank_at_which_each_lane_brings_them_and_what_it_misses() {
    let app = pointed(140, 40);
    let shown = text(&app);
    let row = |words: &str| shown.lines().find(|line| line.contains(words)).unwrap().to_owned();
    // The first list is in order, the second turned round, of the first five passages each.
    let first = row("Elephants in captivity live half as long");
    assert!(first.contains('●') && first.contains('▲'), "{first}");
    let last = row("A ban on zoos would drive");
    let ranks: Vec<&str> = last.split_whitespace().rev().take(4).collect();
    assert_eq!(ranks[1..].iter().rev().copied().collect::<Vec<_>>(), ["2", "·", "5"], "{shown}");
    // Of the four, the first lane brings all: 1, 4, 5 and 2.
    assert!(row("found of all").contains("1.0"), "{shown}");
    assert!(shown.contains("2 like sentences of 2 passages, grouped by a model"), "{shown}");
}

#[test]
fn key_points_are_renamed_merged_split_dropped_and_restored() {
    let mut app = pointed(140, 40);
    let before = names(&app);
    press(&mut app, "r<C-u>Animals suffer.<Enter>");
    assert_eq!(names(&app)[0], "Animals suffer.");
    press(&mut app, "r<C-u><Enter>");
    assert_eq!(names(&app)[0], "Animals suffer.", "an empty name is no name");
    press(&mut app, "jmk");
    assert_eq!(names(&app).len(), 4);
    press(&mut app, "m");
    assert_eq!((names(&app).len(), app.points.at), (3, 0));
    press(&mut app, "mjm");
    assert_eq!(names(&app).len(), 3, "key points of two sides are not merged");
    assert!(app.notice.as_ref().unwrap().contains("only key points of one side"));
    press(&mut app, "ks");
    assert_eq!(names(&app).len(), 5, "three sentences for one");
    press(&mut app, "x");
    assert_eq!(names(&app).len(), 4);
    press(&mut app, "jjjs");
    assert!(app.notice.as_ref().unwrap().contains("one sentence"), "{:?}", app.notice);
    press(&mut app, "uuuu");
    assert_eq!(names(&app), before);
    press(&mut app, "u");
    assert_eq!(app.notice.as_deref(), Some("nothing was changed"));
    let copied = press(&mut app, "Y");
    let [Effect::Copy(lines)] = copied.as_slice() else { panic!("{copied:?}") };
    assert_eq!(lines.lines().count(), 4);
    assert!(matches!(press(&mut app, "<Esc>").as_slice(), [Effect::StopBatch(_)]));
    assert_eq!(app.screen, Screen::LANES);
}

#[test]
fn key_points_of_an_earlier_request_are_dropped_and_a_failure_or_none_is_said() {
    let mut app = asked(140, 40);
    let effects = press(&mut app, "K");
    assert!(matches!(effects.as_slice(), [Effect::Batch(_, Batch::KeyPoints(..))]), "{effects:?}");
    let number = app.points.number;
    let mut say = |number, found| {
        update(&mut app, Msg::Engine(Reply::KeyPoints { number, event: PointsEvent::Found(found) }));
        text(&app)
    };
    assert!(say(number + 1, Ok(Vec::new())).contains("looking for the arguments"));
    assert!(say(number, Ok(Vec::new())).contains("supports a statement, so there is no argument"));
    assert!(say(number, Err("the model could not be run".into())).contains("the model could not be run"));
    let mut without = empty(140, 40);
    press(&mut without, "<Esc>K");
    assert_eq!(without.screen, Screen::LANES);
}

#[test]
fn on_the_sample_sentences_are_clustered_into_key_points() {
    let place = TempDir::new().unwrap();
    let shown = played(Opening { data_dir: place.path().into(), ..Opening::default() }, "K<Wait>");
    assert!(shown.contains("key points, ● vital"), "{shown}");
    assert!(shown.contains("sentences of"), "{shown}");
}

#[test]
fn a_mixed_list_follows_its_counts_and_says_what_it_lacks() {
    let mut app = mixer(140, 40);
    assert_eq!(app.screen, Screen::MIXER);
    let list = |app: &App| {
        let list = app.mixing.shown.list.clone().unwrap();
        list.iter().map(|one| one.passage.id.clone()).collect::<Vec<_>>()
    };
    let before = list(&app);
    press(&mut app, "jj-");
    assert_eq!(list(&app).len(), before.len() - 1);
    press(&mut app, "k++++++++");
    assert!(app.mixing.shown.list.is_err() && text(&app).contains("the mix asks for"), "{}", text(&app));
    press(&mut app, "jjj+");
    assert!(app.mixing.shown.list.is_ok(), "one source of each kind is repeated");
    assert!(text(&app).contains("at most 1 of a kind, repeated"), "{}", text(&app));
    press(&mut app, "<Esc>");
    assert_eq!(app.screen, Screen::READER);
}

/// The batch of lists that keys order.
fn ordered(app: &mut App, keys: &str) -> (u64, String, [String; 2], usize) {
    match press(app, keys).pop() {
        Some(Effect::Batch(number, Batch::Lists(question, sides, lists))) => {
            (number, question, sides, lists.len())
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_reader_says_what_the_list_concludes_and_a_sweep_draws_its_curve() {
    let mut app = mixer(140, 40);
    let (number, question, sides, lists) = ordered(&mut app, "<Enter>");
    assert_eq!((question.as_str(), lists), (QUESTION, 1));
    assert_eq!(sides[0], "Zoos should be banned.");
    let read = |app: &mut App, number, place, text: &str| {
        let answer = if text.is_empty() { Err("no answer".into()) } else { Ok(said(text)) };
        update(app, Msg::Engine(Reply::ListRead { number, place, answer }));
    };
    read(&mut app, number + 7, 0, "supports");
    assert!(text(&app).contains("reading, 1 to go"), "{}", text(&app));
    read(&mut app, number, 0, "opposes");
    assert!(text(&app).contains("m: ▼ opposes"), "{}", text(&app));
    // With one source of each kind, there are passages enough at every share.
    let (number, _, _, lists) = ordered(&mut app, "jjjj+w");
    let both = app.mixing.mix.counts[0] + app.mixing.mix.counts[1];
    assert_eq!(lists, both + 1);
    for place in 0..=both {
        read(&mut app, number, place, if place > 1 { "supports" } else { "opposes" });
    }
    assert!(text(&app).contains("2 m: supports from "), "{}", text(&app));
    let (number, ..) = ordered(&mut app, "w");
    read(&mut app, number, 0, "");
    assert!(text(&app).contains("no answer"), "{}", text(&app));
    assert_eq!(app.mixing.waiting, 0);
    // Without repeats, only the shares with passages enough are read.
    let (.., lists) = ordered(&mut app, "-w");
    assert!(lists <= both, "{lists} of {}", both + 1);
}

#[test]
fn the_sides_of_an_answer_say_what_was_dropped_and_where_each_sentence_is_supported() {
    let app = sided(140, 40);
    assert_eq!(app.screen, Screen::SIDES);
    let shown = text(&app);
    for part in [
        "▲  kept",
        "▼  dropped",
        "the list gives 2 of 2 sides, the answer 1: 1 dropped, 0 add",
        "by rule, it does not show that the matter is disputed",
        "citation recall .33",
        "citation precision .33",
        "judged by the model",
        "[1] supports it, [3] adds nothing",
        "[2] does not support it; 4 alone does",
        "cites nothing; no passage read supports it alone",
        "cited by 1",
    ] {
        assert!(shown.contains(part), "no {part} in {shown}");
    }
}

#[test]
fn an_answer_is_read_again_given_up_and_never_shown_for_another_list() {
    let mut app = asked(140, 40);
    press(&mut app, "ra");
    assert!(
        app.notice.as_ref().is_some_and(|notice| notice.contains("nothing answers here")),
        "{:?}",
        app.notice
    );
    let mut app = sided(140, 40);
    press(&mut app, "<Tab>");
    assert!(text(&app).contains("has this list answered from"), "{}", text(&app));
    press(&mut app, "<S-Tab>");
    assert!(text(&app).contains("supports it"), "the first lane's answer is still there: {}", text(&app));
    press(&mut app, "+");
    assert!(text(&app).contains("has this list answered from"), "another k is another list");
    let effects = press(&mut app, "<Enter>");
    let Some(Effect::Batch(number, Batch::Answer(question, list, passages))) = effects.last() else {
        panic!("{effects:?}")
    };
    assert_eq!((question.text.as_str(), list.len(), passages.len()), (QUESTION, 2, 6));
    let say = |app: &mut App, number, event| {
        update(app, Msg::Engine(Reply::Answered { number, event }));
        text(app)
    };
    let late = AnswerEvent::Judged(Err("late".into()));
    assert!(say(&mut app, number - 1, late).contains("answering"), "of an earlier batch");
    assert!(
        say(&mut app, *number, AnswerEvent::Read(said("Zoos teach."))).contains("gives it up: Zoos teach.")
    );
    assert!(matches!(press(&mut app, "<Enter>").as_slice(), [Effect::StopBatch(_)]));
    assert!(text(&app).contains("given up"), "{}", text(&app));
    let effects = press(&mut app, "<Enter>");
    let Some(Effect::Batch(number, _)) = effects.last() else { panic!("{effects:?}") };
    let failed = AnswerEvent::Judged(Err("the server is gone".into()));
    assert!(say(&mut app, *number, failed).contains("the server is gone"));
    press(&mut app, "<Esc>");
    assert_eq!(app.screen, Screen::READER);
}

#[test]
fn with_recorded_answers_the_sides_are_judged_in_the_program_and_said_to_be_recorded() {
    let place = TempDir::new().unwrap();
    let answers = place.path().join("answers.jsonl");
    let line = "{\"question\":\"Should zoos be banned?\",\"k\":5,\"answer\":\"Zoos should be banned [1]. Critics object.\"}\n";
    fs::write(&answers, line).unwrap();
    let opening = Opening { answers: Some(answers), data_dir: place.path().to_owned(), ..Opening::default() };
    let shown = played(opening, "ra<Wait>");
    assert!(shown.contains("recorded in") && shown.contains("Critics object."), "{shown}");
    assert!(shown.contains("by rule, it shows that the matter is disputed"), "{shown}");
    assert!(shown.contains("cites nothing"), "{shown}");
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_parallax"));
    command.arg("eval").args(arguments).args(["--data-dir", "data"]).current_dir(folder).stdin(Stdio::null());
    for name in
        ["PARALLAX_CORPUS", "PARALLAX_QUESTIONS", "PARALLAX_LABELS", "PARALLAX_LLM", "PARALLAX_REPLIES"]
    {
        command.env_remove(name);
    }
    command.output().unwrap()
}

/// The first of the sample's questions.
fn few(folder: &Path, count: usize) {
    let all =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/sample_data/questions.jsonl")).unwrap();
    let lines: Vec<&str> = all.lines().take(count).collect();
    fs::write(folder.join("few.jsonl"), lines.join("\n")).unwrap();
}

#[test]
fn eval_nuggets_measures_lanes_and_reads_back_the_key_points_that_it_wrote() {
    let folder = TempDir::new().unwrap();
    few(folder.path(), 1);
    let plan = [
        "nuggets",
        "--questions",
        "few.jsonl",
        "--lanes",
        "bm25,minilm",
        "--label-source",
        "gold",
        "--format",
        "json",
    ];
    let made = table(&run(folder.path(), &[&plan[..], &["--write", "out"]].concat()));
    let value = |table: &Value, row, name: &str| mean(table, row, name).unwrap();
    for row in 0..2 {
        for name in ["Nuggets@5", "Weighted@5"] {
            assert!((0.0..=1.0).contains(&value(&made, row, name)), "{made}");
        }
    }
    assert!(made["notes"].to_string().contains("key points of"), "{made}");
    let lines = fs::read_to_string(folder.path().join("out/key-points.jsonl")).unwrap();
    let ranks = fs::read_to_string(folder.path().join("out/ranks.tsv")).unwrap();
    assert_eq!(ranks.lines().count(), lines.lines().count() + 1);
    let again = table(&run(folder.path(), &[&plan[..], &["--key-points", "out/key-points.jsonl"]].concat()));
    assert_eq!(value(&again, 0, "Weighted@5"), value(&made, 0, "Weighted@5"));
    // Without any vital key point, weighted recall is that of all.
    fs::write(folder.path().join("okay.jsonl"), lines.replace("\"vital\":true", "\"vital\":false")).unwrap();
    let okay = table(&run(folder.path(), &[&plan[..], &["--key-points", "okay.jsonl"]].concat()));
    assert_eq!(value(&okay, 1, "Weighted@5"), value(&okay, 1, "Nuggets@5"));
    assert_eq!(mean(&okay, 1, "Vital@5"), None);
    fs::write(folder.path().join("bad.jsonl"), lines.replace("\"question\":\"", "\"question\":\"x")).unwrap();
    refused(
        &run(folder.path(), &[&plan[..], &["--key-points", "bad.jsonl"]].concat()),
        &["bad.jsonl:1", "question"],
    );
    refused(&run(folder.path(), &["berds", "--key-points", "okay.jsonl"]), &["--key-points", "eval nuggets"]);
    refused(&run(folder.path(), &["nuggets", "--matching", "few.jsonl"]), &["few.jsonl", "not a folder"]);
}

#[test]
fn eval_nuggets_fits_its_threshold_on_sentences_with_key_points_by_hand() {
    let folder = TempDir::new().unwrap();
    let texts = [
        ("a1", "The animals suffer in their cages.", "k1"),
        ("a2", "Animals suffer in cages.", "k1"),
        ("a3", "The entrance fee is much too high.", "k2"),
        ("a4", "The fee at the entrance is too high.", "k2"),
    ];
    for (kind, part) in [("kpm_data", "train"), ("kpm_data", "dev"), ("test_data", "test")] {
        let write = |name: &str, text: String| {
            fs::write(folder.path().join(format!("{kind}-{name}_{part}.csv")), text).unwrap();
        };
        let arguments = texts.iter().map(|(id, text, _)| format!("{id},{text},Zoos,1\n")).collect::<String>();
        let labels = texts.iter().map(|(id, _, point)| format!("{id},{point},1\n")).collect::<String>();
        write("arguments", format!("arg_id,argument,topic,stance\n{arguments}"));
        write(
            "key_points",
            "key_point_id,key_point,topic,stance\nk1,Suffering,Zoos,1\nk2,Cost,Zoos,1\n".into(),
        );
        write("labels", format!("arg_id,key_point_id,label\n{labels}"));
    }
    let fitted = table(&run(folder.path(), &["nuggets", "--matching", ".", "--format", "json"]));
    // Two pairs of four sentences: one cluster has precision ½, single sentences have recall ½.
    let row = |row| ["precision", "recall", "F1"].map(|name| mean(&fitted, row, name).unwrap());
    assert_eq!(row(0), [1.0, 1.0, 1.0], "{fitted}");
    assert_eq!((row(1)[0], row(2)[1]), (0.5, 0.5), "{fitted}");
}

#[test]
fn eval_mix_finds_where_verdicts_and_a_reader_tip() {
    let folder = TempDir::new().unwrap();
    few(folder.path(), 2);
    let plan =
        ["mix", "--questions", "few.jsonl", "--lanes", "bm25", "--label-source", "gold", "--both", "4"];
    let alone = table(&run(folder.path(), &[&plan[..], &["--format", "json", "--plots", "plots"]].concat()));
    assert_eq!(alone["rows"][0]["lane"], "verdicts alone");
    let tip = mean(&alone, 0, "tip").unwrap();
    assert!((0.3..=0.7).contains(&tip), "{alone}");
    let curve = &alone["further"][0];
    let at = |share: &str| mean(curve, 0, &format!("share={share}")).unwrap();
    assert_eq!((at("0.00"), at("1.00")), (0.0, 1.0), "{alone}");
    assert!(folder.path().join("plots/mix-over-share.svg").is_file());
    refused(
        &run(folder.path(), &[&plan[..7], &["--both", "50"]].concat()),
        &["the mix asks for", "--sources"],
    );

    // Read from two passages: two wrong ones, one of each, two right ones. The second question has no misinformation.
    let lines = r#"{"question":"Who?","gold_answers":["Ann"],"wrong_answers":["Bob"],"documents":[{"text":"Ann","type":"correct"},{"text":"Ann again","type":"correct"},{"text":"Bob","type":"misinfo"},{"text":"Bob again","type":"misinfo"}]}
{"question":"Where?","gold_answers":["Rome"],"wrong_answers":[],"documents":[{"text":"Rome","type":"correct"}]}
"#;
    fs::write(folder.path().join("mixed.jsonl"), lines).unwrap();
    let answer = |ids: [&str; 2], text: &str| {
        format!("{}\n", json!({"question": "Who?", "k": 2, "answer": text, "passages": ids}))
    };
    let answers = [
        answer(["1-3", "1-4"], "It was Bob."),
        answer(["1-1", "1-3"], "Ann or Bob"),
        answer(["1-1", "1-2"], "Ann"),
    ];
    fs::write(folder.path().join("said.jsonl"), answers.concat()).unwrap();
    let plan = ["mix", "--questions", "mixed.jsonl", "--both", "2", "--order", "turns", "--format", "json"];
    let read = table(&run(folder.path(), &[&plan[..], &["--answers", "said.jsonl"]].concat()));
    assert_eq!((mean(&read, 0, "tip"), mean(&read, 0, "refused")), (Some(0.5), Some(0.0)), "{read}");
    assert!(read["notes"].to_string().contains("1 questions are left out"), "{read}");
    let refusing = answers.concat().replace("Ann or Bob", "I cannot say.");
    fs::write(folder.path().join("refuses.jsonl"), refusing).unwrap();
    let read = table(&run(folder.path(), &[&plan[..], &["--answers", "refuses.jsonl"]].concat()));
    assert!((mean(&read, 0, "refused").unwrap() - 1.0 / 3.0).abs() < 1e-9, "{read}");
    assert_eq!(mean(&read, 0, "tip"), Some(0.5), "the two ends alone");
    refused(&run(folder.path(), &plan), &["--reader", "--llm", "--answers"]);
}

#[test]
fn passages_of_the_lane_with_the_cursor_are_mixed_first() {
    let mut app = asked(140, 40);
    press(&mut app, "<Tab>rm");
    let first = Arc::clone(&app.mixing.shown.list.as_ref().unwrap()[0].passage);
    // The second lane is turned round, and the last passage that supports the first side alone is the seventh.
    assert_eq!(first.id, "zoos-07");
}
