//! What a detector says of the pairs that people labelled.

use std::collections::HashMap;

use super::Decision;

/// A detector's probabilities.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Model {
    /// Name and hash of its weights.
    pub detector: String,
    /// From which probability on a verdict is a yes.
    pub threshold: f32,
    /// Hash of the passage's title and text, and the statement, to the probability.
    pub p: HashMap<(String, String), f32>,
}

impl Model {
    /// The probability that the decision's passage supports its statement, where the detector gave one.
    pub fn p(&self, decision: &Decision) -> Option<f32> {
        self.p.get(&(decision.text.clone(), decision.perspective.clone())).copied()
    }
}
