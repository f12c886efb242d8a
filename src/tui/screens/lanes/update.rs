//! The lanes: moving the cursor, changing k and the label source, and adding, dropping and ordering lanes.

use std::sync::Arc;

use crossterm::event::{Event, KeyEvent, MouseButton, MouseEvent, MouseEventKind};
use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use tui_input::Input;
use tui_input::backend::crossterm::EventHandler;

use super::{BeforeInputs, Inputs, LaneFigures, Reworded, draw, question, rerank, switches};
use crate::engine::{Batch, Figures, Judgments, Ranked, Ranking, Recipe, Shares, shares_of};
use crate::question::Question;
use crate::report::marks::Mark;
use crate::tui::app::{App, Corpus, Filter, Lane, LaneState};
use crate::tui::keymap::{Action, Context, Screen};
use crate::tui::layout::{
    LanePanes, border_at, drag_border, keep_in_view, panes, passage_at, tab_names, visible,
};
use crate::tui::message::Effect;
use crate::tui::page::Page;
use crate::tui::screens::help::screen as help;
use crate::tui::screens::palette::{Palette, Picker};
use crate::tui::theme::Theme;
use crate::tui::undo::Label;
use crate::tui::widgets::text::columns_of;

/// The largest k.
pub const MAX_K: usize = 100;

/// The question line and the lanes.
pub struct Lanes;

impl Page for Lanes {
    fn screen(&self) -> Screen {
        Screen::LANES
    }

    fn context(&self, app: &App) -> Context {
        if app.typing {
            Context::Question
        } else if app.filter.typing {
            Context::Filter
        } else {
            Context::Lanes
        }
    }

    fn act(&self, app: &mut App, action: Action) -> Vec<Effect> {
        match self.context(app) {
            Context::Question => question::act_on_line(app, action),
            Context::Filter => act_on_filter(app, action),
            _ => act_on_lanes(app, action),
        }
    }

    fn edit(&self, app: &mut App, key: KeyEvent) -> Vec<Effect> {
        match self.context(app) {
            Context::Question => question::edit(app, key),
            Context::Filter => edit_filter(app, key),
            _ => Vec::new(),
        }
    }

    fn line<'a>(&self, app: &'a mut App) -> Option<&'a mut Input> {
        match self.context(app) {
            Context::Question => Some(&mut app.line),
            Context::Filter => Some(&mut app.filter.line),
            _ => None,
        }
    }

    fn pasted(&self, app: &mut App) -> Vec<Effect> {
        if app.typing {
            app.history.forget();
            return question::changed(app);
        }
        keep_in_view(app);
        Vec::new()
    }

    fn point(&self, app: &mut App, mouse: MouseEvent) -> Option<Action> {
        point(app, mouse)
    }

    fn draw(&self, app: &App, theme: Theme, _: Rect, frame: &mut Frame<'_>) {
        draw::draw(app, theme, frame);
    }
}

