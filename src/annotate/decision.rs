//! One annotator's answer about one passage and one statement.

use serde::{Deserialize, Serialize};

/// What an annotator holds of one passage against one statement, as it stands now.
///
/// Question and statement are known by their exact text, so an edited statement is another one and keeps no label of the old.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// The annotator's name.
    pub by: String,
    /// The question, word for word.
    pub question: String,
    /// The passage's id in its corpus.
    pub passage: String,
    /// Hash of the passage's title and text, by which a renamed passage is found again.
    pub text: String,
    /// The statement, word for word.
    pub perspective: String,
    /// Does the passage support the statement?
    pub supports: bool,
    /// The words of the passage that show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
    /// A remark.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Marked for another look.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub flagged: bool,
    /// When it was decided, in milliseconds since 1970.
    pub at: u64,
    /// How long the passage was looked at, in milliseconds, where that was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took: Option<u64>,
}
