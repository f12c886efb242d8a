//! Labels by hand.
//!
//! Owns what annotators decided, and nothing of how it is drawn or ranked with. An annotator's acts are lines of a [`Journal`],
//! which only grows; a [`History`] is the union of any number of journals and says what stands; [`Human`] is what of it counts as
//! a label; a [`Project`] says which passages are to be judged, and by whom. [`agree`] says how far annotators agree, [`formats`]
//! are the files that carry labels in and out.

pub mod agree;
mod decision;
mod disk;
mod entry;
mod file;
pub mod formats;
mod history;
mod human;
mod intake;
mod journal;
mod lock;
mod material;
mod model;
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
pub use intake::{entries, name_for_journal};
pub use journal::{Journal, JournalError, Opened, is_name};
pub use lock::Owner;
pub use material::{Material, Place, Row};
pub use model::Model;
pub use order::{Order, assign, doubt, queue};
pub use project::{Item, Progress, Project};
pub use remap::{Lost, Remap, remap, restate};
