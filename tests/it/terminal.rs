//! The real program in a pseudo-terminal.

use std::io::{Read, Write};
use std::num::NonZero;
use std::process::Command;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use tempfile::TempDir;

use crate::stage::QUESTION;

/// A hang is told instead of waited for.
const PATIENCE: Duration = Duration::from_secs(300);

struct Terminal {
    child: Box<dyn Child + Send + Sync>,
    keys: Box<dyn Write + Send>,
    heard: Receiver<Vec<u8>>,
    screen: vt100::Parser,
    raw: Vec<u8>,
    _master: Box<dyn MasterPty + Send>,
    _data: TempDir,
}

impl Terminal {
    fn open(arguments: &[&str]) -> Self {
        let data = tempfile::tempdir().unwrap();
        let pty = native_pty_system()
            .openpty(PtySize { rows: 40, cols: 140, pixel_width: 0, pixel_height: 0 })
            .unwrap();
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_parallax"));
        command.args(arguments);
        command.arg("--data-dir");
        command.arg(data.path());
        command.cwd(data.path());
        command.env("TERM", "xterm-256color");
        for name in ["NO_COLOR", "PARALLAX_CORPUS", "PARALLAX_QUESTIONS", "PARALLAX_LABELS"] {
            command.env_remove(name);
        }
        let child = pty.slave.spawn_command(command).unwrap();
        drop(pty.slave);
        let (send, heard) = mpsc::channel();
        let mut output = pty.master.try_clone_reader().unwrap();
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            // The end of the program is an error of the terminal on some systems.
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                if send.send(bytes[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        let keys = pty.master.take_writer().unwrap();
        let screen = vt100::Parser::new(NonZero::new(40).unwrap(), NonZero::new(140).unwrap(), 0);
        Terminal { child, keys, heard, screen, raw: Vec::new(), _master: pty.master, _data: data }
    }

    fn take(&mut self, bytes: &[u8]) {
        self.screen.process(bytes);
        self.raw.extend(bytes);
    }

    #[track_caller]
    fn wait_for(&mut self, text: &str) {
        while !self.screen.screen().contents().contains(text) {
            match self.heard.recv_timeout(PATIENCE) {
                Ok(bytes) => self.take(&bytes),
                Err(error) => panic!("{error}: no `{text}` on\n{}", self.screen.screen().contents()),
            }
        }
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// Waits for the end and checks that the terminal was given back.
    #[track_caller]
    fn ends_and_gives_the_terminal_back(mut self) {
        while let Ok(bytes) = self.heard.recv_timeout(PATIENCE) {
            self.take(&bytes);
        }
        assert!(self.child.wait().unwrap().success());
        let screen = self.screen.screen();
        assert!(!screen.alternate_screen(), "the alternate screen is left");
        assert!(!screen.hide_cursor(), "the cursor is shown");
        let told = String::from_utf8_lossy(&self.raw);
        for sequence in ["\u{1b}[?1049h", "\u{1b}[?1049l", "\u{1b}[?25h", "\u{1b}[?1000l", "\u{1b}[?2004l"] {
            assert!(told.contains(sequence), "no {sequence:?}");
        }
        assert!(told.rfind("\u{1b}[?1049l") > told.rfind("\u{1b}[?1049h"));
        assert!(told.rfind("\u{1b}[?25h") > told.rfind("\u{1b}[?25l"));
    }
}

#[test]
fn a_question_is_typed_answered_and_left_with_q() {
    let mut terminal = Terminal::open(&[]);
    terminal.wait_for("type a question");
    assert!(terminal.screen.screen().alternate_screen());
    terminal.press(QUESTION);
    terminal.wait_for(QUESTION);
    terminal.press("\r");
    terminal.wait_for("Zoos should not be banned.");
    terminal.wait_for("MRecall@5");
    terminal.press("q");
    terminal.ends_and_gives_the_terminal_back();
}

#[test]
fn a_signal_to_end_gives_the_terminal_back_too() {
    let mut terminal = Terminal::open(&[QUESTION]);
    terminal.wait_for("MRecall@5");
    let id = terminal.child.process_id().unwrap();
    let sent = Command::new("sh").args(["-c", &format!("kill -TERM {id}")]).status().unwrap();
    assert!(sent.success());
    terminal.ends_and_gives_the_terminal_back();
}

#[test]
fn a_corpus_that_cannot_be_opened_is_told_on_the_screen() {
    let mut terminal = Terminal::open(&["--corpus", "not-there.jsonl"]);
    terminal.wait_for("could not be opened");
    terminal.wait_for("not-there.jsonl: no such file or folder");
    terminal.press("\u{3}");
    terminal.ends_and_gives_the_terminal_back();
}
