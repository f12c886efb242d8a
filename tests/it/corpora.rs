//! Importers and `parallax corpus`, with the real binary.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use parallax::report::Rates;
use parallax::work::{Job, Progress};
use serde_json::{Value, json};

use crate::program::{Workspace, jsonl, tiny};

fn gz(text: &str) -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(text.as_bytes()).unwrap();
    packer.finish().unwrap()
}

/// The first hit of a search, as JSON.
fn first(workspace: &Workspace, query: &str, corpus: &str) -> Value {
    let all = workspace.json(&["search", query, "--corpus", corpus, "--lanes", "bm25"]);
    all["lanes"][0]["hits"][0].clone()
}

#[test]
fn every_format_gives_the_same_passages() {
    let workspace = Workspace::new();
    let beir = [
        json!({"_id": "1", "title": "Zoos, \"the\" case", "text": "A cage is no home."}),
        json!({"_id": "2", "title": "", "text": "Bread, salt\tand water."}),
    ];
    let lines = |make: &dyn Fn(&Value) -> Value| -> String {
        beir.iter().map(|passage| make(passage).to_string() + "\n").collect()
    };
    let plain = lines(&Value::clone);
    workspace.write("beir.jsonl", &plain);
    workspace.write("packed.jsonl.gz", gz(&plain));
    workspace.write("packed.jsonl.zst", zstd::encode_all(plain.as_bytes(), 1).unwrap());
    workspace.write("bundle/corpus.jsonl", &plain);
    workspace.write(
        "sphere.jsonl",
        lines(&|p| json!({"id": p["_id"], "title": p["title"], "raw": p["text"], "url": "http://a.b/c"})),
    );
    workspace.write(
        "dpr.tsv",
        "id\ttext\ttitle\n1\tA cage is no home.\t\"Zoos, \"\"the\"\" case\"\n2\tBread, salt and water.\t\n",
    );
    workspace.write(
        "own.csv",
        "name,body,head\n1,A cage is no home.,\"Zoos, \"\"the\"\" case\"\n2,\"Bread, salt\nand water.\",\n",
    );
    for (name, more, message) in [
        ("beir.jsonl", &[][..], "BEIR JSONL (id: _id, title: title, text: text)"),
        ("packed.jsonl.gz", &[], "BEIR JSONL"),
        ("packed.jsonl.zst", &[], "BEIR JSONL"),
        ("bundle", &[], "BEIR JSONL"),
        ("sphere.jsonl", &[], "Sphere JSONL (id: id, title: title, text: raw)"),
        ("dpr.tsv", &[], "DPR TSV (id: id, title: title, text: text)"),
        ("own.csv", &["--id", "name", "--title", "head", "--text", "body"], "CSV (id: name"),
    ] {
        let dry = workspace.run(&[&["corpus", "add", name, "--dry-run"], more].concat()).good();
        assert!(dry.contains(message) && dry.contains("passages    2\n"), "{name}:\n{dry}");
        assert!(dry.contains("first       id `1`, title `Zoos, \"the\" case`, text `A cage"), "{dry}");
        workspace.run(&[&["corpus", "add", name, "--name", &format!("as {name}")], more].concat()).good();
        let hit = first(&workspace, "cage", &format!("as {name}"));
        assert_eq!((&hit["id"], &hit["title"]), (&json!("1"), &json!("Zoos, \"the\" case")), "{name}");
        assert_eq!(first(&workspace, "bread", &format!("as {name}"))["id"], "2");
    }
    workspace.write("pyserini.jsonl", "{\"id\": 7, \"contents\": \"Zoos\\nA cage\"}\n");
    let dry = workspace.run(&["corpus", "add", "pyserini.jsonl", "--dry-run"]).good();
    assert!(dry.contains("Pyserini JSONL (id: id, title: none, text: contents)"), "{dry}");
    assert_eq!(first(&workspace, "cage", "pyserini.jsonl")["id"], "7");
    let info = workspace.run(&["corpus", "info", "as sphere.jsonl"]).good();
    assert!(info.contains("metadata     url (2)") && info.contains("recognised   Sphere"), "{info}");
}

