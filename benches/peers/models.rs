//! Encoding and detection against ONNX Runtime: the same files, the same texts, one sequence a call.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use parallax::corpus::Passage;
use parallax::detect::rule::{Reading, Rule, Window};
use parallax::detect::{CrossEncoder, DetectError, Detector};
use parallax::encode::{Encoder, MiniLm, Role};
use parallax::vector::dot;
use parallax::work::{Stop, on_all};
use rayon::ThreadPoolBuilder;
use serde_json::json;
use tokenizers::Tokenizer;

use crate::Outcome;
use crate::page::{Page, cells, figure};
use crate::peer::{Peer, lists, seconds};
use crate::rounds::{ROUNDS, Rounds};

const LENGTHS: [usize; 4] = [16, 64, 128, 256];
/// Tokens of a row: a passage and both statements. A longer passage would be read in two windows.
const ROWS: [usize; 3] = [64, 128, 224];
const STATEMENTS: [&str; 2] = ["Zoos should be banned.", "Zoos should not be banned."];
/// Tokens that a side reads in a round.
const TOKENS: usize = 6_144;
/// Threads of ours, calls at a time of theirs, threads within a call of theirs.
const THREADS: [(usize, usize, usize); 3] = [(1, 1, 1), (2, 2, 1), (2, 1, 2)];

fn asset(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("assets").join(path)
}

/// Texts of exactly so many tokens, cut out of one long text.
fn texts(tokenizer: &Tokenizer, long: &str, tokens: usize, count: usize) -> Outcome<Vec<String>> {
    // Places of bytes are wanted, and `encode_fast` gives none.
    let offsets = tokenizer.encode(long, false)?;
    let offsets = offsets.get_offsets();
    let (mut found, mut start) = (Vec::new(), 0);
    while found.len() < count && start + tokens <= offsets.len() {
        let text = &long[offsets[start].0..offsets[start + tokens - 1].1];
        // A cut inside a word may give other tokens.
        if tokenizer.encode_fast(text, false)?.len() == tokens {
            found.push(text.to_owned());
        }
        start += tokens / 2 + 1;
    }
    if found.len() < count { Err("the texts are too short".into()) } else { Ok(found) }
}

/// Every length and number of threads, for both models.
pub fn models(page: &mut Page, passages: &[Passage], mut peer: Option<&mut Peer>) -> Outcome<()> {
    let mut tokenizer = Tokenizer::from_file(asset("minilm/tokenizer.json"))?;
    tokenizer.with_padding(None).with_truncation(None)?;
    let long: Vec<&str> = passages.iter().map(|passage| passage.text.as_str()).collect();
    let long = long.join(" ");
    encoding(page, &tokenizer, &long, peer.as_deref_mut())?;
    detection(page, &long, peer)
}

fn columns() -> [&'static str; 4] {
    ["this program", "ONNX Runtime", "ratio", "agreement"]
}

fn threads((ours, calls, within): (usize, usize, usize)) -> String {
    match (ours, calls, within) {
        (1, ..) => "1 thread".into(),
        (_, 2, _) => "2 threads, two calls at once".into(),
        _ => format!("2 threads; ONNX Runtime {within} within a call"),
    }
}

fn encoding(page: &mut Page, tokenizer: &Tokenizer, long: &str, mut peer: Option<&mut Peer>) -> Outcome<()> {
    let encoder = MiniLm::builtin()?;
    page.table("Encoding: texts per second, all-MiniLM-L6-v2 in int8", &columns());
    for tokens in LENGTHS {
        // Two stand around every text.
        let texts = texts(tokenizer, long, tokens - 2, TOKENS / tokens)?;
        for spread @ (ours, calls, within) in THREADS {
            let pool = ThreadPoolBuilder::new().num_threads(ours).build()?;
            let mut order = json!({
                "do": "encode", "model": asset("minilm/model.int8.onnx"), "tokenizer": asset("minilm/tokenizer.json"),
                "threads": within, "callers": calls, "texts": texts, "give": true,
            });
            let theirs = match peer.as_deref_mut() {
                Some(peer) => Some(lists::<f32>(&peer.ask(&order)?, "vectors")?),
                None => None,
            };
            order["give"] = false.into();
            let mut made = Vec::new();
            let rounds = Rounds::of(
                ROUNDS,
                || {
                    let each = |i: usize| encoder.encode(&texts[i], Role::Passage);
                    let vectors = on_all(&pool, texts.len(), &Stop::never(), each);
                    made = vectors.into_iter().collect::<Result<Vec<_>, _>>()?;
                    Ok(())
                },
                || peer.as_deref_mut().map(|peer| seconds(&peer.ask(&order)?)).transpose(),
            )?;
            let mut row = cells(&rounds, |seconds| texts.len() as f64 / seconds);
            row.push(theirs.map_or_else(
                || "–".into(),
                |theirs| {
                    let cosines = made.iter().zip(&theirs).map(|(a, b)| dot(a, b));
                    format!("cosine ≥ {:.4}", cosines.fold(f32::INFINITY, f32::min))
                },
            ));
            page.row(&format!("{tokens} tokens, {}", threads(spread)), &row);
        }
    }
    Ok(())
}

