//! The effect of each added passage on the answer (the EM pattern), the passages that a probe keeps, and the stance.

use std::str::FromStr;

use super::pattern::Effect::*;

/// The effect of a passage on the answer when it was added, as Oh & Thorne name it.
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
    /// All effects, in the order in which they are listed.
    pub const ALL: [Effect; 5] = [
        Effect::InitiallyZero,
        Effect::DefinitePositive,
        Effect::DefiniteNegative,
        Effect::SemiPositive,
        Effect::SemiNegative,
    ];

    /// The abbreviation: `IZ`, `DP`, `DN`, `SP` or `SN`.
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
    /// The number of passages read.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether no passage was read.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The effect of each passage, by rank.
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

    /// EM@k: whether the answer from the first k is right. For k beyond the last passage, it is the value of the last one.
    pub fn em(&self, k: usize) -> bool {
        k.min(self.len()).checked_sub(1).is_some_and(|last| self.0[last])
    }

    /// AcEM@k: whether the answer was right at any depth up to k. It never falls as k grows.
    pub fn accumulated_em(&self, k: usize) -> bool {
        self.0.iter().take(k).any(|right| *right)
    }
}

/// EM@k and AcEM@k over a set of questions, and the gap between them, which is the cost of added passages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Accuracy {
    /// The share of questions answered right from the first k.
    pub em: f64,
    /// The share of questions answered right at any depth up to k.
    pub accumulated: f64,
}

impl Accuracy {
    /// Averages over questions; `None` if there are none.
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

/// A choice of passages by their effects: `probe3`, or only n of them, `probe3@5`.
///
/// The numbers are those of Oh & Thorne's tables. Their text does not define probe 6; what it keeps is what their code keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Probe {
    number: usize,
    /// The most passages that are kept.
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
    /// The six probes, without a limit of passages.
    pub fn all() -> impl Iterator<Item = Probe> {
        (1..=KEPT.len()).map(|number| Probe { number, first: None })
    }

    /// The same probe with at most so many passages.
    pub fn at_most(self, first: usize) -> Probe {
        Probe { first: Some(first), ..self }
    }

    /// The indices of the passages to keep, in the order they were read.
    ///
    /// Of a list from which no answer was right, all are kept: otherwise a probe would profit from what the reader knows without
    /// passages. If fewer are wanted than are kept, those with which the answer was right (DP, SP) come first, by rank, then the others,
    /// by rank: by rank alone, probe 3 would repeat AcEM.
    pub fn keep(self, effects: &[Effect]) -> Vec<usize> {
        let right = |effect: &Effect| matches!(effect, DefinitePositive | SemiPositive);
        let never = !effects.iter().any(right);
        let kept = |effect: &Effect| never || KEPT[self.number - 1].contains(effect);
        let mut places: Vec<usize> = (0..effects.len()).filter(|place| kept(&effects[*place])).collect();
        if let Some(first) = self.first.filter(|first| *first < places.len()) {
            // The sort is stable.
            places.sort_by_key(|place| !right(&effects[*place]));
            places.truncate(first);
        }
        places
    }
}

impl std::fmt::Display for Probe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "probe{}", self.number)?;
        self.first.map_or(Ok(()), |first| write!(f, "@{first}"))
    }
}

/// A text is not a probe's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected a probe, probe1 to probe6, optionally with the number of passages kept, as in probe3@5; not “{0}”"
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

/// The stance that the passages take together, if each is weighted by its rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stance {
    /// No passage so far takes a side.
    Silent,
    /// The first statement outweighs the second.
    Supports,
    /// The second statement outweighs the first.
    Opposes,
    /// The weights of the two statements differ by at most a fifth of their sum.
    Balanced,
}

/// The greatest difference between the sides, as a share of their sum, that counts as balanced.
const BALANCED: f64 = 0.2;

/// Whether a passage supports the first statement, and whether it supports the second.
pub type Sides = (bool, bool);

/// The stance after each passage: `stances(...)[k - 1]` is that of the first k.
///
/// The weight of a passage is `1/log2(rank + 1)`; one that supports both counts half for each side.
pub fn stances(ranked: &[Sides]) -> Vec<Stance> {
    let (mut supports, mut opposes) = (0.0, 0.0);
    let read = |(place, sides): (usize, &Sides)| {
        let weight = 1.0 / (place as f64 + 2.0).log2();
        match sides {
            (true, true) => (supports, opposes) = (supports + weight / 2.0, opposes + weight / 2.0),
            (true, false) => supports += weight,
            (false, true) => opposes += weight,
            (false, false) => {}
        }
        stance(supports, opposes)
    };
    ranked.iter().enumerate().map(read).collect()
}

fn stance(supports: f64, opposes: f64) -> Stance {
    let whole = supports + opposes;
    if whole == 0.0 {
        Stance::Silent
    } else if (supports - opposes).abs() <= BALANCED * whole {
        Stance::Balanced
    } else if supports > opposes {
        Stance::Supports
    } else {
        Stance::Opposes
    }
}

/// The indices of passages that changed the stance when they were added.
pub fn turns(stances: &[Stance]) -> Vec<usize> {
    (1..stances.len()).filter(|at| stances[*at] != stances[at - 1]).collect()
}

