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
