//! `parallax config` and `man`, and what a configuration does to `frame`.
//! Prompts: each reaches the model byte for byte, one from a file takes the place of a built-in one, and a changed one is asked anew.

use std::fs;
use std::path::Path;
use std::process::Command;

use parallax::llm::{Job, PromptId, Prompts};
use serde_json::Value;

use crate::program::Workspace;
use crate::server::Server;

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
fn what_show_prints_is_good_and_shows_the_same() {
    let workspace = Workspace::new();
    workspace.write("mine.toml", "theme = 'light'\n[keys]\npreset = 'vim'\nquit = 'Q'\n");
    let shown = workspace.run(&["config", "show", "--config", "mine.toml"]).good();
    assert!(shown.contains("quit = \"Q\"  # leave; the default is \"q\""), "{shown}");
    workspace.write("shown.toml", &shown);
    let printed = workspace.run(&["config", "check", "shown.toml"]);
    assert_eq!((printed.code, printed.out.as_str()), (Some(0), "shown.toml: nothing is wrong\n"));
    assert_eq!(workspace.run(&["config", "show", "--config", "shown.toml"]).good(), shown);
    // What the advice to a file that is not there names must work while it is not there.
    let shown = workspace.run(&["config", "show", "--config", "absent.toml"]).good();
    assert!(shown.starts_with("theme = \"terminal\"") && shown.contains("[keys"), "{shown}");
}

#[test]
fn show_has_what_stands_above_the_file() {
    let workspace = Workspace::new();
    workspace.write("mine.toml", "theme = 'light'\n");
    let arguments = ["config", "show", "--config", "mine.toml"];
    let mut command = workspace.command(&arguments);
    let shown = crate::program::printed(command.env("NO_COLOR", "1")).good();
    assert!(shown.starts_with("theme = \"mono\""), "{shown}");
    // An empty one asks for nothing.
    let mut command = workspace.command(&arguments);
    let shown = crate::program::printed(command.env("NO_COLOR", "")).good();
    assert!(shown.starts_with("theme = \"light\""), "{shown}");
    let shown = workspace.run(&[&arguments[..], &["--theme", "dark", "--ascii"]].concat()).good();
    assert!(shown.starts_with("theme = \"dark\"") && shown.contains("glyphs = \"ascii\""), "{shown}");
}

#[test]
fn path_is_the_file_that_was_named_or_that_of_the_system() {
    let workspace = Workspace::new();
    assert_eq!(workspace.run(&["config", "path", "--config", "mine.toml"]).good(), "mine.toml\n");
    let mut command = workspace.command(&["config", "path"]);
    command.env_remove("PARALLAX_CONFIG");
    let usual = crate::program::printed(&mut command).good();
    assert!(usual.trim_end().ends_with("config.toml") && usual.contains("parallax"), "{usual}");
}

