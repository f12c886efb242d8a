//! `corpus from-web` makes a corpus from web pages; `corpus push` loads a corpus into a search engine on another machine.

use std::collections::{BTreeMap, HashSet};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;

use crate::cli::job::{Meter, interrupted, stop_on_signal};
use crate::cli::options::Common;
use crate::engine::{Opening, Setup};
use crate::question::{Question, resolve, set};
use crate::remote;
use crate::remote::{Place, PushError, Pushed, RemoteError, open};
use crate::report::safe;
use crate::report::thousands;
pub use crate::web::corpus_name;
use crate::web::{self, Gather, Manners, Provider, Search, Store, Summary, WebError};
use crate::work::Stop;

/// The default number of pages to fetch.
const PAGES: usize = 100;
/// The number of unread pages that are listed with their reason.
const LISTED: usize = 10;

/// `parallax corpus from-web`
#[derive(Debug, clap::Args)]
pub struct FromWeb {
    /// The question. Default: every question of --questions, with a corpus each.
    pub question: Option<String>,
    /// What finds the pages: searxng:URL (an instance of SearXNG), serper (key in PARALLAX_SERPER_KEY), brave (key in
    /// PARALLAX_BRAVE_KEY), wikipedia:LANGUAGE (such as wikipedia:en; searches for the statements too, needs no key, and takes the
    /// `contact` of the configuration), mediawiki:URL (another wiki with TextExtracts, by the address of the folder with its
    /// api.php), or urls:FILE (a list of addresses, one per line).
    #[arg(long, value_name = "PROVIDER")]
    pub provider: Provider,
    /// The name of the corpus. Default: made from the question.
    #[arg(long)]
    pub name: Option<String>,
    /// How many pages to fetch, from 1 to 1000. Default: 100, as in BERDS, or the whole list.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub pages: Option<u16>,
    /// The pause in seconds between two requests to one host; a longer Crawl-delay in its robots.txt wins.
    #[arg(long, value_name = "SECONDS", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=120))]
    pub delay: u8,
    /// Also fetch from private networks and from this machine.
    #[arg(long)]
    pub allow_private: bool,
}

impl FromWeb {
    /// The number of pages to fetch: --pages, else as many as BERDS took, or the whole of a list of addresses.
    fn wanted(&self) -> usize {
        let usual = if matches!(self.provider, Provider::Urls(_)) { usize::MAX } else { PAGES };
        self.pages.map_or(usual, usize::from)
    }
}

/// Runs the command.
///
/// # Errors
/// No page was found or read, or the pages cannot be stored.
pub fn from_web(common: &Common, args: &FromWeb) -> anyhow::Result<ExitCode> {
    common.online("a corpus from the web")?;
    let data = common.opening().data_dir;
    let set = common.questions.first().map(|file| set::read(file)).transpose()?;
    let questions: Vec<Question> = match (&args.question, set) {
        (Some(text), set) => vec![resolve(text, &common.perspectives, &set.unwrap_or_default()).0],
        (None, Some(set)) => {
            set.into_iter().map(|question| with_statements(question, &common.perspectives)).collect()
        }
        (None, None) => bail!("name a question, or a set of them with --questions"),
    };
    if questions.iter().any(|question| question.text.is_empty()) {
        bail!("the question is empty");
    }
    let mut names: Vec<String> = questions.iter().map(|question| corpus_name(&question.text)).collect();
    match &args.name {
        Some(name) if names.len() == 1 => names = vec![name.clone()],
        Some(_) => bail!("--name is for one question; with several, each corpus is named after its question"),
        None => {}
    }
    // Errors in the arguments are reported before the first request.
    let places = names.iter().map(|name| web::place(&data, name)).collect::<Result<Vec<_>, _>>()?;
    let wants_contact = args.provider.wants_contact();
    let contact = if wants_contact { common.configuration().load()?.contact } else { None };
    let search = args.provider.open(contact.as_deref())?;
    let (meter, stop) = (Meter::default(), stop_on_signal()?);
    let mut failed = 0;
    for (question, place) in questions.iter().zip(&places) {
        match one(args, question, search.as_ref(), place, &meter, &stop) {
            Ok(true) => {}
            Ok(false) | Err(WebError::Stopped(_)) => {
                writeln!(safe::stderr(), "parallax: stopped; run the same command again to resume")?;
                return Ok(interrupted());
            }
            Err(error) if questions.len() == 1 => return Err(error.into()),
            Err(error) => {
                failed += 1;
                writeln!(
                    safe::stderr(),
                    "parallax: {}: {}",
                    safe::line(&question.text),
                    safe::line(&error.to_string())
                )?;
            }
        }
    }
    if failed > 0 {
        bail!("{failed} of {} questions have no corpus", questions.len());
    }
    Ok(ExitCode::SUCCESS)
}

