//! A session: what a person did in the explorer, with the time that passed before each act. Owns the form of its file and the
//! replay; must not know a clock or a terminal.
//!
//! A file of lines, one JSON object each. The first says with what to open; every other is one act after a pause: keys as scripts
//! have them, text that was pasted, or words to be said beside what is seen.
//!
//! ```text
//! {"parallax-session":1,"size":"140x40","label-source":"gold","lanes":["bm25","minilm"],"k":5}
//! {"after":2000,"say":"Two retrievers answer the same question."}
//! {"after":80,"keys":"Should zoos be banned?<Enter><Wait>"}
//! ```
//!
//! `after` counts milliseconds, before each key of several. `<Wait>` holds until all lanes and verdicts have come; what follows
//! counts from there.

mod read;
mod record;
mod replay;

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Size;
use super::script::Step;

pub use read::{read, tour};
pub use record::{Recorder, unrecorded};
pub use replay::Replay;

/// The version of the format.
const VERSION: u32 = 1;

/// No pause has more milliseconds, so that a slip of the pen is no endless wait.
const LONGEST: u64 = 24 * 60 * 60 * 1000;

/// Most acts of a session: a key a second for more than a day. They are held in memory.
const ACTS: usize = 100_000;

/// Most bytes of a session's lines.
const BYTES: usize = 8 << 20;

/// With what a session opens. What is absent is the default, and the theme that of whoever watches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Head {
    /// The version of the format.
    #[serde(rename = "parallax-session")]
    version: u32,
    /// Columns and rows of the terminal.
    #[serde(with = "in_words")]
    pub size: Size,
    /// How it looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub theme: Option<String>,
    /// As `--corpus`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub corpus: Option<PathBuf>,
    /// As `--questions`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub questions: Option<PathBuf>,
    /// As `--labels`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<String>,
    /// As `--detector`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detector: Option<String>,
    /// As `--label-source`.
    pub label_source: String,
    /// As `--lane`, left to right.
    pub lanes: Vec<String>,
    /// As `-k`.
    pub k: u16,
    /// The question that was open.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub question: String,
    /// Its statements, where they were the user's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub perspectives: Vec<String>,
    /// How wide the lanes were, 1000 for one that nobody dragged, where a border was dragged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub widths: Vec<u32>,
    /// A configuration with the keys and the layout that held, where they were not the usual ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<String>,
}

/// One act.
#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    /// A step of a key script.
    Step(Step),
    /// Text was pasted.
    Paste(String),
    /// Words that stand beside what is seen, until the next ones.
    Say(String),
}

/// What a person did, and what to open before it is done again.
#[derive(Clone, Debug, PartialEq)]
pub struct Session {
    /// What to open.
    pub head: Head,
    /// Every act, with the pause before it.
    pub acts: Vec<(Duration, Act)>,
}

/// One act as a line of a file: after a pause, one of the three.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    after: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    keys: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pasted: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    say: Option<String>,
}

/// A size as `140x40`.
mod in_words {
    use super::Size;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(size: &Size, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&format_args!("{}x{}", size.width, size.height))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Size, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests;
