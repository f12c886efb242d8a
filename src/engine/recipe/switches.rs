//! The switches of a lane.

use std::fmt;

use super::escape::escaped;
use crate::encode::{Named, Source, reranker};
use crate::expand::Expand;
use crate::measure::share;
use crate::project::Variant;
use crate::rerank::POOL;
use crate::retrieve::Fusion;

/// The switches that are on; none by default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Switches {
    /// The question asked in several wordings at once.
    pub ask: Option<Ask>,
    /// Words or vectors added to the query.
    pub expand: Option<Expand>,
    /// The query projected toward one perspective.
    pub project: Option<Project>,
    /// How many lists of vectors are searched, the nearest to the query; `None` for all of them, which is exact.
    pub ivf: Option<usize>,
    /// Re-ranking. MMR and a diversifier exclude each other.
    pub rerank: Option<Rerank>,
}

/// One of the four switches; each has a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Switch {
    /// Re-ranking by MMR.
    Mmr,
    /// Query expansion.
    Expand,
    /// Perspective-aware projection.
    Project,
    /// Re-ranking by verdicts.
    Diversify,
}

/// Asking in several wordings, whose lists are fused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// How many wordings, the question's own among them.
    pub times: usize,
    /// How their lists become one.
    pub by: Fusion,
}

impl Ask {
    /// How many wordings it asks if no number is given: the question and its two sides.
    pub const USUAL: usize = 3;
    /// The most wordings.
    pub const MOST: usize = 20;
}

impl fmt::Display for Ask {
    /// `ask@5,by=cover`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ask@{}", self.times)?;
        if self.by == Fusion::default() { Ok(()) } else { write!(f, ",by={}", self.by.name()) }
    }
}

/// How a list is re-ranked.
#[derive(Clone, Debug, PartialEq)]
pub enum Rerank {
    /// By relevance and similarity to passages above.
    Mmr(Mmr),
    /// By verdicts of the model, with the method's λ.
    Diversify(Diversify, f32),
    /// By a language model that reads the list in windows.
    Listwise(Listwise),
    /// By a model that scores every passage with the query.
    Model(ByModel),
}

/// A re-ranker and how deep it reads.
#[derive(Clone, Debug, PartialEq)]
pub struct ByModel {
    /// The model.
    pub model: Source,
    /// How many passages at the top of the list it scores. The list is retrieved so deep.
    pub depth: usize,
}

impl ByModel {
    /// The greatest depth.
    pub const DEEPEST: usize = 1_000;

    /// The model's short name, else its source.
    pub fn name(&self) -> String {
        reranker::name(&self.model)
    }
}

impl fmt::Display for ByModel {
    /// `rerank@ms-marco-minilm,depth=50`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name();
        write!(f, "rerank@{}", if name.contains(':') { escaped(&name) } else { name })?;
        if self.depth == POOL { Ok(()) } else { write!(f, ",depth={}", self.depth) }
    }
}

/// The options of a listwise order by a language model. The defaults are those of RankGPT (Sun et al., 2023).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listwise {
    /// How many passages at the top of the list are put in order.
    pub top: usize,
    /// How many the model reads at a time.
    pub window: usize,
    /// How far one window lies above the one before.
    pub step: usize,
    /// How many words of a passage it reads.
    pub words: usize,
    /// The language model that is asked; `None` for the one that the user named for all lanes.
    pub llm: Option<String>,
}

impl Default for Listwise {
    fn default() -> Self {
        Listwise { top: POOL, window: 20, step: 10, words: 300, llm: None }
    }
}

impl fmt::Display for Listwise {
    /// `listwise@llm=llama3,top=20`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("listwise")?;
        let llm = self.llm.iter().map(|name| format!("llm={}", escaped(name)));
        let options: Vec<String> = llm.chain(self.set()).collect();
        if options.is_empty() { Ok(()) } else { write!(f, "@{}", options.join(",")) }
    }
}

impl Listwise {
    /// The numbers that differ from the default, as `top=20`.
    fn set(&self) -> impl Iterator<Item = String> {
        let usual = Listwise::default();
        let all = [
            ("top", self.top, usual.top),
            ("window", self.window, usual.window),
            ("step", self.step, usual.step),
            ("words", self.words, usual.words),
        ];
        all.into_iter().filter(|(_, own, usual)| own != usual).map(|(name, own, _)| format!("{name}={own}"))
    }
}

/// MMR's options.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mmr {
    /// 1 counts relevance alone, 0 difference alone.
    pub lambda: f32,
    /// What scores are divided by.
    pub norm: Norm,
    /// The encoder whose vectors say how similar two passages are, by its short name; `None` for the usual one.
    pub sim: Option<&'static str>,
}

impl Mmr {
    /// The encoder by which BERDS compared passages.
    pub const USUAL: &str = "uae-large";

    /// MMR with this λ and nothing else set.
    pub fn new(lambda: f32) -> Self {
        Mmr { lambda, norm: Norm::default(), sim: None }
    }
}

/// The number that a retriever's scores are divided by before MMR weighs them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Norm {
    /// The greatest score of the question, as in the authors' code.
    #[default]
    Question,
    /// The greatest score over the question set, as in the paper.
    Dataset,
}

/// A diversifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Diversify {
    /// xQuAD: prefers perspectives that are not covered yet.
    Xquad,
    /// PM-2: gives every perspective its share of the list.
    Pm2,
}

/// A projection with its options.
#[derive(Clone, Debug, PartialEq)]
pub struct Project {
    /// How passages are scored.
    pub variant: Variant,
    /// The perspective.
    pub toward: Toward,
}

