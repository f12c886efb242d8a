//! The commands that show the interface or concern it: `explore`, `frame`, `demo` and `config`.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::{Subcommand, ValueEnum};

use crate::cli::options::{Common, Counted};
use crate::detect::{Choice, LabelSource};
use crate::engine::Recipe;
use crate::input::{Expected, check_output, excerpt};
use crate::report::safe;
use crate::signals::exit_code;
use crate::tui;
use crate::tui::config::{Problems, Source};
use crate::tui::export::film::Film;
use crate::tui::export::{SCALE, check_film, write_film};
use crate::tui::query_history::QueryHistory;
use crate::tui::session::{self, Head};
use crate::tui::theme::{Depth, Look};

/// `parallax demo`
#[derive(Debug, clap::Args)]
pub struct Demo {
    /// A session recorded with `R` in the explorer. It opens what it was recorded with. If it asks a Milvus or OpenSearch
    /// lane or a language model, allow that by repeating its --lane, or --detector llm and --llm. Default: the built-in tour.
    pub file: Option<PathBuf>,
    /// Playback speed, from 0.125 to 64; 2 is twice as fast.
    #[arg(long, default_value_t = 1.0, value_parser = speed, value_name = "TIMES")]
    pub speed: f64,
    /// Save it as an animated .svg picture instead of playing it.
    #[arg(long, value_name = "FILE", conflicts_with = "speed")]
    pub out: Option<PathBuf>,
    /// With --out: give up after this many seconds in total.
    #[arg(long, default_value_t = 600)]
    pub timeout: u64,
}

fn speed(text: &str) -> Result<f64, Expected> {
    let speed = text.parse().ok().filter(|speed| (0.125..=64.0).contains(speed));
    speed.ok_or_else(|| "a number from 0.125 to 64, such as 2 for twice as fast".into())
}

fn scale(text: &str) -> Result<f32, Expected> {
    let scale = text.parse().ok().filter(|scale| (0.5..=8.0).contains(scale));
    scale.ok_or_else(|| "a number from 0.5 to 8, such as 1 for a small picture".into())
}

/// `parallax frame`
#[derive(Debug, clap::Args)]
pub struct Frame {
    /// The columns and rows of the frame.
    #[arg(long, default_value = "140x40", value_name = "WxH")]
    pub size: crate::tui::Size,
    /// The keys, in Vim's notation: `Should zoos be banned?<Enter>`.
    #[arg(long, default_value = "")]
    pub keys: String,
    /// Print the styles too.
    #[arg(long)]
    pub style: bool,
    /// Save the frame to this file instead of printing it: .svg, .png, .html or .txt.
    #[arg(long, value_name = "FILE", conflicts_with = "style")]
    pub out: Option<PathBuf>,
    /// Pixels per unit of a .png, from 0.5 to 8; a cell is 10 units wide and 20 high.
    #[arg(long, default_value_t = SCALE, value_parser = scale, value_name = "PIXELS")]
    pub scale: f32,
    /// How many seconds to wait for the lanes and verdicts.
    #[arg(long, default_value_t = 600)]
    pub timeout: u64,
}

/// Where queries are saved, below the data folder.
const HISTORY: &str = "asked.jsonl";

/// Opens the explorer, and waits until the user leaves it.
///
/// # Errors
/// There is no terminal, or the configuration is not valid.
pub fn run(common: &Common, question: &[String]) -> anyhow::Result<ExitCode> {
    if !(io::stdout().is_terminal() || common.linear) || !io::stdin().is_terminal() {
        bail!(
            "the explorer needs a terminal; without one, use `parallax search QUESTION` or `parallax frame`"
        );
    }
    Ok(ended_by(tui::run(with_history(start(common, question, depth())?, common), None)?))
}

/// The exit code: success if the user left, 128 plus its number after a signal.
fn ended_by(ended: tui::Ended) -> ExitCode {
    match ended {
        tui::Ended::Quit => ExitCode::SUCCESS,
        tui::Ended::Signal(signal) => ExitCode::from(exit_code(signal)),
    }
}

