//! Prompts from TOML files, one for each job that a language model does.
//!
//! ```toml
//! for = "detect"            # the job
//! version = 1               # raised with every change
//! temperature = 0.0
//! max_tokens = 1024
//! system = "…"
//! user = "{examples}Passage: {passage}\nStatement: {statement}\nAnswer:"
//! example = "Passage: {passage}\nStatement: {statement}\nAnswer: {reply}\n\n"
//! [[examples]]              # none, one or several
//! passage = "…"
//! statement = "…"
//! reply = "Yes"
//! [outcomes]                # the words that a reply may be
//! yes = ["yes"]
//! no = ["no"]
//! ```
//!
//! `{name}` is replaced, `{{name}}` becomes `{name}`, and every other brace stays. Inserted values are not searched for fields.
//! `{fence}` is a delimiter that is drawn anew for each request. In a prompt that holds it, the labels before a colon at the beginning of the
//! prompt's own lines lose their colon in a passage, so that no passage can imitate the prompt.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::chat::{FENCE, Job, PromptId, Reply, Request, outcome_shares, without_frame};
use crate::assets::PROMPTS;
use crate::input::{self, BadLine, InputError};

/// The content of a file. Its hash covers these fields, so comments and line endings do not count.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(rename = "for")]
    job: String,
    version: u32,
    temperature: f32,
    max_tokens: u32,
    #[serde(default)]
    system: String,
    user: String,
    #[serde(default)]
    example: String,
    #[serde(default)]
    examples: Vec<BTreeMap<String, String>>,
    #[serde(default)]
    outcomes: BTreeMap<String, Vec<String>>,
}

/// A part of a template.
#[derive(Clone, Debug, PartialEq)]
enum Piece {
    Text(String),
    Field(String),
}

/// One prompt, ready to be filled in.
#[derive(Clone, Debug)]
pub struct Prompt {
    /// Its job.
    pub job: Job,
    /// Its name, version and hash.
    pub id: PromptId,
    system: String,
    user: Vec<Piece>,
    /// The labels of its own lines, in lower case, that no passage may imitate; empty without a fence.
    labels: Vec<String>,
    /// The words of each outcome, in the order of [`Job::outcomes`] and in lower case.
    outcomes: Vec<Vec<String>>,
    temperature: f32,
    max_tokens: u32,
}

