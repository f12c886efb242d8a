//! Prints this program's speed next to its peers' in the same run, and writes it into `docs/reports/speed.md`.
//!
//! ```text
//! PARALLAX_PYTHON=python PARALLAX_MINILM=FOLDER cargo bench --bench peers
//! PARALLAX_DATA=DATA …                 # also over contentious-wiki and arguments-pro-con below that folder
//! ```
//!
//! `python` has what `tools/performance/requirements.txt` names, FOLDER holds all-MiniLM-L6-v2 as sentence-transformers saves it. Where
//! either is missing this is said, our side is printed alone, and the page stays as it is. Indices and vectors of the larger corpora
//! are kept in `target/claims`.

mod job;
mod models;
mod page;
mod peer;
mod rounds;
mod search;
mod tantivy_own;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

use page::Page;
use parallax::corpus::sample;
use parallax::engine::Opening;
use peer::Peer;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> Outcome<()> {
    // `cargo test --benches` only asks whether this builds.
    if std::env::args().any(|arg| arg == "--test") {
        return Ok(());
    }
    let (python, minilm) = (path("PARALLAX_PYTHON"), path("PARALLAX_MINILM"));
    let mut page = Page::default();
    let mut missing = Vec::new();
    let mut peer = python.as_deref().map(Peer::start).transpose()?;
    page.add(&format!("Measured on {}.", date()?));
    page.add(&machine());
    match peer.as_mut() {
        Some(peer) => {
            let (versions, lacking) = peer.versions()?;
            page.add(&format!("- Peers: {versions}."));
            missing.extend(lacking);
        }
        None => missing.push("PARALLAX_PYTHON is not set".into()),
    }
    if minilm.is_none() {
        missing.push("PARALLAX_MINILM is not set".into());
    }
    let corpus = sample::corpus();
    let passages: Vec<_> = corpus.places().map(|at| corpus.passage(at)).collect();
    models::models(&mut page, &passages, peer.as_mut())?;
    let folder = tempfile::tempdir()?;
    let opening = Opening { data_dir: folder.path().into(), ..Opening::default() };
    search::search(&mut page, &opening, peer.as_mut())?;
    match path("PARALLAX_DATA") {
        Some(data) => {
            for (name, corpus) in [("contentious-wiki", "articles"), ("arguments-pro-con", "corpus.jsonl")] {
                let opening = Opening {
                    corpus: Some(data.join(name).join(corpus)),
                    questions: Some(data.join(name).join("questions.jsonl")),
                    data_dir: Path::new(env!("CARGO_MANIFEST_DIR")).join("target/claims"),
                    ..Opening::default()
                };
                search::search(&mut page, &opening, peer.as_mut())?;
            }
        }
        None => missing.push("PARALLAX_DATA is not set".into()),
    }
    drop(peer);
    job::job(&mut page, python.zip(minilm))?;
    page.add(&format!("\nLoad at the end: {}.", load()));
    if missing.is_empty() {
        claims(&mut page)?;
        return page.write(&Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reports/speed.md"));
    }
    println!("\nmissing, so docs/reports/speed.md stays as it is: {}", missing.join("; "));
    Ok(())
}

fn path(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).map(PathBuf::from)
}

fn date() -> Outcome<String> {
    let today = time::OffsetDateTime::now_utc().date();
    Ok(format!("{}-{:02}-{:02}", today.year(), u8::from(today.month()), today.day()))
}

fn load() -> String {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split_whitespace().next().unwrap_or("not known here").to_owned()
}

/// The processor as it names itself, and what of its instructions matters here.
fn machine() -> String {
    let printed = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = |name: &str| {
        let line = printed.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.split(':').nth(1)).unwrap_or("not known here").trim()
    };
    let features = ["avx2", "avx512f", "avx512_vnni", "avx_vnni", "amx_int8"];
    let there = line("flags").split_whitespace().filter(|flag| features.contains(flag));
    let there: Vec<&str> = there.collect();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    format!(
        "- Machine: {}, {cores} cores, {}; {} {}. Load at the start: {}.",
        line("model name"),
        if there.is_empty() { "none of the features that matter".into() } else { there.join(", ") },
        std::env::consts::OS,
        std::env::consts::ARCH,
        load(),
    )
}

/// The figures of `cargo bench --bench claims`, where cargo runs this.
fn claims(page: &mut Page) -> Outcome<()> {
    let Some(cargo) = path("CARGO") else { return Ok(()) };
    let ran = Command::new(cargo).args(["bench", "--quiet", "--bench", "claims"]).output()?;
    if !ran.status.success() {
        return Err(String::from_utf8_lossy(&ran.stderr).into());
    }
    let text = String::from_utf8_lossy(&ran.stdout);
    page.add(&format!("\n### This program alone\n\n```text\n{}\n```", text.trim_end()));
    Ok(())
}
