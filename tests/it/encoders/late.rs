//! Late interaction as a lane: the index of token vectors by itself, and lanes of tiny models.

use parallax::corpus::{Corpus, PassageIx};
use parallax::engine::edit::{Draft, score_draft};
use parallax::measure::seeded::SplitMix64;
use parallax::retrieve::RetrieveError;
use parallax::retrieve::late::{Codebook, TokenIndex};
use parallax::storage::checked::Damaged;
use parallax::vector::{dot, max_sim};

use super::*;

const WIDTH: usize = 9;

/// A vector near one of twelve topics.
fn vector(draw: &mut SplitMix64, topic: usize) -> Vec<f32> {
    let mut topics = SplitMix64::new(topic as u64 + 1);
    let number = |draw: &mut SplitMix64| draw.below(2_001) as f32 / 1_000.0 - 1.0;
    let mut own: Vec<f32> = (0..WIDTH).map(|_| number(&mut topics) + 0.4 * number(draw)).collect();
    let length = dot(&own, &own).sqrt();
    own.iter_mut().for_each(|x| *x /= length);
    own
}

/// Passages of one to six tokens on two topics each; every tenth has none.
fn passages(count: usize) -> Vec<Vec<Vec<f32>>> {
    let mut draw = SplitMix64::new(7);
    (0..count)
        .map(|i| {
            let topics = [draw.below(12), draw.below(12)];
            let tokens = if i % 10 == 9 { 0 } else { 1 + draw.below(6) };
            (0..tokens).map(|token| vector(&mut draw, topics[token % 2])).collect()
        })
        .collect()
}

fn corpus(count: usize) -> Corpus {
    let line = |i: usize| format!("{{\"_id\":\"{:05}\",\"text\":\"x\"}}\n", (i * 7_919) % 100_003);
    let text: String = (0..count).map(line).collect();
    Corpus::builtin("t", Box::leak(text.into_boxed_str()).as_bytes())
}

fn built(folder: &Path, passages: &[Vec<Vec<f32>>], centroids: usize) -> (TokenIndex, Corpus) {
    let sample: Vec<Vec<f32>> = passages.iter().flatten().cloned().collect();
    let book = Codebook::train(&sample, centroids, &Stop::never()).unwrap();
    let (place, file, corpus) = (folder.join("m.tokens"), folder.join("m.part"), corpus(passages.len()));
    let bytes: Vec<u8> = passages.iter().flat_map(|own| book.encode(own).unwrap()).collect();
    fs::write(&file, bytes).unwrap();
    let mut draw = SplitMix64::new(3);
    let trial: Vec<Vec<Vec<f32>>> = (0..8).map(|topic| vec![vector(&mut draw, topic)]).collect();
    TokenIndex::build((&file, &book), ("m", &corpus), &trial, &place, &Stop::never()).unwrap();
    (TokenIndex::open(&place, "m", passages.len()).unwrap(), corpus)
}

#[test]
fn stored_vectors_are_near_those_that_were_given() {
    let folder = tempfile::tempdir().unwrap();
    let passages = passages(300);
    let (index, _) = built(folder.path(), &passages, 32);
    for (i, own) in passages.iter().enumerate() {
        let stored = index.passage(PassageIx(i as u32)).unwrap();
        assert_eq!(stored.len(), own.len());
        let cosines = stored.iter().zip(own).map(|(a, b)| dot(a, b));
        assert!(cosines.clone().all(|cosine| cosine > 0.97), "{i}: {:?}", cosines.collect::<Vec<_>>());
    }
}

#[test]
fn a_search_of_all_passages_ranks_by_the_stored_vectors_and_one_through_centroids_finds_nearly_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let passages = passages(3_000);
    let (index, corpus) = built(folder.path(), &passages, 64);
    let mut draw = SplitMix64::new(5);
    let (mut same, mut all) = (0, 0);
    for topic in 0..12 {
        let query = vec![vector(&mut draw, topic), vector(&mut draw, (topic + 5) % 12)];
        let hits = index.search_all(&corpus, &query, 10, &Stop::never()).unwrap();
        let score = |at: PassageIx| max_sim(&query, &index.passage(at).unwrap());
        let own = (0..passages.len() as u32).map(PassageIx).filter(|at| !passages[at.0 as usize].is_empty());
        let mut all_scores: Vec<(PassageIx, f32)> = own.map(|at| (at, score(at))).collect();
        all_scores.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| corpus.id(a.0).cmp(&corpus.id(b.0))));
        assert!(hits.iter().map(|hit| (hit.passage, hit.score)).eq(all_scores.into_iter().take(10)));
        let found = index.search(&corpus, &query, 10, &Stop::never()).unwrap();
        assert!(found.iter().all(|hit| (hit.score - score(hit.passage)).abs() < 1e-6));
        same += hits.iter().filter(|hit| found.contains(hit)).count();
        all += hits.len();
    }
    assert!(same * 100 >= all * 95, "{same} of {all}");
    let recall = TokenIndex::recall(&folder.path().join("m.tokens")).unwrap();
    assert!((0.95..=1.0).contains(&recall), "{recall}");
}

