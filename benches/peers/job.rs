//! The whole job of one question against a Python script: from nothing to the answer, and once more with everything loaded.

use std::io::{BufRead, BufReader, Read, Write};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdin, Command, Stdio};
use std::time::Instant;

use parallax::detect::LabelSource;
use parallax::engine::{Depth, Event, Lists, Opening, Query, Recipe, Setup, run};
use parallax::question::Question;
use parallax::work::Stop;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::Outcome;
use crate::page::{Page, cells};
use crate::rounds::Rounds;

const COLD: usize = 3;
const WARM: usize = 5;
/// Questions of a warm round.
const QUESTIONS: usize = 8;
const K: usize = 5;
const ROWS: NonZero<u16> = NonZero::new(40).unwrap();
const COLUMNS: NonZero<u16> = NonZero::new(140).unwrap();

/// `tools/performance/whole_job.py`.
struct Script {
    child: Child,
    questions: ChildStdin,
    messages: BufReader<ChildStderr>,
}

impl Script {
    fn start((python, model): (&Path, &Path)) -> Outcome<Self> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tools/performance/whole_job.py");
        let mut command = Command::new(python);
        command.arg(script).arg("--model").arg(model).stdin(Stdio::piped()).stdout(Stdio::null());
        let mut child = command.stderr(Stdio::piped()).spawn()?;
        let questions = child.stdin.take().ok_or("no standard input")?;
        let messages = BufReader::new(child.stderr.take().ok_or("no standard error")?);
        Ok(Script { child, questions, messages })
    }

    /// Puts a question, and gives what the script reports about its answer.
    fn ask(&mut self, question: &Question) -> Outcome<Value> {
        let line = json!({"question": question.text, "perspectives": question.perspectives});
        // If it has ended, what it said last is read below.
        let _ = writeln!(self.questions, "{line}").and_then(|()| self.questions.flush());
        let (mut line, mut last) = (String::new(), String::new());
        while self.messages.read_line(&mut line)? > 0 {
            // Libraries write there too.
            if let Some(messages) = line.find('{').and_then(|at| serde_json::from_str(&line[at..]).ok()) {
                return Ok(messages);
            }
            last = std::mem::take(&mut line);
        }
        Err(format!("whole_job.py: {}", last.trim()).into())
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn opening(folder: &Path) -> Opening {
    Opening { data_dir: folder.into(), ..Opening::default() }
}

fn timed(work: impl FnOnce() -> Outcome<()>) -> Outcome<f64> {
    let began = Instant::now();
    work()?;
    Ok(began.elapsed().as_secs_f64())
}

/// `parallax search` with an empty data folder.
fn searched(question: &Question, corpus: Option<&Path>) -> Outcome<()> {
    let folder = tempfile::tempdir()?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_parallax"));
    command.arg("search").arg(&question.text).arg("--data-dir").arg(folder.path());
    if let Some(corpus) = corpus {
        command.arg("--corpus").arg(corpus);
    }
    let done = command.stdin(Stdio::null()).output()?;
    if done.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&done.stderr).into()) }
}

/// The explorer in a pseudo-terminal, until all three lanes show the verdicts of their first k.
fn explored(question: &Question) -> Outcome<()> {
    let folder = tempfile::tempdir()?;
    let size =
        portable_pty::PtySize { rows: ROWS.get(), cols: COLUMNS.get(), pixel_width: 0, pixel_height: 0 };
    let pair = portable_pty::native_pty_system().openpty(size)?;
    let mut command = portable_pty::CommandBuilder::new(env!("CARGO_BIN_EXE_parallax"));
    command.arg("--data-dir");
    command.arg(folder.path());
    command.arg(&question.text);
    command.env("TERM", "xterm-256color");
    let mut child = pair.slave.spawn_command(command)?;
    let mut reader = pair.master.try_clone_reader()?;
    let mut screen = vt100::Parser::new(ROWS, COLUMNS, 0);
    let mut bytes = [0; 65_536];
    while screen.screen().contents().matches("5/5 judged").count() < 3 {
        let read = reader.read(&mut bytes)?;
        if read == 0 {
            return Err("the explorer ended".into());
        }
        screen.process(&bytes[..read]);
    }
    child.kill()?;
    child.wait()?;
    Ok(())
}

