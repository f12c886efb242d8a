//! The results of an evaluation so far: values, labelled passages, failures and intervals of every lane and column; and tables put together
//! from several.

use std::collections::HashMap;
use std::ops::Range;

use serde_json::json;

use super::args::RESAMPLING_SEED;
use crate::corpus::PassageIx;
use crate::engine::{Judgments, LaneError, Outcome, Ranked, Shares, pooled};
use crate::measure::expected::expected;
use crate::measure::intervals::Bias as Widening;
use crate::measure::score::{Column, SupportEvidence};
use crate::measure::support::Measured;
use crate::measure::uncertainty::{REPLICATES, Replicates, Spread, draw};
use crate::measure::{Measure, PerspectiveCount, SupportSet};
use crate::report::means::{Values, distinct, rows};
use crate::report::table::{Cell, Counted, Row, Table};

/// The number of draws behind a question's value on a curve.
const CURVE_DRAWS: usize = 200;

/// The value of one column for one question in one lane; `None` if it has none.
type Value = Option<Measured<f64>>;

/// The values of every lane, question by question. After the rows of the lanes come rows for the best possible order (upper
/// bound) of some lanes.
pub struct EvalResults {
    columns: Vec<Column>,
    rows: Vec<ResultRow>,
    /// Replicates of the first `interval_columns` columns, lane by lane; `None` if only labels count.
    replicates: Option<Replicates>,
    /// The number of columns, from the first, whose intervals show the uncertainty of the model's verdicts.
    interval_columns: usize,
    /// Whether the model judged any passage in the lists.
    by_model: bool,
    /// The number of questions added.
    questions: usize,
    /// The sources of the judgments of the first k of all lanes.
    pub shares: Shares,
}

/// Whether no order has more of it than the one that covers the statements first and then takes the passages that support most.
fn is_best(column: &Column) -> bool {
    match column {
        Column::Named(measure) => {
            matches!(measure, Measure::MRecall { .. } | Measure::SubtopicRecall { .. } | Measure::Prec { .. })
        }
        Column::Covers(_, sides, _) => *sides == [true, true],
    }
}

/// One lane, or one upper bound.
#[derive(Clone)]
struct ResultRow {
    /// By column, then by question.
    values: Vec<Values>,
    /// By column: the number of passages read that have a label, and the number read.
    judged: Vec<(usize, usize)>,
    /// Questions that failed, each with the reason.
    failed: Vec<(String, String)>,
    /// By column: the number of passages read that the model was asked about, and the number that anybody judged.
    by_model: Vec<(usize, usize)>,
    /// Columns that need a pool of labels, where the model judged.
    withheld: Vec<bool>,
}

impl EvalResults {
    /// Empty results for this many questions. The first `interval_columns` columns get intervals from the model's verdicts.
    pub fn new(
        columns: Vec<Column>,
        interval_columns: usize,
        (lanes, bounds): (usize, usize),
        (questions, seed): (usize, u64),
    ) -> Self {
        let row = ResultRow {
            values: vec![Values::new(); columns.len()],
            judged: vec![(0, 0); columns.len()],
            failed: Vec::new(),
            by_model: vec![(0, 0); columns.len()],
            withheld: vec![false; columns.len()],
        };
        let replicates = (interval_columns > 0)
            .then(|| Replicates::new(questions, lanes * interval_columns, REPLICATES, seed));
        EvalResults {
            rows: vec![row; lanes + bounds],
            replicates,
            interval_columns,
            columns,
            by_model: false,
            questions: 0,
            shares: Shares::default(),
        }
    }

