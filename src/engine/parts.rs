//! The parts of a [`Setup`], each opened once, when first needed: the term index, encoders and vectors, the detector, the labels.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::judge::MANY;
use super::judge::Shares;
use super::learned::if_there;
use super::opening::{EncoderSlot, SetupError, load_detector, with_threshold};
use super::recipe::{Mmr, Recipe, Rerank};
use super::setup::{Setup, statements};
use super::threads::LabelsChanged;
use crate::annotate::{Decision, Human, Key, journals, text_hash};
use crate::corpus::store::Fields;
use crate::corpus::{Passage, PassageIx, sample};
use crate::detect::{
    Choice, CrossEncoder, CustomCrossEncoder, Detector, Fitted, LabelSource, PairLabels, Rule,
};
use crate::encode::corpus_vectors::{Imported, carry_over, embed, import};
use crate::encode::{CustomEncoder, Encoder, MiniLm, Named, Remembering, Source, Vectors};
use crate::input::InputError;
use crate::llm::Chat;
use crate::measure::SupportSet;
use crate::question::Question;
use crate::retrieve::dense::DenseRetriever;
use crate::retrieve::{Retriever, TermIndex};
use crate::storage::checked::Damaged;
use crate::work::{OnProgress, Stop, Stopped};

/// The fewest questions whose similarities to the corpus say what is usual.
const FEWEST: usize = 5;
/// The most questions that are asked to find out what is usual.
const MOST: usize = 64;

impl Setup {
    /// A passage by its number; one that the corpus does not hold has a text that says so.
    pub fn passage(&self, at: PassageIx) -> Passage {
        match at.as_outside() {
            Some(number) => self.runs.outside(number),
            None => self.corpus.passage(at),
        }
    }

