//! The steps of a list as JSON: the trace of `search --format json`.

use serde_json::{Value, json};

use crate::corpus::PassageIx;
use crate::expand::{Added, Expansion, Queries, Source};
use crate::pipeline::recipe::{Base, Recipe, Toward};
use crate::pipeline::{Ranking, Step, Wording};

/// Every step, the part that concerns the first `k` passages.
pub fn json(ranking: &Ranking, k: usize) -> Vec<Value> {
    ranking.trace.steps.iter().map(|step| one(step, ranking, k)).collect()
}

fn one(step: &Step, ranking: &Ranking, k: usize) -> Value {
    let top = || ranking.iter().take(k);
    match step {
        Step::Expand(expansion) => expanded(expansion),
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
            "by": engine(by),
            "queries": queries.iter().map(wording).collect::<Vec<_>>(),
            "pool": pool,
        }),
        Step::Given { run, tag, question, stood } => json!({
            "step": "run",
            "by": engine(&Base::Run(run.clone())),
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
        Step::Mmr { options, picks, pool } => json!({
            "step": "mmr",
            "lambda": options.lambda,
            "similarity": likeness(ranking),
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
    }
}

/// The encoder whose vectors MMR compares: the lane's own, else the carried one.
fn likeness(ranking: &Ranking) -> String {
    let own = ranking.trace.steps.iter().find_map(|step| match step {
        Step::Retrieve { by: by @ Base::Brought(_), .. } => Some(engine(by)),
        _ => None,
    });
    own.unwrap_or_else(|| engine(&Base::MiniLm))
}

fn engine(by: &Base) -> String {
    Recipe::from(by.clone()).to_string()
}

fn id(at: PassageIx, ranking: &Ranking) -> Option<String> {
    ranking.iter().find(|ranked| ranked.at == at).map(|ranked| ranked.passage.id.clone())
}

fn wording(query: &Wording) -> Value {
    match query {
        Wording::Text(text) => json!(text),
        Wording::Mean(texts) => json!({"mean": texts}),
        Wording::Terms(weights) => json!({"terms": weights}),
    }
}

fn expanded(expansion: &Expansion) -> Value {
    let queries = match &expansion.queries {
        Queries::Each(texts) => json!({"each": texts}),
        Queries::Joined { terms, vectors } => json!({"terms": terms, "mean": vectors}),
        Queries::Terms(weights) => json!({"weights": weights}),
    };
    json!({
        "step": "expand",
        "kind": expansion.kind.to_string(),
        "form": expansion.form.to_string(),
        "told": expansion.told(),
        "added": expansion.added.iter().map(added).collect::<Vec<_>>(),
        "queries": queries,
        "notes": expansion.notes,
        "tokens": expansion.tokens.map(|tokens| json!({"prompt": tokens.prompt, "reply": tokens.reply})),
    })
}

fn added(added: &Added) -> Value {
    let source = match &added.source {
        Source::Given => json!("question set"),
        Source::Statement(i) => json!({"statement": i + 1}),
        Source::Model { model, recorded, sample } => {
            json!({"model": model, "recorded": recorded, "sample": sample})
        }
        Source::Passage { rank, .. } => json!({"passage_at_rank": rank}),
        Source::Feedback => json!("feedback"),
    };
    let missing = added.sentences.iter().filter(|(_, found)| found.is_none());
    let missing: Vec<&str> = missing.filter_map(|(range, _)| added.text.get(range.clone())).collect();
    json!({"name": added.name, "text": added.text, "source": source, "not_in_corpus": missing})
}