fn point(app: &mut App, mouse: MouseEvent) -> Option<Action> {
    let at = Position { x: mouse.column, y: mouse.row };
    match mouse.kind {
        MouseEventKind::Down(MouseButton::Left) => {
            let panes = panes(app);
            if let Some(place) = draw::completion_at(app, &panes, at) {
                app.completion = Some(place);
                return Some(Action::Ask);
            }
            if panes.tabs.contains(at) {
                let ends = tab_names(app, panes.tabs.width).into_iter().scan(0, |end, name| {
                    *end += columns_of(&name) + 3;
                    Some(*end)
                });
                app.lane =
                    ends.take_while(|end| *end <= usize::from(at.x)).count().min(app.lanes.len().max(1) - 1);
                return None;
            }
            if panes.question.contains(at) {
                act_on_lanes(app, Action::EditQuestion);
                return None;
            }
            app.dragged = border_at(&panes, at);
            if app.dragged.is_some() {
                return None;
            }
            if panes.statements.contains(at) && !app.typing {
                return Some(Action::EditStatements);
            }
            let strip = |pane: &LanePanes| Some((pane.lane, help::rank_at(app, pane, at)?));
            if let Some((lane, rank)) = panes.lanes.iter().find_map(strip).filter(|_| !app.typing) {
                app.lane = lane;
                let Some(rank) = rank else { return Some(Action::Sycophancy) };
                app.lanes[lane].selected = rank;
                keep_in_view(app);
                return None;
            }
            let (lane, passage) = passage_at(&panes, app, at)?;
            app.recalled = false;
            if std::mem::take(&mut app.typing) {
                question::take_preview(app);
            }
            let again = app.lane == lane && passage == Some(app.lanes[lane].selected);
            app.lane = lane;
            if let Some(passage) = passage {
                app.lanes[lane].selected = passage;
            }
            // A second click on the marked passage opens it.
            return again.then_some(Action::Read);
        }
        MouseEventKind::Drag(MouseButton::Left) => {
            if let Some(lane) = app.dragged
                && let Some((left, right)) = drag_border(&panes(app), app, lane, mouse.column)
            {
                (app.lanes[lane].width, app.lanes[lane + 1].width) = (left, right);
            }
        }
        MouseEventKind::Moved => {
            let panes = panes(app);
            let figure = panes.lanes.iter().find_map(|pane| help::figure_at(app, pane, at.x, at.y));
            app.hint = figure.map(|figure| help::explanation(app, figure));
        }
        MouseEventKind::ScrollDown | MouseEventKind::ScrollUp => {
            // The lane below the mouse moves; the cursor stays in its own.
            let focus = app.lane;
            app.lane = passage_at(&panes(app), app, at).map_or(focus, |(lane, _)| lane);
            let down = mouse.kind == MouseEventKind::ScrollDown;
            act_on_lanes(app, if down { Action::Down } else { Action::Up });
            app.lane = focus;
        }
        _ => {}
    }
    None
}

/// Performs an action on the lanes.
pub fn act_on_lanes(app: &mut App, action: Action) -> Vec<Effect> {
    match action {
        Action::EditQuestion => {
            if !app.typing && !app.question.text.is_empty() {
                question::begin_preview(app);
            }
            app.typing = true;
            question::complete(app);
        }
        Action::Back => return go_back(app),
        Action::Pin => switches::pin(app),
        Action::Present => app.presenting = !app.presenting,
        Action::Explain => {
            let next = app.explained.map_or(0, |figure| figure + 1);
            (app.explained, app.hint) = (Some(next), Some(help::explanation(app, next)));
        }
        Action::NextLabelPage => switches::next_label_page(app),
        Action::PickQuestion => return pick(app, Picker::Questions),
        Action::PickCorpus => return pick(app, Picker::Corpora),
        Action::MakeCorpus => return question::make_corpus(app),
        Action::NextLane => app.lane = (app.lane + 1) % app.lanes.len().max(1),
        Action::PreviousLane => app.lane = (app.lane + app.lanes.len().max(1) - 1) % app.lanes.len().max(1),
        Action::Down => step(app, 1),
        Action::Up => step(app, -1),
        Action::PageDown => step(app, visible(app) as isize),
        Action::PageUp => step(app, -(visible(app) as isize)),
        Action::First => step(app, isize::MIN / 2),
        Action::Last => step(app, isize::MAX / 2),
        Action::Filter => app.filter = Filter { typing: true, ..Filter::default() },
        Action::Together => {
            app.together = !app.together;
            app.notice = Some(
                if app.together { "all lanes scroll together" } else { "every lane scrolls alone" }.into(),
            );
        }
        Action::Deeper => return set_k(app, app.k + 1),
        Action::Shallower => return set_k(app, app.k - 1),
        Action::NextLabelSource => return next_source(app).unwrap_or_default(),
        Action::CopyRecipe => return copy_recipe(app),
        Action::Toggle(switch) => return switches::toggle(app, switch),
        Action::ToggleEverywhere(switch) => return switches::toggle_everywhere(app, switch),
        Action::Rerank => return rerank::next_model(app),
        Action::MoreRelevance => return rerank::change_weight(app, 1),
        Action::LessRelevance => return rerank::change_weight(app, -1),
        Action::Swap => return switches::swap(app),
        Action::NewLane => return pick(app, Picker::Lanes),
        Action::DropLane => return drop_lane(app),
        Action::LaneLeft => return shift_lane(app, -1),
        Action::LaneRight => return shift_lane(app, 1),
        action => {
            let Some(label) = Label::of(action) else { return Vec::new() };
            keep_in_view(app);
            return switches::label(app, label);
        }
    }
    keep_in_view(app);
    Vec::new()
}

