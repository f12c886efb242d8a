//! Compares tiny random models from `tools/llm/make_gguf_fixture.py` with Python's results.

use super::model::{AT_ONCE, Job, LOOK};
use crate::llm::{Chat as _, ChatError, Request, Tokens};
use crate::work::{Stop, Stopped};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};

use serde::Deserialize;

use super::gguf;
use super::gguf::Gguf;
use super::model::{Draw, Local, log_probabilities};
use super::network::{Network, Shape};
use super::prompt::{Template, Vocabulary};

const ARCHITECTURES: [&str; 4] = ["llama", "pieces", "qwen2", "qwen3"];

#[derive(Deserialize)]
struct Expected {
    system: String,
    question: String,
    files: std::collections::HashMap<String, Case>,
}

#[derive(Deserialize)]
struct Case {
    prompt: String,
    ids: Vec<u32>,
    next: Vec<u32>,
}

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/llm").join(name)
}

fn expected() -> Expected {
    serde_json::from_slice(&fs::read(fixture("expected.json")).unwrap()).unwrap()
}

fn request(max_tokens: u32) -> Request {
    let Expected { system, question, .. } = expected();
    Request { system, prompt: question, max_tokens, ..Request::default() }
}

/// A model whose bytes were changed, with its temporary folder.
fn changed(name: &str, change: impl FnOnce(&mut Vec<u8>)) -> (tempfile::TempDir, Result<Local, String>) {
    let folder = tempfile::tempdir().unwrap();
    let mut bytes = fs::read(fixture(name)).unwrap();
    change(&mut bytes);
    let path = folder.path().join("changed.gguf");
    fs::write(&path, bytes).unwrap();
    let opened = Local::open(&path).map_err(|error| error.to_string());
    (folder, opened)
}

fn place(bytes: &[u8], word: &str) -> usize {
    bytes.windows(word.len()).position(|at| at == word.as_bytes()).unwrap()
}

fn rename(bytes: &mut [u8], from: &str, to: &str) {
    assert_eq!(from.len(), to.len());
    let at = place(bytes, from);
    bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
}

/// Sets a number in the header; between its name and the number is its type.
fn set(bytes: &mut [u8], name: &str, number: u32) {
    let at = place(bytes, name) + name.len() + 4;
    bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
}

#[test]
fn prompts_and_tokens_match_python() {
    for name in ARCHITECTURES {
        let case = &expected().files[name];
        let file = Gguf::open(&fixture(&format!("{name}.gguf"))).unwrap();
        let vocabulary = Vocabulary::read(&file).unwrap();
        let template = Template::new(file.text("tokenizer.chat_template")).unwrap();
        let prompt = template.prompt(&request(1), &vocabulary.marks).unwrap();
        assert_eq!(prompt, case.prompt, "{name}");
        assert_eq!(vocabulary.tokens(&prompt).unwrap(), case.ids, "{name}");
    }
}

#[test]
fn greedy_decoding_matches_python() {
    for name in ARCHITECTURES {
        let case = &expected().files[name];
        let file = Gguf::open(&fixture(&format!("{name}.gguf"))).unwrap();
        let network = Network::load(&file, Shape::read(&file).unwrap()).unwrap();
        let (mut memory, mut draw) = (network.memory(), Draw::new(&request(1)));
        let (first, rest) = case.ids.split_at(AT_ONCE);
        network.read(first, &mut memory).unwrap();
        let mut logits = network.read(rest, &mut memory).unwrap();
        for (at, token) in case.next.iter().enumerate() {
            assert_eq!(draw.next(&logits), Some(*token), "{name}, token {at}");
            logits = network.read(&[*token], &mut memory).unwrap();
        }
    }
}

#[test]
fn a_reply_has_text_token_counts_and_the_models_name() {
    for name in ARCHITECTURES {
        let case = &expected().files[name];
        let path = fixture(&format!("{name}.gguf"));
        let vocabulary = Vocabulary::read(&Gguf::open(&path).unwrap()).unwrap();
        let model = Local::open(&path).unwrap();
        let count = case.next.len().min(12);
        let reply = model.reply(&request(count as u32), &Stop::never()).unwrap();
        let text = vocabulary.text(&case.next[..count]).unwrap();
        assert_eq!(reply.text, text.trim_end_matches('\u{fffd}'), "{name}");
        assert_eq!(reply.tokens, Some(Tokens { prompt: case.ids.len() as u64, reply: count as u64 }));
        assert!(!reply.recorded && reply.model == model.model());
        assert!(model.model().starts_with(&format!("{name}.gguf ")), "{}", model.model());
    }
}

