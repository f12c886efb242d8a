//! Brought detectors against the Python `transformers` classes, on tiny random checkpoints (`tools/detector/make_fixtures.py`), what is
//! said of models that cannot be right, and any of them in the place of the carried one.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use parallax::corpus::Passage;
use parallax::detect::{BroughtCrossEncoder, Choice, CrossEncoder, DetectError, Detector};
use parallax::pipeline::{Opening, Setup, model_threads};
use parallax::work::{Stop, on_all};
use serde_json::{Value, json};

use crate::server::{Fate, Server};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/detectors").join(name)
}

fn load(folder: &Path, supports: &str) -> Result<BroughtCrossEncoder, String> {
    let choice = format!("path:{}{supports}", folder.display()).parse()?;
    let Choice::Brought { source, supports } = choice else { panic!("no brought detector") };
    BroughtCrossEncoder::load(&source, supports.as_deref(), Path::new("nowhere"))
        .map_err(|error| error.to_string())
}

fn passage(text: &str) -> Passage {
    Passage { text: text.into(), ..Passage::default() }
}

/// Compares all numbers of a fixture, and gives the detector.
fn agrees(name: &str, supports: &str) -> BroughtCrossEncoder {
    let detector = load(&fixture(name), supports).unwrap_or_else(|error| panic!("{error}"));
    let rows: Vec<Value> =
        serde_json::from_slice(&fs::read(fixture(name).join("expected.json")).unwrap()).unwrap();
    assert!(rows.len() >= 5);
    for row in rows {
        let word = |name: &str| row[name].as_str().unwrap().to_owned();
        let passage = Passage { title: word("title"), text: word("text"), ..Passage::default() };
        let made = detector.logits(&passage, &word("statement")).unwrap();
        let expected: Vec<f64> =
            row["logits"].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect();
        assert_eq!(made.len(), expected.len());
        for (made, expected) in made.iter().zip(&expected) {
            assert!((f64::from(*made) - expected).abs() < 1e-4, "{name}, {row}: {made} {expected}");
        }
    }
    detector
}

#[test]
fn bert_with_three_classes_and_with_one() {
    let three = agrees("bert", "");
    assert!(three.key().starts_with("bert-") && three.threshold() == 0.5 && !three.experimental());
    let one = agrees("bert-one", "@supports=LABEL_0");
    let logit = one.logits(&passage("Owls."), "Zoos.").unwrap()[0];
    let p = one.judge(&passage("Owls."), "Zoos.", &Stop::never()).unwrap();
    assert!((p - 1.0 / (1.0 + (-logit).exp())).abs() < 1e-6);
}

#[test]
fn roberta_whose_class_of_support_is_the_last() {
    let detector = agrees("roberta", "");
    let logits = detector.logits(&passage("Owls."), "Zoos.").unwrap();
    let all: f32 = logits.iter().map(|x| x.exp()).sum();
    let p = detector.judge(&passage("Owls."), "Zoos.", &Stop::never()).unwrap();
    assert!((p - logits[2].exp() / all).abs() < 1e-6);
}

#[test]
fn deberta_with_shared_projections_and_buckets_and_with_a_row_for_every_distance() {
    agrees("deberta-v3", "");
    agrees("deberta-v2", "@supports=LABEL_1");
}

#[test]
fn a_verdict_depends_on_nothing_that_runs_beside_it() {
    let detector = load(&fixture("deberta-v3"), "").unwrap();
    let texts: Vec<Passage> = (1..24).map(|i| passage(&"the old zoo keeps wolves ".repeat(i))).collect();
    let judge = |i: usize| detector.judge(&texts[i], "Zoos should be banned.", &Stop::never()).unwrap();
    let alone: Vec<f32> = (0..texts.len()).map(judge).collect();
    assert_eq!(alone, on_all(&model_threads().unwrap(), texts.len(), &Stop::never(), judge));
}

