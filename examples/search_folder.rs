//! Searches a folder of texts and shows which statements each passage supports.
//!
//! `cargo run --example search_folder -- FOLDER "Should zoos be banned?"`

use parallax::OpenCorpus;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(folder), Some(question)) = (args.next(), args.next()) else {
        return Err("expected a folder and a question".into());
    };
    let data = std::env::temp_dir().join("parallax-search-folder");
    let corpus = OpenCorpus::open(folder.as_ref(), &data)?;
    let outcome = corpus.ask(&question, &["bm25", "minilm+mmr@.75"], 5)?;
    for (recipe, lane) in outcome.query.lanes.iter().zip(&outcome.lanes) {
        println!("{recipe}");
        for ranked in lane.ranking.clone()?.iter().take(5) {
            println!("  {:.3} {}", ranked.score, ranked.passage.id);
            for i in outcome.judgments.support(ranked.at).unwrap_or_default().iter() {
                println!("        supports: {}", outcome.query.question.perspectives[i]);
            }
        }
    }
    Ok(())
}
