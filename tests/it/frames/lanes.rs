//! The lanes, a passage in full, the statements, the keys.

use parallax::engine::{Figures, Judgments};
use parallax::tui::update::refresh;

use super::*;

#[test]
fn the_lanes_side_by_side() {
    looks("lanes-140x40", &asked(140, 40), COLOURED);
}

#[test]
fn the_lanes_on_100_columns() {
    looks("lanes-100x30", &asked(100, 30), COLOURED);
}

#[test]
fn the_lanes_on_80_columns() {
    looks("lanes-80x24", &asked(80, 24), COLOURED);
}

#[test]
fn one_lane_on_40_columns() {
    looks("lanes-40x12", &asked(40, 12), COLOURED);
}

#[test]
fn the_end_of_the_help_can_be_reached_on_a_low_screen() {
    for keys in ["G", "<End>", &"j".repeat(400), &"<PageDown>".repeat(40)] {
        let mut app = after(asked(80, 24), &format!("?{keys}"));
        let text = |app: &App| frame(app, COLOURED).unwrap().dump(false);
        assert!(text(&app).contains("leave at once"), "{}", text(&app));
        press(&mut app, "k");
        assert!(!text(&app).contains("leave at once"), "{}", text(&app));
        press(&mut app, "g");
        assert!(text(&app).contains("Marks"), "{}", text(&app));
    }
}

#[test]
fn foreign_scripts_and_escape_sequences_in_the_lanes() {
    let app = foreign(140, 40);
    looks("foreign", &app, COLOURED);
    let text = frame(&app, COLOURED).unwrap().dump(true);
    assert!(!text.chars().any(|c| c.is_control() && c != '\n'));
    assert!(!text.contains(['\u{202e}', '\u{202c}', '\u{200b}']));
}

#[test]
fn foreign_scripts_and_escape_sequences_in_full() {
    let mut app = foreign(60, 16);
    press(&mut app, "<Enter>");
    looks("foreign-read-cjk", &app, COLOURED);
    press(&mut app, "nn");
    looks("foreign-read-rtl", &app, COLOURED);
    press(&mut app, "n");
    looks("foreign-read-escapes", &app, COLOURED);
}

#[test]
fn old_results_are_dimmed_until_new_ones_arrive() {
    looks("loading", &loading(140, 40), COLOURED);
}

#[test]
fn a_failed_lane_shows_its_reason_and_a_waiting_one_what_it_waits_for() {
    looks("failed-lane", &failed(140, 40), COLOURED);
}

#[test]
fn a_failed_corpus_fills_the_screen_with_its_reason() {
    looks("failed-corpus", &failed_corpus(80, 24), COLOURED);
}

#[test]
fn an_import_shows_its_progress() {
    looks("opening", &opening(80, 24), COLOURED);
}

#[test]
fn a_passage_in_full_with_ranks_verdicts_and_evidence() {
    looks("read-100x30", &reading(100, 30), COLOURED);
    looks("read-40x12", &reading(40, 12), COLOURED);
    let mut app = asked(80, 24);
    app.judgments.write(
        PassageIx(0),
        0,
        PairLabels { model: Some(Err(DetectError::Empty("passage"))), ..PairLabels::default() },
    );
    press(&mut app, "<Enter>");
    looks("read-failed-verdict", &app, COLOURED);
}

#[test]
fn the_statements_being_edited() {
    looks("statements", &editing(80, 24), COLOURED);
}

#[test]
fn all_keys_and_marks() {
    looks("help", &help(80, 260), COLOURED);
}

#[test]
fn completions_are_drawn_over_the_lanes() {
    looks("typing", &typing(100, 30), COLOURED);
}

#[test]
fn a_question_of_many_sides_has_letters() {
    let app = many_sided(140, 40);
    looks("many-sided", &app, COLOURED);
    let text = frame(&app, COLOURED).unwrap().dump(false);
    // The passage at rank 4 supports the first, the second and the fourth of seven statements.
    assert!(text.contains("4 12 4    ") && text.contains(" 4 ★D "), "{text}");
    let mut app = many_sided(80, 24);
    press(&mut app, "<Enter>");
    looks("many-sided-read", &app, COLOURED);
}

