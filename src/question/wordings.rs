//! Words one question in many ways by rule, so that one can see what the wording alone does to a list.
//!
//! The forms follow the studies on wording: each side's own words and questions that presuppose a side (the sycophancy test of BERDS),
//! a negation (NevIR, Weller et al. 2023), an exclusion (ExcluIR, Zhang et al. 2024), a list of keywords, and a person who asks. Yes/no
//! questions, statements and noun phrases have rules. A form that no rule makes is [`Missing`], and the user may type it.

use super::clause::{Clause, Finite, affirm};
use super::deny::lower_first;
use super::statements::{is_beyond_rules, one_sentence, without_label};
use super::words::{Case, Word, sentence};
use super::{By, Question, draft, lexicon as lex, negate, statements, verbs, words};

/// The form of a wording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Frame {
    /// The question, asked neutrally.
    Neutral,
    /// The words of a side: the statement at this index.
    As(usize),
    /// A question that presupposes a side: `Why should zoos be banned?`
    Loaded(usize),
    /// One side and not the other: `reasons why …, but not reasons why …`.
    Only(usize),
    /// The question with *not*, or everything other than the topic.
    Negated,
    /// Its content words.
    Keywords,
    /// Asked by a person: `As a parent, …`.
    Persona,
    /// Typed by the user.
    Typed,
}

impl Frame {
    /// Its name in tables: `as-1`, `loaded-2`, `keywords`.
    pub fn name(self) -> String {
        match self {
            Frame::Neutral => "neutral".into(),
            Frame::As(side) => format!("as-{}", side + 1),
            Frame::Loaded(side) => format!("loaded-{}", side + 1),
            Frame::Only(side) => format!("only-{}", side + 1),
            Frame::Negated => "negated".into(),
            Frame::Keywords => "keywords".into(),
            Frame::Persona => "persona".into(),
            Frame::Typed => "typed".into(),
        }
    }

    /// The side that the wording takes, as an index of a statement.
    pub fn side(self) -> Option<usize> {
        match self {
            Frame::As(side) | Frame::Loaded(side) | Frame::Only(side) => Some(side),
            _ => None,
        }
    }
}

/// Why a wording has no text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Missing {
    /// No rule makes it.
    #[error("no rule words this question so; type it")]
    NoRule,
    /// It has the words of another wording.
    #[error("the same words as {0}")]
    SameAs(String),
    /// A language model did not give it.
    #[error("{0}")]
    NoReply(String),
}

/// A wording of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Framed {
    /// Its form.
    pub frame: Frame,
    /// Its text, or why there is none.
    pub text: Result<String, Missing>,
    /// Who worded it.
    pub by: By,
}

/// The person who asks by default.
pub const PERSONA: &str = "a parent";

/// The wordings of a question, the neutral one first: then every side's words, and for two sides the loaded and the excluding questions;
/// then negated, as keywords and as `persona` asks. Their order is that of `+ask@n`.
///
/// Texts are compared without case and marks; a repeated one is [`Missing::SameAs`] the first.
///
/// ```
/// use parallax::question::{resolve, wordings::{wordings, PERSONA}};
/// let (question, _) = resolve("Should zoos be banned?", &[], &[]);
/// let texts: Vec<String> = wordings(&question, PERSONA).into_iter().filter_map(|one| one.text.ok()).collect();
/// assert_eq!(texts[3], "Why should zoos be banned?");
/// assert_eq!(texts[5], "reasons why zoos should be banned, but not reasons why zoos should not be banned");
/// assert_eq!(texts[7], "Should zoos not be banned?");
/// ```
pub fn wordings(question: &Question, persona: &str) -> Vec<Framed> {
    let text = question.text.trim();
    let is_side = question.perspectives.iter().any(|side| plain(side) == plain(text));
    let neutral = if is_side { ask(text).unwrap_or_else(|| text.to_owned()) } else { text.to_owned() };
    let topic = topic(text).filter(|_| question.perspectives.is_empty());
    let sides: Vec<String> = match &topic {
        Some(topic) => ["for", "against"].map(|side| format!("There is a good case {side} {topic}.")).into(),
        None => question.perspectives.clone(),
    };
    let order: Vec<usize> = match question.sides() {
        Some(sides) => sides.into(),
        None => (0..sides.len()).collect(),
    };
    let two = sides.len() == 2;
    let mut made: Vec<(Frame, Option<String>)> = vec![(Frame::Neutral, Some(neutral.clone()))];
    made.extend(order.iter().map(|side| (Frame::As(*side), Some(sides[*side].clone()))));
    if two || sides.is_empty() {
        let pair = if two { [order[0], order[1]] } else { [0, 1] };
        made.extend(pair.map(|side| (Frame::Loaded(side), two.then(|| loaded(&sides[side])).flatten())));
        let only = |side: usize| match &topic {
            Some(topic) => {
                let [own, other] = if side == 0 { ["for", "against"] } else { ["against", "for"] };
                Some(format!("the case {own} {topic}, but not the case {other} it"))
            }
            None if two => excluding(&sides[side], &sides[1 - side.min(1)]),
            None => None,
        };
        made.extend(pair.map(|side| (Frame::Only(side), only(side))));
    }
    let negated = match &topic {
        Some(topic) => Some(format!("topics other than {topic}")),
        None => order.first().filter(|_| two).and_then(|side| question_of(&sides[*side], true)),
    };
    made.push((Frame::Negated, negated));
    made.push((Frame::Keywords, keywords(text)));
    made.push((Frame::Persona, as_persona(&neutral, topic.as_deref(), persona)));
    distinct(made.into_iter().map(|(frame, text)| Framed {
        frame,
        by: match frame {
            Frame::Neutral | Frame::As(_) if topic.is_none() => By::Given,
            _ if text.is_some() => By::Rule,
            _ => By::None,
        },
        text: text.ok_or(Missing::NoRule),
    }))
}