#[test]
fn a_passage_of_ten_thousand_words_is_read_to_its_end_and_the_window_that_supports_most_counts() {
    let detector = load(&fixture("bert"), "").unwrap();
    let judge =
        |text: &str| detector.judge(&passage(text), "Zoos should be banned.", &Stop::never()).unwrap();
    let (dull, telling) = ("the old zoo keeps owls ", "suffer small cages banned not ");
    let p = |text: &str| judge(&text.repeat(30));
    let (low, high, most) =
        if p(dull) < p(telling) { (dull, telling, p(telling)) } else { (telling, dull, p(dull)) };
    let long = format!("{}{}", low.repeat(2_000), high.repeat(30));
    assert!(judge(&low.repeat(2_000)) < most && judge(&long) >= most);
    // Thousands of windows are given up between two of them.
    let now = std::sync::Arc::default();
    let stop = Stop::when_past(&now, 1);
    let stopped = detector.judge(&passage(&long), "Zoos should be banned.", &stop);
    assert!(matches!(stopped, Err(DetectError::Stopped(_))));
}

#[test]
fn an_empty_passage_or_statement_has_no_verdict() {
    let detector = load(&fixture("roberta"), "").unwrap();
    let judge = |text: &str, statement: &str| detector.judge(&passage(text), statement, &Stop::never());
    assert_eq!(judge("", "Zoos should be banned."), Err(DetectError::Empty("passage")));
    assert_eq!(judge("Zoos.", ""), Err(DetectError::Empty("statement")));
}

/// A copy of a fixture with one entry of its configuration changed.
fn changed(name: &str, key: &str, value: Value) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(fixture(name)).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, folder.path().join(path.file_name().unwrap())).unwrap();
    }
    let file = folder.path().join("config.json");
    let mut config: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    config[key] = value;
    fs::write(file, config.to_string()).unwrap();
    folder
}

#[test]
fn what_cannot_be_right_is_refused_with_what_to_do() {
    for (name, key, value, words) in [
        ("bert", "id2label", json!({"0": "a", "1": "b", "2": "c"}), &["a, b, c", "@supports=a"][..]),
        ("bert", "id2label", json!({"0": "entailment"}), &["id2label", "3 classes"]),
        ("bert", "model_type", json!("distilbert"), &["config.json", "of classifiers bert, roberta"]),
        ("bert", "model_type", json!("t5"), &["config.json", "deberta-v2 can be read"]),
        ("bert", "hidden_size", json!(64), &["model.safetensors"]),
        ("bert", "max_position_embeddings", json!(3), &["model.safetensors", "[3, 32]"]),
        ("deberta-v3", "conv_kernel_size", json!(3), &["conv_kernel_size", "convolution"]),
        ("deberta-v3", "position_buckets", json!(1), &["position_buckets"]),
        ("deberta-v3", "pooler_hidden_act", json!("mish"), &["mish", "gelu"]),
        ("deberta-v3", "share_att_key", json!(false), &["pos_key_proj", "missing"]),
    ] {
        let folder = changed(name, key, value);
        let Err(told) = load(folder.path(), "") else { panic!("{key} was taken") };
        assert!(words.iter().all(|word| told.contains(word)), "{key}: {told}");
        assert!(!told.contains('\n'), "{told}");
    }
    let encoder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/encoders");
    for (name, words) in [
        ("contriever", "no `classifier`"),
        ("roberta", "tells no classes apart"),
        ("t5", "no model is there"),
    ] {
        let told = load(&encoder.join(name), "").err().unwrap();
        assert!(told.contains(words), "{name}: {told}");
    }
    assert!(load(&fixture("bert-one"), "").err().unwrap().contains("@supports=LABEL_0"));
    assert!(load(&fixture("deberta-v2"), "").err().unwrap().contains("LABEL_0, LABEL_1"));
    assert!(
        load(&fixture("bert"), "@supports=maybe")
            .err()
            .unwrap()
            .contains("entailment, neutral, contradiction")
    );
}

/// Runs the program on the sample.
fn parallax(data: &Path, args: &[&str]) -> (Option<i32>, String, String) {
    let told = Command::new(env!("CARGO_BIN_EXE_parallax"))
        .args(args)
        .args(["--data-dir", &data.to_string_lossy()])
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (told.status.code(), text(&told.stdout), text(&told.stderr))
}

