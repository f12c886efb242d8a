//! Engines on other machines: asked by lanes, filled by `corpus push`.
//!
//! Owns the protocols and the schemas. A server knows passages by their ids; it must not know about places in a corpus, questions or
//! screens, and what it says is checked and never trusted.

mod address;
#[cfg(feature = "milvus")]
mod milvus;
mod open_search;
mod push;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

pub use address::{By, Kind, Place, Remote};
pub use push::{PushError, Pushed, push};

use crate::input::tame;
use crate::net::NetError;
use crate::work::{Stop, Stopped};

/// A passage as a server ranks it.
#[derive(Clone, Debug, PartialEq)]
pub struct Scored {
    /// The passage's id.
    pub id: String,
    /// The server's score, greater is better.
    pub score: f32,
}

/// A passage as a server keeps it.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Its id.
    pub id: String,
    /// Its title; may be empty.
    pub title: String,
    /// Its text.
    pub text: String,
    /// What changes when the passage or its vector's encoder does.
    pub hash: String,
    /// Its vector.
    pub vector: Vec<f32>,
}

/// Why a server did not do what it was asked.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RemoteError {
    /// It is not there, cut the connection, or took too long.
    #[error("{0}")]
    Unreached(String),
    /// It refused, in its words.
    #[error("{0}")]
    Refused(String),
    /// There is no such collection, or it holds something else.
    #[error("{0}")]
    Schema(String),
    /// The request has more bytes than it takes.
    #[error("{0}")]
    TooLarge(String),
    /// Its answer is not what the protocol says.
    #[error("{0}")]
    Nonsense(String),
    /// Stopped on request.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// A collection on a server. A call blocks until the answer is whole or `stop` is set.
pub trait Engine: Send + Sync {
    /// The best `depth` passages for a text, best first.
    ///
    /// # Errors
    /// See [`RemoteError`].
    fn by_text(&self, text: &str, depth: usize, stop: &Stop) -> Result<Vec<Scored>, RemoteError>;

    /// The `depth` passages whose vectors have the greatest cosine with this one, with that cosine.
    ///
    /// # Errors
    /// See [`RemoteError`].
    fn by_vector(&self, vector: &[f32], depth: usize, stop: &Stop) -> Result<Vec<Scored>, RemoteError>;

    /// Makes the collection if there is none, and says whether it did; one that is there must have the right schema.
    ///
    /// # Errors
    /// See [`RemoteError`].
    fn prepare(&self, dimensions: usize, stop: &Stop) -> Result<bool, RemoteError>;

    /// The hashes of those of the ids that are there.
    ///
    /// # Errors
    /// See [`RemoteError`].
    fn known(&self, ids: &[String], stop: &Stop) -> Result<HashMap<String, String>, RemoteError>;

    /// The bytes that a row takes on its way there.
    fn size(&self, row: &Row) -> usize;

    /// Puts rows there, in place of those with the same ids.
    ///
    /// # Errors
    /// See [`RemoteError`]; none is there where they were too large together.
    fn put(&self, rows: &[Row], stop: &Stop) -> Result<(), RemoteError>;

    /// Makes what was put visible to searches, and says how many passages there are in all.
    ///
    /// # Errors
    /// See [`RemoteError`].
    fn finish(&self, stop: &Stop) -> Result<u64, RemoteError>;
}

/// A client for a place; secrets come from the environment. Nothing is sent yet.
///
/// # Errors
/// The address cannot be used.
pub fn open(place: &Place) -> Result<Arc<dyn Engine>, RemoteError> {
    match place.kind {
        #[cfg(feature = "milvus")]
        Kind::Milvus => Ok(Arc::new(milvus::Milvus::from_env(place)?)),
        #[cfg(not(feature = "milvus"))]
        Kind::Milvus => Err(RemoteError::Refused("this program was built without Milvus".into())),
        Kind::OpenSearch => Ok(Arc::new(open_search::OpenSearch::from_env(place)?)),
    }
}

/// The clients that lanes share: one a place.
#[derive(Default)]
pub struct Remotes(Mutex<HashMap<Place, Arc<dyn Engine>>>);

impl Remotes {
    /// The client for a place.
    ///
    /// # Errors
    /// As [`open`].
    pub fn engine(&self, place: &Place) -> Result<Arc<dyn Engine>, RemoteError> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(engine) = open.get(place) {
            return Ok(Arc::clone(engine));
        }
        let engine = self::open(place)?;
        open.insert(place.clone(), Arc::clone(&engine));
        Ok(engine)
    }
}

/// A variable of the environment, if it holds anything.
fn variable(name: &str) -> Option<String> {
    secret(&std::env::var(name).ok()?)
}

/// A password may begin or end with a blank; a line break comes from the file that it was read from.
fn secret(value: &str) -> Option<String> {
    let value = value.trim_end_matches(['\r', '\n']);
    (!value.is_empty()).then(|| value.to_owned())
}

/// A secret goes over TLS, or to this machine.
fn sealed(place: &Place, variables: &str) -> Result<(), RemoteError> {
    if place.keeps_secrets() {
        return Ok(());
    }
    Err(RemoteError::Refused(format!(
        "everybody on the way to {} could read the secret in {variables}; name the server by https://, or unset it",
        place.url
    )))
}

/// What could not be reached, and what to do.
fn unreached(place: &Place, error: NetError) -> RemoteError {
    match error {
        NetError::Stopped(stopped) => stopped.into(),
        error => RemoteError::Unreached(format!(
            "{} at {} could not be reached ({}); start the server or check the address",
            place.kind.name(),
            place.url,
            tame(&error.to_string())
        )),
    }
}

/// There is no such collection.
fn absent(place: &Place) -> RemoteError {
    RemoteError::Schema(format!(
        "there is no `{}` at {}; load the corpus there with: parallax corpus push {place}",
        place.name, place.url
    ))
}

/// The schema that is there is another one.
fn other_schema(place: &Place, differs: &[String]) -> RemoteError {
    RemoteError::Schema(format!(
        "`{}` at {} has another schema: {}; name another one, which `parallax corpus push` makes if it is not there",
        place.name,
        place.url,
        differs.join("; ")
    ))
}

/// Ids and scores as they came, the first `depth` of them, each id once.
fn checked(
    place: &Place,
    came: impl IntoIterator<Item = Scored>,
    depth: usize,
) -> Result<Vec<Scored>, RemoteError> {
    let mut seen = std::collections::HashSet::new();
    let mut list = Vec::new();
    for scored in came {
        if !scored.score.is_finite() {
            let (name, url) = (place.kind.name(), &place.url);
            return Err(RemoteError::Nonsense(format!("{name} at {url} sent a score that is no number")));
        }
        if list.len() < depth && seen.insert(scored.id.clone()) {
            list.push(scored);
        }
    }
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_keeps_its_blanks_and_loses_a_line_break_at_its_end() {
        assert_eq!(secret(" a b \r\n").as_deref(), Some(" a b "));
        assert_eq!(secret("\n"), None);
    }

    #[test]
    fn a_secret_is_not_sent_in_the_clear_to_another_machine() {
        let sealed = |text: &str| sealed(&Place::parse(text).unwrap(), "KEY");
        for good in ["os:https://search.example.org/a", "os:http://localhost:9200/a", "os:http://[::1]/a"] {
            assert_eq!(sealed(good), Ok(()), "{good}");
        }
        let Err(RemoteError::Refused(told)) = sealed("os:http://search.example.org/a") else { panic!() };
        assert!(told.contains("https://") && told.contains("KEY"), "{told}");
    }
}
