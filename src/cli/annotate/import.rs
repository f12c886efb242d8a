//! `parallax annotate import`: labels from other tools into journals.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;

use super::super::args::Common;
use super::super::progress::Meter;
use super::{count, named};
use crate::annotate::formats::{Format, Imported, Reading};
use crate::annotate::{Decision, Journal, Material, Project, entries, is_name, name_for_journal};
use crate::pipeline::Setup;
use crate::report::safe;
use crate::work::Stop;

/// How many rows that are left are told one by one.
const TOLD: usize = 20;

/// `parallax annotate import`
#[derive(Debug, clap::Args)]
pub struct Import {
    /// The file of labels. Its passages are those of --corpus, its questions those of --questions.
    pub file: PathBuf,
    /// What it is.
    #[arg(long, value_enum)]
    pub format: Format,
    /// Where the labels go: a project's folder, or a journal that ends in .jsonl.
    #[arg(long, value_name = "JOURNAL")]
    pub into: PathBuf,
    /// Whose labels they are, where the file does not say.
    #[arg(long, value_name = "NAME")]
    pub by: Option<String>,
}

pub fn run(common: &Common, args: &Import) -> anyhow::Result<ExitCode> {
    let meter = Meter::default();
    let setup = Setup::open(&common.opening(), &|progress| meter.tell(progress), &Stop::never())?;
    let material = Material::new(&setup.questions, &setup.corpus);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let at = now.map_or(0, |now| now.as_millis() as u64);
    let Imported { decisions, unmatched } =
        args.format.read(&args.file, &Reading { material: &material, by: args.by.as_deref(), at })?;
    let mut err = io::stderr().lock();
    for row in unmatched.iter().take(TOLD) {
        writeln!(err, "parallax: {}: {}", args.file.display(), safe::line(&row.to_string()))?;
    }
    if unmatched.len() > TOLD {
        writeln!(err, "parallax: … and {} more rows that are left", unmatched.len() - TOLD)?;
    }
    if decisions.is_empty() {
        bail!("{}: none of its labels belongs to this corpus and question set", args.file.display());
    }
    let mut out = io::stdout().lock();
    for (journal, decisions) in renamed(decisions)? {
        let path = match args.into.extension().is_some_and(|end| end == "jsonl") && !args.into.is_dir() {
            true => args.into.clone(),
            false => Project::journal(&args.into, &journal),
        };
        let mut opened = Journal::open(&path, &journal)?.journal;
        let taken = opened.take(entries(&decisions, opened.history())?)?;
        let (labels, views) = (decisions.len(), count(taken, "passage", "passages"));
        writeln!(
            out,
            "{}: {} of {journal}, {views} changed",
            named(&path),
            count(labels, "label", "labels")
        )?;
    }
    Ok(ExitCode::from(u8::from(!unmatched.is_empty())))
}

/// The decisions by annotator, under names that a journal may have.
fn renamed(decisions: Vec<Decision>) -> anyhow::Result<BTreeMap<String, Vec<Decision>>> {
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    let mut journals: BTreeMap<String, Vec<Decision>> = BTreeMap::new();
    for mut one in decisions {
        let name = name_for_journal(&one.by);
        if !is_name(&name) {
            bail!("`{}` cannot be an annotator's name; name them in the file", safe::line(&one.by));
        }
        match names.get(&name) {
            Some(other) if *other != one.by => bail!(
                "`{}` and `{}` would both be {name}; name them apart in the file",
                safe::line(other),
                safe::line(&one.by)
            ),
            Some(_) => {}
            None => {
                if name != one.by {
                    writeln!(io::stderr(), "parallax: `{}` becomes {name}", safe::line(&one.by))?;
                }
                names.insert(name.clone(), one.by.clone());
            }
        }
        one.by.clone_from(&name);
        journals.entry(name).or_default().push(one);
    }
    Ok(journals)
}
