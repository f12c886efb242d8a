//! `parallax corpus vectors`: vectors that are ready, taken and refused.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// Three passages and a file of unit rows of 384 numbers, row `i` with its 1 in column `i`.
fn stage(folder: &Path, rows: usize, dimensions: usize) {
    let passages = r#"{"_id":"a","text":"Zoos keep animals."}
{"_id":"b","text":"Trains run."}
{"_id":"c","text":"Homework takes time."}
"#;
    fs::write(folder.join("corpus.jsonl"), passages).unwrap();
    let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {dimensions}), }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.bytes());
    for row in 0..rows {
        bytes.extend((0..dimensions).flat_map(|column| f32::from(u8::from(row == column)).to_le_bytes()));
    }
    fs::write(folder.join("vectors.npy"), bytes).unwrap();
}

fn take(folder: &Path, model: &str, ids: bool) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_parallax"));
    command.args(["corpus", "vectors", "--model", model, "--data-dir"]).arg(folder.join("data"));
    command.arg(folder.join("corpus.jsonl")).arg(folder.join("vectors.npy"));
    if ids {
        command.arg("--ids").arg(folder.join("ids.txt"));
    }
    command.output().unwrap()
}

#[test]
fn vectors_that_are_ready_are_what_a_lane_compares() {
    let folder = tempfile::tempdir().unwrap();
    stage(folder.path(), 3, 384);
    fs::write(folder.path().join("ids.txt"), "c\nb\na\n").unwrap();
    let taken = take(folder.path(), "minilm", true);
    let told = String::from_utf8_lossy(&taken.stdout).into_owned();
    assert!(taken.status.success(), "{}", String::from_utf8_lossy(&taken.stderr));
    assert!(
        told.contains("3 vectors of minilm") && told.contains("lengths from 1.0000 to 1.0000; 0 were"),
        "{told}"
    );
    let mut kept = Vec::new();
    for corpus in fs::read_dir(folder.path().join("data/corpora")).unwrap() {
        let corpus = corpus.unwrap().path();
        if corpus.is_dir() {
            kept.extend(fs::read_dir(corpus).unwrap().map(|entry| entry.unwrap().path()));
        }
    }
    let rows =
        kept.iter().find(|path| path.extension().is_some_and(|end| end == "f32")).expect("the vectors");
    let bytes = fs::read(rows).unwrap();
    // The row of `a` came last.
    assert_eq!((bytes.len(), &bytes[8..12]), (3 * 384 * 4, &1f32.to_le_bytes()[..]));
}

#[test]
fn vectors_that_do_not_fit_are_refused_with_the_reason() {
    for (rows, dimensions, model, ids, expected) in [
        (
            3,
            384,
            "minilm",
            Some("a\nb\nx\n"),
            "ids.txt:3: expected the id of a passage of this corpus, found `x`",
        ),
        (3, 383, "minilm", None, "expected rows of 384 numbers, as the model makes them, found rows of 383"),
        (2, 384, "minilm", None, "expected 3 rows, one for each passage, found 2"),
        (3, 384, "bm25", None, "bm25 compares no vectors"),
        (3, 384, "other", None, "the lane `other`: expected"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        stage(folder.path(), rows, dimensions);
        if let Some(ids) = ids {
            fs::write(folder.path().join("ids.txt"), ids).unwrap();
        }
        let taken = take(folder.path(), model, ids.is_some());
        let told = String::from_utf8_lossy(&taken.stderr).into_owned();
        assert_eq!(taken.status.code(), Some(2), "{told}");
        assert!(told.contains(expected), "{told}");
    }
}
