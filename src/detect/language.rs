//! English only: the built-in detector reads only English, and the rules that make statements do too.
//!
//! A text counts as foreign if its language is detected reliably. That is rare for short questions, so for them the commonest words
//! of English and of other languages count too.

use std::sync::Arc;

use super::decision::DetectError;
use super::detector::{Both, Detector};
use super::rule::{Reading, Rule};
use super::text::foreign;
use crate::corpus::Passage;
use crate::question::common_words;
use crate::work::Stop;

/// A detector that gives no verdict on texts in other languages than English.
pub struct EnglishOnly(pub Arc<dyn Detector>);

impl Detector for EnglishOnly {
    fn key(&self) -> &str {
        self.0.key()
    }

    fn rule(&self) -> &Rule {
        self.0.rule()
    }

    fn fitted_on(&self) -> Option<usize> {
        self.0.fitted_on()
    }

    fn experimental(&self) -> bool {
        self.0.experimental()
    }

    fn at_once(&self) -> Option<usize> {
        self.0.at_once()
    }

    fn rereads(&self) -> bool {
        self.0.rereads()
    }

    fn usage(&self) -> Option<String> {
        self.0.usage()
    }

    fn read(&self, passage: &Passage, statement: &str, stop: &Stop) -> Result<Reading, DetectError> {
        english(&passage.text, "passage")?;
        english(statement, "statement")?;
        self.0.read(passage, statement, stop)
    }

    fn reads_both(&self, statements: [&str; 2]) -> bool {
        statements.iter().all(|statement| foreign(statement).is_none()) && self.0.reads_both(statements)
    }

    fn read_both(&self, passage: &Passage, statements: [&str; 2], stop: &Stop) -> Both {
        match english(&passage.text, "passage") {
            Ok(()) if self.reads_both(statements) => self.0.read_both(passage, statements, stop),
            _ => statements.map(|statement| self.read(passage, statement, stop)),
        }
    }
}

fn english(text: &str, what: &'static str) -> Result<(), DetectError> {
    foreign(text).map_or(Ok(()), |language| Err(DetectError::Foreign { what, language }))
}

/// The name of a question's language, or `another language`; `None` if it is English.
pub fn foreign_question(question: &str) -> Option<&'static str> {
    let (english, other) = common_words(question);
    match foreign(question) {
        Some(language) if english <= other => Some(language),
        _ if other > english => Some("another language"),
        _ => None,
    }
}

/// The number of passages sampled to detect a corpus's language.
const SAMPLED: usize = 9;

/// The most frequent language in a sample of the corpus's `count` passages; `None` if at least half of them are English. `text`
/// returns a passage's text.
pub fn foreign_corpus(count: usize, text: impl Fn(usize) -> String) -> Option<&'static str> {
    let sampled = count.min(SAMPLED);
    let found: Vec<Option<&str>> = (0..sampled).map(|i| foreign(&text(i * count / sampled))).collect();
    let frequency = |language: &Option<&'static str>| found.iter().filter(|one| *one == language).count();
    let most = found.iter().flatten().max_by_key(|language| frequency(&Some(**language)))?;
    let english = found.iter().filter(|language| language.is_none()).count();
    (english * 2 < sampled).then_some(*most)
}

pub(super) mod evidence {
    //! The sentence that decides a verdict.

    use std::ops::Range;

    use crate::corpus::Passage;
    use crate::detect::decision::DetectError;
    use crate::detect::detector::Detector;
    use crate::detect::text::sentences;
    use crate::work::{Stop, Stopped};

    /// The most sentences of a passage that is searched, because each sentence costs one verdict.
    const MOST: usize = 24;

    /// The sentence that a verdict rests on.
    #[derive(Clone, Debug, PartialEq)]
    pub struct EvidenceSentence {
        /// Its byte range in the passage's text.
        pub at: Range<usize>,
        /// How far the probability of support falls without it; `None` if it is the only sentence.
        pub fall: Option<f32>,
    }