#[test]
fn an_index_of_another_model_or_corpus_or_with_a_changed_byte_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    drop(built(folder.path(), &passages(20), 4));
    let place = folder.path().join("m.tokens");
    let error = |key: &str, passages: usize| {
        let error = TokenIndex::open(&place, key, passages).err().unwrap();
        Damaged::of(&error).map(|damaged| damaged.what.clone()).unwrap_or_default()
    };
    assert_eq!(error("other", 20), "it was made by another model");
    assert_eq!(error("m", 21), "20 passages of 21");
    let mut bytes = fs::read(&place).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&place, bytes).unwrap();
    assert!(!error("m", 20).is_empty());
}

#[test]
fn a_stop_ends_training_and_searching() {
    let folder = tempfile::tempdir().unwrap();
    let (index, corpus) = built(folder.path(), &passages(50), 8);
    let stopped = Stop::new();
    stopped.set();
    let query = [vector(&mut SplitMix64::new(1), 0)];
    assert!(matches!(index.search(&corpus, &query, 5, &stopped), Err(RetrieveError::Stopped(_))));
    assert!(matches!(Codebook::train(&[query[0].clone()], 1, &stopped), Err(RetrieveError::Stopped(_))));
    assert!(index.search(&corpus, &query, 0, &Stop::never()).unwrap().is_empty());
}

#[test]
fn a_codebook_is_read_back_and_a_changed_one_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let sample: Vec<Vec<f32>> = passages(100).concat();
    let book = Codebook::train(&sample, 16, &Stop::never()).unwrap();
    let place = folder.path().join("book");
    book.write(&place).unwrap();
    assert_eq!(Codebook::read(&place).unwrap().encode(&sample).unwrap(), book.encode(&sample).unwrap());
    let mut bytes = fs::read(&place).unwrap();
    bytes[40] ^= 1;
    fs::write(&place, bytes).unwrap();
    assert!(Codebook::read(&place).is_none() && Codebook::read(folder.path()).is_none());
    assert!(book.encode(&[vec![1.0]]).is_err(), "a vector of another length");
    assert!(Codebook::train(&[], 4, &Stop::never()).is_err());
}

