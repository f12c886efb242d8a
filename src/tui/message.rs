//! The messages to the explorer ([`Msg`]), and the effects that the shell carries out for it ([`Effect`]).

use std::path::PathBuf;
use std::time::Duration;

use crossterm::event::{KeyEvent, MouseEvent};

use super::config::{Config, Problems};
use super::script::Size;
use super::theme::Look;
use crate::detect::Choice;
use crate::engine::Query;
use crate::engine::{Batch, Labelling, Reach, Reply, Study, Turn};
use crate::question::Question;
use crate::web::Provider;
use crate::work::Progress;

/// A message: something that happened.
#[derive(Clone, Debug)]
pub enum Msg {
    /// A key was pressed.
    Key(KeyEvent),
    /// The mouse did something.
    Mouse(MouseEvent),
    /// Text was pasted.
    Pasted(String),
    /// The terminal changed its size.
    Resized(Size),
    /// Nothing was typed for some time.
    QuietPeriodEnded {
        /// The turn that began with the last change.
        turn: Turn,
        /// How much of the query may be run after a pause of this length.
        reach: Reach,
    },
    /// A long job made progress.
    Progressed {
        /// The job, and how far it is.
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
    /// A recording began, ended or failed.
    Recorded(Recording),
    /// The frame was saved under this name, or could not be saved for this reason.
    Saved(Result<String, String>),
    /// A server is waited for, in words with the time left.
    Waits(String),
    /// A corpus that is made from the web grew, or is complete.
    Gathered(Gathered),
    /// The system wants the program to end.
    Terminated,
    /// The system wants the process to stop until it is continued.
    StopAsked,
    /// The process goes on after a stop. The shell takes the terminal over again and passes on its size instead.
    Continued,
}

/// The state of a recording.
#[derive(Clone, Debug, PartialEq)]
pub enum Recording {
    /// It began, in the file of this name. These options are not part of it.
    Began(String, Vec<&'static str>),
    /// It ended. This is the name of its file.
    Ended(String),
    /// It stopped for this reason.
    Failed(String),
}

/// How far a corpus from the web is.
#[derive(Clone, Debug, PartialEq)]
pub enum Gathered {
    /// It grew.
    Grew(PathBuf),
    /// No more comes: the corpus, if a page gave a text, and what there is in words; or why there is none.
    Ended(Result<(Option<PathBuf>, String), String>),
}

/// An order to make a corpus from the web.
#[derive(Clone, Debug, PartialEq)]
pub struct Gather {
    /// The question, with its statements.
    pub question: Question,
    /// What finds the pages.
    pub provider: Provider,
    /// Where the user can be reached.
    pub contact: Option<String>,
}

/// An effect that the shell carries out for the explorer.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Send [`Msg::QuietPeriodEnded`] after this time.
    WaitQuiet {
        /// The turn of that message.
        turn: Turn,
        /// The reach of that message.
        reach: Reach,
        /// How long to wait.
        pause: Duration,
    },
    /// Run a query.
    Start {
        /// Its turn.
        turn: Turn,
        /// The query.
        plan: Query,
        /// How much of it to run.
        reach: Reach,
    },
    /// Find the evidence in the open passage, and explain its rank.
    Study(Box<Study>),
    /// Run the batch of this number.
    Batch(u64, Batch),
    /// Read or write the annotator's journal.
    Label(Labelling),
    /// Open the corpus again with another detector.
    UseDetector {
        /// The detector.
        choice: Choice,
        /// For a language model, its server and its name there.
        llm: Option<(String, String)>,
    },
    /// Open another corpus; `None` is the built-in sample.
    UseCorpus(Option<PathBuf>),
    /// Open the corpus again that was open before `UseCorpus`, which failed.
    ReturnToCorpus,
    /// Make a corpus from the web.
    Gather(Box<Gather>),
    /// Make no more of it; what is there stays.
    StopGathering,
    /// Draw in these colours.
    SetLook(Look),
    /// Cancel every run before this turn.
    StopRun(Turn),
    /// Cancel every batch before this one.
    StopBatch(u64),
    /// Save the frame as a picture in the current folder, and report the name of the file.
    SaveFrame,
    /// Start recording into a file in the current folder.
    Record,
    /// Stop recording.
    StopRecording,
    /// Copy a text to the clipboard.
    Copy(String),
    /// Restore the terminal and stop the process until `fg`.
    Suspend,
    /// End the program.
    Quit,
}
