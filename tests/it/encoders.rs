//! Brought encoders against the Python `transformers` classes, on tiny random checkpoints (`tools/encoders/make_fixtures.py`),
//! and what is said of models that cannot be right.

use std::fs;
use std::path::{Path, PathBuf};

use parallax::corpus::Passage;
use parallax::encode::{Brought, Encoder, Named, Role, Similarity, Source};
use parallax::pipeline::recipe::Base;
use parallax::pipeline::{Asked, Lists, Opening, Reason, Recipe, Setup, rank, why};
use parallax::question::Question;
use parallax::work::Stop;
use serde_json::{Value, json};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/encoders").join(name)
}

/// A recipe's encoder, with options as the recipe writes them.
fn named(folder: &Path, options: &str) -> Named {
    let recipe: Recipe =
        format!("path:{}{options}", parallax::pipeline::recipe::escaped(&folder.to_string_lossy()))
            .parse()
            .unwrap_or_else(|error| panic!("{error}"));
    let Base::Brought(named) = recipe.base else { panic!("no brought encoder") };
    (*named).clone()
}

fn load(folder: &Path, options: &str) -> Result<Brought, String> {
    let named = named(folder, options);
    let towers = named.towers(Path::new("nowhere")).map_err(|error| error.to_string())?;
    Brought::load(&named, &towers).map_err(|error| error.to_string())
}

/// Compares all vectors of a fixture that have this role, each written by Python under `role` and read here as `as_role`.
fn agrees(name: &str, options: &str, role: &str, as_role: Role) -> Brought {
    let encoder = load(&fixture(name), options).unwrap_or_else(|error| panic!("{error}"));
    let rows: Vec<Value> =
        serde_json::from_slice(&fs::read(fixture(name).join("expected.json")).unwrap()).unwrap();
    let rows: Vec<&Value> = rows.iter().filter(|row| row["role"] == role).collect();
    assert!(rows.len() >= 6);
    for row in rows {
        let word = |name: &str| row[name].as_str().unwrap().to_owned();
        let expected: Vec<f64> =
            row["vector"].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect();
        let passage = Passage { title: word("title"), text: word("text"), ..Passage::default() };
        let made = match as_role {
            Role::Passage => encoder.passage(&passage),
            Role::Query => encoder.encode(&passage.contents(), Role::Query),
        };
        let made = made.unwrap();
        assert_eq!(made.len(), expected.len());
        assert_eq!(made.len(), encoder.dimensions());
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let made: Vec<f64> = made.into_iter().map(f64::from).collect();
        let cosine = dot(&made, &expected) / (dot(&made, &made) * dot(&expected, &expected)).sqrt();
        let lengths = (dot(&made, &made) / dot(&expected, &expected)).sqrt();
        assert!(cosine > 0.999_999 && (lengths - 1.0).abs() < 1e-4, "{name}, {row}: {cosine}, {lengths}");
    }
    encoder
}

#[test]
fn contriever_pools_by_mean_and_compares_by_dot_product() {
    let encoder = agrees("contriever", "@family=contriever", "passage", Role::Passage);
    assert_eq!(encoder.similarity(), Similarity::Dot);
}

#[test]
fn dpr_reads_questions_and_titled_passages_with_two_pickled_towers() {
    // Its own configuration says what it is.
    for options in ["", "@family=dpr"] {
        let encoder = agrees("dpr", options, "query", Role::Query);
        assert_eq!(encoder.similarity(), Similarity::Dot);
        agrees("dpr", options, "passage", Role::Passage);
    }
}

#[test]
fn simcse_reads_the_pooler_if_supervised_and_the_first_token_if_not() {
    agrees("simcse", "@family=simcse-sup", "supervised", Role::Passage);
    agrees("simcse", "@family=simcse-unsup", "unsupervised", Role::Passage);
}

#[test]
fn roberta_with_its_own_prompts_and_pairs_of_bytes() {
    agrees("roberta", "", "query", Role::Query);
    agrees("roberta", "", "passage", Role::Passage);
}

#[test]
fn mpnet_with_distances_beyond_the_last_bucket() {
    agrees("mpnet", "", "passage", Role::Passage);
}

#[test]
fn distilbert_in_two_files_of_halves_pooled_by_the_greatest() {
    let encoder = agrees("distilbert", "", "passage", Role::Passage);
    assert_eq!(encoder.similarity(), Similarity::Dot);
}

#[test]
fn instructor_leaves_its_instruction_out_of_the_mean_and_projects() {
    for name in ["instructor", "instructor-gated"] {
        agrees(name, "", "query", Role::Query);
        agrees(name, "", "passage", Role::Passage);
    }
}

