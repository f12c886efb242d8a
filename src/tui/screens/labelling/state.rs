//! The state of the labelling screen: the annotation with its passages, the passage shown, and the decision being made.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::ops::Range;

use crossterm::event::KeyEvent;
use tui_input::Input;

use crate::annotate::narrowing::{Narrowing, narrowing};
use crate::annotate::{Decision, Entry, Human, Item, Key, Order, View, doubt, queue, text_hash};
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
    /// The order of the passages, as indices into the annotation's items; an index beyond them is a passage that comes again.
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
    /// Evidence that was marked before the label was decided, for all statements that the passage will support.
    pub marked: Option<String>,
    /// The same for single statements.
    pub marked_for: BTreeMap<String, String>,
    /// The text as it is drawn.
    pub text: LabelText,
    counts: Counts,
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
    pub marked: (Option<String>, BTreeMap<String, String>),
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
        self.open()?.items.get(self.place()?)
    }

    /// The index of the passage that is shown.
    fn place(&self) -> Option<usize> {
        self.queue.get(self.at)?.checked_rem(self.counts.states.len())
    }

    /// Whether the passage shown comes a second time and waits for a label: the first one is hidden.
    pub fn asks_again(&self) -> bool {
        let all = self.counts.states.len();
        let shown = self.queue.get(self.at).copied();
        shown.is_some_and(|entry| entry >= all && !self.state(entry).done && self.state(entry - all).done)
    }

    /// Its question.
    pub fn question(&self) -> Option<&Question> {
        let (annotation, item) = (self.open()?, self.item()?);
        annotation.questions.iter().find(|question| question.text == item.question)
    }

    /// The annotator's label of the passage shown, as written to the journal; none if it comes again.
    pub fn held(&self) -> View {
        if self.asks_again() { View::default() } else { self.stored() }
    }

    /// The same, and the first label of a passage that comes again.
    pub fn stored(&self) -> View {
        self.place().and_then(|place| self.view(place)).cloned().unwrap_or_default()
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
        self.scored.get(self.place()?)?.as_deref()
    }

    /// Whether its side is unclear, by the model.
    pub fn is_unclear(&self) -> bool {
        self.place().is_some_and(|place| self.unclear.contains(&place))
    }

    /// The label of the passage at an index; `None` if it was decided on another text.
    fn view(&self, place: usize) -> Option<&View> {
        let annotation = self.open()?;
        let key = annotation.items.get(place)?.key(&annotation.by);
        let text = self.counts.texts.get(place)?;
        let same = annotation.history.heads(&key).iter().all(|head| head.text == *text);
        annotation.history.view(&key).filter(|_| same)
    }

    /// What is known of an entry of the queue.
    fn state(&self, entry: usize) -> ItemState {
        let states = &self.counts.states;
        let again =
            || states.get(entry - states.len()).map(|first| ItemState { done: first.again, ..*first });
        states.get(entry).copied().or_else(again).unwrap_or_default()
    }

    /// The next passage to label, as an index into the queue: after the one shown, then from the top; skipped passages come last.
    pub fn next(&self) -> Option<usize> {
        let following = || (1..=self.queue.len()).map(|step| (self.at + step) % self.queue.len());
        let open = |at: &usize| !self.state(self.queue[*at]).done;
        following()
            .filter(open)
            .find(|at| !self.state(self.queue[*at]).skipped)
            .or_else(|| following().find(open))
    }

    /// The index in the queue of the passage that a key names.
    pub fn find(&self, key: &Key) -> Option<usize> {
        let own = self.open().filter(|annotation| annotation.by == key.by);
        let place = own.and(self.counts.places.get(&(key.question.clone(), key.passage.clone())))?;
        match self.place() == Some(*place) {
            true => Some(self.at),
            false => self.queue.iter().position(|other| other == place),
        }
    }

    /// Puts the passages into the chosen order.
    pub fn arrange(&mut self, threshold: f32) {
        let Some(Ok(annotation)) = &self.annotation else { return };
        let unsure = |place: usize| {
            let said: Vec<f32> = self.scored.get(place)?.as_ref()?.iter().flatten().copied().collect();
            doubt(&said, threshold)
        };
        self.queue = queue(&annotation.items, self.order, annotation.seed, &annotation.lanes, &unsure);
        if annotation.drawn.is_some() {
            // The first n questions of a draw are a random sample for any n, so their order stays; the chosen order holds within each question.
            let place =
                |item: &Item| annotation.questions.iter().position(|question| question.text == item.question);
            self.queue.sort_by_cached_key(|at| place(&annotation.items[*at]));
        }
        self.queue.extend(annotation.repeats.iter().map(|place| place + annotation.items.len()));
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
        self.marked_for.clear();
        self.draft = self.held();
    }

    /// Recomputes progress, agreement and interval once the annotation has arrived or other annotators' labels have changed.
    pub fn recount(&mut self) {
        self.counts = self.open().map(Counts::of).unwrap_or_default();
        self.sum_up();
    }

    /// The chosen figure's name and how its interval narrows.
    fn narrowing_of_figure(&self) -> Option<(String, Narrowing)> {
        let annotation = self.open()?;
        let drawn = annotation.drawn.as_ref()?;
        // Lists of other wordings are pooled too, under names that are not recipes.
        let lanes: Vec<&String> =
            annotation.lanes.iter().filter(|lane| lane.parse::<Recipe>().is_ok()).collect();
        let k = self.k.min(drawn.depth);
        let lean = Column::Named(format!("Lean@{k}").parse().ok()?);
        let columns = [Column::mrecall_at(k), Column::prec_at(k), lean];
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

    /// Takes over a decision that was written.
    pub fn take(&mut self, entry: Entry) {
        let key = entry.key();
        let Some(Ok(annotation)) = &mut self.annotation else { return };
        self.counts.pair(annotation, &key, false);
        annotation.history.take(entry);
        self.counts.pair(annotation, &key, true);
        let question = annotation.questions.iter().find(|question| question.text == key.question);
        if let Some(place) = self.counts.places.get(&(key.question.clone(), key.passage)) {
            self.counts.states[*place] =
                ItemState::of(annotation, question, &self.counts.texts[*place], *place);
        }
        self.sum_up();
    }

    /// The progress and the agreement from the counts.
    fn sum_up(&mut self) {
        let states = &self.counts.states;
        let mut took: Vec<u64> = states.iter().filter_map(|known| known.took).collect();
        let middle = took.len() / 2;
        let median = (middle < took.len()).then(|| *took.select_nth_unstable(middle).1);
        let count = |is: fn(&ItemState) -> bool| states.iter().filter(|known| is(known)).count();
        let repeats = self.open().map_or(&[][..], |annotation| &annotation.repeats);
        let again =
            repeats.iter().filter(|place| states.get(**place).is_some_and(|known| known.again)).count();
        self.pace = Pace {
            done: count(|known| known.done) + again,
            skipped: count(|known| known.skipped && !known.done),
            all: states.len() + repeats.len(),
            median,
        };
        self.agreement = self.counts.agreements();
        self.narrowing = self.narrowing_of_figure();
    }
}

