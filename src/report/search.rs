//! The result of `parallax search`, as text, JSON and TSV.

use std::fmt::Write;

use serde_json::{Value, json};

use super::marks::{Glyphs, Mark, share, signed};
use super::safe;
use crate::measure::uncertainty::Spread;
use crate::pipeline::{Book, Figures, FirstRank, Plan, Ranking, Recipe};

/// Measures by name with their values.
pub type Named = Vec<(String, Option<f64>)>;

/// A lane as it came out.
pub struct LaneResult {
    /// How it was made.
    pub recipe: Recipe,
    /// Its list, or why there is none.
    pub ranking: Result<Ranking, String>,
    /// The same lane's list with nothing switched on, where something is.
    pub plain: Option<Ranking>,
    /// The measures asked for by name; none where the question does not allow one.
    pub named: Named,
    /// Milliseconds it took.
    pub took_ms: f64,
}

/// All that a search found.
pub struct SearchResult<'a> {
    /// What was asked.
    pub plan: &'a Plan,
    /// The corpus's name, size and content.
    pub corpus: (&'a str, usize, &'a str),
    /// Name and hash of the detector.
    pub detector: &'a str,
    /// How many labels by hand its threshold was fitted on, if it was.
    pub fitted_on: Option<usize>,
    /// What is to be known before a figure is believed.
    pub caution: Option<String>,
    /// The lanes in order.
    pub lanes: Vec<LaneResult>,
    /// The verdicts.
    pub book: Book,
}

