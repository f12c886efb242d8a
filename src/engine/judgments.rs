//! All labels and verdicts on the passages of one question, and which of them count.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::list::Ranked;
use crate::corpus::PassageIx;
use crate::detect::{
    By, Decision, DetectError, LabelSource, Outcome as Side, PairLabels, Reading, Rule, Verdict,
};
use crate::measure::SupportSet;
use crate::measure::expected::Chances;
use crate::question::Question;

/// The labels and verdicts on every (passage, statement) of one question, and the rule for which of them count.
///
/// If a question has two opposite statements, the model decides about the passage, not about each pair: it supports one, the other,
/// both or neither, or its side is unclear ([`Decision`]). One passage is never judged by two sources.
#[derive(Clone, Debug, Default)]
pub struct Judgments {
    pub(super) known: HashMap<(PassageIx, usize), PairLabels>,
    /// The model's decisions about passages that it has read with both statements.
    decisions: HashMap<PassageIx, Decision>,
    /// The number of statements.
    pub perspectives: usize,
    /// Whether there are two opposite statements.
    opposite: bool,
    /// Which labels count.
    pub source: LabelSource,
    /// How the model's readings become decisions.
    rule: Arc<Rule>,
    revision: u64,
}

impl Judgments {
    /// No judgments yet.
    pub fn new(question: &Question, source: LabelSource, rule: Arc<Rule>) -> Self {
        Judgments {
            perspectives: question.perspectives.len(),
            opposite: question.sides().is_some(),
            source,
            rule,
            ..Judgments::default()
        }
    }

    /// How the model's readings become decisions.
    pub fn rule(&self) -> &Rule {
        &self.rule
    }

    /// The rule, to be shared.
    pub fn shared_rule(&self) -> Arc<Rule> {
        Arc::clone(&self.rule)
    }

    /// Replaces the rule and decides about all passages again.
    pub fn decide_by(&mut self, rule: Arc<Rule>) {
        self.rule = rule;
        let passages: HashSet<PassageIx> = self.known.keys().map(|(passage, _)| *passage).collect();
        passages.into_iter().for_each(|passage| self.decide(passage));
        self.revision += 1;
    }

    /// Replaces the labels and the verdict on a pair. If `known` has no verdict, an earlier one stays.
    pub fn write(&mut self, passage: PassageIx, perspective: usize, known: PairLabels) {
        let pair = self.known.entry((passage, perspective)).or_default();
        let model = known.model.or_else(|| pair.model.take());
        *pair = PairLabels { model, ..known };
        self.decide(passage);
        self.revision += 1;
    }

    /// Takes a verdict from another thread. The labels by hand on a known pair stay: their changes come in replies of their own, which may
    /// have overtaken the verdict.
    pub fn take(&mut self, passage: PassageIx, perspective: usize, known: PairLabels) {
        let known = match self.pair(passage, perspective) {
            Some(&PairLabels { human, tied, .. }) => PairLabels { human, tied, ..known },
            None => known,
        };
        self.write(passage, perspective, known);
    }

    /// Decides about a passage once its two statements were read.
    fn decide(&mut self, passage: PassageIx) {
        let read = |perspective| self.reading(passage, perspective);
        let decision = match (read(0), read(1)) {
            (Some(first), Some(second)) if self.opposite => self.rule.decide([first, second]),
            _ => None,
        };
        match decision {
            Some(decision) => drop(self.decisions.insert(passage, decision)),
            None => drop(self.decisions.remove(&passage)),
        }
    }

    fn reading(&self, passage: PassageIx, perspective: usize) -> Option<&Reading> {
        self.pair(passage, perspective)?.model.as_ref()?.as_ref().ok()
    }

    /// Whether the model can still judge a pair: it has not done so, and the corpus holds the passage.
    pub(super) fn is_open(&self, passage: PassageIx, perspective: usize) -> bool {
        passage.as_outside().is_none()
            && self.pair(passage, perspective).is_none_or(|known| known.model.is_none())
    }

