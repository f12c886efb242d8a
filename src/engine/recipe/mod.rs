//! Recipes: one line says how a lane makes its list, such as `bm25@k1=1.2,b=.75`, `minilm+mmr@.75` or
//! `hybrid+csqe+pap-plus@2+xquad@.5`.
//!
//! A recipe is a retriever with its constants, an engine on another machine (`milvus:URL/COLLECTION`) or a finished run
//! (`run:PATH`), then switches in any order. They run in this order: wordings, expansion, projection, merging, fusion,
//! re-ranking.

mod base;
mod switches;
#[cfg(test)]
mod tests;
mod text;

pub use base::{Base, Recipe, RunFile, fit_apart, titles};
pub use escape::escaped;
pub use switches::{Ask, Diversify, Listwise, Mmr, Norm, Project, Rerank, Switch, Switches, Toward};
pub use text::RecipeError;

mod escape {
    //! Percent-encodes texts inside a recipe. Written by hand because decoding must be strict: general decoders let a `%` without two
    //! hexadecimal digits pass, and a recipe with one is wrong.

    /// Encodes a typed text for a recipe: every byte that is not a letter, a digit or one of `-_.~` becomes `%` and two hexadecimal
    /// digits, so that a copied recipe needs no quotes.
    pub fn escaped(text: &str) -> String {
        escaped_but(text, b"-_.~")
    }

    /// Encodes every byte that is not a letter, a digit or one of `kept`.
    pub(super) fn escaped_but(text: &str, kept: &[u8]) -> String {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || kept.contains(&byte);
        text.bytes().map(|b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
    }

    /// Decodes what [`escaped`] wrote, without the blanks typed around it; encoded blanks stay. `None` if a `%` has no two digits or the
    /// bytes are not UTF-8.
    pub(super) fn unescaped(text: &str) -> Option<String> {
        unescaped_whole(text.trim())
    }

    /// Decodes like [`unescaped`] and keeps all blanks.
    pub(super) fn unescaped_whole(text: &str) -> Option<String> {
        let mut bytes = Vec::new();
        let mut rest = text.as_bytes();
        while let Some((first, after)) = rest.split_first() {
            rest = after;
            if *first != b'%' {
                bytes.push(*first);
                continue;
            }
            let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &rest[2..];
        }
        String::from_utf8(bytes).ok()
    }
}
