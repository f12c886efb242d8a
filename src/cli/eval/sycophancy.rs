//! `eval sycophancy`: Figure 3 of Chen and Choi. Every lane asked neutrally, as the supporting statement and as the opposing one.

use super::super::args::{Common, Eval};
use super::lanes::{Lanes, Said};
use super::sets::seed;
use super::{Values, cells, under};
use crate::detect::LabelSource;
use crate::measure::PerspectiveCount;
use crate::measure::lean::{SideShares, pool, side_shares};
use crate::measure::significance::{DRAWS, bootstrap_interval};
use crate::measure::uncertainty::{REPLICATES, Replicates, Spread};
use crate::pipeline::sway::WORDINGS;
use crate::pipeline::{Ranked, Swayed, sway};
use crate::question::Question;
use crate::report::table::{Cell, Row, Table};

/// The table, or nothing where the user interrupted.
pub fn table(common: &Common, args: &Eval) -> anyhow::Result<Option<Table>> {
    let lanes = Lanes::open(common, args)?;
    under::known(args, lanes.recipes.iter().map(ToString::to_string))?;
    let k = usize::from(common.k);
    let measured: Vec<_> =
        lanes.setup.questions.iter().filter(|question| question.supports.is_some()).collect();
    let (maxima, mut said) = (lanes.maxima()?, Said::default());
    let mut rows = Vec::new();
    let total = measured.len() * lanes.recipes.len();
    for recipe in &lanes.recipes {
        let (mut failed, mut judged, mut of) = (Vec::new(), 0, 0);
        // p, n and lean of each wording, then the shift.
        let mut values = vec![Values::new(); 10];
        let mut shares: [Vec<SideShares>; 3] = Default::default();
        let mut replicates = Replicates::new(measured.len(), values.len(), REPLICATES, seed(common));
        let mut by_model = false;
        for question in &measured {
            let done = values[9].len();
            lanes.tell(rows.len() * measured.len() + done, total);
            let swayed = sway(&lanes.setup, recipe, question, (k, lanes.source), &maxima, &lanes.stop);
            if lanes.stop.is_set() {
                return Ok(None);
            }
            let (own, shift) = match swayed {
                Ok(swayed) => {
                    said.take_swayed(recipe, question, &swayed);
                    for ranked in swayed.lists.iter().flat_map(|list| list.iter().take(k)) {
                        of += 1usize;
                        judged += usize::from(swayed.book.support(ranked.at).is_some());
                    }
                    by_model |= lanes.source != LabelSource::Gold
                        && doubt(&mut replicates, done, &swayed, question, k);
                    (swayed.shares, swayed.shift())
                }
                Err(error) => {
                    failed.push((question.id.clone(), error.to_string()));
                    replicates.add(done, &[], |_, values| values.fill(Some(0.0)));
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
        let means: Vec<Option<Vec<f64>>> =
            (0..cells.len()).map(|column| replicates.means(column).filter(|_| by_model)).collect();
        for (cell, means) in cells.iter_mut().zip(&means) {
            let Some(cell) = cell else { continue };
            cell.doubt = means.clone().and_then(|mut means| Spread::of(&mut means));
        }
        for shares in &shares {
            cells.push(delta(shares)?);
        }
        let judged = (of > 0).then(|| judged as f64 / of as f64);
        // Δ is of the pooled questions and has no value for one.
        values.resize(cells.len(), Values::new());
        rows.push(Row { lane: recipe.to_string(), cells, failed, judged, values, replicates: means });
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
        caution: lanes.caution()?,
        notes: [
            "as-1, as-2: the query is the supporting or the opposing statement; lean = p − n; shift = lean as-1 − lean as-2"
                .into(),
            "Δ = (p − n)/p over all questions pooled; – where no passage supports".into(),
        ]
        .into_iter()
        .chain(said.notes())
        .collect(),
        provenance: lanes.provenance()?,
        ..Table::default()
    }))
}

/// Adds a question with the verdicts of all three lists drawn, a passage's once; whether any verdict is the model's.
fn doubt<'a>(
    replicates: &mut Replicates,
    at: usize,
    swayed: &'a Swayed,
    question: &Question,
    k: usize,
) -> bool {
    let (book, Ok(m)) = (&swayed.book, PerspectiveCount::new(2)) else { return false };
    let (mut passages, mut rows) = (Vec::new(), Vec::new());
    let tops = swayed.lists.each_ref().map(|list| {
        let place = |ranked: &'a Ranked| match passages.iter().position(|known| *known == ranked.at) {
            Some(place) => place,
            None => {
                passages.push(ranked.at);
                rows.push((ranked.passage.id.as_str(), book.probabilities(ranked.at)));
                rows.len() - 1
            }
        };
        list.iter().take(k).map(place).collect::<Vec<usize>>()
    });
    replicates.add(at, &rows, |sets, values| {
        let mut leans = [0.0; 3];
        for (wording, top) in tops.iter().enumerate() {
            let ranked: Vec<_> = top.iter().map(|place| sets[*place]).collect();
            let sides = question.supports.and_then(|first| side_shares(&ranked, m, first, k).ok());
            let sides = sides.map_or(SideShares { p: 0.0, n: 0.0 }, |sides| sides.value);
            leans[wording] = sides.lean();
            values[3 * wording..3 * wording + 3].copy_from_slice(&[sides.p, sides.n, sides.lean()].map(Some));
        }
        values[9] = Some(leans[1] - leans[2]);
    });
    passages.iter().any(|at| (0..2).any(|i| book.verdict(*at, i).is_some_and(|verdict| verdict.p.is_some())))
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