    /// Replaces the label by hand on a pair: `Some(None)` is a tie of annotators. Other labels and the verdict stay.
    pub fn set_human(&mut self, passage: PassageIx, perspective: usize, human: Option<Option<bool>>) {
        let pair = self.known.entry((passage, perspective)).or_default();
        (pair.human, pair.tied) = (human.flatten(), human == Some(None));
        self.revision += 1;
    }

    /// The number of changes so far. Results computed from the judgments are valid until it changes.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Takes a revision that neither these judgments nor `others`, which they replace, had before.
    pub fn replaces(&mut self, others: &Judgments) {
        self.revision = self.revision.max(others.revision) + 1;
    }

    /// All labels and verdicts on a pair.
    pub fn pair(&self, passage: PassageIx, perspective: usize) -> Option<&PairLabels> {
        self.known.get(&(passage, perspective))
    }

    fn pairs(&self, passage: PassageIx) -> impl Iterator<Item = &PairLabels> {
        (0..self.perspectives).filter_map(move |perspective| self.pair(passage, perspective))
    }

    /// The source whose judgments of a passage count. With `auto`: labels by hand if the passage has one, else gold labels if it has one,
    /// else the model. A statement for which that source has no label stays unjudged.
    pub fn owner(&self, passage: PassageIx) -> By {
        match self.source {
            LabelSource::Model => By::Model,
            LabelSource::Gold => By::Gold,
            LabelSource::Human => By::Human,
            LabelSource::Auto if self.pairs(passage).any(PairLabels::by_hand) => By::Human,
            LabelSource::Auto if self.pairs(passage).any(|known| known.gold.is_some()) => By::Gold,
            LabelSource::Auto => By::Model,
        }
    }

    /// The verdict that counts for a pair.
    pub fn verdict(&self, passage: PassageIx, perspective: usize) -> Option<Verdict> {
        let by = self.owner(passage);
        let label = |supports: bool| Verdict { supports: Some(supports), p: None, by };
        match by {
            By::Human => self.pair(passage, perspective)?.human.map(label),
            By::Gold => self.pair(passage, perspective)?.gold.map(label),
            By::Model => self.by_model(passage, perspective),
        }
    }

    /// The model's verdict on a pair, whether or not it counts.
    pub fn by_model(&self, passage: PassageIx, perspective: usize) -> Option<Verdict> {
        let (supports, p) = if self.opposite {
            let decision = self.decisions.get(&passage)?;
            (decision.outcome.supports(perspective), decision.supports(perspective) as f32)
        } else {
            let p = self.rule.single(self.reading(passage, perspective)?);
            let supports = p >= self.rule.threshold;
            ((supports || !self.unclear_of_many(passage)).then_some(supports), p)
        };
        Some(Verdict { supports, p: Some(p), by: By::Model })
    }

    /// Whether the passage takes a side but it is unclear which: its greatest probability is in [ρ, θ).
    fn unclear_of_many(&self, passage: PassageIx) -> bool {
        let single = |perspective| Some(self.rule.single(self.reading(passage, perspective)?));
        let all: Option<Vec<f32>> = (0..self.perspectives).map(single).collect();
        let greatest = all.unwrap_or_default().into_iter().reduce(f32::max);
        greatest.is_some_and(|p| f64::from(p) >= self.rule.heads.rho && p < self.rule.threshold)
    }

    /// Whether the model counts and says that the passage's side is unclear.
    pub fn is_unclear(&self, passage: PassageIx) -> bool {
        let unclear = |perspective| self.by_model(passage, perspective).is_some_and(|v| v.supports.is_none());
        self.owner(passage) == By::Model && (0..self.perspectives).any(unclear)
    }

    /// Whether the model counts, was asked, and gave no verdict on the passage: it refused, failed, or its reply could not be read.
    pub fn has_failed(&self, passage: PassageIx) -> bool {
        // The model is never asked about such texts.
        let unsuitable =
            |error: &DetectError| matches!(error, DetectError::Empty(_) | DetectError::Foreign { .. });
        let failed = |known: &PairLabels| matches!(&known.model, Some(Err(error)) if !unsuitable(error));
        self.owner(passage) == By::Model && self.pairs(passage).any(failed)
    }

