//! Turns, late replies, lanes that fail, passages that are opened.

use crossterm::event::KeyCode;
use parallax::tui::update::update_in_burst;

use super::*;

#[test]
fn a_late_reply_is_dropped() {
    let mut app = asked(140, 40);
    app.turn = Turn(2);
    app.settled = false;
    let before: Vec<_> = app.lanes[0].ranking.iter().map(|ranked| ranked.at).collect();
    let known = app.judgments.pair(PassageIx(7), 0).cloned();
    for reply in [
        lane_ready(1, 0, &[7, 6]),
        Reply::LaneFailed { turn: Turn(1), lane: 1, reason: "too late".into(), waits: None },
        verdict(1, 7, 0, 0.9),
        Reply::AboutVerdicts { turn: Turn(1), text: "too late".into() },
        Reply::Settled { turn: Turn(1) },
    ] {
        assert_eq!(receive(&mut app, reply), []);
    }
    assert!(app.lanes[0].ranking.iter().map(|ranked| ranked.at).eq(before));
    assert_eq!(app.lanes[1].state, LaneState::Ready);
    assert_eq!(app.judgments.pair(PassageIx(7), 0).cloned(), known);
    assert_eq!(app.notice, None);
    assert!(!app.settled);
    receive(&mut app, Reply::Settled { turn: Turn(2) });
    assert!(app.settled);
}

#[test]
fn a_burst_of_verdicts_has_the_figures_of_one_message_after_another() {
    let (mut each, mut burst) = (asked(140, 40), asked(140, 40));
    let mut stale = false;
    for (at, perspective, p) in [(0, 0, 0.1), (1, 1, 0.2), (7, 0, 0.9), (7, 1, 0.1)] {
        receive(&mut each, verdict(1, at, perspective, p));
        update_in_burst(&mut burst, Msg::Engine(verdict(1, at, perspective, p)), &mut stale);
    }
    assert!(stale);
    // A message of another kind finds what the verdicts changed worked out.
    let down = || Msg::Key(KeyCode::Down.into());
    update(&mut each, down());
    update_in_burst(&mut burst, down(), &mut stale);
    assert!(!stale);
    let figures = |app: &App| app.lanes.iter().map(|lane| format!("{:?}", lane.figures)).collect::<Vec<_>>();
    assert_eq!(figures(&burst), figures(&each));
    assert_eq!((burst.judged_by, burst.lanes[0].selected), (each.judged_by, each.lanes[0].selected));
}

#[test]
fn a_burst_of_compared_questions_works_out_the_statistics_once() {
    let mut app = asked(140, 40);
    press(&mut app, "c");
    let (number, compared) = (app.comparing.number, Ok(app.compared()));
    let before = format!("{:?}", app.comparing.summary);
    let mut stale = false;
    let reply = Msg::Engine(Reply::Compared { number, question: 0, compared });
    update_in_burst(&mut app, reply, &mut stale);
    assert!(stale && app.comparing.questions[0].is_some());
    assert_eq!(format!("{:?}", app.comparing.summary), before, "nothing is drawn yet");
    update_in_burst(&mut app, Msg::Key(KeyCode::Down.into()), &mut stale);
    assert!(!stale && !app.comparing.summary.curves.is_empty());
}

#[test]
fn a_short_pause_in_typing_runs_the_term_lanes_and_a_long_one_runs_all_lanes() {
    let mut app = empty(140, 40);
    press(&mut app, "zo");
    let effects = press(&mut app, "o");
    let [
        Effect::WaitQuiet { turn, reach: Reach::Terms, pause: short },
        Effect::WaitQuiet { turn: same, reach: Reach::All, pause: long },
    ] = effects.as_slice()
    else {
        panic!("{effects:?}")
    };
    assert!(turn == same && *turn == app.turn && short < long);
    let turn = *turn;
    let (ordered, reach, _) = started(&update(&mut app, Msg::QuietPeriodEnded { turn, reach: Reach::Terms }));
    assert_eq!((ordered, reach), (turn, Reach::Terms));
    assert_eq!(app.question.text, "zoo");
    let (ordered, reach, _) = started(&update(&mut app, Msg::QuietPeriodEnded { turn, reach: Reach::All }));
    assert_eq!((ordered, reach), (turn, Reach::All));
    assert!(app.typing, "a pause leaves the cursor in the question line");
}

#[test]
fn a_pause_of_an_older_turn_does_nothing() {
    let mut app = empty(140, 40);
    press(&mut app, "z");
    let older = app.turn;
    press(&mut app, "o");
    assert_eq!(update(&mut app, Msg::QuietPeriodEnded { turn: older, reach: Reach::All }), []);
    assert_eq!(app.question.text, "");
}

