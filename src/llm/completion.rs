//! Reads the body of a chat completion: a stream of events, or one JSON object.

use serde::Deserialize;
use serde_json::Value;

use super::chat::{ALTERNATIVES, Alternative, Tokens};

/// A complete reply as the server sent it.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Answer {
    pub text: String,
    pub model: Option<String>,
    pub tokens: Option<Tokens>,
    /// The finish reason, if it says that the reply is not whole.
    pub cut: Option<String>,
    /// Its tokens, and for each those that could stand in its place, if the server gives them.
    pub places: Vec<(String, Vec<Alternative>)>,
}

/// Words in finish reasons of replies that are not whole: servers name the same reasons differently.
const CUT: [&str; 9] =
    ["length", "max", "filter", "safety", "abort", "error", "tool", "function", "recitation"];

/// Why a body is not a reply.
#[derive(Debug, PartialEq)]
pub(super) enum Odd {
    /// It has another form: what is wrong, and an excerpt.
    Nonsense(String, String),
    /// It ends too early.
    Cut,
    /// The server reports an error inside the stream.
    Failed { status: Option<u16>, words: String },
}

/// A chat completion, or one event of a streamed one.
#[derive(Deserialize)]
pub(super) struct Piece {
    pub model: Option<String>,
    pub choices: Option<Vec<Choice>>,
    pub usage: Option<Usage>,
    pub error: Option<Value>,
}

#[derive(Deserialize)]
pub(super) struct Choice {
    #[serde(default)]
    pub index: u32,
    pub delta: Option<Content>,
    pub message: Option<Content>,
    pub finish_reason: Option<String>,
    pub logprobs: Option<Value>,
}

/// The form of `logprobs` in the protocol. Some servers have another, and their replies must stay readable.
#[derive(Deserialize)]
struct Logprobs {
    content: Option<Vec<Place>>,
}

#[derive(Deserialize)]
struct Place {
    #[serde(flatten)]
    own: Alternative,
    top_logprobs: Option<Vec<Alternative>>,
}

/// The longest token that is kept, in bytes; no vocabulary has longer ones that begin a word.
const LONGEST: usize = 100;

