//! Which way a question's outcome leans: how even its sides stand, and whose passages its lanes bring up.

use super::Compared;
use crate::corpus::fields::{Field, Fields, MOST, NONE};
use crate::measure::exposure::{Exposure, awrf, rkl};
use crate::measure::lean::SideShares;
use crate::measure::name::levenshtein;
use crate::measure::{PerspectiveCount, SupportSet};
use crate::question::Question;

/// More names in an error help nobody.
const TOLD: usize = 12;

/// How far a lane's first k are from giving every perspective an even place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Uneven {
    /// rKL at those of its cuts that k reaches.
    pub rkl: Exposure,
    /// AWRF@k.
    pub awrf: Exposure,
}

/// Why a field cannot be taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// The corpus has none at all.
    #[error("no passage of this corpus has metadata; give its lines some, such as {EXAMPLE}")]
    NoFields,
    /// It is there, and no category.
    #[error(
        "the field `{0}` is no category: it has more than {MOST} different values, or none that is a text, a number, true or false{1}"
    )]
    NoCategory(String, String),
    /// There is no such field.
    #[error("no passage has a field `{0}`{1}")]
    Unknown(String, String),
}

/// What a line of a corpus needs for its passages to be told apart.
pub const EXAMPLE: &str = "\"metadata\": {\"outlet\": \"…\", \"country\": \"…\"}";

impl Compared {
    /// rKL and AWRF of a lane's first `k`; none for fewer than two perspectives, or where no passage supports any.
    pub fn uneven(&self, lane: usize, k: usize) -> Option<Uneven> {
        let m = PerspectiveCount::new(self.perspectives).ok().filter(|m| m.get() > 1)?;
        let supports = self.supports.get(lane)?;
        let supports = &supports[..supports.len().min(k)];
        Some(Uneven { rkl: rkl(supports, m)?, awrf: awrf(supports, m, k)? })
    }

    /// The shares of the two sides in a lane's first k, where it has a list and verdicts.
    pub fn sides(&self, lane: usize) -> Option<SideShares> {
        self.figures.get(lane)?.as_ref().filter(|figures| figures.known())?.sides
    }

    /// The lean of a lane over a set of questions: 0 where it has no list or nothing of it was judged, as for every measure; none for a
    /// question that has no two sides.
    pub fn lean(&self, lane: usize) -> Option<f64> {
        (self.perspectives == 2).then(|| self.sides(lane).map_or(0.0, |sides| sides.lean()))
    }

    /// How many of a lane's first k were judged, and of how many.
    pub fn judged(&self, lane: usize) -> (usize, usize) {
        let supports = self.supports.get(lane).map_or(&[][..], Vec::as_slice);
        (supports.iter().flatten().count(), supports.len())
    }

    /// Passages of a lane's first k, a value of the field each.
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

/// Of the two-sided questions, those of which a lane's first k cover only the supporting side, only the other, both, neither. A lane
/// that has no list covers neither.
pub fn covered_sides<'a>(compared: impl IntoIterator<Item = &'a Compared>, lane: usize) -> [usize; 4] {
    let mut counts = [0; 4];
    for one in compared.into_iter().filter(|one| one.perspectives == 2) {
        let figures = one.figures.get(lane).and_then(Option::as_ref);
        let covered = figures.map_or(SupportSet::EMPTY, |figures| figures.covered);
        let first = one.supports_first;
        counts[match (covered.contains(first), covered.contains(1 - first)) {
            (true, false) => 0,
            (false, true) => 1,
            (true, true) => 2,
            (false, false) => 3,
        }] += 1;
    }
    counts
}

/// The category of that name.
///
/// # Errors
/// There is none; the nearest name is told, or all.
pub fn category<'a>(fields: &'a Fields, name: &str) -> Result<&'a Field, FieldError> {
    if let Some(field) = fields.categories.iter().find(|field| field.name == name) {
        return Ok(field);
    }
    if fields.categories.is_empty() && fields.others.is_empty() {
        return Err(FieldError::NoFields);
    }
    let names: Vec<&str> = fields.categories.iter().map(|field| field.name.as_str()).collect();
    let more = if names.len() > TOLD { ", …" } else { "" };
    let known = match names.len() {
        0 => "; no field of this corpus is one".to_owned(),
        count => format!("; the categories are: {}{more}", names[..count.min(TOLD)].join(", ")),
    };
    if fields.others.iter().any(|other| other == name) {
        return Err(FieldError::NoCategory(name.to_owned(), known));
    }
    let asked = name.to_lowercase();
    let distance = |known: &str| levenshtein(&asked, &known.to_lowercase());
    let near = names.iter().min_by_key(|known| distance(known));
    let near = near.filter(|known| distance(known) <= known.chars().count() / 2);
    let told = near.map_or(known, |near| format!("; did you mean `{near}`?"));
    Err(FieldError::Unknown(name.to_owned(), told))
}

/// The values of a field that a question asks for, by their places: what its own metadata says, else those whose words stand in it.
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
    use serde_json::json;

    fn field(name: &str, values: &[&str]) -> Field {
        let values = values.iter().map(|value| ((*value).to_owned(), 1)).collect();
        Field { name: name.into(), values }
    }

    fn asked(text: &str) -> Question {
        Question { text: text.into(), ..Question::default() }
    }

    #[test]
    fn an_unknown_field_gets_the_nearest_name_or_all_of_them() {
        let categories = vec![field("country", &[]), field("outlet", &[])];
        let fields = Fields { passages: 1, categories, others: vec!["address".into()] };
        let told = |name: &str| category(&fields, name).unwrap_err().to_string();
        assert_eq!(told("Oulet"), "no passage has a field `Oulet`; did you mean `outlet`?");
        assert_eq!(told("year"), "no passage has a field `year`; the categories are: country, outlet");
        assert!(told("address").starts_with("the field `address` is no category: it has more than 50"));
        assert_eq!(category(&Fields::default(), "outlet"), Err(FieldError::NoFields));
        assert!(FieldError::NoFields.to_string().contains("\"metadata\": {\"outlet\""));
    }

    #[test]
    fn a_question_asks_for_the_values_whose_words_stand_in_it() {
        let outlets = field("outlet", &["New York Times", "York", "BBC", NONE]);
        assert_eq!(desired(&outlets, &asked("What did the new york times say?")), [0, 1]);
        assert_eq!(desired(&outlets, &asked("What did the Times of New York say (none)?")), [1]);
        assert_eq!(desired(&outlets, &asked("BBC's view?")), [2]);
        assert!(desired(&outlets, &asked("What of the BBCs?")).is_empty());
        assert!(
            desired(&field("x", &["…"]), &asked("… ?")).is_empty(),
            "a value without words is in no text"
        );
    }

    #[test]
    fn what_a_question_s_own_metadata_says_goes_before_its_words() {
        let sides = field("side", &["left", "right", "1"]);
        let mut question = asked("What is right?");
        assert_eq!(desired(&sides, &question), [1]);
        question.metadata.insert("side".into(), json!("left"));
        assert_eq!(desired(&sides, &question), [0]);
        question.metadata.insert("side".into(), json!(1));
        assert_eq!(desired(&sides, &question), [2]);
        question.metadata.insert("side".into(), json!("nobody's"));
        assert_eq!(desired(&sides, &question), [1], "a value that the corpus does not have says nothing");
    }
}
