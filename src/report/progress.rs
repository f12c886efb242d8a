//! Long jobs in words: how far, how fast, how long still.

use std::time::{Duration, Instant};

use crate::work::{Job, Progress};

/// Measures the rate of the jobs that are going on.
#[derive(Default)]
pub struct Rates(Vec<(Job, Instant, u64)>);

impl Rates {
    /// A step of a job in words, with its rate since this process began it.
    pub fn text(&mut self, progress: Progress, now: Instant) -> String {
        let known =
            self.0.iter().find(|(job, _, first)| *job == progress.job && *first <= progress.done).copied();
        let (_, began, first) = known.unwrap_or_else(|| {
            self.0.retain(|(job, ..)| *job != progress.job);
            self.0.push((progress.job, now, progress.done));
            (progress.job, now, progress.done)
        });
        text(progress, progress.done - first, now - began)
    }
}

/// `embedding 12,000/36,000 · 81/s · 4 min 56 s left`
pub fn text(progress: Progress, made: u64, took: Duration) -> String {
    let Progress { job, done, total } = progress;
    match job {
        Job::Waiting { process: 0 } => {
            return "waiting for another process, which builds the same corpus".into();
        }
        Job::Waiting { process } => {
            return format!("waiting for process {process}, which builds the same corpus");
        }
        _ => {}
    }
    let rate = made as f64 / took.as_secs_f64().max(1e-3);
    let mut text = format!("{} {}", job.name(), thousands(done));
    if total > 0 {
        text.push_str(&format!("/{}", thousands(total)));
    }
    if made > 0 {
        text.push_str(&format!(" · {}/s", thousands(rate as u64)));
        if total > done && rate > 0.0 {
            let left = ((total - done) as f64 / rate).ceil() as u64;
            text.push_str(&match left / 60 {
                0 => format!(" · {left} s left"),
                minutes => format!(" · {minutes} min {:02} s left", left % 60),
            });
        }
    }
    text
}

/// `36,012`
pub fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_has_a_rate_and_an_end() {
        let progress = Progress { job: Job::Embedding, done: 12_000, total: 36_000 };
        assert_eq!(
            text(progress, 6_000, Duration::from_secs(60)),
            "embedding 12,000/36,000 · 100/s · 4 min 00 s left"
        );
        let unknown = Progress { job: Job::Importing, done: 2_000, total: 0 };
        assert_eq!(text(unknown, 0, Duration::ZERO), "importing 2,000");
        let waiting = Progress { job: Job::Waiting { process: 4_711 }, done: 0, total: 1 };
        let told = "waiting for process 4711, which builds the same corpus";
        assert_eq!(text(waiting, 0, Duration::ZERO), told);
    }
}
