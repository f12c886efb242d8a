//! Explains a passage's rank in a lane, from the list's trace and, for the shares of terms, from the index; and which passages turn the stance
//! of a list.

use std::sync::Arc;

use serde_json::json;

use super::judgments::Judgments;
use super::learned::{SparseMatch, compared, met};
use super::list::{LaneError, List, Projected, Step, Stood, Wording};
use super::recipe::{Base, Diversify, Recipe, RunFile};
use super::setup::Setup;
use crate::corpus::PassageIx;
use crate::encode::{Met, Role, Similarity};
use crate::project::Variant;
use crate::question::Question;
use crate::read::pattern::{Sides, Stance, removed_to_turn, stances, turns};
use crate::remote::By;
use crate::retrieve::bm25::{Bm25, TermRetriever};
use crate::retrieve::{Fusion, RetrieveError};
use crate::vector::dot;

/// One reason for a passage's rank.
#[derive(Clone, Debug, PartialEq)]
pub enum Explanation {
    /// BM25's terms; the shares add up to the score.
    Terms {
        /// The terms that the passage holds, greatest share first.
        shares: Vec<Share>,
        /// Their sum.
        score: f32,
    },
    /// Similarity of vectors.
    Vectors {
        /// How the encoder compares vectors.
        similarity: Similarity,
        /// The similarity of query and passage.
        plain: f32,
        /// The score after the projection.
        projected: Option<(Variant, f32)>,
        /// The similarity for each text of the query, if the query is the mean of several.
        texts: Vec<(String, f32)>,
    },
    /// Weights of a learned sparse model's terms.
    Sparse(Box<SparseMatch>),
    /// The query's tokens by a model for late interaction, each with its nearest of the passage.
    Tokens {
        /// The model.
        model: String,
        /// The sum of their parts.
        score: f32,
        /// The tokens.
        met: Vec<Met>,
    },
    /// One of several queries found it.
    Merged {
        /// Which query, from 0.
        query: usize,
        /// Its text.
        text: String,
    },
    /// It comes from a finished run.
    Given {
        /// The run.
        run: RunFile,
        /// The run's name for itself; may be empty.
        tag: String,
        /// Its line in the file.
        stood: Stood,
    },
    /// An engine on another machine ranked it and does not say why.
    Elsewhere {
        /// The engine, the server and the collection.
        by: String,
    },
    /// Its ranks in the two lists that were fused, from 1.
    Fused([Option<usize>; 2]),
    /// The question was asked in several wordings: each with the passage's rank in its list, from 1.
    Asked {
        /// How the lists became one.
        by: Fusion,
        /// The wordings.
        ranks: Vec<(String, Option<usize>)>,
    },
    /// MMR chose it.
    Mmr {
        /// Its λ.
        lambda: f32,
        /// `Sim1`.
        relevance: f32,
        /// The closest passage chosen before it, and `Sim2`.
        closest: Option<(PassageIx, f32)>,
        /// `λ·Sim1 − (1 − λ)·Sim2`.
        value: f32,
        /// Its rank before, from 1.
        was: usize,
    },
    /// A diversifier chose it.
    Diversified {
        /// The method.
        method: Diversify,
        /// Its λ.
        weight: f32,
        /// Its relevance.
        relevance: f32,
        /// Its gain for each statement.
        gains: Vec<f32>,
        /// The value it was chosen by.
        value: f32,
        /// Its rank before, from 1.
        was: usize,
    },
    /// A language model put the list in order.
    Ordered {
        /// The model.
        model: String,
        /// How many passages it read at a time.
        window: usize,
        /// Its rank before, from 1.
        was: usize,
    },
    /// A model scored it with the query.
    Scored {
        /// The model.
        model: String,
        /// Its score.
        score: f32,
        /// Its rank before, from 1, and how many passages were scored.
        was: (usize, usize),
        /// For late interaction: the query's tokens, each with its nearest of the passage.
        met: Vec<Met>,
    },
}

