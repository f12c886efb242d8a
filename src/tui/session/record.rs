//! Records a session, and controls a replay.
//!
//! Every act is written before the next one happens, so a kill loses nothing. During a replay, the session's acts drive the explorer and
//! the user's keys control the replay. A replay leaves no labels, pictures or recordings, and nothing on the clipboard; the engine fills its
//! caches in the data folder as always.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{io, mem};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::Paragraph;
use unicode_width::UnicodeWidthStr;

use super::file::{Head, LONGEST, Line as Entry, VERSION};
use super::{Act, Replay};
use crate::detect::Choice;
use crate::engine::Labelling;
use crate::question::By;
use crate::report::marks::Glyphs;
use crate::report::safe;
use crate::storage::Journal;
use crate::tui::app::{App, Corpus, Lane, Start};
use crate::tui::config::{Config, Layout};
use crate::tui::keymap::{Action, Context, Keymap, Screen, shown};
use crate::tui::layout::{CAPTION_MARGIN as MARGIN, LanePanes, arrange};
use crate::tui::message::{Effect, Msg, Recording};
use crate::tui::pages::settled;
use crate::tui::script;
use crate::tui::script::Step;
use crate::tui::theme::{Meaning, Theme};
use crate::tui::widgets::text::{columns_of, span, wrap};

/// How many file names are tried.
const TRIED: u32 = 10_000;

/// A session being recorded.
pub struct Recorder {
    /// The name of the file.
    pub name: String,
    journal: Journal,
    last: Instant,
    /// Whether all results had arrived at the last look.
    settled: bool,
    /// The keys and the layout that the first line holds.
    initial: (Arc<Keymap>, Layout),
}

impl Recorder {
    /// Creates a file that begins with the current lanes.
    ///
    /// # Errors
    /// No file can be created in the folder.
    pub fn begin(folder: &Path, start: &Start, app: &App, now: Instant) -> io::Result<Recorder> {
        let (name, journal) = create_free(folder)?;
        let initial = (app.keys.clone(), app.layout);
        let mut recorder = Recorder { name, journal, last: now, settled: true, initial };
        recorder.journal.append([serde_json::to_vec(&Head::of(start, app))?])?;
        let keys = format!("<Wait>{}", keys_to_here(app));
        recorder.line(Entry { keys: Some(keys), ..Entry::default() })?;
        Ok(recorder)
    }

    /// Records that all results have arrived since the last look.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn look(&mut self, app: &App, now: Instant) -> io::Result<()> {
        let was = mem::replace(&mut self.settled, settled(app));
        if self.settled && !was {
            return self.act(now, Entry { keys: Some("<Wait>".into()), ..Entry::default() });
        }
        Ok(())
    }

    /// Records what the user did. Of the other messages, only a new configuration matters.
    ///
    /// # Errors
    /// The file cannot be written, or keys or layout have changed: a replay would use those of the first line.
    pub fn take(&mut self, msg: &Msg, now: Instant) -> io::Result<()> {
        let keys = match msg {
            Msg::Key(key) => script::key(key),
            Msg::Mouse(mouse) => script::mouse(mouse),
            Msg::Resized(size) => Some(format!("<Resize:{}x{}>", size.width, size.height)),
            Msg::Pasted(text) => {
                return self.act(now, Entry { pasted: Some(text.clone()), ..Entry::default() });
            }
            Msg::Configured(Ok(config))
                if (&config.keys, &config.layout) != (&self.initial.0, &self.initial.1) =>
            {
                let name = &self.name;
                return Err(io::Error::other(format!(
                    "keys or layout have changed; {name} holds the recording until then"
                )));
            }
            _ => None,
        };
        match keys {
            Some(keys) => self.act(now, Entry { keys: Some(keys), ..Entry::default() }),
            None => Ok(()),
        }
    }

    fn act(&mut self, now: Instant, line: Entry) -> io::Result<()> {
        let passed: Duration = now.saturating_duration_since(self.last);
        self.last = now;
        // The reader refuses longer pauses.
        let after = u64::try_from(passed.as_millis()).unwrap_or(LONGEST).min(LONGEST);
        self.line(Entry { after, ..line })
    }

    fn line(&mut self, line: Entry) -> io::Result<()> {
        self.journal.append([serde_json::to_vec(&line)?]).map(drop)
    }
}

/// Creates the first free `parallax-N.session.jsonl`.
fn create_free(folder: &Path) -> io::Result<(String, Journal)> {
    for n in 1..TRIED {
        let name = format!("parallax-{n}.session.jsonl");
        match Journal::create_new(folder.join(&name)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            // Not synced: waiting for the disk at every key would make the keys slow.
            created => return created.map(|journal| (name, journal.unsynced())),
        }
    }
    Err(io::Error::other("there are thousands of sessions in this folder; move some elsewhere"))
}

/// Returns the options in use that a session cannot contain, because they depend on the machine or cost money. To play the session, they
/// must be given again.
pub fn unrecorded_options(start: &Start, app: &App) -> Vec<&'static str> {
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

