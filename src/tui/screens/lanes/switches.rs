//! Acts on the lanes: the four switches, undo and redo, the baseline of differences, and labels set from the lanes.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use super::question::{self, restore, state};
use crate::annotate::View;
use crate::corpus::PassageIx;
use crate::detect::{LabelSource, PairLabels};
use crate::engine::recipe::{Rerank, Switch, Toward};
use crate::engine::{Judgments, Labelling, Recipe, SetLabel, SetTo, Turn, Written};
use crate::expand::Kind;
use crate::project::Variant;
use crate::question::Question;
use crate::report::marks::Mark;
use crate::tui::app::{App, Corpus, Lane, LaneState, NUMBERS, Options};
use crate::tui::keymap::{Action, Context, Screen};
use crate::tui::layout::keep_in_view;
use crate::tui::message::Effect;
use crate::tui::undo::{HeldLabel, Label, LabelStep, LabelTo, State, Step};

/// Flips a switch of the lane under the cursor.
pub fn toggle(app: &mut App, switch: Switch) -> Vec<Effect> {
    let Some(lane) = app.lanes.get(app.lane) else { return Vec::new() };
    let on = !lane.recipe.switches.is_on(switch);
    match with_switch(app, &lane.recipe, switch, on) {
        Ok(recipe) => {
            let was = lane.recipe.switches.rerank.clone();
            let effects = change(app, app.lane, recipe);
            let name = |rerank: &Option<Rerank>| match rerank {
                Some(Rerank::Mmr(_)) => Some("MMR"),
                Some(Rerank::Diversify(..)) => Some("the diversifier"),
                Some(Rerank::Listwise(_) | Rerank::Model(_)) => Some("the order by a model"),
                None => None,
            };
            let now = app.lanes.get(app.lane).and_then(|lane| lane.recipe.switches.rerank.clone());
            if let (Some(was), Some(now)) = (name(&was), name(&now))
                && was != now
            {
                app.notice = Some(format!("{now} takes the place of {was}: a list is put in order once"));
            }
            effects
        }
        Err(reason) => {
            app.notice = Some(reason);
            Vec::new()
        }
    }
}

/// Switches on in every lane that can use the switch; off everywhere if all of them have it on.
pub fn toggle_everywhere(app: &mut App, switch: Switch) -> Vec<Effect> {
    let flip = |lane: &Lane, on| with_switch(app, &lane.recipe, switch, on);
    let usable = |lane: &&Lane| flip(lane, true).is_ok();
    let on = !app.lanes.iter().filter(usable).all(|lane| lane.recipe.switches.is_on(switch));
    let changed: Vec<_> = app.lanes.iter().map(|lane| flip(lane, on).ok()).collect();
    if changed.iter().all(Option::is_none) {
        app.notice = app.lanes.first().and_then(|lane| flip(lane, true).err());
        return Vec::new();
    }
    for (lane, recipe) in app.lanes.iter_mut().zip(changed) {
        if let Some(recipe) = recipe.filter(|recipe| *recipe != lane.recipe) {
            set_recipe(lane, recipe);
        }
    }
    question::go_on(app)
}

/// Gives a lane another recipe and asks again.
pub fn change(app: &mut App, lane: usize, recipe: Recipe) -> Vec<Effect> {
    remember(&mut app.options, &recipe);
    let Some(lane) = app.lanes.get_mut(lane) else { return Vec::new() };
    if lane.recipe == recipe {
        return Vec::new();
    }
    set_recipe(lane, recipe);
    question::go_on(app)
}

/// Changes the recipe. The old list stays until the new one arrives.
fn set_recipe(lane: &mut Lane, recipe: Recipe) {
    (lane.recipe, lane.reworded) = (recipe, None);
    if lane.state != LaneState::Idle {
        lane.state = LaneState::Waiting;
    }
}

