//! Which token comes next: the likeliest at temperature 0, else one drawn by chance that is the same for the same request.

use crate::llm::Request;
use crate::llm::record::key;

/// Draws tokens for one request.
pub(super) struct Draw {
    temperature: f64,
    chance: blake3::OutputReader,
}

impl Draw {
    /// Chance begins with all that is asked and the number of the sample.
    pub fn new(request: &Request) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(key(request).as_bytes()).update(&request.sample.to_le_bytes());
        Draw { temperature: request.temperature.into(), chance: hasher.finalize_xof() }
    }

    /// The next token; none where the numbers are none.
    pub fn next(&mut self, logits: &[f32]) -> Option<u32> {
        if logits.iter().any(|logit| logit.is_nan()) {
            return None;
        }
        let (best, top) =
            logits.iter().enumerate().reduce(|best, one| if one.1 > best.1 { one } else { best })?;
        if self.temperature <= 0.0 || !top.is_finite() {
            return u32::try_from(best).ok().filter(|_| top.is_finite());
        }
        let temperature = self.temperature;
        let weight = |logit: &f32| ((f64::from(*logit) - f64::from(*top)) / temperature).exp();
        let mut left = self.unit() * logits.iter().map(weight).sum::<f64>();
        let drawn = logits.iter().position(|logit| {
            left -= weight(logit);
            left < 0.0
        });
        u32::try_from(drawn.unwrap_or(best)).ok()
    }

    /// From 0 to 1, without 1.
    fn unit(&mut self) -> f64 {
        let mut bytes = [0; 8];
        self.chance.fill(&mut bytes);
        (u64::from_le_bytes(bytes) >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(temperature: f32, sample: u32) -> Draw {
        Draw::new(&Request { system: String::new(), prompt: "p".into(), temperature, max_tokens: 9, sample })
    }

    #[test]
    fn without_temperature_the_first_of_the_likeliest_is_taken() {
        assert_eq!(draw(0.0, 0).next(&[0.0, 2.0, -1.0, 2.0]), Some(1));
    }

    #[test]
    fn tokens_are_drawn_as_often_as_they_are_likely_and_the_same_ones_again() {
        let logits = [0.0, f32::ln(3.0), f32::NEG_INFINITY];
        let drawn = |sample| {
            let mut draw = draw(1.0, sample);
            (0..4000).map(|_| draw.next(&logits).unwrap()).collect::<Vec<_>>()
        };
        let ones = drawn(0).iter().filter(|token| **token == 1).count();
        assert!((2900..3100).contains(&ones) && !drawn(0).contains(&2), "{ones}");
        assert_eq!(drawn(0), drawn(0));
        assert_ne!(drawn(0), drawn(1));
    }

    #[test]
    fn what_is_no_number_gives_no_token() {
        assert_eq!(draw(0.0, 0).next(&[0.0, f32::NAN]), None);
        assert_eq!(draw(1.0, 0).next(&[f32::NEG_INFINITY]), None);
        assert_eq!(draw(0.0, 0).next(&[]), None);
    }
}