#[test]
fn a_reply_holds_the_likeliest_tokens_where_its_outcome_begins_with_their_probabilities() {
    for name in ARCHITECTURES {
        let path = fixture(&format!("{name}.gguf"));
        let model = Local::open(&path).unwrap();
        let plain = model.reply(&request(12), &Stop::never()).unwrap();
        assert!(plain.alternatives.is_empty());
        // The models are random: whatever words one writes are the outcome.
        let word = plain.text.split(|c: char| !c.is_alphanumeric()).find(|word| !word.is_empty()).unwrap();
        let outcomes = vec![vec![word.to_lowercase()]];
        let reply = model.reply(&Request { outcomes, ..request(12) }, &Stop::never()).unwrap();
        assert_eq!(reply.text, plain.text, "{name}");
        let logprobs: Vec<f32> = reply.alternatives.iter().map(|one| one.logprob).collect();
        assert!(logprobs.len() == 20 && logprobs.is_sorted_by(|a, b| a >= b), "{name}: {logprobs:?}");
        let sum: f32 = logprobs.iter().map(|logprob| logprob.exp()).sum();
        assert!(sum > 0.0 && sum <= 1.0 + 1e-5, "{name}: {sum}");
        let begun = reply.alternatives[0].token.trim().to_lowercase();
        assert!(!begun.is_empty() && word.to_lowercase().starts_with(&begun), "{name}: {begun} of {word}");
    }
    let logits = [1.0f32, 3.0, 2.0, 3.0];
    let sum: f32 = logits.iter().map(|logit| logit.exp()).sum();
    let found = log_probabilities(&logits, 3);
    assert_eq!(found.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [1, 3, 2]);
    assert!(
        found.iter().all(|(id, logprob)| (logprob - (logits[*id as usize].exp() / sum).ln()).abs() < 1e-6)
    );
}

#[test]
fn a_reply_stops_at_the_end_token() {
    let (_folder, model) = changed("llama.gguf", |bytes| {
        let third = expected().files["llama"].next[2];
        set(bytes, "tokenizer.ggml.eos_token_id", third);
    });
    let reply = model.unwrap().reply(&request(12), &Stop::never()).unwrap();
    assert_eq!(reply.tokens.unwrap().reply, 2);
}

#[test]
fn sampling_is_deterministic_per_request() {
    let ask = |sample| {
        let model = Local::open(&fixture("llama.gguf")).unwrap();
        model.reply(&Request { temperature: 1.0, sample, ..request(16) }, &Stop::never()).unwrap().text
    };
    assert_eq!(ask(0), ask(0));
    assert_ne!(ask(0), ask(1));
}

#[test]
fn a_stopped_reply_lets_the_next_request_run() {
    let (_folder, model) = changed("llama.gguf", |bytes| set(bytes, "llama.context_length", 1 << 24));
    let model = model.unwrap();
    // Reads the weights, so that the next request starts at once.
    model.reply(&request(12), &Stop::never()).unwrap();
    let now = Arc::new(AtomicU64::new(0));
    let ask = |request, stop| {
        let (sender, receiver) = sync_channel(1);
        model.jobs.send(Job { request, stop, sender }).unwrap();
        receiver
    };
    // Without the stop, reading this prompt would take minutes. A long reply would not do: it may end at any token.
    let long = Request { prompt: "quick ".repeat(100_000), ..request(1) };
    let long = ask(long, Stop::when_past(&now, 0));
    let next = ask(request(12), Stop::never());
    assert_eq!(next.recv_timeout(10 * LOOK), Err(RecvTimeoutError::Timeout), "it waits for the long request");
    now.store(1, Ordering::Relaxed);
    assert_eq!(long.recv().unwrap(), Err(Stopped.into()));
    assert!(next.recv().unwrap().is_ok());
}

