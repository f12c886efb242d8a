//! The lines at the bottom: progress, notices, and the keys of the present context.

use std::collections::HashSet;
use std::ops::Range;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::Paragraph;
use unicode_width::UnicodeWidthStr;

use crate::detect::{LabelSource, NO_SIDE};
use crate::engine::recipe::Switch;
use crate::report::marks::Glyphs;
use crate::report::safe;
use crate::tui::app::{App, Corpus, Lane};
use crate::tui::keymap::{Action, Screen, shown};
use crate::tui::layout::{Panes, progress};
use crate::tui::pages::context;
use crate::tui::session::record;
use crate::tui::theme::{Meaning, Theme};
use crate::tui::widgets::text::{fit, span, wrap};

/// Draws the lines.
pub fn draw(app: &App, theme: Theme, panes: &Panes, frame: &mut Frame<'_>) {
    let (text, meaning) = match &app.notice {
        Some(notice) => (safe::line(notice), Meaning::Warn),
        None if app.filtered() => (filter(app, panes, frame), Meaning::Key),
        None => (progress(app), Meaning::Muted),
    };
    status(&text, meaning, theme, panes.status, frame);
    let width = usize::from(panes.footer.width);
    let line = match &app.replay {
        Some(playing) if !playing.filmed => record::keys(playing, app, theme, width),
        _ => keys(app, theme, width),
    };
    frame.render_widget(line, panes.footer);
}

/// Draws the text in the rows it has. If they are too few, the last one ends in `…`.
fn status(text: &str, meaning: Meaning, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
    let (width, height) = (usize::from(area.width).saturating_sub(1), usize::from(area.height));
    let rows = wrap(text, width, height);
    let line = |(i, row): (usize, Range<usize>)| {
        let text = if i + 1 == height { fit(&text[row.start..], width) } else { text[row].to_owned() };
        Line::from(span(format!(" {text}"), meaning, theme))
    };
    frame.render_widget(Paragraph::new(rows.into_iter().enumerate().map(line).collect::<Vec<_>>()), area);
}

/// The filter's words, and the number of passages of each lane that pass.
fn filter(app: &App, panes: &Panes, frame: &mut Frame<'_>) -> String {
    let words = safe::line(app.filter.line.value());
    let before = "filter: ";
    if app.filter.typing && panes.status.height > 0 {
        let typed = app.filter.line.value().chars().take(app.filter.line.cursor()).collect::<String>();
        let column = 1 + before.len() + safe::line(&typed).width();
        let last = usize::from(panes.status.width).saturating_sub(1);
        frame.set_cursor_position((panes.status.x + column.min(last) as u16, panes.status.y));
    }
    let count = |lane: &Lane| format!("{} of {}", lane.figures.shown.len(), lane.ranking.len());
    let counts: Vec<String> = app.lanes.iter().map(count).collect();
    format!("{before}{words}   shown: {}", counts.join(", "))
}

/// The keys of the present context, and the caution if there is one.
fn keys(app: &App, theme: Theme, width: usize) -> Line<'static> {
    let here = context(app);
    let mut listed = HashSet::new();
    let mark = if app.recording.is_some() { " ● recording  " } else { " " };
    let meaning = if app.recording.is_some() { Meaning::Warn } else { Meaning::Text };
    let mut spans = vec![span(mark, meaning, theme)];
    let keys = app.keys.of_place(here).filter(|bound| !bound.line.short.is_empty());
    let keys = keys.filter_map(|bound| {
        let key = bound.keys.first().filter(|_| listed.insert(bound.line.action))?;
        let key = shown(key, app.glyphs == Glyphs::Ascii);
        let columns = key.width() + bound.line.short.width() + 3;
        Some((bound.line, key, columns))
    });
    let keys: Vec<_> = keys.collect();
    let forms = caution(app);
    // The caution never pushes out the first key or the one for help.
    let help = keys.iter().position(|(line, ..)| line.action == Action::Help).filter(|_| !forms.is_empty());
    let columns_at =
        |place: Option<usize>| place.and_then(|i| keys.get(i)).map_or(0, |(.., columns)| *columns);
    let reserved = columns_at(Some(0)) + columns_at(help.filter(|place| *place > 0));
    let room = width.saturating_sub(mark.width() + reserved);
    let warning = forms.iter().find(|form| form.width() <= room).cloned();
    let warning = warning.unwrap_or_else(|| forms.last().map_or_else(String::new, |form| fit(form, room)));
    let mut columns = mark.width() + warning.width() + columns_at(help);
    let mut full = false;
    for (place, (line, key, wide)) in keys.iter().enumerate() {
        if help != Some(place) {
            full |= columns + wide > width;
            if full {
                continue;
            }
            columns += wide;
        }
        spans.push(span(key.clone(), Meaning::Key, theme));
        spans.push(span(format!(" {}  ", line.short), Meaning::Muted, theme));
    }
    spans.push(span(warning, Meaning::Warn, theme));
    Line::from(spans)
}

/// The caution about the model's verdicts if they count, longest form first. If there are gold labels, it names the key that uses them.
fn caution(app: &App) -> Vec<String> {
    let Corpus::Open(opened) = &app.corpus else { return Vec::new() };
    // Diversifiers use the verdicts whichever labels count. While labelling, the keys matter more.
    let chosen_by = |lane: &Lane| lane.recipe.switches.is_on(Switch::Diversify);
    let count = match app.judgments.source {
        source if source.is_labels() => false,
        // Labels come first; the model's verdicts count only without them.
        LabelSource::Auto if opened.labelled || opened.by_hand => app.judged_by.by_model() > 0,
        _ => true,
    };
    let count = count || app.lanes.iter().any(chosen_by);
    let shown = count && app.judgments.perspectives > 0 && app.screen != Screen::LABELLING;
    let Some(tested) = opened.detector.as_deref().filter(|_| shown).map(safe::line) else {
        return Vec::new();
    };
    let key = app.key(context(app), Action::NextLabelSource);
    let silent = app.judged_by.by_model() > 0 && app.judgments.shows_no_side();
    let silent = silent.then(|| [format!(" {NO_SIDE} "), " this detector shows no side ".to_owned()]);
    let gold = app.judgments.source == LabelSource::Model && opened.labelled && !key.is_empty();
    let long = gold.then(|| format!(" verdicts: {}, {key}: gold ", fit(&tested, 28)));
    let short = [fit(&format!(" verdicts: {tested} "), 40), format!(" {tested} ")];
    silent.into_iter().flatten().chain(long).chain(short).collect()
}
