//! What is tried: one function a parser, from bytes to nothing. What it refuses it must refuse in words.

pub mod labels;
pub mod models;
pub mod served;
pub mod texts;

use std::cell::OnceCell;
use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

thread_local! {
    static DESK: OnceCell<TempDir> = const { OnceCell::new() };
}

/// A place of this thread's own.
pub fn place(name: &str) -> PathBuf {
    DESK.with(|desk| desk.get_or_init(|| tempfile::tempdir().unwrap()).path().join(name))
}

/// The input as a file of that name.
pub fn file(name: &str, input: &[u8]) -> PathBuf {
    let path = place(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, input).unwrap();
    path
}

/// A copy of a folder of the fixtures, with the input in the place of one of its files, or beside them.
pub fn folder(fixture: &str, name: &str, input: &[u8]) -> PathBuf {
    let copy = place(&format!("{fixture}-{}", name.replace('/', "-")));
    if !copy.exists() {
        copied(&fixtures(fixture), &copy);
    }
    fs::write(copy.join(name), input).unwrap();
    copy
}

fn copied(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        let to = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copied(&entry.path(), &to),
            false => drop(fs::copy(entry.path(), to).unwrap()),
        }
    }
}

pub fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn fixtures(path: &str) -> PathBuf {
    root("tests/fixtures").join(path)
}

/// Files of the repository as seeds, the beginnings of long ones; and some that are written here.
pub fn seeds(files: &[&str], written: &[&str]) -> Vec<Vec<u8>> {
    let beginning = |path: &&str| {
        let mut bytes = fs::read(root(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
        if [".jsonl", ".tsv", ".md"].iter().any(|end| path.ends_with(end)) {
            bytes.truncate(6_000);
            bytes.truncate(bytes.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1));
        }
        bytes
    };
    files.iter().map(beginning).chain(written.iter().map(|text| text.as_bytes().to_vec())).collect()
}

/// What is said of an input that is refused is shown to somebody: it must be words, and few enough.
pub fn refused<T, E: Display>(result: Result<T, E>) -> Option<T> {
    match result {
        Ok(read) => Some(read),
        Err(error) => {
            let told = error.to_string();
            assert!(!told.trim().is_empty(), "refused without a word");
            assert!(told.len() < 200_000, "refused with {} bytes", told.len());
            None
        }
    }
}
