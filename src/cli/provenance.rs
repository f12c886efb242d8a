//! The prompts of language models, for the `provenance` in JSON.

use serde_json::{Map, Value, json};

use super::options::Common;
use crate::detect::Choice;
use crate::engine::{Recipe, Setup};
use crate::expand::Kind;
use crate::llm::{Job, Prompts};

/// The prompts with which a language model judges, or expands queries of these lanes: name, version and hash by job. `None` if there
/// are none.
pub fn prompts_in_use(common: &Common, setup: &Setup, recipes: &[Recipe]) -> Option<Value> {
    let judges = common.detector() == Choice::Llm;
    by_job(&setup.prompts, &jobs(judges, setup.chat.is_some(), recipes))
}

/// The name, version and hash of the prompt for each of these jobs; `None` without jobs.
pub fn by_job(prompts: &Prompts, jobs: &[Job]) -> Option<Value> {
    let ids: Map<String, Value> =
        jobs.iter().map(|job| (job.name().to_owned(), json!(prompts.get(*job).id))).collect();
    (!ids.is_empty()).then_some(Value::Object(ids))
}

/// The jobs of a language model that judges, or that expands queries.
fn jobs(judges: bool, expands: bool, recipes: &[Recipe]) -> Vec<Job> {
    let uses = |kind| expands && recipes.iter().any(|recipe| recipe.switches.expand == Some(kind));
    let in_use = |job: &Job| match job {
        Job::Detect => judges,
        Job::Perspectives => uses(Kind::Perspectives),
        // CSQE also asks for KEQE's hypothetical answers.
        Job::Keqe => uses(Kind::Keqe) || uses(Kind::Csqe),
        Job::Csqe => uses(Kind::Csqe),
        _ => false,
    };
    Job::ALL.into_iter().filter(in_use).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_that_judge_or_expand_are_given_with_their_hashes() {
        let lanes = |names: &[&str]| names.iter().map(|name| name.parse().unwrap()).collect::<Vec<Recipe>>();
        let builtin = Prompts::builtin().unwrap();
        let used = by_job(&builtin, &jobs(true, true, &lanes(&["bm25", "bm25+keqe"]))).unwrap();
        assert_eq!(used["detect"]["hash"], builtin.get(Job::Detect).id.hash);
        assert_eq!(used["keqe"]["hash"], builtin.get(Job::Keqe).id.hash);
        assert_eq!(used.as_object().map(Map::len), Some(2));
        let one_shot = Prompts::with(&["detect-one-shot".into()]).unwrap();
        let other = by_job(&one_shot, &jobs(true, false, &lanes(&["bm25+csqe"]))).unwrap();
        assert_ne!(other["detect"]["hash"], used["detect"]["hash"]);
        assert_eq!(other.as_object().map(Map::len), Some(1), "nothing expands");
        assert_eq!(by_job(&builtin, &jobs(false, true, &lanes(&["bm25", "bm25+rm3"]))), None);
    }
}
