//! The key points of a question: the arguments that its supporting passages make, clustered from their sentences, and which of them a
//! list brings.
//!
//! Every passage of the pool that supports a statement gives the sentences that a detector finds to support it, at least the one that
//! supports it most. The sentences of each statement are clustered by the built-in encoder; a cluster is a key point, named by its most
//! central sentence. A key point that two passages or more make is vital, one of a single passage is okay, until the user decides
//! otherwise.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use super::judgments::Judgments;
use super::list::Ranked;
use super::opening::SetupError;
use super::setup::Setup;
use crate::corpus::{Passage, PassageIx};
use crate::detect::{DetectError, LabelSource, sentences};
use crate::encode::{EncodeError, Encoder, Role};
use crate::input::{Expected, InputError, lines};
use crate::measure::SupportSet;
use crate::measure::nuggets::{ClusterError, Nugget, NuggetRecall, agglomerate, central};
use crate::question::Question;
use crate::work::{Job, OnProgress, Progress, Stop, Stopped, on_all};

/// Two clusters are one key point if the mean cosine between their sentences is at least this. It has the greatest B-cubed F1 on the
/// training part of IBM's key points for the built-in encoder: `parallax eval nuggets --matching FOLDER`.
pub const THRESHOLD: f64 = 0.46;
/// A sentence of fewer words makes no argument of its own.
const WORDS: usize = 4;

/// Why there are no key points.
#[derive(Debug, thiserror::Error)]
pub enum NuggetError {
    /// A model cannot be opened.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The encoder failed.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// The sentences were not clustered.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
}

impl From<Stopped> for NuggetError {
    fn from(stopped: Stopped) -> Self {
        NuggetError::Cluster(stopped.into())
    }
}

impl NuggetError {
    /// Whether it was stopped on request, which is not a failure.
    pub fn is_stop(&self) -> bool {
        matches!(self, NuggetError::Cluster(ClusterError::Stopped(_)))
    }
}

/// A sentence that makes a key point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Voice {
    /// The id of its passage.
    pub passage: String,
    /// The sentence.
    pub text: String,
}

/// An argument for a statement, and who makes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPoint {
    /// The statement that it supports, from 0.
    pub perspective: usize,
    /// Its most central sentence, or the name that the user gave it.
    pub name: String,
    /// Whether a good list must bring it.
    pub vital: bool,
    /// The sentences that make it.
    pub voices: Vec<Voice>,
}

impl KeyPoint {
    /// How many passages make it.
    pub fn passages(&self) -> usize {
        self.voices.iter().map(|voice| &voice.passage).collect::<BTreeSet<_>>().len()
    }

    /// The rank, from 1, of the first passage of a list that makes it.
    pub fn rank_in(&self, list: &[Ranked]) -> Option<usize> {
        let makes = |ranked: &Ranked| self.voices.iter().any(|voice| voice.passage == ranked.passage.id);
        list.iter().position(makes).map(|place| place + 1)
    }

    /// Whether the first k of a list bring it.
    pub fn is_in(&self, list: &[Ranked], k: usize) -> bool {
        self.rank_in(&list[..list.len().min(k)]).is_some()
    }
}

/// How many of the key points the first k of a list bring; `None` without key points.
pub fn recall(points: &[KeyPoint], list: &[Ranked], k: usize) -> Option<NuggetRecall> {
    let nugget = |point: &KeyPoint| Nugget { vital: point.vital, brought: point.is_in(list, k) };
    NuggetRecall::of(&points.iter().map(nugget).collect::<Vec<_>>())
}

/// Merges a key point into another one of the same statement, which keeps its name and becomes vital if either was. Returns whether that
/// could be done.
pub fn merge(points: &mut Vec<KeyPoint>, from: usize, into: usize) -> bool {
    let both = points.get(from).zip(points.get(into));
    if from == into || both.is_none_or(|(from, into)| from.perspective != into.perspective) {
        return false;
    }
    let gone = points.remove(from);
    let kept = &mut points[into - usize::from(into > from)];
    kept.vital |= gone.vital;
    kept.voices.extend(gone.voices);
    true
}

