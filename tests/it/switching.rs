//! The switches in the interface: what a toggle orders, what it leaves to compare with, and adding and dropping lanes.

use std::time::Duration;

use parallax::corpus::PassageIx;
use parallax::engine::{Reach, Reply, Survey};
use parallax::pipeline::recipe::Switch;
use parallax::pipeline::{Compared, Plan, Tally};
use parallax::question::Question;
use parallax::tui::app::{App, Corpus, LaneState, Screen};
use parallax::tui::message::{Effect, Msg};
use parallax::tui::update::update;

use crate::stage::{PASSAGES, asked, empty, press, ranking};

fn recipes(app: &App) -> Vec<String> {
    app.lanes.iter().map(|lane| lane.recipe.to_string()).collect()
}

/// The plan of the one order among the effects.
fn plan(effects: &[Effect]) -> &Plan {
    let [Effect::Start { plan, reach: Reach::All, .. }] = effects else { panic!("{effects:?}") };
    plan
}

fn ready(app: &mut App, lane: usize, order: &[usize]) {
    let (turn, ranking) = (app.turn, ranking(&PASSAGES, order, 1.0));
    update(app, Msg::Engine(Reply::LaneReady { turn, lane, ranking, took: Duration::from_millis(1) }));
}

fn places(app: &App, lane: usize) -> Vec<u32> {
    app.lanes[lane].ranking.iter().map(|ranked| ranked.at.0).collect()
}

#[test]
fn a_toggle_changes_the_lane_with_the_cursor_alone_and_a_second_one_takes_it_back() {
    let mut app = asked(140, 40);
    let effects = press(&mut app, "<Tab>m");
    assert_eq!(plan(&effects).lanes.iter().map(ToString::to_string).collect::<Vec<_>>(), recipes(&app));
    assert_eq!(recipes(&app), ["bm25@k1=0.9,b=0.4", "minilm+mmr@0.75", "hybrid"]);
    assert_eq!(app.lanes[0].state, LaneState::Ready, "the other lanes keep their lists in full view");
    assert_eq!(app.lanes[1].state, LaneState::Waiting);
    press(&mut app, "m");
    assert_eq!(recipes(&app)[1], "minilm");
}

#[test]
fn a_capital_toggles_every_lane_that_has_a_use_for_the_switch() {
    let mut app = asked(140, 40);
    press(&mut app, "P");
    assert_eq!(recipes(&app), ["bm25@k1=0.9,b=0.4", "minilm+pap-plus@2", "hybrid+pap-plus@2"]);
    press(&mut app, "P");
    assert_eq!(recipes(&app), ["bm25@k1=0.9,b=0.4", "minilm", "hybrid"]);
    press(&mut app, "mM");
    assert!(recipes(&app).iter().all(|recipe| recipe.ends_with("+mmr@0.75")), "{:?}", recipes(&app));
}

#[test]
fn mmr_and_the_diversifier_shut_each_other_out() {
    let mut app = asked(140, 40);
    press(&mut app, "m");
    press(&mut app, "v");
    assert!(app.lanes[0].recipe.switches.is_on(Switch::Diversify));
    assert!(!app.lanes[0].recipe.switches.is_on(Switch::Mmr));
}

#[test]
fn a_switch_that_the_lane_has_no_use_for_says_why_and_orders_nothing() {
    let mut app = asked(140, 40);
    assert_eq!(press(&mut app, "p"), []);
    assert!(app.notice.as_ref().is_some_and(|notice| notice.contains("BM25 has none")), "{:?}", app.notice);
    app.question.perspectives.clear();
    for keys in ["<Tab>p", "v"] {
        assert_eq!(press(&mut app, keys), []);
        assert!(app.notice.as_ref().is_some_and(|notice| notice.contains("press i")), "{:?}", app.notice);
    }
}

