//! `eval reader`: what is read from the first k. Questions that bring passages and gold answers are read (Oh and Thorne); a question
//! of two sides is answered by the stance that its passages take together.

mod cases;
mod figures;
mod stance;

use super::super::args::{Common, Eval};
use crate::read::files;
use crate::report::table::Table;

/// The table of a measure a row over k, for the curves.
pub const OVER_K: &str = "reader-over-k";

/// The table, or nothing where the user interrupted.
pub fn table(common: &Common, args: &Eval) -> anyhow::Result<Option<Table>> {
    match common.questions.first() {
        Some(path) if files::is_reading(path)? => cases::table(common, args, path),
        _ => stance::table(common, args),
    }
}
