//! `eval` and the files that it writes.

use super::*;

#[test]
fn a_minimum_for_a_lane_decides_the_exit_code_and_a_page_is_self_contained() {
    let workspace = Workspace::new();
    let eval = |more: &[&str]| {
        workspace.run(&[&["eval", "berds", "--lanes", "bm25", "--label-source", "gold"], more].concat())
    };
    assert_eq!(eval(&["--fail-under", "bm25:MRecall@5>=0"]).code, Some(0));
    let below = eval(&["--fail-under", "bm25:MRecall@5>=1.01"]);
    assert_eq!(below.code, Some(1));
    assert!(below.err.contains("below 1.01") && !below.out.is_empty(), "{}", below.err);
    assert!(eval(&["--fail-under", "bm25:nDCG@5>=0"]).err.contains("no measure"));
    let page = eval(&["--format", "html", "--plots", "plots"]).good();
    assert!(
        page.starts_with("<!DOCTYPE html>")
            && page.contains("<svg")
            && !page.contains("http-equiv=\"refresh")
    );
    let plots = fs::read_dir(workspace.files.path().join("plots")).unwrap().count();
    assert!(plots >= 3, "{plots}");
    for format in ["md", "latex", "tsv", "text"] {
        assert!(eval(&["--format", format]).good().contains("MRecall@5"), "{format}");
    }
}

#[test]
fn the_depth_of_judging_does_not_depend_on_labels_that_do_not_count() {
    let workspace = Workspace::new();
    let corpus = tiny(&workspace);
    workspace.write("q.jsonl", format!("{{\"id\": \"q\", \"question\": \"{QUESTION}\"}}\n"));
    let mut yes = String::from("id\tperspective\tlabel\n");
    for id in fs::read_to_string(workspace.files.path().join(&corpus)).unwrap().lines() {
        let id: Value = serde_json::from_str(id).unwrap();
        for side in ["Zoos should be banned.", "Zoos should not be banned."] {
            yes.push_str(&format!("{}\t{side}\t1\n", id["_id"].as_str().unwrap()));
        }
    }
    workspace.write("yes.tsv", yes);
    let eval = |more: &[&str]| {
        let args =
            ["eval", "coverage", "--corpus", &corpus, "--questions", "q.jsonl", "--lanes", "bm25", "-k", "1"];
        workspace.run(&[&args[..], &["--label-source", "model", "--format", "tsv"], more].concat()).good()
    };
    assert_eq!(eval(&[]), eval(&["--labels", "yes.tsv:complete"]));
}

#[test]
fn the_lists_of_a_table_are_written_in_the_formats_of_other_tools() {
    let workspace = Workspace::new();
    let eval = [
        "eval",
        "berds",
        "--lane",
        "bm25",
        "--lane",
        "bm25+mmr@.5",
        "--label-source",
        "gold",
        "--write",
        "out",
    ];
    let table = workspace.run(&[&eval[..], &["--format", "json", "-k", "5"]].concat()).good();
    let table: Value = serde_json::from_str(&table).unwrap();
    let out = workspace.files.path().join("out");
    let names = ["bm25@k1=0.9,b=0.4", "bm25@k1=0.9,b=0.4+mmr@0.5"];
    for (name, row) in names.iter().zip(table["rows"].as_array().unwrap()) {
        let name = name.replace(['@', ',', '+'], "-");
        // The run and the qrels give Prec back: a passage counts that supports any perspective.
        let measured = workspace.run(&[
            "eval",
            "trec",
            "--qrels",
            "out/labels.qrels",
            "--run",
            &format!("out/{name}.run"),
            "--measures",
            "P@5",
            "--format",
            "json",
        ]);
        let measured: Value = serde_json::from_str(&measured.good()).unwrap();
        let (own, other) =
            (&row["measures"]["Prec@5"]["mean"], &measured["rows"][0]["measures"]["P@5"]["mean"]);
        assert!((own.as_f64().unwrap() - other.as_f64().unwrap()).abs() < 1e-9, "{name}: {own} {other}");
        let lines = fs::read_to_string(out.join(format!("{name}.jsonl"))).unwrap();
        let first: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
        assert_eq!(lines.lines().count(), 24);
        assert_eq!(
            first["ctxs"][0]["parallax-preds"].as_array().unwrap().len(),
            first["perspectives"].as_array().unwrap().len()
        );
    }
    assert!(fs::read_to_string(out.join("labels.div.qrels")).unwrap().lines().count() > 1_000);
}

