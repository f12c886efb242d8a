//! The output of commands, and their errors.

use super::*;

#[test]
fn search_counts_a_passage_for_both_sides_apart_as_the_explorer_does() {
    let found = Workspace::new().run(&["search", QUESTION, "--lane", "bm25"]).out;
    assert!(found.contains(" ▲1 ▼1 ◐1 ○2 "), "{found}");
}

#[test]
fn search_as_json_has_ranks_verdicts_and_measures_that_agree() {
    let workspace = Workspace::new();
    let corpus = tiny(&workspace);
    let all = workspace.json(&["search", QUESTION, "--corpus", &corpus]);
    assert_eq!(all["question"], QUESTION);
    assert_eq!(all["perspectives"], json!(["Zoos should be banned.", "Zoos should not be banned."]));
    assert_eq!((&all["supports"], &all["k"]), (&json!(0), &json!(5)));
    assert_eq!(all["corpus"], json!({"name": "tiny", "passages": 6}));
    let lanes = all["lanes"].as_array().unwrap();
    let recipes: Vec<&str> = lanes.iter().map(|lane| lane["recipe"].as_str().unwrap()).collect();
    assert_eq!(recipes.len(), 3);
    assert!(recipes[0].starts_with("bm25@") && recipes[1..] == ["minilm", "hybrid"]);
    assert!(all["provenance"]["models"]["threshold"].as_f64().is_some());
    for lane in lanes {
        assert_eq!(lane["error"], Value::Null);
        let hits = lane["hits"].as_array().unwrap();
        assert!(!hits.is_empty() && hits.len() <= 5);
        let ids: Vec<&str> = hits.iter().map(|hit| hit["id"].as_str().unwrap()).collect();
        assert!(!ids.contains(&"f") || hits.len() == 5, "bread comes last if at all");
        let mut judged = 0;
        for (i, hit) in hits.iter().enumerate() {
            assert_eq!(hit["rank"], json!(i + 1));
            assert!(i == 0 || hit["score"].as_f64() <= hits[i - 1]["score"].as_f64());
            let verdicts = hit["verdicts"].as_array().unwrap();
            assert_eq!(verdicts.len(), 2);
            let decision = &hit["decision"];
            let p: Vec<f64> = decision["p"].as_array().unwrap().iter().map(|p| p.as_f64().unwrap()).collect();
            assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-9 && p.len() == 4, "{decision}");
            assert!((decision["engaged"].as_f64().unwrap() + p[3] - 1.0).abs() < 1e-9, "{decision}");
            for (perspective, verdict) in verdicts.iter().enumerate() {
                let own = verdict["p"].as_f64().unwrap();
                assert!((own - p[perspective] - p[2]).abs() < 1e-6, "{verdict} {decision}");
                assert_eq!(verdict["perspective"], json!(perspective));
                let supports = match &decision["side"] {
                    Value::Number(side) => json!(side.as_u64() == Some(perspective as u64)),
                    Value::String(word) => json!(word == "both"),
                    _ => Value::Null,
                };
                assert_eq!(verdict["supports"], supports);
                assert_eq!((&verdict["by"], &verdict["error"]), (&json!("model"), &Value::Null));
            }
            judged += usize::from(!decision["side"].is_null());
        }
        for name in ["MRecall@5", "Prec@5", "Lean@5"] {
            assert_eq!(lane["measures"][name], lane["doubt"][name]["mean"], "{name}");
        }
        assert_eq!(lane["judged"], json!(judged));
    }
}

