//! An action looked for by its words, among all that can be done here.

use crossterm::event::{Event, KeyEvent};
use tui_input::backend::crossterm::EventHandler;

use super::super::app::App;
use super::super::keymap::{Action, Bound};
use super::super::message::Effect;

/// What can be done here and whose key or help holds every word that was typed.
pub fn found(app: &App) -> Vec<&Bound> {
    let Some(palette) = &app.palette else { return Vec::new() };
    let here = super::below(app);
    let typed = palette.line.value().to_lowercase();
    let holds = |bound: &&Bound| {
        let line = bound.line;
        let said = format!("{} {} {}", bound.keys.join(" "), line.short, line.help).to_lowercase();
        typed.split_whitespace().all(|word| said.contains(word))
    };
    app.keys.here(here).filter(|bound| bound.line.action != Action::Palette).filter(holds).collect()
}

/// A key that edits the words.
pub fn edit(app: &mut App, key: KeyEvent) -> Vec<Effect> {
    if let Some(palette) = &mut app.palette {
        palette.line.handle_event(&Event::Key(key));
        palette.at = 0;
    }
    Vec::new()
}

/// An action while one is looked for.
pub fn act(app: &mut App, action: Action) -> Vec<Effect> {
    let found: Vec<Action> = found(app).iter().map(|bound| bound.line.action).collect();
    let Some(palette) = &mut app.palette else { return Vec::new() };
    match action {
        Action::Down => palette.at = (palette.at + 1).min(found.len().saturating_sub(1)),
        Action::Up => palette.at = palette.at.saturating_sub(1),
        Action::Choose => {
            if let Some(&chosen) = found.get(palette.at) {
                app.palette = None;
                let here = super::below(app);
                return super::act(app, here, chosen);
            }
        }
        _ => app.palette = None,
    }
    Vec::new()
}
