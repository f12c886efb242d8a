//! From a question to rankings, judgments and figures: the explorer and the commands are its clients.
//!
//! [`Setup`] holds the open corpus, indices and models. [`Query`] is a question with its lanes. [`rank()`] makes a lane's list and its
//! [`Trace`], [`Run`] the judgments, [`Figures`] the measures, and [`explain()`] says why a passage has its rank.
//! [`Engine`] runs queries for the explorer on threads of its own.
//!
//! May use: everything below it in the layers of ARCHITECTURE.md; nothing of `report`, `cli` and `tui`.

pub mod answer;
mod compare;
pub mod detectors;
pub mod edit;
mod explain;
mod figures;
pub mod framing;
mod judge;
mod judgments;
mod learned;
mod list;
pub mod nuggets;
mod opening;
mod parts;
pub(crate) mod pir;
mod rank;
pub mod recipe;
mod retrieved;
mod run;
mod run_files;
mod setup;
pub mod sycophancy;
mod threads;
mod wording;

pub use compare::{
    Compared, EXAMPLE, Expected, FieldError, Sources, Uneven, category, compare, covered_sides, desired,
    sources_over_k,
};
pub use explain::{Explanation, Share, StanceTimeline, explain};
pub use figures::{Change, Doubt, Figures, FirstRank, Gap, Named, pooled, shares_of};
pub use framing::{FramedList, Framing};
pub use judge::{Judged, MANY, Shares};
pub use judgments::Judgments;
pub use learned::SparseMatch;
pub use list::{
    LaneError, List, Lists, Point, Probed, Projected, Ranked, Ranking, Step, Stood, Trace, Wording,
};
pub use opening::{MODELS, Opening, SetupError, detector, model_threads, readers};
pub use parts::sample_key;
pub use query::{Depth, LaneQuery, Query};
pub use rank::rank;
pub use recipe::Recipe;
pub use run::{Event, Lane, Outcome, Plain, Run, lane, rank_lanes, run};
pub use run_files::{Located, RunError, RunFiles};
pub use setup::{Setup, index_terms};
pub use sycophancy::{Sweep, Sycophancy, Tally, sweep, sycophancy};
pub use threads::{
    AnnotationState, AnswerEvent, Batch, Drawn, Engine, Labelling, LabelsChanged, Opened, PointsEvent, Reach,
    ReadEvent, ReadList, Reply, SendReply, SetLabel, SetTo, Shelved, Study, Turn, Want, Written,
};

mod query {
    //! The queries that the engine runs.

    use super::recipe::Recipe;
    use crate::detect::LabelSource;
    use crate::question::Question;

    /// One question, the lanes that search for it, and how many passages count.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Query {
        /// The question with its statements.
        pub question: Question,
        /// The lanes, left to right.
        pub lanes: Vec<Recipe>,
        /// How many passages count.
        pub k: usize,
        /// Which labels count. How deep the lists are judged depends on it.
        pub source: LabelSource,
    }

    impl Query {
        /// The number of passages in a list, whatever `k` is.
        pub const DEPTH: usize = 100;
    }

    /// How deep the lists are judged.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Depth {
        /// The first k.
        Top,
        /// Until every statement is covered or the list ends. Questions with many statements are judged to k only.
        Covered,
        /// Until every statement is covered or the list ends, however many statements a question has.
        CoveredWhatever,
        /// The first so many, at least k.
        To(usize),
    }

    /// A question in one of its wordings, as a lane is asked.
    #[derive(Clone, Copy, Debug)]
    pub struct LaneQuery<'a> {
        /// The question; projections and diversifiers read its statements.
        pub question: &'a Question,
        /// The text to search for: the question's own, or one of its statements.
        pub text: &'a str,
    }

    impl<'a> LaneQuery<'a> {
        /// The question in its own words.
        pub fn neutral(question: &'a Question) -> Self {
            LaneQuery { question, text: &question.text }
        }
    }
}

