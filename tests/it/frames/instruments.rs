//! Switches and instruments.

use crossterm::event::{KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use parallax::corpus::Passage;
use parallax::encode::Met;
use parallax::engine::{Batch, SparseMatch};
use parallax::tui::message::Effect;
use parallax::tui::theme::{Code, Meaning};

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
    press(&mut app, "F");
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
    looks("sycophancy-140x40", &sycophancy_screen(140, 40), COLOURED);
    looks("sycophancy-80x24", &sycophancy_screen(80, 24), COLOURED);
    looks("sycophancy-40x12", &sycophancy_screen(40, 12), COLOURED);
}

#[test]
fn the_lanes_asked_in_all_wordings() {
    looks("framing-140x40", &framing_lab(140, 40), COLOURED);
    looks("framing-80x24", &framing_lab(80, 24), COLOURED);
    looks("framing-40x12", &framing_lab(40, 12), COLOURED);
}

#[test]
fn a_wording_that_no_rule_makes_offers_typing_and_the_typed_one_is_asked() {
    let mut app = framing_lab(140, 40);
    press(&mut app, "jjjjjjjjj");
    let text = |app: &App| frame(app, COLOURED).unwrap().dump(false);
    assert!(text(&app).contains("i types a wording of your own"), "{}", text(&app));
    assert!(press(&mut app, "i<Enter>").is_empty(), "nothing was typed");
    assert!(app.notice.as_ref().is_some_and(|notice| notice.contains("empty wording")));
    let effects = press(&mut app, "iClose the zoos!<Enter>");
    let [Effect::Batch(_, Batch::Framing(_, Some(words)))] = effects.as_slice() else {
        panic!("{effects:?}")
    };
    assert_eq!(words.last().unwrap().text.as_deref(), Ok("Close the zoos!"));
    assert!(
        app.sycophancy_screen.lab.lanes.iter().all(Option::is_none),
        "the old answers are of other wordings"
    );
    press(&mut app, "i<C-u>Should zoos be banned?<Enter>");
    let words = &app.sycophancy_screen.lab.wordings;
    assert!(words.last().unwrap().text.is_err(), "the same words are asked once: {words:?}");
    assert!(app.notice.as_ref().is_some_and(|notice| notice.contains("`neutral`")), "{:?}", app.notice);
    press(&mut app, "<Esc>");
    assert_eq!(app.screen, Screen::SYCOPHANCY);
    press(&mut app, "<Esc>");
    assert_eq!(app.screen, Screen::LANES);
}

#[test]
fn a_passage_with_other_words_beside_the_passage_as_it_is() {
    looks("what-if-100x30", &what_if(100, 30), COLOURED);
    looks("what-if-40x12", &what_if(40, 12), COLOURED);
    let text = frame(&what_if(100, 30), COLOURED).unwrap().dump(false);
    for part in ["3.90", "2.81", "↓3", "nothing edited enters the corpus"] {
        assert!(text.contains(part), "no {part} in {text}");
    }
}

#[test]
fn the_score_of_a_switched_lane_with_other_words_is_said_to_be_that_without_its_switches() {
    let mut app = asked(100, 30);
    app.lanes[0].recipe = "bm25+mmr@.75".parse().unwrap();
    press(&mut app, "<Enter>c");
    let text = frame(&app, COLOURED).unwrap().dump(false);
    assert!(text.contains("Score and rank in BM25 without its switches"), "{text}");
}

