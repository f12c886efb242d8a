//! Why a passage stands where it does, in plain lines.

use super::marks::{Glyphs, Mark, share, signed};
use crate::corpus::PassageIx;
use crate::measure::trec::RunOrder;
use crate::pipeline::{List, Reason};
use crate::question::Question;

/// Terms that are shown before the rest is summed up.
const TERMS: usize = 8;

/// A line or two a reason.
pub fn lines(reasons: &[Reason], list: &List, question: &Question, glyphs: Glyphs) -> Vec<String> {
    let title = |at: PassageIx| {
        let found = list.iter().find(|ranked| ranked.at == at).map(|ranked| &ranked.passage);
        found.map_or_else(
            || "another passage".into(),
            |passage| {
                if passage.title.is_empty() { passage.id.clone() } else { format!("“{}”", passage.title) }
            },
        )
    };
    reasons.iter().flat_map(|reason| line(reason, &title, question, glyphs)).collect()
}

fn line(
    reason: &Reason,
    title: &dyn Fn(PassageIx) -> String,
    question: &Question,
    glyphs: Glyphs,
) -> Vec<String> {
    let p = |x: f32| share(f64::from(x));
    match reason {
        Reason::Terms { shares, score } => {
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
        Reason::Vectors { similarity, plain, projected, texts } => {
            let named = similarity.name();
            let mut all = vec![match projected {
                None => format!("{named} {plain:.3}"),
                Some((variant, score)) => format!("{named} {plain:.3}, {variant} {score:.3}"),
            }];
            all.extend(texts.iter().map(|(text, cosine)| format!("  {cosine:.3} to: {text}")));
            all
        }
        Reason::Merged { query, text } => vec![format!("brought up by query {}: {text}", query + 1)],
        Reason::Given { run, tag, stood } => {
            let rank = stood.rank.map_or_else(String::new, |rank| format!("rank {rank}, "));
            let tag = if tag.is_empty() { String::new() } else { format!(" (tag {tag})") };
            let file = run.path.display();
            let mut all = vec![format!("given by {file}:{}{tag}: {rank}score {}", stood.line, stood.score)];
            if run.order == RunOrder::TrecEval {
                all.push("the run was put in trec_eval's order: by score, then by id".into());
            }
            all
        }
        Reason::Elsewhere { by } => vec![format!("ranked by {by}, which does not say what each word weighs")],
        Reason::Fused(ranks) => {
            let rank = |rank: Option<usize>| rank.map_or_else(|| "–".into(), |rank| rank.to_string());
            vec![format!("fused from BM25 rank {} and MiniLM rank {}", rank(ranks[0]), rank(ranks[1]))]
        }
        Reason::Mmr { lambda, relevance, closest, value, was } => {
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
        Reason::Diversified { method, weight, relevance, gains, value, was } => {
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
    }
}
