//! `parallax demo`: plays a recorded session in the explorer, or the carried tour; or saves it as a moving picture.

use std::io::{self, IsTerminal};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use clap::ValueEnum;

use super::args::{Common, Demo};
use super::explore;
use crate::detect::LabelSource;
use crate::tui;
use crate::tui::session::{self, Head};
use crate::tui::theme::{Depth, Look};

/// Runs the command.
///
/// # Errors
/// The file is not a session, there is no terminal, or something is wrong in the configuration.
pub fn run(common: &Common, args: &Demo) -> anyhow::Result<ExitCode> {
    let session = match &args.file {
        Some(file) => session::read(file)?,
        None => session::tour()?,
    };
    let common = opened_as(common, &session.head)?;
    let start = |depth| explore::start(&common, std::slice::from_ref(&session.head.question), depth);
    if let Some(path) = &args.out {
        let patience = Duration::from_secs(args.timeout);
        return save(&tui::film(start(Depth::Millions)?, &session, session.head.size, patience)?, path);
    }
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        bail!(
            "a session is played in a terminal; without one, save it as a moving picture with --out FILE.svg"
        );
    }
    tui::run(start(explore::depth())?, Some((&session, args.speed)))?;
    Ok(ExitCode::SUCCESS)
}

fn save(shots: &[tui::Shot], path: &Path) -> anyhow::Result<ExitCode> {
    tui::save_film(shots, path)?;
    Ok(ExitCode::SUCCESS)
}

/// The options that open what the session was recorded with. Taste stays with whoever watches: a theme that is named here holds.
fn opened_as(common: &Common, head: &Head) -> anyhow::Result<Common> {
    let wrong = anyhow::Error::msg::<String>;
    let lanes = head.lanes.iter().map(|lane| lane.parse().map_err(|error| wrong(format!("{lane}: {error}"))));
    let theme = head.theme.as_deref().map(|name| Look::from_str(name, false).map_err(wrong)).transpose()?;
    let free = common.theme.is_none() && !common.no_color && common.configuration().look.is_none();
    Ok(Common {
        corpus: head.corpus.clone(),
        questions: head.questions.iter().cloned().collect(),
        labels: head.labels.iter().cloned().collect(),
        detector: head.detector.as_deref().unwrap_or("carried").parse().map_err(wrong)?,
        label_source: Some(LabelSource::from_str(&head.label_source, false).map_err(wrong)?),
        perspectives: head.perspectives.clone(),
        lane: lanes.collect::<Result<_, _>>()?,
        lanes: Vec::new(),
        k: head.k,
        theme: if free { theme } else { common.theme },
        ..common.clone()
    })
}
