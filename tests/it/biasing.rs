//! The bias of the lanes: keys and replies to state and effects, the screen on the sample, and `eval bias`.

use std::sync::Arc;

use parallax::engine::Compared;
use parallax::engine::{Batch, Reply};
use parallax::tui::app::{App, Corpus};
use parallax::tui::keymap::Screen;
use parallax::tui::message::{Effect, Msg};
use parallax::tui::update::update;
use parallax::work::{Job, Progress};

use crate::program::Workspace;
use crate::stage::{self, PASSAGES, asked, empty, press, ranking};

fn counted(app: &mut App) {
    update(app, Msg::Engine(Reply::Fields(Arc::new(stage::fields()))));
}

#[test]
fn b_asks_for_the_fields_once_and_o_puts_the_question_set_to_the_lanes() {
    let mut app = asked(140, 40);
    let effects = press(&mut app, "F");
    assert!(matches!(effects.as_slice(), [Effect::Batch(_, Batch::Bias(_, false))]), "{effects:?}");
    counted(&mut app);
    let effects = press(&mut app, "o");
    let [Effect::Batch(number, Batch::Bias(plan, true))] = effects.as_slice() else { panic!("{effects:?}") };
    assert_eq!((*number, plan.lanes.len()), (app.comparing.number, 3));
    assert!(matches!(press(&mut app, "o").as_slice(), [Effect::StopBatch(_)]), "the fields are known");
    assert!(matches!(press(&mut app, "F").as_slice(), [Effect::StopBatch(_)]));
    assert_eq!(app.screen, Screen::LANES);
}

#[test]
fn a_result_of_an_earlier_count_is_dropped() {
    let mut app = asked(140, 40);
    press(&mut app, "F");
    counted(&mut app);
    press(&mut app, "o");
    let list = ranking(&PASSAGES, &[0, 1], 1.0);
    let compared = Compared::of(&app.question, 5, &[Some(&list[..])], &app.judgments);
    let reply = |number| Msg::Engine(Reply::Compared { number, question: 0, compared: Ok(compared.clone()) });
    let number = app.comparing.number;
    update(&mut app, reply(number - 1));
    assert!(app.comparing.questions[0].is_none());
    update(&mut app, reply(number));
    assert!(app.comparing.questions[0].is_some());
}

#[test]
fn without_a_question_the_set_is_measured_and_without_both_that_is_reported() {
    let mut app = empty(140, 40);
    let effects = press(&mut app, "<Esc>F");
    assert!(matches!(effects.as_slice(), [Effect::Batch(_, Batch::Bias(_, true))]), "{effects:?}");
    assert_eq!(press(&mut app, "o"), []);
    assert!(app.biasing.over_set && app.notice.is_some(), "there is no question to go back to");
    let mut app = empty(140, 40);
    let Corpus::Open(opened) = &mut app.corpus else { panic!("not open") };
    opened.questions.clear();
    assert_eq!(press(&mut app, "<Esc>F"), []);
    assert!(app.notice.as_ref().is_some_and(|notice| notice.contains("--questions")));
}

#[test]
fn tab_selects_a_field_and_enter_toggles_it_on_the_lanes() {
    let mut app = asked(140, 40);
    press(&mut app, "F");
    assert_eq!(press(&mut app, "<Enter>"), [], "nothing is counted yet");
    counted(&mut app);
    press(&mut app, "j<Tab>");
    assert_eq!((app.biasing.at, app.biasing.scroll), (1, 0));
    press(&mut app, "<Enter>");
    assert_eq!((app.screen, app.biasing.on_lanes), (Screen::LANES, Some(1)));
    press(&mut app, "F<Tab><Enter>");
    assert_eq!(app.biasing.on_lanes, Some(0), "another field takes its place");
    press(&mut app, "F<Enter>");
    assert_eq!(app.biasing.on_lanes, None);
    press(&mut app, "F<S-Tab>jjjjjjj");
    assert_eq!((app.biasing.at, app.biasing.scroll), (1, 1), "there is no value below the last");
}

#[test]
fn a_count_that_was_left_shows_no_progress_and_the_set_is_asked_again_with_the_vectors() {
    let mut app = asked(140, 40);
    press(&mut app, "F");
    let progress = Progress { job: Job::Counting, done: 1, total: 2 };
    update(&mut app, Msg::Progressed { progress, text: "counting 1/2".into() });
    assert_eq!(app.jobs.len(), 1);
    press(&mut app, "q");
    update(&mut app, Msg::Progressed { progress, text: "counting 2/2".into() });
    assert!(app.jobs.is_empty());
    press(&mut app, "F");
    counted(&mut app);
    press(&mut app, "o");
    let effects = update(&mut app, Msg::Engine(Reply::Embedded(Ok(()))));
    assert!(matches!(effects.as_slice(), [Effect::Batch(_, Batch::Bias(_, true))]), "{effects:?}");
}

const GOLD: [&str; 4] = ["--lanes", "bm25", "--label-source", "gold"];

