//! The statements being edited.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph};
use unicode_width::UnicodeWidthStr;

use super::span;
use crate::question::Question;
use crate::report::marks::Mark;
use crate::report::safe;
use crate::tui::app::App;
use crate::tui::theme::{Meaning, Theme};
use crate::tui::wrap::fit;

/// Draws the editor.
pub fn draw(app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
    let editing = &app.editing;
    let texts: Vec<String> = editing.lines.iter().map(|line| line.value().to_owned()).collect();
    let supports = (texts.len() == 2).then_some(editing.supports);
    let question = Question { perspectives: texts.clone(), supports, ..app.question.clone() };
    let block = Block::bordered().border_style(theme.style(Meaning::Focus)).title(span(
        " Statements of the question, one sentence each ",
        Meaning::Title,
        theme,
    ));
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let width = usize::from(inner.width).saturating_sub(5);
    let first = (editing.at + 1).saturating_sub(usize::from(inner.height));
    let mut lines = Vec::new();
    for (i, text) in texts.iter().enumerate().skip(first) {
        let mark = Mark::of(i, &question);
        let meaning = if i == editing.at { Meaning::Title } else { Meaning::Text };
        // The end of a long statement is what is being typed.
        let text = safe::line(text);
        let cursor =
            safe::line(&editing.lines[i].value().chars().take(editing.lines[i].cursor()).collect::<String>());
        let hidden = if i == editing.at { cursor.width().saturating_sub(width.saturating_sub(1)) } else { 0 };
        let shown: String = text.chars().skip(hidden).collect();
        if i == editing.at && inner.height > 0 {
            let x = inner.x + 5 + (cursor.width() - hidden) as u16;
            frame.set_cursor_position((x.min(inner.right().saturating_sub(1)), inner.y + (i - first) as u16));
        }
        lines.push(Line::from(vec![
            Span::raw(" "),
            span(format!("{:<4}", mark.text(app.glyphs)), Meaning::Side(mark), theme),
            span(fit(&shown, width), meaning, theme),
        ]));
    }
    frame.render_widget(Paragraph::new(lines), inner);
}
