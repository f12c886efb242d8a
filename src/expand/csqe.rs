//! Hypothetical answers added to the question (KEQE), and sentences copied from the first passages added to both (CSQE).
//!
//! A passage is read up to its 128th whitespace-separated word: a model's own token count would make the prompt depend on the model.

use std::collections::HashSet;

use unicode_segmentation::UnicodeSegmentation;

use super::talk::Talk;
use super::types::{Added, AddedFrom, Expansion, ExpansionInputs, FirstPassHit, Form, Kind, Queries};
use super::{replies, talk};
use crate::corpus::PassageIx;
use crate::llm::Job;
use crate::work::Stopped;

const KEQE_ANSWERS: u32 = 5;

pub(super) fn expand_keqe<E: From<Stopped>>(inputs: &ExpansionInputs<'_, E>) -> Result<Expansion, E> {
    let expansion = |form, added: Vec<Added>, notes, tokens| {
        let texts: Vec<&str> = added.iter().map(|added| added.text.as_str()).collect();
        let queries = Queries::join(inputs.question, texts.len().max(1), &texts);
        Expansion { kind: Kind::Keqe, form, queries, added, notes, tokens }
    };
    let (mut notes, mut tokens) = (Vec::new(), None);
    if let Some(chat) = inputs.chat {
        let mut talk = Talk::new(chat, inputs.stop);
        let written = answers(inputs, KEQE_ANSWERS, &mut talk)?;
        tokens = talk.tokens;
        if !written.is_empty() {
            notes.extend(talk.note(&format!("{} of {KEQE_ANSWERS} answers came", written.len())));
            return Ok(expansion(Form::KeqeByModel, written, notes, tokens));
        }
        notes.extend(talk.note("the question's own statements are used as its answers"));
    }
    let statements = inputs.statements();
    let mut form = Form::KeqeStatements;
    if statements.is_empty() {
        notes
            .push("there is neither an answer nor a statement to add; the question is searched alone".into());
        form = Form::QuestionAlone;
    }
    Ok(expansion(form, statements, notes, tokens))
}

/// Asks for `count` answers and returns those that arrive.
pub(super) fn answers<E>(
    inputs: &ExpansionInputs<'_, E>,
    count: u32,
    talk: &mut Talk<'_>,
) -> Result<Vec<Added>, Stopped> {
    let (prompt, mut written) = (inputs.prompts.get(Job::Keqe), Vec::new());
    for sample in 0..count {
        if let Some(reply) = talk.ask(&prompt.request(&[("question", inputs.question)], sample))? {
            let source = AddedFrom::Model { model: reply.model, recorded: reply.recorded, sample };
            written.push(Added::new(talk::plain(&reply.text), source));
        }
    }
    Ok(written)
}

const FIRST: usize = 10;
const WORDS: usize = 128;
const COPIES: u32 = 2;
const ANSWERS: u32 = 2;
const SENTENCES: usize = 5;

pub(super) fn expand<E: From<Stopped>>(inputs: &ExpansionInputs<'_, E>) -> Result<Expansion, E> {
    let first = (inputs.first)(FIRST)?;
    let expansion = |form, copies, added: Vec<Added>, notes, tokens| {
        let texts: Vec<&str> = added.iter().map(|added| added.text.as_str()).collect();
        let queries = Queries::join(inputs.question, copies, &texts);
        Expansion { kind: Kind::Csqe, form, queries, added, notes, tokens }
    };
    let (mut notes, mut tokens) = (Vec::new(), None);
    if let Some(chat) = inputs.chat {
        let mut talk = Talk::new(chat, inputs.stop);
        let mut written = copy_by_model(inputs, &first, &mut talk)?;
        written.extend(answers(inputs, ANSWERS, &mut talk)?);
        tokens = talk.tokens;
        if !written.is_empty() {
            notes.extend(talk.note(&format!("{} of {} replies are used", written.len(), COPIES + ANSWERS)));
            return Ok(expansion(Form::CsqeByModel, written.len(), written, notes, tokens));
        }
        notes.extend(talk.note("the first passages' own sentences are used"));
    }
    let taken = extract(inputs, &first)?;
    let mut form = Form::CsqeExtractive;
    if taken.is_empty() {
        notes.push("the question's own list has no sentence to add; the question is searched alone".into());
        form = Form::QuestionAlone;
    }
    Ok(expansion(form, 1, taken, notes, tokens))
}

