//! TREC files: runs and judgements, in and out.
//!
//! Readers take a name for messages and any [`std::io::BufRead`], so decompression and `-` belong to
//! whoever opens the file. A file is read whole or not at all: every bad line is counted, the first
//! [`lines::SHOWN`] are told, and nothing is imported by halves.
//!
//! | file | owns |
//! | --- | --- |
//! | [`lines`] | lines, and errors as `FILE:LINE: expected …, found …` |
//! | [`run`] | a run in memory, its order, and `qid Q0 docid rank score tag` |
//! | `build` | a run while it is read |
//! | [`rank_llm`] | the JSON runs of rank_llm and BERDS, whose objects `shape` knows |
//! | [`qrels`] | graded qrels, TREC, BEIR and PIR |
//! | [`diversity`] | judgements per perspective |
//! | [`mod@write`] | runs and both kinds of qrels, out |

mod build;
pub mod diversity;
pub mod lines;
pub mod qrels;
pub mod rank_llm;
pub mod run;
mod shape;
pub mod write;

pub use diversity::{Absent, DiversityQrels, read_diversity_qrels};
pub use lines::{LineError, LineErrors, TrecError};
pub use qrels::{Qrels, read_beir_qrels, read_jsonl_qrels, read_qrels};
pub use rank_llm::{Carried, is_text_id, read_json_run, read_rank_llm, text_id};
pub use run::{RankedPassage, RankedQuestion, Run, RunOrder, read_run, read_run_top};
pub use write::{write_diversity_qrels, write_qrels, write_run};
