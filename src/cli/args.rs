//! The command line as typed.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

use crate::detect::LabelSource;
use crate::expand::Kind;
use crate::pipeline::recipe::escaped;
use crate::pipeline::{Opening, Recipe};
use crate::project::Variant;

/// See what several retrievers bring up on a contentious question, and which side each passage supports.
#[derive(Debug, Parser)]
#[command(name = "parallax", version, about, long_about = None)]
pub struct Args {
    /// Options that every command understands.
    #[command(flatten)]
    pub common: Common,
    /// A question to open the explorer with.
    pub question: Vec<String>,
    /// What to do; without one, the explorer opens.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// Options that every command understands.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Common {
    /// A corpus: a file (.jsonl, .csv, .tsv, or results of rank_llm or BERDS), a folder of texts, or a name of `parallax corpus
    /// list`. If not given: the passages that runs among the lanes carry, else the carried sample.
    #[arg(long, global = true, value_name = "PATH|NAME", env = "PARALLAX_CORPUS")]
    pub corpus: Option<PathBuf>,
    /// A question set: BERDS, BEIR or PIR JSONL, TSV of id and question, or TREC topics; for `eval`, repeat for the average over
    /// several.
    #[arg(long, global = true, value_name = "FILE", env = "PARALLAX_QUESTIONS")]
    pub questions: Vec<PathBuf>,
    /// Labels: a TSV table or TREC diversity qrels; what is absent is a no (complete) or unjudged (positives).
    #[arg(long, global = true, value_name = "FILE[:complete|:positives]", env = "PARALLAX_LABELS")]
    pub labels: Vec<String>,
    /// A threshold fitted on labels by hand (annotate agree --refit) instead of the detector's own.
    #[arg(long, global = true, value_name = "FILE")]
    pub detector_threshold: Option<PathBuf>,
    /// Which labels count.
    #[arg(long, global = true, value_enum, value_name = "SOURCE")]
    pub label_source: Option<LabelSource>,
    /// A perspective of the question, instead of its own; repeat for more.
    #[arg(long = "perspective", global = true, value_name = "TEXT")]
    pub perspectives: Vec<String>,
    /// A lane, such as bm25@k1=1.2,b=.75, minilm+mmr@.75, contriever, hf:ORG/MODEL, path:FOLDER, milvus:URL/COLLECTION,
    /// os:URL/INDEX or run:FILE (a finished run); repeat for more.
    #[arg(long = "lane", global = true, value_name = "RECIPE")]
    pub lane: Vec<Recipe>,
    /// Lanes by name: bm25,minilm,hybrid,run:FILE.
    #[arg(long, global = true, value_delimiter = ',', value_name = "NAMES")]
    pub lanes: Vec<Recipe>,
    /// A language model that writes expansions: the address of an OpenAI-compatible server, such as
    /// http://localhost:11434/v1. Its key, if it asks for one, is read from PARALLAX_LLM_KEY.
    #[arg(long, global = true, value_name = "URL", env = "PARALLAX_LLM", requires = "llm_model")]
    pub llm: Option<String>,
    /// The model's name on that server.
    #[arg(long, global = true, value_name = "NAME", env = "PARALLAX_LLM_MODEL")]
    pub llm_model: Option<String>,
    /// Recorded replies (JSONL), taken instead of asking a model.
    #[arg(long, global = true, value_name = "FILE", env = "PARALLAX_REPLIES")]
    pub replies: Option<PathBuf>,
    /// A journal of labels by hand, or a folder of them such as a project; repeat for more. Those made on this corpus if not given.
    #[arg(long = "journal", global = true, value_name = "FILE|FOLDER")]
    pub journals: Vec<PathBuf>,
    /// Under which name you label.
    #[arg(long, global = true, value_name = "NAME", env = "PARALLAX_ANNOTATOR")]
    pub annotator: Option<String>,
    /// How many passages count.
    #[arg(short, global = true, value_parser = clap::value_parser!(u16).range(1..=100), default_value_t = 5)]
    pub k: u16,
    /// Where indices, vectors and verdicts are kept.
    #[arg(long, global = true, value_name = "FOLDER", env = "PARALLAX_DATA_DIR")]
    pub data_dir: Option<PathBuf>,
    /// No colours.
    #[arg(long, global = true)]
    pub no_color: bool,
    /// Plain ASCII instead of geometric marks.
    #[arg(long, global = true)]
    pub ascii: bool,
}