/// What the decisions so far amount to. A decision changes its own passage's part alone, because a project may have 100,000 labels.
#[derive(Clone, Debug, Default)]
struct Counts {
    /// The hash of each passage's text.
    texts: Vec<String>,
    /// The index of each passage, by question and id.
    places: HashMap<(String, String), usize>,
    /// What is known of each passage.
    states: Vec<ItemState>,
    /// The other annotators' labels of each passage, as indices into the annotation's.
    others: HashMap<(String, String), Vec<usize>>,
    /// The pairs that this annotator and another one decided: both yes, only this one, only the other, both no.
    pairs: BTreeMap<String, [usize; 4]>,
}

/// What is known of a passage.
#[derive(Clone, Copy, Debug, Default)]
struct ItemState {
    /// It is labelled for every statement.
    done: bool,
    /// It came a second time and was labelled again.
    again: bool,
    skipped: bool,
    /// How long its label took, in milliseconds.
    took: Option<u64>,
}

impl ItemState {
    fn of(annotation: &AnnotationState, question: Option<&Question>, text: &str, place: usize) -> Self {
        let item = &annotation.items[place];
        let key = item.key(&annotation.by);
        let heads = annotation.history.heads(&key);
        let labelled = heads.last().filter(|head| !head.view.answers.is_empty());
        let took = labelled.and_then(|head| head.took);
        // A label of another text is none of this passage.
        let same = heads.iter().all(|head| head.text == text);
        let Some(view) = annotation.history.view(&key).filter(|_| same) else {
            return ItemState { took, ..ItemState::default() };
        };
        let done = question.is_some_and(|question| {
            question.perspectives.iter().all(|statement| view.answers.contains_key(statement))
        });
        let again = done && heads.iter().any(|head| head.seen.as_ref().is_some_and(|seen| seen.again));
        ItemState { done, again, skipped: view.skipped, took }
    }
}

impl Counts {
    fn of(annotation: &AnnotationState) -> Self {
        let mut counts = Counts {
            texts: annotation.items.iter().map(|item| text_hash(&item.passage)).collect(),
            ..Counts::default()
        };
        let questions: HashMap<&str, &Question> =
            annotation.questions.iter().map(|question| (question.text.as_str(), question)).collect();
        for (place, (item, text)) in annotation.items.iter().zip(&counts.texts).enumerate() {
            counts.places.insert((item.question.clone(), item.passage.id.clone()), place);
            let question = questions.get(item.question.as_str()).copied();
            counts.states.push(ItemState::of(annotation, question, text, place));
        }
        for (at, other) in annotation.others.iter().enumerate() {
            counts.others.entry((other.question.clone(), other.passage.clone())).or_default().push(at);
        }
        for (question, passage) in counts.others.keys().cloned().collect::<Vec<_>>() {
            counts.pair(annotation, &Key { by: annotation.by.clone(), question, passage }, true);
        }
        counts
    }

    /// Adds the pairs that this annotator's view of a passage makes with the others' labels, or takes them away.
    fn pair(&mut self, annotation: &AnnotationState, key: &Key, add: bool) {
        let Some(others) = self.others.get(&(key.question.clone(), key.passage.clone())) else { return };
        let Some(view) = annotation.history.view(key) else { return };
        for other in others.iter().filter_map(|at| annotation.others.get(*at)) {
            let Some(own) = view.answers.get(&other.perspective) else { continue };
            let place = usize::from(!own) * 2 + usize::from(!other.supports);
            let count = &mut self.pairs.entry(other.by.clone()).or_default()[place];
            *count = if add { *count + 1 } else { count.saturating_sub(1) };
        }
    }

    /// The agreement with every other annotator.
    fn agreements(&self) -> Vec<(String, Agreement)> {
        let all = self.pairs.iter().filter(|(_, counts)| counts.iter().any(|count| *count > 0));
        let kappa = |(name, counts): (&String, &[usize; 4])| {
            let kinds = [(true, true), (true, false), (false, true), (false, false)];
            let pairs = kinds.iter().zip(counts).flat_map(|(kind, n)| std::iter::repeat_n(*kind, *n));
            (name.clone(), cohen_kappa(&pairs.collect::<Vec<_>>()))
        };
        all.map(kappa).collect()
    }
}
