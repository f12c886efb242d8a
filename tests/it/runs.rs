//! Finished runs as lanes: every format, missing questions, refused options, and written runs that are read back.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

const ZOOS: &str = "Should zoos be banned?";

struct Workspace(TempDir);

impl Workspace {
    /// A corpus of four passages and two questions with labels.
    fn new() -> Self {
        let workspace = Workspace(tempfile::tempdir().unwrap());
        let passage =
            |(id, text): (&str, &str)| json!({"_id": id, "title": "", "text": text}).to_string() + "\n";
        let passages =
            [("a", "Ban zoos now."), ("b", "Keep all zoos."), ("c", "It rains."), ("d", "Ban and keep.")];
        workspace.write("zoos.jsonl", passages.map(passage).concat());
        workspace.write(
            "q.jsonl",
            format!(
                "{}\n{}\n",
                json!({"id": "1", "question": ZOOS, "perspectives": ["Yes to a ban.", "No to a ban."]}),
                json!({"id": "2", "question": "Who pays?", "perspectives": ["We do.", "They do."]})
            ),
        );
        let mut labels = String::from("id\tperspective\tlabel\n");
        for (id, statement) in [
            ("a", "Yes to a ban."),
            ("d", "Yes to a ban."),
            ("b", "No to a ban."),
            ("d", "No to a ban."),
            ("c", "We do."),
        ] {
            labels.push_str(&format!("{id}\t{statement}\t1\n"));
        }
        workspace.write("labels.tsv", labels);
        workspace.write("run.trec", "1 Q0 a 1 9.5 tag\n1 Q0 c 2 9.0 tag\n1 Q0 b 3 1 tag\n");
        workspace
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        fs::write(self.0.path().join(name), text).unwrap();
    }

    fn run(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_parallax"));
        command.args(arguments).arg("--data-dir").arg(self.0.path().join("data")).current_dir(self.0.path());
        command.env("PARALLAX_CONFIG", crate::program::NO_CONFIG);
        for name in ["PARALLAX_CORPUS", "PARALLAX_QUESTIONS", "PARALLAX_LABELS", "PARALLAX_DATA_DIR"] {
            command.env_remove(name);
        }
        let output = command.stdin(Stdio::null()).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    }

    #[track_caller]
    fn json(&self, arguments: &[&str], code: i32) -> Value {
        let (ended, out, err) = self.run(&[arguments, &["--format", "json"]].concat());
        assert_eq!(ended, Some(code), "{err}");
        serde_json::from_str(&out).unwrap()
    }

    /// The lane of the first question over the small corpus.
    #[track_caller]
    fn searched(&self, lane: &str, code: i32) -> Value {
        let arguments = [
            "search",
            ZOOS,
            "--corpus",
            "zoos.jsonl",
            "--questions",
            "q.jsonl",
            "--labels",
            "labels.tsv:complete",
        ];
        self.json(&[&arguments[..], &["--label-source", "gold", "--lane", lane]].concat(), code)["lanes"][0]
            .clone()
    }

    /// `eval berds` over the small corpus.
    #[track_caller]
    fn berds(&self, more: &[&str], code: i32) -> Value {
        let arguments = [
            "eval",
            "berds",
            "--corpus",
            "zoos.jsonl",
            "--questions",
            "q.jsonl",
            "--labels",
            "labels.tsv:complete",
        ];
        self.json(&[&arguments[..], &["--label-source", "gold", "-k", "2"], more].concat(), code)
    }
}

fn ids(lane: &Value) -> Vec<&str> {
    lane["hits"].as_array().unwrap().iter().map(|hit| hit["id"].as_str().unwrap()).collect()
}

