//! Dropping, restoring and moving the passages of a list, having it read, and the answers that still hold.

use std::sync::Arc;

use ratatui::Frame;
use ratatui::layout::Rect;

use super::{AnswerInputs, Answering, AnswersShown, Edits, Inputs, ReadLane, Row, draw, mix, sides};
use crate::corpus::PassageIx;
use crate::engine::{Batch, ReadEvent, ReadList, Reply, StanceTimeline, Want};
use crate::read::incremental::{Reordered, changes, pattern};
use crate::read::pattern::Probe;
use crate::read::reader::same;
use crate::read::{Answer, Context as ReadContext, Pattern};
use crate::tui::app::{App, Corpus};
use crate::tui::keymap::{Action, Context, Screen};
use crate::tui::message::Effect;
use crate::tui::page::Page;
use crate::tui::screens::lanes::{question, update as lanes};
use crate::tui::theme::Theme;

/// The reader screen.
pub struct Reader;

impl Page for Reader {
    fn screen(&self) -> Screen {
        Screen::READER
    }

    fn context(&self, _: &App) -> Context {
        Context::Answer
    }

    fn opened_by(&self) -> Option<Action> {
        Some(Action::Answers)
    }

    fn open(&self, app: &mut App) -> Vec<Effect> {
        open(app)
    }

    fn act(&self, app: &mut App, action: Action) -> Vec<Effect> {
        act(app, action)
    }

    fn reply(&self, app: &mut App, reply: Reply) -> Result<Vec<Effect>, Box<Reply>> {
        match reply {
            Reply::ReadEvent { number, event } => {
                read_event(app, number, event);
                Ok(Vec::new())
            }
            other => Err(Box::new(other)),
        }
    }

    fn refresh(&self, app: &mut App) {
        app.refresh_reader();
    }

    fn settled(&self, app: &App) -> bool {
        !app.answering.going
    }

    fn draw(&self, app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
        draw::draw(app, theme, area, frame);
    }
}

/// Opens the screen on the present lists.
pub fn open(app: &mut App) -> Vec<Effect> {
    question::read_line(app);
    let two = app.question.supports.is_some() && app.question.perspectives.len() == 2;
    if app.question.text.is_empty() {
        app.notice = Some("ask a question first".into());
    } else if !two && reader(app).is_none() {
        app.notice = Some(
            "only a question of two sides has a stance; i edits its statements, --reader, --llm or --answers give a reader"
                .into(),
        );
    } else {
        app.screen = Screen::READER;
        let edits = vec![Edits::default(); app.lanes.len()];
        app.answering = Answering { edits, ..Answering::default() };
    }
    Vec::new()
}

/// The reader's name, and whether its answers were recorded.
fn reader(app: &App) -> Option<(String, bool)> {
    match &app.corpus {
        Corpus::Open(opened) => opened.reader.clone(),
        _ => None,
    }
}

/// Performs an action.
pub fn act(app: &mut App, action: Action) -> Vec<Effect> {
    let last = app.rows(app.lane).len().saturating_sub(1);
    match action {
        Action::Down => app.answering.at = (app.answering.at + 1).min(last),
        Action::Up => app.answering.at = app.answering.at.min(last).saturating_sub(1),
        Action::NextLane | Action::PreviousLane => {
            lanes::act_on_lanes(app, action);
            app.answering.at = 0;
            return stop_reading(app);
        }
        Action::Deeper | Action::Shallower => return lanes::act_on_lanes(app, action),
        Action::NextLabelSource => return lanes::act_on_lanes(app, action),
        Action::DropPassage => return drop_passage(app),
        Action::PassageDown => return shift(app, 1),
        Action::PassageUp => return shift(app, -1),
        Action::Undo => match app.answering.past.pop() {
            Some((lane, edits)) => {
                app.answering.edits[lane] = edits;
                if app.lane != lane {
                    (app.lane, app.answering.at) = (lane, 0);
                }
                return stop_reading(app);
            }
            None => app.notice = Some("nothing was changed".into()),
        },
        Action::HaveRead => return have_read(app),
        Action::AnswerSides => {
            let mut effects = stop_reading(app);
            effects.extend(sides::open(app));
            return effects;
        }
        Action::Mix => {
            let mut effects = stop_reading(app);
            effects.extend(mix::open(app));
            return effects;
        }
        Action::Probe(number) => return probe(app, number),
        Action::WithoutEach => return read_aside(app, Want::Without),
        Action::OtherOrders => return read_aside(app, Want::Reordered),
        Action::Back => {
            app.answering.going = false;
            return app.leave();
        }
        _ => {}
    }
    Vec::new()
}

