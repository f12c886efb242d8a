//! The switches on the built-in sample: equivalences that must hold for all passages, and the trace of every step.

use std::sync::{Arc, LazyLock};

use parallax::corpus::PassageIx;
use parallax::engine::{
    Explanation, LaneQuery, Lists, Opening, Probed, Ranking, Recipe, Setup, Step, explain, rank,
};
use parallax::question::Question;
use parallax::retrieve::Hit;
use parallax::work::Stop;
use tempfile::TempDir;

static SAMPLE: LazyLock<(TempDir, Setup)> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let detector = crate::TINY_DETECTOR.parse().unwrap();
    let opening = Opening { data_dir: folder.path().into(), detector, ..Opening::default() };
    let setup = Setup::open(&opening, &|_| (), &Stop::never()).unwrap();
    (folder, setup)
});

fn ranked(recipe: &str, question: &Question) -> Ranking {
    let recipe: Recipe = recipe.parse().unwrap();
    rank(&SAMPLE.1, &recipe, LaneQuery::neutral(question), &mut Lists::default(), &Stop::never()).unwrap()
}

fn order(ranking: &Ranking) -> Vec<u32> {
    ranking.iter().map(|ranked| ranked.at.0).collect()
}

#[test]
fn a_lambda_of_one_and_a_weight_of_zero_change_nothing() {
    for question in &SAMPLE.1.questions[..4] {
        for base in ["bm25", "minilm", "hybrid", "bm25+perspectives"] {
            let off = order(&ranked(base, question));
            for switch in ["mmr@1", "mmr@1,norm=dataset", "xquad@0"] {
                assert_eq!(order(&ranked(&format!("{base}+{switch}"), question)), off, "{base}+{switch}");
            }
        }
    }
}

#[test]
fn a_corpus_without_lists_of_vectors_is_searched_in_full_and_the_lane_says_so() {
    let question = &SAMPLE.1.questions[0];
    for base in ["minilm", "hybrid"] {
        let probed = ranked(&format!("{base}+ivf@1"), question);
        assert_eq!(order(&probed), order(&ranked(base, question)));
        assert!(probed.trace.notes.iter().any(|note| note.contains("all passages were compared")));
    }
}

#[test]
fn a_search_of_some_lists_says_how_many_of_the_first_passages_it_found() {
    let hit = |passage| Hit { passage: PassageIx(passage), score: 1.0 };
    let exact: Vec<Hit> = (0..100).map(hit).collect();
    let found: Vec<Hit> = [0, 1, 4, 9, 11, 12].map(hit).to_vec();
    let probed = Probed::new((5, 3), &found, &exact);
    assert_eq!(
        probed.to_string(),
        "ivf: nprobe 3 of 3 lists, 4 of 10 first passages of an exact search found"
    );
    assert_eq!(probed.plus(probed), Probed { lists: (3, 3), found: 8, of: 20 });
    assert_eq!(Probed::new((1, 3), &found[..1], &exact[..2]), Probed { lists: (1, 3), found: 1, of: 2 });
}

#[test]
fn lists_of_one_engine_share_their_passages() {
    let question = &SAMPLE.1.questions[0];
    let (lexical, dense) = (ranked("bm25", question), ranked("minilm", question));
    let both: Vec<_> = lexical
        .iter()
        .filter_map(|one| Some((one, dense.iter().find(|other| other.at == one.at)?)))
        .collect();
    assert!(both.len() > 5, "{}", both.len());
    assert!(both.iter().all(|(one, other)| Arc::ptr_eq(&one.passage, &other.passage)));
}

#[test]
fn re_ranking_keeps_the_same_passages_and_reports_their_earlier_ranks() {
    let question = &SAMPLE.1.questions[0];
    let plain = ranked("minilm", question);
    for switch in ["mmr@.5", "xquad@1", "pm2@.5"] {
        let reordered = ranked(&format!("minilm+{switch}"), question);
        let (mut left, mut right) = (order(&plain), order(&reordered));
        assert_ne!(left, right, "{switch}");
        left.sort_unstable();
        right.sort_unstable();
        assert_eq!(left, right, "{switch}");
        let third = &reordered[2];
        let reasons = explain(&SAMPLE.1, &reordered, &question.text, third.at).unwrap();
        let was = reasons.iter().find_map(|reason| match reason {
            Explanation::Mmr { was, .. } | Explanation::Diversified { was, .. } => Some(*was),
            _ => None,
        });
        assert_eq!(was, plain.rank_of(third.at), "{switch}");
    }
}

