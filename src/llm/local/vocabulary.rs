//! The tokenizer of a GGUF file: built from its metadata, or `tokenizer.json` beside it.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tokenizers::Tokenizer;

use super::gguf::Gguf;
use crate::caught::caught;
use crate::encode::tokens;
use crate::input::{InputError, excerpt};
use crate::llm::Request;

/// How words are cut before their bytes are merged, by the names that llama.cpp gives them.
const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN2: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// Tokens that end an answer, whatever else the file says of them.
const ENDS: [&str; 6] =
    ["<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end|>", "<|endoftext|>", "<|end_of_text|>"];

/// The kinds of tokens that the file tells apart.
const CONTROL: u64 = 3;
const USER: u64 = 4;

/// Where the tokenizer lies that is taken instead of the file's own.
pub(super) fn beside(file: &Path) -> PathBuf {
    file.with_file_name("tokenizer.json")
}

/// Text to tokens and back.
pub(super) struct Vocabulary {
    tokenizer: Tokenizer,
    begin: Option<u32>,
    /// What a template calls `bos_token` and `eos_token`.
    pub marks: [String; 2],
    ends: Vec<u32>,
    /// How the tokens are spelt that are no text: those of turns, and what ends an answer.
    pub control: Vec<String>,
}

impl Vocabulary {
    /// The tokenizer that belongs to a file.
    pub fn read(file: &Gguf) -> Result<Self, InputError> {
        let tokens = file.texts("tokenizer.ggml.tokens").unwrap_or_default();
        let beside = beside(file.path());
        let tokenizer = if beside.exists() {
            tokens::from_file(&beside).map_err(|error| InputError::Unreadable {
                path: beside,
                reason: format!("no tokenizer that can be read ({error}); fetch it again, or take it away"),
            })?
        } else if tokens.is_empty() {
            return Err(file.wrong("no tokenizer is in it; lay the model's tokenizer.json beside it"));
        } else {
            let made = made(file, tokens)?;
            let read = caught(|| serde_json::from_value(made).map_err(|error| error.to_string()));
            let read = read.unwrap_or_else(|| Err("it is of no known form".into()));
            read.map_err(|why| file.wrong(format!("its tokenizer cannot be used ({why}); fetch it again")))?
        };
        let id = |name: &str| {
            let id = u32::try_from(file.whole(&format!("tokenizer.ggml.{name}"))?).ok()?;
            tokenizer.id_to_token(id).map(|token| (id, token))
        };
        let (begin, end) = (id("bos_token_id"), id("eos_token_id"));
        let more = ["eot_token_id", "eom_token_id"].into_iter().filter_map(id).chain(end.clone());
        let mut ends: Vec<u32> = more.map(|(id, _)| id).collect();
        ends.extend(ENDS.iter().filter_map(|token| tokenizer.token_to_id(token)));
        let wanted = file.truth("tokenizer.ggml.add_bos_token").unwrap_or_else(|| {
            // Files that do not say so are of these two kinds.
            file.text("tokenizer.ggml.model") == Some("llama")
                || file.text("tokenizer.ggml.pre") == Some("llama-bpe")
        });
        let marks =
            [&begin, &end].map(|mark| mark.as_ref().map_or_else(String::new, |(_, token)| token.clone()));
        let added = tokenizer.get_added_tokens_decoder();
        let special = added.into_values().filter(|token| token.special).map(|token| token.content);
        let named = ends.iter().filter_map(|id| tokenizer.id_to_token(*id)).chain(marks.clone());
        // A mark of one letter cannot be told from text.
        let mut control: Vec<String> =
            special.chain(named).filter(|token| token.chars().nth(1).is_some()).collect();
        control.sort_unstable();
        control.dedup();
        let begin = begin.filter(|_| wanted).map(|(id, _)| id);
        Ok(Vocabulary { tokenizer, begin, marks, ends, control })
    }

    /// A request whose texts spell no control token, so that a stranger's passage ends no turn and begins none: a space breaks them.
    pub fn harmless(&self, request: &Request) -> Request {
        let broken = |text: &str| {
            self.control.iter().fold(text.to_owned(), |text, token| {
                let first = token.chars().next().map_or(0, char::len_utf8);
                text.replace(token, &format!("{} {}", &token[..first], &token[first..]))
            })
        };
        Request { system: broken(&request.system), prompt: broken(&request.prompt), ..request.clone() }
    }

    /// The tokens of a prompt, whose marks count as such.
    pub fn tokens(&self, text: &str) -> Result<Vec<u32>, String> {
        let encoded = self.tokenizer.encode_fast(text, false).map_err(|error| error.to_string())?;
        let mut ids = encoded.get_ids().to_vec();
        // Most templates write it, some leave it to the tokenizer.
        if let Some(begin) = self.begin.filter(|begin| ids.first() != Some(begin)) {
            ids.insert(0, begin);
        }
        Ok(ids)
    }

    /// The text of an answer, without marks.
    pub fn text(&self, ids: &[u32]) -> Result<String, String> {
        self.tokenizer.decode(ids, true).map_err(|error| error.to_string())
    }

    /// Whether an answer ends here.
    pub fn is_end(&self, id: u32) -> bool {
        self.ends.contains(&id)
    }
}

