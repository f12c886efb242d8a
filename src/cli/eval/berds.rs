//! The suites of Chen and Choi: `eval berds` (Tables 3 and 4, Figure 2), `eval coverage` (Tables 5 and 6) and `eval sycophancy`
//! (section 7).

use std::path::Path;

use crate::cli::eval::args::{Eval, RESAMPLING_SEED, check_thresholds, seed};
use crate::cli::eval::lanes::{LaneNotes, Lanes, name_the_model};
use crate::cli::eval::results::EvalResults;
use crate::cli::options::Common;
use crate::detect::LabelSource;
use crate::engine::sycophancy::WORDINGS;
use crate::engine::{Depth, Query, Ranked, Ranking, Shares, Sycophancy, sycophancy as asked_three_ways};
use crate::measure::bias::{SideShares, pool, side_shares};
use crate::measure::coverage::cover;
use crate::measure::coverage::{DEEPEST, union_mrecall};
use crate::measure::intervals::Bias as Widening;
use crate::measure::score::Column;
use crate::measure::significance::{DRAWS, bootstrap_interval};
use crate::measure::uncertainty::{REPLICATES, Replicates, Spread};
use crate::measure::{PerspectiveCount, SupportSet};
use crate::question::Question;
use crate::report::lists::Found;
use crate::report::marks::share;
use crate::report::means::{Values, cells, compare, rows};
use crate::report::page::BERDS_OVER_K;
use crate::report::table::{Cell, Counted, Head, Row, Table};

/// The depth of the curves, if it needs no more verdicts.
const CURVE: usize = 20;