/// Changes the list of the lane under the cursor and cancels the reading of the old one.
fn change(app: &mut App, edits: Edits) -> Vec<Effect> {
    let lane = app.lane;
    if let Some(own) = app.answering.edits.get_mut(lane) {
        let before = std::mem::replace(own, edits);
        app.answering.past.push((lane, before));
    }
    stop_reading(app)
}

/// Cancels the reading in progress.
fn stop_reading(app: &mut App) -> Vec<Effect> {
    if !std::mem::take(&mut app.answering.going) {
        return Vec::new();
    }
    app.answering.number = app.next_batch();
    vec![Effect::StopBatch(app.answering.number)]
}

/// Drops the marked passage, or restores it.
fn drop_passage(app: &mut App) -> Vec<Effect> {
    let Some(row) = app.rows(app.lane).get(app.answering.at).copied() else { return Vec::new() };
    let mut edits = app.answering.edits.get(app.lane).cloned().unwrap_or_default();
    if row.dropped {
        edits.dropped.retain(|at| *at != row.at);
    } else {
        edits.dropped.push(row.at);
    }
    change(app, edits)
}

/// Moves the marked passage.
fn shift(app: &mut App, by: isize) -> Vec<Effect> {
    let mut rows = app.rows(app.lane);
    let from = app.answering.at;
    let Some(to) = from.checked_add_signed(by).filter(|to| from.max(*to) < rows.len()) else {
        return Vec::new();
    };
    rows.swap(from, to);
    app.answering.at = to;
    let dropped = app.answering.edits.get(app.lane).map(|edits| edits.dropped.clone()).unwrap_or_default();
    change(app, Edits { order: rows.iter().map(|row| row.at).collect(), dropped })
}

/// Reads the depths that have no answer yet, or cancels the reading in progress.
fn have_read(app: &mut App) -> Vec<Effect> {
    if app.answering.going {
        return stop_reading(app);
    }
    if reader(app).is_none() {
        app.notice = Some(
            "nothing reads here: give a model with --reader or --llm, or recorded answers with --answers"
                .into(),
        );
        return Vec::new();
    }
    let known = app.answers().to_vec();
    let passages = app.contexts(app.lane);
    if known.len() == passages.len() {
        return Vec::new();
    }
    app.answering.read = app.remaining(app.lane);
    let from = known.len();
    app.answering.answers = known;
    request(app, passages, Want::EachK(from))
}

/// Requests answers.
fn request(app: &mut App, passages: Vec<ReadContext>, want: Want) -> Vec<Effect> {
    let number = app.next_batch();
    (app.answering.number, app.answering.going, app.answering.failed) = (number, true, None);
    let question = app.question.text.clone();
    let sides = app.question.sides().filter(|_| app.question.answers.is_empty());
    let sides = sides.map(|sides| sides.map(|side| app.question.perspectives[side].clone()));
    vec![Effect::Batch(number, Batch::Read(ReadList { question, sides, passages, want }))]
}

