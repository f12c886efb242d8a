//! The real program in a pseudo-terminal.

use std::fs;
use std::io::{Read, Write};
use std::num::NonZero;
use std::process::Command;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use tempfile::TempDir;

use crate::stage::QUESTION;

/// A hang is told instead of waited for.
const PATIENCE: Duration = Duration::from_secs(300);

struct Terminal {
    child: Box<dyn Child + Send + Sync>,
    keys: Arc<Mutex<Box<dyn Write + Send>>>,
    heard: Receiver<Vec<u8>>,
    screen: vt100::Parser,
    raw: Vec<u8>,
    master: Box<dyn MasterPty + Send>,
    data: TempDir,
}

impl Terminal {
    fn open(arguments: &[&str]) -> Self {
        Terminal::open_with(arguments, "", &[])
    }

    /// With a configuration and an environment.
    fn open_with(arguments: &[&str], config: &str, environment: &[(&str, &str)]) -> Self {
        Terminal::open_in(tempfile::tempdir().unwrap(), arguments, config, environment)
    }

    /// In a folder where it ran before.
    fn open_in(data: TempDir, arguments: &[&str], config: &str, environment: &[(&str, &str)]) -> Self {
        let pty = native_pty_system()
            .openpty(PtySize { rows: 40, cols: 140, pixel_width: 0, pixel_height: 0 })
            .unwrap();
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_parallax"));
        command.args(arguments);
        command.arg("--data-dir");
        command.arg(data.path());
        command.cwd(data.path());
        command.env("TERM", "xterm-256color");
        fs::write(data.path().join("config.toml"), config).unwrap();
        command.env("PARALLAX_CONFIG", data.path().join("config.toml"));
        for name in ["NO_COLOR", "COLORTERM", "PARALLAX_CORPUS", "PARALLAX_QUESTIONS", "PARALLAX_LABELS"] {
            command.env_remove(name);
        }
        for (name, value) in environment {
            command.env(name, value);
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
        let keys = Arc::new(Mutex::new(pty.master.take_writer().unwrap()));
        let screen = vt100::Parser::new(NonZero::new(40).unwrap(), NonZero::new(140).unwrap(), 0);
        Terminal { child, keys, heard, screen, raw: Vec::new(), master: pty.master, data }
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

    fn resize(&self, rows: u16, cols: u16) {
        self.master.resize(PtySize { rows, cols, pixel_width: 0, pixel_height: 0 }).unwrap();
    }

    fn press(&mut self, keys: &str) {
        let mut writer = self.keys.lock().unwrap();
        writer.write_all(keys.as_bytes()).unwrap();
        writer.flush().unwrap();
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

/// There is no shell here to wake it, so that is done by hand.
#[cfg(target_os = "linux")]
#[test]
fn a_program_that_was_put_to_sleep_draws_its_screen_again_when_it_is_woken() {
    let mut terminal = Terminal::open(&[QUESTION]);
    terminal.wait_for("MRecall@5");
    let id = terminal.child.process_id().unwrap();
    terminal.press("\u{1a}");
    let state = || fs::read_to_string(format!("/proc/{id}/stat")).unwrap();
    while !state().rsplit(") ").next().unwrap().starts_with('T') {
        thread::yield_now();
    }
    assert!(Command::new("sh").args(["-c", &format!("kill -CONT {id}")]).status().unwrap().success());
    terminal.screen.process(b"\x1b[2J");
    terminal.wait_for("MRecall@5");
    terminal.press("q");
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

/// The colours of the text on the screen.
fn colours(terminal: &Terminal) -> Vec<vt100::Color> {
    let screen = terminal.screen.screen();
    let cells = (0..40).flat_map(|row| (0..140).filter_map(move |column| screen.cell(row, column)));
    cells.map(|cell| cell.fgcolor()).filter(|colour| *colour != vt100::Color::Default).collect()
}

#[test]
fn no_color_leaves_out_every_colour_and_a_theme_that_is_asked_for_brings_them_back() {
    let mut terminal = Terminal::open_with(&[QUESTION], "theme = 'dark'", &[("NO_COLOR", "1")]);
    terminal.wait_for("MRecall@5");
    assert_eq!(colours(&terminal), []);
    terminal.press("q");
    terminal.ends_and_gives_the_terminal_back();
    let mut terminal =
        Terminal::open_with(&[QUESTION, "--theme", "terminal"], "theme = 'dark'", &[("NO_COLOR", "1")]);
    terminal.wait_for("MRecall@5");
    assert!(colours(&terminal).contains(&vt100::Color::Idx(6)), "{:?}", colours(&terminal));
    terminal.press("q");
    terminal.ends_and_gives_the_terminal_back();
}

#[test]
fn a_theme_is_as_deep_as_the_terminal_says_that_it_is() {
    for (colorterm, deep) in [("truecolor", true), ("", false)] {
        let mut terminal = Terminal::open_with(&[], "theme = 'light'", &[("COLORTERM", colorterm)]);
        terminal.wait_for("type a question");
        let shown = colours(&terminal);
        assert!(!shown.is_empty());
        assert!(shown.iter().all(|colour| matches!(colour, vt100::Color::Rgb(..)) == deep), "{shown:?}");
        terminal.press("\u{3}");
        terminal.ends_and_gives_the_terminal_back();
    }
}

#[test]
fn a_changed_configuration_holds_at_once_and_a_wrong_one_is_told() {
    let mut terminal = Terminal::open_with(&[QUESTION], "", &[]);
    terminal.wait_for("MRecall@5");
    terminal.wait_for("? keys");
    let file = terminal.data.path().join("config.toml");
    fs::write(&file, "glyphs = 'ascii'\nmouse = false\n[keys]\nhelp = '<C-g>'\n").unwrap();
    terminal.wait_for("the configuration was read again");
    terminal.wait_for("^g keys");
    assert!(!terminal.screen.screen().contents().contains('┌'));
    assert_eq!(terminal.screen.screen().mouse_protocol_mode(), vt100::MouseProtocolMode::None);
    fs::write(&file, "glyphs = 'unicode'\nmouse = perhaps\n").unwrap();
    terminal.wait_for("config.toml:2:");
    terminal.wait_for("^g keys");
    terminal.press("\u{7}");
    terminal.wait_for("Esc back");
    terminal.press("\u{3}");
    terminal.ends_and_gives_the_terminal_back();
}

#[test]
fn a_wrong_configuration_at_the_start_is_told_and_nothing_opens() {
    let mut terminal = Terminal::open_with(&[], "thme = 'dark'\n", &[]);
    terminal.wait_for("config.toml:1:1: there is no setting `thme`; did you mean `theme`?");
    assert!(!terminal.screen.screen().alternate_screen());
    assert_eq!(terminal.child.wait().unwrap().exit_code(), 2);
}

#[test]
fn the_last_question_and_its_lanes_are_taken_up_the_next_time() {
    let mut terminal = Terminal::open(&[QUESTION]);
    terminal.wait_for("MRecall@5");
    terminal.press("d");
    terminal.wait_for("dropped bm25");
    terminal.press("q");
    while let Ok(bytes) = terminal.heard.recv_timeout(PATIENCE) {
        terminal.take(&bytes);
    }
    let data = terminal.data;
    let mut terminal = Terminal::open_in(data, &[], "", &[]);
    terminal.wait_for(QUESTION);
    terminal.wait_for("MRecall@5");
    let shown = terminal.screen.screen().contents();
    assert!(shown.contains("MiniLM") && !shown.contains("BM25"), "{shown}");
    terminal.press("q");
    terminal.ends_and_gives_the_terminal_back();
}

#[test]
fn a_copied_recipe_goes_to_the_terminals_own_clipboard() {
    let mut terminal = Terminal::open(&[QUESTION]);
    terminal.wait_for("MRecall@5");
    terminal.press("Y");
    terminal.wait_for("copied: --lane bm25");
    // OSC 52, the clipboard, and `bm25@` in base64.
    let told = String::from_utf8_lossy(&terminal.raw).into_owned();
    assert!(told.contains("\u{1b}]52;c;Ym0yNU"), "no OSC 52");
    terminal.press("q");
    terminal.ends_and_gives_the_terminal_back();
}

#[test]
fn input_that_comes_with_new_sizes_is_all_read_however_much_it_is() {
    let mut terminal = Terminal::open(&[]);
    terminal.wait_for("type a question");
    // More than the terminal holds: whoever writes waits until it is read.
    let keys = Arc::clone(&terminal.keys);
    let writing = thread::spawn(move || {
        for _ in 0..60 {
            let mut keys = keys.lock().unwrap();
            keys.write_all("x\u{8}".repeat(2_000).as_bytes()).unwrap();
        }
        keys.lock().unwrap().write_all(b"read to the end").unwrap();
    });
    for round in 0..400u16 {
        terminal.resize(40, 140 + round % 3);
        if writing.is_finished() {
            break;
        }
        thread::yield_now();
    }
    terminal.resize(40, 140);
    terminal.wait_for("read to the end");
    writing.join().unwrap();
    terminal.press("\u{3}");
    terminal.ends_and_gives_the_terminal_back();
}

#[test]
fn a_mouse_that_is_nowhere_is_passed_over_and_what_is_typed_after_it_is_heard() {
    let mut terminal = Terminal::open(&[]);
    terminal.wait_for("type a question");
    terminal.press("\u{1b}[M \u{1}\u{1}\u{1b}[<0;0;0M\u{1b}[<0;0M\u{1b}[0;0;0M");
    terminal.press(QUESTION);
    terminal.wait_for(QUESTION);
    terminal.press("\u{3}");
    terminal.ends_and_gives_the_terminal_back();
}

#[test]
fn nothing_is_written_to_a_terminal_that_was_given_back() {
    let mut terminal = Terminal::open(&[]);
    terminal.wait_for("type a question");
    terminal.press("\u{3}");
    while let Ok(bytes) = terminal.heard.recv_timeout(PATIENCE) {
        terminal.take(&bytes);
    }
    let told = String::from_utf8_lossy(&terminal.raw).into_owned();
    // The cursor is shown last by whoever gives the terminal back.
    assert!(told.ends_with("\u{1b}[?1049l\u{1b}[?25h"), "{:?}", &told[told.len().saturating_sub(80)..]);
}

/// A pipe that nobody writes to is read for ever, as a disk that has gone away is.
#[cfg(unix)]
#[test]
fn what_hangs_while_the_program_is_leaving_does_not_outlast_a_signal() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("corpus.jsonl");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut terminal = Terminal::open(&["--corpus", pipe.to_str().unwrap(), QUESTION]);
    terminal.wait_for(QUESTION);
    terminal.press("\u{3}");
    while !String::from_utf8_lossy(&terminal.raw).contains("\u{1b}[?1049l") {
        let bytes = terminal.heard.recv_timeout(PATIENCE).unwrap();
        terminal.take(&bytes);
    }
    // What it keeps is kept first; until then a signal is passed over.
    let id = terminal.child.process_id().unwrap();
    let ended = (0..600).any(|_| {
        let _ = Command::new("sh").args(["-c", &format!("kill -TERM {id}")]).status();
        terminal.heard.recv_timeout(Duration::from_millis(100)) == Err(mpsc::RecvTimeoutError::Disconnected)
    });
    assert!(ended && terminal.child.wait().unwrap().signal().is_some());
}
