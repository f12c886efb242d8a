//! Every parser, with inputs that are almost right: none may panic, or take more than a minute. A long run takes memory away too, so
//! that one that asks for gigabytes ends the process.
//!
//! Owns how long a target is tried and what is told of it. A brief run tries the same inputs every time; a long one takes as many as
//! its seconds allow. An input that breaks something is kept, with the command that tries it again. It is written down before it is
//! tried, so that one that ends the process is found too.

use std::env;
use std::fs;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use parallax::annotate::{Act, Entry, View};
use parallax::measure::seeded::SplitMix64;

use super::mutate::mutated;
use super::targets::{labels, models, seeds, served, texts};
use super::{kept, long, seed, tell};

/// A target: bytes in, nothing out.
type Run = fn(&[u8]);

/// Inputs of a brief run, beside the seeds themselves.
const BRIEF: usize = 60;
/// An input that takes longer is kept and counted, though it breaks nothing.
const SLOW: Duration = Duration::from_secs(2);
/// An input that takes longer hangs, which ends the process.
const HANGS: Duration = Duration::from_secs(60);

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
            fs::write(kept(&format!("{name}-slow-{slow}")), &input).unwrap();
        }
        longest = longest.max(took);
        tried += 1;
    }
    tell(&format!(
        "fuzz {name}: {tried} inputs from seed {}, {slow} over {SLOW:?}, the longest {longest:.1?}",
        seed()
    ));
}

fn attempt(name: &str, run: Run, input: &[u8]) -> Duration {
    let place = kept(&format!("{name}-tried"));
    fs::write(&place, input).unwrap();
    let began = Instant::now();
    let ended = watched(name, &place);
    if catch_unwind(AssertUnwindSafe(|| run(input))).is_err() {
        let broken = kept(&format!("{name}-broken"));
        fs::write(&broken, input).unwrap();
        panic!("{name} does not bear an input of {} bytes; {}", input.len(), again(&broken));
    }
    drop(ended);
    let took = began.elapsed();
    let _ = fs::remove_file(place);
    took
}

fn again(input: &Path) -> String {
    let input = input.display();
    format!(
        "to try it again:\nPARALLAX_INPUT={input} cargo test --all-features --test it an_input_that_was_kept"
    )
}

/// Ends the process if what is returned still lives after a minute: a thread that hangs cannot be ended alone.
fn watched(name: &str, input: &Path) -> mpsc::Sender<()> {
    let (send, ended) = mpsc::channel();
    let told = format!("{name} hangs; {}", again(input));
    thread::spawn(move || {
        if ended.recv_timeout(HANGS) == Err(RecvTimeoutError::Timeout) {
            // Not by a macro: what those print is held back until the test has ended.
            let _ = writeln!(std::io::stderr(), "{told}");
            std::process::abort();
        }
    });
    send
}

/// The file's name begins with its target's.
#[test]
fn an_input_that_was_kept_is_tried_again() {
    let Ok(path) = env::var("PARALLAX_INPUT") else { return };
    let path = Path::new(&path);
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    let fitting = ALL.iter().filter(|(target, _)| name.starts_with(target));
    let (_, run) =
        fitting.max_by_key(|(target, _)| target.len()).expect("a file whose name begins with a target's");
    let _ended = watched(&name, path);
    run(&fs::read(path).unwrap());
}

