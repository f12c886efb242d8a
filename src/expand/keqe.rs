//! Hypothetical answers beside the question.

use super::talk::Talk;
use super::{Added, Ask, Expansion, Form, Kind, Queries, Source, prompts, text};
use crate::work::Stopped;

const ANSWERS: u32 = 5;

pub(super) fn expand<E: From<Stopped>>(ask: &Ask<'_, E>) -> Result<Expansion, E> {
    let made = |form, added: Vec<Added>, notes, tokens| {
        let texts: Vec<&str> = added.iter().map(|added| added.text.as_str()).collect();
        let queries = Queries::joined(ask.question, texts.len().max(1), &texts);
        Expansion { kind: Kind::Keqe, form, queries, added, notes, tokens }
    };
    let (mut notes, mut tokens) = (Vec::new(), None);
    if let Some(chat) = ask.chat {
        let mut talk = Talk::new(chat, ask.stop);
        let written = answers(ask.question, ANSWERS, &mut talk)?;
        tokens = talk.tokens;
        if !written.is_empty() {
            notes.extend(talk.note(&format!("{} of {ANSWERS} answers came", written.len())));
            return Ok(made(Form::KeqeByModel, written, notes, tokens));
        }
        notes.extend(talk.note("the question's own statements are used as its answers"));
    }
    let statements = ask.statements();
    let mut form = Form::KeqeStatements;
    if statements.is_empty() {
        notes
            .push("there is neither an answer nor a statement to add; the question is searched alone".into());
        form = Form::QuestionAlone;
    }
    Ok(made(form, statements, notes, tokens))
}

/// As many of `count` answers as come.
pub(super) fn answers(question: &str, count: u32, talk: &mut Talk<'_>) -> Result<Vec<Added>, Stopped> {
    let mut written = Vec::new();
    for sample in 0..count {
        if let Some(reply) = talk.ask(&prompts::answer(question, sample))? {
            let source = Source::Model { model: reply.model, recorded: reply.recorded, sample };
            written.push(Added::new(text::plain(&reply.text), source));
        }
    }
    Ok(written)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expand::testing::{Failed, Scripted, with_ask};
    use crate::llm::{Chat, ChatError, Tokens};

    fn run(statements: &[&str], chat: Option<&dyn Chat>) -> Expansion {
        with_ask("Q?", statements, &[], chat, |ask| expand(&ask)).unwrap()
    }

    fn joined(terms: &str, vectors: &[&str]) -> Queries {
        Queries::Joined {
            terms: terms.into(),
            vectors: vectors.iter().map(|text| (*text).to_owned()).collect(),
        }
    }

    #[test]
    fn five_answers_make_five_copies_of_the_question_and_six_vectors() {
        let chat = Scripted::saying(&["a1", "a\n2", "a3", "a4", "a5"]);
        let expansion = run(&["Yes."], Some(&chat));
        assert_eq!(expansion.form, Form::KeqeByModel);
        assert_eq!(
            expansion.queries,
            joined("Q?\nQ?\nQ?\nQ?\nQ?\na1\na 2\na3\na4\na5", &["Q?", "a1", "a 2", "a3", "a4", "a5"])
        );
        let asked: Vec<(u32, f32)> = chat.asked().iter().map(|r| (r.sample, r.temperature)).collect();
        assert_eq!(asked, [(0, 1.0), (1, 1.0), (2, 1.0), (3, 1.0), (4, 1.0)]);
        assert_eq!((expansion.notes.len(), expansion.tokens), (0, Some(Tokens { prompt: 50, reply: 15 })));
    }

    #[test]
    fn fewer_answers_make_as_many_copies_and_a_note() {
        let chat = Scripted::new(vec![
            Ok("a1".into()),
            Ok("  ".into()),
            Err(ChatError::Refused("too long".into())),
            Ok("a4".into()),
        ]);
        let expansion = run(&["Yes."], Some(&chat));
        assert_eq!(expansion.queries, joined("Q?\nQ?\na1\na4", &["Q?", "a1", "a4"]));
        let samples: Vec<&Source> = expansion.added.iter().map(|added| &added.source).collect();
        assert!(matches!(samples[1], Source::Model { sample: 3, .. }));
        assert_eq!(expansion.notes, ["fake: an empty reply; too long; nobody is there; 2 of 5 answers came"]);
    }

    #[test]
    fn without_a_model_the_statements_are_the_answers() {
        for chat in [None, Some(Scripted::down())] {
            let expansion = run(&["Yes.", "No."], chat.as_ref().map(|chat| chat as &dyn Chat));
            assert_eq!(expansion.form, Form::KeqeStatements);
            assert_eq!(expansion.queries, joined("Q?\nQ?\nYes.\nNo.", &["Q?", "Yes.", "No."]));
            assert_eq!(expansion.notes.len(), usize::from(chat.is_some()));
        }
    }

    #[test]
    fn with_nothing_to_add_the_question_is_searched_alone() {
        let expansion = run(&[], None);
        assert_eq!((expansion.form, expansion.queries), (Form::QuestionAlone, joined("Q?", &["Q?"])));
        assert_eq!(expansion.notes.len(), 1);
    }

    #[test]
    fn a_stop_between_answers_is_passed_on() {
        let chat = Scripted::new(vec![Ok("a1".into()), Err(Stopped.into())]);
        let failed = with_ask("Q?", &["Yes."], &[], Some(&chat), |ask| expand(&ask));
        assert_eq!(failed, Err(Failed::Stopped));
    }
}
