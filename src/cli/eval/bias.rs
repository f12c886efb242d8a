//! `eval bias`: which side every lane favours, how uneven its order is, and which values of a metadata field its passages have
//! (Figures 3, 5 and 6 of Zhao et al.). `eval berds` measures how often the sides are covered. Also the stance that a lane's first k
//! take together, for `eval reader`.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use anyhow::bail;

use crate::cli::eval::args::{Eval, RESAMPLING_SEED, check_thresholds};
use crate::cli::eval::lanes::{LaneNotes, Lanes, name_the_model};
use crate::cli::options::Common;
use crate::corpus::store::{Field, Fields};
use crate::corpus::{Passage, PassageIx};
use crate::detect::Labels;
use crate::engine::pir::{Positions, RankedTask};
use crate::engine::{Compared, Depth, Recipe, Shares, StanceTimeline, category, desired, readers};
use crate::measure::agreement::pearson;
use crate::measure::pir::grouped_interval;
use crate::measure::pir::{crossed, distance, pooled, standings};
use crate::measure::significance::{DRAWS, Interval};
use crate::question::Question;
use crate::question::pir::place_of;
use crate::read::Context;
use crate::read::pattern::Stance;
use crate::report::means::{Values, rows};
use crate::report::table::{Cell, Head, Row, Table};

/// The name of the corpus's row.
const CORPUS: &str = "corpus";

/// Returns the tables, or `None` if the user interrupted.
pub fn table(common: &Common, args: &Eval) -> anyhow::Result<Option<Table>> {
    let lanes = Lanes::open(common, args)?;
    let k = usize::from(common.k);
    let Ok(fields) = lanes.setup.fields(&|progress| lanes.meter.show(progress), &lanes.stop) else {
        return Ok(None);
    };
    let field = args.attribute.as_deref().map(|name| category(&fields, name)).transpose()?;
    let (maxima, count) = (lanes.maxima()?, lanes.recipes.len());
    let mut values: Vec<Vec<Values>> = vec![vec![Values::new(); 3]; count];
    let (mut failed, mut lane_notes) = (vec![Vec::new(); count], LaneNotes::default());
    let (mut outcomes, mut judged_by) = (Vec::new(), Shares::default());
    let questions = &lanes.setup.questions;
    let mut shares = vec![(0, 0); lanes.recipes.len()];
    let mut sources = vec![Shares::default(); lanes.recipes.len()];
    for (done, question) in questions.iter().enumerate() {
        lanes.show(done, questions.len());
        let found = lanes.run(question, k, Depth::Top, &maxima)?;
        if lanes.stop.is_set() {
            return Ok(None);
        }
        lane_notes.take(&found);
        for (failed, lane) in failed.iter_mut().zip(&found.lanes) {
            failed.extend(lane.ranking.as_ref().err().map(|error| (question.id.clone(), error.to_string())));
        }
        let outcome = Compared::from(&found);
        judged_by = judged_by.plus(outcome.shares);
        for (own, here) in sources.iter_mut().zip(found.shares_by_lane()) {
            *own = own.plus(here);
        }
        for (lane, values) in values.iter_mut().enumerate() {
            let (judged, of) = outcome.judged(lane);
            (shares[lane].0, shares[lane].1) = (shares[lane].0 + judged, shares[lane].1 + of);
            // Without a list, the lean is 0 and the order has no value.
            values[0].push(outcome.lean(lane));
            let uneven = outcome.uneven(lane, k);
            values[1].push(uneven.map(|uneven| uneven.rkl.value));
            values[2].push(uneven.map(|uneven| uneven.awrf.value));
        }
        outcomes.push(outcome);
    }
    lanes.show(questions.len(), questions.len());
    let names: Vec<String> = lanes.recipes.iter().map(ToString::to_string).collect();
    let uneven = values
        .iter()
        .zip(&names)
        .map(|(values, name)| format!("{} ({name})", values[1].iter().flatten().count()));
    let uneven = uneven.collect::<Vec<_>>().join(", ");
    let mut rows = rows(names.iter().cloned(), values, &lanes.plain_forms(), failed, shares)?;
    lane_notes.name(&mut rows);
    name_the_model(&mut rows, &sources);
    let mut notes = vec![
        "Lean: over questions of two sides, 0 favours neither; how often the sides are covered: eval berds"
            .to_owned(),
        format!(
            "rKL (at 5, 10 and 20 as far as k reaches) and AWRF: 0 is an even share for every perspective; over the questions of which a passage supports any: {uneven}"
        ),
    ];
    notes.extend(lane_notes.notes());
    if field.is_none() {
        notes.push(fields_note(&fields));
    }
    let table = Table {
        columns: ["Lean", "rKL", "AWRF"].map(|name| Head::plotted(format!("{name}@{k}"))).to_vec(),
        rows,
        notes,
        ..lanes.table("bias", questions, k, judged_by)?
    };
    let Some(field) = field else { return Ok(Some(table)) };
    let attribute = Attribute { field, k, names: &names, outcomes: &outcomes };
    let asked: Vec<Vec<usize>> = questions.iter().map(|question| desired(field, question)).collect();
    let mut further = attribute.shares()?;
    further.extend(attribute.by_desired_value(&asked)?);
    Ok(Some(Table { further, ..table }))
}

