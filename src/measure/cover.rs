//! Cover: how far must one read until every perspective was met? (BERDS Table 5)

use super::mrecall::DEEPEST;
use super::support::{PerspectiveCount, SupportSet, top};

/// The result of looking for a cover in the first [`DEEPEST`] passages of one ranking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cover {
    /// The smallest k at which |V| = m; `None` where the passages looked at do not cover.
    pub at: Option<usize>,
    /// How many passages were looked at: `at`, or all there are up to [`DEEPEST`].
    pub looked_at: usize,
    /// How many of those were judged.
    pub judged: usize,
    /// Length of the unbroken run of judged passages from rank 1, for `> 23 so far`.
    pub settled: usize,
}

impl Cover {
    /// Whether a verdict still to come could no longer change `at`.
    pub fn is_settled(&self) -> bool {
        self.settled == self.looked_at
    }
}

/// Cover: the smallest k ≤ 100 at which all m perspectives are covered.
///
/// |V| = m is asked for, not MRecall@k = 1, which at k < m is content with k of them.
pub fn cover(ranked: &[Option<SupportSet>], m: PerspectiveCount) -> Cover {
    let ranked = top(ranked, DEEPEST);
    let mut seen = SupportSet::EMPTY;
    let at = ranked.iter().position(|set| {
        seen = seen.union(m.within(set.unwrap_or_default()));
        seen.len() == m.get()
    });
    let at = at.map(|index| index + 1);
    let looked = &ranked[..at.unwrap_or(ranked.len())];
    Cover {
        at,
        looked_at: looked.len(),
        judged: looked.iter().flatten().count(),
        settled: looked.iter().take_while(|set| set.is_some()).count(),
    }
}

/// Cover over a question set, as BERDS Table 5 prints it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CoverSummary {
    /// Mean size over the questions that reach a cover; `None` if no question does.
    pub mean: Option<f64>,
    /// How many reach one.
    pub reached: usize,
    /// Out of how many.
    pub questions: usize,
}

impl CoverSummary {
    /// The share of the questions that reach a cover; `None` over no questions.
    pub fn share(&self) -> Option<f64> {
        (self.questions > 0).then(|| self.reached as f64 / self.questions as f64)
    }
}

/// Mean cover size over the questions that reach it, and how many do.
pub fn summarise(covers: &[Cover]) -> CoverSummary {
    let sizes: Vec<usize> = covers.iter().filter_map(|cover| cover.at).collect();
    let total: usize = sizes.iter().sum();
    CoverSummary {
        mean: (!sizes.is_empty()).then(|| total as f64 / sizes.len() as f64),
        reached: sizes.len(),
        questions: covers.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::support::labels;
    use super::*;

    fn two() -> PerspectiveCount {
        PerspectiveCount::new(2).unwrap()
    }

    #[test]
    fn the_cover_is_where_the_second_side_first_appears() {
        let found = cover(&labels(&[&[1], &[], &[2], &[2]]), two());
        assert_eq!(found.at, Some(3));
        assert_eq!((found.looked_at, found.judged), (3, 3));
    }

    #[test]
    fn k_of_m_perspectives_are_no_cover() {
        let m = PerspectiveCount::new(4).unwrap();
        assert_eq!(cover(&labels(&[&[1], &[3]]), m).at, None);
    }

    #[test]
    fn a_cover_at_rank_101_is_none() {
        let mut ranked = labels(&[&[1]]);
        ranked.extend(vec![Some(SupportSet::EMPTY); 98]);
        ranked.extend(labels(&[&[2]]));
        assert_eq!(cover(&ranked, two()).at, Some(100));
        ranked.insert(1, Some(SupportSet::EMPTY));
        let beyond = cover(&ranked, two());
        assert_eq!((beyond.at, beyond.looked_at), (None, 100));
    }

    #[test]
    fn an_unjudged_passage_before_the_cover_leaves_it_unsettled() {
        let mut ranked = labels(&[&[1], &[], &[2]]);
        assert!(cover(&ranked, two()).is_settled());
        ranked[1] = None;
        let found = cover(&ranked, two());
        assert_eq!((found.at, found.judged, found.settled), (Some(3), 2, 1));
        assert!(!found.is_settled());
    }

    #[test]
    fn the_mean_is_over_those_that_reach_a_cover_and_says_how_many() {
        let covers = [
            cover(&labels(&[&[1, 2]]), two()),
            cover(&labels(&[&[1], &[], &[2]]), two()),
            cover(&labels(&[&[1]]), two()),
        ];
        let summary = summarise(&covers);
        assert_eq!(summary.mean, Some(2.0));
        assert_eq!((summary.reached, summary.questions), (2, 3));
        assert_eq!(summary.share(), Some(2.0 / 3.0));
    }

    #[test]
    fn over_no_questions_there_is_neither_mean_nor_share() {
        let summary = summarise(&[]);
        assert_eq!((summary.mean, summary.share()), (None, None));
    }
}
