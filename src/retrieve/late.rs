//! The token index of a late-interaction lane: the vectors of all tokens of a corpus, each as the nearest of a few centroids and a residual
//! of 4 bits a number (ColBERTv2, Santhanam et al., NAACL 2022), searched through the centroids (PLAID, Santhanam et al., CIKM 2022).
//!
//! A search compares the query's tokens with the centroids. Passages with a token at one of the nearest [`PROBES`] centroids of any query
//! token are scored by the centroids of their tokens alone, and the best of these by their tokens' stored vectors. So a list may miss some:
//! [`TokenIndex::recall`] says how many, measured when the index was made.
//!
//! ```text
//! magic, hash of the model's key                          8 + 32 bytes
//! passages, tokens, numbers of a vector, centroids        u64 each
//! recall, then 15 cuts and 16 values of a residual        f32 each
//! [centroids × n]  centroids                              f32
//! [passages + 1]   first token                            u64
//! [centroids + 1]  first entry in the lists               u64
//! [entries]        passages with a token at the centroid  u32
//! [tokens]         centroid                               u16
//! [tokens]         residual, two numbers a byte           ⌈n/2⌉ bytes
//! ```

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::Path;

use memmap2::Mmap;

use super::impact::long;
use super::{BATCH, Hit, RetrieveError, scored};
use crate::corpus::{Corpus, PassageIx};
use crate::encode::ModelError;
use crate::encode::sparse::each_item;
use crate::storage::checked::{Damaged, Summed, open_sum, sum_file, sums_path};
use crate::storage::{move_file, replace};
use crate::vector::{dot, floats, max_sim, nearest, unit};
use crate::work::{Stop, Stopped, on_cores};

/// The centroids nearest to a query token whose passages are candidates.
pub const PROBES: usize = 4;
/// The fewest candidates that are scored by their tokens' vectors.
const FEWEST: usize = 1_024;
/// The steps of a residual.
const STEPS: usize = 16;
/// Rounds of k-means.
const ROUNDS: usize = 5;
const MAGIC: &[u8; 8] = b"PLXTOK01";
/// The bytes before the cuts.
const HEAD: usize = 8 + 32 + 4 * 8 + 4;

/// Centroids, and the values that stand for a residual.
pub struct Codebook {
    dimensions: usize,
    centroids: Vec<f32>,
    /// A residual above the i-th cut has a step greater than i.
    cuts: [f32; STEPS - 1],
    values: [f32; STEPS],
}

impl Codebook {
    /// The number of centroids for so many tokens: a power of two near twice the square root.
    pub fn centroids_for(tokens: usize) -> usize {
        (2.0 * (tokens as f64).sqrt()).max(1.0).log2().round().exp2().clamp(1.0, 8_192.0) as usize
    }

    /// Learns at most `count` centroids from vectors of unit length by spherical k-means, and the values of residuals from their quantiles. The
    /// same vectors give the same codebook.
    ///
    /// # Errors
    /// There are no vectors, or `stop` was set.
    pub fn train(sample: &[Vec<f32>], count: usize, stop: &Stop) -> Result<Self, RetrieveError> {
        let dimensions = sample.first().map_or(0, Vec::len);
        if dimensions == 0 {
            return Err(RetrieveError::Unfit("no passage has a word, so there is nothing to search".into()));
        }
        let count = count.clamp(1, sample.len());
        let every = |i: usize| &sample[i * sample.len() / count];
        let mut centroids: Vec<f32> = (0..count).flat_map(every).copied().collect();
        let shares: Vec<&[Vec<f32>]> = sample.chunks(BATCH).collect();
        for _ in 0..ROUNDS {
            let nearest = |i: usize| shares[i].iter().map(|own| nearest(&centroids, own)).collect::<Vec<_>>();
            let places: Vec<usize> = on_cores(shares.len(), stop, nearest).concat();
            if places.len() < sample.len() {
                return Err(Stopped.into());
            }
            let mut sums = vec![0f32; centroids.len()];
            for (own, place) in sample.iter().zip(places) {
                let sum = &mut sums[place * dimensions..(place + 1) * dimensions];
                sum.iter_mut().zip(own).for_each(|(sum, x)| *sum += x);
            }
            let sums = sums.chunks_exact_mut(dimensions);
            for (centroid, sum) in centroids.chunks_exact_mut(dimensions).zip(sums) {
                // A centroid that no vector is nearest to stays where it is.
                if unit(sum) {
                    centroid.copy_from_slice(sum);
                }
            }
        }
        let mut residuals: Vec<f32> = sample
            .iter()
            .step_by(sample.len().div_ceil(4_096))
            .flat_map(|own| {
                let at = nearest(&centroids, own) * dimensions;
                own.iter().zip(&centroids[at..]).map(|(x, c)| x - c).collect::<Vec<_>>()
            })
            .collect();
        residuals.sort_unstable_by(f32::total_cmp);
        let quantile = |share: f32| residuals[((residuals.len() - 1) as f32 * share).round() as usize];
        let cuts = std::array::from_fn(|i| quantile((i + 1) as f32 / STEPS as f32));
        let values = std::array::from_fn(|i| quantile((i as f32 + 0.5) / STEPS as f32));
        Ok(Codebook { dimensions, centroids, cuts, values })
    }