#[test]
fn every_format_becomes_a_lane_in_the_files_order() {
    let workspace = Workspace::new();
    let hit =
        |id: &str, text: &str, score: f64| json!({"docid": id, "content": text, "score": score, "qid": 1});
    let hits =
        json!([hit("a", "Ban zoos now.", 1.0), hit("c", "It rains.", 9.0), hit("b", "Keep all zoos.", 1.0)]);
    workspace.write("old.json", json!([{"query": "should  zoos be BANNED?", "hits": hits}]).to_string());
    let new = |id: &str, text: &str| json!({"docid": id, "score": 1, "doc": {"segment": text}});
    let candidates = json!([new("a", "Ban zoos now."), new("c", "It rains."), new("b", "Keep all zoos.")]);
    workspace.write(
        "new.jsonl",
        json!({"query": {"qid": 1, "text": "other words"}, "candidates": candidates}).to_string(),
    );
    let text = |text: &str| json!({"text": text, "score": "1.5"});
    let ctxs = json!([text("ban zoos  now."), text("It rains."), text("Keep all zoos.")]);
    workspace.write(
        "berds.jsonl",
        json!({"question": ZOOS, "perspectives": ["x", "y"], "ctxs": ctxs}).to_string(),
    );
    for file in ["run.trec", "old.json", "new.jsonl", "berds.jsonl"] {
        let lane = workspace.searched(&format!("run:{file}"), 0);
        assert_eq!(ids(&lane), ["a", "c", "b"], "{file}");
        assert_eq!(lane["recipe"], format!("run:{file}"));
        assert_eq!(lane["steps"][0]["step"], "run");
    }
    assert_eq!(ids(&workspace.searched("run:old.json@ties=trec-eval", 0)), ["c", "b", "a"]);
    let lane = workspace.searched("run:run.trec", 0);
    assert_eq!((&lane["lane"], &lane["steps"][0]["tag"]), (&json!("run"), &json!("tag")));
    assert_eq!(lane["steps"][0]["given"][1], json!({"id": "c", "rank": 2, "score": 9.0, "line": 2}));
    assert_eq!(lane["measures"]["MRecall@5"], 1.0);
}

#[test]
fn a_question_missing_from_the_run_fails_counts_as_zero_and_is_reported() {
    let workspace = Workspace::new();
    let table = workspace.berds(&["--run", "run.trec"], 1);
    let row = &table["rows"][0];
    assert_eq!(row["lane"], "run:run.trec");
    assert_eq!(row["measures"]["Prec@2"]["mean"], 0.25, "one of two passages of one of two questions");
    assert_eq!(row["measures"]["Prec@2"]["n"], 2);
    assert_eq!(table["failed_questions"], json!(["2"]));
    let arguments =
        ["eval", "berds", "--corpus", "zoos.jsonl", "--questions", "q.jsonl", "--run", "run.trec"];
    let (_, text, _) = workspace.run(&arguments);
    let printed = "1 question without a list, counted as 0 (first 2: the run has no list for this question, neither by its id `2` nor by its words)";
    assert!(text.contains(printed), "{text}");
    assert_eq!(workspace.berds(&["--run", "run.trec", "--allow-failed"], 0)["rows"], table["rows"]);
    // The greatest score over the set lacks this question too.
    let weighed = [&arguments[..6], &["--lane", "run:run.trec+mmr@.5,norm=dataset"]].concat();
    let (_, _, err) = workspace.run(&weighed);
    assert!(err.contains("run:run.trec has no list for 1 of 2 questions"), "{err}");
    // A lane and --run give the same.
    assert_eq!(workspace.berds(&["--lane", "run:run.trec", "--allow-failed"], 0)["rows"], table["rows"]);
    let (code, out, err) = workspace.run(&[
        "eval",
        "coverage",
        "--corpus",
        "zoos.jsonl",
        "--questions",
        "q.jsonl",
        "--labels",
        "labels.tsv:complete",
        "--label-source",
        "gold",
        "--run",
        "run.trec",
        "--format",
        "tsv",
    ]);
    assert_eq!(code, Some(1), "{err}");
    assert!(out.contains("run:run.trec"), "{out}");
}

#[test]
fn an_ideal_order_is_of_all_labels_whatever_the_lanes_show() {
    let workspace = Workspace::new();
    workspace.write("one.trec", "1 Q0 a 1 9 tag\n1 Q0 c 2 8 tag\n2 Q0 c 1 9 tag\n");
    workspace.write("other.trec", "1 Q0 b 1 9 tag\n1 Q0 d 2 8 tag\n2 Q0 d 1 9 tag\n");
    let of_one = |more: &[&str]| {
        let lanes = ["--measures", "alpha_nDCG@5", "--lane", "run:one.trec"];
        let table = workspace.berds(&[&lanes[..], more].concat(), 0);
        table["rows"][0]["measures"]["alpha_nDCG@5"]["mean"].as_f64().unwrap()
    };
    let alone = of_one(&[]);
    // The list has a alone, which supports the first statement. The ideal is d, which supports both, then a and b, half as new each.
    let ideal = 2.0 + 0.5 / 3f64.log2() + 0.5 / 4f64.log2();
    assert!((alone - (1.0 / ideal + 1.0) / 2.0).abs() < 1e-9, "{alone}");
    assert_eq!(of_one(&["--lane", "run:other.trec"]), alone);
}