    /// The decision that counts for a passage, if there are two opposite statements: the model's with its probabilities, or the one
    /// that its labels make.
    pub fn decision(&self, passage: PassageIx) -> Option<Decision> {
        if self.owner(passage) == By::Model {
            return self.decisions.get(&passage).copied();
        }
        let set = self.support(passage).filter(|_| self.opposite)?;
        let (outcome, p) = match (set.contains(0), set.contains(1)) {
            (true, false) => (Side::Side(0), [1.0, 0.0, 0.0, 0.0]),
            (false, true) => (Side::Side(1), [0.0, 1.0, 0.0, 0.0]),
            (true, true) => (Side::Both, [0.0, 0.0, 1.0, 0.0]),
            (false, false) => (Side::Neither, [0.0, 0.0, 0.0, 1.0]),
        };
        Some(Decision { outcome, engaged: 1.0 - p[3], p })
    }

    /// The model's decision about a passage, whether or not it counts.
    pub fn by_model_alone(&self, passage: PassageIx) -> Option<Decision> {
        self.decisions.get(&passage).copied()
    }

    /// The model's probability of the mark that is shown with a passage; `None` where the side is unclear, for then no mark is probable
    /// enough. With other than two opposite statements, that of the likeliest.
    pub fn shown(&self, passage: PassageIx) -> Option<f64> {
        if self.owner(passage) != By::Model {
            return None;
        }
        match self.decisions.get(&passage) {
            Some(decision) => match decision.outcome {
                Side::Side(side) => Some(decision.p[side]),
                Side::Both => Some(decision.p[2]),
                Side::Neither => Some(decision.p[3]),
                Side::Unclear => None,
            },
            None => {
                let each = (0..self.perspectives).filter_map(|i| self.by_model(passage, i)?.p.map(f64::from));
                let greatest = each.reduce(f64::max)?;
                Some(if self.support(passage)?.is_empty() { 1.0 - greatest } else { greatest })
            }
        }
    }

    /// The statements that a passage supports; `None` until each has a verdict that counts, and `None` if one is unclear. If labels
    /// count, one positive label is enough, because many label files list positives only.
    pub fn support(&self, passage: PassageIx) -> Option<SupportSet> {
        let mut missing = false;
        let set = (0..self.perspectives).try_fold(SupportSet::EMPTY, |set, perspective| {
            match self.verdict(passage, perspective).and_then(|verdict| verdict.supports) {
                Some(true) => set.with(perspective).ok(),
                Some(false) => Some(set),
                None => {
                    missing = true;
                    Some(set)
                }
            }
        })?;
        let enough = !missing || (self.owner(passage) != By::Model && !set.is_empty());
        enough.then_some(set)
    }

    /// The probabilities that a passage supports each statement: the model's if its verdict counts, the development split's if the model
    /// failed, 1 or 0 if a label counts. `None` if the passage is not judged.
    pub fn chances(&self, passage: PassageIx) -> Option<Chances> {
        if self.owner(passage) != By::Model {
            let set = self.support(passage)?;
            let certain = |perspective| f64::from(u8::from(set.contains(perspective)));
            return Some(Chances::Each((0..self.perspectives).map(certain).collect()));
        }
        if self.opposite {
            let prior = || self.has_failed(passage).then(|| self.rule.prior());
            return self.decisions.get(&passage).map(|decision| decision.p).or_else(prior).map(Chances::Two);
        }
        let each = |perspective| Some(f64::from(self.rule.single(self.reading(passage, perspective)?)));
        Some(Chances::Each((0..self.perspectives).map(each).collect::<Option<_>>()?))
    }

    /// Whether judging a passage is finished: its support is known, or the model was asked about every statement.
    pub fn is_settled(&self, passage: PassageIx) -> bool {
        self.owner(passage) != By::Model
            || self.support(passage).is_some()
            || (0..self.perspectives).all(|perspective| !self.is_open(passage, perspective))
    }

    /// Whether the passage is settled, and labelled if only labels by hand count.
    pub fn is_complete(&self, passage: PassageIx) -> bool {
        let labelled = || self.pairs(passage).any(PairLabels::by_hand);
        self.is_settled(passage) && (self.source != LabelSource::Human || labelled())
    }

