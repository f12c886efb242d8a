//! `eval` over the carried sample, as a whole program: doubt, sets, questions one by one, kills.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use rusqlite::{Connection, OpenFlags};
use serde_json::Value;
use tempfile::TempDir;

fn command(folder: &Path, data: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_parallax"));
    command.args(arguments).arg("--data-dir").arg(folder.join(data)).current_dir(folder).stdin(Stdio::null());
    for name in ["PARALLAX_CORPUS", "PARALLAX_QUESTIONS", "PARALLAX_LABELS", "PARALLAX_DATA_DIR"] {
        command.env_remove(name);
    }
    command
}

#[track_caller]
fn good(output: Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[track_caller]
fn refused(output: Output, words: &[&str]) {
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{told}");
    for word in words {
        assert!(told.contains(word), "no `{word}` in {told}");
    }
}

/// Parts of the sample's questions, as files.
fn sets(folder: &Path) {
    let all =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/sample_data/questions.jsonl")).unwrap();
    let lines: Vec<&str> = all.lines().collect();
    fs::write(folder.join("few.jsonl"), lines[..2].join("\n")).unwrap();
    fs::write(folder.join("more.jsonl"), lines[2..7].join("\n")).unwrap();
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn several_sets_have_a_table_each_and_their_average_and_one_set_alone_is_the_same_table() {
    let desk = TempDir::new().unwrap();
    sets(desk.path());
    let eval = |more: &[&str]| {
        let plan = ["eval", "berds", "--lanes", "bm25", "--label-source", "gold", "--format", "json"];
        command(desk.path(), "data", &[&plan[..], more].concat()).output().unwrap()
    };
    let mean = |table: &Value| table["rows"][0]["measures"]["Prec@5"]["mean"].as_f64().unwrap();
    let both = json(&good(eval(&["--questions", "few.jsonl", "--questions", "more.jsonl"])));
    let alone = ["few.jsonl", "more.jsonl"].map(|set| mean(&json(&good(eval(&["--questions", set])))));
    assert!((mean(&both) - (alone[0] + alone[1]) / 2.0).abs() < 1e-12, "{both}");
    assert_eq!((both["set"].as_str(), both["questions"].as_u64()), (Some("macro-average"), Some(7)));
    let of_sets = both["further"].as_array().unwrap().iter().filter(|table| table["suite"] == "berds");
    let of_sets: Vec<f64> = of_sets.map(mean).collect();
    assert_eq!(of_sets, alone);
    refused(eval(&["--questions", "few.jsonl", "--questions", "few.jsonl"]), &["few", "rename"]);
    let one_too_many = ["--questions", "few.jsonl", "--labels", "a.tsv", "--labels", "b.tsv"];
    refused(eval(&one_too_many), &["1 question sets", "2 label files"]);
    let search = ["search", "zoos", "--questions", "few.jsonl", "--questions", "more.jsonl"];
    refused(command(desk.path(), "data", &search).output().unwrap(), &["parallax eval"]);
}

#[test]
fn a_row_a_question_and_lane_is_printed_and_its_mean_is_the_tables() {
    let desk = TempDir::new().unwrap();
    let eval = |more: &[&str]| {
        let plan = ["eval", "berds", "--lanes", "bm25,minilm", "--label-source", "gold"];
        command(desk.path(), "data", &[&plan[..], more].concat()).output().unwrap()
    };
    let rows = json(&good(eval(&["--format", "json", "--per-question=Prec@5"])));
    let rows = rows["rows"].as_array().unwrap();
    let value = |row: &Value| row["measures"]["Prec@5"].as_f64().unwrap();
    assert_eq!(rows.len(), 48);
    assert!(rows.windows(2).all(|two| value(&two[0]) <= value(&two[1])), "the worst stand first");
    let table = json(&good(eval(&["--format", "json"])));
    for row in table["rows"].as_array().unwrap() {
        let own: Vec<f64> = rows.iter().filter(|one| one["lane"] == row["lane"]).map(value).collect();
        let mean = own.iter().sum::<f64>() / own.len() as f64;
        assert!((mean - row["measures"]["Prec@5"]["mean"].as_f64().unwrap()).abs() < 1e-12);
        assert_eq!(row["measures"]["Prec@5"].get("doubt"), None, "labels leave no doubt");
    }
    assert_eq!(good(eval(&["--format", "tsv", "--per-question"])).lines().count(), 49);
    refused(eval(&["--per-question=Prec@6"]), &["Prec@6", "Prec@5"]);
    refused(eval(&["--per-question", "--format", "latex"]), &["tsv"]);
}

#[test]
fn a_killed_eval_goes_on_from_its_verdicts_and_prints_the_table_of_one_that_was_not() {
    let desk = TempDir::new().unwrap();
    sets(desk.path());
    let args = [
        "eval",
        "berds",
        "--questions",
        "more.jsonl",
        "--lanes",
        "bm25,minilm",
        "-k",
        "3",
        "--format",
        "json",
    ];
    let whole = good(command(desk.path(), "whole", &args).output().unwrap());
    let verdicts = |data: &str| -> Option<i64> {
        let place = desk.path().join(data).join("verdicts.sqlite");
        let store = Connection::open_with_flags(place, OpenFlags::SQLITE_OPEN_READ_ONLY).ok()?;
        store.query_row("select count(*) from verdicts", [], |row| row.get(0)).ok()
    };
    let mut child =
        command(desk.path(), "killed", &args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while verdicts("killed").is_none_or(|made| made < 5) {
        assert_eq!(child.try_wait().unwrap(), None, "it ended before it was killed");
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let kept = verdicts("killed");
    assert!(kept >= Some(5) && kept < verdicts("whole"), "{kept:?}");
    assert_eq!(good(command(desk.path(), "killed", &args).output().unwrap()), whole);
    assert_eq!(verdicts("killed"), verdicts("whole"), "none was made twice under another key");
    let doubt = &json(&whole)["rows"][0]["measures"]["Prec@3"]["doubt"];
    let end = |name: &str| doubt[name].as_f64().unwrap();
    assert!(end("low") <= end("mean") && end("mean") <= end("high") && end("low") < end("high"), "{doubt}");
}

#[test]
fn plots_are_written_as_svg_and_png_with_the_curves_among_them() {
    let desk = TempDir::new().unwrap();
    let plan = ["eval", "berds", "--lanes", "bm25", "--label-source", "gold", "--plots", "plots"];
    good(command(desk.path(), "data", &plan).output().unwrap());
    for name in ["berds-sides", "berds-MRecall-over-k", "berds-Prec-over-k"] {
        let bytes =
            |ending: &str| fs::read(desk.path().join("plots").join(format!("{name}.{ending}"))).unwrap();
        assert!(bytes("svg").starts_with(b"<svg") && bytes("png").starts_with(b"\x89PNG"), "{name}");
    }
}

#[test]
fn search_names_measures_too_and_refuses_those_of_several_rankings() {
    let desk = TempDir::new().unwrap();
    let search = |names: &str| {
        let plan = [
            "search",
            "Should zoos be banned?",
            "--lanes",
            "bm25",
            "--label-source",
            "gold",
            "--format",
            "json",
        ];
        command(desk.path(), "data", &[&plan[..], &["--measures", names]].concat()).output().unwrap()
    };
    let found = json(&good(search("AWRF@10,Judged@5")));
    let measures = &found["lanes"][0]["measures"];
    assert!(measures.get("AWRF@10").is_some() && measures.get("MRecall@5").is_some(), "{measures}");
    assert_eq!(measures["Judged@5"], 1.0);
    refused(search("AWFR"), &["AWRF"]);
    refused(search("Shift@5"), &["eval sycophancy"]);
    refused(search("nDCG@10"), &["eval trec"]);
}

#[test]
fn sycophancy_says_whose_expansion_each_wording_was_asked_with() {
    let desk = TempDir::new().unwrap();
    let eval = |lane: &str, format: &str| {
        let plan = ["eval", "sycophancy", "--label-source", "gold", "--lane", lane, "--format", format];
        good(command(desk.path(), "data", &plan).output().unwrap())
    };
    // The sample's recorded replies are to the questions as they stand, and not to their statements.
    let lane = "bm25@k1=0.9,b=0.4+perspectives";
    for told in [eval("bm25+perspectives", "text"), eval("bm25+perspectives", "json")] {
        for line in [
            format!("{lane} neutral: perspectives, recorded replies of claude (20 questions)"),
            format!("{lane} as-1, as-2: perspectives, own statements (no model) (20 questions)"),
            format!("{lane}: the wordings were not expanded alike"),
        ] {
            assert!(told.contains(&line), "no `{line}` in {told}");
        }
    }
    let alike = eval("bm25+rm3", "text");
    assert!(alike.contains("+rm3: RM3 (20 questions)") && !alike.contains("not expanded alike"), "{alike}");
}

#[test]
fn figures_by_the_carried_detector_say_first_that_it_is_experimental_and_where_gold_labels_are() {
    let desk = TempDir::new().unwrap();
    sets(desk.path());
    let run = |plan: &[&str]| good(command(desk.path(), "data", plan).output().unwrap());
    let (hint, gold) = ("the model's verdicts are experimental", "--label-source gold");
    let search = ["search", "Should zoos be banned?", "--lanes", "bm25"];
    let told = run(&search);
    let line = told.lines().find(|line| line.contains(hint)).unwrap();
    assert!(line.contains(gold) && told.find(hint) < told.find("MRecall@5"), "{told}");
    assert!(!run(&[&search[..], &["--label-source", "gold"]].concat()).contains(hint));
    let own = run(&["search", "Should bread be free?", "--lanes", "bm25"]);
    assert!(own.contains(hint) && !own.contains(gold), "no label is of this question: {own}");
    assert!(!run(&["search", "bread", "--lanes", "bm25"]).contains(hint), "nothing was judged");
    let table = run(&["eval", "berds", "--questions", "few.jsonl", "--lanes", "bm25"]);
    let below = table.lines().nth(2).unwrap();
    assert!(below.contains(hint), "{table}");
    assert_eq!(table.matches(hint).count(), 1);
}

#[test]
fn a_lanes_intervals_do_not_depend_on_the_lanes_beside_it() {
    let desk = TempDir::new().unwrap();
    sets(desk.path());
    let of_bm25 = |lanes: &str| {
        let plan =
            ["eval", "berds", "--questions", "few.jsonl", "-k", "3", "--format", "json", "--lanes", lanes];
        let table = json(&good(command(desk.path(), "data", &plan).output().unwrap()));
        let rows = table["rows"].as_array().unwrap();
        rows.iter().find(|row| row["lane"].as_str().unwrap().starts_with("bm25")).unwrap()["measures"].clone()
    };
    let alone = of_bm25("bm25");
    assert!(alone["Prec@3"].get("doubt").is_some(), "{alone}");
    for lanes in ["minilm,bm25", "bm25,hybrid,minilm"] {
        assert_eq!(of_bm25(lanes), alone, "{lanes}");
    }
}
