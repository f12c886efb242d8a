//! The four switches. A change to a lane keeps the lane's state before it, for rank moves and for `x`.

use crate::engine::Recipe;
use crate::engine::recipe::{Mmr, Rerank, Switch, Toward};
use crate::expand::Kind;
use crate::project::Variant;
use crate::tui::app::{App, Before, Lane, LaneState, Options};
use crate::tui::keymap::{Action, Context};
use crate::tui::message::Effect;
use crate::tui::screens::lanes::question;

/// The steps of λ, small near 1 as in the paper's grid.
const GRID: [f32; 9] = [0.0, 0.25, 0.5, 0.6, 0.75, 0.9, 0.95, 0.99, 1.0];

/// Flips a switch of the lane under the cursor.
pub fn toggle(app: &mut App, switch: Switch) -> Vec<Effect> {
    let Some(lane) = app.lanes.get(app.lane) else { return Vec::new() };
    let on = !lane.recipe.switches.is_on(switch);
    match with_switch(app, &lane.recipe, switch, on) {
        Ok(recipe) => {
            let was = lane.recipe.switches.rerank;
            let effects = change(app, app.lane, recipe);
            let name = |rerank: Option<Rerank>| match rerank {
                Some(Rerank::Mmr(_)) => Some("MMR"),
                Some(Rerank::Diversify(..)) => Some("the diversifier"),
                None => None,
            };
            let now = app.lanes.get(app.lane).and_then(|lane| lane.recipe.switches.rerank);
            if let (Some(was), Some(now)) = (name(was), name(now))
                && was != now
            {
                app.notice = Some(format!("{now} takes the place of {was}: a list is put in order once"));
            }
            effects
        }
        Err(reason) => {
            app.notice = Some(reason);
            Vec::new()
        }
    }
}

/// Switches on in every lane that can use the switch; off everywhere if all of them have it on.
pub fn toggle_everywhere(app: &mut App, switch: Switch) -> Vec<Effect> {
    let flip = |lane: &Lane, on| with_switch(app, &lane.recipe, switch, on);
    let usable = |lane: &&Lane| flip(lane, true).is_ok();
    let on = !app.lanes.iter().filter(usable).all(|lane| lane.recipe.switches.is_on(switch));
    let changed: Vec<_> = app.lanes.iter().map(|lane| flip(lane, on).ok()).collect();
    if changed.iter().all(Option::is_none) {
        app.notice = app.lanes.first().and_then(|lane| flip(lane, true).err());
        return Vec::new();
    }
    for (lane, recipe) in app.lanes.iter_mut().zip(changed) {
        if let Some(recipe) = recipe.filter(|recipe| *recipe != lane.recipe) {
            set_recipe(lane, recipe);
        }
    }
    question::go_on(app)
}

/// Moves λ of the lane's re-ranking one step up or down the grid.
pub fn change_weight(app: &mut App, by: isize) -> Vec<Effect> {
    let Some(lane) = app.lanes.get(app.lane) else { return Vec::new() };
    let step = |lambda: f32, by: isize| {
        let next = if by > 0 {
            GRID.iter().find(|step| **step > lambda + 1e-4)
        } else {
            GRID.iter().rev().find(|step| **step < lambda - 1e-4)
        };
        next.copied().unwrap_or(lambda)
    };
    let mut recipe = lane.recipe.clone();
    match &mut recipe.switches.rerank {
        Some(Rerank::Mmr(Mmr { lambda, .. })) => *lambda = step(*lambda, by),
        // λ of MMR weights relevance; λ of a diversifier weights coverage.
        Some(Rerank::Diversify(_, lambda)) => *lambda = step(*lambda, -by),
        None => {
            app.notice = Some("nothing re-ranks this lane: switch on MMR (m) or the diversifier (v)".into());
            return Vec::new();
        }
    }
    change(app, app.lane, recipe)
}