#[test]
fn eval_berds_accepts_more_measures_by_name_and_refuses_those_that_need_other_judgments() {
    let workspace = Workspace::new();
    let eval = |names: &str| {
        workspace.run(&[
            "eval",
            "berds",
            "--lanes",
            "bm25",
            "--label-source",
            "gold",
            "--format",
            "json",
            "--measures",
            names,
        ])
    };
    let table: Value =
        serde_json::from_str(&eval("MRecall@5,Cover,alpha_nDCG@10,StRecall@5,Lean@5").good()).unwrap();
    let measures = &table["rows"][0]["measures"];
    let mean = |name: &str| measures[name]["mean"].as_f64().unwrap();
    assert!(
        (0.0..=1.0).contains(&mean("StRecall@5")) && mean("alpha_nDCG@10") <= 1.0 && mean("Cover") >= 1.0
    );
    assert_eq!(measures["Lean@5"]["n"], 20, "four questions have more than two sides");
    eval("nDCG@10").bad(&["nDCG@10", "qrels"]);
    eval("MRecal@5").bad(&["MRecall@5"]);
}

#[test]
fn a_diversifiers_choice_does_not_depend_on_labels() {
    let workspace = Workspace::new();
    let corpus = tiny(&workspace);
    workspace.write("q.jsonl", format!("{{\"id\": \"q\", \"question\": \"{QUESTION}\"}}\n"));
    let mut yes = String::from("id\tperspective\tlabel\n");
    for side in ["Zoos should be banned.", "Zoos should not be banned."] {
        yes.push_str(&format!("c\t{side}\t1\n"));
    }
    workspace.write("yes.tsv", yes);
    let order = |lane: &str, more: &[&str]| -> Vec<String> {
        let args = [
            "search",
            QUESTION,
            "--corpus",
            &corpus,
            "--questions",
            "q.jsonl",
            "--lane",
            lane,
            "--format",
            "json",
        ];
        let found: Value = serde_json::from_str(&workspace.run(&[&args[..], more].concat()).good()).unwrap();
        let hits = found["lanes"][0]["hits"].as_array().unwrap();
        hits.iter().map(|hit| hit["id"].as_str().unwrap().to_owned()).collect()
    };
    for lane in ["bm25+xquad@1", "bm25+pm2@.5"] {
        assert_eq!(
            order(lane, &[]),
            order(lane, &["--labels", "yes.tsv:complete", "--label-source", "gold"])
        );
        assert_ne!(order(lane, &[]), order("bm25", &[]), "{lane} chooses otherwise than the retriever");
    }
}

#[cfg(unix)]
#[test]
fn an_interrupted_eval_names_its_signal_prints_no_table_and_can_be_run_again() {
    let workspace = Workspace::new();
    let args = ["eval", "berds", "--lanes", "minilm", "-k", "5"];
    for (signal, code) in [("-TERM", 143), ("-INT", 130)] {
        let mut child =
            workspace.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut printed = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("measuring") {
            line.clear();
            assert!(printed.read_line(&mut line).unwrap() > 0, "it ended before it measured");
        }
        assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
        let out = child.wait_with_output().unwrap();
        assert_eq!((out.status.code(), out.stdout.len()), (Some(code), 0));
    }
    workspace.run(&args).good();
}

mod sources {
    //! Question sets built from other data sets.

    use std::fs;
    use std::path::Path;
    use std::process::Command;

    use serde_json::Value;

    use crate::server::Server;

    /// Runs the program.
    fn parallax(data: &Path, args: &[&str]) -> (Option<i32>, String, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_parallax"));
        let done = command.args(args).args(["--data-dir", &data.to_string_lossy()]).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (done.status.code(), text(done.stdout), text(done.stderr))
    }

    /// Writes statements for a claim that no rule reads, and finds that the argument supports the second.
    fn of_claims(prompt: &str) -> String {
        if prompt.starts_with("Two statements:") {
            assert!(prompt.contains("[1] Cruelty, always. Animals suffer there."), "{prompt}");
            return "B".into();
        }
        assert!(prompt.starts_with("Question: Cruelty, always."), "{prompt}");
        r#"["Zoos are kind to animals.", "Zoos are cruel to animals."]"#.into()
    }

