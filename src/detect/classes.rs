//! Which of a classifier's classes means that the passage supports the statement, and what its numbers make of that.

/// What models trained for inference or stance call it, in small letters.
const SUPPORTS: [&str; 13] = [
    "entailment",
    "entail",
    "entails",
    "entailed",
    "supports",
    "support",
    "supported",
    "favor",
    "favour",
    "infavor",
    "pro",
    "agree",
    "for",
];

/// How a classifier's numbers are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Classes {
    supports: usize,
    /// Each class has a probability of its own.
    alone: bool,
}

impl Classes {
    /// Finds the class that means support among `labels`, by the name the user gave or by its meaning. One class
    /// alone may be a measure of anything, so its name has to say it too.
    ///
    /// # Errors
    /// It cannot be told; with the labels there are.
    pub fn find(labels: &[String], given: Option<&str>, many: bool) -> Result<Self, String> {
        let places = |wanted: &dyn Fn(&str) -> bool| -> Vec<usize> {
            labels.iter().enumerate().filter(|(_, label)| wanted(label)).map(|(i, _)| i).collect()
        };
        let found = match given {
            Some(given) => places(&|label| label.eq_ignore_ascii_case(given)),
            None => places(&|label| SUPPORTS.contains(&bare(label).as_str())),
        };
        match found.as_slice() {
            [supports] => Ok(Classes { supports: *supports, alone: many || labels.len() == 1 }),
            _ => Err(format!(
                "which of its classes means support cannot be told; they are {}: name one as in path:FOLDER@supports={}",
                labels.join(", "),
                labels.first().map_or("CLASS", String::as_str),
            )),
        }
    }

    /// The probability of support.
    pub fn probability(self, logits: &[f32]) -> Option<f32> {
        let own = *logits.get(self.supports)?;
        if self.alone {
            return Some(1.0 / (1.0 + (-own).exp()));
        }
        // Every other class against this one: nothing overflows to a number that is none.
        Some(1.0 / logits.iter().map(|other| (other - own).exp()).sum::<f32>())
    }
}

/// A label's letters.
fn bare(label: &str) -> String {
    label.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(labels: &[&str], given: Option<&str>) -> Result<Classes, String> {
        Classes::find(&labels.iter().map(|label| (*label).to_owned()).collect::<Vec<_>>(), given, false)
    }

    #[test]
    fn the_class_that_means_support_is_found_by_its_name_in_any_order() {
        for (labels, at) in [
            (&["CONTRADICTION", "NEUTRAL", "ENTAILMENT"][..], 2),
            (&["entailment", "not_entailment"], 0),
            (&["refutes", "SUPPORTS", "not enough info"], 1),
            (&["AGAINST", "FAVOR", "NONE"], 1),
            (&["CON", "PRO"], 1),
        ] {
            assert_eq!(find(labels, None), Ok(Classes { supports: at, alone: false }), "{labels:?}");
        }
        let one = Ok(Classes { supports: 0, alone: true });
        assert_eq!(find(&["entailment"], None), one);
        assert_eq!(find(&["LABEL_0"], Some("LABEL_0")), one);
    }

    #[test]
    fn labels_that_say_nothing_are_listed_with_how_to_name_one() {
        let told = find(&["LABEL_0", "LABEL_1"], None).unwrap_err();
        assert!(told.contains("LABEL_0, LABEL_1") && told.contains("@supports=LABEL_0"), "{told}");
        assert_eq!(find(&["LABEL_0", "LABEL_1"], Some("label_1")).unwrap().supports, 1);
        assert!(find(&["LABEL_0", "LABEL_1"], Some("yes")).is_err());
        assert!(find(&["pro", "support"], None).is_err());
        assert!(find(&["LABEL_0"], None).unwrap_err().contains("@supports=LABEL_0"));
    }

    #[test]
    fn probabilities_are_those_of_softmax_and_of_the_logistic_curve() {
        let three = find(&["entailment", "neutral", "contradiction"], None).unwrap();
        let p = three.probability(&[1.0, 0.0, -1.0]).unwrap();
        assert!((p - 0.665_240_96).abs() < 1e-6);
        assert_eq!(three.probability(&[-200.0, 200.0, 0.0]), Some(0.0));
        assert_eq!(find(&["x"], Some("x")).unwrap().probability(&[0.0]), Some(0.5));
        let many = Classes::find(&["pro".into(), "con".into()], None, true).unwrap();
        assert_eq!(many.probability(&[0.0, 9.0]), Some(0.5));
        assert_eq!(three.probability(&[]), None);
    }
}
