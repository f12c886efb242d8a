//! Explains a passage's rank in plain lines, and writes the steps of a list as JSON for `search --format json`.

use serde_json::{Value, json};

use super::marks::{Glyphs, Mark, share, signed};
use super::plot::shorten;
use super::safe;
use crate::corpus::PassageIx;
use crate::detect::{Decision, NO_SIDE, Outcome, Rule};
use crate::encode::Met;
use crate::engine::recipe::{Base, Recipe, Toward};
use crate::engine::{Explanation, List, Ranking, Step, Wording};
use crate::expand::{Added, AddedFrom, Expansion, Queries};
use crate::measure::trec::RunOrder;
use crate::question::Question;

/// The most columns of another passage's title.
const TITLE: usize = 60;
/// How many terms are shown; the shares of the others are added up.
const TERMS: usize = 8;

/// Says what the model decided on a passage, with its four probabilities.
pub fn decision(decision: &Decision, rule: &Rule, question: &Question, glyphs: Glyphs) -> String {
    let [first, second, both, neither] = decision.p.map(share);
    let mark = |i| Mark::of(i, question).text(glyphs);
    let engaged = share(decision.engaged);
    let says = match decision.outcome {
        Outcome::Neither => format!("It takes no side: the probability that it takes one is {engaged}."),
        Outcome::Unclear if !rule.shows_sides() => format!("The side is unclear; {NO_SIDE}."),
        Outcome::Unclear => {
            let needed =
                rule.heads.tau.map_or_else(String::new, |tau| format!("; one is shown from {}", share(tau)));
            format!("The side is unclear{needed}.")
        }
        Outcome::Both => "It supports both sides.".into(),
        Outcome::Side(side) => format!("It supports {} alone.", mark(side)),
    };
    let (a, b) = (mark(0), mark(1));
    let odds = format!("{a} only {first}, {b} only {second}, both {both}, neither {neither}");
    format!("The model's decision: {says} {odds}.")
}

/// Returns one or more lines for each reason.
pub fn lines(explanations: &[Explanation], list: &List, question: &Question, glyphs: Glyphs) -> Vec<String> {
    let title = |at: PassageIx| {
        let found = list.iter().find(|ranked| ranked.at == at).map(|ranked| &ranked.passage);
        found.map_or_else(
            || "another passage".into(),
            |passage| format!("“{}”", shorten(passage.heading(), TITLE)),
        )
    };
    explanations.iter().flat_map(|reason| reason_lines(reason, &title, question, glyphs)).collect()
}

