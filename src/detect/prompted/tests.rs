use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::llm::Reply;

/// Answers with what its function makes of a prompt, and counts.
struct Says(fn(&str) -> Result<String, ChatError>, AtomicUsize);

impl Chat for Says {
    fn model(&self) -> &str {
        "m"
    }

    fn reply(&self, request: &Request, _: &Stop) -> Result<Reply, ChatError> {
        self.1.fetch_add(1, Ordering::Relaxed);
        let text = self.0(&request.prompt)?;
        let tokens = Some(Tokens { prompt: 100, reply: 1 });
        Ok(Reply { text, model: "m".into(), recorded: false, tokens })
    }
}

fn detector(says: fn(&str) -> Result<String, ChatError>) -> (Arc<Says>, PromptedDetector) {
    let chat = Arc::new(Says(says, AtomicUsize::new(0)));
    (Arc::clone(&chat), PromptedDetector::new(chat, PromptedDetector::key_of("m", "", b"")))
}

fn judge(detector: &PromptedDetector, text: &str) -> Result<f32, DetectError> {
    let passage = Passage { text: text.into(), ..Passage::default() };
    detector.judge(&passage, "Zoos should be banned.", &Stop::never())
}

#[test]
fn the_first_word_is_the_verdict_and_anything_else_is_none() {
    for (reply, expected) in [
        ("Yes", Some(true)),
        ("**No**, it does not.", Some(false)),
        (" yes.\n", Some(true)),
        ("Answer: No", Some(false)),
        ("Yes\n\nIt names the cages.", Some(true)),
        ("No - it is silent.", Some(false)),
        ("Yes/No", None),
        ("Yes or No: it depends.", None),
        ("Yes, no, perhaps", None),
        ("No doubt: the passage supports it.", None),
        ("No. No part of it supports the statement.", Some(false)),
        ("No\n\nYes would need a reason.", Some(false)),
        ("Yes it does.", Some(true)),
        ("{\"answer\": \"Yes\"}", Some(true)),
        ("<answer>No</answer>", Some(false)),
        ("None", None),
        ("Yesterday", None),
        ("Not sure", None),
        ("The passage says yes", None),
        ("", None),
        ("…", None),
    ] {
        assert_eq!(said(reply), expected, "{reply:?}");
    }
}

#[test]
fn thoughts_are_passed_over_and_what_is_neither_yes_nor_no_is_told() {
    let (_, thinks) = detector(|_| Ok("<think>No? Hm.</think>Yes".into()));
    assert_eq!(judge(&thinks, "Cages."), Ok(1.0));
    let (_, unsure) = detector(|_| Ok("Perhaps.".into()));
    let told = judge(&unsure, "Cages.").unwrap_err().to_string();
    assert!(told.contains("m answered neither yes nor no: `Perhaps.`"), "{told}");
    assert_eq!(judge(&unsure, " "), Err(DetectError::Empty("passage")));
}

#[test]
fn ten_thousand_words_are_asked_about_in_windows_until_one_supports() {
    let (chat, detector) = detector(|prompt| Ok(if prompt.contains("cruel") { "Yes" } else { "No" }.into()));
    let dull = "owl ".repeat(10_000);
    assert_eq!(judge(&detector, &dull), Ok(0.0));
    assert_eq!(chat.1.swap(0, Ordering::Relaxed), 9);
    assert_eq!(judge(&detector, &format!("cruel {dull}")), Ok(1.0));
    assert_eq!(chat.1.load(Ordering::Relaxed), 1);
    let told = detector.told().unwrap();
    assert_eq!(told, "m: 10 answers, 1000 tokens read, 10 written");
}

#[test]
fn a_text_without_blanks_is_asked_about_in_windows_as_well() {
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
fn a_prompt_that_is_refused_fails_alone_and_a_server_that_refuses_everybody_is_left_alone() {
    let (chat, first) = detector(|prompt| match prompt.contains("long") {
        true => Err(ChatError::Refused("too long".into())),
        false => Ok("Yes".into()),
    });
    assert_eq!(judge(&first, "So long."), Err(DetectError::Unanswered("too long".into())));
    assert_eq!(judge(&first, "Cages."), Ok(1.0));
    assert_eq!(chat.1.load(Ordering::Relaxed), 2);
    let (chat, barred) = detector(|_| Err(ChatError::Barred("a key is wanted".into())));
    for _ in 0..3 {
        let told = judge(&barred, "Cages.").unwrap_err().to_string();
        assert!(told.ends_with("a key is wanted"), "{told}");
    }
    assert_eq!(chat.1.load(Ordering::Relaxed), 1);
}

#[test]
fn a_server_that_failed_is_left_alone_for_a_while_and_then_asked_again() {
    let (chat, mut detector) = detector(|_| Err(ChatError::Unreachable("it is down".into())));
    assert_eq!(judge(&detector, "Cages."), Err(DetectError::Unanswered("it is down".into())));
    for _ in 0..4 {
        let told = judge(&detector, "Cages.").unwrap_err().to_string();
        assert_eq!(told, "not asked, as the server failed a moment before: it is down");
    }
    assert_eq!(chat.1.load(Ordering::Relaxed), 1);
    detector.rest = Duration::ZERO;
    assert!(judge(&detector, "Cages.").is_err());
    assert_eq!(chat.1.load(Ordering::Relaxed), 2);
    assert_eq!(detector.told().as_deref(), Some("6 times no verdict, the last: it is down"));
}

#[test]
fn another_model_server_or_other_replies_make_another_key() {
    let key = PromptedDetector::key_of("org/Model-7b", "", b"");
    assert!(key.starts_with("org-model-7b-"), "{key}");
    assert_ne!(key, PromptedDetector::key_of("org/model-7b", "", b""));
    assert_ne!(key, PromptedDetector::key_of("org/Model-7b", "http://localhost:1/v1", b""));
    assert_ne!(key, PromptedDetector::key_of("org/Model-7b", "", b"replies"));
}
