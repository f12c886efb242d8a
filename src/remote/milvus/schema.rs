//! The schema of a collection: created for a new one, checked for an existing one.
//!
//! The field `text` holds title and text, as this program's retrievers read them, because Milvus's BM25 reads one field.

use milvus::v2::prelude::{
    CollectionSchema, DataType, FieldSchema, Function, FunctionType, IndexParam, IndexType, MetricType,
};
use serde_json::json;

/// The field of the vectors.
pub const VECTOR: &str = "vector";
/// The field that Milvus's BM25 fills from `text`.
pub const TERMS: &str = "terms";
/// The maximum length of a text field in Milvus, in bytes.
pub const LONGEST: usize = 65_535;
/// The maximum length of an id, in bytes.
pub const LONGEST_ID: usize = 512;

/// The schema of a new collection.
pub fn new(dimensions: usize) -> CollectionSchema {
    let text = |name: &str, most: usize| {
        FieldSchema::new().name(name).data_type(DataType::VarChar).max_length(most as u32)
    };
    // The parts of Milvus's English analyser: Milvus Lite supports only the parts, and ignores the stemmer.
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

/// The indexes of a new collection.
pub fn indexes() -> Vec<IndexParam> {
    let vectors = IndexParam::new().field_name(VECTOR).index_type(IndexType::AutoIndex);
    let terms = IndexParam::new().field_name(TERMS).index_type(IndexType::SparseInvertedIndex);
    vec![vectors.metric_type(MetricType::Cosine), terms.metric_type(MetricType::Bm25)]
}

/// The reasons why a lane cannot search by vectors; empty if it can.
pub fn vector_problems(schema: &CollectionSchema, dimensions: usize) -> Vec<String> {
    let size = field(schema, VECTOR).map_or(0, |field| field.get_dimension() as usize);
    match field_problem(schema, VECTOR, DataType::FloatVector) {
        None if size != dimensions => vec![format!("`vector` has {size} numbers, expected {dimensions}")],
        other => other.into_iter().chain(key_problem(schema)).collect(),
    }
}

/// The reasons why a lane cannot search by terms; empty if it can.
pub fn term_problems(schema: &CollectionSchema) -> Vec<String> {
    let fills = |function: &Function| {
        function.get_function_type() == FunctionType::Bm25
            && function.get_output_fields().iter().any(|field| field == TERMS)
    };
    let function = !schema.get_functions().iter().any(fills);
    let function = function.then(|| format!("no BM25 function fills `{TERMS}`"));
    field_problem(schema, TERMS, DataType::SparseFloatVector)
        .or(function)
        .into_iter()
        .chain(key_problem(schema))
        .collect()
}

/// The reasons why a corpus cannot be loaded; empty if it can.
pub fn load_problems(schema: &CollectionSchema, dimensions: usize) -> Vec<String> {
    let texts = ["id", "title", "text", "hash"]
        .into_iter()
        .filter_map(|name| field_problem(schema, name, DataType::VarChar));
    let key =
        field(schema, "id").filter(|field| !field.is_primary_key()).map(|_| "`id` is not the key".into());
    let mut all: Vec<String> =
        texts.chain(key).chain(vector_problems(schema, dimensions)).chain(term_problems(schema)).collect();
    all.sort();
    all.dedup();
    all
}

/// Checks that the key is text, as passage ids are.
fn key_problem(schema: &CollectionSchema) -> Option<String> {
    let key = schema.get_fields().iter().find(|field| field.is_primary_key())?;
    (key.get_data_type() != DataType::VarChar)
        .then(|| format!("the key `{}` is {:?}, expected VarChar", key.get_name(), key.get_data_type()))
}

fn field<'a>(schema: &'a CollectionSchema, name: &str) -> Option<&'a FieldSchema> {
    schema.get_fields().iter().find(|field| field.get_name() == name)
}

