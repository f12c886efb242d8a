//! The detector that judges: loaded when first asked for, with the threshold that was fitted for it.

use std::path::Path;
use std::sync::Arc;

use super::{Setup, SetupError};
use crate::detect::{BroughtCrossEncoder, Choice, CrossEncoder, Detector, EVEN, Fitted, Refitted};
use crate::encode::Named;

impl Setup {
    /// The detector.
    ///
    /// # Errors
    /// It cannot be loaded, or the fitted threshold is of another one.
    pub fn detector(&self) -> Result<Arc<dyn Detector>, SetupError> {
        self.detector.get(|| detector(&self.choice, self.fitted.as_ref(), &self.models_folder))
    }

    /// What is to be said beside the detector's verdicts, without loading it: that it is experimental, or which one it is, where it
    /// is not the carried one.
    ///
    /// # Errors
    /// The carried card is damaged.
    pub fn caution(&self) -> Result<Option<String>, SetupError> {
        Ok(match &self.choice {
            Choice::Carried => CrossEncoder::card()?.experimental.then(|| "experimental".to_owned()),
            Choice::Brought { source, .. } => Some(Named::from(source.clone()).title().to_owned()),
        })
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

/// The detector that was named, with the threshold that was fitted for it where there is one. Models from the hub lie below `models`.
///
/// # Errors
/// It cannot be loaded, or the threshold is of another one.
pub fn detector(
    choice: &Choice,
    fitted: Option<&Fitted>,
    models: &Path,
) -> Result<Arc<dyn Detector>, SetupError> {
    let own: Arc<dyn Detector> = match choice {
        Choice::Carried => Arc::new(CrossEncoder::carried()?),
        Choice::Brought { source, supports } => {
            Arc::new(BroughtCrossEncoder::load(source, supports.as_deref(), models)?)
        }
    };
    Ok(match fitted {
        Some(fitted) => Arc::new(Refitted::new(own, fitted.clone())?),
        None => own,
    })
}