#[test]
fn on_unit_vectors_equivalent_projections_give_equal_lists() {
    for question in &SAMPLE.1.questions[..4] {
        let order = |variant: &str| order(&ranked(&format!("minilm+{variant}@2"), question));
        assert_eq!(order("add"), order("dual-sum"));
        assert_eq!(order("concat"), order_by_root(question));
    }
}

/// The list for the root alone: the supporting statement.
fn order_by_root(question: &Question) -> Vec<u32> {
    let text = question.perspectives[question.supports.unwrap()].clone();
    order(&ranked("minilm", &Question { text, ..question.clone() }))
}

#[test]
fn the_shares_of_the_terms_add_up_to_the_score_with_and_without_expansion() {
    let question = &SAMPLE.1.questions[0];
    for recipe in ["bm25", "bm25@k1=1.2,b=.75+keqe", "bm25+rm3", "bm25+csqe"] {
        let ranking = ranked(recipe, question);
        let mut added = false;
        for ranked in ranking.iter().take(5) {
            let reasons = explain(&SAMPLE.1, &ranking, &question.text, ranked.at).unwrap();
            let [Explanation::Terms { shares, score }] = reasons.as_slice() else { panic!("{reasons:?}") };
            let sum: f32 = shares.iter().map(|share| share.share).sum();
            assert!((sum - ranked.score).abs() < 1e-4 * ranked.score, "{recipe}: {sum} {}", ranked.score);
            assert_eq!(sum, *score);
            added |= shares.iter().any(|share| share.added);
        }
        assert_eq!(added, recipe != "bm25", "{recipe}");
    }
}

#[test]
fn a_merged_list_takes_the_queries_in_turn_and_reports_the_query_of_each_passage() {
    let question = &SAMPLE.1.questions[0];
    let merged = ranked("bm25+perspectives", question);
    let queries = merged.trace.steps.iter().find_map(|step| match step {
        Step::Retrieve { queries, .. } => Some(queries.clone()),
        _ => None,
    });
    let queries = queries.unwrap();
    assert!(queries.len() >= 3, "the recorded perspectives of the sample: {queries:?}");
    let texts: Vec<String> = queries.iter().map(|query| query.shown()).collect();
    assert!(texts.iter().all(|text| text.starts_with(&question.text)), "the question and then a perspective");
    let Some(Step::Merge { from }) = merged.trace.steps.last() else { panic!("no merge") };
    for ranked in merged.iter().take(10) {
        let own = ranked_for(&texts[from[&ranked.at]], question);
        assert!(own.rank_of(ranked.at).is_some());
    }
    assert_eq!(from[&merged[0].at], 0);
    assert_eq!(ranked_for(&texts[0], question)[0].at, merged[0].at);
}

fn ranked_for(text: &str, question: &Question) -> Ranking {
    ranked("bm25", &Question { text: text.into(), ..question.clone() })
}

#[test]
fn the_sample_replays_its_recorded_replies_and_says_so() {
    for question in &SAMPLE.1.questions {
        for kind in ["perspectives", "keqe", "csqe"] {
            let list = ranked(&format!("bm25+{kind}"), question);
            let printed = list.trace.expansion().unwrap().describe();
            assert!(
                printed.contains("recorded replies of"),
                "{}: {printed} {:?}",
                question.id,
                list.trace.notes
            );
        }
    }
}

#[test]
fn a_missing_perspective_fails_the_lane_and_is_named() {
    let question = &SAMPLE.1.questions[0];
    let recipe: Recipe = "minilm+pap@7".parse().unwrap();
    let failed =
        rank(&SAMPLE.1, &recipe, LaneQuery::neutral(question), &mut Lists::default(), &Stop::never());
    let error = failed.unwrap_err().to_string();
    assert!(error.contains("number 7") && error.contains("2 statements"), "{error}");
    let bare = Question { text: "Who pays for zoos?".into(), ..Question::default() };
    let recipe: Recipe = "bm25+xquad".parse().unwrap();
    let failed = rank(&SAMPLE.1, &recipe, LaneQuery::neutral(&bare), &mut Lists::default(), &Stop::never());
    assert!(failed.unwrap_err().to_string().contains("needs the question's perspectives"));
}