#[test]
fn search_as_text_and_as_tsv() {
    let workspace = Workspace::new();
    let corpus = tiny(&workspace);
    let arguments = [&["search", QUESTION, "--corpus", &corpus, "-k", "3"], &LANES[..]].concat();
    let text = workspace.run(&arguments).good();
    for word in
        ["▲ Zoos should be banned.", "▼ Zoos should not be banned.", "BM25", "[a]", "MRecall@3", "/3 judged"]
    {
        assert!(text.contains(word), "no `{word}` in\n{text}");
    }
    let ascii = workspace.run(&[&arguments[..], &["--ascii"]].concat()).good();
    assert!(ascii.contains("Y Zoos should be banned.") && !ascii.contains('▲'));
    let tsv = workspace.run(&[&arguments[..], &["--format", "tsv"]].concat()).good();
    let rows: Vec<Vec<&str>> = tsv.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(rows[0], ["question", "lane", "rank", "id", "score", "supports", "outcome"]);
    assert_eq!(rows.len(), 4);
    for (i, row) in rows[1..].iter().enumerate() {
        assert_eq!((row.len(), row[0], row[2]), (7, QUESTION, (i + 1).to_string().as_str()));
        assert!(row[4].parse::<f64>().is_ok());
        assert!(row[5].split(',').all(|n| ["", "1", "2", "?"].contains(&n)), "{row:?}");
        assert_eq!(row[5] == "?", row[6] == "unclear", "{row:?}");
    }
}

#[test]
fn labels_of_a_file_count_before_the_model() {
    let workspace = Workspace::new();
    let corpus = tiny(&workspace);
    let questions = workspace.write("questions.tsv", format!("q1\t{QUESTION}\n"));
    workspace.write("labels.qrels", "q1 1 f 1\nq1 2 a 1\n");
    let arguments = ["search", QUESTION, "--corpus", &corpus, "--questions", &questions];
    let all = workspace.json(&[&arguments[..], &["--labels", "labels.qrels:complete"], &LANES].concat());
    let lane = &all["lanes"][0];
    let hit = lane["hits"].as_array().unwrap().iter().find(|hit| hit["id"] == "a").unwrap();
    assert_eq!(hit["verdicts"][0]["supports"], json!(false));
    assert_eq!(hit["verdicts"][1]["supports"], json!(true));
    assert_eq!(hit["verdicts"][1]["by"], json!("gold"));
    assert_eq!(lane["measures"]["MRecall@5"], json!(0.0));
    let model = workspace
        .json(&[&arguments[..], &["--labels", "labels.qrels", "--label-source", "model"], &LANES].concat());
    assert_eq!(model["lanes"][0]["hits"][0]["verdicts"][0]["by"], json!("model"));
}

#[test]
fn bad_files_are_reported_with_file_and_line_and_exit_code_2() {
    let workspace = Workspace::new();
    let search = |corpus: &str, more: &[&str]| {
        workspace.run(&[&["search", QUESTION, "--corpus", corpus], more, &LANES].concat())
    };
    search("not-there.jsonl", &[]).bad(&["not-there.jsonl: no such file or folder"]);

    let good = r#"{"_id": "a", "text": "zoos"}"#;
    workspace.write("malformed.jsonl", format!("{good}\n{{\"_id\": \"b\", \"te\u{1b}[31mxt\": \n"));
    search("malformed.jsonl", &[]).bad(&["malformed.jsonl:2: expected a JSON object", "nothing was taken"]);

    workspace.write("twice.jsonl", format!("{good}\n\n{good}\n"));
    search("twice.jsonl", &[]).bad(&["twice.jsonl:3: expected a unique id", "`a`"]);

    workspace.write("empty.jsonl", "");
    search("empty.jsonl", &[]).bad(&["empty.jsonl: the corpus is empty"]);

    fs::create_dir(workspace.files.path().join("nothing")).unwrap();
    search("nothing", &[]).bad(&["nothing: the corpus is empty", ".txt, .md or .html"]);

    workspace.write("latin1/a.txt", b"caf\xe9");
    search("latin1", &[]).bad(&["a.txt: not UTF-8 text"]);

    workspace.write("corpus.docx", "zoos");
    search("corpus.docx", &[]).bad(&["corpus.docx: expected a corpus", ".jsonl"]);

    let corpus = tiny(&workspace);
    let questions = workspace.write("questions.tsv", format!("q1\t{QUESTION}\n"));
    workspace.write("labels.qrels", "q8 1 a 1\nq9 1 a 1\n");
    let labels = ["--questions", &questions, "--labels", "labels.qrels"];
    search(&corpus, &labels).bad(&["labels.qrels: none of its 2 lines names a question of the question set"]);

    workspace.write("questions.jsonl", "{\"question\": \"x\"}\nnonsense\n");
    search(&corpus, &["--questions", "questions.jsonl"]).bad(&["questions.jsonl:2: expected a JSON object"]);
    assert!(workspace.corpora().iter().all(|path| !path.ends_with("building")));
}