fn field_problem(schema: &CollectionSchema, name: &str, kind: DataType) -> Option<String> {
    match field(schema, name).map(FieldSchema::get_data_type) {
        Some(found) if found == kind => None,
        Some(found) => Some(format!("`{name}` is {found:?}, expected {kind:?}")),
        None => Some(format!("`{name}` is missing, expected {kind:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_schema_has_no_problems_and_a_different_one_has_them_named() {
        let own = new(384);
        assert!(load_problems(&own, 384).is_empty());
        assert!(term_problems(&own).is_empty() && vector_problems(&own, 384).is_empty());
        assert_eq!(vector_problems(&own, 768), ["`vector` has 384 numbers, expected 768"]);
        let other = CollectionSchema::new()
            .add_field(FieldSchema::new().name("pk").data_type(DataType::Int64).primary_key(true))
            .add_field(FieldSchema::new().name("vector").data_type(DataType::BinaryVector).dimension(64));
        let differences = load_problems(&other, 384).join("; ");
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
        assert_eq!(term_problems(&no_function), ["no BM25 function fills `terms`"]);
    }
}

#[cfg(test)]
mod loopback_tests {
    //! Servers on loopback that refuse, fall silent or speak another protocol.

    use crate::remote::{Place, RemoteError};
    use crate::work::Stop;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use super::super::*;

    /// A server that handles each connection with `serve`.
    fn server(serve: impl Fn(TcpStream) + Send + 'static) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        std::thread::spawn(move || listener.incoming().flatten().for_each(serve));
        at.to_string()
    }

    fn engine(at: &str, token: Option<&str>) -> Milvus {
        let place = Place::parse(&format!("milvus:http://{at}/args")).unwrap();
        let patience = Duration::from_millis(500);
        let mut engine = Milvus::at(&place, token.map(str::to_owned)).unwrap();
        engine.patience = (patience, patience);
        engine
    }

    fn error(at: &str, token: Option<&str>) -> RemoteError {
        engine(at, token).by_text("x", 5, &Stop::never()).unwrap_err()
    }

    /// Answers every call with a status of gRPC: as little of HTTP/2 as that needs.
    fn refuses(status: &'static str, message: &'static str) -> impl Fn(TcpStream) {
        move |stream| drop(refuse(stream, status, message))
    }

    fn refuse(mut stream: TcpStream, status: &str, message: &str) -> std::io::Result<()> {
        const SETTINGS: u8 = 4;
        const HEADERS: u8 = 1;
        let frame = |kind: u8, flags: u8, id: [u8; 4], body: &[u8]| {
            let length = &(body.len() as u32).to_be_bytes()[1..];
            [length, &[kind, flags], &id, body].concat()
        };
        stream.read_exact(&mut [0; 24])?;
        stream.write_all(&frame(SETTINGS, 0, [0; 4], &[]))?;
        loop {
            let mut head = [0; 9];
            stream.read_exact(&mut head)?;
            let [a, b, c, kind, flags, id @ ..] = head;
            stream.read_exact(&mut vec![0; u32::from_be_bytes([0, a, b, c]) as usize])?;
            match (kind, flags) {
                (SETTINGS, 0) => stream.write_all(&frame(SETTINGS, 1, [0; 4], &[]))?,
                (HEADERS, _) => {
                    // `:status: 200` is entry 8 of HTTP/2's static table.
                    let mut block = vec![0x88];
                    for text in
                        ["content-type", "application/grpc", "grpc-status", status, "grpc-message", message]
                    {
                        // A name that is spelled out begins with a zero.
                        if ["content-type", "grpc-status", "grpc-message"].contains(&text) {
                            block.push(0);
                        }
                        block.push(u8::try_from(text.len()).unwrap());
                        block.extend_from_slice(text.as_bytes());
                    }
                    stream.write_all(&frame(HEADERS, 5, id, &block))?;
                }
                _ => {}
            }
        }
    }

    #[test]
    fn a_refusal_names_the_variable_and_never_the_token() {
        for status in ["16", "7"] {
            let at = server(refuses(status, "no access for me:hush"));
            let RemoteError::Refused(without) = error(&at, None) else { panic!() };
            assert!(
                without.contains("no access for") && without.contains("set PARALLAX_MILVUS_TOKEN"),
                "{without}"
            );
            let RemoteError::Refused(with) = error(&at, Some("me:hush")) else { panic!() };
            assert!(with.contains("check PARALLAX_MILVUS_TOKEN") && !with.contains("hush"), "{with}");
        }
    }

    #[test]
    fn a_server_without_room_and_one_that_knows_no_milvus_are_distinguished() {
        let RemoteError::Refused(full) = error(&server(refuses("8", "queue full")), None) else { panic!() };
        assert!(full.contains("no room for it (queue full); try again later"), "{full}");
        let RemoteError::Unreached(other) = error(&server(refuses("12", "unknown service")), None) else {
            panic!()
        };
        assert!(other.contains("does not answer as Milvus does (unknown service)"), "{other}");
    }

    #[test]
    fn a_server_that_is_down_silent_or_speaks_something_else_is_reported() {
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let RemoteError::Unreached(down) = error(&closed.to_string(), None) else { panic!() };
        assert!(down.contains("could not be reached") && down.contains("start the server"), "{down}");

        let silent = server(|mut stream| drop(std::io::copy(&mut stream, &mut std::io::sink())));
        let RemoteError::Unreached(silent) = error(&silent, None) else { panic!() };
        // Either timeout, the SDK's or this program's, may end first.
        assert!(silent.contains("did not answer"), "{silent}");

        let page =
            server(|mut stream| drop(stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")));
        let RemoteError::Unreached(page) = error(&page, None) else { panic!() };
        assert!(page.contains("answer as Milvus does"), "{page}");
    }

    #[test]
    fn a_stop_ends_the_waiting() {
        let now = Arc::new(AtomicU64::new(0));
        let stops = Arc::clone(&now);
        let at = server(move |mut stream| {
            stops.store(1, Ordering::SeqCst);
            drop(std::io::copy(&mut stream, &mut std::io::sink()));
        });
        let place = Place::parse(&format!("milvus:http://{at}/args")).unwrap();
        let error = Milvus::at(&place, None).unwrap().by_text("x", 5, &Stop::when_past(&now, 0));
        assert!(matches!(error, Err(RemoteError::Stopped(_))), "{error:?}");
    }
}
