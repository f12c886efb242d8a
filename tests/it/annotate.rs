//! `parallax annotate`, and labels by hand in the other commands.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use parallax::annotate::{Act, Item, Journal, Project, View, text_hash};
use parallax::detect::{By, LabelSource};
use parallax::pipeline::{Depth, Lists, Opening, Plan, Setup, answer};
use parallax::work::Stop;
use serde_json::Value;
use tempfile::TempDir;

use crate::stage::QUESTION;

struct Desk(TempDir);

impl Desk {
    fn new() -> Self {
        Desk(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Exit code, standard output and standard error.
    fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_parallax"));
        for (name, _) in
            std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("PARALLAX"))
        {
            command.env_remove(name);
        }
        let told = command.args(arguments).arg("--data-dir").arg(self.path("data")).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (told.status.code().unwrap(), text(told.stdout), text(told.stderr))
    }

    fn good(&self, arguments: &[&str]) -> String {
        let (code, out, errors) = self.run(arguments);
        assert_eq!(code, 0, "{out}{errors}");
        out
    }

    /// A project on the sample, by one cheap lane.
    fn project(&self) -> PathBuf {
        let folder = self.path("project");
        let out = self.good(&[
            "annotate",
            "new",
            folder.to_str().unwrap(),
            "--lanes",
            "bm25",
            "--depth",
            "3",
            "--annotators",
            "anna,ben",
            "--overlap",
            "0.5",
        ]);
        assert!(out.contains("24 questions, to depth 3 of bm25") && out.contains("judged twice: "), "{out}");
        folder
    }
}

/// The journal gets an answer to every statement of an item.
fn judge(folder: &Path, by: &str, item: &Item, statements: &[String], supports: bool) {
    let answers: BTreeMap<String, bool> = statements.iter().map(|text| (text.clone(), supports)).collect();
    let mut journal = Journal::open(&Project::journal(folder, by), by).unwrap().journal;
    let act = Act {
        question: item.question.clone(),
        passage: item.passage.id.clone(),
        text: text_hash(&item.passage),
        view: View { answers, ..View::default() },
        took: None,
    };
    journal.append(act).unwrap();
}

fn of_question(folder: &Path) -> (Vec<String>, Vec<Item>) {
    let (project, items) = Project::open(folder).unwrap();
    let statements = project.question(QUESTION).unwrap().perspectives.clone();
    (statements, items.into_iter().filter(|item| item.question == QUESTION).collect())
}

#[test]
fn a_project_is_made_judged_carried_merged_and_told() {
    let desk = Desk::new();
    let here = desk.project();
    let (statements, items) = of_question(&here);
    assert_eq!(items.len(), 3);
    judge(&here, "anna", &items[0], &statements, true);
    // The same folder on another machine.
    let there = desk.path("there");
    fs::create_dir(&there).unwrap();
    for file in ["project.json", "pool.jsonl", "guidelines.md", "anna.jsonl"] {
        fs::copy(here.join(file), there.join(file)).unwrap();
    }
    judge(&here, "anna", &items[0], &statements, false);
    judge(&there, "anna", &items[0], &statements[..1], true);
    judge(&there, "ben", &items[1], &statements, true);
    let (one, other) = (here.to_str().unwrap(), there.to_str().unwrap());
    let told = desk.good(&["annotate", "merge", one, other]);
    assert!(told.contains("anna.jsonl: 1 new entry, 3 in all, 1 conflict"), "{told}");
    assert!(told.contains("ben.jsonl: 1 new entry, 1 in all, 0 conflicts"), "{told}");
    assert!(desk.good(&["annotate", "merge", one, other]).contains("anna.jsonl: 0 new entries, 3 in all"));
    // The other way round the same comes out.
    desk.good(&["annotate", "merge", other, one]);
    for name in ["anna.jsonl", "ben.jsonl"] {
        let lines = |folder: &Path| {
            let text = fs::read_to_string(folder.join(name)).unwrap();
            let mut lines: Vec<String> = text.lines().map(ToOwned::to_owned).collect();
            lines.sort();
            lines
        };
        assert_eq!(lines(&here), lines(&there));
    }
    let one_file = desk.path("all.jsonl");
    let told = desk.good(&["annotate", "merge", one_file.to_str().unwrap(), one, other]);
    assert!(told.contains("all.jsonl: 4 new entries, 4 in all, 1 conflict"), "{told}");
    let status = desk.good(&["annotate", "status", one]);
    let row = |name: &str| -> Vec<String> {
        let row = status.lines().find(|line| line.starts_with(name)).unwrap();
        row.split_whitespace().skip(2).map(ToOwned::to_owned).collect()
    };
    assert_eq!((row("anna"), row("ben")), (words("0 0 0 1"), words("1 0 0 0")));
    assert!(status.contains("say different things") && status.contains(&format!("no {}", statements[0])));
    judge(&here, "anna", &items[0], &statements, true);
    assert!(!desk.good(&["annotate", "status", one]).contains("different things"));
}

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(ToOwned::to_owned).collect()
}