/// Names the first of equal texts in the place of the later ones.
pub fn distinct(all: impl IntoIterator<Item = Framed>) -> Vec<Framed> {
    let mut seen: Vec<(String, String)> = Vec::new();
    let mut kept = Vec::new();
    for mut one in all {
        if let Ok(text) = &one.text {
            let key = plain(text);
            match seen.iter().find(|(known, _)| *known == key) {
                Some((_, name)) => one.text = Err(Missing::SameAs(name.clone())),
                None => seen.push((key, one.frame.name())),
            }
        }
        kept.push(one);
    }
    kept
}

/// The texts that `+ask@n` searches for: `text` itself, then its other wordings, at most `n` in all. A text that is not the question's own,
/// such as one of its statements, gets the wordings that the rules give it.
pub fn texts_to_ask(question: &Question, text: &str, n: usize) -> Vec<String> {
    let own = plain(text) == plain(&question.text);
    let alone = || {
        let made = statements(text);
        Question {
            text: text.into(),
            perspectives: made.perspectives,
            supports: made.supports,
            ..Question::default()
        }
    };
    let others = if own { wordings(question, PERSONA) } else { wordings(&alone(), PERSONA) };
    let mut texts = vec![text.to_owned()];
    for other in others.into_iter().filter_map(|one| one.text.ok()) {
        if texts.iter().all(|known| plain(known) != plain(&other)) {
            texts.push(other);
        }
    }
    texts.truncate(n.max(1));
    texts
}

/// The letters and digits of a text in lower case, by which wordings are compared.
fn plain(text: &str) -> String {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '\'' && c != '’');
    words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect::<Vec<_>>().join(" ")
}

/// The noun phrase that a text is or asks about.
fn topic(text: &str) -> Option<String> {
    let [first, _] = draft(text)?;
    first.strip_prefix("There is a good case for ")?.strip_suffix('.').map(str::to_owned)
}

/// `Why should zoos be banned?`: a question that presupposes the statement.
fn loaded(statement: &str) -> Option<String> {
    question_of(statement, false).map(|asked| format!("Why {}", with_small_letter(&asked)))
}

/// The text with a small first letter.
fn with_small_letter(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| format!("{}{}", first.to_lowercase(), letters.as_str()))
}

/// `reasons why zoos should be banned, but not reasons why zoos should not be banned`
fn excluding(own: &str, other: &str) -> Option<String> {
    let clause = |statement: &str| {
        let mut all = words::words(statement);
        let case = words::case_of(&all);
        negate::read(&all, case)?;
        lower_first(&mut all, case, true);
        // A sentence begins with a capital, which a clause within one has only for a name.
        let whole = sentence(&all);
        let clause = whole.trim_end_matches(['.', '!', '?']);
        let small = all.first()?.core.starts_with(char::is_lowercase);
        Some(if small { with_small_letter(clause) } else { clause.to_owned() })
    };
    Some(format!("reasons why {}, but not reasons why {}", clause(own)?, clause(other)?))
}

/// The content words of a text, in their order; `None` if there are none, or if the text is not English.
fn keywords(text: &str) -> Option<String> {
    let all = words::words(text);
    if all.len() > 1 && is_beyond_rules(&all) {
        return None;
    }
    let bare = |key: &str| {
        lex::is_english(key)
            || lex::is_determiner(key)
            || lex::is_preposition(key)
            || lex::is_pronoun(key)
            || lex::is_auxiliary(key)
            || lex::is_conjunction(key)
            || lex::is_subordinator(key)
            || lex::is_wh(key)
            || lex::contracted_negative(key).is_some()
            || matches!(key, "" | "not" | "to" | "there")
    };
    let content: Vec<&str> =
        all.iter().filter(|word| !bare(&word.key)).map(|word| word.core.as_str()).collect();
    (!content.is_empty()).then(|| content.join(" "))
}

