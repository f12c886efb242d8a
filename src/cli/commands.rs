//! The parser of the whole command line, and which command it runs.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::cli::annotate::{self, Annotate};
use crate::cli::corpus::{self, CorpusCommand, Questions};
use crate::cli::detect::{self, Detect, Statements};
use crate::cli::doctor::{self, Doctor};
use crate::cli::eval::{self, args::Eval};
use crate::cli::explore::{self, ConfigAction, Demo, Frame};
use crate::cli::job;
use crate::cli::manual;
use crate::cli::models::{self, Models};
use crate::cli::options::Common;
use crate::cli::provenance::{self, Reproduce};
use crate::cli::search::{self, Search};
use crate::input::excerpt;
use crate::net;
use crate::remote::Place;
use crate::report::safe;
use crate::report::safe::line;

/// Where a reader of one of the papers looks.
const PAPERS: &str = "Tables and figures of the papers BERDS, CSQE, PIR and Detrimental Contexts: `parallax eval --help` names them \
                      beside their suites, and docs/reports/papers.md has the command for each.";

/// See what several retrievers bring up on a contentious question, and which side each passage supports.
#[derive(Debug, Parser)]
#[command(name = "parallax", version, about, long_about = None, after_help = PAPERS)]
pub struct Args {
    /// Options that every command understands.
    #[command(flatten)]
    pub common: Common,
    /// The question to open the explorer with.
    pub question: Vec<String>,
    /// The command. Default: explore.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// What to do.
#[derive(Debug, Subcommand)]
#[expect(clippy::large_enum_variant, reason = "one value per run")]
pub enum Command {
    /// Open the explorer (the default).
    Explore {
        /// The question to begin with.
        question: Vec<String>,
    },
    /// Rank, judge and measure for one question, without the explorer.
    Search(Search),
    /// Turn questions into two opposite statements, one JSON object per line. With --llm, a language model writes those that no rule makes.
    Statements(Statements),
    /// Describe question sets.
    #[command(subcommand)]
    Questions(Questions),
    /// Judge pairs of passage and statement from a file.
    Detect(Detect),
    /// List the prompts that language models get, or print one as a file for --prompt (CSQE, Tables 1 and 2).
    Prompts {
        /// A name from the list.
        name: Option<String>,
    },
    /// Measure finished runs or lanes over a question set.
    Eval(Eval),
    /// Make a table again from the .json beside it, and say what differs.
    Reproduce(Reproduce),
    /// Label by hand: projects, and the journals that hold the labels.
    Annotate(Annotate),
    /// Manage corpora: import, make from the web, list, describe, remove, add vectors.
    #[command(subcommand)]
    Corpus(CorpusCommand),
    /// List, download and check encoders and detectors.
    Models(Models),
    /// Describe this installation, check every file that the program derived, and say what a repair costs.
    Doctor(Doctor),
    /// Play keys in the explorer and print the screen.
    Frame(Frame),
    /// Play a recorded session in the explorer. Default: a tour of under three minutes.
    Demo(Demo),
    /// Check or show the configuration of the explorer, or print its path.
    Config {
        /// What to do with the configuration.
        #[command(subcommand)]
        action: ConfigAction,
    },
    /// Print the completions of a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Print the manual page of the program, or of one of its commands, for `man -l -`.
    Man {
        /// The command's words, such as `annotate agree`.
        command: Vec<String>,
        /// Print the page docs/commands.md instead.
        #[arg(long, hide = true, conflicts_with = "command")]
        markdown: bool,
    },
}

/// The parser of the whole command line.
pub fn parser() -> clap::Command {
    Args::command()
}

/// Parses the command line and runs it.
pub fn main() -> ExitCode {
    crate::signals::keep_freed_memory();
    let args = match parse_args() {
        Ok(args) => args,
        Err(mut error) => {
            hide_address(&mut error);
            // Help and version are answers, not errors.
            let printed = error.print().and_then(|()| io::stdout().flush());
            return match printed {
                _ if error.use_stderr() => ExitCode::from(2),
                Err(unwritten) if unwritten.kind() != io::ErrorKind::BrokenPipe => failed(&unwritten.into()),
                _ => ExitCode::SUCCESS,
            };
        }
    };
    // Standard output may keep the last line until the end, where a full disk would go unnoticed. After a signal the code says more.
    let flushed = |code: ExitCode| match io::stdout().flush() {
        Err(unwritten) if code == ExitCode::SUCCESS => Err(unwritten.into()),
        _ => Ok(code),
    };
    match run(args).and_then(flushed) {
        Ok(code) => code,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => failed(&error),
    }
}

/// Reports an error, and returns its exit code.
fn failed(error: &anyhow::Error) -> ExitCode {
    tracing::error!("{error:#}");
    // The error may quote a file, which may hold control characters.
    let lines: Vec<String> = format!("parallax: {error:#}").lines().map(line).collect();
    let _ = writeln!(safe::stderr(), "{}", lines.join("\n"));
    ExitCode::from(2)
}

/// Parses the command line, and records which options were typed.
fn parse_args() -> Result<Args, clap::Error> {
    let matches = Args::command().try_get_matches()?;
    let mut args = Args::from_arg_matches(&matches).map_err(|error| error.format(&mut Args::command()))?;
    args.common.typed = typed(&matches);
    Ok(args)
}

/// The names of the options that were typed, before the command or after it.
fn typed(matches: &ArgMatches) -> Vec<String> {
    let below = std::iter::successors(Some(matches), |above| above.subcommand().map(|(_, below)| below));
    let named = |all: &ArgMatches| {
        let ids = all.ids().map(|id| id.as_str());
        let typed = ids.filter(|id| all.value_source(id) == Some(ValueSource::CommandLine));
        typed.map(str::to_owned).collect::<Vec<_>>()
    };
    below.flat_map(named).collect()
}

/// Hides an engine's address in an error, because clap repeats the wrong argument and the address may hold a password.
fn hide_address(error: &mut clap::Error) {
    let Some(ContextValue::String(value)) = error.get(ContextKind::InvalidValue) else { return };
    if let Some(kind) = Place::kind_of(value.trim()) {
        let shown = format!("{}…", kind.prefix());
        error.insert(ContextKind::InvalidValue, ContextValue::String(shown));
    }
}

fn run(args: Args) -> anyhow::Result<ExitCode> {
    let Args { common, question, command } = args;
    job::start_log(&common)?;
    net::allow_in_clear(&common.allow_insecure);
    job::show_waits();
    tracing::info!(version = env!("CARGO_PKG_VERSION"), "started");
    if (common.questions.len() > 1 || common.labels.len() > 1) && !matches!(command, Some(Command::Eval(_))) {
        anyhow::bail!("several --questions or --labels are for `parallax eval`; name one file each");
    }
    if common.detector.len() > 1 && !matches!(command, Some(Command::Detect(_))) {
        anyhow::bail!("several --detector are compared by `parallax detect`; name one here");
    }
    // The sets of eval --set bring their own labels.
    if !(common.labels.is_empty() && matches!(&command, Some(Command::Eval(eval)) if !eval.sets.is_empty())) {
        common.check_judge()?;
    }
    if let Some(twice) = repeated(&common.perspectives) {
        anyhow::bail!("two --perspective are the same statement, {}; name different ones", excerpt(twice));
    }
    match command {
        None => {
            if let Some(meant) = meant(&question) {
                anyhow::bail!(
                    "there is no command `{}`; did you mean `{meant}`? (To ask it as a question: parallax explore {})",
                    question[0],
                    question.join(" ")
                );
            }
            explore::run(&common, &question)
        }
        Some(Command::Explore { question }) => explore::run(&common, &question),
        Some(Command::Search(search)) => search::run(&common, &search),
        Some(Command::Statements(statements)) => detect::statements(&common, &statements),
        Some(Command::Questions(Questions::Info { files })) => corpus::questions_info(&files),
        Some(Command::Questions(Questions::Split(args))) => corpus::questions_split(&args),
        Some(Command::Detect(detect)) => detect::run(&common, &detect),
        Some(Command::Prompts { name }) => detect::prompts(&common, name.as_deref()),
        Some(Command::Eval(eval)) => eval::run(&common, &eval),
        Some(Command::Reproduce(args)) => provenance::reproduce(&common, &args),
        Some(Command::Annotate(annotate)) => annotate::run(&common, &annotate),
        Some(Command::Corpus(command)) => corpus::run(&common, &command),
        Some(Command::Models(args)) => models::run(&common, &args),
        Some(Command::Doctor(args)) => doctor::run(&common, &args),
        Some(Command::Demo(demo)) => explore::demo(&common, &demo),
        Some(Command::Frame(frame)) => explore::frame(&common, &frame),
        Some(Command::Config { action }) => explore::config(&common, &action),
        Some(Command::Man { markdown: true, .. }) => {
            safe::stdout().write_all(manual::markdown(Args::command()).as_bytes())?;
            Ok(ExitCode::SUCCESS)
        }
        Some(Command::Man { command, .. }) => manual::man(Args::command(), &command),
        Some(Command::Completions { shell }) => manual::completions(&mut Args::command(), shell),
    }
}

/// A statement that is named twice, whatever its case and blanks.
fn repeated(statements: &[String]) -> Option<&str> {
    let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    let is_earlier =
        |(at, text): &(usize, &String)| statements[..*at].iter().any(|one| plain(one) == plain(text));
    statements.iter().enumerate().find(is_earlier).map(|(_, text)| text.as_str())
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let written = error.downcast_ref::<io::Error>().map(io::Error::kind);
    let serialised = error.downcast_ref::<serde_json::Error>().and_then(serde_json::Error::io_error_kind);
    written.or(serialised) == Some(io::ErrorKind::BrokenPipe)
}

/// The subcommand that the first word is probably a misspelling of. A word alone, or before a quoted argument, may be two edits away.
/// Before plain words it may be one edit away (two swapped letters count as one), if the name has four letters or more and the words
/// contain no question mark.
fn meant(words: &[String]) -> Option<String> {
    let [word, rest @ ..] = words else { return None };
    let command = rest.is_empty() || rest.iter().any(|argument| argument.contains(' '));
    if !command && words.iter().any(|word| word.contains('?')) {
        return None;
    }
    let names = Args::command().get_subcommands().map(|one| one.get_name().to_owned()).collect::<Vec<_>>();
    names.into_iter().find(|name| {
        let near = if command {
            name.len().abs_diff(word.len()) <= 1 && strsim::levenshtein(name, word) <= 2
        } else {
            name.len() > 3 && strsim::osa_distance(name, word) == 1
        };
        near && name.chars().next() == word.chars().next()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_of_commands_is_the_one_made_from_the_parser() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/commands.md");
        let page = std::fs::read_to_string(path).unwrap_or_default();
        let made = manual::markdown(Args::command());
        assert!(
            page == made,
            "docs/commands.md is out of date; run: cargo run -- man --markdown > docs/commands.md"
        );
    }

    #[test]
    fn every_option_of_the_parser_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn a_statement_named_twice_is_found_whatever_its_case_and_blanks() {
        let statements = ["Zoos teach.", "Zoos harm.", " zoos  Teach. "].map(str::to_owned);
        assert_eq!(repeated(&statements), Some(" zoos  Teach. "));
        assert_eq!(repeated(&statements[..2]), None);
    }

    fn meant_by(line: &[&str]) -> Option<String> {
        meant(&line.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn a_mistyped_subcommand_is_recognised_and_a_word_of_its_own_is_not() {
        assert_eq!(meant_by(&["serach"]).as_deref(), Some("search"));
        assert_eq!(meant_by(&["evl"]).as_deref(), Some("eval"));
        assert_eq!(meant_by(&["serach", "Should zoos be banned?"]).as_deref(), Some("search"));
        assert_eq!(meant_by(&["zoos"]), None);
        assert_eq!(meant_by(&["nuclear"]), None);
        assert_eq!(meant_by(&[]), None);
    }

    #[test]
    fn before_plain_words_one_edit_or_two_letters_swapped_make_a_command_and_a_question_mark_a_question() {
        for word in ["serch", "searhc", "searchh", "eearch"] {
            let found = meant_by(&[word, "zoos"]);
            assert_eq!(found.as_deref(), Some("search").filter(|_| word.starts_with('s')), "{word}");
        }
        assert_eq!(meant_by(&["evla", "berds"]).as_deref(), Some("eval"));
        assert_eq!(meant_by(&["serch", "for", "aliens?"]), None);
        assert_eq!(meant_by(&["May", "zoos", "exist"]), None);
        assert_eq!(meant_by(&["may", "zoos", "exist"]), None);
        assert_eq!(meant_by(&["Should", "zoos", "be", "banned"]), None);
    }
}
