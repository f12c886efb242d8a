//! The impact index of a learned sparse lane: for every term the passages that have it, with weights of 8 bits, searched exactly with
//! block-max pruning (Mallia, Suel and Tonellotto, SIGIR 2024).
//!
//! Passages are cut into blocks of [`BLOCK`] in their order, and every term knows its greatest weight in each block. A query's sum of
//! these bounds every score of a block. Blocks are read from the greatest bound on, until the bound is below the last score of the list:
//! no passage of the others can be in it. Sums go over the query's terms in one order, bounds and scores alike; rounding keeps the order
//! of sums, so the bounds hold to the last bit.
//!
//! ```text
//! magic, hash of the model's key                 8 + 32 bytes
//! passages, terms, entries, postings             u64 each
//! [terms]      scale                             f32   a weight is its scale times its impact
//! [terms + 1]  first entry, first posting        u64 × 2
//! [entries]    block, first posting of the term  u32 × 2
//! [entries]    greatest impact                   u8
//! [postings]   passage in its block, impact      u8 × 2
//! ```

use std::collections::BinaryHeap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::path::Path;

use memmap2::Mmap;

use super::{Hit, RetrieveError, Worst};
use crate::corpus::{Corpus, PassageIx};
use crate::encode::sparse::each_passage;
use crate::storage::checked::{Damaged, Summed, open_sum, replace_file};
use crate::work::{Stop, Stopped};

/// The number of passages in a block.
pub const BLOCK: usize = 64;
const MAGIC: &[u8; 8] = b"PLXIMP01";
/// The bytes before the first section.
const HEAD: usize = 8 + 32 + 4 * 8;
/// The greatest impact.
const FULL: f32 = 255.0;

/// The impact index of one corpus by one model.
pub struct ImpactIndex {
    map: Mmap,
    sums: Summed,
    passages: usize,
    terms: usize,
    places: Places,
}

/// Where the sections begin.
#[derive(Clone, Copy)]
struct Places {
    firsts: usize,
    blocks: usize,
    greatest: usize,
    postings: usize,
}

/// One term's part of the index.
struct TermList<'a> {
    /// What an impact is multiplied by.
    scale: f32,
    /// Block and first posting of each entry.
    blocks: &'a [u8],
    greatest: &'a [u8],
    postings: &'a [u8],
}

impl TermList<'_> {
    fn len(&self) -> usize {
        self.greatest.len()
    }

    fn block(&self, entry: usize) -> usize {
        number(self.blocks, entry * 8) as usize
    }

    /// Passages in the block and their impacts.
    fn postings(&self, entry: usize) -> impl Iterator<Item = (usize, u8)> {
        let from = number(self.blocks, entry * 8 + 4) as usize;
        let to = if entry + 1 < self.len() {
            number(self.blocks, entry * 8 + 12) as usize
        } else {
            self.postings.len() / 2
        };
        let range = self.postings.get(from * 2..to * 2).unwrap_or_default();
        range.chunks_exact(2).map(|pair| (usize::from(pair[0]), pair[1]))
    }

    /// The entry of a block.
    fn find(&self, block: usize) -> Option<usize> {
        let entries = self.blocks.as_chunks::<8>().0;
        entries.binary_search_by_key(&(block as u32), |entry| number(entry, 0)).ok()
    }
}

fn number(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|four| four.try_into().ok()).map_or(0, u32::from_le_bytes)
}

pub(super) fn long(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|eight| eight.try_into().ok()).map_or(0, u64::from_le_bytes)
}

/// The impact of a weight; never 0, so that no term of a passage is lost.
fn impact(weight: f32, scale: f32) -> u8 {
    (weight / scale).round().clamp(1.0, FULL) as u8
}

fn failed(error: io::Error) -> RetrieveError {
    match Damaged::of(&error) {
        Some(damaged) => RetrieveError::Damaged(damaged.clone()),
        None => RetrieveError::Impacts(error.to_string()),
    }
}

