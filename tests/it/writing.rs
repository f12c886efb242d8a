//! Expansion by a language model on a server: every form works, failing servers are survived, and no request is sent twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use parallax::engine::{LaneError, LaneQuery, Lists, Opening, Ranking, Recipe, Setup, rank};
use parallax::expand::{AddedFrom, Form};
use parallax::question::Question;
use parallax::work::Stop;

use crate::server::{Fate, Server};

/// A question that has no recorded replies.
fn question() -> Question {
    Question {
        text: "Should every bear have a pension?".into(),
        perspectives: vec![
            "Every bear should have a pension.".into(),
            "No bear should have a pension.".into(),
        ],
        supports: Some(0),
        ..Question::default()
    }
}

/// The replies of the server's model, which depend on words of the prompts.
fn says(prompt: &str) -> String {
    if prompt.contains("JSON array") && prompt.contains("perspectives") {
        r#"[{"name": "Duty", "text": "Bears have worked in forests all their lives."}, {"name": "Cost", "text": "Zoos cannot pay."}, {"name": "Cost", "text": "zoos cannot pay"}]"#.into()
    } else if prompt.contains("Passages found by a search") {
        let passage = prompt.lines().find(|line| line.starts_with("[1]")).unwrap();
        let sentence = passage.split_once("] ").unwrap().1.split(". ").next().unwrap();
        serde_json::json!([{"passage": 1, "sentences": [sentence, "Bears are owed this, says nobody here."]}])
            .to_string()
    } else {
        "Pensions for bears would be paid by visitors — or by nobody.".into()
    }
}

fn setup(folder: &tempfile::TempDir, server: Option<&Server>) -> Setup {
    let llm = server.map(|server| (server.url.clone(), "bear-7b".to_owned()));
    let opening = Opening { data_dir: folder.path().into(), llm, ..Opening::default() };
    Setup::open(&opening, &|_| (), &Stop::never()).unwrap()
}

fn ranked(setup: &Setup, recipe: &str, stop: &Stop) -> Result<Ranking, LaneError> {
    let (recipe, question): (Recipe, _) = (recipe.parse().unwrap(), question());
    rank(setup, &recipe, LaneQuery::neutral(&question), &mut Lists::default(), stop)
}

#[test]
fn every_expansion_works_with_a_streaming_server_and_is_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(Vec::new(), says);
    let live = setup(&folder, Some(&server));
    let offline = setup(&folder, None);
    assert!(offline.chat.is_some(), "the sample has recorded replies");
    for (kind, form) in [
        ("perspectives", Form::PerspectivesByModel),
        ("keqe", Form::KeqeByModel),
        ("csqe", Form::CsqeByModel),
    ] {
        for base in ["bm25", "minilm"] {
            let list = ranked(&live, &format!("{base}+{kind}"), &Stop::never()).unwrap();
            let expansion = list.trace.expansion().unwrap();
            assert_eq!(expansion.form, form, "{base}+{kind}: {:?}", expansion.notes);
            assert!(!list.is_empty());
        }
    }
    let asked = server.asked.lock().unwrap().len();
    // Perspectives once, five answers, two replies over passages; their two answers are the first of the five.
    assert_eq!(asked, 8, "no prompt is sent twice");
    assert!(server.asked.lock().unwrap().iter().all(|body| body.contains("bear-7b")));

    let again = setup(&folder, None);
    let list = ranked(&again, "bm25+csqe", &Stop::never()).unwrap();
    let expansion = list.trace.expansion().unwrap();
    assert_eq!(expansion.form, Form::CsqeByModel);
    let recorded = |source: &AddedFrom| matches!(source, AddedFrom::Model { recorded: true, model, .. } if model == "bear-7b");
    assert!(expansion.added.iter().all(|added| recorded(&added.source)), "{:?}", expansion.added);
    let missing: Vec<&str> = expansion
        .added
        .iter()
        .flat_map(|added| {
            added.sentences.iter().map(move |(range, found)| (&added.text[range.clone()], found))
        })
        .filter(|(_, found)| found.is_none())
        .map(|(text, _)| text)
        .collect();
    assert!(missing.iter().any(|text| text.contains("says nobody here")), "{missing:?}");
    assert_eq!(server.asked.lock().unwrap().len(), asked);
}