/// A term's part of a BM25 score.
#[derive(Clone, Debug, PartialEq)]
pub struct Share {
    /// The stem.
    pub term: String,
    /// Its part of the score.
    pub share: f32,
    /// The expansion added it; it is not one of the question's own terms.
    pub added: bool,
}

/// Explains the rank of the passage `at` in `list`, which was made for `text`. The reasons are in the order of the steps.
///
/// # Errors
/// The index or the model cannot be read.
pub fn explain(setup: &Setup, list: &List, text: &str, at: PassageIx) -> Result<Vec<Explanation>, LaneError> {
    let mut explanations = Vec::new();
    for (i, step) in list.trace.steps.iter().enumerate() {
        match step {
            Step::Expand(_) | Step::Project(_) | Step::Probe(_) => {}
            Step::Retrieve { by, queries, .. } => {
                let merged = match list.trace.steps.get(i + 1) {
                    Some(Step::Merge { from }) => match from.get(&at) {
                        Some(query) => Some(*query),
                        // This retriever did not find it.
                        None => continue,
                    },
                    _ => None,
                };
                let Some(query) = queries.get(merged.unwrap_or(0)) else { continue };
                if let Some(number) = merged {
                    explanations.push(Explanation::Merged { query: number, text: query.shown() });
                }
                explanations.extend(match by {
                    Base::Bm25(constants) => {
                        let index = setup.terms()?;
                        let retriever = TermRetriever::new(Arc::clone(&setup.corpus), index, *constants);
                        terms(&retriever, query, text, at)?
                    }
                    // The server weighs terms itself and does not say how; a passage outside the corpus has no vector here.
                    Base::Remote(remote) if remote.by == By::Terms || at.as_outside().is_some() => {
                        Some(Explanation::Elsewhere { by: remote.to_string() })
                    }
                    Base::Remote(remote) => {
                        let similarity = vectors(setup, list, by, merged, query, at)?;
                        // The server has vectors, and this machine may have none.
                        Some(similarity.unwrap_or_else(|| Explanation::Elsewhere { by: remote.to_string() }))
                    }
                    Base::Sparse(named) => {
                        let found = compared(setup, named, query, at)?;
                        found.map(|found| Explanation::Sparse(Box::new(found)))
                    }
                    Base::Late(named) => met(setup, named, query, at)?.map(|met| Explanation::Tokens {
                        model: named.title().to_owned(),
                        score: met.iter().map(|met| met.similarity).sum(),
                        met,
                    }),
                    Base::MiniLm | Base::Custom(_) => vectors(setup, list, by, merged, query, at)?,
                    // Their lists come from the steps `Fuse` and `Given`.
                    Base::Hybrid | Base::Run(_) => None,
                });
            }
            Step::Given { run, tag, stood, .. } => {
                let stood = stood.get(&at).copied();
                explanations.extend(stood.map(|stood| Explanation::Given {
                    run: run.clone(),
                    tag: tag.clone(),
                    stood,
                }));
            }
            Step::Merge { .. } => {}
            Step::Fuse { ranks } => explanations.extend(ranks.get(&at).copied().map(Explanation::Fused)),
            Step::Ask { texts, by, ranks } => explanations.extend(ranks.get(&at).map(|ranks| {
                let ranks = texts.iter().cloned().zip(ranks.iter().copied()).collect();
                Explanation::Asked { by: *by, ranks }
            })),
            Step::Mmr { options, picks, pool } => {
                let pick = picks.iter().find(|pick| pool[pick.passage] == at);
                explanations.extend(pick.map(|pick| Explanation::Mmr {
                    lambda: options.lambda,
                    relevance: pick.relevance,
                    closest: pick.closest.map(|(passage, similarity)| (pool[passage], similarity)),
                    value: pick.value,
                    was: pick.passage + 1,
                }));
            }
            Step::Diversify { method, weight, choices, pool, .. } => {
                let choice = choices.iter().find(|choice| pool[choice.passage] == at);
                explanations.extend(choice.map(|choice| Explanation::Diversified {
                    method: *method,
                    weight: *weight,
                    relevance: choice.relevance,
                    gains: choice.gains.clone(),
                    value: choice.value,
                    was: choice.passage + 1,
                }));
            }
            Step::Listwise { options, model, pool, .. } => {
                let was = pool.iter().position(|passage| *passage == at);
                explanations.extend(was.map(|was| Explanation::Ordered {
                    model: model.clone(),
                    window: options.window.min(pool.len()),
                    was: was + 1,
                }));
            }
            Step::Score { model, source, order, pool } => {
                let scored = order.iter().find(|(was, _)| pool[*was] == at);
                if let Some((was, score)) = scored {
                    // Without its model the other reasons hold all the same.
                    let met = setup.reranker(source).map(|model| model.met(text, &setup.corpus.passage(at)));
                    let met = met.ok().and_then(Result::ok).unwrap_or_default();
                    let was = (was + 1, pool.len());
                    explanations.push(Explanation::Scored { model: model.clone(), score: *score, was, met });
                }
            }
        }
    }
    Ok(explanations)
}

