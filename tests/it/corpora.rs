//! Importers and `parallax corpus`, by the real binary.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::program::{Desk, jsonl, tiny};

fn gz(text: &str) -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(text.as_bytes()).unwrap();
    packer.finish().unwrap()
}

/// The first hit of a search, as JSON.
fn first(desk: &Desk, query: &str, corpus: &str) -> Value {
    let all = desk.json(&["search", query, "--corpus", corpus, "--lanes", "bm25"]);
    all["lanes"][0]["hits"][0].clone()
}

#[test]
fn every_format_gives_the_same_passages() {
    let desk = Desk::new();
    let beir = [
        json!({"_id": "1", "title": "Zoos, \"the\" case", "text": "A cage is no home."}),
        json!({"_id": "2", "title": "", "text": "Bread, salt\tand water."}),
    ];
    let lines = |make: &dyn Fn(&Value) -> Value| -> String {
        beir.iter().map(|passage| make(passage).to_string() + "\n").collect()
    };
    let plain = lines(&Value::clone);
    desk.write("beir.jsonl", &plain);
    desk.write("packed.jsonl.gz", gz(&plain));
    desk.write("packed.jsonl.zst", zstd::encode_all(plain.as_bytes(), 1).unwrap());
    desk.write("bundle/corpus.jsonl", &plain);
    desk.write(
        "sphere.jsonl",
        lines(&|p| json!({"id": p["_id"], "title": p["title"], "raw": p["text"], "url": "http://a.b/c"})),
    );
    desk.write(
        "dpr.tsv",
        "id\ttext\ttitle\n1\tA cage is no home.\t\"Zoos, \"\"the\"\" case\"\n2\tBread, salt and water.\t\n",
    );
    desk.write(
        "own.csv",
        "name,body,head\n1,A cage is no home.,\"Zoos, \"\"the\"\" case\"\n2,\"Bread, salt\nand water.\",\n",
    );
    for (name, more, told) in [
        ("beir.jsonl", &[][..], "BEIR JSONL (id: _id, title: title, text: text)"),
        ("packed.jsonl.gz", &[], "BEIR JSONL"),
        ("packed.jsonl.zst", &[], "BEIR JSONL"),
        ("bundle", &[], "BEIR JSONL"),
        ("sphere.jsonl", &[], "Sphere JSONL (id: id, title: title, text: raw)"),
        ("dpr.tsv", &[], "DPR TSV (id: id, title: title, text: text)"),
        ("own.csv", &["--id", "name", "--title", "head", "--text", "body"], "CSV (id: name"),
    ] {
        let dry = desk.run(&[&["corpus", "add", name, "--dry-run"], more].concat()).good();
        assert!(dry.contains(told) && dry.contains("passages    2\n"), "{name}:\n{dry}");
        assert!(dry.contains("first       id `1`, title `Zoos, \"the\" case`, text `A cage"), "{dry}");
        desk.run(&[&["corpus", "add", name, "--name", &format!("as {name}")], more].concat()).good();
        let hit = first(&desk, "cage", &format!("as {name}"));
        assert_eq!((&hit["id"], &hit["title"]), (&json!("1"), &json!("Zoos, \"the\" case")), "{name}");
        assert_eq!(first(&desk, "bread", &format!("as {name}"))["id"], "2");
    }
    desk.write("pyserini.jsonl", "{\"id\": 7, \"contents\": \"Zoos\\nA cage\"}\n");
    let dry = desk.run(&["corpus", "add", "pyserini.jsonl", "--dry-run"]).good();
    assert!(dry.contains("Pyserini JSONL (id: id, title: none, text: contents)"), "{dry}");
    assert_eq!(first(&desk, "cage", "pyserini.jsonl")["id"], "7");
    let info = desk.run(&["corpus", "info", "as sphere.jsonl"]).good();
    assert!(info.contains("metadata     url (2)") && info.contains("recognised   Sphere"), "{info}");
}

