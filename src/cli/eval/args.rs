//! The arguments of `parallax eval`, its question sets one by one, and the thresholds of `--fail-under`.

use std::path::PathBuf;

use anyhow::bail;
use clap::ValueEnum;

use crate::cli::job::Threshold;
use crate::cli::options::{Common, Layout, SetOf, SwitchArgs, Tune, set_name};
use crate::cli::provenance::content_hash;
use crate::engine::Recipe;
use crate::measure::seeded::hashed;

/// `parallax eval`
#[derive(Debug, clap::Args)]
pub struct Eval {
    /// What to measure.
    #[arg(value_enum)]
    pub suite: Suite,
    /// Judgments: TREC qrels or BEIR TSV.
    #[arg(help_heading = "Options of trec", long, value_name = "FILE")]
    pub qrels: Option<PathBuf>,
    /// A finished run (TREC, rank_llm or BERDS); short for --lane run:FILE; repeat for more.
    #[arg(long = "run", value_name = "FILE")]
    pub runs: Vec<PathBuf>,
    /// Measures by name. `trec` prints them instead of nDCG@10,R@100; `berds` adds them to its own. Examples:
    /// MRecall@10,alpha_nDCG@10,StRecall@5,Lean@5,Shift@5,rKL@10,AWRF,Cover.
    #[arg(help_heading = "Options of trec and berds", long, value_delimiter = ',', value_name = "NAMES")]
    pub measures: Vec<String>,
    /// Switches for the lanes that have none of their own.
    #[command(flatten)]
    pub switches: SwitchArgs,
    /// Add one row per lane: the best order of its first 100 passages that the labels allow. Needs --label-source gold or human.
    #[arg(help_heading = "Options of berds", long)]
    pub oracle: bool,
    /// For `bias`: a metadata field of the passages; also show which of its values each lane returns. For `pir`: `country`.
    #[arg(long, value_name = "FIELD")]
    pub attribute: Option<String>,
    /// Correct the model's verdicts by the labels of a project that `annotate new --sample` drew: single lanes, and their
    /// differences from the plain form or the first lane (PPI++).
    #[arg(help_heading = "Options of berds, coverage, bias and sycophancy", long, value_name = "PROJECT")]
    pub correct: Option<PathBuf>,
    /// With --correct, what the interval is about.
    #[arg(
        help_heading = "Options of berds, coverage, bias and sycophancy",
        long,
        value_enum,
        default_value_t
    )]
    pub target: Target,
    /// Choose a switch's parameter on the development set --dev, lane by lane, and measure the choice on --questions: mmr=.5,.75,.9;
    /// repeat for more switches.
    #[arg(help_heading = "Options of berds", long, value_name = "SWITCH=VALUES", requires = "dev")]
    pub tune: Vec<Tune>,
    /// The questions of the development set of --tune.
    #[arg(help_heading = "Options of berds", long, value_name = "FILE", requires = "tune")]
    pub dev: Option<PathBuf>,
    /// The labels of the development set. Default: those of --labels.
    #[arg(
        help_heading = "Options of berds",
        long,
        value_name = "FILE[:complete|:positives]",
        requires = "dev"
    )]
    pub dev_labels: Option<String>,
    /// A question set with its corpus and labels: name=NAME,corpus=C,questions=Q,labels=L (or qrels=R); repeat for more, instead of
    /// --corpus, --questions, --labels and --qrels.
    #[arg(long = "set", value_name = "SET", conflicts_with_all = ["qrels", "write", "correct", "tune"])]
    pub sets: Vec<SetOf>,
    /// With several sets: `stacked` prints the average and a table for each set, `wide` one row for each corpus and lane and a column for
    /// each set and main measure, the average last.
    #[arg(long, value_enum, default_value_t)]
    pub layout: Layout,
    /// Also write to this folder: `berds` the lists of every lane (TREC run, BERDS JSONL), all labels (qrels), the
    /// model's probabilities and the table; `reader` the answers
    /// of every list, the types of its passages, and what replaced right answers, for annotate new; `pir` every query with its list;
    /// `nuggets` the key points, to be edited, and the rank at which each lane brings them.
    #[arg(help_heading = "Options of berds, nuggets, pir and reader", long, value_name = "FOLDER")]
    pub write: Option<PathBuf>,
    /// Where the passages come from that are added to a gold passage for SER: the question's own list, BM25 or a draw over the corpus
    /// (without --corpus, over the passages of all questions). Default: list,random.
    #[arg(
        help_heading = "Options of reader",
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "SOURCES"
    )]
    pub negatives: Vec<Negatives>,
    /// What else is read of every list.
    #[arg(help_heading = "Options of reader", long, value_enum, value_delimiter = ',', value_name = "WHAT")]
    pub analyse: Vec<Analysis>,
    /// Types of passages (JSONL: id or question, passage, type) for the probes, instead of the reader's own, by which they are scored.
    #[arg(help_heading = "Options of reader", long, value_name = "FILE")]
    pub types: Option<PathBuf>,
    /// Write the table to this file instead, and beside it FILE.json: what it was made of, for `parallax reproduce`.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Print one row per question and lane instead of means; if you name a measure, sorted by it, the lowest first.
    #[arg(long, value_name = "MEASURE", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub per_question: Option<String>,
    /// Add what every lane costs: replies of a language model, tokens and milliseconds a query, and how many sentences it copied.
    #[arg(help_heading = "Options of berds, coverage and trec", long)]
    pub cost: bool,
    /// Also write every plot to this folder, as SVG and PNG.
    #[arg(long, value_name = "FOLDER")]
    pub plots: Option<PathBuf>,
    /// Compare every lane with this one: difference, effect size, wins, ties, losses, p. Stars are against it too.
    #[arg(help_heading = "Options of berds, coverage and trec", long, conflicts_with = "compare_to")]
    pub baseline: Option<String>,
    /// Compare every lane with a finished run: run:FILE, which becomes one more lane.
    #[arg(help_heading = "Options of berds, coverage and trec", long, value_name = "RUN")]
    pub compare_to: Option<Recipe>,
    /// Compare every two lanes.
    #[arg(help_heading = "Options of berds, coverage and trec", long)]
    pub all_pairs: bool,
    /// Exit with 1 if the mean of a lane is below a threshold: LANE:MEASURE>=NUMBER; repeat for more.
    #[arg(long, value_name = "THRESHOLD")]
    pub fail_under: Vec<String>,
    /// Exit with 0 even if a lane failed on some questions.
    #[arg(long)]
    pub allow_failed: bool,
    /// Compute pRecall as in the authors' notebook instead of the paper: a root with one query scores 0, and the first query of a
    /// root counts any gold passage of the root.
    #[arg(help_heading = "Options of pir", long)]
    pub pir_notebook: bool,
    /// How many passages per root query count in the shares of the sides.
    #[arg(help_heading = "Options of pir", long, value_name = "K", value_parser = clap::value_parser!(u16).range(1..=100), default_value_t = 1)]
    pub bias_k: u16,
    /// Of eval framing and ask.
    #[command(flatten)]
    pub framing: FramingArgs,
    /// Of eval edit.
    #[command(flatten)]
    pub edit: EditArgs,
    /// Skip a passage whose id equals the question's.
    #[arg(help_heading = "Options of trec", long)]
    pub ignore_identical_ids: bool,
    /// The order of finished runs.
    #[arg(long, value_enum, default_value_t)]
    pub ties: Ties,
    /// The output format.
    #[arg(long, value_enum, default_value_t)]
    pub format: TableFormat,
    /// Key points.
    #[command(flatten)]
    pub nuggets: Nuggets,
    /// Mixed lists.
    #[command(flatten)]
    pub mix: Mixing,
}

