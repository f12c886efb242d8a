//! `eval reader`, and custom readers.

use super::*;

#[test]
fn recorded_answers_give_the_figures_that_are_computed_by_hand() {
    let annotation = TempDir::new().unwrap();
    fs::write(annotation.path().join("fid.json"), FID).unwrap();
    fs::write(annotation.path().join("mine.jsonl"), recorded()).unwrap();
    let plan = ["--questions", "fid.json", "--answers", "mine.jsonl"];
    let all = table(&eval(annotation.path(), &[&plan[..], &["--format", "json"]].concat()));
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
    let text = String::from_utf8(eval(annotation.path(), &plan).stdout).unwrap();
    let line = text.lines().find(|line| line.starts_with("list  ")).unwrap();
    assert_eq!(line.matches(" n=").count(), 4, "every column has its own number of questions: {line}");
    let plots = eval(annotation.path(), &[&plan[..], &["--plots", "plots", "--format", "html"]].concat());
    assert_eq!(plots.status.code(), Some(0));
    let svg = fs::read_to_string(annotation.path().join("plots/reader-over-k.svg")).unwrap();
    assert!(svg.contains(">AcEM</text>") && svg.contains(">EM</text>"));
}

#[test]
fn a_question_that_is_right_only_without_passages_is_wrong_in_every_probe() {
    let folder = TempDir::new().unwrap();
    let questions = r#"[
{"question":"Who?","answers":["Ann"],"ctxs":[{"id":"a1","text":"x"},{"id":"a2","text":"y"},{"id":"a3","text":"z"},{"id":"a4","text":"u"}]},
{"question":"Where?","answers":["Paris"],"ctxs":[{"id":"b1","text":"q"},{"id":"b2","text":"r"},{"id":"b3","text":"s"},{"id":"b4","text":"t"}]}
]"#;
    fs::write(folder.path().join("two.json"), questions).unwrap();
    // The first is read rightly from three passages, 0010, and from the third alone; the second is right from no passage only.
    let mut answers =
        String::from("{\"question\":\"Who?\",\"k\":1,\"passages\":[\"a3\"],\"answer\":\"Ann\"}\n");
    for k in 0..5 {
        let said = |right: bool, gold: &str| if right { gold.to_owned() } else { "no".to_owned() };
        for (question, answer) in [("Who?", said(k == 3, "Ann")), ("Where?", said(k == 0, "Paris"))] {
            answers += &format!("{}\n", serde_json::json!({"question": question, "k": k, "answer": answer}));
        }
    }
    fs::write(folder.path().join("said.jsonl"), answers).unwrap();
    let plan = ["--questions", "two.json", "--answers", "said.jsonl", "-k", "4", "--format", "json"];
    let all = table(&eval(folder.path(), &plan));
    assert_eq!(mean(&all, 0, "AcEM@4"), Some(0.5));
    let probes = &all["further"][2];
    for row in 0..2 {
        let each = [1, 2, 3, 4].map(|k| mean(probes, row, &format!("EM@{k}")));
        assert_eq!(each, [Some(0.5); 4], "probe{}", row + 1);
    }
    // By rank, probe3@1 would be the first passage, from which the answer is wrong.
    assert_eq!(mean(probes, 2, "EM@1"), Some(0.5));
    assert_eq!(mean(probes, 0, "kept"), Some(2.5), "one passage of the first list, all four of the second");
}

#[test]
#[ignore = "needs PARALLAX_DATA"]
fn papers_probe_3_of_one_passage_is_666_on_ramdocs() {
    let data =
        PathBuf::from(std::env::var_os("PARALLAX_DATA").expect("PARALLAX_DATA names the folder of data"));
    let questions = data.join("reader/ramdocs/RAMDocs_test.jsonl").display().to_string();
    let reader = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/reader");
    let folder = TempDir::new().unwrap();
    let plan = ["--questions", questions.as_str(), "--reader", reader, "-k", "10"];
    let all = table(&eval(folder.path(), &[&plan[..], &["--format", "json"]].concat()));
    let probe3 = |name: &str| mean(&all["further"][2], 2, name).unwrap();
    assert_eq!(format!("{:.3}", probe3("EM@1")), ".666".replace('.', "0."));
    assert_eq!(format!("{:.3}", probe3("EM@10")), "0.670", "all that probe 3 keeps");
    // Each column counts its own questions, and the text says how many.
    let counts =
        [1, 2, 3, 4].map(|n| all["further"][3]["rows"][0]["measures"][format!("SER@{n}")]["n"].clone());
    assert_eq!(counts, [224, 162, 70, 24].map(Value::from));
    let printed = String::from_utf8(eval(folder.path(), &plan).stdout).unwrap();
    assert!(printed.contains(" n=224") && printed.contains(" n=24"), "{printed}");
}

