//! A custom detector: any folder with a network for sequence classification, trained on inference (NLI) or stance, or with a T5 that
//! was trained to answer `1` where the premise entails the hypothesis, else `0` (TRUE; Honovich et al., 2022).
//!
//! The passage is the premise, the statement the hypothesis. A passage longer than the window is read in windows that overlap by
//! half. A `joint.json` in the same folder may hold fitted parameters of the decision; without it, defaults are used.

use std::path::Path;

use tokenizers::Tokenizer;

use super::cross_encoder::Cosines;
use super::decision::DetectError;
use super::detector::Detector;
use super::rule::{Reading, Rule, Window};
use super::text::{Frame, STATEMENT, reserved, text};
use crate::corpus::Passage;
use crate::encode::family::{Classifier, Config, Fusion, Weights, weight_files};
use crate::encode::registry::{Named, Source};
use crate::encode::tokens::{self, windows};
use crate::encode::{EncodeError, ModelError, card};
use crate::input::{InputError, SMALL, read_regular};
use crate::work::{Stop, Stopped};

/// A cross-encoder from a folder or the hub.
pub struct CustomCrossEncoder {
    key: String,
    network: Network,
    classes: Classes,
    tokenizer: Tokenizer,
    /// The most tokens of a passage and a statement together.
    room: usize,
    rule: Rule,
    /// The built-in encoder's cosines, if the rule uses them.
    cosines: Option<Cosines>,
}

/// What judges a pair of texts.
enum Network {
    /// Reads a sequence of two segments; one logit per class.
    Classifier(Classifier, Frame),
    /// Reads one text and begins an answer; one logit per answer.
    Answers(Answers),
}

/// A T5 with two answers. Its input has the form of `google/t5_xxl_true_nli_mixture`.
struct Answers {
    network: Fusion,
    /// The token that every answer begins after.
    start: u32,
    /// The first token of either answer: entailed, and not. T5's own vocabulary writes `0` as a blank and `0`.
    first: [u32; 2],
}

/// The answers of a T5: that the premise entails the hypothesis, and that it does not.
const ANSWERS: [&str; 2] = ["1", "0"];

impl Answers {
    /// The input, as the model was trained on it.
    fn input(premise: &str, hypothesis: &str) -> String {
        format!("premise: {premise} hypothesis: {hypothesis}")
    }

    fn load(
        config: &Config,
        weights: Weights,
        tokenizer: &Tokenizer,
        answers: &[String; 2],
    ) -> Result<Self, InputError> {
        let first = answers.each_ref().map(|answer| {
            let encoded = tokenizer.encode_fast(answer.as_str(), false).ok()?;
            encoded.get_ids().first().copied()
        });
        let [Some(yes), Some(no)] = first else {
            return Err(config.wrong("its tokenizer has no token for an answer; name other answers"));
        };
        if yes == no {
            return Err(config.wrong(&format!(
                "its tokenizer begins the answers {} with the same token; name others, as in path:FOLDER@supports={}",
                answers.join(" and "),
                ANSWERS.join(",")
            )));
        }
        // By default, T5 starts with the padding token.
        let start = config.size(&["decoder_start_token_id", "pad_token_id"])? as u32;
        Ok(Answers { network: Fusion::load(config, weights)?, start, first: [yes, no] })
    }

    /// The scores of the two answers' first tokens.
    fn logits(&self, ids: &[u32]) -> Result<Vec<f32>, EncodeError> {
        let part = self.network.encode(ids)?;
        let mut writing = self.network.begin(&[&part], 0)?;
        let scores = self.network.next(&mut writing, self.start)?;
        let two = self.first.map(|token| scores.get(token as usize).copied().unwrap_or(f32::NAN));
        if two.iter().all(|x| x.is_finite()) {
            Ok(two.into())
        } else {
            Err(ModelError::NotFinite("logits").into())
        }
    }
}

/// The answers of a T5 as the user names them, `YES,NO`, or those of `google/t5_xxl_true_nli_mixture`; `None` for other models.
fn answers(config: &Config, given: Option<&str>) -> Result<Option<[String; 2]>, InputError> {
    if config.model_type()? != "t5" {
        return Ok(None);
    }
    match given.map(|given| given.split_once(',')) {
        None => Ok(Some(ANSWERS.map(str::to_owned))),
        Some(Some((yes, no))) => Ok(Some([yes, no].map(|answer| answer.trim().to_owned()))),
        Some(None) => Err(config.wrong(&format!(
            "a t5 judges by two answers; name both, as in path:FOLDER@supports={}",
            ANSWERS.join(",")
        ))),
    }
}