/// The options of `eval framing` and `eval ask`.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct FramingArgs {
    /// Measure on pairs of queries and passages in NevIR's format instead (JSONL: q1, q2, doc1, doc2); they bring their own passages.
    #[arg(help_heading = "Options of framing", long, value_name = "FILE")]
    pub pairs: Option<PathBuf>,
    /// Who asks in the wording `persona`. Default: a parent.
    #[arg(help_heading = "Options of framing", long, value_name = "PERSON")]
    pub persona: Option<String>,
    /// Up to how many wordings are asked. Default: 8.
    #[arg(help_heading = "Options of ask", long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=20))]
    pub times: Option<u8>,
    /// How the lists of the wordings become one: by reciprocal ranks (rrf), in turn (turns) or so that every wording is served (cover).
    /// Default: rrf.
    #[arg(help_heading = "Options of ask", long, value_name = "NAME", value_parser = ["rrf", "turns", "cover"])]
    pub by: Option<String>,
}

/// The options of `eval edit`.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct EditArgs {
    /// The edits, separated by commas: source-named, source-removed, casual, formal, shorter, longer, first-last, no-numbers, hedged, unhedged,
    /// rewritten (needs --llm or --replies). Default: all that a rule makes, and rewritten with --llm.
    #[arg(help_heading = "Options of edit", long, value_delimiter = ',', value_name = "NAMES")]
    pub edits: Vec<String>,
}

