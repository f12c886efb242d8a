//! Key points: sentences that make the same argument are clustered, and a list is measured by the key points that it brings.
//!
//! Clusters are agglomerative with average linkage: the two clusters whose sentences are on average the most similar are merged, until no
//! two reach the threshold. Nugget recall follows AutoNuggetizer (Pradeep et al., 2025); the agreement of clusters with key points by hand
//! is B-cubed (Bagga and Baldwin, 1998).

use std::sync::atomic::{AtomicU64, Ordering};

use crate::vector::dot;
use crate::work::{Job, OnProgress, Progress, Stop, Stopped, on_cores};

/// The most sentences that are clustered at once: their similarities take 4 bytes a pair, here 450 MB.
pub const MOST: usize = 15_000;

/// Why sentences were not clustered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClusterError {
    /// There are too many.
    #[error(
        "{0} sentences are too many to cluster at once, the limit is {MOST}; lower k or name fewer lanes"
    )]
    TooMany(usize),
    /// Stopped on request.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// Rows whose similarities are computed together, so that every other row is fetched once for all of them.
const BLOCK: usize = 64;

/// The dot products of all pairs: row i holds those with the rows before it.
fn similarities(
    rows: &[Vec<f32>],
    on_progress: OnProgress<'_>,
    stop: &Stop,
) -> Result<Vec<Vec<f32>>, Stopped> {
    let (done, total) = (AtomicU64::new(0), rows.len() as u64);
    let block = |block: usize| {
        let own = block * BLOCK..((block + 1) * BLOCK).min(rows.len());
        let mut triangle: Vec<Vec<f32>> = own.clone().map(Vec::with_capacity).collect();
        for (j, other) in rows[..own.end].iter().enumerate() {
            for i in own.start.max(j + 1)..own.end {
                triangle[i - own.start].push(dot(&rows[i], other));
            }
        }
        let done = done.fetch_add(own.len() as u64, Ordering::Relaxed) + own.len() as u64;
        on_progress(Progress { job: Job::Clustering, done: done / 2, total });
        triangle
    };
    let blocks = on_cores(rows.len().div_ceil(BLOCK), stop, block);
    if stop.is_set() { Err(Stopped) } else { Ok(blocks.into_iter().flatten().collect()) }
}

/// Clusters rows of length 1 by average linkage; two clusters merge while the mean cosine between their rows is at least `threshold`.
/// Returns each row's cluster, numbered in the order of their first rows.
///
/// Follows chains of nearest neighbours, which merges the same clusters as a search over all pairs for this linkage (Murtagh, 1983), in
/// O(n²). Progress counts the similarities as the first half.
///
/// # Errors
/// There are more than [`MOST`] rows, or `stop` was set.
pub fn agglomerate(
    rows: &[Vec<f32>],
    threshold: f64,
    on_progress: OnProgress<'_>,
    stop: &Stop,
) -> Result<Vec<usize>, ClusterError> {
    let n = rows.len();
    if n > MOST {
        return Err(ClusterError::TooMany(n));
    }
    let mut near = similarities(rows, on_progress, stop)?;
    let at = |near: &[Vec<f32>], i: usize, j: usize| f64::from(near[i.max(j)][i.min(j)]);
    let mut owner: Vec<usize> = (0..n).collect();
    let mut size = vec![1.0; n];
    // Clusters that may still merge. A cluster is named by one of its rows.
    let mut open: Vec<usize> = (0..n).collect();
    let mut chain: Vec<usize> = Vec::new();
    while let Some(first) = open.first() {
        if stop.is_set() {
            return Err(Stopped.into());
        }
        let top = *chain.last().unwrap_or(first);
        if chain.is_empty() {
            chain.push(top);
        }
        let before = chain.len().checked_sub(2).map(|place| chain[place]);
        // The cluster before in the chain wins ties, else the chain could run in a circle.
        let mut best = before.map(|other| (other, at(&near, top, other)));
        for other in open.iter().copied().filter(|other| *other != top) {
            let similarity = at(&near, top, other);
            if best.is_none_or(|(_, best)| similarity > best) {
                best = Some((other, similarity));
            }
        }
        match best.filter(|(_, similarity)| *similarity >= threshold) {
            // Merging others never brings a cluster nearer than the nearer of them was, so this one is final.
            None => {
                chain.pop();
                open.retain(|one| *one != top);
            }
            Some((other, _)) if Some(other) == before => {
                chain.truncate(chain.len() - 2);
                let (kept, gone) = (top.min(other), top.max(other));
                let (a, b) = (size[kept], size[gone]);
                open.retain(|one| *one != gone);
                for third in open.iter().copied().filter(|third| *third != kept) {
                    let mean = (a * at(&near, kept, third) + b * at(&near, gone, third)) / (a + b);
                    near[kept.max(third)][kept.min(third)] = mean as f32;
                }
                size[kept] = a + b;
                owner[gone] = kept;
            }
            Some((other, _)) => chain.push(other),
        }
        let done = n - open.len();
        if done.is_multiple_of(BLOCK) {
            on_progress(Progress { job: Job::Clustering, done: ((n + done) / 2) as u64, total: n as u64 });
        }
    }
    on_progress(Progress { job: Job::Clustering, done: n as u64, total: n as u64 });
    Ok(numbered(&owner))
}

