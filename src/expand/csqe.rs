//! CSQE: sentences copied from the first passages, and hypothetical answers, added to the question. Q2D/PRF: an answer written with the
//! first passages in the prompt.
//!
//! A passage is read up to its 128th whitespace-separated word, or by the option `tokens` up to so many word pieces of the built-in
//! encoder. The authors cut at 128 tokens of their model; that would make the prompt depend on the model.

use std::collections::HashSet;

use unicode_segmentation::UnicodeSegmentation;

use super::feedback::answers;
use super::talk::{Cost, Talk};
use super::types::{Added, AddedFrom, Expand, Expansion, ExpansionInputs, FirstPassHit, Form, Kind, Queries};
use super::{replies, talk};
use crate::corpus::PassageIx;
use crate::llm::Job;
use crate::work::Stopped;

pub(super) fn expand<E: From<Stopped>>(
    own: &Expand,
    inputs: &ExpansionInputs<'_, E>,
) -> Result<Expansion, E> {
    let first = (inputs.first)(own.count("passages"))?;
    let expansion = |form, copies, added: Vec<Added>, notes, cost| {
        let texts: Vec<&str> = added.iter().map(|added| added.text.as_str()).collect();
        let queries = Queries::join(inputs.question, copies, &texts);
        Expansion { kind: Kind::Csqe, form, queries, added, notes, cost }
    };
    let (mut notes, mut cost) = (Vec::new(), Cost::default());
    let shown = shown(own, inputs, &first)?;
    if let Some(chat) = inputs.chat {
        let mut talk = Talk::new(chat, inputs.stop);
        // Without feedback there is nothing to copy from, which is the wish of `passages=0`.
        let copies = if own.count("passages") == 0 { 0 } else { own.count("copies") as u32 };
        let mut written = copy_by_model(inputs, copies, &first, &shown, &mut talk)?;
        written.extend(answers(inputs, own.count("answers") as u32, &mut talk)?);
        cost = talk.cost;
        if !written.is_empty() {
            let asked = copies as usize + own.count("answers");
            notes.extend(talk.note(&format!("{} of {asked} replies are used", written.len())));
            let repeat = own.repeat(written.len());
            return Ok(expansion(Form::CsqeByModel, repeat, written, notes, cost));
        }
        notes.extend(talk.note("the first passages' own sentences are used"));
    }
    let taken = extract(inputs, &first, &shown, own.count("sentences"))?;
    let mut form = Form::CsqeExtractive;
    if taken.is_empty() {
        notes.push("the question's own list has no sentence to add; the question is searched alone".into());
        form = Form::QuestionAlone;
    }
    Ok(expansion(form, 1, taken, notes, cost))
}

pub(super) fn expand_q2d_prf<E: From<Stopped>>(
    own: &Expand,
    inputs: &ExpansionInputs<'_, E>,
) -> Result<Expansion, E> {
    let first = (inputs.first)(own.count("passages"))?;
    let shown = shown(own, inputs, &first)?;
    let expansion = |form, copies, added: Vec<Added>, notes, cost| {
        let texts: Vec<&str> = added.iter().map(|added| added.text.as_str()).collect();
        let queries = Queries::join(inputs.question, copies, &texts);
        Expansion { kind: Kind::Q2dPrf, form, queries, added, notes, cost }
    };
    let (mut notes, mut cost) = (Vec::new(), Cost::default());
    if let Some(chat) = inputs.chat {
        let (mut talk, passages) = (Talk::new(chat, inputs.stop), shown.numbered());
        let values = [("question", inputs.question), ("passages", &passages)];
        let reply = talk.ask(&inputs.prompts.get(Job::Q2dPrf).request(&values, 0))?;
        cost = talk.cost;
        if let Some(reply) = reply {
            let source = AddedFrom::Model { model: reply.model, recorded: reply.recorded, sample: 0 };
            let added = vec![Added::new(talk::plain(&reply.text), source)];
            return Ok(expansion(Form::Q2dPrfByModel, own.repeat(1), added, notes, cost));
        }
        notes.extend(talk.note("the first passages' own sentences are used"));
    }
    let taken = extract(inputs, &first, &shown, own.count("sentences"))?;
    let mut form = Form::Q2dPrfExtractive;
    if taken.is_empty() {
        notes.push("the question's own list has no sentence to add; the question is searched alone".into());
        form = Form::QuestionAlone;
    }
    Ok(expansion(form, 1, taken, notes, cost))
}