/// The recipe with a switch on or off, or the reason why this lane cannot use it.
fn with_switch(app: &App, recipe: &Recipe, switch: Switch, on: bool) -> Result<Recipe, String> {
    let (options, perspectives) = (&app.options, app.question.perspectives.len());
    let key = app.key(Context::Lanes, Action::EditStatements);
    let mut changed = recipe.clone();
    let switches = &mut changed.switches;
    match switch {
        Switch::Mmr => switches.rerank = on.then_some(Rerank::Mmr(options.mmr)),
        Switch::Diversify => {
            let (method, weight) = options.diversify;
            switches.rerank = on.then_some(Rerank::Diversify(method, weight));
            if on && perspectives == 0 {
                return Err(format!("the diversifier needs statements: press {key} to type them"));
            }
        }
        Switch::Expand => {
            let takes = recipe.base.refuses_expansion(options.expand.kind).is_none();
            let usual = || Kind::Perspectives.into();
            switches.expand = on.then(|| if takes { options.expand.clone() } else { usual() });
        }
        Switch::Project => {
            switches.project = on.then(|| {
                let mut project = options.project.clone();
                if recipe.base.refuses_projection(project.variant).is_some() {
                    project.variant = Variant::Pap;
                }
                if let Toward::Perspective(i) = &mut project.toward {
                    *i = (*i).min(perspectives.saturating_sub(1));
                }
                project
            });
        }
    }
    if let Some(reason) = changed.base.refuses(&changed.switches) {
        return Err(reason.into());
    }
    if switch == Switch::Project && on && perspectives == 0 {
        return Err(format!("a projection needs a perspective: press {key} to type one"));
    }
    Ok(changed)
}

/// Remembers the options for the next time the switch is flipped on.
fn remember(options: &mut Options, recipe: &Recipe) {
    let switches = &recipe.switches;
    match &switches.rerank {
        Some(Rerank::Mmr(mmr)) => options.mmr = *mmr,
        Some(Rerank::Diversify(method, weight)) => options.diversify = (*method, *weight),
        Some(Rerank::Model(own)) => options.rerank = Some(own.clone()),
        Some(Rerank::Listwise(_)) | None => {}
    }
    if let Some(expand) = &switches.expand {
        options.expand = expand.clone();
    }
    if let Some(project) = &switches.project {
        options.project = project.clone();
    }
}

/// Whether an action may be an act. Moving the cursor never is, and a preview counts only once it is taken.
pub fn may_change(app: &App, action: Action) -> bool {
    let moves = matches!(
        action,
        Action::Down
            | Action::Up
            | Action::PageDown
            | Action::PageUp
            | Action::Undo
            | Action::Redo
            | Action::Swap
    );
    !moves && app.acts.preview.is_none() && !app.question.text.is_empty()
}

/// Keeps the state before an action, if the action has changed anything.
pub fn keep(app: &mut App, before: State) {
    if question::differs(&before, app) && app.acts.preview.is_none() {
        app.acts.push(before, None);
    }
}

/// Undoes the last act.
pub fn undo(app: &mut App) -> Vec<Effect> {
    let Some(step) = app.acts.undo.pop() else { return question::undo_corpus(app) };
    let now = state(app);
    let mut effects = restore(app, *step.state);
    if let Some(label) = &step.label {
        let before = label.before.clone().map(SetTo::View);
        effects.extend(order(app, label, before.map_or(LabelTo::Before(label.number), LabelTo::Known)));
    }
    app.acts.redo.push(Step { state: Box::new(now), label: step.label });
    effects
}

/// Does again what was undone last.
pub fn redo(app: &mut App) -> Vec<Effect> {
    let Some(step) = app.acts.redo.pop() else {
        app.notice = Some("nothing is left to do again".into());
        return Vec::new();
    };
    let now = state(app);
    let mut effects = restore(app, *step.state);
    let mut label = step.label;
    if let Some(label) = &mut label {
        let to = SetTo::Answers(label.answers.clone());
        effects.extend(order(app, label, LabelTo::Known(to)));
        label.number = app.acts.orders;
    }
    app.acts.undo.push(Step { state: Box::new(now), label });
    effects
}

