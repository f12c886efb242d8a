//! Runs, and the TREC run file `qid Q0 docid rank score tag`.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::io::BufRead;

use super::{Problems, TrecError, each_line, quoted};

/// One passage of a ranking.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RankedPassage {
    /// The passage's id.
    pub id: String,
    /// The score as written; finite.
    pub score: f64,
    /// The rank as written, if the file has one.
    pub rank: Option<i64>,
    /// The number of its line, from 1; 0 if it does not come from a file.
    pub line: usize,
}

/// One question's ranking.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RankedQuestion {
    /// The question's id; its text if the file has no ids (BERDS).
    pub id: String,
    /// Its text, if the file has it (rank_llm, BERDS).
    pub text: Option<String>,
    /// Its perspectives, if the file has them (BERDS).
    pub perspectives: Vec<String>,
    /// The index of the supporting perspective, if the file names it.
    pub supports: Option<usize>,
    /// Best first.
    pub passages: Vec<RankedPassage>,
}

impl RankedQuestion {
    /// Passage ids in rank order.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.passages.iter().map(|passage| passage.id.as_str())
    }
}

/// The order of a run's passages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RunOrder {
    /// The file's own order, whatever the scores are. If the rank column and the order of the lines differ, the rank column counts.
    #[default]
    AsGiven,
    /// The order into which trec_eval sorts every run (`--ties trec-eval`): by score as a 32-bit float, descending, then by id in byte
    /// order, descending.
    TrecEval,
}

/// A retrieval run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    /// The tag, from the last column of the first line; empty for JSON files.
    pub tag: String,
    /// Whether the file holds texts of passages.
    pub texts: bool,
    pub(super) questions: Vec<RankedQuestion>,
    pub(super) places: HashMap<String, usize>,
    by_text: HashMap<String, usize>,
}

impl Run {
    /// Questions in the order of their first line.
    pub fn questions(&self) -> &[RankedQuestion] {
        &self.questions
    }

    /// One question's ranking.
    pub fn question(&self, id: &str) -> Option<&RankedQuestion> {
        self.places.get(id).map(|&place| &self.questions[place])
    }

    /// Finds the place of a question among [`Run::questions`]: by its id, else by its words, ignoring case and spacing.
    pub fn place(&self, id: Option<&str>, text: &str) -> Option<usize> {
        let by_id = id.and_then(|id| self.places.get(id));
        by_id.or_else(|| self.by_text.get(&folded(text))).copied()
    }

    /// Indexes the questions by their words; of equal ones, the first.
    pub(super) fn index_texts(&mut self) {
        for (place, question) in self.questions.iter().enumerate() {
            if let Some(text) = &question.text {
                self.by_text.entry(folded(text)).or_insert(place);
            }
        }
    }
}

/// Normalises case and spacing.
pub(super) fn folded(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

/// Reads `qid Q0 docid rank score tag`; questions may interleave.
///
/// # Errors
/// Lines without six columns, ranks and scores that are not numbers, and a passage listed twice for a
/// question.
pub fn read_run(file: &str, reader: impl BufRead, order: RunOrder) -> Result<Run, TrecError> {
    read_run_top(file, reader, order, usize::MAX)
}

/// [`read_run`], but keeps only each question's first `depth` passages. The others are dropped early, so that a passage that is repeated
/// among them may not be reported.
///
/// # Errors
/// As for [`read_run`].
pub fn read_run_top(
    file: &str,
    reader: impl BufRead,
    order: RunOrder,
    depth: usize,
) -> Result<Run, TrecError> {
    let mut problems = Problems::of(file);
    let mut building = RunBuilder::new(order, depth);
    each_line(reader, &mut problems, |problems, number, line| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let [question, _, id, rank, score, tag] = columns[..] else {
            let found = format!("{} in {}", columns_found(columns.len()), quoted(line));
            problems.report(number, "6 columns (qid Q0 docid rank score tag)", found);
            return;
        };
        let Ok(rank) = rank.parse() else {
            problems.report(number, "a whole number as rank (column 4)", quoted(rank));
            return;
        };
        let Some(score) = finite(score) else {
            problems.report(number, "a number as score (column 5)", quoted(score));
            return;
        };
        building.tag(tag);
        let place = building.place_of(question);
        building.add(problems, place, RankedPassage { line: number, rank: Some(rank), id: id.into(), score });
    })?;
    problems.finish(building.finish())
}

