//! Writes the result of `parallax search` as text, JSON and TSV.

use std::fmt::Write;

use serde_json::{Value, json};

use super::marks::{Glyphs, Mark, share, signed};
use super::safe;
use crate::detect::{By, Decision, LabelSource, Outcome as Side};
use crate::engine::{
    Doubt, Figures, FirstRank, Judgments, Lane, LaneError, Named, Outcome, Plain, Query, Ranking, Recipe,
};
use crate::measure::uncertainty::Spread;

/// The result of a search.
pub struct SearchResult<'a> {
    /// The lanes and their judgments.
    pub outcome: Outcome,
    /// For each lane, its plain form if it has switches on.
    pub plain: Vec<Option<Plain>>,
    /// For each lane, the measures that were asked for by name.
    pub named: Vec<Named>,
    /// The corpus's name, its number of passages and the fingerprint of its content.
    pub corpus: (&'a str, usize, &'a str),
    /// The name of the source of the labels in the label file: `gold`, or a judge's.
    pub labels: String,
    /// The key of the detector: its name and hash.
    pub detector: &'a str,
    /// The number of labels by hand that the detector's threshold was fitted on; `None` if it was not fitted.
    pub fitted_on: Option<usize>,
    /// A warning about the figures, printed before them.
    pub caution: Option<String>,
}

