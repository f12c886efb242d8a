//! Reads and writes recipes.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::base::{Base, Recipe, RunFile};
use super::escape::{escaped, escaped_but, unescaped, unescaped_whole};
use super::switches::{Ask, ByModel, Diversify, Listwise, Mmr, Norm, Project, Rerank, Switches, Toward};
use crate::encode::{Named, Source, registry, reranker};
use crate::expand::{Expand, Kind};
use crate::input;
use crate::measure::trec::RunOrder;
use crate::project::Variant;
use crate::remote::{Place, Remote};
use crate::rerank::POOL;
use crate::retrieve::Fusion;
use crate::retrieve::bm25::Bm25;

/// Why a recipe is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the lane `{recipe}`: {problem}")]
pub struct RecipeError {
    recipe: String,
    problem: String,
}

impl RecipeError {
    /// The problem, without the lane: `expected …`, or why the lane cannot use a switch.
    pub fn problem(&self) -> &str {
        &self.problem
    }
}

impl FromStr for Recipe {
    type Err = RecipeError;

    fn from_str(text: &str) -> Result<Self, RecipeError> {
        let error = |problem: String| RecipeError { recipe: text.to_owned(), problem };
        let wrong = |expected: String| error(format!("expected {expected}"));
        let (first, parts) = first_part(text.trim());
        let base = base(first).map_err(|expected| match Place::kind_of(first.trim()) {
            // A wrong address often holds a password, so the message does not repeat it.
            Some(kind) => RecipeError { recipe: format!("{}…", kind.prefix()), ..wrong(expected) },
            None => wrong(expected),
        })?;
        let mut switches = Switches::default();
        for part in parts.into_iter().flat_map(|parts| parts.split('+')) {
            switches = switch(switches, part).map_err(wrong)?;
        }
        match base.refuses(&switches) {
            Some(reason) => Err(error(reason.to_owned())),
            None => Ok(Recipe { base, switches }),
        }
    }
}

/// Splits a recipe into its retriever and its switches. A run's file may have a recipe's name, with `+` and `@` in it, as
/// `eval trec --write` names files: then a `+` belongs to the path unless only switches follow it.
fn first_part(text: &str) -> (&str, Option<&str>) {
    let split = |at: usize| (&text[..at], Some(&text[at + 1..]));
    let places = || text.match_indices('+').map(|(at, _)| at);
    if text.starts_with(RunFile::PREFIX) && names_file(text.rsplit('+').next().unwrap_or(text)) {
        return (text, None);
    }
    if text.starts_with(RunFile::PREFIX)
        && let Some(last) = places().rfind(|at| names_file(&text[..*at]))
    {
        return split(last);
    }
    places().next().map_or((text, None), split)
}

/// Whether a text ends like the name of a run's file.
fn names_file(text: &str) -> bool {
    const ENDINGS: [&str; 7] = [".run", ".trec", ".txt", ".json", ".jsonl", ".gz", ".zst"];
    let text = text.strip_suffix("@ties=trec-eval").unwrap_or(text);
    ENDINGS.iter().any(|ending| text.ends_with(ending))
}

/// Reads a retriever with its options, an address or a run.
///
/// # Errors
/// What was expected. So in all functions below.
fn base(text: &str) -> Result<Base, String> {
    if let Some(run) = text.trim().strip_prefix(RunFile::PREFIX) {
        return run_file(run).map(Base::Run);
    }
    if Place::kind_of(text.trim()).is_some() {
        // Any other @ belongs to the address.
        let at = text.rfind("@by=").unwrap_or(text.len());
        let (place, options) = (&text[..at], text[at..].trim().trim_start_matches('@'));
        let place = unescaped(place).ok_or("two hexadecimal digits after every %")?;
        let remote = Remote::parse(&place, options).map_err(|error| error.to_string())?;
        return Ok(Base::Remote(Arc::new(remote)));
    }
    let (name, options) = text.trim().split_once('@').unwrap_or((text.trim(), ""));
    match (name.to_ascii_lowercase().as_str(), options) {
        ("bm25", options) => constants(options).map(Base::Bm25),
        ("minilm", "") => Ok(Base::MiniLm),
        ("hybrid", "") => Ok(Base::Hybrid),
        ("minilm" | "hybrid", _) => Err(format!("`{name}` without options of its own")),
        (lower, _) if !lower.contains(':') && registry::model(lower).is_none() => Err(unknown(name)),
        (_, options) => custom(name, options).map(|named| match (named.is_late(), named.sparse()) {
            (true, _) => Base::Late(Arc::new(named)),
            (false, Some(_)) => Base::Sparse(Arc::new(named)),
            (false, None) => Base::Custom(Arc::new(named)),
        }),
    }
}

