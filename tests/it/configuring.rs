//! `parallax config` and `man`, and the effect of a configuration on `frame`.

use crate::program::Workspace;

const FRAME: [&str; 9] = [
    "--lanes",
    "bm25",
    "--label-source",
    "gold",
    "frame",
    "--size",
    "80x24",
    "--keys",
    "Should zoos be banned?<Enter><Wait>",
];

#[test]
fn check_reports_every_problem_with_its_place_and_ends_with_one() {
    let workspace = Workspace::new();
    workspace.write("bad.toml", "theme = 'pink'\n[keys]\nquit = 'ctrl-q'\nhlp = 'x'\n");
    let printed = workspace.run(&["config", "check", "bad.toml"]);
    assert_eq!((printed.code, printed.err.as_str()), (Some(1), ""));
    let lines: Vec<&str> = printed.out.lines().collect();
    assert_eq!(lines.len(), 3, "{}", printed.out);
    assert!(lines[0].starts_with("bad.toml:1:9: expected one of \"terminal\""), "{}", lines[0]);
    assert!(lines[1].starts_with("bad.toml:3:8: expected one key, found \"ctrl-q\""), "{}", lines[1]);
    assert_eq!(lines[2], "bad.toml:4:1: there is no action `hlp`; did you mean `help`?");
    let printed = workspace.run(&["config", "check", "absent.toml"]);
    assert_eq!(printed.code, Some(1));
    assert!(printed.out.starts_with("absent.toml: no such file"), "{}", printed.out);
    let printed = workspace.run(&["config", "check", "."]);
    assert_eq!(
        (printed.code, printed.out.as_str()),
        (Some(1), ".: expected a file, found a folder; name the file in it\n")
    );
}

#[test]
fn the_output_of_show_is_a_valid_configuration_and_shows_the_same() {
    let workspace = Workspace::new();
    workspace.write("mine.toml", "theme = 'light'\n[keys]\npreset = 'vim'\nquit = 'W'\n");
    let shown = workspace.run(&["config", "show", "--config", "mine.toml"]).good();
    assert!(shown.contains("quit = \"W\"  # leave; the default is \"q\""), "{shown}");
    workspace.write("shown.toml", &shown);
    let printed = workspace.run(&["config", "check", "shown.toml"]);
    assert_eq!((printed.code, printed.out.as_str()), (Some(0), "shown.toml: nothing is wrong\n"));
    assert_eq!(workspace.run(&["config", "show", "--config", "shown.toml"]).good(), shown);
    // The command that the message about a missing file suggests must work while the file is missing.
    let shown = workspace.run(&["config", "show", "--config", "absent.toml"]).good();
    assert!(shown.starts_with("theme = \"terminal\"") && shown.contains("[keys"), "{shown}");
}

#[test]
fn show_includes_options_that_override_the_file() {
    let workspace = Workspace::new();
    workspace.write("mine.toml", "theme = 'light'\n");
    let arguments = ["config", "show", "--config", "mine.toml"];
    let mut command = workspace.command(&arguments);
    let shown = crate::program::printed(command.env("NO_COLOR", "1")).good();
    assert!(shown.starts_with("theme = \"mono\""), "{shown}");
    // An empty variable has no effect.
    let mut command = workspace.command(&arguments);
    let shown = crate::program::printed(command.env("NO_COLOR", "")).good();
    assert!(shown.starts_with("theme = \"light\""), "{shown}");
    let shown = workspace.run(&[&arguments[..], &["--theme", "dark", "--ascii"]].concat()).good();
    assert!(shown.starts_with("theme = \"dark\"") && shown.contains("glyphs = \"ascii\""), "{shown}");
}

#[test]
fn path_prints_the_named_file_or_the_systems() {
    let workspace = Workspace::new();
    assert_eq!(workspace.run(&["config", "path", "--config", "mine.toml"]).good(), "mine.toml\n");
    let mut command = workspace.command(&["config", "path"]);
    command.env_remove("PARALLAX_CONFIG");
    let usual = crate::program::printed(&mut command).good();
    assert!(usual.trim_end().ends_with("config.toml") && usual.contains("parallax"), "{usual}");
}