#[test]
fn a_brought_detector_judges_in_every_command_and_its_verdicts_are_not_mixed_with_others() {
    let data = tempfile::tempdir().unwrap();
    let named = format!("path:{}", fixture("bert").display());
    let search = |more: &[&str]| {
        let args = ["search", "Should zoos be banned?", "--lane", "bm25", "--format", "json"];
        let (code, out, err) = parallax(data.path(), &[&args, more].concat());
        assert_eq!(code, Some(0), "{err}");
        serde_json::from_str::<Value>(&out).unwrap()
    };
    let (carried, brought) = (search(&[]), search(&["--detector", &named]));
    assert_ne!(carried, brought);
    let key = load(&fixture("bert"), "").unwrap().key().to_owned();
    assert!(brought.to_string().contains(&key) && !carried.to_string().contains(&key));
    let hits = |said: &Value| said["lanes"][0]["hits"].as_array().unwrap().clone();
    assert_eq!((hits(&search(&[])), hits(&carried).len()), (hits(&carried), 5));
    assert_ne!(hits(&brought), hits(&carried));
    let keys = ["--detector", &named, "--keys", "Should zoos be banned?<Enter>", "--size", "140x40"];
    let (code, frame, err) = parallax(data.path(), &[&["frame"][..], &keys].concat());
    assert_eq!(code, Some(0), "{err}");
    assert!(frame.contains("verdicts: bert") && !frame.contains("experimental"), "{frame}");
    for (detector, words) in [
        ("path:no/such/folder", "no model is there"),
        ("hf:org/nli", "parallax models get hf:org/nli"),
        ("nli", "expected carried, llm, path:FOLDER"),
    ] {
        let (code, _, err) =
            parallax(data.path(), &["search", "Should zoos be banned?", "--detector", detector]);
        assert_eq!(code, Some(2), "{err}");
        assert!(err.contains(words), "{err}");
    }
}

/// What a model on a server says: it supports what speaks of cages.
fn says(prompt: &str) -> String {
    assert!(prompt.contains("\n\nStatement: ") && prompt.ends_with("Answer Yes or No."));
    if prompt.contains("cages") { "Yes.".into() } else { "No".into() }
}

fn asking(data: &Path, server: Option<&Server>, model: &str) -> Result<Setup, String> {
    let llm = server.map(|server| (server.url.clone(), model.to_owned()));
    let opening = Opening { data_dir: data.into(), llm, detector: Choice::Llm, ..Opening::default() };
    Setup::open(&opening, &|_| (), &Stop::never()).map_err(|error| error.to_string())
}

/// The verdicts on two passages, through the threads that judge.
fn verdicts(setup: &Setup) -> Vec<Option<f32>> {
    let detector = setup.detector().unwrap();
    let texts = ["Animals suffer in cages.", "The zoo opened in 1899."].map(passage);
    on_all(setup.judging(), 2, &Stop::never(), |i| {
        setup.verdicts.judge(detector.as_ref(), &texts[i], "Zoos should be banned.", &Stop::never()).ok()
    })
}

#[test]
fn a_language_model_judges_and_nothing_is_asked_twice_nor_answered_for_another_model() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(Vec::new(), says);
    let asked = || server.asked.lock().unwrap().len();
    let setup = asking(data.path(), Some(&server), "bear-7b").unwrap();
    assert_eq!(verdicts(&setup), [Some(1.0), Some(0.0)]);
    assert_eq!((asked(), setup.caution().unwrap().as_deref()), (2, Some("bear-7b, a language model")));
    assert!(setup.told().unwrap().starts_with("bear-7b: 2 answers"));
    drop(setup);
    let again = asking(data.path(), Some(&server), "bear-7b").unwrap();
    assert_eq!((verdicts(&again), asked(), again.told()), (vec![Some(1.0), Some(0.0)], 2, None));
    drop(again);
    // Without the verdicts, the replies are still there.
    fs::remove_file(data.path().join("verdicts.sqlite")).unwrap();
    let replayed = asking(data.path(), Some(&server), "bear-7b").unwrap();
    assert_eq!((verdicts(&replayed), asked()), (vec![Some(1.0), Some(0.0)], 2));
    assert_eq!(verdicts(&asking(data.path(), Some(&server), "owl-1b").unwrap()), [Some(1.0), Some(0.0)]);
    assert_eq!(asked(), 4);
    let told = asking(data.path(), None, "").err().unwrap();
    assert!(told.contains("no model to ask") && told.contains("--llm URL"), "{told}");
}

