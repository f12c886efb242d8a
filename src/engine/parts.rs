//! The parts of a [`Setup`], each made when first asked for, once: the term index, encoders and vectors, the detector, the labels.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::judge::MANY;
use super::judgments::Shares;
use super::opening::{EncoderSlot, Part, SetupError, loaded, refitted, unusable};
use super::recipe::Recipe;
use super::setup::{Setup, statements};
use crate::annotate::{Decision, Key, text_hash};
use crate::corpus::store::Fields;
use crate::corpus::{Passage, PassageIx, sample};
use crate::detect::{
    Choice, CrossEncoder, CustomCrossEncoder, Detector, Fitted, LabelSource, PairLabels, Rule,
};
use crate::encode::{CustomEncoder, Encoder, MiniLm, Named, Remembering, Vectors, embed, ready};
use crate::question::Question;
use crate::retrieve::TermIndex;
use crate::work::{OnProgress, Stop, Stopped};

impl Setup {
    /// The passage at a place; one that the corpus does not hold says so.
    pub fn passage(&self, at: PassageIx) -> Passage {
        match at.as_outside() {
            Some(number) => self.runs.outside(number),
            None => self.corpus.passage(at),
        }
    }

    /// The term index.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn terms(&self) -> Result<Arc<TermIndex>, SetupError> {
        self.terms.get(|| {
            Ok(Arc::new(match &self.folder {
                Some(folder) => TermIndex::open(&folder.join(TermIndex::FOLDER))?,
                None => TermIndex::in_memory(&self.corpus)?,
            }))
        })
    }

    /// The metadata fields of the corpus, counted when first asked for.
    ///
    /// # Errors
    /// `stop` was set before all passages were looked at.
    pub fn fields(&self, on_progress: OnProgress<'_>, stop: &Stop) -> Result<Arc<Fields>, Stopped> {
        self.fields.get(|| Ok(Arc::new(Fields::read(&self.corpus, on_progress, stop)?)))
    }
}

impl Setup {
    /// A custom encoder, or the built-in one.
    ///
    /// # Errors
    /// It is not there or cannot be loaded.
    pub fn encoder(&self, model: Option<&Named>) -> Result<Arc<dyn Encoder>, SetupError> {
        self.encoder_slot(model).encoder.get(|| match model {
            None => Ok(Arc::new(Remembering::new(MiniLm::builtin()?)) as Arc<dyn Encoder>),
            Some(named) => {
                let custom = CustomEncoder::load(named, &named.towers(&self.models_folder)?)?;
                Ok(Arc::new(Remembering::new(custom)) as Arc<dyn Encoder>)
            }
        })
    }

    fn encoder_slot(&self, model: Option<&Named>) -> Arc<EncoderSlot> {
        let mut encoders = self.encoders.lock();
        if let Some((_, encoder_slot)) = encoders.iter().find(|(known, _)| known.as_ref() == model) {
            return Arc::clone(encoder_slot);
        }
        let encoder_slot = Arc::new(EncoderSlot { encoder: Part::new(), vectors: Part::new() });
        encoders.push((model.cloned(), Arc::clone(&encoder_slot)));
        encoder_slot
    }

