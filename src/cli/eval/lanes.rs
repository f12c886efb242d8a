//! What every suite over lanes needs: the setup opened, the vectors made, the provenance told.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::bail;
use serde_json::{Value, json};

use super::super::args::{Common, Eval};
use super::super::interrupt::stop_on_interrupt;
use super::super::progress::Meter;
use crate::detect::{Fitted, LabelSource};
use crate::expand::Expansion;
use crate::pipeline::recipe::{Mmr, Norm, Rerank};
use crate::pipeline::sway::{UNLIKE, WORDINGS};
use crate::pipeline::{Answer, Asked, List, Lists, Plan, Recipe, Setup, Swayed, rank};
use crate::question::Question;
use crate::work::{Job, Progress, Stop};

/// Everything open, and the lanes to measure.
pub struct Lanes {
    pub setup: Setup,
    pub recipes: Vec<Recipe>,
    pub source: LabelSource,
    pub meter: Meter,
    pub stop: Stop,
}

impl Lanes {
    /// Opens the corpus with its question set, and embeds it where a lane needs that.
    pub fn open(common: &Common, args: &Eval) -> anyhow::Result<Self> {
        let (meter, stop) = (Meter::default(), stop_on_interrupt()?);
        let setup = Setup::open(&common.opening(), &|progress| meter.tell(progress), &stop)?;
        if setup.questions.is_empty() {
            bail!("lanes need questions: name a question set with --questions");
        }
        let source = common.source();
        if let Some(reason) = setup.lacks(source) {
            bail!("{reason}");
        }
        for note in &setup.notes {
            eprintln!("parallax: {note}");
        }
        let recipes = args.switches.applied(common.recipes())?;
        for run in recipes.iter().filter_map(Recipe::run) {
            // A file that is no run is an error now, and not a failure on every question.
            setup.runs.read(run, Plan::DEPTH, &stop)?;
        }
        setup.embed_for(&recipes, &|progress| meter.tell(progress), &stop)?;
        Ok(Lanes { setup, recipes, source, meter, stop })
    }

    /// Which labels counted.
    pub fn label_source(&self) -> String {
        self.setup.counted(self.source).to_string()
    }

    /// What a reader must know of figures that rest on the model.
    pub fn caution(&self) -> anyhow::Result<Option<String>> {
        let by_model = self.setup.warned(self.source, &self.setup.questions)?;
        let fitted = self.setup.fitted().map(Fitted::told);
        let told: Vec<String> = by_model.into_iter().chain(fitted).chain(self.setup.told()).collect();
        Ok((!told.is_empty()).then(|| told.join(" · ")))
    }

    /// What the figures were made with.
    pub fn provenance(&self) -> anyhow::Result<Value> {
        let detector = self.setup.detector()?;
        let mut brought = Vec::new();
        for model in self.recipes.iter().filter_map(Recipe::model) {
            brought.push(self.setup.encoder(Some(model))?.key().to_owned());
        }
        Ok(json!({
            "version": env!("CARGO_PKG_VERSION"),
            "models": {
                "detector": detector.key(),
                "threshold": detector.threshold(),
                "threshold_fitted_on": detector.fitted_on(),
                "encoder": self.setup.encoder(None)?.key(),
                "brought": brought,
            },
            "corpus": {
                "name": self.setup.corpus.name,
                "passages": self.setup.corpus.len(),
                "fingerprint": self.setup.corpus.fingerprint.0,
            },
            "seed": 0,
        }))
    }