/// What `eval` measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Suite {
    /// Graded relevance, as in trec_eval (CSQE, Tables 3 to 7 and 10).
    Trec,
    /// MRecall, Prec and the sides covered (BERDS, Tables 3 and 4, Figure 2; with --tune Table 8). Tables 1, 2 and 7 are
    /// those of `questions info`, `corpus info` and `detect`.
    Berds,
    /// pRecall on tasks of PIR (--questions FILE or FOLDER, repeated for more), or on a labelled question set over a corpus
    /// (--corpus, --questions, --labels), asked once a statement. Default lanes of tasks: the built-in encoder under every
    /// projection, and BM25 (PIR, Tables 1 to 4 and 8, Figures 2 and 4; with @query=perspective Table 10).
    Pir,
    /// How well the perspective is found in the queries of PIR (--questions FILE): by rule, and by a language model (--llm URL;
    /// PIR, Table 6).
    Extract,
    /// How far down a list you must read until every statement is covered, up to rank 100 (BERDS, Tables 5 and 6).
    Coverage,
    /// Which side a lane favours, how unevenly it orders the sides, and whose passages it returns (PIR, Figures 3, 5 and 6; for AGNews' countries `eval pir --attribute country`).
    Bias,
    /// How far the results follow the wording of the question (BERDS, Figure 3).
    Sycophancy,
    /// How much the wording of a question decides: every lane asked neutrally, as either side, loaded, excluding, negated, as keywords and
    /// as a person; whether it reads a negation, also on pairs of NevIR (--pairs FILE).
    Framing,
    /// What asking n times buys: MRecall of the lists of n wordings against one deeper list at the same cost (+ask@n).
    Ask,
    /// What the words of a passage do to its rank: a source named or removed, tone, length, order, numbers, hedges, or a language model's words.
    Edit,
    /// What a reader concludes from the first k: the stance of each lane. For questions with passages and gold answers: whether a
    /// reader is right at each k (--reader PATH, --llm URL or --answers FILE; detrimental contexts, Tables 1 to 5
    /// and Figures 1 to 4 and 7; PIR, Table 5).
    Reader,
    /// Which key points each lane brings: supporting sentences are clustered into arguments, and the first k are measured by nugget
    /// recall. With --matching: how well such clusters agree with key points by hand, and the threshold that fits best.
    Nuggets,
    /// Which sides a reader's answer gives from the first k of every lane, which of them the list has, which it drops or adds, and how well
    /// its citations support it (--llm, or --answers with their passages).
    Answer,
    /// What a reader concludes from lists mixed of both sides, as the share of one side goes from 0 to 1, and where it tips: over a labelled
    /// question set (--llm, or the verdicts alone), or over RAMDocs (--questions FILE, with --reader, --llm or --answers).
    Mix,
}

/// The options of `eval nuggets`.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Nuggets {
    /// Measure by the key points of this file (JSONL, as --write writes it), edited by hand, instead of clusters.
    #[arg(help_heading = "Options of nuggets", long, value_name = "FILE")]
    pub key_points: Option<PathBuf>,
    /// A folder with sentences and the key points that they match, as IBM's shared task of 2021 has them: fit the threshold on the part
    /// `train`, and compare clusters with key points on `dev` and `test`.
    #[arg(help_heading = "Options of nuggets", long, value_name = "FOLDER", conflicts_with = "key_points")]
    pub matching: Option<PathBuf>,
}

