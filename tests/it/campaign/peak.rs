//! The most memory that a program held, as Linux counts it.

use std::fs;
use std::io::Read;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// The field of `/proc/ID/status` in kB; none where there is no such file, or the process has gone.
pub fn held(id: u32, field: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    line.trim_matches([':', '\t', ' ']).split(' ').next()?.parse().ok()
}

/// Runs a command to its end; its output, and the most memory it held in MB (0 where the system does not tell). One that runs longer
/// than the patience is killed, so that its status has no code.
pub fn ran(command: &mut Command, patience: Duration) -> (Output, u64) {
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (send, ended) = mpsc::channel::<()>();
    let (out, err) =
        (whole(child.stdout.take().unwrap(), send.clone()), whole(child.stderr.take().unwrap(), send));
    let (began, mut most) = (Instant::now(), 0);
    // It looks again and again, and at once no more when both outputs have ended, as they do with the program.
    while ended.recv_timeout(Duration::from_millis(5)) == Err(RecvTimeoutError::Timeout) {
        most = most.max(held(child.id(), "VmHWM").unwrap_or(0));
        if began.elapsed() > patience {
            child.kill().unwrap();
            break;
        }
    }
    let status = child.wait().unwrap();
    (Output { status, stdout: out.join().unwrap(), stderr: err.join().unwrap() }, most / 1_024)
}

/// Reads to the end, and lets the sender go with it.
fn whole(mut from: impl Read + Send + 'static, send: mpsc::Sender<()>) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes).unwrap();
        drop(send);
        bytes
    })
}
