//! Measures decisions on two opposite statements against labels of both: how many sides are right, how many are shown, risk against coverage,
//! and the calibration of the probabilities; how detectors agree with labels; the quality of labels by hand, by annotator.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::marks::share;
use super::table::{Cell, Head, Row, Table};
use crate::annotate::Decision as Label;
use crate::annotate::agree::Item;
use crate::detect::{Decision, NO_SIDE, Outcome};
use crate::measure::agreement::{FIGURES, Tally, at_random, grouped_intervals};
use crate::measure::intervals::Bounds;
use crate::measure::significance::DRAWS;
use crate::measure::uncertainty::{Bin, Guess, aurc, calibration_error, reliability, risk_coverage};

/// The number of bins of a reliability table.
const BINS: usize = 10;

/// The figures of decisions on two opposite statements, against labels of both.
#[derive(Clone, Debug, PartialEq)]
pub struct Decisions {
    /// The number of documents, and of those that support exactly one statement.
    n: (usize, usize),
    /// The share of the documents for one statement whose likelier side is right.
    right_side: Option<f64>,
    /// The number of sides shown, and of those that are right. A side shown on a document for both or neither is wrong.
    shown: (usize, usize),
    /// The number of sides shown on documents that support exactly one statement.
    covered: usize,
    /// Share shown and share wrong as more sides are shown, the surest first.
    curve: Vec<(f64, f64)>,
    aurc: Option<f64>,
    /// Calibration error and reliability of the probability that a document takes a side.
    engaged: (Option<f64>, Vec<Bin>),
    /// Calibration error and reliability of the probability of the likelier side.
    side: (Option<f64>, Vec<Bin>),
}

impl Decisions {
    /// Measures decisions, each with the labels of both statements; `None` if there are none.
    pub fn of(known: &[(Decision, [bool; 2])]) -> Option<Self> {
        let likelier = |decision: &Decision| usize::from(decision.p[1] > decision.p[0]);
        let sureness = |decision: &Decision| {
            let [first, second, ..] = decision.p;
            if first + second > 0.0 { first.max(second) / (first + second) } else { 0.5 }
        };
        let one_sided = || known.iter().filter(|(_, [first, second])| first != second);
        let is_right = |side: usize, labels: [bool; 2]| labels[side] && !labels[1 - side];
        let guesses: Vec<Guess> = one_sided()
            .map(|(decision, labels)| Guess {
                sureness: sureness(decision),
                right: is_right(likelier(decision), *labels),
            })
            .collect();
        let shown = || {
            known.iter().filter_map(|(decision, labels)| match decision.outcome {
                Outcome::Side(side) => Some((side, *labels)),
                _ => None,
            })
        };
        let engaged: Vec<(f64, bool)> =
            known.iter().map(|(decision, labels)| (decision.engaged, labels[0] || labels[1])).collect();
        let side: Vec<(f64, bool)> = guesses.iter().map(|guess| (guess.sureness, guess.right)).collect();
        let right = guesses.iter().filter(|guess| guess.right).count();
        let curve = risk_coverage(&guesses);
        (!known.is_empty()).then(|| Decisions {
            n: (known.len(), guesses.len()),
            right_side: (!guesses.is_empty()).then(|| right as f64 / guesses.len() as f64),
            shown: (shown().count(), shown().filter(|(side, labels)| is_right(*side, *labels)).count()),
            covered: shown().filter(|(_, labels)| labels[0] != labels[1]).count(),
            curve: curve.iter().map(|point| (point.coverage, point.risk)).collect(),
            aurc: aurc(&guesses),
            engaged: (calibration_error(&engaged, BINS), reliability(&engaged, BINS)),
            side: (calibration_error(&side, BINS), reliability(&side, BINS)),
        })
    }

    /// Returns the share of the shown sides that are right; `None` if no side is shown.
    fn precision(&self) -> Option<f64> {
        (self.shown.0 > 0).then(|| self.shown.1 as f64 / self.shown.0 as f64)
    }

