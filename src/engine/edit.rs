//! The counterfactual editor: a passage or a question with other words. How the lane's score and rank and the model's verdict would change.
//!
//! Nothing edited enters the corpus, an index or the cache of verdicts: term statistics and all other passages stay as they are.

use std::sync::Arc;

use super::judgments::Judgments;
use super::learned;
use super::list::{LaneError, Lists, Ranking};
use super::query::LaneQuery;
use super::rank::rank;
use super::recipe::{Base, Recipe};
use super::setup::Setup;
use crate::corpus::{Passage, PassageIx};
use crate::detect::{LabelSource, PairLabels};
use crate::encode::Role;
use crate::llm::{Chat, ChatError, Job, Prompts};
use crate::question::Question;
use crate::retrieve::RetrieveError;
use crate::retrieve::bm25::{Bm25, TermRetriever};
use crate::vector::dot;
use crate::work::{Stop, Stopped};

/// A passage as edited, or a question.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    /// The passage that was edited.
    pub at: PassageIx,
    /// Its title and text now.
    pub passage: Passage,
    /// The question, perhaps with other words.
    pub question: Question,
}

/// What a lane and the model say about a draft.
#[derive(Clone, Debug)]
pub struct Drafted {
    /// The lane's score.
    pub score: f32,
    /// Its rank among the passages of the corpus, its own original left out; `None` if it is below the end of the list.
    pub rank: Option<usize>,
    /// The ranks that the list has.
    pub depth: usize,
}

/// Scores a draft as the lane would: by its retriever, without switches, among the other passages as they are.
///
/// # Errors
/// The lane has no scores of its own here (a finished run, a server), the list could not be made, or `stop` was set.
pub fn score_draft(
    setup: &Setup,
    recipe: &Recipe,
    draft: &Draft,
    lists: &mut Lists,
    stop: &Stop,
) -> Result<Drafted, LaneError> {
    let plain = recipe.plain();
    let text = draft.question.text.as_str();
    let list = rank(setup, &plain, LaneQuery::neutral(&draft.question), lists, stop)?;
    let others = |list: &Ranking| -> Vec<(PassageIx, f32)> {
        list.iter().filter(|one| one.at != draft.at).map(|one| (one.at, one.score)).collect()
    };
    let contents = draft.passage.contents();
    let (score, all) = match &plain.base {
        Base::Bm25(_) | Base::MiniLm | Base::Custom(_) | Base::Sparse(_) | Base::Late(_) => {
            (score_of(setup, &plain, text, &draft.passage, &contents)?, others(&list))
        }
        Base::Hybrid => {
            // Its ranks in both lists, which an edited passage takes from others.
            let mut ranks = Vec::new();
            let mut sums: Vec<(PassageIx, f32)> = Vec::new();
            for base in [Base::Bm25(Bm25::default()), Base::MiniLm] {
                let part = Recipe::from(base);
                let list = rank(setup, &part, LaneQuery::neutral(&draft.question), lists, stop)?;
                let own = score_of(setup, &part, text, &draft.passage, &contents)?;
                let others = others(&list);
                let at = others.iter().filter(|(_, score)| *score >= own).count();
                let found = own > 0.0 && at < list.len();
                ranks.push(found.then_some(at));
                for (rank, (passage, _)) in others.iter().enumerate() {
                    // Those below the draft stand one further down.
                    let rank = rank + usize::from(found && rank >= at);
                    let part = reciprocal(rank);
                    match sums.iter_mut().find(|(known, _)| known == passage) {
                        Some((_, sum)) => *sum += part,
                        None => sums.push((*passage, part)),
                    }
                }
            }
            (ranks.into_iter().flatten().map(reciprocal).sum(), sums)
        }
        Base::Remote(_) | Base::Run(_) => {
            return Err(LaneError::NotInRun(NOT_HERE.into()));
        }
    };
    if stop.is_set() {
        return Err(Stopped.into());
    }
    let above =
        all.iter().filter(|(at, other)| *other > score || (*other == score && *at < draft.at)).count();
    let rank = (score > 0.0 && above < list.len()).then_some(above + 1);
    Ok(Drafted { score, rank, depth: list.len() })
}

const NOT_HERE: &str =
    "this lane's scores are not made here, so an edited passage has none; try bm25, minilm or hybrid";

