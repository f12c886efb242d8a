//! Options that several commands share.

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::ValueEnum;
use clap::builder::{NonEmptyStringValueParser, PossibleValue, TypedValueParser};

use crate::api::cache_folder;
use crate::detect::{Choice, LabelSource};
use crate::engine::recipe::{RecipeError, escaped};
use crate::engine::{Opening, Recipe};
use crate::expand::Expand;
use crate::project::Variant;
use crate::report::safe;
use crate::tui::config::Source;
use crate::tui::theme::Look;

/// The groups of options in the help.
const CORPUS: &str = "Corpus and questions";
const JUDGED: &str = "Labels and detectors";
const LANES: &str = "Lanes";
const MODELS: &str = "Language models and readers";
const PROGRAM: &str = "The program";

/// Options that every command understands.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Common {
    /// The passages: a file (.jsonl, .csv, .tsv, or results of rank_llm or BERDS), a folder of texts, or a name from `parallax
    /// corpus list`; a task of PIR's JSON as FILE:TASK brings its queries and its gold. Default: the passages in the --lane run:FILE files, otherwise the built-in sample.
    #[arg(help_heading = CORPUS, long, global = true, value_name = "PATH|NAME", env = "PARALLAX_CORPUS")]
    pub corpus: Option<PathBuf>,
    /// The question set: BERDS, BEIR or PIR JSONL, a TSV of id and question, or TREC topics; `eval` averages over several.
    /// Default: the questions of the sample, if it is the corpus.
    #[arg(help_heading = CORPUS, long, global = true, value_name = "FILE", env = "PARALLAX_QUESTIONS")]
    pub questions: Vec<PathBuf>,
    /// Labels: a TSV table, TREC diversity qrels or Perspectrum's JSON; a missing label means no (complete) or unjudged (positives). Or
    /// BERDS results with the verdicts NAME-preds of a judge, who is then named as their source. Default: the labels of the sample, if it is
    /// the corpus.
    #[arg(
        help_heading = JUDGED,
        long,
        global = true,
        value_name = "FILE[:complete|:positives|:preds=NAME]",
        env = "PARALLAX_LABELS"
    )]
    pub labels: Vec<String>,
    /// The detector: builtin; a name that `models list --detectors` prints; a cross-encoder for NLI or stance, or a T5
    /// that answers 1 or 0, as path:FOLDER or hf:ORG/MODEL, with @supports=CLASS if its class names do not say which one means support; llm, the model of --llm; or file:PATH, verdicts made elsewhere. `detect` takes several.
    /// Default: builtin.
    #[arg(help_heading = JUDGED, long, global = true, value_name = "WHAT")]
    pub detector: Vec<Choice>,
    /// Which classes of a detector from path: or hf: mean support and opposition, if its own names do not show it: SUPPORTS or
    /// SUPPORTS,OPPOSES.
    #[arg(help_heading = JUDGED, long, global = true, value_name = "CLASSES")]
    pub classes: Option<String>,
    /// A threshold fitted on labels (annotate agree --refit). Default: the detector's own.
    #[arg(help_heading = JUDGED, long, global = true, value_name = "FILE")]
    pub detector_threshold: Option<PathBuf>,
    /// Which labels count: one of the values, or the NAME of the judge in --labels FILE:preds=NAME. Default: auto.
    #[arg(help_heading = JUDGED, long, global = true, value_parser = CountedParser, value_name = "SOURCE")]
    pub label_source: Option<Counted>,
    /// A statement that answers the question; repeat for more. Default: those of the question set, otherwise two made by rules.
    #[arg(help_heading = CORPUS, long = "perspective", global = true, value_name = "TEXT")]
    pub perspectives: Vec<String>,
    /// A lane, such as bm25@k1=1.2,b=.75, minilm+mmr@.75,sim=uae-large, bm25+rerank@ms-marco-minilm,depth=50, nomic-v1.5@dim=256,
    /// contriever, splade-v3, hf:ORG/MODEL, path:FOLDER, milvus:URL/COLLECTION, os:URL/INDEX or run:FILE (a finished run); repeat for more. Default: bm25,
    /// minilm and hybrid.
    #[arg(help_heading = LANES, long = "lane", global = true, value_name = "RECIPE")]
    pub lane: Vec<Recipe>,
    /// Lanes by name, separated by commas: bm25,minilm,hybrid,run:FILE.
    #[arg(help_heading = LANES, long, global = true, value_delimiter = ',', value_name = "NAMES")]
    pub lanes: Vec<Recipe>,
    /// A language model that expands queries, reads, and judges with --detector llm: the address of an OpenAI-compatible
    /// server, such as http://localhost:11434/v1, or gguf:FILE. The server's key is read from PARALLAX_LLM_KEY. Default: none.
    #[arg(help_heading = MODELS, long, global = true, value_name = "URL|gguf:FILE", env = "PARALLAX_LLM")]
    pub llm: Option<String>,
    /// The name of the model on the server of --llm. Recorded replies of other models do not count then. Default: any model's.
    #[arg(help_heading = MODELS, long, global = true, value_name = "NAME", env = "PARALLAX_LLM_MODEL")]
    pub llm_model: Option<String>,
    /// How many requests to the language model run at once, from 1 to 64. Default: 4.
    #[arg(help_heading = MODELS, long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub at_once: Option<u16>,
    /// A prompt in place of a built-in one: a file like those that `parallax prompts` prints, or a name that it lists, such as
    /// detect-one-shot; repeat for more.
    #[arg(help_heading = MODELS, long = "prompt", global = true, value_name = "FILE|NAME")]
    pub prompts: Vec<PathBuf>,
    /// Send keys, tokens and passwords to this host in clear text if its address begins with http://; repeat for more. Default: none; they
    /// go over https:// or to this machine.
    #[arg(help_heading = MODELS, long, global = true, value_name = "HOST")]
    pub allow_insecure: Vec<String>,
    /// Contact no server: fetch nothing, ask no language model or search engine elsewhere, and look for none on this machine.
    #[arg(help_heading = MODELS, long, global = true)]
    pub offline: bool,
    /// Recorded replies (JSONL) instead of a language model. Default: those of the sample, if it is the corpus.
    #[arg(help_heading = MODELS, long, global = true, value_name = "FILE", env = "PARALLAX_REPLIES")]
    pub replies: Option<PathBuf>,
    /// Recorded answers of a reader (JSONL: question, k, answer) instead of a model.
    #[arg(help_heading = MODELS, long, global = true, value_name = "FILE")]
    pub answers: Option<PathBuf>,
    /// A model that reads: a folder with an extractive reader (reader.json, reader.onnx) or a T5 for Fusion-in-Decoder
    /// (config.json).
    #[arg(help_heading = MODELS, long, global = true, value_name = "PATH", conflicts_with = "answers")]
    pub reader: Option<PathBuf>,
    /// A journal of labels by hand, or a folder of them such as a project; repeat for more. Default: the journals of this corpus.
    #[arg(help_heading = JUDGED, long = "journal", global = true, value_name = "FILE|FOLDER")]
    pub journals: Vec<PathBuf>,
    /// Your name as an annotator.
    #[arg(help_heading = JUDGED, long, global = true, value_name = "NAME", env = "PARALLAX_ANNOTATOR")]
    pub annotator: Option<String>,
    /// How many passages at the top of a list count.
    #[arg(help_heading = LANES, short, global = true, value_parser = clap::value_parser!(u16).range(1..=100), default_value_t = 5)]
    pub k: u16,
    /// The folder for indices, vectors and verdicts. Default: the cache folder of your system.
    #[arg(help_heading = PROGRAM, long, global = true, value_name = "FOLDER", env = "PARALLAX_DATA_DIR")]
    pub data_dir: Option<PathBuf>,
    /// Write a log to this file; RUST_LOG says what it holds, such as parallax=debug. Default: parallax.log in the data folder if
    /// RUST_LOG is set, otherwise none.
    #[arg(help_heading = PROGRAM, long, global = true, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// The configuration of the explorer, a TOML file. Default: the file that `parallax config path` names.
    #[arg(help_heading = PROGRAM, long, global = true, value_name = "FILE", env = "PARALLAX_CONFIG")]
    pub config: Option<PathBuf>,
    /// The colours of the explorer. Default: the theme of the configuration.
    #[arg(help_heading = PROGRAM, long, global = true, value_enum, value_name = "NAME")]
    pub theme: Option<Look>,
    /// Use no colours; short for --theme mono.
    #[arg(help_heading = PROGRAM, long, global = true, conflicts_with = "theme")]
    pub no_color: bool,
    /// Draw marks in plain ASCII instead of geometric shapes.
    #[arg(help_heading = PROGRAM, long, global = true)]
    pub ascii: bool,
    /// Print what changed as sentences instead of drawing frames, for screen readers; the keys stay the same.
    #[arg(help_heading = PROGRAM, long, global = true)]
    pub linear: bool,
    /// Begin with two lanes in large, for a projector; `z` in the explorer shows all lanes again.
    #[arg(help_heading = PROGRAM, long, global = true)]
    pub present: bool,
    /// The names of the options that were typed, without those from the environment or by default.
    #[arg(skip)]
    pub typed: Vec<String>,
}