#[test]
fn labels_by_hand_go_before_gold_and_the_model_and_are_named() {
    let desk = Desk::new();
    let folder = desk.project();
    let (statements, items) = of_question(&folder);
    judge(&folder, "anna", &items[0], &statements, false);
    judge(&folder, "ben", &items[1], &statements, true);
    let search = |source: &str, journal: &[&str]| -> Value {
        let all =
            ["search", QUESTION, "--lanes", "bm25", "-k", "3", "--format", "json", "--label-source", source];
        let text = desk.good(&[&all, journal].concat());
        serde_json::from_str(&text).unwrap()
    };
    let journal = ["--journal", folder.to_str().unwrap()];
    let by = |result: &Value| -> Vec<String> {
        let hits = result["lanes"][0]["hits"].as_array().unwrap();
        let one = |hit: &Value| format!("{} {}", hit["verdicts"][0]["by"], hit["verdicts"][0]["supports"]);
        hits.iter().map(one).collect()
    };
    let human = search("human", &journal);
    assert_eq!(by(&human), ["\"human\" false", "\"human\" true", "null null"]);
    assert_eq!((&human["lanes"][0]["judged"], &human["provenance"]["labels"]), (&2.into(), &"human".into()));
    let auto = by(&search("auto", &journal));
    assert_eq!(auto[..2], by(&human)[..2]);
    assert!(auto[2].starts_with("\"gold\""), "{auto:?}");
    let (code, _, errors) = desk.run(&["search", QUESTION, "--lanes", "bm25", "--label-source", "human"]);
    assert!(
        code == 2 && errors.contains("no labels were made by hand") && errors.contains("--journal"),
        "{errors}"
    );
    // What is kept for the corpus counts without being named.
    let print: Value =
        serde_json::from_str(&fs::read_to_string(folder.join("project.json")).unwrap()).unwrap();
    let kept = desk.path("data").join("annotate").join(print["fingerprint"].as_str().unwrap());
    fs::create_dir_all(&kept).unwrap();
    fs::copy(folder.join("anna.jsonl"), kept.join("anna.jsonl")).unwrap();
    assert_eq!(by(&search("human", &[]))[0], "\"human\" false");
    let table = desk.good(&["eval", "berds", "--lanes", "bm25", "-k", "1", "--label-source", "human"]);
    assert!(table.contains("labels: human"), "{table}");
}

