//! Lanes of learned sparse models and of models for late interaction: the model, its index of the corpus, and what a passage shares with a
//! query.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::list::{LaneError, Wording};
use super::opening::{SetupError, unusable};
use super::setup::Setup;
use crate::corpus::{Passage, PassageIx};
use crate::encode::sparse::{TermWeights, proofs_of, write_passages, write_weights};
use crate::encode::{EncodeError, LateScorer, Met, Named, PassageScorer, Role, Source, SparseEncoder};
use crate::retrieve::impact::ImpactIndex;
use crate::retrieve::late::{Codebook, TokenIndex};
use crate::retrieve::{Hit, RetrieveError};
use crate::storage::FileLock;
use crate::storage::checked::Damaged;
use crate::vector::max_sim;
use crate::work::{Job, OnProgress, Progress, Stop, Stopped, on_all};

/// A passage's terms and a query's, as a learned sparse lane compares them.
#[derive(Clone, Debug, PartialEq)]
pub struct SparseMatch {
    /// The lane's model.
    pub model: String,
    /// The sum of the shares.
    pub score: f32,
    /// Terms of both: the query's weight, the passage's, and their product, greatest product first.
    pub shares: Vec<(String, [f32; 3])>,
    /// The query's terms, greatest weight first, and whether the passage has them.
    pub query: Vec<(String, f32, bool)>,
    /// The passage's terms, greatest weight first, and whether the query has them.
    pub passage: Vec<(String, f32, bool)>,
}

impl Setup {
    /// A learned sparse model.
    ///
    /// # Errors
    /// It does not exist or cannot be loaded.
    pub fn sparse_encoder(&self, named: &Named) -> Result<Arc<SparseEncoder>, SetupError> {
        self.encoder_slot(Some(named)).sparse.get(|| {
            let towers = named.towers(&self.models_folder)?;
            Ok(Arc::new(SparseEncoder::load(named, &towers.passages)?))
        })
    }

    /// The impact index of the corpus by a learned sparse model, if all passages have been encoded. A damaged one is set aside, to be made
    /// again.
    ///
    /// # Errors
    /// It cannot be read, or the model cannot be loaded.
    pub fn impacts(&self, named: &Named) -> Result<Option<Arc<ImpactIndex>>, SetupError> {
        let encoder = self.sparse_encoder(named)?;
        let made = self.encoder_slot(Some(named)).impacts.get(|| {
            let place = self.impacts_place(&encoder);
            self.derived(&place, || ImpactIndex::open(&place, encoder.key(), self.corpus.len()))
        });
        if_there(made)
    }

    /// Opens a file that was derived from the corpus. A damaged one is set aside, to be made again; the error is then `None`, as where there is none.
    pub(super) fn derived<T>(
        &self,
        place: &Path,
        open: impl FnOnce() -> io::Result<T>,
    ) -> Result<Arc<T>, Option<SetupError>> {
        if !place.exists() {
            return Err(None);
        }
        let error = match open() {
            Ok(derived) => return Ok(Arc::new(derived)),
            Err(error) => error,
        };
        let Some(damaged) = Damaged::of(&error) else { return Err(Some(unusable(place)(error))) };
        self.library.set_aside(place, damaged).map_err(|error| Some(error.into()))?;
        Err(None)
    }

    /// Where a file of this name that is derived from the corpus lies.
    pub(super) fn place(&self, name: &str) -> PathBuf {
        self.folder.clone().unwrap_or_else(|| self.library.folder(&self.corpus.fingerprint)).join(name)
    }

    /// Locks the corpus while a derived file is made, and makes the file's folder.
    pub(super) fn lock_to_make(
        &self,
        place: &Path,
        on_progress: OnProgress<'_>,
        stop: &Stop,
    ) -> Result<FileLock, SetupError> {
        if let Some(folder) = place.parent() {
            fs::create_dir_all(folder).map_err(unusable(folder))?;
        }
        Ok(self.library.lock(&self.corpus.fingerprint, on_progress, stop)?)
    }

    /// Whether the corpus has its vectors by an encoder, or its index by another model; `None` is the built-in encoder.
    ///
    /// # Errors
    /// They cannot be read, or the model cannot be loaded.
    pub fn is_embedded(&self, model: Option<&Named>) -> Result<bool, SetupError> {
        Ok(match model {
            Some(named) if named.is_late() => self.tokens(named)?.is_some(),
            Some(named) if named.sparse().is_some() => self.impacts(named)?.is_some(),
            _ => self.vectors(model)?.is_some(),
        })
    }

