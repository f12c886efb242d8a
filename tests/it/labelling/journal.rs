//! Journals: locked, complete, in conflict.

use super::*;

#[test]
fn a_journal_locked_by_another_process_is_read_only() {
    let mut app = asked(100, 30);
    let effects = press(&mut app, "a");
    lay(&mut app, &effects, |annotation| annotation.read_only = Some("held by process 7 of anna".into()));
    for keys in ["s", "0", "<Space>", "f", "u", "t"] {
        app.notice = None;
        assert_eq!(press(&mut app, keys), [], "{keys}");
        assert!(app.notice.as_deref().unwrap().contains("process 7"), "{keys}");
    }
    assert!(app.labelling.typed.is_none(), "nothing is typed that cannot be stored");
}

#[test]
fn without_a_journal_the_screen_shows_the_reason() {
    let mut app = asked(100, 30);
    press(&mut app, "a");
    receive(&mut app, Reply::AnnotationState(Err("this project is labelled by anna, ben, not by me".into())));
    assert_eq!(press(&mut app, "s0u<Space>"), []);
    press(&mut app, "q");
    assert_eq!(app.screen, Screen::LANES);
}

#[test]
fn agreement_with_another_annotator_is_shown_with_the_count() {
    let mut app = asked(100, 30);
    let effects = press(&mut app, "a");
    let other = |passage: &str, supports| parallax::annotate::Decision {
        by: "ben".into(),
        question: question().text,
        passage: passage.into(),
        text: String::new(),
        perspective: SIDES[0].into(),
        supports,
        evidence: None,
        note: None,
        flagged: false,
        at: 0,
        took: None,
        seen: None,
    };
    lay(&mut app, &effects, |annotation| {
        annotation.others = vec![other("zoos-01", true), other("zoos-02", false)]
    });
    assert_eq!(app.labelling.agreement, []);
    for _ in 0..app.labelling.queue.len() {
        let key = if shown(&app) == "zoos-01" { "s" } else { "0" };
        let act = act(&press(&mut app, key));
        written(&mut app, act);
    }
    let [(name, agreement)] = &app.labelling.agreement[..] else { panic!() };
    assert_eq!((name.as_str(), agreement.value, agreement.doubly_labelled), ("ben", Some(1.0), 2));
}

#[test]
fn labels_that_another_process_wrote_count_at_once_and_the_screen_says_so() {
    use parallax::corpus::PassageIx;
    use parallax::engine::LabelsChanged;
    let mut app = asked(100, 30);
    let at = app.lanes[0].ranking[0].at;
    let before = app.judgments.support(at);
    let labels = SIDES.map(|side| (at, side.to_owned(), Some(Some(true)))).to_vec();
    let elsewhere = (PassageIx(0), "Another statement.".to_owned(), Some(Some(true)));
    let labels = labels.into_iter().chain([elsewhere]).collect();
    let changed = LabelsChanged { by: vec!["ben".into()], labels, ..LabelsChanged::default() };
    receive(&mut app, Reply::LabelsChanged(Box::new(changed)));
    assert_ne!(app.judgments.support(at), before);
    assert_eq!(app.judgments.support(at).unwrap().len(), 2);
    let notice = app.notice.clone().unwrap();
    assert!(notice.contains("labels of ben changed on the disk: 2 of 3"), "{notice}");
    let broken = LabelsChanged { error: Some("anna.jsonl: no such file".into()), ..LabelsChanged::default() };
    receive(&mut app, Reply::LabelsChanged(Box::new(broken)));
    assert!(app.notice.unwrap().contains("cannot be read again"));
}

