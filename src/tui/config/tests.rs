use super::*;
use crate::tui::keymap::{Action, Bound, Context, Preset, TABLE};

/// What is wrong in a text, a line each.
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
        config.keys.of_place(context).filter(|bound| bound.line.action == action).collect();
    bound.iter().flat_map(|bound| bound.keys.clone()).collect()
}

#[test]
fn an_empty_file_is_the_defaults() {
    assert_eq!(good(""), Config::default());
    assert_eq!(good("# nothing\n[keys]\n[layout]\n"), Config::default());
}

#[test]
fn every_setting_is_taken() {
    let text = "theme = 'deuteranopia'\nglyphs = 'ascii'\nmouse = false\n[layout]\nlane-width = 40\npassage-rows = 1\n[keys]\npreset = 'vim'\n";
    let config = good(text);
    assert_eq!(config.look, Look::Deuteranopia);
    assert_eq!((config.glyphs, config.mouse), (Glyphs::Ascii, Mouse::Left));
    assert_eq!(config.layout, Layout { lane_width: 40, passage_rows: 1 });
    assert_eq!(config.keys.preset, Preset::Vim);
}

#[test]
fn what_is_shown_is_a_file_that_makes_the_same() {
    for text in ["", "theme = 'mono'\nmouse = false\n[keys]\npreset = 'vim'\nback = ['<Esc>', '\"', '\\']\n"]
    {
        let config = good(text);
        assert_eq!(good(&config.to_string()), config);
    }
}

#[test]
fn what_is_shown_says_what_is_not_a_default() {
    let shown = good("theme = 'mono'\n[keys.lanes]\nquit = 'Q'\n").to_string();
    let told: Vec<&str> = shown.lines().filter(|line| line.contains("the default is")).collect();
    assert_eq!(
        told,
        [
            "theme = \"mono\"  # terminal, light, dark, deuteranopia, mono; the default is \"terminal\"",
            "quit = \"Q\"  # leave; the default is \"q\""
        ]
    );
}

#[test]
fn everything_that_is_wrong_is_told_with_its_place_and_in_order() {
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
            "config.toml:9:1: there is no setting `rows` in [layout]; there are lane-width, passage-rows",
            "config.toml:11:10: expected one of \"default\", \"vim\", found \"emacs\"",
            "config.toml:12:2: there is no setting `colours`; there are theme, glyphs, mouse, layout, keys",
        ]
    );
}