/// Gives a lane another recipe and asks again.
pub fn change(app: &mut App, lane: usize, recipe: Recipe) -> Vec<Effect> {
    remember(&mut app.options, &recipe);
    let Some(lane) = app.lanes.get_mut(lane) else { return Vec::new() };
    if lane.recipe == recipe {
        return Vec::new();
    }
    set_recipe(lane, recipe);
    question::go_on(app)
}

/// Swaps every changed lane with what it was before; the second press swaps back.
pub fn swap(app: &mut App) -> Vec<Effect> {
    if app.lanes.iter().all(|lane| lane.before.is_none()) {
        app.notice = Some("nothing was changed yet: m, e, p and v change the lane".into());
        return Vec::new();
    }
    if app.lanes.iter().any(|lane| lane.before.is_some() && lane.state == LaneState::Waiting) {
        app.notice = Some("the new order is still on its way".into());
        return Vec::new();
    }
    for lane in &mut app.lanes {
        if let Some(before) = lane.before.as_deref_mut() {
            std::mem::swap(&mut lane.recipe, &mut before.recipe);
            std::mem::swap(&mut lane.ranking, &mut before.ranking);
            std::mem::swap(&mut lane.took, &mut before.took);
            lane.state = if lane.ranking.is_empty() { LaneState::Waiting } else { LaneState::Ready };
            (lane.selected, lane.top) = (0, 0);
        }
    }
    question::go_on(app)
}

/// Changes the recipe and remembers the last list. If no list has arrived since the last change, the older one stays remembered.
fn set_recipe(lane: &mut Lane, recipe: Recipe) {
    let was = std::mem::replace(&mut lane.recipe, recipe);
    if lane.state == LaneState::Ready {
        let ranking = lane.ranking.clone();
        lane.before = Some(Box::new(Before { recipe: was, ranking, took: lane.took }));
    }
    if lane.state != LaneState::Idle {
        lane.state = LaneState::Waiting;
    }
}

/// The recipe with a switch on or off, or the reason why this lane cannot use it.
fn with_switch(app: &App, recipe: &Recipe, switch: Switch, on: bool) -> Result<Recipe, String> {
    let (options, perspectives) = (&app.options, app.question.perspectives.len());
    let key = app.key(Context::Lanes, Action::EditStatements);
    let mut changed = recipe.clone();
    let switches = &mut changed.switches;
    match switch {
        Switch::Mmr => switches.rerank = on.then_some(Rerank::Mmr(options.mmr)),
        Switch::Diversify => {
            let (method, weight) = options.diversify;
            switches.rerank = on.then_some(Rerank::Diversify(method, weight));
            if on && perspectives == 0 {
                return Err(format!("the diversifier needs statements: press {key} to type them"));
            }
        }
        Switch::Expand => {
            let takes = recipe.base.refuses_expansion(options.expand.kind).is_none();
            let usual = || Kind::Perspectives.into();
            switches.expand = on.then(|| if takes { options.expand.clone() } else { usual() });
        }
        Switch::Project => {
            switches.project = on.then(|| {
                let mut project = options.project.clone();
                if recipe.base.refuses_projection(project.variant).is_some() {
                    project.variant = Variant::Pap;
                }
                if let Toward::Perspective(i) = &mut project.toward {
                    *i = (*i).min(perspectives.saturating_sub(1));
                }
                project
            });
        }
    }
    if let Some(reason) = changed.base.refuses(&changed.switches) {
        return Err(reason.into());
    }
    if switch == Switch::Project && on && perspectives == 0 {
        return Err(format!("a projection needs a perspective: press {key} to type one"));
    }
    Ok(changed)
}

/// Remembers the options for the next time the switch is flipped on.
fn remember(options: &mut Options, recipe: &Recipe) {
    let switches = &recipe.switches;
    match switches.rerank {
        Some(Rerank::Mmr(mmr)) => options.mmr = mmr,
        Some(Rerank::Diversify(method, weight)) => options.diversify = (method, weight),
        None => {}
    }
    if let Some(expand) = &switches.expand {
        options.expand = expand.clone();
    }
    if let Some(project) = &switches.project {
        options.project = project.clone();
    }
}
