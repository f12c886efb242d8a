//! Custom detectors against the Python `transformers` classes, on tiny random checkpoints (`tools/detector/make_fixtures.py`), the
//! errors for invalid models, and any of them in place of the built-in one.

use std::collections::HashSet;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use parallax::corpus::{Passage, PassageIx};
use parallax::detect::{Choice, CrossEncoder, CustomCrossEncoder, DetectError, Detector};
use parallax::engine::{Opening, Setup, model_threads};
use parallax::work::{Stop, on_all};
use serde_json::{Value, json};

use crate::server::{Fate, Server};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/detectors").join(name)
}

fn load(folder: &Path, supports: &str) -> Result<CustomCrossEncoder, String> {
    let choice = format!("path:{}{supports}", folder.display())
        .parse::<Choice>()
        .map_err(|error| error.to_string())?;
    let Choice::Custom { source, supports } = choice else { panic!("no custom detector") };
    CustomCrossEncoder::load(&source, supports.as_deref(), Path::new("nowhere"))
        .map_err(|error| error.to_string())
}

fn passage(text: &str) -> Passage {
    Passage { text: text.into(), ..Passage::default() }
}

/// Compares all logits of a fixture, and returns the detector.
fn agrees(name: &str, supports: &str) -> CustomCrossEncoder {
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
fn roberta_with_the_supporting_class_last() {
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
fn a_t5_judges_by_the_first_token_of_its_answers_one_and_zero() {
    let detector = agrees("t5", "");
    assert!(detector.key().starts_with("t5-") && detector.threshold() == 0.5);
    let judge = |detector: &CustomCrossEncoder, text: &str| {
        detector.judge(&passage(text), "Zoos should be banned.", &Stop::never()).unwrap()
    };
    // What Python's `transformers` scores 1 and 0 for the first pair.
    let p = judge(&detector, "Animals suffer in small cages.");
    let python = 1.0 / (1.0 + (4.284_997_f64 + 1.354_840).exp());
    assert!((f64::from(p) - python).abs() < 1e-5, "{p}");
    // Other answers are other tokens, and other readings.
    let exchanged = load(&fixture("t5"), "@supports=0,1").unwrap();
    assert!((p + judge(&exchanged, "Animals suffer in small cages.") - 1.0).abs() < 1e-6);
    assert_ne!(detector.key(), exchanged.key());
    // A long passage is read in windows, each of them whole in the form that the model was trained on.
    let long = "the old zoo keeps wolves bears and owls in cages ".repeat(200);
    let reading = detector.read(&passage(&long), "Zoos should be banned.", &Stop::never()).unwrap();
    assert!(reading.to_bytes().len() / 16 > 5, "four numbers of four bytes a window");
    let first = detector.logits(&passage(&long), "Zoos should be banned.").unwrap();
    assert!(judge(&detector, &long) >= 1.0 / (1.0 + (first[1] - first[0]).exp()) - 1e-6);
    for (answers, words) in
        [("@supports=1", "name both, as in path:FOLDER@supports=1,0"), ("@supports=1,1", "same token")]
    {
        let message = load(&fixture("t5"), answers).err().unwrap();
        assert!(message.contains("config.json") && message.contains(words), "{message}");
    }
    // T5 is often published with its SentencePiece model alone.
    let folder = changed("t5", "model_type", json!("t5"));
    fs::rename(folder.path().join("tokenizer.json"), folder.path().join("spiece.model")).unwrap();
    let message = load(folder.path(), "").err().unwrap();
    assert!(message.contains("only spiece.model") && message.contains("save_pretrained"), "{message}");
}

#[test]
fn modernbert_gives_the_logits_of_transformers() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/modern/modernbert-nli");
    let detector = load(&folder, "").unwrap_or_else(|error| panic!("{error}"));
    let rows: Vec<Value> = serde_json::from_slice(&fs::read(folder.join("expected.json")).unwrap()).unwrap();
    let mut compared = 0;
    for row in rows {
        let word = |name: &str| row[name].as_str().unwrap().trim().to_owned();
        // Long pairs are cut into windows here, and truncated there.
        let (premise, statement) = (word("second"), word("first"));
        if premise.is_empty() || statement.is_empty() || premise.len() + statement.len() > 60 {
            continue;
        }
        let made = detector.logits(&passage(&premise), &statement).unwrap();
        for (made, expected) in made.iter().zip(row["logits"].as_array().unwrap()) {
            assert!((f64::from(*made) - expected.as_f64().unwrap()).abs() <= 1e-4, "{row}: {made}");
        }
        compared += 1;
    }
    assert!(compared >= 2, "{compared}");
    let p = detector.judge(&passage("Owls."), "Zoos.", &Stop::never()).unwrap();
    assert!((0.0..=1.0).contains(&p));
}

#[test]
fn a_verdict_does_not_depend_on_concurrent_work() {
    let detector = load(&fixture("deberta-v3"), "").unwrap();
    let texts: Vec<Passage> = (1..24).map(|i| passage(&"the old zoo keeps wolves ".repeat(i))).collect();
    let judge = |i: usize| detector.judge(&texts[i], "Zoos should be banned.", &Stop::never()).unwrap();
    let alone: Vec<f32> = (0..texts.len()).map(judge).collect();
    assert_eq!(alone, on_all(&model_threads().unwrap(), texts.len(), &Stop::never(), judge));
}

#[test]
fn a_passage_of_ten_thousand_words_is_read_to_its_end_and_the_highest_window_counts() {
    let detector = load(&fixture("bert"), "").unwrap();
    let judge =
        |text: &str| detector.judge(&passage(text), "Zoos should be banned.", &Stop::never()).unwrap();
    let (dull, decisive) = ("the old zoo keeps owls ", "suffer small cages banned not ");
    let p = |text: &str| judge(&text.repeat(30));
    let (low, high, most) =
        if p(dull) < p(decisive) { (dull, decisive, p(decisive)) } else { (decisive, dull, p(dull)) };
    let long = format!("{}{}", low.repeat(2_000), high.repeat(30));
    assert!(judge(&low.repeat(2_000)) < most && judge(&long) >= most);
    // A stop between two of thousands of windows ends the work.
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

#[test]
fn swapping_the_statements_swaps_every_detectors_decision_to_the_last_bit() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(Vec::new(), |prompt| if prompt.len() % 3 == 0 { "Yes" } else { "No" }.into());
    let setup = asking(data.path(), Some(&server), "bear-7b").unwrap();
    let custom = |name: &str, supports: &str| load(&fixture(name), supports).unwrap();
    let [bert, one] = [custom("bert", ""), custom("bert-one", "@supports=LABEL_0")];
    let [two, three] = [custom("deberta-v2", "@supports=LABEL_1,LABEL_0"), custom("deberta-v3", "")];
    let (roberta, builtin) = (custom("roberta", ""), CrossEncoder::builtin().unwrap());
    let model = setup.detector().unwrap();
    // The built-in one is slow here, so it reads fewer passages.
    let detectors: [(&dyn Detector, usize); 7] =
        [(&bert, 37), (&one, 37), (&two, 37), (&three, 37), (&roberta, 37), (&*model, 97), (&builtin, 7)];
    for (detector, cases) in detectors {
        let mut outcomes = HashSet::new();
        for case in 0..cases {
            let passage = setup.corpus.passage(PassageIx((case * 41 % 600) as u32));
            let question = &setup.questions[case * 5 % setup.questions.len()];
            let Some(sides) = question.sides() else { continue };
            let [first, second] = sides.map(|side| question.perspectives[side].as_str());
            // Each order reads anew.
            let decide = |statements: [&str; 2]| {
                let [one, other] =
                    detector.read_both(&passage, statements, &Stop::never()).map(Result::unwrap);
                detector.rule().decide([&one, &other]).unwrap()
            };
            let (there, back) = (decide([first, second]), decide([second, first]));
            assert_eq!(there.swapped(), back, "{}: {}, {first}", detector.key(), passage.id);
            let bits = |p: [f64; 4]| p.map(f64::to_bits);
            let [only_first, only_second, both, neither] = bits(there.p);
            assert_eq!([only_second, only_first, both, neither], bits(back.p), "{}", detector.key());
            assert_eq!(there.engaged.to_bits(), back.engaged.to_bits());
            outcomes.insert(format!("{:?}", there.outcome));
        }
        assert!(!outcomes.is_empty(), "{}: nothing was decided", detector.key());
    }
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
fn invalid_models_are_refused_with_what_to_do() {
    for (name, key, value, words) in [
        (
            "bert",
            "id2label",
            json!({"0": "a", "1": "b", "2": "c"}),
            &["a, b, c", "a name such as", "--classes", "@supports=a"][..],
        ),
        ("bert", "id2label", json!({"0": "entailment"}), &["id2label", "3 classes"]),
        (
            "bert",
            "model_type",
            json!("distilbert"),
            &["config.json", "classifiers of these types can be read: bert, roberta"],
        ),
        ("bert", "model_type", json!("gpt2"), &["config.json", "can be read: bert", "deberta-v2", "t5"]),
        ("t5", "num_decoder_layers", json!(3), &["model.safetensors", "missing"]),
        ("t5", "model_type", json!("bert"), &["model.safetensors", "missing"]),
        ("bert", "hidden_size", json!(64), &["model.safetensors"]),
        ("bert", "max_position_embeddings", json!(3), &["model.safetensors", "[3, 32]"]),
        ("deberta-v3", "conv_kernel_size", json!(3), &["conv_kernel_size", "convolution"]),
        ("deberta-v3", "position_buckets", json!(1), &["position_buckets"]),
        ("deberta-v3", "pooler_hidden_act", json!("mish"), &["mish", "gelu"]),
        ("deberta-v3", "share_att_key", json!(false), &["pos_key_proj", "missing"]),
    ] {
        let folder = changed(name, key, value);
        let Err(message) = load(folder.path(), "") else { panic!("{key} was taken") };
        assert!(words.iter().all(|word| message.contains(word)), "{key}: {message}");
        assert!(!message.contains('\n'), "{message}");
    }
    let encoder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/encoders");
    for (name, words) in [
        ("contriever", "no `classifier`"),
        ("roberta", "this is not a classifier"),
        ("t5", "it holds no model"),
    ] {
        let message = load(&encoder.join(name), "").err().unwrap();
        assert!(message.contains(words), "{name}: {message}");
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
    let message = Command::new(env!("CARGO_BIN_EXE_parallax"))
        .args(args)
        .args(["--data-dir", &data.to_string_lossy()])
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (message.status.code(), text(&message.stdout), text(&message.stderr))
}

#[test]
fn a_custom_detector_judges_in_every_command_and_its_verdicts_are_stored_separately() {
    let data = tempfile::tempdir().unwrap();
    let named = format!("path:{}", fixture("bert").display());
    let search = |more: &[&str]| {
        let args = ["search", "Should zoos be banned?", "--lane", "bm25", "--format", "json"];
        let (code, out, err) = parallax(data.path(), &[&args, more].concat());
        assert_eq!(code, Some(0), "{err}");
        serde_json::from_str::<Value>(&out).unwrap()
    };
    let (builtin, custom) = (search(&[]), search(&["--detector", &named]));
    assert_ne!(builtin, custom);
    let key = load(&fixture("bert"), "").unwrap().key().to_owned();
    assert!(custom.to_string().contains(&key) && !builtin.to_string().contains(&key));
    let hits = |said: &Value| said["lanes"][0]["hits"].as_array().unwrap().clone();
    assert_eq!((hits(&search(&[])), hits(&builtin).len()), (hits(&builtin), 5));
    assert_ne!(hits(&custom), hits(&builtin));
    let keys = [
        "--detector",
        &named,
        "--label-source",
        "model",
        "--keys",
        "Should zoos be banned?<Enter>",
        "--size",
        "140x40",
    ];
    let (code, frame, err) = parallax(data.path(), &[&["frame"][..], &keys].concat());
    assert_eq!(code, Some(0), "{err}");
    assert!(frame.contains("verdicts: bert") && !frame.contains("experimental"), "{frame}");
    for (detector, words) in [
        ("path:no/such/folder", "it holds no model"),
        ("hf:org/nli", "parallax models get hf:org/nli"),
        ("nli", "expected builtin, nli-xsmall"),
    ] {
        let (code, _, err) =
            parallax(data.path(), &["search", "Should zoos be banned?", "--detector", detector]);
        assert_eq!(code, Some(2), "{err}");
        assert!(err.contains(words), "{err}");
    }
}

/// The reply of a model on a server: passages about cages support the statement.
fn says(prompt: &str) -> String {
    assert!(prompt.contains("\n\nStatement: ") && prompt.ends_with("Yes or No."));
    if prompt.contains("cages") { "Yes.".into() } else { "No".into() }
}

fn asking(data: &Path, server: Option<&Server>, model: &str) -> Result<Setup, String> {
    let llm = server.map(|server| (server.url.clone(), model.to_owned()));
    let opening = Opening { data_dir: data.into(), llm, detector: Choice::Llm, ..Opening::default() };
    Setup::open(&opening, &|_| (), &Stop::never()).map_err(|error| error.to_string())
}

/// The verdicts on two passages, by the judging threads.
fn verdicts(setup: &Setup) -> Vec<Option<f32>> {
    let detector = setup.detector().unwrap();
    let texts = ["Animals suffer in cages.", "The zoo opened in 1899."].map(passage);
    on_all(setup.judging(), 2, &Stop::never(), |i| {
        setup.verdicts.judge(detector.as_ref(), &texts[i], "Zoos should be banned.", &Stop::never()).ok()
    })
}

#[test]
fn a_language_model_judges_and_replies_are_reused_for_the_same_model_only() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(Vec::new(), says);
    let asked = || server.asked.lock().unwrap().len();
    let setup = asking(data.path(), Some(&server), "bear-7b").unwrap();
    assert_eq!(verdicts(&setup), [Some(1.0), Some(0.0)]);
    assert_eq!((asked(), setup.caution().unwrap().as_deref()), (2, Some("bear-7b, a language model")));
    assert!(setup.usage().unwrap().starts_with("bear-7b: 2 answers"));
    drop(setup);
    let again = asking(data.path(), Some(&server), "bear-7b").unwrap();
    assert_eq!((verdicts(&again), asked(), again.usage()), (vec![Some(1.0), Some(0.0)], 2, None));
    drop(again);
    // Without the verdicts, the replies are reused.
    fs::remove_file(data.path().join("verdicts.sqlite")).unwrap();
    let replayed = asking(data.path(), Some(&server), "bear-7b").unwrap();
    assert_eq!((verdicts(&replayed), asked()), (vec![Some(1.0), Some(0.0)], 2));
    assert_eq!(verdicts(&asking(data.path(), Some(&server), "owl-1b").unwrap()), [Some(1.0), Some(0.0)]);
    assert_eq!(asked(), 4);
    let message = asking(data.path(), None, "").err().unwrap();
    assert!(message.contains("no model to ask") && message.contains("--llm URL"), "{message}");
}

#[test]
fn a_busy_server_is_asked_again_and_an_unusable_reply_gives_no_verdict() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(vec![Fate::TooMany, Fate::Cut, Fate::Nonsense], says);
    let setup = asking(data.path(), Some(&server), "bear-7b").unwrap();
    let detector = setup.detector().unwrap();
    let judge = || detector.judge(&passage("Animals in cages."), "Zoos should be banned.", &Stop::never());
    let message = judge().unwrap_err();
    assert!(matches!(&message, DetectError::Unanswered(why) if why.contains("html")), "{message}");
    assert_eq!((judge(), server.asked.lock().unwrap().len()), (Ok(1.0), 4));
    assert!(setup.usage().unwrap().starts_with("no verdict once; reason: "));
}

#[test]
fn a_slow_reply_is_waited_for_and_a_silent_server_is_given_up_with_the_turn() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start([vec![Fate::Slow], vec![Fate::Silent; 20]].concat(), says);
    let setup = asking(data.path(), Some(&server), "bear-7b").unwrap();
    let detector = setup.detector().unwrap();
    let now = Arc::new(AtomicU64::new(7));
    let judge =
        |text: &str| detector.judge(&passage(text), "Zoos should be banned.", &Stop::when_past(&now, 7));
    assert_eq!(judge("Animals in cages."), Ok(1.0));
    let (asked, turn) = (Arc::clone(&server.asked), Arc::clone(&now));
    let watch = thread::spawn(move || {
        while asked.lock().unwrap().len() < 2 {
            thread::yield_now();
        }
        turn.store(8, Ordering::Relaxed);
    });
    let given_up = judge("Bears in cages.");
    watch.join().unwrap();
    assert!(matches!(given_up, Err(DetectError::Stopped(_))), "{given_up:?}");
}

