//! The vectors of the tasks' passages, each passage alone, kept below the data folder for later runs.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail};
use rayon::ThreadPool;

use crate::corpus::library::Library;
use crate::corpus::{Corpus, Fingerprint};
use crate::encode::{Encoder, Vectors, embed};
use crate::work::{Progress, Stop, Tell};

/// The vectors of every corpus, made where they are not kept from an earlier run.
///
/// # Errors
/// The model or the disk failed, or `stop` was set; what was made is kept.
pub fn all(
    corpora: &[Arc<Corpus>],
    encoder: &dyn Encoder,
    data: &Path,
    models: &ThreadPool,
    tell: Tell<'_>,
    stop: &Stop,
) -> anyhow::Result<Vec<Vectors>> {
    let folder = data.join("texts");
    fs::create_dir_all(&folder).with_context(|| {
        format!("{} cannot be used; name another folder with --data-dir", folder.display())
    })?;
    let total = corpora.iter().map(|corpus| corpus.len() as u64).sum();
    let mut before = 0;
    let mut made = Vec::new();
    for corpus in corpora {
        let tell = |progress: Progress| tell(Progress { done: before + progress.done, total, ..progress });
        made.push(of(corpus, encoder, &folder, models, &tell, stop, &Library::at(data))?);
        before += corpus.len() as u64;
    }
    Ok(made)
}

fn of(
    corpus: &Corpus,
    encoder: &dyn Encoder,
    folder: &Path,
    models: &ThreadPool,
    tell: Tell<'_>,
    stop: &Stop,
    library: &Library,
) -> anyhow::Result<Vectors> {
    let name = name(corpus, encoder.key());
    let place = folder.join(format!("{name}.f32"));
    if !place.exists() {
        let _lock = library.lock(&Fingerprint(name), tell, stop)?;
        // Another process may have made them while this one waited.
        if !place.exists() {
            embed(corpus, encoder, &place, models, tell, stop)?;
        }
    }
    let vectors = Vectors::open(&place, encoder.dimensions());
    let vectors = vectors.with_context(|| format!("{} cannot be read", place.display()))?;
    if vectors.len() != corpus.len() {
        bail!("{} is cut short; remove it, and it is made again", place.display());
    }
    Ok(vectors)
}

/// A name that no other texts and no other encoder have.
fn name(corpus: &Corpus, encoder: &str) -> String {
    let mut hasher = blake3::Hasher::new();
    let mut take = |text: &str| {
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    };
    take(encoder);
    corpus.places().for_each(|place| take(&corpus.passage(place).contents()));
    hasher.finalize().to_hex()[..32].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_texts_another_cut_between_them_and_another_encoder_have_another_name() {
        let of = |texts: &[&str], encoder| {
            let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
            name(&Corpus::of_texts("t", &texts).unwrap(), encoder)
        };
        let one = of(&["ab", "c"], "e");
        assert_eq!(one, of(&["ab", "c"], "e"));
        for other in
            [of(&["a", "bc"], "e"), of(&["ab", "d"], "e"), of(&["c", "ab"], "e"), of(&["ab", "c"], "f")]
        {
            assert_ne!(one, other);
        }
    }
}
