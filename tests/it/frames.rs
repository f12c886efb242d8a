//! What is drawn: snapshots of glyphs and styles, and every size without a panic.

use std::sync::Arc;
use std::time::Duration;

use parallax::corpus::PassageIx;
use parallax::corpus::fields::Fields;
use parallax::detect::{DetectError, Known};
use parallax::engine::{Heard, Reply};
use parallax::expand::{Added, Expansion, Form, Kind, Queries, Source};
use parallax::llm::Tokens;
use parallax::measure::lean::SideShares;
use parallax::pipeline::recipe::{Diversify, Toward};
use parallax::pipeline::{
    Compared, Figures, List, Point, Projected, Reason, Share, Step, Swayed, Tally, Trace,
};
use parallax::project::Variant;
use parallax::question::{By, Question};
use parallax::read::Answer;
use parallax::read::incremental::Reordered;
use parallax::report::marks::Glyphs;
use parallax::rerank::Choice;
use parallax::tui::app::{App, Corpus, LaneState, Screen};
use parallax::tui::frame;
use parallax::tui::message::Msg;
use parallax::tui::theme::{Depth, Look, Theme};
use parallax::tui::update::update;
use parallax::work::{Job, Progress};
use tui_input::Input;

use crate::stage::{
    self, FOREIGN, PASSAGES, QUESTION, asked, empty, many_sided, press, ranking, said, size, with_lists,
};

const COLOURED: Theme = Theme::of(Look::Terminal);

fn looks(name: &str, app: &App, theme: Theme) {
    let text = frame(app, theme).unwrap().dump(true);
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!(name, text);
    });
}

fn job(job: Job, done: u64, total: u64, told: &str) -> (Progress, String) {
    (Progress { job, done, total }, told.to_owned())
}

fn foreign(width: u16, height: u16) -> App {
    let mut app = with_lists(empty(width, height), &FOREIGN, stage::question());
    for at in 0..4 {
        app.book.write(PassageIx(at), 0, said(0.9 - at as f32 / 5.0));
        app.book.write(PassageIx(at), 1, said(0.1));
    }
    app
}

fn reading(width: u16, height: u16) -> App {
    let mut app = asked(width, height);
    app.book.write(PassageIx(0), 1, Known { model: Some(Ok(0.02)), gold: Some(true), human: None });
    press(&mut app, "<Enter>");
    let text = PASSAGES[0].2;
    let start = text.find("Zoos should be closed").unwrap();
    app.reading.evidence.insert((PassageIx(0), 0), Some(start..text.len()));
    app.reading.evidence.insert((PassageIx(0), 1), None);
    app
}

fn editing(width: u16, height: u16) -> App {
    let mut app = asked(width, height);
    press(&mut app, "i<Down><End><BS> at all.");
    app
}

fn typing(width: u16, height: u16) -> App {
    let mut app = asked(width, height);
    app.typing = true;
    app.line = Input::new("zoos".into());
    app.completions =
        vec![QUESTION.into(), "Are zoos good for children?".into(), "動物園は必要か、zoos?".into()];
    app.completion = Some(1);
    app
}

fn loading(width: u16, height: u16) -> App {
    let mut app = asked(width, height);
    app.settled = false;
    app.lanes[1].state = LaneState::Waiting;
    app.lanes[2].state = LaneState::Waiting;
    app.lanes[2].ranking = Default::default();
    app
}

fn failed(width: u16, height: u16) -> App {
    let mut app = asked(width, height);
    app.lanes[1].state = LaneState::Failed("the model could not be run: the graph refused it".into(), None);
    app.lanes[1].ranking = Default::default();
    app.lanes[2].state =
        LaneState::Failed("the passages are still being embedded".into(), Some(Job::Embedding));
    app.lanes[2].ranking = Default::default();
    app.jobs = vec![job(Job::Embedding, 12_000, 36_000, "embedding 12,000/36,000 · 81/s · 4 min 56 s left")];
    app
}