impl Prompt {
    /// Reads a prompt from the text of its file.
    ///
    /// # Errors
    /// The text is not TOML, or an entry is missing, unknown or invalid; the error names the line.
    pub fn parse(file: &Path, text: &str) -> Result<Self, InputError> {
        let text = &text.replace("\r\n", "\n");
        let bad = |line: usize, expected: String| {
            let found = text.lines().nth(line.saturating_sub(1)).unwrap_or_default().to_owned();
            InputError::BadLines(vec![BadLine { file: file.into(), line, expected, found }])
        };
        let read: File = toml::from_str(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start.min(text.len()));
            let line = text.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
            bad(line, format!("a prompt ({})", error.message().trim()))
        })?;
        let name = file.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
        Self::build(name, &read).map_err(|(key, expected)| {
            let line = text.lines().position(|line| line.trim_start().starts_with(key));
            bad(line.unwrap_or(0) + 1, expected)
        })
    }

    /// Builds a prompt. The error is the invalid key and its expected value.
    fn build(name: String, read: &File) -> Result<Self, (&'static str, String)> {
        let Some(job) = Job::ALL.into_iter().find(|job| job.name() == read.job) else {
            let all = Job::ALL.map(Job::name).join(", ");
            return Err(("for", format!("one of {all}")));
        };
        if !(0.0..=2.0).contains(&read.temperature) {
            return Err(("temperature", "a number from 0 to 2".into()));
        }
        if read.max_tokens == 0 {
            return Err(("max_tokens", "at least 1".into()));
        }
        let user = pieces(&read.user, &[job.fields(), &["examples", "fence"]].concat());
        let mut user = user.map_err(|expected| ("user", expected))?;
        if let Some(field) = job.fields().iter().find(|field| !has(&user, field)) {
            return Err(("user", format!("a text that holds {{{field}}}")));
        }
        if !read.examples.is_empty() && !has(&user, "examples") {
            return Err(("user", "a text that holds {examples}, as there are examples".into()));
        }
        let shown = examples(job, read)?;
        let labels = if has(&user, "fence") { labels(job, &user, &shown) } else { Vec::new() };
        for piece in &mut user {
            match piece {
                Piece::Field(name) if name == "examples" => *piece = Piece::Text(shown.clone()),
                Piece::Field(name) if name == "fence" => *piece = Piece::Text(FENCE.into()),
                _ => {}
            }
        }
        let json = serde_json::to_vec(read).map_err(|error| ("for", error.to_string()))?;
        let mut hash =
            blake3::Hasher::new().update(b"prompt 1\n").update(&json).finalize().to_hex().to_string();
        hash.truncate(32);
        Ok(Prompt {
            job,
            id: PromptId { name, version: read.version, hash },
            system: read.system.clone(),
            user,
            labels,
            outcomes: outcomes(job, read)?,
            temperature: read.temperature,
            max_tokens: read.max_tokens,
        })
    }

    /// The request with these values inserted; `sample` is the number of the reply, from 0.
    pub fn request(&self, values: &[(&str, &str)], sample: u32) -> Request {
        let values: Vec<(&str, Cow<'_, str>)> =
            values.iter().map(|(name, value)| (*name, without_frame(value, &self.labels))).collect();
        let value = |name: &str| values.iter().find(|(field, _)| *field == name).map(|(_, value)| &**value);
        Request {
            made_from: self.id.clone(),
            system: self.system.clone(),
            prompt: fill(&self.user, value),
            temperature: self.temperature,
            max_tokens: self.max_tokens,
            sample,
            outcomes: Vec::new(),
        }
    }

    /// The same, and the reply is to have the likeliest tokens where its outcome begins.
    pub fn request_with_tokens(&self, values: &[(&str, &str)], sample: u32) -> Request {
        Request { outcomes: self.outcomes.clone(), ..self.request(values, sample) }
    }

    /// The probabilities of the outcomes by the tokens of a reply; `None` if it has no tokens, or none for its own outcome.
    pub fn probabilities(&self, reply: &Reply) -> Option<Vec<f64>> {
        let outcome = self.verdict(reply)?;
        outcome_shares(&self.outcomes, &reply.alternatives).filter(|shares| shares[outcome] > 0.0)
    }

    /// The outcome of a whole reply; none if it ended early.
    pub fn verdict(&self, reply: &Reply) -> Option<usize> {
        self.outcome(reply.answer()).filter(|_| reply.cut.is_none())
    }

    /// The outcome that a text is, as an index into [`Job::outcomes`]: one of its words, perhaps in quotes, in bold, in JSON or after
    /// `Answer:`. Any other reply has none, whatever it begins with: `Yes and no`, `No idea`.
    pub fn outcome(&self, reply: &str) -> Option<usize> {
        let bare = |text: &str| text.trim_matches(|c: char| !c.is_alphanumeric()).to_owned();
        let mut word = bare(&reply.to_lowercase());
        for label in ["final", "answer"] {
            if let Some(rest) =
                word.strip_prefix(label).filter(|rest| !rest.starts_with(char::is_alphanumeric))
            {
                // The end of a tag: `<answer>no</answer>`.
                let rest = rest.strip_suffix(&format!("</{label}")).unwrap_or(rest);
                word = bare(rest);
            }
        }
        self.outcomes.iter().position(|words| words.contains(&word))
    }

    /// Describes a reply without an outcome: `neither yes nor no`.
    pub fn describe_other(&self) -> String {
        let words: Vec<&str> =
            self.outcomes.iter().filter_map(|words| words.first()).map(String::as_str).collect();
        match words.as_slice() {
            [one, other] => format!("neither {one} nor {other}"),
            more => format!("none of {}", more.join(", ")),
        }
    }
}