#[test]
fn unknown_passages_keep_their_ranks_are_reported_once_and_cannot_be_judged() {
    let workspace = Workspace::new();
    workspace.write("far.trec", "1 Q0 x1 1 3 t\n1 Q0 a 2 2 t\n1 Q0 x2 3 1 t\n2 Q0 x1 1 1 t\n");
    let lane = workspace.searched("run:far.trec", 0);
    assert_eq!(ids(&lane), ["x1", "a", "x2"]);
    let note = "2 passages of this run are not in the corpus: x1, x2; they keep their ranks, unjudged";
    assert_eq!(lane["notes"], json!([note]));
    let notes = workspace.berds(&["--run", "far.trec"], 0)["notes"].to_string();
    assert_eq!(notes.matches("not in the corpus").count(), 1, "{notes}");
    // Re-rankers put passages without text last.
    let args =
        ["search", ZOOS, "--corpus", "zoos.jsonl", "--questions", "q.jsonl", "--lane", "run:far.trec+mmr"];
    assert_eq!(ids(&workspace.json(&args, 0)["lanes"][0]), ["a", "x1", "x2"]);
    workspace.write("qrels", "1 0 x1 1\n");
    let trec =
        workspace.json(&["eval", "trec", "--qrels", "qrels", "--run", "far.trec", "--measures", "RR@10"], 0);
    assert_eq!(trec["rows"][0]["measures"]["RR@10"]["mean"], 1.0);
}

#[test]
fn an_invalid_run_is_reported_with_file_and_line_before_anything_is_measured() {
    let workspace = Workspace::new();
    workspace.write("twice.trec", "1 Q0 a 1 3 t\n1 Q0 a 2 2 t\n");
    workspace.write("bad.json", "[{\"query\": \"w\",\n\"hits\": [{\"docid\": 1}]}]");
    for (file, words) in [
        (
            "twice.trec",
            "twice.trec:2: expected one line for each passage of question `1`, found `a` again (first on line 1)",
        ),
        ("bad.json", "bad.json:2: expected a hit"),
        ("none.trec", "none.trec: no such file or folder"),
    ] {
        let (code, out, err) = workspace.run(&[
            "eval",
            "berds",
            "--corpus",
            "zoos.jsonl",
            "--questions",
            "q.jsonl",
            "--run",
            file,
        ]);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{err}");
        assert!(err.contains(words), "{err}");
    }
    let (code, out, err) =
        workspace.run(&["eval", "berds", "--run", "run.trec", "--fail-under", "run:other.trec:Prec@5>=0"]);
    assert_eq!((code, out.as_str()), (Some(2), ""));
    assert!(
        err.contains("no lane `run:other.trec`, only run:run.trec") && !err.contains("measuring"),
        "{err}"
    );
}