/// 1/(60 + rank) with ranks from 1, as in reciprocal rank fusion; `rank` counts from 0.
fn reciprocal(rank: usize) -> f32 {
    1.0 / (61.0 + rank as f32)
}

/// The score of a text by BM25 or by an encoder.
fn score_of(
    setup: &Setup,
    recipe: &Recipe,
    question: &str,
    passage: &Passage,
    contents: &str,
) -> Result<f32, LaneError> {
    match &recipe.base {
        Base::Bm25(constants) => {
            let retriever = TermRetriever::new(Arc::clone(&setup.corpus), setup.terms()?, *constants);
            return Ok(retriever.score_text(&TermRetriever::query_terms(question), contents)?);
        }
        Base::Sparse(named) => return learned::score_terms(setup, named, question, passage),
        Base::Late(named) => return learned::score_tokens(setup, named, question, passage),
        Base::MiniLm | Base::Custom(_) => {}
        Base::Hybrid | Base::Remote(_) | Base::Run(_) => return Err(LaneError::NotInRun(NOT_HERE.into())),
    }
    let encoder = setup.encoder(recipe.model())?;
    let query = encoder.encode(question, Role::Query)?;
    let own = encoder.passage(passage).map_err(RetrieveError::from)?;
    let similarity = encoder.similarity();
    Ok(dot(&similarity.unit(&query), &similarity.unit(&own)))
}

/// The model's verdicts on a draft, under passage 0. They are kept nowhere else.
///
/// # Errors
/// The detector cannot be loaded, or `stop` was set. A verdict that fails is part of the judgments.
pub fn judge_draft(setup: &Setup, draft: &Draft, stop: &Stop) -> Result<Judgments, LaneError> {
    let detector = setup.detector()?;
    let mut judgments = Judgments::new(&draft.question, LabelSource::Model, setup.rule()?);
    let read = match draft.question.both() {
        Some(both) => detector.read_both(&draft.passage, both, stop).to_vec(),
        None => {
            let each = draft.question.perspectives.iter();
            each.map(|statement| detector.read(&draft.passage, statement, stop)).collect()
        }
    };
    if stop.is_set() {
        return Err(Stopped.into());
    }
    for (side, model) in read.into_iter().map(Some).enumerate() {
        judgments.write(PassageIx(0), side, PairLabels { model, ..PairLabels::default() });
    }
    Ok(judgments)
}

/// Has passages worded anew by a language model.
pub struct Rewriter<'a> {
    chat: &'a dyn Chat,
    prompts: &'a Prompts,
    /// Why the model cannot be reached: every further passage would wait until its timeout.
    unreachable: Option<String>,
}

impl<'a> Rewriter<'a> {
    /// With the model of the setup.
    ///
    /// # Errors
    /// No model is named.
    pub fn new(setup: &'a Setup) -> Result<Self, LaneError> {
        let Some(chat) = setup.chat.as_deref() else {
            return Err(LaneError::NoOrder(
                "a language model is to rewrite the passages; name one with --llm URL, or recorded replies with --replies FILE"
                    .into(),
            ));
        };
        Ok(Rewriter { chat, prompts: &setup.prompts, unreachable: None })
    }

    /// A passage's text as the model words it, and whether the reply was recorded earlier; `None` if it gave the passage back as it was.
    ///
    /// # Errors
    /// The model cannot be reached or gives no text, or `stop` was set.
    pub fn rewrite(&mut self, passage: &Passage, stop: &Stop) -> Result<Option<(String, bool)>, LaneError> {
        if let Some(reason) = &self.unreachable {
            return Err(LaneError::NoOrder(reason.clone()));
        }
        let failure = |what: &dyn std::fmt::Display| format!("{}: {what}", self.chat.model());
        let request = self.prompts.get(Job::Rewrite).request(&[("passage", &passage.text)], 0);
        let reply = match self.chat.reply(&request, stop) {
            Ok(reply) => reply,
            Err(ChatError::Stopped(stopped)) => return Err(stopped.into()),
            Err(error) => {
                let reason = failure(&error);
                if matches!(error, ChatError::Unreachable(_)) {
                    self.unreachable = Some(reason.clone());
                }
                return Err(LaneError::NoOrder(reason));
            }
        };
        let text = reply.answer().trim();
        if !text.chars().any(char::is_alphanumeric) {
            return Err(LaneError::NoOrder(failure(&"a reply without text")));
        }
        let is_same = text.split_whitespace().eq(passage.text.split_whitespace());
        Ok((!is_same).then(|| (text.to_owned(), reply.recorded)))
    }
}