/// One step back: stops what is running, else shows all passages, else leaves the presentation.
fn go_back(app: &mut App) -> Vec<Effect> {
    let filtered = !app.filter.line.value().trim().is_empty();
    if !app.settled && !app.question.text.is_empty() {
        return switches::cancel(app);
    }
    if app.gathering.is_some() {
        app.notice = Some("no more pages are fetched; what is there stays".into());
        return vec![Effect::StopGathering];
    }
    if filtered {
        app.filter = Filter::default();
        keep_in_view(app);
    } else if app.presenting {
        app.presenting = false;
    } else {
        let key = app.key(Context::Lanes, Action::Quit);
        app.notice = Some(format!("these are the lanes; {key} quits"));
    }
    Vec::new()
}

fn copy_recipe(app: &mut App) -> Vec<Effect> {
    let Some(lane) = app.lanes.get(app.lane) else { return Vec::new() };
    let recipe = lane.recipe.to_string();
    app.notice = Some(format!("copied: --lane {recipe}"));
    vec![Effect::Copy(recipe)]
}

/// Switches to the next label source that the corpus has and asks again: with other labels a side may be uncovered, so that more passages
/// must be judged. `None` if the corpus has no labels.
pub fn next_source(app: &mut App) -> Option<Vec<Effect>> {
    let (gold, human) = match &app.corpus {
        Corpus::Open(opened) => (opened.labelled, opened.by_hand),
        _ => (false, false),
    };
    if !gold && !human {
        app.notice = Some("no labels came with this corpus; give some with --labels FILE".into());
        return None;
    }
    app.judgments.source = app.judgments.source.next(gold, human);
    Some(question::go_on(app))
}

/// Performs the actions that screens with a batch share; `ask` requests the batch again.
pub fn act_with_batch(app: &mut App, action: Action, ask: fn(&mut App) -> Vec<Effect>) -> Vec<Effect> {
    match action {
        Action::NextLane | Action::PreviousLane => act_on_lanes(app, action),
        Action::NextLabelSource => {
            let Some(again) = next_source(app) else { return Vec::new() };
            let mut effects = ask(app);
            // With other labels, more passages of the lanes may need judging.
            effects.extend(again);
            effects
        }
        Action::Back => app.leave(),
        _ => Vec::new(),
    }
}

/// Lets so many passages count.
pub fn set_k(app: &mut App, k: usize) -> Vec<Effect> {
    if !(1..=MAX_K).contains(&k) {
        app.notice = Some(format!("from 1 to {MAX_K} passages can count"));
        return Vec::new();
    }
    app.k = k;
    keep_in_view(app);
    if app.question.text.is_empty() { Vec::new() } else { question::again(app) }
}

/// Moves the cursor among the passages shown; in all lanes if they scroll together.
fn step(app: &mut App, by: isize) {
    let shown = |app: &App, lane: usize| app.lanes.get(lane).map(|lane| app.shown(lane)).unwrap_or_default();
    let here = shown(app, app.lane);
    let Some(lane) = app.lanes.get(app.lane) else { return };
    let at = here.iter().position(|place| *place == lane.selected).unwrap_or(0);
    let at = at.saturating_add_signed(by).min(here.len().saturating_sub(1));
    for other in 0..app.lanes.len() {
        if other == app.lane || app.together {
            let places = shown(app, other);
            if let Some(place) = places.get(at).or(places.last()) {
                app.lanes[other].selected = *place;
            }
        }
    }
}

