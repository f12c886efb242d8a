//! From the list to the answer: which sides an answer gives, which of them came from the list, and where its sentences are supported.
//!
//! An answer's sides are those that a judge finds its sentences to support. DebateQA (Xu et al., 2024) asks of an answer how many
//! perspectives it gives and whether it says that the matter is disputed. Citations are measured as in ALCE (Gao et al., 2023).

use super::judge::{Shares, readings};
use super::judgments::Judgments;
use super::opening::SetupError;
use super::setup::Setup;
use crate::corpus::{Passage, PassageIx};
use crate::detect::{DetectError, LabelSource, PairLabels, sentences};
use crate::measure::SupportSet;
use crate::question::Question;
use crate::read::{Answer, Context, ReadError};
use crate::work::{Stop, Stopped};

/// Words by which an answer says that a matter is disputed.
const DISPUTED: [&str; 18] = [
    "controvers",
    "disput",
    "debate",
    "contested",
    "divided",
    "disagree",
    "some argue",
    "some say",
    "others",
    "critics",
    "opponents",
    "proponents",
    "supporters",
    "advocates",
    "on the other hand",
    "both sides",
    "there are arguments",
    "no consensus",
];

/// A sentence of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Its text without citations.
    pub text: String,
    /// The places of the passages that it cites, from 0, each once.
    pub cites: Vec<usize>,
}

/// The sentences of an answer with their citations, such as `[2]` or `[1, 3]`. A citation after a full stop belongs to the sentence before
/// it; a number of no passage is left out.
///
/// ```
/// use parallax::engine::answer::claims;
///
/// let claims = claims("Bears suffer [2]. Children learn. [1, 3] So it is disputed.", 3);
/// assert_eq!(claims.iter().map(|claim| claim.text.as_str()).collect::<Vec<_>>(), ["Bears suffer.", "Children learn.", "So it is disputed."]);
/// assert_eq!(claims.iter().map(|claim| claim.cites.clone()).collect::<Vec<_>>(), [vec![1], vec![0, 2], vec![]]);
/// ```
pub fn claims(answer: &str, passages: usize) -> Vec<Claim> {
    let (mut plain, mut marks, mut rest) = (String::new(), Vec::new(), answer);
    while let Some(at) = rest.find('[') {
        let (before, from) = rest.split_at(at);
        plain.push_str(before);
        match citation(from) {
            Some((numbers, after)) => {
                plain.truncate(plain.trim_end().len());
                marks.push((plain.len(), numbers));
                rest = after;
            }
            None => {
                plain.push('[');
                rest = &from[1..];
            }
        }
    }
    plain.push_str(rest);
    let ranges: Vec<_> = sentences(&plain)
        .into_iter()
        .filter(|range| plain[range.clone()].chars().any(char::is_alphanumeric))
        .collect();
    let mut all: Vec<Claim> = ranges
        .iter()
        .map(|range| Claim { text: plain[range.clone()].trim().to_owned(), cites: Vec::new() })
        .collect();
    for (at, numbers) in marks {
        // The last sentence that begins before it.
        let own = ranges.iter().rposition(|range| range.start < at);
        let Some(claim) = own.and_then(|own| all.get_mut(own)) else { continue };
        for place in
            numbers.into_iter().filter(|number| (1..=passages).contains(number)).map(|number| number - 1)
        {
            if !claim.cites.contains(&place) {
                claim.cites.push(place);
            }
        }
    }
    all
}

/// The numbers of a citation at the start of a text, and the text after it.
fn citation(text: &str) -> Option<(Vec<usize>, &str)> {
    let (inside, after) = text.strip_prefix('[')?.split_once(']')?;
    let numbers: Option<Vec<usize>> = inside.split([',', ';']).map(|one| one.trim().parse().ok()).collect();
    Some((numbers?, after))
}

/// Which statements the list and the answer support, of a question with `m`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coverage {
    /// Those that the passages support.
    pub list: SupportSet,
    /// Those that the answer supports.
    pub answer: SupportSet,
    /// The number of statements.
    pub m: usize,
}

