//! The real binary in a temporary folder.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use parallax::report::marks::{share, signed};
use parallax::retrieve::TermIndex;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::stage::QUESTION;

const LANES: [&str; 2] = ["--lanes", "bm25"];

/// A folder for files, a folder for data, and the program.
pub struct Desk {
    pub files: TempDir,
    pub data: PathBuf,
}

pub struct Told {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Told {
    #[track_caller]
    pub fn good(self) -> String {
        assert_eq!(self.code, Some(0), "{}", self.err);
        self.out
    }

    /// Exit code 2, nothing on standard output, and all of `words` on standard error.
    #[track_caller]
    pub fn bad(&self, words: &[&str]) {
        assert_eq!((self.code, self.out.as_str()), (Some(2), ""), "{}", self.err);
        for word in words {
            assert!(self.err.contains(word), "no `{word}` in\n{}", self.err);
        }
        assert!(!self.err.contains('\u{1b}') && !self.err.contains("panicked"), "{}", self.err);
    }
}

impl Desk {
    pub fn new() -> Self {
        let files = tempfile::tempdir().unwrap();
        let data = files.path().join("data");
        Desk { files, data }
    }

    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) -> String {
        let path = self.files.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        name.to_owned()
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program());
        command.args(arguments).arg("--data-dir").arg(&self.data).current_dir(self.files.path());
        command.env("PARALLAX_CONFIG", NO_CONFIG);
        for name in
            ["NO_COLOR", "PARALLAX_CORPUS", "PARALLAX_QUESTIONS", "PARALLAX_LABELS", "PARALLAX_DATA_DIR"]
        {
            command.env_remove(name);
        }
        command.stdin(Stdio::null());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Told {
        told(&mut self.command(arguments))
    }

    #[track_caller]
    pub fn json(&self, arguments: &[&str]) -> Value {
        let arguments = [arguments, &["--format", "json"]].concat();
        serde_json::from_str(&self.run(&arguments).good()).unwrap()
    }

    /// What lies below the corpora of the data folder.
    pub fn corpora(&self) -> Vec<PathBuf> {
        let Ok(listing) = fs::read_dir(self.data.join("corpora")) else { return Vec::new() };
        listing.map(|entry| entry.unwrap().path()).collect()
    }
}

/// The program; the long campaigns name one that was built with all optimisations.
pub fn program() -> String {
    std::env::var("PARALLAX_PROGRAM").unwrap_or_else(|_| env!("CARGO_BIN_EXE_parallax").to_owned())
}