/// Asks the model to copy sentences from the passages; one text per reply that has any.
fn copy_by_model<E>(
    inputs: &ExpansionInputs<'_, E>,
    first: &[FirstPassHit],
    talk: &mut Talk<'_>,
) -> Result<Vec<Added>, Stopped> {
    if first.is_empty() {
        talk.trouble("no passage to copy from".into());
        return Ok(Vec::new());
    }
    let contents: Vec<String> = first.iter().map(|hit| talk::plain(&hit.passage.contents())).collect();
    let shown: Vec<&str> = contents.iter().map(|contents| talk::cut(contents, WORDS)).collect();
    let folded: Vec<(PassageIx, String)> =
        first.iter().zip(&shown).map(|(hit, shown)| (hit.at, talk::fold(shown))).collect();
    let holder = |sentence: &str| {
        let sentence = talk::fold(sentence);
        folded.iter().find(|(_, passage)| passage.contains(&sentence)).map(|(at, _)| *at)
    };
    let question_key = talk::key(inputs.question);
    let numbered: Vec<String> =
        shown.iter().enumerate().map(|(i, passage)| format!("[{}] {passage}", i + 1)).collect();
    let values = [("question", inputs.question), ("passages", &numbered.join("\n"))];
    let (prompt, mut written) = (inputs.prompts.get(Job::Csqe), Vec::new());
    for sample in 0..COPIES {
        let Some(reply) = talk.ask(&prompt.request(&values, sample))? else { continue };
        let mut sentences = replies::sentences(&reply.text);
        if sentences.is_empty() {
            // A model that ignores the requested format may still have copied. Its own sentences are in no passage.
            let prose = reply.text.unicode_sentences().map(talk::plain);
            sentences = prose.filter(|sentence| holder(sentence).is_some()).collect();
        }
        sentences.retain(|sentence| talk::key(sentence) != question_key);
        let source = AddedFrom::Model { model: reply.model, recorded: reply.recorded, sample };
        match join(sentences.into_iter().map(|sentence| (holder(&sentence), sentence)), source) {
            Some(added) => written.push(added),
            None => talk.trouble("a reply without copied sentences".into()),
        }
    }
    Ok(written)
}

/// Takes the sentences nearest to the question; one text per passage that has any.
fn extract<E: From<Stopped>>(
    inputs: &ExpansionInputs<'_, E>,
    first: &[FirstPassHit],
) -> Result<Vec<Added>, E> {
    // A sentence that repeats the question would be the nearest and would add nothing.
    let mut seen = HashSet::from([talk::key(inputs.question)]);
    let mut sentences: Vec<(usize, String)> = Vec::new();
    for (i, hit) in first.iter().enumerate() {
        // Without the title, which has no full stop and would run into the first sentence.
        // As one line, because a line break would end a sentence.
        let contents = talk::plain(&hit.passage.text);
        let all = talk::cut(&contents, WORDS).unicode_sentences().map(talk::plain);
        sentences
            .extend(all.filter(|sentence| talk::is_new(&mut seen, sentence)).map(|sentence| (i, sentence)));
    }
    if sentences.is_empty() {
        return Ok(Vec::new());
    }
    if inputs.stop.is_set() {
        return Err(Stopped.into());
    }
    let texts: Vec<&str> = sentences.iter().map(|(_, sentence)| sentence.as_str()).collect();
    let mut nearest: Vec<(usize, f32)> = (inputs.similarity)(&texts)?.into_iter().enumerate().collect();
    nearest.retain(|(_, similarity)| similarity.is_finite());
    nearest.sort_by(|a, b| b.1.total_cmp(&a.1));
    let taken: HashSet<usize> = nearest.iter().take(SENTENCES).map(|(i, _)| *i).collect();
    let sentences_of = |passage: usize| {
        let all = sentences.iter().enumerate().filter(move |(_, (i, _))| *i == passage);
        all.filter(|(i, _)| taken.contains(i)).map(|(_, (_, sentence))| sentence.clone())
    };
    let added = first.iter().enumerate().filter_map(|(i, hit)| {
        let source = AddedFrom::Passage { at: hit.at, rank: i + 1 };
        join(sentences_of(i).map(|sentence| (Some(hit.at), sentence)), source)
    });
    Ok(added.collect())
}

