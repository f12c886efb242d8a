//! The objects of rank_llm's and BERDS's results as they are written.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::{Deserializer, Error};
use serde_json::value::RawValue;

use super::run::finite;

/// An id, which some files write as a number.
#[derive(Deserialize)]
#[serde(untagged, expecting = "an id (a string or a whole number)")]
pub enum Id {
    Text(String),
    Number(i64),
}

impl Id {
    pub fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Number(number) => number.to_string(),
        }
    }
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "a query (a string, or {text, qid})")]
pub enum Query {
    Text(String),
    Full { text: String, qid: Option<Id> },
}

/// A question with its list.
#[derive(Deserialize)]
#[serde(try_from = "Written<'a>", bound(deserialize = "'de: 'a"))]
pub struct Question<'a> {
    pub query: Query,
    pub qid: Option<Id>,
    pub hits: Vec<&'a RawValue>,
    pub perspectives: Vec<String>,
    pub supports: Option<usize>,
    /// It has BERDS's names.
    pub berds: bool,
}

#[derive(Deserialize)]
struct Written<'a> {
    query: Option<Query>,
    question: Option<String>,
    #[serde(alias = "id")]
    qid: Option<Id>,
    #[serde(borrow, alias = "candidates", alias = "ctxs")]
    hits: Vec<&'a RawValue>,
    #[serde(default)]
    perspectives: Vec<String>,
    supports: Option<usize>,
}

impl<'a> TryFrom<Written<'a>> for Question<'a> {
    type Error = &'static str;

    fn try_from(written: Written<'a>) -> Result<Self, Self::Error> {
        let Written { query, question, qid, hits, perspectives, supports } = written;
        let berds = query.is_none();
        let query =
            query.or_else(|| question.map(Query::Text)).ok_or("missing field `query` or `question`")?;
        Ok(Question { query, qid, hits, perspectives, supports, berds })
    }
}

/// A passage of a list.
#[derive(Deserialize)]
pub struct Hit<'a> {
    pub qid: Option<Id>,
    #[serde(alias = "id")]
    pub docid: Option<Id>,
    pub rank: Option<i64>,
    pub score: Score,
    #[serde(borrow)]
    title: Option<Cow<'a, str>>,
    #[serde(borrow, alias = "content", alias = "contents")]
    text: Option<Cow<'a, str>>,
    #[serde(borrow)]
    doc: Option<Doc<'a>>,
}

/// A score, which some files write as a string.
pub struct Score(pub f64);

impl<'de> Deserialize<'de> for Score {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "a score (a number)")]
        enum Either {
            Number(f64),
            Text(String),
        }
        match Either::deserialize(deserializer)? {
            Either::Number(score) => Ok(Score(score)),
            Either::Text(text) => finite(&text).map(Score).ok_or_else(|| D::Error::custom("not a score")),
        }
    }
}

/// rank_llm's newer files hold the passage as its index had it.
#[derive(Deserialize)]
#[serde(untagged)]
enum Doc<'a> {
    Fields {
        #[serde(borrow)]
        title: Option<Cow<'a, str>>,
        #[serde(borrow, alias = "segment", alias = "contents", alias = "content", alias = "passage")]
        text: Option<Cow<'a, str>>,
    },
    Other(serde::de::IgnoredAny),
}

impl Hit<'_> {
    /// Title and text.
    pub fn texts(&self) -> (&str, Option<&str>) {
        let (title, text) = match &self.doc {
            Some(Doc::Fields { title, text }) => (title.as_deref(), text.as_deref()),
            _ => (None, None),
        };
        let title = self.title.as_deref().or(title).unwrap_or_default();
        (title, self.text.as_deref().or(text))
    }
}
