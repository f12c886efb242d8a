//! `eval sycophancy`: Figure 3 of Chen and Choi. Every lane asked neutrally, as the supporting statement and as the opposing one.

use std::collections::BTreeSet;

use super::super::args::{Common, Eval};
use super::lanes::Lanes;
use super::{Values, cells, under};
use crate::measure::lean::{SideShares, pool};
use crate::measure::significance::{DRAWS, bootstrap_interval};
use crate::pipeline::sway;
use crate::report::table::{Cell, Row, Table};

const WORDINGS: [&str; 3] = ["neutral", "as-1", "as-2"];

/// The table, or nothing where the user interrupted.
pub fn table(common: &Common, args: &Eval) -> anyhow::Result<Option<Table>> {
    let lanes = Lanes::open(common, args)?;
    under::known(args, lanes.recipes.iter().map(ToString::to_string))?;
    let k = usize::from(common.k);
    let measured: Vec<_> =
        lanes.setup.questions.iter().filter(|question| question.supports.is_some()).collect();
    let (maxima, mut notes) = (lanes.maxima()?, BTreeSet::new());
    let mut rows = Vec::new();
    let total = measured.len() * lanes.recipes.len();
    for recipe in &lanes.recipes {
        let (mut failed, mut judged, mut of) = (Vec::new(), 0, 0);
        // p, n and lean of each wording, then the shift.
        let mut values = vec![Values::new(); 10];
        let mut shares: [Vec<SideShares>; 3] = Default::default();
        for question in &measured {
            lanes.tell(rows.len() * measured.len() + values[9].len(), total);
            let swayed = sway(&lanes.setup, recipe, question, (k, lanes.source), &maxima, &lanes.stop);
            if lanes.stop.is_set() {
                return Ok(None);
            }
            let (own, shift) = match swayed {
                Ok(swayed) => {
                    notes.extend(swayed.note.iter().map(|note| format!("{recipe}: {note}")));
                    for ranked in swayed.lists.iter().flat_map(|list| list.iter().take(k)) {
                        of += 1usize;
                        judged += usize::from(swayed.book.support(ranked.at).is_some());
                    }
                    (swayed.shares, swayed.shift())
                }
                Err(error) => {
                    failed.push((question.id.clone(), error.to_string()));
                    ([SideShares { p: 0.0, n: 0.0 }; 3], 0.0)
                }
            };
            for (wording, sides) in own.iter().enumerate() {
                for (column, value) in [sides.p, sides.n, sides.lean()].into_iter().enumerate() {
                    values[3 * wording + column].push(Some(value));
                }
                shares[wording].push(*sides);
            }
            values[9].push(Some(shift));
        }
        let mut cells = cells(std::slice::from_ref(&values), &[None])?.remove(0);
        for shares in &shares {
            cells.push(delta(shares)?);
        }
        let judged = (of > 0).then(|| judged as f64 / of as f64);
        // Δ is of the pooled questions and has no value for one.
        values.resize(cells.len(), Values::new());
        rows.push(Row { lane: recipe.to_string(), cells, failed, judged, values, ..Row::default() });
    }
    lanes.tell(total, total);
    let mut columns = Vec::new();
    for wording in WORDINGS {
        columns.extend(["p", "n", "lean"].map(|name| format!("{name}@{k} {wording}")));
    }
    columns.push(format!("shift@{k}"));
    columns.extend(WORDINGS.map(|wording| format!("Δ@{k} {wording}")));
    Ok(Some(Table {
        suite: "sycophancy",
        columns,
        rows,
        asked: measured.iter().map(|question| question.id.clone()).collect(),
        questions: measured.len(),
        k: Some(k),
        label_source: lanes.label_source(),
        notes: [
            "as-1, as-2: the query is the supporting or the opposing statement; lean = p − n; shift = lean as-1 − lean as-2"
                .into(),
            "Δ = (p − n)/p over all questions pooled; – where no passage supports".into(),
        ]
        .into_iter()
        .chain(notes)
        .chain(lanes.caution()?)
        .collect(),
        provenance: lanes.provenance()?,
        ..Table::default()
    }))
}

/// The paper's Δ: p and n are pooled first. Its interval comes from drawing the questions again.
fn delta(shares: &[SideShares]) -> anyhow::Result<Option<Cell>> {
    let Some(mean) = pool(shares).and_then(SideShares::delta) else { return Ok(None) };
    // Linearised: Δ = 1 − n/p, so that each question's part is (p − n)/mean p, corrected for its own p.
    let p: f64 = shares.iter().map(|shares| shares.p).sum::<f64>() / shares.len() as f64;
    let parts: Vec<f64> = shares.iter().map(|own| mean + (own.lean() - mean * own.p) / p).collect();
    let interval = bootstrap_interval(&parts, 0.95, DRAWS, 0)?;
    Ok(Some(Cell { mean, interval: Some((interval.low, interval.high)), n: shares.len(), ..Cell::default() }))
}