/// Turns the passages of a window round.
fn reversed(prompt: &str) -> String {
    assert!(prompt.contains("Put the numbers of all passages in order"), "{prompt}");
    let count = prompt.lines().filter(|line| line.starts_with('[') && !line.contains(" > ")).count();
    let order: Vec<String> = (1..=count).rev().map(|number| format!("[{number}]")).collect();
    format!("The order is: {}", order.join(" > "))
}

#[test]
fn a_language_model_puts_a_list_in_order_by_windows_from_the_bottom_and_is_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(Vec::new(), reversed);
    let live = setup(&folder, Some(&server));
    let ids = |ranking: &Ranking| ranking.iter().map(|ranked| ranked.passage.id.clone()).collect::<Vec<_>>();
    let plain = ids(&ranked(&live, "bm25", &Stop::never()).unwrap());
    let recipe = "bm25+listwise@top=4,window=2,step=1";
    let list = ranked(&live, recipe, &Stop::never()).unwrap();
    // Windows 3–4, 2–3 and 1–2, each turned round: 1 2 4 3, then 1 4 2 3, then 4 1 2 3.
    let expected: Vec<String> =
        [3, 0, 1, 2].into_iter().chain(4..plain.len()).map(|at| plain[at].clone()).collect();
    assert_eq!(ids(&list), expected);
    assert_eq!((list.trace.cost().replies, list.trace.ordered_by()), (3, Some("bear-7b")));
    assert_eq!(server.asked.lock().unwrap().len(), 3);
    let again = ranked(&setup(&folder, Some(&server)), recipe, &Stop::never()).unwrap();
    assert_eq!(
        (ids(&again), again.trace.cost().recorded),
        (expected, 3),
        "recorded replies are not asked for again"
    );
    assert_eq!(server.asked.lock().unwrap().len(), 3);
    let by_another = ranked(&setup(&folder, None), "bm25+listwise@llm=owl-3b", &Stop::never()).unwrap_err();
    assert!(matches!(by_another, LaneError::NoOrder(_)), "{by_another}");
    assert!(by_another.to_string().contains("owl-3b"), "{by_another}");
}

#[test]
fn a_window_without_an_order_stays_and_the_note_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let first = |prompt: &str| -> String {
        static ASKED: AtomicU64 = AtomicU64::new(0);
        if ASKED.fetch_add(1, Ordering::Relaxed) == 0 { "I cannot say.".into() } else { reversed(prompt) }
    };
    let server = Server::start(Vec::new(), first);
    let live = setup(&folder, Some(&server));
    let plain = ranked(&live, "bm25", &Stop::never()).unwrap();
    let list = ranked(&live, "bm25+listwise@top=4,window=2,step=2", &Stop::never()).unwrap();
    let places: Vec<usize> = list.iter().take(4).map(|ranked| plain.rank_of(ranked.at).unwrap()).collect();
    assert_eq!(places, [2, 1, 3, 4]);
    assert!(
        list.trace.notes.iter().any(|note| note.contains("1 of 2 windows were put in order")),
        "{:?}",
        list.trace.notes
    );
}

#[test]
fn a_server_that_fails_is_asked_again_until_it_answers() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(vec![Fate::TooMany, Fate::Broken, Fate::Cut], says);
    let list = ranked(&setup(&folder, Some(&server)), "bm25+perspectives", &Stop::never()).unwrap();
    let expansion = list.trace.expansion().unwrap();
    assert_eq!(expansion.form, Form::PerspectivesByModel, "{:?}", expansion.notes);
    assert_eq!(expansion.added.len(), 2, "the third repeats the second");
    assert_eq!(server.asked.lock().unwrap().len(), 4);
}

#[test]
fn a_server_that_fails_for_good_leads_to_the_form_without_a_model_and_a_note() {
    let folder = tempfile::tempdir().unwrap();
    let nonsense = Server::start(vec![Fate::Nonsense; 20], says);
    let gone = Server { url: "http://127.0.0.1:1/v1".into(), asked: Arc::default() };
    for server in [nonsense, gone] {
        let setup = setup(&folder, Some(&server));
        for (kind, form) in [
            ("perspectives", Form::Statements),
            ("keqe", Form::KeqeStatements),
            ("csqe", Form::CsqeExtractive),
        ] {
            let list = ranked(&setup, &format!("bm25+{kind}"), &Stop::never()).unwrap();
            assert_eq!(list.trace.expansion().unwrap().form, form);
            assert!(!list.trace.notes.is_empty() && !list.is_empty());
        }
    }
}

