//! Search engines on other machines: a corpus is pushed and searched with the program, against a double of OpenSearch and a real Milvus Lite.

mod double;
#[cfg(feature = "milvus")]
mod milvus;

use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::corpora::kills::killed;
use crate::program::{Workspace, printed};
use double::{Whim, open_search};

const QUESTION: &str = "Should zoos be banned?";

/// Seven different passages.
fn corpus(workspace: &Workspace) -> String {
    let texts = [
        "Zoos should be banned. No cage is kind to an elephant.",
        "Zoos should not be banned: they breed species that would be gone without them.",
        "A train between two cities saves more fuel than a plane.",
        "Homework takes the afternoon from children who have none to spare.",
        "Bears that live in cages walk in circles for hours.",
        "The museum opens at nine; children pay nothing.",
        "A tax on sugar lowers what people drink.",
    ];
    let lines = texts.iter().enumerate();
    let lines = lines.map(|(i, text)| {
        let title = if i % 2 == 0 { format!("Title {i}") } else { String::new() };
        json!({"_id": format!("p\"{i}"), "title": title, "text": text}).to_string() + "\n"
    });
    workspace.write("corpus.jsonl", lines.collect::<String>())
}

/// Ids and scores of a lane's hits.
fn hits(printed: &Value, lane: usize) -> Vec<(String, f64)> {
    let hits = printed["lanes"][lane]["hits"].as_array().unwrap().iter();
    hits.map(|hit| (hit["id"].as_str().unwrap().to_owned(), hit["score"].as_f64().unwrap())).collect()
}

fn ids(printed: &Value, lane: usize) -> Vec<String> {
    hits(printed, lane).into_iter().map(|(id, _)| id).collect()
}

/// Pushes twice, then searches by every kind of lane. The checks hold for both engines.
fn pushed_and_asked(workspace: &Workspace, place: &str) {
    let corpus = corpus(workspace);
    let push = |corpus: &str| workspace.run(&["corpus", "push", place, "--corpus", corpus]).good();
    let first = push(&corpus);
    assert!(first.contains("made ") && first.contains("7 passages new, 0 changed"), "{first}");
    let second = push(&corpus);
    assert!(second.contains("nothing to do: all 7 passages") && !second.contains("made"), "{second}");
    let (vectors, terms) = (format!("{place}@by=vectors"), format!("{place}@by=bm25"));
    let (pap, mmr) = (format!("{vectors}+pap@1"), format!("{vectors}+mmr@.5"));
    let mut lanes = vec!["search", QUESTION, "--corpus", &corpus, "-k", "7"];
    for lane in ["minilm", &vectors, &terms, "minilm+pap@1", &pap, "minilm+mmr@.5", &mmr] {
        lanes.extend(["--lane", lane]);
    }
    let printed = workspace.json(&lanes);
    for (here, there) in [(0, 1), (3, 4), (5, 6)] {
        let (here, there) = (hits(&printed, here), hits(&printed, there));
        assert_eq!(here.len(), 7, "{printed:#}");
        for ((id, score), (other, same)) in here.iter().zip(&there) {
            assert!(id == other && (score - same).abs() < 2e-3, "{here:?}\n{there:?}");
        }
    }
    let by_terms = hits(&printed, 2);
    assert!(by_terms.iter().take(2).all(|(id, _)| id == "p\"0" || id == "p\"1"), "{by_terms:?}");
    assert!(by_terms.windows(2).all(|two| two[0].1 >= two[1].1) && by_terms[0].1 > 0.0, "{by_terms:?}");
    // Passages on the server that the corpus lacks keep their ranks and are reported once.
    let fewer = std::fs::read_to_string(workspace.files.path().join("corpus.jsonl")).unwrap();
    let fewer: String = fewer.lines().skip(1).map(|line| format!("{line}\n")).collect();
    let fewer = workspace.write("fewer.jsonl", fewer);
    let less = workspace.json(&["search", QUESTION, "--corpus", &fewer, "-k", "7", "--lane", &vectors]);
    assert_eq!(ids(&less, 0), ids(&printed, 1));
    let notes = less["lanes"][0]["notes"].to_string();
    assert!(notes.contains("1 passage of this list is not in the corpus"), "{notes}");
    let others = push(&fewer);
    assert!(others.contains("nothing to do: all 6") && others.contains("1 more are there"), "{others}");
}

#[test]
fn a_corpus_is_pushed_to_a_double_of_opensearch_once_and_its_lanes_rank_like_local_ones() {
    pushed_and_asked(&Workspace::new(), &format!("os:{}/args", open_search(|_| Whim::Habit)));
}

#[test]
fn an_unreachable_server_fails_only_its_lane() {
    let workspace = Workspace::new();
    let corpus = corpus(&workspace);
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let place = format!("os:http://{closed}/args");
    let printed =
        workspace.run(&["search", QUESTION, "--corpus", &corpus, "--lane", "bm25", "--lane", &place]);
    assert_eq!(printed.code, Some(2));
    assert!(printed.out.contains("BM25") && printed.out.contains("Title 0"), "{}", printed.out);
    assert!(printed.err.contains("could not be reached"), "{}", printed.err);
    workspace
        .run(&["corpus", "push", &place, "--corpus", &corpus])
        .bad(&["could not be reached", "start the server"]);
    workspace.run(&["corpus", "push", "args", "--corpus", &corpus]).bad(&["os:URL/INDEX"]);
    workspace.run(&["search", QUESTION, "--lane", &format!("{place}+rm3")]).bad(&["rm3"]);
    let projected = format!("{place}@by=vectors+pap-plus@1");
    workspace.run(&["search", QUESTION, "--lane", &projected]).bad(&["cannot project them; try pap"]);
}

