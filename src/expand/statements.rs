//! Two opposite statements by a language model, for questions that no rule turns into statements.

use super::talk::{Json, key, plain, values};
use crate::llm::{Chat, ChatError, Job, Prompts};
use crate::question::{By, Statements};
use crate::work::Stop;

/// The limit of a statement in bytes.
const LONGEST: usize = 300;

/// Asks a model for two opposite statements, the supporting one first. Returns none ([`By::None`]) if the model does not write two
/// different ones.
///
/// # Errors
/// The model did not answer.
pub fn written_statements(
    chat: &dyn Chat,
    prompts: &Prompts,
    question: &str,
    stop: &Stop,
) -> Result<Statements, ChatError> {
    let request = prompts.get(Job::Statements).request(&[("question", question)], 0);
    let reply = chat.reply(&request, stop)?;
    let pair = pair(reply.answer());
    Ok(Statements {
        question: question.to_owned(),
        supports: pair.as_ref().map(|_| 0),
        by: if pair.is_some() { By::Llm } else { By::None },
        perspectives: pair.map(Vec::from).unwrap_or_default(),
    })
}

/// The first list of two sentences in a reply.
fn pair(reply: &str) -> Option<[String; 2]> {
    values(reply).into_iter().find_map(|value| {
        let Json::List(items) = value else { return None };
        let [Json::Text(first), Json::Text(second)] = &items[..] else { return None };
        let pair = [first, second].map(|text| plain(text));
        let whole = pair.iter().all(|text| text.contains(' ') && text.len() <= LONGEST);
        (whole && key(&pair[0]) != key(&pair[1])).then_some(pair)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expand::testing::Scripted;

    fn written(reply: &str) -> Statements {
        let chat = Scripted::saying(&[reply]);
        let prompts = Prompts::builtin().unwrap();
        let made = written_statements(&chat, &prompts, "Tea or coffee?", &Stop::never()).unwrap();
        assert!(chat.requests()[0].prompt.starts_with("Question: Tea or coffee?\n"));
        made
    }

    #[test]
    fn a_list_of_two_sentences_is_taken_however_it_is_wrapped_and_the_first_supports() {
        for reply in [
            r#"["Tea is better.", "Coffee is better."]"#,
            "Here they are:\n```json\n[\"Tea is\nbetter.\", \"Coffee is better.\"]\n```",
            r#"<think>["a b", "c d"]?</think>{"statements": ["Tea is better.", "Coffee is better."]} ["Tea is better.", "Coffee is better."]"#,
        ] {
            let made = written(reply);
            assert_eq!(made.perspectives, ["Tea is better.", "Coffee is better."], "{reply}");
            assert_eq!((made.supports, made.by), (Some(0), By::Llm));
        }
    }

    #[test]
    fn a_reply_without_two_different_sentences_makes_none() {
        for reply in [
            "[]",
            "",
            "I cannot.",
            r#"["Tea is better."]"#,
            r#"["Tea is better.", "tea is better"]"#,
            r#"["Yes", "No"]"#,
        ] {
            let made = written(reply);
            assert!(
                made.perspectives.is_empty() && made.by == By::None && made.supports.is_none(),
                "{reply}"
            );
        }
    }
}
