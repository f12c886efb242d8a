//! Reads and writes TREC files: runs and judgments.
//!
//! Readers take a name for messages and any [`std::io::BufRead`], so the caller opens and decompresses files. If a file has bad lines,
//! nothing of it is used: all bad lines are counted, and the first [`SHOWN`] are reported.
//!
//! | file | holds |
//! | --- | --- |
//! | `mod` | lines, errors as `FILE:LINE: expected …, found …`, and what writes runs and both kinds of qrels |
//! | [`run`] | a run in memory, its order, and `qid Q0 docid rank score tag` |
//! | [`rank_llm`] | the JSON runs of rank_llm and BERDS |
//! | [`qrels`] | graded qrels (TREC, BEIR, PIR), and judgments per perspective |
//!
//! May use: input, and the support sets of `measure`.

use std::fmt::Display;
use std::io::{BufRead, Read, Write};
use std::{fmt, io};

use thiserror::Error;

pub mod qrels;
pub mod rank_llm;
pub mod run;

pub use qrels::{
    Absent, DiversityQrels, Qrels, diversity_line, grade, read_beir_qrels, read_diversity_qrels,
    read_jsonl_qrels, read_qrels,
};
pub use rank_llm::{RunPassage, is_text_id, read_json_run, read_rank_llm, text_id};
pub use run::{RankedPassage, RankedQuestion, Run, RunOrder, read_run, read_run_top};

/// The number of bad lines that are listed; the rest are counted.
pub const SHOWN: usize = 20;

/// The most characters of a file that a message quotes.
const QUOTED: usize = 60;
/// The most bytes of a line.
const LONGEST: usize = 64 << 20;

/// One bad line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineError {
    /// The file as the user named it.
    pub file: String,
    /// The line's number, from 1.
    pub line: usize,
    /// What was expected.
    pub expected: String,
    /// What was found.
    pub found: String,
}

impl Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, expected, found } = self;
        write!(f, "{file}:{line}: expected {expected}, found {found}")
    }
}

/// The bad lines of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineErrors {
    /// The first [`SHOWN`], in file order.
    pub first: Vec<LineError>,
    /// The number of all bad lines.
    pub total: usize,
}

impl Display for LineErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.first.iter().enumerate() {
            let line_break = if index == 0 { "" } else { "\n" };
            write!(f, "{line_break}{error}")?;
        }
        match self.total - self.first.len() {
            0 => Ok(()),
            more => write!(f, "\n… and {more} more"),
        }
    }
}

/// Why a file was not read.
#[derive(Debug, Error)]
pub enum TrecError {
    /// The file cannot be read.
    #[error("{file}: {source}")]
    Io {
        /// The file as the user named it.
        file: String,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The file has bad lines.
    #[error("{0}")]
    Lines(LineErrors),
}

/// Collects the bad lines of one file.
struct Problems {
    file: String,
    first: Vec<LineError>,
    total: usize,
}

impl Problems {
    pub fn of(file: &str) -> Self {
        Self { file: file.to_owned(), first: Vec::new(), total: 0 }
    }

    pub fn report(&mut self, line: usize, expected: impl Into<String>, found: impl Into<String>) {
        self.total += 1;
        if self.first.len() < SHOWN {
            self.first.push(LineError {
                file: self.file.clone(),
                line,
                expected: expected.into(),
                found: found.into(),
            });
        }
    }

    /// Reports a line that repeats an earlier one.
    pub fn report_repeated(&mut self, line: usize, what: &str, id: &str, first: usize) {
        let found = format!("{} again (first on line {first})", quoted(id));
        self.report(line, format!("one line for each {what}"), found);
    }

