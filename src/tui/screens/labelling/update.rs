//! Decides on a passage, and marks words as evidence.

use std::collections::BTreeMap;

use crossterm::event::{Event, KeyEvent, MouseEvent};
use ratatui::Frame;
use ratatui::layout::Rect;
use tui_input::Input;
use tui_input::backend::crossterm::EventHandler;
use unicode_segmentation::UnicodeSegmentation;

use super::draw::{self, text};
use super::replies::{arrange, take_annotation, take_changed, take_scores, take_written};
use super::state::{Labelling, Marking};
use crate::annotate::{Act, Item, Seen, View, guidelines_hash, text_hash};
use crate::detect::LabelSource;
use crate::engine::{self, Reply};
use crate::tui::app::{App, Corpus, LaneState};
use crate::tui::keymap::{Action, Context, Screen};
use crate::tui::message::Effect;
use crate::tui::page::Page;
use crate::tui::screens::lanes::question;
use crate::tui::theme::Theme;
use crate::tui::widgets::scrolled;

/// The number of passages of each lane to label outside a project.
const POOLED: usize = 20;

/// The labelling screen.
pub struct Labels;

impl Page for Labels {
    fn screen(&self) -> Screen {
        Screen::LABELLING
    }

    fn context(&self, app: &App) -> Context {
        if app.labelling.typed.is_some() {
            Context::Note
        } else if app.labelling.marking.is_some() {
            Context::Marking
        } else {
            Context::Annotate
        }
    }

    fn opened_by(&self) -> Option<Action> {
        Some(Action::Annotate)
    }

    fn open(&self, app: &mut App) -> Vec<Effect> {
        open(app)
    }

    fn act(&self, app: &mut App, action: Action) -> Vec<Effect> {
        match self.context(app) {
            Context::Note => act_on_note(app, action),
            Context::Marking => act_on_words(app, action),
            _ => act_on_passage(app, action),
        }
    }

    fn fills_the_top(&self) -> bool {
        true
    }

    fn edit(&self, app: &mut App, key: KeyEvent) -> Vec<Effect> {
        edit(app, key)
    }

    fn line<'a>(&self, app: &'a mut App) -> Option<&'a mut Input> {
        app.labelling.typed.as_mut()
    }

    fn point(&self, _: &mut App, mouse: MouseEvent) -> Option<Action> {
        scrolled(mouse)
    }

    fn reply(&self, app: &mut App, reply: Reply) -> Result<Vec<Effect>, Box<Reply>> {
        match reply {
            Reply::AnnotationState(annotation) => Ok(take_annotation(app, annotation)),
            Reply::Labelled(written) => Ok(take_written(app, written)),
            Reply::LabelsChanged(changed) => {
                take_changed(app, *changed);
                Ok(Vec::new())
            }
            Reply::Scored { number, item, probabilities, unclear } => {
                take_scores(app, number, item, (probabilities, unclear));
                Ok(Vec::new())
            }
            other => Err(Box::new(other)),
        }
    }

    fn refresh(&self, app: &mut App) {
        text::refresh(app);
    }

    fn hold(&self, app: &mut App, key: KeyEvent) -> bool {
        let holds = app.labelling.saving.is_some();
        if holds {
            app.labelling.ahead.push_back(key);
        }
        holds
    }

    fn release(&self, app: &mut App) -> Option<KeyEvent> {
        if app.labelling.saving.is_some() { None } else { app.labelling.ahead.pop_front() }
    }

    fn settled(&self, app: &App) -> bool {
        let labelling = &app.labelling;
        match &labelling.annotation {
            None => false,
            Some(Err(_)) => true,
            Some(Ok(_)) => labelling.saving.is_none() && labelling.scored.iter().all(Option::is_some),
        }
    }

    fn draw(&self, app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
        draw::draw(app, theme, area, frame);
    }
}

/// Opens the screen and requests the journal.
pub fn open(app: &mut App) -> Vec<Effect> {
    if !matches!(app.corpus, Corpus::Open(_)) {
        return Vec::new();
    }
    question::read_line(app);
    // A pool of no passages would stay empty when the lists arrive.
    let searching = app.lanes.iter().all(|lane| lane.ranking.is_empty())
        && app.lanes.iter().any(|lane| lane.state == LaneState::Waiting);
    if searching {
        app.notice =
            Some("the lanes are still searching; passages can be labelled once their lists are there".into());
        return Vec::new();
    }
    app.screen = Screen::LABELLING;
    let wanted = app.open_passage().map(|(_, passage)| (app.question.text.clone(), passage.id.clone()));
    app.labelling = Labelling::default();
    app.labelling.wanted = wanted;
    let (items, questions) = (pool(app), vec![app.question.clone()]);
    // A replay must not write, not even a lock file.
    let order = if app.replay.is_some() { engine::Labelling::Show } else { engine::Labelling::Open };
    vec![Effect::Label(order(items, questions))]
}

