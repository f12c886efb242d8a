//! `parallax detect` judges pairs of passage and statement from a file; `parallax statements` turns questions into statements;
//! `parallax prompts` prints the prompts for language models.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::{Context, bail};

use crate::assets::PROMPTS;
use crate::cli::corpus::build_set;
use crate::cli::options::{Common, Format};
use crate::corpus::Passage;
use crate::detect::decision::truth;
use crate::detect::{Cache, Choice, DetectError, Detector, Fitted, NO_SIDE, Predictions, cut, foreign};
use crate::engine::{detector, model_threads, readers};
use crate::expand::checked_statements;
use crate::input::{Expected, InputError, Lines, check_output, lines, unquote};
use crate::llm::{Job, Prompt, Prompts};
use crate::question::{self, sources::Material};
use crate::report::decisions::{Judge, against_labels};
use crate::report::plot::png;
use crate::report::safe::{self, line};
use crate::report::verdicts::{self, Compared, Judged, Pair, read_together};
use crate::storage::replace;
use crate::work::{Stop, on_all};

/// `parallax detect`: one detector's verdicts, two side by side (--against), or how several agree with the labels (--detector repeated).
#[derive(Debug, clap::Args)]
pub struct Detect {
    /// A TSV with a header that names at least `document` and `perspective`; `id`, `question`, `title` and `label` are optional.
    /// Without `id` the pairs are numbered from 1. Two lines with one question and document are opposite statements, which are decided on
    /// together. With labels, the figures of BERDS' Table 7 are printed.
    #[arg(long, value_name = "FILE")]
    pub pairs: PathBuf,
    /// Compare with a second detector, named as in --detector: how far the two agree, and the pairs, disagreements first.
    #[arg(long, value_name = "WHAT")]
    pub against: Option<Choice>,
    /// Also write the pairs to this file with the verdicts as labels: a TSV for training, which `--pairs` reads too. With --detector llm,
    /// a language model labels them; pairs without a clear verdict are left out.
    #[arg(long, value_name = "FILE")]
    pub training: Option<PathBuf>,
    /// What a million tokens cost on the server: read, or read and written with a comma between. The cost is estimated
    /// before pairs are asked about.
    #[arg(long, value_name = "READ[,WRITTEN]")]
    pub price: Option<Price>,
    /// Draw the risk over the coverage into this file, .svg or .png. Needs labels and opposite statements.
    #[arg(long, value_name = "FILE", value_parser = picture)]
    pub plot: Option<PathBuf>,
    /// Begin the random draws behind intervals and the row *random* of several detectors with this number.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// The output format.
    #[arg(long, value_enum, default_value_t = Format::Tsv)]
    pub format: Format,
}

fn picture(text: &str) -> Result<PathBuf, Expected> {
    let path = PathBuf::from(text);
    let ending = path.extension().and_then(|ending| ending.to_str()).map(str::to_ascii_lowercase);
    let known = ending.is_some_and(|ending| ["svg", "png"].contains(&ending.as_str()));
    known.then_some(path).ok_or_else(|| "a file name that ends with .svg or .png".into())
}

/// Draws the risk over the coverage.
fn draw_risk(path: &Path, pairs: &[Pair], sides: &[&Judged]) -> anyhow::Result<()> {
    let Some(plot) = verdicts::risk_plot(pairs, sides) else {
        bail!(
            "{}: nothing to draw: no document has labels for two opposite statements and a decision on both",
            path.display()
        );
    };
    let is_png = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("png"));
    let bytes = if is_png { png(&plot)? } else { plot.into_bytes() };
    replace(path, &bytes).with_context(|| path.display().to_string())
}

