//! `eval coverage`: Tables 5 and 6 of Chen and Choi. How far down a list every perspective has been met, how often that is within
//! the first 100, and how often the lists of all lanes together have it.

use super::super::args::{Common, Eval};
use super::lanes::{Lanes, Said};
use super::{Values, rows, under};
use crate::measure::PerspectiveCount;
use crate::measure::cover::cover;
use crate::measure::mrecall::{DEEPEST, union_mrecall};
use crate::pipeline::{Depth, Plan, Ranking, answer};
use crate::report::table::Table;

/// The table, or nothing where the user interrupted.
pub fn table(common: &Common, args: &Eval) -> anyhow::Result<Option<Table>> {
    let lanes = Lanes::open(common, args)?;
    let names = || lanes.recipes.iter().map(ToString::to_string).chain(["union of all lanes".to_owned()]);
    under::known(args, names())?;
    let (maxima, count) = (lanes.maxima()?, lanes.recipes.len());
    // Size and whether it is reached, a lane; the last row is the union.
    let mut values: Vec<Vec<Values>> = vec![vec![Vec::new(); 2]; count + 1];
    // Passages read until the cover that have a label, and all of them.
    let mut judged = vec![(0, 0); count + 1];
    let (mut failed, mut said) = (vec![Vec::new(); count + 1], Said::default());
    let measured: Vec<_> =
        lanes.setup.questions.iter().filter(|question| !question.perspectives.is_empty()).collect();
    for (done, question) in measured.iter().enumerate() {
        lanes.tell(done, measured.len());
        let plan = Plan {
            question: (*question).clone(),
            lanes: lanes.recipes.clone(),
            k: usize::from(common.k),
            source: lanes.source,
        };
        let (depth, mut lists) = (Depth::CoveredWhatever, Lanes::lists(&maxima));
        let answered = answer(&lanes.setup, &plan, depth, &mut lists, &lanes.stop)?;
        if lanes.stop.is_set() {
            return Ok(None);
        }
        said.take(&plan, &answered);
        let m = PerspectiveCount::new(question.perspectives.len())?;
        let mut all = Vec::new();
        for (lane, (ranking, _)) in answered.lanes.iter().enumerate() {
            let supports = |list: &Ranking| answered.book.supports(list);
            let supports = ranking.as_ref().map(supports).unwrap_or_else(|error| {
                failed[lane].push((question.id.clone(), error.to_string()));
                Vec::new()
            });
            let found = cover(&supports, m);
            judged[lane] = (judged[lane].0 + found.judged, judged[lane].1 + found.looked_at);
            let at = found.at;
            values[lane][0].push(at.map(|at| at as f64));
            values[lane][1].push(Some(f64::from(u8::from(at.is_some()))));
            all.push(supports);
        }
        let all: Vec<&[_]> = all.iter().map(Vec::as_slice).collect();
        values[count][0].push(None);
        values[count][1].push(Some(union_mrecall(&all, m, DEEPEST).value));
    }
    lanes.tell(measured.len(), measured.len());
    let mut versus = lanes.plain_forms();
    versus.push(None);
    let rows = rows(names(), values, &versus, failed, judged)?;
    Ok(Some(Table {
        suite: "coverage",
        columns: vec!["Cover".into(), "covered@100".into()],
        rows,
        asked: measured.iter().map(|question| question.id.clone()).collect(),
        questions: measured.len(),
        k: Some(DEEPEST),
        label_source: lanes.label_source(),
        caution: lanes.caution()?,
        notes: ["Cover: mean over the questions that reach it, as many as covered@100 says".to_owned()]
            .into_iter()
            .chain(said.notes())
            .collect(),
        provenance: lanes.provenance()?,
        ..Table::default()
    }))
}