/// The passages that the lanes return for the present question.
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
                    later: BTreeMap::new(),
                    round: 0,
                    annotators: Vec::new(),
                    labels: BTreeMap::new(),
                });
                items.len() - 1
            });
            items[place].ranks.insert(lane.recipe.to_string(), i + 1);
        }
    }
    items
}

/// Performs an action on a passage.
fn act_on_passage(app: &mut App, action: Action) -> Vec<Effect> {
    let labelling = &mut app.labelling;
    match action {
        Action::Back if labelling.guide => labelling.guide = false,
        Action::Back => {
            let effects = app.leave();
            let counting = match app.judgments.source {
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
        Action::ToggleBlind => {
            labelling.blind = !labelling.blind;
            labelling.glimpsed |= !labelling.blind;
        }
        Action::PageDown | Action::PageUp if !labelling.guide => {
            labelling.turn(app.size.height, action == Action::PageDown);
        }
        _ if labelling.guide => {}
        Action::NextFigure => labelling.next_figure(),
        Action::NextLabelOrder => {
            labelling.order = labelling.order.next();
            arrange(app);
        }
        Action::NextPassage if labelling.at + 1 < labelling.queue.len() => labelling.show(labelling.at + 1),
        Action::PreviousPassage if labelling.at > 0 => labelling.show(labelling.at - 1),
        Action::Undo | Action::Redo => return undo_or_redo(app, action),
        _ if labelling.item().is_some() => return decide(app, action),
        _ => {}
    }
    Vec::new()
}

/// Whether labels can be written; if not, the notice says why.
fn is_writable(app: &mut App) -> bool {
    let reason = app.labelling.open().and_then(|annotation| annotation.read_only.clone());
    let writable = reason.is_none() && app.labelling.open().is_some();
    app.notice = reason.or(app.notice.take());
    writable
}

/// Undoes or redoes a decision.
fn undo_or_redo(app: &mut App, action: Action) -> Vec<Effect> {
    if !is_writable(app) {
        return Vec::new();
    }
    app.labelling.saving = Some(false);
    let order = if action == Action::Undo { engine::Labelling::Undo } else { engine::Labelling::Redo };
    vec![Effect::Label(order)]
}

/// Decides on the passage shown.
fn decide(app: &mut App, action: Action) -> Vec<Effect> {
    let Some(question) = app.labelling.question().cloned() else { return Vec::new() };
    let no_label = matches!(action, Action::Skip | Action::Flag | Action::Note | Action::MarkEvidence);
    if no_label && app.labelling.in_conflict() {
        app.notice = Some("two of your machines say different things of this passage: label it first".into());
        return Vec::new();
    }
    let again = app.labelling.asks_again();
    if again && action == Action::Skip {
        // Its first label stays.
        if let Some(next) = app.labelling.next() {
            app.labelling.show(next);
        }
        return Vec::new();
    }
    if again && matches!(action, Action::Flag | Action::Note) {
        app.notice = Some("this passage comes a second time: label it first".into());
        return Vec::new();
    }
    let statements = &question.perspectives;
    if statements.is_empty() {
        let key = app.key(Context::Lanes, Action::EditStatements);
        app.notice = Some(format!("this question has no statements to label: {key} on the lanes types them"));
        return Vec::new();
    }
    let sides = question.supports.filter(|_| statements.len() == 2);
    let shown = app.labelling.on_screen(app.size.height);
    let labels = matches!(
        action,
        Action::LabelSupport
            | Action::LabelOppose
            | Action::LabelBoth
            | Action::LabelNone
            | Action::ApplyLabel
            | Action::ToggleLabel(_)
    );
    // A replay takes the keys of what was typed, and writes nothing in the end.
    if (labels || no_label) && app.replay.is_none() && !is_writable(app) {
        return Vec::new();
    }
    if labels && (shown.is_empty() || sides.is_some_and(|_| shown.len() < 2)) {
        app.notice = Some("the window is too small to show the statements: make it higher to label".into());
        return Vec::new();
    }
    let labelling = &mut app.labelling;
    let chosen: Vec<usize> = match action {
        Action::LabelSupport | Action::LabelOppose | Action::LabelBoth if sides.is_none() => {
            let key = app.key(Context::Annotate, Action::ApplyLabel);
            app.notice = Some(format!(
                "this question has no two sides: the keys before its statements choose them, {key} keeps them"
            ));
            return Vec::new();
        }
        Action::LabelSupport => sides.into_iter().collect(),
        Action::LabelOppose => sides.map(|first| 1 - first).into_iter().collect(),
        Action::LabelBoth => vec![0, 1],
        Action::LabelNone => Vec::new(),
        Action::ApplyLabel => {
            let chosen = |i: &usize| labelling.draft.answers.get(&statements[*i]) == Some(&true);
            shown.clone().filter(chosen).collect()
        }
        Action::ToggleLabel(i) => {
            if let Some(statement) = statements.get(shown.start + i).filter(|_| shown.start + i < shown.end) {
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
            begin_marking(labelling);
            return Vec::new();
        }
        _ => return Vec::new(),
    };
    let held = labelling.held();
    let mut view = View { skipped: false, evidence: BTreeMap::new(), ..labelling.stored() };
    // Labels of statements that the question no longer has stay. A statement that was not on screen gets no label.
    for (i, statement) in statements.iter().enumerate() {
        let decided = if shown.contains(&i) {
            Some(chosen.contains(&i))
        } else {
            labelling.draft.answers.get(statement).copied()
        };
        let Some(supports) = decided else { continue };
        view.answers.insert(statement.clone(), supports);
        let marked = labelling.marked_for.get(statement).or(labelling.marked.as_ref());
        let words = marked.filter(|_| shown.contains(&i)).or(held.evidence.get(statement));
        if let Some(words) = words.filter(|_| supports) {
            view.evidence.insert(statement.clone(), words.clone());
        }
    }
    let all = statements.iter().all(|statement| view.answers.contains_key(statement));
    if app.labelling.open().is_some_and(|annotation| annotation.adjudicates) {
        // A third decision is stored with its reason.
        app.labelling.draft = view.clone();
        (app.labelling.settling, app.labelling.typed) = (Some((view, all)), Some(Input::default()));
        return Vec::new();
    }
    let effects = write(app, view.clone(), all);
    if !effects.is_empty() {
        app.labelling.draft = view;
    }
    effects
}

/// Requests that a decision is written to the journal.
pub fn write(app: &mut App, view: View, advance: bool) -> Vec<Effect> {
    if !is_writable(app) {
        return Vec::new();
    }
    let Some(item) = app.labelling.item() else { return Vec::new() };
    let (question, passage) = (item.question.clone(), item.passage.id.clone());
    // A flag or a note does not change how long the label took.
    let heads = app.labelling.open().map(|annotation| annotation.history.heads(&item.key(&annotation.by)));
    let same = view.answers == app.labelling.held().answers;
    let took = heads.as_ref().and_then(|heads| heads.last()?.took).filter(|_| same);
    let seen = same.then(|| heads.as_ref()?.last()?.seen.clone()).flatten().or_else(|| {
        let guidelines =
            app.labelling.open().map(|open| guidelines_hash(&open.guidelines)).unwrap_or_default();
        let (blind, again) = (!app.labelling.glimpsed, app.labelling.asks_again());
        Some(Seen { blind, guidelines, settles: None, again })
    });
    let act = Act { question, passage, text: text_hash(&item.passage), view, took, seen };
    app.labelling.saving = Some(advance);
    vec![Effect::Label(engine::Labelling::Write(act))]
}

/// Edits the note being typed.
fn edit(app: &mut App, key: KeyEvent) -> Vec<Effect> {
    if let Some(typed) = &mut app.labelling.typed {
        typed.handle_event(&Event::Key(key));
    }
    Vec::new()
}

/// Performs an action while a note is typed.
fn act_on_note(app: &mut App, action: Action) -> Vec<Effect> {
    let Some(typed) = app.labelling.typed.take() else { return Vec::new() };
    if let Some((view, advance)) = app.labelling.settling.take() {
        return settle(app, action, (view, advance), typed);
    }
    if action != Action::ApplyNote {
        return Vec::new();
    }
    let note = Some(typed.value().trim().to_owned()).filter(|note| !note.is_empty());
    let held = app.labelling.held();
    write(app, View { note, ..held }, false)
}

/// Writes a decision that settles a disagreement, once its reason was typed.
fn settle(app: &mut App, action: Action, (view, advance): (View, bool), typed: Input) -> Vec<Effect> {
    let why = typed.value().trim().to_owned();
    if action != Action::ApplyNote {
        app.labelling.draft = app.labelling.held();
        return Vec::new();
    }
    if why.is_empty() {
        app.notice = Some("say in a few words why, so that the annotators can learn from it".into());
        (app.labelling.settling, app.labelling.typed) = (Some((view, advance)), Some(typed));
        return Vec::new();
    }
    let mut effects = write(app, view, advance);
    if let Some(Effect::Label(engine::Labelling::Write(act))) = effects.first_mut()
        && let Some(seen) = &mut act.seen
    {
        seen.settles = Some(why);
    }
    effects
}

/// Starts marking evidence, at the first word of the passage.
fn begin_marking(labelling: &mut Labelling) {
    let Some(item) = labelling.item() else { return };
    let words = item.passage.text.unicode_word_indices();
    let words: Vec<_> = words.map(|(start, word)| start..start + word.len()).collect();
    if !words.is_empty() {
        labelling.marking = Some(Marking { words, at: 0, from: None });
    }
}

/// Performs an action while words are marked.
fn act_on_words(app: &mut App, action: Action) -> Vec<Effect> {
    let text = app.labelling.item().map(|item| item.passage.text.clone()).unwrap_or_default();
    let Some(marking) = &mut app.labelling.marking else { return Vec::new() };
    let last = marking.words.len() - 1;
    match action {
        Action::NextWord => marking.at = (marking.at + 1).min(last),
        Action::PreviousWord => marking.at = marking.at.saturating_sub(1),
        Action::Down | Action::Up => {
            let starts = marking.sentence_starts(&text);
            let next = match action {
                Action::Down => starts.iter().find(|start| **start > marking.at),
                _ => starts.iter().rev().find(|start| **start < marking.at),
            };
            marking.at = next.copied().unwrap_or(if action == Action::Down { last } else { 0 });
        }
        Action::BeginSpan => marking.from = Some(marking.at),
        Action::ApplySpan => return apply_words(app, &text, None),
        Action::LabelSupport | Action::LabelOppose | Action::ToggleLabel(_) => match statement(app, action) {
            Some(statement) => return apply_words(app, &text, Some(statement)),
            None => app.notice = Some("no statement on screen has that key".into()),
        },
        _ => app.labelling.marking = None,
    }
    Vec::new()
}

/// The statement on screen that a key of the screen stands for.
fn statement(app: &App, action: Action) -> Option<String> {
    let question = app.labelling.question()?;
    let shown = app.labelling.on_screen(app.size.height);
    let first = question.supports.filter(|_| question.perspectives.len() == 2);
    let i = match action {
        Action::LabelSupport => first?,
        Action::LabelOppose => 1 - first?,
        Action::ToggleLabel(i) => shown.start + i,
        _ => return None,
    };
    question.perspectives.get(i).filter(|_| shown.contains(&i)).cloned()
}

/// Makes the marked words the evidence of the present label, or of the next one: for one statement, or for all that the passage supports.
fn apply_words(app: &mut App, text: &str, only: Option<String>) -> Vec<Effect> {
    let Some(marking) = app.labelling.marking.take() else { return Vec::new() };
    let Some(words) = text.get(marking.range()).map(str::to_owned) else { return Vec::new() };
    let mut held = app.labelling.held();
    let is_meant = |statement: &String| only.as_ref().is_none_or(|only| only == statement);
    let supported: Vec<String> = held
        .answers
        .iter()
        .filter(|(statement, supports)| **supports && is_meant(statement))
        .map(|(statement, _)| statement.clone())
        .collect();
    if supported.is_empty() && only.is_some() && !held.answers.is_empty() {
        app.notice =
            Some("the evidence is kept once you label the passage as supporting this statement".into());
    }
    match only {
        Some(statement) => drop(app.labelling.marked_for.insert(statement, words.clone())),
        None => app.labelling.marked = Some(words.clone()),
    }
    if supported.is_empty() {
        return Vec::new();
    }
    held.evidence.extend(supported.into_iter().map(|statement| (statement, words.clone())));
    write(app, held, false)
}
