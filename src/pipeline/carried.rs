//! What finished runs carry beside their ranks: passages, which can be the corpus, and questions.

use std::collections::HashSet;
use std::path::PathBuf;

use super::recipe::RunFile;
use super::setup::SetupError;
use crate::corpus::import::Source;
use crate::corpus::{results, sample};
use crate::input::InputError;
use crate::measure::trec::RunOrder;
use crate::question::{self, Question};
use crate::work::{Stop, Stopped};

/// The runs that carry passages of their own, as a corpus; none where the sample holds all of them, or there are none.
///
/// # Errors
/// A run cannot be read, or `stop` was set.
pub fn carried_by(runs: &[RunFile], stop: &Stop) -> Result<Option<Source>, SetupError> {
    let (mut files, mut known) = (Vec::<PathBuf>::new(), true);
    let sample = sample::corpus();
    for RunFile { path, .. } in runs {
        if stop.is_set() {
            return Err(SetupError::Corpus(Stopped.into()));
        }
        let path = path.canonicalize().map_err(|error| InputError::unreadable(path, &error))?;
        if files.contains(&path) || !results::is_results(&path)? {
            continue;
        }
        let held = |id: &str| sample.find(id).is_some();
        let run = results::read_run(&path, RunOrder::AsGiven, &mut |passage| known &= held(passage.id))?;
        if run.texts {
            files.push(path);
        }
    }
    Ok((!known && !files.is_empty()).then(|| Source::results(files)))
}

/// The questions that runs carry, each once.
///
/// # Errors
/// A run cannot be read, or asks what is no question.
pub fn asked_by(files: &[PathBuf]) -> Result<Vec<Question>, SetupError> {
    let mut all: Vec<Question> = Vec::new();
    let mut seen = HashSet::new();
    for file in files {
        for asked in results::read_run(file, RunOrder::AsGiven, &mut |_| {})?.questions() {
            let Some(text) = &asked.text else { continue };
            // A question that has no id of its own is known by its words, and counted.
            let id = if asked.id == *text { (all.len() + 1).to_string() } else { asked.id.clone() };
            if !seen.insert(asked.id.clone()) {
                continue;
            }
            let wrong = |expected| InputError::Unreadable {
                path: file.clone(),
                reason: format!("question {}: expected {expected}", asked.id),
            };
            all.push(
                question::set::question(id, text, asked.perspectives.clone(), asked.supports)
                    .map_err(wrong)?,
            );
        }
    }
    Ok(all)
}
