//! Making an index, and putting passages into it.

use std::collections::HashMap;

use serde::Serialize;
use serde_json::{Value, json};

use super::mapping::{Dialect, Mapping};
use super::{OpenSearch, RemoteError, Row, other_schema, tame};
use crate::net::Verb;
use crate::work::Stop;

/// How often passages that the server was too busy for are sent again.
const TRIES: u32 = 4;

impl OpenSearch {
    pub(super) fn make(&self, dimensions: usize, stop: &Stop) -> Result<bool, RemoteError> {
        let there = self.ask(Verb::Get, "_mapping", None, stop)?;
        if there.status == 404 {
            let root = self.json(&self.ask(Verb::Get, "/", None, stop)?)?;
            let dialect = Dialect::of(&root).ok_or_else(|| self.nonsense(root.to_string().as_bytes()))?;
            let made = self.ask(Verb::Put, "", Some(&dialect.index(dimensions)), stop)?;
            let body: Value = serde_json::from_slice(&made.body).unwrap_or_default();
            if body["error"]["type"] != "resource_already_exists_exception" {
                self.json(&made)?;
                return Ok(true);
            }
        }
        // Somebody may have made it meanwhile, so it is looked at anew.
        let there = if there.status == 404 { self.ask(Verb::Get, "_mapping", None, stop)? } else { there };
        let mapping = Mapping::read(&self.json(&there)?).ok_or_else(|| self.nonsense(&there.body))?;
        mapping.whole(dimensions).map_err(|differs| other_schema(&self.place, &differs))?;
        Ok(false)
    }

    pub(super) fn hashes(&self, ids: &[String], stop: &Stop) -> Result<HashMap<String, String>, RemoteError> {
        let body = json!({"ids": ids});
        let said = self.ask(Verb::Post, "_mget?_source_includes=hash", Some(&body), stop)?;
        let json = self.json(&said)?;
        let docs = json["docs"].as_array().ok_or_else(|| self.nonsense(&said.body))?;
        let found = docs.iter().filter(|doc| doc["found"] == true);
        let hash = |doc: &Value| doc["_source"]["hash"].as_str().unwrap_or_default().to_owned();
        Ok(found.filter_map(|doc| Some((doc["_id"].as_str()?.to_owned(), hash(doc)))).collect())
    }

    pub(super) fn bulk(&self, rows: &[Row], stop: &Stop) -> Result<(), RemoteError> {
        let mut left: Vec<&Row> = rows.iter().collect();
        for tried in 1.. {
            let said = self.send(Verb::Post, "_bulk", lines(&left), true, stop)?;
            let json = self.json(&said)?;
            let items = json["items"].as_array().filter(|items| items.len() == left.len());
            let items = items.ok_or_else(|| self.nonsense(&said.body))?;
            let mut again = Vec::new();
            for (row, item) in left.iter().zip(items) {
                let item = &item["index"];
                match item["status"].as_u64() {
                    Some(200..=299) => {}
                    // The server had no room for it just now.
                    Some(429) if tried < TRIES => again.push(*row),
                    Some(status) => {
                        let error = &item["error"];
                        let reason = error["reason"].as_str().or(error.as_str()).unwrap_or("no reason given");
                        return Err(RemoteError::Refused(format!(
                            "{} refused the passage {} with {status}: {}",
                            self.place.url,
                            crate::input::excerpt(&row.id),
                            tame(reason)
                        )));
                    }
                    None => return Err(self.nonsense(&said.body)),
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

    pub(super) fn refresh(&self, stop: &Stop) -> Result<u64, RemoteError> {
        self.json(&self.ask(Verb::Post, "_refresh", None, stop)?)?;
        let said = self.ask(Verb::Get, "_count", None, stop)?;
        self.json(&said)?["count"].as_u64().ok_or_else(|| self.nonsense(&said.body))
    }
}

/// What an index keeps of a passage. Not through `Value`, which has numbers twice as long.
#[derive(Serialize)]
struct Holds<'a> {
    title: &'a str,
    text: &'a str,
    hash: &'a str,
    vector: &'a [f32],
}

/// Two lines a passage: what is done, and what it holds.
pub(super) fn lines(rows: &[&Row]) -> Vec<u8> {
    let mut lines = Vec::new();
    for Row { id, title, text, hash, vector } in rows {
        let holds = serde_json::to_string(&Holds { title, text, hash, vector }).unwrap_or_default();
        lines.extend(format!("{}\n{holds}\n", json!({"index": {"_id": id}})).into_bytes());
    }
    lines
}
