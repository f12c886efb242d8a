//! Dense retrieval: the dot product of vectors, over every passage, exactly; or over the lists of passages that are nearest.
//!
//! In large corpora the codes come first: a quarter of every code, then more of those in reach. They bound each product, and
//! every passage whose upper bound reaches the depth-th best lower bound is scored by its vector. No other can be among the best, so
//! the list equals, to the last bit, the one that scoring all vectors gives.

use std::sync::Arc;

use super::{Bar, Hit, RetrieveError, Retriever, top};
use crate::corpus::{Corpus, PassageIx};
use crate::encode::{Codes, Direction, Encoder, Role, Vectors};
use crate::vector::dot;
use crate::work::{Stop, Stopped, on_cores};

/// The number of passages scored between two checks of the stop.
const BATCH: usize = 8_192;
/// The number of passages rescored between two checks of the stop.
const AGAIN: usize = 256;

/// Search by vectors, exact unless it is [`probing`](DenseRetriever::probing).
#[derive(Clone)]
pub struct DenseRetriever {
    corpus: Arc<Corpus>,
    encoder: Arc<dyn Encoder>,
    vectors: Arc<Vectors>,
    /// How many lists are searched.
    probes: usize,
}

impl DenseRetriever {
    /// Ranks `corpus` by its `vectors`, computed by `encoder`.
    pub fn new(corpus: Arc<Corpus>, encoder: Arc<dyn Encoder>, vectors: Arc<Vectors>) -> Self {
        DenseRetriever { corpus, encoder, vectors, probes: usize::MAX }
    }

    /// Searches only the lists of passages whose means are nearest to the query, as many as `probes` (`nprobe` of an inverted file; Jégou et
    /// al., 2011): faster in large corpora, and no longer exact. Small corpora have no lists; [`best`](Self::best) reads every vector all the same.
    #[must_use]
    pub fn probing(self, probes: usize) -> Self {
        DenseRetriever { probes, ..self }
    }

    /// Ranks the corpus by the dot product of each passage's vector with the query's.
    ///
    /// # Errors
    /// `stop` was set, or the vectors cannot be read.
    pub fn nearest(&self, query: &[f32], depth: usize, stop: &Stop) -> Result<Vec<Hit>, RetrieveError> {
        self.best_along((query, 0.0), depth, stop, |passage| dot(query, passage))
    }

    /// Ranks the corpus by a score that equals the dot product with a direction plus a constant, with an error of at most `slack` for a vector
    /// of length 1.
    ///
    /// # Errors
    /// `stop` was set, or the vectors cannot be read.
    pub fn best_along(
        &self,
        (direction, slack): (&[f32], f32),
        depth: usize,
        stop: &Stop,
        score: impl Fn(&[f32]) -> f32 + Sync,
    ) -> Result<Vec<Hit>, RetrieveError> {
        let Some(codes) = self.vectors.codes() else { return self.best(depth, stop, score) };
        let along = codes.direction(direction, slack);
        let found = match along.and_then(|along| Ok((along, codes.nearest(direction, self.probes)?))) {
            Ok((along, lists)) => candidates(codes, &along, &lists, depth, stop)?,
            Err(error) => Err(error),
        };
        let rows = match found {
            Ok(rows) => rows,
            Err(error) => {
                // The vectors give the same list; it only takes longer.
                tracing::warn!("{error}");
                return self.best(depth, stop, score);
            }
        };
        let shares: Vec<&[u32]> = rows.chunks(AGAIN).collect();
        let scored = on_cores(shares.len(), stop, |i| {
            let score = |row: &u32| Ok((PassageIx(*row), score(&self.vectors.row(PassageIx(*row))?)));
            shares[i].iter().map(score).collect::<std::io::Result<Vec<_>>>()
        });
        self.top_of(scored, shares.len(), depth)
    }

