//! Labelling by hand: what a key decides, and what follows once it is on the disk.

use std::collections::BTreeMap;

use crossterm::event::{Event, KeyEvent};
use tui_input::Input;
use tui_input::backend::crossterm::EventHandler;

use super::super::app::{App, Corpus, Screen};
use super::super::desk::Labelling;
use super::super::keymap::{Action, Context};
use super::super::message::Effect;
use super::{leave, marking};
use crate::annotate::{Act, Item, View, text_hash};
use crate::detect::LabelSource;
use crate::engine::{self, Desk, Survey, Written};

/// The first passages of every lane that are laid on the desk where no project says which.
const POOLED: usize = 20;

/// Opens the screen and asks for the journal.
pub fn open(app: &mut App) -> Vec<Effect> {
    if !matches!(app.corpus, Corpus::Open(_)) {
        return Vec::new();
    }
    super::asking::read_line(app);
    app.screen = Screen::Annotate;
    app.labelling = Labelling::default();
    let (items, questions) = (pool(app), vec![app.question.clone()]);
    // A replay leaves nothing behind, a lock neither.
    let shown = app.replay.is_some();
    let order = if shown { engine::Labelling::Show } else { engine::Labelling::Open };
    vec![Effect::Label(order(items, questions))]
}

/// What the lanes bring up for the present question.
fn pool(app: &App) -> Vec<Item> {
    let mut items: Vec<Item> = Vec::new();
    for lane in &app.lanes {
        for (i, ranked) in lane.ranking.iter().take(POOLED.max(app.k)).enumerate() {
            let known = items.iter().position(|item| item.passage.id == ranked.passage.id);
            let place = known.unwrap_or_else(|| {
                items.push(Item {
                    question: app.question.text.clone(),
                    passage: (*ranked.passage).clone(),
                    ranks: BTreeMap::new(),
                    to: Vec::new(),
                });
                items.len() - 1
            });
            items[place].ranks.insert(lane.recipe.to_string(), i + 1);
        }
    }
    items
}

/// The desk is there, or will not be.
pub fn laid(app: &mut App, desk: Result<Box<Desk>, String>) -> Vec<Effect> {
    let left =
        app.screen != Screen::Annotate && (app.screen, app.help_from) != (Screen::Help, Screen::Annotate);
    if left {
        return Vec::new();
    }
    let number = app.next_survey();
    let labelling = &mut app.labelling;
    let mut effects = Vec::new();
    if let Ok(desk) = &desk {
        let told: Vec<&str> = desk.read_only.iter().chain(&desk.notes).map(String::as_str).collect();
        if !told.is_empty() {
            app.notice = Some(told.join(" · "));
        }
        (labelling.order, labelling.blind, labelling.number) = (desk.order, desk.blind, number);
        labelling.weighed = vec![None; desk.items.len()];
        effects.push(Effect::Survey(number, Survey::Weigh(desk.items.clone(), desk.questions.clone())));
    }
    labelling.desk = Some(desk.map(|mut desk| {
        if desk.lanes.is_empty() {
            desk.lanes = app.lanes.iter().map(|lane| lane.recipe.to_string()).collect();
        }
        desk
    }));
    app.labelling.recount();
    arranged(app);
    effects
}

/// The passages are in their order; the first that is not labelled is shown.
fn arranged(app: &mut App) {
    app.labelling.arrange(app.book.threshold);
    let labelling = &mut app.labelling;
    // As if the one before the first had just been labelled.
    labelling.at = labelling.queue.len().saturating_sub(1);
    let first = labelling.next().unwrap_or(0);
    labelling.show(first);
}

/// The model said something of a passage.
pub fn weighed(app: &mut App, number: u64, item: usize, probabilities: Vec<Option<f32>>) {
    let labelling = &mut app.labelling;
    if number != labelling.number {
        return;
    }
    if let Some(place) = labelling.weighed.get_mut(item) {
        *place = Some(probabilities);
    }
    // The order by doubt is known once all was weighed.
    let all = labelling.weighed.iter().all(Option::is_some);
    if all && labelling.order == crate::annotate::Order::Uncertain {
        labelling.rearrange(app.book.threshold);
    }
}

