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

/// After this time the program counts as hanging.
const PATIENCE: Duration = Duration::from_secs(300);

struct Terminal {
    child: Box<dyn Child + Send + Sync>,
    keys: Arc<Mutex<Box<dyn Write + Send>>>,
    output: Receiver<Vec<u8>>,
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

    /// In a data folder of an earlier run.
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
        let (send, output) = mpsc::channel();
        let mut reader = pty.master.try_clone_reader().unwrap();
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            // On some systems reading fails when the program ends.
            while let Ok(count @ 1..) = reader.read(&mut bytes) {
                if send.send(bytes[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        let keys = Arc::new(Mutex::new(pty.master.take_writer().unwrap()));
        let screen = vt100::Parser::new(NonZero::new(40).unwrap(), NonZero::new(140).unwrap(), 0);
        Terminal { child, keys, output, screen, raw: Vec::new(), master: pty.master, data }
    }

    fn take(&mut self, bytes: &[u8]) {
        self.screen.process(bytes);
        self.raw.extend(bytes);
    }

    #[track_caller]
    fn wait_for(&mut self, text: &str) {
        while !self.screen.screen().contents().contains(text) {
            match self.output.recv_timeout(PATIENCE) {
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
    fn ends_and_gives_the_terminal_back(self) {
        self.ends_with(0);
    }

    #[track_caller]
    fn ends_with(mut self, code: u32) {
        while let Ok(bytes) = self.output.recv_timeout(PATIENCE) {
            self.take(&bytes);
        }
        assert_eq!(self.child.wait().unwrap().exit_code(), code);
        let screen = self.screen.screen();
        assert!(!screen.alternate_screen(), "the alternate screen is left");
        assert!(!screen.hide_cursor(), "the cursor is shown");
        let output = String::from_utf8_lossy(&self.raw);
        for sequence in ["\u{1b}[?1049h", "\u{1b}[?1049l", "\u{1b}[?25h", "\u{1b}[?1000l", "\u{1b}[?2004l"] {
            assert!(output.contains(sequence), "no {sequence:?}");
        }
        assert!(output.rfind("\u{1b}[?1049l") > output.rfind("\u{1b}[?1049h"));
        assert!(output.rfind("\u{1b}[?25h") > output.rfind("\u{1b}[?25l"));
    }
}

#[test]
fn a_typed_question_is_answered_and_q_leaves() {
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
fn a_signal_gives_the_terminal_back_and_the_exit_code_is_128_plus_its_number() {
    for (signal, code) in [("TERM", 143), ("INT", 130), ("HUP", 129)] {
        let mut terminal = Terminal::open(&[QUESTION]);
        terminal.wait_for("MRecall@5");
        let id = terminal.child.process_id().unwrap();
        let sent = Command::new("sh").args(["-c", &format!("kill -{signal} {id}")]).status().unwrap();
        assert!(sent.success());
        terminal.ends_with(code);
    }
}

/// Without a shell, the test wakes the program itself.
#[cfg(target_os = "linux")]
#[test]
fn a_suspended_program_draws_its_screen_again_when_it_wakes() {
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
fn a_corpus_that_cannot_be_opened_is_reported_on_the_screen() {
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
fn no_color_removes_every_colour_unless_a_flag_names_a_theme() {
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
fn a_theme_has_as_many_colours_as_the_terminal() {
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
fn a_changed_configuration_applies_at_once_and_a_wrong_one_is_reported() {
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
fn a_wrong_configuration_at_the_start_is_reported_and_nothing_opens() {
    let mut terminal = Terminal::open_with(&[], "thme = 'dark'\n", &[]);
    terminal.wait_for("config.toml:1:1: there is no setting `thme`; did you mean `theme`?");
    assert!(!terminal.screen.screen().alternate_screen());
    assert_eq!(terminal.child.wait().unwrap().exit_code(), 2);
}

#[test]
fn the_last_question_and_its_lanes_are_restored_the_next_time() {
    let mut terminal = Terminal::open(&[QUESTION]);
    terminal.wait_for("MRecall@5");
    terminal.press("d");
    terminal.wait_for("dropped bm25");
    terminal.press("q");
    while let Ok(bytes) = terminal.output.recv_timeout(PATIENCE) {
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
fn a_copied_recipe_goes_to_the_clipboard_of_the_terminal() {
    let mut terminal = Terminal::open(&[QUESTION]);
    terminal.wait_for("MRecall@5");
    terminal.press("Y");
    terminal.wait_for("copied: --lane bm25");
    // OSC 52, the clipboard, and `bm25@` in base64.
    let output = String::from_utf8_lossy(&terminal.raw).into_owned();
    assert!(output.contains("\u{1b}]52;c;Ym0yNU"), "no OSC 52");
    terminal.press("q");
    terminal.ends_and_gives_the_terminal_back();
}

#[test]
fn all_input_is_read_while_the_size_changes() {
    let mut terminal = Terminal::open(&[]);
    terminal.wait_for("type a question");
    // More than the terminal buffers, so the writer waits until it is read.
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
fn a_mouse_event_at_column_0_is_ignored_and_later_keys_work() {
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
    while let Ok(bytes) = terminal.output.recv_timeout(PATIENCE) {
        terminal.take(&bytes);
    }
    let output = String::from_utf8_lossy(&terminal.raw).into_owned();
    // Giving the terminal back ends with showing the cursor.
    assert!(output.ends_with("\u{1b}[?1049l\u{1b}[?25h"), "{:?}", &output[output.len().saturating_sub(80)..]);
}

/// Reading a pipe without a writer never ends, like reading a disk that was removed.
#[cfg(unix)]
#[test]
fn a_signal_ends_a_program_that_hangs_while_leaving() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("corpus.jsonl");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut terminal = Terminal::open(&["--corpus", pipe.to_str().unwrap(), QUESTION]);
    terminal.wait_for(QUESTION);
    terminal.press("\u{3}");
    while !String::from_utf8_lossy(&terminal.raw).contains("\u{1b}[?1049l") {
        let bytes = terminal.output.recv_timeout(PATIENCE).unwrap();
        terminal.take(&bytes);
    }
    // The program saves its data first and ignores signals until then.
    let id = terminal.child.process_id().unwrap();
    let ended = (0..600).any(|_| {
        let _ = Command::new("sh").args(["-c", &format!("kill -TERM {id}")]).status();
        terminal.output.recv_timeout(Duration::from_millis(100)) == Err(mpsc::RecvTimeoutError::Disconnected)
    });
    assert!(ended && terminal.child.wait().unwrap().signal().is_some());
}
