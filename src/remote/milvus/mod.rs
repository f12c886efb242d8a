//! Milvus over gRPC, with its official SDK: searches by vectors, and by BM25 over texts. `schema` creates and checks collections.
//!
//! May use: input, net, work.

use std::collections::HashMap;
use std::future::Future;
use std::time::Duration;

use milvus::v2::prelude::{
    ClientV2, CollectionSchema, ConnectConfig, ConsistencyLevel, CreateCollectionRequest,
    DescribeCollectionRequest, Error, FieldData, HasCollectionRequest, Ids, InsertRequest,
    LoadCollectionRequest, MetricType, QueryRequest, RetryConfig, SearchRequest, SearchVectors,
    TelemetryConfig, UpsertRequest,
};
use parking_lot::Mutex;

use super::address::{
    Engine, Place, RemoteError, Row, Scored, absent, check_secrecy, first_hits, other_schema, unreached,
    variable,
};
use crate::input::tame;
use crate::net::{NetError, Waiting};
use crate::work::Stop;
use schema::{LONGEST, LONGEST_ID, VECTOR};

mod schema;

/// The environment variable of the token that is sent, `user:password` or a key.
const TOKEN: &str = "PARALLAX_MILVUS_TOKEN";

/// A collection on a server.
pub struct Milvus {
    place: Place,
    token: Option<String>,
    waiting: Waiting,
    /// How long a server may take to accept a client, and to send one answer.
    patience: (Duration, Duration),
    /// The client, once there is a connection.
    client: Mutex<Option<ClientV2>>,
    /// The schema, once it was checked.
    schema: Mutex<Option<CollectionSchema>>,
}

impl Milvus {
    /// A client for a collection, with the token from the environment.
    pub fn from_env(place: &Place) -> Result<Self, RemoteError> {
        Milvus::at(place, variable(TOKEN))
    }

    /// A client for a collection.
    pub fn at(place: &Place, token: Option<String>) -> Result<Self, RemoteError> {
        if token.is_some() {
            check_secrecy(place, TOKEN)?;
        }
        let (place, client, schema) = (place.clone(), Mutex::default(), Mutex::default());
        let waiting = Waiting::start("milvus").map_err(|error| RemoteError::Unreached(error.to_string()))?;
        let patience = (Duration::from_secs(10), Duration::from_secs(30));
        Ok(Milvus { place, token, waiting, patience, client, schema })
    }

    /// The client. No lock is held while waiting for the server, so other calls can still be stopped.
    fn client(&self, stop: &Stop) -> Result<ClientV2, RemoteError> {
        if let Some(client) = &*self.client.lock() {
            return Ok(client.clone());
        }
        let host = self.place.host();
        let has_port = host.rsplit_once(':').is_some_and(|(_, port)| !port.ends_with(']'));
        let default_port = if self.place.is_safe() { 443 } else { 80 };
        let at = if has_port { host.to_owned() } else { format!("{host}:{default_port}") };
        // The SDK waits for a server that is down, and does not report why.
        self.waiting.knock(&at, stop).map_err(|error| unreached(&self.place, error))?;
        let mut config = ConnectConfig::new()
            .uri(&self.place.url)
            .connect_timeout(self.patience.0)
            .rpc_timeout(self.patience.1)
            .retry(RetryConfig::new().max_attempts(4).initial_backoff(Duration::from_millis(500)))
            // A server receives only the requests of a lane or a push.
            .telemetry(TelemetryConfig::new().enabled(false));
        if let Some(token) = &self.token {
            config = config.token(token);
        }
        let connected = self.waiting.wait(async move { ClientV2::new(&config).await }, stop);
        let connected = connected.map_err(|error| unreached(&self.place, error))?;
        let client = connected.map_err(|error| match error {
            // The SDK has two timeouts, and either may end first.
            Error::Grpc(status) if matches!(status.code() as i32, 1 | 4) => {
                self.failed(&Error::Timeout("connecting".into()))
            }
            error => self.failed(&error),
        })?;
        *self.client.lock() = Some(client.clone());
        Ok(client)
    }

    /// Runs `work` with the client.
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

