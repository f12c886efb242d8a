//! What is known of a corpus that was imported: `about.json`, beside its passages.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::census::Repeats;
use super::import::Source;

/// Where a corpus comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// What it is called.
    pub name: String,
    /// Whether the user gave it that name, so that no other may take it.
    pub given: bool,
    /// The file or folder that it was read from.
    pub source: PathBuf,
    /// What that was recognised as.
    pub recognised: String,
    /// Passages that have the title and text of an earlier one.
    pub repeats: Repeats,
    /// When it was built, in seconds since 1970.
    pub built: u64,
}

impl About {
    /// The name of its file.
    pub const FILE: &str = "about.json";

    /// What is known before it is read.
    pub fn of(source: &Source, recognised: String) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        About {
            name: source.name(),
            given: false,
            source: source.path().into(),
            recognised,
            repeats: Repeats::default(),
            built: now.unwrap_or_default().as_secs(),
        }
    }
}
