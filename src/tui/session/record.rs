//! Recording: every act is on its way to the disk before the next one, so that a kill loses nothing.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ratatui::layout::Rect;

use super::{Head, LONGEST, Line, VERSION};
use crate::detect::Choice;
use crate::question::By;
use crate::tui::app::{App, Corpus, Lane};
use crate::tui::config::{Config, Layout};
use crate::tui::keymap::{Action, Context, Keymap};
use crate::tui::layout::{LanePanes, arrange};
use crate::tui::message::Msg;
use crate::tui::settled::settled;
use crate::tui::{Start, script};

/// Most file names that are tried.
const TRIED: u32 = 10_000;

/// A session that is being written.
pub struct Recorder {
    /// The file, in its folder.
    pub name: String,
    file: File,
    last: Instant,
    /// Whether all had come when it was last looked.
    settled: bool,
    /// The keys and the layout that its first line tells of.
    held: (Arc<Keymap>, Layout),
}

impl Recorder {
    /// Begins a file with the lanes as they stand.
    ///
    /// # Errors
    /// No file can be written to in the folder.
    pub fn begin(folder: &Path, start: &Start, app: &App, now: Instant) -> io::Result<Recorder> {
        let (name, file) = free(folder)?;
        let held = (app.keys.clone(), app.layout);
        let mut recorder = Recorder { name, file, last: now, settled: true, held };
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

    /// Writes down what a person did; of other messages, one alone is its business.
    ///
    /// # Errors
    /// The file cannot be written, or other keys or another layout hold now: the rest would be played with those of the first line.
    pub fn take(&mut self, msg: &Msg, now: Instant) -> io::Result<()> {
        let keys = match msg {
            Msg::Key(key) => script::key(key),
            Msg::Mouse(mouse) => script::written(mouse),
            Msg::Resized(size) => Some(format!("<Resize:{}x{}>", size.width, size.height)),
            Msg::Pasted(text) => {
                return self.act(now, Line { pasted: Some(text.clone()), ..Line::default() });
            }
            Msg::Configured(Ok(config)) if (&config.keys, &config.layout) != (&self.held.0, &self.held.1) => {
                let name = &self.name;
                return Err(io::Error::other(format!(
                    "keys or layout have changed; {name} holds what was before"
                )));
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
        // Nobody wants to watch how somebody else was away for days, and no file with a longer pause is read.
        let after = u64::try_from(passed.as_millis()).unwrap_or(LONGEST).min(LONGEST);
        self.line(Line { after, ..line })
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
fn free(folder: &Path) -> io::Result<(String, File)> {
    for n in 1..TRIED {
        let name = format!("parallax-{n}.session.jsonl");
        match OpenOptions::new().append(true).create_new(true).open(folder.join(&name)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            opened => return opened.map(|file| (name, file)),
        }
    }
    Err(io::Error::other("thousands of sessions stand in this folder; move them elsewhere"))
}

/// The options without which a session that begins now plays something else, and which no session may name for whoever plays it.
pub fn unrecorded(start: &Start, app: &App) -> Vec<&'static str> {
    let opening = &start.opening;
    let remote = app.lanes.iter().any(|lane| lane.recipe.base.remote().is_some());
    let all = [
        ("--lane (of an engine)", remote),
        ("--detector llm", opening.detector == Choice::Llm),
        ("--detector-threshold", opening.threshold.is_some()),
        ("--llm", opening.llm.is_some()),
        ("--replies", opening.replies.is_some()),
        ("--answers", opening.answers.is_some()),
        ("--reader", opening.reader.is_some()),
        ("--journal", !opening.journals.is_empty()),
    ];
    all.into_iter().filter(|(_, named)| *named).map(|(option, _)| option).collect()
}

/// The keys that bring what stands beside passages, filter, marks and cursor from where a session begins to where they stand.
fn there(app: &App) -> String {
    let key = |context, action| {
        let mut here = app.keys.of_place(context);
        let bound = here.find(|bound| bound.line.action == action);
        bound.and_then(|bound| bound.keys.first()).cloned().unwrap_or_default()
    };
    let mut keys = String::new();
    if app.line.value().is_empty() && !app.typing {
        keys += &key(Context::Question, Action::Back);
    }
    if let Some(at) = app.biasing.on_lanes.filter(|_| !app.question.text.is_empty()) {
        // The fields are counted first.
        keys += &(key(Context::Lanes, Action::Bias) + "<Wait>");
        keys += &(key(Context::Bias, Action::NextField).repeat(at) + &key(Context::Bias, Action::OnLanes));
    }
    let (words, typing) = (app.filter.line.value(), app.filter.typing);
    if typing || !words.is_empty() {
        keys += &key(Context::Lanes, Action::Filter);
        keys += &words.replace('<', "<lt>");
        keys += &if typing { String::new() } else { key(Context::Filter, Action::KeepFilter) };
    }
    let rows = arrange(Rect::new(0, 0, app.size.width, app.size.height), app);
    let rows = rows.lanes.first().map_or(1, LanePanes::shown).max(1);
    let marks = app.lanes.iter().map(|lane| (app.shown(lane), lane.selected, lane.top));
    let marks = marks.map(|(shown, mark, top)| {
        let at = shown.iter().position(|place| *place == mark).unwrap_or(0);
        // Past the mark and back, where it does not stand at the bottom of what is seen.
        let past = if top == 0 { 0 } else { (top + rows).min(shown.len()).saturating_sub(at + 1) };
        let down = key(Context::Lanes, Action::Down).repeat(at + past);
        down + &key(Context::Lanes, Action::Up).repeat(past)
    });
    let marks: Vec<String> = marks.collect();
    let last = marks.iter().rposition(|moves| !moves.is_empty()).unwrap_or(0).max(app.lane);
    let next = key(Context::Lanes, Action::NextLane);
    keys += &marks.iter().take(last + 1).map(String::as_str).collect::<Vec<_>>().join(&next);
    keys += &key(Context::Lanes, Action::PreviousLane).repeat(last - app.lane);
    if app.together {
        keys += &key(Context::Lanes, Action::Together);
    }
    keys
}

impl Head {
    /// What a session that begins now opens with.
    fn of(start: &Start, app: &App) -> Head {
        let opening = &start.opening;
        let held = Config { keys: app.keys.clone(), layout: app.layout, ..Config::default() };
        let dragged = app.lanes.iter().any(|lane| lane.width != Lane::WIDTH);
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
            widths: app.lanes.iter().filter(|_| dragged).map(|lane| lane.width).collect(),
            config: (held != Config::default()).then(|| held.to_string()),
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