fn failed_corpus(width: u16, height: u16) -> App {
    let mut app = App::new(&stage::start(), size(width, height));
    let reason = "corpus.jsonl:3: expected a JSON object with `_id`, `text` and perhaps `title` and `metadata`, found `\u{1b}[31m{`\nnothing was taken from it; mend the lines above and try again";
    app.corpus = Corpus::Failed(reason.into());
    app
}

fn opening(width: u16, height: u16) -> App {
    let mut app = App::new(&stage::start(), size(width, height));
    app.jobs = vec![job(Job::Importing, 4_000, 0, "importing 4,000 · 60,000/s")];
    app
}

fn help(width: u16, height: u16) -> App {
    let mut app = asked(width, height);
    press(&mut app, "?");
    app
}

/// No rule turns it into statements.
fn without_statements(width: u16, height: u16) -> App {
    let question = Question { text: "Who pays for zoos?".into(), ..Question::default() };
    let mut app = with_lists(empty(width, height), &PASSAGES, question);
    app.by = By::None;
    app
}

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
fn without_colours_weight_and_glyphs_remain() {
    looks("mono", &asked(100, 30), Theme::of(Look::Mono));
    let text = frame(&reading(100, 30), Theme::of(Look::Mono)).unwrap().dump(true);
    assert!(text.contains("▲ Zoos should be"), "evidence has the mark of its side: {text}");
    for colour in ["cyan", "magenta", "yellow", "green", "red", "blue"] {
        let (_, legend) = text.rsplit_once("\n\n").unwrap();
        assert!(!legend.contains(colour), "{legend}");
    }
}

#[test]
fn every_theme_has_its_own_look() {
    for look in [Look::Light, Look::Dark, Look::Deuteranopia, Look::Mono] {
        looks(&format!("theme-{}-80x24", look.name()), &switched(80, 24), Theme::of(look));
    }
    let sixteen = Theme { look: Look::Dark, depth: Depth::Sixteen };
    looks("theme-dark-16-80x24", &switched(80, 24), sixteen);
    let indexed = Theme { look: Look::Light, depth: Depth::Indexed };
    looks("theme-light-256-80x24", &looking_for_an_action(80, 24), indexed);
}

/// The same after some keys.
fn after(mut app: App, keys: &str) -> App {
    press(&mut app, keys);
    app
}

#[test]
fn in_ascii_the_interface_draws_nothing_else_on_any_screen() {
    let mut app = asked(100, 30);
    app.glyphs = Glyphs::Ascii;
    looks("ascii", &app, COLOURED);
    let mut app = switched(80, 24);
    app.glyphs = Glyphs::Ascii;
    looks("ascii-80x24", &app, COLOURED);
    for stage in [
        asked,
        reading,
        editing,
        loading,
        failed,
        failed_corpus,
        opening,
        help,
        without_statements,
        many_sided,
        switched,
        |width, height| tuning(width, height, 0),
        |width, height| tuning(width, height, 1),
        |width, height| tuning(width, height, 2),
        |width, height| tuning(width, height, 3),
        swaying,
        comparing,
        biased,
        biased_set,
        answering,
        stances,
        labelling,
        |width, height| after(labelling(width, height), "elv"),
        |width, height| after(labelling(width, height), "tso what"),
        |width, height| after(labelling(width, height), "g"),
        |width, height| after(tuning(width, height, 0), "="),
        typing,
        looking_for_an_action,
    ] {
        for height in [40, 240] {
            let mut app = stage(140, height);
            app.glyphs = Glyphs::Ascii;
            let text = frame(&app, COLOURED).unwrap().dump(false);
            // A question of these stages is Japanese.
            let own = |c: &char| ('\u{3000}'..='\u{ffef}').contains(c);
            let other: String = text.chars().filter(|c| !c.is_ascii() && !own(c)).collect();
            assert_eq!(other, "", "{text}");
        }
    }
}

