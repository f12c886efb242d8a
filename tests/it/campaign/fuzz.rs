//! Every parser, with inputs that are almost right: none may panic or hang. A long run limits memory too, so an
//! allocation of gigabytes ends the process.
//!
//! A brief run tries the same inputs every time; a long one tries as many as its seconds allow. Inputs are seeds with a few random
//! changes, so that they pass the first checks of a parser. Each is written to disk before it is tried, so one that ends the process
//! is found too. An input that breaks something stays there, and the failure prints the command that repeats it.

use std::fs;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::LazyLock;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use parallax::annotate::{Act, Entry, View};
use parallax::measure::seeded::SplitMix64;

use super::targets::seeds;
use super::{campaign_file, long, models, report, seed, servers, targets};

/// A target: a function of bytes.
type Run = fn(&[u8]);

/// Inputs of a brief run, besides the seeds themselves.
const BRIEF: usize = 60;
/// An input that takes longer is saved and counted.
const SLOW: Duration = Duration::from_secs(2);
/// An input that takes longer counts as a hang, which ends the process. The limit is long because the machine may be loaded.
const HANGS: Duration = Duration::from_secs(300);

fn fuzz(name: &str, run: Run, seeds: &[Vec<u8>]) {
    let mut rng = SplitMix64::new(seed());
    let (began, end) = (Instant::now(), long().map(Duration::from_secs));
    let (mut tried, mut slow, mut longest) = (0, 0, Duration::ZERO);
    for input in seeds {
        longest = longest.max(attempt(name, run, input));
        tried += 1;
    }
    while end.map_or(tried < BRIEF + seeds.len(), |end| began.elapsed() < end) {
        let input = mutated(&mut rng, seeds);
        let took = attempt(name, run, &input);
        if took > SLOW {
            slow += 1;
            fs::write(campaign_file(&format!("{name}-slow-{slow}")), &input).unwrap();
        }
        longest = longest.max(took);
        tried += 1;
    }
    report(&format!(
        "fuzz {name}: {tried} inputs from seed {}, {slow} over {SLOW:?}, the longest {longest:.1?}",
        seed()
    ));
}

fn attempt(name: &str, run: Run, input: &[u8]) -> Duration {
    let place = campaign_file(&format!("{name}-tried"));
    fs::write(&place, input).unwrap();
    let began = Instant::now();
    let ended = watched(name, &place);
    if catch_unwind(AssertUnwindSafe(|| run(input))).is_err() {
        let broken = campaign_file(&format!("{name}-broken"));
        fs::write(&broken, input).unwrap();
        panic!("{name} panicked on an input of {} bytes; {}", input.len(), again(&broken));
    }
    drop(ended);
    let took = began.elapsed();
    let _ = fs::remove_file(place);
    took
}

fn again(input: &Path) -> String {
    let input = input.display();
    format!(
        "to try it again:\nPARALLAX_INPUT={input} cargo test --all-features --test it a_saved_input -- --ignored"
    )
}

/// Ends the process unless the returned sender is dropped within [`HANGS`]: a thread that hangs cannot be ended alone.
fn watched(name: &str, input: &Path) -> mpsc::Sender<()> {
    let (send, ended) = mpsc::channel();
    let message = format!("{name} hangs; {}", again(input));
    thread::spawn(move || {
        if ended.recv_timeout(HANGS) == Err(RecvTimeoutError::Timeout) {
            // Not `eprintln!`: the test harness captures it until the test ends, and this one never does.
            let _ = writeln!(std::io::stderr(), "{message}");
            std::process::abort();
        }
    });
    send
}

/// The file's name begins with its target's name.
#[test]
#[ignore = "needs an input of an earlier run, named by PARALLAX_INPUT"]
fn a_saved_input_is_tried_again() {
    let path = std::env::var("PARALLAX_INPUT").expect("PARALLAX_INPUT names a file");
    let path = Path::new(&path);
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    let fitting = ALL.iter().filter(|(target, _)| name.starts_with(target));
    let (_, run) =
        fitting.max_by_key(|(target, _)| target.len()).expect("a file whose name begins with a target's");
    let _ended = watched(&name, path);
    run(&fs::read(path).unwrap());
}

