//! The rules on examples, by kind of question.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::statements::{opposite, resolve, statements};
use super::{By, Question};
use super::{invert, words};

fn expect(rows: &[(&str, &str, &str)]) {
    for (question, supporting, opposing) in rows {
        let made = statements(question);
        assert_eq!(made.perspectives, [*supporting, *opposing], "for {question:?}");
        assert_eq!((made.by, made.supports), (By::Rule, Some(0)), "for {question:?}");
    }
}

#[test]
fn a_question_has_the_statements_given_else_those_of_the_set_else_those_by_rule() {
    let zoos = Question {
        id: "7".into(),
        text: "Should zoos be banned?".into(),
        answers: vec!["yes".into()],
        ..Question::default()
    };
    let set = [Question { perspectives: vec!["Ban zoos.".into(), "Keep zoos.".into()], ..zoos }];
    assert_eq!(resolve(" should ZOOS be banned? ", &[], &set), (set[0].clone(), By::Given));
    let given = ["Yes.".to_owned(), "No.".to_owned()];
    let (question, by) = resolve("should zoos be banned?", &given, &set);
    // The question of the set keeps everything but its statements.
    let other = Question { perspectives: given.to_vec(), supports: Some(0), ..set[0].clone() };
    assert_eq!((question, by), (other, By::User));
    assert_eq!(resolve("Why?", &given[..1], &set).0.supports, None);
    let (question, by) = resolve("Should cats be banned?", &[], &set);
    assert_eq!((question.perspectives[0].as_str(), by), ("Cats should be banned.", By::Rule));
    assert_eq!(resolve("Why?", &[], &set).1, By::None);
}

#[test]
fn questions_with_be_find_where_the_subject_ends() {
    expect(&[
        (
            "Is the sale of old judgments on the street legal?",
            "The sale of old judgments on the street is legal.",
            "The sale of old judgments on the street is not legal.",
        ),
        (
            "Is storing grain for emergencies wasteful?",
            "Storing grain for emergencies is wasteful.",
            "Storing grain for emergencies is not wasteful.",
        ),
        ("Is chess a sport?", "Chess is a sport.", "Chess is not a sport."),
        (
            "Are bees that live in cities healthy?",
            "Bees that live in cities are healthy.",
            "Bees that live in cities are not healthy.",
        ),
        ("Is taxation theft?", "Taxation is theft.", "Taxation is not theft."),
        (
            "Is Norway doing enough for its fjords?",
            "Norway is doing enough for its fjords.",
            "Norway is not doing enough for its fjords.",
        ),
        (
            "Is it rude to whistle indoors?",
            "It is rude to whistle indoors.",
            "It is not rude to whistle indoors.",
        ),
        (
            "Is the death penalty ever justified?",
            "The death penalty is sometimes justified.",
            "The death penalty is never justified.",
        ),
        ("Is Wikipedia still reliable?", "Wikipedia is still reliable.", "Wikipedia is no longer reliable."),
    ]);
}

#[test]
fn there_is_denied_with_no_or_not() {
    expect(&[
        ("Is there a pay gap?", "There is a pay gap.", "There is not a pay gap."),
        ("Are there limits to growth?", "There are limits to growth.", "There are no limits to growth."),
        (
            "Is there any evidence for ghosts?",
            "There is evidence for ghosts.",
            "There is no evidence for ghosts.",
        ),
        (
            "Should there be a wealth tax?",
            "There should be a wealth tax.",
            "There should not be a wealth tax.",
        ),
    ]);
}

#[test]
fn questions_with_do_give_their_form_to_the_verb() {
    expect(&[
        (
            "Does tea with milk lead to calm?",
            "Tea with milk leads to calm.",
            "Tea with milk does not lead to calm.",
        ),
        ("Do schools kill creativity?", "Schools kill creativity.", "Schools do not kill creativity."),
        (
            "Did the Romans build better roads?",
            "The Romans built better roads.",
            "The Romans did not build better roads.",
        ),
        (
            "Does travel genuinely broaden the mind?",
            "Travel genuinely broadens the mind.",
            "Travel does not genuinely broaden the mind.",
        ),
        (
            "Does yoga reduce stress and improve sleep?",
            "Yoga reduces stress and improves sleep.",
            "Yoga does not reduce stress and improve sleep.",
        ),
        (
            "Did colonialism help and harm trade?",
            "Colonialism helped and harmed trade.",
            "Colonialism did not help and harm trade.",
        ),
    ]);
}

