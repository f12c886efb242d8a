//! Models by name: `contriever`, `hf:ORG/MODEL`, `path:FOLDER`, and how the families they belong to read texts.
//!
//! A family supplies the settings that a model's own files lack, as its authors document them.

use std::fmt;
use std::path::{Path, PathBuf};

use super::encoder::Similarity;
use crate::input::{Expected, InputError};

/// The way in which the token rows of a text become its vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pooling {
    /// The first token's row.
    Cls,
    /// The first token's row through BERT's pooler, a product and tanh.
    Pooler,
    /// The mean of all rows.
    Mean,
    /// The maximum of every column.
    Max,
    /// The last token's row.
    Last,
}

/// How a passage's title is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Title {
    /// Before the text, separated by a space.
    Before,
    /// Title and text as a pair.
    Pair,
}

/// How a family reads texts.
#[derive(Debug, PartialEq)]
pub struct Family {
    /// Its name in a recipe: `@family=NAME`.
    pub name: &'static str,
    /// How rows become a vector.
    pub pooling: Pooling,
    /// How vectors are compared.
    pub similarity: Similarity,
    /// The prefix of a question.
    pub query: &'static str,
    /// The prefix of a passage.
    pub passage: &'static str,
    /// Whether pooling includes the tokens of the prefix.
    pub counts_prefix: bool,
    /// How a passage's title is read.
    pub title: Title,
    /// Whether a vector is centred before `@dim` shortens it, as the authors of Nomic do.
    pub centred: bool,
    /// How its weights of terms are made, if it is learned sparse; everything above is then for encoders alone.
    pub sparse: Option<Sparse>,
    /// Whether it keeps a vector for every token; everything above is then for encoders alone.
    pub late: bool,
}

/// How a learned sparse model makes the weights of terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sparse {
    /// Whether a query takes its weights from a table of idf, without the network.
    pub table: bool,
    /// Whether the logarithm is taken twice: log(1 + log(1 + ReLU)). A model's own file overrides it.
    pub twice: bool,
}

/// A model with a short name.
#[derive(Debug, PartialEq)]
pub struct Entry {
    /// The short name.
    pub name: &'static str,
    /// Its family.
    pub family: &'static Family,
    /// Its repository on the hub. A model of two towers has two: the one for questions, then the one for passages.
    pub repositories: &'static [&'static str],
    /// The licence its authors state.
    pub licence: &'static str,
    /// Approximate size of the download, in MB.
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
    centred: false,
    sparse: None,
    late: false,
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
static ANCE: Family = Family { name: "ance", pooling: Pooling::Cls, similarity: Similarity::Dot, ..PLAIN };
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

static CLS: Family = Family { name: "cls", pooling: Pooling::Cls, ..PLAIN };
static NOMIC: Family =
    Family { name: "nomic", query: "search_query: ", passage: "search_document: ", centred: true, ..PLAIN };
static ARCTIC: Family = Family { name: "arctic", pooling: Pooling::Cls, query: "query: ", ..PLAIN };
static QWEN3: Family = Family {
    name: "qwen3",
    pooling: Pooling::Last,
    query: "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:",
    ..PLAIN
};
static GEMMA: Family = Family {
    name: "gemma",
    query: "task: search result | query: ",
    passage: "title: none | text: ",
    ..PLAIN
};

static SPLADE: Family =
    Family { name: "splade", sparse: Some(Sparse { table: false, twice: false }), ..PLAIN };
static OS_DOC: Family = Family { name: "os-doc", sparse: Some(Sparse { table: true, twice: true }), ..PLAIN };

static COLBERT: Family = Family { name: "colbert", late: true, ..PLAIN };

/// All families.
pub static FAMILIES: [&Family; 20] = [
    &MEAN,
    &CLS,
    &DPR,
    &ANCE,
    &CONTRIEVER,
    &TART,
    &SIMCSE_SUP,
    &SIMCSE_UNSUP,
    &UAE,
    &BGE,
    &E5,
    &GTE,
    &INSTRUCTOR,
    &NOMIC,
    &ARCTIC,
    &QWEN3,
    &GEMMA,
    &SPLADE,
    &OS_DOC,
    &COLBERT,
];

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
const SHARE_ALIKE: &str = "CC-BY-NC-SA-4.0";
const UNSTATED: &str = "see its card";

