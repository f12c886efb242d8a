//! Query expansion: from a question to the texts or terms that are searched in its place.
//!
//! An expansion never fails because a chat fails: the form without a model is used instead, and the notes say
//! so. The caller supplies the first-pass list.
//!
//! May use: corpus, llm, question, retrieve (term analysis), work.

mod csqe;
mod feedback;
mod replies;
mod talk;
mod types;

pub use statements::checked_statements;
pub use talk::{Cost, Talk, cut as first_words, plain as one_line};
pub use types::{
    Added, AddedFrom, Expand, ExpandOption, Expansion, ExpansionInputs, FirstPassHit, Form, Kind, KindError,
    Queries, Similarity,
};

use crate::work::Stopped;

/// Expands a question.
///
/// # Errors
/// `stop` was set, or a function in `inputs` failed. A chat's failure is only a note.
pub fn expand<E: From<Stopped>>(own: &Expand, inputs: &ExpansionInputs<'_, E>) -> Result<Expansion, E> {
    match own.kind {
        Kind::Perspectives => perspectives::expand(own, inputs),
        Kind::Keqe => feedback::expand_keqe(own, inputs),
        Kind::Csqe => csqe::expand(own, inputs),
        Kind::Rm3 => feedback::expand(own, inputs),
        Kind::Grf => feedback::expand_grf(own, inputs),
        Kind::Q2d => feedback::expand_keqe(own, inputs),
        Kind::Q2dPrf => csqe::expand_q2d_prf(own, inputs),
    }
}

#[cfg(test)]
mod testing {
    use std::collections::VecDeque;
    use std::sync::{Arc, Mutex};

    use super::types::{ExpansionInputs, FirstPassHit};
    use crate::corpus::{Passage, PassageIx};
    use crate::llm::{Chat, ChatError, Prompts, Reply, Request, Tokens};
    use crate::work::{Stop, Stopped};

    /// Replies with its lines in order; after the last it is unreachable.
    pub(super) struct Scripted {
        lines: Mutex<VecDeque<Result<String, ChatError>>>,
        requests: Mutex<Vec<Request>>,
    }

    impl Scripted {
        pub(super) fn new(lines: Vec<Result<String, ChatError>>) -> Self {
            Scripted { lines: Mutex::new(lines.into()), requests: Mutex::default() }
        }

        pub(super) fn saying(lines: &[&str]) -> Self {
            Self::new(lines.iter().map(|line| Ok((*line).to_owned())).collect())
        }

        pub(super) fn down() -> Self {
            Self::new(Vec::new())
        }

        pub(super) fn requests(&self) -> Vec<Request> {
            self.requests.lock().unwrap().clone()
        }
    }

    impl Chat for Scripted {
        fn model(&self) -> &str {
            "fake"
        }

        fn reply(&self, request: &Request, stop: &Stop) -> Result<Reply, ChatError> {
            if stop.is_set() {
                return Err(Stopped.into());
            }
            self.requests.lock().unwrap().push(request.clone());
            let line = self.lines.lock().unwrap().pop_front();
            let text = line.unwrap_or_else(|| Err(ChatError::Unreachable("nobody is there".into())))?;
            let tokens = Some(Tokens { prompt: 10, reply: 3 });
            Ok(Reply { text, model: "fake".into(), tokens, ..Reply::default() })
        }
    }

    /// The error of the caller's own functions.
    #[derive(Debug, PartialEq, Eq)]
    pub(super) enum Failed {
        Stopped,
        Index,
    }

    impl From<Stopped> for Failed {
        fn from(_: Stopped) -> Self {
            Failed::Stopped
        }
    }

    /// Passages with scores from 10 downwards, at places from 100.
    pub(super) fn hits(texts: &[&str]) -> Vec<FirstPassHit> {
        texts
            .iter()
            .zip(0..)
            .map(|(text, i)| {
                let passage = Passage { text: (*text).to_owned(), ..Passage::default() };
                FirstPassHit { at: PassageIx(100 + i), passage: Arc::new(passage), score: 10.0 - i as f32 }
            })
            .collect()
    }

