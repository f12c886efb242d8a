//! The lines at the bottom: progress, notices, and the keys of the present context.

use std::collections::HashSet;
use std::ops::Range;

use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::text::Line;
use ratatui::widgets::Paragraph;
use unicode_width::UnicodeWidthStr;

use crate::detect::{LabelSource, NO_SIDE};
use crate::engine::recipe::Switch;
use crate::question::Question;
use crate::report::marks::Glyphs;
use crate::report::safe;
use crate::tui::app::{App, Corpus, Lane};
use crate::tui::keymap::{Action, Binding, Screen, shown};
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

/// The part of the line before the keys.
fn mark(app: &App) -> &'static str {
    if app.recording.is_some() { " ● recording  " } else { " " }
}

/// A key of the line: its action, its name and its word.
struct Shown {
    action: Action,
    key: String,
    word: &'static str,
}

/// The statements that label keys are about: of the passage being labelled, or of the question on the lanes.
fn labelled(app: &App) -> &Question {
    let own = app.labelling.question().filter(|_| app.screen == Screen::LABELLING);
    own.unwrap_or(&app.question)
}

/// Whether an action does something for the present question.
fn applies(app: &App, action: Action) -> bool {
    let two_sided = |question: &Question| question.supports.is_some() && question.perspectives.len() == 2;
    let has_set = || matches!(&app.corpus, Corpus::Open(opened) if !opened.questions.is_empty());
    match action {
        Action::LabelSupport | Action::LabelOppose | Action::LabelBoth => two_sided(labelled(app)),
        Action::Sycophancy => two_sided(&app.question),
        Action::Toggle(Switch::Diversify) => !app.question.perspectives.is_empty(),
        Action::Compare => has_set(),
        _ => true,
    }
}

/// The word of a line of the table. Number keys that label have one only if there are more than two statements.
fn word(app: &App, line: &Binding) -> &'static str {
    match line.action {
        Action::ToggleLabel(_) if labelled(app).perspectives.len() > 2 => "statement",
        Action::MakeCorpus if app.far_off.is_some() => "make a corpus",
        Action::ApplyLabel if labelled(app).perspectives.len() > 2 => "done",
        _ => line.short,
    }
}

/// The keys of the present context that do something and fit, and the caution if there is one.
fn fitting(app: &App, width: usize) -> (Vec<Shown>, String) {
    let mark = mark(app);
    let mut listed = HashSet::new();
    let keys = app.keys.of_context(context(app)).filter(|bound| applies(app, bound.line.action));
    let keys = keys.filter_map(|bound| {
        let word = Some(word(app, bound.line)).filter(|word| !word.is_empty())?;
        let first = bound.keys.first().filter(|_| listed.insert(bound.line.action))?;
        let ascii = app.glyphs == Glyphs::Ascii;
        let key = match (bound.line.action, bound.keys.last()) {
            (Action::ToggleLabel(_), Some(last)) => format!("{}-{}", shown(first, ascii), shown(last, ascii)),
            _ => shown(first, ascii),
        };
        let columns = key.width() + word.width() + 3;
        Some((Shown { action: bound.line.action, key, word }, columns))
    });
    let keys: Vec<_> = keys.collect();
    let forms = caution(app);
    // The caution never pushes out the first key or the one for help.
    let help = keys.iter().position(|(key, _)| key.action == Action::Help).filter(|_| !forms.is_empty());
    let columns_at =
        |place: Option<usize>| place.and_then(|i| keys.get(i)).map_or(0, |(_, columns)| *columns);
    let reserved = columns_at(Some(0)) + columns_at(help.filter(|place| *place > 0));
    let room = width.saturating_sub(mark.width() + reserved);
    let warning = forms.iter().find(|form| form.width() <= room).cloned();
    let warning = warning.unwrap_or_else(|| forms.last().map_or_else(String::new, |form| fit(form, room)));
    let mut columns = mark.width() + warning.width() + columns_at(help);
    let mut full = false;
    let fits = |(place, (key, wide)): (usize, (Shown, usize))| {
        if help != Some(place) {
            full |= columns + wide > width;
            if full {
                return None;
            }
            columns += wide;
        }
        Some(key)
    };
    (keys.into_iter().enumerate().filter_map(fits).collect(), warning)
}

/// The keys of the present context, and the caution if there is one.
fn keys(app: &App, theme: Theme, width: usize) -> Line<'static> {
    let meaning = if app.recording.is_some() { Meaning::Warn } else { Meaning::Text };
    let (keys, warning) = fitting(app, width);
    let mut spans = vec![span(mark(app), meaning, theme)];
    for Shown { key, word, .. } in keys {
        spans.push(span(key, Meaning::Key, theme));
        spans.push(span(format!(" {word}  "), Meaning::Muted, theme));
    }
    spans.push(span(warning, Meaning::Warn, theme));
    Line::from(spans)
}

/// The action of the key at a position of the line.
pub fn target(app: &App, panes: &Panes, at: Position) -> Option<Action> {
    if !panes.footer.contains(at) || app.replay.is_some() {
        return None;
    }
    let column = usize::from(at.x - panes.footer.x);
    let mut from = mark(app).width();
    let (keys, _) = fitting(app, usize::from(panes.footer.width));
    keys.into_iter().find_map(|Shown { action, key, word }| {
        let part = from..from + key.width() + word.width() + 1;
        from = part.end + 2;
        // A range of keys has no one action.
        part.contains(&column).then_some(action).filter(|action| !matches!(action, Action::ToggleLabel(_)))
    })
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