/// What is expected in place of a name that no lane has.
fn unknown(name: &str) -> String {
    let models = registry::MODELS.iter().map(|entry| entry.name);
    let hint = near(name, ["bm25", "minilm", "hybrid"].into_iter().chain(models));
    format!(
        "bm25, minilm, hybrid, a model that `parallax models list` names, hf:ORG/MODEL, path:FOLDER, milvus:URL/COLLECTION, \
         os:URL/INDEX or run:FILE, then switches such as +mmr@.75{hint}"
    )
}

fn constants(options: &str) -> Result<Bm25, String> {
    let mut constants = Bm25::default();
    for option in options.split(',').filter(|option| !option.is_empty()) {
        let number = |value: &str| value.parse::<f32>().ok().filter(|number| number.is_finite());
        match option.split_once('=').map(|(name, value)| (name.trim(), number(value.trim()))) {
            Some(("k1", Some(k1))) if k1 >= 0.0 => constants.k1 = k1,
            Some(("b", Some(b))) if (0.0..=1.0).contains(&b) => constants.b = b,
            _ => return Err(format!("k1=NUMBER (0 or more) or b=NUMBER (0 to 1), found `{option}`")),
        }
    }
    Ok(constants)
}

/// The names of switches that are offered for a wrong one.
const SWITCHES: [&str; 16] = [
    "ask",
    "ivf",
    "mmr",
    "xquad",
    "pm2",
    "listwise",
    "rerank",
    "perspectives",
    "keqe",
    "csqe",
    "rm3",
    "grf",
    "q2d",
    "q2d-prf",
    "pap",
    "pap-plus",
];

/// `; did you mean …?` with the nearest of the names, if one is near.
fn near<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    input::nearest(name, names).map_or_else(String::new, |near| format!("; did you mean `{near}`?"))
}

/// Adds one switch to those read before.
fn switch(mut switches: Switches, text: &str) -> Result<Switches, String> {
    let (name, options) = text.trim().split_once('@').unwrap_or((text.trim(), ""));
    let name = name.to_ascii_lowercase();
    if name == "ask" {
        return match switches.ask.replace(ask(options)?) {
            None => Ok(switches),
            Some(_) => Err("one ask@N".into()),
        };
    }
    let rerank = match name.as_str() {
        "mmr" => Some(Rerank::Mmr(mmr(options)?)),
        "xquad" => Some(Rerank::Diversify(Diversify::Xquad, weight(options, Switches::BALANCE)?)),
        "pm2" => Some(Rerank::Diversify(Diversify::Pm2, weight(options, Switches::BALANCE)?)),
        "listwise" => Some(Rerank::Listwise(listwise(options)?)),
        "rerank" => Some(Rerank::Model(by_model(options)?)),
        _ => None,
    };
    if let Some(rerank) = rerank {
        return match switches.rerank.replace(rerank) {
            None => Ok(switches),
            Some(_) => Err("one of mmr, xquad, pm2, listwise and rerank".into()),
        };
    }
    if name == "ivf" {
        return match switches.ivf.replace(probes(options)?) {
            None => Ok(switches),
            Some(_) => Err("one ivf@N".into()),
        };
    }
    if let Ok(kind) = name.parse::<Kind>() {
        return match switches.expand.replace(expand(kind, options)?) {
            None => Ok(switches),
            Some(_) => Err("one expansion".into()),
        };
    }
    match name.parse::<Variant>() {
        Ok(variant) if variant != Variant::None => {
            let project = Project { variant, toward: toward(options)? };
            match switches.project.replace(project) {
                None => Ok(switches),
                Some(_) => Err("one projection".into()),
            }
        }
        _ => Err(format!(
            "a switch: ask@3, mmr@.75, xquad@.5, pm2@.5, listwise, rerank@NAME, perspectives, keqe, csqe@answers=0, rm3, grf, q2d, q2d-prf, pap@1, pap-plus@2, ivf@32 …; \
             found `{name}`{}",
            near(&name, SWITCHES)
        )),
    }
}

