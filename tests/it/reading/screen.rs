//! Reading on the screen.

use super::*;

#[test]
fn r_shows_the_stance_after_every_passage_without_a_model() {
    let mut app = asked(140, 40);
    assert_eq!(press(&mut app, "r"), []);
    assert_eq!(app.screen, Screen::READER);
    // The fourth passage takes a side, unclear which.
    assert_eq!(stances(&app), [Supports, Supports, Supports, Supports, Balanced]);
    let strip = app.stance_timeline(0).unwrap();
    assert_eq!((strip.turns, strip.removed.map(|removed| removed.len())), (vec![4], Some(1)));
    assert!(matches!(press(&mut app, "r").as_slice(), [Effect::StopBatch(_)]));
    assert_eq!(app.screen, Screen::LANES);
}

#[test]
fn dropping_and_moving_change_the_stance_at_once_and_undo_takes_back_one_after_another() {
    let mut app = asked(140, 40);
    press(&mut app, "rx");
    assert_eq!(stances(&app), [Opposes; 4]);
    press(&mut app, "x");
    assert_eq!(stances(&app).len(), 5, "the same key restores it");
    press(&mut app, "J");
    assert_eq!(stances(&app), [Opposes; 5]);
    assert_eq!(app.answering.at, 1, "the mark goes with the passage");
    assert_eq!(app.rows(0).iter().map(|row| row.rank).collect::<Vec<_>>(), [2, 1, 3, 4, 5]);
    press(&mut app, "K");
    assert_eq!(stances(&app), [Supports, Supports, Supports, Supports, Balanced]);
    press(&mut app, "uuu");
    assert_eq!(stances(&app), [Opposes; 4]);
    press(&mut app, "u");
    assert_eq!(stances(&app).len(), 5);
    press(&mut app, "u");
    assert!(app.notice.as_deref().is_some_and(|notice| notice.contains("nothing was changed")));
    press(&mut app, "KjjjjJJ");
    assert!(app.answering.past.is_empty(), "nothing moves beyond the ends");
}

#[test]
fn every_lane_has_a_list_of_its_own_and_undo_returns_to_the_lane_of_the_change() {
    let mut app = asked(140, 40);
    press(&mut app, "rx<Tab>x");
    assert_eq!((app.remaining(0).len(), app.remaining(1).len(), app.remaining(2).len()), (4, 4, 5));
    press(&mut app, "uu");
    assert_eq!((app.lane, app.remaining(0).len(), app.remaining(1).len()), (0, 5, 5));
}

#[test]
fn another_depth_keeps_the_users_changes() {
    let mut app = asked(140, 40);
    press(&mut app, "rJ");
    assert!(matches!(press(&mut app, "+").as_slice(), [Effect::Start { .. }]));
    let ranks: Vec<usize> = app.rows(0).iter().map(|row| row.rank).collect();
    assert_eq!(ranks, [2, 1, 3, 4, 5, 6]);
}

#[test]
fn a_question_without_two_sides_needs_a_reader() {
    let mut app = many_sided(140, 40);
    press(&mut app, "r");
    assert_eq!(app.screen, Screen::LANES);
    assert!(app.notice.as_deref().is_some_and(|notice| notice.contains("two sides")));
    stage::give_reader(&mut app, "m", false);
    press(&mut app, "r");
    assert_eq!((app.screen, app.stance_timeline(0)), (Screen::READER, None));
    let mut app = empty(140, 40);
    press(&mut app, "<Esc>r");
    assert_eq!(app.screen, Screen::LANES);
}