/// Returns the table, or `None` if the user interrupted. With `write`, the lists go to this folder.
pub fn berds(common: &Common, args: &Eval, write: Option<&Path>) -> anyhow::Result<Option<Table>> {
    let k = usize::from(common.k);
    let columns = Column::at(k, &args.measures)?;
    let lanes = Lanes::open(common, args)?;
    let (measured, left_out): (Vec<&Question>, Vec<&Question>) =
        lanes.setup.questions.iter().partition(|question| !question.perspectives.is_empty());
    // Lanes of one retriever choose from nearly the same passages, so one upper bound per retriever is enough.
    let plain = (0..lanes.recipes.len()).filter(|lane| lanes.recipes[*lane] == lanes.recipes[*lane].plain());
    let oracles: Vec<usize> = if args.oracle { plain.collect() } else { Vec::new() };
    let names = || {
        let oracle = oracles.iter().map(|lane| format!("{} (oracle)", lanes.recipes[*lane]));
        lanes.recipes.iter().map(ToString::to_string).chain(oracle)
    };
    check_thresholds(args, names())?;
    let deepest = columns.iter().map(|column| column.depth()).max().unwrap_or(k);
    let judged = if args.oracle { Query::DEPTH } else { deepest };
    let free = lanes.source == LabelSource::Gold || judged >= CURVE;
    let curves = Column::curves(if free { k.max(CURVE) } else { judged });
    let all: Vec<Column> =
        columns.iter().chain(curves.iter().flat_map(|(_, stops)| stops)).copied().collect();
    let interval_columns = if lanes.source == LabelSource::Gold { 0 } else { columns.len() };
    let rows = (lanes.recipes.len(), oracles.len());
    let mut results = EvalResults::new(all, interval_columns, rows, (measured.len(), seed(common)));
    let maxima = lanes.maxima()?;
    let (mut lane_notes, mut found) = (LaneNotes::default(), Found::default());
    for (done, question) in measured.iter().enumerate() {
        lanes.show(done, measured.len());
        let outcome = lanes.run(question, k, Depth::To(judged), &maxima)?;
        let shift = |lane: usize, k: usize| {
            let recipe = &lanes.recipes[lane];
            let sycophancy =
                asked_three_ways(&lanes.setup, recipe, question, (k, lanes.source), &maxima, &lanes.stop);
            sycophancy.map(|sycophancy| {
                lane_notes.take_sycophancy(recipe, question, &sycophancy);
                sycophancy.shift().unwrap_or(0.0)
            })
        };
        if !lanes.stop.is_set() {
            let pool = lanes.setup.label_pool(question, lanes.source);
            results.add(&outcome, &pool, &oracles, shift)?;
        }
        if lanes.stop.is_set() {
            return Ok(None);
        }
        lane_notes.take(&outcome);
        if write.is_some() {
            found.take(&outcome, &lanes.setup);
        }
    }
    lanes.show(measured.len(), measured.len());
    if let Some(folder) = write {
        let questions: Vec<&Question> = measured.clone();
        found.write(&lanes.recipes, &questions, folder)?;
    }
    let mut versus = lanes.compared_with();
    versus.resize(lanes.recipes.len() + oracles.len(), None);
    let own = 0..columns.len();
    let cells = cells(&results.values(own.clone()), &versus)?;
    let widening = if lanes.source.is_labels() {
        Widening::default()
    } else {
        lanes.setup.detector()?.rule().about.bias
    };
    let mut notes = Vec::new();
    if widening != Widening::default() {
        notes.push(format!(
            "the intervals of MRecall and Prec are widened by {} and {} at each end: the error of such means on the development questions",
            share(widening.mrecall),
            share(widening.prec)
        ));
    }
    let withheld = results.withheld();
    if !withheld.is_empty() {
        notes.push(format!(
            "{}: – where the model judged a passage, because the ideal order is made of all labelled passages; --label-source gold or human has it",
            withheld.join(", ")
        ));
    }
    let two_sided = measured.iter().filter(|question| question.supports.is_some()).count();
    let text = format!(
        "only-1, only-2, both, neither: which sides the first {k} cover, over the two-sided questions; side 1 is the supporting one"
    );
    let mut counted = vec![Counted { text, questions: two_sided }];
    if !left_out.is_empty() {
        let text = "left out of all means, because there are no statements".to_owned();
        counted.push(Counted { text, questions: left_out.len() });
    }
    counted.extend(lane_notes.counted());
    notes.extend(lane_notes.sums());
    if args.oracle {
        notes.push("(oracle): the same first 100 passages in the best order that the labels allow".into());
    }
    let table = lanes.table("berds", measured.iter().copied(), k, results.shares)?;
    let mut further: Vec<Table> =
        args.cost.then(|| lane_notes.cost_table(&lanes.recipes)).into_iter().collect();
    let mut start = columns.len();
    for (_, stops) in curves.iter().filter(|(_, stops)| stops.len() > 1) {
        let over = start..start + stops.len();
        start = over.end;
        let names = lanes.recipes.iter().map(ToString::to_string);
        let means = means(&results.values(over.clone()));
        let rows = results.rows(names, means, over, &[], Widening::default());
        let mut rows = rows;
        for row in &mut rows {
            // Every point has its own share.
            let (judged, by_model) = (row.judged.take(), row.by_model.take());
            for cell in row.cells.iter_mut().flatten() {
                (cell.judged, cell.by_model) = (cell.judged.or(judged), cell.by_model.or(by_model));
            }
        }
        let notes = rows.iter().map(|row| judged_at_each_k(row, stops)).chain(table.notes.clone()).collect();
        further.push(Table {
            suite: BERDS_OVER_K,
            columns: stops.iter().copied().map(Head::from).collect(),
            rows,
            notes,
            k: None,
            caution: None,
            ..table.clone()
        });
    }
    let mut rows = results.rows(names(), cells, own, &versus, widening);
    lane_notes.name(&mut rows);
    let columns = columns.into_iter().map(Head::from).collect();
    Ok(Some(Table { columns, rows, notes, counted, further, ..table }))
}