/// The options of `eval mix`.
#[derive(Clone, Debug, clap::Args)]
pub struct Mixing {
    /// How many passages of either side together are in every list; the share of the first side goes from 0 of them to all.
    #[arg(help_heading = "Options of mix", long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u16).range(1..=50))]
    pub both: u16,
    /// How many passages that take no side are in every list: neutral ones, or noise.
    #[arg(help_heading = "Options of mix", long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=50))]
    pub noise: u16,
    /// The order of every list.
    #[arg(help_heading = "Options of mix", long, value_enum, default_value_t)]
    pub order: MixOrder,
    /// How often every list is read, each time in another order; with --order shuffled.
    #[arg(help_heading = "Options of mix", long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=50))]
    pub orders: u16,
    /// The most different passages of a side; they are repeated until there are enough. Without it no passage is repeated, and a question
    /// with too few is left out.
    #[arg(help_heading = "Options of mix", long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=50))]
    pub sources: Option<u16>,
}

/// The order of a mixed list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum MixOrder {
    /// Shuffled, several times.
    #[default]
    Shuffled,
    /// One of each kind in turn.
    Turns,
    /// The first side, then the second.
    First,
    /// The second side, then the first.
    Second,
}

/// Where the passages come from that are added to a gold passage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Negatives {
    /// The list that is read.
    List,
    /// BM25 with the question.
    Bm25,
    /// A seeded draw.
    Random,
}

impl Negatives {
    /// The name in tables, as it is typed.
    pub fn name(self) -> &'static str {
        match self {
            Negatives::List => "list",
            Negatives::Bm25 => "bm25",
            Negatives::Random => "random",
        }
    }
}

/// What else `eval reader` reads of every list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Analysis {
    /// The attention on every passage, and the list without those that have little of it.
    Attention,
    /// The list without each of its passages.
    Without,
    /// The list in ten other orders.
    Orders,
}

/// What an estimate is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Target {
    /// The mean of exactly these questions.
    #[default]
    These,
    /// The mean of the questions that these represent.
    Population,
}

impl From<Target> for crate::measure::ppi::Target {
    fn from(target: Target) -> Self {
        match target {
            Target::These => Self::These,
            Target::Population => Self::Population,
        }
    }
}

/// How tables are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum TableFormat {
    /// For people.
    #[default]
    Text,
    /// Markdown.
    Md,
    /// LaTeX, with booktabs.
    Latex,
    /// One line for each lane and measure.
    Tsv,
    /// One JSON object.
    Json,
    /// A self-contained page with plots.
    Html,
}

/// How ties in a run are broken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Ties {
    /// The order of the file.
    #[default]
    AsRead,
    /// By score, then by id, as in trec_eval.
    TrecEval,
}

/// The thresholds of `--fail-under`.
///
/// # Errors
/// One cannot be read.
pub fn thresholds(args: &Eval) -> anyhow::Result<Vec<Threshold>> {
    args.fail_under.iter().map(|text| text.parse()).collect()
}

/// Checks that every threshold names one of the rows, before anything is measured.
///
/// # Errors
/// A threshold names no row.
pub fn check_thresholds(args: &Eval, rows: impl IntoIterator<Item = String>) -> anyhow::Result<()> {
    let rows: Vec<String> = rows.into_iter().collect();
    for threshold in thresholds(args)? {
        threshold.row(&rows)?;
    }
    Ok(())
}