    pub fn finish<T>(self, value: T) -> Result<T, TrecError> {
        if self.total == 0 {
            return Ok(value);
        }
        Err(TrecError::Lines(LineErrors { first: self.first, total: self.total }))
    }
}

/// Quotes a piece of a file for a message: in backticks, short, with control characters made visible.
fn quoted(text: &str) -> String {
    let mut shown = String::from("`");
    for (index, character) in text.chars().enumerate() {
        if index == QUOTED {
            shown.push('…');
            break;
        }
        if character.is_control() {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    shown.push('`');
    shown
}

/// Calls `take` with the number and text of every line that is not blank, without its line ending.
///
/// A line that is not UTF-8 is reported and skipped. A byte-order mark at the start is dropped.
fn each_line(
    mut reader: impl BufRead,
    problems: &mut Problems,
    mut take: impl FnMut(&mut Problems, usize, &str),
) -> Result<(), TrecError> {
    let mut bytes = Vec::new();
    for number in 1.. {
        bytes.clear();
        // A line this long means that the file is not a table: stop reading.
        let read = Read::by_ref(&mut reader)
            .take(LONGEST as u64 + 1)
            .read_until(b'\n', &mut bytes)
            .map_err(|source| TrecError::Io { file: problems.file.clone(), source })?;
        if read == 0 {
            break;
        }
        if read > LONGEST {
            problems.report(number, format!("a line of at most {} MB", LONGEST >> 20), "a longer one");
            break;
        }
        match std::str::from_utf8(&bytes) {
            Ok(line) => {
                let line = line.trim_end_matches(['\n', '\r']);
                let line = match number {
                    1 => line.strip_prefix('\u{feff}').unwrap_or(line),
                    _ => line,
                };
                if !line.trim().is_empty() {
                    take(problems, number, line);
                }
            }
            Err(error) => {
                let place = error.valid_up_to() + 1;
                problems.report(number, "UTF-8 text", format!("other bytes at byte {place}"));
            }
        }
    }
    Ok(())
}

// Scores fall strictly. Perspectives have their own qrels file, because two tools keep only the last line of a (question, passage) pair.
/// Writes rankings as `qid Q0 docid rank score tag`, ranks from 1.
///
/// The order stays as it is: a score that does not fall is lowered to the next 32-bit float below the one before it, because trec_eval
/// reads 32 bits and would sort ties in its own way.
///
/// # Errors
/// The writer fails; an id or tag is empty or has white space, which would shift the columns; or 32 bits cannot hold a score.
pub fn write_run<'a>(
    out: &mut impl Write,
    tag: &str,
    rankings: impl IntoIterator<Item = (&'a str, &'a [RankedPassage])>,
) -> io::Result<()> {
    let tag = column(tag)?;
    for (question, passages) in rankings {
        let question = column(question)?;
        let mut above = f32::INFINITY;
        for (index, passage) in passages.iter().enumerate() {
            let own = passage.score as f32;
            let score = if own < above { own } else { above.next_down() };
            if !own.is_finite() || !score.is_finite() {
                let found = passage.score;
                return Err(refused(format!("expected a 32-bit score, found {found}")));
            }
            above = score;
            let (id, rank) = (column(&passage.id)?, index + 1);
            writeln!(out, "{question} Q0 {id} {rank} {score} {tag}")?;
        }
    }
    Ok(())
}

/// Writes `NAME.qrels`: `qid 0 docid grade`.
///
/// # Errors
/// As for [`write_run`].
pub fn write_qrels(out: &mut impl Write, qrels: &Qrels) -> io::Result<()> {
    for (question, judged) in qrels.questions() {
        let question = column(question)?;
        for (passage, grade) in judged {
            writeln!(out, "{question} 0 {} {grade}", column(passage)?)?;
        }
    }
    Ok(())
}

/// Writes `NAME.div.qrels`: `qid perspective docid grade`, the perspective counted from 1.
///
/// # Errors
/// As for [`write_run`].
pub fn write_diversity_qrels(out: &mut impl Write, qrels: &DiversityQrels) -> io::Result<()> {
    for question in qrels.questions() {
        let name = column(question)?;
        for (passage, perspective, grade) in qrels.judgments(question) {
            let (number, passage) = (perspective + 1, column(passage)?);
            writeln!(out, "{name} {number} {passage} {grade}")?;
        }
    }
    Ok(())
}

fn column(text: &str) -> io::Result<&str> {
    if text.is_empty() || text.contains(char::is_whitespace) {
        return Err(refused(format!(
            "a TREC file cannot carry `{text}`: expected an id or tag without white space"
        )));
    }
    Ok(text)
}

fn refused(reason: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_of(bytes: &[u8]) -> (Vec<(usize, String)>, Problems) {
        let mut problems = Problems::of("f");
        let mut lines = Vec::new();
        each_line(bytes, &mut problems, |_, number, line| {
            lines.push((number, line.to_owned()));
        })
        .unwrap();
        (lines, problems)
    }

    #[test]
    fn line_endings_marks_and_blank_lines_are_not_content() {
        let (lines, _) = lines_of("\u{feff}a\r\n\r\n  \nb".as_bytes());
        assert_eq!(lines, [(1, "a".to_owned()), (4, "b".to_owned())]);
    }

    #[test]
    fn a_line_that_is_not_utf_8_is_reported_and_the_next_is_still_read() {
        let (lines, problems) = lines_of(b"ok\nb\xffd\nok\n");
        assert_eq!(lines.len(), 2);
        assert_eq!(
            problems.finish(()).unwrap_err().to_string(),
            "f:2: expected UTF-8 text, found other bytes at byte 2"
        );
    }

    #[test]
    fn twenty_are_listed_and_the_rest_counted() {
        let mut problems = Problems::of("f");
        for line in 1..=23 {
            problems.report(line, "x", "y");
        }
        let text = problems.finish(()).unwrap_err().to_string();
        assert_eq!(text.lines().count(), 21);
        assert!(text.ends_with("f:20: expected x, found y\n… and 3 more"));
    }

    #[test]
    fn what_stood_there_is_cut_and_made_safe() {
        assert_eq!(quoted("a\x1b[2Jb"), "`a\\u{1b}[2Jb`");
        assert_eq!(quoted(&"é".repeat(61)), format!("`{}…`", "é".repeat(60)));
    }

    #[test]
    fn a_failing_reader_names_the_file() {
        struct Broken;
        impl io::Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("disk gone"))
            }
        }
        let result = each_line(io::BufReader::new(Broken), &mut Problems::of("f"), |_, _, _| {});
        assert_eq!(result.unwrap_err().to_string(), "f: disk gone");
    }
}

