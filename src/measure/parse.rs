//! Parses the name of a measure, and suggests the nearest name for an unknown one.

use std::num::NonZeroUsize;
use std::str::FromStr;

use super::bias::CUTS;
use super::name::{Alpha, DEFAULT_REL, EXAMPLES, Measure, MeasureNameError, bare};
use crate::input;

impl FromStr for Measure {
    type Err = MeasureNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts = Parts::split(text.trim())?;
        let cutoff = || parts.required_cutoff();
        let measure = match parts.name {
            "nDCG" => Self::NDcg { k: parts.cutoff },
            "P" => Self::Precision { rel: parts.rel()?, k: cutoff()? },
            "R" => Self::Recall { rel: parts.rel()?, k: cutoff()? },
            "AP" => Self::AveragePrecision { rel: parts.rel()?, k: parts.cutoff },
            "RR" => Self::ReciprocalRank { rel: parts.rel()?, k: parts.cutoff },
            "Judged" => Self::Judged { k: cutoff()? },
            "alpha_nDCG" => Self::AlphaNDcg { alpha: parts.alpha()?, k: cutoff()? },
            "ERR_IA" => Self::ErrIa { k: cutoff()? },
            "StRecall" => Self::SubtopicRecall { k: cutoff()? },
            "P_IA" => Self::PrecisionIa { k: cutoff()? },
            // BERDS's own code and tables write it in lower case.
            "MRecall" | "mrecall" => Self::MRecall { k: cutoff()? },
            "Prec" => Self::Prec { k: cutoff()? },
            "Lean" => Self::Lean { k: cutoff()? },
            "Shift" => Self::Shift { k: cutoff()? },
            "Cover" => {
                parts.refuse_cutoff()?;
                Self::Cover
            }
            "pRecall" => Self::PRecall { k: cutoff()? },
            "rKL" => Self::RKl { k: parts.cutoff_among(&CUTS)? },
            "AWRF" => Self::Awrf { k: parts.cutoff },
            _ => return Err(unknown(&parts)),
        };
        parts.refuse_other_parameters(measure)?;
        Ok(measure)
    }
}

impl TryFrom<String> for Measure {
    type Error = MeasureNameError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

/// The parts of a measure's name: `NAME`, the parameters as written, and the cut-off.
struct Parts<'a> {
    whole: &'a str,
    name: &'a str,
    parameters: Vec<(&'a str, &'a str)>,
    cutoff: Option<NonZeroUsize>,
}

impl<'a> Parts<'a> {
    fn split(whole: &'a str) -> Result<Self, MeasureNameError> {
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

    /// The text after the name, such as `(alpha=0.3)@5`.
    fn tail(&self) -> &'a str {
        &self.whole[self.name.len()..]
    }

    fn required_cutoff(&self) -> Result<NonZeroUsize, MeasureNameError> {
        self.cutoff.ok_or_else(|| MeasureNameError::NoCutoff { given: self.whole.to_owned() })
    }

    fn refuse_cutoff(&self) -> Result<(), MeasureNameError> {
        match self.cutoff {
            None => Ok(()),
            Some(k) => {
                Err(MeasureNameError::TakesNoCutoff { name: self.name.to_owned(), found: k.to_string() })
            }
        }
    }

    fn rel(&self) -> Result<i32, MeasureNameError> {
        let Some(found) = self.parameter("rel") else {
            return Ok(DEFAULT_REL);
        };
        found.parse().ok().filter(|&rel| rel >= 1).ok_or_else(|| MeasureNameError::BadParameter {
            parameter: "rel",
            expected: "a grade from 1",
            found: found.to_owned(),
        })
    }

    fn alpha(&self) -> Result<Alpha, MeasureNameError> {
        let Some(found) = self.parameter("alpha") else {
            return Ok(Alpha::default());
        };
        found.parse().ok().and_then(Alpha::new).ok_or_else(|| MeasureNameError::BadParameter {
            parameter: "alpha",
            expected: "a number from 0 to 1",
            found: found.to_owned(),
        })
    }

