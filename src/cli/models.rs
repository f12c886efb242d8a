//! `parallax models`: lists encoders, re-rankers and detectors, fetches them from the hub, and checks them.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::bail;
use clap::Subcommand;

use crate::cli::job::{Meter, interrupted, stop_on_signal};
use crate::cli::options::Common;
use crate::corpus::Passage;
use crate::detect::registry::NamedDetector;
use crate::detect::{CustomCrossEncoder, Detector};
use crate::encode::family::Config;
use crate::encode::reranker::{self, RERANKERS, Reranker};
use crate::encode::{CustomEncoder, Encoder, MiniLm, Named, Role, Source, SparseEncoder, registry};
use crate::encode::{HubError, Manifest, hub::Hub};
use crate::engine::detectors::{DetectorOffer, FetchError, detectors, fetch_detector};
use crate::engine::recipe::Base;
use crate::engine::{MODELS, Recipe};
use crate::report::safe;
use crate::vector::dot;
use crate::work::Stop;

/// `parallax models`
#[derive(Debug, clap::Args)]
pub struct Models {
    /// What to do with models.
    #[command(subcommand)]
    pub action: ModelsAction,
}

/// What to do with models.
#[derive(Debug, Subcommand)]
pub enum ModelsAction {
    /// List the encoders: built in, downloaded, and on the hub with their sizes.
    List {
        /// List the detectors instead, with what they measured on our test.
        #[arg(long, conflicts_with = "rerankers")]
        detectors: bool,
        /// List the re-rankers instead, for +rerank@NAME.
        #[arg(long)]
        rerankers: bool,
    },
    /// Download an encoder, a re-ranker or a detector from the hub. HF_ENDPOINT names another hub, HF_TOKEN is sent to it, HF_HUB_OFFLINE forbids downloads.
    Get {
        /// A name that `models list`, with --detectors or --rerankers or without, prints, or hf:ORG/MODEL.
        name: String,
    },
    /// Check a downloaded encoder: its files, and that it ranks a relevant passage above an irrelevant one. Or a detector: its files, its
    /// classes, and that it finds a passage for a statement likelier to support it than one against it. Or a re-ranker, which must score a
    /// relevant passage above an irrelevant one; name one that has no short name as rerank@hf:ORG/MODEL or rerank@path:FOLDER.
    Check {
        /// A name that `models list`, with --detectors or --rerankers or without, prints, hf:ORG/MODEL or path:FOLDER, with options if you
        /// like.
        name: String,
    },
}

/// Runs the command.
///
/// # Errors
/// There is no such model, it cannot be fetched, or a check fails.
pub fn run(common: &Common, args: &Models) -> anyhow::Result<ExitCode> {
    let models = common.opening().data_dir.join(MODELS);
    match &args.action {
        ModelsAction::List { detectors: true, .. } => list_detectors(&models),
        ModelsAction::List { rerankers: true, .. } => list_rerankers(&models),
        ModelsAction::List { .. } => list(&models),
        ModelsAction::Get { name } => get(name, &models, common.offline),
        ModelsAction::Check { name } => match (NamedDetector::find(name), reranker_named(name)?) {
            (Some(detector), _) => check_detector(detector, &models),
            (None, Some(source)) => check_reranker(&source, &models),
            (None, None) => check(name, &models),
        },
    }
}

