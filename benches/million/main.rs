//! Prints what a search over a million passages costs, next to its peers in the same run.
//!
//! ```text
//! PARALLAX_DATA=DATA PARALLAX_MILLION=FOLDER cargo bench --bench million
//! PARALLAX_PYTHON=python …                     # with faiss-cpu and bm25s, as tools/million/peers.py says
//! PARALLAX_MILLION_PASSAGES=10000000 …         # more or fewer, in a folder of their own
//! PARALLAX_MILLION_TERMS=1 …                   # BM25 alone: no vectors are made; give it a folder of its own
//! ```
//!
//! DATA holds `contentious-wiki` and `arguments-pro-con`. Some 5 GB are made in FOLDER and stored for the next run, but for the
//! index and the vectors' codes, which are built anew to be measured.

mod bytes;
mod grow;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use parallax::corpus::PassageIx;
use parallax::encode::{Role, Vectors};
use parallax::engine::{Opening, Setup};
use parallax::retrieve::bm25::{Bm25, TermRetriever};
use parallax::retrieve::dense::DenseRetriever;
use parallax::retrieve::{Hit, Retriever};
use parallax::vector::dot;
use parallax::work::{Job, Progress, Stop};

/// Of `PARALLAX_MILLION_PASSAGES`, where it is set.
fn passages() -> usize {
    let wanted = std::env::var("PARALLAX_MILLION_PASSAGES").ok();
    wanted.and_then(|wanted| wanted.parse().ok()).unwrap_or(1_000_000)
}

const ROUNDS: usize = 3;
const DEPTH: usize = 100;
/// Questions whose lists are compared with those of scoring every vector.
const COMPARED: usize = 20;

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    // `cargo test --benches` only asks whether this builds.
    if std::env::args().any(|arg| arg == "--test") {
        return Ok(());
    }
    let (Some(data), Some(folder)) = (path("PARALLAX_DATA"), path("PARALLAX_MILLION")) else {
        println!("a million passages: skipped: PARALLAX_DATA and PARALLAX_MILLION are not set");
        return Ok(());
    };
    if path("PARALLAX_MILLION_ASK").is_some() {
        return ask(&folder);
    }
    std::fs::create_dir_all(&folder)?;
    let with_vectors = path("PARALLAX_MILLION_TERMS").is_none();
    if !folder.join("corpus.jsonl").exists() {
        make(&data, &folder, with_vectors)?;
    }
    println!("{:<58} {:>24}   goal", "figure", "measured");
    claims(&data, &folder)?;
    let (ours, parts) = if with_vectors {
        build(&folder)?;
        queries_of(&data, &folder)?;
        let ours = measure(&folder)?;
        memory()?;
        (ours, &["flat", "bm25s", "ivf", "hnsw"][..])
    } else {
        (Ours { dense: Times::of(0, |_| Ok(Vec::new()))?, terms: terms(&folder)? }, &["bm25s"][..])
    };
    match path("PARALLAX_PYTHON") {
        Some(python) => peers(&python, &folder, &ours, parts)?,
        None => println!("peers: skipped: PARALLAX_PYTHON is not set"),
    }
    Ok(())
}

/// Times BM25 on the corpus alone.
fn terms(folder: &Path) -> Outcome<Times> {
    let setup = Setup::open(&opening(folder.join("corpus.jsonl"), folder), &|_| (), &Stop::never())?;
    let retriever = TermRetriever::new(Arc::clone(&setup.corpus), setup.terms()?, Bm25::default());
    let texts = std::fs::read_to_string(folder.join("questions.txt"))?;
    term_times(&retriever, &texts.lines().collect::<Vec<_>>())
}

fn term_times(retriever: &TermRetriever, texts: &[&str]) -> Outcome<Times> {
    let times = Times::of(texts.len(), |i| Ok(retriever.search(texts[i], DEPTH, &Stop::never())?))?;
    report(
        &format!("BM25: {} claims of ten words, best / p50 / p99", texts.len()),
        &times.shown(),
        "p50 ≤ 10 ms",
    );
    Ok(times)
}

fn path(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).map(PathBuf::from)
}

fn report(figure: &str, measured: &str, goal: &str) {
    println!("{figure:<58} {measured:>24}   {goal}");
}

fn opening(corpus: PathBuf, folder: &Path) -> Opening {
    Opening { corpus: Some(corpus), data_dir: folder.join("data"), ..Opening::default() }
}

