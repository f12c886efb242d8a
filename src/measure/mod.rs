//! What a ranking is worth: every measure Parallax prints, and the files judgements come in.
//!
//! Pure functions over rankings and labels. Nothing here retrieves, judges, opens a file by name or
//! prints; readers take any [`std::io::BufRead`], so that compression stays with whoever opens the file.
//!
//! | file | owns |
//! | --- | --- |
//! | [`name`] | names such as `nDCG@10`, `alpha_nDCG(alpha=0.3)@5` |
//! | [`score`] | one name and one question to one value |
//! | [`support`] | which perspectives a passage supports; \|V\| |
//! | [`mrecall`], [`prec`], [`cover`], [`lean`], [`precall`] | the perspective measures |
//! | [`graded`], [`ndcg`] | trec_eval's measures |
//! | [`sides`] | which sides the gold passages at the top are on |
//! | [`subtopic`], [`alpha_ndcg`] | ndeval's measures |
//! | [`exposure`] | order-aware bias |
//! | [`attributes`] | whose passages the top is made of, against the corpus |
//! | [`uncertainty`] | what a measure of model labels is worth |
//! | [`compare`], [`significance`], [`agreement`] | two rankings, two lanes, two annotators |
//! | [`trec`] | runs and judgements in and out |

pub mod agreement;
pub mod alpha_ndcg;
pub mod attributes;
pub mod compare;
pub mod cover;
pub mod detection;
pub mod exposure;
pub mod graded;
pub mod lean;
pub mod mrecall;
pub mod name;
pub mod ndcg;
pub mod prec;
pub mod precall;
pub mod score;
pub mod seeded;
pub mod sides;
pub mod significance;
pub mod subtopic;
pub mod support;
pub mod trec;
pub mod uncertainty;

#[cfg(test)]
mod properties;

pub use name::{Measure, MeasureNameError};
pub use support::{Measured, PerspectiveCount, PerspectiveError, SupportSet};
