use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread;
use std::time::{Duration, Instant};

use super::fake::{Act, END, Fake, Script, chunk, chunked_head, head, reply, response, said};
use super::openai_tests::{ask, client, endpoint, request};
use super::*;
use crate::net::retry::Backoff;

/// Longer than any stop may take on a busy machine, and far shorter than what the server would take.
const SOON: Duration = Duration::from_secs(2);

/// Asks a server that sets the stop itself, and gives what came of it and whether that was soon.
fn stopped(script: impl FnOnce(Act) -> Script) -> (Result<Reply, ChatError>, bool) {
    let now = Arc::new(AtomicU64::new(0));
    let fake = Fake::start(vec![script(Act::Stop(Arc::clone(&now)))]);
    let begun = Instant::now();
    let told = client(endpoint(&fake)).reply(&request(), &Stop::when_past(&now, 0));
    (told, begun.elapsed() < SOON)
}

#[test]
fn a_busy_server_is_asked_again_after_the_pause_it_wants() {
    let fake =
        Fake::start(vec![response("429 Too Many Requests", "Retry-After: 3600\r\n", "busy"), reply("hi")]);
    let mut client = client(endpoint(&fake));
    client.backoff.longest_asked = Duration::from_millis(80);
    let begun = Instant::now();
    assert_eq!(client.reply(&request(), &Stop::never()).unwrap().text, "hi");
    assert!(begun.elapsed() >= Duration::from_millis(80));
}

#[test]
fn an_error_of_the_server_is_got_over() {
    let stream_error = said("ha") + "data: {\"error\":{\"message\":\"oom\",\"code\":500}}\n\n";
    let fake = Fake::start(vec![
        response("500 Internal Server Error", "", ""),
        response("503 Service Unavailable", "", "{\"error\":{\"message\":\"loading\"}}"),
        response("200 OK", "", &stream_error),
        reply("hi"),
    ]);
    assert_eq!(ask(&fake).unwrap().text, "hi");
    assert_eq!(fake.asked().len(), 4);
}

#[test]
fn a_connection_cut_in_the_middle_is_got_over_without_doubling_the_text() {
    let half = said("ha");
    let fake = Fake::start(vec![
        vec![],
        vec![Act::Send(b"HTTP/1.1 200".to_vec())],
        vec![chunked_head(), chunk(half.as_bytes())],
        vec![head(), Act::Send(half.into_bytes())],
        reply("hi"),
    ]);
    assert_eq!(ask(&fake).unwrap().text, "hi");
}

#[test]
fn tries_come_to_an_end_and_the_message_tells_how_many() {
    let busy = || response("503 Service Unavailable", "", "{\"message\":\"loading\"}");
    let fake = Fake::start(vec![busy(), busy(), busy()]);
    let told = client(Endpoint { tries: 3, ..endpoint(&fake) }).reply(&request(), &Stop::never());
    let Err(ChatError::Barred(told)) = told else { panic!("{told:?}") };
    assert!(told.contains("503") && told.contains("loading") && told.ends_with("(tried 3 times)"), "{told}");
}

#[test]
fn a_stop_is_heeded_before_the_first_byte() {
    assert_eq!(stopped(|stop| vec![stop, Act::Hang]), (Err(Stopped.into()), true));
}

#[test]
fn a_stop_is_heeded_between_two_bytes() {
    let script = |stop| vec![head(), Act::Send(said("ha").into_bytes()), stop, Act::Hang];
    assert_eq!(stopped(script), (Err(Stopped.into()), true));
}

#[test]
fn a_stop_is_heeded_while_pausing_before_another_try() {
    let script = |stop| {
        let mut script = response("429 Too Many Requests", "Retry-After: 3600\r\n", "");
        script.push(stop);
        script
    };
    assert_eq!(stopped(script), (Err(Stopped.into()), true));
}

#[test]
fn a_stop_is_heeded_while_waiting_for_a_turn_and_before_anything_is_sent() {
    let now = Arc::new(AtomicU64::new(0));
    let fake = Fake::start(vec![vec![Act::Pause(60), Act::Stop(Arc::clone(&now)), Act::Hang]]);
    let client = client(Endpoint { at_once: 1, ..endpoint(&fake) });
    let ask = || client.reply(&request(), &Stop::when_past(&now, 0));
    let begun = Instant::now();
    thread::scope(|scope| {
        let both = [scope.spawn(ask), scope.spawn(ask)];
        for one in both {
            assert_eq!(one.join().unwrap(), Err(Stopped.into()));
        }
    });
    assert_eq!(ask(), Err(Stopped.into()));
    assert!(begun.elapsed() < SOON);
    assert_eq!(fake.asked().len(), 1);
}

#[test]
fn a_server_that_falls_silent_is_given_up_when_patience_ends() {
    let fake = Fake::start(vec![vec![Act::Hang], vec![head(), Act::Hang]]);
    let endpoint = Endpoint { patience: Duration::from_millis(50), tries: 2, ..endpoint(&fake) };
    let told = client(endpoint).reply(&request(), &Stop::never());
    let Err(ChatError::Unreachable(told)) = told else { panic!("{told:?}") };
    assert!(told.contains("sent nothing for 50ms") && told.contains("tried 2 times"), "{told}");
}

#[test]
fn a_slow_server_is_waited_for_as_long_as_it_sends() {
    let mut script = vec![head()];
    for _ in 0..8 {
        script.extend([Act::Pause(100), Act::Send(b": working\n\n".to_vec())]);
    }
    script.push(Act::Send((said("hi") + END).into_bytes()));
    let fake = Fake::start(vec![script]);
    let endpoint = Endpoint { patience: Duration::from_millis(500), tries: 1, ..endpoint(&fake) };
    assert_eq!(client(endpoint).reply(&request(), &Stop::never()).unwrap().text, "hi");
}

#[test]
fn a_server_that_is_not_there_is_told_at_once_and_how_to_mend_it() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut client = client(Endpoint::from_env(format!("http://{free}/v1"), "m"));
    client.backoff = Backoff::default();
    let begun = Instant::now();
    let told = client.reply(&request(), &Stop::never());
    let Err(ChatError::Unreachable(told)) = told else { panic!("{told:?}") };
    assert!(told.contains("refused") && told.contains("start the server or set --llm URL"), "{told}");
    assert!(begun.elapsed() < SOON);
}

#[test]
fn a_certificate_that_cannot_be_checked_is_told_at_once() {
    let fake = Fake::start(vec![vec![Act::Send(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec())]]);
    let url = fake.url.replace("http:", "https:");
    // Without the certificates of a system there is no client, and that is told as well.
    let Ok(client) = OpenAi::new(Endpoint::from_env(url, "m")) else { return };
    let told = client.reply(&request(), &Stop::never());
    assert!(matches!(&told, Err(ChatError::Unreachable(told)) if told.contains("check the URL")), "{told:?}");
}

#[test]
fn no_more_requests_are_under_way_than_allowed() {
    let slow = || {
        let mut script = reply("hi");
        script.insert(0, Act::Pause(20));
        script
    };
    let fake = Fake::start((0..8).map(|_| slow()).collect());
    let client = client(Endpoint { at_once: 2, ..endpoint(&fake) });
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert_eq!(client.reply(&request(), &Stop::never()).unwrap().text, "hi"));
        }
    });
    assert_eq!(fake.most_at_once(), 2);
}
