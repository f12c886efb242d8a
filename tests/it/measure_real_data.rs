//! Published figures on real runs, read from the folder that `PARALLAX_DATA` names.

use std::env;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use parallax::measure::graded::GradedRanking;
use parallax::measure::ndcg::ndcg;
use parallax::measure::trec::{
    Qrels, RunOrder, read_beir_qrels, read_diversity_qrels, read_qrels, read_rank_llm, read_run,
    write_diversity_qrels, write_run,
};

fn data() -> Option<PathBuf> {
    let folder = env::var_os("PARALLAX_DATA").map(PathBuf::from);
    if folder.is_none() {
        println!("skipped: no data");
    }
    folder
}

fn open(path: &Path) -> BufReader<File> {
    BufReader::new(File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
}

fn dl19_qrels(folder: &Path) -> Qrels {
    let path = folder.join("trec-dl19/qrels.dl19-passage.txt");
    read_qrels("qrels.dl19-passage.txt", open(&path)).unwrap()
}

/// Mean nDCG@10 over every judged question; one the run lacks would count 0.
fn mean_ndcg_10(folder: &Path, file: &str, order: RunOrder) -> String {
    let qrels = dl19_qrels(folder);
    let path = folder.join("trec-dl19").join(file);
    let run = read_rank_llm(file, open(&path), order).unwrap();
    assert_eq!(run.questions().len(), 43, "{file}");
    let total: f64 = qrels
        .questions()
        .map(|(question, judgements)| {
            let ranked = run.question(question).unwrap();
            ndcg(&GradedRanking::new(ranked.ids(), judgements), Some(10))
        })
        .sum();
    assert_eq!(qrels.len(), 43);
    format!("{:.4}", total / qrels.len() as f64)
}

#[test]
fn ndcg_at_10_of_six_systems_on_dl19_is_the_published_one() {
    let Some(folder) = data() else { return };
    for (file, expected) in [
        ("dl19.bm25.json", "0.5058"),
        ("dl19.tasb.json", "0.7210"),
        ("dl19.splade-pp-ed.json", "0.7308"),
        ("dl19.openai-ada2.json", "0.7035"),
        ("dl19.repllama.json", "0.7439"),
        ("dl19.bm25-rm3.json", "0.5216"),
    ] {
        let as_given = mean_ndcg_10(&folder, file, RunOrder::AsGiven);
        let trec_eval = mean_ndcg_10(&folder, file, RunOrder::TrecEval);
        println!("{file}: as given {as_given}, trec_eval's ties {trec_eval}");
        assert_eq!(as_given, expected, "{file}");
    }
}

#[test]
fn repllama_loses_half_a_point_to_trec_evals_ties() {
    let Some(folder) = data() else { return };
    let value = mean_ndcg_10(&folder, "dl19.repllama.json", RunOrder::TrecEval);
    assert_eq!(value, "0.7384");
}

#[test]
fn a_real_run_written_and_read_with_trec_evals_ties_keeps_its_order() {
    let Some(folder) = data() else { return };
    let path = folder.join("trec-dl19/dl19.repllama.json");
    let run = read_rank_llm("repllama", open(&path), RunOrder::AsGiven).unwrap();
    let mut out = Vec::new();
    let rankings =
        run.questions().iter().map(|question| (question.id.as_str(), question.passages.as_slice()));
    write_run(&mut out, "repllama", rankings).unwrap();
    let back = read_run("written", out.as_slice(), RunOrder::TrecEval).unwrap();
    for question in run.questions() {
        let again = back.question(&question.id).unwrap();
        assert!(question.ids().eq(again.ids()), "{}", question.id);
    }
}

#[test]
fn the_other_judgements_at_hand_are_read() {
    let Some(folder) = data() else { return };
    let beir = read_beir_qrels("test.tsv", open(&folder.join("arguana/qrels/test.tsv"))).unwrap();
    println!("arguana: {} questions", beir.len());
    assert!(!beir.is_empty());

    let path = folder.join("arguments-pro-con/gold.div.qrels");
    let gold = read_diversity_qrels("gold.div.qrels", open(&path)).unwrap();
    let mut out = Vec::new();
    write_diversity_qrels(&mut out, &gold).unwrap();
    assert_eq!(read_diversity_qrels("again", out.as_slice()).unwrap(), gold);
    println!("arguments-pro-con: {} questions", gold.questions().count());
    assert!(gold.questions().count() > 0);
}