/// Joins sentences to one text with the range of each.
fn join(sentences: impl Iterator<Item = (Option<PassageIx>, String)>, source: AddedFrom) -> Option<Added> {
    let mut added = Added::new(String::new(), source);
    for (holder, sentence) in sentences {
        if !added.text.is_empty() {
            added.text.push(' ');
        }
        let start = added.text.len();
        added.text.push_str(&sentence);
        added.sentences.push((start..added.text.len(), holder));
    }
    (!added.text.is_empty()).then_some(added)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expand::testing::{Failed, Scripted, with_inputs};
    use crate::llm::{Chat, ChatError, Tokens};

    fn run(statements: &[&str], chat: Option<&dyn Chat>) -> Expansion {
        with_inputs("Q?", statements, &[], chat, |inputs| expand_keqe(&inputs)).unwrap()
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
        let requests: Vec<(u32, f32)> = chat.requests().iter().map(|r| (r.sample, r.temperature)).collect();
        assert_eq!(requests, [(0, 1.0), (1, 1.0), (2, 1.0), (3, 1.0), (4, 1.0)]);
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
        let samples: Vec<&AddedFrom> = expansion.added.iter().map(|added| &added.source).collect();
        assert!(matches!(samples[1], AddedFrom::Model { sample: 3, .. }));
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
        let failed = with_inputs("Q?", &["Yes."], &[], Some(&chat), |inputs| expand_keqe(&inputs));
        assert_eq!(failed, Err(Failed::Stopped));
    }
}

#[cfg(test)]
mod csqe_tests {
    use super::*;
    use crate::expand::testing::{Failed, Scripted, hits, with_inputs};
    use crate::expand::types::Similarity;
    use crate::llm::{Chat, ChatError, Tokens};
    use crate::work::Stop;
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;

    const TEXTS: [&str; 3] = [
        "Zoos teach. Animals  suffer\nin small cages.",
        "Zoos breed rare animals. Few are freed.",
        "Trains run.",
    ];

    fn run(texts: &[&str], chat: Option<&dyn Chat>) -> Expansion {
        with_inputs("Q?", &["Yes."], texts, chat, |inputs| expand(&inputs)).unwrap()
    }

