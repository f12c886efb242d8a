//! `parallax doctor`: describes this installation, checks every file that the program derived, and repairs what is damaged.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::cli::job::Meter;
use crate::cli::options::Common;
use crate::corpus::library::{Library, is_derived};
use crate::corpus::source::Source;
use crate::corpus::{About, BuildError, Corpus, OFFSETS, PASSAGES, StoredCorpus};
use crate::detect::{Cache, VERDICTS};
use crate::encode::{Manifest, multiplies_int8};
use crate::engine::{MODELS, SetupError, index_terms};
use crate::llm::{PORTS, is_damaged, nearby};
use crate::report::{safe, thousands};
use crate::retrieve::TermIndex;
use crate::storage::Journal;
use crate::storage::checked::{Damaged, open_unchecked, set_aside, sums_path};
use crate::work::Stop;

/// Passages indexed, and embedded, per second on two cores (docs/reports); for estimates.
const INDEXED: u64 = 10_000;
const EMBEDDED: u64 = 80;

/// `parallax doctor`
#[derive(Debug, clap::Args)]
pub struct Doctor {
    /// Set damaged files aside and make again what can be made here. Files of an earlier version get their checksums either way.
    #[arg(long)]
    pub repair: bool,
}

/// What a repair did, or why it failed.
type Repair = Result<String, String>;

/// A damaged file, what it costs to make it again, and what was done about it, if anything.
struct Finding {
    damage: Damaged,
    cost: String,
    repair: Option<Repair>,
}

/// The checks so far.
struct Checkup<'a> {
    library: &'a Library,
    repair: bool,
    meter: Meter,
    /// Checked units per kind, for the summary.
    sound: BTreeMap<&'static str, u64>,
    findings: Vec<Finding>,
    set_aside_before: Vec<PathBuf>,
    /// The number of unfinished imports.
    unfinished: u64,
}

/// Runs the command. The exit code is 1 if something was found damaged and was neither made again nor set aside.
///
/// # Errors
/// The data folder cannot be read.
pub fn run(common: &Common, args: &Doctor) -> anyhow::Result<ExitCode> {
    let data = common.opening().data_dir;
    let mut out = safe::stdout();
    describe(common, &data, &mut out)?;
    let library = Library::at(&data);
    let mut checkup = Checkup {
        library: &library,
        repair: args.repair,
        meter: Meter::default(),
        sound: BTreeMap::new(),
        findings: Vec::new(),
        set_aside_before: Vec::new(),
        unfinished: 0,
    };
    for stored in library.stored()? {
        checkup.corpus(&stored)?;
    }
    checkup.vectors_of_texts(&data.join("texts"))?;
    checkup.verdicts(&data);
    checkup.journal(&data.join("replies.jsonl"))?;
    for folder in ["judged", "read"] {
        for path in listing(&data.join(folder))? {
            if path.extension().is_some_and(|end| end == "jsonl") {
                checkup.journal(&path)?;
            }
        }
    }
    checkup.models(&data.join(MODELS));
    checkup.print(&mut out)
}

fn describe(common: &Common, data: &Path, out: &mut impl Write) -> io::Result<()> {
    let row = |out: &mut dyn Write, name: &str, text: &str| writeln!(out, "{name:<11} {}", safe::line(text));
    let features = [("local-llm", cfg!(feature = "local-llm")), ("milvus", cfg!(feature = "milvus"))];
    let features: Vec<&str> = features.iter().filter(|(_, on)| *on).map(|(name, _)| *name).collect();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let built = if cfg!(debug_assertions) { "unoptimised" } else { "optimised" };
    row(
        out,
        "program",
        &format!(
            "parallax {}, {built}, {}; {} {}, {cores} cores",
            env!("CARGO_PKG_VERSION"),
            if features.is_empty() { "no features".into() } else { features.join(" and ") },
            env::consts::OS,
            env::consts::ARCH
        ),
    )?;
    let int8 = if multiplies_int8() {
        "int8 models at full speed"
    } else {
        "no AVX-512 VNNI: the built-in encoder and reader take up to twice as long, with the same results"
    };
    row(out, "processor", int8)?;
    row(out, "data", &format!("{}, {}", data.display(), writable(data)))?;
    let config = common.configuration().path;
    let config = config.map_or("no folder for it".into(), |path| {
        format!(
            "{}, {}",
            path.display(),
            if path.exists() { "there" } else { "not found; the defaults apply" }
        )
    });
    row(out, "settings", &config)?;
    let variable = |name: &str| env::var(name).unwrap_or_else(|_| "not set".into());
    let terminal = if io::stdout().is_terminal() { "a terminal" } else { "no terminal" };
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(|name| env::var(name).ok());
    row(
        out,
        "terminal",
        &format!(
            "TERM {}, COLORTERM {}, locale {}; standard output is {terminal}",
            variable("TERM"),
            variable("COLORTERM"),
            locale.unwrap_or_else(|| "not set".into())
        ),
    )?;
    let models: Vec<String> = listing(&data.join(MODELS))?
        .iter()
        .filter_map(|folder| Manifest::read(folder).ok())
        .map(|manifest| manifest.repository)
        .collect();
    let fetched = if models.is_empty() { "none fetched".into() } else { models.join(", ") };
    row(out, "models", &format!("minilm and the detector are built in; {fetched}"))?;
    let servers = if common.offline {
        "not asked (--offline)".into()
    } else {
        let found = nearby(&PORTS, &Stop::never());
        let named =
            found.iter().map(|one| format!("{} at {} ({})", one.kind, one.url, one.models.join(", ")));
        let named: Vec<String> = named.collect();
        if named.is_empty() { "no language model on this machine".into() } else { named.join("; ") }
    };
    row(out, "servers", &servers)
}

