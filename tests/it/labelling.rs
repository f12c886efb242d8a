//! Labelling by hand in the explorer: what a key writes down, and what follows once it is on the disk.

use std::path::{Path, PathBuf};

use parallax::annotate::{Act, Entry, History, Journal, Order, View};
use parallax::engine::{Desk, Labelling, Reply, Written};
use parallax::tui::app::{App, Screen};
use parallax::tui::message::{Effect, Msg};
use parallax::tui::update::update;

use crate::program;
use crate::stage::{asked, many_sided, press, question};

const SIDES: [&str; 2] = ["Zoos should be banned.", "Zoos should not be banned."];

fn tell(app: &mut App, reply: Reply) -> Vec<Effect> {
    update(app, Msg::Engine(reply))
}

/// The desk that the order asks for, without a disk.
fn lay(app: &mut App, effects: &[Effect], change: impl FnOnce(&mut Desk)) {
    let [Effect::Label(Labelling::Open(items, questions))] = effects else { panic!("{effects:?}") };
    let mut desk =
        Desk { by: "anna".into(), items: items.clone(), questions: questions.clone(), ..Desk::default() };
    change(&mut desk);
    tell(app, Reply::Desk(Ok(Box::new(desk))));
}

/// The zoos' passages on the desk of anna.
pub fn open(width: u16, height: u16) -> App {
    let mut app = asked(width, height);
    let effects = press(&mut app, "a");
    lay(&mut app, &effects, |_| {});
    app
}

/// The one act among the effects.
fn act(effects: &[Effect]) -> Act {
    let [Effect::Label(Labelling::Write(act))] = effects else { panic!("{effects:?}") };
    act.clone()
}

/// The act is on the disk; what is ordered next.
fn written(app: &mut App, act: Act) -> Vec<Effect> {
    let key = parallax::annotate::Key {
        by: "anna".into(),
        question: act.question.clone(),
        passage: act.passage.clone(),
    };
    let was = app.labelling.open().unwrap().history.heads(&key).iter().map(|head| head.id.clone()).collect();
    let labels = act.view.answers.iter().map(|(text, yes)| (text.clone(), Some(*yes))).collect();
    let at = crate::stage::PASSAGES.iter().position(|(id, ..)| *id == act.passage);
    let at = at.map(|at| parallax::corpus::PassageIx(at as u32));
    let entry = Entry::new(act, "anna", was, 1).unwrap();
    tell(app, Reply::Labelled(Ok(Some(Box::new(Written { entry, at, labels })))))
}

fn shown(app: &App) -> String {
    app.labelling.item().unwrap().passage.id.clone()
}

fn answers(view: &View) -> Vec<Option<bool>> {
    SIDES.iter().map(|side| view.answers.get(*side).copied()).collect()
}

#[test]
fn one_key_is_one_decision_on_every_statement() {
    for (key, expected) in
        [("s", [true, false]), ("o", [false, true]), ("b", [true, true]), ("0", [false; 2])]
    {
        let mut app = open(100, 30);
        let act = act(&press(&mut app, key));
        assert_eq!(answers(&act.view), expected.map(Some), "{key}");
        assert_eq!(act.passage, shown(&app), "{key}");
    }
}

#[test]
fn the_key_echoes_at_once_and_the_next_passage_waits_for_the_disk() {
    let mut app = open(100, 30);
    let first = shown(&app);
    let act = act(&press(&mut app, "s"));
    assert_eq!((shown(&app), answers(&app.labelling.draft)), (first.clone(), vec![Some(true), Some(false)]));
    written(&mut app, act);
    assert_ne!(shown(&app), first);
    assert_eq!(app.labelling.pace.done, 1);
}

#[test]
fn keys_pressed_ahead_of_the_disk_are_decisions_on_the_passages_that_follow() {
    let mut app = open(100, 30);
    let mut act = act(&press(&mut app, "so0"));
    let mut passages = Vec::new();
    loop {
        passages.push((act.passage.clone(), answers(&act.view)));
        match written(&mut app, act).as_slice() {
            [Effect::Label(Labelling::Write(next))] => act = next.clone(),
            _ => break,
        }
    }
    let said: Vec<_> = passages.iter().map(|(_, answers)| answers.clone()).collect();
    assert_eq!(said, [[Some(true), Some(false)], [Some(false), Some(true)], [Some(false); 2]]);
    let mut ids: Vec<_> = passages.into_iter().map(|(id, _)| id).collect();
    ids.dedup();
    assert_eq!(ids.len(), 3);
}