pub(super) fn columns_found(count: usize) -> String {
    match count {
        1 => "1 column".to_owned(),
        count => format!("{count} columns"),
    }
}

pub(super) fn finite(text: &str) -> Option<f64> {
    text.parse().ok().filter(|score: &f64| score.is_finite())
}

/// Builds a run line by line.
pub(super) struct RunBuilder {
    run: Run,
    order: RunOrder,
    depth: usize,
    /// The line of every passage held, by question.
    seen: Vec<HashMap<String, usize>>,
}

impl RunBuilder {
    /// Starts a run that keeps the first `depth` passages of each question.
    pub fn new(order: RunOrder, depth: usize) -> Self {
        RunBuilder { run: Run::default(), order, depth, seen: Vec::new() }
    }

    /// Takes the first tag for the run.
    pub fn tag(&mut self, tag: &str) {
        if self.run.tag.is_empty() {
            self.run.tag = tag.to_owned();
        }
    }

    /// Notes that the file holds texts of passages.
    pub fn has_texts(&mut self) {
        self.run.texts = true;
    }

    /// The place of a question, which is added if it is new.
    pub fn place_of(&mut self, question: &str) -> usize {
        if let Some(&place) = self.run.places.get(question) {
            return place;
        }
        let place = self.run.questions.len();
        self.run.places.insert(question.to_owned(), place);
        self.run.questions.push(RankedQuestion { id: question.to_owned(), ..RankedQuestion::default() });
        self.seen.push(HashMap::new());
        place
    }

    /// Sets a question's text and perspectives.
    pub fn describe(&mut self, place: usize, text: &str, perspectives: Vec<String>, supports: Option<usize>) {
        let question = &mut self.run.questions[place];
        (question.text, question.perspectives) = (Some(text.to_owned()), perspectives);
        question.supports = supports;
    }

    /// Adds the next passage of a question.
    pub fn add(&mut self, problems: &mut Problems, place: usize, passage: RankedPassage) {
        if let Some(&first) = self.seen[place].get(&passage.id) {
            let what = format!("passage of question {}", quoted(&self.run.questions[place].id));
            problems.report_repeated(passage.line, &what, &passage.id, first);
            return;
        }
        self.seen[place].insert(passage.id.clone(), passage.line);
        self.run.questions[place].passages.push(passage);
        if self.run.questions[place].passages.len() >= self.depth.saturating_mul(2) {
            self.settle(place);
        }
    }

    /// Puts a question's passages in order and drops those below the depth.
    fn settle(&mut self, place: usize) {
        let passages = &mut self.run.questions[place].passages;
        match self.order {
            RunOrder::AsGiven => follow_ranks(passages),
            RunOrder::TrecEval => passages.sort_by(|one, other| {
                // Scores are finite, so they always compare; `total_cmp` would distinguish 0 from −0.
                (other.score as f32)
                    .partial_cmp(&(one.score as f32))
                    .unwrap_or(Ordering::Equal)
                    .then_with(|| other.id.cmp(&one.id))
            }),
        }
        for below in passages.drain(self.depth.min(passages.len())..) {
            self.seen[place].remove(&below.id);
        }
    }

    /// Sorts and returns the run.
    pub fn finish(mut self) -> Run {
        for place in 0..self.run.questions.len() {
            self.settle(place);
        }
        self.run.index_texts();
        self.run
    }
}

