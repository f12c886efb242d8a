//! What a hub says of a repository, and which of its files a model is made of.

use serde::Deserialize;

use super::HubError;

/// One state of a repository.
pub struct Listing {
    /// The commit.
    pub revision: String,
    /// The files that are fetched: the small ones first.
    pub files: Vec<Listed>,
}

/// A file on the hub.
pub struct Listed {
    /// Its path in the repository.
    pub name: String,
    /// Its size, where the hub says it.
    pub size: Option<u64>,
    /// Its hash, where the hub says it: SHA-256 of a large file, git's of a small one.
    pub hash: Option<String>,
}

#[derive(Deserialize)]
struct Said {
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

/// Reads the hub's answer.
pub fn read(page: &[u8], repository: &str) -> Result<Listing, HubError> {
    let said: Said = serde_json::from_slice(page).map_err(|error| {
        HubError::Hub(format!(
            "what the hub says of {repository} cannot be read ({error}); check that HF_ENDPOINT names a hub"
        ))
    })?;
    if said.sha.len() < 12 || !said.sha.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Err(HubError::Hub(format!("the hub names no revision of {repository}; check HF_ENDPOINT")));
    }
    let names: Vec<String> = said.siblings.iter().map(|sibling| sibling.rfilename.clone()).collect();
    let wanted = wanted(&names);
    if !wanted.iter().any(|name| name == "config.json") {
        return Err(HubError::Hub(format!(
            "{repository} has no config.json, so it is no model that can be read here"
        )));
    }
    if !wanted.iter().any(|name| !name.contains('/') && is_weight(name)) {
        return Err(HubError::Hub(format!(
            "{repository} has neither safetensors nor pytorch_model.bin, so there is nothing to fetch"
        )));
    }
    let mut files: Vec<Listed> = said
        .siblings
        .into_iter()
        .filter(|sibling| wanted.contains(&sibling.rfilename))
        .map(|sibling| match sibling.lfs {
            Some(lfs) => Listed {
                name: sibling.rfilename,
                size: lfs.size.or(sibling.size),
                hash: lfs.sha256.or(lfs.oid),
            },
            None => Listed { name: sibling.rfilename, size: sibling.size, hash: sibling.blob },
        })
        .collect();
    files.sort_by_key(|file| (is_weight(&file.name), file.size, file.name.clone()));
    Ok(Listing { revision: said.sha, files })
}

fn is_weight(name: &str) -> bool {
    name.ends_with(".safetensors") || name.ends_with(".bin")
}

/// Of all files those that are read: in the repository's own folder and in those of its modules.
fn wanted(names: &[String]) -> Vec<String> {
    const SMALL: [&str; 9] = [
        "config.json",
        "modules.json",
        "sentence_bert_config.json",
        "config_sentence_transformers.json",
        "tokenizer.json",
        "tokenizer_config.json",
        "vocab.txt",
        "vocab.json",
        "merges.txt",
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
            || (tensors && (!single || file == "model.safetensors"))
            || (pickled && !has_safe(&folder))
    });
    wanted.cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_set_of_weights_is_fetched_and_nothing_that_nobody_reads() {
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
        ];
        let wanted = wanted(&names.map(str::to_owned));
        assert_eq!(
            wanted,
            [
                "config.json",
                "model.safetensors",
                "1_Pooling/config.json",
                "2_Dense/pytorch_model.bin",
                "2_Dense/config.json",
                "vocab.txt"
            ]
        );
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
