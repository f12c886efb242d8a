//! The types of expansions: their kinds, inputs and results.

use std::collections::HashSet;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use std::sync::Arc;

use super::talk;
use super::talk::Cost;
use crate::corpus::{Passage, PassageIx};
use crate::llm::{Chat, Prompts};
use crate::question::Written;
use crate::work::Stop;

/// How a question is expanded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// One query per perspective; the lists are merged round-robin.
    Perspectives,
    /// Hypothetical answers added to the question.
    Keqe,
    /// Sentences copied from the first passages, and hypothetical answers, added to the question.
    Csqe,
    /// Weighted terms from the first passages. There is no text that a dense lane could embed.
    Rm3,
    /// Weighted terms from hypothetical answers (Mackie et al. 2023).
    Grf,
    /// One hypothetical answer, asked for without examples (Wang et al. 2023).
    Q2d,
    /// One hypothetical answer, written with the first passages in the prompt.
    Q2dPrf,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 7] =
        [Kind::Perspectives, Kind::Keqe, Kind::Csqe, Kind::Rm3, Kind::Grf, Kind::Q2d, Kind::Q2dPrf];

    /// Whether it makes weighted terms, which an encoder cannot read.
    pub fn makes_terms(self) -> bool {
        matches!(self, Kind::Rm3 | Kind::Grf)
    }

    /// Whether it asks a language model, if there is one.
    pub fn asks_chat(self) -> bool {
        self != Kind::Rm3
    }

    /// Its options.
    pub fn options(self) -> &'static [ExpandOption] {
        const fn whole(name: &'static str, default: f32, least: f32) -> ExpandOption {
            ExpandOption { name, default, least, most: 1000.0, whole: true }
        }
        const WEIGHT: ExpandOption =
            ExpandOption { name: "weight", default: 0.5, least: 0.0, most: 1.0, whole: false };
        const SHOWN: [ExpandOption; 3] =
            [whole("passages", 10.0, 0.0), whole("words", 128.0, 1.0), whole("tokens", 0.0, 0.0)];
        match self {
            Kind::Perspectives => const { &[whole("most", 12.0, 1.0)] },
            Kind::Keqe => const { &[whole("n", 5.0, 1.0), whole("repeat", 0.0, 0.0)] },
            Kind::Csqe => {
                const {
                    &[
                        whole("copies", 2.0, 0.0),
                        whole("answers", 2.0, 0.0),
                        SHOWN[0],
                        SHOWN[1],
                        SHOWN[2],
                        whole("repeat", 0.0, 0.0),
                        whole("sentences", 5.0, 1.0),
                    ]
                }
            }
            Kind::Rm3 => {
                const { &[whole("docs", 10.0, 1.0), whole("terms", 10.0, 1.0), WEIGHT, whole("keep", 0.0, 0.0)] }
            }
            Kind::Grf => const { &[whole("n", 5.0, 1.0), whole("terms", 10.0, 1.0), WEIGHT] },
            Kind::Q2d => const { &[whole("repeat", 5.0, 1.0)] },
            Kind::Q2dPrf => {
                const { &[SHOWN[0], SHOWN[1], SHOWN[2], whole("repeat", 5.0, 1.0), whole("sentences", 5.0, 1.0)] }
            }
        }
    }
}

/// An option of an expansion: a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExpandOption {
    /// Its name in a recipe.
    pub name: &'static str,
    /// Its value if it is not set.
    pub default: f32,
    least: f32,
    most: f32,
    whole: bool,
}

impl ExpandOption {
    fn takes(&self, value: f32) -> bool {
        (self.least..=self.most).contains(&value) && (!self.whole || value.fract() == 0.0)
    }
}

impl fmt::Display for ExpandOption {
    /// `docs=10`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.default)
    }
}

