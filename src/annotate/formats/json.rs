//! JSON files as a whole or line by line, with errors that name a line.

use std::path::Path;

use serde::de::DeserializeOwned;

use crate::input::{BadLine, InputError};

/// A file that is one JSON value.
pub fn whole<T: DeserializeOwned>(path: &Path, expected: &str) -> Result<T, InputError> {
    let text = std::fs::read(path).map_err(|error| InputError::unreadable(path, &error))?;
    let text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&text);
    serde_json::from_slice(text).map_err(|error| {
        let lines = text.split(|byte| *byte == b'\n');
        let found = lines.skip(error.line().saturating_sub(1)).map(String::from_utf8_lossy).next();
        InputError::BadLines(vec![BadLine {
            file: path.into(),
            line: error.line().max(1),
            expected: format!("{expected} ({error})"),
            found: found.unwrap_or_default().into_owned(),
        }])
    })
}
