//! Families of encoders, and the models that have a short name: what their authors do with texts where the files do not say.

use super::card::{Pooling, Similarity, Title};

/// How a family reads texts.
#[derive(Debug, PartialEq)]
pub struct Family {
    /// Its name in a recipe: `@family=NAME`.
    pub name: &'static str,
    /// How rows become a vector.
    pub pooling: Pooling,
    /// How vectors are compared.
    pub similarity: Similarity,
    /// What stands before a question.
    pub query: &'static str,
    /// What stands before a passage.
    pub passage: &'static str,
    /// Whether pooling counts the tokens of what stands before.
    pub counts_prefix: bool,
    /// What becomes of a passage's title.
    pub title: Title,
}

/// A model with a short name.
#[derive(Debug, PartialEq)]
pub struct Entry {
    /// The short name.
    pub name: &'static str,
    /// Its family.
    pub family: &'static Family,
    /// Its repository on the hub; for two towers the questions', then the passages'.
    pub repositories: &'static [&'static str],
    /// Its licence, as its authors state it.
    pub licence: &'static str,
    /// Roughly what is downloaded, in MB.
    pub megabytes: u32,
}

const PLAIN: Family = Family {
    name: "mean",
    pooling: Pooling::Mean,
    similarity: Similarity::Cosine,
    query: "",
    passage: "",
    counts_prefix: true,
    title: Title::Before,
};
const BGE_QUERY: &str = "Represent this sentence for searching relevant passages: ";

static MEAN: Family = PLAIN;
static DPR: Family =
    Family { name: "dpr", pooling: Pooling::Cls, similarity: Similarity::Dot, title: Title::Pair, ..PLAIN };
static CONTRIEVER: Family = Family { name: "contriever", similarity: Similarity::Dot, ..PLAIN };
static TART: Family = Family {
    name: "tart",
    similarity: Similarity::Dot,
    query: "retrieve a passage that answers this question [SEP] ",
    ..PLAIN
};
static SIMCSE_SUP: Family = Family { name: "simcse-sup", pooling: Pooling::Pooler, ..PLAIN };
static SIMCSE_UNSUP: Family = Family { name: "simcse-unsup", pooling: Pooling::Cls, ..PLAIN };
static UAE: Family = Family { name: "uae", pooling: Pooling::Cls, query: BGE_QUERY, ..PLAIN };
static BGE: Family = Family { name: "bge", pooling: Pooling::Cls, query: BGE_QUERY, ..PLAIN };
static E5: Family = Family { name: "e5", query: "query: ", passage: "passage: ", ..PLAIN };
static GTE: Family = Family { name: "gte", ..PLAIN };
static INSTRUCTOR: Family = Family {
    name: "instructor",
    query: "Represent the question for retrieving supporting documents: ",
    passage: "Represent the document for retrieval: ",
    counts_prefix: false,
    ..PLAIN
};

/// All families.
pub static FAMILIES: [&Family; 11] =
    [&MEAN, &DPR, &CONTRIEVER, &TART, &SIMCSE_SUP, &SIMCSE_UNSUP, &UAE, &BGE, &E5, &GTE, &INSTRUCTOR];

const fn entry(
    name: &'static str,
    family: &'static Family,
    repositories: &'static [&'static str],
    licence: &'static str,
    megabytes: u32,
) -> Entry {
    Entry { name, family, repositories, licence, megabytes }
}

const NON_COMMERCIAL: &str = "CC-BY-NC-4.0";
const UNSTATED: &str = "see its card";

/// All models with a short name.
pub static MODELS: [Entry; 21] = [
    entry(
        "dpr",
        &DPR,
        &["facebook/dpr-question_encoder-single-nq-base", "facebook/dpr-ctx_encoder-single-nq-base"],
        NON_COMMERCIAL,
        880,
    ),
    entry(
        "dpr-multi",
        &DPR,
        &["facebook/dpr-question_encoder-multiset-base", "facebook/dpr-ctx_encoder-multiset-base"],
        NON_COMMERCIAL,
        880,
    ),
    entry("contriever", &CONTRIEVER, &["facebook/contriever"], UNSTATED, 440),
    entry("contriever-msmarco", &CONTRIEVER, &["facebook/contriever-msmarco"], UNSTATED, 440),
    entry("tart-dual", &TART, &["orionweller/tart-dual-contriever-msmarco"], UNSTATED, 440),
    entry("simcse-sup", &SIMCSE_SUP, &["princeton-nlp/sup-simcse-bert-base-uncased"], UNSTATED, 440),
    entry("simcse-unsup", &SIMCSE_UNSUP, &["princeton-nlp/unsup-simcse-bert-base-uncased"], UNSTATED, 440),
    entry("uae-large", &UAE, &["WhereIsAI/UAE-Large-V1"], "MIT", 1340),
    entry("instructor-base", &INSTRUCTOR, &["hkunlp/instructor-base"], "Apache-2.0", 440),
    entry("instructor-large", &INSTRUCTOR, &["hkunlp/instructor-large"], "Apache-2.0", 1340),
    entry("instructor-xl", &INSTRUCTOR, &["hkunlp/instructor-xl"], "Apache-2.0", 4970),
    entry("bge-small", &BGE, &["BAAI/bge-small-en-v1.5"], "MIT", 135),
    entry("bge-base", &BGE, &["BAAI/bge-base-en-v1.5"], "MIT", 440),
    entry("bge-large", &BGE, &["BAAI/bge-large-en-v1.5"], "MIT", 1340),
    entry("e5-small", &E5, &["intfloat/e5-small-v2"], "MIT", 135),
    entry("e5-base", &E5, &["intfloat/e5-base-v2"], "MIT", 440),
    entry("e5-large", &E5, &["intfloat/e5-large-v2"], "MIT", 1340),
    entry("gte-small", &GTE, &["thenlper/gte-small"], "MIT", 70),
    entry("gte-base", &GTE, &["thenlper/gte-base"], "MIT", 220),
    entry("minilm-l6", &MEAN, &["sentence-transformers/all-MiniLM-L6-v2"], "Apache-2.0", 92),
    entry("mpnet", &MEAN, &["sentence-transformers/all-mpnet-base-v2"], "Apache-2.0", 440),
];

/// A family by its name.
pub fn family(name: &str) -> Option<&'static Family> {
    FAMILIES.into_iter().find(|family| family.name == name)
}

/// A model by its short name.
pub fn model(name: &str) -> Option<&'static Entry> {
    MODELS.iter().find(|entry| entry.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_there_once_and_none_is_a_word_of_the_recipes_own() {
        let mut names: Vec<&str> = MODELS.iter().map(|entry| entry.name).collect();
        names.extend(["bm25", "minilm", "hybrid"]);
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
        assert!(MODELS.iter().all(|entry| model(entry.name) == Some(entry)));
        assert!(FAMILIES.iter().all(|known| family(known.name) == Some(*known)));
    }

    #[test]
    fn only_two_towers_have_two_repositories_and_every_one_has_an_owner() {
        for entry in &MODELS {
            let towers = if entry.family.title == Title::Pair { 2 } else { 1 };
            assert_eq!(entry.repositories.len(), towers, "{}", entry.name);
            assert!(entry.repositories.iter().all(|name| name.split('/').count() == 2));
        }
    }
}