#[test]
fn answers_arrive_one_by_one_and_stay_valid_for_unchanged_passages() {
    let mut app = asked(140, 40);
    press(&mut app, "r<Enter>");
    assert!(app.notice.as_deref().is_some_and(|notice| notice.contains("--llm")));
    stage::give_reader(&mut app, "m", false);
    let effects = press(&mut app, "<Enter>");
    let [Effect::Batch(number, Batch::Read(hearing))] = effects.as_slice() else { panic!("{effects:?}") };
    assert_eq!(
        (hearing.want, hearing.passages.len(), hearing.question.as_str()),
        (Want::EachK(0), 5, QUESTION)
    );
    assert_eq!(*number, app.answering.number);
    heard(&mut app, ReadEvent::Answer(1, said("Yes")));
    heard(&mut app, ReadEvent::Answer(3, said("out of turn")));
    heard(&mut app, ReadEvent::Answer(2, said("No")));
    assert_eq!(app.answers().len(), 2);
    assert!(matches!(press(&mut app, "<Enter>").as_slice(), [Effect::StopBatch(_)]), "it can be given up");
    heard(&mut app, ReadEvent::Answer(3, said("too late")));
    assert_eq!(app.answers().len(), 2);
    // Only the answer from the first passage holds once the second is dropped.
    press(&mut app, "jx");
    assert_eq!(app.answers(), [said("Yes")]);
    let effects = press(&mut app, "<Enter>");
    let [Effect::Batch(_, Batch::Read(hearing))] = effects.as_slice() else { panic!("{effects:?}") };
    let ranks: Vec<usize> = hearing.passages.iter().map(|context| context.rank).collect();
    assert_eq!((hearing.want, ranks), (Want::EachK(1), vec![1, 3, 4, 5]));
    assert!(matches!(press(&mut app, "u").as_slice(), [Effect::StopBatch(_)]), "a change gives it up");
}

#[test]
fn an_answer_to_an_earlier_request_is_dropped_and_a_failure_is_shown() {
    let mut app = asked(140, 40);
    stage::give_reader(&mut app, "m", false);
    press(&mut app, "r<Enter>");
    let number = app.answering.number - 1;
    let late = parallax::engine::Reply::ReadEvent { number, event: ReadEvent::Answer(1, said("late")) };
    parallax::tui::update::update(&mut app, parallax::tui::message::Msg::Engine(late));
    assert!(app.answers().is_empty());
    heard(&mut app, ReadEvent::Ended(Some("the server is gone".into())));
    assert!(!app.answering.going && app.answering.failed.as_deref() == Some("the server is gone"));
}

#[test]
fn a_probe_keeps_what_its_kinds_were_and_needs_gold_answers_at_every_depth() {
    let mut app = asked(140, 40);
    stage::give_reader(&mut app, "m", false);
    press(&mut app, "r1");
    assert!(app.notice.as_deref().is_some_and(|notice| notice.contains("gold answers")));
    app.question.answers = vec!["yes".into()];
    press(&mut app, "1");
    assert!(app.notice.as_deref().is_some_and(|notice| notice.contains("every depth")));
    // 0 1 1 0 1: IZ DP SP DN DP
    read(&mut app, &["no", "Yes", "yes.", "no", "Yes"]);
    press(&mut app, "1");
    let kept =
        |app: &App| app.rows(0).iter().filter(|row| !row.dropped).map(|row| row.rank).collect::<Vec<_>>();
    assert_eq!(kept(&app), [2, 3, 5]);
    press(&mut app, "u4");
    assert_eq!(kept(&app), [1, 2, 5]);
    assert_eq!(app.answers().len(), 2, "the first two were read in this order");
}

#[test]
fn a_list_that_was_read_can_be_read_without_each_and_in_other_orders() {
    let mut app = asked(140, 40);
    stage::give_reader(&mut app, "m", false);
    press(&mut app, "r");
    assert_eq!(press(&mut app, "w"), []);
    assert!(app.notice.as_deref().is_some_and(|notice| notice.contains("no answer yet")));
    read(&mut app, &["a", "a", "a", "b", "b"]);
    let effects = press(&mut app, "w");
    assert!(matches!(effects.as_slice(), [Effect::Batch(_, Batch::Read(h))] if h.want == Want::Without));
    assert_eq!(app.attention(), [] as [f64; 0]);
    heard(&mut app, ReadEvent::Attention(vec![0.05, 0.2, 0.125, 0.5, 0.125]));
    for (place, text) in ["b", "B", "b", "a", "b"].into_iter().enumerate() {
        heard(&mut app, ReadEvent::Without(place, said(text)));
    }
    ended(&mut app);
    let hangs: Vec<_> = (0..5).map(|place| app.hangs_on(place)).collect();
    assert_eq!(hangs, [Some(false), Some(false), Some(false), Some(true), Some(false)]);
    press(&mut app, "o");
    heard(&mut app, ReadEvent::Reordered(Reordered { same: 7, of: 10 }));
    ended(&mut app);
    assert_eq!(app.reordered(), Some(Reordered { same: 7, of: 10 }));
    assert_eq!(app.attention()[3], 0.5);
    press(&mut app, "w");
    heard(&mut app, ReadEvent::Attention(vec![0.5, 0.125, 0.125, 0.125, 0.125]));
    assert_eq!(app.answering.shown.attention[0], 0.5, "the shares of the second reading are drawn");
    ended(&mut app);
    press(&mut app, "x");
    assert_eq!((app.reordered(), app.hangs_on(0)), (None, None), "it was another list");
    assert_eq!(app.attention(), [] as [f64; 0]);
}

