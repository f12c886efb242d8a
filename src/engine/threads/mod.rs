//! The threads that run queries, and how a run is stopped.
//!
//! | thread | does |
//! | --- | --- |
//! | `terms` | opens the corpus, then the term lanes of the newest plan |
//! | `models` | the other lanes, then the verdicts, rank by rank |
//! | `writer` | beside `models`: the lanes that wait for a language model |
//! | `embedder` | embeds a corpus that has no vectors yet |
//! | `reader` | finds why the open passage stands where it does, and the sentence that its verdict rests on |
//! | `annotator` | writes labels by hand into their journal, one after another |
//! | `batch_worker` | what needs many lists: a lane in all forms of one switch, lanes asked in three wordings or over the question set, lists read passage by passage; and counts the metadata |
//! | `model-N` | one a core: embeds passages and judges pairs, for `embedder` and `models` |
//!
//! Every order has a [`Turn`]. A later turn stops an earlier one between two passages, and the screen drops replies of a
//! turn that is past. Orders do not queue, the newest pending one wins; but those to the `annotator`, of which none may be lost.

mod annotator;
mod engine;
mod orders;
mod reply;
mod work;

pub use engine::Engine;
pub use orders::{Batch, Labelling, Reach, ReadList, Study, Turn, Want};
pub use reply::{AnnotationState, Drawn, Opened, ReadEvent, Reply, SendReply, Written};
