//! What the annotate screen knows: the desk with its passages, which of them is shown, and what is being decided of it.

use std::collections::VecDeque;
use std::ops::Range;

use crossterm::event::KeyEvent;
use tui_input::Input;

use crate::annotate::{Item, Key, Order, View, doubt, queue, text_hash};
use crate::engine::Desk;
use crate::measure::agreement::{Agreement, cohen_kappa};
use crate::question::Question;

/// Passages being labelled by hand.
#[derive(Clone, Debug, Default)]
pub struct Labelling {
    /// What lies before the annotator; none while it is fetched.
    pub desk: Option<Result<Box<Desk>, String>>,
    /// The passages by their places on the desk, in the order they come.
    pub queue: Vec<usize>,
    /// The one shown, by its place in the queue.
    pub at: usize,
    /// What is held of it, or being decided.
    pub draft: View,
    /// An act is on its way to the disk; whether the next passage is shown after it.
    pub saving: Option<bool>,
    /// Keys pressed while it is: they are pressed after it, whatever they mean then.
    pub ahead: VecDeque<KeyEvent>,
    /// In which order the passages come.
    pub order: Order,
    /// Lane, rank and the model's verdict are hidden.
    pub blind: bool,
    /// The survey that asks the model, and what it said of each passage so far.
    pub number: u64,
    /// Probabilities by passage and statement.
    pub weighed: Vec<Option<Vec<Option<f32>>>>,
    /// First line of the text that is shown.
    pub scroll: usize,
    /// The guidelines are shown in place of the passage.
    pub guide: bool,
    /// A note being typed.
    pub typed: Option<Input>,
    /// Evidence being marked.
    pub marking: Option<Marking>,
    /// How far the annotator is, after the last act.
    pub pace: Pace,
    /// Agreement with every other annotator, after the last act.
    pub agreement: Vec<(String, Agreement)>,
    /// Evidence that was marked before the label was given.
    pub marked: Option<String>,
}

/// Words of the passage being marked as evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marking {
    /// The words, as bytes of the text.
    pub words: Vec<Range<usize>>,
    /// The word with the cursor.
    pub at: usize,
    /// Where the evidence begins, once that was said.
    pub from: Option<usize>,
}

impl Marking {
    /// The bytes that are marked now.
    pub fn range(&self) -> Range<usize> {
        let from = self.from.unwrap_or(self.at);
        let (first, last) = (from.min(self.at), from.max(self.at));
        let word = |i: usize| self.words.get(i).cloned().unwrap_or_default();
        word(first).start..word(last).end
    }
}

/// How far the annotator is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pace {
    /// Passages labelled for every statement.
    pub done: usize,
    /// Passages passed over.
    pub skipped: usize,
    /// Passages in all.
    pub all: usize,
    /// Half of the labels took no longer than this, in milliseconds.
    pub median: Option<u64>,
}

impl Labelling {
    /// The desk, once it is there.
    pub fn open(&self) -> Option<&Desk> {
        self.desk.as_ref()?.as_deref().ok()
    }

    /// The passage that is shown.
    pub fn item(&self) -> Option<&Item> {
        self.open()?.items.get(*self.queue.get(self.at)?)
    }

    /// Its question.
    pub fn question(&self) -> Option<&Question> {
        let (desk, item) = (self.open()?, self.item()?);
        desk.questions.iter().find(|question| question.text == item.question)
    }

    /// What the annotator holds of it, as written down.
    pub fn held(&self) -> View {
        self.queue.get(self.at).and_then(|place| self.view(*place)).cloned().unwrap_or_default()
    }

    /// Whether two machines of this annotator say different things of it.
    pub fn in_conflict(&self) -> bool {
        let Some((item, desk)) = self.item().zip(self.open()) else { return false };
        let key = item.key(&desk.by);
        desk.history.heads(&key).len() > 1 && desk.history.view(&key).is_none()
    }

    /// What the model says of it, as far as it was asked.
    pub fn model(&self) -> Option<&[Option<f32>]> {
        self.weighed.get(*self.queue.get(self.at)?)?.as_deref()
    }

    /// What is held of the passage at a place of the desk; nothing where it was decided on another text.
    fn view(&self, place: usize) -> Option<&View> {
        let desk = self.open()?;
        let item = desk.items.get(place)?;
        let key = item.key(&desk.by);
        let text = text_hash(&item.passage);
        let same = desk.history.heads(&key).iter().all(|head| head.text == text);
        desk.history.view(&key).filter(|_| same)
    }

