//! Draws every lane's stance over k, the list of the lane under the cursor, and the reader's answer at every k: right or wrong if the
//! question has gold answers.

use ratatui::Frame;
use ratatui::layout::{Alignment, Rect};
use ratatui::style::Modifier;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph};

use super::{AnswersShown, ReadLane, Row};
use crate::engine::StanceTimeline;
use crate::read::Effect;
use crate::read::pattern::Stance;
use crate::report::marks::{Glyphs, Mark};
use crate::report::safe;
use crate::tui::app::{App, Corpus, LaneState};
use crate::tui::keymap::{Action, Context};
use crate::tui::theme::{Meaning, Theme};
use crate::tui::widgets::text::{OWN, columns_of, fit, paragraph, passage_span, span, wrap};

/// Columns of a lane's name.
const NAME: usize = 24;

/// Draws the screen.
pub fn draw(app: &App, theme: Theme, body: Rect, frame: &mut Frame<'_>) {
    // A low screen has one line, for the lane under the cursor.
    let low = body.height < 16;
    let rows = if low { 1.min(body.height) } else { (app.lanes.len() as u16 + 2).min(body.height / 3) };
    let top = Rect { height: rows, ..body };
    let rest = Rect { y: body.y + rows, height: body.height - rows, ..body };
    draw_lanes(app, theme, top, low, frame);
    let reads = matches!(&app.corpus, Corpus::Open(opened) if opened.reader.is_some());
    let (left, right) = match (reads, rest.width >= 110) {
        (false, _) => (rest, Rect::ZERO),
        (true, true) => {
            let width = rest.width * 11 / 20;
            (Rect { width, ..rest }, Rect { x: rest.x + width, width: rest.width - width, ..rest })
        }
        (true, false) => {
            let below = rest.height / 2;
            let above = rest.height - below;
            (Rect { height: above, ..rest }, Rect { y: rest.y + above, height: below, ..rest })
        }
    };
    draw_list(app, theme, left, frame);
    if !right.is_empty() {
        draw_answers(app, theme, right, frame);
    }
}

/// The mark of a stance.
fn stance_mark(stance: Stance) -> Mark {
    match stance {
        Stance::Supports => Mark::Support,
        Stance::Opposes => Mark::Oppose,
        Stance::Balanced => Mark::Several,
        Stance::Silent => Mark::Pending,
    }
}

/// The word for a stance.
fn stance_word(stance: Stance) -> &'static str {
    match stance {
        Stance::Supports => "supports",
        Stance::Opposes => "opposes",
        Stance::Balanced => "balanced",
        Stance::Silent => "silent",
    }
}

/// The passages that changed a list's stance, and those whose removal would, by rank: `supports · turned by 4 · turns without 2 of 5: 1 3`.
fn turns_text(lane: &ReadLane, timeline: &StanceTimeline) -> String {
    let kept: Vec<usize> = remaining(&lane.rows).map(|row| row.rank).collect();
    let ranks = |places: &[usize]| {
        let ranks = places.iter().filter_map(|place| kept.get(*place)).map(ToString::to_string);
        ranks.collect::<Vec<_>>().join(" ")
    };
    let mut parts = vec![stance_word(timeline.last()).to_owned()];
    if !timeline.turns.is_empty() {
        parts.push(format!("turned by {}", ranks(&timeline.turns)));
    }
    parts.push(match &timeline.removed {
        Some(removed) => format!("changes without {} of {}: {}", removed.len(), kept.len(), ranks(removed)),
        None => "no removal changes it".into(),
    });
    if timeline.judged < kept.len() {
        parts.push(format!("{} of {} judged", timeline.judged, kept.len()));
    }
    parts.join(" · ")
}

