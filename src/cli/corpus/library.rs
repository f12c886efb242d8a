//! Corpora that are stored on this machine: `corpus add`, `list`, `info`, `vectors` and `rm`.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{anyhow, bail};

use crate::cli::job::{Meter, interrupted, open_setup, stop_on_signal};
use crate::cli::options::Common;
use crate::corpus::library::Library;
use crate::corpus::source::{CorpusFormat, Source, Wanted};
use crate::corpus::{
    BuildError, Census, Columns, Corpus, Passage, PassageIx, Refused, Repeats, StoredCorpus,
};
use crate::engine::{Opening, Recipe, SetupError, index_terms};
use crate::input::excerpt;
use crate::report::lists::{make_folder, put};
use crate::report::safe;
use crate::report::thousands;
use crate::retrieve::RetrieveError;
use crate::retrieve::late::TokenIndex;
use crate::work::Stop;
use serde_json::{Value, json};

/// The number of passages between two progress reports of a dry run.
const BATCH: u64 = 2_000;

/// `parallax corpus add`
#[derive(Debug, clap::Args)]
pub struct Add {
    /// A file (.jsonl, .csv or .tsv, also with .gz or .zst), or a folder of .txt, .md and .html files.
    pub path: PathBuf,
    /// The name of the corpus. Default: made from the name of the file.
    #[arg(long)]
    pub name: Option<String>,
    /// Cut the texts into passages of 100 words, as BERDS does.
    #[arg(long)]
    pub segment: bool,
    /// Follow links in a folder, which may lead out of it.
    #[arg(long)]
    pub follow_links: bool,
    /// Read the source to its end and report what it holds, without storing anything.
    #[arg(long)]
    pub dry_run: bool,
    /// The format. Default: recognised by the ending.
    #[arg(long, value_enum)]
    pub format: Option<CorpusFormat>,
    /// The column or field of the passage id. Default: recognised by its name.
    #[arg(long, value_name = "COLUMN")]
    pub id: Option<String>,
    /// The column or field of the title. Default: recognised by its name.
    #[arg(long, value_name = "COLUMN")]
    pub title: Option<String>,
    /// The column or field of the text. Default: recognised by its name.
    #[arg(long, value_name = "COLUMN")]
    pub text: Option<String>,
}