/// All models with a short name.
pub static MODELS: [Entry; 39] = [
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
    entry("simcse-large", &SIMCSE_SUP, &["princeton-nlp/sup-simcse-bert-large-uncased"], UNSTATED, 1340),
    entry("ance", &ANCE, &["sentence-transformers/msmarco-roberta-base-ance-firstp"], UNSTATED, 500),
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
    entry("gte-modernbert", &CLS, &["Alibaba-NLP/gte-modernbert-base"], "Apache-2.0", 300),
    entry("nomic-v1.5", &NOMIC, &["nomic-ai/nomic-embed-text-v1.5"], "Apache-2.0", 550),
    entry("arctic-m-v2", &ARCTIC, &["Snowflake/snowflake-arctic-embed-m-v2.0"], "Apache-2.0", 1220),
    entry("bge-m3", &CLS, &["BAAI/bge-m3"], "MIT", 2290),
    entry("e5-multilingual-small", &E5, &["intfloat/multilingual-e5-small"], "MIT", 490),
    entry("e5-multilingual-base", &E5, &["intfloat/multilingual-e5-base"], "MIT", 1130),
    entry("e5-multilingual-large", &E5, &["intfloat/multilingual-e5-large"], "MIT", 2260),
    entry("qwen3-embedding-0.6b", &QWEN3, &["Qwen/Qwen3-Embedding-0.6B"], "Apache-2.0", 1200),
    entry("embeddinggemma", &GEMMA, &["google/embeddinggemma-300m"], "Gemma terms of use", 1250),
    entry("splade-v3", &SPLADE, &["naver/splade-v3"], SHARE_ALIKE, 440),
    entry("splade-pp", &SPLADE, &["naver/splade-cocondenser-ensembledistil"], SHARE_ALIKE, 440),
    entry(
        "os-sparse-doc-v3",
        &OS_DOC,
        &["opensearch-project/opensearch-neural-sparse-encoding-doc-v3-distill"],
        "Apache-2.0",
        270,
    ),
    // The same models re-rank: `encode::reranker` has their names too.
    entry("colbertv2", &COLBERT, &["colbert-ir/colbertv2.0"], "MIT", 440),
    entry("answerai-colbert-small", &COLBERT, &["answerdotai/answerai-colbert-small-v1"], "Apache-2.0", 135),
    entry("gte-moderncolbert", &COLBERT, &["lightonai/GTE-ModernColBERT-v1"], "Apache-2.0", 600),
    entry("bge-m3-multi", &COLBERT, &["BAAI/bge-m3"], "MIT", 2290),
];

/// A family by its name.
pub fn family(name: &str) -> Option<&'static Family> {
    FAMILIES.into_iter().find(|family| family.name == name)
}

/// A model by its short name.
pub fn model(name: &str) -> Option<&'static Entry> {
    MODELS.iter().find(|entry| entry.name == name)
}

/// A model that a recipe names, with options.
#[derive(Clone, Debug, PartialEq)]
pub struct Named {
    /// Its origin.
    pub source: Source,
    /// The family, if the user names one.
    pub given: Option<&'static Family>,
    /// A question prefix that overrides the model's. [`PERSPECTIVE`]: an instruction made of each query's perspective.
    pub query: Option<String>,
    /// A passage prefix that overrides the model's.
    pub passage: Option<String>,
    /// How many of a vector's first numbers are kept (Matryoshka, Kusupati et al. 2022); `None` for all.
    pub dim: Option<usize>,
}

/// The value of the option `query` that stands for each query's own perspective.
pub const PERSPECTIVE: &str = "perspective";

/// The origin of a model.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// A model with a short name.
    Known(&'static Entry),
    /// A repository on the hub.
    Hub(String),
    /// A folder.
    Folder(String),
}

/// The folders of a model's networks; the same folder twice if one network reads both questions and passages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Towers {
    /// The network that reads questions.
    pub queries: PathBuf,
    /// The network that reads passages.
    pub passages: PathBuf,
}

impl Source {
    /// Reads `contriever`, `hf:ORG/MODEL` or `path:FOLDER`.
    ///
    /// # Errors
    /// The text has none of these forms.
    pub fn parse(text: &str) -> Result<Self, Expected> {
        if let Some(path) = text.strip_prefix("path:") {
            return match path.trim() {
                "" => Err("a folder after `path:`".into()),
                path => Ok(Source::Folder(path.to_owned())),
            };
        }
        if let Some(name) = text.strip_prefix("hf:") {
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            let part = |part: &str| !part.is_empty() && !part.starts_with('.') && part.chars().all(plain);
            let parts: Vec<&str> = name.split('/').collect();
            return match parts.as_slice() {
                [owner, model] if part(owner) && part(model) => Ok(Source::Hub(name.to_owned())),
                _ => Err(format!("ORG/MODEL after `hf:`, found `{name}`").into()),
            };
        }
        let entry = model(&text.to_ascii_lowercase());
        entry.map(Source::Known).ok_or_else(|| {
            let names: Vec<&str> = MODELS.iter().map(|entry| entry.name).collect();
            format!("hf:ORG/MODEL, path:FOLDER, or one of {}", names.join(", ")).into()
        })
    }

