//! Measures of rankings: every measure that Parallax prints, and the files of runs and judgments.
//!
//! Pure functions of rankings and labels. Nothing here retrieves, judges, opens a file by name or prints. Readers take any
//! [`std::io::BufRead`], so the caller decompresses.
//!
//! May use: input, vector, work.
//!
//! To add a measure, write a function in the file of its family, add a variant of [`Measure`] in `name.rs`, and parse its name in
//! `parse.rs`. The compiler then asks for an example of its name, its cut-off, its parameter, whether it can be corrected, its bias, and
//! its value in `score.rs`. If its expectation can be computed exactly, add it to `Column::expectation` there; nothing asks for that.
//!
//! | file | holds |
//! | --- | --- |
//! | [`name`], `parse` | names such as `nDCG@10`, `alpha_nDCG(alpha=0.3)@5` |
//! | [`score`] | computes a measure by its name; the columns of `eval berds` |
//! | [`support`] | which perspectives a passage supports; \|V\| |
//! | [`coverage`] | BERDS: MRecall, Prec, Cover |
//! | [`bias`] | which side a ranking favours: lean, Δ, shift, rKL, AWRF |
//! | [`nuggets`] | clusters of sentences that make one argument, and how many of these a list brings |
//! | [`pir`] | PIR: pRecall, sides of gold passages, attributes |
//! | [`graded`] | trec_eval: nDCG, P, R, AP, RR, Judged |
//! | [`subtopic`] | ndeval: StRecall, P_IA, ERR_IA, alpha_nDCG |
//! | [`uncertainty`] | intervals of a measure of model verdicts; risk, coverage and calibration of a judge that may abstain |
//! | [`expected`], [`ppi`], [`intervals`] | a judge's expectation of a measure; its correction by labels; quantiles and exact intervals |
//! | [`calibrate`] | turns scores into probabilities by labels: Platt, and a slope alone |
//! | [`compare`], [`significance`], [`agreement`] | two rankings, two lanes, two annotators |
//! | [`seeded`] | random numbers |
//! | [`trec`] | reads and writes runs and judgments |

pub mod agreement;
pub mod bias;
pub mod coverage;
pub mod expected;
pub mod graded;
pub mod intervals;
pub mod name;
pub mod nuggets;
mod parse;
pub mod pir;
pub mod ppi;
pub mod score;
pub mod significance;
pub mod support;
pub mod trec;
pub mod uncertainty;

pub use graded::subtopic;

pub use intervals::calibrate;
pub use support::compare;

pub use name::{Measure, MeasureNameError};
pub use support::{Measured, PerspectiveCount, PerspectiveError, SupportSet};

/// Writes a probability without its leading zero: `.94`, `1.0`.
pub fn share(p: f64) -> String {
    let text = format!("{p:.2}");
    match text.strip_prefix('0') {
        Some(rest) => rest.to_owned(),
        None => text.strip_prefix("-0").map_or_else(|| format!("{p:.1}"), |rest| format!("-{rest}")),
    }
}

#[cfg(test)]
mod properties {
    use std::collections::BTreeMap;

    use super::compare::{RBO_P, jaccard, rbo};
    use super::coverage::cover;
    use super::coverage::mrecall;
    use super::coverage::prec;
    use super::graded::ndcg;
    use super::graded::{GradedRanking, average_precision, judged, precision, recall, reciprocal_rank};
    use super::name::Alpha;
    use super::seeded::SplitMix64;
    use super::subtopic::{alpha_ndcg, ideal_order};
    use super::subtopic::{err_ia, precision_ia, subtopic_recall};
    use super::support::{PerspectiveCount, SupportSet, covered};

    const ROUNDS: usize = 300;
    const DEEPEST_K: usize = 25;

    fn random_set(rng: &mut SplitMix64, m: usize) -> SupportSet {
        let density = 1 + rng.below(4);
        let chosen: Vec<usize> = (0..m).filter(|_| rng.below(5) < density).collect();
        SupportSet::of(chosen).unwrap()
    }

    struct Case {
        m: PerspectiveCount,
        ranked: Vec<Option<SupportSet>>,
    }

    fn random_cases(seed: u64) -> impl Iterator<Item = Case> {
        let mut rng = SplitMix64::new(seed);
        (0..ROUNDS).map(move |_| {
            let m = if rng.below(10) == 0 { 128 } else { 1 + rng.below(8) };
            let length = rng.below(20);
            let ranked = (0..length).map(|_| (rng.below(6) > 0).then(|| random_set(&mut rng, m))).collect();
            Case { m: PerspectiveCount::new(m).unwrap(), ranked }
        })
    }

