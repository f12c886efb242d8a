//! The built-in models: close to their originals, and independent of concurrent work.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use parallax::corpus::{Passage, sample};
use parallax::detect::{CrossEncoder, Detector};
use parallax::encode::{Encoder, MiniLm, Role};
use parallax::engine::sample_key;
use parallax::work::Stop;
use serde::Deserialize;

static MINILM: LazyLock<MiniLm> = LazyLock::new(|| MiniLm::builtin().unwrap());
static DETECTOR: LazyLock<CrossEncoder> = LazyLock::new(|| CrossEncoder::builtin().unwrap());

const TEXTS: [&str; 4] = [
    "Should zoos be banned?",
    "Elephants in captivity live half as long as wild ones.",
    "動物園",
    "A much longer text about nothing in particular, which goes on and on so that its length is not that of the others, and then goes on for a little longer still.",
];

fn vector(text: &str) -> Vec<f32> {
    MINILM.encode(text, Role::Passage).unwrap()
}

fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum::<f64>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

/// Bits, so that not even the sign of a zero may differ.
fn bits(vector: &[f32]) -> Vec<u32> {
    vector.iter().map(|x| x.to_bits()).collect()
}

/// Runs `work` while two other threads keep running `noise`.
fn with_noise<T>(noise: impl Fn(usize) + Sync, work: impl FnOnce() -> T) -> T {
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        for first in 0..2 {
            let (ended, noise) = (&ended, &noise);
            scope.spawn(move || {
                let mut turn = first;
                while !ended.load(Ordering::Relaxed) {
                    noise(turn);
                    turn += 1;
                }
            });
        }
        let made = work();
        ended.store(true, Ordering::Relaxed);
        made
    })
}

#[derive(Deserialize)]
struct Reference {
    text: String,
    embedding: Vec<f32>,
}

#[test]
fn vectors_are_close_to_those_of_the_original_weights() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/minilm/reference.json");
    let all: Vec<Reference> = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert!(!all.is_empty());
    let cosines: Vec<f64> = all.iter().map(|one| cosine(&vector(&one.text), &one.embedding)).collect();
    for (one, cosine) in all.iter().zip(&cosines) {
        assert!(*cosine > 0.97, "{cosine} for {:?}", one.text);
    }
    let mean = cosines.iter().sum::<f64>() / cosines.len() as f64;
    assert!(mean > 0.985, "mean {mean}");
}

#[test]
fn a_vector_has_unit_length_even_for_an_empty_text() {
    for text in TEXTS.into_iter().chain([""]) {
        let vector = vector(text);
        let length = vector.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
        assert!(vector.len() == MINILM.dimensions() && (length - 1.0).abs() < 1e-3, "{text:?}: {length}");
    }
}

#[test]
fn a_text_has_the_same_bytes_twice_and_while_other_threads_encode() {
    let alone: Vec<Vec<u32>> = TEXTS.iter().map(|text| bits(&vector(text))).collect();
    let again: Vec<Vec<u32>> = TEXTS.iter().map(|text| bits(&vector(text))).collect();
    let noise = |turn: usize| drop(vector(TEXTS[turn % TEXTS.len()]));
    let among: Vec<Vec<u32>> = with_noise(noise, || TEXTS.iter().map(|text| bits(&vector(text))).collect());
    assert_eq!(alone, again);
    assert_eq!(alone, among);
}

#[test]
fn the_vectors_of_the_sample_come_from_this_encoder() {
    let key = sample_key(MINILM.key());
    assert!(
        sample::VECTORS.starts_with(&key),
        "sample_data/minilm.f32 is of other passages or another encoder: cargo run --release --example embed_sample"
    );
    let rows = (sample::VECTORS.len() - key.len()) / (4 * MINILM.dimensions());
    assert_eq!(rows, sample::corpus().len());
}

#[test]
fn a_probability_has_the_same_bytes_alone_and_with_concurrent_work() {
    let passage = |text: &str| Passage { text: text.into(), ..Passage::default() };
    let judge =
        |text: &str| DETECTOR.judge(&passage(text), "Zoos should be banned.", &Stop::never()).unwrap();
    let all = || TEXTS.iter().map(|text| judge(text).to_bits()).collect::<Vec<u32>>();
    let alone = all();
    assert!(alone.iter().all(|p| (0.0..=1.0).contains(&f32::from_bits(*p))));
    assert_eq!(alone, all());
    assert_eq!(alone, with_noise(|turn| assert!(judge(TEXTS[turn % TEXTS.len()]) <= 1.0), all));
}

#[test]
fn an_empty_passage_or_statement_has_no_probability() {
    let passage = |text: &str| Passage { text: text.into(), ..Passage::default() };
    assert!(DETECTOR.judge(&passage(" "), "Zoos should be banned.", &Stop::never()).is_err());
    assert!(DETECTOR.judge(&passage("Zoos."), "", &Stop::never()).is_err());
}