    /// The length of a stored token.
    pub fn bytes(&self) -> usize {
        2 + self.dimensions.div_ceil(2)
    }

    /// The stored form of a passage's tokens: their number, then for each its centroid and its residual.
    ///
    /// # Errors
    /// A vector is not as long as those of the codebook.
    pub fn encode(&self, tokens: &[Vec<f32>]) -> Result<Vec<u8>, ModelError> {
        let mut out = (tokens.len() as u32).to_le_bytes().to_vec();
        for own in tokens {
            if own.len() != self.dimensions {
                let shape = |n: usize| format!("{n} numbers of a token");
                return Err(ModelError::Shape { expected: shape(self.dimensions), found: shape(own.len()) });
            }
            let place = nearest(&self.centroids, own);
            out.extend((place as u16).to_le_bytes());
            let centroid = &self.centroids[place * self.dimensions..];
            let step = |i: usize| self.cuts.partition_point(|cut| *cut < own[i] - centroid[i]) as u8;
            let pair = |i: usize| step(i) | if i + 1 < own.len() { step(i + 1) << 4 } else { 0 };
            out.extend((0..own.len()).step_by(2).map(pair));
        }
        Ok(out)
    }

    /// The vector of a token from its centroid and its residual.
    fn decode(&self, place: usize, residual: &[u8]) -> Vec<f32> {
        let mut vector = self.centroids[place * self.dimensions..][..self.dimensions].to_vec();
        for (i, x) in vector.iter_mut().enumerate() {
            *x += self.values[usize::from(residual[i / 2] >> (4 * (i % 2)) & 15)];
        }
        unit(&mut vector);
        vector
    }

    fn numbers(&self) -> Vec<u8> {
        let numbers = [&self.cuts[..], &self.values, &self.centroids].concat();
        numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
    }

    fn of(dimensions: usize, numbers: &[u8]) -> Option<Self> {
        let numbers = floats(numbers);
        let (cuts, rest) = numbers.split_first_chunk()?;
        let (values, centroids) = rest.split_first_chunk()?;
        Some(Codebook { dimensions, cuts: *cuts, values: *values, centroids: centroids.to_vec() })
    }

    /// Writes the codebook as a file of its own, for an interrupted call to go on with.
    ///
    /// # Errors
    /// The disk failed.
    pub fn write(&self, place: &Path) -> io::Result<()> {
        let mut bytes = [(self.dimensions as u64).to_le_bytes().to_vec(), self.numbers()].concat();
        let sum = blake3::hash(&bytes);
        bytes.extend(sum.as_bytes());
        replace(place, &bytes)
    }

    /// Reads what [`Codebook::write`] wrote; `None` if there is none or it is damaged.
    pub fn read(place: &Path) -> Option<Self> {
        let bytes = fs::read(place).ok()?;
        let (bytes, sum) = bytes.split_last_chunk::<32>()?;
        let whole = blake3::hash(bytes).as_bytes() == sum;
        let (dimensions, numbers) = bytes.split_first_chunk::<8>().filter(|_| whole)?;
        Self::of(u64::from_le_bytes(*dimensions) as usize, numbers)
    }
}

/// The token index of one corpus by one model.
pub struct TokenIndex {
    map: Mmap,
    sums: Summed,
    passages: usize,
    book: Codebook,
    places: Places,
}

/// Where the sections begin.
struct Places {
    firsts: usize,
    lists: usize,
    entries: usize,
    nearest: usize,
    residuals: usize,
    end: usize,
}

