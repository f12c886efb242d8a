//! Files that are meant to do harm: passages with terminal control sequences, lines and archives without end, models that claim more than they
//! are. The real program opens each; its memory and time are limited.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;

use super::memory::ran;
use super::targets::root;
use super::{long, report};
use crate::program::{Printed, Workspace};

/// The limit of memory in MB for any of these files.
const MOST: u64 = 1_600;
/// The limit of time. In a long run, models need minutes for the passages.
const PATIENCE: Duration = Duration::from_secs(1_200);

/// Runs a command. Returns its output and its peak memory in MB.
fn run(workspace: &Workspace, arguments: &[&str]) -> (Printed, u64) {
    let (output, most) = ran(&mut workspace.command(arguments), PATIENCE);
    let text = |bytes| String::from_utf8(bytes).expect("output is UTF-8");
    let ended = Printed { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) };
    assert!(
        ended.code.is_some(),
        "{arguments:?} was ended by a signal, or killed after {PATIENCE:?}: {}",
        ended.err
    );
    assert!(!ended.err.contains("panicked"), "{arguments:?}: {}", ended.err);
    assert!(
        !has_controls(&ended.out) && !has_controls(&ended.err),
        "{arguments:?}: {:?} {:?}",
        ended.out,
        ended.err
    );
    assert!(most < MOST, "{arguments:?} held {most} MB");
    (ended, most)
}

/// Anything that controls a terminal or reverses text.
fn has_controls(text: &str) -> bool {
    text.contains(|c: char| {
        c != '\n' && c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    })
}

/// Hostile texts with their names.
fn passages() -> Vec<(&'static str, String)> {
    // At full length, every model needs minutes for them.
    let many = if long().is_some() { 1 } else { 100 };
    vec![
        ("CSI", "zoos \u{1b}[2J\u{1b}[31m\u{1b}[999;999H\u{9b}5m \u{1b}[?1049l".into()),
        ("OSC 52", "zoos \u{1b}]52;c;cm0gLXJmIC8=\u{7} \u{1b}]0;title\u{1b}\\".into()),
        ("OSC 8", "zoos \u{1b}]8;;http://evil.example\u{1b}\\here\u{1b}]8;;\u{1b}\\".into()),
        ("DCS", "zoos \u{1b}P1$r0m\u{1b}\\ \u{90}q\u{9c} \u{1b}_apc\u{1b}\\ \u{1b}^pm\u{1b}\\".into()),
        ("bidi", "zoos \u{202e}denrut\u{202c} \u{2066}\u{2067}\u{2068}\u{2069} \u{200f}\u{61c}".into()),
        ("zero width", format!("zoos{}", "\u{200b}\u{200d}\u{feff}\u{2060}".repeat(5_000 / many))),
        ("marks", format!("zoos a{} b", "\u{301}\u{335}\u{489}".repeat(3_000 / many))),
        ("CJK", "動物園は必要か。".repeat(500 / many)),
        ("emoji", "👩\u{200d}🚀👨\u{200d}👩\u{200d}👧\u{200d}👦🇫🇷✊🏽".repeat(300 / many)),
        ("NUL", "zoos \0\0\u{1}\u{7f} \u{85}".into()),
        ("one word", "z".repeat(20_000 / many)),
        ("blanks", format!("zoos{}x", " \t\n\u{a0}\u{3000}".repeat(20_000 / many))),
        ("a long line", format!("zoos {}", "banned cages ".repeat(800_000 / many / 4))),
    ]
}

#[test]
fn passages_with_control_sequences_are_shown_as_text() {
    let workspace = Workspace::new();
    let all = passages();
    let line = |(i, (what, text)): (usize, &(&str, String))| {
        json!({"_id": format!("{i}\u{1b}[31m"), "title": format!("{what}\u{1b}]0;x\u{7}"), "text": text})
            .to_string()
            + "\n"
    };
    workspace.write("hostile.jsonl", all.iter().enumerate().map(line).collect::<String>());
    let (added, first) = run(&workspace, &["corpus", "add", "hostile.jsonl"]);
    assert_eq!(added.code, Some(0), "{}", added.err);
    let (found, second) = run(
        &workspace,
        &["search", "Should zoos be banned?", "--corpus", "hostile", "--lanes", "bm25,minilm", "-k", "5"],
    );
    assert_eq!(found.code, Some(0), "{}", found.err);
    let mut most = first.max(second);
    // Every passage is read to its end in a wide and a narrow frame, and labelled.
    for size in ["80x24", "40x12"] {
        let keys = format!(
            "Should zoos be banned?<Enter><Wait>{}<Esc>a<Wait>js<Wait>",
            "<Enter>G<Esc>j".repeat(all.len())
        );
        let frame = ["frame", "--corpus", "hostile", "--lanes", "bm25", "--size", size, "--keys", &keys];
        let (drawn, held) = run(&workspace, &frame);
        assert_eq!(drawn.code, Some(0), "{}", drawn.err);
        most = most.max(held);
    }
    report(&format!(
        "hostile passages: {} kinds added, searched, drawn and labelled; at most {most} MB",
        all.len()
    ));
}

/// Commands that print nothing of anybody's files: the explorer, whose frames are tested, what is built in, and what needs another
/// machine, whose replies `servers` tests.
const PRINTS_NOTHING_FOREIGN: &[&str] = &[
    "explore",
    "completions",
    "man",
    "models list",
    "models get",
    "corpus from-web",
    "corpus push",
    "demo",
    "config path",
];

/// The commands of the parser that have no commands below them.
fn leaves(command: &clap::Command, words: &[&str], found: &mut Vec<String>) {
    if command.get_subcommands().next().is_none() {
        found.push(words.join(" "));
    }
    for below in command.get_subcommands() {
        leaves(below, &[words, &[below.get_name()]].concat(), found);
    }
}