#[test]
fn projecting_a_text_equal_to_the_question_ranks_as_if_off_with_a_warning() {
    let question = &SAMPLE.1.questions[0];
    let toward = question.text.replace(' ', "%20").replace('?', "%3F");
    let list = ranked(&format!("minilm+pap@={toward}"), question);
    assert_eq!(order(&list), order(&ranked("minilm", question)));
    assert!(
        list.trace.notes.iter().any(|note| note.contains("nothing was projected")),
        "{:?}",
        list.trace.notes
    );
}

mod projections {
    //! Projections over a corpus that is large enough for codes.

    use std::sync::Arc;

    use parallax::corpus::{Corpus, Passage};
    use parallax::encode::{EncodeError, Encoder, ModelError, Role, Vectors};
    use parallax::project::{Parts, Perspective, Projection, Variant};
    use parallax::retrieve::dense::DenseRetriever;
    use parallax::vector::dot;
    use parallax::work::Stop;

    const DIMENSIONS: usize = 16;
    /// Larger than any corpus that is searched without codes.
    const ROWS: usize = 8_300;

    struct NoEncoder;

    impl Encoder for NoEncoder {
        fn key(&self) -> &str {
            "none"
        }
        fn dimensions(&self) -> usize {
            DIMENSIONS
        }
        fn encode(&self, _: &str, _: Role) -> Result<Vec<f32>, EncodeError> {
            Err(ModelError::NotOnnx.into())
        }
        fn passage(&self, _: &Passage) -> Result<Vec<f32>, EncodeError> {
            Err(ModelError::NotOnnx.into())
        }
    }

    /// Rows of unit length around a few centres, so that many are close and some are equal.
    fn rows() -> Vec<Vec<f32>> {
        let mut seed = 5u32;
        let mut next = || {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 8) as f32 / (1 << 23) as f32 - 1.0
        };
        let centres: Vec<Vec<f32>> = (0..5).map(|_| (0..DIMENSIONS).map(|_| next()).collect()).collect();
        let mut rows: Vec<Vec<f32>> = (0..ROWS)
            .map(|i| {
                let spread = if i < 30 { 0.0 } else { [0.001, 0.01, 0.1, 1.0][i % 4] };
                let row: Vec<f32> = centres[i % 5].iter().map(|x| x + spread * next()).collect();
                let length = dot(&row, &row).sqrt();
                row.iter().map(|x| x / length).collect()
            })
            .collect();
        rows[ROWS / 2] = vec![f32::NAN; DIMENSIONS];
        rows
    }

    #[test]
    fn a_search_along_a_projections_direction_equals_scoring_every_vector() {
        let (folder, rows) = (tempfile::tempdir().unwrap(), rows());
        let path = folder.path().join("v.f32");
        let bytes: Vec<u8> = rows.iter().flatten().flat_map(|x| x.to_le_bytes()).collect();
        std::fs::write(&path, bytes).unwrap();
        parallax::storage::checked::sum_file(&path, &path).unwrap();
        let vectors = Vectors::open(&path, DIMENSIONS).unwrap();
        assert!(vectors.codes().is_some());
        let corpus = Corpus::of_texts("t", &vec![String::new(); ROWS]).unwrap();
        let retriever = DenseRetriever::new(Arc::new(corpus), Arc::new(NoEncoder), Arc::new(vectors));
        let mut directions = 0;
        for i in 0..6 {
            let part = |at: usize| rows[i * 7 + at].clone();
            for variant in Variant::ALL {
                let parts = Parts { q: part(0), r: part(1), p: Perspective::Text(part(2)) };
                let (projection, _) = Projection::new(variant, parts);
                let Some((direction, slack)) = projection.direction() else { continue };
                directions += 1;
                let score = |passage: &[f32]| projection.score(passage);
                let found = retriever.best_along((&direction, slack), 50, &Stop::never(), score).unwrap();
                assert_eq!(found, retriever.best(50, &Stop::never(), score).unwrap(), "{variant:?}");
            }
        }
        assert!(directions >= 6 * 8);
    }
}