#[test]
fn if_the_server_is_down_lanes_have_no_verdicts_and_show_why() {
    let data = tempfile::tempdir().unwrap();
    // A free port, so nothing listens there.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}/v1");
    let llm = ["--llm", &url, "--llm-model", "bear-7b", "--detector", "llm", "--label-source", "model"];
    let args = ["search", "Should zoos be banned?", "--lane", "bm25", "--format", "json"];
    let (code, out, err) = parallax(data.path(), &[&args[..], &llm].concat());
    assert_eq!(code, Some(0), "{err}");
    let said: Value = serde_json::from_str(&out).unwrap();
    let verdict = &said["lanes"][0]["hits"][0]["verdicts"][0];
    assert!(verdict["supports"].is_null() && verdict["p"].is_null(), "{verdict}");
    assert!(verdict["error"].as_str().unwrap().contains("could not be reached"), "{verdict}");
    assert!(err.contains("no verdict ") && err.contains("start the server"), "{err}");
    let keys = ["frame", "--keys", "Should zoos be banned?<Enter>", "--size", "160x40"];
    let (code, frame, err) = parallax(data.path(), &[&keys[..], &llm].concat());
    assert_eq!(code, Some(0), "{err}");
    assert!(frame.contains("verdicts: bear-7b, a language model"), "{frame}");
    assert!(frame.contains("no verdict "), "{frame}");
}