/// The file with the parameters of the decision, in the folder of the weights, as `tools/detector/fit.py` writes it. Without the
/// file, defaults are used.
const JOINT: &str = "joint.json";

impl CustomCrossEncoder {
    /// Loads a model; models from the hub are below `models`. `supports` names the class that means support, and after a comma the
    /// one that means opposition, if the model's own class names do not show them.
    ///
    /// # Errors
    /// The model or a file is missing or damaged, or the class that means support is unclear.
    pub fn load(source: &Source, supports: Option<&str>, models: &Path) -> Result<Self, InputError> {
        let named = Named::from(source.clone());
        let folder = named.towers(models)?.passages;
        let config = Config::read(&folder)?;
        let wrong = |why: &str| config.wrong(why);
        let answers = answers(&config, supports)?;
        let window = card::window(&folder, &config)?;
        let open_tokenizer = || -> Result<Tokenizer, InputError> {
            let mut tokenizer = tokens::read(&folder, window, config.vocabulary()?)?;
            // Passages are not truncated but cut into windows.
            tokenizer.with_truncation(None).map_err(|error| wrong(&error.to_string()))?;
            Ok(tokenizer)
        };
        let (network, classes, tokenizer, around) = if let Some(answers) = &answers {
            let tokenizer = open_tokenizer()?;
            let network = Answers::load(&config, Weights::read(&folder)?, &tokenizer, answers)?;
            let around = tokenizer.encode_fast(Answers::input("", ""), true);
            let around = around.map_err(|error| wrong(&error.to_string()))?.len();
            (Network::Answers(network), Classes::ANSWERS, tokenizer, around)
        } else {
            let classifier = Classifier::load(&config, &mut Weights::read(&folder)?)?;
            let labels = config.labels(classifier.classes)?;
            let classes = Classes::find(&labels, supports, config.many_labels())
                .map_err(|error| wrong(&error.to_string()))?;
            let tokenizer = open_tokenizer()?;
            let frame =
                Frame::of(&tokenizer).ok_or_else(|| wrong("its tokenizer does not encode pairs of texts"))?;
            let around = frame.len();
            (Network::Classifier(classifier, frame), classes, tokenizer, around)
        };
        if window < around + 2 {
            return Err(wrong(&format!("a window of {window} tokens has no room for a pair of texts")));
        }
        let mut hasher = blake3::Hasher::new();
        let mut files = weight_files(&folder)?;
        files.extend(tokens::files(&folder)?);
        files.push(folder.join("config.json"));
        for file in files {
            hasher.update_mmap(&file).map_err(|error| InputError::unreadable(&file, &error))?;
        }
        let rule = classes.rule(named.title(), &folder)?;
        hasher.update(format!("{classes:?} {window} {:?}", rule.windows).as_bytes());
        for answer in answers.iter().flatten() {
            hasher.update(format!(" {answer:?}").as_bytes());
        }
        let key = format!("{}-{}", named.slug(), &hasher.finalize().to_hex()[..12]);
        let cosines = if rule.heads.engaged.b == 0.0 {
            None
        } else {
            Some(Cosines::new().map_err(|e| wrong(&e.to_string()))?)
        };
        Ok(CustomCrossEncoder { key, network, classes, tokenizer, room: window - around, rule, cosines })
    }

    /// The rule of a model, without loading its weights.
    ///
    /// # Errors
    /// As [`CustomCrossEncoder::load`].
    pub fn rule_of(source: &Source, supports: Option<&str>, models: &Path) -> Result<Rule, InputError> {
        let named = Named::from(source.clone());
        let folder = named.towers(models)?.passages;
        let config = Config::read(&folder)?;
        let classes = match answers(&config, supports)? {
            Some(_) => Classes::ANSWERS,
            None => Classes::find(&config.own_labels(), supports, config.many_labels())
                .map_err(|error| config.wrong(&error.to_string()))?,
        };
        classes.rule(named.title(), &folder)
    }