    /// A passage for a list: lists share it.
    pub fn listed(&self, at: PassageIx) -> Arc<Passage> {
        match at.as_outside() {
            Some(_) => Arc::new(self.passage(at)),
            None => self.shown.get(at, || self.passage(at)),
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

    /// The metadata fields of the corpus, counted when first needed.
    ///
    /// # Errors
    /// `stop` was set before all passages were read.
    pub fn fields(&self, on_progress: OnProgress<'_>, stop: &Stop) -> Result<Arc<Fields>, Stopped> {
        self.fields.get(|| Ok(Arc::new(Fields::read(&self.corpus, on_progress, stop)?)))
    }
}

impl Setup {
    /// The language model that expands a query or puts a list in order: the one that the lane names, else the one for all lanes, if there
    /// is one.
    ///
    /// # Errors
    /// The named one cannot be opened.
    pub fn lane_chat(&self, named: Option<&str>) -> Result<Option<Arc<dyn Chat>>, SetupError> {
        match named {
            Some(name) => self.named_chats.get(name).map(Some),
            None => Ok(self.chat.clone()),
        }
    }
}

impl Setup {
    /// A custom encoder, or the built-in one if `model` is `None`.
    ///
    /// # Errors
    /// It does not exist or cannot be loaded.
    pub fn encoder(&self, model: Option<&Named>) -> Result<Arc<dyn Encoder>, SetupError> {
        self.encoder_slot(model).encoder.get(|| match model {
            None => Ok(Arc::new(Remembering::new(MiniLm::builtin()?)) as Arc<dyn Encoder>),
            Some(named) => {
                let custom = CustomEncoder::load(named, &named.towers(&self.models_folder)?)?;
                Ok(Arc::new(Remembering::new(custom)) as Arc<dyn Encoder>)
            }
        })
    }

    pub(super) fn encoder_slot(&self, model: Option<&Named>) -> Arc<EncoderSlot> {
        let mut encoders = self.encoders.lock();
        if let Some((_, encoder_slot)) = encoders.iter().find(|(known, _)| known.as_ref() == model) {
            return Arc::clone(encoder_slot);
        }
        let encoder_slot = Arc::new(EncoderSlot::default());
        encoders.push((model.cloned(), Arc::clone(&encoder_slot)));
        encoder_slot
    }

    /// The corpus's vectors by an encoder, if all passages have been embedded.
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
            self.derived(&place, || {
                let vectors = Vectors::open(&place, dimensions)?;
                if vectors.len() != self.corpus.len() {
                    let rows = format!("{} rows of {}", vectors.len(), self.corpus.len());
                    return Err(Damaged::new(&place, rows).into());
                }
                Ok(vectors)
            })
        });
        if_there(made)
    }

    /// Embeds the corpus on all model threads. Continues where an earlier call stopped.
    ///
    /// # Errors
    /// The model or the disk failed, or `stop` was set; finished vectors are kept.
    pub fn embed(
        &self,
        model: Option<&Named>,
        on_progress: OnProgress<'_>,
        stop: &Stop,
    ) -> Result<(), SetupError> {
        if let Some(named) = model.filter(|named| named.is_late()) {
            return self.embed_late(named, on_progress, stop);
        }
        if let Some(named) = model.filter(|named| named.sparse().is_some()) {
            return self.embed_sparse(named, on_progress, stop);
        }
        let encoder = self.encoder(model)?;
        let place = self.vectors_place(encoder.key());
        let _lock = self.lock_to_make(&place, on_progress, stop)?;
        if self.vectors(model)?.is_none() {
            carry_over(&self.library, &self.corpus, &place, on_progress, stop)?;
            embed(&self.corpus, encoder.as_ref(), &place, &self.models, on_progress, stop)?;
        }
        Ok(())
    }

    /// Imports vectors that another program made with the encoder's model, instead of embedding the corpus.
    ///
    /// # Errors
    /// They do not fit the corpus or the model, the disk failed, or `stop` was set; earlier vectors do not change.
    pub fn take_vectors(
        &self,
        model: Option<&Named>,
        file: &Path,
        ids: Option<&Path>,
        on_progress: OnProgress<'_>,
        stop: &Stop,
    ) -> Result<Imported, SetupError> {
        let encoder = self.encoder(model)?;
        let place = self.vectors_place(encoder.key());
        let _lock = self.library.lock(&self.corpus.fingerprint, on_progress, stop)?;
        let imported = {
            let made = (encoder.dimensions(), encoder.similarity());
            import(&self.corpus, file, ids, made, &place, on_progress, stop)?
        };
        // Make the codes now, so that no lane has to wait for them.
        self.vectors(model)?;
        Ok(imported)
    }

    /// Embeds the corpus with every encoder whose vectors these lanes need and that has none yet.
    ///
    /// # Errors
    /// As for [`Setup::embed`].
    pub fn embed_for(
        &self,
        lanes: &[Recipe],
        on_progress: OnProgress<'_>,
        stop: &Stop,
    ) -> Result<(), SetupError> {
        for model in lanes.iter().flat_map(|recipe| self.encoders_of(recipe)) {
            if !self.is_embedded(model.as_ref())? {
                self.embed(model.as_ref(), on_progress, stop)?;
            }
        }
        Ok(())
    }

    /// The encoder by which MMR compares a lane's passages (`None` is the built-in one): the one that the recipe names; else UAE-Large, as
    /// in BERDS, if it was fetched and the corpus has its vectors; else the lane's own. MMR never starts an embedding by a large model
    /// that no one named.
    pub fn similarity_by(&self, recipe: &Recipe) -> Option<Named> {
        let named = |name: &str| Source::parse(name).ok().map(Named::from);
        match recipe.switches.rerank {
            Some(Rerank::Mmr(Mmr { sim: Some(name), .. })) => named(name),
            _ => {
                let usual = named(Mmr::USUAL).filter(|usual| {
                    usual.towers(&self.models_folder).is_ok()
                        && matches!(self.vectors(Some(usual)), Ok(Some(_)))
                });
                usual.or_else(|| recipe.model().cloned())
            }
        }
    }

    /// The encoders whose vectors of the corpus a lane needs, or the model whose index it needs.
    pub fn encoders_of(&self, recipe: &Recipe) -> Vec<Option<Named>> {
        let mut all = Vec::new();
        if recipe.base.reads_vectors() || recipe.indexed().is_some() {
            all.push(recipe.model().or(recipe.indexed()).cloned());
        }
        if matches!(recipe.switches.rerank, Some(Rerank::Mmr(_))) {
            let by = self.similarity_by(recipe);
            if !all.contains(&by) {
                all.push(by);
            }
        }
        all
    }

    /// If every passage is further from a question than from any question of the set: its greatest similarity, and the median of the
    /// greatest similarities over the set. `None` for a question of the set, without vectors, for a set of fewer than
    /// [`FEWEST`] questions, or if `stop` was set.
    pub fn far_off(&self, question: &Question, stop: &Stop) -> Option<(f32, f32)> {
        let known = |text: &str| self.questions.iter().any(|question| question.text == text);
        if self.questions.len() < FEWEST || question.text.is_empty() || known(&question.text) {
            return None;
        }
        let (encoder, vectors) = (self.encoder(None).ok()?, self.vectors(None).ok()??);
        let retriever = DenseRetriever::new(Arc::clone(&self.corpus), encoder, vectors);
        let best = |text: &str| Some(retriever.search(text, 1, stop).ok()?.first()?.score);
        let (least, usual) = match self.nearness.get() {
            Some(known) => *known,
            None => {
                // Every question of a large set is not needed for a median.
                let step = self.questions.len().div_ceil(MOST);
                let all = self.questions.iter().step_by(step).map(|question| best(&question.text));
                let mut all: Vec<f32> = all.collect::<Option<_>>()?;
                all.sort_by(f32::total_cmp);
                *self.nearness.get_or_init(|| (all[0], all[all.len() / 2]))
            }
        };
        let best = best(&question.text)?;
        (best < least).then_some((best, usual))
    }

    fn vectors_place(&self, key: &str) -> PathBuf {
        self.place(&format!("{key}.f32"))
    }
}