#[test]
fn modals_and_have_keep_their_auxiliary() {
    expect(&[
        (
            "Should parents who smoke indoors be fined?",
            "Parents who smoke indoors should be fined.",
            "Parents who smoke indoors should not be fined.",
        ),
        ("Can machines be creative?", "Machines can be creative.", "Machines cannot be creative."),
        (
            "Would a shorter week help workers?",
            "A shorter week would help workers.",
            "A shorter week would not help workers.",
        ),
        (
            "Has the telephone made us lonelier?",
            "The telephone has made us lonelier.",
            "The telephone has not made us lonelier.",
        ),
        ("Ought we to eat less salt?", "We ought to eat less salt.", "We ought not to eat less salt."),
        ("Should all maps be free?", "All maps should be free.", "Not all maps should be free."),
    ]);
}

#[test]
fn comparisons_change_sides() {
    expect(&[
        (
            "Will robots do more harm than good?",
            "Robots will do more harm than good.",
            "Robots will do more good than harm.",
        ),
        ("Are cats better than dogs?", "Cats are better than dogs.", "Dogs are better than cats."),
        (
            "Is tea healthier than energy drinks?",
            "Tea is healthier than energy drinks.",
            "Energy drinks are healthier than tea.",
        ),
    ]);
}

#[test]
fn the_person_asked_answers_in_the_first_person() {
    expect(&[
        (
            "Are you content with how your landlord treats you?",
            "I am content with how my landlord treats me.",
            "I am not content with how my landlord treats me.",
        ),
        ("Do you trust your dentist?", "I trust my dentist.", "I do not trust my dentist."),
        (
            "Is smoking bad for your lungs?",
            "Smoking is bad for your lungs.",
            "Smoking is not bad for your lungs.",
        ),
    ]);
}

#[test]
fn an_opinion_asked_for_is_the_claim_itself() {
    expect(&[
        (
            "Do you think that the rich pay enough tax?",
            "The rich pay enough tax.",
            "The rich do not pay enough tax.",
        ),
        ("Don't you think zoos are cruel?", "Zoos are cruel.", "Zoos are not cruel."),
        ("Is it true that sugar causes gout?", "Sugar causes gout.", "Sugar does not cause gout."),
        ("Do you believe in fate?", "I believe in fate.", "I do not believe in fate."),
    ]);
}

#[test]
fn negative_questions_tags_and_openers_ask_about_the_affirmative() {
    expect(&[
        ("Shouldn't we ban fireworks?", "We should ban fireworks.", "We should not ban fireworks."),
        ("Isn’t it wrong to lie?", "It is wrong to lie.", "It is not wrong to lie."),
        ("Is it not time to rest?", "It is time to rest.", "It is not time to rest."),
        ("Homework is useless, isn't it?", "Homework is useless.", "Homework is not useless."),
        ("Should voting be secret or not?", "Voting should be secret.", "Voting should not be secret."),
        (
            "In the long run, is remote work good for cities?",
            "In the long run, remote work is good for cities.",
            "In the long run, remote work is not good for cities.",
        ),
        (
            "If a child is ill, should parents decide?",
            "If a child is ill, parents should decide.",
            "If a child is ill, parents should not decide.",
        ),
        ("The metro: was it worth it?", "The metro was worth it.", "The metro was not worth it."),
    ]);
}

#[test]
fn letter_case_and_white_space_are_kept_in_order() {
    expect(&[
        ("Should We Abolish The Penny?", "We Should Abolish The Penny.", "We Should Not Abolish The Penny."),
        ("SHOULD WE BAN KARAOKE?", "WE SHOULD BAN KARAOKE.", "WE SHOULD NOT BAN KARAOKE."),
        ("  should\tNATO \n expand ", "NATO should expand.", "NATO should not expand."),
        (
            "Should Oslo be renamed by South Norway?",
            "Oslo should be renamed by South Norway.",
            "Oslo should not be renamed by South Norway.",
        ),
    ]);
}

