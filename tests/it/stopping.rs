//! A later turn stops the work of an earlier one within one passage a thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parallax::detect::LabelSource;
use parallax::pipeline::{Asked, Book, LaneError, Lists, Opening, Recipe, Setup, judge, rank, top_pairs};
use parallax::work::Stop;

fn sample(folder: &tempfile::TempDir) -> Setup {
    let opening = Opening { data_dir: folder.path().into(), ..Opening::default() };
    Setup::open(&opening, &|_| (), &Stop::never()).unwrap()
}

#[test]
fn judging_ends_within_one_pair_a_thread_when_the_turn_has_passed() {
    let folder = tempfile::tempdir().unwrap();
    let setup = sample(&folder);
    let question = setup.questions[0].clone();
    let bm25: Recipe = "bm25".parse().unwrap();
    let ranking =
        rank(&setup, &bm25, Asked::plainly(&question), &mut Lists::default(), &Stop::never()).unwrap();
    let pairs = top_pairs(&[ranking], 20, &Book::new(2, LabelSource::Model, 0.5));
    let (now, told) = (Arc::new(AtomicU64::new(7)), AtomicUsize::new(0));
    judge(&setup, &question, &pairs, &Stop::when_past(&now, 7), &|_| {
        told.fetch_add(1, Ordering::Relaxed);
        now.store(8, Ordering::Relaxed);
    })
    .unwrap();
    let told = told.into_inner();
    assert!(pairs.len() >= 30, "{}", pairs.len());
    assert!((1..=setup.models.current_num_threads()).contains(&told), "{told}");
}

#[test]
fn a_lane_whose_turn_has_passed_is_stopped_and_not_failed() {
    let folder = tempfile::tempdir().unwrap();
    let setup = sample(&folder);
    let now = Arc::new(AtomicU64::new(1));
    let past = Stop::when_past(&now, 0);
    let lanes =
        ["bm25", "minilm", "hybrid", "bm25+csqe", "minilm+perspectives", "minilm+pap@2", "bm25+xquad"];
    for lane in lanes {
        let recipe: Recipe = lane.parse().unwrap();
        let asked = Asked::plainly(&setup.questions[0]);
        let stopped: Result<_, LaneError> = rank(&setup, &recipe, asked, &mut Lists::default(), &past);
        assert!(stopped.is_err_and(|error| error.is_stop()), "{lane}");
    }
}
