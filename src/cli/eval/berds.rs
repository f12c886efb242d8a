//! `eval berds`: Tables 3 and 4 and Figure 2 of Chen and Choi. MRecall@k and Prec@k of every lane, and how often its top k covers
//! one side, the other, both or neither.

use std::collections::BTreeMap;

use super::super::args::{Common, Eval};
use super::lanes::{Lanes, Said};
use super::write::Found;
use super::{Values, cells, under};
use crate::measure::score::{Evidence, ScoreError, SupportEvidence, score};
use crate::measure::{Measure, PerspectiveCount, SupportSet};
use crate::pipeline::{Answer, Depth, Figures, Plan, answer};
use crate::question::Question;
use crate::report::table::{Row, Table};

/// Sides of a two-sided question that the top k covers: only the first, only the second, both, neither.
const COVERED: [[bool; 2]; 4] = [[true, false], [false, true], [true, true], [false, false]];

/// The table, or nothing where the user interrupted.
pub fn table(common: &Common, args: &Eval) -> anyhow::Result<Option<Table>> {
    let lanes = Lanes::open(common, args)?;
    let k = usize::from(common.k);
    let (measured, left_out): (Vec<&Question>, Vec<&Question>) =
        lanes.setup.questions.iter().partition(|question| !question.perspectives.is_empty());
    // Switched lanes have the same passages to choose from, or nearly: one bound a retriever is enough.
    let plain = (0..lanes.recipes.len()).filter(|lane| lanes.recipes[*lane] == lanes.recipes[*lane].plain());
    let oracles: Vec<usize> = if args.oracle { plain.collect() } else { Vec::new() };
    let rows = || {
        let names = lanes.recipes.iter().map(ToString::to_string);
        names.chain(oracles.iter().map(|lane| format!("{} (oracle)", lanes.recipes[*lane])))
    };
    under::known(args, rows())?;
    let more = args.measures.iter().map(|name| name.parse::<Measure>()).collect::<Result<Vec<_>, _>>()?;
    let deep = more.iter().any(|measure| measure.cutoff().is_none_or(|cutoff| cutoff > k));
    let mut extra: Vec<Vec<Values>> =
        vec![vec![Values::new(); more.len()]; lanes.recipes.len() + oracles.len()];
    let maxima = lanes.maxima()?;
    let (mut writers, mut found) = (Said::default(), Found::default());
    let mut gathered = Gathered::new(lanes.recipes.len() + oracles.len());
    for (done, question) in measured.iter().enumerate() {
        lanes.tell(done, measured.len());
        let plan =
            Plan { question: (*question).clone(), lanes: lanes.recipes.clone(), k, source: lanes.source };
        let depth = if args.oracle || deep { Depth::Everything } else { Depth::Top };
        let mut lists = Lanes::lists(&maxima);
        let answered = answer(&lanes.setup, &plan, depth, &mut lists, &lanes.stop)?;
        if lanes.stop.is_set() {
            return Ok(None);
        }
        gathered.take(&plan, &answered, &oracles);
        named(&more, &plan, &answered, &mut extra)?;
        writers.take(&plan.lanes, &answered);
        if args.write.is_some() {
            found.take(&plan, &answered);
        }
    }
    lanes.tell(measured.len(), measured.len());
    if let Some(folder) = &args.write {
        found.write(&lanes.recipes, folder)?;
    }
    let mut versus = lanes.plain_forms();
    versus.resize(gathered.lanes.len(), None);
    for (lane, extra) in gathered.lanes.iter_mut().zip(extra) {
        lane.extend(extra);
    }
    let cells = cells(&gathered.lanes, &versus)?;
    let rows = rows().zip(cells).zip(gathered.failed).zip(gathered.judged);
    let rows = rows.map(|(((lane, cells), failed), (judged, returned))| {
        let judged = (returned > 0).then(|| judged as f64 / returned as f64);
        Row { lane, cells, failed, judged }
    });
    let mut notes = Vec::new();
    if !left_out.is_empty() {
        notes.push(format!("{} questions have no perspectives and are in no mean", left_out.len()));
    }
    let two_sided = measured.iter().filter(|question| question.supports.is_some()).count();
    notes.push(format!(
        "only-1, only-2, both, neither: which sides the first {k} cover, over the {two_sided} questions of two; 1 is the supporting side"
    ));
    notes.extend(writers.notes());
    notes.extend(lanes.caution()?);
    if args.oracle {
        notes.push("(oracle): the same first 100 passages in the best order that the labels allow".into());
    }
    let mut columns = vec![format!("MRecall@{k}"), format!("Prec@{k}"), "Prec@1".into()];
    columns.extend(["only-1", "only-2", "both", "neither"].map(|name| format!("{name}@{k}")));
    columns.extend(more.iter().map(ToString::to_string));
    Ok(Some(Table {
        suite: "berds",
        columns,
        rows: rows.collect(),
        questions: measured.len(),
        k: Some(k),
        label_source: lanes.label_source(),
        notes,
        provenance: lanes.provenance()?,
        ..Table::default()
    }))
}