/// An action on the screen.
pub fn act(app: &mut App, action: Action) -> Vec<Effect> {
    let labelling = &mut app.labelling;
    match action {
        Action::Back if labelling.guide => labelling.guide = false,
        Action::Back => {
            let effects = leave(app);
            let counting = match app.book.source {
                LabelSource::Model => Some("the model's verdicts"),
                LabelSource::Gold => Some("gold labels"),
                LabelSource::Auto | LabelSource::Human => None,
            };
            if let Some(counting) = counting.filter(|_| app.labelling.pace.done > 0) {
                let key = app.key(Context::Lanes, Action::NextLabelSource);
                app.notice = Some(format!("{counting} count here, not your labels: {key} changes it"));
            }
            return effects;
        }
        Action::Guidelines => labelling.guide = !labelling.guide,
        Action::Down => labelling.scroll += 1,
        Action::Up => labelling.scroll = labelling.scroll.saturating_sub(1),
        Action::ToggleBlind => labelling.blind = !labelling.blind,
        _ if labelling.guide => {}
        Action::NextLabelOrder => {
            labelling.order = labelling.order.next();
            arranged(app);
        }
        Action::NextPassage if labelling.at + 1 < labelling.queue.len() => labelling.show(labelling.at + 1),
        Action::PreviousPassage if labelling.at > 0 => labelling.show(labelling.at - 1),
        Action::Undo | Action::Redo => return turn_back(app, action),
        _ if labelling.item().is_some() => return decide(app, action),
        _ => {}
    }
    Vec::new()
}

fn writable(app: &mut App) -> bool {
    let reason = app.labelling.open().and_then(|desk| desk.read_only.clone());
    let may = reason.is_none() && app.labelling.open().is_some();
    app.notice = reason.or(app.notice.take());
    may
}

fn turn_back(app: &mut App, action: Action) -> Vec<Effect> {
    if !writable(app) {
        return Vec::new();
    }
    app.labelling.saving = Some(false);
    let order = if action == Action::Undo { engine::Labelling::Undo } else { engine::Labelling::Redo };
    vec![Effect::Label(order)]
}

/// An action on the passage that is shown.
fn decide(app: &mut App, action: Action) -> Vec<Effect> {
    let Some(question) = app.labelling.question().cloned() else { return Vec::new() };
    let beside = matches!(action, Action::Skip | Action::Flag | Action::Note | Action::MarkEvidence);
    if beside && app.labelling.in_conflict() {
        app.notice = Some("two of your machines say different things of this passage: label it first".into());
        return Vec::new();
    }
    let statements = &question.perspectives;
    if statements.is_empty() {
        let key = app.key(Context::Lanes, Action::EditStatements);
        app.notice = Some(format!("this question has no statements to label: {key} on the lanes types them"));
        return Vec::new();
    }
    let sides = question.supports.filter(|_| statements.len() == 2);
    let labelling = &mut app.labelling;
    let chosen: Vec<usize> = match action {
        Action::LabelSupport | Action::LabelOppose | Action::LabelBoth if sides.is_none() => {
            let key = app.key(Context::Annotate, Action::ApplyLabel);
            app.notice = Some(format!(
                "this question has no two sides: the keys before its perspectives choose them, {key} keeps them"
            ));
            return Vec::new();
        }
        Action::LabelSupport => sides.into_iter().collect(),
        Action::LabelOppose => sides.map(|first| 1 - first).into_iter().collect(),
        Action::LabelBoth => vec![0, 1],
        Action::LabelNone => Vec::new(),
        Action::ApplyLabel => {
            let said = |i: &usize| labelling.draft.answers.get(&statements[*i]) == Some(&true);
            (0..statements.len()).filter(said).collect()
        }
        Action::ToggleLabel(i) => {
            if let Some(statement) = statements.get(i) {
                let answer = labelling.draft.answers.entry(statement.clone()).or_default();
                *answer = !*answer;
            }
            return Vec::new();
        }
        Action::Skip => return write(app, View { skipped: true, ..app.labelling.held() }, true),
        Action::Flag => {
            let held = labelling.held();
            return write(app, View { flagged: !held.flagged, ..held }, false);
        }
        Action::Note => {
            labelling.typed = Some(Input::new(labelling.held().note.unwrap_or_default()));
            return Vec::new();
        }
        Action::MarkEvidence => {
            marking::begin(labelling);
            return Vec::new();
        }
        _ => return Vec::new(),
    };
    let held = labelling.held();
    let mut view = View { skipped: false, evidence: BTreeMap::new(), ..held.clone() };
    // Statements that are no longer asked keep what was said of them.
    for (i, statement) in statements.iter().enumerate() {
        view.answers.insert(statement.clone(), chosen.contains(&i));
        let words = labelling.marked.as_ref().or(held.evidence.get(statement));
        if let Some(words) = words.filter(|_| chosen.contains(&i)) {
            view.evidence.insert(statement.clone(), words.clone());
        }
    }
    let effects = write(app, view.clone(), true);
    if !effects.is_empty() {
        app.labelling.draft = view;
    }
    effects
}

