//! Against a real Milvus Lite, which needs a Python that has it.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use ::milvus::v2::prelude::{
    ClientV2, CollectionSchema, ConnectConfig, CreateCollectionRequest, DataType, FieldSchema,
};

use super::*;

/// A Milvus Lite of its own; killed when dropped.
struct Server {
    child: Child,
    url: String,
    _data: tempfile::TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn has_milvus(python: &Path) -> bool {
    let asked =
        Command::new(python).args(["-c", "import milvus_lite, pymilvus"]).stderr(Stdio::null()).status();
    asked.is_ok_and(|status| status.success())
}

/// A Python with Milvus Lite: the named one, else the one that the checks create, else the system's.
fn python() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("PARALLAX_MILVUS_PYTHON").map(PathBuf::from) {
        assert!(
            has_milvus(&named),
            "PARALLAX_MILVUS_PYTHON names {}, which has no milvus_lite or no pymilvus",
            named.display()
        );
        return Some(named);
    }
    let made = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/milvus-lite/bin/python3");
    [made, "python3".into()].into_iter().find(|python| has_milvus(python))
}

fn start() -> Server {
    let python = python().expect(
        "a python3 with milvus_lite and pymilvus (pip install milvus-lite pymilvus, or name one in PARALLAX_MILVUS_PYTHON)",
    );
    let data = tempfile::tempdir().unwrap();
    let log = data.path().join("log");
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let mut command = Command::new(python);
    command.args(["-u", "-m", "milvus_lite", "server", "--host", "127.0.0.1", "--port", &port, "--data-dir"]);
    command.arg(data.path().join("milvus")).stdout(Stdio::piped()).stderr(File::create(&log).unwrap());
    let mut child = command.spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let server = Server { child, url: format!("http://127.0.0.1:{port}"), _data: data };
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    let why = std::fs::read_to_string(log).unwrap();
    assert!(line.contains("listening"), "Milvus Lite did not start: {line}{why}");
    // Reads the rest of its output, so that it never blocks on a full pipe.
    std::thread::spawn(move || std::io::copy(&mut out, &mut std::io::sink()));
    server
}

/// A collection with another schema.
fn made_by_hand(url: &str) {
    let key = FieldSchema::new().name("pk").data_type(DataType::Int64).primary_key(true);
    let vector = FieldSchema::new().name("vector").data_type(DataType::FloatVector).dimension(8);
    let request = CreateCollectionRequest::builder()
        .collection_name("others")
        .schema(CollectionSchema::new().add_field(key).add_field(vector));
    let (request, config) = (request.build().unwrap(), ConnectConfig::new().uri(url));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = ClientV2::new(&config).await.unwrap();
        client.create_collection(request).await.unwrap();
    });
}

#[test]
#[ignore = "needs Milvus Lite: a python3 with milvus_lite and pymilvus (PARALLAX_MILVUS_PYTHON)"]
fn a_corpus_is_pushed_to_milvus_once_and_its_lanes_rank_like_local_ones() {
    let server = start();
    let workspace = Workspace::new();
    pushed_and_asked(&workspace, &format!("milvus:{}/args", server.url));
    let corpus = corpus(&workspace);
    let absent = format!("milvus:{}/absent", server.url);
    let printed = workspace.run(&["search", QUESTION, "--corpus", &corpus, "--lane", &absent]);
    assert!(printed.err.contains("corpus push"), "{}", printed.err);
}

#[test]
#[ignore = "needs Milvus Lite: a python3 with milvus_lite and pymilvus (PARALLAX_MILVUS_PYTHON)"]
fn a_foreign_collection_is_refused_with_the_differences() {
    let server = start();
    made_by_hand(&server.url);
    let (workspace, place) = (Workspace::new(), format!("milvus:{}/others", server.url));
    let corpus = corpus(&workspace);
    let vector = "`vector` has 8 numbers, expected 384";
    workspace.run(&["corpus", "push", &place, "--corpus", &corpus]).bad(&[
        "another schema",
        "`id` is missing, expected VarChar",
        "`hash` is missing, expected VarChar",
        "`terms` is missing",
        vector,
    ]);
    for (by, why) in [("vectors", vector), ("bm25", "`terms` is missing")] {
        let lane = format!("{place}@by={by}");
        let printed = workspace.run(&["search", QUESTION, "--corpus", &corpus, "--lane", &lane]);
        assert!(printed.code == Some(2) && printed.err.contains(why), "{}", printed.err);
    }
}

#[test]
fn an_unreachable_milvus_is_reported_at_once() {
    let workspace = Workspace::new();
    let corpus = corpus(&workspace);
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let place = format!("milvus:http://{closed}/args");
    workspace.run(&["corpus", "push", &place, "--corpus", &corpus]).bad(&["could not be reached"]);
}