#[test]
fn two_statements_are_read_in_one_row_whichever_comes_first_and_one_beside_itself_as_if_alone() {
    let passage = Passage { text: TEXTS.join(" "), ..Passage::default() };
    let [pro, con] = ["Zoos should be banned.", "Zoos should not be banned."];
    let read = |statements| DETECTOR.read_both(&passage, statements, &Stop::never()).map(Result::unwrap);
    let ([one, other], [back, again]) = (read([pro, con]), read([con, pro]));
    assert_eq!((&one, &other), (&again, &back));
    // What is read of one depends on the other.
    let beside = read([pro, "Zoos are fine places for families."])[0].clone();
    let alone = DETECTOR.read(&passage, pro, &Stop::never()).unwrap();
    assert!(one != alone && one != beside && beside != alone);
    let single = |reading| DETECTOR.rule().single(&reading);
    let alone = single(alone);
    // Sums have another last bit there, and a number may round to the next of 256 steps.
    let twice = read([pro, pro]).map(single);
    assert!(twice.iter().all(|p| (p - alone).abs() < 0.02), "{twice:?} {alone}");
    // What cannot be read does not keep the other from being read, alone.
    let [pro, none] = DETECTOR.read_both(&passage, [pro, " "], &Stop::never());
    assert_eq!(pro.map(single), Ok(alone));
    assert!(none.unwrap_err().to_string().contains("the statement is empty"));
}

/// tools/detector: `export.predict_onnx` (ONNX Runtime) and `decision.probabilities`. Made anew whenever the detector is.
#[test]
fn the_decision_on_two_sides_is_that_of_the_training_scripts() {
    let text = "Ban zoos and I honestly don't know who'd take them, the animal charities are full of dogs. If your local one's rubbish \
                report it, that's what the licence is for.";
    let passage = Passage { text: text.into(), ..Passage::default() };
    let statements = ["Zoos should be banned.", "Zoos should be kept."];
    // Two engines round to int8 at other places, which moves a probability by up to .03.
    let near =
        |ours: [f64; 4], theirs: [f64; 4]| ours.into_iter().zip(theirs).all(|(a, b)| (a - b).abs() < 0.04);
    let (together, apart) = ([0.4255, 0.4346, 0.0268, 0.1131], [0.3688, 0.5504, 0.0286, 0.0522]);
    assert!(!near(together, apart));
    let read = DETECTOR.read_both(&passage, statements, &Stop::never()).map(Result::unwrap);
    let decision = DETECTOR.rule().decide(read.each_ref()).unwrap();
    assert!(near(decision.p, together), "{decision:?}");
    // Each read alone is another decision.
    let alone = statements.map(|statement| DETECTOR.read(&passage, statement, &Stop::never()).unwrap());
    let alone = DETECTOR.rule().decide(alone.each_ref()).unwrap();
    assert!(near(alone.p, apart), "{alone:?}");
}

mod stopping {
    //! A later turn stops the work of an earlier one within one passage per thread.

    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

    use parallax::detect::LabelSource;
    use parallax::engine::{
        Depth, Event, LaneError, LaneQuery, Lists, Opening, Query, Recipe, Run, Setup, rank,
    };
    use parallax::work::Stop;

    fn sample(folder: &tempfile::TempDir) -> Setup {
        let opening = Opening { data_dir: folder.path().into(), ..Opening::default() };
        Setup::open(&opening, &|_| (), &Stop::never()).unwrap()
    }

    #[test]
    fn judging_ends_within_one_passage_per_thread_when_the_turn_has_passed() {
        let folder = tempfile::tempdir().unwrap();
        let setup = sample(&folder);
        let question = setup.questions[0].clone();
        let bm25: Recipe = "bm25".parse().unwrap();
        let ranking =
            rank(&setup, &bm25, LaneQuery::neutral(&question), &mut Lists::default(), &Stop::never())
                .unwrap();
        let query = Query { question, lanes: vec![bm25], k: 20, source: LabelSource::Model };
        let passages = ranking.len().min(20);
        let mut run = Run::over(query, Depth::Top, [ranking]);
        let (now, printed) = (Arc::new(AtomicU64::new(7)), AtomicUsize::new(0));
        run.judge(&setup, &Stop::when_past(&now, 7), &|event| {
            // Labels come first, without a model.
            if matches!(event, Event::Judged(judged) if judged.known.model.is_some()) {
                printed.fetch_add(1, Ordering::Relaxed);
                now.store(8, Ordering::Relaxed);
            }
        })
        .unwrap();
        let printed = printed.into_inner();
        assert!(passages >= 15, "{passages}");
        // Both statements of a passage are read at once.
        assert!((1..=2 * setup.models.current_num_threads()).contains(&printed), "{printed}");
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
            let asked = LaneQuery::neutral(&setup.questions[0]);
            let stopped: Result<_, LaneError> = rank(&setup, &recipe, asked, &mut Lists::default(), &past);
            assert!(stopped.is_err_and(|error| error.is_stop()), "{lane}");
        }
    }
}