impl ImpactIndex {
    /// Builds the index from the weights that [`crate::encode::sparse::write_weights`] wrote, and moves it to `place` with its checksums.
    /// Reads them twice; in memory are 2 bytes a posting and 9 a term's block.
    ///
    /// # Errors
    /// The weights cannot be read or are of other passages or terms, the disk failed, or `stop` was set.
    pub fn build(
        weights: &Path,
        (key, passages, terms): (&str, usize, usize),
        place: &Path,
        stop: &Stop,
    ) -> Result<(), RetrieveError> {
        let unreadable = |error: io::Error| RetrieveError::Impacts(error.to_string());
        let (mut greatest, mut counts) = (vec![0f32; terms], vec![0u64; terms + 1]);
        let (mut entries, mut last) = (vec![0u64; terms + 1], vec![u32::MAX; terms]);
        let (mut all, mut wrong) = (0, false);
        each_passage(weights, &mut |passage, own| {
            all = passage as usize + 1;
            for (term, weight) in own {
                let term = *term as usize;
                wrong |= term >= terms || !(weight.is_finite() && *weight > 0.0);
                if wrong {
                    return;
                }
                greatest[term] = greatest[term].max(*weight);
                counts[term + 1] += 1;
                let block = passage / BLOCK as u32;
                if std::mem::replace(&mut last[term], block) != block {
                    entries[term + 1] += 1;
                }
            }
        })
        .map_err(unreadable)?;
        if wrong || all != passages {
            return Err(RetrieveError::Impacts(if wrong {
                "a weight is not above 0, or its term is not in the vocabulary".into()
            } else {
                format!("the weights are of {all} passages, expected {passages}")
            }));
        }
        if stop.is_set() {
            return Err(Stopped.into());
        }
        for term in 0..terms {
            counts[term + 1] += counts[term];
            entries[term + 1] += entries[term];
        }
        // A weight below the least normal number would make a scale of 0.
        let scales: Vec<f32> = greatest.iter().map(|weight| (weight / FULL).max(f32::MIN_POSITIVE)).collect();
        let mut postings = vec![0u8; 2 * counts[terms] as usize];
        let mut blocks = vec![0u8; 8 * entries[terms] as usize];
        let mut tops = vec![0u8; entries[terms] as usize];
        let (mut next, mut entry) = (counts.clone(), entries.clone());
        last.fill(u32::MAX);
        each_passage(weights, &mut |passage, own| {
            let (block, inner) = (passage / BLOCK as u32, (passage as usize % BLOCK) as u8);
            for (term, weight) in own {
                let term = *term as usize;
                if std::mem::replace(&mut last[term], block) != block {
                    let at = 8 * entry[term] as usize;
                    blocks[at..at + 4].copy_from_slice(&block.to_le_bytes());
                    let first = (next[term] - counts[term]) as u32;
                    blocks[at + 4..at + 8].copy_from_slice(&first.to_le_bytes());
                    entry[term] += 1;
                }
                let own = impact(*weight, scales[term]);
                let top = &mut tops[entry[term] as usize - 1];
                *top = own.max(*top);
                let at = 2 * next[term] as usize;
                postings[at..at + 2].copy_from_slice(&[inner, own]);
                next[term] += 1;
            }
        })
        .map_err(unreadable)?;
        let building = place.with_extension("impact.building");
        let write = || -> io::Result<()> {
            let mut out = BufWriter::with_capacity(1 << 20, File::create(&building)?);
            out.write_all(MAGIC)?;
            out.write_all(blake3::hash(key.as_bytes()).as_bytes())?;
            for number in [passages as u64, terms as u64, entries[terms], counts[terms]] {
                out.write_all(&number.to_le_bytes())?;
            }
            for scale in &scales {
                out.write_all(&scale.to_le_bytes())?;
            }
            for (entry, posting) in entries.iter().zip(&counts) {
                out.write_all(&entry.to_le_bytes())?;
                out.write_all(&posting.to_le_bytes())?;
            }
            for part in [&blocks, &tops, &postings] {
                out.write_all(part)?;
            }
            out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
            replace_file(&building, place)
        };
        write().map_err(|error| {
            let _ = fs::remove_file(&building);
            RetrieveError::Impacts(format!("{error}; make room or name another folder with --data-dir"))
        })
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
            return Err(damaged("it is no impact index"));
        }
        sums.check_bytes(0..HEAD as u64, &map)?;
        if map[8..40] != *blake3::hash(key.as_bytes()).as_bytes() {
            return Err(damaged("it was made by another model"));
        }
        let [own, terms, entries, postings] = [40, 48, 56, 64].map(|at| long(&map, at) as usize);
        if own != passages {
            return Err(damaged(&format!("{own} passages of {passages}")));
        }
        let firsts = HEAD + 4 * terms;
        let blocks = firsts + 16 * (terms + 1);
        let greatest = blocks + 8 * entries;
        let places = Places { firsts, blocks, greatest, postings: greatest + entries };
        if places.postings + 2 * postings != map.len() {
            return Err(damaged("its parts do not add up to its length"));
        }
        sums.check_bytes(0..blocks as u64, &map)?;
        Ok(ImpactIndex { map, sums, passages, terms, places })
    }

    fn part(&self, range: Range<usize>) -> Result<&[u8], RetrieveError> {
        self.sums.check_bytes(range.start as u64..range.end as u64, &self.map).map_err(failed)?;
        let short = || RetrieveError::Damaged(Damaged::new(self.sums.path(), "a term lies beyond its end"));
        self.map.get(range).ok_or_else(short)
    }

    fn scale(&self, term: usize) -> f32 {
        f32::from_bits(number(&self.map, HEAD + 4 * term))
    }

    /// The list of a term; `None` if no passage has it.
    fn list(&self, term: usize) -> Result<Option<TermList<'_>>, RetrieveError> {
        if term >= self.terms {
            return Ok(None);
        }
        let first =
            |term: usize, which: usize| long(&self.map, self.places.firsts + 16 * term + which) as usize;
        let (entries, postings) = (first(term, 0)..first(term + 1, 0), first(term, 8)..first(term + 1, 8));
        if entries.is_empty() {
            return Ok(None);
        }
        let at = |start: usize, size: usize, range: &Range<usize>| {
            start + size * range.start..start + size * range.end
        };
        Ok(Some(TermList {
            scale: self.scale(term),
            blocks: self.part(at(self.places.blocks, 8, &entries))?,
            greatest: self.part(at(self.places.greatest, 1, &entries))?,
            postings: self.part(at(self.places.postings, 2, &postings))?,
        }))
    }

    /// The `depth` passages of the greatest scores, best first, ties by passage id; a passage that has no term of the query is in no list.
    /// Also returns how many blocks were read. Equals, to the last bit, what scoring every passage gives.
    ///
    /// # Errors
    /// The index cannot be read, or `stop` was set.
    pub fn search(
        &self,
        corpus: &Corpus,
        query: &[(u32, f32)],
        depth: usize,
        stop: &Stop,
    ) -> Result<(Vec<Hit>, usize), RetrieveError> {
        let mut lists = Vec::new();
        for (term, weight) in query.iter().filter(|(_, weight)| *weight > 0.0) {
            if let Some(list) = self.list(*term as usize)? {
                lists.push((weight * list.scale, list));
            }
        }
        let mut bounds = vec![0f32; self.passages.div_ceil(BLOCK)];
        for (weight, list) in &lists {
            for (entry, greatest) in list.greatest.iter().enumerate() {
                if let Some(bound) = bounds.get_mut(list.block(entry)) {
                    *bound += weight * f32::from(*greatest);
                }
            }
        }
        let mut order: Vec<u32> =
            (0..bounds.len() as u32).filter(|block| bounds[*block as usize] > 0.0).collect();
        order.sort_unstable_by(|a, b| bounds[*b as usize].total_cmp(&bounds[*a as usize]));
        let mut heap: BinaryHeap<Worst<'_>> = BinaryHeap::with_capacity(depth + 1);
        let mut read = 0;
        for block in order {
            // A passage of an equal score may have an earlier id.
            let full = heap.len() == depth;
            if full && heap.peek().is_none_or(|worst| bounds[block as usize] < worst.0.score) {
                break;
            }
            if read % BLOCK == 0 && stop.is_set() {
                return Err(Stopped.into());
            }
            read += 1;
            let mut scores = [0f32; BLOCK];
            for (weight, list) in &lists {
                let Some(entry) = list.find(block as usize) else { continue };
                for (passage, impact) in list.postings(entry) {
                    if let Some(score) = scores.get_mut(passage) {
                        *score += weight * f32::from(impact);
                    }
                }
            }
            for (inner, score) in scores.into_iter().enumerate().filter(|(_, score)| *score > 0.0) {
                let full = heap.len() == depth;
                if full && heap.peek().is_none_or(|worst| score < worst.0.score) {
                    continue;
                }
                let passage = PassageIx(block * BLOCK as u32 + inner as u32);
                heap.push(Worst(Hit { passage, score }, corpus));
                if full {
                    heap.pop();
                }
            }
        }
        Ok((heap.into_sorted_vec().into_iter().map(|Worst(hit, _)| hit).collect(), read))
    }

    /// The terms of a passage with their weights as stored, in the order of the vocabulary.
    ///
    /// # Errors
    /// The index cannot be read.
    pub fn passage(&self, PassageIx(passage): PassageIx) -> Result<Vec<(u32, f32)>, RetrieveError> {
        let (block, inner) = (passage as usize / BLOCK, passage as usize % BLOCK);
        let mut own = Vec::new();
        for term in 0..self.terms {
            let Some(list) = self.list(term)? else { continue };
            let Some(entry) = list.find(block) else { continue };
            let found = list.postings(entry).find(|(passage, _)| *passage == inner);
            own.extend(found.map(|(_, impact)| (term as u32, list.scale * f32::from(impact))));
        }
        Ok(own)
    }

    /// The score that a text's weights would have if they were stored in this index: the sum over the query's terms, in their order.
    pub fn score(&self, query: &[(u32, f32)], text: &[(u32, f32)]) -> f32 {
        let mut sum = 0.0;
        for (term, weight) in query {
            let Ok(at) = text.binary_search_by_key(term, |(term, _)| *term) else { continue };
            let scale = if (*term as usize) < self.terms { self.scale(*term as usize) } else { 0.0 };
            // No passage has the term, so nothing says how it would be rounded.
            let seen = scale > f32::MIN_POSITIVE;
            sum += if seen {
                weight * scale * f32::from(impact(text[at].1, scale))
            } else {
                weight * text[at].1
            };
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::super::top;
    use super::*;
    use crate::measure::seeded::SplitMix64;

    /// An index of these passages over `terms` terms, and their corpus, with ids in another order than their places.
    fn index(folder: &Path, passages: &[Vec<(u32, f32)>], terms: usize) -> (ImpactIndex, Corpus) {
        let mut bytes = Vec::new();
        for own in passages {
            bytes.extend((own.len() as u32).to_le_bytes());
            for (term, weight) in own {
                bytes.extend(term.to_le_bytes());
                bytes.extend(weight.to_le_bytes());
            }
        }
        let (weights, place) = (folder.join("m.part"), folder.join("m.impact"));
        fs::write(&weights, bytes).unwrap();
        ImpactIndex::build(&weights, ("m", passages.len(), terms), &place, &Stop::never()).unwrap();
        let line = |i: usize| format!("{{\"_id\":\"{:05}\",\"text\":\"x\"}}\n", (i * 7919) % 100_003);
        let text: String = (0..passages.len()).map(line).collect();
        let corpus = Corpus::builtin("t", Box::leak(text.into_boxed_str()).as_bytes());
        (ImpactIndex::open(&place, "m", passages.len()).unwrap(), corpus)
    }

    #[test]
    fn weights_are_rounded_to_255_steps_of_the_terms_greatest_and_scores_add_up() {
        let folder = tempfile::tempdir().unwrap();
        // Term 0 has 2.55 at most, so a step is .01; 1.234 becomes 1.23. Term 1 has 1 alone.
        let passages = [vec![(0, 2.55), (1, 1.0)], vec![(0, 1.234)], vec![], vec![(0, 0.0001)]];
        let (index, corpus) = index(folder.path(), &passages, 3);
        let (hits, read) =
            index.search(&corpus, &[(0, 2.0), (1, 0.5), (2, 9.0)], 10, &Stop::never()).unwrap();
        let scores: Vec<f32> = hits.iter().map(|hit| (hit.score * 1e4).round() / 1e4).collect();
        // 2 · 2.55 + .5 · 1; 2 · 1.23; the least weight keeps one step: 2 · .01.
        assert_eq!(scores, [5.6, 2.46, 0.02]);
        assert_eq!((hits[0].passage, hits[2].passage, read), (PassageIx(0), PassageIx(3), 1));
        let own = index.passage(PassageIx(1)).unwrap();
        assert!(own.len() == 1 && own[0].0 == 0 && (own[0].1 - 1.23).abs() < 1e-6, "{own:?}");
        assert!((index.score(&[(0, 2.0), (1, 0.5)], &passages[1]) - 2.46).abs() < 1e-5);
        assert!(index.search(&corpus, &[(7, 1.0)], 10, &Stop::never()).unwrap().0.is_empty());
        assert!(index.search(&corpus, &[(0, 1.0)], 0, &Stop::never()).unwrap().0.is_empty());
    }

    #[test]
    fn the_list_is_that_of_scoring_every_passage_whatever_the_weights() {
        let mut draw = SplitMix64::new(26);
        for round in 0..40 {
            let (count, terms) = (1 + draw.below(700), 1 + draw.below(60));
            // Few steps of weight make many ties.
            let steps = [2, 5, 1_000][round % 3];
            let weight = |draw: &mut SplitMix64| (1 + draw.below(steps)) as f32 / steps as f32 * 3.0;
            let passages: Vec<Vec<(u32, f32)>> = (0..count)
                .map(|_| {
                    let rare = 1 + draw.below(4);
                    let terms = (0..terms as u32).filter(|_| draw.below(4) < rare).collect::<Vec<_>>();
                    terms.into_iter().map(|term| (term, weight(&mut draw))).collect()
                })
                .collect();
            let folder = tempfile::tempdir().unwrap();
            let (index, corpus) = index(folder.path(), &passages, terms);
            let stored: Vec<Vec<(u32, f32)>> =
                (0..count).map(|i| index.passage(PassageIx(i as u32)).unwrap()).collect();
            for (own, passage) in stored.iter().zip(&passages) {
                assert!(own.iter().map(|(term, _)| term).eq(passage.iter().map(|(term, _)| term)));
                // Half a step of at most 3/255, and nearly a whole one for a weight that would round to none.
                let near = |(a, b): (&(u32, f32), &(u32, f32))| (a.1 - b.1).abs() <= 3.0 / 255.0;
                assert!(own.iter().zip(passage).all(near));
            }
            for depth in [1, 10, 100, 1_000] {
                let asked: Vec<u32> = (0..terms as u32).filter(|_| draw.coin()).collect();
                let query: Vec<(u32, f32)> =
                    asked.into_iter().map(|term| (term, weight(&mut draw))).collect();
                let (hits, _) = index.search(&corpus, &query, depth, &Stop::never()).unwrap();
                let all = (0..count).map(|i| (PassageIx(i as u32), index.score(&query, &passages[i])));
                let expected = top(&corpus, depth, all.filter(|(_, score)| *score > 0.0));
                assert_eq!(hits, expected, "round {round}, depth {depth}");
            }
        }
    }

    #[test]
    fn most_blocks_are_not_read_if_one_holds_the_best() {
        let folder = tempfile::tempdir().unwrap();
        let passages: Vec<Vec<(u32, f32)>> =
            (0..6_400).map(|i| vec![(0, if i / BLOCK == 70 { 2.0 } else { 1.0 })]).collect();
        let (index, corpus) = index(folder.path(), &passages, 1);
        let (hits, read) = index.search(&corpus, &[(0, 1.0)], 10, &Stop::never()).unwrap();
        assert!(hits.iter().all(|hit| hit.passage.0 as usize / BLOCK == 70));
        assert_eq!(read, 1);
    }

    #[test]
    fn an_index_of_another_model_or_corpus_or_with_a_changed_byte_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let passages = vec![vec![(0, 1.0)]; 3];
        drop(index(folder.path(), &passages, 2));
        let place = folder.path().join("m.impact");
        let error = |key: &str, passages: usize| {
            let error = ImpactIndex::open(&place, key, passages).err().unwrap();
            Damaged::of(&error).map(|damaged| damaged.what.clone()).unwrap_or_default()
        };
        assert_eq!(error("other", 3), "it was made by another model");
        assert_eq!(error("m", 4), "3 passages of 4");
        let mut bytes = fs::read(&place).unwrap();
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        fs::write(&place, bytes).unwrap();
        assert!(!error("m", 3).is_empty());
        let few = folder.path().join("few.part");
        fs::write(&few, 0u32.to_le_bytes()).unwrap();
        let built = ImpactIndex::build(&few, ("m", 2, 2), &place, &Stop::never());
        assert!(built.unwrap_err().to_string().contains("1 passages, expected 2"));
        // One passage each: a term outside the vocabulary, and a weight of 0.
        for (term, weight) in [(2u32, 1f32), (0, 0.0)] {
            fs::write(&few, [[1, 0, 0, 0], term.to_le_bytes(), weight.to_le_bytes()].concat()).unwrap();
            let built = ImpactIndex::build(&few, ("m", 1, 2), &place, &Stop::never());
            assert!(built.unwrap_err().to_string().contains("a weight is not above 0"), "{term} {weight}");
        }
    }
}
