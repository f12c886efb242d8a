//! Marking the words of a passage that show what it supports.

use unicode_segmentation::UnicodeSegmentation;

use super::super::app::App;
use super::super::desk::{Labelling, Marking};
use super::super::keymap::Action;
use super::super::message::Effect;
use super::labelling;
use crate::detect::evidence::sentences;

/// Begins at the first word of the passage.
pub fn begin(labelling: &mut Labelling) {
    let Some(item) = labelling.item() else { return };
    let words = item.passage.text.unicode_word_indices();
    let words: Vec<_> = words.map(|(start, word)| start..start + word.len()).collect();
    if !words.is_empty() {
        labelling.marking = Some(Marking { words, at: 0, from: None });
    }
}

/// An action while words are marked.
pub fn act(app: &mut App, action: Action) -> Vec<Effect> {
    let text = app.labelling.item().map(|item| item.passage.text.clone()).unwrap_or_default();
    let Some(marking) = &mut app.labelling.marking else { return Vec::new() };
    let last = marking.words.len() - 1;
    match action {
        Action::NextWord => marking.at = (marking.at + 1).min(last),
        Action::PreviousWord => marking.at = marking.at.saturating_sub(1),
        Action::Down | Action::Up => {
            let starts = sentence_starts(&text, marking);
            let next = match action {
                Action::Down => starts.iter().find(|start| **start > marking.at),
                _ => starts.iter().rev().find(|start| **start < marking.at),
            };
            marking.at = next.copied().unwrap_or(if action == Action::Down { last } else { 0 });
        }
        Action::BeginSpan => marking.from = Some(marking.at),
        Action::ApplySpan => return keep(app, &text),
        _ => app.labelling.marking = None,
    }
    Vec::new()
}

/// The words that sentences begin with.
fn sentence_starts(text: &str, marking: &Marking) -> Vec<usize> {
    let starts = sentences(text).into_iter();
    starts.filter_map(|sentence| marking.words.iter().position(|word| word.start >= sentence.start)).collect()
}

/// The marked words are the evidence of what the passage supports, or of the label that comes next.
fn keep(app: &mut App, text: &str) -> Vec<Effect> {
    let Some(marking) = app.labelling.marking.take() else { return Vec::new() };
    let Some(words) = text.get(marking.range()).map(str::to_owned) else { return Vec::new() };
    let mut held = app.labelling.held();
    let supported: Vec<String> = held
        .answers
        .iter()
        .filter(|(_, supports)| **supports)
        .map(|(statement, _)| statement.clone())
        .collect();
    app.labelling.marked = Some(words.clone());
    if supported.is_empty() {
        return Vec::new();
    }
    held.evidence.extend(supported.into_iter().map(|statement| (statement, words.clone())));
    labelling::write(app, held, false)
}
