//! The command line: parses the arguments and runs the commands.
//!
//! Results go to standard output, everything else to standard error. Exit codes: 0 done; 1 a check failed; 2 error; 128 + the
//! number of the signal that interrupted the command, such as 130 for SIGINT.
//!
//! May use everything below: `report`, `engine` and what they use, and `tui` to open the explorer.

mod annotate;
mod commands;
mod corpus;
mod detect;
mod doctor;
mod eval;
mod explore;
mod job;
mod models;
mod options;
mod provenance;

pub use commands::{main, parser};

mod search {
    //! `parallax search`: one query, without the explorer.

    use std::io::Write;
    use std::process::ExitCode;

    use anyhow::bail;

    use crate::cli::job::{Meter, open_setup, prompts_in_use};
    use crate::cli::options::{Common, Format, SwitchArgs};
    use crate::detect::LabelSource;
    use crate::engine::{Depth, Lists, Query, Run, Setup};
    use crate::measure::Measure;
    use crate::measure::score::ScoreError;
    use crate::measure::score::by_verdicts;
    use crate::question::resolve;
    use crate::report::safe;
    use crate::report::search::SearchResult;
    use crate::work::Stop;

    /// `parallax search`
    #[derive(Debug, clap::Args)]
    pub struct Search {
        /// The question.
        #[arg(required = true)]
        pub question: Vec<String>,
        /// Switches for the lanes that have none of their own.
        #[command(flatten)]
        pub switches: SwitchArgs,
        /// More measures by name, such as alpha_nDCG@10,rKL@10,AWRF@10.
        #[arg(long, value_delimiter = ',', value_name = "NAMES")]
        pub measures: Vec<String>,
        /// The output format.
        #[arg(long, value_enum, default_value_t)]
        pub format: Format,
    }

    /// Runs the command.
    ///
    /// # Errors
    /// A file could not be opened, or the question is empty.
    pub fn run(common: &Common, args: &Search) -> anyhow::Result<ExitCode> {
        let asked = args.question.join(" ");
        if asked.trim().is_empty() {
            bail!("the question is empty; try: parallax search \"Should zoos be banned?\"");
        }
        let measures = args.measures.iter().map(|name| by_verdicts(name)).collect::<Result<Vec<_>, _>>()?;
        if let Some(shift) = measures.iter().find(|measure| matches!(measure, Measure::Shift { .. })) {
            bail!("{}", ScoreError::NeedsSeveralRankings(*shift));
        }
        let (meter, stop) = (Meter::default(), Stop::never());
        let setup = open_setup(&common.opening(), &meter, &stop)?;
        if let Some(reason) = setup.lacks(common.source()) {
            bail!("{reason}");
        }
        let (question, _) = resolve(&asked, &common.perspectives, &setup.questions);
        let lanes = args.switches.apply(common.recipes())?;
        let query = Query { question, lanes, k: usize::from(common.k), source: common.source() };
        embed(&setup, &query, &meter)?;
        let mut run = Run::new(query.clone(), Depth::Covered, Lists::default());
        run.rank(&setup, &|_| true, &stop, &|_| ());
        run.judge(&setup, &stop, &|_| ())?;
        let measured = run.named(&setup, &measures, &stop)?;
        let unswitched = run.plain(&setup, &measures, &stop)?;
        let detector = setup.detector()?;
        let outcome = run.outcome();
        let caution =
            setup.model_warning(query.source, outcome.shares(), std::slice::from_ref(&query.question))?;

        let corpus = (setup.corpus.name.as_str(), setup.corpus.len(), setup.corpus.fingerprint.0.as_str());
        let result = SearchResult {
            outcome,
            plain: unswitched,
            named: measured,
            corpus,
            labels: setup.source_name(LabelSource::Gold),
            detector: detector.key(),
            fitted_on: detector.fitted_on(),
            caution,
        };
        let text = match args.format {
            Format::Text => result.text(common.glyphs()),
            Format::Json => {
                let mut json = result.json();
                if let Some(prompts) = prompts_in_use(common, &setup, &query.lanes) {
                    json["provenance"]["prompts"] = prompts;
                }
                safe::json(&json)?
            }
            Format::Tsv => result.tsv(),
        };
        let damage = setup.verdicts.damage();
        for notice in
            setup.verdicts.unsaved.iter().chain(&damage).chain(&setup.notes).chain(&detector.usage())
        {
            writeln!(safe::stderr(), "parallax: {notice}")?;
        }
        safe::stdout().write_all(text.as_bytes())?;
        let failed: Vec<_> = result.failed().collect();
        for (recipe, error) in &failed {
            writeln!(safe::stderr(), "parallax: the lane {recipe}: {error}")?;
        }
        Ok(ExitCode::from(if failed.is_empty() { 0 } else { 2 }))
    }

    /// Embeds the corpus if a lane needs vectors.
    pub fn embed(setup: &Setup, query: &Query, meter: &Meter) -> anyhow::Result<()> {
        Ok(setup.embed_for(&query.lanes, &|progress| meter.show(progress), &Stop::never())?)
    }
}

mod manual {
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
| 128 + N | interrupted by signal N: 130 after Ctrl-C, 143 after SIGTERM, 129 after SIGHUP; what was finished is stored, and the same command continues. In the explorer Ctrl-C is a key and ends it with 0 |

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
            let values: Vec<_> =
                arg.get_possible_values().into_iter().filter(|one| !one.is_hide_set()).collect();
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
            let defaults = defaults
                .filter(|value| !value.is_empty())
                .map(|value| format!("`{}`", value.to_string_lossy()));
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
}