#[test]
fn statements_are_denied_and_denials_are_lifted() {
    expect(&[
        ("Birds aren't real dinosaurs.", "Birds aren't real dinosaurs.", "Birds are real dinosaurs."),
        (
            "Robots Will Not Replace Painters",
            "Robots Will Not Replace Painters.",
            "Robots Will Replace Painters.",
        ),
        ("Cats don't love their owners.", "Cats don't love their owners.", "Cats love their owners."),
        (
            "The monarchy no longer serves a purpose.",
            "The monarchy no longer serves a purpose.",
            "The monarchy still serves a purpose.",
        ),
        ("Ban plastic bags.", "Ban plastic bags.", "Do not ban plastic bags."),
    ]);
    assert_eq!(
        opposite("Nobody should be above the law.").as_deref(),
        Some("Somebody should be above the law.")
    );
    assert_eq!(opposite("Astrology has no value").as_deref(), Some("Astrology has some value."));
    assert_eq!(
        opposite("The tools we need would cost money").as_deref(),
        Some("The tools we need would not cost money.")
    );
    assert_eq!(opposite("We ought not shout").as_deref(), Some("We ought to shout."));
    assert_eq!(opposite("We have to go.").as_deref(), Some("We do not have to go."));
}

#[test]
fn texts_without_a_yes_or_no_get_no_statements() {
    let refused = [
        "",
        "   ",
        "?",
        "Why is the sky blue?",
        "How should we live?",
        "What is art?",
        "Which is better, tea or coffee?",
        "To what extent does money matter?",
        "When should children get phones?",
        "Who wrote it?",
        "Are dogs or cats better pets?",
        "Is nuclear power a blessing or a curse?",
        "Is sugar good or bad?",
        "If it rains, what should we do?",
        "Sollte man Zoos verbieten?",
        "¿Es justa la ley?",
        "Est-ce que la loi est juste ?",
        "动物园应该被禁止吗？",
        "🙂🙂🙂",
        "The future of food in cities",
    ];
    for question in refused {
        let made = statements(question);
        assert_eq!(
            (made.by, made.supports, made.perspectives.len()),
            (By::None, None, 0),
            "for {question:?}"
        );
    }
}

#[test]
fn statements_are_written_as_the_output_format_says() {
    let line = serde_json::to_string(&statements("Is chess a sport?")).unwrap();
    assert_eq!(
        line,
        r#"{"question":"Is chess a sport?","perspectives":["Chess is a sport.","Chess is not a sport."],"supports":0,"by":"rule"}"#
    );
    assert!(serde_json::to_string(&statements("Why?")).unwrap().ends_with(r#""supports":null,"by":"none"}"#));
}

const PIECES: [&str; 44] = [
    "Is",
    "are",
    "DOES",
    "do",
    "shouldn't",
    "can’t",
    "the",
    "you",
    "your",
    "I",
    "it",
    "there",
    "not",
    "never",
    "no",
    "any",
    "ever",
    "than",
    "better",
    "more",
    "harm",
    "good",
    "and",
    "or",
    "if",
    "that",
    "who",
    ",",
    ":",
    "—",
    "(",
    ")",
    "\"",
    "“",
    "'s",
    "🙂",
    "动物",
    "שלום",
    "\u{202e}",
    "\u{0}",
    "\u{7}",
    "e\u{301}",
    "İ",
    "ﬃ?",
];

/// A fixed linear congruential generator: the same texts every time.
fn draws() -> impl Iterator<Item = usize> {
    let mut state: u64 = 0x9e37_79b9_7f4a_7c15;
    std::iter::repeat_with(move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 40).unwrap()
    })
}

