//! Documents made from the parser: manual pages, shell completions, and the page `docs/commands.md`.

use std::io::Write;
use std::process::ExitCode;

use crate::report::safe;
use anyhow::bail;
use clap::Arg;
use clap_mangen::Man;

/// Prints the manual page of the program, or of the command with these words.
///
/// # Errors
/// There is no such command.
pub fn man(mut command: clap::Command, words: &[String]) -> anyhow::Result<ExitCode> {
    command.build();
    let mut page = &command;
    for (i, word) in words.iter().enumerate() {
        let Some(next) = page.find_subcommand(word) else {
            let names: Vec<&str> = page.get_subcommands().map(clap::Command::get_name).collect();
            let of = ["parallax".to_owned()].into_iter().chain(words[..i].iter().cloned());
            let of = of.collect::<Vec<_>>().join(" ");
            if names.is_empty() {
                bail!("`{of}` has no commands; leave `{word}` out");
            }
            bail!("`{of}` has no command `{word}`; there are {}", names.join(", "));
        };
        page = next;
    }
    let mut roff = Vec::new();
    let version = concat!("parallax ", env!("CARGO_PKG_VERSION"));
    Man::new(page.clone()).source(version).render(&mut roff)?;
    safe::stdout().write_all(&roff)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the completions of a shell.
///
/// # Errors
/// Standard output cannot be written.
pub fn completions(command: &mut clap::Command, shell: clap_complete::Shell) -> anyhow::Result<ExitCode> {
    // clap_complete panics if it cannot write, so it writes to memory.
    let mut script = Vec::new();
    clap_complete::generate(shell, command, "parallax", &mut script);
    safe::stdout().write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}

/// The text above the commands on their page.
const HEAD: &str = "\
# Commands

`parallax` without a command opens the explorer. `parallax COMMAND --help` prints what this page says of a command.

<!-- This page is generated: parallax man --markdown > docs/commands.md -->

Results go to standard output; progress, notes and errors go to standard error.

| exit code | meaning |
| --- | --- |
| 0 | done |
| 1 | a check failed: a mean below `--fail-under`, failed questions without `--allow-failed`, a damaged journal, a wrong configuration, rows that were not imported |
| 2 | an error: a wrong option, a file that cannot be read, a lane that failed in `search` |
| 128 + N | interrupted by signal N: 130 after Ctrl-C, 143 after SIGTERM, 129 after SIGHUP; what was finished is stored, and the same command continues |

An option wins over its environment variable.
";

/// The page of all commands and their options.
pub fn markdown(mut command: clap::Command) -> String {
    command.build();
    let mut page = HEAD.to_owned();
    let global = |arg: &&Arg| arg.is_global_set();
    page += "\n## Options of every command\n\n";
    page += &table(command.get_arguments().filter(global));
    for one in command.get_subcommands().filter(|one| one.get_name() != "help") {
        section(one, "parallax", 2, &mut page);
    }
    page
}

/// Adds the section of a command, and those of its subcommands.
fn section(command: &clap::Command, above: &str, level: usize, page: &mut String) {
    let name = format!("{above} {}", command.get_name());
    let own = || command.get_arguments().filter(|arg| !arg.is_global_set() && !arg.is_hide_set());
    let own = || own().filter(|arg| !["help", "version"].contains(&arg.get_id().as_str()));
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let end = if about.ends_with('.') { "" } else { "." };
    *page += &format!("\n{} {name}\n\n{about}{end}\n", "#".repeat(level));
    let subcommands: Vec<_> =
        command.get_subcommands().filter(|one| one.get_name() != "help" && !one.is_hide_set()).collect();
    if subcommands.is_empty() {
        let values = own().filter(|arg| arg.is_positional()).map(|arg| format!(" {}", shown(arg)));
        *page += &format!("\n`{name} [OPTIONS]{}`\n", values.collect::<String>());
    }
    if own().next().is_some() {
        *page += &format!("\n{}", table(own()));
    }
    subcommands.iter().for_each(|one| section(one, &name, level + 1, page));
}

/// A table with one row per option: how it is typed, its meaning, its default and its environment variable.
fn table<'a>(options: impl Iterator<Item = &'a Arg>) -> String {
    let mut text = "| option | meaning | default |\n| --- | --- | --- |\n".to_owned();
    for arg in options {
        let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        // A default that depends on other options is described in the help.
        let (meaning, depends) = help.split_once(" Default: ").unwrap_or((&help, ""));
        let mut meaning = meaning.to_owned();
        if !meaning.ends_with('.') {
            meaning.push('.');
        }
        let values: Vec<_> = arg.get_possible_values().into_iter().filter(|one| !one.is_hide_set()).collect();
        let takes = arg.get_action().takes_values();
        if takes && !values.is_empty() {
            let one = |value: &clap::builder::PossibleValue| match value.get_help() {
                Some(help) => {
                    format!("`{}`: {}", value.get_name(), lower(help.to_string().trim_end_matches('.')))
                }
                None => format!("`{}`", value.get_name()),
            };
            meaning += &format!(" Values: {}.", values.iter().map(one).collect::<Vec<_>>().join("; "));
        }
        if let Some(variable) = arg.get_env() {
            meaning += &format!(" Environment: `{}`.", variable.to_string_lossy());
        }
        let defaults = arg.get_default_values().iter().filter(|_| takes);
        let defaults =
            defaults.filter(|value| !value.is_empty()).map(|value| format!("`{}`", value.to_string_lossy()));
        let default = match depends.trim_end_matches('.') {
            "" => defaults.collect::<Vec<_>>().join(", "),
            depends => depends.to_owned(),
        };
        text += &format!(
            "| `{}` | {} | {} |\n",
            shown(arg).replace('|', "\\|"),
            meaning.replace('|', "\\|"),
            default.replace('|', "\\|")
        );
    }
    text
}

/// An option as it is typed, such as `-k <K>` or `[QUESTION]...`.
fn shown(arg: &Arg) -> String {
    arg.to_string()
}

/// Names that a help text begins with and that look like common words.
const NAMES: [&str; 2] = ["Argilla", "Markdown"];

/// The text with a lower-case first letter, unless it begins with a name such as `MRecall` or `Label Studio`.
fn lower(text: &str) -> String {
    let mut words = text.split_whitespace();
    let first = words.next().unwrap_or_default();
    // `JSON` after a common word is an abbreviation; `Studio` is the second word of a name.
    let is_title = |word: &str| {
        let mut letters = word.chars();
        letters.next().is_some_and(char::is_uppercase) && letters.next().is_some_and(char::is_lowercase)
    };
    let is_name = first.chars().skip(1).any(char::is_uppercase)
        || NAMES.contains(&first.trim_end_matches("'s"))
        || words.next().is_some_and(is_title);
    let mut letters = text.chars();
    match letters.next() {
        Some(letter) if !is_name => letter.to_lowercase().chain(letters).collect(),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_capitals_and_common_words_lose_theirs() {
        for name in [
            "Label Studio's tasks, as JSON",
            "Argilla's records",
            "Markdown",
            "LaTeX, with booktabs",
            "MRecall",
        ] {
            assert_eq!(lower(name), name);
        }
        assert_eq!(lower("One JSON object"), "one JSON object");
        assert_eq!(lower("A table with a header"), "a table with a header");
    }
}