    /// The question set's own normalisation: the greatest score of every lane that MMR weighs so. Questions without a list are told.
    pub fn maxima(&self) -> anyhow::Result<Vec<(Recipe, f32)>> {
        let mut maxima: Vec<(Recipe, f32)> = Vec::new();
        for recipe in &self.recipes {
            let norm = match recipe.switches.rerank {
                Some(Rerank::Mmr(Mmr { norm, .. })) => norm,
                _ => Norm::Question,
            };
            let retrieval = recipe.retrieval();
            if norm == Norm::Question || maxima.iter().any(|(known, _)| *known == retrieval) {
                continue;
            }
            let (mut greatest, mut failed) = (f32::NEG_INFINITY, Vec::new());
            for question in &self.setup.questions {
                let list = rank(
                    &self.setup,
                    &retrieval,
                    Asked::plainly(question),
                    &mut Lists::default(),
                    &self.stop,
                );
                match list {
                    Ok(list) => greatest = list.iter().map(|hit| hit.score).fold(greatest, f32::max),
                    Err(error) if error.is_stop() => return Ok(maxima),
                    Err(error) => failed.push(error),
                }
            }
            if let Some(error) = failed.first() {
                let (count, of) = (failed.len(), self.setup.questions.len());
                eprintln!(
                    "parallax: the greatest score of {retrieval} leaves out {count} of {of} questions, which have no list: {error}"
                );
            }
            if greatest.is_finite() {
                maxima.push((retrieval, greatest));
            }
        }
        Ok(maxima)
    }

    /// Lists for one question, with the question set's maxima.
    pub fn lists(maxima: &[(Recipe, f32)]) -> Lists {
        let mut lists = Lists::default();
        lists.maxima = maxima.to_vec();
        lists
    }

    /// Tells how many questions are done.
    pub fn tell(&self, done: usize, of: usize) {
        self.meter.tell(Progress { job: Job::Measuring, done: done as u64, total: of as u64 });
    }

    /// For every lane, the place of its plain form among them, if it is not that itself.
    pub fn plain_forms(&self) -> Vec<Option<usize>> {
        let plain = |recipe: &Recipe| {
            let plain = recipe.plain();
            self.recipes.iter().position(|other| *other == plain).filter(|_| *recipe != plain)
        };
        self.recipes.iter().map(plain).collect()
    }
}

/// Who wrote a list's expansion, and which fallbacks ran; each once.
fn said_by(list: &List) -> BTreeSet<String> {
    let told = list.trace.expansion().map(Expansion::told);
    told.into_iter().chain(list.trace.notes.iter().cloned()).collect()
}

/// What the lanes' lists say of themselves: who wrote their expansions, which fallbacks ran.
#[derive(Default)]
pub struct Said(BTreeMap<(String, String), BTreeSet<String>>);

impl Said {
    /// Listens to one question's lists.
    pub fn take(&mut self, plan: &Plan, answered: &Answer) {
        for (recipe, (ranking, _)) in plan.lanes.iter().zip(&answered.lanes) {
            let Ok(list) = ranking else { continue };
            said_by(list).into_iter().for_each(|text| self.add(recipe.to_string(), text, &plan.question));
        }
    }

    /// Listens to a lane that was asked one question in three wordings. What only some of them say is told as theirs.
    pub fn take_swayed(&mut self, recipe: &Recipe, question: &Question, swayed: &Swayed) {
        let mut by_text: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for (list, wording) in swayed.lists.iter().zip(WORDINGS) {
            for text in said_by(list) {
                by_text.entry(text).or_default().push(wording);
            }
        }
        for (text, wordings) in by_text {
            let all = wordings.len() == WORDINGS.len();
            let lane = if all { recipe.to_string() } else { format!("{recipe} {}", wordings.join(", ")) };
            self.add(lane, text, question);
        }
        swayed.note.iter().for_each(|note| self.add(recipe.to_string(), note.clone(), question));
        if swayed.unlike() {
            self.add(recipe.to_string(), UNLIKE.to_owned(), question);
        }
    }

    fn add(&mut self, lane: String, text: String, question: &Question) {
        self.0.entry((lane, text)).or_default().insert(question.id.clone());
    }

    /// A line each, with how many questions it holds for.
    pub fn notes(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|((lane, text), asked)| format!("{lane}: {text} ({} questions)", asked.len()))
    }
}
