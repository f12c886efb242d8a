//! Labels by hand through the program: two annotators of the sample, their agreement, and the files that carry labels.

use std::collections::BTreeMap;

use parallax::measure::seeded::SplitMix64;
use serde_json::Value;

use crate::program::Desk;

/// Gold labels of the sample's first questions, with the name of an annotator and a seeded share of them turned round.
fn table(by: &str, seed: u64, one_in: usize) -> Vec<(String, bool, String)> {
    let mut rng = SplitMix64::new(seed);
    let gold = include_str!("../../sample_data/labels.tsv").lines().skip(1).take(400);
    gold.map(|line| {
        let fields: Vec<&str> = line.split('\t').collect();
        let label = (fields[3] == "1") != (rng.below(one_in) == 0);
        let row = format!("{}\t{}\t{}\t{}\t{by}", fields[0], fields[1], fields[2], u8::from(label));
        (format!("{}\t{}", fields[1], fields[2]), label, row)
    })
    .collect()
}

/// A project's folder with the journals of two annotators, imported from one table; and the counts yes/yes, yes/no, no/yes, no/no.
fn two_annotators(desk: &Desk) -> [usize; 4] {
    let (anna, ben) = (table("anna", 1, 10), table("ben", 2, 5));
    let mut text = "question\tid\tperspective\tlabel\tannotator\n".to_owned();
    let mut counts = [0; 4];
    for ((left_key, left, left_row), (right_key, right, right_row)) in anna.iter().zip(&ben) {
        assert_eq!(left_key, right_key);
        counts[2 * usize::from(!left) + usize::from(!right)] += 1;
        text += &format!("{left_row}\n{right_row}\n");
    }
    desk.write("labels.tsv", text);
    let out = desk.run(&["annotate", "import", "labels.tsv", "--format", "tsv", "--into", "project"]).good();
    assert!(out.contains("anna.jsonl: 400 labels of anna, 200 passages changed"), "{out}");
    counts
}

/// κ by its definition.
fn kappa([yes_yes, yes_no, no_yes, no_no]: [usize; 4]) -> f64 {
    let n = (yes_yes + yes_no + no_yes + no_no) as f64;
    let observed = (yes_yes + no_no) as f64 / n;
    let yes = (yes_yes + yes_no) as f64 / n * ((yes_yes + no_yes) as f64 / n);
    let no = (no_yes + no_no) as f64 / n * ((yes_no + no_no) as f64 / n);
    (observed - yes - no) / (1.0 - yes - no)
}

#[test]
fn two_annotators_of_the_sample_get_a_table_whose_figures_are_those_counted_by_hand() {
    let desk = Desk::new();
    let counts = two_annotators(&desk);
    let expected = kappa(counts);
    let told = desk.json(&["annotate", "agree", "project"]);
    let pair = &told["pairs"][0];
    assert_eq!(pair["annotators"], serde_json::json!(["anna", "ben"]));
    assert!((pair["kappa"].as_f64().unwrap() - expected).abs() < 1e-9, "{pair} {expected}");
    let names = ["yes_yes", "yes_no", "no_yes", "no_no"];
    assert_eq!(names.map(|name| pair["confusion"][name].as_u64().unwrap() as usize), counts);
    for (name, count) in names.iter().zip(counts) {
        let rows = pair["by_perspective"].as_array().unwrap();
        let sum: u64 = rows.iter().map(|row| row["confusion"][name].as_u64().unwrap()).sum();
        assert_eq!(sum as usize, count);
    }
    // Two annotators, nothing missing: α from the same counts.
    let [n, yes] = [2 * 400, 2 * counts[0] + counts[1] + counts[2]].map(|count| count as f64);
    let split = (counts[1] + counts[2]) as f64;
    let alpha = 1.0 - (n - 1.0) * 2.0 * split / (2.0 * yes * (n - yes));
    assert!((told["alpha"]["value"].as_f64().unwrap() - alpha).abs() < 1e-9, "{} {alpha}", told["alpha"]);
    assert_eq!(told["queue"].as_array().unwrap().len(), counts[1] + counts[2]);
    assert_eq!((&told["detector"], &told["refit"]), (&Value::Null, &Value::Null));

    let text = desk.run(&["annotate", "agree", "project"]).good();
    let line = text.lines().find(|line| line.starts_with("anna       ben")).unwrap();
    assert!(line.ends_with(&format!("{expected:.4}")), "{line}");
    assert!(text.contains("to talk over") && text.contains("anna yes · ben no"), "{text}");
    let markdown = desk.run(&["annotate", "agree", "project", "--format", "md"]).good();
    assert!(markdown.contains("| anna | ben | 400 |"), "{markdown}");
    let tsv = desk.run(&["annotate", "agree", "project", "--format", "tsv"]).good();
    assert!(tsv.contains(&format!("anna\tben\t\t\t\tkappa\t{expected:.6}\n")), "{tsv}");
}

