//! Compares several lanes on one question. Also how even an outcome is: between the statements, and
//! between the values of a metadata field.

use serde_json::{Map, Value};

use super::figures::{DrawnFigures, Draws, Figures, shares_of};
use super::judge::Shares;
use super::judgments::Judgments;
use super::list::{Lists, Ranked};
use super::opening::SetupError;
use super::query::{Depth, Query};
use super::run::{Outcome, run};
use super::setup::Setup;
use crate::corpus::store::{Field, Fields, MOST, NONE};
use crate::input;
use crate::measure::bias::{Exposure, SideShares, awrf, rkl};
use crate::measure::compare::{RBO_P, jaccard, rbo};
use crate::measure::uncertainty::DRAWS;
use crate::measure::{
    PerspectiveCount, SupportSet,
    coverage::{mrecall, prec},
};
use crate::question::Question;
use crate::work::Stop;

/// A question's outcome; the lists have one entry per lane.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// The figures; `None` for a lane that failed.
    pub figures: Vec<Option<Figures>>,
    /// What each of the first k supports.
    pub supports: Vec<Vec<Option<SupportSet>>>,
    /// Which of the first k have an unclear side.
    pub unclear: Vec<Vec<bool>>,
    /// Which of the first k the model was asked about.
    pub by_model: Vec<Vec<bool>>,
    /// The ids of the first k.
    pub tops: Vec<Vec<String>>,
    /// What the first k are called.
    pub headings: Vec<Vec<String>>,
    /// The metadata of those of the first k that the corpus holds.
    pub metadata: Vec<Vec<Map<String, Value>>>,
    /// The number of statements.
    pub perspectives: usize,
    /// The index of the supporting statement, if there are two.
    pub supports_first: usize,
    /// The outcome under the model's probabilities; `None` if labels alone count.
    pub expected: Option<Box<Expected>>,
    /// Who judged the first k.
    pub shares: Shares,
}

/// A question's outcome under the model's probabilities; the lists have one entry per lane.
#[derive(Clone, Debug, PartialEq)]
pub struct Expected {
    /// Mean MRecall and Prec of the first 1, 2, … k.
    at: Vec<Vec<(f64, f64)>>,
    /// MRecall of the first k in every draw; all lanes see the same draws.
    pub mrecall: Vec<Vec<f32>>,
    /// Mean lean of the first k.
    lean: Vec<f64>,
    /// The probabilities that the first k cover only the supporting side, only the other, both, neither.
    covers: Vec<[f64; 4]>,
}

impl Expected {
    /// Draws every passage of the lists from its chances; `None` if labels alone count.
    fn of(question: &Question, k: usize, tops: &[&[Ranked]], judgments: &Judgments) -> Option<Self> {
        let m = PerspectiveCount::new(judgments.perspectives).ok()?;
        let draws = Draws::of(judgments, tops)?;
        let mut expected =
            Expected { at: Vec::new(), mrecall: Vec::new(), lean: Vec::new(), covers: Vec::new() };
        let first = question.supports.unwrap_or(0).min(1);
        for top in tops {
            let mut sums = vec![(0.0, 0.0); k];
            let (mut recalls, mut covers) = (Vec::new(), [0.0; 4]);
            for set in draws.of_list(top) {
                for (i, sum) in sums.iter_mut().enumerate() {
                    sum.0 += mrecall(&set, m, i + 1).value;
                    sum.1 += prec(&set, m, i + 1).value;
                }
                let figures = DrawnFigures::of(&set, question, (m, k));
                recalls.push(figures.mrecall as f32);
                let covered = set.iter().flatten().fold(SupportSet::EMPTY, |all, one| all.union(*one));
                covers[place_of(covered, first)] += 1.0;
            }
            let mean = |sum: f64| sum / DRAWS as f64;
            expected.at.push(sums.into_iter().map(|(recall, prec)| (mean(recall), mean(prec))).collect());
            expected.mrecall.push(recalls);
            expected.lean.push(shares_of(judgments, question, top, k).map_or(0.0, SideShares::lean));
            expected.covers.push(covers.map(mean));
        }
        Some(expected)
    }
}