#[test]
fn a_web_page_gives_its_title_and_main_text_and_no_menu() {
    let workspace = Workspace::new();
    let body = "<p>Zoos should be banned, for no cage is a home, and an elephant walks further in a night than a keeper in a year.</p>".repeat(12);
    let page = format!(
        "<html><head><title>Against zoos</title><script>steal()</script></head><body><nav><a href=/>Home</a> <a href=/x>Imprint</a></nav><article><h1>Against zoos</h1>{body}</article></body></html>"
    );
    workspace.write("pages/a.html", page);
    workspace.write("pages/b.htm", "<title>Short</title><style>p{}</style><p>One<p>line.");
    workspace.write("pages/deep.html", "<div>".repeat(200) + "deepest");
    workspace.write("pages/empty.html", "");
    let hit = first(&workspace, "elephant", "pages");
    assert!(hit["id"].as_str().unwrap().starts_with("a#") && hit["title"] == "Against zoos", "{hit}");
    let text = hit["text"].as_str().unwrap();
    assert!(!text.contains("Imprint") && !text.contains("steal") && !text.contains('<'), "{text}");
    assert!(text.contains("in a year. Zoos should"), "{text}");
    let hit = first(&workspace, "line", "pages");
    assert_eq!((&hit["title"], &hit["text"]), (&json!("Short"), &json!("One line.")));
    assert_eq!(first(&workspace, "deepest", "pages")["title"], "deep");
    workspace.write("nested/a.html", "<div>".repeat(100_000));
    workspace.run(&["corpus", "add", "nested"]).bad(&["a.html: 100000 tags", "take it out of the folder"]);
}

#[test]
fn bad_rows_are_reported_and_nothing_is_imported() {
    let workspace = Workspace::new();
    let add = |name: &str, text: &str, words: &[&str]| {
        workspace.write(name, text);
        for more in [&[][..], &["--dry-run"]] {
            workspace.run(&[&["corpus", "add", name], more].concat()).bad(words);
        }
    };
    add(
        "no-id.csv",
        "a,text\n1,x\n",
        &["no-id.csv:1: expected a header that names", "`a`, `text`", "--id NAME"],
    );
    add("short.tsv", "id\ttext\n1\tx\n2\n", &["short.tsv:3: expected 2 fields", "and not 1"]);
    add("open.csv", "id,text\n1,\"x\n2,y\n3,z\n", &["open.csv:2: expected a quote that is closed"]);
    add("open.tsv", "id\ttext\n1\t\"x\n2\ty\n", &["open.tsv:2: expected quotes that are closed"]);
    add(
        "list.jsonl",
        "{\"_id\": [], \"text\": \"x\"}\n",
        &["list.jsonl:1: expected a text or number in `_id`"],
    );
    add("lost.jsonl", "{\"_id\": 1, \"text\": \"x\"}\n{\"_id\": 2}\n", &["lost.jsonl:2: expected `text`"]);
    workspace.write("named.tsv", "id\ttext\n1\tx\n");
    workspace
        .run(&["corpus", "add", "named.tsv", "--text", "body"])
        .bad(&["`body` for the text", "there is `id`, `text`"]);
    workspace
        .run(&["corpus", "add", "named.tsv", "--format", "folder"])
        .bad(&["a file, which cannot be read as folder"]);
    workspace.run(&["corpus", "add", "named.tsv", "--name", "a/b"]).bad(&["without slashes"]);
    workspace.run(&["corpus", "add", "-"]).bad(&["standard input: a corpus is read more than once"]);
    assert!(workspace.corpora().iter().all(|path| path.extension().is_some_and(|end| end == "lock")));
}

#[test]
fn nothing_is_imported_from_a_truncated_archive() {
    let workspace = Workspace::new();
    let lines: Vec<String> = (0..3_000).map(|i| format!("text {}", i * i)).collect();
    let passages: Vec<_> = lines.iter().map(|text| (text.as_str(), "", text.as_str())).collect();
    let text = jsonl(&passages);
    for (name, whole) in
        [("cut.jsonl.gz", gz(&text)), ("cut.jsonl.zst", zstd::encode_all(text.as_bytes(), 1).unwrap())]
    {
        workspace.write(name, &whole[..whole.len() * 2 / 3]);
        workspace.run(&["search", "text", "--corpus", name]).bad(&[name, "cut short", "nothing was taken"]);
        assert!(workspace.corpora().iter().all(|path| path.extension().is_some_and(|end| end == "lock")));
    }
}

