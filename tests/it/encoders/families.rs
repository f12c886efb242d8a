//! Every family gives the same vectors as Python.

use super::*;

#[test]
fn contriever_pools_by_mean_and_compares_by_dot_product() {
    let encoder = agrees("contriever", "@family=contriever", "passage", Role::Passage);
    assert_eq!(encoder.similarity(), Similarity::Dot);
}

#[test]
fn dpr_reads_questions_and_titled_passages_with_two_pickled_towers() {
    // Its own configuration names the family.
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
fn roberta_with_its_own_prompts_and_byte_pairs() {
    agrees("roberta", "", "query", Role::Query);
    agrees("roberta", "", "passage", Role::Passage);
}

#[test]
fn mpnet_with_distances_beyond_the_last_bucket() {
    agrees("mpnet", "", "passage", Role::Passage);
}

#[test]
fn distilbert_in_two_f16_files_with_max_pooling() {
    let encoder = agrees("distilbert", "", "passage", Role::Passage);
    assert_eq!(encoder.similarity(), Similarity::Dot);
}

/// Compares all 100 vectors of a fixture of `tools/encoders/make_modern.py`: the greatest difference of a number is at most 1e-4.
fn equals(name: &str) -> CustomEncoder {
    let folder = modern(name);
    let encoder = load(&folder, "").unwrap_or_else(|error| panic!("{error}"));
    let rows: Vec<Value> = serde_json::from_slice(&fs::read(folder.join("expected.json")).unwrap()).unwrap();
    assert_eq!(rows.len(), 100);
    let mut greatest = 0.0_f64;
    for row in &rows {
        let role = if row["role"] == "query" { Role::Query } else { Role::Passage };
        let made = encoder.encode(row["text"].as_str().unwrap(), role).unwrap();
        let expected = row["vector"].as_array().unwrap();
        assert_eq!(made.len(), expected.len());
        for (made, expected) in made.iter().zip(expected) {
            greatest = greatest.max((f64::from(*made) - expected.as_f64().unwrap()).abs());
        }
    }
    println!("{name}: greatest difference {greatest:.1e}");
    assert!(greatest <= 1e-4, "{name}: {greatest}");
    encoder
}

#[test]
fn modernbert_sees_far_and_near_and_normalises_before_each_part() {
    equals("gte-modernbert");
}

#[test]
fn nomicbert_turns_positions_and_reads_the_configuration_of_the_hub() {
    equals("nomic");
}

#[test]
fn gte_turns_positions_with_query_key_and_value_in_one_tensor() {
    equals("arctic");
}

#[test]
fn xlm_roberta_pools_by_the_first_token_or_by_mean() {
    equals("bge-m3");
    equals("e5-multilingual");
}

#[test]
fn qwen3_reads_its_instruction_and_pools_by_the_last_token() {
    let encoder = equals("qwen3");
    assert!(encoder.card().to_string().contains("the last token"), "{}", encoder.card());
}

#[test]
fn gemma3_sees_both_ways_and_has_two_products_after_pooling() {
    equals("gemma3");
}

#[test]
fn a_shortened_vector_is_the_beginning_of_the_whole_one_scaled_to_unit_length() {
    let folder = modern("gte-modernbert");
    let (whole, short) = (load(&folder, "").unwrap(), load(&folder, "@dim=8").unwrap());
    assert_eq!(short.dimensions(), 8);
    assert_ne!(whole.key(), short.key());
    let (long, made) =
        (whole.encode("zoos", Role::Query).unwrap(), short.encode("zoos", Role::Query).unwrap());
    let length = long[..8].iter().map(|x| x * x).sum::<f32>().sqrt();
    assert!(made.iter().zip(&long).all(|(made, own)| (made - own / length).abs() < 1e-6));
    // Nomic's are centred first.
    let nomic = modern("nomic");
    let short = load(&nomic, "@family=nomic,dim=8").unwrap().encode("zoos", Role::Query).unwrap();
    let whole = load(&nomic, "@family=nomic").unwrap().encode("zoos", Role::Query).unwrap();
    let mean = whole.iter().sum::<f32>() / whole.len() as f32;
    let centred: Vec<f32> = whole[..8].iter().map(|x| x - mean).collect();
    let length = centred.iter().map(|x| x * x).sum::<f32>().sqrt();
    assert!(short.iter().zip(&centred).all(|(made, own)| (made - own / length).abs() < 1e-5));
    refused(&folder, "@dim=33", &["dim=33", "32"]);
}

#[test]
fn a_configuration_that_lies_about_rotary_networks_is_refused() {
    for (name, key, value, words) in [
        ("gte-modernbert", "hidden_size", json!(64), &["1_Pooling", "32", "64"][..]),
        ("gte-modernbert", "intermediate_size", json!(40), &["mlp.Wi", "80", "96"]),
        ("gte-modernbert", "num_hidden_layers", json!(4), &["layers.3.", "missing"]),
        ("gte-modernbert", "vocab_size", json!(200), &["tok_embeddings", "200"]),
        ("gte-modernbert", "rope_scaling", json!({"factor": 2}), &["rope_scaling", "not supported"]),
        ("gte-modernbert", "layer_types", json!(["full_attention"]), &["layer_types", "layer 1"]),
        ("qwen3", "num_key_value_heads", json!(3), &["4 heads", "3 heads"]),
        ("gemma3", "use_bidirectional_attention", json!(false), &["embeddinggemma"]),
    ] {
        let folder = copy_of(&modern(name));
        change(&folder.path().join("config.json"), key, value);
        refused(folder.path(), "", words);
    }
    // A vocabulary that is not the tokenizer's.
    let folder = copy_of(&modern("arctic"));
    fs::copy(modern("gte-modernbert").join("tokenizer.json"), folder.path().join("tokenizer.json")).unwrap();
    refused(folder.path(), "", &["tokenizer.json", "340 tokens", "two different models"]);
}

#[test]
fn ance_has_a_layer_norm_after_its_products_and_a_short_name() {
    for name in ["ance", "simcse-large"] {
        assert!(
            matches!(format!("{name}+mmr@.5").parse::<Recipe>().unwrap().base, Base::Custom(_)),
            "{name}"
        );
    }
    let plain = load(&fixture("distilbert"), "").unwrap();
    let folder = copy("distilbert");
    let file = folder.path().join("modules.json");
    let mut modules: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    let module = json!({"idx": 2, "name": "2", "path": "2_LayerNorm", "type": "sentence_transformers.models.LayerNorm"});
    modules.as_array_mut().unwrap().push(module);
    fs::write(&file, modules.to_string()).unwrap();
    // Weights of 2 and biases of .5.
    let width = plain.dimensions();
    let bytes = |x: f32| std::iter::repeat_n(x.to_le_bytes(), width).flatten().collect::<Vec<u8>>();
    let tensor = |at: usize| json!({"dtype": "F32", "shape": [width], "data_offsets": [at * 4 * width, (at + 1) * 4 * width]});
    let header = json!({"norm.weight": tensor(0), "norm.bias": tensor(1)}).to_string();
    let place = folder.path().join("2_LayerNorm");
    fs::create_dir(&place).unwrap();
    let whole =
        [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &bytes(2.0), &bytes(0.5)].concat();
    fs::write(place.join("model.safetensors"), whole).unwrap();
    let normed = load(folder.path(), "").unwrap();
    assert_ne!(plain.key(), normed.key());
    let [own, made] =
        [&plain, &normed].map(|encoder| encoder.encode("wolves and bears", Role::Query).unwrap());
    let n = width as f32;
    let mean = own.iter().sum::<f32>() / n;
    let deviation = (own.iter().map(|x| (x - mean).powi(2)).sum::<f32>() / n + 1e-5).sqrt();
    for (x, made) in own.iter().zip(&made) {
        assert!((2.0 * (x - mean) / deviation + 0.5 - made).abs() < 1e-3, "{x} {made}");
    }
}

#[test]
fn instructor_excludes_its_instruction_from_the_mean_and_projects() {
    for name in ["instructor", "instructor-gated"] {
        agrees(name, "", "query", Role::Query);
        agrees(name, "", "passage", Role::Passage);
    }
}

#[test]
fn a_vector_does_not_depend_on_concurrent_work() {
    let encoder = load(&fixture("mpnet"), "").unwrap();
    let texts: Vec<String> = (0..24).map(|i| "the old zoo keeps wolves ".repeat(i)).collect();
    let alone: Vec<Vec<f32>> =
        texts.iter().map(|text| encoder.encode(text, Role::Passage).unwrap()).collect();
    let pool = parallax::engine::model_threads().unwrap();
    let beside = parallax::work::on_all(&pool, texts.len(), &parallax::work::Stop::never(), |i| {
        encoder.encode(&texts[i], Role::Passage).unwrap()
    });
    assert_eq!(alone, beside);
}

#[test]
fn a_prefix_in_the_recipe_replaces_the_models_and_gives_other_vectors() {
    let own = load(&fixture("roberta"), "").unwrap();
    let given = load(&fixture("roberta"), "@query=zoo:%20").unwrap();
    assert_ne!(own.key(), given.key());
    let [a, b] = [&own, &given].map(|encoder| encoder.encode("wolves", Role::Query).unwrap());
    assert_ne!(a, b);
    let [a, b] = [&own, &given].map(|encoder| encoder.encode("wolves", Role::Passage).unwrap());
    assert_eq!(a, b);
}

#[test]
fn an_instruction_is_made_of_each_querys_perspective_and_its_root_stands_behind_it() {
    let data = tempfile::tempdir().unwrap();
    let path = parallax::engine::recipe::escaped(&fixture("instructor").to_string_lossy());
    let lane = |query: &str| -> Recipe { format!("path:{path}@query={query}").parse().unwrap() };
    let instruction = "Represent%20the%20text%20for%20retrieving%20a%20claim%20against%20zoos:%20";
    let lanes = [lane("perspective"), lane(instruction), format!("path:{path}").parse().unwrap()];
    assert_eq!(lanes[0].to_string().parse(), Ok(lanes[0].clone()));
    let setup = opened(data.path(), &lanes);
    let full = Question {
        text: "Find a claim against zoos: wolves in cages".into(),
        perspectives: vec!["a claim against zoos".into()],
        root: Some("wolves in cages".into()),
        ..Question::default()
    };
    let root = Question { text: "wolves in cages".into(), ..Question::default() };
    let ranked = |lane: &Recipe, question: &Question| {
        let asked = LaneQuery::neutral(question);
        rank(&setup, lane, asked, &mut Lists::default(), &Stop::never()).unwrap()
    };
    let scores = |lane: &Recipe, question: &Question| {
        ranked(lane, question).iter().map(|one| (one.at, one.score)).collect::<Vec<_>>()
    };
    assert_eq!(scores(&lanes[0], &full), scores(&lanes[1], &root));
    assert_ne!(scores(&lanes[0], &full), scores(&lanes[2], &full));
    // A query without a perspective of its own stands behind the model's prefix, and the trace says so.
    assert_eq!(scores(&lanes[0], &root), scores(&lanes[2], &root));
    let notes = |question: &Question| ranked(&lanes[0], question).trace.notes.join(" ");
    assert!(notes(&root).contains("no perspective beside itself") && notes(&full).is_empty());
}

#[test]
fn lanes_of_custom_encoders_rank_by_their_own_vectors_and_similarity() {
    let data = tempfile::tempdir().unwrap();
    let path = |name: &str| parallax::engine::recipe::escaped(&fixture(name).to_string_lossy());
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
    let asked = LaneQuery::neutral(&question);
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
        // Projections compare directions, so scores stay within -1 and 1 whatever the lengths.
        let projected = ranked(&format!("{recipe}+pap@2").parse().unwrap());
        assert!(projected.iter().all(|hit| hit.score.abs() <= 1.001), "{recipe}");
        let varied = ranked(&format!("{recipe}+mmr@.5").parse().unwrap());
        let note = &varied.trace.notes[0];
        assert!(note.contains(&recipe.base.name()), "{note}");
        let why = explain(&setup, &list, &question.text, list[0].at).unwrap();
        assert!(
            matches!(&why[0], Explanation::Vectors { plain, .. } if (plain - list[0].score).abs() < 1e-2 * plain.abs())
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

#[test]
fn mmr_compares_by_uae_large_where_it_is_fetched_and_embedded_and_says_so_where_it_is_not() {
    let data = tempfile::tempdir().unwrap();
    let fetched = data.path().join("models/WhereIsAI--UAE-Large-V1");
    fs::create_dir_all(fetched.parent().unwrap()).unwrap();
    let lane = |text: &str| text.parse::<Recipe>().unwrap();
    let setup = opened(data.path(), &[lane("bm25+mmr@.5")]);
    let question = Question { text: "wolves and bears".into(), ..Question::default() };
    let notes = |setup: &Setup, recipe: &str| {
        let asked = LaneQuery::neutral(&question);
        let list = rank(setup, &lane(recipe), asked, &mut Lists::default(), &Stop::never()).unwrap();
        list.trace.notes.join("\n")
    };
    assert_eq!(notes(&setup, "bm25+mmr@.5"), "MMR compares passages by MiniLM");
    // A tiny model in the place of the large one.
    fs::rename(copy("contriever").keep(), &fetched).unwrap();
    fs::write(fetched.join("manifest.json"), "{}").unwrap();
    let setup = opened(data.path(), &[]);
    let said = notes(&setup, "bm25+mmr@.5");
    assert!(said.contains("by MiniLM") && said.contains("+mmr@0.5,sim=uae-large makes them"), "{said}");
    setup.embed_for(&[lane("bm25+mmr@.5,sim=uae-large")], &|_| {}, &Stop::never()).unwrap();
    for (recipe, by) in [
        ("bm25+mmr@.5", "uae-large"),
        ("bm25+mmr@.5,sim=uae-large", "uae-large"),
        ("minilm+mmr@.5", "uae-large"),
        ("bm25+mmr@.5,sim=minilm", "MiniLM"),
    ] {
        assert_eq!(notes(&setup, recipe), format!("MMR compares passages by {by}"), "{recipe}");
    }
}

#[test]
fn the_models_command_lists_checks_and_stays_offline_if_required() {
    let data = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_parallax"))
            .args(["--data-dir", &data.path().to_string_lossy(), "models"])
            .args(args)
            .env("HF_HUB_OFFLINE", "1")
            .env("HF_TOKEN", "hf_secret")
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (code, out, _) = run(&["list"]);
    assert_eq!(code, Some(0));
    assert!(out.contains("minilm\tcarried") && out.contains("\ncontriever\ton the hub\t440"), "{out}");
    let (code, out, err) = run(&["check", "minilm"]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert!(out.contains("384 numbers, compared by cosine") && !out.contains("FAILED"), "{out}");
    let folder = parallax::engine::recipe::escaped(&fixture("roberta").to_string_lossy());
    let (_, out, _) = run(&["check", &format!("path:{folder}")]);
    assert!(out.contains("reads the first token of at most 24 tokens; before questions `query: `"), "{out}");
    for (args, words) in [
        (["check", "contriever"], "parallax models get contriever"),
        (["check", "bm25"], "not an encoder"),
        (["get", "contriever"], "HF_HUB_OFFLINE is set"),
        (["get", "minilm"], "is there already"),
        (["get", "hf:nobody"], "ORG/MODEL"),
    ] {
        let (code, out, err) = run(&args);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{err}");
        assert!(err.contains(words) && !err.contains("hf_secret") && !err.contains("panicked"), "{err}");
    }
}

/// The re-ranker in a folder.
fn scorer(folder: &Path) -> Result<CrossScorer, String> {
    let source = Source::Folder(folder.to_string_lossy().into_owned());
    CrossScorer::load(&source, Path::new("nowhere")).map_err(|error| error.to_string())
}

#[test]
fn cross_encoders_of_three_families_give_the_scores_of_sentence_transformers() {
    for name in ["ms-marco-minilm", "bge-reranker", "gte-reranker"] {
        let model = scorer(&modern(name)).unwrap_or_else(|error| panic!("{error}"));
        let rows: Vec<Value> =
            serde_json::from_slice(&fs::read(modern(name).join("expected.json")).unwrap()).unwrap();
        assert_eq!(rows.len(), 50);
        let (mut greatest, mut beyond) = (0.0_f64, 0);
        for row in &rows {
            let passage = Passage { text: row["second"].as_str().unwrap().into(), ..Passage::default() };
            let score = model.with_query(row["first"].as_str().unwrap()).unwrap()(&passage).unwrap();
            let difference = (f64::from(score) - row["logits"][0].as_f64().unwrap()).abs();
            if difference <= 1e-4 {
                greatest = greatest.max(difference);
            } else {
                beyond += 1;
            }
        }
        println!("{name}: greatest difference {greatest:.1e}, {beyond} beyond 1e-4");
        // One pair of two texts that are both longer than the window differs; probably it is cut at another token.
        assert!(beyond <= usize::from(name == "gte-reranker"), "{name}: {beyond}");
    }
}

#[test]
fn late_interaction_gives_the_vectors_and_the_scores_of_pylate() {
    for name in ["colbertv2", "moderncolbert"] {
        let source = Source::Folder(modern(name).to_string_lossy().into_owned());
        let model = LateScorer::load(&source, Path::new("nowhere")).unwrap_or_else(|error| panic!("{error}"));
        let rows: Vec<Value> =
            serde_json::from_slice(&fs::read(modern(name).join("expected.json")).unwrap()).unwrap();
        assert_eq!(rows.len(), 50);
        let (mut greatest, mut of_scores) = (0.0_f64, 0.0_f64);
        for row in &rows {
            let (query, text) = (row["first"].as_str().unwrap(), row["second"].as_str().unwrap());
            let passage = Passage { text: text.into(), ..Passage::default() };
            let made = model.vectors(text, Role::Passage).unwrap();
            assert_eq!(made.len() as u64, row["tokens"].as_u64().unwrap(), "{name}: {text}");
            let filled = model.vectors(text, Role::Query).unwrap();
            assert_eq!(filled.len(), 16);
            let some = made.iter().take(3).chain(&filled[14..]);
            for (made, expected) in some.zip(row["some"].as_array().unwrap().iter()) {
                for (made, expected) in made.iter().zip(expected.as_array().unwrap()) {
                    greatest = greatest.max((f64::from(*made) - expected.as_f64().unwrap()).abs());
                }
            }
            let score = model.with_query(query).unwrap()(&passage).unwrap();
            let met = model.met(query, &passage).unwrap();
            assert_eq!(met.iter().map(|met| met.similarity).sum::<f32>(), score, "{name}: {query}");
            assert!(met.iter().all(|met| query.contains(&met.query) && text.contains(&met.passage)));
            of_scores = of_scores.max((f64::from(score) - row["score"].as_f64().unwrap()).abs());
        }
        println!("{name}: greatest difference {greatest:.1e} of a number, {of_scores:.1e} of a score");
        assert!(greatest <= 1e-4 && of_scores <= 1e-4, "{name}: {greatest} {of_scores}");
    }
}

#[test]
fn the_multi_vectors_of_bge_m3_give_the_scores_of_its_authors_class() {
    let folder = modern("bge-m3");
    let source = Source::Folder(folder.to_string_lossy().into_owned());
    let model = LateScorer::load(&source, Path::new("nowhere")).unwrap_or_else(|error| panic!("{error}"));
    let rows: Vec<Value> = serde_json::from_slice(&fs::read(folder.join("multi.json")).unwrap()).unwrap();
    assert_eq!(rows.len(), 50);
    let mut greatest = 0.0_f64;
    for row in &rows {
        let text = row["second"].as_str().unwrap();
        assert_eq!(model.vectors(text, Role::Passage).unwrap().len() as u64, row["tokens"].as_u64().unwrap());
        let passage = Passage { text: text.into(), ..Passage::default() };
        let score = model.with_query(row["first"].as_str().unwrap()).unwrap()(&passage).unwrap();
        let met = model.met(row["first"].as_str().unwrap(), &passage).unwrap();
        assert!((met.iter().map(|met| met.similarity).sum::<f32>() - score).abs() < 1e-5);
        greatest = greatest.max((f64::from(score) - row["score"].as_f64().unwrap()).abs());
    }
    println!("bge-m3-multi: greatest difference {greatest:.1e}");
    assert!(greatest <= 1e-4, "{greatest}");
}

#[test]
fn settings_of_late_interaction_that_lie_are_refused() {
    let load = |folder: &Path| {
        let source = Source::Folder(folder.to_string_lossy().into_owned());
        LateScorer::load(&source, Path::new("nowhere")).err().unwrap().to_string()
    };
    for (file, key, value, words) in [
        ("config_sentence_transformers.json", "query_prefix", json!("[X] "), &["[X] ", "tokenizer"][..]),
        ("config_sentence_transformers.json", "document_length", json!(900), &["900", "64"]),
        ("1_Dense/config.json", "use_residual", json!(true), &["use_residual"]),
        ("config.json", "hidden_size", json!(16), &["tok_embeddings"]),
    ] {
        let folder = copy_of(&modern("moderncolbert"));
        change(&folder.path().join(file), key, value);
        let error = load(folder.path());
        assert!(words.iter().all(|word| error.contains(word)), "{words:?}: {error}");
    }
    let error = load(&modern("gte-modernbert"));
    assert!(error.contains("linear.weight"), "{error}");
}

#[test]
fn a_lane_is_reranked_by_a_models_scores_deeper_than_it_is_shown_and_remembers_them() {
    let data = tempfile::tempdir().unwrap();
    let setup = opened(data.path(), &[]);
    let folder = copy_of(&modern("gte-reranker"));
    let recipe = |options: &str| -> Recipe {
        let place = parallax::engine::recipe::escaped(&format!("path:{}", folder.path().display()));
        format!("bm25+rerank@{place}{options}").parse().unwrap_or_else(|error| panic!("{error}"))
    };
    let question = Question { text: "wolves and bears in zoos".into(), ..Question::default() };
    let ranked = |recipe: &Recipe, depth: usize| {
        rank(&setup, recipe, LaneQuery::neutral(&question), &mut Lists::to_depth(depth), &Stop::never())
    };
    let plain = ranked(&"bm25".parse().unwrap(), 100).unwrap();
    assert!(plain.len() >= 3);
    let model = scorer(folder.path()).unwrap();
    let score = model.with_query(&question.text).unwrap();
    let mut expected: Vec<_> = plain.iter().map(|hit| (hit.at, score(&hit.passage).unwrap())).collect();
    expected.sort_by(|a, b| b.1.total_cmp(&a.1));
    let list = ranked(&recipe(""), 100).unwrap();
    assert!(list.iter().map(|hit| hit.at).eq(expected.iter().map(|(at, _)| *at)));
    assert!(list.trace.notes[0].contains("re-ranked by path:"), "{:?}", list.trace.notes);
    let why = explain(&setup, &list, &question.text, list[0].at).unwrap();
    let Some(Explanation::Scored { score, was, .. }) = why.last() else { panic!("{why:?}") };
    assert_eq!((*score, was.1), (expected[0].1, plain.len()));
    // Two are scored, the others keep their places.
    let two = ranked(&recipe(",depth=2"), 100).unwrap();
    assert!(two.iter().skip(2).map(|hit| hit.at).eq(plain.iter().skip(2).map(|hit| hit.at)));
    // A list of two is chosen from all that were scored.
    let deep = ranked(&recipe(",depth=1000"), 2).unwrap();
    assert!(deep.iter().map(|hit| hit.at).eq(expected.iter().take(2).map(|(at, _)| *at)));
    // Scores are kept by model, passage and query: nothing is scored twice.
    let kept = || -> i64 {
        let cache = rusqlite::Connection::open(data.path().join("verdicts.sqlite")).unwrap();
        cache.query_row("SELECT count(*) FROM verified", [], |row| row.get(0)).unwrap()
    };
    assert_eq!(kept(), plain.len() as i64);
    assert_eq!(ranked(&recipe(""), 100).unwrap().trace, list.trace);
    assert_eq!(kept(), plain.len() as i64);
    // A stop gives no list.
    let stop = Stop::new();
    stop.set();
    let stopped =
        rank(&setup, &recipe(",depth=3"), LaneQuery::neutral(&question), &mut Lists::default(), &stop);
    assert!(stopped.unwrap_err().is_stop());
}

#[test]
fn a_wrong_reranker_is_refused_with_what_was_expected() {
    let error = scorer(&modern("modernbert-nli")).err().unwrap();
    assert!(error.contains("3 classes") && error.contains("--detector"), "{error}");
    let error = scorer(&modern("gte-modernbert")).err().unwrap();
    assert!(error.contains("head.dense") && error.contains("not a classifier"), "{error}");
    for (text, hint) in [
        ("bm25+rerank", "ms-marco-minilm"),
        ("bm25+rerank@minilm-l6", "gte-reranker-modernbert"),
        ("bm25+rerank@ms-marco-minilm,depth=5000", "from 2 to 1000"),
        ("bm25+rerank@ms-marco-minilm,top=5", "found `top=5`"),
        ("bm25+mmr+rerank@ms-marco-minilm", "one of mmr"),
    ] {
        let error = text.parse::<Recipe>().unwrap_err().to_string();
        assert!(error.contains(hint), "{text}: {error}");
    }
    let recipe: Recipe = "minilm+rerank@BGE-reranker-v2-m3,depth=50".parse().unwrap();
    assert_eq!(recipe.to_string(), "minilm+rerank@bge-reranker-v2-m3,depth=50");
    assert_eq!(recipe.title(), "MiniLM +bge-reranker-v2-m3 50");
    let data = tempfile::tempdir().unwrap();
    let setup = opened(data.path(), &[]);
    let question = Question { text: "zoos".into(), ..Question::default() };
    let error = rank(
        &setup,
        &"bm25+rerank@ms-marco-minilm".parse().unwrap(),
        LaneQuery::neutral(&question),
        &mut Lists::default(),
        &Stop::never(),
    )
    .unwrap_err();
    assert!(error.to_string().contains("parallax models get ms-marco-minilm"), "{error}");
}

/// A learned sparse model of a folder, with options as the recipe writes them.
fn sparse_model(folder: &Path, options: &str) -> Result<SparseEncoder, String> {
    let place = parallax::engine::recipe::escaped(&folder.to_string_lossy());
    let recipe: Recipe = format!("path:{place}{options}").parse().unwrap_or_else(|error| panic!("{error}"));
    let named = recipe.indexed().expect("a learned sparse lane");
    SparseEncoder::load(named, folder).map_err(|error| error.to_string())
}

#[test]
fn learned_sparse_models_of_three_families_give_the_weights_of_the_masked_language_model_classes() {
    for (name, options, rows) in [
        ("splade", "@family=splade", 50),
        ("splade-modern", "@family=splade", 50),
        // Its passages' logarithm is taken twice, and its queries take their weights from a table.
        ("os-sparse-doc", "@family=os-doc", 100),
    ] {
        let model = sparse_model(&modern(name), options).unwrap_or_else(|error| panic!("{error}"));
        let expected: Vec<Value> =
            serde_json::from_slice(&fs::read(modern(name).join("expected.json")).unwrap()).unwrap();
        assert_eq!(expected.len(), rows);
        let (mut greatest, mut nonzero) = (0.0_f64, 0);
        for row in &expected {
            let role = if row["role"] == "query" { Role::Query } else { Role::Passage };
            let mut made = vec![0.0; model.terms()];
            for (term, weight) in model.encode(row["text"].as_str().unwrap(), role).unwrap() {
                made[term as usize] = f64::from(weight);
            }
            for pair in row["terms"].as_array().unwrap() {
                made[pair[0].as_u64().unwrap() as usize] -= pair[1].as_f64().unwrap();
                nonzero += 1;
            }
            greatest = made.into_iter().map(f64::abs).fold(greatest, f64::max);
        }
        println!("{name}: greatest difference {greatest:.1e} of {nonzero} weights");
        assert!(greatest <= 1e-4 && nonzero > 300, "{name}: {greatest}, {nonzero}");
    }
    // The table of the module serves as well as idf.json.
    let folder = copy_of(&modern("os-sparse-doc"));
    fs::remove_file(folder.path().join("idf.json")).unwrap();
    let [own, other] = [&modern("os-sparse-doc"), folder.path()].map(|folder| {
        sparse_model(folder, "@family=splade").unwrap().encode("old zoos", Role::Query).unwrap()
    });
    assert!(own.len() == other.len() && !own.is_empty());
    assert!(own.iter().zip(&other).all(|(a, b)| a.0 == b.0 && (a.1 - b.1).abs() < 1e-6));
}

#[test]
fn a_learned_sparse_model_whose_files_lie_is_refused() {
    let refused = |folder: &Path, options: &str, words: &[&str]| {
        let error = sparse_model(folder, options).err().unwrap_or_else(|| panic!("{words:?} was taken"));
        assert!(words.iter().all(|word| error.contains(word)), "{words:?}: {error}");
    };
    let pooling = "document_1_SpladePooling/config.json";
    for (file, key, value, words) in [
        ("idf.json", "zyzzyva", json!(2.0), &["idf.json", "zyzzyva", "two different models"][..]),
        ("idf.json", "zoo", json!("much"), &["a number", "zoo"]),
        ("idf.json", "zoo", json!(-1.5), &["zoo", "-1.5", "0 or more"]),
        (pooling, "pooling_strategy", json!("sum"), &["pooling_strategy", "sum"]),
        (pooling, "activation_function", json!("gelu"), &["activation_function", "gelu"]),
        (pooling, "activation_function", json!(3), &["activation_function", "a word"]),
        ("config.json", "vocab_size", json!(90), &["word_embeddings", "90"]),
        ("config.json", "model_type", json!("mpnet"), &["mpnet", "masked language models"]),
    ] {
        let folder = copy_of(&modern("os-sparse-doc"));
        change(&folder.path().join(file), key, value);
        refused(folder.path(), "@family=os-doc", words);
    }
    // A table of another vocabulary.
    let folder = copy_of(&modern("os-sparse-doc"));
    fs::remove_file(folder.path().join("idf.json")).unwrap();
    fs::copy(
        modern("splade").join("model.safetensors"),
        folder.path().join("query_0_SparseStaticEmbedding/model.safetensors"),
    )
    .unwrap();
    refused(folder.path(), "@family=os-doc", &["query_0_SparseStaticEmbedding", "weight", "missing"]);
    refused(&modern("splade"), "@family=os-doc", &["idf.json", "@family=splade"]);
    refused(&modern("gte-modernbert"), "@family=splade", &["head.dense", "masked language model"]);
    for (recipe, words) in [
        ("splade-v3@dim=64", &["splade-v3", "without"][..]),
        ("splade-v3+pap", &["weighs terms", "MiniLM"]),
        ("splade-v3+rm3", &["terms of its own", "BM25"]),
        ("bm25+mmr@.5,sim=splade-v3", &["sim="]),
        ("splade-v4", &["did you mean `splade-v3`"]),
    ] {
        let error = recipe.parse::<Recipe>().unwrap_err().to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{words:?}: {error}");
    }
}

#[test]
fn a_learned_sparse_lane_ranks_by_its_index_and_says_which_terms_met() {
    for (name, family) in [("splade", "splade"), ("os-sparse-doc", "os-doc")] {
        let data = tempfile::tempdir().unwrap();
        let folder = modern(name);
        let place = parallax::engine::recipe::escaped(&folder.to_string_lossy());
        let recipe: Recipe = format!("path:{place}@family={family}").parse().unwrap();
        assert_eq!(recipe.to_string().parse::<Recipe>().unwrap(), recipe);
        let setup = opened(data.path(), std::slice::from_ref(&recipe));
        // Random weights give a passage few terms, so the question has many.
        let text = "Should the old zoo be banned, because it keeps wolves, bears and owls in small cages as they \
                    cannot live there: query passage search document task result title none text of a wild one?";
        let question = Question { text: text.into(), ..Question::default() };
        let ranked = |setup: &Setup, recipe: &Recipe| {
            rank(setup, recipe, LaneQuery::neutral(&question), &mut Lists::default(), &Stop::never())
        };
        let list = ranked(&setup, &recipe).unwrap();
        // Every passage's score from the model's own weights, which the index rounds to 255 steps of the greatest.
        let model = sparse_model(&folder, &format!("@family={family}")).unwrap();
        let query = model.encode(&question.text, Role::Query).unwrap();
        let score = |passage: &Passage| -> f32 {
            let own = model.passage(passage).unwrap();
            let of = |term| own.binary_search_by_key(&term, |(term, _)| *term).map_or(0.0, |at| own[at].1);
            query.iter().map(|(term, weight)| weight * of(*term)).sum()
        };
        assert!(list.len() >= 3, "{list:?}");
        for hit in list.iter() {
            let exact = score(&hit.passage);
            assert!((hit.score - exact).abs() < exact * 0.01 + 0.01, "{name}: {} {exact}", hit.score);
        }
        assert!(list.windows(2).all(|pair| pair[0].score >= pair[1].score));
        let why = explain(&setup, &list, &question.text, list[0].at).unwrap();
        let [Explanation::Sparse(found)] = why.as_slice() else { panic!("{why:?}") };
        assert!((found.score - list[0].score).abs() < 1e-3, "{} {}", found.score, list[0].score);
        assert_eq!(found.query.iter().filter(|one| one.2).count(), found.shares.len());
        assert_eq!(found.passage.iter().filter(|one| one.2).count(), found.shares.len());
        assert_eq!(found.query.len(), query.len());
        // A re-ranker and MMR read such a list as any other.
        setup.embed_for(&["minilm".parse().unwrap()], &|_| {}, &Stop::never()).unwrap();
        let mmr = ranked(&setup, &format!("{recipe}+mmr@.5").parse().unwrap()).unwrap();
        assert_eq!(mmr.len(), list.len());
        drop(setup);
        // A changed byte is noticed, the index is set aside and made again, with the same list.
        let place = fs::read_dir(setup_folder(data.path())).unwrap().map(|entry| entry.unwrap().path());
        let places: Vec<PathBuf> = place.collect();
        let index = places.iter().find(|path| path.extension().is_some_and(|end| end == "impact")).unwrap();
        assert!(!places.iter().any(|path| path.to_string_lossy().contains("impact.part")));
        let mut bytes = fs::read(index).unwrap();
        let last = bytes.len() - 1;
        bytes[last] ^= 0x40;
        fs::write(index, bytes).unwrap();
        let setup = opened(data.path(), std::slice::from_ref(&recipe));
        assert!(setup.damage.iter().any(|note| note.contains("impact")), "{:?}", setup.damage);
        assert_eq!(*ranked(&setup, &recipe).unwrap(), *list);
    }
}

#[test]
fn encoding_by_a_learned_sparse_model_goes_on_after_a_stop_and_keeps_only_what_is_proved() {
    let folder = modern("splade");
    let model = sparse_model(&folder, "@family=splade").unwrap();
    let text: String =
        (0..70).map(|i| format!("{{\"_id\":\"{i}\",\"text\":\"old zoo {i} owls\"}}\n")).collect();
    let corpus = parallax::corpus::Corpus::builtin("t", Box::leak(text.into_boxed_str()).as_bytes());
    let threads = parallax::engine::model_threads().unwrap();
    let data = tempfile::tempdir().unwrap();
    let write = |name: &str, most: u64| {
        let file = data.path().join(name);
        let stop = Stop::new();
        let seen = |progress: parallax::work::Progress| {
            if progress.done >= most {
                stop.set();
            }
        };
        write_weights(&corpus, &model, &file, &threads, &seen, &stop).map(|()| fs::read(&file).unwrap())
    };
    let whole = write("whole", u64::MAX).unwrap();
    assert!(write("part", 20).is_err());
    let part = data.path().join("part");
    // Bytes behind the last proof, as a kill leaves them, and a changed one before it.
    let mut bytes = fs::read(&part).unwrap();
    assert!(!bytes.is_empty() && bytes.len() < whole.len());
    bytes.extend([7; 11]);
    fs::write(&part, &bytes).unwrap();
    assert_eq!(write("part", u64::MAX).unwrap(), whole);
    let mut bytes = fs::read(&part).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&part, &bytes).unwrap();
    assert_eq!(write("part", u64::MAX).unwrap(), whole);
}
