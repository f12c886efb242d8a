//! The parts of a table of figures: heads, cells, differences from the plain lane, rows.

use std::fmt;

use super::marks::{count, share};
use crate::measure::Measure;
use crate::measure::score::Column;
use crate::measure::uncertainty::Spread;

/// The suite of the tables of `eval berds` over k.
pub const BERDS_OVER_K: &str = "berds-over-k";
/// The suite of the table of `eval reader` with one row per measure and one column per depth.
pub const READER_OVER_K: &str = "reader-over-k";
/// The suite of the table of `eval mix` with one row per reader and one column per share.
pub const MIX_OVER_SHARE: &str = "mix-over-share";

/// The name of a column, and whether it has a plot of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// The name.
    pub name: String,
    /// Whether the column is plotted by itself. A column that shares a plot with others, or belongs only in the table, is not.
    pub plotted: bool,
}

impl Head {
    /// A column with a plot of its own.
    pub fn plotted(name: impl Into<String>) -> Self {
        Head { name: name.into(), plotted: true }
    }
}

/// A column without a plot of its own.
impl From<String> for Head {
    fn from(name: String) -> Self {
        Head { name, plotted: false }
    }
}

/// A column without a plot of its own.
impl From<&str> for Head {
    fn from(name: &str) -> Self {
        Head::from(name.to_owned())
    }
}

/// Every measure has a plot of its own.
impl From<Measure> for Head {
    fn from(measure: Measure) -> Self {
        Head::plotted(measure.to_string())
    }
}

impl From<Column> for Head {
    fn from(column: Column) -> Self {
        match column {
            Column::Named(measure) => Head::from(measure),
            // The shares of covered sides are stacked in one plot.
            Column::Covers(..) => Head::from(column.to_string()),
        }
    }
}

/// A measure of one lane over all questions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    /// The mean.
    pub mean: f64,
    /// The 95 % interval of the mean, if there is one.
    pub interval: Option<(f64, f64)>,
    /// The number of questions that the mean is over.
    pub n: usize,
    /// The p-value of the difference from the lane's plain form, corrected for the number of lanes compared; `None` if it is not
    /// compared.
    pub p: Option<f64>,
    /// The interval that includes the uncertainty of the model's verdicts, if they counted.
    pub doubt: Option<Spread>,
    /// The difference from the lane's plain form with questions and verdicts drawn, if the model's verdicts counted.
    pub difference: Option<Spread>,
    /// The share of labelled passages among those that the measure looks at, if it differs from the row's.
    pub judged: Option<f64>,
    /// The share of these verdicts that are the model's, if it differs from the row's.
    pub by_model: Option<f64>,
    /// How far both ends of [`Cell::doubt`] were moved outwards, for the bias of the model's means.
    pub widened: f64,
    /// Whether it is a count, which is printed without decimals.
    pub count: bool,
    /// The difference from the lane's plain form, if it is compared.
    pub change: Option<Change>,
}

/// The difference of a lane from its plain form, over the questions of which both have a value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Change {
    /// The mean difference.
    pub mean: f64,
    /// The lower end of its 95 % interval by question.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// The mean of the plain form over the same questions.
    pub plain: f64,
    /// The difference of each question; empty for an average over sets.
    pub pairs: Vec<f64>,
}

impl Change {
    /// The difference in per cent of the plain form; `None` if that is 0.
    pub fn percent(&self) -> Option<f64> {
        (self.plain != 0.0).then(|| 100.0 * self.mean / self.plain)
    }

    /// `+.0245 +8.3 % (.01–.04)`
    pub(super) fn text(&self) -> String {
        // No sign before a zero.
        let four = |value: f64| format!("{:+.4}", if value.abs() < 0.00005 { 0.0 } else { value });
        let one = |percent: f64| if percent.abs() < 0.05 { 0.0 } else { percent };
        let percent = self.percent().map_or_else(String::new, |percent| format!(" {:+.1} %", one(percent)));
        let end = |value: f64| match format!("{value:+.3}") {
            zero if zero.trim_start_matches(['+', '-']) == "0.000" => ".000".to_owned(),
            text => text.replacen("0.", ".", usize::from(value.abs() < 1.0)),
        };
        format!("{}{percent} ({} to {})", four(self.mean), end(self.low), end(self.high))
    }
}

/// A lane's figures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// The lane's recipe, or the run's name.
    pub lane: String,
    /// The form in which its query was expanded, such as `extractive (no model)`; `None` if nothing is to be said.
    pub form: Option<String>,
    /// One cell per column; `None` if there is nothing to measure.
    pub cells: Vec<Option<Cell>>,
    /// The questions without a list, each with the reason. They count as 0.
    pub failed: Vec<(String, String)>,
    /// The share of the first k passages that have a label.
    pub judged: Option<f64>,
    /// The share of these verdicts that are the model's.
    pub by_model: Option<f64>,
    /// The lane that it was compared with.
    pub versus: Option<String>,
    /// The values of each measure, one per question in the order of the table's `question_ids`; empty if there are none by question.
    pub values: Vec<Vec<Option<f64>>>,
    /// The mean of each measure in every replicate that its interval comes from.
    pub replicates: Vec<Option<Vec<f64>>>,
}

impl Row {
    /// The lane with the form in which its query was expanded: `bm25+csqe [extractive (no model)]`.
    pub fn name(&self) -> String {
        self.form.as_ref().map_or_else(|| self.lane.clone(), |form| format!("{} [{form}]", self.lane))
    }
}

