//! `parallax corpus`: the stored corpora. `parallax questions`: question sets.
//!
//! May use: everything below `cli`.

mod library;
pub mod remote;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Subcommand;
use serde_json::{Map, Value, json};

use super::options::Common;
use crate::corpus::library::Library;
use crate::engine::readers;
use crate::expand::checked_statements;
use crate::input::{check_output, excerpt, lines};
use crate::llm::{Chat, Prompts};
use crate::measure::seeded::SplitMix64;
use crate::question::sources::{self, Made, Material, Row};
use crate::question::{self, By, Question, Statements};
use crate::report::safe;
use crate::storage::replace;
use crate::work::Stop;
use library::find;

/// `parallax corpus`
#[derive(Debug, Subcommand)]
pub enum CorpusCommand {
    /// Import and index a file or folder under a name. After an interruption, the same command resumes.
    Add(library::Add),
    /// Make a corpus from the web: search for a question, fetch the pages politely, and cut their main text into passages of 100
    /// words (BERDS' web search). After an interruption, the same command resumes.
    FromWeb(remote::FromWeb),
    /// List the stored corpora.
    List,
    /// Describe a corpus: its source, lengths, metadata, duplicates and vectors.
    Info {
        /// Its name or fingerprint, or `web:` for the corpora that from-web made: pages and passages for each question (BERDS,
        /// Table 2).
        name: String,
    },
    /// Compare two searches of from-web: how many addresses they share, for each question that both have.
    Overlap {
        /// The name of a corpus that from-web made, or a data folder with many (--data-dir of that run).
        first: PathBuf,
        /// The other.
        second: PathBuf,
    },
    /// Import vectors of the passages: .npy (f32 or f16, two dimensions) or .safetensors (one tensor).
    Vectors(library::Vectors),
    /// Load a corpus into a search engine on another machine. A second push sends only what has changed.
    Push(remote::Push),
    /// Make a PIR task of a corpus whose passages name topic and side in their metadata, as a folder that `eval pir --questions` reads.
    Pir(library::Pir),
    /// Remove a stored corpus with its index and vectors. Its source stays.
    Rm {
        /// Its name or fingerprint.
        name: String,
        /// Remove it without asking.
        #[arg(long)]
        yes: bool,
    },
}

/// Runs the command.
///
/// # Errors
/// The corpus is not valid or does not exist, the web search finds nothing, or the library cannot be read or written.
pub fn run(common: &Common, command: &CorpusCommand) -> anyhow::Result<ExitCode> {
    let library = Library::at(&common.opening().data_dir);
    match command {
        CorpusCommand::Add(args) => library::add(&library, args),
        CorpusCommand::FromWeb(args) => remote::from_web(common, args),
        CorpusCommand::List => library::list(&library),
        CorpusCommand::Info { name } if name == remote::WEB => remote::web_info(common),
        CorpusCommand::Info { name } => library::info(&library, &find(&library, name)?),
        CorpusCommand::Overlap { first, second } => remote::overlap(common, first, second),
        CorpusCommand::Vectors(args) => library::vectors(common, args),
        CorpusCommand::Push(args) => remote::push(common, args),
        CorpusCommand::Pir(args) => library::pir(common, args),
        CorpusCommand::Rm { name, yes } => library::remove(&library, &find(&library, name)?, *yes),
    }
}

