use std::fs;
use std::path::Path;

use super::place;
use super::settings::LONGEST;
use super::*;
use crate::report::marks::Glyphs;
use crate::tui::keymap::{Action, Bound, Context, Preset, TABLE};
use crate::tui::theme::Look;

/// Returns the problems of a text, one line each.
fn wrong(text: &str) -> Vec<String> {
    let problems = Problems { file: "config.toml".into(), all: read(text).1 };
    problems.lines().collect()
}

#[track_caller]
fn good(text: &str) -> Config {
    let (config, problems) = read(text);
    assert_eq!(problems, [], "{text}");
    config
}

fn keys(config: &Config, context: Context, action: Action) -> Vec<String> {
    let bound: Vec<&Bound> =
        config.keys.of_context(context).filter(|bound| bound.line.action == action).collect();
    bound.iter().flat_map(|bound| bound.keys.clone()).collect()
}

#[test]
fn an_empty_file_is_the_defaults() {
    assert_eq!(good(""), Config::default());
    assert_eq!(good("# nothing\n[keys]\n[layout]\n"), Config::default());
}

#[test]
fn every_setting_is_read() {
    let text = "theme = 'deuteranopia'\nglyphs = 'ascii'\nmouse = false\ntint = false\ncontact = 'me@example.org'\nprovider = 'wikipedia:de'\n[layout]\nlane-width = 40\npassage-rows = 1\n[keys]\npreset = 'vim'\n";
    let config = good(text);
    assert_eq!(config.look, Some(Look::Deuteranopia));
    assert_eq!((config.glyphs, config.mouse, config.tint), (Glyphs::Ascii, Mouse::Off, Tint::Off));
    assert_eq!(config.contact.as_deref(), Some("me@example.org"));
    assert_eq!(config.provider.to_string(), "wikipedia:de");
    assert_eq!(config.layout, Layout { lane_width: 40, passage_rows: 1 });
    assert_eq!(config.keys.preset, Preset::Vim);
}

#[test]
fn a_theme_that_is_named_differs_from_none_even_if_it_is_the_default() {
    assert_eq!((good("").look, good("theme = 'terminal'").look), (None, Some(Look::Terminal)));
    let above = Source { look: Some(Look::Terminal), ..Source::default() };
    assert_eq!(above.load().unwrap().look, Some(Look::Terminal));
}

#[test]
fn a_shown_configuration_reads_back_the_same() {
    for text in [
        "",
        "theme = 'mono'\nmouse = false\ntint = false\ncontact = 'https://example.org/\"me'\nprovider = 'urls:a\\\\b.txt'\n[keys]\npreset = 'vim'\nback = ['<Esc>', '\"', '\\']\n",
    ] {
        let config = good(text);
        // The file names the theme, also the default one.
        let named = Config { look: Some(config.look()), ..config.clone() };
        assert_eq!(good(&config.to_string()), named);
    }
}

#[test]
fn a_shown_configuration_names_the_default_of_changed_settings() {
    let shown = good("theme = 'mono'\n[keys.lanes]\nquit = 'W'\n").to_string();
    let changed: Vec<&str> = shown.lines().filter(|line| line.contains("the default is")).collect();
    assert_eq!(
        changed,
        [
            "theme = \"mono\"  # terminal, light, dark, deuteranopia, mono; the default is \"terminal\"",
            "quit = \"W\"  # leave; the default is \"q\""
        ]
    );
}

