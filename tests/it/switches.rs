//! The switches on the carried sample: equivalences that must hold whatever the passages, and the trace of every step.

use std::sync::LazyLock;

use parallax::pipeline::{Asked, Lists, Opening, Ranking, Reason, Recipe, Setup, Step, rank, why};
use parallax::question::Question;
use parallax::work::Stop;
use tempfile::TempDir;

static SAMPLE: LazyLock<(TempDir, Setup)> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let opening = Opening { data_dir: folder.path().into(), ..Opening::default() };
    let setup = Setup::open(&opening, &|_| (), &Stop::never()).unwrap();
    (folder, setup)
});

fn ranked(recipe: &str, question: &Question) -> Ranking {
    let recipe: Recipe = recipe.parse().unwrap();
    rank(&SAMPLE.1, &recipe, Asked::plainly(question), &mut Lists::default(), &Stop::never()).unwrap()
}

fn order(ranking: &Ranking) -> Vec<u32> {
    ranking.iter().map(|ranked| ranked.at.0).collect()
}

#[test]
fn a_lambda_of_one_is_off_exactly_and_a_weight_of_nought_too() {
    for question in &SAMPLE.1.questions[..4] {
        for base in ["bm25", "minilm", "hybrid", "bm25+perspectives"] {
            let off = order(&ranked(base, question));
            for switch in ["mmr@1", "mmr@1,norm=dataset", "xquad@0"] {
                assert_eq!(order(&ranked(&format!("{base}+{switch}"), question)), off, "{base}+{switch}");
            }
        }
    }
}

#[test]
fn re_ranking_keeps_the_same_passages_and_says_where_each_stood() {
    let question = &SAMPLE.1.questions[0];
    let plain = ranked("minilm", question);
    for switch in ["mmr@.5", "xquad@1", "pm2@.5"] {
        let reordered = ranked(&format!("minilm+{switch}"), question);
        let (mut left, mut right) = (order(&plain), order(&reordered));
        assert_ne!(left, right, "{switch}");
        left.sort_unstable();
        right.sort_unstable();
        assert_eq!(left, right, "{switch}");
        let third = &reordered[2];
        let reasons = why(&SAMPLE.1, &reordered, &question.text, third.at).unwrap();
        let was = reasons.iter().find_map(|reason| match reason {
            Reason::Mmr { was, .. } | Reason::Diversified { was, .. } => Some(*was),
            _ => None,
        });
        assert_eq!(was, plain.rank_of(third.at), "{switch}");
    }
}

#[test]
fn on_unit_vectors_the_projections_are_the_equivalent_ones() {
    for question in &SAMPLE.1.questions[..4] {
        let order = |variant: &str| order(&ranked(&format!("minilm+{variant}@2"), question));
        assert_eq!(order("add"), order("dual-sum"));
        assert_eq!(order("concat"), order_by_root(question));
    }
}

/// The list for the root alone: the supporting statement.
fn order_by_root(question: &Question) -> Vec<u32> {
    let text = question.perspectives[question.supports.unwrap()].clone();
    order(&ranked("minilm", &Question { text, ..question.clone() }))
}

#[test]
fn the_shares_of_the_terms_add_up_to_the_score_with_and_without_expansion() {
    let question = &SAMPLE.1.questions[0];
    for recipe in ["bm25", "bm25@k1=1.2,b=.75+keqe", "bm25+rm3", "bm25+csqe"] {
        let ranking = ranked(recipe, question);
        let mut added = false;
        for ranked in ranking.iter().take(5) {
            let reasons = why(&SAMPLE.1, &ranking, &question.text, ranked.at).unwrap();
            let [Reason::Terms { shares, score }] = reasons.as_slice() else { panic!("{reasons:?}") };
            let sum: f32 = shares.iter().map(|share| share.share).sum();
            assert!((sum - ranked.score).abs() < 1e-4 * ranked.score, "{recipe}: {sum} {}", ranked.score);
            assert_eq!(sum, *score);
            added |= shares.iter().any(|share| share.added);
        }
        assert_eq!(added, recipe != "bm25", "{recipe}");
    }
}

#[test]
fn a_merged_list_takes_the_queries_in_turn_and_knows_which_brought_what() {
    let question = &SAMPLE.1.questions[0];
    let merged = ranked("bm25+perspectives", question);
    let queries = merged.trace.steps.iter().find_map(|step| match step {
        Step::Retrieve { queries, .. } => Some(queries.clone()),
        _ => None,
    });
    let queries = queries.unwrap();
    assert!(queries.len() >= 3, "the recorded perspectives of the sample: {queries:?}");
    let texts: Vec<String> = queries.iter().map(|query| query.shown()).collect();
    assert!(texts.iter().all(|text| text.starts_with(&question.text)), "the question and then a perspective");
    let Some(Step::Merge { from }) = merged.trace.steps.last() else { panic!("no merge") };
    for ranked in merged.iter().take(10) {
        let own = ranked_for(&texts[from[&ranked.at]], question);
        assert!(own.rank_of(ranked.at).is_some());
    }
    assert_eq!(from[&merged[0].at], 0);
    assert_eq!(ranked_for(&texts[0], question)[0].at, merged[0].at);
}

fn ranked_for(text: &str, question: &Question) -> Ranking {
    ranked("bm25", &Question { text: text.into(), ..question.clone() })
}

#[test]
fn the_sample_replays_its_recorded_replies_and_says_so() {
    for question in &SAMPLE.1.questions {
        for kind in ["perspectives", "keqe", "csqe"] {
            let list = ranked(&format!("bm25+{kind}"), question);
            let told = list.trace.expansion().unwrap().told();
            assert!(told.contains("recorded replies of"), "{}: {told} {:?}", question.id, list.trace.notes);
        }
    }
}

#[test]
fn a_perspective_that_is_not_there_fails_the_lane_and_names_it() {
    let question = &SAMPLE.1.questions[0];
    let recipe: Recipe = "minilm+pap@7".parse().unwrap();
    let failed = rank(&SAMPLE.1, &recipe, Asked::plainly(question), &mut Lists::default(), &Stop::never());
    let error = failed.unwrap_err().to_string();
    assert!(error.contains("number 7") && error.contains("2 perspectives"), "{error}");
    let bare = Question { text: "Who pays for zoos?".into(), ..Question::default() };
    let recipe: Recipe = "bm25+xquad".parse().unwrap();
    let failed = rank(&SAMPLE.1, &recipe, Asked::plainly(&bare), &mut Lists::default(), &Stop::never());
    assert!(failed.unwrap_err().to_string().contains("needs the question's perspectives"));
}

#[test]
fn projecting_a_text_equal_to_the_question_ranks_as_if_off_with_a_warning() {
    let question = &SAMPLE.1.questions[0];
    let toward = question.text.replace(' ', "%20").replace('?', "%3F");
    let list = ranked(&format!("minilm+pap@={toward}"), question);
    assert_eq!(order(&list), order(&ranked("minilm", question)));
    assert!(
        list.trace.notes.iter().any(|note| note.contains("nothing was projected")),
        "{:?}",
        list.trace.notes
    );
}