impl SearchResult<'_> {
    fn figures(&self, ranking: &Ranking) -> Option<Figures> {
        Figures::of(ranking, &self.book, &self.plan.question, self.plan.k)
    }

    /// What the detector's doubt leaves of each measure: the chance or mean, and the middle 95 %.
    fn doubt(&self, ranking: &Ranking) -> Option<Value> {
        let doubt = Figures::doubt(ranking, &self.book, &self.plan.question, self.plan.k)?;
        let value = |spread: Spread| json!({"mean": spread.mean, "low": spread.low, "high": spread.high});
        let k = self.plan.k;
        let mut all = serde_json::Map::new();
        all.insert(format!("MRecall@{k}"), value(doubt.mrecall));
        all.insert(format!("Prec@{k}"), value(doubt.prec));
        all.extend(doubt.lean.map(|lean| (format!("Lean@{k}"), value(lean))));
        Some(Value::Object(all))
    }

    /// For people.
    pub fn text(&self, glyphs: Glyphs) -> String {
        let question = &self.plan.question;
        let mut out = format!("{}\n", safe::line(&question.text));
        for (i, statement) in question.perspectives.iter().enumerate() {
            let _ = writeln!(out, "{} {}", Mark::of(i, question).text(glyphs), safe::line(statement));
        }
        if let Some(caution) = &self.caution {
            let _ = writeln!(out, "{}", safe::line(caution));
        }
        for lane in &self.lanes {
            let _ = writeln!(
                out,
                "\n{}  {}  {:.1} ms",
                safe::line(&lane.recipe.title()),
                lane.recipe,
                lane.took_ms
            );
            match &lane.ranking {
                Err(reason) => drop(writeln!(out, "  no list: {reason}")),
                Ok(ranking) => self.lane_text(&mut out, &lane.recipe, ranking, glyphs),
            }
            let named = lane.named.iter().map(|(name, value)| {
                let value = value.map_or_else(|| "–".into(), |value| format!("{value:.4}"));
                format!("{name} {value}")
            });
            if !lane.named.is_empty() {
                let _ = writeln!(out, "    {}", named.collect::<Vec<_>>().join(" · "));
            }
        }
        out
    }

    fn lane_text(&self, out: &mut String, recipe: &Recipe, ranking: &Ranking, glyphs: Glyphs) {
        let question = &self.plan.question;
        for (i, ranked) in ranking.iter().take(self.plan.k).enumerate() {
            let support = self.book.support(ranked.at).filter(|_| self.book.perspectives > 0);
            let mark = Mark::of_set(support, question).text(glyphs);
            let p = (0..self.book.perspectives).filter_map(|i| self.book.verdict(ranked.at, i)?.p);
            let p = p.reduce(f32::max).map_or_else(String::new, |p| share(f64::from(p)));
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
            let _ = writeln!(out, "    expanded: {}", safe::line(&expansion.told()));
        }
        for note in &ranking.trace.notes {
            let _ = writeln!(out, "    note: {}", safe::line(note));
        }
        match self.figures(ranking) {
            Some(figures) => drop(writeln!(out, "    {}", line(&figures, &self.book, self.plan, glyphs))),
            None => out.push_str(
                "    no measures: the question has no perspectives (give them with --perspective)\n",
            ),
        }
    }

    /// For programs; the shape is kept stable.
    pub fn json(&self) -> Value {
        let question = &self.plan.question;
        let lanes = self.lanes.iter().map(|lane| {
            let (ranking, error) = match &lane.ranking {
                Ok(ranking) => (Some(ranking), None),
                Err(reason) => (None, Some(reason)),
            };
            let figures = ranking.and_then(|ranking| self.figures(ranking));
            json!({
                "lane": lane.recipe.title(),
                "recipe": lane.recipe.to_string(),
                "steps": ranking.map_or_else(Vec::new, |ranking| super::steps::json(ranking, self.plan.k)),
                "notes": ranking.map_or_else(Vec::new, |ranking| ranking.trace.notes.clone()),
                "error": error,
                "hits": ranking.map_or_else(Vec::new, |ranking| self.hits(ranking, lane.plain.as_ref())),
                "measures": figures.as_ref().map(|figures| {
                    let mut all = figures.by_name();
                    all.extend(lane.named.iter().map(|(name, value)| (name.clone(), json!(value))));
                    all
                }),
                "doubt": ranking.and_then(|ranking| self.doubt(ranking)),
                "judged": figures.map_or(0, |figures| figures.judged),
            })
        });
        let timing = self.lanes.iter().map(|lane| (lane.recipe.to_string(), json!(lane.took_ms)));
        let (name, passages, fingerprint) = self.corpus;
        json!({
            "question": question.text,
            "perspectives": question.perspectives,
            "supports": question.supports,
            "corpus": {"name": name, "passages": passages},
            "k": self.plan.k,
            "lanes": lanes.collect::<Vec<_>>(),
            "timing": timing.collect::<serde_json::Map<_, _>>(),
            "provenance": {
                "version": env!("CARGO_PKG_VERSION"),
                "models": {
                    "detector": self.detector,
                    "threshold": self.book.threshold,
                    "threshold_fitted_on": self.fitted_on,
                },
                "labels": self.book.source.to_string(),
                "corpus": fingerprint,
                "seed": 0,
            },
        })
    }

    fn hits(&self, ranking: &Ranking, plain: Option<&Ranking>) -> Vec<Value> {
        let top = ranking.iter().take(self.plan.k).enumerate();
        top.map(|(i, ranked)| {
            let verdicts: Vec<Value> = (0..self.book.perspectives)
                .map(|perspective| {
                    let verdict = self.book.verdict(ranked.at, perspective);
                    let failed =
                        self.book.known(ranked.at, perspective).and_then(|known| match &known.model {
                            Some(Err(error)) => Some(error.to_string()),
                            _ => None,
                        });
                    json!({
                        "perspective": perspective,
                        "p": verdict.and_then(|verdict| verdict.p),
                        "supports": verdict.map(|verdict| verdict.supports),
                        "by": verdict.map(|verdict| verdict.by),
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
                "was": plain.and_then(|plain| plain.rank_of(ranked.at)),
                "verdicts": verdicts,
            })
        })
        .collect()
    }

    /// For spreadsheets: a line a passage, the supported perspectives by number from 1.
    pub fn tsv(&self) -> String {
        let mut out = String::from("question\tlane\trank\tid\tscore\tsupports\n");
        for lane in &self.lanes {
            for (i, ranked) in
                lane.ranking.iter().flat_map(|ranking| ranking.iter()).take(self.plan.k).enumerate()
            {
                let supports = self.book.support(ranked.at).map_or_else(
                    || "?".to_owned(),
                    |set| set.iter().map(|i| (i + 1).to_string()).collect::<Vec<_>>().join(","),
                );
                let field = |text: &str| safe::line(text);
                let (question, id) = (field(&self.plan.question.text), field(&ranked.passage.id));
                let _ = writeln!(
                    out,
                    "{question}\t{}\t{}\t{id}\t{:.4}\t{supports}",
                    lane.recipe,
                    i + 1,
                    ranked.score
                );
            }
        }
        out
    }
}

/// The figures of a lane in one line, as the screen shows them.
pub fn line(figures: &Figures, book: &Book, plan: &Plan, glyphs: Glyphs) -> String {
    let question = &plan.question;
    let k = figures.k;
    let mut out = format!(
        "MRecall@{k} {} · {}/{} sides",
        figures.shown(|| format!("{:.0}", figures.mrecall)),
        figures.covered.len(),
        book.perspectives
    );
    let _ = write!(out, " · Prec@{k} {} ·", figures.shown(|| share(figures.prec)));
    for (i, count) in figures.supporting.iter().enumerate() {
        let _ = write!(out, " {}{count}", Mark::of(i, question).text(glyphs));
    }
    let _ = write!(out, " {}{}", Mark::None.glyph(glyphs), figures.none);
    if let Some(sides) = figures.sides {
        let _ = write!(out, " · lean {}", figures.shown(|| signed(sides.lean()).trim().to_owned()));
    }
    let _ = write!(out, " · first rank");
    for (i, first) in figures.first.iter().enumerate() {
        let mark = Mark::of(i, question).text(glyphs);
        match first {
            FirstRank::At(rank) => drop(write!(out, " {mark}{rank}")),
            FirstRank::Below(judged) => drop(write!(out, " {mark}>{judged}")),
        }
    }
    let _ = write!(out, " · {}/{} judged ({})", figures.judged, figures.returned, book.source);
    out
}
