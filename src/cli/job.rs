//! What long commands share: progress on standard error, stopping on a signal, the log file, the prompts recorded under `provenance`, and
//! the thresholds of `--fail-under`.
//!
//! A signal stops the command between two steps. Finished steps are stored, so the same command resumes after them.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use indicatif::{ProgressBar, ProgressStyle};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

use crate::cli::options::Common;
use crate::detect::Choice;
use crate::engine::recipe::Rerank;
use crate::engine::{Opening, Recipe, Setup, SetupError};
use crate::expand::Kind;
use crate::input::check_regular;
use crate::llm::{self, Prompts};
use crate::net;
use crate::report::safe;
use crate::report::table::Table;
use crate::report::{Rates, thousands};
use crate::signals::{self, Signal, Which, exit_code};
use crate::work::{Job, Progress, Stop};

/// The shortest pause between two printed lines of progress.
const PAUSE: Duration = Duration::from_secs(10);

/// How long passages are embedded before the cost of all of them is estimated.
const SAMPLE: Duration = Duration::from_secs(2);

/// The time from which the cost is said.
const LONG: Duration = Duration::from_secs(60);

/// Shows the progress of jobs on standard error: on a terminal one line that is redrawn,
/// otherwise at most a line every ten seconds, and one at each end or wait.
///
/// On a terminal, indicatif draws the line and cuts it to the terminal's width. Otherwise indicatif prints nothing, so this type writes
/// the lines.
pub struct Meter {
    state: Mutex<State>,
    terminal: bool,
}

#[derive(Default)]
struct State {
    rates: Rates,
    /// When embedding began, after how many passages, and whether its cost was said.
    embedding: Option<(Instant, u64, bool)>,
    /// When the last line was written, if there is no terminal.
    written: Option<Instant>,
    /// The line that is on the terminal.
    line: Option<ProgressBar>,
}

impl State {
    /// What embedding will cost and what can be done instead of waiting: once, when two seconds have shown that it takes long.
    fn cost(&mut self, progress: Progress, now: Instant) -> Option<String> {
        if progress.job != Job::Embedding {
            return None;
        }
        // Another corpus or model begins.
        self.embedding = self.embedding.filter(|(_, first, _)| progress.done > *first);
        let (began, first, said) = self.embedding.get_or_insert((now, progress.done, false));
        let (took, made) = (now - *began, progress.done - *first);
        if *said || made == 0 || took < SAMPLE {
            return None;
        }
        *said = true;
        let passages = progress.total.saturating_sub(progress.done);
        let left = took.mul_f64(passages as f64 / made as f64);
        (left >= LONG).then(|| cost(passages, left))
    }
}

fn cost(passages: u64, left: Duration) -> String {
    let minutes = left.as_secs().div_ceil(60);
    let time = if minutes < 120 { format!("{minutes} minutes") } else { format!("{} hours", minutes / 60) };
    format!(
        "{} passages are to be embedded, in about {time}; Ctrl-C stops, and the same command goes on there. \
         An encoder's vectors can be made on another machine: parallax corpus vectors --help",
        thousands(passages)
    )
}

impl Default for Meter {
    fn default() -> Self {
        Meter { state: Mutex::default(), terminal: io::stderr().is_terminal() }
    }
}

impl Meter {
    /// Shows one step of a job.
    pub fn show(&self, progress: Progress) {
        let mut state = self.state.lock();
        let now = Instant::now();
        let text = state.rates.text(progress, now);
        if let Some(cost) = state.cost(progress, now) {
            let say = || writeln!(safe::stderr(), "parallax: {cost}");
            // A failure to print it does not stop the command.
            let _ = state.line.as_ref().map_or_else(say, |line| line.suspend(say));
        }
        let ended = progress.total > 0 && progress.done == progress.total;
        if self.terminal {
            let line = state.line.get_or_insert_with(line).clone();
            if ended {
                line.abandon_with_message(text);
                state.line = None;
            } else {
                line.set_message(text);
            }
            return;
        }
        let waits = matches!(progress.job, Job::Waiting { .. });
        if ended || waits || state.written.is_none_or(|written| now - written >= PAUSE) {
            state.written = Some(now);
            // A failure to print progress does not stop the command.
            let _ = writeln!(safe::stderr(), "{text}");
        }
    }
}