/// A question of a set. If it has no statements, those that were named or that a rule makes.
fn with_statements(question: Question, named: &[String]) -> Question {
    if question.perspectives.is_empty() { resolve(&question.text, named, &[]).0 } else { question }
}

/// The name that means: for each question the corpus that `from-web` made of it.
pub const WEB: &str = "web:";

/// `corpus info web:`: the pages and passages of each question's corpus, with their means (BERDS, Table 2). With --questions, of these
/// questions, and which of them lack a corpus; otherwise of all that were made.
///
/// # Errors
/// The question set or a folder cannot be read.
pub fn web_info(common: &Common) -> anyhow::Result<ExitCode> {
    let data = common.opening().data_dir;
    let mut names = Vec::new();
    if let Some(file) = common.questions.first() {
        names.extend(set::read(file)?.into_iter().map(|question| corpus_name(&question.text)));
    } else if let Ok(folders) = std::fs::read_dir(data.join(web::FOLDER)) {
        names.extend(folders.flatten().map(|folder| folder.file_name().to_string_lossy().into_owned()));
        names.sort();
    }
    let (mut out, mut sums, mut lacking) =
        (String::from("corpus\tpages\tpages_read\tpassages\n"), [0usize; 3], 0);
    for name in &names {
        let place = web::place(&data, name)?;
        if !place.join(web::CORPUS).is_file() {
            lacking += 1;
            out += &format!("{}\tno corpus\t\t\n", safe::line(name));
            continue;
        }
        let mut counts = [0usize; 3];
        crate::input::lines(&place.join(web::PAGES), |_, line| {
            let line: serde_json::Value = serde_json::from_str(line).unwrap_or_default();
            let is_page = line["kind"] == "page";
            counts[0] += usize::from(is_page);
            counts[1] += usize::from(is_page && line["end"] == "read");
            Ok(())
        })?;
        crate::input::lines(&place.join(web::CORPUS), |_, _| {
            counts[2] += 1;
            Ok(())
        })?;
        sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        out += &format!("{}\t{}\t{}\t{}\n", safe::line(name), counts[0], counts[1], counts[2]);
    }
    let made = names.len() - lacking;
    if made == 0 {
        bail!("no question has a corpus from the web; make them with `parallax corpus from-web`");
    }
    let means = sums.map(|sum| format!("{:.1}", sum as f64 / made as f64));
    out += &format!("mean of {made}\t{}\n", means.join("\t"));
    safe::stdout().write_all(out.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// The searches below a data folder, or the one that `named` is the name of: the addresses of each, best first, by its folder's name.
fn searches(common: &Common, named: &Path) -> anyhow::Result<BTreeMap<String, Vec<String>>> {
    let own = named.to_str().and_then(|name| web::place(&common.opening().data_dir, name).ok());
    let is_search = |folder: &Path| folder.join(web::PAGES).is_file();
    let folders: Vec<PathBuf> = match own.filter(|folder| is_search(folder)) {
        Some(folder) => vec![folder],
        None => {
            let all = std::fs::read_dir(named.join(web::FOLDER)).into_iter().flatten().flatten();
            all.map(|folder| folder.path()).filter(|folder| is_search(folder)).collect()
        }
    };
    let mut found = BTreeMap::new();
    for folder in folders {
        let mut urls = Vec::new();
        crate::input::lines(&folder.join(web::PAGES), |_, line| {
            let line: serde_json::Value = serde_json::from_str(line).unwrap_or_default();
            // The last search counts, as when the corpus is made.
            if let Some(all) = line["urls"].as_array().filter(|_| line["kind"] == "search") {
                urls = all.iter().filter_map(|url| Some(address(url.as_str()?))).collect();
            }
            Ok(())
        })?;
        let mut seen = HashSet::new();
        urls.retain(|url| seen.insert(url.clone()));
        found.insert(folder.file_name().unwrap_or_default().to_string_lossy().into_owned(), urls);
    }
    if found.is_empty() {
        bail!(
            "{}: neither the name of a corpus that from-web made nor a data folder with such corpora",
            named.display()
        );
    }
    Ok(found)
}

/// An address without its scheme, `www.`, part after `#`, and last slash, by which two engines may differ for one page.
fn address(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let rest = rest.split('#').next().unwrap_or_default();
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let host = host.to_ascii_lowercase();
    let host = host.strip_prefix("www.").unwrap_or(&host);
    format!("{host}/{path}").trim_end_matches('/').to_owned()
}

/// `corpus overlap`: a line for each question that both searches have, and the means. Two single searches are compared whatever they are
/// called.
///
/// # Errors
/// There are no such searches, or they have no question in common.
pub fn overlap(common: &Common, first: &Path, second: &Path) -> anyhow::Result<ExitCode> {
    let (first, second) = (searches(common, first)?, searches(common, second)?);
    let pairs: Vec<(String, &Vec<String>, &Vec<String>)> = match (first.len(), second.len()) {
        (1, 1) => first
            .iter()
            .zip(&second)
            .map(|((one, a), (other, b))| {
                (if one == other { one.clone() } else { format!("{one} / {other}") }, a, b)
            })
            .collect(),
        _ => first.iter().filter_map(|(name, a)| Some((name.clone(), a, second.get(name)?))).collect(),
    };
    if pairs.is_empty() {
        bail!("the two have no question in common: corpora of one question have one name in both");
    }
    let mut out = String::from("corpus\tfirst\tsecond\tboth\tjaccard\tboth_of_first_10\n");
    let mut sums = [0.0; 5];
    for (name, a, b) in &pairs {
        let shared = |a: &[String], b: &[String]| a.iter().filter(|url| b.contains(url)).count();
        let both = shared(a, b);
        let all = a.len() + b.len() - both;
        let top = shared(&a[..a.len().min(10)], &b[..b.len().min(10)]);
        let figures =
            [a.len() as f64, b.len() as f64, both as f64, both as f64 / all.max(1) as f64, top as f64];
        sums.iter_mut().zip(figures).for_each(|(sum, figure)| *sum += figure);
        out += &format!("{}\t{}\t{}\t{both}\t{:.4}\t{top}\n", safe::line(name), a.len(), b.len(), figures[3]);
    }
    let means = sums.map(|sum| sum / pairs.len() as f64);
    let [a, b, both, jaccard, top] = means;
    out += &format!("mean of {}\t{a:.1}\t{b:.1}\t{both:.1}\t{jaccard:.4}\t{top:.1}\n", pairs.len());
    safe::stdout().write_all(out.as_bytes())?;
    let alone = first.keys().filter(|name| !second.contains_key(*name)).count()
        + second.keys().filter(|name| !first.contains_key(*name)).count();
    if alone > 0 && (first.len(), second.len()) != (1, 1) {
        writeln!(safe::stderr(), "parallax: {alone} questions have a corpus in one of the two only")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Makes the corpus of one question. Returns whether it is complete.
fn one(
    args: &FromWeb,
    question: &Question,
    search: &dyn Search,
    place: &Path,
    meter: &Meter,
    stop: &Stop,
) -> Result<bool, WebError> {
    let wanted = args.wanted();
    let manners = Manners {
        delay: args.provider.pause(std::time::Duration::from_secs(args.delay.into())),
        allow: if args.allow_private { web::anywhere } else { web::public },
        ..Manners::default()
    };
    let mut store = Store::open(place)?;
    let (text, statements) = (&*question.text, &*question.perspectives);
    let gather = Gather { question: text, statements, search, wanted, manners, grown: None };
    let summary = web::gather(&gather, &mut store, &|progress| meter.show(progress), stop)?;
    let printed = print(text, &search.name(), &summary);
    printed.map_err(|reason| WebError::Keep { path: "standard output".into(), reason })?;
    if summary.passages == 0 && !summary.stopped {
        return Err(WebError::NoText(summary.pages));
    }
    Ok(!summary.stopped)
}

fn print(question: &str, provider: &str, summary: &Summary) -> io::Result<()> {
    let mut out = io::BufWriter::new(safe::stdout());
    let (shown, provider) = (safe::line(question), safe::line(provider));
    writeln!(out, "question    {shown}")?;
    writeln!(
        out,
        "searched    {}, {provider}; the web changes, so another day gives other pages",
        summary.searched
    )?;
    writeln!(
        out,
        "pages       {}, {} asked for in this run",
        thousands(summary.pages as u64),
        summary.fetched
    )?;
    for (end, count) in &summary.ends {
        writeln!(out, "            {count} {}", end.name())?;
    }
    if summary.repeats > 0 {
        writeln!(
            out,
            "            {} of them repeat the text of another page and were skipped",
            summary.repeats
        )?;
    }
    for (url, _, why) in summary.unread.iter().take(LISTED) {
        writeln!(out, "not read    {}: {}", safe::line(url), safe::line(why))?;
    }
    if let Some(more) = summary.unread.len().checked_sub(LISTED).filter(|more| *more > 0) {
        writeln!(out, "            and {more} more; pages.jsonl beside the corpus has all")?;
    }
    writeln!(out, "passages    {}", thousands(summary.passages as u64))?;
    if summary.passages > 0 {
        let corpus = quoted(&summary.corpus.display().to_string());
        writeln!(out, "open it     parallax --corpus {corpus} {}", quoted(&shown))?;
    }
    if !summary.stopped && summary.ends.contains_key(&web::End::Failed) {
        writeln!(out, "again       the same command retries the failed pages")?;
    }
    out.flush()
}

/// A text quoted for a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", safe::line(text).replace('\'', "'\\''"))
}

/// `parallax corpus push`
#[derive(Debug, clap::Args)]
pub struct Push {
    /// The target: milvus:URL/COLLECTION or os:URL/INDEX, created if it does not exist. Secrets are read from
    /// PARALLAX_MILVUS_TOKEN, PARALLAX_OPENSEARCH_USER and PARALLAX_OPENSEARCH_PASSWORD, or PARALLAX_OPENSEARCH_KEY.
    pub place: String,
}

/// Runs the command.
///
/// # Errors
/// The target is not an address, its server fails, or the corpus cannot be opened or embedded.
pub fn push(common: &Common, args: &Push) -> anyhow::Result<ExitCode> {
    common.online("an index elsewhere")?;
    let place = Place::parse(&args.place).map_err(|expected| anyhow::anyhow!("expected {expected}"))?;
    let engine = open(&place)?;
    let (meter, stop) = (Meter::default(), stop_on_signal()?);
    let show = |progress| meter.show(progress);
    let Opening { corpus, data_dir, .. } = common.opening();
    let opened = Setup::open(&Opening { corpus, data_dir, ..Opening::default() }, &show, &stop);
    // A stopped step may return any error; finished steps are stored.
    let stopped = || stop.is_set().then_some(interrupted());
    let setup = match (opened, stopped()) {
        (_, Some(code)) => return Ok(code),
        (opened, None) => opened?,
    };
    let encoder = setup.encoder(None)?;
    // A server that is down, or an index of another kind, is reported before the corpus is embedded.
    let made = match (engine.prepare(encoder.dimensions(), &stop), stopped()) {
        (_, Some(code)) => return Ok(code),
        (made, None) => made?,
    };
    match (setup.embed(None, &show, &stop), stopped()) {
        (_, Some(code)) => return Ok(code),
        (embedded, None) => embedded?,
    }
    let vectors = setup.vectors(None)?.ok_or_else(|| anyhow::anyhow!("the corpus has no vectors"))?;
    let pushed = remote::push(engine.as_ref(), made, &setup.corpus, (encoder.key(), &vectors), &show, &stop);
    let Pushed { new, changed, left, there } = match pushed {
        Err(PushError::Remote(RemoteError::Stopped(_))) => {
            writeln!(
                safe::stderr(),
                "stopped; what was sent stays on the server, and the same command resumes"
            )?;
            return Ok(interrupted());
        }
        pushed => pushed?,
    };
    let mut out = safe::stdout();
    if made {
        writeln!(out, "made {place}")?;
    }
    match new + changed {
        0 => writeln!(out, "nothing to do: all {left} passages are there already")?,
        _ => writeln!(out, "{new} passages new, {changed} changed, {left} unchanged")?,
    }
    let others = there.saturating_sub((new + changed + left) as u64);
    if others > 0 {
        writeln!(out, "{others} more are there that this corpus does not hold; they were not touched")?;
    }
    writeln!(out, "lanes: {place}@by=vectors and {place}@by=bm25")?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted<const N: usize>(words: [&str; N]) -> usize {
        let command = <FromWeb as clap::Args>::augment_args(clap::Command::new("from-web"));
        let matches = command.try_get_matches_from(words).unwrap();
        <FromWeb as clap::FromArgMatches>::from_arg_matches(&matches).unwrap().wanted()
    }

    #[test]
    fn a_hundred_pages_a_question_are_fetched_unless_another_number_is_asked_for() {
        assert_eq!(wanted(["from-web", "Zoos?", "--provider", "wikipedia:en"]), 100);
        assert_eq!(wanted(["from-web", "Zoos?", "--provider", "wikipedia:en", "--pages", "7"]), 7);
        assert_eq!(wanted(["from-web", "Zoos?", "--provider", "urls:list.txt"]), usize::MAX);
    }

    #[test]
    fn what_is_to_be_typed_survives_a_shell() {
        assert_eq!(quoted("what's `this`?"), "'what'\\''s `this`?'");
    }
}
