//! A detector's readings of passages, and how they become probabilities and decisions.
//!
//! A [`Reading`] holds logits and cosines of one passage and one statement, read alone or beside the opposite one; it is what the cache holds. A [`Rule`] computes the rest,
//! and its results are never cached.

use serde::{Deserialize, Serialize};

use super::decision::{
    Decision, DetectError, EVEN, EngagedForm, EngagedHead, Evidence, Heads, Logits, Outcome, SideForm,
    SideHead, default_prior, log_add,
};
use super::registry::{About, Tested};
use super::text::Sentences;
use crate::measure::intervals::Bias;

/// A detector's output for one window of a passage with one statement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// The logits.
    pub logits: Logits,
    /// The cosine of passage and statement; 0 if the detector uses none.
    pub cosine: f32,
}

/// A detector's output for a passage with one statement, one row per window. It is cached; decisions are computed from it.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading(Vec<Window>);

impl Reading {
    /// The logit of a yes or no in words, which has a probability of 1 or 0.
    const WORDS: f32 = 100.0;
    /// The largest logit that tokens give: many servers cut off smaller probabilities.
    const TOKENS: f32 = 15.0;
    /// The weight of an answer in words: 100 times that is the logit of .95.
    const WEIGHT: f64 = 0.03;
    /// The largest logit that is read back.
    const LARGEST: f32 = 1e6;

    /// Makes a reading of these windows.
    ///
    /// # Errors
    /// There are no windows, or a number is not finite, so no probability can be computed.
    pub fn new(windows: Vec<Window>) -> Result<Self, DetectError> {
        let finite =
            |window: &Window| window.cosine.is_finite() && window.logits.iter().all(|z| z.is_finite());
        match windows.iter().position(|window| !finite(window)) {
            _ if windows.is_empty() => Err(DetectError::Empty("passage")),
            None => Ok(Reading(windows)),
            Some(at) => Err(DetectError::Model(format!(
                "its numbers for window {} of the passage are {:?}, which give no probability; the weights may be damaged: fetch the \
                 model again",
                at + 1,
                windows[at].logits
            ))),
        }
    }

    /// Makes a reading of a probability of support, such as 1 or 0 for an answer in words.
    pub fn of(p: f32) -> Self {
        let logit = (p / (1.0 - p)).ln().clamp(-Self::WORDS, Self::WORDS);
        let logit = if logit.is_nan() { 0.0 } else { logit };
        Reading(vec![Window { logits: [logit, -Self::WORDS, 0.0], cosine: 0.0 }])
    }

    /// Makes a reading of the probability of support that the tokens of a language model's reply give.
    pub fn from_tokens(p: f64) -> Self {
        let logit = ((p / (1.0 - p)).ln() as f32).clamp(-Self::TOKENS, Self::TOKENS);
        Reading(vec![Window { logits: [logit, -Self::WORDS, 0.0], cosine: 0.0 }])
    }

    /// Makes a reading of a re-ranker's score, which no rule reads.
    pub fn of_score(score: f32) -> Self {
        Reading(vec![Window { logits: [score, 0.0, 0.0], cosine: 0.0 }])
    }

    /// The score of [`Reading::of_score`].
    pub fn as_score(&self) -> f32 {
        self.0.first().map_or(0.0, |window| window.logits[0])
    }

    /// Whether it is a yes or no in words.
    pub fn is_in_words(&self) -> bool {
        self.0.iter().all(|window| window.logits[0].abs() == Self::WORDS)
    }

    /// The bytes to store: four numbers per window.
    pub fn to_bytes(&self) -> Vec<u8> {
        let numbers = self.0.iter().flat_map(|window| window.logits.into_iter().chain([window.cosine]));
        numbers.flat_map(f32::to_le_bytes).collect()
    }