/// Runs the command.
///
/// # Errors
/// The source is not valid, or the library cannot be written.
pub fn add(library: &Library, args: &Add) -> anyhow::Result<ExitCode> {
    let columns = Columns { id: args.id.clone(), title: args.title.clone(), text: args.text.clone() };
    let (format, segment, follow_links) = (args.format, args.segment, args.follow_links);
    let source = Source::wanted(&args.path, Wanted { format, columns, segment, follow_links })?;
    let (meter, stop) = (Meter::default(), stop_on_signal()?);
    if args.dry_run {
        return dry(&source, &meter, &stop);
    }
    let name = args.name.clone().unwrap_or_else(|| source.name());
    let stored = store(library, &source, &name, &meter, &stop);
    for note in library.take_notes() {
        writeln!(safe::stderr(), "parallax: {note}")?;
    }
    match stored {
        Err(SetupError::Corpus(BuildError::Stopped(_)) | SetupError::Terms(RetrieveError::Stopped(_))) => {
            writeln!(safe::stderr(), "parallax: stopped; run the same command again to resume")?;
            Ok(interrupted())
        }
        added => {
            print(library, &name, &added?)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn store(
    library: &Library,
    source: &Source,
    name: &str,
    meter: &Meter,
    stop: &Stop,
) -> Result<Corpus, SetupError> {
    let show = |progress| meter.show(progress);
    let corpus = library.add(source, name, &show, stop)?;
    index_terms(library, &corpus, &show, stop)?;
    Ok(corpus)
}

fn print(library: &Library, name: &str, corpus: &Corpus) -> anyhow::Result<()> {
    let about =
        library.stored()?.into_iter().find(|kept| kept.whole && kept.fingerprint == corpus.fingerprint);
    let about = about.and_then(|kept| kept.about).unwrap_or_default();
    let mut out = safe::stdout();
    writeln!(out, "recognised  {}", safe::line(&about.recognised))?;
    writeln!(out, "passages    {}", thousands(corpus.len() as u64))?;
    writeln!(out, "duplicates  {}", repeats(&about.repeats, &|ix| corpus.id(ix)))?;
    writeln!(out, "open it     parallax --corpus {}", safe::line(name))?;
    Ok(())
}

/// Reads the source like an import, but stores nothing.
fn dry(source: &Source, meter: &Meter, stop: &Stop) -> anyhow::Result<ExitCode> {
    let recognised = source.recognised()?;
    let (mut census, mut first) = (Census::default(), None::<Passage>);
    source.read(0, &mut |at, passage| {
        if stop.is_set() {
            return Err(Refused::Enough);
        }
        census.add(&passage).map_err(Refused::Bad)?;
        first.get_or_insert(passage);
        if census.len().is_multiple_of(BATCH) {
            meter.show(at.progress(census.len()));
        }
        Ok(())
    })?;
    if stop.is_set() {
        return Ok(interrupted());
    }
    if census.is_empty() {
        bail!("{}", source.empty());
    }
    let mut out = safe::stdout();
    writeln!(out, "recognised  {}", safe::line(&recognised))?;
    if let Some(Passage { id, title, text, .. }) = first {
        let [id, title, text] = [id, title, text].map(|field| excerpt(&safe::line(&field)));
        writeln!(out, "first       id {id}, title {title}, text {text}")?;
    }
    writeln!(out, "passages    {}", thousands(census.len()))?;
    // A dry run does not store earlier passages, so only their numbers are known.
    writeln!(
        out,
        "duplicates  {}",
        repeats(&census.repeats, &|PassageIx(ix)| format!("passage {}", ix + 1))
    )?;
    writeln!(out, "nothing was stored: this was a dry run")?;
    Ok(ExitCode::SUCCESS)
}

/// Describes duplicates, such as `2 (b repeats a, d repeats c)`.
pub fn repeats(repeats: &Repeats, id: &dyn Fn(PassageIx) -> String) -> String {
    if repeats.count == 0 {
        return "none".into();
    }
    let first =
        repeats.first.iter().map(|repeat| format!("{} repeats {}", repeat.id, id(PassageIx(repeat.of))));
    let first = safe::line(&first.collect::<Vec<_>>().join(", "));
    let more = if repeats.count > repeats.first.len() as u64 { ", …" } else { "" };
    format!("{} ({first}{more}); all are stored", thousands(repeats.count))
}

/// Runs the command.
///
/// # Errors
/// The corpus cannot be read.
pub fn info(library: &Library, kept: &StoredCorpus) -> anyhow::Result<ExitCode> {
    let mut out = safe::stdout();
    writeln!(out, "name         {}", safe::line(kept.name()))?;
    writeln!(out, "fingerprint  {}", kept.fingerprint.0)?;
    writeln!(out, "on disk      {} MB in {}", megabytes(kept.bytes()), kept.folder.display())?;
    if !kept.whole {
        writeln!(out, "unfinished   {} passages so far; add it again to resume", thousands(kept.passages()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let corpus = library.open_stored(kept)?;
    if let Some(about) = &kept.about {
        writeln!(out, "source       {}", safe::line(&about.source.display().to_string()))?;
        writeln!(out, "recognised   {}", safe::line(&about.recognised))?;
        writeln!(out, "built        {}", date(about.built))?;
        writeln!(out, "duplicates   {}", repeats(&about.repeats, &|ix| corpus.id(ix)))?;
    }
    let vectors: Vec<String> =
        kept.vectors().into_iter().map(|one| vectors_text(&kept.folder, one)).collect();
    writeln!(out, "vectors      {}", if vectors.is_empty() { "none".into() } else { vectors.join(", ") })?;
    let (mut words, mut fields) = (Vec::with_capacity(corpus.len()), BTreeMap::<String, u64>::new());
    for ix in corpus.places() {
        let passage = corpus.passage(ix);
        words.push(passage.text.split_whitespace().count());
        for (field, _) in passage.metadata {
            *fields.entry(field).or_default() += 1;
        }
    }
    words.sort_unstable();
    let at =
        |percent: usize| words.get((words.len().saturating_sub(1)) * percent / 100).copied().unwrap_or(0);
    writeln!(out, "passages     {}", thousands(corpus.len() as u64))?;
    writeln!(
        out,
        "words        {} least, {} a tenth below, {} median, {} a tenth above, {} most",
        at(0),
        at(10),
        at(50),
        at(90),
        at(100)
    )?;
    let fields = fields.iter().map(|(field, count)| format!("{} ({})", safe::line(field), thousands(*count)));
    let fields: Vec<String> = fields.collect();
    writeln!(out, "metadata     {}", if fields.is_empty() { "none".into() } else { fields.join(", ") })?;
    Ok(ExitCode::SUCCESS)
}

/// `parallax corpus vectors`
#[derive(Debug, clap::Args)]
pub struct Vectors {
    /// The corpus, as in --corpus.
    pub corpus: PathBuf,
    /// The vectors, one row per passage.
    pub file: PathBuf,
    /// The passage ids of the rows, one per line. Default: the order of the corpus.
    #[arg(long, value_name = "FILE")]
    pub ids: Option<PathBuf>,
    /// The lane whose model made the vectors: minilm, contriever or path:FOLDER.
    #[arg(long, value_name = "RECIPE")]
    pub model: String,
}

/// Runs the command.
///
/// # Errors
/// The file, its ids or the model do not match the corpus, or the data folder cannot be written.
pub fn vectors(common: &Common, args: &Vectors) -> anyhow::Result<ExitCode> {
    let (meter, stop) = (Meter::default(), Stop::never());
    let opening = Opening {
        corpus: Some(args.corpus.clone()),
        data_dir: common.opening().data_dir,
        ..Opening::default()
    };
    let setup = open_setup(&opening, &meter, &stop)?;
    let lane: Recipe = args.model.parse()?;
    if !lane.base.is_dense() || lane.base.remote().is_some() {
        bail!(
            "{} does not compare vectors; name a lane that does, such as minilm, contriever or path:FOLDER",
            args.model
        );
    }
    let name = lane.to_string();
    let (ids, show) = (args.ids.as_deref(), |progress| meter.show(progress));
    let taken = setup.take_vectors(lane.model(), &args.file, ids, &show, &stop)?;
    let (shortest, longest) = taken.lengths;
    let mut out = safe::stdout();
    writeln!(out, "{} vectors of {name} for the corpus {}", taken.rows, setup.corpus.name)?;
    writeln!(out, "lengths from {shortest:.4} to {longest:.4}; {} were scaled to unit length", taken.scaled)?;
    Ok(ExitCode::SUCCESS)
}

/// The only corpus with this name or fingerprint, finished or not.
pub fn find(library: &Library, name: &str) -> anyhow::Result<StoredCorpus> {
    let mut found = library.stored()?;
    found.retain(|kept| kept.name() == name || kept.fingerprint.0 == name);
    match found.len() {
        1 => found.pop().ok_or_else(|| anyhow!("it is gone")),
        0 => bail!("no corpus is called {}; `parallax corpus list` shows all", safe::line(name)),
        _ => {
            let all: Vec<&str> = found.iter().map(|kept| kept.fingerprint.0.as_str()).collect();
            bail!(
                "{} corpora are called {}; name one by its fingerprint: {}",
                all.len(),
                safe::line(name),
                all.join(", ")
            )
        }
    }
}

pub fn list(library: &Library) -> anyhow::Result<ExitCode> {
    let mut out = safe::stdout();
    writeln!(out, "name\tpassages\tMB\tvectors\tbuilt\tfingerprint\tsource")?;
    for kept in library.stored()? {
        let vectors: Vec<String> =
            kept.vectors().into_iter().map(|one| vectors_text(&kept.folder, one)).collect();
        let (built, source) = match &kept.about {
            Some(about) => (date(about.built), about.source.display().to_string()),
            None if kept.whole => Default::default(),
            None => ("unfinished".into(), String::new()),
        };
        let vectors = vectors.join(", ");
        let (name, source) = (safe::field(kept.name()), safe::field(&source));
        let (passages, size, mark) = (kept.passages(), megabytes(kept.bytes()), &kept.fingerprint.0);
        writeln!(out, "{name}\t{passages}\t{size}\t{vectors}\t{built}\t{mark}\t{source}")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// `parallax corpus pir`
#[derive(Debug, clap::Args)]
pub struct Pir {
    /// The corpus: a file, a folder, or a name from `parallax corpus list`.
    pub name: PathBuf,
    /// The metadata field that names what a passage is about: each value with passages of two sides or more becomes a root query.
    #[arg(long, value_name = "FIELD")]
    pub topic: String,
    /// The metadata field that names a passage's side, such as its outlet's leaning: each value becomes a perspective.
    #[arg(long, value_name = "FIELD")]
    pub side: String,
    /// The words of a perspective; {side} stands for the side. Default: a passage whose FIELD is {side}.
    #[arg(long, value_name = "TEXT")]
    pub template: Option<String>,
    /// The new folder, as PIR's tasks lie on the hub: corpus.jsonl, queries.jsonl, qrels/test.jsonl.
    #[arg(long, value_name = "FOLDER")]
    pub out: PathBuf,
}

/// Makes a task from metadata.
///
/// # Errors
/// No passage has both fields, no topic has two sides, or the folder exists or cannot be written.
pub fn pir(common: &Common, args: &Pir) -> anyhow::Result<ExitCode> {
    let Pir { name, topic, side, template, out } = args;
    if topic == side {
        bail!("--topic and --side are the same field, {topic}; name two");
    }
    let template = template.clone().unwrap_or_else(|| format!("a passage whose {side} is {{side}}"));
    if !template.contains("{side}") {
        bail!("--template: expected {{side}} in `{template}`, where the side is to stand");
    }
    if out.exists() {
        bail!("{} exists already; name a new folder", out.display());
    }
    let opening = Opening { corpus: Some(name.clone()), questions: None, labels: None, ..common.opening() };
    let setup = open_setup(&opening, &Meter::default(), &Stop::never())?;
    let (mut gold, mut without) = (BTreeMap::<String, BTreeMap<String, Vec<PassageIx>>>::new(), 0);
    let mut passages = String::new();
    for at in setup.corpus.places() {
        let (passage, metadata) = (setup.corpus.passage(at), setup.corpus.metadata(at));
        let line =
            json!({"_id": passage.id, "title": passage.title, "text": passage.text, "metadata": metadata});
        passages += &format!("{line}\n");
        let value = |name: &str| match metadata.get(name)? {
            Value::String(text) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
            Value::Null => None,
            other => Some(other.to_string()),
        };
        match (value(topic), value(side)) {
            (Some(topic), Some(side)) => gold.entry(topic).or_default().entry(side).or_default().push(at),
            _ => without += 1,
        }
    }
    setup.corpus.sound()?;
    let (named, topics) = (gold.len(), gold.into_iter().filter(|(_, sides)| sides.len() > 1));
    let topics: Vec<(String, BTreeMap<String, Vec<PassageIx>>)> = topics.collect();
    if topics.is_empty() {
        bail!(
            "{}: no topic has passages of two sides ({named} values of `{topic}` with a `{side}`, {without} passages without one of the two); \
             `corpus info` lists the fields",
            name.display()
        );
    }
    let (mut queries, mut qrels, mut sides) = (String::new(), String::new(), BTreeSet::new());
    let mut asked = 0;
    for (root, own) in &topics {
        for (label, passages) in own {
            asked += 1;
            let id = format!("q{asked}");
            let perspective = template.replace("{side}", label);
            let meta = json!({"src_query": root, "perspective": perspective, "label": label}).to_string();
            let text = format!("Find {perspective} on the topic: {root}");
            queries += &format!("{}\n", json!({"_id": id, "text": text, "meta": meta}));
            for at in passages {
                let line = json!({"query-id": id, "corpus-id": setup.corpus.id(*at), "score": 1});
                qrels += &format!("{line}\n");
            }
            sides.insert(label.as_str());
        }
    }
    make_folder(&out.join("qrels"))?;
    put(out, "corpus.jsonl", passages.as_bytes())?;
    put(out, "queries.jsonl", queries.as_bytes())?;
    put(&out.join("qrels"), "test.jsonl", qrels.as_bytes())?;
    let mut text = format!(
        "{}: {asked} queries on {} topics; sides: {}\n",
        out.display(),
        topics.len(),
        sides.iter().map(|side| safe::line(side)).collect::<Vec<_>>().join(", ")
    );
    if named > topics.len() {
        text += &format!("left out, topics with one side: {}\n", named - topics.len());
    }
    if without > 0 {
        text +=
            &format!("in the corpus, but gold of no query, because they lack a field: {without} passages\n");
    }
    text += &format!("measure it with: parallax eval pir --questions {}\n", out.display());
    safe::stdout().write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

pub fn remove(library: &Library, kept: &StoredCorpus, yes: bool) -> anyhow::Result<ExitCode> {
    let what = format!(
        "{} ({} passages, {} MB, with its index and vectors)",
        safe::line(kept.name()),
        thousands(kept.passages()),
        megabytes(kept.bytes())
    );
    if !yes {
        if !io::stdin().is_terminal() {
            bail!("this removes {what}; confirm with --yes, because standard input is not a terminal");
        }
        write!(safe::stderr(), "remove {what}? [y/N] ")?;
        let mut answer = String::new();
        io::stdin().lock().read_line(&mut answer)?;
        if !matches!(answer.trim(), "y" | "Y" | "yes") {
            writeln!(safe::stderr(), "nothing was removed")?;
            return Ok(ExitCode::SUCCESS);
        }
    }
    library.remove(kept)?;
    writeln!(safe::stdout(), "removed {what}")?;
    Ok(ExitCode::SUCCESS)
}

fn vectors_text(folder: &Path, (key, whole): (String, bool)) -> String {
    match TokenIndex::recall(&folder.join(format!("{key}.tokens"))) {
        _ if !whole => format!("{key} (unfinished)"),
        Some(recall) => format!("{key} (of tokens; finds {recall:.2} of the first ten)"),
        None => key,
    }
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / 1e6)
}

/// The date, such as `2026-03-01`, of seconds since 1970 in universal time.
fn date(seconds: u64) -> String {
    // The civil calendar from days, counted in years that begin in March (Hinnant's algorithm).
    let days = seconds / 86_400 + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (day, month) = (day - (153 * month + 2) / 5 + 1, if month < 10 { month + 3 } else { month - 9 });
    format!("{:04}-{month:02}-{day:02}", year + era * 400 + u64::from(month <= 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        let cases = [(0, "1970-01-01"), (951_782_400, "2000-02-29"), (1_772_323_200, "2026-03-01")];
        for (seconds, expected) in cases {
            assert_eq!(date(seconds), expected);
        }
    }
}