/// Splits a key point into one for each of its sentences; those of one passage are okay. Returns whether there were several.
pub fn split(points: &mut Vec<KeyPoint>, at: usize) -> bool {
    let Some(point) = points.get(at).filter(|point| point.voices.len() > 1).cloned() else { return false };
    let alone = point.voices.into_iter().map(|voice| KeyPoint {
        perspective: point.perspective,
        name: voice.text.clone(),
        vital: false,
        voices: vec![voice],
    });
    points.splice(at..=at, alone);
    true
}

/// The judged passages of lists, with what they support.
pub fn judged<'l>(
    lists: impl IntoIterator<Item = &'l [Ranked]>,
    judgments: &Judgments,
) -> Vec<(PassageIx, SupportSet)> {
    let ranked = lists.into_iter().flatten();
    ranked.filter_map(|ranked| Some((ranked.at, judgments.support(ranked.at)?))).collect()
}

/// The passages of a question that are known: the judged ones, and all labelled ones if labels count, with what they support, which may be
/// nothing. Key points are taken from them.
pub fn pool(
    setup: &Setup,
    question: &Question,
    source: LabelSource,
    judged: Vec<(PassageIx, SupportSet)>,
) -> Vec<(PassageIx, SupportSet)> {
    let mut all: BTreeMap<PassageIx, SupportSet> = judged.into_iter().collect();
    for (id, set) in setup.label_pool(question, source) {
        if let Some(at) = setup.corpus.find(&id) {
            all.entry(at).or_insert(set);
        }
    }
    all.into_iter().collect()
}

/// A sentence that may make a key point.
struct Candidate {
    perspective: usize,
    voice: Voice,
    /// The probability that it supports the statement; 1 if no detector was asked.
    p: f32,
}

/// The sentences of a passage that are long enough to argue; the whole text if none is.
fn candidates(passage: &Passage, perspective: usize) -> impl Iterator<Item = Candidate> {
    let all = sentences(&passage.text).into_iter().map(|range| passage.text[range].to_owned());
    let mut long: Vec<String> = all.filter(|sentence| sentence.split_whitespace().count() >= WORDS).collect();
    if long.is_empty() {
        long.push(passage.text.trim().to_owned());
    }
    let id = passage.id.clone();
    long.into_iter().map(move |text| Candidate {
        perspective,
        voice: Voice { passage: id.clone(), text },
        p: 1.0,
    })
}

/// Keeps, of each passage and statement, the sentences at or above the threshold, or the one with the greatest probability.
fn supporting(all: Vec<Candidate>, threshold: f32) -> Vec<Candidate> {
    let mut greatest: BTreeMap<(String, usize), f32> = BTreeMap::new();
    for one in &all {
        let best = greatest.entry((one.voice.passage.clone(), one.perspective)).or_insert(f32::NEG_INFINITY);
        *best = best.max(one.p);
    }
    let keep =
        |one: &Candidate| one.p >= threshold.min(greatest[&(one.voice.passage.clone(), one.perspective)]);
    all.into_iter().filter(keep).collect()
}

/// Whether a detector can be asked about single sentences: it reads any text, and a verdict costs nothing.
///
/// # Errors
/// The detector cannot be loaded.
pub fn picks_sentences(setup: &Setup) -> Result<bool, SetupError> {
    Ok(setup.detector()?.rereads())
}

