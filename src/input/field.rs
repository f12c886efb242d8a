//! One field of a table, perhaps quoted.

/// A field counts as quoted only if it begins and ends with `"` and its inner ones are doubled.
///
/// # Errors
/// What was expected, where quotes are not balanced: a lone one must never swallow the rest of a file.
pub fn unquoted(field: &str) -> Result<String, String> {
    let inner = field.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let Some(inner) = inner else {
        let unbalanced =
            field.starts_with('"') || (field.ends_with('"') && field.matches('"').count() % 2 == 1);
        return if unbalanced { Err("quotes that are closed, or none".into()) } else { Ok(field.to_owned()) };
    };
    let single = inner.replace("\"\"", "");
    if single.contains('"') { Err("inner quotes doubled".into()) } else { Ok(inner.replace("\"\"", "\"")) }
}