impl Common {
    /// Whether an option was typed. `name` is the name of its field.
    pub fn is_typed(&self, name: &str) -> bool {
        self.typed.iter().any(|typed| typed == name)
    }

    /// The options that the engine opens a setup with.
    pub fn opening(&self) -> Opening {
        let home = directories::ProjectDirs::from("", "", "parallax");
        // A cache may be deleted to make room. Labels by hand cannot be made again, so they have another folder.
        let own = home.as_ref().filter(|_| self.data_dir.is_none());
        let annotations = own.map(|home| home.data_dir().join("annotate"));
        Opening {
            corpus: self.corpus.clone(),
            questions: self.questions.first().cloned(),
            labels: self.labels.first().cloned(),
            runs: self.recipes().iter().filter_map(Recipe::run).cloned().collect(),
            detector: self.detector(),
            threshold: self.detector_threshold.clone(),
            data_dir: self.data_dir.clone().unwrap_or_else(cache_folder),
            llm: self.llm.clone().map(|llm| (llm, self.llm_model.clone().unwrap_or_default())),
            llm_model: self.llm_model.clone(),
            offline: self.offline,
            at_once: self.at_once.map(usize::from),
            replies: self.replies.clone(),
            prompts: self.prompts.clone(),
            answers: self.answers.clone(),
            reader: self.reader.clone(),
            journals: self.journals.clone(),
            annotator: self.annotator.clone(),
            annotations,
        }
    }