fn list(models: &Path) -> anyhow::Result<ExitCode> {
    let mut out = io::BufWriter::new(safe::stdout());
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

fn list_detectors(models: &Path) -> anyhow::Result<ExitCode> {
    let mut out = io::BufWriter::new(safe::stdout());
    writeln!(out, "name\tstate\tMB\tlanguages\tlicence\tmeasured on our test\trepository")?;
    for one in detectors(models) {
        let DetectorOffer { name, languages, licence, measured, origin, .. } = &one;
        let (state, size) =
            (one.presence.words(), one.megabytes.map(|mb| mb.to_string()).unwrap_or_default());
        writeln!(out, "{name}\t{state}\t{size}\t{languages}\t{licence}\t{measured}\t{origin}")?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn list_rerankers(models: &Path) -> anyhow::Result<ExitCode> {
    let mut out = io::BufWriter::new(safe::stdout());
    writeln!(out, "name\tstate\tMB\tarchitecture\tlicence\trepository")?;
    for Reranker { name, repository, licence, megabytes, architecture } in &RERANKERS {
        let state = if here(models, repository).is_some() { "here" } else { "on the hub" };
        writeln!(out, "{name}\t{state}\t{megabytes}\t{architecture}\t{licence}\t{repository}")?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// The re-ranker that a short name or `rerank@NAME` names; `None` if the name is not one of a re-ranker.
fn reranker_named(name: &str) -> anyhow::Result<Option<Source>> {
    let bare = name.trim_start_matches('+').strip_prefix("rerank@");
    match bare.or_else(|| reranker::entry(name).map(|entry| entry.name)) {
        Some(name) => match reranker::source(name) {
            Ok(source) => Ok(Some(source)),
            Err(expected) => bail!("expected {expected}"),
        },
        None => Ok(None),
    }
}

fn get_detector(detector: &NamedDetector, models: &Path, offline: bool) -> anyhow::Result<ExitCode> {
    let (meter, stop) = (Meter::default(), stop_on_signal()?);
    match fetch_detector(detector, models, offline, &|progress| meter.show(progress), &stop) {
        Err(FetchError::Hub(HubError::Stopped(_))) => return Ok(interrupted()),
        fetched => fetched?,
    }
    let place = registry::folder(models, detector.repository);
    writeln!(safe::stderr(), "{} is in {}", detector.repository, place.display())?;
    writeln!(safe::stdout(), "--detector {}", detector.name)?;
    Ok(ExitCode::SUCCESS)
}

fn get(name: &str, models: &Path, offline: bool) -> anyhow::Result<ExitCode> {
    if let Some(detector) = NamedDetector::find(name) {
        return get_detector(detector, models, offline);
    }
    anyhow::ensure!(!offline, "--offline: models are not fetched; leave it out to fetch {name}");
    let scorer = reranker_named(name)?;
    let named = match &scorer {
        Some(source) => Some(Named::from(source.clone())),
        None => named(name)?,
    };
    let Some(named) = named.filter(|named| !named.source.repositories().is_empty()) else {
        bail!(
            "`{name}` is there already; from the hub come hf:ORG/MODEL and the names that `models list` shows"
        );
    };
    let (meter, stop) = (Meter::default(), stop_on_signal()?);
    for repository in named.source.repositories() {
        let place = match here(models, repository) {
            Some(place) => place,
            None => match Hub::from_env()?.fetch(repository, models, &|progress| meter.show(progress), &stop)
            {
                Err(HubError::Stopped(_)) => return Ok(interrupted()),
                fetched => fetched?,
            },
        };
        writeln!(safe::stderr(), "{repository} is in {}", place.display())?;
    }
    match &scorer {
        Some(source) => {
            writeln!(safe::stdout(), "bm25+rerank@{}", reranker::name(source))?;
            if registry::model(name).is_some() {
                writeln!(safe::stdout(), "{name}")?;
            }
        }
        None => writeln!(safe::stdout(), "{}", name.parse::<Recipe>()?)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The folder of a fetched repository; `None` if it was not fetched.
fn here(models: &Path, repository: &str) -> Option<std::path::PathBuf> {
    let source = Source::parse(&format!("hf:{repository}")).ok()?;
    Some(Named::from(source).towers(models).ok()?.queries)
}

/// Parses the name of a model as in a recipe; `None` for the built-in one.
fn named(name: &str) -> anyhow::Result<Option<Named>> {
    if name == "minilm" {
        return Ok(None);
    }
    match name.parse::<Recipe>()?.base {
        Base::Custom(named) | Base::Sparse(named) | Base::Late(named) => Ok(Some((*named).clone())),
        _ => bail!("`{name}` is not an encoder; see: parallax models list"),
    }
}

/// A statement, a passage for it and one against it. Any detector must give the first a higher probability of support.
const STATEMENT: &str = "Zoos should be banned.";
const FOR: &str = "Zoos should be banned, because wild animals suffer when they are kept in cages.";
const AGAINST: &str = "Zoos should not be banned, because they save animals that would otherwise die out.";

fn check_detector(detector: &NamedDetector, models: &Path) -> anyhow::Result<ExitCode> {
    let mut out = safe::stdout();
    let folder = Named::from(detector.source()).towers(models)?.passages;
    let manifest = Manifest::read(&folder)?;
    manifest.check(&folder)?;
    writeln!(out, "ok\t{} files of {} at {}", manifest.files.len(), manifest.repository, &manifest.revision)?;
    let model = CustomCrossEncoder::load(&detector.source(), None, models)?;
    let classes = Config::read(&folder)?.own_labels();
    let mut all = true;
    let mut report = |good: bool, what: String| {
        all &= good;
        writeln!(out, "{}\t{what}", if good { "ok" } else { "FAILED" })
    };
    report(detector.check(&classes).is_ok(), format!("its classes: {}", classes.join(", ")))?;
    let judge = |text: &str| {
        let passage = Passage { text: text.into(), ..Passage::default() };
        model.judge(&passage, STATEMENT, &Stop::never())
    };
    let (for_it, against) = (judge(FOR)?, judge(AGAINST)?);
    report(
        for_it > against,
        format!("a passage for a statement gets {for_it:.3}, one against it {against:.3}"),
    )?;
    Ok(ExitCode::from(u8::from(!all)))
}

/// A question, a passage about it, and one about something else: any encoder must rank the first passage above the second.
const QUESTION: &str = "Should zoos be banned?";
const NEAR: &str = "Zoos should be closed, because wild animals suffer when they are kept in cages.";
const FAR: &str = "Stir the butter and the sugar, then add two eggs and a spoon of flour.";

fn check_reranker(source: &Source, models: &Path) -> anyhow::Result<ExitCode> {
    let mut out = safe::stdout();
    let folder = reranker::place(source, models)?;
    if !source.repositories().is_empty() {
        let manifest = Manifest::read(&folder)?;
        manifest.check(&folder)?;
        writeln!(
            out,
            "ok\t{} files of {} at {}",
            manifest.files.len(),
            manifest.repository,
            &manifest.revision
        )?;
    }
    let model = reranker::load(source, models)?;
    writeln!(out, "ok\t{}: one score for a passage and a question", model.key())?;
    let score = model.with_query(QUESTION)?;
    let of = |text: &str| score(&Passage { text: text.into(), ..Passage::default() });
    let (near, far) = (of(NEAR)?, of(FAR)?);
    let good = near > far;
    let word = if good { "ok" } else { "FAILED" };
    writeln!(out, "{word}\ta passage on the question scores {near:.3}, one on something else {far:.3}")?;
    Ok(ExitCode::from(u8::from(!good)))
}

/// Checks that a learned sparse model weighs terms and ranks a passage on the question above another.
fn check_sparse(named: &Named, folder: &Path, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let model = SparseEncoder::load(named, folder)?;
    let free = if model.is_free() { "a table, without inference" } else { "the network" };
    writeln!(
        out,
        "ok\t{}: weights for {} terms; those of a query come from {free}",
        model.key(),
        model.terms()
    )?;
    let query = model.encode(QUESTION, Role::Query)?;
    let passage = |text: &str| model.passage(&Passage { text: text.into(), ..Passage::default() });
    let (near, far) = (passage(NEAR)?, passage(FAR)?);
    let score = |own: &[(u32, f32)]| -> f32 {
        let of = |term| own.binary_search_by_key(&term, |(term, _)| *term).map_or(0.0, |at| own[at].1);
        query.iter().map(|(term, weight)| weight * of(*term)).sum()
    };
    let most: Vec<String> = {
        let mut near = near.clone();
        near.sort_by(|a, b| b.1.total_cmp(&a.1));
        near.iter()
            .take(5)
            .map(|(term, weight)| format!("{} {weight:.2}", safe::line(&model.term(*term))))
            .collect()
    };
    writeln!(out, "ok\ta passage has {} terms, the heaviest are {}", near.len(), most.join(", "))?;
    let (near, far) = (score(&near), score(&far));
    let good = near > far;
    let word = if good { "ok" } else { "FAILED" };
    writeln!(out, "{word}\ta passage on the question scores {near:.3}, one on something else {far:.3}")?;
    Ok(ExitCode::from(u8::from(!good)))
}

fn check(name: &str, models: &Path) -> anyhow::Result<ExitCode> {
    let mut out = safe::stdout();
    let encoder: Box<dyn Encoder> = match named(name)? {
        None => Box::new(MiniLm::builtin()?),
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
            if named.is_late() {
                return check_reranker(&named.source, models);
            }
            if named.sparse().is_some() {
                return check_sparse(&named, &towers.passages, &mut out);
            }
            let brought = CustomEncoder::load(&named, &towers)?;
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
    let mut report = |good: bool, what: String| {
        all &= good;
        writeln!(out, "{}\t{what}", if good { "ok" } else { "FAILED" })
    };
    report(same, "a text has the same vector twice, of the length that the model says".into())?;
    let (near, far) = (dot(&question, &near), dot(&question, &far));
    report(
        near > far,
        format!("a passage on the question scores {near:.3}, one on something else {far:.3}"),
    )?;
    Ok(ExitCode::from(u8::from(!all)))
}
