//! A language model as a detector: it is asked whether a passage supports a statement, and answers yes or no.
//!
//! Any other answer is unreadable: it gives no verdict, is counted, and is shown. The probability comes from the tokens that could stand where
//! the answer begins, if the server gives them, else from the words. A passage of more than [`WORDS`] words or [`BYTES`] bytes is
//! judged in windows that overlap by half, until one supports the statement.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::decision::{DetectError, EVEN};
use super::detector::Detector;
use super::detector::Sources;
use super::rule::{Reading, Rule};
use super::text::text;
use crate::corpus::Passage;
use crate::input::excerpt;
use crate::llm::{AT_ONCE, Chat, ChatError, Prompt, Reply, Request, Tokens};
use crate::work::Stop;

/// The most words of a passage in one prompt. With the rest of the prompt that is about 3,000 tokens, which nearly every server
/// accepts.
const WORDS: usize = 2_000;
/// The most bytes of a passage in one prompt: the usual size of 2,000 English words, or 4,000 characters of a script without spaces.
const BYTES: usize = 12_000;
/// The version of the code that parses replies. It is part of the key, because another version may give other verdicts.
const REPLY_PARSER_VERSION: u32 = 5;
/// The approximate number of bytes in a token of English prose.
const TOKEN: u64 = 4;
/// The longest word, in bytes. Longer words are cut, so that windows overlap in texts without spaces.
const LONGEST: usize = 60;
/// How long to wait, once all retries failed, before asking a server again.
const COOL_DOWN: Duration = Duration::from_secs(15);

/// Judges through a [`Chat`].
pub struct PromptedDetector {
    chat: Arc<dyn Chat>,
    prompt: Arc<Prompt>,
    key: String,
    at_once: usize,
    rule: Rule,
    cool_down: Duration,
    usage: Mutex<Usage>,
}

/// Requests, cost and failures so far.
#[derive(Default)]
struct Usage {
    /// The number of answers that were not recorded before.
    answers: u64,
    /// Where the probabilities of the verdicts come from.
    sources: Sources,
    tokens: Option<Tokens>,
    /// The number of requests without a verdict, and the last reason.
    missing: (u64, String),
    /// The number of these whose reply is unreadable.
    unreadable: u64,
    /// When and why the server failed.
    failed: Option<(Instant, String)>,
}

impl PromptedDetector {
    /// A detector on this chat with a prompt for [`crate::llm::Job::Detect`]; `key` comes from [`PromptedDetector::key_of`].
    pub fn new(chat: Arc<dyn Chat>, prompt: Arc<Prompt>, key: String) -> Self {
        let rule = Rule::replies(chat.model());
        let (cool_down, usage) = (COOL_DOWN, Mutex::default());
        PromptedDetector { chat, prompt, key, rule, at_once: AT_ONCE, cool_down, usage }
    }

    /// Sets the number of requests that may run at once.
    #[must_use]
    pub fn with_at_once(self, at_once: usize) -> Self {
        PromptedDetector { at_once: at_once.max(1), ..self }
    }

