//! `parallax eval` as typed.

use std::path::PathBuf;

use clap::ValueEnum;

use crate::cli::switches::SwitchArgs;

/// `parallax eval`
#[derive(Debug, clap::Args)]
pub struct Eval {
    /// What to measure.
    #[arg(value_enum)]
    pub suite: Suite,
    /// Judgements: TREC qrels or BEIR TSV.
    #[arg(help_heading = "Options of trec", long, value_name = "FILE")]
    pub qrels: Option<PathBuf>,
    /// A finished run (TREC, rank_llm or BERDS): short for --lane run:FILE; repeat for more.
    #[arg(long = "run", value_name = "FILE")]
    pub runs: Vec<PathBuf>,
    /// Measures by name: for `trec` instead of nDCG@10,R@100; for `berds` beside its own, such as
    /// MRecall@10,alpha_nDCG@10,StRecall@5,Lean@5,Shift@5,rKL@10,AWRF,Cover.
    #[arg(help_heading = "Options of trec and berds", long, value_delimiter = ',', value_name = "NAMES")]
    pub measures: Vec<String>,
    /// Switches for the lanes that have none of their own.
    #[command(flatten)]
    pub switches: SwitchArgs,
    /// Add a row a lane for the best order of its first 100 passages that the labels allow.
    #[arg(help_heading = "Options of berds", long)]
    pub oracle: bool,
    /// For `bias`: a metadata field of the passages; adds whose passages every lane brings up.
    #[arg(long, value_name = "FIELD")]
    pub attribute: Option<String>,
    /// Also write every lane's lists (TREC run, BERDS JSONL) and the labels (qrels) into this folder.
    #[arg(help_heading = "Options of berds", long, value_name = "FOLDER")]
    pub write: Option<PathBuf>,
    /// Print a row a question and lane instead of means, the worst first if a measure is named.
    #[arg(long, value_name = "MEASURE", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub per_question: Option<String>,
    /// Also write every plot into this folder, as SVG and PNG.
    #[arg(long, value_name = "FOLDER")]
    pub plots: Option<PathBuf>,
    /// Exit with 1 if a lane's mean is lower: LANE:MEASURE>=NUMBER; repeat for more.
    #[arg(long, value_name = "BOUND")]
    pub fail_under: Vec<String>,
    /// Exit with 0 even if a lane failed on some questions.
    #[arg(long)]
    pub allow_failed: bool,
    /// The arithmetic of the authors' notebook instead of the paper's (a root with one query scores 0, the first query
    /// of a root counts any gold passage of the root).
    #[arg(help_heading = "Options of pir", long)]
    pub pir_notebook: bool,
    /// How many passages of a root query count in the shares of the sides.
    #[arg(help_heading = "Options of pir", long, value_name = "K", value_parser = clap::value_parser!(u16).range(1..=100), default_value_t = 1)]
    pub bias_k: u16,
    /// Leave out a passage whose id is the question's own.
    #[arg(help_heading = "Options of trec", long)]
    pub ignore_identical_ids: bool,
    /// The order of finished runs.
    #[arg(long, value_enum, default_value_t)]
    pub ties: Ties,
    /// How to print it.
    #[arg(long, value_enum, default_value_t)]
    pub format: TableFormat,
}

/// What `eval` measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Suite {
    /// Graded relevance, as trec_eval does.
    Trec,
    /// MRecall, Prec and sides covered, as BERDS does.
    Berds,
    /// pRecall of the carried encoder under every projection, and of BM25, over PIR's tasks (--questions FILE).
    Pir,
    /// How far one must read until every perspective was met, down to rank 100.
    Coverage,
    /// Which way a lane leans, how uneven its order is, and whose passages it brings up.
    Bias,
    /// How far a lane's answer follows the side that the question is worded from.
    Sycophancy,
    /// What is read from the first k: the stance of every lane, or, where the questions bring passages and gold answers, whether a
    /// reader is right at every k (--reader PATH, --llm URL or --answers FILE).
    Reader,
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
    /// A line a lane and measure.
    Tsv,
    /// One JSON object.
    Json,
    /// One page that stands alone, with plots.
    Html,
}

/// How ties in a run are broken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Ties {
    /// The file's own order.
    #[default]
    AsRead,
    /// By score, then by id, as trec_eval does.
    TrecEval,
}