    /// Checks that servers may be contacted, for a command that needs one.
    ///
    /// # Errors
    /// `--offline` was given.
    pub fn online(&self, what: &str) -> anyhow::Result<()> {
        anyhow::ensure!(!self.offline, "--offline: {what} needs a server; leave it out");
        Ok(())
    }

    /// The detector: the first one, if several are named.
    pub fn detector(&self) -> Choice {
        self.detectors().into_iter().next().unwrap_or_default()
    }

    /// The detectors that the user named, with the classes of `--classes`.
    pub fn detectors(&self) -> Vec<Choice> {
        let with_classes = |choice: &Choice| match (choice.clone(), &self.classes) {
            (Choice::Custom { source, supports: None }, Some(classes)) => {
                Choice::Custom { source, supports: Some(classes.clone()) }
            }
            (choice, _) => choice,
        };
        self.detector.iter().map(with_classes).collect()
    }

    /// The typed option that names a reader, if any.
    pub fn reads(&self) -> Option<&'static str> {
        let named = [("--answers", &self.answers), ("--reader", &self.reader)];
        named.into_iter().find(|(_, path)| path.is_some()).map(|(option, _)| option)
    }

    /// The lanes that the user named, if any.
    pub fn named_recipes(&self) -> Vec<Recipe> {
        self.lanes.iter().chain(&self.lane).cloned().collect()
    }

    /// The lanes, from left to right.
    pub fn recipes(&self) -> Vec<Recipe> {
        let all = self.named_recipes();
        if all.is_empty() { Recipe::defaults() } else { all }
    }

    /// The labels that count. Default: the most trusted of each passage.
    pub fn source(&self) -> LabelSource {
        self.label_source.as_ref().map(Counted::source).unwrap_or_default()
    }

    /// Checks that every label file has the verdicts of the judge that --label-source names, if it names one.
    ///
    /// # Errors
    /// There are no such verdicts.
    pub fn check_judge(&self) -> anyhow::Result<()> {
        let Some(Counted::Judge(name)) = &self.label_source else { return Ok(()) };
        let judge = |labels: &String| labels.rsplit_once(":preds=").map(|(_, judge)| judge.to_owned());
        let is_own = |judge: &String| judge == name || format!("{judge}-preds") == *name;
        let judges: Vec<Option<String>> = self.labels.iter().map(judge).collect();
        if !judges.is_empty() && judges.iter().all(|judge| judge.as_ref().is_some_and(is_own)) {
            return Ok(());
        }
        let there = match judges.iter().flatten().map(String::as_str).collect::<Vec<_>>().join(", ") {
            none if none.is_empty() => "no --labels names a judge".to_owned(),
            named => format!("--labels names {named}"),
        };
        anyhow::bail!(
            "--label-source {name}: expected auto, model, gold, human, or a judge whose verdicts all --labels are \
             (--labels FILE:preds={name}); {there}"
        )
    }

    /// The source of the explorer's configuration. Options override NO_COLOR, which overrides the file.
    pub fn configuration(&self) -> Source {
        let home = directories::ProjectDirs::from("", "", "parallax");
        let usual = home.map(|home| home.config_dir().join("config.toml"));
        let plain = self.no_color || std::env::var_os("NO_COLOR").is_some_and(|set| !set.is_empty());
        Source {
            path: self.config.clone().or(usual),
            named: self.config.is_some(),
            look: self.theme.or(plain.then_some(Look::Mono)),
            ascii: self.ascii || self.linear,
        }
    }

    /// The marks to print.
    pub fn glyphs(&self) -> crate::report::marks::Glyphs {
        use crate::report::marks::Glyphs;
        if self.ascii || self.linear { Glyphs::Ascii } else { Glyphs::Shapes }
    }
}

