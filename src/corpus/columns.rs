//! Which columns of a table, or fields of an object, are a passage's id, title and text.
//!
//! The names are those that collections use: BEIR (`_id`, `title`, `text`), Pyserini (`id`, `contents`), DPR (`id`, `text`,
//! `title`), Sphere (`id`, `title`, `raw`, `url`). What is none of the three is kept as metadata.

use serde_json::{Map, Value};

use super::Passage;
use crate::input::excerpt;

/// Names for a passage's id, the first that is there counting.
const IDS: [&str; 3] = ["_id", "id", "docid"];
/// Names for its title.
const TITLES: [&str; 1] = ["title"];
/// Names for its text.
const TEXTS: [&str; 3] = ["text", "contents", "raw"];

/// Columns with names of their own, as the user gave them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    /// The id's.
    pub id: Option<String>,
    /// The title's.
    pub title: Option<String>,
    /// The text's.
    pub text: Option<String>,
}

/// The columns that are taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The id's.
    pub id: String,
    /// The title's; there may be none.
    pub title: Option<String>,
    /// The text's.
    pub text: String,
}

impl Columns {
    /// Chooses among the columns that are there.
    ///
    /// # Errors
    /// There is none for the id or the text, or none of a name that the user gave; what was expected is told.
    pub fn among<'a>(&self, there: impl Iterator<Item = &'a str> + Clone) -> Result<Taken, String> {
        let found = |given: &Option<String>, usual: &[&str]| match given {
            Some(name) => there.clone().find(|column| column == name),
            None => usual.iter().find_map(|name| there.clone().find(|column| column == name)),
        };
        let need = |given: &Option<String>, usual: &[&str], what: &str| {
            found(given, usual).map(str::to_owned).ok_or_else(|| {
                let name = given.clone().unwrap_or_else(|| usual.join("`, `"));
                format!(
                    "`{name}` for the {what} (there is {}; another can be named with `parallax corpus add FILE --{what} NAME`)",
                    listed(there.clone())
                )
            })
        };
        let title = match &self.title {
            Some(_) => Some(need(&self.title, &TITLES, "title")?),
            None => found(&None, &TITLES).map(str::to_owned),
        };
        Ok(Taken { id: need(&self.id, &IDS, "id")?, title, text: need(&self.text, &TEXTS, "text")? })
    }
}

fn listed<'a>(columns: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<String> = columns.take(12).map(excerpt).collect();
    if names.is_empty() { "none".into() } else { names.join(", ") }
}

impl Taken {
    /// In words: `id: _id, title: title, text: text`.
    pub fn told(&self) -> String {
        let title = self.title.as_deref().unwrap_or("none");
        format!("id: {}, title: {title}, text: {}", self.id, self.text)
    }

    /// The passage of an object.
    ///
    /// # Errors
    /// A field is not of its type, or the id is empty; what was expected is told.
    pub fn passage(&self, mut fields: Map<String, Value>) -> Result<Passage, String> {
        let missing = |name: &str| format!("a field `{name}`, as on the first line");
        let id = match fields.remove(&self.id).ok_or_else(|| missing(&self.id))? {
            Value::String(id) => id,
            Value::Number(id) => id.to_string(),
            _ => return Err(format!("a text or number in `{}`", self.id)),
        };
        if id.trim().is_empty() {
            return Err(format!("an `{}` that is not empty", self.id));
        }
        // A text may be empty: published corpora hold such passages.
        let Value::String(text) = fields.remove(&self.text).ok_or_else(|| missing(&self.text))? else {
            return Err(format!("a text in `{}`", self.text));
        };
        let title = match self.title.as_ref().and_then(|title| fields.remove(title)) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(title)) => title,
            Some(_) => return Err("a text as title".into()),
        };
        let mut metadata = match fields.remove("metadata") {
            Some(Value::Object(known)) => known,
            None | Some(Value::Null) => Map::new(),
            Some(other) => Map::from_iter([("metadata".to_owned(), other)]),
        };
        metadata.extend(fields);
        Ok(Passage { id, title, text, metadata })
    }
}