/// Finds the key points of a question in passages with what they support. Those of the first statement come first, and of one statement
/// those that most passages make.
///
/// # Errors
/// A model cannot be opened or run, there are too many sentences, or `stop` was set.
pub fn key_points(
    setup: &Setup,
    question: &Question,
    pool: &[(PassageIx, SupportSet)],
    on_progress: OnProgress<'_>,
    stop: &Stop,
) -> Result<Vec<KeyPoint>, NuggetError> {
    let mut all: Vec<Candidate> = Vec::new();
    for (at, set) in pool {
        let passage = setup.passage(*at);
        all.extend(set.iter().flat_map(|perspective| candidates(&passage, perspective).collect::<Vec<_>>()));
    }
    let detector = setup.detector()?;
    if detector.rereads() {
        let rule = setup.rule()?;
        let (done, total) = (AtomicU64::new(0), all.len() as u64);
        let judged = on_all(setup.judging(), all.len(), stop, |i| {
            let Candidate { perspective, voice, .. } = &all[i];
            let sentence = Passage { text: voice.text.clone(), ..Passage::default() };
            let statement = &question.perspectives[*perspective];
            let p = match setup.verdicts.read(detector.as_ref(), &sentence, statement, stop) {
                Ok(reading) => rule.single(&reading),
                Err(DetectError::Stopped(_)) => return None,
                // A sentence that cannot be judged is kept only if its passage has no better one.
                Err(_) => 0.0,
            };
            on_progress(Progress {
                job: Job::Judging,
                done: done.fetch_add(1, Ordering::Relaxed) + 1,
                total,
            });
            Some(p)
        });
        let judged: Vec<f32> = judged.into_iter().flatten().collect();
        if judged.len() < all.len() {
            return Err(Stopped.into());
        }
        all.iter_mut().zip(judged).for_each(|(one, p)| one.p = p);
        all = supporting(all, rule.threshold);
    }
    let (encoder, mut points) = (setup.encoder(None)?, Vec::new());
    for perspective in 0..question.perspectives.len() {
        let own: Vec<Voice> =
            all.iter().filter(|one| one.perspective == perspective).map(|one| one.voice.clone()).collect();
        let texts: Vec<&str> = own.iter().map(|voice| voice.text.as_str()).collect();
        let rows = embedded(encoder.as_ref(), &setup.models, &texts, on_progress, stop)?;
        let clusters = agglomerate(&rows, THRESHOLD, on_progress, stop)?;
        points.extend(named(perspective, &own, &rows, &clusters));
    }
    Ok(points)
}

/// The vectors of texts.
///
/// # Errors
/// The encoder cannot be run, or `stop` was set.
pub fn embedded(
    encoder: &dyn Encoder,
    threads: &rayon::ThreadPool,
    texts: &[&str],
    on_progress: OnProgress<'_>,
    stop: &Stop,
) -> Result<Vec<Vec<f32>>, NuggetError> {
    let (done, total) = (AtomicU64::new(0), texts.len() as u64);
    let rows = on_all(threads, texts.len(), stop, |i| {
        let row = encoder.encode(texts[i], Role::Passage);
        on_progress(Progress { job: Job::Clustering, done: done.fetch_add(1, Ordering::Relaxed), total });
        row
    });
    if rows.len() < texts.len() {
        return Err(Stopped.into());
    }
    Ok(rows.into_iter().collect::<Result<_, _>>()?)
}

/// Makes a key point of every cluster, those that most passages make first.
fn named(perspective: usize, voices: &[Voice], rows: &[Vec<f32>], clusters: &[usize]) -> Vec<KeyPoint> {
    let count = clusters.iter().max().map_or(0, |last| last + 1);
    let point = |cluster: usize| {
        let members: Vec<usize> = (0..voices.len()).filter(|i| clusters[*i] == cluster).collect();
        let name = central(rows, &members).map(|member| voices[member].text.clone()).unwrap_or_default();
        let voices = members.iter().map(|member| voices[*member].clone()).collect();
        let mut point = KeyPoint { perspective, name, vital: false, voices };
        point.vital = point.passages() > 1;
        point
    };
    let mut points: Vec<KeyPoint> = (0..count).map(point).collect();
    points.sort_by_key(|point| std::cmp::Reverse(point.passages()));
    points
}

const EXPECTED: &str = "a JSON object with `question` (its id), `statement` (its text), `name`, `vital` and `sentences`, each with `passage` (its id) \
                        and `text`";