    /// Ranks the corpus by any score of each passage's vector. All vectors are read.
    ///
    /// # Errors
    /// `stop` was set, or the vectors cannot be read.
    pub fn best(
        &self,
        depth: usize,
        stop: &Stop,
        score: impl Fn(&[f32]) -> f32 + Sync,
    ) -> Result<Vec<Hit>, RetrieveError> {
        let (passages, dimensions) = (self.corpus.len(), self.vectors.dimensions());
        let batches = passages.div_ceil(BATCH);
        let scored = on_cores(batches, stop, |i| {
            let start = i * BATCH;
            let rows = self.vectors.rows(start..(start + BATCH).min(passages))?;
            let scores = rows.chunks_exact(dimensions).map(&score);
            Ok((start as u32..).map(PassageIx).zip(scores).collect::<Vec<_>>())
        });
        self.top_of(scored, batches, depth)
    }

    /// The best of all batches; an error if some did not run.
    fn top_of(
        &self,
        scored: Vec<std::io::Result<Vec<(PassageIx, f32)>>>,
        batches: usize,
        depth: usize,
    ) -> Result<Vec<Hit>, RetrieveError> {
        if scored.len() < batches {
            return Err(Stopped.into());
        }
        let scored =
            scored.into_iter().collect::<std::io::Result<Vec<_>>>().map_err(RetrieveError::Vectors)?;
        Ok(top(&self.corpus, depth, scored.into_iter().flatten()))
    }
}

/// The rows of these lists that can be among the `depth` best; an error of the codes if they are damaged.
fn candidates(
    codes: &Codes,
    along: &Direction,
    lists: &[usize],
    depth: usize,
    stop: &Stop,
) -> Result<std::io::Result<Vec<u32>>, Stopped> {
    if depth == 0 {
        return Ok(Ok(Vec::new()));
    }
    let bar = Bar::new(depth, f32::NEG_INFINITY);
    let found = on_cores(lists.len(), stop, |i| {
        let rows = codes.outlines(along, lists[i], bar.get())?;
        let mut rows = codes.narrow(along, lists[i], rows, || bar.get())?;
        let least = bar.count(rows.iter().map(|row| row.low));
        rows.retain(|row| row.reaches(least));
        Ok::<_, std::io::Error>(rows)
    });
    if found.len() < lists.len() {
        return Err(Stopped);
    }
    let least = bar.get();
    Ok(found.into_iter().collect::<std::io::Result<Vec<_>>>().map(|found| {
        let mut rows: Vec<u32> =
            found.iter().flatten().filter(|row| row.reaches(least)).map(|row| row.row).collect();
        rows.sort_unstable();
        rows
    }))
}

impl Retriever for DenseRetriever {
    fn search(&self, query: &str, depth: usize, stop: &Stop) -> Result<Vec<Hit>, RetrieveError> {
        self.nearest(&self.encoder.encode(query, Role::Query)?, depth, stop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::{EncodeError, ModelError};

    struct NoEncoder;

    impl Encoder for NoEncoder {
        fn key(&self) -> &str {
            "none"
        }
        fn dimensions(&self) -> usize {
            16
        }
        fn encode(&self, _: &str, _: Role) -> Result<Vec<f32>, EncodeError> {
            Err(ModelError::NotOnnx.into())
        }
    }

    /// Rows of unit length around a few centres, so many are close and some are equal.
    fn rows(count: usize) -> Vec<Vec<f32>> {
        let mut seed = 5u32;
        let mut next = || {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 8) as f32 / (1 << 23) as f32 - 1.0
        };
        let centres: Vec<Vec<f32>> = (0..5).map(|_| (0..16).map(|_| next()).collect()).collect();
        let mut rows: Vec<Vec<f32>> = (0..count)
            .map(|i| {
                let spread = if i < 30 { 0.0 } else { [0.001, 0.01, 0.1, 1.0][i % 4] };
                let row: Vec<f32> = centres[i % 5].iter().map(|x| x + spread * next()).collect();
                let length = dot(&row, &row).sqrt();
                row.iter().map(|x| x / length).collect()
            })
            .collect();
        rows[count / 2] = vec![f32::NAN; 16];
        rows
    }

    /// The same corpus with rows in memory, and with rows on disk and codes.
    fn both(rows: &[Vec<f32>]) -> (tempfile::TempDir, [DenseRetriever; 2]) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("v.f32");
        let (dimensions, bytes) = (rows[0].len(), rows.iter().flatten().flat_map(|x| x.to_le_bytes()));
        let bytes: Vec<u8> = bytes.collect();
        std::fs::write(&path, &bytes).unwrap();
        crate::storage::checked::sum_file(&path, &path).unwrap();
        let corpus = Arc::new(Corpus::of_texts("t", &vec![String::new(); rows.len()]).unwrap());
        let both =
            [Vectors::from_bytes(&bytes, dimensions), Vectors::open_holding(0, &path, dimensions).unwrap()];
        let both =
            both.map(|rows| DenseRetriever::new(Arc::clone(&corpus), Arc::new(NoEncoder), Arc::new(rows)));
        (folder, both)
    }