#[test]
fn a_frame_follows_the_file_and_the_options() {
    let workspace = Workspace::new();
    workspace.write("mine.toml", "glyphs = 'ascii'\ntheme = 'deuteranopia'\n");
    let plain = workspace.run(&FRAME).good();
    assert!(plain.contains('┏'), "{plain}");
    let drawn = workspace.run(&[&FRAME[..], &["--config", "mine.toml", "--style"]].concat()).good();
    assert!(drawn.is_ascii() && drawn.contains("rgb("), "{drawn}");
    let mono = workspace.run(&[&FRAME[..], &["--theme", "mono", "--style"]].concat()).good();
    assert!(!mono.contains("rgb(") && !mono.contains("cyan"), "{mono}");
    let light = workspace.run(&[&FRAME[..], &["--theme", "light", "--style"]].concat()).good();
    assert!(light.contains("on rgb(251, 251, 249)"), "{light}");
}

#[test]
fn a_wrong_configuration_is_reported_only_by_commands_that_draw() {
    let workspace = Workspace::new();
    workspace.write("bad.toml", "mouse = 1\n");
    let printed = workspace.run(&[&FRAME[..], &["--config", "bad.toml"]].concat());
    assert_eq!(printed.code, Some(2));
    assert!(
        printed.err.contains("bad.toml:1:9: expected true or false, found 1\nnothing was taken"),
        "{}",
        printed.err
    );
    let printed = workspace.run(&["config", "show", "--config", "bad.toml"]);
    assert_eq!(printed.code, Some(2));
    workspace.run(&["statements", "Should zoos be banned?", "--config", "bad.toml"]).good();
    let printed = workspace.run(&[&FRAME[..], &["--config", "absent.toml"]].concat());
    assert!(printed.code == Some(2) && printed.err.contains("absent.toml: no such file"), "{}", printed.err);
    let printed = workspace.run(&[&FRAME[..], &["--theme", "pink"]].concat());
    assert!(printed.code == Some(2) && printed.err.contains("deuteranopia"), "{}", printed.err);
    let printed = workspace.run(&[&FRAME[..], &["--theme", "dark", "--no-color"]].concat());
    assert!(printed.code == Some(2) && printed.err.contains("cannot be used with"), "{}", printed.err);
}

#[test]
fn the_manual_has_a_page_for_the_program_and_for_each_command() {
    let workspace = Workspace::new();
    let page = workspace.run(&["man"]).good();
    for printed in [".TH parallax 1", "PARALLAX_CONFIG", "parallax\\-eval(1)"] {
        assert!(page.contains(printed), "{printed}\n{page}");
    }
    let page = workspace.run(&["man", "annotate", "agree"]).good();
    assert!(page.contains(".TH parallax-annotate-agree 1") && page.contains("refit"), "{page}");
    assert!(page.contains(concat!("parallax ", env!("CARGO_PKG_VERSION"))), "{page}");
    let printed = workspace.run(&["man", "annotate", "argue"]);
    assert_eq!(printed.code, Some(2));
    assert!(
        printed.err.contains("`parallax annotate` has no command `argue`; there are new, status"),
        "{}",
        printed.err
    );
    let printed = workspace.run(&["man", "search", "x"]);
    assert!(printed.err.contains("`parallax search` has no commands; leave `x` out"), "{}", printed.err);
}

#[test]
fn the_example_on_the_page_is_valid() {
    let page = include_str!("../../docs/configuration.md");
    let (_, rest) = page.split_once("```toml\n").expect("it has an example");
    let (example, _) = rest.split_once("```").unwrap();
    let (config, problems) = parallax::tui::config::read(example);
    assert_eq!(problems, []);
    assert_eq!(config.keys.preset, parallax::tui::keymap::Preset::Default);
}
