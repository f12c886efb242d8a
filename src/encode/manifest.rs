//! A hub's list of the files in a repository, the choice of those that make up the model, and the manifest of the files fetched.
//!
//! The manifest holds revision, sizes and hashes. It is written last and checked on request.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::Path;

use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY, SHA256};
use serde::{Deserialize, Serialize};

use super::registry::MANIFEST;
use crate::input::{InputError, SMALL, open_regular, read_regular};
use crate::work::Stopped;

/// Why a model was not fetched. The part fetched so far stays, and the same command resumes.
#[derive(Debug, thiserror::Error)]
pub enum HubError {
    /// The hub refused, could not be reached, or sent an invalid response.
    #[error("{0}")]
    Hub(String),
    /// Another process fetches this repository.
    #[error("another process is fetching {0}; wait until it ends")]
    Busy(String),
    /// The files could not be written.
    #[error(
        "{what} cannot be written ({error}); make room there or name another folder with --data-dir; the bytes fetched so far are kept"
    )]
    Keep {
        /// The file or folder.
        what: String,
        /// The system's error.
        error: std::io::Error,
    },
    /// Stopped on request.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// A fetched model.
#[derive(Debug, Serialize, Deserialize)]
pub struct Manifest {
    /// Its repository.
    pub repository: String,
    /// The commit fetched.
    pub revision: String,
    /// Its files by path.
    pub files: BTreeMap<String, FetchedFile>,
}

/// A fetched file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FetchedFile {
    /// Its size in bytes.
    pub size: u64,
    /// SHA-256 in hexadecimal.
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
        let bytes = read_regular(&file, SMALL).map_err(|error| InputError::unreadable(&file, &error))?;
        serde_json::from_slice(&bytes).map_err(|error| InputError::Unreadable {
            path: file,
            reason: format!("not a manifest ({error}); remove the folder and fetch the model again"),
        })
    }

    /// Checks that every file is still the one fetched.
    ///
    /// # Errors
    /// One is missing or has changed.
    pub fn check(&self, folder: &Path) -> Result<(), InputError> {
        for (name, fetched) in &self.files {
            let file = folder.join(name);
            let hashes = Hashes::of(&file).map_err(|error| InputError::unreadable(&file, &error))?;
            if hashes.file != *fetched {
                let reason =
                    "it changed since it was fetched; remove the folder and fetch the model again".into();
                return Err(InputError::Unreadable { path: file, reason });
            }
        }
        Ok(())
    }
}

/// A file's hashes.
pub struct Hashes {
    pub file: FetchedFile,
    /// Git's hash of the content.
    pub blob: String,
}

impl Hashes {
    pub fn of(file: &Path) -> io::Result<Self> {
        let mut file = open_regular(file)?;
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
        Ok(Hashes { file: FetchedFile { size, sha256: hex(sha256) }, blob: hex(blob) })
    }

    /// Whether `hash` is one of these; a text that is neither kind of hash passes.
    pub fn contain(&self, hash: &str) -> bool {
        match hash.len() {
            64 => self.file.sha256.eq_ignore_ascii_case(hash),
            40 => self.blob.eq_ignore_ascii_case(hash),
            _ => true,
        }
    }
}

/// A repository at one commit.
pub struct Listing {
    /// The commit.
    pub revision: String,
    /// The files to fetch, small ones first.
    pub files: Vec<HubFile>,
}

/// A file on the hub.
pub struct HubFile {
    /// Its path in the repository.
    pub name: String,
    /// Its size, if the hub states it.
    pub size: Option<u64>,
    /// Its hash, if the hub states it: SHA-256 of a large file, git's of a small one.
    pub hash: Option<String>,
}

#[derive(Deserialize)]
struct Repository {
    sha: String,
    siblings: Vec<Sibling>,
}

#[derive(Deserialize)]
struct Sibling {
    rfilename: String,
    size: Option<u64>,
    #[serde(rename = "blobId")]
    blob: Option<String>,
    lfs: Option<Lfs>,
}

#[derive(Deserialize)]
struct Lfs {
    sha256: Option<String>,
    oid: Option<String>,
    size: Option<u64>,
}

/// Reads the hub's description of a repository.
pub fn read(page: &[u8], repository: &str) -> Result<Listing, HubError> {
    let repo: Repository = serde_json::from_slice(page).map_err(|error| {
        HubError::Hub(format!(
            "the hub's description of {repository} cannot be read ({error}); check that HF_ENDPOINT names a hub"
        ))
    })?;
    if repo.sha.len() < 12 || !repo.sha.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Err(HubError::Hub(format!("the hub gives no revision of {repository}; check HF_ENDPOINT")));
    }
    let names: Vec<String> = repo.siblings.iter().map(|sibling| sibling.rfilename.clone()).collect();
    let wanted = model_files(&names);
    if !wanted.iter().any(|name| name == "config.json") {
        return Err(HubError::Hub(format!(
            "{repository} has no config.json, so it is not a model that can be read here"
        )));
    }
    if !wanted.iter().any(|name| !name.contains('/') && is_weight(name)) {
        return Err(HubError::Hub(format!(
            "{repository} has neither safetensors nor pytorch_model.bin, so there is nothing to fetch"
        )));
    }
    let mut files: Vec<HubFile> = repo
        .siblings
        .into_iter()
        .filter(|sibling| wanted.contains(&sibling.rfilename))
        .map(|sibling| match sibling.lfs {
            Some(lfs) => HubFile {
                name: sibling.rfilename,
                size: lfs.size.or(sibling.size),
                hash: lfs.sha256.or(lfs.oid),
            },
            None => HubFile { name: sibling.rfilename, size: sibling.size, hash: sibling.blob },
        })
        .collect();
    files.sort_by_key(|file| (is_weight(&file.name), file.size, file.name.clone()));
    Ok(Listing { revision: repo.sha, files })
}

