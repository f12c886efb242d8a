//! One line that says how a lane is made: `bm25@k1=1.2,b=.75`, `minilm+mmr@.75`, `hybrid+csqe+pap-plus@2+xquad@.5`.
//!
//! A retriever with its constants, an engine elsewhere (`milvus:URL/COLLECTION`), or a finished run (`run:PATH`), then switches in any order; they are carried out in the order expansion, projection,
//! merging, re-ranking.

mod brought;
mod read;
mod run;
mod switches;
mod titles;

use std::fmt;
use std::sync::Arc;

pub use read::{RecipeError, escaped};
pub use run::RunFile;
pub use switches::{Diversify, Mmr, Norm, Project, Rerank, Switch, Switches, Toward};
pub use titles::{fit_apart, titles};

use crate::encode::Named;
use crate::expand::Kind;
use crate::project::Variant;
use crate::remote::{By, Remote};
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
#[derive(Clone, Debug, PartialEq)]
pub enum Base {
    /// Terms.
    Bm25(Bm25),
    /// Vectors of the carried encoder.
    MiniLm,
    /// Vectors of an encoder that was brought along.
    Brought(Arc<Named>),
    /// Both, fused by reciprocal rank.
    Hybrid,
    /// An engine on another machine, by its terms or by vectors of the carried encoder.
    Remote(Arc<Remote>),
    /// Nothing: a finished run is read.
    Run(RunFile),
}

impl From<Base> for Recipe {
    /// With nothing switched on.
    fn from(base: Base) -> Self {
        Recipe { base, switches: Switches::default() }
    }
}

impl Base {
    /// Its name alone.
    pub fn name(&self) -> String {
        match self {
            Base::Bm25(_) => "BM25".into(),
            Base::MiniLm => "MiniLM".into(),
            Base::Brought(named) => named.title().into(),
            Base::Hybrid => "Hybrid".into(),
            Base::Remote(remote) => remote.title(),
            Base::Run(file) => file.stem(),
        }
    }

    /// The encoder it was given; none where the carried one serves.
    pub fn model(&self) -> Option<&Arc<Named>> {
        match self {
            Base::Brought(named) => Some(named),
            _ => None,
        }
    }

    /// Whether it ranks by vectors alone.
    pub fn is_dense(&self) -> bool {
        match self {
            Base::MiniLm | Base::Brought(_) => true,
            Base::Remote(remote) => remote.by == By::Vectors,
            Base::Bm25(_) | Base::Hybrid | Base::Run(_) => false,
        }
    }

    /// The engine elsewhere that it asks, if it asks one.
    pub fn remote(&self) -> Option<&Remote> {
        match self {
            Base::Remote(remote) => Some(remote),
            _ => None,
        }
    }

    /// Whether it can search for what this kind of expansion gives: weighted terms are those of the index here.
    pub fn takes(&self, kind: Kind) -> bool {
        kind != Kind::Rm3 || !(self.is_dense() || self.remote().is_some())
    }

    /// Whether it can score by this variant: a server compares one vector with those it holds, and cannot project these.
    pub fn scores_by(&self, variant: Variant) -> bool {
        self.remote().is_none() || !matches!(variant, Variant::CastPlus | Variant::PapPlus)
    }

    /// Why its query cannot be projected, if so.
    pub fn unprojected(&self) -> Option<&'static str> {
        match self {
            Base::Bm25(_) => Some("a projection turns vectors, and BM25 has none; try the MiniLM lane"),
            Base::Run(_) => Some("a finished run has no query to project; MMR and diversifiers re-rank it"),
            Base::Remote(remote) if remote.by == By::Terms => {
                Some("a projection turns vectors, and this lane compares terms; try @by=vectors")
            }
            Base::MiniLm | Base::Brought(_) | Base::Hybrid | Base::Remote(_) => None,
        }
    }

    /// Why its query cannot be expanded, if so.
    pub fn unexpanded(&self) -> Option<&'static str> {
        matches!(self, Base::Run(_))
            .then_some("a finished run has no query to expand; MMR and diversifiers re-rank it")
    }
}

impl Recipe {
    /// The lanes a first run opens.
    pub fn defaults() -> Vec<Self> {
        [Base::Bm25(Bm25::default()), Base::MiniLm, Base::Hybrid].map(Recipe::from).to_vec()
    }

    /// The name at the head of its column.
    pub fn title(&self) -> String {
        let base = match &self.base {
            Base::Bm25(Bm25 { k1, b }) if self.base != Base::Bm25(Bm25::default()) => {
                format!("BM25 k1={k1} b={b}")
            }
            base => base.name(),
        };
        format!("{base}{}", self.switches.title())
    }

    /// The retriever alone.
    pub fn plain(&self) -> Self {
        self.base.clone().into()
    }

    /// Without what puts its list in another order: the part that two lanes can share.
    pub fn retrieval(&self) -> Self {
        Recipe { base: self.base.clone(), switches: Switches { rerank: None, ..self.switches.clone() } }
    }

    /// The encoder whose vectors it reads; none where the carried one serves.
    pub fn model(&self) -> Option<&Named> {
        self.base.model().map(AsRef::as_ref)
    }

    /// Whether it needs the corpus's vectors. MMR reads them too: they say which passages are alike.
    pub fn needs_vectors(&self) -> bool {
        matches!(self.base, Base::MiniLm | Base::Brought(_) | Base::Hybrid)
            || matches!(self.switches.rerank, Some(Rerank::Mmr(_)))
    }

    /// The run it reads, if it reads one.
    pub fn run(&self) -> Option<&RunFile> {
        match &self.base {
            Base::Run(file) => Some(file),
            _ => None,
        }
    }

    /// Whether it waits for a model, the corpus's vectors, a network or a large file, and so must not hold up terms.
    pub fn is_slow(&self) -> bool {
        !matches!(self.base, Base::Bm25(_)) || self.switches != Switches::default()
    }

    /// One of its scores, with the decimals that it is worth showing with.
    pub fn score(&self, score: f32) -> String {
        let decimals = match (&self.base, self.switches.expand) {
            // Some systems score in thousands.
            (Base::Run(_), _) if score.abs() >= 1e3 => 0,
            (_, Some(crate::expand::Kind::Perspectives)) => 4,
            (Base::Bm25(_), _) => 2,
            (Base::Remote(remote), _) if remote.by == By::Terms => 2,
            (Base::MiniLm | Base::Brought(_) | Base::Remote(_) | Base::Run(_), _) => 3,
            (Base::Hybrid, _) => 4,
        };
        format!("{score:.decimals$}")
    }
}

impl fmt::Display for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.base {
            Base::Bm25(Bm25 { k1, b }) => write!(f, "bm25@k1={k1},b={b}")?,
            Base::MiniLm => f.write_str("minilm")?,
            Base::Brought(named) => f.write_str(&brought::written(named))?,
            Base::Hybrid => f.write_str("hybrid")?,
            Base::Remote(remote) => f.write_str(&read::kept(&remote.to_string(), b"-_.~/:[]@="))?,
            Base::Run(file) => write!(f, "{file}")?,
        }
        write!(f, "{}", self.switches)
    }
}

#[cfg(test)]
mod tests;