mod switching {
    //! The switches in the interface: the query of a toggle, the earlier list for comparison, and adding and removing lanes.

    use std::time::Duration;

    use parallax::corpus::PassageIx;
    use parallax::engine::recipe::Switch;
    use parallax::engine::{Batch, Reach, Reply};
    use parallax::engine::{Compared, Query, Tally};
    use parallax::question::Question;
    use parallax::tui::app::{App, Corpus, LaneState};
    use parallax::tui::keymap::Screen;
    use parallax::tui::message::{Effect, Msg};
    use parallax::tui::update::update;

    use crate::stage::{PASSAGES, asked, empty, press, ranking};

    fn recipes(app: &App) -> Vec<String> {
        app.lanes.iter().map(|lane| lane.recipe.to_string()).collect()
    }

    /// The plan of the one order among the effects.
    fn plan(effects: &[Effect]) -> &Query {
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
        assert!(
            app.notice.as_ref().is_some_and(|notice| notice.contains("BM25 has none")),
            "{:?}",
            app.notice
        );
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
        assert_eq!(
            (recipes(&app)[0].as_str(), places(&app, 0)),
            ("bm25@k1=0.9,b=0.4+mmr@0.75", vec![3, 0, 1])
        );
        assert!(
            app.lanes[0]
                .figures
                .before
                .as_ref()
                .is_some_and(|was| was.rank_of(PassageIx(before[0])) == Some(1))
        );
    }

    #[test]
    fn another_question_has_nothing_to_be_compared_with() {
        let mut app = asked(140, 40);
        press(&mut app, "m");
        ready(&mut app, 0, &[3, 0, 1]);
        assert!(app.lanes[0].figures.before.is_some());
        press(&mut app, "/<C-u>Should wolves be banned?<Enter>");
        assert!(app.lanes.iter().all(|lane| lane.figures.before.is_none()));
    }

    #[test]
    fn lanes_are_added_dropped_and_ordered_and_one_always_stays() {
        let mut app = asked(140, 40);
        press(&mut app, "n<Enter>m");
        assert_eq!(recipes(&app)[..2], ["bm25@k1=0.9,b=0.4", "bm25@k1=0.9,b=0.4+mmr@0.75"]);
        press(&mut app, "]");
        assert_eq!(recipes(&app)[1..3], ["minilm", "bm25@k1=0.9,b=0.4+mmr@0.75"]);
        press(&mut app, "[[[");
        assert_eq!((app.lane, recipes(&app)[0].as_str()), (0, "bm25@k1=0.9,b=0.4+mmr@0.75"));
        press(&mut app, &"n<Enter>".repeat(4));
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
        let [Effect::Batch(number, Batch::Sweep(sweep))] = effects.as_slice() else { panic!("{effects:?}") };
        assert_eq!((app.screen, sweep.questions.len(), app.tuning.at), (Screen::TUNE, 1, 0));
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
        let [Effect::Batch(..)] = effects.as_slice() else { panic!("{effects:?}") };
        assert!(app.tuning.over_set && !app.tuning.ended);
        let effects = press(&mut app, "<Esc>");
        let [Effect::StopRun(_), Effect::StopBatch(later)] = effects.as_slice() else {
            panic!("{effects:?}")
        };
        assert!(later > number && app.screen == Screen::LANES);
        assert_eq!(recipes(&app)[0], "bm25@k1=0.9,b=0.4", "Esc puts the lane back");
        press(&mut app, "u");
        assert!(app.notice.as_deref().unwrap().contains("nothing"), "a preview that was given up is no act");
        press(&mut app, "tjj<Enter>");
        assert_eq!(recipes(&app)[0], "bm25@k1=0.9,b=0.4+mmr@0.95", "Enter takes it");
        press(&mut app, "u");
        assert_eq!(recipes(&app)[0], "bm25@k1=0.9,b=0.4", "and it is one act");
    }

