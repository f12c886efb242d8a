//! The estimates of `--correct`: the units that count, one row per lane and per difference, and the notes.

use std::collections::HashMap;

use anyhow::bail;
use serde_json::json;

use super::corrected::{Bench, Figure, Unit};
use crate::annotate::sample::{Gap, Share, labelled_prefix};
use crate::engine::Recipe;
use crate::measure::ppi::{
    Estimate, Labelled, Method, PpiError, Target, corrected_difference, corrected_mean, labels_alone,
};
use crate::measure::significance::{DRAWS, Interval, SignificanceError, compare, holm};
use crate::measure::uncertainty::Spread;
use crate::report::means::{averaged, distinct};
use crate::report::table::{Cell, Head, Row, Table};

/// The suite of these tables.
const SUITE: &str = "corrected";
/// The level of the intervals.
const LEVEL: f64 = 0.95;

impl Bench<'_> {
    /// Splits the units of a row into the drawn ones, in the order of the draw, and the others.
    fn split_by_draw(&self, units: &[Option<Unit>]) -> (Vec<(usize, Unit)>, Vec<Unit>) {
        let places: HashMap<&str, usize> =
            self.sample.draw.iter().enumerate().map(|(place, id)| (id.as_str(), place)).collect();
        let (mut drawn, mut rest) = (Vec::new(), Vec::new());
        for (question, unit) in self.questions.iter().zip(units) {
            let Some(unit) = unit else { continue };
            match places.get(question.id.as_str()) {
                Some(place) => drawn.push((*place, *unit)),
                None => rest.push(*unit),
            }
        }
        drawn.sort_by_key(|(place, _)| *place);
        (drawn, rest)
    }

    /// The number of units at the beginning of the draw that are labelled; `lanes` are those of the row `lane`.
    fn prefix(&self, lane: &str, lanes: &[&Recipe], drawn: &[(usize, Unit)]) -> anyhow::Result<usize> {
        let shares: Vec<Share> = drawn.iter().map(|(_, unit)| unit.share).collect();
        let (whole, gap) = labelled_prefix(&shares);
        let name = |at: usize| {
            let place = drawn[at].0;
            format!("question {} of the draw, \"{}\"", place + 1, self.project.questions[place].text)
        };
        let hint = if lanes.iter().all(|lane| holds(&self.project.lanes, lane)) {
            String::new()
        } else {
            format!(" (the project holds {}, not this lane)", self.project.lanes.join(", "))
        };
        let folder = self.place.display();
        match gap {
            None => Ok(whole),
            Some(Gap::HalfDone(at)) => bail!(
                "{folder}: {} is half done: {} of {} passages of {lane} are labelled{hint}; label the rest, or undo these labels, \
                 because only the complete beginning of a draw is random",
                name(at),
                shares[at].labelled,
                shares[at].of
            ),
            Some(Gap::Skipped(at, later)) => bail!(
                "{folder}: {} was skipped: none of its passages of {lane} is labelled{hint}, and {} has labels; label it, because \
                 only the beginning of a draw is random",
                name(at),
                name(later)
            ),
        }
    }

    /// The table of a figure: every lane, then the differences of switched lanes from their plain form and of other lanes from the first
    /// one. `None` if no row has an estimate; `few` gets the first row that has too few labels.
    pub fn sheet(
        &self,
        figure: &Figure,
        target: Target,
        k: usize,
        few: &mut Option<(String, PpiError)>,
    ) -> anyhow::Result<Option<Table>> {
        let names: Vec<String> = self.lanes.recipes.iter().map(ToString::to_string).collect();
        let recipes = &self.lanes.recipes;
        // Name, the lanes that must be labelled, and a value per question.
        type Row<'a> = (String, Vec<&'a Recipe>, Vec<Option<Unit>>);
        let mut rows: Vec<Row<'_>> = Vec::new();
        for ((name, recipe), units) in names.iter().zip(recipes).zip(&figure.units) {
            rows.push((name.clone(), vec![recipe], units.clone()));
        }
        for (lane, plain) in self.lanes.plain_forms().into_iter().enumerate().skip(1) {
            let base = plain.unwrap_or(0);
            let less = |(one, other): (&Option<Unit>, &Option<Unit>)| Some((*one)?.less((*other)?));
            let units = figure.units[lane].iter().zip(&figure.units[base]).map(less).collect();
            rows.push((
                format!("{} − {}", names[lane], names[base]),
                vec![&recipes[lane], &recipes[base]],
                units,
            ));
        }
        let (mut printed, mut exact, mut no_width) = (Vec::new(), Vec::new(), Vec::new());
        for (name, lanes, units) in rows {
            let (drawn, rest) = self.split_by_draw(&units);
            let n = self.prefix(&name, &lanes, &drawn)?;
            let labelled: Vec<Labelled> = drawn[..n]
                .iter()
                .filter_map(|(_, unit)| Some(Labelled { value: unit.labelled?, prediction: unit.expected }))
                .collect();
            let others: Vec<f64> =
                drawn[n..].iter().map(|(_, unit)| unit).chain(&rest).map(|unit| unit.expected).collect();
            let estimate = if lanes.len() > 1 { corrected_difference } else { corrected_mean };
            let corrected = match estimate(&labelled, &others, target, LEVEL) {
                Ok(corrected) => corrected,
                Err(error) => {
                    if !units.iter().all(Option::is_none) {
                        few.get_or_insert((name, error));
                    }
                    continue;
                }
            };
            let values: Vec<f64> = labelled.iter().map(|unit| unit.value).collect();
            let alone = match corrected.method {
                Method::LabelsAlone => corrected,
                Method::Corrected(_) => labels_alone(&values, corrected.units, target, LEVEL)?,
            };
            if corrected.method == Method::LabelsAlone && corrected.labelled < corrected.units {
                exact.push(name.clone());
            } else if corrected.half_width() == 0.0 && corrected.labelled < corrected.units {
                no_width.push(name.clone());
            }
            let by_model =
                units.iter().flatten().map(|unit| unit.expected).sum::<f64>() / corrected.units as f64;
            printed.push(row(name, &corrected, &alone, by_model));
        }
        if printed.is_empty() {
            return Ok(None);
        }
        let mut notes = Vec::new();
        if !exact.is_empty() {
            notes.push(format!(
                "{}: fewer than five labelled questions have another value than the rest: the exact interval of the labels alone \
                 (Clopper–Pearson)",
                exact.join(", ")
            ));
        }
        if !no_width.is_empty() {
            notes.push(format!(
                "{}: all labelled questions leave the same residual, so the interval has no width; label more",
                no_width.join(", ")
            ));
        }
        let further = ["labels alone", "model alone", "λ", "n", "N", "width"].map(Head::from);
        let columns = std::iter::once(Head::plotted(figure.name.as_str())).chain(further).collect();
        let mut table = self.lanes.table(SUITE, self.questions.iter().copied(), k, self.shares.get())?;
        table.label_source = "by hand on drawn questions, correcting the model".into();
        if let Some(provenance) = table.provenance.as_object_mut() {
            let (seed, drawn) = (self.sample.seed, self.sample.draw.len());
            let target = if target == Target::These { "these" } else { "population" };
            provenance.insert(
                "correct".into(),
                json!({"seed": seed, "drawn": drawn, "of": self.sample.of, "target": target}),
            );
        }
        Ok(Some(Table { columns, rows: printed, notes, ..table }))
    }

    /// The notes of every table.
    pub fn about(&self, target: Target) -> Vec<String> {
        let count = self.sample.of;
        let target = match target {
            Target::These => {
                format!("target: the mean of exactly these {count} questions (N, where all have the figure)")
            }
            Target::Population => format!("target: the mean of the questions that these {count} stand for"),
        };
        vec![
            target,
            format!(
                "prediction-powered inference (PPI++): n of {} questions drawn with seed {} are labelled; λ is the weight of the model, 0 to \
                 1; width is that of the interval against labels alone",
                self.sample.draw.len(),
                self.sample.seed
            ),
        ]
    }
}