/// One test per target, so that they run in parallel and can be named.
macro_rules! targets {
    ($($room:ident::$name:ident: $seeds:expr;)*) => {
        const ALL: &[(&str, Run)] = &[$((stringify!($name), $room::$name)),*];
        $(#[test]
        fn $name() {
            fuzz(stringify!($name), $room::$name, &$seeds);
        })*
    };
}

const CORPUS: &str = "sample_data/corpus.jsonl";
const RUN: &str = "q1 Q0 d1 1 9.5 tag\nq1 Q0 d2 2 8.25 tag\nq2 Q0 d1 1 1e-3 tag\n";
const RANKED: &str = r#"[{"query":{"text":"Should zoos be banned?","qid":"zoos"},"candidates":[{"docid":"a","score":1.5,
    "doc":{"title":"T","text":"Some text."}},{"docid":"b","score":1.25,"doc":{"contents":"T\nMore text."}}]}]"#;
const BERDS: &str = r#"{"question":"Should zoos be banned?","perspectives":["Zoos should be banned.","Zoos should not be banned."],
    "ctxs":[{"id":"zoos-01","title":"t","text":"x","score":2.0,"MRecall-preds":[true,false]}]}"#;
const STUDIO: &str = r#"[{"id":5,"data":{"question":"Should zoos be banned?","statement":"Zoos should be banned.","text":"x","id":"zoos-01"},
    "annotations":[{"id":1,"completed_by":3,"lead_time":12.3456,"created_at":"2024-03-05T10:35:38.123456Z","was_cancelled":false,
    "result":[{"from_name":"supports","type":"choices","value":{"choices":["supports"]}},
    {"from_name":"evidence","type":"labels","value":{"start":0,"end":4,"labels":["evidence"]}}]}]}]"#;
const ARGILLA: &str = r#"[{"id":"x","status":"completed","fields":{"question":"Should zoos be banned?","statement":"Zoos should be banned.",
    "text":"x"},"metadata":{"passage":"zoos-01"},"responses":{"supports":[{"value":"does not support","user_id":"u"}],
    "evidence":[{"value":[{"start":0,"end":4,"label":"evidence"}],"user_id":"u"}]}}]"#;
const PIR: &str = r#"{"task":{"corpus":["a","b"],"queries":["q"],"source_queries":["s"],"perspectives":["p"],"query_labels":["support"],
    "key_ref":[[0,1]]}}"#;
const CLAIMS: &str = r#"[{"cId":1,"text":"Should zoos be banned?","perspectives":[{"stance_label_3":"SUPPORT","evidence":[1],
    "perspectives":[{"pId":1,"text":"p"}]}]}]"#;
const READING: &str = r#"[{"question":"Who?","answers":["A"],"ctxs":[{"id":"1","title":"t","text":"A did.","isgold":true},"bare"]}]"#;
const PROJECT: &str = r#"{"v":1,"corpus":"c","fingerprint":"f","questions":[{"id":"q","text":"Q?","perspectives":["A.","B."]}],
    "lanes":["bm25"],"depth":3,"order":"ranks","seed":1,"blind":false,"annotators":[],"overlap":0.0}"#;
const CONFIG: &str =
    "theme = 'dark'\nglyphs = 'ascii'\nmouse = false\n[keys]\nhelp = '<C-g>'\nquit = ['q', '<C-c>']\n";
const SESSION: &str = "{\"parallax-session\":1,\"size\":\"100x30\",\"label-source\":\"auto\",\"lanes\":[\"bm25\",\"minilm\"],\"k\":5,\
    \"widths\":[1000,700],\"perspectives\":[\"A.\",\"B.\"],\"config\":\"glyphs = 'ascii'\"}\n{\"after\":7,\"pasted\":\"<m>\"}\n\
    {\"after\":0,\"keys\":\"j<C-a><Resize:80x24><Click:3,7><Wait>\"}\n";
