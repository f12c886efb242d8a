//! The labels of an open corpus: what those of files and those by hand say, and which of them are about nothing that is open.

use std::collections::HashSet;
use std::path::Path;
use std::sync::PoisonError;

use super::{Opening, Setup, SetupError};
use crate::annotate::{Decision, Human, Key, is_name, journals, text_hash};
use crate::corpus::Corpus;
use crate::detect::{Known, LabelSource, Labels};
use crate::question::Question;

impl Setup {
    /// What labels say of a pair, without the model.
    pub fn labelled(&self, statement: &str, passage: &str) -> Known {
        let gold = self.labels.as_ref().and_then(|labels| labels.supports(statement, passage));
        let human = self.human.read().unwrap_or_else(PoisonError::into_inner).supports(statement, passage);
        Known { model: None, gold, human }
    }

    /// Whether anything was decided by hand.
    pub fn has_human(&self) -> bool {
        !self.human.read().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Lets what an annotator holds of a passage now count in place of what counted so far; `decisions` are those on `key`. All that
    /// is judged from now on sees it.
    pub fn decided(&self, key: &Key, mut decisions: Vec<Decision>) {
        // As when a journal is read: a label counts for the text it was given to.
        let text = self.corpus.find(&key.passage).map(|at| text_hash(&self.corpus.passage(at)));
        decisions.retain(|one| Some(&one.text) == text.as_ref());
        self.human.write().unwrap_or_else(PoisonError::into_inner).decided(key, decisions);
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

    /// What is to be known of figures that rest on the model, and where labels of these questions are to be had instead.
    ///
    /// # Errors
    /// The carried card is damaged.
    pub fn warned(&self, source: LabelSource, questions: &[Question]) -> Result<Option<String>, SetupError> {
        let said = self.caution()?;
        Ok(match (self.counted(source), said.as_deref()) {
            (LabelSource::Model, Some("experimental")) => {
                let instead = if self.has_gold(questions) {
                    ", or count gold labels with --label-source gold"
                } else {
                    ""
                };
                Some(format!("the model's verdicts are experimental: read the figures as hints{instead}"))
            }
            (LabelSource::Auto, Some("experimental")) => {
                Some("where there is no label the model's verdicts count, which are experimental".to_owned())
            }
            (LabelSource::Model | LabelSource::Auto, Some(name)) => {
                Some(format!("the model's verdicts are those of {name}"))
            }
            _ => None,
        })
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

/// The name of whoever is at the machine, as far as it can be a file's.
pub(super) fn annotator() -> String {
    let name = ["USER", "USERNAME"].into_iter().find_map(|name| std::env::var(name).ok());
    name.filter(|name| is_name(name)).unwrap_or_else(|| "me".into())
}

/// The labels by hand of the journals named, else of those kept for the corpus, and what is to be told of them.
pub(super) fn human(
    opening: &Opening,
    place: &Path,
    corpus: &Corpus,
    questions: &[Question],
) -> Result<(Human, Vec<String>), SetupError> {
    let paths = match opening.journals.as_slice() {
        [] if place.is_dir() => vec![place.to_owned()],
        named => named.to_vec(),
    };
    let (history, mut notes) = journals(&paths)?;
    let human = Human::of(&history, corpus, &statements(questions));
    notes.extend(human.notes.iter().cloned());
    Ok((human, notes))
}

/// Lines of a label file that say nothing about this corpus and these questions.
pub(super) fn unused(labels: &Labels, corpus: &Corpus, questions: &[Question]) -> Vec<String> {
    let astray = labels.astray(|id| corpus.find(id).is_some());
    let unasked = if questions.is_empty() { 0 } else { labels.unasked(&statements(questions)) };
    let note = |count: usize, what: &str| {
        (count > 0).then(|| format!("--labels: {count} of {} {what}", labels.len()))
    };
    let passages = note(astray, "labels are of passages that this corpus does not hold");
    passages
        .into_iter()
        .chain(note(unasked, "labels are of statements that no question of the set has word for word"))
        .collect()
}

fn statements(questions: &[Question]) -> HashSet<&str> {
    questions.iter().flat_map(|question| &question.perspectives).map(String::as_str).collect()
}