    fn searched(expansion: &Expansion) -> (&str, Vec<&str>) {
        match &expansion.queries {
            Queries::Joined { terms, vectors } => (terms, vectors.iter().map(String::as_str).collect()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn two_copies_and_two_answers_go_with_the_question_four_times_and_five_vectors() {
        let chat = Scripted::saying(&[
            r#"[{"passage":1,"sentences":["animals suffer in small cages."]},{"passage":2,"sentences":["Few are freed."]}]"#,
            r#"[{"passage":2,"sentences":["Zoos breed rare animals."]}]"#,
            "An\nanswer.",
            "Another.",
        ]);
        let expansion = run(&TEXTS, Some(&chat));
        assert_eq!(expansion.form, Form::CsqeByModel);
        let texts = [
            "animals suffer in small cages. Few are freed.",
            "Zoos breed rare animals.",
            "An answer.",
            "Another.",
        ];
        assert_eq!(
            searched(&expansion),
            (format!("Q?\nQ?\nQ?\nQ?\n{}", texts.join("\n")).as_str(), [&["Q?"], &texts[..]].concat())
        );
        let requests = chat.requests();
        assert_eq!(requests.iter().map(|request| request.sample).collect::<Vec<_>>(), [0, 1, 0, 1]);
        assert!(
            requests[0].prompt.contains("[1] Zoos teach. Animals suffer in small cages.\n[2] Zoos breed")
        );
        assert!(requests[2].prompt.ends_with("Question: Q?\nPassage:"));
        assert_eq!((expansion.notes.len(), expansion.tokens), (0, Some(Tokens { prompt: 40, reply: 12 })));
    }

    #[test]
    fn a_sentence_that_is_in_no_passage_is_used_and_flagged() {
        let chat =
            Scripted::saying(&[r#"{"sentences": ["ZOOS teach.", "Zoos are wonderful.", "Few are freed."]}"#]);
        let expansion = run(&TEXTS, Some(&chat));
        let added = &expansion.added[0];
        let sentences: Vec<_> =
            added.sentences.iter().map(|(at, in_)| (&added.text[at.clone()], *in_)).collect();
        assert_eq!(
            sentences,
            [
                ("ZOOS teach.", Some(PassageIx(100))),
                ("Zoos are wonderful.", None),
                ("Few are freed.", Some(PassageIx(101)))
            ]
        );
    }

    #[test]
    fn a_reply_without_sentences_adds_no_text_no_copy_and_no_vector() {
        let chat = Scripted::saying(&["[]", r#"["Zoos teach."]"#, "", "An answer."]);
        let expansion = run(&TEXTS, Some(&chat));
        assert_eq!(
            searched(&expansion),
            ("Q?\nQ?\nZoos teach.\nAn answer.", vec!["Q?", "Zoos teach.", "An answer."])
        );
        assert_eq!(
            expansion.notes,
            ["fake: a reply without copied sentences; an empty reply; 2 of 4 replies are used"]
        );
    }

    #[test]
    fn of_a_reply_in_prose_only_what_is_in_a_passage_is_taken() {
        let chat = Scripted::saying(&["These matter. Few are freed.\nTrains run. So they do."]);
        let expansion = run(&TEXTS, Some(&chat));
        assert_eq!(expansion.added[0].text, "Few are freed. Trains run.");
    }

    #[test]
    fn a_copied_question_is_no_sentence() {
        let chat = Scripted::saying(&[r#"["q", "Zoos teach."]"#]);
        assert_eq!(run(&TEXTS, Some(&chat)).added[0].text, "Zoos teach.");
    }

    #[test]
    fn without_a_model_the_nearest_sentences_are_one_text_a_passage_with_one_question() {
        for (chat, note) in [
            (None, None),
            (
                Some(Scripted::down()),
                Some("fake: nobody is there; the first passages' own sentences are used"),
            ),
            (
                Some(Scripted::new(vec![Err(ChatError::Nonsense("<html>".into())); 4])),
                Some("fake: <html>; the first passages' own sentences are used"),
            ),
        ] {
            // By length, and the one that is there twice counts once.
            let texts =
                [TEXTS[0], "FEW are freed! Zoos teach", TEXTS[1], "A very long sentence. Q? Hm.", TEXTS[2]];
            let expansion = run(&texts, chat.as_ref().map(|chat| chat as &dyn Chat));
            assert_eq!(expansion.form, Form::CsqeExtractive);
            let texts = [
                "Zoos teach. Animals suffer in small cages.",
                "FEW are freed!",
                "Zoos breed rare animals.",
                "A very long sentence.",
            ];
            assert_eq!(
                searched(&expansion),
                (format!("Q?\n{}", texts.join("\n")).as_str(), [&["Q?"], &texts[..]].concat())
            );
            assert_eq!(
                expansion.added[0].sentences,
                [(0..11, Some(PassageIx(100))), (12..42, Some(PassageIx(100)))]
            );
            assert_eq!(expansion.added[2].source, AddedFrom::Passage { at: PassageIx(102), rank: 3 });
            assert_eq!(expansion.notes.first().map(String::as_str), note);
        }
    }

    #[test]
    fn with_no_passage_a_model_still_answers_and_without_one_the_question_is_searched_alone() {
        let expansion = run(&[], Some(&Scripted::saying(&["one", "two"])));
        assert_eq!((expansion.form, searched(&expansion).0), (Form::CsqeByModel, "Q?\nQ?\none\ntwo"));
        assert_eq!(expansion.notes, ["fake: no passage to copy from; 2 of 4 replies are used"]);
        let expansion = run(&[], None);
        assert_eq!((expansion.form, searched(&expansion)), (Form::QuestionAlone, ("Q?", vec!["Q?"])));
        assert_eq!(expansion.notes.len(), 1);
    }

    #[test]
    fn no_more_than_ten_passages_are_shown_and_128_words_of_each() {
        let long = format!("{}last. Beyond the cut.", "word ".repeat(127));
        let chat = Scripted::saying(&[r#"["Beyond the cut."]"#]);
        let expansion = run(&[long.as_str(); 12], Some(&chat));
        let prompt = &chat.requests()[0].prompt;
        assert!(prompt.contains("[10] word") && !prompt.contains("[11]") && !prompt.contains("Beyond"));
        assert_eq!(expansion.added[0].sentences, [(0..15, None)]);
    }

    #[test]
    fn a_stop_and_a_failing_index_are_passed_on() {
        let stop = Stop::when_past(&Arc::new(AtomicU64::new(1)), 0);
        let failed =
            with_inputs("Q?", &[], &TEXTS, None, |inputs| expand(&ExpansionInputs { stop: &stop, ..inputs }));
        assert_eq!(failed, Err(Failed::Stopped));
        let failed = with_inputs("Q?", &[], &[], None, |inputs| {
            expand(&ExpansionInputs { first: &|_| Err(Failed::Index), ..inputs })
        });
        assert_eq!(failed, Err(Failed::Index));
        let chat = Scripted::new(vec![Ok("[]".into()), Err(Stopped.into())]);
        assert_eq!(
            with_inputs("Q?", &[], &TEXTS, Some(&chat), |inputs| expand(&inputs)),
            Err(Failed::Stopped)
        );
    }

    #[test]
    fn a_similarity_that_is_no_number_is_no_sentence() {
        let form_with = |similarity: Similarity<'_, Failed>| {
            let all = hits(&TEXTS);
            with_inputs("Q?", &[], &[], None, |inputs| {
                expand(&ExpansionInputs { similarity, first: &|_| Ok(all.clone()), ..inputs }).unwrap().form
            })
        };
        assert_eq!(form_with(&|texts| Ok(vec![f32::NAN; texts.len()])), Form::QuestionAlone);
        assert_eq!(form_with(&|texts| Ok(vec![0.0; texts.len()])), Form::CsqeExtractive);
    }
}