/// Returns the lines of one reason; `title` names another passage.
fn reason_lines(
    reason: &Explanation,
    title: &dyn Fn(PassageIx) -> String,
    question: &Question,
    glyphs: Glyphs,
) -> Vec<String> {
    let p = |x: f32| share(f64::from(x));
    match reason {
        Explanation::Terms { shares, score } => {
            let word = |(term, x, added): (&str, f32, bool)| {
                format!("{}{term} {x:.2}", if added { "+" } else { "" })
            };
            let mut words: Vec<String> =
                shares.iter().take(TERMS).map(|s| word((&s.term, s.share, s.added))).collect();
            let rest: f32 = shares.iter().skip(TERMS).map(|share| share.share).sum();
            if shares.len() > TERMS {
                words.push(format!("{} more {rest:.2}", shares.len() - TERMS));
            }
            vec![format!("BM25 {score:.2} = {}", words.join(" · "))]
        }
        Explanation::Vectors { similarity, plain, projected, texts } => {
            let named = similarity.name();
            let mut all = vec![match projected {
                None => format!("{named} {plain:.3}"),
                Some((variant, score)) => format!("{named} {plain:.3}, {variant} {score:.3}"),
            }];
            all.extend(texts.iter().map(|(text, cosine)| format!("  {cosine:.3} to: {text}")));
            all
        }
        Explanation::Sparse(found) => {
            let product = |(term, [query, own, share]): &(String, [f32; 3])| {
                format!("{} {share:.2} ({query:.2} × {own:.2})", safe::line(term))
            };
            let mut words: Vec<String> = found.shares.iter().take(TERMS).map(product).collect();
            let rest: f32 = found.shares.iter().skip(TERMS).map(|(_, numbers)| numbers[2]).sum();
            if found.shares.len() > TERMS {
                words.push(format!("{} more {rest:.2}", found.shares.len() - TERMS));
            }
            vec![format!("{} {:.2} = {}", safe::line(&found.model), found.score, words.join(" · "))]
        }
        Explanation::Tokens { model, score, met } => {
            let mut all =
                vec![format!("{} {score:.2} by the nearest token to each of the query's", safe::line(model))];
            all.extend(by_words(met));
            all
        }
        Explanation::Merged { query, text } => vec![format!("brought up by query {}: {text}", query + 1)],
        Explanation::Given { run, tag, stood } => {
            let rank = stood.rank.map_or_else(String::new, |rank| format!("rank {rank}, "));
            let tag = if tag.is_empty() { String::new() } else { format!(" (tag {tag})") };
            let file = run.path.display();
            let mut all = vec![format!("given by {file}:{}{tag}: {rank}score {}", stood.line, stood.score)];
            if run.order == RunOrder::TrecEval {
                all.push("the run was put in trec_eval's order: by score, then by id".into());
            }
            all
        }
        Explanation::Elsewhere { by } => {
            vec![format!("ranked by {by}, which does not say what each word weighs")]
        }
        Explanation::Fused(ranks) => {
            let rank = |rank: Option<usize>| rank.map_or_else(|| "–".into(), |rank| rank.to_string());
            vec![format!("fused from BM25 rank {} and MiniLM rank {}", rank(ranks[0]), rank(ranks[1]))]
        }
        Explanation::Asked { by, ranks } => {
            let found = ranks.iter().filter(|(_, rank)| rank.is_some()).count();
            let mut all =
                vec![format!("asked {} times, found {found} times, fused by {}", ranks.len(), by.name())];
            all.extend(ranks.iter().map(|(text, rank)| {
                let rank = rank.map_or_else(|| "–".into(), |rank| rank.to_string());
                format!("  rank {rank} to: {text}")
            }));
            all
        }
        Explanation::Mmr { lambda, relevance, closest, value, was } => {
            let other = 1.0 - lambda;
            vec![match closest {
                None => format!(
                    "MMR took it first: {} · {relevance:.3} = {value:.3}; rank {was} before",
                    p(*lambda)
                ),
                Some((at, similarity)) => format!(
                    "MMR {value:.3} = {} · {relevance:.3} − {} · {similarity:.3} ({}); rank {was} before",
                    p(*lambda),
                    p(other),
                    title(*at)
                ),
            }]
        }
        Explanation::Diversified { method, weight, relevance, gains, value, was } => {
            let gain = |(i, gain): (usize, &f32)| {
                format!("{}{}", Mark::of(i, question).text(glyphs), signed(f64::from(*gain)).trim())
            };
            let gains: Vec<String> = gains.iter().enumerate().map(gain).collect();
            vec![format!(
                "{method} {} at λ {}: relevance {}, gains {}; rank {was} before",
                p(*value),
                p(*weight),
                p(*relevance),
                gains.join(" ")
            )]
        }
        Explanation::Ordered { model, window, was } => {
            vec![format!("{model} put it here, reading {window} passages at a time; rank {was} before")]
        }
        Explanation::Scored { model, score, was: (was, of), met } => {
            let mut all =
                vec![format!("{model} scores it {score:.3} with the query; rank {was} of {of} before")];
            all.extend(by_words(met));
            all
        }
    }
}

/// What the words of a query add to a score of late interaction, and what its other tokens.
fn by_words(met: &[Met]) -> Option<String> {
    let sum = |words: bool| -> f32 {
        met.iter().filter(|met| met.query.is_empty() != words).map(|met| met.similarity).sum()
    };
    (!met.is_empty())
        .then(|| format!("  {:.2} by words of the query, {:.2} by its other tokens", sum(true), sum(false)))
}

/// Returns every step as JSON, limited to the first `k` passages.
pub fn json(ranking: &Ranking, k: usize) -> Vec<Value> {
    ranking.trace.steps.iter().map(|step| step_json(step, ranking, k)).collect()
}