/// The tokenizer in the form of `tokenizer.json`.
fn made(file: &Gguf, tokens: &[String]) -> Result<Value, InputError> {
    let kinds = file.wholes("tokenizer.ggml.token_type").unwrap_or_default();
    let added: Vec<Value> = (tokens.iter().zip(kinds).enumerate())
        .filter(|(_, (_, kind))| [CONTROL, USER].contains(kind))
        .map(|(id, (token, kind))| {
            json!({"id": id, "content": token, "special": *kind == CONTROL, "normalized": false,
                   "single_word": false, "lstrip": false, "rstrip": false})
        })
        .collect();
    let (normalizer, cut, decoder, model) = match file.text("tokenizer.ggml.model") {
        Some("gpt2") => bytes(file)?,
        Some("llama") => pieces(file, tokens)?,
        other => {
            return Err(file.wrong(format!(
                "its tokenizer is of the kind {}; gpt2 and llama can be read: lay the model's tokenizer.json beside it",
                excerpt(other.unwrap_or_default())
            )));
        }
    };
    let vocabulary: serde_json::Map<String, Value> =
        tokens.iter().enumerate().map(|(id, token)| (token.clone(), id.into())).collect();
    let mut model = model;
    model["type"] = "BPE".into();
    model["vocab"] = Value::Object(vocabulary);
    Ok(
        json!({"version": "1.0", "truncation": null, "padding": null, "added_tokens": added, "normalizer": normalizer,
              "pre_tokenizer": cut, "post_processor": null, "decoder": decoder, "model": model}),
    )
}

type Parts = (Value, Value, Value, Value);

/// Merged bytes, as GPT-2 has them.
fn bytes(file: &Gguf) -> Result<Parts, InputError> {
    let byte_level = |regex: bool| json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": regex});
    let split = |regex: &str| {
        let split =
            json!({"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": false});
        json!({"type": "Sequence", "pretokenizers": [split, byte_level(false)]})
    };
    let digits = json!({"type": "Digits", "individual_digits": true});
    let pre = file.text("tokenizer.ggml.pre").unwrap_or("default");
    let (normalizer, cut) = match pre {
        "gpt-2" => (Value::Null, byte_level(true)),
        "smollm" => (Value::Null, json!({"type": "Sequence", "pretokenizers": [digits, byte_level(true)]})),
        "llama-bpe" => (Value::Null, split(LLAMA3)),
        "qwen2" | "deepseek-r1-qwen" => (json!({"type": "NFC"}), split(QWEN2)),
        other => {
            return Err(file.wrong(format!(
                "its tokenizer cuts words in the way {}; gpt-2, smollm, llama-bpe and qwen2 can be read: lay the model's \
                 tokenizer.json beside it",
                excerpt(other)
            )));
        }
    };
    let Some(merges) = file.texts("tokenizer.ggml.merges") else {
        return Err(file.wrong("its tokenizer has no merges; lay the model's tokenizer.json beside it"));
    };
    Ok((normalizer, cut, byte_level(true), json!({"merges": merges, "ignore_merges": pre == "llama-bpe"})))
}

/// Merged pieces of text, as SentencePiece has them: of two neighbours that make a piece, those with the best score first.
fn pieces(file: &Gguf, tokens: &[String]) -> Result<Parts, InputError> {
    let scores = file.reals("tokenizer.ggml.scores").filter(|scores| scores.len() == tokens.len());
    let Some(scores) = scores else {
        return Err(file.wrong("its tokenizer has no scores; lay the model's tokenizer.json beside it"));
    };
    let known: std::collections::HashSet<&str> = tokens.iter().map(String::as_str).collect();
    let mut merges = Vec::new();
    for (token, score) in tokens.iter().zip(scores) {
        for (at, _) in token.char_indices().skip(1) {
            let (left, right) = token.split_at(at);
            if known.contains(left) && known.contains(right) {
                merges.push((*score, left, right));
            }
        }
    }
    merges.sort_by(|a, b| b.0.total_cmp(&a.0));
    let merges: Vec<[&str; 2]> = merges.into_iter().map(|(_, left, right)| [left, right]).collect();
    let unknown = file.whole("tokenizer.ggml.unknown_token_id").and_then(|id| usize::try_from(id).ok());
    let unknown = tokens.get(unknown.unwrap_or(0));
    let replace =
        |from: &str, to: &str| json!({"type": "Replace", "pattern": {"String": from}, "content": to});
    let prefixed = file.truth("tokenizer.ggml.add_space_prefix").unwrap_or(true);
    let mut normalizers = vec![replace(" ", "▁")];
    let mut decoders = vec![replace("▁", " "), json!({"type": "ByteFallback"}), json!({"type": "Fuse"})];
    if prefixed {
        normalizers.insert(0, json!({"type": "Prepend", "prepend": "▁"}));
        decoders.push(json!({"type": "Strip", "content": " ", "start": 1, "stop": 0}));
    }
    let model = json!({"merges": merges, "unk_token": unknown, "fuse_unk": true, "byte_fallback": true});
    let sequence = |kind: &str, items: Vec<Value>| json!({"type": "Sequence", (kind): items});
    Ok((sequence("normalizers", normalizers), Value::Null, sequence("decoders", decoders), model))
}