#[test]
fn a_full_disk_leaves_the_passage_on_screen_and_says_so() {
    let mut app = open(100, 30);
    let first = shown(&app);
    press(&mut app, "so");
    let effects = tell(&mut app, Reply::Labelled(Err("not written down: no space left".into())));
    assert_eq!((shown(&app), effects), (first, Vec::new()));
    assert!(app.notice.as_deref().unwrap().contains("no space"));
    assert_eq!(app.labelling.pace.done, 0);
    act(&press(&mut app, "s"));
}

#[test]
fn measures_on_the_lanes_follow_the_label_at_once() {
    let mut app = open(100, 30);
    let before = app.figures(&app.lanes[0]).unwrap();
    for _ in 0..8 {
        let act = act(&press(&mut app, "0"));
        written(&mut app, act);
    }
    let after = app.figures(&app.lanes[0]).unwrap();
    assert!(before.prec > 0.0);
    assert_eq!(after.prec, 0.0, "all that was found by the model is overruled");
}

#[test]
fn perspectives_of_many_are_chosen_by_number_and_kept_with_enter() {
    let mut app = many_sided(100, 30);
    let effects = press(&mut app, "a");
    lay(&mut app, &effects, |_| {});
    assert_eq!(press(&mut app, "s"), [], "there is no side to choose");
    assert!(app.notice.as_deref().unwrap().contains("the keys before its perspectives"));
    let act = act(&press(&mut app, "133<Enter>"));
    let yes: Vec<&str> =
        act.view.answers.iter().filter(|(_, yes)| **yes).map(|(text, _)| text.as_str()).collect();
    assert_eq!(yes, ["Zoos should be banned."]);
    assert_eq!(act.view.answers.len(), 7);
}

#[test]
fn evidence_is_marked_with_the_keyboard_and_goes_with_the_label() {
    let mut app = open(100, 30);
    press(&mut app, "evll<Enter>");
    let text = &app.labelling.item().unwrap().passage.text;
    let words: Vec<&str> = text.split(' ').take(3).collect();
    let words = words.join(" ");
    let act = act(&press(&mut app, "s"));
    assert_eq!(act.view.evidence.get(SIDES[0]), Some(&words));
    assert_eq!(act.view.evidence.get(SIDES[1]), None);
}

#[test]
fn a_remark_is_typed_and_kept_beside_the_label() {
    let mut app = open(100, 30);
    let first = act(&press(&mut app, "s"));
    let id = first.passage.clone();
    written(&mut app, first);
    press(&mut app, "h");
    assert_eq!(shown(&app), id);
    let act = act(&press(&mut app, "tso what?<Enter>"));
    assert_eq!(act.view.note.as_deref(), Some("so what?"));
    assert_eq!(answers(&act.view), [Some(true), Some(false)]);
    assert_eq!(press(&mut open(100, 30), "txyz<Esc>"), []);
}

#[test]
fn what_was_skipped_comes_again_when_all_else_is_labelled() {
    let mut app = open(100, 30);
    let first = shown(&app);
    let mut act_now = act(&press(&mut app, "<Space>"));
    assert!(act_now.view.skipped && act_now.view.answers.is_empty());
    for _ in 1..app.labelling.queue.len() {
        written(&mut app, act_now);
        assert_ne!(shown(&app), first);
        act_now = act(&press(&mut app, "0"));
    }
    written(&mut app, act_now);
    assert_eq!(shown(&app), first);
    let last = act(&press(&mut app, "s"));
    assert!(!last.view.skipped);
    written(&mut app, last);
    assert!(app.notice.as_deref().unwrap().contains("are labelled"), "{:?}", app.notice);
}

