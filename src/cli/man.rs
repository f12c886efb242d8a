//! `parallax man`: the manual page, made from the same description of the command line as `--help`.

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::bail;
use clap::CommandFactory;
use clap_mangen::Man;

use super::args::Args;

/// Prints the page of the program, or of the command that the words name.
///
/// # Errors
/// There is no such command.
pub fn run(words: &[String]) -> anyhow::Result<ExitCode> {
    let mut command = Args::command();
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
    io::stdout().write_all(&roff)?;
    Ok(ExitCode::SUCCESS)
}
