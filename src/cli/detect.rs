//! `parallax detect`: judges pairs of passage and statement from a file, and measures the verdicts where it has labels.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use anyhow::Context;
use serde_json::{Value, json};

use super::against::Compared;
use super::args::{Common, Detect, Format};
use crate::corpus::Passage;
use crate::detect::cache::Cache;
use crate::detect::labels::truth;
use crate::detect::{DetectError, Detector, Fitted, cut, foreign};
use crate::input::{InputError, lines, unquoted};
use crate::measure::detection::{Report, report};
use crate::pipeline::{detector, model_threads};
use crate::work::{Stop, on_all};

/// One line of the file.
pub(super) struct Pair {
    pub id: String,
    pub passage: Passage,
    pub statement: String,
    pub label: Option<bool>,
}

/// What a detector says of all pairs.
pub(super) struct Judged {
    pub detector: Arc<dyn Detector>,
    pub verdicts: Vec<Result<f32, DetectError>>,
}

impl Judged {
    /// Whether a probability is a yes.
    pub fn yes(&self, p: f32) -> bool {
        p >= self.detector.threshold()
    }
}

/// Runs the command.
///
/// # Errors
/// The file is not such a table, or a detector cannot be loaded.
pub fn run(common: &Common, args: &Detect) -> anyhow::Result<ExitCode> {
    let pairs = read(&args.pairs)?;
    let fitted = common.detector_threshold.as_deref().map(Fitted::read).transpose()?;
    let opening = common.opening();
    let open =
        |choice, fitted| detector(choice, fitted, &opening).with_context(|| format!("the detector {choice}"));
    // Both are opened before one of them begins what may take long.
    let own = open(&common.detector, fitted.as_ref())?;
    let other = args.against.as_ref().map(|other| open(other, None)).transpose()?;
    let cache = Cache::open(&opening.data_dir)?;
    let all: Vec<&Arc<dyn Detector>> = std::iter::once(&own).chain(&other).collect();
    about(&pairs, &all, cache.not_kept.as_deref())?;
    let own = judged(own, &cache, &pairs)?;
    let other = other.map(|other| judged(other, &cache, &pairs)).transpose()?;
    match &other {
        Some(other) => Compared::of(&pairs, [&own, other]).print(args.format)?,
        None => print(args.format, &pairs, &own)?,
    }
    let failed = std::iter::once(&own).chain(&other).map(missing).sum::<io::Result<usize>>()?;
    Ok(if failed > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// What should be known before the verdicts are read.
fn about(pairs: &[Pair], detectors: &[&Arc<dyn Detector>], not_kept: Option<&str>) -> io::Result<()> {
    let count = |is: fn(&Passage) -> bool| pairs.iter().filter(|pair| is(&pair.passage)).count();
    let (foreign, cut) = (count(|passage| foreign(&passage.text).is_some()), count(cut));
    let mut told: Vec<String> = not_kept.map(str::to_owned).into_iter().collect();
    for detector in detectors.iter().filter(|detector| detector.experimental()) {
        told.push(format!(
            "the verdicts of {} are experimental: read its card before you rely on them",
            detector.key()
        ));
    }
    if foreign > 0 {
        told.push(format!("pairs with a passage that seems not to be English: {foreign}; the carried detector was tested on English alone"));
    }
    if cut > 0 {
        told.push(format!("pairs with a passage of which the first 100,000 bytes alone are judged: {cut}"));
    }
    told.iter().try_for_each(|told| writeln!(io::stderr(), "parallax: {told}"))
}

/// Tells how many pairs have no verdict, and gives how many of them because the detector failed.
fn missing(judged: &Judged) -> io::Result<usize> {
    let errors: Vec<&DetectError> =
        judged.verdicts.iter().filter_map(|verdict| verdict.as_ref().err()).collect();
    let failed = errors.iter().filter(|error| !matches!(error, DetectError::Empty(_))).count();
    if let Some(first) = errors.first() {
        let (missing, all) = (errors.len(), judged.verdicts.len());
        let again = if failed > 0 { "; run again, it tries those that failed" } else { "" };
        writeln!(
            io::stderr(),
            "parallax: {missing} of {all} pairs have no verdict of {}, the first: {first}{again}",
            judged.detector.key()
        )?;
    }
    Ok(failed)
}

fn judged(detector: Arc<dyn Detector>, cache: &Cache, pairs: &[Pair]) -> anyhow::Result<Judged> {
    let (done, told, stop) = (AtomicUsize::new(0), Mutex::new(io::stderr()), Stop::never());
    let threads = match detector.at_once() {
        Some(at_once) => rayon::ThreadPoolBuilder::new().num_threads(at_once).build()?,
        None => model_threads()?,
    };
    let verdicts = on_all(&threads, pairs.len(), &stop, |i| {
        let verdict = cache.judge(detector.as_ref(), &pairs[i].passage, &pairs[i].statement, &stop);
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        if done.is_multiple_of(500)
            && let Ok(mut out) = told.lock()
        {
            // Nobody is helped by a failure to print progress.
            let _ = writeln!(out, "judged {done}/{}", pairs.len());
        }
        verdict
    });
    if let Some(told) = detector.told() {
        writeln!(io::stderr(), "parallax: {told}")?;
    }
    Ok(Judged { detector, verdicts })
}

/// The figures over the pairs that have both a label and a verdict; none where no pair has.
pub(super) fn labelled(
    pairs: &[Pair],
    verdicts: &[Result<f32, DetectError>],
    threshold: f32,
) -> Option<Report> {
    let judged = pairs.iter().zip(verdicts).filter_map(|(pair, p)| Some((*p.as_ref().ok()?, pair.label?)));
    report(&judged.collect::<Vec<_>>(), threshold)
}

fn read(path: &Path) -> Result<Vec<Pair>, InputError> {
    let mut columns: Option<[Option<usize>; 5]> = None;
    let mut pairs = Vec::new();
    lines(path, |_, line| {
        // As spreadsheets write them; what is no whole quoted field is taken as it stands.
        let plain = |field: &str| unquoted(field).unwrap_or_else(|_| field.to_owned());
        let fields: Vec<String> = line.split('\t').map(plain).collect();
        let Some([document, perspective, id, title, label]) = columns else {
            let found = ["document", "perspective", "id", "title", "label"]
                .map(|name| fields.iter().position(|field| field == name));
            if found[0].is_none() || found[1].is_none() {
                return Err(
                    "a header that names at least `document` and `perspective`, separated by tabs".into()
                );
            }
            columns = Some(found);
            return Ok(());
        };
        let field = |place: Option<usize>| place.and_then(|place| fields.get(place)).cloned();
        let (Some(text), Some(statement)) = (field(document), field(perspective)) else {
            return Err("as many fields as the header has".into());
        };
        let label = field(label).filter(|label| !label.trim().is_empty());
        let label = label.map(|label| truth(&label)).transpose()?;
        let passage = Passage { title: field(title).unwrap_or_default(), text, ..Passage::default() };
        // Pairs without an id are numbered as they come, the header not among them.
        let id = field(id).unwrap_or_else(|| (pairs.len() + 1).to_string());
        pairs.push(Pair { id, passage, statement, label });
        Ok(())
    })?;
    if pairs.is_empty() {
        let advice = "give it a header and at least one line";
        return Err(InputError::Empty { path: path.into(), what: "the pairs file", advice });
    }
    Ok(pairs)
}

fn print(format: Format, pairs: &[Pair], judged: &Judged) -> io::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    let Judged { detector, verdicts } = judged;
    let (threshold, report) = (detector.threshold(), labelled(pairs, verdicts, detector.threshold()));
    if format == Format::Json {
        let rows = pairs.iter().zip(verdicts).map(|(pair, verdict)| match verdict {
            Ok(p) => json!({"id": pair.id, "p": p, "supports": judged.yes(*p), "error": Value::Null}),
            Err(error) => {
                json!({"id": pair.id, "p": Value::Null, "supports": Value::Null, "error": error.to_string()})
            }
        });
        let provenance =
            json!({"version": env!("CARGO_PKG_VERSION"), "experimental": detector.experimental()});
        let all = json!({
            "detector": detector.key(),
            "threshold": threshold,
            "threshold_fitted_on": detector.fitted_on(),
            "told": detector.told(),
            "pairs": rows.collect::<Vec<_>>(),
            "report": report.as_ref().map(Report::json),
            "provenance": provenance,
        });
        return writeln!(out, "{all:#}");
    }
    writeln!(out, "id\tp\tsupports\terror")?;
    for (pair, verdict) in pairs.iter().zip(verdicts) {
        match verdict {
            Ok(p) => writeln!(out, "{}\t{p:.4}\t{}\t", pair.id, u8::from(judged.yes(*p)))?,
            Err(error) => writeln!(out, "{}\t\t\t{error}", pair.id)?,
        }
    }
    out.flush()?;
    match report {
        Some(report) => writeln!(io::stderr(), "{}", report.text(threshold, detector.fitted_on())),
        None => Ok(()),
    }
}
