//! Lean, Δ and shift: which side does a ranking take? (BERDS §7 and Figure 3)
//!
//! They exist only for two-sided questions.

use thiserror::Error;

use super::support::{Measured, PerspectiveCount, SupportSet, top};

/// Why a ranking has no lean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum LeanError {
    /// m is not 2.
    #[error("lean needs a question with two perspectives, found {0}")]
    NotTwoSided(usize),
    /// `supports` names neither of the two.
    #[error("expected 0 or 1 as the supporting perspective, found {0}")]
    NoSuchSide(usize),
}

/// `p` and `n`: the shares of the top k that support and that oppose the question.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SideShares {
    /// Share that supports the supporting perspective.
    pub p: f64,
    /// Share that supports the opposing one. A both-sided passage counts in both.
    pub n: f64,
}

impl SideShares {
    /// `lean = p − n`, from −1 to 1.
    pub fn lean(self) -> f64 {
        self.p - self.n
    }

    /// The paper's `Δ = (p − n) / p`; undefined at p = 0, which is not 0.
    pub fn delta(self) -> Option<f64> {
        (self.p > 0.0).then(|| self.lean() / self.p)
    }
}

/// The shares of `k` that support each side; `supports` is the index of the supporting perspective.
///
/// As in Prec@k, passages not returned or not judged support neither. `k = 0` gives 0 for both.
///
/// # Errors
/// If `m` is not 2 or `supports` is neither 0 nor 1.
pub fn side_shares(
    ranked: &[Option<SupportSet>],
    m: PerspectiveCount,
    supports: usize,
    k: usize,
) -> Result<Measured<SideShares>, LeanError> {
    if m.get() != 2 {
        return Err(LeanError::NotTwoSided(m.get()));
    }
    if supports > 1 {
        return Err(LeanError::NoSuchSide(supports));
    }
    let share = |side: usize| {
        let on_side = top(ranked, k).iter().flatten().filter(|set| set.contains(side)).count();
        on_side as f64 / k.max(1) as f64
    };
    let shares = SideShares { p: share(supports), n: share(1 - supports) };
    Ok(Measured::over(ranked, k, shares))
}

/// `shift = lean(asked p_1) − lean(asked p_2)`: 0 is indifferent to the wording, 2 says what it is asked.
///
/// Both leans are towards the same supporting perspective.
pub fn shift(asked_supporting: SideShares, asked_opposing: SideShares) -> f64 {
    asked_supporting.lean() - asked_opposing.lean()
}

/// p and n over a question set, for Δ, which is taken after pooling; `None` over no questions.
///
/// Lean and shift over a set are plain means over its questions instead.
pub fn pool(questions: &[SideShares]) -> Option<SideShares> {
    let count = questions.len() as f64;
    (!questions.is_empty()).then(|| SideShares {
        p: questions.iter().map(|shares| shares.p).sum::<f64>() / count,
        n: questions.iter().map(|shares| shares.n).sum::<f64>() / count,
    })
}

#[cfg(test)]
mod tests {
    use super::super::support::labels;
    use super::*;

    fn two() -> PerspectiveCount {
        PerspectiveCount::new(2).unwrap()
    }

    fn close(left: f64, right: f64) -> bool {
        (left - right).abs() < 1e-12
    }

    #[test]
    fn two_for_and_one_against_of_five_lean_a_fifth() {
        let ranked = labels(&[&[1], &[], &[2], &[1], &[]]);
        let shares = side_shares(&ranked, two(), 0, 5).unwrap().value;
        assert_eq!((shares.p, shares.n), (0.4, 0.2));
        assert!(close(shares.lean(), 0.2));
        assert!(close(shares.delta().unwrap(), 0.5));
    }

    #[test]
    fn without_a_supporting_passage_delta_is_undefined() {
        let ranked = labels(&[&[2], &[], &[2], &[], &[]]);
        let shares = side_shares(&ranked, two(), 0, 5).unwrap().value;
        assert!(close(shares.lean(), -0.4));
        assert_eq!(shares.delta(), None);
    }

    #[test]
    fn the_supporting_perspective_may_stand_second() {
        let ranked = labels(&[&[2], &[2], &[1], &[]]);
        let shares = side_shares(&ranked, two(), 1, 4).unwrap().value;
        assert_eq!((shares.p, shares.n), (0.5, 0.25));
    }

    #[test]
    fn a_both_sided_passage_leans_nowhere_and_missing_ones_dilute() {
        let ranked = labels(&[&[1, 2], &[1]]);
        let shares = side_shares(&ranked, two(), 0, 4).unwrap();
        assert_eq!((shares.value.p, shares.value.n), (0.5, 0.25));
        assert_eq!((shares.judged, shares.of), (2, 2));
        assert_eq!(side_shares(&ranked, two(), 0, 0).unwrap().value.p, 0.0);
    }

    #[test]
    fn three_perspectives_have_no_lean() {
        let three = PerspectiveCount::new(3).unwrap();
        assert_eq!(side_shares(&[], three, 0, 5), Err(LeanError::NotTwoSided(3)));
        assert_eq!(side_shares(&[], two(), 2, 5), Err(LeanError::NoSuchSide(2)));
    }

    #[test]
    fn a_lane_that_says_what_it_is_asked_shifts_by_two() {
        let (yes, no) = (SideShares { p: 1.0, n: 0.0 }, SideShares { p: 0.0, n: 1.0 });
        assert_eq!(shift(yes, no), 2.0);
        assert_eq!(shift(yes, yes), 0.0);
    }

    #[test]
    fn delta_over_a_set_comes_from_the_pooled_shares() {
        let set = [SideShares { p: 0.4, n: 0.2 }, SideShares { p: 0.0, n: 0.4 }];
        let pooled = pool(&set).unwrap();
        assert!(close(pooled.p, 0.2) && close(pooled.n, 0.3));
        assert!(close(pooled.delta().unwrap(), -0.5));
        assert_eq!(pool(&[]), None);
    }
}
