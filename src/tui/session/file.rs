//! The format of a session file, and its reader. The reader reports every bad line that it reads; a file with a bad line is not played.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::assets::TOUR;
use crate::detect::{Choice, LabelSource};
use crate::engine::Recipe;
use crate::input::{Expected, InputError, Lines, tame};
use crate::tui::config;
use crate::tui::script::{self, Size, Step};
use crate::tui::theme::Look;

/// The version of the format.
pub(super) const VERSION: u32 = 1;

/// The longest pause in milliseconds, so that a typing error does not become an endless wait.
pub(super) const LONGEST: u64 = 24 * 60 * 60 * 1000;

/// The most acts of a session, about one key per second for a day. All acts are held in memory.
const ACTS: usize = 100_000;

/// The most bytes of a session.
const BYTES: usize = 8 << 20;

/// The first line of a session: what to open. Optional fields may be missing; a missing theme is the viewer's own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Head {
    /// The version of the format.
    #[serde(rename = "parallax-session")]
    pub(super) version: u32,
    /// Columns and rows of the terminal.
    #[serde(with = "as_text")]
    pub size: Size,
    /// The theme.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub theme: Option<String>,
    /// As `--corpus`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub corpus: Option<PathBuf>,
    /// As `--questions`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub questions: Option<PathBuf>,
    /// As `--labels`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<String>,
    /// As `--detector`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detector: Option<String>,
    /// As `--label-source`.
    pub label_source: String,
    /// As `--lane`, left to right.
    pub lanes: Vec<String>,
    /// As `-k`.
    pub k: u16,
    /// The open question.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub question: String,
    /// Its statements, if the user wrote them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub perspectives: Vec<String>,
    /// The widths of the lanes if a border was dragged; 1000 is the normal width.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub widths: Vec<u32>,
    /// A configuration with the keys and the layout, if they were not the defaults.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<String>,
}

/// One act of a session.
#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    /// A step of a key script.
    Step(Step),
    /// Pasted text.
    Paste(String),
    /// A caption, shown until the next one.
    Say(String),
}

/// A recorded session: what to open, and what the user did.
#[derive(Clone, Debug, PartialEq)]
pub struct Session {
    /// The first line: what to open.
    pub head: Head,
    /// The acts, each with the pause before it.
    pub acts: Vec<(Duration, Act)>,
}

/// A line of the file: a pause and one of the three kinds of act.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Line {
    pub(super) after: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) keys: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) pasted: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) say: Option<String>,
}