/// An expansion with its options.
#[derive(Clone, Debug, PartialEq)]
pub struct Expand {
    /// How the question is expanded.
    pub kind: Kind,
    /// The language model that is asked, or whose recorded replies count; `None` for the one that the user named for all lanes.
    pub llm: Option<String>,
    /// The options that are set to another value than the default, in the order of [`Kind::options`].
    set: Vec<(&'static str, f32)>,
}

impl From<Kind> for Expand {
    fn from(kind: Kind) -> Self {
        Expand { kind, llm: None, set: Vec::new() }
    }
}

impl Expand {
    /// Sets an option.
    ///
    /// # Errors
    /// The kind has no such option, or the value is out of its range; holds what was expected.
    pub fn with(mut self, name: &str, value: f32) -> Result<Self, String> {
        let known = self.kind.options();
        let option = known.iter().find(|option| option.name == name && option.takes(value));
        let Some(option) = option else {
            let known: Vec<String> = known.iter().map(ToString::to_string).collect();
            let range = match known.is_empty() {
                true => "llm=NAME".to_owned(),
                false => format!("{} (these are the defaults) or llm=NAME", known.join(", ")),
            };
            return Err(format!("one of {range}, found `{name}={value}`"));
        };
        self.set.retain(|(set, _)| *set != option.name);
        if value != option.default {
            self.set.push((option.name, value));
        }
        let place = |name: &str| known.iter().position(|option| option.name == name);
        self.set.sort_by_key(|(name, _)| place(name));
        Ok(self)
    }

    /// The options that differ from the default.
    pub fn set(&self) -> &[(&'static str, f32)] {
        &self.set
    }

    /// The value of one of the kind's options.
    pub(super) fn number(&self, name: &str) -> f32 {
        let set = self.set.iter().find(|(set, _)| *set == name).map(|(_, value)| *value);
        let default = || self.kind.options().iter().find(|option| option.name == name);
        set.or_else(|| default().map(|option| option.default)).unwrap_or_default()
    }

    /// The value of one of the kind's whole numbers.
    pub(super) fn count(&self, name: &str) -> usize {
        self.number(name) as usize
    }

    /// How often the question is repeated beside so many texts: the option `repeat`, by default once a text.
    pub(super) fn repeat(&self, texts: usize) -> usize {
        match self.count("repeat") {
            0 => texts.max(1),
            count => count,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Perspectives => "perspectives",
            Kind::Keqe => "keqe",
            Kind::Csqe => "csqe",
            Kind::Rm3 => "rm3",
            Kind::Grf => "grf",
            Kind::Q2d => "q2d",
            Kind::Q2dPrf => "q2d-prf",
        })
    }
}

/// No expansion has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no expansion is called `{0}`; choose perspectives, keqe, csqe, rm3, grf, q2d or q2d-prf")]
pub struct KindError(String);

impl FromStr for Kind {
    type Err = KindError;

    fn from_str(text: &str) -> Result<Self, KindError> {
        let name = text.trim().to_ascii_lowercase();
        Kind::ALL.into_iter().find(|kind| kind.to_string() == name).ok_or_else(|| KindError(text.to_owned()))
    }
}

/// Which form of an expansion ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// A model wrote the perspectives.
    PerspectivesByModel,
    /// They came with the question.
    PerspectivesGiven,
    /// The question's own statements are used instead.
    Statements,
    /// A model wrote the answers.
    KeqeByModel,
    /// The question's own statements are used as answers.
    KeqeStatements,
    /// A model copied sentences and wrote answers.
    CsqeByModel,
    /// The sentences nearest to the question were taken.
    CsqeExtractive,
    /// Terms of the first passages.
    Rm3,
    /// Terms of a model's answers.
    GrfByModel,
    /// Terms of the question's own statements.
    GrfStatements,
    /// A model wrote the answer.
    Q2dByModel,
    /// The question's own statements are used as answers.
    Q2dStatements,
    /// A model wrote the answer with the first passages in the prompt.
    Q2dPrfByModel,
    /// The sentences nearest to the question were taken.
    Q2dPrfExtractive,
    /// There was nothing to add.
    QuestionAlone,
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Form::PerspectivesByModel => "perspectives, by the model",
            Form::PerspectivesGiven => "perspectives, from the question set",
            Form::Statements => "perspectives, own statements (no model)",
            Form::KeqeByModel => "KEQE, by the model",
            Form::KeqeStatements => "KEQE, own statements (no model)",
            Form::CsqeByModel => "CSQE, by the model",
            Form::CsqeExtractive => "CSQE, extractive (no model)",
            Form::Rm3 => "RM3",
            Form::GrfByModel => "GRF, by the model",
            Form::GrfStatements => "GRF, own statements (no model)",
            Form::Q2dByModel => "Q2D, by the model",
            Form::Q2dStatements => "Q2D, own statements (no model)",
            Form::Q2dPrfByModel => "Q2D/PRF, by the model",
            Form::Q2dPrfExtractive => "Q2D/PRF, extractive (no model)",
            Form::QuestionAlone => "the question alone",
        })
    }
}

