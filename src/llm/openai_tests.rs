use std::time::Duration;

use super::fake::{Act, END, Fake, chunk, chunked_head, reply, response, said};
use super::*;
use crate::net::retry::Backoff;

pub(super) fn request() -> Request {
    Request {
        system: "be brief".into(),
        prompt: "say \"hi\"".into(),
        temperature: 0.7,
        max_tokens: 64,
        sample: 0,
    }
}

pub(super) fn client(endpoint: Endpoint) -> OpenAi {
    let mut client = OpenAi::new(endpoint).unwrap();
    let millis = Duration::from_millis;
    client.backoff = Backoff { base: millis(1), longest: millis(4), longest_asked: Duration::from_secs(60) };
    client
}

pub(super) fn endpoint(fake: &Fake) -> Endpoint {
    Endpoint { key: Some("sk-hush".into()), ..Endpoint::from_env(&fake.url, "m-asked") }
}

pub(super) fn ask(fake: &Fake) -> Result<Reply, ChatError> {
    client(endpoint(fake)).reply(&request(), &Stop::never())
}

#[test]
fn a_streamed_reply_is_whole_though_its_chunks_are_cut_inside_a_letter() {
    let text = format!("{}{}{}", said("Grüße, "), said("世界 🌍"), END);
    let mut script = vec![chunked_head()];
    for part in text.as_bytes().chunks(53).flat_map(|part| part.chunks(29)) {
        script.extend([chunk(part), Act::Pause(1)]);
    }
    // In the middle of the ü, beyond what the sizes above may happen to hit.
    let (cut, mut other) = (text.find('ü').unwrap() + 1, vec![chunked_head()]);
    other.extend([chunk(&text.as_bytes()[..cut]), Act::Pause(5), chunk(&text.as_bytes()[cut..])]);
    let fake = Fake::start(vec![script, other]);
    for _ in 0..2 {
        let right = Reply {
            text: "Grüße, 世界 🌍".into(),
            model: "m-served".into(),
            recorded: false,
            tokens: Some(Tokens { prompt: 11, reply: 5 }),
        };
        assert_eq!(ask(&fake), Ok(right));
    }
}

#[test]
fn the_request_says_what_is_asked_and_carries_the_key() {
    let fake = Fake::start(vec![reply("hi"), reply("hi")]);
    ask(&fake).unwrap();
    client(Endpoint { key: None, ..endpoint(&fake) })
        .reply(&Request { system: String::new(), ..request() }, &Stop::never())
        .unwrap();
    let asked = fake.asked();
    assert!(asked[0].starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{}", asked[0]);
    assert!(asked[0].to_lowercase().contains("authorization: bearer sk-hush\r\n"));
    assert!(!asked[1].to_lowercase().contains("authorization"));
    let body = |at: usize| -> serde_json::Value {
        serde_json::from_str(asked[at].split_once("\r\n\r\n").unwrap().1).unwrap()
    };
    let user = serde_json::json!({"role": "user", "content": "say \"hi\""});
    assert_eq!(body(0)["messages"], serde_json::json!([{"role": "system", "content": "be brief"}, user]));
    assert_eq!(body(1)["messages"], serde_json::json!([user]));
    assert!(asked[0].contains("\"temperature\":0.7,\"max_tokens\":64,\"stream\":true"), "{}", asked[0]);
    assert_eq!(body(0)["stream_options"]["include_usage"], true);
    assert_eq!(body(0)["model"], "m-asked");
}

#[test]
fn a_server_that_does_not_stream_is_understood() {
    let body = r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],
        "usage":{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4}}"#;
    let fake = Fake::start(vec![response("200 OK", "Content-Type: application/json\r\n", body)]);
    let told = ask(&fake).unwrap();
    assert_eq!((told.text.as_str(), told.model.as_str()), ("hi", "m-asked"));
    assert_eq!(told.tokens, Some(Tokens { prompt: 3, reply: 1 }));
}

