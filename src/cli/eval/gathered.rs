//! What the questions gave so far: values, verdicts and doubt of every lane and column.

use std::collections::HashMap;

use crate::corpus::PassageIx;
use crate::engine::{Judgments, LaneError, Outcome, Ranked, Shares};
use crate::measure::expected::expected;
use crate::measure::intervals::Bias;
use crate::measure::score::Column;
use crate::measure::score::SupportEvidence;
use crate::measure::support::Measured;
use crate::measure::uncertainty::{REPLICATES, Replicates, Spread, drawn};
use crate::measure::{Measure, PerspectiveCount, SupportSet};
use crate::report::means::Values;
use crate::report::table::{Cell, Row};

/// Draws behind a question's value on a curve.
const EXPECTED: usize = 200;

/// A lane's value of one column for one question, where it has one.
type Value = Option<Measured<f64>>;

/// Values of every lane, question after question. The bounds of some lanes follow the lanes.
pub struct Gathered {
    columns: Vec<Column>,
    rows: Vec<Gathering>,
    /// Of the first columns of every lane, one lane after the other; none where labels alone count.
    replicates: Option<Replicates>,
    doubted: usize,
    by_model: bool,
    questions: usize,
    /// Whose judgments the first k of all lanes have.
    pub shares: Shares,
}

/// One row.
#[derive(Clone)]
struct Gathering {
    values: Vec<Values>,
    /// Passages looked at that have labels, and that were returned, by column.
    judged: Vec<(usize, usize)>,
    failed: Vec<(String, String)>,
}

impl Gathered {
    /// Nothing yet, of this many questions. The first `doubted` columns carry the doubt of the model's verdicts.
    pub fn new(
        columns: Vec<Column>,
        doubted: usize,
        (lanes, bounds): (usize, usize),
        (questions, seed): (usize, u64),
    ) -> Self {
        let row = Gathering {
            values: vec![Values::new(); columns.len()],
            judged: vec![(0, 0); columns.len()],
            failed: Vec::new(),
        };
        let replicates = (doubted > 0).then(|| Replicates::new(questions, lanes * doubted, REPLICATES, seed));
        Gathered {
            rows: vec![row; lanes + bounds],
            replicates,
            doubted,
            columns,
            by_model: false,
            questions: 0,
            shares: Shares::default(),
        }
    }