/// Opens the corpus, models and labels that the user named. Says on standard error what was damaged and is made again.
///
/// # Errors
/// See [`SetupError`].
pub fn open_setup(opening: &Opening, meter: &Meter, stop: &Stop) -> Result<Setup, SetupError> {
    let setup = Setup::open(opening, &|progress| meter.show(progress), stop)?;
    for note in &setup.damage {
        // A failure to print it does not stop the command.
        let _ = writeln!(safe::stderr(), "parallax: {note}");
    }
    Ok(setup)
}

/// Starts the log, if `--log FILE` was typed or RUST_LOG is set. RUST_LOG says what is logged, such as `parallax=debug`; without
/// --log the file is `parallax.log` in the data folder.
///
/// Only events of this crate are written, since the libraries below may log what is sent to a server, secrets included.
///
/// # Errors
/// The file cannot be written, or RUST_LOG is not a filter.
pub fn start_log(common: &Common) -> anyhow::Result<()> {
    let wanted = std::env::var("RUST_LOG").ok().filter(|filter| !filter.trim().is_empty());
    let path = match (&common.log, &wanted) {
        (Some(path), _) => path.clone(),
        (None, Some(_)) => common.opening().data_dir.join("parallax.log"),
        (None, None) => return Ok(()),
    };
    let filter = EnvFilter::try_new(wanted.as_deref().unwrap_or("parallax=info"))
        .context("RUST_LOG: expected a filter such as parallax=debug")?;
    let file = open_log(&path).with_context(|| format!("{}: the log cannot be written", path.display()))?;
    let own = filter_fn(|event| event.target().split("::").next() == Some(env!("CARGO_PKG_NAME")));
    let lines =
        tracing_subscriber::fmt::layer().with_ansi(false).with_writer(Arc::new(file)).with_filter(own);
    tracing_subscriber::registry().with(filter).with(lines).try_init().context("the log was started twice")
}

fn open_log(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder)?;
    }
    // A log may go to the streams of the process; another pipe or device could block. Paths below /dev are not checked.
    if !path.starts_with("/dev") && !path.starts_with("/proc/self/fd") {
        check_regular(path, u64::MAX)?;
    }
    File::options().create(true).append(true).open(path)
}

/// Writes a line every ten seconds while the program waits for a server. The explorer shows it on its screen instead.
pub fn show_waits() {
    let written: Mutex<Option<Instant>> = Mutex::new(None);
    net::observe(move |wait| {
        let (mut written, now) = (written.lock(), Instant::now());
        if written.is_none_or(|written| now - written >= PAUSE) {
            *written = Some(now);
            let _ = writeln!(safe::stderr(), "parallax: {wait}");
        }
    });
}

/// A line as wide as the terminal.
fn line() -> ProgressBar {
    let style = ProgressStyle::with_template("{wide_msg}").unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new_spinner().with_style(style)
}

/// The last signal that arrived; 0 before the first.
static SIGNAL: AtomicI32 = AtomicI32::new(0);

/// The exit code after [`stop_on_signal`] has stopped a command: 130 after SIGINT, 143 after SIGTERM, 129 after SIGHUP.
pub fn interrupted() -> ExitCode {
    ExitCode::from(exit_code(SIGNAL.load(Ordering::Relaxed)))
}

/// Returns a `Stop` that is set when SIGINT, SIGTERM or SIGHUP arrives. A second signal ends the program at once.
///
/// # Errors
/// The system refuses a signal handler.
pub fn stop_on_signal() -> io::Result<Stop> {
    let arrived = Arc::new(AtomicU64::new(0));
    let stop = Stop::when_past(&arrived, 0);
    signals::listen(Which::Requests, move |signal| {
        if let Signal::End(number) = signal {
            SIGNAL.store(number, Ordering::Relaxed);
            if arrived.fetch_add(1, Ordering::Relaxed) > 0 {
                std::process::exit(i32::from(exit_code(number)));
            }
        }
        true
    })?;
    Ok(stop)
}

/// The prompts with which a language model judges, or expands queries of these lanes: name, version and hash by job. `None` if there
/// are none.
pub fn prompts_in_use(common: &Common, setup: &Setup, recipes: &[Recipe]) -> Option<Value> {
    let judges = common.detector() == Choice::Llm;
    by_job(&setup.prompts, &jobs(judges, setup.chat.is_some(), recipes))
}

/// The name, version and hash of the prompt for each of these jobs; `None` without jobs.
pub fn by_job(prompts: &Prompts, jobs: &[llm::Job]) -> Option<Value> {
    let ids: Map<String, Value> =
        jobs.iter().map(|job| (job.name().to_owned(), json!(prompts.get(*job).id))).collect();
    (!ids.is_empty()).then_some(Value::Object(ids))
}