fn step_json(step: &Step, ranking: &Ranking, k: usize) -> Value {
    let top = || ranking.iter().take(k);
    match step {
        Step::Expand(expansion) => expansion_json(expansion),
        Step::Project(projected) => json!({
            "step": "project",
            "variant": projected.asked.name(),
            "ran": projected.ran.name(),
            "toward": match &projected.toward {
                Toward::Perspective(i) => json!(i + 1),
                Toward::Text(text) => json!(text),
            },
            "q": projected.q,
            "r": projected.r,
            "p": projected.p,
            "points": top().filter_map(|ranked| {
                let point = projected.points.get(&ranked.at)?;
                Some(json!({
                    "id": ranked.passage.id,
                    "plain": point.plain,
                    "score": point.score,
                    "before": point.before,
                    "after": point.after,
                }))
            }).collect::<Vec<_>>(),
        }),
        Step::Retrieve { by, queries, pool } => json!({
            "step": "retrieve",
            "by": recipe_text(by),
            "queries": queries.iter().map(wording_json).collect::<Vec<_>>(),
            "pool": pool,
        }),
        Step::Given { run, tag, question, stood } => json!({
            "step": "run",
            "by": recipe_text(&Base::Run(run.clone())),
            "tag": tag,
            "question": question,
            "pool": stood.len(),
            "given": top().filter_map(|ranked| {
                let stood = stood.get(&ranked.at)?;
                let (id, line) = (&ranked.passage.id, stood.line);
                Some(json!({"id": id, "rank": stood.rank, "score": stood.score, "line": line}))
            }).collect::<Vec<_>>(),
        }),
        Step::Merge { from } => json!({
            "step": "merge",
            "order": "round-robin",
            "from": top().filter_map(|ranked| {
                Some(json!({"id": ranked.passage.id, "query": from.get(&ranked.at)?}))
            }).collect::<Vec<_>>(),
        }),
        Step::Fuse { ranks } => json!({
            "step": "fuse",
            "by": "reciprocal rank, 1/(60 + rank)",
            "of": ["bm25", "minilm"],
            "ranks": top().filter_map(|ranked| {
                Some(json!({"id": ranked.passage.id, "ranks": ranks.get(&ranked.at)?}))
            }).collect::<Vec<_>>(),
        }),
        Step::Ask { texts, by, ranks } => json!({
            "step": "ask",
            "by": by.name(),
            "queries": texts,
            "ranks": top().filter_map(|ranked| {
                Some(json!({"id": ranked.passage.id, "ranks": ranks.get(&ranked.at)?}))
            }).collect::<Vec<_>>(),
        }),
        Step::Mmr { options, picks, pool } => json!({
            "step": "mmr",
            "lambda": options.lambda,
            "similarity": options.sim.map_or_else(|| similarity_encoder(ranking), str::to_owned),
            "pool": pool.len(),
            "picks": top().zip(picks).map(|(ranked, pick)| json!({
                "id": ranked.passage.id,
                "was": pick.passage + 1,
                "relevance": pick.relevance,
                "closest": pick.closest.map(|(other, similarity)| {
                    json!({"id": id(pool[other], ranking), "similarity": similarity})
                }),
                "value": pick.value,
            })).collect::<Vec<_>>(),
        }),
        Step::Diversify { method, weight, choices, pool, judged } => json!({
            "step": "diversify",
            "method": method.to_string(),
            "lambda": weight,
            "verdicts": "model",
            "judged": judged,
            "pool": pool.len(),
            "picks": top().zip(choices).map(|(ranked, choice)| json!({
                "id": ranked.passage.id,
                "was": choice.passage + 1,
                "relevance": choice.relevance,
                "gains": choice.gains,
                "value": choice.value,
            })).collect::<Vec<_>>(),
        }),
        Step::Listwise { options, model, order, pool, windows: (windows, ordered), cost } => json!({
            "step": "listwise",
            "model": model,
            "window": options.window,
            "advance": options.step,
            "pool": pool.len(),
            "windows": {"all": windows, "ordered": ordered},
            "replies": {"all": cost.replies, "recorded": cost.recorded},
            "tokens": cost.tokens.map(|tokens| json!({"prompt": tokens.prompt, "reply": tokens.reply})),
            "picks": top().zip(order).map(|(ranked, was)| json!({"id": ranked.passage.id, "was": was + 1})).collect::<Vec<_>>(),
        }),
        Step::Probe(probed) => json!({
            "step": "ivf",
            "nprobe": probed.lists.0,
            "lists": probed.lists.1,
            "found": probed.found,
            "of": probed.of,
        }),
        Step::Score { model, order, pool, .. } => json!({
            "step": "rerank",
            "model": model,
            "pool": pool.len(),
            "picks": top().zip(order).map(|(ranked, (was, score))| {
                json!({"id": ranked.passage.id, "was": was + 1, "score": score})
            }).collect::<Vec<_>>(),
        }),
    }
}