/// Which labels count, as the command line names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Counted {
    /// A source.
    Source(LabelSource),
    /// The judge whose verdicts are the labels; they count as `gold` does.
    Judge(String),
}

impl Counted {
    /// The source.
    pub fn source(&self) -> LabelSource {
        match self {
            Counted::Source(source) => *source,
            Counted::Judge(_) => LabelSource::Gold,
        }
    }
}

/// Reads [`Counted`], and lists the sources in the help.
#[derive(Clone)]
pub struct CountedParser;

impl TypedValueParser for CountedParser {
    type Value = Counted;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<Counted, clap::Error> {
        let text = NonEmptyStringValueParser::new().parse_ref(command, arg, value)?;
        Ok(match LabelSource::from_str(&text, false) {
            Ok(source) => Counted::Source(source),
            Err(_) => Counted::Judge(text),
        })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(LabelSource::value_variants().iter().filter_map(ValueEnum::to_possible_value)))
    }
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

/// How several sets are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Layout {
    /// The average, then a table for each set.
    #[default]
    Stacked,
    /// One table.
    Wide,
}

/// Switches for all lanes.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct SwitchArgs {
    /// Reorder by MMR with this λ, from 0 (diverse) to 1 (relevant), and options such as .75,sim=uae-large,norm=dataset. Default: off.
    #[arg(help_heading = LANES, long, value_name = "LAMBDA", conflicts_with = "diversify")]
    pub mmr: Option<String>,
    /// Expand the query: perspectives, keqe, csqe, rm3, grf, q2d or q2d-prf, with options such as csqe@answers=0,llm=NAME. Default:
    /// off.
    #[arg(help_heading = LANES, long, value_name = "KIND")]
    pub expand: Option<Expand>,
    /// Project the query: pap, pap-plus, cast, add, concat, dual-sum or tri-sum. Default: off.
    #[arg(help_heading = LANES, long, value_name = "KIND")]
    pub pap: Option<Variant>,
    /// The statement to project toward: its number from 1, or =TEXT. Default: 2.
    #[arg(help_heading = LANES, long, value_name = "N", requires = "pap")]
    pub toward: Option<String>,
    /// Reorder by the verdicts: xquad or pm2, with @λ if you like. Default: off.
    #[arg(help_heading = LANES, long, value_name = "KIND")]
    pub diversify: Option<String>,
}