/// Follows each row to the row that names its cluster, and numbers the clusters in the order of their first rows.
fn numbered(owner: &[usize]) -> Vec<usize> {
    let name = |mut row: usize| {
        while owner[row] != row {
            row = owner[row];
        }
        row
    };
    let names: Vec<usize> = (0..owner.len()).map(name).collect();
    let mut seen: Vec<Option<usize>> = vec![None; owner.len()];
    let mut next = 0;
    let number = |name: &usize| {
        *seen[*name].get_or_insert_with(|| {
            next += 1;
            next - 1
        })
    };
    names.iter().map(number).collect()
}

/// The member with the greatest mean similarity to all members, the first of equal ones; `None` without members.
pub fn central(rows: &[Vec<f32>], members: &[usize]) -> Option<usize> {
    let mut sum = vec![0.0; rows.first()?.len()];
    for member in members {
        sum.iter_mut().zip(&rows[*member]).for_each(|(sum, x)| *sum += x);
    }
    members
        .iter()
        .copied()
        .map(|member| (member, dot(&rows[member], &sum)))
        .reduce(|best, next| if next.1 > best.1 { next } else { best })
        .map(|(member, _)| member)
}

/// A key point, as a list is measured by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nugget {
    /// Whether a good answer must bring it; else it is okay to bring it.
    pub vital: bool,
    /// Whether the list brings it.
    pub brought: bool,
}

/// How many key points a list brings. A sentence belongs to one key point or to none, so nothing is supported in part, and the strict
/// forms of AutoNuggetizer's scores equal these.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NuggetRecall {
    /// The share of all key points.
    pub all: f64,
    /// The share of the vital ones; `None` if none is vital.
    pub vital: Option<f64>,
    /// (vital brought + ½ okay brought) / (vital + ½ okay).
    pub weighted: f64,
}

impl NuggetRecall {
    /// Measures a list; `None` without key points.
    pub fn of(nuggets: &[Nugget]) -> Option<Self> {
        let count = |which: &dyn Fn(&Nugget) -> bool| nuggets.iter().filter(|one| which(one)).count() as f64;
        let (vital, okay) = (count(&|one| one.vital), count(&|one| !one.vital));
        let (vital_brought, okay_brought) =
            (count(&|one| one.vital && one.brought), count(&|one| !one.vital && one.brought));
        (!nuggets.is_empty()).then(|| NuggetRecall {
            all: (vital_brought + okay_brought) / (vital + okay),
            vital: (vital > 0.0).then(|| vital_brought / vital),
            weighted: (vital_brought + 0.5 * okay_brought) / (vital + 0.5 * okay),
        })
    }
}

/// How well clusters agree with key points by hand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BCubed {
    /// Over all items, the mean share of an item's cluster that belongs with it.
    pub precision: f64,
    /// Over all items, the mean share of what belongs with an item that is in its cluster.
    pub recall: f64,
}

impl BCubed {
    /// Compares the cluster of every item with the key points that it matches, at least one each. Two items belong together if they match
    /// a key point in common. `None` without items.
    pub fn of(clusters: &[usize], matched: &[Vec<usize>]) -> Option<Self> {
        let n = clusters.len();
        let belong = |i: usize, j: usize| matched[i].iter().any(|point| matched[j].contains(point));
        let (mut precision, mut recall) = (0.0, 0.0);
        for i in 0..n {
            let (mut clustered, mut together, mut both) = (0.0, 0.0, 0.0);
            for j in 0..n {
                let (same, belong) = (clusters[i] == clusters[j], belong(i, j));
                clustered += f64::from(u8::from(same));
                together += f64::from(u8::from(belong));
                both += f64::from(u8::from(same && belong));
            }
            precision += both / clustered;
            recall += both / together;
        }
        (n > 0).then(|| BCubed { precision: precision / n as f64, recall: recall / n as f64 })
    }