/// Returns what the indexes of a lane hold about a passage, as JSON: its terms with their weights, and the beginning of its vectors.
///
/// # Errors
/// The passage is outside the corpus, or an index cannot be read.
pub fn index_entry(setup: &Setup, recipe: &Recipe, at: PassageIx) -> Result<String, LaneError> {
    if at.as_outside().is_some() {
        return Err(LaneError::NotInRun("only a run names this passage; no index holds it".into()));
    }
    let retriever = TermRetriever::new(Arc::clone(&setup.corpus), setup.terms()?, Bm25::default());
    let entry = retriever.entry(at)?;
    let terms = entry.terms.iter().map(|term| {
        json!({"term": term.term, "times": term.times, "passages": term.passages, "idf": rounded(term.idf)})
    });
    let own = recipe.model().map(Some).filter(|_| recipe.needs_vectors());
    let mut vectors = Vec::new();
    for model in [None].into_iter().chain(own) {
        let encoder = setup.encoder(model)?;
        vectors.push(match setup.vectors(model)? {
            None => json!({"encoder": encoder.key(), "missing": "the passages have no vectors by it yet"}),
            Some(rows) => {
                let row = rows.row(at).map_err(RetrieveError::Vectors)?;
                json!({
                    "encoder": encoder.key(),
                    "dimensions": row.len(),
                    "length": rounded(dot(&row, &row).sqrt()),
                    "begins": row.iter().take(VALUES).copied().map(rounded).collect::<Vec<_>>(),
                })
            }
        });
    }
    let corpus = &setup.corpus;
    let entry = json!({
        "passage": at.0,
        "corpus": {"name": corpus.name, "fingerprint": corpus.fingerprint.0, "passages": corpus.len()},
        "bm25": {
            "terms": entry.length,
            "terms of an average passage": rounded(entry.average),
            "entries": terms.collect::<Vec<_>>(),
        },
        "vectors": vectors,
    });
    Ok(serde_json::to_string_pretty(&entry).unwrap_or_default())
}

/// How many values of a vector an index entry shows.
const VALUES: usize = 16;

/// Four decimals, so that an entry can be read.
fn rounded(x: f32) -> f64 {
    (f64::from(x) * 1e4).round() / 1e4
}

/// The shares of terms; `None` if the passage holds none of them.
fn terms(
    retriever: &TermRetriever,
    query: &Wording,
    text: &str,
    at: PassageIx,
) -> Result<Option<Explanation>, LaneError> {
    let own: Vec<String> = TermRetriever::query_terms(text).into_iter().map(|(term, _)| term).collect();
    let shares = retriever.explain(&query.terms(), at)?.into_iter().filter(|share| share.share > 0.0);
    let mut shares: Vec<Share> = shares
        .map(|share| Share { added: !own.contains(&share.term), term: share.term, share: share.share })
        .collect();
    shares.sort_by(|a, b| b.share.total_cmp(&a.share).then_with(|| a.term.cmp(&b.term)));
    let score = shares.iter().map(|share| share.share).sum();
    Ok((!shares.is_empty()).then_some(Explanation::Terms { shares, score }))
}