/// Draws one row per lane: its stance after each passage, and the passages that changed it or would.
fn draw_lanes(app: &App, theme: Theme, area: Rect, low: bool, frame: &mut Frame<'_>) {
    let inner = if low {
        area
    } else {
        let glyph = |stance| stance_mark(stance).glyph(app.glyphs);
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
        let read = app.answering.lists.get(lane);
        let timeline = read.and_then(|read| Some((read, read.timeline.as_ref()?)));
        match (&app.lanes[lane].state, timeline) {
            (LaneState::Failed(..), _) => spans.push(span("no list", Meaning::Warn, theme)),
            (_, None) => spans.push(span("no two sides, so no stance", Meaning::Muted, theme)),
            (_, Some((read, timeline))) => {
                let shown = timeline.stances.iter().take(strip_width);
                spans.extend(shown.map(|stance| {
                    let mark = stance_mark(*stance);
                    span(mark.glyph(app.glyphs).to_string(), Meaning::Side(mark), theme)
                }));
                let pad = (strip_width + 2).saturating_sub(timeline.stances.len().min(strip_width));
                spans.push(Span::raw(" ".repeat(pad)));
                let room = width.saturating_sub(named + strip_width + 2);
                spans.push(span(fit(&turns_text(read, timeline), room), Meaning::Text, theme));
            }
        }
        Line::from(spans)
    };
    let lines: Vec<Line<'static>> = (first..app.lanes.len().min(first + fits)).map(line).collect();
    frame.render_widget(Paragraph::new(lines), inner);
}

/// Draws the list of the lane under the cursor.
fn draw_list(app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
    let Some(lane) = app.lanes.get(app.lane) else { return };
    let Some(ReadLane { rows, timeline, .. }) = app.answering.lists.get(app.lane) else { return };
    let dropped = rows.iter().filter(|row| row.dropped).count();
    let room = usize::from(area.width).saturating_sub(4);
    let name = app.short_title(app.lane, room);
    let mut block = Block::bordered().border_style(theme.style(Meaning::Muted)).title(span(
        format!(" {name} "),
        Meaning::Title,
        theme,
    ));
    let mut below = Vec::new();
    if let Some(timeline) = timeline {
        below.push(stance_word(timeline.last()).to_owned());
        let named = timeline.turns.last().and_then(|place| remaining(rows).nth(*place));
        below.extend(named.map(|row| format!("turned by {} {}", row.rank, passage_title(app, row))));
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
            // Where there is room, each passage shows the beginning of its text.
            let each = (usize::from(inner.height) / rows.len()).clamp(1, 5);
            let top = (app.answering.at + 1).saturating_sub((usize::from(inner.height) / each).max(1));
            let mut place = 0;
            let mut lines = Vec::new();
            let below = top + usize::from(inner.height).div_ceil(each);
            for (i, row) in rows.iter().enumerate().take(below) {
                let kept_at = (!row.dropped).then_some(place);
                place += usize::from(!row.dropped);
                if i >= top {
                    lines.push(row_line(
                        app,
                        theme,
                        *row,
                        kept_at,
                        i == app.answering.at,
                        timeline.as_ref(),
                        width,
                    ));
                    let ranked = lane.ranking.get(row.rank - 1);
                    let text = ranked.map_or("", |ranked| ranked.passage.text.as_str());
                    let text = safe::line(&text.chars().take(width * each).collect::<String>());
                    let mut parts = wrap(&text, width.saturating_sub(8).max(1), each - 1).into_iter();
                    lines.extend((1..each).map(|_| match parts.next() {
                        Some(part) => Line::from(vec![
                            Span::raw("      "),
                            passage_span(&text[part], Meaning::Muted, theme),
                        ]),
                        None => Line::default(),
                    }));
                }
            }
            lines
        }
    };
    frame.render_widget(Paragraph::new(lines), inner);
}

fn remaining(rows: &[Row]) -> impl Iterator<Item = &Row> {
    rows.iter().filter(|row| !row.dropped)
}

fn passage_title(app: &App, row: &Row) -> String {
    let ranked = app.lanes.get(app.lane).and_then(|lane| lane.ranking.get(row.rank - 1));
    safe::line(ranked.map_or("", |ranked| ranked.passage.heading()))
}

