//! Files that somebody made to do harm: passages that a terminal would obey, lines and archives without end. Each is given to the real
//! program, whose memory and time are watched. Models that do harm are in `models`.

mod models;

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;

use super::peak::ran;
use super::{long, tell};
use crate::program::{Desk, Told};

/// A program that holds more MB than this for any of these files has not noticed what they are.
const MOST: u64 = 1_600;
/// How long a command may take. All passages in earnest take models minutes.
const PATIENCE: Duration = Duration::from_secs(1_200);

/// Runs a command to its end; what it said, and the most MB that it held.
pub fn told(desk: &Desk, arguments: &[&str]) -> (Told, u64) {
    told_within(desk, arguments, PATIENCE)
}

/// The same in another time.
pub fn told_within(desk: &Desk, arguments: &[&str], patience: Duration) -> (Told, u64) {
    let (output, most) = ran(&mut desk.command(arguments), patience);
    let text = |bytes| String::from_utf8(bytes).expect("output is UTF-8");
    let told = Told { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) };
    assert!(
        told.code.is_some(),
        "{arguments:?} was ended by a signal, or killed after {patience:?}: {}",
        told.err
    );
    assert!(!told.err.contains("panicked"), "{arguments:?}: {}", told.err);
    assert!(
        !has_controls(&told.out) && !has_controls(&told.err),
        "{arguments:?}: {:?} {:?}",
        told.out,
        told.err
    );
    assert!(most < MOST, "{arguments:?} held {most} MB");
    (told, most)
}

/// Anything that a terminal would obey, or that turns text round.
fn has_controls(text: &str) -> bool {
    text.contains(|c: char| {
        c != '\n' && c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    })
}

/// What passages may hold, by what it is.
fn passages() -> Vec<(&'static str, String)> {
    // As long as they are in earnest, they take every model minutes.
    let many = if long().is_some() { 1 } else { 100 };
    vec![
        ("CSI", "zoos \u{1b}[2J\u{1b}[31m\u{1b}[999;999H\u{9b}5m \u{1b}[?1049l".into()),
        ("OSC 52", "zoos \u{1b}]52;c;cm0gLXJmIC8=\u{7} \u{1b}]0;title\u{1b}\\".into()),
        ("OSC 8", "zoos \u{1b}]8;;http://evil.example\u{1b}\\here\u{1b}]8;;\u{1b}\\".into()),
        ("DCS", "zoos \u{1b}P1$r0m\u{1b}\\ \u{90}q\u{9c} \u{1b}_apc\u{1b}\\ \u{1b}^pm\u{1b}\\".into()),
        ("bidi", "zoos \u{202e}denrut\u{202c} \u{2066}\u{2067}\u{2068}\u{2069} \u{200f}\u{61c}".into()),
        ("zero width", format!("zoos{}", "\u{200b}\u{200d}\u{feff}\u{2060}".repeat(5_000 / many))),
        ("marks", format!("zoos a{} b", "\u{301}\u{335}\u{489}".repeat(3_000 / many))),
        ("CJK", "動物園は必要か。".repeat(500 / many)),
        ("emoji", "👩\u{200d}🚀👨\u{200d}👩\u{200d}👧\u{200d}👦🇫🇷✊🏽".repeat(300 / many)),
        ("NUL", "zoos \0\0\u{1}\u{7f} \u{85}".into()),
        ("one word", "z".repeat(20_000 / many)),
        ("blanks", format!("zoos{}x", " \t\n\u{a0}\u{3000}".repeat(20_000 / many))),
        ("a long line", format!("zoos {}", "banned cages ".repeat(800_000 / many / 4))),
    ]
}

