//! A recipe and what searches in it, with the names shown at the heads of columns.
//!
//! Every method of [`Base`] lists all variants, so that the compiler asks for each of them when a lane is added.

use std::path::PathBuf;
use std::sync::Arc;

use super::switches::{Rerank, Switches};
use crate::encode::Named;
use crate::expand::Kind;
use crate::measure::trec::RunOrder;
use crate::project::Variant;
use crate::remote::{By, Remote};
use crate::retrieve::bm25::Bm25;

/// How a lane makes its list.
#[derive(Clone, Debug, PartialEq)]
pub struct Recipe {
    /// The retriever.
    pub base: Base,
    /// The switches that are on.
    pub switches: Switches,
}

/// What searches.
#[derive(Clone, Debug, PartialEq)]
pub enum Base {
    /// Terms.
    Bm25(Bm25),
    /// Vectors of the built-in encoder.
    MiniLm,
    /// Vectors of a custom encoder.
    Custom(Arc<Named>),
    /// Weights of terms by a learned sparse model.
    Sparse(Arc<Named>),
    /// Vectors of all tokens by a model for late interaction.
    Late(Arc<Named>),
    /// BM25 and MiniLM, fused by reciprocal rank.
    Hybrid,
    /// An engine on another machine, which compares terms or vectors of the built-in encoder.
    Remote(Arc<Remote>),
    /// Nothing searches: a finished run is read.
    Run(RunFile),
}

impl From<Base> for Recipe {
    /// The recipe with nothing switched on.
    fn from(base: Base) -> Self {
        Recipe { base, switches: Switches::default() }
    }
}

impl Base {
    /// The name, without constants and switches.
    pub fn name(&self) -> String {
        match self {
            Base::Bm25(_) => "BM25".into(),
            Base::MiniLm => "MiniLM".into(),
            Base::Custom(named) | Base::Sparse(named) | Base::Late(named) => named.title().into(),
            Base::Hybrid => "Hybrid".into(),
            Base::Remote(remote) => remote.title(),
            Base::Run(file) => file.stem(),
        }
    }

    /// The custom encoder; `None` for the built-in one.
    pub fn model(&self) -> Option<&Arc<Named>> {
        match self {
            Base::Custom(named) => Some(named),
            Base::Bm25(_)
            | Base::MiniLm
            | Base::Sparse(_)
            | Base::Late(_)
            | Base::Hybrid
            | Base::Remote(_)
            | Base::Run(_) => None,
        }
    }

    /// Whether it ranks by vectors alone.
    pub fn is_dense(&self) -> bool {
        match self {
            Base::MiniLm | Base::Custom(_) => true,
            Base::Remote(remote) => remote.by == By::Vectors,
            Base::Bm25(_) | Base::Sparse(_) | Base::Late(_) | Base::Hybrid | Base::Run(_) => false,
        }
    }

    /// Whether it encodes the query here, to rank by vectors alone or together with terms.
    pub fn encodes_query(&self) -> bool {
        match self {
            Base::MiniLm | Base::Custom(_) | Base::Hybrid => true,
            Base::Remote(remote) => remote.by == By::Vectors,
            Base::Bm25(_) | Base::Sparse(_) | Base::Late(_) | Base::Run(_) => false,
        }
    }

    /// Whether it searches the corpus's vectors.
    pub fn reads_vectors(&self) -> bool {
        match self {
            Base::MiniLm | Base::Custom(_) | Base::Hybrid => true,
            Base::Bm25(_) | Base::Sparse(_) | Base::Late(_) | Base::Remote(_) | Base::Run(_) => false,
        }
    }

    /// Whether it searches the corpus's term index.
    pub fn reads_terms(&self) -> bool {
        match self {
            Base::Bm25(_) | Base::Hybrid => true,
            Base::MiniLm
            | Base::Custom(_)
            | Base::Sparse(_)
            | Base::Late(_)
            | Base::Remote(_)
            | Base::Run(_) => false,
        }
    }

