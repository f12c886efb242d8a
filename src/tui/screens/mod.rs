//! The screens, one folder each.
//!
//! In each, `mod.rs` holds the state and the keys; the other files update and draw. `pages` lists the screens.
//! May use: `tui` except `shell`, and `engine` and the layers below it.

pub mod bias;
pub mod compare;
pub mod detectors;
pub mod help;
pub mod labelling;
pub mod lanes;
pub mod palette;
pub mod passage;
pub mod reader;
pub mod statements;
pub mod sycophancy;
pub mod tune;
