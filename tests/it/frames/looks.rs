//! Themes, ASCII, layout, configured keys; every size without a panic.

use super::*;

#[test]
fn without_colours_bold_text_and_glyphs_remain() {
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

#[test]
fn in_ascii_mode_every_screen_draws_only_ascii() {
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
        sycophancy_screen,
        framing_lab,
        what_if,
        stage::pointed,
        stage::mixer,
        stage::sided,
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
fn in_ascii_mode_passages_keep_their_own_characters() {
    let mut app = foreign(140, 40);
    app.glyphs = Glyphs::Ascii;
    let text = frame(&app, COLOURED).unwrap().dump(false);
    assert!(text.contains("動物園") && !text.contains('┌'), "{text}");
    // The replacements of control characters are not part of the passage.
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
fn footer_help_palette_and_advice_name_the_configured_keys() {
    let mut app = rebound(100, 60);
    let text = |app: &App| frame(app, COLOURED).unwrap().dump(false);
    let shown = text(&app);
    for printed in ["^o ask", "F1 keys", "press I to type them", "the configuration was read again"] {
        assert!(shown.contains(printed), "{printed}\n{shown}");
    }
    press(&mut app, ":edit");
    assert!(text(&app).contains("^o     edit the question"), "{}", text(&app));
    press(&mut app, "<Esc>?");
    assert!(!text(&app).contains(" Keys "), "the old key orders nothing");
    press(&mut app, "<F1>");
    let shown = text(&app);
    assert!(shown.contains("l Tab →") && shown.contains("F1    "), "{shown}");
    // A long list of keys does not overlap the description of their action.
    let (config, _) = parallax::tui::config::read(
        "[keys.lanes]\nread = ['<PageDown>', '<PageUp>', '<F2>']\n[keys]\npage-down = 'W'\npage-up = 'Z'\n",
    );
    update(&mut app, Msg::Configured(Ok(config)));
    assert!(text(&app).contains("PageDown PageUp F2 read"), "{}", text(&app));
}

#[test]
fn a_wrong_configuration_leaves_the_old_one_and_is_reported() {
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
fn instruments_are_drawn_in_every_size() {
    draws_every_size(sycophancy_screen);
    draws_every_size(framing_lab);
    draws_every_size(what_if);
    draws_every_size(stage::pointed);
    draws_every_size(stage::mixer);
    draws_every_size(stage::sided);
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
        stage::heard(&mut app, ReadEvent::Answer(1, Answer { text, ..Answer::default() }));
        stage::heard(&mut app, ReadEvent::Ended(Some("the server went away in the middle of it".into())));
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
fn titles_stand_on_a_tint_of_their_side_until_the_configuration_turns_it_off() {
    let mut app = asked(140, 40);
    let drawn = |app: &App, depth| {
        let shown = frame(app, Theme { look: Look::Dark, depth }).unwrap();
        (shown.dump(true), shown.dump(false))
    };
    let (tinted, text) = drawn(&app, Depth::Millions);
    let (indexed, _) = drawn(&app, Depth::Indexed);
    app.settings.tint = parallax::tui::config::Tint::Off;
    let (plain, same) = drawn(&app, Depth::Millions);
    assert_ne!(tinted, plain);
    assert_eq!(text, same);
    assert_eq!(indexed, drawn(&app, Depth::Indexed).0, "without 24-bit colour there is no tint");
}