    /// The engine on another machine that it asks.
    pub fn remote(&self) -> Option<&Remote> {
        match self {
            Base::Remote(remote) => Some(remote),
            Base::Bm25(_)
            | Base::MiniLm
            | Base::Custom(_)
            | Base::Sparse(_)
            | Base::Late(_)
            | Base::Hybrid
            | Base::Run(_) => None,
        }
    }

    /// The first reason why these switches cannot be used, as a sentence; `None` if they can.
    pub fn refuses(&self, switches: &Switches) -> Option<&'static str> {
        let ask = switches.ask.and_then(|_| self.refuses_wordings());
        let project = switches.project.as_ref().and_then(|project| self.refuses_projection(project.variant));
        let ivf = switches.ivf.and_then(|_| {
            let plus = switches.project.as_ref().map(|project| project.variant);
            let plus = matches!(plus, Some(Variant::CastPlus | Variant::PapPlus));
            let all = "pap-plus and cast-plus compare every passage, so ivf cannot choose among lists";
            self.refuses_probing().or(plus.then_some(all))
        });
        ask.or(project).or(ivf).or_else(|| self.refuses_expansion(switches.expand.as_ref()?.kind))
    }

    /// Why it cannot search some lists of vectors only; `None` if it can.
    pub fn refuses_probing(&self) -> Option<&'static str> {
        match self {
            Base::MiniLm | Base::Custom(_) | Base::Hybrid => None,
            Base::Bm25(_) | Base::Sparse(_) | Base::Late(_) | Base::Remote(_) | Base::Run(_) => Some(
                "ivf searches lists of vectors that lie here, and this lane has none; try the MiniLM lane",
            ),
        }
    }

    /// Why it cannot be asked in other wordings; `None` if it can.
    pub fn refuses_wordings(&self) -> Option<&'static str> {
        match self {
            Base::Run(_) => {
                Some("a finished run knows its own questions only and cannot be asked in other wordings")
            }
            Base::Bm25(_)
            | Base::MiniLm
            | Base::Custom(_)
            | Base::Sparse(_)
            | Base::Late(_)
            | Base::Hybrid
            | Base::Remote(_) => None,
        }
    }

    /// Why its query cannot be projected by this variant; `None` if it can.
    pub fn refuses_projection(&self, variant: Variant) -> Option<&'static str> {
        match self {
            Base::Bm25(_) => Some("a projection turns vectors, and BM25 has none; try the MiniLM lane"),
            Base::Sparse(_) => Some(
                "a projection turns vectors, and a learned sparse model weighs terms; try the MiniLM lane",
            ),
            Base::Late(_) => Some(
                "a projection turns one vector, and late interaction has one for every token; try the MiniLM lane",
            ),
            Base::Run(_) => Some("a finished run has no query to project; MMR and diversifiers re-rank it"),
            Base::Remote(remote) => match (remote.by, variant) {
                (By::Terms, _) => {
                    Some("a projection turns vectors, and this lane compares terms; try @by=vectors")
                }
                (By::Vectors, Variant::CastPlus | Variant::PapPlus) => {
                    Some("a server compares one vector with those it holds and cannot project them; try pap")
                }
                (By::Vectors, _) => None,
            },
            Base::MiniLm | Base::Custom(_) | Base::Hybrid => None,
        }
    }

    /// Why its query cannot be expanded in this way; `None` if it can.
    pub fn refuses_expansion(&self, kind: Kind) -> Option<&'static str> {
        match (self, kind) {
            (Base::Run(_), _) => {
                Some("a finished run has no query to expand; MMR and diversifiers re-rank it")
            }
            (Base::Sparse(_), kind) if kind.makes_terms() => Some(match kind {
                Kind::Rm3 => {
                    "rm3 weights stems, and a learned sparse model has terms of its own; try the BM25 lane"
                }
                _ => "grf weights stems, and a learned sparse model has terms of its own; try the BM25 lane",
            }),
            (Base::MiniLm | Base::Custom(_) | Base::Late(_), kind) if kind.makes_terms() => {
                Some(match kind {
                    Kind::Rm3 => {
                        "rm3 makes weighted terms, and an encoder cannot read weights; try the BM25 lane"
                    }
                    _ => "grf makes weighted terms, and an encoder cannot read weights; try the BM25 lane",
                })
            }
            (Base::Remote(_), kind) if kind.makes_terms() => Some(match kind {
                Kind::Rm3 => {
                    "rm3 weights stems of the index here, and a server has its own; try the BM25 lane"
                }
                _ => "grf weights stems of the index here, and a server has its own; try the BM25 lane",
            }),
            (
                Base::Bm25(_)
                | Base::MiniLm
                | Base::Custom(_)
                | Base::Sparse(_)
                | Base::Late(_)
                | Base::Hybrid
                | Base::Remote(_),
                _,
            ) => None,
        }
    }
}

