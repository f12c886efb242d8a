//! The real program in a pseudo-terminal.

use std::fs;
use std::io::{Read, Write};
use std::num::NonZero;
use std::process::Command;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

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
        Terminal::start(env!("CARGO_BIN_EXE_parallax"), arguments, data, config, environment)
    }

    fn start(
        program: &str,
        arguments: &[&str],
        data: TempDir,
        config: &str,
        environment: &[(&str, &str)],
    ) -> Self {
        let pty = native_pty_system()
            .openpty(PtySize { rows: 40, cols: 140, pixel_width: 0, pixel_height: 0 })
            .unwrap();
        let mut command = CommandBuilder::new(program);
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

    /// Takes output until none came for a while: whatever the program gives up after a time, it has given up then.
    fn settle(&mut self) {
        while let Ok(bytes) = self.output.recv_timeout(Duration::from_millis(400)) {
            self.take(&bytes);
        }
    }

    /// Sends a signal to the program.
    fn signal(&self, name: &str) {
        let id = self.child.process_id().unwrap();
        assert!(Command::new("sh").args(["-c", &format!("kill -{name} {id}")]).status().unwrap().success());
    }

    /// The settings of the terminal: raw or not, echo or not.
    fn settings(&self) -> String {
        format!("{:?}", self.master.get_termios())
    }

    /// Waits until the settings of the terminal are these, or others.
    #[track_caller]
    fn wait_for_settings(&mut self, wanted: bool, settings: &str) {
        let began = Instant::now();
        while (self.settings() == settings) != wanted {
            assert!(began.elapsed() < PATIENCE, "{}", self.settings());
            self.settle();
        }
    }

    /// Waits until the process is stopped.
    #[cfg(target_os = "linux")]
    fn wait_until_stopped(&self) {
        let id = self.child.process_id().unwrap();
        let state = || fs::read_to_string(format!("/proc/{id}/stat")).unwrap();
        while !state().rsplit(") ").next().unwrap().starts_with('T') {
            thread::yield_now();
        }
    }

    /// Closes the terminal as a window does. Returns the process and its folder.
    fn close(self) -> (Box<dyn Child + Send + Sync>, TempDir) {
        let Terminal { child, keys, output, master, data, .. } = self;
        drop((keys, output));
        // The thread that reads holds the terminal open until there is output that nobody takes.
        master.resize(PtySize { rows: 30, cols: 100, pixel_width: 0, pixel_height: 0 }).unwrap();
        drop(master);
        (child, data)
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
    for (signal, code) in [
        ("TERM", 143),
        ("INT", 130),
        ("HUP", 129),
        ("QUIT", 131),
        ("ALRM", 142),
        ("USR1", 138),
        ("USR2", 140),
        ("XFSZ", 153),
        ("VTALRM", 154),
    ] {
        let mut terminal = Terminal::open(&[]);
        terminal.wait_for("type a question");
        terminal.signal(signal);
        terminal.ends_with(code);
    }
}

#[test]
fn a_sequence_that_is_cut_off_swallows_no_later_key() {
    for cut in ["\u{1b}[<0;1", "\u{1b}[200~", "\u{1b}[?1", "\u{1b}[M", "\u{1b}[200~pasted\u{1b}[201"] {
        let mut terminal = Terminal::open(&[]);
        terminal.wait_for("type a question");
        terminal.press(cut);
        terminal.settle();
        terminal.press("typed later");
        terminal.wait_for("typed later");
        terminal.press(cut);
        terminal.press("\u{3}");
        terminal.ends_and_gives_the_terminal_back();
    }
}

#[test]
fn a_paste_that_never_ends_swallows_no_ctrl_c() {
    let mut terminal = Terminal::open(&[]);
    terminal.wait_for("type a question");
    terminal.press(&format!("\u{1b}[200~{}\u{3}", "zoos and more zoos ".repeat(2_000)));
    terminal.ends_and_gives_the_terminal_back();
}

#[cfg(target_os = "linux")]
#[test]
fn a_stop_from_outside_gives_the_terminal_back_and_going_on_takes_it_again() {
    let mut terminal = Terminal::open(&[]);
    terminal.wait_for("type a question");
    let raw = terminal.settings();
    terminal.signal("TSTP");
    terminal.wait_until_stopped();
    terminal.settle();
    assert!(!terminal.screen.screen().alternate_screen());
    let given_back = terminal.settings();
    assert_ne!(given_back, raw);
    terminal.signal("CONT");
    terminal.wait_for_settings(true, &raw);
    terminal.wait_for("type a question");
    // A shell sets the terminal for itself while the program is stopped without a chance to act.
    terminal.signal("STOP");
    terminal.wait_until_stopped();
    let name = terminal.master.tty_name().unwrap();
    assert!(Command::new("stty").arg("-F").arg(name).arg("sane").status().unwrap().success());
    assert_ne!(terminal.settings(), raw);
    terminal.signal("CONT");
    terminal.wait_for_settings(true, &raw);
    terminal.press("typed later");
    terminal.wait_for("typed later");
    terminal.press("\u{3}");
    terminal.ends_and_gives_the_terminal_back();
}

#[test]
fn a_closed_window_ends_the_program_and_the_question_is_kept() {
    let mut terminal = Terminal::open(&[QUESTION]);
    terminal.wait_for("MRecall@5");
    let (mut child, data) = terminal.close();
    assert_eq!(child.wait().unwrap().exit_code(), 129);
    let asked = fs::read_to_string(data.path().join("asked.jsonl")).unwrap();
    assert!(asked.contains(QUESTION), "{asked}");
}

/// The shell that starts the program is the one that gets the signal, and ignores it.
#[test]
fn a_terminal_that_is_gone_without_a_signal_ends_the_program() {
    let program = env!("CARGO_BIN_EXE_parallax");
    let script = format!("trap '' HUP; {program} \"$@\"; echo $? > code");
    let mut terminal = Terminal::start("sh", &["-c", &script, "sh"], tempfile::tempdir().unwrap(), "", &[]);
    terminal.wait_for("type a question");
    let (mut child, data) = terminal.close();
    child.wait().unwrap();
    assert_eq!(fs::read_to_string(data.path().join("code")).unwrap().trim(), "129");
}

/// Without a shell, the test wakes the program itself.
#[cfg(target_os = "linux")]
#[test]
fn a_suspended_program_draws_its_screen_again_when_it_wakes() {
    let mut terminal = Terminal::open(&[QUESTION]);
    terminal.wait_for("MRecall@5");
    terminal.press("\u{1a}");
    terminal.wait_until_stopped();
    terminal.signal("CONT");
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
    // No word of the welcome, which stands there until the lists arrive.
    terminal.wait_for("Prec@5 ");
    let shown = terminal.screen.screen().contents();
    assert!(shown.contains("MiniLM") && !shown.contains("BM25"), "{shown}");
    // The cursor is in the question line, so no letter of another question is taken for a command.
    terminal.press("Should homework be");
    terminal.wait_for("parallax  Should homework be");
    terminal.press("\u{1b}");
    terminal.wait_for("q quit");
    terminal.wait_for(QUESTION);
    terminal.press("q");
    terminal.ends_and_gives_the_terminal_back();
}

#[test]
fn a_plot_is_a_picture_where_the_terminal_shows_some_and_goes_with_its_screen() {
    for (config, begins, ends) in [
        ("pictures = 'kitty'", "\u{1b}_Ga=T,f=100", "\u{1b}_Ga=d"),
        ("pictures = 'sixel'", "\u{1b}Pq\"1;1;", "┃"),
        ("pictures = 'iterm2'", "\u{1b}]1337;File=inline=1", "┃"),
    ] {
        let mut terminal = Terminal::open_with(&[QUESTION, "--label-source", "gold"], config, &[]);
        terminal.wait_for("MRecall@5 1");
        terminal.press("t");
        while !String::from_utf8_lossy(&terminal.raw).contains(begins) {
            let bytes = terminal.output.recv_timeout(PATIENCE).expect(begins);
            terminal.take(&bytes);
        }
        let before = terminal.raw.len();
        terminal.press("\u{1b}");
        terminal.wait_for("q quit");
        // What removes the picture may come after the frame.
        while !String::from_utf8_lossy(&terminal.raw[before..]).contains(ends) {
            let bytes = terminal.output.recv_timeout(PATIENCE).expect(config);
            terminal.take(&bytes);
        }
        terminal.press("q");
        terminal.ends_and_gives_the_terminal_back();
    }
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

/// Reading a stream into which nobody writes takes minutes, like reading a disk that was removed.
#[cfg(unix)]
#[test]
fn a_signal_ends_a_program_that_hangs_while_leaving() {
    let program = env!("CARGO_BIN_EXE_parallax");
    let script = format!("mkfifo pipe; exec 3<>pipe; exec {program} --questions /dev/fd/3 \"$@\"");
    let arguments = ["-c", &script, "sh", QUESTION];
    let mut terminal = Terminal::start("sh", &arguments, tempfile::tempdir().unwrap(), "", &[]);
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