/// Reads the whole list without each passage, or in other orders.
fn read_aside(app: &mut App, want: Want) -> Vec<Effect> {
    if !app.is_read() {
        let key = app.key(Context::Answer, Action::HaveRead);
        app.notice = Some(format!("the list has no answer yet; {key} has it read"));
        return Vec::new();
    }
    let kept = app.remaining(app.lane);
    let answering = &mut app.answering;
    if answering.aside != kept {
        (answering.aside, answering.reordered) = (kept, None);
        (answering.without, answering.attention) = (Vec::new(), Vec::new());
    }
    match want {
        Want::Without => {
            answering.without.clear();
            answering.attention.clear();
        }
        _ => answering.reordered = None,
    }
    let passages = app.contexts(app.lane);
    request(app, passages, want)
}

/// Drops the passages that a probe drops, as one change.
fn probe(app: &mut App, number: usize) -> Vec<Effect> {
    let Some(probe) = Probe::all().nth(number) else { return Vec::new() };
    let pattern = match app.pattern() {
        None => {
            app.notice = Some("a probe needs gold answers: questions carry them as `answers`".into());
            return Vec::new();
        }
        Some(_) if !app.is_read() => {
            let key = app.key(Context::Answer, Action::HaveRead);
            app.notice = Some(format!("the list has no answer at every depth yet; {key} has it read"));
            return Vec::new();
        }
        Some(pattern) => pattern,
    };
    let effects = pattern.effects();
    let (kept, stay) = (app.remaining(app.lane), probe.keep(&effects));
    let mut edits = app.answering.edits.get(app.lane).cloned().unwrap_or_default();
    edits.dropped.extend((0..kept.len()).filter(|place| !stay.contains(place)).map(|place| kept[place]));
    let key = app.key(Context::Answer, Action::Undo);
    app.notice = Some(format!("{probe} keeps {} of {}; {key} takes it back", stay.len(), kept.len()));
    change(app, edits)
}

/// Takes a result of the reader.
fn read_event(app: &mut App, number: u64, event: ReadEvent) {
    let answering = &mut app.answering;
    if number != answering.number || !answering.going {
        return;
    }
    match event {
        ReadEvent::Answer(k, answer) if k == answering.answers.len() + 1 => answering.answers.push(answer),
        ReadEvent::Without(place, answer) if place == answering.without.len() => {
            answering.without.push(answer)
        }
        ReadEvent::Attention(shares) => answering.attention = shares,
        ReadEvent::Reordered(reordered) => answering.reordered = Some(reordered),
        ReadEvent::Ended(failed) => (answering.going, answering.failed) = (false, failed),
        ReadEvent::Answer(..) | ReadEvent::Without(..) => {}
    }
}

impl App {
    /// The first k of a lane in reading order; dropped passages keep their places.
    pub fn rows(&self, lane: usize) -> Vec<Row> {
        let Some(shown) = self.lanes.get(lane) else { return Vec::new() };
        let none = Edits::default();
        let edits = self.answering.edits.get(lane).unwrap_or(&none);
        let row = |(i, ranked): (usize, &crate::engine::Ranked)| Row {
            at: ranked.at,
            rank: i + 1,
            dropped: edits.dropped.contains(&ranked.at),
        };
        let mut rows: Vec<Row> = shown.ranking.iter().take(self.k).enumerate().map(row).collect();
        let place = |row: &Row| edits.order.iter().position(|at| *at == row.at).unwrap_or(usize::MAX);
        rows.sort_by_key(place);
        rows
    }

    /// The passages of a lane that are read.
    pub fn remaining(&self, lane: usize) -> Vec<PassageIx> {
        undropped(&self.rows(lane))
    }

    /// The same passages with their texts.
    pub fn contexts(&self, lane: usize) -> Vec<ReadContext> {
        let context = |row: &Row| {
            let ranked = self.lanes.get(lane)?.ranking.get(row.rank - 1)?;
            Some(ReadContext { rank: row.rank, passage: ranked.passage.clone() })
        };
        self.rows(lane).iter().filter(|row| !row.dropped).filter_map(context).collect()
    }