impl Coverage {
    /// The share of the statements that the list supports.
    pub fn of_list(self) -> f64 {
        self.list.len() as f64 / self.m as f64
    }

    /// The share of the statements that the answer supports: DebateQA's perspective diversity, judged instead of scored by perplexity.
    pub fn of_answer(self) -> f64 {
        self.answer.len() as f64 / self.m as f64
    }

    /// How many of the list's statements the answer gives too.
    pub fn retained(self) -> usize {
        self.list.iter().filter(|statement| self.answer.contains(*statement)).count()
    }

    /// How many of the list's statements the answer drops.
    pub fn dropped(self) -> usize {
        self.list.len() - self.retained()
    }

    /// How many statements the answer gives that no passage of the list supports.
    pub fn added(self) -> usize {
        self.answer.len() - self.retained()
    }
}

/// Whether an answer shows that the matter is disputed: it supports more than one statement, or says so in words.
pub fn is_aware(answer: &str, sides: SupportSet) -> bool {
    let lower = answer.to_lowercase();
    sides.len() > 1 || DISPUTED.iter().any(|word| lower.contains(word))
}

/// How the citations of one sentence hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cited {
    /// Whether the cited passages together support the sentence.
    pub supported: bool,
    /// Whether each citation is needed or supports the sentence alone; all false where the sentence is not supported.
    pub precise: Vec<bool>,
}

impl Cited {
    /// Judges the citations of a sentence; `None` if it has none. `supports` says whether the passages at these places together support a
    /// sentence.
    ///
    /// # Errors
    /// Those of `supports`.
    pub fn of<E>(
        Claim { text, cites }: &Claim,
        supports: &mut impl FnMut(&[usize], &str) -> Result<bool, E>,
    ) -> Result<Option<Self>, E> {
        if cites.is_empty() {
            return Ok(None);
        }
        if !supports(cites, text)? {
            return Ok(Some(Cited { supported: false, precise: vec![false; cites.len()] }));
        }
        let mut precise = Vec::new();
        for place in cites {
            let others: Vec<usize> = cites.iter().filter(|other| *other != place).copied().collect();
            precise.push(others.is_empty() || supports(&[*place], text)? || !supports(&others, text)?);
        }
        Ok(Some(Cited { supported: true, precise }))
    }
}

/// How well the citations of an answer support it; `None` where there is nothing to count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Citations {
    /// The share of the sentences that their cited passages together support.
    pub recall: Option<f64>,
    /// The share of the citations that are needed or support their sentence alone, where the sentence is supported.
    pub precision: Option<f64>,
}

impl Citations {
    /// Counts over the sentences of an answer, with those that cite nothing.
    pub fn of<'a>(sentences: impl IntoIterator<Item = Option<&'a Cited>>) -> Self {
        let (mut all, mut supported, mut cited, mut precise) = (0, 0, 0, 0);
        for own in sentences {
            all += 1;
            let Some(own) = own else { continue };
            supported += usize::from(own.supported);
            cited += own.precise.len();
            precise += own.precise.iter().filter(|precise| **precise).count();
        }
        let share = |part: usize, of: usize| (of > 0).then(|| part as f64 / of as f64);
        Citations { recall: share(supported, all), precision: share(precise, cited) }
    }
}

/// A sentence of an answer with what the judge says of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sentence {
    /// The sentence and its citations.
    pub claim: Claim,
    /// The statements that it supports.
    pub sides: SupportSet,
    /// How its citations hold; `None` if it has none.
    pub cited: Option<Cited>,
    /// The places of the passages that support it alone, from 0; `None` if they were not looked for, since every verdict costs.
    pub found: Option<Vec<usize>>,
}

/// An answer, judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Assessed {
    /// The answer.
    pub answer: Answer,
    /// The statements that the list and the answer support.
    pub coverage: Coverage,
    /// Whether it shows that the matter is disputed.
    pub aware: bool,
    /// Its sentences; none of a refusal.
    pub sentences: Vec<Sentence>,
    /// How well its citations support it.
    pub citations: Citations,
}