fn make(data: &Path, folder: &Path, with_vectors: bool) -> Outcome<()> {
    let (mut lines, mut rows) = (Vec::new(), Vec::new());
    for name in ["contentious-wiki/articles", "arguments-pro-con/corpus.jsonl"] {
        let setup = Setup::open(&opening(data.join(name), folder), &|_| (), &Stop::never())?;
        if with_vectors {
            eprintln!("embedding {} passages of {name}, if that was not done before", setup.corpus.len());
            setup.embed(None, &|_| (), &Stop::never())?;
            let vectors = setup.vectors(None)?.ok_or("there are no vectors")?;
            rows.extend_from_slice(&vectors.rows(0..vectors.len())?);
        } else {
            rows.resize(rows.len() + setup.corpus.len(), 0.0);
        }
        lines.extend(setup.corpus.places().map(|at| {
            let passage = setup.corpus.passage(at);
            grow::Line { id: passage.id, title: passage.title, text: passage.text }
        }));
    }
    Ok(grow::grow(&lines, &rows, rows.len() / lines.len(), passages(), folder)?)
}

/// Seconds of all cores that this process has had.
fn core_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).unwrap_or(f64::NAN);
    (ticks(11) + ticks(12)) / 100.0
}

/// Imports, indexes and takes the vectors, from nothing.
fn build(folder: &Path) -> Outcome<()> {
    let opening = opening(folder.join("corpus.jsonl"), folder);
    let began = Mutex::new(None);
    let open = || {
        let on_progress = |progress: Progress| {
            if progress.job == Job::Indexing {
                let mut began = began.lock().unwrap_or_else(PoisonError::into_inner);
                began.get_or_insert_with(|| (Instant::now(), core_seconds()));
            }
        };
        let setup = Setup::open(&opening, &on_progress, &Stop::never())?;
        let began = *began.lock().unwrap_or_else(PoisonError::into_inner);
        let passages = setup.corpus.len() as f64;
        let rates = began.map(|(clock, cores): (Instant, f64)| {
            (passages / clock.elapsed().as_secs_f64(), passages / (core_seconds() - cores))
        });
        Ok::<_, Box<dyn Error>>((setup, rates))
    };
    let (mut setup, mut rates) = open()?;
    let derived = corpus_folder(&setup, &opening);
    if rates.is_none() {
        // The passages stay; what is derived from them is made again.
        drop(setup);
        for entry in std::fs::read_dir(&derived)? {
            let path = entry?.path();
            if path.is_dir() {
                std::fs::remove_dir_all(path)?;
            } else if path.extension().is_some_and(|end| end == "i8" || end == "f32") {
                std::fs::remove_file(path)?;
            }
        }
        (setup, rates) = open()?;
    }
    if let Some((rate, of_a_core)) = rates {
        report("BM25: index built", &format!("{rate:.0} passages/s"), "≥ 20 000 passages/s");
        report("  a second of one core", &format!("{of_a_core:.0} passages"), "");
    }
    let began = Instant::now();
    let taken = setup.take_vectors(None, &folder.join("vectors.npy"), None, &|_| (), &Stop::never())?;
    let rate = taken.rows as f64 / began.elapsed().as_secs_f64();
    report("ready vectors taken (.npy), checked and coded", &format!("{rate:.0} rows/s"), "");
    for entry in std::fs::read_dir(&derived)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        report(&format!("  {name}"), &format!("{:.0} MB", size(&path)? as f64 / 1e6), "");
    }
    Ok(())
}

fn corpus_folder(setup: &Setup, opening: &Opening) -> PathBuf {
    parallax::corpus::library::Library::at(&opening.data_dir).folder(&setup.corpus.fingerprint)
}

fn size(path: &Path) -> std::io::Result<u64> {
    if !path.is_dir() {
        return Ok(path.metadata()?.len());
    }
    std::fs::read_dir(path)?.map(|entry| size(&entry?.path())).sum()
}

/// Writes `queries.npy`, the vectors of the sets' statements.
fn queries_of(data: &Path, folder: &Path) -> Outcome<()> {
    let mut texts: Vec<String> = Vec::new();
    for name in ["contentious-wiki", "arguments-pro-con"] {
        for question in parallax::question::set::read(&data.join(name).join("questions.jsonl"))? {
            texts.extend(question.perspectives);
        }
    }
    let encoder = parallax::encode::MiniLm::builtin()?;
    let mut bytes = grow::npy_header(texts.len(), parallax::encode::Encoder::dimensions(&encoder));
    for text in &texts {
        let vector = parallax::encode::Encoder::encode(&encoder, text, Role::Query)?;
        bytes.extend(vector.iter().flat_map(|x| x.to_le_bytes()));
    }
    Ok(std::fs::write(folder.join("queries.npy"), bytes)?)
}

