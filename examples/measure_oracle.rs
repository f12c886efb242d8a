//! A tool of the maintainers: prints the value of every measure and question as JSON, for `tools/measures/compare_ir_measures.py`.
//!
//! `measure_oracle RUN QRELS DIV_QRELS MEASURE…` → `{measure: {question: value}}`. The number of perspectives is the highest one judged,
//! which is correct only for complete qrels.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;
use std::io::BufReader;

use parallax::measure::graded::GradedRanking;
use parallax::measure::score::{Evidence, SupportEvidence, score};
use parallax::measure::trec::{Absent, RunOrder, read_diversity_qrels, read_qrels, read_run};
use parallax::measure::{Measure, PerspectiveCount};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [run, qrels, div, names @ ..] = arguments.as_slice() else {
        return Err("expected RUN QRELS DIV_QRELS MEASURE…".into());
    };
    let open = |path: &str| File::open(path).map(BufReader::new);
    let run = read_run(run, open(run)?, RunOrder::TrecEval)?;
    let qrels = read_qrels(qrels, open(qrels)?)?;
    let div = read_diversity_qrels(div, open(div)?)?;

    let mut values: BTreeMap<&str, BTreeMap<&str, f64>> = BTreeMap::new();
    for question in run.questions() {
        let id = question.id.as_str();
        let Some(judgments) = qrels.question(id) else {
            continue;
        };
        let graded = GradedRanking::new(question.ids(), judgments);
        let ranked = div.ranked(id, question.ids(), 1, Absent::SupportsNothing);
        let pool = div.pool(id, 1);
        let highest = div.highest_perspective(id).map_or(0, |highest| highest + 1);
        let evidence = Evidence {
            graded: Some(&graded),
            support: Some(SupportEvidence {
                ranked: &ranked,
                pool: &pool,
                m: PerspectiveCount::new(highest)?,
                supports: None,
            }),
        };
        for name in names {
            let measure: Measure = name.parse()?;
            let value = score(measure, &evidence)?.value;
            values.entry(name).or_default().insert(id, value);
        }
    }
    println!("{}", serde_json::to_string(&values)?);
    Ok(())
}
