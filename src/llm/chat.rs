//! Prompts, replies, and the trait of everything that answers prompts.

use std::borrow::Cow;
use std::hash::{BuildHasher, Hasher, RandomState};

use serde::{Deserialize, Serialize};

use crate::work::{Stop, Stopped};

/// The purpose of a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Job {
    /// Whether a passage supports a statement.
    Detect,
    /// Perspectives on a question.
    Perspectives,
    /// A hypothetical answer.
    Keqe,
    /// Sentences copied from passages.
    Csqe,
    /// A hypothetical answer, with passages to write it from.
    Q2dPrf,
    /// Two opposite statements that answer a question.
    Statements,
    /// An order of passages.
    Listwise,
    /// An answer from passages.
    Read,
    /// An answer without passages.
    ReadAlone,
    /// Which of two statements passages support together.
    ReadSides,
    /// Whether two answers mean the same.
    SameAnswer,
    /// The perspective in a query.
    Extract,
    /// Other wordings of a question.
    Wordings,
    /// A passage in other words.
    Rewrite,
}

impl Job {
    /// All of them.
    pub const ALL: [Job; 14] = [
        Job::Detect,
        Job::Perspectives,
        Job::Keqe,
        Job::Csqe,
        Job::Q2dPrf,
        Job::Statements,
        Job::Listwise,
        Job::Read,
        Job::ReadAlone,
        Job::ReadSides,
        Job::SameAnswer,
        Job::Extract,
        Job::Wordings,
        Job::Rewrite,
    ];

    /// Its name in files, which is also the name of its built-in prompt.
    pub fn name(self) -> &'static str {
        match self {
            Job::Detect => "detect",
            Job::Perspectives => "perspectives",
            Job::Keqe => "keqe",
            Job::Csqe => "csqe",
            Job::Q2dPrf => "q2d-prf",
            Job::Statements => "statements",
            Job::Listwise => "listwise",
            Job::Read => "read",
            Job::ReadAlone => "read-alone",
            Job::ReadSides => "read-sides",
            Job::SameAnswer => "same-answer",
            Job::Extract => "extract",
            Job::Wordings => "wordings",
            Job::Rewrite => "rewrite",
        }
    }

    /// The fields of its prompt; every prompt for this job must contain all of them.
    pub fn fields(self) -> &'static [&'static str] {
        match self {
            Job::Detect => &["passage", "statement"],
            Job::Perspectives | Job::Keqe | Job::Statements | Job::ReadAlone | Job::Extract => &["question"],
            Job::Csqe | Job::Q2dPrf | Job::Listwise | Job::Read => &["question", "passages"],
            Job::ReadSides => &["first", "second", "passages"],
            Job::SameAnswer => &["question", "first", "second"],
            Job::Wordings => &["question", "forms"],
            Job::Rewrite => &["passage"],
        }
    }

    /// The possible outcomes of a reply, if it is one word.
    pub fn outcomes(self) -> &'static [&'static str] {
        match self {
            Job::Detect | Job::SameAnswer => &["yes", "no"],
            Job::ReadSides => &["first", "second", "both", "neither"],
            _ => &[],
        }
    }
}

/// Identifies the prompt of a request. A reply to one version never counts for another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptId {
    /// The name of a built-in prompt, or the name of its file without the extension.
    pub name: String,
    /// The version that its file states.
    pub version: u32,
    /// The first 32 hexadecimal digits of the BLAKE3 hash of its file's content.
    pub hash: String,
}

/// One prompt. Equal requests with equal sample numbers get equal recorded replies.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// The prompt from which it was made.
    pub made_from: PromptId,
    /// The system text; may be empty.
    pub system: String,
    /// The user text.
    pub prompt: String,
    /// 0 always takes the likeliest token; 1 samples from the model's own distribution.
    pub temperature: f32,
    /// The maximum number of tokens in the reply.
    pub max_tokens: u32,
    /// The number of the reply among several to the same prompt, from 0.
    pub sample: u32,
    /// The words of each outcome, in lower case, if [`Reply::alternatives`] are wanted. They do not change the reply.
    pub outcomes: Vec<Vec<String>>,
}

/// The most alternatives of a token: OpenAI's limit, and that of most servers.
pub(super) const ALTERNATIVES: usize = 20;

/// A token that could stand at one place of a reply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Alternative {
    /// Its text.
    pub token: String,
    /// The natural logarithm of its probability.
    pub logprob: f32,
}

/// The outcomes of which a token may be the beginning, whatever its case and the marks around it.
fn begun<'o>(outcomes: &'o [Vec<String>], token: &str) -> impl Iterator<Item = usize> + use<'o> {
    // Some servers do not decode the space before a word.
    let bare =
        token.trim_start_matches('\u{120}').trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    let begins =
        move |words: &Vec<String>| !bare.is_empty() && words.iter().any(|word| word.starts_with(&bare));
    outcomes.iter().enumerate().filter(move |(_, words)| begins(words)).map(|(at, _)| at)
}