impl Places {
    fn new(passages: usize, tokens: usize, dimensions: usize, centroids: usize, entries: usize) -> Self {
        let firsts = HEAD + 4 * (2 * STEPS - 1 + centroids * dimensions);
        let lists = firsts + 8 * (passages + 1);
        let at = lists + 8 * (centroids + 1);
        let nearest = at + 4 * entries;
        let residuals = nearest + 2 * tokens;
        Places {
            firsts,
            lists,
            entries: at,
            nearest,
            residuals,
            end: residuals + tokens * dimensions.div_ceil(2),
        }
    }
}

fn failed(error: io::Error) -> RetrieveError {
    match Damaged::of(&error) {
        Some(damaged) => RetrieveError::Damaged(damaged.clone()),
        None => RetrieveError::Tokens(error.to_string()),
    }
}

impl TokenIndex {
    /// Builds the index of `passages` passages from their stored tokens, and moves it to `place` with its checksums. `trial` holds queries on
    /// which the recall of the first ten is measured.
    ///
    /// # Errors
    /// The tokens cannot be read or are of other passages, the disk failed, or `stop` was set.
    pub fn build(
        (tokens, book): (&Path, &Codebook),
        (key, corpus): (&str, &Corpus),
        trial: &[Vec<Vec<f32>>],
        place: &Path,
        stop: &Stop,
    ) -> Result<(), RetrieveError> {
        let building = place.with_extension("tokens.building");
        let remove = |error: io::Error| {
            let _ = fs::remove_file(&building);
            RetrieveError::Tokens(format!("{error}; make room or name another folder with --data-dir"))
        };
        write(tokens, book, (key, corpus.len()), &building).map_err(remove)?;
        sum_file(&building, &building).map_err(remove)?;
        let index = Self::open(&building, key, corpus.len()).map_err(remove)?;
        let recall = index.measured(corpus, trial, stop)?;
        drop(index);
        let record = || -> io::Result<()> {
            let mut file = File::options().write(true).open(&building)?;
            file.seek(SeekFrom::Start(HEAD as u64 - 4))?;
            file.write_all(&recall.to_le_bytes())?;
            file.sync_all()?;
            fs::remove_file(sums_path(&building))?;
            // First, since an index without checksums would pass for a damaged one.
            sum_file(&building, place)?;
            move_file(&building, place)
        };
        record().map_err(remove)
    }

    /// Opens the index of a corpus of `passages` passages by the model of this key.
    ///
    /// # Errors
    /// It cannot be read. [`Damaged`] if it is not as it was written, or was made of another model or corpus.
    pub fn open(place: &Path, key: &str, passages: usize) -> io::Result<Self> {
        let sums = open_sum(place)?;
        let damaged = |what: &str| io::Error::from(Damaged::new(place, what));
        // SAFETY: a finished index is never rewritten, only replaced, and its checksums are compared as it is read.
        let map = unsafe { Mmap::map(&File::open(place)?)? };
        if map.len() < HEAD || &map[..8] != MAGIC {
            return Err(damaged("it is no token index"));
        }
        sums.check_bytes(0..HEAD as u64, &map)?;
        if map[8..40] != *blake3::hash(key.as_bytes()).as_bytes() {
            return Err(damaged("it was made by another model"));
        }
        let [own, tokens, dimensions, centroids] = [40, 48, 56, 64].map(|at| long(&map, at) as usize);
        if own != passages {
            return Err(damaged(&format!("{own} passages of {passages}")));
        }
        let before = Places::new(passages, tokens, dimensions, centroids, 0);
        sums.check_bytes(0..before.entries as u64, &map)?;
        let entries = long(&map, before.entries - 8) as usize;
        let places = Places::new(passages, tokens, dimensions, centroids, entries);
        if places.end != map.len() {
            return Err(damaged("its parts do not add up to its length"));
        }
        let book = Codebook::of(dimensions, &map[HEAD..places.firsts]);
        let book =
            book.filter(|_| dimensions > 0 && centroids > 0).ok_or_else(|| damaged("it has no centroids"))?;
        Ok(TokenIndex { map, sums, passages, book, places })
    }

    /// The share of the first ten passages by all stored vectors that a search finds, measured on trial queries when the index at `place` was
    /// made; `None` if there is none.
    pub fn recall(place: &Path) -> Option<f32> {
        let mut head = [0; HEAD];
        File::open(place).ok()?.read_exact(&mut head).ok()?;
        (&head[..8] == MAGIC).then(|| f32::from_le_bytes([head[72], head[73], head[74], head[75]]))
    }

