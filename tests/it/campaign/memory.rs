//! The memory of a process, and memory, threads and open files of the explorer over hours of use.
//!
//! The test uses the explorer as a person would, only faster, and measures after every round. At one key per second, 7,200 keys take two
//! hours.

use std::fs;
use std::io::Read;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// A field of `/proc/ID/status` in kB; `None` without such a file or process.
pub fn held(id: u32, field: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    line.trim_matches([':', '\t', ' ']).split(' ').next()?.parse().ok()
}

/// Runs a command. Returns its output and its peak memory in MB (0 if the system does not report it). A command that runs longer than
/// `patience` is killed, so its status has no code.
pub fn ran(command: &mut Command, patience: Duration) -> (Output, u64) {
    let (output, most, _) = ran_for(command, patience);
    (output, most)
}

/// The processor time of a process so far; 0 without Linux.
fn processor_time(id: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
    // In hundredths of a second: in user mode, and in the kernel.
    let ticks = |at: usize| fields.get(at).and_then(|ticks| ticks.parse::<u64>().ok()).unwrap_or(0);
    Duration::from_millis((ticks(11) + ticks(12)) * 10)
}

/// [`ran`], with the processor time of the command, which does not depend on what else the machine does.
pub fn ran_for(command: &mut Command, patience: Duration) -> (Output, u64, Duration) {
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (send, ended) = mpsc::channel::<()>();
    let (out, err) =
        (whole(child.stdout.take().unwrap(), send.clone()), whole(child.stderr.take().unwrap(), send));
    let (began, mut most, mut took) = (Instant::now(), 0, Duration::ZERO);
    // Both outputs end with the program, and the wait with them.
    while ended.recv_timeout(Duration::from_millis(5)) == Err(RecvTimeoutError::Timeout) {
        most = most.max(held(child.id(), "VmHWM").unwrap_or(0));
        took = took.max(processor_time(child.id()));
        if began.elapsed() > patience {
            child.kill().unwrap();
            break;
        }
    }
    let status = child.wait().unwrap();
    (Output { status, stdout: out.join().unwrap(), stderr: err.join().unwrap() }, most / 1_024, took)
}

/// Reads to the end, then drops the sender.
fn whole(mut from: impl Read + Send + 'static, send: mpsc::Sender<()>) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes).unwrap();
        drop(send);
        bytes
    })
}

#[cfg(target_os = "linux")]
mod explorer {
    use super::*;
    use crate::campaign::keys::bytes_of;
    use crate::campaign::pty::{Answer, Screen};
    use crate::campaign::targets::root;
    use crate::campaign::{long, report};

    /// Rounds of a brief run.
    const BRIEF: usize = 4;
    /// Caches fill at first. From the second quarter to the last, memory may grow by this share plus this number of MB.
    const GROWTH: (f64, f64) = (1.08, 24.0);
    /// The limit in MB, however long the program runs.
    const MOST: u64 = 500;
    /// From the second quarter to the last, the mean number of threads and of open files may grow by this.
    const HANDLES: f64 = 3.0;

    /// What the program holds after a round.
    struct Sample {
        mb: f64,
        threads: f64,
        files: f64,
    }

    impl Sample {
        fn of(id: u32) -> Self {
            let files = fs::read_dir(format!("/proc/{id}/fd")).unwrap().count() as f64;
            let field = |name: &str| held(id, name).unwrap() as f64;
            Sample { mb: field("VmRSS") / 1_024.0, threads: field("Threads"), files }
        }
    }

    /// The keys pressed for each question: reads lists, toggles switches, opens every screen, sets labels and takes them back.
    const ROUND: &[&str] = &[
        "<Enter>",
        "jjj<Tab>jj<Tab>k",
        "<Enter>",
        "jj",
        "<Esc>",
        "m",
        "e",
        "p",
        "v",
        "m",
        "e",
        "p",
        "v",
        "x",
        "x",
        "L",
        "L",
        ".",
        "<Esc>",
        "c",
        "j",
        "<Esc>",
        "F",
        "j",
        "<Esc>",
        "D",
        "j",
        "<Esc>",
        "i",
        "<Esc>",
        "Q",
        "j",
        "<Esc>",
        "n",
        "<Esc>",
        "t",
        "jj",
        "<Esc>",
        "y",
        "j",
        "<Esc>",
        "b",
        "j",
        "<Esc>",
        "r",
        "j",
        "<Esc>",
        "a",
        "s",
        "o",
        "u",
        "u",
        "<Esc>",
        "?",
        "G",
        "<Esc>",
        ":read",
        "<Esc>",
    ];