#[test]
fn an_edit_that_empties_a_passage_says_so_and_late_answers_of_other_words_are_dropped() {
    let mut app = asked(100, 30);
    let effects = press(&mut app, "<Enter>c");
    let Some(Effect::Batch(first, Batch::Edit(_, drafts))) = effects.last() else { panic!("{effects:?}") };
    assert!(drafts[0].is_some() && drafts[1].as_ref() == drafts[0].as_ref(), "nothing is edited yet");
    let typed = press(&mut app, "x");
    let [Effect::Batch(number, Batch::Edit(_, drafts))] = typed.as_slice() else { panic!("{typed:?}") };
    assert!(drafts[1].as_ref().unwrap().passage.text.starts_with('x') && number > first);
    let late =
        |original| Reply::Edited { number: *first, original, scored: Some(Err("late".into())), judged: None };
    update(&mut app, Msg::Engine(late(false)));
    assert!(app.reading.editor.now.scored.is_none(), "an answer to other words");
    update(&mut app, Msg::Engine(late(true)));
    assert!(app.reading.editor.before.scored.is_some(), "the passage as it is has not changed");
    app.reading.editor.text = Input::new("x".into());
    let emptied = press(&mut app, "<BS>");
    let [Effect::Batch(_, Batch::Edit(_, drafts))] = emptied.as_slice() else { panic!("{emptied:?}") };
    assert!(drafts[1].is_none());
    let text = frame(&app, COLOURED).unwrap().dump(false);
    assert!(text.contains("left no word of the passage"), "{text}");
    press(&mut app, "<C-x>");
    assert!(!app.reading.editor.text.value().is_empty(), "the passage is back");
    press(&mut app, "<Tab>");
    let asked = press(&mut app, "?");
    let [Effect::Batch(_, Batch::Edit(_, drafts))] = asked.as_slice() else { panic!("{asked:?}") };
    assert!(drafts[1].as_ref().unwrap().question.text.ends_with("??"), "{drafts:?}");
    assert!(matches!(press(&mut app, "<Esc>").as_slice(), [Effect::StopBatch(_)]));
    assert_eq!(app.screen, Screen::PASSAGE);
}

#[test]
fn a_language_model_writes_the_passage_anew_and_escape_stops_it() {
    let mut app = asked(100, 30);
    press(&mut app, "<Enter>c");
    let own = app.reading.editor.text.value().to_owned();
    let text = |app: &App| frame(app, COLOURED).unwrap().dump(false);
    let rewritten = |app: &mut App, number, written: Result<&str, &str>| {
        let passage = |text: &str| (Passage { text: text.into(), ..Passage::default() }, "m".to_owned());
        let written = written.map(passage).map_err(str::to_owned);
        update(app, Msg::Engine(Reply::Rewritten { number, written }))
    };
    let effects = press(&mut app, "<C-l>");
    let [Effect::Batch(number, Batch::Rewrite(passage))] = effects.as_slice() else { panic!("{effects:?}") };
    assert!(passage.text.starts_with(&own[..20]) && text(&app).contains("Esc gives up"), "{}", text(&app));
    assert!(press(&mut app, "<C-l>").is_empty(), "it is being written");
    let stopped = press(&mut app, "<Esc>");
    assert!(matches!(stopped.as_slice(), [Effect::Batch(_, Batch::Edit(..))]), "{stopped:?}");
    assert!(app.screen != Screen::PASSAGE && app.reading.editor.text.value() == own);
    assert!(rewritten(&mut app, *number, Ok("late")).is_empty(), "it was stopped");
    assert_eq!(app.reading.editor.text.value(), own);
    press(&mut app, "<C-l>");
    let number = app.reading.editor.rewriting.unwrap();
    assert!(matches!(
        rewritten(&mut app, number, Ok("Zoos keep animals safe.")).as_slice(),
        [Effect::Batch(_, Batch::Edit(..))]
    ));
    assert!(text(&app).contains("rewritten by m") && text(&app).contains("Zoos keep animals safe."));
    press(&mut app, "<C-l>");
    let number = app.reading.editor.rewriting.unwrap();
    rewritten(&mut app, number, Err("name one with --llm"));
    assert!(text(&app).contains("name one with --llm"), "{}", text(&app));
    press(&mut app, "<Esc>");
    assert_eq!(app.screen, Screen::PASSAGE);
}

#[test]
fn the_sides_of_an_answer_beside_its_sentences() {
    looks("answer-sides-140x40", &stage::sided(140, 40), COLOURED);
    looks("answer-sides-80x24", &stage::sided(80, 24), COLOURED);
    looks("answer-sides-40x12", &stage::sided(40, 12), COLOURED);
}