#[test]
fn a_control_token_in_a_text_neither_ends_nor_begins_a_turn() {
    for name in ARCHITECTURES {
        let file = Gguf::open(&fixture(&format!("{name}.gguf"))).unwrap();
        let vocabulary = Vocabulary::read(&file).unwrap();
        let template = Template::new(file.text("tokenizer.chat_template")).unwrap();
        let tokens = |request: &Request| {
            let prompt = template.prompt(&vocabulary.escape(request), &vocabulary.marks).unwrap();
            vocabulary.tokens(&prompt).unwrap()
        };
        let plain = request(1);
        assert_eq!(tokens(&plain), expected().files[name].ids, "{name}");
        assert!(!vocabulary.control.is_empty(), "{name}");
        for mark in &vocabulary.control {
            let id = *vocabulary.tokens(mark).unwrap().last().unwrap();
            let count = |request: &Request| tokens(request).iter().filter(|own| **own == id).count();
            let with_marks = |text: &str| format!("{mark}{text} {mark} zoo{mark}");
            let changed = Request {
                system: with_marks(&plain.system),
                prompt: with_marks(&plain.prompt),
                ..plain.clone()
            };
            assert_eq!(count(&changed), count(&plain), "{name}: {mark}");
        }
    }
}

#[test]
fn files_with_the_same_name_are_distinguished_by_every_tensor_and_by_their_tokenizer() {
    let name = |change: &dyn Fn(&mut Vec<u8>), beside: bool| {
        let (folder, model) = changed("llama.gguf", change);
        if !beside {
            return model.unwrap().model().to_owned();
        }
        let tokenizer = r#"{"model": {"type": "BPE", "vocab": {"z": 7, "o": 8}, "merges": []}}"#;
        fs::write(folder.path().join("tokenizer.json"), tokenizer).unwrap();
        Local::open(&folder.path().join("changed.gguf")).unwrap().model().to_owned()
    };
    let same = name(&|_| (), false);
    assert_eq!(name(&|_| (), false), same);
    let mut names = vec![same, name(&|_| (), true)];
    names.push(name(&|bytes| set(bytes, "llama.context_length", 99), false));
    let (_, tensors, data) = gguf::header(&fs::read(fixture("llama.gguf")).unwrap()).unwrap();
    for place in tensors.values() {
        names.push(name(&|bytes| bytes[(data + place.from) as usize] ^= 1, false));
    }
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "{names:?}");
}

#[test]
fn a_prompt_longer_than_the_window_is_refused() {
    let model = Local::open(&fixture("llama.gguf")).unwrap();
    let long = Request { prompt: "quick ".repeat(800), ..request(12) };
    let Err(ChatError::Refused(message)) = model.reply(&long, &Stop::never()) else { panic!() };
    assert!(message.contains("the model takes 1024 with its reply"), "{message}");
    let odd = Request { temperature: f32::NAN, ..request(12) };
    assert!(matches!(model.reply(&odd, &Stop::never()), Err(ChatError::Refused(_))));
}

#[test]
fn a_reply_ends_where_the_window_ends() {
    let model = Local::open(&fixture("llama.gguf")).unwrap();
    let tokens = model.reply(&request(u32::MAX), &Stop::never()).unwrap().tokens.unwrap();
    assert!(tokens.prompt + tokens.reply <= 1024, "{tokens:?}");
}

#[test]
fn a_tokenizer_in_the_same_folder_replaces_the_files_own() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.gguf");
    fs::copy(fixture("llama.gguf"), &path).unwrap();
    fs::write(folder.path().join("tokenizer.json"), "{}").unwrap();
    let message = Local::open(&path).unwrap_err().to_string();
    assert!(message.contains("tokenizer.json: not a tokenizer that can be read"), "{message}");
    let tokenizer = r#"{"model": {"type": "BPE", "vocab": {"z": 7, "o": 8}, "merges": []}}"#;
    fs::write(folder.path().join("tokenizer.json"), tokenizer).unwrap();
    let vocabulary = Vocabulary::read(&Gguf::open(&path).unwrap()).unwrap();
    assert_eq!(vocabulary.tokens("zoo").unwrap(), [7, 8, 8]);
}