    /// The logits of all classes, or of a T5's two answers, for the first window.
    ///
    /// # Errors
    /// The pair is empty or the model failed.
    pub fn logits(&self, passage: &Passage, statement: &str) -> Result<Vec<f32>, DetectError> {
        let mut first = None;
        self.each_window(passage, statement, &mut |logits, _| {
            first.get_or_insert(logits);
            Ok(false)
        })?;
        first.ok_or(DetectError::Empty("passage"))
    }

    /// Runs one window after another, until `on_window` returns false.
    fn each_window(
        &self,
        passage: &Passage,
        statement: &str,
        on_window: &mut OnWindow<'_>,
    ) -> Result<(), DetectError> {
        let read = text(passage)?;
        let encode = |text: &str| self.tokenizer.encode(text, false).map_err(EncodeError::from);
        let hypothesis = encode(statement)?;
        let room = self.room;
        // The passage gets at least half of the window.
        let kept = hypothesis.len().min(STATEMENT).min(room / 2);
        if kept == 0 {
            return Err(DetectError::Empty("statement"));
        }
        let cut = self.rule.windows.as_ref();
        for text in cut.map_or_else(|| vec![read.clone()], |how| how.cut(&read)) {
            let encoded = encode(text.as_str())?;
            if encoded.is_empty() {
                continue;
            }
            for window in windows(encoded.len(), room - reserved(kept, room)) {
                let offsets = encoded.get_offsets();
                let (first, last) = (offsets[window.start], offsets[window.end - 1]);
                let whole = window.len() == encoded.len();
                let part = if whole { Some(text.as_str()) } else { text.get(first.0..last.1) };
                let logits = match &self.network {
                    Network::Classifier(classifier, frame) => {
                        let (ids, kinds) =
                            frame.around(&encoded.get_ids()[window], &hypothesis.get_ids()[..kept]);
                        classifier.logits(&ids, &kinds)?
                    }
                    Network::Answers(network) => {
                        let end = hypothesis.get_offsets()[kept - 1].1;
                        let read = if kept < hypothesis.len() { statement.get(..end) } else { None };
                        let input = Answers::input(part.unwrap_or_default(), read.unwrap_or(statement));
                        let input = self.tokenizer.encode_fast(input, true).map_err(EncodeError::from)?;
                        network.logits(input.get_ids())?
                    }
                };
                // Windows of sentences share the cosine of the whole passage.
                if !on_window(logits, part.filter(|_| cut.is_none() && !whole))? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

impl Detector for CustomCrossEncoder {
    fn key(&self) -> &str {
        &self.key
    }

    fn rule(&self) -> &Rule {
        &self.rule
    }

    fn read(&self, passage: &Passage, statement: &str, stop: &Stop) -> Result<Reading, DetectError> {
        let mut seen = Vec::new();
        self.each_window(passage, statement, &mut |logits, part| {
            let cosine = match (&self.cosines, part) {
                (None, _) => 0.0,
                (Some(cosines), Some(part)) => cosines.of(part, statement)?,
                (Some(cosines), None) => cosines.of(&text(passage)?, statement)?,
            };
            seen.push(Window { logits: self.classes.three(&logits)?, cosine });
            Ok(!stop.is_set())
        })?;
        // A passage that was not read to its end gets no verdict.
        if stop.is_set() { Err(Stopped.into()) } else { Reading::new(seen) }
    }
}

/// Takes the logits of a window, and its text if it is not the whole passage. Returns whether to go on.
type OnWindow<'a> = dyn FnMut(Vec<f32>, Option<&str>) -> Result<bool, DetectError> + 'a;

/// Names of the class that supports, in models trained on inference or stance, in lower case.
pub const SUPPORTS: [&str; 13] = [
    "entailment",
    "entail",
    "entails",
    "entailed",
    "supports",
    "support",
    "supported",
    "favor",
    "favour",
    "infavor",
    "pro",
    "agree",
    "for",
];

/// Names of the class that opposes, in lower case.
pub const OPPOSES: [&str; 13] = [
    "contradiction",
    "contradict",
    "contradicts",
    "contradicted",
    "refutes",
    "refute",
    "refuted",
    "opposes",
    "oppose",
    "against",
    "con",
    "disagree",
    "attack",
];

/// No class of a classifier or several mean support, or the user named a class that it does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "it is unclear which of its classes means support; {}; a class is recognised by a name such as {}. Name yours with --classes \
     SUPPORTS,OPPOSES (the second is optional) or as in path:FOLDER@supports={}",
    if labels.is_empty() { "it names none".to_owned() } else { format!("they are {}", labels.join(", ")) },
    SUPPORTS[..6].join(", "),
    labels.first().map_or("CLASS", String::as_str)
)]
pub struct NoSupportClass {
    /// The names of the classes.
    pub labels: Vec<String>,
}

/// The meaning of a classifier's classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Classes {
    supports: usize,
    opposes: Option<usize>,
    /// Whether the classes are independent, each with its own probability.
    alone: bool,
}

impl Classes {
    /// The two answers of a T5.
    const ANSWERS: Classes = Classes { supports: 0, opposes: None, alone: false };