#[test]
fn a_frame_is_drawn_as_the_file_and_the_options_say() {
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
fn what_is_wrong_is_reported_by_every_command_that_draws_and_by_no_other() {
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
fn the_manual_has_a_page_for_the_program_and_one_a_command() {
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
fn the_pages_example_is_good() {
    let page = include_str!("../../docs/configuration.md");
    let (_, rest) = page.split_once("```toml\n").expect("it has an example");
    let (example, _) = rest.split_once("```").unwrap();
    let (config, problems) = parallax::tui::config::read(example);
    assert_eq!(problems, []);
    assert_eq!(config.keys.preset, parallax::tui::keymap::Preset::Default);
}

/// What stands in the place of every field.
const VALUES: [(&str, &str); 6] = [
    ("passage", "Zoos\n\nA passage with {statement} and {{braces}} — in “quotes”."),
    ("statement", "Zoos should be banned."),
    ("first", "Zoos should be banned."),
    ("second", "Zoos should not be banned."),
    ("question", "Should zoos be banned?"),
    ("passages", "[1] Zoos Animals suffer.\n[2] Few are freed."),
];

#[test]
fn every_built_in_prompt_is_rendered_byte_for_byte_as_written_down() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/prompts");
    let mut names: Vec<String> = fs::read_dir(&folder)
        .unwrap()
        .map(|file| file.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    names.sort();
    assert_eq!(names.len(), 14);
    for name in names {
        let prompts = Prompts::with(&[name.as_str().into()]).unwrap();
        let prompt =
            Job::ALL.map(|job| prompts.get(job)).into_iter().find(|prompt| prompt.id.name == name).unwrap();
        let (request, PromptId { version, hash, .. }) = (prompt.request(&VALUES, 0), &prompt.id);
        let rendered = format!(
            "{} · version {version} · {hash} · temperature {:?} · {} tokens\n--- system\n{}\n--- user\n{}\n",
            prompt.job.name(),
            request.temperature,
            request.max_tokens,
            request.system,
            request.prompt
        );
        let expected = fs::read_to_string(folder.join(format!("{name}.txt"))).unwrap().replace("\r\n", "\n");
        assert!(rendered == expected, "{name} is rendered as:\n{rendered}");
    }
}

/// Runs the program.
fn parallax(data: &Path, args: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_parallax"));
    let done = command.args(args).args(["--data-dir", &data.to_string_lossy()]).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (done.status.code(), text(done.stdout), text(done.stderr))
}

fn yes(_: &str) -> String {
    "Ja, sicher.".into()
}

#[test]
fn a_prompt_from_a_file_reaches_the_server_byte_for_byte_and_a_changed_one_is_asked_anew() {
    let data = tempfile::tempdir().unwrap();
    let (pairs, file) = (data.path().join("pairs.tsv"), data.path().join("mine.toml"));
    fs::write(&pairs, "document\tperspective\nTiere leiden {statement}.\tZoos schaden.\n").unwrap();
    let prompt = |version: u32| {
        format!(
            "for = \"detect\"\nversion = {version}\ntemperature = 0.25\nmax_tokens = 9\nsystem = \"Kurz — ja oder nein\"\n\
             user = \"\"\"\n<t>{{passage}}</t>\\n<s>{{statement}}</s> {{\"a\": [1]}}  \"\"\"\n\
             [outcomes]\nyes = [\"ja\"]\nno = [\"nein\"]\n"
        )
    };
    let server = Server::start(Vec::new(), yes);
    let bodies = || server.asked.lock().unwrap().clone();
    let judge = |version| {
        fs::write(&file, prompt(version)).unwrap();
        let args = ["detect", "--pairs", &pairs.to_string_lossy(), "--detector", "llm", "--format", "json"];
        let llm = ["--llm", &server.url, "--llm-model", "bear-7b", "--prompt", &file.to_string_lossy()];
        let (code, out, err) = parallax(data.path(), &[&args[..], &llm].concat());
        assert_eq!(code, Some(0), "{err}");
        serde_json::from_str::<Value>(&out).unwrap()
    };
    let first = judge(1);
    assert_eq!(first["pairs"][0]["p"], 1.0, "{first}");
    assert!(first["detector"].as_str().unwrap().starts_with("bear-7b-v1-"), "{first}");
    let sent: Value = serde_json::from_str(&bodies()[0]).unwrap();
    assert_eq!(sent["messages"][0]["content"], "Kurz — ja oder nein");
    assert_eq!(
        sent["messages"][1]["content"],
        "<t>Tiere leiden {statement}.</t>\n<s>Zoos schaden.</s> {\"a\": [1]}  "
    );
    assert_eq!((sent["temperature"].as_f64(), sent["max_tokens"].as_u64()), (Some(0.25), Some(9)));
    judge(1);
    assert_eq!(bodies().len(), 1, "the same prompt is not sent twice");
    let second = judge(2);
    assert_eq!(bodies().len(), 2, "another version is");
    assert_ne!(first["detector"], second["detector"]);
    judge(1);
    assert_eq!(bodies().len(), 2, "and the first verdict is still there");
    // Every line of the journal says which prompt it answers, of which model, on which server.
    let journals = fs::read_dir(data.path().join("judged")).unwrap().map(|file| file.unwrap().path());
    let lines: Vec<Value> = journals
        .flat_map(|path| fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect::<Vec<_>>())
        .map(|line| serde_json::from_str(&line).unwrap())
        .collect();
    assert_eq!(lines.len(), 2);
    for line in lines {
        let (name, hash) = (line["prompt"]["name"].as_str(), line["prompt"]["hash"].as_str().unwrap());
        assert_eq!((name, hash.len(), line["model"].as_str()), (Some("mine"), 32, Some("bear-7b")));
        assert_eq!(line["server"].as_str(), Some(server.url.as_str()));
    }
}

#[test]
fn recorded_replies_play_for_their_own_prompt_and_model_only() {
    let data = tempfile::tempdir().unwrap();
    let form = |more: &[&str]| {
        let args = ["search", "Should zoos be banned?", "--lane", "bm25+keqe", "--label-source", "gold"];
        let (code, out, err) = parallax(data.path(), &[&args[..], more].concat());
        assert_eq!(code, Some(0), "{err}");
        format!("{out}{err}")
    };
    assert!(form(&[]).contains("recorded replies of claude"));
    assert!(form(&["--llm-model", "claude"]).contains("recorded replies of claude"));
    assert!(!form(&["--llm-model", "owl-1b"]).contains("recorded replies"));
    assert!(!form(&["--prompt", "keqe-one-shot"]).contains("recorded replies"));
    assert!(
        form(&["--prompt", "csqe-one-shot"]).contains("recorded replies"),
        "another job's prompt changes nothing"
    );
}

#[test]
fn a_printed_prompt_is_a_file_that_is_taken_and_a_bad_one_is_refused_with_its_line() {
    let data = tempfile::tempdir().unwrap();
    let (code, text, _) = parallax(data.path(), &["prompts", "csqe-one-shot"]);
    assert_eq!(code, Some(0));
    let file = data.path().join("own.toml");
    fs::write(&file, &text).unwrap();
    let own = file.to_string_lossy();
    let (_, list, _) = parallax(data.path(), &["prompts", "--prompt", &own]);
    assert!(list.lines().any(|line| line.starts_with("own\tcsqe\t1\t") && line.ends_with("\tyes")), "{list}");
    assert!(list.lines().any(|line| line.starts_with("csqe\tcsqe\t1\t") && line.ends_with("\tno")), "{list}");
    fs::write(&file, text.replace("{passages}", "{pasages}")).unwrap();
    let (code, _, err) = parallax(data.path(), &["prompts", "--prompt", &own]);
    assert!(code == Some(2) && err.contains("own.toml:") && err.contains("no {pasages}"), "{err}");
    let (code, _, err) = parallax(data.path(), &["prompts", "csqe2"]);
    assert!(code == Some(2) && err.contains("choose detect, "), "{err}");
}
