//! A frame as text, with or without its styles: what `parallax frame` prints and tests compare.

use std::path::Path;

use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};
use unicode_width::UnicodeWidthStr;

use super::export::{self, ExportError};

/// A drawn frame.
#[derive(Clone, Debug, PartialEq)]
pub struct Dump {
    buffer: Buffer,
}

impl Dump {
    /// Of a buffer that was drawn.
    pub fn of(buffer: Buffer) -> Self {
        Dump { buffer }
    }

    /// What was drawn.
    pub(super) fn buffer(&self) -> &Buffer {
        &self.buffer
    }

    /// Saves the frame; the ending of the name says as what: `.svg`, `.png`, `.html` or `.txt`.
    ///
    /// # Errors
    /// See [`ExportError`].
    pub fn save(&self, path: &Path) -> Result<(), ExportError> {
        export::write(path, &self.buffer)
    }

    /// The text; with `style`, a second block of one letter a column (letters in order of appearance; a wide character's
    /// second column repeats its letter) and a legend.
    pub fn dump(&self, style: bool) -> String {
        let mut text = String::new();
        let mut letters = String::new();
        let mut legend: Vec<String> = Vec::new();
        for row in self.rows() {
            let (mut columns, mut shown, mut styled) = (0, String::new(), String::new());
            for cell in row {
                if columns > 0 {
                    // Hidden under the wide character before it.
                    columns -= 1;
                    styled.push(styled.chars().last().unwrap_or(' '));
                    continue;
                }
                shown.push_str(cell.symbol());
                columns = cell.symbol().width().saturating_sub(1);
                let name = name(cell);
                let place = legend.iter().position(|known| *known == name).unwrap_or_else(|| {
                    legend.push(name);
                    legend.len() - 1
                });
                styled.push(letter(place));
            }
            text.push_str(shown.trim_end());
            text.push('\n');
            letters.push_str(styled.trim_end());
            letters.push('\n');
        }
        if !style {
            return text;
        }
        let legend = legend.iter().enumerate().map(|(i, name)| format!("{} {name}\n", letter(i)));
        format!("{text}\n{letters}\n{}", legend.collect::<String>())
    }

    fn rows(&self) -> impl Iterator<Item = &[Cell]> {
        self.buffer.content.chunks(usize::from(self.buffer.area.width).max(1))
    }
}

fn letter(place: usize) -> char {
    const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    char::from(LETTERS[place % LETTERS.len()])
}

fn name(cell: &Cell) -> String {
    let mut parts = Vec::new();
    if cell.fg != Color::Reset {
        parts.push(format!("{:?}", cell.fg).to_lowercase());
    }
    if cell.bg != Color::Reset {
        parts.push(format!("on {:?}", cell.bg).to_lowercase());
    }
    let modifiers = [
        (Modifier::BOLD, "bold"),
        (Modifier::DIM, "dim"),
        (Modifier::UNDERLINED, "underlined"),
        (Modifier::REVERSED, "reversed"),
        (Modifier::ITALIC, "italic"),
    ];
    parts.extend(
        modifiers.iter().filter(|(one, _)| cell.modifier.contains(*one)).map(|(_, name)| (*name).to_owned()),
    );
    if parts.is_empty() { "plain".into() } else { parts.join(" ") }
}