pub(crate) mod pir_hub {
    //! Reads a PIR task as the hub has it: a folder with `corpus.jsonl`, `queries.jsonl` and `qrels/test.jsonl`, or `qrels.jsonl`.
    //!
    //! A query is `{_id, text, meta}`. `meta` is a string that holds JSON: `src_query`, the query without its perspective, and
    //! `perspective`. The files do not say which side a perspective takes; its words do. A labelled question set is a task too.

    use std::collections::HashMap;
    use std::path::{Path, PathBuf};

    use serde::Deserialize;

    use super::Setup;
    use crate::corpus::source::{CorpusFormat, Source, Wanted};
    use crate::detect::Labels;
    use crate::input::{self, InputError};
    use crate::measure::trec::{TrecError, read_jsonl_qrels};
    use crate::question::Question;
    use crate::question::pir::{NO_SIDE, Row, Task};

    #[derive(Deserialize)]
    struct Query {
        #[serde(rename = "_id", alias = "id")]
        id: String,
        text: String,
        meta: String,
    }

    #[derive(Deserialize)]
    struct Meta {
        src_query: String,
        #[serde(default)]
        perspective: Option<String>,
        /// The side that the perspective takes, if the file says it.
        #[serde(default)]
        label: Option<String>,
    }

    /// Why a task cannot be read.
    #[derive(Debug, thiserror::Error)]
    pub enum HubTaskError {
        /// A file is missing.
        #[error("{}: expected {name}.jsonl there, as PIR's tasks lie on the hub", folder.display())]
        Missing {
            /// The task's folder.
            folder: PathBuf,
            /// The file, without its extension.
            name: String,
        },
        /// A judgment names a query or passage that does not exist.
        #[error("{file}: expected {expected}, found {found}")]
        Unknown {
            /// The file of judgments.
            file: String,
            /// What was expected.
            expected: &'static str,
            /// The name that was found.
            found: String,
        },
        /// The passages or queries cannot be read.
        #[error(transparent)]
        Input(#[from] InputError),
        /// The judgments cannot be read.
        #[error(transparent)]
        Judgments(#[from] TrecError),
    }

    /// Reads one task.
    ///
    /// # Errors
    /// A file is missing or has a bad line, or a judgment names a query or passage that does not exist.
    pub fn read(folder: &Path) -> Result<Task, HubTaskError> {
        let (mut corpus, mut places) = (Vec::new(), HashMap::new());
        let wanted = Wanted { format: Some(CorpusFormat::Jsonl), ..Wanted::default() };
        Source::wanted(&file(folder, "corpus")?, wanted)?.read(0, &mut |_, passage| {
            places.insert(passage.id.clone(), corpus.len());
            corpus.push(passage.contents());
            Ok(())
        })?;
        let (mut rows, mut queries) = (Vec::new(), HashMap::new());
        input::lines(&file(folder, "queries")?, |_, line| {
            let query: Query = serde_json::from_str(line)
                .map_err(|error| format!("a JSON object with `_id`, `text` and `meta` ({error})"))?;
            let meta: Meta = serde_json::from_str(&query.meta)
                .map_err(|error| format!("`meta` to be JSON with `src_query` and `perspective` ({error})"))?;
            if queries.insert(query.id.clone(), rows.len()).is_some() {
                return Err(format!("an `_id` of its own (`{}` stood on an earlier line)", query.id).into());
            }
            let perspective = meta.perspective.filter(|text| !text.trim().is_empty());
            let by_words = || perspective.as_deref().map_or(NO_SIDE, side).to_owned();
            let label = meta.label.filter(|label| !label.trim().is_empty()).unwrap_or_else(by_words);
            let (query, root) = (query.text, meta.src_query);
            rows.push(Row { query, root, perspective, label, gold: Vec::new() });
            Ok(())
        })?;
        let qrels = match file(folder, "qrels/test") {
            Ok(path) => path,
            Err(_) => file(folder, "qrels")?,
        };
        let name = qrels.display().to_string();
        for (question, judged) in read_jsonl_qrels(&name, input::open(&qrels)?)?.questions() {
            let Some(row) = queries.get(question) else {
                let (file, found) = (name, input::excerpt(question));
                return Err(HubTaskError::Unknown { file, expected: "a query of queries.jsonl", found });
            };
            for (passage, _) in judged.iter().filter(|(_, grade)| **grade > 0) {
                let place = places.get(passage).ok_or_else(|| {
                    let (file, found) = (name.clone(), input::excerpt(passage));
                    HubTaskError::Unknown { file, expected: "a passage of corpus.jsonl", found }
                })?;
                rows[*row].gold.push(*place);
            }
        }
        let name = folder.canonicalize().unwrap_or_else(|_| folder.into());
        let name = name.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Task { name, corpus, rows })
    }

