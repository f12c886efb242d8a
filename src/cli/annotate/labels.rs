//! Imports, exports and compares labels: `annotate import`, `export` and `agree`.

use std::collections::{BTreeMap, HashSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::ValueEnum;
use serde_json::json;

use crate::annotate::agree::{items, queue, table};
use crate::annotate::formats::{Format, Imported, Reading, contradictions, date_text};
use crate::annotate::refit::{Refit, refit};
use crate::annotate::{Decision, Material, Model, Project, entries, is_name, name_for_journal};
use crate::cli::annotate::journals::{decisions_of, judge, named, open_to_write, refuse_journal};
use crate::cli::job::{Meter, interrupted, open_setup, stop_on_signal};
use crate::cli::options::Common;
use crate::cli::provenance;
use crate::detect::Fitted;
use crate::input::{self, check_output, check_replaceable};
use crate::report::agreement::{Sheet, against};
use crate::report::marks::count;
use crate::report::safe;
use crate::storage::replace;
use crate::work::Stop;

/// The number of rows that were not imported and are listed.
const LISTED: usize = 20;

/// `parallax annotate import`
#[derive(Debug, clap::Args)]
pub struct Import {
    /// The file of labels. It refers to passages of --corpus and questions of --questions.
    pub file: PathBuf,
    /// The format of the file.
    #[arg(long, value_enum)]
    pub format: Format,
    /// The target: the folder of a project, or a journal that ends in .jsonl.
    #[arg(long, value_name = "JOURNAL")]
    pub into: PathBuf,
    /// The annotator, if the file names none.
    #[arg(long, value_name = "NAME")]
    pub by: Option<String>,
    /// What to do if the file says yes and no of one passage and statement for one annotator.
    #[arg(long, value_enum, default_value_t)]
    pub on_conflict: OnConflict,
}

/// What happens to labels of one file that contradict each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum OnConflict {
    /// Import nothing.
    #[default]
    Refuse,
    /// The first in the file counts.
    First,
    /// The last in the file counts.
    Last,
    /// None counts: the pair stays without a label.
    Tie,
}

/// Settles the contradictions of a file, or refuses it with the first three.
fn settle(file: &Path, decisions: Vec<Decision>, how: OnConflict) -> anyhow::Result<Vec<Decision>> {
    let groups = contradictions(&decisions);
    if groups.is_empty() {
        return Ok(decisions);
    }
    let shown = groups.iter().take(3).map(|group| {
        let first = &decisions[group[0]];
        let said: Vec<&str> =
            group.iter().map(|at| if decisions[*at].supports { "yes" } else { "no" }).collect();
        let [by, question, passage, perspective] =
            [&first.by, &first.question, &first.passage, &first.perspective].map(|text| safe::line(text));
        format!("  {by}: {question} [{passage}] {perspective}: {}", said.join(", "))
    });
    let listed = shown.collect::<Vec<_>>().join("\n");
    let pairs = count(groups.len(), "pair has", "pairs have");
    let (name, first) = (file.display(), "the first three");
    let what = match how {
        OnConflict::Refuse => bail!(
            "{name}: {pairs} labels of one annotator that contradict each other; {first}:\n{listed}\nmend the file, or say which one counts \
             with --on-conflict first, last or tie"
        ),
        OnConflict::First => "the first counts",
        OnConflict::Last => "the last counts",
        OnConflict::Tie => "they stay without a label",
    };
    writeln!(
        safe::stderr(),
        "parallax: {name}: {pairs} labels of one annotator that contradict each other; {what}; {first}:\n{listed}"
    )?;
    let mut dropped: HashSet<usize> = HashSet::new();
    for group in groups {
        let kept = match how {
            OnConflict::First => group.first().copied(),
            OnConflict::Last => group.last().copied(),
            OnConflict::Tie | OnConflict::Refuse => None,
        };
        dropped.extend(group.into_iter().filter(|at| Some(*at) != kept));
    }
    let kept = decisions.into_iter().enumerate().filter(|(at, _)| !dropped.contains(at));
    Ok(kept.map(|(_, one)| one).collect())
}