    /// The cut-off, which must be one of these; the last of them if none is written.
    fn cutoff_among(&self, known: &[usize]) -> Result<NonZeroUsize, MeasureNameError> {
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

    /// Refuses parameters that the measure does not have. If they were ignored, a number would be printed under a wrong name.
    fn refuse_other_parameters(&self, measure: Measure) -> Result<(), MeasureNameError> {
        let known = measure.parameter().map(|(name, _)| name);
        let repeated = self.parameters.get(1);
        match self.parameters.iter().find(|(key, _)| Some(*key) != known) {
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

/// The error for an unknown name: with the nearest name, or with examples of all measures if none is near.
fn unknown(parts: &Parts<'_>) -> MeasureNameError {
    let given = parts.whole.to_owned();
    let near = input::nearest(parts.name, EXAMPLES.iter().map(|example| bare(example)));
    match EXAMPLES.iter().find(|example| Some(bare(example)) == near) {
        Some(example) => MeasureNameError::Unknown { given, nearest: suggestion(example, parts) },
        None => MeasureNameError::Unheard { given, known: EXAMPLES.join(", ") },
    }
}

/// The example's name with the parameters and cut-off as typed, if that is a measure; else the example.
fn suggestion(example: &str, parts: &Parts<'_>) -> String {
    let as_typed = format!("{}{}", bare(example), parts.tail());
    match as_typed.parse::<Measure>() {
        Ok(measure) => measure.to_string(),
        Err(_) => example.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn parsed(text: &str) -> Measure {
        text.parse().unwrap()
    }

    fn message(text: &str) -> String {
        text.parse::<Measure>().unwrap_err().to_string()
    }

    #[test]
    fn every_name_of_the_manual_survives_reading_and_printing() {
        let more = [
            "nDCG",
            "R(rel=2)@1000",
            "AP(rel=2)",
            "AP@100",
            "RR",
            "P(rel=2)@5",
            "alpha_nDCG(alpha=0.3)@5",
            "alpha_nDCG(alpha=1.0)@5",
            "RR(rel=2)@10",
            "rKL@5",
            "AWRF@10",
        ];
        for text in EXAMPLES.iter().copied().chain(more) {
            assert_eq!(parsed(text).to_string(), text);
            assert_eq!(parsed(&parsed(text).to_string()), parsed(text));
        }
    }

    #[test]
    fn a_default_parameter_makes_no_other_measure() {
        let written = parsed("alpha_nDCG(alpha=0.5)@5");
        assert_eq!(written, parsed("alpha_nDCG@5"));
        assert_eq!(written.to_string(), "alpha_nDCG@5");
        assert_eq!(parsed("R( rel = 1 )@5").to_string(), "R@5");
        assert_eq!(parsed("alpha_nDCG(alpha=0)@5"), parsed("alpha_nDCG(alpha=-0.0)@5"));
        assert_eq!(HashSet::from([written, parsed("alpha_nDCG@5")]).len(), 1);
    }

    #[test]
    fn lower_case_mrecall_is_read_as_berds_writes_it() {
        assert_eq!(parsed("mrecall@5").to_string(), "MRecall@5");
    }

    #[test]
    fn an_unknown_name_suggests_the_nearest_with_its_own_cut_off() {
        let nearest = |text: &str| match text.parse::<Measure>() {
            Err(MeasureNameError::Unknown { nearest, .. }) => nearest,
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(nearest("ndcg@7"), "nDCG@7");
        assert_eq!(nearest("nDGC@10"), "nDCG@10");
        assert_eq!(nearest("MRecal@5"), "MRecall@5");
        assert_eq!(nearest("st_recall@5"), "StRecall@5");
        assert_eq!(nearest("alpha-nDCG(alpha=0.3)@5"), "alpha_nDCG(alpha=0.3)@5");
        assert_eq!(nearest("rkl@10"), "rKL@10");
        assert_eq!(nearest("awrf@5"), "AWRF@5");
        assert_eq!(nearest("ap"), "AP");
        assert_eq!(nearest("Covers@5"), "Cover");
        assert_eq!(nearest("p@0005"), "P@5");
        assert_eq!(message("ndcg@7"), "unknown measure `ndcg@7`: did you mean `nDCG@7`?");
    }

    #[test]
    fn a_name_like_none_lists_them_all() {
        let message = message("perplexity@5");
        assert!(message.contains("nDCG@10") && message.contains("Cover"));
    }

    #[test]
    fn a_missing_superfluous_or_impossible_cut_off_says_so() {
        assert_eq!(message("P"), "`P` needs a cut-off, as in `P@5`");
        assert_eq!(message("Cover@5"), "`Cover` takes no cut-off, found `@5`");
        assert_eq!(parsed("rKL"), parsed("rKL@20"));
        assert_eq!(message("rKL@7"), "`rKL` has the cut-offs 5, 10, 20, found `@7`");
        for text in ["P@0", "P@", "P@-1", "P@+5", "P@five", "P@1.5"] {
            assert!(matches!(text.parse::<Measure>(), Err(MeasureNameError::BadCutoff { .. })), "{text}");
        }
    }

    #[test]
    fn parameters_are_checked_for_name_and_range() {
        assert_eq!(message("nDCG(rel=2)@10"), "`nDCG` takes no parameter `rel`");
        assert_eq!(message("R(rel=0)@10"), "expected a grade from 1 for `rel`, found `0`");
        assert_eq!(
            message("alpha_nDCG(alpha=1.5)@5"),
            "expected a number from 0 to 1 for `alpha`, found `1.5`"
        );
        assert!(message("alpha_nDCG(alpha=NaN)@5").contains("found `NaN`"));
    }

    #[test]
    fn broken_writing_is_refused() {
        for text in [
            "",
            "@5",
            "P(rel=2",
            "P)@5",
            "P(rel)@5",
            "(rel=2)@5",
            "P((rel=2))@5",
            "P(rel=2,rel=3)@5",
            "P@5@5",
        ] {
            assert!(matches!(text.parse::<Measure>(), Err(MeasureNameError::Malformed { .. })), "{text}");
        }
    }

    #[test]
    fn a_measure_travels_through_json_as_its_name() {
        let json = serde_json::to_string(&parsed("R(rel=2)@1000")).unwrap();
        assert_eq!(json, "\"R(rel=2)@1000\"");
        let back: Measure = serde_json::from_str(&json).unwrap();
        assert_eq!(back, parsed("R(rel=2)@1000"));
        assert!(serde_json::from_str::<Measure>("\"ndcg\"").is_err());
    }
}