    /// The harmonic mean of precision and recall.
    pub fn f1(self) -> f64 {
        let sum = self.precision + self.recall;
        if sum > 0.0 { 2.0 * self.precision * self.recall / sum } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::seeded::SplitMix64;

    fn unit(row: &[f32]) -> Vec<f32> {
        let length = row.iter().map(|x| x * x).sum::<f32>().sqrt();
        row.iter().map(|x| x / length).collect()
    }

    /// Rows at these angles in degrees: the cosine of two is that of the difference of their angles.
    fn at_angles(angles: &[f32]) -> Vec<Vec<f32>> {
        angles.iter().map(|angle| vec![angle.to_radians().cos(), angle.to_radians().sin()]).collect()
    }

    fn clusters(rows: &[Vec<f32>], threshold: f64) -> Vec<usize> {
        agglomerate(rows, threshold, &|_| (), &Stop::never()).unwrap()
    }

    /// 0°, 10°, 40°, 90°: cos 10° = .985 merges the first two. 40° is cos 40° = .766 and cos 30° = .866 from them, .816 on average; 90° is
    /// cos 50° = .643 from 40°, and (0 + .174)/2 = .087 from the pair. All three against 90°: (0 + .174 + .643)/3 = .272.
    #[test]
    fn clusters_merge_while_their_mean_cosine_reaches_the_threshold() {
        let rows = at_angles(&[0.0, 10.0, 40.0, 90.0]);
        assert_eq!(clusters(&rows, 0.99), [0, 1, 2, 3]);
        assert_eq!(clusters(&rows, 0.98), [0, 0, 1, 2]);
        assert_eq!(clusters(&rows, 0.82), [0, 0, 1, 2]);
        assert_eq!(clusters(&rows, 0.81), [0, 0, 0, 1]);
        assert_eq!(clusters(&rows, 0.28), [0, 0, 0, 1]);
        assert_eq!(clusters(&rows, 0.27), [0, 0, 0, 0]);
    }

    #[test]
    fn equal_sentences_one_sentence_and_none_are_clustered_too() {
        assert_eq!(clusters(&at_angles(&[5.0; 4]), 0.999), [0; 4]);
        assert_eq!(clusters(&at_angles(&[5.0]), 0.5), [0]);
        assert_eq!(clusters(&[], 0.5), [0; 0]);
    }

    /// Merges the most similar pair of clusters again and again, looking at all pairs of rows each time.
    fn slowly(rows: &[Vec<f32>], threshold: f64) -> Vec<usize> {
        let mut all: Vec<Vec<usize>> = (0..rows.len()).map(|row| vec![row]).collect();
        loop {
            let mut best: Option<(f64, usize, usize)> = None;
            for i in 0..all.len() {
                for j in i + 1..all.len() {
                    let pairs = all[i].iter().flat_map(|a| all[j].iter().map(move |b| (*a, *b)));
                    let sum: f64 = pairs.map(|(a, b)| f64::from(dot(&rows[a], &rows[b]))).sum();
                    let mean = sum / (all[i].len() * all[j].len()) as f64;
                    if mean >= threshold && best.is_none_or(|(best, ..)| mean > best) {
                        best = Some((mean, i, j));
                    }
                }
            }
            let Some((_, i, j)) = best else { break };
            let gone = all.remove(j);
            all[i].extend(gone);
        }
        let of = |row: usize| all.iter().position(|members| members.contains(&row)).unwrap();
        let owner: Vec<usize> = (0..rows.len()).map(|row| *all[of(row)].iter().min().unwrap()).collect();
        numbered(&owner)
    }

    #[test]
    fn chains_of_neighbours_find_the_clusters_of_a_search_over_all_pairs() {
        let mut draw = SplitMix64::new(7);
        for round in 0..12 {
            let rows: Vec<Vec<f32>> = (0..40)
                .map(|_| unit(&[0; 6].map(|_: i32| (draw.below(2_001) as f32 - 1_000.0) / 1_000.0)))
                .collect();
            let threshold = 0.1 + 0.07 * f64::from(round);
            assert_eq!(clusters(&rows, threshold), slowly(&rows, threshold), "{round}");
        }
    }

    /// Labels by scikit-learn 1.9.1: `AgglomerativeClustering(metric="cosine", linkage="average", distance_threshold=1 - t)`.
    #[test]
    fn clusters_are_those_of_scikit_learn() {
        let rows: [[f32; 4]; 14] = [
            [4.0, -1.0, 4.0, 4.0],
            [-4.0, 1.0, -1.0, 1.0],
            [3.0, 2.0, -4.0, 0.0],
            [3.0, 4.0, -3.0, 2.0],
            [-2.0, -2.0, -3.0, -1.0],
            [1.0, 4.0, -3.0, 4.0],
            [3.0, 4.0, -3.0, -4.0],
            [1.0, 0.0, -3.0, 1.0],
            [0.0, 3.0, 2.0, -4.0],
            [-4.0, -2.0, 0.0, 1.0],
            [4.0, 4.0, 3.0, 1.0],
            [-3.0, -3.0, -3.0, 1.0],
            [1.0, 3.0, 0.0, -1.0],
            [-4.0, -4.0, -4.0, -4.0],
        ];
        let rows: Vec<Vec<f32>> = rows.iter().map(|row| unit(row)).collect();
        assert_eq!(clusters(&rows, 0.3), [0, 1, 2, 2, 1, 2, 3, 2, 3, 1, 0, 1, 3, 1]);
        assert_eq!(clusters(&rows, 0.5), [0, 1, 2, 2, 1, 2, 3, 2, 3, 1, 0, 1, 3, 1]);
        assert_eq!(clusters(&rows, 0.7), [0, 1, 2, 2, 3, 2, 4, 2, 5, 1, 6, 3, 4, 3]);
    }

    #[test]
    fn work_that_is_stopped_or_too_large_is_an_error_and_progress_ends_at_the_whole() {
        let stop = Stop::new();
        let last = parking_lot::Mutex::new(0);
        let rows = at_angles(&[0.0, 10.0, 90.0]);
        agglomerate(&rows, 0.9, &|progress| *last.lock() = progress.done, &stop).unwrap();
        assert_eq!(*last.lock(), 3);
        stop.set();
        assert_eq!(agglomerate(&rows, 0.9, &|_| (), &stop), Err(ClusterError::Stopped(Stopped)));
        let many = vec![Vec::new(); MOST + 1];
        let error = agglomerate(&many, 0.9, &|_| (), &Stop::never()).unwrap_err().to_string();
        assert!(error.contains("15001 sentences") && error.contains("lower k"), "{error}");
    }

    /// 0°, 20°, 50°: the sums of cosines are 1 + .940 + .643 = 2.583, .940 + 1 + .866 = 2.806 and .643 + .866 + 1 = 2.509.
    #[test]
    fn the_central_sentence_is_the_nearest_to_all_others() {
        let rows = at_angles(&[0.0, 20.0, 50.0, 180.0]);
        assert_eq!(central(&rows, &[0, 1, 2]), Some(1));
        assert_eq!(central(&rows, &[3]), Some(3));
        assert_eq!(central(&rows, &[]), None);
    }

    /// Two of three vital key points and one of four okay ones: 3/7, 2/3, and (2 + ½)/(3 + 2) = ½.
    #[test]
    fn an_okay_key_point_weighs_half_a_vital_one() {
        let nugget = |vital, brought| Nugget { vital, brought };
        let all = [
            nugget(true, true),
            nugget(true, true),
            nugget(true, false),
            nugget(false, true),
            nugget(false, false),
            nugget(false, false),
            nugget(false, false),
        ];
        let recall = NuggetRecall::of(&all).unwrap();
        assert!((recall.all - 3.0 / 7.0).abs() < 1e-12);
        assert_eq!(recall.vital, Some(2.0 / 3.0));
        assert_eq!(recall.weighted, 0.5);
        assert_eq!(NuggetRecall::of(&all[3..]).unwrap().vital, None);
        assert_eq!(NuggetRecall::of(&[]), None);
    }

    /// The example of Bagga and Baldwin (1998): the truth is {1…5}, {6, 7}, {8…C}. The first answer joins {6, 7} and {8…C}: precision
    /// (5·1 + 2·2/7 + 5·5/7)/12 = .762. The second joins {1…5} and {8…C}: (5·½ + 2·1 + 5·½)/12 = .583. Recall is 1.
    #[test]
    fn b_cubed_is_that_of_its_authors_example() {
        let truth: Vec<Vec<usize>> =
            [[0; 5].as_slice(), &[1; 2], &[2; 5]].concat().iter().map(|t| vec![*t]).collect();
        let first = BCubed::of(&[[0; 5].as_slice(), &[1; 7]].concat(), &truth).unwrap();
        assert!((first.precision - 0.7619).abs() < 1e-4 && first.recall == 1.0, "{first:?}");
        let second = BCubed::of(&[[0; 5].as_slice(), &[1; 2], &[0; 5]].concat(), &truth).unwrap();
        assert!((second.precision - 7.0 / 12.0).abs() < 1e-12 && second.recall == 1.0, "{second:?}");
        assert!((second.f1() - 14.0 / 19.0).abs() < 1e-12);
        let alone = BCubed::of(&(0..12).collect::<Vec<_>>(), &truth).unwrap();
        assert_eq!(alone.precision, 1.0);
        // Of five, of two and of five again: (1 + 1 + 1)/12.
        assert!((alone.recall - 0.25).abs() < 1e-12);
    }

    #[test]
    fn an_item_of_two_key_points_belongs_with_the_items_of_both() {
        let matched = [vec![0], vec![0, 1], vec![1]];
        let one = BCubed::of(&[0, 0, 0], &matched).unwrap();
        // The first and the last do not belong together: (2/3 + 1 + 2/3)/3.
        assert!((one.precision - 7.0 / 9.0).abs() < 1e-12 && one.recall == 1.0, "{one:?}");
    }
}