    /// Reads the bytes of [`Reading::to_bytes`]; `None` for other bytes, and for numbers that no model gives.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let numbers: Vec<f32> = bytes
            .chunks(4)
            .map(|four| four.try_into().ok().map(f32::from_le_bytes))
            .collect::<Option<_>>()?;
        let rows = numbers.chunks(4).map(|row| match *row {
            [supports, opposes, neither, cosine] => {
                Some(Window { logits: [supports, opposes, neither], cosine })
            }
            _ => None,
        });
        let possible = |window: &Window| {
            window.cosine.abs() <= 1.01 && window.logits.iter().all(|z| z.abs() <= Self::LARGEST)
        };
        Reading::new(rows.collect::<Option<_>>()?).ok().filter(|reading| reading.0.iter().all(possible))
    }

    /// All windows as one: log Σ exp of supports against neither, the same for opposes, 0 for neither, and the greatest cosine.
    fn joined(&self) -> Window {
        let sum = |class: usize| {
            let over = |window: &Window| f64::from(window.logits[class]) - f64::from(window.logits[2]);
            let rows = self.0.iter().map(over);
            rows.reduce(log_add).unwrap_or_default() as f32
        };
        let cosine = self.0.iter().map(|window| window.cosine).fold(f32::NEG_INFINITY, f32::max);
        Window { logits: [sum(0), sum(1), 0.0], cosine }
    }
}

/// How the probability that a passage supports a single statement is computed from its logits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Single {
    /// A fitted logistic function of logits and cosine.
    Join(Join),
    /// The share of *supports* among the classes.
    Softmax,
    /// The classes are independent; the probability is that of *supports* against *neither*.
    Alone,
}

/// The weights of a fitted probability for one statement.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Join {
    support: f32,
    polarity: f32,
    cosine: f32,
    bias: f32,
    /// The lowest probability that counts as support.
    pub threshold: f32,
}

/// How a detector's readings become probabilities and decisions.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// The joint decision.
    pub heads: Heads,
    /// The probability of a single statement.
    pub single: Single,
    /// The lowest probability at which a single statement counts as supported.
    pub threshold: f32,
    /// How a passage is cut into windows of sentences, whose logits are then summed. `None` if it is read whole, or in windows of
    /// tokens if it is too long; then the window that takes a side most decides.
    pub windows: Option<Sentences>,
    /// Whether the verdicts on single statements are already decisions, so that `heads` is not used.
    pub decided_elsewhere: bool,
    /// Whether the readings are a language model's replies: of words, whose weight the heads hold, or of tokens, which count as they are.
    pub of_replies: bool,
    /// The known quality of the verdicts.
    pub about: About,
}

/// A detector's file of fitted parameters, as `tools/detector/fit.py` writes it.
#[derive(Deserialize)]
struct Joint {
    #[serde(flatten)]
    heads: Heads,
    single: Option<Join>,
    test: Option<Tested>,
    #[serde(default)]
    window: Option<Sentences>,
    #[serde(default)]
    bias: Bias,
}

impl Default for Rule {
    /// The rule of detectors that give only a probability of support.
    fn default() -> Self {
        Rule {
            heads: Heads {
                engaged: EngagedHead { form: EngagedForm::LogsumSupports, a: 1.0, b: 0.0, d: 0.0 },
                side: SideHead { form: SideForm::Supports, t: 1.0 },
                both: 0.03,
                rho: 0.5,
                beta: 1.0,
                tau: Some(0.75),
                theta: 0.5,
                prior: default_prior(),
            },
            single: Single::Alone,
            threshold: EVEN,
            windows: None,
            decided_elsewhere: false,
            of_replies: false,
            about: About { unfitted: true, ..About::default() },
        }
    }
}

impl Rule {
    /// The default rule of a language model: its yes in words counts as .95, its tokens with their own probability.
    pub fn replies(name: &str) -> Self {
        let mut rule = Rule { of_replies: true, ..Rule::named(name) };
        (rule.heads.engaged.a, rule.heads.side.t) = (Reading::WEIGHT, Reading::WEIGHT / 2.0);
        rule
    }

    /// The default rule of a classifier. If a class means opposition, its logit counts as much as that of support.
    pub fn classifier(name: &str, opposes: bool, alone: bool) -> Self {
        let mut rule = Rule::named(name);
        if opposes {
            rule.heads.engaged.form = EngagedForm::SumAny;
            rule.heads.side = SideHead { form: SideForm::SupportsOpposes, t: 0.5 };
        }
        rule.single = if alone { Single::Alone } else { Single::Softmax };
        rule
    }

    /// The rule of verdicts from other programs: yes to both statements means both, and no outcome is unclear.
    pub fn decided_elsewhere(name: &str) -> Self {
        let mut rule = Rule::named(name);
        (rule.decided_elsewhere, rule.about.decided_elsewhere) = (true, true);
        rule
    }

    fn named(name: &str) -> Self {
        Rule { about: About { name: name.into(), unfitted: true, ..About::default() }, ..Rule::default() }
    }