    /// Calls `then` with inputs for `question` over `texts`: longer texts are more similar, and every stem is in one passage of a thousand.
    pub(super) fn with_inputs<R>(
        question: &str,
        statements: &[&str],
        texts: &[&str],
        chat: Option<&dyn Chat>,
        then: impl FnOnce(ExpansionInputs<'_, Failed>) -> R,
    ) -> R {
        let statements: Vec<String> = statements.iter().map(|text| (*text).to_owned()).collect();
        let all = hits(texts);
        then(ExpansionInputs {
            question,
            statements: &statements,
            given: &[],
            chat,
            prompts: &Prompts::builtin().unwrap(),
            first: &|depth| Ok(all.iter().take(depth).cloned().collect()),
            similarity: &|texts| Ok(texts.iter().map(|text| text.len() as f32 / 1000.0).collect()),
            tokens: &|text, count| Ok(text.char_indices().nth(count).map_or(text.len(), |(i, _)| i)),
            document_frequency: &|_| Ok(1),
            passages: 1000,
            stop: &Stop::never(),
        })
    }
}

mod statements {
    //! Two opposite statements by a language model, for questions that no rule turns into statements.

    use super::talk::{Json, cut, key, plain, values};
    use crate::llm::{Chat, ChatError, Job, Prompts};
    use crate::question::{By, Statements};
    use crate::work::Stop;

    /// The limit of a statement in bytes.
    const LONGEST: usize = 300;
    /// How many words of the evidence are read.
    const READ: usize = 300;