#[test]
fn repeated_passages_are_counted_and_long_ones_are_cut_on_request() {
    let workspace = Workspace::new();
    let long = "word ".repeat(250);
    workspace.write(
        "twice.jsonl",
        jsonl(&[("a", "t", "same"), ("b", "t", "same"), ("c", "u", "same"), ("d", "", &long), ("e", "", "")]),
    );
    let message = workspace.run(&["corpus", "add", "twice.jsonl"]).good();
    assert!(
        message.contains("passages    5\n")
            && message.contains("duplicates  1 (b repeats a); all are stored"),
        "{message}"
    );
    let dry = workspace.run(&["corpus", "add", "twice.jsonl", "--dry-run", "--segment"]).good();
    assert!(dry.contains("passages    7\n") && dry.contains("cut into passages of 100 words"), "{dry}");
    workspace.run(&["corpus", "add", "twice.jsonl", "--segment", "--name", "cut"]).good();
    let all = workspace.json(&["search", "word", "--corpus", "cut", "--lanes", "bm25"]);
    let ids: Vec<&str> =
        all["lanes"][0]["hits"].as_array().unwrap().iter().map(|hit| hit["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["d#1", "d#2", "d#3"]);
    assert_eq!(first(&workspace, "word", "twice")["id"], "d");
}

#[test]
fn finished_runs_may_be_compressed_as_lanes_and_as_a_corpus() {
    let workspace = Workspace::new();
    let corpus = tiny(&workspace);
    workspace.write("run.trec.gz", gz("1 Q0 f 1 2 tag\n1 Q0 a 2 1 tag\n"));
    workspace.write("q.jsonl", json!({"id": "1", "question": "Who pays?"}).to_string());
    let asked = ["search", "Who pays?", "--corpus", &corpus, "--questions", "q.jsonl", "--lane"];
    let all = workspace.json(&[&asked[..], &["run:run.trec.gz"]].concat());
    assert_eq!(all["lanes"][0]["hits"][0]["id"], "f");
    let run = |id: &str, text: &str| {
        let hits = json!([{"qid": 7, "docid": id, "score": 1, "content": text}]);
        json!([{"query": "Should zoos be banned?", "hits": hits}]).to_string()
    };
    let (one, other) = (run("a", "A cage is no home."), run("b", "Bread and salt."));
    workspace.write("one.json.gz", gz(&one));
    workspace.write("other.json.zst", zstd::encode_all(other.as_bytes(), 1).unwrap());
    let lanes = ["search", "Should zoos be banned?", "--lanes", "run:one.json.gz,run:other.json.zst,bm25"];
    let all = workspace.json(&lanes);
    assert_eq!(all["corpus"], json!({"name": "2 runs", "passages": 2}));
    assert_eq!(all["lanes"][1]["hits"][0]["text"], "Bread and salt.");
    let dry = workspace.run(&["corpus", "add", "one.json.gz", "--dry-run"]).good();
    assert!(dry.contains("recognised  results of rank_llm or BERDS: the passages they contain\n"), "{dry}");
    workspace.run(&["corpus", "add", "other.json.zst", "--name", "contained"]).good();
    assert_eq!(first(&workspace, "bread", "contained")["id"], "b");
    workspace.write("cut.trec.gz", &gz("1 Q0 f 1 2 tag\n1 Q0 a 2 1 tag\n")[..20]);
    let cut = workspace.run(&[&asked[..], &["run:cut.trec.gz"]].concat());
    assert!(cut.err.contains("cut.trec.gz") || cut.out.contains("cut.trec.gz"), "{}{}", cut.err, cut.out);
}

#[test]
fn a_corpus_that_was_added_is_listed_opened_by_its_name_and_removed() {
    let workspace = Workspace::new();
    let source = tiny(&workspace);
    workspace.run(&["corpus", "add", &source, "--name", "zoo texts"]).good();
    fs::remove_file(workspace.files.path().join(&source)).unwrap();
    let all = workspace.json(&["search", "bread", "--corpus", "zoo texts"]);
    assert_eq!(all["corpus"], json!({"name": "zoo texts", "passages": 6}));
    let list = workspace.run(&["corpus", "list"]).good();
    let rows: Vec<Vec<&str>> = list.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!((rows.len(), rows[0][0], rows[1][0], rows[1][1]), (2, "name", "zoo texts", "6"), "{list}");
    assert!(rows[1][3].starts_with("minilm-") && rows[1][6].ends_with("corpus.jsonl"), "{list}");
    let info = workspace.run(&["corpus", "info", rows[1][5]]).good();
    for words in [
        "name         zoo texts",
        "BEIR JSONL",
        "duplicates   none",
        "words        9 least",
        "metadata     none",
    ] {
        assert!(info.contains(words), "no `{words}` in\n{info}");
    }
    workspace.write("other.jsonl", jsonl(&[("a", "", "other")]));
    workspace
        .run(&["corpus", "add", "other.jsonl", "--name", "zoo texts"])
        .bad(&["another corpus is called zoo texts", "--name"]);
    workspace.run(&["corpus", "rm", "zoo texts"]).bad(&["--yes"]);
    workspace.run(&["corpus", "rm", "zoos", "--yes"]).bad(&["no corpus is called zoos", "corpus list"]);
    assert!(
        workspace
            .run(&["corpus", "rm", "zoo texts", "--yes"])
            .good()
            .starts_with("removed zoo texts (6 passages")
    );
    assert_eq!(workspace.run(&["corpus", "list"]).good().lines().count(), 1);
    workspace
        .run(&["search", "bread", "--corpus", "zoo texts"])
        .bad(&["no corpus has this name", "corpus list"]);
}

/// A file of numpy with rows of so many numbers.
fn npy(numbers: &[f32], width: usize) -> Vec<u8> {
    let shape = format!("({}, {width})", numbers.len() / width);
    let mut head = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}");
    head += &" ".repeat(63 - (head.len() + 10) % 64);
    head.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((head.len() as u16).to_le_bytes());
    bytes.extend(head.as_bytes());
    bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    bytes
}

#[test]
fn a_corpus_that_has_grown_keeps_its_name_and_its_vectors() {
    let workspace = Workspace::new();
    let first = [("a", "", "zoos keep wolves"), ("b", "", "bears sleep")];
    workspace.write("grown.jsonl", jsonl(&first));
    workspace.run(&["corpus", "add", "grown.jsonl"]).good();
    let search = ["search", "wolves", "--corpus", "grown", "--lanes", "minilm"];
    workspace.run(&search).good();
    let vectors = |passages: usize, end: &str| {
        workspace.corpora().into_iter().filter(|path| path.is_dir()).find_map(|folder| {
            let rows = fs::metadata(folder.join("offsets.u64")).unwrap().len() / 8 - 1;
            let mut files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
            (rows == passages as u64).then(|| files.find(|path| path.to_string_lossy().ends_with(end)))?
        })
    };
    let earlier = fs::read(vectors(2, ".f32").unwrap()).unwrap();
    let more = [first[0], first[1], ("c", "", "wolves hunt at night")];
    workspace.write("grown.jsonl", jsonl(&more));
    let added = workspace.run(&["corpus", "add", "grown.jsonl"]);
    let notes = added.err.clone();
    assert!(added.good().contains("passages    3"));
    for words in ["grown has grown from 2 passages", "corpus rm grown@2", "Labels by hand stay"] {
        assert!(notes.contains(words), "no `{words}` in {notes}");
    }
    // Vectors that nothing would compute show that they were copied.
    let marked = workspace.files.path().join("marked.npy");
    let mut rows = vec![0f32; 2 * 384];
    (rows[0], rows[384 + 1]) = (1.0, 1.0);
    fs::write(&marked, npy(&rows, 384)).unwrap();
    workspace.run(&["corpus", "vectors", "grown@2", marked.to_str().unwrap(), "--model", "minilm"]).good();
    let earlier_now = fs::read(vectors(2, ".f32").unwrap()).unwrap();
    assert_ne!(earlier_now, earlier);
    let earlier = earlier_now;
    let found = workspace.json(&search);
    assert_eq!(found["lanes"][0]["hits"].as_array().unwrap().len(), 3);
    let all = fs::read(vectors(3, ".f32").unwrap()).unwrap();
    assert!(all.starts_with(&earlier) && all.len() == earlier.len() / 2 * 3);
    assert!(workspace.run(&["corpus", "list"]).good().contains("grown@2"));
    // What has changed and not only grown is another corpus, and the name stays where it is.
    workspace
        .write("grown.jsonl", jsonl(&[("a", "", "cages"), ("b", "", "x"), ("c", "", "y"), ("d", "", "z")]));
    workspace.run(&["corpus", "add", "grown.jsonl"]).bad(&["another corpus is called grown", "--name"]);
    assert!(
        workspace.run(&["corpus", "info", "grown"]).good().contains("passages     3"),
        "no second one is left"
    );
    assert_eq!(workspace.json(&search)["corpus"]["passages"], 3);
}

#[test]
fn damaged_vectors_of_an_earlier_corpus_are_not_taken_over_but_computed() {
    let workspace = Workspace::new();
    let passages =
        [("a", "", "zoos keep wolves"), ("b", "", "bears sleep"), ("c", "", "wolves hunt at night")];
    workspace.write("grown.jsonl", jsonl(&passages[..2]));
    let search = ["search", "wolves", "--corpus", "grown.jsonl", "--lanes", "minilm"];
    workspace.run(&search).good();
    let vectors = |workspace: &Workspace| -> Vec<PathBuf> {
        let folders = workspace.corpora().into_iter().filter(|path| path.is_dir());
        let files =
            folders.flat_map(|folder| fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()));
        files.filter(|path| path.extension().is_some_and(|end| end == "f32")).collect()
    };
    let [earlier] = vectors(&workspace).try_into().unwrap();
    let mut bytes = fs::read(&earlier).unwrap();
    bytes[4] ^= 1;
    fs::write(&earlier, &bytes).unwrap();
    workspace.write("grown.jsonl", jsonl(&passages));
    workspace.run(&search).good();
    let whole = Workspace::new();
    whole.write("grown.jsonl", jsonl(&passages));
    whole.run(&search).good();
    let rows = |workspace: &Workspace| {
        let all = vectors(workspace).into_iter().map(|path| fs::read(path).unwrap());
        all.max_by_key(Vec::len).unwrap()
    };
    assert!(rows(&workspace) == rows(&whole));
}