/// A size as `140x40`.
mod as_text {
    use super::Size;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(size: &Size, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&format_args!("{}x{}", size.width, size.height))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Size, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

/// The allowed widths of a lane; 1000 is normal.
const WIDTHS: RangeInclusive<u32> = 1..=10_000;

/// Reads a session from a file.
///
/// # Errors
/// The file cannot be read, or a line is bad.
pub fn read(path: &Path) -> Result<Session, InputError> {
    read_lines(Lines::open(path)?, path)
}

/// Reads the built-in tour.
///
/// # Errors
/// A line is bad, which cannot happen in a build whose tests pass.
pub fn tour() -> Result<Session, InputError> {
    let name = Path::new("tour.session.jsonl");
    read_lines(Lines::builtin(name, TOUR), name)
}

fn read_lines(mut lines: Lines, path: &Path) -> Result<Session, InputError> {
    let (mut first, mut acts, mut bytes) = (None, Vec::new(), 0);
    while let Some(line) = lines.next_line()? {
        bytes += line.text.len();
        let full = bytes > BYTES;
        let read = match &first {
            _ if full => Err(too_long()),
            None => parse_head(line.text).map(|head| first = Some(head)),
            Some(_) => parse_acts(line.text, &mut acts),
        };
        if let Err(Expected(expected)) = read {
            // Parser errors may quote long input; `tame` shortens it.
            lines.bad(tame(&expected));
            // Without the first line, or beyond the limits, the rest is not read.
            if first.is_none() || full || acts.len() > ACTS {
                break;
            }
        }
    }
    lines.end()?;
    let advice = "record one with R in the explorer";
    let head = first.ok_or(InputError::Empty { path: path.into(), what: "a session", advice })?;
    Ok(Session { head, acts })
}

/// Parses the first line.
fn parse_head(text: &str) -> Result<Head, Expected> {
    let expected_head = "a session's first line, such as {\"parallax-session\":1,\"size\":\"140x40\",…}";
    let value: Value = serde_json::from_str(text).map_err(|_| expected_head.to_owned())?;
    match value.get("parallax-session").and_then(Value::as_u64) {
        None => return Err(expected_head.into()),
        Some(version) if version != u64::from(VERSION) => {
            let wanted = format!("version {VERSION} of the format; another Parallax reads version {version}");
            return Err(wanted.into());
        }
        Some(_) => {}
    }
    let head: Head = serde_json::from_value(value).map_err(|error| format!("{expected_head} ({error})"))?;
    for lane in &head.lanes {
        lane.parse::<Recipe>().map_err(|error| format!("a recipe in \"lanes\" ({error})"))?;
    }
    if head.lanes.is_empty() || !(1..=100).contains(&head.k) {
        return Err("at least one recipe in \"lanes\", and \"k\" from 1 to 100".into());
    }
    let widths = &head.widths;
    if !widths.is_empty() && (widths.len() != head.lanes.len() || !widths.iter().all(|w| WIDTHS.contains(w)))
    {
        return Err("as many \"widths\" as \"lanes\", each from 1 to 10000".into());
    }
    LabelSource::from_str(&head.label_source, false)
        .map_err(|_| "auto, model, gold or human as \"label-source\"".to_owned())?;
    if let Some(theme) = &head.theme {
        Look::from_str(theme, false)
            .map_err(|_| "terminal, light, dark, deuteranopia or mono as \"theme\"".to_owned())?;
    }
    if let Some(detector) = &head.detector {
        detector.parse::<Choice>().map_err(|error| format!("a \"detector\" ({error})"))?;
    }
    let problems = head.config.as_deref().map(|text| config::read(text).1).unwrap_or_default();
    match problems.first() {
        None => Ok(head),
        Some(problem) => Err(format!("a configuration as \"config\" ({})", problem.what).into()),
    }
}

/// The error for a session over the limits: a small compressed file could otherwise fill gigabytes of memory.
fn too_long() -> Expected {
    Expected(format!("a session of at most {ACTS} acts (each key is one) and {} MB; split it", BYTES >> 20))
}

/// Parses any other line. Appends its acts, up to one more than a session may have.
fn parse_acts(text: &str, acts: &mut Vec<(Duration, Act)>) -> Result<(), Expected> {
    let expected_act = "an act, such as {\"after\":250,\"keys\":\"m\"}, with \"keys\", \"pasted\" or \"say\"";
    let line: Line = serde_json::from_str(text).map_err(|error| format!("{expected_act} ({error})"))?;
    if line.after > LONGEST {
        return Err("a pause of at most a day".into());
    }
    let after = Duration::from_millis(line.after);
    match (line.keys, line.pasted, line.say) {
        (Some(keys), None, None) => {
            let steps = script::parse(&keys).map_err(|error| error.to_string())?;
            // Each of several keys comes after the pause, but not a wait between them.
            let alone = steps.len() == 1;
            let pause = |step: &Step| if *step == Step::Wait && !alone { Duration::ZERO } else { after };
            let room = (ACTS + 1).saturating_sub(acts.len());
            acts.extend(steps.into_iter().take(room).map(|step| (pause(&step), Act::Step(step))));
        }
        (None, Some(text), None) => acts.push((after, Act::Paste(text))),
        (None, None, Some(words)) => acts.push((after, Act::Say(words))),
        _ => return Err(expected_act.into()),
    }
    if acts.len() > ACTS { Err(too_long()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const HEAD: &str = r#"{"parallax-session":1,"size":"100x30","label-source":"gold","lanes":["bm25","minilm+mmr@.75"],"k":5}"#;

    fn reading(text: &str) -> Result<Session, String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.session.jsonl");
        fs::write(&file, text).unwrap();
        read(&file).map_err(|error| error.to_string())
    }

    #[test]
    fn keys_pauses_pasted_text_and_captions_are_read() {
        let lines = [
            HEAD,
            r#"{"after":50,"keys":"ab<Wait>"}"#,
            r#"{"after":7,"pasted":"<m>"}"#,
            r#"{"after":0,"say":"Look."}"#,
        ];
        let session = reading(&lines.join("\n")).unwrap();
        let after: Vec<u128> = session.acts.iter().map(|(after, _)| after.as_millis()).collect();
        assert_eq!(after, [50, 50, 0, 7, 0]);
        assert_eq!(session.acts[2].1, Act::Step(Step::Wait));
        assert_eq!(session.acts[3].1, Act::Paste("<m>".into()));
        assert_eq!(session.head.size, Size { width: 100, height: 30 });
    }

    #[test]
    fn every_bad_line_is_reported_with_its_number_and_what_was_expected() {
        let lines = [
            HEAD,
            r#"{"after":50,"keys":"<Entr>"}"#,
            r#"{"after":-1,"keys":"a"}"#,
            r#"{"after":1}"#,
            r#"{"after":1,"keys":"a","say":"b"}"#,
            r#"{"after":99999999999,"keys":"a"}"#,
            r#"{"after":1,"kyes":"a"}"#,
            r#"{"after":1,"ke"#,
        ];
        let error = reading(&lines.join("\n")).unwrap_err();
        for line in 2..=8 {
            assert!(error.contains(&format!("a.session.jsonl:{line}: expected ")), "{line}: {error}");
        }
        let long = reading(&format!("{HEAD}\n{{\"after\":1,\"{}\":2}}", "x".repeat(300_000))).unwrap_err();
        assert!(long.contains(":2: expected an act") && long.len() < 1_000, "{}", long.len());
        assert!(error.contains("<Entr>") && error.contains("at most a day"), "{error}");
    }

    #[test]
    fn a_session_with_too_many_acts_or_bytes_is_refused_at_the_line_that_exceeds_the_limit() {
        let keys = |n: usize| format!("{{\"after\":0,\"keys\":\"{}\"}}", "j".repeat(n));
        let fits = reading(&[HEAD, &keys(ACTS - 1), &keys(1)].join("\n")).unwrap();
        assert_eq!(fits.acts.len(), ACTS);
        for (wrong, line) in
            [([keys(ACTS), keys(1)], 3), ([keys(4 * ACTS), keys(1)], 2), ([keys(1), keys(BYTES)], 3)]
        {
            let error = reading(&[HEAD, &wrong[0], &wrong[1], "nonsense"].join("\n")).unwrap_err();
            assert!(
                error.contains(&format!(":{line}: expected a session of at most {ACTS} acts")),
                "{error}"
            );
            assert!(!error.contains("nonsense") && error.len() < 1_000, "{}", error.len());
        }
    }

    #[test]
    fn a_bad_first_line_is_reported_and_nothing_after_it_is_read() {
        let wrong = |from: &str, to: &str| reading(&format!("{}\n{{}}", HEAD.replace(from, to))).unwrap_err();
        for (from, to, expected) in [
            ("parallax-session", "session", "a session's first line"),
            (":1,", ":2,", "another Parallax reads version 2"),
            ("100x30", "100", "expected columns and rows"),
            ("gold", "golden", "auto, model, gold or human"),
            ("bm25", "bm52", "a recipe"),
            ("[\"bm25\",\"minilm+mmr@.75\"]", "[]", "at least one recipe in \"lanes\""),
            ("\"k\":5", "\"k\":0", "\"k\" from 1 to 100"),
            ("\"k\":5", "\"k\":5,\"widths\":[1000]", "as many \"widths\""),
            ("\"k\":5", "\"k\":5,\"widths\":[1000,0]", "from 1 to 10000"),
            ("\"k\":5", "\"k\":5,\"theme\":\"pink\"", "deuteranopia"),
            ("\"k\":5", "\"k\":5,\"config\":\"[keys\"", "a configuration"),
            ("\"k\":5", "\"k\":5,\"speed\":2", "unknown field"),
        ] {
            let error = wrong(from, to);
            assert!(error.contains(expected) && error.contains(":1: expected"), "{error}");
            assert!(!error.contains(":2:"), "{error}");
        }
        assert!(reading("").unwrap_err().contains("record one with R"));
        assert!(read(Path::new("not-there.jsonl")).unwrap_err().to_string().contains("no such file"));
    }
}
