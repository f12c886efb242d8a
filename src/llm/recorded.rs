//! Recorded replies: one JSON object per line, found by the request and the number of the sample.
//!
//! A request is identified by its prompt's hash, its text and its sampling parameters. If the user names a model, only its replies count. The
//! server is recorded for information and never compared.

use std::collections::HashMap;
use std::io::Read;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::chat::{Alternative, Chat, ChatError, PromptId, Reply, Request};
use crate::input;
use crate::input::{BadLine, InputError};
use crate::work::Stop;

const EXPECTED: &str = "a recorded reply: an object with key, sample, model, prompt, request and reply";

#[derive(Serialize, Deserialize)]
struct Line {
    key: String,
    sample: u32,
    /// The model as the user named it.
    model: String,
    /// The server's name for the model, if it differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answered_by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    server: Option<String>,
    prompt: PromptId,
    request: Prompt,
    reply: String,
    /// Why the reply ended early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cut: Option<String>,
    /// The likeliest tokens where the outcome begins. Lines of earlier versions have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    alternatives: Vec<Alternative>,
    /// A checksum of all that. Lines of earlier versions and of other programs have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sum: Option<String>,
}

impl Line {
    /// The checksum of its content.
    fn content_sum(&mut self) -> serde_json::Result<String> {
        let stated = self.sum.take();
        let hash = blake3::hash(serde_json::to_string(self)?.as_bytes());
        self.sum = stated;
        Ok(hash.to_hex()[..32].to_owned())
    }
}

/// A line of the version before prompts had hashes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code)]
struct Former {
    key: String,
    sample: u32,
    model: String,
    request: Prompt,
    reply: String,
}

#[derive(Serialize, Deserialize)]
struct Prompt {
    system: String,
    prompt: String,
    temperature: f32,
    max_tokens: u32,
}

/// The key of a recorded reply, besides its sample number.
///
/// The first 32 hexadecimal digits of the BLAKE3 hash of: the words `llm request 2` and a line feed; the length of the prompt's hash in
/// bytes as 64 bits, and the hash; the same for the system text and for the user text; the temperature as 32 bits; the token limit as 32
/// bits. All numbers are little-endian.
pub(super) fn key(request: &Request) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(b"llm request 2\n");
    for text in [&request.made_from.hash, &request.system, &request.prompt] {
        hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
    }
    // 0 is added because -0 is the same temperature.
    hasher.update(&(request.temperature + 0.0).to_le_bytes()).update(&request.max_tokens.to_le_bytes());
    let mut hex = hasher.finalize().to_hex().to_string();
    hex.truncate(32);
    hex
}

/// Why a reply cannot be recorded.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The request's temperature is NaN or infinite.
    #[error("the temperature is not a finite number")]
    Temperature,
    /// The reply cannot be written as JSON.
    #[error("the reply cannot be written as JSON ({0})")]
    Json(#[from] serde_json::Error),
}

/// The recorded line of a reply, without the line feed, for the model of the reply.
///
/// # Errors
/// The temperature is not a finite number.
pub fn line(request: &Request, reply: &Reply) -> Result<String, RecordError> {
    line_of(request, &reply.model, None, reply)
}

/// Like [`line`], for a model under the name that the user gave, on a server.
pub(super) fn line_of(
    request: &Request,
    model: &str,
    server: Option<&str>,
    reply: &Reply,
) -> Result<String, RecordError> {
    if !request.temperature.is_finite() {
        return Err(RecordError::Temperature);
    }
    let prompt = Prompt {
        system: request.system.clone(),
        prompt: request.prompt.clone(),
        temperature: request.temperature,
        max_tokens: request.max_tokens,
    };
    let mut line = Line {
        key: key(request),
        sample: request.sample,
        model: model.to_owned(),
        answered_by: (reply.model != model).then(|| reply.model.clone()),
        server: server.map(str::to_owned),
        prompt: request.made_from.clone(),
        request: prompt,
        reply: reply.text.clone(),
        cut: reply.cut.clone(),
        alternatives: reply.alternatives.clone(),
        sum: None,
    };
    line.sum = Some(line.content_sum()?);
    Ok(serde_json::to_string(&line)?)
}

/// Reads a line. The error is what was expected and what was found.
fn read_line(bytes: &[u8]) -> Result<Line, (String, String)> {
    let found = || String::from_utf8_lossy(bytes).into_owned();
    let text = std::str::from_utf8(bytes).map_err(|_| ("UTF-8 text".to_owned(), found()))?;
    let mut line: Line =
        serde_json::from_str(text).map_err(|error| (format!("{EXPECTED} ({error})"), found()))?;
    let Prompt { system, prompt, temperature, max_tokens } = &line.request;
    let request = Request {
        made_from: line.prompt.clone(),
        system: system.clone(),
        prompt: prompt.clone(),
        temperature: *temperature,
        max_tokens: *max_tokens,
        sample: line.sample,
        outcomes: Vec::new(),
    };
    let expected = key(&request);
    if line.key != expected {
        return Err((format!("the key {expected}, which its request has"), line.key));
    }
    let sum = line.content_sum().map_err(|error| (error.to_string(), found()))?;
    match line.sum.take() {
        Some(stated) if stated != sum => Err((format!("the sum {sum}, which its content has"), stated)),
        _ => Ok(line),
    }
}