/// The indices of a smallest choice of one side's passages whose removal changes the stance; `None` if no choice does.
///
/// Passages below a removed one move up. Passages are removed from the top or from the bottom of one side. A search over all subsets
/// finds a smaller mixed choice in 4 of 1,000 random lists, and takes time that grows with 2^k.
pub fn removed_to_turn(ranked: &[Sides]) -> Option<Vec<usize>> {
    let last = |ranked: &[Sides]| stances(ranked).last().copied().unwrap_or(Stance::Silent);
    let stance_of_all = last(ranked);
    let changed = |removed: &[usize]| {
        let kept: Vec<Sides> =
            (0..ranked.len()).filter(|at| !removed.contains(at)).map(|at| ranked[at]).collect();
        last(&kept) != stance_of_all
    };
    let side = |wanted: Sides| (0..ranked.len()).filter(move |at| ranked[*at] == wanted);
    let candidates =
        [(true, false), (false, true), (true, true)].map(|wanted| side(wanted).collect::<Vec<_>>());
    let most = candidates.iter().map(Vec::len).max().unwrap_or(0);
    (1..=most).find_map(|size| {
        candidates.iter().filter(|places| places.len() >= size).find_map(|places| {
            let (top, bottom) = (&places[..size], &places[places.len() - size..]);
            [top, bottom].into_iter().find(|removed| changed(removed)).map(<[usize]>::to_vec)
        })
    })
}

#[cfg(test)]
mod pattern_tests {
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

#[cfg(test)]
mod probe_tests {
    use super::*;
    use crate::read::pattern::Pattern;

    /// IZ IZ DP SP DN DP DN SN DP SP
    fn effects() -> Vec<Effect> {
        "0011010011".chars().map(|bit| bit == '1').collect::<Pattern>().effects()
    }

    fn places(name: &str) -> Vec<usize> {
        name.parse::<Probe>().unwrap().keep(&effects())
    }

    #[test]
    fn every_probe_keeps_its_kinds_in_the_order_they_were_read() {
        assert_eq!(places("probe1"), [2, 3, 5, 8, 9]);
        assert_eq!(places("probe2"), [2, 5, 8]);
        assert_eq!(places("probe3"), [0, 1, 2, 3, 5, 8, 9]);
        assert_eq!(places("probe4"), [0, 1, 2, 5, 8]);
        assert_eq!(places("probe5"), [0, 1, 2, 3, 5, 7, 8, 9]);
        assert_eq!(places("probe6"), [0, 1, 2, 5, 7, 8]);
    }

    #[test]
    fn no_probe_keeps_a_definite_negative() {
        assert!(Probe::all().all(|probe| probe.keep(&[DefinitePositive, DefiniteNegative]) == [0]));
    }

    #[test]
    fn probe_3_by_size_takes_the_right_ones_first_and_a_single_passage_that_suffices_is_enough() {
        // DP and SP are at 2, 3, 5, 8, 9; IZ at 0, 1.
        assert_eq!(places("probe3@2"), [2, 3]);
        assert_eq!(places("probe3@6"), [2, 3, 5, 8, 9, 0]);
        assert_eq!(places("probe3@7"), places("probe3"), "all that are kept stay in their order");
        assert_eq!(places("probe4@2"), [2, 5]);
        assert_eq!("probe3@2".parse::<Probe>().unwrap().to_string(), "probe3@2");
        // 0010: the third passage makes the answer right, so it alone is probe3@1.
        let pattern: Pattern = [false, false, true, false].into_iter().collect();
        assert_eq!("probe3@1".parse::<Probe>().unwrap().keep(&pattern.effects()), [2]);
    }

    #[test]
    fn a_pattern_without_a_right_answer_keeps_the_whole_list_in_every_probe() {
        let never: Vec<Effect> = [false; 3].into_iter().collect::<Pattern>().effects();
        assert!(Probe::all().all(|probe| probe.keep(&never) == [0, 1, 2]));
        assert_eq!("probe1@2".parse::<Probe>().unwrap().keep(&never), [0, 1]);
        assert!(Probe::all().all(|probe| probe.keep(&[]).is_empty()));
    }

    #[test]
    fn what_is_no_probe_is_refused() {
        for name in ["probe0", "probe7", "probe", "3", "probe3@0", "probe3@x", ""] {
            assert!(name.parse::<Probe>().is_err(), "{name}");
        }
    }
}

#[cfg(test)]
mod stance_tests {
    use super::*;

    const S: Sides = (true, false);
    const O: Sides = (false, true);
    const B: Sides = (true, true);
    const N: Sides = (false, false);

    #[test]
    fn one_supporting_passage_decides_until_others_balance_it() {
        use Stance::*;
        assert_eq!(stances(&[N, S, N, O, O]), [Silent, Supports, Supports, Balanced, Balanced]);
    }

    #[test]
    fn a_passage_for_both_leaves_the_balance() {
        assert_eq!(stances(&[B, N]), [Stance::Balanced, Stance::Balanced]);
        assert_eq!(stances(&[]), []);
    }

    #[test]
    fn the_passages_that_turn_the_stance_are_named() {
        assert_eq!(turns(&stances(&[N, S, N, O, O])), [1, 3]);
        assert_eq!(turns(&[]), [] as [usize; 0]);
    }

    #[test]
    fn removing_the_only_voice_silences_the_list() {
        assert_eq!(removed_to_turn(&[N, S, N]), Some(vec![1]));
        assert_eq!(removed_to_turn(&[N, N]), None);
    }
}
