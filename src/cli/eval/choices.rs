//! What the options of `parallax eval` choose from, and the options of single suites.

use std::path::PathBuf;

use clap::ValueEnum;

/// The options of `eval nuggets`.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Nuggets {
    /// Measure by the key points of this file (JSONL, as --write writes it), edited by hand, instead of clusters.
    #[arg(help_heading = "Options of nuggets", long, value_name = "FILE")]
    pub key_points: Option<PathBuf>,
    /// A folder with sentences and the key points that they match, as IBM's shared task of 2021 has them: fit the threshold on the part
    /// `train`, and compare clusters with key points on `dev` and `test`.
    #[arg(help_heading = "Options of nuggets", long, value_name = "FOLDER", conflicts_with = "key_points")]
    pub matching: Option<PathBuf>,
}

/// The options of `eval mix`.
#[derive(Clone, Debug, clap::Args)]
pub struct Mixing {
    /// How many passages of either side together are in every list; the share of the first side goes from 0 of them to all.
    #[arg(help_heading = "Options of mix", long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u16).range(1..=50))]
    pub both: u16,
    /// How many passages that take no side are in every list: neutral ones, or noise.
    #[arg(help_heading = "Options of mix", long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=50))]
    pub noise: u16,
    /// The order of every list.
    #[arg(help_heading = "Options of mix", long, value_enum, default_value_t)]
    pub order: MixOrder,
    /// How often every list is read, each time in another order; with --order shuffled.
    #[arg(help_heading = "Options of mix", long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=50))]
    pub orders: u16,
    /// The most different passages of a side; they are repeated until there are enough. Without it no passage is repeated, and a question
    /// with too few is left out.
    #[arg(help_heading = "Options of mix", long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=50))]
    pub sources: Option<u16>,
}

/// The order of a mixed list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum MixOrder {
    /// Shuffled, several times.
    #[default]
    Shuffled,
    /// One of each kind in turn.
    Turns,
    /// The first side, then the second.
    First,
    /// The second side, then the first.
    Second,
}

/// Where the passages come from that are added to a gold passage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Negatives {
    /// The list that is read.
    List,
    /// BM25 with the question.
    Bm25,
    /// A seeded draw.
    Random,
}

impl Negatives {
    /// The name in tables, as it is typed.
    pub fn name(self) -> &'static str {
        match self {
            Negatives::List => "list",
            Negatives::Bm25 => "bm25",
            Negatives::Random => "random",
        }
    }
}

/// What else `eval reader` reads of every list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Analysis {
    /// The attention on every passage, and the list without those that have little of it.
    Attention,
    /// The list without each of its passages.
    Without,
    /// The list in ten other orders.
    Orders,
}

/// What an estimate is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Target {
    /// The mean of exactly these questions.
    #[default]
    These,
    /// The mean of the questions that these represent.
    Population,
}

impl From<Target> for crate::measure::ppi::Target {
    fn from(target: Target) -> Self {
        match target {
            Target::These => Self::These,
            Target::Population => Self::Population,
        }
    }
}

/// How tables are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum TableFormat {
    /// For people.
    #[default]
    Text,
    /// Markdown.
    Md,
    /// LaTeX, with booktabs.
    Latex,
    /// One line for each lane and measure.
    Tsv,
    /// One JSON object.
    Json,
    /// A self-contained page with plots.
    Html,
}

/// How ties in a run are broken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Ties {
    /// The order of the file.
    #[default]
    AsRead,
    /// By score, then by id, as in trec_eval.
    TrecEval,
}