    /// Finds the sentence whose removal lowers the probability of support most: that of the decision on both sides if the detector reads the opposite
    /// statement too. `None` if no removal lowers it, or if verdicts come from a server.
    ///
    /// # Errors
    /// The detector failed, or `stop` was set.
    pub fn evidence(
        detector: &dyn Detector,
        passage: &Passage,
        statement: &str,
        opposite: Option<&str>,
        stop: &Stop,
    ) -> Result<Option<EvidenceSentence>, DetectError> {
        let both = opposite.map(|opposite| [statement, opposite]).filter(|both| detector.reads_both(*both));
        let judge = |passage: &Passage| match both {
            None => detector.judge(passage, statement, stop),
            Some(both) => {
                let [own, other] = detector.read_both(passage, both, stop);
                let decision = detector.rule().decide([&own?, &other?]);
                Ok(decision.map_or(0.0, |decision| decision.supports(0) as f32))
            }
        };
        let all = sentences(&passage.text);
        if !detector.rereads() {
            return Ok(None);
        }
        match all.as_slice() {
            [] => return Ok(None),
            [only] => return Ok(Some(EvidenceSentence { at: only.clone(), fall: None })),
            _ if all.len() > MOST => return Ok(None),
            _ => {}
        }
        let whole = match judge(passage) {
            Err(DetectError::Foreign { .. }) => return Ok(None),
            whole => whole?,
        };
        let mut least = (whole, None);
        for sentence in all {
            if stop.is_set() {
                return Err(Stopped.into());
            }
            let text = format!("{}{}", &passage.text[..sentence.start], &passage.text[sentence.end..]);
            let without = judge(&Passage { text, ..passage.clone() })?;
            if without < least.0 {
                least = (without, Some(sentence));
            }
        }
        Ok(least.1.map(|at| EvidenceSentence { at, fall: Some(whole - least.0) }))
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use crate::detect::detector::Both;
        use crate::detect::rule::{Reading, Rule};
        use std::sync::Arc;
        use std::sync::atomic::AtomicU64;

        /// Supports a statement contained in the text. Stops as detectors do.
        #[derive(Default)]
        struct Word(Rule);
        impl Detector for Word {
            fn key(&self) -> &str {
                "word"
            }
            fn rule(&self) -> &Rule {
                &self.0
            }
            fn read(&self, passage: &Passage, statement: &str, stop: &Stop) -> Result<Reading, DetectError> {
                if stop.is_set() {
                    return Err(Stopped.into());
                }
                Ok(Reading::of(if passage.text.contains(statement) { 0.9 } else { 0.1 }))
            }
            /// Beside *slept* a statement rests on who came.
            fn reads_both(&self, [_, other]: [&str; 2]) -> bool {
                other == "slept"
            }
            fn read_both(&self, passage: &Passage, [_, other]: [&str; 2], stop: &Stop) -> Both {
                ["came", other].map(|word| self.read(passage, word, stop))
            }
        }

        #[test]
        fn of_two_sides_that_are_read_together_the_decision_has_the_sentence() {
            let passage =
                Passage { text: "It rained. The bears paced. Nobody came.".into(), ..Passage::default() };
            let found = |other| {
                let found = evidence(&Word::default(), &passage, "paced", Some(other), &Stop::never());
                passage.text[found.unwrap().unwrap().at].to_owned()
            };
            assert_eq!((found("slept"), found("ran")), ("Nobody came.".into(), "The bears paced.".into()));
        }

        #[test]
        fn the_decisive_sentence_is_found_and_an_unsupported_statement_has_none() {
            let passage =
                Passage { text: "It rained. The bears paced. Nobody came.".into(), ..Passage::default() };
            let found = |word| evidence(&Word::default(), &passage, word, None, &Stop::never()).unwrap();
            let sentence = found("paced").unwrap();
            assert_eq!(&passage.text[sentence.at], "The bears paced.");
            assert!(sentence.fall.is_some_and(|fall| (fall - 0.8).abs() < 1e-6), "{:?}", sentence.fall);
            assert_eq!(found("lions"), None);
            let one = Passage { text: "The bears paced.".into(), ..Passage::default() };
            let only = evidence(&Word::default(), &one, "paced", None, &Stop::never()).unwrap();
            assert_eq!(only, Some(EvidenceSentence { at: 0..16, fall: None }));
        }

        #[test]
        fn a_stopped_search_is_an_error_and_not_no_sentence() {
            let passage = Passage { text: "It rained. The bears paced.".into(), ..Passage::default() };
            let stop = Stop::when_past(&Arc::new(AtomicU64::new(1)), 0);
            assert_eq!(
                evidence(&Word::default(), &passage, "paced", None, &stop),
                Err(DetectError::Stopped(Stopped))
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_in_other_languages_are_recognised_and_english_ones_never() {
        for (question, language) in [
            ("¿Deberían prohibirse los zoológicos?", Some("Spanish")),
            ("Должны ли зоопарки быть запрещены?", Some("Russian")),
            ("動物園は禁止されるべきですか？", Some("Japanese")),
            ("Soll der Wehrdienst wieder eingeführt werden?", Some("German")),
            ("Should zoos be banned?", None),
            ("Euthanasia should be legal.", None),
            ("Legalize marijuana?", None),
            ("Does space exploration justify its cost?", None),
            ("Is nuclear power safe?", None),
            ("", None),
        ] {
            assert_eq!(foreign_question(question), language, "{question}");
        }
    }

    const GERMAN: &str = "Zoos sollten verboten werden, weil wilde Tiere in engen Käfigen leiden und dort nicht so leben können, \
                          wie es ihrer Art entspricht.";
    const ENGLISH: &str = "Zoos should be banned, because wild animals suffer in small cages and cannot live there as they should.";

    #[test]
    fn a_corpus_has_the_language_of_most_of_its_passages() {
        let mixed =
            |german: usize| foreign_corpus(90, |i| if i < german { GERMAN } else { ENGLISH }.to_owned());
        assert_eq!([0, 30, 60, 90].map(mixed), [None, None, Some("German"), Some("German")]);
        assert_eq!(foreign_corpus(0, |_| unreachable!()), None);
        assert_eq!(foreign_corpus(1, |_| GERMAN.to_owned()), Some("German"));
    }

    #[derive(Default)]
    struct Yes(Rule);

    impl Detector for Yes {
        fn key(&self) -> &str {
            "yes"
        }

        fn rule(&self) -> &Rule {
            &self.0
        }

        fn read(&self, _: &Passage, _: &str, _: &Stop) -> Result<Reading, DetectError> {
            Ok(Reading::of(1.0))
        }
    }

    #[test]
    fn a_foreign_passage_or_statement_gets_no_verdict_and_the_reason_names_its_language() {
        let only = EnglishOnly(Arc::new(Yes::default()));
        let judge = |text: &str, statement: &str| {
            let passage = Passage { text: text.into(), ..Passage::default() };
            only.judge(&passage, statement, &Stop::never()).map_err(|error| error.to_string())
        };
        assert_eq!(judge(ENGLISH, "Zoos should be banned."), Ok(1.0));
        let message = judge(GERMAN, "Zoos should be banned.").unwrap_err();
        assert_eq!(message, "the passage seems to be German, and this detector reads English only");
        assert!(judge(ENGLISH, GERMAN).unwrap_err().contains("the statement seems to be German"));
        let english = Passage { text: ENGLISH.into(), ..Passage::default() };
        let [one, other] = only.read_both(&english, [GERMAN, "Zoos should be banned."], &Stop::never());
        assert!(matches!(one, Err(DetectError::Foreign { what: "statement", .. })) && other.is_ok());
    }
}
