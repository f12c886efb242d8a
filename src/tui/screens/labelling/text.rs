//! The text of the screen: the passage with its evidence, or the guidelines, laid out for the present width.

use super::state::{Inputs, LabelText};
use crate::annotate::Item;
use crate::question::Question;
use crate::report::marks::Mark;
use crate::report::safe;
use crate::tui::app::App;
use crate::tui::theme::Meaning;
use crate::tui::widgets::text::{Row, fit, highlight_row, passage_piece, piece, rows, with_marks, wrap};

/// The most columns of the text.
pub const WIDEST: u16 = 100;

/// Lays the text out again if its inputs have changed.
pub fn refresh(app: &mut App) {
    let labelling = &app.labelling;
    let inputs = Inputs {
        item: labelling.item().map(|item| (item.question.clone(), item.passage.id.clone())),
        width: usize::from(app.size.width.saturating_sub(2).min(WIDEST)),
        glyphs: app.glyphs,
        shown: (labelling.blind, labelling.guide),
        evidence: labelling.draft.evidence.clone(),
        marked: labelling.marked.clone(),
        marking: labelling.marking.as_ref().map(|marking| marking.range()),
        said: labelling.said_by_others(),
    };
    if labelling.text.inputs.as_ref() == Some(&inputs) {
        return;
    }
    let rows = match (labelling.open(), labelling.item(), labelling.question()) {
        (Some(annotation), ..) if labelling.guide => {
            annotation.guidelines.lines().flat_map(|line| guideline_rows(line, inputs.width)).collect()
        }
        (Some(_), Some(item), Some(question)) => passage_rows(app, item, question, inputs.width),
        _ => Vec::new(),
    };
    app.labelling.text = LabelText { rows, inputs: Some(inputs) };
}

/// The title, its origin, and the text with its evidence marked.
fn passage_rows(app: &App, item: &Item, question: &Question, width: usize) -> Vec<Row> {
    let labelling = &app.labelling;
    let title = if item.passage.title.is_empty() { "(without a title)" } else { &item.passage.title };
    let mut lines = vec![vec![passage_piece(fit(&safe::line(title), width), Meaning::Title)]];
    if !labelling.blind {
        let mut ranks: Vec<(&String, &usize)> = item.ranks.iter().chain(&item.later).collect();
        ranks.sort_by_key(|(lane, rank)| (**rank, *lane));
        let ranks = ranks.iter().map(|(lane, rank)| format!(" · {} {rank}", lane_title(lane)));
        let about = format!("{}{}", item.passage.id, ranks.collect::<String>());
        lines.push(vec![piece(fit(&safe::line(&about), width), Meaning::Muted)]);
    }
    for said in labelling.said_by_others() {
        lines.extend(rows(&safe::line(&said), "", width, Meaning::Muted));
    }
    lines.push(Row::new());
    let text = safe::line(&item.passage.text);
    let mut marks = Vec::new();
    let mut mark = |words: &str, meaning| {
        let words = safe::line(words);
        if let Some(start) = text.find(words.as_str()).filter(|_| !words.is_empty()) {
            marks.push((start..start + words.len(), meaning));
        }
    };
    for (i, statement) in question.perspectives.iter().enumerate() {
        if let Some(words) = labelling.draft.evidence.get(statement) {
            mark(words, Meaning::Evidence(Mark::of(i, question)));
        }
    }
    if let Some(words) = &labelling.marked {
        mark(words, Meaning::Evidence(Mark::None));
    }
    if let Some(marking) = &labelling.marking {
        // The same place in the safe text, which can be longer than the raw text.
        let safe_at = |at: usize| safe::line(item.passage.text.get(..at).unwrap_or_default()).len();
        let range = marking.range();
        marks.push((safe_at(range.start)..safe_at(range.end), Meaning::Selected));
    }
    let (text, marks) = with_marks(&text, marks, app.glyphs);
    lines.extend(wrap(&text, width, usize::MAX).into_iter().map(|row| highlight_row(&text, row, &marks)));
    lines
}

/// The title of a recipe; other names stay as they are.
fn lane_title(recipe: &str) -> String {
    recipe.parse::<crate::engine::Recipe>().map_or_else(|_| recipe.to_owned(), |recipe| recipe.title())
}

/// One line of Markdown: headings are highlighted, other lines are plain text.
fn guideline_rows(line: &str, width: usize) -> Vec<Row> {
    match line.trim_start_matches('#') {
        heading if heading.len() < line.len() => rows(heading.trim(), "", width, Meaning::Title),
        "" => vec![Row::new()],
        text => rows(text, "", width, Meaning::Text),
    }
}