#[test]
fn a_passed_turn_ends_the_wait_for_a_silent_server_and_keeps_earlier_replies() {
    let folder = tempfile::tempdir().unwrap();
    // Two requests are answered, the third is not.
    fn one(_: &str) -> String {
        "Bears retire in autumn.".into()
    }
    let first = Server::start(Vec::new(), one);
    ranked(&setup(&folder, Some(&first)), "bm25+perspectives", &Stop::never()).unwrap();
    let server = Server::start(vec![Fate::Silent; 20], one);
    let live = setup(&folder, Some(&server));
    let now = Arc::new(AtomicU64::new(7));
    let stop = Stop::when_past(&now, 7);
    let asked = Arc::clone(&server.asked);
    let watch = thread::spawn(move || {
        while asked.lock().unwrap().is_empty() {
            thread::yield_now();
        }
        now.store(8, Ordering::Relaxed);
    });
    let stopped = ranked(&live, "bm25+keqe", &stop);
    watch.join().unwrap();
    assert!(stopped.is_err_and(|error| error.is_stop()));
    let kept = std::fs::read_to_string(folder.path().join("replies.jsonl")).unwrap();
    assert_eq!(kept.lines().count(), 1, "{kept}");
}

#[cfg(feature = "local-llm")]
#[test]
fn an_expansion_by_a_model_in_a_file_is_counted_and_recorded_under_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let expansion = |llm: Option<(String, String)>| {
        let opening = Opening { data_dir: folder.path().into(), llm, ..Opening::default() };
        let setup = Setup::open(&opening, &|_| (), &Stop::never()).unwrap();
        let statement = "Every bear should have a pension.".to_owned();
        let question =
            Question { perspectives: vec![statement.clone()], text: statement, ..Question::default() };
        let (recipe, mut lists): (Recipe, _) = ("bm25+keqe".parse().unwrap(), Lists::default());
        let list = rank(&setup, &recipe, LaneQuery::neutral(&question), &mut lists, &Stop::never()).unwrap();
        list.trace.expansion().unwrap().clone()
    };
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/llm/qwen3.gguf");
    let written = expansion(Some((format!("gguf:{}", file.display()), String::new())));
    let again = expansion(None);
    assert_eq!(written.form, Form::KeqeByModel, "{:?}", written.notes);
    assert!(written.cost.tokens.is_some_and(|tokens| tokens.prompt > 5 * 100 && tokens.reply > 5));
    for (expansion, old) in [(&written, false), (&again, true)] {
        assert!(expansion.added.iter().all(|added| matches!(&added.source,
            AddedFrom::Model { model, recorded, .. } if model.starts_with("qwen3.gguf ") && *recorded == old)));
    }
    assert!(again.added.iter().map(|added| &added.text).eq(written.added.iter().map(|added| &added.text)));
}

#[test]
fn a_wrong_server_address_is_reported_with_advice() {
    let folder = tempfile::tempdir().unwrap();
    for url in ["", "localhost:11434", "ftp://models/v1"] {
        let opening = Opening {
            data_dir: folder.path().into(),
            llm: Some((url.into(), "bear-7b".into())),
            ..Opening::default()
        };
        let error = Setup::open(&opening, &|_| (), &Stop::never()).err().unwrap().to_string();
        assert!(error.contains("http"), "{url}: {error}");
    }
}

mod prompts {
    //! Prompts: each reaches the model byte for byte, a file can replace a built-in one, and a changed prompt is sent again.

    use std::fs;
    use std::path::Path;
    use std::process::Command;

    use parallax::llm::{Job, PromptId, Prompts};
    use serde_json::Value;

    use crate::server::Server;

    /// The value of every field.
    const VALUES: [(&str, &str); 6] = [
        ("passage", "Zoos\n\nA passage with {statement} and {{braces}} — in “quotes”."),
        ("statement", "Zoos should be banned."),
        ("first", "Zoos should be banned."),
        ("second", "Zoos should not be banned."),
        ("question", "Should zoos be banned?"),
        ("passages", "[1] Zoos Animals suffer.\n[2] Few are freed."),
    ];