/// Reads the options of an expansion: `llm=NAME` and numbers.
fn expand(kind: Kind, options: &str) -> Result<Expand, String> {
    let mut expand = Expand::from(kind);
    for option in options.split(',').map(str::trim).filter(|option| !option.is_empty()) {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        if name == "llm" && kind.asks_chat() {
            let model = unescaped(value).filter(|model| !model.is_empty());
            expand.llm = Some(model.ok_or("the name of a language model after llm=")?);
        } else {
            // What is no number is refused as a number that no option takes.
            expand = expand
                .with(name, value.parse().unwrap_or(f32::NAN))
                .map_err(|expected| expected.replace("=NaN`", &format!("={value}`")))?;
        }
    }
    Ok(expand)
}

impl FromStr for Expand {
    type Err = RecipeError;

    fn from_str(text: &str) -> Result<Self, RecipeError> {
        let error = |problem: String| RecipeError { recipe: format!("+{text}"), problem };
        let (name, options) = text.trim().split_once('@').unwrap_or((text.trim(), ""));
        let kind = name.parse::<Kind>().map_err(|unknown| error(unknown.to_string()))?;
        expand(kind, options).map_err(|expected| error(format!("expected {expected}")))
    }
}

/// Reads `N` and `by=NAME`.
fn ask(options: &str) -> Result<Ask, String> {
    let mut own = Ask { times: Ask::USUAL, by: Fusion::default() };
    for option in options.split(',').map(str::trim).filter(|option| !option.is_empty()) {
        let wrong = || {
            let names = Fusion::ALL.map(Fusion::name).join(", ");
            format!(
                "a number of wordings from 1 to {} or by= one of {names} after ask@, found `{option}`",
                Ask::MOST
            )
        };
        match option.split_once('=') {
            None => {
                let times = option.parse().ok().filter(|times| (1..=Ask::MOST).contains(times));
                own.times = times.ok_or_else(wrong)?;
            }
            Some(("by", name)) => {
                let by = Fusion::ALL.into_iter().find(|by| by.name() == name.trim());
                own.by = by.ok_or_else(wrong)?;
            }
            Some(_) => return Err(wrong()),
        }
    }
    Ok(own)
}

/// Reads how many lists are searched.
fn probes(options: &str) -> Result<usize, String> {
    match options.trim() {
        "" => Ok(Switches::PROBES),
        text => {
            let probes = text.strip_prefix("nprobe=").unwrap_or(text).parse().ok();
            let expected = || format!("how many lists to search (1 or more) after ivf@, found `{text}`");
            probes.filter(|probes| *probes > 0).ok_or_else(expected)
        }
    }
}

