//! `eval reader`.

use super::*;

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