/// Writes `questions.txt`, claims of ten words.
fn claims(data: &Path, folder: &Path) -> Outcome<()> {
    let claims = std::fs::read_to_string(data.join("contentious-wiki/claims.txt"))?;
    let claims = claims.lines().filter_map(|line| line.split('\t').nth(2));
    let claims: Vec<&str> = claims.filter(|claim| claim.split_whitespace().count() == 10).take(200).collect();
    Ok(std::fs::write(folder.join("questions.txt"), claims.join("\n"))?)
}

fn queries(folder: &Path) -> Outcome<Vec<Vec<f32>>> {
    let bytes = std::fs::read(folder.join("queries.npy"))?;
    let start = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let rows = bytes[start..].chunks_exact(384 * 4);
    Ok(rows
        .map(|row| Vectors::from_bytes(row, 384).row(PassageIx(0)).map(|row| row.to_vec()))
        .collect::<Result<_, _>>()?)
}

struct Opened {
    terms: TermRetriever,
    dense: DenseRetriever,
    vectors: Arc<Vectors>,
}

fn open(folder: &Path) -> Outcome<(Opened, Duration)> {
    let began = Instant::now();
    let setup = Setup::open(&opening(folder.join("corpus.jsonl"), folder), &|_| (), &Stop::never())?;
    let index = setup.terms()?;
    let took = began.elapsed();
    // The model is loaded for the first question, not at the start.
    let encoder = setup.encoder(None)?;
    let began = Instant::now();
    let vectors = setup.vectors(None)?.ok_or("there are no vectors")?;
    let took = took + began.elapsed();
    let terms = TermRetriever::new(Arc::clone(&setup.corpus), index, Bm25::default());
    let dense = DenseRetriever::new(Arc::clone(&setup.corpus), encoder, Arc::clone(&vectors));
    Ok((Opened { terms, dense, vectors }, took))
}

/// The median and the 99th percentile of all times, and the median of each question's best: other programs disturb that the least.
struct Times {
    median: f64,
    p99: f64,
    best: f64,
}

impl Times {
    fn of(questions: usize, mut ask: impl FnMut(usize) -> Outcome<Vec<Hit>>) -> Outcome<Self> {
        let (mut all, mut best) = (Vec::new(), vec![f64::INFINITY; questions]);
        for round in 0..=ROUNDS {
            for (question, best) in best.iter_mut().enumerate() {
                let began = Instant::now();
                let hits = ask(question)?;
                let took = began.elapsed().as_secs_f64() * 1e3;
                drop(hits);
                // The first round warms the page cache.
                if round > 0 {
                    all.push(took);
                    *best = best.min(took);
                }
            }
        }
        all.sort_unstable_by(f64::total_cmp);
        best.sort_unstable_by(f64::total_cmp);
        let at = |times: &[f64], share: f64| {
            times.get(((times.len() as f64 * share) as usize).min(times.len().saturating_sub(1))).copied()
        };
        let at = |times: &[f64], share| at(times, share).unwrap_or(f64::NAN);
        Ok(Times { median: at(&all, 0.5), p99: at(&all, 0.99), best: at(&best, 0.5) })
    }

    fn shown(&self) -> String {
        format!("{:.1} / {:.1} / {:.1} ms", self.best, self.median, self.p99)
    }
}

struct Ours {
    dense: Times,
    terms: Times,
}

