//! A folder of text files, cut into passages of 100 words.
//!
//! A passage's id is `FILE#N` (path below the folder without its ending, N from 1). Its title is the file's line in
//! `titles.tsv` (`FILE<Tab>TITLE`) if there is one, else the first heading or the page's title, else the file's stem.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::import::{At, Refused, Sink};
use super::{Passage, chunks, html};
use crate::input::{InputError, lines};

/// The text files below `folder`, in order of their paths.
///
/// # Errors
/// A folder cannot be listed.
pub fn files(folder: &Path) -> Result<Vec<PathBuf>, InputError> {
    let (mut found, mut open) = (Vec::new(), vec![folder.to_path_buf()]);
    while let Some(next) = open.pop() {
        let listing = fs::read_dir(&next).map_err(|error| InputError::unreadable(&next, &error))?;
        for entry in listing {
            let entry = entry.map_err(|error| InputError::unreadable(&next, &error))?;
            let path = entry.path();
            // A link to a folder may lead round in a circle; it is not followed.
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                open.push(path);
            } else if is_text(&path) || is_html(&path) || is_titles(&path) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

fn has_ending(path: &Path, endings: &[&str]) -> bool {
    path.extension().is_some_and(|end| endings.iter().any(|ending| end.eq_ignore_ascii_case(ending)))
}

fn is_text(path: &Path) -> bool {
    has_ending(path, &["txt", "md"])
}

fn is_html(path: &Path) -> bool {
    has_ending(path, &["html", "htm"])
}

fn is_titles(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == "titles.tsv")
}

/// Reads the files given by [`files`], all but the first `done`, into `sink`.
///
/// # Errors
/// A file cannot be read or is not UTF-8 text, or a line of `titles.tsv` has no title.
pub fn read(folder: &Path, done: usize, sink: Sink<'_>) -> Result<(), InputError> {
    let all = files(folder)?;
    let titles = titles(&folder.join("titles.tsv"))?;
    let (mut stems, texts) = (HashSet::new(), all.iter().filter(|file| !is_titles(file)));
    let count = texts.clone().count();
    for (i, file) in texts.enumerate() {
        let inside = file.strip_prefix(folder).unwrap_or(file).with_extension("");
        let mut stem = inside.to_string_lossy().replace('\\', "/");
        // Two files that differ in their ending only: the later one keeps it.
        if !stems.insert(stem.clone()) {
            stem = format!("{stem}.{}", file.extension().unwrap_or_default().to_string_lossy());
        }
        if i < done {
            continue;
        }
        let text = fs::read_to_string(file).map_err(|error| InputError::unreadable(file, &error))?;
        let (own, text) = match is_html(file) {
            true => html::main_text(&text).map(|page| (page.title, page.text)).map_err(|reason| {
                InputError::Unreadable { path: file.clone(), reason: reason.to_string() }
            })?,
            false => (heading(&text), text),
        };
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let title = titles.get(name.as_ref()).cloned().or(own).unwrap_or_else(|| stem.clone());
        let at = At { item: i + 1, clean: true, share: i as f32 / count as f32 };
        for (i, text) in chunks(&text).enumerate() {
            let passage =
                Passage { id: format!("{stem}#{}", i + 1), title: title.clone(), text, ..Passage::default() };
            match sink(at, passage) {
                Ok(()) => {}
                Err(Refused::Enough) => return Ok(()),
                Err(Refused::Bad(expected)) => {
                    let reason = format!("expected {expected}");
                    return Err(InputError::Unreadable { path: file.clone(), reason });
                }
            }
        }
    }
    Ok(())
}

fn heading(text: &str) -> Option<String> {
    let line = text.lines().find(|line| !line.trim().is_empty())?;
    Some(line.strip_prefix('#')?.trim_start_matches('#').trim().to_owned()).filter(|title| !title.is_empty())
}

fn titles(path: &Path) -> Result<HashMap<String, String>, InputError> {
    let mut titles = HashMap::new();
    if path.exists() {
        lines(path, |_, line| {
            let (file, title) = line.split_once('\t').ok_or("FILE<Tab>TITLE")?;
            titles.insert(file.to_owned(), title.trim().to_owned());
            Ok(())
        })?;
    }
    Ok(titles)
}