impl SwitchArgs {
    /// The recipes with these switches added, unless they have their own. A lane that cannot use a switch goes without it, with a
    /// message.
    ///
    /// # Errors
    /// The value of a switch is not valid, or no lane can use it.
    pub fn apply(&self, recipes: Vec<Recipe>) -> anyhow::Result<Vec<Recipe>> {
        let mut wanted: Vec<(&str, String)> = Vec::new();
        wanted.extend(self.mmr.as_ref().map(|lambda| ("--mmr", format!("mmr@{lambda}"))));
        wanted.extend(self.expand.as_ref().map(|expand| ("--expand", expand.to_string())));
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
            let given = given.map_err(|error| anyhow::anyhow!("{option}: {}", error.problem()))?;
            let mut without = Vec::new();
            for recipe in &mut switched {
                match format!("{}+{name}", recipe.plain()).parse::<Recipe>() {
                    Ok(_) => recipe.switches = recipe.switches.clone().or(&given.switches),
                    Err(error) => without.push((recipe.to_string(), error.problem().to_owned())),
                }
            }
            match without.first() {
                Some((_, problem)) if without.len() == switched.len() => {
                    anyhow::bail!("{option}: no lane can use it: {problem}")
                }
                Some(_) => {
                    let lanes: Vec<&str> = without.iter().map(|(lane, _)| lane.as_str()).collect();
                    writeln!(safe::stderr(), "parallax: {option} does not apply to {}", lanes.join(", "))?;
                }
                None => {}
            }
        }
        Ok(switched)
    }
}

/// A switch of which one parameter is chosen on a development set.
#[derive(Clone, Debug, PartialEq)]
pub struct Tune {
    /// The name in a recipe.
    pub switch: String,
    /// The parameters to choose from.
    pub values: Vec<String>,
}

impl FromStr for Tune {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let (switch, values) = text.split_once('=').unwrap_or((text, ""));
        let values: Vec<String> =
            values.split(',').map(str::trim).filter(|value| !value.is_empty()).map(str::to_owned).collect();
        if values.is_empty() {
            anyhow::bail!("expected a switch with its parameters, such as mmr=.5,.75,.9; found `{text}`");
        }
        let switch = switch.trim().to_owned();
        // Any lane with vectors takes all switches that have one number.
        for value in &values {
            let wrong = |error: RecipeError| anyhow::anyhow!("`{switch}={value}`: {}", error.problem());
            format!("hybrid+{switch}@{value}").parse::<Recipe>().map_err(wrong)?;
        }
        Ok(Tune { switch, values })
    }
}

/// A question set with its corpus and labels.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SetOf {
    /// Its name.
    pub name: String,
    /// A file, a folder or a name of the library; `None` for the sample.
    pub corpus: Option<PathBuf>,
    /// The questions.
    pub questions: Option<PathBuf>,
    /// The label file with its declaration.
    pub labels: Option<String>,
    /// Graded judgments.
    pub qrels: Option<PathBuf>,
}

impl FromStr for SetOf {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let mut set = SetOf::default();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            match part.split_once('=').map(|(key, value)| (key.trim(), value.trim())) {
                Some(("name", value)) if !value.is_empty() => set.name = value.into(),
                Some(("corpus", value)) if !value.is_empty() => set.corpus = Some(value.into()),
                Some(("questions", value)) if !value.is_empty() => set.questions = Some(value.into()),
                Some(("labels", value)) if !value.is_empty() => set.labels = Some(value.into()),
                Some(("qrels", value)) if !value.is_empty() => set.qrels = Some(value.into()),
                _ => anyhow::bail!(
                    "expected name=, corpus=, questions=, labels= or qrels= with a value, found `{part}`"
                ),
            }
        }
        if set.name.is_empty() {
            anyhow::bail!("expected name=NAME among the parts of `{text}`");
        }
        Ok(set)
    }
}

impl SetOf {
    /// The corpus's name in a table.
    pub fn corpus_name(&self) -> String {
        match &self.corpus {
            Some(path) => set_name(path),
            None => "sample".into(),
        }
    }
}

/// A set's name: the names of its folder and file, because question files often have the same name.
pub fn set_name(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    match path.parent().and_then(Path::file_name) {
        Some(folder) => format!("{}/{stem}", folder.to_string_lossy()),
        None => stem.into_owned(),
    }
}
