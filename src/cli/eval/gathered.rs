//! What the questions gave so far: values, verdicts and doubt of every lane and column.

use std::collections::{BTreeMap, HashMap};

use super::Values;
use super::columns::Column;
use crate::corpus::PassageIx;
use crate::measure::score::SupportEvidence;
use crate::measure::support::Measured;
use crate::measure::uncertainty::{REPLICATES, Replicates, Spread};
use crate::measure::{Measure, PerspectiveCount, SupportSet};
use crate::pipeline::{Answer, LaneError, Plan, Ranked};
use crate::report::table::{Cell, Row};

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
        }
    }

    /// Takes one question: all lanes, and the best order of those in `bounds`. `shift` asks a lane in other wordings.
    pub fn take(
        &mut self,
        plan: &Plan,
        answered: &Answer,
        bounds: &[usize],
        mut shift: impl FnMut(usize, usize) -> Result<f64, LaneError>,
    ) -> anyhow::Result<()> {
        let m = PerspectiveCount::new(plan.question.perspectives.len())?;
        let supports = plan.question.supports;
        let lists: Vec<&[Ranked]> =
            answered.lanes.iter().map(|(list, _)| list.as_ref().map_or(&[][..], |list| &list[..])).collect();
        // The ideal of alpha_nDCG is made of all that the lanes brought up.
        let pool: BTreeMap<&str, SupportSet> = lists
            .iter()
            .flat_map(|list| list.iter())
            .filter_map(|ranked| Some((ranked.passage.id.as_str(), answered.book.support(ranked.at)?)))
            .collect();
        let pool: Vec<(&str, SupportSet)> = pool.into_iter().collect();
        for (lane, list) in lists.iter().enumerate() {
            if let Err(error) = &answered.lanes[lane].0 {
                self.rows[lane].failed.push((plan.question.id.clone(), error.to_string()));
            }
            // A lane without a list is measured as one that found nothing.
            let ranked = answered.book.supports(list);
            let evidence = SupportEvidence { ranked: &ranked, pool: &pool, m, supports };
            let mut values: Vec<Value> = Vec::new();
            for column in &self.columns {
                values.push(match column {
                    Column::Named(Measure::Shift { .. }) if supports.is_none() => None,
                    Column::Named(Measure::Shift { k }) => {
                        let value = shift(lane, k.get()).unwrap_or_else(|error| {
                            let failed = &mut self.rows[lane].failed;
                            if failed.last().is_none_or(|(id, _)| *id != plan.question.id) {
                                failed.push((plan.question.id.clone(), error.to_string()));
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
            let best = answered.best_order(plan, *lane).unwrap_or_default();
            let ranked = answered.book.supports(&best);
            let evidence = SupportEvidence { ranked: &ranked, pool: &pool, m, supports };
            // The best order is that of the first k, and says nothing of other depths.
            let of = |column: &Column| {
                (column.depth() <= plan.k && column.doubted()).then(|| column.value(evidence))
            };
            let values: Vec<Value> = self.columns.iter().map(|column| of(column).flatten()).collect();
            self.rows[lists.len() + row].put(&values);
        }
        if self.replicates.is_some() {
            self.doubt(answered, &lists, (m, supports));
        }
        self.questions += 1;
        Ok(())
    }

    /// Measures the lists again with verdicts drawn: the same draw for a passage wherever it stands.
    fn doubt<'a>(
        &mut self,
        answered: &Answer,
        lists: &[&'a [Ranked]],
        (m, supports): (PerspectiveCount, Option<usize>),
    ) {
        let book = &answered.book;
        let drawn = &self.columns[..self.doubted];
        let deepest = drawn.iter().map(|column| column.depth()).max().unwrap_or(0);
        let mut places: HashMap<PassageIx, usize> = HashMap::new();
        let mut rows = Vec::new();
        let mut place = |ranked: &'a Ranked| {
            *places.entry(ranked.at).or_insert_with(|| {
                rows.push((ranked.passage.id.as_str(), book.probabilities(ranked.at)));
                rows.len() - 1
            })
        };
        let tops: Vec<Vec<usize>> =
            lists.iter().map(|list| list.iter().take(deepest).map(&mut place).collect()).collect();
        let by_model = |at: &PassageIx| {
            (0..book.perspectives).any(|i| book.verdict(*at, i).is_some_and(|verdict| verdict.p.is_some()))
        };
        self.by_model |= places.keys().any(by_model);
        let Some(replicates) = &mut self.replicates else { return };
        replicates.add(self.questions, &rows, |sets, values| {
            for (top, values) in tops.iter().zip(values.chunks_mut(drawn.len())) {
                let ranked: Vec<Option<SupportSet>> = top.iter().map(|place| sets[*place]).collect();
                let evidence = SupportEvidence { ranked: &ranked, pool: &[], m, supports };
                for (column, value) in drawn.iter().zip(values).filter(|(column, _)| column.doubted()) {
                    *value = column.value(evidence).map(|measured| measured.value);
                }
            }
        });
    }

    /// A lane's, or a bound's, values: a column, a question.
    pub fn values(&self, columns: std::ops::Range<usize>) -> Vec<Vec<Values>> {
        self.rows.iter().map(|row| row.values[columns.clone()].to_vec()).collect()
    }

    /// The rows with their means, to which doubt and verdicts are added. The share judged is that of the first column.
    pub fn rows(
        &self,
        names: impl Iterator<Item = String>,
        cells: Vec<Vec<Option<Cell>>>,
        columns: std::ops::Range<usize>,
    ) -> Vec<Row> {
        let share = |(judged, of): (usize, usize)| (of > 0).then(|| judged as f64 / of as f64);
        let rows = self.rows.iter().zip(names).zip(cells).enumerate();
        rows.map(|(at, ((row, lane), mut cells))| {
            let drawn = |column: usize| {
                let of_a_lane = self.by_model && at * self.doubted < self.replicates.as_ref()?.columns();
                self.replicates
                    .as_ref()
                    .filter(|_| of_a_lane && column < self.doubted)?
                    .means(at * self.doubted + column)
            };
            let judged = share(row.judged[columns.start]);
            let means: Vec<Option<Vec<f64>>> = columns.clone().map(drawn).collect();
            for ((cell, column), means) in cells.iter_mut().zip(columns.clone()).zip(&means) {
                let Some(cell) = cell else { continue };
                cell.judged = share(row.judged[column]).filter(|own| Some(*own) != judged);
                cell.doubt = means.clone().and_then(|mut means| Spread::of(&mut means));
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
