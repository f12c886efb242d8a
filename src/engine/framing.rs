//! The framing lab: one lane asked in many wordings of a question. What it returns for each, how far the lists lie apart (framing
//! sensitivity), and whether a wording and its negation rank the passages that fit them first (NevIR). Also what asking n times buys.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::figures::shares_of;
use super::judgments::Judgments;
use super::list::{LaneError, List, Lists, Ranked, Ranking};
use super::query::{Depth, LaneQuery, Query};
use super::rank::rank;
use super::recipe::{Ask, Recipe, Switches};
use super::run::Run;
use super::setup::Setup;
use super::sycophancy::asks_alike;
use crate::corpus::PassageIx;
use crate::detect::LabelSource;
use crate::engine::Figures;
use crate::expand::Talk;
use crate::llm::Job;
use crate::measure::SupportSet;
use crate::measure::bias::{SideShares, framing_sensitivity, is_above, negation_accuracy};
use crate::measure::compare::{RBO_P, rbo};
use crate::question::set::Pair;
use crate::question::wordings::{Frame, Framed, Missing, distinct, texts_to_ask, wordings};
use crate::question::{By, Question};
use crate::retrieve::Fusion;
use crate::work::{Stop, Stopped};

/// The ranks of a list in which the passages of a pair are looked for; a passage below counts as not returned.
pub const PAIR_DEPTH: usize = 1000;

/// A lane's answer to one wording.
#[derive(Clone, Debug)]
pub struct FramedList {
    /// The wording.
    pub framed: Framed,
    /// Its list; `None` if the wording has no text.
    pub list: Option<Ranking>,
    /// The shares of the first k that support each side, for a two-sided question.
    pub shares: Option<SideShares>,
    /// MRecall@k; its mean under the model's probabilities if the model judged. `None` if the question has no statements.
    pub mrecall: Option<f64>,
    /// The rank-biased distance from the neutral list, `1 − RBO`.
    pub distance: Option<f64>,
    /// How many of the first k are not among the first k of the neutral list.
    pub new: Option<usize>,
}

/// A lane's answers to all wordings of a question.
#[derive(Clone, Debug)]
pub struct Framing {
    /// One for each wording, in their order; the first is neutral.
    pub asked: Vec<FramedList>,
    /// The judgments of the first k of all lists.
    pub judgments: Judgments,
    /// The mean rank-biased distance over all pairs of lists; `None` with fewer than two.
    pub sensitivity: Option<f64>,
    /// NevIR's pairwise accuracy of the two statements, on the labelled passages that support one side alone; `None` without a pair.
    pub negation: Option<f64>,
    /// The same of the two excluding questions: one side, but not the other.
    pub exclusion: Option<f64>,
    /// A note if the wording cannot change the lists.
    pub note: Option<String>,
}

impl Framing {
    /// Measures the lists of the wordings, all but the pairs of passages.
    pub fn of(
        question: &Question,
        k: usize,
        lists: Vec<(Framed, Option<Ranking>)>,
        judgments: Judgments,
    ) -> Self {
        let ids = |list: &Ranking| -> Vec<String> { list.iter().map(|one| one.passage.id.clone()).collect() };
        let all: Vec<Vec<String>> = lists.iter().filter_map(|(_, list)| Some(ids(list.as_ref()?))).collect();
        let all: Vec<Vec<&str>> = all.iter().map(|list| list.iter().map(String::as_str).collect()).collect();
        let neutral = lists.first().and_then(|(_, list)| list.clone());
        let measured = |(framed, list): (Framed, Option<Ranking>)| {
            let own = list.as_ref();
            let figures = own.and_then(|list| Figures::of(list, &judgments, question, k));
            let doubt = own.and_then(|list| Figures::doubt(list, &judgments, question, k));
            let both = own.zip(neutral.as_ref());
            let distance = both.and_then(|(own, neutral)| {
                let (own, neutral) = (ids(own), ids(neutral));
                let [own, neutral] =
                    [&own, &neutral].map(|list| list.iter().map(String::as_str).collect::<Vec<_>>());
                Some(1.0 - rbo(&own, &neutral, RBO_P)?)
            });
            let new = both.map(|(own, neutral)| {
                let top = &neutral[..neutral.len().min(k)];
                own.iter().take(k).filter(|one| top.iter().all(|other| other.at != one.at)).count()
            });
            FramedList {
                shares: own.and_then(|list| shares_of(&judgments, question, list, k)),
                mrecall: doubt.map(|doubt| doubt.mrecall.mean).or(figures.map(|figures| figures.mrecall)),
                distance,
                new,
                framed,
                list,
            }
        };
        let sensitivity = framing_sensitivity(&all);
        let asked = lists.into_iter().map(measured).collect();
        Framing { asked, sensitivity, negation: None, exclusion: None, note: None, judgments }
    }

