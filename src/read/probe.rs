//! Which kinds of passages are kept, to be read again (Oh & Thorne §5, Tables 6 and 8).

use std::str::FromStr;

use super::pattern::Effect::{self, *};

/// A choice of passages by what they did: `probe3`, or its first n passages, `probe3@5`.
///
/// Probe 6 is inferred from the paper's tables; the text does not define it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Probe {
    number: usize,
    /// At most so many are kept.
    pub first: Option<usize>,
}

const KEPT: [&[Effect]; 6] = [
    &[DefinitePositive, SemiPositive],
    &[DefinitePositive],
    &[InitiallyZero, DefinitePositive, SemiPositive],
    &[InitiallyZero, DefinitePositive],
    &[InitiallyZero, DefinitePositive, SemiPositive, SemiNegative],
    &[InitiallyZero, DefinitePositive, SemiNegative],
];

impl Probe {
    /// The six probes, at any size.
    pub fn all() -> impl Iterator<Item = Probe> {
        (1..=KEPT.len()).map(|number| Probe { number, first: None })
    }

    /// The passages that are kept, by their place from 0, in the order they were read. None kept means that the question is
    /// read alone.
    pub fn keep(self, effects: &[Effect]) -> Vec<usize> {
        let kept = effects.iter().enumerate().filter(|(_, effect)| KEPT[self.number - 1].contains(effect));
        kept.map(|(place, _)| place).take(self.first.unwrap_or(usize::MAX)).collect()
    }
}

impl std::fmt::Display for Probe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "probe{}", self.number)?;
        self.first.map_or(Ok(()), |first| write!(f, "@{first}"))
    }
}

/// Not a probe's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected a probe, probe1 to probe6, perhaps with the number of passages kept, as in probe3@5; not “{0}”"
)]
pub struct ProbeNameError(String);

impl FromStr for Probe {
    type Err = ProbeNameError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let wrong = || ProbeNameError(name.to_owned());
        let (kind, first) = match name.split_once('@') {
            Some((kind, first)) => (kind, Some(first.parse().ok().filter(|n| *n > 0).ok_or_else(wrong)?)),
            None => (name, None),
        };
        let number = kind.strip_prefix("probe").and_then(|number| number.parse().ok()).ok_or_else(wrong)?;
        if (1..=KEPT.len()).contains(&number) { Ok(Probe { number, first }) } else { Err(wrong()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::Pattern;

    /// IZ IZ DP SP DN DP DN SN DP SP
    fn effects() -> Vec<Effect> {
        "0011010011".chars().map(|bit| bit == '1').collect::<Pattern>().effects()
    }

    fn kept(name: &str) -> Vec<usize> {
        name.parse::<Probe>().unwrap().keep(&effects())
    }

    #[test]
    fn every_probe_keeps_its_kinds_in_the_order_they_were_read() {
        assert_eq!(kept("probe1"), [2, 3, 5, 8, 9]);
        assert_eq!(kept("probe2"), [2, 5, 8]);
        assert_eq!(kept("probe3"), [0, 1, 2, 3, 5, 8, 9]);
        assert_eq!(kept("probe4"), [0, 1, 2, 5, 8]);
        assert_eq!(kept("probe5"), [0, 1, 2, 3, 5, 7, 8, 9]);
        assert_eq!(kept("probe6"), [0, 1, 2, 5, 7, 8]);
    }

    #[test]
    fn no_probe_keeps_a_definite_negative() {
        assert!(Probe::all().all(|probe| probe.keep(&[DefiniteNegative]).is_empty()));
    }

    #[test]
    fn a_size_keeps_the_first_ones() {
        assert_eq!(kept("probe3@2"), [0, 1]);
        assert_eq!("probe3@2".parse::<Probe>().unwrap().to_string(), "probe3@2");
    }

    #[test]
    fn what_is_no_probe_is_refused() {
        for name in ["probe0", "probe7", "probe", "3", "probe3@0", "probe3@x", ""] {
            assert!(name.parse::<Probe>().is_err(), "{name}");
        }
    }
}
