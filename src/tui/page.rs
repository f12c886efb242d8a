//! The interface between the explorer and a screen. Every method but the first four has a default.

use crossterm::event::{KeyEvent, MouseEvent};
use ratatui::Frame;
use ratatui::layout::Rect;
use tui_input::Input;

use super::app::App;
use super::keymap::{Action, Context, Screen};
use super::message::Effect;
use super::theme::Theme;
use crate::engine::Reply;

/// A screen: its keys, the engine replies that it takes, and its drawing. Its state is a field of [`App`].
pub trait Page: Sync {
    /// Returns its name.
    fn screen(&self) -> Screen;

    /// Returns the context in which its keys are looked up now. A text field has a context of its own.
    fn context(&self, app: &App) -> Context;

    /// Carries out an action.
    fn act(&self, app: &mut App, action: Action) -> Vec<Effect>;

    /// Draws it. Whatever is costly was worked out by [`Page::refresh`].
    fn draw(&self, app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>);

    /// Whether it has a question of its own and therefore covers the question line and the statements.
    fn fills_the_top(&self) -> bool {
        false
    }

    /// Returns the action that opens it from the lanes.
    fn opened_by(&self) -> Option<Action> {
        None
    }

    /// Opens it, or sets a notice that says why it cannot be opened.
    fn open(&self, _app: &mut App) -> Vec<Effect> {
        Vec::new()
    }

    /// Edits the line being typed, with a key that has no action.
    fn edit(&self, _app: &mut App, _key: KeyEvent) -> Vec<Effect> {
        Vec::new()
    }

    /// Returns the line that is being typed. Pasted text goes into it.
    fn line<'a>(&self, _app: &'a mut App) -> Option<&'a mut Input> {
        None
    }

    /// Called after text was pasted into [`Page::line`].
    fn pasted(&self, _app: &mut App) -> Vec<Effect> {
        Vec::new()
    }

    /// Returns the action that a mouse event means, if any.
    fn point(&self, _app: &mut App, _mouse: MouseEvent) -> Option<Action> {
        None
    }

    /// Handles an engine reply that is meant for this screen, even while the screen is hidden. `Err` gives back any other reply.
    fn reply(&self, _app: &mut App, reply: Reply) -> Result<Vec<Effect>, Box<Reply>> {
        Err(Box::new(reply))
    }

    /// Returns the plot that the screen shows as an SVG picture of its own, if it shows one. It is saved beside the frame.
    fn plot(&self, _app: &App) -> Option<String> {
        None
    }

    /// Called if a list or a judgment changes while the screen is shown.
    fn changed(&self, _app: &mut App) -> Vec<Effect> {
        Vec::new()
    }

    /// Called when the passages have their vectors. Asks again for whatever needed them.
    fn embedded(&self, _app: &mut App) -> Vec<Effect> {
        Vec::new()
    }

    /// Keeps a key for later if something must be finished before it. Returns whether it did.
    fn hold(&self, _app: &mut App, _key: KeyEvent) -> bool {
        false
    }

    /// Returns the next kept key, once it can be acted on.
    fn release(&self, _app: &mut App) -> Option<KeyEvent> {
        None
    }

    /// Whether everything that the screen asked for has arrived.
    fn settled(&self, _app: &App) -> bool {
        true
    }

    /// Works out what is drawn if it depends on something that changed. Called after every message while the screen is shown.
    fn refresh(&self, _app: &mut App) {}
}
