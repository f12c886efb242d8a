//! Turns a request into the tokens that a model reads, and tokens into text.

use std::path::{Path, PathBuf};

use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, Error, ErrorKind, context};
use serde_json::{Value, json};
use tokenizers::Tokenizer;

use super::gguf::Gguf;
use crate::encode::tokens;
use crate::input::{InputError, excerpt};
use crate::llm::chat::Request;
use crate::work::catch_panic;

/// Why a request was not turned into tokens, or tokens not into text.
#[derive(Debug, thiserror::Error)]
pub(super) enum PromptError {
    /// The file's chat template cannot be compiled.
    #[error("its chat template cannot be read ({0}); take another file of this model")]
    Template(Error),
    /// The chat template returned an error for this prompt.
    #[error("its chat template refuses the prompt ({0}); take another file of this model")]
    Refused(Error),
    /// The tokenizer cannot encode the prompt.
    #[error("its tokenizer cannot encode the prompt ({0})")]
    Encode(tokenizers::Error),
    /// The tokenizer cannot decode the reply.
    #[error("its tokenizer cannot decode the reply ({0})")]
    Decode(tokenizers::Error),
}

/// The limit of template steps: a thousand times as many as any real template takes.
const STEPS: u64 = 10_000_000;

/// The chat template: how a conversation becomes text.
pub(super) struct Template(Option<Environment<'static>>);

impl Template {
    /// Compiles a template, if there is one.
    pub fn new(source: Option<&str>) -> Result<Self, PromptError> {
        let Some(source) = source else { return Ok(Template(None)) };
        let mut jinja = Environment::new();
        // The settings of Python's transformers, for which these templates are written.
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
        jinja.set_syntax(syntax.map_err(PromptError::Template)?);
        jinja.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        jinja.add_function("raise_exception", |why: String| {
            Err::<String, _>(Error::new(ErrorKind::InvalidOperation, why))
        });
        jinja.set_fuel(Some(STEPS));
        jinja.add_template_owned("chat", source.to_owned()).map_err(PromptError::Template)?;
        Ok(Template(Some(jinja)))
    }

    /// The text that the model continues.
    pub fn prompt(&self, request: &Request, [begin, end]: &[String; 2]) -> Result<String, PromptError> {
        let (system, prompt) = (request.system.as_str(), &*request.sent());
        let both = if system.is_empty() { prompt.to_owned() } else { format!("{system}\n\n{prompt}") };
        let Some(jinja) = &self.0 else { return Ok(both + "\n\n") };
        let render = |messages: &[(&str, &str)]| {
            let messages: Vec<_> = messages
                .iter()
                .map(|(role, content)| context! { role => *role, content => *content })
                .collect();
            // Replies have a token limit, and thoughts would use it up.
            let values = context! {
                messages, add_generation_prompt => true, enable_thinking => false, bos_token => begin, eos_token => end
            };
            jinja.get_template("chat").and_then(|template| template.render(values))
        };
        if system.is_empty() {
            return render(&[("user", prompt)]).map_err(PromptError::Refused);
        }
        // Some templates raise an error for a system text.
        render(&[("system", system), ("user", prompt)])
            .or_else(|_| render(&[("user", &both)]))
            .map_err(PromptError::Refused)
    }
}

/// The regexes that split words before BPE, under llama.cpp's names.
const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN2: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// Tokens that end a reply, even if the file does not list them.
const ENDS: [&str; 6] =
    ["<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end|>", "<|endoftext|>", "<|end_of_text|>"];

/// The token types of the file.
const CONTROL: u64 = 3;
const USER: u64 = 4;

/// The path of a tokenizer in the same folder, which replaces the file's own if it exists.
pub(super) fn tokenizer_path(file: &Path) -> PathBuf {
    file.with_file_name("tokenizer.json")
}

/// Text to tokens and back.
pub(super) struct Vocabulary {
    tokenizer: Tokenizer,
    begin: Option<u32>,
    /// The template's `bos_token` and `eos_token`.
    pub marks: [String; 2],
    ends: Vec<u32>,
    /// The spelling of tokens that are not text: marks that begin or end a turn.
    pub control: Vec<String>,
}

impl Vocabulary {
    /// The tokenizer of a file.
    pub fn read(file: &Gguf) -> Result<Self, InputError> {
        let tokens = file.texts("tokenizer.ggml.tokens").unwrap_or_default();
        let path = tokenizer_path(file.path());
        let tokenizer = if path.exists() {
            tokens::from_file(&path).map_err(|error| InputError::Unreadable {
                path,
                reason: format!("not a tokenizer that can be read ({error}); fetch it again, or remove it"),
            })?
        } else if tokens.is_empty() {
            return Err(
                file.wrong("it contains no tokenizer; put the model's tokenizer.json into the same folder")
            );
        } else {
            let json = tokenizer_json(file, tokens)?;
            let read = catch_panic(|| serde_json::from_value(json).map_err(|error| error.to_string()));
            let read = read.unwrap_or_else(|| Err("its form is unknown".into()));
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
        let adds_begin = file.truth("tokenizer.ggml.add_bos_token").unwrap_or_else(|| {
            // Of the models whose files lack this entry, these two kinds add the token.
            file.text("tokenizer.ggml.model") == Some("llama")
                || file.text("tokenizer.ggml.pre") == Some("llama-bpe")
        });
        let marks =
            [&begin, &end].map(|mark| mark.as_ref().map_or_else(String::new, |(_, token)| token.clone()));
        let added = tokenizer.get_added_tokens_decoder();
        let special = added.into_values().filter(|token| token.special).map(|token| token.content);
        let named = ends.iter().filter_map(|id| tokenizer.id_to_token(*id)).chain(marks.clone());
        // A mark of one letter cannot be distinguished from text.
        let mut control: Vec<String> =
            special.chain(named).filter(|token| token.chars().nth(1).is_some()).collect();
        control.sort_unstable();
        control.dedup();
        let begin = begin.filter(|_| adds_begin).map(|(id, _)| id);
        Ok(Vocabulary { tokenizer, begin, marks, ends, control })
    }

    /// A request whose texts contain no control token: a space is put into each, so that a passage can neither end nor begin a turn.
    pub fn escape(&self, request: &Request) -> Request {
        let escape = |text: &str| {
            self.control.iter().fold(text.to_owned(), |text, token| {
                let first = token.chars().next().map_or(0, char::len_utf8);
                text.replace(token, &format!("{} {}", &token[..first], &token[first..]))
            })
        };
        Request { system: escape(&request.system), prompt: escape(&request.prompt), ..request.clone() }
    }

    /// The tokens of a prompt, including its marks.
    pub fn tokens(&self, text: &str) -> Result<Vec<u32>, PromptError> {
        let encoded = self.tokenizer.encode_fast(text, false).map_err(PromptError::Encode)?;
        let mut ids = encoded.get_ids().to_vec();
        // Most templates write this token; others leave it to the tokenizer.
        if let Some(begin) = self.begin.filter(|begin| ids.first() != Some(begin)) {
            ids.insert(0, begin);
        }
        Ok(ids)
    }

    /// The text of a reply, without marks.
    pub fn text(&self, ids: &[u32]) -> Result<String, PromptError> {
        self.tokenizer.decode(ids, true).map_err(PromptError::Decode)
    }

    /// Whether a reply ends with this token.
    pub fn is_end(&self, id: u32) -> bool {
        self.ends.contains(&id)
    }
}

/// The file's tokenizer in the form of `tokenizer.json`.
fn tokenizer_json(file: &Gguf, tokens: &[String]) -> Result<Value, InputError> {
    let kinds = file.wholes("tokenizer.ggml.token_type").unwrap_or_default();
    let added: Vec<Value> = (tokens.iter().zip(kinds).enumerate())
        .filter(|(_, (_, kind))| [CONTROL, USER].contains(kind))
        .map(|(id, (token, kind))| {
            json!({"id": id, "content": token, "special": *kind == CONTROL, "normalized": false,
                   "single_word": false, "lstrip": false, "rstrip": false})
        })
        .collect();
    let (normalizer, cut, decoder, model) = match file.text("tokenizer.ggml.model") {
        Some("gpt2") => byte_level_bpe(file)?,
        Some("llama") => sentencepiece_bpe(file, tokens)?,
        other => {
            return Err(file.wrong(format!(
                "its tokenizer is of the kind {}; gpt2 and llama can be read: put the model's tokenizer.json into the same folder",
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

/// Normalizer, pre-tokenizer, decoder and model.
type Parts = (Value, Value, Value, Value);

/// Byte-level BPE, as in GPT-2.
fn byte_level_bpe(file: &Gguf) -> Result<Parts, InputError> {
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
                "its tokenizer splits words in the way {}; gpt-2, smollm, llama-bpe and qwen2 can be read: put the model's \
                 tokenizer.json into the same folder",
                excerpt(other)
            )));
        }
    };
    let Some(merges) = file.texts("tokenizer.ggml.merges") else {
        return Err(
            file.wrong("its tokenizer has no merges; put the model's tokenizer.json into the same folder")
        );
    };
    Ok((normalizer, cut, byte_level(true), json!({"merges": merges, "ignore_merges": pre == "llama-bpe"})))
}

/// BPE over pieces, as in SentencePiece: of all neighbours that form a piece, those with the best score are merged first.
fn sentencepiece_bpe(file: &Gguf, tokens: &[String]) -> Result<Parts, InputError> {
    let scores = file.reals("tokenizer.ggml.scores").filter(|scores| scores.len() == tokens.len());
    let Some(scores) = scores else {
        return Err(
            file.wrong("its tokenizer has no scores; put the model's tokenizer.json into the same folder")
        );
    };
    let pieces: std::collections::HashSet<&str> = tokens.iter().map(String::as_str).collect();
    let mut merges = Vec::new();
    for (token, score) in tokens.iter().zip(scores) {
        for (at, _) in token.char_indices().skip(1) {
            let (left, right) = token.split_at(at);
            if pieces.contains(left) && pieces.contains(right) {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn request(system: &str) -> Request {
        Request { system: system.into(), prompt: "Zoos?".into(), max_tokens: 9, ..Request::default() }
    }

    fn render(source: &str, system: &str) -> Result<String, PromptError> {
        Template::new(Some(source))?.prompt(&request(system), &["<s>".into(), "</s>".into()])
    }

    #[test]
    fn a_template_is_rendered_as_in_pythons_transformers() {
        let source = "{{ bos_token }}{%- for m in messages %}\n    {% if m['role'].startswith('s') %}\nS:{{ m.content | trim }}\n    \
                      {% else %}\nU:{{ m['content'].strip() }}{{ eos_token }}\n    {% endif %}\n{% endfor %}\n\
                      {% if add_generation_prompt %}A:{% endif %}\n";
        assert_eq!(render(source, " brief ").unwrap(), "<s>S:brief\nU:Zoos?</s>\nA:");
    }

    #[test]
    fn a_system_text_that_the_template_refuses_goes_into_the_users_turn() {
        let source = "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}{{ messages[0].content }}";
        assert_eq!(render(source, "Be brief.").unwrap(), "Be brief.\n\nZoos?");
    }

    #[test]
    fn without_a_template_the_prompt_is_the_plain_text() {
        let plain = Template::new(None).unwrap().prompt(&request("Be brief."), &Default::default());
        assert_eq!(plain.unwrap(), "Be brief.\n\nZoos?\n\n");
    }

    #[test]
    fn an_invalid_or_endless_template_is_reported() {
        assert!(matches!(Template::new(Some("{% if")), Err(PromptError::Template(_))));
        let endless = "{% for a in range(9999) %}{% for b in range(9999) %}x{% endfor %}{% endfor %}";
        assert!(matches!(render(endless, ""), Err(PromptError::Refused(_))));
    }
}