#[test]
fn every_problem_is_reported_with_its_place_in_order() {
    let text = "thme = 'dark'\ntheme = 'darkk'\nglyphs = 7\nmouse = 'yes'\n\n[layout]\nlane-width = 5\npassage-rows = -1\nrows = 2\n[keys]\npreset = 'emacs'\n[colours]\n";
    assert_eq!(
        wrong(text),
        [
            "config.toml:1:1: there is no setting `thme`; did you mean `theme`?",
            "config.toml:2:9: expected one of \"terminal\", \"light\", \"dark\", \"deuteranopia\", \"mono\", found \"darkk\"",
            "config.toml:3:10: expected one of \"unicode\", \"ascii\", found 7",
            "config.toml:4:9: expected true or false, found \"yes\"",
            "config.toml:7:14: expected a number from 20 to 200, found 5",
            "config.toml:8:16: expected a number from 1 to 10, found -1",
            "config.toml:9:1: there is no setting `rows` in [layout]; expected one of lane-width, passage-rows",
            "config.toml:11:10: expected one of \"default\", \"vim\", found \"emacs\"",
            "config.toml:12:2: there is no setting `colours`; expected one of theme, glyphs, tint, pictures, mouse, contact, provider, layout, keys",
        ]
    );
}

#[test]
fn tables_and_values_in_each_others_place_are_problems() {
    assert_eq!(
        wrong("layout = 3\nkeys = 'vim'\n[theme]\n"),
        [
            "config.toml:1:10: expected a table with settings such as `lane-width = 32`, found 3",
            "config.toml:2:8: expected a table with settings such as `preset = \"vim\"`, found \"vim\"",
            "config.toml:3:1: expected one of \"terminal\", \"light\", \"dark\", \"deuteranopia\", \"mono\", found a table",
        ]
    );
}

#[test]
fn every_syntax_error_is_reported_with_its_line() {
    assert_eq!(wrong("mouse = perhaps\n"), ["config.toml:1:9: expected true or false, found \"perhaps\""]);
    let problems = wrong("theme = \nmouse = true\nglyphs = 'ascii\n");
    assert!(problems[0].starts_with("config.toml:1:"), "{problems:?}");
    assert!(problems.last().unwrap().starts_with("config.toml:3:"), "{problems:?}");
    let twice = wrong("mouse = true\nmouse = false\n");
    assert!(twice[0].starts_with("config.toml:2:1: ") && twice[0].contains("duplicate"), "{twice:?}");
}

#[test]
fn a_column_counts_characters() {
    assert_eq!(place("a\nä物 x", 8), (2, 4));
    assert_eq!(place("", 0), (1, 1));
}

#[test]
fn an_action_has_its_new_keys_on_every_screen() {
    let config = good("[keys]\npage-down = ['<C-j>', 'Z']\n");
    for place in [Context::Lanes, Context::Read, Context::Tune, Context::Compare] {
        assert_eq!(keys(&config, place, Action::PageDown), ["<C-j>", "Z"]);
    }
}

#[test]
fn characters_stay_text_in_text_fields() {
    let config = good("[keys]\nup = ['Z', '<C-t>']\nquit = 'W'\n");
    assert_eq!(keys(&config, Context::Lanes, Action::Up), ["Z", "<C-t>"]);
    assert_eq!(keys(&config, Context::Statements, Action::Up), ["<C-t>"]);
    assert_eq!(keys(&config, Context::Anywhere, Action::Quit), ["<C-c>"]);
    assert_eq!(
        wrong("[keys]\nask = 'x'\n"),
        ["config.toml:2:7: text is typed there: expected a key such as <C-x>, <F2> or <Enter>, found \"x\""]
    );
    for edits in ["<BS>", "<Del>", "<Left>", "<Right>", "<Home>", "<End>"] {
        let problems = wrong(&format!("[keys.question-line]\nback = '{edits}'\n"));
        assert!(problems.len() == 1 && problems[0].contains("text is typed there"), "{edits}: {problems:?}");
    }
}

#[test]
fn one_place_can_have_other_keys() {
    let config = good("[keys]\nback = '<F2>'\n[keys.reading]\nback = 'Z'\n");
    assert_eq!(keys(&config, Context::Read, Action::Back), ["Z"]);
    assert_eq!(keys(&config, Context::Tune, Action::Back), ["<F2>"]);
}

