//! The screen and the commands show the same; imported corpora, and the state after a kill.

use super::*;

#[test]
fn screen_and_command_print_the_same_numbers() {
    let workspace = Workspace::new();
    let corpus = tiny(&workspace);
    for from in [vec!["--corpus", corpus.as_str()], vec![]] {
        // The screen goes first: it embeds and judges by itself.
        let keys = format!("{QUESTION}<Enter><Wait>");
        let frame = workspace
            .run(
                &[&["frame", "--size", "200x44", "--timeout", "600", "--keys", &keys], from.as_slice()]
                    .concat(),
            )
            .good();
        let all = workspace.json(&[&["search", QUESTION], from.as_slice()].concat());
        let lanes = all["lanes"].as_array().unwrap();
        let measured = |name: &str, print: &dyn Fn(f64) -> String| -> Vec<String> {
            lanes.iter().map(|lane| print(lane["measures"][name].as_f64().unwrap())).collect()
        };
        // One line below the lanes explains the figure.
        let in_lanes = |name: &str| figures(&frame, name)[..lanes.len()].to_vec();
        assert_eq!(
            in_lanes("MRecall@5 "),
            // The sample has gold labels; otherwise the model judges, and the figure is a mean.
            measured("MRecall@5", &|value| if from.is_empty() {
                format!("{value:.0}")
            } else {
                share(value)
            }),
            "{frame}"
        );
        assert_eq!(figures(&frame, "Prec@5 "), measured("Prec@5", &share), "{frame}");
        let mut strips = frame.lines().find(|line| line.contains("question  ")).expect("strips");
        for lean in measured("Lean@5", &|value| match share(value.abs()).as_str() {
            ".00" => "balanced".to_owned(),
            size => format!("leans {} {size}", if value > 0.0 { '▲' } else { '▼' }),
        }) {
            let at = strips.find(&lean).unwrap_or_else(|| panic!("no `{lean}` in\n{frame}"));
            strips = &strips[at + lean.len()..];
        }
        let text = workspace.run(&[&["search", QUESTION], from.as_slice()].concat()).good();
        assert_eq!(figures(&text, "MRecall@5 "), in_lanes("MRecall@5 "), "{text}");
        assert_eq!(figures(&text, "Prec@5 "), figures(&frame, "Prec@5 "), "{text}");
        for lane in lanes {
            for hit in lane["hits"].as_array().unwrap() {
                let title: String = hit["title"].as_str().unwrap().chars().take(16).collect();
                assert!(frame.contains(&title), "no `{title}` in\n{frame}");
            }
        }
    }
}

#[test]
fn a_frame_is_printed_with_its_styles() {
    let workspace = Workspace::new();
    let arguments = ["frame", "--size", "60x12", "--style", "--keys", "<Esc>?"];
    let out = workspace.run(&arguments).good();
    let blocks: Vec<&str> = out.split("\n\n").collect();
    let (text, rest) = out.split_at(out.lines().take(12).map(|line| line.len() + 1).sum());
    assert!(text.contains("Keys") && rest.contains("bold"), "{out}");
    assert!(blocks.last().unwrap().lines().any(|line| line.ends_with("cyan bold")), "{out}");
    let plain = workspace.run(&[&arguments[..], &["--no-color"]].concat()).good();
    assert!(!plain.contains("cyan"));
    let quiet = printed(workspace.command(&arguments).env("NO_COLOR", "1"));
    assert_eq!(quiet.good(), plain);
}

#[test]
fn the_comparison_on_screen_and_eval_berds_print_the_same_numbers() {
    let workspace = Workspace::new();
    let plan = ["--lane", "bm25", "--lane", "bm25@k1=1.2,b=.75", "--label-source", "gold"];
    let table = workspace.run(&[&["eval", "berds", "--format", "json"], &plan[..]].concat()).good();
    let table: Value = serde_json::from_str(&table).unwrap();
    let screen =
        workspace.run(&[&["frame", "--size", "140x40", "--keys", "<Esc>c<Wait>"], &plan[..]].concat()).good();
    assert!(screen.contains("24/24 questions"), "{screen}");
    for (row, name) in table["rows"].as_array().unwrap().iter().zip(["BM25 ", "BM25 k1=1.2 b=0.…"]) {
        let mean = |measure: &str| share(row["measures"][measure]["mean"].as_f64().unwrap());
        let line = screen.lines().find(|line| line.starts_with(&format!("│  {name}"))).unwrap();
        let rest = line.split_once(name).unwrap().1.trim_start();
        assert!(rest.starts_with(&format!("{} (", mean("MRecall@5"))), "{rest}\n{row}");
        let prec = rest.split_once(") ").unwrap().1.trim_start();
        assert!(prec.starts_with(&mean("Prec@5")), "{prec}\n{row}");
        let sides: Vec<&str> = prec.split_whitespace().skip(1).take(4).collect();
        let expected = ["only-1@5", "only-2@5", "both@5", "neither@5"].map(mean);
        assert_eq!(sides, expected, "{line}");
    }
}