/// Returns the encoder whose vectors MMR compares: the lane's own, or the built-in one.
fn similarity_encoder(ranking: &Ranking) -> String {
    let own = ranking.trace.steps.iter().find_map(|step| match step {
        Step::Retrieve { by, .. } => has_own_encoder(by).then(|| recipe_text(by)),
        _ => None,
    });
    own.unwrap_or_else(|| recipe_text(&Base::MiniLm))
}

/// Whether MMR compares the lane's passages by an encoder other than the built-in one.
fn has_own_encoder(by: &Base) -> bool {
    match by {
        Base::Custom(_) => true,
        Base::Bm25(_)
        | Base::MiniLm
        | Base::Sparse(_)
        | Base::Late(_)
        | Base::Hybrid
        | Base::Remote(_)
        | Base::Run(_) => false,
    }
}

/// Writes the recipe of a lane without switches.
fn recipe_text(by: &Base) -> String {
    Recipe::from(by.clone()).to_string()
}

fn id(at: PassageIx, ranking: &Ranking) -> Option<String> {
    ranking.iter().find(|ranked| ranked.at == at).map(|ranked| ranked.passage.id.clone())
}

fn wording_json(query: &Wording) -> Value {
    match query {
        Wording::Text(text) => json!(text),
        Wording::Mean(texts) => json!({"mean": texts}),
        Wording::Terms(weights) => json!({"terms": weights}),
    }
}

fn expansion_json(expansion: &Expansion) -> Value {
    let queries = match &expansion.queries {
        Queries::Each(texts) => json!({"each": texts}),
        Queries::Joined { terms, vectors } => json!({"terms": terms, "mean": vectors}),
        Queries::Terms(weights) => json!({"weights": weights}),
    };
    json!({
        "step": "expand",
        "kind": expansion.kind.to_string(),
        "form": expansion.form.to_string(),
        "text": expansion.describe(),
        "added": expansion.added.iter().map(added_json).collect::<Vec<_>>(),
        "queries": queries,
        "notes": expansion.notes,
        "replies": {"all": expansion.cost.replies, "recorded": expansion.cost.recorded},
        "tokens": expansion.cost.tokens.map(|tokens| json!({"prompt": tokens.prompt, "reply": tokens.reply})),
    })
}

fn added_json(added: &Added) -> Value {
    let source = match &added.source {
        AddedFrom::Given => json!("question set"),
        AddedFrom::Statement(i) => json!({"statement": i + 1}),
        AddedFrom::Model { model, recorded, sample } => {
            json!({"model": model, "recorded": recorded, "sample": sample})
        }
        AddedFrom::Passage { rank, .. } => json!({"passage_at_rank": rank}),
        AddedFrom::Feedback => json!("feedback"),
    };
    let missing = added.sentences.iter().filter(|(_, found)| found.is_none());
    let missing: Vec<&str> = missing.filter_map(|(range, _)| added.text.get(range.clone())).collect();
    json!({"name": added.name, "text": added.text, "source": source, "not_in_corpus": missing})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unclear_side_names_the_probability_that_it_needs() {
        let question =
            Question { perspectives: vec![String::new(); 2], supports: Some(0), ..Question::default() };
        let mut rule = Rule::default();
        rule.heads.tau = Some(0.85);
        let p = [0.66, 0.29, 0.0, 0.05];
        let unclear = Decision { outcome: Outcome::Unclear, engaged: 0.95, p };
        let said = decision(&unclear, &rule, &question, Glyphs::Shapes);
        assert!(said.contains("The side is unclear; one is shown from .85. ▲ only .66"), "{said}");
    }
}
