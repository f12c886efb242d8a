//! Reading the body of a chat completion: a stream of events, or one JSON object.

use serde_json::Value;

use super::Tokens;
use super::completion::{Answer, Odd, Piece, Usage, words};

/// More than any model writes; a server that sends more is not serving a model.
const MOST: usize = 16 << 20;

/// How much of a body is kept to show what it was.
const BEGINNING: usize = 2048;

/// A body while it arrives.
#[derive(Default)]
pub(super) struct Reading {
    beginning: Vec<u8>,
    taken: usize,
    /// `None` until the first byte that is not white space.
    plain: Option<bool>,
    /// What is not worked off: a line without its end, or all of a plain object.
    held: Vec<u8>,
    answer: Answer,
    events: usize,
    finish: Option<String>,
    done: bool,
}

impl Reading {
    /// Takes the next bytes, cut anywhere.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), Odd> {
        self.taken += bytes.len();
        let kept = bytes.len().min(BEGINNING - self.beginning.len());
        self.beginning.extend_from_slice(&bytes[..kept]);
        if self.taken > MOST {
            return Err(self.nonsense(&format!("more than {} MiB", MOST >> 20)));
        }
        // The content type is not asked: servers set it wrongly, and the first byte cannot be mistaken.
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

    /// Nothing more is needed.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// The text is whole, though a count of tokens may still come.
    pub fn is_whole(&self) -> bool {
        self.done || self.finish.is_some()
    }

    /// The reply, when the body has ended.
    pub fn end(mut self) -> Result<Answer, Odd> {
        let held = std::mem::take(&mut self.held);
        if self.plain == Some(true) {
            match serde_json::from_slice::<Piece>(&held) {
                Ok(piece) => self.take(piece)?,
                Err(error) if error.is_eof() => return Err(Odd::Cut),
                Err(_) => return Err(self.nonsense("no chat completion")),
            }
        } else {
            // The last line may lack its end, or most of itself.
            if let Err(failed @ Odd::Failed { .. }) = self.line(&held) {
                return Err(failed);
            }
            if self.events == 0 && !self.done && !held.starts_with(b"data:") {
                return Err(self.nonsense("no chat completion"));
            }
            if !self.is_whole() {
                return Err(Odd::Cut);
            }
        }
        if self.answer.text.trim().is_empty() {
            let why = self.finish.take().map_or_else(String::new, |why| format!(" (finish reason: {why})"));
            return Err(self.nonsense(&format!("an empty reply{why}")));
        }
        Ok(self.answer)
    }

    /// Every `data:` line is an event of its own: no server spreads JSON over lines, and some leave out the blank
    /// line that would end an event.
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
            Err(_) => Err(Odd::Nonsense("no chat completion".into(), String::from_utf8_lossy(data).into())),
        }
    }

    fn take(&mut self, piece: Piece) -> Result<(), Odd> {
        if let Some(error) = piece.error {
            let status = error.get("code").or_else(|| error.get("status")).and_then(Value::as_u64);
            let status = status.and_then(|status| u16::try_from(status).ok());
            return Err(Odd::Failed { status, words: words(&error).unwrap_or_else(|| error.to_string()) });
        }
        if piece.choices.is_none() && piece.usage.is_none() {
            return Err(self.nonsense("no chat completion"));
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
            if let Some(text) = choice.delta.or(choice.message).and_then(|said| said.content) {
                self.answer.text.push_str(&text);
            }
            // Some servers send an empty one with every piece.
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
    fn an_error_inside_a_stream_is_told_in_its_words() {
        let body = b"data: {\"error\":{\"message\":\"out of memory\",\"code\":503}}";
        assert_eq!(read(body, 9), Err(Odd::Failed { status: Some(503), words: "out of memory".into() }));
    }

    #[test]
    fn a_plain_object_is_a_reply_and_half_of_one_is_cut() {
        let body = br#" {"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"error":null}"#;
        assert_eq!(read(body, 5).map(|answer| answer.text), Ok("hi".into()));
        assert_eq!(read(&body[..30], 5), Err(Odd::Cut));
    }

    #[test]
    fn what_is_no_chat_completion_is_nonsense_with_its_beginning() {
        for body in ["<html>hi</html>", "", "[]", "{\"data\":[]}", "{]", "data: {\"a\":1}\n", "data: hello\n"]
        {
            let Err(Odd::Nonsense(_, excerpt)) = read(body.as_bytes(), 4) else { panic!("{body}") };
            assert!(body.contains(&excerpt), "{body}: {excerpt}");
        }
    }

    #[test]
    fn a_reply_without_a_word_is_nonsense_and_says_why_it_ended() {
        let body = br#"{"choices":[{"message":{"content":" "},"finish_reason":"length"}]}"#;
        let Err(Odd::Nonsense(what, _)) = read(body, 100) else { panic!() };
        assert!(what.contains("empty") && what.contains("length"), "{what}");
    }
}