    fn random_graded(rng: &mut SplitMix64) -> (Vec<String>, BTreeMap<String, i32>) {
        let mut ids: Vec<String> = (0..1 + rng.below(30)).map(|i| format!("d{i}")).collect();
        let judgments = ids
            .iter()
            .map(|id| (id.clone(), rng.below(6) as i32 - 2))
            // −2 means unjudged.
            .filter(|&(_, grade)| grade > -2)
            .collect();
        rng.shuffle(&mut ids);
        ids.truncate(rng.below(31));
        (ids, judgments)
    }

    fn never_falls(values: impl IntoIterator<Item = f64>) -> bool {
        let values: Vec<f64> = values.into_iter().collect();
        values.windows(2).all(|pair| pair[0] <= pair[1])
    }

    fn is_share(value: f64) -> bool {
        (0.0..=1.0 + 1e-12).contains(&value)
    }

    #[test]
    fn coverage_and_subtopic_recall_never_fall_as_k_grows() {
        for Case { m, ranked } in random_cases(1) {
            let ks = 0..DEEPEST_K;
            assert!(never_falls(ks.clone().map(|k| covered(&ranked, m, k).value.len() as f64)));
            assert!(never_falls(ks.map(|k| subtopic_recall(&ranked, m, k).value)));
        }
    }

    #[test]
    fn recall_never_falls_as_k_grows() {
        let mut rng = SplitMix64::new(2);
        for _ in 0..ROUNDS {
            let (ids, judgments) = random_graded(&mut rng);
            let ranking = GradedRanking::new(ids.iter().map(String::as_str), &judgments);
            for rel in 1..=3 {
                assert!(never_falls((0..35).map(|k| recall(&ranking, rel, k))));
            }
        }
    }

    #[test]
    fn shares_stay_between_zero_and_one() {
        for Case { m, ranked } in random_cases(3) {
            for k in 0..DEEPEST_K {
                assert!(is_share(prec(&ranked, m, k).value));
                assert!(is_share(err_ia(&ranked, m, k).value));
                assert!(is_share(precision_ia(&ranked, m, k).value));
                assert!(is_share(subtopic_recall(&ranked, m, k).value));
                assert!([0.0, 1.0].contains(&mrecall(&ranked, m, k).value));
            }
        }
    }

    #[test]
    fn graded_measures_stay_between_zero_and_one() {
        let mut rng = SplitMix64::new(4);
        for _ in 0..ROUNDS {
            let (ids, judgments) = random_graded(&mut rng);
            let ranking = GradedRanking::new(ids.iter().map(String::as_str), &judgments);
            for k in [0, 1, 5, 10, 100] {
                assert!(is_share(ndcg(&ranking, Some(k))));
                assert!(is_share(precision(&ranking, 1, k)));
                assert!(is_share(recall(&ranking, 2, k)));
                assert!(is_share(average_precision(&ranking, 1, Some(k))));
                assert!(is_share(reciprocal_rank(&ranking, 1, Some(k))));
                assert!(is_share(judged(&ranking, k)));
            }
        }
    }