impl Compared {
    /// Measures the lists of several lanes; `None` is a lane that failed.
    pub fn of(question: &Question, k: usize, lists: &[Option<&[Ranked]>], judgments: &Judgments) -> Self {
        let tops: Vec<&[Ranked]> =
            lists.iter().map(|list| list.map_or(&[][..], |list| &list[..list.len().min(k)])).collect();
        let ids = |top: &&[Ranked]| top.iter().map(|ranked| ranked.passage.id.clone()).collect();
        let unclear = |top: &&[Ranked]| top.iter().map(|ranked| judgments.is_unclear(ranked.at)).collect();
        let asked = |ranked: &Ranked| Shares::of(judgments, [ranked.at]).by_model() > 0;
        let headings =
            |top: &&[Ranked]| top.iter().map(|ranked| ranked.passage.heading().to_owned()).collect();
        let held = |ranked: &&Ranked| ranked.at.as_outside().is_none();
        let metadata =
            |top: &&[Ranked]| top.iter().filter(held).map(|ranked| ranked.passage.metadata.clone()).collect();
        Compared {
            figures: lists.iter().map(|list| Figures::of((*list)?, judgments, question, k)).collect(),
            supports: tops.iter().map(|top| judgments.supports(top)).collect(),
            unclear: tops.iter().map(unclear).collect(),
            by_model: tops.iter().map(|top| top.iter().map(asked).collect()).collect(),
            tops: tops.iter().map(ids).collect(),
            headings: tops.iter().map(headings).collect(),
            metadata: tops.iter().map(metadata).collect(),
            perspectives: question.perspectives.len(),
            supports_first: question.supports.unwrap_or(0).min(1),
            expected: Expected::of(question, k, &tops, judgments).map(Box::new),
            shares: Shares::of(judgments, tops.iter().copied().flatten().map(|ranked| ranked.at)),
        }
    }

    /// MRecall and Prec of a lane's first `k`, at most as many as were judged; their means if a model judged.
    pub fn at(&self, lane: usize, k: usize) -> Option<(f64, f64)> {
        let m = PerspectiveCount::new(self.perspectives).ok()?;
        self.figures.get(lane)?.as_ref()?;
        if let Some(expected) = &self.expected {
            return expected.at.get(lane)?.get(k.checked_sub(1)?).copied();
        }
        let supports = self.supports.get(lane)?;
        Some((mrecall(supports, m, k).value, prec(supports, m, k).value))
    }

    /// The passages among a lane's first k that no other lane has there, as indices.
    pub fn only_in(&self, lane: usize) -> Vec<usize> {
        let Some(own) = self.tops.get(lane) else { return Vec::new() };
        let others = || self.tops.iter().enumerate().filter(|(other, _)| *other != lane);
        (0..own.len()).filter(|i| others().all(|(_, top)| !top.contains(&own[*i]))).collect()
    }

    /// Jaccard and RBO of two lanes' first k; `None` if both are empty.
    pub fn overlap(&self, one: usize, other: usize) -> Option<(f64, f64)> {
        let ids = |lane: usize| Some(self.tops.get(lane)?.iter().map(String::as_str).collect::<Vec<_>>());
        let (one, other) = (ids(one)?, ids(other)?);
        Some((jaccard(&one, &other, one.len().max(other.len()))?, rbo(&one, &other, RBO_P)?))
    }

    /// The spread of the lanes' MRecall plus the spread of their Prec: how much the lanes disagree.
    pub fn disagreement(&self) -> f64 {
        let k = self.figures.iter().flatten().map(|figures| figures.k).next().unwrap_or(1);
        let known: Vec<(f64, f64)> = (0..self.figures.len()).filter_map(|lane| self.at(lane, k)).collect();
        let spread = |value: fn(&(f64, f64)) -> f64| {
            let values = known.iter().map(value);
            let (low, high) = values.fold((f64::MAX, f64::MIN), |(l, h), x| (l.min(x), h.max(x)));
            (high - low).max(0.0)
        };
        spread(|both| both.0) + spread(|both| both.1)
    }
}

