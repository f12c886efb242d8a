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
    notes
        .push("there is neither a perspective nor a statement to add; the question is searched alone".into());
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
        assert_eq!((expansion.form, each(&expansion)), (Form::PerspectivesGiven, vec!["Q? One.", "Q? Two."]));
        assert_eq!(expansion.added[1].name, None);
        assert!(chat.requests().is_empty());
    }

    #[test]
    fn statements_take_the_place_of_a_model_that_is_missing_down_or_of_no_use_and_the_note_says_why() {
        for (chat, note) in [
            (None, None),
            (Some(Scripted::down()), Some("fake: nobody is there; the question's own statements are used")),
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