pub fn told(command: &mut Command) -> Told {
    let output = command.output().unwrap();
    Told {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

pub fn jsonl(passages: &[(&str, &str, &str)]) -> String {
    let lines = passages
        .iter()
        .map(|(id, title, text)| json!({"_id": id, "title": title, "text": text}).to_string() + "\n");
    lines.collect()
}

/// A configuration with nothing in it, so that a tester's own is never read.
pub const NO_CONFIG: &str = if cfg!(windows) { "NUL" } else { "/dev/null" };

/// A corpus of six passages.
pub fn tiny(desk: &Desk) -> String {
    let passages = [
        ("a", "Ban them", "Zoos should be banned. No cage is kind to an elephant."),
        ("b", "Keep them", "Zoos should not be banned: they breed species that would be gone without them."),
        ("c", "Opening times", "The zoo opens at nine and closes at six."),
        ("d", "A vote", "The town voted on whether zoos should be banned, and nobody knows the result yet."),
        (
            "e",
            "Close the cages",
            "It is cruel to keep wild animals behind bars; every zoo must be closed by law.",
        ),
        ("f", "Bread", "Flour, water, salt and time make a good loaf."),
    ];
    desk.write("tiny/corpus.jsonl", jsonl(&passages))
}

#[test]
fn search_as_json_has_ranks_verdicts_and_measures_that_agree() {
    let desk = Desk::new();
    let corpus = tiny(&desk);
    let all = desk.json(&["search", QUESTION, "--corpus", &corpus]);
    assert_eq!(all["question"], QUESTION);
    assert_eq!(all["perspectives"], json!(["Zoos should be banned.", "Zoos should not be banned."]));
    assert_eq!((&all["supports"], &all["k"]), (&json!(0), &json!(5)));
    assert_eq!(all["corpus"], json!({"name": "tiny", "passages": 6}));
    let lanes = all["lanes"].as_array().unwrap();
    let recipes: Vec<&str> = lanes.iter().map(|lane| lane["recipe"].as_str().unwrap()).collect();
    assert_eq!(recipes.len(), 3);
    assert!(recipes[0].starts_with("bm25@") && recipes[1..] == ["minilm", "hybrid"]);
    let threshold = all["provenance"]["models"]["threshold"].as_f64().unwrap();
    for lane in lanes {
        assert_eq!(lane["error"], Value::Null);
        let hits = lane["hits"].as_array().unwrap();
        assert!(!hits.is_empty() && hits.len() <= 5);
        let ids: Vec<&str> = hits.iter().map(|hit| hit["id"].as_str().unwrap()).collect();
        assert!(!ids.contains(&"f") || hits.len() == 5, "bread comes last if at all");
        let mut covered = [false; 2];
        let mut supporting = 0;
        for (i, hit) in hits.iter().enumerate() {
            assert_eq!(hit["rank"], json!(i + 1));
            assert!(i == 0 || hit["score"].as_f64() <= hits[i - 1]["score"].as_f64());
            let verdicts = hit["verdicts"].as_array().unwrap();
            assert_eq!(verdicts.len(), 2);
            for (perspective, verdict) in verdicts.iter().enumerate() {
                let p = verdict["p"].as_f64().unwrap();
                assert_eq!(verdict["perspective"], json!(perspective));
                assert_eq!(verdict["supports"], json!(p >= threshold));
                assert_eq!((&verdict["by"], &verdict["error"]), (&json!("model"), &Value::Null));
                covered[perspective] |= p >= threshold;
            }
            supporting += usize::from(verdicts.iter().any(|verdict| verdict["supports"] == json!(true)));
        }
        let recall = if covered == [true; 2] { 1.0 } else { 0.0 };
        assert_eq!(lane["measures"]["MRecall@5"], json!(recall));
        assert_eq!(lane["measures"]["Prec@5"].as_f64(), Some(supporting as f64 / 5.0));
        assert_eq!(lane["judged"], json!(hits.len()));
    }
}

/// What stands after every `name` of a frame, left to right.
fn figures(frame: &str, name: &str) -> Vec<String> {
    let after = frame.split(name).skip(1);
    after.map(|rest| rest.split_whitespace().next().unwrap_or_default().to_owned()).collect()
}

#[test]
fn screen_and_command_print_the_same_numbers() {
    let desk = Desk::new();
    let corpus = tiny(&desk);
    for from in [vec!["--corpus", corpus.as_str()], vec![]] {
        // The screen goes first: it embeds and judges by itself.
        let keys = format!("{QUESTION}<Enter><Wait>");
        let frame = desk
            .run(
                &[&["frame", "--size", "160x44", "--timeout", "600", "--keys", &keys], from.as_slice()]
                    .concat(),
            )
            .good();
        let all = desk.json(&[&["search", QUESTION], from.as_slice()].concat());
        let lanes = all["lanes"].as_array().unwrap();
        let measured = |name: &str, print: &dyn Fn(f64) -> String| -> Vec<String> {
            lanes.iter().map(|lane| print(lane["measures"][name].as_f64().unwrap())).collect()
        };
        assert_eq!(
            figures(&frame, "MRecall@5 "),
            measured("MRecall@5", &|value| format!("{value:.0}")),
            "{frame}"
        );
        assert_eq!(figures(&frame, "Prec@5 "), measured("Prec@5", &share), "{frame}");
        assert_eq!(
            figures(&frame, " lean "),
            measured("Lean@5", &|value| signed(value).trim().to_owned()),
            "{frame}"
        );
        let text = desk.run(&[&["search", QUESTION], from.as_slice()].concat()).good();
        assert_eq!(figures(&text, "MRecall@5 "), figures(&frame, "MRecall@5 "), "{text}");
        assert_eq!(figures(&text, "Prec@5 "), figures(&frame, "Prec@5 "), "{text}");
        for lane in lanes {
            for hit in lane["hits"].as_array().unwrap() {
                let title: String = hit["title"].as_str().unwrap().chars().take(16).collect();
                assert!(frame.contains(&title), "no `{title}` in\n{frame}");
            }
        }
    }
}

#[test]
fn search_as_text_and_as_tsv() {
    let desk = Desk::new();
    let corpus = tiny(&desk);
    let arguments = [&["search", QUESTION, "--corpus", &corpus, "-k", "3"], &LANES[..]].concat();
    let text = desk.run(&arguments).good();
    for word in
        ["▲ Zoos should be banned.", "▼ Zoos should not be banned.", "BM25", "[a]", "MRecall@3", "3/3 judged"]
    {
        assert!(text.contains(word), "no `{word}` in\n{text}");
    }
    let ascii = desk.run(&[&arguments[..], &["--ascii"]].concat()).good();
    assert!(ascii.contains("+ Zoos should be banned.") && !ascii.contains('▲'));
    let tsv = desk.run(&[&arguments[..], &["--format", "tsv"]].concat()).good();
    let rows: Vec<Vec<&str>> = tsv.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(rows[0], ["question", "lane", "rank", "id", "score", "supports"]);
    assert_eq!(rows.len(), 4);
    for (i, row) in rows[1..].iter().enumerate() {
        assert_eq!((row.len(), row[0], row[2]), (6, QUESTION, (i + 1).to_string().as_str()));
        assert!(row[4].parse::<f64>().is_ok());
        assert!(row[5].split(',').all(|n| n.is_empty() || n == "1" || n == "2"), "{row:?}");
    }
}

#[test]
fn labels_of_a_file_count_before_the_model() {
    let desk = Desk::new();
    let corpus = tiny(&desk);
    let questions = desk.write("questions.tsv", format!("q1\t{QUESTION}\n"));
    desk.write("labels.qrels", "q1 1 f 1\nq1 2 a 1\n");
    let arguments = ["search", QUESTION, "--corpus", &corpus, "--questions", &questions];
    let all = desk.json(&[&arguments[..], &["--labels", "labels.qrels:complete"], &LANES].concat());
    let lane = &all["lanes"][0];
    let hit = lane["hits"].as_array().unwrap().iter().find(|hit| hit["id"] == "a").unwrap();
    assert_eq!(hit["verdicts"][0]["supports"], json!(false));
    assert_eq!(hit["verdicts"][1]["supports"], json!(true));
    assert_eq!(hit["verdicts"][1]["by"], json!("gold"));
    assert_eq!(lane["measures"]["MRecall@5"], json!(0.0));
    let model = desk
        .json(&[&arguments[..], &["--labels", "labels.qrels", "--label-source", "model"], &LANES].concat());
    assert_eq!(model["lanes"][0]["hits"][0]["verdicts"][0]["by"], json!("model"));
}

#[test]
fn bad_files_are_told_with_file_and_line_and_exit_code_2() {
    let desk = Desk::new();
    let search = |corpus: &str, more: &[&str]| {
        desk.run(&[&["search", QUESTION, "--corpus", corpus], more, &LANES].concat())
    };
    search("not-there.jsonl", &[]).bad(&["not-there.jsonl: no such file or folder"]);

    let good = r#"{"_id": "a", "text": "zoos"}"#;
    desk.write("malformed.jsonl", format!("{good}\n{{\"_id\": \"b\", \"te\u{1b}[31mxt\": \n"));
    search("malformed.jsonl", &[]).bad(&["malformed.jsonl:2: expected a JSON object", "nothing was taken"]);

    desk.write("twice.jsonl", format!("{good}\n\n{good}\n"));
    search("twice.jsonl", &[]).bad(&["twice.jsonl:3: expected an id of its own", "`a`"]);

    desk.write("empty.jsonl", "");
    search("empty.jsonl", &[]).bad(&["empty.jsonl: the corpus is empty"]);

    fs::create_dir(desk.files.path().join("nothing")).unwrap();
    search("nothing", &[]).bad(&["nothing: the corpus is empty", ".txt, .md or .html"]);

    desk.write("latin1/a.txt", b"caf\xe9");
    search("latin1", &[]).bad(&["a.txt: not UTF-8 text"]);

    desk.write("corpus.docx", "zoos");
    search("corpus.docx", &[]).bad(&["corpus.docx: expected a corpus", ".jsonl"]);

    let corpus = tiny(&desk);
    let questions = desk.write("questions.tsv", format!("q1\t{QUESTION}\n"));
    desk.write("labels.qrels", "q1 1 a 1\nq9 1 a 1\n");
    let labels = ["--questions", &questions, "--labels", "labels.qrels"];
    search(&corpus, &labels).bad(&["labels.qrels:2: expected a question of the question set"]);

    desk.write("questions.jsonl", "{\"question\": \"x\"}\nnonsense\n");
    search(&corpus, &["--questions", "questions.jsonl"]).bad(&["questions.jsonl:2: expected a JSON object"]);
    assert!(desk.corpora().iter().all(|path| !path.ends_with("building")));
}

#[test]
fn bad_words_on_the_command_line_are_told_with_exit_code_2() {
    let desk = Desk::new();
    desk.run(&["search", QUESTION, "--lane", "bm52"]).bad(&["bm52", "expected bm25"]);
    desk.run(&["search", QUESTION, "--lane", "bm25@b=2"]).bad(&["b=NUMBER (0 to 1)"]);
    desk.run(&["search", " "]).bad(&["the question is empty"]);
    desk.run(&["search", QUESTION, "-k", "0"]).bad(&["1..=100"]);
    desk.run(&["serach"]).bad(&["did you mean `search`?"]);
    desk.run(&["frame", "--keys", "<Entr>"]).bad(&["<Entr>", "expected a key"]);
    desk.run(&["frame", "--size", "0x0"]).bad(&["columns and rows"]);
    desk.run(&[]).bad(&["needs a terminal", "parallax search"]);
    desk.run(&["explore", QUESTION]).bad(&["needs a terminal"]);
    // What is asked as a question on purpose is one.
    desk.run(&["explore", "serach"]).bad(&["needs a terminal"]);
}

#[test]
fn a_mistyped_subcommand_with_a_question_behind_it_is_recognised_too() {
    Desk::new().run(&["serach", QUESTION]).bad(&["did you mean `search`?"]);
}

#[test]
fn a_folder_is_cut_into_passages_of_a_hundred_words() {
    let desk = Desk::new();
    let words: Vec<String> =
        (0..10_000).map(|i| if i % 100 == 0 { "zoos".into() } else { format!("w{i}") }).collect();
    desk.write("texts/long.txt", words.join(" "));
    desk.write("texts/below/one.md", "alone\n");
    desk.write("texts/notes.csv", "not,read");
    let all = desk.json(&[&["search", "zoos", "--corpus", "texts", "-k", "100"], &LANES[..]].concat());
    assert_eq!(all["corpus"], json!({"name": "texts", "passages": 101}));
    let hits = all["lanes"][0]["hits"].as_array().unwrap();
    assert_eq!(hits.len(), 100);
    for hit in hits {
        assert_eq!(hit["text"].as_str().unwrap().split(' ').count(), 100);
        assert!(hit["id"].as_str().unwrap().starts_with("long#"));
    }
    let all = desk.json(&[&["search", "alone", "--corpus", "texts"], &LANES[..]].concat());
    assert_eq!(all["lanes"][0]["hits"][0]["id"], "below/one#1");
}

#[test]
fn escape_sequences_of_a_passage_do_not_reach_the_terminal() {
    let desk = Desk::new();
    let corpus = desk.write(
        "corpus.jsonl",
        jsonl(&[("\u{1b}[31mid\tx", "\u{1b}]0;owned\u{7} zoos", "\u{1b}[2J zoos \u{9b}31m \u{202e}turned")]),
    );
    for format in ["text", "tsv"] {
        let question = "Should \u{1b}[31m zoos be banned?";
        let arguments = ["search", question, "--corpus", &corpus, "--format", format];
        let out = desk.run(&[&arguments[..], &LANES].concat()).good();
        assert!(!out.chars().any(|c| c.is_control() && c != '\n' && c != '\t'), "{out:?}");
        assert!(!out.contains('\u{202e}'), "{out:?}");
        assert!(out.contains("␛[31mid x"), "{out:?}");
    }
    let frame = desk
        .run(&["frame", "--corpus", &corpus, "--keys", "zoos<Enter><Wait><Enter>", "--lanes", "bm25"])
        .good();
    assert!(!frame.chars().any(|c| c.is_control() && c != '\n'), "{frame:?}");
}

/// Large enough that a kill always comes before the end.
fn large(desk: &Desk) -> (String, usize) {
    let passages: usize = 30_000;
    let lines = (0..passages).map(|i| {
        let text: Vec<String> = (0..30).map(|j| format!("w{}", (i * 31 + j * j * 17) % 9_973)).collect();
        json!({"_id": i.to_string(), "text": format!("zoos {}", text.join(" "))}).to_string() + "\n"
    });
    (desk.write("large.jsonl", lines.collect::<String>()), passages)
}

/// Starts a search and kills it as soon as it tells of the job.
fn killed_while(desk: &Desk, corpus: &str, job: &str) {
    let mut command = desk.command(&[&["search", "zoos", "--corpus", corpus], &LANES[..]].concat());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut told = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    told.read_line(&mut line).unwrap();
    child.kill().unwrap();
    assert!(!child.wait().unwrap().success(), "it ended before it was killed");
    assert!(line.starts_with(job), "{line}");
}

#[test]
fn a_kill_while_importing_or_indexing_leaves_nothing_half_built() {
    let desk = Desk::new();
    let (corpus, passages) = large(&desk);
    killed_while(&desk, &corpus, "importing");
    for path in desk.corpora() {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        assert!(name.ends_with(".building") || name.ends_with(".lock"), "{name}");
    }
    let search = || desk.json(&[&["search", "zoos", "--corpus", corpus.as_str()], &LANES[..]].concat());
    let whole = search();
    assert_eq!(whole["corpus"]["passages"], json!(passages));
    let folder = desk.data.join("corpora").join(whole["provenance"]["corpus"].as_str().unwrap());
    fs::remove_dir_all(folder.join(TermIndex::FOLDER)).unwrap();
    killed_while(&desk, &corpus, "indexing");
    assert!(
        !folder.join(TermIndex::FOLDER).exists()
            && folder.join(TermIndex::FOLDER).with_extension("building").exists()
    );
    assert_eq!(search()["lanes"], whole["lanes"]);
    assert!(!folder.join(TermIndex::FOLDER).with_extension("building").exists());
}

#[test]
fn leftovers_of_a_build_are_swept_away() {
    let desk = Desk::new();
    let corpus = tiny(&desk);
    let arguments = [&["search", QUESTION, "--corpus", &corpus], &LANES[..]].concat();
    let whole = desk.json(&arguments);
    let folder = desk.data.join("corpora").join(whole["provenance"]["corpus"].as_str().unwrap());
    let leave = |place: &Path| {
        fs::create_dir_all(place.join("below")).unwrap();
        fs::write(place.join("passages.jsonl"), "half a li").unwrap();
        fs::write(place.join("meta.json"), "half a li").unwrap();
    };
    fs::remove_dir_all(&folder).unwrap();
    leave(&folder.with_extension("building"));
    assert_eq!(desk.json(&arguments)["lanes"], whole["lanes"]);
    fs::remove_dir_all(folder.join(TermIndex::FOLDER)).unwrap();
    leave(&folder.join(TermIndex::FOLDER).with_extension("building"));
    assert_eq!(desk.json(&arguments)["lanes"], whole["lanes"]);
    assert!(
        !folder.with_extension("building").exists()
            && !folder.join(TermIndex::FOLDER).with_extension("building").exists()
    );
}

#[test]
fn a_passage_without_a_text_is_taken_as_published_corpora_hold_some_and_judged_by_its_title() {
    let desk = Desk::new();
    desk.write("silent.jsonl", "{\"_id\": \"a\", \"title\": \"Zoos\", \"text\": \" \"}\n");
    let args = [&["search", QUESTION, "--corpus", "silent.jsonl", "--format", "json"], &LANES[..]].concat();
    let found: Value = serde_json::from_str(&desk.run(&args).good()).unwrap();
    let hit = &found["lanes"][0]["hits"][0];
    assert_eq!(hit["id"], "a");
    assert!(hit["verdicts"][0]["p"].is_number(), "{hit}");
}

#[test]
fn a_data_folder_that_is_a_file_is_told_with_the_option_that_names_another() {
    let mut desk = Desk::new();
    let corpus = tiny(&desk);
    desk.write("in-the-way", "a file");
    desk.data = desk.files.path().join("in-the-way");
    desk.run(&[&["search", QUESTION, "--corpus", &corpus], &LANES[..]].concat())
        .bad(&["--data-dir", "in-the-way"]);
    let told = desk.run(&[&["search", QUESTION], &LANES[..]].concat());
    assert!(told.err.contains("verdicts are not kept"), "{}", told.err);
    assert!(told.good().contains("5/5 judged"));
}

#[test]
fn statements_are_printed_one_object_a_line() {
    let desk = Desk::new();
    desk.write("questions.txt", "Is tea good?\n\nWho pays?\n");
    let out = desk.run(&["statements", QUESTION, "--file", "questions.txt"]).good();
    let all: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let zoos = json!({"question": QUESTION, "perspectives": ["Zoos should be banned.", "Zoos should not be banned."], "supports": 0, "by": "rule"});
    assert_eq!(all[0], zoos);
    assert_eq!(all[1]["perspectives"], json!(["Tea is good.", "Tea is not good."]));
    assert_eq!(all[2], json!({"question": "Who pays?", "perspectives": [], "supports": null, "by": "none"}));
    assert_eq!(all.len(), 3);
    desk.run(&["statements"]).bad(&["no question"]);
}

#[test]
fn a_frame_is_printed_with_its_styles() {
    let desk = Desk::new();
    let arguments = ["frame", "--size", "60x12", "--style", "--keys", "<Esc>?"];
    let out = desk.run(&arguments).good();
    let blocks: Vec<&str> = out.split("\n\n").collect();
    let (text, rest) = out.split_at(out.lines().take(12).map(|line| line.len() + 1).sum());
    assert!(text.contains("Keys") && rest.contains("bold"), "{out}");
    assert!(blocks.last().unwrap().lines().any(|line| line.ends_with("cyan bold")), "{out}");
    let plain = desk.run(&[&arguments[..], &["--no-color"]].concat()).good();
    assert!(!plain.contains("cyan"));
    let quiet = told(desk.command(&arguments).env("NO_COLOR", "1"));
    assert_eq!(quiet.good(), plain);
}

#[test]
fn pairs_of_a_file_are_judged_and_measured_where_it_has_labels() {
    let desk = Desk::new();
    let pairs = [
        "id\tdocument\tperspective\tlabel",
        "p1\tZoos should be banned, for no cage is kind.\tZoos should be banned.\t1",
        "p2\tZoos should be banned, for no cage is kind.\tZoos should not be banned.\t0",
        "p3\tThe zoo opens at nine.\tZoos should be banned.\t0",
        "p4\t\tZoos should be banned.\t",
    ];
    desk.write("pairs.tsv", pairs.join("\n"));
    let told = desk.run(&["detect", "--pairs", "pairs.tsv"]);
    assert!(!told.err.is_empty(), "the figures go to standard error");
    let out = told.good();
    let rows: Vec<Vec<&str>> = out.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(rows[0], ["id", "p", "supports", "error"]);
    assert!(rows.iter().map(|row| row[0]).eq(["id", "p1", "p2", "p3", "p4"]));
    assert_eq!(rows[4], ["p4", "", "", "the passage is empty"]);
    let all = desk.json(&["detect", "--pairs", "pairs.tsv"]);
    assert!(all["report"].is_object() && all["pairs"].as_array().unwrap().len() == 4);
    let p = all["pairs"][0]["p"].as_f64().unwrap();
    assert_eq!(rows[1][1], format!("{p:.4}"));
    desk.write("bad.tsv", "document\tperspective\tlabel\na\tb\tperhaps\n");
    desk.run(&["detect", "--pairs", "bad.tsv"]).bad(&["bad.tsv:2: expected a label of 1 or 0"]);
}

#[test]
fn a_closed_pipe_is_quiet() {
    let desk = Desk::new();
    let many = vec![QUESTION; 500].join("\n");
    desk.write("many.txt", many);
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
        let child = desk.command(arguments).stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
        let output = child.wait_with_output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(err.is_empty() && output.status.success(), "{arguments:?}: {:?} {err}", output.status);
    }
}

#[test]
fn help_and_version_are_answers() {
    let desk = Desk::new();
    assert!(desk.run(&["--help"]).good().contains("--data-dir"));
    assert!(desk.run(&["--version"]).good().contains(env!("CARGO_PKG_VERSION")));
    assert!(desk.run(&["search", "--help"]).good().contains("--format"));
}

#[test]
fn questions_come_from_standard_input_too() {
    let desk = Desk::new();
    let mut child = desk
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
fn the_comparison_on_screen_and_eval_berds_print_the_same_numbers() {
    let desk = Desk::new();
    let plan = ["--lane", "bm25", "--lane", "bm25@k1=1.2,b=.75", "--label-source", "gold"];
    let table = desk.run(&[&["eval", "berds", "--format", "json"], &plan[..]].concat()).good();
    let table: Value = serde_json::from_str(&table).unwrap();
    let screen =
        desk.run(&[&["frame", "--size", "140x40", "--keys", "<Esc>c<Wait>"], &plan[..]].concat()).good();
    assert!(screen.contains("24/24 questions"), "{screen}");
    for (row, name) in table["rows"].as_array().unwrap().iter().zip(["BM25 ", "BM25 k1=1.2 b=0.…"]) {
        let mean = |measure: &str| share(row["measures"][measure]["mean"].as_f64().unwrap());
        let line = screen.lines().find(|line| line.starts_with(&format!("│  {name}"))).unwrap();
        let rest = line.split_once(name).unwrap().1.trim_start();
        assert!(rest.starts_with(&format!("{} (", mean("MRecall@5"))), "{rest}\n{row}");
        let prec = rest.split_once(") ").unwrap().1.trim_start();
        assert!(prec.starts_with(&mean("Prec@5")), "{prec}\n{row}");
        let sides: Vec<&str> = prec.split_whitespace().skip(1).take(4).collect();
        let expected = ["only-1@5", "only-2@5", "both@5", "neither@5"].map(mean);
        assert_eq!(sides, expected, "{line}");
    }
}

#[test]
fn a_floor_under_a_lane_decides_the_exit_code_and_a_page_needs_nothing_beside_it() {
    let desk = Desk::new();
    let eval = |more: &[&str]| {
        desk.run(&[&["eval", "berds", "--lanes", "bm25", "--label-source", "gold"], more].concat())
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
    let plots = fs::read_dir(desk.files.path().join("plots")).unwrap().count();
    assert!(plots >= 3, "{plots}");
    for format in ["md", "latex", "tsv", "text"] {
        assert!(eval(&["--format", format]).good().contains("MRecall@5"), "{format}");
    }
}

#[test]
fn switches_given_beside_the_lanes_are_taken_by_those_that_have_none_and_wrong_ones_are_told() {
    let desk = Desk::new();
    let search = |more: &[&str]| desk.run(&[&["search", QUESTION], more].concat());
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
        (&["--expand", "q2d"], "csqe"),
        (&["--pap", "papp"], "dual-sum"),
        (&["--pap", "pap", "--toward", "0"], "from 1"),
        (&["--diversify", "best"], "xquad"),
        (&["--lane", "bm25+pap@1"], "lane of vectors"),
        (&["--llm", "http://127.0.0.1:1/v1"], "llm-model"),
        (
            &["--llm", "gguf:none.gguf"],
            if cfg!(feature = "local-llm") { "none.gguf: no such file" } else { "--features local-llm" },
        ),
    ] {
        let told = search(wrong);
        assert_eq!(told.code, Some(2), "{wrong:?}");
        assert!(told.err.contains(words), "{wrong:?}: {}", told.err);
    }
}

#[test]
fn a_frame_is_saved_in_the_form_that_its_ending_names() {
    let desk = Desk::new();
    let frame = ["frame", "--size", "80x24", "--keys", "<Esc>?"];
    for (name, begins) in
        [("a.svg", &b"<svg"[..]), ("a.png", b"\x89PNG"), ("a.html", b"<!DOCTYPE"), ("a.txt", b" parallax")]
    {
        assert_eq!(desk.run(&[&frame[..], &["--out", name]].concat()).good(), "");
        assert!(fs::read(desk.files.path().join(name)).unwrap().starts_with(begins), "{name}");
    }
    desk.run(&[&frame[..], &["--out", "a.gif"]].concat()).bad(&["a.gif", ".svg, .png, .html or .txt"]);
}

#[test]
fn how_deep_the_model_is_asked_does_not_depend_on_labels_that_do_not_count() {
    let desk = Desk::new();
    let corpus = tiny(&desk);
    desk.write("q.jsonl", format!("{{\"id\": \"q\", \"question\": \"{QUESTION}\"}}\n"));
    let mut yes = String::from("id\tperspective\tlabel\n");
    for id in fs::read_to_string(desk.files.path().join(&corpus)).unwrap().lines() {
        let id: Value = serde_json::from_str(id).unwrap();
        for side in ["Zoos should be banned.", "Zoos should not be banned."] {
            yes.push_str(&format!("{}\t{side}\t1\n", id["_id"].as_str().unwrap()));
        }
    }
    desk.write("yes.tsv", yes);
    let eval = |more: &[&str]| {
        let args =
            ["eval", "coverage", "--corpus", &corpus, "--questions", "q.jsonl", "--lanes", "bm25", "-k", "1"];
        desk.run(&[&args[..], &["--label-source", "model", "--format", "tsv"], more].concat()).good()
    };
    assert_eq!(eval(&[]), eval(&["--labels", "yes.tsv:complete"]));
}

#[test]
fn the_lists_behind_a_table_are_written_as_other_tools_read_them() {
    let desk = Desk::new();
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
    let table = desk.run(&[&eval[..], &["--format", "json", "-k", "5"]].concat()).good();
    let table: Value = serde_json::from_str(&table).unwrap();
    let out = desk.files.path().join("out");
    let names = ["bm25@k1=0.9,b=0.4", "bm25@k1=0.9,b=0.4+mmr@0.5"];
    for (name, row) in names.iter().zip(table["rows"].as_array().unwrap()) {
        // The run and the qrels give Prec back: a passage counts that supports any perspective.
        let measured = desk.run(&[
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
fn eval_berds_takes_measures_by_name_beside_its_own_and_refuses_what_needs_other_judgements() {
    let desk = Desk::new();
    let eval = |names: &str| {
        desk.run(&[
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
fn what_a_diversifier_chooses_does_not_depend_on_labels() {
    let desk = Desk::new();
    let corpus = tiny(&desk);
    desk.write("q.jsonl", format!("{{\"id\": \"q\", \"question\": \"{QUESTION}\"}}\n"));
    let mut yes = String::from("id\tperspective\tlabel\n");
    for side in ["Zoos should be banned.", "Zoos should not be banned."] {
        yes.push_str(&format!("c\t{side}\t1\n"));
    }
    desk.write("yes.tsv", yes);
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
        let found: Value = serde_json::from_str(&desk.run(&[&args[..], more].concat()).good()).unwrap();
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
fn an_interrupted_eval_ends_with_130_and_prints_no_table_and_the_same_command_then_does() {
    let desk = Desk::new();
    let args = ["eval", "berds", "--lanes", "minilm", "-k", "20"];
    let mut child = desk.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut told = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("measuring") {
        line.clear();
        assert!(told.read_line(&mut line).unwrap() > 0, "it ended before it measured");
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let out = child.wait_with_output().unwrap();
    assert_eq!((out.status.code(), out.stdout.len()), (Some(130), 0));
    desk.run(&args).good();
}