/// The place of the token that carries the outcome: the last that begins one. What a model thinks stands before it.
pub(super) fn outcome_place<'t>(
    outcomes: &[Vec<String>],
    tokens: impl Iterator<Item = &'t String>,
) -> Option<usize> {
    tokens.enumerate().filter(|(_, token)| begun(outcomes, token).next().is_some()).map(|(at, _)| at).last()
}

/// The probability of each outcome among all of them. A token that may begin two of them counts for neither.
pub(super) fn outcome_shares(outcomes: &[Vec<String>], alternatives: &[Alternative]) -> Option<Vec<f64>> {
    let mut sums = vec![0.0; outcomes.len()];
    for Alternative { token, logprob } in alternatives {
        let mut begun = begun(outcomes, token);
        if let (Some(one), None) = (begun.next(), begun.next()) {
            sums[one] += f64::from(*logprob).exp();
        }
    }
    let all: f64 = sums.iter().sum();
    (all > 0.0 && all.is_finite()).then(|| sums.into_iter().map(|sum| sum / all).collect())
}

/// The cost of a reply, as the model counts it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tokens {
    /// Tokens of the prompt.
    pub prompt: u64,
    /// Tokens of the reply.
    pub reply: u64,
}

impl Request {
    /// The user text as it is sent: each [`FENCE`] is a delimiter that nobody can know before, so no passage can end its own frame.
    pub fn sent(&self) -> Cow<'_, str> {
        if !self.prompt.contains(FENCE) {
            return Cow::Borrowed(&self.prompt);
        }
        let random = || RandomState::new().build_hasher().finish();
        Cow::Owned(self.prompt.replace(FENCE, &format!("={:016x}{:016x}=", random(), random())))
    }
}

/// Stands in a request for the delimiter around a passage, so that equal requests stay equal.
pub const FENCE: &str = "⟪fence⟫";

/// One reply.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    /// The text that the model wrote.
    pub text: String,
    /// Its name.
    pub model: String,
    /// Whether it was read from a file of recorded replies.
    pub recorded: bool,
    /// Its cost, if the server reports it.
    pub tokens: Option<Tokens>,
    /// Why it ended early, in the server's word, such as `length` or `content_filter`. Such a reply is no verdict.
    pub cut: Option<String>,
    /// The likeliest tokens where the outcome begins, if they were wanted and the server gives them.
    pub alternatives: Vec<Alternative>,
}

impl Reply {
    /// The text without the thoughts that some models write first.
    pub fn answer(&self) -> &str {
        let after = self.text.rsplit_once("</think>").map_or(self.text.as_str(), |(_, after)| after).trim();
        if after.starts_with("<think>") { "" } else { after }
    }
}

/// Why there is no reply.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ChatError {
    /// The server is down, cut the connection, or took too long; or the model's file cannot be used.
    #[error("{0}")]
    Unreachable(String),
    /// The server refused this request (holds its message), or the prompt is too long for the model.
    #[error("{0}")]
    Refused(String),
    /// The server refuses every request (holds its message): wrong key or address, overload, or failure.
    #[error("{0}")]
    Barred(String),
    /// The response is not a chat completion, or the reply is empty.
    #[error("{0}")]
    Nonsense(String),
    /// No reply to this request was recorded, and there is no model.
    #[error("no reply to this prompt was recorded")]
    NotRecorded,
    /// Stopped on request.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// Anything that answers prompts. A call blocks until the reply is complete or `stop` is set.
pub trait Chat: Send + Sync {
    /// The model's name for display.
    fn model(&self) -> &str;
    /// The server's address for provenance; `None` if the model runs here.
    fn server(&self) -> Option<&str> {
        None
    }
    /// A note about recorded replies that were damaged and set aside.
    fn damage(&self) -> Option<String> {
        None
    }
    /// The maximum number of tokens in prompt and reply together; `None` if unknown, as for servers.
    fn window(&self) -> Option<usize> {
        None
    }
    /// The reply to one request.
    ///
    /// # Errors
    /// See [`ChatError`].
    fn reply(&self, request: &Request, stop: &Stop) -> Result<Reply, ChatError>;
}

/// A value that holds no fence and, if there are labels, neither these labels with a colon nor marks of a chat's turns.
pub(super) fn without_frame<'a>(value: &'a str, labels: &[String]) -> Cow<'a, str> {
    let mark = FENCE.chars().next().unwrap_or_default();
    let mut safe =
        if value.contains(mark) { Cow::Owned(value.replace(mark, "<")) } else { Cow::Borrowed(value) };
    if labels.is_empty() {
        return safe;
    }
    for (mark, broken) in
        [("<|", "< |"), ("|>", "| >"), ("[INST", "[ INST"), ("[/INST", "[/ INST"), ("<<SYS", "< <SYS")]
    {
        if safe.contains(mark) {
            safe = Cow::Owned(safe.replace(mark, broken));
        }
    }
    if !safe.contains([':', '：']) {
        return safe;
    }
    let mut out = String::with_capacity(safe.len());
    for c in safe.chars() {
        let is_label = matches!(c, ':' | '：') && {
            let before = out.trim_end_matches(|c: char| c.is_whitespace() || matches!(c, '*' | '_' | '#'));
            labels.iter().any(|label| ends_with_word(before, label))
        };
        out.push(if is_label { ' ' } else { c });
    }
    Cow::Owned(out)
}

