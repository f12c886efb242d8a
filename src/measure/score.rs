//! Computes a measure that is asked for by name, and makes the columns of `eval berds`.
//!
//! Every command and screen that takes a measure's name calls [`score`], so that they print the same values. The figures that the
//! explorer always shows (`engine::figures`) call the functions of the measures directly. Shift and pRecall compare several rankings
//! and are computed by the commands that have them.

use std::fmt;
use std::fmt::Display;
use std::num::NonZeroUsize;

use thiserror::Error;

use super::bias::{Exposure, LeanError, awrf, rkl, side_shares};
use super::coverage::{DEEPEST, cover, mrecall, prec};
use super::expected::{Chances, coverage};
use super::graded::{GradedRanking, average_precision, judged, ndcg, precision, recall, reciprocal_rank};
use super::intervals::Bias;
use super::subtopic::{Pooled, alpha_ndcg, err_ia, precision_ia, subtopic_recall};
use super::support::{Measured, PerspectiveCount, SupportSet, covered, top};
use super::{Measure, MeasureNameError};

/// The judgments on one question's ranking. Each measure needs one of the two kinds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Evidence<'a> {
    /// Grades, for nDCG, P, R, AP, RR and Judged.
    pub graded: Option<&'a GradedRanking>,
    /// Verdicts, for the measures of perspectives and for Judged.
    pub support: Option<SupportEvidence<'a>>,
}

/// The verdicts on a ranking, and its question.
#[derive(Clone, Copy, Debug)]
pub struct SupportEvidence<'a> {
    /// Verdicts in rank order; `None` is unjudged.
    pub ranked: &'a [Option<SupportSet>],
    /// Every labelled passage of the question, whatever was ranked, for the ideal of alpha_nDCG. Empty if there are no labels, or if a
    /// model judged the ranking: its verdicts have no pool.
    pub pool: &'a [Pooled<'a>],
    /// The number of all perspectives of the question.
    pub m: PerspectiveCount,
    /// The index of the supporting perspective, if known, for `Lean`.
    pub supports: Option<usize>,
}

/// Why a measure has no value for a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ScoreError {
    /// No qrels were given.
    #[error("`{0}` needs graded judgments (qrels)")]
    NeedsGrades(Measure),
    /// No perspective labels or verdicts were given.
    #[error("`{0}` needs perspectives and verdicts")]
    NeedsSupport(Measure),
    /// Its ideal order is made of all labelled passages, and there are none, or a model judged the ranking.
    #[error(
        "`{0}` needs labels: its ideal order is made of all labelled passages, and a model's verdicts have no such pool"
    )]
    NoPool(Measure),
    /// It compares several rankings of a question: see `bias::shift` and `pir::by_root`.
    #[error(
        "`{0}` is over several rankings of a question: `eval pir` has pRecall, `eval berds` and `eval sycophancy` have Shift"
    )]
    NeedsSeveralRankings(Measure),
    /// The supporting side is not known.
    #[error("`{0}` needs to know which perspective supports the question")]
    NeedsSides(Measure),
    /// The question is not two-sided.
    #[error(transparent)]
    Lean(#[from] LeanError),
    /// For rKL and AWRF: no passage takes a side, so the sides cannot be uneven.
    #[error("no passage supports a perspective")]
    NoSide,
    /// For Cover: the first 100 passages do not cover all perspectives.
    #[error("no cover within {looked_at} passages")]
    NotCovered {
        /// The number of passages that were looked at.
        looked_at: usize,
    },
}

/// A function of the verdicts on a ranking and the number of perspectives.
type OfSupport<'a, T> = &'a dyn Fn(&[Option<SupportSet>], PerspectiveCount) -> T;

