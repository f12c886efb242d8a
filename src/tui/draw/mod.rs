//! The frame, drawn from the state. One file a panel; nothing here changes anything.

mod answer;
mod bias;
mod compare;
mod figures;
pub mod footer;
mod header;
pub mod help;
mod label;
mod lane;
mod paint;
mod palette;
mod plot;
pub mod read;
pub mod replay;
mod statements;
mod sway;
mod tune;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::app::{App, Corpus, Screen};
use super::keymap::Action;
use super::layout::{Panes, arrange};
use super::theme::{Meaning, Theme};
use super::update::context;
use super::wrap::wrap;
use crate::report::safe;

/// Draws everything.
pub fn draw(app: &App, theme: Theme, frame: &mut Frame<'_>) {
    let area = frame.area();
    let panes = arrange(area, app);
    if app.screen != Screen::Annotate {
        header::draw(app, theme, &panes, frame);
    }
    match app.screen {
        Screen::Explore => explore(app, theme, &panes, frame),
        Screen::Read => read::draw(app, theme, panes.body, frame),
        Screen::Statements => statements::draw(app, theme, panes.body, frame),
        Screen::Tune => tune::draw(app, theme, panes.body, frame),
        Screen::Sway => sway::draw(app, theme, panes.body, frame),
        Screen::Compare => compare::draw(app, theme, panes.body, frame),
        // A passage to be labelled has a question of its own.
        Screen::Annotate => {
            let top = Rect { y: area.y, height: panes.body.bottom() - area.y, ..panes.body };
            label::draw(app, theme, top, frame);
        }
        Screen::Bias => bias::draw(app, theme, panes.body, frame),
        Screen::Answer => answer::draw(app, theme, panes.body, frame),
        Screen::Help => help::draw(app, theme, panes.body, frame),
    }
    palette::draw(app, theme, panes.body, frame);
    replay::draw(app, theme, panes.caption, frame);
    footer::draw(app, theme, &panes, frame);
    paint::finish(theme, app.glyphs, frame.buffer_mut());
}

fn explore(app: &App, theme: Theme, panes: &Panes, frame: &mut Frame<'_>) {
    match &app.corpus {
        Corpus::Failed(reason) => {
            let key = app.key(context(app), Action::Quit);
            let text = format!("What was named could not be opened.\n{reason}\n\nPress {key} to leave.");
            say(&text, Meaning::Warn, theme, panes.body, frame);
        }
        Corpus::Opening => say("Opening the corpus …", Meaning::Muted, theme, panes.body, frame),
        Corpus::Open(_) => {
            lane::tabs(app, theme, panes.tabs, frame);
            for pane in &panes.lanes {
                lane::draw(app, theme, pane, frame);
            }
        }
    }
    header::completions(app, theme, panes, frame);
}

/// Paragraphs of plain words, wrapped.
fn say(text: &str, meaning: Meaning, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
    let area = Rect { x: area.x + u16::from(area.width > 2), width: area.width.saturating_sub(2), ..area };
    let mut lines = Vec::new();
    for paragraph in text.lines() {
        let paragraph = safe::line(paragraph);
        let rows = wrap(&paragraph, usize::from(area.width), usize::from(area.height));
        if rows.is_empty() {
            lines.push(Line::default());
        }
        lines.extend(rows.into_iter().map(|row| Line::from(paragraph[row].to_owned())));
    }
    frame.render_widget(Paragraph::new(lines).style(theme.style(meaning)), area);
}

/// A piece of text with a meaning.
fn span(text: impl Into<String>, meaning: Meaning, theme: Theme) -> Span<'static> {
    Span::styled(text.into(), theme.style(meaning))
}

/// A piece of a passage, whose characters stay as they are in ASCII too.
fn of_passage(text: impl Into<String>, meaning: Meaning, theme: Theme) -> Span<'static> {
    Span::styled(text.into(), theme.style(meaning).add_modifier(paint::OWN))
}

/// Text wrapped below an indent.
fn paragraph(
    text: &str,
    indent: &'static str,
    width: usize,
    meaning: Meaning,
    theme: Theme,
) -> Vec<Line<'static>> {
    let text = safe::line(text);
    let rows = wrap(&text, width.saturating_sub(indent.len()).max(1), usize::MAX);
    let line = |row| Line::from(vec![Span::raw(indent), span(&text[row], meaning, theme)]);
    rows.into_iter().map(line).collect()
}