/// Judges an answer against the statements of its question and against the passages that were read.
pub struct Judge<'a> {
    /// The open corpus and its detector.
    pub setup: &'a Setup,
    /// The question.
    pub question: &'a Question,
    /// Ends the work early.
    pub stop: &'a Stop,
}

/// Why an answer was not judged.
#[derive(Debug, thiserror::Error)]
pub enum JudgeError {
    /// The detector cannot be loaded.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// There is no answer.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Stopped on request.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

impl JudgeError {
    /// Whether it was stopped on request, which is not a failure.
    pub fn is_stop(&self) -> bool {
        matches!(self, JudgeError::Stopped(_) | JudgeError::Read(ReadError::Stopped(_)))
    }
}

impl Judge<'_> {
    /// Judges an answer from these passages, which support the statements `list`. A refusal gives no side and cites nothing.
    ///
    /// # Errors
    /// The detector cannot be loaded, or `stop` was set.
    pub fn assess(&self, answer: Answer, list: SupportSet, read: &[Context]) -> Result<Assessed, JudgeError> {
        let claims = if answer.is_refusal() { Vec::new() } else { claims(&answer.text, read.len()) };
        let sides = self.sides(&claims)?;
        let (detector, rule) = (self.setup.detector()?, self.setup.rule()?);
        let mut supports = |places: &[usize], claim: &str| {
            let texts: Vec<String> = places.iter().map(|place| read[*place].passage.contents()).collect();
            let passage = Passage { text: texts.join("\n"), ..Passage::default() };
            match self.setup.verdicts.read(detector.as_ref(), &passage, claim, self.stop) {
                Err(DetectError::Stopped(stopped)) => Err(JudgeError::from(stopped)),
                // What cannot be judged supports nothing.
                reading => Ok(reading.is_ok_and(|reading| rule.single(&reading) >= rule.threshold)),
            }
        };
        let mut sentences = Vec::new();
        for (claim, sides) in claims.into_iter().zip(sides) {
            let cited = Cited::of(&claim, &mut supports)?;
            let found = match self.setup.deep() {
                0 => None,
                _ => {
                    let mut found = Vec::new();
                    for place in 0..read.len() {
                        if supports(&[place], &claim.text)? {
                            found.push(place);
                        }
                    }
                    Some(found)
                }
            };
            sentences.push(Sentence { claim, sides, cited, found });
        }
        let given = sentences.iter().fold(SupportSet::EMPTY, |all, own| all.union(own.sides));
        Ok(Assessed {
            coverage: Coverage { list, answer: given, m: self.question.perspectives.len() },
            aware: !answer.is_refusal() && is_aware(&answer.text, given),
            citations: Citations::of(sentences.iter().map(|own| own.cited.as_ref())),
            answer,
            sentences,
        })
    }

    /// The statements that each sentence supports.
    fn sides(&self, claims: &[Claim]) -> Result<Vec<SupportSet>, JudgeError> {
        let (detector, rule) = (self.setup.detector()?, self.setup.rule()?);
        let mut judgments = Judgments::new(self.question, LabelSource::Model, rule);
        let mut all = Vec::new();
        for (i, claim) in claims.iter().enumerate() {
            let at = PassageIx(i as u32);
            let sentence = Passage { text: claim.text.clone(), ..Passage::default() };
            let wanted: Vec<usize> = (0..self.question.perspectives.len()).collect();
            let read = readings(self.setup, detector.as_ref(), self.question, &sentence, &wanted, self.stop);
            for (perspective, read) in read.into_iter().enumerate() {
                if let Err(DetectError::Stopped(stopped)) = read {
                    return Err(stopped.into());
                }
                judgments.write(at, perspective, PairLabels { model: Some(read), ..PairLabels::default() });
            }
            all.push(judgments.support(at).unwrap_or(SupportSet::EMPTY));
        }
        Ok(all)
    }

