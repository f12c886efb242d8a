//! The command line as typed.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

pub use super::eval::args::{Eval, Suite, TableFormat, Ties};
pub use super::switches::SwitchArgs;
use crate::detect::{Choice, LabelSource};
use crate::pipeline::{Opening, Recipe};
use crate::tui::config::Source;
use crate::tui::theme::Look;

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
    /// What judges: carried; a cross-encoder for NLI or stance by path:FOLDER or hf:ORG/MODEL, with @supports=CLASS after it where
    /// its own names of the classes do not tell which one means support; or llm, the model that --llm names, asked yes or no.
    #[arg(long, global = true, value_name = "WHAT", default_value_t)]
    pub detector: Choice,
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
    /// A language model that writes expansions, reads, and judges with --detector llm: the address of an OpenAI-compatible server, such as
    /// http://localhost:11434/v1, or gguf:FILE. A server's key, if it asks for one, is read from PARALLAX_LLM_KEY.
    #[arg(long, global = true, value_name = "URL|gguf:FILE", env = "PARALLAX_LLM")]
    pub llm: Option<String>,
    /// The model's name on that server, which needs one.
    #[arg(long, global = true, value_name = "NAME", env = "PARALLAX_LLM_MODEL")]
    pub llm_model: Option<String>,
    /// Recorded replies (JSONL), taken instead of asking a model.
    #[arg(long, global = true, value_name = "FILE", env = "PARALLAX_REPLIES")]
    pub replies: Option<PathBuf>,
    /// Answers of a reader (JSONL: question, k, answer), read instead of asking a model.
    #[arg(long, global = true, value_name = "FILE")]
    pub answers: Option<PathBuf>,
    /// A model that reads: a folder with an extractive reader (reader.json, reader.onnx) or a T5 for Fusion-in-Decoder (config.json).
    #[arg(long, global = true, value_name = "PATH", conflicts_with = "answers")]
    pub reader: Option<PathBuf>,
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
    /// What is set for the interface: a TOML file, that of `parallax config path` if not given.
    #[arg(long, global = true, value_name = "FILE", env = "PARALLAX_CONFIG")]
    pub config: Option<PathBuf>,
    /// How the interface looks.
    #[arg(long, global = true, value_enum, value_name = "NAME")]
    pub theme: Option<Look>,
    /// No colours; short for --theme mono.
    #[arg(long, global = true, conflicts_with = "theme")]
    pub no_color: bool,
    /// Plain ASCII instead of geometric marks.
    #[arg(long, global = true)]
    pub ascii: bool,
    /// The names of what was typed, and neither taken from the environment nor the default.
    #[arg(skip)]
    pub typed: Vec<String>,
}

impl Common {
    /// Whether an option was typed, by the name of its field.
    pub fn is_typed(&self, name: &str) -> bool {
        self.typed.iter().any(|typed| typed == name)
    }

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
            detector: self.detector.clone(),
            threshold: self.detector_threshold.clone(),
            data_dir: data_dir.unwrap_or_else(|| std::env::temp_dir().join("parallax")),
            llm: self.llm.clone().map(|llm| (llm, self.llm_model.clone().unwrap_or_default())),
            replies: self.replies.clone(),
            answers: self.answers.clone(),
            reader: self.reader.clone(),
            journals: self.journals.clone(),
            annotator: self.annotator.clone(),
            annotations,
        }
    }

    /// The option that names what reads and nothing else, if one was given.
    pub fn reads(&self) -> Option<&'static str> {
        let named = [("--answers", &self.answers), ("--reader", &self.reader)];
        named.into_iter().find(|(_, path)| path.is_some()).map(|(option, _)| option)
    }

    /// The lanes that were named.
    pub fn recipes_given(&self) -> Vec<Recipe> {
        self.lanes.iter().chain(&self.lane).cloned().collect()
    }

    /// The lanes, left to right.
    pub fn recipes(&self) -> Vec<Recipe> {
        let all = self.recipes_given();
        if all.is_empty() { Recipe::defaults() } else { all }
    }

    /// Which labels count: the carried sample starts on the model's, everything else on the most trusted.
    pub fn source(&self) -> LabelSource {
        let default = if self.corpus.is_none() { LabelSource::Model } else { LabelSource::Auto };
        self.label_source.unwrap_or(default)
    }

    /// What is set for the interface, and what stands above it: an option, then NO_COLOR, then the file.
    pub fn configuration(&self) -> Source {
        let home = directories::ProjectDirs::from("", "", "parallax");
        let usual = home.map(|home| home.config_dir().join("config.toml"));
        let plain = self.no_color || std::env::var_os("NO_COLOR").is_some_and(|set| !set.is_empty());
        Source {
            path: self.config.clone().or(usual),
            named: self.config.is_some(),
            look: self.theme.or(plain.then_some(Look::Mono)),
            ascii: self.ascii,
        }
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
    /// Keep corpora: import them, make them from the web, list them, look at them, remove them, give them vectors.
    #[command(subcommand)]
    Corpus(super::corpus::CorpusCommand),
    /// List, fetch and check encoders.
    Models(Models),
    /// Play keys into the explorer and print the frame.
    Frame(Frame),
    /// Play a recorded session in the explorer; without one, a tour of about two minutes.
    Demo(Demo),
    /// What is set for the interface: check it, show it, or say where it is.
    Config {
        /// What to do.
        #[command(subcommand)]
        action: super::config::ConfigAction,
    },
    /// Print completions for a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Print the manual page of the program, or of one of its commands, for `man -l -`.
    Man {
        /// The command's words, such as `annotate agree`.
        command: Vec<String>,
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
    #[arg(required = true)]
    pub question: Vec<String>,
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
    /// A TSV with a header naming at least `document` and `perspective`, perhaps `id`, `title` and `label`; without `id` the pairs are
    /// numbered from 1.
    #[arg(long, value_name = "FILE")]
    pub pairs: PathBuf,
    /// Compare with another detector, named as --detector names one: how far the two agree, and the pairs, disagreements first.
    #[arg(long, value_name = "WHAT")]
    pub against: Option<Choice>,
    /// How to print it.
    #[arg(long, value_enum, default_value_t = Format::Tsv)]
    pub format: Format,
}

/// `parallax demo`
#[derive(Debug, clap::Args)]
pub struct Demo {
    /// A session, as `R` in the explorer records it. It opens what it was recorded with, so that the options that say what to open are
    /// refused. Where it asks an engine or a language model, name the same --lane, or --detector llm, and --llm.
    pub file: Option<PathBuf>,
    /// How many times as fast as it was.
    #[arg(long, default_value_t = 1.0, value_parser = pace, value_name = "TIMES")]
    pub speed: f64,
    /// Save it as a moving picture instead of playing it: .svg.
    #[arg(long, value_name = "FILE", conflicts_with = "speed")]
    pub out: Option<PathBuf>,
    /// Seconds to wait for all lanes and verdicts of the picture.
    #[arg(long, default_value_t = 600)]
    pub timeout: u64,
}

fn pace(text: &str) -> Result<f64, String> {
    let pace = text.parse().ok().filter(|pace| (0.125..=64.0).contains(pace));
    pace.ok_or_else(|| "expected a number from 0.125 to 64, such as 2 for twice as fast".into())
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