    /// Asks a model for two opposite statements, the supporting one first. Returns none ([`By::None`]) if the model does not write two
    /// different ones.
    ///
    /// # Errors
    /// The model did not answer.
    pub(super) fn written_statements(
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

    /// The same, with the check which of the two statements supports: the model, asked anew, says for which of them the evidence speaks. That
    /// one comes first; if it is neither or both, none is the supporting one. Without evidence, it is the answer *yes*, or the option
    /// that the question names first.
    ///
    /// # Errors
    /// The model did not answer.
    pub fn checked_statements(
        chat: &dyn Chat,
        prompts: &Prompts,
        (question, evidence): (&str, Option<&str>),
        stop: &Stop,
    ) -> Result<Statements, ChatError> {
        let mut made = written_statements(chat, prompts, question, stop)?;
        let [first, second] = &mut made.perspectives[..] else { return Ok(made) };
        let yes = format!("The question: {question} The answer: yes, or what the question names first.");
        let passage = format!("[1] {}", cut(&plain(evidence.unwrap_or(&yes)), READ));
        let prompt = prompts.get(Job::ReadSides);
        let values = [("first", first.as_str()), ("second", second.as_str()), ("passages", &passage)];
        match prompt.verdict(&chat.reply(&prompt.request(&values, 0), stop)?) {
            Some(0) => {}
            Some(1) => std::mem::swap(first, second),
            _ => made.supports = None,
        }
        Ok(made)
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
        fn a_second_reply_says_which_statement_supports() {
            let checked = |verdict: &str| {
                let chat = Scripted::saying(&[r#"["Tea is better.", "Coffee is better."]"#, verdict]);
                let prompts = Prompts::builtin().unwrap();
                let asked = ("Tea or coffee?", Some("Coffee   wakes.\nTea does not."));
                let made = checked_statements(&chat, &prompts, asked, &Stop::never()).unwrap();
                assert!(chat.requests()[1].prompt.contains("[1] Coffee wakes. Tea does not.\n"));
                (made.perspectives[0].clone(), made.supports)
            };
            assert_eq!(checked("A"), ("Tea is better.".into(), Some(0)));
            assert_eq!(checked("B."), ("Coffee is better.".into(), Some(0)));
            assert_eq!(checked("neither"), ("Tea is better.".into(), None));
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
}

mod perspectives {
    //! One query per perspective: from the question set, from a model, or the question's statements.

    use std::collections::HashSet;

    use super::talk::{Cost, Talk};
    use super::types::{Added, AddedFrom, Expand, Expansion, ExpansionInputs, Form, Kind, Queries};
    use super::{replies, talk};
    use crate::llm::Job;
    use crate::question::Written;
    use crate::work::Stopped;

    /// Each perspective costs a search, and some models write dozens, so the option `most` limits them.
    pub(super) fn expand<E: From<Stopped>>(
        own: &Expand,
        inputs: &ExpansionInputs<'_, E>,
    ) -> Result<Expansion, E> {
        let most = own.count("most");
        let expansion = |form, added: Vec<Added>, notes, cost| {
            let queries = added.iter().map(|added| format!("{} {}", inputs.question, added.text)).collect();
            Expansion { kind: Kind::Perspectives, form, queries: Queries::Each(queries), added, notes, cost }
        };
        let given = distinct(inputs.given.to_vec(), &AddedFrom::Given);
        if !given.is_empty() {
            return Ok(expansion(Form::PerspectivesGiven, given, Vec::new(), Cost::default()));
        }
        let (mut notes, mut cost) = (Vec::new(), Cost::default());
        if let Some(chat) = inputs.chat {
            let mut talk = Talk::new(chat, inputs.stop);
            let request = inputs.prompts.get(Job::Perspectives).request(&[("question", inputs.question)], 0);
            if let Some(reply) = talk.ask(&request)? {
                let source =
                    AddedFrom::Model { model: reply.model, recorded: reply.recorded, sample: request.sample };
                let mut written = distinct(replies::perspectives(&reply.text), &source);
                if !written.is_empty() {
                    if written.len() > most {
                        notes.push(format!(
                            "{} perspectives were written; the first {most} are used",
                            written.len()
                        ));
                        written.truncate(most);
                    }
                    return Ok(expansion(Form::PerspectivesByModel, written, notes, talk.cost));
                }
                talk.trouble("a reply without perspectives".into());
            }
            cost = talk.cost;
            notes.extend(talk.note("the question's own statements are used"));
        }
        let statements = inputs.statements();
        if !statements.is_empty() {
            return Ok(expansion(Form::Statements, statements, notes, cost));
        }
        notes.push(
            "there is neither a perspective nor a statement to add; the question is searched alone".into(),
        );
        let queries = Queries::Each(vec![inputs.question.to_owned()]);
        let form = Form::QuestionAlone;
        Ok(Expansion { kind: Kind::Perspectives, form, queries, added: Vec::new(), notes, cost })
    }

    fn distinct(perspectives: Vec<Written>, source: &AddedFrom) -> Vec<Added> {
        let mut seen = HashSet::new();
        let added = perspectives.into_iter().map(|Written { name, text }| Added {
            name: name.map(|name| talk::plain(&name)).filter(|name| !name.is_empty()),
            ..Added::new(talk::plain(&text), source.clone())
        });
        added.filter(|added| talk::is_new(&mut seen, &added.text)).collect()
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use crate::expand::testing::{Failed, Scripted, with_inputs};
        use crate::llm::{Chat, ChatError, Tokens};
        use crate::work::Stop;
        use std::sync::Arc;
        use std::sync::atomic::AtomicU64;

        fn run(statements: &[&str], chat: Option<&dyn Chat>) -> Expansion {
            with_inputs("Q?", statements, &[], chat, |inputs| expand(&Kind::Perspectives.into(), &inputs))
                .unwrap()
        }

        fn each(expansion: &Expansion) -> Vec<&str> {
            match &expansion.queries {
                Queries::Each(queries) => queries.iter().map(String::as_str).collect(),
                other => panic!("{other:?}"),
            }
        }

        #[test]
        fn a_models_perspectives_are_each_asked_with_the_question_and_without_their_names() {
            let chat = Scripted::saying(&[
                r#"[{"name":"Welfare","text":"Animals  suffer."},{"name":"Again","text":"animals suffer"},{"name":"Science","text":"Much is learnt."}]"#,
            ]);
            let expansion = run(&["Yes."], Some(&chat));
            assert_eq!(expansion.form, Form::PerspectivesByModel);
            assert_eq!(each(&expansion), ["Q? Animals suffer.", "Q? Much is learnt."]);
            assert_eq!(expansion.added[1].name.as_deref(), Some("Science"));
            assert_eq!(
                expansion.added[0].source,
                AddedFrom::Model { model: "fake".into(), recorded: false, sample: 0 }
            );
            assert_eq!(
                (expansion.notes.len(), expansion.cost.tokens),
                (0, Some(Tokens { prompt: 10, reply: 3 }))
            );
        }

        #[test]
        fn perspectives_that_came_with_the_question_are_used_before_a_model_is_asked() {
            let chat = Scripted::down();
            let given = [("A", "One."), ("B", " ONE"), ("", "Two.")]
                .map(|(name, text)| Written { name: Some(name.into()), text: text.into() });
            let expansion = with_inputs("Q?", &["Yes."], &[], Some(&chat), |inputs| {
                expand(&Kind::Perspectives.into(), &ExpansionInputs { given: &given, ..inputs })
            })
            .unwrap();
            assert_eq!(
                (expansion.form, each(&expansion)),
                (Form::PerspectivesGiven, vec!["Q? One.", "Q? Two."])
            );
            assert_eq!(expansion.added[1].name, None);
            assert!(chat.requests().is_empty());
        }

        #[test]
        fn statements_take_the_place_of_a_model_that_is_missing_down_or_of_no_use_and_the_note_says_why() {
            for (chat, note) in [
                (None, None),
                (
                    Some(Scripted::down()),
                    Some("fake: nobody is there; the question's own statements are used"),
                ),
                (
                    Some(Scripted::saying(&["I cannot help with that."])),
                    Some("fake: a reply without perspectives; the question's own statements are used"),
                ),
                (
                    Some(Scripted::new(vec![Err(ChatError::Refused("no such model".into()))])),
                    Some("fake: no such model; the question's own statements are used"),
                ),
            ] {
                let expansion = run(&["Yes.", " ", "No."], chat.as_ref().map(|chat| chat as &dyn Chat));
                assert_eq!((expansion.form, each(&expansion)), (Form::Statements, vec!["Q? Yes.", "Q? No."]));
                assert_eq!(expansion.added[1].source, AddedFrom::Statement(2));
                assert_eq!(expansion.notes.first().map(String::as_str), note);
            }
        }

        #[test]
        fn with_nothing_to_add_the_question_is_searched_alone() {
            let expansion = run(&[], None);
            assert_eq!((expansion.form, each(&expansion)), (Form::QuestionAlone, vec!["Q?"]));
            assert_eq!(expansion.notes.len(), 1);
        }

        #[test]
        fn a_model_that_does_not_stop_counting_is_cut_off() {
            let lines: Vec<String> = (0..40).map(|i| format!("{}. view number {i}", i + 1)).collect();
            let expansion = run(&[], Some(&Scripted::saying(&[&lines.join("\n")])));
            assert_eq!(each(&expansion).len(), 12);
            assert_eq!(expansion.notes, ["40 perspectives were written; the first 12 are used"]);
        }

        #[test]
        fn a_stop_is_passed_on_and_is_no_fallback() {
            let stop = Stop::when_past(&Arc::new(AtomicU64::new(1)), 0);
            let chat = Scripted::saying(&["[]"]);
            let failed = with_inputs("Q?", &["Yes."], &[], Some(&chat), |inputs| {
                expand(&Kind::Perspectives.into(), &ExpansionInputs { stop: &stop, ..inputs })
            });
            assert_eq!(failed, Err(Failed::Stopped));
            let chat = Scripted::new(vec![Err(Stopped.into())]);
            let failed = with_inputs("Q?", &["Yes."], &[], Some(&chat), |inputs| {
                expand(&Kind::Perspectives.into(), &inputs)
            });
            assert_eq!(failed, Err(Failed::Stopped));
        }
    }
}