/// The value of `measure` for one question, with the number of judged passages it rests on.
///
/// # Errors
/// The evidence does not allow the measure. [`ScoreError::NotCovered`] is a result and not a fault: report it as the share of questions
/// that reach a cover.
pub fn score(measure: Measure, evidence: &Evidence<'_>) -> Result<Measured<f64>, ScoreError> {
    let graded = |value: &dyn Fn(&GradedRanking) -> f64| {
        let ranking = evidence.graded.ok_or(ScoreError::NeedsGrades(measure))?;
        let returned = top(ranking.grades(), measure.cutoff().unwrap_or(usize::MAX));
        Ok(Measured { value: value(ranking), judged: returned.iter().flatten().count(), of: returned.len() })
    };
    let support = || evidence.support.ok_or(ScoreError::NeedsSupport(measure));
    let verdicts =
        |value: OfSupport<'_, Measured<f64>>| support().map(|support| value(support.ranked, support.m));
    let exposure = |value: OfSupport<'_, Option<Exposure>>, k: usize| {
        let SupportEvidence { ranked, m, .. } = support()?;
        Ok(Measured::over(ranked, k, value(ranked, m).ok_or(ScoreError::NoSide)?.value))
    };
    match measure {
        Measure::NDcg { k } => graded(&|ranking| ndcg(ranking, k.map(usize::from))),
        Measure::Precision { rel, k } => graded(&|ranking| precision(ranking, rel, k.get())),
        Measure::Recall { rel, k } => graded(&|ranking| recall(ranking, rel, k.get())),
        Measure::AveragePrecision { rel, k } => {
            graded(&|ranking| average_precision(ranking, rel, k.map(usize::from)))
        }
        Measure::ReciprocalRank { rel, k } => {
            graded(&|ranking| reciprocal_rank(ranking, rel, k.map(usize::from)))
        }
        Measure::Judged { k } if evidence.graded.is_some() => graded(&|ranking| judged(ranking, k.get())),
        Measure::Judged { k } => {
            let looked = top(support()?.ranked, k.get());
            let judged = looked.iter().flatten().count();
            Ok(Measured { value: judged as f64 / k.get() as f64, judged, of: looked.len() })
        }
        Measure::AlphaNDcg { alpha, k } => {
            let SupportEvidence { ranked, pool, m, .. } = support()?;
            if pool.is_empty() {
                return Err(ScoreError::NoPool(measure));
            }
            Ok(alpha_ndcg(ranked, pool, m, alpha, k.get()))
        }
        Measure::ErrIa { k } => verdicts(&|ranked, m| err_ia(ranked, m, k.get())),
        Measure::SubtopicRecall { k } => verdicts(&|ranked, m| subtopic_recall(ranked, m, k.get())),
        Measure::PrecisionIa { k } => verdicts(&|ranked, m| precision_ia(ranked, m, k.get())),
        Measure::MRecall { k } => verdicts(&|ranked, m| mrecall(ranked, m, k.get())),
        Measure::Prec { k } => verdicts(&|ranked, m| prec(ranked, m, k.get())),
        Measure::Lean { k } => {
            let SupportEvidence { ranked, m, supports, .. } = support()?;
            let supports = supports.ok_or(ScoreError::NeedsSides(measure))?;
            let shares = side_shares(ranked, m, supports, k.get())?;
            Ok(Measured { value: shares.value.lean(), judged: shares.judged, of: shares.of })
        }
        Measure::RKl { k } => exposure(&|ranked, m| rkl(top(ranked, k.get()), m), k.get()),
        Measure::Awrf { k } => {
            let k = k.map_or(DEEPEST, usize::from);
            exposure(&|ranked, m| awrf(ranked, m, k), k)
        }
        Measure::Cover => {
            let SupportEvidence { ranked, m, .. } = support()?;
            let found = cover(ranked, m);
            let at = found.at.ok_or(ScoreError::NotCovered { looked_at: found.looked_at })?;
            Ok(Measured { value: at as f64, judged: found.judged, of: found.looked_at })
        }
        Measure::Shift { .. } | Measure::PRecall { .. } => Err(ScoreError::NeedsSeveralRankings(measure)),
    }
}