/// The options of each question set, with its name. Labels are given once for all sets, or once per set in the same order.
///
/// # Errors
/// There are several label files and not as many sets, two sets have one name, or the suite takes one set only.
pub fn each(common: &Common, args: &Eval) -> anyhow::Result<Vec<(String, Common)>> {
    let (sets, labels) = (&common.questions, &common.labels);
    if !args.sets.is_empty() {
        return each_of_sets(common, args);
    }
    if labels.len() > 1 && labels.len() != sets.len() {
        bail!(
            "{} question sets and {} label files: give --labels once for all sets, or once per set in the same order",
            sets.len(),
            labels.len()
        );
    }
    if sets.len() > 1
        && !matches!(args.suite, Suite::Pir | Suite::Extract)
        && (args.suite == Suite::Bias || args.write.is_some())
    {
        bail!(
            "only eval berds, trec, coverage, sycophancy and reader take several question sets, and only without --write; name one with --questions"
        );
    }
    // The tasks of PIR are one table.
    if matches!(args.suite, Suite::Pir | Suite::Extract) {
        return Ok(vec![(String::new(), common.clone())]);
    }
    let mut named: Vec<(String, Common)> = Vec::new();
    for (i, set) in sets.iter().enumerate() {
        let name = set_name(set);
        if named.iter().any(|(known, _)| *known == name) {
            bail!(
                "two question sets are called `{name}`: rename a file or its folder, so that the tables have different names"
            );
        }
        let labels = labels.get(if labels.len() > 1 { i } else { 0 });
        let own = Common {
            questions: vec![set.clone()],
            labels: labels.cloned().into_iter().collect(),
            ..common.clone()
        };
        named.push((name, own));
    }
    if named.is_empty() {
        named.push((String::new(), common.clone()));
    }
    Ok(named)
}

/// The options of each `--set`. Their names are their own, or, if two corpora have a set of one name, with the corpus's.
fn each_of_sets(common: &Common, args: &Eval) -> anyhow::Result<Vec<(String, Common)>> {
    if args.suite == Suite::Pir {
        bail!("--set is not for eval pir, whose tasks bring their passages; name them with --questions");
    }
    for (option, typed) in [
        ("--corpus", common.is_typed("corpus")),
        ("--questions", common.is_typed("questions")),
        ("--labels", common.is_typed("labels")),
    ] {
        if typed {
            bail!("{option} belongs inside each --set; leave it out");
        }
    }
    let mut named: Vec<(String, Common)> = Vec::new();
    for set in &args.sets {
        if (args.suite == Suite::Trec) != set.qrels.is_some() {
            bail!(
                "--set {}: eval trec needs qrels=FILE, and the other suites take labels=FILE instead",
                set.name
            );
        }
        let twice = args.sets.iter().filter(|other| other.name == set.name).count() > 1;
        let name = if twice { format!("{}/{}", set.corpus_name(), set.name) } else { set.name.clone() };
        if named.iter().any(|(known, _)| *known == name) {
            bail!("two sets are called `{name}`: give them different names, or different corpora");
        }
        let own = Common {
            corpus: set.corpus.clone(),
            questions: set.questions.iter().cloned().collect(),
            labels: set.labels.iter().cloned().collect(),
            ..common.clone()
        };
        own.check_judge()?;
        named.push((name, own));
    }
    Ok(named)
}

/// The seed of bootstrap intervals, paired tests and draws within one table. It is fixed, so that the same input always gives the
/// same table; `eval` has no `--seed`.
pub const RESAMPLING_SEED: u64 = 0;

/// The seed of a set's replicates. It differs between sets, so that their replicates are independent, and does not depend on where a set lies.
pub fn seed(common: &Common) -> u64 {
    let content = |set: &PathBuf| content_hash(set).unwrap_or_else(|_| set_name(set));
    hashed(&common.questions.first().map_or_else(String::new, content))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_and_a_switch_to_tune_are_read_or_refused_with_what_was_expected() {
        let set: SetOf = "name=kialo, corpus=wiki,questions=k.jsonl,labels=k.tsv:positives".parse().unwrap();
        assert_eq!((set.name.as_str(), set.corpus_name()), ("kialo", "wiki".into()));
        assert_eq!((set.labels.as_deref(), set.qrels), (Some("k.tsv:positives"), None));
        for text in ["corpus=wiki", "name=", "name=a,color=red", "name=a,labels"] {
            assert!(text.parse::<SetOf>().is_err(), "{text}");
        }
        let tune: Tune = "mmr=.5, .75".parse().unwrap();
        assert_eq!((tune.switch.as_str(), tune.values.len()), ("mmr", 2));
        for text in ["mmr", "mmr=", "mmr=2", "shuffle=.5", "pap=0"] {
            assert!(text.parse::<Tune>().is_err(), "{text}");
        }
    }
}
