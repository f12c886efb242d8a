//! A brought encoder in a recipe: `contriever`, `hf:ORG/MODEL`, `path:FOLDER@family=dpr,query=TEXT,passage=TEXT`.

use super::escaped;
use super::read::{kept, unescaped, unescaped_whole};
use crate::encode::{Named, Source, registry};

/// As a recipe writes it.
pub fn written(named: &Named) -> String {
    let source = match &named.source {
        Source::Folder(path) => format!("path:{}", kept(path, b"-_.~/:")),
        source => source.to_string(),
    };
    let family = named.given.map(|family| format!("family={}", family.name));
    let text = |name: &str, text: &Option<String>| Some(format!("{name}={}", escaped(text.as_ref()?)));
    let options = [family, text("query", &named.query), text("passage", &named.passage)];
    let options: Vec<String> = options.into_iter().flatten().collect();
    if options.is_empty() { source } else { format!("{source}@{}", options.join(",")) }
}

/// Reads the name and the options after its `@`.
///
/// # Errors
/// What was expected.
pub fn read(name: &str, options: &str) -> Result<Named, String> {
    let name = if name.starts_with("path:") {
        unescaped(name).ok_or("two hexadecimal digits after every %")?
    } else {
        name.to_owned()
    };
    let mut named = Named::from(Source::parse(&name)?);
    for option in options.split(',').filter(|option| !option.is_empty()) {
        let wrong = || {
            let families: Vec<&str> = registry::FAMILIES.iter().map(|family| family.name).collect();
            format!("family=NAME ({}), query=TEXT or passage=TEXT, found `{option}`", families.join(", "))
        };
        let (key, value) = option.split_once('=').ok_or_else(wrong)?;
        let value = unescaped_whole(value).ok_or_else(wrong)?;
        match key {
            "family" => named.given = Some(registry::family(&value).ok_or_else(wrong)?),
            "query" => named.query = Some(value),
            "passage" => named.passage = Some(value),
            _ => return Err(wrong()),
        }
    }
    Ok(named)
}