    /// The corpus's vectors by an encoder, if it has been embedded to its end.
    ///
    /// # Errors
    /// They cannot be read, or the encoder cannot be loaded.
    pub fn vectors(&self, model: Option<&Named>) -> Result<Option<Arc<Vectors>>, SetupError> {
        let encoder = self.encoder(model)?;
        let dimensions = encoder.dimensions();
        let made = self.encoder_slot(model).vectors.get(|| {
            if self.folder.is_none()
                && let Some(rows) = sample::VECTORS.strip_prefix(sample_key(encoder.key()).as_slice())
            {
                return Ok(Arc::new(Vectors::from_bytes(rows, dimensions)));
            }
            let place = self.vectors_place(encoder.key());
            if !place.exists() {
                return Err(None);
            }
            let unusable = |error| Some(unusable(&place)(error));
            let vectors = Vectors::open(&place, dimensions).map_err(unusable)?;
            if vectors.len() != self.corpus.len() {
                // Cut short by somebody: it is made again.
                drop(vectors);
                fs::remove_file(&place).map_err(unusable)?;
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
    pub fn embed(
        &self,
        model: Option<&Named>,
        on_progress: OnProgress<'_>,
        stop: &Stop,
    ) -> Result<(), SetupError> {
        let encoder = self.encoder(model)?;
        let place = self.vectors_place(encoder.key());
        if let Some(folder) = place.parent() {
            fs::create_dir_all(folder).map_err(unusable(folder))?;
        }
        let _lock = self.library.lock(&self.corpus.fingerprint, on_progress, stop)?;
        if self.vectors(model)?.is_none() {
            embed(&self.corpus, encoder.as_ref(), &place, &self.models, on_progress, stop)?;
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
        on_progress: OnProgress<'_>,
        stop: &Stop,
    ) -> Result<ready::Taken, SetupError> {
        let encoder = self.encoder(model)?;
        let place = self.vectors_place(encoder.key());
        let _lock = self.library.lock(&self.corpus.fingerprint, on_progress, stop)?;
        let taken = {
            let made = (encoder.dimensions(), encoder.similarity());
            ready::import(&self.corpus, file, ids, made, &place, on_progress, stop)?
        };
        // The codes are made now and not when a lane waits for them.
        self.vectors(model)?;
        Ok(taken)
    }

    /// Embeds the corpus with every encoder whose vectors these lanes need and do not have.
    ///
    /// # Errors
    /// As [`Setup::embed`].
    pub fn embed_for(
        &self,
        lanes: &[Recipe],
        on_progress: OnProgress<'_>,
        stop: &Stop,
    ) -> Result<(), SetupError> {
        for recipe in lanes.iter().filter(|recipe| recipe.needs_vectors()) {
            if self.vectors(recipe.model())?.is_none() {
                self.embed(recipe.model(), on_progress, stop)?;
            }
        }
        Ok(())
    }

    fn vectors_place(&self, key: &str) -> PathBuf {
        let folder = self.folder.clone().unwrap_or_else(|| self.library.folder(&self.corpus.fingerprint));
        folder.join(format!("{key}.f32"))
    }
}

impl Setup {
    /// The detector.
    ///
    /// # Errors
    /// It cannot be loaded, or the fitted threshold is of another one.
    pub fn detector(&self) -> Result<Arc<dyn Detector>, SetupError> {
        self.detector.get(|| {
            let own = match &self.judges {
                Some(judges) => Arc::clone(&judges.detector),
                None => loaded(&self.choice, &self.models_folder)?,
            };
            refitted(own, self.fitted.as_ref())
        })
    }

    /// The threads that judge: those of the models, or those that wait for a server, which has more places than there are cores.
    pub fn judging(&self) -> &rayon::ThreadPool {
        self.judges.as_ref().map_or(&self.models, |judges| &judges.threads)
    }

    /// Questions of at most so many perspectives are judged deeper than k: none where every verdict costs.
    pub fn deep(&self) -> usize {
        if self.judges.is_some() { 0 } else { MANY }
    }

    /// What to show beside the detector's verdicts, without loading it: that it is experimental, or which one it is, where it
    /// is not the built-in one.
    ///
    /// # Errors
    /// The built-in card is damaged.
    pub fn caution(&self) -> Result<Option<String>, SetupError> {
        Ok(match (&self.choice, &self.judges) {
            (_, Some(judges)) => Some(format!("{}, a language model", judges.model)),
            (Choice::File(file), _) => Some(format!("those in {}", file.path.display())),
            (Choice::Custom { source, .. }, _) => Some(Named::from(source.clone()).title().to_owned()),
            _ => CrossEncoder::card()?.experimental.then(|| "experimental".to_owned()),
        })
    }

    /// What a language model that judges was asked, and what it cost.
    pub fn usage(&self) -> Option<String> {
        self.judges.as_ref()?.detector.usage()
    }

    /// The threshold that was fitted on labels by hand, if one is in use.
    pub fn fitted(&self) -> Option<&Fitted> {
        self.fitted.as_ref()
    }

    /// How what the detector reads becomes decisions, without loading it.
    ///
    /// # Errors
    /// The built-in files are damaged.
    pub fn rule(&self) -> Result<Arc<Rule>, SetupError> {
        let own = match (&self.choice, &self.judges) {
            (_, Some(judges)) => judges.detector.rule().clone(),
            // Loading the detector says what is wrong with its files.
            (Choice::Custom { source, supports }, _) => {
                CustomCrossEncoder::rule_of(source, supports.as_deref(), &self.models_folder)
                    .unwrap_or_default()
            }
            (Choice::File(file), _) => Rule::decided_elsewhere(&file.path.display().to_string()),
            _ => CrossEncoder::builtin_rule()?,
        };
        Ok(Arc::new(self.fitted.as_ref().map_or_else(|| own.clone(), |fitted| fitted.apply(&own))))
    }
}

impl Setup {
    /// What labels say of a pair, without the model.
    pub fn labelled(&self, statement: &str, passage: &str) -> PairLabels {
        let gold = self.labels.as_ref().and_then(|labels| labels.supports(statement, passage));
        let by_hand = self.human.read().label(statement, passage);
        PairLabels { model: None, gold, human: by_hand.flatten(), tied: by_hand == Some(None) }
    }

    /// Whether anything was decided by hand.
    pub fn has_human(&self) -> bool {
        !self.human.read().is_empty()
    }

    /// Lets what an annotator holds of a passage now count in place of what counted so far; `decisions` are those on `key`. All that
    /// is judged from now on sees it.
    pub fn decided(&self, key: &Key, mut decisions: Vec<Decision>) {
        // As when a journal is read: a label counts for the text it was given to.
        let text = self.corpus.find(&key.passage).map(|at| text_hash(&self.corpus.passage(at)));
        decisions.retain(|one| Some(&one.text) == text.as_ref());
        self.human.write().decided(key, decisions);
    }

    /// Whether the label file says anything of these questions' statements.
    pub fn has_gold(&self, questions: &[Question]) -> bool {
        self.labels.as_ref().is_some_and(|labels| labels.unasked(&statements(questions)) < labels.len())
    }

    /// The source that counts where this one is asked for: without a label file and without labels by hand, the most trusted are the
    /// model's.
    pub fn counted(&self, source: LabelSource) -> LabelSource {
        match source {
            LabelSource::Auto if self.labels.is_none() && !self.has_human() => LabelSource::Model,
            source => source,
        }
    }

    /// What to know about figures that rest on the model: which one, what it reached on our test and which share of the verdicts it
    /// made, and which labels of these questions exist instead. None where it made none.
    ///
    /// # Errors
    /// The built-in card is damaged.
    pub fn warned(
        &self,
        source: LabelSource,
        shares: Shares,
        questions: &[Question],
    ) -> Result<Option<String>, SetupError> {
        if shares.by_model() == 0 {
            return Ok(None);
        }
        let mut text = shares.words(&*self.rule()?);
        let percent = 100.0 * shares.by_model() as f64 / shares.all() as f64;
        if shares.by_model() == shares.all() {
            text += &format!(" · {percent:.0} % of the verdicts are the model's");
        }
        if self.caution()?.as_deref() == Some("experimental") {
            text += " · the model's verdicts are experimental: read the figures as hints";
            if self.counted(source) == LabelSource::Model && self.has_gold(questions) {
                text += ", or count gold labels with --label-source gold";
            }
        }
        Ok(Some(text))
    }

    /// Why nothing can be measured by a source; none if it can.
    pub fn lacks(&self, source: LabelSource) -> Option<&'static str> {
        match source {
            LabelSource::Gold if self.labels.is_none() => {
                Some("no labels came with this corpus; give some with --labels FILE")
            }
            LabelSource::Human if !self.has_human() => {
                Some("no labels were made by hand on this corpus; name a journal or project with --journal")
            }
            _ => None,
        }
    }
}

/// The first bytes of the built-in vectors: they are used only if they belong to these passages and this encoder.
pub fn sample_key(encoder: &str) -> [u8; 32] {
    *blake3::Hasher::new().update(sample::CORPUS).update(encoder.as_bytes()).finalize().as_bytes()
}