#[test]
fn lambda_goes_up_and_down_the_grid_and_stops_at_its_ends() {
    let mut app = asked(140, 40);
    assert_eq!(press(&mut app, "<lt>"), []);
    assert!(app.notice.is_some(), "nothing re-ranks the lane yet");
    press(&mut app, "m>");
    assert_eq!(recipes(&app)[0], "bm25@k1=0.9,b=0.4+mmr@0.9");
    press(&mut app, ">>>>>>");
    assert_eq!(recipes(&app)[0], "bm25@k1=0.9,b=0.4+mmr@1");
    press(&mut app, "<lt><lt><lt><lt><lt><lt><lt><lt><lt><lt><lt>");
    assert_eq!(recipes(&app)[0], "bm25@k1=0.9,b=0.4+mmr@0");
    press(&mut app, "m");
    press(&mut app, "m");
    assert_eq!(recipes(&app)[0], "bm25@k1=0.9,b=0.4+mmr@0", "the last λ is remembered");
}

#[test]
fn before_and_after_are_swapped_and_swapped_back() {
    let mut app = asked(140, 40);
    let before = places(&app, 0);
    press(&mut app, "m");
    press(&mut app, "x");
    assert_eq!(recipes(&app)[0], "bm25@k1=0.9,b=0.4+mmr@0.75", "the new order has not come yet");
    assert!(app.notice.is_some());
    ready(&mut app, 0, &[3, 0, 1]);
    assert_eq!(places(&app, 0), [3, 0, 1]);
    press(&mut app, "x");
    assert_eq!((recipes(&app)[0].as_str(), places(&app, 0)), ("bm25@k1=0.9,b=0.4", before.clone()));
    assert_eq!(app.lanes[0].state, LaneState::Ready, "the old list is shown at once");
    press(&mut app, "x");
    assert_eq!((recipes(&app)[0].as_str(), places(&app, 0)), ("bm25@k1=0.9,b=0.4+mmr@0.75", vec![3, 0, 1]));
    assert!(
        app.lanes[0].before.as_ref().is_some_and(|was| was.ranking.rank_of(PassageIx(before[0])) == Some(1))
    );
}

#[test]
fn another_question_has_nothing_to_be_compared_with() {
    let mut app = asked(140, 40);
    press(&mut app, "m");
    ready(&mut app, 0, &[3, 0, 1]);
    assert!(app.lanes[0].before.is_some());
    press(&mut app, "/<C-u>Should wolves be banned?<Enter>");
    assert!(app.lanes.iter().all(|lane| lane.before.is_none()));
}

#[test]
fn lanes_are_added_dropped_and_ordered_and_one_always_stays() {
    let mut app = asked(140, 40);
    press(&mut app, "nm");
    assert_eq!(recipes(&app)[..2], ["bm25@k1=0.9,b=0.4", "bm25@k1=0.9,b=0.4+mmr@0.75"]);
    press(&mut app, "]");
    assert_eq!(recipes(&app)[1..3], ["minilm", "bm25@k1=0.9,b=0.4+mmr@0.75"]);
    press(&mut app, "[[[");
    assert_eq!((app.lane, recipes(&app)[0].as_str()), (0, "bm25@k1=0.9,b=0.4+mmr@0.75"));
    press(&mut app, "nnnn");
    assert_eq!(app.lanes.len(), 6);
    assert!(app.notice.as_ref().is_some_and(|notice| notice.contains("at most 6")));
    press(&mut app, "dddddddd");
    assert_eq!(app.lanes.len(), 1);
    assert!(app.notice.as_ref().is_some_and(|notice| notice.contains("last lane")));
}

#[test]
fn a_copied_recipe_is_one_that_a_lane_can_be_made_of() {
    let mut app = asked(140, 40);
    press(&mut app, "<Tab>mp");
    let effects = press(&mut app, "Y");
    let [Effect::Copy(recipe)] = effects.as_slice() else { panic!("{effects:?}") };
    assert_eq!(recipe.parse(), Ok(app.lanes[1].recipe.clone()));
}

#[test]
fn toggling_before_a_question_is_asked_changes_the_lane_and_orders_nothing() {
    let mut app = empty(140, 40);
    assert_eq!(press(&mut app, "<Esc>m"), []);
    assert_eq!(recipes(&app)[0], "bm25@k1=0.9,b=0.4+mmr@0.75");
}