/// Whether a line of the program's own journal is damaged.
pub fn is_damaged(line: &[u8]) -> bool {
    !line.trim_ascii().is_empty()
        && read_line(line).is_err()
        && serde_json::from_slice::<Former>(line).is_err()
}

/// Shown instead of the models' names if there are several models.
const SEVERAL: &str = "several models";

/// Recorded replies. It answers only recorded requests.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    /// For each request, at most one reply per model; the last counts if no model is named.
    replies: HashMap<(String, u32), Vec<Held>>,
    model: String,
}

#[derive(Clone, Debug, PartialEq)]
struct Held {
    model: String,
    answered_by: Option<String>,
    text: String,
    cut: Option<String>,
    alternatives: Vec<Alternative>,
}

impl Held {
    fn reply(&self) -> Reply {
        let model = self.answered_by.as_ref().unwrap_or(&self.model).clone();
        let (text, cut, alternatives) = (self.text.clone(), self.cut.clone(), self.alternatives.clone());
        Reply { text, model, recorded: true, tokens: None, cut, alternatives }
    }
}

impl Recorded {
    /// Reads built-in recorded replies; `name` stands for the file in messages.
    ///
    /// If a request to a model was recorded twice with the same sample number, the last reply counts.
    ///
    /// # Errors
    /// A line is not a recorded reply, or its key is not that of its request.
    pub fn parse(name: &str, bytes: &[u8]) -> Result<Self, InputError> {
        Self::parse_file(Path::new(name), bytes)
    }

    /// Reads a file of recorded replies.
    ///
    /// # Errors
    /// The file cannot be read, a line is not a recorded reply, or its key is not that of its request.
    pub fn read(path: &Path) -> Result<Self, InputError> {
        let mut bytes = Vec::new();
        let read = input::open_whole(path)?.read_to_end(&mut bytes);
        read.map_err(|error| InputError::unreadable(path, &error))?;
        Self::parse_file(path, &bytes)
    }

    fn parse_file(file: &Path, bytes: &[u8]) -> Result<Self, InputError> {
        let (mut recorded, mut bad) = (Recorded::default(), Vec::new());
        let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
        for (at, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
            if line.trim_ascii().is_empty() {
                continue;
            }
            match read_line(line) {
                Ok(line) => recorded.take(line),
                Err((expected, found)) => {
                    bad.push(BadLine { file: file.into(), line: at + 1, expected, found });
                }
            }
        }
        if bad.is_empty() { Ok(recorded) } else { Err(InputError::BadLines(bad)) }
    }

    /// Reads the program's own journal, as far as it is sound: a damaged line is passed over, and so is one of the version before prompts had
    /// hashes.
    pub(super) fn of_journal<'l>(lines: impl Iterator<Item = &'l [u8]>) -> Self {
        let mut recorded = Recorded::default();
        lines.filter_map(|line| read_line(line).ok()).for_each(|line| recorded.take(line));
        recorded
    }

    fn take(&mut self, Line { key, sample, model, answered_by, reply, cut, alternatives, .. }: Line) {
        self.insert(key, sample, Held { model, answered_by, text: reply, cut, alternatives });
    }

    /// Adds other replies. If both have a reply to a request, the other one counts.
    #[must_use]
    pub fn with(mut self, others: Recorded) -> Self {
        for ((key, sample), all) in others.replies {
            all.into_iter().for_each(|held| self.insert(key.clone(), sample, held));
        }
        self
    }

    /// Keeps only the replies of one model, by the name that the user gave or by the server's name for it.
    #[must_use]
    pub fn of_model(mut self, model: &str) -> Self {
        let own = |held: &Held| held.model == model || held.answered_by.as_deref() == Some(model);
        self.retain(own);
        self
    }

    /// The number of replies.
    pub fn len(&self) -> usize {
        self.replies.values().map(Vec::len).sum()
    }

    /// Whether there are no replies.
    pub fn is_empty(&self) -> bool {
        self.replies.is_empty()
    }

    /// The recorded reply to a request.
    pub fn find(&self, request: &Request) -> Option<Reply> {
        self.replies.get(&(key(request), request.sample))?.last().map(Held::reply)
    }

    pub(super) fn keep_usable(&mut self, usable: &dyn Fn(&Reply) -> bool) {
        self.retain(|held| usable(&held.reply()));
    }

    fn retain(&mut self, own: impl Fn(&Held) -> bool) {
        self.replies.retain(|_, all| {
            all.retain(&own);
            !all.is_empty()
        });
        let mut models = self.replies.values().flatten().map(|held| &held.model);
        let first = models.next().cloned().unwrap_or_default();
        self.model = if models.all(|model| *model == first) { first } else { SEVERAL.into() };
    }

    pub(super) fn add(&mut self, request: &Request, model: &str, reply: &Reply) {
        let answered_by = (reply.model != model).then(|| reply.model.clone());
        let Reply { text, cut, alternatives, .. } = reply.clone();
        let held = Held { model: model.to_owned(), answered_by, text, cut, alternatives };
        self.insert(key(request), request.sample, held);
    }

    fn insert(&mut self, key: String, sample: u32, held: Held) {
        if self.replies.is_empty() {
            self.model.clone_from(&held.model);
        } else if self.model != held.model {
            self.model = SEVERAL.into();
        }
        let all = self.replies.entry((key, sample)).or_default();
        all.retain(|other| other.model != held.model);
        all.push(held);
    }
}