/// Names the fields that `--attribute` accepts.
fn fields_note(fields: &Fields) -> String {
    let describe = |field: &Field| format!("{} ({} values)", field.name, field.values.len());
    match fields.categories.as_slice() {
        [] => "the passages carry no field that sorts them into groups".into(),
        all => format!(
            "--attribute FIELD adds whose passages they are: {}",
            all.iter().map(describe).collect::<Vec<_>>().join(", ")
        ),
    }
}

/// One field, and what every lane retrieved.
struct Attribute<'a> {
    field: &'a Field,
    k: usize,
    names: &'a [String],
    outcomes: &'a [Compared],
}

impl Attribute<'_> {
    /// The name of a value's column.
    fn column(&self, value: &str) -> Head {
        format!("{}={value}@{}", self.field.name, self.k).into()
    }

    /// The number of passages that one lane retrieved, by question and value.
    fn counts(&self, lane: usize) -> Vec<Vec<usize>> {
        self.outcomes.iter().map(|outcome| outcome.counts(lane, self.field)).collect()
    }

    fn table(&self, suite: &'static str, questions: usize, note: String) -> Table {
        Table {
            suite,
            columns: self.field.values.iter().map(|(value, _)| self.column(value)).collect(),
            questions,
            k: Some(self.k),
            label_source: "metadata".into(),
            notes: vec![note],
            ..Table::default()
        }
    }

    /// The share of every value, and how far it is above or below the corpus's share.
    fn shares(&self) -> anyhow::Result<Vec<Table>> {
        let (k, corpus) = (self.k, self.field.counts());
        let note = |text: &str| format!("{}: {text}", self.field.name);
        let mut shares = self.table(
            "bias-attribute",
            self.outcomes.len(),
            note("shares among the first k of all questions together; distance: half the sum of the differences from the corpus, 0 is made up alike"),
        );
        let mut over = self.table(
            "bias-over",
            self.outcomes.len(),
            note("log2 of the share among the first k over the share of the corpus: 1 is twice as often, -1 half as often, – never"),
        );
        shares.columns.push(format!("distance@{k}").into());
        (shares.turned, over.turned) = (true, true);
        let passages: usize = corpus.iter().sum();
        let alone = |part: usize| {
            let mean = part as f64 / passages.max(1) as f64;
            Some(Cell { mean, interval: None, n: passages, ..Cell::default() })
        };
        let own = corpus.iter().map(|count| alone(*count)).chain([None]).collect();
        shares.rows.push(Row { lane: CORPUS.into(), cells: own, ..Row::default() });
        for (lane, name) in self.names.iter().enumerate() {
            let counts = self.counts(lane);
            let mut cells =
                (0..corpus.len()).map(|value| share(&counts, value)).collect::<anyhow::Result<Vec<_>>>()?;
            let against = |cell: &Option<Cell>, count: usize| {
                let (cell, part) = (cell.as_ref()?, count as f64 / passages.max(1) as f64);
                let log = |share: f64| (share > 0.0 && part > 0.0).then(|| (share / part).log2());
                // The logarithm keeps the order, so the ends of the interval stay its ends.
                let interval = cell.interval.and_then(|(low, high)| Some((log(low)?, log(high)?)));
                Some(Cell { mean: log(cell.mean)?, interval, ..cell.clone() })
            };
            let row = cells.iter().zip(&corpus).map(|(cell, count)| against(cell, *count)).collect();
            over.rows.push(Row { lane: name.clone(), cells: row, ..Row::default() });
            let pooled = pooled(counts.iter().map(Vec::as_slice), corpus.len());
            let far = distance(&standings(&pooled, &corpus));
            cells.push(far.map(|mean| Cell {
                mean,
                interval: None,
                n: pooled.iter().sum(),
                ..Cell::default()
            }));
            shares.rows.push(Row { lane: name.clone(), cells, ..Row::default() });
        }
        Ok(vec![shares, over])
    }

    /// Desired × retrieved values; `None` if no question asks for a value.
    fn by_desired_value(&self, asked: &[Vec<usize>]) -> anyhow::Result<Option<Table>> {
        let named = asked.iter().filter(|values| !values.is_empty()).count();
        let note = format!(
            "{}: what the questions that ask for a value bring up; {named} of {} questions ask for one",
            self.field.name,
            asked.len()
        );
        let mut table = self.table("bias-desired", named, note);
        let names: Vec<&str> = self.field.values.iter().map(|(value, _)| value.as_str()).collect();
        let mut columns = Vec::new();
        for (lane, name) in self.names.iter().enumerate() {
            columns = desired_rows(name, asked, &self.counts(lane), &names, &mut table.rows)?;
        }
        table.columns = columns.iter().map(|value| self.column(&self.field.values[*value].0)).collect();
        table.columns.push(format!("others@{}", self.k).into());
        Ok((!columns.is_empty()).then_some(table))
    }
}

