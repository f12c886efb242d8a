//! Windows over a text that is longer than what a model reads at once.

/// Runs of at most `room` tokens that overlap by half and together hold all.
pub fn windows(tokens: usize, room: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    let mut start = Some(0);
    std::iter::from_fn(move || {
        let from = start?;
        let to = (from + room).min(tokens);
        start = (to < tokens).then_some(from + (room / 2).max(1));
        Some(from..to)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_overlap_by_half_and_leave_no_token_out() {
        assert!(windows(10, 10).eq(std::iter::once(0..10)));
        assert_eq!(windows(25, 10).collect::<Vec<_>>(), [0..10, 5..15, 10..20, 15..25]);
        assert_eq!(windows(3, 1).collect::<Vec<_>>(), [0..1, 1..2, 2..3]);
    }
}