#[test]
fn undo_shows_the_passage_whose_label_it_took_back() {
    let mut app = open(100, 30);
    let first = act(&press(&mut app, "s"));
    let id = first.passage.clone();
    written(&mut app, first.clone());
    assert_ne!(shown(&app), id);
    assert_eq!(press(&mut app, "u"), [Effect::Label(Labelling::Undo)]);
    written(&mut app, Act { view: View::default(), ..first });
    assert_eq!((shown(&app), app.labelling.pace.done), (id, 0));
    assert_eq!(press(&mut app, "<C-r>"), [Effect::Label(Labelling::Redo)]);
    tell(&mut app, Reply::Labelled(Ok(None)));
    assert!(app.notice.is_some());
}

#[test]
fn a_journal_that_another_process_holds_can_be_looked_at_and_takes_no_label() {
    let mut app = asked(100, 30);
    let effects = press(&mut app, "a");
    lay(&mut app, &effects, |desk| desk.read_only = Some("held by process 7 of anna".into()));
    for keys in ["s", "0", "<Space>", "f", "u"] {
        assert_eq!(press(&mut app, keys), [], "{keys}");
        assert!(app.notice.as_deref().unwrap().contains("process 7"), "{keys}");
    }
}

#[test]
fn without_a_journal_the_reason_stands_on_the_screen() {
    let mut app = asked(100, 30);
    press(&mut app, "a");
    tell(&mut app, Reply::Desk(Err("this project is labelled by anna, ben, not by me".into())));
    assert_eq!(press(&mut app, "s0u<Space>"), []);
    press(&mut app, "q");
    assert_eq!(app.screen, Screen::Explore);
}

#[test]
fn the_order_by_doubt_comes_once_the_model_has_said_everything() {
    let mut app = open(100, 30);
    press(&mut app, "<Tab>");
    assert_eq!(app.labelling.order, Order::Uncertain);
    let count = app.labelling.queue.len();
    let number = app.labelling.number;
    for item in 0..count {
        let p = if item == 5 { 0.5 } else { 0.99 };
        tell(&mut app, Reply::Weighed { number, item, probabilities: vec![Some(p), Some(0.01)] });
    }
    assert_eq!(
        (shown(&app).as_str(), app.labelling.queue[1]),
        ("zoos-01", 5),
        "the next one, not the one on screen"
    );
    tell(&mut app, Reply::Weighed { number: number - 1, item: 0, probabilities: vec![Some(0.5)] });
    assert_eq!(
        app.labelling.weighed[0],
        Some(vec![Some(0.99), Some(0.01)]),
        "an earlier survey says nothing"
    );
}

#[test]
fn agreement_with_another_annotator_stands_beside_the_count() {
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
    };
    lay(&mut app, &effects, |desk| desk.others = vec![other("zoos-01", true), other("zoos-02", false)]);
    assert_eq!(app.labelling.agreement, []);
    for _ in 0..app.labelling.queue.len() {
        let key = if shown(&app) == "zoos-01" { "s" } else { "0" };
        let act = act(&press(&mut app, key));
        written(&mut app, act);
    }
    let [(name, agreement)] = &app.labelling.agreement[..] else { panic!() };
    assert_eq!((name.as_str(), agreement.value, agreement.doubly_labelled), ("ben", Some(1.0), 2));
}

fn journal(folder: &Path) -> (PathBuf, History) {
    let path = folder.join("anna.jsonl");
    let opened = Journal::open(&path, "anna").unwrap();
    assert!(opened.read.is_whole());
    (path, opened.journal.history().clone())
}

