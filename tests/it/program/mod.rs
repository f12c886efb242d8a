//! The real binary in a temporary folder.

mod commands;
mod screen;
mod tables;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use parallax::report::marks::share;
use parallax::retrieve::TermIndex;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::stage::QUESTION;

const LANES: [&str; 2] = ["--lanes", "bm25"];

/// A folder for files, a folder for data, and the program.
pub struct Workspace {
    pub files: TempDir,
    pub data: PathBuf,
}

pub struct Printed {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Printed {
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

impl Workspace {
    pub fn new() -> Self {
        let files = tempfile::tempdir().unwrap();
        let data = files.path().join("data");
        Workspace { files, data }
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

    pub fn run(&self, arguments: &[&str]) -> Printed {
        printed(&mut self.command(arguments))
    }

    #[track_caller]
    pub fn json(&self, arguments: &[&str]) -> Value {
        let arguments = [arguments, &["--format", "json"]].concat();
        serde_json::from_str(&self.run(&arguments).good()).unwrap()
    }

    /// The files below the corpora of the data folder.
    pub fn corpora(&self) -> Vec<PathBuf> {
        let Ok(listing) = fs::read_dir(self.data.join("corpora")) else { return Vec::new() };
        listing.map(|entry| entry.unwrap().path()).collect()
    }
}

/// The program; the long campaigns name one that was built with all optimisations.
pub fn program() -> String {
    std::env::var("PARALLAX_PROGRAM").unwrap_or_else(|_| env!("CARGO_BIN_EXE_parallax").to_owned())
}

pub fn printed(command: &mut Command) -> Printed {
    let output = command.output().unwrap();
    Printed {
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

/// An empty configuration, so that the tester's own is never read.
pub const NO_CONFIG: &str = if cfg!(windows) { "NUL" } else { "/dev/null" };

/// A corpus of six passages.
pub fn tiny(workspace: &Workspace) -> String {
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
    workspace.write("tiny/corpus.jsonl", jsonl(&passages))
}

/// The figures after every `name` in a frame, from left to right.
fn figures(frame: &str, name: &str) -> Vec<String> {
    let after = frame.split(name).skip(1);
    let ends = |c: char| c.is_whitespace() || "┃│".contains(c);
    after.map(|rest| rest.split(ends).find(|word| !word.is_empty()).unwrap_or_default().to_owned()).collect()
}

/// Large enough that a kill always comes before the end.
fn large(workspace: &Workspace) -> (String, usize) {
    let passages: usize = 30_000;
    let lines = (0..passages).map(|i| {
        let text: Vec<String> = (0..30).map(|j| format!("w{}", (i * 31 + j * j * 17) % 9_973)).collect();
        json!({"_id": i.to_string(), "text": format!("zoos {}", text.join(" "))}).to_string() + "\n"
    });
    (workspace.write("large.jsonl", lines.collect::<String>()), passages)
}

/// Starts a search and kills it as soon as it reports the job.
fn killed_while(workspace: &Workspace, corpus: &str, job: &str) {
    let mut command = workspace.command(&[&["search", "zoos", "--corpus", corpus], &LANES[..]].concat());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut printed = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    printed.read_line(&mut line).unwrap();
    child.kill().unwrap();
    assert!(!child.wait().unwrap().success(), "it ended before it was killed");
    assert!(line.starts_with(job), "{line}");
}
