//! Predictions of another program, used as a detector: `file:PATH`.
//!
//! The file is a TSV with a header or JSONL, in which `document` and `perspective` hold the texts of a pair and `label` (or `score`,
//! from 0 to 1) says whether the document supports the perspective; `question` and `title` are optional. Or it holds BERDS results, in
//! which each passage has `NAME-preds`, booleans in the order of `perspectives`. Pairs are matched by their texts: white space does
//! not count, and a document may hold the title before or after the text.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use serde_json::{Map, Value};

use super::decision::{DetectError, truth};
use super::detector::{Detector, PredictionFile};
use super::rule::{Reading, Rule};
use crate::corpus::{Passage, exact_object};
use crate::input::{self, Expected, InputError, excerpt, lines, unquote};
use crate::work::Stop;

/// The number of pairs named in a message; the others are only counted.
const NAMED: usize = 3;
/// The end of the key of verdicts in BERDS results.
const PREDS: &str = "-preds";

/// The accepted names of each column or field, the usual one first.
const NAMES: [&[&str]; 4] = [
    &["document", "passage", "text", "doc"],
    &["perspective", "statement", "claim"],
    &["label", "prediction", "pred", "supports"],
    &["score", "p", "probability"],
];

/// One line's prediction.
struct Prediction {
    p: f32,
    line: usize,
    document: String,
    statement: String,
}

/// The predictions of one file.
pub struct Predictions {
    name: String,
    key: String,
    rule: Rule,
    by_pair: HashMap<[u8; 16], Prediction>,
    /// The number of judged pairs that the file lacks, and the first of them.
    missing: (AtomicUsize, Mutex<Vec<String>>),
}

/// The predictions of a file that match nothing here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmatched {
    /// The number of predictions that match nothing.
    pub count: usize,
    /// The number of all predictions.
    pub of: usize,
    /// Descriptions of the first three.
    pub first: Vec<String>,
}

impl Unmatched {
    /// The message for the user; `None` if everything matched.
    pub fn words(&self, file: &str) -> Option<String> {
        let Unmatched { count, of, first } = self;
        (*count > 0).then(|| {
            format!(
                "{file}: {count} of {of} predictions match no passage and statement here: {}",
                first.join("; ")
            )
        })
    }
}

impl Predictions {
    /// Reads a file.
    ///
    /// # Errors
    /// The file cannot be read, has none of the formats, has two predictions for one pair, or has a score that is not a probability.
    pub fn read(PredictionFile { path, preds }: &PredictionFile) -> Result<Self, InputError> {
        let mut reader = Reader { preds: preds.as_deref(), ..Reader::default() };
        let json = matches!(input::ending(path), Some("json" | "jsonl" | "ndjson"));
        lines(path, |number, line| if json { reader.json(number, line) } else { reader.row(number, line) })?;
        if reader.by_pair.is_empty() {
            let advice = "expected lines with document, perspective and label or score";
            return Err(InputError::Empty { path: path.clone(), what: "the predictions in it", advice });
        }
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        let slug: String = name.chars().take(40).map(plain).collect();
        let mut pairs: Vec<(&[u8; 16], &Prediction)> = reader.by_pair.iter().collect();
        pairs.sort_by_key(|(pair, _)| **pair);
        let mut hash = blake3::Hasher::new();
        for (pair, prediction) in pairs {
            hash.update(pair).update(&prediction.p.to_le_bytes());
        }
        let key = format!("file-{slug}-{}", &hash.finalize().to_hex()[..12]);
        let rule = Rule::decided_elsewhere(&name);
        Ok(Predictions { name, key, rule, by_pair: reader.by_pair, missing: Default::default() })
    }