impl Form {
    /// The method's name alone.
    pub(super) fn method(self) -> &'static str {
        match self {
            Form::PerspectivesByModel | Form::PerspectivesGiven | Form::Statements => "perspectives",
            Form::KeqeByModel | Form::KeqeStatements => "KEQE",
            Form::CsqeByModel | Form::CsqeExtractive => "CSQE",
            Form::Rm3 => "RM3",
            Form::GrfByModel | Form::GrfStatements => "GRF",
            Form::Q2dByModel | Form::Q2dStatements => "Q2D",
            Form::Q2dPrfByModel | Form::Q2dPrfExtractive => "Q2D/PRF",
            Form::QuestionAlone => "the question alone",
        }
    }
}

/// The origin of an added text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddedFrom {
    /// The question set's own expansion.
    Given,
    /// The question's statement at this place, from 0.
    Statement(usize),
    /// A model's reply.
    Model {
        /// Its name.
        model: String,
        /// Whether it was read from recorded replies.
        recorded: bool,
        /// Which of several replies to the same prompt, from 0.
        sample: u32,
    },
    /// A passage of the first-pass list.
    Passage {
        /// The passage.
        at: PassageIx,
        /// Its rank in that list, from 1.
        rank: usize,
    },
    /// Terms counted in the first passages.
    Feedback,
}

/// A text that was added to the question.
#[derive(Clone, Debug, PartialEq)]
pub struct Added {
    /// The text.
    pub text: String,
    /// A perspective's name, which is not searched for.
    pub name: Option<String>,
    /// Its origin.
    pub source: AddedFrom,
    /// Sentences copied from passages: the range of each in the text, and its passage; `None` if the model did not copy exactly.
    pub sentences: Vec<(Range<usize>, Option<PassageIx>)>,
}

impl Added {
    pub(super) fn new(text: String, source: AddedFrom) -> Self {
        Added { text, name: None, source, sentences: Vec::new() }
    }
}

/// The queries that replace the question.
#[derive(Clone, Debug, PartialEq)]
pub enum Queries {
    /// One list per query, merged in turn; the list of the unexpanded question is not among them.
    Each(Vec<String>),
    /// One list.
    Joined {
        /// The text to search for by terms.
        terms: String,
        /// The texts whose embeddings are averaged.
        vectors: Vec<String>,
    },
    /// One list by terms: stems and their weights, greatest weight first.
    Terms(Vec<(String, f32)>),
}

impl Queries {
    /// Joins the question, `copies` times, and each text once; one vector for the question and one per text.
    pub(super) fn join(question: &str, copies: usize, texts: &[&str]) -> Self {
        let terms: Vec<&str> = std::iter::repeat_n(question, copies).chain(texts.iter().copied()).collect();
        let vectors = std::iter::once(question).chain(texts.iter().copied()).map(str::to_owned).collect();
        Queries::Joined { terms: terms.join("\n"), vectors }
    }
}

/// An expanded question.
#[derive(Clone, Debug, PartialEq)]
pub struct Expansion {
    /// The kind of expansion that was requested.
    pub kind: Kind,
    /// The form that ran.
    pub form: Form,
    /// The queries to search for.
    pub queries: Queries,
    /// The texts added to the question, in order of generation.
    pub added: Vec<Added>,
    /// Failures and what was done instead; may quote a server.
    pub notes: Vec<String>,
    /// The cost of all replies, including useless ones.
    pub cost: Cost,
}

/// A passage of the first-pass BM25 list of the unexpanded question.
#[derive(Clone, Debug, PartialEq)]
pub struct FirstPassHit {
    /// Its position in the corpus.
    pub at: PassageIx,
    /// The passage.
    pub passage: Arc<Passage>,
    /// Its BM25 score.
    pub score: f32,
}

/// The cosine of each text with the question.
pub type Similarity<'a, E> = &'a dyn Fn(&[&str]) -> Result<Vec<f32>, E>;