#[test]
fn a_statement_that_no_label_names_is_called_not_judged_instead_of_missing() {
    let (judged, mut app) = (many_sided(140, 40), many_sided(140, 40));
    assert!(drawn(&judged).contains("missing F G"), "{}", drawn(&judged));
    app.judgments = Judgments::new(&app.question, LabelSource::Gold, Arc::default());
    for at in 0..PASSAGES.len() {
        for side in 0..5 {
            let label = PairLabels { gold: Some(side == at), ..PairLabels::default() };
            app.judgments.write(PassageIx(at as u32), side, label);
        }
    }
    refresh(&mut app);
    assert!(drawn(&app).contains("not judged F G") && !drawn(&app).contains("missing"), "{}", drawn(&app));
}

#[test]
fn a_side_that_no_label_names_is_neither_missing_nor_measured() {
    let mut app = asked(140, 40);
    app.judgments = Judgments::new(&app.question, LabelSource::Gold, Arc::default());
    for at in 0..PASSAGES.len() {
        let label = PairLabels { gold: Some(at == 0), ..PairLabels::default() };
        app.judgments.write(PassageIx(at as u32), 1, label);
    }
    refresh(&mut app);
    let text = drawn(&app);
    assert!(text.contains("▲ has no labels") && text.contains("MRecall@5 –"), "{text}");
    assert!(!["is missing", "leans", "balanced"].iter().any(|word| text.contains(word)), "{text}");
}

#[test]
fn the_bias_screen_counts_the_supporters_of_each_of_many_statements() {
    let mut app = many_sided(140, 40);
    press(&mut app, "F");
    let text = drawn(&app);
    assert!(text.contains("◆A 1 ") && text.contains("●B 1 ") && text.contains("of 7 statements"), "{text}");
}

#[test]
fn below_the_editor_of_the_statements_stand_the_lanes() {
    let text = drawn(&after(asked(140, 40), "i"));
    assert!(text.contains("Statements of the question") && text.contains("┏ BM25 "), "{text}");
}

#[test]
fn a_question_without_statements_says_how_to_give_some() {
    let mut app = without_statements(100, 30);
    app.notice = Some("no labels came with this corpus; give some with --labels FILE".into());
    looks("without-statements", &app, COLOURED);
}

#[test]
fn a_passage_being_labelled_with_its_evidence() {
    looks("label-140x40", &labelling(140, 40), COLOURED);
    looks("label-80x24", &labelling(80, 24), COLOURED);
    looks("label-40x12", &labelling(40, 12), Theme::of(Look::Mono));
}

#[test]
fn an_action_is_looked_for_over_the_lanes() {
    looks("palette", &looking_for_an_action(80, 24), COLOURED);
    draws_every_size(looking_for_an_action);
}

#[test]
fn a_passage_is_drawn_in_every_size_and_at_its_end() {
    draws_every_size(reading);
    draws_every_size(|width, height| {
        let mut app = reading(width, height);
        press(&mut app, "G");
        app
    });
}

#[test]
fn every_other_screen_is_drawn_in_every_size() {
    let stages: [fn(u16, u16) -> App; 9] =
        [editing, typing, loading, failed, failed_corpus, opening, help, without_statements, many_sided];
    for stage in stages {
        draws_every_size(stage);
    }
    draws_every_size(|width, height| {
        let mut app = many_sided(width, height);
        press(&mut app, "<Enter>");
        app
    });
    draws_every_size(|width, height| {
        let mut app = editing(width, height);
        press(&mut app, "<C-n>動物園は必要か、動物園は必要か、動物園は必要か。<C-n><C-n><C-n>");
        app
    });
    draws_every_size(|width, height| {
        let mut app = help(width, height);
        app.help_scroll = 40;
        app.screen = Screen::HELP;
        app
    });
}