/// Adds one row for every value that is asked for: the share of each such value among the retrieved passages, then of all others. Returns
/// the values that are asked for.
fn desired_rows(
    lane: &str,
    asked: &[Vec<usize>],
    counts: &[Vec<usize>],
    names: &[&str],
    to: &mut Vec<Row>,
) -> anyhow::Result<Vec<usize>> {
    let rows = crossed(asked, counts, names.len());
    let columns: Vec<usize> = rows.iter().map(|row| row.desired).collect();
    let others = (0..names.len()).filter(|value| !columns.contains(value)).collect::<Vec<_>>();
    for row in rows {
        let of: Vec<Vec<usize>> = row.questions.iter().map(|i| counts[*i].clone()).collect();
        let mut cells = columns.iter().map(|value| share(&of, *value)).collect::<anyhow::Result<Vec<_>>>()?;
        cells.push(share_of(&of, |counts| others.iter().map(|value| counts[*value]).sum())?);
        to.push(Row { lane: format!("{lane} asked for {}", names[row.desired]), cells, ..Row::default() });
    }
    Ok(columns)
}

/// The countries that queries of PIR ask for, against those of the passages that they retrieve (Zhao et al., Figures 3 and 6); `None` if
/// no query of the task names one. A passage has the country of a query that it is gold for, else the first one that its text names.
pub fn countries(names: &[String], ranked: &RankedTask, k: usize) -> anyhow::Result<Option<Table>> {
    let task = &ranked.task;
    let wanted: Vec<Option<&str>> = task.rows.iter().map(place_of).collect();
    let all: BTreeSet<&str> = wanted.iter().flatten().copied().collect();
    if all.is_empty() {
        return Ok(None);
    }
    let mut values: Vec<&str> = all.into_iter().collect();
    values.push("no country");
    let none = values.len() - 1;
    let place = |name: &str| values.iter().position(|value| *value == name).unwrap_or(none);
    let mut of_passage: HashMap<usize, usize> = HashMap::new();
    for (row, name) in task.rows.iter().zip(&wanted) {
        let Some(name) = name else { continue };
        row.gold.iter().for_each(|passage| {
            of_passage.entry(*passage).or_insert_with(|| place(name));
        });
    }
    for (passage, text) in task.corpus.iter().enumerate() {
        let mentions =
            values[..none].iter().enumerate().filter_map(|(i, name)| Some((named_at(text, name)?, i)));
        let first = mentions.min().map_or(none, |(_, value)| value);
        of_passage.entry(passage).or_insert(first);
    }
    let asked: Vec<Vec<usize>> = wanted.iter().map(|name| name.map(place).into_iter().collect()).collect();
    let (mut rows, mut columns) = (Vec::new(), Vec::new());
    for (name, lists) in names.iter().zip(&ranked.lanes.lists) {
        let count = |list: &Positions| {
            let mut counts = vec![0; values.len()];
            list.iter()
                .take(k)
                .for_each(|passage| counts[of_passage.get(passage).copied().unwrap_or(none)] += 1);
            counts
        };
        let counts: Vec<Vec<usize>> = lists.iter().map(count).collect();
        columns = desired_rows(name, &asked, &counts, &values, &mut rows)?;
    }
    let known = of_passage.values().filter(|value| **value != none).count();
    let heads = columns.iter().map(|value| values[*value]).chain(["no country"]);
    Ok(Some(Table {
        suite: "pir-countries",
        set: Some(task.name.clone()),
        columns: heads.map(|name| Head::from(format!("{name}@{k}"))).collect(),
        rows,
        questions: wanted.iter().flatten().count(),
        k: Some(k),
        label_source: "the query's words".into(),
        notes: vec![format!(
            "the country that a query asks for × the countries of its first k; {known} of {} passages have one: that of a query that they are \
             gold for, else the first one that their text names",
            of_passage.len()
        )],
        ..Table::default()
    }))
}