#[test]
fn an_invalid_file_is_reported_when_it_is_opened() {
    for (change, words) in [
        (
            Box::new(|bytes: &mut Vec<u8>| bytes[..2].copy_from_slice(b"PK"))
                as Box<dyn FnOnce(&mut Vec<u8>)>,
            "not a GGUF file",
        ),
        (Box::new(|bytes| bytes.clear()), "not a GGUF file"),
        (Box::new(|bytes| bytes[4] = 1), "version 1"),
        (Box::new(|bytes| bytes[4..8].copy_from_slice(&[0, 0, 0, 3])), "big-endian"),
        (Box::new(|bytes| bytes.truncate(4_000)), "cut short"),
        (Box::new(|bytes| rename(bytes, "llama", "mamba")), "`mamba`; llama (with Mistral"),
        (
            Box::new(|bytes| rename(bytes, "llama.block_count", "llama.bluck_count")),
            "`llama.block_count` is missing",
        ),
        (Box::new(|bytes| set(bytes, "llama.block_count", 0)), "`llama.block_count` is 0"),
        (Box::new(|bytes| set(bytes, "llama.attention.head_count_kv", 3)), "divided evenly"),
        (
            Box::new(|bytes| {
                let at =
                    place(bytes, "llama.attention.head_count_kv") + "llama.attention.head_count_kv".len();
                // An array of two whole numbers.
                let array = [9u32, 4, 2, 0, 2, 2].map(u32::to_le_bytes).concat();
                drop(bytes.splice(at..at + 8, array));
            }),
            "head_count_kv` is an array",
        ),
        (
            Box::new(|bytes| rename(bytes, "tokenizer.ggml.tokens", "tokenizer.ggml.tokans")),
            "contains no tokenizer",
        ),
        (Box::new(|bytes| rename(bytes, "tokenizer.ggml.merges", "tokenizer.ggml.morges")), "has no merges"),
        (Box::new(|bytes| rename(bytes, "smollm", "tekken")), "in the way `tekken`"),
        (Box::new(|bytes| rename(bytes, "{%- for", "{%- fur")), "chat template cannot be read"),
        (
            Box::new(|bytes| rename(bytes, "llama.block_count", "general.alignment")),
            "block_count` is missing",
        ),
    ] {
        let (_folder, opened) = changed("llama.gguf", change);
        let message = opened.unwrap_err();
        assert!(message.contains("changed.gguf") && message.contains(words), "{words}: {message}");
    }
    let (_folder, opened) = changed("llama.gguf", |bytes| {
        rename(bytes, "llama.block_count", "general.alignment");
        set(bytes, "general.alignment", 0);
    });
    assert!(opened.unwrap_err().contains("not a power of two"));
}

#[test]
fn weights_that_are_missing_cut_short_or_of_another_type_are_reported_at_the_first_request() {
    for (change, words) in [
        (
            Box::new(|bytes: &mut Vec<u8>| rename(bytes, "blk.1.ffn_up", "blk.1.ffn_ap"))
                as Box<dyn FnOnce(&mut Vec<u8>)>,
            "`blk.1.ffn_up.weight` is missing",
        ),
        (Box::new(|bytes| bytes.truncate(bytes.len() - 4_000)), "cut short"),
        (
            Box::new(|bytes| set(bytes, "llama.feed_forward_length", 50)),
            "has the shape [48, 32], expected [50, 32]",
        ),
        (
            Box::new(|bytes| {
                let at = place(bytes, "output_norm.weight") + "output_norm.weight".len() + 4 + 8;
                bytes[at] = 19;
            }),
            "quantised in a way that cannot be read (type 19)",
        ),
        (
            Box::new(|bytes| {
                let end = bytes.len() - 400;
                bytes[end..].fill(0xff);
            }),
            "NaN or infinite",
        ),
    ] {
        let (_folder, model) = changed("llama.gguf", change);
        let message = model.unwrap().reply(&request(12), &Stop::never()).unwrap_err().to_string();
        assert!(message.contains("changed.gguf") && message.contains(words), "{words}: {message}");
    }
}

#[test]
fn no_changed_byte_of_the_header_causes_a_panic() {
    let end = place(&fs::read(fixture("pieces.gguf")).unwrap(), "output_norm.weight");
    for at in (4..end).step_by(127) {
        for flip in [0x01, 0x80] {
            let (_folder, model) = changed("pieces.gguf", |bytes| bytes[at] ^= flip);
            let message = model.map(|model| model.reply(&request(2), &Stop::never()));
            let panicked = |error: &ChatError| error.to_string().contains("thread of the model has ended");
            assert!(
                !matches!(&message, Ok(Err(error)) if panicked(error)),
                "byte {at} by {flip}: {message:?}"
            );
        }
    }
}