    #[test]
    fn every_built_in_prompt_is_rendered_byte_for_byte_as_expected() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/prompts");
        let mut names: Vec<String> = fs::read_dir(&folder)
            .unwrap()
            .map(|file| file.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
            .collect();
        names.sort();
        assert_eq!(names.len(), 16);
        for name in names {
            let prompts = Prompts::with(&[name.as_str().into()]).unwrap();
            let prompt = Job::ALL
                .map(|job| prompts.get(job))
                .into_iter()
                .find(|prompt| prompt.id.name == name)
                .unwrap();
            let (request, PromptId { version, hash, .. }) = (prompt.request(&VALUES, 0), &prompt.id);
            let rendered = format!(
                "{} · version {version} · {hash} · temperature {:?} · {} tokens\n--- system\n{}\n--- user\n{}\n",
                prompt.job.name(),
                request.temperature,
                request.max_tokens,
                request.system,
                request.prompt
            );
            let expected =
                fs::read_to_string(folder.join(format!("{name}.txt"))).unwrap().replace("\r\n", "\n");
            assert!(rendered == expected, "{name} is rendered as:\n{rendered}");
        }
    }

    /// Runs the program.
    fn parallax(data: &Path, args: &[&str]) -> (Option<i32>, String, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_parallax"));
        let done = command.args(args).args(["--data-dir", &data.to_string_lossy()]).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (done.status.code(), text(done.stdout), text(done.stderr))
    }

    fn yes(_: &str) -> String {
        "Ja.".into()
    }

    #[test]
    fn a_prompt_from_a_file_reaches_the_server_byte_for_byte_and_a_changed_one_is_sent_again() {
        let data = tempfile::tempdir().unwrap();
        let (pairs, file) = (data.path().join("pairs.tsv"), data.path().join("mine.toml"));
        fs::write(&pairs, "document\tperspective\nTiere leiden {statement}.\tZoos schaden.\n").unwrap();
        let prompt = |version: u32| {
            format!(
                "for = \"detect\"\nversion = {version}\ntemperature = 0.25\nmax_tokens = 9\nsystem = \"Kurz — ja oder nein\"\n\
                 user = \"\"\"\n<t>{{passage}}</t>\\n<s>{{statement}}</s> {{\"a\": [1]}}  \"\"\"\n\
                 [outcomes]\nyes = [\"ja\"]\nno = [\"nein\"]\n"
            )
        };
        let server = Server::start(Vec::new(), yes);
        let bodies = || server.asked.lock().unwrap().clone();
        let judge = |version| {
            fs::write(&file, prompt(version)).unwrap();
            let args =
                ["detect", "--pairs", &pairs.to_string_lossy(), "--detector", "llm", "--format", "json"];
            let llm = ["--llm", &server.url, "--llm-model", "bear-7b", "--prompt", &file.to_string_lossy()];
            let (code, out, err) = parallax(data.path(), &[&args[..], &llm].concat());
            assert_eq!(code, Some(0), "{err}");
            serde_json::from_str::<Value>(&out).unwrap()
        };
        let first = judge(1);
        assert_eq!(first["pairs"][0]["p"], 1.0, "{first}");
        assert!(first["detector"].as_str().unwrap().starts_with("bear-7b-v1-"), "{first}");
        let sent: Value = serde_json::from_str(&bodies()[0]).unwrap();
        assert_eq!(sent["messages"][0]["content"], "Kurz — ja oder nein");
        assert_eq!(
            sent["messages"][1]["content"],
            "<t>Tiere leiden {statement}.</t>\n<s>Zoos schaden.</s> {\"a\": [1]}  "
        );
        assert_eq!((sent["temperature"].as_f64(), sent["max_tokens"].as_u64()), (Some(0.25), Some(9)));
        judge(1);
        assert_eq!(bodies().len(), 1, "the same prompt is not sent twice");
        let second = judge(2);
        assert_eq!(bodies().len(), 2, "another version is");
        assert_ne!(first["detector"], second["detector"]);
        judge(1);
        assert_eq!(bodies().len(), 2, "and the first verdict is still there");
        // Every line of the journal names the prompt, the model and the server.
        let journals = fs::read_dir(data.path().join("judged")).unwrap().map(|file| file.unwrap().path());
        let lines: Vec<Value> = journals
            .flat_map(|path| fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect::<Vec<_>>())
            .map(|line| serde_json::from_str(&line).unwrap())
            .collect();
        assert_eq!(lines.len(), 2);
        for line in lines {
            let (name, hash) = (line["prompt"]["name"].as_str(), line["prompt"]["hash"].as_str().unwrap());
            assert_eq!((name, hash.len(), line["model"].as_str()), (Some("mine"), 32, Some("bear-7b")));
            assert_eq!(line["server"].as_str(), Some(server.url.as_str()));
        }
    }

