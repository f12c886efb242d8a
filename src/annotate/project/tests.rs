//! Projects on disk, and how far they are.

use super::super::testing::{QUESTION, YES, act, open, passage};
use super::*;

fn project() -> Project {
    let question = Question {
        id: "q1".into(),
        text: QUESTION.into(),
        perspectives: vec![YES.into(), "Zoos should not be banned.".into()],
        supports: Some(0),
        ..Question::default()
    };
    let fingerprint = Fingerprint("f".into());
    Project::new("corpus".into(), fingerprint, vec![question], vec!["bm25".into()], 3)
}

fn items() -> Vec<Item> {
    let item = |n| Item {
        question: QUESTION.into(),
        passage: passage(n),
        ranks: BTreeMap::from([("bm25".to_owned(), n)]),
        to: if n == 3 { vec!["ben".into()] } else { Vec::new() },
    };
    (1..=3).map(item).collect()
}

#[test]
fn a_project_is_read_as_it_was_written_and_never_written_over() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("new").join("project");
    project().write(&items(), &place).unwrap();
    assert_eq!(Project::open(&place).unwrap(), (project(), items()));
    assert!(Project::guidelines(&place).unwrap().contains("What counts as support"));
    assert!(Project::journals(&place).unwrap().is_empty());
    let error = project().write(&[], &place).unwrap_err();
    assert!(error.to_string().contains("already"), "{error}");
    assert_eq!(Project::open(&place).unwrap().1, items());
}

#[test]
fn a_bad_project_is_told_with_file_and_line() {
    let folder = tempfile::tempdir().unwrap();
    let told = || Project::open(folder.path()).unwrap_err().to_string();
    assert!(told().contains("project.json: no such file"), "{}", told());
    project().write(&items(), folder.path()).unwrap();
    let card = fs::read_to_string(folder.path().join(CARD)).unwrap();
    fs::write(folder.path().join(CARD), card.replace("\"v\": 1", "\"v\": 9")).unwrap();
    assert!(told().contains("later version"), "{}", told());
    fs::write(folder.path().join(CARD), card.replace("\"depth\": 3", "\"depth\": true")).unwrap();
    assert!(told().contains("project.json:") && told().contains("expected a project's card"), "{}", told());
    fs::write(folder.path().join(CARD), card.replace(QUESTION, "Another?")).unwrap();
    assert!(told().contains("pool.jsonl:1: expected a question that stands in project.json"), "{}", told());
}

#[test]
fn done_is_what_was_judged_for_every_statement_as_it_is_worded_now() {
    let folder = tempfile::tempdir().unwrap();
    let (mut project, items) = (project(), items());
    let mut journal = open(&Project::journal(folder.path(), "anna"));
    journal.append(act(1, true)).unwrap();
    let mut skipped = act(2, true);
    skipped.view = super::super::View { skipped: true, flagged: true, ..Default::default() };
    journal.append(skipped).unwrap();
    let progress = |project: &Project, journal: &super::super::Journal| {
        project.progress(&items, journal.history(), "anna")
    };
    let expected = Progress { assigned: 2, done: 0, skipped: 1, flagged: 1 };
    assert_eq!(progress(&project, &journal), expected);
    let mut both = act(1, true);
    both.view.answers.insert("Zoos should not be banned.".into(), false);
    journal.append(both).unwrap();
    assert_eq!(progress(&project, &journal), Progress { done: 1, ..expected });
    project.questions[0].perspectives[0] = "Zoos must be banned.".into();
    assert_eq!(progress(&project, &journal), expected);
}