#[test]
fn a_frame_is_saved_in_the_format_of_its_extension() {
    let workspace = Workspace::new();
    let frame = ["frame", "--size", "80x24", "--keys", "<Esc>?"];
    for (name, begins) in
        [("a.svg", &b"<svg"[..]), ("a.png", b"\x89PNG"), ("a.html", b"<!DOCTYPE"), ("a.txt", b" parallax")]
    {
        assert_eq!(workspace.run(&[&frame[..], &["--out", name]].concat()).good(), "");
        assert!(fs::read(workspace.files.path().join(name)).unwrap().starts_with(begins), "{name}");
    }
    workspace.run(&[&frame[..], &["--out", "a.gif"]].concat()).bad(&["a.gif", ".svg, .png, .html or .txt"]);
}

#[test]
fn a_folder_is_cut_into_passages_of_a_hundred_words() {
    let workspace = Workspace::new();
    let words: Vec<String> =
        (0..10_000).map(|i| if i % 100 == 0 { "zoos".into() } else { format!("w{i}") }).collect();
    workspace.write("texts/long.txt", words.join(" "));
    workspace.write("texts/below/one.md", "alone\n");
    workspace.write("texts/notes.csv", "not,read");
    let all = workspace.json(&[&["search", "zoos", "--corpus", "texts", "-k", "100"], &LANES[..]].concat());
    assert_eq!(all["corpus"], json!({"name": "texts", "passages": 101}));
    let hits = all["lanes"][0]["hits"].as_array().unwrap();
    assert_eq!(hits.len(), 100);
    for hit in hits {
        assert_eq!(hit["text"].as_str().unwrap().split(' ').count(), 100);
        assert!(hit["id"].as_str().unwrap().starts_with("long#"));
    }
    let all = workspace.json(&[&["search", "alone", "--corpus", "texts"], &LANES[..]].concat());
    assert_eq!(all["lanes"][0]["hits"][0]["id"], "below/one#1");
}

#[test]
fn a_kill_while_importing_or_indexing_leaves_nothing_half_built() {
    let workspace = Workspace::new();
    let (corpus, passages) = large(&workspace);
    killed_while(&workspace, &corpus, "importing");
    for path in workspace.corpora() {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        assert!(name.ends_with(".building") || name.ends_with(".lock"), "{name}");
    }
    let search = || workspace.json(&[&["search", "zoos", "--corpus", corpus.as_str()], &LANES[..]].concat());
    let whole = search();
    assert_eq!(whole["corpus"]["passages"], json!(passages));
    let folder = workspace.data.join("corpora").join(whole["provenance"]["corpus"].as_str().unwrap());
    fs::remove_dir_all(folder.join(TermIndex::FOLDER)).unwrap();
    killed_while(&workspace, &corpus, "indexing");
    assert!(
        !folder.join(TermIndex::FOLDER).exists()
            && folder.join(TermIndex::FOLDER).with_extension("building").exists()
    );
    assert_eq!(search()["lanes"], whole["lanes"]);
    assert!(!folder.join(TermIndex::FOLDER).with_extension("building").exists());
}

#[test]
fn leftovers_of_a_build_are_swept_away() {
    let workspace = Workspace::new();
    let corpus = tiny(&workspace);
    let arguments = [&["search", QUESTION, "--corpus", &corpus], &LANES[..]].concat();
    let whole = workspace.json(&arguments);
    let folder = workspace.data.join("corpora").join(whole["provenance"]["corpus"].as_str().unwrap());
    let leave = |place: &Path| {
        fs::create_dir_all(place.join("below")).unwrap();
        fs::write(place.join("passages.jsonl"), "half a li").unwrap();
        fs::write(place.join("meta.json"), "half a li").unwrap();
    };
    fs::remove_dir_all(&folder).unwrap();
    leave(&folder.with_extension("building"));
    assert_eq!(workspace.json(&arguments)["lanes"], whole["lanes"]);
    fs::remove_dir_all(folder.join(TermIndex::FOLDER)).unwrap();
    leave(&folder.join(TermIndex::FOLDER).with_extension("building"));
    assert_eq!(workspace.json(&arguments)["lanes"], whole["lanes"]);
    assert!(
        !folder.with_extension("building").exists()
            && !folder.join(TermIndex::FOLDER).with_extension("building").exists()
    );
}

#[test]
fn a_passage_without_text_is_imported_and_judged_by_its_title() {
    let workspace = Workspace::new();
    workspace.write("silent.jsonl", "{\"_id\": \"a\", \"title\": \"Zoos\", \"text\": \" \"}\n");
    let args = [&["search", QUESTION, "--corpus", "silent.jsonl", "--format", "json"], &LANES[..]].concat();
    let found: Value = serde_json::from_str(&workspace.run(&args).good()).unwrap();
    let hit = &found["lanes"][0]["hits"][0];
    assert_eq!(hit["id"], "a");
    assert!(hit["verdicts"][0]["p"].is_number(), "{hit}");
}

#[test]
fn a_data_folder_that_is_a_file_is_reported_with_the_option_that_names_another() {
    let mut workspace = Workspace::new();
    let corpus = tiny(&workspace);
    workspace.write("in-the-way", "a file");
    workspace.data = workspace.files.path().join("in-the-way");
    workspace
        .run(&[&["search", QUESTION, "--corpus", &corpus], &LANES[..]].concat())
        .bad(&["--data-dir", "in-the-way"]);
    let printed = workspace.run(&[&["search", QUESTION], &LANES[..]].concat());
    assert!(printed.err.contains("verdicts are not saved"), "{}", printed.err);
    assert!(printed.good().contains("5/5 judged"));
}