    /// Whether there are two opposite statements and the model's rule shows no sides.
    pub fn shows_no_side(&self) -> bool {
        self.opposite && !self.rule.shows_sides()
    }

    /// Whether the model's verdicts count for any of these passages.
    pub fn is_by_model(&self, top: &[Ranked]) -> bool {
        top.iter().any(|ranked| self.owner(ranked.at) == By::Model && self.chances(ranked.at).is_some())
    }

    /// [`Judgments::support`] of every passage of a list.
    pub fn supports(&self, ranking: &[Ranked]) -> Vec<Option<SupportSet>> {
        ranking.iter().map(|ranked| self.support(ranked.at)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::decision::Heads;
    use crate::engine::judge::Shares;

    fn opposite() -> Question {
        let perspectives = vec!["a".into(), "b".into()];
        Question { perspectives, supports: Some(0), ..Question::default() }
    }

    fn judgments(source: LabelSource) -> Judgments {
        Judgments::new(&opposite(), source, Arc::default())
    }

    fn gold(supports: bool) -> PairLabels {
        PairLabels { gold: Some(supports), ..PairLabels::default() }
    }

    fn read(p: f32) -> PairLabels {
        PairLabels { model: Some(Ok(Reading::of(p))), ..PairLabels::default() }
    }

    const AT: PassageIx = PassageIx(0);

    #[test]
    fn one_yes_is_enough_where_a_label_counts_and_no_model_fills_the_other_side() {
        for source in [LabelSource::Gold, LabelSource::Auto] {
            let mut judgments = judgments(source);
            assert_eq!(judgments.support(AT), None);
            judgments.write(AT, 1, gold(false));
            assert_eq!(judgments.support(AT), None, "a single no leaves the other side open");
            judgments.write(AT, 0, read(0.9));
            assert_eq!(judgments.support(AT), None, "the model says nothing of a labelled passage");
            judgments.write(AT, 1, PairLabels { gold: Some(true), ..read(0.1) });
            assert_eq!(judgments.support(AT), SupportSet::EMPTY.with(1).ok());
            assert_eq!(judgments.verdict(AT, 0), None);
            judgments.source = LabelSource::Model;
            assert_eq!(judgments.support(AT), SupportSet::EMPTY.with(0).ok());
        }
    }

    #[test]
    fn one_decision_by_hand_makes_the_passage_people_s_and_a_tie_is_no_label() {
        let mut judgments = judgments(LabelSource::Auto);
        judgments.write(AT, 0, PairLabels { gold: Some(true), ..read(0.9) });
        judgments.write(AT, 1, PairLabels { gold: Some(false), ..read(0.1) });
        assert_eq!(judgments.owner(AT), By::Gold);
        judgments.set_human(AT, 1, Some(Some(true)));
        assert_eq!((judgments.owner(AT), judgments.verdict(AT, 0)), (By::Human, None));
        assert_eq!(judgments.support(AT), SupportSet::EMPTY.with(1).ok());
        judgments.write(AT, 1, PairLabels { tied: true, gold: Some(false), ..PairLabels::default() });
        assert_eq!((judgments.owner(AT), judgments.support(AT)), (By::Human, None));
        assert!(judgments.is_settled(AT) && judgments.chances(AT).is_none());
        judgments.source = LabelSource::Human;
        assert_eq!(judgments.support(AT), None);
    }

    #[test]
    fn the_model_decides_on_the_passage_and_an_unclear_one_is_unjudged() {
        let mut judgments = judgments(LabelSource::Auto);
        judgments.write(AT, 0, read(0.9));
        assert_eq!(judgments.verdict(AT, 0), None, "one statement alone decides nothing");
        judgments.write(AT, 1, read(0.85));
        assert!(judgments.is_unclear(AT) && judgments.is_settled(AT));
        assert_eq!((judgments.support(AT), judgments.verdict(AT, 0).unwrap().supports), (None, None));
        let Some(Chances::Two(p)) = judgments.chances(AT) else { panic!("no chances") };
        assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-12 && p[0] > p[1], "{p:?}");
        judgments.write(AT, 1, read(0.1));
        assert_eq!(judgments.support(AT), SupportSet::EMPTY.with(0).ok());
        let silent = Rule { heads: Heads { tau: None, ..Rule::default().heads }, ..Rule::default() };
        judgments.decide_by(Arc::new(silent));
        assert!(judgments.is_unclear(AT), "another rule decides anew on what was read");
    }

    #[test]
    fn the_number_beside_a_mark_is_the_probability_of_that_mark() {
        let shown = |first: f32, second: f32| {
            let mut judgments = judgments(LabelSource::Model);
            judgments.write(AT, 0, read(first));
            judgments.write(AT, 1, read(second));
            (judgments.shown(AT), judgments.decision(AT).unwrap().p)
        };
        let (side, p) = shown(0.05, 0.95);
        assert_eq!(side, Some(p[1]));
        let (neither, p) = shown(0.05, 0.05);
        assert!(neither == Some(p[3]) && p[3] > 0.5, "{p:?}");
        assert_eq!(shown(0.9, 0.85).0, None, "an unclear side has no mark to be sure of");
        let question = Question { perspectives: vec!["a".into(); 3], ..Question::default() };
        let mut many = Judgments::new(&question, LabelSource::Model, Arc::default());
        for (i, p) in [0.1, 0.2, 0.3].into_iter().enumerate() {
            many.write(AT, i, read(p));
        }
        assert!((many.shown(AT).unwrap() - 0.7).abs() < 1e-6, "none: the likeliest is not supported");
        many.write(AT, 1, read(0.9));
        assert!((many.shown(AT).unwrap() - 0.9).abs() < 1e-6);
    }

    #[test]
    fn a_passage_without_a_verdict_has_the_chances_of_the_development_split() {
        let mut judgments = judgments(LabelSource::Model);
        judgments.write(AT, 0, read(0.9));
        let model = Some(Err(DetectError::Unanswered("timed out".into())));
        judgments.write(AT, 1, PairLabels { model, ..PairLabels::default() });
        assert_eq!(judgments.chances(AT), Some(Chances::Two(Rule::default().prior())));
        assert!(judgments.has_failed(AT) && judgments.support(AT).is_none());
        let shares = Shares::of(&judgments, [AT, AT]);
        assert_eq!((shares.failed, shares.all()), (1, 1));
    }

    #[test]
    fn of_many_statements_each_has_a_probability_and_the_greatest_may_be_unclear() {
        let three = Question { perspectives: ["a", "b", "c"].map(Into::into).into(), ..Question::default() };
        let rule = Rule { threshold: 0.8, ..Rule::default() };
        let mut judgments = Judgments::new(&three, LabelSource::Model, Arc::new(rule));
        for (i, p) in [0.9, 0.85, 0.1].into_iter().enumerate() {
            judgments.write(AT, i, read(p));
        }
        assert_eq!(judgments.support(AT), SupportSet::of([0, 1]).ok());
        judgments.write(AT, 0, read(0.6));
        judgments.write(AT, 1, read(0.2));
        assert!(judgments.is_unclear(AT) && judgments.support(AT).is_none());
        judgments.write(AT, 0, read(0.4));
        assert_eq!(judgments.support(AT), Some(SupportSet::EMPTY));
        assert!(judgments.decision(AT).is_none());
    }

    #[test]
    fn who_judged_is_said_in_words() {
        let mut rule = Rule::default();
        rule.about.name = "MiniLM".into();
        let words = |shares: Shares| shares.words(&rule, "gold labels");
        assert_eq!(words(Shares { gold: 5, ..Shares::default() }), "judged by gold labels");
        let mixed = Shares { human: 1, gold: 1, model: 1, unclear: 1, failed: 0 };
        assert_eq!(
            words(mixed),
            "judged by labels by hand (25 %) and gold labels (25 %) and MiniLM, not measured on our test, default thresholds (50 %); \
             1 of 2 verdicts unclear"
        );
        rule.heads.tau = None;
        let text = Shares { unclear: 2, ..Shares::default() }.words(&rule, "gold labels");
        assert!(text.ends_with("this detector shows no side: it is not right often enough"), "{text}");
    }
}