    /// The file's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The predictions that match none of these pairs.
    pub fn unmatched_pairs<'a>(&self, pairs: impl Iterator<Item = (&'a Passage, &'a str)>) -> Unmatched {
        let mut held: HashSet<[u8; 16]> = HashSet::new();
        for (passage, statement) in pairs {
            held.extend(documents(passage).iter().map(|text| pair(text, statement)));
        }
        self.unmatched(|one| held.contains(&pair(&one.document, &one.statement)))
    }

    /// The predictions that match none of these passages or, if `statements` is not empty, none of the statements.
    pub fn unmatched_texts<'a>(
        &self,
        passages: impl Iterator<Item = Cow<'a, Passage>>,
        statements: &HashSet<&str>,
    ) -> Unmatched {
        // Hashes, because a corpus may be large.
        let hash = |text: &str| *blake3::hash(plain(text).as_bytes()).as_bytes();
        let mut held: HashSet<[u8; 32]> = HashSet::new();
        for passage in passages {
            held.extend(documents(&passage).iter().map(|text| hash(text)));
        }
        let statements: HashSet<String> = statements.iter().map(|statement| plain(statement)).collect();
        let said = |one: &Prediction| statements.is_empty() || statements.contains(&one.statement);
        self.unmatched(|one| said(one) && held.contains(&hash(&one.document)))
    }

    fn unmatched(&self, matched: impl Fn(&Prediction) -> bool) -> Unmatched {
        let mut without: Vec<&Prediction> = self.by_pair.values().filter(|one| !matched(one)).collect();
        without.sort_by_key(|one| one.line);
        let first = without.iter().take(NAMED);
        let first = first.map(|one| format!("line {} ({})", one.line, excerpt(&one.document))).collect();
        Unmatched { count: without.len(), of: self.by_pair.len(), first }
    }
}

impl Detector for Predictions {
    fn key(&self) -> &str {
        &self.key
    }

    fn rule(&self) -> &Rule {
        &self.rule
    }

    fn rereads(&self) -> bool {
        false
    }

    fn usage(&self) -> Option<String> {
        let (count, first) = (self.missing.0.load(Ordering::Relaxed), self.missing.1.lock().join("; "));
        (count > 0).then(|| format!("{} lacks {count} of the pairs to judge: {first}", self.name))
    }

    fn read(&self, passage: &Passage, statement: &str, _: &Stop) -> Result<Reading, DetectError> {
        if let Some(found) =
            documents(passage).into_iter().find_map(|text| self.by_pair.get(&pair(&text, statement)))
        {
            return Ok(Reading::of(found.p));
        }
        self.missing.0.fetch_add(1, Ordering::Relaxed);
        let mut first = self.missing.1.lock();
        if first.len() < NAMED {
            let what = if passage.id.is_empty() { excerpt(&passage.text) } else { passage.id.clone() };
            first.push(format!("{what} with {}", excerpt(statement)));
        }
        Err(DetectError::Unanswered(format!(
            "{} has no prediction for this passage and statement",
            self.name
        )))
    }
}

/// The texts that a file may have for a passage.
fn documents(passage: &Passage) -> Vec<String> {
    let Passage { title, text, .. } = passage;
    let mut all = vec![text.clone()];
    if !title.is_empty() {
        all.extend([format!("{title} {text}"), format!("{text} {title}")]);
    }
    all
}

fn plain(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn pair(document: &str, statement: &str) -> [u8; 16] {
    let mut hash = blake3::Hasher::new();
    for text in [plain(document), plain(statement)] {
        hash.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
    }
    let mut short = [0; 16];
    short.copy_from_slice(&hash.finalize().as_bytes()[..16]);
    short
}

#[derive(Default)]
struct Reader<'a> {
    preds: Option<&'a str>,
    /// The columns of document, perspective, label and score.
    columns: Option<[Option<usize>; 4]>,
    by_pair: HashMap<[u8; 16], Prediction>,
}