#[derive(Deserialize)]
pub(super) struct Content {
    pub content: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Usage {
    pub prompt_tokens: Option<u64>,
    pub completion_tokens: Option<u64>,
}

/// The message of a server's error; each server wraps it differently.
pub(super) fn words(error: &Value) -> Option<String> {
    match error {
        Value::String(words) => Some(words.clone()),
        Value::Object(fields) => {
            ["error", "message", "detail"].into_iter().find_map(|name| fields.get(name).and_then(words))
        }
        _ => None,
    }
}

/// The limit of a body in bytes; no model writes as much.
const MOST: usize = 16 << 20;

/// The number of bytes of a body that are stored for an excerpt.
const BEGINNING: usize = 2048;

/// A body while it arrives.
///
/// `eventsource-stream` does not fit: it passes on an event only at a blank line, which some servers leave out, and it joins `data:`
/// lines, which are then not valid JSON.
#[derive(Default)]
pub(super) struct Reading {
    beginning: Vec<u8>,
    taken: usize,
    /// `None` until the first byte that is not white space.
    plain: Option<bool>,
    /// Unprocessed bytes: an incomplete line, or a plain object.
    held: Vec<u8>,
    answer: Answer,
    events: usize,
    finish: Option<String>,
    done: bool,
}

impl Reading {
    /// Reads the next bytes, which may be split anywhere.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), Odd> {
        self.taken += bytes.len();
        let room = bytes.len().min(BEGINNING - self.beginning.len());
        self.beginning.extend_from_slice(&bytes[..room]);
        if self.taken > MOST {
            return Err(self.nonsense(&format!("more than {} MiB", MOST >> 20)));
        }
        // Servers set wrong content types; the first byte is unambiguous.
        if self.plain.is_none() {
            self.plain = bytes.iter().find(|byte| !byte.is_ascii_whitespace()).map(|byte| *byte == b'{');
        }
        if self.plain == Some(true) {
            self.held.extend_from_slice(bytes);
            return Ok(());
        }
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.held.extend_from_slice(part);
            if part.ends_with(b"\n") {
                let line = std::mem::take(&mut self.held);
                self.line(&line)?;
            }
        }
        Ok(())
    }

    /// Whether the rest of the body can be ignored.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// Whether the text is complete, though a token count may follow.
    pub fn is_whole(&self) -> bool {
        self.done || self.finish.is_some()
    }

    /// The reply, after the end of the body.
    pub fn end(mut self) -> Result<Answer, Odd> {
        let held = std::mem::take(&mut self.held);
        if self.plain == Some(true) {
            match serde_json::from_slice::<Piece>(&held) {
                Ok(piece) => self.take(piece)?,
                Err(error) if error.is_eof() => return Err(Odd::Cut),
                Err(_) => return Err(self.nonsense("not a chat completion")),
            }
        } else {
            // The last line may be incomplete.
            if let Err(failed @ Odd::Failed { .. }) = self.line(&held) {
                return Err(failed);
            }
            if self.events == 0 && !self.done && !held.starts_with(b"data:") {
                return Err(self.nonsense("not a chat completion"));
            }
            if !self.is_whole() {
                return Err(Odd::Cut);
            }
        }
        if self.answer.text.trim().is_empty() {
            let why = self.finish.take().map_or_else(String::new, |why| format!(" (finish reason: {why})"));
            return Err(self.nonsense(&format!("an empty reply{why}")));
        }
        let is_cut = |why: &String| CUT.iter().any(|word| why.to_lowercase().contains(word));
        self.answer.cut = self.finish.take().filter(is_cut);
        Ok(self.answer)
    }

    /// Reads a line. Each `data:` line is one event: no server writes JSON on several lines, and some omit the blank line after an event.
    fn line(&mut self, line: &[u8]) -> Result<(), Odd> {
        let Some(data) = line.trim_ascii_end().strip_prefix(b"data:") else { return Ok(()) };
        let data = data.trim_ascii();
        if data.is_empty() || self.done {
            return Ok(());
        }
        if data == b"[DONE]" {
            self.done = true;
            return Ok(());
        }
        match serde_json::from_slice::<Piece>(data) {
            Ok(piece) => self.take(piece),
            Err(_) => {
                Err(Odd::Nonsense("not a chat completion".into(), String::from_utf8_lossy(data).into()))
            }
        }
    }

    fn take(&mut self, piece: Piece) -> Result<(), Odd> {
        if let Some(error) = piece.error {
            let status = error.get("code").or_else(|| error.get("status")).and_then(Value::as_u64);
            let status = status.and_then(|status| u16::try_from(status).ok());
            return Err(Odd::Failed { status, words: words(&error).unwrap_or_else(|| error.to_string()) });
        }
        if piece.choices.is_none() && piece.usage.is_none() {
            return Err(self.nonsense("not a chat completion"));
        }
        self.events += 1;
        if let Some(usage) = piece.usage {
            let Usage { prompt_tokens, completion_tokens } = usage;
            self.answer.tokens = Some(Tokens {
                prompt: prompt_tokens.unwrap_or_default(),
                reply: completion_tokens.unwrap_or_default(),
            });
        }
        if let Some(model) = piece.model.filter(|model| !model.is_empty()) {
            self.answer.model = Some(model);
        }
        for choice in piece.choices.into_iter().flatten().filter(|choice| choice.index == 0) {
            if let Some(text) = choice.delta.or(choice.message).and_then(|content| content.content) {
                self.answer.text.push_str(&text);
            }
            let places = choice.logprobs.and_then(|json| serde_json::from_value::<Logprobs>(json).ok());
            for Place { own, top_logprobs } in places.and_then(|places| places.content).unwrap_or_default() {
                let (token, mut all) = (own.token.clone(), top_logprobs.unwrap_or_default());
                all.truncate(ALTERNATIVES);
                if all.iter().all(|other| other.token != token) {
                    all.push(own);
                }
                all.retain(|one| one.logprob.is_finite() && one.token.len() <= LONGEST);
                self.answer.places.push((token, all));
            }
            // Some servers send an empty reason with each piece.
            self.finish = choice.finish_reason.filter(|why| !why.is_empty()).or(self.finish.take());
        }
        Ok(())
    }

    fn nonsense(&self, what: &str) -> Odd {
        Odd::Nonsense(what.into(), String::from_utf8_lossy(&self.beginning).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str = concat!(
        ": waiting for a model\r\n\r\n",
        "event: message\ndata: {\"model\":\"m-1\",\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":null}}]}\n\n",
        "data:{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Grüße, \"}},{\"index\":1,\"delta\":{\"content\":\"no\"}}]}\r\n\r\n",
        "data: {\"choices\":[{\"delta\":{\"content\":\"世界 🌍\"},\"finish_reason\":\"stop\"}]}\n\n",
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3}}\n\n",
        "data: [DONE]\n\n",
    );

    fn read(body: &[u8], step: usize) -> Result<Answer, Odd> {
        let mut reading = Reading::default();
        for part in body.chunks(step) {
            reading.feed(part)?;
        }
        reading.end()
    }

    #[test]
    fn a_stream_reads_the_same_wherever_it_is_cut_into_chunks() {
        let right = Answer {
            text: "Grüße, 世界 🌍".into(),
            model: Some("m-1".into()),
            tokens: Some(Tokens { prompt: 7, reply: 3 }),
            ..Answer::default()
        };
        for step in 1..STREAM.len() + 1 {
            assert_eq!(read(STREAM.as_bytes(), step).as_ref(), Ok(&right), "{step}");
        }
    }

    #[test]
    fn a_stream_is_whole_from_its_finish_reason_on_and_cut_before() {
        let whole = STREAM.find("\"stop\"").unwrap();
        for end in 1..STREAM.len() {
            let read = STREAM.is_char_boundary(end).then(|| read(&STREAM.as_bytes()[..end], 64));
            match read {
                Some(Ok(answer)) => assert!(end > whole && answer.text.ends_with("🌍"), "{end}"),
                Some(Err(odd)) => {
                    let at = &STREAM[..end];
                    assert!(end < whole + 16 && (odd == Odd::Cut || !at.contains("data:")), "{end}: {odd:?}");
                }
                None => {}
            }
        }
    }

    #[test]
    fn an_empty_finish_reason_does_not_make_a_reply_whole() {
        let body = b"data: {\"choices\":[{\"delta\":{\"content\":\"ha\"},\"finish_reason\":\"\"}]}\n";
        assert_eq!(read(body, 100), Err(Odd::Cut));
    }

    #[test]
    fn an_error_inside_a_stream_is_reported_in_its_words() {
        let body = b"data: {\"error\":{\"message\":\"out of memory\",\"code\":503}}";
        assert_eq!(read(body, 9), Err(Odd::Failed { status: Some(503), words: "out of memory".into() }));
    }

    #[test]
    fn a_plain_object_is_a_reply_and_half_an_object_is_cut_short() {
        let body = br#" {"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"error":null}"#;
        assert_eq!(read(body, 5).map(|answer| answer.text), Ok("hi".into()));
        assert_eq!(read(&body[..30], 5), Err(Odd::Cut));
    }

    #[test]
    fn a_body_that_is_not_a_chat_completion_is_reported_with_its_beginning() {
        for body in ["<html>hi</html>", "", "[]", "{\"data\":[]}", "{]", "data: {\"a\":1}\n", "data: hello\n"]
        {
            let Err(Odd::Nonsense(_, excerpt)) = read(body.as_bytes(), 4) else { panic!("{body}") };
            assert!(body.contains(&excerpt), "{body}: {excerpt}");
        }
    }

    #[test]
    fn a_reply_that_ended_early_says_why_however_the_server_names_it() {
        let cut = |reason: &str| {
            let body =
                format!(r#"{{"choices":[{{"message":{{"content":"Yes"}},"finish_reason":"{reason}"}}]}}"#);
            read(body.as_bytes(), 7).unwrap().cut
        };
        for reason in ["length", "content_filter", "max_tokens", "MAX_TOKENS", "SAFETY", "tool_calls"] {
            assert_eq!(cut(reason).as_deref(), Some(reason));
        }
        for reason in ["stop", "eos", "end_turn", "eos_token", "STOP"] {
            assert_eq!(cut(reason), None, "{reason}");
        }
    }

    #[test]
    fn an_empty_reply_is_reported_with_its_finish_reason() {
        let body = br#"{"choices":[{"message":{"content":" "},"finish_reason":"length"}]}"#;
        let Err(Odd::Nonsense(what, _)) = read(body, 100) else { panic!() };
        assert!(what.contains("empty") && what.contains("length"), "{what}");
    }
}

