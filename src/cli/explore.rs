//! `parallax [explore]`: opens the terminal interface.

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;
use clap::CommandFactory;

use super::args::{Args, Common};
use crate::measure::name::levenshtein;
use crate::tui;
use crate::tui::config::Problems;
use crate::tui::kept::Kept;
use crate::tui::theme::Depth;

/// Where questions are kept, below the data folder.
const ASKED: &str = "asked.jsonl";

/// Runs the command where no subcommand was named.
///
/// # Errors
/// As [`run`], or the first word is a mistyped subcommand.
pub fn run_unnamed(common: &Common, words: &[String]) -> anyhow::Result<ExitCode> {
    if let Some(meant) = meant(words) {
        bail!(
            "there is no command `{}`; did you mean `{meant}`? (To ask it as a question: parallax explore {})",
            words[0],
            words.join(" ")
        );
    }
    run(common, words)
}

/// Runs the command.
///
/// # Errors
/// There is no terminal, or something is wrong in the configuration.
pub fn run(common: &Common, question: &[String]) -> anyhow::Result<ExitCode> {
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        bail!(
            "the explorer needs a terminal; without one, use `parallax search QUESTION` or `parallax frame`"
        );
    }
    tui::run(taken_up(start(common, question, depth())?, common), None)?;
    Ok(ExitCode::SUCCESS)
}

/// The same, with what was asked before; where neither a question nor lanes are named, the last ones are taken up.
fn taken_up(mut start: tui::Start, common: &Common) -> tui::Start {
    let whole = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone()).display().to_string();
    // Where no corpus is named, what finished runs carry is one.
    let runs: Vec<String> = start.opening.runs.iter().map(|run| whole(&run.path)).collect();
    let runs = (!runs.is_empty()).then(|| runs.join(" "));
    let corpus = start.opening.corpus.as_ref().map(whole).or(runs).unwrap_or_else(|| "sample".into());
    let kept = Kept::read(start.opening.data_dir.join(ASKED), corpus);
    let free =
        start.question.is_empty() && start.perspectives.is_empty() && common.recipes_given().is_empty();
    if let Some((question, lanes)) = kept.last().filter(|_| free) {
        (start.question, start.lanes) = (question, lanes);
    }
    tui::Start { kept: Some(kept), ..start }
}

/// How many colours this terminal says that it shows.
pub fn depth() -> Depth {
    let told = |name| std::env::var(name).ok();
    Depth::told(
        told("COLORTERM").as_deref(),
        told("TERM").as_deref(),
        std::env::var_os("WT_SESSION").is_some(),
    )
}

/// What the interface starts with.
///
/// # Errors
/// Something is wrong in the configuration.
pub fn start(common: &Common, question: &[String], depth: Depth) -> Result<tui::Start, Problems> {
    let config_from = common.configuration();
    Ok(tui::Start {
        opening: common.opening(),
        lanes: common.recipes(),
        k: usize::from(common.k),
        source: common.source(),
        question: question.join(" "),
        perspectives: common.perspectives.clone(),
        kept: None,
        config: config_from.load()?,
        config_from,
        depth,
    })
}

/// The subcommand that the first word was probably meant to be. Alone or before something quoted it may be two edits away; before
/// plain words one, if it is no short word and they do not end as a question does.
fn meant(words: &[String]) -> Option<String> {
    let [word, rest @ ..] = words else { return None };
    let command = rest.is_empty() || rest.iter().any(|argument| argument.contains(' '));
    if !command && words.iter().any(|word| word.contains('?')) {
        return None;
    }
    let names = Args::command().get_subcommands().map(|one| one.get_name().to_owned()).collect::<Vec<_>>();
    names.into_iter().find(|name| {
        let near = if command {
            name.len().abs_diff(word.len()) <= 1 && levenshtein(name, word) <= 2
        } else {
            name.len() > 3 && (levenshtein(name, word) == 1 || swapped(name, word))
        };
        near && name.chars().next() == word.chars().next()
    })
}

/// Whether two letters side by side have changed places.
fn swapped(name: &str, word: &str) -> bool {
    let mut differ = name.char_indices().zip(word.chars()).filter(|((_, a), b)| a != b);
    let two = (differ.next(), differ.next(), differ.next());
    let (Some(((i, a), b)), Some(((j, c), d)), None) = two else { return false };
    name.len() == word.len() && j == i + a.len_utf8() && (a, b) == (d, c)
}

#[cfg(test)]
mod tests {
    use super::*;

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