/// Whether files can be written into the folder, or it can be made.
fn writable(data: &Path) -> String {
    let there = data.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("."));
    match tempfile::tempfile_in(there) {
        _ if there.is_file() => "not a folder; name another with --data-dir".into(),
        Ok(_) if data.exists() => "writable".into(),
        Ok(_) => "not there yet".into(),
        Err(error) => format!("not writable ({error})"),
    }
}

/// The entries of a folder by name; none if there is no such folder.
fn listing(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        entries => entries?,
    };
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

/// Reads every byte of a file or folder with checksums, and returns its damage.
fn inspect(unit: &Path) -> io::Result<Option<Damaged>> {
    let checked = open_unchecked(unit).and_then(|files| files.iter().try_for_each(|file| file.inspect()));
    match checked {
        Ok(()) => Ok(None),
        Err(error) => match Damaged::of(&error) {
            Some(damaged) => Ok(Some(damaged.clone())),
            None => Err(error),
        },
    }
}

/// Seconds in words, such as `about 3 minutes`.
fn duration_text(seconds: u64) -> String {
    match seconds {
        0..=1 => "about a second".into(),
        2..120 => format!("about {seconds} seconds"),
        120..7_200 => format!("about {} minutes", seconds / 60),
        _ => format!("about {} hours", seconds / 3_600),
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

impl Checkup<'_> {
    fn found(&mut self, damage: Damaged, cost: String, repair: Option<Repair>) {
        self.findings.push(Finding { damage, cost, repair });
    }

    fn count(&mut self, kind: &'static str, units: u64) {
        *self.sound.entry(kind).or_default() += units;
    }

    /// Sets a unit aside if the user wants repairs, and says how it is made again.
    fn set_unit_aside(&mut self, unit: &Path, then: &str) -> Option<Repair> {
        if !self.repair {
            return None;
        }
        Some(match set_aside(unit) {
            Ok(place) => Ok(format!("set aside as {}; {then}", file_name(&place))),
            Err(error) => Err(format!("it cannot be set aside ({error})")),
        })
    }

    fn corpus(&mut self, stored: &StoredCorpus) -> anyhow::Result<()> {
        for path in listing(&stored.folder)? {
            if path.extension().is_some_and(|end| end == "damaged") {
                self.set_aside_before.push(path);
            }
        }
        if !stored.whole {
            self.unfinished += 1;
            return Ok(());
        }
        // Files of an earlier version get their checksums now.
        crate::storage::checked::adopt(&stored.folder, is_derived)?;
        let passages = stored.passages();
        let corpus = self.passages(stored)?;
        if stored.about.is_none() {
            self.description(stored)?;
        }
        let index = stored.folder.join(TermIndex::FOLDER);
        if index.exists() || sums_path(&index).exists() {
            self.index(stored, &index, corpus.as_ref())?;
        }
        for path in listing(&stored.folder)? {
            let Some(kind) = path
                .extension()
                .and_then(|end| end.to_str())
                .filter(|end| ["f32", "i8", "impact", "tokens"].contains(end))
            else {
                continue;
            };
            match inspect(&path)? {
                None => self.count("vectors", 1),
                Some(damage) => {
                    let cost = if kind == "i8" {
                        format!(
                            "int8 codes of {} vectors to compute, {}",
                            thousands(passages),
                            duration_text(passages / 100_000)
                        )
                    } else {
                        format!(
                            "{} passages to encode, {} with the built-in encoder",
                            thousands(passages),
                            duration_text(passages / EMBEDDED)
                        )
                    };
                    let repair = self.set_unit_aside(&path, "made again when a lane needs them");
                    self.found(damage, cost, repair);
                }
            }
        }
        Ok(())
    }

    /// Checks the passages; the corpus if they can be read.
    fn passages(&mut self, stored: &StoredCorpus) -> anyhow::Result<Option<Corpus>> {
        let mut damage = None;
        for name in [PASSAGES, OFFSETS] {
            damage = damage.or(inspect(&stored.folder.join(name))?);
        }
        let Some(damage) = damage else {
            self.count("corpora", 1);
            return Ok(Some(self.library.open_stored(stored)?));
        };
        let source: Option<Source> = self.library.source_of(stored);
        let cost = match &source {
            Some(source) => format!("the import of {} again", source.path().display()),
            None => {
                "its source is gone or has changed; give it again with `parallax corpus add SOURCE`".into()
            }
        };
        let (mut corpus, mut repair) = (None, None);
        if let Some(source) = source.filter(|_| self.repair) {
            let place = (stored.folder.as_path(), &stored.fingerprint);
            let made = self.library.restore(
                &source,
                place,
                &damage,
                &|progress| self.meter.show(progress),
                &Stop::never(),
            );
            let opened = made.and_then(|()| self.library.open_stored(stored));
            (corpus, repair) = match opened {
                Ok(corpus) => (Some(corpus), Some(Ok("imported again".into()))),
                Err(error) => (None, Some(Err(format!("it could not be imported again ({error})")))),
            };
        }
        self.found(damage, cost, repair);
        Ok(corpus)
    }

    /// Reports a corpus whose description is unreadable; a repair names it by its fingerprint.
    fn description(&mut self, stored: &StoredCorpus) -> anyhow::Result<()> {
        let place = stored.folder.join(About::FILE);
        let cost = "its name; `parallax corpus add SOURCE --name NAME` gives one again".to_owned();
        let mut repair = None;
        if self.repair {
            let about = About { name: stored.fingerprint.0.clone(), ..About::default() };
            let written = about.write(&stored.folder);
            repair = Some(match written {
                Ok(()) => Ok(format!("it is called {} now", stored.fingerprint.0)),
                Err(error) => Err(BuildError::cache(&place, &error).to_string()),
            });
        }
        self.found(Damaged::new(&place, "it cannot be read"), cost, repair);
        Ok(())
    }

    fn index(&mut self, stored: &StoredCorpus, index: &Path, corpus: Option<&Corpus>) -> anyhow::Result<()> {
        let Some(damage) = inspect(index)? else {
            self.count("term indexes", 1);
            return Ok(());
        };
        let passages = stored.passages();
        let cost =
            format!("{} passages to index, {}", thousands(passages), duration_text(passages / INDEXED));
        let mut repair = self.set_unit_aside(index, "made again when the corpus is opened");
        if let (Some(corpus), true) = (corpus, self.repair) {
            let made =
                index_terms(self.library, corpus, &|progress| self.meter.show(progress), &Stop::never());
            repair =
                Some(made.map(|()| "indexed again".into()).map_err(|error: SetupError| error.to_string()));
        }
        self.found(damage, cost, repair);
        Ok(())
    }

    /// Checks the vectors of texts outside any corpus, which evaluations of wordings store.
    fn vectors_of_texts(&mut self, folder: &Path) -> anyhow::Result<()> {
        if folder.exists() {
            crate::storage::checked::adopt(folder, is_derived)?;
        }
        for path in listing(folder)? {
            if path.extension().is_none_or(|end| end != "f32" && end != "i8") {
                continue;
            }
            match inspect(&path)? {
                None => self.count("vectors", 1),
                Some(damage) => {
                    let repair =
                        self.set_unit_aside(&path, "made again by the next evaluation that needs them");
                    self.found(damage, "the texts of one evaluation to embed".into(), repair);
                }
            }
        }
        Ok(())
    }

    fn verdicts(&mut self, data: &Path) {
        let place = data.join(VERDICTS);
        match Cache::check(data, self.repair) {
            Ok((rows, 0)) => self.count("verdicts", rows),
            Ok((rows, damaged)) => {
                self.count("verdicts", rows - damaged);
                let cost = format!("{} pairs to judge again", thousands(damaged));
                let repair = self.repair.then(|| Ok("removed; judged again when needed".to_owned()));
                let what = format!("{} of {} rows", thousands(damaged), thousands(rows));
                self.found(Damaged::new(&place, what), cost, repair);
            }
            Err(error) => {
                let repair = self.repair.then(|| match Cache::set_aside(&place) {
                    Ok(()) => {
                        Ok(format!("set aside as {VERDICTS}.damaged; verdicts are made again when needed"))
                    }
                    Err(error) => Err(format!("it cannot be set aside ({error})")),
                });
                let cost = "all pairs to judge again, as they are needed".into();
                self.found(Damaged::new(&place, error.to_string()), cost, repair);
            }
        }
    }

    fn journal(&mut self, path: &Path) -> anyhow::Result<()> {
        let journal = Journal::at(path);
        let lines = journal.read()?;
        let damaged = lines.iter().filter(|line| is_damaged(line)).count() as u64;
        self.count("replies of language models", lines.iter().count() as u64 - damaged);
        if damaged > 0 {
            let repair = self.repair.then(|| match journal.remove_lines(is_damaged) {
                Ok(_) => Ok(format!("moved to {}.damaged; asked again when needed", file_name(path))),
                Err(error) => Err(format!("they cannot be set aside ({error})")),
            });
            let what = format!("{} of its lines", thousands(damaged));
            self.found(Damaged::new(path, what), format!("{} requests", thousands(damaged)), repair);
        }
        Ok(())
    }

    fn models(&mut self, models: &Path) {
        for folder in listing(models).unwrap_or_default() {
            let Ok(manifest) = Manifest::read(&folder) else { continue };
            match manifest.check(&folder) {
                Ok(()) => self.count("fetched models", 1),
                Err(error) => {
                    let bytes: u64 = manifest.files.values().map(|file| file.size).sum();
                    let name = &manifest.repository;
                    let cost = format!(
                        "a download of {} MB with `parallax models get hf:{name}`",
                        bytes.div_ceil(1_000_000)
                    );
                    let repair = self.set_unit_aside(&folder, "fetch it again");
                    self.found(Damaged::new(&folder, error.to_string()), cost, repair);
                }
            }
        }
    }

    fn print(self, out: &mut impl Write) -> anyhow::Result<ExitCode> {
        let sound: Vec<String> = self
            .sound
            .iter()
            .filter(|(_, count)| **count > 0)
            .map(|(kind, count)| format!("{kind} {}", thousands(*count)))
            .collect();
        let sound = if sound.is_empty() { "nothing was derived yet".into() } else { sound.join(", ") };
        writeln!(out, "{:<11} {sound}", "sound")?;
        if self.unfinished > 0 {
            writeln!(
                out,
                "{:<11} {} imports; adding their sources again goes on",
                "unfinished", self.unfinished
            )?;
        }
        for path in &self.set_aside_before {
            writeln!(
                out,
                "{:<11} {}; remove it when you no longer need it",
                "set aside",
                safe::line(&path.display().to_string())
            )?;
        }
        for Finding { damage, cost, repair } in &self.findings {
            writeln!(out, "{:<11} {}", "damaged", safe::line(&damage.to_string()))?;
            writeln!(out, "{:<11} {}", "  costs", safe::line(cost))?;
            if let Some(Ok(done) | Err(done)) = repair {
                writeln!(out, "{:<11} {}", "  now", safe::line(done))?;
            }
        }
        let count = self.findings.len();
        if count == 0 {
            writeln!(out, "nothing is damaged")?;
            return Ok(ExitCode::SUCCESS);
        }
        let findings = if count == 1 { "1 finding".into() } else { format!("{count} findings") };
        let left = self.findings.iter().filter(|finding| !matches!(finding.repair, Some(Ok(_)))).count();
        match (self.repair, left) {
            (true, 0) => writeln!(out, "{findings}; see above what was done")?,
            (true, left) => writeln!(out, "{findings}, {left} of them not repaired; see above")?,
            (false, _) => writeln!(out, "{findings}; `parallax doctor --repair` repairs what it can")?,
        }
        if left == 0 {
            return Ok(ExitCode::SUCCESS);
        }
        Ok(ExitCode::from(1))
    }
}