#[test]
fn verdicts_of_a_language_model_are_written_as_training_pairs_that_detect_reads_again() {
    let data = tempfile::tempdir().unwrap();
    let (file, training) = (data.path().join("pairs.tsv"), data.path().join("training.tsv"));
    let rows = "id\ttitle\tdocument\tperspective\na\t=Zoos\tAnimals \"suffer\" in cages, he said.\tZoos should be banned.\n\
                b\t\t\"The zoo \"\"opened\"\" in 1899.\"\tZoos should be banned.\nc\t\t\tZoos should be banned.\n";
    fs::write(&file, rows).unwrap();
    let server = Server::start(Vec::new(), says);
    let llm = ["--detector", "llm", "--llm", &server.url, "--llm-model", "bear-7b"];
    let [from, to] = [&file, &training].map(|path| path.to_string_lossy().into_owned());
    let (code, _, err) =
        parallax(data.path(), &[&["detect", "--pairs", &from, "--training", &to][..], &llm].concat());
    assert_eq!(code, Some(0), "{err}");
    assert!(err.contains("2 pairs; 1 without a clear verdict"), "{err}");
    let written = fs::read_to_string(&training).unwrap();
    let lines: Vec<Vec<&str>> = written.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(lines[0][..6], ["id", "question", "title", "document", "perspective", "label"]);
    assert_eq!(
        lines[1][2..6],
        ["=Zoos", "Animals \"suffer\" in cages, he said.", "Zoos should be banned.", "1"]
    );
    assert_eq!(lines[2][3..6], ["The zoo \"opened\" in 1899.", "Zoos should be banned.", "0"]);
    // The labels are the model's, so it agrees with itself.
    let (code, out, err) =
        parallax(data.path(), &[&["detect", "--pairs", &to, "--format", "json"][..], &llm].concat());
    assert_eq!(code, Some(0), "{err}");
    let said: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (said["report"]["n"].as_u64(), said["report"]["accuracy"].as_f64()),
        (Some(2), Some(1.0)),
        "{out}"
    );
}