/// The perspective that a query is projected toward.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Toward {
    /// One of the question's statements, from 0.
    Perspective(usize),
    /// A text typed by the user.
    Text(String),
}

impl Switches {
    /// The default λ of MMR.
    pub const LAMBDA: f32 = 0.75;
    /// How many lists are searched if no number is given.
    pub const PROBES: usize = 32;
    /// The default λ of a diversifier: coverage counts as much as relevance.
    pub const BALANCE: f32 = 0.5;

    /// Whether the switch is on.
    pub fn is_on(&self, switch: Switch) -> bool {
        match switch {
            Switch::Mmr => matches!(self.rerank, Some(Rerank::Mmr(_))),
            Switch::Expand => self.expand.is_some(),
            Switch::Project => self.project.is_some(),
            Switch::Diversify => matches!(self.rerank, Some(Rerank::Diversify(..))),
        }
    }

    /// Whether the expansion or the re-ranking asks a language model, if there is one.
    pub fn asks_chat(&self) -> bool {
        matches!(self.rerank, Some(Rerank::Listwise(_)))
            || self.expand.as_ref().is_some_and(|expand| expand.kind.asks_chat())
    }

    /// Takes the switches that are off here from `others`.
    pub fn or(self, others: &Switches) -> Self {
        Switches {
            ask: self.ask.or(others.ask),
            expand: self.expand.clone().or_else(|| others.expand.clone()),
            project: self.project.or_else(|| others.project.clone()),
            ivf: self.ivf.or(others.ivf),
            rerank: self.rerank.or_else(|| others.rerank.clone()),
        }
    }

    /// The short words that follow the retriever's name in a title.
    pub(super) fn title(&self) -> String {
        let mut title = String::new();
        if let Some(ask) = self.ask {
            title += &format!(" +{}", ask.to_string().replace('@', " ").replace(",by=", " "));
        }
        if let Some(expand) = &self.expand {
            title += &format!(" +{}", expand.kind);
            let set = expand.set().iter().map(|(name, value)| format!("{name}={value}"));
            let set: Vec<String> = expand.llm.iter().cloned().chain(set).collect();
            title += &if set.is_empty() { String::new() } else { format!(" {}", set.join(" ")) };
        }
        if let Some(Project { variant, toward }) = &self.project {
            let toward = match toward {
                Toward::Perspective(i) => format!("→{}", i + 1),
                Toward::Text(text) => format!("→“{text}”"),
            };
            title += &format!(" +{variant}{toward}");
        }
        title += &self.ivf.map_or_else(String::new, |probes| format!(" +ivf {probes}"));
        match &self.rerank {
            Some(Rerank::Mmr(Mmr { lambda, sim, .. })) => {
                let sim = sim.map_or_else(String::new, |name| format!(" by {name}"));
                title += &format!(" +mmr {}{sim}", share(f64::from(*lambda)));
            }
            Some(Rerank::Diversify(kind, weight)) => {
                title += &format!(" +{kind} {}", share(f64::from(*weight)));
            }
            Some(Rerank::Model(own)) => {
                let name = reranker::entry(&own.name()).map_or_else(
                    || Named::from(own.model.clone()).title().to_owned(),
                    |entry| entry.name.to_owned(),
                );
                title += &format!(" +{name}");
                title += &if own.depth == POOL { String::new() } else { format!(" {}", own.depth) };
            }
            Some(Rerank::Listwise(own)) => {
                let set: Vec<String> = own.llm.iter().cloned().chain(own.set()).collect();
                title += " +listwise";
                title += &if set.is_empty() { String::new() } else { format!(" {}", set.join(" ")) };
            }
            None => {}
        }
        title
    }
}

impl fmt::Display for Switches {
    /// `+csqe+pap-plus@2+mmr@0.75`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(ask) = self.ask {
            write!(f, "+{ask}")?;
        }
        if let Some(expand) = &self.expand {
            write!(f, "+{expand}")?;
        }
        if let Some(Project { variant, toward }) = &self.project {
            match toward {
                Toward::Perspective(i) => write!(f, "+{variant}@{}", i + 1)?,
                Toward::Text(text) => write!(f, "+{variant}@={}", escaped(text))?,
            }
        }
        if let Some(probes) = self.ivf {
            write!(f, "+ivf@{probes}")?;
        }
        match &self.rerank {
            Some(Rerank::Mmr(Mmr { lambda, norm, sim })) => {
                write!(f, "+mmr@{lambda}{}", if *norm == Norm::Dataset { ",norm=dataset" } else { "" })?;
                sim.map_or(Ok(()), |name| write!(f, ",sim={name}"))
            }
            Some(Rerank::Diversify(kind, weight)) => write!(f, "+{kind}@{weight}"),
            Some(Rerank::Listwise(own)) => write!(f, "+{own}"),
            Some(Rerank::Model(own)) => write!(f, "+{own}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Diversify {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Diversify::Xquad => "xquad",
            Diversify::Pm2 => "pm2",
        })
    }
}

impl fmt::Display for Expand {
    /// `csqe@llm=llama3,answers=0`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind)?;
        let llm = self.llm.iter().map(|name| format!("llm={}", escaped(name)));
        let set = self.set().iter().map(|(name, value)| format!("{name}={value}"));
        let options: Vec<String> = llm.chain(set).collect();
        if options.is_empty() { Ok(()) } else { write!(f, "@{}", options.join(",")) }
    }
}