#[test]
fn passages_that_a_terminal_would_obey_are_text_everywhere() {
    let desk = Desk::new();
    let all = passages();
    let line = |(i, (what, text)): (usize, &(&str, String))| {
        json!({"_id": format!("{i}\u{1b}[31m"), "title": format!("{what}\u{1b}]0;x\u{7}"), "text": text})
            .to_string()
            + "\n"
    };
    desk.write("hostile.jsonl", all.iter().enumerate().map(line).collect::<String>());
    let (added, first) = told(&desk, &["corpus", "add", "hostile.jsonl"]);
    assert_eq!(added.code, Some(0), "{}", added.err);
    let (found, second) = told(
        &desk,
        &["search", "Should zoos be banned?", "--corpus", "hostile", "--lanes", "bm25,minilm", "-k", "5"],
    );
    assert_eq!(found.code, Some(0), "{}", found.err);
    let mut most = first.max(second);
    // Every passage read to its end, in a narrow and a wide frame; all of it labelled too.
    for size in ["80x24", "40x12"] {
        let keys = format!(
            "Should zoos be banned?<Enter><Wait>{}<Esc>a<Wait>js<Wait>",
            "<Enter>G<Esc>j".repeat(all.len())
        );
        let frame = ["frame", "--corpus", "hostile", "--lanes", "bm25", "--size", size, "--keys", &keys];
        let (drawn, held) = told(&desk, &frame);
        assert_eq!(drawn.code, Some(0), "{}", drawn.err);
        most = most.max(held);
    }
    tell(&format!(
        "hostile passages: {} kinds added, searched, drawn and labelled; at most {most} MB",
        all.len()
    ));
}

#[test]
fn bytes_that_are_no_text_are_told_by_line() {
    let desk = Desk::new();
    desk.write(
        "bad.jsonl",
        [b"{\"_id\":\"a\",\"text\":\"x\"}\n{\"_id\":\"b\",\"text\":\"\xff\xfe\"}\n".as_slice(), &[0; 100]]
            .concat(),
    );
    let (refused, _) = told(&desk, &["corpus", "add", "bad.jsonl"]);
    refused.bad(&["bad.jsonl:2: expected UTF-8 text", "nothing was taken"]);
}

/// Zeros, packed: a thousandth of their size on the disk.
fn zeros(place: &Path, bytes: u64) {
    let block = vec![0; 1 << 20];
    let file = File::create(place).unwrap();
    let blocks = bytes >> 20;
    if place.extension().is_some_and(|end| end == "gz") {
        // Members one after another are one archive.
        let mut member = GzEncoder::new(Vec::new(), Compression::best());
        (0..64).for_each(|_| member.write_all(&block).unwrap());
        let member = member.finish().unwrap();
        (0..blocks.div_ceil(64)).for_each(|_| (&file).write_all(&member).unwrap());
    } else {
        let mut packed = zstd::Encoder::new(&file, 3).unwrap();
        (0..blocks).for_each(|_| packed.write_all(&block).unwrap());
        packed.finish().unwrap();
    }
}

#[test]
fn archives_that_unpack_without_end_are_refused_in_bounded_memory() {
    let desk = Desk::new();
    let bytes: u64 = if long().is_some() { 10 << 30 } else { 600 << 20 };
    desk.write(
        "q.jsonl",
        "{\"id\":\"q\",\"question\":\"Should zoos be banned?\",\"perspectives\":[\"A.\",\"B.\"]}\n",
    );
    let mut most = 0;
    let ends: &[&str] = if long().is_some() { &["gz", "zst"] } else { &["zst"] };
    for end in ends {
        zeros(&desk.files.path().join(format!("bomb.{end}")), bytes);
        let named = |name: &str| {
            let path = format!("{name}.{end}");
            let _ =
                fs::hard_link(desk.files.path().join(format!("bomb.{end}")), desk.files.path().join(&path));
            path
        };
        let (jsonl, tsv, json, trec) = (named("c.jsonl"), named("t.tsv"), named("p.json"), named("r.trec"));
        let lane = format!("run:{trec}");
        for arguments in [
            vec!["corpus", "add", &jsonl],
            vec!["corpus", "add", &tsv],
            vec!["corpus", "add", &json],
            vec!["search", "zoos", "--questions", &jsonl],
            vec!["search", "zoos", "--lanes", "bm25", "--labels", &tsv],
            vec!["search", "zoos", "--lanes", "bm25", "--labels", &json],
            vec!["search", "zoos", "--lanes", "bm25", "--replies", &jsonl],
            vec!["search", "zoos", "--lanes", &lane],
        ] {
            let (refused, held) = told(&desk, &arguments);
            assert_eq!(refused.code, Some(2), "{arguments:?}: {}", refused.out);
            assert!(!refused.err.trim().is_empty());
            most = most.max(held);
        }
    }
    tell(&format!(
        "hostile archives: {} MB of zeros as {ends:?}, read in 8 ways, all refused; at most {most} MB",
        bytes >> 20
    ));
}
