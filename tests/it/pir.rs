//! `parallax eval pir` on a tiny file, as a program.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

/// Two roots, one asked from two sides and one from one; and a task whose perspectives are the queries.
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

struct Told {
    code: Option<i32>,
    out: String,
    err: String,
}

/// `parallax eval pir` over `tasks`, with a data folder that is kept between the calls.
struct Desk(TempDir);

impl Desk {
    fn new(tasks: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("tasks.json"), tasks).unwrap();
        Desk(folder)
    }

    fn run(&self, arguments: &[&str]) -> Told {
        let mut command = Command::new(env!("CARGO_BIN_EXE_parallax"));
        command.args(["eval", "pir"]).args(arguments).args(["--data-dir", "data"]).current_dir(self.0.path());
        for name in ["PARALLAX_CORPUS", "PARALLAX_QUESTIONS", "PARALLAX_LABELS", "PARALLAX_DATA_DIR"] {
            command.env_remove(name);
        }
        let output = command.stdin(Stdio::null()).output().unwrap();
        Told {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    #[track_caller]
    fn json(&self, arguments: &[&str]) -> Value {
        let told = self.run(&[&["--questions", "tasks.json", "--format", "json"], arguments].concat());
        assert_eq!(told.code, Some(0), "{}", told.err);
        serde_json::from_str(&told.out).unwrap()
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
    let desk = Desk::new(&tasks().to_string());
    let table = desk.json(&["-k", "1"]);
    assert_eq!(table["rows"].as_array().unwrap().len(), 12);
    assert_eq!(table["questions"], 3);
    // Plainly, the query against brings up what it opposes: (1 + 0)/2 for the dogs, 1 for the cats.
    assert_eq!(mean(&table, "minilm", "pets"), 0.75);
    assert_eq!(mean(&table, "minilm", "years"), 1.0);
    assert_eq!(mean(&table, "minilm", "avg"), 0.875);
    assert_eq!(mean(&table, "bm25@k1=0.9,b=0.4", "pets"), 0.75);
    // The authors' notebook gives the cats and the tower nothing, and the dogs what they had.
    let notebook = desk.json(&["-k", "1", "--pir-notebook"]);
    assert_eq!(mean(&notebook, "minilm", "pets"), 0.25);
    assert_eq!(mean(&notebook, "minilm", "avg"), 0.125);
    assert_eq!(notebook["provenance"]["reading"], "notebook");
    // With every passage in the top, everything is found.
    let table = desk.json(&["-k", "4"]);
    for row in table["rows"].as_array().unwrap().iter().filter(|row| row["lane"] != "bm25@k1=0.9,b=0.4") {
        assert_eq!(row["measures"]["avg"]["mean"], 1.0, "{row}");
    }
}

#[test]
fn root_queries_say_which_side_they_bring_up() {
    let desk = Desk::new(&tasks().to_string());
    let table = desk.json(&[]);
    let sides = &table["further"].as_array().unwrap()[..];
    assert_eq!(sides.len(), 1, "a task with one label has no sides");
    assert_eq!(mean(&sides[0], "minilm", "pets/support@1"), 1.0);
    assert_eq!(mean(&sides[0], "minilm", "pets/undermine@1"), 0.0);
    // In the top two of the dogs stand both of theirs, in those of the cats only their own.
    let table = desk.json(&["--bias-k", "2"]);
    let share = mean(&table["further"][0], "minilm", "pets/undermine@2");
    assert!((share - 1.0 / 3.0).abs() < 1e-12, "{share}");
    assert_eq!(table["further"][0]["rows"][0]["measures"]["pets/undermine@2"]["n"], 3);
}

#[test]
fn vectors_are_kept_and_a_second_run_prints_the_same() {
    let desk = Desk::new(&tasks().to_string());
    let first = desk.run(&["--questions", "tasks.json"]);
    let kept = || fs::read_dir(desk.0.path().join("data/texts")).unwrap().count();
    assert_eq!(kept(), 2);
    assert!(first.err.contains("embedding") && first.out.contains("minilm+pap-plus"), "{}", first.err);
    let second = desk.run(&["--questions", "tasks.json"]);
    assert!(!second.err.contains("embedding"), "{}", second.err);
    assert_eq!((first.out, kept()), (second.out, 2));
}

#[test]
fn what_was_not_as_the_texts_say_is_told_below_the_table() {
    let mut tasks = tasks();
    tasks["pets"]["perspectives"][0] = Value::Null;
    tasks["pets"]["key_ref"].as_object_mut().unwrap().remove("2");
    let told = Desk::new(&tasks.to_string()).run(&["--questions", "tasks.json"]);
    for words in [
        "1 queries name no gold passages and are in no mean",
        "2 queries have no perspective beside themselves",
        "minilm+add: 1 queries rank as minilm (there is no perspective",
    ] {
        assert!(told.out.contains(words), "no `{words}` in\n{}", told.out);
    }
}

#[test]
fn wrong_files_and_arguments_are_told_and_nothing_is_printed() {
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
        (with(&|tasks| tasks["years"]["key_ref"] = json!({"x": [0]})), "has the row `x`, which is no number"),
        (
            json!({"years": with_no_gold()}).to_string(),
            "no query has gold passages in `key_ref`, so nothing can be measured",
        ),
    ];
    for (tasks, expected) in cases {
        let told = Desk::new(&tasks).run(&["--questions", "tasks.json"]);
        assert_eq!((told.code, told.out.as_str()), (Some(2), ""), "{}", told.err);
        assert!(told.err.contains(expected) && !told.err.contains("panicked"), "{}", told.err);
    }
    let desk = Desk::new(&tasks().to_string());
    for (arguments, expected) in [
        (&[][..], "eval pir needs its tasks: --questions FILE"),
        (&["--questions", "none.json"], "none.json: no such file or folder"),
        (&["--questions", "tasks.json", "--lane", "bm25"], "takes no --lane"),
        (&["--questions", "tasks.json", "--fail-under", "minilm:years@9>=1"], "no measure `years@9` here"),
    ] {
        let told = desk.run(arguments);
        assert_eq!(told.code, Some(2), "{}", told.err);
        assert!(told.err.contains(expected), "{}", told.err);
    }
}

fn with_no_gold() -> Value {
    let mut task = tasks()["years"].clone();
    task["key_ref"] = json!({"0": []});
    task
}

#[test]
fn a_floor_may_be_put_under_a_task_or_a_side() {
    let desk = Desk::new(&tasks().to_string());
    for (bound, code) in
        [("minilm:avg>=0.1", 0), ("minilm:pets/support@1>=0.5", 0), ("minilm:pets/undermine@1>=0.5", 1)]
    {
        let told = desk.run(&["--questions", "tasks.json", "--fail-under", bound]);
        assert_eq!(told.code, Some(code), "{bound}: {}", told.err);
    }
}

#[test]
fn a_task_as_it_lies_on_the_hub_gives_the_figures_of_the_same_task_in_the_demo_file() {
    let mut demo = tasks();
    demo.as_object_mut().unwrap().remove("years");
    let desk = Desk::new(&demo.to_string());
    let (task, folder) = (&demo["pets"], desk.0.path().join("pets"));
    fs::create_dir(&folder).unwrap();
    let lines = |rows: Vec<Value>| rows.iter().map(|row| row.to_string() + "\n").collect::<String>();
    let corpus = task["corpus"].as_array().unwrap().iter().enumerate();
    let corpus = corpus.map(|(i, text)| json!({"_id": format!("p{i}"), "title": "", "text": text}));
    fs::write(folder.join("corpus.jsonl"), lines(corpus.collect())).unwrap();
    let queries = (0..3).map(|i| {
        let meta = json!({"src_query": task["source_queries"][i], "perspective": task["perspectives"][i]});
        json!({"_id": format!("q{i}"), "text": task["queries"][i], "meta": meta.to_string()})
    });
    fs::write(folder.join("queries.jsonl"), lines(queries.collect())).unwrap();
    let qrels = |last: &str| {
        lines((0..3).map(|i| json!({"query-id": format!("q{i}"), "corpus-id": if i == 2 { last.to_owned() } else { format!("p{i}") }, "score": 1})).collect())
    };
    fs::write(folder.join("qrels.jsonl"), qrels("p9")).unwrap();
    let told = desk.run(&["--questions", "pets"]);
    assert_eq!(told.code, Some(2));
    assert!(told.err.contains("qrels.jsonl: expected a passage of corpus.jsonl, found `p9`"), "{}", told.err);
    fs::write(folder.join("qrels.jsonl"), qrels("p2")).unwrap();
    let hub = desk.run(&["--questions", "pets", "--format", "json"]);
    assert_eq!(hub.code, Some(0), "{}", hub.err);
    let hub: Value = serde_json::from_str(&hub.out).unwrap();
    assert_eq!(hub["rows"], desk.json(&[])["rows"]);
    fs::remove_file(folder.join("queries.jsonl")).unwrap();
    assert!(desk.run(&["--questions", "pets"]).err.contains("expected queries.jsonl there"));
}