/// The measures asked for by name, of every lane's list; none where a question does not allow one, 0 where a lane has no list.
fn named(
    measures: &[Measure],
    plan: &Plan,
    answered: &Answer,
    values: &mut [Vec<Values>],
) -> anyhow::Result<()> {
    let m = PerspectiveCount::new(plan.question.perspectives.len())?;
    // The ideal of alpha_nDCG is made of all that the lanes brought up.
    let lists = answered.lanes.iter().filter_map(|(ranking, _)| ranking.as_ref().ok());
    let pool: BTreeMap<&str, SupportSet> = lists
        .flat_map(|list| list.iter())
        .filter_map(|ranked| Some((ranked.passage.id.as_str(), answered.book.support(ranked.at)?)))
        .collect();
    let pool: Vec<(&str, SupportSet)> = pool.into_iter().collect();
    for (row, values) in values.iter_mut().enumerate() {
        let list = answered.lanes.get(row).map(|(ranking, _)| ranking.as_ref().ok());
        let supports = list.flatten().map(|list| answered.book.supports(list));
        for (measure, values) in measures.iter().zip(values) {
            let Some(ranked) = &supports else {
                // The rows after the lanes are bounds, which have no list.
                values.push((row < plan.lanes.len()).then_some(0.0));
                continue;
            };
            let support = SupportEvidence { ranked, pool: &pool, m, supports: plan.question.supports };
            values.push(match score(*measure, &Evidence { graded: None, support: Some(support) }) {
                Ok(measured) => Some(measured.value),
                Err(ScoreError::NotCovered { .. } | ScoreError::NeedsSides(_) | ScoreError::Lean(_)) => None,
                Err(error) => return Err(error.into()),
            });
        }
    }
    Ok(())
}

/// Values of every lane, question after question.
struct Gathered {
    /// A lane, a measure, a question.
    lanes: Vec<Vec<Values>>,
    failed: Vec<Vec<(String, String)>>,
    /// Passages of the top k that have labels, and that were returned.
    judged: Vec<(usize, usize)>,
}

impl Gathered {
    fn new(lanes: usize) -> Self {
        Gathered {
            lanes: vec![vec![Vec::new(); 3 + COVERED.len()]; lanes],
            failed: vec![Vec::new(); lanes],
            judged: vec![(0, 0); lanes],
        }
    }

    fn take(&mut self, plan: &Plan, answered: &Answer, oracles: &[usize]) {
        for lane in 0..plan.lanes.len() {
            if let Err(error) = &answered.lanes[lane].0 {
                self.failed[lane].push((plan.question.id.clone(), error.to_string()));
            }
            let figures = answered.figures(plan, lane);
            let first = answered.first(plan, lane);
            self.put(lane, plan, figures.as_ref(), first);
            if let Some(row) = oracles.iter().position(|known| *known == lane) {
                let figures = answered.best_order(plan, lane);
                let first = figures.as_ref().map(|figures| f64::from(figures.prec > 0.0));
                self.put(plan.lanes.len() + row, plan, figures.as_ref(), first);
            }
        }
    }

    /// A question that a lane has no list for counts as 0, never as absent.
    fn put(&mut self, lane: usize, plan: &Plan, figures: Option<&Figures>, first: Option<f64>) {
        let covered = figures.map_or(SupportSet::EMPTY, |figures| figures.covered);
        let values = &mut self.lanes[lane];
        values[0].push(Some(figures.map_or(0.0, |figures| figures.mrecall)));
        values[1].push(Some(figures.map_or(0.0, |figures| figures.prec)));
        values[2].push(Some(first.unwrap_or(0.0)));
        let sides =
            plan.question.supports.map(|first| [covered.contains(first), covered.contains(1 - first)]);
        for (values, wanted) in values[3..].iter_mut().zip(COVERED) {
            values.push(sides.map(|sides| f64::from(sides == wanted)));
        }
        if let Some(figures) = figures {
            let (judged, returned) = &mut self.judged[lane];
            *judged += figures.judged;
            *returned += figures.returned;
        }
    }
}
