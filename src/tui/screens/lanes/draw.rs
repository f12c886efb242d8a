//! Draws the lanes: passages, figures and completions.

use ratatui::Frame;
use ratatui::layout::{Alignment, Rect};
use ratatui::style::Modifier;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType, Clear, Paragraph};
use unicode_width::UnicodeWidthStr;

use super::figures;
use crate::corpus::store::NONE;
use crate::engine::Ranked;
use crate::engine::recipe::Switch;
use crate::report::marks::{Mark, share};
use crate::report::safe;
use crate::tui::app::{App, Corpus, Lane, LaneState};
use crate::tui::keymap::{Action, Context};
use crate::tui::layout::{LanePanes, Panes, arrange};
use crate::tui::theme::{Meaning, Theme};
use crate::tui::widgets::header::NAME;
use crate::tui::widgets::text::{columns_of, fit, passage_span, say, span, wrap};

/// The most characters of a passage in its preview.
const PREVIEW: usize = 600;

/// The most columns of a passage's field value.
const VALUE: usize = 12;

/// Draws the lanes, and over them the completions of the question line.
pub fn draw(app: &App, theme: Theme, frame: &mut Frame<'_>) {
    let panes = arrange(frame.area(), app);
    match &app.corpus {
        Corpus::Failed(reason) => {
            let context = if app.typing { Context::Question } else { Context::Lanes };
            let key = app.key(context, Action::Quit);
            let text = format!("What was named could not be opened.\n{reason}\n\nPress {key} to leave.");
            say(&text, Meaning::Warn, theme, panes.body, frame);
        }
        Corpus::Opening => say("Opening the corpus …", Meaning::Muted, theme, panes.body, frame),
        Corpus::Open(_) => {
            tabs(app, theme, panes.tabs, frame);
            for pane in &panes.lanes {
                lane(app, theme, pane, frame);
            }
        }
    }
    completions(app, theme, &panes, frame);
}

/// The names of all lanes.
fn tabs(app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
    let titles = app.titles();
    let whole = titles.iter().map(|title| columns_of(title) + 3).sum::<usize>() <= usize::from(area.width);
    let each = (usize::from(area.width) / titles.len().max(1)).saturating_sub(3);
    let names = titles.iter().enumerate().flat_map(|(i, title)| {
        let meaning = if i == app.lane { Meaning::Selected } else { Meaning::Muted };
        let title = if whole { title.clone() } else { app.short_title(i, each) };
        [Span::raw(" "), span(format!(" {title} "), meaning, theme)]
    });
    frame.render_widget(Line::from(names.collect::<Vec<_>>()), area);
}

/// Draws one lane.
fn lane(app: &App, theme: Theme, pane: &LanePanes, frame: &mut Frame<'_>) {
    let Some(lane) = app.lanes.get(pane.lane) else { return };
    let focused = pane.lane == app.lane && !app.typing;
    let block = Block::bordered()
        .border_type(if focused { BorderType::Thick } else { BorderType::Plain })
        .border_style(theme.style(if focused { Meaning::Focus } else { Meaning::Muted }))
        .title(span(
            format!(" {} ", app.short_title(pane.lane, usize::from(pane.outer.width).saturating_sub(13))),
            Meaning::Title,
            theme,
        ))
        .title(Line::from(span(state_text(app, lane), Meaning::Muted, theme)).alignment(Alignment::Right));
    let right = linked_rank(app, lane, pane.lane, usize::from(pane.outer.width).saturating_sub(2));
    let room = usize::from(pane.outer.width).saturating_sub(columns_of(&right) + 4);
    let block = match note(lane) {
        // The tuning screen (`t`) shows the whole text.
        Some((text, meaning)) if room >= 12 => {
            block.title_bottom(span(format!(" {} ", fit(&safe::line(&text), room)), meaning, theme))
        }
        _ => block,
    };
    let block =
        block.title_bottom(Line::from(span(right, Meaning::Muted, theme)).alignment(Alignment::Right));
    frame.render_widget(block, pane.outer);
    let stale = lane.state == LaneState::Waiting;
    match &lane.state {
        LaneState::Failed(reason, waits) => {
            let meaning = if waits.is_some() { Meaning::Muted } else { Meaning::Warn };
            say(reason, meaning, theme, pane.list, frame);
        }
        LaneState::Idle => {
            let first = if pane.lane == 0 {
                "Ask a question. To be shown around: parallax demo"
            } else {
                "Ask a question."
            };
            say(first, Meaning::Muted, theme, pane.list, frame);
        }
        LaneState::Waiting if lane.ranking.is_empty() => {
            say("Searching …", Meaning::Muted, theme, pane.list, frame)
        }
        LaneState::Ready if lane.ranking.is_empty() => {
            say(
                match lane.recipe.run() {
                    Some(_) => "The run's list for this question is empty.",
                    None => "Nothing found: no word of the question stands in the corpus.",
                },
                Meaning::Muted,
                theme,
                pane.list,
                frame,
            );
        }
        _ => passages(app, theme, pane, lane, frame),
    }
    if !stale {
        figures::draw(app, theme, pane, lane, frame);
    }
    if stale && !lane.ranking.is_empty() {
        frame.buffer_mut().set_style(pane.list, ratatui::style::Style::default().add_modifier(Modifier::DIM));
    }
}

