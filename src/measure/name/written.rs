//! A measure's name taken apart, before anybody knows whether there is such a measure.

use std::num::NonZeroUsize;

use super::{Alpha, DEFAULT_REL, Measure, MeasureNameError};

/// `NAME`, its parameters in the order written, and its cut-off.
pub(super) struct Written<'a> {
    pub whole: &'a str,
    pub name: &'a str,
    pub parameters: Vec<(&'a str, &'a str)>,
    pub cutoff: Option<NonZeroUsize>,
}

impl<'a> Written<'a> {
    pub fn split(whole: &'a str) -> Result<Self, MeasureNameError> {
        let malformed = || MeasureNameError::Malformed { given: whole.to_owned() };
        let (head, cutoff) = match whole.rsplit_once('@') {
            Some((head, digits)) => (head, Some(read_cutoff(whole, digits)?)),
            None => (whole, None),
        };
        let (name, inside) = match head.split_once('(') {
            Some((name, rest)) => (name, rest.strip_suffix(')').ok_or_else(malformed)?),
            None => (head, ""),
        };
        if name.is_empty() || name.contains([')', '@', '=']) || inside.contains(['(', ')']) {
            return Err(malformed());
        }
        let parameters = inside
            .split(',')
            .filter(|part| !part.trim().is_empty())
            .map(|part| {
                let (key, value) = part.split_once('=').ok_or_else(malformed)?;
                Ok((key.trim(), value.trim()))
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { whole, name, parameters, cutoff })
    }

    /// What follows the name: `(alpha=0.3)@5`.
    pub fn tail(&self) -> &'a str {
        &self.whole[self.name.len()..]
    }

    pub fn needed_cutoff(&self) -> Result<NonZeroUsize, MeasureNameError> {
        self.cutoff.ok_or_else(|| MeasureNameError::NoCutoff { given: self.whole.to_owned() })
    }

    pub fn refuse_cutoff(&self) -> Result<(), MeasureNameError> {
        match self.cutoff {
            None => Ok(()),
            Some(k) => {
                Err(MeasureNameError::TakesNoCutoff { name: self.name.to_owned(), found: k.to_string() })
            }
        }
    }

    pub fn rel(&self) -> Result<i32, MeasureNameError> {
        let Some(found) = self.parameter("rel") else {
            return Ok(DEFAULT_REL);
        };
        found.parse().ok().filter(|&rel| rel >= 1).ok_or_else(|| MeasureNameError::BadParameter {
            parameter: "rel",
            expected: "a grade from 1",
            found: found.to_owned(),
        })
    }

    pub fn alpha(&self) -> Result<Alpha, MeasureNameError> {
        let Some(found) = self.parameter("alpha") else {
            return Ok(Alpha::default());
        };
        found.parse().ok().and_then(Alpha::new).ok_or_else(|| MeasureNameError::BadParameter {
            parameter: "alpha",
            expected: "a number from 0 to 1",
            found: found.to_owned(),
        })
    }

    /// A cut-off of the list, the last one where none is written.
    pub fn one_of(&self, known: &[usize]) -> Result<NonZeroUsize, MeasureNameError> {
        let wanted = self.cutoff.map(NonZeroUsize::get).or(known.last().copied()).unwrap_or(0);
        let found = known.contains(&wanted).then(|| NonZeroUsize::new(wanted)).flatten();
        found.ok_or_else(|| MeasureNameError::OtherCutoff {
            name: self.name.to_owned(),
            known: known.iter().map(usize::to_string).collect::<Vec<_>>().join(", "),
            found: wanted.to_string(),
        })
    }

    fn parameter(&self, name: &str) -> Option<&'a str> {
        self.parameters.iter().find(|(key, _)| *key == name).map(|&(_, value)| value)
    }

    /// An ignored parameter would print a number under a name it does not deserve.
    pub fn refuse_unused(&self, measure: Measure) -> Result<(), MeasureNameError> {
        let known = match measure {
            Measure::Precision { .. }
            | Measure::Recall { .. }
            | Measure::AveragePrecision { .. }
            | Measure::ReciprocalRank { .. } => "rel",
            Measure::AlphaNDcg { .. } => "alpha",
            _ => "",
        };
        let repeated = self.parameters.get(1);
        match self.parameters.iter().find(|(key, _)| *key != known) {
            None if repeated.is_some() => Err(MeasureNameError::Malformed { given: self.whole.to_owned() }),
            None => Ok(()),
            Some((parameter, _)) => Err(MeasureNameError::UnknownParameter {
                name: self.name.to_owned(),
                parameter: (*parameter).to_owned(),
            }),
        }
    }
}

fn read_cutoff(whole: &str, digits: &str) -> Result<NonZeroUsize, MeasureNameError> {
    // `parse` alone would read `@+5`.
    Some(digits)
        .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
        .and_then(|digits| digits.parse().ok())
        .ok_or_else(|| MeasureNameError::BadCutoff { given: whole.to_owned(), found: digits.to_owned() })
}
