//! One recorded reply as a line of a file, and the key it is found by.

use serde::{Deserialize, Serialize};

use super::{Reply, Request};

const EXPECTED: &str = "a recorded reply: an object with key, sample, model, request and reply";

#[derive(Serialize, Deserialize)]
pub(super) struct Line {
    pub key: String,
    pub sample: u32,
    pub model: String,
    request: Asked,
    pub reply: String,
}

#[derive(Serialize, Deserialize)]
struct Asked {
    system: String,
    prompt: String,
    temperature: f32,
    max_tokens: u32,
}

/// What a recorded reply is found by, next to its sample number.
///
/// The first 32 hexadecimal digits of the blake3 hash of: the words `llm request 1` and a line feed; the length of
/// the system text in bytes as 64 bits, and the text; the same of the prompt; the 32 bits of the temperature; the
/// token limit as 32 bits. All numbers stand with their lowest byte first.
pub(super) fn key(request: &Request) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(b"llm request 1\n");
    for text in [&request.system, &request.prompt] {
        hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
    }
    // 0 is added because -0 is the same temperature.
    hasher.update(&(request.temperature + 0.0).to_le_bytes()).update(&request.max_tokens.to_le_bytes());
    let mut hex = hasher.finalize().to_hex().to_string();
    hex.truncate(32);
    hex
}

/// The line a reply is recorded as, without the line feed.
///
/// # Errors
/// The temperature is no number.
pub fn line(request: &Request, reply: &Reply) -> Result<String, String> {
    if !request.temperature.is_finite() {
        return Err("the temperature is no number".into());
    }
    let asked = Asked {
        system: request.system.clone(),
        prompt: request.prompt.clone(),
        temperature: request.temperature,
        max_tokens: request.max_tokens,
    };
    let (model, text) = (reply.model.clone(), reply.text.clone());
    let line = Line { key: key(request), sample: request.sample, model, request: asked, reply: text };
    serde_json::to_string(&line).map_err(|error| error.to_string())
}

/// A line, or what was expected there and what stood there.
pub(super) fn read_line(bytes: &[u8]) -> Result<Line, (String, String)> {
    let found = || String::from_utf8_lossy(bytes).into_owned();
    let text = std::str::from_utf8(bytes).map_err(|_| ("UTF-8 text".to_owned(), found()))?;
    let line: Line =
        serde_json::from_str(text).map_err(|error| (format!("{EXPECTED} ({error})"), found()))?;
    let Asked { system, prompt, temperature, max_tokens } = &line.request;
    let request = Request {
        system: system.clone(),
        prompt: prompt.clone(),
        temperature: *temperature,
        max_tokens: *max_tokens,
        sample: line.sample,
    };
    let right = key(&request);
    if line.key == right {
        Ok(line)
    } else {
        Err((format!("the key {right}, which its request has"), line.key))
    }
}

/// Whether a line is one recorded reply in full.
pub(super) fn is_line(bytes: &[u8]) -> bool {
    read_line(bytes).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(prompt: &str, sample: u32) -> Request {
        Request { system: "be brief".into(), prompt: prompt.into(), temperature: 0.7, max_tokens: 64, sample }
    }

    fn reply(text: &str) -> Reply {
        Reply { text: text.into(), model: "m-1".into(), recorded: false, tokens: None }
    }

    #[test]
    fn the_key_takes_in_all_that_is_asked_and_only_that() {
        let same = key(&request("a", 0));
        assert_eq!(same, key(&request("a", 9)));
        assert_eq!(same.len(), 32);
        let others = [
            request("b", 0),
            Request { system: "be brie".into(), prompt: "fa".into(), ..request("a", 0) },
            Request { temperature: 0.71, ..request("a", 0) },
            Request { max_tokens: 65, ..request("a", 0) },
        ];
        assert!(others.iter().all(|other| key(other) != same));
        let zero = |temperature| key(&Request { temperature, ..request("a", 0) });
        assert_eq!(zero(0.0), zero(-0.0));
    }

    #[test]
    fn the_key_of_a_request_never_changes() {
        let request = Request {
            system: String::new(),
            prompt: "hi".into(),
            temperature: 0.0,
            max_tokens: 1,
            sample: 0,
        };
        assert_eq!(key(&request), "b3963c6fae06c5aec7bbb2eef207e084");
    }

    #[test]
    fn any_temperature_survives_being_written_and_read() {
        for step in 0..2000u16 {
            let request = Request { temperature: f32::from(step) / 999.0, ..request("a", 0) };
            assert!(is_line(line(&request, &reply("x")).unwrap().as_bytes()), "{step}");
        }
    }
}