#[test]
fn the_process_that_holds_the_lock_is_named_and_a_corpus_being_built_is_not_removed() {
    let workspace = Workspace::new();
    let corpus = tiny(&workspace);
    let search = ["search", "bread", "--corpus", &corpus, "--lanes", "bm25"];
    workspace.run(&["corpus", "add", &corpus]).good();
    let folder = workspace.corpora().into_iter().find(|path| path.is_dir()).unwrap();
    // This process holds the lock as another build would.
    let place = folder.with_extension("lock");
    let mut lock = File::options().write(true).open(&place).unwrap();
    lock.try_lock().unwrap();
    let holder = r#"{"by":"parallax","pid":4711,"host":"here","since":0}"#;
    lock.set_len(0).unwrap();
    write!(lock, "{holder}").unwrap();
    workspace.run(&["corpus", "rm", "tiny", "--yes"]).bad(&["tiny is being built by another process"]);
    assert!(folder.is_dir());
    fs::remove_dir_all(&folder).unwrap();
    let mut child = workspace.command(&search).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let mut message = BufReader::new(child.stderr.take().unwrap());
    message.read_line(&mut line).unwrap();
    assert_eq!(line, "waiting for process 4711, which builds the same corpus\n");
    drop(lock);
    assert!(child.wait_with_output().unwrap().status.success());
    assert!(folder.is_dir());
}

