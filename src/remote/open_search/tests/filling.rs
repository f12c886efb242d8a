//! Making an index, and putting passages into it.

use super::*;

#[test]
fn an_index_is_made_in_the_words_of_the_server() {
    for (root, kind) in [
        (json!({"version": {"distribution": "opensearch", "number": "3.3.0"}}), "knn_vector"),
        (json!({"version": {"number": "9.1.0"}, "tagline": "You Know, for Search"}), "dense_vector"),
    ] {
        let server = Server::start(move |got, _| match got.line.as_str() {
            "GET /args/_mapping" => missing(),
            "GET /" => ok(&root),
            "PUT /args" => ok(&json!({"acknowledged": true})),
            other => panic!("{other}"),
        });
        assert_eq!(server.engine().prepare(384, &never()), Ok(true));
        let made: Value = serde_json::from_str(&server.got.lock().unwrap()[2].body).unwrap();
        assert_eq!(made["mappings"]["properties"]["vector"]["type"], kind);
    }
    let other = Server::start(|got, _| match got.line.as_str() {
        "GET /" => ok(&json!({"hello": "world"})),
        _ => missing(),
    });
    assert!(matches!(other.engine().prepare(384, &never()), Err(RemoteError::Nonsense(_))));
}

#[test]
fn passages_are_sent_as_lines_and_those_the_server_had_no_room_for_again() {
    let server = Server::start(|_, count| {
        let full = json!({"index": {"status": 429, "error": {"reason": "queue full"}}});
        let done = json!({"index": {"status": 201}});
        let items = if count == 1 { vec![done, full] } else { vec![done] };
        ok(&json!({"errors": count == 1, "items": items}))
    });
    server.engine().put(&[row("a"), row("b\n")], &never()).unwrap();
    let got = server.got.lock().unwrap().clone();
    assert_eq!(got.len(), 2);
    let lines: Vec<Value> = got[0].body.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((lines.len(), got[1].body.lines().count()), (4, 2));
    assert_eq!(lines[2]["index"]["_id"], "b\n");
    assert_eq!(lines[1]["text"], "Line one.\nLine two.");
    assert!(got[0].body.contains("\"vector\":[0.6,0.8]"), "numbers are written short: {}", got[0].body);
    assert_eq!(server.engine().size(&row("a")) + server.engine().size(&row("b\n")), got[0].body.len());
}

#[test]
fn a_passage_that_is_refused_is_named() {
    let server = Server::start(|_, _| {
        let why = json!({"type": "mapper_parsing_exception", "reason": "failed to parse"});
        ok(&json!({"errors": true, "items": [{"index": {"status": 400, "error": why}}]}))
    });
    let Err(RemoteError::Refused(told)) = server.engine().put(&[row("a-7")], &never()) else { panic!() };
    assert!(told.contains("`a-7`") && told.contains("failed to parse"), "{told}");
    let short = Server::start(|_, _| ok(&json!({"items": []})));
    assert!(matches!(short.engine().put(&[row("a")], &never()), Err(RemoteError::Nonsense(_))));
}

#[test]
fn a_request_that_is_too_large_is_told_as_such() {
    let server = Server::start(|_, _| raw("413 Content Too Large", "", ""));
    let Err(RemoteError::TooLarge(told)) = server.engine().put(&[row("a")], &never()) else { panic!() };
    assert!(told.contains("takes no requests of this size"), "{told}");
}

#[test]
fn hashes_are_those_of_the_passages_that_are_there() {
    let server = Server::start(|_, _| {
        ok(&json!({"docs": [
            {"_id": "a", "found": true, "_source": {"hash": "h1"}},
            {"_id": "b", "found": false},
            {"_id": "c", "found": true},
        ]}))
    });
    let known = server.engine().known(&["a".into(), "b".into(), "c".into()], &never()).unwrap();
    assert_eq!(known, HashMap::from([("a".into(), "h1".into()), ("c".into(), String::new())]));
}