#[test]
fn tuning_sweeps_all_forms_gives_the_lane_the_marked_one_and_stops_on_leaving() {
    let mut app = asked(140, 40);
    let effects = press(&mut app, "t");
    let [Effect::Survey(number, Survey::Sweep(sweep))] = effects.as_slice() else { panic!("{effects:?}") };
    assert_eq!((app.screen, sweep.questions.len(), app.tuning.at), (Screen::Tune, 1, 0));
    assert_eq!(sweep.forms.len(), 10);
    let tallies = vec![Tally::default(); 10];
    let late = Reply::Swept { number: number - 1, tallies: Ok(Vec::new()), ended: true };
    update(&mut app, Msg::Engine(late));
    assert!(!app.tuning.ended, "an older sweep says nothing of this one");
    update(&mut app, Msg::Engine(Reply::Swept { number: *number, tallies: Ok(tallies), ended: true }));
    assert!(app.tuning.ended);
    plan(&press(&mut app, "j"));
    assert_eq!(recipes(&app)[0], "bm25@k1=0.9,b=0.4+mmr@0.99");
    let effects = press(&mut app, "o");
    let [Effect::Survey(..)] = effects.as_slice() else { panic!("{effects:?}") };
    assert!(app.tuning.over_set && !app.tuning.ended);
    let effects = press(&mut app, "<Esc>");
    assert!(matches!(effects.as_slice(), [Effect::StopSurvey(later)] if *later > *number), "{effects:?}");
    assert_eq!(app.screen, Screen::Explore);
}

#[test]
fn a_typed_perspective_is_projected_toward_and_an_empty_one_is_not() {
    let mut app = asked(140, 40);
    press(&mut app, "<Tab>t=Animals suffer there.<Enter>");
    assert_eq!(recipes(&app)[1], "minilm+pap-plus@=Animals%20suffer%20there.");
    assert_eq!(app.tuning.switch, Switch::Project);
    press(&mut app, "=<Esc>");
    press(&mut app, "=<Enter>");
    assert_eq!(recipes(&app)[1], "minilm+pap-plus@=Animals%20suffer%20there.");
    press(&mut app, "<Esc><S-Tab>t=");
    assert!(app.tuning.typed.is_none() && app.notice.is_some(), "BM25 has no vectors to turn");
}

#[test]
fn sycophancy_asks_every_lane_and_an_answer_of_an_older_survey_is_dropped() {
    let mut app = asked(140, 40);
    let effects = press(&mut app, "y");
    let [Effect::Survey(number, Survey::Sway(plan))] = effects.as_slice() else { panic!("{effects:?}") };
    assert_eq!((app.screen, plan.lanes.len()), (Screen::Sway, 3));
    let late = Reply::Swayed { number: number - 1, lane: 0, swayed: Err("too late".into()) };
    update(&mut app, Msg::Engine(late));
    assert!(app.swaying.lanes[0].is_none());
    let beyond = Reply::Swayed { number: *number, lane: 9, swayed: Err("no such lane".into()) };
    update(&mut app, Msg::Engine(beyond));
    update(&mut app, Msg::Engine(Reply::Swayed { number: *number, lane: 1, swayed: Err("down".into()) }));
    assert!(app.swaying.lanes[1].as_ref().is_some_and(Result::is_err));
    press(&mut app, "<Tab>");
    assert_eq!((app.screen, app.lane), (Screen::Sway, 1));
    assert!(matches!(press(&mut app, "<Esc>").as_slice(), [Effect::StopSurvey(_)]));
}

#[test]
fn a_question_that_has_no_two_sides_cannot_be_asked_as_either() {
    let mut app = asked(140, 40);
    app.question.supports = None;
    assert_eq!(press(&mut app, "y"), []);
    assert!(app.screen == Screen::Explore && app.notice.is_some());
}

