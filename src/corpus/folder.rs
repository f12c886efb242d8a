//! Imports a folder of text files and web pages, cut into passages of 100 words.
//!
//! A passage's id is `FILE#N`: the path inside the folder without its extension, and N from 1. Its title is the file's line in
//! `titles.tsv` (`FILE<Tab>TITLE`), else the first heading or the page's title, else the file's stem. [`main_text`] extracts a page's
//! title and main text by Mozilla's Readability rules; it fetches nothing and runs no script.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use dom_smoothie::{Config, Readability, ReadabilityError, TextMode};

use super::importer::{At, Refused, Sink};
use super::store::Passage;
use crate::input::{InputError, WHOLE, lines, read_regular_text};
use crate::work::catch_panic;

/// The text files of a folder.
pub struct Listing {
    /// The files, in order of their paths.
    pub files: Vec<PathBuf>,
    /// The number of links that were not followed.
    pub links: usize,
}

/// The text files below `folder`. A link may lead anywhere, so it counts only with `follow_links`.
///
/// # Errors
/// A folder cannot be listed, or a file is a pipe, a socket or a device.
pub fn files(folder: &Path, follow_links: bool) -> Result<Listing, InputError> {
    let (mut found, mut open) = (Listing { files: Vec::new(), links: 0 }, vec![folder.to_path_buf()]);
    // Links may form a loop.
    let mut entered = HashSet::new();
    while let Some(next) = open.pop() {
        let unreadable = |error| InputError::unreadable(&next, &error);
        if follow_links && !entered.insert(next.canonicalize().map_err(unreadable)?) {
            continue;
        }
        for entry in fs::read_dir(&next).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let (path, mut kind) = (entry.path(), entry.file_type().map_err(unreadable)?);
            let is_text = is_text(&path) || is_html(&path) || is_titles(&path);
            if kind.is_symlink() {
                let end = fs::metadata(&path);
                if !follow_links {
                    found.links += usize::from(is_text || end.is_ok_and(|end| end.is_dir()));
                    continue;
                }
                kind = end.map_err(|error| InputError::unreadable(&path, &error))?.file_type();
            }
            if kind.is_dir() {
                open.push(path);
            } else if is_text && kind.is_file() {
                found.files.push(path);
            } else if is_text {
                let reason = "neither a file nor a folder; take it out of the folder".into();
                return Err(InputError::Unreadable { path, reason });
            }
        }
    }
    found.files.sort();
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

/// Reads the files that [`files`] finds, all but the first `done`, into `sink`.
///
/// # Errors
/// A file cannot be read or is not UTF-8 text, or a line of `titles.tsv` has no title.
pub fn read(folder: &Path, follow_links: bool, done: usize, sink: Sink<'_>) -> Result<(), InputError> {
    let all = files(folder, follow_links)?.files;
    let titles = folder.join("titles.tsv");
    let titles = if all.contains(&titles) { self::titles(&titles)? } else { HashMap::new() };
    let (mut stems, texts) = (HashSet::new(), all.iter().filter(|file| !is_titles(file)));
    let count = texts.clone().count();
    for (i, file) in texts.enumerate() {
        let inside = file.strip_prefix(folder).unwrap_or(file).with_extension("");
        let mut stem = inside.to_string_lossy().replace('\\', "/");
        // If two files differ only in their extension, the id of the later one contains it.
        if !stems.insert(stem.clone()) {
            stem = format!("{stem}.{}", file.extension().unwrap_or_default().to_string_lossy());
        }
        if i < done {
            continue;
        }
        let text = read_regular_text(file, WHOLE).map_err(|error| InputError::unreadable(file, &error))?;
        let (own, text) = if is_html(file) {
            main_text(&text)
                .map(|page| (page.title, page.text))
                .map_err(|reason| InputError::Unreadable { path: file.clone(), reason: reason.to_string() })?
        } else {
            (heading(&text), text)
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
                    let reason = expected.to_string();
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
    lines(path, |_, line| {
        let (file, title) = line.split_once('\t').ok_or("FILE<Tab>TITLE")?;
        titles.insert(file.to_owned(), title.trim().to_owned());
        Ok(())
    })?;
    Ok(titles)
}

/// The limit of tags in a page; no page of text has more. The time of parsing grows with the square of the nesting depth.
const TAGS: usize = 60_000;

/// The content of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Its title, if it has one.
    pub title: Option<String>,
    /// Its main text, one line per block; all visible text if Readability finds no article.
    pub text: String,
}

/// Why a page cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum HtmlError {
    /// It has too many tags.
    #[error(
        "{0} tags, which is more than a page of text has; take it out of the folder, or save it as plain text"
    )]
    Tags(usize),
    /// Readability failed.
    #[error("this page cannot be read ({0}); take it out of the folder, or save it as plain text")]
    Rules(#[from] ReadabilityError),
    /// The parser panicked.
    #[error("this page cannot be read; take it out of the folder, or save it as plain text")]
    Panicked,
}