/// A passage as a language model words it, and the model's name; a reply that was recorded earlier says so.
///
/// # Errors
/// Those of [`Rewriter`], and that the text is the same.
pub fn rewrite(setup: &Setup, passage: &Passage, stop: &Stop) -> Result<(Passage, String), LaneError> {
    let mut rewriter = Rewriter::new(setup)?;
    let model = rewriter.chat.model();
    let Some((text, recorded)) = rewriter.rewrite(passage, stop)? else {
        return Err(LaneError::NoOrder(format!("{model} gave the passage back as it was")));
    };
    let by = format!("{model}{}", if recorded { ", recorded" } else { "" });
    Ok((Passage { text, ..passage.clone() }, by))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::opening::Opening;

    #[test]
    fn a_draft_that_changes_nothing_has_the_score_and_the_rank_of_its_passage_in_every_lane() {
        let folder = tempfile::tempdir().unwrap();
        let opening = Opening { data_dir: folder.path().to_owned(), ..Opening::default() };
        let stop = Stop::never();
        let setup = Setup::open(&opening, &|_| (), &stop).unwrap();
        let question = setup.questions[0].clone();
        for name in ["bm25", "bm25@k1=1.2,b=.75", "minilm", "hybrid", "bm25+mmr"] {
            let recipe: Recipe = name.parse().unwrap();
            let mut lists = Lists::default();
            let list =
                rank(&setup, &recipe.plain(), LaneQuery::neutral(&question), &mut lists, &stop).unwrap();
            for place in [0, 3, 17] {
                let own = &list[place];
                let passage = Passage::clone(&own.passage);
                let draft = Draft { at: own.at, passage, question: question.clone() };
                let scored = score_draft(&setup, &recipe, &draft, &mut lists, &stop).unwrap();
                assert!(
                    (scored.score - own.score).abs() < 2e-3 * own.score.abs(),
                    "{name}: {scored:?} {}",
                    own.score
                );
                assert_eq!(scored.rank, Some(place + 1), "{name}");
            }
            let mut passage = Passage::clone(&list[0].passage);
            (passage.title, passage.text) = (String::new(), "Nothing of it.".into());
            let draft = Draft { at: list[0].at, passage, question: question.clone() };
            let scored = score_draft(&setup, &recipe, &draft, &mut lists, &stop).unwrap();
            assert!(scored.rank.is_none_or(|rank| rank > 1), "{name}: {scored:?}");
        }
        assert_eq!(setup.corpus.len(), 600, "nothing edited enters the corpus");
    }

    /// A model that answers one prompt in its own words and then cannot be reached.
    #[derive(Default)]
    struct Failing(std::sync::atomic::AtomicUsize);

    impl Chat for Failing {
        fn model(&self) -> &str {
            "fake"
        }

        fn reply(&self, _: &crate::llm::Request, _: &Stop) -> Result<crate::llm::Reply, ChatError> {
            match self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
                0 => Ok(crate::llm::Reply { text: "Other words.".into(), ..Default::default() }),
                1 => Ok(crate::llm::Reply { text: " The\nwords. ".into(), ..Default::default() }),
                _ => Err(ChatError::Unreachable("nobody is there".into())),
            }
        }
    }

    #[test]
    fn a_model_that_cannot_be_reached_is_asked_once() {
        let (chat, prompts) = (Failing::default(), Prompts::builtin().unwrap());
        let mut rewriter = Rewriter { chat: &chat, prompts: &prompts, unreachable: None };
        let passage = Passage { text: "The words.".into(), ..Passage::default() };
        let mut rewrite = || rewriter.rewrite(&passage, &Stop::never());
        assert_eq!(rewrite().unwrap(), Some(("Other words.".to_owned(), false)));
        assert_eq!(rewrite().unwrap(), None, "the same words");
        for _ in 0..3 {
            assert_eq!(rewrite().unwrap_err().to_string(), "fake: nobody is there");
        }
        assert_eq!(chat.0.into_inner(), 3);
    }
}