fn listwise(options: &str) -> Result<Listwise, String> {
    let mut own = Listwise::default();
    for option in options.split(',').map(str::trim).filter(|option| !option.is_empty()) {
        let wrong = || {
            let usual = Listwise::default();
            format!(
                "one of top={} (at most {}), window={} (2 to 100), step={} (1 to the window), words={} (1 to 10000; these are the \
                 defaults) or llm=NAME, found `{option}`",
                usual.top, usual.top, usual.window, usual.step, usual.words
            )
        };
        let (name, value) = option.split_once('=').ok_or_else(wrong)?;
        let number = |least: usize, most: usize| {
            value.parse::<usize>().ok().filter(|number| (least..=most).contains(number)).ok_or_else(wrong)
        };
        match name {
            "top" => own.top = number(2, POOL)?,
            "window" => own.window = number(2, POOL)?,
            "step" => own.step = number(1, POOL)?,
            "words" => own.words = number(1, 10_000)?,
            "llm" => own.llm = Some(unescaped(value).filter(|model| !model.is_empty()).ok_or_else(wrong)?),
            _ => return Err(wrong()),
        }
    }
    if own.step > own.window {
        return Err(format!(
            "a step of at most the window, so that no passage is left out, found step={} and window={}",
            own.step, own.window
        ));
    }
    Ok(own)
}

/// Reads `NAME,depth=N`.
fn by_model(options: &str) -> Result<ByModel, String> {
    let mut parts = options.split(',').map(str::trim);
    let name = unescaped(parts.next().unwrap_or_default()).ok_or("two hexadecimal digits after every %")?;
    let mut own = ByModel { model: reranker::source(&name)?, depth: POOL };
    for option in parts {
        let depth = option.strip_prefix("depth=").and_then(|depth| depth.parse().ok());
        own.depth = depth.filter(|depth| (2..=ByModel::DEEPEST).contains(depth)).ok_or_else(|| {
            format!("depth= and a number from 2 to {} (default: {POOL}), found `{option}`", ByModel::DEEPEST)
        })?;
    }
    Ok(own)
}

fn mmr(options: &str) -> Result<Mmr, String> {
    let mut parts = options.split(',').map(str::trim);
    let mut mmr = Mmr::new(weight(parts.next().unwrap_or_default(), Switches::LAMBDA)?);
    for option in parts {
        match option.split_once('=') {
            Some(("norm", "question")) => mmr.norm = Norm::Question,
            Some(("norm", "dataset")) => mmr.norm = Norm::Dataset,
            Some(("sim", "minilm")) => mmr.sim = Some("minilm"),
            Some(("sim", name)) => {
                let known = registry::model(&name.to_ascii_lowercase());
                let known = known
                    .filter(|entry| entry.family.sparse.is_none() && !entry.family.late)
                    .map(|entry| entry.name);
                mmr.sim = Some(known.ok_or_else(|| {
                    format!("sim=minilm or sim= with a name of `parallax models list`, found `{name}`")
                })?);
            }
            _ => return Err(format!("norm=question, norm=dataset or sim=NAME, found `{option}`")),
        }
    }
    Ok(mmr)
}

/// Reads λ, from 0 to 1.
fn weight(text: &str, default: f32) -> Result<f32, String> {
    match text.trim() {
        "" => Ok(default),
        text => text
            .parse()
            .ok()
            .filter(|weight| (0.0..=1.0).contains(weight))
            .ok_or_else(|| format!("a number from 0 to 1 after the @, found `{text}`")),
    }
}

fn toward(text: &str) -> Result<Toward, String> {
    let wrong = || format!("the number of a perspective (from 1) or =TEXT after the @, found `{text}`");
    match (text.trim(), text.trim().strip_prefix('=')) {
        ("", _) => Ok(Toward::Perspective(1)),
        (_, Some(text)) => {
            Ok(Toward::Text(unescaped(text).filter(|text| !text.trim().is_empty()).ok_or_else(wrong)?))
        }
        (number, None) => {
            let number: usize = number.parse().map_err(|_| wrong())?;
            number.checked_sub(1).map(Toward::Perspective).ok_or_else(wrong)
        }
    }
}