impl Recipe {
    /// The lanes that the program opens at its first start.
    pub fn defaults() -> Vec<Self> {
        [Base::Bm25(Bm25::default()), Base::MiniLm, Base::Hybrid].map(Recipe::from).to_vec()
    }

    /// The name at the head of its column.
    pub fn title(&self) -> String {
        let base = match &self.base {
            Base::Bm25(Bm25 { k1, b }) if self.base != Base::Bm25(Bm25::default()) => {
                format!("BM25 k1={k1} b={b}")
            }
            base => base.name(),
        };
        format!("{base}{}", self.switches.title())
    }

    /// The recipe without its switches.
    pub fn plain(&self) -> Self {
        self.base.clone().into()
    }

    /// The recipe without re-ranking: the part that two lanes can share.
    pub fn retrieval(&self) -> Self {
        Recipe { base: self.base.clone(), switches: Switches { rerank: None, ..self.switches.clone() } }
    }

    /// The custom encoder whose vectors it reads; `None` for the built-in one.
    pub fn model(&self) -> Option<&Named> {
        self.base.model().map(AsRef::as_ref)
    }

    /// The learned sparse or late-interaction model whose index it reads.
    pub fn indexed(&self) -> Option<&Named> {
        match &self.base {
            Base::Sparse(named) | Base::Late(named) => Some(named),
            Base::Bm25(_)
            | Base::MiniLm
            | Base::Custom(_)
            | Base::Hybrid
            | Base::Remote(_)
            | Base::Run(_) => None,
        }
    }

    /// Whether it needs the corpus's vectors. MMR reads them too, to compare passages.
    pub fn needs_vectors(&self) -> bool {
        let compares_passages = match self.switches.rerank {
            Some(Rerank::Mmr(_)) => true,
            Some(Rerank::Diversify(..) | Rerank::Listwise(_) | Rerank::Model(_)) | None => false,
        };
        self.base.reads_vectors() || compares_passages
    }

    /// The run that it reads.
    pub fn run(&self) -> Option<&RunFile> {
        match &self.base {
            Base::Run(file) => Some(file),
            Base::Bm25(_)
            | Base::MiniLm
            | Base::Custom(_)
            | Base::Sparse(_)
            | Base::Late(_)
            | Base::Hybrid
            | Base::Remote(_) => None,
        }
    }

    /// Whether it needs a model, the corpus's vectors, a network or a large file, and so must not delay the lanes that do not.
    pub fn is_slow(&self) -> bool {
        match self.base {
            Base::Bm25(_) => self.switches != Switches::default(),
            Base::MiniLm
            | Base::Custom(_)
            | Base::Sparse(_)
            | Base::Late(_)
            | Base::Hybrid
            | Base::Remote(_)
            | Base::Run(_) => true,
        }
    }

    /// Whether it waits for a server: the engine that it asks, or the language model (if there is one) that writes its expansion or
    /// puts its list in order.
    pub fn waits_for_server(&self, has_chat: bool) -> bool {
        self.base.remote().is_some() || (has_chat && self.switches.asks_chat())
    }

    /// Writes one of its scores with as many decimals as are worth showing.
    pub fn score(&self, score: f32) -> String {
        let decimals = match (&self.base, self.switches.expand.as_ref().map(|expand| expand.kind)) {
            // Some systems score in thousands.
            (Base::Run(_), _) if score.abs() >= 1e3 => 0,
            _ if self.switches.ask.is_some() => 4,
            (_, Some(Kind::Perspectives)) => 4,
            (Base::Bm25(_) | Base::Sparse(_) | Base::Late(_), _) => 2,
            (Base::Remote(remote), _) if remote.by == By::Terms => 2,
            (Base::MiniLm | Base::Custom(_) | Base::Remote(_) | Base::Run(_), _) => 3,
            (Base::Hybrid, _) => 4,
        };
        format!("{score:.decimals$}")
    }
}

