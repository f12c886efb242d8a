//! Messages in, state and effects out.

use std::sync::Arc;
use std::time::Duration;

use parallax::corpus::PassageIx;
use parallax::detect::LabelSource;
use parallax::engine::{Reach, Reply, Study, Turn};
use parallax::pipeline::Judged;
use parallax::question::By;
use parallax::tui::app::{App, Corpus, LaneState, Screen};
use parallax::tui::message::{Effect, Msg};
use parallax::tui::update::update;
use parallax::work::{Job, Progress};

use crate::stage::{self, PASSAGES, QUESTION, asked, empty, press, ranking, said};

fn tell(app: &mut App, reply: Reply) -> Vec<Effect> {
    update(app, Msg::Engine(reply))
}

fn lane_ready(turn: u64, lane: usize, order: &[usize]) -> Reply {
    let ranking = ranking(&PASSAGES, order, 1.0);
    Reply::LaneReady { turn: Turn(turn), lane, ranking, took: Duration::from_millis(1) }
}

fn verdict(turn: u64, at: u32, perspective: usize, p: f32) -> Reply {
    Reply::Verdict { turn: Turn(turn), judged: Judged { at: PassageIx(at), perspective, known: said(p) } }
}

/// The reach and the statements of the one plan that was ordered.
fn started(effects: &[Effect]) -> (Turn, Reach, Vec<String>) {
    let [Effect::Start { turn, plan, reach }] = effects else { panic!("no plan alone: {effects:?}") };
    (*turn, *reach, plan.question.perspectives.clone())
}

#[test]
fn late_reply_is_dropped() {
    let mut app = asked(140, 40);
    app.turn = Turn(2);
    app.settled = false;
    let before: Vec<_> = app.lanes[0].ranking.iter().map(|ranked| ranked.at).collect();
    let known = app.book.known(PassageIx(7), 0).cloned();
    for reply in [
        lane_ready(1, 0, &[7, 6]),
        Reply::LaneFailed { turn: Turn(1), lane: 1, reason: "too late".into(), waits: None },
        verdict(1, 7, 0, 0.9),
        Reply::AboutVerdicts { turn: Turn(1), told: "too late".into() },
        Reply::Settled { turn: Turn(1) },
    ] {
        assert_eq!(tell(&mut app, reply), []);
    }
    assert!(app.lanes[0].ranking.iter().map(|ranked| ranked.at).eq(before));
    assert_eq!(app.lanes[1].state, LaneState::Ready);
    assert_eq!(app.book.known(PassageIx(7), 0).cloned(), known);
    assert_eq!(app.notice, None);
    assert!(!app.settled);
    tell(&mut app, Reply::Settled { turn: Turn(2) });
    assert!(app.settled);
}

