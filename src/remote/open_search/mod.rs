//! OpenSearch and Elasticsearch over HTTP: an index is searched, created and filled with `_search`, `_mget` and `_bulk`. Its mapping is
//! read, compared with what is needed, and written for a new index.
//!
//! May use: input, net, work.

use std::collections::HashMap;

use parking_lot::Mutex;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::address::{
    Engine, Place, RemoteError, Row, Scored, absent, check_secrecy, first_hits, other_schema, unreached,
    variable,
};
use crate::input::{excerpt, tame};
use crate::net::{Call, Caller, Response, Secret, Verb};
use crate::work::Stop;

#[cfg(test)]
mod double_tests;

/// The environment variables of the user and the password that are sent.
const USER: &str = "PARALLAX_OPENSEARCH_USER";
const PASSWORD: &str = "PARALLAX_OPENSEARCH_PASSWORD";
/// The environment variable of the API key that is sent instead.
const KEY: &str = "PARALLAX_OPENSEARCH_KEY";

/// An index on a server.
pub struct OpenSearch {
    place: Place,
    caller: Caller,
    /// The mapping of the index, once it was checked.
    mapping: Mutex<Option<Mapping>>,
}

impl OpenSearch {
    /// A client for an index, with the secret from the environment.
    pub fn from_env(place: &Place) -> Result<Self, RemoteError> {
        let secret = match (variable(KEY), variable(USER), variable(PASSWORD)) {
            (Some(key), ..) => Some(Secret::ApiKey(key)),
            (None, Some(user), Some(password)) => Some(Secret::Basic(user, password)),
            (None, None, None) => None,
            (None, Some(_), None) | (None, None, Some(_)) => {
                return Err(RemoteError::Refused(format!("set both {USER} and {PASSWORD}, or {KEY}")));
            }
        };
        OpenSearch::at(place, secret)
    }

    /// A client for an index.
    pub fn at(place: &Place, secret: Option<Secret>) -> Result<Self, RemoteError> {
        if secret.is_some() {
            check_secrecy(place, &format!("{PASSWORD} or {KEY}"))?;
        }
        let caller =
            Caller::new(&place.url, secret).map_err(|error| RemoteError::Unreached(error.to_string()))?;
        Ok(OpenSearch { place: place.clone(), caller, mapping: Mutex::default() })
    }

    /// Sends JSON to a path below the index, or below the server if the path begins with a slash.
    fn ask(
        &self,
        verb: Verb,
        path: &str,
        body: Option<&Value>,
        stop: &Stop,
    ) -> Result<Response, RemoteError> {
        let body = body.map(Value::to_string).unwrap_or_default().into_bytes();
        self.send(verb, path, body, false, stop)
    }

    fn send(
        &self,
        verb: Verb,
        path: &str,
        body: Vec<u8>,
        lines: bool,
        stop: &Stop,
    ) -> Result<Response, RemoteError> {
        let path = match path.strip_prefix('/') {
            Some(path) => path.to_owned(),
            None => format!("{}{}{path}", self.place.name, if path.is_empty() { "" } else { "/" }),
        };
        let response = self.caller.call(&Call { verb, path, body, lines }, stop);
        response.map_err(|error| unreached(&self.place, error))
    }

    /// The JSON of a successful answer.
    fn json(&self, response: &Response) -> Result<Value, RemoteError> {
        if !(200..300).contains(&response.status) {
            return Err(self.refused(response));
        }
        serde_json::from_slice(&response.body).map_err(|_| self.nonsense(&response.body))
    }

    fn nonsense(&self, body: &[u8]) -> RemoteError {
        let start = String::from_utf8_lossy(&body[..body.len().min(200)]).into_owned();
        RemoteError::Nonsense(format!(
            "{} sent {} where an answer of OpenSearch or Elasticsearch was expected; check the address",
            self.place.url,
            excerpt(start.trim())
        ))
    }

    /// The error for a refusal, with the server's message.
    fn refused(&self, response: &Response) -> RemoteError {
        let body: Value = serde_json::from_slice(&response.body).unwrap_or_default();
        let error = &body["error"];
        if response.status == 404 && (error["type"] == "index_not_found_exception" || error.is_null()) {
            return absent(&self.place);
        }
        let reason = error["root_cause"][0]["reason"].as_str().or(error["reason"].as_str());
        let words = match reason.or(error.as_str()) {
            Some(words) => words.to_owned(),
            None => String::from_utf8_lossy(&response.body).into_owned(),
        };
        let words = tame(&words);
        let words = if words.is_empty() { String::new() } else { format!(": {words}") };
        let advice = match response.status {
            300..=399 => "; name the address it has moved to".into(),
            401 | 403 if self.caller.has_secret() => format!("; check {USER} and {PASSWORD}, or {KEY}"),
            401 | 403 => format!("; set {USER} and {PASSWORD}, or {KEY}"),
            413 => "; it takes no requests of this size".into(),
            429 | 503 => "; it is busy, try again later".into(),
            _ => String::new(),
        };
        let tried =
            if response.tried > 1 { format!(" (tried {} times)", response.tried) } else { String::new() };
        let message = format!("{} refused with {}{words}{advice}{tried}", self.place.url, response.status);
        if response.status == 413 { RemoteError::TooLarge(message) } else { RemoteError::Refused(message) }
    }