    #[test]
    fn pairs_of_arguments_become_questions_by_rule_or_by_a_model_that_says_which_statement_supports() {
        let data = tempfile::tempdir().unwrap();
        let file = data.path().join("pairs.jsonl");
        let lines = [
            r#"{"_id": "zoo-pro01a", "title": "animals zoo", "text": "Zoos should be banned. Animals suffer there."}"#,
            r#"{"_id": "zoo-pro01b", "title": "animals zoo", "text": "Zoos protect species."}"#,
            r#"{"id": "x-con01-point", "title": "Zoos do not teach children", "text": "They only look."}"#,
            r#"{"id": "x-con01-counter", "title": null, "text": "They learn a lot."}"#,
            r#"{"id": "alone-point", "text": "Zoos should be free."}"#,
            r#"{"id": 7, "argument": "Cruelty, always. Animals suffer there.", "counter": "Not in good zoos."}"#,
        ];
        fs::write(&file, lines.join("\n")).unwrap();
        let args = ["statements", "--pair", &file.to_string_lossy()];
        let (code, out, err) = parallax(data.path(), &args);
        let made: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!((code, made.len()), (Some(0), 2), "{out}{err}");
        assert_eq!(made[0]["id"], "zoo-pro01");
        assert_eq!(made[0]["question"], "Should zoos be banned?");
        assert_eq!(made[0]["perspectives"][1], "Zoos should not be banned.");
        assert_eq!(made[1]["question"], "Do zoos teach children?");
        assert!(
            err.contains("pairs.jsonl:6: left out: no rule makes a question of")
                && err.contains("(--llm URL)"),
            "{err}"
        );
        assert!(err.contains("2 questions from 3 rows: 2 by rule; left out: 1"), "{err}");
        let server = Server::start(Vec::new(), of_claims);
        let (_, out, err) =
            parallax(data.path(), &[&args[..], &["--llm", &server.url, "--llm-model", "bear-7b"]].concat());
        let last: Value =
            serde_json::from_str(out.lines().nth(2).unwrap_or_else(|| panic!("{out}{err}"))).unwrap();
        assert_eq!(
            (&last["question"], &last["by"], &last["supports"]),
            (&"Are zoos cruel to animals?".into(), &"llm".into(), &0.into())
        );
        assert_eq!(last["perspectives"][1], "Zoos are kind to animals.");
        // The set is one that every command reads.
        let set = data.path().join("set.jsonl");
        fs::write(&set, &out).unwrap();
        let (code, out, err) = parallax(data.path(), &["questions", "info", &set.to_string_lossy()]);
        assert!(code == Some(0) && out.contains("\t3\t"), "{out}{err}");
        fs::write(&file, "{\"id\": \"zoo\", \"text\": \"Zoos.\"}").unwrap();
        let (code, _, err) = parallax(data.path(), &args);
        assert!(
            code == Some(2) && err.contains("pairs.jsonl:1: expected an `id` that ends with -point"),
            "{err}"
        );
    }

    #[test]
    fn answers_of_kialo_and_options_of_opinionqa_become_statements_and_what_has_no_two_sides_is_named() {
        let data = tempfile::tempdir().unwrap();
        let (kialo, survey) = (data.path().join("kialo.jsonl"), data.path().join("info.csv"));
        let lines = [
            r#"{"question": "Should zoos be banned?", "answers": ["Yes", "No, zoos should be kept open."]}"#,
            r#"{"name": "What is the best form of government?", "theses": [{"text": "Democracy"}, {"text": "A monarchy"}, {"text": "Anarchy"}]}"#,
            r#"{"question": "Zoos?", "answers": ["Fine", "Cruel", "Both"]}"#,
        ];
        fs::write(&kialo, lines.join("\n")).unwrap();
        let (code, out, err) =
            parallax(data.path(), &["statements", "--from-answers", &kialo.to_string_lossy()]);
        let made: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!((code, made.len()), (Some(0), 2), "{out}{err}");
        assert_eq!(
            made[0]["perspectives"],
            serde_json::json!(["Zoos should be banned.", "Zoos should be kept open."])
        );
        assert_eq!(made[1]["perspectives"][2], "Anarchy is the best form of government.");
        assert!(err.contains("kialo.jsonl:3: left out: no rule makes a statement of the answer"), "{err}");
        let rows = [
            "key,question,references",
            r#"GUN_W26,"Do you think guns should be banned?","['Yes', 'No', 'Refused']""#,
            r#"PRAY_W26,How often do you pray?,"['Daily', 'Weekly', 'Monthly', 'Refused']""#,
        ];
        fs::write(&survey, rows.join("\n")).unwrap();
        let args = ["statements", "--options", &survey.to_string_lossy()];
        let (code, out, err) = parallax(data.path(), &args);
        let made: Value =
            serde_json::from_str(out.trim()).unwrap_or_else(|error| panic!("{error}: {out}{err}"));
        assert_eq!((code, &made["id"]), (Some(0), &"GUN_W26".into()), "{err}");
        assert_eq!(made["perspectives"][0], "Guns should be banned.");
        assert!(err.contains("info.csv:3: left out: its 3 options have no two opposite ends"), "{err}");
        fs::write(&survey, "key,text\n1,2").unwrap();
        let (code, _, err) = parallax(data.path(), &args);
        assert!(code == Some(2) && err.contains("info.csv:1: expected a header with `question`"), "{err}");
    }
}