/// Swaps lanes, k and label source with those of the baseline; the second press swaps back. Labels by hand stay.
pub fn swap(app: &mut App) -> Vec<Effect> {
    let Some(base) = app.acts.baseline(&app.question).cloned() else {
        app.notice = Some("nothing was changed yet: m, e, p and v change the lane".into());
        return Vec::new();
    };
    if app.lanes.iter().any(|lane| lane.state == LaneState::Waiting) {
        app.notice = Some("the new order is still on its way".into());
        return Vec::new();
    }
    let now = state(app);
    let source = base.judgments.source;
    (app.lanes, app.k) = (base.lanes, base.k);
    app.judgments.source = source;
    app.judgments.replaces(&now.judgments);
    app.lane = app.lane.min(app.lanes.len().saturating_sub(1));
    if app.acts.pinned.is_some() {
        app.acts.pinned = Some(Arc::new(State { pinned: None, ..now.clone() }));
    }
    app.acts.push(now, None);
    keep_in_view(app);
    question::go_on(app)
}

/// Pins the present state as the baseline, or lets the baseline follow the acts again.
pub fn pin(app: &mut App) {
    app.notice = Some(match app.acts.pinned.take() {
        Some(_) => "differences are shown from the last act again".into(),
        None => {
            app.acts.pinned = Some(Arc::new(State { pinned: None, ..state(app) }));
            let key = app.key(Context::Lanes, Action::Pin);
            format!("pinned: all differences are shown from here, until {key} is pressed again")
        }
    });
}

/// Stops what is running. Lanes that wait for their lists go back to what they were before the last act.
pub fn cancel(app: &mut App) -> Vec<Effect> {
    if app.lanes.iter().any(|lane| lane.state == LaneState::Waiting) && !app.acts.undo.is_empty() {
        let effects = undo(app);
        app.notice = Some("cancelled: the lanes are as they were before".into());
        return effects;
    }
    app.turn = Turn(app.turn.0 + 1);
    app.settled = true;
    for lane in app.lanes.iter_mut().filter(|lane| lane.state == LaneState::Waiting) {
        lane.state = LaneState::Failed("cancelled; press / and Enter to ask again".into(), None);
        lane.ranking = Arc::default();
    }
    app.notice = Some("stopped: what has not arrived stays open".into());
    vec![Effect::StopRun(app.turn)]
}

/// Labels the passage under the cursor. The figures of all lanes move once the label is on disk.
pub fn label(app: &mut App, label: Label) -> Vec<Effect> {
    let Some((at, passage)) = app.open_passage() else { return Vec::new() };
    if app.replay.is_some() {
        app.notice = Some("a replay writes no labels".into());
        return Vec::new();
    }
    let (statements, sides) = (app.question.perspectives.clone(), app.question.sides());
    if statements.is_empty() {
        let key = app.key(Context::Lanes, Action::EditStatements);
        app.notice = Some(format!("this question has no statements to label: {key} types them"));
        return Vec::new();
    }
    let held = |i: &usize| app.judgments.pair(at, *i).is_some_and(|pair| pair.human == Some(true));
    let mut kept: HashSet<usize> = HashSet::new();
    let chosen: HashSet<usize> = match (label, sides) {
        (Label::Support, Some([first, _])) => [first].into(),
        (Label::Oppose, Some([_, other])) => [other].into(),
        (Label::Both, Some([first, other])) => [first, other].into(),
        (Label::None, _) => HashSet::new(),
        (Label::Statement(i), None) => {
            let Some(i) = Some(i + NUMBERS * app.statement_page()).filter(|i| *i < statements.len()) else {
                return Vec::new();
            };
            // What counts as supported stays as each annotator said it: it is not copied from one to another.
            kept = (0..statements.len()).filter(|other| *other != i && held(other)).collect();
            (!held(&i)).then_some(i).into_iter().collect()
        }
        (Label::Statement(i), Some(_)) if i < 2 => [i].into(),
        (Label::Statement(_), Some(_)) => return Vec::new(),
        (Label::Support | Label::Oppose | Label::Both, None) => {
            app.notice = Some(
                "this question has no two sides: the numbers choose its statements, 0 says that it supports none"
                    .into(),
            );
            return Vec::new();
        }
    };
    // Statements of another page are not on screen, so they get no label.
    let first = if sides.is_some() { 0 } else { NUMBERS * app.statement_page() };
    let page =
        statements.into_iter().enumerate().skip(first).take(NUMBERS).filter(|(i, _)| !kept.contains(i));
    let answers: BTreeMap<String, bool> = page.map(|(i, text)| (text, chosen.contains(&i))).collect();
    let before = state(app);
    app.acts.labels += 1;
    let to = SetTo::Answers(answers.clone());
    let mut label = LabelStep { number: 0, question: app.question.clone(), passage, answers, before: None };
    let effects = order(app, &label, LabelTo::Known(to));
    label.number = app.acts.orders;
    app.acts.push(before, Some(label));
    effects
}