#[cfg(test)]
mod write_tests {
    use super::*;

    fn passages(given: &[(&str, f64)]) -> Vec<RankedPassage> {
        given
            .iter()
            .map(|&(id, score)| RankedPassage { id: id.to_owned(), score, ..RankedPassage::default() })
            .collect()
    }

    fn written(given: &[(&str, f64)]) -> io::Result<String> {
        let mut out = Vec::new();
        write_run(&mut out, "t", [("q", passages(given).as_slice())])?;
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn falling_scores_are_written_as_they_are() {
        assert_eq!(
            written(&[("a", 2.5), ("b", 1.0), ("c", -0.25)]).unwrap(),
            "q Q0 a 1 2.5 t\nq Q0 b 2 1 t\nq Q0 c 3 -0.25 t\n"
        );
    }

    #[test]
    fn ties_and_rises_are_nudged_so_that_trec_eval_keeps_the_order() {
        let given = [("a", 1.0), ("b", 1.0), ("z", 1.000_000_001), ("c", 7.0), ("d", 0.0), ("e", 0.0)];
        let text = written(&given).unwrap();
        for order in [RunOrder::AsGiven, RunOrder::TrecEval] {
            let run = read_run("r", text.as_bytes(), order).unwrap();
            let ids: Vec<&str> = run.questions()[0].ids().collect();
            assert_eq!(ids, ["a", "b", "z", "c", "d", "e"]);
            let scores: Vec<f64> = run.questions()[0].passages.iter().map(|p| p.score).collect();
            assert!(scores.windows(2).all(|pair| pair[0] > pair[1]), "{scores:?}");
        }
    }

    #[test]
    fn an_id_or_score_the_format_cannot_carry_is_refused() {
        assert_eq!(
            written(&[("a b", 1.0)]).unwrap_err().to_string(),
            "a TREC file cannot carry `a b`: expected an id or tag without white space"
        );
        assert!(written(&[("", 1.0)]).is_err());
        assert!(written(&[("a", f64::NAN)]).is_err());
        assert!(written(&[("a", 1e300)]).is_err());
    }

    #[test]
    fn both_qrels_files_come_back_as_they_went() {
        let text = "q 1 a 1\nq 2 a 1\nq 2 b 0\nr 1 c 3\n";
        let qrels = read_diversity_qrels("d", text.as_bytes()).unwrap();
        let mut out = Vec::new();
        write_diversity_qrels(&mut out, &qrels).unwrap();
        assert_eq!(read_diversity_qrels("d", out.as_slice()).unwrap(), qrels);

        let any = qrels.any_perspective();
        let mut out = Vec::new();
        write_qrels(&mut out, &any).unwrap();
        assert_eq!(String::from_utf8(out.clone()).unwrap(), "q 0 a 1\nq 0 b 0\nr 0 c 3\n");
        assert_eq!(read_qrels("q", out.as_slice()).unwrap(), any);
    }
}