    /// Finds the classes that mean support and opposition among `labels`, by the user's names for them (`SUPPORTS` or
    /// `SUPPORTS,OPPOSES`) or by their own names. Even a single class must have such a name, because it could measure anything.
    ///
    /// # Errors
    /// No class or several classes mean support, or the user names one that does not exist.
    pub fn find(labels: &[String], given: Option<&str>, many: bool) -> Result<Self, NoSupportClass> {
        let unclear = || NoSupportClass { labels: labels.to_vec() };
        let places = |wanted: &dyn Fn(&str) -> bool| -> Vec<usize> {
            labels.iter().enumerate().filter(|(_, label)| wanted(label)).map(|(i, _)| i).collect()
        };
        let named = |name: &str| match places(&|label| label.eq_ignore_ascii_case(name)).as_slice() {
            [one] => Some(*one),
            _ => None,
        };
        let known = |names: &[&str]| match places(&|label| names.contains(&bare(label).as_str())).as_slice() {
            [one] => Some(*one),
            _ => None,
        };
        // A class may have a comma in its name.
        let pair = given.filter(|given| named(given).is_none()).and_then(|given| given.split_once(','));
        let (supports, opposes) = match (given, pair) {
            (_, Some((supports, opposes))) => {
                (named(supports.trim()), Some(named(opposes.trim()).ok_or_else(unclear)?))
            }
            (Some(given), None) => (named(given), known(&OPPOSES)),
            (None, _) => (known(&SUPPORTS), known(&OPPOSES)),
        };
        let supports = supports.ok_or_else(unclear)?;
        if opposes == Some(supports) {
            return Err(unclear());
        }
        Ok(Classes { supports, opposes, alone: many || labels.len() == 1 })
    }

    /// The logits of supports, opposes and neither. All other classes count together as neither. If no class opposes, the logit of
    /// opposes is so low that it has no effect.
    fn three(self, logits: &[f32]) -> Result<[f32; 3], DetectError> {
        const NOTHING: f32 = -100.0;
        let missing = || DetectError::Model("it returned fewer classes than it names".into());
        let own = *logits.get(self.supports).ok_or_else(missing)?;
        let against = match self.opposes {
            Some(class) => Some(*logits.get(class).ok_or_else(missing)?),
            None => None,
        };
        if self.alone {
            return Ok([own, against.unwrap_or(NOTHING), 0.0]);
        }
        let others = logits.iter().enumerate();
        let others: Vec<f32> = others
            .filter(|(i, _)| *i != self.supports && Some(*i) != self.opposes)
            .map(|(_, z)| *z)
            .collect();
        let top = others.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let neither = if others.is_empty() {
            own.min(against.unwrap_or(own)) + NOTHING
        } else {
            top + others.iter().map(|z| (z - top).exp()).sum::<f32>().ln()
        };
        Ok([own, against.unwrap_or(neither + NOTHING), neither])
    }