    #[test]
    fn memory_stays_bounded_and_does_not_grow_over_hours() {
        let questions = fs::read_to_string(root("sample_data/questions.jsonl")).unwrap();
        let questions: Vec<String> = questions
            .lines()
            .map(|line| {
                serde_json::from_str::<serde_json::Value>(line).unwrap()["question"]
                    .as_str()
                    .unwrap()
                    .to_owned()
            })
            .collect();
        let (began, end) = (Instant::now(), long().map(Duration::from_secs));
        let mut screen = Screen::open(&["--annotator", "anna"]);
        let (mut keys, mut samples) = (0, Vec::new());
        let mut probes = 0;
        let mut probe = |screen: &mut Screen| {
            // A size that a late frame may still have is no change to the program and gets no answer.
            probes += 1;
            let size = (122 + probes % 8, screen.size.1);
            assert!(matches!(screen.probe(size), Answer::After(..)), "{}", screen.end_of_output());
        };
        probe(&mut screen);
        while end.map_or(samples.len() < BRIEF, |end| began.elapsed() < end) {
            // Every third question is new: caches by text must be bounded.
            let number = samples.len();
            let question = match number % 3 {
                0 => format!("Should town {number} ban {} by law?", ["zoos", "cars", "kites"][number % 2]),
                _ => questions[number % questions.len()].clone(),
            };
            let typed = ["/", "<C-u>"].map(bytes_of).concat();
            screen.send(&typed);
            screen.send(question.as_bytes());
            keys += 2 + question.chars().count();
            for part in ROUND {
                screen.send(&bytes_of(part));
                keys += parallax::tui::script::parse(part).unwrap().len();
                probe(&mut screen);
                // Waits until the screen no longer changes, as a person would.
                screen.settle(Duration::from_millis(if end.is_some() { 120 } else { 30 }));
            }
            samples.push(Sample::of(screen.id()));
        }
        let peak = held(screen.id(), "VmHWM").unwrap() / 1_024;
        screen.send(&[3]);
        assert_eq!(screen.ended(), None);
        let quarter = (samples.len() / 4).max(1);
        // The means of the first, the second and the last quarter.
        let means = |of: fn(&Sample) -> f64| {
            let mean = |part: &[Sample]| part.iter().map(of).sum::<f64>() / part.len() as f64;
            let second = quarter.min(samples.len() - 1)..(2 * quarter).min(samples.len());
            [mean(&samples[..quarter]), mean(&samples[second]), mean(&samples[samples.len() - quarter..])]
        };
        let ([first, second, last], threads, files) =
            (means(|one| one.mb), means(|one| one.threads), means(|one| one.files));
        let mb: Vec<f64> = samples.iter().map(|one| one.mb).collect();
        report(&format!(
            "memory: {keys} keys in {} rounds and {:.0?}, {:.1} hours at a key a second; {first:.0} MB in the first quarter, {second:.0} in the \
             second, {last:.0} in the last, {:+.2} MB an hour by the slope after the first quarter, at most {peak}; threads {threads:.1?}, open \
             files {files:.1?} in these quarters",
            samples.len(),
            began.elapsed(),
            keys as f64 / 3_600.0,
            slope(&mb[quarter..]) * samples.len() as f64 / (keys as f64 / 3_600.0),
        ));
        assert!(peak < MOST, "{peak} MB: {mb:.0?}");
        for [_, second, last] in [threads, files] {
            assert!(last < second + HANDLES, "threads {threads:.1?}, open files {files:.1?}");
        }
        // A brief run ends before the caches are full.
        if end.is_some() {
            assert!(last < second * GROWTH.0 + GROWTH.1, "{second:.0} MB became {last:.0}: {mb:.0?}");
        }
    }

    /// The least-squares slope per round.
    fn slope(all: &[f64]) -> f64 {
        let n = all.len() as f64;
        let (x, y) = ((n - 1.0) / 2.0, all.iter().sum::<f64>() / n);
        let above: f64 = all.iter().enumerate().map(|(i, mb)| (i as f64 - x) * (mb - y)).sum();
        let below: f64 = (0..all.len()).map(|i| (i as f64 - x).powi(2)).sum();
        if below == 0.0 { 0.0 } else { above / below }
    }
}
