//! What happens to the interface ([`Msg`]) and what it orders ([`Effect`]).

use std::time::Duration;

use crossterm::event::{KeyEvent, MouseEvent};

use super::Size;
use super::config::{Config, Problems};
use crate::engine::{Labelling, Reach, Reply, Study, Survey, Turn};
use crate::pipeline::Plan;
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
    /// A long job went on.
    Progressed {
        /// How far.
        progress: Progress,
        /// The same in words, with a rate.
        told: String,
    },
    /// The engine told something.
    Engine(Reply),
    /// The configuration has changed, or something is wrong in it and the old one stays.
    Configured(Result<Config, Problems>),
    /// So much time has passed; told while a session is played.
    Passed(Duration),
    /// What became of a recording.
    Recorded(Recording),
    /// The frame was saved under this name, or not for this reason.
    Saved(Result<String, String>),
    /// The system asks the program to end.
    Terminated,
}

/// What became of a recording.
#[derive(Clone, Debug, PartialEq)]
pub enum Recording {
    /// It goes into this file; these options are not in it.
    Began(String, Vec<&'static str>),
    /// It is in this file.
    Ended(String),
    /// It cannot go on, for this reason.
    Failed(String),
}

/// An order to the shell around the interface.
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
        plan: Plan,
        /// How far.
        reach: Reach,
    },
    /// Find out what is wanted of the open passage.
    Study(Study),
    /// Carry out a survey.
    Survey(u64, Survey),
    /// Have something done with the annotator's journal.
    Label(Labelling),
    /// Give up every survey before this one.
    StopSurvey(u64),
    /// Save the frame as a picture in the present folder, and tell its name.
    SaveFrame,
    /// Write down from now on what is done, in a file in the present folder.
    Record,
    /// Write no more of it down.
    StopRecording,
    /// Put a text on the clipboard.
    Copy(String),
    /// Give the terminal back and sleep until called to the foreground.
    Suspend,
    /// End.
    Quit,
}