#[test]
fn figure_3_of_berds_stands_in_the_sycophancy_table_a_line_a_lane_with_delta_of_every_wording() {
    let text = |width| frame(&sycophancy_screen(width, 40), COLOURED).unwrap().dump(false);
    // Shares .4 and .4, .6 and .4, 0 and .6: Δ is 0, 1/3 and nothing.
    let line = |width: u16| {
        let text = text(width);
        let row = text.lines().rfind(|line| line.contains("BM25") && line.contains("shift"));
        row.unwrap_or_else(|| panic!("{text}")).to_owned()
    };
    for width in [80, 140, 200] {
        let row = line(width);
        let delta = row.split_once('Δ').unwrap_or_else(|| panic!("{row}")).1;
        assert!(delta.contains("○.00") && delta.contains("▲+.33") && delta.contains("▼–"), "{row}");
    }
    // The model judged the first passages, so there is room for its doubt on a wide screen.
    assert!(text(200).contains("Δ = (p − n)/p of each"));
}

#[test]
fn the_lanes_compared_over_a_question_set() {
    looks("compare-140x40", &comparing(140, 40), COLOURED);
    looks("compare-80x24", &comparing(80, 24), COLOURED);
    looks("compare-40x12", &comparing(40, 12), COLOURED);
    let mut app = comparing(80, 24);
    press(&mut app, "<Space>mmo");
    looks("compare-means-80x24", &app, COLOURED);
}

/// Rows of the frame without borders and blanks.
fn rows(app: &App) -> Vec<String> {
    let framing = |c: char| ('\u{2500}'..='\u{257f}').contains(&c) || c.is_whitespace();
    let text = frame(app, COLOURED).unwrap().dump(false);
    text.lines().map(|line| line.chars().filter(|c| !framing(*c)).collect()).collect()
}

#[test]
fn no_screen_is_half_empty_in_a_large_terminal_and_none_is_empty_in_a_small_one() {
    type Stage = fn(u16, u16) -> App;
    let stages: [(&str, Stage); 3] =
        [("compare", comparing), ("sycophancy", sycophancy_screen), ("framing", framing_lab)];
    for (name, stage) in stages {
        let large = rows(&stage(140, 40));
        let blank = large.iter().filter(|row| row.is_empty()).count();
        assert!(blank <= 13, "{name}: {blank} of 40 rows are blank\n{}", large.join("\n"));
        let small = rows(&stage(40, 12));
        let filled = small.iter().filter(|row| !row.is_empty()).count();
        assert!(filled >= 7, "{name}: only {filled} of 12 rows show anything\n{}", small.join("\n"));
    }
}

#[test]
fn a_click_marks_a_question_or_a_lane_of_the_comparison_and_a_second_click_opens_it() {
    let mut app = comparing(140, 40);
    let click = |app: &mut App, column, row| {
        let kind = MouseEventKind::Down(MouseButton::Left);
        update(app, Msg::Mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE }))
    };
    click(&mut app, 4, 5);
    assert_eq!((app.comparing.at, app.lane), (1, 0));
    let text = frame(&app, COLOURED).unwrap().dump(false);
    let head = text.lines().nth(3).unwrap();
    let column = head
        .chars()
        .collect::<Vec<_>>()
        .windows(6)
        .position(|part| part.iter().collect::<String>() == "Hybrid");
    click(&mut app, column.unwrap() as u16 + 1, 3);
    assert_eq!((app.comparing.at, app.lane), (1, 2));
    click(&mut app, 4, 4);
    assert_eq!(app.screen, Screen::COMPARE);
    click(&mut app, 4, 4);
    assert_eq!((app.screen, app.question.text.as_str()), (Screen::LANES, QUESTION));
}

#[test]
fn a_click_on_a_key_of_the_footer_presses_it() {
    let mut app = asked(140, 40);
    let text = frame(&app, COLOURED).unwrap().dump(false);
    let footer = text.lines().last().unwrap();
    let column = footer
        .chars()
        .collect::<Vec<_>>()
        .windows(7)
        .position(|part| part.iter().collect::<String>() == "compare");
    let kind = MouseEventKind::Down(MouseButton::Left);
    let at =
        |column: usize| MouseEvent { kind, column: column as u16, row: 39, modifiers: KeyModifiers::NONE };
    update(&mut app, Msg::Mouse(at(column.unwrap() + 2)));
    assert_eq!(app.screen, Screen::COMPARE);
    update(&mut app, Msg::Mouse(at(139)));
    assert_eq!(app.screen, Screen::COMPARE, "there is no key");
}