#[test]
fn a_web_page_gives_its_title_and_main_text_and_no_menu() {
    let desk = Desk::new();
    let body = "<p>Zoos should be banned, for no cage is a home, and an elephant walks further in a night than a keeper in a year.</p>".repeat(12);
    let page = format!(
        "<html><head><title>Against zoos</title><script>steal()</script></head><body><nav><a href=/>Home</a> <a href=/x>Imprint</a></nav><article><h1>Against zoos</h1>{body}</article></body></html>"
    );
    desk.write("pages/a.html", page);
    desk.write("pages/b.htm", "<title>Short</title><style>p{}</style><p>One<p>line.");
    desk.write("pages/deep.html", "<div>".repeat(200) + "deepest");
    desk.write("pages/empty.html", "");
    let hit = first(&desk, "elephant", "pages");
    assert!(hit["id"].as_str().unwrap().starts_with("a#") && hit["title"] == "Against zoos", "{hit}");
    let text = hit["text"].as_str().unwrap();
    assert!(!text.contains("Imprint") && !text.contains("steal") && !text.contains('<'), "{text}");
    assert!(text.contains("in a year. Zoos should"), "{text}");
    let hit = first(&desk, "line", "pages");
    assert_eq!((&hit["title"], &hit["text"]), (&json!("Short"), &json!("One line.")));
    assert_eq!(first(&desk, "deepest", "pages")["title"], "deep");
    desk.write("nested/a.html", "<div>".repeat(100_000));
    desk.run(&["corpus", "add", "nested"]).bad(&["a.html: 100000 tags", "take it out of the folder"]);
}