    /// Returns the share of the documents for one statement on which a side is shown; `None` if there is no such document.
    fn coverage(&self) -> Option<f64> {
        (self.n.1 > 0).then(|| self.covered as f64 / self.n.1 as f64)
    }

    /// Returns the risk if a tenth, two tenths, … of the sides are shown.
    fn tenths(&self) -> impl Iterator<Item = (f64, f64)> {
        let at = |tenth: f64| self.curve.iter().find(|(coverage, _)| *coverage >= tenth - 1e-9).copied();
        (1..=10).filter_map(move |i| at(f64::from(i) / 10.0))
    }

    /// Returns the number of documents that support exactly one statement. The curve is about these.
    pub fn one_sided(&self) -> usize {
        self.n.1
    }

    /// Returns coverage and risk at every coverage.
    pub fn curve(&self) -> &[(f64, f64)] {
        &self.curve
    }

    /// Writes the figures as lines of text.
    pub fn text(&self, shows_sides: bool) -> Vec<String> {
        let short = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), share);
        let shown = if shows_sides {
            format!(
                "{} sides shown, right {}, coverage {}",
                self.shown.0,
                short(self.precision()),
                short(self.coverage())
            )
        } else {
            NO_SIDE.to_owned()
        };
        let curve: Vec<String> =
            self.tenths().map(|(coverage, risk)| format!("{} {}", share(coverage), share(risk))).collect();
        let bins = |bins: &[Bin]| -> String {
            let one = |bin: &Bin| format!("{}→{} ({})", share(bin.mean), share(bin.share), bin.count);
            bins.iter().map(one).collect::<Vec<_>>().join(" ")
        };
        vec![
            format!(
                "{} documents with both statements labelled, {} of them for one side: right side {}; {shown}",
                self.n.0,
                self.n.1,
                short(self.right_side)
            ),
            format!(
                "risk-coverage (share of sides shown, share of them wrong): {}; AURC {}",
                curve.join(", "),
                short(self.aurc)
            ),
            format!(
                "takes a side, calibration error {}: said→true (documents) {}",
                short(self.engaged.0),
                bins(&self.engaged.1)
            ),
            format!("which side, calibration error {}: {}", short(self.side.0), bins(&self.side.1)),
        ]
    }

    /// Writes the figures as JSON.
    pub fn json(&self) -> Value {
        let bins = |bins: &[Bin]| -> Vec<Value> {
            let one = |bin: &Bin| json!({"from": bin.from, "count": bin.count, "mean": bin.mean, "share": bin.share});
            bins.iter().map(one).collect()
        };
        json!({
            "documents": self.n.0,
            "one_side": self.n.1,
            "right_side": self.right_side,
            "shown": self.shown.0,
            "precision": self.precision(),
            "coverage": self.coverage(),
            "aurc": self.aurc,
            "risk_coverage": self.curve.iter().map(|(c, r)| json!({"coverage": c, "risk": r})).collect::<Vec<_>>(),
            "engaged": {"ece": self.engaged.0, "reliability": bins(&self.engaged.1)},
            "side": {"ece": self.side.0, "reliability": bins(&self.side.1)},
        })
    }
}

/// A passage was read fast if it took less than this share of the annotator's median time, and slowly if it took this many times as long.
const FAST: f64 = 0.25;
/// See [`FAST`].
const SLOW: f64 = 4.0;
/// The most passages read fast or slowly that are listed.
const OUTLIERS: usize = 20;
/// The parts of an annotator's labels, by time, that are compared.
const PARTS: usize = 4;

/// One label of an annotator, and whether it is that of most of the others, and the known one.
struct Said<'a> {
    label: &'a Label,
    agrees: Option<bool>,
    right: Option<bool>,
}