#[test]
fn an_unknown_action_place_or_key_is_reported_with_the_nearest() {
    assert_eq!(
        wrong(
            "[keys]\npage-dwn = 'x'\nhelp = 'ctrl-h'\nsave-frame = 'enter'\nbias = 'gg'\ncompare = []\nsycophancy = 3\ntune = ['Z', 4, 'Z', 'f2']\n[keys.lane]\nquit = 'W'\n[keys.reading]\nqit = 'x'\n"
        ),
        [
            "config.toml:2:1: there is no action `page-dwn`; did you mean `page-down`?",
            "config.toml:3:8: expected one key, found \"ctrl-h\"; did you mean \"<C-h>\"?",
            "config.toml:4:14: expected one key, found \"enter\"; did you mean \"<Enter>\"?",
            "config.toml:5:8: expected one key, found \"gg\"; write x, <C-x>, <F2>, <Enter>, <Space> or <lt>",
            "config.toml:6:11: expected a key such as \"<C-x>\", or a list of keys, found a list",
            "config.toml:7:14: expected a key such as \"<C-x>\", or a list of keys, found 3",
            "config.toml:8:14: expected a key such as \"<C-x>\", found 4",
            "config.toml:8:17: `Z` is twice in this list",
            "config.toml:8:22: expected one key, found \"f2\"; did you mean \"<F2>\"?",
            "config.toml:9:7: there is no place `lane`; did you mean `lanes`?",
            "config.toml:12:1: there is no action `qit` in reading; expected one of back, down, first, help, index-entry, label-both, label-none, label-oppose, label-support, last, next-label-page, next-label-source, next-lane, next-passage, page-down, page-up, palette, previous-passage, raw-record, record, redo, save-frame, show-recipe, show-settings, toggle-label, undo, up, what-if",
        ]
    );
}

#[test]
fn two_actions_on_one_key_are_reported_with_both_lines() {
    assert_eq!(
        wrong("[keys.lanes]\nnew-lane = 'Z'\ndrop-lane = ['<Del>', 'Z']\n"),
        [
            "config.toml:3:23: `Z` is `drop-lane` here and `new-lane` in line 2, both in: lanes; give one of them another key"
        ]
    );
    assert_eq!(
        wrong("[keys]\nhelp = 'q'\n").first().unwrap(),
        "config.toml:2:8: `q` is `help` here and `quit` in the preset, both in: lanes; give one of them another key"
    );
    // A key for all places conflicts in several, and is reported once.
    let problems = wrong("[keys]\nsuspend = '<Esc>'\n");
    assert!(
        problems.len() <= 2 && problems[0].contains("question line, lanes, typing a filter, reading"),
        "{problems:?}"
    );
}

#[test]
fn swapping_the_keys_of_two_actions_is_no_conflict() {
    let config = good("[keys.lanes]\nnew-lane = 'd'\ndrop-lane = 'n'\n");
    assert_eq!(keys(&config, Context::Lanes, Action::NewLane), ["d"]);
    good("[keys]\nhelp = '<F1>'\npalette = ['<F2>', ':']\n");
}

#[test]
fn a_numbered_action_has_at_most_one_key_per_number() {
    let config = good("[keys]\nprobe = ['<F1>', '<F2>', '<F3>']\n");
    assert_eq!(keys(&config, Context::Answer, Action::Probe(0)).len(), 3);
    let seven = "[keys]\nprobe = ['<F1>','<F2>','<F3>','<F4>','<F5>','<F6>','<F7>']\n";
    assert_eq!(wrong(seven), ["config.toml:2:9: expected at most 6 keys, one per number, found 7"]);
}

#[test]
fn every_action_can_have_another_key_in_every_place() {
    for preset in Preset::ALL {
        for line in TABLE {
            let (place, action) = (line.context.key(), line.action.name());
            let text = format!("[keys]\npreset = '{}'\n[keys.{place}]\n{action} = '<F9>'\n", preset.name());
            let config = good(&text);
            let key = crossterm::event::KeyCode::F(9).into();
            assert_eq!(config.keys.action(line.context, &key), Some(line.action), "{text}");
            let text = format!("[keys]\npreset = '{}'\n{action} = '<F9>'\n", preset.name());
            assert_eq!(good(&text).keys.action(line.context, &key), Some(line.action), "{text}");
        }
    }
}

