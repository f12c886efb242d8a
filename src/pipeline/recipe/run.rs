//! A finished run as a recipe names it: `run:PATH`, perhaps `@ties=trec-eval`.

use std::fmt;
use std::path::PathBuf;

use super::read::{kept, unescaped};
use crate::measure::trec::RunOrder;

/// A run file and the order it is read in.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RunFile {
    /// Where it lies, as the user named it.
    pub path: PathBuf,
    /// How its passages are ordered.
    pub order: RunOrder,
}

impl RunFile {
    /// What every such recipe begins with.
    pub(super) const PREFIX: &str = "run:";

    /// The file's name without its ending.
    pub fn stem(&self) -> String {
        self.path.file_stem().unwrap_or(self.path.as_os_str()).to_string_lossy().into_owned()
    }

    /// Reads what stands after `run:`.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let (path, order) = match text.split_once('@') {
            None => (text, RunOrder::AsGiven),
            Some((path, "ties=trec-eval")) => (path, RunOrder::TrecEval),
            Some((_, other)) => {
                return Err(format!(
                    "nothing or ties=trec-eval after the @, found `{other}`; in a path, + @ , % are written %2B %40 %2C %25"
                ));
            }
        };
        let path = unescaped(path).filter(|path| !path.is_empty());
        let path = path.ok_or("the path of a run after run:, in which % and two digits stand for a byte")?;
        Ok(RunFile { path: path.into(), order })
    }
}

impl fmt::Display for RunFile {
    /// `run:runs/tasb.json@ties=trec-eval`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ties = if self.order == RunOrder::TrecEval { "@ties=trec-eval" } else { "" };
        write!(f, "{}{}{ties}", Self::PREFIX, kept(&self.path.to_string_lossy(), b"-_.~/:"))
    }
}