/// The place of a name in a text, as whole words.
fn named_at(text: &str, name: &str) -> Option<usize> {
    let bounded = |at: usize| {
        let apart = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
        apart(text[..at].chars().next_back()) && apart(text[at + name.len()..].chars().next())
    };
    text.match_indices(name).map(|(at, _)| at).find(|at| bounded(*at))
}

/// A value's share of all retrieved passages, with its interval over questions.
fn share(counts: &[Vec<usize>], value: usize) -> anyhow::Result<Option<Cell>> {
    share_of(counts, |counts| counts[value])
}

fn share_of(counts: &[Vec<usize>], part: impl Fn(&[usize]) -> usize) -> anyhow::Result<Option<Cell>> {
    let whole = |counts: &Vec<usize>| counts.iter().sum::<usize>();
    let non_empty: Vec<&Vec<usize>> = counts.iter().filter(|counts| whole(counts) > 0).collect();
    if non_empty.is_empty() {
        return Ok(None);
    }
    let n = non_empty.iter().map(|counts| whole(counts)).sum();
    let items = non_empty.iter().map(|counts| (part(counts) as f64, whole(counts) as f64)).collect();
    let Interval { mean, low, high, .. } = grouped_interval(&[items], 0.95, DRAWS, RESAMPLING_SEED)?;
    Ok(Some(Cell { mean, interval: Some((low, high)), n, ..Cell::default() }))
}

const STANCES: [(Stance, &str); 4] = [
    (Stance::Supports, "supports"),
    (Stance::Opposes, "opposes"),
    (Stance::Balanced, "balanced"),
    (Stance::Silent, "silent"),
];