#[test]
fn options_that_need_a_query_are_refused_with_the_reason() {
    let workspace = Workspace::new();
    for lane in ["run:run.trec+csqe", "run:run.trec+pap@1"] {
        let (code, _, err) = workspace.run(&["search", ZOOS, "--lane", lane]);
        assert_eq!(code, Some(2));
        assert!(err.contains("a finished run has no query to "), "{err}");
    }
    let sycophancy = |more: &[&str], code| {
        let arguments = [
            "eval",
            "sycophancy",
            "--corpus",
            "zoos.jsonl",
            "--questions",
            "one.jsonl",
            "--label-source",
            "gold",
            "--labels",
            "labels.tsv:complete",
        ];
        workspace.json(&[&arguments[..], more].concat(), code)
    };
    workspace.write(
        "one.jsonl",
        json!({"id": "1", "question": ZOOS, "perspectives": ["Yes to a ban.", "No to a ban."]}).to_string(),
    );
    assert_eq!(sycophancy(&["--run", "run.trec"], 1)["failed_questions"], json!(["1"]));
    let arguments =
        ["eval", "sycophancy", "--corpus", "zoos.jsonl", "--questions", "one.jsonl", "--run", "run.trec"];
    let (_, text, _) = workspace.run(&arguments);
    assert!(text.contains("only if it holds the statements as questions"), "{text}");
    // A run that also has lists for the statements can be used.
    let asked = |text: &str, id: &str| {
        json!({"question": text, "ctxs": [{"id": id, "score": 1, "text": "t"}]}).to_string()
    };
    workspace.write(
        "sides.jsonl",
        [asked(ZOOS, "c"), asked("yes to a ban.", "a"), asked("No to a ban.", "b")].join("\n"),
    );
    let table = sycophancy(&["--run", "sides.jsonl", "-k", "1"], 0);
    assert_eq!(table["rows"][0]["measures"]["shift@1"]["mean"], 2.0);
}

#[test]
fn runs_written_by_eval_berds_are_read_back_with_equal_measures() {
    let workspace = Workspace::new();
    let eval = |more: &[&str]| {
        let names = "Cover,Lean@5,AWRF,rKL@10,alpha_nDCG@5,StRecall@20,Judged@50";
        let table = workspace
            .json(&[&["eval", "berds", "--label-source", "gold", "--measures", names], more].concat(), 0);
        table["rows"].as_array().unwrap().iter().map(|row| row["measures"].clone()).collect::<Vec<_>>()
    };
    let own = eval(&["--lane", "bm25", "--lane", "bm25+mmr@.5", "--write", "out"]);
    for ending in ["run", "jsonl"] {
        let file = |name: &str| format!("out/{name}.{ending}");
        let files = [file("bm25-k1=0.9-b=0.4"), file("bm25-k1=0.9-b=0.4-mmr-0.5")];
        let lanes = files.each_ref().map(|name| format!("run:{name}"));
        // The names are lanes as they are, and the written labels are enough.
        let labels = ["--labels", "out/labels.div.qrels", "--questions", "out/questions.jsonl"];
        let mut back = eval(&[&["--lane", &lanes[0], "--lane", &lanes[1]][..], &labels].concat());
        let mut own = own.clone();
        for measures in own.iter_mut().chain(&mut back) {
            // A lane without switches is another file, so there is no pair to test.
            for cell in measures.as_object_mut().unwrap().values_mut() {
                cell["p"].take();
                cell.as_object_mut().unwrap().retain(|name, _| name != "change" && name != "versus");
            }
        }
        assert_eq!(back, own, "{ending}");
    }
}

#[test]
fn runs_that_contain_their_passages_need_no_corpus_and_no_questions() {
    let workspace = Workspace::new();
    let run = |ids: [(&str, &str); 2]| {
        let hits = ids.map(|(id, text)| json!({"qid": 7, "docid": id, "score": 1, "content": text}));
        json!([{"query": "Should cats be kept in?", "hits": hits}]).to_string()
    };
    workspace.write("one.json", run([("1", "Keep cats in."), ("2", "Let cats out.")]));
    workspace.write("two.json", run([("3", "A dog."), ("2", "Let cats out.")]));
    let lanes = ["--lanes", "run:one.json,run:two.json,bm25"];
    let found = workspace.json(&[&["search", "Should cats be kept in?"], &lanes[..]].concat(), 0);
    assert_eq!((&found["corpus"]["passages"], &found["corpus"]["name"]), (&json!(3), &json!("2 runs")));
    assert_eq!(ids(&found["lanes"][1]), ["3", "2"]);
    // The same file is the corpus.
    let named = workspace.json(&["search", "cats", "--corpus", "one.json", "--lanes", "bm25"], 0);
    assert_eq!(named["corpus"]["passages"], 2);
    let (_, frame, err) = workspace.run(
        &[
            &["frame", "--size", "100x20", "--keys", "Should cats be kept in?<Enter><Wait>j<Enter><Wait>"],
            &lanes[..],
        ]
        .concat(),
    );
    assert!(frame.contains("Why rank 2 in one"), "{frame}{err}");
    assert!(frame.contains("given by one.json:1: score 1"), "{frame}{err}");
    workspace.write("two.json", run([("3", "A dog."), ("2", "Something else.")]));
    let (code, _, err) = workspace.run(&[&["search", "cats"], &lanes[..]].concat());
    assert_eq!(code, Some(2));
    assert!(
        err.contains("two.json:1: expected the text that passage `2` has at") && err.contains("one.json:1"),
        "{err}"
    );
}

