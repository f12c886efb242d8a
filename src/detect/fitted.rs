//! A threshold that was fitted on labels by hand, in the place of the detector's own.
//!
//! It is of one detector only, and says on how many labels it was fitted wherever it is used.

use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;

use super::{DetectError, Detector};
use crate::corpus::Passage;
use crate::input::{BadLine, InputError};
use crate::work::Stop;

/// What `annotate agree --refit` writes.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Fitted {
    /// From which probability on a verdict is a yes.
    pub threshold: f32,
    /// How many labels it was fitted on.
    pub labels: usize,
    /// The detector that it is of.
    pub detector: String,
}

impl Fitted {
    /// Reads such a file.
    ///
    /// # Errors
    /// It is no such file, or the threshold is no probability.
    pub fn read(path: &Path) -> Result<Self, InputError> {
        let text = std::fs::read_to_string(path).map_err(|error| InputError::unreadable(path, &error))?;
        let bad = |line: usize, why: String| {
            InputError::BadLines(vec![BadLine {
                file: path.into(),
                line: line.max(1),
                expected: format!("a threshold as `annotate agree --refit` writes it ({why})"),
                found: text.lines().nth(line.saturating_sub(1)).unwrap_or_default().into(),
            }])
        };
        let fitted: Fitted =
            serde_json::from_str(&text).map_err(|error| bad(error.line(), error.to_string()))?;
        if (0.0..=1.0).contains(&fitted.threshold) { Ok(fitted) } else { Err(bad(1, "from 0 to 1".into())) }
    }

    /// For the screen: that it was fitted, and on what.
    pub fn told(&self) -> String {
        format!("threshold {:.3} fitted on {} labels by hand", self.threshold, self.labels)
    }
}

/// A detector with a fitted threshold.
pub struct Refitted {
    inner: Arc<dyn Detector>,
    fitted: Fitted,
}

impl Refitted {
    /// The detector with that threshold.
    ///
    /// # Errors
    /// It was fitted for another detector.
    pub fn new(inner: Arc<dyn Detector>, fitted: Fitted) -> Result<Self, DetectError> {
        if fitted.detector == inner.key() {
            Ok(Refitted { inner, fitted })
        } else {
            Err(DetectError::OtherThreshold { of: fitted.detector, here: inner.key().to_owned() })
        }
    }
}

impl Detector for Refitted {
    fn key(&self) -> &str {
        self.inner.key()
    }

    fn threshold(&self) -> f32 {
        self.fitted.threshold
    }

    fn fitted_on(&self) -> Option<usize> {
        Some(self.fitted.labels)
    }

    fn experimental(&self) -> bool {
        self.inner.experimental()
    }

    fn at_once(&self) -> Option<usize> {
        self.inner.at_once()
    }

    fn told(&self) -> Option<String> {
        self.inner.told()
    }

    fn judge(&self, passage: &Passage, statement: &str, stop: &Stop) -> Result<f32, DetectError> {
        self.inner.judge(passage, statement, stop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Fitted, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        Fitted::read(file.path()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_file_that_holds_no_threshold_is_told() {
        assert!(read("{").unwrap_err().contains(":1: expected a threshold"));
        assert!(read("{\n\"threshold\": \"x\"}").unwrap_err().contains(":2: expected a threshold"));
        let high = "{\"threshold\": 1.5, \"labels\": 3, \"detector\": \"d\"}";
        assert!(read(high).unwrap_err().contains("from 0 to 1"));
    }
}
