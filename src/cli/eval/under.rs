//! `--fail-under 'LANE:MEASURE>=NUMBER'`: a floor for use in continuous integration.

use std::str::FromStr;

use anyhow::bail;

use super::super::args::Eval;
use crate::pipeline::Recipe;
use crate::report::table::Table;

/// The bounds that were asked for.
///
/// # Errors
/// One is not what it should be.
pub fn bounds(args: &Eval) -> anyhow::Result<Vec<Bound>> {
    args.fail_under.iter().map(|text| text.parse()).collect()
}

/// Makes sure that every bound names one of the rows to come, before anything is measured.
///
/// # Errors
/// One does not.
pub fn known(args: &Eval, rows: impl IntoIterator<Item = String>) -> anyhow::Result<()> {
    let rows: Vec<String> = rows.into_iter().collect();
    for bound in bounds(args)? {
        bound.row(&rows)?;
    }
    Ok(())
}

/// A floor under one lane's mean.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    lane: String,
    measure: String,
    least: f64,
}

impl FromStr for Bound {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let parts = || {
            let (name, least) = text.split_once(">=")?;
            // A recipe holds no colon, a run's name may.
            let (lane, measure) = name.trim().rsplit_once(':')?;
            let least = least.trim().parse::<f64>().ok().filter(|least| least.is_finite())?;
            Some(Bound { lane: lane.trim().into(), measure: measure.trim().into(), least })
        };
        match parts() {
            Some(bound) => Ok(bound),
            None => {
                bail!("--fail-under `{text}`: expected LANE:MEASURE>=NUMBER, such as minilm:MRecall@5>=0.3")
            }
        }
    }
}

impl Bound {
    /// Which of the rows it is about.
    fn row(&self, rows: &[String]) -> anyhow::Result<usize> {
        let recipe = |text: &str| text.parse::<Recipe>();
        let named = recipe(&self.lane);
        // A run may be named without its folder.
        let file = |recipe: &Recipe| recipe.run().and_then(|run| run.path.file_name().map(ToOwned::to_owned));
        let same = |row: &String| match (recipe(row), &named) {
            _ if *row == self.lane => true,
            (Ok(row), Ok(named)) => {
                let bare = named.run().is_some_and(|run| run.path.components().count() == 1);
                row == *named || (bare && row.switches == named.switches && file(&row) == file(named))
            }
            _ => false,
        };
        match rows.iter().position(same) {
            Some(row) => Ok(row),
            None => bail!("--fail-under: no lane `{}` here; there are {}", self.lane, rows.join(", ")),
        }
    }

    /// Why the table breaks it, if it does.
    ///
    /// # Errors
    /// The table has no such lane or measure.
    pub fn broken(&self, table: &Table) -> anyhow::Result<Option<String>> {
        let tables = || std::iter::once(table).chain(&table.further);
        let found = tables().find_map(|table| {
            let column = table.columns.iter().position(|name| name.eq_ignore_ascii_case(&self.measure));
            Some((table, column?))
        });
        let Some((table, column)) = found else {
            let columns: Vec<&str> = tables().flat_map(|table| &table.columns).map(String::as_str).collect();
            bail!("--fail-under: no measure `{}` here; there are {}", self.measure, columns.join(", "));
        };
        let rows: Vec<String> = table.rows.iter().map(|row| row.lane.clone()).collect();
        let row = &table.rows[self.row(&rows)?];
        let mean = row.cells[column].as_ref().map(|cell| cell.mean);
        Ok(match mean {
            Some(mean) if mean >= self.least => None,
            Some(mean) => Some(format!("{} {} is {mean:.4}, below {}", row.lane, self.measure, self.least)),
            None => Some(format!("{} {} could not be measured", row.lane, self.measure)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::table::{Cell, Row};

    fn table(mean: f64) -> Table {
        let cell = Cell { mean, n: 1, ..Cell::default() };
        let row = Row { lane: "bm25@k1=0.9,b=0.4".into(), cells: vec![Some(cell)], ..Row::default() };
        Table { columns: vec!["MRecall@5".into()], rows: vec![row], ..Table::default() }
    }

    #[test]
    fn a_floor_holds_or_says_by_how_much_it_does_not() {
        let bound: Bound = "bm25:mrecall@5>=0.3".parse().unwrap();
        assert_eq!(bound.broken(&table(0.3)).unwrap(), None);
        assert!(bound.broken(&table(0.29)).unwrap().unwrap().contains("is 0.2900, below 0.3"));
    }

    #[test]
    fn a_run_may_be_named_without_its_folder() {
        let rows = ["bm25", "run:data/a.json", "run:data/a.json+mmr@0.75"].map(String::from);
        let row = |text: &str| text.parse::<Bound>().unwrap().row(&rows).ok();
        assert_eq!(row("run:a.json:nDCG@10>=.5"), Some(1));
        assert_eq!(row("run:a.json+mmr:nDCG@10>=.5"), Some(2));
        assert_eq!(row("run:other/a.json:nDCG@10>=.5"), None);
    }

    #[test]
    fn a_floor_that_names_nothing_is_an_error_and_not_a_pass() {
        for text in ["", "bm25>=1", "bm25:MRecall@5", "bm25:MRecall@5>=x", "bm25:MRecall@5>=nan"] {
            assert!(text.parse::<Bound>().is_err(), "{text}");
        }
        for text in ["minilm:MRecall@5>=0", "bm25:Prec@5>=0"] {
            assert!(text.parse::<Bound>().unwrap().broken(&table(1.0)).is_err(), "{text}");
        }
    }
}