/// The labels of one annotator, earliest first.
fn said_by<'a>(name: &str, items: &[Item<'a>], known: &dyn Fn(&Label) -> Option<bool>) -> Vec<Said<'a>> {
    let said = |item: &Item<'a>| {
        let label = *item.said.get(name)?;
        let (yes, no) = item.votes();
        let (yes, no) = (yes - usize::from(label.supports), no - usize::from(!label.supports));
        let agrees = (yes != no).then_some(label.supports == (yes > no));
        Some(Said { label, agrees, right: known(label).map(|known| known == label.supports) })
    };
    let mut own: Vec<Said> = items.iter().filter_map(said).collect();
    own.sort_by_key(|said| said.label.at);
    own
}

/// The share that is true of those that are known.
fn share_of(of: &[Said<'_>], is: fn(&Said<'_>) -> Option<bool>) -> Option<Cell> {
    let known: Vec<bool> = of.iter().filter_map(is).collect();
    let right = known.iter().filter(|right| **right).count();
    (!known.is_empty()).then(|| cell(right as f64 / known.len() as f64, known.len()))
}

/// Every passage whose time was measured, once for all its statements: the label, and the time in milliseconds.
fn looks<'a>(of: &[Said<'a>]) -> Vec<(&'a Label, u64)> {
    let mut looks: BTreeMap<(&str, &str, u64), (&Label, u64)> = BTreeMap::new();
    for Said { label, .. } in of {
        if let Some(took) = label.took {
            looks.insert((&label.question, &label.text, label.at), (label, took));
        }
    }
    looks.into_values().collect()
}

fn median(looks: &[(&Label, u64)]) -> Option<f64> {
    let mut times: Vec<u64> = looks.iter().map(|(_, took)| *took).collect();
    times.sort_unstable();
    times.get(times.len() / 2).map(|time| *time as f64)
}

