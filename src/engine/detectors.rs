//! Lists the detectors that can be chosen (the built-in one, those with short names, and language models on servers), and fetches one.

use std::path::Path;

use crate::assets::DETECTOR_JOINT;
use crate::detect::Choice;
use crate::detect::registry::{DETECTORS, NamedDetector};
use crate::encode::HubError;
use crate::encode::family::Config;
use crate::encode::hub::Hub;
use crate::encode::registry::{MANIFEST, folder};
use crate::input::InputError;
use crate::llm::{self, Nearby};
use crate::measure::share;
use crate::work::{OnProgress, Progress, Stop};

/// Replaces the figures of a detector that was not measured on our test.
const NOT_MEASURED: &str = "not measured here";

/// Where a detector is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// In the binary.
    BuiltIn,
    /// In the folder of models.
    Here,
    /// On the hub; it must be fetched first.
    OnHub,
    /// On a server.
    Served,
}

impl Presence {
    /// The words shown for it.
    pub fn words(self) -> &'static str {
        match self {
            Presence::BuiltIn => "built in",
            Presence::Here => "here",
            Presence::OnHub => "on the hub",
            Presence::Served => "on a server",
        }
    }
}

/// A detector that can be chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct DetectorOffer {
    /// Its name.
    pub name: String,
    /// How `--detector` names it.
    pub choice: Choice,
    /// For a language model: the server's URL and the model's name there.
    pub llm: Option<(String, String)>,
    /// Where it is.
    pub presence: Presence,
    /// Its size, if known.
    pub megabytes: Option<u32>,
    /// The languages that it reads.
    pub languages: &'static str,
    /// Its licence.
    pub licence: &'static str,
    /// Its figures on the project's test split.
    pub measured: String,
    /// Its repository, or the program that serves it.
    pub origin: String,
}

impl DetectorOffer {
    /// Whether these options name this detector.
    pub fn is_used(&self, choice: &Choice, llm: Option<&(String, String)>) -> bool {
        self.choice == *choice && self.llm.as_ref() == llm.filter(|_| *choice == Choice::Llm)
    }
}

/// Lists the detectors that need no server. `models` is the folder of fetched models.
pub fn detectors(models: &Path) -> Vec<DetectorOffer> {
    let builtin = DetectorOffer {
        name: "builtin".into(),
        choice: Choice::Builtin,
        llm: None,
        presence: Presence::BuiltIn,
        megabytes: Some(75),
        languages: "English",
        licence: "MIT OR Apache-2.0",
        measured: builtin_figures().unwrap_or_else(|| NOT_MEASURED.into()),
        origin: String::new(),
    };
    let named = DETECTORS.iter().map(|one| DetectorOffer {
        name: one.name.into(),
        choice: Choice::Custom { source: one.source(), supports: None },
        llm: None,
        presence: if is_here(models, one) { Presence::Here } else { Presence::OnHub },
        megabytes: Some(one.megabytes),
        languages: one.languages,
        licence: one.licence,
        measured: NOT_MEASURED.into(),
        origin: one.repository.into(),
    });
    std::iter::once(builtin).chain(named).collect()
}

/// Lists the model of `--llm` and those of servers on this machine. With `--offline` no server is looked for.
pub fn language_models(named: Option<&(String, String)>, offline: bool, stop: &Stop) -> Vec<DetectorOffer> {
    let found = if offline { Vec::new() } else { llm::nearby(&llm::PORTS, stop) };
    let named = named.into_iter().map(|(url, model)| {
        let name = if model.is_empty() { url.clone() } else { model.clone() };
        language_model(name, (url.clone(), model.clone()), "named with --llm".into())
    });
    let nearby = found.into_iter().flat_map(|Nearby { kind, url, models }| {
        let origin = format!("{kind} at {url}");
        let offer = move |model: String| language_model(model.clone(), (url.clone(), model), origin.clone());
        models.into_iter().map(offer)
    });
    let mut all: Vec<DetectorOffer> = named.collect();
    for offer in nearby {
        if all.iter().all(|other| other.llm != offer.llm) {
            all.push(offer);
        }
    }
    all
}

fn language_model(name: String, llm: (String, String), origin: String) -> DetectorOffer {
    DetectorOffer {
        name,
        choice: Choice::Llm,
        llm: Some(llm),
        presence: Presence::Served,
        megabytes: None,
        languages: "see its card",
        licence: "see its card",
        measured: NOT_MEASURED.into(),
        origin,
    }
}