/// A run file and the order in which it is read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RunFile {
    /// The file, as the user named it.
    pub path: PathBuf,
    /// How its passages are ordered.
    pub order: RunOrder,
}

impl RunFile {
    /// The beginning of every recipe that reads a run.
    pub(super) const PREFIX: &str = "run:";

    /// The file's name without its extension.
    pub fn stem(&self) -> String {
        self.path.file_stem().unwrap_or(self.path.as_os_str()).to_string_lossy().into_owned()
    }
}

/// The name of every lane. Runs with equal names get their folder in front.
pub fn titles<'a>(recipes: impl IntoIterator<Item = &'a Recipe>) -> Vec<String> {
    let recipes: Vec<&Recipe> = recipes.into_iter().collect();
    let title = |recipe: &&Recipe| {
        let equal = |other: &&Recipe| match (recipe.run(), other.run()) {
            (Some(own), Some(run)) => own.path != run.path && own.stem() == run.stem(),
            _ => false,
        };
        let folder = recipe.run().and_then(|run| run.path.parent()?.file_name());
        match folder.filter(|_| recipes.iter().any(equal)) {
            Some(folder) => format!("{}/{}", folder.to_string_lossy(), recipe.title()),
            None => recipe.title(),
        }
    };
    recipes.iter().map(title).collect()
}

/// Shortens one of several titles to at most `most` characters: its beginning, then the part that differs from the other titles.
pub fn fit_apart(titles: &[String], which: usize, most: usize) -> String {
    let Some(title) = titles.get(which) else { return String::new() };
    let own: Vec<char> = title.chars().collect();
    let shared = |other: &String| own.iter().zip(other.chars()).take_while(|(a, b)| **a == *b).count();
    let others = titles.iter().enumerate().filter(|(i, other)| *i != which && *other != title);
    let shared = others.map(|(_, other)| shared(other)).max().unwrap_or(0);
    if own.len() <= most || shared + 2 < most || most < 8 {
        return title.clone();
    }
    // Go on from the start of the word that differs, or from the first character that differs.
    let word = own[..shared].iter().rposition(|c| " /".contains(*c)).map_or(0, |at| at + 1);
    let head = most / 3;
    let from = if shared - word + 2 < most - head && word > head { word } else { shared };
    let from = from.max(head).min(own.len().saturating_sub(most - head - 1).max(head));
    let [begin, end] = [&own[..head], &own[from..]].map(|part| part.iter().collect::<String>());
    format!("{begin}…{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_one_name_are_distinguished_by_their_folder() {
        let recipes =
            ["run:a/r.json", "run:b/r.json+mmr", "run:b/other.run", "bm25"].map(|r| r.parse().unwrap());
        assert_eq!(titles(&recipes), ["a/r", "b/r +mmr .75", "other", "BM25"]);
    }

    #[test]
    fn titles_that_do_not_fit_show_where_they_differ() {
        let all = ["MiniLM +csqe +pap-plus→2 +mmr .75", "MiniLM +csqe +pap-plus→2 +mmr .90", "BM25"]
            .map(String::from);
        let shown: Vec<String> = (0..3).map(|i| fit_apart(&all, i, 18)).collect();
        assert_eq!(shown[2], "BM25");
        assert_ne!(shown[0], shown[1]);
        for (title, end) in [(&shown[0], ".75"), (&shown[1], ".90")] {
            assert!(
                title.starts_with("MiniLM…") && title.ends_with(end) && title.chars().count() <= 18,
                "{title}"
            );
        }
        assert_eq!(fit_apart(&all, 0, 40), all[0]);
        assert_eq!(fit_apart(&all[..1], 0, 18), all[0], "alone, its beginning says most");
    }
}
