//! Readers of one's own.

use super::*;

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