/// `parallax statements`
#[derive(Debug, clap::Args)]
pub struct Statements {
    /// The questions.
    pub question: Vec<String>,
    /// A file of questions, one per line; `-` is standard input.
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Build questions from arguments and their counter-arguments, as ArguAna has them (JSONL: ids that end with -point and -counter or with
    /// a and b, `text`, perhaps `claim` or `title`; or `argument` and `counter`): the question that the argument's claim answers.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["question", "file", "from_answers", "options"])]
    pub pair: Option<PathBuf>,
    /// Build questions from answers, as Kialo has them (JSONL: `question`, `answers`): each answer becomes a statement.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["question", "file", "options"])]
    pub from_answers: Option<PathBuf>,
    /// Build questions from a survey, as OpinionQA has it (CSV, TSV or JSONL: `question`, and `references` or `options`): those with two
    /// opposite ends.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["question", "file"])]
    pub options: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// The file is not a table of pairs, or a detector cannot be loaded.
pub fn run(common: &Common, args: &Detect) -> anyhow::Result<ExitCode> {
    let pairs = read(&args.pairs)?;
    if common.detector.len() > 1 {
        return several(common, args, &pairs);
    }
    // Before the judging, which may take hours.
    args.training.as_deref().map(check_output).transpose()?;
    let fitted = common.detector_threshold.as_deref().map(Fitted::read).transpose()?;
    let opening = common.opening();
    let open =
        |choice, fitted| detector(choice, fitted, &opening).with_context(|| format!("the detector {choice}"));
    // Both detectors are opened before one of them starts judging, which may take long.
    let choice = common.detector();
    let own = open(&choice, fitted.as_ref())?;
    let other = args.against.as_ref().map(|other| open(other, None)).transpose()?;
    let cache = Cache::open(&opening.data_dir)?;
    let all: Vec<&Arc<dyn Detector>> = std::iter::once(&own).chain(&other).collect();
    about(&pairs, &all, cache.unsaved.as_deref())?;
    std::iter::once(&choice).chain(&args.against).try_for_each(|choice| unmatched(choice, &pairs))?;
    let own = judged(own, &cache, &pairs, args.price)?;
    let other = other.map(|other| judged(other, &cache, &pairs, args.price)).transpose()?;
    let compared = other.as_ref().map(|other| Compared::of(&pairs, [&own, other]));
    let text = match (args.format, &compared) {
        (Format::Json, Some(compared)) => safe::json(&compared.json())?,
        (Format::Json, None) => safe::json(&verdicts::json(&pairs, &own))?,
        (_, Some(compared)) => compared.tsv(),
        (_, None) => verdicts::tsv(&pairs, &own),
    };
    safe::stdout().write_all(text.as_bytes())?;
    if args.format != Format::Json {
        let figures = match &compared {
            Some(compared) => compared.figures(),
            None => verdicts::figures(&pairs, &own),
        };
        figures.iter().try_for_each(|line| writeln!(safe::stderr(), "{line}"))?;
    }
    if let Some(path) = &args.training {
        let (table, left_out) = verdicts::training(&pairs, &own);
        replace(path, table.as_bytes()).with_context(|| path.display().to_string())?;
        let (written, place) = (pairs.len() - left_out, path.display());
        writeln!(
            safe::stderr(),
            "parallax: {place}: {written} pairs; {left_out} without a clear verdict are left out"
        )?;
    }
    if let Some(path) = &args.plot {
        draw_risk(path, &pairs, &std::iter::once(&own).chain(&other).collect::<Vec<_>>())?;
    }
    let failed = std::iter::once(&own).chain(&other).map(missing).sum::<io::Result<usize>>()?;
    Ok(if failed > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Prints how each of several detectors agrees with the labels.
fn several(common: &Common, args: &Detect, pairs: &[Pair]) -> anyhow::Result<ExitCode> {
    let labels: Vec<(&str, bool)> =
        pairs.iter().filter_map(|pair| Some((pair.group(), pair.label?))).collect();
    if labels.is_empty() {
        bail!(
            "{}: several detectors are compared with labels, and no line has one; add a column `label`, or compare two with --against",
            args.pairs.display()
        );
    }
    if args.against.is_some() || common.detector_threshold.is_some() {
        bail!(
            "--against and --detector-threshold belong to one detector; leave them out, or name one --detector"
        );
    }
    let choices = common.detectors();
    if let Some(i) = (1..choices.len()).find(|i| choices[..*i].contains(&choices[*i])) {
        bail!("--detector {} is named twice; name each once", choices[i]);
    }
    let opening = common.opening();
    let opened = choices.iter().map(|choice| {
        let own = detector(choice, None, &opening).with_context(|| format!("the detector {choice}"))?;
        Ok((choice, own))
    });
    // All are opened before one of them starts judging, which may take long.
    let opened = opened.collect::<anyhow::Result<Vec<_>>>()?;
    let cache = Cache::open(&opening.data_dir)?;
    about(pairs, &opened.iter().map(|(_, own)| own).collect::<Vec<_>>(), cache.unsaved.as_deref())?;
    let (mut all, mut failed) = (Vec::new(), 0);
    for (choice, own) in opened {
        unmatched(choice, pairs)?;
        let own = judged(own, &cache, pairs, args.price)?;
        failed += missing(&own)?;
        all.push((choice, own));
    }
    let judges: Vec<Judge<'_>> =
        all.iter().map(|(choice, own)| Judge::of(choice.to_string(), pairs, own)).collect();
    let mut table = against_labels("detect", &judges, &labels, "of the file", args.seed);
    table.provenance["detectors"] =
        all.iter().map(|(choice, own)| (choice.to_string(), own.detector.key())).collect();
    if pairs.iter().all(|pair| pair.question.is_none()) {
        table.notes.push("the file names no questions, so the intervals are by document".into());
    }
    let text = match args.format {
        Format::Json => safe::json(&table.json())?,
        Format::Tsv => table.tsv(),
        Format::Text => table.text(),
    };
    safe::stdout().write_all(text.as_bytes())?;
    if let Some(path) = &args.plot {
        draw_risk(path, pairs, &all.iter().map(|(_, own)| own).collect::<Vec<_>>())?;
    }
    Ok(if failed > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Prints how many predictions of a file match no pair.
fn unmatched(choice: &Choice, pairs: &[Pair]) -> anyhow::Result<()> {
    let Choice::File(file) = choice else { return Ok(()) };
    let held = pairs.iter().map(|pair| (&pair.passage, pair.statement.as_str()));
    let note = Predictions::read(file)?.unmatched_pairs(held).words(&choice.to_string());
    Ok(note.iter().try_for_each(|note| writeln!(safe::stderr(), "parallax: {note}"))?)
}

/// Prints what the user should know before reading the verdicts.
fn about(pairs: &[Pair], detectors: &[&Arc<dyn Detector>], not_kept: Option<&str>) -> io::Result<()> {
    let count = |is: fn(&Passage) -> bool| pairs.iter().filter(|pair| is(&pair.passage)).count();
    let (foreign, cut) = (count(|passage| foreign(&passage.text).is_some()), count(cut));
    let mut notes: Vec<String> = not_kept.map(str::to_owned).into_iter().collect();
    for detector in detectors.iter().filter(|detector| detector.experimental()) {
        notes.push(format!(
            "the verdicts of {} are experimental: read its card before you rely on them",
            detector.key()
        ));
    }
    if foreign > 0 {
        notes.push(format!("pairs with a passage that seems not to be English: {foreign}; the built-in detector gives no verdict on them"));
    }
    if cut > 0 {
        notes.push(format!("pairs with a passage of which only the first 100,000 bytes are judged: {cut}"));
    }
    notes.iter().try_for_each(|note| writeln!(safe::stderr(), "parallax: {note}"))
}

/// Prints how many pairs have no verdict. Returns how many of them failed.
fn missing(judged: &Judged) -> io::Result<usize> {
    let errors: Vec<&DetectError> =
        judged.verdicts.iter().filter_map(|verdict| verdict.as_ref().err()).collect();
    // These would fail again in the next run.
    let lasting =
        |error: &&&DetectError| matches!(error, DetectError::Empty(_) | DetectError::Foreign { .. });
    let failed = errors.len() - errors.iter().filter(lasting).count();
    if let Some(first) = errors.first() {
        let (missing, all) = (errors.len(), judged.verdicts.len());
        let again = if failed > 0 { "; run again, it tries those that failed" } else { "" };
        writeln!(
            safe::stderr(),
            "parallax: {missing} of {all} pairs have no verdict of {}, the first: {first}{again}",
            judged.detector.key()
        )?;
    }
    Ok(failed)
}

/// For a detector whose verdicts have a cost: judges the first pair without a verdict, and prints the estimated cost and time of the others.
fn announce(
    detector: &dyn Detector,
    cache: &Cache,
    pairs: &[Pair],
    price: Option<Price>,
) -> anyhow::Result<()> {
    let Some(at_once) = detector.at_once() else { return Ok(()) };
    let open: Vec<(&Pair, (u64, u64))> = pairs
        .iter()
        .filter(|pair| cache.cached(detector, &pair.passage, &pair.statement).is_none())
        .filter_map(|pair| Some((pair, detector.estimate(&pair.passage, &pair.statement)?)))
        .collect();
    let Some((first, (own, _))) = open.first() else { return Ok(()) };
    let requests = open.iter().map(|(_, (requests, _))| requests).sum::<u64>();
    let tokens = open.iter().map(|(_, (_, tokens))| tokens).sum::<u64>();
    let cost = price
        .map(|price| format!(", which cost about {:.2}", price.of(tokens, requests)))
        .unwrap_or_default();
    let (open, all) = (open.len(), pairs.len());
    writeln!(
        safe::stderr(),
        "parallax: {open} of {all} pairs have no verdict yet: about {requests} requests and {tokens} tokens to read{cost}"
    )?;
    let began = Instant::now();
    // If it failed, it is judged again with the others.
    let judged = cache.judge(detector, &first.passage, &first.statement, &Stop::never());
    if judged.is_ok() && requests > *own {
        let each = began.elapsed().as_secs_f64() / (*own).max(1) as f64;
        let left = each * (requests - own) as f64 / at_once as f64;
        writeln!(
            safe::stderr(),
            "parallax: the first request took {each:.1} s; the others will take about {}, {at_once} at once",
            span(left)
        )?;
    }
    Ok(())
}

/// Seconds in words.
fn span(seconds: f64) -> String {
    match seconds {
        s if s < 90.0 => format!("{s:.0} s"),
        s if s < 5_400.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3_600.0),
    }
}

/// The price of a million tokens, read and written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Price {
    read: f64,
    written: f64,
}

impl Price {
    /// The cost of requests, each answered by a word or two.
    fn of(self, tokens: u64, requests: u64) -> f64 {
        (self.read * tokens as f64 + self.written * (2 * requests) as f64) / 1e6
    }
}

impl FromStr for Price {
    type Err = Expected;

    fn from_str(text: &str) -> Result<Self, Expected> {
        let number = |text: &str| text.trim().parse::<f64>().ok().filter(|x| x.is_finite() && *x >= 0.0);
        let (read, written) = text.split_once(',').unwrap_or((text, "0"));
        match (number(read), number(written)) {
            (Some(read), Some(written)) => Ok(Price { read, written }),
            _ => {
                Err("what a million tokens read cost, such as 0.5, or read and written, such as 0.5,1.5"
                    .into())
            }
        }
    }
}

fn judged(
    detector: Arc<dyn Detector>,
    cache: &Cache,
    pairs: &[Pair],
    price: Option<Price>,
) -> anyhow::Result<Judged> {
    let (done, stop) = (AtomicUsize::new(0), Stop::never());
    let threads = match detector.at_once() {
        Some(at_once) => rayon::ThreadPoolBuilder::new().num_threads(at_once).build()?,
        None => model_threads()?,
    };
    announce(detector.as_ref(), cache, pairs, price)?;
    let rows = read_together(pairs, |both| detector.reads_both(both));
    let read = on_all(&threads, rows.len(), &stop, |i| {
        let statement = |row: &usize| pairs[*row].statement.as_str();
        let (detector, passage) = (detector.as_ref(), &pairs[rows[i][0]].passage);
        let read = match rows[i].as_slice() {
            [one, other] => cache.read_both(detector, passage, [one, other].map(statement), &stop).to_vec(),
            all => vec![cache.read(detector, passage, statement(&all[0]), &stop)],
        };
        let before = done.fetch_add(read.len(), Ordering::Relaxed);
        let done = before + read.len();
        if before / 500 < done / 500 {
            // A failure to print progress does not stop the command.
            let _ = writeln!(safe::stderr(), "judged {done}/{}", pairs.len());
        }
        read
    });
    let read: BTreeMap<usize, _> = rows.into_iter().flatten().zip(read.into_iter().flatten()).collect();
    let usage = detector.usage();
    let judged = Judged::of(detector, pairs, &read.into_values().collect::<Vec<_>>());
    if let Some(note) = usage.or_else(|| judged.sources.words()) {
        writeln!(safe::stderr(), "parallax: {note}")?;
    }
    if judged.joint_count() > 0 && !judged.detector.rule().shows_sides() {
        writeln!(safe::stderr(), "parallax: {}: {NO_SIDE}", judged.detector.rule().about.words())?;
    }
    Ok(judged)
}

fn read(path: &Path) -> Result<Vec<Pair>, InputError> {
    let mut columns: Option<[Option<usize>; 6]> = None;
    let mut pairs = Vec::new();
    lines(path, |_, line| {
        // Fields may be quoted, as spreadsheets write them; a field that is not entirely quoted is taken as it is.
        let plain = |field: &str| unquote(field).unwrap_or_else(|_| field.to_owned());
        let fields: Vec<String> = line.split('\t').map(plain).collect();
        let Some([document, perspective, id, title, label, question]) = columns else {
            let found = ["document", "perspective", "id", "title", "label", "question"]
                .map(|name| fields.iter().position(|field| field == name));
            if found[0].is_none() || found[1].is_none() {
                columns = Some([None; 6]);
                return Err("a header that names at least document and perspective, separated by tabs".into());
            }
            columns = Some(found);
            return Ok(());
        };
        let field = |place: Option<usize>| place.and_then(|place| fields.get(place)).cloned();
        let (Some(text), Some(statement)) = (field(document), field(perspective)) else {
            // A header that was refused is reported once.
            return document.map_or(Ok(()), |_| Err("as many fields as the header has".into()));
        };
        let label = field(label).filter(|label| !label.trim().is_empty());
        let label = label.map(|label| truth(&label)).transpose()?;
        let passage = Passage { title: field(title).unwrap_or_default(), text, ..Passage::default() };
        // Pairs without an id are numbered from 1, without the header.
        let id = field(id).unwrap_or_else(|| (pairs.len() + 1).to_string());
        pairs.push(Pair { id, question: field(question), passage, statement, label });
        Ok(())
    })?;
    if pairs.is_empty() {
        let advice = "give it a header and at least one line";
        return Err(InputError::Empty { path: path.into(), what: "the pairs file", advice });
    }
    Ok(pairs)
}

/// Runs the command.
///
/// # Errors
/// There is no question, or the file cannot be read.
pub fn statements(common: &Common, args: &Statements) -> anyhow::Result<ExitCode> {
    let sources = [
        (Material::Pairs, &args.pair),
        (Material::Answers, &args.from_answers),
        (Material::Options, &args.options),
    ];
    if let Some((material, path)) = sources.into_iter().find_map(|(one, path)| Some((one, path.as_ref()?))) {
        return build_set(common, material, path);
    }
    let (chat, prompts) = (readers(&common.opening())?.0, Prompts::with(&common.prompts)?);
    let mut out = io::BufWriter::new(safe::stdout());
    let mut write = |question: &str| -> anyhow::Result<()> {
        let mut made = question::statements(question);
        // The model writes the statements that no rule makes. If it does not reply, there are none, and the reason is printed.
        if let Some(chat) = chat.as_deref().filter(|_| made.perspectives.is_empty() && !question.is_empty()) {
            match checked_statements(chat, &prompts, (question, None), &Stop::never()) {
                Ok(written) => made = written,
                Err(error) => {
                    writeln!(safe::stderr(), "parallax: {}: {}: {error}", line(question), chat.model())?;
                }
            }
        }
        Ok(out.write_all(safe::json_line(&made)?.as_bytes())?)
    };
    args.question.iter().try_for_each(|question| write(question))?;
    match &args.file {
        Some(path) => {
            // Not held in memory: the file may be long.
            let mut lines = Lines::open_streaming(path)?;
            while let Some(line) = lines.next_line()? {
                write(line.text.trim())?;
            }
            lines.end()?;
        }
        None if args.question.is_empty() => {
            bail!("no question; try: parallax statements \"Should zoos be banned?\"")
        }
        None => {}
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// Lists the prompts, or prints the file of one.
///
/// # Errors
/// No built-in prompt has this name, or a file of `--prompt` does not hold a prompt.
pub fn prompts(common: &Common, name: Option<&str>) -> anyhow::Result<ExitCode> {
    let mut out = safe::stdout();
    if let Some(name) = name {
        let found = PROMPTS.iter().find(|(own, _)| *own == name);
        let Some((_, text)) = found else {
            let all = PROMPTS.map(|(name, _)| name).join(", ");
            bail!("no built-in prompt is called `{name}`; choose {all}")
        };
        out.write_all(text.as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    let used = Prompts::with(&common.prompts)?;
    writeln!(out, "name\tfor\tversion\thash\tin use")?;
    let mut listed: Vec<Arc<Prompt>> = Vec::new();
    for (name, _) in PROMPTS {
        let with = Prompts::with(&[name.into()])?;
        listed.extend(
            Job::ALL.map(|job| with.get(job)).into_iter().find(|prompt| prompt.id.name == name).cloned(),
        );
    }
    let own = Job::ALL
        .map(|job| used.get(job))
        .into_iter()
        .filter(|one| listed.iter().all(|other| other.id != one.id));
    listed.extend(own.cloned().collect::<Vec<_>>());
    for prompt in listed {
        let mark = if used.get(prompt.job).id == prompt.id { "yes" } else { "no" };
        let (id, job) = (&prompt.id, prompt.job.name());
        writeln!(out, "{}\t{job}\t{}\t{}\t{mark}", line(&id.name), id.version, id.hash)?;
    }
    Ok(ExitCode::SUCCESS)
}
