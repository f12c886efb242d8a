//! The figures of one lane on one question, as the explorer and `search` show them: MRecall, Prec and the lean. Also the stance of a
//! list at every depth.
//!
//! Any other measure can be asked for by name ([`named`]). To show another one in the explorer at all times, add a field to
//! [`Figures`], [`Doubt`], [`Gap`] and [`Change`] and to `DrawnFigures`; the compiler then asks for its value at each place in this
//! file. Add it to `by_name` of [`Figures`] and [`Change`] and to `src/report/search.rs`, which print it, and draw it in
//! `src/tui/screens/lanes/figures.rs`. `Compared` in `compare.rs` carries it; to show it on the compare screen, also
//! extend `Shown` in `src/tui/screens/compare/mod.rs`.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::judgments::Judgments;
use super::list::Ranked;
use crate::corpus::PassageIx;
use crate::measure::bias::{SideShares, side_shares};
use crate::measure::coverage::{mrecall, prec};
use crate::measure::score::{Evidence, SupportEvidence, score};
use crate::measure::uncertainty::{DRAWS, Doubted, Spread, draw};
use crate::measure::{Measure, PerspectiveCount, SupportSet};
use crate::question::Question;

/// The first rank at which a list supports a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstRank {
    /// This rank; all passages above it are judged.
    At(usize),
    /// Not in the passages down to this rank; the next one is not judged yet.
    Below(usize),
}

/// The figures of a lane's top k.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// How many passages count.
    pub k: usize,
    /// How many of them are judged on every statement.
    pub judged: usize,
    /// How many passages the lane returned, at most k.
    pub returned: usize,
    /// MRecall@k.
    pub mrecall: f64,
    /// Prec@k.
    pub prec: f64,
    /// The statements that the top k cover.
    pub covered: SupportSet,
    /// The number of passages of the top k that support each statement.
    pub supporting: Vec<usize>,
    /// The number of judged passages of the top k that support no statement.
    pub none: usize,
    /// The number of passages of the top k whose side is unclear; they count as unjudged.
    pub unclear: usize,
    /// The number of passages of the top k that can still be judged.
    pub open: usize,
    /// The first rank of each statement.
    pub first: Vec<FirstRank>,
    /// The shares of the two sides, for a two-sided question.
    pub sides: Option<SideShares>,
}

/// Figures under the model's probabilities: means and intervals over draws of every passage's verdicts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Doubt {
    /// MRecall@k; its mean is the probability that the sides are covered.
    pub mrecall: Spread,
    /// Prec@k.
    pub prec: Spread,
    /// The lean, for a two-sided question.
    pub lean: Option<Spread>,
    /// The least and the greatest MRecall@k that the unclear passages allow.
    pub range: (f64, f64),
}

/// The differences between two lists' figures, drawn together. If an interval holds 0, neither list is called better.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gap {
    /// The difference of MRecall@k.
    pub mrecall: Spread,
    /// The difference of Prec@k.
    pub prec: Spread,
    /// The difference of the lean, for a two-sided question.
    pub lean: Option<Spread>,
}

/// How the figures of a lane changed when a switch was switched on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// How many passages count.
    pub k: usize,
    /// The change of MRecall@k.
    pub mrecall: f64,
    /// The change of Prec@k.
    pub prec: f64,
    /// The change of the lean, for a two-sided question.
    pub lean: Option<f64>,
    /// The intervals, if a model judged.
    pub gap: Option<Gap>,
}

impl Change {
    /// The changes by the names of the measures, as `search --format json` prints them.
    pub fn by_name(&self) -> Map<String, Value> {
        let k = self.k;
        let all = [("MRecall", Some(self.mrecall)), ("Prec", Some(self.prec)), ("Lean", self.lean)];
        all.into_iter().filter_map(|(name, value)| Some((format!("{name}@{k}"), json!(value?)))).collect()
    }
}

/// Measures by name with their values.
pub type Named = Vec<(String, Option<f64>)>;

/// Computes the measures that were asked for by name; `None` for one that the question does not allow. `pool` holds every labelled
/// passage of the question ([`Setup::label_pool`](super::Setup::label_pool)).
pub fn named(
    measures: &[Measure],
    ranking: &[Ranked],
    judgments: &Judgments,
    pool: &[(String, SupportSet)],
    question: &Question,
) -> Named {
    let ranked = judgments.supports(ranking);
    let m = PerspectiveCount::new(judgments.perspectives).ok();
    let pool = pooled(pool);
    let value = |measure: &Measure| {
        let k = measure.cutoff().map_or(ranking.len(), |k| k.min(ranking.len()));
        let pool = if judgments.is_by_model(&ranking[..k]) { &[][..] } else { &pool };
        let support = m.map(|m| SupportEvidence { ranked: &ranked, pool, m, supports: question.supports });
        score(*measure, &Evidence { graded: None, support }).ok()
    };
    measures.iter().map(|one| (one.to_string(), value(one).map(|found| found.value))).collect()
}