#[test]
fn a_question_typed_while_the_corpus_opens_runs_once_it_is_open() {
    let mut app = App::new(&stage::start(), stage::size(140, 40));
    assert!(press(&mut app, "Is tea good?<Enter>").iter().all(|e| matches!(e, Effect::WaitQuiet { .. })));
    assert!(matches!(app.corpus, Corpus::Opening));
    let (_, reach, statements) = started(&receive(&mut app, Reply::Opened(Box::new(stage::opened()))));
    assert_eq!((reach, statements.len(), app.by), (Reach::All, 2, By::Rule));
}

#[test]
fn plus_and_minus_change_k_between_1_and_100_and_start_a_new_turn() {
    let mut app = asked(140, 40);
    let before = app.turn;
    let effects = press(&mut app, "+");
    let [Effect::Start { turn, plan, reach: Reach::All }] = effects.as_slice() else { panic!("{effects:?}") };
    assert_eq!((app.k, plan.k), (6, 6));
    assert!(*turn > before && *turn == app.turn);
    press(&mut app, "--");
    assert_eq!(app.k, 4);
    for (edge, key) in [(1, "-"), (100, "+")] {
        app.k = edge;
        let turn = app.turn;
        assert_eq!(press(&mut app, key), []);
        assert_eq!((app.k, app.turn), (edge, turn));
        assert!(app.notice.as_deref().is_some_and(|notice| notice.contains("from 1 to 100")));
    }
}

#[test]
fn capital_l_cycles_through_the_label_sources_or_says_that_there_are_no_labels() {
    let mut app = asked(140, 40);
    assert_eq!(press(&mut app, "L"), []);
    assert_eq!(app.judgments.source, LabelSource::Auto);
    assert!(app.notice.as_deref().is_some_and(|notice| notice.contains("--labels")));
    let Corpus::Open(opened) = &mut app.corpus else { panic!() };
    opened.labelled = true;
    let mut seen = Vec::new();
    for _ in 0..3 {
        press(&mut app, "L");
        seen.push(app.judgments.source);
    }
    assert_eq!(seen, [LabelSource::Model, LabelSource::Gold, LabelSource::Auto]);
    assert_eq!(app.notice, None);
}

#[test]
fn a_verdict_on_the_open_passage_requests_its_evidence_once() {
    let mut app = asked(140, 40);
    app.lanes[0].selected = 7;
    let explanation = studied(&press(&mut app, "<Enter>")).unwrap();
    assert!(
        explanation.statements.is_empty() && explanation.list.is_some(),
        "the explanation of its rank is requested at once"
    );
    assert_eq!(app.screen, Screen::PASSAGE);
    explained(&mut app);
    assert_eq!(receive(&mut app, verdict(1, 7, 1, 0.1)), [], "one statement alone decides nothing");
    let study = studied(&receive(&mut app, verdict(1, 7, 0, 0.9))).unwrap();
    assert_eq!((study.at, study.passage.id.as_str()), (PassageIx(7), "zoos-08"));
    let [own, other] = ["Zoos should be banned.", "Zoos should not be banned."].map(str::to_owned);
    assert_eq!(study.statements, [(0, own, Some(other))]);
    assert!(study.list.is_none(), "the explanation has arrived already");
    assert_eq!(receive(&mut app, verdict(1, 7, 1, 0.1)), []);
    assert_eq!(receive(&mut app, verdict(1, 7, 0, 0.9)), []);
    assert_eq!(receive(&mut app, verdict(1, 0, 0, 0.9)), [], "another passage is not open");
}

#[test]
fn terminated_quits_on_every_screen() {
    for screen in [Screen::LANES, Screen::PASSAGE, Screen::STATEMENTS, Screen::HELP] {
        let mut app = asked(140, 40);
        app.screen = screen;
        assert_eq!(update(&mut app, Msg::Terminated), [Effect::Quit]);
        assert_eq!(press(&mut app, "<C-c>"), [Effect::Quit]);
    }
}

#[test]
fn a_lane_that_fails_shows_its_reason_and_the_others_stay() {
    let mut app = asked(140, 40);
    let reason = "the index cannot be read";
    receive(&mut app, Reply::LaneFailed { turn: Turn(1), lane: 1, reason: reason.into(), waits: None });
    assert_eq!(app.lanes[1].state, LaneState::Failed(reason.into(), None));
    assert!(app.lanes[1].ranking.is_empty());
    for lane in [0, 2] {
        assert_eq!((app.lanes[lane].state.clone(), app.lanes[lane].ranking.len()), (LaneState::Ready, 8));
    }
    assert!(app.figures(&app.lanes[1]).is_none() && app.figures(&app.lanes[0]).is_some());
}