#[cfg(unix)]
#[test]
fn a_full_disk_is_reported_with_what_to_do_and_the_import_resumes_when_there_is_room() {
    use std::process::Command;
    let workspace = Workspace::new();
    let filler = "x".repeat(3_000);
    let lines = (0..12_000).map(|i| {
        json!({"_id": i.to_string(), "text": "zoos", "metadata": {"filler": filler}}).to_string() + "\n"
    });
    workspace.write("large.jsonl", lines.collect::<String>());
    // No file may grow beyond 24 MB; blocks are of 512 bytes in some shells and of 1,024 in others.
    let limit = "trap '' XFSZ; ulimit -f $((24000 * 1024 / $1)); shift; exec \"$@\"";
    let block = if cfg!(target_os = "linux") { "1024" } else { "512" };
    let mut full = Command::new("bash");
    full.args(["-c", limit, "sh", block, env!("CARGO_BIN_EXE_parallax"), "corpus", "add", "large.jsonl"]);
    full.arg("--data-dir").arg(&workspace.data).current_dir(workspace.files.path());
    crate::program::printed(&mut full).bad(&[
        "cannot be written",
        "make room",
        "--data-dir",
        "so far are kept",
    ]);
    for folder in workspace.corpora().iter().filter(|path| path.is_dir()) {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let (name, empty) = (entry.file_name(), entry.metadata().unwrap().len() == 0);
            let unfinished = [".new", ".part"].iter().any(|end| name.to_string_lossy().ends_with(end));
            assert!(!(empty && unfinished), "{name:?} stays");
        }
    }
    let list = workspace.run(&["corpus", "list"]).good();
    assert!(list.contains("unfinished"), "{list}");
    let again = workspace.run(&["corpus", "add", "large.jsonl"]);
    assert!(again.err.starts_with("importing ") && !again.err.starts_with("importing 0"), "{}", again.err);
    assert!(again.good().contains("passages    12,000"));
    let list = workspace.run(&["corpus", "list"]).good();
    assert!(!list.contains("unfinished") && list.lines().count() == 2, "{list}");
}

#[test]
fn six_processes_that_add_the_same_corpus_build_it_once_and_all_succeed() {
    let workspace = Workspace::new();
    let lines =
        (0..3_000).map(|i| json!({"_id": i.to_string(), "text": format!("zoo {i}")}).to_string() + "\n");
    workspace.write("same.jsonl", lines.collect::<String>());
    let start = || {
        let mut command = workspace.command(&["corpus", "add", "same.jsonl"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    for child in [(); 6].map(|()| start()) {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(String::from_utf8_lossy(&output.stdout).contains("passages    3,000"));
    }
    let folders = workspace.corpora().into_iter().filter(|path| path.is_dir());
    assert_eq!(folders.count(), 1);
}

mod ready {
    //! `parallax corpus vectors`: imports vectors computed elsewhere, and refuses ones that do not fit.

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
        let header =
            format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {dimensions}), }}\n");
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
    fn a_lane_compares_the_imported_vectors() {
        let folder = tempfile::tempdir().unwrap();
        stage(folder.path(), 3, 384);
        fs::write(folder.path().join("ids.txt"), "c\nb\na\n").unwrap();
        let taken = take(folder.path(), "minilm", true);
        let message = String::from_utf8_lossy(&taken.stdout).into_owned();
        assert!(taken.status.success(), "{}", String::from_utf8_lossy(&taken.stderr));
        assert!(
            message.contains("3 vectors of minilm")
                && message.contains("lengths from 1.0000 to 1.0000; 0 were"),
            "{message}"
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
        // The row of `a` was the last.
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
            (
                3,
                383,
                "minilm",
                None,
                "expected rows of 384 numbers, as the model returns them, found rows of 383",
            ),
            (2, 384, "minilm", None, "expected 3 rows, one for each passage, found 2"),
            (3, 384, "bm25", None, "bm25 does not compare vectors"),
            (3, 384, "other", None, "the lane `other`: expected"),
        ] {
            let folder = tempfile::tempdir().unwrap();
            stage(folder.path(), rows, dimensions);
            if let Some(ids) = ids {
                fs::write(folder.path().join("ids.txt"), ids).unwrap();
            }
            let taken = take(folder.path(), model, ids.is_some());
            let message = String::from_utf8_lossy(&taken.stderr).into_owned();
            assert_eq!(taken.status.code(), Some(2), "{message}");
            assert!(message.contains(expected), "{message}");
        }
    }
}