/// Returns the keys that lead from the beginning of a session to the current field, filter, marks and cursor.
fn keys_to_here(app: &App) -> String {
    let key = |context, action| {
        let mut here = app.keys.of_context(context);
        let bound = here.find(|bound| bound.line.action == action);
        bound.and_then(|bound| bound.keys.first()).cloned().unwrap_or_default()
    };
    let mut keys = String::new();
    if app.line.value().is_empty() && !app.typing {
        keys += &key(Context::Question, Action::Back);
    }
    if let Some(at) = app.biasing.on_lanes.filter(|_| !app.question.text.is_empty()) {
        // Waits until the fields are counted.
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
        // Moves past the mark and back if the mark is not in the last visible row.
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
    /// Makes the first line of a session that begins now.
    fn of(start: &Start, app: &App) -> Head {
        let opening = &start.opening;
        let initial = Config { keys: app.keys.clone(), layout: app.layout, ..Config::default() };
        let dragged = app.lanes.iter().any(|lane| lane.width != Lane::WIDTH);
        let detector = Some(opening.detector.to_string()).filter(|name| name != "builtin");
        Head {
            version: VERSION,
            size: app.size,
            theme: Some(start.config.look().name().into()),
            // The sample has no path.
            corpus: opening.corpus.clone().filter(|_| !matches!(app.corpus, Corpus::Failed(_))),
            questions: opening.questions.clone(),
            labels: opening.labels.clone(),
            detector,
            label_source: app.judgments.source.to_string(),
            lanes: app.lanes.iter().map(|lane| lane.recipe.to_string()).collect(),
            k: u16::try_from(app.k).unwrap_or(u16::MAX),
            question: app.question.text.clone(),
            perspectives: own_statements(app),
            widths: app.lanes.iter().filter(|_| dragged).map(|lane| lane.width).collect(),
            config: (initial != Config::default()).then(|| initial.to_string()),
        }
    }
}

/// Returns the statements if the user wrote them, the supporting one first.
fn own_statements(app: &App) -> Vec<String> {
    let mut all = app.question.perspectives.clone();
    match app.by {
        By::User if app.question.supports == Some(1) && all.len() == 2 => all.reverse(),
        By::User => {}
        _ => all.clear(),
    }
    all
}

/// The most acts before the next frame, so that the user's keys take effect even in a session without pauses.
const BURST: usize = 256;

impl Replay {
    /// Begins the replay in an interface, with the session's keys, layout and lane widths.
    pub fn onto(mut self, app: &mut App) {
        self.exchange(app);
        for (lane, width) in app.lanes.iter_mut().zip(&self.widths) {
            lane.width = *width;
        }
        app.replay = Some(self);
    }

    /// Swaps keys and layout: those of the session while it is played, the user's own afterwards.
    fn exchange(&mut self, app: &mut App) {
        mem::swap(&mut self.keys, &mut app.keys);
        mem::swap(&mut self.layout, &mut app.layout);
    }
}

/// Applies a message to the state.
type Handle = fn(&mut App, Msg) -> Vec<Effect>;

/// Performs the acts that are due after some time has passed, at most `BURST` of them.
pub fn pass(app: &mut App, time: Duration, handle: Handle) -> Vec<Effect> {
    let mut effects = Vec::new();
    if let Some(replay) = &mut app.replay {
        replay.pass(time);
    }
    for _ in 0..BURST {
        let all_here = settled(app);
        let Some(replay) = &mut app.replay else { break };
        if replay.ended() {
            end(app, "The replay has ended");
            break;
        }
        match replay.due(all_here) {
            Some(act) => effects.extend(perform(app, act, handle)),
            None => break,
        }
    }
    effects
}

fn perform(app: &mut App, act: Act, handle: Handle) -> Vec<Effect> {
    let msg = match act {
        Act::Say(words) => {
            if let Some(replay) = &mut app.replay {
                replay.caption = words;
            }
            return Vec::new();
        }
        Act::Paste(text) => Msg::Pasted(text),
        Act::Step(Step::Wait) => return Vec::new(),
        Act::Step(Step::Key(key)) => Msg::Key(key),
        Act::Step(Step::Mouse(mouse)) => {
            let size = app.replay.as_ref().map(|replay| replay.size);
            if size.is_some_and(|size| size != app.size) {
                app.notice = Some("left out: a click in a terminal of another size".into());
                return Vec::new();
            }
            Msg::Mouse(mouse)
        }
        Act::Step(Step::Resize(size)) => {
            let filmed = app.replay.as_mut().is_some_and(|replay| {
                replay.size = size;
                replay.filmed
            });
            // The user's terminal keeps its own size.
            if !filmed {
                return Vec::new();
            }
            Msg::Resized(size)
        }
    };
    // The act is tried on a copy, and dropped if it would leave something behind.
    let mut tried = app.clone();
    let effects = handle(&mut tried, msg);
    match effects.iter().find_map(omission) {
        Some(what) => {
            app.notice = Some(format!("left out of the replay: {what}"));
            Vec::new()
        }
        None => {
            *app = tried;
            effects
        }
    }
}

/// Names an effect that a replay leaves out, because it would leave something behind or end the program.
fn omission(effect: &Effect) -> Option<&'static str> {
    match effect {
        Effect::Label(Labelling::Write(_) | Labelling::Undo | Labelling::Redo) => Some("a label by hand"),
        Effect::SaveFrame => Some("saving a picture"),
        Effect::Copy(_) => Some("copying"),
        Effect::Record | Effect::StopRecording => Some("recording"),
        Effect::Suspend | Effect::Quit => Some("leaving the program"),
        _ => None,
    }
}