/// The labels before a colon at the beginning of a prompt's lines, and the usual ones, in lower case.
fn labels(job: Job, user: &[Piece], examples: &str) -> Vec<String> {
    let mut text = fill(user, |_| Some(""));
    text.push('\n');
    text.push_str(examples);
    let label = |line: &str| {
        let (label, _) = line.split_once(':')?;
        let plain =
            !label.is_empty() && label.len() < 30 && label.chars().all(|c| c.is_alphanumeric() || c == ' ');
        plain.then(|| label.trim().to_lowercase())
    };
    let usual = job.fields().iter().chain(&["answer"]).map(|label| (*label).to_owned());
    let mut labels: Vec<String> = text.lines().filter_map(label).chain(usual).collect();
    labels.sort();
    labels.dedup();
    labels
}

fn has(pieces: &[Piece], field: &str) -> bool {
    pieces.iter().any(|piece| matches!(piece, Piece::Field(name) if name == field))
}

fn fill<'a>(pieces: &'a [Piece], value: impl Fn(&str) -> Option<&'a str>) -> String {
    let texts = pieces.iter().map(|piece| match piece {
        Piece::Text(text) => text.as_str(),
        Piece::Field(name) => value(name).unwrap_or_default(),
    });
    texts.collect()
}

/// Splits a template at its fields, which are among `allowed`.
fn pieces(template: &str, allowed: &[&str]) -> Result<Vec<Piece>, String> {
    /// The name in `{name}` at the start of a text, and the text after it.
    fn field(text: &str) -> Option<(&str, &str)> {
        let (name, rest) = text.strip_prefix('{')?.split_once('}')?;
        let plain = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        plain.then_some((name, rest))
    }
    let (mut pieces, mut text, mut rest) = (Vec::new(), String::new(), template);
    while let Some(at) = rest.find('{') {
        let (before, from) = rest.split_at(at);
        text.push_str(before);
        let literal = field(&from[1..]).and_then(|(name, rest)| Some((name, rest.strip_prefix('}')?)));
        if let Some((name, after)) = literal {
            text.push_str(&format!("{{{name}}}"));
            rest = after;
        } else if let Some((name, after)) = field(from) {
            if !allowed.contains(&name) {
                return Err(format!("no {{{name}}}; it may hold {{{}}}", allowed.join("}, {")));
            }
            pieces.push(Piece::Text(std::mem::take(&mut text)));
            pieces.push(Piece::Field(name.to_owned()));
            rest = after;
        } else {
            text.push('{');
            rest = &from[1..];
        }
    }
    text.push_str(rest);
    pieces.push(Piece::Text(text));
    Ok(pieces)
}

/// All examples as one text.
fn examples(job: Job, read: &File) -> Result<String, (&'static str, String)> {
    let allowed = [job.fields(), &["reply"]].concat();
    let template = pieces(&read.example, &allowed).map_err(|expected| ("example", expected))?;
    if !read.examples.is_empty() && !has(&template, "reply") {
        return Err(("example", "a text that holds {reply}".into()));
    }
    let mut shown = String::new();
    for example in &read.examples {
        if let Some(odd) = example.keys().find(|key| !allowed.contains(&key.as_str())) {
            return Err(("[[examples]]", format!("no `{odd}`; an example has {}", allowed.join(", "))));
        }
        if let Some(missing) =
            allowed.iter().find(|name| has(&template, name) && !example.contains_key(**name))
        {
            return Err(("[[examples]]", format!("an example with `{missing}`")));
        }
        shown += &fill(&template, |name| example.get(name).map(String::as_str));
    }
    Ok(shown)
}