/// The jobs of a language model that judges, or that expands queries.
fn jobs(judges: bool, expands: bool, recipes: &[Recipe]) -> Vec<llm::Job> {
    let expands_by =
        |recipe: &Recipe, kind| recipe.switches.expand.as_ref().is_some_and(|own| own.kind == kind);
    let uses = |kind| expands && recipes.iter().any(|recipe| expands_by(recipe, kind));
    let in_use = |job: &llm::Job| match job {
        llm::Job::Detect => judges,
        llm::Job::Perspectives => uses(Kind::Perspectives),
        // These also ask for KEQE's hypothetical answers.
        llm::Job::Keqe => [Kind::Keqe, Kind::Csqe, Kind::Grf, Kind::Q2d].into_iter().any(uses),
        llm::Job::Q2dPrf => uses(Kind::Q2dPrf),
        llm::Job::Csqe => uses(Kind::Csqe),
        llm::Job::Listwise => {
            expands
                && recipes.iter().any(|recipe| matches!(recipe.switches.rerank, Some(Rerank::Listwise(_))))
        }
        _ => false,
    };
    llm::Job::ALL.into_iter().filter(in_use).collect()
}

/// The row that a lane's name means: its recipe, however it is written; a run may be named without its folder.
pub fn find_row(option: &str, name: &str, rows: &[String]) -> anyhow::Result<usize> {
    let recipe = |text: &str| text.parse::<Recipe>();
    let named = recipe(name);
    let file = |recipe: &Recipe| recipe.run().and_then(|run| run.path.file_name().map(ToOwned::to_owned));
    let same = |row: &String| match (recipe(row), &named) {
        _ if *row == name => true,
        (Ok(row), Ok(named)) => {
            let bare = named.run().is_some_and(|run| run.path.components().count() == 1);
            row == *named || (bare && row.switches == named.switches && file(&row) == file(named))
        }
        _ => false,
    };
    match rows.iter().position(same) {
        Some(row) => Ok(row),
        None => bail!("{option}: there is no lane `{name}`, only {}", rows.join(", ")),
    }
}

/// The least mean that one lane must reach.
#[derive(Clone, Debug, PartialEq)]
pub struct Threshold {
    lane: String,
    measure: String,
    least: f64,
}

impl FromStr for Threshold {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let parts = || {
            let (name, least) = text.split_once(">=")?;
            // A lane may hold colons, a measure holds none.
            let (lane, measure) = name.trim().rsplit_once(':')?;
            let least = least.trim().parse::<f64>().ok().filter(|least| least.is_finite())?;
            Some(Threshold { lane: lane.trim().into(), measure: measure.trim().into(), least })
        };
        match parts() {
            Some(bound) => Ok(bound),
            None => {
                bail!("--fail-under `{text}`: expected LANE:MEASURE>=NUMBER, such as minilm:MRecall@5>=0.3")
            }
        }
    }
}

impl Threshold {
    /// The row that it names.
    pub fn row(&self, rows: &[String]) -> anyhow::Result<usize> {
        find_row("--fail-under", &self.lane, rows)
    }