/// The detector's file alone: the encoder's vectors, which it shares with the lanes, are kept from the first round on.
fn detection(page: &mut Page, long: &str, mut peer: Option<&mut Peer>) -> Outcome<()> {
    let detector = CrossEncoder::builtin()?;
    let mut tokenizer = Tokenizer::from_file(asset("detector/tokenizer.json"))?;
    tokenizer.with_padding(None).with_truncation(None)?;
    let asked = STATEMENTS.map(|statement| tokenizer.encode_fast(statement, false).map(|ids| ids.len()));
    let mut around = 4; // `<s> <s>` before the passage, `</s></s>` behind it.
    for length in asked {
        around += length? + 1;
    }
    page.table(
        "Detection: passages per second, each with two statements, the built-in cross-encoder in int8",
        &columns(),
    );
    for tokens in ROWS {
        let texts = texts(&tokenizer, long, tokens - around, TOKENS / tokens)?;
        let passages = texts.iter().map(|text| Passage { text: text.clone(), ..Passage::default() });
        let passages: Vec<Passage> = passages.collect();
        for spread @ (ours, calls, within) in THREADS {
            let pool = ThreadPoolBuilder::new().num_threads(ours).build()?;
            let mut order = json!({
                "do": "detect", "model": asset("detector/detector.onnx"), "tokenizer": asset("detector/tokenizer.json"),
                "threads": within, "callers": calls, "texts": texts, "statements": STATEMENTS, "give": true,
            });
            let theirs = match peer.as_deref_mut() {
                Some(peer) => Some(lists::<f32>(&peer.ask(&order)?, "logits")?),
                None => None,
            };
            order["give"] = false.into();
            let made = RefCell::new(Vec::new());
            let rounds = Rounds::of(
                ROUNDS,
                || {
                    let each = |i: usize| -> Result<f64, DetectError> {
                        let [first, second] = detector.read_both(&passages[i], STATEMENTS, &Stop::never());
                        Ok(first_supported(detector.rule(), [&first?, &second?]))
                    };
                    let read = on_all(&pool, passages.len(), &Stop::never(), each);
                    *made.borrow_mut() = read.into_iter().collect::<Result<Vec<_>, _>>()?;
                    Ok(())
                },
                || peer.as_deref_mut().map(|peer| seconds(&peer.ask(&order)?)).transpose(),
            )?;
            let mut row = cells(&rounds, |seconds| passages.len() as f64 / seconds);
            row.push(match theirs {
                Some(theirs) => agreement(&made.borrow(), &decided(&detector, &texts, &theirs)?),
                None => "–".into(),
            });
            page.row(&format!("{tokens} tokens, {}", threads(spread)), &row);
        }
    }
    Ok(())
}

fn first_supported(rule: &Rule, readings: [&Reading; 2]) -> f64 {
    rule.decide(readings).map_or(0.0, |decision| decision.supports(0))
}

/// What the rule makes of their logits, three for each statement, and of the cosines.
fn decided(detector: &CrossEncoder, texts: &[String], logits: &[Vec<f32>]) -> Outcome<Vec<f64>> {
    let encoder = MiniLm::builtin()?;
    let asked =
        [encoder.encode(STATEMENTS[0], Role::Passage)?, encoder.encode(STATEMENTS[1], Role::Passage)?];
    let mut all = Vec::new();
    for (text, logits) in texts.iter().zip(logits) {
        let read = encoder.encode(text, Role::Passage)?;
        let reading = |at: usize| {
            let logits = logits.get(3 * at..3 * at + 3).and_then(|z| z.try_into().ok());
            let logits =
                logits.ok_or_else(|| DetectError::Model("three logits a statement were expected".into()))?;
            Reading::new(vec![Window { logits, cosine: dot(&read, &asked[at]) }])
        };
        all.push(first_supported(detector.rule(), [&reading(0)?, &reading(1)?]));
    }
    Ok(all)
}

fn agreement(ours: &[f64], theirs: &[f64]) -> String {
    let apart = ours.iter().zip(theirs).map(|(a, b)| (a - b).abs());
    format!("probability ± {}", figure(apart.fold(0.0, f64::max)))
}
