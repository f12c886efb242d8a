//! What is asked, and of what index.

use super::*;

#[test]
fn a_text_is_matched_in_title_and_text_and_the_schema_is_asked_for_once() {
    let server = searched(|_| ok(&hits(&[("a", 7.5), ("b", 2.0), ("a", 1.0)])));
    let engine = server.engine();
    let found = engine.by_text("Should zoos be banned?", 5, &never()).unwrap();
    let ids: Vec<(&str, f32)> = found.iter().map(|hit| (hit.id.as_str(), hit.score)).collect();
    assert_eq!(ids, [("a", 7.5), ("b", 2.0)], "an id stands once");
    engine.by_text("again", 1, &never()).unwrap();
    assert_eq!(server.lines(), ["GET /args/_mapping", "POST /args/_search", "POST /args/_search"]);
    let sent: Value = serde_json::from_str(&server.got.lock().unwrap()[1].body).unwrap();
    assert_eq!(sent["size"], 5);
    let should = &sent["query"]["bool"]["should"];
    assert_eq!(should[0]["match"]["title"]["query"], "Should zoos be banned?");
    assert_eq!(should[1]["match"]["text"]["query"], "Should zoos be banned?");
}

#[test]
fn vectors_are_asked_for_in_the_words_of_either_server_and_scores_are_cosines() {
    for dialect in [Dialect::OpenSearch, Dialect::Elasticsearch] {
        let server = Server::start(move |got, _| match got.line.as_str() {
            "GET /args/_mapping" => ok(&mapping(dialect, 2)),
            _ => ok(&hits(&[("a", 1.0), ("b", 0.75)])),
        });
        let found = server.engine().by_vector(&[0.6, 0.8], 7, &never()).unwrap();
        assert_eq!(found.iter().map(|hit| hit.score).collect::<Vec<_>>(), [1.0, 0.5]);
        let sent: Value = serde_json::from_str(&server.got.lock().unwrap()[1].body).unwrap();
        match dialect {
            Dialect::OpenSearch => assert_eq!(sent["query"]["knn"]["vector"]["k"], 7),
            Dialect::Elasticsearch => assert_eq!(sent["knn"]["field"], "vector"),
        }
    }
}

#[test]
fn another_schema_is_told_by_what_differs() {
    let server = Server::start(|_, _| {
        ok(&json!({"args": {"mappings": {"properties": {
            "title": {"type": "text"}, "text": {"type": "keyword"},
            "vector": {"type": "dense_vector", "dims": 768, "similarity": "cosine"},
        }}}}))
    });
    let told = |result: Result<Vec<Scored>, RemoteError>| match result {
        Err(RemoteError::Schema(told)) => told,
        other => panic!("{other:?}"),
    };
    let engine = server.engine();
    let text = told(engine.by_text("x", 5, &never()));
    assert!(text.contains("`text` is `keyword`, expected text") && text.contains("corpus push"), "{text}");
    let vectors = told(engine.by_vector(&[0.6, 0.8], 5, &never()));
    assert!(vectors.contains("`vector` has 768 numbers, expected 2"), "{vectors}");
    match engine.prepare(2, &never()) {
        Err(RemoteError::Schema(told)) => assert!(told.contains("`hash` is missing"), "{told}"),
        other => panic!("{other:?}"),
    }
    assert!(server.lines().iter().all(|line| line == "GET /args/_mapping"), "nothing was changed");
}

#[test]
fn vectors_that_are_not_scored_by_the_cosine_are_refused() {
    for (method, expected) in [
        (json!({"engine": "lucene", "space_type": "l2"}), "compared by \"l2\", expected the cosine"),
        (
            json!({"engine": "nmslib", "space_type": "cosinesimil"}),
            "kept by nmslib, expected lucene or faiss",
        ),
        (Value::Null, "names no space_type, which means l2, expected cosinesimil"),
        (json!({"engine": "faiss", "name": "hnsw"}), "names no space_type"),
    ] {
        let field = json!({"type": "knn_vector", "dimension": 2, "method": method});
        let server =
            Server::start(move |_, _| ok(&json!({"args": {"mappings": {"properties": {"vector": field}}}})));
        let Err(RemoteError::Schema(told)) = server.engine().by_vector(&[0.6, 0.8], 5, &never()) else {
            panic!()
        };
        assert!(told.contains(expected), "{told}");
    }
}

#[test]
fn a_space_is_read_where_either_server_writes_it() {
    for field in [
        json!({"type": "knn_vector", "dimension": 2, "space_type": "cosinesimil"}),
        json!({"type": "dense_vector", "dims": 2}),
    ] {
        let server = Server::start(move |got, _| match got.line.as_str() {
            "GET /args/_mapping" => ok(&json!({"args": {"mappings": {"properties": {"vector": field}}}})),
            _ => ok(&hits(&[("a", 1.0)])),
        });
        assert_eq!(server.engine().by_vector(&[0.6, 0.8], 5, &never()).unwrap().len(), 1);
    }
}

#[test]
fn an_index_that_does_not_fit_is_looked_at_again_once_it_was_mended() {
    let server = Server::start(|got, count| match (got.line.as_str(), count) {
        ("GET /args/_mapping", 1) => ok(&json!({"args": {"mappings": {}}})),
        ("GET /args/_mapping", _) => ok(&mapping(Dialect::OpenSearch, 2)),
        _ => ok(&hits(&[("a", 1.0)])),
    });
    let engine = server.engine();
    assert!(matches!(engine.by_text("x", 5, &never()), Err(RemoteError::Schema(_))));
    assert_eq!(engine.by_text("x", 5, &never()).unwrap().len(), 1);
    assert_eq!(engine.by_vector(&[0.6, 0.8], 5, &never()).unwrap().len(), 1);
    let asked = server.lines().iter().filter(|line| *line == "GET /args/_mapping").count();
    assert_eq!(asked, 2, "what was found right is remembered");
}

#[test]
fn an_index_that_is_not_there_is_told_with_what_makes_it() {
    let server = Server::start(|_, _| missing());
    let Err(RemoteError::Schema(told)) = server.engine().by_text("x", 5, &never()) else { panic!() };
    assert!(told.contains("parallax corpus push os:http://127.0.0.1"), "{told}");
}

#[test]
fn secrets_go_into_the_header_and_a_refusal_names_the_variables() {
    let refusing = || {
        Server::start(|_, _| {
            let why = json!({"type": "security_exception", "reason": "unable to authenticate"});
            answer("401 Unauthorized", "", &json!({"error": why, "status": 401}))
        })
    };
    let told = |server: &Server, secret| match server.engine_with(secret).by_text("x", 5, &never()) {
        Err(RemoteError::Refused(told)) => told,
        other => panic!("{other:?}"),
    };
    let server = refusing();
    let without = told(&server, None);
    assert!(
        without.contains("unable to authenticate") && without.contains(&format!("set {USER}")),
        "{without}"
    );
    let with = told(&server, Some(Secret::Basic("me".into(), "hush".into())));
    assert!(with.contains("check PARALLAX_OPENSEARCH_USER") && !with.contains("hush"), "{with}");
    told(&server, Some(Secret::ApiKey("a2V5".into())));
    let sent: Vec<Option<String>> = server.got.lock().unwrap().iter().map(|got| got.secret.clone()).collect();
    assert_eq!(sent, [None, Some("Basic bWU6aHVzaA==".into()), Some("ApiKey a2V5".into())]);
    assert_eq!(format!("{:?}", Secret::ApiKey("a2V5".into())), "(hidden)");
}