    #[test]
    fn a_dropped_lane_comes_back_by_undo_and_from_the_list_and_a_recipe_can_be_typed() {
        let mut app = asked(140, 40);
        press(&mut app, "<Tab>d");
        assert_eq!(recipes(&app).len(), 2);
        press(&mut app, "u");
        assert_eq!((recipes(&app)[1].as_str(), app.lane), ("minilm", 1));
        press(&mut app, "U");
        assert_eq!(recipes(&app).len(), 2);
        press(&mut app, "nback<Enter>");
        assert_eq!(recipes(&app)[2], "minilm");
        press(&mut app, "nbm25+mmr@.5");
        let effects = press(&mut app, "<Enter>");
        assert_eq!(plan(&effects).lanes[3].to_string(), "bm25@k1=0.9,b=0.4+mmr@0.5");
        press(&mut app, "nbm52");
        let palette = app.palette.as_ref().unwrap();
        assert!(palette.note.as_deref().is_some_and(|note| note.contains("bm25")), "{:?}", palette.note);
    }

    #[test]
    fn another_k_and_another_source_have_a_difference_too_and_a_pinned_state_stays_the_baseline() {
        let mut app = asked(140, 40);
        press(&mut app, "++");
        for lane in 0..3 {
            let order: Vec<u32> = places(&app, lane);
            ready(&mut app, lane, &order.iter().map(|at| *at as usize).collect::<Vec<_>>());
        }
        let change = app.lanes[0].figures.change.unwrap();
        assert!(change.prec.abs() > 0.0 && change.gap.is_none(), "seven passages against six: {change:?}");
        press(&mut app, "X");
        press(&mut app, "m");
        ready(&mut app, 0, &[5, 4, 3, 2, 1]);
        press(&mut app, "+");
        ready(&mut app, 0, &[5, 4, 3, 2, 1]);
        let pinned = app.lanes[0].figures.before.clone().unwrap();
        assert_eq!(pinned.len(), 8, "still the list that was pinned");
        press(&mut app, "X");
        assert_ne!(app.lanes[0].figures.before.as_ref().map(|before| before.len()), Some(8));
    }

    #[test]
    fn escape_cancels_what_is_running_and_puts_the_lane_back() {
        let mut app = asked(140, 40);
        press(&mut app, "e");
        assert_eq!(app.lanes[0].state, LaneState::Waiting);
        let turn = app.turn;
        let effects = press(&mut app, "<Esc>");
        assert!(matches!(effects.as_slice(), [Effect::StopRun(later)] if *later > turn), "{effects:?}");
        assert_eq!(
            (recipes(&app)[0].as_str(), &app.lanes[0].state),
            ("bm25@k1=0.9,b=0.4", &LaneState::Ready)
        );
        press(&mut app, "<Esc>");
        assert!(app.notice.as_deref().unwrap().contains("q quits"), "{:?}", app.notice);
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
        let [Effect::Batch(number, Batch::Sycophancy(plan))] = effects.as_slice() else {
            panic!("{effects:?}")
        };
        assert_eq!((app.screen, plan.lanes.len()), (Screen::SYCOPHANCY, 3));
        let late = Reply::Sycophancy { number: number - 1, lane: 0, sycophancy: Err("too late".into()) };
        update(&mut app, Msg::Engine(late));
        assert!(app.sycophancy_screen.lanes[0].is_none());
        let beyond = Reply::Sycophancy { number: *number, lane: 9, sycophancy: Err("no such lane".into()) };
        update(&mut app, Msg::Engine(beyond));
        update(
            &mut app,
            Msg::Engine(Reply::Sycophancy { number: *number, lane: 1, sycophancy: Err("down".into()) }),
        );
        assert!(app.sycophancy_screen.lanes[1].as_ref().is_some_and(Result::is_err));
        press(&mut app, "<Tab>");
        assert_eq!((app.screen, app.lane), (Screen::SYCOPHANCY, 1));
        assert!(matches!(press(&mut app, "<Esc>").as_slice(), [Effect::StopBatch(_)]));
    }

