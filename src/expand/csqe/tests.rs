use super::*;
use crate::expand::Likeness;
use crate::expand::testing::{Failed, Scripted, listed, with_ask};
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
    with_ask("Q?", &["Yes."], texts, chat, |ask| expand(&ask)).unwrap()
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
    let asked = chat.asked();
    assert_eq!(asked.iter().map(|request| request.sample).collect::<Vec<_>>(), [0, 1, 0, 1]);
    assert!(asked[0].prompt.contains("[1] Zoos teach. Animals suffer in small cages.\n[2] Zoos breed"));
    assert_eq!(asked[2], prompts::answer("Q?", 0));
    assert_eq!((expansion.notes.len(), expansion.tokens), (0, Some(Tokens { prompt: 40, reply: 12 })));
}

#[test]
fn a_sentence_that_is_in_no_passage_is_used_and_flagged() {
    let chat =
        Scripted::saying(&[r#"{"sentences": ["ZOOS teach.", "Zoos are wonderful.", "Few are freed."]}"#]);
    let expansion = run(&TEXTS, Some(&chat));
    let added = &expansion.added[0];
    let sentences: Vec<_> = added.sentences.iter().map(|(at, in_)| (&added.text[at.clone()], *in_)).collect();
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
fn without_a_model_the_likest_sentences_are_one_text_a_passage_with_one_question() {
    for (chat, note) in [
        (None, None),
        (Some(Scripted::down()), Some("fake: nobody is there; the first passages' own sentences are used")),
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
        assert_eq!(expansion.added[2].source, Source::Passage { at: PassageIx(102), rank: 3 });
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
    let prompt = &chat.asked()[0].prompt;
    assert!(prompt.contains("[10] word") && !prompt.contains("[11]") && !prompt.contains("Beyond"));
    assert_eq!(expansion.added[0].sentences, [(0..15, None)]);
}

#[test]
fn a_stop_and_a_failing_index_are_passed_on() {
    let stop = Stop::when_past(&Arc::new(AtomicU64::new(1)), 0);
    let failed = with_ask("Q?", &[], &TEXTS, None, |ask| expand(&Ask { stop: &stop, ..ask }));
    assert_eq!(failed, Err(Failed::Stopped));
    let failed = with_ask("Q?", &[], &[], None, |ask| expand(&Ask { first: &|_| Err(Failed::Index), ..ask }));
    assert_eq!(failed, Err(Failed::Index));
    let chat = Scripted::new(vec![Ok("[]".into()), Err(Stopped.into())]);
    assert_eq!(with_ask("Q?", &[], &TEXTS, Some(&chat), |ask| expand(&ask)), Err(Failed::Stopped));
}

#[test]
fn a_likeness_that_is_no_number_is_no_sentence() {
    let ask_with = |likeness: Likeness<'_, Failed>| {
        let all = listed(&TEXTS);
        with_ask("Q?", &[], &[], None, |ask| {
            expand(&Ask { likeness, first: &|_| Ok(all.clone()), ..ask }).unwrap().form
        })
    };
    assert_eq!(ask_with(&|texts| Ok(vec![f32::NAN; texts.len()])), Form::QuestionAlone);
    assert_eq!(ask_with(&|texts| Ok(vec![0.0; texts.len()])), Form::CsqeExtractive);
}