    /// Encodes the corpus by a learned sparse model, on all model threads, and builds its impact index. Continues where an earlier call
    /// stopped.
    ///
    /// # Errors
    /// The model or the disk failed, or `stop` was set; finished passages are kept.
    pub(super) fn embed_sparse(
        &self,
        named: &Named,
        on_progress: OnProgress<'_>,
        stop: &Stop,
    ) -> Result<(), SetupError> {
        let encoder = self.sparse_encoder(named)?;
        let place = self.impacts_place(&encoder);
        let _lock = self.lock_to_make(&place, on_progress, stop)?;
        if self.impacts(named)?.is_some() {
            return Ok(());
        }
        let part = place.with_extension("impact.part");
        write_weights(&self.corpus, &encoder, &part, &self.models, on_progress, stop)?;
        let of = (encoder.key(), self.corpus.len(), encoder.terms());
        ImpactIndex::build(&part, of, &place, stop)?;
        // They are in the index now.
        for file in [proofs_of(&part), part] {
            fs::remove_file(&file).map_err(unusable(&file))?;
        }
        Ok(())
    }

    fn impacts_place(&self, encoder: &SparseEncoder) -> PathBuf {
        self.place(&format!("{}.impact", encoder.key()))
    }

    /// A model for late interaction.
    ///
    /// # Errors
    /// It does not exist or cannot be loaded.
    pub fn late_scorer(&self, named: &Named) -> Result<Arc<LateScorer>, SetupError> {
        self.encoder_slot(Some(named)).late.get(|| {
            let source = match &named.source {
                Source::Known(entry) => Source::Hub(entry.repositories[0].into()),
                source => source.clone(),
            };
            Ok(Arc::new(LateScorer::load(&source, &self.models_folder)?))
        })
    }

    /// The token index of the corpus by a model for late interaction, if all passages have been encoded. A damaged one is set aside, to be made
    /// again.
    ///
    /// # Errors
    /// It cannot be read, or the model cannot be loaded.
    pub fn tokens(&self, named: &Named) -> Result<Option<Arc<TokenIndex>>, SetupError> {
        let model = self.late_scorer(named)?;
        let made = self.encoder_slot(Some(named)).tokens.get(|| {
            let place = self.tokens_place(&model);
            self.derived(&place, || TokenIndex::open(&place, model.key(), self.corpus.len()))
        });
        if_there(made)
    }

    /// Encodes the corpus by a model for late interaction, on all model threads, and builds its token index. Continues where an earlier call
    /// stopped.
    ///
    /// # Errors
    /// The corpus has too many passages, the model or the disk failed, or `stop` was set; finished passages are kept.
    pub(super) fn embed_late(
        &self,
        named: &Named,
        on_progress: OnProgress<'_>,
        stop: &Stop,
    ) -> Result<(), SetupError> {
        if self.corpus.len() > MOST_PASSAGES {
            return Err(RetrieveError::Unfit(format!(
                "late interaction as a lane is for corpora of up to {MOST_PASSAGES} passages, and this one has {}; it re-ranks larger ones: \
                 bm25+rerank@{}",
                self.corpus.len(),
                named.source
            ))
            .into());
        }
        let model = self.late_scorer(named)?;
        let place = self.tokens_place(&model);
        let _lock = self.lock_to_make(&place, on_progress, stop)?;
        if self.tokens(named)?.is_some() {
            return Ok(());
        }
        let (part, own) = (place.with_extension("tokens.part"), place.with_extension("tokens.book"));
        let book = match Codebook::read(&own) {
            Some(book) => book,
            None => {
                // Passages that another codebook encoded are of no use.
                for file in [proofs_of(&part), part.clone()].iter().filter(|file| file.exists()) {
                    fs::remove_file(file).map_err(unusable(file))?;
                }
                on_progress(Progress { job: Job::Embedding, done: 0, total: self.corpus.len() as u64 });
                let book = self.codebook(&model, stop)?;
                book.write(&own).map_err(unusable(&own))?;
                book
            }
        };
        let encode = |passage: &Passage| -> Result<Vec<u8>, EncodeError> {
            let tokens = model.vectors(&passage.contents(), Role::Passage)?;
            book.encode(&tokens).map_err(EncodeError::from)
        };
        let item = (part.as_path(), book.bytes());
        write_passages(&self.corpus, item, encode, &self.models, on_progress, stop)?;
        // Each compares the query with every token of the corpus, so a large corpus gets fewer.
        let trials = (TRIALS * LARGE / self.corpus.len().max(1)).clamp(4, TRIALS);
        let trial = self.spread(trials).into_iter().map(|at| {
            let text = self.corpus.passage(at).text;
            model.vectors(text.split(['.', '?', '!']).next().unwrap_or_default(), Role::Query)
        });
        let trial = trial.collect::<Result<Vec<_>, EncodeError>>()?;
        TokenIndex::build((&part, &book), (model.key(), &self.corpus), &trial, &place, stop)?;
        // They are in the index now.
        for file in [proofs_of(&part), part, own] {
            fs::remove_file(&file).map_err(unusable(&file))?;
        }
        Ok(())
    }

