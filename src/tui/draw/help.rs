//! All keys, from the same table as dispatch.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::{Block, Paragraph};

use super::span;
use crate::report::marks::{Glyphs, Mark};
use crate::tui::app::App;
use crate::tui::keymap::{Context, shown};
use crate::tui::layout::arrange;
use crate::tui::theme::{Look, Meaning, Theme};
use crate::tui::wrap::{columns_of, wrap};

const PLACES: [Context; 16] = [
    Context::Lanes,
    Context::Question,
    Context::Read,
    Context::Statements,
    Context::Tune,
    Context::Sway,
    Context::Compare,
    Context::Bias,
    Context::Answer,
    Context::Toward,
    Context::Annotate,
    Context::Note,
    Context::Marking,
    Context::Palette,
    Context::Help,
    Context::Anywhere,
];

/// Columns of the keys, where they are not more.
const KEYS: usize = 18;

/// Below so many columns the keys have half of theirs.
const NARROW: usize = 60;

/// Draws the page.
pub fn draw(app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
    let lines = content(app, theme, area.width);
    let block = Block::bordered().border_style(theme.style(Meaning::Muted)).title(span(
        " Keys ",
        Meaning::Title,
        theme,
    ));
    let inner = block.inner(area);
    let last = lines.len().saturating_sub(usize::from(inner.height));
    let lines: Vec<Line<'_>> = lines.into_iter().skip(app.help_scroll.min(last)).collect();
    frame.render_widget(block, area);
    frame.render_widget(Paragraph::new(lines), inner);
}

/// Lines that are shown at once.
pub fn shown_lines(app: &App) -> usize {
    usize::from(Block::bordered().inner(body(app)).height)
}

fn body(app: &App) -> Rect {
    arrange(Rect::new(0, 0, app.size.width, app.size.height), app).body
}

/// The first line that is shown at the end of the page.
pub fn last(app: &App) -> usize {
    content(app, Theme::of(Look::Mono), body(app).width).len().saturating_sub(shown_lines(app))
}

fn content(app: &App, theme: Theme, width: u16) -> Vec<Line<'static>> {
    let ascii = app.glyphs == Glyphs::Ascii;
    let width = usize::from(width.saturating_sub(2));
    let mut lines = legend(app, theme, width);
    for place in PLACES {
        lines.push(Line::default());
        let (first, rest) = place.name().split_at(1);
        lines.push(Line::from(span(first.to_uppercase() + rest, Meaning::Title, theme)));
        for bound in app.keys.of_place(place) {
            let keys: Vec<String> = bound.keys.iter().map(|key| shown(key, ascii)).collect();
            lines.extend(entry(&keys.join(" "), Meaning::Key, bound.line.help, width, theme));
        }
    }
    lines
}

/// A key or a mark, and beside it what it means. Where that does not fit, it goes on below, indented.
fn entry(
    name: &str,
    meaning: Meaning,
    means: &'static str,
    width: usize,
    theme: Theme,
) -> Vec<Line<'static>> {
    let keys = if width < NARROW { KEYS / 2 } else { KEYS };
    let pad = keys.saturating_sub(columns_of(name)).max(1);
    let first = format!("  {name}{}", " ".repeat(pad));
    if columns_of(&first) + columns_of(means) <= width {
        return vec![Line::from(vec![span(first, meaning, theme), span(means, Meaning::Text, theme)])];
    }
    let indent = " ".repeat(2 + keys);
    let beside = columns_of(&first) == 2 + keys;
    let rows = wrap(means, width.saturating_sub(2 + keys), usize::MAX);
    let mut lines = if beside { Vec::new() } else { vec![Line::from(span(first.clone(), meaning, theme))] };
    lines.extend(rows.into_iter().enumerate().map(|(i, row)| {
        let before = if beside && i == 0 { first.clone() } else { indent.clone() };
        Line::from(vec![span(before, meaning, theme), span(&means[row], Meaning::Text, theme)])
    }));
    lines
}

fn legend(app: &App, theme: Theme, width: usize) -> Vec<Line<'static>> {
    let marks = [
        (Mark::Support, "supports the question's first side"),
        (Mark::Oppose, "supports the other side"),
        (Mark::Other(0), "supports a perspective of many, by its letter"),
        (Mark::Several, "supports more than one"),
        (Mark::None, "judged, supports none"),
        (Mark::Pending, "not judged yet"),
    ];
    let mut lines = vec![Line::from(span("Marks", Meaning::Title, theme))];
    let line =
        |(mark, means): (Mark, _)| entry(&mark.text(app.glyphs), Meaning::Side(mark), means, width, theme);
    lines.extend(marks.into_iter().flat_map(line));
    let figures = [
        (".94!", "the model's probability; ! where a label says otherwise"),
        ("↑3 new =", "rank moves against the list before the last change"),
        ("(+1)", "a measure's change since then"),
        (".60–1.0", "where Prec would lie if each of the model's verdicts were drawn with its probability"),
        ("P .93", "by the same draws, the chance that the first k support every side"),
        (">23", "first rank: not within the 23 passages judged"),
        ("◆A 2@1", "of the top k, two support A, the first of them at rank 1"),
    ];
    let line = |(figure, means): (&str, _)| entry(figure, Meaning::Key, means, width, theme);
    lines.extend(figures.into_iter().flat_map(line));
    lines
}
