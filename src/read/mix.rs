//! Reading lists mixed by hand: so many passages for one side, so many for the other, so many for none, in an order, from few sources or
//! many; and what a reader concludes as the share of one side goes from 0 to 1.
//!
//! RAMDocs (Wang et al., 2025) mixes valid answers, misinformation and noise in this way. There the first side is the right answer, the
//! second the wrong one.

use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;

use super::files::{holds, named};
use super::pattern::{Sides, Stance, stances};
use super::reader::{Answer, Context, normalised};
use crate::corpus::Passage;
use crate::input::{InputError, lines};
use crate::measure::seeded::SplitMix64;

/// What a passage is for the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It supports the first side alone; in RAMDocs, it has a right answer.
    First,
    /// It supports the second side alone; in RAMDocs, it is misinformation.
    Second,
    /// It supports neither side, or both.
    Noise,
}

impl Kind {
    /// All of them, in the order of [`Pool`] and [`Mix::counts`].
    pub const ALL: [Kind; 3] = [Kind::First, Kind::Second, Kind::Noise];

    /// The kind of a passage by the sides that it supports.
    pub fn of(sides: Sides) -> Self {
        match sides {
            (true, false) => Kind::First,
            (false, true) => Kind::Second,
            _ => Kind::Noise,
        }
    }

    /// Its name: of the first side, of the second side, of neither.
    pub fn name(self) -> &'static str {
        match self {
            Kind::First => "first side",
            Kind::Second => "second side",
            Kind::Noise => "noise",
        }
    }
}

/// The passages that can be mixed, by kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pool(pub [Vec<Arc<Passage>>; 3]);

impl Pool {
    /// The passages of a kind.
    pub fn of(&self, kind: Kind) -> &[Arc<Passage>] {
        &self.0[kind as usize]
    }

    /// Adds a passage.
    pub fn add(&mut self, kind: Kind, passage: Arc<Passage>) {
        self.0[kind as usize].push(passage);
    }
}

/// The order of a mixed list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// One of each kind in turn, the first side first.
    #[default]
    Turns,
    /// The first side, then the second, then noise.
    FirstSide,
    /// The second side, then the first, then noise.
    SecondSide,
    /// Shuffled by a seed.
    Shuffled(u64),
}

impl Order {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Order::Turns => "in turns",
            Order::FirstSide => "first side first",
            Order::SecondSide => "second side first",
            Order::Shuffled(_) => "shuffled",
        }
    }

    /// The order after this one, as a key changes it.
    pub fn next(self) -> Self {
        match self {
            Order::Turns => Order::FirstSide,
            Order::FirstSide => Order::SecondSide,
            Order::SecondSide => Order::Shuffled(0),
            Order::Shuffled(_) => Order::Turns,
        }
    }
}

/// A mixture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mix {
    /// How many passages of each kind.
    pub counts: [usize; 3],
    /// Their order.
    pub order: Order,
    /// The most different passages of a kind; they are repeated to its count. `None` if no passage is repeated.
    pub sources: Option<usize>,
}

/// A pool has fewer passages than a mixture asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{there} passages of the {} are there, the mix asks for {wanted}", kind.name())]
pub struct TooFew {
    /// The kind.
    pub kind: Kind,
    /// How many the mixture asks for.
    pub wanted: usize,
    /// How many there are.
    pub there: usize,
}

impl Mix {
    /// The mixture in which `first` of `both` passages are of the first side.
    pub fn at(self, first: usize, both: usize) -> Self {
        Mix { counts: [first, both - first, self.counts[2]], ..self }
    }

    /// The passages of one kind.
    fn drawn(&self, pool: &Pool, kind: Kind) -> Result<Vec<Arc<Passage>>, TooFew> {
        let (own, wanted) = (pool.of(kind), self.counts[kind as usize]);
        let different = self.sources.map_or(wanted, |most| most.clamp(1, own.len().max(1))).min(wanted);
        if own.len() < different {
            return Err(TooFew { kind, wanted, there: own.len() });
        }
        Ok(own[..different].iter().cycle().take(wanted).cloned().collect())
    }