#[cfg(test)]
mod token_tests {
    use super::*;
    use crate::llm::tests::{END, Fake, client, endpoint, reply, request, response};
    use crate::llm::{Chat, ChatError, OpenAi, Reply, Request};
    use crate::work::Stop;

    /// The event of one token, with those that could stand in its place.
    fn event(token: &str, logprob: f32, others: &[(&str, f32)]) -> String {
        let others: Vec<Value> = others
            .iter()
            .map(|(token, logprob)| serde_json::json!({"token": token, "logprob": logprob}))
            .collect();
        let place =
            serde_json::json!({"token": token, "logprob": logprob, "bytes": null, "top_logprobs": others});
        let choice =
            serde_json::json!({"index": 0, "delta": {"content": token}, "logprobs": {"content": [place]}});
        format!("data: {}\n\n", serde_json::json!({"choices": [choice]}))
    }

    fn outcomes() -> Request {
        Request { outcomes: vec![vec!["yes".into()], vec!["no".into()]], ..request() }
    }

    fn ask(client: &OpenAi) -> Result<Reply, ChatError> {
        client.reply(&outcomes(), &Stop::never())
    }

    fn wanted(fake: &Fake) -> Vec<bool> {
        fake.requests().iter().map(|body| body.contains("\"logprobs\":true,\"top_logprobs\":20")).collect()
    }