    /// Adds one question's outcome: every lane, and the best possible order of the lanes in `bounds`. `pool` holds all labelled
    /// passages of the question. `shift(lane, k)` measures the shift, which needs other wordings of the question.
    pub fn add(
        &mut self,
        outcome: &Outcome,
        pool: &[(String, SupportSet)],
        bounds: &[usize],
        mut shift: impl FnMut(usize, usize) -> Result<f64, LaneError>,
    ) -> anyhow::Result<()> {
        let (question, judgments) = (&outcome.query.question, &outcome.judgments);
        let (m, supports) = (PerspectiveCount::new(question.perspectives.len())?, question.supports);
        let lists: Vec<&[Ranked]> = outcome.lists().into_iter().map(Option::unwrap_or_default).collect();
        let pool = pooled(pool);
        for (lane, list) in lists.iter().enumerate() {
            if let Err(error) = &outcome.lanes[lane].ranking {
                self.rows[lane].failed.push((question.id.clone(), error.to_string()));
            }
            // A lane without a list is measured as an empty list.
            let ranked = judgments.supports(list);
            let evidence = SupportEvidence { ranked: &ranked, pool: &pool, m, supports };
            let deepest = self.columns.iter().map(|column| column.depth()).max().unwrap_or(0);
            let sources: Vec<Shares> =
                list.iter().take(deepest).map(|ranked| Shares::of(judgments, [ranked.at])).collect();
            for (column, (by_model, all)) in self.columns.iter().zip(&mut self.rows[lane].by_model) {
                let own = &sources[..sources.len().min(column.depth())];
                *by_model += own.iter().map(|one| one.by_model()).sum::<usize>();
                *all += own.iter().map(|one| one.all()).sum::<usize>();
            }
            let mut values: Vec<Value> = Vec::new();
            for (at, column) in self.columns.iter().enumerate() {
                values.push(match column {
                    Column::Named(Measure::AlphaNDcg { k, .. })
                        if judgments.is_by_model(&list[..list.len().min(k.get())]) =>
                    {
                        self.rows[lane].withheld[at] = true;
                        None
                    }
                    Column::Named(Measure::Shift { .. }) if supports.is_none() => None,
                    Column::Named(Measure::Shift { k }) => {
                        let value = shift(lane, k.get()).unwrap_or_else(|error| {
                            let failed = &mut self.rows[lane].failed;
                            if failed.last().is_none_or(|(id, _)| *id != question.id) {
                                failed.push((question.id.clone(), error.to_string()));
                            }
                            0.0
                        });
                        Some(Measured::over(&ranked, k.get(), value))
                    }
                    column => column.value(evidence),
                });
            }
            self.rows[lane].add(&values);
        }
        for (row, lane) in bounds.iter().enumerate() {
            if let Err(error) = &outcome.lanes[*lane].ranking {
                self.rows[lists.len() + row].failed.push((question.id.clone(), error.to_string()));
            }
            let best = outcome.best_order(*lane).unwrap_or_default();
            let ranked = judgments.supports(&best);
            let evidence = SupportEvidence { ranked: &ranked, pool: &pool, m, supports };
            // The order is the best for the first k; other depths have other best orders.
            let value = |column: &Column| {
                let bounded = column.depth() <= outcome.query.k && is_best(column);
                if bounded { column.value(evidence) } else { None }
            };
            let values: Vec<Value> = self.columns.iter().map(value).collect();
            self.rows[lists.len() + row].add(&values);
        }
        self.shares = self.shares.plus(outcome.shares());
        if self.replicates.is_some() {
            self.add_replicates(judgments, &lists, (m, supports));
        }
        self.questions += 1;
        Ok(())
    }

