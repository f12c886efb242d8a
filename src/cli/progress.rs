//! Long jobs on standard error: on a terminal one line that is rewritten, else a line every ten seconds.

use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::report::progress::Rates;
use crate::work::{Job, Progress};

#[derive(Default)]
struct State {
    rates: Rates,
    told: Option<Instant>,
}

/// Prints progress as it is told.
pub struct Meter {
    state: Mutex<State>,
    terminal: bool,
}

impl Default for Meter {
    fn default() -> Self {
        Meter { state: Mutex::default(), terminal: io::stderr().is_terminal() }
    }
}

impl Meter {
    /// One step of a job.
    pub fn tell(&self, progress: Progress) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (now, ended) = (Instant::now(), progress.total > 0 && progress.done == progress.total);
        let text = state.rates.text(progress, now);
        let pause = Duration::from_millis(if self.terminal { 100 } else { 10_000 });
        let waits = matches!(progress.job, Job::Waiting { .. });
        if state.told.is_some_and(|told| now - told < pause) && !ended && !waits {
            return;
        }
        state.told = Some(now);
        let mut out = io::stderr().lock();
        // Nobody is helped by a failure to print progress.
        let _ = if self.terminal {
            write!(out, "\r\u{1b}[K{text}{}", if ended { "\n" } else { "" })
        } else {
            writeln!(out, "{text}")
        };
        let _ = out.flush();
    }
}
