//! The reader's answer at every k, right or wrong where the question has gold answers, and how it stood being read otherwise.

use ratatui::Frame;
use ratatui::layout::{Alignment, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph};

use super::super::{paragraph, span};
use crate::read::Effect;
use crate::report::marks::Glyphs;
use crate::report::safe;
use crate::tui::app::{App, Corpus};
use crate::tui::keymap::{Action, Context};
use crate::tui::theme::{Meaning, Theme};
use crate::tui::wrap::fit;

/// Draws the answers.
pub fn draw(app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
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
    let (answers, pattern) = (app.answers(), app.pattern());
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
    let (effects, changes) = (pattern.map(|pattern| pattern.effects()), app.changes());
    let mut lines = vec![strip(app, theme, effects.as_deref(), &changes, width)];
    for (i, answer) in answers.iter().enumerate() {
        let (text, meaning) = match answer.text.trim() {
            "" => ("(empty)".to_owned(), Meaning::Muted),
            text => (safe::line(text), Meaning::Text),
        };
        let mut tail = Vec::new();
        let code = match &effects {
            Some(effects) => effects.get(i).map(|effect| (code(*effect, app.glyphs), meaning_of(*effect))),
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
    } else if !app.is_read() && app.answering.failed.is_none() {
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
    if let Some(reordered) = app.reordered() {
        let text = format!("the same answer in {} of {} shuffled orders", reordered.same, reordered.of);
        lines.extend(say(&text, Meaning::Title));
    }
    if !app.attention().is_empty() {
        let share = |(i, share): (usize, &f64)| format!("{}:{share:.2}", i + 1);
        let shares: Vec<String> = app.attention().iter().enumerate().map(share).collect();
        let text = format!("attention as the answer begins: {}", shares.join(", "));
        lines.extend(say(&text, Meaning::Title));
    }
    let places = 0..app.answering.without.len();
    let known: Vec<bool> = places.filter_map(|place| app.hangs_on(place)).collect();
    if !known.is_empty() {
        let other = known.iter().filter(|hangs| **hangs).count();
        lines.extend(say(
            &format!("another answer without {other} of the {} passages, each left out alone", known.len()),
            Meaning::Title,
        ));
    }
    frame.render_widget(Paragraph::new(lines), inner);
}

fn glyph(effect: Effect, glyphs: Glyphs) -> char {
    let (shape, ascii) = match effect {
        Effect::InitiallyZero => ('○', 'o'),
        Effect::DefinitePositive => ('◆', '+'),
        Effect::SemiPositive => ('●', '='),
        Effect::DefiniteNegative => ('×', 'x'),
        Effect::SemiNegative => ('◇', '-'),
    };
    if glyphs == Glyphs::Ascii { ascii } else { shape }
}

fn code(effect: Effect, glyphs: Glyphs) -> String {
    format!("{} {}", glyph(effect, glyphs), effect.code())
}

/// What helped is green, what harmed stands out.
fn meaning_of(effect: Effect) -> Meaning {
    match effect {
        Effect::InitiallyZero => Meaning::Muted,
        Effect::DefinitePositive | Effect::SemiPositive => Meaning::Value(2),
        Effect::DefiniteNegative => Meaning::Over,
        Effect::SemiNegative => Meaning::Under,
    }
}

/// The whole pattern in one line; without gold answers, where the answer changed.
fn strip(
    app: &App,
    theme: Theme,
    effects: Option<&[Effect]>,
    changes: &[bool],
    width: usize,
) -> Line<'static> {
    let mut spans = vec![Span::raw(" ")];
    match effects {
        Some(effects) => spans.extend(
            effects
                .iter()
                .map(|effect| span(glyph(*effect, app.glyphs).to_string(), meaning_of(*effect), theme)),
        ),
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