impl Common {
    /// What to open.
    pub fn opening(&self) -> Opening {
        let home = directories::ProjectDirs::from("", "", "parallax");
        // A cache may be emptied by whoever needs room; labels by hand cannot be made again.
        let kept = home.as_ref().filter(|_| self.data_dir.is_none());
        let annotations = kept.map(|home| home.data_dir().join("annotate"));
        let data_dir = self.data_dir.clone().or_else(|| Some(home?.cache_dir().to_owned()));
        Opening {
            corpus: self.corpus.clone(),
            questions: self.questions.first().cloned(),
            labels: self.labels.first().cloned(),
            runs: self.recipes().iter().filter_map(Recipe::run).cloned().collect(),
            threshold: self.detector_threshold.clone(),
            data_dir: data_dir.unwrap_or_else(|| std::env::temp_dir().join("parallax")),
            llm: self.llm.clone().zip(self.llm_model.clone()),
            replies: self.replies.clone(),
            journals: self.journals.clone(),
            annotator: self.annotator.clone(),
            annotations,
        }
    }

    /// The lanes, left to right.
    pub fn recipes(&self) -> Vec<Recipe> {
        let all: Vec<Recipe> = self.lanes.iter().chain(&self.lane).cloned().collect();
        if all.is_empty() { Recipe::defaults() } else { all }
    }

    /// Which labels count: the carried sample starts on the model's, everything else on the most trusted.
    pub fn source(&self) -> LabelSource {
        let default = if self.corpus.is_none() { LabelSource::Model } else { LabelSource::Auto };
        self.label_source.unwrap_or(default)
    }

    /// Marks as the user wants them.
    pub fn glyphs(&self) -> crate::report::marks::Glyphs {
        use crate::report::marks::Glyphs;
        if self.ascii { Glyphs::Ascii } else { Glyphs::Shapes }
    }
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Open the explorer (the default).
    Explore {
        /// A question to begin with.
        question: Vec<String>,
    },
    /// Rank, judge and measure without a screen.
    Search(Search),
    /// Turn questions into the statements of their two sides, one JSON object a line.
    Statements(StatementsArgs),
    /// Judge pairs of passage and statement from a file.
    Detect(Detect),
    /// Measure finished runs or lanes over a question set.
    Eval(Eval),
    /// Label by hand: projects, and the journals that hold the labels.
    Annotate(super::annotate::Annotate),
    /// Keep corpora: import them, list them, look at them, remove them, give them vectors.
    #[command(subcommand)]
    Corpus(super::corpus::CorpusCommand),
    /// List, fetch and check encoders.
    Models(Models),
    /// Play keys into the explorer and print the frame.
    Frame(Frame),
    /// Print completions for a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

/// `parallax models`
#[derive(Debug, clap::Args)]
pub struct Models {
    /// What to do.
    #[command(subcommand)]
    pub action: ModelsAction,
}

/// What to do with encoders.
#[derive(Debug, Subcommand)]
pub enum ModelsAction {
    /// Which there are: carried, fetched, and on the hub with their sizes.
    List,
    /// Fetch one from the hub. HF_ENDPOINT names another hub, HF_TOKEN is sent to it, HF_HUB_OFFLINE forbids asking.
    Get {
        /// A name from the list, or hf:ORG/MODEL.
        name: String,
    },
    /// Check one that is there: its files, and that it tells a near passage from a far one.
    Check {
        /// A name from the list, hf:ORG/MODEL or path:FOLDER, perhaps with options.
        name: String,
    },
}

/// How results are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// One JSON object.
    Json,
    /// A table with a header.
    Tsv,
}

