//! Servers that are down, busy, slow, or say nonsense.

use super::*;

#[test]
fn a_busy_server_is_asked_again_and_given_up_after_four_tries() {
    let server = searched(|count| match count {
        1 => raw("429 Too Many Requests", "Retry-After: 0\r\n", ""),
        2 => raw("503 Service Unavailable", "", "{}"),
        _ => ok(&hits(&[("a", 1.0)])),
    });
    assert_eq!(server.engine().by_text("x", 5, &never()).unwrap().len(), 1);
    let server = searched(|_| raw("503 Service Unavailable", "", "{}"));
    let Err(RemoteError::Refused(told)) = server.engine().by_text("x", 5, &never()) else { panic!() };
    assert!(told.contains("503") && told.contains("tried 4 times"), "{told}");
    assert_eq!(server.lines().len(), 5);
}

#[test]
fn a_server_that_is_down_slow_or_cuts_the_answer_is_told() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let place = Place::parse(&format!("os:http://{closed}/args")).unwrap();
    let Err(RemoteError::Unreached(told)) = OpenSearch::at(&place, None).unwrap().by_text("x", 5, &never())
    else {
        panic!()
    };
    assert!(told.contains("could not be reached") && !told.contains("tried"), "{told}");

    let slow = Server::start(|_, _| Vec::new());
    let mut engine = slow.engine();
    engine.caller.patience = Duration::from_millis(30);
    let Err(RemoteError::Unreached(told)) = engine.by_text("x", 5, &never()) else { panic!() };
    assert!(told.contains("sent nothing for 30ms"), "{told}");

    let cut = Server::start(|_, _| b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n{\"hits".to_vec());
    let Err(RemoteError::Unreached(told)) = cut.engine().by_text("x", 5, &never()) else { panic!() };
    assert!(told.contains("tried 4 times"), "{told}");
}

#[test]
fn a_server_that_speaks_tls_is_not_believed_without_a_certificate_and_http_is_not_taken_for_it() {
    let plain = Server::start(|_, _| raw("200 OK", "", "{}"));
    let place = Place::parse(&format!("os:{}/args", plain.url.replace("http://", "https://"))).unwrap();
    // Where the system has no certificates, there is no client at all.
    if let Ok(mut engine) = OpenSearch::at(&place, None) {
        engine.caller.patience = Duration::from_millis(500);
        assert!(matches!(engine.by_text("x", 5, &never()), Err(RemoteError::Unreached(_))));
    }
    assert!(plain.lines().is_empty(), "nothing was sent in the clear");
}

#[test]
fn nonsense_is_no_list() {
    for nonsense in [
        raw("200 OK", "", "<html>hello"),
        ok(&json!({"hits": {"hits": [{"_id": 7, "_score": 1.0}]}})),
        ok(&json!({"hits": {"hits": [{"_id": "a", "_score": null}]}})),
        ok(&json!({"hits": {"hits": [{"_id": "a", "_score": 1e300}]}})),
        ok(&json!([])),
    ] {
        let server = searched(move |_| nonsense.clone());
        let told = server.engine().by_text("x", 5, &never());
        assert!(matches!(told, Err(RemoteError::Nonsense(_))), "{told:?}");
    }
    let server = searched(|_| ok(&json!({"timed_out": true, "hits": {"hits": []}})));
    let Err(RemoteError::Refused(told)) = server.engine().by_text("x", 5, &never()) else { panic!() };
    assert!(told.contains("a part of the index"), "{told}");
    let server = Server::start(|_, _| raw("301 Moved", "Location: http://elsewhere/\r\n", ""));
    assert!(matches!(server.engine().by_text("x", 5, &never()), Err(RemoteError::Refused(_))));
    assert_eq!(server.lines().len(), 1, "a redirect is not followed");
}

#[test]
fn a_stop_ends_the_waiting() {
    let now = Arc::new(AtomicU64::new(0));
    let stops = Arc::clone(&now);
    let server = Server::start(move |_, _| {
        stops.store(1, Ordering::SeqCst);
        Vec::new()
    });
    let told = server.engine().by_text("x", 5, &Stop::when_past(&now, 0));
    assert!(matches!(told, Err(RemoteError::Stopped(_))), "{told:?}");
}