    /// The answer to the wording of this form.
    pub fn to(&self, frame: Frame) -> Option<&FramedList> {
        self.asked.iter().find(|one| one.framed.frame == frame)
    }
}

/// Asks one lane in all wordings that have a text.
///
/// # Errors
/// A list could not be made, the detector could not be loaded, or `stop` was set.
pub fn framing(
    setup: &Setup,
    recipe: &Recipe,
    question: &Question,
    wordings: &[Framed],
    (k, source): (usize, LabelSource),
    maxima: &[(Recipe, f32)],
    stop: &Stop,
) -> Result<Framing, LaneError> {
    let mut lists = Vec::new();
    for framed in wordings {
        let list = match &framed.text {
            Err(_) => None,
            Ok(text) => {
                let mut made = Lists { maxima: maxima.to_vec(), ..Lists::default() };
                Some(rank(setup, recipe, LaneQuery { question, text }, &mut made, stop)?)
            }
        };
        lists.push((framed.clone(), list));
    }
    let rankings: Vec<Ranking> = lists.iter().filter_map(|(_, list)| list.clone()).collect();
    let query = Query { question: question.clone(), lanes: vec![recipe.clone(); rankings.len()], k, source };
    let mut run = Run::over(query, Depth::Top, rankings);
    run.judge(setup, stop, &|_| ())?;
    if stop.is_set() {
        return Err(Stopped.into());
    }
    let judgments = run.outcome().judgments;
    let mut framing = Framing::of(question, k, lists, judgments);
    let text = |frame: Frame| wordings.iter().find(|one| one.frame == frame)?.text.as_ref().ok();
    if let Some(sides) = question.sides() {
        let pool = setup.label_pool(question, source);
        let statements = sides.map(|side| question.perspectives[side].as_str());
        framing.negation = pairwise(setup, recipe, question, statements, &pool, stop)?;
        if let [Some(one), Some(other)] = sides.map(|side| text(Frame::Only(side))) {
            framing.exclusion = pairwise(setup, recipe, question, [one, other], &pool, stop)?;
        }
    }
    framing.note = asks_alike(recipe)
        .then(|| "the projection asks by its own clause whatever the wording, so no list changes".to_owned());
    Ok(framing)
}

/// NevIR's pairwise accuracy of two opposite queries on the labelled passages that support one side alone.
fn pairwise(
    setup: &Setup,
    recipe: &Recipe,
    question: &Question,
    queries: [&str; 2],
    pool: &[(String, SupportSet)],
    stop: &Stop,
) -> Result<Option<f64>, LaneError> {
    let Some([first, second]) = question.sides() else { return Ok(None) };
    let alone = |own: usize, other: usize| -> Vec<&str> {
        let fits = pool.iter().filter(|(_, set)| set.contains(own) && !set.contains(other));
        fits.map(|(id, _)| id.as_str()).collect()
    };
    let (fits_first, fits_second) = (alone(first, second), alone(second, first));
    if fits_first.is_empty() || fits_second.is_empty() {
        return Ok(None);
    }
    let ask = |text: &str| -> Result<Vec<String>, LaneError> {
        let mut made = Lists::to_depth(setup.corpus.len().clamp(1, PAIR_DEPTH));
        let list = rank(setup, recipe, LaneQuery { question, text }, &mut made, stop)?;
        Ok(list.iter().map(|one| one.passage.id.clone()).collect())
    };
    let lists = [ask(queries[0])?, ask(queries[1])?];
    let [one, other] = lists.each_ref().map(|list| list.iter().map(String::as_str).collect::<Vec<_>>());
    Ok(negation_accuracy(&one, &other, &fits_first, &fits_second))
}