    /// Checks the cached mapping, and if that fails the one on the server.
    fn check<T>(
        &self,
        check: impl Fn(&Mapping) -> Result<T, Vec<String>>,
        stop: &Stop,
    ) -> Result<T, RemoteError> {
        let earlier = self.mapping.lock().clone();
        if let Some(Ok(found)) = earlier.as_ref().map(&check) {
            return Ok(found);
        }
        let response = self.ask(Verb::Get, "_mapping", None, stop)?;
        let mapping = Mapping::read(&self.json(&response)?).ok_or_else(|| self.nonsense(&response.body))?;
        let found = check(&mapping).map_err(|differs| other_schema(&self.place, &differs))?;
        *self.mapping.lock() = Some(mapping);
        Ok(found)
    }

    fn search(&self, body: &Value, depth: usize, stop: &Stop) -> Result<Vec<Scored>, RemoteError> {
        let response = self.ask(Verb::Post, "_search", Some(body), stop)?;
        let json = self.json(&response)?;
        if json["timed_out"] == true || json["_shards"]["failed"].as_u64().unwrap_or(0) > 0 {
            return Err(RemoteError::Refused(format!(
                "{} answered for a part of the index alone; see what the server says, or try again later",
                self.place.url
            )));
        }
        let hits = json["hits"]["hits"].as_array().ok_or_else(|| self.nonsense(&response.body))?;
        let scored = hits.iter().map(|hit| {
            let id = hit["_id"].as_str()?.to_owned();
            Some(Scored { id, score: hit["_score"].as_f64()? as f32 })
        });
        let scored = scored.collect::<Option<Vec<_>>>().ok_or_else(|| self.nonsense(&response.body))?;
        first_hits(&self.place, scored, depth)
    }
}

impl Engine for OpenSearch {
    fn by_text(&self, text: &str, depth: usize, stop: &Stop) -> Result<Vec<Scored>, RemoteError> {
        self.check(Mapping::texts, stop)?;
        let fields = ["title", "text"].map(|field| json!({"match": {field: {"query": text}}}));
        let body = json!({"size": depth, "_source": false, "query": {"bool": {"should": fields}}});
        self.search(&body, depth, stop)
    }

    fn by_vector(&self, vector: &[f32], depth: usize, stop: &Stop) -> Result<Vec<Scored>, RemoteError> {
        let dialect = self.check(|mapping| mapping.vectors(vector.len()), stop)?;
        let body = dialect.nearest(vector, depth);
        let hits = self.search(&body, depth, stop)?;
        // Both engines return (1 + cosine) / 2.
        Ok(hits.into_iter().map(|hit| Scored { score: 2.0 * hit.score - 1.0, ..hit }).collect())
    }

    fn prepare(&self, dimensions: usize, stop: &Stop) -> Result<bool, RemoteError> {
        self.create(dimensions, stop)
    }

    fn stored_hashes(&self, ids: &[String], stop: &Stop) -> Result<HashMap<String, String>, RemoteError> {
        self.hashes(ids, stop)
    }

    fn size(&self, row: &Row) -> usize {
        lines(&[row]).len()
    }

    fn put(&self, rows: &[Row], stop: &Stop) -> Result<(), RemoteError> {
        self.bulk(rows, stop)
    }

    fn finish(&self, stop: &Stop) -> Result<u64, RemoteError> {
        self.refresh(stop)
    }
}

/// The number of times that passages are sent if the server is too busy.
const TRIES: u32 = 4;

impl OpenSearch {
    fn create(&self, dimensions: usize, stop: &Stop) -> Result<bool, RemoteError> {
        let response = self.ask(Verb::Get, "_mapping", None, stop)?;
        let missing = response.status == 404;
        if missing {
            let root = self.json(&self.ask(Verb::Get, "/", None, stop)?)?;
            let dialect = Dialect::of(&root).ok_or_else(|| self.nonsense(root.to_string().as_bytes()))?;
            let created = self.ask(Verb::Put, "", Some(&dialect.index(dimensions)), stop)?;
            let body: Value = serde_json::from_slice(&created.body).unwrap_or_default();
            if body["error"]["type"] != "resource_already_exists_exception" {
                self.json(&created)?;
                return Ok(true);
            }
        }
        // If another process created it meanwhile, its mapping is checked.
        let response = if missing { self.ask(Verb::Get, "_mapping", None, stop)? } else { response };
        let mapping = Mapping::read(&self.json(&response)?).ok_or_else(|| self.nonsense(&response.body))?;
        mapping.check_all(dimensions).map_err(|differs| other_schema(&self.place, &differs))?;
        Ok(false)
    }