/// Requests that a label is written.
fn order(app: &mut App, label: &LabelStep, to: LabelTo) -> Vec<Effect> {
    app.acts.orders += 1;
    let number = app.acts.orders;
    app.acts.pending.push((number, matches!(to, LabelTo::Known(SetTo::Answers(_)))));
    let (question, passage) = (label.question.clone(), Arc::clone(&label.passage));
    app.acts.held.push(HeldLabel { number, question, passage, to });
    send_labels(app)
}

/// Sends the orders to label of which it is known what they write, and which follow no held order for the same passage.
fn send_labels(app: &mut App) -> Vec<Effect> {
    let mut effects = Vec::new();
    let mut held: Vec<HeldLabel> = Vec::new();
    for HeldLabel { number, question, passage, to } in app.acts.held.drain(..) {
        match to {
            LabelTo::Known(to) if !held.iter().any(|held| is_for(held, &question.text, &passage.id)) => {
                effects.push(Effect::Label(Labelling::Set(Box::new(SetLabel {
                    number,
                    question,
                    passage,
                    to,
                }))));
            }
            to => held.push(HeldLabel { number, question, passage, to }),
        }
    }
    app.acts.held = held;
    effects
}

/// Whether a held order labels this passage of this question.
fn is_for(held: &HeldLabel, question: &str, passage: &str) -> bool {
    held.question.text == question && held.passage.id == passage
}

/// Takes a label that was written, or the reason why it was not.
pub fn take_label(app: &mut App, number: u64, set: Result<Box<(Written, View)>, String>) -> Vec<Effect> {
    let acts = &mut app.acts;
    let first = acts.pending.contains(&(number, true));
    acts.pending.retain(|(pending, _)| *pending != number);
    let (written, before) = match set {
        Ok(set) => *set,
        Err(reason) => {
            // Nothing was written, so there is nothing to undo.
            acts.undo.retain(|step| step.label.as_ref().is_none_or(|label| label.number != number));
            let undoes = |held: &mut HeldLabel| matches!(held.to, LabelTo::Before(of) if of == number);
            for needless in acts.held.extract_if(.., undoes) {
                acts.pending.retain(|(pending, _)| *pending != needless.number);
            }
            app.notice = Some(reason);
            let mut effects = send_labels(app);
            effects.extend(left(app));
            return effects;
        }
    };
    let steps = acts.undo.iter_mut().chain(&mut acts.redo).filter_map(|step| step.label.as_mut());
    for label in steps.filter(|label| label.number == number) {
        label.before.get_or_insert_with(|| before.clone());
    }
    for held in &mut acts.held {
        if matches!(held.to, LabelTo::Before(of) if of == number) {
            held.to = LabelTo::Known(SetTo::View(before.clone()));
        }
    }
    // A label that was undone before it was on disk does not show up: the replies to later orders say what counts.
    let entry = &written.entry;
    let undone = acts.held.iter().any(|held| is_for(held, &entry.question, &entry.passage));
    let mut effects = send_labels(app);
    let mut late = |state: &mut State| {
        count_label(&mut state.judgments, &state.question, &written);
        state.by_hand |= first;
    };
    app.acts.change_since(number, &mut late);
    if !undone {
        apply(app, &written, first);
    }
    effects.extend(left(app));
    effects
}

