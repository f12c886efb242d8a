//! Parts that several screens share: text, the lines at the top and the bottom, the mouse wheel, and numbered curves.
//!
//! May use: the state in `app`, keymap, layout, theme.

use crossterm::event::{MouseEvent, MouseEventKind};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::symbols::Marker;
use ratatui::text::Span;
use ratatui::widgets::{Axis, Chart, Dataset, GraphType};

use super::app::App;
use super::keymap::Action;
use super::theme::{Meaning, Theme};
use crate::report::marks::{Glyphs, Mark};
use text::span;

pub mod footer;
pub mod header;
pub mod text;

/// The action of the mouse wheel on a screen whose text scrolls.
pub fn scrolled(mouse: MouseEvent) -> Option<Action> {
    match mouse.kind {
        MouseEventKind::ScrollDown => Some(Action::Down),
        MouseEventKind::ScrollUp => Some(Action::Up),
        _ => None,
    }
}

/// The meaning of a curve and of its name in [`legend`].
fn meaning(curve: usize) -> Meaning {
    Meaning::Side(Mark::Other(curve))
}

/// The curves' names, for the title. The numbers distinguish them without colours.
pub fn legend<'a>(
    names: impl Iterator<Item = String> + 'a,
    theme: Theme,
) -> impl Iterator<Item = Span<'static>> + 'a {
    names.enumerate().map(move |(i, name)| span(format!(" {} {name} ", i + 1), meaning(i), theme))
}

/// Draws the curves. The x axis goes from `ends.0` to `ends.1`, the y axis from 0 to 1.
pub fn draw(
    app: &App,
    theme: Theme,
    curves: &[Vec<(f64, f64)>],
    (ends, labels): ((f64, f64), Vec<String>),
    area: Rect,
    frame: &mut Frame<'_>,
) {
    let marker = if app.glyphs == Glyphs::Ascii { Marker::Dot } else { Marker::Braille };
    // Each number is at a different place along its curve, because several curves can end at the same point.
    let numbers = curves.iter().enumerate().filter_map(|(i, points)| {
        let apart = (points.len() / curves.len()).max(1);
        let point = points.iter().rev().nth(i * apart % points.len().max(1))?;
        let digit = char::from_digit(i as u32 + 1, 10)?;
        Some((i, Marker::Custom(digit), GraphType::Scatter, std::slice::from_ref(point)))
    });
    let lines = curves.iter().enumerate().map(|(i, points)| (i, marker, GraphType::Line, &points[..]));
    let datasets = lines.chain(numbers).map(|(i, marker, kind, points)| {
        Dataset::default().marker(marker).graph_type(kind).style(theme.style(meaning(i))).data(points)
    });
    let muted = theme.style(Meaning::Muted);
    let chart = Chart::new(datasets.collect())
        .legend_position(None)
        .x_axis(Axis::default().bounds([ends.0, ends.1]).labels(labels).style(muted))
        .y_axis(Axis::default().bounds([0.0, 1.0]).labels(["0", ".5", "1"]).style(muted));
    frame.render_widget(chart, area);
}
