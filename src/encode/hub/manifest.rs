//! What was fetched: revision, sizes and hashes, written last and checked on request.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY, SHA256};
use serde::{Deserialize, Serialize};

use crate::encode::named::MANIFEST;
use crate::input::InputError;

/// A fetched model.
#[derive(Debug, Serialize, Deserialize)]
pub struct Manifest {
    /// Its repository.
    pub repository: String,
    /// The commit it was fetched at.
    pub revision: String,
    /// Its files by their path.
    pub files: BTreeMap<String, Kept>,
}

/// A file that is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// Bytes.
    pub size: u64,
    /// SHA-256, in hexadecimal digits.
    pub sha256: String,
}

impl Manifest {
    pub(super) fn of(repository: &str, revision: &str) -> Self {
        Manifest { repository: repository.into(), revision: revision.into(), files: BTreeMap::new() }
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        format!("{:#}\n", serde_json::json!(self)).into_bytes()
    }

    /// Reads a model's manifest.
    ///
    /// # Errors
    /// It is damaged.
    pub fn read(folder: &Path) -> Result<Self, InputError> {
        let file = folder.join(MANIFEST);
        let bytes = std::fs::read(&file).map_err(|error| InputError::unreadable(&file, &error))?;
        serde_json::from_slice(&bytes).map_err(|error| InputError::Unreadable {
            path: file,
            reason: format!("no manifest ({error}); remove the folder and fetch the model anew"),
        })
    }

    /// Whether every file is still what was fetched.
    ///
    /// # Errors
    /// One is missing or has changed.
    pub fn check(&self, folder: &Path) -> Result<(), InputError> {
        for (name, kept) in &self.files {
            let file = folder.join(name);
            let hashes = Hashes::of(&file).map_err(|error| InputError::unreadable(&file, &error))?;
            if hashes.kept != *kept {
                let reason = "it is not what was fetched; remove the folder and fetch the model anew".into();
                return Err(InputError::Unreadable { path: file, reason });
            }
        }
        Ok(())
    }
}

/// A file's hashes.
pub struct Hashes {
    pub kept: Kept,
    /// As git names the content.
    pub blob: String,
}

impl Hashes {
    pub fn of(file: &Path) -> io::Result<Self> {
        let mut file = File::open(file)?;
        let size = file.metadata()?.len();
        let (mut sha256, mut blob) = (Context::new(&SHA256), Context::new(&SHA1_FOR_LEGACY_USE_ONLY));
        blob.update(format!("blob {size}\0").as_bytes());
        let mut buffer = vec![0; 1 << 20];
        loop {
            let count = file.read(&mut buffer)?;
            if count == 0 {
                break;
            }
            sha256.update(&buffer[..count]);
            blob.update(&buffer[..count]);
        }
        let hex = |context: Context| {
            context.finish().as_ref().iter().map(|b| format!("{b:02x}")).collect::<String>()
        };
        Ok(Hashes { kept: Kept { size, sha256: hex(sha256) }, blob: hex(blob) })
    }

    /// Whether the hub means this content by `hash`; whatever is neither kind of hash says nothing.
    pub fn are(&self, hash: &str) -> bool {
        match hash.len() {
            64 => self.kept.sha256.eq_ignore_ascii_case(hash),
            40 => self.blob.eq_ignore_ascii_case(hash),
            _ => true,
        }
    }
}