/// The labelled passages, as the measures take them.
pub fn pooled(pool: &[(String, SupportSet)]) -> Vec<(&str, SupportSet)> {
    pool.iter().map(|(id, set)| (id.as_str(), *set)).collect()
}

impl Figures {
    /// Measures a list; `None` if the question has no statements.
    pub fn of(ranking: &[Ranked], judgments: &Judgments, question: &Question, k: usize) -> Option<Self> {
        let m = PerspectiveCount::new(judgments.perspectives).ok()?;
        let supports = judgments.supports(ranking);
        let top = &supports[..supports.len().min(k)];
        // An unclear passage counts as judged, because it will not become clear.
        let settled = |ranked: &&Ranked| judgments.is_complete(ranked.at);
        let judged = ranking.iter().take_while(settled).count();
        let places = || ranking.iter().take(k);
        let first = (0..m.get()).map(|perspective| {
            let at =
                supports[..judged].iter().position(|set| set.is_some_and(|set| set.contains(perspective)));
            at.map_or(FirstRank::Below(judged), |i| FirstRank::At(i + 1))
        });
        Some(Figures {
            k,
            judged: top.iter().flatten().count(),
            returned: top.len(),
            mrecall: mrecall(&supports, m, k).value,
            prec: prec(&supports, m, k).value,
            covered: top.iter().flatten().fold(SupportSet::EMPTY, |all, set| all.union(*set)),
            supporting: (0..m.get())
                .map(|i| top.iter().flatten().filter(|set| set.contains(i)).count())
                .collect(),
            none: top.iter().flatten().filter(|set| set.is_empty()).count(),
            unclear: places().filter(|ranked| judgments.is_unclear(ranked.at)).count(),
            open: places().filter(|ranked| !judgments.is_complete(ranked.at)).count(),
            first: first.collect(),
            sides: question
                .supports
                .and_then(|i| side_shares(&supports, m, i, k).ok())
                .map(|shares| shares.value),
        })
    }

    /// The figures of a list's top k under the model's probabilities; `None` if labels alone count.
    pub fn doubt(ranking: &[Ranked], judgments: &Judgments, question: &Question, k: usize) -> Option<Doubt> {
        let m = PerspectiveCount::new(judgments.perspectives).ok()?;
        let top = &ranking[..ranking.len().min(k)];
        let draws = Draws::of(judgments, &[top])?;
        let figures: Vec<DrawnFigures> =
            draws.of_list(top).map(|set| DrawnFigures::of(&set, question, (m, k))).collect();
        let spread =
            |value: fn(&DrawnFigures) -> f64| Spread::of(&mut figures.iter().map(value).collect::<Vec<_>>());
        let supports = judgments.supports(top);
        let best = best_of_unclear(&supports, top, judgments);
        Some(Doubt {
            mrecall: spread(|figures| figures.mrecall)?,
            prec: spread(|figures| figures.prec)?,
            lean: spread(|figures| figures.lean).filter(|_| question.sides().is_some()).map(|drawn| {
                with_mean(drawn, shares_of(judgments, question, ranking, k).map(SideShares::lean))
            }),
            range: (mrecall(&supports, m, k).value, mrecall(&best, m, k).value),
        })
    }

    /// How the figures of list `now` differ from those of list `before`; `None` unless the top k of both are judged.
    pub fn change(
        (now, before): (&[Ranked], &[Ranked]),
        judgments: &Judgments,
        question: &Question,
        k: usize,
    ) -> Option<Change> {
        let figures = |list: &[Ranked]| Figures::of(list, judgments, question, k);
        let change = figures(now)?.change_from(&figures(before)?)?;
        let lists = [&now[..now.len().min(k)], &before[..before.len().min(k)]];
        let Some(gap) = gap(lists, judgments, question, k) else { return Some(change) };
        let (mrecall, prec, lean) = (gap.mrecall.mean, gap.prec.mean, gap.lean.map(|lean| lean.mean));
        Some(Change { k: change.k, mrecall, prec, lean, gap: Some(gap) })
    }