impl Setup {
    /// The detector.
    ///
    /// # Errors
    /// It cannot be loaded, or the threshold was fitted for another detector.
    pub fn detector(&self) -> Result<Arc<dyn Detector>, SetupError> {
        self.detector.get(|| {
            let own = match &self.judges {
                Some(judges) => Arc::clone(&judges.detector),
                None => load_detector(&self.choice, &self.models_folder)?,
            };
            with_threshold(own, self.fitted.as_ref())
        })
    }

    /// The threads that judge: the model threads, or, for a language model, the threads that wait for its server.
    pub fn judging(&self) -> &rayon::ThreadPool {
        self.judges.as_ref().map_or(&self.models, |judges| &judges.threads)
    }

    /// Questions with at most so many statements are judged deeper than k; 0 if a language model judges, because verdicts cost.
    pub fn deep(&self) -> usize {
        if self.judges.is_some() { 0 } else { MANY }
    }

    /// The note shown with the detector's verdicts, without loading it: `experimental`, or its name if it is not the built-in one.
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

    /// How often a language model that judges was asked, and what it cost.
    pub fn usage(&self) -> Option<String> {
        self.judges.as_ref()?.detector.usage()
    }

    /// The threshold that was fitted on labels by hand, if one is in use.
    pub fn fitted(&self) -> Option<&Fitted> {
        self.fitted.as_ref()
    }