/// `As a parent, I want to know: should zoos be banned?`
fn as_persona(neutral: &str, topic: Option<&str>, persona: &str) -> Option<String> {
    let all = words::words(neutral);
    if let Some(topic) = topic {
        return Some(format!("As {persona}, what should I know about {topic}?"));
    }
    let first = all.first()?;
    let asks = lex::is_auxiliary(&first.key) || lex::is_wh(&first.key);
    if is_beyond_rules(&all) || !asks {
        return None;
    }
    Some(format!("As {persona}, I want to know: {}", with_small_letter(neutral)))
}

/// The question that a plain statement answers: `Zoos should be banned.` → `Should zoos be banned?`. A negative statement gives the question
/// of its opposite. `None` if no rule applies, or if the question would not give the statement back.
///
/// ```
/// assert_eq!(parallax::question::ask("Zoos should be banned.").as_deref(), Some("Should zoos be banned?"));
/// ```
pub fn ask(statement: &str) -> Option<String> {
    let (question, clause) = clause_question(statement, |_| false)?;
    gives_back(&question, &clause).then_some(question)
}

/// The question that presupposes a statement, or with `denied` its opposite: `Should zoos not be banned?`.
fn question_of(statement: &str, denied: bool) -> Option<String> {
    let (affirmative, clause) = clause_question(statement, |_| false)?;
    let (question, _) = clause_question(statement, |negative| negative != denied)?;
    gives_back(&affirmative, &clause).then_some(question)
}

/// Whether the rules turn a question back into its clause.
fn gives_back(question: &str, clause: &Clause) -> bool {
    let made = statements(question);
    let key = |text: &str| text.to_lowercase().split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    made.perspectives.first().is_some_and(|first| key(first) == key(&affirm(clause)))
}

/// The question of a statement's affirmative clause; `denies` says from the statement's own negation whether *not* goes into it.
fn clause_question(statement: &str, denies: impl Fn(bool) -> bool) -> Option<(String, Clause)> {
    let all = words::words(statement);
    if is_beyond_rules(&all) {
        return None;
    }
    let body = without_label(one_sentence(&all)?);
    let read = negate::read(body, words::case_of(&all))?;
    let not = denies(read.negative);
    let clause = read.clause;
    let mut subject = clause.subject.clone();
    lower_first(&mut subject, clause.case, clause.opener.is_empty());
    // The first of several words is rarely a name: `Capital punishment`, but `French wine`.
    if let [first, next, ..] = &mut subject[..]
        && clause.case == Case::Sentence
        && clause.opener.is_empty()
        && !next.is_capitalised()
        && !names_people(&first.key)
        && first.core.chars().skip(1).all(|c| !c.is_uppercase())
    {
        *first = first.with_core(&first.core.to_lowercase());
    }
    let (auxiliary, mut tail) = match &clause.finite {
        Finite::Auxiliary(word) => (Word::plain(word), clause.rest.clone()),
        Finite::Lexical { adverbs, base, form } => {
            let tail = adverbs.iter().chain([base]).chain(&clause.rest).cloned().collect();
            (Word::plain(verbs::support(*form)), tail)
        }
    };
    // `Execution helps alleviate …`: the verb is within what was taken for the subject.
    let hidden = subject
        .last()
        .and_then(|last| verbs::base_of_third(&last.key))
        .is_some_and(|base| verbs::is_sure_base(&base));
    if hidden && subject.len() > 1 && auxiliary.key == "do" {
        return None;
    }
    if not {
        tail.insert(0, Word::plain(&words::in_case("not", clause.case)));
    }
    let question = clause.sentence_of(&[auxiliary], &subject, &tail);
    let question = format!("{}?", question.strip_suffix('.')?);
    Some((question, clause))
}

/// Whether a word names the people, language or faith of a place, or a place by a possessive: `American`, `Britain's`.
fn names_people(key: &str) -> bool {
    const NAMES: [&str; 9] = ["french", "dutch", "greek", "swiss", "islamic", "catholic", "arab", "i", "god"];
    let ends = ["an", "ish", "ese", "'s"].iter().any(|end| key.ends_with(end));
    NAMES.contains(&key) || (ends && !lex::is_determiner(key))
}

#[cfg(test)]
mod tests {
    use super::super::resolve;
    use super::*;

    fn texts(asked: &str) -> Vec<(String, Result<String, Missing>)> {
        let (question, _) = resolve(asked, &[], &[]);
        wordings(&question, PERSONA).into_iter().map(|one| (one.frame.name(), one.text)).collect()
    }

    fn of(asked: &str, name: &str) -> Result<String, Missing> {
        let all = texts(asked);
        let found = all.iter().find(|(own, _)| own == name);
        found.unwrap_or_else(|| panic!("{name} in {all:?}")).1.clone()
    }