/// Sets in judgments of a question what was written.
fn count_label(judgments: &mut Judgments, question: &Question, written: &Written) {
    let Some(at) = written.at.filter(|_| written.entry.question == question.text) else { return };
    for (i, statement) in question.perspectives.iter().enumerate() {
        let found = written.labels.iter().find(|(of, _)| of == statement);
        // An answer that was taken back is in no list.
        let human = found.and_then(|(_, human)| *human);
        if judgments.pair(at, i).and_then(PairLabels::by_hand_or_tied) != human {
            judgments.set_human(at, i, human);
        }
    }
}

/// Leaves the program; while a label that was undone is not back yet as it was, only once it is. A second time leaves at once.
pub fn quit(app: &mut App) -> Vec<Effect> {
    if app.acts.held.is_empty() || std::mem::replace(&mut app.acts.leaving, true) {
        return vec![Effect::Quit];
    }
    app.notice = Some("a label is being taken back; the program ends when that is on disk".into());
    Vec::new()
}

/// Ends the program if it waited for labels and they are on disk.
fn left(app: &App) -> Option<Effect> {
    (app.acts.leaving && !app.acts.is_writing()).then_some(Effect::Quit)
}

/// Whether labels are still on their way to the disk. Then the corpus and its engine stay: their replies say what undoing restores.
pub fn waits_for_labels(app: &mut App) -> bool {
    let waits = app.acts.is_writing();
    if waits {
        app.notice = Some("labels are being written; try again in a moment".into());
    }
    waits
}

/// Lets a written label count in the figures.
fn apply(app: &mut App, written: &Written, first: bool) {
    if let (Corpus::Open(opened), true) = (&mut app.corpus, first) {
        opened.by_hand = true;
    }
    count_label(&mut app.judgments, &app.question, written);
    let Some(at) = written.at.filter(|_| written.entry.question == app.question.text) else { return };
    if first {
        app.notice = Some(said(app, at, &written.entry.by));
    }
}

/// `labelled by anna: ▲, gold is ▼ · u takes it back`, and which labels count if these do not.
fn said(app: &App, at: PassageIx, by: &str) -> String {
    let key = |action| app.key(Context::Lanes, action);
    let marks = |supports: &dyn Fn(&PairLabels) -> bool| -> Vec<String> {
        let supported = |i: &usize| app.judgments.pair(at, *i).is_some_and(supports);
        let statements = (0..app.question.perspectives.len()).filter(supported);
        statements.map(|i| Mark::of(i, &app.question).text(app.glyphs)).collect()
    };
    let [human, gold] = [marks(&|pair| pair.human == Some(true)), marks(&|pair| pair.gold == Some(true))];
    // A label by hand stands for the whole passage: what gold says besides no longer counts.
    let gold = if gold.is_empty() || gold == human {
        String::new()
    } else {
        format!(", gold is {}", gold.join(" "))
    };
    let marks = if human.is_empty() { "supports none".to_owned() } else { human.join(" ") };
    let counts = match app.judgments.source {
        LabelSource::Model => Some("the model's verdicts"),
        LabelSource::Gold => Some("gold labels"),
        LabelSource::Auto | LabelSource::Human => None,
    };
    let counts = counts
        .map(|counts| format!("; {counts} count, not yours: {} changes it", key(Action::NextLabelSource)));
    format!(
        "labelled by {by}: {marks}{gold} · {} takes it back{}",
        key(Action::Undo),
        counts.unwrap_or_default()
    )
}

/// Shows the next nine statements for the number keys.
pub fn next_label_page(app: &mut App) {
    app.label_page += 1;
    let (first, count) = (app.statement_page() * NUMBERS, app.question.perspectives.len());
    app.notice = Some(if count > NUMBERS {
        format!("1–9 label statements {}–{} of {count}", first + 1, (first + NUMBERS).min(count))
    } else {
        "the question has no more than nine statements".into()
    });
}

/// Whether acts can be undone here.
pub fn is_here(app: &App) -> bool {
    [Screen::LANES, Screen::PASSAGE].contains(&app.screen)
}