/// Everything that an expansion may use.
pub struct ExpansionInputs<'a, E> {
    /// The question.
    pub question: &'a str,
    /// Its statements.
    pub statements: &'a [String],
    /// Perspectives from the question set; if there are any, no model is asked.
    pub given: &'a [Written],
    /// The language model, if there is one.
    pub chat: Option<&'a dyn Chat>,
    /// The prompts for the model.
    pub prompts: &'a Prompts,
    /// Returns the BM25 list of the unexpanded question, to the given depth.
    pub first: &'a dyn Fn(usize) -> Result<Vec<FirstPassHit>, E>,
    /// Computed with the built-in encoder.
    pub similarity: Similarity<'a, E>,
    /// Returns the number of bytes that the first tokens of a text take, by the built-in encoder's word pieces.
    pub tokens: &'a dyn Fn(&str, usize) -> Result<usize, E>,
    /// Returns the number of passages that contain a stem.
    pub document_frequency: &'a dyn Fn(&str) -> Result<usize, E>,
    /// The number of passages in the corpus.
    pub passages: usize,
    /// Checked before each slow step.
    pub stop: &'a Stop,
}

impl<E> ExpansionInputs<'_, E> {
    /// The question's statements that are distinct and not empty.
    pub(super) fn statements(&self) -> Vec<Added> {
        let mut seen = HashSet::new();
        let numbered = self.statements.iter().enumerate();
        numbered
            .map(|(i, statement)| Added::new(talk::plain(statement), AddedFrom::Statement(i)))
            .filter(|added| talk::is_new(&mut seen, &added.text))
            .collect()
    }
}

impl Expansion {
    /// How many sentences a model copied from passages, and how many of them stand there word for word.
    pub fn copied(&self) -> (usize, usize) {
        let by_model = self.added.iter().filter(|added| matches!(added.source, AddedFrom::Model { .. }));
        let found = by_model.flat_map(|added| &added.sentences).map(|(_, found)| found.is_some());
        found.fold((0, 0), |(of, exact), found| (of + 1, exact + usize::from(found)))
    }

    /// Names the form that ran and the origin of its texts: `KEQE, recorded replies of llama-3`.
    pub fn describe(&self) -> String {
        let model = self.added.iter().find_map(|added| match &added.source {
            AddedFrom::Model { model, recorded, .. } => Some((model, *recorded)),
            _ => None,
        });
        match model {
            Some((model, true)) => format!("{}, recorded replies of {model}", self.form.method()),
            Some((model, false)) => format!("{}, by {model}", self.form.method()),
            None => self.form.to_string(),
        }
    }
}

#[cfg(test)]
mod kind_tests {
    use super::*;

    #[test]
    fn a_kind_reads_its_own_name_and_an_unknown_one_gets_the_choices() {
        for kind in Kind::ALL {
            assert_eq!(kind.to_string().to_uppercase().parse(), Ok(kind));
        }
        assert_eq!(
            "hyde".parse::<Kind>().unwrap_err().to_string(),
            "no expansion is called `hyde`; choose perspectives, keqe, csqe, rm3, grf, q2d or q2d-prf"
        );
    }
}

#[cfg(test)]
mod option_tests {
    use super::*;

    #[test]
    fn options_have_the_papers_defaults_and_only_others_are_kept() {
        let csqe = Expand::from(Kind::Csqe);
        let counts = ["copies", "answers", "passages", "words"].map(|name| csqe.count(name));
        assert_eq!((counts, csqe.repeat(4)), ([2, 2, 10, 128], 4));
        let set =
            csqe.with("answers", 0.0).unwrap().with("repeat", 2.0).unwrap().with("copies", 2.0).unwrap();
        assert_eq!((set.set(), set.repeat(4)), (&[("answers", 0.0), ("repeat", 2.0)][..], 2));
        assert_eq!(Expand::from(Kind::Rm3).number("weight"), 0.5);
        assert_eq!(Expand::from(Kind::Q2d).repeat(1), 5);
    }

    #[test]
    fn an_option_that_the_kind_does_not_have_or_a_value_out_of_range_is_refused() {
        for (kind, name, value) in [
            (Kind::Keqe, "answers", 2.0),
            (Kind::Keqe, "n", 0.0),
            (Kind::Keqe, "n", 2.5),
            (Kind::Rm3, "weight", 1.5),
            (Kind::Rm3, "docs", f32::NAN),
        ] {
            let error = Expand::from(kind).with(name, value).unwrap_err();
            assert!(error.contains("these are the defaults"), "{error}");
        }
    }
}