/// Everything that a folder of journals holds, as the table has it.
fn dumped(desk: &Desk, journals: &str, name: &str) -> String {
    desk.run(&["annotate", "export", journals, "--format", "tsv", "--out", name]).good();
    std::fs::read_to_string(desk.files.path().join(name)).unwrap()
}

#[test]
fn labels_that_go_out_and_come_back_are_the_same_labels() {
    let desk = Desk::new();
    two_annotators(&desk);
    let before = dumped(&desk, "project", "before.tsv");
    assert_eq!(before.lines().count(), 801);
    for format in ["tsv", "label-studio", "argilla"] {
        let (file, back) = (format!("{format}.out"), format!("back-{format}"));
        desk.run(&["annotate", "export", "project", "--format", format, "--out", &file]).good();
        desk.run(&["annotate", "import", &file, "--format", format, "--into", &back]).good();
        assert_eq!(dumped(&desk, &back, "after.tsv"), before, "{format}");
    }
    desk.run(&["annotate", "export", "project", "--format", "berds", "--out", "berds.jsonl"]).good();
    desk.run(&["annotate", "import", "berds.jsonl", "--format", "berds", "--into", "back-berds"]).good();
    let labels = |text: &str| -> BTreeMap<String, String> {
        let row = |line: &str| {
            let fields: Vec<&str> = line.split('\t').collect();
            (format!("{} {} {}", fields[1], fields[3], fields[5]), fields[4].to_owned())
        };
        text.lines().map(row).collect()
    };
    assert_eq!(labels(&dumped(&desk, "back-berds", "after.tsv")), labels(&before));
    for beside in ["label-studio.out.xml", "argilla.out.settings.json"] {
        assert!(desk.files.path().join(beside).exists(), "{beside}");
    }
    // The table is one that --labels reads.
    desk.run(&["annotate", "export", "project/anna.jsonl", "--format", "tsv", "--out", "anna.tsv"]).good();
    let found = desk.json(&[
        "search",
        "Should zoos be banned?",
        "--labels",
        "anna.tsv",
        "--lanes",
        "bm25",
        "--label-source",
        "gold",
    ]);
    assert!(found["lanes"][0]["hits"].is_array());
}

#[test]
fn qrels_say_what_they_leave_out_and_come_back() {
    let desk = Desk::new();
    two_annotators(&desk);
    let one =
        desk.run(&["annotate", "export", "project/anna.jsonl", "--format", "qrels", "--out", "anna.qrels"]);
    assert!(one.err.contains("400 labels written") && one.err.contains("left out"), "{}", one.err);
    one.good();
    let again = desk.run(&[
        "annotate",
        "import",
        "anna.div.qrels",
        "--format",
        "qrels",
        "--into",
        "back.jsonl",
        "--by",
        "anna",
    ]);
    again.good();
    let out = desk.json(&["annotate", "agree", "back.jsonl"]);
    assert_eq!(out["annotators"][0]["labels"], 400);
    let both = desk.json(&["annotate", "agree", "project/anna.jsonl"]);
    assert_eq!(out["annotators"][0]["yes"], both["annotators"][0]["yes"]);
}