/// The reply of a server to a request, as JSON.
fn served(address: &str, body: &serde_json::Value) -> serde_json::Value {
    use std::io::{Read, Write};
    let (mut stream, body) = (std::net::TcpStream::connect(address).unwrap(), body.to_string());
    let head = "POST /v1/chat/completions HTTP/1.0\r\nContent-Type: application/json";
    write!(stream, "{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    serde_json::from_str(reply.split_once("\r\n\r\n").unwrap().1).unwrap_or_else(|_| panic!("{reply}"))
}

#[test]
#[ignore = "needs a server of a language model and its file: tools/llm/agreement.sh (PARALLAX_LLM_ADDRESS, PARALLAX_LLM_FILE)"]
fn the_reader_of_gguf_files_agrees_with_a_server_of_the_same_file() {
    let named = |name: &str| {
        std::env::var(name).unwrap_or_else(|_| panic!("{name} is set by tools/llm/agreement.sh"))
    };
    let (address, path) = (named("PARALLAX_LLM_ADDRESS"), PathBuf::from(named("PARALLAX_LLM_FILE")));
    let file = Gguf::open(&path).unwrap();
    let vocabulary = Vocabulary::read(&file).unwrap();
    let template = Template::new(file.text("tokenizer.chat_template")).unwrap();
    let network = Network::load(&file, Shape::read(&file).unwrap()).unwrap();
    println!("prompt\ttokens\tsteps\tequal\tcompared\tgreatest difference\tof all steps");
    for (at, prompt) in [
        "Should zoos be banned? Give one reason for each side, in two sentences each.",
        "Explain in one paragraph how bees find their way back to the hive.",
        "Write a Python function that counts the vowels in a text, with a docstring and two tests.",
    ]
    .into_iter()
    .enumerate()
    {
        let system = "You answer briefly and to the point.";
        let messages =
            serde_json::json!([{"role": "system", "content": system}, {"role": "user", "content": prompt}]);
        // This server's own default of the penalty is 1.1.
        let reply = served(
            &address,
            &serde_json::json!({"messages": messages, "temperature": 0, "max_tokens": 64, "repeat_penalty": 1.0,
                                "logprobs": true, "top_logprobs": 20}),
        );
        let request = Request { system: system.into(), prompt: prompt.into(), ..Request::default() };
        let text = template.prompt(&vocabulary.escape(&request), &vocabulary.marks).unwrap();
        let ids = vocabulary.tokens(&text).unwrap();
        assert_eq!(reply["usage"]["prompt_tokens"], ids.len(), "the prompts differ: {text:?}");
        let places = reply["choices"][0]["logprobs"]["content"].as_array().unwrap();
        let mut memory = network.memory();
        let mut logits = Vec::new();
        for part in ids.chunks(AT_ONCE) {
            logits = network.read(part, &mut memory).unwrap();
        }
        let (mut close, mut equal, mut compared) = (false, 0, 0);
        let (mut greatest, mut of_all) = (0f64, 0f64);
        for (step, place) in places.iter().enumerate() {
            let own: Vec<(u32, String, f64)> = log_probabilities(&logits, 20)
                .into_iter()
                .map(|(id, logprob)| (id, vocabulary.text(&[id]).unwrap(), f64::from(logprob)))
                .collect();
            let token = place["token"].as_str().unwrap();
            let mut best: Vec<f64> = place["top_logprobs"]
                .as_array()
                .unwrap()
                .iter()
                .map(|one| one["logprob"].as_f64().unwrap())
                .collect();
            best.sort_by(|a, b| b.total_cmp(a));
            close |= best[0] - best[1] < 0.1;
            equal += usize::from(own[0].1 == token);
            assert!(close || own[0].1 == token, "prompt {at}, step {step}: {token:?}, here {:?}", &own[..3]);
            // After the first close step the server's tokens are read on, so that the logarithms can be compared.
            let found = own.iter().find(|(_, text, _)| text == token);
            let (id, _, logprob) =
                found.unwrap_or_else(|| panic!("prompt {at}, step {step}: no {token:?} in {own:?}"));
            let difference = (logprob - place["logprob"].as_f64().unwrap()).abs();
            of_all = of_all.max(difference);
            if !close {
                (compared, greatest) = (compared + 1, greatest.max(difference));
            }
            logits = network.read(&[*id], &mut memory).unwrap();
        }
        println!("{at}\t{}\t{}\t{equal}\t{compared}\t{greatest:.4}\t{of_all:.4}", ids.len(), places.len());
        assert!(greatest <= 0.05, "prompt {at}: {greatest}");
    }
}