#[test]
fn bad_arguments_are_reported_with_exit_code_2() {
    let workspace = Workspace::new();
    workspace.run(&["search", QUESTION, "--lane", "bm52"]).bad(&[
        "bm52",
        "expected bm25",
        "did you mean `bm25`?",
    ]);
    workspace.run(&["search", QUESTION, "--lane", "bm25@b=2"]).bad(&["b=NUMBER (0 to 1)"]);
    workspace.run(&["search", " "]).bad(&["the question is empty"]);
    workspace.run(&["search", QUESTION, "-k", "0"]).bad(&["1..=100"]);
    workspace.run(&["serach"]).bad(&["did you mean `search`?"]);
    workspace.run(&["eval", "berds", "--oracle"]).bad(&["--oracle", "--label-source gold"]);
    workspace.run(&["frame", "--keys", "<Entr>"]).bad(&["<Entr>", "expected a key"]);
    workspace.run(&["frame", "--size", "0x0"]).bad(&["columns and rows"]);
    workspace.run(&[]).bad(&["needs a terminal", "parallax search"]);
    workspace.run(&["explore", QUESTION]).bad(&["needs a terminal"]);
    // A text that is meant as a question is one.
    workspace.run(&["explore", "serach"]).bad(&["needs a terminal"]);
}

#[test]
fn a_mistyped_subcommand_before_a_question_is_recognised() {
    Workspace::new().run(&["serach", QUESTION]).bad(&["did you mean `search`?"]);
}

#[test]
fn escape_sequences_of_a_passage_do_not_reach_the_terminal() {
    let workspace = Workspace::new();
    let corpus = workspace.write(
        "corpus.jsonl",
        jsonl(&[("\u{1b}[31mid\tx", "\u{1b}]0;owned\u{7} zoos", "\u{1b}[2J zoos \u{9b}31m \u{202e}turned")]),
    );
    for format in ["text", "tsv"] {
        let question = "Should \u{1b}[31m zoos be banned?";
        let arguments = ["search", question, "--corpus", &corpus, "--format", format];
        let out = workspace.run(&[&arguments[..], &LANES].concat()).good();
        assert!(!out.chars().any(|c| c.is_control() && c != '\n' && c != '\t'), "{out:?}");
        assert!(!out.contains('\u{202e}'), "{out:?}");
        assert!(out.contains("␛[31mid x"), "{out:?}");
    }
    let frame = workspace
        .run(&["frame", "--corpus", &corpus, "--keys", "zoos<Enter><Wait><Enter>", "--lanes", "bm25"])
        .good();
    assert!(!frame.chars().any(|c| c.is_control() && c != '\n'), "{frame:?}");
}

#[test]
fn statements_are_printed_as_one_object_per_line() {
    let workspace = Workspace::new();
    workspace.write("questions.txt", "Is tea good?\n\nWho pays?\n");
    let out = workspace.run(&["statements", QUESTION, "--file", "questions.txt"]).good();
    let all: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let zoos = json!({"question": QUESTION, "perspectives": ["Zoos should be banned.", "Zoos should not be banned."], "supports": 0, "by": "rule"});
    assert_eq!(all[0], zoos);
    assert_eq!(all[1]["perspectives"], json!(["Tea is good.", "Tea is not good."]));
    assert_eq!(all[2], json!({"question": "Who pays?", "perspectives": [], "supports": null, "by": "none"}));
    assert_eq!(all.len(), 3);
    workspace.run(&["statements"]).bad(&["no question"]);
}

