//! Parallax shows how retrievers answer contentious questions: it runs several retrievers side by side and judges which statement each
//! passage supports.
//!
//! This is the library of the `parallax` program. [`OpenCorpus`] opens a corpus, runs lanes, judges their passages and measures them. A
//! [`Query`] holds a question, its lanes, the number of passages that count and the source of labels. [`OpenCorpus::run`] reports
//! [`Event`]s and returns an [`Outcome`]. [`Figures`] are the measures of one lane. A [`Retriever`] of your own is judged like any lane.
//! [`measure`] has every measure, and reads and writes TREC files.
//!
//! In `examples/`, `search_folder`, `own_retriever` and `measure_run` show how to use the library; the other programs are tools of the
//! maintainers and use internals.
//!
//! Everything else is internal, hidden from these pages, and may change with any release. That includes the contents of error variants
//! and a list's trace. ARCHITECTURE.md describes the internals.
#![warn(missing_docs)]

#[doc(hidden)]
pub mod annotate;
mod api;
mod assets;
#[doc(hidden)]
pub mod cli;
#[doc(hidden)]
pub mod corpus;
#[doc(hidden)]
pub mod detect;
#[doc(hidden)]
pub mod encode;
#[doc(hidden)]
pub mod engine;
#[doc(hidden)]
pub mod expand;
#[doc(hidden)]
pub mod input;
#[doc(hidden)]
pub mod llm;
pub mod measure;
mod net;
#[doc(hidden)]
pub mod project;
#[doc(hidden)]
pub mod question;
#[doc(hidden)]
pub mod read;
#[doc(hidden)]
pub mod remote;
#[doc(hidden)]
pub mod report;
#[doc(hidden)]
pub mod rerank;
#[doc(hidden)]
pub mod retrieve;
mod signals;
#[doc(hidden)]
pub mod storage;
#[doc(hidden)]
pub mod tui;
#[doc(hidden)]
pub mod vector;
#[doc(hidden)]
pub mod web;
#[doc(hidden)]
pub mod work;

pub use api::{Error, OpenCorpus};
pub use corpus::{Corpus, Passage, PassageIx};
pub use detect::{Choice, LabelSource};
pub use engine::recipe::{RecipeError, RunFile};
pub use engine::{
    Change, Doubt, Event, Figures, FirstRank, Gap, Judged, Judgments, Lane, LaneError, List, Opening,
    Outcome, Query, Ranked, Ranking, Recipe, SetupError, Shares,
};
pub use measure::Measure;
pub use question::Question;
pub use retrieve::{Hit, RetrieveError, Retriever};
pub use work::{Job, OnProgress, Progress, Stop, Stopped};