#[test]
fn a_vector_depends_on_nothing_that_runs_beside_it() {
    let encoder = load(&fixture("mpnet"), "").unwrap();
    let texts: Vec<String> = (0..24).map(|i| "the old zoo keeps wolves ".repeat(i)).collect();
    let alone: Vec<Vec<f32>> =
        texts.iter().map(|text| encoder.encode(text, Role::Passage).unwrap()).collect();
    let pool = parallax::pipeline::model_threads().unwrap();
    let beside = parallax::work::on_all(&pool, texts.len(), &parallax::work::Stop::never(), |i| {
        encoder.encode(&texts[i], Role::Passage).unwrap()
    });
    assert_eq!(alone, beside);
}

#[test]
fn a_prefix_of_one_s_own_takes_the_place_of_the_model_s_and_makes_other_vectors() {
    let own = load(&fixture("roberta"), "").unwrap();
    let given = load(&fixture("roberta"), "@query=zoo:%20").unwrap();
    assert_ne!(own.key(), given.key());
    let [a, b] = [&own, &given].map(|encoder| encoder.encode("wolves", Role::Query).unwrap());
    assert_ne!(a, b);
    let [a, b] = [&own, &given].map(|encoder| encoder.encode("wolves", Role::Passage).unwrap());
    assert_eq!(a, b);
}

/// A copy of a fixture that can be spoiled.
fn copy(name: &str) -> tempfile::TempDir {
    fn fill(from: &Path, to: &Path) {
        for entry in fs::read_dir(from).unwrap() {
            let path = entry.unwrap().path();
            let target = to.join(path.file_name().unwrap());
            if path.is_dir() {
                fs::create_dir(&target).unwrap();
                fill(&path, &target);
            } else {
                fs::copy(&path, &target).unwrap();
            }
        }
    }
    let folder = tempfile::tempdir().unwrap();
    fill(&fixture(name), folder.path());
    folder
}

/// Changes one entry of a JSON file.
fn change(file: &Path, key: &str, value: Value) {
    let mut json: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    json[key] = value;
    fs::write(file, json.to_string()).unwrap();
}

fn refused(folder: &Path, options: &str, words: &[&str]) {
    let Err(error) = load(folder, options) else { panic!("{words:?} was taken") };
    assert!(words.iter().all(|word| error.contains(word)), "{words:?}: {error}");
    assert!(!error.contains('\n'), "{error}");
}

#[test]
fn files_that_contradict_each_other_are_refused_by_name() {
    for (file, key, value, words) in [
        ("config.json", "hidden_size", json!(64), &["1_Pooling", "32", "64"][..]),
        ("config.json", "num_attention_heads", json!(5), &["config.json", "5 heads"]),
        ("config.json", "intermediate_size", json!(47), &["model.safetensors", "intermediate", "47"]),
        ("config.json", "num_hidden_layers", json!(3), &["layer.2.", "missing"]),
        ("config.json", "vocab_size", json!(100), &["100"]),
        ("config.json", "model_type", json!("gpt2"), &["gpt2", "mpnet"]),
        ("config.json", "hidden_act", json!("mish"), &["mish", "gelu"]),
        ("1_Pooling/config.json", "pooling_mode", json!("lasttoken"), &["lasttoken", "mean"]),
        ("1_Pooling/config.json", "pooling_mode_cls_token", json!(true), &["several"]),
        ("sentence_bert_config.json", "max_seq_length", json!(512), &["512", "160"]),
        ("config_sentence_transformers.json", "similarity_fn_name", json!("manhattan"), &["manhattan"]),
    ] {
        let folder = copy("mpnet");
        change(&folder.path().join(file), key, value);
        refused(folder.path(), "", words);
    }
    refused(&fixture("mpnet"), "@family=bge", &["1_Pooling", "Mean", "bge", "Cls"]);
}

#[test]
fn truncated_and_missing_files_are_refused_by_name() {
    for (name, file) in [
        ("mpnet", "model.safetensors"),
        ("mpnet", "tokenizer.json"),
        ("mpnet", "modules.json"),
        ("mpnet", "config.json"),
        ("distilbert", "model-00002-of-00002.safetensors"),
        ("distilbert", "model.safetensors.index.json"),
        ("instructor", "2_Dense/pytorch_model.bin"),
        ("roberta", "merges.txt"),
    ] {
        for half in [true, false] {
            let folder = copy(name);
            let path = folder.path().join(file);
            let bytes = fs::read(&path).unwrap();
            if half {
                // A list that ends on a line is a list.
                let cut = if file == "merges.txt" { 15 } else { bytes.len() / 2 };
                fs::write(&path, &bytes[..cut]).unwrap();
            } else {
                fs::remove_file(&path).unwrap();
            }
            if half || file != "modules.json" {
                let part = file.rsplit('/').next().unwrap().split(['.', '-']).next().unwrap();
                let at = if half { file.rsplit('/').next().unwrap() } else { part };
                let words = if file == "merges.txt" { "tokenizer" } else { at };
                let words = if !half && file != "config.json" { "" } else { words };
                refused(folder.path(), "", &[words]);
            }
        }
    }
    refused(Path::new("no/such/folder"), "", &["no model is there", "config.json"]);
}