#[test]
fn pairs_of_a_file_are_judged_and_measured_if_it_has_labels() {
    let workspace = Workspace::new();
    let pairs = [
        "id\tdocument\tperspective\tlabel",
        "p1\tZoos should be banned, for no cage is kind.\tZoos should be banned.\t1",
        "p2\tZoos should be banned, for no cage is kind.\tZoos should not be banned.\t0",
        "p3\tThe zoo opens at nine.\tZoos should be banned.\t0",
        "p4\t\tZoos should be banned.\t",
    ];
    workspace.write("pairs.tsv", pairs.join("\n"));
    let printed = workspace.run(&["detect", "--pairs", "pairs.tsv"]);
    assert!(!printed.err.is_empty(), "the figures go to standard error");
    let out = printed.good();
    let rows: Vec<Vec<&str>> = out.lines().map(|line| line.split('\t').collect()).collect();
    // Two lines with the same document and two statements are decided together.
    assert_eq!(rows[0], ["id", "p", "supports", "error", "decision", "engaged"]);
    assert!(rows.iter().map(|row| row[0]).eq(["id", "p1", "p2", "p3", "p4"]));
    assert_eq!(rows[4], ["p4", "", "", "the passage is empty", "", ""]);
    assert!(!rows[1][4].is_empty() && rows[1][5] == rows[2][5] && rows[3][4].is_empty(), "{out}");
    let all = workspace.json(&["detect", "--pairs", "pairs.tsv"]);
    assert!(all["report"].is_object() && all["pairs"].as_array().unwrap().len() == 4);
    let p = all["pairs"][0]["p"].as_f64().unwrap();
    assert_eq!(rows[1][1], format!("{p:.4}"));
    workspace.write("bad.tsv", "document\tperspective\tlabel\na\tb\tperhaps\n");
    workspace.run(&["detect", "--pairs", "bad.tsv"]).bad(&["bad.tsv:2: expected a label of 1 or 0"]);
}

