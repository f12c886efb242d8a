//! `eval` over the built-in sample, as a whole program: intervals, sets, single questions, kills.

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
    let printed = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{printed}");
    for word in words {
        assert!(printed.contains(word), "no `{word}` in {printed}");
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
fn several_sets_have_one_table_each_and_an_average() {
    let annotation = TempDir::new().unwrap();
    sets(annotation.path());
    let eval = |more: &[&str]| {
        let plan = ["eval", "berds", "--lanes", "bm25", "--label-source", "gold", "--format", "json"];
        command(annotation.path(), "data", &[&plan[..], more].concat()).output().unwrap()
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
    refused(command(annotation.path(), "data", &search).output().unwrap(), &["parallax eval"]);
}

#[test]
fn one_row_per_question_and_lane_is_printed_and_their_mean_is_in_the_table() {
    let annotation = TempDir::new().unwrap();
    let eval = |more: &[&str]| {
        let plan = ["eval", "berds", "--lanes", "bm25,minilm", "--label-source", "gold"];
        command(annotation.path(), "data", &[&plan[..], more].concat()).output().unwrap()
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
fn a_killed_eval_resumes_from_its_verdicts_and_prints_the_same_table() {
    let annotation = TempDir::new().unwrap();
    sets(annotation.path());
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
        "--label-source",
        "model",
    ];
    let whole = good(command(annotation.path(), "whole", &args).output().unwrap());
    let verdicts = |data: &str| -> Option<i64> {
        let place = annotation.path().join(data).join("verdicts.sqlite");
        let store = Connection::open_with_flags(place, OpenFlags::SQLITE_OPEN_READ_ONLY).ok()?;
        store.query_row("select count(*) from verified", [], |row| row.get(0)).ok()
    };
    let mut child = command(annotation.path(), "killed", &args)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while verdicts("killed").is_none_or(|made| made < 5) {
        assert_eq!(child.try_wait().unwrap(), None, "it ended before it was killed");
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let kept = verdicts("killed");
    assert!(kept >= Some(5) && kept < verdicts("whole"), "{kept:?}");
    assert_eq!(good(command(annotation.path(), "killed", &args).output().unwrap()), whole);
    assert_eq!(verdicts("killed"), verdicts("whole"), "none was made twice under another key");
    let doubt = &json(&whole)["rows"][0]["measures"]["Prec@3"]["doubt"];
    let end = |name: &str| doubt[name].as_f64().unwrap();
    assert!(end("low") <= end("mean") && end("mean") <= end("high") && end("low") < end("high"), "{doubt}");
}

#[test]
fn plots_are_written_as_svg_and_png_with_the_curves_and_figure_3_of_berds_among_them() {
    let annotation = TempDir::new().unwrap();
    let plan = ["eval", "berds", "--lanes", "bm25", "--label-source", "gold", "--plots", "plots"];
    good(command(annotation.path(), "data", &plan).output().unwrap());
    let sycophancy =
        ["eval", "sycophancy", "--lanes", "bm25,minilm", "--label-source", "gold", "--plots", "plots"];
    good(command(annotation.path(), "data", &sycophancy).output().unwrap());
    // Figure 3 of BERDS: a line for each lane, Δ with its interval in the three wordings.
    let deltas = fs::read_to_string(annotation.path().join("plots/sycophancy-deltas.svg")).unwrap();
    assert!(
        ["as opposing", "neutrally", "as supporting"].iter().all(|name| deltas.contains(name)),
        "{deltas}"
    );
    assert_eq!(deltas.matches("class=\"lane c").count(), 2, "{deltas}");
    assert!(deltas.matches("class=\"stroke\"").count() >= 2 * 3, "{deltas}");
    for name in ["berds-sides", "berds-MRecall-over-k", "berds-Prec-over-k"] {
        let bytes = |ending: &str| {
            fs::read(annotation.path().join("plots").join(format!("{name}.{ending}"))).unwrap()
        };
        assert!(bytes("svg").starts_with(b"<svg") && bytes("png").starts_with(b"\x89PNG"), "{name}");
    }
}

#[test]
fn search_names_measures_too_and_refuses_those_of_several_rankings() {
    let annotation = TempDir::new().unwrap();
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
        command(annotation.path(), "data", &[&plan[..], &["--measures", names]].concat()).output().unwrap()
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
fn sycophancy_names_the_expansion_of_each_wording() {
    let annotation = TempDir::new().unwrap();
    let eval = |lane: &str, format: &str| {
        let plan = ["eval", "sycophancy", "--label-source", "gold", "--lane", lane, "--format", format];
        good(command(annotation.path(), "data", &plan).output().unwrap())
    };
    // The sample's recorded replies answer the original questions, not their statements.
    let lane = "bm25@k1=0.9,b=0.4+perspectives";
    for printed in [eval("bm25+perspectives", "text"), eval("bm25+perspectives", "json")] {
        for line in [
            format!("{lane} neutral: perspectives, recorded replies of claude (20 questions)"),
            format!("{lane} as-1, as-2: perspectives, own statements (no model) (20 questions)"),
            format!("{lane}: the wordings were not expanded alike"),
        ] {
            assert!(printed.contains(&line), "no `{line}` in {printed}");
        }
    }
    let alike = eval("bm25+rm3", "text");
    assert!(alike.contains("+rm3: RM3 (20 questions)") && !alike.contains("not expanded alike"), "{alike}");
}

#[test]
fn the_share_of_copied_sentences_and_what_a_lane_costs_are_counted_over_the_set() {
    let annotation = TempDir::new().unwrap();
    let sample =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/sample_data/questions.jsonl")).unwrap();
    let two: Vec<&str> = sample.lines().take(2).collect();
    fs::write(annotation.path().join("two.jsonl"), two.join("\n")).unwrap();
    let lanes =
        ["--lane", "bm25", "--lane", "bm25+csqe", "--label-source", "gold", "--questions", "two.jsonl"];
    let eval = |more: &[&str]| {
        let plan = [&["eval", "berds", "--format", "json"][..], &lanes, more].concat();
        json(&good(command(annotation.path(), "data", &plan).output().unwrap()))
    };
    let table = eval(&["--cost"]);
    let costs = table["further"].as_array().unwrap().iter().find(|table| table["suite"] == "cost").unwrap();
    let [plain, csqe] = [0, 1].map(|row| &costs["rows"][row]["measures"]);
    // Two replies that copy and two that answer, all of the sample's records.
    assert_eq!((csqe["replies"]["mean"].as_f64(), csqe["recorded"]["mean"].as_f64()), (Some(4.0), Some(4.0)));
    assert!(csqe["ms"]["mean"].as_f64() > Some(0.0) && plain["ms"]["mean"].as_f64() > Some(0.0), "{costs}");
    assert!(plain["replies"].is_null() && plain["copied"].is_null(), "{plain}");
    // The same sentences, one question at a time.
    let missing: usize = two
        .iter()
        .map(|line| {
            let text = json(line)["question"].as_str().unwrap().to_owned();
            let plan = [&["search", text.as_str(), "--format", "json"][..], &lanes].concat();
            let found = json(&good(command(annotation.path(), "data", &plan).output().unwrap()));
            let steps = found["lanes"][1]["steps"].as_array().unwrap_or_else(|| panic!("{found}")).clone();
            let added = steps.iter().find(|step| step["step"] == "expand").unwrap()["added"].clone();
            let missing =
                added.as_array().unwrap().iter().map(|text| text["not_in_corpus"].as_array().unwrap().len());
            missing.sum::<usize>()
        })
        .sum();
    let (of, share) =
        (csqe["copied"]["n"].as_u64().unwrap() as usize, csqe["copied"]["mean"].as_f64().unwrap());
    assert!(of > 0 && ((1.0 - share) * of as f64 - missing as f64).abs() < 1e-9, "{of} {share} {missing}");
    let note = format!("{} of {of} copied sentences", of - missing);
    assert!(eval(&[])["notes"].to_string().contains(&note), "{note}");
    assert!(eval(&[])["further"].as_array().unwrap().iter().all(|table| table["suite"] != "cost"));
    let plan = ["eval", "bias", "--cost"];
    refused(command(annotation.path(), "data", &plan).output().unwrap(), &["--cost is for eval berds"]);
}

#[test]
fn figures_by_the_built_in_detector_begin_with_a_warning() {
    let annotation = TempDir::new().unwrap();
    sets(annotation.path());
    let run = |plan: &[&str]| good(command(annotation.path(), "data", plan).output().unwrap());
    let (hint, gold) = ("the model's verdicts are experimental", "--label-source gold");
    let search = ["search", "Should zoos be banned?", "--lanes", "bm25"];
    let by_model = ["--label-source", "model"];
    assert!(!run(&search).contains(hint), "gold counts where there is any");
    let printed = run(&[&search[..], &by_model].concat());
    let line = printed.lines().find(|line| line.contains(hint)).unwrap();
    assert!(line.contains(gold) && printed.find(hint) < printed.find("MRecall@5"), "{printed}");
    assert!(!run(&[&search[..], &["--label-source", "gold"]].concat()).contains(hint));
    let own = run(&["search", "Should bread be free?", "--lanes", "bm25"]);
    assert!(own.contains(hint) && !own.contains(gold), "no label is of this question: {own}");
    assert!(!run(&["search", "bread", "--lanes", "bm25"]).contains(hint), "nothing was judged");
    let table =
        run(&[&["eval", "berds", "--questions", "few.jsonl", "--lanes", "bm25"][..], &by_model].concat());
    let below = table.lines().nth(2).unwrap();
    assert!(below.contains(hint), "{table}");
    assert_eq!(table.matches(hint).count(), 1);
}

#[test]
fn a_lanes_intervals_do_not_depend_on_the_other_lanes() {
    let annotation = TempDir::new().unwrap();
    sets(annotation.path());
    let of_bm25 = |lanes: &str| {
        let plan = ["eval", "berds", "--questions", "few.jsonl", "-k", "3", "--format", "json"];
        let plan = [&plan[..], &["--label-source", "model", "--lanes", lanes]].concat();
        let table = json(&good(command(annotation.path(), "data", &plan).output().unwrap()));
        let rows = table["rows"].as_array().unwrap();
        rows.iter().find(|row| row["lane"].as_str().unwrap().starts_with("bm25")).unwrap()["measures"].clone()
    };
    let alone = of_bm25("bm25");
    assert!(alone["Prec@3"].get("doubt").is_some(), "{alone}");
    for lanes in ["minilm,bm25", "bm25,hybrid,minilm"] {
        assert_eq!(of_bm25(lanes), alone, "{lanes}");
    }
    // The difference of two lanes has an interval that draws the verdicts too.
    let plan = ["eval", "berds", "--questions", "few.jsonl", "-k", "3", "--format", "json", "--all-pairs"];
    let plan = [&plan[..], &["--label-source", "model", "--lanes", "bm25,minilm"]].concat();
    let table = json(&good(command(annotation.path(), "data", &plan).output().unwrap()));
    let further = table["further"].as_array().unwrap();
    let compared = further.iter().find(|below| below["suite"] == "comparison").unwrap();
    let rows = compared["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["lane"].as_str().unwrap().starts_with("Prec@3")).unwrap();
    let difference = &row["measures"]["difference"];
    let end = |name: &str| difference["doubt"][name].as_f64().unwrap();
    assert!(end("low") <= end("mean") && end("mean") <= end("high") && end("low") < end("high"), "{row}");
}

#[test]
fn a_table_by_the_model_writes_its_probabilities_and_they_give_the_printed_means() {
    let annotation = TempDir::new().unwrap();
    let folder = annotation.path();
    sets(folder);
    let plan =
        ["eval", "berds", "--questions", "few.jsonl", "--lanes", "bm25", "-k", "3", "--format", "json"];
    let plan = [&plan[..], &["--label-source", "model", "--write", "out"]].concat();
    let table = json(&good(command(folder, "data", &plan).output().unwrap()));
    let lines = |name: &str| -> Vec<Value> {
        let text = fs::read_to_string(folder.join("out").join(name)).unwrap();
        text.lines().map(json).collect()
    };
    let takes_a_side = |question: &str, passage: &str| -> f64 {
        let all = lines("probabilities.jsonl");
        let one = all.iter().find(|one| one["question"] == question && one["passage"] == passage).unwrap();
        1.0 - one["p"]["first, second, both, neither"][3].as_f64().unwrap()
    };
    let run = fs::read_to_string(folder.join("out/bm25-k1=0.9-b=0.4.run")).unwrap();
    let first: Vec<Vec<&str>> = run.lines().map(|line| line.split(' ').collect()).collect();
    let first: Vec<&Vec<&str>> = first.iter().filter(|line| line[3].parse::<usize>().unwrap() <= 3).collect();
    let all: Vec<f64> = first.iter().map(|line| takes_a_side(line[0], line[2])).collect();
    let printed = table["rows"][0]["measures"]["Prec@3"]["mean"].as_f64().unwrap();
    assert!(all.len() == 6 && (all.iter().sum::<f64>() / 6.0 - printed).abs() < 1e-6, "{all:?} {printed}");
    // Passages with an unclear verdict have probabilities, but are not judged.
    let verdicts = lines("probabilities.jsonl");
    let judged = |line: &&&Vec<&str>| {
        let own =
            verdicts.iter().find(|one| one["question"] == line[0] && one["passage"] == line[2]).unwrap();
        own["unclear"] == false
    };
    let share = first.iter().filter(judged).count() as f64 / 6.0;
    assert_eq!(table["rows"][0]["measures"]["Prec@3"]["judged"].as_f64(), Some(share), "{verdicts:?}");
}

/// A corpus of six passages with two questions and their graded judgments.
fn judged_corpus(folder: &Path) {
    let texts = [
        "Zoos breed rare animals. Some of them return to the wild.",
        "The zoo opened in 1828 and has a park.",
        "Animals in cages suffer. Zoos keep cages.",
        "A tax on sugar lowers consumption of sugar.",
        "Sugar was once rare. It is sold in shops now.",
        "Bread needs flour.",
    ];
    let lines = |rows: Vec<Value>| rows.iter().map(|row| format!("{row}\n")).collect::<String>();
    let corpus =
        texts.iter().enumerate().map(|(i, text)| serde_json::json!({"_id": format!("d{i}"), "text": text}));
    fs::write(folder.join("corpus.jsonl"), lines(corpus.collect())).unwrap();
    let asked = [("q1", "Should zoos be banned?"), ("q2", "Should sugar be taxed?")];
    let asked = asked.map(|(id, text)| serde_json::json!({"_id": id, "text": text}));
    fs::write(folder.join("queries.jsonl"), lines(asked.to_vec())).unwrap();
    fs::write(folder.join("qrels"), "q1 0 d2 2\nq1 0 d0 1\nq2 0 d3 2\n").unwrap();
}

const JUDGED: [&str; 8] =
    ["eval", "trec", "--corpus", "corpus.jsonl", "--questions", "queries.jsonl", "--qrels", "qrels"];

#[test]
fn eval_trec_says_which_form_of_an_expansion_ran_and_tests_it_against_the_plain_lane() {
    let folder = TempDir::new().unwrap();
    judged_corpus(folder.path());
    let lanes = ["--lane", "bm25", "--lane", "bm25+csqe", "--lane", "bm25+rm3", "--measures", "nDCG@3"];
    let run = |more: &[&str]| {
        good(command(folder.path(), "data", &[&JUDGED[..], &lanes, more].concat()).output().unwrap())
    };
    let text = run(&[]);
    let line =
        |start: &str| text.lines().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{text}"));
    assert!(line("bm25@k1=0.9,b=0.4+csqe [extractive (no model)]").contains(" % ("), "{text}");
    assert!(line("bm25@k1=0.9,b=0.4+rm3 ").contains(" % ("), "RM3 has one form: {text}");
    assert!(text.contains("+csqe: CSQE, extractive (no model) (2 questions)"), "{text}");
    assert!(text.lines().next().unwrap().contains("Δ nDCG@3"), "{text}");
    let table = json(&run(&["--format", "json"]));
    let row = |at: usize| table["rows"][at].clone();
    assert_eq!((row(1)["form"].as_str(), row(0).get("form")), (Some("extractive (no model)"), None));
    let mean = |at: usize| row(at)["measures"]["nDCG@3"]["mean"].as_f64().unwrap();
    for at in [1, 2] {
        let measure = row(at)["measures"]["nDCG@3"].clone();
        assert!(measure["p"].is_f64(), "{measure}");
        let change = measure["change"]["mean"].as_f64().unwrap();
        assert!((change - (mean(at) - mean(0))).abs() < 1e-12);
        let percent = measure["change"]["percent"].as_f64().unwrap();
        assert!((percent - 100.0 * change / mean(0)).abs() < 1e-9);
    }
}

#[test]
fn the_feedback_pass_of_an_expansion_takes_the_lanes_own_constants() {
    let folder = TempDir::new().unwrap();
    let texts = [
        "Sugar tax helps.",
        "Sugar, sugar and more sugar: beet grows where farms were built, cane grows on islands.",
    ];
    let others = (0..20).map(|i| format!("Filler text number {i} about rivers and hills."));
    let lines = texts.map(str::to_owned).into_iter().chain(others).enumerate();
    let lines =
        lines.map(|(i, text)| serde_json::json!({"_id": format!("d{i}"), "text": text}).to_string() + "\n");
    fs::write(folder.path().join("corpus.jsonl"), lines.collect::<String>()).unwrap();
    let terms = |constants: &str| {
        let lane = format!("bm25@{constants}+rm3@docs=1");
        let plan = [
            "search",
            "Should sugar be taxed?",
            "--corpus",
            "corpus.jsonl",
            "--lane",
            &lane,
            "--format",
            "json",
        ];
        let found = json(&good(command(folder.path(), "data", &plan).output().unwrap()));
        let step = found["lanes"][0]["steps"]
            .as_array()
            .unwrap()
            .iter()
            .find(|step| step["step"] == "expand")
            .unwrap()
            .clone();
        step["added"]
            .as_array()
            .unwrap()
            .iter()
            .map(|term| term["text"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    // Where length counts, the short passage is first; where repetitions count alone, the long one is.
    assert_eq!(terms("k1=.1,b=1"), ["help"]);
    let long = terms("k1=9,b=0");
    assert!(long.contains(&"beet".to_owned()) && !long.contains(&"help".to_owned()), "{long:?}");
}

#[test]
fn a_parameter_is_chosen_lane_by_lane_on_the_development_set_and_measured_on_the_other() {
    let folder = TempDir::new().unwrap();
    sets(folder.path());
    let plan =
        ["eval", "berds", "--label-source", "gold", "--lane", "bm25", "--lane", "minilm", "--format", "json"];
    let more = ["--tune", "mmr=.5,.75,1", "--dev", "few.jsonl", "--questions", "more.jsonl"];
    let table = json(&good(command(folder.path(), "data", &[&plan[..], &more].concat()).output().unwrap()));
    let lanes: Vec<String> = table["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["lane"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!((table["questions"].as_u64(), lanes.len()), (Some(5), 4));
    let choice = &table["further"][0];
    assert_eq!((choice["suite"].as_str(), choice["questions"].as_u64()), (Some("berds-tuned"), Some(2)));
    for (at, chosen) in [(0, &lanes[1]), (1, &lanes[3])] {
        let measures = &choice["rows"][at]["measures"];
        let mean = |name: &str| measures[name]["mean"].as_f64().unwrap();
        let forms = ["mmr@.5", "mmr@.75", "mmr@1"];
        // The first of the greatest.
        let best = forms.iter().rev().max_by(|a, b| mean(a).total_cmp(&mean(b))).unwrap();
        let recipe = format!("{}+{best}", lanes[2 * at]).parse::<parallax::engine::Recipe>().unwrap();
        assert_eq!(*chosen, recipe.to_string(), "{choice}");
        assert_eq!(mean("mmr@1"), mean("plain"), "λ = 1 changes nothing");
    }
    let refused_tune =
        |more: &[&str]| command(folder.path(), "data", &[&plan[..], more].concat()).output().unwrap();
    refused(refused_tune(&["--tune", "mmr=2", "--dev", "few.jsonl"]), &["mmr=2", "0 to 1"]);
    refused(refused_tune(&["--tune", "mmr=.5"]), &["--dev"]);
    // Only what is measured on the test questions is written.
    good(refused_tune(&[&more[..], &["--write", "out"]].concat()));
    let runs = fs::read_dir(folder.path().join("out")).unwrap().map(|file| file.unwrap().path());
    let runs: Vec<_> = runs.filter(|path| path.extension().is_some_and(|end| end == "run")).collect();
    assert_eq!(runs.len(), 4, "{runs:?}");
    let dev = fs::read_to_string(folder.path().join("few.jsonl")).unwrap();
    let dev = json(dev.lines().next().unwrap())["id"].as_str().unwrap().to_owned();
    for run in runs {
        let text = fs::read_to_string(&run).unwrap();
        assert!(!text.lines().any(|line| line.starts_with(&format!("{dev} "))), "{}", run.display());
    }
}

#[test]
fn sets_with_corpora_of_their_own_make_one_wide_table() {
    let folder = TempDir::new().unwrap();
    sets(folder.path());
    let own = ["name=few,questions=few.jsonl", "name=more,questions=more.jsonl"];
    let plan = ["eval", "berds", "--label-source", "gold", "--lane", "bm25", "--format", "json"];
    let run = |more: &[&str]| {
        json(&good(command(folder.path(), "data", &[&plan[..], more].concat()).output().unwrap()))
    };
    let wide = run(&["--set", own[0], "--set", own[1], "--layout", "wide"]);
    assert_eq!(wide["rows"][0]["lane"], "sample bm25@k1=0.9,b=0.4");
    let mean = |name: &str| wide["rows"][0]["measures"][name]["mean"].as_f64().unwrap();
    let alone = ["few.jsonl", "more.jsonl"]
        .map(|set| run(&["--questions", set])["rows"][0]["measures"]["Prec@5"]["mean"].as_f64().unwrap());
    assert_eq!([mean("few Prec@5"), mean("more Prec@5")], alone);
    assert!((mean("average Prec@5") - (alone[0] + alone[1]) / 2.0).abs() < 1e-12);
    // Graded judgments go with their set.
    let other = TempDir::new().unwrap();
    judged_corpus(other.path());
    let set = "name=a,corpus=corpus.jsonl,questions=queries.jsonl,qrels=qrels";
    let plan = ["eval", "trec", "--set", set, "--lane", "bm25", "--measures", "nDCG@3", "--format", "json"];
    let trec = json(&good(command(other.path(), "data", &plan).output().unwrap()));
    let single = [&JUDGED[..], &["--lane", "bm25", "--measures", "nDCG@3", "--format", "json"]].concat();
    let single = json(&good(command(other.path(), "data", &single).output().unwrap()));
    assert_eq!(trec["rows"][0]["measures"], single["rows"][0]["measures"]);
    let run = |more: &[&str]| {
        command(folder.path(), "data", &[&["eval", "berds"], more].concat()).output().unwrap()
    };
    refused(run(&["--set", "corpus=a"]), &["name=NAME"]);
    refused(run(&["--set", own[0], "--set", own[0]]), &["two sets", "few"]);
    refused(run(&["--set", "name=a,qrels=b"]), &["labels=FILE"]);
    refused(run(&["--layout", "wide"]), &["several sets"]);
    let sets = ["--set", own[0], "--set", own[1], "--layout", "wide", "--label-source", "gold"];
    refused(
        run(&[&sets[..], &["--fail-under", "bm25:Prec@5>=0"]].concat()),
        &["--fail-under", "--layout wide"],
    );
    // The lanes are compared within each set.
    let more = ["--lanes", "bm25,minilm", "--baseline", "bm25", "--format", "json"];
    let wide = json(&good(run(&[&sets[..], &more].concat())));
    let compared = wide["further"].as_array().unwrap();
    let of: Vec<&str> = compared.iter().map(|table| table["set"].as_str().unwrap()).collect();
    assert_eq!(of, ["few", "more"], "{wide}");
    assert!(compared.iter().all(|table| table["suite"] == "comparison"), "{wide}");
}

#[test]
fn a_question_set_is_described_by_its_counts() {
    let folder = TempDir::new().unwrap();
    let lines = r#"{"question":"Should zoos be banned?","expansions":[{"text":"Animals suffer there."},{"text":"They save some rare species."}]}
{"question":"Who pays for the parks?","perspectives":["The state.","The visitors do.","All of us."]}
"#;
    fs::write(folder.path().join("set.jsonl"), lines).unwrap();
    let printed = good(command(folder.path(), "data", &["questions", "info", "set.jsonl"]).output().unwrap());
    // Words: (4 + 5)/2. Perspectives: two by rule and three given, 5/2; their words are (4 + 5 + 2 + 3 + 3)/5. Expansions: 2/2 of (3 + 5)/2.
    let row = printed.lines().nth(1).unwrap();
    assert_eq!(row, "set.jsonl\t2\t4.50\t2.50\t3\t1\t3.40\t1.00\t4.00");
    refused(command(folder.path(), "data", &["questions", "info", "none"]).output().unwrap(), &["none"]);
}

#[test]
fn a_question_set_is_split_by_topic_with_a_seed_and_no_topic_is_on_both_sides() {
    let folder = TempDir::new().unwrap();
    let line = |i: usize| {
        let topic = ["zoos", "sugar", "parks", "schools", "films"][i % 5];
        format!(
            "{{\"id\": \"q{i}\",  \"question\": \"Should {topic} number {i} be banned?\", \"metadata\": {{\"topic\": \"{topic}\"}}}}"
        )
    };
    let all: Vec<String> = (0..20).map(line).collect();
    fs::write(folder.path().join("all.jsonl"), all.join("\n")).unwrap();
    let split = |topic: &str, seed: &str, test: &str| {
        let part = ["questions", "split", "all.jsonl", "--topic", topic, "--share", ".4", "--seed", seed];
        let files = ["--dev", "dev.jsonl", "--test", test];
        command(folder.path(), "data", &[&part[..], &files].concat()).output().unwrap()
    };
    let part = |name: &str| {
        let text = fs::read_to_string(folder.path().join(name)).unwrap();
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let printed = good(split("topic", "1", "test.jsonl"));
    assert!(
        printed.contains("dev.jsonl: 8 questions of 2 topics\ntest.jsonl: 12 questions of 3 topics\n"),
        "{printed}"
    );
    assert!(printed.contains("drawn with seed 1"), "{printed}");
    let (dev, test) = (part("dev.jsonl"), part("test.jsonl"));
    let topics = |lines: &[String]| -> std::collections::BTreeSet<String> {
        lines.iter().map(|line| json(line)["metadata"]["topic"].as_str().unwrap().to_owned()).collect()
    };
    assert!(topics(&dev).is_disjoint(&topics(&test)));
    let mut both = [dev.clone(), test].concat();
    both.sort();
    let mut lines = all;
    lines.sort();
    assert_eq!(both, lines, "every line is in one part, byte for byte");
    good(split("topic", "1", "test.jsonl"));
    assert_eq!(part("dev.jsonl"), dev, "the same seed draws the same topics");
    let others = (2..10).map(|seed: u32| {
        good(split("topic", &seed.to_string(), "test.jsonl"));
        part("dev.jsonl")
    });
    assert!(others.into_iter().any(|other| other != dev));
    refused(split("theme", "1", "test.jsonl"), &["no question has the field `theme`"]);
    refused(split("topic", "1", "dev.jsonl"), &["dev.jsonl: named twice"]);
}

#[test]
fn verdicts_of_authors_count_under_their_judges_name_and_never_as_labels_by_hand() {
    let folder = TempDir::new().unwrap();
    judged_corpus(folder.path());
    let (yes, no) = ("Zoos should be banned.", "Zoos should not be banned.");
    let asked = serde_json::json!({"id": "q1", "question": "Should zoos be banned?", "perspectives": [yes, no], "supports": 0});
    fs::write(folder.path().join("set.jsonl"), format!("{asked}\n")).unwrap();
    // The authors' passages have no ids; they are those of the corpus by their text.
    let results = serde_json::json!({"question": "Should zoos be banned?", "perspectives": [yes, no], "ctxs": [
        {"text": "animals in cages suffer.  Zoos keep cages.", "score": 2, "mistral-preds": [true, false]},
        {"text": "Zoos breed rare animals. Some of them return to the wild.", "score": 1, "mistral-preds": [false, true]}]});
    fs::write(folder.path().join("results.jsonl"), format!("{results}\n")).unwrap();
    let files =
        ["--corpus", "corpus.jsonl", "--questions", "set.jsonl", "--labels", "results.jsonl:preds=mistral"];
    let only = ["--label-source", "gold", "--lane", "bm25", "-k", "3", "--format", "json"];
    let table = json(&good(
        command(folder.path(), "data", &[&["eval", "berds"][..], &files, &only].concat()).output().unwrap(),
    ));
    assert_eq!(table["label_source"], "mistral");
    assert_eq!(table["rows"][0]["measures"]["Prec@3"]["mean"], 2.0 / 3.0, "{table}");
    assert_eq!(table["rows"][0]["measures"]["MRecall@3"]["mean"], 1.0);
    let search = ["search", "Should zoos be banned?"];
    let found =
        json(&good(command(folder.path(), "data", &[&search[..], &files, &only].concat()).output().unwrap()));
    let by: Vec<&str> = found["lanes"][0]["hits"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|hit| hit["verdicts"].as_array().unwrap())
        .filter_map(|verdict| verdict["by"].as_str())
        .collect();
    assert_eq!(by, ["mistral"; 4]);
    // The judge's own name is the same source, and another's is refused.
    let named = |name: &'static str| {
        [&search[..], &files, &["--label-source", name, "--lane", "bm25", "-k", "3", "--format", "json"]]
            .concat()
    };
    let by_name = json(&good(command(folder.path(), "data", &named("mistral")).output().unwrap()));
    assert_eq!(by_name["lanes"][0]["hits"], found["lanes"][0]["hits"]);
    refused(
        command(folder.path(), "data", &named("gpt")).output().unwrap(),
        &["--label-source gpt: expected auto, model, gold, human, or a judge", "--labels names mistral"],
    );
    assert_eq!(found["provenance"]["labels"], "mistral");
    let human = [&search[..], &files, &["--label-source", "human"]].concat();
    refused(command(folder.path(), "data", &human).output().unwrap(), &["no labels were made by hand"]);
    let other =
        ["--labels", "results.jsonl:preds=gpt", "--corpus", "corpus.jsonl", "--questions", "set.jsonl"];
    refused(
        command(folder.path(), "data", &[&search[..], &other].concat()).output().unwrap(),
        &["results.jsonl", "no passage has `gpt-preds`"],
    );
}

#[test]
fn rows_of_eval_trec_are_lists_of_one_depth_which_is_printed() {
    let folder = TempDir::new().unwrap();
    judged_corpus(folder.path());
    let run = |measures: &str| {
        let plan = [&JUDGED[..], &["--lane", "bm25", "--measures", measures]].concat();
        good(command(folder.path(), "data", &plan).output().unwrap())
    };
    assert!(run("nDCG@10").contains("lists of at most 100 passages in every row\n"));
    let alone = run("AP(rel=2)");
    assert!(
        alone.contains(
            "lists of at most 1000 passages in every row; AP(rel=2) without a cut-off: the first 1000"
        ),
        "{alone}"
    );
}

#[test]
#[ignore = "needs PARALLAX_DATA"]
fn papers_ap_on_dl19_is_the_same_alone_and_beside_a_deeper_measure() {
    let data = std::env::var("PARALLAX_DATA").expect("PARALLAX_DATA names the folder of data");
    let path = |name: &str| format!("{data}/trec-dl19/{name}");
    let (corpus, asked, qrels) =
        (path("corpus.dl19.jsonl"), path("queries.dl19.jsonl"), path("qrels.dl19-passage.txt"));
    let folder = TempDir::new().unwrap();
    let ap = |measures: &str| {
        let plan = ["eval", "trec", "--corpus", &corpus, "--questions", &asked, "--qrels", &qrels];
        let more = ["--lane", "bm25", "--format", "json", "--measures", measures];
        let table =
            json(&good(command(folder.path(), "data", &[&plan[..], &more].concat()).output().unwrap()));
        format!("{:.4}", table["rows"][0]["measures"]["AP(rel=2)"]["mean"].as_f64().unwrap())
    };
    assert_eq!([ap("AP(rel=2)"), ap("AP(rel=2),R(rel=2)@1000")], ["0.2824", "0.2824"]);
}

#[test]
fn a_lane_may_name_its_language_model_and_gets_no_other_models_replies() {
    let folder = TempDir::new().unwrap();
    let forms = |lane: &str| {
        let plan = [
            "search",
            "Should zoos be banned?",
            "--label-source",
            "gold",
            "--lane",
            lane,
            "--format",
            "json",
        ];
        let found = json(&good(command(folder.path(), "data", &plan).output().unwrap()));
        let steps = found["lanes"][0]["steps"].as_array().cloned().unwrap_or_default();
        let step = steps.iter().find(|step| step["step"] == "expand").cloned();
        (
            step.unwrap_or_default()["form"].as_str().unwrap_or_default().to_owned(),
            found["lanes"][0]["notes"].to_string(),
        )
    };
    assert_eq!(forms("bm25+csqe").0, "CSQE, by the model");
    assert_eq!(forms("bm25+csqe@llm=claude").0, "CSQE, by the model");
    let (form, notes) = forms("bm25+csqe@llm=another");
    assert_eq!(form, "CSQE, extractive (no model)");
    assert!(notes.contains("another: no reply to this prompt was recorded"), "{notes}");
    // Two models in one table, each with its own row.
    let plan = [
        "eval",
        "berds",
        "--label-source",
        "gold",
        "--lane",
        "bm25",
        "--lane",
        "bm25+csqe@llm=claude",
        "--lane",
        "bm25+csqe@llm=another",
    ];
    let text = good(command(folder.path(), "data", &plan).output().unwrap());
    for row in ["+csqe@llm=claude [recorded replies of claude]", "+csqe@llm=another [extractive (no model)]"]
    {
        assert!(text.contains(row), "no `{row}` in {text}");
    }
}

#[test]
fn every_measure_of_a_lane_is_the_same_alone_and_among_others_and_an_ideal_is_not_made_of_verdicts() {
    let annotation = TempDir::new().unwrap();
    sets(annotation.path());
    let names = "alpha_nDCG@5,alpha_nDCG(alpha=0.3)@10,ERR_IA@5,StRecall@5,P_IA@5,Lean@5,rKL@10,AWRF@10,Cover,Judged@5,Prec@10";
    let of_bm25 = |lanes: &str, source: &str| {
        let plan = ["eval", "berds", "--questions", "more.jsonl", "--format", "json", "--measures", names];
        let judged = ["--label-source", source, "--detector", crate::TINY_DETECTOR];
        let plan = [&plan[..], &judged, &["--lanes", lanes]].concat();
        let table = json(&good(command(annotation.path(), "data", &plan).output().unwrap()));
        let rows = table["rows"].as_array().unwrap();
        let own = rows.iter().find(|row| row["lane"].as_str().unwrap().starts_with("bm25")).unwrap();
        (own["measures"].clone(), table["notes"].to_string())
    };
    let (alone, _) = of_bm25("bm25", "gold");
    assert!(alone["alpha_nDCG@5"]["mean"].as_f64().unwrap() > 0.0, "{alone}");
    assert!(alone.as_object().unwrap().len() > names.split(',').count(), "{alone}");
    for lanes in ["bm25,minilm", "hybrid,minilm,bm25"] {
        let (among, _) = of_bm25(lanes, "gold");
        // The table's own columns too: MRecall, Prec and which sides are covered.
        for (name, own) in alone.as_object().unwrap() {
            assert_eq!(&among[name], own, "{name} beside {lanes}");
        }
    }
    let (by_model, notes) = of_bm25("bm25", "model");
    assert!(by_model.get("alpha_nDCG@5").is_none() && by_model.get("ERR_IA@5").is_some(), "{by_model}");
    assert!(notes.contains("alpha_nDCG@5") && notes.contains("all labelled passages"), "{notes}");
}

#[test]
fn one_file_of_judgments_serves_several_sets() {
    let annotation = TempDir::new().unwrap();
    let folder = annotation.path();
    sets(folder);
    let ids = |set: &str| -> Vec<String> {
        let text = fs::read_to_string(folder.join(set)).unwrap();
        text.lines().map(|line| json(line)["id"].as_str().unwrap().to_owned()).collect()
    };
    let all: Vec<String> = ["few.jsonl", "more.jsonl"].into_iter().flat_map(ids).collect();
    let lines = |each: &str| -> String { all.iter().map(|id| each.replace("ID", id)).collect() };
    fs::write(folder.join("all.qrels"), lines("ID 0 ID-01 1\nID 0 ID-02 0\n") + "elsewhere 0 d 1\n").unwrap();
    fs::write(folder.join("all.div.qrels"), lines("ID 1 ID-01 1\nID 2 ID-01 0\n") + "elsewhere 1 d 1\n")
        .unwrap();
    let both =
        ["--questions", "few.jsonl", "--questions", "more.jsonl", "--lanes", "bm25", "--format", "json"];
    let run = |plan: &[&str]| {
        let output = command(folder, "data", &[plan, &both[..]].concat()).output().unwrap();
        let notes = String::from_utf8_lossy(&output.stderr).into_owned();
        (json(&good(output)), notes)
    };
    let (table, _) = run(&["eval", "trec", "--qrels", "all.qrels"]);
    assert_eq!(
        (table["set"].as_str(), table["questions"].as_u64()),
        (Some("macro-average"), Some(7)),
        "{table}"
    );
    let (table, notes) =
        run(&["eval", "berds", "--labels", "all.div.qrels", "--label-source", "gold", "--allow-failed"]);
    assert_eq!(table["questions"].as_u64(), Some(7));
    assert!(notes.contains("lines are about questions that the set does not have"), "{notes}");
}

#[test]
fn a_curve_says_on_how_many_judged_passages_each_point_rests_and_a_table_how_many_are_the_models() {
    let annotation = TempDir::new().unwrap();
    let folder = annotation.path();
    sets(folder);
    let gold = include_str!("../../sample_data/labels.tsv");
    // Labels of every other passage, so that the model judges the rest.
    let half: String = gold
        .lines()
        .enumerate()
        .filter(|(i, _)| *i == 0 || (i - 1) / 2 % 2 == 0)
        .map(|(_, line)| format!("{line}\n"))
        .collect();
    fs::write(folder.join("half.tsv"), half).unwrap();
    let plan =
        ["eval", "berds", "--questions", "few.jsonl", "--lanes", "bm25", "--labels", "half.tsv", "-k", "3"];
    let eval = |more: &[&str]| good(command(folder, "data", &[&plan[..], more].concat()).output().unwrap());
    let by_labels = eval(&["--label-source", "gold"]);
    let curve =
        by_labels.lines().find(|line| line.contains("share judged by k: 1 ")).expect("a line of the curve");
    let shares: Vec<&str> = curve.split(": ").last().unwrap().split(", ").collect();
    assert!(shares.len() > 10 && shares.iter().any(|share| share.contains(" .")), "{curve}");
    assert!(by_labels.contains("· judged: ") && by_labels.contains(" gold ·"), "{by_labels}");
    let mixed = eval(&[]);
    assert!(mixed.lines().next().unwrap().contains("model"), "{mixed}");
    assert!(mixed.contains("the model's"), "{mixed}");
    assert!(eval(&["--format", "html"]).contains("<th scope=\"col\">model</th>"));
    let rows = json(&eval(&["--format", "json"]));
    let share = rows["rows"][0]["by_model"].as_f64().unwrap();
    assert!(share > 0.0 && share < 1.0, "{rows}");
    let curve =
        mixed.lines().find(|line| line.contains("share judged by k: 1 ")).expect("a line of the curve");
    assert!(curve.contains("; of these by the model: 1 "), "{curve}");
    // Every other suite with verdicts says so too, as does an average over sets.
    for suite in
        [&["coverage"][..], &["sycophancy"], &["bias"], &["reader"], &["berds", "--questions", "more.jsonl"]]
    {
        let plan = [&["eval"], suite, &plan[2..]].concat();
        let (text, rows) = (
            good(command(folder, "data", &plan).output().unwrap()),
            json(&good(
                command(folder, "data", &[&plan[..], &["--format", "json"]].concat()).output().unwrap(),
            )),
        );
        let share = rows["rows"][0]["by_model"].as_f64().expect("the model's share");
        assert!(share > 0.0 && share < 1.0, "{suite:?}: {rows}");
        assert!(text.lines().next().unwrap().trim_end().ends_with("model"), "{suite:?}: {text}");
    }
}

#[test]
fn lanes_are_compared_with_a_baseline_and_with_each_other() {
    let annotation = TempDir::new().unwrap();
    let folder = annotation.path();
    let plan =
        ["eval", "berds", "--label-source", "gold", "--lanes", "bm25,minilm,hybrid", "--format", "json"];
    let eval = |more: &[&str]| command(folder, "data", &[&plan[..], more].concat()).output().unwrap();
    let against = |more: &[&str]| {
        let table = json(&good(eval(more)));
        let all = table["further"].as_array().unwrap().clone();
        (all.into_iter().find(|below| below["suite"] == "comparison").unwrap(), table)
    };
    let (compared, table) = against(&["--baseline", "bm25"]);
    let row = |compared: &Value, start: &str| {
        let rows = compared["rows"].as_array().unwrap();
        rows.iter().find(|row| row["lane"].as_str().unwrap().starts_with(start)).unwrap()["measures"].clone()
    };
    let prec = row(&compared, "Prec@5: minilm − bm25");
    let mean = |lane: usize| table["rows"][lane]["measures"]["Prec@5"]["mean"].as_f64().unwrap();
    assert!((prec["difference"]["mean"].as_f64().unwrap() - (mean(1) - mean(0))).abs() < 1e-12, "{prec}");
    let number = |name: &str| prec[name]["mean"].as_f64().unwrap();
    assert_eq!(number("wins") + number("ties") + number("losses"), 24.0);
    assert!(prec["effect"]["low"].as_f64() < prec["effect"]["high"].as_f64() && number("seen at 80 %") > 0.0);
    assert_eq!(
        table["rows"][1]["measures"]["Prec@5"]["p"], prec["p"]["mean"],
        "stars are against the baseline"
    );
    let (all, _) = against(&["--all-pairs"]);
    assert_eq!(all["rows"].as_array().unwrap().len(), 3 * compared["rows"].as_array().unwrap().len() / 2);
    good(eval(&["--write", "out"]));
    let (with_run, _) = against(&["--compare-to", "run:out/minilm.run"]);
    let own = row(&with_run, "Prec@5: minilm − run:");
    assert_eq!((own["difference"]["mean"].as_f64(), own["ties"]["mean"].as_f64()), (Some(0.0), Some(24.0)));
    // The run stays as it was finished, whatever happens to the other lanes, and stars are against it.
    for more in [&["--mmr", ".75"][..], &["--ties", "trec-eval"]] {
        let (compared, table) = against(&[&["--compare-to", "run:out/minilm.run"], more].concat());
        let rows = table["rows"].as_array().unwrap();
        let run = rows.last().unwrap()["lane"].as_str().unwrap();
        assert!(run.starts_with("run:out/minilm.run") && !run.contains("mmr"), "{run}");
        let prec = row(&compared, "Prec@5: bm25");
        assert_eq!(rows[0]["measures"]["Prec@5"]["p"], prec["p"]["mean"], "{more:?}");
        let lanes = compared["rows"].as_array().unwrap().iter().map(|row| row["lane"].as_str().unwrap());
        assert!(lanes.clone().all(|lane| lane.ends_with(run)), "{run}: {:?}", lanes.collect::<Vec<_>>());
    }
    refused(eval(&["--baseline", "rm3"]), &["--baseline: there is no lane `rm3`"]);
    refused(eval(&["--out", "nowhere/table.txt"]), &["nowhere", "make it first"]);
    let latex = ["eval", "berds", "--label-source", "gold", "--per-question", "--format", "latex"];
    refused(command(folder, "data", &latex).output().unwrap(), &["text, tsv or json"]);
    refused(eval(&["--compare-to", "minilm"]), &["expected a finished run"]);
}

#[test]
fn a_table_is_made_again_from_the_record_beside_it_also_in_another_folder() {
    let annotation = TempDir::new().unwrap();
    let (here, there) = (annotation.path().join("here"), annotation.path().join("there"));
    fs::create_dir_all(here.join("data")).unwrap();
    fs::create_dir(&there).unwrap();
    sets(&here.join("data"));
    let run = |folder: &Path, plan: &[&str]| command(folder, "../cache", plan).output().unwrap();
    let eval =
        ["eval", "berds", "--lanes", "bm25", "--label-source", "gold", "--questions", "data/few.jsonl"];
    good(run(&here, &[&eval[..], &["--out", "table.md", "--format", "md"]].concat()));
    assert!(fs::read_to_string(here.join("table.md")).unwrap().starts_with("| lane |"));
    let record = json(&fs::read_to_string(here.join("table.md.json")).unwrap());
    for field in ["version", "command", "inputs", "provenance", "table"] {
        assert!(!record[field].is_null(), "{record}");
    }
    assert!(
        record["provenance"]["labels"].is_string() && record["provenance"]["models"]["detector"].is_string()
    );
    let same = good(run(&here, &["reproduce", "table.md.json"]));
    assert!(same.contains("every figure is the same, made of the same inputs"), "{same}");
    // Another machine's layout: the record and the questions lie together, and the first place is gone.
    fs::copy(here.join("table.md.json"), there.join("table.md.json")).unwrap();
    fs::copy(here.join("data/few.jsonl"), there.join("few.jsonl")).unwrap();
    fs::rename(&here, annotation.path().join("gone")).unwrap();
    let same = good(run(&there, &["reproduce", "table.md.json"]));
    assert!(same.contains("every figure is the same"), "{same}");
    // A record of an earlier version says so, and its figures are compared all the same.
    let earlier = fs::read_to_string(there.join("table.md.json")).unwrap();
    let version = format!("\"version\": \"{}\"", env!("CARGO_PKG_VERSION"));
    assert!(earlier.contains(&version), "{earlier}");
    fs::write(there.join("earlier.json"), earlier.replacen(&version, "\"version\": \"0.0.9\"", 1)).unwrap();
    let printed = good(run(&there, &["reproduce", "earlier.json"]));
    assert!(
        printed.contains("version: 0.0.9 then") && printed.contains("every figure is the same, though"),
        "{printed}"
    );
    // Other questions under the same name: what differs is named.
    fs::copy(annotation.path().join("gone/data/more.jsonl"), there.join("few.jsonl")).unwrap();
    let output = run(&there, &["reproduce", "table.md.json"]);
    let printed = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{printed}");
    assert!(
        printed.contains("its content is not the same") && printed.contains("figures differ"),
        "{printed}"
    );
    fs::remove_file(there.join("few.jsonl")).unwrap();
    refused(run(&there, &["reproduce", "table.md.json"]), &["data/few.jsonl is not there", "--inputs"]);
}

#[test]
fn reports_of_three_suites_are_made_again_where_the_folders_lie_otherwise() {
    let annotation = TempDir::new().unwrap();
    let (here, there) = (annotation.path().join("here"), annotation.path().join("there"));
    fs::create_dir_all(here.join("in/sets")).unwrap();
    fs::create_dir_all(there.join("mine")).unwrap();
    sets(&here.join("in/sets"));
    for name in ["corpus.jsonl", "labels.tsv"] {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("sample_data").join(name);
        fs::copy(from, here.join("in").join(name)).unwrap();
    }
    let run = |folder: &Path, plan: &[&str]| command(folder, "../cache", plan).output().unwrap();
    let inputs =
        ["--corpus", "in/corpus.jsonl", "--questions", "in/sets/few.jsonl", "--labels", "in/labels.tsv"];
    let lanes = ["--lanes", "bm25", "--lane", "bm25@k1=1.2,b=0.75", "--label-source", "gold"];
    let suites = ["berds", "sycophancy", "bias"];
    for suite in suites {
        let out = format!("{suite}.txt");
        good(run(&here, &[&["eval", suite, "--out", &out][..], &inputs, &lanes].concat()));
        fs::copy(here.join(format!("{out}.json")), there.join(format!("{out}.json"))).unwrap();
    }
    // All inputs in one folder, and the first place is gone.
    for name in ["corpus.jsonl", "labels.tsv", "sets/few.jsonl"] {
        let to = there.join("mine").join(Path::new(name).file_name().unwrap());
        fs::copy(here.join("in").join(name), to).unwrap();
    }
    fs::rename(&here, annotation.path().join("gone")).unwrap();
    for suite in suites {
        let record = format!("{suite}.txt.json");
        let printed = good(run(&there, &["reproduce", &record, "--inputs", "mine"]));
        assert!(printed.contains("every figure is the same, made of the same inputs"), "{suite}: {printed}");
    }
    // Other labels: the figures that hang on it are named.
    let labels = fs::read_to_string(there.join("mine/labels.tsv")).unwrap();
    let fewer = labels.replacen("\t1\t", "\t0\t", 5);
    fs::write(there.join("mine/labels.tsv"), fewer).unwrap();
    let output = run(&there, &["reproduce", "sycophancy.txt.json", "--inputs", "mine"]);
    let printed = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{printed}");
    assert!(
        printed.contains("labels.tsv: its content is not the same") && printed.contains("p@5 "),
        "{printed}"
    );
}

mod pir {
    //! `parallax eval pir` on a tiny file, as a program.

    use std::fs;
    use std::process::{Command, Stdio};

    use serde_json::{Value, json};
    use tempfile::TempDir;

    /// Two roots, one with queries from two sides and one with queries from one side; and a task whose perspectives are the queries.
    fn tasks() -> Value {
        json!({
            "pets": {
                "corpus": ["Dogs are loyal friends.", "Dogs bite children.", "Cats are clean animals.", "Bread needs flour."],
                "queries": [
                    "Find a claim for: dogs are loyal friends", "Find a claim against: dogs are loyal friends",
                    "Find a claim for: cats are clean animals",
                ],
                "source_queries": ["dogs are loyal friends", "dogs are loyal friends", "cats are clean animals"],
                "perspectives": ["a claim for", "a claim against", "a claim for"],
                "query_labels": ["support", "undermine", "support"],
                "key_ref": {"0": [0], "1": [1], "2": [2]},
            },
            "years": {
                "corpus": ["The tower was built in 1889.", "The bridge was opened in 1937."],
                "queries": ["When was the tower built?"],
                "source_queries": ["When was it built?"],
                "perspectives": ["When was the tower built?"],
                "query_labels": ["perspective"],
                "key_ref": {"0": [0]},
            },
        })
    }

    struct Printed {
        code: Option<i32>,
        out: String,
        err: String,
    }

    /// `parallax eval pir` over `tasks`, with one data folder for all calls.
    struct Workspace(TempDir);

    impl Workspace {
        fn new(tasks: &str) -> Self {
            let folder = tempfile::tempdir().unwrap();
            fs::write(folder.path().join("tasks.json"), tasks).unwrap();
            Workspace(folder)
        }

        fn run(&self, arguments: &[&str]) -> Printed {
            let mut command = Command::new(env!("CARGO_BIN_EXE_parallax"));
            command
                .args(["eval", "pir"])
                .args(arguments)
                .args(["--data-dir", "data"])
                .current_dir(self.0.path());
            for name in ["PARALLAX_CORPUS", "PARALLAX_QUESTIONS", "PARALLAX_LABELS", "PARALLAX_DATA_DIR"] {
                command.env_remove(name);
            }
            let output = command.stdin(Stdio::null()).output().unwrap();
            Printed {
                code: output.status.code(),
                out: String::from_utf8(output.stdout).unwrap(),
                err: String::from_utf8(output.stderr).unwrap(),
            }
        }

        #[track_caller]
        fn json(&self, arguments: &[&str]) -> Value {
            let printed = self.run(&[&["--questions", "tasks.json", "--format", "json"], arguments].concat());
            assert_eq!(printed.code, Some(0), "{}", printed.err);
            serde_json::from_str(&printed.out).unwrap()
        }
    }

    #[track_caller]
    fn mean(table: &Value, lane: &str, measure: &str) -> f64 {
        let rows = table["rows"].as_array().unwrap();
        let row = rows.iter().find(|row| row["lane"] == lane).unwrap();
        row["measures"][measure]["mean"].as_f64().unwrap()
    }

    #[test]
    fn p_recall_is_the_mean_over_a_roots_queries_then_over_roots_then_over_tasks() {
        let workspace = Workspace::new(&tasks().to_string());
        let table = workspace.json(&["-k", "1"]);
        assert_eq!(table["rows"].as_array().unwrap().len(), 12);
        assert_eq!(table["questions"], 3);
        // Without projection, the query of the opposing side retrieves the other side: (1 + 0)/2 for the dogs, 1 for the cats.
        assert_eq!(mean(&table, "minilm", "pets"), 0.75);
        assert_eq!(mean(&table, "minilm", "years"), 1.0);
        assert_eq!(mean(&table, "minilm", "avg"), 0.875);
        assert_eq!(mean(&table, "bm25@k1=0.9,b=0.4", "pets"), 0.75);
        // In the authors' notebook the cats and the tower have 0, and the dogs the same value.
        let notebook = workspace.json(&["-k", "1", "--pir-notebook"]);
        assert_eq!(mean(&notebook, "minilm", "pets"), 0.25);
        assert_eq!(mean(&notebook, "minilm", "avg"), 0.125);
        assert_eq!(notebook["provenance"]["reading"], "notebook");
        // With every passage in the top, everything is found.
        let table = workspace.json(&["-k", "4"]);
        for row in table["rows"].as_array().unwrap().iter().filter(|row| row["lane"] != "bm25@k1=0.9,b=0.4") {
            assert_eq!(row["measures"]["avg"]["mean"], 1.0, "{row}");
        }
    }

    #[test]
    fn root_queries_report_the_side_that_they_retrieve() {
        let workspace = Workspace::new(&tasks().to_string());
        let table = workspace.json(&[]);
        let sides = &table["further"].as_array().unwrap()[..];
        let with_sides = sides.iter().filter(|table| table["suite"] == "pir-bias").count();
        assert_eq!(with_sides, 1, "a task with one label has no sides");
        assert_eq!(mean(&sides[0], "minilm", "pets/support@1"), 1.0);
        assert_eq!(mean(&sides[0], "minilm", "pets/undermine@1"), 0.0);
        // The top two of the dogs contain both sides, those of the cats only one.
        let table = workspace.json(&["--bias-k", "2"]);
        let share = mean(&table["further"][0], "minilm", "pets/undermine@2");
        assert!((share - 1.0 / 3.0).abs() < 1e-12, "{share}");
        assert_eq!(table["further"][0]["rows"][0]["measures"]["pets/undermine@2"]["n"], 3);
    }

    #[test]
    fn vectors_are_stored_and_a_second_run_prints_the_same() {
        let workspace = Workspace::new(&tasks().to_string());
        let first = workspace.run(&["--questions", "tasks.json"]);
        let kept = || {
            let files = fs::read_dir(workspace.0.path().join("data/texts")).unwrap();
            files
                .filter(|file| file.as_ref().unwrap().path().extension().is_none_or(|end| end != "sums"))
                .count()
        };
        assert_eq!(kept(), 2);
        assert!(first.err.contains("embedding") && first.out.contains("minilm+pap-plus"), "{}", first.err);
        let second = workspace.run(&["--questions", "tasks.json"]);
        assert!(!second.err.contains("embedding"), "{}", second.err);
        assert_eq!((first.out, kept()), (second.out, 2));
    }

    #[test]
    fn deviations_from_the_paper_are_reported_below_the_table() {
        let mut tasks = tasks();
        tasks["pets"]["perspectives"][0] = Value::Null;
        tasks["pets"]["key_ref"].as_object_mut().unwrap().remove("2");
        let printed = Workspace::new(&tasks.to_string()).run(&["--questions", "tasks.json"]);
        for words in [
            "1 queries name no gold passages and are in no mean",
            "2 queries have no perspective beside themselves",
            "minilm+add: 1 queries rank as minilm (there is no perspective",
        ] {
            assert!(printed.out.contains(words), "no `{words}` in\n{}", printed.out);
        }
    }

    #[test]
    fn wrong_files_and_arguments_are_reported_and_nothing_is_printed() {
        let with = |change: &dyn Fn(&mut Value)| {
            let mut tasks = tasks();
            change(&mut tasks);
            tasks.to_string()
        };
        let cases = [
            ("not json".to_owned(), "tasks.json:1: expected a JSON object of PIR tasks"),
            (
                with(&|tasks| tasks["pets"]["perspectives"] = json!(["one"])),
                "task `pets`: `perspectives` has 1 entries, `queries` has 3",
            ),
            (with(&|tasks| tasks["pets"]["key_ref"]["0"] = json!([4])), "row 0 has the gold passage `4`"),
            (
                with(&|tasks| tasks["years"]["key_ref"] = json!({"x": [0]})),
                "has the row `x`, which is no number",
            ),
            (
                json!({"years": with_no_gold()}).to_string(),
                "no query has gold passages in `key_ref`, so nothing can be measured",
            ),
        ];
        for (tasks, expected) in cases {
            let printed = Workspace::new(&tasks).run(&["--questions", "tasks.json"]);
            assert_eq!((printed.code, printed.out.as_str()), (Some(2), ""), "{}", printed.err);
            assert!(printed.err.contains(expected) && !printed.err.contains("panicked"), "{}", printed.err);
        }
        let workspace = Workspace::new(&tasks().to_string());
        for (arguments, expected) in [
            (&[][..], "eval pir needs its tasks: --questions FILE"),
            (&["--questions", "none.json"], "none.json: no such file or folder"),
            (&["--questions", "tasks.json", "--lane", "run:x.run"], "no finished run"),
            (&["--questions", "tasks.json", "--fail-under", "minilm:years@9>=1"], "no measure `years@9`"),
        ] {
            let printed = workspace.run(arguments);
            assert_eq!(printed.code, Some(2), "{}", printed.err);
            assert!(printed.err.contains(expected), "{}", printed.err);
        }
    }

    fn with_no_gold() -> Value {
        let mut task = tasks()["years"].clone();
        task["key_ref"] = json!({"0": []});
        task
    }

    #[test]
    fn a_minimum_can_be_set_for_a_task_or_a_side() {
        let workspace = Workspace::new(&tasks().to_string());
        for (bound, code) in
            [("minilm:avg>=0.1", 0), ("minilm:pets/support@1>=0.5", 0), ("minilm:pets/undermine@1>=0.5", 1)]
        {
            let printed = workspace.run(&["--questions", "tasks.json", "--fail-under", bound]);
            assert_eq!(printed.code, Some(code), "{bound}: {}", printed.err);
        }
    }

    fn further(table: &Value, suite: &str) -> Value {
        let all = table["further"].as_array().unwrap();
        all.iter().find(|one| one["suite"] == suite).unwrap_or_else(|| panic!("no {suite}")).clone()
    }

    #[test]
    fn eval_pir_takes_lanes_and_the_built_in_ones_have_the_same_figures_as_without() {
        let workspace = Workspace::new(&tasks().to_string());
        let plain = workspace.json(&["-k", "1"]);
        let lanes = ["bm25", "minilm", "minilm+pap-plus", "minilm+add", "bm25@k1=1.5,b=.75", "hybrid"];
        let arguments: Vec<&str> =
            lanes.iter().flat_map(|lane| ["--lane", lane]).chain(["-k", "1"]).collect();
        let table = workspace.json(&arguments);
        let names: Vec<&str> =
            table["rows"].as_array().unwrap().iter().map(|row| row["lane"].as_str().unwrap()).collect();
        assert_eq!(
            names,
            ["bm25@k1=0.9,b=0.4", "minilm", "minilm+pap-plus", "minilm+add", "bm25@k1=1.5,b=0.75", "hybrid"]
        );
        for name in &names[..4] {
            for task in ["pets", "years", "avg"] {
                assert_eq!(mean(&table, name, task), mean(&plain, name, task), "{name} {task}");
            }
        }
        assert!(
            table["rows"][2]["measures"]["avg"]["p"].is_number(),
            "a projected lane is compared with its plain form"
        );
        let sides = further(&table, "pir-bias");
        let rows: Vec<&str> =
            sides["rows"].as_array().unwrap().iter().map(|row| row["lane"].as_str().unwrap()).collect();
        assert_eq!(
            rows,
            ["bm25@k1=0.9,b=0.4", "minilm", "bm25@k1=1.5,b=0.75", "hybrid"],
            "root queries have no perspective"
        );
        assert_eq!(
            mean(&sides, "minilm", "pets/support@1"),
            mean(&further(&plain, "pir-bias"), "minilm", "pets/support@1")
        );
    }

    #[test]
    fn p_recall_on_a_labelled_question_set_asks_every_question_once_a_statement() {
        let workspace = Workspace::new(&tasks().to_string());
        let write = |name: &str, lines: &[Value]| {
            let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
            fs::write(workspace.0.path().join(name), text).unwrap();
        };
        let passages = [
            "Dogs are loyal friends to people.",
            "Dogs are not loyal friends, they bite.",
            "Bread needs flour.",
        ];
        let corpus: Vec<Value> = passages
            .iter()
            .zip(["a", "b", "c"])
            .map(|(text, id)| json!({"_id": id, "title": "", "text": text}))
            .collect();
        write("pets.jsonl", &corpus);
        write(
            "questions.jsonl",
            &[json!({"id": "q", "question": "Are dogs loyal friends?",
            "perspectives": ["Dogs are loyal friends.", "Dogs are not loyal friends, they bite."], "supports": 0})],
        );
        fs::write(workspace.0.path().join("labels.tsv"),
            "id\tperspective\tlabel\na\tDogs are loyal friends.\t1\nb\tDogs are not loyal friends, they bite.\t1\n").unwrap();
        let plan = [
            "--corpus",
            "pets.jsonl",
            "--questions",
            "questions.jsonl",
            "--labels",
            "labels.tsv",
            "--lanes",
            "bm25,minilm,minilm+pap",
            "-k",
            "1",
            "--format",
            "json",
        ];
        let printed = workspace.run(&plan);
        assert_eq!(printed.code, Some(0), "{}", printed.err);
        let table: Value = serde_json::from_str(&printed.out).unwrap();
        // The second statement is a passage word for word; for the first, "loyal friends" is in both.
        assert_eq!(mean(&table, "minilm", "pets"), 1.0);
        assert_eq!(
            (table["questions"].as_u64(), table["label_source"].as_str()),
            (Some(1), Some("--labels"))
        );
        let sides = further(&table, "pir-bias");
        let share = |side: &str| mean(&sides, "minilm", &format!("pets/{side}@1"));
        assert_eq!(share("support") + share("oppose"), 1.0, "one passage is at rank 1");
        let recall = further(&table, "pir-perspective");
        assert_eq!(mean(&recall, "minilm", "pets/oppose@1"), 1.0);
        assert_eq!(recall["rows"][0]["measures"]["pets/support@1"]["n"], 1);
        let unlabelled = workspace.run(&[
            "--corpus",
            "pets.jsonl",
            "--questions",
            "questions.jsonl",
            "--labels",
            "none.tsv",
        ]);
        assert_eq!(unlabelled.code, Some(2));
    }

    #[test]
    fn recall_with_and_without_the_perspective_and_by_label_is_a_table_a_task() {
        let workspace = Workspace::new(&tasks().to_string());
        let table = workspace.json(&["-k", "1"]);
        let recall = further(&table, "pir-perspective");
        // Full: the claims for dogs and cats are found, that against dogs is not. The root alone is the same text.
        assert_eq!(mean(&recall, "minilm", "pets/support@1"), 1.0);
        assert_eq!(mean(&recall, "minilm", "pets/undermine@1"), 0.0);
        assert_eq!(mean(&recall, "minilm, root alone", "pets/support@1"), 1.0);
        assert_eq!(mean(&recall, "minilm, root alone", "pets/pRecall@1"), 0.75);
        assert!(recall["notes"].to_string().contains("support 2, undermine 1"), "{}", recall["notes"]);
    }

    #[test]
    fn every_query_has_a_row_and_every_task_a_card() {
        let workspace = Workspace::new(&tasks().to_string());
        let printed = workspace.run(&[
            "--questions",
            "tasks.json",
            "-k",
            "1",
            "--per-question",
            "--format",
            "tsv",
            "--lane",
            "minilm",
        ]);
        assert_eq!(printed.code, Some(0), "{}", printed.err);
        assert_eq!(printed.out.lines().count(), 5, "{}", printed.out);
        assert!(
            printed.out.contains("pets/1: dogs are loyal friends [a claim against]\tminilm\t0.0000"),
            "{}",
            printed.out
        );
        let cards = further(&workspace.json(&[]), "pir-tasks");
        assert_eq!(
            ["queries", "roots", "labels", "passages"].map(|name| mean(&cards, "pets", name)),
            [3.0, 2.0, 2.0, 4.0]
        );
        // 8, 8 and 8 words a query.
        assert_eq!(mean(&cards, "pets", "words a query"), 8.0);
        assert_eq!(mean(&cards, "years", "words a passage"), 6.0);
        let written =
            workspace.run(&["--questions", "tasks.json", "-k", "1", "--lane", "minilm", "--write", "out"]);
        assert_eq!(written.code, Some(0), "{}", written.err);
        let lines = fs::read_to_string(workspace.0.path().join("out/queries.jsonl")).unwrap();
        let second: Value = serde_json::from_str(lines.lines().nth(1).unwrap()).unwrap();
        assert_eq!(
            (second["root"].as_str(), second["success"].as_bool()),
            (Some("dogs are loyal friends"), Some(false))
        );
    }

    #[test]
    fn perspectives_are_extracted_by_the_rule_and_by_a_model_and_scored() {
        let workspace = Workspace::new(&tasks().to_string());
        let run = |more: &[&str]| {
            let plan =
                ["eval", "extract", "--questions", "tasks.json", "--data-dir", "data", "--format", "json"];
            let mut command = Command::new(env!("CARGO_BIN_EXE_parallax"));
            let output = command
                .args(plan)
                .args(more)
                .current_dir(workspace.0.path())
                .stdin(Stdio::null())
                .output()
                .unwrap();
            (
                output.status.code(),
                String::from_utf8(output.stdout).unwrap(),
                String::from_utf8(output.stderr).unwrap(),
            )
        };
        let (code, out, err) = run(&[]);
        assert_eq!(code, Some(0), "{err}");
        let table: Value = serde_json::from_str(&out).unwrap();
        // "a claim for" and "a claim against" stand before the colon; the query about years is its own perspective.
        assert_eq!((mean(&table, "rule", "pets/QA-F1"), mean(&table, "rule", "found")), (1.0, 1.0));
        assert_eq!(table["questions"], 3);
        let server = crate::server::Server::start(vec![], |prompt| {
            if prompt.contains("against") { "a claim" } else { "None" }.into()
        });
        let (code, out, err) = run(&["--llm", &server.url, "--llm-model", "tiny"]);
        assert_eq!(code, Some(0), "{err}");
        let table: Value = serde_json::from_str(&out).unwrap();
        // 2 of 3 words of one perspective, nothing of the two others.
        assert!((mean(&table, "tiny", "QA-F1") - 2.0 / 9.0).abs() < 1e-9);
        assert!((mean(&table, "tiny", "found") - 1.0 / 3.0).abs() < 1e-9);
        let (code, out, _) = run(&["--llm", "http://127.0.0.1:9/v1", "--llm-model", "gone"]);
        assert_eq!(code, Some(1), "a server that is not there fails: {out}");
    }

    #[test]
    fn a_task_is_made_of_metadata_and_its_sides_are_those_of_the_field() {
        let workspace = Workspace::new("{}");
        let passages = [
            ("Dogs are loyal friends.", json!({"about": "dogs", "leaning": "left"})),
            ("Dogs bite children.", json!({"about": "dogs", "leaning": "right"})),
            ("Taxes pay for schools.", json!({"about": "taxes", "leaning": "left"})),
            ("Taxes cost jobs.", json!({"about": "taxes", "leaning": "right"})),
            ("Cats are clean animals.", json!({"about": "cats", "leaning": "left"})),
            ("Bread needs flour.", json!({"about": "bread"})),
        ];
        let lines = passages.iter().enumerate().map(|(i, (text, metadata))| {
            json!({"_id": format!("p{i}"), "text": text, "metadata": metadata}).to_string() + "\n"
        });
        fs::write(workspace.0.path().join("corpus.jsonl"), lines.collect::<String>()).unwrap();
        let made = |arguments: &[&str]| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_parallax"));
            command.args(["corpus", "pir", "corpus.jsonl"]).args(arguments).args(["--data-dir", "data"]);
            let output = command.current_dir(workspace.0.path()).stdin(Stdio::null()).output().unwrap();
            let text = |bytes| String::from_utf8(bytes).unwrap();
            (output.status.code(), text(output.stdout), text(output.stderr))
        };
        let fields = ["--topic", "about", "--side", "leaning"];
        let (code, out, err) = made(&[&fields[..], &["--out", "task"]].concat());
        assert_eq!(code, Some(0), "{err}");
        assert!(out.contains("task: 4 queries on 2 topics; sides: left, right"), "{out}");
        assert!(out.contains("topics with one side: 1") && out.contains("lack a field: 1 passages"), "{out}");
        let table = workspace.run(&["--questions", "task", "--lane", "bm25", "-k", "1", "--format", "json"]);
        assert_eq!(table.code, Some(0), "{}", table.err);
        let table: Value = serde_json::from_str(&table.out).unwrap();
        // Both passages of a topic have its word once, and the shorter one comes first: one of its two sides is found.
        assert_eq!(mean(&table, "bm25@k1=0.9,b=0.4", "task"), 0.5);
        let labels = further(&table, "pir-perspective");
        for side in ["left", "right"] {
            assert_eq!(labels["rows"][0]["measures"][format!("task/{side}@1")]["n"], 2, "{labels}");
        }
        let (code, _, err) = made(&[&fields[..], &["--out", "task"]].concat());
        assert!(code == Some(2) && err.contains("task exists already"), "{err}");
        let (code, _, err) = made(&["--topic", "leaning", "--side", "nothing", "--out", "other"]);
        assert!(code == Some(2) && err.contains("no topic has passages of two sides"), "{err}");
    }

    #[test]
    fn countries_that_queries_ask_for_are_set_against_those_they_retrieve() {
        let task = json!({"news": {
            "corpus": ["A flood in Peru destroyed homes.", "Floods hit Chile again.", "Rain in Chile and a flood.", "Bread needs flour."],
            "queries": [
                "Find a news article happened in Peru and similar to the following news: A flood destroyed homes.",
                "Find a news article happened in Chile and similar to the following news: A flood destroyed homes.",
                "Find a news article relates to disasters and similar the following news: A flood destroyed homes.",
            ],
            "source_queries": ["A flood destroyed homes.", "A flood destroyed homes.", "A flood destroyed homes."],
            "perspectives": ["a news article happened in Peru", "a news article happened in Chile", "a news article relates to disasters"],
            "query_labels": ["location", "location", "subtopic"],
            "key_ref": {"0": [0], "1": [1], "2": [0]},
        }});
        let workspace = Workspace::new(&task.to_string());
        let table = workspace.json(&["--lane", "bm25", "-k", "4", "--attribute", "country"]);
        let countries = further(&table, "pir-countries");
        // Three passages match: one of Peru and one of Chile by their queries, and one of Chile by its words.
        for asked in ["Peru", "Chile"] {
            let row = format!("bm25@k1=0.9,b=0.4 asked for {asked}");
            let found = ["Chile@4", "Peru@4", "no country@4"].map(|name| mean(&countries, &row, name));
            assert_eq!(found, [2.0 / 3.0, 1.0 / 3.0, 0.0]);
        }
        assert_eq!(
            (countries["rows"].as_array().unwrap().len(), countries["questions"].as_u64()),
            (2, Some(2))
        );
        let first = further(
            &workspace.json(&["--lane", "bm25", "-k", "1", "--attribute", "country"]),
            "pir-countries",
        );
        assert_eq!(mean(&first, "bm25@k1=0.9,b=0.4 asked for Peru", "Peru@1"), 1.0);
        workspace.json(&["--lane", "bm25", "-k", "4", "--attribute", "country", "--plots", "plots"]);
        let heat = fs::read_to_string(workspace.0.path().join("plots/pir-countries-news.svg")).unwrap();
        assert!(heat.contains("asked for Peru</text>") && heat.contains(">.67</text>"), "{heat}");
        let other = workspace.run(&["--questions", "tasks.json", "--attribute", "outlet"]);
        assert!(other.code == Some(2) && other.err.contains("--attribute outlet"), "{}", other.err);
    }

    #[test]
    #[ignore = "needs PARALLAX_DATA"]
    fn papers_pir_on_the_authors_demo_has_their_counts_and_our_figures() {
        let data = std::env::var("PARALLAX_DATA").expect("PARALLAX_DATA names a folder");
        let tasks = format!("{data}/pir-demo/demo_pir_dataset.json");
        let workspace = Workspace::new("{}");
        let run = |more: &[&str]| -> Value {
            let printed = workspace.run(&[&["--questions", &tasks, "--format", "json"], more].concat());
            assert_eq!(printed.code, Some(0), "{}", printed.err);
            serde_json::from_str(&printed.out).unwrap()
        };
        let table = run(&["--lane", "minilm", "--lane", "minilm+pap", "--lane", "bm25"]);
        for (lane, task, value) in [
            ("minilm", "story", 0.51),
            ("minilm+pap", "story", 0.52),
            ("minilm", "avg", 0.5720),
            ("bm25@k1=0.9,b=0.4", "avg", 0.4839),
        ] {
            assert!((mean(&table, lane, task) - value).abs() < 5e-5, "{lane} {task}");
        }
        let all = table["further"].as_array().unwrap();
        let of = |name: &str| all.iter().find(|one| one.to_string().contains(name)).unwrap();
        let labels = of("perspectrum/undermine@5\":{").clone();
        let labels = if labels["suite"] == "pir-perspective" {
            labels
        } else {
            all.iter()
                .find(|one| one["suite"] == "pir-perspective" && one.to_string().contains("perspectrum/"))
                .unwrap()
                .clone()
        };
        let n = |label: &str| labels["rows"][0]["measures"][format!("perspectrum/{label}@5")]["n"].as_u64();
        assert_eq!(["support", "undermine", "general"].map(n), [46, 39, 15].map(Some));
        let cards = further(&table, "pir-tasks");
        assert!((mean(&cards, "perspectrum", "words a query") - 15.01).abs() < 0.005);
        assert!((mean(&cards, "perspectrum", "words a passage") - 11.03).abs() < 0.005);
    }

    #[test]
    fn a_task_in_the_hubs_format_gives_the_same_figures_as_in_the_demo_file() {
        let mut demo = tasks();
        demo.as_object_mut().unwrap().remove("years");
        let workspace = Workspace::new(&demo.to_string());
        let (task, folder) = (&demo["pets"], workspace.0.path().join("pets"));
        fs::create_dir(&folder).unwrap();
        let lines = |rows: Vec<Value>| rows.iter().map(|row| row.to_string() + "\n").collect::<String>();
        let corpus = task["corpus"].as_array().unwrap().iter().enumerate();
        let corpus = corpus.map(|(i, text)| json!({"_id": format!("p{i}"), "title": "", "text": text}));
        fs::write(folder.join("corpus.jsonl"), lines(corpus.collect())).unwrap();
        let queries = (0..3).map(|i| {
            let meta =
                json!({"src_query": task["source_queries"][i], "perspective": task["perspectives"][i]});
            json!({"_id": format!("q{i}"), "text": task["queries"][i], "meta": meta.to_string()})
        });
        fs::write(folder.join("queries.jsonl"), lines(queries.collect())).unwrap();
        let qrels = |last: &str| {
            lines((0..3).map(|i| json!({"query-id": format!("q{i}"), "corpus-id": if i == 2 { last.to_owned() } else { format!("p{i}") }, "score": 1})).collect())
        };
        fs::write(folder.join("qrels.jsonl"), qrels("p9")).unwrap();
        let printed = workspace.run(&["--questions", "pets"]);
        assert_eq!(printed.code, Some(2));
        assert!(
            printed.err.contains("qrels.jsonl: expected a passage of corpus.jsonl, found `p9`"),
            "{}",
            printed.err
        );
        fs::write(folder.join("qrels.jsonl"), qrels("p2")).unwrap();
        let hub = workspace.run(&["--questions", "pets", "--format", "json"]);
        assert_eq!(hub.code, Some(0), "{}", hub.err);
        let hub: Value = serde_json::from_str(&hub.out).unwrap();
        assert_eq!(hub["rows"], workspace.json(&[])["rows"]);
        // The same query, root and perspective outside eval pir: R@1 is pRecall@1 where every query has one gold passage.
        let elsewhere = |arguments: &[&str]| -> Value {
            let mut command = Command::new(env!("CARGO_BIN_EXE_parallax"));
            command.args(arguments).args([
                "--corpus",
                "pets/corpus.jsonl",
                "--questions",
                "pets/queries.jsonl",
            ]);
            command.args(["--format", "json", "--data-dir", "data"]).current_dir(workspace.0.path());
            let output = command.stdin(Stdio::null()).output().unwrap();
            assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
            serde_json::from_slice(&output.stdout).unwrap()
        };
        let plain = workspace.json(&["-k", "1"]);
        for variant in ["pap", "pap-plus", "cast", "add", "concat", "dual-sum", "tri-sum"] {
            let lane = format!("minilm+{variant}");
            let found =
                elsewhere(&["search", task["queries"][1].as_str().unwrap(), "--lane", &lane, "-k", "4"]);
            let step = found["lanes"][0]["steps"].as_array().unwrap();
            let step = step.iter().find(|step| step["step"] == "project").unwrap();
            let expected = [&task["queries"][1], &task["source_queries"][1], &task["perspectives"][1]];
            assert_eq!(["q", "r", "p"].map(|name| &step[name]), expected, "{lane}");
            let plan = ["eval", "trec", "--qrels", "pets/qrels.jsonl", "--lane", &lane, "--measures", "R@1"];
            let rows = elsewhere(&plan)["rows"].clone();
            let recall = rows[0]["measures"]["R@1"]["mean"].as_f64().unwrap();
            // Of three queries two are of one root: (a + b)/2 and c over roots, (a + b + c)/3 over queries.
            let of_roots = mean(&plain, &lane, "pets");
            let possible = (0..8u8).any(|bits| {
                let [a, b, c] = [1, 2, 4].map(|bit| f64::from(u8::from(bits & bit > 0)));
                ((a + b) / 2.0 + c) / 2.0 == of_roots && (recall - (a + b + c) / 3.0).abs() < 1e-12
            });
            assert!(possible, "{lane}: {of_roots} over roots, {recall} over queries");
        }
        // The hub's own layout has the judgments in a folder; several tasks are one table.
        fs::create_dir(folder.join("qrels")).unwrap();
        fs::rename(folder.join("qrels.jsonl"), folder.join("qrels/test.jsonl")).unwrap();
        let other = workspace.0.path().join("more-pets");
        fs::create_dir_all(other.join("qrels")).unwrap();
        for name in ["corpus.jsonl", "queries.jsonl", "qrels/test.jsonl"] {
            fs::copy(folder.join(name), other.join(name)).unwrap();
        }
        let both = workspace.run(&["--questions", "pets", "--questions", "more-pets", "--format", "json"]);
        let both: Value = serde_json::from_str(&both.out).unwrap();
        assert_eq!(mean(&both, "minilm", "pets"), mean(&both, "minilm", "more-pets"));
        assert_eq!(mean(&both, "minilm", "pets"), mean(&hub, "minilm", "pets"));
        assert!(
            workspace
                .run(&["--questions", "pets", "--questions", "pets"])
                .err
                .contains("two tasks are called `pets`")
        );
        fs::remove_file(folder.join("queries.jsonl")).unwrap();
        assert!(workspace.run(&["--questions", "pets"]).err.contains("expected queries.jsonl there"));
    }
}

#[test]
#[ignore = "needs PARALLAX_DATA"]
fn papers_pap_on_story_finds_the_same_in_both_suites() {
    let data = std::env::var("PARALLAX_DATA").expect("PARALLAX_DATA names the folder of data");
    let text = fs::read_to_string(format!("{data}/pir-demo/demo_pir_dataset.json")).unwrap();
    let story = json(&text)["story"].clone();
    let folder = TempDir::new().unwrap();
    let write = |name: &str, rows: Vec<Value>| {
        let rows: String = rows.iter().map(|row| format!("{row}\n")).collect();
        fs::write(folder.path().join(name), rows).unwrap();
    };
    let list = |name: &str| story[name].as_array().unwrap().clone();
    let corpus = list("corpus").into_iter().enumerate();
    write(
        "corpus.jsonl",
        corpus.map(|(i, text)| serde_json::json!({"_id": format!("p{i}"), "text": text})).collect(),
    );
    let queries =
        list("queries").into_iter().zip(list("source_queries")).zip(list("perspectives")).enumerate();
    let query = |(i, ((text, root), perspective)): (usize, ((Value, Value), Value))| {
        let meta = serde_json::json!({"src_query": root, "perspective": perspective}).to_string();
        serde_json::json!({"_id": format!("q{i}"), "text": text, "meta": meta})
    };
    write("queries.jsonl", queries.map(query).collect());
    let gold = story["key_ref"].as_object().unwrap().iter();
    let line = |(query, passages): (&String, &Value)| {
        let passage = passages[0].as_u64().unwrap();
        serde_json::json!({"query-id": format!("q{query}"), "corpus-id": format!("p{passage}"), "score": 1})
    };
    write("qrels.jsonl", gold.map(line).collect());
    fs::write(folder.path().join("story.json"), serde_json::json!({"story": story}).to_string()).unwrap();
    let run = |plan: &[&str]| {
        let all = [plan, &["--format", "json"]].concat();
        json(&good(command(folder.path(), "data", &all).output().unwrap()))
    };
    let trec = [
        "eval",
        "trec",
        "--corpus",
        "corpus.jsonl",
        "--questions",
        "queries.jsonl",
        "--qrels",
        "qrels.jsonl",
    ];
    let trec = run(&[&trec[..], &["--lane", "minilm+pap", "--measures", "R@5"]].concat());
    let pir = run(&["eval", "pir", "--questions", "story.json"]);
    let rows = pir["rows"].as_array().unwrap();
    let pap = rows.iter().find(|row| row["lane"] == "minilm+pap").unwrap();
    let both = [&pap["measures"]["story"]["mean"], &trec["rows"][0]["measures"]["R@5"]["mean"]];
    assert_eq!(both.map(|mean| format!("{:.4}", mean.as_f64().unwrap())), ["0.5200", "0.5200"]);
}

mod covering {
    //! Prints how often intervals from the model's verdicts contain the gold mean, and what labels add to them. The figures belong in
    //! docs/reports/quality.md; `tools/detector/in_use.py` puts them there.

    use std::collections::{BTreeMap, HashSet};
    use std::io::Write;
    use std::path::{Path, PathBuf};

    use parallax::detect::LabelSource;
    use parallax::engine::{Depth, Lists, Opening, Query, Recipe, Setup, run};
    use parallax::measure::coverage::{mrecall, prec};
    use parallax::measure::expected::{Compared, expected, trials};
    use parallax::measure::intervals::{Bounds, Trial};
    use parallax::measure::ppi::{Labelled, Method, Target, corrected_mean, labels_alone};
    use parallax::measure::seeded::SplitMix64;
    use parallax::measure::{PerspectiveCount, SupportSet};
    use parallax::work::Stop;
    use serde_json::{Value, json};

    const K: usize = 5;
    const SPLITS: u64 = 200;
    const LEVEL: f64 = 0.9;
    /// Draws of labelled questions.
    const CORRECTED: u32 = 10_000;

    /// The first five passages of a lane for every question, with the model's and with gold labels.
    fn compared(opening: &Opening, lane: &str) -> Vec<Compared> {
        let setup = Setup::open(opening, &|_| (), &Stop::never()).unwrap();
        let recipe: Recipe = lane.parse().unwrap();
        setup.embed_for(std::slice::from_ref(&recipe), &|_| (), &Stop::never()).unwrap();
        let mut all = Vec::new();
        for question in setup.questions.iter().filter(|question| question.perspectives.len() == 2) {
            let asked = |source| {
                let query = Query { question: question.clone(), lanes: vec![recipe.clone()], k: K, source };
                run(&setup, query, Depth::Top, Lists::default(), &Stop::never(), &|_| ()).unwrap()
            };
            let (model, gold) = (asked(LabelSource::Model), asked(LabelSource::Gold));
            let Some(list) = model.lists()[0] else { continue };
            let top = || list.iter().take(K).map(|ranked| ranked.at);
            all.push(Compared {
                m: PerspectiveCount::new(2).unwrap(),
                judged: top().map(|at| model.judgments.chances(at)).collect(),
                gold: top().map(|at| gold.judgments.support(at)).collect(),
            });
        }
        all
    }

    /// The share of the intervals that hold the gold mean after widening both ends, and their mean width within 0 to 1.
    fn covering(trials: &[Trial], by: f64) -> Option<(f64, f64)> {
        let n = trials.len() as f64;
        // The tolerance lets the interval count that needs exactly this much.
        let covered = trials.iter().filter(|trial| trial.missed_by() <= by + 1e-12).count();
        let width = |trial: &Trial| {
            let Bounds { low, high } = trial.interval;
            (high + by).min(1.0) - (low - by).max(0.0)
        };
        (n > 0.0).then(|| (covered as f64 / n, trials.iter().map(width).sum::<f64>() / n))
    }

    /// The least widening with which at least this share of the intervals holds the gold mean.
    fn needed_widening(trials: &[Trial], share: f64) -> Option<f64> {
        let mut missed: Vec<f64> = trials.iter().map(Trial::missed_by).collect();
        missed.sort_unstable_by(f64::total_cmp);
        let place = (missed.len() as f64 * share).ceil() as usize;
        missed.get(place.max(1) - 1).copied()
    }

    #[test]
    fn a_widening_fitted_on_some_intervals_covers_as_many_of_them_as_asked() {
        let trial = |low: f64, high: f64| Trial { interval: Bounds { low, high }, truth: 0.5 };
        let trials = [trial(0.4, 0.6), trial(0.55, 0.7), trial(0.1, 0.2), trial(0.3, 0.44), trial(0.45, 0.5)];
        let (share, width) = covering(&trials, 0.0).unwrap();
        assert!((share - 0.4).abs() < 1e-12 && (width - 0.128).abs() < 1e-12, "{share} {width}");
        let by = needed_widening(&trials, 0.8).unwrap();
        assert!((by - 0.06).abs() < 1e-12, "{by}");
        assert_eq!(covering(&trials, by).unwrap().0, 0.8);
        assert_eq!(covering(&trials, needed_widening(&trials, 1.0).unwrap()).unwrap().0, 1.0);
        assert_eq!(covering(&trials[..1], 5.0).unwrap(), (1.0, 1.0), "only the width within 0 to 1 counts");
        assert_eq!((covering(&[], 0.0), needed_widening(&[], 0.9)), (None, None));
    }

    type MeasureOf = fn(&[Option<SupportSet>], PerspectiveCount) -> f64;

    const MEASURES: [(&str, MeasureOf); 2] =
        [("MRecall@5", |sets, m| mrecall(sets, m, K).value), ("Prec@5", |sets, m| prec(sets, m, K).value)];

    /// Prints share and width for both measures, without and with widening. Returns the widening that each needs.
    fn report(name: &str, questions: &[Compared], widened: [f64; 2]) -> [f64; 2] {
        [0, 1].map(|at| {
            let (measure, of) = MEASURES[at];
            let trials = trials(questions, SPLITS, LEVEL, of);
            let (share, width) = covering(&trials, 0.0).unwrap();
            let (wide_share, wide) = covering(&trials, widened[at]).unwrap();
            let needed = needed_widening(&trials, LEVEL).unwrap();
            println!(
                "covering | {name} | {measure} | {} | {share:.3} | {width:.3} | {:.3} | {wide_share:.3} | {wide:.3} | {needed:.3}",
                questions.len(),
                widened[at]
            );
            needed
        })
    }

    /// Draws labelled questions 10,000 times and prints how often the 95 % intervals of PPI++ and of the labels alone hold the gold mean
    /// of all questions, and their mean widths.
    fn report_corrected(name: &str, questions: &[Compared]) {
        for (measure, of) in MEASURES {
            let unit = |one: &Compared| Labelled {
                value: of(&one.gold, one.m),
                prediction: expected(&one.judged, |sets| Some(of(sets, one.m))).unwrap(),
            };
            let mut units: Vec<Labelled> = questions.iter().map(unit).collect();
            let truth = units.iter().map(|unit| unit.value).sum::<f64>() / units.len() as f64;
            let all = units.len();
            for n in [20, 40, 60].into_iter().filter(|n| *n < all) {
                let (mut rng, mut by_labels) = (SplitMix64::new(n as u64), 0);
                // Corrected, then the labels alone: intervals that hold the mean, and the sum of the widths.
                let (mut held, mut width) = ([0; 2], [0.0; 2]);
                for _ in 0..CORRECTED {
                    rng.shuffle(&mut units);
                    let (drawn, rest) = units.split_at(n);
                    let rest: Vec<f64> = rest.iter().map(|unit| unit.prediction).collect();
                    let made = corrected_mean(drawn, &rest, Target::These, 0.95).unwrap();
                    let values: Vec<f64> = drawn.iter().map(|unit| unit.value).collect();
                    let alone = match made.method {
                        Method::LabelsAlone => made,
                        Method::Corrected(_) => {
                            labels_alone(&values, units.len(), Target::These, 0.95).unwrap()
                        }
                    };
                    by_labels += u32::from(made.method == Method::LabelsAlone);
                    for (at, interval) in [made.interval, alone.interval].into_iter().enumerate() {
                        held[at] += u32::from((interval.low..=interval.high).contains(&truth));
                        width[at] += interval.high - interval.low;
                    }
                }
                let share = |count: u32| f64::from(count) / f64::from(CORRECTED);
                let mean = width.map(|width| width / f64::from(CORRECTED));
                println!(
                    "corrected | {name} | {measure} | {} | {n} | {:.3} | {:.3} | {:.3} | {:.3} | {:.3} | {:.3}",
                    units.len(),
                    share(held[0]),
                    mean[0],
                    share(held[1]),
                    mean[1],
                    mean[0] / mean[1],
                    share(by_labels)
                );
            }
        }
    }

    /// Verdicts are kept between runs.
    fn opening(data: &Path) -> Opening {
        Opening { data_dir: data.into(), ..Opening::default() }
    }

    fn verdict_folder() -> PathBuf {
        Path::new(env!("CARGO_TARGET_TMPDIR")).join("covering")
    }

    fn data() -> PathBuf {
        let named = std::env::var_os("PARALLAX_DATA");
        named.map(PathBuf::from).expect("PARALLAX_DATA names the folder of data")
    }

    /// 79 questions over debate arguments. The gold labels name supporters only.
    fn arguments() -> Opening {
        let own = data().join("arguments-pro-con");
        Opening {
            corpus: Some(own.join("corpus.jsonl")),
            questions: Some(own.join("questions.jsonl")),
            labels: Some(format!("{}:positives", own.join("gold.div.qrels").display())),
            ..opening(&verdict_folder())
        }
    }

    /// A part of `parallax-labels` as corpus, questions, labels and a run of the labelled passages in the file's order. The statements of
    /// the part are those of a file of pairs that `tools/detector/prepare.py` wrote, unpacked.
    fn part_of_labels(labels: &Path, pairs: &Path, part: &str, folder: &Path) -> (Opening, String) {
        let rows = |path: &Path| -> Vec<Value> {
            let text = std::fs::read_to_string(path).unwrap();
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
        };
        let text = |row: &Value, name: &str| row[name].as_str().unwrap_or_default().to_owned();
        let own = rows(pairs);
        let own =
            own.iter().filter(|row| text(row, "split") == part && text(row, "source").starts_with("labels"));
        let statements: HashSet<String> = own.map(|row| text(row, "statement")).collect();
        let mut questions: BTreeMap<(String, String), Vec<Value>> = BTreeMap::new();
        for row in rows(labels) {
            if statements.contains(&text(&row, "a")) || statements.contains(&text(&row, "b")) {
                questions.entry((text(&row, "a"), text(&row, "b"))).or_default().push(row);
            }
        }
        questions.retain(|_, rows| rows.len() >= K);
        let file = |name: &str| std::fs::File::create(folder.join(format!("{part}-{name}"))).unwrap();
        let (mut corpus, mut asked, mut gold, mut run) =
            (file("corpus.jsonl"), file("questions.jsonl"), file("labels.tsv"), file("run.txt"));
        writeln!(gold, "id\tperspective\tlabel").unwrap();
        let mut seen = HashSet::new();
        for (number, ((a, b), rows)) in questions.into_iter().enumerate() {
            let question = json!({"id": number.to_string(), "question": text(&rows[0], "q"), "perspectives": [a, b], "supports": 0});
            writeln!(asked, "{question}").unwrap();
            for (rank, row) in rows.iter().enumerate() {
                let (id, label) = (text(row, "id"), text(row, "label"));
                if seen.insert(id.clone()) {
                    let passage = json!({"_id": id, "title": text(row, "title"), "text": text(row, "doc")});
                    writeln!(corpus, "{passage}").unwrap();
                }
                for (statement, side) in [(&a, 'A'), (&b, 'B')] {
                    writeln!(gold, "{id}\t{statement}\t{}", u8::from(label.contains(side))).unwrap();
                }
                writeln!(run, "{number} Q0 {id} {} {} labelled", rank + 1, rows.len() - rank).unwrap();
            }
        }
        let place = |name: &str| folder.join(format!("{part}-{name}"));
        let opening = Opening {
            corpus: Some(place("corpus.jsonl")),
            questions: Some(place("questions.jsonl")),
            labels: Some(format!("{}:complete", place("labels.tsv").display())),
            ..opening(&verdict_folder())
        };
        (opening, format!("run:{}", place("run.txt").display()))
    }

    #[test]
    #[ignore = "needs PARALLAX_DATA, and for the labels PARALLAX_PAIRS, what tools/detector/prepare.py wrote; takes minutes"]
    fn how_often_intervals_from_verdicts_contain_the_gold_mean() {
        let folder = tempfile::tempdir().unwrap();
        let mut bias = [0.0; 2];
        if let Some(pairs) = std::env::var_os("PARALLAX_PAIRS") {
            let labels = data().join("detector-training/parallax-labels/labels.jsonl");
            for part in ["dev", "test"] {
                let (opening, lane) = part_of_labels(&labels, Path::new(&pairs), part, folder.path());
                let needed = report(&format!("parallax-labels {part}"), &compared(&opening, &lane), bias);
                if part == "dev" {
                    bias = needed;
                    println!("\"bias\": {{\"mrecall\": {:.3}, \"prec\": {:.3}}}", bias[0], bias[1]);
                }
            }
        }
        for lane in ["bm25", "minilm"] {
            report(&format!("sample, {lane}"), &compared(&opening(&verdict_folder()), lane), bias);
            report(&format!("arguments-pro-con, {lane}"), &compared(&arguments(), lane), bias);
        }
    }

    #[test]
    #[ignore = "needs PARALLAX_DATA; takes minutes"]
    fn how_much_labels_narrow_the_intervals_of_real_questions() {
        for lane in ["bm25", "minilm", "hybrid"] {
            report_corrected(&format!("arguments-pro-con, {lane}"), &compared(&arguments(), lane));
        }
    }
}

#[test]
fn framing_measures_every_wording_and_reads_the_pairs_of_nevir() {
    let place = TempDir::new().unwrap();
    sets(place.path());
    let run = |arguments: &[&str]| command(place.path(), "data", arguments).output().unwrap();
    let plan = ["eval", "framing", "--lanes", "bm25", "--label-source", "gold", "--format", "json"];
    let table = json(&good(run(&[&plan[..], &["--questions", "few.jsonl", "--plots", "plots"]].concat())));
    let sensitivity = table["rows"][0]["measures"]["sensitivity"]["mean"].as_f64().unwrap();
    assert!(sensitivity > 0.0 && sensitivity < 1.0, "{table}");
    let wordings = &table["further"][0];
    assert_eq!(wordings["rows"].as_array().unwrap().len(), 10, "{wordings}");
    let distance = |row: usize| wordings["rows"][row]["measures"]["distance"]["mean"].as_f64().unwrap();
    assert!(
        distance(0).abs() < 1e-9 && distance(8) > 0.0,
        "the neutral list itself, and the keywords: {wordings}"
    );
    assert!(place.path().join("plots/framing-sensitivity.svg").is_file());

    // After NevIR's own code (src/negations/{tfidf,dense,evaluate}.py of github.com/orionw/NevIR): a query is right if the score of its own
    // passage is greater; a pair counts if both queries are right. By hand: of the first pair both are. BM25 shares no word with either
    // passage of the second pair and scores those of the third alike, so both queries leave them level: 1/3.
    let lines = concat!(
        "{\"id\":\"a\",\"WorkerId\":1,\"q1\":\"cats without tails\",\"q2\":\"dogs with tails\",\"doc1\":\"Manx cats.\",\"doc2\":\"Old dogs.\"}\n",
        "{\"id\":\"b\",\"q1\":\"one\",\"q2\":\"two\",\"doc1\":\"sea\",\"doc2\":\"land\"}\n",
        "{\"id\":\"c\",\"q1\":\"boats north\",\"q2\":\"boats south\",\"doc1\":\"Red boats.\",\"doc2\":\"Tan boats.\"}\n"
    );
    fs::write(place.path().join("pairs.jsonl"), lines).unwrap();
    let pairs = |file| run(&["eval", "framing", "--pairs", file, "--lanes", "bm25", "--format", "json"]);
    let table = json(&good(pairs("pairs.jsonl")));
    let mean = |name: &str| table["rows"][0]["measures"][name]["mean"].as_f64().unwrap();
    for name in ["pairwise", "q1 right", "q2 right"] {
        assert!((mean(name) - 1.0 / 3.0).abs() < 1e-9, "{name}: {table}");
    }
    // The same eight pairs by tools/measures/nevir.py, which follows the authors' code with ONNX Runtime's scores: .25, .625 and .625.
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tools/measures/nevir-pairs.jsonl");
    let eight =
        json(&good(run(&["eval", "framing", "--pairs", file, "--lanes", "minilm", "--format", "json"])));
    for (name, of_theirs) in [("pairwise", 0.25), ("q1 right", 0.625), ("q2 right", 0.625)] {
        assert_eq!(eight["rows"][0]["measures"][name]["mean"], of_theirs, "{name}: {eight}");
    }
    fs::write(place.path().join("bad.jsonl"), "{\"q1\":\"a\",\"q2\":\"b\",\"doc1\":\"c\"}\n").unwrap();
    refused(pairs("bad.jsonl"), &["bad.jsonl:1", "q1, q2, doc1 and doc2"]);
    fs::write(place.path().join("same.jsonl"), "{\"q1\":\"a\",\"q2\":\"a\",\"doc1\":\"c\",\"doc2\":\"d\"}\n")
        .unwrap();
    refused(pairs("same.jsonl"), &["same.jsonl:1", "two different queries"]);
    fs::write(place.path().join("none.jsonl"), "").unwrap();
    refused(pairs("none.jsonl"), &["none.jsonl", "q1, q2, doc1 and doc2"]);
    refused(run(&["eval", "berds", "--pairs", "pairs.jsonl"]), &["--pairs", "eval framing"]);
}

#[test]
fn asking_n_times_is_measured_against_one_deeper_list_of_the_same_cost() {
    let place = TempDir::new().unwrap();
    sets(place.path());
    let run = |arguments: &[&str]| command(place.path(), "data", arguments).output().unwrap();
    let plan = ["eval", "ask", "--label-source", "gold", "--format", "json", "--questions", "few.jsonl"];
    let table =
        json(&good(run(&[&plan[..], &["--lanes", "bm25", "--times", "4", "--plots", "plots"]].concat())));
    let mean =
        |row: usize, n: usize| table["rows"][row]["measures"][format!("n={n}")]["mean"].as_f64().unwrap();
    // Asked once, all three are the first five passages of one list.
    assert_eq!((mean(0, 1), mean(1, 1)), (mean(2, 1), mean(2, 1)), "{table}");
    assert!((1..4).all(|n| mean(1, n) <= mean(1, n + 1) && mean(2, n) <= mean(2, n + 1)), "{table}");
    assert!(fs::read_to_string(place.path().join("plots/ask-over-n.svg")).unwrap().contains("n queries"));
    refused(run(&[&plan[..], &["--lane", "bm25+ask@3"]].concat()), &["bm25", "+ask@1 to +ask@8"]);
    refused(run(&["eval", "berds", "--times", "3"]), &["--times", "eval ask"]);
    refused(run(&["search", "zoos", "--lane", "bm25+ask@0"]), &["from 1 to 20", "rrf, turns, cover"]);
    let search = |lane: &str| {
        json(&good(run(&[
            "search",
            "Should zoos be banned?",
            "--lane",
            lane,
            "--label-source",
            "gold",
            "--format",
            "json",
        ])))
    };
    let found = search("bm25+ask@3,by=cover");
    let steps = found["lanes"][0]["steps"].as_array().unwrap();
    assert_eq!(steps.last().unwrap()["queries"].as_array().unwrap().len(), 3, "{found}");
}

#[test]
fn edits_move_a_passage_of_every_lane_and_an_unknown_one_is_refused() {
    let place = TempDir::new().unwrap();
    sets(place.path());
    let run = |arguments: &[&str]| command(place.path(), "data", arguments).output().unwrap();
    let plan = ["eval", "edit", "--questions", "few.jsonl", "--format", "json"];
    let named = [&plan[..], &["--lanes", "bm25,hybrid", "--edits", "longer,first-last", "-k", "2"]].concat();
    let table = json(&good(run(&named)));
    let measure = |row: usize, name: &str| table["rows"][row]["measures"][name]["mean"].as_f64().unwrap();
    assert_eq!(table["rows"].as_array().unwrap().len(), 4, "{table}");
    // BM25 counts words, so their order changes nothing: equal scores count half.
    assert_eq!((measure(1, "higher@2"), measure(1, "ranks@2")), (0.5, 0.0), "{table}");
    assert!((0..4).all(|row| (0.0..=1.0).contains(&measure(row, "higher@2"))), "{table}");
    refused(run(&[&plan[..], &["--edits", "louder"]].concat()), &["louder", "source-named, source-removed"]);
    refused(run(&[&plan[..], &["--lane", "bm25+mmr"]].concat()), &["bm25", "switches"]);
    refused(run(&["eval", "berds", "--edits", "longer"]), &["--edits", "eval edit"]);
    // A server that is not there fails the rows that need it, and no others.
    let gone = ["--lane", "bm25", "--edits", "longer,rewritten", "-k", "2", "--llm", "http://127.0.0.1:9/v1"];
    let output = run(&[&plan[..], &gone, &["--llm-model", "gone"]].concat());
    let table = json(&String::from_utf8(output.stdout).unwrap());
    assert_eq!((output.status.code(), table["failed"].as_u64()), (Some(1), Some(2)), "{table}");
    assert!(!table["rows"][0]["measures"]["higher@2"].is_null(), "{table}");
}