#[test]
fn two_detectors_are_compared_disagreements_first() {
    let data = tempfile::tempdir().unwrap();
    let file = data.path().join("pairs.tsv");
    let rows = "id\tdocument\tperspective\tlabel\na\tAnimals suffer in cages.\tZoos should be banned.\t1\n\
                b\tThe zoo opened in 1899.\tZoos should be banned.\t0\nc\t\tZoos should be banned.\t0\n";
    fs::write(&file, rows).unwrap();
    let server = Server::start(Vec::new(), says);
    let custom = format!("path:{}", fixture("roberta").display());
    let args = ["detect", "--pairs", &file.to_string_lossy(), "--detector", "llm", "--against", &custom];
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
fn several_detectors_make_a_table_against_the_labels_with_random_and_always_no() {
    let data = tempfile::tempdir().unwrap();
    let path = |name: &str| data.path().join(name).to_string_lossy().into_owned();
    // Two questions with three pairs each; A errs once in each question, B never says yes.
    let rows = [
        ("q1", "a", 1, 1),
        ("q1", "b", 0, 1),
        ("q1", "c", 0, 0),
        ("q2", "d", 1, 1),
        ("q2", "e", 1, 0),
        ("q2", "f", 0, 0),
    ];
    type Line<'a> = &'a dyn Fn(&(&str, &str, i32, i32)) -> String;
    let lines = |head: &str, line: Line<'_>| {
        rows.iter().fold(format!("{head}\n"), |text, row| text + &line(row) + "\n")
    };
    let text = |name: &str| format!("Passage {name} about zoos.");
    fs::write(
        path("pairs.tsv"),
        lines("question\tdocument\tperspective\tlabel", &|(q, name, label, _)| {
            format!("{q}\t{}\tZoos should be banned.\t{label}", text(name))
        }),
    )
    .unwrap();
    for (file, own) in [("a.tsv", 1), ("b.tsv", 0)] {
        fs::write(
            path(file),
            lines("document\tperspective\tlabel", &|(_, name, _, said)| {
                format!("{}\tZoos should be banned.\t{}", text(name), said * own)
            }),
        )
        .unwrap();
    }
    let (pairs, a, b) =
        (path("pairs.tsv"), format!("file:{}", path("a.tsv")), format!("file:{}", path("b.tsv")));
    let args = ["detect", "--pairs", &pairs, "--detector", &a, "--detector", &b];
    let run = |more: &[&str]| parallax(data.path(), &[&args[..], more].concat());
    let (code, out, err) = run(&["--format", "json", "--seed", "1"]);
    assert_eq!(code, Some(0), "{err}");
    let table: Value = serde_json::from_str(&out).unwrap();
    let names: Vec<&str> =
        table["rows"].as_array().unwrap().iter().map(|row| row["lane"].as_str().unwrap()).collect();
    assert_eq!(names, [a.as_str(), &b, "random", "always no"]);
    let mean = |row: usize, name: &str| table["rows"][row]["measures"][name]["mean"].as_f64().unwrap();
    // Three labels and three verdicts are yes, two of them together: by chance half would agree.
    assert_eq!((mean(0, "yes"), mean(0, "accuracy"), mean(0, "F1")), (0.5, 4.0 / 6.0, 4.0 / 6.0));
    assert!((mean(0, "κ") - (4.0 / 6.0 - 0.5) / 0.5).abs() < 1e-12);
    for row in [1, 3] {
        assert_eq!(["yes", "accuracy", "F1", "κ"].map(|name| mean(row, name)), [0.0, 0.5, 0.0, 0.0]);
    }
    let accuracy = &table["rows"][0]["measures"]["accuracy"];
    assert_eq!(
        (accuracy["low"].as_f64(), accuracy["high"].as_f64(), accuracy["n"].as_u64()),
        (Some(4.0 / 6.0), Some(4.0 / 6.0), Some(6))
    );
    assert!((mean(2, "accuracy") - 0.5).abs() < 0.05, "{table}");
    assert_eq!(run(&["--format", "json", "--seed", "1"]).1, out, "the same seed draws the same");
    let (_, out, _) = run(&["--format", "text"]);
    assert!(out.contains("2 questions · labels: of the file · 95 % intervals by question"), "{out}");
    for (more, expected) in [
        (&["--detector", a.as_str()][..], "is named twice"),
        (&["--against", &a], "--against and --detector-threshold belong to one detector"),
    ] {
        let (code, _, err) = run(more);
        assert!(code == Some(2) && err.contains(expected), "{err}");
    }
    let (code, _, err) = parallax(data.path(), &["search", "zoos", "--detector", &a, "--detector", &b]);
    assert!(code == Some(2) && err.contains("several --detector are compared by `parallax detect`"), "{err}");
}

