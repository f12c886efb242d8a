//! The state of the labelling screen: the annotation with its passages, the passage shown, and the decision being made.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::ops::Range;

use crossterm::event::KeyEvent;
use tui_input::Input;

use crate::annotate::narrowing::{Narrowing, narrowing};
use crate::annotate::{Decision, Human, Item, Key, Order, View, doubt, queue, text_hash};
use crate::detect::sentences;
use crate::engine::{AnnotationState, Recipe};
use crate::measure::agreement::{Agreement, cohen_kappa};
use crate::measure::expected::Chances;
use crate::measure::score::Column;
use crate::question::Question;
use crate::report::marks::Glyphs;
use crate::tui::widgets::text::Row;

/// The state of the labelling screen.
#[derive(Clone, Debug, Default)]
pub struct Labelling {
    /// The passages to label with their history; `None` until they have arrived.
    pub annotation: Option<Result<Box<AnnotationState>, String>>,
    /// The order of the passages, as indices into the annotation's items.
    pub queue: Vec<usize>,
    /// The passage shown, as an index into the queue.
    pub at: usize,
    /// The label of the passage shown as it is being decided.
    pub draft: View,
    /// The passage that was under the cursor on the lanes: its question and its id. It is shown first.
    pub wanted: Option<(String, String)>,
    /// Set while a decision is being written: whether the next passage is shown afterwards.
    pub saving: Option<bool>,
    /// Keys pressed meanwhile; they are handled once it is written.
    pub ahead: VecDeque<KeyEvent>,
    /// The order of the passages.
    pub order: Order,
    /// Whether lane, rank and the model's verdict are hidden.
    pub blind: bool,
    /// Whether they were in sight since the passage appeared.
    pub glimpsed: bool,
    /// The batch that asks the model.
    pub number: u64,
    /// The model's probabilities by passage and statement, as far as they have arrived.
    pub scored: Vec<Option<Vec<Option<f32>>>>,
    /// The passages that take a side, by the model, but it is unclear which.
    pub unclear: HashSet<usize>,
    /// The first statement on screen, by index: a question may have more statements than the window has rows.
    pub first: usize,
    /// The first visible line of the text.
    pub scroll: usize,
    /// Whether the guidelines are shown instead of the passage.
    pub guide: bool,
    /// The note being typed.
    pub typed: Option<Input>,
    /// A decision that settles a disagreement, while its reason is typed; and whether the next passage follows.
    pub settling: Option<(View, bool)>,
    /// The evidence being marked.
    pub marking: Option<Marking>,
    /// The annotator's progress.
    pub pace: Pace,
    /// The number of passages of a lane that count.
    pub k: usize,
    /// The figure whose interval is shown: an index over lanes and measures.
    pub figure: usize,
    /// The figure's name and how its interval narrows; `None` unless the questions were drawn at random.
    pub narrowing: Option<(String, Narrowing)>,
    /// The agreement with every other annotator.
    pub agreement: Vec<(String, Agreement)>,
    /// Evidence that was marked before the label was decided.
    pub marked: Option<String>,
    /// The text as it is drawn.
    pub text: LabelText,
}

/// The passage with its evidence, or the guidelines, laid out for one width.
#[derive(Clone, Debug, Default)]
pub struct LabelText {
    /// The rows, from the title on.
    pub rows: Vec<Row>,
    pub(super) inputs: Option<Inputs>,
}

/// The inputs of the rows.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Inputs {
    pub item: Option<(String, String)>,
    pub width: usize,
    pub glyphs: Glyphs,
    /// Whether lane and rank are hidden, and whether the guidelines are shown.
    pub shown: (bool, bool),
    pub evidence: BTreeMap<String, String>,
    pub marked: Option<String>,
    pub marking: Option<Range<usize>>,
    pub said: Vec<String>,
}