#[test]
fn a_key_script_labels_fifty_passages_and_journal_export_and_measures_agree() {
    let desk = program::Desk::new();
    desk.run(&["annotate", "new", "project", "--lanes", "bm25", "--depth", "3"]).good();
    let keys = "<Esc>a<Wait>".to_owned() + &"so0b0".repeat(10) + "<Wait>";
    let frame = desk
        .run(
            &["--journal", "project", "--annotator", "anna", "--lanes", "bm25", "frame", "--size", "100x30"]
                .into_iter()
                .chain(["--keys", &keys])
                .collect::<Vec<_>>(),
        )
        .good();
    assert!(frame.contains("anna · 50 of 72 labelled"), "{frame}");
    let (path, history) = journal(&desk.files.path().join("project"));
    let decisions = history.decisions();
    assert_eq!((history.len(), decisions.len()), (50, 100));
    // Of five keys, s and o say one yes each and b says two.
    assert_eq!(decisions.iter().filter(|one| one.supports).count(), 40);
    let tsv =
        desk.run(&["annotate", "export", path.to_str().unwrap(), "--format", "tsv", "--out", "labels.tsv"]);
    tsv.good();
    let exported = std::fs::read_to_string(desk.files.path().join("labels.tsv")).unwrap();
    assert_eq!(exported.lines().count(), 101);
    // The first question is labelled whole by s, o and 0: both sides are covered by its first three passages.
    let first = &decisions.iter().find(|one| one.supports).unwrap().question;
    let asked: Vec<_> = decisions.iter().filter(|one| one.question == *first).collect();
    let told = desk.json(&[
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
    let hits = told["lanes"][0]["hits"].as_array().unwrap();
    for hit in hits {
        for verdict in hit["verdicts"].as_array().unwrap() {
            let perspective =
                told["perspectives"][verdict["perspective"].as_u64().unwrap() as usize].as_str();
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
    assert_eq!(told["lanes"][0]["measures"]["MRecall@3"], expected);
}

#[test]
fn a_remark_typed_ahead_of_the_disk_is_a_remark_and_no_label() {
    let mut app = open(100, 30);
    let first = act(&press(&mut app, "stso<Enter>"));
    let effects = written(&mut app, first);
    let second = act(&effects);
    assert_eq!((second.view.note.as_deref(), second.view.answers.len()), (Some("so"), 0));
}

#[test]
fn leaving_waits_for_the_labels_that_were_pressed_before_it() {
    let mut app = open(100, 30);
    let first = act(&press(&mut app, "so<Esc>"));
    let second = act(&written(&mut app, first));
    assert_eq!(app.screen, Screen::Annotate);
    written(&mut app, second);
    assert_eq!((app.screen, app.labelling.pace.done), (Screen::Explore, 2));
}

#[test]
fn the_passage_on_screen_stays_when_the_order_by_doubt_is_known() {
    let mut app = open(100, 30);
    press(&mut app, "<Tab>tso");
    let (shown_before, number) = (shown(&app), app.labelling.number);
    for item in 0..app.labelling.queue.len() {
        tell(&mut app, Reply::Weighed { number, item, probabilities: vec![Some(0.5), Some(0.01)] });
    }
    assert_eq!(shown(&app), shown_before);
    assert_eq!(app.labelling.typed.as_ref().unwrap().value(), "so");
}

#[test]
fn what_was_decided_on_another_text_is_to_be_decided_again() {
    let mut app = asked(100, 30);
    let effects = press(&mut app, "a");
    lay(&mut app, &effects, |desk| {
        let item = &desk.items[0];
        let view = View {
            answers: [(SIDES[0].to_owned(), true), (SIDES[1].to_owned(), false)].into(),
            ..View::default()
        };
        let (question, passage) = (item.question.clone(), item.passage.id.clone());
        let old = Act { question, passage, text: "0".repeat(32), view, took: None };
        desk.history.take(Entry::new(old, "anna", Vec::new(), 1).unwrap());
    });
    assert_eq!((app.labelling.pace.done, app.labelling.draft.answers.len()), (0, 0));
    let act = act(&press(&mut app, "f"));
    assert!(act.view.flagged && act.view.answers.is_empty(), "the old answer does not come along");
}

#[test]
fn a_conflict_is_settled_by_a_label_and_by_nothing_else() {
    let mut app = asked(100, 30);
    let effects = press(&mut app, "a");
    lay(&mut app, &effects, |desk| {
        let item = desk.items[0].clone();
        for (at, yes) in [(1, true), (2, false)] {
            let view = View {
                answers: [(SIDES[0].to_owned(), yes), (SIDES[1].to_owned(), !yes)].into(),
                ..View::default()
            };
            let (question, passage) = (item.question.clone(), item.passage.id.clone());
            let text = parallax::annotate::text_hash(&item.passage);
            let one = Act { question, passage, text, view, took: None };
            desk.history.take(Entry::new(one, "anna", Vec::new(), at).unwrap());
        }
    });
    assert!(app.labelling.in_conflict());
    for keys in ["f", "<Space>", "t", "e"] {
        assert_eq!(press(&mut app, keys), [], "{keys}");
        assert!(app.notice.as_deref().unwrap().contains("label it first"), "{keys}");
    }
    act(&press(&mut app, "b"));
}
