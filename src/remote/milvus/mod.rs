//! Milvus over gRPC, by its official SDK: a collection's vectors, and BM25 over its texts.

mod fill;
mod schema;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use milvus::v2::prelude::{
    ClientV2, CollectionSchema, ConnectConfig, ConsistencyLevel, DescribeCollectionRequest, Error,
    HasCollectionRequest, Ids, MetricType, RetryConfig, SearchRequest, SearchVectors, TelemetryConfig,
};

use super::{
    Engine, Place, RemoteError, Row, Scored, absent, checked, other_schema, sealed, tame, unreached, variable,
};
use crate::net::{NetError, Waiting};
use crate::work::Stop;

/// The token that is sent, `user:password` or a key.
const TOKEN: &str = "PARALLAX_MILVUS_TOKEN";

/// A collection on a server.
pub struct Milvus {
    place: Place,
    token: Option<String>,
    waiting: Waiting,
    /// How long a server may take to accept a client, and for one answer.
    patience: (Duration, Duration),
    /// The client, once there is a connection.
    client: Mutex<Option<ClientV2>>,
    /// The schema, once it has been looked at and found right.
    schema: Mutex<Option<CollectionSchema>>,
}

impl Milvus {
    /// A client for a collection, with the token that the environment holds.
    pub fn from_env(place: &Place) -> Result<Self, RemoteError> {
        Milvus::at(place, variable(TOKEN))
    }

    /// A client for a collection.
    pub fn at(place: &Place, token: Option<String>) -> Result<Self, RemoteError> {
        if token.is_some() {
            sealed(place, TOKEN)?;
        }
        let (place, client, schema) = (place.clone(), Mutex::default(), Mutex::default());
        let waiting = Waiting::start("milvus").map_err(RemoteError::Unreached)?;
        let patience = (Duration::from_secs(10), Duration::from_secs(30));
        Ok(Milvus { place, token, waiting, patience, client, schema })
    }

    /// The client. Nothing is locked while the server is waited for: whoever asks meanwhile may be stopped.
    fn client(&self, stop: &Stop) -> Result<ClientV2, RemoteError> {
        if let Some(client) = &*self.client.lock().unwrap_or_else(PoisonError::into_inner) {
            return Ok(client.clone());
        }
        let host = self.place.host();
        let port = host.rsplit_once(':').is_some_and(|(_, port)| !port.ends_with(']'));
        let habit = if self.place.is_safe() { 443 } else { 80 };
        let at = if port { host.to_owned() } else { format!("{host}:{habit}") };
        // The SDK waits for a server that is not there, and cannot say why.
        self.waiting.knock(&at, stop).map_err(|error| unreached(&self.place, error))?;
        let mut config = ConnectConfig::new()
            .uri(&self.place.url)
            .connect_timeout(self.patience.0)
            .rpc_timeout(self.patience.1)
            .retry(RetryConfig::new().max_attempts(4).initial_backoff(Duration::from_millis(500)))
            // Nothing is told to a server but what a lane or a push asks of it.
            .telemetry(TelemetryConfig::new().enabled(false));
        if let Some(token) = &self.token {
            config = config.token(token);
        }
        let connected = self.waiting.wait(async move { ClientV2::new(&config).await }, stop);
        let connected = connected.map_err(|error| unreached(&self.place, error))?;
        let client = connected.map_err(|error| match error {
            // Which of the SDK's two clocks goes first is chance.
            Error::Grpc(status) if matches!(status.code() as i32, 1 | 4) => {
                self.failed(&Error::Timeout("connecting".into()))
            }
            error => self.failed(&error),
        })?;
        *self.client.lock().unwrap_or_else(PoisonError::into_inner) = Some(client.clone());
        Ok(client)
    }