#[test]
fn a_killed_push_to_a_double_resumes() {
    let bulks = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&bulks);
    let url = open_search(move |asked| match asked.line.as_str() {
        // The second batch is received but not answered, and the server does not store it.
        "post /args/_bulk" if seen.fetch_add(1, Ordering::SeqCst) == 1 => Whim::Silence,
        _ => Whim::Habit,
    });
    let (workspace, place) = (Workspace::new(), format!("os:{url}/args"));
    // The carried sample has its vectors: 600 passages are three batches.
    let push = ["corpus", "push", &place];
    killed(&workspace, &push, &|| bulks.load(Ordering::SeqCst) == 2);
    let printed = workspace.run(&push).good();
    assert!(printed.contains("344 passages new, 0 changed, 256 unchanged"), "{printed}");
    assert!(workspace.run(&push).good().contains("nothing to do: all 600 passages"));
}

#[test]
fn secrets_come_from_the_environment_and_are_never_printed() {
    let url = open_search(|asked| match asked.head.contains("authorization: apikey a2v5") {
        true => Whim::Habit,
        false => Whim::Say(401, json!({"error": {"reason": "unable to authenticate"}, "status": 401})),
    });
    let (workspace, place) = (Workspace::new(), format!("os:{url}/args"));
    let push = ["corpus", "push", &place, "--corpus", &corpus(&workspace)];
    workspace.run(&push).bad(&["refused with 401: unable to authenticate; set PARALLAX_OPENSEARCH_USER"]);
    let wrong = printed(workspace.command(&push).env("PARALLAX_OPENSEARCH_KEY", "hush"));
    wrong.bad(&["unable to authenticate; check PARALLAX_OPENSEARCH_USER"]);
    assert!(!wrong.err.contains("hush"), "{}", wrong.err);
    printed(workspace.command(&push).env("PARALLAX_OPENSEARCH_USER", "me")).bad(&["set both", "_PASSWORD"]);
    let right = printed(workspace.command(&push).env("PARALLAX_OPENSEARCH_KEY", "a2V5")).good();
    assert!(right.contains("7 passages new"), "{right}");
    // No name is looked up and nothing is sent over a connection that others could read.
    let clear = ["corpus", "push", "os:http://search.invalid:9200/args", "--corpus", "corpus.jsonl"];
    printed(workspace.command(&clear).env("PARALLAX_OPENSEARCH_KEY", "a2V5"))
        .bad(&["PARALLAX_OPENSEARCH_KEY", "https://"]);
    for lane in
        ["os:https://me:hush@search.invalid/args", "os:https://me:hush@search.invalid/args@by=vectors"]
    {
        for option in ["--lane", "--lanes"] {
            let printed = workspace.run(&["search", QUESTION, option, lane]);
            printed.bad(&["os:…", "secrets are read from the environment"]);
            assert!(!printed.err.contains("hush"), "{}", printed.err);
        }
    }
}

#[test]
fn a_batch_that_a_double_refuses_in_part_names_the_refused_passages_and_keeps_the_others() {
    let items = json!([
        {"index": {"status": 201}},
        {"index": {"status": 400, "error": {"type": "mapper_parsing_exception", "reason": "failed to parse"}}},
    ]);
    let two = "{\"_id\": \"a\", \"text\": \"one\"}\n{\"_id\": \"b\", \"text\": \"two\"}\n";
    let url = open_search(move |asked| match asked.line.as_str() {
        "post /args/_bulk" => Whim::Say(200, json!({"errors": true, "items": items})),
        _ => Whim::Habit,
    });
    let workspace = Workspace::new();
    let corpus = workspace.write("two.jsonl", two);
    let printed = workspace.run(&["corpus", "push", &format!("os:{url}/args"), "--corpus", &corpus]);
    printed.bad(&["refused the passage `b` with 400: failed to parse"]);
}

#[test]
fn another_schema_of_a_double_is_refused_by_push_and_lane_with_the_differences() {
    let fields = json!({"text": {"type": "text"}, "vector": {"type": "knn_vector", "dimension": 768}});
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = Arc::clone(&asked);
    let url = open_search(move |asked| {
        seen.lock().unwrap().push(asked.line.clone());
        Whim::Say(200, json!({"args": {"mappings": {"properties": fields}}}))
    });
    let (workspace, place) = (Workspace::new(), format!("os:{url}/args"));
    let corpus = corpus(&workspace);
    workspace.run(&["corpus", "push", &place, "--corpus", &corpus]).bad(&[
        "another schema",
        "`title` is missing, expected text",
        "`hash` is missing, expected keyword",
        "`vector` has 768 numbers, expected 384",
    ]);
    let vectors = format!("{place}@by=vectors");
    let printed =
        workspace.run(&["search", QUESTION, "--corpus", &corpus, "--lane", "bm25", "--lane", &vectors]);
    assert_eq!(printed.code, Some(2));
    assert!(printed.err.contains("`vector` has 768 numbers, expected 384"), "{}", printed.err);
    let asked = asked.lock().unwrap();
    assert!(asked.len() >= 2 && asked.iter().all(|line| line == "get /args/_mapping"), "{asked:?}");
}
