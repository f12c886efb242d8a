//! Writes runs and qrels, so that every tool reads them in the same way.
//!
//! Scores fall strictly. Perspectives have their own qrels file, because two tools keep only the last line of a (question, passage) pair.

use std::io::{self, Write};

use super::qrels::{DiversityQrels, Qrels};
use super::run::RankedPassage;

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
    use super::super::{RunOrder, read_diversity_qrels, read_qrels, read_run};
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