/// The words of each outcome, in lower case.
fn outcomes(job: Job, read: &File) -> Result<Vec<Vec<String>>, (&'static str, String)> {
    let named = job.outcomes();
    if read.outcomes.len() != named.len() || named.iter().any(|name| !read.outcomes.contains_key(*name)) {
        let expected = if named.is_empty() {
            "no outcomes".into()
        } else {
            format!("the outcomes {}", named.join(", "))
        };
        return Err(("[outcomes]", expected));
    }
    let words: Vec<Vec<String>> = named
        .iter()
        .map(|name| read.outcomes[*name].iter().map(|word| word.trim().to_lowercase()).collect())
        .collect();
    let mut all: Vec<&String> = words.iter().flatten().collect();
    let count = all.len();
    all.sort();
    all.dedup();
    let begins = |word: &String| word.starts_with(char::is_alphanumeric);
    if all.len() < count || words.iter().any(Vec::is_empty) || !all.into_iter().all(begins) {
        return Err((
            "[outcomes]",
            "a list of words for each outcome, each word only once and beginning with a letter".into(),
        ));
    }
    Ok(words)
}

/// The prompts in use, one for each job.
#[derive(Clone, Debug)]
pub struct Prompts(Vec<Arc<Prompt>>);

impl Prompts {
    /// The built-in prompts.
    ///
    /// # Errors
    /// A built-in file is damaged.
    pub fn builtin() -> Result<Self, InputError> {
        Self::with(&[])
    }

    /// The built-in prompts, some replaced by others: files, or names of built-in ones. The last for a job counts.
    ///
    /// # Errors
    /// There is no such file, or it does not contain a prompt.
    pub fn with(named: &[PathBuf]) -> Result<Self, InputError> {
        let builtin = |name: &str| PROMPTS.iter().find(|(own, _)| *own == name);
        let parse = |(name, text): &(&str, &str)| {
            Prompt::parse(Path::new(&format!("{name}.toml")), text).map(Arc::new)
        };
        let own = Job::ALL.iter().filter_map(|job| builtin(job.name())).map(parse);
        let mut prompts = Prompts(own.collect::<Result<Vec<_>, _>>()?);
        for path in named {
            let prompt = match path.to_str().and_then(builtin) {
                Some(file) => parse(file)?,
                None => Arc::new(Prompt::parse(path, &input::text(path)?)?),
            };
            let job = prompt.job;
            prompts.0[job as usize] = prompt;
        }
        Ok(prompts)
    }

