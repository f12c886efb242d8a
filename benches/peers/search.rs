//! BM25 against bm25s and tantivy's own scorer, vectors against faiss flat: the same terms, vectors and depth.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use parallax::corpus::PassageIx;
use parallax::encode::Role;
use parallax::engine::{Opening, Setup};
use parallax::retrieve::bm25::{Bm25, TermRetriever};
use parallax::retrieve::dense::DenseRetriever;
use parallax::retrieve::terms;
use parallax::retrieve::{Hit, Retriever};
use parallax::work::Stop;
use serde_json::json;

use crate::Outcome;
use crate::page::{Page, cells};
use crate::peer::{Peer, lists, seconds};
use crate::rounds::{ROUNDS, Rounds};
use crate::tantivy_own::Own;

const K: usize = 100;
const CORES: usize = 2;

/// The first ten that two sides share, of all their first tens.
fn shared(ours: &[Vec<u32>], theirs: &[Vec<u32>]) -> String {
    let (mut same, mut all) = (0, 0);
    for (ours, theirs) in ours.iter().zip(theirs) {
        let ours = &ours[..ours.len().min(10)];
        all += ours.len();
        same += ours.iter().filter(|passage| theirs.iter().take(10).any(|other| other == *passage)).count();
    }
    format!("{same} of {all} in the first ten")
}

fn places(hits: &[Hit]) -> Vec<u32> {
    hits.iter().map(|hit| hit.passage.0).collect()
}

/// Both retrievers over one corpus, which is imported, indexed and embedded first where that was not done.
pub fn search(page: &mut Page, opening: &Opening, mut peer: Option<&mut Peer>) -> Outcome<()> {
    let setup = Setup::open(opening, &|_| (), &Stop::never())?;
    setup.embed(None, &|_| (), &Stop::never())?;
    let asked: Vec<String> =
        setup.questions.iter().flat_map(|question| question.perspectives.clone()).collect();
    let title = format!(
        "{} statements over the {} passages of {}: milliseconds per search, first {K}",
        asked.len(),
        setup.corpus.len(),
        setup.corpus.name
    );
    page.table(&title, &["this program", "the peer", "ratio", "agreement"]);
    by_terms(page, &setup, &asked, peer.as_deref_mut())?;
    by_vectors(page, &setup, &asked, peer)
}

fn by_terms(page: &mut Page, setup: &Setup, asked: &[String], peer: Option<&mut Peer>) -> Outcome<()> {
    let split = |text: &str| terms(text).into_iter().map(|term| term.text).collect::<Vec<_>>();
    let queries: Vec<Vec<String>> = asked.iter().map(|text| split(text)).collect();
    let passages: Vec<Vec<String>> =
        setup.corpus.places().map(|at| split(&setup.corpus.passage(at).contents())).collect();
    let ask = |constants| -> Outcome<Vec<Vec<u32>>> {
        let retriever = TermRetriever::new(Arc::clone(&setup.corpus), setup.terms()?, constants);
        asked.iter().map(|text| Ok(places(&retriever.search(text, K, &Stop::never())?))).collect()
    };
    let each = |seconds: f64| seconds / asked.len() as f64 * 1e3;
    if let Some(peer) = peer {
        let file = tempfile::NamedTempFile::new()?;
        let mut lines = std::io::BufWriter::new(&file);
        for passage in &passages {
            writeln!(lines, "{}", json!(passage))?;
        }
        lines.flush()?;
        for backend in ["numpy", "numba"] {
            let name = format!("BM25; bm25s, {backend}, given the terms");
            let order = json!({"do": "bm25_index", "file": file.path(), "backend": backend});
            if let Err(error) = peer.ask(&order) {
                page.row(&name, &["–".into(), format!("failed: {error}"), "–".into(), "–".into()]);
                continue;
            }
            let depth = K.min(setup.corpus.len());
            let order =
                json!({"do": "bm25", "queries": queries, "k": depth, "backend": backend, "threads": 1});
            let theirs = lists(&peer.ask(&order)?, "hits")?;
            let mut ours = Vec::new();
            let rounds = Rounds::of(
                ROUNDS,
                || {
                    ours = ask(Bm25::default())?;
                    Ok(())
                },
                || Ok(Some(seconds(&peer.ask(&order)?)?)),
            )?;
            let mut row = cells(&rounds, each);
            row.push(shared(&ours, &theirs));
            page.row(&name, &row);
        }
    } else {
        let rounds = Rounds::of(ROUNDS, || ask(Bm25::default()).map(drop), || Ok(None))?;
        page.row("BM25; bm25s is not there", &[cells(&rounds, each), vec!["–".into()]].concat());
    }
    let own = Own::index(&passages)?;
    let constants = Bm25 { k1: 1.2, b: 0.75 };
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let rounds = Rounds::of(
        ROUNDS,
        || {
            ours = ask(constants)?;
            Ok(())
        },
        || {
            let began = std::time::Instant::now();
            theirs = queries.iter().map(|terms| own.search(terms, K)).collect::<Outcome<_>>()?;
            Ok(Some(began.elapsed().as_secs_f64()))
        },
    )?;
    let mut row = cells(&rounds, each);
    row.push(shared(&ours, &theirs));
    page.row("BM25 at k1 1.2, b .75; tantivy's own scorer, with its block maxima", &row);
    Ok(())
}

fn by_vectors(page: &mut Page, setup: &Setup, asked: &[String], mut peer: Option<&mut Peer>) -> Outcome<()> {
    let (encoder, vectors) = (setup.encoder(None)?, setup.vectors(None)?.ok_or("there are no vectors")?);
    let queries =
        asked.iter().map(|text| encoder.encode(text, Role::Query)).collect::<Result<Vec<_>, _>>()?;
    if let Some(peer) = peer.as_deref_mut() {
        let mut file = tempfile::NamedTempFile::new()?;
        for at in setup.corpus.places() {
            let PassageIx(row) = at;
            let row = vectors.row(PassageIx(row))?;
            let bytes: Vec<u8> = row.iter().flat_map(|x| x.to_le_bytes()).collect();
            file.write_all(&bytes)?;
        }
        file.flush()?;
        let place: &Path = file.path();
        peer.ask(&json!({"do": "faiss_index", "file": place, "dimensions": vectors.dimensions()}))?;
    }
    let retriever = DenseRetriever::new(Arc::clone(&setup.corpus), encoder, vectors);
    for threads in [1, CORES] {
        let order = json!({"do": "faiss", "queries": queries, "k": K, "threads": threads});
        let theirs: Option<Vec<Vec<u32>>> =
            peer.as_deref_mut().map(|peer| lists(&peer.ask(&order)?, "hits")).transpose()?;
        let mut ours = Vec::new();
        let rounds = Rounds::of(
            ROUNDS,
            || {
                let found = queries.iter().map(|query| retriever.nearest(query, K, &Stop::never()));
                ours = found.map(|hits| Ok(places(&hits?))).collect::<Outcome<_>>()?;
                Ok(())
            },
            || peer.as_deref_mut().map(|peer| seconds(&peer.ask(&order)?)).transpose(),
        )?;
        let mut row = cells(&rounds, |seconds| seconds / asked.len() as f64 * 1e3);
        row.push(theirs.map_or_else(|| "–".into(), |theirs| shared(&ours, &theirs)));
        page.row(&format!("vectors, ready; faiss flat, {threads} of its threads"), &row);
    }
    Ok(())
}
