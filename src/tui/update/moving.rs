//! The lanes: moving the mark, how many passages count, which labels count.

use crossterm::event::{Event, KeyEvent};
use tui_input::backend::crossterm::EventHandler;

use super::super::app::{App, Corpus, Filter, Screen};
use super::super::keymap::Action;
use super::super::message::Effect;
use super::{
    answering, asking, biasing, comparing, labelling, lanes, panes, reading, statements, swaying, switching,
    tuning,
};

/// No list is read deeper.
const DEEPEST: usize = 100;

/// An action on the lanes.
pub fn act(app: &mut App, action: Action) -> Vec<Effect> {
    match action {
        Action::EditQuestion => {
            app.typing = true;
            asking::complete(app);
        }
        Action::NextLane => app.lane = (app.lane + 1) % app.lanes.len().max(1),
        Action::PreviousLane => app.lane = (app.lane + app.lanes.len().max(1) - 1) % app.lanes.len().max(1),
        Action::Down => step(app, 1),
        Action::Up => step(app, -1),
        Action::PageDown => step(app, shown(app) as isize),
        Action::PageUp => step(app, -(shown(app) as isize)),
        Action::First => step(app, isize::MIN / 2),
        Action::Last => step(app, isize::MAX / 2),
        Action::Read if app.selected().is_some() => {
            app.screen = Screen::Read;
            app.typing = false;
            return reading::open(app);
        }
        Action::Filter => app.filter.typing = true,
        Action::Together => {
            app.together = !app.together;
            app.notice = Some(
                if app.together { "all lanes scroll together" } else { "every lane scrolls alone" }.into(),
            );
        }
        Action::Deeper => return count(app, app.k + 1),
        Action::Shallower => return count(app, app.k - 1),
        Action::NextLabelSource => {
            let before = app.book.source;
            next_source(app);
            // Other labels may leave a side uncovered that these cover: more may have to be judged.
            return if app.book.source == before { Vec::new() } else { asking::go_on(app) };
        }
        Action::EditStatements => statements::open(app),
        Action::Tune => return tuning::open(app),
        Action::Sway => return swaying::open(app),
        Action::Annotate => return labelling::open(app),
        Action::Compare => return comparing::open(app),
        Action::Answers => return answering::open(app),
        Action::Bias => return biasing::open(app),
        Action::CopyRecipe => return copy(app),
        Action::Toggle(switch) => return switching::toggle(app, switch),
        Action::ToggleEverywhere(switch) => return switching::toggle_everywhere(app, switch),
        Action::MoreRelevance => return switching::weigh(app, 1),
        Action::LessRelevance => return switching::weigh(app, -1),
        Action::Swap => return switching::swap(app),
        Action::NewLane => return lanes::copy(app),
        Action::DropLane => return lanes::drop(app),
        Action::LaneLeft => return lanes::shift(app, -1),
        Action::LaneRight => return lanes::shift(app, 1),
        _ => {}
    }
    keep_in_view(app);
    Vec::new()
}

fn copy(app: &mut App) -> Vec<Effect> {
    let Some(lane) = app.lanes.get(app.lane) else { return Vec::new() };
    let recipe = lane.recipe.to_string();
    app.notice = Some(format!("copied: --lane {recipe}"));
    vec![Effect::Copy(recipe)]
}

/// Lets the next labels count, passing over those that there are none of.
pub fn next_source(app: &mut App) {
    let (gold, human) = match &app.corpus {
        Corpus::Open(opened) => (opened.labelled, opened.by_hand),
        _ => (false, false),
    };
    if !gold && !human {
        app.notice = Some("no labels came with this corpus; give some with --labels FILE".into());
        return;
    }
    app.book.source = app.book.source.next(gold, human);
}

fn count(app: &mut App, k: usize) -> Vec<Effect> {
    if !(1..=DEEPEST).contains(&k) {
        app.notice = Some(format!("from 1 to {DEEPEST} passages can count"));
        return Vec::new();
    }
    app.k = k;
    keep_in_view(app);
    if app.question.text.is_empty() { Vec::new() } else { asking::again(app) }
}

/// Moves the mark among the passages that are shown; of all lanes where they scroll together.
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

/// An action while a filter is typed.
pub fn act_on_filter(app: &mut App, action: Action) -> Vec<Effect> {
    match action {
        Action::KeepFilter => app.filter.typing = false,
        Action::Back => app.filter = Filter::default(),
        action => return act(app, action),
    }
    keep_in_view(app);
    Vec::new()
}

/// A key that edits the filter.
pub fn edit_filter(app: &mut App, key: KeyEvent) -> Vec<Effect> {
    app.filter.line.handle_event(&Event::Key(key));
    keep_in_view(app);
    Vec::new()
}

fn shown(app: &App) -> usize {
    panes(app).lanes.first().map_or(1, |pane| pane.shown()).max(1)
}

/// Moves every lane's first shown passage so that its marked one is on screen.
pub fn keep_in_view(app: &mut App) {
    let rows = shown(app);
    for i in 0..app.lanes.len() {
        let places = app.shown(&app.lanes[i]);
        let lane = &mut app.lanes[i];
        // The nearest one above that the filter lets through, else the first.
        let at = places.partition_point(|place| *place <= lane.selected).saturating_sub(1);
        lane.selected = places.get(at).copied().unwrap_or(0);
        lane.top = lane.top.clamp((at + 1).saturating_sub(rows), at);
    }
}