    /// The prompt for a job.
    pub fn get(&self, job: Job) -> &Arc<Prompt> {
        &self.0[job as usize]
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &Prompt> {
        self.0.iter().map(Arc::as_ref)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Prompt, String> {
        Prompt::parse(Path::new("p/mine.toml"), text).map_err(|error| error.to_string())
    }

    const PLAIN: &str = "for = \"detect\"\nversion = 3\ntemperature = 0.5\nmax_tokens = 7\nsystem = \"S {passage}\"\n\
                         user = \"{examples}P {passage} {\\\"a\\\": 1} {{statement}} {statement}\"\n[outcomes]\nyes = [\"yes\"]\nno = [\"no\"]\n";

    #[test]
    fn values_are_put_in_once_and_other_braces_stay() {
        let prompt = parsed(PLAIN).unwrap();
        let request = prompt.request(&[("passage", "a {statement}"), ("statement", "b")], 2);
        assert_eq!(request.prompt, "P a {statement} {\"a\": 1} {statement} b");
        assert_eq!(request.system, "S {passage}", "the system text is fixed");
        assert_eq!((request.temperature, request.max_tokens, request.sample), (0.5, 7, 2));
        assert_eq!((prompt.id.name.as_str(), prompt.id.version), ("mine", 3));
    }

    #[test]
    fn examples_are_rendered_in_their_order_and_are_not_searched_for_fields() {
        let text = PLAIN.replace("[outcomes]", "example = \"{passage}: {reply}; \"\n[[examples]]\npassage = \"{passage}\"\nreply = \"Yes\"\n[[examples]]\npassage = \"q\"\nreply = \"No\"\n[outcomes]");
        let request = parsed(&text).unwrap().request(&[("passage", "p"), ("statement", "s")], 0);
        assert!(request.prompt.starts_with("{passage}: Yes; q: No; P p "), "{}", request.prompt);
    }

    #[test]
    fn the_hash_covers_everything_that_is_sent_or_read_but_not_comments_or_line_endings() {
        let hash = |text: &str| parsed(text).unwrap().id.hash;
        assert_eq!(hash(PLAIN).len(), 32);
        for same in [
            PLAIN.replace('\n', "\r\n"),
            format!("# a note\n{PLAIN}"),
            PLAIN.replace("version =", "version  ="),
        ] {
            assert_eq!(hash(&same), hash(PLAIN));
        }
        for (from, to) in [
            ("version = 3", "version = 4"),
            ("= 0.5", "= 0.6"),
            ("tokens = 7", "tokens = 8"),
            ("\"S ", "\"T "),
            ("}P ", "}Q "),
            ("[\"yes\"]", "[\"yes\", \"ja\"]"),
        ] {
            assert_ne!(hash(&PLAIN.replace(from, to)), hash(PLAIN), "{to}");
        }
    }

    #[test]
    fn a_bad_file_is_reported_with_its_line_and_what_was_expected() {
        for (from, to, expected) in [
            ("\"detect\"", "\"detekt\"", "mine.toml:1: expected one of detect, perspectives"),
            ("version = 3", "versoin = 3", "mine.toml:2: expected a prompt (unknown field `versoin`"),
            ("version = 3\n", "", "missing field `version`"),
            ("0.5", "3.0", "mine.toml:3: expected a number from 0 to 2"),
            ("= 7", "= 0", "mine.toml:4: expected at least 1"),
            (" {statement}\"", "\"", "mine.toml:6: expected a text that holds {statement}"),
            (
                "P {passage}",
                "P {passage} {topic}",
                "expected no {topic}; it may hold {passage}, {statement}, {examples}",
            ),
            ("no = [\"no\"]\n", "", "mine.toml:7: expected the outcomes yes, no"),
            ("[\"no\"]", "[\"Yes\"]", "each word only once"),
            ("[\"no\"]", "[]", "a list of words for each outcome"),
            ("[outcomes]", "[[examples]]\nreply = \"x\"\n[outcomes]", "expected a text that holds {reply}"),
        ] {
            let message = parsed(&PLAIN.replace(from, to)).unwrap_err();
            assert!(message.contains(expected), "{to}: {message}");
        }
        let without =
            PLAIN.replace("{examples}", "").replace("[outcomes]", "[[examples]]\nreply = \"x\"\n[outcomes]");
        assert!(parsed(&without).unwrap_err().contains("holds {examples}"));
    }

    #[test]
    fn a_reply_is_an_outcome_or_has_none() {
        let prompts = Prompts::builtin().unwrap();
        let (yes_no, sides) = (prompts.get(Job::Detect), prompts.get(Job::ReadSides));
        assert_eq!(yes_no.describe_other(), "neither yes nor no");
        for (reply, outcome) in [
            ("A", Some(0)),
            ("b.", Some(1)),
            ("A or B", None),
            ("Balanced", Some(2)),
            ("Any", None),
            ("A is right", None),
        ] {
            assert_eq!(sides.outcome(reply), outcome, "{reply}");
        }
        let german = parsed(&PLAIN.replace("[\"yes\"]", "[\"ja\", \"ja, sicher\"]")).unwrap();
        assert_eq!((german.outcome("„Ja, sicher“, no"), german.outcome("„Ja, sicher“")), (None, Some(0)));
        assert_eq!((german.outcome("Ja."), german.outcome("Jaguar")), (Some(0), None));
    }

    #[test]
    fn every_built_in_prompt_can_be_read_and_each_job_has_one_of_its_name() {
        let prompts = Prompts::builtin().unwrap();
        for job in Job::ALL {
            let prompt = prompts.get(job);
            assert_eq!((prompt.job, prompt.id.name.as_str()), (job, job.name()));
        }
        for (name, _) in PROMPTS {
            let with = Prompts::with(&[name.into()]).unwrap();
            assert!(with.all().any(|prompt| prompt.id.name == name), "{name}");
        }
        let none = Prompts::with(&["no-such-prompt".into()]).unwrap_err().to_string();
        assert!(none.contains("no-such-prompt"), "{none}");
    }
}
