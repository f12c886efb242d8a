//! Coverage on the BERDS development questions, where they are at hand: `PARALLAX_DATA/berds-dev/berds.dev.jsonl`.

use std::path::PathBuf;

use crate::question::{By, invert, statements, tokens};

fn normal(text: &str) -> String {
    text.trim().trim_end_matches(['.', ' ']).replace('’', "'").to_lowercase()
}

#[test]
fn nearly_all_two_sided_yes_no_questions_get_statements_by_rule() {
    let Some(folder) = std::env::var_os("PARALLAX_DATA") else {
        println!("skipped: no data");
        return;
    };
    let file = PathBuf::from(folder).join("berds-dev").join("berds.dev.jsonl");
    let Ok(text) = std::fs::read_to_string(&file) else {
        println!("skipped: no data");
        return;
    };
    let (mut asked, mut covered, mut first, mut both, mut either) = (0, 0, 0, 0, 0);
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        let question = row["question"].as_str().unwrap();
        let given: Vec<String> = row["perspectives"]
            .as_array()
            .unwrap()
            .iter()
            .map(|text| normal(text.as_str().unwrap()))
            .collect();
        let yes_no = invert::auxiliary_at(&tokens::words(question)).is_some();
        if given.len() != 2 || !yes_no {
            continue;
        }
        asked += 1;
        let made = statements(question);
        let said: Vec<String> = made.perspectives.iter().map(|text| normal(text)).collect();
        let swapped = said.iter().rev().eq(given.iter());
        covered += usize::from(made.by == By::Rule);
        first += usize::from(said.first() == given.first());
        both += usize::from(said == given);
        either += usize::from(said == given || swapped);
    }
    println!(
        "two-sided yes/no questions {asked}; by rule {covered}; equal to the given: first {first}, both {both}, either order {either}"
    );
    assert!(covered * 100 >= asked * 95, "{covered} of {asked}");
}