#[test]
fn a_failed_detector_sets_the_exit_code_and_an_empty_passage_is_reported() {
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
    // Without the replies, the verdict is reused.
    fs::remove_dir_all(data.path().join("judged")).unwrap();
    assert_eq!((ask(&server.url).1, server.asked.lock().unwrap().len()), (out, 1));
}

#[test]
fn quoted_fields_are_unquoted_and_odd_pairs_are_reported() {
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
    assert!(err.contains("only the first 100,000 bytes are judged: 1"), "{err}");
    assert!(err.contains("2 labelled pairs"), "{err}");
}

#[test]
fn an_argument_near_the_end_of_a_long_passage_counts() {
    let builtin = CrossEncoder::builtin().unwrap();
    let judge = |text: &str| builtin.judge(&passage(text), "Zoos should be banned.", &Stop::never()).unwrap();
    let argument =
        "Zoos should be banned: animals suffer in cages, and no zoo can give them the space they need.";
    let dull = "The recipe calls for two onions, a spoon of butter and some flour. ".repeat(40);
    let (without, within) = (judge(&dull), judge(&format!("{dull}{argument}")));
    assert!(within > 10.0 * without, "{within} {without}");
}

#[test]
fn search_and_detect_decide_alike_on_a_passage_and_two_sides() {
    let data = tempfile::tempdir().unwrap();
    let asked = ["search", "Should zoos be banned?", "--lanes", "bm25", "-k", "2", "--label-source", "model"];
    let (code, out, err) = parallax(data.path(), &[&asked[..], &["--format", "json"]].concat());
    assert_eq!(code, Some(0), "{err}");
    let found: Value = serde_json::from_str(&out).unwrap();
    let hits = found["lanes"][0]["hits"].as_array().unwrap();
    let mut table = "question\ttitle\tdocument\tperspective\n".to_owned();
    for hit in hits {
        // The second first: the order makes no difference.
        for statement in ["Zoos should not be banned.", "Zoos should be banned."] {
            let text = |field: &str| hit[field].as_str().unwrap().replace('"', "\"\"");
            table += &format!("q\t\"{}\"\t\"{}\"\t{statement}\n", text("title"), text("text"));
        }
    }
    let file = data.path().join("pairs.tsv");
    fs::write(&file, table).unwrap();
    // Another data folder: nothing is cached.
    let other = tempfile::tempdir().unwrap();
    let (code, out, err) =
        parallax(other.path(), &["detect", "--pairs", &file.to_string_lossy(), "--format", "json"]);
    assert_eq!(code, Some(0), "{err}");
    let judged: Value = serde_json::from_str(&out).unwrap();
    assert!(hits.len() >= 2, "{found}");
    let builtin = CrossEncoder::builtin().unwrap();
    for (hit, decided) in hits.iter().zip(judged["decisions"].as_array().unwrap()) {
        let p = |of: &Value| (0..4).map(|i| of["p"][i].as_f64().unwrap()).collect::<Vec<f64>>();
        let (here, there) = (p(&hit["decision"]), p(&decided["decision"]));
        assert_eq!(here, [there[1], there[0], there[2], there[3]], "{hit} {decided}");
        // Both read the two statements together, and not each alone.
        let text = |field: &str| hit[field].as_str().unwrap().to_owned();
        let passage = Passage { title: text("title"), text: text("text"), ..Passage::default() };
        let statements = ["Zoos should be banned.", "Zoos should not be banned."];
        let read = builtin.read_both(&passage, statements, &Stop::never()).map(Result::unwrap);
        let own = builtin.rule().decide(read.each_ref()).unwrap().p;
        // JSON may be read back with another last bit.
        assert!(here.iter().zip(own).all(|(here, own)| (here - own).abs() < 1e-12), "{own:?} {hit}");
    }
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
    let (_, message, _) = parallax(data.path(), &["detect", "--pairs", &file.to_string_lossy()]);
    let ids: Vec<String> =
        message.lines().skip(1).map(|line| line.split('\t').next().unwrap().to_owned()).collect();
    assert_eq!(ids, ["1", "2"]);
}