/// Sorts by rank. The sort is stable, so a column of equal ranks (some tools write only 0) keeps the order of the lines.
fn follow_ranks(passages: &mut [RankedPassage]) {
    if passages.iter().all(|passage| passage.rank.is_some()) {
        passages.sort_by_key(|passage| passage.rank);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, order: RunOrder) -> Run {
        read_run("r.trec", text.as_bytes(), order).unwrap()
    }

    fn ids(run: &Run, question: &str) -> Vec<String> {
        run.question(question).unwrap().ids().map(str::to_owned).collect()
    }

    fn message(text: &str) -> String {
        read_run("r.trec", text.as_bytes(), RunOrder::AsGiven).unwrap_err().to_string()
    }

    #[test]
    fn a_run_keeps_its_own_order_whatever_the_scores() {
        let text = "q1 Q0 b 1 1.0 t\nq1 Q0 a 2 9.0 t\nq1 Q0 c 3 9.0 t\n";
        assert_eq!(ids(&read(text, RunOrder::AsGiven), "q1"), ["b", "a", "c"]);
    }

    #[test]
    fn trec_evals_order_is_score_then_id_both_descending() {
        let text = "q1 Q0 b 1 1.0 t\nq1 Q0 a 2 9.0 t\nq1 Q0 c 3 9.0 t\n";
        assert_eq!(ids(&read(text, RunOrder::TrecEval), "q1"), ["c", "a", "b"]);
    }

    #[test]
    fn scores_a_32_bit_float_cannot_distinguish_are_ties() {
        let text = "q Q0 a 1 0.100000001 t\nq Q0 b 2 0.1 t\nq Q0 c 3 0 t\nq Q0 d 4 -0.0 t\n";
        assert_eq!(ids(&read(text, RunOrder::TrecEval), "q"), ["b", "a", "d", "c"]);
    }

    #[test]
    fn the_rank_column_decides_where_lines_are_out_of_order() {
        let text = "q Q0 a 2 5 t\nq Q0 b 1 6 t\n";
        assert_eq!(ids(&read(text, RunOrder::AsGiven), "q"), ["b", "a"]);
        let constant = "q Q0 a 0 5 t\nq Q0 b 0 6 t\n";
        assert_eq!(ids(&read(constant, RunOrder::AsGiven), "q"), ["a", "b"]);
    }

    #[test]
    fn questions_may_interleave_and_the_first_tag_names_the_run() {
        let run = read("q1\tQ0\ta\t1\t3\tx\nq2 Q0 a 1 3 x\nq1 Q0 b 2 2 x\n", RunOrder::AsGiven);
        assert_eq!(run.tag, "x");
        assert_eq!(ids(&run, "q1"), ["a", "b"]);
        let order: Vec<_> = run.questions().iter().map(|q| q.id.as_str()).collect();
        assert_eq!(order, ["q1", "q2"]);
        assert!(run.question("q3").is_none());
    }

    #[test]
    fn every_bad_line_is_reported_with_its_number() {
        let text = "q Q0 a 1 3 t\nq Q0 b 2 2\nq Q0 c x 1 t\nq Q0 d 4 NaN t\nq Q0 a 5 0 t\n";
        assert_eq!(
            message(text),
            "r.trec:2: expected 6 columns (qid Q0 docid rank score tag), found 5 columns in `q Q0 b 2 2`\n\
         r.trec:3: expected a whole number as rank (column 4), found `x`\n\
         r.trec:4: expected a number as score (column 5), found `NaN`\n\
         r.trec:5: expected one line for each passage of question `q`, found `a` again (first on line 1)"
        );
    }

    #[test]
    fn only_the_first_ranks_are_kept_wherever_they_stand_and_their_repeats_are_reported() {
        let line = |i: i64| format!("q Q0 d{i} {i} {} t\n", -i);
        let text: String = (1..=50).rev().map(line).collect();
        for order in [RunOrder::AsGiven, RunOrder::TrecEval] {
            let run = read_run_top("r", text.as_bytes(), order, 3).unwrap();
            assert_eq!(ids(&run, "q"), ["d1", "d2", "d3"]);
            assert_eq!(run.questions()[0].passages[0].line, 50);
        }
        let repeated = format!("{}{}", line(1), line(1));
        assert!(read_run_top("r", repeated.as_bytes(), RunOrder::AsGiven, 1).is_err());
    }

    #[test]
    fn an_empty_file_is_a_run_without_questions() {
        assert!(read("\n", RunOrder::AsGiven).questions().is_empty());
    }
}