    #[test]
    fn recorded_replies_count_for_their_own_prompt_and_model_only() {
        let data = tempfile::tempdir().unwrap();
        let form = |more: &[&str]| {
            let args = ["search", "Should zoos be banned?", "--lane", "bm25+keqe", "--label-source", "gold"];
            let (code, out, err) = parallax(data.path(), &[&args[..], more].concat());
            assert_eq!(code, Some(0), "{err}");
            format!("{out}{err}")
        };
        assert!(form(&[]).contains("recorded replies of claude"));
        assert!(form(&["--llm-model", "claude"]).contains("recorded replies of claude"));
        assert!(!form(&["--llm-model", "owl-1b"]).contains("recorded replies"));
        assert!(!form(&["--prompt", "keqe-one-shot"]).contains("recorded replies"));
        assert!(
            form(&["--prompt", "csqe-one-shot"]).contains("recorded replies"),
            "another job's prompt changes nothing"
        );
    }

    fn opposites(prompt: &str) -> String {
        if prompt.starts_with("Two statements:\nA. Tea is better") {
            assert!(
                prompt.contains("The question: Tea, or rather coffee, and why? The answer: yes"),
                "{prompt}"
            );
            return "A".into();
        }
        assert!(prompt.starts_with("Question: Tea, or rather coffee, and why?"), "{prompt}");
        r#"["Tea is better than coffee.", "Coffee is better than tea."]"#.into()
    }

    #[test]
    fn a_language_model_writes_statements_where_no_rule_applies_and_says_which_supports_and_is_asked_once() {
        let data = tempfile::tempdir().unwrap();
        let server = Server::start(Vec::new(), opposites);
        let args = ["statements", "Should zoos be banned?", "Tea, or rather coffee, and why?"];
        for _ in 0..2 {
            let llm = ["--llm", &server.url, "--llm-model", "bear-7b"];
            let (code, out, err) = parallax(data.path(), &[&args[..], &llm].concat());
            assert_eq!(code, Some(0), "{err}");
            let made: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            assert_eq!((made[0]["by"].as_str(), made[1]["by"].as_str()), (Some("rule"), Some("llm")));
            assert_eq!(made[1]["perspectives"][1], "Coffee is better than tea.");
            assert_eq!(made[1]["supports"], 0);
        }
        assert_eq!(server.asked.lock().unwrap().len(), 2, "the statements, and which of them supports");
        let (_, out, _) = parallax(data.path(), &args);
        assert!(out.lines().nth(1).unwrap().contains("\"by\":\"none\""), "{out}");
    }

    #[test]
    fn a_printed_prompt_is_a_valid_file_and_a_bad_one_is_refused_with_its_line() {
        let data = tempfile::tempdir().unwrap();
        let (code, text, _) = parallax(data.path(), &["prompts", "csqe-one-shot"]);
        assert_eq!(code, Some(0));
        let file = data.path().join("own.toml");
        fs::write(&file, &text).unwrap();
        let own = file.to_string_lossy();
        let (_, list, _) = parallax(data.path(), &["prompts", "--prompt", &own]);
        assert!(
            list.lines().any(|line| line.starts_with("own\tcsqe\t1\t") && line.ends_with("\tyes")),
            "{list}"
        );
        assert!(
            list.lines().any(|line| line.starts_with("csqe\tcsqe\t1\t") && line.ends_with("\tno")),
            "{list}"
        );
        fs::write(&file, text.replace("{passages}", "{pasages}")).unwrap();
        let (code, _, err) = parallax(data.path(), &["prompts", "--prompt", &own]);
        assert!(code == Some(2) && err.contains("own.toml:") && err.contains("no {pasages}"), "{err}");
        let (code, _, err) = parallax(data.path(), &["prompts", "csqe2"]);
        assert!(code == Some(2) && err.contains("choose detect, "), "{err}");
    }
}
