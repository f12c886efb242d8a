//! The effect of each key, and the steps that wait for the disk.

use std::sync::Arc;

use parallax::tui::app::LaneState;

use super::*;

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
fn a_key_is_shown_at_once_and_the_next_passage_follows_once_the_label_is_on_disk() {
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
    let effects = receive(&mut app, Reply::Labelled(Err("not written down: no space left".into())));
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

/// A question with more statements than a window shows at once.
pub fn with_42_statements(height: u16) -> (App, Vec<String>) {
    let statements: Vec<String> = (0..42).map(|n| format!("Zoos should have {n:02} gates.")).collect();
    let mut app = asked(100, height);
    let effects = press(&mut app, "a");
    lay(&mut app, &effects, |annotation| {
        for question in &mut annotation.questions {
            (question.perspectives, question.supports) = (statements.clone(), None);
        }
    });
    (app, statements)
}

#[test]
fn of_42_statements_only_those_that_were_on_screen_get_a_label() {
    let (mut app, statements) = with_42_statements(30);
    let first = shown(&app);
    let act_1 = act(&press(&mut app, "2<Enter>"));
    assert_eq!(act_1.view.answers.len(), 9, "the window shows nine");
    assert!(act_1.view.answers[&statements[1]] && !act_1.view.answers[&statements[8]]);
    written(&mut app, act_1);
    // The next statements of the same passage.
    assert_eq!(
        (shown(&app), app.labelling.on_screen(30), app.labelling.pace.done),
        (first.clone(), 9..18, 0)
    );
    // A statement that was chosen on another page keeps its choice.
    press(&mut app, "1<PageDown>");
    let act_2 = act(&press(&mut app, "0"));
    assert_eq!(act_2.view.answers.len(), 9 + 1 + 9);
    assert!(act_2.view.answers[&statements[9]] && !act_2.view.answers[&statements[18]]);
    assert!(!act_2.view.answers.contains_key(&statements[10]));
    written(&mut app, act_2);
    for _ in 0..3 {
        let next = act(&press(&mut app, "<Enter>"));
        written(&mut app, next);
    }
    assert_ne!(shown(&app), first, "all 42 are decided");
    assert_eq!(app.labelling.pace.done, 1);
}

#[test]
fn on_the_lanes_too_only_the_statements_of_the_page_on_screen_get_a_label() {
    let mut app = asked(140, 40);
    let statements: Vec<String> = (0..42).map(|n| format!("Zoos should have {n:02} gates.")).collect();
    (app.question.perspectives, app.question.supports) = (statements.clone(), None);
    for (keys, page) in [("3", 0..9), ("0", 0..9), ("NNNN3", 36..42)] {
        let effects = press(&mut app, keys);
        let Some(Effect::Label(Labelling::Set(order))) = effects.last() else { panic!("{effects:?}") };
        let SetTo::Answers(answers) = &order.to else { panic!("{order:?}") };
        assert_eq!(answers.keys().collect::<Vec<_>>(), statements[page].iter().collect::<Vec<_>>(), "{keys}");
    }
    // What another annotator said counts, and is not taken over as one's own.
    let at = app.lanes[0].ranking[0].at;
    app.judgments.set_human(at, 38, Some(Some(true)));
    let effects = press(&mut app, "2");
    let Some(Effect::Label(Labelling::Set(order))) = effects.last() else { panic!("{effects:?}") };
    let SetTo::Answers(answers) = &order.to else { panic!("{order:?}") };
    let own: Vec<usize> = (0..42).filter(|i| answers.contains_key(&statements[*i])).collect();
    assert_eq!((own, answers[&statements[37]]), (vec![36, 37, 39, 40, 41], true));
}

#[test]
fn a_window_without_room_for_the_statements_takes_no_label() {
    let (mut app, _) = with_42_statements(14);
    assert_eq!(act(&press(&mut app, "<Enter>")).view.answers.len(), 5);
    let mut app = open(100, 10);
    assert_eq!(press(&mut app, "s"), []);
    assert!(app.notice.as_deref().unwrap().contains("too small"), "{:?}", app.notice);
}

#[test]
fn a_decision_says_whether_the_verdict_was_in_sight_and_under_which_guidelines() {
    let mut app = open(100, 30);
    let circumstances = |act: &Act| act.seen.clone().unwrap();
    let first = act(&press(&mut app, "s"));
    let guidelines = parallax::annotate::guidelines_hash(&app.labelling.open().unwrap().guidelines);
    assert_eq!((circumstances(&first).blind, circumstances(&first).guidelines), (false, guidelines));
    written(&mut app, first);
    // Hidden now, but it was in sight when this passage appeared.
    let second = act(&press(&mut app, "Bs"));
    assert!(!circumstances(&second).blind);
    written(&mut app, second);
    let third = act(&press(&mut app, "0"));
    assert!(circumstances(&third).blind);
    written(&mut app, third);
    assert!(!circumstances(&act(&press(&mut app, "BBs"))).blind, "a glance is enough");
}

#[test]
fn perspectives_of_many_are_chosen_by_number_and_kept_with_enter() {
    let mut app = many_sided(100, 30);
    let effects = press(&mut app, "a");
    lay(&mut app, &effects, |_| {});
    assert_eq!(press(&mut app, "s"), [], "there is no side to choose");
    assert!(app.notice.as_deref().unwrap().contains("the keys before its statements"));
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
fn evidence_is_marked_for_one_statement_alone() {
    let mut app = open(100, 30);
    // The first word for the first side, the next sentence for the other.
    press(&mut app, "es");
    press(&mut app, "ejo");
    let text = app.labelling.item().unwrap().passage.text.clone();
    let both = act(&press(&mut app, "b"));
    let [first, second] = SIDES.map(|side| both.view.evidence[side].clone());
    assert!(
        text.starts_with(&first) && !text.starts_with(&second) && text.contains(&second),
        "{first} {second}"
    );
    written(&mut app, both);
    press(&mut app, "h");
    assert_eq!(app.labelling.draft.evidence.len(), 2);
    // On a passage that is labelled, other words take the place of one of them.
    let changed = act(&press(&mut app, "evlls"));
    assert_ne!(changed.view.evidence[SIDES[0]], first);
    assert_eq!((&changed.view.evidence[SIDES[1]], changed.view.answers.len()), (&second, 2));
    written(&mut app, changed);
    // Words for a statement that it does not support wait until it does.
    let only_first = act(&press(&mut app, "s"));
    assert_eq!(only_first.view.evidence.len(), 1);
    written(&mut app, only_first);
    press(&mut app, "h");
    assert_eq!(press(&mut app, "eo"), []);
    assert!(app.notice.as_deref().unwrap().contains("once you label"), "{:?}", app.notice);
    let mut app = many_sided(100, 30);
    let effects = press(&mut app, "a");
    lay(&mut app, &effects, |_| {});
    assert_eq!(press(&mut app, "es"), []);
    assert!(app.notice.as_deref().unwrap().contains("no statement on screen"), "{:?}", app.notice);
    press(&mut app, "3");
    let act = act(&press(&mut app, "13<Enter>"));
    assert_eq!(act.view.evidence.keys().collect::<Vec<_>>(), ["Zoos should be licensed."]);
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
fn skipped_passages_come_again_after_all_others() {
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
    receive(&mut app, Reply::Labelled(Ok(None)));
    assert!(app.notice.is_some());
}

#[test]
fn the_order_by_doubt_follows_once_all_verdicts_are_there() {
    let mut app = open(100, 30);
    press(&mut app, "<Tab>");
    assert_eq!(app.labelling.order, Order::Uncertain);
    let count = app.labelling.queue.len();
    let number = app.labelling.number;
    for item in 0..count {
        let p = if item == 5 { 0.5 } else { 0.99 };
        receive(
            &mut app,
            Reply::Scored { number, item, probabilities: vec![Some(p), Some(0.01)], unclear: false },
        );
    }
    assert_eq!(
        (shown(&app).as_str(), app.labelling.queue[1]),
        ("zoos-01", 5),
        "the next one, not the one on screen"
    );
    receive(
        &mut app,
        Reply::Scored { number: number - 1, item: 0, probabilities: vec![Some(0.5)], unclear: false },
    );
    assert_eq!(app.labelling.scored[0], Some(vec![Some(0.99), Some(0.01)]), "an earlier batch says nothing");
}

#[test]
fn a_remark_typed_before_the_label_is_on_disk_is_not_a_label() {
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
    assert_eq!(app.screen, Screen::LABELLING);
    written(&mut app, second);
    assert_eq!((app.screen, app.labelling.pace.done), (Screen::LANES, 2));
}

#[test]
fn the_passage_on_screen_stays_when_the_order_by_doubt_is_known() {
    let mut app = open(100, 30);
    press(&mut app, "<Tab>tso");
    let (shown_before, number) = (shown(&app), app.labelling.number);
    for item in 0..app.labelling.queue.len() {
        receive(
            &mut app,
            Reply::Scored { number, item, probabilities: vec![Some(0.5), Some(0.01)], unclear: false },
        );
    }
    assert_eq!(shown(&app), shown_before);
    assert_eq!(app.labelling.typed.as_ref().unwrap().value(), "so");
}

#[test]
fn in_a_project_of_drawn_questions_the_interval_of_a_figure_is_shown_and_m_shows_another() {
    let mut app = asked(120, 40);
    let effects = press(&mut app, "a");
    lay(&mut app, &effects, |annotation| {
        annotation.order = Order::Random;
        annotation.drawn = Some(Drawn { of: 79, depth: 5, others: Vec::new() });
    });
    let (name, narrowing) = app.labelling.narrowing.clone().unwrap();
    assert!(name.starts_with("MRecall@5 of bm25"), "{name}");
    assert_eq!((narrowing.labelled, narrowing.of, narrowing.widths.len()), (0, 79, 0));
    press(&mut app, "m");
    assert!(app.labelling.narrowing.clone().unwrap().0.starts_with("Prec@5 of bm25"));
    // Every passage of the question's first five is labelled: one question of 79.
    while app.labelling.pace.done < app.labelling.pace.all {
        let effects = press(&mut app, "s");
        written(&mut app, act(&effects));
    }
    assert_eq!(app.labelling.narrowing.clone().unwrap().1.labelled, 1);
}

#[test]
fn the_screen_opens_at_the_passage_under_the_cursor() {
    let mut app = asked(100, 30);
    let effects = press(&mut app, "jjja");
    lay(&mut app, &effects, |_| {});
    assert_eq!(shown(&app), "zoos-04");
    // A project may hold other passages; then its own order begins.
    let mut app = asked(100, 30);
    let effects = press(&mut app, "jjja");
    lay(&mut app, &effects, |annotation| annotation.items.retain(|item| item.passage.id != "zoos-04"));
    assert_ne!(shown(&app), "zoos-04");
}

#[test]
fn labelling_begins_only_once_the_lists_are_there() {
    let mut app = crate::stage::asked(100, 30);
    for lane in &mut app.lanes {
        (lane.state, lane.ranking) = (LaneState::Waiting, Arc::new(Vec::new().into()));
    }
    assert_eq!(press(&mut app, "a"), []);
    assert!(app.notice.as_deref().unwrap().contains("still searching"), "{:?}", app.notice);
    assert_eq!(app.screen, Screen::LANES);
}