    #[test]
    fn a_question_that_has_no_two_sides_cannot_be_asked_as_either() {
        let mut app = asked(140, 40);
        app.question.supports = None;
        assert_eq!(press(&mut app, "y"), []);
        assert!(app.screen == Screen::LANES && app.notice.is_some());
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
        let [Effect::Batch(number, Batch::Compare(plan))] = effects.as_slice() else { panic!("{effects:?}") };
        assert_eq!(plan.lanes[0].to_string(), "bm25@k1=0.9,b=0.4+mmr@0.75");
        let compared = |order: [&[usize]; 3]| {
            let lists = order.map(|order| ranking(&PASSAGES, order, 1.0));
            let lists: Vec<_> = lists.iter().map(|list| Some(&list[..])).collect();
            Compared::of(&app.question, 5, &lists, &app.judgments)
        };
        let (alike, apart) = (compared([&[0, 1], &[0, 1], &[0, 1]]), compared([&[0, 1], &[2], &[0]]));
        assert_eq!(alike.overlap(0, 1), Some((1.0, 1.0)));
        let (recall, prec) = apart.at(0, 1).unwrap();
        assert!(recall > 0.9 && prec > 0.9 && recall < 1.0, "what the probabilities expect: {recall} {prec}");
        for (question, compared) in [alike, apart].into_iter().enumerate() {
            let compared = Ok(compared);
            update(&mut app, Msg::Engine(Reply::Compared { number: *number, question, compared }));
        }
        assert_eq!(app.comparing.summary.rows, [0, 1]);
        press(&mut app, "o");
        assert_eq!(app.comparing.summary.rows, [1, 0], "the lanes differ most on the second");
        let effects = press(&mut app, "<Enter>");
        let [Effect::StopBatch(_), Effect::Start { plan, .. }] = effects.as_slice() else {
            panic!("{effects:?}")
        };
        assert_eq!(plan.question.text, "Should wolves be fed?");
        assert_eq!(plan.lanes[0].to_string(), "bm25@k1=0.9,b=0.4+mmr@0.75");
        assert_eq!(app.screen, Screen::LANES);
    }

    #[test]
    fn of_two_questions_with_the_same_text_the_marked_one_is_opened() {
        let mut app = asked(140, 40);
        let Corpus::Open(opened) = &mut app.corpus else { panic!("not open") };
        let perspectives = vec!["Zoos are kind.".to_owned(), "Zoos are cruel.".to_owned()];
        let second = Question { id: "z".into(), perspectives, ..opened.questions[0].clone() };
        opened.questions.push(second.clone());
        let effects = press(&mut app, "cj<Enter>");
        let Some(Effect::Start { plan, .. }) = effects.last() else { panic!("{effects:?}") };
        assert_eq!(plan.question, second);
        assert!(app.judgments.pair(PassageIx(0), 0).is_none(), "the statements are others");
        press(&mut app, "+");
        assert_eq!(app.question, second, "asking again keeps it");
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
    fn a_switch_after_an_edit_that_was_given_up_asks_the_question_as_it_was() {
        let mut app = asked(140, 40);
        press(&mut app, "/ and aquariums<Esc>");
        let effects = press(&mut app, "m");
        assert_eq!(plan(&effects).question.text, "Should zoos be banned?");
    }

    #[test]
    fn help_goes_back_to_the_screen_it_was_called_from() {
        for (keys, screen) in [
            ("", Screen::LANES),
            ("<Enter>", Screen::PASSAGE),
            ("t", Screen::TUNE),
            ("y", Screen::SYCOPHANCY),
            ("c", Screen::COMPARE),
        ] {
            let mut app = asked(140, 40);
            press(&mut app, keys);
            press(&mut app, "?");
            assert_eq!(app.screen, Screen::HELP);
            press(&mut app, "q");
            assert_eq!(app.screen, screen);
        }
    }

    #[test]
    fn when_the_vectors_are_there_the_open_instrument_asks_again() {
        for keys in ["t", "y", "c"] {
            let mut app = asked(140, 40);
            press(&mut app, keys);
            let before = app.batches;
            let effects = update(&mut app, Msg::Engine(Reply::Embedded(Ok(()))));
            assert!(
                matches!(effects.as_slice(), [Effect::Batch(number, _)] if *number > before),
                "{keys}: {effects:?}"
            );
        }
    }

    #[test]
    fn other_labels_are_asked_for_as_deep_as_they_need() {
        let mut app = asked(140, 40);
        let Corpus::Open(opened) = &mut app.corpus else { panic!("not open") };
        opened.labelled = true;
        let effects = press(&mut app, "L");
        assert_eq!(plan(&effects).source, app.judgments.source);
    }
}
