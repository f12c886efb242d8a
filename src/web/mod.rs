//! A corpus made from the web: a question is put to a search engine, the pages that it finds are fetched politely, and their main
//! text is cut into passages.
//!
//! Owns the search engines (one file each), which addresses may be asked, robots.txt and the pace, and the journal of what was
//! asked. It must not know about rankings, models or the screen, nor touch the network but through `net`.

mod address;
mod charset;
mod fetch;
mod gather;
mod host;
pub mod search;
#[cfg(test)]
mod site;
mod store;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::time::Duration;

pub use address::{anywhere, public};
pub use gather::{Summary, gather};
pub use search::{Provider, Search};
pub use store::{End, FOLDER, Store, place};

use crate::input::InputError;
use crate::net::Allow;
use crate::net::retry::Backoff;
use crate::work::Stopped;

/// How politely, and how much, is asked.
#[derive(Clone, Copy)]
pub struct Manners {
    /// Between two requests to one host; a longer Crawl-delay counts instead.
    pub delay: Duration,
    /// Bytes of a page, as sent and unpacked.
    pub largest: usize,
    /// How long a server may send nothing at all.
    pub patience: Duration,
    /// How long one page may take in all.
    pub longest: Duration,
    /// The pauses where a server asks for one.
    pub backoff: Backoff,
    /// Which addresses may be asked.
    pub allow: Allow,
}

impl Default for Manners {
    fn default() -> Self {
        Manners {
            delay: Duration::from_secs(1),
            largest: 5_000_000,
            patience: Duration::from_secs(20),
            longest: Duration::from_secs(60),
            backoff: Backoff::default(),
            allow: public,
        }
    }
}

/// Why a corpus was not made. What was fetched is kept.
#[derive(Debug, thiserror::Error)]
pub enum WebError {
    /// The search engine gave no pages.
    #[error("{0}")]
    Search(String),
    /// The list of addresses is not right.
    #[error(transparent)]
    Input(#[from] InputError),
    /// What came could not be kept.
    #[error("{} cannot be written ({reason}); make room there or name another folder with --data-dir", path.display())]
    Keep {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        reason: std::io::Error,
    },
    /// The folder holds something else.
    #[error("{0}")]
    Other(String),
    /// Stopped on request.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}
