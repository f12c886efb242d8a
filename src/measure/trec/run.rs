//! A run: for each question the passages a retriever returned, in order.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::io::BufRead;

use super::lines::{Problems, TrecError, each_line, quoted};

/// One passage of a ranking.
#[derive(Clone, Debug, PartialEq)]
pub struct RankedPassage {
    /// The passage's id.
    pub id: String,
    /// The score as written; finite.
    pub score: f64,
}

/// One question's ranking.
#[derive(Clone, Debug, PartialEq)]
pub struct RankedQuestion {
    /// The question's id.
    pub id: String,
    /// Its text, where the file has it (rank_llm).
    pub text: Option<String>,
    /// Best first.
    pub passages: Vec<RankedPassage>,
}

impl RankedQuestion {
    /// Passage ids in rank order.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.passages.iter().map(|passage| passage.id.as_str())
    }
}

/// Which order a run's passages are taken in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RunOrder {
    /// The file's own order, whatever the scores say. Where the rank column contradicts the order of the
    /// lines, the rank column is the run's word.
    #[default]
    AsGiven,
    /// As trec_eval re-sorts every run (`--ties trec-eval`): score descending as a 32-bit float, then id
    /// descending in byte order.
    TrecEval,
}

/// A retrieval run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    /// The last column of its first line; empty for rank_llm files, which have none.
    pub tag: String,
    questions: Vec<RankedQuestion>,
    places: HashMap<String, usize>,
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
}

/// Reads `qid Q0 docid rank score tag`; questions may interleave.
///
/// # Errors
/// Lines without six columns, ranks and scores that are not numbers, and a passage listed twice for a
/// question.
pub fn read_run(file: &str, reader: impl BufRead, order: RunOrder) -> Result<Run, TrecError> {
    let mut problems = Problems::of(file);
    let mut building = RunBuilder::default();
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
        if building.run.tag.is_empty() {
            building.run.tag = tag.to_owned();
        }
        let place = building.place_of(question);
        let entry = Entry { line: number, rank: Some(rank), id: id.to_owned(), score };
        building.add(problems, place, entry);
    })?;
    problems.finish(building.finish(order))
}

pub(super) fn columns_found(count: usize) -> String {
    match count {
        1 => "1 column".to_owned(),
        count => format!("{count} columns"),
    }
}

fn finite(text: &str) -> Option<f64> {
    text.parse().ok().filter(|score: &f64| score.is_finite())
}

/// One passage as it stood in a file.
pub(super) struct Entry {
    pub line: usize,
    pub rank: Option<i64>,
    pub id: String,
    pub score: f64,
}

/// A run being read, with what is needed only until its order is settled.
#[derive(Default)]
pub(super) struct RunBuilder {
    run: Run,
    ranks: Vec<Vec<Option<i64>>>,
    seen: Vec<HashMap<String, usize>>,
}

impl RunBuilder {
    /// The place of a question, made at its first mention.
    pub fn place_of(&mut self, question: &str) -> usize {
        if let Some(&place) = self.run.places.get(question) {
            return place;
        }
        let place = self.run.questions.len();
        self.run.places.insert(question.to_owned(), place);
        self.run.questions.push(RankedQuestion { id: question.to_owned(), text: None, passages: Vec::new() });
        self.ranks.push(Vec::new());
        self.seen.push(HashMap::new());
        place
    }

    pub fn set_text(&mut self, place: usize, text: &str) {
        self.run.questions[place].text = Some(text.to_owned());
    }

    pub fn add(&mut self, problems: &mut Problems, place: usize, entry: Entry) {
        if let Some(&first) = self.seen[place].get(&entry.id) {
            let what = format!("passage of question {}", quoted(&self.run.questions[place].id));
            problems.report_repeated(entry.line, &what, &entry.id, first);
            return;
        }
        self.seen[place].insert(entry.id.clone(), entry.line);
        self.ranks[place].push(entry.rank);
        self.run.questions[place].passages.push(RankedPassage { id: entry.id, score: entry.score });
    }

    pub fn finish(mut self, order: RunOrder) -> Run {
        for (question, ranks) in self.run.questions.iter_mut().zip(&self.ranks) {
            match order {
                RunOrder::AsGiven => follow_ranks(&mut question.passages, ranks),
                RunOrder::TrecEval => question.passages.sort_by(|one, other| {
                    // Scores are finite, so they always compare; `total_cmp` would part 0 from −0.
                    (other.score as f32)
                        .partial_cmp(&(one.score as f32))
                        .unwrap_or(Ordering::Equal)
                        .then_with(|| other.id.cmp(&one.id))
                }),
            }
        }
        self.run
    }
}

/// Stable, so that a column of equal ranks (some tools write only 0) leaves the lines as they are.
fn follow_ranks(passages: &mut Vec<RankedPassage>, ranks: &[Option<i64>]) {
    if ranks.is_sorted() || ranks.contains(&None) {
        return;
    }
    let mut ranked: Vec<_> = ranks.iter().zip(std::mem::take(passages)).collect();
    ranked.sort_by_key(|&(rank, _)| rank);
    passages.extend(ranked.into_iter().map(|(_, passage)| passage));
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
    fn scores_a_32_bit_float_cannot_tell_apart_are_ties() {
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
    fn every_bad_line_is_told_with_its_number() {
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
    fn an_empty_file_is_a_run_without_questions() {
        assert!(read("\n", RunOrder::AsGiven).questions().is_empty());
    }
}