/// `parallax search`
#[derive(Debug, clap::Args)]
pub struct Search {
    /// The question.
    pub question: String,
    /// Switches for the lanes that have none of their own.
    #[command(flatten)]
    pub switches: SwitchArgs,
    /// Measures by name beside the usual ones, such as alpha_nDCG@10,rKL@10,AWRF@10.
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub measures: Vec<String>,
    /// How to print it.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Switches given beside the lanes.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct SwitchArgs {
    /// Re-rank by MMR with this λ, from 0 to 1.
    #[arg(long, value_name = "LAMBDA", conflicts_with = "diversify")]
    pub mmr: Option<String>,
    /// Expand the query: perspectives, keqe, csqe or rm3.
    #[arg(long, value_name = "KIND")]
    pub expand: Option<Kind>,
    /// Project the query: pap, pap-plus, cast, add, concat, dual-sum, tri-sum …
    #[arg(long, value_name = "KIND")]
    pub pap: Option<Variant>,
    /// The perspective to project toward, by number from 1, or =TEXT; the second if not given.
    #[arg(long, value_name = "N", requires = "pap")]
    pub toward: Option<String>,
    /// Re-rank by the model's verdicts: xquad or pm2, perhaps with @λ.
    #[arg(long, value_name = "KIND")]
    pub diversify: Option<String>,
}

impl SwitchArgs {
    /// The recipes with these switches where they have none of their own; a lane that has no use for one goes without, and that
    /// is told.
    ///
    /// # Errors
    /// A switch is not what it should be, or no lane has a use for it.
    pub fn applied(&self, recipes: Vec<Recipe>) -> anyhow::Result<Vec<Recipe>> {
        let mut wanted: Vec<(&str, String)> = Vec::new();
        wanted.extend(self.mmr.as_ref().map(|lambda| ("--mmr", format!("mmr@{lambda}"))));
        wanted.extend(self.expand.map(|kind| ("--expand", kind.to_string())));
        let toward = self.toward.as_deref().unwrap_or("2").trim();
        let toward = match toward.strip_prefix('=') {
            Some(text) => format!("={}", escaped(text)),
            None => toward.to_owned(),
        };
        let option = if self.toward.is_some() { "--pap with --toward" } else { "--pap" };
        wanted.extend(self.pap.map(|variant| (option, format!("{variant}@{toward}"))));
        wanted.extend(self.diversify.clone().map(|kind| ("--diversify", kind)));
        let mut switched = recipes.clone();
        for (option, name) in wanted {
            let given = format!("hybrid+{name}").parse::<Recipe>();
            let given = given.map_err(|error| anyhow::anyhow!("{option}: expected {}", error.expected()))?;
            let mut without = Vec::new();
            for recipe in &mut switched {
                match format!("{}+{name}", recipe.plain()).parse::<Recipe>() {
                    Ok(_) => recipe.switches = recipe.switches.clone().or(&given.switches),
                    Err(error) => without.push((recipe.to_string(), error.expected().to_owned())),
                }
            }
            match without.first() {
                Some((_, expected)) if without.len() == switched.len() => {
                    anyhow::bail!("{option}: no lane has a use for it; expected {expected}")
                }
                Some(_) => {
                    let lanes: Vec<&str> = without.iter().map(|(lane, _)| lane.as_str()).collect();
                    eprintln!(
                        "parallax: {option} is left out of {}, which has no use for it",
                        lanes.join(", ")
                    );
                }
                None => {}
            }
        }
        Ok(switched)
    }
}

/// `parallax statements`
#[derive(Debug, clap::Args)]
pub struct StatementsArgs {
    /// Questions.
    pub question: Vec<String>,
    /// A file of questions, one a line; `-` for standard input.
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
}

/// `parallax detect`
#[derive(Debug, clap::Args)]
pub struct Detect {
    /// A TSV with a header naming at least `document` and `perspective`, perhaps `id`, `title` and `label`.
    #[arg(long, value_name = "FILE")]
    pub pairs: PathBuf,
    /// How to print it.
    #[arg(long, value_enum, default_value_t = Format::Tsv)]
    pub format: Format,
}

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

/// `parallax frame`
#[derive(Debug, clap::Args)]
pub struct Frame {
    /// Columns and rows.
    #[arg(long, default_value = "140x40", value_name = "WxH")]
    pub size: crate::tui::Size,
    /// Keys in Vim's notation: `Should zoos be banned?<Enter>`.
    #[arg(long, default_value = "")]
    pub keys: String,
    /// Print the styles too.
    #[arg(long)]
    pub style: bool,
    /// Save the frame here instead of printing it: .svg, .png, .html or .txt.
    #[arg(long, value_name = "FILE", conflicts_with = "style")]
    pub out: Option<PathBuf>,
    /// Seconds to wait for the lanes and verdicts.
    #[arg(long, default_value_t = 60)]
    pub timeout: u64,
}
