//! Recording: every act is on its way to the disk before the next one, so that a kill loses nothing.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::{Head, Line, VERSION};
use crate::question::By;
use crate::tui::app::{App, Corpus};
use crate::tui::config::Config;
use crate::tui::keymap::{self, Action, Context, Keymap};
use crate::tui::message::Msg;
use crate::tui::settled::settled;
use crate::tui::{Start, script};

/// Most file names that are tried.
const TRIED: u32 = 10_000;

/// A session that is being written.
pub struct Recorder {
    /// The file, in the present folder.
    pub name: String,
    file: File,
    last: Instant,
    /// Whether all had come when it was last looked.
    settled: bool,
}

impl Recorder {
    /// Begins a file with the lanes as they stand.
    ///
    /// # Errors
    /// No file can be written to in the present folder.
    pub fn begin(start: &Start, app: &App, now: Instant) -> io::Result<Recorder> {
        let (name, file) = free()?;
        let mut recorder = Recorder { name, file, last: now, settled: true };
        let head = serde_json::to_string(&Head::of(start, app))?;
        recorder.write(head)?;
        let keys = format!("<Wait>{}", there(app));
        recorder.line(Line { keys: Some(keys), ..Line::default() })?;
        Ok(recorder)
    }

    /// Writes down that all has come since it was last looked.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn look(&mut self, app: &App, now: Instant) -> io::Result<()> {
        let was = std::mem::replace(&mut self.settled, settled(app));
        if self.settled && !was {
            return self.act(now, Line { keys: Some("<Wait>".into()), ..Line::default() });
        }
        Ok(())
    }

    /// Writes down what a person did; other messages are none of its business.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn take(&mut self, msg: &Msg, now: Instant) -> io::Result<()> {
        let keys = match msg {
            Msg::Key(key) => keymap::name(key),
            Msg::Mouse(mouse) => script::written(mouse),
            Msg::Resized(size) => Some(format!("<Resize:{}x{}>", size.width, size.height)),
            Msg::Pasted(text) => {
                return self.act(now, Line { pasted: Some(text.clone()), ..Line::default() });
            }
            _ => None,
        };
        match keys {
            Some(keys) => self.act(now, Line { keys: Some(keys), ..Line::default() }),
            None => Ok(()),
        }
    }

    fn act(&mut self, now: Instant, line: Line) -> io::Result<()> {
        let passed: Duration = now.saturating_duration_since(self.last);
        self.last = now;
        self.line(Line { after: u64::try_from(passed.as_millis()).unwrap_or(u64::MAX), ..line })
    }

    fn line(&mut self, line: Line) -> io::Result<()> {
        let line = serde_json::to_string(&line)?;
        self.write(line)
    }

    /// One write a line, and nothing kept back.
    fn write(&mut self, mut line: String) -> io::Result<()> {
        line.push('\n');
        self.file.write_all(line.as_bytes())
    }
}

/// The first `parallax-N.session.jsonl` that is free.
fn free() -> io::Result<(String, File)> {
    for n in 1..TRIED {
        let name = format!("parallax-{n}.session.jsonl");
        match OpenOptions::new().append(true).create_new(true).open(PathBuf::from(&name)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            opened => return opened.map(|file| (name, file)),
        }
    }
    Err(io::Error::other("thousands of sessions stand in this folder; move them elsewhere"))
}

/// The keys that bring the cursor from where a session begins to where it stands.
fn there(app: &App) -> String {
    let key = |context, action| {
        let mut here = app.keys.of_place(context);
        let bound = here.find(|bound| bound.line.action == action);
        bound.and_then(|bound| bound.keys.first()).cloned().unwrap_or_default()
    };
    let line_open = app.line.value().is_empty() && !app.typing;
    let leave = if line_open { key(Context::Question, Action::Back) } else { String::new() };
    let lanes = key(Context::Lanes, Action::NextLane).repeat(app.lane);
    let marked = app.lanes.get(app.lane).map_or(0, |lane| lane.selected);
    leave + &lanes + &key(Context::Lanes, Action::Down).repeat(marked)
}

impl Head {
    /// What a session that begins now opens with.
    fn of(start: &Start, app: &App) -> Head {
        let opening = &start.opening;
        let usual = *app.keys == Keymap::default();
        let keys = || Config { keys: app.keys.clone(), ..Config::default() }.to_string();
        let detector = Some(opening.detector.to_string()).filter(|name| name != "carried");
        Head {
            version: VERSION,
            size: app.size,
            theme: Some(start.config.look.name().into()),
            // The sample has a name and no path.
            corpus: opening.corpus.clone().filter(|_| !matches!(app.corpus, Corpus::Failed(_))),
            questions: opening.questions.clone(),
            labels: opening.labels.clone(),
            detector,
            label_source: app.book.source.to_string(),
            lanes: app.lanes.iter().map(|lane| lane.recipe.to_string()).collect(),
            k: u16::try_from(app.k).unwrap_or(u16::MAX),
            question: app.question.text.clone(),
            perspectives: own_statements(app),
            config: (!usual).then(keys),
        }
    }
}

/// The statements, the supporting one first, where the user made them.
fn own_statements(app: &App) -> Vec<String> {
    let mut all = app.question.perspectives.clone();
    match app.by {
        By::User if app.question.supports == Some(1) && all.len() == 2 => all.reverse(),
        By::User => {}
        _ => all.clear(),
    }
    all
}