/// The beginnings of the passages that are read: of title and text for a prompt, and of the text alone, without the title, which has
/// no full stop and would run into the first sentence.
pub(super) struct Shown {
    contents: Vec<String>,
    texts: Vec<String>,
}

impl Shown {
    /// The passages with their numbers, as a prompt has them.
    pub(super) fn numbered(&self) -> String {
        let numbered = self.contents.iter().enumerate().map(|(i, passage)| format!("[{}] {passage}", i + 1));
        numbered.collect::<Vec<_>>().join("\n")
    }
}

/// Cuts the passages by the options `tokens` or `words`. As one line each, because a line break would end a sentence.
pub(super) fn shown<E>(
    own: &Expand,
    inputs: &ExpansionInputs<'_, E>,
    first: &[FirstPassHit],
) -> Result<Shown, E> {
    let cut = |text: &str| -> Result<String, E> {
        let text = talk::plain(text);
        Ok(match own.count("tokens") {
            0 => talk::cut(&text, own.count("words")).to_owned(),
            count => text[..(inputs.tokens)(&text, count)?].trim_end().to_owned(),
        })
    };
    Ok(Shown {
        contents: first.iter().map(|hit| cut(&hit.passage.contents())).collect::<Result<_, E>>()?,
        texts: first.iter().map(|hit| cut(&hit.passage.text)).collect::<Result<_, E>>()?,
    })
}

