//! A configuration as the file that would make it, with what is not a default marked.

use std::fmt;

use super::{Config, Mouse};
use crate::report::marks::Glyphs;
use crate::tui::keymap::{Bound, Context};

/// The whole of it: read again, it is the same.
impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (plain, layout) = (Config::default(), self.layout);
        let look = |config: &Config| format!("{:?}", config.look.name());
        let glyphs = |config: &Config| match config.glyphs {
            Glyphs::Shapes => "\"unicode\"".to_owned(),
            Glyphs::Ascii => "\"ascii\"".to_owned(),
        };
        let mouse = |config: &Config| (config.mouse == Mouse::Heard).to_string();
        let looks = "terminal, light, dark, deuteranopia, mono";
        writeln!(f, "theme = {}", line(look(self), look(&plain), looks))?;
        writeln!(f, "glyphs = {}", line(glyphs(self), glyphs(&plain), "unicode, ascii"))?;
        let left = "false leaves it to the terminal, which selects text with it";
        writeln!(f, "mouse = {}", line(mouse(self), mouse(&plain), left))?;
        let (width, rows) = (layout.lane_width, layout.passage_rows);
        let (usual_width, usual_rows) = (plain.layout.lane_width, plain.layout.passage_rows);
        let narrow = "columns that a lane needs to stand beside others";
        let most = "rows of a passage in a list, at most";
        writeln!(f, "\n[layout]\nlane-width = {}", line(width.to_string(), usual_width.to_string(), narrow))?;
        writeln!(f, "passage-rows = {}", line(rows.to_string(), usual_rows.to_string(), most))?;
        let preset = |config: &Config| format!("{:?}", config.keys.preset.name());
        writeln!(f, "\n[keys]\npreset = {}", line(preset(self), preset(&plain), "default, vim"))?;
        let mut places: Vec<Context> = Vec::new();
        for bound in self.keys.lines() {
            if !places.contains(&bound.line.context) {
                places.push(bound.line.context);
            }
        }
        for place in places {
            writeln!(f, "\n[keys.{}]", place.key())?;
            for bound in self.keys.of_place(place) {
                writeln!(f, "{} = {}", bound.line.action.name(), keys(bound))?;
            }
        }
        Ok(())
    }
}

/// A value, what it is about, and the default if that is another.
fn line(value: String, usual: String, about: &str) -> String {
    let differs = if value == usual { String::new() } else { format!("; the default is {usual}") };
    format!("{value}  # {about}{differs}")
}

fn keys(bound: &Bound) -> String {
    let usual: Vec<String> = bound.line.keys.iter().map(ToString::to_string).collect();
    line(list(&bound.keys), list(&usual), bound.line.help)
}

/// One key, or a list of them. No key is a control character, so that two escapes are enough.
fn list(keys: &[String]) -> String {
    let quote = |key: &String| format!("\"{}\"", key.replace('\\', r"\\").replace('"', "\\\""));
    let quoted: Vec<String> = keys.iter().map(quote).collect();
    match quoted.as_slice() {
        [one] => one.clone(),
        all => format!("[{}]", all.join(", ")),
    }
}