    /// A labelled question set as a task: every question is a root, and each of its statements a query from that side.
    pub fn labelled(setup: &Setup, labels: &Labels) -> Task {
        let mut gold: HashMap<&str, Vec<usize>> = HashMap::new();
        for (statement, id) in labels.positives() {
            if let Some(at) = setup.corpus.find(id) {
                gold.entry(statement).or_default().push(at.0 as usize);
            }
        }
        let row = |(question, at): (&Question, usize)| {
            let query = question.perspectives[at].clone();
            let label = match question.sides() {
                Some([first, _]) if at == first => "support".to_owned(),
                Some(_) => "oppose".to_owned(),
                None => (at + 1).to_string(),
            };
            let gold = gold.get(query.as_str()).cloned().unwrap_or_default();
            Row { perspective: Some(query.clone()), query, root: question.text.clone(), label, gold }
        };
        let asked =
            setup.questions.iter().flat_map(|one| (0..one.perspectives.len()).map(move |at| (one, at)));
        Task { name: setup.corpus.name.clone(), corpus: Vec::new(), rows: asked.map(row).collect() }
    }

    /// The side that a perspective takes, by its words: those of PIR's templates.
    fn side(perspective: &str) -> &'static str {
        let lower = perspective.to_lowercase();
        let words = || lower.split(|c: char| !c.is_alphanumeric());
        let begins = |starts: &[&str]| words().any(|word| starts.iter().any(|start| word.starts_with(start)));
        let is = |names: &[&str]| words().any(|word| names.contains(&word));
        match () {
            () if begins(&["oppos", "undermin"]) => "undermine",
            () if begins(&["refut", "contradict"]) => "refute",
            () if begins(&["support"]) => "support",
            () if is(&["left"]) => "left",
            () if is(&["right"]) => "right",
            () if is(&["center", "centre"]) => "center",
            () => NO_SIDE,
        }
    }

    /// Finds the file of that name, plain or compressed.
    fn file(folder: &Path, name: &str) -> Result<PathBuf, HubTaskError> {
        let names = ["", ".gz", ".zst"].map(|ending| folder.join(format!("{name}.jsonl{ending}")));
        let found = names.into_iter().find(|path| path.is_file());
        found.ok_or_else(|| HubTaskError::Missing { folder: folder.into(), name: name.to_owned() })
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn the_words_of_a_perspective_say_which_side_it_takes() {
            for (perspective, expected) in [
                ("a claim that opposes the argument", "undermine"),
                ("a claim that supports the argument", "support"),
                ("a claim that relates to the argument", "general"),
                ("claim that this sentence refutes", "refute"),
                ("a news article biased towards: left", "left"),
                ("a news article biased towards: right", "right"),
                ("a news article biased towards: center", "center"),
                ("a news article relates to Human rights issues", "general"),
            ] {
                assert_eq!(side(perspective), expected, "{perspective}");
            }
        }
    }
}