    /// Does one thing with the client.
    fn with<T: Send + 'static, F>(
        &self,
        stop: &Stop,
        work: impl FnOnce(ClientV2) -> F,
    ) -> Result<T, RemoteError>
    where
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let client = self.client(stop)?;
        let done = self.waiting.wait(work(client), stop).map_err(|error| unreached(&self.place, error))?;
        done.map_err(|error| self.failed(&error))
    }

    /// What the SDK says, with what to do.
    fn failed(&self, error: &Error) -> RemoteError {
        let url = &self.place.url;
        let words = |said: &str| match self.token.as_deref().filter(|token| !token.is_empty()) {
            Some(token) => tame(&said.replace(token, "(token)")),
            None => tame(said),
        };
        match error {
            Error::RetryExhausted { source, attempts } => match self.failed(source) {
                RemoteError::Unreached(told) => {
                    RemoteError::Unreached(format!("{told} (tried {attempts} times)"))
                }
                RemoteError::Refused(told) => {
                    RemoteError::Refused(format!("{told} (tried {attempts} times)"))
                }
                other => other,
            },
            // The numbers are those of gRPC.
            Error::Grpc(status) => match status.code() as i32 {
                7 | 16 => RemoteError::Refused(format!(
                    "{url} refused ({}); {} {TOKEN}",
                    words(status.message()),
                    if self.token.is_some() { "check" } else { "set" }
                )),
                1 | 4 => RemoteError::Unreached(format!(
                    "{url} did not answer within {:?}; it may be overloaded, try again later",
                    self.patience.1
                )),
                // gRPC has one number for a full server and for a request that is too large.
                8 if status.message().contains("larger than max") => RemoteError::TooLarge(format!(
                    "{url} takes no requests of this size ({})",
                    words(status.message())
                )),
                8 => RemoteError::Refused(format!(
                    "{url} has no room for it ({}); try again later",
                    words(status.message())
                )),
                14 => unreached(&self.place, NetError::Unreached(words(status.message()))),
                _ => RemoteError::Unreached(format!(
                    "{url} does not answer as Milvus does ({}); check the address and that it is the one of gRPC",
                    words(status.message())
                )),
            },
            Error::Timeout(said) if !said.starts_with("connecting") => RemoteError::Unreached(format!(
                "{url} took too long ({}); it may be overloaded, try again later",
                words(said)
            )),
            Error::Timeout(_) => RemoteError::Unreached(format!(
                "{url} took the connection and did not answer as Milvus does; check the address, and whether it asks for https://"
            )),
            Error::Server(error) if error.code() == 100 || error.legacy_code() == 4 => absent(&self.place),
            Error::Server(error) => RemoteError::Refused(format!("{url} refused: {}", words(error.reason()))),
            other => {
                RemoteError::Nonsense(format!("{url} and the SDK disagree: {}", words(&other.to_string())))
            }
        }
    }

    /// A value of the SDK's that cannot be made is this program's fault or the server's, never the user's.
    fn built<T>(&self, made: Result<T, Error>) -> Result<T, RemoteError> {
        made.map_err(|error| self.failed(&error))
    }

    /// Whether the collection is there; where its schema differs from what is needed, that is told. One that was found right before
    /// is not asked for again.
    fn is_there(
        &self,
        differs: impl Fn(&CollectionSchema) -> Vec<String>,
        stop: &Stop,
    ) -> Result<bool, RemoteError> {
        let known = |schema: &CollectionSchema| differs(schema).is_empty();
        if self.schema.lock().unwrap_or_else(PoisonError::into_inner).as_ref().is_some_and(known) {
            return Ok(true);
        }
        let name = &self.place.name;
        let has = self.built(HasCollectionRequest::builder().collection_name(name).build())?;
        if !self.with(stop, |client| async move { client.has_collection(has).await })?.exists() {
            return Ok(false);
        }
        let described = self.built(DescribeCollectionRequest::builder().collection_name(name).build())?;
        let described =
            self.with(stop, |client| async move { client.describe_collection(described).await })?;
        let schema = described.description().get_schema().clone();
        let differs = differs(&schema);
        if !differs.is_empty() {
            return Err(other_schema(&self.place, &differs));
        }
        *self.schema.lock().unwrap_or_else(PoisonError::into_inner) = Some(schema);
        Ok(true)
    }

    /// Searches a field, after a look at the schema.
    fn search(
        &self,
        (field, metric, vectors): (&str, MetricType, SearchVectors),
        differs: impl Fn(&CollectionSchema) -> Vec<String>,
        depth: usize,
        stop: &Stop,
    ) -> Result<Vec<Scored>, RemoteError> {
        if !self.is_there(differs, stop)? {
            return Err(absent(&self.place));
        }
        let request = SearchRequest::builder()
            .collection_name(&self.place.name)
            .vector_field(field)
            .vectors(vectors)
            // A server whose index compares otherwise says so, instead of giving scores of another kind.
            .metric_type(metric)
            // What was pushed is found.
            .consistency_level(ConsistencyLevel::Strong)
            .limit(i64::try_from(depth).unwrap_or(i64::MAX))
            .build();
        let request = self.built(request)?;
        let found = self.with(stop, |client| async move { client.search(request).await })?;
        let nonsense = || RemoteError::Nonsense(format!("{} sent hits without ids", self.place.url));
        let Some(list) = found.results().get_results().first() else { return Ok(Vec::new()) };
        let ids = match list.get_ids() {
            Ids::VarChar(ids) => ids.as_slice(),
            ids if ids.is_empty() => &[],
            _ => return Err(nonsense()),
        };
        if ids.len() != list.get_scores().len() {
            return Err(nonsense());
        }
        let scored = ids.iter().zip(list.get_scores());
        checked(&self.place, scored.map(|(id, score)| Scored { id: id.clone(), score: *score }), depth)
    }
}

impl Engine for Milvus {
    fn by_text(&self, text: &str, depth: usize, stop: &Stop) -> Result<Vec<Scored>, RemoteError> {
        let texts = SearchVectors::EmbeddedText(vec![text.to_owned()]);
        let hits = self.search((schema::TERMS, MetricType::Bm25, texts), schema::terms, depth, stop)?;
        // BM25 is never below zero; Milvus Lite gives it as a distance, with a minus sign.
        Ok(hits.into_iter().map(|hit| Scored { score: hit.score.abs(), ..hit }).collect())
    }

    fn by_vector(&self, vector: &[f32], depth: usize, stop: &Stop) -> Result<Vec<Scored>, RemoteError> {
        let dimensions = vector.len();
        let vectors = SearchVectors::Float(vec![vector.to_vec()]);
        let vectors = (schema::VECTOR, MetricType::Cosine, vectors);
        self.search(vectors, |there| schema::vectors(there, dimensions), depth, stop)
    }

    fn prepare(&self, dimensions: usize, stop: &Stop) -> Result<bool, RemoteError> {
        self.make(dimensions, stop)
    }

    fn known(&self, ids: &[String], stop: &Stop) -> Result<HashMap<String, String>, RemoteError> {
        self.hashes(ids, stop)
    }

    fn size(&self, row: &Row) -> usize {
        fill::size(row)
    }

    fn put(&self, rows: &[Row], stop: &Stop) -> Result<(), RemoteError> {
        self.upsert(rows, stop)
    }

    fn finish(&self, stop: &Stop) -> Result<u64, RemoteError> {
        self.count(stop)
    }
}