    /// Takes one question: all lanes, and the best order of those in `bounds`. `shift` asks a lane in other wordings.
    pub fn take(
        &mut self,
        outcome: &Outcome,
        bounds: &[usize],
        mut shift: impl FnMut(usize, usize) -> Result<f64, LaneError>,
    ) -> anyhow::Result<()> {
        let (question, judgments) = (&outcome.query.question, &outcome.judgments);
        let m = PerspectiveCount::new(question.perspectives.len())?;
        let supports = question.supports;
        let lists: Vec<&[Ranked]> = outcome.lists().into_iter().map(Option::unwrap_or_default).collect();
        // The ideal of alpha_nDCG is made of all that the lanes brought up.
        let pool = outcome.pool();
        for (lane, list) in lists.iter().enumerate() {
            if let Err(error) = &outcome.lanes[lane].ranking {
                self.rows[lane].failed.push((question.id.clone(), error.to_string()));
            }
            // A lane without a list is measured as one that found nothing.
            let ranked = judgments.supports(list);
            let evidence = SupportEvidence { ranked: &ranked, pool: &pool, m, supports };
            let mut values: Vec<Value> = Vec::new();
            for column in &self.columns {
                values.push(match column {
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
            self.rows[lane].put(&values);
        }
        for (row, lane) in bounds.iter().enumerate() {
            let best = outcome.best_order(*lane).unwrap_or_default();
            let ranked = judgments.supports(&best);
            let evidence = SupportEvidence { ranked: &ranked, pool: &pool, m, supports };
            // The best order is that of the first k, and says nothing of other depths.
            let of = |column: &Column| {
                (column.depth() <= outcome.query.k && column.doubted()).then(|| column.value(evidence))
            };
            let values: Vec<Value> = self.columns.iter().map(|column| of(column).flatten()).collect();
            self.rows[lists.len() + row].put(&values);
        }
        self.shares = self.shares.plus(outcome.shares());
        if self.replicates.is_some() {
            self.doubt(judgments, &lists, (m, supports));
        }
        self.questions += 1;
        Ok(())
    }

    /// Measures the lists again with verdicts drawn: the same draw for a passage wherever it stands.
    fn doubt<'a>(
        &mut self,
        judgments: &Judgments,
        lists: &[&'a [Ranked]],
        (m, supports): (PerspectiveCount, Option<usize>),
    ) {
        let drawn_columns = &self.columns[..self.doubted];
        let deepest = self.columns.iter().map(|column| column.depth()).max().unwrap_or(0);
        let mut places: HashMap<PassageIx, usize> = HashMap::new();
        let mut rows = Vec::new();
        let mut place = |ranked: &'a Ranked| {
            *places.entry(ranked.at).or_insert_with(|| {
                rows.push((ranked.passage.id.as_str(), judgments.chances(ranked.at)));
                rows.len() - 1
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
            replicates.add(self.questions, &rows, |sets, values| {
                for (top, values) in tops.iter().zip(values.chunks_mut(drawn_columns.len())) {
                    for (column, out) in
                        drawn_columns.iter().zip(values).filter(|(column, _)| column.doubted())
                    {
                        *out = value(column, sets, top);
                    }
                }
            });
        }
        if !by_model {
            return;
        }
        // The question's value is what the model's probabilities expect: exactly for the columns, by draws for the deep curves.
        let draws = drawn(&rows, EXPECTED, 0);
        for (top, row) in tops.iter().zip(&mut self.rows) {
            for (i, (column, all)) in self.columns.iter().zip(&mut row.values).enumerate() {
                let mean = match () {
                    () if !column.doubted() => continue,
                    () if i < self.doubted => {
                        let list = top.iter().take(column.depth()).map(|place| rows[*place].1.clone());
                        expected(&list.collect::<Vec<_>>(), |ranked| {
                            let evidence = SupportEvidence { ranked, pool: &[], m, supports };
                            column.value(evidence).map(|measured| measured.value)
                        })
                    }
                    () => {
                        let values = draws.iter().map(|sets| value(column, sets, top));
                        values.sum::<Option<f64>>().map(|sum| sum / draws.len() as f64)
                    }
                };
                // A measure that some outcomes leave without a value keeps the one of the verdicts.
                if let (Some(last), Some(mean)) = (all.last_mut(), mean) {
                    *last = Some(mean);
                }
            }
        }
    }

    /// A lane's, or a bound's, values: a column, a question.
    pub fn values(&self, columns: std::ops::Range<usize>) -> Vec<Vec<Values>> {
        self.rows.iter().map(|row| row.values[columns.clone()].to_vec()).collect()
    }

    /// The rows with their means, to which doubt and the differences from the lanes in `versus` are added. The share judged is that of the first column.
    pub fn rows(
        &self,
        names: impl Iterator<Item = String>,
        cells: Vec<Vec<Option<Cell>>>,
        columns: std::ops::Range<usize>,
        versus: &[Option<usize>],
        bias: Bias,
    ) -> Vec<Row> {
        let share = |(judged, of): (usize, usize)| (of > 0).then(|| judged as f64 / of as f64);
        let rows = self.rows.iter().zip(names).zip(cells).enumerate();
        rows.map(|(at, ((row, lane), mut cells))| {
            let of = |lane: usize, column: usize| {
                let of_a_lane = self.by_model && lane * self.doubted < self.replicates.as_ref()?.columns();
                self.replicates
                    .as_ref()
                    .filter(|_| of_a_lane && column < self.doubted)?
                    .means(lane * self.doubted + column)
            };
            let drawn = |column: usize| of(at, column);
            // Both lanes' replicates see the same questions and the same verdicts.
            let difference = |column: usize| {
                let other = of((*versus.get(at)?)?, column)?;
                let own = drawn(column)?;
                Spread::of(&mut own.iter().zip(other).map(|(own, other)| own - other).collect::<Vec<_>>())
            };
            let judged = share(row.judged[columns.start]);
            let means: Vec<Option<Vec<f64>>> = columns.clone().map(drawn).collect();
            for ((cell, column), means) in cells.iter_mut().zip(columns.clone()).zip(&means) {
                let Some(cell) = cell else { continue };
                cell.judged = share(row.judged[column]).filter(|own| Some(*own) != judged);
                cell.widened = bias.of(&self.columns[column].to_string());
                cell.doubt =
                    means.clone().and_then(|mut means| Some(Spread::of(&mut means)?.widened(cell.widened)));
                cell.difference = difference(column);
            }
            let values = row.values[columns.clone()].to_vec();
            Row { lane, cells, failed: row.failed.clone(), judged, values, replicates: means }
        })
        .collect()
    }
}

impl Gathering {
    fn put(&mut self, values: &[Value]) {
        for ((all, judged), value) in self.values.iter_mut().zip(&mut self.judged).zip(values) {
            all.push(value.map(|measured| measured.value));
            if let Some(Measured { judged: labelled, of, .. }) = value {
                judged.0 += labelled;
                judged.1 += of;
            }
        }
    }
}
