//! What is read from the lanes' lists: the stance of every lane over k, the list of the lane with the cursor, and a reader's answers.

mod answers;
mod list;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph};

use super::span;
use crate::pipeline::Strip;
use crate::read::stance::Stance;
use crate::report::marks::Mark;
use crate::tui::app::{App, Corpus, LaneState};
use crate::tui::theme::{Meaning, Theme};
use crate::tui::wrap::{columns_of, fit};

/// Columns of a lane's name.
const NAME: usize = 24;

/// Draws the screen.
pub fn draw(app: &App, theme: Theme, body: Rect, frame: &mut Frame<'_>) {
    // On a low screen there is one line for the lane with the cursor.
    let low = body.height < 16;
    let rows = if low { 1.min(body.height) } else { (app.lanes.len() as u16 + 2).min(body.height / 3) };
    let top = Rect { height: rows, ..body };
    let rest = Rect { y: body.y + rows, height: body.height - rows, ..body };
    lanes(app, theme, top, low, frame);
    let reads = matches!(&app.corpus, Corpus::Open(opened) if opened.reader.is_some());
    let (own, said) = match (reads, rest.width >= 110) {
        (false, _) => (rest, Rect::ZERO),
        (true, true) => {
            let left = rest.width * 11 / 20;
            (Rect { width: left, ..rest }, Rect { x: rest.x + left, width: rest.width - left, ..rest })
        }
        (true, false) => {
            let below = rest.height / 2;
            let above = rest.height - below;
            (Rect { height: above, ..rest }, Rect { y: rest.y + above, height: below, ..rest })
        }
    };
    list::draw(app, theme, own, frame);
    if !said.is_empty() {
        answers::draw(app, theme, said, frame);
    }
}

/// The mark of a stance.
fn mark(stance: Stance) -> Mark {
    match stance {
        Stance::Supports => Mark::Support,
        Stance::Opposes => Mark::Oppose,
        Stance::Balanced => Mark::Several,
        Stance::Silent => Mark::Pending,
    }
}

/// The word for a stance.
fn word(stance: Stance) -> &'static str {
    match stance {
        Stance::Supports => "supports",
        Stance::Opposes => "opposes",
        Stance::Balanced => "balanced",
        Stance::Silent => "silent",
    }
}

/// What turned a list and what would: `supports · turned by 4 · without 2 of 5 another: 1 3`, in ranks of the lane.
fn told(app: &App, lane: usize, strip: &Strip) -> String {
    let kept: Vec<usize> = app.rows(lane).iter().filter(|row| !row.dropped).map(|row| row.rank).collect();
    let ranks = |places: &[usize]| {
        let ranks = places.iter().filter_map(|place| kept.get(*place)).map(ToString::to_string);
        ranks.collect::<Vec<_>>().join(" ")
    };
    let mut told = vec![word(strip.last()).to_owned()];
    if !strip.turns.is_empty() {
        told.push(format!("turned by {}", ranks(&strip.turns)));
    }
    told.push(match &strip.removed {
        Some(removed) => format!("turns without {} of {}: {}", removed.len(), kept.len(), ranks(removed)),
        None => "no removal turns it".into(),
    });
    if strip.judged < kept.len() {
        told.push(format!("{} of {} judged", strip.judged, kept.len()));
    }
    told.join(" · ")
}

/// A row a lane: its stance after each passage, what turned it, and what would.
fn lanes(app: &App, theme: Theme, area: Rect, low: bool, frame: &mut Frame<'_>) {
    let inner = if low {
        area
    } else {
        let glyph = |stance| mark(stance).glyph(app.glyphs);
        let title = format!(
            " stance after each of the first {}: {} supports {} opposes {} balanced {} silent ",
            app.k,
            glyph(Stance::Supports),
            glyph(Stance::Opposes),
            glyph(Stance::Balanced),
            glyph(Stance::Silent)
        );
        let block = Block::bordered().border_style(theme.style(Meaning::Muted)).title(span(
            title,
            Meaning::Title,
            theme,
        ));
        let inner = block.inner(area);
        frame.render_widget(block, area);
        inner
    };
    let width = usize::from(inner.width);
    let named = if width < 60 { NAME / 2 } else { NAME };
    let strip_width = app.k.min(width.saturating_sub(named + 2) / 2);
    let fits = usize::from(inner.height).max(1);
    let first = (app.lane + 1).saturating_sub(fits);
    let line = |lane: usize| {
        let meaning = if lane == app.lane { Meaning::Selected } else { Meaning::Text };
        let name = app.short_title(lane, named.saturating_sub(2));
        let pad = " ".repeat(named.saturating_sub(columns_of(&name) + 1));
        let mut spans = vec![Span::raw(" "), span(name, meaning, theme), Span::raw(pad)];
        let strip = app.strip(lane);
        match (&app.lanes[lane].state, &strip) {
            (LaneState::Failed(..), _) => spans.push(span("no list", Meaning::Warn, theme)),
            (_, None) => spans.push(span("no two sides, so no stance", Meaning::Muted, theme)),
            (_, Some(strip)) => {
                let shown = strip.stances.iter().take(strip_width);
                spans.extend(shown.map(|stance| {
                    let mark = mark(*stance);
                    span(mark.glyph(app.glyphs).to_string(), Meaning::Side(mark), theme)
                }));
                let pad = (strip_width + 2).saturating_sub(strip.stances.len().min(strip_width));
                spans.push(Span::raw(" ".repeat(pad)));
                let room = width.saturating_sub(named + strip_width + 2);
                spans.push(span(fit(&told(app, lane, strip), room), Meaning::Text, theme));
            }
        }
        Line::from(spans)
    };
    let lines: Vec<Line<'static>> = (first..app.lanes.len().min(first + fits)).map(line).collect();
    frame.render_widget(Paragraph::new(lines), inner);
}