    /// A lane's stance after each passage; `None` if the question does not have two sides.
    pub fn stance_timeline(&self, lane: usize) -> Option<StanceTimeline> {
        StanceTimeline::of(&self.question, &self.judgments, &self.remaining(lane))
    }

    /// Recomputes the lists and the answers that are drawn, if anything that they depend on has changed.
    pub fn refresh_reader(&mut self) {
        self.answering.lists.resize_with(self.lanes.len(), ReadLane::default);
        for i in 0..self.lanes.len() {
            let judgments = &self.judgments;
            let inputs = Inputs {
                list: Arc::clone(&self.lanes[i].ranking),
                edits: self.answering.edits.get(i).cloned().unwrap_or_default(),
                judgments: (judgments.revision(), judgments.source),
                question: self.question.clone(),
                k: self.k,
            };
            if !self.answering.lists[i].inputs.as_ref().is_some_and(|before| before.same(&inputs)) {
                let (rows, timeline) = (self.rows(i), self.stance_timeline(i));
                self.answering.lists[i] = ReadLane { rows, timeline, inputs: Some(inputs) };
            }
        }
        let answering = &self.answering;
        let inputs = AnswerInputs {
            arrived: (
                answering.number,
                answering.answers.len(),
                answering.without.len(),
                answering.attention.len(),
            ),
            reordered: answering.reordered,
            gold: self.question.answers.clone(),
            kept: answering.lists.get(self.lane).map(|list| undropped(&list.rows)).unwrap_or_default(),
        };
        if answering.shown.inputs.as_ref() != Some(&inputs) {
            self.answering.shown = self.answers_shown(inputs);
        }
    }

    fn answers_shown(&self, inputs: AnswerInputs) -> AnswersShown {
        let pattern = self.pattern();
        AnswersShown {
            count: self.answers().len(),
            is_read: self.is_read(),
            effects: pattern.as_ref().map(Pattern::effects),
            pattern,
            changes: changes(self.answers()),
            hangs: (0..inputs.kept.len()).map(|place| self.hangs_on(place)).collect(),
            attention: self.attention().to_vec(),
            reordered: self.reordered(),
            inputs: Some(inputs),
        }
    }

    /// The answers that hold for the lane's present list: one for each passage that it shares with the list that was read, from the first
    /// on.
    pub fn answers(&self) -> &[Answer] {
        let shared = self
            .remaining(self.lane)
            .iter()
            .zip(&self.answering.read)
            .take_while(|(now, then)| now == then)
            .count();
        &self.answering.answers[..shared.min(self.answering.answers.len())]
    }

    /// Whether every depth of the list has its answer.
    pub fn is_read(&self) -> bool {
        let kept = self.remaining(self.lane).len();
        kept > 0 && self.answers().len() == kept
    }

    /// Right or wrong at every k that was read; `None` without gold answers.
    pub fn pattern(&self) -> Option<Pattern> {
        (!self.question.answers.is_empty()).then(|| pattern(self.answers(), &self.question.answers))
    }

    /// Whether the answer changes without the passage at a place of those kept; `None` if that was not read.
    pub fn hangs_on(&self, place: usize) -> Option<bool> {
        let kept = self.remaining(self.lane);
        let own = self.answers().get(kept.len().checked_sub(1)?)?;
        let without = self.answering.without.get(place).filter(|_| self.answering.aside == kept)?;
        Some(!same(&without.text, &own.text))
    }

    /// The share of the reader's attention on each passage of the present list; empty if it is not known.
    pub fn attention(&self) -> &[f64] {
        if self.answering.aside == self.remaining(self.lane) { &self.answering.attention } else { &[] }
    }

    /// The result of the reorder test, if the present list had one.
    pub fn reordered(&self) -> Option<Reordered> {
        self.answering.reordered.filter(|_| self.answering.aside == self.remaining(self.lane))
    }
}

/// The passages of a list that are read.
fn undropped(rows: &[Row]) -> Vec<PassageIx> {
    rows.iter().filter(|row| !row.dropped).map(|row| row.at).collect()
}