/// How many of the passages that each point of a curve looks at are judged, and how many of these by the model.
fn judged_at_each_k(row: &Row, stops: &[Column]) -> String {
    let points = |of: fn(&Cell) -> Option<f64>| {
        let point = |(cell, stop): (&Option<Cell>, &Column)| {
            Some(format!("{} {}", stop.depth(), share(of(cell.as_ref()?)?)))
        };
        row.cells.iter().zip(stops).filter_map(point).collect::<Vec<_>>().join(", ")
    };
    let judged = format!("{}: share judged by k: {}", row.lane, points(|cell| cell.judged));
    let by_model = |cell: &Cell| cell.by_model.is_some_and(|share| share > 0.0);
    if row.cells.iter().flatten().any(by_model) {
        return format!("{judged}; of these by the model: {}", points(|cell| cell.by_model));
    }
    judged
}

/// Cells that hold only means, for the curves.
fn means(lanes: &[Vec<Values>]) -> Vec<Vec<Option<Cell>>> {
    let mean = |values: &Values| {
        let known: Vec<f64> = values.iter().flatten().copied().collect();
        let n = known.len();
        (n > 0).then(|| Cell { mean: known.iter().sum::<f64>() / n as f64, n, ..Cell::default() })
    };
    lanes.iter().map(|columns| columns.iter().map(mean).collect()).collect()
}

/// Returns the table, or `None` if the user interrupted.
pub fn coverage(common: &Common, args: &Eval) -> anyhow::Result<Option<Table>> {
    let lanes = Lanes::open(common, args)?;
    let names = || lanes.recipes.iter().map(ToString::to_string).chain(["union of all lanes".to_owned()]);
    check_thresholds(args, names())?;
    let (maxima, count) = (lanes.maxima()?, lanes.recipes.len());
    // The size of the cover and whether it is reached, by lane; the last row is the union of all lanes.
    let mut values: Vec<Vec<Values>> = vec![vec![Vec::new(); 2]; count + 1];
    // By lane: how many of the passages read until the cover have a label, and how many were read.
    let mut judged = vec![(0, 0); count + 1];
    let (mut failed, mut lane_notes) = (vec![Vec::new(); count + 1], LaneNotes::default());
    let (mut shares, mut own_shares) = (Shares::default(), vec![Shares::default(); count]);
    let measured: Vec<_> =
        lanes.setup.questions.iter().filter(|question| !question.perspectives.is_empty()).collect();
    for (done, question) in measured.iter().enumerate() {
        lanes.show(done, measured.len());
        let outcome = lanes.run(question, usize::from(common.k), Depth::CoveredWhatever, &maxima)?;
        if lanes.stop.is_set() {
            return Ok(None);
        }
        lane_notes.take(&outcome);
        let m = PerspectiveCount::new(question.perspectives.len())?;
        let (mut all, mut looked_at) = (Vec::new(), Vec::new());
        for (lane, ranked) in outcome.lanes.iter().enumerate() {
            let supports = |list: &Ranking| outcome.judgments.supports(list);
            let supports = ranked.ranking.as_ref().map(supports).unwrap_or_else(|error| {
                failed[lane].push((question.id.clone(), error.to_string()));
                Vec::new()
            });
            let found = cover(&supports, m);
            judged[lane] = (judged[lane].0 + found.judged, judged[lane].1 + found.looked_at);
            let list = ranked.ranking.iter().flat_map(|list| list.iter().take(found.looked_at));
            let read: Vec<_> = list.map(|ranked| ranked.at).collect();
            own_shares[lane] = own_shares[lane].plus(Shares::of(&outcome.judgments, read.iter().copied()));
            looked_at.extend(read);
            let at = found.at;
            values[lane][0].push(at.map(|at| at as f64));
            values[lane][1].push(Some(f64::from(u8::from(at.is_some()))));
            all.push(supports);
        }
        let all: Vec<&[_]> = all.iter().map(Vec::as_slice).collect();
        shares = shares.plus(Shares::of(&outcome.judgments, looked_at));
        values[count][0].push(None);
        values[count][1].push(Some(union_mrecall(&all, m, DEEPEST).value));
    }
    lanes.show(measured.len(), measured.len());
    let mut versus = lanes.compared_with();
    versus.push(None);
    let mut rows = rows(names(), values, &versus, failed, judged)?;
    lane_notes.name(&mut rows);
    name_the_model(&mut rows, &own_shares);
    Ok(Some(Table {
        columns: ["Cover", "covered@100"].map(Head::plotted).to_vec(),
        rows,
        notes: std::iter::once(
            "Cover: mean over the questions that reach it, as many as covered@100 says".to_owned(),
        )
        .chain(lane_notes.sums())
        .collect(),
        counted: lane_notes.counted(),
        further: args.cost.then(|| lane_notes.cost_table(&lanes.recipes)).into_iter().collect(),
        ..lanes.table("coverage", measured.iter().copied(), DEEPEST, shares)?
    }))
}