fn measure(folder: &Path) -> Outcome<Ours> {
    let mut starts = (0..5).map(|_| Ok(open(folder)?.1)).collect::<Outcome<Vec<_>>>()?;
    starts.sort_unstable();
    report(
        "start on a built index (median of 5)",
        &format!("{:.0} ms", starts[2].as_secs_f64() * 1e3),
        "≤ 200 ms",
    );
    let (Opened { terms, dense, vectors }, _) = open(folder)?;
    let (queries, stop) = (queries(folder)?, Stop::never());
    let texts = std::fs::read_to_string(folder.join("questions.txt"))?;
    let texts: Vec<&str> = texts.lines().collect();
    let passages = |hits: &[Hit]| hits.iter().map(|hit| hit.passage).collect::<Vec<_>>();
    let (mut shared, mut same, mut scans) = ([0usize; 2], 0, Vec::new());
    for query in queries.iter().take(COMPARED) {
        let found = dense.nearest(query, DEPTH, &stop)?;
        let began = Instant::now();
        let exact = dense.best(DEPTH, &stop, |passage| dot(query, passage))?;
        scans.push(began.elapsed().as_secs_f64() * 1e3);
        same += usize::from(found == exact);
        let (found, exact) = (passages(&found), passages(&exact));
        for (shared, k) in shared.iter_mut().zip([10, DEPTH]) {
            *shared += exact[..k].iter().filter(|passage| found[..k].contains(passage)).count();
        }
    }
    let compared = queries.len().min(COMPARED);
    let recall = |at: usize, k: usize| shared[at] as f64 / (compared * k) as f64;
    report(
        "dense: recall@10 / @100 against every f32 row",
        &format!("{:.4} / {:.4}", recall(0, 10), recall(1, DEPTH)),
        "≥ .99",
    );
    report("  lists the same to the last bit", &format!("{same} of {compared}"), "all");
    let dense_times = Times::of(queries.len(), |i| Ok(dense.nearest(&queries[i], DEPTH, &stop)?))?;
    report(
        &format!("dense: {} statements, best / p50 / p99", queries.len()),
        &dense_times.shown(),
        "p50 ≤ 25 ms",
    );
    let bytes = bytes::Bytes::of(&vectors)?;
    let scanned = Times::of(queries.len(), |i| {
        std::hint::black_box(bytes.scan(&queries[i], DEPTH));
        Ok(Vec::new())
    })?;
    report("  every byte of every code scanned, best / p50 / p99", &scanned.shown(), "");
    let ratio = format!("{:.2}, {:.2}", dense_times.best / scanned.best, dense_times.median / scanned.median);
    report("  the search takes of that, best and p50", &ratio, "≤ .5");
    drop(bytes);
    for probes in [8, 32, 128] {
        let some = dense.clone().probing(probes);
        let mut found = 0;
        for query in &queries {
            let exact = passages(&dense.nearest(query, 10, &stop)?);
            let own = passages(&some.nearest(query, 10, &stop)?);
            found += exact.iter().filter(|passage| own.contains(passage)).count();
        }
        let times = Times::of(queries.len(), |i| Ok(some.nearest(&queries[i], DEPTH, &stop)?))?;
        let what = format!(
            "  the nearest {probes} of {} lists, best / p50 / p99; recall@10",
            vectors.codes().map_or(0, parallax::encode::Codes::lists)
        );
        let recall = found as f64 / (queries.len() * 10) as f64;
        report(&what, &format!("{}; {recall:.3}", times.shown()), "");
    }
    scans.sort_unstable_by(f64::total_cmp);
    report("  every f32 row read (pap-plus, cast-plus), p50", &format!("{:.0} ms", scans[compared / 2]), "");
    Ok(Ours { dense: dense_times, terms: term_times(&terms, &texts)? })
}

/// Asks everything once, and says how much memory that took.
fn ask(folder: &Path) -> Outcome<()> {
    let (Opened { terms, dense, .. }, _) = open(folder)?;
    for query in queries(folder)? {
        dense.nearest(&query, DEPTH, &Stop::never())?;
    }
    println!("{}", peak());
    for text in std::fs::read_to_string(folder.join("questions.txt"))?.lines() {
        terms.search(text, DEPTH, &Stop::never())?;
    }
    println!("{}", peak());
    Ok(())
}

/// The most memory that this process had, in kB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

fn memory() -> Outcome<()> {
    let asked = Command::new(std::env::current_exe()?).env("PARALLAX_MILLION_ASK", "1").output()?;
    let text = String::from_utf8_lossy(&asked.stdout);
    let mut peaks = text.split_whitespace().map(str::parse::<f64>);
    for what in ["peak memory: encoder, all statements", "peak memory: all claims by BM25 after that"] {
        let peak = peaks.next().ok_or("nothing was asked")??;
        report(what, &format!("{:.0} MB", peak * 1024.0 / 1e6), "≤ 600 MB");
    }
    Ok(())
}

fn peers(python: &Path, folder: &Path, ours: &Ours, parts: &[&str]) -> Outcome<()> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tools/million/peers.py");
    for part in parts.iter().copied() {
        let ran = Command::new(python).arg(&script).arg(folder).arg(part).output()?;
        if !ran.status.success() {
            println!("{part}: failed: {}", String::from_utf8_lossy(&ran.stderr).trim());
            continue;
        }
        for line in String::from_utf8_lossy(&ran.stdout).lines() {
            let figure: serde_json::Value = serde_json::from_str(line)?;
            let (name, value) = (figure["name"].as_str().unwrap_or_default(), figure["value"].as_f64());
            let value = value.unwrap_or(f64::NAN);
            let ratio = match (part, name) {
                ("flat", "best") => Some(ours.dense.best),
                ("flat", "p50") => Some(ours.dense.median),
                ("bm25s", "best" | "numba best") => Some(ours.terms.best),
                ("bm25s", "p50" | "numba p50") => Some(ours.terms.median),
                _ => None,
            };
            let ratio = ratio.map(|ours| format!("ours takes {:.2} of it", ours / value)).unwrap_or_default();
            report(&format!("peer {part}: {name}"), &format!("{value:.3}"), &ratio);
        }
    }
    Ok(())
}
