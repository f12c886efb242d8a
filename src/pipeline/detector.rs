//! The detector that judges: loaded when first asked for, with the threshold that was fitted for it, and the threads it is asked by.

use std::path::Path;
use std::sync::Arc;

use super::setup::client;
use super::{MANY, MODELS, Opening, Setup, SetupError};
use crate::detect::{
    BroughtCrossEncoder, Choice, CrossEncoder, Detector, EVEN, Fitted, PromptedDetector, Refitted,
};
use crate::encode::Named;
use crate::input;
use crate::llm::{AT_ONCE, Chat, Recorded, Recording};

/// Where a prompted detector's replies are kept, in the data folder: a file a model.
const JUDGED: &str = "judged";

/// A language model that judges, and the threads that wait for its server.
pub(super) struct Judges {
    detector: Arc<dyn Detector>,
    model: String,
    threads: rayon::ThreadPool,
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

    /// What is to be said beside the detector's verdicts, without loading it: that it is experimental, or which one it is, where it
    /// is not the carried one.
    ///
    /// # Errors
    /// The carried card is damaged.
    pub fn caution(&self) -> Result<Option<String>, SetupError> {
        Ok(match (&self.choice, &self.judges) {
            (_, Some(judges)) => Some(format!("{}, a language model", judges.model)),
            (Choice::Brought { source, .. }, _) => Some(Named::from(source.clone()).title().to_owned()),
            _ => CrossEncoder::card()?.experimental.then(|| "experimental".to_owned()),
        })
    }

    /// What a language model that judges was asked, and what it cost.
    pub fn told(&self) -> Option<String> {
        self.judges.as_ref()?.detector.told()
    }

    /// The threshold that was fitted on labels by hand, if one is in use.
    pub fn fitted(&self) -> Option<&Fitted> {
        self.fitted.as_ref()
    }

    /// The threshold in use, without loading the detector.
    ///
    /// # Errors
    /// The carried card is damaged.
    pub fn threshold(&self) -> Result<f32, SetupError> {
        match &self.fitted {
            Some(fitted) => Ok(fitted.threshold),
            None if self.choice == Choice::Carried => Ok(CrossEncoder::card()?.threshold),
            None => Ok(EVEN),
        }
    }
}

/// A detector without a corpus, with the threshold that was fitted for it where there is one.
///
/// # Errors
/// It cannot be loaded, there is no language model to ask, or the threshold is of another one.
pub fn detector(
    choice: &Choice,
    fitted: Option<&Fitted>,
    opening: &Opening,
) -> Result<Arc<dyn Detector>, SetupError> {
    let own = match choice {
        Choice::Llm => prompted(opening, client(opening)?)?.0,
        choice => loaded(choice, &opening.data_dir.join(MODELS))?,
    };
    refitted(own, fitted)
}

/// The detectors that run here.
fn loaded(choice: &Choice, models: &Path) -> Result<Arc<dyn Detector>, SetupError> {
    Ok(match choice {
        Choice::Brought { source, supports } => {
            Arc::new(BroughtCrossEncoder::load(source, supports.as_deref(), models)?)
        }
        _ => Arc::new(CrossEncoder::carried()?),
    })
}

fn refitted(own: Arc<dyn Detector>, fitted: Option<&Fitted>) -> Result<Arc<dyn Detector>, SetupError> {
    Ok(match fitted {
        Some(fitted) => Arc::new(Refitted::new(own, fitted.clone())?),
        None => own,
    })
}

/// The language model where it is to judge: asked for at once, so that it is told before anything waits that there is none.
pub(super) fn judges(opening: &Opening, model: Option<Arc<dyn Chat>>) -> Result<Option<Judges>, SetupError> {
    if opening.detector != Choice::Llm {
        return Ok(None);
    }
    let (detector, model) = prompted(opening, model)?;
    let threads = rayon::ThreadPoolBuilder::new().num_threads(AT_ONCE).thread_name(|i| format!("judge-{i}"));
    let threads = threads.build();
    let threads =
        threads.map_err(|error| SetupError::Cache(format!("no threads to ask for verdicts: {error}")))?;
    Ok(Some(Judges { detector, model, threads }))
}

/// The replies that were named, then the model. What it says is recorded in a file of its own: what one model was asked is asked in
/// the same words of the next, and must not be answered for it.
fn prompted(
    opening: &Opening,
    model: Option<Arc<dyn Chat>>,
) -> Result<(Arc<dyn Detector>, String), SetupError> {
    let (recorded, bytes) = match &opening.replies {
        Some(path) => (Recorded::read(path)?, input::text(path)?),
        None if model.is_some() => (Recorded::default(), String::new()),
        None => {
            return Err(SetupError::Cache(
                "the detector llm has no model to ask; give --llm URL and --llm-model NAME, or recorded replies with --replies FILE"
                    .into(),
            ));
        }
    };
    let name = model.as_ref().map_or_else(|| recorded.model(), |model| model.model()).to_owned();
    // A model of that name elsewhere may be another one; a file's name holds a hash of what it is.
    let server = opening.llm.as_ref().map(|(url, _)| url.trim().trim_end_matches('/'));
    let server = server.filter(|url| !url.starts_with("gguf:")).unwrap_or_default();
    let key = PromptedDetector::key_of(&name, server, bytes.as_bytes());
    let journal = opening.data_dir.join(JUDGED).join(format!("{key}.jsonl"));
    let chat = Arc::new(Recording::open(recorded, model, journal)?.keeping(PromptedDetector::usable));
    Ok((Arc::new(PromptedDetector::new(chat, key)), name))
}