    fn hashes(&self, ids: &[String], stop: &Stop) -> Result<HashMap<String, String>, RemoteError> {
        let body = json!({"ids": ids});
        let response = self.ask(Verb::Post, "_mget?_source_includes=hash", Some(&body), stop)?;
        let json = self.json(&response)?;
        let docs = json["docs"].as_array().ok_or_else(|| self.nonsense(&response.body))?;
        let found = docs.iter().filter(|doc| doc["found"] == true);
        let hash = |doc: &Value| doc["_source"]["hash"].as_str().unwrap_or_default().to_owned();
        Ok(found.filter_map(|doc| Some((doc["_id"].as_str()?.to_owned(), hash(doc)))).collect())
    }

    fn bulk(&self, rows: &[Row], stop: &Stop) -> Result<(), RemoteError> {
        let mut left: Vec<&Row> = rows.iter().collect();
        for tried in 1.. {
            let response = self.send(Verb::Post, "_bulk", lines(&left), true, stop)?;
            let json = self.json(&response)?;
            let items = json["items"].as_array().filter(|items| items.len() == left.len());
            let items = items.ok_or_else(|| self.nonsense(&response.body))?;
            let mut again = Vec::new();
            for (row, item) in left.iter().zip(items) {
                let item = &item["index"];
                match item["status"].as_u64() {
                    Some(200..=299) => {}
                    // The server is too busy for this passage.
                    Some(429) if tried < TRIES => again.push(*row),
                    Some(status) => {
                        let error = &item["error"];
                        let reason = error["reason"].as_str().or(error.as_str()).unwrap_or("no reason given");
                        return Err(RemoteError::Refused(format!(
                            "{} refused the passage {} with {status}: {}",
                            self.place.url,
                            excerpt(&row.id),
                            tame(reason)
                        )));
                    }
                    None => return Err(self.nonsense(&response.body)),
                }
            }
            if again.is_empty() {
                break;
            }
            self.caller.rest(tried, stop)?;
            left = again;
        }
        Ok(())
    }

    fn refresh(&self, stop: &Stop) -> Result<u64, RemoteError> {
        self.json(&self.ask(Verb::Post, "_refresh", None, stop)?)?;
        let response = self.ask(Verb::Get, "_count", None, stop)?;
        self.json(&response)?["count"].as_u64().ok_or_else(|| self.nonsense(&response.body))
    }
}

/// A passage in an index. It is not built as a `Value`, because its f64 numbers would be twice as long.
#[derive(Serialize)]
struct Document<'a> {
    title: &'a str,
    text: &'a str,
    hash: &'a str,
    vector: &'a [f32],
}

/// Two lines per passage: the action and the content.
fn lines(rows: &[&Row]) -> Vec<u8> {
    let mut lines = Vec::new();
    for Row { id, title, text, hash, vector } in rows {
        let document = serde_json::to_string(&Document { title, text, hash, vector }).unwrap_or_default();
        lines.extend(format!("{}\n{document}\n", json!({"index": {"_id": id}})).into_bytes());
    }
    lines
}

/// The dialect of vector queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// The field type `knn_vector`, searched by the query type `knn`.
    OpenSearch,
    /// The field type `dense_vector`, searched by the part `knn` of a search.
    Elasticsearch,
}

/// The fields of an index.
#[derive(Clone, Debug, PartialEq)]
pub struct Mapping(Vec<Map<String, Value>>);

impl Dialect {
    /// The dialect of a server, by its description at the path `/`.
    pub fn of(root: &Value) -> Option<Self> {
        match root["version"]["distribution"].as_str() {
            Some("opensearch") => Some(Dialect::OpenSearch),
            _ if root["tagline"] == "You Know, for Search" => Some(Dialect::Elasticsearch),
            _ => None,
        }
    }

    /// A search for the nearest vectors by cosine.
    pub fn nearest(self, vector: &[f32], depth: usize) -> Value {
        match self {
            Dialect::OpenSearch => json!({
                "size": depth,
                "_source": false,
                "query": {"knn": {"vector": {"vector": vector, "k": depth}}},
            }),
            Dialect::Elasticsearch => json!({
                "size": depth,
                "_source": false,
                "knn": {
                    "field": "vector",
                    "query_vector": vector,
                    "k": depth,
                    "num_candidates": depth.saturating_mul(4).clamp(200, 10_000),
                },
            }),
        }
    }