pub fn import(common: &Common, args: &Import) -> anyhow::Result<ExitCode> {
    let meter = Meter::default();
    let setup = open_setup(&common.opening(), &meter, &Stop::never())?;
    let material = Material::new(&setup.questions, &setup.corpus);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let at = now.map_or(0, |now| now.as_millis() as u64);
    let Imported { decisions, unmatched } =
        args.format.read(&args.file, &Reading { material: &material, by: args.by.as_deref(), at })?;
    let mut err = safe::stderr();
    for row in unmatched.iter().take(LISTED) {
        writeln!(err, "parallax: {}: {}", args.file.display(), safe::line(&row.to_string()))?;
    }
    if unmatched.len() > LISTED {
        writeln!(err, "parallax: … and {} more rows that were not imported", unmatched.len() - LISTED)?;
    }
    if decisions.is_empty() {
        bail!("{}: none of its labels belongs to this corpus and question set", args.file.display());
    }
    let decisions = settle(&args.file, decisions, args.on_conflict)?;
    let mut out = safe::stdout();
    for (journal, decisions) in by_journal(decisions)? {
        let path = match args.into.extension().is_some_and(|end| end == "jsonl") && !args.into.is_dir() {
            true => args.into.clone(),
            false => Project::journal(&args.into, &journal),
        };
        let mut opened = open_to_write(&path, &journal)?.journal;
        let taken = opened.take(entries(&decisions, opened.history())?)?;
        let pair = |one: &Decision| {
            (one.by.clone(), one.question.clone(), one.passage.clone(), one.perspective.clone())
        };
        let labels = decisions.iter().map(pair).collect::<HashSet<_>>().len();
        let views = count(taken, "passage", "passages");
        writeln!(
            out,
            "{}: {} of {journal}, {views} changed",
            named(&path),
            count(labels, "label", "labels")
        )?;
    }
    Ok(ExitCode::from(u8::from(!unmatched.is_empty())))
}

/// Groups decisions by annotator, under names that are valid for journals.
fn by_journal(decisions: Vec<Decision>) -> anyhow::Result<BTreeMap<String, Vec<Decision>>> {
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    let mut journals: BTreeMap<String, Vec<Decision>> = BTreeMap::new();
    for mut one in decisions {
        let name = name_for_journal(&one.by);
        if !is_name(&name) {
            bail!("`{}` cannot be an annotator's name; name them in the file", safe::line(&one.by));
        }
        // Some file systems keep `Anna` and `anna` in one file.
        let key = name.to_lowercase();
        match names.get(&key) {
            Some(other) if *other != one.by => bail!(
                "`{}` and `{}` would both be {name}; give them different names in the file",
                safe::line(other),
                safe::line(&one.by)
            ),
            Some(_) => {}
            None => {
                if name != one.by {
                    writeln!(safe::stderr(), "parallax: `{}` becomes {name}", safe::line(&one.by))?;
                }
                names.insert(key, one.by.clone());
            }
        }
        one.by.clone_from(&name);
        journals.entry(name).or_default().push(one);
    }
    Ok(journals)
}

/// `parallax annotate export`
#[derive(Debug, clap::Args)]
pub struct Export {
    /// Journals, or folders of them.
    #[arg(required = true)]
    pub paths: Vec<PathBuf>,
    /// The format to write.
    #[arg(long, value_enum)]
    pub format: Format,
    /// The file to write; for qrels the NAME of NAME.qrels and NAME.div.qrels. Label Studio's interface and Argilla's settings
    /// are written next to it.
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Add the verdicts of the detector, as predictions of Label Studio or suggestions of Argilla.
    #[arg(long)]
    pub model: bool,
}