    /// How the figures differ from figures of another k or of other judgments, which cannot be drawn together: the difference of the means
    /// that are shown. `None` unless the top k of both are judged.
    pub fn difference(
        (now, doubt): (&Figures, Option<&Doubt>),
        (before, doubt_before): (&Figures, Option<&Doubt>),
    ) -> Option<Change> {
        let change = now.change_from(before)?;
        let mean = |doubt: Option<&Doubt>, of: fn(&Doubt) -> f64, plain: f64| doubt.map_or(plain, of);
        let between = |of: fn(&Doubt) -> f64, one: f64, other: f64| {
            mean(doubt, of, one) - mean(doubt_before, of, other)
        };
        let lean = |doubt: Option<&Doubt>, figures: &Figures| {
            let drawn = doubt.and_then(|doubt| doubt.lean).map(|lean| lean.mean);
            drawn.or_else(|| figures.sides.map(SideShares::lean))
        };
        Some(Change {
            mrecall: between(|doubt| doubt.mrecall.mean, now.mrecall, before.mrecall),
            prec: between(|doubt| doubt.prec.mean, now.prec, before.prec),
            lean: lean(doubt, now).zip(lean(doubt_before, before)).map(|(now, before)| now - before),
            k: change.k,
            gap: change.gap,
        })
    }

    /// Whether all returned passages of the top k are judged, or nothing will judge the others.
    pub fn complete(&self) -> bool {
        self.open == 0
    }

    /// Whether the figures mean anything: without any verdict, a zero says nothing about the list.
    pub fn is_measured(&self) -> bool {
        self.judged + self.unclear > 0 || self.returned == 0
    }

    /// The text of a figure, or a dash if there are no verdicts yet.
    pub fn shown(&self, text: impl FnOnce() -> String) -> String {
        if self.is_measured() { text() } else { "–".into() }
    }

    /// The text of MRecall, or a dash as long as an open passage can still raise it.
    pub fn mrecall_text(&self) -> String {
        let known = self.complete() || self.mrecall == 1.0;
        if known { self.shown(|| format!("{:.0}", self.mrecall)) } else { "–".into() }
    }

    /// The lean of the top k; `None` until it is judged, or without two sides.
    pub fn lean(&self) -> Option<f64> {
        self.sides.filter(|_| self.is_whole()).map(SideShares::lean)
    }

    fn is_whole(&self) -> bool {
        self.is_measured() && self.complete()
    }

    /// How the figures differ from those of `before`; `None` unless the top k of both are judged.
    pub fn change_from(&self, before: &Figures) -> Option<Change> {
        (self.is_whole() && before.is_whole()).then(|| Change {
            k: self.k,
            mrecall: self.mrecall - before.mrecall,
            prec: self.prec - before.prec,
            lean: self.sides.zip(before.sides).map(|(sides, before)| sides.lean() - before.lean()),
            gap: None,
        })
    }

    /// The figures by the names of the measures, as `search --format json` prints them: the means of `doubt` if a model judged.
    pub fn by_name(&self, doubt: Option<&Doubt>) -> Map<String, Value> {
        let k = self.k;
        let mut all = Map::new();
        let mut put = |name: &str, value: f64, mean: Option<f64>| {
            all.insert(format!("{name}@{k}"), json!(mean.or(self.is_measured().then_some(value))));
        };
        put("MRecall", self.mrecall, doubt.map(|doubt| doubt.mrecall.mean));
        put("Prec", self.prec, doubt.map(|doubt| doubt.prec.mean));
        if let Some(sides) = self.sides {
            put("Lean", sides.lean(), doubt.and_then(|doubt| doubt.lean).map(|lean| lean.mean));
        }
        all
    }
}

/// Draws of what the passages of some lists support. A passage is drawn once for all lists.
pub(super) struct Draws {
    /// The row of each passage in every draw.
    rows: HashMap<PassageIx, usize>,
    draws: Vec<Vec<Option<SupportSet>>>,
}

impl Draws {
    /// Draws every passage from its chances; `None` if the model's verdicts count for none of them.
    pub(super) fn of(judgments: &Judgments, lists: &[&[Ranked]]) -> Option<Self> {
        if !lists.iter().any(|list| judgments.is_by_model(list)) {
            return None;
        }
        let (mut rows, mut passages): (HashMap<PassageIx, usize>, Vec<Doubted<'_>>) = Default::default();
        for ranked in lists.iter().copied().flatten() {
            rows.entry(ranked.at).or_insert_with(|| {
                passages.push((ranked.passage.id.as_str(), judgments.chances(ranked.at)));
                passages.len() - 1
            });
        }
        Some(Draws { rows, draws: draw(&passages, DRAWS, 0) })
    }

    /// What the passages of one of the lists support, in every draw.
    pub(super) fn of_list<'a>(
        &'a self,
        list: &'a [Ranked],
    ) -> impl Iterator<Item = Vec<Option<SupportSet>>> + 'a {
        let of_draw = |sets: &Vec<Option<SupportSet>>| {
            list.iter().map(|ranked| sets[self.rows[&ranked.at]]).collect::<Vec<_>>()
        };
        self.draws.iter().map(of_draw)
    }
}