#[test]
fn rows_without_a_place_are_told_and_the_others_are_taken() {
    let desk = Desk::new();
    let rows =
        "id\tperspective\tlabel\nzoos-01\tZoos should be banned.\t1\nzoos-99\tZoos should be banned.\t0\n";
    desk.write("some.tsv", rows);
    let told =
        desk.run(&["annotate", "import", "some.tsv", "--format", "tsv", "--into", "j.jsonl", "--by", "anna"]);
    assert_eq!(told.code, Some(1), "{}", told.err);
    assert!(told.err.contains("some.tsv: line 3: no passage of the corpus is `zoos-99`"), "{}", told.err);
    assert!(told.out.contains("1 label of anna, 1 passage changed"), "{}", told.out);
    let again =
        desk.run(&["annotate", "import", "some.tsv", "--format", "tsv", "--into", "j.jsonl", "--by", "anna"]);
    assert!(again.out.contains("0 passages changed"), "{}", again.out);
    let none = desk.run(&["annotate", "import", "some.tsv", "--format", "tsv", "--into", "k.jsonl"]);
    none.bad(&[
        "line 2: the file does not say who labelled this; name the annotator with --by",
        "none of its labels",
    ]);
    desk.run(&["annotate", "agree", "nothing"]).bad(&["nothing: no such file or folder"]);
    desk.run(&["annotate", "export", "j.jsonl", "--format", "qrels", "--out", "x", "--model"])
        .bad(&["--model is for label-studio and argilla"]);
}

#[test]
fn the_detector_takes_part_and_its_threshold_is_fitted_and_marked_as_such() {
    let desk = Desk::new();
    let gold = include_str!("../../sample_data/labels.tsv").lines().skip(1);
    let few = gold.enumerate().filter(|(i, _)| i % 50 < 6).take(18).map(|(_, line)| line);
    let rows = few.map(|line| line.split('\t').take(4).collect::<Vec<_>>().join("\t") + "\tanna\n");
    desk.write(
        "few.tsv",
        "question\tid\tperspective\tlabel\tannotator\n".to_owned() + &rows.collect::<String>(),
    );
    desk.run(&["annotate", "import", "few.tsv", "--format", "tsv", "--into", "j.jsonl", "--by", "anna"])
        .good();
    let told = desk.json(&["annotate", "agree", "j.jsonl", "--model", "--refit=fitted.json"]);
    let detector = told["detector"]["key"].as_str().unwrap();
    assert_eq!(told["pairs"][0]["annotators"], serde_json::json!(["anna", detector]));
    assert_eq!((&told["pairs"][0]["n"], &told["alpha_with_model"]["n"]), (&18.into(), &18.into()));
    let file = std::fs::read_to_string(desk.files.path().join("fitted.json")).unwrap();
    let file: Value = serde_json::from_str(&file).unwrap();
    assert_eq!((&file["fitted_on"], &file["labels"]), (&"human labels".into(), &18.into()));
    assert_eq!((&file["detector"], &file["threshold"]), (&detector.into(), &told["refit"]["threshold"]));
    assert!(file["date"].as_str().unwrap().ends_with('Z'));
    assert!(file["f1"].as_f64().unwrap() >= file["f1_before"].as_f64().unwrap());
    let text = desk.run(&["annotate", "agree", "j.jsonl", "--refit=fitted.json"]).good();
    assert!(text.contains("threshold fitted on 18 labels by hand"), "{text}");
    // Not asked to take part, it is no annotator.
    assert!(!text.contains(detector), "{text}");
    // In use, it is told in words and figures; a threshold of another detector is refused.
    let found = desk.json(&[
        "search",
        "Should zoos be banned?",
        "--lanes",
        "bm25",
        "--detector-threshold",
        "fitted.json",
    ]);
    let models = &found["provenance"]["models"];
    assert_eq!((&models["threshold"], &models["threshold_fitted_on"]), (&file["threshold"], &18.into()));
    let said = desk.run(&[
        "search",
        "Should zoos be banned?",
        "--lanes",
        "bm25",
        "--detector-threshold",
        "fitted.json",
    ]);
    assert!(said.err.contains("fitted on 18 labels by hand"), "{}", said.err);
    desk.write("other.json", r#"{"threshold": 0.5, "labels": 3, "detector": "another"}"#);
    let refused =
        ["search", "Should zoos be banned?", "--lanes", "bm25", "--detector-threshold", "other.json"];
    desk.run(&refused).bad(&["the threshold was fitted for the detector another", "annotate agree --refit"]);
}
