//! What can be switched on in a lane.

use std::fmt;

use super::escape::escaped;
use crate::expand::Kind;
use crate::measure::share;
use crate::project::Variant;

/// What is switched on; nothing by default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Switches {
    /// Words or vectors added to the query.
    pub expand: Option<Kind>,
    /// The query seen from one perspective.
    pub project: Option<Project>,
    /// The list put in another order. MMR and a diversifier shut each other out.
    pub rerank: Option<Rerank>,
}

/// One of the four keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Switch {
    /// Re-ranking by MMR.
    Mmr,
    /// Query expansion.
    Expand,
    /// Perspective-aware projection.
    Project,
    /// Re-ranking by verdicts.
    Diversify,
}

/// What puts a list in another order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rerank {
    /// By likeness.
    Mmr(Mmr),
    /// By verdicts of the model.
    Diversify(Diversify, f32),
}

/// MMR's options.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mmr {
    /// 1 asks for relevance alone, 0 for difference alone.
    pub lambda: f32,
    /// What scores are divided by.
    pub norm: Norm,
}

/// What a retriever's scores are divided by before MMR weighs them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Norm {
    /// The greatest of the question, as the authors' code does.
    #[default]
    Question,
    /// The greatest over the question set, as the paper words it.
    Dataset,
}

/// A diversifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Diversify {
    /// Covers what is not covered yet.
    Xquad,
    /// Gives every perspective its share of the list.
    Pm2,
}

/// A projection with its options.
#[derive(Clone, Debug, PartialEq)]
pub struct Project {
    /// How passages are scored.
    pub variant: Variant,
    /// From which perspective.
    pub toward: Toward,
}

/// The perspective a query is seen from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Toward {
    /// One of the question's, from 0.
    Perspective(usize),
    /// A text typed by the user.
    Text(String),
}

impl Switches {
    /// MMR's λ the first time it is switched on.
    pub const LAMBDA: f32 = 0.75;
    /// A diversifier's λ the first time it is switched on: coverage counts as much as relevance.
    pub const BALANCE: f32 = 0.5;

    /// Whether one of the four is on.
    pub fn is_on(&self, switch: Switch) -> bool {
        match switch {
            Switch::Mmr => matches!(self.rerank, Some(Rerank::Mmr(_))),
            Switch::Expand => self.expand.is_some(),
            Switch::Project => self.project.is_some(),
            Switch::Diversify => matches!(self.rerank, Some(Rerank::Diversify(..))),
        }
    }

    /// Whether a language model is asked, where there is one.
    pub fn writes(&self) -> bool {
        matches!(self.expand, Some(Kind::Perspectives | Kind::Keqe | Kind::Csqe))
    }

    /// Fills in what is off from `others`.
    pub fn or(self, others: &Switches) -> Self {
        Switches {
            expand: self.expand.or(others.expand),
            project: self.project.or_else(|| others.project.clone()),
            rerank: self.rerank.or(others.rerank),
        }
    }

    /// As short words after the retriever's name.
    pub(super) fn title(&self) -> String {
        let mut title = String::new();
        if let Some(kind) = self.expand {
            title += &format!(" +{kind}");
        }
        if let Some(Project { variant, toward }) = &self.project {
            let toward = match toward {
                Toward::Perspective(i) => format!("→{}", i + 1),
                Toward::Text(text) => format!("→“{text}”"),
            };
            title += &format!(" +{variant}{toward}");
        }
        match self.rerank {
            Some(Rerank::Mmr(Mmr { lambda, .. })) => title += &format!(" +mmr {}", share(f64::from(lambda))),
            Some(Rerank::Diversify(kind, weight)) => {
                title += &format!(" +{kind} {}", share(f64::from(weight)));
            }
            None => {}
        }
        title
    }
}

impl fmt::Display for Switches {
    /// `+csqe+pap-plus@2+mmr@0.75`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(kind) = self.expand {
            write!(f, "+{kind}")?;
        }
        if let Some(Project { variant, toward }) = &self.project {
            match toward {
                Toward::Perspective(i) => write!(f, "+{variant}@{}", i + 1)?,
                Toward::Text(text) => write!(f, "+{variant}@={}", escaped(text))?,
            }
        }
        match self.rerank {
            Some(Rerank::Mmr(Mmr { lambda, norm })) => {
                write!(f, "+mmr@{lambda}{}", if norm == Norm::Dataset { ",norm=dataset" } else { "" })
            }
            Some(Rerank::Diversify(kind, weight)) => write!(f, "+{kind}@{weight}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Diversify {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Diversify::Xquad => "xquad",
            Diversify::Pm2 => "pm2",
        })
    }
}