fn source(path: &Path, named: bool) -> Source {
    Source { path: Some(path.into()), named, ..Source::default() }
}

#[test]
fn only_a_file_that_nobody_named_may_be_absent() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.toml");
    assert_eq!(source(&path, false).load(), Ok(Config::default()));
    let message = source(&path, true).load().unwrap_err().to_string();
    assert!(message.contains("config.toml: no such file"), "{message}");
    assert_eq!(Source::default().load(), Ok(Config::default()));
}

#[test]
fn folders_binary_files_and_huge_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let message = source(folder.path(), true).load().unwrap_err().to_string();
    assert!(message.contains("expected a file, found a folder"), "{message}");
    let path = folder.path().join("config.toml");
    fs::write(&path, b"# caf\xc3\xa9\ntheme = '\xff'\n").unwrap();
    let message = source(&path, false).load().unwrap_err().to_string();
    assert!(message.contains("config.toml:2:10: expected UTF-8 text; convert"), "{message}");
    fs::write(&path, vec![b'#'; LONGEST as usize + 1]).unwrap();
    let message = source(&path, false).load().unwrap_err().to_string();
    assert!(message.contains("at most 1 MB"), "{message}");
}

#[test]
fn flags_override_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.toml");
    fs::write(&path, "theme = 'dark'\nmouse = false\n").unwrap();
    let above = Source { look: Some(Look::Mono), ascii: true, ..source(&path, true) };
    let config = above.load().unwrap();
    assert_eq!((config.look(), config.glyphs, config.mouse), (Look::Mono, Glyphs::Ascii, Mouse::Off));
}

#[test]
fn the_short_form_has_the_first_problem_and_a_count() {
    let problems = Problems { file: "/somewhere/config.toml".into(), all: read("a = 1\nb = 2\n").1 };
    let short = problems.short();
    assert!(short.starts_with("config.toml:1:1: there is no setting `a`"), "{short}");
    assert!(short.ends_with("(and 1 more)") && !short.contains('\n'), "{short}");
}

#[test]
fn reading_never_panics() {
    let whole = Config::default().to_string();
    for (at, _) in whole.char_indices().step_by(7) {
        read(&whole[..at]);
        read(&whole[at..]);
    }
    for text in [
        "[keys",
        "[[keys]]\n",
        "keys.lanes.quit = {}",
        "\u{feff}theme = 'dark'",
        "theme = '\u{0}'",
        "a.b.c.d = [[[[1]]]]",
    ] {
        read(text);
    }
}

#[test]
fn the_key_that_opens_a_screen_closes_it_too_unless_the_file_says_otherwise() {
    let config = good("[keys]\nsycophancy = ['Y', '<F4>']\ncopy-recipe = '<F3>'\n");
    assert_eq!(keys(&config, Context::Sycophancy, Action::Back), ["<Esc>", "q", "Y", "<F4>"]);
    assert_eq!(good(&config.to_string()).keys, config.keys);
    let config = good("[keys.lanes]\nsycophancy = '<F4>'\n[keys.asking-as-either-side]\nback = '<F5>'\n");
    assert_eq!(keys(&config, Context::Sycophancy, Action::Back), ["<F5>"]);
    // A key with another meaning there does not close it.
    let config = good("[keys.lanes]\ntune = '<F4>'\nhelp = '<F6>'\n");
    assert_eq!(keys(&config, Context::Help, Action::Back), ["<Esc>", "q", "<F6>"]);
    let config = good("[keys.lanes]\nsycophancy = 'J'\ncompare = 'y'\n");
    assert_eq!(keys(&config, Context::Compare, Action::Back), ["<Esc>", "q", "y"]);
}
