//! What expansions there are, and the forms that each can take.

use std::fmt;
use std::str::FromStr;

/// How a question is expanded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// One query a perspective, lists merged in turn.
    Perspectives,
    /// Hypothetical answers beside the question.
    Keqe,
    /// Sentences copied from the first passages, and hypothetical answers, beside the question.
    Csqe,
    /// Weighted terms from the first passages. It makes no text: a dense lane has nothing to embed.
    Rm3,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 4] = [Kind::Perspectives, Kind::Keqe, Kind::Csqe, Kind::Rm3];
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Perspectives => "perspectives",
            Kind::Keqe => "keqe",
            Kind::Csqe => "csqe",
            Kind::Rm3 => "rm3",
        })
    }
}

/// No expansion has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no expansion is called `{0}`; choose perspectives, keqe, csqe or rm3")]
pub struct KindError(String);

impl FromStr for Kind {
    type Err = KindError;

    fn from_str(text: &str) -> Result<Self, KindError> {
        let name = text.trim().to_ascii_lowercase();
        Kind::ALL.into_iter().find(|kind| kind.to_string() == name).ok_or_else(|| KindError(text.to_owned()))
    }
}

/// Which form of an expansion ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// A model wrote the perspectives.
    PerspectivesByModel,
    /// They came with the question.
    PerspectivesGiven,
    /// The question's own statements stand in for them.
    Statements,
    /// A model wrote the answers.
    KeqeByModel,
    /// The question's own statements stand in for them.
    KeqeStatements,
    /// A model copied sentences and wrote answers.
    CsqeByModel,
    /// The sentences likest to the question were taken.
    CsqeExtractive,
    /// Terms of the first passages.
    Rm3,
    /// There was nothing to add.
    QuestionAlone,
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Form::PerspectivesByModel => "perspectives, by the model",
            Form::PerspectivesGiven => "perspectives, from the question set",
            Form::Statements => "perspectives, own statements (no model)",
            Form::KeqeByModel => "KEQE, by the model",
            Form::KeqeStatements => "KEQE, own statements (no model)",
            Form::CsqeByModel => "CSQE, by the model",
            Form::CsqeExtractive => "CSQE, extractive (no model)",
            Form::Rm3 => "RM3",
            Form::QuestionAlone => "the question alone",
        })
    }
}

impl Form {
    /// The method's name alone.
    pub(super) fn method(self) -> &'static str {
        match self {
            Form::PerspectivesByModel | Form::PerspectivesGiven | Form::Statements => "perspectives",
            Form::KeqeByModel | Form::KeqeStatements => "KEQE",
            Form::CsqeByModel | Form::CsqeExtractive => "CSQE",
            Form::Rm3 => "RM3",
            Form::QuestionAlone => "the question alone",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_reads_its_own_name_and_an_unknown_one_is_told_the_choices() {
        for kind in Kind::ALL {
            assert_eq!(kind.to_string().to_uppercase().parse(), Ok(kind));
        }
        assert_eq!(
            "q2d".parse::<Kind>().unwrap_err().to_string(),
            "no expansion is called `q2d`; choose perspectives, keqe, csqe or rm3"
        );
    }
}