#[test]
fn a_lane_that_waits_for_vectors_runs_again_once_they_exist() {
    let mut app = asked(140, 40);
    let waits = Some(Job::Embedding);
    receive(&mut app, Reply::LaneFailed { turn: Turn(1), lane: 1, reason: "embedding".into(), waits });
    let progress = Progress { job: Job::Embedding, done: 1, total: 2 };
    update(&mut app, Msg::Progressed { progress, text: "embedding 1/2".into() });
    assert_eq!(app.job(Job::Embedding), Some(progress));
    let (turn, reach, _) = started(&receive(&mut app, Reply::Embedded(Ok(()))));
    assert_eq!((turn, reach, app.job(Job::Embedding)), (app.turn, Reach::All, None));
}

#[test]
fn the_cursor_follows_its_passage_among_the_first_k_and_else_returns_to_the_top() {
    let mut app = asked(140, 40);
    press(&mut app, "jj");
    receive(&mut app, lane_ready(1, 0, &[0, 1, 2, 3, 4, 5, 6, 7]));
    assert_eq!(app.lanes[0].selected, 2, "the list is the same");
    receive(&mut app, lane_ready(1, 0, &[3, 2, 1]));
    assert_eq!(app.lanes[0].selected, 1, "passage 2 is at rank 2 now");
    receive(&mut app, lane_ready(1, 0, &[0, 1, 3, 4, 5, 2]));
    assert_eq!(app.lanes[0].selected, 0, "it is below the first 5");
    receive(&mut app, lane_ready(1, 0, &[3, 0]));
    assert_eq!(app.lanes[0].selected, 0, "what is at the top stays at the top");
    press(&mut app, "jjjj");
    assert_eq!(app.lanes[0].selected, 1, "the cursor stops at the last passage");
}

#[test]
fn a_corpus_that_cannot_be_opened_says_why_and_can_be_left() {
    let mut app = App::new(&stage::start(), stage::size(80, 24));
    receive(&mut app, Reply::OpenFailed("corpus.jsonl:3: expected JSON".into()));
    assert!(matches!(&app.corpus, Corpus::Failed(reason) if reason.contains(":3:")));
    assert!(app.settled);
    assert_eq!(press(&mut app, "<Esc>q"), [Effect::Quit]);
}

#[test]
fn going_to_the_last_passage_scrolls_the_list_and_going_to_the_first_scrolls_back() {
    let mut app = asked(40, 12);
    press(&mut app, "G");
    assert_eq!(app.lanes[0].selected, 7);
    assert!(app.lanes[0].top > 0);
    press(&mut app, "g");
    assert_eq!((app.lanes[0].selected, app.lanes[0].top), (0, 0));
}

#[test]
fn a_query_is_the_same_from_any_screen() {
    let app = asked(140, 40);
    let plan = app.query();
    assert_eq!((plan.k, plan.lanes.len(), plan.question), (5, 3, stage::question()));
    let passage = app.open_passage().map(|(_, passage)| Arc::clone(&passage));
    assert_eq!(passage.map(|passage| passage.id.clone()), Some("zoos-01".into()));
}

#[test]
fn interrupted_evidence_is_requested_again() {
    let mut app = asked(140, 40);
    let opened = |effects: Vec<Effect>| {
        let study = studied(&effects).unwrap();
        (study.at.0, study.statements.len())
    };
    assert_eq!(opened(press(&mut app, "<Enter>")), (0, 1));
    assert_eq!(opened(press(&mut app, "n")), (1, 1));
    assert_eq!(opened(press(&mut app, "p")), (0, 1), "the first request was interrupted");
    receive(&mut app, Reply::Evidence { study: 3, at: PassageIx(0), perspective: 0, sentence: None });
    assert_eq!(opened(press(&mut app, "n")), (1, 1));
    assert_eq!(opened(press(&mut app, "p")), (0, 0), "the search ended without evidence");
}

#[test]
fn a_study_of_an_earlier_question_is_dropped() {
    let mut app = asked(140, 40);
    press(&mut app, "<Enter>");
    let study = app.studies;
    press(&mut app, "<Esc>/");
    press(&mut app, "<C-u>Should wolves be banned?<Enter>");
    receive(&mut app, Reply::Evidence { study, at: PassageIx(0), perspective: 0, sentence: None });
    let recipe = app.lanes[0].recipe.clone();
    receive(&mut app, Reply::Explained { study, recipe, at: PassageIx(0), explanations: Ok(Vec::new()) });
    assert!(app.reading.evidence.is_empty() && app.reading.why.is_none());
}

#[test]
fn a_late_explanation_of_another_passage_is_dropped() {
    let mut app = asked(140, 40);
    press(&mut app, "<Enter>");
    explained(&mut app);
    press(&mut app, "n");
    let (study, recipe) = (app.studies, app.lanes[0].recipe.clone());
    press(&mut app, "p");
    receive(&mut app, Reply::Explained { study, recipe, at: PassageIx(1), explanations: Ok(Vec::new()) });
    assert_eq!(app.reading.why.as_ref().map(|(at, ..)| *at), Some(PassageIx(0)));
}