    /// Replaces the defaults by the parameters of a detector's file.
    ///
    /// # Errors
    /// The file does not have the format of `tools/detector/fit.py`.
    pub fn fitted(self, joint: &[u8]) -> Result<Self, serde_json::Error> {
        let Joint { heads, single, test, window, bias } = serde_json::from_slice(joint)?;
        Ok(Rule {
            threshold: single.map_or(heads.theta as f32, |join| join.threshold),
            single: single.map_or(self.single, Single::Join),
            heads,
            windows: window.filter(|how| how.sentences > 0),
            decided_elsewhere: false,
            of_replies: self.of_replies,
            about: About { test, bias, unfitted: false, ..self.about },
        })
    }

    /// The probability that the passage supports a single statement. The highest of several windows counts.
    pub fn single(&self, reading: &Reading) -> f32 {
        let p = |window: &Window| {
            let [supports, opposes, neither] = window.logits;
            match &self.single {
                Single::Join(join) => {
                    let logit = join.support * (supports - neither)
                        + join.polarity * (supports - opposes)
                        + join.cosine * window.cosine
                        + join.bias;
                    1.0 / (1.0 + (-logit).exp())
                }
                // Differences to the other classes: never overflows to NaN.
                Single::Softmax => 1.0 / (1.0 + (opposes - supports).exp() + (neither - supports).exp()),
                Single::Alone => 1.0 / (1.0 + (neither - supports).exp()),
            }
        };
        if self.windows.is_some() {
            p(&reading.joined())
        } else {
            reading.0.iter().map(p).fold(0.0, f32::max)
        }
    }

    /// Decides on a passage from its readings with two opposite statements.
    pub fn decide(&self, [first, second]: [&Reading; 2]) -> Option<Decision> {
        if self.decided_elsewhere {
            return Some(self.combine([first, second].map(|reading| self.single(reading))));
        }
        let logits = |window: &Window| match window.logits {
            [z, opposes, neither] if self.of_replies && z.abs() < Reading::WORDS => {
                [z / Reading::WEIGHT as f32, opposes, neither]
            }
            logits => logits,
        };
        let seen = |(one, other): (&Window, &Window)| Evidence {
            logits: [logits(one), logits(other)],
            cosine: one.cosine.max(other.cosine),
        };
        // Statements of very different length can give the passage different windows; then the windows are summed.
        let windows: Vec<Evidence> = if self.windows.is_some() || first.0.len() != second.0.len() {
            vec![seen((&first.joined(), &second.joined()))]
        } else {
            first.0.iter().zip(&second.0).map(seen).collect()
        };
        self.heads.decide(&windows).map(|(decision, _)| decision)
    }

    /// The decision that follows from two verdicts on single statements.
    fn combine(&self, singles: [f32; 2]) -> Decision {
        let [first, second] = singles.map(f64::from);
        let outcome = match singles.map(|p| p >= self.threshold) {
            [true, true] => Outcome::Both,
            [true, false] => Outcome::Side(0),
            [false, true] => Outcome::Side(1),
            [false, false] => Outcome::Neither,
        };
        let neither = (1.0 - first) * (1.0 - second);
        let p = [first * (1.0 - second), second * (1.0 - first), first * second, neither];
        Decision { outcome, engaged: 1.0 - neither, p }
    }

    /// P(first only), P(second only), P(both), P(neither) of a passage that has no verdict.
    pub fn prior(&self) -> [f64; 4] {
        let Heads { prior, both, .. } = self.heads;
        let one = prior * (1.0 - both) / 2.0;
        [one, one, prior * both, 1.0 - prior]
    }