/// A lane of a folder with a model for late interaction.
fn lane(name: &str) -> Recipe {
    let place = parallax::engine::recipe::escaped(&modern(name).to_string_lossy());
    format!("path:{place}@family=colbert").parse().unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_late_interaction_lane_ranks_by_its_index_and_says_which_words_met() {
    for name in ["colbertv2", "moderncolbert", "bge-m3"] {
        let data = tempfile::tempdir().unwrap();
        let recipe = lane(name);
        assert_eq!(recipe.to_string().parse::<Recipe>().unwrap(), recipe);
        let setup = opened(data.path(), std::slice::from_ref(&recipe));
        let question = Question { text: "wolves and bears in zoos".into(), ..Question::default() };
        let ranked = |recipe: &Recipe| {
            rank(&setup, recipe, LaneQuery::neutral(&question), &mut Lists::default(), &Stop::never())
        };
        let list = ranked(&recipe).unwrap();
        assert_eq!(list.len(), 5, "{name}");
        let source = Source::Folder(modern(name).to_string_lossy().into_owned());
        let model = LateScorer::load(&source, Path::new("nowhere")).unwrap();
        let score = model.with_query(&question.text).unwrap();
        for hit in list.iter() {
            let exact = score(&hit.passage).unwrap();
            assert!((hit.score - exact).abs() < 0.02 * exact.abs() + 0.02, "{name}: {} {exact}", hit.score);
        }
        assert!(list.windows(2).all(|pair| pair[0].score >= pair[1].score));
        // A draft that changes nothing has the score and the rank of its passage.
        let passage = (*list[1].passage).clone();
        let draft = Draft { at: list[1].at, passage, question: question.clone() };
        let scored = score_draft(&setup, &recipe, &draft, &mut Lists::default(), &Stop::never()).unwrap();
        assert!((scored.score - list[1].score).abs() < 1e-5 && scored.rank == Some(2), "{scored:?}");
        let why = explain(&setup, &list, &question.text, list[0].at).unwrap();
        let [Explanation::Tokens { score, met, .. }] = why.as_slice() else { panic!("{why:?}") };
        assert!((score - list[0].score).abs() < 0.02 * score.abs() + 0.02, "{score} {}", list[0].score);
        assert!(!met.is_empty());
        let names: Vec<String> = fs::read_dir(setup_folder(data.path()))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .filter(|name| name.contains(".tokens"))
            .collect();
        assert_eq!(names.len(), 2, "the index and its checksums alone are left: {names:?}");
        // MMR and re-rankers read such a list as any other.
        setup.embed_for(&["minilm".parse().unwrap()], &|_| {}, &Stop::never()).unwrap();
        assert_eq!(ranked(&format!("{recipe}+mmr@.5").parse().unwrap()).unwrap().len(), list.len());
    }
}

#[test]
fn a_damaged_index_of_tokens_is_made_again_and_a_stop_keeps_what_was_encoded() {
    let data = tempfile::tempdir().unwrap();
    let recipe = lane("colbertv2");
    let line =
        |i: usize| json!({"_id": i.to_string(), "text": format!("bears and wolves {i}")}).to_string() + "\n";
    fs::write(data.path().join("many.jsonl"), (0..90).map(line).collect::<String>()).unwrap();
    let open = || {
        let corpus = Some(data.path().join("many.jsonl"));
        let opening = Opening { corpus, data_dir: data.path().into(), ..Opening::default() };
        Setup::open(&opening, &|_| {}, &Stop::never()).unwrap()
    };
    let question = Question { text: "old bears".into(), ..Question::default() };
    let ranked = |setup: &Setup| {
        let list = rank(setup, &recipe, LaneQuery::neutral(&question), &mut Lists::default(), &Stop::never());
        list.map(|list| list.iter().map(|hit| (hit.at, hit.score)).collect::<Vec<_>>())
    };
    let file = |end: &str| {
        let files = fs::read_dir(setup_folder(data.path())).unwrap().map(|entry| entry.unwrap().path());
        files.into_iter().find(|path| path.to_string_lossy().ends_with(end))
    };
    let lanes = std::slice::from_ref(&recipe);
    let setup = open();
    let stop = Stop::new();
    let stopped = setup.embed_for(
        lanes,
        &|progress| {
            if progress.done > 0 {
                stop.set()
            }
        },
        &stop,
    );
    assert!(stopped.is_err());
    let kept = fs::metadata(file(".tokens.part").unwrap()).unwrap().len();
    assert!(kept > 0 && file(".tokens.book").is_some());
    let begun = std::sync::atomic::AtomicU64::new(u64::MAX);
    let first = |progress: parallax::Progress| {
        begun.fetch_min(progress.done, std::sync::atomic::Ordering::Relaxed);
    };
    setup.embed_for(lanes, &first, &Stop::never()).unwrap();
    assert!(begun.into_inner() > 0, "it went on where it was stopped");
    assert!(file(".tokens.part").is_none() && file(".tokens.book").is_none());
    let expected = ranked(&setup).unwrap();
    assert_eq!(expected.len(), 90);
    drop(setup);
    let index = file(".tokens").unwrap();
    let mut bytes = fs::read(&index).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&index, bytes).unwrap();
    let setup = open();
    assert!(ranked(&setup).is_err(), "damaged, so it was set aside");
    setup.embed_for(lanes, &|_| {}, &Stop::never()).unwrap();
    assert_eq!(ranked(&setup).unwrap(), expected);
}

#[test]
fn a_late_interaction_lane_refuses_what_needs_one_vector_or_terms() {
    for (recipe, words) in [
        ("colbertv2@dim=64", &["colbertv2", "without"][..]),
        ("colbertv2+pap", &["every token", "MiniLM"]),
        ("colbertv2+rm3", &["weighted terms", "BM25"]),
        ("bm25+mmr@.5,sim=colbertv2", &["sim="]),
    ] {
        let error = recipe.parse::<Recipe>().unwrap_err().to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{words:?}: {error}");
    }
}
