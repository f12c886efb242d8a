//! The list of the lane with the cursor as it is read: every passage with its mark, the stance after it, and what it does.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Modifier;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph};

use super::super::paint::OWN;
use super::super::{paragraph, span};
use super::{mark, word};
use crate::pipeline::Strip;
use crate::report::safe;
use crate::tui::answering::Row;
use crate::tui::app::{App, LaneState};
use crate::tui::theme::{Meaning, Theme};
use crate::tui::wrap::{columns_of, fit};

/// Draws the list.
pub fn draw(app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
    let Some(lane) = app.lanes.get(app.lane) else { return };
    let (rows, strip) = (app.rows(app.lane), app.strip(app.lane));
    let dropped = rows.iter().filter(|row| row.dropped).count();
    let room = usize::from(area.width).saturating_sub(4);
    let name = app.short_title(app.lane, room);
    let mut block = Block::bordered().border_style(theme.style(Meaning::Muted)).title(span(
        format!(" {name} "),
        Meaning::Title,
        theme,
    ));
    let mut below = Vec::new();
    if let Some(strip) = &strip {
        below.push(word(strip.last()).to_owned());
        let named = strip.turns.last().and_then(|place| kept(&rows).nth(*place));
        below.extend(named.map(|row| format!("turned by {} {}", row.rank, title(app, row))));
    }
    below.extend((dropped > 0).then(|| format!("{dropped} dropped")));
    if !below.is_empty() {
        let text = fit(&below.join(" · "), room.saturating_sub(2));
        block = block.title_bottom(span(format!(" {text} "), Meaning::Title, theme));
    }
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let width = usize::from(inner.width);
    let lines = match &lane.state {
        LaneState::Failed(reason, _) => paragraph(reason, " ", width, Meaning::Warn, theme),
        _ if rows.is_empty() => vec![Line::from(span(" …", Meaning::Muted, theme))],
        _ => {
            let top = (app.answering.at + 1).saturating_sub(usize::from(inner.height).max(1));
            let mut place = 0;
            let mut lines = Vec::new();
            for (i, row) in rows.iter().enumerate() {
                let own = (!row.dropped).then_some(place);
                place += usize::from(!row.dropped);
                if i >= top {
                    lines.push(line(app, theme, *row, own, i == app.answering.at, strip.as_ref(), width));
                }
            }
            lines
        }
    };
    frame.render_widget(Paragraph::new(lines), inner);
}

fn kept(rows: &[Row]) -> impl Iterator<Item = &Row> {
    rows.iter().filter(|row| !row.dropped)
}

fn title(app: &App, row: &Row) -> String {
    let ranked = app.lanes.get(app.lane).and_then(|lane| lane.ranking.get(row.rank - 1));
    let name = ranked.map(|ranked| match ranked.passage.title.as_str() {
        "" => &ranked.passage.id,
        _ => &ranked.passage.title,
    });
    safe::line(name.map_or("", |name| name))
}

/// ` 3 ▲ What a licence buys   was 5  ◐ turned it`
fn line(
    app: &App,
    theme: Theme,
    row: Row,
    place: Option<usize>,
    marked: bool,
    strip: Option<&Strip>,
    width: usize,
) -> Line<'static> {
    let mut flags = Vec::new();
    if let (Some(strip), Some(place)) = (strip, place) {
        flags.extend(strip.turns.contains(&place).then_some("turned it"));
        flags.extend(strip.alone.contains(&place).then_some("decides"));
        let removed = strip.removed.as_ref().filter(|removed| removed.len() > 1);
        flags.extend(removed.filter(|removed| removed.contains(&place)).map(|_| "of those to remove"));
    }
    if let Some(place) = place {
        flags.extend((app.hangs_on(place) == Some(true)).then_some("answer hangs on it"));
    }
    let narrow = width < 60;
    let flags = if narrow { flags.first().copied().unwrap_or("").to_owned() } else { flags.join(", ") };
    let was = match place {
        None => "dropped".to_owned(),
        Some(place) if place + 1 != row.rank => format!("was {}", row.rank),
        Some(_) => String::new(),
    };
    let own = app.mark(row.at);
    let stance = place.and_then(|place| strip?.stances.get(place).copied());
    let glyph = stance.map_or(' ', |stance| mark(stance).glyph(app.glyphs));
    let room_of_flags = match width {
        ..60 => 9,
        60..100 => 19,
        _ => 39,
    };
    let flags = fit(&flags, room_of_flags);
    let right = if narrow { 7 + 3 } else { 8 + 3 } + room_of_flags + 1;
    let room = width.saturating_sub(6 + right);
    let name = fit(&title(app, &row), room);
    let pad = " ".repeat(room.saturating_sub(columns_of(&name)));
    let meaning = if marked {
        Meaning::Selected
    } else if place.is_none() {
        Meaning::Muted
    } else {
        Meaning::Text
    };
    let name = Span::styled(
        name,
        match place {
            Some(_) => theme.style(meaning).add_modifier(OWN),
            None => theme.style(meaning).add_modifier(OWN | Modifier::CROSSED_OUT),
        },
    );
    let number = place.map_or_else(|| "–".into(), |place| (place + 1).to_string());
    let side = if place.is_some() { Meaning::Side(own) } else { Meaning::Muted };
    let wide = if narrow { 7 } else { 8 };
    Line::from(vec![
        span(format!("{number:>3} "), Meaning::Muted, theme),
        span(format!("{:<2}", own.text(app.glyphs)), side, theme),
        name,
        Span::raw(pad),
        span(format!("{was:>wide$} "), Meaning::Muted, theme),
        span(glyph.to_string(), stance.map_or(Meaning::Muted, |stance| Meaning::Side(mark(stance))), theme),
        Span::raw(" "),
        span(flags, Meaning::Title, theme),
    ])
}