/// ` 3 ▲ What a licence buys   was 5  ◐ turned it`
fn row_line(
    app: &App,
    theme: Theme,
    row: Row,
    place: Option<usize>,
    marked: bool,
    timeline: Option<&StanceTimeline>,
    width: usize,
) -> Line<'static> {
    let mut flags = Vec::new();
    if let (Some(timeline), Some(place)) = (timeline, place) {
        flags.extend(timeline.turns.contains(&place).then_some("turned it"));
        flags.extend(timeline.alone.contains(&place).then_some("decides"));
        let removed = timeline.removed.as_ref().filter(|removed| removed.len() > 1);
        flags.extend(removed.filter(|removed| removed.contains(&place)).map(|_| "of those to remove"));
    }
    if let Some(place) = place {
        let hangs = app.answering.shown.hangs.get(place) == Some(&Some(true));
        flags.extend(hangs.then_some("answer hangs on it"));
    }
    let narrow = width < 60;
    let flags = if narrow { flags.first().copied().unwrap_or("").to_owned() } else { flags.join(", ") };
    let was = match place {
        None => "dropped".to_owned(),
        Some(place) if place + 1 != row.rank => format!("was {}", row.rank),
        Some(_) => String::new(),
    };
    let own = app.mark(row.at);
    let stance = place.and_then(|place| timeline?.stances.get(place).copied());
    let glyph = stance.map_or(' ', |stance| stance_mark(stance).glyph(app.glyphs));
    let room_of_flags = match width {
        ..60 => 9,
        60..100 => 19,
        _ => 39,
    };
    let flags = fit(&flags, room_of_flags);
    let right = if narrow { 7 + 3 } else { 8 + 3 } + room_of_flags + 1;
    let room = width.saturating_sub(6 + right);
    let name = fit(&passage_title(app, &row), room);
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
        span(
            glyph.to_string(),
            stance.map_or(Meaning::Muted, |stance| Meaning::Side(stance_mark(stance))),
            theme,
        ),
        Span::raw(" "),
        span(flags, Meaning::Title, theme),
    ])
}

/// Draws the answers.
pub fn draw_answers(app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
    let Corpus::Open(opened) = &app.corpus else { return };
    let Some((name, recorded)) = &opened.reader else { return };
    let by = if *recorded { "recorded" } else { "by the model" };
    let room = usize::from(area.width).saturating_sub(4);
    let title = fit(&format!("answer at each k, {by} {}", safe::line(name)), room.saturating_sub(2));
    let mut block = Block::bordered().border_style(theme.style(Meaning::Muted)).title(span(
        format!(" {title} "),
        Meaning::Title,
        theme,
    ));
    let AnswersShown { count, is_read, pattern, effects, changes, hangs, attention, reordered, .. } =
        &app.answering.shown;
    let answers = app.answering.answers.get(..*count).unwrap_or_default();
    if let Some(pattern) = pattern.as_ref().filter(|pattern| !pattern.is_empty()) {
        let bit = |right: bool| u8::from(right);
        let (em, accumulated) = (pattern.em(pattern.len()), pattern.accumulated_em(pattern.len()));
        let k = pattern.len();
        let text =
            format!(" EM@{k} {}  AcEM@{k} {}  gap {} ", bit(em), bit(accumulated), bit(accumulated && !em));
        block = block.title_bottom(Line::from(span(text, Meaning::Title, theme)).alignment(Alignment::Right));
    }
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let width = usize::from(inner.width);
    let mut lines = vec![pattern_line(app, theme, effects.as_deref(), changes, width)];
    for (i, answer) in answers.iter().enumerate() {
        let (text, meaning) = match answer.text.trim() {
            "" => ("(empty)".to_owned(), Meaning::Muted),
            text => (safe::line(text), Meaning::Text),
        };
        let mut tail = Vec::new();
        let code = match effects {
            Some(effects) => {
                effects.get(i).map(|effect| (effect_code(*effect, app.glyphs), effect_meaning(*effect)))
            }
            None => {
                changes.get(i).filter(|changed| **changed).map(|_| ("changed".to_owned(), Meaning::Title))
            }
        };
        tail.extend((answer.cut > 0).then_some("cut"));
        tail.extend(answer.is_refusal().then_some("refusal"));
        let tail = tail.join(" ");
        let (code, code_meaning) = code.unwrap_or((String::new(), Meaning::Muted));
        let room = width.saturating_sub(4 + 8 + if tail.is_empty() { 0 } else { tail.len() + 1 });
        let text = fit(&text, room);
        lines.push(Line::from(vec![
            span(format!("{:>3} ", i + 1), Meaning::Muted, theme),
            span(format!("{code:<8}"), code_meaning, theme),
            span(text, meaning, theme),
            span(if tail.is_empty() { tail } else { format!(" {tail}") }, Meaning::Warn, theme),
        ]));
    }
    let say = |text: &str, meaning| paragraph(text, " ", width, meaning, theme);
    let key = app.key(Context::Answer, Action::HaveRead);
    if app.answering.going {
        lines.extend(say(&format!("reading … {key} gives it up"), Meaning::Muted));
    } else if !is_read && app.answering.failed.is_none() {
        lines.extend(say(&format!("{key} has the list read at every k"), Meaning::Muted));
    }
    if let Some(reason) = &app.answering.failed {
        lines.extend(say(reason, Meaning::Warn));
    }
    if answers.iter().any(|answer| answer.cut > 0) {
        lines.extend(say(
            "cut: some passages were not read whole, as they are past the reader's window",
            Meaning::Warn,
        ));
    }
    if let Some(reordered) = reordered {
        let text = format!("the same answer in {} of {} shuffled orders", reordered.same, reordered.of);
        lines.extend(say(&text, Meaning::Title));
    }
    if !attention.is_empty() {
        let share = |(i, share): (usize, &f64)| format!("{}:{share:.2}", i + 1);
        let shares: Vec<String> = attention.iter().enumerate().map(share).collect();
        let text = format!("attention as the answer begins: {}", shares.join(", "));
        lines.extend(say(&text, Meaning::Title));
    }
    let known: Vec<bool> = hangs.iter().flatten().copied().collect();
    if !known.is_empty() {
        let other = known.iter().filter(|hangs| **hangs).count();
        lines.extend(say(
            &format!("another answer without {other} of the {} passages, each left out alone", known.len()),
            Meaning::Title,
        ));
    }
    frame.render_widget(Paragraph::new(lines), inner);
}