#[test]
fn the_screen_over_the_set_and_eval_bias_print_the_same_numbers() {
    let workspace = Workspace::new();
    let table = workspace.json(&[&["eval", "bias", "--attribute", "voice"], &GOLD[..]].concat());
    let keys = ["frame", "--size", "140x40", "--keys", "<Esc>F<Wait>"];
    let screen = workspace.run(&[&keys, &GOLD[..]].concat()).good();
    assert!(screen.contains("24/24 questions"), "{screen}");
    let share = |value: &serde_json::Value| parallax::report::marks::share(value["mean"].as_f64().unwrap());
    let measures = &table["rows"][0]["measures"];
    let line = screen.lines().find(|line| line.contains("BM25 ") && line.contains('/')).unwrap();
    for measure in ["Lean@5", "rKL@5", "AWRF@5"] {
        assert!(line.contains(&share(&measures[measure])), "{measure}: {line}\n{measures}");
    }
    let lanes = &table["further"][0]["rows"];
    assert_eq!((&lanes[0]["lane"], lanes.as_array().unwrap().len()), (&"corpus".into(), 2));
    for (name, corpus) in lanes[0]["measures"].as_object().unwrap() {
        let value = name.trim_start_matches("voice=").trim_end_matches("@5");
        let line = screen.lines().find(|line| line.starts_with(&format!("│ {value} "))).unwrap();
        let shown: Vec<&str> = line.split_whitespace().skip(2).take(2).collect();
        assert_eq!(shown, [share(corpus), share(&lanes[1]["measures"][name])], "{line}");
    }
}

#[test]
fn eval_bias_crosses_requested_and_retrieved_sides_in_every_format() {
    let workspace = Workspace::new();
    let passage = |id: &str, side: &str| {
        format!(
            "{{\"_id\":\"{id}\",\"text\":\"tax news {id}\",\"metadata\":{{\"side\":\"{side}\",\"n\":\"{id}\"}}}}\n"
        )
    };
    let bare = "{\"_id\":\"d\",\"text\":\"tax news\"}\n".to_owned();
    let corpus = workspace
        .write("c.jsonl", passage("a", "left") + &passage("b", "left") + &passage("c", "right") + &bare);
    let questions = workspace.write(
        "q.jsonl",
        "{\"_id\":\"1\",\"text\":\"left tax a\"}\n{\"_id\":\"2\",\"text\":\"tax\",\"metadata\":{\"side\":\"right\"}}\n{\"_id\":\"3\",\"text\":\"tax c\"}\n",
    );
    let labels = workspace.write("l.tsv", "id\tperspective\tlabel\na\tx\t1\n");
    let eval = |more: &[&str]| {
        let files = ["--corpus", &corpus, "--questions", &questions, "--labels", &labels, "-k", "4"];
        workspace.run(&[&["eval", "bias"], &files[..], &GOLD[..], more].concat())
    };
    let table: serde_json::Value =
        serde_json::from_str(&eval(&["--attribute", "side", "--format", "json"]).good()).unwrap();
    let desired = &table["further"][2];
    assert_eq!(desired["questions"], 2);
    assert!(desired["rows"][0]["lane"].as_str().unwrap().ends_with("asked for left"));
    // All four passages contain the word: two of the left, one of the right, one without a side.
    assert_eq!(desired["rows"][0]["measures"]["side=left@4"]["mean"], 0.5);
    assert_eq!(desired["rows"][1]["measures"]["others@4"]["mean"], 0.25);
    assert_eq!(table["further"][0]["rows"][0]["measures"]["side=(none)@4"]["mean"], 0.25);
    assert_eq!(table["further"][1]["rows"][0]["measures"]["side=left@4"]["mean"], 0.0);
    for format in ["text", "md", "tsv", "latex"] {
        let printed = eval(&["--attribute", "side", "--format", format]).good();
        assert!(printed.contains("side=left@4") && printed.contains("asked for left"), "{printed}");
    }
    let page = eval(&["--attribute", "side", "--format", "html"]).good();
    assert!(page.contains("Share of each value in the top k"), "the plot is there");
    assert!(!page.contains("<li>| "), "what is said of one table holds no other");
    assert!(
        eval(&[])
            .good()
            .contains("--attribute FIELD adds whose passages they are: n (4 values), side (3 values)")
    );
    eval(&["--attribute", "sid"]).bad(&["no passage has a field `sid`", "did you mean `side`?"]);
}

#[test]
fn a_field_of_too_many_values_and_a_corpus_without_fields_are_reported() {
    let workspace = Workspace::new();
    let line = |i: usize| format!("{{\"_id\":\"{i}\",\"text\":\"tax\",\"metadata\":{{\"n\":{i}}}}}\n");
    let many = workspace.write("many.jsonl", (0..60).map(line).collect::<String>());
    let bare = workspace.write("bare.jsonl", "{\"_id\":\"1\",\"text\":\"tax\"}\n");
    let questions = workspace.write("q.jsonl", "{\"_id\":\"1\",\"text\":\"tax\"}\n");
    let eval = |corpus: &str, field: &str| {
        let files = ["--corpus", corpus, "--questions", &questions, "--lanes", "bm25", "--attribute", field];
        workspace.run(&[&["eval", "bias"], &files[..]].concat())
    };
    eval(&many, "n").bad(&["the field `n` is not a category", "more than 50"]);
    eval(&bare, "n").bad(&["no passage of this corpus has metadata"]);
    workspace.run(&["eval", "berds", "--attribute", "n"]).bad(&["--attribute is for eval bias"]);
}
