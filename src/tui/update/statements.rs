//! Editing the statements of the question.

use crossterm::event::{Event, KeyEvent};
use tui_input::Input;
use tui_input::backend::crossterm::EventHandler;

use super::super::app::{App, Editing, Screen};
use super::super::keymap::Action;
use super::super::message::Effect;
use super::asking;
use crate::measure::support::MAX_PERSPECTIVES;
use crate::question::{By, Question};

/// Opens the editor on the present statements.
pub fn open(app: &mut App) {
    asking::read_line(app);
    if app.question.text.is_empty() {
        app.notice = Some("ask a question first; its statements can then be edited".into());
        return;
    }
    let mut lines: Vec<Input> = app.question.perspectives.iter().cloned().map(Input::new).collect();
    while lines.len() < 2 {
        lines.push(Input::default());
    }
    app.editing = Editing { lines, at: 0, supports: app.question.supports.unwrap_or(0) };
    app.screen = Screen::Statements;
}

/// An action in the editor.
pub fn act(app: &mut App, action: Action) -> Vec<Effect> {
    let editing = &mut app.editing;
    let count = editing.lines.len().max(1);
    match action {
        Action::Down => editing.at = (editing.at + 1) % count,
        Action::Up => editing.at = (editing.at + count - 1) % count,
        Action::AddStatement if count < MAX_PERSPECTIVES => {
            editing.lines.push(Input::default());
            editing.at = editing.lines.len() - 1;
        }
        Action::DropStatement if count > 1 => {
            editing.lines.remove(editing.at);
            editing.at = editing.at.min(editing.lines.len() - 1);
        }
        Action::SwapSides if count == 2 => editing.supports = 1 - editing.supports.min(1),
        Action::Back => app.screen = Screen::Explore,
        Action::ApplyStatements => return apply(app),
        _ => {}
    }
    Vec::new()
}

/// A key that edits the statement with the cursor.
pub fn edit(app: &mut App, key: KeyEvent) -> Vec<Effect> {
    if let Some(line) = app.editing.lines.get_mut(app.editing.at) {
        line.handle_event(&Event::Key(key));
    }
    Vec::new()
}

/// Statements without text are left out; with none left, the question has no sides.
fn apply(app: &mut App) -> Vec<Effect> {
    let written = app.editing.lines.iter().map(|line| line.value().trim().to_owned());
    let perspectives: Vec<String> = written.filter(|text| !text.is_empty()).collect();
    let supports = (perspectives.len() == 2).then_some(app.editing.supports.min(1));
    app.screen = Screen::Explore;
    if perspectives == app.question.perspectives && supports == app.question.supports {
        return Vec::new();
    }
    let by = if perspectives.is_empty() { By::None } else { By::User };
    let question = Question { perspectives, supports, ..app.question.clone() };
    asking::ask_instead(app, question, by);
    asking::restart(app)
}