    #[test]
    fn a_reply_holds_the_tokens_that_could_stand_where_its_outcome_begins() {
        let thoughts = event("No", -0.1, &[("No", -0.1)]) + &event("? Hm.", -1.0, &[]);
        let others = [(" Yes", -0.5), ("No", -1.0), ("Maybe", -3.0)];
        let stream = thoughts + &event(" Yes", -0.5, &others) + &event(".", -0.2, &[("!", -1.5)]) + END;
        let fake = Fake::start(vec![response("200 OK", "", &stream), reply("Yes")]);
        let client = client(endpoint(&fake));
        let found = ask(&client).unwrap();
        let right = others.map(|(token, logprob)| Alternative { token: token.into(), logprob });
        assert_eq!((found.text.as_str(), found.alternatives), ("No? Hm. Yes.", right.to_vec()));
        // Who does not want them does not get them, nor who asks a server that gives none.
        assert_eq!(ask(&client).unwrap().alternatives, Vec::new());
        assert_eq!(wanted(&fake), [true, true]);
        let fake = Fake::start(vec![response("200 OK", "", &(event("Yes", 0.0, &[]) + END))]);
        let plain = crate::llm::tests::client(endpoint(&fake)).reply(&request(), &Stop::never()).unwrap();
        assert_eq!((plain.alternatives, wanted(&fake)), (Vec::new(), vec![false]));
    }

    #[test]
    fn a_server_that_refuses_log_probabilities_is_asked_without_them_once_and_from_then_on() {
        for (status, page) in [
            ("400 Bad Request", "unknown field"),
            ("422 Unprocessable Entity", "extra inputs are not permitted"),
            ("403 Forbidden", "You are not allowed to request logprobs from this model"),
            ("500 Internal Server Error", "logprobs is not supported"),
        ] {
            let fake = Fake::start(vec![response(status, "", page), reply("Yes"), reply("No")]);
            let client = client(endpoint(&fake));
            assert_eq!([(); 2].map(|()| ask(&client).unwrap().text), ["Yes", "No"], "{status}");
            assert_eq!(wanted(&fake), [true, false, false], "{status}");
        }
    }

    #[test]
    fn a_prompt_that_is_refused_either_way_does_not_count_against_log_probabilities() {
        let long = || response("400 Bad Request", "", "the prompt is too long");
        let fake = Fake::start(vec![long(), long(), reply("Yes")]);
        let client = client(endpoint(&fake));
        assert!(matches!(ask(&client), Err(ChatError::Refused(why)) if why.contains("too long")));
        assert_eq!(ask(&client).unwrap().text, "Yes");
        assert_eq!(wanted(&fake), [true, false, true]);
    }

    #[test]
    fn log_probabilities_in_another_form_leave_the_reply_as_it_is() {
        for odd in [
            r#"{"tokens":["Yes"]}"#,
            "7",
            "null",
            r#"{"content":[{"token":7}]}"#,
            r#"{"content":[{"token":"Yes","logprob":1e99}]}"#,
        ] {
            let body = format!(
                r#"{{"choices":[{{"message":{{"content":"Yes"}},"logprobs":{odd},"finish_reason":"stop"}}]}}"#
            );
            let mut reading = Reading::default();
            reading.feed(body.as_bytes()).unwrap();
            let answer = reading.end().unwrap();
            assert_eq!(answer.text, "Yes", "{odd}");
            assert!(answer.places.iter().all(|(_, alternatives)| alternatives.is_empty()), "{odd}");
        }
    }
}