#[test]
fn a_batch_on_a_server_announces_its_size_and_respects_the_limit_of_concurrent_requests() {
    let data = tempfile::tempdir().unwrap();
    let file = data.path().join("pairs.tsv");
    let rows: String = (0..6)
        .map(|i| format!("Animals suffer in cages, says letter {i}.\tZoos should be banned.\n"))
        .collect();
    fs::write(&file, format!("document\tperspective\n{rows}")).unwrap();
    let server = Server::start(Vec::new(), says);
    let run = || {
        let args = [
            "detect",
            "--pairs",
            &file.to_string_lossy(),
            "--detector",
            "llm",
            "--at-once",
            "2",
            "--price",
            "1000,2000",
        ];
        parallax(data.path(), &[&args[..], &["--llm", &server.url, "--llm-model", "bear-7b"]].concat())
    };
    let (code, out, err) = run();
    assert_eq!((code, out.lines().count(), server.asked.lock().unwrap().len()), (Some(0), 7, 6), "{err}");
    assert!(
        err.contains("6 of 6 pairs have no verdict yet: about 6 requests and")
            && err.contains("which cost about "),
        "{err}"
    );
    assert!(err.contains("the first request took") && err.contains("2 at once"), "{err}");
    // Nothing is left to ask.
    let (code, _, err) = run();
    assert!(code == Some(0) && !err.contains("have no verdict yet"), "{err}");
    assert_eq!(server.asked.lock().unwrap().len(), 6);
    let wrong = parallax(data.path(), &["detect", "--pairs", "x", "--price", "cheap"]);
    assert!(wrong.0 == Some(2) && wrong.2.contains("a million tokens"), "{}", wrong.2);
}

#[test]
fn detectors_are_listed_with_their_figures_and_offline_nothing_is_fetched() {
    let data = tempfile::tempdir().unwrap();
    let (code, out, _) = parallax(data.path(), &["models", "list", "--detectors"]);
    let rows: Vec<Vec<&str>> = out.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(code, Some(0));
    assert!(rows[1][0] == "builtin" && rows[1][5].contains("side right"), "{out}");
    assert_eq!(rows[4][..6], ["nli-base", "on the hub", "739", "English", "Apache-2.0", "not measured here"]);
    for args in [
        &["models", "get", "nli-base", "--offline"][..],
        &["models", "get", "contriever", "--offline"],
        &["search", "Zoos?", "--offline", "--llm", "http://127.0.0.1:1/v1", "--llm-model", "m"],
        &["corpus", "from-web", "Zoos?", "--offline", "--provider", "urls:x"],
    ] {
        let (code, _, err) = parallax(data.path(), args);
        assert!(code == Some(2) && err.contains("--offline: "), "{args:?}: {err}");
    }
}