#[test]
fn typing_asks_the_term_lanes_after_the_short_pause_and_all_lanes_after_the_long_one() {
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
    assert!(app.typing, "a pause does not take the cursor away");
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
fn a_key_that_only_moves_the_cursor_asks_nothing() {
    let mut app = empty(140, 40);
    press(&mut app, "zoos");
    let turn = app.turn;
    assert_eq!(press(&mut app, "<Left><Home>"), []);
    assert_eq!(app.turn, turn);
}

#[test]
fn enter_on_an_empty_line_tells_what_to_do() {
    let mut app = empty(140, 40);
    assert_eq!(
        press(&mut app, "<Space><Enter>").iter().filter(|e| matches!(e, Effect::Start { .. })).count(),
        0
    );
    assert!(app.typing);
    assert!(app.notice.as_deref().is_some_and(|notice| notice.contains("type a question first")));
}

#[test]
fn enter_asks_all_lanes_and_a_question_of_the_set_brings_its_own_statements() {
    let mut app = empty(140, 40);
    press(&mut app, "should zoos be banned?");
    let (turn, reach, statements) = started(&press(&mut app, "<Enter>"));
    assert_eq!((turn, reach), (app.turn, Reach::All));
    assert_eq!(statements, stage::question().perspectives);
    assert_eq!(app.by, By::Given);
    assert!(!app.typing && app.lanes.iter().all(|lane| lane.state == LaneState::Waiting));
}

#[test]
fn a_question_asked_while_the_corpus_is_opened_starts_when_it_is_open() {
    let mut app = App::new(&stage::start(), stage::size(140, 40));
    assert!(press(&mut app, "Is tea good?<Enter>").iter().all(|e| matches!(e, Effect::WaitQuiet { .. })));
    assert!(matches!(app.corpus, Corpus::Opening));
    let (_, reach, statements) = started(&tell(&mut app, Reply::Opened(Box::new(stage::opened()))));
    assert_eq!((reach, statements.len(), app.by), (Reach::All, 2, By::Rule));
}

#[test]
fn plus_and_minus_change_k_within_1_and_100_and_start_a_new_turn() {
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
fn s_without_labels_tells_so_and_with_labels_goes_round() {
    let mut app = asked(140, 40);
    assert_eq!(press(&mut app, "s"), []);
    assert_eq!(app.book.source, LabelSource::Auto);
    assert!(app.notice.as_deref().is_some_and(|notice| notice.contains("--labels")));
    let Corpus::Open(opened) = &mut app.corpus else { panic!() };
    opened.labelled = true;
    let mut seen = Vec::new();
    for _ in 0..3 {
        press(&mut app, "s");
        seen.push(app.book.source);
    }
    assert_eq!(seen, [LabelSource::Model, LabelSource::Gold, LabelSource::Auto]);
    assert_eq!(app.notice, None);
}

#[test]
fn edited_statements_become_the_question_s_and_are_asked() {
    let mut app = asked(140, 40);
    let before = app.turn;
    press(&mut app, "i");
    assert_eq!(app.screen, Screen::Statements);
    let (turn, reach, statements) = started(&press(&mut app, "<End><BS>, all of them.<Enter>"));
    assert!(turn > before && reach == Reach::All);
    assert_eq!(statements, ["Zoos should be banned, all of them.", "Zoos should not be banned."]);
    assert_eq!(
        (app.question.perspectives.clone(), app.by, app.screen),
        (statements, By::User, Screen::Explore)
    );
    assert_eq!(app.book.known(PassageIx(0), 0), None, "verdicts on other statements do not count");
}

#[test]
fn statements_left_as_they_were_ask_nothing_and_escape_forgets_the_edit() {
    let mut app = asked(140, 40);
    let turn = app.turn;
    assert_eq!(press(&mut app, "i<Enter>ixyz<Esc>"), []);
    assert_eq!((app.turn, app.question.clone(), app.screen), (turn, stage::question(), Screen::Explore));
}

#[test]
fn a_third_statement_makes_the_question_many_sided_and_dropping_all_leaves_none() {
    let mut app = asked(140, 40);
    let (.., statements) = started(&press(&mut app, "i<C-n>Zoos should be free.<Enter>"));
    assert_eq!((statements.len(), app.question.supports), (3, None));
    let (.., statements) = started(&press(&mut app, "i<C-x><C-x><C-u><End><C-w><C-w><C-w><C-w><C-w><Enter>"));
    assert_eq!((statements, app.by), (Vec::<String>::new(), By::None));
}

#[test]
fn swapping_sides_keeps_the_statements_and_turns_the_supporting_one() {
    let mut app = asked(140, 40);
    let (.., statements) = started(&press(&mut app, "i<C-s><Enter>"));
    assert_eq!((statements, app.question.supports), (stage::question().perspectives, Some(1)));
}

#[test]
fn a_verdict_for_the_open_passage_orders_its_evidence_once() {
    let mut app = asked(140, 40);
    app.lanes[0].selected = 7;
    let why = studied(&press(&mut app, "<Enter>")).unwrap();
    assert!(why.statements.is_empty() && why.list.is_some(), "why it stands there is asked at once");
    assert_eq!(app.screen, Screen::Read);
    explained(&mut app);
    let study = studied(&tell(&mut app, verdict(1, 7, 0, 0.9))).unwrap();
    assert_eq!((study.at, study.passage.id.as_str()), (PassageIx(7), "zoos-08"));
    assert_eq!(study.statements, [(0, "Zoos should be banned.".to_owned())]);
    assert!(study.list.is_none(), "why it stands there is known");
    assert_eq!(tell(&mut app, verdict(1, 7, 1, 0.1)), []);
    assert_eq!(tell(&mut app, verdict(1, 7, 0, 0.9)), []);
    assert_eq!(tell(&mut app, verdict(1, 0, 0, 0.9)), [], "another passage is not open");
}

#[test]
fn terminated_quits_on_every_screen() {
    for screen in [Screen::Explore, Screen::Read, Screen::Statements, Screen::Help] {
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
    tell(&mut app, Reply::LaneFailed { turn: Turn(1), lane: 1, reason: reason.into(), waits: None });
    assert_eq!(app.lanes[1].state, LaneState::Failed(reason.into(), None));
    assert!(app.lanes[1].ranking.is_empty());
    for lane in [0, 2] {
        assert_eq!((app.lanes[lane].state.clone(), app.lanes[lane].ranking.len()), (LaneState::Ready, 8));
    }
    assert!(app.figures(&app.lanes[1]).is_none() && app.figures(&app.lanes[0]).is_some());
}

#[test]
fn a_lane_that_waits_for_vectors_is_asked_again_when_they_are_there() {
    let mut app = asked(140, 40);
    let waits = Some(Job::Embedding);
    tell(&mut app, Reply::LaneFailed { turn: Turn(1), lane: 1, reason: "embedding".into(), waits });
    let progress = Progress { job: Job::Embedding, done: 1, total: 2 };
    update(&mut app, Msg::Progressed { progress, told: "embedding 1/2".into() });
    assert_eq!(app.job(Job::Embedding), Some(progress));
    let (turn, reach, _) = started(&tell(&mut app, Reply::Embedded(Ok(()))));
    assert_eq!((turn, reach, app.job(Job::Embedding)), (app.turn, Reach::All, None));
}

#[test]
fn the_mark_stays_on_a_list_that_stayed_the_same_and_goes_home_on_another() {
    let mut app = asked(140, 40);
    press(&mut app, "jj");
    tell(&mut app, lane_ready(1, 0, &[0, 1, 2, 3, 4, 5, 6, 7]));
    assert_eq!(app.lanes[0].selected, 2);
    tell(&mut app, lane_ready(1, 0, &[3, 1]));
    assert_eq!(app.lanes[0].selected, 0);
    press(&mut app, "jjjj");
    assert_eq!(app.lanes[0].selected, 1, "the last passage is the end");
}

#[test]
fn a_corpus_that_cannot_be_opened_says_why_and_can_be_left() {
    let mut app = App::new(&stage::start(), stage::size(80, 24));
    tell(&mut app, Reply::OpenFailed("corpus.jsonl:3: expected JSON".into()));
    assert!(matches!(&app.corpus, Corpus::Failed(reason) if reason.contains(":3:")));
    assert!(app.settled);
    assert_eq!(press(&mut app, "<Esc>q"), [Effect::Quit]);
}

#[test]
fn pasted_text_becomes_one_safe_line() {
    let mut app = empty(140, 40);
    update(&mut app, Msg::Pasted(" Should zoos\n\u{1b}[31mbe banned? ".into()));
    assert!(!app.line.value().contains(['\n', '\u{1b}']));
    assert!(app.line.value().starts_with("Should zoos "));
    assert!(QUESTION.starts_with("Should zoos"));
}

#[test]
fn going_to_the_last_passage_scrolls_the_list_and_back_again() {
    let mut app = asked(40, 12);
    press(&mut app, "G");
    assert_eq!(app.lanes[0].selected, 7);
    assert!(app.lanes[0].top > 0);
    press(&mut app, "g");
    assert_eq!((app.lanes[0].selected, app.lanes[0].top), (0, 0));
}

#[test]
fn a_plan_is_the_same_from_any_screen() {
    let app = asked(140, 40);
    let plan = app.plan();
    assert_eq!((plan.k, plan.lanes.len(), plan.question), (5, 3, stage::question()));
    let passage = app.open_passage().map(|(_, passage)| Arc::clone(&passage));
    assert_eq!(passage.map(|passage| passage.id.clone()), Some("zoos-01".into()));
}

#[test]
fn evidence_that_a_later_passage_cut_short_is_ordered_again_on_return() {
    let mut app = asked(140, 40);
    let opened = |effects: Vec<Effect>| {
        let study = studied(&effects).unwrap();
        (study.at.0, study.statements.len())
    };
    assert_eq!(opened(press(&mut app, "<Enter>")), (0, 1));
    assert_eq!(opened(press(&mut app, "n")), (1, 1));
    assert_eq!(opened(press(&mut app, "p")), (0, 1), "it was not found before");
    tell(&mut app, Reply::Evidence { study: 3, at: PassageIx(0), perspective: 0, sentence: None });
    assert_eq!(opened(press(&mut app, "n")), (1, 1));
    assert_eq!(opened(press(&mut app, "p")), (0, 0), "it was looked for and none was found");
}

fn studied(effects: &[Effect]) -> Option<Study> {
    match effects {
        [Effect::Study(study)] => Some(study.clone()),
        [] => None,
        other => panic!("{other:?}"),
    }
}

/// Answers why the open passage stands where it does.
fn explained(app: &mut App) {
    let (at, _) = app.open_passage().unwrap();
    let (study, recipe) = (app.studies, app.lanes[app.lane].recipe.clone());
    tell(app, Reply::Why { study, recipe, at, reasons: Ok(Vec::new()) });
}

#[test]
fn a_study_of_an_earlier_question_says_nothing_of_this_one() {
    let mut app = asked(140, 40);
    press(&mut app, "<Enter>");
    let study = app.studies;
    press(&mut app, "<Esc>/");
    press(&mut app, "<C-u>Should wolves be banned?<Enter>");
    tell(&mut app, Reply::Evidence { study, at: PassageIx(0), perspective: 0, sentence: None });
    let recipe = app.lanes[0].recipe.clone();
    tell(&mut app, Reply::Why { study, recipe, at: PassageIx(0), reasons: Ok(Vec::new()) });
    assert!(app.reading.evidence.is_empty() && app.reading.why.is_none());
}

#[test]
fn who_types_while_the_corpus_is_opened_goes_on_typing() {
    let mut app = App::new(&stage::start(), stage::size(140, 40));
    press(&mut app, "Should a ");
    tell(&mut app, Reply::Opened(Box::new(stage::opened())));
    assert!(app.typing);
    assert!(press(&mut app, "quiet").iter().all(|effect| *effect != Effect::Quit));
    assert_eq!(app.line.value(), "Should a quiet");
}

#[test]
fn another_depth_asks_what_stands_in_the_line_and_not_the_question_before() {
    let mut app = asked(140, 40);
    press(&mut app, "/<C-u>Should cats be banned?<Esc>");
    press(&mut app, "+");
    assert_eq!(app.plan().question.text, "Should cats be banned?");
    assert_eq!(app.question.perspectives[0], "Cats should be banned.");
}

#[test]
fn a_paste_without_end_is_cut_and_still_asked_and_can_be_taken_back() {
    let mut app = asked(140, 40);
    press(&mut app, "/<C-u>");
    let effects = update(&mut app, Msg::Pasted("zoo ".repeat(1_000)));
    assert!(effects.iter().any(|effect| matches!(effect, Effect::WaitQuiet { reach: Reach::All, .. })));
    assert_eq!(app.line.value().chars().count(), 2_000);
    press(&mut app, "<C-u>");
    assert_eq!(app.line.value(), "");
}

#[test]
fn an_action_is_found_by_its_words_and_done() {
    let mut app = asked(140, 40);
    press(&mut app, ":mmr none");
    assert!(app.palette.is_some() && app.lanes.iter().all(|lane| !lane.recipe.to_string().contains("mmr")));
    press(&mut app, "<Down><Up><Enter>");
    assert!(app.palette.is_none());
    assert!(app.lanes.iter().all(|lane| lane.recipe.to_string().contains("mmr")));
}

#[test]
fn words_that_no_action_has_do_nothing_and_escape_changes_nothing() {
    let mut app = asked(140, 40);
    assert_eq!(press(&mut app, ":xyzzy<Enter>"), []);
    assert!(app.palette.is_some());
    assert_eq!(press(&mut app, "<Esc>q"), [Effect::Quit]);
}

#[test]
fn an_action_is_looked_for_among_those_of_the_screen_it_was_called_from() {
    let mut app = asked(140, 40);
    press(&mut app, "<Enter>:next pass<Enter>");
    assert_eq!((app.screen, app.lanes[0].selected), (Screen::Read, 1));
}
