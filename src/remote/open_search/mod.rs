//! OpenSearch and Elasticsearch over HTTP: `_search`, `_mget`, `_bulk` and the mapping.

mod fill;
mod mapping;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

use super::{
    Engine, Place, RemoteError, Row, Scored, absent, checked, other_schema, sealed, tame, unreached, variable,
};
use crate::net::{Call, Caller, Said, Secret, Verb};
use crate::work::Stop;
use mapping::Mapping;

/// The user and the password that are sent.
const USER: &str = "PARALLAX_OPENSEARCH_USER";
const PASSWORD: &str = "PARALLAX_OPENSEARCH_PASSWORD";
/// The key that is sent instead.
const KEY: &str = "PARALLAX_OPENSEARCH_KEY";

/// An index on a server.
pub struct OpenSearch {
    place: Place,
    caller: Caller,
    /// What the index holds, once it has been looked at and found right.
    mapping: Mutex<Option<Mapping>>,
}

impl OpenSearch {
    /// A client for an index, with the secret that the environment holds.
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
            sealed(place, &format!("{PASSWORD} or {KEY}"))?;
        }
        let caller = Caller::new(&place.url, secret).map_err(RemoteError::Unreached)?;
        Ok(OpenSearch { place: place.clone(), caller, mapping: Mutex::default() })
    }

    /// Sends JSON below the index, or below the server where the path begins with a slash.
    fn ask(&self, verb: Verb, path: &str, body: Option<&Value>, stop: &Stop) -> Result<Said, RemoteError> {
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
    ) -> Result<Said, RemoteError> {
        let path = match path.strip_prefix('/') {
            Some(path) => path.to_owned(),
            None => format!("{}{}{path}", self.place.name, if path.is_empty() { "" } else { "/" }),
        };
        let called = self.caller.call(&Call { verb, path, body, lines }, stop);
        called.map_err(|error| unreached(&self.place, error))
    }

    /// The JSON of an answer that is a success.
    fn json(&self, said: &Said) -> Result<Value, RemoteError> {
        if !(200..300).contains(&said.status) {
            return Err(self.refused(said));
        }
        serde_json::from_slice(&said.body).map_err(|_| self.nonsense(&said.body))
    }

    fn nonsense(&self, body: &[u8]) -> RemoteError {
        let start = String::from_utf8_lossy(&body[..body.len().min(200)]).into_owned();
        RemoteError::Nonsense(format!(
            "{} sent {} where an answer of OpenSearch or Elasticsearch was expected; check the address",
            self.place.url,
            crate::input::excerpt(start.trim())
        ))
    }

    /// Why the server refused, in its words.
    fn refused(&self, said: &Said) -> RemoteError {
        let body: Value = serde_json::from_slice(&said.body).unwrap_or_default();
        let error = &body["error"];
        if said.status == 404 && (error["type"] == "index_not_found_exception" || error.is_null()) {
            return absent(&self.place);
        }
        let reason = error["root_cause"][0]["reason"].as_str().or(error["reason"].as_str());
        let words = match reason.or(error.as_str()) {
            Some(words) => words.to_owned(),
            None => String::from_utf8_lossy(&said.body).into_owned(),
        };
        let words = tame(&words);
        let words = if words.is_empty() { String::new() } else { format!(": {words}") };
        let advice = match said.status {
            300..=399 => "; name the address it has moved to".into(),
            401 | 403 if self.caller.has_secret() => format!("; check {USER} and {PASSWORD}, or {KEY}"),
            401 | 403 => format!("; set {USER} and {PASSWORD}, or {KEY}"),
            413 => "; it takes no requests of this size".into(),
            429 | 503 => "; it is busy, try again later".into(),
            _ => String::new(),
        };
        let tried = if said.tried > 1 { format!(" (tried {} times)", said.tried) } else { String::new() };
        let told = format!("{} refused with {}{words}{advice}{tried}", self.place.url, said.status);
        if said.status == 413 { RemoteError::TooLarge(told) } else { RemoteError::Refused(told) }
    }

    /// What a look at the mapping finds: at the one that was found right before, else at the one that is there now.
    fn look<T>(
        &self,
        look: impl Fn(&Mapping) -> Result<T, Vec<String>>,
        stop: &Stop,
    ) -> Result<T, RemoteError> {
        let known = self.mapping.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(Ok(found)) = known.as_ref().map(&look) {
            return Ok(found);
        }
        let said = self.ask(Verb::Get, "_mapping", None, stop)?;
        let mapping = Mapping::read(&self.json(&said)?).ok_or_else(|| self.nonsense(&said.body))?;
        let found = look(&mapping).map_err(|differs| other_schema(&self.place, &differs))?;
        *self.mapping.lock().unwrap_or_else(PoisonError::into_inner) = Some(mapping);
        Ok(found)
    }

    fn search(&self, body: &Value, depth: usize, stop: &Stop) -> Result<Vec<Scored>, RemoteError> {
        let said = self.ask(Verb::Post, "_search", Some(body), stop)?;
        let json = self.json(&said)?;
        if json["timed_out"] == true || json["_shards"]["failed"].as_u64().unwrap_or(0) > 0 {
            return Err(RemoteError::Refused(format!(
                "{} answered for a part of the index alone; see what the server says, or try again later",
                self.place.url
            )));
        }
        let hits = json["hits"]["hits"].as_array().ok_or_else(|| self.nonsense(&said.body))?;
        let scored = hits.iter().map(|hit| {
            let id = hit["_id"].as_str()?.to_owned();
            Some(Scored { id, score: hit["_score"].as_f64()? as f32 })
        });
        let scored = scored.collect::<Option<Vec<_>>>().ok_or_else(|| self.nonsense(&said.body))?;
        checked(&self.place, scored, depth)
    }
}

impl Engine for OpenSearch {
    fn by_text(&self, text: &str, depth: usize, stop: &Stop) -> Result<Vec<Scored>, RemoteError> {
        self.look(Mapping::texts, stop)?;
        let fields = ["title", "text"].map(|field| json!({"match": {field: {"query": text}}}));
        let body = json!({"size": depth, "_source": false, "query": {"bool": {"should": fields}}});
        self.search(&body, depth, stop)
    }

    fn by_vector(&self, vector: &[f32], depth: usize, stop: &Stop) -> Result<Vec<Scored>, RemoteError> {
        let dialect = self.look(|mapping| mapping.vectors(vector.len()), stop)?;
        let body = dialect.nearest(vector, depth);
        let hits = self.search(&body, depth, stop)?;
        // Both engines give (1 + cosine) / 2.
        Ok(hits.into_iter().map(|hit| Scored { score: 2.0 * hit.score - 1.0, ..hit }).collect())
    }

    fn prepare(&self, dimensions: usize, stop: &Stop) -> Result<bool, RemoteError> {
        self.make(dimensions, stop)
    }

    fn known(&self, ids: &[String], stop: &Stop) -> Result<HashMap<String, String>, RemoteError> {
        self.hashes(ids, stop)
    }

    fn size(&self, row: &Row) -> usize {
        fill::lines(&[row]).len()
    }

    fn put(&self, rows: &[Row], stop: &Stop) -> Result<(), RemoteError> {
        self.bulk(rows, stop)
    }

    fn finish(&self, stop: &Stop) -> Result<u64, RemoteError> {
        self.refresh(stop)
    }
}
