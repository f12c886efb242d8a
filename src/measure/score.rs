//! One measure's name and one question's evidence to one value.
//!
//! The only place that knows which name is which function, so that screen and batch cannot differ.

use thiserror::Error;

use super::alpha_ndcg::{Pooled, alpha_ndcg};
use super::cover::cover;
use super::exposure::{Exposure, awrf, rkl};
use super::graded::{GradedRanking, average_precision, judged, precision, recall, reciprocal_rank};
use super::lean::{LeanError, side_shares};
use super::mrecall::{DEEPEST, mrecall};
use super::ndcg::ndcg;
use super::prec::prec;
use super::subtopic::{err_ia, precision_ia, subtopic_recall};
use super::support::{Measured, PerspectiveCount, SupportSet, top};
use super::{Measure, name::Alpha};

/// What is known of one question's ranking; a measure asks for one of the two kinds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Evidence<'a> {
    /// For nDCG, P, R, AP, RR, Judged.
    pub graded: Option<&'a GradedRanking>,
    /// For everything about perspectives.
    pub support: Option<SupportEvidence<'a>>,
}

/// A ranking's verdicts, and the question they belong to.
#[derive(Clone, Copy, Debug)]
pub struct SupportEvidence<'a> {
    /// Verdicts in rank order; `None` is unjudged.
    pub ranked: &'a [Option<SupportSet>],
    /// Every judged passage of the question, for the ideal of alpha_nDCG.
    pub pool: &'a [Pooled<'a>],
    /// The full number of perspectives.
    pub m: PerspectiveCount,
    /// Index of the supporting perspective, where that is known, for `Lean`.
    pub supports: Option<usize>,
}

/// Why a measure has no value for a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ScoreError {
    /// No qrels were given.
    #[error("`{0}` needs graded judgements (qrels)")]
    NeedsGrades(Measure),
    /// No perspective labels or verdicts were given.
    #[error("`{0}` needs perspectives and verdicts")]
    NeedsSupport(Measure),
    /// It compares several rankings of a question; `lean::shift` or `precall::p_recall` has it.
    #[error(
        "`{0}` is over several rankings of a question: `eval pir` has pRecall, `eval berds` and `eval sycophancy` have Shift"
    )]
    NeedsSeveralRankings(Measure),
    /// Which side supports the question is not known.
    #[error("`{0}` needs to know which perspective supports the question")]
    NeedsSides(Measure),
    /// The question is not two-sided.
    #[error(transparent)]
    Lean(#[from] LeanError),
    /// rKL and AWRF only: nothing takes a side, so nothing can be uneven.
    #[error("no passage supports a perspective")]
    NoSide,
    /// Cover only: the first 100 passages do not cover.
    #[error("no cover within {looked_at} passages")]
    NotCovered {
        /// How many were looked at.
        looked_at: usize,
    },
}

/// The value of `measure` for one question, with the number of judged passages it rests on.
///
/// # Errors
/// Where the evidence does not allow the measure. [`ScoreError::NotCovered`] is a result rather than a
/// fault: report it in the share of questions that reach a cover.
pub fn score(measure: Measure, evidence: &Evidence<'_>) -> Result<Measured<f64>, ScoreError> {
    match measure {
        Measure::Judged { k } if evidence.graded.is_none() => {
            let support = evidence.support.ok_or(ScoreError::NeedsSupport(measure))?;
            let looked = top(support.ranked, k.get());
            let judged = looked.iter().flatten().count();
            Ok(Measured { value: judged as f64 / k.get() as f64, judged, of: looked.len() })
        }
        Measure::NDcg { .. }
        | Measure::Precision { .. }
        | Measure::Recall { .. }
        | Measure::AveragePrecision { .. }
        | Measure::ReciprocalRank { .. }
        | Measure::Judged { .. } => evidence
            .graded
            .map(|ranking| score_graded(measure, ranking))
            .ok_or(ScoreError::NeedsGrades(measure))?,
        Measure::Shift { .. } | Measure::PRecall { .. } => Err(ScoreError::NeedsSeveralRankings(measure)),
        _ => {
            let support = evidence.support.ok_or(ScoreError::NeedsSupport(measure))?;
            score_support(measure, support)
        }
    }
}

fn score_graded(measure: Measure, ranking: &GradedRanking) -> Result<Measured<f64>, ScoreError> {
    let value = match measure {
        Measure::NDcg { k } => ndcg(ranking, k.map(usize::from)),
        Measure::Precision { rel, k } => precision(ranking, rel, k.get()),
        Measure::Recall { rel, k } => recall(ranking, rel, k.get()),
        Measure::AveragePrecision { rel, k } => average_precision(ranking, rel, k.map(usize::from)),
        Measure::ReciprocalRank { rel, k } => reciprocal_rank(ranking, rel, k.map(usize::from)),
        Measure::Judged { k } => judged(ranking, k.get()),
        _ => return Err(ScoreError::NeedsSupport(measure)),
    };
    let returned = top(ranking.grades(), measure.cutoff().unwrap_or(usize::MAX));
    Ok(Measured { value, judged: returned.iter().flatten().count(), of: returned.len() })
}

fn score_support(measure: Measure, evidence: SupportEvidence<'_>) -> Result<Measured<f64>, ScoreError> {
    let SupportEvidence { ranked, m, .. } = evidence;
    let exposure = |found: Option<Exposure>, k: usize| -> Result<_, ScoreError> {
        Ok(Measured::over(ranked, k, found.ok_or(ScoreError::NoSide)?.value))
    };
    let alpha_ndcg_at = |alpha: Alpha, k: usize| alpha_ndcg(ranked, evidence.pool, m, alpha, k);
    Ok(match measure {
        Measure::AlphaNDcg { alpha, k } => alpha_ndcg_at(alpha, k.get()),
        Measure::ErrIa { k } => err_ia(ranked, m, k.get()),
        Measure::SubtopicRecall { k } => subtopic_recall(ranked, m, k.get()),
        Measure::PrecisionIa { k } => precision_ia(ranked, m, k.get()),
        Measure::MRecall { k } => mrecall(ranked, m, k.get()),
        Measure::Prec { k } => prec(ranked, m, k.get()),
        Measure::Lean { k } => {
            let supports = evidence.supports.ok_or(ScoreError::NeedsSides(measure))?;
            let shares = side_shares(ranked, m, supports, k.get())?;
            Measured { value: shares.value.lean(), judged: shares.judged, of: shares.of }
        }
        Measure::RKl { k } => exposure(rkl(top(ranked, k.get()), m), k.get())?,
        Measure::Awrf { k } => {
            let k = k.map_or(DEEPEST, usize::from);
            exposure(awrf(ranked, m, k), k)?
        }
        Measure::Cover => {
            let found = cover(ranked, m);
            let at = found.at.ok_or(ScoreError::NotCovered { looked_at: found.looked_at })?;
            Measured { value: at as f64, judged: found.judged, of: found.looked_at }
        }
        _ => return Err(ScoreError::NeedsSeveralRankings(measure)),
    })
}

#[cfg(test)]
mod tests {
    use super::super::support::labels;
    use super::*;

    fn measure(name: &str) -> Measure {
        name.parse().unwrap()
    }

    fn graded() -> GradedRanking {
        let judgements = [("a", 1), ("b", 0)].map(|(id, grade)| (id.to_owned(), grade)).into();
        GradedRanking::new(["a", "b", "x"], &judgements)
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
        for name in ["Shift@5", "pRecall@5"] {
            assert_eq!(error(support, name), ScoreError::NeedsSeveralRankings(measure(name)));
        }
    }
}
