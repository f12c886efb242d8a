//! Servers on loopback that refuse, fall silent or speak another protocol.

use crate::remote::{Place, RemoteError};
use crate::work::Stop;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::*;

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