/// Adds the history of queries. If no question, statement or lane is given, the last ones are restored.
fn with_history(mut start: tui::Start, common: &Common) -> tui::Start {
    let whole = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone()).display().to_string();
    // If no corpus is named, the passages of finished runs are the corpus.
    let runs: Vec<String> = start.opening.runs.iter().map(|run| whole(&run.path)).collect();
    let runs = (!runs.is_empty()).then(|| runs.join(" "));
    let corpus = start.opening.corpus.as_ref().map(whole).or(runs).unwrap_or_else(|| "sample".into());
    let mut history = QueryHistory::read(start.opening.data_dir.join(HISTORY), corpus);
    let free =
        start.question.is_empty() && start.perspectives.is_empty() && common.named_recipes().is_empty();
    if let Some((question, lanes)) = history.last().filter(|_| free) {
        (start.question, start.lanes) = (question, lanes);
        history.recalled = true;
    }
    if let Some(source) = history.last_source().filter(|_| !common.is_typed("label_source")) {
        start.source = source;
    }
    // A theme of the configuration or of an option comes first.
    start.config.look = start.config.look.or(history.last_theme());
    tui::Start { history: Some(history), ..start }
}

/// The number of colours that this terminal supports, according to the environment.
pub fn depth() -> Depth {
    let set = |name| std::env::var(name).ok();
    Depth::of_terminal(
        set("COLORTERM").as_deref(),
        set("TERM").as_deref(),
        std::env::var_os("WT_SESSION").is_some(),
    )
}

/// The initial state of the interface.
///
/// # Errors
/// The configuration is not valid.
pub fn start(common: &Common, question: &[String], depth: Depth) -> Result<tui::Start, Problems> {
    let config_from = common.configuration();
    Ok(tui::Start {
        opening: common.opening(),
        lanes: common.recipes(),
        k: usize::from(common.k),
        source: common.source(),
        question: question.join(" "),
        perspectives: common.perspectives.clone(),
        history: None,
        config: config_from.load()?,
        config_from,
        depth,
        linear: common.linear,
        home: directories::UserDirs::new().map(|dirs| dirs.home_dir().to_owned()),
        presenting: common.present,
    })
}

