//! `parallax models`: which encoders there are, fetching one from the hub, and checking one that is there.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::bail;

use super::args::{Common, Models, ModelsAction};
use super::interrupt::{INTERRUPTED, stop_on_interrupt};
use super::progress::Meter;
use crate::corpus::Passage;
use crate::encode::hub::{Hub, HubError, Manifest};
use crate::encode::{Brought, Encoder, MiniLm, Named, Role, Source, registry};
use crate::pipeline::{MODELS, Recipe, recipe::Base};
use crate::report::safe;
use crate::retrieve::dense::dot;

/// Runs the command.
///
/// # Errors
/// There is no such model, it cannot be fetched, or it is not what it should be.
pub fn run(common: &Common, args: &Models) -> anyhow::Result<ExitCode> {
    let models = common.opening().data_dir.join(MODELS);
    match &args.action {
        ModelsAction::List => list(&models),
        ModelsAction::Get { name } => get(name, &models),
        ModelsAction::Check { name } => check(name, &models),
    }
}

fn list(models: &Path) -> anyhow::Result<ExitCode> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    writeln!(out, "name\tstate\tMB\tfamily\tlicence\trepository")?;
    writeln!(out, "minilm\tcarried\t23\tmean\tApache-2.0\tsentence-transformers/all-MiniLM-L6-v2 (int8)")?;
    let mut known = Vec::new();
    for entry in &registry::MODELS {
        let here = Named::from(Source::Known(entry)).towers(models).is_ok();
        known.extend(entry.repositories);
        writeln!(
            out,
            "{}\t{}\t{}\t{}\t{}\t{}",
            entry.name,
            if here { "here" } else { "on the hub" },
            entry.megabytes,
            entry.family.name,
            entry.licence,
            entry.repositories.join(" and ")
        )?;
    }
    let mut others: Vec<Manifest> = Vec::new();
    for folder in fs::read_dir(models).into_iter().flatten().flatten() {
        others.extend(Manifest::read(&folder.path()).ok());
    }
    others.sort_by(|a, b| a.repository.cmp(&b.repository));
    for other in others.iter().filter(|other| !known.contains(&other.repository.as_str())) {
        let megabytes = other.files.values().map(|file| file.size).sum::<u64>().div_ceil(1_000_000);
        let name = safe::line(&other.repository);
        writeln!(out, "hf:{name}\there\t{megabytes}\t\tsee its card\t{name}")?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn get(name: &str, models: &Path) -> anyhow::Result<ExitCode> {
    let named = named(name)?;
    let Some(named) = named.filter(|named| !named.source.repositories().is_empty()) else {
        bail!(
            "`{name}` is there already; from the hub come hf:ORG/MODEL and the names that `models list` shows"
        );
    };
    let (meter, stop) = (Meter::default(), stop_on_interrupt()?);
    for repository in named.source.repositories() {
        let place = match here(models, repository) {
            Some(place) => place,
            None => match Hub::from_env()?.fetch(repository, models, &|progress| meter.tell(progress), &stop)
            {
                Err(HubError::Stopped(_)) => return Ok(ExitCode::from(INTERRUPTED)),
                fetched => fetched?,
            },
        };
        writeln!(io::stderr(), "{repository} is in {}", place.display())?;
    }
    writeln!(io::stdout(), "{}", Recipe::from(Base::Brought(named.into())))?;
    Ok(ExitCode::SUCCESS)
}

/// The folder of a repository that has been fetched.
fn here(models: &Path, repository: &str) -> Option<std::path::PathBuf> {
    let source = Source::parse(&format!("hf:{repository}")).ok()?;
    Some(Named::from(source).towers(models).ok()?.queries)
}

/// A model as a recipe names it; none for the carried one.
fn named(name: &str) -> anyhow::Result<Option<Named>> {
    if name == "minilm" {
        return Ok(None);
    }
    match name.parse::<Recipe>()?.base {
        Base::Brought(named) => Ok(Some((*named).clone())),
        _ => bail!("`{name}` is no encoder; see: parallax models list"),
    }
}

/// A question, a passage about it, and one about something else: whatever a model is for, it must tell these apart.
const QUESTION: &str = "Should zoos be banned?";
const NEAR: &str = "Zoos should be closed, because wild animals suffer when they are kept in cages.";
const FAR: &str = "Stir the butter and the sugar, then add two eggs and a spoon of flour.";

fn check(name: &str, models: &Path) -> anyhow::Result<ExitCode> {
    let mut out = io::stdout().lock();
    let encoder: Box<dyn Encoder> = match named(name)? {
        None => Box::new(MiniLm::carried()?),
        Some(named) => {
            let towers = named.towers(models)?;
            for folder in [&towers.queries, &towers.passages] {
                if !named.source.repositories().is_empty() {
                    let manifest = Manifest::read(folder)?;
                    manifest.check(folder)?;
                    writeln!(
                        out,
                        "ok\t{} files of {} at {}",
                        manifest.files.len(),
                        manifest.repository,
                        &manifest.revision
                    )?;
                }
                if towers.queries == towers.passages {
                    break;
                }
            }
            let brought = Brought::load(&named, &towers)?;
            writeln!(out, "ok\treads {}", brought.card())?;
            Box::new(brought)
        }
    };
    writeln!(
        out,
        "ok\t{}: {} numbers, compared by {}",
        encoder.key(),
        encoder.dimensions(),
        encoder.similarity().name()
    )?;
    let passage = |text: &str| {
        encoder.passage(&Passage { title: "A title".into(), text: text.into(), ..Passage::default() })
    };
    let (question, near, far) = (encoder.encode(QUESTION, Role::Query)?, passage(NEAR)?, passage(FAR)?);
    let same = passage(NEAR)? == near && near.len() == encoder.dimensions() && question.len() == near.len();
    let mut all = true;
    let mut tell = |good: bool, what: String| {
        all &= good;
        writeln!(out, "{}\t{what}", if good { "ok" } else { "FAILED" })
    };
    tell(same, "a text has the same vector twice, of the length that the model says".into())?;
    let (near, far) = (dot(&question, &near), dot(&question, &far));
    tell(near > far, format!("a passage on the question scores {near:.3}, one on something else {far:.3}"))?;
    Ok(ExitCode::from(u8::from(!all)))
}