/// PIR's Table 5 on AmbigQA: an ambiguous question, its reading as the perspective, and the answer of that reading.
#[test]
fn queries_of_pir_with_gold_answers_are_read_from_a_plain_lane_and_from_a_projected_one() {
    let folder = TempDir::new().unwrap();
    let passages = [
        ("a", "Uruguay won the first men's cup in 1930."),
        ("b", "Norway won the first women's cup in 1988."),
    ];
    let lines =
        passages.map(|(id, text)| serde_json::json!({"_id": id, "title": "", "text": text}).to_string());
    fs::write(folder.path().join("corpus.jsonl"), lines.join("\n")).unwrap();
    let query = |of: &str, answer: &str| {
        let meta = serde_json::json!({"perspective": format!("in {of} football"), "src_query": "Who won the first cup?"});
        let text = format!("Who won the first cup, in {of} football?");
        serde_json::json!({"_id": of, "text": text, "meta": meta.to_string(), "answers": [answer]})
            .to_string()
    };
    let queries = [query("men's", "Uruguay"), query("women's", "Norway")];
    fs::write(folder.path().join("queries.jsonl"), queries.join("\n")).unwrap();
    let reader = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/reader");
    let plan = [
        "--corpus",
        "corpus.jsonl",
        "--questions",
        "queries.jsonl",
        "--lane",
        "minilm",
        "--lane",
        "minilm+pap",
    ];
    let all = table(&eval(
        folder.path(),
        &[&plan[..], &["-k", "1", "--reader", reader, "--format", "json"]].concat(),
    ));
    let rows = all["rows"].as_array().unwrap().iter().map(|row| row["lane"].as_str().unwrap());
    assert_eq!(rows.collect::<Vec<_>>(), ["minilm", "minilm+pap@2"], "{all}");
    // The projection takes one of the two away from its passage.
    assert_eq!([0, 1].map(|row| mean(&all, row, "EM@1")), [Some(1.0), Some(0.5)], "{all}");
}

#[test]
fn without_a_reader_only_the_content_of_the_passages_is_reported() {
    let annotation = TempDir::new().unwrap();
    fs::write(annotation.path().join("fid.json"), FID).unwrap();
    let printed = table(&eval(annotation.path(), &["--questions", "fid.json", "--format", "json"]));
    assert_eq!((mean(&printed, 0, "Held@5"), mean(&printed, 0, "EM@5")), (Some(0.5), None));
    assert!(printed["notes"].to_string().contains("nothing was read"));
}