    /// Why the table fails it; `None` if it passes.
    ///
    /// # Errors
    /// The table has no such lane or measure.
    pub fn failure(&self, table: &Table) -> anyhow::Result<Option<String>> {
        let tables = || std::iter::once(table).chain(&table.further);
        let found = tables().find_map(|table| {
            let column = table.columns.iter().position(|head| head.name.eq_ignore_ascii_case(&self.measure));
            Some((table, column?))
        });
        let Some((table, column)) = found else {
            let heads = tables().flat_map(|table| &table.columns);
            let columns: Vec<&str> = heads.map(|head| head.name.as_str()).collect();
            bail!("--fail-under: there is no measure `{}`, only {}", self.measure, columns.join(", "));
        };
        let rows: Vec<String> = table.rows.iter().map(|row| row.lane.clone()).collect();
        let row = &table.rows[self.row(&rows)?];
        let mean = row.cells[column].as_ref().map(|cell| cell.mean);
        Ok(match mean {
            Some(mean) if mean >= self.least => None,
            Some(mean) => Some(format!("{} {} is {mean:.4}, below {}", row.lane, self.measure, self.least)),
            None => Some(format!("{} {} could not be measured", row.lane, self.measure)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::table::{Cell, Row};

    #[test]
    fn prompts_that_judge_or_expand_are_given_with_their_hashes() {
        let lanes = |names: &[&str]| names.iter().map(|name| name.parse().unwrap()).collect::<Vec<Recipe>>();
        let builtin = Prompts::builtin().unwrap();
        let used = by_job(&builtin, &jobs(true, true, &lanes(&["bm25", "bm25+keqe"]))).unwrap();
        assert_eq!(used["detect"]["hash"], builtin.get(llm::Job::Detect).id.hash);
        assert_eq!(used["keqe"]["hash"], builtin.get(llm::Job::Keqe).id.hash);
        assert_eq!(used.as_object().map(Map::len), Some(2));
        let one_shot = Prompts::with(&["detect-one-shot".into()]).unwrap();
        let other = by_job(&one_shot, &jobs(true, false, &lanes(&["bm25+csqe"]))).unwrap();
        assert_ne!(other["detect"]["hash"], used["detect"]["hash"]);
        assert_eq!(other.as_object().map(Map::len), Some(1), "nothing expands");
        assert_eq!(by_job(&builtin, &jobs(false, true, &lanes(&["bm25", "bm25+rm3"]))), None);
    }

    #[test]
    fn the_cost_of_embedding_is_said_once_and_only_if_it_takes_long() {
        let start = Instant::now();
        let said = |total: u64| {
            let mut state = State::default();
            let at = |done, seconds| {
                (Progress { job: Job::Embedding, done, total }, start + Duration::from_secs(seconds))
            };
            let steps = [at(16, 0), at(32, 1), at(216, 2), at(400, 4)];
            steps.into_iter().filter_map(|(progress, now)| state.cost(progress, now)).collect::<Vec<_>>()
        };
        // 100 passages a second.
        assert_eq!(said(6_000), [] as [String; 0]);
        let long = said(36_554 + 216);
        assert_eq!(long.len(), 1);
        assert!(long[0].starts_with("36,554 passages are to be embedded, in about 7 minutes;"), "{long:?}");
        assert!(said(21_000_216)[0].contains("in about 58 hours;"));
        // A short embedding does not silence the long one after it.
        let (mut state, at) = (State::default(), |done, total, seconds| {
            (Progress { job: Job::Embedding, done, total }, start + Duration::from_secs(seconds))
        });
        let steps = [
            at(0, 500, 0),
            at(300, 500, 3),
            at(500, 500, 5),
            at(0, 90_000, 9),
            at(20, 90_000, 10),
            at(300, 90_000, 12),
        ];
        let said: Vec<_> =
            steps.into_iter().filter_map(|(progress, now)| state.cost(progress, now)).collect();
        assert!(said.len() == 1 && said[0].starts_with("89,700 passages"), "{said:?}");
    }

    fn table(mean: f64) -> Table {
        let cell = Cell { mean, n: 1, ..Cell::default() };
        let row = Row { lane: "bm25@k1=0.9,b=0.4".into(), cells: vec![Some(cell)], ..Row::default() };
        Table { columns: vec!["MRecall@5".into()], rows: vec![row], ..Table::default() }
    }

    #[test]
    fn a_threshold_holds_or_says_by_how_much_it_fails() {
        let threshold: Threshold = "bm25:mrecall@5>=0.3".parse().unwrap();
        assert_eq!(threshold.failure(&table(0.3)).unwrap(), None);
        assert!(threshold.failure(&table(0.29)).unwrap().unwrap().contains("is 0.2900, below 0.3"));
    }

    #[test]
    fn a_run_may_be_named_without_its_folder() {
        let rows = ["bm25", "run:data/a.json", "run:data/a.json+mmr@0.75"].map(String::from);
        let row = |text: &str| text.parse::<Threshold>().unwrap().row(&rows).ok();
        assert_eq!(row("run:a.json:nDCG@10>=.5"), Some(1));
        assert_eq!(row("run:a.json+mmr:nDCG@10>=.5"), Some(2));
        assert_eq!(row("run:other/a.json:nDCG@10>=.5"), None);
    }

    #[test]
    fn a_threshold_that_names_nothing_is_an_error() {
        for text in ["", "bm25>=1", "bm25:MRecall@5", "bm25:MRecall@5>=x", "bm25:MRecall@5>=nan"] {
            assert!(text.parse::<Threshold>().is_err(), "{text}");
        }
        for text in ["minilm:MRecall@5>=0", "bm25:Prec@5>=0"] {
            assert!(text.parse::<Threshold>().unwrap().failure(&table(1.0)).is_err(), "{text}");
        }
    }
}