/// `eval reader` on questions of two sides: the stance that the first k take together. Returns `None` if the user interrupted.
pub fn stances(common: &Common, args: &Eval) -> anyhow::Result<Option<Table>> {
    if let Some(option) = common.reads() {
        bail!(
            "{option} is for questions with passages and gold answers (FiD, RAMDocs, RetrievalQA), or for a question set with `answers` whose passages lanes retrieve; name such a file with --questions"
        );
    }
    let lanes = Lanes::open(common, args)?;
    check_thresholds(args, lanes.recipes.iter().map(ToString::to_string))?;
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
    let (mut lane_notes, mut shares) = (LaneNotes::default(), Shares::default());
    let mut sources = vec![Shares::default(); count];
    for (done, question) in measured.iter().enumerate() {
        lanes.show(done, measured.len());
        let outcome = lanes.run(question, k, Depth::Top, &maxima)?;
        if lanes.stop.is_set() {
            return Ok(None);
        }
        lane_notes.take(&outcome);
        shares = shares.plus(outcome.shares());
        for (own, here) in sources.iter_mut().zip(outcome.shares_by_lane()) {
            *own = own.plus(here);
        }
        for (lane, found) in outcome.lanes.iter().enumerate() {
            let top: Vec<_> = match &found.ranking {
                Ok(list) => list.iter().take(k).map(|ranked| ranked.at).collect(),
                Err(error) => {
                    failed[lane].push((question.id.clone(), error.to_string()));
                    Vec::new()
                }
            };
            let Some(timeline) = StanceTimeline::of(question, &outcome.judgments, &top) else { continue };
            judged[lane] = (judged[lane].0 + timeline.judged, judged[lane].1 + top.len());
            let is = |yes: bool| Some(f64::from(u8::from(yes)));
            let mut own: Vec<Option<f64>> = STANCES
                .iter()
                .map(|(stance, _)| is(found.ranking.is_ok() && timeline.last() == *stance))
                .collect();
            own.push(is(!timeline.turns.is_empty()));
            own.push(Some(timeline.turns.len() as f64));
            own.push(timeline.removed.map(|removed| removed.len() as f64));
            for (column, value) in own.into_iter().enumerate() {
                values[lane][column].push(value);
            }
        }
    }
    lanes.show(measured.len(), measured.len());
    let names = lanes.recipes.iter().map(ToString::to_string);
    let mut rows = rows(names, values, &lanes.plain_forms(), failed, judged)?;
    lane_notes.name(&mut rows);
    name_the_model(&mut rows, &sources);
    let Some(further) = stance_said(common, &lanes, &measured, &maxima, k)? else { return Ok(None) };
    let mut columns: Vec<String> = STANCES.iter().map(|(_, name)| format!("{name}@{k}")).collect();
    columns.extend(["turned", "turns", "removed"].map(|name| format!("{name}@{k}")));
    Ok(Some(Table {
        columns: columns.into_iter().map(Head::from).collect(),
        rows,
        notes: [
            "the stance of the first k: passages weigh 1/log2(rank + 1), one for both sides half on either, one that is not judged for both statements none; balanced within a fifth of the whole"
                .to_owned(),
            "turned: a passage below the first changed the stance; turns: how many did; removed: the fewest of one side that must go for another stance, over the questions where that can be"
                .to_owned(),
        ]
        .into_iter()
        .chain(lane_notes.notes())
        .collect(),
        further,
        ..lanes.table("reader", measured.iter().copied(), k, shares)?
    }))
}