/// Everything, cold and warm.
pub fn job(page: &mut Page, python: Option<(PathBuf, PathBuf)>) -> Outcome<()> {
    let python = python.as_ref().map(|(python, model)| (python.as_path(), model.as_path()));
    page.table("One question, from nothing: seconds", &["this program", "the Python script", "ratio"]);
    cold(page, python)?;
    page.table(
        "One more question, all loaded: milliseconds",
        &["this program", "the Python script", "ratio"],
    );
    warm(page, python)
}

fn cold(page: &mut Page, python: Option<(&Path, &Path)>) -> Outcome<()> {
    let question = parallax::question::set::builtin(parallax::corpus::sample::QUESTIONS).swap_remove(0);
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("sample_data/corpus.jsonl");
    let ways: [(&str, &dyn Fn() -> Outcome<()>); 3] = [
        ("`parallax search`, the sample with its built-in vectors", &|| searched(&question, None)),
        ("`parallax QUESTION` in a pseudo-terminal, to the coloured verdicts", &|| explored(&question)),
        ("`parallax search --corpus`, the sample imported, indexed and embedded", &|| {
            searched(&question, Some(&corpus))
        }),
    ];
    let mut rounds = [Rounds::default(), Rounds::default(), Rounds::default()];
    for round in 0..=COLD {
        let theirs = python.map(|python| timed(|| Script::start(python)?.ask(&question).map(drop)));
        let theirs = theirs.transpose()?;
        for ((_, way), rounds) in ways.iter().zip(&mut rounds) {
            let ours = timed(way)?;
            // The first round fills the page cache.
            if round > 0 {
                rounds.push(ours, theirs);
            }
        }
    }
    for ((name, _), rounds) in ways.iter().zip(&rounds) {
        page.row(name, &cells(rounds, |seconds| seconds));
    }
    Ok(())
}

fn warm(page: &mut Page, python: Option<(&Path, &Path)>) -> Outcome<()> {
    let mut script = python.map(Script::start).transpose()?;
    let mut rounds = Rounds::default();
    let (mut pairs, mut of_theirs) = (0, 0);
    for round in 0..=WARM {
        // A data folder of its own, so that no verdict is there.
        let folder = tempfile::tempdir()?;
        let setup = Setup::open(&opening(folder.path()), &|_| (), &Stop::never())?;
        setup.detector()?;
        setup.vectors(None)?;
        setup.terms()?;
        for question in setup.questions.iter().take(QUESTIONS) {
            let mut asked = 0;
            let ours = timed(|| {
                asked = answered(&setup, question)?;
                Ok(())
            })?;
            let theirs = match script.as_mut() {
                Some(script) => {
                    let began = Instant::now();
                    let messages = script.ask(question)?;
                    let theirs = began.elapsed().as_secs_f64();
                    if round > 0 {
                        of_theirs += messages["pairs"].as_u64().unwrap_or(0);
                    }
                    Some(theirs)
                }
                None => None,
            };
            if round > 0 {
                pairs += asked;
                rounds.push(ours, theirs);
            }
        }
    }
    page.row(
        "lists of three lanes, and the verdicts of their first 5",
        &cells(&rounds, |seconds| seconds * 1e3),
    );
    let theirs = if script.is_some() { format!(", {of_theirs} by the script") } else { String::new() };
    page.add(&format!("\nPairs judged in the warm rounds: {pairs} by this program{theirs}."));
    Ok(())
}

/// Ranks three lanes and judges the first k of each; how many pairs that were.
fn answered(setup: &Setup, question: &Question) -> Outcome<usize> {
    let query =
        Query { question: question.clone(), lanes: Recipe::defaults(), k: K, source: LabelSource::Model };
    let pairs = AtomicUsize::new(0);
    let found = run(setup, query, Depth::Top, Lists::default(), &Stop::never(), &|event| {
        let verdict = matches!(event, Event::Judged(judged) if judged.known.model.is_some());
        pairs.fetch_add(usize::from(verdict), Ordering::Relaxed);
    })?;
    found.lanes.into_iter().try_for_each(|lane| lane.ranking.map(drop))?;
    Ok(pairs.into_inner())
}
