//! One lane: its passages and its figures.

use ratatui::Frame;
use ratatui::layout::{Alignment, Rect};
use ratatui::style::Modifier;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType, Paragraph};
use unicode_width::UnicodeWidthStr;

use super::{figures, of_passage, say, span};
use crate::corpus::fields::NONE;
use crate::pipeline::Ranked;
use crate::pipeline::recipe::Switch;
use crate::report::marks::{Mark, share};
use crate::report::safe;
use crate::tui::app::{App, Lane, LaneState};
use crate::tui::layout::LanePanes;
use crate::tui::theme::{Meaning, Theme};
use crate::tui::wrap::{columns_of, fit, wrap};

/// Characters of a passage that are looked at for its lines in the list.
const PREVIEW: usize = 600;

/// Columns of a passage's value at most, where a field was chosen to be shown.
const VALUE: usize = 12;

/// The names of all lanes.
pub fn tabs(app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
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
pub fn draw(app: &App, theme: Theme, pane: &LanePanes, frame: &mut Frame<'_>) {
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
        .title(Line::from(span(standing(app, lane), Meaning::Muted, theme)).alignment(Alignment::Right));
    let right = linked_rank(app, lane, pane.lane, usize::from(pane.outer.width).saturating_sub(2));
    let room = usize::from(pane.outer.width).saturating_sub(columns_of(&right) + 4);
    let block = match said(lane) {
        // The whole of it stands in `t`.
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

fn standing(app: &App, lane: &Lane) -> String {
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

/// A warning about the lane's list, else whose words its query was expanded with. Where an expansion warns, what ran stands first:
/// the rest may not fit.
fn said(lane: &Lane) -> Option<(String, Meaning)> {
    if lane.state != LaneState::Ready {
        return None;
    }
    let trace = &lane.ranking.trace;
    let expansion = trace.expansion();
    match (trace.notes.first(), expansion) {
        (Some(note), Some(expansion)) if expansion.notes.contains(note) => {
            // The lane's name says which method.
            let form = expansion.form.to_string();
            let whose = form.split_once(", ").map_or(&*form, |(_, whose)| whose);
            Some((format!("{whose}: {note}"), Meaning::Warn))
        }
        (Some(note), _) => Some((note.clone(), Meaning::Warn)),
        (None, expansion) => Some((expansion?.told(), Meaning::Muted)),
    }
}

/// Where the marked passage of the focused lane stands in this one.
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
    let places = app.shown(lane);
    if places.is_empty() {
        let words = safe::line(app.filter.line.value());
        say(&format!("No passage here holds `{words}`."), Meaning::Muted, theme, pane.list, frame);
    }
    for (row, i) in places.into_iter().skip(lane.top).take(pane.shown()).enumerate() {
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
    let p = (0..app.book.perspectives).filter_map(|i| app.book.verdict(ranked.at, i)?.p).reduce(f32::max);
    let p = p.map_or_else(String::new, |p| share(f64::from(p)));
    // Where no label counts, as of those by hand on a passage without, nothing disagrees with it.
    let counts = |i: &usize| app.book.verdict(ranked.at, *i).is_some();
    let disputed = (0..app.book.perspectives)
        .filter(counts)
        .any(|i| app.book.known(ranked.at, i).is_some_and(|known| known.disagrees(app.book.threshold)));
    let score = format!("{}{}", moved(lane, i, ranked), lane.recipe.score(ranked.score));
    let glyph = mark.text(app.glyphs);
    let rank = format!("{:>2} ", i + 1);
    let p = if app.book.perspectives > 0 {
        format!("{p:>3}{} ", if disputed { '!' } else { ' ' })
    } else {
        String::new()
    };
    let said = value(app, theme, ranked, (width / 4).clamp(4, VALUE));
    let tag = said.as_ref().map_or(0, |said| said.width() + 1);
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
        of_passage(title, meaning, theme),
        Span::raw(pad),
    ];
    spans.extend(said.into_iter().flat_map(|said| [said, Span::raw(" ")]));
    spans.push(span(score, Meaning::Muted, theme));
    Line::from(spans)
}

/// The passage's value of the field that was chosen to stand on the lanes.
fn value(app: &App, theme: Theme, ranked: &Ranked, width: usize) -> Option<Span<'static>> {
    let field = app.biasing.category(app.biasing.on_lanes?)?;
    let place = field.place(&ranked.passage.metadata)?;
    let (value, _) = field.values.get(place)?;
    let meaning = if value == NONE { Meaning::Muted } else { Meaning::Value(place) };
    Some(span(fit(&safe::line(value), width), meaning, theme))
}

/// `↑3 `, `new `, `= `: where the passage stood before the last change to the lane.
fn moved(lane: &Lane, i: usize, ranked: &Ranked) -> String {
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
        Line::from(vec![Span::raw("   "), of_passage(&text[range], meaning, theme)])
    };
    lines.into_iter().map(line).collect()
}