impl fmt::Display for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.base {
            Base::Bm25(Bm25 { k1, b }) => write!(f, "bm25@k1={k1},b={b}")?,
            Base::MiniLm => f.write_str("minilm")?,
            Base::Custom(named) | Base::Sparse(named) | Base::Late(named) => {
                f.write_str(&encoder_text(named))?
            }
            Base::Hybrid => f.write_str("hybrid")?,
            Base::Remote(remote) => f.write_str(&escaped_but(&remote.to_string(), b"-_.~/:[]@="))?,
            Base::Run(file) => write!(f, "{file}")?,
        }
        write!(f, "{}", self.switches)
    }
}

/// Writes an encoder with its options.
fn encoder_text(named: &Named) -> String {
    let source = match &named.source {
        Source::Folder(path) => format!("path:{}", escaped_but(path, b"-_.~/:")),
        source => source.to_string(),
    };
    let family = named.given.map(|family| format!("family={}", family.name));
    let text = |name: &str, text: &Option<String>| Some(format!("{name}={}", escaped(text.as_ref()?)));
    let dim = named.dim.map(|dim| format!("dim={dim}"));
    let options = [family, text("query", &named.query), text("passage", &named.passage), dim];
    let options: Vec<String> = options.into_iter().flatten().collect();
    if options.is_empty() { source } else { format!("{source}@{}", options.join(",")) }
}

/// Reads an encoder's name and the options after its `@`.
fn custom(name: &str, options: &str) -> Result<Named, String> {
    let name = if name.starts_with("path:") {
        unescaped(name).ok_or("two hexadecimal digits after every %")?
    } else {
        name.to_owned()
    };
    let mut named = Named::from(Source::parse(&name)?);
    for option in options.split(',').filter(|option| !option.is_empty()) {
        let wrong = || {
            let families: Vec<&str> = registry::FAMILIES.iter().map(|family| family.name).collect();
            format!(
                "family=NAME ({}), query=TEXT, passage=TEXT or dim=NUMBER, found `{option}`",
                families.join(", ")
            )
        };
        let (key, value) = option.split_once('=').ok_or_else(wrong)?;
        let value = unescaped_whole(value).ok_or_else(wrong)?;
        match key {
            "family" => named.given = Some(registry::family(&value).ok_or_else(wrong)?),
            "query" => named.query = Some(value),
            "passage" => named.passage = Some(value),
            "dim" => named.dim = Some(value.parse().ok().filter(|dim| *dim > 0).ok_or_else(wrong)?),
            _ => return Err(wrong()),
        }
    }
    if named.query.is_some() || named.passage.is_some() || named.dim.is_some() {
        let why = match (named.is_late(), named.sparse()) {
            (true, _) => "late interaction reads every token as the model's own files say",
            (false, Some(_)) => "a learned sparse model weighs terms",
            (false, None) => return Ok(named),
        };
        return Err(format!("`{name}` without query=, passage= and dim=: {why}"));
    }
    Ok(named)
}

/// Reads what follows `run:`.
fn run_file(text: &str) -> Result<RunFile, String> {
    let (path, order) = match text.rsplit_once('@') {
        None => (text, RunOrder::AsGiven),
        Some((path, "ties=trec-eval")) => (path, RunOrder::TrecEval),
        Some(_) if names_file(text) => (text, RunOrder::AsGiven),
        Some((_, other)) => {
            return Err(format!(
                "nothing or ties=trec-eval after the @, found `{other}`; in a path, + @ , % are written %2B %40 %2C %25"
            ));
        }
    };
    let path = unescaped(path).filter(|path| !path.trim().is_empty());
    let path = path.ok_or("the path of a run after run:, with special characters as % and two digits")?;
    Ok(RunFile { path: path.into(), order })
}

impl fmt::Display for RunFile {
    /// `run:runs/tasb.json@ties=trec-eval`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ties = if self.order == RunOrder::TrecEval { "@ties=trec-eval" } else { "" };
        write!(f, "{}{}{ties}", RunFile::PREFIX, escaped_but(&self.path.to_string_lossy(), b"-_.~/:"))
    }
}