/// Handles a key that the user presses during a replay.
pub fn press(app: &mut App, key: KeyEvent, handle: Handle) -> Vec<Effect> {
    let Some(replay) = &mut app.replay else { return Vec::new() };
    match key.code {
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return vec![Effect::Quit],
        // The replay pauses while the process is stopped.
        KeyCode::Char('z') if key.modifiers.contains(KeyModifiers::CONTROL) => {
            replay.paused = true;
            return vec![Effect::Suspend];
        }
        KeyCode::Esc | KeyCode::Char('q') => end(app, "You have left the replay"),
        KeyCode::Char(' ') => replay.paused = !replay.paused,
        KeyCode::Right => replay.hurry(true),
        KeyCode::Left => replay.hurry(false),
        KeyCode::Enter => {
            replay.paused = false;
            replay.skip();
        }
        // Any other key pauses, so that the user can look around.
        _ => replay.paused = true,
    }
    pass(app, Duration::ZERO, handle)
}

/// Ends the replay and restores the user's keys.
fn end(app: &mut App, how: &str) {
    let Some(mut replay) = app.replay.take() else { return };
    replay.exchange(app);
    if !replay.filmed {
        app.notice = Some(format!("{how}: now the keys are yours."));
    }
}

/// Starts a recording, or stops it.
pub fn record(app: &mut App) -> Vec<Effect> {
    if app.recording.is_some() {
        return vec![Effect::StopRecording];
    }
    if app.screen != Screen::LANES {
        app.notice = Some("A recording begins in the lanes: go back to them first.".into());
        return Vec::new();
    }
    vec![Effect::Record]
}

/// Reports that a recording began, ended or failed.
pub fn report(app: &mut App, recording: Recording) {
    let (recording, notice) = match recording {
        Recording::Began(name, apart) => {
            // With options to name, the sentence about the key is left out: a small terminal has no room for both.
            let notice = match apart.join(", ") {
                all if all.is_empty() => format!("Recording in {name}; the same key ends it."),
                all => format!("Recording in {name}; to play it, name again: {all}"),
            };
            (Some(name), notice)
        }
        Recording::Ended(name) => (None, format!("Recorded in {name}; to play it: parallax demo {name}")),
        Recording::Failed(reason) => (None, format!("Nothing is recorded any more: {reason}")),
    };
    (app.recording, app.notice) = (recording, Some(notice));
}

/// Draws the caption.
pub fn draw(app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
    let Some(replay) = app.replay.as_ref().filter(|_| area.height > 0) else { return };
    let width = usize::from(area.width.saturating_sub(2 * MARGIN));
    let words = safe::line(&replay.caption);
    let rows = wrap(&words, width, usize::from(area.height));
    let mut lines: Vec<String> = rows.into_iter().map(|row| words[row].to_owned()).collect();
    lines.resize(usize::from(area.height), String::new());
    let meaning = if words.is_empty() { Meaning::Text } else { Meaning::Selected };
    let line = |text: String| {
        let pad = " ".repeat(width.saturating_sub(columns_of(&text)));
        Line::from(span(format!(" {text}{pad} "), meaning, theme))
    };
    frame.render_widget(Paragraph::new(lines.into_iter().map(line).collect::<Vec<_>>()), area);
}

/// Returns the line with the keys that control the replay.
pub fn keys(replay: &Replay, app: &App, theme: Theme, width: usize) -> Line<'static> {
    let ascii = app.glyphs == Glyphs::Ascii;
    let how = match replay {
        Replay { paused: true, .. } => ", paused".into(),
        replay if replay.at_a_wait() && !settled(app) => ", waiting for results".into(),
        replay if replay.pace == 1.0 => String::new(),
        replay => format!(" ×{}", replay.pace),
    };
    let mut spans =
        vec![span(format!(" replay {}/{}{how}  ", replay.done, replay.count()), Meaning::Warn, theme)];
    let mut columns = spans[0].content.width();
    let arrows = format!("{} {}", shown("<Left>", ascii), shown("<Right>", ascii));
    let go = if replay.paused { "go on" } else { "pause" };
    let enter = shown("<Enter>", ascii);
    for (key, does) in [("Space", go), ("Esc", "take over"), (&enter, "next"), (&arrows, "pace")] {
        columns += key.width() + does.width() + 3;
        if columns > width {
            break;
        }
        spans.push(span(key.to_owned(), Meaning::Key, theme));
        spans.push(span(format!(" {does}  "), Meaning::Muted, theme));
    }
    Line::from(spans)
}
