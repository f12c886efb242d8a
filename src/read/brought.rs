//! A reader that was brought along: what lies in its folder says of which kind it is.

use std::path::Path;
use std::sync::Arc;

use super::Reader;
use super::extractive::{self, Extractive};
use super::fid::{self, Fid};
use crate::input::{InputError, excerpt};

/// Opens the reader in a folder.
///
/// # Errors
/// No reader is there, or its files are damaged or of two models.
pub fn open(folder: &Path) -> Result<Arc<dyn Reader>, InputError> {
    let here = names(folder)?;
    // One kind after another, by the file that only it has.
    if here.iter().any(|name| name == extractive::CARD) {
        return Ok(Arc::new(Extractive::load(folder)?));
    }
    if here.iter().any(|name| name == fid::CONFIG) {
        return Ok(Arc::new(Fid::open(folder)?));
    }
    let reason = format!(
        "no reader is in it: expected {}, or {}; found {}",
        extractive::EXPECTED,
        fid::EXPECTED,
        excerpt(&if here.is_empty() { "nothing".into() } else { here.join(", ") })
    );
    Err(InputError::Unreadable { path: folder.into(), reason })
}

/// What lies in the folder, in the order of the names.
fn names(folder: &Path) -> Result<Vec<String>, InputError> {
    let unreadable = |error| InputError::unreadable(folder, &error);
    if std::fs::metadata(folder).map_err(unreadable)?.is_file() {
        let reason = "a reader is a folder, and this is a file; name the folder that it lies in".into();
        return Err(InputError::Unreadable { path: folder.into(), reason });
    }
    let entries = std::fs::read_dir(folder).map_err(unreadable)?;
    let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    let mut names = names.collect::<Result<Vec<_>, std::io::Error>>().map_err(unreadable)?;
    names.sort_unstable();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_reader_is_told_with_what_was_found_and_what_was_expected() {
        let folder = tempfile::tempdir().unwrap();
        let told = |path: &Path| open(path).err().expect("it is refused").to_string();
        assert!(told(folder.path()).contains("expected reader.json"), "{}", told(folder.path()));
        assert!(told(folder.path()).ends_with("found `nothing`"));
        std::fs::write(folder.path().join("weights.bin"), "x").unwrap();
        std::fs::write(folder.path().join("notes.txt"), "x").unwrap();
        assert!(told(folder.path()).ends_with("found `notes.txt, weights.bin`"));
        assert!(told(&folder.path().join("notes.txt")).contains("this is a file"));
        assert!(told(&folder.path().join("none")).ends_with("none: no such file or folder"));
    }
}
