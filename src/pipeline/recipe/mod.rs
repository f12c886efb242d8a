//! One line that says how a lane is made: `bm25@k1=1.2,b=.75`, `minilm+mmr@.75`, `hybrid+csqe+pap-plus@2+xquad@.5`.
//!
//! A retriever with its constants, then switches in any order; they are carried out in the order expansion, projection,
//! merging, re-ranking.

mod read;
mod switches;

use std::fmt;

pub use read::{RecipeError, escaped};
pub use switches::{Diversify, Mmr, Norm, Project, Rerank, Switch, Switches, Toward};

use crate::retrieve::bm25::Bm25;

/// How a lane is made.
#[derive(Clone, Debug, PartialEq)]
pub struct Recipe {
    /// What searches.
    pub base: Base,
    /// What is switched on.
    pub switches: Switches,
}

/// What searches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Base {
    /// Terms.
    Bm25(Bm25),
    /// Vectors of the carried encoder.
    MiniLm,
    /// Both, fused by reciprocal rank.
    Hybrid,
}

impl From<Base> for Recipe {
    /// With nothing switched on.
    fn from(base: Base) -> Self {
        Recipe { base, switches: Switches::default() }
    }
}

impl Base {
    /// Its name alone.
    pub fn name(self) -> &'static str {
        match self {
            Base::Bm25(_) => "BM25",
            Base::MiniLm => "MiniLM",
            Base::Hybrid => "Hybrid",
        }
    }
}

impl Recipe {
    /// The lanes a first run opens.
    pub fn defaults() -> Vec<Self> {
        [Base::Bm25(Bm25::default()), Base::MiniLm, Base::Hybrid].map(Recipe::from).to_vec()
    }

    /// The name at the head of its column.
    pub fn title(&self) -> String {
        let base = match self.base {
            Base::Bm25(Bm25 { k1, b }) if self.base != Base::Bm25(Bm25::default()) => {
                format!("BM25 k1={k1} b={b}")
            }
            base => base.name().into(),
        };
        format!("{base}{}", self.switches.title())
    }

    /// The retriever alone.
    pub fn plain(&self) -> Self {
        self.base.into()
    }

    /// Without what puts its list in another order: the part that two lanes can share.
    pub fn retrieval(&self) -> Self {
        Recipe { switches: Switches { rerank: None, ..self.switches.clone() }, ..*self }
    }

    /// Whether it needs the corpus's vectors. MMR reads them too: they say which passages are alike.
    pub fn needs_vectors(&self) -> bool {
        !matches!(self.base, Base::Bm25(_)) || matches!(self.switches.rerank, Some(Rerank::Mmr(_)))
    }

    /// Whether it waits for a model, the corpus's vectors or a network, and so must not hold up terms.
    pub fn is_slow(&self) -> bool {
        !matches!(self.base, Base::Bm25(_)) || self.switches != Switches::default()
    }

    /// Decimals its scores are worth showing with.
    pub fn decimals(&self) -> usize {
        match (self.base, self.switches.expand) {
            (_, Some(crate::expand::Kind::Perspectives)) => 4,
            (Base::Bm25(_), _) => 2,
            (Base::MiniLm, _) => 3,
            (Base::Hybrid, _) => 4,
        }
    }
}

impl fmt::Display for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.base {
            Base::Bm25(Bm25 { k1, b }) => write!(f, "bm25@k1={k1},b={b}")?,
            Base::MiniLm => f.write_str("minilm")?,
            Base::Hybrid => f.write_str("hybrid")?,
        }
        write!(f, "{}", self.switches)
    }
}

#[cfg(test)]
mod tests;
