//! The thread that writes an annotator's journal. Every act is on disk before it is reported.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, SystemTime};

use super::orders::{Labelling, SetLabel, SetTo, Shared};
use super::reply::{AnnotationState, Drawn, LabelsChanged, Reply, SendReply, Written};
use crate::annotate::{
    Act, Decision, Entry, Item, Journal, JournalError, Key, Opened, Project, Seen, View, guidelines_hash,
    journals, repeats, text_hash,
};
use crate::engine::setup::Setup;
use crate::input::InputError;
use crate::question::Question;

/// Executes one order after another.
pub(super) fn annotator(shared: &Shared, orders: &Receiver<Labelling>, send: &SendReply) {
    let mut open: Option<(Journal, Vec<Question>)> = None;
    let mut watch = Watch::default();
    loop {
        let order = match orders.recv_timeout(EVERY) {
            Ok(order) => order,
            Err(RecvTimeoutError::Timeout) => {
                let changed = shared.setup.get().and_then(|setup| watch.look(setup, &mut open));
                changed.into_iter().for_each(|changed| send(Reply::LabelsChanged(Box::new(changed))));
                continue;
            }
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let Some(setup) = shared.setup.get() else { continue };
        let done = match (order, &mut open) {
            (Labelling::Open(items, questions), _) => {
                // Release the lock of the open journal first.
                drop(open.take());
                open = report(annotation(setup, items, questions, Journal::open), send);
                continue;
            }
            (Labelling::Show(items, questions), _) => {
                drop(open.take());
                open = report(annotation(setup, items, questions, Journal::show), send);
                continue;
            }
            (Labelling::Set(order), _) => {
                let number = order.number;
                let set =
                    set_label(setup, &mut open, *order).map(Box::new).map_err(|error| error.to_string());
                if let Some((journal, _)) = &open {
                    watch.wrote(journal.path());
                }
                send(Reply::LabelSet { number, set });
                continue;
            }
            (_, None) => continue,
            (Labelling::Write(act), Some((journal, _))) => journal.append(act).map(Some),
            (Labelling::Undo, Some((journal, _))) => journal.undo(),
            (Labelling::Redo, Some((journal, _))) => journal.redo(),
        };
        let Some((journal, questions)) = &open else { continue };
        let written = done.map_err(|error| error.to_string());
        let written =
            written.map(|entry| entry.map(|entry| Box::new(count(setup, journal, questions, entry))));
        watch.wrote(journal.path());
        send(Reply::Labelled(written));
    }
}

/// Labels one passage. Opens the journal first if none is open.
fn set_label(
    setup: &Setup,
    open: &mut Option<(Journal, Vec<Question>)>,
    SetLabel { question, passage, to, .. }: SetLabel,
) -> Result<(Written, View), String> {
    if open.is_none() {
        let (journal, annotation) = annotation(setup, Vec::new(), vec![question.clone()], Journal::open)?;
        *open = Some((journal, annotation.questions));
    }
    let Some((journal, questions)) = open else { return Err("no journal is open".into()) };
    let key =
        Key { by: journal.by().to_owned(), question: question.text.clone(), passage: passage.id.clone() };
    let before = journal.history().heads(&key).last().map(|head| head.view.clone()).unwrap_or_default();
    let (view, seen) = match to {
        // What is put back keeps the circumstances under which it was decided.
        SetTo::View(view) => {
            let own = journal.history().entries().filter(|entry| entry.key() == key && entry.view == view);
            let seen = own.last().and_then(|entry| entry.seen.clone());
            (view, seen)
        }
        SetTo::Answers(answers) => {
            let mut view = View { skipped: false, ..before.clone() };
            view.answers.extend(answers);
            let supported = &view.answers;
            view.evidence.retain(|statement, _| supported.get(statement) == Some(&true));
            // On the lanes, the lane, the rank and the verdict or the gold label are always in sight.
            let guidelines = match setup.named_journal.as_deref().filter(|folder| Project::is_in(folder)) {
                Some(folder) => Project::keep_guidelines(folder).map_err(|error| error.to_string())?,
                None => guidelines_hash(&guidelines(setup).map_err(|error| error.to_string())?),
            };
            (view, Some(Seen { blind: false, guidelines, settles: None, again: false }))
        }
    };
    let text = text_hash(&passage);
    let act =
        Act { question: question.text.clone(), passage: passage.id.clone(), text, view, took: None, seen };
    let entry = journal.append(act).map_err(|error| error.to_string())?;
    // Statements that were edited since the journal was opened count as they are now.
    questions.retain(|known| known.text != question.text);
    questions.push(question);
    Ok((count(setup, journal, questions, entry), before))
}

/// How often the journals on the disk are looked at.
const EVERY: Duration = Duration::from_secs(1);

/// The journals that count, as they were last read: another process may label in the same project, or a folder that is synced between
/// machines may replace them.
#[derive(Default)]
struct Watch {
    seen: Option<BTreeMap<PathBuf, State>>,
}

/// The length and time of a file.
type State = (u64, Option<SystemTime>);

fn state(path: &Path) -> Option<State> {
    let about = std::fs::metadata(path).ok()?;
    Some((about.len(), about.modified().ok()))
}

impl Watch {
    /// The present state of every journal that counts.
    fn states(setup: &Setup, open: Option<&Path>) -> BTreeMap<PathBuf, State> {
        let listed = |path: &PathBuf| match path.is_dir() {
            true => Project::journals(path).unwrap_or_default(),
            false => vec![path.clone()],
        };
        let all = setup.label_paths.iter().flat_map(listed).chain(open.map(Path::to_owned));
        all.filter_map(|path| state(&path).map(|state| (path, state))).collect()
    }

    /// Takes over what this process wrote, so that it is not taken for another's.
    fn wrote(&mut self, path: &Path) {
        if let (Some(seen), Some(state)) = (&mut self.seen, state(path)) {
            seen.insert(path.to_owned(), state);
        }
    }

    /// Reads the journals again if they are not as they were. `None` if no label is different.
    fn look(&mut self, setup: &Setup, open: &mut Option<(Journal, Vec<Question>)>) -> Option<LabelsChanged> {
        let now = Watch::states(setup, open.as_ref().map(|(journal, _)| journal.path()));
        // The first look reads them in any case: they may have changed since the corpus was opened.
        if self.seen.as_ref() == Some(&now) {
            return None;
        }
        self.seen = Some(now);
        let mut changed = match setup.reread_human() {
            Ok(changed) => changed,
            Err(error) => {
                return Some(LabelsChanged { error: Some(error.to_string()), ..LabelsChanged::default() });
            }
        };
        if let Some((journal, _)) = open {
            let new = journal.refresh().unwrap_or_default();
            if !new.is_empty() || !changed.by.is_empty() {
                let (others, _) = others(journal.path(), journal.by()).unwrap_or_default();
                changed.by.extend(new.first().map(|entry| entry.by.clone()));
                changed.by.sort_unstable();
                changed.by.dedup();
                changed.journal = Some((new, others));
            }
        }
        (!changed.by.is_empty() || !changed.labels.is_empty()).then_some(changed)
    }
}

/// The current labels of the other annotators beside a journal, and notes about damage.
fn others(journal: &Path, by: &str) -> Result<(Vec<Decision>, Vec<String>), String> {
    let others = journal.parent().map(Project::journals).and_then(Result::ok).unwrap_or_default();
    let others: Vec<PathBuf> = others.into_iter().filter(|path| path != journal).collect();
    let (others, notes) = journals(&others).map_err(|error| error.to_string())?;
    Ok((others.decisions().into_iter().filter(|decision| decision.by != by).collect(), notes))
}

/// Reports the annotation, and returns the journal for labels.
fn report(
    annotation: Result<(Journal, AnnotationState), String>,
    send: &SendReply,
) -> Option<(Journal, Vec<Question>)> {
    let mut open = None;
    send(Reply::AnnotationState(annotation.map(|(journal, annotation)| {
        open = Some((journal, annotation.questions.clone()));
        Box::new(annotation)
    })));
    open
}

/// The guidelines of the project, or the built-in ones.
fn guidelines(setup: &Setup) -> Result<String, InputError> {
    let folder = setup.named_journal.as_deref().unwrap_or(&setup.journals);
    Ok(Project::guidelines(folder)?.unwrap_or_else(|| Project::GUIDELINES.to_owned()))
}

/// Opens the journal, and collects what is to be labelled.
fn annotation(
    setup: &Setup,
    items: Vec<Item>,
    questions: Vec<Question>,
    open: impl FnOnce(&Path, &str) -> Result<Opened, JournalError>,
) -> Result<(Journal, AnnotationState), String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let by = setup.annotator.clone();
    let mut annotation = AnnotationState { by: by.clone(), items, questions, ..AnnotationState::default() };
    let named = setup.named_journal.clone();
    annotation.guidelines = guidelines(setup).map_err(|error| text(&error))?;
    annotation.journal = match &named {
        Some(folder) if Project::is_in(folder) => {
            let (project, items) = Project::open(folder).map_err(|error| text(&error))?;
            annotation.adjudicates = project.adjudicators.contains(&by);
            if !annotation.adjudicates && !project.annotators.is_empty() && !project.annotators.contains(&by)
            {
                let names = project.annotators.join(", ");
                return Err(format!(
                    "this project is labelled by {names}, not by {by}; say who you are with --annotator NAME"
                ));
            }
            let split = match annotation.adjudicates {
                true => {
                    let (all, _) = journals(std::slice::from_ref(folder)).map_err(|error| text(&error))?;
                    Project::split(&items, &all.decisions())
                }
                false => Vec::new(),
            };
            let is_own = |(at, item): &(usize, Item)| match annotation.adjudicates {
                true => split.contains(at),
                false => item.is_for(&by),
            };
            let (own, others): (Vec<_>, Vec<_>) = items.into_iter().enumerate().partition(is_own);
            let bare =
                |items: Vec<(usize, Item)>| items.into_iter().map(|(_, item)| item).collect::<Vec<Item>>();
            let (own, others) = (bare(own), bare(others));
            let two_sided = |at: &usize| {
                project.question(&own[*at].question).is_some_and(|question| question.sides().is_some())
            };
            let share = if annotation.adjudicates { 0.0 } else { project.repeats };
            annotation.repeats = repeats(&own, share, &by, project.seed);
            annotation.repeats.retain(two_sided);
            annotation.items = own;
            let depth = project.depth;
            annotation.drawn = project.sample.map(|sample| Drawn { of: sample.of, depth, others });
            (annotation.questions, annotation.lanes) = (project.questions, project.lanes);
            (annotation.order, annotation.seed, annotation.blind) =
                (project.order, project.seed, project.blind);
            Project::journal(folder, &by)
        }
        Some(file) if !file.is_dir() => file.clone(),
        named => Project::journal(named.as_deref().unwrap_or(&setup.journals), &by),
    };
    let opened = open(&annotation.journal, &by).map_err(|error| text(&error))?;
    annotation.notes.extend(opened.read.damage(&annotation.journal));
    annotation.read_only = opened.journal.read_only().map(ToString::to_string);
    if let Some(folder) =
        named.as_deref().filter(|folder| Project::is_in(folder) && annotation.read_only.is_none())
    {
        Project::keep_guidelines(folder).map_err(|error| text(&error))?;
    }
    annotation.history = opened.journal.history().clone();
    let (others, notes) = others(&annotation.journal, &by)?;
    annotation.others = others;
    annotation.notes.extend(notes);
    Ok((opened.journal, annotation))
}

/// Makes a written entry count in all later judgments.
fn count(setup: &Setup, journal: &Journal, questions: &[Question], entry: Entry) -> Written {
    let key = entry.key();
    setup.replace_human(&key, journal.history().decisions_on(&key));
    let question = questions.iter().find(|question| question.text == entry.question);
    let statements = question.map(|question| question.perspectives.clone());
    let statements = statements.unwrap_or_else(|| entry.view.answers.keys().cloned().collect());
    let label = |statement: String| {
        let known = setup.labelled(&statement, &entry.passage);
        (statement, known.by_hand().then_some(known.human))
    };
    Written {
        at: setup.corpus.find(&entry.passage),
        labels: statements.into_iter().map(label).collect(),
        entry,
    }
}