impl Reader<'_> {
    fn row(&mut self, number: usize, line: &str) -> Result<(), Expected> {
        let fields = line.split('\t').map(unquote).collect::<Result<Vec<String>, _>>()?;
        let Some(columns) = self.columns else {
            let place = |names: &[&str]| {
                fields.iter().position(|field| names.contains(&field.trim().to_ascii_lowercase().as_str()))
            };
            let found = NAMES.map(place);
            let [document, perspective, label, score] = found;
            if document.is_none() || perspective.is_none() || label.or(score).is_none() {
                self.columns = Some([None; 4]);
                return Err(
                    "a header that names document, perspective and label or score, separated by tabs".into(),
                );
            }
            self.columns = Some(found);
            return Ok(());
        };
        if columns[0].is_none() {
            return Ok(()); // the header was refused, and that is said once
        }
        let field = |place: Option<usize>| place.and_then(|place| fields.get(place)).map(String::as_str);
        let [document, perspective, label, score] = columns.map(field);
        let (Some(document), Some(perspective)) = (document, perspective) else {
            return Err("as many fields as the header has".into());
        };
        let p = match (score.filter(|text| !text.trim().is_empty()), label) {
            (Some(score), _) => probability(
                score.trim().parse().map_err(|_| Expected("a number in the column score".into()))?,
            )?,
            (None, Some(label)) => f32::from(u8::from(truth(label)?)),
            (None, None) => return Err("as many fields as the header has".into()),
        };
        self.take(number, document, perspective, p)
    }

    fn json(&mut self, number: usize, line: &str) -> Result<(), Expected> {
        let object: Map<String, Value> = exact_object(line).map_err(|error| {
            Expected(format!("an object with document, perspective and label or score ({error})"))
        })?;
        if object.contains_key("ctxs") {
            let preds = self.preds;
            return results(&object, preds, &mut |passage, statement, supports| {
                let text = passage.get("text").and_then(Value::as_str).unwrap_or_default();
                self.take(number, text, statement, f32::from(u8::from(supports)))
            });
        }
        let value = |names: &[&str]| names.iter().find_map(|name| object.get(*name));
        let [document, perspective, label, score] = NAMES.map(value);
        let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
        let (Some(document), Some(perspective)) = (text(document), text(perspective)) else {
            return Err("an object with the texts document and perspective".into());
        };
        let number_of = |value: &Value| value.as_f64().or_else(|| value.as_str()?.trim().parse().ok());
        let p = match (score.filter(|score| !score.is_null()), label) {
            (Some(score), _) => {
                probability(number_of(score).ok_or_else(|| Expected("a number as score".into()))?)?
            }
            (None, Some(Value::Bool(label))) => f32::from(u8::from(*label)),
            (None, Some(Value::String(label))) => f32::from(u8::from(truth(label)?)),
            (None, Some(Value::Number(label))) if [Some(0.0), Some(1.0)].contains(&label.as_f64()) => {
                label.as_f64().unwrap_or_default() as f32
            }
            _ => return Err("an object with label (true, false, 1, 0, yes, no) or score".into()),
        };
        self.take(number, &document, &perspective, p)
    }

    fn take(&mut self, line: usize, document: &str, statement: &str, p: f32) -> Result<(), Expected> {
        for (text, what) in [(document, "document"), (statement, "perspective")] {
            if text.trim().is_empty() {
                return Err(Expected(format!("a {what} that is not empty")));
            }
        }
        let key = pair(document, statement);
        if let Some(other) = self.by_pair.get(&key) {
            // A passage may be in the lists of several retrievers.
            return if other.p == p {
                Ok(())
            } else {
                Err(Expected(format!(
                    "one prediction per pair; line {} has {} for this pair, and this line {p}",
                    other.line, other.p
                )))
            };
        }
        let (document, statement) = (plain(document), plain(statement));
        self.by_pair.insert(key, Prediction { p, line, document, statement });
        Ok(())
    }
}

/// Takes each verdict on a passage and a statement.
type Take<'a> = dyn FnMut(&Map<String, Value>, &str, bool) -> Result<(), Expected> + 'a;