    /// Measures the lists again with drawn verdicts. Within a draw, a passage has the same verdicts in every list.
    fn add_replicates<'a>(
        &mut self,
        judgments: &Judgments,
        lists: &[&'a [Ranked]],
        (m, supports): (PerspectiveCount, Option<usize>),
    ) {
        let interval_columns = &self.columns[..self.interval_columns];
        let deepest = self.columns.iter().map(|column| column.depth()).max().unwrap_or(0);
        let mut places: HashMap<PassageIx, usize> = HashMap::new();
        let mut passages = Vec::new();
        let mut place = |ranked: &'a Ranked| {
            *places.entry(ranked.at).or_insert_with(|| {
                passages.push((ranked.passage.id.as_str(), judgments.chances(ranked.at)));
                passages.len() - 1
            })
        };
        let tops: Vec<Vec<usize>> =
            lists.iter().map(|list| list.iter().take(deepest).map(&mut place).collect()).collect();
        let by_model = lists.iter().any(|list| judgments.is_by_model(&list[..list.len().min(deepest)]));
        self.by_model |= by_model;
        let value = |column: &Column, sets: &[Option<SupportSet>], top: &[usize]| {
            let ranked: Vec<Option<SupportSet>> = top.iter().map(|place| sets[*place]).collect();
            let evidence = SupportEvidence { ranked: &ranked, pool: &[], m, supports };
            column.value(evidence).map(|measured| measured.value)
        };
        if let Some(replicates) = &mut self.replicates {
            replicates.add(self.questions, &passages, |sets, values| {
                for (top, values) in tops.iter().zip(values.chunks_mut(interval_columns.len())) {
                    for (column, out) in
                        interval_columns.iter().zip(values).filter(|(column, _)| column.doubted())
                    {
                        *out = value(column, sets, top);
                    }
                }
            });
        }
        if !by_model {
            return;
        }
        // The question's value becomes the mean under the model's probabilities: exact where that can be, else estimated from draws.
        let draws = draw(&passages, CURVE_DRAWS, RESAMPLING_SEED);
        for (top, row) in tops.iter().zip(&mut self.rows) {
            for (i, (column, values)) in self.columns.iter().zip(&mut row.values).enumerate() {
                if !column.doubted() {
                    continue;
                }
                let own = top.iter().take(column.depth());
                let list: Vec<_> = own.map(|place| passages[*place].1.clone()).collect();
                let estimated = || {
                    if i < self.interval_columns {
                        return expected(&list, |ranked| {
                            let evidence = SupportEvidence { ranked, pool: &[], m, supports };
                            column.value(evidence).map(|measured| measured.value)
                        });
                    }
                    let values = draws.iter().map(|sets| value(column, sets, top));
                    values.sum::<Option<f64>>().map(|sum| sum / draws.len() as f64)
                };
                let mean = column.expectation(&list, m, supports).or_else(estimated);
                // If a measure is undefined in some draw, it keeps the value computed from the verdicts.
                if let (Some(last), Some(mean)) = (values.last_mut(), mean) {
                    *last = Some(mean);
                }
            }
        }
    }

    /// The values of every lane and bound, by column and then by question.
    pub fn values(&self, columns: Range<usize>) -> Vec<Vec<Values>> {
        self.rows.iter().map(|row| row.shown(columns.clone())).collect()
    }

    /// Columns that are left out of some lane.
    pub fn withheld(&self) -> Vec<String> {
        let columns = self.columns.iter().enumerate();
        columns
            .filter(|(at, _)| self.rows.iter().any(|row| row.withheld[*at]))
            .map(|(_, c)| c.to_string())
            .collect()
    }

    /// The table's rows: `cells` hold the means; this adds their intervals, and their differences from the lanes in `versus`. The
    /// share of labelled passages is that of the first column.
    pub fn rows(
        &self,
        names: impl Iterator<Item = String>,
        cells: Vec<Vec<Option<Cell>>>,
        columns: Range<usize>,
        versus: &[Option<usize>],
        widening: Widening,
    ) -> Vec<Row> {
        let share = |(judged, of): (usize, usize)| (of > 0).then(|| judged as f64 / of as f64);
        let names: Vec<String> = names.collect();
        let rows = self.rows.iter().zip(names.clone()).zip(cells).enumerate();
        rows.map(|(at, ((row, lane), mut cells))| {
            // Both lanes' replicates have the same questions and the same verdicts, so they can be subtracted one by one.
            let difference = |column: usize| {
                let other = self.replicate_means((*versus.get(at)?)?, column)?;
                let own = self.replicate_means(at, column)?;
                Spread::of(&mut own.iter().zip(other).map(|(own, other)| own - other).collect::<Vec<_>>())
            };
            let (judged, by_model) = (share(row.judged[columns.start]), share(row.by_model[columns.start]));
            let means: Vec<Option<Vec<f64>>> =
                columns.clone().map(|column| self.replicate_means(at, column)).collect();
            for ((cell, column), means) in cells.iter_mut().zip(columns.clone()).zip(&means) {
                let Some(cell) = cell else { continue };
                cell.judged = share(row.judged[column]).filter(|own| Some(*own) != judged);
                cell.by_model = share(row.by_model[column]).filter(|own| Some(*own) != by_model);
                cell.widened = self.columns[column].widening(widening);
                cell.doubt =
                    means.clone().and_then(|mut means| Some(Spread::of(&mut means)?.widened(cell.widened)));
                cell.difference = difference(column);
            }
            let values = row.shown(columns.clone());
            let failed = row.failed.clone();
            let versus = versus.get(at).copied().flatten().and_then(|base| names.get(base).cloned());
            Row { lane, cells, failed, judged, by_model, versus, values, replicates: means, ..Row::default() }
        })
        .collect()
    }

    /// The mean of a lane's column in each replicate; `None` for bounds, for columns without intervals, and if only labels count.
    fn replicate_means(&self, lane: usize, column: usize) -> Option<Vec<f64>> {
        let replicates = self.replicates.as_ref()?;
        let is_lane = lane * self.interval_columns < replicates.columns();
        if !self.by_model || !is_lane || column >= self.interval_columns {
            return None;
        }
        replicates.means(lane * self.interval_columns + column)
    }
}

