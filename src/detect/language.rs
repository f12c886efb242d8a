//! Whether a text is in a language that the carried models were not tested on.

/// Letters that are looked at; more do not make it surer.
const LETTERS: usize = 2_000;

/// The name of a text's language, where it is surely not English.
pub fn foreign(text: &str) -> Option<&'static str> {
    let end = text.char_indices().nth(LETTERS).map_or(text.len(), |(i, _)| i);
    let found = whatlang::detect(&text[..end])?;
    (found.is_reliable() && found.lang() != whatlang::Lang::Eng).then(|| found.lang().eng_name())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::sample;

    #[test]
    fn other_languages_are_named_and_no_passage_of_the_sample_is_taken_for_one() {
        let german = "Zoos sollten verboten werden, weil wilde Tiere in Käfigen leiden und dort nicht so leben können, wie es \
                      ihrer Art entspricht. Viele von ihnen gehen den ganzen Tag im Kreis.";
        assert_eq!(foreign(german), Some("German"));
        assert_eq!(foreign("動物園は禁止されるべきです。動物は檻の中で苦しみます。"), Some("Japanese"));
        let corpus = sample::corpus();
        let taken: Vec<String> = corpus
            .places()
            .map(|at| corpus.passage(at))
            .filter_map(|passage| Some(format!("{}: {}", foreign(&passage.text)?, passage.text)))
            .collect();
        assert_eq!(taken, Vec::<String>::new());
        assert_eq!(foreign(""), None);
        assert_eq!(foreign("42"), None);
    }
}