/// BERDS results: a question's statements, and the verdicts on them at each passage, by the judge with this name or the only one.
pub(super) fn results(
    object: &Map<String, Value>,
    preds: Option<&str>,
    take: &mut Take<'_>,
) -> Result<(), Expected> {
    let expected = |what: &str| Expected(format!("BERDS results with {what}"));
    let statements = object.get("perspectives").and_then(Value::as_array);
    let statements: Option<Vec<&str>> = statements.and_then(|all| all.iter().map(Value::as_str).collect());
    let statements = statements.ok_or_else(|| expected("a list `perspectives`"))?;
    let passages = object.get("ctxs").and_then(Value::as_array).ok_or_else(|| expected("a list `ctxs`"))?;
    for (rank, passage) in passages.iter().enumerate() {
        let passage = passage.as_object().ok_or_else(|| expected("objects in `ctxs`"))?;
        let verdicts: Vec<(&str, &Value)> =
            passage.iter().filter_map(|(key, value)| Some((key.strip_suffix(PREDS)?, value))).collect();
        let own = match (preds, verdicts.as_slice()) {
            (Some(name), all) => all.iter().find(|(own, _)| *own == name).map(|(_, value)| *value),
            (None, [(_, value)]) => Some(*value),
            (None, []) => None,
            (None, several) => {
                let names: Vec<&str> = several.iter().map(|(name, _)| *name).collect();
                return Err(Expected(format!(
                    "one key that ends in `{PREDS}`; name one of {} as in file:PATH@preds={}",
                    names.join(", "),
                    names[0]
                )));
            }
        };
        let Some(labels) = own.filter(|labels| !labels.is_null()) else { continue };
        let labels = labels.as_array().filter(|labels| labels.len() == statements.len());
        let labels = labels.ok_or_else(|| {
            expected(&format!("{} booleans at passage {}, one per perspective", statements.len(), rank + 1))
        })?;
        for (statement, label) in statements.iter().zip(labels) {
            let supports = match label {
                Value::Null => continue,
                Value::Bool(supports) => *supports,
                other => truth(&other.to_string())?,
            };
            take(passage, statement, supports)?;
        }
    }
    Ok(())
}