#[test]
fn a_server_that_refuses_for_now_is_asked_again_and_nonsense_is_no_verdict() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(vec![Fate::TooMany, Fate::Cut, Fate::Nonsense], says);
    let setup = asking(data.path(), Some(&server), "bear-7b").unwrap();
    let detector = setup.detector().unwrap();
    let judge = || detector.judge(&passage("Animals in cages."), "Zoos should be banned.", &Stop::never());
    let told = judge().unwrap_err();
    assert!(matches!(&told, DetectError::Unanswered(why) if why.contains("html")), "{told}");
    assert_eq!((judge(), server.asked.lock().unwrap().len()), (Ok(1.0), 4));
    assert!(setup.told().unwrap().starts_with("1 times no verdict, the last: "));
}

#[test]
fn with_a_server_that_is_down_the_lanes_stand_without_verdicts_and_say_why() {
    let data = tempfile::tempdir().unwrap();
    // A port that was free a moment ago.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}/v1");
    let llm = ["--llm", &url, "--llm-model", "bear-7b", "--detector", "llm"];
    let args = ["search", "Should zoos be banned?", "--lane", "bm25", "--format", "json"];
    let (code, out, err) = parallax(data.path(), &[&args[..], &llm].concat());
    assert_eq!(code, Some(0), "{err}");
    let said: Value = serde_json::from_str(&out).unwrap();
    let verdict = &said["lanes"][0]["hits"][0]["verdicts"][0];
    assert!(verdict["supports"].is_null() && verdict["p"].is_null(), "{verdict}");
    assert!(verdict["error"].as_str().unwrap().contains("could not be reached"), "{verdict}");
    assert!(err.contains("times no verdict") && err.contains("start the server"), "{err}");
    let keys = ["frame", "--keys", "Should zoos be banned?<Enter>", "--size", "160x40"];
    let (code, frame, err) = parallax(data.path(), &[&keys[..], &llm].concat());
    assert_eq!(code, Some(0), "{err}");
    assert!(frame.contains("verdicts: bear-7b, a language model"), "{frame}");
    assert!(frame.contains("times no verdict"), "{frame}");
}

#[test]
fn two_detectors_stand_beside_each_other_disagreements_first() {
    let data = tempfile::tempdir().unwrap();
    let file = data.path().join("pairs.tsv");
    let rows = "id\tdocument\tperspective\tlabel\na\tAnimals suffer in cages.\tZoos should be banned.\t1\n\
                b\tThe zoo opened in 1899.\tZoos should be banned.\t0\nc\t\tZoos should be banned.\t0\n";
    fs::write(&file, rows).unwrap();
    let server = Server::start(Vec::new(), says);
    let brought = format!("path:{}", fixture("roberta").display());
    let args = ["detect", "--pairs", &file.to_string_lossy(), "--detector", "llm", "--against", &brought];
    let llm = ["--llm", &server.url, "--llm-model", "bear-7b"];
    let (code, out, err) = parallax(data.path(), &[&args[..], &llm].concat());
    assert_eq!(code, Some(0), "{err}");
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines[0], "id\tp\tp_against\tsupports\tsupports_against\terror");
    assert!(lines.len() == 4 && lines[3] == "c\t\t\t\t\tthe passage is empty the passage is empty", "{out}");
    assert!(
        err.contains("κ") && err.contains("1 without both verdicts") && err.contains("2 answers"),
        "{err}"
    );
    let (_, out, _) = parallax(data.path(), &[&args[..], &llm, &["--format", "json"]].concat());
    let said: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(said["agreement"]["n"], 2);
    assert_eq!(said["pairs"][2]["id"], "c");
    assert_eq!(said["detector"]["report"]["accuracy"], 1.0);
}

