//! Breaking text into lines of a width in columns.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// Columns that a terminal gives a text: cluster by cluster, as it is drawn. The width of a whole string is smaller where
/// letters of two clusters could be joined (Arabic lam and alef).
pub fn columns_of(text: &str) -> usize {
    text.graphemes(true).map(UnicodeWidthStr::width).sum()
}

/// The lines of `text`, broken at spaces, and inside words that are wider than a line. Never more than `most` lines.
pub fn wrap(text: &str, width: usize, most: usize) -> Vec<Range<usize>> {
    let width = width.max(1);
    let mut lines = Vec::new();
    let (mut start, mut end, mut columns) = (0, 0, 0);
    for (at, word) in words(text) {
        let wide = columns_of(word);
        let gap = usize::from(columns > 0);
        if columns + gap + wide <= width {
            if columns == 0 {
                start = at;
            }
            (end, columns) = (at + word.len(), columns + gap + wide);
            continue;
        }
        if columns > 0 {
            lines.push(start..end);
        }
        (start, end, columns) = (at, at, 0);
        for (i, cluster) in word.grapheme_indices(true) {
            let wide = cluster.width();
            if columns + wide > width && columns > 0 {
                lines.push(start..end);
                (start, columns) = (at + i, 0);
            }
            (end, columns) = (at + i + cluster.len(), columns + wide);
            if lines.len() >= most {
                break;
            }
        }
        if lines.len() >= most {
            break;
        }
    }
    if columns > 0 {
        lines.push(start..end);
    }
    lines.truncate(most);
    lines
}

fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.split(' ')
        .scan(0, |at, word| {
            let start = *at;
            *at += word.len() + 1;
            Some((start, word))
        })
        .filter(|(_, word)| !word.is_empty())
}

/// The beginning of `text` that fits `width` columns, ending in `…` if anything was cut.
pub fn fit(text: &str, width: usize) -> String {
    if columns_of(text) <= width {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut columns = 0;
    for cluster in text.graphemes(true) {
        let wide = cluster.width();
        if columns + wide + 1 > width {
            break;
        }
        out.push_str(cluster);
        columns += wide;
    }
    if width > 0 {
        out.push('…');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str, width: usize) -> Vec<&str> {
        wrap(text, width, usize::MAX).into_iter().map(|range| &text[range]).collect()
    }

    #[test]
    fn lines_break_at_spaces_and_inside_words_that_are_too_wide() {
        assert_eq!(lines("the bears paced", 9), ["the bears", "paced"]);
        assert_eq!(lines("unbreakable", 4), ["unbr", "eaka", "ble"]);
        assert_eq!(lines("", 4), Vec::<&str>::new());
    }

    #[test]
    fn wide_characters_count_two_columns() {
        assert_eq!(lines("動物園は", 4), ["動物", "園は"]);
        assert_eq!(fit("動物園は", 5), "動物…");
    }

    #[test]
    fn no_width_panics_and_a_text_without_end_costs_only_the_lines_that_are_shown() {
        let text = "x".repeat(1_000_000);
        for width in 0..5 {
            assert_eq!(wrap(&text, width, 3).len(), 3);
            assert!(fit("動物園", width).width() <= width);
        }
    }
}