impl SearchResult<'_> {
    fn judgments(&self) -> &Judgments {
        &self.outcome.judgments
    }

    fn lanes(&self) -> impl Iterator<Item = (&Recipe, &Lane)> {
        self.outcome.query.lanes.iter().zip(&self.outcome.lanes)
    }

    /// Returns the lanes without a list, each with the reason.
    pub fn failed(&self) -> impl Iterator<Item = (&Recipe, &LaneError)> {
        self.lanes().filter_map(|(recipe, lane)| Some((recipe, &**lane.ranking.as_ref().err()?)))
    }

    /// Returns each measure with the detector's uncertainty: its mean and the middle 95 %. MRecall also has a range: from no unclear passage
    /// supporting a statement that is still missing, to all of them doing so.
    fn doubt(&self, lane: usize) -> Option<Value> {
        let doubt = self.outcome.doubt(lane)?;
        let value = |spread: Spread| json!({"mean": spread.mean, "low": spread.low, "high": spread.high});
        let k = self.outcome.query.k;
        let mut all = serde_json::Map::new();
        let mut mrecall = value(doubt.mrecall);
        mrecall["range"] = json!([doubt.range.0, doubt.range.1]);
        all.insert(format!("MRecall@{k}"), mrecall);
        all.insert(format!("Prec@{k}"), value(doubt.prec));
        all.extend(doubt.lean.map(|lean| (format!("Lean@{k}"), value(lean))));
        Some(Value::Object(all))
    }

    /// Returns the intervals of the differences from the plain lane, if a model judged. Neither lane is better if the interval holds 0.
    fn gap(plain: &Plain) -> Option<Value> {
        let change = plain.change?;
        let (gap, k) = (change.gap?, change.k);
        let value =
            |spread: Spread| json!({"low": spread.low, "high": spread.high, "decided": !spread.holds_zero()});
        let mut all = serde_json::Map::new();
        all.insert(format!("MRecall@{k}"), value(gap.mrecall));
        all.insert(format!("Prec@{k}"), value(gap.prec));
        all.extend(gap.lean.map(|lean| (format!("Lean@{k}"), value(lean))));
        Some(Value::Object(all))
    }

    /// Writes it as text.
    pub fn text(&self, glyphs: Glyphs) -> String {
        let question = &self.outcome.query.question;
        let mut out = format!("{}\n", safe::line(&question.text));
        for (i, statement) in question.perspectives.iter().enumerate() {
            let _ = writeln!(out, "{} {}", Mark::of(i, question).text(glyphs), safe::line(statement));
        }
        if let Some(caution) = &self.caution {
            let _ = writeln!(out, "{}", safe::line(caution));
        }
        for (i, (recipe, lane)) in self.lanes().enumerate() {
            let _ =
                writeln!(out, "\n{}  {recipe}  {:.1} ms", safe::line(&recipe.title()), milliseconds(lane));
            match &lane.ranking {
                Err(error) => drop(writeln!(out, "  no list: {error}")),
                Ok(ranking) => self.lane_text(&mut out, i, ranking, glyphs),
            }
            let named = self.named[i].iter().map(|(name, value)| {
                let value = value.map_or_else(|| "–".into(), |value| format!("{value:.4}"));
                format!("{name} {value}")
            });
            if !self.named[i].is_empty() {
                let _ = writeln!(out, "    {}", named.collect::<Vec<_>>().join(" · "));
            }
        }
        out
    }

    fn lane_text(&self, out: &mut String, lane: usize, ranking: &Ranking, glyphs: Glyphs) {
        let (recipe, judgments) = (&self.outcome.query.lanes[lane], self.judgments());
        let question = &self.outcome.query.question;
        for (i, ranked) in ranking.iter().take(self.outcome.query.k).enumerate() {
            let mark = match judgments.perspectives {
                0 => Mark::Pending,
                _ => Mark::of_passage(judgments, ranked.at, question),
            };
            let mark = mark.text(glyphs);
            let p = judgments.shown(ranked.at).map_or_else(String::new, share);
            let score = recipe.score(ranked.score);
            let title =
                if ranked.passage.title.is_empty() { &ranked.passage.text } else { &ranked.passage.title };
            let title: String = safe::line(title).chars().take(60).collect();
            let _ = writeln!(
                out,
                "{:>3} {mark:<2} {p:>4} {score:>8}  {title}  [{}]",
                i + 1,
                safe::line(&ranked.passage.id)
            );
        }
        if ranking.is_empty() {
            out.push_str("  nothing found\n");
        }
        if let Some(expansion) = ranking.trace.expansion() {
            let _ = writeln!(out, "    expanded: {}", safe::line(&expansion.describe()));
        }
        for note in &ranking.trace.notes {
            let _ = writeln!(out, "    note: {}", safe::line(note));
        }
        match self.outcome.figures(lane) {
            Some(figures) => {
                let doubt = self.outcome.doubt(lane);
                let _ = writeln!(
                    out,
                    "    {}",
                    figures_line(&figures, doubt.as_ref(), judgments, &self.outcome.query, glyphs)
                );
            }
            None => out
                .push_str("    no measures: the question has no statements (give them with --perspective)\n"),
        }
    }

    /// Writes it as JSON. The format is stable.
    pub fn json(&self) -> Value {
        let question = &self.outcome.query.question;
        let query = &self.outcome.query;
        let lanes = self.lanes().enumerate().map(|(i, (recipe, lane))| {
            let ranking = lane.ranking.as_ref().ok();
            let error = lane.ranking.as_ref().err().map(ToString::to_string);
            let (figures, plain) = (self.outcome.figures(i), self.plain[i].as_ref());
            json!({
                "lane": recipe.title(),
                "recipe": recipe.to_string(),
                "steps": ranking.map_or_else(Vec::new, |ranking| super::explanations::json(ranking, query.k)),
                "notes": ranking.map_or_else(Vec::new, |ranking| ranking.trace.notes.clone()),
                "error": error,
                "hits": ranking.map_or_else(Vec::new, |ranking| self.hits(ranking, plain)),
                "measures": figures.as_ref().map(|figures| {
                    let mut all = figures.by_name(self.outcome.doubt(i).as_ref());
                    all.extend(self.named[i].iter().map(|(name, value)| (name.clone(), json!(value))));
                    all
                }),
                "delta": plain.and_then(|plain| self.delta(i, plain)),
                "delta_interval": plain.and_then(Self::gap),
                "first_ranks": figures.as_ref().map(|figures| figures.first.iter().map(first_rank).collect::<Vec<_>>()),
                "doubt": self.doubt(i),
                "judged": figures.map_or(0, |figures| figures.judged),
            })
        });
        let timing = self.lanes().map(|(recipe, lane)| (recipe.to_string(), json!(milliseconds(lane))));
        let (name, passages, fingerprint) = self.corpus;
        let sources = self.judgments().sources();
        json!({
            "question": question.text,
            "perspectives": question.perspectives,
            "supports": question.supports,
            "corpus": {"name": name, "passages": passages},
            "k": query.k,
            "lanes": lanes.collect::<Vec<_>>(),
            "timing": timing.collect::<serde_json::Map<_, _>>(),
            "provenance": {
                "version": env!("CARGO_PKG_VERSION"),
                "models": {
                    "detector": self.detector,
                    "threshold": self.judgments().rule().threshold,
                    "threshold_fitted_on": self.fitted_on,
                    "probabilities": sources.words().map(|_| sources),
                },
                "labels": match self.judgments().source {
                    LabelSource::Gold => self.labels.clone(),
                    source => source.to_string(),
                },
                "corpus": fingerprint,
                "seed": 0,
            },
        })
    }

    /// Returns the difference of each measure from that of the lane's plain form.
    fn delta(&self, lane: usize, plain: &Plain) -> Option<serde_json::Map<String, Value>> {
        let mut all = plain.change?.by_name();
        for ((name, value), (_, plain)) in self.named[lane].iter().zip(&plain.named) {
            all.insert(name.clone(), json!(value.zip(*plain).map(|(value, plain)| value - plain)));
        }
        Some(all)
    }

    fn hits(&self, ranking: &Ranking, plain: Option<&Plain>) -> Vec<Value> {
        let judgments = self.judgments();
        let top = ranking.iter().take(self.outcome.query.k).enumerate();
        top.map(|(i, ranked)| {
            let verdicts: Vec<Value> = (0..judgments.perspectives)
                .map(|perspective| {
                    let verdict = judgments.verdict(ranked.at, perspective);
                    let failed =
                        judgments.pair(ranked.at, perspective).and_then(|known| match &known.model {
                            Some(Err(error)) => Some(error.to_string()),
                            _ => None,
                        });
                    json!({
                        "perspective": perspective,
                        "p": verdict.and_then(|verdict| verdict.p),
                        "supports": verdict.and_then(|verdict| verdict.supports),
                        "by": verdict.map(|verdict| match verdict.by {
                            By::Gold => json!(self.labels),
                            by => json!(by),
                        }),
                        "detector": self.detector,
                        "error": failed,
                    })
                })
                .collect();
            json!({
                "rank": i + 1,
                "id": ranked.passage.id,
                "title": ranked.passage.title,
                "text": ranked.passage.text,
                "score": ranked.score,
                "was": plain.and_then(|plain| plain.ranking.rank_of(ranked.at)),
                "verdicts": verdicts,
                "decision": judgments.decision(ranked.at).as_ref().map(decision),
            })
        })
        .collect()
    }

    /// Writes it as TSV, one line per passage. `supports` has the numbers of the supported statements from 1, or `?` if the passage is not
    /// judged. `outcome` has the decision on two opposite statements: first, second, both, neither or unclear.
    pub fn tsv(&self) -> String {
        let mut out = String::from("question\tlane\trank\tid\tscore\tsupports\toutcome\n");
        for (recipe, lane) in self.lanes() {
            for (i, ranked) in
                lane.ranking.iter().flat_map(|ranking| ranking.iter()).take(self.outcome.query.k).enumerate()
            {
                let supports = self.judgments().support(ranked.at).map_or_else(
                    || "?".to_owned(),
                    |set| set.iter().map(|i| (i + 1).to_string()).collect::<Vec<_>>().join(","),
                );
                let (question, id) =
                    (safe::field(&self.outcome.query.question.text), safe::field(&ranked.passage.id));
                let outcome = match self.judgments().decision(ranked.at) {
                    Some(decision) => decision.outcome.name(),
                    None => "",
                };
                let _ = writeln!(
                    out,
                    "{question}\t{}\t{}\t{id}\t{:.4}\t{supports}\t{outcome}",
                    safe::field(&recipe.to_string()),
                    i + 1,
                    ranked.score
                );
            }
        }
        out
    }
}

