//! The threads that run the explorer's queries.
//!
//! | thread | does |
//! | --- | --- |
//! | `terms` | opens the corpus, then ranks the lanes of the newest query that need no vectors |
//! | `models` | ranks the other lanes, then judges the first k rank by rank, asks every lane as either side, and judges deeper |
//! | `server_lanes` | runs beside `models`: ranks the lanes that wait for a server |
//! | `embedder` | embeds a corpus that has no vectors yet |
//! | `reader` | explains the rank of the open passage, and finds the sentence that its verdict rests on |
//! | `annotator` | writes labels by hand to their journal |
//! | `batch_worker` | makes many lists: a lane in all forms of one switch, lanes asked in many wordings or over the question set; scores and judges edited passages; reads lists passage by passage; counts metadata |
//! | `model-N` | one per core: embeds passages and judges pairs, for `embedder` and `models` |
//!
//! Every order has a [`Turn`]. A later turn stops an earlier one between two passages, and the screen drops replies to an earlier
//! turn. A new order replaces one that has not begun. Only the orders to the `annotator` queue, because none may be lost.

mod annotator;
mod engine;
mod orders;
mod reply;
mod work;

pub use engine::Engine;
pub use orders::{Batch, Labelling, Reach, ReadList, SetLabel, SetTo, Study, Turn, Want};
pub use reply::{
    AnnotationState, Drawn, LabelsChanged, Opened, ReadEvent, Reply, SendReply, Shelved, Written,
};