#[test]
fn a_table_where_a_value_belongs_and_a_value_where_a_table_belongs() {
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
fn what_is_no_toml_is_told_with_every_line() {
    assert_eq!(wrong("mouse = perhaps\n"), ["config.toml:1:9: expected true or false, found \"perhaps\""]);
    let told = wrong("theme = \nmouse = true\nglyphs = 'ascii\n");
    assert!(told[0].starts_with("config.toml:1:"), "{told:?}");
    assert!(told.last().unwrap().starts_with("config.toml:3:"), "{told:?}");
    let twice = wrong("mouse = true\nmouse = false\n");
    assert!(twice[0].starts_with("config.toml:2:1: ") && twice[0].contains("duplicate"), "{twice:?}");
}

#[test]
fn a_column_counts_characters() {
    assert_eq!(problem::place("a\nä物 x", 8), (2, 4));
    assert_eq!(problem::place("", 0), (1, 1));
}

#[test]
fn an_action_has_its_new_keys_wherever_it_is_an_order() {
    let config = good("[keys]\npage-down = ['<C-j>', 'z']\n");
    for place in [Context::Lanes, Context::Read, Context::Tune, Context::Compare] {
        assert_eq!(keys(&config, place, Action::PageDown), ["<C-j>", "z"]);
    }
}

#[test]
fn where_text_is_typed_a_character_stays_one() {
    let config = good("[keys]\nup = ['z', '<C-t>']\nquit = 'Q'\n");
    assert_eq!(keys(&config, Context::Lanes, Action::Up), ["z", "<C-t>"]);
    assert_eq!(keys(&config, Context::Statements, Action::Up), ["<C-t>"]);
    assert_eq!(keys(&config, Context::Anywhere, Action::Quit), ["<C-c>"]);
    assert_eq!(
        wrong("[keys]\nask = 'x'\n"),
        ["config.toml:2:7: text is typed there: expected a key such as <C-x>, <F2> or <Enter>, found \"x\""]
    );
    for edits in ["<BS>", "<Del>", "<Left>", "<Right>", "<Home>", "<End>"] {
        let told = wrong(&format!("[keys.question-line]\nback = '{edits}'\n"));
        assert!(told.len() == 1 && told[0].contains("text is typed there"), "{edits}: {told:?}");
    }
}

#[test]
fn one_place_can_differ_from_all_others() {
    let config = good("[keys]\nback = '<F2>'\n[keys.reading]\nback = 'z'\n");
    assert_eq!(keys(&config, Context::Read, Action::Back), ["z"]);
    assert_eq!(keys(&config, Context::Tune, Action::Back), ["<F2>"]);
}

#[test]
fn an_unknown_action_place_or_key_is_told_with_the_nearest() {
    assert_eq!(
        wrong(
            "[keys]\npage-dwn = 'x'\nhelp = 'ctrl-h'\nsave-frame = 'enter'\nbias = 'gg'\ncompare = []\nsway = 3\ntune = ['z', 4, 'z', 'f2']\n[keys.lane]\nquit = 'Q'\n[keys.reading]\nqit = 'x'\n"
        ),
        [
            "config.toml:2:1: there is no action `page-dwn`; did you mean `page-down`?",
            "config.toml:3:8: expected one key, found \"ctrl-h\"; did you mean \"<C-h>\"?",
            "config.toml:4:14: expected one key, found \"enter\"; did you mean \"<Enter>\"?",
            "config.toml:5:8: expected one key, found \"gg\"; write x, <C-x>, <F2>, <Enter>, <Space> or <lt>",
            "config.toml:6:11: expected a key such as \"<C-x>\", or a list of keys, found a list",
            "config.toml:7:8: expected a key such as \"<C-x>\", or a list of keys, found 3",
            "config.toml:8:14: expected a key such as \"<C-x>\", found 4",
            "config.toml:8:17: `z` stands twice in this list",
            "config.toml:8:22: expected one key, found \"f2\"; did you mean \"<F2>\"?",
            "config.toml:9:7: there is no place `lane`; did you mean `lanes`?",
            "config.toml:12:1: there is no action `qit` in reading; there are back, down, first, help, last, next-label-source, next-lane, next-passage, page-down, page-up, palette, previous-passage, record, save-frame, up",
        ]
    );
}

#[test]
fn two_actions_on_one_key_are_told_with_both_lines() {
    assert_eq!(
        wrong("[keys.lanes]\nnew-lane = 'z'\ndrop-lane = ['<Del>', 'z']\n"),
        [
            "config.toml:3:23: `z` is `drop-lane` here and `new-lane` in line 2, both in: lanes; give one of them another key"
        ]
    );
    assert_eq!(
        wrong("[keys]\nhelp = 'q'\n").first().unwrap(),
        "config.toml:2:8: `q` is `help` here and `quit` in the preset, both in: lanes; give one of them another key"
    );
    // Everywhere is in every place, and one line of it is told once.
    let told = wrong("[keys]\nsuspend = '<Esc>'\n");
    assert!(told.len() <= 2 && told[0].contains("question line, typing a filter, reading"), "{told:?}");
}

#[test]
fn swapping_the_keys_of_two_actions_is_no_conflict() {
    let config = good("[keys.lanes]\nnew-lane = 'd'\ndrop-lane = 'n'\n");
    assert_eq!(keys(&config, Context::Lanes, Action::NewLane), ["d"]);
    good("[keys]\nhelp = '<F1>'\npalette = ['<F2>', ':']\n");
}

#[test]
fn keys_that_are_numbers_are_at_most_as_many() {
    let config = good("[keys]\nprobe = ['<F1>', '<F2>', '<F3>']\n");
    assert_eq!(keys(&config, Context::Answer, Action::Probe(0)).len(), 3);
    let seven = "[keys]\nprobe = ['<F1>','<F2>','<F3>','<F4>','<F5>','<F6>','<F7>']\n";
    assert_eq!(wrong(seven), ["config.toml:2:9: expected at most 6 keys, one a number, found 7"]);
}

#[test]
fn every_action_can_be_given_another_key_in_every_place_and_obeys_it() {
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
fn a_file_that_nobody_named_may_be_absent_and_one_that_was_named_may_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.toml");
    assert_eq!(source(&path, false).load(), Ok(Config::default()));
    let told = source(&path, true).load().unwrap_err().to_string();
    assert!(told.contains("config.toml: no such file"), "{told}");
    assert_eq!(Source::default().load(), Ok(Config::default()));
}

#[test]
fn a_folder_and_what_is_no_text_and_what_is_far_too_long_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let told = source(folder.path(), true).load().unwrap_err().to_string();
    assert!(told.contains("expected a file, found a folder"), "{told}");
    let path = folder.path().join("config.toml");
    fs::write(&path, b"# caf\xc3\xa9\ntheme = '\xff'\n").unwrap();
    let told = source(&path, false).load().unwrap_err().to_string();
    assert!(told.contains("config.toml:2:10: expected UTF-8 text; convert"), "{told}");
    fs::write(&path, vec![b'#'; LONGEST as usize + 1]).unwrap();
    let told = source(&path, false).load().unwrap_err().to_string();
    assert!(told.contains("at most 1 MB"), "{told}");
}

