//! Hypothetical answers added to the question (KEQE, Q2D), and feedback terms. RM3, as Anserini does it: the question's terms mixed with
//! frequent terms of its first passages. GRF: the same with hypothetical answers in place of the passages.

use std::collections::HashMap;

use super::talk;
use super::talk::{Cost, Talk};
use super::types::{Added, AddedFrom, Expand, Expansion, ExpansionInputs, Form, Kind, Queries};
use crate::llm::Job;
use crate::retrieve::terms;
use crate::work::Stopped;

/// KEQE, and Q2D, which asks for one answer and repeats the question more often.
pub(super) fn expand_keqe<E: From<Stopped>>(
    own: &Expand,
    inputs: &ExpansionInputs<'_, E>,
) -> Result<Expansion, E> {
    let (by_model, by_statements, count) = match own.kind {
        Kind::Q2d => (Form::Q2dByModel, Form::Q2dStatements, 1),
        _ => (Form::KeqeByModel, Form::KeqeStatements, own.count("n") as u32),
    };
    let expansion = |form, added: Vec<Added>, notes, cost| {
        let texts: Vec<&str> = added.iter().map(|added| added.text.as_str()).collect();
        let copies = if texts.is_empty() { 1 } else { own.repeat(texts.len()) };
        let queries = Queries::join(inputs.question, copies, &texts);
        Expansion { kind: own.kind, form, queries, added, notes, cost }
    };
    let (mut notes, mut cost) = (Vec::new(), Cost::default());
    if let Some(chat) = inputs.chat {
        let mut talk = Talk::new(chat, inputs.stop);
        let written = answers(inputs, count, &mut talk)?;
        cost = talk.cost;
        if !written.is_empty() {
            notes.extend(talk.note(&format!("{} of {count} answers came", written.len())));
            return Ok(expansion(by_model, written, notes, cost));
        }
        notes.extend(talk.note("the question's own statements are used as its answers"));
    }
    let statements = inputs.statements();
    let mut form = by_statements;
    if statements.is_empty() {
        notes
            .push("there is neither an answer nor a statement to add; the question is searched alone".into());
        form = Form::QuestionAlone;
    }
    Ok(expansion(form, statements, notes, cost))
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

pub(super) fn expand<E: From<Stopped>>(
    own: &Expand,
    inputs: &ExpansionInputs<'_, E>,
) -> Result<Expansion, E> {
    let mut passages = Vec::new();
    for listed in (inputs.first)(own.count("docs"))? {
        if inputs.stop.is_set() {
            return Err(Stopped.into());
        }
        passages.push((stems(&listed.passage.contents()), f64::from(listed.score)));
    }
    by_terms(own, inputs, Form::Rm3, &passages, Vec::new())
}

/// GRF: every answer counts alike.
pub(super) fn expand_grf<E: From<Stopped>>(
    own: &Expand,
    inputs: &ExpansionInputs<'_, E>,
) -> Result<Expansion, E> {
    let (mut notes, mut cost, mut texts) = (Vec::new(), Cost::default(), Vec::new());
    if let Some(chat) = inputs.chat {
        let (mut talk, count) = (Talk::new(chat, inputs.stop), own.count("n") as u32);
        texts = answers(inputs, count, &mut talk)?;
        cost = talk.cost;
        notes.extend(talk.note(&match texts.len() {
            0 => "the terms of the question's own statements are used".to_owned(),
            came => format!("{came} of {count} answers came"),
        }));
    }
    let mut form = Form::GrfByModel;
    if texts.is_empty() {
        (form, texts) = (Form::GrfStatements, inputs.statements());
    }
    let passages: Vec<_> = texts.iter().map(|text| (stems(&text.text), 1.0)).collect();
    let mut expansion = by_terms(own, inputs, form, &passages, notes)?;
    expansion.cost = cost;
    // The source names the writer of the answers.
    if let Some(text) = texts.first() {
        expansion.added.iter_mut().for_each(|added| added.source = text.source.clone());
    }
    Ok(expansion)
}

/// Mixes the question's terms with those of weighted texts.
fn by_terms<E>(
    own: &Expand,
    inputs: &ExpansionInputs<'_, E>,
    form: Form,
    passages: &[(Vec<String>, f64)],
    mut notes: Vec<String>,
) -> Result<Expansion, E> {
    let question = stems(inputs.question);
    let wanted = own.count("terms");
    let kept = Some(own.count("keep")).filter(|keep| *keep > 0).unwrap_or(wanted);
    let feedback = feedback(passages, (wanted, kept), inputs.passages, inputs.document_frequency)?;
    if feedback.is_empty() {
        let from = if own.kind == Kind::Rm3 { "own list has" } else { "answers have" };
        notes.push(format!("the question's {from} no term to add; the question is searched alone"));
    }
    let new = feedback.iter().filter(|(term, _)| !question.contains(term));
    let added = new.map(|(term, _)| Added::new(term.clone(), AddedFrom::Feedback)).collect();
    let weights = mix(&question, &feedback, f64::from(own.number("weight")));
    let queries = Queries::Terms(weights.into_iter().map(|(term, weight)| (term, weight as f32)).collect());
    Ok(Expansion { kind: own.kind, form, queries, added, notes, cost: Cost::default() })
}

fn stems(text: &str) -> Vec<String> {
    terms(text).into_iter().map(|term| term.text).collect()
}

/// Terms and their weights, greatest first. Equal weights are in order of the terms, as in Anserini, where earlier versions took the order
/// of a hash.
type Weights = Vec<(String, f64)>;

/// The terms of the passages with the greatest weights, of each passage the `kept` most frequent ones. The sum of the weights is 1.
fn feedback<E>(
    passages: &[(Vec<String>, f64)],
    (wanted, kept): (usize, usize),
    count: usize,
    document_frequency: impl Fn(&str) -> Result<usize, E>,
) -> Result<Weights, E> {
    let (mut common, mut sums): (HashMap<&str, bool>, HashMap<&str, f64>) = Default::default();
    for (stems, score) in passages {
        let mut times: HashMap<&str, f64> = HashMap::new();
        for stem in stems.iter().map(String::as_str).filter(|stem| is_plain(stem)) {
            let is_common = match common.get(stem) {
                Some(is_frequent) => *is_frequent,
                None => {
                    let is_frequent = document_frequency(stem)? * 10 > count;
                    common.insert(stem, is_frequent);
                    is_frequent
                }
            };
            if !is_common {
                *times.entry(stem).or_default() += 1.0;
            }
        }
        for (term, share) in normalize(heaviest(times, kept)) {
            *sums.entry(term).or_default() += share * score;
        }
    }
    let best = normalize(heaviest(sums, wanted));
    Ok(best.into_iter().map(|(term, weight)| (term.to_owned(), weight)).collect())
}

/// `[a-z0-9]{2,20}`.
fn is_plain(stem: &str) -> bool {
    (2..=20).contains(&stem.len()) && stem.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
}

/// The weights of the question and of the feedback; `original` is the question's share.
fn mix(question: &[String], feedback: &Weights, original: f64) -> Weights {
    let mut weights: HashMap<&str, f64> = HashMap::new();
    for term in question {
        *weights.entry(term).or_default() += original / question.len() as f64;
    }
    for (term, weight) in feedback {
        *weights.entry(term).or_default() += (1.0 - original) * weight;
    }
    sort(weights).into_iter().map(|(term, weight)| (term.to_owned(), weight)).collect()
}

fn sort(weights: HashMap<&str, f64>) -> Vec<(&str, f64)> {
    let mut sorted: Vec<_> = weights.into_iter().collect();
    sorted.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    sorted
}

/// The terms with the greatest weights.
fn heaviest(weights: HashMap<&str, f64>, wanted: usize) -> Vec<(&str, f64)> {
    let mut sorted = sort(weights);
    sorted.truncate(wanted);
    sorted
}

/// Scales the weights so that their sum is 1.
fn normalize(mut weights: Vec<(&str, f64)>) -> Vec<(&str, f64)> {
    let sum: f64 = weights.iter().map(|(_, weight)| weight.abs()).sum();
    if sum > 0.0 {
        weights.iter_mut().for_each(|(_, weight)| *weight /= sum);
    }
    weights
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expand::testing::{Failed, Scripted, with_inputs};
    use crate::work::Stop;
    use serde::Deserialize;
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;

    #[derive(Deserialize)]
    struct Counted {
        terms: Vec<String>,
        score: f64,
    }

    #[derive(Deserialize)]
    struct Case {
        query_terms: Vec<String>,
        passages: Vec<Counted>,
        df: HashMap<String, usize>,
        n: usize,
    }

    #[test]
    fn weights_are_those_of_the_independent_python_implementation() {
        let case: Case = serde_json::from_str(include_str!("rm3/input.json")).unwrap();
        let expected: Weights = serde_json::from_str(include_str!("rm3/weights.json")).unwrap();
        let passages: Vec<_> = case.passages.into_iter().take(10).map(|p| (p.terms, p.score)).collect();
        let feedback = feedback(&passages, (10, 10), case.n, |term| Ok::<_, Failed>(case.df[term])).unwrap();
        let weights = mix(&case.query_terms, &feedback, 0.5);
        let names = |weights: &Weights| weights.iter().map(|(term, _)| term.clone()).collect::<Vec<_>>();
        assert_eq!(names(&weights), names(&expected));
        for ((term, weight), (_, wanted)) in weights.iter().zip(&expected) {
            assert!((weight - wanted).abs() < 1e-6, "{term}: {weight}, not {wanted}");
        }
        assert!((weights.iter().map(|(_, weight)| weight).sum::<f64>() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_case_worked_by_hand() {
        // Scores 10 and 9. `the` is a stop word and `x` too short, so the first passage is zoo 2/4, cage 1/4, lion 1/4 and the
        // second zoo 1/2, bear 1/2: zoo 9.5, bear 4.5, cage 2.5, lion 2.5 of 19. The question is zoo 1/2, ban 1/2.
        let texts = ["The zoos: zoo cages, x lions", "zoo bears"];
        let expansion =
            with_inputs("Ban zoos?", &[], &texts, None, |inputs| expand(&Kind::Rm3.into(), &inputs)).unwrap();
        let Queries::Terms(weights) = &expansion.queries else { panic!("{expansion:?}") };
        let expected = [
            ("zoo", 0.5),
            ("ban", 0.25),
            ("bear", 2.25 / 19.0),
            ("cage", 1.25 / 19.0),
            ("lion", 1.25 / 19.0),
        ];
        assert_eq!(weights.len(), expected.len());
        for ((term, weight), (wanted, worth)) in weights.iter().zip(expected) {
            assert_eq!(term, wanted);
            assert!((weight - worth).abs() < 1e-6, "{term}: {weight}");
        }
        let added: Vec<&str> = expansion.added.iter().map(|added| added.text.as_str()).collect();
        assert_eq!((expansion.form, added), (Form::Rm3, vec!["bear", "cage", "lion"]));
    }

    #[test]
    fn options_set_passages_terms_and_the_questions_share() {
        let texts = ["The zoos: zoo cages, x lions", "zoo bears"];
        let own = Expand::from(Kind::Rm3);
        let own = own.with("docs", 1.0).unwrap().with("terms", 1.0).unwrap().with("weight", 0.25).unwrap();
        let expansion = with_inputs("Ban zoos?", &[], &texts, None, |inputs| expand(&own, &inputs)).unwrap();
        // The first passage's heaviest term is zoo, with all of .75; the question is zoo 1/2, ban 1/2 of .25.
        let expected = vec![("zoo".to_owned(), 0.875), ("ban".to_owned(), 0.125)];
        assert_eq!(expansion.queries, Queries::Terms(expected));
    }

    #[test]
    fn a_passage_keeps_more_terms_than_are_added_if_asked() {
        // Of each passage one term, zoo or bear, or all: 2/4 · 10 + 1/2 · 9 of zoo, 1/4 · 10 of cage and lion, 1/2 · 9 of bear.
        let texts = ["The zoos: zoo cages, x lions", "bears, zoo"];
        let weights = |kept: f32| {
            let own = Expand::from(Kind::Rm3).with("terms", 1.0).unwrap().with("keep", kept).unwrap();
            let made = with_inputs("Ban?", &[], &texts, None, |inputs| expand(&own, &inputs)).unwrap();
            made.queries
        };
        let one = |term: &str| Queries::Terms(vec![("ban".to_owned(), 0.5), (term.to_owned(), 0.5)]);
        assert_eq!(weights(0.0), one("zoo"));
        assert_eq!(weights(1000.0), one("zoo"));
        // With two terms, the one term of the second passage is not zoo, and all of its terms are.
        let two = |kept: f32| {
            let own = Expand::from(Kind::Rm3).with("terms", 2.0).unwrap().with("keep", kept).unwrap();
            let made = with_inputs("Ban?", &[], &texts, None, |inputs| expand(&own, &inputs)).unwrap();
            let Queries::Terms(weights) = made.queries else { panic!("no terms") };
            weights.into_iter().find(|(term, _)| term == "zoo").unwrap().1
        };
        // Kept 1: zoo 10 of 19. All: zoo 5 + 4.5 and bear 4.5 of 14.
        assert!((two(1.0) - 0.5 * 10.0 / 19.0).abs() < 1e-6, "{}", two(1.0));
        assert!((two(1000.0) - 0.5 * 9.5 / 14.0).abs() < 1e-6, "{}", two(1000.0));
    }

    #[test]
    fn grf_takes_the_terms_of_generated_answers_alike() {
        // zoo 2/3, cage 1/3 and bear 1: each answer weighs 1, so bear 1, zoo 2/3, cage 1/3 of 2.
        let chat = Scripted::saying(&["zoos: zoo cages", "bears"]);
        let own = Expand::from(Kind::Grf).with("n", 2.0).unwrap();
        let expansion =
            with_inputs("Ban zoos?", &["Yes."], &[], Some(&chat), |inputs| expand_grf(&own, &inputs))
                .unwrap();
        let Queries::Terms(weights) = &expansion.queries else { panic!("{expansion:?}") };
        let expected = [("zoo", 0.25 + 1.0 / 6.0), ("ban", 0.25), ("bear", 0.25), ("cage", 1.0 / 12.0)];
        assert_eq!(weights.len(), expected.len());
        for (wanted, worth) in expected {
            let weight = weights.iter().find(|(term, _)| term == wanted).map(|(_, weight)| *weight);
            assert!(
                weight.is_some_and(|weight| (weight - worth as f32).abs() < 1e-6),
                "{wanted}: {weight:?}"
            );
        }
        assert_eq!((expansion.form, expansion.describe().as_str()), (Form::GrfByModel, "GRF, by fake"));
        let alone =
            with_inputs("Ban zoos?", &["Bears run."], &[], None, |inputs| expand_grf(&own, &inputs)).unwrap();
        assert_eq!(
            (alone.form, alone.describe().as_str()),
            (Form::GrfStatements, "GRF, own statements (no model)")
        );
    }

    #[test]
    fn a_term_of_a_tenth_of_the_passages_is_taken_and_one_of_more_is_not() {
        let passages = [(vec!["zoo".to_owned(), "naïv".into(), "x".into(), "lion".into()], 1.0)];
        let best = |df: usize| {
            feedback(&passages, (10, 10), 30, |term| Ok::<_, Failed>(if term == "zoo" { df } else { 1 }))
        };
        assert_eq!(best(3).unwrap(), [("lion".to_owned(), 0.5), ("zoo".to_owned(), 0.5)]);
        assert_eq!(best(4).unwrap(), [("lion".to_owned(), 1.0)]);
    }

    #[test]
    fn with_no_feedback_the_questions_terms_are_left_and_a_note() {
        let expansion =
            with_inputs("Ban zoos?", &[], &[], None, |inputs| expand(&Kind::Rm3.into(), &inputs)).unwrap();
        assert_eq!(expansion.queries, Queries::Terms(vec![("ban".into(), 0.25), ("zoo".into(), 0.25)]));
        assert_eq!((expansion.added.len(), expansion.notes.len()), (0, 1));
        let expansion =
            with_inputs("?", &[], &[], None, |inputs| expand(&Kind::Rm3.into(), &inputs)).unwrap();
        assert_eq!(expansion.queries, Queries::Terms(Vec::new()));
    }

    #[test]
    fn a_stop_is_passed_on() {
        let stop = Stop::when_past(&Arc::new(AtomicU64::new(1)), 0);
        let failed = with_inputs("zoo", &[], &["zoo"], None, |inputs| {
            expand(&Kind::Rm3.into(), &ExpansionInputs { stop: &stop, ..inputs })
        });
        assert_eq!(failed, Err(Failed::Stopped));
    }
}

#[cfg(test)]
mod keqe_tests {
    use super::*;
    use crate::expand::testing::{Failed, Scripted, with_inputs};
    use crate::llm::{Chat, ChatError, Tokens};

    fn run(statements: &[&str], chat: Option<&dyn Chat>) -> Expansion {
        with_inputs("Q?", statements, &[], chat, |inputs| expand_keqe(&Kind::Keqe.into(), &inputs)).unwrap()
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
        assert_eq!(
            (expansion.notes.len(), expansion.cost.tokens),
            (0, Some(Tokens { prompt: 50, reply: 15 }))
        );
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
    fn q2d_asks_once_and_repeats_the_question_five_times_and_options_change_both() {
        let ask = |own: Expand| {
            let chat = Scripted::saying(&["a1", "a2"]);
            with_inputs("Q?", &[], &[], Some(&chat), |inputs| expand_keqe(&own, &inputs)).unwrap()
        };
        let q2d = ask(Kind::Q2d.into());
        assert_eq!((q2d.form, q2d.queries), (Form::Q2dByModel, Queries::join("Q?", 5, &["a1"])));
        let keqe = ask(Expand::from(Kind::Keqe).with("n", 2.0).unwrap().with("repeat", 3.0).unwrap());
        assert_eq!(keqe.queries, Queries::join("Q?", 3, &["a1", "a2"]));
    }

    #[test]
    fn a_stop_between_answers_is_passed_on() {
        let chat = Scripted::new(vec![Ok("a1".into()), Err(Stopped.into())]);
        let failed =
            with_inputs("Q?", &["Yes."], &[], Some(&chat), |inputs| expand_keqe(&Kind::Keqe.into(), &inputs));
        assert_eq!(failed, Err(Failed::Stopped));
    }
}