/// How long the list took, or what the lane waits for.
fn state_text(app: &App, lane: &Lane) -> String {
    match &lane.state {
        LaneState::Waiting if lane.recipe.switches.is_on(Switch::Diversify) => " judging … ".into(),
        LaneState::Waiting if lane.recipe.switches.expand.is_some() => " expanding … ".into(),
        LaneState::Waiting => " … ".into(),
        LaneState::Ready => format!(" {:.0} ms ", lane.took.as_secs_f64() * 1e3),
        LaneState::Failed(_, Some(job)) => app.job(*job).filter(|progress| progress.total > 0).map_or_else(
            || format!(" {} … ", job.name()),
            |progress| format!(" {} {} % ", job.name(), progress.done * 100 / progress.total),
        ),
        _ => String::new(),
    }
}

/// A warning about the lane's list, or else the kind of its expansion. If the expansion warns, its kind comes first, because the rest
/// may not fit.
fn note(lane: &Lane) -> Option<(String, Meaning)> {
    if lane.state != LaneState::Ready {
        return None;
    }
    let trace = &lane.ranking.trace;
    let expansion = trace.expansion();
    match (trace.notes.first(), expansion) {
        (Some(note), Some(expansion)) if expansion.notes.contains(note) => {
            // The lane's name contains the method.
            let form = expansion.form.to_string();
            let whose = form.split_once(", ").map_or(&*form, |(_, whose)| whose);
            Some((format!("{whose}: {note}"), Meaning::Warn))
        }
        (Some(note), _) => Some((note.clone(), Meaning::Warn)),
        (None, expansion) => Some((expansion?.describe(), Meaning::Muted)),
    }
}

/// The rank in this lane of the passage marked in the focused lane.
fn linked_rank(app: &App, lane: &Lane, index: usize, width: usize) -> String {
    match app.selected() {
        Some(selected) if index != app.lane && !lane.ranking.is_empty() => {
            match app.rank_in(lane, selected.at) {
                Some(rank) => format!(" marked passage: rank {rank} "),
                None => {
                    let short = format!(" not in the first {} ", lane.ranking.len());
                    let whole = format!(" marked passage:{short}");
                    if columns_of(&whole) <= width { whole } else { short }
                }
            }
        }
        _ => String::new(),
    }
}

fn passages(app: &App, theme: Theme, pane: &LanePanes, lane: &Lane, frame: &mut Frame<'_>) {
    let selected = app.selected().map(|ranked| ranked.at);
    let width = usize::from(pane.list.width);
    let places = &lane.figures.shown;
    if places.is_empty() {
        let words = safe::line(app.filter.line.value());
        say(&format!("No passage here holds `{words}`."), Meaning::Muted, theme, pane.list, frame);
    }
    for (row, i) in places.iter().copied().skip(lane.top).take(pane.shown()).enumerate() {
        let ranked = &lane.ranking[i];
        let marked = selected == Some(ranked.at) && !app.typing;
        let mine = marked && pane.lane == app.lane;
        let title_meaning = match (mine, marked) {
            (true, _) => Meaning::Selected,
            (_, true) => Meaning::Linked,
            _ if i < app.k => Meaning::Title,
            _ => Meaning::Muted,
        };
        let mut lines = vec![head(app, theme, lane, i, ranked, width, title_meaning)];
        lines.extend(preview(theme, ranked, width, usize::from(pane.rows) - 1, i >= app.k));
        let area = Rect { y: pane.list.y + row as u16 * pane.rows, height: pane.rows, ..pane.list };
        frame.render_widget(Paragraph::new(lines), area);
    }
}

