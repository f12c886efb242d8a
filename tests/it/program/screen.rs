//! The screen and the commands say the same.

use super::*;

#[test]
fn screen_and_command_print_the_same_numbers() {
    let desk = Desk::new();
    let corpus = tiny(&desk);
    for from in [vec!["--corpus", corpus.as_str()], vec![]] {
        // The screen goes first: it embeds and judges by itself.
        let keys = format!("{QUESTION}<Enter><Wait>");
        let frame = desk
            .run(
                &[&["frame", "--size", "160x44", "--timeout", "600", "--keys", &keys], from.as_slice()]
                    .concat(),
            )
            .good();
        let all = desk.json(&[&["search", QUESTION], from.as_slice()].concat());
        let lanes = all["lanes"].as_array().unwrap();
        let measured = |name: &str, print: &dyn Fn(f64) -> String| -> Vec<String> {
            lanes.iter().map(|lane| print(lane["measures"][name].as_f64().unwrap())).collect()
        };
        assert_eq!(
            figures(&frame, "MRecall@5 "),
            measured("MRecall@5", &|value| format!("{value:.0}")),
            "{frame}"
        );
        assert_eq!(figures(&frame, "Prec@5 "), measured("Prec@5", &share), "{frame}");
        assert_eq!(
            figures(&frame, " lean "),
            measured("Lean@5", &|value| signed(value).trim().to_owned()),
            "{frame}"
        );
        let text = desk.run(&[&["search", QUESTION], from.as_slice()].concat()).good();
        assert_eq!(figures(&text, "MRecall@5 "), figures(&frame, "MRecall@5 "), "{text}");
        assert_eq!(figures(&text, "Prec@5 "), figures(&frame, "Prec@5 "), "{text}");
        for lane in lanes {
            for hit in lane["hits"].as_array().unwrap() {
                let title: String = hit["title"].as_str().unwrap().chars().take(16).collect();
                assert!(frame.contains(&title), "no `{title}` in\n{frame}");
            }
        }
    }
}

#[test]
fn a_frame_is_printed_with_its_styles() {
    let desk = Desk::new();
    let arguments = ["frame", "--size", "60x12", "--style", "--keys", "<Esc>?"];
    let out = desk.run(&arguments).good();
    let blocks: Vec<&str> = out.split("\n\n").collect();
    let (text, rest) = out.split_at(out.lines().take(12).map(|line| line.len() + 1).sum());
    assert!(text.contains("Keys") && rest.contains("bold"), "{out}");
    assert!(blocks.last().unwrap().lines().any(|line| line.ends_with("cyan bold")), "{out}");
    let plain = desk.run(&[&arguments[..], &["--no-color"]].concat()).good();
    assert!(!plain.contains("cyan"));
    let quiet = told(desk.command(&arguments).env("NO_COLOR", "1"));
    assert_eq!(quiet.good(), plain);
}

#[test]
fn the_comparison_on_screen_and_eval_berds_print_the_same_numbers() {
    let desk = Desk::new();
    let plan = ["--lane", "bm25", "--lane", "bm25@k1=1.2,b=.75", "--label-source", "gold"];
    let table = desk.run(&[&["eval", "berds", "--format", "json"], &plan[..]].concat()).good();
    let table: Value = serde_json::from_str(&table).unwrap();
    let screen =
        desk.run(&[&["frame", "--size", "140x40", "--keys", "<Esc>c<Wait>"], &plan[..]].concat()).good();
    assert!(screen.contains("24/24 questions"), "{screen}");
    for (row, name) in table["rows"].as_array().unwrap().iter().zip(["BM25 ", "BM25 k1=1.2 b=0.…"]) {
        let mean = |measure: &str| share(row["measures"][measure]["mean"].as_f64().unwrap());
        let line = screen.lines().find(|line| line.starts_with(&format!("│  {name}"))).unwrap();
        let rest = line.split_once(name).unwrap().1.trim_start();
        assert!(rest.starts_with(&format!("{} (", mean("MRecall@5"))), "{rest}\n{row}");
        let prec = rest.split_once(") ").unwrap().1.trim_start();
        assert!(prec.starts_with(&mean("Prec@5")), "{prec}\n{row}");
        let sides: Vec<&str> = prec.split_whitespace().skip(1).take(4).collect();
        let expected = ["only-1@5", "only-2@5", "both@5", "neither@5"].map(mean);
        assert_eq!(sides, expected, "{line}");
    }
}

#[test]
fn a_frame_is_saved_in_the_form_that_its_ending_names() {
    let desk = Desk::new();
    let frame = ["frame", "--size", "80x24", "--keys", "<Esc>?"];
    for (name, begins) in
        [("a.svg", &b"<svg"[..]), ("a.png", b"\x89PNG"), ("a.html", b"<!DOCTYPE"), ("a.txt", b" parallax")]
    {
        assert_eq!(desk.run(&[&frame[..], &["--out", name]].concat()).good(), "");
        assert!(fs::read(desk.files.path().join(name)).unwrap().starts_with(begins), "{name}");
    }
    desk.run(&[&frame[..], &["--out", "a.gif"]].concat()).bad(&["a.gif", ".svg, .png, .html or .txt"]);
}
