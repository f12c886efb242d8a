//! Replies recorded before: one JSON object a line, found by what was asked and by the number of the sample.

use std::collections::HashMap;
use std::io::Read;
use std::path::Path;

use super::record::{key, read_line};
use super::{Chat, ChatError, Reply, Request};
use crate::input::{self, BadLine, InputError};
use crate::work::Stop;

/// Replies recorded before. Alone it answers nothing else.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    replies: HashMap<(String, u32), (String, String)>,
    model: String,
}

impl Recorded {
    /// Reads recorded replies the program carries; `name` stands for the file in messages.
    ///
    /// Where a request was recorded twice with the same sample number, the last reply counts.
    ///
    /// # Errors
    /// A line is no recorded reply, or its key is not that of its request.
    pub fn parse(name: &str, bytes: &[u8]) -> Result<Self, InputError> {
        Self::parse_file(Path::new(name), bytes)
    }

    /// Reads a file of recorded replies.
    ///
    /// # Errors
    /// The file cannot be read, a line is no recorded reply, or its key is not that of its request.
    pub fn read(path: &Path) -> Result<Self, InputError> {
        let mut bytes = Vec::new();
        let read = input::open_whole(path)?.read_to_end(&mut bytes);
        read.map_err(|error| InputError::unreadable(path, &error))?;
        Self::parse_file(path, &bytes)
    }

    pub(super) fn parse_file(file: &Path, bytes: &[u8]) -> Result<Self, InputError> {
        let (mut recorded, mut bad) = (Recorded::default(), Vec::new());
        let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
        for (at, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
            if line.trim_ascii().is_empty() {
                continue;
            }
            match read_line(line) {
                Ok(line) => recorded.insert(line.key, line.sample, line.model, line.reply),
                Err((expected, found)) => {
                    bad.push(BadLine { file: file.into(), line: at + 1, expected, found });
                }
            }
        }
        if bad.is_empty() { Ok(recorded) } else { Err(InputError::BadLines(bad)) }
    }

    /// These and others; where both have a reply, the others' counts.
    #[must_use]
    pub fn with(mut self, others: Recorded) -> Self {
        for ((key, sample), (model, reply)) in others.replies {
            self.insert(key, sample, model, reply);
        }
        self
    }

    /// How many replies there are.
    pub fn len(&self) -> usize {
        self.replies.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.replies.is_empty()
    }

    /// The reply to a request, where one was recorded.
    pub fn find(&self, request: &Request) -> Option<Reply> {
        let (model, text) = self.replies.get(&(key(request), request.sample))?;
        Some(Reply { text: text.clone(), model: model.clone(), recorded: true, tokens: None })
    }

    pub(super) fn retain(&mut self, usable: fn(&Reply) -> bool) {
        self.replies.retain(|_, (model, text)| {
            usable(&Reply { text: text.clone(), model: model.clone(), recorded: true, tokens: None })
        });
    }

    pub(super) fn add(&mut self, request: &Request, reply: &Reply) {
        self.insert(key(request), request.sample, reply.model.clone(), reply.text.clone());
    }

    fn insert(&mut self, key: String, sample: u32, model: String, reply: String) {
        if self.replies.is_empty() {
            self.model.clone_from(&model);
        } else if self.model != model {
            self.model = "several models".into();
        }
        self.replies.insert((key, sample), (model, reply));
    }
}

impl Chat for Recorded {
    /// The model all replies come from; `several models` where there is not one.
    fn model(&self) -> &str {
        if self.replies.is_empty() { "no model" } else { &self.model }
    }

    fn reply(&self, request: &Request, _stop: &Stop) -> Result<Reply, ChatError> {
        self.find(request).ok_or(ChatError::NotRecorded)
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::line;
    use super::*;

    fn request(prompt: &str, sample: u32) -> Request {
        Request { system: "be brief".into(), prompt: prompt.into(), temperature: 0.7, max_tokens: 64, sample }
    }

    fn reply(text: &str) -> Reply {
        Reply { text: text.into(), model: "m-1".into(), recorded: false, tokens: None }
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
    fn bad_lines_are_told_with_file_and_number() {
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
    fn a_file_that_is_not_there_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let told = Recorded::read(&folder.path().join("none.jsonl")).unwrap_err().to_string();
        assert!(told.contains("none.jsonl") && told.contains("no such file"), "{told}");
    }
}
