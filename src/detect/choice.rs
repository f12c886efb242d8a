//! Which detector judges, as the user names it: `carried`, `path:FOLDER`, `hf:ORG/MODEL`, `llm`.

use std::fmt;
use std::str::FromStr;

use crate::encode::Source;

/// A detector by its name.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Choice {
    /// The one that the program carries.
    #[default]
    Carried,
    /// A cross-encoder from a folder or the hub.
    Brought {
        /// Where it comes from.
        source: Source,
        /// The name of the class that means support, where the user gives it.
        supports: Option<String>,
    },
    /// The language model that writes and reads, or its recorded replies.
    Llm,
}

/// What stands between a model and the name of its class.
const SUPPORTS: &str = "@supports=";

impl FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim() {
            "carried" => Ok(Choice::Carried),
            "llm" => Ok(Choice::Llm),
            brought if brought.starts_with("path:") || brought.starts_with("hf:") => {
                let (source, supports) = match brought.rsplit_once(SUPPORTS) {
                    Some((_, "")) => return Err(format!("expected the name of a class after `{SUPPORTS}`")),
                    Some((source, label)) => (source, Some(label.to_owned())),
                    None => (brought, None),
                };
                let source = Source::parse(source).map_err(|expected| format!("expected {expected}"))?;
                Ok(Choice::Brought { source, supports })
            }
            _ => Err(format!(
                "expected carried, llm, path:FOLDER or hf:ORG/MODEL, the last two perhaps with {SUPPORTS}CLASS after them"
            )),
        }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Choice::Carried => f.write_str("carried"),
            Choice::Llm => f.write_str("llm"),
            Choice::Brought { source, supports: None } => write!(f, "{source}"),
            Choice::Brought { source, supports: Some(label) } => write!(f, "{source}{SUPPORTS}{label}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_read_back_and_a_wrong_one_says_what_was_expected() {
        for text in ["carried", "llm", "path:my models/nli", "hf:org/nli-base", "path:a@b@supports=LABEL_1"] {
            assert_eq!(text.parse::<Choice>().map(|choice| choice.to_string()).as_deref(), Ok(text));
        }
        for (text, expected) in [
            ("minilm", "expected carried, llm, path:FOLDER or hf:ORG/MODEL"),
            ("", "expected carried"),
            ("hf:nli", "expected ORG/MODEL after `hf:`"),
            ("path:", "expected a folder"),
            ("path:nli@supports=", "expected the name of a class"),
        ] {
            let told = text.parse::<Choice>().unwrap_err();
            assert!(told.contains(expected), "{text}: {told}");
        }
    }
}
