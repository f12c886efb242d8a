//! The bottom lines: progress, notices, and the keys of the present place.

use std::collections::HashSet;

use ratatui::Frame;
use ratatui::text::Line;
use unicode_width::UnicodeWidthStr;

use super::{replay, span};
use crate::report::marks::Glyphs;
use crate::report::safe;
use crate::tui::app::{App, Corpus, Lane, Screen};
use crate::tui::keymap::shown;
use crate::tui::layout::Panes;
use crate::tui::theme::{Meaning, Theme};
use crate::tui::update::context;
use crate::tui::wrap::fit;

/// Draws both lines.
pub fn draw(app: &App, theme: Theme, panes: &Panes, frame: &mut Frame<'_>) {
    let (text, meaning) = match &app.notice {
        Some(notice) => (safe::line(notice), Meaning::Warn),
        None if app.filtered() => (filter(app, panes, frame), Meaning::Key),
        None => (jobs(app), Meaning::Muted),
    };
    let text = fit(&text, usize::from(panes.status.width).saturating_sub(1));
    frame.render_widget(span(format!(" {text}"), meaning, theme), panes.status);
    let width = usize::from(panes.footer.width);
    let line = match &app.replay {
        Some(playing) if !playing.filmed => replay::keys(playing, app, theme, width),
        _ => keys(app, theme, width),
    };
    frame.render_widget(line, panes.footer);
}

/// The words that passages must hold, and how many of every lane do.
fn filter(app: &App, panes: &Panes, frame: &mut Frame<'_>) -> String {
    let words = safe::line(app.filter.line.value());
    let before = "filter: ";
    if app.filter.typing && panes.status.height > 0 {
        let typed = app.filter.line.value().chars().take(app.filter.line.cursor()).collect::<String>();
        let column = 1 + before.len() + safe::line(&typed).width();
        let last = usize::from(panes.status.width).saturating_sub(1);
        frame.set_cursor_position((panes.status.x + column.min(last) as u16, panes.status.y));
    }
    let count = |lane: &Lane| format!("{} of {}", app.shown(lane).len(), lane.ranking.len());
    let counts: Vec<String> = app.lanes.iter().map(count).collect();
    format!("{before}{words}   shown: {}", counts.join(", "))
}

fn jobs(app: &App) -> String {
    app.jobs.iter().map(|(_, told)| told.as_str()).collect::<Vec<_>>().join(" · ")
}

fn keys(app: &App, theme: Theme, width: usize) -> Line<'static> {
    let here = context(app);
    let mut told = HashSet::new();
    let mark = if app.recording.is_some() { " ● recording  " } else { " " };
    let meaning = if app.recording.is_some() { Meaning::Warn } else { Meaning::Text };
    let mut spans = vec![span(mark, meaning, theme)];
    let said = match &app.corpus {
        Corpus::Open(opened) => opened.detector.as_deref(),
        _ => None,
    };
    // Who labels needs the keys more.
    let said = said.filter(|_| app.book.perspectives > 0 && app.screen != Screen::Annotate);
    let warning = said.map_or_else(String::new, |said| fit(&format!(" verdicts: {} ", safe::line(said)), 40));
    let mut columns = mark.width() + warning.width();
    for bound in app.keys.of_place(here).filter(|bound| !bound.line.short.is_empty()) {
        let short = bound.line.short;
        let Some(key) = bound.keys.first().filter(|_| told.insert(bound.line.action)) else { continue };
        let key = shown(key, app.glyphs == Glyphs::Ascii);
        columns += key.width() + short.width() + 3;
        if columns > width {
            break;
        }
        spans.push(span(key, Meaning::Key, theme));
        spans.push(span(format!(" {short}  "), Meaning::Muted, theme));
    }
    spans.push(span(warning, Meaning::Warn, theme));
    Line::from(spans)
}