#[test]
fn a_decision_counts_in_every_answer_from_then_on_without_a_file_being_read_again() {
    let desk = Desk::new();
    let opening = Opening { data_dir: desk.path("data"), ..Opening::default() };
    let setup = Setup::open(&opening, &|_| {}, &Stop::never()).unwrap();
    let question = setup.questions.iter().find(|question| question.text == QUESTION).unwrap().clone();
    let plan = Plan { question, lanes: vec!["bm25".parse().unwrap()], k: 3, source: LabelSource::Human };
    let answered = || answer(&setup, &plan, Depth::Top, &mut Lists::default(), &Stop::never()).unwrap();
    let first = answered();
    assert_eq!(first.figures(&plan, 0).unwrap().judged, 0);
    assert!(!setup.has_human() && setup.lacks(LabelSource::Human).is_some());
    let ranked = first.lanes[0].0.as_ref().unwrap()[1].clone();
    let answers = plan.question.perspectives.iter().map(|text| (text.clone(), true)).collect();
    let act = Act {
        question: QUESTION.into(),
        passage: ranked.passage.id.clone(),
        text: text_hash(&ranked.passage),
        view: View { answers, ..View::default() },
        took: None,
    };
    let mut journal = Journal::open(&setup.journals.join("anna.jsonl"), "anna").unwrap().journal;
    let entry = journal.append(act).unwrap();
    setup.decided(&entry.key(), journal.history().decisions_on(&entry.key()));
    let figures = answered().figures(&plan, 0).unwrap();
    assert_eq!((figures.judged, figures.supporting), (1, vec![1, 1]));
    // What is open already is written into its book.
    let mut book = first.book;
    book.decided(ranked.at, 0, setup.labelled(&plan.question.perspectives[0], &ranked.passage.id).human);
    assert_eq!(
        book.verdict(ranked.at, 0).map(|verdict| (verdict.supports, verdict.by)),
        Some((true, By::Human))
    );
    let again = Setup::open(&opening, &|_| {}, &Stop::never()).unwrap();
    assert!(again.has_human());
    let entry = journal.undo().unwrap().unwrap();
    setup.decided(&entry.key(), journal.history().decisions_on(&entry.key()));
    assert_eq!(answered().figures(&plan, 0).unwrap().judged, 0);
}

#[test]
fn fsck_tells_damage_with_its_line_and_repairs_beside_the_old_file() {
    let desk = Desk::new();
    let folder = desk.project();
    let (statements, items) = of_question(&folder);
    for item in &items {
        judge(&folder, "anna", item, &statements, true);
    }
    let path = folder.join("anna.jsonl");
    let journal = path.to_str().unwrap();
    assert!(desk.good(&["annotate", "fsck", journal]).contains("3 entries, 3 stand, 0 conflicts"));
    let mut bytes = fs::read(&path).unwrap();
    let second = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 30;
    bytes[second] ^= 2;
    bytes.extend_from_slice(&[0; 100]);
    fs::write(&path, &bytes).unwrap();
    let (code, out, _) = desk.run(&["annotate", "fsck", folder.to_str().unwrap()]);
    assert_eq!(code, 1);
    assert!(out.contains("anna.jsonl:2: expected the id") && out.contains("100 bytes behind"), "{out}");
    let (_, _, notes) = desk.run(&["search", QUESTION, "--lanes", "bm25", "--journal", journal]);
    assert!(notes.contains("1 line damaged, the last line unfinished; the rest counts"), "{notes}");
    let told = desk.good(&["annotate", "fsck", journal, "--repair"]);
    assert!(told.contains("repaired; the old one is"), "{told}");
    assert!(desk.good(&["annotate", "fsck", journal]).contains("2 entries, 2 stand"));
    assert_eq!(fs::read(folder.join("anna.jsonl.damaged-1")).unwrap(), bytes);
}