    #[test]
    fn a_yes_no_question_has_ten_wordings() {
        let all = texts("Should zoos be banned?");
        let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
        let expected = "neutral as-1 as-2 loaded-1 loaded-2 only-1 only-2 negated keywords persona";
        assert_eq!(names, expected.split(' ').collect::<Vec<_>>());
        assert_eq!(of("Should zoos be banned?", "loaded-2").unwrap(), "Why should zoos not be banned?");
        assert_eq!(of("Should zoos be banned?", "keywords").unwrap(), "zoos banned");
        assert_eq!(
            of("Should zoos be banned?", "persona").unwrap(),
            "As a parent, I want to know: should zoos be banned?"
        );
    }

    #[test]
    fn questions_with_another_verb_are_negated_and_loaded_as_english_does_it() {
        let working = "Is working from home good for companies?";
        assert_eq!(of(working, "negated").unwrap(), "Is working from home not good for companies?");
        assert_eq!(of(working, "loaded-1").unwrap(), "Why is working from home good for companies?");
        let zoos = "Do zoos protect animals?";
        assert_eq!(of(zoos, "negated").unwrap(), "Do zoos not protect animals?");
        assert_eq!(of(zoos, "loaded-2").unwrap(), "Why do zoos not protect animals?");
        assert_eq!(
            of(zoos, "only-2").unwrap(),
            "reasons why zoos do not protect animals, but not reasons why zoos protect animals"
        );
    }

    #[test]
    fn a_statement_is_asked_neutrally_as_a_question() {
        assert_eq!(
            of("We should ban sexist advertising.", "neutral").unwrap(),
            "Should we ban sexist advertising?"
        );
        assert_eq!(
            of("We should ban sexist advertising.", "as-1").unwrap(),
            "We should ban sexist advertising."
        );
    }

    #[test]
    fn a_noun_phrase_has_wordings_about_its_topic() {
        assert_eq!(of("immigration", "as-2").unwrap(), "There is a good case against immigration.");
        assert_eq!(of("immigration", "negated").unwrap(), "topics other than immigration");
        assert_eq!(
            of("immigration", "only-1").unwrap(),
            "the case for immigration, but not the case against it"
        );
        assert_eq!(
            of("immigration", "persona").unwrap(),
            "As a parent, what should I know about immigration?"
        );
        assert_eq!(of("immigration", "keywords"), Err(Missing::SameAs("neutral".into())));
    }

    #[test]
    fn a_form_that_no_rule_makes_is_said_to_be_so() {
        let asked = "Which energy source should replace coal?";
        for name in ["loaded-1", "only-2", "negated"] {
            assert_eq!(of(asked, name), Err(Missing::NoRule), "{name}");
        }
        assert!(Missing::NoRule.to_string().contains("type it"));
        assert_eq!(of(asked, "keywords").unwrap(), "energy source replace coal");
        let german = "Sollten Zoos verboten werden?";
        assert!(texts(german).iter().skip(1).all(|(_, text)| text.is_err()), "{:?}", texts(german));
        assert!(texts("").iter().skip(1).all(|(_, text)| text.is_err()));
    }

    #[test]
    fn asking_n_times_begins_with_the_text_itself_and_repeats_nothing() {
        let (question, _) = resolve("Should zoos be banned?", &[], &[]);
        assert_eq!(texts_to_ask(&question, "Should zoos be banned?", 1), ["Should zoos be banned?"]);
        assert_eq!(
            texts_to_ask(&question, "Should zoos be banned?", 3),
            ["Should zoos be banned?", "Zoos should be banned.", "Zoos should not be banned."]
        );
        let as_side = texts_to_ask(&question, "Zoos should not be banned.", 9);
        assert_eq!(as_side[0], "Zoos should not be banned.");
        assert!(as_side.contains(&"Should zoos be banned?".to_owned()), "{as_side:?}");
        let mut keys: Vec<String> = as_side.iter().map(|text| plain(text)).collect();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), as_side.len());
    }

    #[test]
    fn a_claim_becomes_the_question_that_it_answers() {
        for (claim, question) in [
            ("Zoos should be banned.", "Should zoos be banned?"),
            ("The death penalty deters crime", "Does the death penalty deter crime?"),
            (
                "Banning child performers would not protect them",
                "Would banning child performers protect them?",
            ),
            ("French wine is overrated.", "Is French wine overrated?"),
            ("Capital punishment is justified in Africa.", "Is capital punishment justified in Africa?"),
        ] {
            assert_eq!(ask(claim).as_deref(), Some(question), "{claim}");
        }
        for none in ["", "Zoos", "Why zoos?"] {
            assert_eq!(ask(none), None, "{none}");
        }
    }
}
