//! The stance of every lane's first k over a question set: how often it supports, opposes, is balanced or silent, how often a
//! passage turns it, and how many must be removed to turn it.

use super::super::super::args::{Common, Eval};
use super::super::lanes::{Lanes, Said};
use super::super::{Values, rows, under};
use crate::pipeline::{Depth, Plan, Strip, answer};
use crate::read::stance::Stance;
use crate::report::table::Table;

const STANCES: [(Stance, &str); 4] = [
    (Stance::Supports, "supports"),
    (Stance::Opposes, "opposes"),
    (Stance::Balanced, "balanced"),
    (Stance::Silent, "silent"),
];

/// The table, or nothing where the user interrupted.
pub fn table(common: &Common, args: &Eval) -> anyhow::Result<Option<Table>> {
    if let Some(option) = common.reads() {
        anyhow::bail!(
            "{option} is for questions that bring their passages and gold answers (FiD, RAMDocs, RetrievalQA); name such a file with --questions"
        );
    }
    let lanes = Lanes::open(common, args)?;
    under::known(args, lanes.recipes.iter().map(ToString::to_string))?;
    let k = usize::from(common.k);
    let measured: Vec<_> = lanes
        .setup
        .questions
        .iter()
        .filter(|question| question.supports.is_some() && question.perspectives.len() == 2)
        .collect();
    let (maxima, count) = (lanes.maxima()?, lanes.recipes.len());
    let mut values: Vec<Vec<Values>> = vec![vec![Values::new(); STANCES.len() + 3]; count];
    let (mut failed, mut judged) = (vec![Vec::new(); count], vec![(0, 0); count]);
    let mut said = Said::default();
    for (done, question) in measured.iter().enumerate() {
        lanes.tell(done, measured.len());
        let plan =
            Plan { question: (*question).clone(), lanes: lanes.recipes.clone(), k, source: lanes.source };
        let answered = answer(&lanes.setup, &plan, Depth::Top, &mut Lanes::lists(&maxima), &lanes.stop)?;
        if lanes.stop.is_set() {
            return Ok(None);
        }
        said.take(&plan, &answered);
        for (lane, (ranking, _)) in answered.lanes.iter().enumerate() {
            let top: Vec<_> = match ranking {
                Ok(list) => list.iter().take(k).map(|ranked| ranked.at).collect(),
                Err(error) => {
                    failed[lane].push((question.id.clone(), error.to_string()));
                    Vec::new()
                }
            };
            let Some(strip) = Strip::of(question, &answered.book, &top) else { continue };
            judged[lane] = (judged[lane].0 + strip.judged, judged[lane].1 + top.len());
            let is = |yes: bool| Some(f64::from(u8::from(yes)));
            let mut own: Vec<Option<f64>> =
                STANCES.iter().map(|(stance, _)| is(ranking.is_ok() && strip.last() == *stance)).collect();
            own.push(is(!strip.turns.is_empty()));
            own.push(Some(strip.turns.len() as f64));
            own.push(strip.removed.map(|removed| removed.len() as f64));
            for (column, value) in own.into_iter().enumerate() {
                values[lane][column].push(value);
            }
        }
    }
    lanes.tell(measured.len(), measured.len());
    let names = lanes.recipes.iter().map(ToString::to_string);
    let rows = rows(names, values, &lanes.plain_forms(), failed, judged)?;
    let mut columns: Vec<String> = STANCES.iter().map(|(_, name)| format!("{name}@{k}")).collect();
    columns.extend(["turned", "turns", "removed"].map(|name| format!("{name}@{k}")));
    Ok(Some(Table {
        suite: "reader",
        columns,
        rows,
        asked: measured.iter().map(|question| question.id.clone()).collect(),
        questions: measured.len(),
        k: Some(k),
        label_source: lanes.label_source(),
        caution: lanes.caution()?,
        notes: [
            "the stance of the first k: passages weigh 1/log2(rank + 1), one for both sides half on either, one that is not judged for both statements none; balanced within a fifth of the whole"
                .to_owned(),
            "turned: a passage below the first changed the stance; turns: how many did; removed: the fewest of one side that must go for another stance, over the questions where that can be"
                .to_owned(),
        ]
        .into_iter()
        .chain(said.notes())
        .collect(),
        provenance: lanes.provenance()?,
        ..Table::default()
    }))
}