    fn part(&self, range: Range<usize>) -> Result<&[u8], RetrieveError> {
        self.sums.check_bytes(range.start as u64..range.end as u64, &self.map).map_err(failed)?;
        let short =
            || RetrieveError::Damaged(Damaged::new(self.sums.path(), "a passage lies beyond its end"));
        self.map.get(range).ok_or_else(short)
    }

    /// The tokens of a passage.
    fn tokens(&self, passage: usize) -> Range<usize> {
        let first = |passage: usize| long(&self.map, self.places.firsts + 8 * passage) as usize;
        first(passage)..first(passage + 1)
    }

    /// The nearest centroid of each token.
    fn places_of(&self, tokens: &Range<usize>) -> Result<impl Iterator<Item = usize>, RetrieveError> {
        let at = |token: usize| self.places.nearest + 2 * token;
        let bytes = self.part(at(tokens.start)..at(tokens.end))?;
        let most = self.book.centroids.len() / self.book.dimensions;
        Ok(bytes
            .as_chunks::<2>()
            .0
            .iter()
            .map(move |two| usize::from(u16::from_le_bytes(*two)).min(most - 1)))
    }

    /// The vectors of a passage's tokens, as they are stored.
    ///
    /// # Errors
    /// The index cannot be read.
    pub fn passage(&self, PassageIx(passage): PassageIx) -> Result<Vec<Vec<f32>>, RetrieveError> {
        let (tokens, size) = (self.tokens(passage as usize), self.book.bytes() - 2);
        let at = |token: usize| self.places.residuals + size * token;
        let residuals = self.part(at(tokens.start)..at(tokens.end))?.chunks_exact(size);
        Ok(self
            .places_of(&tokens)?
            .zip(residuals)
            .map(|(at, residual)| self.book.decode(at, residual))
            .collect())
    }

    /// The vectors of any text's tokens, rounded as those of passages are.
    ///
    /// # Errors
    /// They are not as long as those of the index.
    pub fn rounded(&self, tokens: &[Vec<f32>]) -> Result<Vec<Vec<f32>>, ModelError> {
        let bytes = self.book.encode(tokens)?;
        let decode = |token: &[u8]| {
            self.book.decode(usize::from(u16::from_le_bytes([token[0], token[1]])), &token[2..])
        };
        Ok(bytes[4..].chunks_exact(self.book.bytes()).map(decode).collect())
    }

    /// The passages with the greatest sums over the query's tokens of the greatest product with one of theirs, best first, ties by passage id,
    /// among those that lie near a token of the query.
    ///
    /// # Errors
    /// The index cannot be read, or `stop` was set.
    pub fn search(
        &self,
        corpus: &Corpus,
        query: &[Vec<f32>],
        depth: usize,
        stop: &Stop,
    ) -> Result<Vec<Hit>, RetrieveError> {
        if query.iter().any(|own| own.len() != self.book.dimensions) {
            let reason =
                format!("its vectors have {} numbers, and the query's have not", self.book.dimensions);
            return Err(RetrieveError::Tokens(reason));
        }
        // By centroid: its product with each token of the query.
        let products: Vec<f32> = self
            .book
            .centroids
            .chunks_exact(self.book.dimensions)
            .flat_map(|centroid| query.iter().map(|own| dot(own, centroid)))
            .collect();
        let enough = (depth * 4).max(FEWEST);
        let rough = |at: &u32| {
            let mut best = vec![f32::NEG_INFINITY; query.len()];
            for place in self.places_of(&self.tokens(*at as usize))? {
                let own = &products[place * query.len()..(place + 1) * query.len()];
                best.iter_mut().zip(own).for_each(|(best, own)| *best = best.max(*own));
            }
            Ok(best.iter().sum())
        };
        let kept = scored(corpus, &self.near(&products, query.len(), enough)?, enough, stop, rough)?;
        let kept: Vec<u32> = kept.into_iter().map(|hit| hit.passage.0).collect();
        scored(corpus, &kept, depth, stop, |at| Ok(max_sim(query, &self.passage(PassageIx(*at))?)))
    }

    /// As [`TokenIndex::search`], and with its errors, over all passages.
    pub fn search_all(
        &self,
        corpus: &Corpus,
        query: &[Vec<f32>],
        depth: usize,
        stop: &Stop,
    ) -> Result<Vec<Hit>, RetrieveError> {
        let all: Vec<u32> =
            (0..self.passages as u32).filter(|at| !self.tokens(*at as usize).is_empty()).collect();
        scored(corpus, &all, depth, stop, |at| Ok(max_sim(query, &self.passage(PassageIx(*at))?)))
    }

