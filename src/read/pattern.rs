//! Right or wrong at every k (the EM pattern), and what each passage did to the answer.

/// What a passage did to the answer when it was added (Oh & Thorne §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Effect {
    /// *Initially zero*: the answer was wrong and had never been right.
    InitiallyZero,
    /// *Definite positive*: it made the answer right.
    DefinitePositive,
    /// *Definite negative*: it made a right answer wrong.
    DefiniteNegative,
    /// *Semi-positive*: the answer was right and stayed so.
    SemiPositive,
    /// *Semi-negative*: the answer had been right before, was wrong, and stayed so.
    SemiNegative,
}

impl Effect {
    /// All of them, in the order they are listed.
    pub const ALL: [Effect; 5] = [
        Effect::InitiallyZero,
        Effect::DefinitePositive,
        Effect::DefiniteNegative,
        Effect::SemiPositive,
        Effect::SemiNegative,
    ];

    /// `IZ`, `DP`, `DN`, `SP`, `SN`.
    pub fn code(self) -> &'static str {
        match self {
            Effect::InitiallyZero => "IZ",
            Effect::DefinitePositive => "DP",
            Effect::DefiniteNegative => "DN",
            Effect::SemiPositive => "SP",
            Effect::SemiNegative => "SN",
        }
    }
}

/// EM@1 … EM@N of one question.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pattern(Vec<bool>);

impl FromIterator<bool> for Pattern {
    fn from_iter<I: IntoIterator<Item = bool>>(right: I) -> Self {
        Pattern(right.into_iter().collect())
    }
}

impl Pattern {
    /// How many passages were read.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether none was.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What each passage did, by rank.
    pub fn effects(&self) -> Vec<Effect> {
        let (mut before, mut ever) = (false, false);
        let effect = |right: &bool| {
            let effect = match (before, *right) {
                (false, true) => Effect::DefinitePositive,
                (true, true) => Effect::SemiPositive,
                (true, false) => Effect::DefiniteNegative,
                (false, false) if ever => Effect::SemiNegative,
                (false, false) => Effect::InitiallyZero,
            };
            (before, ever) = (*right, ever || *right);
            effect
        };
        self.0.iter().map(effect).collect()
    }

    /// EM@k: whether the answer read from the first k is right. Beyond the last passage nothing changes.
    pub fn em(&self, k: usize) -> bool {
        k.min(self.len()).checked_sub(1).is_some_and(|last| self.0[last])
    }

    /// AcEM@k: whether the answer was right at any depth up to k. Never falls as k grows.
    pub fn accumulated_em(&self, k: usize) -> bool {
        self.0.iter().take(k).any(|right| *right)
    }
}

/// EM@k and AcEM@k over a set of questions, and the gap between them: what adding passages has cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Accuracy {
    /// Share of questions answered right from the first k.
    pub em: f64,
    /// Share answered right at any depth up to k.
    pub accumulated: f64,
}

impl Accuracy {
    /// Over no questions there is none.
    pub fn at(k: usize, patterns: &[Pattern]) -> Option<Self> {
        let share = |right: usize| right as f64 / patterns.len() as f64;
        (!patterns.is_empty()).then(|| Accuracy {
            em: share(patterns.iter().filter(|pattern| pattern.em(k)).count()),
            accumulated: share(patterns.iter().filter(|pattern| pattern.accumulated_em(k)).count()),
        })
    }

    /// AcEM − EM, from 0 to 1.
    pub fn gap(self) -> f64 {
        self.accumulated - self.em
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(bits: &str) -> Pattern {
        bits.chars().map(|bit| bit == '1').collect()
    }

    fn codes(bits: &str) -> String {
        pattern(bits).effects().iter().map(|effect| effect.code()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_papers_own_pattern_gets_its_types() {
        assert_eq!(codes("0011010011"), "IZ IZ DP SP DN DP DN SN DP SP");
    }

    #[test]
    fn a_right_answer_from_the_first_passage_is_a_definite_positive() {
        assert_eq!(codes("1"), "DP");
        assert_eq!(codes("0"), "IZ");
        assert_eq!(codes(""), "");
    }

    #[test]
    fn a_single_slip_in_a_long_run_stands_where_it_happened() {
        let effects = pattern("11110011111111111111").effects();
        assert_eq!(effects.iter().position(|effect| *effect == Effect::DefiniteNegative), Some(4));
        assert_eq!(effects.iter().filter(|effect| **effect == Effect::DefiniteNegative).count(), 1);
    }

    #[test]
    fn accumulated_em_never_falls_and_is_never_below_em() {
        for bits in 0u32..1 << 10 {
            let pattern: Pattern = (0..10).map(|i| bits >> i & 1 == 1).collect();
            for k in 1..=10 {
                assert!(pattern.accumulated_em(k) >= pattern.em(k));
                assert!(pattern.accumulated_em(k) >= pattern.accumulated_em(k - 1));
            }
        }
    }

    #[test]
    fn the_gap_is_what_more_passages_cost() {
        let patterns = [pattern("10"), pattern("01"), pattern("00"), pattern("11")];
        let at = |k| Accuracy::at(k, &patterns).unwrap();
        assert_eq!((at(1).em, at(1).gap()), (0.5, 0.0));
        assert_eq!((at(2).em, at(2).accumulated, at(2).gap()), (0.5, 0.75, 0.25));
        assert_eq!(Accuracy::at(1, &[]), None);
    }

    #[test]
    fn beyond_the_last_passage_nothing_changes() {
        assert!(pattern("01").em(7) && !pattern("10").em(7) && !pattern("").em(3) && !pattern("1").em(0));
    }
}
