//! `parallax corpus`: the stored corpora.
//!
//! May use: everything below `cli`.

mod library;
pub mod remote;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;

use super::options::Common;
use crate::corpus::library::Library;
use library::find;

/// `parallax corpus`
#[derive(Debug, Subcommand)]
pub enum CorpusCommand {
    /// Import and index a file or folder under a name. After an interruption, the same command resumes.
    Add(library::Add),
    /// Make a corpus from the web: search for a question, fetch the pages politely, and cut their main text into passages of 100
    /// words. After an interruption, the same command resumes.
    FromWeb(remote::FromWeb),
    /// List the stored corpora.
    List,
    /// Describe a corpus: its source, lengths, metadata, duplicates and vectors.
    Info {
        /// Its name or fingerprint, or `web:` for the corpora that from-web made: pages and passages for each question (BERDS,
        /// Table 2).
        name: String,
    },
    /// Compare two searches of from-web: how many addresses they share, for each question that both have.
    Overlap {
        /// The name of a corpus that from-web made, or a data folder with many (--data-dir of that run).
        first: PathBuf,
        /// The other.
        second: PathBuf,
    },
    /// Import vectors of the passages: .npy (f32 or f16, two dimensions) or .safetensors (one tensor).
    Vectors(library::Vectors),
    /// Load a corpus into a search engine on another machine. A second push sends only what has changed.
    Push(remote::Push),
    /// Remove a stored corpus with its index and vectors. Its source stays.
    Rm {
        /// Its name or fingerprint.
        name: String,
        /// Remove it without asking.
        #[arg(long)]
        yes: bool,
    },
}

/// Runs the command.
///
/// # Errors
/// The corpus is not valid or does not exist, the web search finds nothing, or the library cannot be read or written.
pub fn run(common: &Common, command: &CorpusCommand) -> anyhow::Result<ExitCode> {
    let library = Library::at(&common.opening().data_dir);
    match command {
        CorpusCommand::Add(args) => library::add(&library, args),
        CorpusCommand::FromWeb(args) => remote::from_web(common, args),
        CorpusCommand::List => library::list(&library),
        CorpusCommand::Info { name } if name == remote::WEB => remote::web_info(common),
        CorpusCommand::Info { name } => library::info(&library, &find(&library, name)?),
        CorpusCommand::Overlap { first, second } => remote::overlap(common, first, second),
        CorpusCommand::Vectors(args) => library::vectors(common, args),
        CorpusCommand::Push(args) => remote::push(common, args),
        CorpusCommand::Rm { name, yes } => library::remove(&library, &find(&library, name)?, *yes),
    }
}