/// Asks the model to copy sentences from the passages; one text per reply that has any.
fn copy_by_model<E>(
    inputs: &ExpansionInputs<'_, E>,
    copies: u32,
    first: &[FirstPassHit],
    shown: &Shown,
    talk: &mut Talk<'_>,
) -> Result<Vec<Added>, Stopped> {
    if copies == 0 {
        return Ok(Vec::new());
    }
    if first.is_empty() {
        talk.trouble("no passage to copy from".into());
        return Ok(Vec::new());
    }
    let folded: Vec<(PassageIx, String)> =
        first.iter().zip(&shown.contents).map(|(hit, shown)| (hit.at, talk::fold(shown))).collect();
    let holder = |sentence: &str| {
        let sentence = talk::fold(sentence);
        folded.iter().find(|(_, passage)| passage.contains(&sentence)).map(|(at, _)| *at)
    };
    let question_key = talk::key(inputs.question);
    let numbered = shown.numbered();
    let values = [("question", inputs.question), ("passages", &numbered)];
    let (prompt, mut written) = (inputs.prompts.get(Job::Csqe), Vec::new());
    for sample in 0..copies {
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
pub(super) fn extract<E: From<Stopped>>(
    inputs: &ExpansionInputs<'_, E>,
    first: &[FirstPassHit],
    shown: &Shown,
    count: usize,
) -> Result<Vec<Added>, E> {
    // A sentence that repeats the question would be the nearest and would add nothing.
    let mut seen = HashSet::from([talk::key(inputs.question)]);
    let mut sentences: Vec<(usize, String)> = Vec::new();
    for (i, text) in shown.texts.iter().enumerate() {
        let all = text.unicode_sentences().map(talk::plain);
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
    let taken: HashSet<usize> = nearest.iter().take(count).map(|(i, _)| *i).collect();
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
        with_inputs("Q?", &["Yes."], texts, chat, |inputs| expand(&Kind::Csqe.into(), &inputs)).unwrap()
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
        assert_eq!(
            (expansion.notes.len(), expansion.cost.tokens),
            (0, Some(Tokens { prompt: 40, reply: 12 }))
        );
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
    fn options_change_the_number_of_replies_of_repeats_and_what_is_read() {
        let asked = |options: &[(&str, f32)]| {
            let chat = Scripted::saying(&[r#"["Zoos teach."]"#, "An answer.", "Another."]);
            let own = options
                .iter()
                .fold(Expand::from(Kind::Csqe), |own, (name, value)| own.with(name, *value).unwrap());
            let expansion =
                with_inputs("Q?", &[], &TEXTS, Some(&chat), |inputs| expand(&own, &inputs)).unwrap();
            (searched(&expansion).0.to_owned(), chat.requests())
        };
        // Either part alone: no answers, no feedback.
        let (terms, requests) = asked(&[("copies", 1.0), ("answers", 0.0)]);
        assert_eq!((terms.as_str(), requests.len()), ("Q?\nZoos teach.", 1));
        let (terms, requests) = asked(&[("passages", 0.0), ("answers", 1.0)]);
        assert_eq!(
            (terms.as_str(), requests.len()),
            ("Q?\n[\"Zoos teach.\"]", 1),
            "only an answer was asked for"
        );
        let (terms, requests) =
            asked(&[("copies", 1.0), ("answers", 1.0), ("repeat", 4.0), ("passages", 1.0), ("words", 2.0)]);
        assert_eq!(terms, "Q?\nQ?\nQ?\nQ?\nZoos teach.\nAn answer.");
        assert!(requests[0].prompt.contains("[1] Zoos teach.\n") && !requests[0].prompt.contains("[2]"));
        // The tokens of this test are letters.
        let (_, requests) = asked(&[("passages", 1.0), ("tokens", 7.0)]);
        assert!(requests[0].prompt.contains("[1] Zoos te\n"), "{}", requests[0].prompt);
    }

    #[test]
    fn q2d_prf_writes_one_answer_from_the_first_passages_and_repeats_the_question_five_times() {
        let chat = Scripted::saying(&["An\nanswer."]);
        let ask = |chat| {
            with_inputs("Q?", &[], &["Zoos teach.", "Few are freed."], chat, |inputs| {
                expand_q2d_prf(&Kind::Q2dPrf.into(), &inputs)
            })
            .unwrap()
        };
        let expansion = ask(Some(&chat as &dyn crate::llm::Chat));
        assert_eq!(expansion.queries, Queries::join("Q?", 5, &["An answer."]));
        let requests = chat.requests();
        assert!(requests.len() == 1 && requests[0].prompt.contains("[1] Zoos teach.\n[2] Few are freed."));
        assert_eq!(ask(None).form, Form::Q2dPrfExtractive);
    }

    #[test]
    fn a_stop_and_a_failing_index_are_passed_on() {
        let stop = Stop::when_past(&Arc::new(AtomicU64::new(1)), 0);
        let failed = with_inputs("Q?", &[], &TEXTS, None, |inputs| {
            expand(&Kind::Csqe.into(), &ExpansionInputs { stop: &stop, ..inputs })
        });
        assert_eq!(failed, Err(Failed::Stopped));
        let failed = with_inputs("Q?", &[], &[], None, |inputs| {
            expand(&Kind::Csqe.into(), &ExpansionInputs { first: &|_| Err(Failed::Index), ..inputs })
        });
        assert_eq!(failed, Err(Failed::Index));
        let chat = Scripted::new(vec![Ok("[]".into()), Err(Stopped.into())]);
        assert_eq!(
            with_inputs("Q?", &[], &TEXTS, Some(&chat), |inputs| expand(&Kind::Csqe.into(), &inputs)),
            Err(Failed::Stopped)
        );
    }

    #[test]
    fn a_similarity_that_is_no_number_is_no_sentence() {
        let form_with = |similarity: Similarity<'_, Failed>| {
            let all = hits(&TEXTS);
            with_inputs("Q?", &[], &[], None, |inputs| {
                expand(
                    &Kind::Csqe.into(),
                    &ExpansionInputs { similarity, first: &|_| Ok(all.clone()), ..inputs },
                )
                .unwrap()
                .form
            })
        };
        assert_eq!(form_with(&|texts| Ok(vec![f32::NAN; texts.len()])), Form::QuestionAlone);
        assert_eq!(form_with(&|texts| Ok(vec![0.0; texts.len()])), Form::CsqeExtractive);
    }
}
