//! The programs of `examples/` that show the use of the library, run as a reader would run them, and cases that they leave out.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;

use parallax::{Event, OpenCorpus, Stop};

/// An example that cargo built with the tests.
fn example(name: &str) -> Command {
    let test = std::env::current_exe().unwrap();
    let folder: PathBuf = test.parent().and_then(|deps| deps.parent()).unwrap().join("examples");
    let program = folder.join(name).with_extension(std::env::consts::EXE_EXTENSION);
    assert!(program.exists(), "build the examples first: cargo build --examples --all-features");
    Command::new(program)
}

fn printed(command: &mut Command) -> String {
    let output = command.env("TMPDIR", std::env::temp_dir()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_folder_is_searched() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("zoo.txt"), "Zoos should be banned because animals suffer in them.")
        .unwrap();
    std::fs::write(folder.path().join("tea.txt"), "Tea is brewed with hot water.").unwrap();
    let text = printed(example("search_folder").arg(folder.path()).arg("Should zoos be banned?"));
    let first = text.lines().nth(1).unwrap();
    assert!(text.starts_with("bm25") && first.ends_with("zoo#1"), "{text}");
}

#[test]
fn a_trec_run_is_measured() {
    let folder = tempfile::tempdir().unwrap();
    let (run, qrels) = (folder.path().join("run"), folder.path().join("qrels"));
    std::fs::write(&run, "1 Q0 b 1 2.0 x\n1 Q0 a 2 1.0 x\n").unwrap();
    std::fs::write(&qrels, "1 0 a 1\n1 0 b 0\n").unwrap();
    let text = printed(example("measure_run").args([&run, &qrels]).arg("RR"));
    assert_eq!(text, "RR 0.5000 over 1 questions\n");
}

#[test]
fn a_custom_retriever_is_judged_and_measured() {
    let text = printed(&mut example("own_retriever"));
    assert!(text.contains("mrecall") && text.contains("judged: 5"), "{text}");
}

#[test]
fn a_trec_run_without_judgments_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let (run, qrels) = (folder.path().join("run"), folder.path().join("qrels"));
    std::fs::write(&run, "1 Q0 b 1 2.0 x\n").unwrap();
    std::fs::write(&qrels, "").unwrap();
    let output = example("measure_run").args([&run, &qrels]).arg("RR").output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && error.contains("judges no question"), "{error}");
}

#[test]
fn own_statements_are_judged_events_are_reported_and_a_stop_ends_the_run() {
    let data = tempfile::tempdir().unwrap();
    let corpus = OpenCorpus::sample(data.path()).unwrap();
    let statements = ["Zoos protect species.", "Zoos make animals suffer.", "Zoos teach children."];
    let question = corpus.question_with("Should zoos be banned?", &statements);
    assert_eq!((question.perspectives.len(), question.supports), (3, None));
    let query = corpus.query(question, &["bm25"], 1).unwrap();
    let (lists, stop) = (Mutex::new(0), Stop::new());
    let outcome = corpus.run(query.clone(), &stop, &|_| (), &|event| {
        if matches!(event, Event::LaneReady { .. }) {
            *lists.lock().unwrap() += 1;
            stop.set();
        }
    });
    assert!(outcome.unwrap().lanes[0].ranking.is_ok() && *lists.lock().unwrap() == 1);
    assert!(corpus.run(query, &stop, &|_| (), &|_| ()).unwrap().lanes[0].ranking.is_err());
}