/// On how many judgments a figure rests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    /// Judged passages.
    pub judged: usize,
    /// All passages that the figure looks at.
    pub of: usize,
    /// Judged passages whose verdict is the model's.
    pub by_model: usize,
}

impl Sources {
    /// Adds those of another question.
    pub fn plus(self, other: Sources) -> Sources {
        Sources {
            judged: self.judged + other.judged,
            of: self.of + other.of,
            by_model: self.by_model + other.by_model,
        }
    }

    /// The share of the passages that is judged; `None` without passages.
    pub fn share(self) -> Option<f64> {
        (self.of > 0).then(|| self.judged as f64 / self.of as f64)
    }

    /// The share of the judgments that is the model's; `None` without judgments.
    pub fn model_share(self) -> Option<f64> {
        (self.judged > 0).then(|| self.by_model as f64 / self.judged as f64)
    }
}

/// Runs one question on all lanes of a query.
///
/// # Errors
/// The detector cannot be loaded.
pub fn compare(
    setup: &Setup,
    question: &Question,
    query: &Query,
    stop: &Stop,
) -> Result<Compared, SetupError> {
    let query = Query { question: question.clone(), ..query.clone() };
    Ok(Compared::from(&run(setup, query, Depth::Top, Lists::default(), stop, &|_| ())?))
}

impl From<&Outcome> for Compared {
    fn from(outcome: &Outcome) -> Self {
        Compared::of(&outcome.query.question, outcome.query.k, &outcome.lists(), &outcome.judgments)
    }
}

/// The most names that an error lists.
const NAMED: usize = 12;

/// How far a lane's first k are from an even share for every statement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Uneven {
    /// rKL at its cut-offs up to k.
    pub rkl: Exposure,
    /// AWRF@k.
    pub awrf: Exposure,
}

/// Why a field cannot be taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// The corpus has no metadata.
    #[error("no passage of this corpus has metadata; give its lines some, such as {EXAMPLE}")]
    NoFields,
    /// The field exists and is not a category.
    #[error(
        "the field `{0}` is not a category: it has more than {MOST} different values, or none that is a text, a number, true or false{1}"
    )]
    NoCategory(String, String),
    /// There is no such field.
    #[error("no passage has a field `{0}`{1}")]
    Unknown(String, String),
}

/// Example metadata of a line of a corpus.
pub const EXAMPLE: &str = "\"metadata\": {\"outlet\": \"…\", \"country\": \"…\"}";

impl Compared {
    /// rKL and AWRF of a lane's first `k`; `None` if there are fewer than two statements or no passage supports one.
    pub fn uneven(&self, lane: usize, k: usize) -> Option<Uneven> {
        let m = PerspectiveCount::new(self.perspectives).ok().filter(|m| m.get() > 1)?;
        let supports = self.supports.get(lane)?;
        let supports = &supports[..supports.len().min(k)];
        Some(Uneven { rkl: rkl(supports, m)?, awrf: awrf(supports, m, k)? })
    }

    /// The shares of the two sides in a lane's first k; `None` if it has no list or no verdicts.
    pub fn sides(&self, lane: usize) -> Option<SideShares> {
        self.figures.get(lane)?.as_ref().filter(|figures| figures.is_measured())?.sides
    }

    /// The lean of a lane: 0 if it has no list or nothing of it was judged, as for every measure over a question set. `None` if the
    /// question is not two-sided.
    pub fn lean(&self, lane: usize) -> Option<f64> {
        let expected = self.expected.as_ref().and_then(|expected| expected.lean.get(lane));
        let decided = || self.sides(lane).map_or(0.0, |sides| sides.lean());
        (self.perspectives == 2).then(|| expected.copied().unwrap_or_else(decided))
    }

    /// The number of judged passages among a lane's first k, and the number of all of them.
    pub fn judged(&self, lane: usize) -> (usize, usize) {
        let sources = self.sources(lane, usize::MAX);
        (sources.judged, sources.of)
    }

    /// On how many judgments a lane's first `k` rest, and how many of them are the model's.
    pub fn sources(&self, lane: usize, k: usize) -> Sources {
        let ranks = 0..self.supports.get(lane).map_or(0, Vec::len).min(k);
        ranks.fold(Sources::default(), |sum, rank| sum.plus(self.source(lane, rank)))
    }