#[test]
fn comparing_orders_by_disagreement_and_opens_the_marked_question_with_the_same_lanes() {
    let mut app = asked(140, 40);
    let Corpus::Open(opened) = &mut app.corpus else { panic!("not open") };
    let wolves =
        Question { id: "w".into(), text: "Should wolves be fed?".into(), ..opened.questions[0].clone() };
    opened.questions.push(wolves);
    press(&mut app, "m");
    let effects = press(&mut app, "c");
    let [Effect::Survey(number, Survey::Compare(plan))] = effects.as_slice() else { panic!("{effects:?}") };
    assert_eq!(plan.lanes[0].to_string(), "bm25@k1=0.9,b=0.4+mmr@0.75");
    let compared = |order: [&[usize]; 3]| {
        let lists = order.map(|order| ranking(&PASSAGES, order, 1.0));
        let lists: Vec<_> = lists.iter().map(|list| Some(&list[..])).collect();
        Compared::of(&app.question, 5, &lists, &app.book)
    };
    let (alike, apart) = (compared([&[0, 1], &[0, 1], &[0, 1]]), compared([&[0, 1], &[2], &[0]]));
    assert_eq!(alike.overlap(0, 1), Some((1.0, 1.0)));
    assert_eq!(apart.at(0, 1), Some((1.0, 1.0)));
    for (question, compared) in [alike, apart].into_iter().enumerate() {
        let compared = Ok(compared);
        update(&mut app, Msg::Engine(Reply::Compared { number: *number, question, compared }));
    }
    assert_eq!(app.comparing.rows(0), [0, 1]);
    press(&mut app, "o");
    assert_eq!(app.comparing.rows(0), [1, 0], "the lanes differ most on the second");
    let effects = press(&mut app, "<Enter>");
    let [Effect::StopSurvey(_), Effect::Start { plan, .. }] = effects.as_slice() else {
        panic!("{effects:?}")
    };
    assert_eq!(plan.question.text, "Should wolves be fed?");
    assert_eq!(plan.lanes[0].to_string(), "bm25@k1=0.9,b=0.4+mmr@0.75");
    assert_eq!(app.screen, Screen::Explore);
}

#[test]
fn without_a_question_set_there_is_nothing_to_compare_over() {
    let mut app = asked(140, 40);
    let Corpus::Open(opened) = &mut app.corpus else { panic!("not open") };
    opened.questions.clear();
    assert_eq!(press(&mut app, "c"), []);
    assert!(app.notice.as_ref().is_some_and(|notice| notice.contains("--questions")));
}

#[test]
fn more_relevance_lowers_the_weight_of_a_diversifier_and_less_raises_it() {
    let mut app = asked(140, 40);
    press(&mut app, "v>");
    assert_eq!(recipes(&app)[0], "bm25@k1=0.9,b=0.4+xquad@0.25");
    press(&mut app, "<lt><lt>");
    assert_eq!(recipes(&app)[0], "bm25@k1=0.9,b=0.4+xquad@0.6");
}

#[test]
fn a_switch_after_an_edited_line_asks_what_stands_in_the_line() {
    let mut app = asked(140, 40);
    press(&mut app, "/ and aquariums<Esc>");
    let effects = press(&mut app, "m");
    assert_eq!(plan(&effects).question.text, "Should zoos be banned? and aquariums");
}

#[test]
fn help_goes_back_to_the_screen_it_was_called_from() {
    for (keys, screen) in [
        ("", Screen::Explore),
        ("<Enter>", Screen::Read),
        ("t", Screen::Tune),
        ("y", Screen::Sway),
        ("c", Screen::Compare),
    ] {
        let mut app = asked(140, 40);
        press(&mut app, keys);
        press(&mut app, "?");
        assert_eq!(app.screen, Screen::Help);
        press(&mut app, "q");
        assert_eq!(app.screen, screen);
    }
}

#[test]
fn when_the_vectors_are_there_the_open_instrument_asks_again() {
    for keys in ["t", "y", "c"] {
        let mut app = asked(140, 40);
        press(&mut app, keys);
        let before = app.surveys;
        let effects = update(&mut app, Msg::Engine(Reply::Embedded(Ok(()))));
        assert!(
            matches!(effects.as_slice(), [Effect::Survey(number, _)] if *number > before),
            "{keys}: {effects:?}"
        );
    }
}

#[test]
fn other_labels_are_asked_for_as_deep_as_they_need() {
    let mut app = asked(140, 40);
    let Corpus::Open(opened) = &mut app.corpus else { panic!("not open") };
    opened.labelled = true;
    let effects = press(&mut app, "s");
    assert_eq!(plan(&effects).source, app.book.source);
}