/// Words of the passage being marked as evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marking {
    /// The words, as byte ranges of the text.
    pub words: Vec<Range<usize>>,
    /// The index of the word under the cursor.
    pub at: usize,
    /// The word that the evidence begins with, once it is chosen.
    pub from: Option<usize>,
}

impl Marking {
    /// The indices of the words that the sentences of the text begin with.
    pub fn sentence_starts(&self, text: &str) -> Vec<usize> {
        let starts = sentences(text).into_iter();
        starts
            .filter_map(|sentence| self.words.iter().position(|word| word.start >= sentence.start))
            .collect()
    }

    /// The byte range that is marked.
    pub fn range(&self) -> Range<usize> {
        let from = self.from.unwrap_or(self.at);
        let (first, last) = (from.min(self.at), from.max(self.at));
        let word = |i: usize| self.words.get(i).cloned().unwrap_or_default();
        word(first).start..word(last).end
    }
}

/// The number of statements that a window of this height shows: above and below them are nine lines, two of them of the passage.
fn rows_for_statements(height: u16) -> usize {
    usize::from(height).saturating_sub(9).min(9)
}

/// An annotator's progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pace {
    /// Passages labelled for every statement.
    pub done: usize,
    /// Passages skipped.
    pub skipped: usize,
    /// All passages.
    pub all: usize,
    /// The median time per label in milliseconds.
    pub median: Option<u64>,
}

impl Labelling {
    /// The annotation, once it has arrived.
    pub fn open(&self) -> Option<&AnnotationState> {
        self.annotation.as_ref()?.as_deref().ok()
    }

    /// The passage that is shown.
    pub fn item(&self) -> Option<&Item> {
        self.open()?.items.get(*self.queue.get(self.at)?)
    }

    /// Its question.
    pub fn question(&self) -> Option<&Question> {
        let (annotation, item) = (self.open()?, self.item()?);
        annotation.questions.iter().find(|question| question.text == item.question)
    }

    /// The annotator's label of the passage shown, as written to the journal.
    pub fn held(&self) -> View {
        self.queue.get(self.at).and_then(|place| self.view(*place)).cloned().unwrap_or_default()
    }

    /// The statements on screen, by index: at most nine, because a digit chooses one, and no more than a window of this height has rows
    /// for beside two lines of the passage.
    pub fn on_screen(&self, height: u16) -> Range<usize> {
        let all = self.question().map_or(0, |question| question.perspectives.len());
        let rows = rows_for_statements(height);
        let first = if all <= rows { 0 } else { self.first.min(all) };
        first..(first + rows).min(all)
    }

    /// Shows the next statements, or those before.
    pub fn turn(&mut self, height: u16, forward: bool) {
        let (all, rows) = (self.question().map_or(0, |q| q.perspectives.len()), rows_for_statements(height));
        let next = if forward { self.first + rows } else { self.first.saturating_sub(rows) };
        if next < all {
            self.first = next;
        }
    }

    /// Shows the first statements of which one has no label yet; the first of all if there are none.
    pub fn turn_to_open(&mut self, height: u16) {
        let (held, rows) = (self.held(), rows_for_statements(height).max(1));
        let open = self.question().and_then(|question| {
            question.perspectives.iter().position(|statement| !held.answers.contains_key(statement))
        });
        self.first = open.unwrap_or(0) / rows * rows;
    }

    /// Whether two machines of this annotator have different labels of it.
    pub fn in_conflict(&self) -> bool {
        let Some((item, annotation)) = self.item().zip(self.open()) else { return false };
        let key = item.key(&annotation.by);
        annotation.history.heads(&key).len() > 1 && annotation.history.view(&key).is_none()
    }

