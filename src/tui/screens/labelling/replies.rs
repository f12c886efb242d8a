//! Takes the engine's replies: the opened journal, the model's probabilities, labels that were written or that another process changed.

use crate::annotate::Item;
use crate::engine::{AnnotationState, Batch, LabelsChanged, Written};
use crate::report::safe;
use crate::tui::app::{App, Corpus};
use crate::tui::keymap::Screen;
use crate::tui::message::Effect;

/// Takes the opened journal, or the reason why it could not be opened.
pub(super) fn take_annotation(
    app: &mut App,
    annotation: Result<Box<AnnotationState>, String>,
) -> Vec<Effect> {
    let left =
        app.screen != Screen::LABELLING && (app.screen, app.help_from) != (Screen::HELP, Screen::LABELLING);
    if left {
        return Vec::new();
    }
    let (number, k) = (app.next_batch(), app.k);
    let labelling = &mut app.labelling;
    labelling.k = k;
    let mut effects = Vec::new();
    if let Ok(annotation) = &annotation {
        let notes: Vec<&str> =
            annotation.read_only.iter().chain(&annotation.notes).map(String::as_str).collect();
        if !notes.is_empty() {
            app.notice = Some(notes.join(" · "));
        }
        (labelling.order, labelling.blind, labelling.number) = (annotation.order, annotation.blind, number);
        // The passages of others follow, because a figure over drawn questions uses the labels of all annotators.
        let others = annotation.drawn.iter().flat_map(|drawn| &drawn.others);
        let items: Vec<Item> = annotation.items.iter().chain(others).cloned().collect();
        labelling.scored = vec![None; items.len()];
        effects.push(Effect::Batch(number, Batch::Score(items, annotation.questions.clone())));
    }
    labelling.annotation = Some(annotation.map(|mut annotation| {
        if annotation.lanes.is_empty() {
            annotation.lanes = app.lanes.iter().map(|lane| lane.recipe.to_string()).collect();
        }
        annotation
    }));
    app.labelling.recount();
    arrange(app);
    effects
}

/// Orders the passages, and shows the one that was under the cursor on the lanes, else the first one without a label.
pub(super) fn arrange(app: &mut App) {
    app.labelling.arrange(app.judgments.rule().threshold);
    let labelling = &mut app.labelling;
    // `next` starts after this one, so it finds the first.
    labelling.at = labelling.queue.len().saturating_sub(1);
    let wanted = labelling.wanted.take().and_then(|(question, id)| {
        let is = |place: &usize| {
            let item = labelling.open().and_then(|open| open.items.get(*place));
            item.is_some_and(|item| item.question == question && item.passage.id == id)
        };
        labelling.queue.iter().position(is)
    });
    let first = wanted.or_else(|| labelling.next()).unwrap_or(0);
    labelling.show(first);
}

/// Takes the model's probabilities for a passage.
pub(super) fn take_scores(
    app: &mut App,
    number: u64,
    item: usize,
    (probabilities, unclear): (Vec<Option<f32>>, bool),
) {
    let labelling = &mut app.labelling;
    if number != labelling.number {
        return;
    }
    if let Some(place) = labelling.scored.get_mut(item) {
        *place = Some(probabilities);
    }
    if unclear {
        labelling.unclear.insert(item);
    }
    // The order by uncertainty needs all probabilities.
    let all = labelling.scored.iter().all(Option::is_some);
    if all {
        labelling.recount();
    }
    if all && labelling.order == crate::annotate::Order::Uncertain {
        labelling.rearrange(app.judgments.rule().threshold);
    }
}

/// Takes a decision that was written, or the reason why it was not.
pub(super) fn take_written(app: &mut App, written: Result<Option<Box<Written>>, String>) -> Vec<Effect> {
    let advance = app.labelling.saving.take();
    match written {
        Err(reason) => {
            app.labelling.ahead.clear();
            app.notice = Some(reason);
            return Vec::new();
        }
        Ok(None) => app.notice = Some("there is nothing to go back or forth to".into()),
        Ok(Some(written)) => {
            update_judgments(app, &written);
            go_on(app, *written, advance == Some(true));
        }
    }
    Vec::new()
}

/// Lets the new label count in the measures on screen.
fn update_judgments(app: &mut App, written: &Written) {
    if let Corpus::Open(opened) = &mut app.corpus {
        opened.by_hand = true;
    }
    if written.entry.question != app.question.text {
        return;
    }
    let Some(at) = written.at else { return };
    for (i, statement) in app.question.perspectives.iter().enumerate() {
        if let Some((_, human)) = written.labels.iter().find(|(of, _)| of == statement) {
            app.judgments.set_human(at, i, *human);
        }
    }
}

/// Takes over what another process changed in the journals, and says so.
pub(super) fn take_changed(app: &mut App, changed: LabelsChanged) {
    if let Some(error) = changed.error {
        app.notice = Some(format!("the journals changed and cannot be read again: {error}"));
        return;
    }
    if let Corpus::Open(opened) = &mut app.corpus {
        opened.by_hand |= changed.labels.iter().any(|(.., label)| label.is_some());
    }
    let mut shown = 0;
    for (at, statement, label) in &changed.labels {
        if let Some(i) = app.question.perspectives.iter().position(|own| own == statement) {
            app.judgments.set_human(*at, i, *label);
            shown += 1;
        }
    }
    if let (Some(Ok(annotation)), Some((entries, others))) = (&mut app.labelling.annotation, changed.journal)
    {
        for entry in entries {
            annotation.history.take(entry);
        }
        annotation.others = others;
        let elsewhere = annotation.read_only.is_some();
        app.labelling.recount();
        if elsewhere {
            // What is shown of the passage is what the process that writes has decided.
            app.labelling.draft = app.labelling.held();
        }
    }
    let names: Vec<String> = changed.by.iter().map(|name| safe::line(name)).collect();
    app.notice = Some(format!(
        "labels of {} changed on the disk: {} of {} on this question",
        names.join(", "),
        shown,
        changed.labels.len()
    ));
}

/// Adds a written decision to the history, and shows the next passage if `advance` is set.
fn go_on(app: &mut App, written: Written, advance: bool) {
    let (key, height) = (written.entry.key(), app.size.height);
    let labelling = &mut app.labelling;
    labelling.take(written.entry);
    let Some(at) = labelling.find(&key) else {
        app.notice = Some(format!("written down for another question: {}", key.question));
        return;
    };
    if at != labelling.at || !advance {
        // An undone decision is shown; marked words and chosen perspectives stay.
        if at != labelling.at {
            labelling.show(at);
        }
        labelling.draft = labelling.held();
        labelling.turn_to_open(height);
        return;
    }
    match labelling.next() {
        Some(next) => {
            labelling.show(next);
            labelling.turn_to_open(height);
        }
        None => {
            labelling.show(at);
            app.notice = Some(format!("all {} passages are labelled", app.labelling.queue.len()));
        }
    }
}