#[test]
fn labels_follow_renamed_passages_and_reworded_statements_and_those_of_none_are_told() {
    let desk = Desk::new();
    let (old, new) = (desk.path("old.jsonl"), desk.path("new.jsonl"));
    let line = |id: &str, text: &str| format!("{{\"_id\":\"{id}\",\"text\":\"{text}\"}}\n");
    fs::write(&old, line("a", "Zoos are cruel.") + &line("b", "Zoos save species.")).unwrap();
    fs::write(&new, line("z", "Zoos are cruel.") + &line("c", "Farms are cruel.")).unwrap();
    let questions = desk.path("questions.jsonl");
    fs::write(&questions, "{\"id\":\"q\",\"question\":\"Should zoos be banned?\"}\n").unwrap();
    let folder = desk.path("project");
    let on = |corpus: &Path, arguments: &[&str]| {
        let more = ["--corpus", corpus.to_str().unwrap(), "--questions", questions.to_str().unwrap()];
        desk.run(&[arguments, &more].concat())
    };
    let place = folder.to_str().unwrap();
    let (code, _, errors) = on(&old, &["annotate", "new", place, "--lanes", "bm25"]);
    assert_eq!(code, 0, "{errors}");
    let (project, items) = Project::open(&folder).unwrap();
    for item in &items {
        judge(&folder, "anna", item, &project.questions[0].perspectives, true);
    }
    let search =
        ["search", "Should zoos be banned?", "--lanes", "bm25", "--label-source", "auto", "--journal", place];
    let (_, _, notes) = on(&new, &search);
    assert!(notes.contains("4 of passages that this corpus does not hold"), "{notes}");
    let (code, out, _) = on(&new, &["annotate", "remap", place]);
    assert_eq!(code, 1);
    assert!(out.contains("1 passage tied again") && out.contains("[b]: no passage has its text"), "{out}");
    let (_, _, notes) = on(&new, &search);
    assert!(notes.contains("2 of passages"), "{notes}");
    let status = desk.good(&["annotate", "status", place]);
    assert!(status.contains("[z]") && status.contains("no such passage in the pool"), "{status}");
    let reworded = ["annotate", "remap", place, "--from", "Zoos should be banned.", "--to", "Ban zoos."];
    let (code, out, _) = on(&new, &reworded);
    assert!(code == 0 && out.contains("2 passages tied again"), "{out}");
    let (_, _, notes) = on(&new, &search);
    assert!(notes.contains("1 of statements that no question of the set has word for word"), "{notes}");
    let labels = desk.path("labels.tsv");
    fs::write(&labels, "id\tperspective\tlabel\nb\tZoos should be banned.\t1\nz\tOther.\t1\n").unwrap();
    let (_, _, notes) =
        on(&new, &["search", "Zoos?", "--lanes", "bm25", "--labels", labels.to_str().unwrap()]);
    assert!(
        notes.contains("--labels: 1 of 2 labels are of passages that this corpus does not hold"),
        "{notes}"
    );
    assert!(notes.contains("--labels: 1 of 2 labels are of statements"), "{notes}");
}

#[test]
fn a_project_is_never_written_over_and_bad_names_and_shares_are_told() {
    let desk = Desk::new();
    let folder = desk.project();
    let place = folder.to_str().unwrap();
    let elsewhere = desk.path("other");
    let other = elsewhere.to_str().unwrap();
    for (arguments, expected) in [
        (vec!["annotate", "new", place], "holds a project already"),
        (vec!["annotate", "new", other, "--annotators", "a/b"], "annotator's name"),
        (vec!["annotate", "new", other, "--annotators", "a,a"], "twice"),
        (vec!["annotate", "new", other, "--overlap", "2"], "from 0 to 1"),
        (vec!["annotate", "status", other], "no such file"),
        (vec!["annotate", "fsck", other], "no such file"),
        (vec!["annotate", "merge", place, other], "no such file"),
    ] {
        let (code, _, errors) = desk.run(&arguments);
        assert!(code == 2 && errors.contains(expected), "{arguments:?}: {errors}");
    }
    assert!(!elsewhere.exists());
}

#[test]
fn the_status_of_a_project_that_nobody_has_touched_says_how_to_begin() {
    let desk = Desk::new();
    let folder = desk.path("fresh");
    let place = folder.to_str().unwrap();
    desk.good(&["annotate", "new", place, "--lanes", "bm25", "--depth", "1"]);
    let status = desk.good(&["annotate", "status", place]);
    assert!(status.contains(&format!("parallax --journal {place} --annotator NAME")), "{status}");
    assert!(!status.contains("to judge"), "{status}");
}
