//! `parallax config` and `man`, and what a configuration does to `frame`.

use crate::program::Desk;

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
fn check_tells_every_problem_with_its_place_and_ends_with_one() {
    let desk = Desk::new();
    desk.write("bad.toml", "theme = 'pink'\n[keys]\nquit = 'ctrl-q'\nhlp = 'x'\n");
    let told = desk.run(&["config", "check", "bad.toml"]);
    assert_eq!((told.code, told.err.as_str()), (Some(1), ""));
    let lines: Vec<&str> = told.out.lines().collect();
    assert_eq!(lines.len(), 3, "{}", told.out);
    assert!(lines[0].starts_with("bad.toml:1:9: expected one of \"terminal\""), "{}", lines[0]);
    assert!(lines[1].starts_with("bad.toml:3:8: expected one key, found \"ctrl-q\""), "{}", lines[1]);
    assert_eq!(lines[2], "bad.toml:4:1: there is no action `hlp`; did you mean `help`?");
    let told = desk.run(&["config", "check", "absent.toml"]);
    assert_eq!(told.code, Some(1));
    assert!(told.out.starts_with("absent.toml: no such file"), "{}", told.out);
    let told = desk.run(&["config", "check", "."]);
    assert_eq!(
        (told.code, told.out.as_str()),
        (Some(1), ".: expected a file, found a folder; name the file in it\n")
    );
}

#[test]
fn what_show_prints_is_good_and_shows_the_same() {
    let desk = Desk::new();
    desk.write("mine.toml", "theme = 'light'\n[keys]\npreset = 'vim'\nquit = 'Q'\n");
    let shown = desk.run(&["config", "show", "--config", "mine.toml"]).good();
    assert!(shown.contains("quit = \"Q\"  # leave; the default is \"q\""), "{shown}");
    desk.write("shown.toml", &shown);
    let told = desk.run(&["config", "check", "shown.toml"]);
    assert_eq!((told.code, told.out.as_str()), (Some(0), "shown.toml: nothing is wrong\n"));
    assert_eq!(desk.run(&["config", "show", "--config", "shown.toml"]).good(), shown);
    // What the advice to a file that is not there names must work while it is not there.
    let shown = desk.run(&["config", "show", "--config", "absent.toml"]).good();
    assert!(shown.starts_with("theme = \"terminal\"") && shown.contains("[keys"), "{shown}");
}

#[test]
fn show_has_what_stands_above_the_file() {
    let desk = Desk::new();
    desk.write("mine.toml", "theme = 'light'\n");
    let arguments = ["config", "show", "--config", "mine.toml"];
    let mut command = desk.command(&arguments);
    let shown = crate::program::told(command.env("NO_COLOR", "1")).good();
    assert!(shown.starts_with("theme = \"mono\""), "{shown}");
    // An empty one asks for nothing.
    let mut command = desk.command(&arguments);
    let shown = crate::program::told(command.env("NO_COLOR", "")).good();
    assert!(shown.starts_with("theme = \"light\""), "{shown}");
    let shown = desk.run(&[&arguments[..], &["--theme", "dark", "--ascii"]].concat()).good();
    assert!(shown.starts_with("theme = \"dark\"") && shown.contains("glyphs = \"ascii\""), "{shown}");
}

#[test]
fn path_is_the_file_that_was_named_or_that_of_the_system() {
    let desk = Desk::new();
    assert_eq!(desk.run(&["config", "path", "--config", "mine.toml"]).good(), "mine.toml\n");
    let mut command = desk.command(&["config", "path"]);
    command.env_remove("PARALLAX_CONFIG");
    let usual = crate::program::told(&mut command).good();
    assert!(usual.trim_end().ends_with("config.toml") && usual.contains("parallax"), "{usual}");
}

#[test]
fn a_frame_is_drawn_as_the_file_and_the_options_say() {
    let desk = Desk::new();
    desk.write("mine.toml", "glyphs = 'ascii'\ntheme = 'deuteranopia'\n");
    let plain = desk.run(&FRAME).good();
    assert!(plain.contains('┏'), "{plain}");
    let drawn = desk.run(&[&FRAME[..], &["--config", "mine.toml", "--style"]].concat()).good();
    assert!(drawn.is_ascii() && drawn.contains("rgb("), "{drawn}");
    let mono = desk.run(&[&FRAME[..], &["--theme", "mono", "--style"]].concat()).good();
    assert!(!mono.contains("rgb(") && !mono.contains("cyan"), "{mono}");
    let light = desk.run(&[&FRAME[..], &["--theme", "light", "--style"]].concat()).good();
    assert!(light.contains("on rgb(251, 251, 249)"), "{light}");
}

#[test]
fn what_is_wrong_is_told_by_every_command_that_draws_and_by_no_other() {
    let desk = Desk::new();
    desk.write("bad.toml", "mouse = 1\n");
    let told = desk.run(&[&FRAME[..], &["--config", "bad.toml"]].concat());
    assert_eq!(told.code, Some(2));
    assert!(
        told.err.contains("bad.toml:1:9: expected true or false, found 1\nnothing was taken"),
        "{}",
        told.err
    );
    let told = desk.run(&["config", "show", "--config", "bad.toml"]);
    assert_eq!(told.code, Some(2));
    desk.run(&["statements", "Should zoos be banned?", "--config", "bad.toml"]).good();
    let told = desk.run(&[&FRAME[..], &["--config", "absent.toml"]].concat());
    assert!(told.code == Some(2) && told.err.contains("absent.toml: no such file"), "{}", told.err);
    let told = desk.run(&[&FRAME[..], &["--theme", "pink"]].concat());
    assert!(told.code == Some(2) && told.err.contains("deuteranopia"), "{}", told.err);
    let told = desk.run(&[&FRAME[..], &["--theme", "dark", "--no-color"]].concat());
    assert!(told.code == Some(2) && told.err.contains("cannot be used with"), "{}", told.err);
}

#[test]
fn the_manual_has_a_page_for_the_program_and_one_a_command() {
    let desk = Desk::new();
    let page = desk.run(&["man"]).good();
    for told in [".TH parallax 1", "PARALLAX_CONFIG", "parallax\\-eval(1)"] {
        assert!(page.contains(told), "{told}\n{page}");
    }
    let page = desk.run(&["man", "annotate", "agree"]).good();
    assert!(page.contains(".TH parallax-annotate-agree 1") && page.contains("refit"), "{page}");
    assert!(page.contains(concat!("parallax ", env!("CARGO_PKG_VERSION"))), "{page}");
    let told = desk.run(&["man", "annotate", "argue"]);
    assert_eq!(told.code, Some(2));
    assert!(
        told.err.contains("`parallax annotate` has no command `argue`; there are new, status"),
        "{}",
        told.err
    );
    let told = desk.run(&["man", "search", "x"]);
    assert!(told.err.contains("`parallax search` has no commands; leave `x` out"), "{}", told.err);
}

#[test]
fn the_pages_example_is_good() {
    let page = include_str!("../../docs/configuration.md");
    let (_, rest) = page.split_once("```toml\n").expect("it has an example");
    let (example, _) = rest.split_once("```").unwrap();
    let (config, problems) = parallax::tui::config::read(example);
    assert_eq!(problems, []);
    assert_eq!(config.keys.preset, parallax::tui::keymap::Preset::Default);
}