/// The quality of the labels by annotator, as a table: how fast passages were read, how many labels were made blind, how often each agrees
/// with most of the others, and with the labels of checks (`known`), and with the own label of a passage that came again (`repeated`: the
/// same labels and all, by name). Below: the same by quarters of the labels, and the passages read much faster or slower than usual.
pub fn quality(
    items: &[Item<'_>],
    known: &dyn Fn(&Label) -> Option<bool>,
    repeated: &BTreeMap<&str, (usize, usize)>,
) -> Table {
    let names: BTreeSet<&str> = items.iter().flat_map(|item| item.said.keys().copied()).collect();
    let (mut rows, mut parts, mut outliers) = (Vec::new(), Vec::new(), Vec::new());
    for name in names {
        let own = said_by(name, items, known);
        let looks_of_all = looks(&own);
        let usual = median(&looks_of_all);
        let count = |number: usize, of: usize| Some(Cell { count: true, ..cell(number as f64, of) });
        let mut far = [0, 0];
        for (label, took) in &looks_of_all {
            let Some(ratio) = usual.filter(|usual| *usual > 0.0).map(|usual| *took as f64 / usual) else {
                continue;
            };
            if !(FAST..=SLOW).contains(&ratio) {
                far[usize::from(ratio > SLOW)] += 1;
                outliers.push((ratio, *took, *label));
            }
        }
        let blind = own.iter().filter(|said| said.label.blind() == Some(true)).count();
        let seconds = |looks: &[(&Label, u64)]| median(looks).map(|ms| cell(ms / 1e3, looks.len()));
        let itself = repeated.get(name).filter(|(_, all)| *all > 0);
        rows.push(Row {
            lane: name.to_owned(),
            cells: vec![
                count(own.len(), own.len()),
                seconds(&looks_of_all),
                usual.and_then(|_| count(far[0], looks_of_all.len())),
                usual.and_then(|_| count(far[1], looks_of_all.len())),
                count(blind, own.len()),
                share_of(&own, |said| said.agrees),
                share_of(&own, |said| said.right),
                itself.map(|(same, all)| cell(*same as f64 / *all as f64, *all)),
            ],
            ..Row::default()
        });
        for part in 0..PARTS {
            let end = |part: usize| own.len() * part / PARTS;
            let here = &own[end(part)..end(part + 1)];
            let yes = |said: &Said<'_>| Some(said.label.supports);
            parts.push(Row {
                lane: format!("{name} {}/{PARTS}", part + 1),
                cells: vec![
                    count(here.len(), here.len()),
                    seconds(&looks(here)),
                    share_of(here, yes),
                    share_of(here, |said| said.agrees),
                    share_of(here, |said| said.right),
                ],
                ..Row::default()
            });
        }
    }
    // Furthest from the usual time first.
    let from_usual = |ratio: f64| ratio.max(f64::MIN_POSITIVE).ln().abs();
    outliers.sort_by(|one, other| from_usual(other.0).total_cmp(&from_usual(one.0)));
    let outlier = |(ratio, took, label): &(f64, u64, &Label)| Row {
        lane: format!("{} [{}] {}", label.by, label.passage, label.question),
        cells: vec![Some(cell(*took as f64 / 1e3, 1)), Some(cell(*ratio, 1))],
        ..Row::default()
    };
    let questions = items.iter().map(|item| &item.about.question).collect::<BTreeSet<_>>().len();
    let table = |suite, columns: &[&str], rows: Vec<Row>, notes: Vec<String>| Table {
        suite,
        columns: columns.iter().copied().map(Head::from).collect(),
        rows,
        label_source: "by hand".into(),
        questions,
        notes,
        ..Table::default()
    };
    let mut further = vec![table(
        "quality-by-quarter",
        &["labels", "median s", "yes", "with others", "checks"],
        parts,
        vec!["each annotator's labels in quarters, the earliest first: a drift shows as a change from one to the next".into()],
    )];
    if !outliers.is_empty() {
        let more = match outliers.len().saturating_sub(OUTLIERS) {
            0 => String::new(),
            more => format!("; {more} more are not listed"),
        };
        further.push(table(
            "quality-fast-and-slow",
            &["seconds", "times the median"],
            outliers.iter().take(OUTLIERS).map(outlier).collect(),
            vec![format!("the passages furthest from their annotator's usual time{more}")],
        ));
    }
    let columns = ["labels", "median s", "fast", "slow", "blind", "with others", "checks", "with oneself"];
    let notes = vec![
        format!(
            "fast, slow: passages read in less than {FAST} of the annotator's median time, or more than {SLOW} times it; blind: labels made with lane, \
             rank and verdict hidden"
        ),
        "with others: the share of labels that are those of most other annotators, ties left out".into(),
        "checks: the share that is right of labels that are known, planted by annotate new --checks or given by --labels; with oneself: the \
         share of labels that are the same when a passage comes again (--repeats)"
            .into(),
    ];
    Table { further, ..table("quality", &columns, rows, notes) }
}

fn cell(mean: f64, n: usize) -> Cell {
    Cell { mean, n, ..Cell::default() }
}

/// A row of the table of detectors.
pub struct Judge<'a> {
    /// The detector's or the annotator's name.
    pub name: String,
    /// The group, the verdict and the label of every pair that has both. A group is a question: its pairs are drawn together.
    pub said: Vec<(&'a str, bool, bool)>,
    /// The number of labelled pairs without a verdict.
    pub missing: usize,
}

/// The random draws behind the row *random*.
const RANDOM: usize = 1_000;

/// How often each judge says yes, and how it agrees with the labels, with intervals by question; then verdicts at random, and none at
/// all (Chen & Choi, Table 7). `labels` are those of all pairs with their groups, by `source`.
pub fn against_labels(
    suite: &'static str,
    judges: &[Judge<'_>],
    labels: &[(&str, bool)],
    source: &str,
    seed: u64,
) -> Table {
    let row = |name: &str, said: &[(&str, bool, bool)]| {
        let mut groups: BTreeMap<&str, Tally> = BTreeMap::new();
        let mut all = Tally::default();
        for (group, verdict, label) in said {
            groups.entry(group).or_default().count(*verdict, *label);
            all.count(*verdict, *label);
        }
        let groups: Vec<Tally> = groups.into_values().collect();
        let intervals = grouped_intervals(&groups, DRAWS, seed);
        let cell = |(mean, bounds): (Option<f64>, Option<Bounds>)| {
            let interval = bounds.map(|bounds| (bounds.low, bounds.high));
            Some(Cell { mean: mean?, interval, n: all.n(), ..Cell::default() })
        };
        Row {
            lane: name.into(),
            cells: all.figures().into_iter().zip(intervals).map(cell).collect(),
            ..Row::default()
        }
    };
    let mut rows: Vec<Row> = judges.iter().map(|judge| row(&judge.name, &judge.said)).collect();
    let alone: Vec<bool> = labels.iter().map(|(_, label)| *label).collect();
    let random = at_random(&alone, RANDOM, seed).into_iter().map(|figure| {
        let (mean, middle) = figure?;
        Some(Cell { mean, interval: Some((middle.low, middle.high)), n: alone.len(), ..Cell::default() })
    });
    rows.push(Row { lane: "random".into(), cells: random.collect(), ..Row::default() });
    let never: Vec<(&str, bool, bool)> =
        labels.iter().map(|(group, label)| (*group, false, *label)).collect();
    rows.push(row("always no", &never));
    let yes = alone.iter().filter(|label| **label).count();
    let mut notes = vec![
        format!(
            "{} labelled pairs, {yes} of them yes · yes: the share of verdicts that are yes · F1: of yes",
            alone.len()
        ),
        format!(
            "random: yes as often as the labels; means over {RANDOM} draws with seed {seed}, the interval is their middle 95 %"
        ),
    ];
    let missing = judges.iter().filter(|judge| judge.missing > 0);
    notes.extend(missing.map(|judge| {
        format!("{}: no verdict on {} labelled pairs, which its row leaves out", judge.name, judge.missing)
    }));
    let groups: BTreeSet<&str> = labels.iter().map(|(group, _)| *group).collect();
    Table {
        suite,
        columns: FIGURES.map(Head::from).to_vec(),
        rows,
        questions: groups.len(),
        label_source: source.into(),
        notes,
        provenance: json!({"version": env!("CARGO_PKG_VERSION"), "seed": seed}),
        ..Table::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_side_shown_on_a_document_for_neither_is_wrong_and_covers_none() {
        let decision =
            |first: f64, outcome| Decision { outcome, engaged: 0.9, p: [first, 0.9 - first, 0.0, 0.1] };
        let known = [
            (decision(0.8, Outcome::Side(0)), [true, false]),
            (decision(0.7, Outcome::Side(0)), [false, false]),
            (decision(0.45, Outcome::Unclear), [true, false]),
            (decision(0.4, Outcome::Unclear), [true, false]),
        ];
        let figures = Decisions::of(&known).unwrap();
        assert_eq!((figures.n, figures.shown, figures.covered), ((4, 3), (2, 1), 1));
        assert_eq!((figures.precision(), figures.coverage()), (Some(0.5), Some(1.0 / 3.0)));
        assert_eq!(figures.right_side, Some(2.0 / 3.0));
        // The surest is right, the next is wrong, the last is right: (0 + 1/2 + 1/3) / 3.
        assert!((figures.aurc.unwrap() - 5.0 / 18.0).abs() < 1e-12, "{figures:?}");
        let lines = figures.text(true);
        assert!(lines[0].contains("2 sides shown, right .50, coverage .33"), "{lines:?}");
        assert!(figures.text(false)[0].ends_with(NO_SIDE));
        assert_eq!(Decisions::of(&[]), None);
    }
}