/// Whether a project's pool was made with this lane, however its recipe is written.
fn holds(lanes: &[String], recipe: &Recipe) -> bool {
    lanes.iter().any(|own| own.parse::<Recipe>().is_ok_and(|own| own == *recipe))
}

fn row(lane: String, corrected: &Estimate, alone: &Estimate, by_model: f64) -> Row {
    let cell = |estimate: &Estimate| Cell {
        mean: estimate.mean,
        interval: Some((estimate.interval.low, estimate.interval.high)),
        n: estimate.labelled,
        ..Cell::default()
    };
    let bare = |mean: f64| Cell { mean, n: corrected.units, ..Cell::default() };
    let number = |count: usize| Cell { count: true, ..bare(count as f64) };
    let weight = match corrected.method {
        Method::Corrected(weight) => Some(bare(weight)),
        Method::LabelsAlone => None,
    };
    let width = (alone.half_width() > 0.0).then(|| bare(corrected.half_width() / alone.half_width()));
    let cells = vec![
        Some(cell(corrected)),
        Some(cell(alone)),
        Some(bare(by_model)),
        weight,
        Some(number(corrected.labelled)),
        Some(number(corrected.units)),
        width,
    ];
    Row { lane, cells, ..Row::default() }
}

/// The suite of tables of comparisons.
const COMPARISON: &str = "comparison";

