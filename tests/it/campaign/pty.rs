//! The real program in a pseudo-terminal, probed again and again.
//!
//! Most probes are a change of size: the program handles everything sent before it, then clears the screen and draws again. The time until
//! then is how long a person would have waited. Some are a key, because a program that draws may still be deaf.

use std::fs;
use std::io::{Read, Write};
use std::num::NonZero;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use tempfile::TempDir;

use crate::program::program;

/// Sent before every frame that is drawn from nothing.
const CLEARED: &[u8] = b"\x1b[2J";
/// Sent when the terminal is given back, also for a stop.
const GIVEN_BACK: &[u8] = b"\x1b[?1049l";
/// Bytes of output to remember, for checks at the end and for failures.
const REMEMBERED: usize = 1 << 18;
/// A program that is silent for so long hangs, even on a loaded machine.
const HANGS: Duration = Duration::from_secs(300);

/// The interval between two checks whether the program was stopped.
const LOOK: Duration = Duration::from_millis(200);

/// The outcome of a probe.
#[derive(Debug, PartialEq)]
pub enum Answer {
    /// The program answered after the first time; the second is how long its main thread waited for a core.
    After(Duration, Duration),
    /// The program has ended.
    Ended,
    /// The program did not answer.
    Hangs,
}

pub struct Screen {
    child: Box<dyn Child + Send + Sync>,
    /// Written by a thread: a stopped program reads nothing, and a blocked writer could not wake it.
    keys: Sender<Vec<u8>>,
    written: Receiver<()>,
    output: Receiver<Vec<u8>>,
    master: Box<dyn MasterPty + Send>,
    tail: Vec<u8>,
    pub size: (u16, u16),
    before: String,
    files: Option<TempDir>,
    /// Whether Ctrl-Z was sent, and Ctrl-C after it.
    suspended: bool,
    interrupted: bool,
}

impl Screen {
    pub fn open(arguments: &[&str]) -> Self {
        let files = tempfile::tempdir().unwrap();
        let data = files.path().join("data");
        let mut screen = Screen::open_in(arguments, &data);
        screen.files = Some(files);
        screen
    }

