//! Kills: what was finished stays, what was not goes on, and the end is the same to the last byte.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use parallax::retrieve::TermIndex;
use serde_json::json;

use crate::program::{Desk, tiny};

/// Starts the program and kills it as soon as `now` says so.
pub fn killed(desk: &Desk, arguments: &[&str], now: &dyn Fn() -> bool) {
    let mut child = desk.command(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while !now() {
        assert!(child.try_wait().unwrap().is_none(), "{arguments:?} ended before it was killed");
        std::thread::yield_now();
    }
    child.kill().unwrap();
    assert!(!child.wait().unwrap().success(), "{arguments:?} ended before it was killed");
}

fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |about| about.len())
}

/// The folder of a corpus: the only one, finished or not, that is none of `others`.
fn folder(desk: &Desk, others: &[PathBuf]) -> Option<PathBuf> {
    let mut all = desk.corpora();
    all.retain(|path| path.is_dir() && !others.contains(path));
    all.pop().map(|path| path.with_extension(""))
}

#[test]
fn a_kill_at_any_of_ten_points_leaves_the_old_state_and_the_same_command_goes_on() {
    let desk = Desk::new();
    let old = tiny(&desk);
    desk.run(&["corpus", "add", &old]).good();
    let others: Vec<PathBuf> = desk.corpora();
    let untouched = || {
        let all = desk.json(&["search", "bread", "--corpus", "tiny", "--lanes", "bm25"]);
        assert_eq!(all["lanes"][0]["hits"][0]["id"], "f");
    };
    // Metadata fill the disk and cost neither terms nor vectors.
    let filler = "x".repeat(3_000);
    let lines = (0..12_000).map(|i| {
        let text = format!("zoos w{} w{}", i % 97, i % 89);
        json!({"_id": i.to_string(), "text": text, "metadata": {"filler": filler}}).to_string() + "\n"
    });
    desk.write("large.jsonl", lines.collect::<String>());
    let add = ["corpus", "add", "large.jsonl"];
    let whole = Desk::new();
    let source = desk.files.path().join("large.jsonl");
    whole.run(&["corpus", "add", source.to_str().unwrap()]).good();
    let expected = folder(&whole, &[]).unwrap();
    let building = || folder(&desk, &others).map(|folder| folder.with_extension("building"));

    // Five while importing: before the first checkpoint, and after one or two.
    for megabytes in [1, 9, 18, 26, 34] {
        killed(&desk, &add, &|| {
            building().is_some_and(|folder| length(&folder.join("passages.jsonl")) >= megabytes << 20)
        });
        assert!(!folder(&desk, &others).unwrap().exists(), "an unfinished store is not opened");
        assert_eq!(building().unwrap().join("checkpoint.json").exists(), megabytes > 16);
        untouched();
    }
    // Two while indexing: when its folder is made, and when there is something in it.
    let place = || folder(&desk, &others).map(|folder| folder.join(TermIndex::FOLDER)).unwrap_or_default();
    for files in [0, 1] {
        killed(&desk, &add, &|| {
            let listing = fs::read_dir(place().with_extension("building"));
            listing.is_ok_and(|listing| listing.count() >= files)
        });
        assert!(!place().exists());
        untouched();
    }
    assert!(desk.run(&add).good().contains("passages    12,000"));
    let made = folder(&desk, &others).unwrap();
    for name in ["passages.jsonl", "offsets.u64"] {
        assert!(fs::read(made.join(name)).unwrap() == fs::read(expected.join(name)).unwrap(), "{name}");
    }
    let names = |folder: &Path| {
        let mut names: Vec<_> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    assert_eq!(names(&made), names(&expected), "nothing is left of the broken runs");
    let found = |desk: &Desk| {
        desk.json(&["search", "w5 w7", "--corpus", "large", "--lanes", "bm25"])["lanes"].clone()
    };
    assert_eq!(found(&desk), found(&whole));
    untouched();
}

#[test]
fn a_kill_while_embedding_keeps_the_vectors_that_were_made() {
    let desk = Desk::new();
    let lines =
        (0..160).map(|i| json!({"_id": i.to_string(), "text": format!("zoo number {i}")}).to_string() + "\n");
    desk.write("some.jsonl", lines.collect::<String>());
    desk.run(&["corpus", "add", "some.jsonl"]).good();
    let made = folder(&desk, &[]).unwrap();
    let vectors = |ending: &str| {
        let mut found = fs::read_dir(&made).unwrap().map(|entry| entry.unwrap().path());
        found.find(|path| path.to_string_lossy().ends_with(ending))
    };
    let search = ["search", "zoo", "--corpus", "some", "--lanes", "minilm"];
    // Three more points: as soon as there is a file, and after some rows of 384 numbers.
    let mut kept = 0;
    for rows in [0, 1, 60] {
        killed(&desk, &search, &|| vectors(".f32.part").is_some_and(|part| length(&part) >= rows * 384 * 4));
        let part = vectors(".f32.part").unwrap();
        assert!(length(&part) >= kept && vectors(".f32").is_none(), "what was made is kept");
        kept = length(&part);
    }
    let whole = Desk::new();
    whole
        .run(&[
            "search",
            "zoo",
            "--corpus",
            desk.files.path().join("some.jsonl").to_str().unwrap(),
            "--lanes",
            "minilm",
        ])
        .good();
    desk.run(&search).good();
    let vectors = vectors(".f32").unwrap();
    let expected = folder(&whole, &[]).unwrap().join(vectors.file_name().unwrap());
    assert!(fs::read(vectors).unwrap() == fs::read(expected).unwrap());
}
