//! RM3 as Anserini does it: the question's terms mixed with frequent terms of its first passages.

use std::collections::HashMap;

use super::types::{Added, AddedFrom, Expansion, ExpansionInputs, Form, Kind, Queries};
use crate::retrieve::terms;
use crate::work::Stopped;

const PASSAGES: usize = 10;
const TERMS: usize = 10;
/// The question's share of the mix.
const ORIGINAL: f64 = 0.5;

pub(super) fn expand<E: From<Stopped>>(inputs: &ExpansionInputs<'_, E>) -> Result<Expansion, E> {
    let question = stems(inputs.question);
    let mut passages = Vec::new();
    for listed in (inputs.first)(PASSAGES)? {
        if inputs.stop.is_set() {
            return Err(Stopped.into());
        }
        passages.push((stems(&listed.passage.contents()), f64::from(listed.score)));
    }
    let feedback = feedback(&passages, inputs.passages, inputs.document_frequency)?;
    let mut notes = Vec::new();
    if feedback.is_empty() {
        notes.push("the question's own list has no term to add; the question is searched alone".into());
    }
    let new = feedback.iter().filter(|(term, _)| !question.contains(term));
    let added = new.map(|(term, _)| Added::new(term.clone(), AddedFrom::Feedback)).collect();
    let weights = mix(&question, &feedback);
    let queries = Queries::Terms(weights.into_iter().map(|(term, weight)| (term, weight as f32)).collect());
    Ok(Expansion { kind: Kind::Rm3, form: Form::Rm3, queries, added, notes, tokens: None })
}

fn stems(text: &str) -> Vec<String> {
    terms(text).into_iter().map(|term| term.text).collect()
}

/// Terms and their weights, greatest first. Equal weights are in order of the terms; in Anserini their order depends on a hash.
type Weights = Vec<(String, f64)>;

/// The terms of the passages with the greatest weights. The sum of the weights is 1.
fn feedback<E>(
    passages: &[(Vec<String>, f64)],
    count: usize,
    document_frequency: impl Fn(&str) -> Result<usize, E>,
) -> Result<Weights, E> {
    let (mut common, mut sums): (HashMap<&str, bool>, HashMap<&str, f64>) = Default::default();
    for (stems, score) in passages.iter().take(PASSAGES) {
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
        for (term, share) in normalize(heaviest(times)) {
            *sums.entry(term).or_default() += share * score;
        }
    }
    let best = normalize(heaviest(sums));
    Ok(best.into_iter().map(|(term, weight)| (term.to_owned(), weight)).collect())
}

/// `[a-z0-9]{2,20}`.
fn is_plain(stem: &str) -> bool {
    (2..=20).contains(&stem.len()) && stem.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
}

/// The weights of the question and of the feedback, mixed by [`ORIGINAL`].
fn mix(question: &[String], feedback: &Weights) -> Weights {
    let mut weights: HashMap<&str, f64> = HashMap::new();
    for term in question {
        *weights.entry(term).or_default() += ORIGINAL / question.len() as f64;
    }
    for (term, weight) in feedback {
        *weights.entry(term).or_default() += (1.0 - ORIGINAL) * weight;
    }
    sort(weights).into_iter().map(|(term, weight)| (term.to_owned(), weight)).collect()
}

fn sort(weights: HashMap<&str, f64>) -> Vec<(&str, f64)> {
    let mut sorted: Vec<_> = weights.into_iter().collect();
    sorted.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    sorted
}

/// The [`TERMS`] terms with the greatest weights.
fn heaviest(weights: HashMap<&str, f64>) -> Vec<(&str, f64)> {
    let mut sorted = sort(weights);
    sorted.truncate(TERMS);
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
    use crate::expand::testing::{Failed, with_inputs};
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
        let passages: Vec<_> = case.passages.into_iter().map(|p| (p.terms, p.score)).collect();
        let feedback = feedback(&passages, case.n, |term| Ok::<_, Failed>(case.df[term])).unwrap();
        let weights = mix(&case.query_terms, &feedback);
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
        let expansion = with_inputs("Ban zoos?", &[], &texts, None, |inputs| expand(&inputs)).unwrap();
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
    fn a_term_of_a_tenth_of_the_passages_is_taken_and_one_of_more_is_not() {
        let passages = [(vec!["zoo".to_owned(), "naïv".into(), "x".into(), "lion".into()], 1.0)];
        let best =
            |df: usize| feedback(&passages, 30, |term| Ok::<_, Failed>(if term == "zoo" { df } else { 1 }));
        assert_eq!(best(3).unwrap(), [("lion".to_owned(), 0.5), ("zoo".to_owned(), 0.5)]);
        assert_eq!(best(4).unwrap(), [("lion".to_owned(), 1.0)]);
    }

    #[test]
    fn with_no_feedback_the_questions_terms_are_left_and_a_note() {
        let expansion = with_inputs("Ban zoos?", &[], &[], None, |inputs| expand(&inputs)).unwrap();
        assert_eq!(expansion.queries, Queries::Terms(vec![("ban".into(), 0.25), ("zoo".into(), 0.25)]));
        assert_eq!((expansion.added.len(), expansion.notes.len()), (0, 1));
        let expansion = with_inputs("?", &[], &[], None, |inputs| expand(&inputs)).unwrap();
        assert_eq!(expansion.queries, Queries::Terms(Vec::new()));
    }

    #[test]
    fn a_stop_is_passed_on() {
        let stop = Stop::when_past(&Arc::new(AtomicU64::new(1)), 0);
        let failed = with_inputs("zoo", &[], &["zoo"], None, |inputs| {
            expand(&ExpansionInputs { stop: &stop, ..inputs })
        });
        assert_eq!(failed, Err(Failed::Stopped));
    }
}