#[test]
fn a_passages_own_characters_stay_in_ascii_too() {
    let mut app = foreign(140, 40);
    app.glyphs = Glyphs::Ascii;
    let text = frame(&app, COLOURED).unwrap().dump(false);
    assert!(text.contains("動物園") && !text.contains('┌'), "{text}");
    // What stands for control characters is not theirs.
    assert!(!text.contains('␛') && !text.contains('\u{fffd}'), "{text}");
    let greek = [("greek-1", "β and κ", "“The Δ of λ” – or ▲ for zoos… × ○")];
    for keys in ["", "<Enter>"] {
        let mut app = after(with_lists(empty(140, 40), &greek, stage::question()), keys);
        app.glyphs = Glyphs::Ascii;
        let text = frame(&app, COLOURED).unwrap().dump(false);
        assert!(text.contains("β and κ") && text.contains("“The Δ of λ” – or ▲ for"), "{text}");
    }
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

/// The same with other keys.
fn rebound(width: u16, height: u16) -> App {
    let text = "[keys]\npreset = 'vim'\nhelp = '<F1>'\n[keys.lanes]\nedit-question = '<C-o>'\nedit-statements = 'I'\n";
    let (config, problems) = parallax::tui::config::read(text);
    assert_eq!(problems, []);
    let mut app = without_statements(width, height);
    update(&mut app, Msg::Configured(Ok(config)));
    app
}

#[test]
fn footer_help_palette_and_advice_name_the_keys_that_hold() {
    let mut app = rebound(100, 60);
    let text = |app: &App| frame(app, COLOURED).unwrap().dump(false);
    let shown = text(&app);
    for told in ["^o ask", "F1 keys", "press I to type them", "the configuration was read again"] {
        assert!(shown.contains(told), "{told}\n{shown}");
    }
    press(&mut app, ":edit");
    assert!(text(&app).contains("^o     edit the question"), "{}", text(&app));
    press(&mut app, "<Esc>?");
    assert!(!text(&app).contains(" Keys "), "the old key orders nothing");
    press(&mut app, "<F1>");
    let shown = text(&app);
    assert!(shown.contains("l Tab →") && shown.contains("F1    "), "{shown}");
    // A long list of keys does not run into what they do.
    let (config, _) = parallax::tui::config::read(
        "[keys.lanes]\nread = ['<PageDown>', '<PageUp>', '<F2>']\n[keys]\npage-down = 'z'\npage-up = 'Z'\n",
    );
    update(&mut app, Msg::Configured(Ok(config)));
    assert!(text(&app).contains("PageDown PageUp F2 read"), "{}", text(&app));
}

#[test]
fn a_wrong_configuration_leaves_the_old_one_and_is_told() {
    let mut app = rebound(100, 30);
    let (_, all) = parallax::tui::config::read("theme = 'dim'\n");
    let problems = parallax::tui::config::Problems { file: "config.toml".into(), all };
    let keys = app.keys.clone();
    update(&mut app, Msg::Configured(Err(problems)));
    assert_eq!(app.keys, keys);
    let text = frame(&app, COLOURED).unwrap().dump(false);
    assert!(text.contains("config.toml:1:9: expected one of \"terminal\", \"light\""), "{text}");
}

#[test]
fn a_layout_gives_lanes_more_room_and_passages_fewer_rows() {
    let (config, _) = parallax::tui::config::read("[layout]\nlane-width = 70\npassage-rows = 1\n");
    let mut app = asked(140, 40);
    update(&mut app, Msg::Configured(Ok(config)));
    app.notice = None;
    looks("layout-140x40", &app, COLOURED);
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
fn old_results_stay_dimmed_while_new_ones_are_on_the_way() {
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
fn a_corpus_on_its_way_shows_how_far_it_is() {
    looks("opening", &opening(80, 24), COLOURED);
}

#[test]
fn a_passage_in_full_with_ranks_verdicts_and_evidence() {
    looks("read-100x30", &reading(100, 30), COLOURED);
    looks("read-40x12", &reading(40, 12), COLOURED);
    let mut app = asked(80, 24);
    app.book.write(
        PassageIx(0),
        0,
        Known { model: Some(Err(DetectError::Empty("passage"))), ..Known::default() },
    );
    press(&mut app, "<Enter>");
    looks("read-failed-verdict", &app, COLOURED);
}

/// The first lane re-ranked: rank moves, changed measures, a warning.
fn switched(width: u16, height: u16) -> App {
    let mut app = asked(width, height);
    press(&mut app, "m");
    let mut list = List::clone(&ranking(&PASSAGES, &[1, 0, 6, 3, 2], 12.5));
    list.trace.note("MMR compares passages by MiniLM, which this lane also ranks by".into());
    let (turn, took) = (app.turn, Duration::from_millis(3));
    update(&mut app, Msg::Engine(Reply::LaneReady { turn, lane: 0, ranking: Arc::new(list), took }));
    app
}

/// The second lane being tuned, with figures of the first forms and a list that tells of its steps.
fn tuning(width: u16, height: u16, tabs: usize) -> App {
    let mut app = asked(width, height);
    press(&mut app, &format!("<Tab>t{}jj", "<Tab>".repeat(tabs)));
    let figures: Vec<_> =
        app.lanes.iter().map(|lane| Figures::of(&lane.ranking, &app.book, &app.question, 5)).collect();
    let mut tallies = vec![Tally::default(); app.tuning.forms.len()];
    for (tally, figures) in tallies.iter_mut().zip(&figures) {
        tally.add(figures.as_ref());
    }
    tallies[1].add(None);
    let number = app.tuning.number;
    update(&mut app, Msg::Engine(Reply::Swept { number, tallies: Ok(tallies), ended: false }));
    let mut list = List::clone(&ranking(&PASSAGES, &[5, 0, 1, 2], 0.7));
    list.trace = told();
    let (turn, took) = (app.turn, Duration::from_millis(3));
    update(&mut app, Msg::Engine(Reply::LaneReady { turn, lane: 1, ranking: Arc::new(list), took }));
    app
}

/// A trace with every step that the screen draws.
fn told() -> Trace {
    let reply = "No cage is kind. \u{1b}[31mBears pace.".to_owned();
    let added = [
        Added {
            sentences: vec![(0..16, Some(PassageIx(0))), (17..reply.len(), None)],
            text: reply,
            name: Some("Welfare".into()),
            source: Source::Model { model: "llama".into(), recorded: true, sample: 0 },
        },
        Added {
            text: "Zoos should not be banned.".into(),
            name: None,
            source: Source::Statement(1),
            sentences: Vec::new(),
        },
    ];
    let expansion = Expansion {
        kind: Kind::Csqe,
        form: Form::CsqeByModel,
        queries: Queries::Each(vec![QUESTION.into()]),
        added: added.to_vec(),
        notes: Vec::new(),
        tokens: Some(Tokens { prompt: 812, reply: 96 }),
    };
    let point = |i: u32| {
        let at = i as f32 / 10.0;
        (PassageIx(i), Point { plain: 0.7 - at, score: 0.6 - at, before: at - 0.3, after: 0.3 - at })
    };
    let projected = Projected {
        asked: Variant::PapPlus,
        ran: Variant::PapPlus,
        toward: Toward::Perspective(1),
        q: "a passage that opposes the statement: Zoos should be banned.".into(),
        r: "Zoos should be banned.".into(),
        p: Some("a passage that opposes the statement".into()),
        points: (0..6).map(point).collect(),
    };
    let choices = [2, 0, 1, 3].map(|passage| Choice {
        passage,
        relevance: 1.0 - passage as f32 / 10.0,
        gains: vec![0.31, 0.02],
        value: 0.66,
    });
    let diversify = Step::Diversify {
        method: Diversify::Xquad,
        weight: 0.5,
        choices: choices.to_vec(),
        pool: (0..4).map(PassageIx).collect(),
        judged: 8,
    };
    Trace {
        steps: vec![Step::Expand(Arc::new(expansion)), Step::Project(Box::new(projected)), diversify],
        notes: vec!["2 of 4 replies are used".into()],
    }
}

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
fn why_a_passage_stands_where_it_does() {
    let mut app = switched(100, 40);
    press(&mut app, "jj<Enter>");
    let share = |term: &str, share: f32, added| Share { term: term.into(), share, added };
    let reasons = vec![
        Reason::Terms { shares: vec![share("zoo", 2.51, false), share("bear", 1.2, true)], score: 3.71 },
        Reason::Mmr {
            lambda: 0.75,
            relevance: 0.8,
            closest: Some((PassageIx(1), 0.61)),
            value: 0.45,
            was: 7,
        },
    ];
    let (study, at) = (app.studies, PassageIx(6));
    let recipe = app.lanes[0].recipe.clone();
    update(&mut app, Msg::Engine(Reply::Why { study, recipe, at, reasons: Ok(reasons) }));
    looks("why", &app, COLOURED);
}

/// The first lane asked in three wordings, the second failed, the third on its way.
fn swaying(width: u16, height: u16) -> App {
    let mut app = asked(width, height);
    press(&mut app, "y");
    let lists = [&[0, 1, 2, 3, 4][..], &[0, 3, 5, 6], &[1, 5, 4]];
    let lists = lists.map(|order| ranking(&PASSAGES, order, 1.0));
    let shares = [(0.4, 0.4), (0.6, 0.4), (0.0, 0.6)].map(|(p, n)| SideShares { p, n });
    let swayed = Swayed { lists, shares, book: app.book.clone(), note: None };
    let number = app.swaying.number;
    update(&mut app, Msg::Engine(Reply::Swayed { number, lane: 0, swayed: Ok(Arc::new(swayed)) }));
    let failed = Err("the model could not be run".into());
    update(&mut app, Msg::Engine(Reply::Swayed { number, lane: 1, swayed: failed }));
    app
}

/// Two questions of three compared.
fn comparing(width: u16, height: u16) -> App {
    let mut app = asked(width, height);
    if let Corpus::Open(opened) = &mut app.corpus {
        let question = opened.questions[0].clone();
        opened.questions.push(Question {
            text: "動物園は必要か、動物園は必要か、動物園は必要か？".into(),
            ..question.clone()
        });
        opened.questions.push(question);
    }
    press(&mut app, "c");
    for (i, orders) in [[&[0, 1, 2][..], &[5, 6], &[2]], [&[3], &[0, 4], &[1, 0]]].into_iter().enumerate() {
        let lists = orders.map(|order| ranking(&PASSAGES, order, 1.0));
        let lists: Vec<_> = lists.iter().map(|list| Some(&list[..])).collect();
        let compared = Compared::of(&app.question, 5, &lists, &app.book);
        let (number, compared) = (app.comparing.number, Ok(compared));
        update(&mut app, Msg::Engine(Reply::Compared { number, question: i, compared }));
    }
    app
}

/// Two fields counted; the first is shown.
fn biased(width: u16, height: u16) -> App {
    let mut app = asked(width, height);
    press(&mut app, "b");
    update(&mut app, Msg::Engine(Reply::Fields(Arc::new(stage::fields()))));
    app
}

/// The same over a set whose first question asks for a voice.
fn biased_set(width: u16, height: u16) -> App {
    let mut app = biased(width, height);
    if let Corpus::Open(opened) = &mut app.corpus {
        let question = opened.questions[0].clone();
        opened.questions[0].text = "What does the op-ed say of zoos?".into();
        opened.questions.extend([question.clone(), question]);
    }
    press(&mut app, "o");
    for (i, orders) in [[&[0, 1, 2][..], &[5, 6], &[2]], [&[3], &[0, 4], &[1, 0]]].into_iter().enumerate() {
        let lists = orders.map(|order| ranking(&PASSAGES, order, 1.0));
        let lists: Vec<_> = lists.iter().map(|list| Some(&list[..])).collect();
        let compared = Ok(Compared::of(&app.question, 5, &lists, &app.book));
        let number = app.comparing.number;
        update(&mut app, Msg::Engine(Reply::Compared { number, question: i, compared }));
    }
    app
}

#[test]
fn which_way_the_lanes_lean_and_whose_passages_they_bring_up() {
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
fn passages_that_say_nothing_of_themselves_and_fields_that_are_no_groups_are_told() {
    let mut app = asked(80, 24);
    press(&mut app, "b");
    let shown = |app: &App| frame(app, COLOURED).unwrap().dump(false);
    assert!(shown(&app).contains("Counting what the passages say"));
    update(&mut app, Msg::Engine(Reply::Fields(Arc::default())));
    assert!(shown(&app).contains("\"metadata\": {\"outlet\""), "{}", shown(&app));
    let fields = Fields { others: vec!["address".into()], ..Fields::default() };
    update(&mut app, Msg::Engine(Reply::Fields(Arc::new(fields))));
    assert!(shown(&app).contains("address"), "{}", shown(&app));
}

#[test]
fn the_lanes_asked_as_either_side() {
    looks("sway-140x30", &swaying(140, 30), COLOURED);
    looks("sway-80x24", &swaying(80, 24), COLOURED);
}

#[test]
fn the_lanes_compared_over_a_question_set() {
    looks("compare-140x36", &comparing(140, 36), COLOURED);
    looks("compare-80x24", &comparing(80, 24), COLOURED);
}

#[test]
fn instruments_are_drawn_in_every_size() {
    draws_every_size(swaying);
    draws_every_size(comparing);
    draws_every_size(biased_set);
    draws_every_size(|width, height| {
        let mut app = biased(width, height);
        press(&mut app, "<Enter>");
        app
    });
}

#[test]
fn switches_are_drawn_in_every_size() {
    draws_every_size(switched);
    for tabs in 0..4 {
        draws_every_size(|width, height| tuning(width, height, tabs));
    }
}

/// A list that was read at every k, one passage dropped and one moved before.
fn answering(width: u16, height: u16) -> App {
    let mut app = asked(width, height);
    stage::give_reader(&mut app, "llama-3", false);
    app.question.answers = vec!["yes".into()];
    press(&mut app, "rJjjjx");
    press(&mut app, "<Enter>");
    for (k, text) in [(1, "Yes"), (2, "No"), (3, "I'm sorry, no."), (4, "yes")] {
        let answer = Answer { text: text.into(), cut: usize::from(k == 3), ..Answer::default() };
        stage::heard(&mut app, Heard::Answer(k, answer));
    }
    stage::heard(&mut app, Heard::Ended(None));
    press(&mut app, "o");
    stage::heard(&mut app, Heard::Reordered(Reordered { same: 7, of: 10 }));
    stage::heard(&mut app, Heard::Ended(None));
    press(&mut app, "w");
    stage::heard(&mut app, Heard::Attention(vec![0.125, 0.5, 0.25, 0.125]));
    stage::heard(&mut app, Heard::Ended(None));
    app
}

/// The same without a reader.
fn stances(width: u16, height: u16) -> App {
    let mut app = asked(width, height);
    press(&mut app, "r");
    app
}

#[test]
fn what_is_read_from_a_list_and_what_turns_it() {
    looks("reader-140x40", &answering(140, 40), COLOURED);
    looks("reader-80x24", &stances(80, 24), COLOURED);
    looks("reader-40x12", &stances(40, 12), COLOURED);
    let mut app = answering(100, 30);
    app.glyphs = Glyphs::Ascii;
    looks("reader-ascii-100x30", &app, Theme::of(Look::Mono));
}

#[test]
fn what_is_read_is_drawn_in_every_size() {
    for stage in [answering, stances] {
        draws_every_size(stage);
    }
    draws_every_size(|width, height| {
        let mut app = foreign(width, height);
        stage::give_reader(&mut app, "\u{1b}[31mモデル", true);
        press(&mut app, "r<Enter>");
        let text = "動物園\u{202e}は必要か \u{1b}[2J 👩\u{200d}🚀".to_owned();
        stage::heard(&mut app, Heard::Answer(1, Answer { text, ..Answer::default() }));
        stage::heard(&mut app, Heard::Ended(Some("the server went away in the middle of it".into())));
        app
    });
    draws_every_size(|width, height| {
        let mut app = many_sided(width, height);
        stage::give_reader(&mut app, "llama-3", false);
        press(&mut app, "r");
        app
    });
}

#[test]
fn the_statements_being_edited() {
    looks("statements", &editing(80, 24), COLOURED);
}

#[test]
fn all_keys_and_marks() {
    looks("help", &help(80, 240), COLOURED);
}

#[test]
fn completions_lie_over_the_lanes() {
    looks("typing", &typing(100, 30), COLOURED);
}

#[test]
fn a_question_of_many_sides_has_letters() {
    looks("many-sided", &many_sided(140, 40), COLOURED);
    let mut app = many_sided(80, 24);
    press(&mut app, "<Enter>");
    looks("many-sided-read", &app, COLOURED);
}

#[test]
fn a_question_without_statements_says_how_to_give_some() {
    let mut app = without_statements(100, 30);
    app.notice = Some("no labels came with this corpus; give some with --labels FILE".into());
    looks("without-statements", &app, COLOURED);
}

/// All of 1..=20 × 1..=12, then in steps up to 200 × 60.
fn sizes() -> impl Iterator<Item = (u16, u16)> {
    let small = (1..=20).flat_map(|width| (1..=12).map(move |height| (width, height)));
    let large =
        (1..=200).step_by(13).flat_map(|width| (1..=60).step_by(9).map(move |height| (width, height)));
    let edges =
        [(200, 60), (200, 1), (1, 60), (31, 13), (32, 13), (64, 20), (96, 20), (128, 20), (47, 8), (48, 8)];
    small.chain(large).chain(edges)
}

fn draws_every_size(stage: impl Fn(u16, u16) -> App) {
    for glyphs in [Glyphs::Shapes, Glyphs::Ascii] {
        let mut resized = stage(80, 24);
        resized.glyphs = glyphs;
        for (width, height) in sizes() {
            update(&mut resized, Msg::Resized(size(width, height)));
            let dump = frame(&resized, COLOURED).unwrap().dump(false);
            assert_eq!(dump.lines().count(), usize::from(height), "{width}x{height}");
        }
    }
    for (width, height) in sizes().step_by(7) {
        frame(&stage(width, height), COLOURED).unwrap();
    }
}

/// A passage with evidence marked and a perspective chosen, not yet kept.
fn labelling(width: u16, height: u16) -> App {
    let mut app = crate::labelling::open(width, height);
    press(&mut app, "evlll<Enter>1");
    app
}

#[test]
fn a_passage_being_labelled_with_its_evidence() {
    looks("label-140x40", &labelling(140, 40), COLOURED);
    looks("label-80x24", &labelling(80, 24), COLOURED);
    looks("label-40x12", &labelling(40, 12), Theme::of(Look::Mono));
}

#[test]
fn a_passage_being_labelled_is_drawn_in_every_size() {
    draws_every_size(labelling);
    draws_every_size(|width, height| {
        let mut app = labelling(width, height);
        press(&mut app, "tso what<C-a>");
        app
    });
    draws_every_size(|width, height| {
        let mut app = labelling(width, height);
        press(&mut app, "g");
        app
    });
}

fn looking_for_an_action(width: u16, height: u16) -> App {
    let mut app = asked(width, height);
    press(&mut app, ":re-rank<Down>");
    app
}

#[test]
fn an_action_is_looked_for_over_the_lanes() {
    looks("palette", &looking_for_an_action(80, 24), COLOURED);
    draws_every_size(looking_for_an_action);
}

#[test]
fn the_lanes_are_drawn_in_every_size() {
    draws_every_size(asked);
    draws_every_size(|width, height| {
        let mut app = asked(width, height);
        press(&mut app, "<Tab>G");
        app
    });
}

#[test]
fn foreign_scripts_are_drawn_in_every_size() {
    draws_every_size(foreign);
    for at in 0..FOREIGN.len() {
        draws_every_size(|width, height| {
            let mut app = foreign(width, height);
            app.lanes[0].selected = at;
            press(&mut app, "<Enter>");
            app
        });
    }
}

#[test]
fn a_passage_is_drawn_in_every_size_also_at_its_end() {
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
        app.screen = Screen::Help;
        app
    });
}

#[test]
fn every_key_in_every_place_leaves_something_that_can_be_drawn() {
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
        swaying,
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