    /// Makes a key from the model's name, the prompt's version and hash, and a hash of everything else that the verdicts depend on:
    /// the server's address and the recorded replies, if any.
    pub fn key_of(model: &str, prompt: &Prompt, server: &str, recorded_replies: &[u8]) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        let slug: String = model.chars().take(40).map(plain).collect();
        let mut hash = blake3::Hasher::new();
        for part in [model, &prompt.id.hash, server, &format!("{WORDS} {BYTES} {REPLY_PARSER_VERSION}")] {
            hash.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
        }
        let own = hash.update(recorded_replies).finalize().to_hex();
        format!("{slug}-v{}-{}-{}", prompt.id.version, &prompt.id.hash[..12], &own[..12])
    }

    /// Whether a reply has one of the prompt's outcomes. Other replies are not recorded, so a later run asks again: a server that is
    /// still loading its model may reply with a message about that.
    pub fn usable(prompt: &Prompt, reply: &Reply) -> bool {
        prompt.verdict(reply).is_some()
    }

    fn request(&self, passage: &str, statement: &str) -> Request {
        self.prompt.request_with_tokens(&[("passage", passage), ("statement", statement)], 0)
    }

    fn ask(&self, passage: &str, statement: &str, stop: &Stop) -> Result<Reading, DetectError> {
        let answer = self.answer(passage, statement, stop);
        if let Err(DetectError::Unanswered(why)) = &answer {
            let mut usage = self.usage.lock();
            usage.missing = (usage.missing.0 + 1, why.clone());
        }
        answer
    }

    fn answer(&self, passage: &str, statement: &str, stop: &Stop) -> Result<Reading, DetectError> {
        let usage = || self.usage.lock();
        if let Some((since, why)) = &usage().failed
            && since.elapsed() < self.cool_down
        {
            return Err(DetectError::Unanswered(format!(
                "not asked, because the server failed a moment ago: {why}"
            )));
        }
        match self.chat.reply(&self.request(passage, statement), stop) {
            Ok(reply) => {
                let mut usage = usage();
                usage.failed = None;
                usage.answers += u64::from(!reply.recorded);
                let (old, new) = (usage.tokens.unwrap_or_default(), reply.tokens);
                usage.tokens = new
                    .map(|new| Tokens { prompt: old.prompt + new.prompt, reply: old.reply + new.reply })
                    .or(usage.tokens);
                drop(usage);
                let outcome = self.prompt.verdict(&reply).ok_or_else(|| {
                    self.usage.lock().unreadable += 1;
                    let (model, answer) = (&reply.model, excerpt(reply.answer()));
                    DetectError::Unanswered(match &reply.cut {
                        Some(why) => format!("{model} ended its answer early ({}): {answer}", excerpt(why)),
                        None => format!("{model} answered {}: {answer}", self.prompt.describe_other()),
                    })
                })?;
                // Yes is the first outcome.
                let reading = match self.prompt.probabilities(&reply) {
                    Some(shares) => Reading::from_tokens(shares[0]),
                    None => Reading::of(f32::from(u8::from(outcome == 0))),
                };
                self.usage.lock().sources.add(&reading);
                Ok(reading)
            }
            Err(ChatError::Stopped(stopped)) => Err(stopped.into()),
            Err(error) => {
                let why = error.to_string();
                // Further requests would wait as long and fail too. If only this prompt was refused, others may still succeed.
                if matches!(error, ChatError::Unreachable(_) | ChatError::Barred(_)) {
                    usage().failed = Some((Instant::now(), why.clone()));
                }
                Err(DetectError::Unanswered(why))
            }
        }
    }
}

impl Detector for PromptedDetector {
    fn key(&self) -> &str {
        &self.key
    }

    fn rule(&self) -> &Rule {
        &self.rule
    }

    fn at_once(&self) -> Option<usize> {
        Some(self.at_once)
    }

    fn estimate(&self, passage: &Passage, statement: &str) -> Option<(u64, u64)> {
        let whole = text(passage).ok()?;
        let parts: Vec<String> = if fits(&whole) { vec![whole] } else { windows(&whole).collect() };
        let bytes = |part: &String| {
            let request = self.request(part, statement);
            (request.system.len() + request.prompt.len()) as u64
        };
        Some((parts.len() as u64, parts.iter().map(bytes).sum::<u64>().div_ceil(TOKEN)))
    }

    fn usage(&self) -> Option<String> {
        let usage = self.usage.lock();
        let tokens = usage.tokens.map_or_else(
            || "the server counts no tokens".to_owned(),
            |tokens| format!("{} tokens read, {} written", tokens.prompt, tokens.reply),
        );
        let answers = if usage.answers == 1 { "answer" } else { "answers" };
        let model = self.chat.model();
        let mut cost = (usage.answers > 0).then(|| format!("{model}: {} {answers}, {tokens}", usage.answers));
        if let (Some(cost), Some(sources)) = (&mut cost, usage.sources.words()) {
            *cost += &format!(" · {sources}");
        }
        let missing = match &usage.missing {
            (0, _) => None,
            (1, why) => Some(format!("no verdict once; reason: {why}")),
            (count, why) => Some(format!("no verdict {count} times; last reason: {why}")),
        };
        let unreadable = match usage.unreadable {
            0 => None,
            1 => Some("1 reply was unreadable".to_owned()),
            count => Some(format!("{count} replies were unreadable")),
        };
        let parts: Vec<String> =
            self.chat.damage().into_iter().chain(unreadable).chain(missing).chain(cost).collect();
        (!parts.is_empty()).then(|| parts.join(" · "))
    }

