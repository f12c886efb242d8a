//! What is printed: marks for perspectives, and the results of commands as text, JSON and TSV.
//!
//! It must not compute anything but layout.

pub mod agreement;
pub mod html;
pub mod marks;
mod markup;
pub mod picture;
pub mod plot;
pub mod progress;
pub mod reasons;
pub mod safe;
pub mod search;
mod steps;
pub mod table;
