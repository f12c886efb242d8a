//! Does the sentence that carries a verdict stand where people see it? The built-in detector against the sample's gold evidence.
//!
//! ```text
//! cargo bench --bench evidence
//! ```

use std::error::Error;
use std::ops::Range;

use parallax::corpus::{Passage, sample};
use parallax::detect::labels::{Absent, Labels};
use parallax::detect::{CrossEncoder, Detector};
use parallax::detect::{evidence, sentences};
use parallax::encode::{Encoder, MiniLm, Role};
use parallax::measure::pir::grouped_interval;
use parallax::question::set;
use parallax::work::Stop;

/// Hits and tries, question by question.
type Counts = Vec<(f64, f64)>;

fn main() -> Result<(), Box<dyn Error>> {
    // `cargo test --benches` only asks whether this builds.
    if std::env::args().any(|arg| arg == "--test") {
        return Ok(());
    }
    let (detector, encoder) = (CrossEncoder::builtin()?, MiniLm::builtin()?);
    let questions = set::builtin(sample::QUESTIONS);
    let labels = Labels::builtin(sample::LABELS, &questions, Absent::No)?;
    let passages = passages()?;
    let rows = [
        "left out, it lowers P(supports) most",
        "the same, where the verdict is a yes",
        "nearest to the statement by MiniLM's cosine",
        "any sentence",
    ];
    let mut counts: [Counts; 4] = Default::default();
    for question in &questions {
        let mut of = [(0.0, 0.0); 4];
        let statements = question.perspectives.iter();
        for (statement, passage) in statements.flat_map(|s| passages.iter().map(move |passage| (s, passage)))
        {
            let gold = labels.label(statement, &passage.id).and_then(|label| label.evidence.as_deref());
            let Some(gold) = gold.and_then(|gold| passage.text.find(gold).map(|at| at..at + gold.len()))
            else {
                continue;
            };
            let all = sentences(&passage.text);
            let hit = |found: &Range<usize>| f64::from(u8::from(meets(found, &gold)));
            let opposite = question.both().map(|[one, other]| if statement == one { other } else { one });
            let found = evidence(&detector, passage, statement, opposite, &Stop::never())?;
            let found = found.as_ref().map_or(0.0, |sentence| hit(&sentence.at));
            let yes = supports(&detector, passage, statement, opposite)?;
            let near = nearest(&encoder, passage, statement, &all)?;
            let any = all.iter().map(&hit).sum::<f64>() / all.len() as f64;
            let shares = [(found, 1.0), (found, f64::from(u8::from(yes))), (hit(&near), 1.0), (any, 1.0)];
            for (sum, (part, whole)) in of.iter_mut().zip(shares) {
                *sum = (sum.0 + part * whole, sum.1 + whole);
            }
        }
        for (counts, of) in counts.iter_mut().zip(of) {
            if of.1 > 0.0 {
                counts.push(of);
            }
        }
    }
    println!(
        "{:<46} {:>10}   of   95 % by question",
        "the sentence that overlaps the gold evidence", "share"
    );
    for (row, counts) in rows.iter().zip(counts) {
        let pairs: f64 = counts.iter().map(|(_, whole)| whole).sum();
        let share = grouped_interval(&[counts], 0.95, 10_000, 7)?;
        println!("{row:<46} {:>10.3} {pairs:>4}   {:.3} to {:.3}", share.mean, share.low, share.high);
    }
    Ok(())
}

/// Whether the verdict on a statement, beside its opposite if it has one, is a yes.
fn supports(
    detector: &CrossEncoder,
    passage: &Passage,
    statement: &str,
    opposite: Option<&str>,
) -> Result<bool, Box<dyn Error>> {
    let Some(opposite) = opposite else {
        return Ok(detector.judge(passage, statement, &Stop::never())? >= detector.threshold());
    };
    let [own, other] = detector.read_both(passage, [statement, opposite], &Stop::never());
    let decision = detector.rule().decide([&own?, &other?]);
    Ok(decision.is_some_and(|decision| decision.outcome.supports(0) == Some(true)))
}

/// Whether most of the shorter one lies in the other: gold evidence may be a part of a sentence, or two.
fn meets(found: &Range<usize>, gold: &Range<usize>) -> bool {
    let shared = found.end.min(gold.end).saturating_sub(found.start.max(gold.start));
    2 * shared > found.len().min(gold.len())
}

fn nearest(
    encoder: &MiniLm,
    passage: &Passage,
    statement: &str,
    all: &[Range<usize>],
) -> Result<Range<usize>, Box<dyn Error>> {
    let asked = encoder.encode(statement, Role::Passage)?;
    let mut best = (f32::MIN, 0..0);
    for sentence in all {
        let vector = encoder.encode(&passage.text[sentence.clone()], Role::Passage)?;
        let cosine = vector.iter().zip(&asked).map(|(a, b)| a * b).sum();
        if cosine > best.0 {
            best = (cosine, sentence.clone());
        }
    }
    Ok(best.1)
}

fn passages() -> Result<Vec<Passage>, serde_json::Error> {
    let lines = sample::CORPUS.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(serde_json::from_slice).collect()
}