/// Compares pairs of a table's rows on every measure: the difference, its effect size, wins, ties and losses, the test, corrected over the
/// pairs, and what so many questions could show. `None` if no pair has values by question.
///
/// # Errors
/// A value is not a number.
pub fn comparisons(table: &Table, pairs: &[(usize, usize)]) -> Result<Option<Table>, SignificanceError> {
    let mut rows = Vec::new();
    for (column, head) in table.columns.iter().enumerate() {
        let mut compared = Vec::new();
        for (lane, base) in pairs {
            let values = |row: usize| table.rows[row].values.get(column).map_or(&[][..], Vec::as_slice);
            let both = values(*lane).iter().zip(values(*base));
            let (left, right): (Vec<f64>, Vec<f64>) = both.filter_map(|(a, b)| Some(((*a)?, (*b)?))).unzip();
            if !left.is_empty() {
                compared.push((*lane, *base, compare(&left, &right, DRAWS, 0)?));
            }
        }
        // All lanes' replicates have the same questions and the same verdicts, so they can be subtracted one by one.
        let drawn = |lane: usize, base: usize| {
            let means = |row: usize| table.rows[row].replicates.get(column)?.as_ref();
            let both = means(lane)?.iter().zip(means(base)?);
            Spread::of(&mut both.map(|(own, other)| own - other).collect::<Vec<f64>>())
        };
        let corrected = holm(&compared.iter().map(|(.., made)| made.p).collect::<Vec<_>>());
        for ((lane, base, made), p) in compared.into_iter().zip(corrected) {
            let cell = |mean: f64| Cell { mean, n: made.n, ..Cell::default() };
            let between = |one: Interval| Cell { interval: Some((one.low, one.high)), ..cell(one.mean) };
            let count = |number: usize| Some(Cell { count: true, ..cell(number as f64) });
            let (left, right) = (&table.rows[lane].lane, &table.rows[base].lane);
            rows.push(Row {
                lane: format!("{}: {left} − {right}", head.name),
                cells: vec![
                    Some(Cell { doubt: drawn(lane, base), ..between(made.difference) }),
                    made.effect.map(between),
                    count(made.wins),
                    count(made.ties),
                    count(made.losses),
                    Some(cell(p)),
                    made.detectable.map(cell),
                ],
                versus: Some(right.clone()),
                ..Row::default()
            });
        }
    }
    if rows.is_empty() {
        return Ok(None);
    }
    let columns = ["difference", "effect", "wins", "ties", "losses", "p", "seen at 80 %"].map(Head::from);
    let mut notes = vec![
        "effect: the difference in standard deviations of the differences by question (Cohen's d_z); p: paired randomisation, Holm-corrected \
         over the pairs of a measure"
            .to_owned(),
        "seen at 80 %: a difference this large would be found in 80 of 100 samples of as many questions as have both values (paired t, .05)"
            .to_owned(),
    ];
    if table.rows.iter().any(|row| row.by_model.is_some_and(|share| share > 0.0)) {
        notes.push(
            "(…) and p take the model's expectations as values; […] draws its verdicts too: where that interval holds 0, neither lane is better"
                .into(),
        );
    }
    Ok(Some(Table {
        suite: COMPARISON,
        set: table.set.clone(),
        columns: columns.to_vec(),
        rows,
        questions: table.questions,
        question_ids: table.question_ids.clone(),
        k: None,
        label_source: table.label_source.clone(),
        notes,
        provenance: table.provenance.clone(),
        ..Table::default()
    }))
}