    /// The mixed list; ranks are its own, from 1.
    ///
    /// # Errors
    /// The pool has fewer passages of a kind than the mixture asks for.
    pub fn list(&self, pool: &Pool) -> Result<Vec<Context>, TooFew> {
        let [first, second, noise] =
            [self.drawn(pool, Kind::First)?, self.drawn(pool, Kind::Second)?, self.drawn(pool, Kind::Noise)?];
        let all = match self.order {
            Order::FirstSide => [first, second, noise].concat(),
            Order::SecondSide => [second, first, noise].concat(),
            Order::Turns => in_turns([first, second, noise]),
            Order::Shuffled(seed) => {
                let mut all = [first, second, noise].concat();
                SplitMix64::new(seed).shuffle(&mut all);
                all
            }
        };
        Ok(Context::list(all))
    }
}

/// One of each list in turn; a list that has ended is passed over.
fn in_turns(lists: [Vec<Arc<Passage>>; 3]) -> Vec<Arc<Passage>> {
    let longest = lists.iter().map(Vec::len).max().unwrap_or(0);
    (0..longest).flat_map(|at| lists.iter().filter_map(move |list| list.get(at).cloned())).collect()
}

/// What a reader concludes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// The first side; in RAMDocs a right answer.
    First,
    /// The second side; in RAMDocs a wrong answer.
    Second,
    /// Both.
    Both,
    /// Neither.
    Neither,
    /// It refuses to answer.
    Refused,
}

impl Said {
    /// From a reply to which of two statements the passages support; see [`super::Reader::on_sides`].
    pub fn of_stance(answer: &Answer) -> Self {
        match answer.text.as_str() {
            _ if answer.is_refusal() => Said::Refused,
            "supports" => Said::First,
            "opposes" => Said::Second,
            "balanced" => Said::Both,
            _ => Said::Neither,
        }
    }

    /// From an answer in words: which answers it holds as whole words.
    pub fn of_answer(answer: &Answer, right: &[String], wrong: &[String]) -> Self {
        if answer.is_refusal() {
            return Said::Refused;
        }
        let text = Passage { text: normalised(&answer.text), ..Passage::default() };
        match (holds(&text, right), holds(&text, wrong)) {
            (true, false) => Said::First,
            (false, true) => Said::Second,
            (true, true) => Said::Both,
            (false, false) => Said::Neither,
        }
    }

    /// From the passages alone, without a reader: the stance that they take together, by rank.
    pub fn of_passages(ranked: &[Sides]) -> Self {
        match stances(ranked).last() {
            Some(Stance::Supports) => Said::First,
            Some(Stance::Opposes) => Said::Second,
            Some(Stance::Balanced) => Said::Both,
            Some(Stance::Silent) | None => Said::Neither,
        }
    }

    /// How far it is on the first side: 1, ½ for both, 0 for the second; `None` if it takes no side.
    pub fn value(self) -> Option<f64> {
        match self {
            Said::First => Some(1.0),
            Said::Both => Some(0.5),
            Said::Second => Some(0.0),
            Said::Neither | Said::Refused => None,
        }
    }
}

/// The share of readings that conclude what most of them do: 1 if the order changes nothing. `None` without readings.
pub fn stability(said: &[Said]) -> Option<f64> {
    let most = said.iter().map(|one| said.iter().filter(|other| *other == one).count()).max()?;
    Some(most as f64 / said.len() as f64)
}

/// The share of the first side at which a curve from 0 to 1 first reaches ½, interpolated between its points; `None` if it never does, or
/// begins there.
///
/// ```
/// use parallax::read::mix::tipping_point;
///
/// // From .3 at a quarter to .6 at a half: ½ lies two thirds of the way.
/// let tipped = tipping_point(&[(0.0, 0.1), (0.25, 0.3), (0.5, 0.6), (1.0, 0.9)]).unwrap();
/// assert!((tipped - (0.25 + 0.25 * 2.0 / 3.0)).abs() < 1e-12);
/// ```
pub fn tipping_point(curve: &[(f64, f64)]) -> Option<f64> {
    curve.windows(2).find_map(|pair| {
        let [(x1, y1), (x2, y2)] = [pair[0], pair[1]];
        (y1 < 0.5 && y2 >= 0.5).then(|| x1 + (x2 - x1) * (0.5 - y1) / (y2 - y1))
    })
}

/// A question of RAMDocs: its passages by kind, its right and its wrong answers.
#[derive(Clone, Debug, PartialEq)]
pub struct Mixed {
    /// Its id, or its line.
    pub id: String,
    /// The question.
    pub question: String,
    /// Its passages.
    pub pool: Pool,
    /// The right answers.
    pub right: Vec<String>,
    /// The wrong answers.
    pub wrong: Vec<String>,
}

