//! How much of a project is labelled, and how the interval of a figure narrows with every label on a drawn question.

use std::collections::HashMap;

use super::human::Human;
use super::project::{Item, Project};
use super::sample::{Share, labelled_prefix};
use crate::measure::expected::{Chances, expected};
use crate::measure::ppi::{Labelled, Target, corrected_mean};
use crate::measure::score::{Column, SupportEvidence};
use crate::measure::{PerspectiveCount, SupportSet};
use crate::question::Question;

impl Human {
    /// The statements that a passage supports according to labels by hand; `None` until every statement has a label.
    pub fn support(&self, question: &Question, passage: &str) -> Option<SupportSet> {
        let statements = question.perspectives.iter().enumerate();
        statements.into_iter().try_fold(SupportSet::EMPTY, |set, (i, statement)| {
            if self.supports(statement, passage)? { set.with(i).ok() } else { Some(set) }
        })
    }
}

impl Project {
    /// How many passages of each question are labelled, over the whole pool; in the project's order, which is that of the draw.
    pub fn shares(&self, items: &[Item], human: &Human) -> Vec<Share> {
        let share = |question: &Question| {
            let own = items.iter().filter(|item| item.question == question.text);
            Share::of(own.map(|item| human.support(question, &item.passage.id).is_some()))
        };
        self.questions.iter().map(share).collect()
    }
}

/// How the interval of a figure narrows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Narrowing {
    /// The number of labelled questions, from the beginning of the draw.
    pub labelled: usize,
    /// The number of questions that were drawn from.
    pub of: usize,
    /// Numbers of labelled questions, each with half the width of the interval: every ten questions, and now. Empty with fewer than
    /// four.
    pub widths: Vec<(usize, f64)>,
    /// The number of labelled questions and the expected half-width after twenty more, or after all that are left.
    pub next: Option<(usize, f64)>,
}

/// What further labels are expected to change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outlook {
    /// The number of passages labelled for every statement.
    pub labelled: usize,
    /// The number of further passages that the forecast is about: fifty, or all that are left.
    pub further: usize,
    /// The expected sum of the changes of the mean, each taken without its sign.
    pub change: f64,
}

/// The number of labels that a forecast looks back, and of passages that it looks ahead.
const LOOKED_AT: usize = 50;

/// One question's list in a lane, with the labels so far.
struct Growing<'a> {
    question: &'a Question,
    m: PerspectiveCount,
    /// The first k of the lane, best first: rank and index into `known`.
    list: Vec<(usize, usize)>,
    /// The statements that each passage of the pool supports, once it is labelled.
    known: Vec<Option<SupportSet>>,
}

impl Growing<'_> {
    fn value(&self, column: Column) -> f64 {
        let ranked: Vec<Option<SupportSet>> = self.list.iter().map(|(_, at)| self.known[*at]).collect();
        let (m, supports) = (self.m, self.question.supports);
        let evidence = SupportEvidence { ranked: &ranked, pool: &[], m, supports };
        column.value(evidence).map_or(0.0, |measured| measured.value)
    }
}

/// How much the mean of a column over all questions is expected to change with the next passages, if they change it as often as the last
/// ones did. Passages are taken in the order in which they were labelled. `None` with fewer than ten labelled passages.
pub fn outlook(
    (questions, pool): (&[Question], &[Item]),
    (lane, column, k): (&str, Column, usize),
    human: &Human,
) -> Option<Outlook> {
    let mut growing = Vec::new();
    for question in questions {
        let m = PerspectiveCount::new(question.perspectives.len()).ok()?;
        growing.push(Growing { question, m, list: Vec::new(), known: Vec::new() });
    }
    let places: HashMap<&str, usize> =
        questions.iter().enumerate().map(|(at, question)| (question.text.as_str(), at)).collect();
    let (mut labelled, mut left) = (Vec::new(), 0);
    for item in pool {
        let Some(place) = places.get(item.question.as_str()) else { continue };
        let own = &mut growing[*place];
        let at = own.known.len();
        own.known.push(None);
        own.list.extend(item.rank(lane).filter(|rank| *rank <= k).map(|rank| (rank, at)));
        match human.support(own.question, &item.passage.id) {
            Some(set) => labelled.push((human.labelled_at(&item.passage.id), *place, at, set)),
            None => left += 1,
        }
    }
    growing.iter_mut().for_each(|own| own.list.sort_unstable());
    // Stable, so that labels of one moment, as of an import, stay in the order of the pool.
    labelled.sort_by_key(|(when, ..)| *when);
    let mut changes = Vec::new();
    for (_, place, at, set) in labelled {
        let own = &mut growing[place];
        let before = own.value(column);
        own.known[at] = Some(set);
        changes.push((own.value(column) - before).abs() / questions.len() as f64);
    }
    let labelled = changes.len();
    let last = &changes[labelled.saturating_sub(LOOKED_AT)..];
    let further = left.min(LOOKED_AT);
    let rate = last.iter().sum::<f64>() / last.len().max(1) as f64;
    (labelled >= 10).then_some(Outlook { labelled, further, change: rate * further as f64 })
}