#[test]
fn a_key_script_labels_fifty_passages_and_journal_export_and_measures_agree() {
    let annotation = program::Workspace::new();
    annotation.run(&["annotate", "new", "project", "--lanes", "bm25", "--depth", "3"]).good();
    let keys = "<Esc>a<Wait>".to_owned() + &"so0b0".repeat(10) + "<Wait>";
    let frame = annotation
        .run(
            &["--journal", "project", "--annotator", "anna", "--lanes", "bm25", "frame", "--size", "100x30"]
                .into_iter()
                .chain(["--keys", &keys])
                .collect::<Vec<_>>(),
        )
        .good();
    assert!(frame.contains("anna · 50 of 72 labelled"), "{frame}");
    let (path, history) = journal(&annotation.files.path().join("project"));
    let decisions = history.decisions();
    assert_eq!((history.len(), decisions.len()), (50, 100));
    // Of five keys, s and o say one yes each and b says two.
    assert_eq!(decisions.iter().filter(|one| one.supports).count(), 40);
    let tsv = annotation.run(&[
        "annotate",
        "export",
        path.to_str().unwrap(),
        "--format",
        "tsv",
        "--out",
        "labels.tsv",
    ]);
    tsv.good();
    let exported = std::fs::read_to_string(annotation.files.path().join("labels.tsv")).unwrap();
    assert_eq!(exported.lines().count(), 101);
    // The first question is labelled whole by s, o and 0: both sides are covered by its first three passages.
    let first = &decisions.iter().find(|one| one.supports).unwrap().question;
    let asked: Vec<_> = decisions.iter().filter(|one| one.question == *first).collect();
    let printed = annotation.json(&[
        "search",
        first,
        "--lanes",
        "bm25",
        "-k",
        "3",
        "--journal",
        "project",
        "--label-source",
        "human",
    ]);
    let hits = printed["lanes"][0]["hits"].as_array().unwrap();
    for hit in hits {
        for verdict in hit["verdicts"].as_array().unwrap() {
            let perspective =
                printed["perspectives"][verdict["perspective"].as_u64().unwrap() as usize].as_str();
            let held = asked
                .iter()
                .find(|one| {
                    Some(one.passage.as_str()) == hit["id"].as_str()
                        && Some(one.perspective.as_str()) == perspective
                })
                .unwrap();
            assert_eq!(verdict["supports"], held.supports);
            assert_eq!(verdict["by"], "human");
        }
    }
    let covered = asked.iter().filter(|one| one.supports).map(|one| &one.perspective);
    let covered: std::collections::BTreeSet<_> = covered.collect();
    let expected = if covered.len() == 2 { 1.0 } else { 0.0 };
    assert_eq!(printed["lanes"][0]["measures"]["MRecall@3"], expected);
}

#[test]
fn a_decision_on_another_text_must_be_made_again() {
    let mut app = asked(100, 30);
    let effects = press(&mut app, "a");
    lay(&mut app, &effects, |annotation| {
        let item = &annotation.items[0];
        let view = View {
            answers: [(SIDES[0].to_owned(), true), (SIDES[1].to_owned(), false)].into(),
            ..View::default()
        };
        let (question, passage) = (item.question.clone(), item.passage.id.clone());
        let old = Act { question, passage, text: "0".repeat(32), view, took: None, seen: None };
        annotation.history.take(Entry::new(old, "anna", Vec::new(), 1).unwrap());
    });
    assert_eq!((app.labelling.pace.done, app.labelling.draft.answers.len()), (0, 0));
    let act = act(&press(&mut app, "f"));
    assert!(act.view.flagged && act.view.answers.is_empty(), "the old answer does not come along");
}

#[test]
fn only_a_label_settles_a_conflict() {
    let mut app = asked(100, 30);
    let effects = press(&mut app, "a");
    lay(&mut app, &effects, |annotation| {
        let item = annotation.items[0].clone();
        for (at, yes) in [(1, true), (2, false)] {
            let view = View {
                answers: [(SIDES[0].to_owned(), yes), (SIDES[1].to_owned(), !yes)].into(),
                ..View::default()
            };
            let (question, passage) = (item.question.clone(), item.passage.id.clone());
            let text = parallax::annotate::text_hash(&item.passage);
            let one = Act { question, passage, text, view, took: None, seen: None };
            annotation.history.take(Entry::new(one, "anna", Vec::new(), at).unwrap());
        }
    });
    assert!(app.labelling.in_conflict());
    for keys in ["f", "<Space>", "t", "e"] {
        assert_eq!(press(&mut app, keys), [], "{keys}");
        assert!(app.notice.as_deref().unwrap().contains("label it first"), "{keys}");
    }
    act(&press(&mut app, "b"));
}