/// `parallax questions`
#[derive(Debug, clap::Subcommand)]
pub enum Questions {
    /// Print how many questions, perspectives, words and expansions each set has, as TSV. Perspectives made by rule count
    /// (BERDS, Table 1; CSQE, Table 9; passages are those of `corpus info`).
    Info {
        /// Question sets, in any format of --questions.
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Split a set (JSONL) into a development and a test part. All questions of a topic go into the same part.
    Split(Split),
}

/// `parallax questions split`
#[derive(Debug, clap::Args)]
pub struct Split {
    /// The question set, JSONL. Its lines are copied byte for byte.
    pub file: PathBuf,
    /// The field of a line, or of its `metadata`, that names the topic.
    #[arg(long, value_name = "FIELD")]
    pub topic: String,
    /// The share of the questions in the development part; topics stay whole, so it is reached as nearly as they allow.
    #[arg(long, value_name = "SHARE", default_value_t = 0.5)]
    pub share: f64,
    /// The seed of the order in which topics are drawn.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// The file for the development part.
    #[arg(long, value_name = "FILE")]
    pub dev: PathBuf,
    /// The file for the test part.
    #[arg(long, value_name = "FILE")]
    pub test: PathBuf,
}

/// Runs `questions info`.
///
/// # Errors
/// A file is not a question set.
pub fn questions_info(files: &[PathBuf]) -> anyhow::Result<ExitCode> {
    let mut out = String::from(
        "set\tquestions\twords_a_question\tperspectives_a_question\tmost_perspectives\ttwo_sided\twords_a_perspective\texpansions_a_question\twords_an_expansion\n",
    );
    for path in files {
        let set = question::set::read(path)?;
        out += &info(&safe::line(&path.display().to_string()), &set);
    }
    safe::stdout().write_all(out.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// One line of means over a set; `–` where there is nothing to count.
fn info(name: &str, set: &[Question]) -> String {
    let words = |text: &str| text.split_whitespace().count();
    let mean = |sum: usize, of: usize| match of {
        0 => "–".to_owned(),
        of => format!("{:.2}", sum as f64 / of as f64),
    };
    let count = set.len();
    let perspectives = || set.iter().flat_map(|question| &question.perspectives);
    let expansions = || set.iter().flat_map(|question| &question.expansions);
    let two_sided = set.iter().filter(|question| question.sides().is_some()).count();
    let most = set.iter().map(|question| question.perspectives.len()).max().unwrap_or(0);
    let columns = [
        name.to_owned(),
        count.to_string(),
        mean(set.iter().map(|question| words(&question.text)).sum(), count),
        mean(perspectives().count(), count),
        most.to_string(),
        two_sided.to_string(),
        mean(perspectives().map(|text| words(text)).sum(), perspectives().count()),
        mean(expansions().count(), count),
        mean(expansions().map(|written| words(&written.text)).sum(), expansions().count()),
    ];
    columns.join("\t") + "\n"
}

/// Runs `questions split`.
///
/// # Errors
/// The file is not a question set in JSONL, has fewer than two topics, or an output cannot be written.
pub fn questions_split(args: &Split) -> anyhow::Result<ExitCode> {
    let Split { file, topic, share, seed, dev, test } = args;
    let name = file.display();
    if !(*share > 0.0 && *share < 1.0) {
        bail!("--share: expected a share between 0 and 1, found {share}");
    }
    for (i, path) in [dev, test].into_iter().enumerate() {
        if path == file || (i == 1 && path == dev) {
            bail!("{}: named twice; the two parts need files of their own", path.display());
        }
        check_output(path)?;
    }
    let set = question::set::read(file)?;
    let mut rows: Vec<(String, String)> = Vec::new();
    let mut alone = 0;
    lines(file, |number, line| {
        let object: Map<String, Value> =
            serde_json::from_str(line).map_err(|error| format!("a question as a JSON object ({error})"))?;
        let inner = || object.get("metadata")?.as_object()?.get(topic);
        let own = match object.get(topic).or_else(inner) {
            None | Some(Value::Null) => {
                alone += 1;
                format!("line {number}")
            }
            Some(Value::String(text)) => format!("topic {}", text.trim()),
            Some(other) => format!("topic {other}"),
        };
        rows.push((own, line.to_owned()));
        Ok(())
    })?;
    if alone == set.len() {
        bail!("{name}: no question has the field `{topic}`; name the one that holds the topic with --topic");
    }
    let mut sizes: BTreeMap<&str, usize> = BTreeMap::new();
    for (own, _) in &rows {
        *sizes.entry(own).or_default() += 1;
    }
    if sizes.len() < 2 {
        bail!("{name}: all questions have one topic, and a topic is not split");
    }
    let mut drawn: Vec<(&str, usize)> = sizes.into_iter().collect();
    SplitMix64::new(*seed).shuffle(&mut drawn);
    let (goal, topics) = (share * rows.len() as f64, drawn.len());
    let (mut chosen, mut taken) = (BTreeSet::new(), 0);
    for (own, size) in drawn {
        // The last topic of either part is never taken from it.
        let last = chosen.len() + 1 == topics;
        if !last && (chosen.is_empty() || (taken + size) as f64 - goal <= goal - taken as f64) {
            chosen.insert(own);
            taken += size;
        }
    }
    let mut out = safe::stdout();
    for (path, is_dev) in [(dev, true), (test, false)] {
        let own: Vec<&str> = rows
            .iter()
            .filter(|(own, _)| chosen.contains(own.as_str()) == is_dev)
            .map(|(_, line)| line.as_str())
            .collect();
        let of = if is_dev { chosen.len() } else { topics - chosen.len() };
        replace(path, (own.join("\n") + "\n").as_bytes()).with_context(|| path.display().to_string())?;
        writeln!(out, "{}: {} of {}", path.display(), counted(own.len(), "question"), counted(of, "topic"))?;
    }
    writeln!(out, "topics by `{topic}`, drawn with seed {seed}")?;
    if alone > 0 {
        writeln!(out, "without `{topic}`, each taken as a topic of its own: {}", counted(alone, "question"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs `statements --pair`, `--from-answers` and `--options`: prints a question set, and on standard error what is not in it and why.
///
/// # Errors
/// The file is not what was named, or the language model cannot be opened.
pub fn build_set(common: &Common, material: Material, file: &Path) -> anyhow::Result<ExitCode> {
    let rows = sources::read(file, material)?;
    let (chat, prompts) = (readers(&common.opening())?.0, Prompts::with(&common.prompts)?);
    let (mut out, mut err) = (BufWriter::new(safe::stdout()), safe::stderr());
    let (mut by_rule, mut by_model, mut dropped, mut left) = (0, 0, 0, 0);
    for row in &rows {
        let (made, reason) = match (sources::make(material, row), chat.as_deref()) {
            (Made::Whole(made), _) => (Some(made), String::new()),
            (Made::Dropped(reason), _) => (None, reason),
            (Made::Left { reason, .. }, None) => {
                (None, format!("{reason}; a language model may (--llm URL)"))
            }
            (Made::Left { question, reason }, Some(chat)) => {
                left += 1;
                match by_chat(chat, &prompts, row, &question) {
                    Ok(made) => (Some(made), String::new()),
                    Err(trouble) => (None, format!("{reason}; {}: {trouble}", chat.model())),
                }
            }
        };
        let Some(made) = made else {
            writeln!(err, "parallax: {}:{}: left out: {reason}", file.display(), row.line)?;
            dropped += 1;
            continue;
        };
        if made.by == By::Llm {
            by_model += 1
        } else {
            by_rule += 1
        }
        let mut line = json!({"id": row.id, "question": made.question, "perspectives": made.perspectives, "by": made.by});
        if let Some(first) = made.supports {
            line["supports"] = first.into();
        }
        out.write_all(safe::json_line(&line)?.as_bytes())?;
    }
    out.flush()?;
    let asked = if left > 0 {
        format!(", {by_model} of {left} by {}", chat.map_or_else(String::new, |chat| chat.model().to_owned()))
    } else {
        String::new()
    };
    writeln!(
        err,
        "parallax: {} from {}: {by_rule} by rule{asked}; left out: {dropped}",
        counted(by_rule + by_model, "question"),
        counted(rows.len(), "row")
    )?;
    Ok(ExitCode::SUCCESS)
}

/// The question and statements of a row by a language model. Of a pair, the argument is the evidence for the supporting statement, and the
/// question is the one that this statement answers.
fn by_chat(chat: &dyn Chat, prompts: &Prompts, row: &Row, question: &str) -> Result<Statements, String> {
    let asked = (question, row.argument.as_deref());
    let mut made =
        checked_statements(chat, prompts, asked, &Stop::never()).map_err(|error| error.to_string())?;
    let Some(first) = made.perspectives.first() else { return Err("no two statements in its reply".into()) };
    made.question = match &row.argument {
        None => row.question.clone(),
        Some(_) if made.supports.is_none() => {
            return Err("it finds that the argument supports neither statement".into());
        }
        Some(_) => question::ask(first)
            .ok_or_else(|| format!("no rule makes a question of its {}", excerpt(first)))?,
    };
    Ok(made)
}

fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