    /// The same of a lane's passage at one rank, from 0.
    fn source(&self, lane: usize, rank: usize) -> Sources {
        let set = self.supports.get(lane).and_then(|top| top.get(rank));
        let judged = set.is_some_and(Option::is_some);
        let asked = self.by_model.get(lane).and_then(|top| top.get(rank)).copied().unwrap_or_default();
        let one = usize::from;
        Sources { judged: one(judged), of: one(set.is_some()), by_model: one(judged && asked) }
    }

    /// The number of passages among a lane's first k for each value of the field.
    pub fn counts(&self, lane: usize, field: &Field) -> Vec<usize> {
        let mut counts = vec![0; field.values.len()];
        for metadata in self.metadata.get(lane).into_iter().flatten() {
            if let Some(count) = field.place(metadata).and_then(|place| counts.get_mut(place)) {
                *count += 1;
            }
        }
        counts
    }
}

/// Counts the two-sided questions of which a lane's first k cover only the supporting side, only the other, both, neither; if a model
/// judged, the expected numbers. A lane without a list covers neither.
pub fn covered_sides<'a>(compared: impl IntoIterator<Item = &'a Compared>, lane: usize) -> [f64; 4] {
    let mut counts = [0.0; 4];
    for one in compared.into_iter().filter(|one| one.perspectives == 2) {
        if let Some(expected) = one.expected.as_ref().and_then(|expected| expected.covers.get(lane)) {
            counts.iter_mut().zip(expected).for_each(|(count, p)| *count += p);
            continue;
        }
        let figures = one.figures.get(lane).and_then(Option::as_ref);
        let covered = figures.map_or(SupportSet::EMPTY, |figures| figures.covered);
        counts[place_of(covered, one.supports_first)] += 1.0;
    }
    counts
}

/// On how many judgments each point of a lane's curve over the first 1, 2, … `k` rests, over all questions.
pub fn sources_over_k(compared: &[&Compared], lane: usize, k: usize) -> Vec<Sources> {
    let at =
        |rank: usize| compared.iter().fold(Sources::default(), |sum, one| sum.plus(one.source(lane, rank)));
    let add = |sum: &mut Sources, own: Sources| {
        *sum = sum.plus(own);
        Some(*sum)
    };
    (0..k).map(at).scan(Sources::default(), add).collect()
}

/// The place of a set of sides in counts of: only the supporting side, only the other, both, neither.
fn place_of(covered: SupportSet, first: usize) -> usize {
    match (covered.contains(first), covered.contains(1 - first)) {
        (true, false) => 0,
        (false, true) => 1,
        (true, true) => 2,
        (false, false) => 3,
    }
}

/// Finds the category of that name.
///
/// # Errors
/// There is no such category; the error names the nearest one, or all.
pub fn category<'a>(fields: &'a Fields, name: &str) -> Result<&'a Field, FieldError> {
    if let Some(field) = fields.categories.iter().find(|field| field.name == name) {
        return Ok(field);
    }
    if fields.categories.is_empty() && fields.others.is_empty() {
        return Err(FieldError::NoFields);
    }
    let names: Vec<&str> = fields.categories.iter().map(|field| field.name.as_str()).collect();
    let more = if names.len() > NAMED { ", …" } else { "" };
    let known = match names.len() {
        0 => "; no field of this corpus is one".to_owned(),
        count => format!("; the categories are: {}{more}", names[..count.min(NAMED)].join(", ")),
    };
    if fields.others.iter().any(|other| other == name) {
        return Err(FieldError::NoCategory(name.to_owned(), known));
    }
    let hint =
        input::nearest(name, names.iter().copied()).map_or(known, |near| format!("; did you mean `{near}`?"));
    Err(FieldError::Unknown(name.to_owned(), hint))
}