impl Chat for Recorded {
    /// The model of all replies; `several models` if there is more than one.
    fn model(&self) -> &str {
        if self.replies.is_empty() { "no model" } else { &self.model }
    }

    fn reply(&self, request: &Request, _stop: &Stop) -> Result<Reply, ChatError> {
        self.find(request).ok_or(ChatError::NotRecorded)
    }
}

#[cfg(test)]
mod record_tests {
    use super::*;

    fn request(prompt: &str, sample: u32) -> Request {
        let made_from = PromptId { name: "test".into(), version: 1, hash: "0f".into() };
        let (system, prompt) = ("be brief".into(), prompt.into());
        Request { made_from, system, prompt, temperature: 0.7, max_tokens: 64, sample, ..Request::default() }
    }

    fn reply(text: &str) -> Reply {
        Reply { text: text.into(), model: "m-1".into(), ..Reply::default() }
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
            Request { made_from: PromptId { hash: "1f".into(), ..PromptId::default() }, ..request("a", 0) },
        ];
        assert!(others.iter().all(|other| key(other) != same));
        let renamed = PromptId { name: "other".into(), version: 9, hash: "0f".into() };
        assert_eq!(key(&Request { made_from: renamed, ..request("a", 0) }), same);
        let zero = |temperature| key(&Request { temperature, ..request("a", 0) });
        assert_eq!(zero(0.0), zero(-0.0));
    }

    #[test]
    fn the_key_of_a_request_never_changes() {
        let made_from = PromptId { hash: "00ff".into(), ..PromptId::default() };
        let request = Request { made_from, prompt: "hi".into(), max_tokens: 1, ..Request::default() };
        assert_eq!(key(&request), "b8db9ee9bbe24fb0135e8c85b0d5922b");
    }

    #[test]
    fn a_changed_line_is_refused_wherever_it_changed() {
        let cut = Reply { cut: Some("length".into()), ..reply("Yes, they should.") };
        let line = line_of(&request("a", 1), "owl", Some("http://one/v1"), &cut).unwrap();
        assert!(!is_damaged(line.as_bytes()));
        for at in 0..line.len() {
            let mut changed = line.clone().into_bytes();
            changed[at] ^= 1;
            let whole = read_line(line.as_bytes()).map_err(drop).unwrap();
            if let Ok(read) = read_line(&changed) {
                // Only the name of the sum itself, or of an optional field, can change without a word.
                assert_eq!((read.reply, read.model, read.cut), (whole.reply, whole.model, whole.cut), "{at}");
            }
        }
    }

    #[test]
    fn any_temperature_survives_being_written_and_read() {
        for step in 0..2000u16 {
            let request = Request { temperature: f32::from(step) / 999.0, ..request("a", 0) };
            assert!(read_line(line(&request, &reply("x")).unwrap().as_bytes()).is_ok(), "{step}");
        }
    }
}

#[cfg(test)]
mod recorded_tests {
    use super::*;
    use crate::llm::recorded::line;

    fn request(prompt: &str, sample: u32) -> Request {
        let made_from = PromptId { name: "test".into(), version: 1, hash: "0f".into() };
        let (system, prompt) = ("be brief".into(), prompt.into());
        Request { made_from, system, prompt, temperature: 0.7, max_tokens: 64, sample, ..Request::default() }
    }

    fn reply(text: &str) -> Reply {
        Reply { text: text.into(), model: "m-1".into(), ..Reply::default() }
    }

    fn file(replies: &[(&str, u32, &str)]) -> String {
        replies.iter().map(|(p, s, text)| line(&request(p, *s), &reply(text)).unwrap() + "\n").collect()
    }