#[test]
fn every_state_after_every_key_can_be_drawn() {
    let keys: Vec<&str> = parallax::tui::keymap::TABLE
        .iter()
        .flat_map(|binding| binding.keys)
        .copied()
        .chain(["é", "動"])
        .collect();
    let tuned = |width, height| tuning(width, height, 0);
    let stages: [fn(u16, u16) -> App; 12] = [
        asked,
        typing,
        reading,
        editing,
        help,
        many_sided,
        failed_corpus,
        switched,
        tuned,
        sycophancy_screen,
        comparing,
        answering,
    ];
    for stage in stages {
        for first in &keys {
            let mut app = stage(40, 12);
            for key in [first, &keys[0], first] {
                press(&mut app, key);
                frame(&app, COLOURED).unwrap();
            }
        }
    }
}

#[test]
fn a_side_that_an_unclear_passage_may_take_is_not_called_missing() {
    use parallax::measure::SupportSet;
    use parallax::tui::screens::lanes::LaneFigures;
    use parallax::tui::screens::lanes::figures::missing_forms;
    let mut app = asked(140, 40);
    parallax::tui::update::refresh(&mut app);
    let by_labels = LaneFigures::default();
    let of = |lane: &LaneFigures, covered: SupportSet, unclear: usize| {
        let figures = Figures { covered, unclear, ..app.lanes[0].figures.now.clone().unwrap() };
        let text = |form: &Vec<(String, _)>| form.iter().map(|(words, _)| words.as_str()).collect::<String>();
        missing_forms(&app, lane, &figures).iter().map(text).collect::<Vec<_>>()
    };
    let forms = |covered: SupportSet, unclear: usize| of(&by_labels, covered, unclear);
    let other = SupportSet::of([1]).unwrap();
    assert!(forms(other, 0)[0].starts_with("▲ is missing"), "{:?}", forms(other, 0));
    let open = forms(other, 1);
    assert!(open[0].starts_with("▲ may be missing") && open[2] == "maybe no ▲", "{open:?}");
    assert_eq!(forms(SupportSet::EMPTY, 0)[0], "both sides are missing");
    assert_eq!(forms(SupportSet::EMPTY, 2), ["both sides may be missing", "maybe no ▲ ▼"]);
    // By the model's probabilities, a passage of this list supports ▲.
    let doubted = of(&app.lanes[0].figures, other, 0);
    assert!(doubted[0].starts_with("▲ may be missing"), "{doubted:?}");
}

/// What is drawn, as plain text.
fn drawn(app: &App) -> String {
    frame(app, COLOURED).unwrap().dump(false)
}

#[test]
fn the_lane_s_list_and_figures_stand_beside_a_passage_in_full_and_one_being_labelled() {
    for app in [reading(140, 40), crate::labelling::open(140, 40)] {
        let text = drawn(&app);
        assert!(text.contains("┏ BM25") && text.contains("MRecall@5"), "{text}");
    }
    assert!(!drawn(&crate::labelling::open(80, 24)).contains("┏ BM25"));
}

#[test]
fn blind_labelling_shows_the_passages_in_their_order_and_nothing_of_the_lane() {
    let mut app = crate::labelling::open(140, 40);
    press(&mut app, "B");
    let text = drawn(&app);
    assert!(text.contains(&format!(" 1 of {} ", app.labelling.queue.len())), "{text}");
    assert!(!text.contains("BM25") && !text.contains("MRecall"), "{text}");
}

#[test]
fn marks_and_figures_are_explained_before_the_first_question_and_below_the_lanes() {
    let start = drawn(&empty(140, 40));
    assert!(start.contains("side unclear") && start.contains("expand the query"), "{start}");
    let legend = "shift: how far the wording moves it";
    assert!(drawn(&asked(140, 40)).contains(legend));
    assert!(!drawn(&asked(80, 24)).contains(legend));
    assert!(drawn(&many_sided(140, 40)).contains("MRecall@5 1: the first 5 support 5 statements"));
}

#[test]
fn an_explanation_is_never_cut() {
    for (width, height) in [(140, 40), (80, 24), (48, 16)] {
        let mut app = asked(width, height);
        for _ in 0..9 {
            press(&mut app, ".");
            let hint = app.hint.clone().unwrap();
            let last = hint.split(' ').next_back().unwrap();
            assert!(drawn(&app).trim_end().ends_with(last), "{hint}\n{}", drawn(&app));
        }
    }
}