    /// The rule of a model with these classes: from `joint.json`, or else the default.
    fn rule(self, name: &str, folder: &Path) -> Result<Rule, InputError> {
        let rule = Rule::classifier(name, self.opposes.is_some(), self.alone);
        let file = folder.join(JOINT);
        if !file.exists() {
            return Ok(rule);
        }
        let bytes = read_regular(&file, SMALL).map_err(|error| InputError::unreadable(&file, &error))?;
        rule.fitted(&bytes).map_err(|error| InputError::Unreadable {
            path: file,
            reason: format!("expected parameters as tools/detector/fit.py writes them ({error}); remove the file to use the defaults"),
        })
    }
}

/// A label's letters and digits in lower case.
fn bare(label: &str) -> String {
    label.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(labels: &[&str], given: Option<&str>) -> Result<Classes, NoSupportClass> {
        Classes::find(&labels.iter().map(|label| (*label).to_owned()).collect::<Vec<_>>(), given, false)
    }

    #[test]
    fn the_class_that_means_support_is_found_by_its_name_in_any_order() {
        for (labels, at) in [
            (&["CONTRADICTION", "NEUTRAL", "ENTAILMENT"][..], 2),
            (&["entailment", "not_entailment"], 0),
            (&["refutes", "SUPPORTS", "not enough info"], 1),
            (&["AGAINST", "FAVOR", "NONE"], 1),
            (&["CON", "PRO"], 1),
        ] {
            assert_eq!(find(labels, None).map(|found| found.supports), Ok(at), "{labels:?}");
        }
        let one = Ok(Classes { supports: 0, opposes: None, alone: true });
        assert_eq!(find(&["entailment"], None), one);
        assert_eq!(find(&["LABEL_0"], Some("LABEL_0")), one);
    }

    #[test]
    fn unclear_labels_are_listed_with_how_to_name_one() {
        let message = find(&["LABEL_0", "LABEL_1"], None).unwrap_err().to_string();
        assert!(message.contains("LABEL_0, LABEL_1") && message.contains("@supports=LABEL_0"), "{message}");
        assert_eq!(find(&["LABEL_0", "LABEL_1"], Some("label_1")).unwrap().supports, 1);
        assert!(find(&["LABEL_0", "LABEL_1"], Some("yes")).is_err());
        assert!(find(&["pro", "support"], None).is_err());
        assert!(find(&["LABEL_0"], None).unwrap_err().to_string().contains("@supports=LABEL_0"));
    }

    #[test]
    fn the_class_that_opposes_is_found_or_named_and_the_others_count_as_neither() {
        let three = find(&["CONTRADICTION", "NEUTRAL", "ENTAILMENT"], None).unwrap();
        assert_eq!(three.three(&[1.0, 2.0, 3.0]), Ok([3.0, 1.0, 2.0]));
        let named = find(&["a", "b", "c"], Some("c,a")).unwrap();
        assert_eq!((named.supports, named.opposes), (2, Some(0)));
        assert!(find(&["a", "b", "c"], Some("c,x")).is_err() && find(&["a", "b"], Some("a,a")).is_err());
        assert_eq!(find(&["a,b", "c"], Some("a,b")).unwrap().supports, 0);
        let four = find(&["pro", "x", "y", "con"], None).unwrap();
        let [s, o, n] = four.three(&[0.5, 1.0, 1.0, -1.0]).unwrap();
        assert_eq!((s, o), (0.5, -1.0));
        assert!((n - (1.0 + 2.0f32.ln())).abs() < 1e-6);
        assert!(four.three(&[0.5]).is_err());
        let message = find(&[], None).unwrap_err().to_string();
        assert!(message.contains("it names none") && message.contains("--classes"), "{message}");
    }

    #[test]
    fn probabilities_are_those_of_softmax_and_of_the_logistic_curve() {
        let p = |classes: Classes, logits: &[f32]| {
            let window = Window { logits: classes.three(logits).unwrap(), cosine: 0.0 };
            Rule::classifier("x", classes.opposes.is_some(), classes.alone)
                .single(&Reading::new(vec![window]).unwrap())
        };
        let three = find(&["entailment", "neutral", "contradiction"], None).unwrap();
        assert!((p(three, &[1.0, 0.0, -1.0]) - 0.665_240_96).abs() < 1e-6);
        assert_eq!(p(three, &[-200.0, 200.0, 0.0]), 0.0);
        assert_eq!(p(find(&["x"], Some("x")).unwrap(), &[0.0]), 0.5);
        let many = Classes::find(&["pro".into(), "con".into()], None, true).unwrap();
        assert_eq!(p(many, &[0.0, 9.0]), 0.5);
        // Two classes, support and opposition: nothing is neither.
        assert!((p(find(&["con", "pro"], None).unwrap(), &[0.0, 1.0]) - 0.731_058_6).abs() < 1e-6);
    }
}
