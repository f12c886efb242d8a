//! What an index holds: read, compared with what is needed, and written for a new one.

use serde_json::{Map, Value, json};

/// Whose words a query for vectors is put in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// `knn_vector`, and a query of its own.
    OpenSearch,
    /// `dense_vector`, and a part of the search beside the query.
    Elasticsearch,
}

/// The fields of an index.
#[derive(Clone, Debug, PartialEq)]
pub struct Mapping(Vec<Map<String, Value>>);

impl Dialect {
    /// The server's, by what it says of itself.
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

    /// What makes an index.
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
    /// Reads the answer to `INDEX/_mapping`: an alias may stand for several indices.
    pub fn read(said: &Value) -> Option<Self> {
        let indices = said.as_object().filter(|indices| !indices.is_empty())?;
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

    /// Whether both texts are searched.
    pub fn texts(&self) -> Result<(), Vec<String>> {
        let differs: Vec<String> =
            ["title", "text"].into_iter().filter_map(|name| self.lacks(name, "text")).collect();
        if differs.is_empty() { Ok(()) } else { Err(differs) }
    }

    /// How the vectors are asked for.
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
                return Err(vec![format!("`vector` has {size} numbers, expected {dimensions}")]);
            }
            if field["method"]["engine"] == "nmslib" {
                // It scores by 1 / (2 - cosine).
                return Err(vec!["`vector` is kept by nmslib, expected lucene or faiss".into()]);
            }
            // What a server takes where nothing is said: `_mapping` leaves it out.
            let space = match found {
                Dialect::OpenSearch => {
                    field["method"]["space_type"].as_str().or(field["space_type"].as_str()).ok_or_else(
                        || vec!["`vector` names no space_type, which means l2, expected cosinesimil".into()],
                    )?
                }
                Dialect::Elasticsearch => field["similarity"].as_str().unwrap_or("cosine"),
            };
            if !["cosine", "cosinesimil"].contains(&space) {
                return Err(vec![format!("`vector` is compared by {space:?}, expected the cosine")]);
            }
            dialect = Some(found);
        }
        dialect.ok_or_else(|| vec!["it has no fields".into()])
    }

    /// Whether a corpus can be loaded.
    pub fn whole(&self, dimensions: usize) -> Result<(), Vec<String>> {
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
        Some(found) => format!("`{name}` is {}, expected {expected}", crate::input::excerpt(found)),
    }
}