    /// Whether it shows sides; a detector that is not right often enough does not.
    pub fn shows_sides(&self) -> bool {
        self.heads.tau.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heads() -> Heads {
        Heads {
            engaged: EngagedHead { form: EngagedForm::SumAny, a: 0.4, b: 10.0, d: -5.5 },
            side: SideHead { form: SideForm::SupportsOpposes, t: 0.5 },
            both: 0.03,
            rho: 0.6,
            beta: 1.0,
            tau: Some(0.8),
            theta: 0.34,
            prior: 0.4,
        }
    }

    #[test]
    fn the_fitted_file_replaces_the_defaults_and_says_what_was_measured() {
        let text = r#"{"engaged": {"form": "sum_any", "a": 0.4, "b": 10.0, "d": -5.5},
            "side": {"form": "supports_opposes", "t": 0.08}, "both": 0.03, "rho": 0.6, "tau": null, "beta": 1.0, "theta": 0.34,
            "window": {"sentences": 2, "stride": 1}, "test": {"f1": 0.55}}"#;
        let single =
            r#""single": {"support": 0.2, "polarity": 0.0, "cosine": 5.5, "bias": -3.9, "threshold": 0.3},"#;
        let with =
            text.replacen('{', &format!("{{{single}"), 1).replace("\"f1\"", "\"right_side\": 0.65, \"f1\"");
        let rule = Rule::named("x").fitted(with.as_bytes()).unwrap();
        assert_eq!((rule.threshold, rule.about.unfitted, rule.shows_sides()), (0.3, false, false));
        assert_eq!(rule.windows, Some(Sentences { sentences: 2, stride: 1, most: 6 }));
        let whole =
            Rule::named("x").fitted(with.replace("\"sentences\": 2", "\"sentences\": 0").as_bytes()).unwrap();
        assert_eq!(whole.windows, None);
        assert_eq!(rule.about.words(), "x, right side .65, F1 .55 on our test");
        let shows = with.replace("\"f1\"", "\"precision\": 0.84, \"f1\"");
        let rule = Rule::named("x").fitted(shows.as_bytes()).unwrap();
        assert_eq!(rule.about.words(), "x, of the sides shown .84 right, F1 .55 on our test");
        assert_eq!(rule.about.refitted().words(), "x, right side .65, F1 .55 on our test");
        let odd = with.replace("\"bias\"", "\"title\": 1, \"bias\"");
        assert!(Rule::named("x").fitted(odd.as_bytes()).unwrap_err().to_string().contains("title"));
        assert!(Rule::named("x").fitted(b"{}").is_err());
    }

    fn read(windows: &[(Logits, f32)]) -> Reading {
        let window = |(logits, cosine): &(Logits, f32)| Window { logits: *logits, cosine: *cosine };
        Reading::new(windows.iter().map(window).collect()).unwrap()
    }

    #[test]
    fn a_reading_is_stored_and_read_back_and_one_without_numbers_is_an_error() {
        let reading = read(&[([1.5, -2.0, 0.25], 0.5), ([0.0, 1.0, f32::MIN_POSITIVE], -0.5)]);
        assert_eq!(Reading::from_bytes(&reading.to_bytes()), Some(reading));
        assert_eq!(Reading::from_bytes(&[0; 12]), None);
        assert_eq!(Reading::from_bytes(&[]), None);
        let nan = Reading::new(vec![Window { logits: [f32::NAN, 0.0, 0.0], cosine: 0.0 }]).unwrap_err();
        assert!(nan.to_string().contains("window 1") && nan.to_string().contains("NaN"), "{nan}");
        assert_eq!(Reading::new(Vec::new()), Err(DetectError::Empty("passage")));
    }

    #[test]
    fn every_weight_of_the_single_probability_counts() {
        let of = |support, polarity, cosine, bias| {
            let join = Join { support, polarity, cosine, bias, threshold: 0.5 };
            let rule = Rule { single: Single::Join(join), ..Rule::default() };
            rule.single(&read(&[([2.0, 1.0, -1.0], 0.5)]))
        };
        let sigmoid = |logit: f32| 1.0 / (1.0 + (-logit).exp());
        assert_eq!(of(1.0, 0.0, 0.0, 0.0), sigmoid(3.0));
        assert_eq!(of(0.0, 1.0, 0.0, 0.0), sigmoid(1.0));
        assert_eq!(of(0.0, 0.0, 4.0, -1.0), sigmoid(1.0));
        assert_eq!(
            (Rule::default().single(&Reading::of(1.0)), Rule::default().single(&Reading::of(0.0))),
            (1.0, 0.0)
        );
        assert!((Rule::default().single(&Reading::of(0.25)) - 0.25).abs() < 1e-6);
    }

    #[test]
    fn answers_in_words_decide_and_two_yeses_are_unclear() {
        let rule = Rule::replies("m");
        let outcome = |first: f32, second: f32| {
            rule.decide([&Reading::of(first), &Reading::of(second)]).unwrap().outcome
        };
        assert_eq!(outcome(1.0, 0.0), Outcome::Side(0));
        assert_eq!(outcome(0.0, 1.0), Outcome::Side(1));
        assert_eq!(outcome(0.0, 0.0), Outcome::Neither);
        assert_eq!(outcome(1.0, 1.0), Outcome::Unclear);
    }