#[test]
fn on_the_sample_the_stance_is_shown_and_recorded_answers_are_marked() {
    let annotation = TempDir::new().unwrap();
    let answers = annotation.path().join("answers.jsonl");
    let line = |k: usize, answer: &str| {
        format!("{{\"question\":\"{QUESTION}\",\"k\":{k},\"answer\":\"{answer}\"}}\n")
    };
    fs::write(&answers, (1..=5).map(|k| line(k, if k < 4 { "Yes" } else { "No" })).collect::<String>())
        .unwrap();
    let opening = |answers| Opening { data_dir: annotation.path().into(), answers, ..Opening::default() };
    let frame = played(opening(Some(answers)), "r<Enter>");
    for words in
        ["stance after each of the first 5", "BM25", "answer at each k, recorded answers", "4 changed", "No"]
    {
        assert!(frame.contains(words), "no `{words}` in\n{frame}");
    }
    let frame = played(opening(None), "rx");
    assert!(frame.contains("1 dropped") && !frame.contains("answer at each k"), "{frame}");
}

#[test]
fn a_model_reads_the_list_and_its_answers_are_reused() {
    let server = Server::start(vec![], |prompt| if prompt.contains("[2]") { "No." } else { "Yes." }.into());
    let annotation = TempDir::new().unwrap();
    let opening = || Opening {
        data_dir: annotation.path().into(),
        llm: Some((server.url.clone(), "tiny".into())),
        ..Opening::default()
    };
    let frame = played(opening(), "r<Enter><Wait>w<Wait>o");
    for words in ["by the model tiny", "Yes.", "No.", "shuffled orders", "another answer without 0 of the 5"]
    {
        assert!(frame.contains(words), "no `{words}` in\n{frame}");
    }
    let asked = server.asked.lock().unwrap().len();
    played(opening(), "r<Enter><Wait>w<Wait>o");
    assert_eq!(server.asked.lock().unwrap().len(), asked);
}

#[test]
fn a_stance_is_asked_for_only_between_two_sides_without_gold_answers_and_the_supporting_one_comes_first() {
    let sides = |change: fn(&mut App)| {
        let mut app = asked(140, 40);
        stage::give_reader(&mut app, "m", false);
        change(&mut app);
        let effects = press(&mut app, "r<Enter>");
        let [Effect::Batch(_, Batch::Read(hearing))] = effects.as_slice() else { panic!("{effects:?}") };
        hearing
            .sides
            .clone()
            .map(|sides| sides.map(|side| app.question.perspectives.iter().position(|own| *own == side)))
    };
    assert_eq!(sides(|_| ()), Some([Some(0), Some(1)]));
    assert_eq!(sides(|app| app.question.supports = Some(1)), Some([Some(1), Some(0)]));
    assert_eq!(sides(|app| app.question.supports = None), None);
    assert_eq!(sides(|app| app.question.answers = vec!["yes".into()]), None);
}

#[test]
fn if_there_are_two_sides_a_model_is_asked_which_one_the_passages_take() {
    let server = Server::start(vec![], |prompt| {
        let both = prompt.contains("A. Zoos should be banned.\nB. Zoos should not be banned.");
        if !both {
            "nonsense"
        } else if prompt.contains("[3]") {
            "B."
        } else {
            "A"
        }
        .into()
    });
    let annotation = TempDir::new().unwrap();
    let llm = Some((server.url.clone(), "tiny".into()));
    let frame =
        played(Opening { data_dir: annotation.path().into(), llm, ..Opening::default() }, "r<Enter><Wait>");
    let turned = frame.lines().find(|line| line.contains("3 changed")).unwrap_or_else(|| panic!("{frame}"));
    assert!(turned.contains("opposes"), "{frame}");
    assert!(frame.lines().any(|line| line.contains(" 2         supports")), "{frame}");
    assert!(!frame.contains("nonsense"), "{frame}");
}
