//! Parallax shows what several retrievers bring up on a contentious question, and which side each passage supports.
//!
//! The library is a synchronous core with a thin shell around it. Dependencies point one way:
//! [`tui`] and [`cli`] → [`engine`] → [`pipeline`] → everything else.
//!
//! | module | owns |
//! | --- | --- |
//! | [`corpus`] | passages, importers, the store |
//! | [`question`] | questions, perspectives, question → opposite statements |
//! | [`encode`] | text → vector |
//! | [`retrieve`] | query → ranked passages: BM25, dense, fusion |
//! | [`expand`] | a question → the texts or terms searched in its place |
//! | [`project`] | a query seen from one perspective: the PAP family |
//! | [`rerank`] | MMR, and diversifiers that know the perspectives |
//! | [`llm`] | language models that answer prompts |
//! | `caught` | panics of parsers that are not ours |
//! | `net` | how a client is set up, fetching a file, sending a request |
//! | [`web`] | a question → pages that a search engine finds → a corpus |
//! | [`remote`] | engines on other machines |
//! | [`detect`] | (passage, statement) → does it support it? |
//! | [`annotate`] | labels by hand |
//! | [`measure`] | rankings and labels → figures |
//! | [`read`] | what is answered from the first k passages, and which one turns the answer |
//! | [`pipeline`] | a plan → rankings, verdicts, figures |
//! | [`engine`] | threads, cancellation, progress |
//! | [`cli`] | subcommands |
//! | [`tui`] | the explorer |
#![warn(missing_docs)]

pub mod annotate;
mod assets;
mod caught;
pub mod cli;
pub mod corpus;
pub mod detect;
pub mod encode;
pub mod engine;
pub mod expand;
pub mod input;
pub mod llm;
pub mod measure;
mod net;
pub mod pipeline;
pub mod project;
pub mod question;
pub mod read;
pub mod remote;
pub mod report;
pub mod rerank;
pub mod retrieve;
pub mod tui;
pub mod web;
pub mod work;