#[test]
fn a_reply_that_is_whole_counts_though_the_end_of_the_stream_is_missing() {
    let finish = END.split_inclusive("\n\n").next().unwrap();
    let fake = Fake::start(vec![vec![chunked_head(), chunk(format!("{}{finish}", said("hi")).as_bytes())]]);
    let told = ask(&fake).unwrap();
    assert_eq!((told.text.as_str(), told.tokens), ("hi", None));
}

#[test]
fn a_wrong_key_is_not_tried_again_and_not_shown() {
    let body =
        r#"{"error":{"message":"Incorrect API key\u001b[31m provided: sk-hush.","code":"invalid_api_key"}}"#;
    let fake = Fake::start(vec![response("401 Unauthorized", "", body), reply("hi")]);
    let told = ask(&fake);
    let Err(ChatError::Barred(told)) = told else { panic!("{told:?}") };
    assert!(told.contains("401") && told.contains("Incorrect API key·[31m provided: (key)."), "{told}");
    assert!(told.contains(KEY_VARIABLE) && !told.contains("hush"), "{told}");
    assert_eq!(fake.asked().len(), 1);
    assert!(!format!("{:?}", client(endpoint(&fake))).contains("hush"));
}

#[test]
fn what_cannot_pass_is_not_tried_again_and_told_in_few_words() {
    for status in ["400 Bad Request", "403 Forbidden", "404 Not Found", "302 Found"] {
        let fake = Fake::start(vec![response(status, "", &"long ".repeat(4000)), reply("hi")]);
        let told = ask(&fake);
        let told = match told {
            Err(ChatError::Refused(told)) if status.starts_with("400") => told,
            Err(ChatError::Barred(told)) if !status.starts_with("400") => told,
            other => panic!("{other:?}"),
        };
        assert!(told.contains(status) && told.chars().count() < 500, "{told}");
        assert_eq!(fake.asked().len(), 1);
    }
}

#[test]
fn what_is_no_chat_completion_is_told_with_an_excerpt() {
    for (body, excerpt) in
        [("{\"hello\":1}", "hello"), ("<h1>Welcome</h1>", "Welcome"), ("data: what\n\n", "what")]
    {
        let fake = Fake::start(vec![response("200 OK", "", body), reply("hi")]);
        let told = ask(&fake);
        let Err(ChatError::Nonsense(told)) = told else { panic!("{told:?}") };
        assert!(told.contains(excerpt), "{told}");
        assert_eq!(fake.asked().len(), 1);
    }
}

#[test]
fn an_empty_reply_is_nonsense() {
    let fake = Fake::start(vec![reply("")]);
    let told = ask(&fake);
    assert!(matches!(&told, Err(ChatError::Nonsense(told)) if told.contains("an empty reply")), "{told:?}");
}

#[test]
fn a_client_is_only_made_for_what_can_be_asked() {
    let told = |endpoint| OpenAi::new(endpoint).unwrap_err().to_string();
    assert!(told(Endpoint::from_env("", "m")).contains("set --llm URL"));
    assert!(told(Endpoint::from_env("http://localhost:1/v1", " ")).contains("http://localhost:1/v1/models"));
    let odd = Endpoint { key: Some("sk-\nhush".into()), ..Endpoint::from_env("http://localhost:1/v1", "m") };
    assert!(!told(odd).contains("hush"));
}

#[test]
fn a_request_without_a_temperature_is_not_sent() {
    let fake = Fake::start(vec![reply("hi")]);
    let told = client(endpoint(&fake)).reply(&Request { temperature: f32::NAN, ..request() }, &Stop::never());
    assert!(matches!(told, Err(ChatError::Refused(_))));
    assert!(fake.asked().is_empty());
}

#[test]
fn a_client_works_and_ends_inside_another_runtime() {
    let fake = Fake::start(vec![reply("hi")]);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    runtime.block_on(async { assert_eq!(ask(&fake).unwrap().text, "hi") });
}