#[test]
fn a_closed_pipe_is_quiet() {
    let workspace = Workspace::new();
    let many = vec![QUESTION; 500].join("\n");
    workspace.write("many.txt", many);
    for arguments in [
        &["statements", "--file", "many.txt"][..],
        &["statements", QUESTION],
        &["search", QUESTION, "--lanes", "bm25"],
        &["frame", "--keys", "?"],
        &["completions", "bash"],
        &["man"],
        &["config", "show"],
        &["--help"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let child = workspace.command(arguments).stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
        let output = child.wait_with_output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(err.is_empty() && output.status.success(), "{arguments:?}: {:?} {err}", output.status);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error_of_everything_that_prints() {
    let workspace = Workspace::new();
    for arguments in [
        &["--help"][..],
        &["--version"],
        &["search", "--help"],
        &["config", "show"],
        &["completions", "bash"],
        &["statements", QUESTION],
        &["search", QUESTION, "--lanes", "bm25", "--format", "json"],
    ] {
        let full = std::fs::File::create("/dev/full").unwrap();
        let child = workspace.command(arguments).stdout(full).stderr(Stdio::piped()).spawn().unwrap();
        let output = child.wait_with_output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {err}");
        assert!(err.contains("No space left"), "{arguments:?}: {err}");
    }
}

#[cfg(unix)]
#[test]
fn a_signal_ends_a_long_command_with_128_and_its_number() {
    use std::io::{BufRead, BufReader};
    for (signal, code) in [("TERM", 143), ("INT", 130), ("HUP", 129)] {
        let workspace = Workspace::new();
        let mut child = workspace
            .command(&["eval", "berds", "--lanes", "bm25", "--label-source", "model"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut err = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("measuring") {
            line.clear();
            assert!(err.read_line(&mut line).unwrap() > 0, "it ended before it measured");
        }
        let kill = format!("kill -{signal} {}", child.id());
        assert!(std::process::Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        std::io::copy(&mut err, &mut std::io::sink()).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(code), "{signal}");
    }
}

#[test]
fn two_equal_perspectives_an_empty_corpus_and_a_name_that_is_no_utf_8_are_refused() {
    let workspace = Workspace::new();
    let twice = ["search", QUESTION, "--perspective", "Zoos teach.", "--perspective", "zoos  teach. "];
    workspace.run(&twice).bad(&["two --perspective are the same statement"]);
    workspace.write("empty.jsonl", "");
    workspace.run(&["corpus", "add", "empty.jsonl", "--dry-run"]).bad(&["the corpus is empty"]);
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::ffi::OsStrExt;
        let name = std::ffi::OsStr::from_bytes(b"b\xff.jsonl");
        std::fs::write(workspace.files.path().join(name), "{\"_id\":\"a\",\"text\":\"x\"}\n").unwrap();
        let output = workspace.command(&["corpus", "add"]).arg(name).output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2));
        assert!(err.contains("its name is not UTF-8 text") && !err.contains("cache folder"), "{err}");
    }
}

#[test]
fn help_and_version_end_with_exit_code_0() {
    let workspace = Workspace::new();
    assert!(workspace.run(&["--help"]).good().contains("--data-dir"));
    assert!(workspace.run(&["--version"]).good().contains(env!("CARGO_PKG_VERSION")));
    assert!(workspace.run(&["search", "--help"]).good().contains("--format"));
}

#[test]
fn questions_come_from_standard_input_too() {
    let workspace = Workspace::new();
    let mut child = workspace
        .command(&["statements", "--file", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"Is tea good?\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert_eq!(String::from_utf8(output.stdout).unwrap().lines().count(), 1);
}

#[test]
fn switches_apply_to_lanes_without_their_own_and_wrong_ones_are_reported() {
    let workspace = Workspace::new();
    let search = |more: &[&str]| workspace.run(&[&["search", QUESTION], more].concat());
    let found =
        search(&["--lane", "bm25", "--lane", "bm25+mmr@.5", "--mmr", ".9", "--format", "json"]).good();
    let found: Value = serde_json::from_str(&found).unwrap();
    let recipes: Vec<&str> =
        found["lanes"].as_array().unwrap().iter().map(|lane| lane["recipe"].as_str().unwrap()).collect();
    assert_eq!(recipes, ["bm25@k1=0.9,b=0.4+mmr@0.9", "bm25@k1=0.9,b=0.4+mmr@0.5"]);
    let hit = &found["lanes"][0]["hits"][0];
    assert_eq!(hit["was"], 1, "{hit}");
    let steps: Vec<&str> = found["lanes"][0]["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| step["step"].as_str().unwrap())
        .collect();
    assert_eq!(steps, ["retrieve", "mmr"]);
    for (wrong, words) in [
        (&["--mmr", "1.5"][..], "0 to 1"),
        (&["--expand", "q3d"], "csqe"),
        (&["--pap", "papp"], "dual-sum"),
        (&["--pap", "pap", "--toward", "0"], "from 1"),
        (&["--diversify", "best"], "xquad"),
        (&["--lane", "bm25+pap@1"], "a projection turns vectors"),
        (&["--llm", "http://127.0.0.1:1/v1"], "llm-model"),
        (
            &["--llm", "gguf:none.gguf"],
            if cfg!(feature = "local-llm") { "none.gguf: no such file" } else { "--features local-llm" },
        ),
    ] {
        let printed = search(wrong);
        assert_eq!(printed.code, Some(2), "{wrong:?}");
        assert!(printed.err.contains(words), "{wrong:?}: {}", printed.err);
    }
}
