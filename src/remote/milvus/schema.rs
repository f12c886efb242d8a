//! The schema of a collection: created for a new one, checked for an existing one.
//!
//! `text` holds title and text, as the retrievers here read them, because Milvus's BM25 reads one field.

use milvus::v2::prelude::{
    CollectionSchema, DataType, FieldSchema, Function, FunctionType, IndexParam, IndexType, MetricType,
};
use serde_json::json;

/// The field of the vectors.
pub const VECTOR: &str = "vector";
/// The field that Milvus's BM25 fills from `text`.
pub const TERMS: &str = "terms";
/// The most bytes of a text field in Milvus.
pub const LONGEST: usize = 65_535;
/// The bytes of an id.
pub const LONGEST_ID: usize = 512;

/// The schema of a new collection.
pub fn new(dimensions: usize) -> CollectionSchema {
    let text = |name: &str, most: usize| {
        FieldSchema::new().name(name).data_type(DataType::VarChar).max_length(most as u32)
    };
    // The parts of Milvus's English analyser: Milvus Lite knows only the parts, and ignores the stemmer.
    let english = json!({
        "tokenizer": "standard",
        "filter": ["lowercase", {"type": "stemmer", "language": "english"}, {"type": "stop", "stop_words": ["_english_"]}],
    });
    let vector = FieldSchema::new().name(VECTOR).data_type(DataType::FloatVector);
    CollectionSchema::new()
        .description("passages of Parallax")
        .add_field(text("id", LONGEST_ID).primary_key(true))
        .add_field(text("title", LONGEST))
        .add_field(text("text", LONGEST).enable_analyzer(true).analyzer_params(english))
        .add_field(text("hash", 64))
        .add_field(vector.dimension(u32::try_from(dimensions).unwrap_or(u32::MAX)))
        .add_field(FieldSchema::new().name(TERMS).data_type(DataType::SparseFloatVector))
        .add_function(
            Function::new()
                .name("bm25")
                .function_type(FunctionType::Bm25)
                .input_fields(["text"])
                .output_fields([TERMS]),
        )
}

/// How the fields of a new collection are indexed.
pub fn indexes() -> Vec<IndexParam> {
    let vectors = IndexParam::new().field_name(VECTOR).index_type(IndexType::AutoIndex);
    let terms = IndexParam::new().field_name(TERMS).index_type(IndexType::SparseInvertedIndex);
    vec![vectors.metric_type(MetricType::Cosine), terms.metric_type(MetricType::Bm25)]
}

/// Why a lane cannot search by vectors.
pub fn vectors(there: &CollectionSchema, dimensions: usize) -> Vec<String> {
    let size = field(there, VECTOR).map_or(0, |field| field.get_dimension() as usize);
    match lacks(there, VECTOR, DataType::FloatVector) {
        None if size != dimensions => vec![format!("`vector` has {size} numbers, expected {dimensions}")],
        other => other.into_iter().chain(ids(there)).collect(),
    }
}

/// Why a lane cannot search by terms.
pub fn terms(there: &CollectionSchema) -> Vec<String> {
    let fills = |function: &Function| {
        function.get_function_type() == FunctionType::Bm25
            && function.get_output_fields().iter().any(|field| field == TERMS)
    };
    let function = !there.get_functions().iter().any(fills);
    let function = function.then(|| format!("no BM25 function fills `{TERMS}`"));
    lacks(there, TERMS, DataType::SparseFloatVector).or(function).into_iter().chain(ids(there)).collect()
}

/// Why a corpus cannot be loaded.
pub fn whole(there: &CollectionSchema, dimensions: usize) -> Vec<String> {
    let texts =
        ["id", "title", "text", "hash"].into_iter().filter_map(|name| lacks(there, name, DataType::VarChar));
    let beside =
        field(there, "id").filter(|field| !field.is_primary_key()).map(|_| "`id` is not the key".into());
    let mut all: Vec<String> =
        texts.chain(beside).chain(vectors(there, dimensions)).chain(terms(there)).collect();
    all.sort();
    all.dedup();
    all
}

/// Ids are those of the passages.
fn ids(there: &CollectionSchema) -> Option<String> {
    let key = there.get_fields().iter().find(|field| field.is_primary_key())?;
    (key.get_data_type() != DataType::VarChar)
        .then(|| format!("the key `{}` is {:?}, expected VarChar", key.get_name(), key.get_data_type()))
}

fn field<'a>(there: &'a CollectionSchema, name: &str) -> Option<&'a FieldSchema> {
    there.get_fields().iter().find(|field| field.get_name() == name)
}

fn lacks(there: &CollectionSchema, name: &str, kind: DataType) -> Option<String> {
    match field(there, name).map(FieldSchema::get_data_type) {
        Some(found) if found == kind => None,
        Some(found) => Some(format!("`{name}` is {found:?}, expected {kind:?}")),
        None => Some(format!("`{name}` is missing, expected {kind:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_is_right_and_what_differs_is_named() {
        let own = new(384);
        assert!(whole(&own, 384).is_empty() && terms(&own).is_empty() && vectors(&own, 384).is_empty());
        assert_eq!(vectors(&own, 768), ["`vector` has 384 numbers, expected 768"]);
        let other = CollectionSchema::new()
            .add_field(FieldSchema::new().name("pk").data_type(DataType::Int64).primary_key(true))
            .add_field(FieldSchema::new().name("vector").data_type(DataType::BinaryVector).dimension(64));
        let differences = whole(&other, 384).join("; ");
        for part in [
            "key `pk` is Int64",
            "`id` is missing",
            "`hash` is missing",
            "`terms` is missing",
            "`vector` is BinaryVector",
        ] {
            assert!(differences.contains(part), "{part}: {differences}");
        }
        let no_function = CollectionSchema::new().fields(own.get_fields().to_vec());
        assert_eq!(terms(&no_function), ["no BM25 function fills `terms`"]);
    }
}