    #[test]
    fn damaged_codes_are_set_aside_and_the_vectors_give_the_same_list() {
        let rows = rows(3_000);
        let (folder, [plain, coded]) = both(&rows);
        let flip = |name: &str| {
            let path = folder.path().join(name);
            let file = std::fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
            let mut bytes = std::fs::read(folder.path().join(name)).unwrap();
            bytes.iter_mut().for_each(|byte| *byte ^= 0x40);
            std::io::Write::write_all(&mut &file, &bytes).unwrap();
        };
        flip("v.i8");
        let found = coded.nearest(&rows[2], 20, &Stop::never()).unwrap();
        assert_eq!(found, plain.nearest(&rows[2], 20, &Stop::never()).unwrap());
        assert!(folder.path().join("v.i8.damaged").exists());
    }

    #[test]
    fn a_search_by_codes_equals_scoring_every_vector_to_the_last_bit() {
        let rows = rows(BATCH + 77);
        let (_folder, [plain, coded]) = both(&rows);
        for query in rows.iter().take(4).chain([&vec![0.0; 16], &vec![f32::NAN; 16]]) {
            for depth in [0, 1, 100] {
                let found = coded.nearest(query, depth, &Stop::never()).unwrap();
                assert_eq!(found, plain.nearest(query, depth, &Stop::never()).unwrap(), "{depth}");
            }
        }
        let few = &rows[..300];
        let (_folder, [plain, coded]) = both(few);
        for depth in [299, 300, 1_000] {
            let found = coded.nearest(&few[1], depth, &Stop::never()).unwrap();
            assert_eq!(found, plain.nearest(&few[1], depth, &Stop::never()).unwrap(), "{depth}");
        }
    }

    #[test]
    fn queries_of_any_length_find_the_list_of_every_vector_in_any_number_of_dimensions() {
        // Lengths at which products of integers, or their bounds, leave the range of f32.
        let lengths = [1.0, 1e-44, 1e-38, 1e-20, 1e20, 3e36, 2e38];
        for dimensions in [1, 2, 3, 5, 7, 11] {
            let mut rows: Vec<Vec<f32>> =
                rows(500).iter().map(|row| row[..dimensions].iter().map(|x| x * 100.0).collect()).collect();
            rows.push(vec![f32::INFINITY; dimensions]);
            rows.push(vec![1e30; dimensions]);
            let (_folder, [plain, coded]) = both(&rows);
            for length in lengths {
                let query: Vec<f32> = rows[3].iter().map(|x| x / 100.0 * length).collect();
                let expected = plain.nearest(&query, 7, &Stop::never()).unwrap();
                assert_eq!(coded.nearest(&query, 7, &Stop::never()).unwrap(), expected, "{length}");
            }
        }
        let mut rows = vec![vec![-1.0, 0.0]; 200];
        rows.extend([vec![-0.01, 1.0], vec![0.5, 0.0]]);
        let (_folder, [_, coded]) = both(&rows);
        let found = coded.nearest(&[3e36, 2e36], 1, &Stop::never()).unwrap();
        assert_eq!(found[0].passage, PassageIx(200));
    }

    #[test]
    fn the_first_pass_leaves_few_rows_for_the_second() {
        let rows = rows(BATCH + 77);
        let (_folder, [_, coded]) = both(&rows);
        let codes = coded.vectors.codes().unwrap();
        let along = codes.direction(&rows[2], 0.0).unwrap();
        let tenth = coded.nearest(&rows[2], 10, &Stop::never()).unwrap()[9].score;
        let left = |list| codes.outlines(&along, list, tenth).unwrap().len();
        let left: usize = (0..codes.lists()).map(left).sum();
        assert!(left < rows.len() / 2, "{left} of {}", rows.len());
    }