/// Orders that a view be written down.
pub fn write(app: &mut App, view: View, advance: bool) -> Vec<Effect> {
    if !writable(app) {
        return Vec::new();
    }
    let Some(item) = app.labelling.item() else { return Vec::new() };
    let (question, passage) = (item.question.clone(), item.passage.id.clone());
    // What is done beside a label leaves the time that the label took.
    let standing = app.labelling.open().map(|desk| desk.history.heads(&item.key(&desk.by)));
    let same = view.answers == app.labelling.held().answers;
    let took = standing.and_then(|heads| heads.last()?.took).filter(|_| same);
    let act = Act { question, passage, text: text_hash(&item.passage), view, took };
    app.labelling.saving = Some(advance);
    vec![Effect::Label(engine::Labelling::Write(act))]
}

/// An act is on the disk, or is not.
pub fn written(app: &mut App, written: Result<Option<Box<Written>>, String>) -> Vec<Effect> {
    let advance = app.labelling.saving.take();
    match written {
        Err(reason) => {
            app.labelling.ahead.clear();
            app.notice = Some(reason);
            return Vec::new();
        }
        Ok(None) => app.notice = Some("there is nothing to go back or forth to".into()),
        Ok(Some(written)) => {
            counts(app, &written);
            take(app, *written, advance == Some(true));
        }
    }
    let mut effects = Vec::new();
    while app.labelling.saving.is_none() {
        let Some(key) = app.labelling.ahead.pop_front() else { break };
        effects.extend(super::press(app, key));
    }
    effects
}

/// Every measure on screen follows at once.
fn counts(app: &mut App, written: &Written) {
    if let Corpus::Open(opened) = &mut app.corpus {
        opened.by_hand = true;
    }
    if written.entry.question != app.question.text {
        return;
    }
    let Some(at) = written.at else { return };
    for (i, statement) in app.question.perspectives.iter().enumerate() {
        if let Some((_, human)) = written.labels.iter().find(|(of, _)| of == statement) {
            app.book.decided(at, i, *human);
        }
    }
}

fn take(app: &mut App, written: Written, advance: bool) {
    let key = written.entry.key();
    let labelling = &mut app.labelling;
    if let Some(Ok(desk)) = &mut labelling.desk {
        desk.history.take(written.entry);
    }
    labelling.recount();
    let Some(at) = labelling.find(&key) else {
        app.notice = Some(format!("written down for another question: {}", key.question));
        return;
    };
    if at != labelling.at || !advance {
        // What was undone is shown; marked words and chosen perspectives of the passage stay.
        if at != labelling.at {
            labelling.show(at);
        }
        let held = labelling.held();
        labelling.draft = held;
        return;
    }
    match labelling.next() {
        Some(next) => labelling.show(next),
        None => {
            labelling.show(at);
            app.notice = Some(format!("all {} passages are labelled", app.labelling.queue.len()));
        }
    }
}

/// A key while a note is typed.
pub fn edit(app: &mut App, key: KeyEvent) -> Vec<Effect> {
    if let Some(typed) = &mut app.labelling.typed {
        typed.handle_event(&Event::Key(key));
    }
    Vec::new()
}

/// An action while a note is typed.
pub fn act_on_note(app: &mut App, action: Action) -> Vec<Effect> {
    let Some(typed) = app.labelling.typed.take() else { return Vec::new() };
    if action != Action::ApplyNote {
        return Vec::new();
    }
    let note = Some(typed.value().trim().to_owned()).filter(|note| !note.is_empty());
    let held = app.labelling.held();
    write(app, View { note, ..held }, false)
}