/// The figures of the built-in detector on the test split, from its card.
fn builtin_figures() -> Option<String> {
    let fitted: serde_json::Value = serde_json::from_slice(DETECTOR_JOINT).ok()?;
    let test = fitted.get("test")?;
    let figure = |name: &str| Some(share(test.get(name)?.as_f64()?));
    Some(format!("side right {}, F1 {}, ROC-AUC {}", figure("right_side")?, figure("f1")?, figure("auc")?))
}

fn is_here(models: &Path, detector: &NamedDetector) -> bool {
    folder(models, detector.repository).join(MANIFEST).exists()
}

/// Why a detector cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The hub or the disk failed, or it was stopped.
    #[error(transparent)]
    Hub(#[from] HubError),
    /// The files cannot be read.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The repository no longer holds the model of this name.
    #[error(
        "{repository}: expected {expected}; it has changed: name the model as hf:{repository}@supports=CLASS"
    )]
    Changed {
        /// The repository.
        repository: &'static str,
        /// The classes expected and found.
        expected: String,
    },
    /// `--offline` forbids it.
    #[error("--offline: nothing is fetched; leave it out to fetch {0}")]
    Offline(&'static str),
}

/// Fetches a detector unless it is here, resuming an earlier attempt, and checks its classes.
///
/// # Errors
/// See [`FetchError`].
pub fn fetch_detector(
    detector: &NamedDetector,
    models: &Path,
    offline: bool,
    on_progress: OnProgress<'_>,
    stop: &Stop,
) -> Result<(), FetchError> {
    if !is_here(models, detector) {
        if offline {
            return Err(FetchError::Offline(detector.name));
        }
        Hub::from_env()?.fetch(detector.repository, models, on_progress, stop)?;
    }
    let classes = Config::read(&folder(models, detector.repository))?.own_labels();
    detector
        .check(&classes)
        .map_err(|error| FetchError::Changed { repository: detector.repository, expected: error.to_string() })
}

/// A step of listing detectors or fetching one.
#[derive(Clone, Debug, PartialEq)]
pub enum DetectorEvent {
    /// The detectors that need no server.
    Listed(Vec<DetectorOffer>),
    /// The language models, after all ports were tried.
    Served(Vec<DetectorOffer>),
    /// The progress of a fetch.
    Fetching(Progress),
    /// A fetch ended: the new list, and the error if it failed.
    Fetched(Vec<DetectorOffer>, Option<String>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_detector_comes_first_with_its_figures_and_the_others_are_not_measured() {
        let folder = tempfile::tempdir().unwrap();
        let all = detectors(folder.path());
        assert_eq!((all[0].name.as_str(), all[0].presence, all.len()), ("builtin", Presence::BuiltIn, 6));
        assert!(all[0].measured.contains("side right ."), "{}", all[0].measured);
        assert!(all[1..].iter().all(|one| one.presence == Presence::OnHub && one.measured == NOT_MEASURED));
        let place = super::folder(folder.path(), &all[3].origin);
        std::fs::create_dir_all(&place).unwrap();
        std::fs::write(place.join(MANIFEST), "{}").unwrap();
        assert_eq!(detectors(folder.path())[3].presence, Presence::Here);
    }

    #[test]
    fn the_one_in_use_is_known_by_its_choice_and_a_language_model_by_server_and_name() {
        let llm = ("http://127.0.0.1:1/v1".to_owned(), "bear-7b".to_owned());
        let [bear] = &language_models(Some(&llm), true, &Stop::never())[..] else { panic!() };
        assert!(bear.is_used(&Choice::Llm, Some(&llm)) && !bear.is_used(&Choice::Builtin, Some(&llm)));
        let builtin = &detectors(Path::new("nowhere"))[0];
        assert!(builtin.is_used(&Choice::Builtin, Some(&llm)) && !builtin.is_used(&Choice::Llm, Some(&llm)));
    }

    #[test]
    fn offline_nothing_is_fetched() {
        let nowhere = Path::new("nowhere");
        let refused = fetch_detector(&DETECTORS[0], nowhere, true, &|_| (), &Stop::never());
        assert_eq!(
            refused.unwrap_err().to_string(),
            "--offline: nothing is fetched; leave it out to fetch nli-xsmall"
        );
    }
}