    /// The rule that turns the detector's readings into decisions, without loading the detector.
    ///
    /// # Errors
    /// The built-in files are damaged.
    pub fn rule(&self) -> Result<Arc<Rule>, SetupError> {
        let own = match (&self.choice, &self.judges) {
            (_, Some(judges)) => judges.detector.rule().clone(),
            // If its files are damaged, loading the detector reports it.
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
    /// The labels on a pair.
    pub fn labelled(&self, statement: &str, passage: &str) -> PairLabels {
        let gold = self.labels.as_ref().and_then(|labels| labels.supports(statement, passage));
        let by_hand = self.human.read().label(statement, passage);
        PairLabels { model: None, gold, human: by_hand.flatten(), tied: by_hand == Some(None) }
    }

    /// Reads the journals that count again, and says what is different now.
    ///
    /// # Errors
    /// A journal cannot be read; then nothing has changed.
    pub fn reread_human(&self) -> Result<LabelsChanged, InputError> {
        let there: Vec<PathBuf> = self
            .label_paths
            .iter()
            .filter(|path| **path != self.journals || path.is_dir())
            .cloned()
            .collect();
        let (history, _) = journals(&there)?;
        let now = Human::of(&history, &self.corpus, &statements(&self.questions));
        let mut changed = LabelsChanged::default();
        let mut before = self.human.write();
        {
            let labels = |human: &Human| -> BTreeSet<(String, String, String, String, bool)> {
                let one = |d: &Decision| {
                    (d.by.clone(), d.question.clone(), d.passage.clone(), d.perspective.clone(), d.supports)
                };
                human.decisions().map(one).collect()
            };
            let (old, new) = (labels(&before), labels(&now));
            let different: Vec<_> = old.symmetric_difference(&new).collect();
            changed.by =
                different.iter().map(|one| one.0.clone()).collect::<BTreeSet<_>>().into_iter().collect();
            let pairs: BTreeSet<(&str, &str)> =
                different.iter().map(|(_, _, passage, statement, _)| (&**statement, &**passage)).collect();
            for (statement, passage) in pairs {
                let label = now.label(statement, passage);
                if let Some(at) = self.corpus.find(passage)
                    && label != before.label(statement, passage)
                {
                    changed.labels.push((at, statement.to_owned(), label));
                }
            }
        }
        *before = now;
        Ok(changed)
    }

    /// What every labelled passage of a question supports, by id: the passages that an ideal order is made of, whatever the lanes found.
    /// Empty if the model's verdicts are the source, because they have no such pool.
    pub fn label_pool(&self, question: &Question, source: LabelSource) -> Vec<(String, SupportSet)> {
        let mut ids: BTreeSet<String> = BTreeSet::new();
        if let Some(labels) = &self.labels {
            ids.extend(labels.passages(&question.perspectives));
        }
        ids.extend(self.human.read().passages(&question.perspectives));
        let support = |id: String| {
            let pairs: Vec<PairLabels> =
                question.perspectives.iter().map(|statement| self.labelled(statement, &id)).collect();
            let set = labelled_support(&pairs, source)?;
            Some((id, set))
        };
        ids.into_iter().filter_map(support).collect()
    }

    /// Whether there are labels by hand.
    pub fn has_human(&self) -> bool {
        !self.human.read().is_empty()
    }

    /// Replaces an annotator's decisions on `key`, which count for everything that is judged from now on.
    pub fn replace_human(&self, key: &Key, mut decisions: Vec<Decision>) {
        // As when a journal is read, a label counts only for the text that was labelled.
        let text = self.corpus.find(&key.passage).map(|at| text_hash(&self.corpus.passage(at)));
        decisions.retain(|one| Some(&one.text) == text.as_ref());
        self.human.write().decided(key, decisions);
    }

    /// Whether the label file has labels on these questions' statements.
    pub fn has_gold(&self, questions: &[Question]) -> bool {
        self.labels
            .as_ref()
            .is_some_and(|labels| labels.count_unknown_statements(&statements(questions)) < labels.len())
    }

    /// Resolves `auto`: without a label file and without labels by hand, it means the model.
    pub fn counted(&self, source: LabelSource) -> LabelSource {
        match source {
            LabelSource::Auto if self.labels.is_none() && !self.has_human() => LabelSource::Model,
            source => source,
        }
    }

    /// The warning for figures that rest on the model: its name, its figures on our test, its share of the verdicts, and whether gold
    /// labels exist instead. `None` if it made no verdict.
    ///
    /// # Errors
    /// The built-in card is damaged.
    pub fn model_warning(
        &self,
        source: LabelSource,
        shares: Shares,
        questions: &[Question],
    ) -> Result<Option<String>, SetupError> {
        if shares.by_model() == 0 {
            return Ok(None);
        }
        let mut text = shares.words(&*self.rule()?, &self.label_words());
        let percent = 100.0 * shares.by_model() as f64 / shares.all() as f64;
        if shares.by_model() == shares.all() {
            text += &format!(" · {percent:.0} % of the verdicts are the model's");
        }
        if self.caution()?.as_deref() == Some("experimental") {
            text += " · the model's verdicts are experimental: read the figures as hints";
            if self.counted(source) == LabelSource::Model && self.has_gold(questions) {
                text += &format!(", or count {} with --label-source gold", self.label_words());
            }
        }
        Ok(Some(text))
    }

    /// Why nothing can be measured by a source; `None` if it can.
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

/// What a passage supports by its labels alone, in the order of the statements: by those by hand if there is one, or gold's, as `source`
/// says. `None` without a label that counts.
fn labelled_support(pairs: &[PairLabels], source: LabelSource) -> Option<SupportSet> {
    let by_hand = match source {
        LabelSource::Model => return None,
        LabelSource::Human => true,
        LabelSource::Gold => false,
        LabelSource::Auto => pairs.iter().any(PairLabels::by_hand),
    };
    let labels: Vec<Option<bool>> =
        pairs.iter().map(|known| if by_hand { known.human } else { known.gold }).collect();
    let yes = labels.iter().enumerate().filter(|(_, label)| **label == Some(true)).map(|(i, _)| i);
    let set = SupportSet::of(yes).ok()?;
    // As for ranked passages: one yes is enough, because many label files list positives only.
    (!set.is_empty() || labels.iter().all(Option::is_some)).then_some(set)
}

/// The first bytes of the built-in vectors. They are a hash of passages and encoder, because the vectors are valid for these only.
pub fn sample_key(encoder: &str) -> [u8; 32] {
    *blake3::Hasher::new().update(sample::CORPUS).update(encoder.as_bytes()).finalize().as_bytes()
}