/// A test a target, so that they are shared among the cores and asked for by name.
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
const ASKED: &str = "{\"corpus\":\"zoos\",\"question\":\"Should zoos be banned?\",\"lanes\":[\"bm25\",\"minilm+mmr\"]}\n\
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
    texts::corpus_jsonl: seeds(&[CORPUS], &["{\"id\":7,\"contents\":\"T\\nx\",\"metadata\":{\"year\":[1,null]}}\n"]);
    texts::corpus_csv: seeds(&[], &["id,title,text,voice\n1,T,\"Some \"\"text\"\",\nand more\",op-ed\n2,,x,news\n"]);
    texts::corpus_tsv: seeds(&["sample_data/labels.tsv"], &["id\ttext\ttitle\n1\t\"A text\"\tT\n2\tB\tU\n"]);
    texts::corpus_results: seeds(&[], &[RANKED, BERDS]);
    texts::markdown_page: seeds(&["sample_data/README.md", "assets/README.md"], &["---\ntitle: T\n---\n# H\n\n```rust\nx\n```\n- a\n"]);
    texts::html_page: seeds(&[], &[HTML]);
    texts::packed_gz: seeds(&["tools/reader/written.jsonl.gz"], &[]);
    texts::question_set: seeds(&["sample_data/questions.jsonl"], &["{\"question\":\"Q?\",\"perspectives\":[\"A\"],\"answers\":[\"x\"]}\n"]);
    texts::statements: seeds(&["sample_data/questions.jsonl"], &["Should zoos be banned?", "Is it better to rent or to buy?", "Who's right, and why do we?"]);
    texts::pir_tasks: seeds(&[], &[PIR]);
    texts::trec_run: seeds(&[], &[RUN]);
    texts::trec_qrels: seeds(&[], &["q1 0 d1 1\nq1 0 d2 0\nq2 0 d1 2\n"]);
    texts::trec_diversity: seeds(&[], &["q1 1 d1 1\nq1 2 d2 0\nq2 1 d1 1\n"]);
    texts::beir_qrels: seeds(&[], &["query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td2\t0\n"]);
    texts::jsonl_qrels: seeds(&[], &["{\"query-id\":\"q1\",\"corpus-id\":\"d1\",\"score\":1}\n"]);
    texts::rank_llm: seeds(&[], &[RANKED]);
    texts::config: seeds(&[], &[CONFIG]);
    texts::key_script: seeds(&[], &["zoos<Enter>j<Resize:80x24><Click:3,7><Wait><C-a><lt>x<Esc>"]);
    texts::session: seeds(&["assets/tour.session.jsonl"], &[SESSION]);
    texts::recipe: seeds(&[], &["bm25@k1=0.9,b=0.4", "hybrid+mmr=0.5+csqe", "path:models/x@query=q: +pap", "run:a.trec", "os:http://h/x@by=bm25"]);
    texts::measure_name: seeds(&[], &["MRecall@5", "nDCG@10", "alpha-nDCG@20(alpha=0.5)", "P@3", "RBO(p=0.9)"]);
    texts::safe_text: seeds(&[], &["a\u{1b}[31mred\u{7}\n\tb\u{202e}c\u{9b}", "動物園 👩\u{200d}🚀 e\u{301}", "\u{1b}]52;c;eA==\u{7}\u{1b}P1$r\u{1b}\\"]);
    labels::labels: seeds(&["sample_data/labels.tsv"], &["zoos 1 zoos-01 1\nzoos 2 zoos-02 0\n"]);
    labels::perspectrum: seeds(&[], &[CLAIMS]);
    labels::fitted_threshold: seeds(&[], &[r#"{"threshold":0.4,"labels":12,"detector":"d"}"#]);
    labels::reading_files: seeds(&[], &[READING, "{\"question\":\"Who?\",\"answers\":[\"A\"],\"ctxs\":[{\"text\":\"x\"}]}\n"]);
    labels::recorded_answers: seeds(&[], &["{\"question\":\"Q?\",\"k\":1,\"answer\":\"a\"}\n{\"question\":\"Q?\",\"k\":1,\"passages\":[\"p\"],\"answer\":\"b\"}\n"]);
    labels::recorded_replies: seeds(&["sample_data/replies.jsonl"], &[]);
    labels::asked: seeds(&[], &[ASKED]);
    labels::project: seeds(&[], &[PROJECT, "{\"question\":\"Q?\",\"passage\":{\"id\":\"p\",\"title\":\"\",\"text\":\"x\"},\"ranks\":{},\"judges\":[]}\n"]);
    labels::labels_tsv: seeds(&["sample_data/labels.tsv"], &["question\tid\tdocument\tperspective\tlabel\tannotator\nzoos\tzoos-01\tx\tZoos should be banned.\t1\tanna\n"]);
    labels::labels_qrels: seeds(&[], &["zoos 1 zoos-01 1\nzoos 2 zoos-02 0\n"]);
    labels::labels_berds: seeds(&[], &[BERDS]);
    labels::label_studio: seeds(&[], &[STUDIO]);
    labels::argilla: seeds(&[], &[ARGILLA]);
    labels::web_journal: seeds(&[], &[WEB]);
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
    served::chat_stream: seeds(&[], &[CHAT]);
    served::chat_answer: seeds(&[], &[CHATTED, ONCE, REFUSED]);
    served::hub_listing: seeds(&[], &[served::LISTING]);
    served::hub_file: seeds(&[], &[FILE, MOVED]);
    served::searxng_answer: seeds(&[], &[r#"{"results":[{"url":"https://a.org/"},{"url":"not one"}],"unresponsive_engines":[["x","timeout"]]}"#]);
    served::open_search_answer: seeds(&[], &[served::MAPPING, r#"{"timed_out":false,"hits":{"hits":[{"_id":"a","_score":1.5,"_source":{"hash":"h"}}]},"docs":[{"_id":"a","found":true,"_source":{"hash":"h"}}]}"#]);
    served::web_page: seeds(&[], &[PAGE, MOVED]);
    served::robots: seeds(&[], &["User-agent: *\nDisallow: /private\nAllow: /page$\nCrawl-delay: 0\nSitemap: /x\n"]);
    texts::packed_zst: zst();
    labels::journal: acts();
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

/// Graphs; those of the fixtures have neither metadata nor packed numbers.
fn graphs() -> Vec<Vec<u8>> {
    let mut seeds =
        seeds(&["tests/fixtures/readers/words/reader.onnx", "tests/fixtures/readers/logits.onnx"], &[]);
    // An entry of metadata with its name and value.
    seeds.push([&seeds[0][..], b"\x72\x08\x0a\x02by\x12\x02us"].concat());
    // A graph with a tensor of the numbers 3 and 128.
    seeds.push(b"\x3a\x09\x2a\x07\x10\x07\x3a\x03\x03\x80\x01".to_vec());
    seeds
}

/// A journal as acts write it.
fn acts() -> Vec<Vec<u8>> {
    let act = |view: View| Act {
        question: "Q?".into(),
        passage: "p".into(),
        text: "h".into(),
        view,
        took: Some(5),
    };
    let first = Entry::new(act(View { flagged: true, ..View::default() }), "anna", Vec::new(), 1).unwrap();
    let second = Entry::new(act(View::default()), "anna", vec![first.id.clone()], 2).unwrap();
    let lines = [first, second].map(|entry| entry.line().unwrap() + "\n").concat();
    vec![lines.into_bytes()]
}

const ROWS: [f32; 6] = [1.0, 0.0, 0.6, 0.8, 0.0, 1.0];

/// Vectors of three passages, as NumPy writes them.
fn npy() -> Vec<Vec<u8>> {
    let head = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }\n";
    let length = (head.len() as u16).to_le_bytes();
    vec![[b"\x93NUMPY\x01\x00", &length[..], head.as_bytes(), &ROWS.map(f32::to_le_bytes).concat()].concat()]
}

/// The same as safetensors.
fn tensor() -> Vec<Vec<u8>> {
    let head = r#"{"rows":{"dtype":"F32","shape":[3,2],"data_offsets":[0,24]}}"#;
    let length = (head.len() as u64).to_le_bytes();
    vec![[&length[..], head.as_bytes(), &ROWS.map(f32::to_le_bytes).concat()].concat()]
}