    #[test]
    fn a_recorded_reply_comes_back_exactly_for_its_sample_number_alone() {
        let text = "ü \"quoted\"\n\ttwo lines \u{2028} end ";
        let recorded = Recorded::parse("r", file(&[("a", 0, text), ("a", 1, "other")]).as_bytes()).unwrap();
        let found = recorded.reply(&request("a", 0), &Stop::never()).unwrap();
        assert_eq!(found, Reply { recorded: true, ..reply(text) });
        assert_eq!(recorded.reply(&request("a", 1), &Stop::never()).unwrap().text, "other");
        for (prompt, sample) in [("a", 2), ("b", 0)] {
            let none = recorded.reply(&request(prompt, sample), &Stop::never());
            assert_eq!(none, Err(ChatError::NotRecorded));
        }
        assert_eq!((recorded.len(), recorded.model()), (2, "m-1"));
    }

    #[test]
    fn the_last_of_two_replies_to_the_same_request_counts() {
        let recorded = Recorded::parse("r", file(&[("a", 0, "old"), ("a", 0, "new")]).as_bytes()).unwrap();
        assert_eq!(recorded.find(&request("a", 0)).unwrap().text, "new");
        let more = Recorded::parse("r", file(&[("a", 0, "newer"), ("b", 0, "b")]).as_bytes()).unwrap();
        let both = recorded.with(more);
        assert_eq!((both.find(&request("a", 0)).unwrap().text.as_str(), both.len()), ("newer", 2));
    }

    #[test]
    fn of_several_models_the_one_named_replies_and_without_a_name_the_last() {
        let as_said = |model: &str, text: &str| Reply { model: model.into(), ..reply(text) };
        let lines = [
            line_of(&request("a", 0), "owl", Some("http://one/v1"), &as_said("owl-2026", "from owl"))
                .unwrap(),
            line_of(&request("a", 0), "bear", Some("http://two/v1"), &as_said("bear", "from bear")).unwrap(),
        ];
        assert!(lines[0].contains("http://one/v1") && lines[0].contains("\"answered_by\":\"owl-2026\""));
        let all = Recorded::parse("r", lines.join("\n").as_bytes()).unwrap();
        assert_eq!((all.len(), all.model()), (2, "several models"));
        let text =
            |recorded: &Recorded| recorded.find(&request("a", 0)).map(|reply| (reply.model, reply.text));
        let pair = |model: &str, text: &str| Some((model.to_owned(), text.to_owned()));
        assert_eq!(text(&all), pair("bear", "from bear"));
        for name in ["owl", "owl-2026"] {
            let own = all.clone().of_model(name);
            assert_eq!((text(&own), own.model()), (pair("owl-2026", "from owl"), "owl"));
        }
        assert!(all.of_model("bee").is_empty());
    }

    #[test]
    fn a_line_without_a_prompt_is_refused_in_a_file_and_skipped_in_the_programs_own_journal() {
        let old = r#"{"key":"b3","sample":0,"model":"m","request":{"system":"","prompt":"hi","temperature":0.0,"max_tokens":1},"reply":"r"}"#;
        let message = Recorded::parse("r", old.as_bytes()).unwrap_err().to_string();
        assert!(message.contains("missing field `prompt`"), "{message}");
        assert!(Recorded::of_journal([old.as_bytes(), b"{}"].into_iter()).is_empty());
        assert!(!is_damaged(old.as_bytes()) && is_damaged(b"{}") && !is_damaged(b" "));
    }

    #[test]
    fn bad_lines_are_reported_with_file_and_number() {
        let good = file(&[("a", 0, "x")]);
        let wrong = good.replace("\"prompt\":\"a\"", "\"prompt\":\"changed\"");
        let bytes = format!("{good}\r\n{wrong}not json\n{{}}\n");
        let mut bytes = bytes.into_bytes();
        bytes.extend_from_slice(b"\xff\n");
        let Err(InputError::BadLines(bad)) = Recorded::parse("replies.jsonl", &bytes) else { panic!() };
        assert_eq!(bad.iter().map(|bad| bad.line).collect::<Vec<_>>(), [3, 4, 5, 6]);
        assert!(bad.iter().all(|bad| bad.file == Path::new("replies.jsonl")));
        assert!(
            bad[0].expected.contains(&key(&request("changed", 0))) && bad[0].found == key(&request("a", 0))
        );
        assert_eq!(bad[3].expected, "UTF-8 text");
    }

    #[test]
    fn a_file_that_is_not_there_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let error = Recorded::read(&folder.path().join("none.jsonl")).unwrap_err().to_string();
        assert!(error.contains("none.jsonl") && error.contains("no such file"), "{error}");
    }
}
