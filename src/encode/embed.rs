//! Embedding a whole corpus: on all cores, in order, and resumed where it was stopped.
//!
//! Rows are appended to `KEY.f32.part`; the file gets its final name when the last row is on disk. A kill loses at most one
//! block.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;

use rayon::ThreadPool;

use super::{EncodeError, Encoder};
use crate::corpus::{Corpus, PassageIx};
use crate::work::{Job, Progress, Stop, Stopped, Tell, on_all};

/// Passages a thread encodes between two writes.
const SHARE: usize = 8;

/// Why a corpus was not embedded to its end. What was written is kept.
#[derive(Debug, thiserror::Error)]
pub enum EmbedError {
    /// The model failed.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// The rows could not be written.
    #[error(
        "the vectors cannot be written ({0}); make room or name another folder with --data-dir, what was made so far is kept"
    )]
    Write(#[from] std::io::Error),
    /// Stopped on request.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// Writes the vectors of `corpus` to `place`, going on from where an earlier call was stopped.
///
/// # Errors
/// The model or the disk failed, or `stop` was set.
pub fn embed(
    corpus: &Corpus,
    encoder: &dyn Encoder,
    place: &Path,
    models: &ThreadPool,
    tell: Tell<'_>,
    stop: &Stop,
) -> Result<(), EmbedError> {
    let part = place.with_extension("f32.part");
    let row = encoder.dimensions() as u64 * 4;
    let mut file = OpenOptions::new().create(true).append(true).open(&part)?;
    let mut done = file.metadata()?.len() / row;
    // A row that was cut short by a kill is made again.
    file.set_len(done * row)?;
    let total = corpus.len() as u64;
    let told = |done| tell(Progress { job: Job::Embedding, done, total });
    told(done);
    while done < total {
        if stop.is_set() {
            file.sync_all()?;
            return Err(Stopped.into());
        }
        let end = (done + (models.current_num_threads() * SHARE) as u64).min(total);
        let rows = on_all(models, (end - done) as usize, &Stop::never(), |i| {
            encoder.passage(&corpus.passage(PassageIx(done as u32 + i as u32)))
        });
        let rows = rows.into_iter().collect::<Result<Vec<_>, EncodeError>>()?;
        let bytes: Vec<u8> = rows.iter().flatten().flat_map(|x| x.to_le_bytes()).collect();
        file.write_all(&bytes)?;
        done = end;
        told(done);
    }
    file.sync_all()?;
    drop::<File>(file);
    fs::rename(part, place)?;
    Ok(())
}
