//! `parallax corpus from-web`: a question to pages of the web to passages.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::bail;

use super::super::args::Common;
use super::super::interrupt::{INTERRUPTED, stop_on_interrupt};
use super::super::progress::Meter;
use crate::question::set;
use crate::report::progress::thousands;
use crate::report::safe;
use crate::web::{self, Manners, Provider, Search, Store, Summary, WebError};
use crate::work::Stop;

/// Pages that an engine is asked for.
const PAGES: usize = 50;
/// Unread pages that are told with their reason.
const TOLD: usize = 10;

/// `parallax corpus from-web`
#[derive(Debug, clap::Args)]
pub struct FromWeb {
    /// The question. Without it: a corpus for each one of --questions.
    pub question: Option<String>,
    /// Who finds the pages: searxng:URL (an instance of SearXNG), serper (key in PARALLAX_SERPER_KEY), brave (key in
    /// PARALLAX_BRAVE_KEY), or urls:FILE (a list of addresses, one a line).
    #[arg(long, value_name = "PROVIDER")]
    pub provider: Provider,
    /// What to call the corpus; made from the question if not given.
    #[arg(long)]
    pub name: Option<String>,
    /// How many pages; 50 if not given, or all of a list.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub pages: Option<u16>,
    /// Seconds between two requests to one host; a longer Crawl-delay of its robots.txt counts instead.
    #[arg(long, value_name = "SECONDS", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=120))]
    pub delay: u8,
    /// Ask addresses of private networks and of this machine too.
    #[arg(long)]
    pub allow_private: bool,
}

/// Runs the command.
///
/// # Errors
/// No page was found or read, or what came cannot be kept.
pub fn run(common: &Common, args: &FromWeb) -> anyhow::Result<ExitCode> {
    let data = common.opening().data_dir;
    let questions = match (&args.question, common.questions.first()) {
        (Some(question), _) => vec![question.trim().to_owned()],
        (None, Some(file)) => set::read(file)?.into_iter().map(|question| question.text).collect(),
        (None, None) => bail!("name a question, or a set of them with --questions"),
    };
    if questions.iter().any(String::is_empty) {
        bail!("the question is empty");
    }
    let mut names: Vec<String> = questions.iter().map(|question| called(question)).collect();
    match &args.name {
        Some(name) if names.len() == 1 => names = vec![name.clone()],
        Some(_) => bail!("--name is for one question; several are called after their words"),
        None => {}
    }
    // Before anything is asked: all that can be wrong with what was typed.
    let places = names.iter().map(|name| web::place(&data, name)).collect::<Result<Vec<_>, _>>()?;
    let search = args.provider.open()?;
    let (meter, stop) = (Meter::default(), stop_on_interrupt()?);
    let mut failed = 0;
    for (question, place) in questions.iter().zip(&places) {
        match one(args, question, search.as_ref(), place, &meter, &stop) {
            Ok(true) => {}
            Ok(false) | Err(WebError::Stopped(_)) => {
                writeln!(io::stderr(), "parallax: stopped; the same command goes on from here")?;
                return Ok(ExitCode::from(INTERRUPTED));
            }
            Err(error) if questions.len() == 1 => return Err(error.into()),
            Err(error) => {
                failed += 1;
                writeln!(
                    io::stderr(),
                    "parallax: {}: {}",
                    safe::line(question),
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

/// The corpus of one question; whether it is whole.
fn one(
    args: &FromWeb,
    question: &str,
    search: &dyn Search,
    place: &Path,
    meter: &Meter,
    stop: &Stop,
) -> Result<bool, WebError> {
    let usual = if matches!(args.provider, Provider::Urls(_)) { usize::MAX } else { PAGES };
    let wanted = args.pages.map_or(usual, usize::from);
    let manners = Manners {
        delay: std::time::Duration::from_secs(args.delay.into()),
        allow: if args.allow_private { web::anywhere } else { web::public },
        ..Manners::default()
    };
    let mut store = Store::open(place)?;
    let summary =
        web::gather(question, search, wanted, manners, &mut store, &|progress| meter.tell(progress), stop)?;
    let printed = print(question, &search.name(), &summary);
    printed.map_err(|reason| WebError::Keep { path: "standard output".into(), reason })?;
    if summary.passages == 0 && !summary.stopped {
        return Err(WebError::Search(format!(
            "none of the {} pages gave a text, so there is no corpus; the reasons are above",
            summary.pages
        )));
    }
    Ok(!summary.stopped)
}

fn print(question: &str, provider: &str, summary: &Summary) -> io::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    let (shown, provider) = (safe::line(question), safe::line(provider));
    writeln!(out, "question    {shown}")?;
    writeln!(
        out,
        "searched    {}, {provider}; the web changes, and another day finds and holds other pages",
        summary.searched
    )?;
    writeln!(
        out,
        "pages       {}, {} asked for in this run",
        thousands(summary.pages as u64),
        summary.asked
    )?;
    for (end, count) in &summary.ends {
        writeln!(out, "            {count} {}", end.name())?;
    }
    if summary.repeats > 0 {
        writeln!(
            out,
            "            {} of them repeat the text of another, which counts once",
            summary.repeats
        )?;
    }
    for (url, _, why) in summary.unread.iter().take(TOLD) {
        writeln!(out, "not read    {}: {}", safe::line(url), safe::line(why))?;
    }
    if let Some(more) = summary.unread.len().checked_sub(TOLD).filter(|more| *more > 0) {
        writeln!(out, "            and {more} more; pages.jsonl beside the corpus has all")?;
    }
    writeln!(out, "passages    {}", thousands(summary.passages as u64))?;
    if summary.passages > 0 {
        let corpus = quoted(&summary.corpus.display().to_string());
        writeln!(out, "open it     parallax --corpus {corpus} {}", quoted(&shown))?;
    }
    if !summary.stopped && summary.ends.contains_key(&web::End::Failed) {
        writeln!(out, "again       the same command asks once more for those that failed")?;
    }
    out.flush()
}

/// As a shell takes it.
fn quoted(text: &str) -> String {
    format!("'{}'", safe::line(text).replace('\'', "'\\''"))
}

/// `should-zoos-be-banned`, and a mark of the whole question, so that no two share a folder.
fn called(question: &str) -> String {
    let mut name = String::new();
    for word in question.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        if name.chars().count() + word.chars().count() > 48 {
            break;
        }
        if !name.is_empty() {
            name.push('-');
        }
        name.push_str(&word.to_lowercase());
    }
    let mark = &blake3::hash(question.as_bytes()).to_hex()[..6];
    if name.is_empty() { mark.to_owned() } else { format!("{name}-{mark}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_corpus_is_called_after_its_question() {
        assert!(called("Should zoos be banned?").starts_with("should-zoos-be-banned-"));
        assert_ne!(called("Should zoos be banned?"), called("Should zoos be banned"));
        assert_eq!(called("???").len(), 6);
        assert!(called(&"very long words ".repeat(40)).len() < 64);
    }

    #[test]
    fn what_is_to_be_typed_survives_a_shell() {
        assert_eq!(quoted("what's `this`?"), "'what'\\''s `this`?'");
    }
}