/// A hub on loopback that holds a fixture under any name. It ends with the test's process.
fn hub(fixture: PathBuf) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let serve = move |path: &str| -> Vec<u8> {
        if path.starts_with("/api/models/") {
            let names =
                fs::read_dir(&fixture).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
            let siblings: Vec<Value> = names.map(|name| json!({"rfilename": name})).collect();
            return json!({"sha": "0123456789abcdef0123456789abcdef01234567", "siblings": siblings})
                .to_string()
                .into_bytes();
        }
        fs::read(fixture.join(path.rsplit('/').next().unwrap())).unwrap()
    };
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut head = vec![0; 4_096];
            let read = stream.read(&mut head).unwrap_or(0);
            let head = String::from_utf8_lossy(&head[..read]).into_owned();
            let body = serve(head.split(' ').nth(1).unwrap_or_default());
            let start =
                format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len());
            let _ = stream.write_all(&[start.as_bytes(), &body].concat());
        }
    });
    url
}

#[test]
fn a_detector_with_a_short_name_is_fetched_checked_and_used() {
    let data = tempfile::tempdir().unwrap();
    let run = |fixture_name: &str, args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_parallax"));
        command.args(args).args(["--data-dir", &data.path().to_string_lossy()]);
        let done = command
            .env("HF_ENDPOINT", hub(fixture(fixture_name)))
            .env_remove("HF_HUB_OFFLINE")
            .output()
            .unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (done.status.code(), text(done.stdout), text(done.stderr))
    };
    let (code, out, err) = run("deberta-v3", &["models", "get", "zeroshot-xsmall"]);
    assert_eq!((code, out.as_str()), (Some(0), "--detector zeroshot-xsmall\n"), "{err}");
    let (_, list, _) = parallax(data.path(), &["models", "list", "--detectors"]);
    assert!(list.contains("zeroshot-xsmall\there\t"), "{list}");
    let search = ["search", "Should zoos be banned?", "--lane", "bm25", "--format", "json"];
    let (code, out, err) = parallax(data.path(), &[&search[..], &["--detector", "zeroshot-xsmall"]].concat());
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("deberta-v3-xsmall-mnli-fever-anli-ling"), "{out}");
    let (_, out, err) = parallax(data.path(), &["models", "check", "zeroshot-xsmall"]);
    assert!(
        out.contains("ok\t3 files of ") && out.contains("ok\tits classes: entailment, not_entailment"),
        "{out}{err}"
    );
    // A repository whose classes are others than its name stands for is not taken for it.
    let (code, _, err) = run("deberta-v2", &["models", "get", "nli-small"]);
    assert!(
        code == Some(2) && err.contains("expected entailment and contradiction among its classes"),
        "{err}"
    );
    let (code, _, err) = parallax(data.path(), &[&search[..], &["--detector", "nli-base"]].concat());
    assert!(code == Some(2) && err.contains("parallax models get"), "{err}");
}

mod elsewhere {
    //! Verdicts made elsewhere (`--detector file:PATH`), and texts that are not English.

    use std::fs;
    use std::path::Path;
    use std::process::Command;

    use serde_json::Value;

    /// Runs the program.
    fn parallax(data: &Path, args: &[&str]) -> (Option<i32>, String, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_parallax"));
        let done = command.args(args).args(["--data-dir", &data.to_string_lossy()]).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (done.status.code(), text(done.stdout), text(done.stderr))
    }

    #[test]
    fn predictions_from_a_file_are_verdicts_and_unmatched_pairs_are_listed() {
        let data = tempfile::tempdir().unwrap();
        let at = |name: &str| data.path().join(name).to_string_lossy().into_owned();
        let predictions = "question\tperspective\tdocument\tlabel\n\
                           Q?\tZoos should be banned.\tAnimals  suffer there.\t1\n\
                           Q?\tZoos should not be banned.\tAnimals suffer there.\t0\n\
                           Q?\tZoos should be banned.\tNobody asks for this.\t1\n";
        fs::write(at("made.tsv"), predictions).unwrap();
        fs::write(
            at("pairs.tsv"),
            "id\tdocument\tperspective\tlabel\na\tAnimals suffer there.\tZoos should be banned.\t1\n\
             b\tAnimals suffer there.\tZoos should not be banned.\t0\nc\tOwls sleep.\tZoos should be banned.\t0\n",
        )
        .unwrap();
        let made = format!("file:{}", at("made.tsv"));
        let (code, out, err) =
            parallax(data.path(), &["detect", "--pairs", &at("pairs.tsv"), "--detector", &made]);
        assert_eq!(code, Some(1), "a pair without a prediction has no verdict: {err}");
        let rows: Vec<&str> = out.lines().collect();
        assert!(rows[1].starts_with("a\t1.0000\t1") && rows[2].starts_with("b\t0.0000\t0"), "{out}");
        assert!(rows[3].contains("made.tsv has no prediction for this passage and statement"), "{out}");
        assert!(
            err.contains(
                "1 of 3 predictions match no passage and statement here: line 4 (`Nobody asks for this.`)"
            ),
            "{err}"
        );
        assert!(
            err.contains("lacks 1 of the pairs to judge: `Owls sleep.` with `Zoos should be banned.`"),
            "{err}"
        );

        fs::write(
            at("corpus.jsonl"),
            "{\"_id\": \"x\", \"title\": \"\", \"text\": \"Animals suffer there.\"}\n{\"_id\": \"y\", \"title\": \"\", \"text\": \"Zoos and owls.\"}\n",
        )
        .unwrap();
        let args = [
            "search",
            "Should zoos be banned? Animals",
            "--corpus",
            &at("corpus.jsonl"),
            "--lane",
            "bm25",
            "--detector",
            &made,
        ];
        let statements = [
            "--perspective",
            "Zoos should be banned.",
            "--perspective",
            "Zoos should not be banned.",
            "--format",
            "json",
        ];
        let (code, out, err) = parallax(data.path(), &[&args[..], &statements].concat());
        assert_eq!(code, Some(0), "{err}");
        let said: Value = serde_json::from_str(&out).unwrap();
        let hits = said["lanes"][0]["hits"].as_array().unwrap();
        let hit = |id: &str| hits.iter().find(|hit| hit["id"] == id).unwrap_or_else(|| panic!("{out}"));
        let supports = |id: &str| [0, 1].map(|i| hit(id)["verdicts"][i]["supports"].as_bool());
        assert_eq!(supports("x"), [Some(true), Some(false)]);
        assert_eq!(supports("y"), [None, None]);
        assert!(err.contains("1 of 3 predictions match no passage and statement here"), "{err}");

        fs::write(
            at("made.tsv"),
            format!("{predictions}Q?\tZoos should be banned.\tAnimals suffer there.\t0\n"),
        )
        .unwrap();
        let (code, _, err) =
            parallax(data.path(), &["detect", "--pairs", &at("pairs.tsv"), "--detector", &made]);
        assert!(
            code == Some(2) && err.contains("made.tsv:5: expected one prediction per pair; line 2 has 1"),
            "{err}"
        );
    }