/// The figures of a list in one draw.
pub(super) struct DrawnFigures {
    pub(super) mrecall: f64,
    pub(super) prec: f64,
    /// 0 if the question is not two-sided.
    pub(super) lean: f64,
}

impl DrawnFigures {
    /// Measures the first k of what a list's passages support.
    pub(super) fn of(
        set: &[Option<SupportSet>],
        question: &Question,
        (m, k): (PerspectiveCount, usize),
    ) -> Self {
        let sides = question.supports.and_then(|first| side_shares(set, m, first, k).ok());
        DrawnFigures {
            mrecall: mrecall(set, m, k).value,
            prec: prec(set, m, k).value,
            lean: sides.map_or(0.0, |shares| shares.value.lean()),
        }
    }
}

/// The shares of a list's first k that support each side; means under the model's probabilities if a model judged. `None` unless the
/// question is two-sided and something of the list was judged.
///
/// A share is a sum over passages, so its mean needs no draws, and one list has the same lean wherever it is shown.
pub fn shares_of(
    judgments: &Judgments,
    question: &Question,
    list: &[Ranked],
    k: usize,
) -> Option<SideShares> {
    let [first, other] = question.sides()?;
    let m = PerspectiveCount::new(2).ok()?;
    let top = &list[..list.len().min(k)];
    if top.iter().all(|ranked| judgments.chances(ranked.at).is_none()) {
        return None;
    }
    if !judgments.is_by_model(top) {
        return side_shares(&judgments.supports(list), m, first, k).ok().map(|sides| sides.value);
    }
    let chances = || top.iter().filter_map(|ranked| judgments.chances(ranked.at));
    let share = |side: usize| chances().map(|chances| chances.mean(side)).sum::<f64>() / k.max(1) as f64;
    Some(SideShares { p: share(first), n: share(other) })
}

/// A drawn lean with its exact mean.
fn with_mean(spread: Spread, lean: Option<f64>) -> Spread {
    Spread { mean: lean.unwrap_or(spread.mean), ..spread }
}

/// The differences between two lists' figures, drawn together; `None` if no model judged.
fn gap(lists: [&[Ranked]; 2], judgments: &Judgments, question: &Question, k: usize) -> Option<Gap> {
    let m = PerspectiveCount::new(judgments.perspectives).ok()?;
    let draws = Draws::of(judgments, &lists)?;
    let [one, other] = lists.map(|list| {
        draws.of_list(list).map(|set| DrawnFigures::of(&set, question, (m, k))).collect::<Vec<_>>()
    });
    let spread = |value: fn(&DrawnFigures) -> f64| {
        let differences = one.iter().zip(&other).map(|(one, other)| value(one) - value(other));
        Spread::of(&mut differences.collect::<Vec<_>>())
    };
    let [now, before] = lists.map(|list| shares_of(judgments, question, list, k).map(SideShares::lean));
    let lean = now.zip(before).map(|(now, before)| now - before);
    Some(Gap {
        mrecall: spread(|figures| figures.mrecall)?,
        prec: spread(|figures| figures.prec)?,
        lean: spread(|figures| figures.lean)
            .filter(|_| question.sides().is_some())
            .map(|drawn| with_mean(drawn, lean)),
    })
}