fn effect_glyph(effect: Effect, glyphs: Glyphs) -> char {
    let (shape, ascii) = match effect {
        Effect::InitiallyZero => ('○', 'o'),
        Effect::DefinitePositive => ('◆', '+'),
        Effect::SemiPositive => ('●', '='),
        Effect::DefiniteNegative => ('×', 'x'),
        Effect::SemiNegative => ('◇', '-'),
    };
    if glyphs == Glyphs::Ascii { ascii } else { shape }
}

fn effect_code(effect: Effect, glyphs: Glyphs) -> String {
    format!("{} {}", effect_glyph(effect, glyphs), effect.code())
}

/// Passages that helped are green; those that harmed are highlighted.
fn effect_meaning(effect: Effect) -> Meaning {
    match effect {
        Effect::InitiallyZero => Meaning::Muted,
        Effect::DefinitePositive | Effect::SemiPositive => Meaning::Value(2),
        Effect::DefiniteNegative => Meaning::Over,
        Effect::SemiNegative => Meaning::Under,
    }
}

/// The whole pattern in one line; without gold answers, the places where the answer changed.
fn pattern_line(
    app: &App,
    theme: Theme,
    effects: Option<&[Effect]>,
    changes: &[bool],
    width: usize,
) -> Line<'static> {
    let mut spans = vec![Span::raw(" ")];
    match effects {
        Some(effects) => spans.extend(effects.iter().map(|effect| {
            span(effect_glyph(*effect, app.glyphs).to_string(), effect_meaning(*effect), theme)
        })),
        None => {
            spans.extend(changes.iter().enumerate().map(|(i, changed)| match (i, changed) {
                (0, _) => span("?", Meaning::Muted, theme),
                (_, true) => span("≠", Meaning::Title, theme),
                (_, false) => span("=", Meaning::Muted, theme),
            }));
            let said = "  no gold answers: where the answer changed";
            let room = width.saturating_sub(1 + changes.len());
            spans.push(span(fit(said, room), Meaning::Muted, theme));
        }
    }
    Line::from(spans)
}