fn is_weight(name: &str) -> bool {
    name.ends_with(".safetensors") || name.ends_with(".bin")
}

/// The files that make up a model, in the repository's top folder and those of its modules.
fn model_files(names: &[String]) -> Vec<String> {
    const SMALL: [&str; 13] = [
        "config.json",
        "modules.json",
        "sentence_bert_config.json",
        "config_sentence_transformers.json",
        "tokenizer.json",
        "tokenizer_config.json",
        "vocab.txt",
        "vocab.json",
        "merges.txt",
        // The settings of ColBERT.
        "artifact.metadata",
        // The product of BGE-M3's multi-vectors.
        "colbert_linear.pt",
        // A query's weights in learned sparse models without inference, and where else they lie.
        "idf.json",
        "router_config.json",
    ];
    let safe = |name: &&String| {
        !name.contains("..") && !name.starts_with('/') && !name.contains(['\\', ':', '?', '#', '%'])
    };
    let split = |name: &str| match name.split_once('/') {
        None => (String::new(), name.to_owned()),
        Some((folder, file)) => (folder.to_owned(), file.to_owned()),
    };
    // `1_Pooling`, `2_Dense`: not `onnx`, not `openvino`.
    let module = |folder: &str| {
        folder.is_empty() || folder.split_once('_').is_some_and(|(n, _)| n.parse::<u8>().is_ok())
    };
    let has_safe = |folder: &str| {
        let at = |file: &str| if folder.is_empty() { file.to_owned() } else { format!("{folder}/{file}") };
        names.contains(&at("model.safetensors")) || names.contains(&at("model.safetensors.index.json"))
    };
    let wanted = names.iter().filter(safe).filter(|name| {
        let (folder, file) = split(name);
        if !module(&folder) || file.contains('/') {
            return false;
        }
        let shard = |from: &str, end: &str| file.strip_prefix(from).is_some_and(|rest| rest.ends_with(end));
        let tensors = file == "model.safetensors"
            || file == "model.safetensors.index.json"
            || shard("model-0", ".safetensors");
        let pickled = file == "pytorch_model.bin"
            || file == "pytorch_model.bin.index.json"
            || shard("pytorch_model-0", ".bin");
        let single = names.contains(&if folder.is_empty() {
            "model.safetensors".into()
        } else {
            format!("{folder}/model.safetensors")
        });
        SMALL.contains(&file.as_str())
            // A tokenizer is made of it.
            || (name.as_str() == "spiece.model" && !names.iter().any(|name| name == "tokenizer.json"))
            || (tensors && (!single || file == "model.safetensors"))
            || (pickled && !has_safe(&folder))
    });
    wanted.cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_set_of_weights_is_fetched_and_no_unused_file() {
        let names = [
            "README.md",
            "config.json",
            "model.safetensors",
            "pytorch_model.bin",
            "tf_model.h5",
            "onnx/model.onnx",
            "onnx/config.json",
            "1_Pooling/config.json",
            "2_Dense/pytorch_model.bin",
            "2_Dense/config.json",
            "../../etc/passwd",
            "1_x/../../config.json",
            "vocab.txt",
            "spiece.model",
        ];
        let wanted = model_files(&names.map(str::to_owned));
        assert_eq!(
            wanted,
            [
                "config.json",
                "model.safetensors",
                "1_Pooling/config.json",
                "2_Dense/pytorch_model.bin",
                "2_Dense/config.json",
                "vocab.txt",
                "spiece.model"
            ]
        );
        let both = ["tokenizer.json", "spiece.model"].map(str::to_owned);
        assert_eq!(model_files(&both), ["tokenizer.json"]);
    }

    #[test]
    fn a_listing_without_a_model_is_refused() {
        let read = |page: &str| {
            read(page.as_bytes(), "a/b").err().map(|error| error.to_string()).unwrap_or_default()
        };
        assert!(read("<html>").contains("HF_ENDPOINT"));
        assert!(read(r#"{"sha":"../../../../etc","siblings":[]}"#).contains("no revision"));
        assert!(read(r#"{"sha":"0123456789abcdef","siblings":[]}"#).contains("config.json"));
        let bare = r#"{"sha":"0123456789abcdef","siblings":[{"rfilename":"config.json"}]}"#;
        assert!(read(bare).contains("safetensors"));
    }
}