/// The pairs of rows to compare: every two, or each with the baseline, if there is one.
pub fn pairs(all: bool, baseline: Option<usize>, rows: usize) -> Vec<(usize, usize)> {
    match baseline {
        _ if all => (0..rows).flat_map(|base| (base + 1..rows).map(move |lane| (lane, base))).collect(),
        Some(base) => (0..rows).filter(|lane| *lane != base).map(|lane| (lane, base)).collect(),
        None => Vec::new(),
    }
}

/// One table over corpora and sets: a row for each corpus and lane, a column for each set and main measure, then the averages over the
/// corpus's sets. `tables` come with the names of corpus and set.
pub fn wide(tables: Vec<((String, String), Table)>) -> anyhow::Result<Table> {
    let corpora = distinct(tables.iter().map(|((corpus, _), _)| corpus.as_str()));
    let sets = distinct(tables.iter().map(|((_, set), _)| set.as_str()));
    let Some((_, first)) = tables.first() else { return Ok(Table::default()) };
    let plotted = first.columns.iter().any(|head| head.plotted);
    let main = |head: &&Head| head.plotted || !plotted;
    let measures: Vec<String> = first.columns.iter().filter(main).map(|head| head.name.clone()).collect();
    let place = |table: &Table, name: &str| table.columns.iter().position(|head| head.name == name);
    let (mut rows, mut notes, mut questions) = (Vec::new(), Vec::new(), 0);
    for corpus in &corpora {
        let own: Vec<(String, Table)> = tables
            .iter()
            .filter(|((of, _), _)| of == corpus)
            .map(|((_, set), table)| (set.clone(), table.clone()))
            .collect();
        let average = averaged(own.clone())?;
        for lane in &average.rows {
            let cell = |table: &Table, measure: &str| {
                let row = table.rows.iter().find(|row| row.lane == lane.lane)?;
                row.cells.get(place(table, measure)?)?.clone()
            };
            let mut cells = Vec::new();
            for set in &sets {
                let table = own.iter().find(|(name, _)| name == set).map(|(_, table)| table);
                cells.extend(measures.iter().map(|measure| cell(table?, measure)));
            }
            cells.extend(measures.iter().map(|measure| cell(&average, measure)));
            let failed = lane.failed.clone();
            rows.push(Row {
                lane: format!("{corpus} {}", lane.lane),
                form: lane.form.clone(),
                cells,
                failed,
                judged: lane.judged,
                by_model: lane.by_model,
                ..Row::default()
            });
        }
        for (set, table) in &own {
            questions += table.questions;
            notes.extend(
                table
                    .caution
                    .iter()
                    .cloned()
                    .chain(table.all_notes())
                    .map(|note| format!("{corpus}, {set}: {note}")),
            );
        }
    }
    let heads = sets.iter().copied().chain(["average"]);
    let columns =
        heads.flat_map(|set| measures.iter().map(move |measure| Head::plotted(format!("{set} {measure}"))));
    notes.insert(
        0,
        "average: the mean of the means of a corpus's sets; – where a corpus lacks a set".to_owned(),
    );
    let sources = distinct(tables.iter().map(|(_, table)| table.label_source.as_str()));
    Ok(Table {
        suite: first.suite,
        columns: columns.collect(),
        rows,
        questions,
        k: first.k,
        label_source: sources.join(", "),
        notes,
        provenance: json!({"sets": tables.iter().map(|((corpus, set), table)| json!({"corpus": corpus, "set": set, "provenance": table.provenance})).collect::<Vec<_>>()}),
        ..Table::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_holds_a_lane_by_its_recipe_and_not_one_with_a_switch_more() {
        let own = ["bm25".to_owned(), "no recipe".to_owned()];
        let holds = |recipe: &str| holds(&own, &recipe.parse().unwrap());
        assert!(holds("bm25") && holds("bm25@k1=0.9,b=0.4"));
        assert!(!holds("bm25+mmr@.75") && !holds("minilm"));
    }

    #[test]
    fn every_label_source_is_named_once() {
        let table = |labels: &str| Table { label_source: labels.into(), ..Table::default() };
        let named = |set: &str, labels| (("wiki".to_owned(), set.to_owned()), table(labels));
        let all = wide(vec![named("a", "gold"), named("b", "model"), named("c", "gold")]).unwrap();
        assert_eq!(all.label_source, "gold, model");
    }
}
