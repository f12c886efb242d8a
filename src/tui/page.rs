//! What the explorer asks of a screen. Every method but the first four has a default, so a screen says only what is its own.

use crossterm::event::{KeyEvent, MouseEvent};
use ratatui::Frame;
use ratatui::layout::Rect;
use tui_input::Input;

use super::app::App;
use super::keymap::{Action, Context, Screen};
use super::message::Effect;
use super::theme::Theme;
use crate::engine::Reply;

/// A screen: its keys, its part in engine replies, and its drawing. Its state is a field of [`App`].
pub trait Page: Sync {
    /// Its name.
    fn screen(&self) -> Screen;

    /// Where its keys are looked up now: a text field has a context of its own.
    fn context(&self, app: &App) -> Context;

    /// Carries out an action.
    fn act(&self, app: &mut App, action: Action) -> Vec<Effect>;

    /// Draws it. Everything that is costly was worked out by [`Page::refresh`].
    fn draw(&self, app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>);

    /// Whether it has a question of its own, and takes the place of the question line and the statements.
    fn fills_the_top(&self) -> bool {
        false
    }

    /// The action that opens it from the lanes.
    fn opened_by(&self) -> Option<Action> {
        None
    }

    /// Opens it, or gives the reason why not as a notice.
    fn open(&self, _app: &mut App) -> Vec<Effect> {
        Vec::new()
    }

    /// A key without an action edits the line being typed.
    fn edit(&self, _app: &mut App, _key: KeyEvent) -> Vec<Effect> {
        Vec::new()
    }

    /// The line that is being typed, which pasted text goes into.
    fn line<'a>(&self, _app: &'a mut App) -> Option<&'a mut Input> {
        None
    }

    /// Text was pasted into [`Page::line`].
    fn pasted(&self, _app: &mut App) -> Vec<Effect> {
        Vec::new()
    }

    /// The mouse did something; the action that this means, if any.
    fn point(&self, _app: &mut App, _mouse: MouseEvent) -> Option<Action> {
        None
    }

    /// Takes a reply of the engine that is meant for it, shown or not; gives back any other.
    fn reply(&self, _app: &mut App, reply: Reply) -> Result<Vec<Effect>, Box<Reply>> {
        Err(Box::new(reply))
    }

    /// A list or a judgment changed while it is shown.
    fn changed(&self, _app: &mut App) -> Vec<Effect> {
        Vec::new()
    }

    /// The passages have their vectors: asks again for what needed them.
    fn embedded(&self, _app: &mut App) -> Vec<Effect> {
        Vec::new()
    }

    /// Keeps a key for later instead of acting on it, while something must be finished first.
    fn hold(&self, _app: &mut App, _key: KeyEvent) -> bool {
        false
    }

    /// The next key of those it kept, once it can be acted on.
    fn release(&self, _app: &mut App) -> Option<KeyEvent> {
        None
    }

    /// Whether everything that it asked for has arrived.
    fn settled(&self, _app: &App) -> bool {
        true
    }

    /// Works out what is drawn, if what it depends on has changed. Called after every message while it is shown.
    fn refresh(&self, _app: &mut App) {}
}