/// Formats a figure: four decimals between −1 and 1, else two.
fn figure(value: f64) -> String {
    // No sign before a zero.
    let value = value + 0.0;
    if (-1.0..=1.0).contains(&value) { format!("{value:.4}") } else { format!("{value:.2}") }
}

impl Cell {
    fn star(&self) -> &'static str {
        // No lane is called better or worse if the model's doubt allows the opposite.
        let undecided = self.difference.is_some_and(|difference| difference.holds_zero());
        if !undecided && self.p.is_some_and(|p| p < 0.05) { "*" } else { "" }
    }

    /// The mean alone; a count has no decimals.
    pub(super) fn value(&self) -> String {
        if self.count { format!("{:.0}", self.mean) } else { figure(self.mean) }
    }

    /// The mean with its star and intervals.
    pub(super) fn text(&self) -> String {
        if self.count {
            return self.value();
        }
        let short = |x: f64| if (-1.0..=1.0).contains(&x) { share(x) } else { format!("{x:.1}") };
        let range = |low, high| format!("{}–{}", short(low), short(high));
        let interval =
            self.interval.map_or_else(String::new, |(low, high)| format!(" ({})", range(low, high)));
        let doubt =
            self.doubt.map_or_else(String::new, |doubt| format!(" [{}]", range(doubt.low, doubt.high)));
        format!("{}{}{interval}{doubt}", self.value(), self.star())
    }
}

/// The title of a suite's page, and what it measures.
pub(super) fn about(suite: &str) -> (&'static str, &'static str) {
    match suite {
        "berds" => (
            "Perspectives in the first passages",
            "MRecall: whether the first k passages cover the question's statements. Prec: how many of them support any. The stacks show \
             how often only one side, both or neither was among them (Chen and Choi, Tables 3 and 4, Figure 2).",
        ),
        "corrected" => (
            "The model's verdicts, corrected by labels",
            "Labels on questions drawn at random correct the model's verdicts on all questions (prediction-powered inference, PPI++).",
        ),
        "quality" => (
            "The quality of the labels",
            "How often annotators agree, how fast they are, and whether that changes with time.",
        ),
        "comparison" => (
            "Lanes against each other",
            "Differences by question, their size, and how large a difference so many questions could show.",
        ),
        "coverage" => (
            "How far to read",
            "The rank by which every statement is supported, and how often that is within the first 100 (Chen and Choi, Tables 5 and 6).",
        ),
        "bias" => (
            "Which way the lanes lean",
            "The lean towards one of two sides; how unevenly the order treats the statements (rKL, AWRF); and for a field of the passages, the \
             share of each value at the top against its share of the corpus (Zhao et al., Figures 3, 5 and 6).",
        ),
        "sycophancy" => (
            "Does the answer follow the wording?",
            "Every lane is asked neutrally, with the supporting statement and with the opposing one. The plot of Δ is \
             Chen and Choi's Figure 3, a line for each lane, with intervals.",
        ),
        "framing" => (
            "How much does the wording decide?",
            "Every lane is asked in ten wordings. Sensitivity: how far the lists lie apart. Negation and exclusion: whether two opposite queries \
             rank the passages that fit them first (NevIR, pairwise).",
        ),
        "ask" => (
            "What does asking n times buy?",
            "MRecall of the lists of n wordings, fused or side by side, against one list of one question that is n times as deep: both cost as \
             many passages.",
        ),
        "edit" => (
            "What do the words of a passage do to its rank?",
            "Each of the first passages with other words, one at a time: whether the lane scores it above its original, and how many ranks it moves.",
        ),
        "framing-pairs" => (
            "Does a lane read a negation?",
            "Pairs of queries that differ in a negation, each with its passage (Weller et al., NevIR).",
        ),
        "pir" => (
            "Perspective awareness",
            "The p-Recall of BM25 and of the built-in encoder under every projection (the rows of Zhao et al., Table 8, with another \
             encoder), and the sides that root queries retrieve (Table 3).",
        ),
        "reader" => (
            "What is read from the first passages",
            "Whether a reader is right from the first k (EM), was right at any depth up to k (AcEM), and what more passages cost (Oh and \
             Thorne); for questions of two sides, the stance that the first k take together and what turns it.",
        ),
        "nuggets" => (
            "Which arguments a lane brings",
            "Sentences that support a statement are clustered into key points; nugget recall is the share of them that the first k bring, \
             weighted recall counts an okay one half (AutoNuggetizer, Pradeep et al., 2025).",
        ),
        "nuggets-matching" => (
            "Clusters against key points by hand",
            "B-cubed precision, recall and F1 of clusters of sentences (Bagga and Baldwin, 1998) on the data of KPA 2021.",
        ),
        "answer" => (
            "From the list to the answer",
            "Which sides a reader's answer gives, which of them its list has, and how well its citations support it (after DebateQA and ALCE).",
        ),
        "mix" => (
            "What mixed lists conclude",
            "A reader gets lists in which the share of one side goes from 0 to 1; the curve tips where its conclusion changes sides (after RAMDocs).",
        ),
        _ => (
            "Graded relevance",
            "The measures of trec_eval. One without a cut-off reads the first 1,000 passages, as trec_eval does with -M 1000.",
        ),
    }
}

/// A note on some of the questions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// What it says of each.
    pub text: String,
    /// How many questions.
    pub questions: usize,
}

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.text, count(self.questions, "question", "questions"))
    }
}
