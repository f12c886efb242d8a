//! `eval berds`: Tables 3 and 4 and Figure 2 of Chen and Choi. MRecall@k and Prec@k of every lane, how often its top k covers
//! one side, the other, both or neither, and both measures over k.

use super::super::args::{Common, Eval};
use super::columns::Column;
use super::gathered::Gathered;
use super::lanes::{Lanes, Said};
use super::sets::seed;
use super::write::Found;
use super::{cells, under};
use crate::detect::LabelSource;
use crate::pipeline::{Depth, Plan, answer, sway};
use crate::question::Question;
use crate::report::table::{Cell, Table};

/// How deep the curves go where that costs no verdict more.
const CURVE: usize = 20;
/// The suite of the tables over k.
pub const OVER_K: &str = "berds-over-k";

/// The table, or nothing where the user interrupted.
pub fn table(common: &Common, args: &Eval) -> anyhow::Result<Option<Table>> {
    let k = usize::from(common.k);
    let columns = Column::at(k, &args.measures)?;
    let lanes = Lanes::open(common, args)?;
    let (measured, left_out): (Vec<&Question>, Vec<&Question>) =
        lanes.setup.questions.iter().partition(|question| !question.perspectives.is_empty());
    // Switched lanes have the same passages to choose from, or nearly: one bound a retriever is enough.
    let plain = (0..lanes.recipes.len()).filter(|lane| lanes.recipes[*lane] == lanes.recipes[*lane].plain());
    let oracles: Vec<usize> = if args.oracle { plain.collect() } else { Vec::new() };
    let names = || {
        let oracle = oracles.iter().map(|lane| format!("{} (oracle)", lanes.recipes[*lane]));
        lanes.recipes.iter().map(ToString::to_string).chain(oracle)
    };
    under::known(args, names())?;
    let asked = columns.iter().map(|column| column.depth()).max().unwrap_or(k);
    let judged = if args.oracle { Plan::DEPTH } else { asked };
    let free = lanes.source == LabelSource::Gold || judged >= CURVE;
    let curves = Column::curves(if free { k.max(CURVE) } else { judged });
    let all: Vec<Column> =
        columns.iter().chain(curves.iter().flat_map(|(_, stops)| stops)).copied().collect();
    let doubted = if lanes.source == LabelSource::Gold { 0 } else { columns.len() };
    let mut gathered =
        Gathered::new(all, doubted, (lanes.recipes.len(), oracles.len()), (measured.len(), seed(common)));
    let maxima = lanes.maxima()?;
    let (mut writers, mut found) = (Said::default(), Found::default());
    for (done, question) in measured.iter().enumerate() {
        lanes.tell(done, measured.len());
        let plan =
            Plan { question: (*question).clone(), lanes: lanes.recipes.clone(), k, source: lanes.source };
        let mut lists = Lanes::lists(&maxima);
        let answered = answer(&lanes.setup, &plan, Depth::To(judged), &mut lists, &lanes.stop)?;
        let shift = |lane: usize, k: usize| {
            let recipe = &lanes.recipes[lane];
            let swayed = sway(&lanes.setup, recipe, question, (k, lanes.source), &maxima, &lanes.stop);
            swayed.map(|swayed| {
                writers.take_swayed(recipe, question, &swayed);
                swayed.shift()
            })
        };
        if !lanes.stop.is_set() {
            gathered.take(&plan, &answered, &oracles, shift)?;
        }
        if lanes.stop.is_set() {
            return Ok(None);
        }
        writers.take(&plan, &answered);
        if args.write.is_some() {
            found.take(&plan, &answered);
        }
    }
    lanes.tell(measured.len(), measured.len());
    if let Some(folder) = &args.write {
        found.write(&lanes.recipes, folder)?;
    }
    let mut versus = lanes.plain_forms();
    versus.resize(lanes.recipes.len() + oracles.len(), None);
    let own = 0..columns.len();
    let cells = cells(&gathered.values(own.clone()), &versus)?;
    let mut notes = Vec::new();
    if !left_out.is_empty() {
        notes.push(format!("{} questions have no perspectives and are in no mean", left_out.len()));
    }
    let two_sided = measured.iter().filter(|question| question.supports.is_some()).count();
    notes.push(format!(
        "only-1, only-2, both, neither: which sides the first {k} cover, over the {two_sided} questions of two; 1 is the supporting side"
    ));
    notes.extend(writers.notes());
    if args.oracle {
        notes.push("(oracle): the same first 100 passages in the best order that the labels allow".into());
    }
    let table = Table {
        suite: "berds",
        asked: measured.iter().map(|question| question.id.clone()).collect(),
        questions: measured.len(),
        k: Some(k),
        label_source: lanes.label_source(),
        caution: lanes.caution()?,
        provenance: lanes.provenance()?,
        ..Table::default()
    };
    let mut further = Vec::new();
    let mut start = columns.len();
    for (_, stops) in curves.iter().filter(|(_, stops)| stops.len() > 1) {
        let over = start..start + stops.len();
        start = over.end;
        let names = lanes.recipes.iter().map(ToString::to_string);
        let means = means(&gathered.values(over.clone()));
        further.push(Table {
            suite: OVER_K,
            columns: stops.iter().map(ToString::to_string).collect(),
            rows: gathered.rows(names, means, over),
            k: None,
            caution: None,
            ..table.clone()
        });
    }
    let rows = gathered.rows(names(), cells, own);
    let columns = columns.iter().map(ToString::to_string).collect();
    Ok(Some(Table { columns, rows, notes, further, ..table }))
}

/// Means alone, as a curve needs them.
fn means(lanes: &[Vec<super::Values>]) -> Vec<Vec<Option<Cell>>> {
    let mean = |values: &super::Values| {
        let known: Vec<f64> = values.iter().flatten().copied().collect();
        let n = known.len();
        (n > 0).then(|| Cell { mean: known.iter().sum::<f64>() / n as f64, n, ..Cell::default() })
    };
    lanes.iter().map(|columns| columns.iter().map(mean).collect()).collect()
}
