//! One line that says how a lane is made: `bm25@k1=1.2,b=.75`, `minilm`, `hybrid`.

use std::fmt;
use std::str::FromStr;

use crate::retrieve::bm25::Bm25;

/// How a lane is made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Recipe {
    /// Terms.
    Bm25(Bm25),
    /// Vectors of the carried encoder.
    MiniLm,
    /// Both, fused by reciprocal rank.
    Hybrid,
}

impl Recipe {
    /// The lanes a first run opens.
    pub fn defaults() -> Vec<Self> {
        vec![Recipe::Bm25(Bm25::default()), Recipe::MiniLm, Recipe::Hybrid]
    }

    /// The name at the head of its column.
    pub fn title(&self) -> String {
        match self {
            Recipe::Bm25(constants) if *constants == Bm25::default() => "BM25".into(),
            Recipe::Bm25(Bm25 { k1, b }) => format!("BM25 k1={k1} b={b}"),
            Recipe::MiniLm => "MiniLM".into(),
            Recipe::Hybrid => "Hybrid".into(),
        }
    }

    /// Whether it needs the corpus's vectors.
    pub fn needs_vectors(&self) -> bool {
        !matches!(self, Recipe::Bm25(_))
    }

    /// Decimals its scores are worth showing with.
    pub fn decimals(&self) -> usize {
        match self {
            Recipe::Bm25(_) => 2,
            Recipe::MiniLm => 3,
            Recipe::Hybrid => 4,
        }
    }
}

impl fmt::Display for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Recipe::Bm25(Bm25 { k1, b }) => write!(f, "bm25@k1={k1},b={b}"),
            Recipe::MiniLm => f.write_str("minilm"),
            Recipe::Hybrid => f.write_str("hybrid"),
        }
    }
}

/// Why a recipe cannot be followed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the lane `{recipe}`: expected {expected}")]
pub struct RecipeError {
    recipe: String,
    expected: String,
}

impl FromStr for Recipe {
    type Err = RecipeError;

    fn from_str(text: &str) -> Result<Self, RecipeError> {
        let wrong = |expected: String| RecipeError { recipe: text.to_owned(), expected };
        let (engine, options) = text.trim().split_once('@').unwrap_or((text.trim(), ""));
        match (engine.to_ascii_lowercase().as_str(), options) {
            ("bm25", options) => constants(options).map(Recipe::Bm25).map_err(wrong),
            ("minilm", "") => Ok(Recipe::MiniLm),
            ("hybrid", "") => Ok(Recipe::Hybrid),
            ("minilm" | "hybrid", _) => Err(wrong(format!("`{engine}` without options"))),
            _ => Err(wrong("bm25, bm25@k1=1.2,b=.75, minilm or hybrid".into())),
        }
    }
}

fn constants(options: &str) -> Result<Bm25, String> {
    let mut constants = Bm25::default();
    for option in options.split(',').filter(|option| !option.is_empty()) {
        let number = |value: &str| value.parse::<f32>().ok().filter(|number| number.is_finite());
        match option.split_once('=').map(|(name, value)| (name.trim(), number(value.trim()))) {
            Some(("k1", Some(k1))) if k1 >= 0.0 => constants.k1 = k1,
            Some(("b", Some(b))) if (0.0..=1.0).contains(&b) => constants.b = b,
            _ => return Err(format!("k1=NUMBER (0 or more) or b=NUMBER (0 to 1), found `{option}`")),
        }
    }
    Ok(constants)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recipe_that_is_written_is_read_back_the_same() {
        for text in ["bm25", "bm25@k1=1.2,b=.75", "BM25@b=1", "minilm", " hybrid "] {
            let recipe: Recipe = text.parse().unwrap();
            assert_eq!(recipe.to_string().parse(), Ok(recipe));
        }
    }

    #[test]
    fn a_wrong_recipe_says_what_was_expected() {
        for text in ["", "bm52", "bm25@k2=1", "bm25@b=1.5", "bm25@k1=nan", "bm25@k1=-1", "minilm@x"] {
            assert!(text.parse::<Recipe>().is_err(), "{text}");
        }
    }
}
