//! A session from its file. Every line that is wrong is told, and nothing is played of a file that holds one.

use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Duration;

use clap::ValueEnum;
use serde_json::Value;

use super::{ACTS, Act, BYTES, Head, LONGEST, Line, Session, VERSION};
use crate::assets::TOUR;
use crate::detect::{Choice, LabelSource};
use crate::input::{InputError, Lines, tame};
use crate::pipeline::Recipe;
use crate::tui::config;
use crate::tui::script::{self, Step};
use crate::tui::theme::Look;

/// What a lane that was dragged may have, where one that was not has 1000.
const WIDTHS: RangeInclusive<u32> = 1..=10_000;

/// Reads a file.
///
/// # Errors
/// It cannot be read, or a line is not what it should be.
pub fn read(path: &Path) -> Result<Session, InputError> {
    of(Lines::open(path)?, path)
}

/// The tour that the program carries.
///
/// # Errors
/// None in a build whose tests pass.
pub fn tour() -> Result<Session, InputError> {
    let name = Path::new("tour.session.jsonl");
    of(Lines::carried(name, TOUR), name)
}

fn of(mut lines: Lines, path: &Path) -> Result<Session, InputError> {
    let (mut first, mut acts, mut bytes) = (None, Vec::new(), 0);
    while let Some(line) = lines.next_line()? {
        bytes += line.text.len();
        let full = bytes > BYTES;
        let wrong = match &first {
            _ if full => Err(too_long()),
            None => head(line.text).map(|read| first = Some(read)),
            Some(_) => act(line.text, &mut acts),
        };
        if let Err(expected) = wrong {
            // A parser repeats what it found, however long that is.
            lines.bad(tame(&expected));
            // Without the first the other lines say nothing; beyond what a session may have nothing is read.
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

/// The first line.
fn head(text: &str) -> Result<Head, String> {
    let a_head = "a session's first line, such as {\"parallax-session\":1,\"size\":\"140x40\",…}";
    let value: Value = serde_json::from_str(text).map_err(|_| a_head.to_owned())?;
    match value.get("parallax-session").and_then(Value::as_u64) {
        None => return Err(a_head.into()),
        Some(version) if version != u64::from(VERSION) => {
            return Err(format!("version {VERSION} of the format; another Parallax reads version {version}"));
        }
        Some(_) => {}
    }
    let head: Head = serde_json::from_value(value).map_err(|error| format!("{a_head} ({error})"))?;
    for lane in &head.lanes {
        lane.parse::<Recipe>().map_err(|error| format!("a recipe in \"lanes\" ({error})"))?;
    }
    if head.lanes.is_empty() || !(1..=100).contains(&head.k) {
        return Err("at least one of \"lanes\", and a \"k\" from 1 to 100".into());
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
        Some(problem) => Err(format!("a configuration as \"config\" ({})", problem.what)),
    }
}

/// A packed file of a few kilobytes may hold acts for gigabytes of memory.
fn too_long() -> String {
    format!(
        "a session of at most {ACTS} acts, each key one, in lines of {} MB together; split it",
        BYTES >> 20
    )
}

/// Any other line: what was done is appended, at most one act more than a session may have.
fn act(text: &str, acts: &mut Vec<(Duration, Act)>) -> Result<(), String> {
    let an_act = "an act, such as {\"after\":250,\"keys\":\"m\"}, with \"keys\", \"pasted\" or \"say\"";
    let line: Line = serde_json::from_str(text).map_err(|error| format!("{an_act} ({error})"))?;
    if line.after > LONGEST {
        return Err("a pause of at most a day".into());
    }
    let after = Duration::from_millis(line.after);
    match (line.keys, line.pasted, line.say) {
        (Some(keys), None, None) => {
            let steps = script::parse(&keys).map_err(|error| error.to_string())?;
            // Of several keys each comes after the pause; a wait takes as long as it takes.
            let alone = steps.len() == 1;
            let pause = |step: &Step| if *step == Step::Wait && !alone { Duration::ZERO } else { after };
            let room = (ACTS + 1).saturating_sub(acts.len());
            acts.extend(steps.into_iter().take(room).map(|step| (pause(&step), Act::Step(step))));
        }
        (None, Some(text), None) => acts.push((after, Act::Paste(text))),
        (None, None, Some(words)) => acts.push((after, Act::Say(words))),
        _ => return Err(an_act.into()),
    }
    if acts.len() > ACTS { Err(too_long()) } else { Ok(()) }
}