#[test]
fn weights_that_are_no_numbers_are_refused() {
    let folder = copy("contriever");
    let file = folder.path().join("model.safetensors");
    let mut bytes = fs::read(&file).unwrap();
    let end = bytes.len();
    bytes[end - 4..].copy_from_slice(&f32::NAN.to_le_bytes());
    fs::write(&file, bytes).unwrap();
    refused(folder.path(), "", &["model.safetensors", "NaN"]);
}

#[test]
fn a_module_outside_the_folder_is_not_read() {
    let folder = copy("mpnet");
    let modules =
        json!([{"idx": 0, "path": "", "type": "Transformer"}, {"idx": 1, "path": "../x", "type": "Pooling"}]);
    fs::write(folder.path().join("modules.json"), modules.to_string()).unwrap();
    refused(folder.path(), "", &["modules.json", "inside"]);
}

#[test]
fn a_model_of_the_hub_that_was_not_fetched_says_how_to_fetch_it() {
    let models = tempfile::tempdir().unwrap();
    for name in ["contriever", "hf:some-one/some.model"] {
        let named = Named::from(Source::parse(name).unwrap());
        let error = named.towers(models.path()).unwrap_err().to_string();
        assert!(error.contains(&format!("parallax models get {name}")), "{error}");
    }
}

/// A small corpus with vectors of the encoders that some lanes name.
fn opened(data: &Path, lanes: &[Recipe]) -> Setup {
    let corpus = data.join("corpus.jsonl");
    let texts =
        ["Zoos keep wolves.", "Animals suffer in cages.", "The old bears.", "Owls, wolves and bears.", ""];
    let line = |(i, text): (usize, &&str)| {
        json!({"_id": format!("p{i}"), "title": "Zoos", "text": text}).to_string()
    };
    fs::write(&corpus, texts.iter().enumerate().map(line).collect::<Vec<_>>().join("\n")).unwrap();
    let opening = Opening { corpus: Some(corpus), data_dir: data.into(), ..Opening::default() };
    let setup = Setup::open(&opening, &|_| {}, &Stop::never()).unwrap();
    setup.embed_for(lanes, &|_| {}, &Stop::never()).unwrap();
    setup
}

#[test]
fn lanes_of_brought_encoders_rank_by_their_own_vectors_and_compare_as_their_cards_say() {
    let data = tempfile::tempdir().unwrap();
    let path = |name: &str| parallax::pipeline::recipe::escaped(&fixture(name).to_string_lossy());
    let lanes: Vec<Recipe> = [
        format!("path:{}@family=contriever", path("contriever")),
        format!("path:{}", path("dpr")),
        format!("path:{}", path("instructor")),
    ]
    .iter()
    .map(|text| text.parse().unwrap())
    .collect();
    let setup = opened(data.path(), &lanes);
    let question = Question {
        text: "Should zoos be banned?".into(),
        perspectives: vec!["Zoos should be banned.".into(), "Zoos should not be banned.".into()],
        supports: Some(0),
        ..Question::default()
    };
    let asked = Asked::plainly(&question);
    let ranked =
        |recipe: &Recipe| rank(&setup, recipe, asked, &mut Lists::default(), &Stop::never()).unwrap();
    for recipe in &lanes {
        assert_eq!(recipe.to_string().parse(), Ok(recipe.clone()));
        let encoder = setup.encoder(recipe.model()).unwrap();
        let asked = encoder.encode(&question.text, Role::Query).unwrap();
        let list = ranked(recipe);
        assert_eq!(list.len(), 5);
        for hit in list.iter() {
            let vector = encoder.passage(&hit.passage).unwrap();
            let score: f32 = vector.iter().zip(&asked).map(|(a, b)| a * b).sum();
            assert!(
                (score - hit.score).abs() < 1e-2 * score.abs().max(1.0),
                "{recipe}: {score} {}",
                hit.score
            );
        }
        assert!(list.windows(2).all(|pair| pair[0].score >= pair[1].score));
        // Projections are of directions: whatever the lengths, nothing leaves -1 to 1.
        let projected = ranked(&format!("{recipe}+pap@2").parse().unwrap());
        assert!(projected.iter().all(|hit| hit.score.abs() <= 1.001), "{recipe}");
        let varied = ranked(&format!("{recipe}+mmr@.5").parse().unwrap());
        let note = &varied.trace.notes[0];
        assert!(note.contains(&recipe.base.name()), "{note}");
        let why = why(&setup, &list, &question.text, list[0].at).unwrap();
        assert!(
            matches!(&why[0], Reason::Vectors { plain, .. } if (plain - list[0].score).abs() < 1e-2 * plain.abs())
        );
    }
    let stored = fs::read_dir(setup_folder(data.path())).unwrap();
    let stored: Vec<String> =
        stored.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    for recipe in &lanes {
        let key = setup.encoder(recipe.model()).unwrap().key().to_owned();
        assert!(stored.iter().any(|name| name.starts_with(&key)), "{key}: {stored:?}");
    }
}

