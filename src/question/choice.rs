//! Questions that offer a choice (`a blessing or a curse?`), which have no yes or no.
//!
//! Owns the reading of *or*. It must not build statements.

use super::lexicon as lex;
use super::tokens::Word;
use super::verbs;

/// True where *or* separates answers rather than joining words of one claim.
pub(super) fn offers_choice(auxiliary: &str, subject: &[Word], rest: &[Word]) -> bool {
    let graded = rest.iter().take(4).any(|word| {
        matches!(word.key.as_str(), "better" | "best" | "worse" | "worst" | "more" | "most")
            || (word.key.len() > 5 && (word.key.ends_with("ier") || word.key.ends_with("est")))
    });
    if graded && !rest.iter().any(|word| word.key == "than") && subject.iter().any(|word| word.key == "or") {
        return true;
    }
    rest.iter()
        .enumerate()
        .any(|(at, word)| word.key == "or" && !word.aside && separates(auxiliary, rest, at))
}

fn separates(auxiliary: &str, rest: &[Word], at: usize) -> bool {
    const OPPOSITES: [(&str, &str); 22] = [
        ("good", "bad"),
        ("right", "wrong"),
        ("safe", "dangerous"),
        ("help", "hurt"),
        ("helpful", "harmful"),
        ("beneficial", "harmful"),
        ("beneficial", "detrimental"),
        ("better", "worse"),
        ("true", "false"),
        ("real", "fake"),
        ("more", "less"),
        ("increase", "decrease"),
        ("art", "science"),
        ("innate", "learned"),
        ("public", "private"),
        ("friend", "foe"),
        ("blessing", "curse"),
        ("hero", "villain"),
        ("fact", "fiction"),
        ("left", "right"),
        ("boon", "bane"),
        ("opt-in", "opt-out"),
    ];
    let key = |at: usize| rest.get(at).map_or("", |word| word.key.as_str());
    let before = at.checked_sub(1).map_or("", |at| key(at));
    let (after, beyond) = (key(at + 1), key(at + 2));
    let opposed = OPPOSITES.iter().any(|&pair| pair == (before, after) || pair == (after, before))
        || ["un", "in", "im", "il", "ir", "dis", "non-", "a"].iter().any(|prefix| {
            after.strip_prefix(prefix) == Some(before) || before.strip_prefix(prefix) == Some(after)
        }) && before.len() > 3;
    let asks_again = lex::is_auxiliary(after)
        || matches!(after, "rather" | "just" | "instead" | "simply" | "merely" | "that");
    let commas = rest.iter().filter(|word| word.after.contains(',')).count();
    let set_off = rest.get(at.wrapping_sub(1)).is_some_and(|word| word.after.contains(',')) && commas == 1;
    let article = |key: &str| matches!(key, "a" | "an" | "the");
    let named_again = lex::is_be(auxiliary)
        && article(after)
        && rest
            .iter()
            .take(at)
            .any(|word| word.key == after || (after != "the" && article(&word.key) && word.key != "the"));
    let acts_again = !lex::is_be(auxiliary)
        && rest.first().is_some_and(|first| !lex::is_be(&first.key) && first.key != "be")
        && !verbs::is_any_form(before)
        && at > 1
        && (verbs::is_sure_base(after) || verbs::is_either_base(after) && lex::is_determiner(beyond))
        && !rest.iter().take(at).any(|word| word.key == "to");
    let preferred = rest.first().is_some_and(|first| matches!(first.key.as_str(), "prefer" | "choose"));
    let opposed_again = matches!(after, "should" | "not");
    opposed || asks_again || set_off || named_again || acts_again || preferred || opposed_again
}