/// Why a measure cannot be a column.
#[derive(Debug, thiserror::Error)]
pub enum ColumnError {
    /// No measure has the name.
    #[error(transparent)]
    Name(#[from] MeasureNameError),
    /// It needs judgments that only another command has.
    #[error("{0}; `eval trec --qrels FILE` has it")]
    NeedsGrades(ScoreError),
    /// One ranking is not enough for it.
    #[error(transparent)]
    Score(#[from] ScoreError),
}

/// A column of `eval berds`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Column {
    /// A measure by name.
    Named(Measure),
    /// 1 if the first k cover exactly these of the two sides (the supporting one first), else 0.
    Covers(&'static str, [bool; 2], usize),
}

/// The sides that the first k can cover: only the supporting one, only the opposing one, both, neither.
const SIDES: [(&str, [bool; 2]); 4] = [
    ("only-1", [true, false]),
    ("only-2", [false, true]),
    ("both", [true, true]),
    ("neither", [false, false]),
];

/// The depths at which a curve has points.
const STOPS: [usize; 14] = [1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 30, 50, 100];

impl Column {
    /// The columns of Tables 3 and 4 and Figure 2 of BERDS at k, then the measures with these names.
    ///
    /// # Errors
    /// A name is not that of a measure, or the measure needs judgments of another kind.
    pub fn at(k: usize, names: &[String]) -> Result<Vec<Self>, ColumnError> {
        let first = [Column::mrecall_at(k), Column::prec_at(k), Column::prec_at(1)].into_iter();
        let mut columns: Vec<Self> =
            first.chain(SIDES.map(|(name, sides)| Column::Covers(name, sides, k))).collect();
        for name in names {
            columns.push(Column::Named(by_verdicts(name)?));
        }
        Ok(columns)
    }

    /// MRecall of the first k.
    pub fn mrecall_at(k: usize) -> Self {
        Column::Named(Measure::MRecall { k: cutoff(k) })
    }

    /// Prec of the first k.
    pub fn prec_at(k: usize) -> Self {
        Column::Named(Measure::Prec { k: cutoff(k) })
    }

    /// The columns of two curves: MRecall and Prec at growing depths up to `deepest`.
    pub fn curves(deepest: usize) -> [(&'static str, Vec<Self>); 2] {
        let mut stops: Vec<usize> = STOPS.into_iter().filter(|stop| *stop < deepest).collect();
        stops.push(deepest);
        let of = |column: fn(usize) -> Column| stops.iter().map(|k| column(*k)).collect();
        [("MRecall", of(Column::mrecall_at)), ("Prec", of(Column::prec_at))]
    }

    /// The number of passages that it looks at.
    pub fn depth(self) -> usize {
        match self {
            Column::Named(measure) => measure.cutoff().unwrap_or(DEEPEST),
            Column::Covers(_, _, k) => k,
        }
    }

    /// Whether verdicts can be drawn again to see how uncertain it is.
    pub fn doubted(self) -> bool {
        match self {
            Column::Named(measure) => measure.can_be_drawn(),
            Column::Covers(..) => true,
        }
    }

    /// Whether labels on drawn questions can correct its mean by the model's verdicts.
    pub fn correctable(self) -> bool {
        match self {
            Column::Named(measure) => measure.can_be_corrected(),
            Column::Covers(..) => true,
        }
    }

    /// How far an interval of its mean is widened at both ends, by the bias of the model's verdicts.
    pub fn widening(self, bias: Bias) -> f64 {
        match self {
            Column::Named(measure) => bias.of(measure),
            Column::Covers(..) => 0.0,
        }
    }

    /// Its expectation under a judge's probabilities, exactly, for the measures that depend on which statements the first k cover or are
    /// sums over passages. `None` for other measures and for questions with many statements; [`expected`](super::expected::expected) has
    /// them.
    pub fn expectation(
        self,
        list: &[Option<Chances>],
        m: PerspectiveCount,
        supports: Option<usize>,
    ) -> Option<f64> {
        let top = &list[..list.len().min(self.depth())];
        let sum = |of: &dyn Fn(&Chances) -> f64| top.iter().flatten().map(of).sum::<f64>();
        match self {
            Column::Named(Measure::Prec { k }) => Some(sum(&Chances::supports_any) / k.get() as f64),
            Column::Named(Measure::Lean { k }) if m.get() == 2 => {
                let first = supports?;
                let lean = |row: &Chances| row.supports(first) - row.supports(1 - first.min(1));
                Some(sum(&lean) / k.get() as f64)
            }
            Column::Named(Measure::MRecall { .. } | Measure::SubtopicRecall { .. }) | Column::Covers(..) => {
                let sets = coverage(top, m)?.into_iter();
                sets.filter(|(_, p)| *p > 0.0)
                    .map(|(set, p)| {
                        // One passage that supports all of them covers the same.
                        let ranked = [Some(set)];
                        let evidence = SupportEvidence { ranked: &ranked, pool: &[], m, supports };
                        Some(p * self.value(evidence)?.value)
                    })
                    .sum()
            }
            // The others have no exact expectation; draws estimate it.
            Column::Named(_) => None,
        }
    }

    /// Its value, with the number of judged passages; `None` if the question does not allow it.
    pub fn value(self, evidence: SupportEvidence<'_>) -> Option<Measured<f64>> {
        match self {
            Column::Named(measure) => {
                // A question that does not reach a cover, or with no passage on any side, has no value and does not count in n.
                score(measure, &Evidence { graded: None, support: Some(evidence) }).ok()
            }
            Column::Covers(_, wanted, k) => {
                let first = evidence.supports?;
                let found = covered(evidence.ranked, evidence.m, k);
                let sides = [found.value.contains(first), found.value.contains(1 - first.min(1))];
                let value = f64::from(u8::from(sides == wanted));
                Some(Measured { value, judged: found.judged, of: found.of })
            }
        }
    }
}

impl Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Column::Named(measure) => measure.fmt(f),
            Column::Covers(name, _, k) => write!(f, "{name}@{k}"),
        }
    }
}