    /// Has the corpus's reader answer from a list, at length if it can, and judges the answer. `on_answer` gets it before it is judged.
    /// Returns it with what is known of the judge's errors.
    ///
    /// # Errors
    /// There is no reader or no answer, the detector cannot be loaded, or `stop` was set.
    pub fn read_and_assess(
        &self,
        list: SupportSet,
        read: &[Context],
        on_answer: &dyn Fn(&Answer),
    ) -> Result<(Assessed, String), JudgeError> {
        let none = || ReadError::Model("there is none; give --llm, --reader or --answers".into());
        let reader = self.setup.reader.as_deref().ok_or_else(none)?;
        let long = reader.at_length();
        let answer = long.as_deref().unwrap_or(reader).answer(&self.question.text, read, self.stop)?;
        on_answer(&answer);
        let assessed = self.assess(answer, list, read)?;
        Ok((assessed, self.error()?))
    }

    /// What is known of the judge's errors, in words.
    ///
    /// # Errors
    /// The detector cannot be loaded.
    pub fn error(&self) -> Result<String, SetupError> {
        // The judge of answers and citations is the model, whichever labels count for the list.
        let by_model = Shares { model: 1, ..Shares::default() };
        Ok(self.setup.model_warning(LabelSource::Model, by_model, &[])?.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(sides: &[usize]) -> SupportSet {
        SupportSet::of(sides.iter().copied()).unwrap()
    }

    #[test]
    fn citations_belong_to_the_sentence_that_they_follow_and_wrong_numbers_cite_nothing() {
        let found = claims("[1] Zoos teach [2][2]. Bears pace. [3; 9] See [sic] this.", 3);
        let cites: Vec<&[usize]> = found.iter().map(|claim| claim.cites.as_slice()).collect();
        assert_eq!(cites, [&[1][..], &[2], &[]]);
        assert_eq!(found[2].text, "See [sic] this.");
        assert_eq!(claims(" … ", 3), []);
    }

    /// The list has both sides, the answer the second and a third: one kept, one dropped, one added.
    #[test]
    fn an_answer_keeps_drops_and_adds_sides() {
        let coverage = Coverage { list: set(&[0, 1]), answer: set(&[1, 2]), m: 4 };
        assert_eq!((coverage.retained(), coverage.dropped(), coverage.added()), (1, 1, 1));
        assert_eq!((coverage.of_list(), coverage.of_answer()), (0.5, 0.5));
    }

    #[test]
    fn an_answer_is_aware_of_a_dispute_by_its_sides_or_its_words() {
        assert!(is_aware("They suffer.", set(&[0, 1])));
        assert!(is_aware("This is Controversial.", set(&[0])));
        assert!(!is_aware("They suffer.", set(&[0])));
    }

    /// Passages 0 and 1 support the first sentence together, neither alone; passage 2 supports the second, passage 0 beside it is not needed;
    /// the third cites what does not support it, the fourth cites nothing: recall 2/4, precision (2 + 1 + 0)/5.
    #[test]
    fn citations_are_counted_as_in_alce() {
        let claim = |text: &str, cites: &[usize]| Claim { text: text.into(), cites: cites.to_vec() };
        let all =
            [claim("joint", &[0, 1]), claim("single", &[2, 0]), claim("wrong", &[1]), claim("bare", &[])];
        let mut supports = |places: &[usize], text: &str| -> Result<bool, ()> {
            Ok(match text {
                "joint" => places.contains(&0) && places.contains(&1),
                "single" => places.contains(&2),
                _ => false,
            })
        };
        let cited: Vec<Option<Cited>> =
            all.iter().map(|claim| Cited::of(claim, &mut supports).unwrap()).collect();
        assert_eq!(cited[1], Some(Cited { supported: true, precise: vec![true, false] }));
        let found = Citations::of(cited.iter().map(Option::as_ref));
        assert_eq!(found, Citations { recall: Some(0.5), precision: Some(0.6) });
        let none = Citations::of([None]);
        assert_eq!(none, Citations { recall: Some(0.0), precision: None });
    }
}