    #[test]
    fn tokens_decide_by_their_probability_and_words_as_a_probability_of_95() {
        let rule = Rule::replies("m");
        let decide = |first: &Reading, second: &Reading| rule.decide([first, second]).unwrap();
        let (yes, no) = (Reading::of(1.0), Reading::of(0.0));
        let (likely, unlikely) = (Reading::from_tokens(0.9), Reading::from_tokens(0.1));
        let decision = decide(&likely, &unlikely);
        assert!(
            (decision.engaged - 0.9).abs() < 1e-6 && decision.outcome == Outcome::Side(0),
            "{decision:?}"
        );
        assert!((decision.p[0] - 0.9 * 0.9 * 0.97).abs() < 1e-6, "{decision:?}");
        let mixed = decide(&yes, &unlikely);
        assert!((mixed.engaged - 0.9526).abs() < 1e-3 && mixed.outcome == Outcome::Side(0), "{mixed:?}");
        assert_eq!(decide(&Reading::from_tokens(0.6), &Reading::from_tokens(0.5)).outcome, Outcome::Unclear);
        assert_eq!(decide(&Reading::from_tokens(0.3), &no).outcome, Outcome::Neither);
        assert!((rule.single(&likely) - 0.9).abs() < 1e-6);
        assert_eq!([yes, no, likely].map(|reading| reading.is_in_words()), [true, true, false]);
        for (p, sure) in [(1.0, 1.0), (0.0, 0.0)] {
            let reading = Reading::from_tokens(p);
            assert!(!reading.is_in_words() && (rule.single(&reading) - sure).abs() < 1e-6);
            assert_eq!(Reading::from_bytes(&reading.to_bytes()), Some(reading));
        }
    }

    #[test]
    fn swapping_what_was_read_swaps_every_rule_s_decision_to_the_last_bit() {
        let mut state = 11u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f32 / (1u64 << 24) as f32 * 16.0 - 8.0
        };
        let windows = Some(Sentences { sentences: 2, stride: 1, most: 6 });
        let summed = |rule: Rule| Rule { windows: windows.clone(), ..rule };
        let fitted = Rule { heads: heads(), ..Rule::default() };
        let rules = [
            fitted.clone(),
            summed(fitted),
            Rule::replies("m"),
            Rule::classifier("c", true, false),
            summed(Rule::classifier("c", true, false)),
            Rule::classifier("c", false, true),
            Rule::decided_elsewhere("f"),
        ];
        for round in 0..1_000 {
            let mut some = |n: usize| -> Vec<(Logits, f32)> {
                (0..n).map(|_| ([next(), next(), next()], next() / 8.0)).collect()
            };
            // Now and then the statements leave the passage a different number of windows.
            let (first, second) = (read(&some(1 + round % 4)), read(&some(1 + round % 3)));
            for rule in &rules {
                let there = rule.decide([&first, &second]).unwrap();
                let back = rule.decide([&second, &first]).unwrap();
                assert_eq!(there.swapped(), back);
                assert!((there.p.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{there:?}");
            }
        }
    }

    #[test]
    fn windows_are_summed_as_the_training_sums_them() {
        // log(e^1 + e^2) = 2.313262, log(e^−1 + e^0) = .313262, and the greatest cosine.
        let both = read(&[([2.0, 0.0, 1.0], 0.1), ([2.0, 0.0, 0.0], 0.3)]).joined();
        assert!((both.logits[0] - 2.313_262).abs() < 1e-6 && (both.logits[1] - 0.313_262).abs() < 1e-6);
        assert_eq!((both.logits[2], both.cosine), (0.0, 0.3));
    }

    #[test]
    fn a_detectors_file_may_say_how_far_its_means_lie_beside_gold() {
        let parameters = include_str!("../../assets/detector/joint.json");
        let mut file: serde_json::Value = serde_json::from_str(parameters).unwrap();
        file["bias"] = serde_json::json!({"mrecall": 0.12, "prec": 0.05});
        let rule = Rule::default().fitted(file.to_string().as_bytes()).unwrap();
        assert_eq!((rule.about.bias.mrecall, rule.about.bias.prec), (0.12, 0.05));
        file.as_object_mut().unwrap().remove("bias");
        assert_eq!(Rule::default().fitted(file.to_string().as_bytes()).unwrap().about.bias, Bias::default());
    }
}
