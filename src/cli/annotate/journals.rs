//! Journal files: `annotate fsck`, `merge` and `remap`, and the functions with which other commands read journals.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use crate::annotate::{
    Act, Decision, Entry, History, Journal, Key, Lost, Material, Model, ONCE_SHOWN, Opened, Project, Read,
    ReadOnly, remap as by_text, repair, restate, unseen,
};
use crate::cli::job::{Meter, open_setup};
use crate::cli::options::Common;
use crate::corpus::Passage;
use crate::detect::{DetectError, Reading};
use crate::engine::Setup;
use crate::input::LISTED;
use crate::question::{self, Question};
use crate::report::marks::count;
use crate::report::safe;
use crate::work::{Job, Progress, Stop, on_all};

/// The journals at these paths, which are files or folders.
pub fn files(paths: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            files.extend(Project::journals(path)?);
        } else if path.file_name().is_some_and(|name| name == "pool.jsonl") {
            // A project's passages, as `PROJECT/*.jsonl` names them too.
        } else if path.exists() {
            files.push(path.clone());
        } else {
            anyhow::bail!("{}: no such file or folder", path.display());
        }
    }
    Ok(files)
}

/// How long a command waits for a journal that another process writes.
const PATIENCE: Duration = Duration::from_secs(30);

/// Opens a journal to write to it. While another process holds it, this one waits, as an import of a corpus does.
///
/// # Errors
/// The file is no journal.
pub fn open_to_write(path: &Path, by: &str) -> anyhow::Result<Opened> {
    refuse_other_files(path)?;
    let (late, mut shown) = (Instant::now() + PATIENCE, false);
    loop {
        let opened = Journal::open(path, by)?;
        match opened.journal.read_only() {
            Some(held @ ReadOnly::Held { .. }) if Instant::now() < late => {
                if !shown {
                    writeln!(safe::stderr(), "parallax: {held}; waiting for it")?;
                    shown = true;
                }
            }
            _ => return Ok(opened),
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Refuses a file that is no journal, to whose end nothing may be written.
fn refuse_other_files(path: &Path) -> anyhow::Result<()> {
    let pool = path.file_name().is_some_and(|name| name == "pool.jsonl");
    let read = Read::file(path)?;
    if pool || (read.entries.is_empty() && read.newer == 0 && !read.bad.is_empty()) {
        bail!("{}: none of its lines is a label of a journal; name a journal or a new file", path.display());
    }
    Ok(())
}

/// Refuses to write an export over a journal, or where it would be taken for one.
pub fn refuse_journal(path: &Path) -> anyhow::Result<()> {
    if path.extension().is_none_or(|end| end != "jsonl") {
        return Ok(());
    }
    let (shown, folder) = (path.display(), path.parent().unwrap_or(Path::new("")));
    if Project::is_in(folder) {
        bail!("{shown}: a .jsonl file in the folder of a project is a journal; write the export elsewhere");
    }
    if path.is_file() && !Read::file(path)?.entries.is_empty() {
        bail!("{shown} is a journal, and an export would replace it; write the export elsewhere");
    }
    Ok(())
}

/// The current decisions of all these journals together.
pub fn decisions_of(paths: &[PathBuf]) -> anyhow::Result<Vec<Decision>> {
    let mut history = History::default();
    for file in files(paths)? {
        let read = Read::file(&file)?;
        if let Some(damage) = read.damage(&file) {
            writeln!(safe::stderr(), "parallax: {damage}")?;
        }
        for entry in read.entries {
            history.take(entry);
        }
    }
    let decisions = history.decisions();
    if decisions.is_empty() {
        anyhow::bail!(
            "no labels in {}; label passages with `a` in the explorer, or import labels",
            paths_text(paths)
        );
    }
    Ok(decisions)
}

/// Paths as a message shows them.
pub fn paths_text(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

/// The labels of a key in conflict, one line per machine.
pub fn conflict(history: &History, key: &Key) -> String {
    let mut text = format!("  {}: {} [{}]\n", key.by, safe::line(&key.question), safe::line(&key.passage));
    for head in history.heads(key) {
        let said = head.view.answers.iter().map(|(statement, supports)| {
            format!("{} {}", if *supports { "yes" } else { "no" }, safe::line(statement))
        });
        let said: Vec<String> = said.collect();
        let said = if said.is_empty() { "undecided".to_owned() } else { said.join(" · ") };
        text += &format!("    {said}\n");
    }
    text
}

/// A path as tables show it.
pub fn named(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

/// The text of a passage with the two sides of its question, and the passage.
type Sides = ((String, [String; 2]), Passage);

/// Runs the detector on all labelled pairs. Pairs are skipped and counted if the corpus no longer has the labelled text of their
/// passage, or if the detector fails.
pub fn judge(
    setup: &Setup,
    material: &Material<'_>,
    decisions: &[Decision],
    meter: &Meter,
    stop: &Stop,
) -> anyhow::Result<Model> {
    let detector = setup.detector()?;
    let mut pairs: HashMap<(String, String), Option<Passage>> = HashMap::new();
    // If a statement has an opposite, both are read, because the decision is on both.
    let mut sides: HashMap<(String, [String; 2]), Passage> = HashMap::new();
    for one in decisions {
        let passage = material.passage(one);
        let both = material.question(&one.question).and_then(Question::both);
        let opposite =
            both.map(|both| both.map(str::to_owned)).filter(|both| both.contains(&one.perspective));
        if let (Some(both), Some(passage)) = (opposite, &passage) {
            sides.entry((one.text.clone(), both)).or_insert_with(|| passage.clone());
        }
        pairs.entry((one.text.clone(), one.perspective.clone())).or_insert(passage);
    }
    // Where they are not read together, the decision follows from the reading of each.
    let (together, apart): (Vec<Sides>, Vec<Sides>) = sides
        .into_iter()
        .partition(|((_, both), _)| detector.reads_both(both.each_ref().map(String::as_str)));
    for ((text, both), passage) in &apart {
        for statement in both {
            pairs.entry((text.clone(), statement.clone())).or_insert_with(|| Some(passage.clone()));
        }
    }
    let all = pairs.len();
    let known: Vec<((String, String), Passage)> =
        pairs.into_iter().filter_map(|(pair, passage)| Some((pair, passage?))).collect();
    let gone = all - known.len();
    if gone > 0 {
        let what = count(gone, "pair has", "pairs have");
        writeln!(
            safe::stderr(),
            "parallax: {what} no verdict, because this corpus does not hold the passage with the text that was labelled"
        )?;
    }
    let (done, total) = (AtomicU64::new(0), (known.len() + together.len()) as u64);
    let next = || Progress { job: Job::Judging, done: done.fetch_add(1, Ordering::Relaxed) + 1, total };
    let readings = on_all(setup.judging(), known.len(), stop, |i| {
        let ((_, statement), passage) = &known[i];
        let reading = setup.verdicts.read(detector.as_ref(), passage, statement, stop);
        meter.show(next());
        reading
    });
    let beside = on_all(setup.judging(), together.len(), stop, |i| {
        let ((_, both), passage) = &together[i];
        let both = both.each_ref().map(String::as_str);
        let read = setup.verdicts.read_both(detector.as_ref(), passage, both, stop);
        meter.show(next());
        read
    });
    let rule = detector.rule();
    let mut model =
        Model { detector: detector.key().to_owned(), threshold: detector.threshold(), ..Model::default() };
    model.heads = (!rule.about.decided_elsewhere).then(|| rule.heads.clone());
    // By pair: one that fails alone may fail again beside its opposite.
    let (mut read, mut failed) = (HashMap::<_, Reading>::new(), HashMap::<_, DetectError>::new());
    for ((pair, _), reading) in known.into_iter().zip(readings) {
        match reading {
            Ok(reading) => drop(read.insert(pair, reading)),
            Err(error) => drop(failed.insert(pair, error)),
        }
    }
    model.p = read.iter().map(|(pair, reading)| (pair.clone(), rule.single(reading))).collect();
    let of = |((text, both), _): &Sides| both.each_ref().map(|statement| (text.clone(), statement.clone()));
    let tried = together.iter().flat_map(of).zip(beside.iter().flatten());
    failed.extend(tried.filter_map(|(pair, read)| Some((pair, read.clone().err()?))));
    let beside = beside.into_iter().map(|both| both.map(Result::ok));
    let each = apart.iter().map(|sides| of(sides).map(|pair| read.get(&pair).cloned()));
    let read: Vec<[Option<Reading>; 2]> = beside.chain(each).collect();
    for (((text, both), _), read) in together.into_iter().chain(apart).zip(read) {
        let [Some(first), Some(second)] = read else { continue };
        let Some(decision) = rule.decide([&first, &second]) else { continue };
        model.decisions.push((text.clone(), both.clone(), decision));
        for (place, statement) in both.into_iter().enumerate() {
            let supports = decision.outcome.supports(place);
            model.joint.insert((text.clone(), statement), (supports, decision.supports(place) as f32));
        }
    }
    if let Some(first) = failed.values().next() {
        let what = count(failed.len(), "pair has", "pairs have");
        writeln!(safe::stderr(), "parallax: {what} no verdict; the first: {first}")?;
    }
    if let Some(note) = detector.usage() {
        writeln!(safe::stderr(), "parallax: {note}")?;
    }
    Ok(model)
}

/// `parallax annotate fsck`
#[derive(Debug, clap::Args)]
pub struct Fsck {
    /// Journals, or folders of them.
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// Replace a damaged journal by its intact lines; the old file stays in the same folder.
    #[arg(long)]
    pub repair: bool,
    /// Take back the labels that earlier versions stored for statements that were not on screen: a `no` for every statement after the
    /// ninth. Needs the questions: a project's own, or --questions.
    #[arg(long)]
    pub unseen: bool,
}

/// The questions of a project, or of the sets that the user named.
fn questions_for(common: &Common, journal: &Path) -> anyhow::Result<Vec<Question>> {
    let mut all = Vec::new();
    let folder = journal.parent().filter(|folder| Project::is_in(folder));
    if let Some(folder) = folder {
        all.extend(Project::open(folder)?.0.questions);
    }
    for path in &common.questions {
        all.extend(question::set::read(path)?);
    }
    Ok(all)
}

pub fn fsck(common: &Common, args: &Fsck) -> anyhow::Result<ExitCode> {
    let mut out = safe::stdout();
    let mut ended = ExitCode::SUCCESS;
    for file in files(&args.files)? {
        let read = Read::file(&file)?;
        let mut history = History::default();
        for entry in &read.entries {
            history.take(entry.clone());
        }
        let entries = count(read.entries.len(), "entry", "entries");
        let conflicts = count(history.conflicts().len(), "conflict", "conflicts");
        writeln!(out, "{}: {entries}, {} current, {conflicts}", file.display(), history.keys().count())?;
        for bad in read.bad.iter().take(LISTED) {
            writeln!(out, "  damaged: {bad}")?;
        }
        let findings = [
            (read.bad.len().saturating_sub(LISTED), "more damaged lines"),
            (read.torn, "bytes after the last complete line; the next label moves them to a .torn file"),
            (read.missing, "entries are missing, but later ones replace them"),
            (
                read.newer,
                "lines were written by a later version of parallax; this version reads only the others",
            ),
            (read.repeated, "lines are repeated, which is harmless"),
            (
                read.backwards.len(),
                "lines have an earlier time than the entry they replace, which is harmless",
            ),
        ];
        for (number, what) in findings.into_iter().filter(|(number, _)| *number > 0) {
            writeln!(out, "  {number} {what}")?;
        }
        let questions = questions_for(common, &file)?;
        let hidden = unseen(&history, &questions);
        let labels: usize = hidden.iter().map(|(.., count)| count).sum();
        if labels > 0 && args.unseen {
            let moves = hidden.into_iter().map(|(key, act, _)| (key, act)).collect();
            let passages = write_moves(&file, moves)?;
            writeln!(
                out,
                "  taken back: {} of statements that were not on screen, on {}",
                count(labels, "label", "labels"),
                count(passages, "passage", "passages")
            )?;
        } else if labels > 0 {
            writeln!(
                out,
                "  {} of statements that were not on screen, on {}; --unseen takes them back",
                count(labels, "label is", "labels are"),
                count(hidden.len(), "passage", "passages")
            )?;
            ended = ExitCode::from(1);
        } else if let Some(many) = long_answers(&history, &questions) {
            writeln!(
                out,
                "  {} more than nine statements at once; name their questions with --questions to see whether all were on screen",
                count(many, "entry labels", "entries label")
            )?;
        }
        if args.repair && read.entries.is_empty() {
            writeln!(out, "  not repaired: it has no journal entries")?;
        } else if args.repair && read.newer == 0 {
            let old = repair(&file).with_context(|| format!("{} was not repaired", file.display()))?;
            if let Some(old) = old {
                writeln!(out, "  repaired; the old file is {}", old.display())?;
                continue;
            }
        }
        if !read.is_whole() || read.newer > 0 {
            ended = ExitCode::from(1);
        }
    }
    Ok(ended)
}

/// The number of current entries with more than nine answers on questions that are not known, so that nobody can say which statements
/// were on screen. `None` if there are none.
fn long_answers(history: &History, questions: &[Question]) -> Option<usize> {
    let unknown = |key: &&Key| !questions.iter().any(|question| question.text == key.question);
    let heads = history.keys().filter(unknown).flat_map(|key| history.heads(key));
    let long = heads.filter(|head| head.seen.is_none() && head.view.answers.len() > ONCE_SHOWN).count();
    (long > 0).then_some(long)
}

/// `parallax annotate merge`
#[derive(Debug, clap::Args)]
pub struct Merge {
    /// The target: the folder of a project, or a file that ends in .jsonl. Its own labels stay.
    pub out: PathBuf,
    /// Journals, or folders of them.
    #[arg(required = true)]
    pub from: Vec<PathBuf>,
}

/// The number of passages of another copy of a project that this one lacks, because it has not grown as that one has.
fn lacking(here: &Path, there: &Path) -> anyhow::Result<usize> {
    if !(Project::is_in(here) && Project::is_in(there)) {
        return Ok(0);
    }
    let (own, others) = (Project::open(here)?.1, Project::open(there)?.1);
    let own: HashSet<(&str, &str)> = own.iter().map(|item| (&*item.question, &*item.passage.id)).collect();
    Ok(others.iter().filter(|item| !own.contains(&(&*item.question, &*item.passage.id))).count())
}

pub fn merge(args: &Merge) -> anyhow::Result<ExitCode> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut ended = ExitCode::SUCCESS;
    for file in files(&args.from)? {
        let read = Read::file(&file)?;
        if read.newer > 0 {
            bail!(
                "{}: written by a later version of parallax; update this one to merge it without loss",
                file.display()
            );
        }
        if let Some(damage) = read.damage(&file) {
            writeln!(safe::stderr(), "parallax: {damage}")?;
            ended = ExitCode::from(1);
        }
        entries.extend(read.entries);
    }
    for there in &args.from {
        let lacking = lacking(&args.out, there)?;
        if lacking > 0 {
            writeln!(
                safe::stderr(),
                "parallax: {} has {} that {} lacks: their labels are kept, and count once it has grown as that one has (annotate grow)",
                there.display(),
                count(lacking, "passage", "passages"),
                args.out.display()
            )?;
        }
    }
    // A target file takes all entries; a target folder has one journal per annotator.
    let mut parts: BTreeMap<(PathBuf, String), Vec<Entry>> = BTreeMap::new();
    let one = args.out.extension().is_some_and(|end| end == "jsonl") && !args.out.is_dir();
    for entry in entries {
        let part = match one {
            true => (args.out.clone(), "merge".to_owned()),
            false => (Project::journal(&args.out, &entry.by), entry.by.clone()),
        };
        parts.entry(part).or_default().push(entry);
    }
    let mut out = safe::stdout();
    for ((path, by), entries) in parts {
        let opened = open_to_write(&path, &by)?;
        if let Some(damage) = opened.read.damage(&path) {
            writeln!(safe::stderr(), "parallax: {damage}")?;
            ended = ExitCode::from(1);
        }
        let mut journal = opened.journal;
        let new = journal.take(entries)?;
        let history = journal.history();
        let (new, all) = (count(new, "new entry", "new entries"), history.len());
        let conflicts = history.conflicts();
        writeln!(
            out,
            "{}: {new}, {all} in all, {}",
            named(&path),
            count(conflicts.len(), "conflict", "conflicts")
        )?;
        for key in conflicts {
            write!(out, "{}", conflict(history, key))?;
        }
    }
    Ok(ended)
}

/// `parallax annotate remap`
#[derive(Debug, clap::Args)]
pub struct Remap {
    /// Journals, or folders of them. Default: the journals of this corpus.
    pub files: Vec<PathBuf>,
    /// The old wording of a statement, whose labels move to the statement of --to.
    #[arg(long, value_name = "STATEMENT", requires = "to")]
    pub from: Option<String>,
    /// The new wording; make sure that it means the same.
    #[arg(long, value_name = "STATEMENT", requires = "from")]
    pub to: Option<String>,
}

pub fn remap(common: &Common, args: &Remap) -> anyhow::Result<ExitCode> {
    let meter = Meter::default();
    let setup = open_setup(&common.opening(), &meter, &Stop::never())?;
    let paths = match args.files.as_slice() {
        [] => vec![setup.journals.clone()],
        named => named.to_vec(),
    };
    let mut out = safe::stdout();
    let mut ended = ExitCode::SUCCESS;
    for file in files(&paths)? {
        let mut history = History::default();
        for entry in Read::file(&file)?.entries {
            history.take(entry);
        }
        let found = match (&args.from, &args.to) {
            (Some(from), Some(to)) => restate(&history, from, to),
            _ => by_text(&history, &setup.corpus),
        };
        let moved = write_moves(&file, found.moves)?;
        writeln!(out, "{}: {} remapped", named(&file), count(moved, "passage", "passages"))?;
        for (key, why) in &found.lost {
            let why = match why {
                Lost::NoSuchText => "no passage has its text",
                Lost::OtherLabel => "there is another label already",
                Lost::Conflict => "its labels conflict; label it again first",
            };
            let (by, question, passage) =
                (safe::line(&key.by), safe::line(&key.question), safe::line(&key.passage));
            writeln!(out, "  {by}: {question} [{passage}]: {why}")?;
            ended = ExitCode::from(1);
        }
    }
    Ok(ended)
}

/// Writes the actions to the journal, each under its annotator's name.
fn write_moves(file: &std::path::Path, moves: Vec<(Key, Act)>) -> anyhow::Result<usize> {
    let count = moves.len();
    let mut open: Option<Journal> = None;
    for (key, act) in moves {
        if open.as_ref().is_none_or(|journal| journal.by() != key.by) {
            // Only one journal is open at a time, because it locks the file.
            drop(open.take());
            open = Some(open_to_write(file, &key.by)?.journal);
        }
        if let Some(journal) = &mut open {
            journal.retie(&key, act)?;
        }
    }
    Ok(count)
}
