//! Labels by hand.
//!
//! Owns what annotators decided, and nothing of how it is drawn, ranked or measured. An annotator's acts are lines of a [`Journal`],
//! which only grows; a [`History`] is the union of any number of journals and says what stands; [`Human`] is what of it counts as
//! a label; a [`Project`] says which passages are to be judged, and by whom.

mod decision;
mod disk;
mod entry;
mod file;
mod history;
mod human;
mod journal;
mod lock;
mod order;
mod project;
mod remap;
mod steps;
#[cfg(test)]
mod testing;

pub use decision::Decision;
pub use entry::{Act, Entry, VERSION, View, text_hash};
pub use file::{Read, repair};
pub use history::{History, Key};
pub use human::{Human, journals};
pub use journal::{Journal, JournalError, Opened, is_name};
pub use lock::Owner;
pub use order::{Order, assign, doubt, queue};
pub use project::{Item, Progress, Project};
pub use remap::{Lost, Remap, remap, restate};