/// Parses the name of a measure that needs only the verdicts on one list, or Shift.
///
/// # Errors
/// No measure has this name, or it needs other judgments.
pub fn by_verdicts(name: &str) -> Result<Measure, ColumnError> {
    let measure = name.parse::<Measure>()?;
    // Without any evidence, `score` names the kind that the measure needs.
    match score(measure, &Evidence::default()) {
        Err(error @ ScoreError::NeedsGrades(_)) => Err(ColumnError::NeedsGrades(error)),
        Err(error @ ScoreError::NeedsSeveralRankings(_)) if !matches!(measure, Measure::Shift { .. }) => {
            Err(error.into())
        }
        _ => Ok(measure),
    }
}

fn cutoff(k: usize) -> NonZeroUsize {
    NonZeroUsize::new(k).unwrap_or(NonZeroUsize::MIN)
}

#[cfg(test)]
mod tests {
    use super::super::support::labels;
    use super::*;
    use crate::measure::{PerspectiveCount, SupportSet};

    fn measure(name: &str) -> Measure {
        name.parse().unwrap()
    }

    fn graded() -> GradedRanking {
        let judgments = [("a", 1), ("b", 0)].map(|(id, grade)| (id.to_owned(), grade)).into();
        GradedRanking::new(["a", "b", "x"], &judgments)
    }

    #[test]
    fn a_graded_name_reads_the_grades_and_counts_the_judged() {
        let graded = graded();
        let evidence = Evidence { graded: Some(&graded), support: None };
        let found = score(measure("P@5"), &evidence).unwrap();
        assert_eq!((found.value, found.judged, found.of), (0.2, 2, 3));
        for name in ["nDCG@10", "nDCG", "R@1", "AP", "RR", "RR@10"] {
            assert_eq!(score(measure(name), &evidence).unwrap().value, 1.0, "{name}");
        }
        assert_eq!(
            score(measure("MRecall@5"), &evidence),
            Err(ScoreError::NeedsSupport(measure("MRecall@5")))
        );
    }

    #[test]
    fn only_means_over_one_list_of_every_question_can_be_corrected() {
        for name in ["MRecall@5", "Prec@5", "Lean@5", "ERR_IA@5", "pRecall@5"] {
            assert!(Column::Named(measure(name)).correctable(), "{name}");
        }
        for name in ["alpha_nDCG@5", "Shift@5", "Cover", "rKL", "AWRF", "Judged@5"] {
            assert!(!Column::Named(measure(name)).correctable(), "{name}");
        }
    }

    #[test]
    fn a_perspective_name_reads_the_verdicts() {
        let ranked = labels(&[&[1], &[], &[2]]);
        let pool = [("a", ranked[0].unwrap()), ("c", ranked[2].unwrap())];
        let evidence = Evidence {
            graded: None,
            support: Some(SupportEvidence {
                ranked: &ranked,
                pool: &pool,
                m: PerspectiveCount::new(2).unwrap(),
                supports: Some(0),
            }),
        };
        let value = |name: &str| score(measure(name), &evidence).unwrap().value;
        assert_eq!(value("MRecall@2"), 0.0);
        assert_eq!(value("Prec@2"), 0.5);
        assert_eq!(value("StRecall@2"), 0.5);
        assert_eq!(value("P_IA@2"), 0.25);
        assert_eq!(value("Lean@2"), 0.5);
        assert_eq!(value("Cover"), 3.0);
        assert_eq!((value("Judged@2"), value("Judged@6")), (1.0, 0.5));
        assert!(value("rKL@5") == 0.0 && value("rKL@10") == 0.0 && value("AWRF@1") == 0.5);
        assert!(value("AWRF") > 0.0 && value("AWRF") == value("AWRF@3"));
        assert!(value("alpha_nDCG@3") < 1.0 && value("ERR_IA@3") > 0.0);
        assert_eq!(score(measure("nDCG@10"), &evidence), Err(ScoreError::NeedsGrades(measure("nDCG@10"))));
    }

