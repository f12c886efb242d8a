//! Texts inside of a recipe.

/// A typed text as a recipe writes it: `%` and two hexadecimal digits for every byte that is not a letter, a digit or one of
/// `-_.~`, so that a copied recipe needs no quotes.
pub fn escaped(text: &str) -> String {
    escaped_but(text, b"-_.~")
}

/// The same with other bytes left as they are.
pub(super) fn escaped_but(text: &str, also: &[u8]) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || also.contains(&byte);
    text.bytes().map(|b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}

/// What [`escaped`] wrote, without blanks around it.
pub(super) fn unescaped(text: &str) -> Option<String> {
    unescaped_whole(text).map(|text| text.trim().to_owned())
}

/// What [`escaped`] wrote, to the last blank.
pub(super) fn unescaped_whole(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &rest[2..];
    }
    String::from_utf8(bytes).ok()
}
