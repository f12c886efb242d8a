//! The parts of a long command: progress on standard error, stopping on a signal, and a log file.
//!
//! A signal stops the command between two steps. Finished steps are stored, so the same command resumes after them.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use parking_lot::Mutex;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

use crate::cli::options::Common;
use crate::report::Rates;
use crate::work::{Job, Progress, Stop};

/// The pause between two lines if standard error is not a terminal.
const PAUSE: Duration = Duration::from_secs(10);

/// Shows the progress of jobs on standard error: on a terminal one line that is redrawn, otherwise a line every ten seconds.
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
    /// When the last line was written, if there is no terminal.
    written: Option<Instant>,
    /// The line that is on the terminal.
    line: Option<ProgressBar>,
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
            let _ = writeln!(io::stderr(), "{text}");
        }
    }
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
    File::options().create(true).append(true).open(path)
}

/// A line as wide as the terminal.
fn line() -> ProgressBar {
    let style = ProgressStyle::with_template("{wide_msg}").unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new_spinner().with_style(style)
}

/// The last signal that arrived; 0 before the first.
static SIGNAL: AtomicI32 = AtomicI32::new(0);

/// The exit code of a command that a signal ended, as in shells.
pub fn exit_code(signal: i32) -> u8 {
    u8::try_from(128 + signal).unwrap_or(u8::MAX)
}

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
    #[cfg(unix)]
    {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM])?;
        // Under nohup the command outlives its terminal.
        if !is_ignored(SIGHUP) {
            signals.add_signal(SIGHUP)?;
        }
        std::thread::spawn(move || {
            for signal in signals.forever() {
                SIGNAL.store(signal, Ordering::Relaxed);
                if arrived.fetch_add(1, Ordering::Relaxed) > 0 {
                    std::process::exit(i32::from(exit_code(signal)));
                }
            }
        });
    }
    #[cfg(not(unix))]
    drop(arrived);
    Ok(stop)
}

/// Whether the program was started with a signal ignored. This can be found out only on Linux.
#[cfg(unix)]
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_128_and_the_number_of_the_signal() {
        assert_eq!([1, 2, 15].map(exit_code), [129, 130, 143]);
    }
}