impl ResultRow {
    /// The values of these columns. A column that a question cannot have is left out for all: a mean over the others is not the set's.
    fn shown(&self, columns: Range<usize>) -> Vec<Values> {
        let none = |at: usize| self.withheld[at].then(|| vec![None; self.values[at].len()]);
        columns.map(|at| none(at).unwrap_or_else(|| self.values[at].clone())).collect()
    }

    fn add(&mut self, values: &[Value]) {
        for ((all, judged), value) in self.values.iter_mut().zip(&mut self.judged).zip(values) {
            all.push(value.map(|measured| measured.value));
            if let Some(Measured { judged: labelled, of, .. }) = value {
                judged.0 += labelled;
                judged.1 += of;
            }
        }
    }
}

/// One table from tables of one question each: the means of all values, with intervals by question. Lanes are compared as in the tables.
pub fn put_together(tables: Vec<Table>) -> anyhow::Result<Table> {
    let Some(first) = tables.first().cloned() else { return Ok(Table::default()) };
    let (mut values, mut failed, mut shares) = (Vec::new(), Vec::new(), Vec::new());
    let mean = |all: &[&Row], share: fn(&Row) -> Option<f64>| {
        all.iter().map(|row| share(row)).sum::<Option<f64>>().map(|sum| sum / all.len() as f64)
    };
    for at in 0..first.rows.len() {
        let same: Vec<&Row> = tables.iter().filter_map(|table| table.rows.get(at)).collect();
        let column = |column: usize| {
            same.iter()
                .flat_map(|row| row.values.get(column).cloned().unwrap_or_default())
                .collect::<Vec<_>>()
        };
        values.push((0..first.columns.len()).map(column).collect::<Vec<_>>());
        failed.push(same.iter().flat_map(|row| row.failed.clone()).collect::<Vec<_>>());
        shares.push((mean(&same, |row| row.judged), mean(&same, |row| row.by_model)));
    }
    let place = |lane: &String| first.rows.iter().position(|row| row.lane == *lane);
    let versus: Vec<Option<usize>> =
        first.rows.iter().map(|row| row.versus.as_ref().and_then(place)).collect();
    let names = first.rows.iter().map(|row| row.lane.clone());
    let mut rows = rows(names, values, &versus, failed, vec![(0, 0); first.rows.len()])?;
    for ((row, judged), own) in rows.iter_mut().zip(shares).zip(&first.rows) {
        let one = tables
            .iter()
            .all(|table| table.rows.iter().any(|row| row.lane == own.lane && row.form == own.form));
        ((row.judged, row.by_model), row.form) = (judged, own.form.clone().filter(|_| one));
    }
    // A note on one question becomes a note on as many as have it.
    let mut counted: Vec<Counted> = Vec::new();
    for note in tables.iter().flat_map(|table| &table.counted) {
        match counted.iter_mut().find(|known| known.text == note.text) {
            Some(known) => known.questions += note.questions,
            None => counted.push(note.clone()),
        }
    }
    let each = "each question is measured on its own corpus; notes count the questions that they are about; intervals are by question alone";
    let notes = distinct(
        std::iter::once(each).chain(tables.iter().flat_map(|table| &table.notes).map(String::as_str)),
    );
    let notes = notes.into_iter().map(str::to_owned).collect();
    Ok(Table {
        question_ids: tables.iter().flat_map(|table| table.question_ids.clone()).collect(),
        questions: tables.iter().map(|table| table.questions).sum(),
        rows,
        notes,
        counted,
        provenance: json!({"questions": tables.iter().map(|table| json!({"id": table.question_ids, "provenance": table.provenance})).collect::<Vec<_>>()}),
        further: Vec::new(),
        ..first
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::eval::estimates::wide;
    use crate::report::table::Head;

    #[test]
    fn questions_with_corpora_of_their_own_are_put_together_as_one_set() {
        let table = |id: &str, means: [f64; 2], note: &str| {
            let row = |(lane, mean): (&str, f64)| Row {
                lane: lane.into(),
                values: vec![vec![Some(mean)]],
                judged: Some(mean),
                versus: (lane != "minilm").then(|| "minilm".to_owned()),
                ..Row::default()
            };
            let recipes = ["minilm", "bm25"];
            Table {
                suite: "berds",
                columns: vec!["Prec@5".into()],
                rows: recipes.into_iter().zip(means).map(row).collect(),
                question_ids: vec![id.into()],
                questions: 1,
                notes: vec!["only-1: the supporting side".into()],
                counted: vec![Counted { text: note.into(), questions: 1 }],
                baseline: Some("minilm".into()),
                ..Table::default()
            }
        };
        let tables = vec![
            table("a", [0.2, 0.4], "x: RM3"),
            table("b", [0.4, 0.4], "x: RM3"),
            table("c", [0.0, 0.1], "y"),
        ];
        let all = put_together(tables).unwrap();
        assert_eq!((all.questions, all.question_ids.len()), (3, 3));
        let cell = |row: usize| all.rows[row].cells[0].clone().unwrap();
        assert!((cell(0).mean - 0.2).abs() < 1e-12 && (cell(1).mean - 0.3).abs() < 1e-12);
        let change = cell(1).change.unwrap();
        assert!((change.mean - 0.1).abs() < 1e-12 && cell(1).p.is_some(), "against the baseline");
        assert_eq!(all.rows[1].versus.as_deref(), Some("minilm"));
        assert!((all.rows[0].judged.unwrap() - 0.2).abs() < 1e-12);
        let notes: Vec<String> = all.all_notes().collect();
        assert_eq!(notes[1..], ["only-1: the supporting side", "x: RM3 (2 questions)", "y (1 question)"]);
    }

    #[test]
    fn a_wide_table_has_a_row_for_each_corpus_and_lane_and_averages_over_the_sets_of_a_corpus() {
        let table = |means: [f64; 2]| {
            let row = |(lane, mean): (&str, f64)| {
                let cell = crate::report::table::Cell { mean, n: 1, ..Default::default() };
                let values = vec![vec![Some(mean)]];
                Row { lane: lane.into(), cells: vec![Some(cell)], values, ..Row::default() }
            };
            let rows = ["bm25", "minilm"].into_iter().zip(means).map(row).collect();
            Table {
                suite: "berds",
                columns: vec![Head::plotted("MRecall@5")],
                rows,
                questions: 1,
                ..Table::default()
            }
        };
        let named = |corpus: &str, set: &str, means| ((corpus.to_owned(), set.to_owned()), table(means));
        let all = wide(vec![
            named("wiki", "kialo", [0.1, 0.2]),
            named("wiki", "arguana", [0.3, 0.6]),
            named("sphere", "kialo", [0.5, 0.7]),
        ])
        .unwrap();
        let heads: Vec<&str> = all.columns.iter().map(|head| head.name.as_str()).collect();
        assert_eq!(heads, ["kialo MRecall@5", "arguana MRecall@5", "average MRecall@5"]);
        let row = |at: usize| {
            let means =
                all.rows[at].cells.iter().map(|cell| cell.as_ref().map(|cell| (cell.mean * 100.0).round()));
            (all.rows[at].lane.as_str(), means.collect::<Vec<_>>())
        };
        assert_eq!(row(0), ("wiki bm25", vec![Some(10.0), Some(30.0), Some(20.0)]));
        assert_eq!(row(1), ("wiki minilm", vec![Some(20.0), Some(60.0), Some(40.0)]));
        assert_eq!(row(2), ("sphere bm25", vec![Some(50.0), None, Some(50.0)]));
        assert_eq!(all.questions, 3);
    }
}