pub mod kills {
    //! Kills: finished work stays, unfinished work resumes, and the result is the same to the last byte.

    use std::fs;
    use std::path::{Path, PathBuf};
    use std::process::Stdio;

    use parallax::retrieve::TermIndex;
    use serde_json::json;

    use crate::program::{Workspace, tiny};

    /// Starts the program and kills it as soon as `now` says so.
    pub fn killed(workspace: &Workspace, arguments: &[&str], now: &dyn Fn() -> bool) {
        let mut child =
            workspace.command(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
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

    /// The folder of the only corpus, finished or not, that is not among `others`.
    fn folder(workspace: &Workspace, others: &[PathBuf]) -> Option<PathBuf> {
        let mut all = workspace.corpora();
        all.retain(|path| path.is_dir() && !others.contains(path));
        all.pop().map(|path| path.with_extension(""))
    }

    #[test]
    fn a_kill_at_any_of_ten_points_leaves_the_old_state_and_the_same_command_resumes() {
        let workspace = Workspace::new();
        let old = tiny(&workspace);
        workspace.run(&["corpus", "add", &old]).good();
        let others: Vec<PathBuf> = workspace.corpora();
        let untouched = || {
            let all = workspace.json(&["search", "bread", "--corpus", "tiny", "--lanes", "bm25"]);
            assert_eq!(all["lanes"][0]["hits"][0]["id"], "f");
        };
        // Metadata take space on disk but no time for terms or vectors.
        let filler = "x".repeat(3_000);
        let lines = (0..12_000).map(|i| {
            let text = format!("zoos w{} w{}", i % 97, i % 89);
            json!({"_id": i.to_string(), "text": text, "metadata": {"filler": filler}}).to_string() + "\n"
        });
        workspace.write("large.jsonl", lines.collect::<String>());
        let add = ["corpus", "add", "large.jsonl"];
        let whole = Workspace::new();
        let source = workspace.files.path().join("large.jsonl");
        whole.run(&["corpus", "add", source.to_str().unwrap()]).good();
        let expected = folder(&whole, &[]).unwrap();
        let building = || folder(&workspace, &others).map(|folder| folder.with_extension("building"));

        // Five while importing: before the first checkpoint, and after one or two.
        for megabytes in [1, 9, 18, 26, 34] {
            killed(&workspace, &add, &|| {
                building().is_some_and(|folder| length(&folder.join("passages.jsonl")) >= megabytes << 20)
            });
            assert!(!folder(&workspace, &others).unwrap().exists(), "an unfinished store is not opened");
            assert_eq!(building().unwrap().join("checkpoint.json").exists(), megabytes > 16);
            untouched();
        }
        // Two while indexing: when its folder exists, and when it has content.
        let place =
            || folder(&workspace, &others).map(|folder| folder.join(TermIndex::FOLDER)).unwrap_or_default();
        for files in [0, 1] {
            killed(&workspace, &add, &|| {
                let listing = fs::read_dir(place().with_extension("building"));
                listing.is_ok_and(|listing| listing.count() >= files)
            });
            assert!(!place().exists());
            untouched();
        }
        assert!(workspace.run(&add).good().contains("passages    12,000"));
        let made = folder(&workspace, &others).unwrap();
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
        let found = |workspace: &Workspace| {
            workspace.json(&["search", "w5 w7", "--corpus", "large", "--lanes", "bm25"])["lanes"].clone()
        };
        assert_eq!(found(&workspace), found(&whole));
        untouched();
    }

    #[test]
    fn a_kill_while_embedding_keeps_the_vectors_computed_so_far() {
        let workspace = Workspace::new();
        let lines = (0..160)
            .map(|i| json!({"_id": i.to_string(), "text": format!("zoo number {i}")}).to_string() + "\n");
        workspace.write("some.jsonl", lines.collect::<String>());
        workspace.run(&["corpus", "add", "some.jsonl"]).good();
        let made = folder(&workspace, &[]).unwrap();
        let vectors = |ending: &str| {
            let mut found = fs::read_dir(&made).unwrap().map(|entry| entry.unwrap().path());
            found.find(|path| path.to_string_lossy().ends_with(ending))
        };
        let search = ["search", "zoo", "--corpus", "some", "--lanes", "minilm"];
        // Three more points: as soon as the file exists, and after some rows of 384 numbers.
        let mut kept = 0;
        for rows in [0, 1, 60] {
            killed(&workspace, &search, &|| {
                vectors(".f32.part").is_some_and(|part| length(&part) >= rows * 384 * 4)
            });
            let part = vectors(".f32.part").unwrap();
            assert!(length(&part) >= kept && vectors(".f32").is_none(), "what was made is kept");
            kept = length(&part);
        }
        let whole = Workspace::new();
        whole
            .run(&[
                "search",
                "zoo",
                "--corpus",
                workspace.files.path().join("some.jsonl").to_str().unwrap(),
                "--lanes",
                "minilm",
            ])
            .good();
        workspace.run(&search).good();
        let vectors = vectors(".f32").unwrap();
        let expected = folder(&whole, &[]).unwrap().join(vectors.file_name().unwrap());
        assert!(fs::read(vectors).unwrap() == fs::read(expected).unwrap());
    }
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (path, name) = (entry.as_ref().unwrap().path(), entry.unwrap().file_name());
        if path.is_dir() {
            copy_folder(&path, &to.join(name));
        } else {
            fs::copy(&path, to.join(name)).unwrap();
        }
    }
}

/// `tests/fixtures/data_folders` keeps one folder of each version, with what a search printed then. The corpus's source is gone.
#[test]
fn data_folders_of_earlier_versions_open_with_the_same_results_and_labels() {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/data_folders");
    let mut versions = 0;
    for version in fs::read_dir(kept).unwrap() {
        let (workspace, version) = (Workspace::new(), version.unwrap().path());
        copy_folder(&version.join("data"), &workspace.data);
        for name in ["anna.jsonl", "q.jsonl"] {
            fs::copy(version.join(name), workspace.files.path().join(name)).unwrap();
        }
        let expected = fs::read_to_string(version.join("expected.tsv")).unwrap();
        let asked = [
            "search",
            "Should zoos be banned?",
            "--corpus",
            "tiny",
            "--lanes",
            "bm25,minilm",
            "--format",
            "tsv",
        ];
        // Verdicts may be another model's by now; lists may not change.
        let lists = |text: &str| {
            text.lines()
                .map(|line| line.split('\t').take(5).collect::<Vec<_>>().join(" "))
                .collect::<Vec<_>>()
        };
        assert_eq!(lists(&workspace.run(&asked).good()), lists(&expected), "{version:?}");
        assert!(workspace.run(&["corpus", "list"]).good().contains("tiny\t3\t"));
        let journal = workspace.run(&["annotate", "fsck", "anna.jsonl"]).good();
        assert!(journal.contains("1 entry, 1 current, 0 conflicts"), "{journal}");
        let human = ["--questions", "q.jsonl", "--journal", "anna.jsonl", "--label-source", "human"];
        let labelled = workspace.json(&[&asked[..6], &human[..]].concat());
        assert_eq!(labelled["provenance"]["labels"], "human", "{labelled}");
        versions += 1;
    }
    assert!(versions > 0);
}

#[test]
fn the_demo_file_of_pir_opens_in_the_explorer_with_its_gold_marked() {
    let folder = tempfile::tempdir().unwrap();
    let task = serde_json::json!({
        "corpus": ["Zoos breed rare animals.", "Cages in zoos make animals suffer.", "A pond near zoos."],
        "queries": ["Find a claim that opposes the argument: Zoos are good", "Find a claim that supports the argument: Zoos are good"],
        "source_queries": ["Zoos are good", "Zoos are good"],
        "perspectives": ["a claim that opposes the argument", "a claim that supports the argument"],
        "query_labels": ["undermine", "support"],
        "key_ref": {"0": [1], "1": [0]},
    });
    let file = folder.path().join("demo.json");
    fs::write(&file, serde_json::json!({"claims": task, "other": task}).to_string()).unwrap();
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_parallax"));
        command.args(arguments).args(["--data-dir", "data"]).current_dir(folder.path());
        command.env_remove("PARALLAX_CORPUS").env_remove("PARALLAX_QUESTIONS").env_remove("PARALLAX_LABELS");
        let output = command.output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let query = "Find a claim that opposes the argument: Zoos are good";
    let lanes = ["--lane", "bm25", "--lane", "minilm+pap"];
    let corpus = ["--corpus", "demo.json:claims"];
    let keys = format!("{query}<Enter>");
    let frame = [&["frame", "--size", "160x30", "--keys", keys.as_str()][..], &corpus, &lanes].concat();
    let (code, shown, error) = run(&frame);
    assert_eq!(code, Some(0), "{error}");
    // Passage 1 is gold of this query in either lane, and the other passages are not.
    let marked = |mark: &str, text: &str| {
        shown.lines().map(|line| line.matches(&format!("{mark} {text}")).count()).sum::<usize>()
    };
    assert!(shown.contains("judged by gold labels"), "{shown}");
    assert_eq!(marked("◆A", "Cages in zoos make animals suffer."), 2, "{shown}");
    assert_eq!(marked("○ ", "Zoos breed rare animals."), 2, "{shown}");
    // Root and perspective are the file's, so a projection is that of eval pir.
    let (_, found, error) = run(&[&["search", query, "--format", "json"][..], &corpus, &lanes].concat());
    for part in ["\"a claim that opposes the argument\"", "\"Zoos are good\""] {
        assert!(found.contains(part), "no {part} in {found}{error}");
    }
    let (code, _, error) = run(&["search", query, "--corpus", "demo.json"]);
    assert!(
        code == Some(2) && error.contains("it holds the tasks claims, other; name one of them: FILE:claims"),
        "{error}"
    );
    // A task is no corpus of the library: passages, queries and gold belong together.
    for named in ["demo.json", "demo.json:claims"] {
        let (code, _, error) = run(&["corpus", "add", named]);
        assert!(code == Some(2) && error.contains("demo.json: tasks of PIR: each has passages"), "{error}");
        assert!(error.contains("open one with --corpus FILE:TASK") && !error.contains("`_id`"), "{error}");
    }
    let (code, _, error) = run(&["search", query, "--corpus", "demo.json:none"]);
    assert!(code == Some(2) && error.contains("claims, other"), "{error}");
}

#[test]
fn a_rate_is_that_of_the_last_half_minute_and_begins_anew_with_the_job() {
    let (mut rates, start) = (Rates::default(), Instant::now());
    let mut at = |second: u64, done| {
        let progress = Progress { job: Job::Pushing, done, total: 1_000_000 };
        rates.text(progress, start + Duration::from_secs(second))
    };
    assert_eq!(at(0, 0), "pushing 0/1,000,000");
    for second in 1..=40 {
        assert!(at(second, second * 5_000).contains(" · 5,000/s · "), "{second}");
    }
    for second in 41..80 {
        at(second, 200_000 + (second - 40) * 100);
    }
    assert_eq!(at(80, 204_000), "pushing 204,000/1,000,000 · 100/s · 132 min 40 s left");
    assert_eq!(at(81, 5), "pushing 5/1,000,000");
    assert_eq!(at(83, 25), "pushing 25/1,000,000 · 10/s · 1666 min 38 s left");
    assert!(at(181, 55).contains(" · 0.5/s · "));
}

#[test]
fn a_lane_of_some_lists_searches_these_alone_and_says_what_that_misses() {
    let workspace = Workspace::new();
    let rows = 8_200;
    let line = |i| json!({"_id": format!("p{i:04}"), "text": format!("Passage {i}.")}).to_string() + "\n";
    workspace.write("many.jsonl", (0..rows).map(line).collect::<String>());
    let mut seed = 11u32;
    let mut next = || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    let numbers: Vec<f32> = (0..rows * 384).map(|_| next()).collect();
    let file = workspace.files.path().join("many.npy");
    fs::write(&file, npy(&numbers, 384)).unwrap();
    workspace.run(&["corpus", "vectors", "many.jsonl", file.to_str().unwrap(), "--model", "minilm"]).good();
    let lanes = ["minilm", "minilm+ivf@1", "minilm+ivf@3"];
    let lanes: Vec<&str> = lanes.into_iter().flat_map(|lane| ["--lane", lane]).collect();
    let asked = [&["search", "Should zoos be banned?", "--corpus", "many.jsonl", "-k", "10"], &lanes[..]];
    let found = workspace.json(&asked.concat());
    let of = |lane: usize| {
        let lane = &found["lanes"][lane];
        let hits = lane["hits"].as_array().unwrap().iter();
        (hits.map(|hit| hit["id"].clone()).collect::<Vec<_>>(), lane["notes"].to_string())
    };
    let (exact, some, all) = (of(0), of(1), of(2));
    assert!(some.1.contains("nprobe 1 of 3 lists") && !some.1.contains("10 of 10"), "{}", some.1);
    assert!(exact.0 != some.0 && exact.0.iter().any(|id| some.0.contains(id)));
    assert!(all.1.contains("nprobe 3 of 3 lists, 10 of 10 first passages"), "{}", all.1);
    assert_eq!(all.0, exact.0);
}
