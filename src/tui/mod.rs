//! The explorer. A message changes the state and has effects; a frame is drawn from the state.
//!
//! [`update`](fn@update::update) does no I/O and reads no clock; it works out everything that is drawn. [`draw`](draw::draw) only draws.
//! [`layout::arrange`] serves both drawing and the mouse. [`run`](fn@run) owns the terminal and performs effects; [`play`](fn@play) does
//! the same without a terminal. Each screen is a folder of [`screens`], listed in [`pages`] and in [`keymap`]. Nothing outside this folder uses ratatui or crossterm.
//!
//! May use: everything but `cli`.

pub mod app;
pub mod config;
pub mod draw;
pub mod export;
pub mod keymap;
pub mod layout;
pub mod message;
pub mod page;
pub mod pages;
pub mod query_history;
pub mod screens {
    //! The screens, one folder each.
    //!
    //! In each, `mod.rs` holds the state and the keys; the other files update and draw. `pages` lists the screens.
    //! May use: `tui` except `shell`, and `engine` and the layers below it.

    pub mod bias;
    pub mod compare;
    pub mod detectors;
    pub mod help;
    pub mod labelling;
    pub mod lanes;
    pub mod palette;
    pub mod passage;
    pub mod reader;
    pub mod statements;
    pub mod sycophancy;
    pub mod tune;
}
pub mod script;
pub mod session;
pub mod shell;
pub mod theme;
pub mod undo;
pub mod update;
pub mod widgets;

pub use app::Start;
pub use export::frame::Dump;
pub use script::Size;
pub use shell::Ended;
pub use shell::play::{PlayError, film, frame, play};
pub use shell::run::run;