/// The similarity to the query's vector; `None` if the corpus has no vectors yet or the query is not a text.
fn vectors(
    setup: &Setup,
    list: &List,
    by: &Base,
    merged: Option<usize>,
    query: &Wording,
    at: PassageIx,
) -> Result<Option<Explanation>, LaneError> {
    let model = by.model().map(AsRef::as_ref);
    let Some(rows) = setup.vectors(model)? else { return Ok(None) };
    let (row, encoder) = (&*rows.row(at).map_err(RetrieveError::Vectors)?, setup.encoder(model)?);
    let similarity = encoder.similarity();
    let mut projections = list.trace.steps.iter().filter_map(|step| match step {
        Step::Project(projected) => Some(projected.as_ref()),
        _ => None,
    });
    let projected: Option<&Projected> = projections.nth(merged.unwrap_or(0));
    let texts = match query {
        Wording::Text(text) => vec![text.clone()],
        Wording::Mean(texts) => texts.clone(),
        Wording::Terms(_) => return Ok(None),
    };
    let mut sum = vec![0f32; encoder.dimensions()];
    let mut cosines = Vec::new();
    for text in texts {
        let vector = encoder.encode(&text, Role::Query)?;
        cosines.push((text, dot(&vector, row)));
        sum.iter_mut().zip(&vector).for_each(|(sum, x)| *sum += x);
    }
    let length = match similarity {
        Similarity::Cosine => dot(&sum, &sum).sqrt(),
        Similarity::Dot => cosines.len() as f32,
    };
    let plain = dot(&sum, row) / length.max(f32::MIN_POSITIVE);
    let point = projected.and_then(|projected| Some((projected.ran, projected.points.get(&at)?.score)));
    let texts = if cosines.len() > 1 { cosines } else { Vec::new() };
    Ok(Some(Explanation::Vectors { similarity, plain, projected: point, texts }))
}

/// How the passages of a list change its stance. Passages are numbered by their places, from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StanceTimeline {
    /// The stance after each passage.
    pub stances: Vec<Stance>,
    /// The passages that changed the stance when they were added.
    pub turns: Vec<usize>,
    /// The fewest passages of one side whose removal changes the last stance.
    pub removed: Option<Vec<usize>>,
    /// The passages whose removal alone changes it.
    pub alone: Vec<usize>,
    /// How many of the passages are judged.
    pub judged: usize,
}

impl StanceTimeline {
    /// The timeline of these passages in this order; `None` if the question is not two-sided.
    pub fn of(question: &Question, judgments: &Judgments, passages: &[PassageIx]) -> Option<Self> {
        let [first, other] = question.sides()?;
        let support: Vec<_> = passages.iter().map(|at| judgments.support(*at)).collect();
        let sides: Vec<Sides> = support
            .iter()
            .map(|set| set.map_or((false, false), |set| (set.contains(first), set.contains(other))))
            .collect();
        let stances = stances(&sides);
        let last = stances.last().copied().unwrap_or(Stance::Silent);
        let without = |at: &usize| {
            let kept: Vec<Sides> = (0..sides.len()).filter(|i| i != at).map(|i| sides[i]).collect();
            self::stances(&kept).last().copied().unwrap_or(Stance::Silent) != last
        };
        Some(StanceTimeline {
            turns: turns(&stances),
            removed: removed_to_turn(&sides),
            alone: (0..sides.len()).filter(without).collect(),
            judged: support.iter().flatten().count(),
            stances,
        })
    }

    /// The stance of all passages together.
    pub fn last(&self) -> Stance {
        self.stances.last().copied().unwrap_or(Stance::Silent)
    }
}

#[cfg(test)]
mod tests {
    use super::super::list::Trace;
    use super::super::opening::Opening;
    use super::*;
    use crate::detect::{LabelSource, PairLabels};
    use crate::work::Stop;

