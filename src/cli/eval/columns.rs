//! The columns of `eval berds`: what is said of one list of one question.

use std::fmt::{self, Display};
use std::num::NonZeroUsize;

use anyhow::bail;

use crate::measure::score::{Evidence, ScoreError, SupportEvidence, score};
use crate::measure::support::{Measured, covered};
use crate::measure::{Measure, mrecall::DEEPEST};

/// A column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Column {
    /// A measure by name.
    Named(Measure),
    /// 1 where the first k cover exactly these of two sides, the supporting one first.
    Covers(&'static str, [bool; 2], usize),
}

/// Which sides the first k can cover: only the supporting one, only the opposing one, both, neither.
const SIDES: [(&str, [bool; 2]); 4] = [
    ("only-1", [true, false]),
    ("only-2", [false, true]),
    ("both", [true, true]),
    ("neither", [false, false]),
];

/// The depths that a curve is drawn through.
const STOPS: [usize; 14] = [1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 30, 50, 100];

impl Column {
    /// The columns of Tables 3 and 4 and Figure 2 at k, then the measures asked for.
    ///
    /// # Errors
    /// A name is not a measure's, or that measure needs judgements of another kind.
    pub fn at(k: usize, names: &[String]) -> anyhow::Result<Vec<Self>> {
        let first = [mrecall(k), prec(k), prec(1)].into_iter();
        let mut columns: Vec<Self> =
            first.chain(SIDES.map(|(name, sides)| Column::Covers(name, sides, k))).collect();
        for name in names {
            columns.push(Column::Named(by_verdicts(name)?));
        }
        Ok(columns)
    }

    /// MRecall and Prec down to `deepest`, and the depths.
    pub fn curves(deepest: usize) -> [(&'static str, Vec<Self>); 2] {
        let mut stops: Vec<usize> = STOPS.into_iter().filter(|stop| *stop < deepest).collect();
        stops.push(deepest);
        let of = |column: fn(usize) -> Column| stops.iter().map(|k| column(*k)).collect();
        [("MRecall", of(mrecall)), ("Prec", of(prec))]
    }

    /// How many passages it looks at.
    pub fn depth(self) -> usize {
        match self {
            Column::Named(measure) => measure.cutoff().unwrap_or(DEEPEST),
            Column::Covers(_, _, k) => k,
        }
    }

    /// Whether verdicts can be drawn anew for it: the ideal of alpha_nDCG is made of the verdicts themselves, and a shift is of
    /// several lists.
    pub fn doubted(self) -> bool {
        !matches!(self, Column::Named(Measure::AlphaNDcg { .. } | Measure::Shift { .. }))
    }

    /// Its value with the passages judged; none where the question does not allow it.
    pub fn value(self, evidence: SupportEvidence<'_>) -> Option<Measured<f64>> {
        match self {
            Column::Named(measure) => {
                // Cover not reached, no two sides, nobody on a side: told by n.
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

/// A measure that one list and its verdicts allow, or the lists of three wordings.
///
/// # Errors
/// There is none of that name, or it needs other judgements.
pub fn by_verdicts(name: &str) -> anyhow::Result<Measure> {
    let measure = name.parse::<Measure>()?;
    match measure {
        Measure::NDcg { .. }
        | Measure::Precision { .. }
        | Measure::Recall { .. }
        | Measure::AveragePrecision { .. }
        | Measure::ReciprocalRank { .. } => {
            bail!("{}; `eval trec --qrels FILE` has it", ScoreError::NeedsGrades(measure))
        }
        Measure::PRecall { .. } => bail!("{}", ScoreError::NeedsSeveralRankings(measure)),
        measure => Ok(measure),
    }
}

fn cutoff(k: usize) -> NonZeroUsize {
    NonZeroUsize::new(k).unwrap_or(NonZeroUsize::MIN)
}

fn mrecall(k: usize) -> Column {
    Column::Named(Measure::MRecall { k: cutoff(k) })
}

fn prec(k: usize) -> Column {
    Column::Named(Measure::Prec { k: cutoff(k) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{PerspectiveCount, SupportSet};

    #[test]
    fn the_stacks_ask_for_exactly_these_sides_and_say_nothing_of_questions_without_two() {
        let both = [0, 1].map(|side| SupportSet::of([side]).ok());
        let columns = Column::at(2, &[]).unwrap();
        let values = |supports, ranked: &[Option<SupportSet>]| -> Vec<Option<f64>> {
            let m = PerspectiveCount::new(2).unwrap();
            let evidence = SupportEvidence { ranked, pool: &[], m, supports };
            columns[3..].iter().map(|column| Some(column.value(evidence)?.value)).collect()
        };
        assert_eq!(values(Some(0), &both), [0.0, 0.0, 1.0, 0.0].map(Some));
        assert_eq!(values(Some(0), &both[..1]), [1.0, 0.0, 0.0, 0.0].map(Some));
        assert_eq!(values(Some(1), &both[..1]), [0.0, 1.0, 0.0, 0.0].map(Some));
        assert_eq!(values(Some(0), &[]), [0.0, 0.0, 0.0, 1.0].map(Some));
        assert_eq!(values(None, &both), [None; 4]);
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
