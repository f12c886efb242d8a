//! Cutting a long text into passages of 100 words, as BERDS does.

/// Words a passage holds.
pub const WORDS: usize = 100;

/// Cuts `text` into runs of 100 words joined by single spaces; the last one may be shorter.
///
/// A word is what stands between white space. A text without words has no chunks.
pub fn chunks(text: &str) -> impl Iterator<Item = String> + '_ {
    let mut words = text.split_whitespace();
    std::iter::from_fn(move || {
        let mut chunk = String::from(words.next()?);
        for word in words.by_ref().take(WORDS - 1) {
            chunk.push(' ');
            chunk.push_str(word);
        }
        Some(chunk)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_250_words_gives_three_passages_and_loses_no_word() {
        let text: Vec<String> = (0..250).map(|i| format!("w{i}")).collect();
        let cut: Vec<String> = chunks(&text.join(" \n")).collect();
        let sizes: Vec<usize> = cut.iter().map(|c| c.split(' ').count()).collect();
        assert_eq!(sizes, [100, 100, 50]);
        assert_eq!(cut.join(" "), text.join(" "));
    }

    #[test]
    fn a_blank_text_gives_none_and_one_word_gives_one() {
        assert_eq!(chunks(" \n\t").count(), 0);
        assert_eq!(chunks("alone").collect::<Vec<_>>(), ["alone"]);
    }
}
