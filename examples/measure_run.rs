//! Measures a TREC run against TREC qrels: `cargo run --example measure_run -- RUN QRELS nDCG@10`.

use std::fs::File;
use std::io::BufReader;

use parallax::measure::graded::GradedRanking;
use parallax::measure::score::{Evidence, score};
use parallax::measure::trec::{RunOrder, read_qrels, read_run};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [run, qrels, measure] = args.as_slice() else {
        return Err("expected a run, qrels and a measure".into());
    };
    let ranked = read_run(run, BufReader::new(File::open(run)?), RunOrder::AsGiven)?;
    let judged = read_qrels(qrels, BufReader::new(File::open(qrels)?))?;
    let measure = measure.parse()?;
    let mut values = Vec::new();
    for (id, grades) in judged.questions() {
        let list = ranked.question(id).into_iter().flat_map(|question| question.ids());
        let graded = GradedRanking::new(list, grades);
        values.push(score(measure, &Evidence { graded: Some(&graded), support: None })?.value);
    }
    if values.is_empty() {
        return Err(format!("{qrels} judges no question").into());
    }
    println!(
        "{measure} {:.4} over {} questions",
        values.iter().sum::<f64>() / values.len() as f64,
        values.len()
    );
    Ok(())
}
