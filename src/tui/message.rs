//! What happens to the explorer ([`Msg`]), and what the shell carries out for it ([`Effect`]).

use std::time::Duration;

use crossterm::event::{KeyEvent, MouseEvent};

use super::config::{Config, Problems};
use super::script::Size;
use crate::detect::Choice;
use crate::engine::Query;
use crate::engine::{Batch, Labelling, Reach, Reply, Study, Turn};
use crate::work::Progress;

/// Something happened.
#[derive(Clone, Debug)]
pub enum Msg {
    /// A key was pressed.
    Key(KeyEvent),
    /// The mouse did something.
    Mouse(MouseEvent),
    /// Text was pasted.
    Pasted(String),
    /// The terminal has another size.
    Resized(Size),
    /// Nothing was typed for a while.
    QuietPeriodEnded {
        /// Since this turn began.
        turn: Turn,
        /// What that pause is long enough for.
        reach: Reach,
    },
    /// A long job made progress.
    Progressed {
        /// How far.
        progress: Progress,
        /// A description with a rate.
        text: String,
    },
    /// A reply of the engine.
    Engine(Reply),
    /// The configuration file changed; if it is wrong, the old configuration stays.
    Configured(Result<Config, Problems>),
    /// Time passed, during a replay.
    Passed(Duration),
    /// What became of a recording.
    Recorded(Recording),
    /// The frame was saved under this name, or could not be saved for this reason.
    Saved(Result<String, String>),
    /// The system wants the program to end.
    Terminated,
}

/// What became of a recording.
#[derive(Clone, Debug, PartialEq)]
pub enum Recording {
    /// It started in this file; these options are not part of it.
    Began(String, Vec<&'static str>),
    /// It ended; this is its file.
    Ended(String),
    /// It stopped for this reason.
    Failed(String),
}

/// What the shell carries out for the explorer.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Send [`Msg::QuietPeriodEnded`] after this time.
    WaitQuiet {
        /// With this turn.
        turn: Turn,
        /// And this reach.
        reach: Reach,
        /// After this long.
        pause: Duration,
    },
    /// Carry out a plan.
    Start {
        /// As this turn.
        turn: Turn,
        /// The plan.
        plan: Query,
        /// How far.
        reach: Reach,
    },
    /// Look for the evidence in the open passage, and explain its rank.
    Study(Study),
    /// Carry out a batch.
    Batch(u64, Batch),
    /// Read or write the annotator's journal.
    Label(Labelling),
    /// Open the corpus anew with another detector and, for a language model, its server and name.
    UseDetector {
        /// The detector.
        choice: Choice,
        /// The server and the model's name there.
        llm: Option<(String, String)>,
    },
    /// Cancel every batch before this one.
    StopBatch(u64),
    /// Save the frame as a picture in the current folder, and report its name.
    SaveFrame,
    /// Start recording into a file in the current folder.
    Record,
    /// Stop recording.
    StopRecording,
    /// Put a text on the clipboard.
    Copy(String),
    /// Give the terminal back and sleep until `fg`.
    Suspend,
    /// End.
    Quit,
}