    /// Its repositories on the hub.
    pub fn repositories(&self) -> Vec<&str> {
        match self {
            Source::Known(entry) => entry.repositories.to_vec(),
            Source::Hub(name) => vec![name],
            Source::Folder(_) => Vec::new(),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Known(entry) => f.write_str(entry.name),
            Source::Hub(name) => write!(f, "hf:{name}"),
            Source::Folder(path) => write!(f, "path:{path}"),
        }
    }
}

impl From<Source> for Named {
    /// The model with its own options.
    fn from(source: Source) -> Self {
        Named { source, given: None, query: None, passage: None, dim: None }
    }
}

impl Named {
    /// The family, from the user or from the list of known models.
    pub fn family(&self) -> Option<&'static Family> {
        self.given.or(match &self.source {
            Source::Known(entry) => Some(entry.family),
            _ => None,
        })
    }

    /// How its weights of terms are made; `None` for an encoder.
    pub fn sparse(&self) -> Option<Sparse> {
        self.family()?.sparse
    }

    /// Whether it keeps a vector for every token.
    pub fn is_late(&self) -> bool {
        self.family().is_some_and(|family| family.late)
    }

    /// Whether every query has an instruction of its own, made of its perspective.
    pub fn instructs(&self) -> bool {
        self.query.as_deref() == Some(PERSPECTIVE)
    }

    /// A short name for the user: the last part of its source.
    pub fn title(&self) -> &str {
        match &self.source {
            Source::Known(entry) => entry.name,
            Source::Hub(name) | Source::Folder(name) => {
                name.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next().unwrap_or(name)
            }
        }
    }

    /// The title as part of a file name.
    pub fn slug(&self) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        self.title().chars().take(40).map(plain).collect()
    }

    /// The folders of its networks; models from the hub are below `models`.
    ///
    /// # Errors
    /// It was not fetched yet, or the folder does not exist.
    pub fn towers(&self, models: &Path) -> Result<Towers, InputError> {
        let one = |folder: PathBuf| Towers { queries: folder.clone(), passages: folder };
        if let Source::Folder(path) = &self.source {
            let folder = PathBuf::from(path);
            let (queries, passages) = (folder.join("question_encoder"), folder.join("ctx_encoder"));
            return match (folder.join("config.json").exists(), queries.exists() && passages.exists()) {
                (false, true) => Ok(Towers { queries, passages }),
                (true, _) => Ok(one(folder)),
                _ => Err(InputError::Unreadable {
                    path: folder,
                    reason: "it holds no model; expected a folder with config.json, weights and a tokenizer, or with \
                             the two such folders question_encoder and ctx_encoder"
                        .into(),
                }),
            };
        }
        let mut folders = Vec::new();
        for repository in self.source.repositories() {
            let folder = folder(models, repository);
            if !folder.join(MANIFEST).exists() {
                let reason = format!(
                    "{repository} is not fetched yet; fetch it with: parallax models get {}",
                    self.source
                );
                return Err(InputError::Unreadable { path: folder, reason });
            }
            folders.push(folder);
        }
        let passages = folders.pop().unwrap_or_default();
        Ok(Towers { queries: folders.pop().unwrap_or_else(|| passages.clone()), passages })
    }
}

/// The folder of a repository.
pub fn folder(models: &Path, repository: &str) -> PathBuf {
    models.join(repository.replace('/', "--"))
}

/// The file that exists once a fetched model is complete.
pub const MANIFEST: &str = "manifest.json";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_unique() {
        let mut names: Vec<&str> = MODELS.iter().map(|entry| entry.name).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
        assert!(MODELS.iter().all(|entry| model(entry.name) == Some(entry)));
        assert!(FAMILIES.iter().all(|one| family(one.name) == Some(*one)));
    }

    #[test]
    fn only_two_towers_have_two_repositories_and_each_has_an_owner() {
        for entry in &MODELS {
            let towers = if entry.family.title == Title::Pair { 2 } else { 1 };
            assert_eq!(entry.repositories.len(), towers, "{}", entry.name);
            assert!(entry.repositories.iter().all(|name| name.split('/').count() == 2));
        }
    }
}
