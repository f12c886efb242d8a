//! Recipes: one line says how a lane makes its list, such as `bm25@k1=1.2,b=.75`, `minilm+mmr@.75` or
//! `hybrid+csqe+pap-plus@2+xquad@.5`.
//!
//! A recipe is a retriever with its constants, an engine on another machine (`milvus:URL/COLLECTION`) or a finished run
//! (`run:PATH`), then switches in any order. They run in this order: expansion, projection, merging, re-ranking.

mod base;
mod escape;
mod switches;
#[cfg(test)]
mod tests;
mod text;

pub use base::{Base, Recipe, RunFile, fit_apart, titles};
pub use escape::escaped;
pub use switches::{Diversify, Mmr, Norm, Project, Rerank, Switch, Switches, Toward};
pub use text::RecipeError;