/// What a top k supports if every unclear passage takes the first side that is missing.
fn best_of_unclear(
    supports: &[Option<SupportSet>],
    top: &[Ranked],
    judgments: &Judgments,
) -> Vec<Option<SupportSet>> {
    let mut covered = supports.iter().flatten().fold(SupportSet::EMPTY, |all, set| all.union(*set));
    let mut best = |(set, ranked): (&Option<SupportSet>, &Ranked)| {
        if set.is_some() || !judgments.is_unclear(ranked.at) {
            return *set;
        }
        let missing = (0..judgments.perspectives).find(|i| !covered.contains(*i)).unwrap_or(0);
        covered = covered.with(missing).unwrap_or(covered);
        SupportSet::EMPTY.with(missing).ok()
    };
    supports.iter().zip(top).map(&mut best).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::Passage;
    use crate::detect::{LabelSource, PairLabels, Reading};
    use std::sync::Arc;

    fn list(count: u32) -> Vec<Ranked> {
        let ranked = |at: u32| Ranked {
            at: PassageIx(at),
            passage: Arc::new(Passage { id: at.to_string(), ..Passage::default() }),
            score: 1.0,
        };
        (0..count).map(ranked).collect()
    }

    #[test]
    fn with_a_model_judging_the_figure_is_a_mean_with_an_interval_and_unclear_passages_are_in_it() {
        let question =
            Question { perspectives: vec!["a".into(), "b".into()], supports: Some(0), ..Question::default() };
        let mut judgments = Judgments::new(&question, LabelSource::Auto, Default::default());
        // The first passage takes the first side, the second is unclear.
        for (at, first, second) in [(0, 0.95f32, 0.05f32), (1, 0.9, 0.85)] {
            for (i, p) in [first, second].into_iter().enumerate() {
                let model = Some(Ok(Reading::of(p)));
                judgments.write(PassageIx(at), i, PairLabels { model, ..PairLabels::default() });
            }
        }
        let list = list(3);
        let figures = Figures::of(&list[..2], &judgments, &question, 5).unwrap();
        assert_eq!((figures.judged, figures.unclear, figures.open, figures.mrecall), (1, 1, 0, 0.0));
        let doubt = Figures::doubt(&list[..2], &judgments, &question, 5).unwrap();
        assert!(doubt.mrecall.mean > 0.2 && doubt.mrecall.mean < 0.6, "{doubt:?}");
        assert_eq!((doubt.range, doubt.mrecall.low, doubt.mrecall.high), ((0.0, 1.0), 0.0, 1.0));
        assert_eq!(figures.by_name(Some(&doubt))["MRecall@5"], json!(doubt.mrecall.mean));
        let change = Figures::change((&list[..2], &list[..1]), &judgments, &question, 5).unwrap();
        assert!(change.gap.is_some_and(|gap| gap.mrecall.holds_zero()), "{change:?}");
        let open = Figures::of(&list, &judgments, &question, 5).unwrap();
        assert!(!open.complete() && figures.complete());
        assert_eq!(Figures::change((&list, &list[..1]), &judgments, &question, 5), None);
    }

    #[test]
    fn with_labels_by_hand_alone_nothing_is_said_of_what_nobody_has_labelled() {
        let question =
            Question { perspectives: vec!["a".into(), "b".into()], supports: Some(0), ..Question::default() };
        let mut judgments = Judgments::new(&question, LabelSource::Human, Default::default());
        let label = |judgments: &mut Judgments, at: u32, sides: [bool; 2]| {
            for (i, side) in sides.into_iter().enumerate() {
                let human = Some(side);
                judgments.write(PassageIx(at), i, PairLabels { human, ..PairLabels::default() });
            }
        };
        label(&mut judgments, 0, [true, false]);
        let some = Figures::of(&list(2), &judgments, &question, 2).unwrap();
        assert_eq!((some.judged, some.open, some.mrecall_text(), some.lean()), (1, 1, "–".into(), None));
        assert_eq!(some.first, [FirstRank::At(1), FirstRank::Below(1)], "the second rank is not labelled");
        label(&mut judgments, 1, [false, false]);
        let all = Figures::of(&list(2), &judgments, &question, 2).unwrap();
        assert_eq!((all.open, all.mrecall_text(), all.lean()), (0, "0".into(), Some(0.5)));
        label(&mut judgments, 0, [true, true]);
        let open = Figures::of(&list(3), &judgments, &question, 3).unwrap();
        assert_eq!((open.open, open.mrecall_text()), (1, "1".into()), "nothing can take it away");
    }

    #[test]
    fn with_labels_alone_nothing_is_drawn() {
        let question =
            Question { perspectives: vec!["a".into(), "b".into()], supports: Some(0), ..Question::default() };
        let mut judgments = Judgments::new(&question, LabelSource::Auto, Default::default());
        for i in 0..2 {
            let gold = Some(i == 0);
            judgments.write(PassageIx(0), i, PairLabels { gold, ..PairLabels::default() });
        }
        assert_eq!(Figures::doubt(&list(1), &judgments, &question, 5), None);
        let change = Figures::change((&list(1), &[]), &judgments, &question, 5).unwrap();
        assert_eq!((change.mrecall, change.prec, change.gap), (0.0, 0.2, None));
    }
}