/// The open passage with a record, an index entry, a recipe or the configuration in the place of its text.
fn recorded(width: u16, height: u16, keys: &str) -> App {
    let mut app = reading(width, height);
    press(&mut app, keys);
    let (study, at, recipe) = (app.studies, PassageIx(0), app.lanes[0].recipe.clone());
    let entry = "{\n  \"bm25\": {\"terms\": 31},\n  \"passage\": 0\n}".to_owned();
    update(&mut app, Msg::Engine(Reply::IndexEntry { study, at, recipe, entry: Ok(entry) }));
    app
}

#[test]
fn a_passage_shows_its_record_its_index_entry_the_recipe_and_the_configuration() {
    looks("record-80x24", &recorded(80, 24, "r"), COLOURED);
    looks("record-dark-80x24", &recorded(80, 24, "r"), Theme::of(Look::Dark));
    let shown = |keys: &str| frame(&recorded(100, 60, keys), COLOURED).unwrap().dump(false);
    assert!(shown("r").contains("\"_id\": \"zoos-01\"") && shown("r").contains("\"voice\": \"op-ed\""));
    assert!(shown("e").contains("\"terms\": 31"), "{}", shown("e"));
    assert!(shown("y").contains("\"recipe\": \"bm25@k1=0.9,b=0.4\""), "{}", shown("y"));
    assert!(shown("C").contains("theme = \"terminal\""), "{}", shown("C"));
    // The same key, or a step back, shows the text again.
    for keys in ["rr", "r<Esc>", "ey<Esc>"] {
        assert!(shown(keys).contains("The bears pace."), "after {keys}");
    }
    let mut ascii = recorded(80, 24, "r");
    ascii.glyphs = Glyphs::Ascii;
    update(&mut ascii, Msg::Resized(size(80, 24)));
    let dump = frame(&ascii, Theme::of(Look::Dark)).unwrap();
    let blue = Theme::of(Look::Dark).style(Meaning::Code(Code::Name)).fg;
    assert!(dump.buffer().content.iter().all(|cell| Some(cell.fg) != blue), "no colours in ASCII mode");
}