    /// The request that creates an index.
    pub fn index(self, dimensions: usize) -> Value {
        let text = json!({"type": "text", "analyzer": "english"});
        let vector = match self {
            Dialect::OpenSearch => json!({
                "type": "knn_vector",
                "dimension": dimensions,
                "method": {"name": "hnsw", "engine": "lucene", "space_type": "cosinesimil"},
            }),
            Dialect::Elasticsearch => {
                json!({"type": "dense_vector", "dims": dimensions, "index": true, "similarity": "cosine"})
            }
        };
        let settings = match self {
            Dialect::OpenSearch => json!({"index": {"knn": true}}),
            Dialect::Elasticsearch => json!({}),
        };
        json!({
            "settings": settings,
            "mappings": {
                "dynamic": false,
                "properties": {"title": text, "text": text, "hash": {"type": "keyword"}, "vector": vector},
            },
        })
    }
}

impl Mapping {
    /// Reads the answer to `INDEX/_mapping`. An alias may name several indices.
    pub fn read(response: &Value) -> Option<Self> {
        let indices = response.as_object().filter(|indices| !indices.is_empty())?;
        let fields = indices.values().map(|index| match &index["mappings"] {
            // An empty index has no properties.
            Value::Object(mappings) => match mappings.get("properties") {
                None => Some(Map::new()),
                Some(fields) => fields.as_object().cloned(),
            },
            _ => None,
        });
        fields.collect::<Option<Vec<_>>>().map(Mapping)
    }

    /// Checks that both texts can be searched.
    pub fn texts(&self) -> Result<(), Vec<String>> {
        let differs: Vec<String> =
            ["title", "text"].into_iter().filter_map(|name| self.lacks(name, "text")).collect();
        if differs.is_empty() { Ok(()) } else { Err(differs) }
    }

    /// Checks that vectors can be searched, and returns the dialect of such queries.
    pub fn vectors(&self, dimensions: usize) -> Result<Dialect, Vec<String>> {
        let mut dialect = None;
        for fields in &self.0 {
            let field = fields.get("vector").unwrap_or(&Value::Null);
            let (found, size) = match field["type"].as_str() {
                Some("knn_vector") => (Dialect::OpenSearch, &field["dimension"]),
                Some("dense_vector") => (Dialect::Elasticsearch, &field["dims"]),
                other => return Err(vec![differs("vector", "knn_vector or dense_vector", other)]),
            };
            if size.as_u64() != Some(dimensions as u64) {
                let size = tame(&size.to_string());
                return Err(vec![format!("`vector` has {size} numbers, expected {dimensions}")]);
            }
            if field["method"]["engine"] == "nmslib" {
                // It scores by 1 / (2 - cosine).
                return Err(vec!["`vector` is stored by nmslib, expected lucene or faiss".into()]);
            }
            // `_mapping` leaves out the server's default.
            let space = match found {
                Dialect::OpenSearch => {
                    field["method"]["space_type"].as_str().or(field["space_type"].as_str()).ok_or_else(
                        || vec!["`vector` names no space_type, which means l2, expected cosinesimil".into()],
                    )?
                }
                Dialect::Elasticsearch => field["similarity"].as_str().unwrap_or("cosine"),
            };
            if !["cosine", "cosinesimil"].contains(&space) {
                let space = excerpt(space);
                return Err(vec![format!("`vector` is compared by {space}, expected the cosine")]);
            }
            dialect = Some(found);
        }
        dialect.ok_or_else(|| vec!["it has no fields".into()])
    }

    /// Checks that a corpus can be loaded.
    pub fn check_all(&self, dimensions: usize) -> Result<(), Vec<String>> {
        let texts = self.texts().err().unwrap_or_default();
        let hash = self.lacks("hash", "keyword");
        let vectors = self.vectors(dimensions).err().unwrap_or_default();
        let all: Vec<String> = texts.into_iter().chain(hash).chain(vectors).collect();
        if all.is_empty() { Ok(()) } else { Err(all) }
    }

    fn lacks(&self, name: &str, kind: &str) -> Option<String> {
        let found = |fields: &Map<String, Value>| {
            fields.get(name).and_then(|field| field["type"].as_str()).map(str::to_owned)
        };
        let other = self.0.iter().map(found).find(|found| found.as_deref() != Some(kind))?;
        Some(differs(name, kind, other.as_deref()))
    }
}

fn differs(name: &str, expected: &str, found: Option<&str>) -> String {
    match found {
        None => format!("`{name}` is missing, expected {expected}"),
        Some(found) => format!("`{name}` is {}, expected {expected}", excerpt(found)),
    }
}