/// With a language model: the stance that it says after reading what a lane retrieves when it is asked as either side, against the side
/// asked for (Zhao et al., Table 5). The row `gold` reads labelled passages of the side. `None` if the user interrupted.
///
/// # Errors
/// The model cannot be asked.
fn stance_said(
    common: &Common,
    lanes: &Lanes,
    questions: &[&Question],
    maxima: &[(Recipe, f32)],
    k: usize,
) -> anyhow::Result<Option<Vec<Table>>> {
    let reader = if common.llm.is_some() { readers(&common.opening())?.1 } else { None };
    let Some(reader) = reader else { return Ok(Some(Vec::new())) };
    let mut gold: HashMap<&str, Vec<PassageIx>> = HashMap::new();
    for (statement, id) in lanes.setup.labels.iter().flat_map(Labels::positives) {
        gold.entry(statement).or_default().extend(lanes.setup.corpus.find(id));
    }
    gold.values_mut().for_each(|places| places.sort_unstable());
    let names: Vec<String> = lanes.recipes.iter().map(ToString::to_string).chain([GOLD.to_owned()]).collect();
    let mut pairs: Vec<Vec<(f64, f64)>> = vec![Vec::new(); names.len()];
    for (done, question) in questions.iter().enumerate() {
        lanes.show(done, questions.len());
        let Some(sides) = question.sides() else { continue };
        let statements = sides.map(|side| question.perspectives[side].clone());
        let Some(reader) = reader.on_sides(statements.clone()) else { return Ok(Some(Vec::new())) };
        for (statement, asked) in statements.iter().zip([1.0, -1.0]) {
            let as_side = Question { text: statement.clone(), ..(*question).clone() };
            let ranked = lanes.rank(&as_side, k, maxima);
            let mut lists: Vec<Option<Vec<Arc<Passage>>>> = Vec::new();
            for lane in &ranked {
                let list = lane.ranking.as_ref().ok();
                lists
                    .push(list.map(|list| list.iter().take(k).map(|one| Arc::clone(&one.passage)).collect()));
            }
            let own = gold.get(statement.as_str()).filter(|places| !places.is_empty());
            let passage = |at: &PassageIx| Arc::new(lanes.setup.corpus.passage(*at));
            lists.push(own.map(|places| places.iter().take(k).map(passage).collect()));
            for (pairs, list) in pairs.iter_mut().zip(lists) {
                let Some(list) = list else { continue };
                let answer = match reader.answer(&question.text, &Context::list(list), &lanes.stop) {
                    Err(error) if error.is_stop() => return Ok(None),
                    answer => answer?,
                };
                let said = match answer.text.as_str() {
                    "supports" => 1.0,
                    "opposes" => -1.0,
                    _ => 0.0,
                };
                pairs.push((asked, said));
            }
        }
    }
    lanes.show(questions.len(), questions.len());
    let row = |(lane, pairs): (String, &Vec<(f64, f64)>)| {
        let n = pairs.len();
        let cell = |mean: f64| Cell { mean, n, ..Cell::default() };
        let share = |which: fn(&(f64, f64)) -> bool| {
            (n > 0).then(|| cell(pairs.iter().filter(|pair| which(pair)).count() as f64 / n as f64))
        };
        let as_asked = share(|(asked, said)| asked == said);
        let cells = vec![
            pearson(pairs).map(cell),
            as_asked,
            share(|(asked, said)| *asked == -said),
            share(|(_, said)| *said == 0.0),
        ];
        Row { lane, cells, ..Row::default() }
    };
    let columns = ["r", "as asked", "opposite", "neither"].map(|name| Head::from(format!("{name}@{k}")));
    Ok(Some(vec![Table {
        suite: "reader-stance-said",
        columns: columns.to_vec(),
        rows: names.into_iter().zip(&pairs).map(row).collect(),
        questions: questions.len(),
        k: Some(k),
        label_source: "the side asked for".into(),
        notes: vec![format!(
            "every lane asked as either side, and the side that {} takes from the first k: Pearson's r of the two (1 and −1; 0 for both or \
             neither); {GOLD}: labelled passages of the side; without passages no side is taken",
            reader.name()
        )],
        ..Table::default()
    }]))
}

/// The name of the row that reads labelled passages.
const GOLD: &str = "gold";