/// The title and main text of a page.
///
/// # Errors
/// It has too many tags, or the parser failed.
pub fn main_text(html: &str) -> Result<Page, HtmlError> {
    let tags = html.matches('<').count();
    if tags > TAGS {
        return Err(HtmlError::Tags(tags));
    }
    // Any page can trigger a bug in the parser; one page must not end a whole job.
    catch_panic(|| article(html)).unwrap_or(Err(HtmlError::Panicked))
}

fn article(html: &str) -> Result<Page, HtmlError> {
    let config = Config { text_mode: TextMode::Formatted, ..Config::default() };
    match Readability::new(html, None, Some(config.clone()))?.parse() {
        Ok(article) => {
            Ok(Page { title: title(&article.title), text: article.text_content.trim().to_owned() })
        }
        Err(ReadabilityError::GrabFailed) => {
            let page = Readability::new(html, None, Some(config))?;
            page.doc.select("head, script, style, noscript, template").remove();
            let text = page.doc.formatted_text().trim().to_owned();
            // The title was removed with the head.
            let whole = Readability::new(html, None, None)?;
            Ok(Page { title: title(&whole.get_article_title()), text })
        }
        Err(error) => Err(error.into()),
    }
}

fn title(text: &str) -> Option<String> {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    Some(text).filter(|text| !text.is_empty())
}

/// The number of words in a passage.
pub const WORDS: usize = 100;

/// Cuts `text` into runs of 100 words joined by single spaces; the last one may be shorter.
///
/// Words are separated by white space. A text without words has no chunks.
pub fn chunks(text: &str) -> impl Iterator<Item = String> + '_ {
    let mut words = text.split_whitespace();
    std::iter::from_fn(move || {
        let mut chunk = String::from(words.next()?);
        for word in words.by_ref().take(WORDS - 1) {
            chunk.push(' ');
            chunk.push_str(word);
        }
        Some(chunk)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_250_words_gives_three_passages_and_loses_no_word() {
        let text: Vec<String> = (0..250).map(|i| format!("w{i}")).collect();
        let cut: Vec<String> = chunks(&text.join(" \n")).collect();
        let sizes: Vec<usize> = cut.iter().map(|c| c.split(' ').count()).collect();
        assert_eq!(sizes, [100, 100, 50]);
        assert_eq!(cut.join(" "), text.join(" "));
    }

    #[test]
    fn a_blank_text_has_no_chunks_and_one_word_has_one() {
        assert_eq!(chunks(" \n\t").count(), 0);
        assert_eq!(chunks("alone").collect::<Vec<_>>(), ["alone"]);
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_only_on_request_and_loops_end() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let (inside, outside) = (folder.path().join("in"), folder.path().join("out"));
        fs::create_dir_all(&inside).unwrap();
        fs::create_dir_all(&outside).unwrap();
        fs::write(inside.join("a.txt"), "owls").unwrap();
        fs::write(outside.join("secret"), "passwords").unwrap();
        fs::write(outside.join("titles.tsv"), "a.txt\tForeign\n").unwrap();
        symlink(outside.join("secret"), inside.join("pw.txt")).unwrap();
        symlink(outside.join("titles.tsv"), inside.join("titles.tsv")).unwrap();
        symlink(&inside, inside.join("loop")).unwrap();
        symlink(outside.join("gone"), inside.join("note")).unwrap();
        let texts = |follow| {
            let mut found = Vec::new();
            read(&inside, follow, 0, &mut |_, passage| {
                found.push((passage.title, passage.text));
                Ok(())
            })
            .unwrap();
            found
        };
        let pair = |title: &str, text: &str| (title.to_owned(), text.to_owned());
        assert_eq!(texts(false), [pair("a", "owls")]);
        assert_eq!(files(&inside, false).unwrap().links, 3);
        fs::remove_file(inside.join("note")).unwrap();
        assert_eq!(texts(true), [pair("Foreign", "owls"), pair("pw", "passwords")]);
    }
}