    /// The others' labels of the passage shown, one line each: the annotator, the statements it supports, evidence and remark. Empty
    /// unless this annotator settles disagreements.
    pub fn said_by_others(&self) -> Vec<String> {
        let Some((item, annotation)) = self.item().zip(self.open()).filter(|(_, open)| open.adjudicates)
        else {
            return Vec::new();
        };
        let text = text_hash(&item.passage);
        let here = |one: &&Decision| one.question == item.question && one.text == text;
        let mut by_name: BTreeMap<&str, Vec<&Decision>> = BTreeMap::new();
        for one in annotation.others.iter().filter(here) {
            by_name.entry(&one.by).or_default().push(one);
        }
        let line = |(name, said): (&str, Vec<&Decision>)| {
            let mut parts = Vec::new();
            for one in &said {
                let word = if one.supports { "yes" } else { "no" };
                let evidence = one.evidence.as_ref().map(|words| format!(" (“{words}”)")).unwrap_or_default();
                parts.push(format!("{word}: {}{evidence}", one.perspective));
            }
            parts.extend(said.first().and_then(|one| one.note.as_ref()).map(|note| format!("note: {note}")));
            let why = said.iter().find_map(|one| one.seen.as_ref()?.settles.clone());
            parts.extend(why.map(|why| format!("settled, because {why}")));
            format!("{name} · {}", parts.join(" · "))
        };
        by_name.into_iter().map(line).collect()
    }

    /// The model's probabilities for it, if they have arrived.
    pub fn model(&self) -> Option<&[Option<f32>]> {
        self.scored.get(*self.queue.get(self.at)?)?.as_deref()
    }

    /// Whether it takes a side, by the model, but it is unclear which.
    pub fn is_unclear(&self) -> bool {
        self.queue.get(self.at).is_some_and(|place| self.unclear.contains(place))
    }

    /// The label of the passage at an index; `None` if it was decided on another text.
    fn view(&self, place: usize) -> Option<&View> {
        let annotation = self.open()?;
        let item = annotation.items.get(place)?;
        let key = item.key(&annotation.by);
        let text = text_hash(&item.passage);
        let same = annotation.history.heads(&key).iter().all(|head| head.text == text);
        annotation.history.view(&key).filter(|_| same)
    }

    /// Whether the passage at an index is labelled for every statement of its question.
    fn is_done(&self, place: usize) -> bool {
        let Some(annotation) = self.open() else { return false };
        let question = annotation.items.get(place).map(|item| &item.question);
        let question =
            question.and_then(|text| annotation.questions.iter().find(|question| question.text == *text));
        let Some((question, view)) = question.zip(self.view(place)) else { return false };
        question.perspectives.iter().all(|statement| view.answers.contains_key(statement))
    }

    fn is_skipped(&self, place: usize) -> bool {
        self.view(place).is_some_and(|view| view.skipped)
    }

    /// The next passage to label, as an index into the queue: after the one shown, then from the top; skipped passages come last.
    pub fn next(&self) -> Option<usize> {
        let following = || (1..=self.queue.len()).map(|step| (self.at + step) % self.queue.len());
        let open = |at: &usize| !self.is_done(self.queue[*at]);
        following()
            .filter(open)
            .find(|at| !self.is_skipped(self.queue[*at]))
            .or_else(|| following().find(open))
    }

    /// The index in the queue of the passage that a key names.
    pub fn find(&self, key: &Key) -> Option<usize> {
        let annotation = self.open()?;
        self.queue.iter().position(|place| annotation.items[*place].key(&annotation.by) == *key)
    }

    /// Puts the passages into the chosen order.
    pub fn arrange(&mut self, threshold: f32) {
        let Some(Ok(annotation)) = &self.annotation else { return };
        let unsure = |item: &Item| {
            let place = annotation.items.iter().position(|other| std::ptr::eq(other, item))?;
            let said: Vec<f32> = self.scored.get(place)?.as_ref()?.iter().flatten().copied().collect();
            doubt(&said, threshold)
        };
        self.queue = queue(&annotation.items, self.order, annotation.seed, &annotation.lanes, &unsure);
        if annotation.drawn.is_some() {
            // The first n questions of a draw are a random sample for any n, so their order stays; the chosen order holds within each question.
            let place =
                |item: &Item| annotation.questions.iter().position(|question| question.text == item.question);
            self.queue.sort_by_key(|at| place(&annotation.items[*at]));
        }
    }