    /// Learns centroids from passages spread over the corpus.
    fn codebook(&self, model: &LateScorer, stop: &Stop) -> Result<Codebook, SetupError> {
        let passages = self.spread(self.corpus.len().isqrt() * 4);
        let vectors = on_all(&self.models, passages.len(), stop, |i| {
            let mut own = model.vectors(&self.corpus.passage(passages[i]).contents(), Role::Passage)?;
            own.truncate(MOST_TOKENS);
            Ok(own)
        });
        if vectors.len() < passages.len() {
            return Err(RetrieveError::from(Stopped).into());
        }
        let sample = vectors.into_iter().collect::<Result<Vec<_>, EncodeError>>()?;
        let sample: Vec<Vec<f32>> = sample.into_iter().flatten().collect();
        let tokens = sample.len() * self.corpus.len() / passages.len().max(1);
        Ok(Codebook::train(&sample, Codebook::centroids_for(tokens), stop)?)
    }

    /// So many passages, evenly spread over the corpus.
    fn spread(&self, count: usize) -> Vec<PassageIx> {
        let (count, all) = (count.min(self.corpus.len()), self.corpus.len());
        (0..count).map(|i| PassageIx((i * all / count) as u32)).collect()
    }

    fn tokens_place(&self, model: &LateScorer) -> PathBuf {
        self.place(&format!("{}.tokens", model.key()))
    }
}

/// The most passages of a corpus that late interaction searches.
const MOST_PASSAGES: usize = 200_000;
/// The most tokens of a passage that centroids are learned from.
const MOST_TOKENS: usize = 256;
/// The most queries on which the recall of a token index is measured, and the most passages of a corpus that gets so many.
const TRIALS: usize = 32;
const LARGE: usize = 20_000;

/// The vectors of a query's tokens: of its text, or of its texts one after another, and what their sum is divided by.
fn query_tokens(model: &LateScorer, query: &Wording) -> Result<(Vec<Vec<f32>>, f32), LaneError> {
    let (mut all, mut divisor) = (Vec::new(), 0.0);
    for text in query.texts() {
        let own = model.vectors(text, Role::Query)?;
        divisor += model.divisor(own.len());
        all.extend(own);
    }
    Ok((all, divisor.max(1.0)))
}

/// Searches the token index.
pub(super) fn search_tokens(
    setup: &Setup,
    named: &Named,
    query: &Wording,
    depth: usize,
    stop: &Stop,
) -> Result<Vec<Hit>, LaneError> {
    let index = setup.tokens(named)?.ok_or(LaneError::NotEmbedded)?;
    let (tokens, divisor) = query_tokens(setup.late_scorer(named)?.as_ref(), query)?;
    let mut hits = index.search(&setup.corpus, &tokens, depth, stop)?;
    hits.iter_mut().for_each(|hit| hit.score /= divisor);
    Ok(hits)
}

/// The score of a text that is no passage of the corpus, with its vectors rounded as the index rounds them.
pub(super) fn score_tokens(
    setup: &Setup,
    named: &Named,
    question: &str,
    passage: &Passage,
) -> Result<f32, LaneError> {
    let index = setup.tokens(named)?.ok_or(LaneError::NotEmbedded)?;
    let model = setup.late_scorer(named)?;
    let query = model.vectors(question, Role::Query)?;
    let own =
        index.rounded(&model.vectors(&passage.contents(), Role::Passage)?).map_err(EncodeError::from)?;
    Ok(max_sim(&query, &own) / model.divisor(query.len()))
}

/// Which token of the query met which of the passage; `None` if the query is not one text.
pub(super) fn met(
    setup: &Setup,
    named: &Named,
    query: &Wording,
    at: PassageIx,
) -> Result<Option<Vec<Met>>, LaneError> {
    let [text] = query.texts() else { return Ok(None) };
    Ok(Some(setup.late_scorer(named)?.met(text, &setup.corpus.passage(at))?))
}