/// Whether each query of a pair ranks its own passage above the other. `ids` are those of its passages in the corpus. As in NevIR's own code
/// (`src/negations` of github.com/orionw/NevIR), the score must be greater: passages of equal scores are level, whatever their ranks.
///
/// # Errors
/// A list could not be made, or `stop` was set.
pub fn rank_pair(
    setup: &Setup,
    recipe: &Recipe,
    pair: &Pair,
    ids: [&str; 2],
    stop: &Stop,
) -> Result<[bool; 2], LaneError> {
    let right = |own: usize| -> Result<bool, LaneError> {
        let question =
            Question { id: pair.id.clone(), text: pair.queries[own].clone(), ..Question::default() };
        let mut made = Lists::to_depth(setup.corpus.len());
        let list = rank(setup, recipe, LaneQuery::neutral(&question), &mut made, stop)?;
        let [own, other] = [ids[own], ids[1 - own]].map(|id| {
            let place = list.iter().position(|one| one.passage.id == id)?;
            Some((place + 1, list[place].score))
        });
        let level = own.zip(other).is_some_and(|((_, own), (_, other))| own == other);
        Ok(!level && is_above(own.map(|(rank, _)| rank), other.map(|(rank, _)| rank)))
    };
    Ok([right(0)?, right(1)?])
}

/// What the first n wordings of a question bring.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Asking {
    /// MRecall of the first k of the fused list.
    pub fused: f64,
    /// MRecall of all passages among the first k of any of the n lists.
    pub pooled: f64,
    /// MRecall of the first n·k passages of the question's own list: as many passages are fetched.
    pub deeper: f64,
    /// How many different passages the n lists have among their first k.
    pub distinct: usize,
}

/// What asking a lane once, twice and so on brings.
#[derive(Clone, Debug)]
pub struct Answers {
    /// One for each number of wordings, from 1.
    pub each: Vec<Asking>,
    /// How many wordings there are; beyond that, more asking brings nothing.
    pub wordings: usize,
    /// The judgments.
    pub judgments: Judgments,
    /// All passages that count.
    pub passages: Vec<PassageIx>,
}

/// Asks a lane once to `most` times, with the lists fused as `by` says, and compares with one deeper list. A question without statements has
/// no answers.
///
/// # Errors
/// A list could not be made, the detector could not be loaded, or `stop` was set.
pub fn asking(
    setup: &Setup,
    recipe: &Recipe,
    question: &Question,
    (k, source): (usize, LabelSource),
    (most, by): (usize, Fusion),
    maxima: &[(Recipe, f32)],
    stop: &Stop,
) -> Result<Answers, LaneError> {
    let form =
        |ask| Recipe { base: recipe.base.clone(), switches: Switches { ask, ..recipe.switches.clone() } };
    let once = form(None);
    let texts = texts_to_ask(question, &question.text, most);
    let mut made = Lists { maxima: maxima.to_vec(), ..Lists::to_depth(Query::DEPTH.max(most * k)) };
    let own = rank(setup, &once, LaneQuery::neutral(question), &mut made, stop)?;
    let mut single = vec![own];
    for text in texts.iter().skip(1) {
        single.push(rank(setup, &once, LaneQuery { question, text }, made.of_wording(text), stop)?);
    }
    let cut =
        |list: &[Ranked], to: usize| -> Ranking { Arc::new(List::from(list[..list.len().min(to)].to_vec())) };
    let mut rankings = Vec::new();
    for n in 1..=most {
        let asked = form(Some(Ask { times: n, by }));
        let fused = rank(setup, &asked, LaneQuery::neutral(question), &mut made, stop)?;
        let mut pool: Vec<Ranked> = Vec::new();
        for one in single.iter().take(n).flat_map(|list| list.iter().take(k)) {
            if pool.iter().all(|known| known.at != one.at) {
                pool.push(one.clone());
            }
        }
        rankings.extend([cut(&fused, k), cut(&pool, n * k), cut(&single[0], n * k)]);
    }
    let query = Query {
        question: question.clone(),
        lanes: vec![recipe.clone(); rankings.len()],
        k: most * k,
        source,
    };
    let mut run = Run::over(query, Depth::Top, rankings.iter().cloned());
    run.judge(setup, stop, &|_| ())?;
    if stop.is_set() {
        return Err(Stopped.into());
    }
    let judgments = run.outcome().judgments;
    let mrecall = |list: &Ranking| {
        let k = list.len().max(1);
        let doubt = Figures::doubt(list, &judgments, question, k).map(|doubt| doubt.mrecall.mean);
        doubt.or_else(|| Some(Figures::of(list, &judgments, question, k)?.mrecall))
    };
    let each = rankings.chunks(3).map_while(|three| {
        let [fused, pooled, deeper] = [mrecall(&three[0])?, mrecall(&three[1])?, mrecall(&three[2])?];
        Some(Asking { fused, pooled, deeper, distinct: three[1].len() })
    });
    let each = each.collect();
    let passages: BTreeSet<PassageIx> =
        rankings.iter().flat_map(|list| list.iter().map(|one| one.at)).collect();
    Ok(Answers { each, wordings: texts.len(), passages: passages.into_iter().collect(), judgments })
}