fn milliseconds(lane: &Lane) -> f64 {
    lane.took.as_secs_f64() * 1e3
}

/// Returns `{"rank": 3}`, or `{"below": 23}` if none of the first 23 passages supports the statement.
fn first_rank(first: &FirstRank) -> Value {
    match first {
        FirstRank::At(rank) => json!({"rank": rank}),
        FirstRank::Below(judged) => json!({"below": judged}),
    }
}

/// Returns a decision as JSON. The side is null if it is unclear.
pub fn decision(decision: &Decision) -> Value {
    let side = match decision.outcome {
        Side::Side(side) => json!(side),
        Side::Both => json!("both"),
        Side::Neither => json!("neither"),
        Side::Unclear => Value::Null,
    };
    json!({"side": side, "engaged": decision.engaged, "p": decision.p})
}

/// Formats a mean with its interval: `.46 (.00–1.0)`.
fn spread_text(spread: Spread, short: fn(f64) -> String) -> String {
    let [mean, low, high] = [spread.mean, spread.low, spread.high].map(|x| short(x).trim().to_owned());
    format!("{mean} ({low}–{high})")
}

/// Writes the figures of a lane in one line, as the screen does: mean and interval if a model judged.
fn figures_line(
    figures: &Figures,
    doubt: Option<&Doubt>,
    judgments: &Judgments,
    query: &Query,
    glyphs: Glyphs,
) -> String {
    let question = &query.question;
    let k = figures.k;
    let mut out = format!(
        "MRecall@{k} {} · {}/{} sides",
        doubt.map_or_else(|| figures.mrecall_text(), |doubt| spread_text(doubt.mrecall, share)),
        figures.covered.len(),
        judgments.perspectives
    );
    let prec = || figures.shown(|| share(figures.prec));
    let _ = write!(out, " · Prec@{k} {} ·", doubt.map_or_else(prec, |doubt| spread_text(doubt.prec, share)));
    // Of two sides, a passage for both is counted apart, as on screen.
    let both = match question.sides() {
        Some(_) => figures.supporting.iter().sum::<usize>() + figures.none - figures.judged,
        None => 0,
    };
    for (i, count) in figures.supporting.iter().enumerate() {
        let _ = write!(out, " {}{}", Mark::of(i, question).text(glyphs), count - both);
    }
    if both > 0 {
        let _ = write!(out, " {}{both}", Mark::Several.glyph(glyphs));
    }
    let _ = write!(out, " {}{}", Mark::None.glyph(glyphs), figures.none);
    if figures.unclear > 0 {
        let _ = write!(out, " {}{}", Mark::Unclear.glyph(glyphs), figures.unclear);
    }
    if let Some(Doubt { range: (low, high), .. }) = doubt.filter(|doubt| doubt.range.0 < doubt.range.1) {
        let _ =
            write!(out, " · MRecall {low:.0} to {high:.0}, depending on what the unclear passages support");
    }
    if let Some(sides) = figures.sides {
        let lean = || figures.shown(|| signed(sides.lean()).trim().to_owned());
        let mean = doubt.and_then(|doubt| doubt.lean).map(|lean| spread_text(lean, signed));
        let _ = write!(out, " · lean {}", mean.unwrap_or_else(lean));
    }
    let _ = write!(out, " · first rank");
    for (i, first) in figures.first.iter().enumerate() {
        let mark = Mark::of(i, question).text(glyphs);
        match first {
            FirstRank::At(rank) => drop(write!(out, " {mark}{rank}")),
            FirstRank::Below(judged) => drop(write!(out, " {mark}>{judged}")),
        }
    }
    let _ = write!(out, " · {}/{} judged ({})", figures.judged, figures.returned, judgments.source);
    out
}
