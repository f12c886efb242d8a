//! What a user has set for the interface, from one TOML file: theme, glyphs, mouse, layout, keys. Owns its form and its
//! errors; must not know where a setting is used. A flag stands above the environment, that above the file, that above the
//! defaults.

mod keys;
mod problem;
mod read;
mod show;
mod watch;

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use super::keymap::Keymap;
use super::theme::Look;
use crate::report::marks::Glyphs;
pub use problem::{Problem, Problems};
pub use read::read;
pub use watch::watch;

/// A configuration is a page or two; what is longer is something else.
const LONGEST: u64 = 1 << 20;

/// What is set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// How it looks.
    pub look: Look,
    /// What marks, frames and bars are drawn with.
    pub glyphs: Glyphs,
    /// Whether the mouse is listened to.
    pub mouse: Mouse,
    /// How much room there is for what.
    pub layout: Layout,
    /// What keys order.
    pub keys: Arc<Keymap>,
}

/// Whether the mouse is listened to. While it is, a terminal does not select text with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mouse {
    /// It is.
    #[default]
    Heard,
    /// It is left to the terminal.
    Left,
}

/// How much room there is for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Columns that a lane needs to stand beside others; tabs show the rest.
    pub lane_width: u16,
    /// Rows of a passage in a list, at most.
    pub passage_rows: u16,
}

impl Default for Layout {
    fn default() -> Self {
        Layout { lane_width: 32, passage_rows: 3 }
    }
}

/// Where a configuration comes from, and what stands above it.
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// The file; none where the system has no place for it.
    pub path: Option<PathBuf>,
    /// Whether it was named, and so has to be there.
    pub named: bool,
    /// A look that was asked for otherwise.
    pub look: Option<Look>,
    /// Whether plain ASCII was asked for.
    pub ascii: bool,
}

impl Source {
    /// Reads it. A file that nobody named may be absent: the defaults hold.
    ///
    /// # Errors
    /// The file cannot be read, or something in it is not what it should be. Nothing of it is taken.
    pub fn load(&self) -> Result<Config, Problems> {
        let mut config = match &self.path {
            Some(path) if self.named || path.exists() => self.file(path)?,
            _ => Config::default(),
        };
        config.look = self.look.unwrap_or(config.look);
        if self.ascii {
            config.glyphs = Glyphs::Ascii;
        }
        Ok(config)
    }

    fn file(&self, path: &Path) -> Result<Config, Problems> {
        let whole = |what: String| Problems { file: path.into(), all: vec![Problem::of_file(what)] };
        let bytes = bytes(path).map_err(whole)?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let good = error.utf8_error().valid_up_to();
            let before = String::from_utf8_lossy(&error.as_bytes()[..good]).into_owned();
            let what = "expected UTF-8 text; convert the file with `iconv -t utf-8`".to_owned();
            Problems { file: path.into(), all: vec![Problem::at(&before, good, what)] }
        })?;
        let (config, all) = read(&text);
        if all.is_empty() { Ok(config) } else { Err(Problems { file: path.into(), all }) }
    }

    /// What tells that the file has changed.
    fn stamp(&self) -> Option<(u64, Option<SystemTime>)> {
        let about = fs::metadata(self.path.as_ref()?).ok()?;
        Some((about.len(), about.modified().ok()))
    }
}

fn bytes(path: &Path) -> Result<Vec<u8>, String> {
    if path.is_dir() {
        return Err("expected a file, found a folder; name the file in it".into());
    }
    let file = File::open(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            "no such file; `parallax config show` prints one to begin with".to_owned()
        }
        _ => error.to_string(),
    })?;
    let mut bytes = Vec::new();
    file.take(LONGEST + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > LONGEST {
        return Err("expected a configuration of at most 1 MB; this is something else".into());
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests;