/// Draws one frame after the keys, and prints or saves it.
///
/// # Errors
/// The keys are not in Vim's notation, the configuration is not valid, or the lanes did not finish in time.
pub fn frame(common: &Common, args: &Frame) -> anyhow::Result<ExitCode> {
    let script = tui::script::parse(&args.keys)?;
    let start = start(common, &[], Depth::Millions)?;
    args.out.as_deref().map(check_output).transpose()?;
    let frame = tui::play(start, args.size, &script, Duration::from_secs(args.timeout))?;
    match &args.out {
        Some(path) => tui::export::write(path, &frame, args.scale)?,
        None => safe::stdout().write_all(frame.dump(args.style).as_bytes())?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Plays a session, or saves it as a moving picture.
///
/// # Errors
/// The file is not a session or needs a server that the user did not name, there is no terminal, or the configuration is not valid.
pub fn demo(common: &Common, args: &Demo) -> anyhow::Result<ExitCode> {
    let session = match &args.file {
        Some(file) => session::read(file)?,
        None => session::tour()?,
    };
    let common =
        session_options(common, &session.head, args.file.as_deref().unwrap_or(Path::new("the tour")))?;
    let start = |depth| start(&common, std::slice::from_ref(&session.head.question), depth);
    if let Some(path) = &args.out {
        // Before the session is played, which takes minutes.
        check_film(path)?;
        check_output(path)?;
        let patience = Duration::from_secs(args.timeout);
        let mut film = Film::default();
        tui::film(start(Depth::Millions)?, &session, patience, |frame, lasts| film.take(frame, lasts))?;
        write_film(path, film)?;
        return Ok(ExitCode::SUCCESS);
    }
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        bail!(
            "a session is played in a terminal; without one, save it as a moving picture with --out FILE.svg"
        );
    }
    Ok(ended_by(tui::run(start(depth())?, Some((&session, args.speed)))?))
}

/// The settings that a session holds itself: the names of their fields and options.
const SET_BY_SESSION: [(&str, &str); 6] = [
    ("corpus", "--corpus"),
    ("questions", "--questions"),
    ("labels", "--labels"),
    ("label_source", "--label-source"),
    ("perspectives", "--perspective"),
    ("k", "-k"),
];

/// The options that open what the session was recorded with. A theme that the viewer names overrides the session's.
///
/// The file may come from anybody. So it may use other machines or a language model only if the viewer typed their options too.
fn session_options(common: &Common, head: &Head, file: &Path) -> anyhow::Result<Common> {
    let wrong = anyhow::Error::msg::<String>;
    let lanes = head.lanes.iter().map(|lane| lane.parse().map_err(|error| wrong(format!("{lane}: {error}"))));
    let lanes: Vec<Recipe> = lanes.collect::<Result<_, _>>()?;
    let detector: Choice = head.detector.as_deref().unwrap_or("builtin").parse()?;
    if let Some((_, option)) = SET_BY_SESSION.into_iter().find(|(name, _)| common.is_typed(name)) {
        bail!(
            "{option}: a session opens what it was recorded with; leave it out, or change the first line of the file"
        );
    }
    check_servers(common, &lanes, &detector, file)?;
    let theme = head.theme.as_deref().map(|name| Look::from_str(name, false).map_err(wrong)).transpose()?;
    let takes_theme = common.theme.is_none() && !common.no_color && common.configuration().look.is_none();
    Ok(Common {
        corpus: head.corpus.clone(),
        questions: head.questions.iter().cloned().collect(),
        labels: head.labels.iter().cloned().collect(),
        detector: vec![detector],
        label_source: Some(Counted::Source(LabelSource::from_str(&head.label_source, false).map_err(wrong)?)),
        perspectives: head.perspectives.clone(),
        lane: lanes,
        lanes: Vec::new(),
        // A model named only in the environment is for the user's own queries, not for those of a file.
        llm: common.llm.clone().filter(|_| common.is_typed("llm")),
        llm_model: common.llm_model.clone().filter(|_| common.is_typed("llm_model")),
        k: head.k,
        theme: if takes_theme { theme } else { common.theme },
        ..common.clone()
    })
}

/// Checks that the viewer named every server that lanes and detector use, and that the named lanes and detector are the session's.
fn check_servers(common: &Common, lanes: &[Recipe], detector: &Choice, file: &Path) -> anyhow::Result<()> {
    let named = common.named_recipes();
    let file = file.display();
    if let Some(other) = named.iter().find(|named| lanes.iter().all(|lane| lane.base != named.base)) {
        bail!("--lane {other}: {file} has no such lane, and a session opens what it was recorded with");
    }
    let typed = common.is_typed("detector");
    let own = common.detector();
    if typed && own != *detector {
        bail!("--detector {own}: {file} was recorded with {detector}; leave it out");
    }
    let unnamed = |lane: &&Recipe| named.iter().all(|named| lane.base != named.base);
    if let Some(lane) = lanes.iter().filter(|lane| lane.base.remote().is_some()).find(unnamed) {
        let found = excerpt(&lane.to_string());
        bail!(
            "{file}:1: the lane {found} asks another machine, which would get your questions and its PARALLAX_… \
             credentials; if you trust it, repeat it with --lane"
        );
    }
    if *detector == Choice::Llm && !typed {
        bail!(
            "{file}:1: the session judges with a language model (`llm`); to allow yours, add --detector llm"
        );
    }
    Ok(())
}

/// What to do with the configuration.
#[derive(Debug, Subcommand)]
pub enum ConfigAction {
    /// Check the file: print every problem on a line; exit with 1 if there is one.
    Check {
        /// The file to check. Default: the one the explorer would read.
        file: Option<PathBuf>,
    },
    /// Print the path of the file.
    Path,
    /// Print all settings as a file; comments mark those that differ from the defaults.
    Show,
}

/// Checks or shows the configuration, or prints its path.
///
/// # Errors
/// The system has no folder for configurations, or the configuration to show is not valid.
pub fn config(common: &Common, action: &ConfigAction) -> anyhow::Result<ExitCode> {
    let mut source = common.configuration();
    if let ConfigAction::Check { file: Some(file) } = action {
        (source.path, source.named) = (Some(file.clone()), true);
    }
    let path = source.path.clone().context(
        "this system names no folder for configurations; name a file with --config or PARALLAX_CONFIG",
    )?;
    let mut out = safe::stdout();
    match action {
        ConfigAction::Path => writeln!(out, "{}", path.display())?,
        // If the file does not exist, the defaults are printed.
        ConfigAction::Show => {
            source.named &= path.exists();
            write!(out, "{}", source.load()?)?;
        }
        ConfigAction::Check { .. } => return check(&source, &mut out),
    }
    Ok(ExitCode::SUCCESS)
}

fn check(source: &Source, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    match source.load() {
        Ok(_) => {
            let path = source.path.clone().unwrap_or_default();
            let found = if path.exists() { "nothing is wrong" } else { "not found; the defaults apply" };
            writeln!(out, "{}: {found}", path.display())?;
            Ok(ExitCode::SUCCESS)
        }
        Err(problems) => {
            for line in problems.lines() {
                writeln!(out, "{line}")?;
            }
            Ok(ExitCode::from(1))
        }
    }
}
