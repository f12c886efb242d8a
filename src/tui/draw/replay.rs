//! What is said beside a session that is played, and the keys that steer it.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::Paragraph;
use unicode_width::UnicodeWidthStr;

use super::span;
use crate::report::marks::Glyphs;
use crate::report::safe;
use crate::tui::app::App;
use crate::tui::keymap::shown;
use crate::tui::session::Replay;
use crate::tui::settled::settled;
use crate::tui::theme::{Meaning, Theme};
use crate::tui::wrap::{columns_of, wrap};

/// A column at either side of the words.
const MARGIN: u16 = 1;

/// Rows of words at most.
const MOST: usize = 3;

/// Rows that the words need: as many as the longest will, so that nothing moves when others come.
pub fn rows(replay: &Replay, width: u16) -> u16 {
    let width = usize::from(width.saturating_sub(2 * MARGIN));
    let rows = replay.captions.iter().map(|words| wrap(&safe::line(words), width, MOST).len());
    rows.max().unwrap_or(0) as u16
}

/// Draws the words.
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

/// The line of keys.
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
