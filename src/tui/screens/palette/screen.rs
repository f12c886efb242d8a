//! Matches actions with the words that were typed, and draws the box that lists them.

use crossterm::event::{Event, KeyEvent};
use nucleo_matcher::pattern::{AtomKind, CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};
use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Paragraph};
use tui_input::backend::crossterm::EventHandler;

use crate::report::marks::Glyphs;
use crate::report::safe;
use crate::tui::app::App;
use crate::tui::keymap::{Action, Context, shown};
use crate::tui::theme::{Meaning, Theme};
use crate::tui::widgets::text::{columns_of, fit, span};

/// Finds the actions that can be performed in `below` and match the words.
pub fn refresh(app: &mut App, below: Context) {
    let Some(palette) = &mut app.palette else { return };
    let all = app.keys.lines().iter().enumerate();
    let here = all.filter(|(_, bound)| {
        let line = bound.line;
        line.action != Action::Palette && [below, Context::Anywhere].contains(&line.context)
    });
    let text = here.map(|(i, bound)| {
        let line = bound.line;
        (i, format!("{} {} {}", bound.keys.join(" "), line.short, line.help))
    });
    palette.found = matches(palette.line.value(), text);
    palette.at = palette.at.min(palette.found.len().saturating_sub(1));
}

/// Edits the words.
pub fn edit(app: &mut App, key: KeyEvent) {
    if let Some(palette) = &mut app.palette {
        palette.line.handle_event(&Event::Key(key));
        palette.at = 0;
    }
}

/// Moves the mark or closes the palette. Returns the action that was chosen, if any.
pub fn act(app: &mut App, action: Action) -> Option<Action> {
    let palette = app.palette.as_mut()?;
    match action {
        Action::Down => palette.at = (palette.at + 1).min(palette.found.len().saturating_sub(1)),
        Action::Up => palette.at = palette.at.saturating_sub(1),
        Action::Choose => {
            let chosen = *palette.found.get(palette.at)?;
            app.palette = None;
            return Some(app.keys.lines().get(chosen)?.line.action);
        }
        _ => app.palette = None,
    }
    None
}

/// Columns of the box, if there is room.
const WIDTH: u16 = 76;

/// Draws the palette if it is open.
pub fn draw(app: &App, theme: Theme, body: Rect, frame: &mut Frame<'_>) {
    let Some(palette) = &app.palette else { return };
    let width = WIDTH.min(body.width);
    let height = (palette.found.len().max(1) as u16 + 3).min(body.height);
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
    if palette.found.is_empty() {
        lines.push(Line::from(span(" nothing that can be done here has these words", Meaning::Warn, theme)));
    }
    // The marked line is always visible.
    let rows = usize::from(inner.height).saturating_sub(1).max(1);
    let first = (palette.at + 1).saturating_sub(rows);
    for (i, line) in palette.found.iter().enumerate().skip(first).take(rows) {
        let Some(bound) = app.keys.lines().get(*line) else { continue };
        let key = bound.keys.first().map(|key| shown(key, app.glyphs == Glyphs::Ascii)).unwrap_or_default();
        let text = fit(&format!(" {key:<6} {}", bound.line.help), room);
        let pad = " ".repeat(room.saturating_sub(columns_of(&text)));
        let meaning = if i == palette.at { Meaning::Selected } else { Meaning::Text };
        lines.push(Line::from(span(text + &pad, meaning, theme)));
    }
    frame.render_widget(Paragraph::new(lines), inner);
    if inner.width > 4 && inner.height > 0 {
        let column = (3 + palette.line.visual_cursor()).min(room.saturating_sub(1)) as u16;
        frame.set_cursor_position(Position { x: inner.x + column, y: inner.y });
    }
}

/// Returns the items whose text matches every word, best first; ties keep their order. Matches that are less than half as good as the
/// best are left out, because in a long text almost any word matches somewhere.
pub fn matches<T>(typed: &str, items: impl IntoIterator<Item = (T, String)>) -> Vec<T> {
    let pattern = Pattern::new(typed, CaseMatching::Ignore, Normalization::Smart, AtomKind::Fuzzy);
    let mut matcher = Matcher::new(Config::DEFAULT);
    let mut buffer = Vec::new();
    let scored = items.into_iter().filter_map(|(item, text)| {
        let score = pattern.score(Utf32Str::new(&text, &mut buffer), &mut matcher)?;
        Some((item, score))
    });
    let mut scored: Vec<(T, u32)> = scored.collect();
    scored.sort_by_key(|(_, score)| std::cmp::Reverse(*score));
    let least = scored.first().map_or(0, |(_, best)| best.div_ceil(2));
    scored.into_iter().take_while(|(_, score)| *score >= least).map(|(item, _)| item).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found<'a>(typed: &str, lines: &[&'a str]) -> Vec<&'a str> {
        matches(typed, lines.iter().map(|line| (*line, (*line).to_owned())))
    }

    #[test]
    fn every_word_must_match_in_any_order_and_case() {
        let lines = ["Should zoos be banned?", "Is nuclear power safe?"];
        assert_eq!(found("BANNED zoo", &lines), ["Should zoos be banned?"]);
        assert_eq!(found("zoo nuclear", &lines), Vec::<&str>::new());
    }

    #[test]
    fn whole_words_come_before_scattered_letters_and_ties_keep_their_order() {
        assert_eq!(
            found("lane", &["drop the lane", "a plain note", "move the lane"])[..2],
            ["drop the lane", "move the lane"]
        );
        assert_eq!(found("", &["b", "a"]), ["b", "a"]);
    }

    #[test]
    fn a_letter_may_be_missing() {
        assert_eq!(found("expnd", &["expand the query", "project the query"]), ["expand the query"]);
    }
}