const HISTORY: &str = "{\"corpus\":\"zoos\",\"question\":\"Should zoos be banned?\",\"lanes\":[\"bm25\",\"minilm+mmr\"]}\n\
    {\"corpus\":\"wiki\",\"question\":\"Is tea better?\",\"lanes\":[\"run:a.json\"]}\n";
const HTML: &str = "<!doctype html><html lang=en><head><title>On cages</title><style>p{}</style></head><body><nav><a href=/>x</a></nav>\
    <article><h1>On cages</h1><p>Zoos should be banned, it says here, at some length, with commas.</p><table><tr><td>1</table>\
    <ul><li>a<li>b</ul><p>More &amp; more &#x1F98D; text.<script>x()</script></p></article></body></html>";
const CHAT: &str = "data: {\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"zoos \"}}]}\n\n: a remark\n\nevent: x\n\
    data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"are\"},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":3,\
    \"completion_tokens\":2}}\r\n\r\ndata: [DONE]\n\n";
const CHATTED: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n\
    4e\r\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"zoos\"},\"finish_reason\":\"stop\"}]}\n\n\r\n0\r\n\r\n";
const ONCE: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: 64\r\n\r\n\
    {\"choices\":[{\"message\":{\"content\":\"zoos\"},\"finish_reason\":\"stop\"}]}";
const REFUSED: &str = "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nRetry-After: 1\r\nConnection: close\r\n\r\n\
    {\"error\":{\"message\":\"no such model\",\"code\":404}}";
const FILE: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nETag: \"x\"\r\nAccept-Ranges: bytes\r\nConnection: close\r\n\r\n{}";
const MOVED: &str = "HTTP/1.1 302 Found\r\nLocation: /page\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
const PAGE: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nConnection: close\r\n\r\n\
    <html><head><meta charset=shift_jis><title>T</title></head><body><p>Zoos should be banned, it says.</p></body></html>";
const WEB: &str = "{\"search\":{\"question\":\"zoos\",\"provider\":\"one\",\"searched\":\"2026-01-01T00:00:00Z\",\"wanted\":1,\"urls\":[\"http://a/\"]}}\n";

targets! {
    targets::corpus_jsonl: seeds(&[CORPUS], &["{\"id\":7,\"contents\":\"T\\nx\",\"metadata\":{\"year\":[1,null]}}\n"]);
    targets::corpus_csv: seeds(&[], &["id,title,text,voice\n1,T,\"Some \"\"text\"\",\nand more\",op-ed\n2,,x,news\n"]);
    targets::corpus_tsv: seeds(&["sample_data/labels.tsv"], &["id\ttext\ttitle\n1\t\"A text\"\tT\n2\tB\tU\n"]);
    targets::corpus_results: seeds(&[], &[RANKED, BERDS]);
    targets::markdown_page: seeds(&["sample_data/README.md", "assets/README.md"], &["---\ntitle: T\n---\n# H\n\n```rust\nx\n```\n- a\n"]);
    targets::html_page: seeds(&[], &[HTML]);
    targets::packed_gz: seeds(&["tools/reader/written.jsonl.gz"], &[]);
    targets::question_set: seeds(&["sample_data/questions.jsonl"], &["{\"question\":\"Q?\",\"perspectives\":[\"A\"],\"answers\":[\"x\"]}\n"]);
    targets::statements: seeds(&["sample_data/questions.jsonl"], &["Should zoos be banned?", "Is it better to rent or to buy?", "Who's right, and why do we?"]);
    targets::pir_tasks: seeds(&[], &[PIR]);
    targets::trec_run: seeds(&[], &[RUN]);
    targets::trec_qrels: seeds(&[], &["q1 0 d1 1\nq1 0 d2 0\nq2 0 d1 2\n"]);
    targets::trec_diversity: seeds(&[], &["q1 1 d1 1\nq1 2 d2 0\nq2 1 d1 1\n"]);
    targets::beir_qrels: seeds(&[], &["query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td2\t0\n"]);
    targets::jsonl_qrels: seeds(&[], &["{\"query-id\":\"q1\",\"corpus-id\":\"d1\",\"score\":1}\n"]);
    targets::rank_llm: seeds(&[], &[RANKED]);
    targets::config: seeds(&[], &[CONFIG]);
    targets::key_script: seeds(&[], &["zoos<Enter>j<Resize:80x24><Click:3,7><Wait><C-a><lt>x<Esc>"]);
    targets::session: seeds(&["assets/tour.session.jsonl"], &[SESSION]);
    targets::recipe: seeds(&[], &["bm25@k1=0.9,b=0.4", "hybrid+mmr=0.5+csqe", "path:models/x@query=q: +pap", "run:a.trec", "os:http://h/x@by=bm25"]);
    targets::measure_name: seeds(&[], &["MRecall@5", "nDCG@10", "alpha-nDCG@20(alpha=0.5)", "P@3", "RBO(p=0.9)"]);
    targets::safe_text: seeds(&[], &["a\u{1b}[31mred\u{7}\n\tb\u{202e}c\u{9b}", "動物園 👩\u{200d}🚀 e\u{301}", "\u{1b}]52;c;eA==\u{7}\u{1b}P1$r\u{1b}\\"]);
    targets::labels: seeds(&["sample_data/labels.tsv"], &["zoos 1 zoos-01 1\nzoos 2 zoos-02 0\n"]);
    targets::perspectrum: seeds(&[], &[CLAIMS]);
    targets::fitted_threshold: seeds(&[], &[r#"{"threshold":0.4,"labels":12,"detector":"d"}"#]);
    targets::reading_files: seeds(&[], &[READING, "{\"question\":\"Who?\",\"answers\":[\"A\"],\"ctxs\":[{\"text\":\"x\"}]}\n"]);
    targets::recorded_answers: seeds(&[], &["{\"question\":\"Q?\",\"k\":1,\"answer\":\"a\"}\n{\"question\":\"Q?\",\"k\":1,\"passages\":[\"p\"],\"answer\":\"b\"}\n"]);
    targets::recorded_replies: seeds(&["sample_data/replies.jsonl"], &[]);
    targets::query_history: seeds(&[], &[HISTORY]);
    targets::project: seeds(&[], &[PROJECT, "{\"question\":\"Q?\",\"passage\":{\"id\":\"p\",\"title\":\"\",\"text\":\"x\"},\"ranks\":{},\"judges\":[]}\n"]);
    targets::labels_tsv: seeds(&["sample_data/labels.tsv"], &["question\tid\tdocument\tperspective\tlabel\tannotator\nzoos\tzoos-01\tx\tZoos should be banned.\t1\tanna\n"]);
    targets::labels_qrels: seeds(&[], &["zoos 1 zoos-01 1\nzoos 2 zoos-02 0\n"]);
    targets::labels_berds: seeds(&[], &[BERDS]);
    targets::label_studio: seeds(&[], &[STUDIO]);
    targets::argilla: seeds(&[], &[ARGILLA]);
    targets::web_journal: seeds(&[], &[WEB]);
    models::weights_safetensors: seeds(&["tests/fixtures/encoders/contriever/model.safetensors"], &[]);
    models::model_config: seeds(&["tests/fixtures/encoders/contriever/config.json", "tests/fixtures/encoders/mpnet/config.json"], &[]);
    models::word_pieces: seeds(&["tests/fixtures/encoders/contriever/tokenizer.json"], &[]);
    models::unigrams: seeds(&["tests/fixtures/encoders/instructor/tokenizer.json"], &[]);
    models::byte_pairs: seeds(&["tests/fixtures/encoders/roberta/merges.txt", "tests/fixtures/encoders/roberta/vocab.json"], &[]);
    models::detector_folder: seeds(&["tests/fixtures/detectors/deberta-v3/config.json", "tests/fixtures/detectors/deberta-v2/tokenizer.json"], &[]);
    models::gguf: seeds(&["tests/fixtures/llm/llama.gguf", "tests/fixtures/llm/pieces.gguf", "tests/fixtures/llm/qwen3.gguf"], &[]);
    models::fid_weights: seeds(&["tests/fixtures/fid/plain/model.safetensors"], &[]);
    models::fid_config: seeds(&["tests/fixtures/fid/plain/config.json", "tests/fixtures/fid/gated/tokenizer.json"], &[]);
    models::reader_card: seeds(&["tests/fixtures/readers/words/reader.json"], &[]);
    servers::chat_stream: seeds(&[], &[CHAT]);
    servers::chat_answer: seeds(&[], &[CHATTED, ONCE, REFUSED]);
    servers::hub_listing: seeds(&[], &[servers::LISTING]);
    servers::hub_file: seeds(&[], &[FILE, MOVED]);
    servers::searxng_answer: seeds(&[], &[r#"{"results":[{"url":"https://a.org/"},{"url":"not one"}],"unresponsive_engines":[["x","timeout"]]}"#]);
    servers::open_search_answer: seeds(&[], &[servers::MAPPING, r#"{"timed_out":false,"hits":{"hits":[{"_id":"a","_score":1.5,"_source":{"hash":"h"}}]},"docs":[{"_id":"a","found":true,"_source":{"hash":"h"}}]}"#]);
    servers::web_page: seeds(&[], &[PAGE, MOVED]);
    servers::robots: seeds(&[], &["User-agent: *\nDisallow: /private\nAllow: /page$\nCrawl-delay: 0\nSitemap: /x\n"]);
    targets::packed_zst: zst();
    targets::journal: acts();
    models::reader_graph: graphs();
    models::vectors_npy: npy();
    models::vectors_safetensors: tensor();
    models::weights_pickle: seeds(&PICKLES, &[]);
}

const PICKLES: [&str; 2] = [
    "tests/fixtures/encoders/dpr/ctx_encoder/pytorch_model.bin",
    "tests/fixtures/encoders/instructor/2_Dense/pytorch_model.bin",
];

fn zst() -> Vec<Vec<u8>> {
    let texts = ["a line\nand another\n".repeat(50), String::new()];
    texts.map(|text| zstd::encode_all(text.as_bytes(), 3).unwrap()).into()
}

/// Graphs. Those of the fixtures have neither metadata nor packed numbers.
fn graphs() -> Vec<Vec<u8>> {
    let mut seeds =
        seeds(&["tests/fixtures/readers/words/reader.onnx", "tests/fixtures/readers/logits.onnx"], &[]);
    // An entry of metadata with its name and value.
    seeds.push([&seeds[0][..], b"\x72\x08\x0a\x02by\x12\x02us"].concat());
    // A graph with a tensor of the numbers 3 and 128.
    seeds.push(b"\x3a\x09\x2a\x07\x10\x07\x3a\x03\x03\x80\x01".to_vec());
    seeds
}

/// A journal of two acts.
fn acts() -> Vec<Vec<u8>> {
    let act = |view: View| Act {
        question: "Q?".into(),
        passage: "p".into(),
        text: "h".into(),
        view,
        took: Some(5),
        seen: None,
    };
    let first = Entry::new(act(View { flagged: true, ..View::default() }), "anna", Vec::new(), 1).unwrap();
    let second = Entry::new(act(View::default()), "anna", vec![first.id.clone()], 2).unwrap();
    let lines = [first, second].map(|entry| entry.line().unwrap() + "\n").concat();
    vec![lines.into_bytes()]
}

const ROWS: [f32; 6] = [1.0, 0.0, 0.6, 0.8, 0.0, 1.0];

/// Vectors of three passages in NumPy's format.
fn npy() -> Vec<Vec<u8>> {
    let head = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }\n";
    let length = (head.len() as u16).to_le_bytes();
    vec![[b"\x93NUMPY\x01\x00", &length[..], head.as_bytes(), &ROWS.map(f32::to_le_bytes).concat()].concat()]
}

/// The same vectors as safetensors.
fn tensor() -> Vec<Vec<u8>> {
    let head = r#"{"rows":{"dtype":"F32","shape":[3,2],"data_offsets":[0,24]}}"#;
    let length = (head.len() as u64).to_le_bytes();
    vec![[&length[..], head.as_bytes(), &ROWS.map(f32::to_le_bytes).concat()].concat()]
}

/// No input grows beyond this.
const LONGEST: usize = 1 << 18;

/// Texts that parsers search for or fail on, separated by `|`.
const WORDS: &[&str] = &[
    "{|}|[|]|\"|:|,|null|true|false|{}|[]|\"\"|0|-1|1e309|NaN|Infinity|18446744073709551615|18446744073709551616",
    "9223372036854775808|-9223372036854775809|4294967296|2147483648|1000000000|0.0000001|\n|\r\n|\r|\t|\0| |\u{feff}",
    "\u{202e}|\u{2066}|\u{200b}|\u{200d}|\u{1b}[31m|\u{1b}]52;c;AAAA\u{7}|\u{1b}]8;;http://x\u{1b}\\|\u{1b}P|\u{9b}",
    "\u{2028}|é|e\u{301}|動物園|👩\u{200d}🚀|🇫🇷|\u{10ffff}|\u{fffd}|\\u0000|\\ud800|\\udc00|\\|//|<|>|</|<!--|]]>|&#0;|&lt;",
    "<script>|<C-|<Resize:65535x65535>|<Click:65535,65535>|<Enter>|<Wait>|..|../|/|%00|%|data: |data: [DONE]\n\n|event:",
    "id|text|title|_id|question|perspectives|label|Q0|F32|I64|BOOL|\"shape\":[4294967295,4294967295]",
    "\"data_offsets\":[0,18446744073709551615]|'descr'|'<f4'|'fortran_order': True|GGUF|PK\u{3}\u{4}|PK\u{5}\u{6}",
    "(((((((((|{{{{{{{{{|(a+)+$|(?=(x*)*)y|[[|]]|=|'''|\"\"\"|#|*|?|Should|Is|or|not|Allow|Disallow: /|User-agent: *",
    "Crawl-delay: 1e38|HTTP/1.1 |Content-Length: |Transfer-Encoding: chunked|Content-Encoding: gzip|Location: ",
    "FFFFFFFFFFFFFFFF\r\n",
];

#[rustfmt::skip]
const NUMBERS: &[u64] = &[0, 1, 2, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 1 << 31, u32::MAX as u64, 1 << 32, 1 << 62, 1 << 63, u64::MAX];

fn word(rng: &mut SplitMix64) -> &'static str {
    static ALL: LazyLock<Vec<&str>> = LazyLock::new(|| WORDS.iter().flat_map(|row| row.split('|')).collect());
    ALL[rng.below(ALL.len())]
}

/// One of the seeds with a few changes.
fn mutated(rng: &mut SplitMix64, seeds: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = seeds[rng.below(seeds.len())].clone();
    for _ in 0..1 + rng.below(6) {
        let other = &seeds[rng.below(seeds.len())];
        change(rng, &mut bytes, other);
    }
    bytes.truncate(LONGEST);
    bytes
}

/// A place in the input, mostly near the beginning, where headers are.
fn place(rng: &mut SplitMix64, length: usize) -> usize {
    match rng.below(4) {
        0 => rng.below(length.min(64) + 1),
        1 | 2 => rng.below(length.min(2_048) + 1),
        _ => rng.below(length + 1),
    }
}

fn range(rng: &mut SplitMix64, length: usize) -> std::ops::Range<usize> {
    let start = place(rng, length);
    let most = if rng.coin() { 16 } else { length };
    start..(start + rng.below(most + 1)).min(length)
}

fn change(rng: &mut SplitMix64, bytes: &mut Vec<u8>, other: &[u8]) {
    let at = place(rng, bytes.len());
    match rng.below(14) {
        0 if at < bytes.len() => bytes[at] ^= 1 << rng.below(8),
        1 if at < bytes.len() => bytes[at] = rng.next_u64() as u8,
        2 => drop(bytes.drain(range(rng, bytes.len()))),
        3 => bytes.truncate(at),
        4 => {
            let again = bytes[range(rng, bytes.len())].to_vec();
            insert(bytes, at, &again);
        }
        5 => {
            let part = &other[range(rng, other.len())];
            insert(bytes, at, part);
        }
        6 => {
            bytes.truncate(at);
            bytes.extend_from_slice(&other[place(rng, other.len())..]);
        }
        7 => {
            // One word very often: nesting, floods, long lines.
            let word = word(rng).as_bytes();
            let often = [10, 100, 1_000, 20_000][rng.below(4)];
            insert(bytes, at, &word.repeat(often.min(LONGEST / word.len())));
        }
        8 => digits(rng, bytes, at),
        9 => {
            let number = NUMBERS[rng.below(NUMBERS.len())].to_le_bytes();
            let width = [1, 2, 4, 8][rng.below(4)];
            for (to, from) in bytes.iter_mut().skip(at).zip(&number[..width]) {
                *to = *from;
            }
        }
        10 => lines(rng, bytes),
        _ => insert(bytes, at, word(rng).as_bytes()),
    }
}

fn insert(bytes: &mut Vec<u8>, at: usize, piece: &[u8]) {
    let at = at.min(bytes.len());
    let room = LONGEST.saturating_sub(bytes.len());
    bytes.splice(at..at, piece.iter().take(room).copied());
}

/// Replaces a number by another.
fn digits(rng: &mut SplitMix64, bytes: &mut Vec<u8>, from: usize) {
    let Some(start) = (from..bytes.len()).find(|at| bytes[*at].is_ascii_digit()) else { return };
    let end = (start..bytes.len()).find(|at| !bytes[*at].is_ascii_digit()).unwrap_or(bytes.len());
    let number = match rng.below(3) {
        0 => rng.below(10).to_string(),
        _ => NUMBERS[rng.below(NUMBERS.len())].to_string(),
    };
    bytes.splice(start..end, number.bytes());
}

/// Doubles a line, drops one or shuffles them.
fn lines(rng: &mut SplitMix64, bytes: &mut Vec<u8>) {
    let mut all: Vec<Vec<u8>> = bytes.split_inclusive(|b| *b == b'\n').map(<[u8]>::to_vec).collect();
    if all.is_empty() {
        return;
    }
    let at = rng.below(all.len());
    match rng.below(3) {
        0 => drop(all.remove(at)),
        1 => all.insert(at, all[at].clone()),
        _ => rng.shuffle(&mut all),
    }
    *bytes = all.concat();
}

#[test]
fn the_same_seed_makes_the_same_inputs_and_another_seed_others() {
    let seeds = [b"{\"id\": 17}\nand more\n".to_vec(), b"other".to_vec()];
    let made = |seed| {
        let mut rng = SplitMix64::new(seed);
        (0..500).map(|_| mutated(&mut rng, &seeds)).collect::<Vec<_>>()
    };
    assert_eq!(made(3), made(3));
    assert_ne!(made(3), made(4));
    assert!(made(3).iter().all(|input| input.len() <= LONGEST));
    assert!(made(3).iter().filter(|input| !seeds.contains(input)).count() > 400);
}