/// Performs an action while a filter is typed.
fn act_on_filter(app: &mut App, action: Action) -> Vec<Effect> {
    match action {
        Action::KeepFilter => app.filter.typing = false,
        Action::Back => app.filter = Filter::default(),
        action => return act_on_lanes(app, action),
    }
    keep_in_view(app);
    Vec::new()
}

/// Edits the filter.
fn edit_filter(app: &mut App, key: KeyEvent) -> Vec<Effect> {
    app.filter.line.handle_event(&Event::Key(key));
    keep_in_view(app);
    Vec::new()
}

/// The most lanes that fit on a screen.
const MAX_LANES: usize = 6;

/// Opens a list to choose from. Corpora are listed by the engine.
fn pick(app: &mut App, of: Picker) -> Vec<Effect> {
    app.palette = Some(Palette { of, ..Palette::default() });
    match of {
        Picker::Corpora if !matches!(app.corpus, Corpus::Opening) => {
            vec![Effect::Batch(app.next_batch(), Batch::Corpora)]
        }
        _ => Vec::new(),
    }
}

/// Adds a copy of the lane under the cursor to its right.
pub fn copy_lane(app: &mut App) -> Vec<Effect> {
    let Some(lane) = app.lanes.get(app.lane) else { return Vec::new() };
    let copy = lane.clone();
    insert(app, copy)
}

/// Adds a lane to the right of the one under the cursor.
pub fn add_lane(app: &mut App, recipe: Recipe) -> Vec<Effect> {
    app.acts.dropped.retain(|other| *other != recipe);
    let mut lane = Lane::new(recipe);
    if !app.question.text.is_empty() {
        lane.state = LaneState::Waiting;
    }
    insert(app, lane)
}

fn insert(app: &mut App, lane: Lane) -> Vec<Effect> {
    if app.lanes.len() >= MAX_LANES {
        let key = app.key(Context::Lanes, Action::DropLane);
        app.notice = Some(format!("there are at most {MAX_LANES} lanes; {key} drops one"));
        return Vec::new();
    }
    app.lane_ids += 1;
    let at = (app.lane + 1).min(app.lanes.len());
    app.lanes.insert(at, Lane { id: app.lane_ids, ..lane });
    app.lane = at;
    keep_in_view(app);
    question::go_on(app)
}

/// Drops the lane under the cursor, unless it is the last.
fn drop_lane(app: &mut App) -> Vec<Effect> {
    if app.lanes.len() == 1 {
        app.notice = Some("this is the last lane".into());
        return Vec::new();
    }
    let dropped = app.lanes.remove(app.lane);
    let (undo, new) = (app.key(Context::Lanes, Action::Undo), app.key(Context::Lanes, Action::NewLane));
    app.notice = Some(format!("dropped {}: {undo} brings it back now, {new} later", dropped.recipe));
    app.acts.remember_dropped(dropped.recipe);
    app.lane = app.lane.min(app.lanes.len() - 1);
    question::go_on(app)
}

/// Swaps the lane under the cursor with its neighbour.
fn shift_lane(app: &mut App, by: isize) -> Vec<Effect> {
    let Some(other) = app.lane.checked_add_signed(by).filter(|other| *other < app.lanes.len()) else {
        return Vec::new();
    };
    app.lanes.swap(app.lane, other);
    app.lane = other;
    keep_in_view(app);
    question::go_on(app)
}

