//! Making a collection, and putting passages into it.

use std::collections::HashMap;

use milvus::v2::prelude::{
    ConsistencyLevel, CreateCollectionRequest, FieldData, InsertRequest, LoadCollectionRequest, QueryRequest,
    UpsertRequest,
};

use super::schema::{self, LONGEST, LONGEST_ID, VECTOR};
use super::{Milvus, RemoteError, Row};
use crate::work::Stop;

impl Milvus {
    pub(super) fn make(&self, dimensions: usize, stop: &Stop) -> Result<bool, RemoteError> {
        let name = self.place.name.as_str();
        let made = !self.is_there(|there| schema::whole(there, dimensions), stop)?;
        if made {
            let request = CreateCollectionRequest::builder()
                .collection_name(name)
                .schema(schema::new(dimensions))
                .index_params(schema::indexes());
            let request = self.built(request.build())?;
            self.with(stop, |client| async move { client.create_collection(request).await })?;
        }
        // Asking for hashes needs a loaded collection, and one that was made long ago may have been released.
        // A large one takes minutes, and a stop ends the waiting: no limit of the SDK's does.
        let load = LoadCollectionRequest::builder().collection_name(name).sync(true).timeout_ms(0);
        let load = self.built(load.build())?;
        self.with(stop, |client| async move { client.load_collection(load).await })?;
        Ok(made)
    }

    pub(super) fn hashes(&self, ids: &[String], stop: &Stop) -> Result<HashMap<String, String>, RemoteError> {
        // Not `get`: it sends the ids as values of a template, which Milvus Lite does not know.
        let request = QueryRequest::builder()
            .collection_name(&self.place.name)
            .filter(format!("id in {}", serde_json::json!(ids)))
            .output_fields(["id", "hash"])
            .limit(ids.len() as i64)
            .consistency_level(ConsistencyLevel::Strong);
        let request = self.built(request.build())?;
        let got = self.with(stop, |client| async move { client.query(request).await })?;
        let mut found = HashMap::new();
        for row in self.built(got.results().rows())? {
            found.insert(
                self.built(row.get_str("id"))?.to_owned(),
                self.built(row.get_str("hash"))?.to_owned(),
            );
        }
        Ok(found)
    }

    pub(super) fn upsert(&self, rows: &[Row], stop: &Stop) -> Result<(), RemoteError> {
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
            text("title", &|row| shortened(row.title.clone())),
            text("text", &|row| shortened(contents(row))),
            text("hash", &|row| row.hash.clone()),
            FieldData::float_vector(VECTOR, rows.iter().map(|row| row.vector.clone()).collect()),
        ];
        let insert = InsertRequest::builder().collection_name(&self.place.name).columns(columns).build();
        let request = self.built(UpsertRequest::builder().insert(self.built(insert)?).build())?;
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

    pub(super) fn count(&self, stop: &Stop) -> Result<u64, RemoteError> {
        let request = QueryRequest::builder()
            .collection_name(&self.place.name)
            .output_fields(["count(*)"])
            .consistency_level(ConsistencyLevel::Strong);
        let request = self.built(request.build())?;
        let counted = self.with(stop, |client| async move { client.query(request).await })?;
        let row = self.built(counted.results().rows())?.next();
        let count = row.map(|row| self.built(row.get_i64("count(*)"))).transpose()?;
        Ok(count.and_then(|count| u64::try_from(count).ok()).unwrap_or(0))
    }
}

/// The bytes of its columns: the title is sent a second time before the text.
pub(super) fn size(row: &Row) -> usize {
    let Row { id, title, text, hash, vector } = row;
    id.len() + title.len() * 2 + text.len() + hash.len() + size_of_val(vector.as_slice())
}

/// What the retrievers here read.
fn contents(row: &Row) -> String {
    if row.title.is_empty() { row.text.clone() } else { format!("{} {}", row.title, row.text) }
}

/// As much as a field holds. The passages that are shown are those of the corpus, and the vector is of the whole.
fn shortened(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(LONGEST));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_too_long_is_cut_between_two_letters() {
        assert_eq!(shortened("é".repeat(40_000)).len(), LONGEST - 1);
        assert_eq!(shortened("short".into()), "short");
    }
}