#[test]
fn two_runs_are_shown_side_by_side_and_report_what_they_lack() {
    let workspace = Workspace::new();
    fs::create_dir(workspace.0.path().join("b")).unwrap();
    workspace.write("b/run.trec", "2 Q0 b 1 140998 t\n");
    let mut arguments =
        vec!["frame", "--corpus", "zoos.jsonl", "--questions", "q.jsonl", "--labels", "labels.tsv:complete"];
    arguments.extend([
        "--label-source",
        "gold",
        "--lanes",
        "run:./run.trec,run:b/run.trec",
        "--size",
        "100x24",
    ]);
    let keys = |keys: &'static str| [&arguments[..], &["--keys", keys]].concat();
    let (_, frame, err) = workspace.run(&keys("Should zoos be banned?<Enter><Wait>"));
    // All lines except the one with the duration.
    let still: String =
        frame.lines().filter(|line| !line.contains(" ms ")).map(|line| format!("{line}\n")).collect();
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!("runs-100x24", still);
    });
    assert!(
        frame.contains("the run has no list for this question") && frame.contains("b/run"),
        "{frame}{err}"
    );
    let (_, frame, _) = workspace.run(&keys("Should zoos be banned?<Enter><Wait>e"));
    assert!(frame.contains("a finished run has no query to expand"), "{frame}");
    let (_, frame, _) = workspace.run(&keys("Should zoos be banned?<Enter><Wait>p"));
    assert!(frame.contains("a finished run has no query to project"), "{frame}");
}

#[test]
#[ignore = "needs PARALLAX_DATA"]
fn six_real_runs_have_their_published_figures_as_lanes_and_need_no_corpus() {
    let folder = std::env::var_os("PARALLAX_DATA").expect("PARALLAX_DATA names the folder of published runs");
    let folder = Path::new(&folder).join("trec-dl19");
    let workspace = Workspace::new();
    let path = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let qrels = path("qrels.dl19-passage.txt");
    let trec = |lanes: &[String], more: &[&str]| {
        let lanes: Vec<&str> = lanes.iter().map(String::as_str).collect();
        let arguments =
            [&["eval", "trec", "--measures", "nDCG@10", "--qrels", &qrels], &lanes[..], more].concat();
        let rows = workspace.json(&arguments, 0)["rows"].clone();
        let mean = |row: &Value| format!("{:.4}", row["measures"]["nDCG@10"]["mean"].as_f64().unwrap());
        rows.as_array().unwrap().iter().map(mean).collect::<Vec<_>>()
    };
    let names = ["bm25", "tasb", "splade-pp-ed", "openai-ada2", "repllama", "bm25-rm3"];
    let lanes = names.map(|name| format!("--lane=run:{}", path(&format!("dl19.{name}.json"))));
    let published = ["0.5058", "0.7210", "0.7308", "0.7035", "0.7439", "0.5216"];
    assert_eq!(trec(&lanes, &[]), published);
    assert_eq!(trec(&lanes[4..5], &["--ties", "trec-eval"]), ["0.7384"]);
    // With the passages in the six runs as one corpus, the figures are the same.
    let mut with_search = lanes.to_vec();
    with_search.push("--lane=bm25".into());
    assert_eq!(trec(&with_search, &[])[..6], published);
}

mod measure_real_data {
    //! Published figures on real runs, read from the folder that `PARALLAX_DATA` names.

    use std::env;
    use std::fs::File;
    use std::io::BufReader;
    use std::path::{Path, PathBuf};

    use parallax::measure::graded::GradedRanking;
    use parallax::measure::graded::ndcg;
    use parallax::measure::trec::{
        Qrels, RunOrder, read_beir_qrels, read_diversity_qrels, read_qrels, read_rank_llm, read_run,
        write_diversity_qrels, write_run,
    };