/// Recomputes the figures of every lane whose inputs have changed.
pub fn refresh(app: &mut App) {
    let judgments = &app.judgments;
    let state = (judgments.revision(), judgments.perspectives, judgments.source);
    let base = app.acts.baseline(&app.question);
    let pair = |lane: &Lane| lane.reworded.as_ref().and_then(|lists| lists.clone().ok());
    let inputs = app.lanes.iter().map(|lane| Inputs {
        ready: lane.state == LaneState::Ready,
        list: Arc::clone(&lane.ranking),
        reworded: pair(lane),
        before: base.and_then(|base| {
            let before = base.lane(lane.id)?;
            Some(BeforeInputs {
                list: Arc::clone(&before.ranking),
                reworded: pair(before),
                k: base.k,
                judgments: (base.judgments.revision(), base.judgments.source),
                labelled: base.labels != app.acts.labels,
            })
        }),
        judgments: state,
        question: app.question.clone(),
        k: app.k,
        filter: app.filter.line.value().to_owned(),
    });
    let inputs: Vec<Inputs> = inputs.collect();
    let mut changed = false;
    for (i, inputs) in inputs.into_iter().enumerate() {
        let lane = &app.lanes[i];
        if !lane.figures.inputs.as_ref().is_some_and(|before| before.same(&inputs)) {
            app.lanes[i].figures = compute(app, lane, inputs);
            changed = true;
        }
    }
    if changed {
        let tops = app.lanes.iter().flat_map(|lane| lane.ranking.iter().take(app.k));
        app.judged_by = Shares::of(&app.judgments, tops.map(|ranked| ranked.at));
    }
}

fn compute(app: &App, lane: &Lane, inputs: Inputs) -> LaneFigures {
    let (judgments, question, k) = (&app.judgments, &app.question, app.k);
    let now = inputs.ready.then(|| Figures::of(&inputs.list, judgments, question, k)).flatten();
    let judged = now.as_ref().is_some_and(|now| now.complete() && now.returned > 0);
    let doubt = judged.then(|| Figures::doubt(&inputs.list, judgments, question, k)).flatten();
    let marks =
        |list: &[Ranked]| -> Vec<Mark> { list.iter().take(k).map(|ranked| app.mark(ranked.at)).collect() };
    let asked = inputs.reworded.as_ref().filter(|_| now.is_some()).map(|lists| {
        lists
            .each_ref()
            .map(|list| Reworded { marks: marks(list), lean: lean_of(list, judgments, question, k) })
    });
    let mut figures = LaneFigures {
        marks: if inputs.ready { marks(&inputs.list) } else { Vec::new() },
        asked,
        doubt,
        unlike: inputs.reworded.as_ref().is_some_and(|lists| expanded_differently(&inputs.list, lists)),
        shown: app.shown(lane),
        ..LaneFigures::default()
    };
    let shift = |lists: &[Ranking; 2], judgments: &Judgments, k: usize| {
        let [first, other] = lists.each_ref().map(|list| lean_of(list, judgments, question, k));
        Some(first? - other?)
    };
    let shift_now = inputs.reworded.as_ref().and_then(|lists| shift(lists, judgments, k));
    figures.shift = shift_now.map(|shift| (shift, None));
    if let (Some(now), Some(before), Some(base)) = (&now, &inputs.before, app.acts.baseline(question)) {
        let alike = base.k == k && base.judgments.source == judgments.source && !before.labelled;
        figures.change = if alike {
            Figures::change((&inputs.list, &before.list), judgments, question, k)
        } else {
            let was = Figures::of(&before.list, &base.judgments, question, base.k);
            let doubt_before = Figures::doubt(&before.list, &base.judgments, question, base.k);
            was.and_then(|was| Figures::difference((now, doubt.as_ref()), (&was, doubt_before.as_ref())))
        };
        let judged_before = if alike { judgments } else { &base.judgments };
        let was = before.reworded.as_ref().and_then(|lists| shift(lists, judged_before, base.k));
        if let Some((shift, difference)) = &mut figures.shift {
            *difference = was.map(|was| *shift - was);
        }
        figures.before = Some(Arc::clone(&before.list));
    }
    LaneFigures { now, inputs: Some(inputs), ..figures }
}

/// The lean of a list's first k; `None` until they are judged.
fn lean_of(list: &[Ranked], judgments: &Judgments, question: &Question, k: usize) -> Option<f64> {
    let settled = list.iter().take(k).all(|ranked| judgments.is_complete(ranked.at));
    shares_of(judgments, question, list, k).filter(|_| settled).map(|shares| shares.lean())
}

fn expanded_differently(neutral: &Ranking, asked: &[Ranking; 2]) -> bool {
    let form = |list: &Ranking| list.trace.expansion().map(|expansion| expansion.describe());
    asked.iter().any(|list| form(list) != form(neutral))
}
