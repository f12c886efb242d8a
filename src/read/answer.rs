//! When an answer is right: SQuAD's normalisation and exact match.

/// An answer as SQuAD's evaluation compares it: lower case, without punctuation, without the articles *a*, *an* and *the*,
/// white space folded.
///
/// Punctuation is ASCII's, as in the published script: `“` stays.
pub fn normalised(answer: &str) -> String {
    let plain: String = answer.to_lowercase().chars().filter(|c| !c.is_ascii_punctuation()).collect();
    // An article is a whole word: what stands between two characters that are no letters, digits or `_`.
    let mut kept = String::with_capacity(plain.len());
    let mut word = String::new();
    let end = |word: &mut String, kept: &mut String| {
        kept.push_str(if matches!(word.as_str(), "a" | "an" | "the") { " " } else { word });
        word.clear();
    };
    for c in plain.chars() {
        if c.is_alphanumeric() {
            word.push(c);
        } else {
            end(&mut word, &mut kept);
            kept.push(c);
        }
    }
    end(&mut word, &mut kept);
    kept.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether an answer equals one of the gold answers, both normalised. An answer that normalises to nothing is never right.
pub fn matches(answer: &str, gold: &[impl AsRef<str>]) -> bool {
    let answer = normalised(answer);
    !answer.is_empty() && gold.iter().any(|gold| normalised(gold.as_ref()) == answer)
}

/// Whether two answers are the same one, both normalised.
pub fn same(left: &str, right: &str) -> bool {
    normalised(left) == normalised(right)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_articles_punctuation_and_white_space_do_not_count() {
        assert_eq!(normalised("  The  Eiffel-Tower!"), "eiffeltower");
        assert_eq!(normalised("a cat, an owl and the dog"), "cat owl and dog");
        assert_eq!(normalised("U.S.A."), "usa");
        assert_eq!(normalised("theatre another a"), "theatre another");
    }

    #[test]
    fn letters_outside_ascii_keep_their_accents_and_quotes() {
        assert_eq!(normalised("Wilhelm Röntgen"), "wilhelm röntgen");
        assert_eq!(normalised("“the” end"), "“ ” end");
    }

    #[test]
    fn any_gold_answer_will_do_and_nothing_is_never_right() {
        assert!(matches("the Beatles", &["Wings", "Beatles"]));
        assert!(!matches("Beatle", &["Beatles"]));
        assert!(!matches("", &["Beatles"]) && !matches("the", &["The"]));
        assert!(!matches("x", &[] as &[&str]));
    }
}