pub fn export(common: &Common, args: &Export) -> anyhow::Result<ExitCode> {
    if args.model && !matches!(args.format, Format::LabelStudio | Format::Argilla) {
        bail!("--model is for label-studio and argilla; the other formats have no place for a verdict");
    }
    let decisions = decisions_of(&args.paths)?;
    let (meter, stop) = (Meter::default(), stop_on_signal()?);
    let setup = open_setup(&common.opening(), &meter, &stop)?;
    let material = Material::new(&setup.questions, &setup.corpus);
    let model = if args.model { Some(judge(&setup, &material, &decisions, &meter, &stop)?) } else { None };
    if stop.is_set() {
        writeln!(safe::stderr(), "parallax: interrupted; no file was written")?;
        return Ok(interrupted());
    }
    let exported = args.format.write(&decisions, &material, model.as_ref())?;
    let base = match args.format {
        Format::Qrels => without_ending(&args.out),
        _ => args.out.clone(),
    };
    for (ending, _) in &exported.files {
        refuse_journal(&with_ending(&base, ending))?;
    }
    for (ending, bytes) in &exported.files {
        let path = with_ending(&base, ending);
        check_output(&path)?;
        replace(&path, bytes).with_context(|| format!("{} cannot be written", path.display()))?;
    }
    for note in &exported.left_out {
        writeln!(safe::stderr(), "parallax: {note}")?;
    }
    // Counted in the files, read back from the disk.
    let (mut written, labels) = (0, count(decisions.len(), "label", "labels"));
    for (ending, _) in &exported.files {
        let Some(held) = labels_in(args.format, ending, &with_ending(&base, ending), &material)? else {
            continue;
        };
        written = written.max(held);
        let name = named(&with_ending(&base, ending));
        writeln!(safe::stderr(), "parallax: {name}: {} of {labels}", held)?;
    }
    if written == 0 {
        bail!("no label was written: the notes above say why");
    }
    for (ending, _) in &exported.files {
        writeln!(safe::stdout(), "{}", with_ending(&base, ending).display())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn with_ending(base: &Path, ending: &str) -> PathBuf {
    let mut path = base.to_owned().into_os_string();
    path.push(ending);
    PathBuf::from(path)
}

/// The number of labels in a file that was written; `None` for files without labels and for side files.
fn labels_in(
    format: Format,
    ending: &str,
    path: &Path,
    material: &Material<'_>,
) -> anyhow::Result<Option<usize>> {
    match (format, ending) {
        (Format::Qrels, ".qrels" | ".div.qrels") => {
            let text = input::text(path)?;
            Ok(Some(text.lines().filter(|line| !line.trim().is_empty()).count()))
        }
        (Format::Qrels, _) => Ok(None),
        (_, "") => {
            // An empty file is not of the format.
            if std::fs::metadata(path)?.len() == 0 {
                return Ok(Some(0));
            }
            let Imported { decisions, unmatched } =
                format.read(path, &Reading { material, by: Some("nobody"), at: 0 })?;
            Ok(Some(decisions.len() + unmatched.len()))
        }
        _ => Ok(None),
    }
}

/// `NAME` of `NAME`, `NAME.qrels` and `NAME.div.qrels`.
fn without_ending(path: &Path) -> PathBuf {
    let name = path.to_string_lossy();
    let name = name.strip_suffix(".qrels").unwrap_or(&name);
    name.strip_suffix(".div").unwrap_or(name).into()
}

/// `parallax annotate agree`
#[derive(Debug, clap::Args)]
pub struct Agree {
    /// Journals, or folders of them.
    #[arg(required = true)]
    pub paths: Vec<PathBuf>,
    /// Add the detector as one more annotator.
    #[arg(long)]
    pub model: bool,
    /// Take this annotator's labels as true, and print how often each of the others, and the detector of --model, says yes and is right:
    /// accuracy, F1 and κ with intervals by question, beside verdicts at random and none.
    #[arg(long, value_name = "NAME", conflicts_with = "refit")]
    pub against: Option<String>,
    /// Leave out decisions that were made with lane, rank or verdict in sight, or of which that is not known.
    #[arg(long)]
    pub blind: bool,
    /// Fit the detector on these labels and write the result to FILE for --detector-threshold: the threshold, and the decision on two
    /// opposite statements. Default: threshold.json in the data folder.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    pub refit: Option<Option<PathBuf>>,
    /// The output format.
    #[arg(long, value_enum, default_value_t)]
    pub format: AgreeFormat,
    /// Write the table to this file instead, and beside it FILE.json: what it was made of, for `parallax reproduce`.
    #[arg(long, value_name = "FILE", conflicts_with = "refit")]
    pub out: Option<PathBuf>,
}

/// How agreement is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum AgreeFormat {
    /// For people.
    #[default]
    Text,
    /// Markdown.
    Md,
    /// One JSON object.
    Json,
    /// One line per value.
    Tsv,
}

pub fn agree(common: &Common, args: &Agree) -> anyhow::Result<ExitCode> {
    // The folder of the detector's card is made.
    args.refit.iter().flatten().try_for_each(|place| check_replaceable(place))?;
    args.out.as_deref().map(provenance::check).transpose()?;
    let mut decisions = decisions_of(&args.paths)?;
    if args.blind {
        let all = decisions.len();
        decisions.retain(|one| one.blind() == Some(true));
        let left_out = count(all - decisions.len(), "label", "labels");
        writeln!(
            safe::stderr(),
            "parallax: --blind: {left_out} of {all} left out, made with lane, rank or verdict in sight or without a record of it"
        )?;
        if decisions.is_empty() {
            bail!("--blind: no label is left; label with `B` on, or in a project made with --blind");
        }
    }
    let opening = common.opening();
    let model = if args.model || args.refit.is_some() {
        let (meter, stop) = (Meter::default(), stop_on_signal()?);
        let setup = open_setup(&opening, &meter, &stop)?;
        let material = Material::new(&setup.questions, &setup.corpus);
        let model = judge(&setup, &material, &decisions, &meter, &stop)?;
        if stop.is_set() {
            writeln!(safe::stderr(), "parallax: interrupted; the verdicts so far are stored")?;
            return Ok(interrupted());
        }
        Some(model)
    } else {
        None
    };
    let items = items(&decisions, model.as_ref());
    let shown = model.as_ref().filter(|_| args.model);
    if let Some(name) = &args.against {
        let Some(page) = against(&items, name, shown) else {
            bail!(
                "--against {name}: no label is by this annotator; `annotate status` and `annotate agree` name them"
            )
        };
        let text = match args.format {
            AgreeFormat::Text => page.text(),
            AgreeFormat::Md => page.markdown(),
            AgreeFormat::Tsv => page.tsv(),
            AgreeFormat::Json => safe::json(&page.json())?,
        };
        provenance::print(args.out.as_deref(), &text, &page.json())?;
        return Ok(ExitCode::SUCCESS);
    }
    let fitted = match (&args.refit, &model) {
        (Some(place), Some(model)) => {
            let mut fitted = refit(&items, model)?;
            // The new fit is relative to verdicts that include the earlier fit.
            let earlier = opening.threshold.as_deref().map(Fitted::read).transpose()?;
            if let (Ok(calibration), Some(earlier)) =
                (&mut fitted.calibration, earlier.and_then(|earlier| earlier.calibration))
            {
                *calibration = calibration.after(&earlier);
            }
            let place = place.clone().unwrap_or_else(|| opening.data_dir.join("threshold.json"));
            write_threshold(&place, &fitted, model)?;
            Some((fitted, place.display().to_string()))
        }
        _ => None,
    };
    let sheet = Sheet {
        table: &table(&items, shown),
        queue: &queue(&items, shown),
        model: model.as_ref(),
        refit: fitted.as_ref().map(|(fitted, place)| (fitted, place.as_str())),
    };
    let text = match args.format {
        AgreeFormat::Text => sheet.text(),
        AgreeFormat::Md => sheet.markdown(),
        AgreeFormat::Tsv => sheet.tsv(),
        AgreeFormat::Json => safe::json(&sheet.json())?,
    };
    provenance::print(args.out.as_deref(), &text, &sheet.json())?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the threshold with its provenance.
fn write_threshold(place: &Path, fitted: &Refit, model: &Model) -> anyhow::Result<()> {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let mut card = json!({
        "fitted_on": "human labels",
        "date": now.ok().and_then(|now| date_text(now.as_millis() as u64)),
        "detector": model.detector,
        "version": env!("CARGO_PKG_VERSION"),
    });
    if let (Some(card), Some(figures)) = (card.as_object_mut(), fitted.json().as_object()) {
        card.extend(figures.clone());
    }
    let unwritable = || format!("{} cannot be written", place.display());
    if let Some(folder) = place.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).with_context(unwritable)?;
    }
    check_output(place)?;
    replace(place, format!("{card:#}\n").as_bytes()).with_context(unwritable)
}