/// The only corpus's folder.
fn setup_folder(data: &Path) -> PathBuf {
    let mut folders = fs::read_dir(data.join("corpora")).unwrap().map(|entry| entry.unwrap().path());
    folders.find(|path| path.is_dir()).unwrap()
}

#[test]
fn a_lane_whose_model_is_not_there_says_so_and_fetches_nothing() {
    let data = tempfile::tempdir().unwrap();
    let setup = opened(data.path(), &[]);
    let question = Question { text: "zoos".into(), ..Question::default() };
    let lane: Recipe = "contriever".parse().unwrap();
    let error =
        rank(&setup, &lane, Asked::plainly(&question), &mut Lists::default(), &Stop::never()).unwrap_err();
    assert!(error.to_string().contains("parallax models get contriever"), "{error}");
    assert!(!data.path().join("models").exists());
}

#[test]
fn a_recipe_of_a_brought_encoder_is_read_back_and_a_wrong_one_says_what_was_expected() {
    for text in [
        "contriever",
        "hf:intfloat/e5-base-v2+mmr@0.75",
        "path:my%20models/a%2Bb@family=e5",
        "bge-small@query=why%3F%20,passage=+pap@2",
    ] {
        let recipe: Recipe = text.parse().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(recipe.to_string(), text);
    }
    for (text, hint) in [
        ("contreiver", "contriever"),
        ("hf:model", "ORG/MODEL"),
        ("hf:../x", "ORG/MODEL"),
        ("path:", "a folder"),
        ("path:x%zz", "hexadecimal"),
        ("contriever@family=bert", "contriever"),
        ("contriever@window=5", "query=TEXT"),
        ("contriever+rm3", "lane of terms"),
    ] {
        let error = text.parse::<Recipe>().unwrap_err().to_string();
        assert!(error.contains(hint), "{text}: {error}");
    }
}

#[test]
fn the_models_command_lists_checks_and_refuses_to_go_online_when_told_so() {
    let data = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| {
        let told = std::process::Command::new(env!("CARGO_BIN_EXE_parallax"))
            .args(["--data-dir", &data.path().to_string_lossy(), "models"])
            .args(args)
            .env("HF_HUB_OFFLINE", "1")
            .env("HF_TOKEN", "hf_secret")
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        (told.status.code(), text(&told.stdout), text(&told.stderr))
    };
    let (code, out, _) = run(&["list"]);
    assert_eq!(code, Some(0));
    assert!(out.contains("minilm\tcarried") && out.contains("\ncontriever\ton the hub\t440"), "{out}");
    let (code, out, err) = run(&["check", "minilm"]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert!(out.contains("384 numbers, compared by cosine") && !out.contains("FAILED"), "{out}");
    let folder = parallax::pipeline::recipe::escaped(&fixture("roberta").to_string_lossy());
    let (_, out, _) = run(&["check", &format!("path:{folder}")]);
    assert!(out.contains("reads the first token of at most 24 tokens; before questions `query: `"), "{out}");
    for (args, words) in [
        (["check", "contriever"], "parallax models get contriever"),
        (["check", "bm25"], "no encoder"),
        (["get", "contriever"], "HF_HUB_OFFLINE is set"),
        (["get", "minilm"], "is there already"),
        (["get", "hf:nobody"], "ORG/MODEL"),
    ] {
        let (code, out, err) = run(&args);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{err}");
        assert!(err.contains(words) && !err.contains("hf_secret") && !err.contains("panicked"), "{err}");
    }
}