    /// The passages with a token at one of the nearest centroids of a query token, ascending; at more of them while that gives fewer than
    /// `least`.
    fn near(&self, products: &[f32], asked: usize, least: usize) -> Result<Vec<u32>, RetrieveError> {
        let centroids = self.book.centroids.len() / self.book.dimensions;
        let (mut order, mut found) = ((0..centroids).collect::<Vec<_>>(), vec![false; self.passages]);
        let mut probes = PROBES.min(centroids);
        loop {
            let mut probed = vec![false; centroids];
            for token in 0..asked {
                let product = |place: &usize| products[place * asked + token];
                order.select_nth_unstable_by(probes - 1, |a, b| {
                    product(b).total_cmp(&product(a)).then(a.cmp(b))
                });
                order[..probes].iter().for_each(|place| probed[*place] = true);
            }
            for place in (0..centroids).filter(|place| probed[*place]) {
                let at = |place: usize| long(&self.map, self.places.lists + 8 * place) as usize;
                let [from, to] = [at(place), at(place + 1)].map(|entry| self.places.entries + 4 * entry);
                for four in self.part(from..to)?.as_chunks::<4>().0 {
                    found.get_mut(u32::from_le_bytes(*four) as usize).into_iter().for_each(|one| *one = true);
                }
            }
            let near: Vec<u32> = (0..self.passages as u32).filter(|at| found[*at as usize]).collect();
            if near.len() >= least || probes == centroids {
                return Ok(near);
            }
            probes = (2 * probes).min(centroids);
        }
    }

    fn measured(&self, corpus: &Corpus, trial: &[Vec<Vec<f32>>], stop: &Stop) -> Result<f32, RetrieveError> {
        let (mut found, mut all) = (0, 0);
        for query in trial {
            let exact = self.search_all(corpus, query, 10, stop)?;
            let own = self.search(corpus, query, 10, stop)?;
            all += exact.len();
            found += exact.iter().filter(|hit| own.iter().any(|other| other.passage == hit.passage)).count();
        }
        Ok(if all == 0 { 1.0 } else { found as f32 / all as f32 })
    }
}

/// Writes the index with a recall of 0. In memory are 2 bytes a token, 8 a passage, and the lists.
fn write(tokens: &Path, book: &Codebook, (key, passages): (&str, usize), to: &Path) -> io::Result<()> {
    let (size, centroids) = (book.bytes(), book.centroids.len() / book.dimensions);
    let (mut firsts, mut nearest) = (vec![0u64], Vec::<u8>::new());
    let (mut lists, mut lost) = (vec![Vec::<u32>::new(); centroids], false);
    each_item(tokens, size, &mut |passage, bytes| {
        for token in bytes.chunks_exact(size) {
            nearest.extend(&token[..2]);
            match lists.get_mut(usize::from(u16::from_le_bytes([token[0], token[1]]))) {
                Some(list) if list.last() != Some(&passage) => list.push(passage),
                Some(_) => {}
                None => lost = true,
            }
        }
        firsts.push(nearest.len() as u64 / 2);
    })?;
    if lost {
        return Err(io::Error::other("a token has no centroid"));
    }
    if firsts.len() != passages + 1 {
        let reason = format!("the tokens are of {} passages, expected {passages}", firsts.len() - 1);
        return Err(io::Error::other(reason));
    }
    let mut out = BufWriter::with_capacity(1 << 20, File::create(to)?);
    out.write_all(MAGIC)?;
    out.write_all(blake3::hash(key.as_bytes()).as_bytes())?;
    for number in [passages, nearest.len() / 2, book.dimensions, centroids] {
        out.write_all(&(number as u64).to_le_bytes())?;
    }
    out.write_all(&0f32.to_le_bytes())?;
    out.write_all(&book.numbers())?;
    let mut ends = vec![0u64];
    ends.extend(lists.iter().scan(0, |end, list| {
        *end += list.len() as u64;
        Some(*end)
    }));
    for number in firsts.iter().chain(&ends) {
        out.write_all(&number.to_le_bytes())?;
    }
    for passage in lists.iter().flatten() {
        out.write_all(&passage.to_le_bytes())?;
    }
    out.write_all(&nearest)?;
    let mut written = Ok(());
    each_item(tokens, size, &mut |_, bytes| {
        for token in bytes.chunks_exact(size) {
            if written.is_ok() {
                written = out.write_all(&token[2..]);
            }
        }
    })?;
    written?;
    out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
}