/// The wordings of a question: those by rule, and with a language model its own in their place. A form that the model leaves out keeps the
/// rule's words; one that it words like another form has none.
///
/// # Errors
/// A named model cannot be opened, or `stop` was set.
pub fn worded(
    setup: &Setup,
    question: &Question,
    persona: &str,
    by_model: bool,
    stop: &Stop,
) -> Result<Vec<Framed>, LaneError> {
    let by_rule = wordings(question, persona);
    if !by_model {
        return Ok(by_rule);
    }
    let Some(chat) = setup.chat.as_deref() else {
        return Err(LaneError::NoOrder(
            "a language model is to word the questions; name one with --llm URL, or recorded replies with --replies FILE"
                .into(),
        ));
    };
    let asked: Vec<&Framed> =
        by_rule.iter().filter(|one| !matches!(one.frame, Frame::Neutral | Frame::As(_))).collect();
    let forms: Vec<String> = asked.iter().map(|one| describe(one.frame, question, persona)).collect();
    let mut talk = Talk::new(chat, stop);
    let prompt = setup.prompts.get(Job::Wordings);
    let values = [("question", question.text.as_str()), ("forms", &forms.join("\n"))];
    let reply = talk.ask(&prompt.request(&values, 0))?;
    let texts = reply.as_ref().and_then(|reply| texts_of(&reply.text));
    let trouble = || talk.note("so it worded nothing").unwrap_or_else(|| "no usable reply".into());
    let reworded = by_rule.iter().map(|own| {
        let asked = !matches!(own.frame, Frame::Neutral | Frame::As(_));
        let text = texts.as_ref().and_then(|texts| texts.get(&own.frame.name()));
        match text {
            Some(text) if asked => Framed { frame: own.frame, text: Ok(text.clone()), by: By::Llm },
            _ if asked && own.text.is_err() => {
                let text = own.text.clone().map_err(|_| Missing::NoReply(trouble()));
                Framed { text, ..own.clone() }
            }
            _ => own.clone(),
        }
    });
    Ok(distinct(reworded.collect::<Vec<_>>()))
}

/// A line that asks the model for one form.
fn describe(frame: Frame, question: &Question, persona: &str) -> String {
    let side = |side: usize| match question.perspectives.get(side) {
        Some(statement) => format!("“{statement}”"),
        None => ["the case for it", "the case against it"][side.min(1)].to_owned(),
    };
    let what = match frame {
        Frame::Neutral | Frame::As(_) | Frame::Typed => String::new(),
        Frame::Loaded(own) => format!("a question that takes for granted: {}", side(own)),
        Frame::Only(own) => format!("asks for {}, but not for {}", side(own), side(1 - own.min(1))),
        Frame::Negated => "the question with a negation (not, without, other than)".into(),
        Frame::Keywords => "keywords alone, as typed into a search engine".into(),
        Frame::Persona => format!("asked by {persona}, who says so"),
    };
    format!("{}: {what}", frame.name())
}