#[test]
fn bad_rows_are_told_and_nothing_is_kept() {
    let desk = Desk::new();
    let add = |name: &str, text: &str, words: &[&str]| {
        desk.write(name, text);
        for more in [&[][..], &["--dry-run"]] {
            desk.run(&[&["corpus", "add", name], more].concat()).bad(words);
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
    desk.write("named.tsv", "id\ttext\n1\tx\n");
    desk.run(&["corpus", "add", "named.tsv", "--text", "body"])
        .bad(&["`body` for the text", "there is `id`, `text`"]);
    desk.run(&["corpus", "add", "named.tsv", "--format", "folder"])
        .bad(&["a file, which cannot be read as folder"]);
    desk.run(&["corpus", "add", "named.tsv", "--name", "a/b"]).bad(&["without slashes"]);
    desk.run(&["corpus", "add", "-"]).bad(&["standard input: a corpus is read more than once"]);
    assert!(desk.corpora().iter().all(|path| path.extension().is_some_and(|end| end == "lock")));
}

#[test]
fn of_an_archive_that_is_cut_short_nothing_is_taken() {
    let desk = Desk::new();
    let lines: Vec<String> = (0..3_000).map(|i| format!("text {}", i * i)).collect();
    let passages: Vec<_> = lines.iter().map(|text| (text.as_str(), "", text.as_str())).collect();
    let text = jsonl(&passages);
    for (name, whole) in
        [("cut.jsonl.gz", gz(&text)), ("cut.jsonl.zst", zstd::encode_all(text.as_bytes(), 1).unwrap())]
    {
        desk.write(name, &whole[..whole.len() * 2 / 3]);
        desk.run(&["search", "text", "--corpus", name]).bad(&[name, "cut short", "nothing was taken"]);
        assert!(desk.corpora().iter().all(|path| path.extension().is_some_and(|end| end == "lock")));
    }
}

#[test]
fn repeated_passages_are_kept_and_told_and_long_ones_are_cut_on_demand() {
    let desk = Desk::new();
    let long = "word ".repeat(250);
    desk.write(
        "twice.jsonl",
        jsonl(&[("a", "t", "same"), ("b", "t", "same"), ("c", "u", "same"), ("d", "", &long), ("e", "", "")]),
    );
    let told = desk.run(&["corpus", "add", "twice.jsonl"]).good();
    assert!(
        told.contains("passages    5\n") && told.contains("duplicates  1 (b repeats a); all are kept"),
        "{told}"
    );
    let dry = desk.run(&["corpus", "add", "twice.jsonl", "--dry-run", "--segment"]).good();
    assert!(dry.contains("passages    7\n") && dry.contains("cut into passages of 100 words"), "{dry}");
    desk.run(&["corpus", "add", "twice.jsonl", "--segment", "--name", "cut"]).good();
    let all = desk.json(&["search", "word", "--corpus", "cut", "--lanes", "bm25"]);
    let ids: Vec<&str> =
        all["lanes"][0]["hits"].as_array().unwrap().iter().map(|hit| hit["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["d#1", "d#2", "d#3"]);
    assert_eq!(first(&desk, "word", "twice")["id"], "d");
}

#[test]
fn finished_runs_may_be_compressed_as_lanes_and_as_a_corpus() {
    let desk = Desk::new();
    let corpus = tiny(&desk);
    desk.write("run.trec.gz", gz("1 Q0 f 1 2 tag\n1 Q0 a 2 1 tag\n"));
    desk.write("q.jsonl", json!({"id": "1", "question": "Who pays?"}).to_string());
    let asked = ["search", "Who pays?", "--corpus", &corpus, "--questions", "q.jsonl", "--lane"];
    let all = desk.json(&[&asked[..], &["run:run.trec.gz"]].concat());
    assert_eq!(all["lanes"][0]["hits"][0]["id"], "f");
    let run = |id: &str, text: &str| {
        let hits = json!([{"qid": 7, "docid": id, "score": 1, "content": text}]);
        json!([{"query": "Should zoos be banned?", "hits": hits}]).to_string()
    };
    let (one, other) = (run("a", "A cage is no home."), run("b", "Bread and salt."));
    desk.write("one.json.gz", gz(&one));
    desk.write("other.json.zst", zstd::encode_all(other.as_bytes(), 1).unwrap());
    let lanes = ["search", "Should zoos be banned?", "--lanes", "run:one.json.gz,run:other.json.zst,bm25"];
    let all = desk.json(&lanes);
    assert_eq!(all["corpus"], json!({"name": "2 runs", "passages": 2}));
    assert_eq!(all["lanes"][1]["hits"][0]["text"], "Bread and salt.");
    let dry = desk.run(&["corpus", "add", "one.json.gz", "--dry-run"]).good();
    assert!(
        dry.contains("recognised  results of rank_llm or BERDS: the passages that they carry\n"),
        "{dry}"
    );
    desk.run(&["corpus", "add", "other.json.zst", "--name", "carried"]).good();
    assert_eq!(first(&desk, "bread", "carried")["id"], "b");
    desk.write("cut.trec.gz", &gz("1 Q0 f 1 2 tag\n1 Q0 a 2 1 tag\n")[..20]);
    let cut = desk.run(&[&asked[..], &["run:cut.trec.gz"]].concat());
    assert!(cut.err.contains("cut.trec.gz") || cut.out.contains("cut.trec.gz"), "{}{}", cut.err, cut.out);
}

#[test]
fn a_corpus_that_was_added_is_listed_opened_by_its_name_and_removed() {
    let desk = Desk::new();
    let source = tiny(&desk);
    desk.run(&["corpus", "add", &source, "--name", "zoo texts"]).good();
    fs::remove_file(desk.files.path().join(&source)).unwrap();
    let all = desk.json(&["search", "bread", "--corpus", "zoo texts"]);
    assert_eq!(all["corpus"], json!({"name": "zoo texts", "passages": 6}));
    let list = desk.run(&["corpus", "list"]).good();
    let rows: Vec<Vec<&str>> = list.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!((rows.len(), rows[0][0], rows[1][0], rows[1][1]), (2, "name", "zoo texts", "6"), "{list}");
    assert!(rows[1][3].starts_with("minilm-") && rows[1][6].ends_with("corpus.jsonl"), "{list}");
    let info = desk.run(&["corpus", "info", rows[1][5]]).good();
    for words in [
        "name         zoo texts",
        "BEIR JSONL",
        "duplicates   none",
        "words        9 least",
        "metadata     none",
    ] {
        assert!(info.contains(words), "no `{words}` in\n{info}");
    }
    desk.write("other.jsonl", jsonl(&[("a", "", "other")]));
    desk.run(&["corpus", "add", "other.jsonl", "--name", "zoo texts"])
        .bad(&["another corpus is called zoo texts", "--name"]);
    desk.run(&["corpus", "rm", "zoo texts"]).bad(&["--yes"]);
    desk.run(&["corpus", "rm", "zoos", "--yes"]).bad(&["no corpus is called zoos", "corpus list"]);
    assert!(
        desk.run(&["corpus", "rm", "zoo texts", "--yes"]).good().starts_with("removed zoo texts (6 passages")
    );
    assert_eq!(desk.run(&["corpus", "list"]).good().lines().count(), 1);
    desk.run(&["search", "bread", "--corpus", "zoo texts"]).bad(&["no corpus is called so", "corpus list"]);
}

#[test]
fn who_is_waited_for_is_told_and_what_is_being_built_is_not_removed() {
    let desk = Desk::new();
    let corpus = tiny(&desk);
    let search = ["search", "bread", "--corpus", &corpus, "--lanes", "bm25"];
    desk.run(&["corpus", "add", &corpus]).good();
    let folder = desk.corpora().into_iter().find(|path| path.is_dir()).unwrap();
    // This process holds the lock as another build would.
    let place = folder.with_extension("lock");
    let mut lock = File::options().write(true).open(&place).unwrap();
    lock.try_lock().unwrap();
    write!(lock, "4711 ").unwrap();
    lock.set_len(4).unwrap();
    desk.run(&["corpus", "rm", "tiny", "--yes"]).bad(&["tiny is being built by another process"]);
    assert!(folder.is_dir());
    fs::remove_dir_all(&folder).unwrap();
    let mut child = desk.command(&search).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let mut told = BufReader::new(child.stderr.take().unwrap());
    told.read_line(&mut line).unwrap();
    assert_eq!(line, "waiting for process 4711, which builds the same corpus\n");
    drop(lock);
    assert!(child.wait_with_output().unwrap().status.success());
    assert!(folder.is_dir());
}

#[cfg(unix)]
#[test]
fn a_disk_that_fills_up_is_told_with_what_to_do_and_the_import_goes_on_when_there_is_room() {
    use std::process::Command;
    let desk = Desk::new();
    let filler = "x".repeat(3_000);
    let lines = (0..12_000).map(|i| {
        json!({"_id": i.to_string(), "text": "zoos", "metadata": {"filler": filler}}).to_string() + "\n"
    });
    desk.write("large.jsonl", lines.collect::<String>());
    // No file may grow beyond 24 MB; blocks are of 512 bytes in some shells and of 1,024 in others.
    let limit = "trap '' XFSZ; ulimit -f $((24000 * 1024 / $1)); shift; exec \"$@\"";
    let block = if cfg!(target_os = "linux") { "1024" } else { "512" };
    let mut full = Command::new("bash");
    full.args(["-c", limit, "sh", block, env!("CARGO_BIN_EXE_parallax"), "corpus", "add", "large.jsonl"]);
    full.arg("--data-dir").arg(&desk.data).current_dir(desk.files.path());
    crate::program::told(&mut full).bad(&["cannot be written", "make room", "--data-dir", "so far is kept"]);
    let list = desk.run(&["corpus", "list"]).good();
    assert!(list.contains("unfinished"), "{list}");
    let again = desk.run(&["corpus", "add", "large.jsonl"]);
    assert!(again.err.starts_with("importing ") && !again.err.starts_with("importing 0"), "{}", again.err);
    assert!(again.good().contains("passages    12,000"));
    let list = desk.run(&["corpus", "list"]).good();
    assert!(!list.contains("unfinished") && list.lines().count() == 2, "{list}");
}

#[test]
fn two_processes_that_add_the_same_corpus_build_it_once_and_both_succeed() {
    let desk = Desk::new();
    let lines =
        (0..3_000).map(|i| json!({"_id": i.to_string(), "text": format!("zoo {i}")}).to_string() + "\n");
    desk.write("same.jsonl", lines.collect::<String>());
    let start = || {
        let mut command = desk.command(&["corpus", "add", "same.jsonl"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    for child in [start(), start(), start()] {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(String::from_utf8_lossy(&output.stdout).contains("passages    3,000"));
    }
    let folders = desk.corpora().into_iter().filter(|path| path.is_dir());
    assert_eq!(folders.count(), 1);
}