/// Returns the places of the values of a field that a question asks for: the value in its own metadata, else those that occur in its
/// text.
pub fn desired(field: &Field, question: &Question) -> Vec<usize> {
    let said = question.metadata.get(&field.name).and_then(|_| field.place(&question.metadata));
    if let Some(place) = said.filter(|place| field.values[*place].0 != NONE) {
        return vec![place];
    }
    let asked = words(&question.text);
    let named = |value: &str| {
        let value = words(value);
        !value.is_empty() && asked.windows(value.len()).any(|run| run == value)
    };
    let values = field.values.iter().enumerate().filter(|(_, (value, _))| value != NONE);
    values.filter(|(_, (value, _))| named(value)).map(|(place, _)| place).collect()
}

fn words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::LabelSource;
    use serde_json::json;

    fn field(name: &str, values: &[&str]) -> Field {
        let values = values.iter().map(|value| ((*value).to_owned(), 1)).collect();
        Field { name: name.into(), values }
    }

    fn question(text: &str) -> Question {
        Question { text: text.into(), ..Question::default() }
    }

    #[test]
    fn a_passage_without_a_title_is_called_by_its_first_words_and_found_in_one_lane_only() {
        let ranked = |id: &str, title: &str, text: &str| Ranked {
            at: crate::corpus::PassageIx(id.len() as u32),
            passage: std::sync::Arc::new(crate::corpus::Passage {
                id: id.into(),
                title: title.into(),
                text: text.into(),
                ..Default::default()
            }),
            score: 1.0,
        };
        let long = "Elephants in captivity live half as long as wild ones, and that is not all of it by far.";
        let one = [ranked("a", "Zoos", ""), ranked("3fe19c07aa", "", long)];
        let other = [ranked("a", "Zoos", ""), ranked("abc", "", "")];
        let judgments = Judgments::new(&question(""), LabelSource::Auto, Default::default());
        let compared = Compared::of(&question(""), 2, &[Some(&one), Some(&other)], &judgments);
        assert_eq!(compared.headings[0][1], long);
        assert_eq!(compared.headings[1], ["Zoos", "abc"]);
        assert_eq!((compared.only_in(0), compared.only_in(1)), (vec![1], vec![1]));
    }

    #[test]
    fn an_unknown_field_gets_the_nearest_name_or_all_of_them() {
        let categories = vec![field("country", &[]), field("outlet", &[])];
        let fields = Fields { passages: 1, categories, others: vec!["address".into()] };
        let error = |name: &str| category(&fields, name).unwrap_err().to_string();
        assert_eq!(error("Oulet"), "no passage has a field `Oulet`; did you mean `outlet`?");
        assert_eq!(error("year"), "no passage has a field `year`; the categories are: country, outlet");
        assert!(error("address").starts_with("the field `address` is not a category: it has more than 50"));
        assert_eq!(category(&Fields::default(), "outlet"), Err(FieldError::NoFields));
        assert!(FieldError::NoFields.to_string().contains("\"metadata\": {\"outlet\""));
    }

    #[test]
    fn a_question_asks_for_the_values_whose_words_stand_in_it() {
        let outlets = field("outlet", &["New York Times", "York", "BBC", NONE]);
        assert_eq!(desired(&outlets, &question("What did the new york times say?")), [0, 1]);
        assert_eq!(desired(&outlets, &question("What did the Times of New York say (none)?")), [1]);
        assert_eq!(desired(&outlets, &question("BBC's view?")), [2]);
        assert!(desired(&outlets, &question("What of the BBCs?")).is_empty());
        assert!(
            desired(&field("x", &["…"]), &question("… ?")).is_empty(),
            "a value without words is in no text"
        );
    }

    #[test]
    fn what_a_question_s_own_metadata_says_goes_before_its_words() {
        let sides = field("side", &["left", "right", "1"]);
        let mut question = question("What is right?");
        assert_eq!(desired(&sides, &question), [1]);
        question.metadata.insert("side".into(), json!("left"));
        assert_eq!(desired(&sides, &question), [0]);
        question.metadata.insert("side".into(), json!(1));
        assert_eq!(desired(&sides, &question), [2]);
        question.metadata.insert("side".into(), json!("nobody's"));
        assert_eq!(desired(&sides, &question), [1], "a value that the corpus does not have says nothing");
    }
}
