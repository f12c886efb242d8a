//! An action being looked for, over whatever fills the screen.

use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Paragraph};

use super::span;
use crate::report::marks::Glyphs;
use crate::report::safe;
use crate::tui::app::App;
use crate::tui::keymap::shown;
use crate::tui::theme::{Meaning, Theme};
use crate::tui::update::palette::found;
use crate::tui::wrap::{columns_of, fit};

/// Columns of the box, where there is room.
const WIDTH: u16 = 76;

/// Draws it, if one is looked for.
pub fn draw(app: &App, theme: Theme, body: Rect, frame: &mut Frame<'_>) {
    let Some(palette) = &app.palette else { return };
    let found = found(app);
    let width = WIDTH.min(body.width);
    let height = (found.len().max(1) as u16 + 3).min(body.height);
    let area = Rect { x: body.x + (body.width - width) / 2, width, height, ..body };
    let block = Block::bordered().border_style(theme.style(Meaning::Focus)).title(span(
        " Find an action ",
        Meaning::Title,
        theme,
    ));
    let inner = block.inner(area);
    frame.render_widget(Clear, area);
    frame.render_widget(block, area);
    let room = usize::from(inner.width);
    let typed = safe::line(palette.line.value());
    let mut lines = vec![Line::from(vec![
        span(" : ", Meaning::Key, theme),
        span(fit(&typed, room.saturating_sub(4)), Meaning::Text, theme),
    ])];
    if found.is_empty() {
        lines.push(Line::from(span(" nothing that can be done here has these words", Meaning::Warn, theme)));
    }
    // The marked line stays in view.
    let rows = usize::from(inner.height).saturating_sub(1).max(1);
    let first = (palette.at + 1).saturating_sub(rows);
    for (i, bound) in found.iter().enumerate().skip(first).take(rows) {
        let key = bound.keys.first().map(|key| shown(key, app.glyphs == Glyphs::Ascii)).unwrap_or_default();
        let said = fit(&format!(" {key:<6} {}", bound.line.help), room);
        let pad = " ".repeat(room.saturating_sub(columns_of(&said)));
        let meaning = if i == palette.at { Meaning::Selected } else { Meaning::Text };
        lines.push(Line::from(span(said + &pad, meaning, theme)));
    }
    frame.render_widget(Paragraph::new(lines), inner);
    if inner.width > 4 && inner.height > 0 {
        let column = (3 + palette.line.visual_cursor()).min(room.saturating_sub(1)) as u16;
        frame.set_cursor_position(Position { x: inner.x + column, y: inner.y });
    }
}
