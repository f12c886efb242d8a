//! Invalid models.

use super::*;

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
        ("1_Pooling/config.json", "pooling_mode", json!("weightedmean"), &["weightedmean", "mean"]),
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
                // A vocabulary cut at the end of a line is still valid.
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
    refused(Path::new("no/such/folder"), "", &["it holds no model", "config.json"]);
}

#[test]
fn weights_with_nan_are_refused() {
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
fn the_error_for_an_unfetched_model_says_how_to_fetch_it() {
    let models = tempfile::tempdir().unwrap();
    for name in ["contriever", "hf:some-one/some.model"] {
        let named = Named::from(Source::parse(name).unwrap());
        let error = named.towers(models.path()).unwrap_err().to_string();
        assert!(error.contains(&format!("parallax models get {name}")), "{error}");
    }
}

#[test]
fn a_lane_without_its_model_reports_it_and_fetches_nothing() {
    let data = tempfile::tempdir().unwrap();
    let setup = opened(data.path(), &[]);
    let question = Question { text: "zoos".into(), ..Question::default() };
    let lane: Recipe = "contriever".parse().unwrap();
    let error = rank(&setup, &lane, LaneQuery::neutral(&question), &mut Lists::default(), &Stop::never())
        .unwrap_err();
    assert!(error.to_string().contains("parallax models get contriever"), "{error}");
    assert!(!data.path().join("models").exists());
}

#[test]
fn a_recipe_of_a_custom_encoder_is_read_back_and_a_wrong_one_is_refused_with_what_was_expected() {
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
        ("contriever+rm3", "an encoder cannot read weights"),
    ] {
        let error = text.parse::<Recipe>().unwrap_err().to_string();
        assert!(error.contains(hint), "{text}: {error}");
    }
}
