//! Draws the frame from the state, without changing it or working anything out.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::widgets::Clear;

use super::app::App;
use super::layout::arrange;
use super::pages::page;
use super::screens::palette::screen as palette;
use super::session::record;
use super::theme::{Meaning, Theme};
use super::widgets::{footer, header, text};

/// Draws a whole frame.
pub fn draw(app: &App, theme: Theme, frame: &mut Frame<'_>) {
    let area = frame.area();
    let panes = arrange(area, app);
    let page = page(app.screen);
    if page.fills_the_top() {
        let top = Rect { y: area.y, height: panes.body.bottom() - area.y, ..panes.body };
        page.draw(app, theme, top, frame);
    } else {
        header::draw(app, theme, &panes, frame);
        page.draw(app, theme, panes.body, frame);
    }
    palette::draw(app, theme, panes.body, frame);
    record::draw(app, theme, panes.caption, frame);
    footer::draw(app, theme, &panes, frame);
    hint(app, theme, panes.footer, frame);
    text::finish(theme, app.glyphs, frame.buffer_mut());
}

/// Explains a figure in place of the keys.
fn hint(app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
    let Some(hint) = app.hint.as_ref().filter(|_| area.height > 0) else { return };
    let text = text::fit(&format!(" {hint}"), usize::from(area.width));
    frame.render_widget(Clear, area);
    frame.render_widget(text::span(text, Meaning::Title, theme), area);
}
