//! `parallax demo`: plays a recorded session in the explorer, or the carried tour; or saves it as a moving picture. What was asked is not
//! kept for the next time; a corpus that the session names is imported and embedded like any other.

use std::io::{self, IsTerminal};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use clap::ValueEnum;

use super::args::{Common, Demo};
use super::explore;
use crate::detect::{Choice, LabelSource};
use crate::input::excerpt;
use crate::pipeline::Recipe;
use crate::tui;
use crate::tui::export::film::Film;
use crate::tui::export::write_film;
use crate::tui::session::{self, Head};
use crate::tui::theme::{Depth, Look};

/// Runs the command.
///
/// # Errors
/// The file is not a session or asks what nobody allowed it to, there is no terminal, or something is wrong in the configuration.
pub fn run(common: &Common, args: &Demo) -> anyhow::Result<ExitCode> {
    let session = match &args.file {
        Some(file) => session::read(file)?,
        None => session::tour()?,
    };
    let common = opened_as(common, &session.head, args.file.as_deref().unwrap_or(Path::new("the tour")))?;
    let start = |depth| explore::start(&common, std::slice::from_ref(&session.head.question), depth);
    if let Some(path) = &args.out {
        let patience = Duration::from_secs(args.timeout);
        let mut film = Film::default();
        tui::film(start(Depth::Millions)?, &session, patience, |frame, lasts| film.take(frame, lasts))?;
        write_film(path, film)?;
        return Ok(ExitCode::SUCCESS);
    }
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        bail!(
            "a session is played in a terminal; without one, save it as a moving picture with --out FILE.svg"
        );
    }
    tui::run(start(explore::depth())?, Some((&session, args.speed)))?;
    Ok(ExitCode::SUCCESS)
}

/// What a session says itself, by the names of the fields and of the options.
const ITS_OWN: [(&str, &str); 6] = [
    ("corpus", "--corpus"),
    ("questions", "--questions"),
    ("labels", "--labels"),
    ("label_source", "--label-source"),
    ("perspectives", "--perspective"),
    ("k", "-k"),
];

/// The options that open what the session was recorded with. Taste stays with whoever watches: a theme that is named here holds.
///
/// The file may be anybody's: what it asks of other machines, or of a language model, whoever watches has to have typed too.
fn opened_as(common: &Common, head: &Head, file: &Path) -> anyhow::Result<Common> {
    let wrong = anyhow::Error::msg::<String>;
    let lanes = head.lanes.iter().map(|lane| lane.parse().map_err(|error| wrong(format!("{lane}: {error}"))));
    let lanes: Vec<Recipe> = lanes.collect::<Result<_, _>>()?;
    let detector: Choice = head.detector.as_deref().unwrap_or("carried").parse().map_err(wrong)?;
    if let Some((_, option)) = ITS_OWN.into_iter().find(|(name, _)| common.is_typed(name)) {
        bail!(
            "{option}: a session opens what it was recorded with; leave it out, or change the first line of the file"
        );
    }
    allowed(common, &lanes, &detector, file)?;
    let theme = head.theme.as_deref().map(|name| Look::from_str(name, false).map_err(wrong)).transpose()?;
    let free = common.theme.is_none() && !common.no_color && common.configuration().look.is_none();
    Ok(Common {
        corpus: head.corpus.clone(),
        questions: head.questions.iter().cloned().collect(),
        labels: head.labels.iter().cloned().collect(),
        detector,
        label_source: Some(LabelSource::from_str(&head.label_source, false).map_err(wrong)?),
        perspectives: head.perspectives.clone(),
        lane: lanes,
        lanes: Vec::new(),
        // One of the environment stands there for what its owner does, not for what a file does.
        llm: common.llm.clone().filter(|_| common.is_typed("llm")),
        k: head.k,
        theme: if free { theme } else { common.theme },
        ..common.clone()
    })
}

/// Whether lanes and detector ask nobody whom whoever watches did not name; and whether those named are the session's.
fn allowed(common: &Common, lanes: &[Recipe], detector: &Choice, file: &Path) -> anyhow::Result<()> {
    let named = common.recipes_given();
    let file = file.display();
    if let Some(other) = named.iter().find(|named| lanes.iter().all(|lane| lane.base != named.base)) {
        bail!("--lane {other}: {file} has no such lane, and a session opens what it was recorded with");
    }
    let typed = common.is_typed("detector");
    if typed && common.detector != *detector {
        bail!("--detector {}: {file} was recorded with {detector}; leave it out", common.detector);
    }
    let unnamed = |lane: &&Recipe| named.iter().all(|named| lane.base != named.base);
    if let Some(lane) = lanes.iter().filter(|lane| lane.base.remote().is_some()).find(unnamed) {
        let found = excerpt(&lane.to_string());
        bail!(
            "{file}:1: expected lanes that ask no other machine, found {found}; questions and what \
             PARALLAX_OPENSEARCH_… hold would be sent there: if you trust it, name the same lane too, with --lane"
        );
    }
    if *detector == Choice::Llm && !typed {
        bail!(
            "{file}:1: expected a detector that asks no language model, found `llm`; if yours is to be asked, \
             name it too, with --detector llm"
        );
    }
    Ok(())
}