#[test]
fn any_mixture_of_words_gives_two_sentences_or_none() {
    let mut draw = draws();
    let mut next = |below: usize| draw.next().unwrap() % below;
    for _ in 0..20_000 {
        let length = 1 + next(14);
        let glue = [" ", "", "  ", "\t"][next(4)];
        let text = (0..length).map(|_| PIECES[next(PIECES.len())]).collect::<Vec<_>>().join(glue);
        let made = statements(&text);
        assert!(matches!(made.perspectives.len(), 0 | 2), "for {text:?}");
        for perspective in &made.perspectives {
            assert!(perspective.ends_with('.'), "{perspective:?} for {text:?}");
            assert!(!perspective.chars().any(char::is_control), "{perspective:?} for {text:?}");
        }
        let _ = opposite(&text);
    }
}

#[test]
fn a_hundred_thousand_characters_take_linear_time() {
    let start = Instant::now();
    for piece in [
        "a",
        "Is ",
        "not ",
        "really, ",
        "that people ",
        "(",
        "🙂",
        "动物园 ",
        "\u{0}",
        "'",
        "s' ",
        "? ",
        "ever ",
    ] {
        let text = piece.repeat(100_000 / piece.len());
        assert!(statements(&text).perspectives.len() != 1);
        let _ = opposite(&text);
        let _ = statements(&format!("Should {text} be banned?"));
    }
    assert!(start.elapsed() < Duration::from_secs(60), "took {:?}", start.elapsed());
}

#[test]
fn control_characters_never_reach_a_statement() {
    let made = statements("Should\u{7} we ban\u{1b}[31m \u{202e}kites\u{0}?");
    assert!(made.perspectives.iter().all(|text| !text.contains(['\u{7}', '\u{1b}', '\u{202e}', '\u{0}'])));
}

fn normal(text: &str) -> String {
    text.trim().trim_end_matches(['.', ' ']).replace('’', "'").to_lowercase()
}

#[test]
#[ignore = "needs PARALLAX_DATA with berds-dev/berds.dev.jsonl"]
fn nearly_all_two_sided_yes_no_questions_get_statements_by_rule() {
    let folder = std::env::var_os("PARALLAX_DATA").expect("PARALLAX_DATA names the folder of data sets");
    let file = PathBuf::from(folder).join("berds-dev").join("berds.dev.jsonl");
    let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let (mut count, mut covered, mut first, mut both, mut either) = (0, 0, 0, 0, 0);
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        let question = row["question"].as_str().unwrap();
        let given: Vec<String> = row["perspectives"]
            .as_array()
            .unwrap()
            .iter()
            .map(|text| normal(text.as_str().unwrap()))
            .collect();
        let yes_no = invert::auxiliary_at(&words::words(question)).is_some();
        if given.len() != 2 || !yes_no {
            continue;
        }
        count += 1;
        let made = statements(question);
        let found: Vec<String> = made.perspectives.iter().map(|text| normal(text)).collect();
        let swapped = found.iter().rev().eq(given.iter());
        covered += usize::from(made.by == By::Rule);
        first += usize::from(found.first() == given.first());
        both += usize::from(found == given);
        either += usize::from(found == given || swapped);
    }
    println!(
        "two-sided yes/no questions {count}; by rule {covered}; equal to those of the set: first {first}, both {both}, either order {either}"
    );
    assert!(covered * 100 >= count * 95, "{covered} of {count}");
}

#[test]
fn a_text_without_a_yes_or_no_has_a_draft_of_its_noun_phrase() {
    let first = |text: &str| super::draft(text).map(|[first, _]| first);
    for (text, phrase) in [
        ("What is the case against abortion?", "abortion"),
        ("immigration", "immigration"),
        ("Immigration", "immigration"),
        ("EU enlargement", "EU enlargement"),
        ("What are the pros and cons of nuclear power?", "nuclear power"),
        ("the death penalty", "death penalty"),
    ] {
        let expected = format!("There is a good case for {phrase}.");
        assert_eq!(first(text).as_deref(), Some(expected.as_str()), "{text}");
    }
    for text in [
        "Who pays for zoos?",
        "Why do cats purr?",
        "Who should own the moon?",
        "Is coffee good or bad for you?",
        "why?",
    ] {
        assert_eq!(first(text), None, "{text}");
    }
    assert_eq!(first("Sollten Zoos verboten werden?"), None);
    assert_eq!(first(" "), None);
}