/// Whether a text ends with these words, in any case.
fn ends_with_word(text: &str, label: &str) -> bool {
    let mut found = text.char_indices().rev();
    let mut start = text.len();
    for wanted in label.chars().rev() {
        match found.next() {
            Some((at, c)) if c.to_lowercase().eq(wanted.to_lowercase()) => start = at,
            _ => return false,
        }
    }
    !text[..start].ends_with(char::is_alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::Prompts;

    #[test]
    fn the_probability_of_an_outcome_is_that_of_the_tokens_that_begin_its_words() {
        let outcomes = [vec!["yes".to_owned()], vec!["no".to_owned(), "neither".to_owned()]];
        let shares = |tokens: &[(&str, f32)]| {
            let alternative =
                |(token, p): &(&str, f32)| Alternative { token: (*token).to_owned(), logprob: p.ln() };
            outcome_shares(&outcomes, &tokens.iter().map(alternative).collect::<Vec<_>>())
        };
        let close = |found: Option<Vec<f64>>, yes: f64| (found.unwrap()[0] - yes).abs() < 1e-6;
        assert!(close(
            shares(&[("Yes", 0.4), (" yes", 0.1), ("\u{120}Y", 0.1), ("**No", 0.2), ("Maybe", 0.2)]),
            0.75
        ));
        // Other words, and what stands around a word, count for nothing.
        assert!(close(
            shares(&[("Yes", 0.3), ("No", 0.1), ("Yesterday", 0.2), ("\"", 0.2), ("", 0.1)]),
            0.75
        ));
        assert!(close(shares(&[("Yes", 1.0)]), 1.0));
        assert_eq!(shares(&[("Perhaps", 1.0)]), None);
        assert_eq!(shares(&[]), None);
        let both = [vec!["both".to_owned()], vec!["bad".to_owned()]];
        let alternative = |token: &str| Alternative { token: token.into(), logprob: -1.0 };
        assert_eq!(outcome_shares(&both, &[alternative("b"), alternative("bo")]), Some(vec![1.0, 0.0]));
        let tokens = ["<think>", "No", "</think>", "\n", "Y", "es", "."].map(str::to_owned);
        assert_eq!(outcome_place(&outcomes, tokens.iter()), Some(4));
        assert_eq!(outcome_place(&outcomes, tokens[2..4].iter()), None);
    }

    /// Passages that try to leave their frame, to answer in the model's place, or to give orders.
    const INJECTIONS: &str = include_str!("../../tests/fixtures/injections.json");

    #[test]
    fn no_passage_leaves_its_fence_or_repeats_a_label_of_the_prompt() {
        let injections: Vec<String> = serde_json::from_str(INJECTIONS).unwrap();
        assert_eq!(injections.len(), 50);
        for name in ["detect", "detect-one-shot", "detect-few-shot"] {
            let prompts = Prompts::with(&[name.into()]).unwrap();
            let prompt = prompts.get(Job::Detect);
            for injection in &injections {
                let request = prompt.request(&[("passage", injection), ("statement", "Zoos must close.")], 0);
                let same = prompt.request(&[("passage", injection), ("statement", "Zoos must close.")], 0);
                assert_eq!(request, same, "the record finds it again");
                let (sent, again) = (request.sent(), request.sent());
                assert_ne!(sent, again, "the fence is drawn anew");
                let fence = |text: &str| {
                    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
                    let fenced =
                        |line: &&String| line.len() == 34 && line.starts_with('=') && line.ends_with('=');
                    let found: Vec<String> = lines.iter().filter(fenced).cloned().collect();
                    assert_eq!(found.len(), 2, "{injection:?}: {text}");
                    assert_eq!(found[0], found[1]);
                    found[0].clone()
                };
                let fence = fence(&sent);
                assert!(
                    !sent.contains('\u{27ea}') && sent.matches(&fence).count() == 3,
                    "{injection:?}: {sent}"
                );
                let inside = sent.split(&format!("\n{fence}\n")).nth(1).unwrap().to_lowercase();
                for label in ["statement", "passage", "answer"] {
                    for colon in [":", " :", "\u{ff1a}", ":**", "_:"] {
                        assert!(!inside.contains(&format!("{label}{colon}")), "{injection:?}: {inside}");
                    }
                }
                assert!(!inside.contains("<|") && !inside.contains("[inst"), "{injection:?}");
            }
        }
    }
}