    fn read(&self, passage: &Passage, statement: &str, stop: &Stop) -> Result<Reading, DetectError> {
        let whole = text(passage)?;
        if statement.trim().is_empty() {
            return Err(DetectError::Empty("statement"));
        }
        if fits(&whole) {
            return self.ask(&whole, statement, stop);
        }
        let (mut likeliest, mut most) = (Reading::of(0.0), 0.0);
        for window in windows(&whole) {
            let reading = self.ask(&window, statement, stop)?;
            let p = self.rule.single(&reading);
            if p >= most {
                (likeliest, most) = (reading, p);
            }
            if p >= EVEN {
                break;
            }
        }
        Ok(likeliest)
    }
}

/// Whether a text goes into one prompt.
fn fits(text: &str) -> bool {
    text.len() <= BYTES && text.split_whitespace().count() <= WORDS
}

/// Windows of at most [`WORDS`] words and [`BYTES`] bytes that overlap by half and together cover the text.
fn windows(text: &str) -> impl Iterator<Item = String> {
    // Long words are cut into pieces, of which only the first starts the word.
    let mut pieces: Vec<(bool, &str)> = Vec::new();
    for word in text.split_whitespace() {
        let (mut starts_word, mut left) = (true, word);
        while !left.is_empty() {
            let (piece, after) = left.split_at(left.floor_char_boundary(LONGEST));
            pieces.push((starts_word, piece));
            (starts_word, left) = (false, after);
        }
    }
    let mut start = Some(0);
    std::iter::from_fn(move || {
        let from = start?;
        let (mut window, mut words, mut to) = (String::new(), 0, from);
        while let Some((starts_word, piece)) = pieces.get(to) {
            let space = if *starts_word { " " } else { "" };
            words += usize::from(*starts_word);
            if to > from && (words > WORDS || window.len() + space.len() + piece.len() > BYTES) {
                break;
            }
            window += if to == from { "" } else { space };
            window += piece;
            to += 1;
        }
        start = (to < pieces.len()).then_some(from + ((to - from) / 2).max(1));
        Some(window)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::{Alternative, Job, Prompts, Reply};
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Replies with the result of its function, and counts.
    struct Says(fn(&str) -> Result<String, ChatError>, AtomicUsize);

    impl Chat for Says {
        fn model(&self) -> &str {
            "m"
        }

        fn reply(&self, request: &Request, _: &Stop) -> Result<Reply, ChatError> {
            self.1.fetch_add(1, Ordering::Relaxed);
            let text = self.0(&request.prompt)?;
            let tokens = Some(Tokens { prompt: 100, reply: 1 });
            Ok(Reply { text, model: "m".into(), tokens, ..Reply::default() })
        }
    }

    fn detector(says: fn(&str) -> Result<String, ChatError>) -> (Arc<Says>, PromptedDetector) {
        let chat = Arc::new(Says(says, AtomicUsize::new(0)));
        let prompt = Arc::clone(Prompts::builtin().unwrap().get(Job::Detect));
        (Arc::clone(&chat), PromptedDetector::new(chat, prompt, "m".into()))
    }

    fn judge(detector: &PromptedDetector, text: &str) -> Result<f32, DetectError> {
        let passage = Passage { text: text.into(), ..Passage::default() };
        detector.judge(&passage, "Zoos should be banned.", &Stop::never())
    }

    #[test]
    fn only_a_reply_that_is_an_outcome_is_a_verdict() {
        let prompt = Arc::clone(Prompts::builtin().unwrap().get(Job::Detect));
        for reply in [
            "Yes",
            "yes",
            " YES.\n",
            "**Yes**",
            "Answer: Yes",
            "\u{201c}Yes\u{201d}",
            "{\"answer\": \"Yes\"}",
            "Final answer: yes!",
        ] {
            assert_eq!(prompt.outcome(reply), Some(0), "{reply:?}");
        }
        for reply in ["No", "no.", "<answer>No</answer>", "`No`", "Answer - No"] {
            assert_eq!(prompt.outcome(reply), Some(1), "{reply:?}");
        }
        for reply in [
            "Yes and no",
            "yes, but no",
            "Yes I cannot judge this",
            "No idea",
            "No comment",
            "No answer",
            "No opinion",
            "No information is given",
            concat!("No way to t", "ell"),
            "Yes/No",
            "Yes or No: it depends.",
            "Yes, no, perhaps",
            "No doubt: the passage supports it.",
            "Yes\n\nBut no.",
            "Yes it does.",
            "No - it is silent.",
            "None",
            "Nope",
            "Yesterday",
            "Not sure",
            "The passage says yes",
            "Answer",
            "Answers: yes",
            "Yes yes",
            "",
            "\u{2026}",
        ] {
            assert_eq!(prompt.outcome(reply), None, "{reply:?}");
        }
    }

    #[test]
    fn a_yes_that_ended_early_is_counted_as_unreadable_and_never_as_a_verdict() {
        struct Cut(&'static str);
        impl Chat for Cut {
            fn model(&self) -> &str {
                "m"
            }
            fn reply(&self, _: &Request, _: &Stop) -> Result<Reply, ChatError> {
                Ok(Reply {
                    text: "Yes".into(),
                    model: "m".into(),
                    cut: Some(self.0.into()),
                    ..Reply::default()
                })
            }
        }
        for why in ["length", "content_filter"] {
            let prompt = Arc::clone(Prompts::builtin().unwrap().get(Job::Detect));
            let detector = PromptedDetector::new(Arc::new(Cut(why)), prompt, "m".into());
            let message = judge(&detector, "Cages.").unwrap_err().to_string();
            assert!(message.contains(why) && message.contains("early"), "{message}");
            assert!(detector.usage().unwrap().starts_with("1 reply was unreadable · no verdict once"));
        }
    }

    #[test]
    fn reasoning_is_skipped_and_a_reply_that_is_neither_yes_nor_no_is_reported() {
        let (_, thinks) = detector(|_| Ok("<think>No? Hm.</think>Yes".into()));
        assert_eq!(judge(&thinks, "Cages."), Ok(1.0));
        let (_, unsure) = detector(|_| Ok("Perhaps.".into()));
        let message = judge(&unsure, "Cages.").unwrap_err().to_string();
        assert!(message.contains("m answered neither yes nor no: `Perhaps.`"), "{message}");
        assert_eq!(judge(&unsure, " "), Err(DetectError::Empty("passage")));
    }

    #[test]
    fn the_probability_comes_from_tokens_where_there_are_some_and_else_from_words() {
        struct Sure(Vec<(&'static str, f32)>);
        impl Chat for Sure {
            fn model(&self) -> &str {
                "m"
            }
            fn reply(&self, request: &Request, _: &Stop) -> Result<Reply, ChatError> {
                assert_eq!(request.outcomes, [["yes"], ["no"]]);
                let tokens = if request.prompt.contains("mute") { &[][..] } else { &self.0 };
                let alternative =
                    |(token, p): &(&str, f32)| Alternative { token: (*token).into(), logprob: p.ln() };
                let alternatives = tokens.iter().map(alternative).collect();
                Ok(Reply { text: "Yes".into(), alternatives, ..Reply::default() })
            }
        }
        let prompt = Arc::clone(Prompts::builtin().unwrap().get(Job::Detect));
        let of = |tokens: &[(&'static str, f32)]| {
            PromptedDetector::new(Arc::new(Sure(tokens.to_vec())), Arc::clone(&prompt), "m".into())
        };
        let detector = of(&[("Yes", 0.6), ("No", 0.2), ("Well", 0.1)]);
        assert!((judge(&detector, "Cages.").unwrap() - 0.75).abs() < 1e-6);
        assert!(detector.usage().unwrap().ends_with("· probabilities from tokens"));
        assert_eq!(judge(&detector, "A mute cage."), Ok(1.0));
        assert!(detector.usage().unwrap().ends_with("· probabilities from tokens (1) and from words (1)"));
        // Tokens that say nothing of the reply's own outcome are not its tokens.
        assert_eq!(judge(&of(&[("No", 0.9), ("Well", 0.1)]), "Cages."), Ok(1.0));
        // Of windows that all say no, the likeliest counts.
        let dull = "owl ".repeat(3_000);
        assert!((judge(&of(&[("Yes", 0.1), ("No", 0.3)]), &dull).unwrap() - 0.25).abs() < 1e-6);
    }

    #[test]
    fn ten_thousand_words_are_judged_in_windows_until_one_supports() {
        let (chat, detector) =
            detector(|prompt| Ok(if prompt.contains("cruel") { "Yes" } else { "No" }.into()));
        let dull = "owl ".repeat(10_000);
        assert_eq!(judge(&detector, &dull), Ok(0.0));
        assert_eq!(chat.1.swap(0, Ordering::Relaxed), 9);
        assert_eq!(judge(&detector, &format!("cruel {dull}")), Ok(1.0));
        assert_eq!(chat.1.load(Ordering::Relaxed), 1);
        let message = detector.usage().unwrap();
        assert_eq!(message, "m: 10 answers, 1000 tokens read, 10 written · probabilities from words");
    }

    #[test]
    fn a_text_without_spaces_is_judged_in_windows_too() {
        let dull = "猫".repeat(9_000);
        let cut: Vec<String> = windows(&dull).collect();
        assert!(cut.len() > 3 && cut.iter().all(|window| window.len() <= BYTES && !window.contains(' ')));
        assert!(cut.iter().map(String::len).sum::<usize>() > dull.len());
        let (chat, detector) = detector(|prompt| Ok(if prompt.contains('残') { "Yes" } else { "No" }.into()));
        assert_eq!(judge(&detector, &dull), Ok(0.0));
        assert_eq!(chat.1.load(Ordering::Relaxed), cut.len());
        assert_eq!(judge(&detector, &format!("{dull}残")), Ok(1.0));
    }

    #[test]
    fn what_a_verdict_costs_is_estimated_by_windows_and_bytes() {
        let (chat, detector) = detector(|_| Ok("Yes".into()));
        let of = |text: &str| {
            let passage = Passage { text: text.into(), ..Passage::default() };
            detector.estimate(&passage, "Zoos should be banned.")
        };
        let ((one, few), (more, many)) = (of("Cages.").unwrap(), of(&"owl ".repeat(10_000)).unwrap());
        assert_eq!((one, more, of("")), (1, 9, None));
        assert!(few > 100 && few < 300 && many > 9 * few, "{few} {many}");
        assert_eq!(chat.1.load(Ordering::Relaxed), 0, "nothing is asked");
    }

    #[test]
    fn a_refused_prompt_fails_alone_and_a_server_that_refuses_all_is_not_asked_again() {
        let (chat, first) = detector(|prompt| match prompt.contains("long") {
            true => Err(ChatError::Refused("too long".into())),
            false => Ok("Yes".into()),
        });
        assert_eq!(judge(&first, "So long."), Err(DetectError::Unanswered("too long".into())));
        assert_eq!(judge(&first, "Cages."), Ok(1.0));
        assert_eq!(chat.1.load(Ordering::Relaxed), 2);
        let (chat, barred) = detector(|_| Err(ChatError::Barred("a key is wanted".into())));
        for _ in 0..3 {
            let message = judge(&barred, "Cages.").unwrap_err().to_string();
            assert!(message.ends_with("a key is wanted"), "{message}");
        }
        assert_eq!(chat.1.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_failed_server_is_asked_again_only_after_a_while() {
        let (chat, mut detector) = detector(|_| Err(ChatError::Unreachable("it is down".into())));
        assert_eq!(judge(&detector, "Cages."), Err(DetectError::Unanswered("it is down".into())));
        for _ in 0..4 {
            let message = judge(&detector, "Cages.").unwrap_err().to_string();
            assert_eq!(message, "not asked, because the server failed a moment ago: it is down");
        }
        assert_eq!(chat.1.load(Ordering::Relaxed), 1);
        detector.cool_down = Duration::ZERO;
        assert!(judge(&detector, "Cages.").is_err());
        assert_eq!(chat.1.load(Ordering::Relaxed), 2);
        assert_eq!(detector.usage().as_deref(), Some("no verdict 6 times; last reason: it is down"));
    }

    #[test]
    fn another_model_prompt_server_or_recording_gives_another_key() {
        let prompt = Arc::clone(Prompts::builtin().unwrap().get(Job::Detect));
        let key_of = |model, server, replies| PromptedDetector::key_of(model, &prompt, server, replies);
        let key = key_of("org/Model-7b", "", b"");
        assert!(key.starts_with(&format!("org-model-7b-v2-{}-", &prompt.id.hash[..12])), "{key}");
        assert_ne!(key, key_of("org/model-7b", "", b""));
        assert_ne!(key, key_of("org/Model-7b", "http://localhost:1/v1", b""));
        assert_ne!(key, key_of("org/Model-7b", "", b"replies"));
        let shot = Arc::clone(Prompts::with(&["detect-one-shot".into()]).unwrap().get(Job::Detect));
        assert_ne!(key, PromptedDetector::key_of("org/Model-7b", &shot, "", b""));
    }
}
