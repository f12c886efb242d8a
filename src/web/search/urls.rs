//! A list of addresses that somebody made: one a line, `#` begins a remark.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Search;
use crate::input::{InputError, lines};
use crate::web::{WebError, address};
use crate::work::Stop;

/// The list.
pub struct Urls {
    file: PathBuf,
    urls: Vec<String>,
}

impl Urls {
    /// Reads a list.
    ///
    /// # Errors
    /// A line is no address of a page, or there is none.
    pub fn read(file: &Path) -> Result<Self, InputError> {
        let mut urls = Vec::new();
        lines(file, |_, line| {
            let line = line.trim();
            if !line.starts_with('#') {
                urls.push(address::parse(line)?.into());
            }
            Ok(())
        })?;
        if urls.is_empty() {
            let advice = "expected a line with an address such as https://…";
            return Err(InputError::Empty { path: file.into(), what: "the list of addresses", advice });
        }
        Ok(Urls { file: file.into(), urls })
    }
}

impl Search for Urls {
    fn name(&self) -> String {
        format!("urls:{}", self.file.display())
    }

    fn is_free(&self) -> bool {
        true
    }

    fn find(&self, _: &str, wanted: usize, _: Duration, _: &Stop) -> Result<Vec<String>, WebError> {
        Ok(self.urls.iter().take(wanted).cloned().collect())
    }
}
