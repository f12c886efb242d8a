//! Corpora that are imported, and what a kill leaves.

use super::*;

#[test]
fn a_folder_is_cut_into_passages_of_a_hundred_words() {
    let desk = Desk::new();
    let words: Vec<String> =
        (0..10_000).map(|i| if i % 100 == 0 { "zoos".into() } else { format!("w{i}") }).collect();
    desk.write("texts/long.txt", words.join(" "));
    desk.write("texts/below/one.md", "alone\n");
    desk.write("texts/notes.csv", "not,read");
    let all = desk.json(&[&["search", "zoos", "--corpus", "texts", "-k", "100"], &LANES[..]].concat());
    assert_eq!(all["corpus"], json!({"name": "texts", "passages": 101}));
    let hits = all["lanes"][0]["hits"].as_array().unwrap();
    assert_eq!(hits.len(), 100);
    for hit in hits {
        assert_eq!(hit["text"].as_str().unwrap().split(' ').count(), 100);
        assert!(hit["id"].as_str().unwrap().starts_with("long#"));
    }
    let all = desk.json(&[&["search", "alone", "--corpus", "texts"], &LANES[..]].concat());
    assert_eq!(all["lanes"][0]["hits"][0]["id"], "below/one#1");
}

#[test]
fn a_kill_while_importing_or_indexing_leaves_nothing_half_built() {
    let desk = Desk::new();
    let (corpus, passages) = large(&desk);
    killed_while(&desk, &corpus, "importing");
    for path in desk.corpora() {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        assert!(name.ends_with(".building") || name.ends_with(".lock"), "{name}");
    }
    let search = || desk.json(&[&["search", "zoos", "--corpus", corpus.as_str()], &LANES[..]].concat());
    let whole = search();
    assert_eq!(whole["corpus"]["passages"], json!(passages));
    let folder = desk.data.join("corpora").join(whole["provenance"]["corpus"].as_str().unwrap());
    fs::remove_dir_all(folder.join(TermIndex::FOLDER)).unwrap();
    killed_while(&desk, &corpus, "indexing");
    assert!(
        !folder.join(TermIndex::FOLDER).exists()
            && folder.join(TermIndex::FOLDER).with_extension("building").exists()
    );
    assert_eq!(search()["lanes"], whole["lanes"]);
    assert!(!folder.join(TermIndex::FOLDER).with_extension("building").exists());
}

#[test]
fn leftovers_of_a_build_are_swept_away() {
    let desk = Desk::new();
    let corpus = tiny(&desk);
    let arguments = [&["search", QUESTION, "--corpus", &corpus], &LANES[..]].concat();
    let whole = desk.json(&arguments);
    let folder = desk.data.join("corpora").join(whole["provenance"]["corpus"].as_str().unwrap());
    let leave = |place: &Path| {
        fs::create_dir_all(place.join("below")).unwrap();
        fs::write(place.join("passages.jsonl"), "half a li").unwrap();
        fs::write(place.join("meta.json"), "half a li").unwrap();
    };
    fs::remove_dir_all(&folder).unwrap();
    leave(&folder.with_extension("building"));
    assert_eq!(desk.json(&arguments)["lanes"], whole["lanes"]);
    fs::remove_dir_all(folder.join(TermIndex::FOLDER)).unwrap();
    leave(&folder.join(TermIndex::FOLDER).with_extension("building"));
    assert_eq!(desk.json(&arguments)["lanes"], whole["lanes"]);
    assert!(
        !folder.with_extension("building").exists()
            && !folder.join(TermIndex::FOLDER).with_extension("building").exists()
    );
}

#[test]
fn a_passage_without_a_text_is_taken_as_published_corpora_hold_some_and_judged_by_its_title() {
    let desk = Desk::new();
    desk.write("silent.jsonl", "{\"_id\": \"a\", \"title\": \"Zoos\", \"text\": \" \"}\n");
    let args = [&["search", QUESTION, "--corpus", "silent.jsonl", "--format", "json"], &LANES[..]].concat();
    let found: Value = serde_json::from_str(&desk.run(&args).good()).unwrap();
    let hit = &found["lanes"][0]["hits"][0];
    assert_eq!(hit["id"], "a");
    assert!(hit["verdicts"][0]["p"].is_number(), "{hit}");
}

#[test]
fn a_data_folder_that_is_a_file_is_told_with_the_option_that_names_another() {
    let mut desk = Desk::new();
    let corpus = tiny(&desk);
    desk.write("in-the-way", "a file");
    desk.data = desk.files.path().join("in-the-way");
    desk.run(&[&["search", QUESTION, "--corpus", &corpus], &LANES[..]].concat())
        .bad(&["--data-dir", "in-the-way"]);
    let told = desk.run(&[&["search", QUESTION], &LANES[..]].concat());
    assert!(told.err.contains("verdicts are not kept"), "{}", told.err);
    assert!(told.good().contains("5/5 judged"));
}