/// The number of further questions of the forecast.
const MORE: usize = 20;

/// The narrowing of a column for one lane of a drawn project. `pool` holds all its items; `judge` returns the model's probabilities for
/// an item, by its index. If they are not known yet, only the labels count. The interval is that of the mean of exactly the questions that
/// were drawn from; its width does not depend on the values of those that were not drawn.
pub fn narrowing(
    (questions, pool, of): (&[Question], &[Item], usize),
    (lane, column, k): (&str, Column, usize),
    human: &Human,
    judge: &dyn Fn(usize) -> Option<Chances>,
) -> Narrowing {
    let mut units = Vec::new();
    let mut shares = Vec::new();
    for question in questions {
        let mut list: Vec<(usize, usize)> = pool
            .iter()
            .enumerate()
            .filter(|(_, item)| item.question == question.text)
            .filter_map(|(place, item)| Some((item.rank(lane)?, place)))
            .filter(|(rank, _)| *rank <= k)
            .collect();
        list.sort_unstable();
        let sets: Vec<Option<SupportSet>> =
            list.iter().map(|(_, place)| human.support(question, &pool[*place].passage.id)).collect();
        let Ok(m) = PerspectiveCount::new(question.perspectives.len()) else { continue };
        let value = |ranked: &[Option<SupportSet>]| {
            let evidence = SupportEvidence { ranked, pool: &[], m, supports: question.supports };
            column.value(evidence).map(|measured| measured.value)
        };
        let Some(labels) = value(&sets) else { continue };
        shares.push(Share::of(sets.iter().map(Option::is_some)));
        let chances: Vec<Option<Chances>> = list.iter().map(|(_, place)| judge(*place)).collect();
        units.push(Labelled { value: labels, prediction: expected(&chances, value).unwrap_or(0.0) });
    }
    let (whole, _) = labelled_prefix(&shares);
    let of = of.max(whole);
    let estimate = |n: usize| corrected_mean(&units[..n], &vec![0.0; of - n], Target::These, 0.95).ok();
    let stops = (10..whole).step_by(10).chain([whole]);
    Narrowing {
        labelled: whole,
        of,
        widths: stops.filter_map(|n| Some((n, estimate(n)?.half_width()))).collect(),
        next: estimate(whole).filter(|now| now.labelled < now.units).map(|now| {
            let more = MORE.min(now.units - now.labelled);
            (now.labelled + more, now.half_width_with(more, Target::These, 0.95))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    use crate::annotate::testing::{history, passage};
    use crate::annotate::{Act, View, text_hash};

    fn questions(count: usize) -> Vec<Question> {
        let one = |n: usize| Question {
            id: format!("q{n}"),
            text: format!("Should {n} be banned?"),
            perspectives: vec![format!("{n} should be banned."), format!("{n} should not be banned.")],
            supports: Some(0),
            ..Question::default()
        };
        (0..count).map(one).collect()
    }

    /// A pool of two passages per question, and labels that say whether the first supports.
    fn labelled(says: &[bool], of: usize) -> Narrowing {
        let set = questions(30);
        let item = |n: usize, rank: usize| Item {
            question: set[n].text.clone(),
            passage: passage(2 * n + rank),
            ranks: BTreeMap::from([("bm25".to_owned(), rank)]),
            later: BTreeMap::new(),
            round: 0,
            annotators: Vec::new(),
            labels: BTreeMap::new(),
        };
        let pool: Vec<Item> = (0..30).flat_map(|n| [item(n, 1), item(n, 2)]).collect();
        let act = |place: usize, yes: bool| {
            let item = &pool[place];
            let statements = &set[place / 2].perspectives;
            let answers = BTreeMap::from([(statements[0].clone(), yes), (statements[1].clone(), false)]);
            let (text, view) = (text_hash(&item.passage), View { answers, ..View::default() });
            Act {
                question: item.question.clone(),
                passage: item.passage.id.clone(),
                text,
                view,
                ..Act::default()
            }
        };
        let acts: Vec<_> = says
            .iter()
            .enumerate()
            .flat_map(|(n, yes)| [("anna", act(2 * n, *yes)), ("anna", act(2 * n + 1, false))])
            .collect();
        let human = Human::of_pool(history(&acts).decisions(), &pool);
        let prec = Column::at(2, &[]).unwrap()[1];
        let judge = |place: usize| Some(Chances::Two([[0.6, 0.2][place % 2], 0.1, 0.0, 0.3]));
        narrowing((&set, &pool, of), ("bm25", prec, 2), &human, &judge)
    }

    #[test]
    fn labels_that_no_longer_change_a_figure_are_not_expected_to() {
        let set = questions(30);
        let item = |n: usize| Item {
            question: set[n].text.clone(),
            passage: passage(n),
            ranks: BTreeMap::from([("bm25".to_owned(), 1)]),
            later: BTreeMap::new(),
            round: 0,
            annotators: Vec::new(),
            labels: BTreeMap::new(),
        };
        let pool: Vec<Item> = (0..30).map(item).collect();
        let forecast = |labelled: usize, yes: bool| {
            let act = |n: usize| {
                let statements = &set[n].perspectives;
                let answers = BTreeMap::from([(statements[0].clone(), yes), (statements[1].clone(), false)]);
                let view = View { answers, ..View::default() };
                let (question, text) = (set[n].text.clone(), text_hash(&passage(n)));
                Act { question, passage: passage(n).id, text, view, ..Act::default() }
            };
            let acts: Vec<_> = (0..labelled).map(|n| ("anna", act(n))).collect();
            let human = Human::of_pool(history(&acts).decisions(), &pool);
            let prec = Column::at(1, &[]).unwrap()[1];
            outlook((&set, &pool), ("bm25", prec, 1), &human)
        };
        assert_eq!(forecast(9, true), None);
        assert_eq!(forecast(20, false), Some(Outlook { labelled: 20, further: 10, change: 0.0 }));
        // Every label adds a thirtieth, and ten are left.
        assert!((forecast(20, true).unwrap().change - 1.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn the_last_labels_are_the_latest_and_not_those_at_the_end_of_the_pool() {
        let set = questions(120);
        let pool: Vec<Item> = (0..120)
            .map(|n| Item {
                question: set[n].text.clone(),
                passage: passage(n),
                ranks: BTreeMap::from([("bm25".to_owned(), 1)]),
                ..Item::default()
            })
            .collect();
        // The pool's first fifty were labelled last, and only those say yes.
        let mut history = crate::annotate::History::default();
        for (n, question) in set.iter().enumerate().take(100) {
            let answers =
                [(question.perspectives[0].clone(), n < 50), (question.perspectives[1].clone(), false)];
            let view = View { answers: answers.into(), ..View::default() };
            let (question, text) = (question.text.clone(), text_hash(&passage(n)));
            let act = Act { question, passage: passage(n).id, text, view, ..Act::default() };
            let at = if n < 50 { 2_000 } else { 1_000 };
            history.take(crate::annotate::Entry::new(act, "anna", Vec::new(), at).unwrap());
        }
        let human = Human::of_pool(history.decisions(), &pool);
        let next = outlook((&set, &pool), ("bm25", Column::at(1, &[]).unwrap()[1], 1), &human).unwrap();
        assert_eq!((next.labelled, next.further), (100, 20));
        assert!((next.change - 20.0 / 120.0).abs() < 1e-12, "{next:?}");
    }

    #[test]
    fn the_interval_narrows_with_every_label_and_the_outlook_is_narrower_still() {
        let says: Vec<bool> = (0..24).map(|n| n % 3 != 0).collect();
        let made = labelled(&says, 79);
        assert_eq!((made.labelled, made.of), (24, 79));
        let stops: Vec<usize> = made.widths.iter().map(|(n, _)| *n).collect();
        assert_eq!(stops, [10, 20, 24]);
        let (then, outlook) = made.next.unwrap();
        assert!(then == 44 && outlook < made.widths[2].1 && made.widths[2].1 < made.widths[0].1, "{made:?}");
        assert_eq!(labelled(&says[..3], 79).widths, []);
        assert_eq!(labelled(&says, 24).next, None, "there is nothing more to label");
    }
}