#[test]
fn no_command_prints_what_a_terminal_obeys_or_a_formula() {
    const EVIL: &str = "\u{1b}[2J\u{9b}31m\u{202e}\u{7}\u{2066}";
    let workspace = Workspace::new();
    let id = |i: usize| format!("=1+{i}{EVIL}");
    let passage = |i: usize, side: &str, text: &str| {
        let metadata = json!({"side": format!("@{side}{EVIL}"), "topic": format!("+zoos{EVIL}")});
        json!({"_id": id(i), "title": format!("title {i}{EVIL}"), "text": text, "metadata": metadata})
            .to_string()
            + "\n"
    };
    let texts = ["Zoos should be banned.", "Zoos should not be banned.", "Zoos protect animals."];
    let lines = (0..12).map(|i| passage(i, ["pro", "con"][i % 2], texts[i % 3]));
    workspace.write("evil.jsonl", lines.collect::<String>());
    let (asked, sides) = (
        format!("Should zoos{EVIL} be banned?"),
        ["Zoos should be banned", "Zoos should not be banned"].map(|side| format!("{side}{EVIL}.")),
    );
    let question = json!({
        "id": format!("q{EVIL}"), "question": asked, "perspectives": sides, "metadata": {"topic": format!("t{EVIL}")},
    });
    let name = format!("evil-questions{EVIL}.jsonl");
    workspace.write(&name, format!("{question}\n"));
    let mut other = question.clone();
    (other["id"], other["metadata"]["topic"]) = (format!("r{EVIL}").into(), format!("u{EVIL}").into());
    workspace.write("two.jsonl", format!("{question}\n{other}\n"));
    let pairs = (0..4).map(|i| format!("=2+{i}{EVIL}\t{}\tZoos{EVIL} should be banned.\n", texts[i % 3]));
    workspace.write("evil-pairs.tsv", format!("id\tdocument\tperspective\n{}", pairs.collect::<String>()));
    // Two annotators, of whom one says yes where the other says no, with remarks.
    let labels = |label: usize| {
        let row = |i: usize| {
            let (id, side) = (id(i), &sides[0]);
            format!("{asked}\t{id}\t{}\t{side}\t{}\t=remark{EVIL}\n", texts[i % 3], (i + label) % 2)
        };
        "question\tid\tdocument\tperspective\tlabel\tnote\n".to_owned() + &(0..6).map(row).collect::<String>()
    };
    workspace.write("anna.tsv", labels(0));
    workspace.write("ben.tsv", labels(1));
    workspace.write(
        "evil.run",
        format!("q{EVIL} Q0 {} 1 2.0 @tag{EVIL}\nq{EVIL} Q0 -x{EVIL} 2 1.0 @tag{EVIL}\n", id(0)),
    );
    workspace.write("evil.qrels", format!("q{EVIL} 0 {} 1\n", id(0)));
    let read = json!([{"question": asked, "answers": [format!("Ann{EVIL}")],
        "ctxs": [{"id": id(0), "title": format!("t{EVIL}"), "text": format!("It was Ann{EVIL}.")}]}]);
    workspace.write("reading.json", read.to_string());
    let answer = json!({"question": asked, "k": 1, "answer": format!("=Ann{EVIL}")});
    workspace.write("answers.jsonl", format!("{answer}\n"));
    let prompt = fs::read_to_string(root("assets/prompts/detect.toml")).unwrap();
    workspace.write("evil.toml", prompt.replace("You judge", "You \u{202e}\u{2066} judge"));
    workspace.write(
        "evil-config.toml",
        format!("theme = \"{}\"\n", EVIL.escape_unicode().to_string().replace("u{", "U{")),
    );
    let add = ["corpus", "add", "evil.jsonl", "--name", "evil"];
    assert_eq!(run(&workspace, &add).0.code, Some(0));
    let set = ["--corpus", "evil.jsonl", "--questions", name.as_str(), "--lanes", "bm25"];
    let of_set = ["--corpus", "evil.jsonl", "--questions", name.as_str()];
    let with = |words: &[&'static str]| [words, &set[..]].concat();
    let labels = |words: &[&'static str]| [words, &of_set[..]].concat();
    let mut commands = vec![
        vec!["corpus", "list"],
        vec!["corpus", "add", "evil.jsonl", "--dry-run"],
        vec!["corpus", "info", "evil"],
        vec!["corpus", "pir", "evil", "--topic", "topic", "--side", "side", "--out", "task"],
        vec!["corpus", "overlap", "evil", "evil"],
        vec!["corpus", "vectors", "evil", "evil.run", "--model", "minilm"],
        vec!["statements", &asked],
        vec!["questions", "info", &name],
        vec![
            "questions",
            "split",
            "two.jsonl",
            "--topic",
            "topic",
            "--dev",
            "dev.jsonl",
            "--test",
            "test.jsonl",
        ],
        vec!["prompts", "--prompt", "evil.toml"],
        vec!["config", "check", "evil-config.toml"],
        vec!["config", "show", "--config", "evil-config.toml"],
        vec!["models", "check", "path:evil.jsonl"],
        vec!["detect", "--pairs", "evil-pairs.tsv", "--format", "tsv"],
        vec!["detect", "--pairs", "evil-pairs.tsv", "--format", "text"],
        vec!["detect", "--pairs", "evil-pairs.tsv", "--format", "json"],
        with(&["annotate", "new", "project", "--annotators", "anna,ben", "--overlap", "1"]),
        labels(&["annotate", "import", "anna.tsv", "--format", "tsv", "--into", "project", "--by", "anna"]),
        labels(&["annotate", "import", "ben.tsv", "--format", "tsv", "--into", "project", "--by", "ben"]),
        vec!["annotate", "status", "project"],
        vec!["annotate", "grow", "project", "--annotators", "cleo"],
        vec!["annotate", "fsck", "project"],
        vec!["annotate", "merge", "merged.jsonl", "project"],
        labels(&["annotate", "remap", "project"]),
        vec!["eval", "trec", "--run", "evil.run", "--qrels", "evil.qrels", "--per-question"],
        vec!["eval", "reader", "--questions", "reading.json", "--answers", "answers.jsonl", "-k", "1"],
        with(&["frame", "--keys", "Should zoos be banned?<Enter><Wait>", "--size", "100x30"]),
        with(&["eval", "berds", "--out", "table.txt"]),
        vec!["reproduce", "table.txt.json"],
        vec!["doctor", "--offline"],
    ];
    for format in ["text", "tsv", "md", "json"] {
        commands.push(labels(&["annotate", "agree", "project", "--model", "--format", format]));
        commands.push(vec!["annotate", "report", "project", "--format", format]);
    }
    for format in ["tsv", "csv", "hf", "label-studio", "berds", "qrels"] {
        let words = ["annotate", "export", "project", "--format", format, "--out", "exported"];
        commands.push([&words[..], &of_set].concat());
    }
    for format in ["text", "tsv", "md", "latex", "json", "html"] {
        commands.push(with(&["eval", "bias", "--attribute", "side", "--format", format]));
    }
    for format in ["text", "tsv", "json"] {
        commands.push([&["search", asked.as_str(), "--format", format], &set[..]].concat());
        for suite in ["berds", "coverage", "sycophancy"] {
            commands.push(with(&["eval", suite, "--per-question", "--format", format]));
        }
    }
    commands.push(vec!["corpus", "rm", "evil", "--yes"]);
    let mut all = Vec::new();
    leaves(&parallax::cli::parser(), &[], &mut all);
    let (mut silent, mut wrong) = (all.clone(), Vec::new());
    silent.retain(|leaf| !PRINTS_NOTHING_FOREIGN.contains(&leaf.as_str()));
    for arguments in &commands {
        silent.retain(|leaf| !(arguments.join(" ") + " ").starts_with(&format!("{leaf} ")));
        let mut command = workspace.command(arguments);
        let output = command.output().unwrap();
        for text in [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()) {
            if has_controls(&text.replace('\t', " ")) || text.contains("panicked") {
                wrong.push(format!("{arguments:?}: {text:?}"));
            }
            let cells = || text.lines().flat_map(|line| line.split('\t'));
            let table =
                arguments.contains(&"tsv") && arguments[0] != "annotate" || arguments.contains(&"list");
            if table && cells().any(|cell| cell.starts_with(['=', '@'])) {
                wrong.push(format!("a formula of {arguments:?}: {text}"));
            }
            // What is refused shows what was foreign too, but the list holds what a command prints when all is well.
            if output.status.code() == Some(2)
                && !text.is_empty()
                && !REFUSED.contains(&arguments[..2].join(" ").as_str())
            {
                wrong.push(format!("{arguments:?} was refused: {text}"));
            }
        }
        assert!(matches!(output.status.code(), Some(0..=2)), "{arguments:?}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(silent.is_empty(), "no hostile input for {silent:?}");
}

/// Commands of that test that refuse their input in words.
const REFUSED: &[&str] =
    &["annotate export", "corpus overlap", "corpus vectors", "config check", "config show", "models check"];

#[test]
fn bytes_that_are_not_utf_8_are_reported_with_their_line() {
    let workspace = Workspace::new();
    workspace.write(
        "bad.jsonl",
        [b"{\"_id\":\"a\",\"text\":\"x\"}\n{\"_id\":\"b\",\"text\":\"\xff\xfe\"}\n".as_slice(), &[0; 100]]
            .concat(),
    );
    let (refused, _) = run(&workspace, &["corpus", "add", "bad.jsonl"]);
    refused.bad(&["bad.jsonl:2: expected UTF-8 text", "nothing was taken"]);
}

/// Compressed zeros: a thousandth of their size on the disk.
fn zeros(place: &Path, bytes: u64) {
    let block = vec![0; 1 << 20];
    let file = File::create(place).unwrap();
    let blocks = bytes >> 20;
    if place.extension().is_some_and(|end| end == "gz") {
        // Concatenated gzip members are one archive.
        let mut member = GzEncoder::new(Vec::new(), Compression::best());
        (0..64).for_each(|_| member.write_all(&block).unwrap());
        let member = member.finish().unwrap();
        (0..blocks.div_ceil(64)).for_each(|_| (&file).write_all(&member).unwrap());
    } else {
        let mut packed = zstd::Encoder::new(&file, 3).unwrap();
        (0..blocks).for_each(|_| packed.write_all(&block).unwrap());
        packed.finish().unwrap();
    }
}

#[test]
fn archives_that_unpack_without_end_are_refused_in_bounded_memory() {
    let workspace = Workspace::new();
    let bytes: u64 = if long().is_some() { 10 << 30 } else { 600 << 20 };
    workspace.write(
        "q.jsonl",
        "{\"id\":\"q\",\"question\":\"Should zoos be banned?\",\"perspectives\":[\"A.\",\"B.\"]}\n",
    );
    let mut most = 0;
    let ends: &[&str] = if long().is_some() { &["gz", "zst"] } else { &["zst"] };
    for end in ends {
        zeros(&workspace.files.path().join(format!("bomb.{end}")), bytes);
        let named = |name: &str| {
            let path = format!("{name}.{end}");
            let _ = fs::hard_link(
                workspace.files.path().join(format!("bomb.{end}")),
                workspace.files.path().join(&path),
            );
            path
        };
        let (jsonl, tsv, json, trec) = (named("c.jsonl"), named("t.tsv"), named("p.json"), named("r.trec"));
        let lane = format!("run:{trec}");
        for arguments in [
            vec!["corpus", "add", &jsonl],
            vec!["corpus", "add", &tsv],
            vec!["corpus", "add", &json],
            vec!["search", "zoos", "--questions", &jsonl],
            vec!["search", "zoos", "--lanes", "bm25", "--labels", &tsv],
            vec!["search", "zoos", "--lanes", "bm25", "--labels", &json],
            vec!["search", "zoos", "--lanes", "bm25", "--replies", &jsonl],
            vec!["search", "zoos", "--lanes", &lane],
        ] {
            let (refused, held) = run(&workspace, &arguments);
            assert_eq!(refused.code, Some(2), "{arguments:?}: {}", refused.out);
            assert!(!refused.err.trim().is_empty());
            most = most.max(held);
        }
    }
    report(&format!(
        "hostile archives: {} MB of zeros as {ends:?}, read in 8 ways, all refused; at most {most} MB",
        bytes >> 20
    ));
}

/// Every option that takes a path gets what is no file, or one without end.
#[cfg(unix)]
mod paths {
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;
    use std::process::Command;

    use super::*;
    use crate::campaign::memory::ran_for;
    use crate::stage::QUESTION;

    /// The limits for a refusal: processor time, and memory in MB. A build without optimisation needs more of both.
    const AT_ONCE: (Duration, u64) = match cfg!(debug_assertions) {
        true => (Duration::from_secs(4), 400),
        false => (Duration::from_secs(2), 300),
    };

    /// What a path option must refuse.
    #[derive(Clone, Copy, PartialEq)]
    enum Takes {
        File,
        /// A file or a folder, which may be empty.
        FileOrFolder,
        /// A file that need not be there.
        FileOrNone,
        /// A file to write: it need not be there, and may be long.
        Output,
        /// A folder to write to, or a journal to add to.
        OutputFolder,
    }
    use Takes::{File as AFile, FileOrFolder, FileOrNone, Output, OutputFolder};

    /// Every option with a path: the command's words and the option's name in the parser, the ending, and a command line with `{}` for
    /// the path.
    const OPTIONS: &[(&str, &str, Takes, &[&str])] = &[
        ("corpus", "jsonl", AFile, &["search", QUESTION, "--lanes", "bm25", "--corpus", "{}"]),
        ("questions", "jsonl", AFile, &["search", QUESTION, "--lanes", "bm25", "--questions", "{}"]),
        ("labels", "tsv", AFile, &["search", QUESTION, "--lanes", "bm25", "--labels", "{}"]),
        ("detector", "jsonl", AFile, &["detect", "--pairs", "pairs.tsv", "--detector", "file:{}"]),
        ("detector", "model", AFile, &["detect", "--pairs", "pairs.tsv", "--detector", "path:{}"]),
        (
            "detector_threshold",
            "json",
            AFile,
            &["detect", "--pairs", "pairs.tsv", "--detector-threshold", "{}"],
        ),
        ("lane", "run", AFile, &["search", QUESTION, "--lane", "run:{}"]),
        ("lane", "model", AFile, &["search", QUESTION, "--lane", "path:{}"]),
        ("lanes", "json", AFile, &["search", QUESTION, "--lanes", "run:{}"]),
        ("llm", "gguf", AFile, &["search", QUESTION, "--lanes", "bm25", "--llm", "gguf:{}"]),
        ("prompts", "toml", AFile, &["prompts", "--prompt", "{}"]),
        ("replies", "jsonl", AFile, &["search", QUESTION, "--lanes", "bm25", "--replies", "{}"]),
        ("answers", "jsonl", AFile, &["eval", "reader", "--lanes", "bm25", "--answers", "{}"]),
        ("reader", "model", AFile, &["eval", "reader", "--lanes", "bm25", "--reader", "{}"]),
        ("journals", "jsonl", FileOrFolder, &["search", QUESTION, "--lanes", "bm25", "--journal", "{}"]),
        ("data_dir", "data", OutputFolder, &["corpus", "add", "tiny.jsonl", "--data-dir", "{}"]),
        ("log", "log", Output, &["config", "path", "--log", "{}"]),
        ("config", "toml", FileOrNone, &["config", "show", "--config", "{}"]),
        ("statements pair", "jsonl", AFile, &["statements", "--pair", "{}"]),
        ("statements from_answers", "jsonl", AFile, &["statements", "--from-answers", "{}"]),
        ("statements options", "csv", AFile, &["statements", "--options", "{}"]),
        ("statements file", "txt", AFile, &["statements", "--file", "{}"]),
        ("detect pairs", "tsv", AFile, &["detect", "--pairs", "{}"]),
        ("detect against", "jsonl", AFile, &["detect", "--pairs", "pairs.tsv", "--against", "file:{}"]),
        ("eval qrels", "qrels", AFile, &["eval", "trec", "--run", "good.run", "--qrels", "{}"]),
        ("eval runs", "run", AFile, &["eval", "trec", "--qrels", "good.qrels", "--run", "{}"]),
        (
            "eval dev",
            "jsonl",
            AFile,
            &["eval", "berds", "--lanes", "bm25", "--tune", "mmr=.5", "--dev", "{}"],
        ),
        (
            "eval dev_labels",
            "tsv",
            AFile,
            &[
                "eval",
                "berds",
                "--lanes",
                "bm25",
                "--tune",
                "mmr=.5",
                "--dev",
                "set.jsonl",
                "--dev-labels",
                "{}",
            ],
        ),
        ("eval sets", "jsonl", AFile, &["eval", "berds", "--lanes", "bm25", "--set", "name=x,corpus={}"]),
        ("eval pairs", "jsonl", AFile, &["eval", "framing", "--lanes", "bm25", "--pairs", "{}"]),
        ("eval key_points", "jsonl", AFile, &["eval", "nuggets", "--lanes", "bm25", "--key-points", "{}"]),
        ("eval matching", "folder", AFile, &["eval", "nuggets", "--matching", "{}"]),
        ("eval types", "jsonl", AFile, &["eval", "reader", "--questions", "reading.json", "--types", "{}"]),
        (
            "questions split file",
            "jsonl",
            AFile,
            &["questions", "split", "{}", "--topic", "t", "--dev", "d.jsonl", "--test", "t.jsonl"],
        ),
        (
            "questions split dev",
            "jsonl",
            Output,
            &["questions", "split", "set.jsonl", "--topic", "t", "--dev", "{}", "--test", "t.jsonl"],
        ),
        (
            "questions split test",
            "jsonl",
            Output,
            &["questions", "split", "set.jsonl", "--topic", "t", "--dev", "d.jsonl", "--test", "{}"],
        ),
        ("detect training", "tsv", Output, &["detect", "--pairs", "pairs.tsv", "--training", "{}"]),
        ("corpus overlap first", "folder", AFile, &["corpus", "overlap", "{}", "second"]),
        ("corpus overlap second", "folder", AFile, &["corpus", "overlap", "first", "{}"]),
        (
            "corpus pir name",
            "jsonl",
            AFile,
            &["corpus", "pir", "{}", "--topic", "t", "--side", "s", "--out", "o"],
        ),
        (
            "corpus pir out",
            "folder",
            OutputFolder,
            &["corpus", "pir", "tiny.jsonl", "--topic", "t", "--side", "s", "--out", "{}"],
        ),
        ("questions info files", "jsonl", AFile, &["questions", "info", "{}"]),
        ("eval correct", "project", AFile, &["eval", "berds", "--lanes", "bm25", "--correct", "{}"]),
        ("eval write", "folder", OutputFolder, &["eval", "berds", "--lanes", "bm25", "--write", "{}"]),
        ("annotate report out", "txt", Output, &["annotate", "report", "good.jsonl", "--out", "{}"]),
        ("annotate agree out", "txt", Output, &["annotate", "agree", "good.jsonl", "--out", "{}"]),
        ("eval out", "txt", Output, &["eval", "berds", "--lanes", "bm25", "--out", "{}"]),
        ("reproduce file", "json", AFile, &["reproduce", "{}"]),
        ("reproduce inputs", "folder", FileOrFolder, &["reproduce", "good.jsonl", "--inputs", "{}"]),
        ("detect plot", "svg", Output, &["detect", "--pairs", "pairs.tsv", "--plot", "{}"]),
        ("eval plots", "folder", OutputFolder, &["eval", "berds", "--lanes", "bm25", "--plots", "{}"]),
        ("annotate new folder", "project", OutputFolder, &["annotate", "new", "{}"]),
        ("annotate grow folder", "project", AFile, &["annotate", "grow", "{}"]),
        ("annotate report folder", "project", AFile, &["annotate", "report", "{}"]),
        ("annotate status folder", "project", AFile, &["annotate", "status", "{}"]),
        ("annotate merge out", "jsonl", OutputFolder, &["annotate", "merge", "{}", "good.jsonl"]),
        ("annotate merge from", "jsonl", FileOrFolder, &["annotate", "merge", "merged.jsonl", "{}"]),
        ("annotate fsck files", "jsonl", FileOrFolder, &["annotate", "fsck", "{}"]),
        ("annotate agree paths", "jsonl", FileOrFolder, &["annotate", "agree", "{}"]),
        ("annotate agree refit", "json", Output, &["annotate", "agree", "good.jsonl", "--refit={}"]),
        (
            "annotate import file",
            "tsv",
            AFile,
            &["annotate", "import", "{}", "--format", "tsv", "--into", "new.jsonl"],
        ),
        (
            "annotate import file",
            "json",
            AFile,
            &["annotate", "import", "{}", "--format", "berds", "--into", "new.jsonl"],
        ),
        (
            "annotate import file",
            "qrels",
            AFile,
            &["annotate", "import", "{}", "--format", "qrels", "--into", "new.jsonl"],
        ),
        (
            "annotate import into",
            "jsonl",
            Output,
            &["annotate", "import", "labels.tsv", "--format", "tsv", "--into", "{}"],
        ),
        (
            "annotate export paths",
            "jsonl",
            FileOrFolder,
            &["annotate", "export", "{}", "--format", "tsv", "--out", "o.tsv"],
        ),
        (
            "annotate export out",
            "tsv",
            Output,
            &["annotate", "export", "good.jsonl", "--format", "tsv", "--out", "{}"],
        ),
        ("annotate remap files", "jsonl", FileOrFolder, &["annotate", "remap", "{}"]),
        ("corpus add path", "jsonl", AFile, &["corpus", "add", "{}"]),
        ("corpus add path", "csv", AFile, &["corpus", "add", "{}"]),
        ("corpus add path", "json", AFile, &["corpus", "add", "{}", "--format", "results"]),
        (
            "corpus from-web provider",
            "txt",
            AFile,
            &["corpus", "from-web", QUESTION, "--provider", "urls:{}"],
        ),
        ("corpus vectors corpus", "jsonl", AFile, &["corpus", "vectors", "{}", "v.npy", "--model", "minilm"]),
        (
            "corpus vectors file",
            "npy",
            AFile,
            &["corpus", "vectors", "tiny.jsonl", "{}", "--model", "minilm"],
        ),
        (
            "corpus vectors ids",
            "txt",
            AFile,
            &["corpus", "vectors", "tiny.jsonl", "v.npy", "--model", "minilm", "--ids", "{}"],
        ),
        (
            "corpus vectors model",
            "model",
            AFile,
            &["corpus", "vectors", "tiny.jsonl", "v.npy", "--model", "path:{}"],
        ),
        ("frame out", "txt", Output, &["frame", "--out", "{}"]),
        ("demo file", "jsonl", AFile, &["demo", "{}", "--out", "film.svg"]),
        ("demo out", "svg", Output, &["demo", "--out", "{}"]),
        ("config check file", "toml", AFile, &["config", "check", "{}"]),
    ];

    /// The options of the parser that take a path: by their type, or by what their values are called.
    fn options_with_a_path(command: &clap::Command, words: &[&str], found: &mut Vec<String>) {
        for argument in command.get_arguments().filter(|one| words.is_empty() || !one.is_global_set()) {
            let is_path =
                argument.get_value_parser().type_id() == clap::builder::ValueParser::path_buf().type_id();
            let names = argument.get_value_names().unwrap_or_default().iter().map(|name| name.to_string());
            let called = ["FILE", "FOLDER", "PATH", "RECIPE", "PROVIDER", "SET"];
            let id = argument.get_id().as_str();
            if is_path
                || ["lanes", "detector"].contains(&id)
                || words == ["detect"] && id == "against"
                || names.into_iter().any(|name| called.iter().any(|part| name.contains(part)))
            {
                found.push([words, &[id]].concat().join(" "));
            }
        }
        for below in command.get_subcommands() {
            options_with_a_path(below, &[words, &[below.get_name()]].concat(), found);
        }
    }

    #[test]
    fn every_option_with_a_path_is_in_the_list_of_this_test() {
        let mut found = Vec::new();
        options_with_a_path(&parallax::cli::parser(), &[], &mut found);
        assert!(found.len() > 30, "{found:?}");
        let listed = |name: &str| OPTIONS.iter().any(|(own, ..)| *own == name);
        let missing: Vec<_> = found.iter().filter(|name| !listed(name)).collect();
        assert!(missing.is_empty(), "not in OPTIONS: {missing:?}");
        let gone: Vec<_> = OPTIONS.iter().filter(|(name, ..)| !found.iter().any(|one| one == name)).collect();
        assert!(
            gone.is_empty(),
            "no option of the parser: {:?}",
            gone.iter().map(|(name, ..)| name).collect::<Vec<_>>()
        );
    }

    /// A device, a pipe into which nobody writes, a folder, a file of 2 GB without content, and one that vanished.
    fn oddities(workspace: &Workspace, ending: &str) -> [(&'static str, PathBuf); 5] {
        let place = |name: &str| workspace.files.path().join(format!("{name}.{ending}"));
        let [zero, pipe, folder, sparse, gone] = ["zero", "pipe", "folder", "sparse", "gone"].map(place);
        if !pipe.exists() {
            symlink("/dev/zero", &zero).unwrap();
            assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
            fs::create_dir(&folder).unwrap();
            File::create(&sparse).unwrap().set_len(2 << 30).unwrap();
            symlink(place("none"), &gone).unwrap();
        }
        [("zero", zero), ("pipe", pipe), ("folder", folder), ("sparse", sparse), ("gone", gone)]
    }

    #[test]
    fn a_path_that_is_no_file_or_has_no_end_is_refused_at_once_by_every_option() {
        let workspace = Workspace::new();
        workspace.write("pairs.tsv", "document\tperspective\nZoos teach.\tZoos should be banned.\n");
        workspace.write("good.run", "1 Q0 a 1 1.0 x\n");
        workspace.write("good.qrels", "1 0 a 1\n");
        let journal = root("tests/fixtures/data_folders/0.1.0-preview/anna.jsonl");
        fs::copy(journal, workspace.files.path().join("good.jsonl")).unwrap();
        workspace.write("labels.tsv", "id\tperspective\tlabel\na\tx\t1\n");
        workspace.write("tiny.jsonl", "{\"_id\":\"a\",\"text\":\"Zoos teach.\"}\n");
        workspace.write("v.npy", "");
        workspace.write("reading.json", r#"[{"question":"Who?","answers":["Ann"],"ctxs":[{"text":"Ann"}]}]"#);
        let question = json!({"id": "q", "question": QUESTION, "perspectives": ["Yes, they should.", "No, they should not."]});
        workspace.write("set.jsonl", format!("{question}\n"));
        // So that no refusal waits for the index of the sample.
        assert_eq!(run(&workspace, &["search", QUESTION, "--lanes", "bm25"]).0.code, Some(0));
        let (mut tried, mut slowest, mut most) = (0, Duration::ZERO, 0);
        let mut wrong = Vec::new();
        for (name, ending, takes, line) in OPTIONS {
            for (what, path) in oddities(&workspace, ending) {
                let may = match takes {
                    AFile => false,
                    FileOrFolder => what == "folder",
                    FileOrNone => what == "gone",
                    Output => matches!(what, "sparse" | "gone"),
                    OutputFolder => matches!(what, "folder" | "gone"),
                };
                if may {
                    continue;
                }
                let arguments: Vec<String> =
                    line.iter().map(|word| word.replace("{}", path.to_str().unwrap())).collect();
                let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
                let mut command = workspace.command(&arguments);
                if *name == "data_dir" {
                    // The workspace names a folder of its own.
                    command = Command::new(crate::program::program());
                    command.args(&arguments).current_dir(workspace.files.path());
                    command.env("PARALLAX_CONFIG", crate::program::NO_CONFIG);
                }
                let (output, held, took) = ran_for(&mut command, Duration::from_secs(60));
                let message = String::from_utf8_lossy(&output.stderr).into_owned();
                // `config check` prints what it found as its result.
                let words = !message.trim().is_empty() || !output.stdout.is_empty();
                let refused = matches!(output.status.code(), Some(1 | 2)) && words;
                if !refused || message.contains("panicked") || took > AT_ONCE.0 || held > AT_ONCE.1 {
                    let code = output.status.code();
                    wrong.push(format!("{name} {what}: {code:?}, {took:?}, {held} MB: {message}"));
                }
                (tried, slowest, most) = (tried + 1, slowest.max(took), most.max(held));
            }
        }
        report(&format!(
            "hostile paths: {tried} in {} options; refused after {slowest:?} of processor time and with {most} MB at most",
            OPTIONS.len()
        ));
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

/// Models that claim more than they are, or take for ever. For every refused model an unharmed copy is accepted. No folder is named
/// after its fault, so only the message can name it.
mod models {
    use std::cell::Cell;

    use super::*;
    use crate::campaign::models::sha256;
    use crate::campaign::targets::{root, seeds};

    const ENCODER: &str = "encoders/contriever";
    const CONFIG: &str = "tests/fixtures/encoders/contriever/config.json";
    const TOKENIZER: &str = "tests/fixtures/encoders/contriever/tokenizer.json";
    const READER: &str = "readers/words";

    /// A folder for models, how many were refused, and the peak memory in MB.
    struct Models {
        workspace: Workspace,
        refused: Cell<usize>,
        most: Cell<u64>,
    }

    impl Models {
        fn new() -> Self {
            let models = Models { workspace: Workspace::new(), refused: Cell::new(0), most: Cell::new(0) };
            models
                .workspace
                .write("some.jsonl", json!({"_id": "a", "text": "Zoos should be banned."}).to_string());
            models
        }

        /// Copies a model of the fixtures with some files changed.
        fn copy(&self, fixture: &str, folder: &str, changed: &[(&str, &[u8])]) {
            let to = self.workspace.files.path().join(folder);
            fs::create_dir_all(&to).unwrap();
            let files = fs::read_dir(root("tests/fixtures").join(fixture)).unwrap().flatten();
            for file in files.filter(|entry| entry.path().is_file()) {
                fs::copy(file.path(), to.join(file.file_name())).unwrap();
            }
            changed.iter().for_each(|(name, bytes)| fs::write(to.join(name), bytes).unwrap());
        }

        fn run(&self, arguments: &[&str]) -> Printed {
            let (ended, held) = run(&self.workspace, arguments);
            self.most.set(self.most.get().max(held));
            ended
        }

        fn encode(&self, folder: &str) -> Printed {
            self.run(&["search", "zoos", "--corpus", "some.jsonl", "--lanes", &format!("path:{folder}")])
        }

        fn read(&self, folder: &str) -> Printed {
            self.run(&["eval", "reader", "--questions", "questions.json", "--reader", folder, "-k", "1"])
        }

        /// Exit code 2, no result, and a message that names the file and the reason.
        #[track_caller]
        fn refuses(&self, ended: &Printed, file: &str, reason: &str) {
            ended.bad(&[&format!("{file}: "), reason]);
            self.refused.set(self.refused.get() + 1);
        }
    }

    fn tensors(head: &str, length: u64) -> Vec<u8> {
        [&length.to_le_bytes()[..], head.as_bytes(), &[0; 64]].concat()
    }

    /// A JSON file of the fixtures, changed.
    fn changed(path: &str, change: impl FnOnce(&mut serde_json::Value)) -> Vec<u8> {
        let mut value = serde_json::from_slice(&seeds(&[path], &[])[0]).unwrap();
        change(&mut value);
        value.to_string().into_bytes()
    }

    /// The encoder's configuration with another number.
    fn number(key: &str, value: u64) -> Vec<u8> {
        changed(CONFIG, |config| config[key] = value.into())
    }

    /// The encoder's tokenizer with another pattern to split at.
    fn pattern(pattern: &str) -> Vec<u8> {
        let split =
            json!({"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": false});
        changed(TOKENIZER, |tokenizer| tokenizer["pre_tokenizer"] = split)
    }

    fn nested() -> String {
        format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000))
    }

    #[test]
    fn encoders_with_impossible_sizes_are_refused() {
        let models = Models::new();
        let huge = r#"{"w":{"dtype":"F32","shape":[4294967295,4294967295],"data_offsets":[0,18446744073709551615]}}"#;
        let (deep, weights, config, tokenizer) =
            (nested(), "model.safetensors", "config.json", "tokenizer.json");
        let grows = "(((((((x{1,99}){1,99}){1,99}){1,99}){1,99}){1,99}){1,99})";
        let size = "expected a size at";
        // The file, its content, the reason in the message.
        let cases: [(&str, Vec<u8>, &str); 12] = [
            (weights, tensors("{}", 1 << 63), "header too large"),
            (weights, tensors(huge, huge.len() as u64), "overflow"),
            (weights, tensors(&deep, deep.len() as u64), "invalid JSON in header"),
            (weights, Vec::new(), "header too small"),
            (config, number("num_hidden_layers", 1_000_000_000), size),
            (config, number("hidden_size", 1 << 62), size),
            (config, number("num_attention_heads", 0), "cannot be divided among 0 heads"),
            (config, number("max_position_embeddings", u64::MAX), size),
            (config, deep.clone().into_bytes(), "recursion limit"),
            (tokenizer, pattern(grows), "error building NFA"),
            (tokenizer, pattern("((("), "without closing parenthesis"),
            (tokenizer, deep.into_bytes(), "not a tokenizer that can be read"),
        ];
        models.copy(ENCODER, "whole", &[]);
        models.encode("whole").good();
        models.copy(ENCODER, "cut", &[(tokenizer, &pattern(r"\w+"))]);
        models.encode("cut").good();
        for (at, (file, bytes, why)) in cases.iter().enumerate() {
            let folder = format!("m{at}");
            models.copy(ENCODER, &folder, &[(file, bytes)]);
            models.refuses(&models.encode(&folder), &format!("{folder}/{file}"), why);
        }
        report_of("encoders", &models);
    }

    #[test]
    fn files_that_are_no_readers_are_refused() {
        let models = Models::new();
        models.workspace.write(
            "questions.json",
            r#"[{"question":"Where are zoos?","answers":["Oslo"],"ctxs":[{"id":"1","title":"","text":"They are in Oslo."}]}]"#,
        );
        let garbage = b"\x08\x08garbage".repeat(1_000);
        // The card has the hash of this graph, so that the graph itself is read.
        let card = changed("tests/fixtures/readers/words/reader.json", |card| {
            card["sha256"] = sha256(&garbage).into()
        });
        models.copy(READER, "whole", &[]);
        models.read("whole").good();
        models.copy(READER, "a", &[("reader.onnx", &garbage)]);
        models.refuses(&models.read("a"), "a/reader.onnx", "its SHA-256 is");
        models.copy(READER, "b", &[("reader.onnx", &garbage), ("reader.json", &card)]);
        models.refuses(&models.read("b"), "b/reader.onnx", "expected a graph");
        models.copy(READER, "c", &[("reader.json", b"{\"name\":")]);
        models.refuses(&models.read("c"), "c/reader.json", "expected a JSON object");
        report_of("readers", &models);
    }

    #[cfg(feature = "local-llm")]
    #[test]
    fn language_models_with_impossible_sizes_are_refused() {
        let models = Models::new();
        let gguf = |counts: [u64; 2]| {
            [&b"GGUF"[..], &3u32.to_le_bytes(), &counts[0].to_le_bytes(), &counts[1].to_le_bytes(), &[0; 64]]
                .concat()
        };
        let ask = |name: &str| {
            let model = format!("gguf:{name}");
            models.run(&["search", "zoos", "--corpus", "some.jsonl", "--lanes", "bm25", "--llm", &model])
        };
        models.workspace.write("whole.gguf", &seeds(&["tests/fixtures/llm/llama.gguf"], &[])[0]);
        ask("whole.gguf").good();
        for (name, counts) in
            [("a.gguf", [1 << 63, 1]), ("b.gguf", [1, 1 << 63]), ("c.gguf", [u64::MAX, u64::MAX])]
        {
            models.workspace.write(name, gguf(counts));
            models.refuses(&ask(name), name, "cut short");
        }
        report_of("language models", &models);
    }

    fn report_of(what: &str, models: &Models) {
        let (refused, most) = (models.refused.get(), models.most.get());
        report(&format!(
            "hostile {what}: {refused} refused with the file and the reason, the unharmed taken; at most {most} MB"
        ));
    }

    /// The regex engine must give up on a pattern that backtracks without end; the text is then one piece. Otherwise the program never ends,
    /// and is killed without an exit code.
    #[test]
    fn a_tokenizer_pattern_that_backtracks_without_end_is_given_up() {
        let models = Models::new();
        // A back-reference makes the engine backtrack, which automata never do.
        models.copy(ENCODER, "a", &[("tokenizer.json", &pattern(r"(a|aa)+\1!!"))]);
        let text = "a".repeat(3_000) + "!";
        models.workspace.write("c.jsonl", json!({"_id": "a", "text": text}).to_string());
        let arguments = ["search", &text, "--corpus", "c.jsonl", "--lanes", "path:a", "--format", "json"];
        let (ended, most) = run(&models.workspace, &arguments);
        let found: serde_json::Value = serde_json::from_str(&ended.good()).unwrap();
        assert_eq!(found["lanes"][0]["hits"].as_array().map(Vec::len), Some(1), "{found}");
        report(&format!("hostile pattern: given up, and the passage found; at most {most} MB"));
    }
}

/// Changes of the files that the program derived. None may give another answer in silence.
mod caches {
    use std::collections::BTreeMap;
    use std::path::PathBuf;
    use std::thread;

    use parallax::llm::{PromptId, Reply, Request, line};
    use parallax::measure::seeded::SplitMix64;
    use serde_json::Value;

    use super::super::{campaign_file, seed};
    use super::*;

    const QUESTION: &str = "Should zoos be banned?";
    /// Changes in a brief run.
    const BRIEF: u64 = 8;

    fn sample(name: &str) -> String {
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("sample_data").join(name)).unwrap()
    }

    /// A data folder with two corpora, their indexes, vectors, verdicts and replies, and the answer of a search.
    struct Derived {
        workspace: Workspace,
        whole: PathBuf,
        answer: Value,
        files: Vec<PathBuf>,
    }

    impl Derived {
        fn new() -> Self {
            let workspace = Workspace::new();
            let corpus = sample("corpus.jsonl");
            let lines: Vec<&str> = corpus.lines().collect();
            // Few, because most changes have them embedded or judged again.
            workspace.write("zoos.jsonl", lines[..16].join("\n") + "\n");
            workspace.write("other.jsonl", lines[16..32].join("\n") + "\n");
            let of_question =
                |line: &&str| line.contains(&QUESTION.replace('"', "\\\"")) && line.contains("\"keqe\"");
            let replies: String = sample("replies.jsonl").lines().filter(of_question).map(recorded).collect();
            workspace.write("data/replies.jsonl", replies);
            let derived = Derived {
                whole: workspace.files.path().join("whole"),
                answer: Value::Null,
                files: Vec::new(),
                workspace,
            };
            derived.search("other.jsonl").0.good();
            let answer = derived.search("zoos.jsonl").0.good();
            copy(&derived.workspace.data, &derived.whole);
            let answer = comparable(&answer);
            let (again, err) = {
                let (printed, _) = derived.search("zoos.jsonl");
                (comparable(&printed.out), printed.err)
            };
            assert!(answer == again, "the answer is not the same from the caches: {err}");
            let mut files = Vec::new();
            listing(&derived.whole, Path::new(""), &mut files);
            files.retain(|path| path.extension().is_none_or(|end| end != "lock"));
            files.sort();
            Derived { answer, files, ..derived }
        }

        fn search(&self, corpus: &str) -> (Printed, u64) {
            let lanes = "bm25,minilm,bm25+keqe";
            let arguments = [
                "search",
                QUESTION,
                "--corpus",
                corpus,
                "--lanes",
                lanes,
                "--label-source",
                "model",
                "--format",
                "json",
                "--offline",
            ];
            run(&self.workspace, &arguments)
        }

        fn reset(&self) {
            fs::remove_dir_all(&self.workspace.data).unwrap();
            copy(&self.whole, &self.workspace.data);
        }
    }

    /// A line of recorded replies, written as the program writes it.
    fn recorded(text: &str) -> String {
        let line_of: Value = serde_json::from_str(text).unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let asked = &line_of["request"];
        let request = Request {
            made_from: serde_json::from_value::<PromptId>(line_of["prompt"].clone()).unwrap(),
            system: text(&asked["system"]),
            prompt: text(&asked["prompt"]),
            temperature: asked["temperature"].as_f64().unwrap() as f32,
            max_tokens: asked["max_tokens"].as_u64().unwrap() as u32,
            sample: line_of["sample"].as_u64().unwrap() as u32,
            ..Request::default()
        };
        let reply =
            Reply { text: text(&line_of["reply"]), model: text(&line_of["model"]), ..Reply::default() };
        line(&request, &reply).unwrap() + "\n"
    }

    /// What a search says, without times and prose.
    fn comparable(json: &str) -> Value {
        let mut json: Value = serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {json}"));
        for other in ["provenance", "timing"] {
            json.as_object_mut().unwrap().remove(other);
        }
        json
    }

    /// The files below a folder, by their relative paths.
    fn listing(below: &Path, inside: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(below.join(inside)).unwrap().flatten() {
            let path = inside.join(entry.file_name());
            if entry.path().is_dir() {
                listing(below, &path, found);
            } else {
                found.push(path);
            }
        }
    }

    fn copy(from: &Path, to: &Path) {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap().flatten() {
            let place = to.join(entry.file_name());
            if entry.path().is_dir() {
                copy(&entry.path(), &place);
            } else {
                fs::copy(entry.path(), place).unwrap();
            }
        }
    }

    /// Changes one file. Returns what was done; `None` if nothing changed.
    fn change(derived: &Derived, rng: &mut SplitMix64) -> Option<String> {
        let path = &derived.files[rng.below(derived.files.len())];
        let place = derived.workspace.data.join(path);
        let old = fs::read(&place).unwrap();
        let mut new = old.clone();
        let at = rng.below(old.len().max(1));
        let what = match rng.below(10) {
            _ if old.is_empty() => return None,
            0..3 => {
                new[at] ^= 1 << rng.below(8);
                format!("a flipped bit of byte {at}")
            }
            3 => {
                new[at] = rng.below(256) as u8;
                format!("another byte {at}")
            }
            4 => {
                let end = (at + 1 + rng.below(4_096)).min(new.len());
                new[at..end].fill(0);
                format!("zeros from {at} to {end}")
            }
            5 => {
                new.truncate(at);
                format!("cut to {at} bytes")
            }
            6 => {
                let length = 1 + rng.below(64).min(old.len() / 2);
                let to = rng.below(old.len() - length + 1);
                let from = rng.below(old.len() - length + 1);
                new.copy_within(from..from + length, to);
                format!("bytes {from} to {} copied to {to}", from + length)
            }
            7 => {
                let step = 1 + rng.below(2_000) % old.len();
                new.rotate_left(step);
                format!("rotated by {step}")
            }
            8 => {
                // A file of the same kind, of the other corpus or of this one.
                let kind = path.extension();
                let alike: Vec<&PathBuf> = derived
                    .files
                    .iter()
                    .filter(|other| other.extension() == kind && *other != path)
                    .collect();
                let other = alike.get(rng.below(alike.len().max(1)))?;
                new = fs::read(derived.workspace.data.join(other)).unwrap();
                format!("replaced by {}", other.display())
            }
            _ if path.ends_with("verdicts.sqlite") => {
                let verdicts = rusqlite::Connection::open(&place).unwrap();
                let values = ["7.0", "-3", "9e999", "'0.9'", "zeroblob(16)", "randomblob(16)", "NULL"];
                let value = values[rng.below(values.len())];
                let changed = verdicts.execute(&format!("UPDATE OR IGNORE verified SET read = {value}"), []);
                return Some(format!("verdicts.sqlite: every reading is {value} ({})", changed.is_ok()));
            }
            _ => {
                new.extend_from_slice(&old[..old.len().min(1 + at)]);
                format!("{} bytes more", new.len() - old.len())
            }
        };
        fs::write(&place, &new).unwrap();
        (new != old).then(|| format!("{}: {what}", path.display()))
    }

    /// Makes changes and searches after each. Returns the number of each kind of end.
    fn campaign(changes: u64, seed: u64) -> BTreeMap<&'static str, u64> {
        let (derived, mut rng) = (Derived::new(), SplitMix64::new(seed));
        let mut ends = BTreeMap::new();
        let mut made = 0;
        while made < changes {
            derived.reset();
            let Some(what) = change(&derived, &mut rng) else { continue };
            made += 1;
            let printed = derived.search("zoos.jsonl").0;
            // Of replies that are gone, the answer itself says that they were not recorded.
            let noticed = printed.err.contains("damaged")
                || printed.out.contains("no reply to this prompt was recorded");
            let said = || format!("PARALLAX_SEED={seed}, change {made}: {what}\n{}", printed.err);
            let end = if printed.code != Some(0) {
                assert!(!printed.err.trim().is_empty(), "an end without words: {}", said());
                "an error in words"
            } else if comparable(&printed.out) == derived.answer {
                if noticed { "noticed, made again, the same answer" } else { "harmless: the same answer" }
            } else {
                if !noticed {
                    fs::write(campaign_file("caches.txt"), said()).unwrap();
                }
                assert!(noticed, "another answer in silence: {}", said());
                "noticed, another answer"
            };
            *ends.entry(end).or_default() += 1;
        }
        ends
    }

    #[test]
    fn no_change_of_a_cache_gives_another_answer_in_silence() {
        let changes = long().unwrap_or(BRIEF);
        let halves: Vec<_> =
            [0, 1].map(|half| thread::spawn(move || campaign(changes.div_ceil(2), seed() * 2 + half))).into();
        let mut ends = BTreeMap::new();
        for half in halves {
            for (end, count) in half.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)) {
                *ends.entry(end).or_insert(0) += count;
            }
        }
        let parts: Vec<String> = ends.iter().map(|(end, count)| format!("{count} {end}")).collect();
        report(&format!(
            "caches: {} changes from seed {}: {}",
            ends.values().sum::<u64>(),
            seed(),
            parts.join("; ")
        ));
    }

    #[test]
    fn the_doctor_finds_and_repairs_what_is_damaged_and_nothing_else() {
        let derived = Derived::new();
        let doctor = |more: &[&str]| run(&derived.workspace, &[&["doctor", "--offline"], more].concat()).0;
        let whole = doctor(&[]).good();
        assert!(whole.contains("corpora 2,") && whole.contains("term indexes 2,"), "{whole}");
        assert!(whole.ends_with("nothing is damaged\n") && whole.contains("terminal    TERM "), "{whole}");
        let flip = |wanted: &dyn Fn(&Path) -> bool| {
            let path = derived.files.iter().find(|path| wanted(path)).unwrap();
            let place = derived.workspace.data.join(path);
            let mut bytes = fs::read(&place).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 8;
            fs::write(&place, bytes).unwrap();
        };
        let ends = |end: &'static str| move |path: &Path| path.extension().is_some_and(|own| own == end);
        flip(&ends("f32"));
        flip(&ends("term"));
        flip(&ends("u64"));
        flip(&|path| path.ends_with("replies.jsonl"));
        let verdicts = rusqlite::Connection::open(derived.workspace.data.join("verdicts.sqlite")).unwrap();
        verdicts.execute("UPDATE verified SET read = '0.9' WHERE n < 3", []).unwrap();
        drop(verdicts);
        let found = doctor(&[]);
        assert_eq!(found.code, Some(1), "{}", found.out);
        for words in [
            ".f32 is damaged",
            "terms-2",
            "offsets.u64 is damaged",
            "replies.jsonl is damaged: 1 of its lines",
            "2 of ",
            "passages to encode",
            "passages to index",
            "the import of ",
        ] {
            assert!(found.out.contains(words), "no `{words}` in {}", found.out);
        }
        assert!(
            found.out.contains("5 findings; `parallax doctor --repair` repairs what it can"),
            "{}",
            found.out
        );
        let repaired = doctor(&["--repair"]).good();
        for words in ["imported again", "indexed again", "set aside as", "judged again when needed"] {
            assert!(repaired.contains(words), "no `{words}` in {repaired}");
        }
        let after = doctor(&[]).good();
        assert!(after.ends_with("nothing is damaged\n") && after.contains("set aside   "), "{after}");
        for corpus in ["other.jsonl", "zoos.jsonl"] {
            let printed = derived.search(corpus).0;
            assert!(printed.code == Some(0) && !printed.err.contains("damaged"), "{}", printed.err);
        }
        for source in ["other.jsonl", "zoos.jsonl"] {
            fs::remove_file(derived.workspace.files.path().join(source)).unwrap();
        }
        flip(&ends("u64"));
        let lost = doctor(&["--repair"]);
        assert_eq!(lost.code, Some(1), "no source, no repair: {}", lost.out);
        assert!(lost.out.contains("1 finding, 1 of them not repaired"), "{}", lost.out);
    }
}