/// The weights of a query: of its text, or the mean of those of its texts.
fn weights(encoder: &SparseEncoder, query: &Wording) -> Result<TermWeights, LaneError> {
    let texts = query.texts();
    let mut all = TermWeights::new();
    for text in texts {
        all.extend(encoder.encode(text, Role::Query)?);
    }
    if texts.len() > 1 {
        all.sort_by_key(|(term, _)| *term);
        all.iter_mut().for_each(|(_, weight)| *weight /= texts.len() as f32);
        all.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 += next.1;
            }
            same
        });
    }
    Ok(all)
}

/// Searches the impact index.
pub(super) fn search_terms(
    setup: &Setup,
    named: &Named,
    query: &Wording,
    depth: usize,
    stop: &Stop,
) -> Result<Vec<Hit>, LaneError> {
    let index = setup.impacts(named)?.ok_or(LaneError::NotEmbedded)?;
    let query = weights(setup.sparse_encoder(named)?.as_ref(), query)?;
    Ok(index.search(&setup.corpus, &query, depth, stop)?.0)
}

/// The score of a text that is no passage of the corpus, with its weights rounded as the index rounds them.
pub(super) fn score_terms(
    setup: &Setup,
    named: &Named,
    question: &str,
    passage: &Passage,
) -> Result<f32, LaneError> {
    let encoder = setup.sparse_encoder(named)?;
    let index = setup.impacts(named)?.ok_or(LaneError::NotEmbedded)?;
    Ok(index.score(&encoder.encode(question, Role::Query)?, &encoder.passage(passage)?))
}

/// The terms of a query and of a passage, by the weights in the index; `None` if the corpus has no index yet or the query is no text.
pub(super) fn compared(
    setup: &Setup,
    named: &Named,
    query: &Wording,
    at: PassageIx,
) -> Result<Option<SparseMatch>, LaneError> {
    let Some(index) = setup.impacts(named)?.filter(|_| !query.texts().is_empty()) else { return Ok(None) };
    let encoder = setup.sparse_encoder(named)?;
    let (query, passage) = (weights(&encoder, query)?, index.passage(at)?);
    Ok(Some(compare(named.title(), &query, &passage, &|term| encoder.term(term))))
}

fn compare(
    model: &str,
    query: &[(u32, f32)],
    passage: &[(u32, f32)],
    word: &dyn Fn(u32) -> String,
) -> SparseMatch {
    let of = |all: &[(u32, f32)], term: u32| {
        all.binary_search_by_key(&term, |(term, _)| *term).ok().map(|at| all[at].1)
    };
    let mut shares = Vec::new();
    for (term, weight) in query {
        let own = of(passage, *term);
        shares.extend(own.map(|own| (word(*term), [*weight, own, weight * own])));
    }
    let score = shares.iter().map(|(_, numbers)| numbers[2]).sum();
    shares.sort_by(|a, b| b.1[2].total_cmp(&a.1[2]));
    let side = |own: &[(u32, f32)], other: &[(u32, f32)]| {
        let mut side: Vec<(String, f32, bool)> =
            own.iter().map(|(term, weight)| (word(*term), *weight, of(other, *term).is_some())).collect();
        side.sort_by(|a, b| b.1.total_cmp(&a.1));
        side
    };
    SparseMatch {
        model: model.to_owned(),
        score,
        shares,
        query: side(query, passage),
        passage: side(passage, query),
    }
}

/// What [`Setup::derived`] opened; `None` if it is not there.
pub(super) fn if_there<T>(opened: Result<Arc<T>, Option<SetupError>>) -> Result<Option<Arc<T>>, SetupError> {
    match opened {
        Ok(derived) => Ok(Some(derived)),
        Err(None) => Ok(None),
        Err(Some(error)) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_match_has_the_terms_of_both_with_their_products_and_says_which_terms_met() {
        let word = |term: u32| ["zoo", "ban", "cage", "wolf"][term as usize].to_owned();
        let query = [(0, 2.0), (1, 1.0), (3, 0.5)];
        let passage = [(0, 1.5), (2, 3.0), (3, 8.0)];
        let found = compare("m", &query, &passage, &word);
        // 2 · 1.5 + .5 · 8.
        assert_eq!(found.score, 7.0);
        assert_eq!(found.shares, [("wolf".into(), [0.5, 8.0, 4.0]), ("zoo".into(), [2.0, 1.5, 3.0])]);
        assert_eq!(
            found.query,
            [("zoo".into(), 2.0, true), ("ban".into(), 1.0, false), ("wolf".into(), 0.5, true)]
        );
        assert_eq!(
            found.passage,
            [("wolf".into(), 8.0, true), ("cage".into(), 3.0, false), ("zoo".into(), 1.5, true)]
        );
    }
}