const EXPECTED: &str = "a JSON object as in RAMDocs, with `question`, `gold_answers`, `wrong_answers` and `documents`, each with `text` and `type`: \
                        correct, misinfo or noise";

#[derive(Deserialize)]
struct Line {
    id: Option<serde_json::Value>,
    question: String,
    gold_answers: Vec<String>,
    wrong_answers: Vec<String>,
    documents: Vec<Document>,
}

#[derive(Deserialize)]
struct Document {
    text: String,
    #[serde(rename = "type")]
    kind: String,
}

/// Reads a set in RAMDocs' format.
///
/// # Errors
/// A line is not such a question, or the file is empty.
pub fn read(path: &Path) -> Result<Vec<Mixed>, InputError> {
    let mut all = Vec::new();
    lines(path, |number, line| {
        let line: Line = serde_json::from_str(line).map_err(|error| format!("{EXPECTED} ({error})"))?;
        let id = named(line.id).unwrap_or_else(|| number.to_string());
        let mut pool = Pool::default();
        for (at, Document { text, kind }) in line.documents.into_iter().enumerate() {
            let kind = match kind.as_str() {
                "correct" => Kind::First,
                "misinfo" => Kind::Second,
                "noise" => Kind::Noise,
                other => return Err(format!("a `type` of correct, misinfo or noise, not `{other}`").into()),
            };
            // The same ids as those of `files`, so that recorded answers name them alike.
            pool.add(kind, Arc::new(Passage { id: format!("{id}-{}", at + 1), text, ..Passage::default() }));
        }
        let (question, right, wrong) =
            (line.question.trim().to_owned(), line.gold_answers, line.wrong_answers);
        all.push(Mixed { id, question, pool, right, wrong });
        Ok(())
    })?;
    if all.is_empty() {
        return Err(InputError::Empty { path: path.into(), what: "the set of questions", advice: EXPECTED });
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn pool(counts: [usize; 3]) -> Pool {
        let mut pool = Pool::default();
        for (kind, letter) in Kind::ALL.into_iter().zip(["a", "b", "n"]) {
            for i in 0..counts[kind as usize] {
                pool.add(kind, Arc::new(Passage { id: format!("{letter}{}", i + 1), ..Passage::default() }));
            }
        }
        pool
    }

    fn ids(mix: Mix, pool: &Pool) -> Result<String, TooFew> {
        let list = mix.list(pool)?;
        Ok(list.iter().map(|context| context.passage.id.as_str()).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn a_list_has_the_passages_of_its_mix_in_its_order() {
        let mix = |order| Mix { counts: [3, 2, 1], order, sources: None };
        let pool = pool([4, 4, 4]);
        assert_eq!(ids(mix(Order::FirstSide), &pool).unwrap(), "a1 a2 a3 b1 b2 n1");
        assert_eq!(ids(mix(Order::SecondSide), &pool).unwrap(), "b1 b2 a1 a2 a3 n1");
        assert_eq!(ids(mix(Order::Turns), &pool).unwrap(), "a1 b1 n1 a2 b2 a3");
        let shuffled = ids(mix(Order::Shuffled(1)), &pool).unwrap();
        let mut sorted: Vec<&str> = shuffled.split(' ').collect();
        sorted.sort_unstable();
        assert_eq!(sorted.join(" "), "a1 a2 a3 b1 b2 n1");
        assert_ne!(shuffled, ids(mix(Order::Shuffled(2)), &pool).unwrap());
    }

    #[test]
    fn few_sources_are_repeated_and_without_repeats_too_few_passages_are_an_error() {
        let mix = |counts, sources| Mix { counts, order: Order::FirstSide, sources };
        let few = pool([2, 1, 0]);
        assert_eq!(ids(mix([3, 2, 0], Some(1)), &few).unwrap(), "a1 a1 a1 b1 b1");
        assert_eq!(ids(mix([3, 2, 0], Some(5)), &few).unwrap(), "a1 a2 a1 b1 b1");
        let error = ids(mix([2, 3, 0], None), &few).unwrap_err();
        assert_eq!(error, TooFew { kind: Kind::Second, wanted: 3, there: 1 });
        assert_eq!(error.to_string(), "1 passages of the second side are there, the mix asks for 3");
        // Nothing can be repeated if nothing is there.
        assert_eq!(ids(mix([1, 1, 1], Some(1)), &few).unwrap_err().kind, Kind::Noise);
    }

    #[test]
    fn a_sweep_keeps_the_length_and_the_noise() {
        let mix = Mix { counts: [4, 0, 2], order: Order::Turns, sources: None };
        assert_eq!(
            (mix.at(0, 4).counts, mix.at(1, 4).counts, mix.at(4, 4).counts),
            ([0, 4, 2], [1, 3, 2], [4, 0, 2])
        );
    }

    #[test]
    fn what_was_said_is_known_by_words_by_whole_words_and_without_a_reader_by_the_passages() {
        let answer = |text: &str| Answer { text: text.into(), ..Answer::default() };
        for (text, said) in [
            ("supports", Said::First),
            ("opposes", Said::Second),
            ("balanced", Said::Both),
            ("silent", Said::Neither),
            ("I cannot say which.", Said::Refused),
        ] {
            assert_eq!(Said::of_stance(&answer(text)), said, "{text}");
        }
        let (right, wrong) = (["3,559 people".to_owned()], ["10,000 people".to_owned()]);
        for (text, said) in [
            ("It has 3,559 people.", Said::First),
            ("10,000 people", Said::Second),
            ("Either 3,559 people or 10,000 people.", Said::Both),
            ("13,559 people", Said::Neither),
            ("I'm sorry, I do not know.", Said::Refused),
        ] {
            assert_eq!(Said::of_answer(&answer(text), &right, &wrong), said, "{text}");
        }
        assert_eq!(Said::of_passages(&[(true, false), (false, false)]), Said::First);
        // 1 against .63 + .5 is within a fifth of the whole, 1 against .63 + .5 + .43 is not.
        let first_and = |others: usize| [&[(true, false)], &vec![(false, true); others][..]].concat();
        assert_eq!(Said::of_passages(&first_and(2)), Said::Both);
        assert_eq!(Said::of_passages(&first_and(3)), Said::Second);
        assert_eq!(Said::of_passages(&[]), Said::Neither);
    }

    #[test]
    fn a_tipping_point_is_where_the_curve_first_rises_through_a_half() {
        assert_eq!(tipping_point(&[(0.0, 0.0), (0.5, 0.5), (1.0, 1.0)]), Some(0.5));
        assert_eq!(tipping_point(&[(0.0, 0.0), (0.5, 0.25), (1.0, 0.75)]), Some(0.75));
        assert_eq!(tipping_point(&[(0.0, 0.2), (1.0, 0.4)]), None, "it never tips");
        assert_eq!(tipping_point(&[(0.0, 0.7), (1.0, 0.9)]), None, "it begins above");
        assert_eq!(tipping_point(&[]), None);
    }

    #[test]
    fn readings_are_as_stable_as_the_most_frequent_conclusion() {
        assert_eq!(stability(&[Said::First, Said::First, Said::Second]), Some(2.0 / 3.0));
        assert_eq!(stability(&[Said::Neither; 4]), Some(1.0));
        assert_eq!(stability(&[]), None);
    }

    #[test]
    fn questions_of_ramdocs_are_read_by_kind_and_other_lines_say_what_was_expected() {
        let read_text = |text: &str| {
            let mut file = tempfile::NamedTempFile::new().unwrap();
            file.write_all(text.as_bytes()).unwrap();
            read(file.path()).map_err(|error| error.to_string())
        };
        let line = r#"{"question":" Who? ","gold_answers":["Ann"],"wrong_answers":["Bob"],"documents":[{"text":"Bob","type":"misinfo"},{"text":"Ann","type":"correct"},{"text":"Rain","type":"noise"}]}"#;
        let all = read_text(line).unwrap();
        assert_eq!((all[0].id.as_str(), all[0].question.as_str()), ("1", "Who?"));
        assert_eq!(Kind::ALL.map(|kind| all[0].pool.of(kind)[0].id.clone()), ["1-2", "1-1", "1-3"]);
        assert!(read_text(&line.replace("noise", "nois")).unwrap_err().contains("not `nois`"));
        assert!(read_text("{}").unwrap_err().contains(":1: expected a JSON object as in RAMDocs"));
        assert!(read_text("").unwrap_err().contains("is empty"));
    }
}