    /// Whether the passage at a place of the desk is labelled for every statement of its question.
    fn is_done(&self, place: usize) -> bool {
        let Some(desk) = self.open() else { return false };
        let question = desk.items.get(place).map(|item| &item.question);
        let question =
            question.and_then(|text| desk.questions.iter().find(|question| question.text == *text));
        let Some((question, view)) = question.zip(self.view(place)) else { return false };
        question.perspectives.iter().all(|statement| view.answers.contains_key(statement))
    }

    fn is_skipped(&self, place: usize) -> bool {
        self.view(place).is_some_and(|view| view.skipped)
    }

    /// The next place in the queue that is to be labelled: after this one, then from the top, and what was passed over at last.
    pub fn next(&self) -> Option<usize> {
        let turn = || (1..=self.queue.len()).map(|step| (self.at + step) % self.queue.len());
        let open = |at: &usize| !self.is_done(self.queue[*at]);
        turn().filter(open).find(|at| !self.is_skipped(self.queue[*at])).or_else(|| turn().find(open))
    }

    /// The place in the queue of what a key names.
    pub fn find(&self, key: &Key) -> Option<usize> {
        let desk = self.open()?;
        self.queue.iter().position(|place| desk.items[*place].key(&desk.by) == *key)
    }

    /// Puts the passages into the order asked for.
    pub fn arrange(&mut self, threshold: f32) {
        let Some(Ok(desk)) = &self.desk else { return };
        let unsure = |item: &Item| {
            let place = desk.items.iter().position(|other| std::ptr::eq(other, item))?;
            let said: Vec<f32> = self.weighed.get(place)?.as_ref()?.iter().flatten().copied().collect();
            doubt(&said, threshold)
        };
        self.queue = queue(&desk.items, self.order, desk.seed, &desk.lanes, &unsure);
    }

    /// Puts what follows into the order asked for; the passage that is shown stays.
    pub fn rearrange(&mut self, threshold: f32) {
        let Some(shown) = self.queue.get(self.at).copied() else { return };
        self.arrange(threshold);
        self.queue.retain(|place| *place != shown);
        self.queue.insert(0, shown);
        self.at = 0;
    }

    /// Shows a passage of the queue.
    pub fn show(&mut self, at: usize) {
        self.at = at;
        (self.scroll, self.guide) = (0, false);
        (self.marked, self.marking, self.typed) = (None, None, None);
        self.draft = self.held();
    }

    /// Something was written down: counts it in.
    pub fn recount(&mut self) {
        (self.pace, self.agreement) = (self.how_far(), self.agreed());
    }

    /// How far the annotator is, over what lies on the desk.
    fn how_far(&self) -> Pace {
        let Some(desk) = self.open() else { return Pace::default() };
        let done = (0..desk.items.len()).filter(|place| self.is_done(*place)).count();
        let skipped =
            (0..desk.items.len()).filter(|place| !self.is_done(*place) && self.is_skipped(*place)).count();
        let heads = desk.items.iter().flat_map(|item| desk.history.heads(&item.key(&desk.by)));
        let labelled = heads.filter(|head| !head.view.answers.is_empty());
        let mut took: Vec<u64> = labelled.filter_map(|head| head.took).collect();
        took.sort_unstable();
        Pace { done, skipped, all: desk.items.len(), median: took.get(took.len() / 2).copied() }
    }

    /// Agreement with every other annotator, over the pairs that both decided.
    fn agreed(&self) -> Vec<(String, Agreement)> {
        let Some(desk) = self.open() else { return Vec::new() };
        let mut names: Vec<&str> = desk.others.iter().map(|other| other.by.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let with = |name: &str| {
            let theirs = desk.others.iter().filter(|other| other.by == name);
            let pairs: Vec<(bool, bool)> = theirs
                .filter_map(|other| {
                    let (by, question, passage) =
                        (desk.by.clone(), other.question.clone(), other.passage.clone());
                    let view = desk.history.view(&Key { by, question, passage })?;
                    Some((*view.answers.get(&other.perspective)?, other.supports))
                })
                .collect();
            (name.to_owned(), cohen_kappa(&pairs))
        };
        names.into_iter().map(with).filter(|(_, agreement)| agreement.doubly_labelled > 0).collect()
    }
}