#[test]
fn the_index_entry_is_requested_once_and_again_after_it_was_given_up() {
    let studies = |effects: Vec<Effect>| {
        let studies = effects.into_iter().filter_map(|effect| match effect {
            Effect::Study(study) => Some(*study),
            _ => None,
        });
        studies.collect::<Vec<_>>()
    };
    let mut app = reading(80, 24);
    let (study, at, recipe) = (app.studies, PassageIx(0), app.lanes[0].recipe.clone());
    update(&mut app, Msg::Engine(Reply::Explained { study, recipe, at, explanations: Ok(Vec::new()) }));
    let first = studies(press(&mut app, "e"));
    assert!(first.len() == 1 && first[0].index.is_some(), "{first:?}");
    assert_eq!(studies(press(&mut app, "ee")).len(), 0, "it is on its way");
    // The next passage has an entry of its own; the reply for the one before does not take its place.
    let next = studies(press(&mut app, "n"));
    assert!(next.len() == 1 && next[0].index.is_some(), "{next:?}");
    let (study, at, recipe) = (first[0].number, first[0].at, app.lanes[0].recipe.clone());
    update(
        &mut app,
        Msg::Engine(Reply::IndexEntry { study, at, recipe, entry: Ok("{\"stale\": 1}".into()) }),
    );
    assert!(!frame(&app, COLOURED).unwrap().dump(false).contains("stale"));
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

#[test]
fn a_small_corpus_without_metadata_leaves_no_screen_half_empty() {
    let mut app = asked(140, 40);
    press(&mut app, "F");
    update(&mut app, Msg::Engine(Reply::Fields(Arc::default())));
    let empty = rows(&app).iter().filter(|row| row.trim_matches(['│', ' ']).is_empty()).count();
    assert!(empty <= 10, "{empty} empty rows: {:#?}", rows(&app));
}

#[test]
fn the_footer_of_a_small_comparison_names_the_way_back() {
    let app = comparing(40, 12);
    let shown = frame(&app, COLOURED).unwrap().dump(false);
    assert!(shown.contains("Esc back"), "{shown}");
}

#[test]
fn curves_and_the_plane_of_a_projection_are_pictures_of_their_own() {
    use parallax::tui::pages::page;
    let plot = |app: &App| page(app.screen).plot(app);
    let sweep = plot(&tuning(140, 40, 0)).unwrap();
    assert!(
        sweep.starts_with("<svg") && sweep.contains("λ of MMR") && sweep.contains(">MRecall@5<"),
        "{sweep}"
    );
    let plane = plot(&tuning(140, 40, 2)).unwrap();
    assert!(
        plane.contains("nearer to the first pole") && plane.matches("class=\"join\"").count() > 1,
        "{plane}"
    );
    assert_eq!(plot(&tuning(140, 40, 1)), None, "an expansion has no plot");
    assert!(plot(&comparing(140, 40)).unwrap().contains(">MRecall<"));
    assert_eq!(plot(&asked(140, 40)), None);
}

#[test]
fn the_page_of_detectors_shows_risk_over_coverage_on_the_labelled_passages() {
    let mut app = asked(140, 40);
    let text = |app: &App| frame(app, COLOURED).unwrap().dump(false);
    press(&mut app, "D");
    assert!(text(&app).contains("no curve of risk over coverage"), "{}", text(&app));
    press(&mut app, "<Esc>");
    // The second and the last of five labelled passages are labelled otherwise than the model says.
    for (at, p, sides) in [
        (0, (0.94, 0.02), (true, false)),
        (1, (0.06, 0.91), (true, false)),
        (4, (0.12, 0.58), (false, true)),
        (5, (0.03, 0.97), (false, true)),
        (6, (0.66, 0.2), (false, true)),
    ] {
        let known = |p, gold| PairLabels { gold: Some(gold), ..said(p) };
        app.judgments.write(PassageIx(at), 0, known(p.0, sides.0));
        app.judgments.write(PassageIx(at), 1, known(p.1, sides.1));
    }
    press(&mut app, "D");
    let shown = text(&app);
    assert!(
        shown.contains("risk (share of the shown sides that are wrong)")
            && shown.contains("5 labelled passages"),
        "{shown}"
    );
    let picture = parallax::tui::pages::page(app.screen).plot(&app).unwrap();
    assert!(picture.contains("share of these that are wrong"), "{picture}");
}

#[test]
fn the_lane_with_the_marked_form_stands_below_the_forms() {
    let text = frame(&tuning(140, 40, 0), COLOURED).unwrap().dump(false);
    assert!(text.contains("┏ ") && text.contains("MRecall@5  "), "{text}");
    assert!(text.lines().filter(|line| line.starts_with("┃")).count() > 10, "{text}");
}

#[test]
fn a_plot_s_cells_are_left_to_its_picture_where_the_terminal_shows_pictures() {
    let mut app = tuning(140, 40, 0);
    let place = |app: &App| {
        let mut terminal = ratatui::Terminal::new(ratatui::backend::TestBackend::new(140, 40)).unwrap();
        let mut left = None;
        let draw = |frame: &mut ratatui::Frame<'_>| {
            parallax::tui::draw::draw(app, COLOURED, frame);
            left = parallax::tui::draw::pictures::place(frame.buffer_mut());
        };
        terminal.draw(draw).unwrap();
        left
    };
    assert_eq!(place(&app), None);
    app.pictures = true;
    let left = place(&app).unwrap();
    assert!(left.width > 60 && left.height > 20, "{left:?}");
    app.glyphs = Glyphs::Ascii;
    assert_eq!(place(&app), None, "plain characters have no pictures");
}

#[test]
fn a_click_on_a_strip_marks_the_passage_of_that_rank_or_asks_in_the_other_wordings() {
    let mut app = after(asked(140, 40), "<F12>");
    let figures = parallax::tui::layout::panes(&app).lanes[1].figures;
    // The strips begin after eleven columns, in the third row of the figures.
    let mut click = |column, row| {
        let (column, row) = (figures.x + column, figures.y + row);
        let kind = MouseEventKind::Down(MouseButton::Left);
        update(&mut app, Msg::Mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE }));
        (app.lane, app.lanes[1].selected, app.screen)
    };
    assert_eq!(click(13, 2), (1, 2, Screen::LANES));
    assert_eq!(click(11, 2), (1, 0, Screen::LANES));
    assert_eq!(click(12, 3), (1, 0, Screen::SYCOPHANCY));
}