#[derive(Serialize, Deserialize)]
struct Line {
    question: String,
    statement: String,
    name: String,
    vital: bool,
    sentences: Vec<Voice>,
}

/// The key points of a question as JSON, one line each.
pub fn to_lines(question: &Question, points: &[KeyPoint]) -> String {
    let mut out = String::new();
    for point in points {
        let line = Line {
            question: question.id.clone(),
            statement: question.perspectives.get(point.perspective).cloned().unwrap_or_default(),
            name: point.name.clone(),
            vital: point.vital,
            sentences: point.voices.clone(),
        };
        let _ = writeln!(out, "{}", serde_json::json!(line));
    }
    out
}

/// Reads a file of key points; the result has one list for each question.
///
/// # Errors
/// A line is not a key point of these questions.
pub fn read(path: &Path, questions: &[Question]) -> Result<Vec<Vec<KeyPoint>>, InputError> {
    let mut found = vec![Vec::new(); questions.len()];
    lines(path, |_, line| {
        let line: Line = serde_json::from_str(line).map_err(|error| format!("{EXPECTED} ({error})"))?;
        let at = questions.iter().position(|question| question.id == line.question);
        let at =
            at.ok_or_else(|| Expected(format!("the id of a question of the set, not `{}`", line.question)))?;
        let statement = questions[at].perspectives.iter().position(|one| *one == line.statement);
        let perspective = statement.ok_or_else(|| {
            Expected(format!(
                "a statement of question {}: {}",
                line.question,
                questions[at].perspectives.join(" / ")
            ))
        })?;
        if line.sentences.is_empty() {
            return Err(Expected("at least one sentence".into()));
        }
        found[at].push(KeyPoint { perspective, name: line.name, vital: line.vital, voices: line.sentences });
        Ok(())
    })?;
    if found.iter().all(Vec::is_empty) {
        return Err(InputError::Empty {
            path: path.into(),
            what: "the file of key points",
            advice: EXPECTED,
        });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::sync::Arc;

    use super::*;

    fn voice(passage: &str, text: &str) -> Voice {
        Voice { passage: passage.into(), text: text.into() }
    }

    fn point(perspective: usize, voices: &[(&str, &str)]) -> KeyPoint {
        let voices: Vec<Voice> = voices.iter().map(|(passage, text)| voice(passage, text)).collect();
        KeyPoint { perspective, name: voices[0].text.clone(), vital: voices.len() > 1, voices }
    }

    fn list(ids: &[&str]) -> Vec<Ranked> {
        let ranked = |(i, id): (usize, &&str)| Ranked {
            at: PassageIx(i as u32),
            passage: Arc::new(Passage { id: (*id).into(), ..Passage::default() }),
            score: 0.0,
        };
        ids.iter().enumerate().map(ranked).collect()
    }

    /// The vital point stands at rank 2, the first okay one at rank 3, the second nowhere: at k = 2 that is 1/3, 1 and 1/(1 + 2·½) = ½.
    #[test]
    fn a_list_is_measured_by_the_key_points_that_its_first_passages_make() {
        let points = [
            point(0, &[("p2", "Animals suffer."), ("p9", "They suffer.")]),
            point(0, &[("p3", "It costs much.")]),
            point(1, &[("p7", "Children learn there.")]),
        ];
        let list = list(&["p1", "p2", "p3"]);
        let at = |k| recall(&points, &list, k).unwrap();
        assert_eq!(at(2), NuggetRecall { all: 1.0 / 3.0, vital: Some(1.0), weighted: 0.5 });
        assert_eq!((at(1).all, at(3).weighted), (0.0, 0.75));
        assert_eq!(recall(&[], &list, 3), None);
        assert_eq!(points[0].rank_in(&list), Some(2));
    }

    #[test]
    fn of_each_passage_the_sentences_above_the_threshold_count_or_else_the_best_one() {
        let candidate =
            |passage: &str, text: &str, p| Candidate { perspective: 0, voice: voice(passage, text), p };
        let all = vec![
            candidate("a", "strong", 0.9),
            candidate("a", "weak", 0.2),
            candidate("a", "fair", 0.6),
            candidate("b", "poor", 0.1),
            candidate("b", "better", 0.3),
        ];
        let kept: Vec<String> = supporting(all, 0.5).into_iter().map(|one| one.voice.text).collect();
        assert_eq!(kept, ["strong", "fair", "better"]);
    }

    #[test]
    fn a_sentence_of_a_few_words_argues_nothing_unless_the_passage_is_no_longer() {
        let passage = |text: &str| Passage { id: "p".into(), text: text.into(), ..Passage::default() };
        let texts = |text: &str| candidates(&passage(text), 0).map(|one| one.voice.text).collect::<Vec<_>>();
        assert_eq!(texts("No. The bears pace in their cages. Why?"), ["The bears pace in their cages."]);
        assert_eq!(texts(" Ban them. "), ["Ban them."]);
    }

    #[test]
    fn clusters_become_key_points_with_the_widest_first_and_a_single_passage_is_okay() {
        let voices = [
            voice("a", "It is dear."),
            voice("b", "Bears suffer."),
            voice("c", "Wolves suffer."),
            voice("c", "They suffer."),
        ];
        let angle = |degrees: f32| vec![degrees.to_radians().cos(), degrees.to_radians().sin()];
        let rows = [angle(90.0), angle(0.0), angle(10.0), angle(15.0)];
        let points = named(1, &voices, &rows, &[0, 1, 1, 1]);
        assert_eq!(points[0].name, "Wolves suffer.");
        assert_eq!((points[0].vital, points[0].passages(), points[0].perspective), (true, 2, 1));
        assert_eq!((points[1].name.as_str(), points[1].vital), ("It is dear.", false));
        assert_eq!(named(0, &[], &[], &[]), []);
    }

    #[test]
    fn key_points_of_one_statement_are_merged_and_split_and_those_of_two_are_not() {
        let mut points = vec![
            point(0, &[("a", "Animals suffer.")]),
            point(0, &[("b", "They suffer."), ("c", "Bears suffer.")]),
            point(1, &[("d", "Children learn.")]),
        ];
        assert!(!merge(&mut points, 0, 2) && !merge(&mut points, 0, 0) && !merge(&mut points, 0, 9));
        assert!(merge(&mut points, 0, 1));
        assert_eq!((points.len(), points[0].name.as_str(), points[0].passages()), (2, "They suffer.", 3));
        assert!(points[0].vital);
        assert!(split(&mut points, 0) && !split(&mut points, 0));
        assert_eq!(
            points.iter().map(|point| point.name.as_str()).collect::<Vec<_>>(),
            ["They suffer.", "Bears suffer.", "Animals suffer.", "Children learn."]
        );
        assert!(points.iter().all(|point| !point.vital));
    }

    #[test]
    fn a_file_of_key_points_is_read_back_and_a_wrong_line_says_what_was_expected() {
        let question = Question {
            id: "q1".into(),
            perspectives: vec!["Ban zoos.".into(), "Keep zoos.".into()],
            ..Question::default()
        };
        let points = vec![
            point(0, &[("a", "Animals suffer."), ("b", "They do.")]),
            point(1, &[("d", "Children learn.")]),
        ];
        let read_text = |text: &str| {
            let mut file = tempfile::NamedTempFile::new().unwrap();
            file.write_all(text.as_bytes()).unwrap();
            read(file.path(), std::slice::from_ref(&question)).map_err(|error| error.to_string())
        };
        let text = to_lines(&question, &points);
        assert_eq!(read_text(&text), Ok(vec![points]));
        for (from, to, expected) in [
            ("q1", "q2", "not `q2`"),
            ("Ban zoos.", "Burn zoos.", "Ban zoos. / Keep zoos."),
            ("\"vital\"", "\"vita\"", ":1: expected a JSON object"),
        ] {
            let error = read_text(&text.replace(from, to)).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
        assert!(read_text("").unwrap_err().contains("the file of key points is empty"));
    }
}