    #[test]
    fn a_search_of_some_lists_ranks_the_passages_of_the_nearest_ones() {
        let rows = rows(BATCH + 77);
        let (_folder, [plain, coded]) = both(&rows);
        let codes = coded.vectors.codes().unwrap();
        assert_eq!(codes.lists(), 3);
        for query in rows.iter().take(4) {
            let all = plain.nearest(query, rows.len(), &Stop::never()).unwrap();
            let along = codes.direction(query, 0.0).unwrap();
            for probes in 1..=4 {
                let near = codes.nearest(query, probes).unwrap();
                let held =
                    near.iter().flat_map(|list| codes.outlines(&along, *list, f32::NEG_INFINITY).unwrap());
                let held: std::collections::HashSet<u32> = held.map(|row| row.row).collect();
                let expected = all.iter().filter(|hit| held.contains(&hit.passage.0)).take(50);
                let expected: Vec<Hit> = expected.copied().collect();
                let found = coded.clone().probing(probes).nearest(query, 50, &Stop::never()).unwrap();
                assert_eq!((found, near.len()), (expected, probes.min(3)));
            }
        }
    }

    #[test]
    fn a_stopped_search_returns_an_error() {
        let (_folder, both) = both(&rows(BATCH + 3));
        let now = Arc::new(std::sync::atomic::AtomicU64::new(1));
        for retriever in both {
            let stopped = retriever.nearest(&[0.1; 16], 5, &Stop::when_past(&now, 0));
            assert!(matches!(stopped, Err(RetrieveError::Stopped(_))));
        }
    }

    #[test]
    fn rows_in_memory_and_rows_on_disk_are_equal() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("v.f32");
        let bytes: Vec<u8> = (0..12).flat_map(|i| (i as f32).to_le_bytes()).collect();
        std::fs::write(&path, &bytes).unwrap();
        crate::storage::checked::sum_file(&path, &path).unwrap();
        for vectors in
            [Vectors::open(&path, 3), Vectors::open_holding(0, &path, 3), Ok(Vectors::from_bytes(&bytes, 3))]
        {
            let vectors = vectors.unwrap();
            assert_eq!((vectors.len(), vectors.dimensions()), (4, 3));
            assert_eq!(vectors.row(PassageIx(2)).unwrap().as_ref(), [6.0, 7.0, 8.0]);
            assert_eq!(vectors.rows(1..3).unwrap().as_ref(), [3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
            assert!(vectors.row(PassageIx(4)).is_err());
        }
    }

    #[test]
    fn changed_rows_are_an_error_in_memory_on_disk_and_of_another_corpus() {
        let folder = tempfile::tempdir().unwrap();
        let bytes: Vec<u8> = (0..60_000).flat_map(|i| (i as f32).to_le_bytes()).collect();
        let path = |corpus: &str| folder.path().join(corpus).join("v.f32");
        for corpus in ["a", "b"] {
            std::fs::create_dir(folder.path().join(corpus)).unwrap();
            std::fs::write(path(corpus), &bytes).unwrap();
            crate::storage::checked::sum_file(&path(corpus), &path(corpus)).unwrap();
        }
        let vectors = Vectors::open_holding(0, &path("a"), 10).unwrap();
        assert!(vectors.row(PassageIx(5_999)).is_ok());
        // The vectors of another corpus, with their checksums.
        let sums = crate::storage::checked::sums_path;
        std::fs::copy(sums(&path("b")), sums(&path("a"))).unwrap();
        assert!(Vectors::open(&path("a"), 10).is_err());
        crate::storage::checked::sum_file(&path("a"), &path("a")).unwrap();
        let changes: [fn(&mut Vec<u8>); 4] = [
            |bytes| bytes[100_003] ^= 0x40,
            |bytes| bytes.chunks_exact_mut(4).for_each(|x| x[3] ^= 0x80),
            |bytes| bytes.rotate_left(40),
            |bytes| bytes.chunks_exact_mut(4).for_each(|x| x.copy_from_slice(&f32::NAN.to_le_bytes())),
        ];
        for change in changes {
            let mut changed = bytes.clone();
            change(&mut changed);
            std::fs::write(path("a"), &changed).unwrap();
            let error = Vectors::open(&path("a"), 10).err().unwrap();
            assert!(crate::storage::Damaged::of(&error).is_some(), "{error}");
        }
    }
}
