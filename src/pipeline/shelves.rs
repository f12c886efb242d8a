//! Encoders and the corpus's vectors by each of them, made when first asked for, once.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::setup::{Part, unwritable};
use super::{Recipe, Setup, SetupError};
use crate::corpus::sample;
use crate::encode::{Brought, Encoder, MiniLm, Named, Remembering, Vectors, embed, ready};
use crate::work::{Stop, Tell};

/// What belongs to one encoder: its weights are in memory once, however many lanes read it.
pub(super) struct Shelf {
    encoder: Part<dyn Encoder>,
    vectors: Part<Vectors>,
}

/// A shelf an encoder; the carried one has no name.
pub(super) type Shelves = Mutex<Vec<(Option<Named>, Arc<Shelf>)>>;

impl Setup {
    /// A brought encoder, or the carried one.
    ///
    /// # Errors
    /// It is not there or cannot be loaded.
    pub fn encoder(&self, model: Option<&Named>) -> Result<Arc<dyn Encoder>, SetupError> {
        self.shelf(model).encoder.get(|| match model {
            None => Ok(Arc::new(Remembering::new(MiniLm::carried()?)) as Arc<dyn Encoder>),
            Some(named) => {
                let brought = Brought::load(named, &named.towers(&self.models_folder)?)?;
                Ok(Arc::new(Remembering::new(brought)) as Arc<dyn Encoder>)
            }
        })
    }

    fn shelf(&self, model: Option<&Named>) -> Arc<Shelf> {
        let mut shelves = self.shelves.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, shelf)) = shelves.iter().find(|(known, _)| known.as_ref() == model) {
            return Arc::clone(shelf);
        }
        let shelf = Arc::new(Shelf { encoder: Part::new(), vectors: Part::new() });
        shelves.push((model.cloned(), Arc::clone(&shelf)));
        shelf
    }

    /// The corpus's vectors by an encoder, if it has been embedded to its end.
    ///
    /// # Errors
    /// They cannot be read, or the encoder cannot be loaded.
    pub fn vectors(&self, model: Option<&Named>) -> Result<Option<Arc<Vectors>>, SetupError> {
        let encoder = self.encoder(model)?;
        let dimensions = encoder.dimensions();
        let made = self.shelf(model).vectors.get(|| {
            if self.folder.is_none()
                && let Some(rows) = sample::VECTORS.strip_prefix(sample_key(encoder.key()).as_slice())
            {
                return Ok(Arc::new(Vectors::from_bytes(rows, dimensions)));
            }
            let place = self.vectors_place(encoder.key());
            if !place.exists() {
                return Err(None);
            }
            let cache = |error: std::io::Error| Some(SetupError::Cache(unwritable(&place, &error)));
            let vectors = Vectors::open(&place, dimensions).map_err(cache)?;
            if vectors.len() != self.corpus.len() {
                // Cut short by somebody: it is made again.
                drop(vectors);
                fs::remove_file(&place).map_err(cache)?;
                return Err(None);
            }
            Ok(Arc::new(vectors))
        });
        match made {
            Ok(vectors) => Ok(Some(vectors)),
            Err(None) => Ok(None),
            Err(Some(error)) => Err(error),
        }
    }

    /// Embeds the corpus on all model threads, going on from where an earlier call stopped.
    ///
    /// # Errors
    /// The model or the disk failed, or `stop` was set; what was made is kept.
    pub fn embed(&self, model: Option<&Named>, tell: Tell<'_>, stop: &Stop) -> Result<(), SetupError> {
        let encoder = self.encoder(model)?;
        let place = self.vectors_place(encoder.key());
        if let Some(folder) = place.parent() {
            fs::create_dir_all(folder).map_err(|error| SetupError::Cache(unwritable(folder, &error)))?;
        }
        let _lock = self.library.lock(&self.corpus.fingerprint, tell, stop)?;
        if self.vectors(model)?.is_none() {
            embed(&self.corpus, encoder.as_ref(), &place, &self.models, tell, stop)?;
        }
        Ok(())
    }

    /// Takes vectors that were made elsewhere by the encoder's model, instead of embedding the corpus.
    ///
    /// # Errors
    /// They do not fit the corpus or the model, the disk failed, or `stop` was set; what was there before is as it was.
    pub fn take_vectors(
        &self,
        model: Option<&Named>,
        file: &Path,
        ids: Option<&Path>,
        tell: Tell<'_>,
        stop: &Stop,
    ) -> Result<ready::Taken, SetupError> {
        let encoder = self.encoder(model)?;
        let place = self.vectors_place(encoder.key());
        let _lock = self.library.lock(&self.corpus.fingerprint, tell, stop)?;
        let taken = {
            let made = (encoder.dimensions(), encoder.similarity());
            ready::import(&self.corpus, file, ids, made, &place, tell, stop)?
        };
        // The codes are made now and not when a lane waits for them.
        self.vectors(model)?;
        Ok(taken)
    }

    /// Embeds the corpus with every encoder whose vectors these lanes need and do not have.
    ///
    /// # Errors
    /// As [`Setup::embed`].
    pub fn embed_for(&self, lanes: &[Recipe], tell: Tell<'_>, stop: &Stop) -> Result<(), SetupError> {
        for recipe in lanes.iter().filter(|recipe| recipe.needs_vectors()) {
            if self.vectors(recipe.model())?.is_none() {
                self.embed(recipe.model(), tell, stop)?;
            }
        }
        Ok(())
    }

    fn vectors_place(&self, key: &str) -> PathBuf {
        let folder = self.folder.clone().unwrap_or_else(|| self.library.folder(&self.corpus.fingerprint));
        folder.join(format!("{key}.f32"))
    }
}

/// What the carried vectors begin with: they are of these passages by this encoder, or they are not used.
pub fn sample_key(encoder: &str) -> [u8; 32] {
    *blake3::Hasher::new().update(sample::CORPUS).update(encoder.as_bytes()).finalize().as_bytes()
}