    /// With a data folder that outlives the program.
    pub fn open_in(arguments: &[&str], data: &Path) -> Self {
        fs::create_dir_all(data).unwrap();
        let size = (120, 36);
        let pty = native_pty_system().openpty(pixels(size)).unwrap();
        let mut command = CommandBuilder::new(program());
        command.args(arguments);
        command.arg("--data-dir");
        command.arg(data);
        command.cwd(data);
        command.env("TERM", "xterm-256color");
        command.env("PARALLAX_CONFIG", crate::program::NO_CONFIG);
        for name in ["NO_COLOR", "PARALLAX_CORPUS", "PARALLAX_QUESTIONS", "PARALLAX_LABELS"] {
            command.env_remove(name);
        }
        let before = settings(pty.master.as_ref());
        let child = pty.slave.spawn_command(command).unwrap();
        drop(pty.slave);
        let (send, output) = mpsc::channel();
        let mut reader = pty.master.try_clone_reader().unwrap();
        thread::spawn(move || {
            let mut bytes = [0; 65_536];
            while let Ok(count @ 1..) = reader.read(&mut bytes) {
                if send.send(bytes[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        let mut writer = pty.master.take_writer().unwrap();
        let (keys, typed) = mpsc::channel::<Vec<u8>>();
        let (done, written) = mpsc::channel();
        thread::spawn(move || {
            for bytes in typed {
                let wrote = writer.write_all(&bytes).and_then(|()| writer.flush());
                if wrote.is_err() || done.send(()).is_err() {
                    return;
                }
            }
        });
        let (master, tail) = (pty.master, Vec::new());
        let mut screen = Screen {
            child,
            keys,
            written,
            output,
            master,
            tail,
            size,
            before,
            files: None,
            suspended: false,
            interrupted: false,
        };
        // The program misses size changes until it listens.
        let answered = (0..600u16)
            .any(|i| screen.answer((120 + i % 2, 36), Duration::from_millis(100)) != Answer::Hangs);
        assert!(answered, "it does not start: {}", screen.end_of_output());
        screen
    }

    pub fn id(&self) -> u32 {
        self.child.process_id().unwrap()
    }

    /// Sends keys; does nothing if the program has ended.
    pub fn send(&mut self, bytes: &[u8]) {
        self.suspended |= bytes.contains(&0x1a);
        self.interrupted |= self.suspended && bytes.contains(&3);
        let _ = self.keys.send(bytes.to_vec());
        let began = Instant::now();
        while self.written.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) && began.elapsed() < HANGS {
            self.wake();
        }
    }

    /// Changes the size and waits for the frame.
    pub fn probe(&mut self, size: (u16, u16)) -> Answer {
        self.answer(size, HANGS)
    }

    /// Presses a key that has an effect on every screen, Ctrl-Z, and waits for it: a program that still draws may read no keys.
    pub fn probe_by_key(&mut self) -> Answer {
        // A sequence that was cut off is given up meanwhile.
        self.settle(Duration::from_millis(150));
        // To a stopped program Ctrl-Z is a signal, which is dropped when it goes on.
        while self.wake() {
            self.settle(Duration::from_millis(150));
        }
        let (id, mut came) = (self.id(), Vec::new());
        let (waited, began) = (run_delay(id), Instant::now());
        self.send(&[0x1a]);
        loop {
            match self.output.recv_timeout(LOOK) {
                Ok(bytes) => {
                    self.take(&bytes);
                    came.extend(bytes);
                    if came.windows(GIVEN_BACK.len()).any(|part| part == GIVEN_BACK) {
                        return Answer::After(began.elapsed(), run_delay(id).saturating_sub(waited));
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return Answer::Ended,
                Err(RecvTimeoutError::Timeout) if began.elapsed() > HANGS => return Answer::Hangs,
                // It may still be stopped by an earlier Ctrl-Z.
                Err(RecvTimeoutError::Timeout) => drop(self.wake()),
            }
        }
    }

    /// Wakes a program that Ctrl-Z has stopped, as a shell would. Returns whether it was stopped.
    fn wake(&self) -> bool {
        let id = self.id();
        let sleeps = is_stopped(id);
        if sleeps {
            let woken = Command::new("sh").args(["-c", &format!("kill -CONT {id}")]).status();
            assert!(woken.unwrap().success());
        }
        sleeps
    }

    fn answer(&mut self, size: (u16, u16), patience: Duration) -> Answer {
        while let Ok(bytes) = self.output.try_recv() {
            self.take(&bytes);
        }
        let (id, mut came) = (self.id(), Vec::new());
        let waited = run_delay(id);
        let mut began = Instant::now();
        self.size = size;
        let _ = self.master.resize(pixels(size));
        loop {
            match self.output.recv_timeout(patience.min(LOOK)) {
                Ok(bytes) => {
                    self.take(&bytes);
                    came.extend(bytes);
                    if came.windows(CLEARED.len()).any(|part| part == CLEARED) {
                        return Answer::After(began.elapsed(), run_delay(id).saturating_sub(waited));
                    }
                    came.drain(..came.len().saturating_sub(CLEARED.len()));
                }
                Err(RecvTimeoutError::Disconnected) => return Answer::Ended,
                Err(RecvTimeoutError::Timeout) if began.elapsed() > patience => return Answer::Hangs,
                Err(RecvTimeoutError::Timeout) if self.wake() => began = Instant::now(),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Waits until a text is on the screen.
    pub fn wait_for(&mut self, text: &str) {
        while !self.shows(text) {
            match self.output.recv_timeout(HANGS) {
                Ok(bytes) => self.take(&bytes),
                Err(error) => panic!("{error}: no `{text}` in {}", self.end_of_output()),
            }
        }
    }

    /// Frames are sent as differences, so a word can arrive in pieces.
    fn shows(&self, text: &str) -> bool {
        let clear = self.tail.windows(CLEARED.len()).rposition(|part| part == CLEARED).unwrap_or(0);
        let (cols, rows) = (NonZero::new(self.size.0).unwrap(), NonZero::new(self.size.1).unwrap());
        let mut screen = vt100::Parser::new(rows, cols, 0);
        screen.process(&self.tail[clear..]);
        screen.screen().contents().contains(text)
    }

    /// Reads output until there is none for `quiet`.
    pub fn settle(&mut self, quiet: Duration) {
        while let Ok(bytes) = self.output.recv_timeout(quiet) {
            self.take(&bytes);
        }
    }

    /// Remembers the end of the output.
    fn take(&mut self, bytes: &[u8]) {
        if self.tail.len() + bytes.len() > 2 * REMEMBERED {
            self.tail.drain(..self.tail.len().saturating_sub(REMEMBERED));
        }
        self.tail.extend_from_slice(bytes);
    }

    /// The end of the output, readable.
    pub fn end_of_output(&self) -> String {
        String::from_utf8_lossy(&self.tail[self.tail.len().saturating_sub(3_000)..])
            .escape_debug()
            .to_string()
    }

    /// Waits for the end. Returns the first fault: a panic, an exit code, a terminal that was not given back.
    pub fn ended(mut self) -> Option<String> {
        loop {
            match self.output.recv_timeout(HANGS) {
                Ok(bytes) => self.take(&bytes),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    let _ = self.child.kill();
                    return Some("it does not end".into());
                }
            }
        }
        let status = self.child.wait().unwrap();
        let text = String::from_utf8_lossy(&self.tail);
        let last = |sequence: &str| text.rfind(sequence);
        if text.contains("panicked at") {
            return Some(format!("it panicked: {}", self.end_of_output()));
        }
        // Ctrl-C is a signal while Ctrl-Z has given the terminal back.
        let interrupted = self.interrupted && status.exit_code() == 128 + 2;
        if !status.success() && !interrupted {
            return Some(format!("it ended with {status:?}: {}", self.end_of_output()));
        }
        for (on, off) in [
            ("\u{1b}[?1049h", "\u{1b}[?1049l"),
            ("\u{1b}[?25l", "\u{1b}[?25h"),
            ("\u{1b}[?1000h", "\u{1b}[?1000l"),
            ("\u{1b}[?2004h", "\u{1b}[?2004l"),
        ] {
            if last(off).is_none() || last(off) < last(on) {
                return Some(format!("{off:?} was not sent at the end"));
            }
        }
        let after = settings(self.master.as_ref());
        (after != self.before)
            .then(|| format!("the terminal was left as {after} and found as {}", self.before))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn pixels((cols, rows): (u16, u16)) -> PtySize {
    PtySize { rows, cols, pixel_width: 0, pixel_height: 0 }
}

/// The settings of the terminal: raw or not, echo or not.
fn settings(master: &(dyn MasterPty + Send)) -> String {
    master.get_termios().map_or_else(String::new, |settings| format!("{settings:?}"))
}

fn is_stopped(id: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    status.rsplit(") ").next().is_some_and(|rest| rest.starts_with('T'))
}

/// How long the main thread of a process has waited for a core; 0 without Linux.
fn run_delay(id: u32) -> Duration {
    let statistics = fs::read_to_string(format!("/proc/{id}/task/{id}/schedstat")).unwrap_or_default();
    Duration::from_nanos(statistics.split(' ').nth(1).and_then(|delay| delay.parse().ok()).unwrap_or(0))
}
