//! The frame on screen, saved as a picture or a page.

pub mod film;
pub mod grid;
pub mod html;
pub mod palette;
pub mod png;
pub mod shapes;
pub mod svg;

use std::io;
use std::path::{Path, PathBuf};

use ratatui::buffer::Buffer;

use film::Film;

/// Sharp on screens with two pixels to a point, and in print.
const SCALE: f32 = 2.0;

/// Why a frame was not saved.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The ending names no format.
    #[error("{}: end the name with .svg, .png, .html or .txt", .0.display())]
    Ending(PathBuf),
    /// The ending names no moving picture.
    #[error("{}: end the name with .svg, which alone is written as a moving picture", .0.display())]
    Moving(PathBuf),
    /// The file could not be written.
    #[error("{}: {reason}; choose a name in a folder that exists and may be written to", path.display())]
    Write {
        /// The file that was asked for.
        path: PathBuf,
        /// What the system said.
        reason: io::Error,
    },
    /// More pixels than a picture may have, or none.
    #[error("no PNG of {columns}x{rows} cells at scale {scale}; make the window smaller or save it as .svg")]
    Large {
        /// Of the frame.
        columns: u16,
        /// Of the frame.
        rows: u16,
        /// Pixels to a unit.
        scale: f32,
    },
    /// The picture could not be drawn.
    #[error("could not draw the picture: {0}; save it as .svg instead")]
    Picture(String),
}

/// Saves a moving picture at `path`, which ends with `.svg`. The file appears whole or not at all; one that was there
/// is replaced.
///
/// # Errors
/// The ending is another, or the file cannot be written.
pub fn write_film(path: &Path, film: Film) -> Result<(), ExportError> {
    if !path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("svg")) {
        return Err(ExportError::Moving(path.into()));
    }
    let title = path.file_stem().unwrap_or_default().to_string_lossy();
    put(path, film.svg(&title).as_bytes())
}

/// Saves the frame at `path`, in the format that its ending names. The file appears whole or not at all; one that was
/// there is replaced.
///
/// # Errors
/// The ending names no format, or the file cannot be written.
pub fn write(path: &Path, buffer: &Buffer) -> Result<(), ExportError> {
    let ending = path.extension().and_then(|ending| ending.to_str()).map(str::to_ascii_lowercase);
    let title = path.file_stem().unwrap_or_default().to_string_lossy();
    let bytes = match ending.as_deref() {
        Some("svg") => svg::svg(buffer, &title).into_bytes(),
        Some("png") => png::png(buffer, SCALE)?,
        Some("html") => html::html(buffer, &title).into_bytes(),
        Some("txt") => grid::text(buffer).into_bytes(),
        _ => return Err(ExportError::Ending(path.into())),
    };
    put(path, &bytes)
}

fn put(path: &Path, bytes: &[u8]) -> Result<(), ExportError> {
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    let part = PathBuf::from(part);
    std::fs::write(&part, bytes).and_then(|()| std::fs::rename(&part, path)).map_err(|reason| {
        // The reason matters more than a leftover that cannot be removed either.
        let _ = std::fs::remove_file(&part);
        ExportError::Write { path: path.into(), reason }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame() -> Buffer {
        Buffer::with_lines(["┌ab┐", "│物│", "└──┘"])
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn the_ending_chooses_the_format_and_nothing_else_is_left() {
        let folder = tempfile::tempdir().unwrap();
        for (name, start) in
            [("a.svg", "<svg "), ("a.PNG", "\u{fffd}PNG"), ("a.html", "<!DOCTYPE html>"), ("a.txt", "┌ab┐\n")]
        {
            write(&folder.path().join(name), &frame()).unwrap();
            let bytes = std::fs::read(folder.path().join(name)).unwrap();
            assert!(String::from_utf8_lossy(&bytes).starts_with(start), "{name}");
        }
        assert_eq!(names(folder.path()), ["a.PNG", "a.html", "a.svg", "a.txt"]);
    }

    #[test]
    fn an_unknown_ending_is_an_error_that_names_the_four() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["frame.gif", "frame", ".svg"] {
            let error = write(&folder.path().join(name), &frame()).unwrap_err().to_string();
            for ending in [".svg", ".png", ".html", ".txt"] {
                assert!(error.contains(ending), "{error}");
            }
        }
        assert!(names(folder.path()).is_empty());
    }

    #[test]
    fn a_folder_that_cannot_be_written_to_is_left_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("file"), "kept").unwrap();
        for path in ["missing/a.txt", "file/a.txt"] {
            let error = write(&folder.path().join(path), &frame()).unwrap_err().to_string();
            assert!(error.contains("choose a name in a folder"), "{error}");
        }
        assert_eq!(names(folder.path()), ["file"]);
    }

    #[test]
    fn a_target_that_cannot_be_replaced_leaves_no_part_behind() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("a.txt")).unwrap();
        assert!(write(&folder.path().join("a.txt"), &frame()).is_err());
        assert_eq!(names(folder.path()), ["a.txt"]);
    }
}