    #[test]
    fn an_index_entry_counts_the_terms_of_a_passage_and_of_the_corpus() {
        let folder = tempfile::tempdir().unwrap();
        let corpus = folder.path().join("corpus.jsonl");
        let lines =
            "{\"_id\": \"a\", \"text\": \"Zoos help zoos.\"}\n{\"_id\": \"b\", \"text\": \"Help!\"}\n";
        std::fs::write(&corpus, lines).unwrap();
        let opening =
            Opening { corpus: Some(corpus), data_dir: folder.path().join("data"), ..Opening::default() };
        let setup = Setup::open(&opening, &|_| (), &Stop::never()).unwrap();
        let recipe: Recipe = "bm25".parse().unwrap();
        let at = setup.corpus.find("a").unwrap();
        let entry: serde_json::Value =
            serde_json::from_str(&index_entry(&setup, &recipe, at).unwrap()).unwrap();
        assert_eq!(entry["bm25"]["terms"], 3);
        assert_eq!(entry["bm25"]["terms of an average passage"], 2.0);
        // ln(1 + (2 − 1 + ½)/(1 + ½)) and ln(1 + (2 − 2 + ½)/(2 + ½)), the rarer term first.
        let expected = json!([
            {"term": "zoo", "times": 2, "passages": 1, "idf": (std::f64::consts::LN_2 * 1e4).round() / 1e4},
            {"term": "help", "times": 1, "passages": 2, "idf": 0.1823},
        ]);
        assert_eq!(entry["bm25"]["entries"], expected);
        assert_eq!(entry["vectors"][0]["missing"], "the passages have no vectors by it yet");
        let outside = index_entry(&setup, &recipe, PassageIx::outside(0)).unwrap_err().to_string();
        assert!(outside.contains("no index holds it"), "{outside}");
    }

    #[test]
    fn a_server_with_vectors_is_named_if_there_are_none_here() {
        let folder = tempfile::tempdir().unwrap();
        let corpus = folder.path().join("corpus.jsonl");
        std::fs::write(&corpus, "{\"_id\": \"a\", \"text\": \"Zoos help.\"}\n").unwrap();
        let opening =
            Opening { corpus: Some(corpus), data_dir: folder.path().join("data"), ..Opening::default() };
        let setup = Setup::open(&opening, &|_| (), &Stop::never()).unwrap();
        let recipe: Recipe = "os:http://localhost:9200/a@by=vectors".parse().unwrap();
        let query = Wording::Text("zoos".into());
        let step = Step::Retrieve { by: recipe.base, queries: vec![query], pool: 1 };
        let list = List { trace: Trace { steps: vec![step], notes: Vec::new() }, ..List::default() };
        let at = setup.corpus.find("a").unwrap();
        let reasons = explain(&setup, &list, "zoos", at).unwrap();
        assert!(matches!(reasons.as_slice(), [Explanation::Elsewhere { .. }]), "{reasons:?}");
    }

    #[test]
    fn a_timeline_counts_what_is_judged_and_knows_the_side_that_supports() {
        let question =
            Question { perspectives: vec!["a".into(), "b".into()], supports: Some(1), ..Question::default() };
        let mut judgments = Judgments::new(&question, LabelSource::Gold, Default::default());
        let mut write = |at: u32, sides: [bool; 2]| {
            for (i, side) in sides.into_iter().enumerate() {
                judgments.write(PassageIx(at), i, PairLabels { gold: Some(side), ..PairLabels::default() });
            }
        };
        write(0, [false, true]);
        write(1, [true, false]);
        write(2, [true, false]);
        let places: Vec<PassageIx> = (0..4).map(PassageIx).collect();
        let timeline = StanceTimeline::of(&question, &judgments, &places).unwrap();
        use Stance::*;
        assert_eq!(timeline.stances, [Supports, Supports, Balanced, Balanced]);
        assert_eq!((timeline.turns.clone(), timeline.judged, timeline.last()), (vec![2], 3, Balanced));
        assert_eq!(timeline.removed, Some(vec![0]));
        assert_eq!(timeline.alone, [0, 1, 2]);
        let many = Question { supports: None, ..question };
        assert_eq!(StanceTimeline::of(&many, &judgments, &places), None);
    }
}