#[test]
fn the_terms_of_a_learned_sparse_lane_that_met_stand_in_the_colour_of_the_passages_side() {
    let mut app = asked(80, 30);
    app.lanes[0].recipe = "splade-v3".parse().unwrap();
    press(&mut app, "<Enter>");
    let term = |word: &str, weight: f32, met: bool| (word.to_owned(), weight, met);
    let found = SparseMatch {
        model: "splade-v3".into(),
        score: 7.42,
        shares: vec![("zoo".into(), [2.1, 2.4, 5.04]), ("ban".into(), [1.7, 1.4, 2.38])],
        query: vec![
            term("zoo", 2.1, true),
            term("ban", 1.7, true),
            term("prohibit", 0.8, false),
            term("animal", 0.4, false),
        ],
        passage: vec![
            term("zoo", 2.4, true),
            term("cage", 1.9, false),
            term("ban", 1.4, true),
            term("suffer", 1.1, false),
            term("captivity", 0.9, false),
        ],
    };
    let (study, at, recipe) = (app.studies, PassageIx(0), app.lanes[0].recipe.clone());
    let explanations = Ok(vec![Explanation::Sparse(Box::new(found))]);
    update(&mut app, Msg::Engine(Reply::Explained { study, recipe, at, explanations }));
    looks("why-sparse", &app, COLOURED);
    let text = frame(&app, COLOURED).unwrap().dump(false);
    assert!(text.contains("splade-v3 7.42 = zoo 5.04 (2.10 × 2.40) · ban 2.38 (1.70 × 1.40)"), "{text}");
    assert!(
        text.contains("▲zoo 2.10") && text.contains("▲ban 1.40") && text.contains(" cage 1.90"),
        "{text}"
    );
}

#[test]
fn late_interaction_shows_which_word_of_the_query_met_which_of_the_passage() {
    let mut app = asked(80, 30);
    app.lanes[0].recipe = "bm25+rerank@colbertv2".parse().unwrap();
    press(&mut app, "<Enter>");
    let met = |query: &str, passage: &str, similarity| Met {
        query: query.into(),
        passage: passage.into(),
        similarity,
    };
    let met = vec![
        met("", "", 0.9),
        met("Should", "keep", 0.31),
        met("zoos", "animals", 0.92),
        met("be", "are", 0.44),
        met("banned", "kept", 0.71),
        met("", "animals", 0.6),
    ];
    let (study, at, recipe) = (app.studies, PassageIx(0), app.lanes[0].recipe.clone());
    let scored =
        Explanation::Scored { model: "colbertv2".into(), score: 3.88, was: (4, 100), met: met.clone() };
    let explanations = Ok(vec![scored]);
    update(&mut app, Msg::Engine(Reply::Explained { study, recipe, at, explanations }));
    looks("why-late", &app, COLOURED);
    let text = frame(&app, COLOURED).unwrap().dump(false);
    for words in [
        "colbertv2 scores it 3.880 with the query; rank 4 of 100 before",
        "2.38 by words of the query, 1.50 by its other tokens",
        "zoos:animals 0.92",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    // The same, as a lane of its own.
    app.lanes[0].recipe = "colbertv2".parse().unwrap();
    let (study, recipe) = (app.studies, app.lanes[0].recipe.clone());
    let explanations = Ok(vec![Explanation::Tokens { model: "colbertv2".into(), score: 3.88, met }]);
    update(&mut app, Msg::Engine(Reply::Explained { study, recipe, at, explanations }));
    looks("why-late-lane", &app, COLOURED);
}

#[test]
fn help_begins_with_the_keys_of_the_screen_it_was_opened_from() {
    let mut app = asked(80, 24);
    press(&mut app, "?");
    assert!(frame(&app, COLOURED).unwrap().dump(false).contains("Marks"));
    press(&mut app, "<Esc><Enter>?");
    let text = frame(&app, COLOURED).unwrap().dump(false);
    let first = text.lines().find(|line| line.contains("Reading"));
    assert!(first.is_some() && !text.contains("Marks"), "{text}");
}