    #[test]
    fn the_perfect_order_has_an_ndcg_of_one_at_every_cut_off() {
        let mut rng = SplitMix64::new(5);
        for _ in 0..ROUNDS {
            let (_, judgments) = random_graded(&mut rng);
            if judgments.values().all(|&grade| grade < 1) {
                continue;
            }
            let mut best: Vec<(&str, i32)> =
                judgments.iter().map(|(id, &grade)| (id.as_str(), grade)).collect();
            best.sort_by_key(|&(_, grade)| std::cmp::Reverse(grade));
            let ranking = GradedRanking::new(best.iter().map(|&(id, _)| id), &judgments);
            for k in (1..12).map(Some).chain([None]) {
                assert!((ndcg(&ranking, k) - 1.0).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn the_greedy_order_has_an_alpha_ndcg_of_one_at_every_cut_off() {
        let mut rng = SplitMix64::new(6);
        for Case { m, ranked } in random_cases(6) {
            let ids: Vec<String> = (0..ranked.len()).map(|i| format!("d{i:02}")).collect();
            let pool: Vec<(&str, SupportSet)> = ids
                .iter()
                .map(String::as_str)
                .zip(ranked.into_iter().map(Option::unwrap_or_default))
                .collect();
            if pool.iter().all(|(_, set)| set.is_empty()) {
                continue;
            }
            let alpha = Alpha::new(rng.below(10) as f64 / 10.0).unwrap();
            let best: Vec<_> = ideal_order(&pool, m, alpha, pool.len())
                .into_iter()
                .map(|index| Some(pool[index].1))
                .collect();
            assert_eq!(best.len(), pool.len());
            for k in 1..DEEPEST_K {
                let value = alpha_ndcg(&best, &pool, m, alpha, k).value;
                assert!((value - 1.0).abs() < 1e-12, "{value}");
            }
        }
    }

    #[test]
    fn mrecall_agrees_with_its_definition_and_cover_with_mrecall() {
        for Case { m, ranked } in random_cases(7) {
            let at = cover(&ranked, m).at;
            for k in 1..DEEPEST_K {
                let seen = covered(&ranked, m, k).value.len();
                let success = if m.get() > k { seen >= k } else { seen == m.get() };
                assert_eq!(mrecall(&ranked, m, k).value == 1.0, success);
                assert_eq!(at.is_some_and(|at| at <= k), seen == m.get());
            }
        }
    }

    #[test]
    fn overlap_is_symmetric_a_share_and_one_for_a_list_with_itself() {
        let mut rng = SplitMix64::new(8);
        let names: Vec<String> = (0..30).map(|i| format!("d{i}")).collect();
        for _ in 0..ROUNDS {
            let mut draw = || {
                let mut ids: Vec<&str> = names.iter().map(String::as_str).collect();
                rng.shuffle(&mut ids);
                ids.truncate(1 + rng.below(30));
                ids
            };
            let (left, right) = (draw(), draw());
            let value = rbo(&left, &right, RBO_P).unwrap();
            let swapped = rbo(&right, &left, RBO_P).unwrap();
            assert!(is_share(value) && (value - swapped).abs() < 1e-12, "{value}");
            assert!((rbo(&left, &left, RBO_P).unwrap() - 1.0).abs() < 1e-12);
            assert!(is_share(jaccard(&left, &right, 10).unwrap()));
            assert_eq!(jaccard(&left, &left, 10), Some(1.0));
        }
    }
}

/// A small seeded random number generator for permutation tests, bootstraps and tests of properties.
///
/// The same seed must give the same p-value in every release, so no external generator is used. It is not fit for secrets.
pub mod seeded {
    /// SplitMix64 (Steele, Lea & Flood, OOPSLA 2014).
    #[derive(Clone, Debug)]
    pub struct SplitMix64(u64);

    impl SplitMix64 {
        /// A stream that depends on `seed` alone.
        pub fn new(seed: u64) -> Self {
            Self(seed)
        }

        /// A stream that depends on `seed` and a name, so that a named thing is drawn in the same way in every list.
        pub fn named(seed: u64, name: &str) -> Self {
            Self(seed ^ hashed(name))
        }

        /// The next 64 bits.
        pub fn next_u64(&mut self) -> u64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.0;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        }

        /// A number in `0..bound`; 0 if `bound` is 0.
        ///
        /// Multiply-shift (Lemire 2019) without rejection: the bias is below `bound / 2^64`.
        pub fn below(&mut self, bound: usize) -> usize {
            ((u128::from(self.next_u64()) * bound as u128) >> 64) as usize
        }

        /// True in half of the draws.
        pub fn coin(&mut self) -> bool {
            self.next_u64() >> 63 == 1
        }

        /// Fisher–Yates, in place.
        pub fn shuffle<T>(&mut self, items: &mut [T]) {
            for last in (1..items.len()).rev() {
                items.swap(last, self.below(last + 1));
            }
        }
    }

    /// A seed made from a text.
    pub fn hashed(text: &str) -> u64 {
        let hash = blake3::hash(text.as_bytes());
        hash.as_bytes().iter().take(8).fold(0, |seed, byte| seed << 8 | u64::from(*byte))
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn the_stream_is_the_published_one() {
            // First outputs for seed 1234567, as listed with the reference C implementation.
            let mut rng = SplitMix64::new(1_234_567);
            assert_eq!(rng.next_u64(), 6_457_827_717_110_365_317);
            assert_eq!(rng.next_u64(), 3_203_168_211_198_807_973);
        }

        #[test]
        fn draws_stay_below_their_bound() {
            let mut rng = SplitMix64::new(1);
            assert!((0..1000).all(|_| rng.below(7) < 7));
            assert_eq!(rng.below(0), 0);
        }

        #[test]
        fn shuffling_loses_nothing() {
            let mut items: Vec<usize> = (0..20).collect();
            SplitMix64::new(3).shuffle(&mut items);
            assert_ne!(items, (0..20).collect::<Vec<_>>());
            items.sort_unstable();
            assert_eq!(items, (0..20).collect::<Vec<_>>());
        }
    }
}