#[test]
fn a_model_is_right_by_its_own_words_where_another_takes_them_for_the_same() {
    let annotation = TempDir::new().unwrap();
    let docs = r#"{"question":"Who?","gold_answers":["Ann"],"wrong_answers":[],"documents":[{"text":"x","type":"correct","answer":"Ann"},{"text":"y","type":"noise","answer":""}]}"#;
    fs::write(annotation.path().join("ramdocs.jsonl"), docs).unwrap();
    let server = Server::start(vec![Fate::TooMany], |prompt| {
        if prompt.contains("mean the same") {
            "Yes."
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
    let printed = table(&eval(annotation.path(), &plan));
    let figures = ["EM@2", "AcEM@2", "SeEM@2", "SeAcEM@2"].map(|name| mean(&printed, 0, name));
    assert_eq!(figures, [0.0, 1.0, 1.0, 1.0].map(Some));
    let notes = printed["notes"].to_string();
    assert!(
        notes.contains("1 answers joined") && notes.contains("tiny judged") && notes.contains("order"),
        "{notes}"
    );
}

#[test]
fn one_models_answers_are_never_reported_under_the_name_of_another() {
    let annotation = TempDir::new().unwrap();
    fs::write(annotation.path().join("fid.json"), CITIES).unwrap();
    let [lyon, rome] = [
        Server::start(vec![], |prompt| if prompt.contains("mean the same") { "No." } else { "Lyon" }.into()),
        Server::start(vec![], |prompt| if prompt.contains("mean the same") { "Yes." } else { "Rome" }.into()),
    ];
    let read = |server: &Server, name: &str| {
        let plan = ["--questions", "fid.json", "--llm", &server.url, "--llm-model", name, "-k", "2"];
        let printed = table(&eval(annotation.path(), &[&plan[..], &["--format", "json"]].concat()));
        assert_eq!(printed["rows"][0]["lane"].as_str(), Some(name));
        (mean(&printed, 0, "EM@2"), mean(&printed, 0, "SeEM@2"), server.asked.lock().unwrap().len())
    };
    let one = read(&lyon, "one");
    let two = read(&rome, "two");
    assert_eq!((one.0, one.1), (Some(0.5), Some(0.5)));
    assert_eq!((two.0, two.1), (Some(0.0), Some(1.0)));
    assert!(one.2 > 0 && two.2 > 0);
    assert_eq!((read(&lyon, "one"), read(&rome, "two")), (one, two), "nothing is asked twice");
}

#[test]
fn an_unreachable_server_is_reported_and_the_questions_count_as_failed() {
    let annotation = TempDir::new().unwrap();
    fs::write(annotation.path().join("fid.json"), FID).unwrap();
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
    let output = eval(annotation.path(), &plan);
    assert_eq!(output.status.code(), Some(1));
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((printed["failed"].as_u64(), mean(&printed, 0, "EM@5")), (Some(2), Some(0.0)));
}

#[test]
fn bad_files_and_options_that_do_not_fit_are_refused() {
    let annotation = TempDir::new().unwrap();
    let write = |name: &str, text: &str| fs::write(annotation.path().join(name), text).unwrap();
    write("fid.json", FID);
    write("bad.jsonl", "{\"question\":\"Who?\",\"answers\":[\"a\"],\"ctxs\":[]}\n{\"question\":\"Who?\"}\n");
    write("answers.jsonl", "{\"question\":\"Who?\"}\n");
    write("nogold.jsonl", "{\"question\":\"Who?\",\"answers\":[],\"ctxs\":[]}\n");
    refused(&eval(annotation.path(), &["--questions", "bad.jsonl"]), &["bad.jsonl:2", "`ctxs` (FiD)"]);
    refused(
        &eval(annotation.path(), &["--questions", "fid.json", "--answers", "answers.jsonl"]),
        &["answers.jsonl:1", "`k`"],
    );
    refused(&eval(annotation.path(), &["--questions", "nogold.jsonl"]), &["no question has a gold answer"]);
    refused(&eval(annotation.path(), &["--questions", "fid.json", "--lane", "bm25"]), &["leave --lane out"]);
    refused(
        &eval(annotation.path(), &["--answers", "answers.jsonl"]),
        &["--answers is for questions with passages"],
    );
}

#[test]
fn lanes_over_a_question_set_have_a_stance_each() {
    let annotation = TempDir::new().unwrap();
    let printed = table(&eval(
        annotation.path(),
        &["--lanes", "bm25,minilm", "--label-source", "gold", "--format", "json"],
    ));
    let columns = ["supports@5", "opposes@5", "balanced@5", "silent@5"];
    for row in 0..2 {
        let shares = columns.map(|name| mean(&printed, row, name).unwrap());
        assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{shares:?}");
        assert!(mean(&printed, row, "turned@5").unwrap() <= mean(&printed, row, "turns@5").unwrap());
        assert!(mean(&printed, row, "removed@5").unwrap() >= 1.0);
    }
}

#[test]
fn a_custom_reader_gives_the_values_that_its_passages_vote_for() {
    let annotation = TempDir::new().unwrap();
    fs::write(annotation.path().join("fid.json"), CITIES).unwrap();
    let folder = words();
    let plan =
        ["--questions", "fid.json", "--reader", folder.to_str().unwrap(), "-k", "4", "--format", "json"];
    let all = table(&eval(annotation.path(), &plan));
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
fn a_folder_without_a_reader_is_an_error_that_says_what_was_expected() {
    let annotation = TempDir::new().unwrap();
    fs::write(annotation.path().join("fid.json"), CITIES).unwrap();
    fs::create_dir(annotation.path().join("none")).unwrap();
    let with = |more: &[&str]| eval(annotation.path(), &[&["--questions", "fid.json"], more].concat());
    refused(
        &with(&["--reader", "none"]),
        &["none: it does not hold a reader", "expected reader.json", "`nothing`"],
    );
    refused(&with(&["--reader", "fid.json"]), &["fid.json: a reader is a folder"]);
    refused(&with(&["--reader", "none", "--answers", "fid.json"]), &["--reader", "cannot be used with"]);
    refused(&eval(annotation.path(), &["--reader", "none"]), &["--reader is for questions with passages"]);
}

#[test]
fn a_custom_reader_answers_on_the_screen_and_a_bad_one_is_reported_there() {
    let annotation = TempDir::new().unwrap();
    let opening =
        |reader| Opening { data_dir: annotation.path().into(), reader: Some(reader), ..Opening::default() };
    let frame = played(opening(words()), "r<Enter><Wait>o");
    for words in ["by the model words", "10 of 10 shuffled orders"] {
        assert!(frame.contains(words), "no `{words}` in\n{frame}");
    }
    let start = Start { opening: opening(annotation.path().into()), ..stage::start() };
    let frame = play(start, stage::size(140, 40), &[], Duration::from_secs(600)).unwrap().dump(false);
    assert!(frame.contains("it does not hold a reader"), "{frame}");
}

#[test]
fn a_fid_reader_gives_python_s_answers_at_every_k() {
    let annotation = TempDir::new().unwrap();
    let (folder, printed) = fused();
    let answer = |k: usize| printed[k]["text"].as_str().unwrap();
    // Python read the first one, two and three of these, and a long one with others.
    let question = |at: usize, gold: &str| {
        let ctxs = printed[at]["passages"].as_array().unwrap().iter();
        let ctxs: Vec<Value> = ctxs.map(|ctx| json!({"title": ctx[0], "text": ctx[1]})).collect();
        json!({"question": printed[at]["question"], "answers": [gold], "ctxs": ctxs})
    };
    let questions = json!([question(3, answer(2)), question(4, answer(4))]);
    fs::write(annotation.path().join("fid.json"), questions.to_string()).unwrap();
    let plan =
        ["--questions", "fid.json", "--reader", folder.to_str().unwrap(), "-k", "3", "--format", "json"];
    let all = table(&eval(annotation.path(), &plan));
    assert_eq!(all["rows"][0]["lane"].as_str(), Some("gated"));
    assert!(answer(1) != answer(2) && answer(2) != answer(3));
    assert_eq!(mean(&all, 0, "EM@3"), Some(0.5));
    assert_eq!(mean(&all, 0, "AcEM@3"), Some(1.0));
    let notes = all["notes"].to_string();
    assert!(notes.contains("2 readings were cut at 200 tokens a passage"), "{notes}");
    assert!(!notes.contains("the order of"), "{notes}");
}

#[test]
fn a_fid_reader_answers_on_the_screen_and_shows_its_attention() {
    let annotation = TempDir::new().unwrap();
    let opening =
        Opening { data_dir: annotation.path().into(), reader: Some(fused().0), ..Opening::default() };
    let shown = played(opening, "r<Enter><Wait>w<Wait>o<Wait>");
    for words in ["by the model gated", "attention as the answer begins: 1:0.", "in 10 of 10 shuffled orders"]
    {
        assert!(shown.contains(words), "{words}: {shown}");
    }
}

/// Passages whose BM25 order for "tower" is d1, d2, d3, and a run that has them as d2, d3, d1.
fn towers(folder: &Path) {
    let line = |id: &str, text: &str| format!("{}\n", json!({"_id": id, "title": "", "text": text}));
    let corpus =
        [line("d1", "tower tower tower Lyon"), line("d2", "tower tower Rome"), line("d3", "tower Lyon")];
    fs::write(folder.join("corpus.jsonl"), corpus.concat()).unwrap();
    fs::write(folder.join("other.run"), "q1 Q0 d2 1 3 r\nq1 Q0 d3 2 2 r\nq1 Q0 d1 3 1 r\n").unwrap();
    let plain = json!({"id": "q1", "question": "Where is the tower?", "answers": ["Lyon"]});
    fs::write(folder.join("plain.jsonl"), format!("{plain}\n")).unwrap();
    let gold = json!([{"id": "q1", "question": "Where is the tower?", "answers": ["Lyon"],
        "ctxs": [{"id": "g", "text": "In Lyon.", "isgold": true}]}]);
    fs::write(folder.join("gold.json"), gold.to_string()).unwrap();
}

#[test]
fn lanes_feed_the_reader_and_the_gold_passage_has_a_row() {
    let annotation = TempDir::new().unwrap();
    towers(annotation.path());
    let reader = words();
    let plan = [
        "--corpus",
        "corpus.jsonl",
        "--lane",
        "bm25",
        "--lane",
        "run:other.run",
        "-k",
        "3",
        "--format",
        "json",
        "--reader",
    ];
    let with = |questions: &str, more: &[&str]| {
        let reader = [reader.to_str().unwrap(), "--questions", questions];
        table(&eval(annotation.path(), &[&plan[..], &reader[..], more].concat()))
    };
    let all = with("plain.jsonl", &[]);
    let lanes: Vec<&str> =
        all["rows"].as_array().unwrap().iter().map(|row| row["lane"].as_str().unwrap()).collect();
    assert_eq!(lanes, ["bm25@k1=0.9,b=0.4", "run:other.run"]);
    let names = ["EM@3", "AcEM@3", "probe3@3"];
    assert_eq!(names.map(|name| mean(&all, 0, name)), [1.0; 3].map(Some));
    assert_eq!(names.map(|name| mean(&all, 1, name)), [1.0; 3].map(Some));
    // The patterns are 101 and 001; without passages nothing is copied.
    let over = &all["further"][0];
    let curve = |row: usize| (0..=3).map(|k| mean(over, row, &format!("k={k}")).unwrap()).collect::<Vec<_>>();
    assert_eq!(over["rows"][4]["lane"].as_str(), Some("run:other.run EM"));
    assert_eq!((curve(0), curve(4)), (vec![0.0, 1.0, 0.0, 1.0], vec![0.0, 0.0, 0.0, 1.0]));
    let notes = all["notes"].to_string();
    assert!(notes.contains("run:other.run: passages by type: IZ 2, DP 1, DN 0"), "{notes}");
    assert_eq!(all["provenance"]["corpus"]["passages"], 3);
    let gold = with("gold.json", &[]);
    assert_eq!(gold["rows"][2]["lane"].as_str(), Some("gold"));
    assert_eq!(mean(&gold, 2, "EM@3"), Some(1.0));
    let plan = ["--questions", "gold.json", "--lane", "bm25", "--reader", reader.to_str().unwrap()];
    refused(&eval(annotation.path(), &plan), &["has its own passages", "--corpus"]);
}

#[test]
fn a_lane_that_fails_and_recorded_answers_without_passages_are_not_taken_for_answers() {
    let annotation = TempDir::new().unwrap();
    towers(annotation.path());
    fs::write(annotation.path().join("empty.run"), "q9 Q0 d2 1 3 r\n").unwrap();
    let lines = "{\"question\":\"Where is the tower?\",\"k\":1,\"answer\":\"Lyon\"}\n";
    fs::write(annotation.path().join("first.jsonl"), lines).unwrap();
    let plan = ["--corpus", "corpus.jsonl", "--questions", "plain.jsonl", "-k", "1", "--format", "json"];
    let reader = words();
    let lanes = ["--lane", "bm25", "--lane", "run:empty.run", "--reader", reader.to_str().unwrap()];
    let output = eval(annotation.path(), &[&plan[..], &lanes[..]].concat());
    assert_eq!(output.status.code(), Some(1));
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((mean(&printed, 0, "EM@1"), mean(&printed, 1, "EM@1")), (Some(1.0), Some(0.0)));
    assert_eq!(printed["rows"][1]["failed"], 1);
    // The line says from which rank, not from which passages: it may be of another list.
    let recorded = ["--lane", "bm25", "--answers", "first.jsonl"];
    let output = eval(annotation.path(), &[&plan[..], &recorded[..]].concat());
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn what_was_read_is_written_and_annotate_takes_what_changed() {
    let annotation = TempDir::new().unwrap();
    fs::write(annotation.path().join("fid.json"), CITIES).unwrap();
    let reader = words();
    let plan = [
        "--questions",
        "fid.json",
        "--reader",
        reader.to_str().unwrap(),
        "-k",
        "4",
        "--write",
        "out",
        "--format",
        "json",
    ];
    table(&eval(annotation.path(), &plan));
    let read = |name: &str| fs::read_to_string(annotation.path().join("out").join(name)).unwrap();
    let patterns: Vec<Value> =
        read("patterns.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        (patterns[0]["pattern"].as_str(), patterns[1]["pattern"].as_str()),
        (Some("1011"), Some("1111"))
    );
    assert_eq!(patterns[0]["answers"], json!(["", "Lyon", "Rome", "Lyon", "Lyon"]));
    assert_eq!(patterns[0]["passages"][1], json!({"id": "a2", "type": "DN"}));
    let changed = &patterns[0]["changed"][0];
    assert_eq!((changed["before"].as_str(), changed["after"].as_str()), (Some("Lyon"), Some("Rome")));
    assert_eq!(changed["stands"], "in the DN");
    assert_eq!(read("types.jsonl").lines().count(), 8);
    let mut new = Command::new(env!("CARGO_BIN_EXE_parallax"));
    new.current_dir(annotation.path()).args([
        "annotate",
        "new",
        "project",
        "--corpus",
        "out/changed.corpus.jsonl",
        "--questions",
        "out/changed.questions.jsonl",
        "--lane",
        "run:out/changed.run",
        "--data-dir",
        "data",
    ]);
    let made = new.stdin(Stdio::null()).output().unwrap();
    assert_eq!(made.status.code(), Some(0), "{}", String::from_utf8_lossy(&made.stderr));
}

#[test]
fn types_from_a_file_drive_the_probes_and_are_scored() {
    let annotation = TempDir::new().unwrap();
    fs::write(annotation.path().join("fid.json"), CITIES).unwrap();
    // The reader's own are DP DN DP SP and DP SP SP SP.
    let types = [
        ("1", "a1", "DN"),
        ("1", "a2", "DP"),
        ("1", "a3", "DP"),
        ("1", "a4", "SP"),
        ("2", "b1", "DP"),
        ("2", "b2", "SP"),
        ("2", "b3", "SP"),
    ];
    let lines: String = types
        .iter()
        .map(|(id, passage, kind)| format!("{}\n", json!({"id": id, "passage": passage, "type": kind})))
        .collect();
    fs::write(annotation.path().join("types.jsonl"), lines).unwrap();
    let reader = words();
    let plan = [
        "--questions",
        "fid.json",
        "--reader",
        reader.to_str().unwrap(),
        "-k",
        "4",
        "--types",
        "types.jsonl",
        "--format",
        "json",
    ];
    let all = table(&eval(annotation.path(), &plan));
    let further = |suite: &str| {
        all["further"]
            .as_array()
            .unwrap()
            .iter()
            .find(|table| table["suite"] == suite)
            .unwrap_or_else(|| panic!("no {suite}"))
            .clone()
    };
    // Probe 2 keeps Rome and Lyon of the first question, so Rome is answered; Paris of the second.
    assert_eq!(mean(&further("reader-probes"), 1, "EM@4"), Some(0.5));
    assert_eq!(mean(&further("reader-probes"), 1, "kept"), Some(1.5));
    let scored = further("reader-types-scored");
    let row =
        |name: &str| scored["rows"].as_array().unwrap().iter().position(|row| row["lane"] == name).unwrap();
    assert_eq!(mean(&scored, row("all five"), "accuracy"), Some(0.625));
    assert_eq!(["P", "R", "F1"].map(|name| mean(&scored, row("DP"), name)), [2.0 / 3.0; 3].map(Some));
    assert_eq!(["P", "R", "F1"].map(|name| mean(&scored, row("DP or DN"), name)), [0.0; 3].map(Some));
    assert!(scored["notes"].to_string().contains("1 passages have no type"), "{}", scored["notes"]);
    fs::write(annotation.path().join("types.jsonl"), "{}\n").unwrap();
    refused(&eval(annotation.path(), &plan), &["types.jsonl:1", "`passage`"]);
}

#[test]
fn attention_leave_one_out_and_ten_orders_are_read_in_batch() {
    let annotation = TempDir::new().unwrap();
    let (folder, printed) = fused();
    let answer = printed[3]["text"].as_str().unwrap();
    let ctxs: Vec<Value> = printed[3]["passages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|ctx| json!({"title": ctx[0], "text": ctx[1]}))
        .collect();
    let questions = json!([{"question": printed[3]["question"], "answers": [answer], "ctxs": ctxs}]);
    fs::write(annotation.path().join("fid.json"), questions.to_string()).unwrap();
    fs::write(annotation.path().join("cities.json"), CITIES).unwrap();
    let run = |questions: &str, reader: &Path, what: &str| {
        let plan = [
            "--questions",
            questions,
            "--reader",
            reader.to_str().unwrap(),
            "-k",
            "4",
            "--analyse",
            what,
            "--format",
            "json",
        ];
        table(&eval(annotation.path(), &plan))
    };
    let find = |all: &Value, suite: &str| {
        all["further"]
            .as_array()
            .unwrap()
            .iter()
            .find(|table| table["suite"] == suite)
            .unwrap_or_else(|| panic!("no {suite}"))
            .clone()
    };
    let all = run("fid.json", &folder, "attention");
    let shares: Vec<f64> =
        printed[3]["attention"].as_array().unwrap().iter().map(|share| share.as_f64().unwrap()).collect();
    let by_type = find(&all, "reader-attention");
    // IZ IZ DP: Python's answer is that from all three.
    assert!((mean(&by_type, 0, "DP").unwrap() - shares[2]).abs() < 1e-4, "{by_type}");
    assert!((mean(&by_type, 0, "IZ").unwrap() - (shares[0] + shares[1]) / 2.0).abs() < 1e-4, "{by_type}");
    let attended = find(&all, "reader-attended");
    let kept = shares.iter().filter(|share| **share >= 0.2).count() as f64;
    assert_eq!((mean(&attended, 0, "all"), mean(&attended, 1, "≥0.2")), (Some(1.0), Some(kept)));
    assert_eq!((mean(&attended, 0, "≥0.025"), mean(&attended, 1, "≥0.025")), (Some(1.0), Some(3.0)));
    let all = run("cities.json", &words(), "attention,without,orders");
    assert!(all["notes"].to_string().contains("no attention to show"), "{}", all["notes"]);
    // Lyon Rome Lyon –: without a Lyon it is Rome. Paris Rome Lyon –: without Paris it is Rome.
    let without = find(&all, "reader-without");
    assert_eq!(["DP", "DN", "SP"].map(|code| mean(&without, 0, code)), [1.0, 0.0, 0.0].map(Some));
    assert_eq!((mean(&without, 2, "DP"), mean(&without, 1, "DP")), (Some(1.0), Some(0.0)));
    assert_eq!(mean(&find(&all, "reader-orders"), 0, "same"), Some(1.0));
}

#[test]
fn ser_from_a_corpus_takes_its_negatives_from_the_list_bm25_or_a_draw() {
    let annotation = TempDir::new().unwrap();
    towers(annotation.path());
    let reader = words();
    let plan = [
        "--questions",
        "gold.json",
        "--corpus",
        "corpus.jsonl",
        "--negatives",
        "list,bm25,random",
        "-k",
        "1",
        "--format",
        "json",
        "--reader",
    ];
    let all = table(&eval(annotation.path(), &[&plan[..], &[reader.to_str().unwrap()]].concat()));
    let stability = &all["further"][3];
    // The corpus has one passage without the gold answer: Rome, which outvotes Lyon. The list has none.
    assert_eq!([0, 1, 2].map(|row| mean(stability, row, "SER@1")), [None, Some(1.0), Some(1.0)]);
    let added = &all["further"][4];
    assert_eq!(added["rows"][3]["lane"].as_str(), Some("bm25 AcEM"));
    assert_eq!([2, 3].map(|row| mean(added, row, "gold+0")), [Some(1.0), Some(1.0)]);
    assert_eq!([2, 3].map(|row| mean(added, row, "gold+1")), [Some(0.0), Some(1.0)]);
    let own =
        ["--questions", "gold.json", "--negatives", "bm25", "-k", "1", "--reader", reader.to_str().unwrap()];
    assert_eq!(
        eval(annotation.path(), &own).status.code(),
        Some(0),
        "without a corpus, the questions' passages are one"
    );
    refused(&eval(annotation.path(), &["--negatives", "dense"]), &["dense"]);
}

#[test]
fn a_language_model_judges_the_answers_of_the_probes_too() {
    let annotation = TempDir::new().unwrap();
    fs::write(annotation.path().join("fid.json"), CITIES).unwrap();
    let server = Server::start(vec![], |prompt| {
        match prompt {
            prompt if prompt.contains("mean the same") => "Yes.",
            prompt if prompt.contains("[2]") => "Lyons",
            prompt if prompt.contains("[1] Paris") => "Paris",
            _ => "Lyon",
        }
        .into()
    });
    let plan = [
        "--questions",
        "fid.json",
        "--llm",
        &server.url,
        "--llm-model",
        "tiny",
        "-k",
        "2",
        "--format",
        "json",
    ];
    let all = table(&eval(annotation.path(), &plan));
    let probes = &all["further"][2];
    let row =
        |name: &str| probes["rows"].as_array().unwrap().iter().position(|row| row["lane"] == name).unwrap();
    // Probe 5 keeps both passages of neither question: the second made the answer Lyons.
    assert_eq!(mean(probes, row("probe5 SeEM"), "EM@2"), Some(1.0));
    assert!(probes["rows"].as_array().unwrap().len() == 12);
}

#[test]
fn the_stance_asked_for_is_compared_with_the_one_that_is_said_and_a_dead_server_is_an_error() {
    let annotation = TempDir::new().unwrap();
    let line = |id: &str, text: &str| format!("{}\n", json!({"_id": id, "title": "", "text": text}));
    let corpus = [
        line("a", "Zoos should be banned because they harm."),
        line("b", "Zoos should not be banned: they teach."),
    ];
    fs::write(annotation.path().join("corpus.jsonl"), corpus.concat()).unwrap();
    let question = json!({"id": "q", "question": "Should zoos be banned?",
        "perspectives": ["Zoos should be banned.", "Zoos should not be banned."], "supports": 0});
    fs::write(annotation.path().join("questions.jsonl"), format!("{question}\n")).unwrap();
    fs::write(
        annotation.path().join("labels.tsv"),
        "id\tperspective\tlabel\na\tZoos should be banned.\t1\nb\tZoos should not be banned.\t1\n",
    )
    .unwrap();
    fs::write(annotation.path().join("one.run"), "q Q0 a 1 1 r\n").unwrap();
    // It says which side the only passage takes.
    let server = Server::start(vec![], |prompt| {
        if prompt.contains("[1] Zoos should be banned because") { "A" } else { "B" }.into()
    });
    let plan = [
        "--corpus",
        "corpus.jsonl",
        "--questions",
        "questions.jsonl",
        "--labels",
        "labels.tsv",
        "--label-source",
        "gold",
        "--lane",
        "minilm",
        "-k",
        "1",
        "--format",
        "json",
        "--llm",
    ];
    let all =
        table(&eval(annotation.path(), &[&plan[..], &[server.url.as_str(), "--llm-model", "tiny"]].concat()));
    let said = all["further"]
        .as_array()
        .unwrap()
        .iter()
        .find(|table| table["suite"] == "reader-stance-said")
        .unwrap();
    let row =
        |name: &str| said["rows"].as_array().unwrap().iter().position(|row| row["lane"] == name).unwrap();
    // Each labelled passage is for the side asked for.
    assert_eq!(
        (mean(said, row("gold"), "r@1"), mean(said, row("gold"), "as asked@1")),
        (Some(1.0), Some(1.0))
    );
    let lane = mean(said, row("minilm"), "as asked@1").unwrap();
    assert_eq!(lane + mean(said, row("minilm"), "opposite@1").unwrap(), 1.0);
    assert_eq!(said["rows"][row("minilm")]["measures"]["as asked@1"]["n"], 2);
    // Another model, because the replies of this one are recorded.
    let gone = ["http://127.0.0.1:9/v1", "--llm-model", "gone"];
    let dead = eval(annotation.path(), &[&plan[..], &gone[..]].concat());
    assert_eq!(dead.status.code(), Some(2), "{}", String::from_utf8_lossy(&dead.stdout));
}