#[test]
fn a_failed_detector_is_told_in_the_exit_code_and_an_empty_passage_in_words() {
    let data = tempfile::tempdir().unwrap();
    let file = data.path().join("pairs.tsv");
    let empty = "document\ttitle\tperspective\n\t\tZoos should be banned.\n";
    fs::write(&file, format!("{empty}Animals suffer in cages.\t\tZoos should be banned.\n")).unwrap();
    let args = ["detect", "--pairs", &file.to_string_lossy(), "--detector", "llm"];
    let ask =
        |url: &str| parallax(data.path(), &[&args[..], &["--llm", url, "--llm-model", "bear-7b"]].concat());
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (code, out, err) = ask(&format!("http://127.0.0.1:{port}/v1"));
    assert_eq!(code, Some(1), "{err}");
    assert!(out.contains("could not be reached"), "{out}");
    assert!(
        err.contains("2 of 2 pairs have no verdict of bear-7b-") && err.contains("run again, it tries"),
        "{err}"
    );
    let server = Server::start(Vec::new(), says);
    let (code, out, err) = ask(&server.url);
    assert_eq!((code, server.asked.lock().unwrap().len()), (Some(0), 1), "{err}");
    assert_eq!(out, "id\tp\tsupports\terror\n1\t\t\tthe passage is empty\n2\t1.0000\t1\t\n");
    assert!(
        err.contains("1 of 2 pairs have no verdict") && err.contains("the first: the passage is empty\n"),
        "{err}"
    );
    // Without the replies, the verdict is still there.
    fs::remove_dir_all(data.path().join("judged")).unwrap();
    assert_eq!((ask(&server.url).1, server.asked.lock().unwrap().len()), (out, 1));
}

#[test]
fn quoted_fields_are_read_as_the_text_in_them_and_what_is_odd_is_told() {
    let data = tempfile::tempdir().unwrap();
    let file = data.path().join("pairs.tsv");
    let odd = "\"Zoos are cruel,\" he said.";
    let german = "Zoos sollten verboten werden, weil wilde Tiere in engen Käfigen leiden und dort nicht so leben können, \
                  wie es ihrer Art entspricht.";
    let long = "Every owl sleeps. ".repeat(6_000);
    fs::write(
        &file,
        format!(
            "\"document\"\tperspective\tlabel\n\"Zoos are \"\"cruel\"\".\"\tZoos are fine.\t\"1\"\n\
             Zoos are \"cruel\".\tZoos are fine.\t0\n{german}\tZoos are fine.\t\n{odd}\tZoos are fine.\t\n{long}\tZoos are fine.\t\n"
        ),
    )
    .unwrap();
    let named = format!("path:{}", fixture("bert").display());
    let (code, out, err) =
        parallax(data.path(), &["detect", "--pairs", &file.to_string_lossy(), "--detector", &named]);
    assert_eq!(code, Some(0), "{err}");
    let p: Vec<&str> = out.lines().skip(1).map(|line| line.split('\t').nth(1).unwrap()).collect();
    assert!(p.len() == 5 && p[0] == p[1], "{out}");
    assert!(err.contains("pairs with a passage that seems not to be English: 1"), "{err}");
    assert!(err.contains("the first 100,000 bytes alone are judged: 1"), "{err}");
    assert!(err.contains("2 labelled pairs"), "{err}");
}

#[test]
fn an_argument_far_down_in_a_long_passage_is_not_missed() {
    let carried = CrossEncoder::carried().unwrap();
    let judge = |text: &str| carried.judge(&passage(text), "Zoos should be banned.", &Stop::never()).unwrap();
    let argument =
        "Zoos should be banned: animals suffer in cages, and no zoo can give them the space they need.";
    let dull = "The recipe calls for two onions, a spoon of butter and some flour. ".repeat(40);
    let (without, within) = (judge(&dull), judge(&format!("{dull}{argument}")));
    assert!(within > 10.0 * without, "{within} {without}");
}

#[test]
fn pairs_without_an_id_are_numbered_from_one() {
    let data = tempfile::tempdir().unwrap();
    let file = data.path().join("pairs.tsv");
    fs::write(
        &file,
        "document\tperspective\nZoos harm animals.\tZoos should be banned.\nBread.\tZoos are fine.\n",
    )
    .unwrap();
    let (_, told, _) = parallax(data.path(), &["detect", "--pairs", &file.to_string_lossy()]);
    let ids: Vec<String> =
        told.lines().skip(1).map(|line| line.split('\t').next().unwrap().to_owned()).collect();
    assert_eq!(ids, ["1", "2"]);
}