#[test]
fn what_was_asked_for_otherwise_stands_above_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.toml");
    fs::write(&path, "theme = 'dark'\nmouse = false\n").unwrap();
    let above = Source { look: Some(Look::Mono), ascii: true, ..source(&path, true) };
    let config = above.load().unwrap();
    assert_eq!((config.look, config.glyphs, config.mouse), (Look::Mono, Glyphs::Ascii, Mouse::Left));
}

#[test]
fn the_first_of_several_problems_fits_a_line() {
    let problems = Problems { file: "/somewhere/config.toml".into(), all: read("a = 1\nb = 2\n").1 };
    let short = problems.short();
    assert!(short.starts_with("config.toml:1:1: there is no setting `a`"), "{short}");
    assert!(short.ends_with("(and 1 more)") && !short.contains('\n'), "{short}");
}

#[test]
fn no_text_however_broken_makes_reading_it_panic() {
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
fn the_key_that_opens_a_screen_closes_it_too_unless_that_is_given() {
    let config = good("[keys]\nsway = ['Y', '<F4>']\ncopy-recipe = '<F3>'\n");
    assert_eq!(keys(&config, Context::Sway, Action::Back), ["<Esc>", "q", "Y", "<F4>"]);
    assert_eq!(good(&config.to_string()), config);
    let config = good("[keys.lanes]\nsway = '<F4>'\n[keys.asking-as-either-side]\nback = '<F5>'\n");
    assert_eq!(keys(&config, Context::Sway, Action::Back), ["<F5>"]);
    // A key that orders something else there does not close it.
    let config = good("[keys.lanes]\ntune = '<F4>'\nhelp = '<F6>'\n");
    assert_eq!(keys(&config, Context::Help, Action::Back), ["<Esc>", "q", "<F6>"]);
    let config = good("[keys.lanes]\nsway = 'L'\ncompare = 'y'\n");
    assert_eq!(keys(&config, Context::Compare, Action::Back), ["<Esc>", "q", "y"]);
}