    /// Turns an error of the SDK into one that says what to do.
    fn failed(&self, error: &Error) -> RemoteError {
        let url = &self.place.url;
        let words = |words_of_server: &str| match self.token.as_deref().filter(|token| !token.is_empty()) {
            Some(token) => tame(&words_of_server.replace(token, "(token)")),
            None => tame(words_of_server),
        };
        match error {
            Error::RetryExhausted { source, attempts } => match self.failed(source) {
                RemoteError::Unreached(message) => {
                    RemoteError::Unreached(format!("{message} (tried {attempts} times)"))
                }
                RemoteError::Refused(message) => {
                    RemoteError::Refused(format!("{message} (tried {attempts} times)"))
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
                // gRPC uses one number for a full server and for a request that is too large.
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
            Error::Timeout(words_of_server) if !words_of_server.starts_with("connecting") => {
                RemoteError::Unreached(format!(
                    "{url} took too long ({}); it may be overloaded, try again later",
                    words(words_of_server)
                ))
            }
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

    /// The result of building a value of the SDK. A failure is a bug in this program or in the server, never the user's fault.
    fn check_built<T>(&self, built: Result<T, Error>) -> Result<T, RemoteError> {
        built.map_err(|error| self.failed(&error))
    }

    /// Whether the collection exists. Fails if `problems` finds any in its schema. A schema that passed before is not requested again.
    fn exists(
        &self,
        problems: impl Fn(&CollectionSchema) -> Vec<String>,
        stop: &Stop,
    ) -> Result<bool, RemoteError> {
        let fits = |schema: &CollectionSchema| problems(schema).is_empty();
        if self.schema.lock().as_ref().is_some_and(fits) {
            return Ok(true);
        }
        let name = &self.place.name;
        let has = self.check_built(HasCollectionRequest::builder().collection_name(name).build())?;
        if !self.with(stop, |client| async move { client.has_collection(has).await })?.exists() {
            return Ok(false);
        }
        let described =
            self.check_built(DescribeCollectionRequest::builder().collection_name(name).build())?;
        let described =
            self.with(stop, |client| async move { client.describe_collection(described).await })?;
        let schema = described.description().get_schema().clone();
        let problems = problems(&schema);
        if !problems.is_empty() {
            return Err(other_schema(&self.place, &problems));
        }
        *self.schema.lock() = Some(schema);
        Ok(true)
    }

    /// Searches a field, after a check of the schema.
    fn search(
        &self,
        (field, metric, vectors): (&str, MetricType, SearchVectors),
        problems: impl Fn(&CollectionSchema) -> Vec<String>,
        depth: usize,
        stop: &Stop,
    ) -> Result<Vec<Scored>, RemoteError> {
        if !self.exists(problems, stop)? {
            return Err(absent(&self.place));
        }
        let request = SearchRequest::builder()
            .collection_name(&self.place.name)
            .vector_field(field)
            .vectors(vectors)
            // A server with another metric then reports an error instead of returning other scores.
            .metric_type(metric)
            // Finds all passages that were pushed before.
            .consistency_level(ConsistencyLevel::Strong)
            .limit(i64::try_from(depth).unwrap_or(i64::MAX))
            .build();
        let request = self.check_built(request)?;
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
        first_hits(&self.place, scored.map(|(id, score)| Scored { id: id.clone(), score: *score }), depth)
    }
}

impl Engine for Milvus {
    fn by_text(&self, text: &str, depth: usize, stop: &Stop) -> Result<Vec<Scored>, RemoteError> {
        let texts = SearchVectors::EmbeddedText(vec![text.to_owned()]);
        let hits =
            self.search((schema::TERMS, MetricType::Bm25, texts), schema::term_problems, depth, stop)?;
        // BM25 is never negative; Milvus Lite returns it as a distance, with a minus sign.
        Ok(hits.into_iter().map(|hit| Scored { score: hit.score.abs(), ..hit }).collect())
    }

    fn by_vector(&self, vector: &[f32], depth: usize, stop: &Stop) -> Result<Vec<Scored>, RemoteError> {
        let dimensions = vector.len();
        let vectors = SearchVectors::Float(vec![vector.to_vec()]);
        let vectors = (schema::VECTOR, MetricType::Cosine, vectors);
        self.search(vectors, |schema| schema::vector_problems(schema, dimensions), depth, stop)
    }

    fn prepare(&self, dimensions: usize, stop: &Stop) -> Result<bool, RemoteError> {
        self.create(dimensions, stop)
    }

    fn stored_hashes(&self, ids: &[String], stop: &Stop) -> Result<HashMap<String, String>, RemoteError> {
        self.hashes(ids, stop)
    }

    fn size(&self, row: &Row) -> usize {
        size(row)
    }

    fn put(&self, rows: &[Row], stop: &Stop) -> Result<(), RemoteError> {
        self.upsert(rows, stop)
    }

    fn finish(&self, stop: &Stop) -> Result<u64, RemoteError> {
        self.count(stop)
    }
}

impl Milvus {
    fn create(&self, dimensions: usize, stop: &Stop) -> Result<bool, RemoteError> {
        let name = self.place.name.as_str();
        let created = !self.exists(|schema| schema::load_problems(schema, dimensions), stop)?;
        if created {
            let request = CreateCollectionRequest::builder()
                .collection_name(name)
                .schema(schema::new(dimensions))
                .index_params(schema::indexes());
            let request = self.check_built(request.build())?;
            self.with(stop, |client| async move { client.create_collection(request).await })?;
        }
        // Hashes can be read only from a loaded collection, and an old one may have been released. Loading a large one takes
        // minutes, so only a stop ends the waiting, not a timeout of the SDK.
        let load = LoadCollectionRequest::builder().collection_name(name).sync(true).timeout_ms(0);
        let load = self.check_built(load.build())?;
        self.with(stop, |client| async move { client.load_collection(load).await })?;
        Ok(created)
    }

    fn hashes(&self, ids: &[String], stop: &Stop) -> Result<HashMap<String, String>, RemoteError> {
        // Not `get`: it sends the ids as values of a template, which Milvus Lite does not support.
        let request = QueryRequest::builder()
            .collection_name(&self.place.name)
            .filter(format!("id in {}", serde_json::json!(ids)))
            .output_fields(["id", "hash"])
            .limit(ids.len() as i64)
            .consistency_level(ConsistencyLevel::Strong);
        let request = self.check_built(request.build())?;
        let got = self.with(stop, |client| async move { client.query(request).await })?;
        let mut found = HashMap::new();
        for row in self.check_built(got.results().rows())? {
            found.insert(
                self.check_built(row.get_str("id"))?.to_owned(),
                self.check_built(row.get_str("hash"))?.to_owned(),
            );
        }
        Ok(found)
    }

    fn upsert(&self, rows: &[Row], stop: &Stop) -> Result<(), RemoteError> {
        if let Some(row) = rows.iter().find(|row| row.id.len() > LONGEST_ID) {
            return Err(RemoteError::Refused(format!(
                "the id {} has {} bytes, and the collection takes {LONGEST_ID}; give the passage a shorter one",
                crate::input::excerpt(&row.id),
                row.id.len()
            )));
        }
        let text =
            |name: &str, of: &dyn Fn(&Row) -> String| FieldData::varchar(name, rows.iter().map(of).collect());
        let columns = vec![
            text("id", &|row| row.id.clone()),
            text("title", &|row| shorten(row.title.clone())),
            text("text", &|row| shorten(contents(row))),
            text("hash", &|row| row.hash.clone()),
            FieldData::float_vector(VECTOR, rows.iter().map(|row| row.vector.clone()).collect()),
        ];
        let insert = InsertRequest::builder().collection_name(&self.place.name).columns(columns).build();
        let request = self.check_built(UpsertRequest::builder().insert(self.check_built(insert)?).build())?;
        let done = self.with(stop, |client| async move { client.upsert(request).await })?;
        match done.failed_indices().first().and_then(|i| rows.get(*i as usize)) {
            None => Ok(()),
            Some(row) => Err(RemoteError::Refused(format!(
                "{} did not take the passage {}; see what the server says",
                self.place.url,
                crate::input::excerpt(&row.id)
            ))),
        }
    }

    fn count(&self, stop: &Stop) -> Result<u64, RemoteError> {
        let request = QueryRequest::builder()
            .collection_name(&self.place.name)
            .output_fields(["count(*)"])
            .consistency_level(ConsistencyLevel::Strong);
        let request = self.check_built(request.build())?;
        let counted = self.with(stop, |client| async move { client.query(request).await })?;
        let row = self.check_built(counted.results().rows())?.next();
        let count = row.map(|row| self.check_built(row.get_i64("count(*)"))).transpose()?;
        Ok(count.and_then(|count| u64::try_from(count).ok()).unwrap_or(0))
    }
}

/// The bytes of a row in its columns. The title is sent twice: in its column, and before the text.
fn size(row: &Row) -> usize {
    let Row { id, title, text, hash, vector } = row;
    id.len() + title.len() * 2 + text.len() + hash.len() + size_of_val(vector.as_slice())
}

/// The text that this program's retrievers read: title and text.
fn contents(row: &Row) -> String {
    if row.title.is_empty() { row.text.clone() } else { format!("{} {}", row.title, row.text) }
}

/// Cuts a text to the limit of a field. This loses nothing on screen: Parallax shows the passages of the corpus, and the vector is computed
/// from the whole text.
fn shorten(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(LONGEST));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_too_long_is_cut_between_two_letters() {
        assert_eq!(shorten("é".repeat(40_000)).len(), LONGEST - 1);
        assert_eq!(shorten("short".into()), "short");
    }
}