fn probability(score: f64) -> Result<f32, Expected> {
    if (0.0..=1.0).contains(&score) {
        Ok(score as f32)
    } else {
        Err(Expected(format!("a score from 0 to 1; {score} is not: give probabilities or labels")))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn read(ending: &str, text: &str, preds: Option<&str>) -> Result<Predictions, String> {
        let mut file = tempfile::Builder::new().suffix(ending).tempfile().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        let file = PredictionFile { path: file.path().into(), preds: preds.map(str::to_owned) };
        Predictions::read(&file).map_err(|error| error.to_string())
    }

    fn passage(title: &str, text: &str) -> Passage {
        Passage { title: title.into(), text: text.into(), ..Passage::default() }
    }

    fn judge(predictions: &Predictions, passage: &Passage, statement: &str) -> Option<f32> {
        predictions.judge(passage, statement, &Stop::never()).ok()
    }

    #[test]
    fn tables_and_objects_are_matched_by_text_however_blanks_and_title_stand() {
        let tsv = "question\tperspective\tdocument\tlabel\nQ?\tYes.\tZoos  teach.\t1\nQ?\tNo.\tZoos teach.\t0\n\
                   Q?\tYes.\tWelfare Animals suffer.\tyes\nQ?\tNo.\tAnimals suffer. Welfare\tno\n";
        let json = r#"{"question": "Q?", "perspective": "Yes.", "document": "Zoos  teach.", "label": true}
{"perspective": "No.", "passage": "Zoos teach.", "score": 0.0}
{"statement": "Yes.", "document": "Welfare\nAnimals suffer.", "prediction": 1}
{"perspective": "No.", "document": "Animals suffer. Welfare", "pred": "no"}"#;
        for (ending, text) in [(".tsv", tsv), (".jsonl", json)] {
            let own = read(ending, text, None).unwrap();
            let (teach, suffer) = (passage("", " Zoos\nteach. "), passage("Welfare", "Animals suffer."));
            let all = [(&teach, "Yes."), (&teach, " No."), (&suffer, "Yes."), (&suffer, "No.")];
            assert_eq!(
                all.map(|(passage, statement)| judge(&own, passage, statement)),
                [Some(1.0), Some(0.0), Some(1.0), Some(0.0)]
            );
            assert_eq!((own.usage(), own.threshold()), (None, 0.5));
            assert_eq!(own.unmatched_pairs(all.into_iter()).words("f"), None);
        }
    }

    #[test]
    fn scores_are_probabilities_and_verdicts_of_berds_are_named_where_there_are_several() {
        let scored =
            read(".tsv", "document\tperspective\tlabel\tscore\na\ts\t0\t.75\nb\ts\t1\t\n", None).unwrap();
        let p = |text: &str| judge(&scored, &passage("", text), "s").unwrap();
        assert!((p("a") - 0.75).abs() < 1e-6 && p("b") == 1.0);
        let berds = r#"{"question": "Q?", "perspectives": ["Yes.", "No."], "ctxs": [
            {"text": "a", "mistral-preds": [true, false], "gpt-preds": [null, true]}, {"text": "b", "title": "t"}]}"#
            .replace('\n', " ");
        let message = read(".jsonl", &berds, None).err().unwrap();
        assert!(message.contains("gpt, mistral") && message.contains("@preds=gpt"), "{message}");
        let mistral = read(".jsonl", &berds, Some("mistral")).unwrap();
        let gpt = read(".jsonl", &berds, Some("gpt")).unwrap();
        let both = |own| ["Yes.", "No."].map(|statement| judge(own, &passage("", "a"), statement));
        assert_eq!((both(&mistral), both(&gpt)), ([Some(1.0), Some(0.0)], [None, Some(1.0)]));
        assert_ne!(mistral.key(), gpt.key());
    }

    #[test]
    fn what_does_not_match_is_counted_and_the_first_three_are_named_on_both_sides() {
        let rows: String = (1..=5).map(|i| format!("text {i}\ts\t1\n")).collect();
        let own = read(".tsv", &format!("document\tperspective\tlabel\n{rows}"), None).unwrap();
        let held = [passage("", "text 4"), passage("", "text 9")];
        let unmatched = own.unmatched_texts(held.iter().map(Cow::Borrowed), &HashSet::from(["s"]));
        assert_eq!(
            unmatched.words("mine.tsv").unwrap(),
            "mine.tsv: 4 of 5 predictions match no passage and statement here: line 2 (`text 1`); line 3 (`text 2`); line 4 (`text 3`)"
        );
        assert_eq!(own.unmatched_texts(held.iter().map(Cow::Borrowed), &HashSet::from(["other"])).count, 5);
        assert_eq!(own.unmatched_texts(held.iter().map(Cow::Borrowed), &HashSet::new()).count, 4);
        for i in 0..5 {
            assert_eq!(judge(&own, &passage("", &format!("new {i}")), "s"), None);
        }
        let usage = own.usage().unwrap();
        assert!(usage.contains("lacks 5 of the pairs") && usage.contains("`new 2` with `s`"), "{usage}");
        assert!(!usage.contains("new 3"), "{usage}");
    }

    #[test]
    fn bad_files_are_refused_with_the_line_and_what_was_expected() {
        for (ending, text, expected) in [
            (".tsv", "a\tb\n", ":1: expected a header that names document, perspective and label or score"),
            (".tsv", "a\tb\nc\td\n", "found `a·b`\nnothing was taken from it"),
            (
                ".tsv",
                "document\tperspective\tscore\na\ts\t1.5\n",
                ":2: expected a score from 0 to 1; 1.5 is not",
            ),
            (".tsv", "document\tperspective\tscore\na\ts\tNaN\n", ":2: expected a score from 0 to 1; NaN"),
            (
                ".tsv",
                "document\tperspective\tlabel\na\ts\t1\n a\ts\t0\n",
                ":3: expected one prediction per pair; line 2 has 1",
            ),
            (".tsv", "document\tperspective\tlabel\n\ts\t1\n", ":2: expected a document that is not empty"),
            (".tsv", "document\tperspective\tlabel\na\n", ":2: expected as many fields as the header has"),
            (".tsv", "document\tperspective\tlabel\n", "the predictions in it"),
            (
                ".jsonl",
                "{\"document\": \"a\"}",
                ":1: expected an object with the texts document and perspective",
            ),
            (
                ".jsonl",
                "{\"document\": \"a\", \"perspective\": \"s\", \"label\": 3}",
                ":1: expected an object with label",
            ),
            (".jsonl", "[1", ":1: expected an object with document"),
            (
                ".jsonl",
                "{\"ctxs\": [], \"perspectives\": [1]}",
                ":1: expected BERDS results with a list `perspectives`",
            ),
            (
                ".jsonl",
                "{\"perspectives\": [\"a\", \"b\"], \"ctxs\": [{\"text\": \"x\", \"m-preds\": [true]}]}",
                ":1: expected BERDS results with 2 booleans at passage 1",
            ),
        ] {
            let message = read(ending, text, None).err().unwrap();
            assert!(message.contains(expected), "{text}: {message}");
        }
    }
}