    #[test]
    fn what_a_question_cannot_answer_is_an_error_and_never_a_zero() {
        let (ranked, silent) = (labels(&[&[1]]), labels(&[&[]]));
        let mut support = SupportEvidence {
            ranked: &ranked,
            pool: &[],
            m: PerspectiveCount::new(3).unwrap(),
            supports: None,
        };
        let error = |support, name: &str| {
            let evidence = Evidence { graded: None, support: Some(support) };
            score(measure(name), &evidence).unwrap_err()
        };
        assert_eq!(error(support, "Cover"), ScoreError::NotCovered { looked_at: 1 });
        assert_eq!(error(support, "Lean@5"), ScoreError::NeedsSides(measure("Lean@5")));
        for name in ["rKL", "AWRF@5"] {
            let nothing = SupportEvidence { ranked: &silent, ..support };
            assert_eq!(error(nothing, name), ScoreError::NoSide);
        }
        support.supports = Some(0);
        assert_eq!(error(support, "Lean@5"), ScoreError::Lean(LeanError::NotTwoSided(3)));
        assert_eq!(error(support, "alpha_nDCG@5"), ScoreError::NoPool(measure("alpha_nDCG@5")));
        for name in ["Shift@5", "pRecall@5"] {
            assert_eq!(error(support, name), ScoreError::NeedsSeveralRankings(measure(name)));
        }
    }

    #[test]
    fn the_stacks_ask_for_exactly_these_sides_and_say_nothing_of_questions_without_two() {
        let both = [0, 1].map(|side| SupportSet::of([side]).ok());
        let columns = Column::at(2, &[]).unwrap();
        let values = |supports, ranked: &[Option<SupportSet>]| -> Vec<Option<f64>> {
            let m = PerspectiveCount::new(2).unwrap();
            let evidence = SupportEvidence { ranked, pool: &[], m, supports };
            let stacks = columns.iter().filter(|column| matches!(column, Column::Covers(..)));
            stacks.map(|column| Some(column.value(evidence)?.value)).collect()
        };
        assert_eq!(values(Some(0), &both), [0.0, 0.0, 1.0, 0.0].map(Some));
        assert_eq!(values(Some(0), &both[..1]), [1.0, 0.0, 0.0, 0.0].map(Some));
        assert_eq!(values(Some(1), &both[..1]), [0.0, 1.0, 0.0, 0.0].map(Some));
        assert_eq!(values(Some(0), &[]), [0.0, 0.0, 0.0, 1.0].map(Some));
        assert_eq!(values(None, &both), [None; 4]);
    }

    #[test]
    fn expectations_are_those_of_all_outcomes() {
        use crate::measure::expected::expected;
        use crate::measure::seeded::SplitMix64;
        let mut rng = SplitMix64::new(3);
        let mut p = || rng.below(1000) as f64 / 1000.0;
        for (m, of_two) in [(2, true), (2, false), (3, false)] {
            let m = PerspectiveCount::new(m).unwrap();
            let list: Vec<Option<Chances>> = (0..5)
                .map(|i| {
                    let (a, b, c) = (p(), p(), p());
                    let two = [a * b, a * (1.0 - b), (1.0 - a) * c, (1.0 - a) * (1.0 - c)];
                    (i != 2).then(|| {
                        if of_two { Chances::Two(two) } else { Chances::Each([a, b, c][..m.get()].to_vec()) }
                    })
                })
                .collect();
            let names = ["MRecall@2", "StRecall@4", "Prec@3", "Lean@4"].map(str::to_owned);
            let mut compared = 0;
            for column in Column::at(5, &names).unwrap() {
                let Some(exact) = column.expectation(&list, m, Some(0)) else { continue };
                let own = &list[..column.depth()];
                let of_outcomes = expected(own, |ranked| {
                    column.value(SupportEvidence { ranked, pool: &[], m, supports: Some(0) }).map(|v| v.value)
                });
                assert!((exact - of_outcomes.unwrap()).abs() < 1e-12, "{column} {exact} {of_outcomes:?}");
                compared += 1;
            }
            assert_eq!(compared, if m.get() == 2 { 11 } else { 10 });
        }
    }

    #[test]
    fn curves_end_where_asked_and_every_name_of_one_list_is_a_column() {
        let [(_, stops), _] = Column::curves(7);
        let names: Vec<String> = stops.iter().map(ToString::to_string).collect();
        assert_eq!(names, [1, 2, 3, 4, 5, 6, 7].map(|k| format!("MRecall@{k}")));
        for name in [
            "alpha_nDCG@5",
            "ERR_IA@5",
            "StRecall@5",
            "P_IA@5",
            "Lean@5",
            "Shift@5",
            "Cover",
            "rKL",
            "AWRF",
            "Judged@5",
        ] {
            assert!(by_verdicts(name).is_ok(), "{name}");
        }
        for (name, hint) in
            [("nDCG@10", "eval trec"), ("AP", "qrels"), ("pRecall@5", "eval pir"), ("AWFR", "AWRF")]
        {
            assert!(by_verdicts(name).unwrap_err().to_string().contains(hint), "{name}");
        }
    }
}