/// The texts of a reply, by the names of their forms; `None` if it is no JSON object of texts.
fn texts_of(reply: &str) -> Option<BTreeMap<String, String>> {
    let (from, to) = (reply.find('{')?, reply.rfind('}')?);
    let read: BTreeMap<String, String> = serde_json::from_str(reply.get(from..=to)?).ok()?;
    let texts = read.into_iter().map(|(name, text)| (name, text.trim().to_owned()));
    Some(texts.filter(|(_, text)| !text.is_empty()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::opening::Opening;
    use crate::question::wordings::PERSONA;

    fn sample() -> (tempfile::TempDir, Setup) {
        let folder = tempfile::tempdir().unwrap();
        let opening = Opening { data_dir: folder.path().to_owned(), ..Opening::default() };
        let setup = Setup::open(&opening, &|_| (), &Stop::never()).unwrap();
        (folder, setup)
    }

    #[test]
    fn a_lane_asked_in_all_wordings_has_a_list_for_each_and_the_neutral_one_is_at_no_distance() {
        let (_folder, setup) = sample();
        let question = setup.questions[0].clone();
        let words = worded(&setup, &question, PERSONA, false, &Stop::never()).unwrap();
        let gold = (5, LabelSource::Gold);
        let own = framing(&setup, &"bm25".parse().unwrap(), &question, &words, gold, &[], &Stop::never());
        let own = own.unwrap();
        assert_eq!(own.asked.len(), 10);
        assert!(own.asked.iter().all(|one| one.list.is_some() && one.shares.is_some()));
        assert!(own.asked[0].distance.unwrap().abs() < 1e-12 && own.asked[0].new == Some(0));
        let sensitivity = own.sensitivity.unwrap();
        assert!(sensitivity > 0.0 && sensitivity < 1.0, "{sensitivity}");
        let (negation, exclusion) = (own.negation.unwrap(), own.exclusion.unwrap());
        assert!((0.0..=1.0).contains(&negation) && (0.0..=1.0).contains(&exclusion));
        // BM25 reads both excluding questions as the same bag of words, but for their counts of "not".
        assert!(exclusion < 0.2, "{exclusion}");
    }

    #[test]
    fn a_wording_without_a_text_is_left_out_of_all_figures() {
        let (_folder, setup) = sample();
        let (question, _) = crate::question::resolve("Which food is the best?", &[], &[]);
        let words = worded(&setup, &question, PERSONA, false, &Stop::never()).unwrap();
        let gold = (5, LabelSource::Gold);
        let own = framing(&setup, &"bm25".parse().unwrap(), &question, &words, gold, &[], &Stop::never());
        let own = own.unwrap();
        let missing = own.asked.iter().filter(|one| one.list.is_none()).count();
        assert!(missing > 0 && own.negation.is_none() && own.asked[0].mrecall.is_none());
    }

    #[test]
    fn asking_more_often_never_loses_a_passage_of_the_pool_and_asking_once_is_the_lane_itself() {
        let (_folder, setup) = sample();
        let (question, bm25) = (setup.questions[0].clone(), "bm25".parse::<Recipe>().unwrap());
        let (gold, ways) = ((5, LabelSource::Gold), (4, Fusion::Rrf));
        let stop = Stop::never();
        let asked = asking(&setup, &bm25, &question, gold, ways, &[], &stop).unwrap();
        let answers = asked.each;
        assert_eq!((answers.len(), asked.wordings), (4, 4));
        let first = answers[0];
        assert_eq!((first.fused, first.pooled), (first.deeper, first.deeper), "{first:?}");
        assert_eq!(first.distinct, 5);
        assert!(answers.is_sorted_by(|a, b| a.distinct <= b.distinct && a.pooled <= b.pooled), "{answers:?}");
        let ask = |recipe: &str| {
            let (recipe, query) = (recipe.parse().unwrap(), LaneQuery::neutral(&question));
            rank(&setup, &recipe, query, &mut Lists::default(), &stop).unwrap()
        };
        let ids = |list: &Ranking| list.iter().map(|one| one.passage.id.clone()).collect::<Vec<_>>();
        assert_eq!(ids(&ask("bm25+ask@1")), ids(&ask("bm25")));
        // "Not" is a stop word of BM25, so that both sides read alike; vectors differ.
        assert_eq!(ids(&ask("bm25+ask@3")), ids(&ask("bm25")));
        assert_ne!(ids(&ask("minilm+ask@3")), ids(&ask("minilm")));
    }

    #[test]
    fn a_model_s_wordings_are_read_from_its_object_and_nothing_else() {
        let texts = texts_of("Here:\n{\"negated\": \"Should zoos stay?\", \"keywords\": \" \"}").unwrap();
        assert_eq!(texts.get("negated").map(String::as_str), Some("Should zoos stay?"));
        assert_eq!(texts.get("keywords"), None, "an empty text is none");
        assert_eq!(texts_of("no"), None);
        assert_eq!(texts_of("{\"negated\": 3}"), None);
    }
}
