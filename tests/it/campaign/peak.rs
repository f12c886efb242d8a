//! The most memory that a program held, as Linux counts it.

use std::fs;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// The field of `/proc/ID/status` in kB; none where there is no such file, or the process has gone.
pub fn held(id: u32, field: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    line.trim_matches([':', '\t', ' ']).split(' ').next()?.parse().ok()
}

/// Runs a command to its end; its output, and the most memory it held in MB (0 where the system does not tell).
pub fn ran(command: &mut Command) -> (Output, u64) {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let id = child.id();
    let (send, ended) = mpsc::channel::<()>();
    let looking = thread::spawn(move || {
        let mut most = 0;
        // It looks again and again, and at once no more when the program has ended.
        while ended.recv_timeout(Duration::from_millis(5)) == Err(RecvTimeoutError::Timeout) {
            most = most.max(held(id, "VmHWM").unwrap_or(0));
        }
        most
    });
    drop(child.stdin.take());
    let output = child.wait_with_output().unwrap();
    drop(send);
    (output, looking.join().unwrap() / 1_024)
}