    /// Puts all passages but the one shown into the chosen order.
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
        (self.scroll, self.guide, self.first, self.glimpsed) = (0, false, 0, !self.blind);
        (self.marked, self.marking, self.typed, self.settling) = (None, None, None, None);
        self.draft = self.held();
    }

    /// Recomputes progress, agreement and interval after a decision.
    pub fn recount(&mut self) {
        (self.pace, self.agreement) = (self.measure_pace(), self.agreements());
        self.narrowing = self.narrowing_of_figure();
    }

    /// The chosen figure's name and how its interval narrows.
    fn narrowing_of_figure(&self) -> Option<(String, Narrowing)> {
        let annotation = self.open()?;
        let drawn = annotation.drawn.as_ref()?;
        // Lists of other wordings are pooled too, under names that are not recipes.
        let lanes: Vec<&String> =
            annotation.lanes.iter().filter(|lane| lane.parse::<Recipe>().is_ok()).collect();
        let k = self.k.min(drawn.depth);
        let mut columns = Column::at(k, &[format!("Lean@{k}")]).ok()?;
        let columns = [columns.remove(0), columns.remove(0), columns.pop()?];
        let lane = lanes.get(self.figure / columns.len() % lanes.len().max(1))?;
        let column = columns[self.figure % columns.len()];
        let pool: Vec<Item> = annotation.items.iter().chain(&drawn.others).cloned().collect();
        let labels = annotation.history.decisions().into_iter().chain(annotation.others.iter().cloned());
        let judge = |place: usize| {
            let said = self.scored.get(place)?.as_ref()?;
            said.iter().map(|p| p.map(f64::from)).collect::<Option<Vec<f64>>>().map(Chances::Each)
        };
        let narrowing = narrowing(
            (&annotation.questions, &pool, drawn.of),
            (lane, column, k),
            &Human::of_pool(labels, &pool),
            &judge,
        );
        Some((format!("{column} of {lane}"), narrowing))
    }

    /// Shows the interval of the next figure.
    pub fn next_figure(&mut self) {
        self.figure += 1;
        self.narrowing = self.narrowing_of_figure();
    }

    /// The annotator's progress over all passages.
    fn measure_pace(&self) -> Pace {
        let Some(annotation) = self.open() else { return Pace::default() };
        let done = (0..annotation.items.len()).filter(|place| self.is_done(*place)).count();
        let skipped = (0..annotation.items.len())
            .filter(|place| !self.is_done(*place) && self.is_skipped(*place))
            .count();
        let heads =
            annotation.items.iter().flat_map(|item| annotation.history.heads(&item.key(&annotation.by)));
        let labelled = heads.filter(|head| !head.view.answers.is_empty());
        let mut took: Vec<u64> = labelled.filter_map(|head| head.took).collect();
        took.sort_unstable();
        Pace { done, skipped, all: annotation.items.len(), median: took.get(took.len() / 2).copied() }
    }

    /// The agreement with every other annotator, over the pairs that both decided.
    fn agreements(&self) -> Vec<(String, Agreement)> {
        let Some(annotation) = self.open() else { return Vec::new() };
        let mut names: Vec<&str> = annotation.others.iter().map(|other| other.by.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let with = |name: &str| {
            let theirs = annotation.others.iter().filter(|other| other.by == name);
            let pairs: Vec<(bool, bool)> = theirs
                .filter_map(|other| {
                    let (by, question, passage) =
                        (annotation.by.clone(), other.question.clone(), other.passage.clone());
                    let view = annotation.history.view(&Key { by, question, passage })?;
                    Some((*view.answers.get(&other.perspective)?, other.supports))
                })
                .collect();
            (name.to_owned(), cohen_kappa(&pairs))
        };
        names.into_iter().map(with).filter(|(_, agreement)| agreement.doubly_labelled > 0).collect()
    }
}