/// Returns the table, or `None` if the user interrupted.
pub fn sycophancy(common: &Common, args: &Eval) -> anyhow::Result<Option<Table>> {
    let lanes = Lanes::open(common, args)?;
    check_thresholds(args, lanes.recipes.iter().map(ToString::to_string))?;
    let k = usize::from(common.k);
    let measured: Vec<_> =
        lanes.setup.questions.iter().filter(|question| question.supports.is_some()).collect();
    let (maxima, mut lane_notes, mut all_shares) = (lanes.maxima()?, LaneNotes::default(), Shares::default());
    let mut rows = Vec::new();
    let total = measured.len() * lanes.recipes.len();
    for (at, recipe) in lanes.recipes.iter().enumerate() {
        let (mut failed, mut judged, mut of) = (Vec::new(), 0, 0);
        let mut own_shares = Shares::default();
        // p, n and lean of each wording, then the shift.
        let mut values = vec![Values::new(); 10];
        let mut shares: [Vec<SideShares>; 3] = Default::default();
        let mut replicates = Replicates::new(measured.len(), values.len(), REPLICATES, seed(common));
        let mut by_model = false;
        for question in &measured {
            let done = values[9].len();
            lanes.show(rows.len() * measured.len() + done, total);
            let sycophancy =
                asked_three_ways(&lanes.setup, recipe, question, (k, lanes.source), &maxima, &lanes.stop);
            if lanes.stop.is_set() {
                return Ok(None);
            }
            let (own, shift) = match sycophancy {
                Ok(sycophancy) => {
                    lane_notes.take_sycophancy(recipe, question, &sycophancy);
                    for ranked in sycophancy.lists.iter().flat_map(|list| list.iter().take(k)) {
                        of += 1usize;
                        judged += usize::from(sycophancy.judgments.support(ranked.at).is_some());
                    }
                    let tops = sycophancy.lists.iter().flat_map(|list| list.iter().take(k));
                    let here = Shares::of(&sycophancy.judgments, tops.map(|ranked| ranked.at));
                    own_shares = own_shares.plus(here);
                    by_model |= lanes.source != LabelSource::Gold
                        && add_replicates(&mut replicates, done, &sycophancy, question, k);
                    // A list of which nothing was judged counts as 0, as in every measure over a question set.
                    let nothing = SideShares { p: 0.0, n: 0.0 };
                    (
                        sycophancy.shares.map(|sides| sides.unwrap_or(nothing)),
                        sycophancy.shift().unwrap_or(0.0),
                    )
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
        // Δ pools all questions, so a single question has no value.
        values.resize(cells.len(), Values::new());
        let lane = recipe.to_string();
        rows.push(Row { lane, cells, failed, judged, values, replicates: means, ..Row::default() });
        name_the_model(&mut rows[at..], &[own_shares]);
        all_shares = all_shares.plus(own_shares);
    }
    lanes.show(total, total);
    let all: Vec<Vec<Values>> = rows.iter().map(|row| row.values.clone()).collect();
    compare(
        &mut rows.iter_mut().map(|row| &mut row.cells).collect::<Vec<_>>(),
        &all.iter().collect::<Vec<_>>(),
        &lanes.plain_forms(),
    )?;
    let mut columns = Vec::new();
    for wording in WORDINGS {
        columns.extend(["p", "n", "lean"].map(|name| Head::from(format!("{name}@{k} {wording}"))));
    }
    columns.push(Head::plotted(format!("shift@{k}")));
    columns.extend(WORDINGS.map(|wording| Head::from(format!("Δ@{k} {wording}"))));
    Ok(Some(Table {
        columns,
        rows,
        notes: [
            "as-1, as-2: the query is the supporting or the opposing statement; lean = p − n; shift = lean as-1 − lean as-2"
                .into(),
            "Δ = (p − n)/p over all questions pooled; – where no passage supports".into(),
        ]
        .into_iter()
        .chain(lane_notes.notes())
        .collect(),
        ..lanes.table("sycophancy", measured.iter().copied(), k, all_shares)?
    }))
}

/// Adds one question's replicates. Within a draw, a passage has the same verdicts in all three lists. Returns whether any verdict
/// is the model's.
fn add_replicates<'a>(
    replicates: &mut Replicates,
    at: usize,
    sycophancy: &'a Sycophancy,
    question: &Question,
    k: usize,
) -> bool {
    let (judgments, Ok(m)) = (&sycophancy.judgments, PerspectiveCount::new(2)) else { return false };
    let (mut passages, mut rows) = (Vec::new(), Vec::new());
    let tops = sycophancy.lists.each_ref().map(|list| {
        let place = |ranked: &'a Ranked| match passages.iter().position(|known| *known == ranked.at) {
            Some(place) => place,
            None => {
                passages.push(ranked.at);
                rows.push((ranked.passage.id.as_str(), judgments.chances(ranked.at)));
                rows.len() - 1
            }
        };
        list.iter().take(k).map(place).collect::<Vec<usize>>()
    });
    let shares = |sets: &[Option<SupportSet>]| {
        tops.each_ref().map(|top| {
            let ranked: Vec<_> = top.iter().map(|place| sets[*place]).collect();
            let sides = question.supports.and_then(|first| side_shares(&ranked, m, first, k).ok());
            sides.map_or(SideShares { p: 0.0, n: 0.0 }, |sides| sides.value)
        })
    };
    replicates.add(at, &rows, |sets, values| {
        let shares = shares(sets);
        for (wording, sides) in shares.iter().enumerate() {
            values[3 * wording..3 * wording + 3].copy_from_slice(&[sides.p, sides.n, sides.lean()].map(Some));
        }
        values[9] = Some(shares[1].lean() - shares[2].lean());
    });
    sycophancy.lists.iter().any(|list| judgments.is_by_model(&list[..list.len().min(k)]))
}

/// The paper's Δ, computed from pooled p and n. Its interval comes from resampling the questions.
fn delta(shares: &[SideShares]) -> anyhow::Result<Option<Cell>> {
    let Some(mean) = pool(shares).and_then(SideShares::delta) else { return Ok(None) };
    // Δ = 1 − n/p is a ratio of means; linearised, each question contributes (p − n)/mean p, corrected for its own p.
    let p: f64 = shares.iter().map(|shares| shares.p).sum::<f64>() / shares.len() as f64;
    let parts: Vec<f64> = shares.iter().map(|own| mean + (own.lean() - mean * own.p) / p).collect();
    let interval = bootstrap_interval(&parts, 0.95, DRAWS, RESAMPLING_SEED)?;
    Ok(Some(Cell { mean, interval: Some((interval.low, interval.high)), n: shares.len(), ..Cell::default() }))
}