    /// The folder that `PARALLAX_DATA` names; the tests that need it are ignored by default.
    fn data() -> PathBuf {
        env::var_os("PARALLAX_DATA")
            .map(PathBuf::from)
            .expect("PARALLAX_DATA names the folder of published runs")
    }

    fn open(path: &Path) -> BufReader<File> {
        BufReader::new(File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
    }

    fn dl19_qrels(folder: &Path) -> Qrels {
        let path = folder.join("trec-dl19/qrels.dl19-passage.txt");
        read_qrels("qrels.dl19-passage.txt", open(&path)).unwrap()
    }

    /// The mean nDCG@10 over all judged questions; a question missing from the run would count 0.
    fn mean_ndcg_10(folder: &Path, file: &str, order: RunOrder) -> String {
        let qrels = dl19_qrels(folder);
        let path = folder.join("trec-dl19").join(file);
        let run = read_rank_llm(file, open(&path), order).unwrap();
        assert_eq!(run.questions().len(), 43, "{file}");
        let total: f64 = qrels
            .questions()
            .map(|(question, judgements)| {
                let ranked = run.question(question).unwrap();
                ndcg(&GradedRanking::new(ranked.ids(), judgements), Some(10))
            })
            .sum();
        assert_eq!(qrels.len(), 43);
        format!("{:.4}", total / qrels.len() as f64)
    }

    #[test]
    #[ignore = "needs PARALLAX_DATA"]
    fn ndcg_at_10_of_six_systems_on_dl19_is_the_published_one() {
        let folder = data();
        for (file, expected) in [
            ("dl19.bm25.json", "0.5058"),
            ("dl19.tasb.json", "0.7210"),
            ("dl19.splade-pp-ed.json", "0.7308"),
            ("dl19.openai-ada2.json", "0.7035"),
            ("dl19.repllama.json", "0.7439"),
            ("dl19.bm25-rm3.json", "0.5216"),
        ] {
            let as_given = mean_ndcg_10(&folder, file, RunOrder::AsGiven);
            let trec_eval = mean_ndcg_10(&folder, file, RunOrder::TrecEval);
            println!("{file}: as given {as_given}, trec_eval's ties {trec_eval}");
            assert_eq!(as_given, expected, "{file}");
        }
    }

    #[test]
    #[ignore = "needs PARALLAX_DATA"]
    fn repllama_loses_half_a_point_to_trec_evals_ties() {
        let folder = data();
        let value = mean_ndcg_10(&folder, "dl19.repllama.json", RunOrder::TrecEval);
        assert_eq!(value, "0.7384");
    }

    #[test]
    #[ignore = "needs PARALLAX_DATA"]
    fn a_real_run_written_and_read_with_trec_evals_ties_keeps_its_order() {
        let folder = data();
        let path = folder.join("trec-dl19/dl19.repllama.json");
        let run = read_rank_llm("repllama", open(&path), RunOrder::AsGiven).unwrap();
        let mut out = Vec::new();
        let rankings =
            run.questions().iter().map(|question| (question.id.as_str(), question.passages.as_slice()));
        write_run(&mut out, "repllama", rankings).unwrap();
        let back = read_run("written", out.as_slice(), RunOrder::TrecEval).unwrap();
        for question in run.questions() {
            let again = back.question(&question.id).unwrap();
            assert!(question.ids().eq(again.ids()), "{}", question.id);
        }
    }

    #[test]
    #[ignore = "needs PARALLAX_DATA"]
    fn the_other_judgments_are_read() {
        let folder = data();
        let beir = read_beir_qrels("test.tsv", open(&folder.join("arguana/qrels/test.tsv"))).unwrap();
        println!("arguana: {} questions", beir.len());
        assert!(!beir.is_empty());

        let path = folder.join("arguments-pro-con/gold.div.qrels");
        let gold = read_diversity_qrels("gold.div.qrels", open(&path)).unwrap();
        let mut out = Vec::new();
        write_diversity_qrels(&mut out, &gold).unwrap();
        assert_eq!(read_diversity_qrels("again", out.as_slice()).unwrap(), gold);
        println!("arguments-pro-con: {} questions", gold.questions().count());
        assert!(gold.questions().count() > 0);
    }
}
