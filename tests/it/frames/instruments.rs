//! Switches and instruments.

use super::*;

#[test]
fn a_switched_lane_shows_where_each_passage_stood_and_how_the_measures_changed() {
    looks("switched-140x40", &switched(140, 40), COLOURED);
    looks("switched-80x24", &switched(80, 24), COLOURED);
}

#[test]
fn a_lane_being_tuned_shows_all_forms_and_what_the_marked_one_did() {
    for (tabs, name) in ["mmr", "expansion", "projection", "diversifier"].into_iter().enumerate() {
        looks(&format!("tune-{name}"), &tuning(120, 34, tabs), COLOURED);
    }
    looks("tune-80x24", &tuning(80, 24, 1), COLOURED);
    let mut app = tuning(80, 24, 2);
    press(&mut app, "=Animals");
    looks("tune-typing", &app, COLOURED);
}

#[test]
fn the_explanation_of_a_rank() {
    let mut app = switched(100, 40);
    press(&mut app, "jj<Enter>");
    let share = |term: &str, share: f32, added| Share { term: term.into(), share, added };
    let reasons = vec![
        Explanation::Terms { shares: vec![share("zoo", 2.51, false), share("bear", 1.2, true)], score: 3.71 },
        Explanation::Mmr {
            lambda: 0.75,
            relevance: 0.8,
            closest: Some((PassageIx(1), 0.61)),
            value: 0.45,
            was: 7,
        },
    ];
    let (study, at) = (app.studies, PassageIx(6));
    let recipe = app.lanes[0].recipe.clone();
    update(&mut app, Msg::Engine(Reply::Explained { study, recipe, at, explanations: Ok(reasons) }));
    looks("why", &app, COLOURED);
}

#[test]
fn the_bias_of_the_lanes() {
    looks("bias-140x36", &biased(140, 36), COLOURED);
    looks("bias-80x24", &biased(80, 24), COLOURED);
    looks("bias-40x12", &biased(40, 12), COLOURED);
    looks("bias-set-140x36", &biased_set(140, 36), COLOURED);
    looks("bias-set-80x24", &biased_set(80, 24), COLOURED);
}

#[test]
fn the_values_of_a_field_on_the_lanes() {
    let mut app = biased(100, 30);
    press(&mut app, "<Enter>");
    looks("bias-on-lanes", &app, COLOURED);
}

#[test]
fn passages_without_metadata_and_fields_without_groups_are_reported() {
    let mut app = asked(80, 24);
    press(&mut app, "b");
    let shown = |app: &App| frame(app, COLOURED).unwrap().dump(false);
    assert!(shown(&app).contains("Counting the values"));
    update(&mut app, Msg::Engine(Reply::Fields(Arc::default())));
    assert!(shown(&app).contains("\"metadata\": {\"outlet\""), "{}", shown(&app));
    let fields = Fields { others: vec!["address".into()], ..Fields::default() };
    update(&mut app, Msg::Engine(Reply::Fields(Arc::new(fields))));
    assert!(shown(&app).contains("address"), "{}", shown(&app));
}

#[test]
fn the_lanes_asked_as_either_side() {
    looks("sycophancy-140x30", &sycophancy_screen(140, 30), COLOURED);
    looks("sycophancy-80x24", &sycophancy_screen(80, 24), COLOURED);
}

#[test]
fn the_lanes_compared_over_a_question_set() {
    looks("compare-140x36", &comparing(140, 36), COLOURED);
    looks("compare-80x24", &comparing(80, 24), COLOURED);
}

#[test]
fn the_answers_read_from_a_list() {
    looks("reader-140x40", &answering(140, 40), COLOURED);
    looks("reader-80x24", &stances(80, 24), COLOURED);
    looks("reader-40x12", &stances(40, 12), COLOURED);
    let mut app = answering(100, 30);
    app.glyphs = Glyphs::Ascii;
    looks("reader-ascii-100x30", &app, Theme::of(Look::Mono));
}