/// Rank, mark, probability, title, score.
fn head(
    app: &App,
    theme: Theme,
    lane: &Lane,
    i: usize,
    ranked: &Ranked,
    width: usize,
    meaning: Meaning,
) -> Line<'static> {
    let mark = app.mark(ranked.at);
    let p = app.judgments.shown(ranked.at).map_or_else(String::new, share);
    let disputed = app.judgments.disagrees(ranked.at);
    let score = format!("{}{}", rank_move(lane, i, ranked), lane.recipe.score(ranked.score));
    let glyph = mark.text(app.glyphs);
    let rank = format!("{:>2} ", i + 1);
    let p = if app.judgments.perspectives > 0 {
        format!("{p:>3}{} ", if disputed { '!' } else { ' ' })
    } else {
        String::new()
    };
    let value = field_value(app, theme, ranked, (width / 4).clamp(4, VALUE));
    let tag = value.as_ref().map_or(0, |value| value.width() + 1);
    let fixed = rank.width() + 3 + p.width() + columns_of(&score) + 1 + tag;
    let title = if ranked.passage.title.is_empty() { &ranked.passage.id } else { &ranked.passage.title };
    let title = fit(&safe::line(title), width.saturating_sub(fixed));
    let pad = " ".repeat(width.saturating_sub(fixed + columns_of(&title)) + 1);
    let mut spans = vec![
        span(rank, Meaning::Muted, theme),
        span(format!("{glyph:<3}"), Meaning::Side(mark), theme),
        span(
            p,
            if disputed {
                Meaning::Warn
            } else {
                Meaning::Side(match mark {
                    Mark::Pending => Mark::None,
                    mark => mark,
                })
            },
            theme,
        ),
        passage_span(title, meaning, theme),
        Span::raw(pad),
    ];
    spans.extend(value.into_iter().flat_map(|value| [value, Span::raw(" ")]));
    spans.push(span(score, Meaning::Muted, theme));
    Line::from(spans)
}

/// The passage's value of the field shown on the lanes.
fn field_value(app: &App, theme: Theme, ranked: &Ranked, width: usize) -> Option<Span<'static>> {
    let field = app.biasing.category(app.biasing.on_lanes?)?;
    let place = field.place(&ranked.passage.metadata)?;
    let (value, _) = field.values.get(place)?;
    let meaning = if value == NONE { Meaning::Muted } else { Meaning::Value(place) };
    Some(span(fit(&safe::line(value), width), meaning, theme))
}

/// `↑3 `, `new `, `= `: how the rank changed since the last change to the lane.
fn rank_move(lane: &Lane, i: usize, ranked: &Ranked) -> String {
    let Some(before) = &lane.before else { return String::new() };
    match before.ranking.rank_of(ranked.at) {
        None => "new ".into(),
        Some(was) if was > i + 1 => format!("↑{} ", was - i - 1),
        Some(was) if was < i + 1 => format!("↓{} ", i + 1 - was),
        Some(_) => "= ".into(),
    }
}

fn preview(theme: Theme, ranked: &Ranked, width: usize, rows: usize, deep: bool) -> Vec<Line<'static>> {
    let end = ranked.passage.text.char_indices().nth(PREVIEW).map_or(ranked.passage.text.len(), |(i, _)| i);
    let text = safe::line(&ranked.passage.text[..end]);
    let lines = wrap(&text, width.saturating_sub(3), rows);
    let meaning = if deep { Meaning::Muted } else { Meaning::Text };
    let line = |range: std::ops::Range<usize>| {
        Line::from(vec![Span::raw("   "), passage_span(&text[range], meaning, theme)])
    };
    lines.into_iter().map(line).collect()
}

/// Draws the completions below the question line, over the panes.
fn completions(app: &App, theme: Theme, panes: &Panes, frame: &mut Frame<'_>) {
    if !app.typing || app.completions.is_empty() {
        return;
    }
    let left = if panes.question.width >= 48 { columns_of(NAME) as u16 - 1 } else { 0 };
    let area = Rect {
        x: left,
        y: panes.question.bottom(),
        width: panes.question.width.saturating_sub(left),
        height: (app.completions.len() as u16)
            .min(frame.area().height.saturating_sub(panes.question.bottom() + 1)),
    };
    let line = |(i, text): (usize, &String)| {
        let text = format!(" {} ", fit(&safe::line(text), usize::from(area.width).saturating_sub(2)));
        let pad = " ".repeat(usize::from(area.width).saturating_sub(columns_of(&text)));
        let meaning = if app.completion == Some(i) { Meaning::Selected } else { Meaning::Text };
        Line::from(span(text + &pad, meaning, theme))
    };
    frame.render_widget(Clear, area);
    frame.render_widget(
        Paragraph::new(app.completions.iter().enumerate().map(line).collect::<Vec<_>>()),
        area,
    );
}