    const GERMAN: [&str; 3] = [
        "Zoos sollten verboten werden, weil wilde Tiere in engen Käfigen leiden und dort nicht so leben können, wie es ihrer Art entspricht.",
        "Viele Kinder sehen im Zoo zum ersten Mal einen Elefanten, und ohne diese Begegnung wüssten sie wenig über den Schutz der Tiere.",
        "Der Zoo öffnet um neun Uhr und schließt im Sommer um sieben; Hunde müssen draußen bleiben und an der Leine geführt werden.",
    ];

    #[test]
    fn a_corpus_in_another_language_gets_lanes_and_one_line_that_says_why_there_are_no_sides() {
        let data = tempfile::tempdir().unwrap();
        let file = data.path().join("corpus.jsonl");
        let rows = GERMAN.iter().enumerate();
        let rows = rows.map(|(i, text)| {
            serde_json::json!({"_id": i.to_string(), "title": "", "text": text}).to_string()
        });
        fs::write(&file, rows.collect::<Vec<_>>().join("\n")).unwrap();
        let corpus = ["--corpus", &file.to_string_lossy()].map(str::to_owned);
        let corpus: Vec<&str> = corpus.iter().map(String::as_str).collect();
        let statements =
            ["--perspective", "Zoos should be banned.", "--perspective", "Zoos should not be banned."];
        let args = ["search", "Soll der Zoo verboten werden?", "--lane", "bm25", "--format", "json"];
        let (code, out, err) = parallax(data.path(), &[&args[..], &corpus, &statements].concat());
        assert_eq!(code, Some(0), "{err}");
        let said: Value = serde_json::from_str(&out).unwrap();
        let hits = said["lanes"][0]["hits"].as_array().unwrap();
        assert!(!hits.is_empty());
        for hit in hits {
            assert!(hit["verdicts"][0]["supports"].is_null(), "{hit}");
            assert!(hit["verdicts"][0]["error"].as_str().unwrap().contains("seems to be German"), "{hit}");
        }
        let lines: Vec<&str> = err.lines().filter(|line| line.contains("German")).collect();
        assert!(lines.len() == 1 && lines[0].contains("reads English only"), "{err}");
        // Labels count as ever.
        let labels = data.path().join("labels.tsv");
        fs::write(
            &labels,
            "id\tperspective\tlabel\n0\tZoos should be banned.\t1\n0\tZoos should not be banned.\t0\n",
        )
        .unwrap();
        let gold = ["--labels", &labels.to_string_lossy(), "--label-source", "gold"].map(str::to_owned);
        let gold: Vec<&str> = gold.iter().map(String::as_str).collect();
        let (code, out, err) = parallax(data.path(), &[&args[..], &corpus, &statements, &gold].concat());
        assert_eq!(code, Some(0), "{err}");
        let said: Value = serde_json::from_str(&out).unwrap();
        let first =
            said["lanes"][0]["hits"].as_array().unwrap().iter().find(|hit| hit["id"] == "0").unwrap().clone();
        assert_eq!(first["verdicts"][0]["supports"], true, "{first}");
    }

    #[test]
    fn a_question_in_another_language_has_no_statements_and_the_screen_says_why() {
        let data = tempfile::tempdir().unwrap();
        let keys =
            ["frame", "--size", "140x30", "--keys", "/¿Deberían prohibirse los zoológicos?<Enter><Wait>"];
        let (code, frame, err) = parallax(data.path(), &keys);
        assert_eq!(code, Some(0), "{err}");
        assert!(
            frame.contains("seems to be Spanish; statements can be derived from English questions only"),
            "{frame}"
        );
    }
}
