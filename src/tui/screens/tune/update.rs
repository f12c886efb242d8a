//! Choosing a switch and a form, requesting the figures of all forms, and laying out what an expansion added.

use std::sync::Arc;

use crossterm::event::{Event, KeyEvent};
use ratatui::Frame;
use ratatui::layout::Rect;
use tui_input::Input;
use tui_input::backend::crossterm::EventHandler;

use super::{AddedText, SWITCHES, Tuning, draw};
use crate::corpus::PassageIx;
use crate::engine::recipe::{Diversify, Mmr, Project, Rerank, Switch, Switches, Toward};
use crate::engine::{Batch, List, Ranking, Recipe, Reply, Sweep};
use crate::expand::{Added, AddedFrom, Expansion, Kind, Queries};
use crate::project::Variant;
use crate::report::marks::Mark;
use crate::report::plot::{Moved, Series, curves, moves};
use crate::report::safe;
use crate::tui::app::{App, Corpus, LaneState};
use crate::tui::keymap::{Action, Context, Screen};
use crate::tui::layout::panes;
use crate::tui::message::Effect;
use crate::tui::page::Page;
use crate::tui::screens::lanes::{question, switches};
use crate::tui::theme::{Meaning, Theme};
use crate::tui::widgets::text::{Row, piece, rows};

/// λ of MMR, falling; the paper's grid is .5 .75 .9 .95 .99.
const LAMBDAS: [f32; 9] = [0.99, 0.95, 0.9, 0.8, 0.75, 0.5, 0.25, 0.1, 0.0];
/// λ of the diversifiers.
const WEIGHTS: [f32; 4] = [0.25, 0.5, 0.75, 1.0];

/// The tuning screen.
pub struct Tune;

impl Page for Tune {
    fn screen(&self) -> Screen {
        Screen::TUNE
    }

    fn context(&self, app: &App) -> Context {
        if app.tuning.typed.is_some() { Context::Toward } else { Context::Tune }
    }

    fn opened_by(&self) -> Option<Action> {
        Some(Action::Tune)
    }

    fn open(&self, app: &mut App) -> Vec<Effect> {
        open(app)
    }

    fn act(&self, app: &mut App, action: Action) -> Vec<Effect> {
        act(app, action)
    }

    fn edit(&self, app: &mut App, key: KeyEvent) -> Vec<Effect> {
        edit(app, key)
    }

    fn line<'a>(&self, app: &'a mut App) -> Option<&'a mut Input> {
        app.tuning.typed.as_mut()
    }

    fn reply(&self, app: &mut App, reply: Reply) -> Result<Vec<Effect>, Box<Reply>> {
        match reply {
            Reply::Swept { number, tallies, ended } => {
                if number == app.tuning.number {
                    (app.tuning.tallies, app.tuning.ended) = (tallies, ended);
                }
                Ok(Vec::new())
            }
            other => Err(Box::new(other)),
        }
    }

    fn embedded(&self, app: &mut App) -> Vec<Effect> {
        measure(app)
    }

    fn settled(&self, app: &App) -> bool {
        app.tuning.ended
    }

    fn refresh(&self, app: &mut App) {
        lay_out(app);
    }

    fn plot(&self, app: &App) -> Option<String> {
        plot(app)
    }

    fn draw(&self, app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
        draw::draw(app, theme, area, frame);
    }
}

/// Opens the screen on the lane under the cursor.
pub fn open(app: &mut App) -> Vec<Effect> {
    question::read_line(app);
    if app.question.text.is_empty() {
        app.notice = Some("ask a question first; the lane's forms can then be compared on it".into());
        return Vec::new();
    }
    let Some(lane) = app.lanes.get(app.lane) else { return Vec::new() };
    let switched_on = SWITCHES.into_iter().find(|switch| lane.recipe.switches.is_on(*switch));
    app.screen = Screen::TUNE;
    question::begin_preview(app);
    app.tuning = Tuning { over_set: app.tuning.over_set, ..Tuning::default() };
    show(app, switched_on.unwrap_or(Switch::Mmr))
}

/// Performs an action.
pub fn act(app: &mut App, action: Action) -> Vec<Effect> {
    let place = SWITCHES.iter().position(|switch| *switch == app.tuning.switch).unwrap_or(0);
    let page = usize::from(app.size.height / 2).max(1);
    match action {
        Action::NextSwitch => return show(app, SWITCHES[(place + 1) % SWITCHES.len()]),
        Action::PreviousSwitch => return show(app, SWITCHES[(place + SWITCHES.len() - 1) % SWITCHES.len()]),
        Action::Down => return mark(app, app.tuning.at + 1),
        Action::Up => return mark(app, app.tuning.at.saturating_sub(1)),
        Action::PageDown => app.tuning.scroll += page,
        Action::PageUp => app.tuning.scroll = app.tuning.scroll.saturating_sub(page),
        Action::OverSet => {
            let questions = matches!(&app.corpus, Corpus::Open(opened) if !opened.questions.is_empty());
            if !questions && !app.tuning.over_set {
                app.notice = Some("there is no question set; give one with --questions FILE".into());
                return Vec::new();
            }
            app.tuning.over_set = !app.tuning.over_set;
            return measure(app);
        }
        Action::TypePerspective => {
            let reason =
                app.lanes.get(app.lane).and_then(|lane| lane.recipe.base.refuses_projection(Variant::Pap));
            if let Some(reason) = reason {
                app.notice = Some(reason.into());
                return Vec::new();
            }
            app.tuning.typed = Some(Input::default());
        }
        Action::ApplyPerspective => return project(app),
        Action::Back if app.tuning.typed.is_some() => app.tuning.typed = None,
        Action::TakeForm => {
            question::take_preview(app);
            return app.leave();
        }
        Action::Back => {
            let mut effects = question::give_up_preview(app);
            effects.extend(app.leave());
            return effects;
        }
        _ => {}
    }
    Vec::new()
}

/// Edits the perspective being typed.
pub fn edit(app: &mut App, key: KeyEvent) -> Vec<Effect> {
    if let Some(typed) = &mut app.tuning.typed {
        typed.handle_event(&Event::Key(key));
    }
    Vec::new()
}

/// Projects the lane toward the perspective that was typed.
fn project(app: &mut App) -> Vec<Effect> {
    let typed = app.tuning.typed.take().unwrap_or_default();
    let text = typed.value().trim();
    let Some(lane) = app.lanes.get(app.lane).filter(|_| !text.is_empty()) else { return Vec::new() };
    let variant = lane.recipe.switches.project.as_ref().map_or(Variant::PapPlus, |project| project.variant);
    let mut recipe = lane.recipe.clone();
    recipe.switches.project = Some(Project { variant, toward: Toward::Text(text.into()) });
    let mut effects = switches::change(app, app.lane, recipe);
    effects.extend(show(app, Switch::Project));
    effects
}

/// Shows one switch's forms and marks the lane's own.
fn show(app: &mut App, switch: Switch) -> Vec<Effect> {
    let Some(lane) = app.lanes.get(app.lane) else { return Vec::new() };
    let perspectives = app.question.perspectives.len();
    let mut forms = forms(&lane.recipe, switch, perspectives);
    if !forms.contains(&lane.recipe) {
        forms.push(lane.recipe.clone());
    }
    app.tuning.at = forms.iter().position(|form| *form == lane.recipe).unwrap_or(0);
    (app.tuning.switch, app.tuning.forms, app.tuning.scroll) = (switch, forms, 0);
    measure(app)
}

/// Gives the lane the form at an index.
fn mark(app: &mut App, at: usize) -> Vec<Effect> {
    let Some(form) = app.tuning.forms.get(at).cloned() else { return Vec::new() };
    (app.tuning.at, app.tuning.scroll) = (at, 0);
    switches::change(app, app.lane, form)
}

/// Requests the figures of all forms.
pub fn measure(app: &mut App) -> Vec<Effect> {
    let number = app.next_batch();
    let tuning = &mut app.tuning;
    tuning.number = number;
    (tuning.tallies, tuning.ended) = (Ok(Vec::new()), false);
    let questions = match &app.corpus {
        Corpus::Open(opened) if tuning.over_set => opened.questions.clone(),
        _ => vec![app.question.clone()],
    };
    let sweep = Sweep { forms: tuning.forms.clone(), questions, k: app.k, source: app.judgments.source };
    vec![Effect::Batch(tuning.number, Batch::Sweep(sweep))]
}

/// The recipe in all forms of one switch, off first.
fn forms(recipe: &Recipe, switch: Switch, perspectives: usize) -> Vec<Recipe> {
    match switch {
        Switch::Mmr => {
            let own = match recipe.switches.rerank {
                Some(Rerank::Mmr(own)) => own,
                _ => Mmr::new(0.0),
            };
            let form =
                |lambda| with(recipe, |switches| switches.rerank = Some(Rerank::Mmr(Mmr { lambda, ..own })));
            std::iter::once(with(recipe, |switches| switches.rerank = None))
                .chain(LAMBDAS.map(form))
                .collect()
        }
        Switch::Diversify => {
            let mut forms = vec![with(recipe, |switches| switches.rerank = None)];
            let methods = [Diversify::Xquad, Diversify::Pm2].into_iter().filter(|_| perspectives > 0);
            for method in methods {
                let form = |weight| {
                    with(recipe, |switches| switches.rerank = Some(Rerank::Diversify(method, weight)))
                };
                forms.extend(WEIGHTS.map(form));
            }
            forms
        }
        Switch::Expand => {
            let kinds = Kind::ALL.into_iter().filter(|kind| recipe.base.refuses_expansion(*kind).is_none());
            // The lane's own options stay in its own form.
            let own = |kind| recipe.switches.expand.clone().filter(|own| own.kind == kind);
            let forms = kinds.map(|kind| {
                with(recipe, |switches| switches.expand = own(kind).or_else(|| Some(kind.into())))
            });
            std::iter::once(with(recipe, |switches| switches.expand = None)).chain(forms).collect()
        }
        Switch::Project => projections(recipe, perspectives),
    }
}

/// The recipe with its switches changed.
fn with(recipe: &Recipe, change: impl FnOnce(&mut Switches)) -> Recipe {
    let mut form = recipe.clone();
    change(&mut form.switches);
    form
}

/// Off, every variant toward the lane's perspective, then its own variant toward every other perspective.
fn projections(recipe: &Recipe, perspectives: usize) -> Vec<Recipe> {
    let off = with(recipe, |switches| switches.project = None);
    let (variant, toward) = match &recipe.switches.project {
        Some(Project { variant, toward }) => (*variant, toward.clone()),
        None if recipe.base.refuses_projection(Variant::Pap).is_some() || perspectives == 0 => {
            return vec![off];
        }
        None if recipe.base.refuses_projection(Variant::PapPlus).is_some() => {
            (Variant::Pap, Toward::Perspective(perspectives.min(2) - 1))
        }
        None => (Variant::PapPlus, Toward::Perspective(perspectives.min(2) - 1)),
    };
    let form = |variant, toward: Toward| {
        with(recipe, |switches| switches.project = Some(Project { variant, toward }))
    };
    let mut forms = vec![off];
    let variants = Variant::ALL
        .into_iter()
        .filter(|variant| *variant != Variant::None && recipe.base.refuses_projection(*variant).is_none());
    forms.extend(variants.map(|variant| form(variant, toward.clone())));
    let others = (0..perspectives).map(Toward::Perspective).filter(|other| *other != toward);
    forms.extend(others.map(|other| form(variant, other)));
    forms
}

/// The curve over λ, or the plane of a projection, as a picture.
fn plot(app: &App) -> Option<String> {
    let lane = app.lanes.get(app.lane)?;
    match app.tuning.switch {
        Switch::Mmr => {
            let names = ["MRecall", "Prec"].map(|name| format!("{name}@{}", app.k));
            let lines = names.into_iter().zip(app.tuning.curves());
            let series: Vec<Series> =
                lines.map(|(name, points)| Series { name, points, ..Series::default() }).collect();
            let name = lane.recipe.title();
            series.iter().any(|one| !one.points.is_empty()).then(|| curves(&series, "λ of MMR", &name))
        }
        Switch::Project => {
            let projected = lane.ranking.trace.projected().filter(|_| lane.state == LaneState::Ready)?;
            let moved = draw::moves(app, lane, projected).into_iter().map(|(mark, [from, to])| {
                let side = match mark {
                    Mark::Support => Some(0),
                    Mark::Oppose => Some(1),
                    Mark::Several => Some(2),
                    Mark::None => Some(3),
                    Mark::Other(_) | Mark::Unclear | Mark::Pending => None,
                };
                Moved { side, from, to }
            });
            Some(moves(&moved.collect::<Vec<_>>(), draw::PLANE.0, draw::PLANE.1))
        }
        Switch::Expand | Switch::Diversify => None,
    }
}

/// Lays out what the expansion added, if the list or the width has changed.
fn lay_out(app: &mut App) {
    let body = panes(app).body;
    let rest = Rect { height: body.height.saturating_sub(1), ..body };
    let width = usize::from(draw::areas(app, rest).1.width.saturating_sub(2));
    let Some(lane) = app.lanes.get(app.lane) else { return };
    let same = |(list, columns): &(Ranking, usize)| Arc::ptr_eq(list, &lane.ranking) && *columns == width;
    if !app.tuning.added.inputs.as_ref().is_some_and(same) {
        let list = Arc::clone(&lane.ranking);
        let rows = list.trace.expansion().map(|expansion| expansion_rows(expansion, &list, width));
        app.tuning.added = AddedText { rows: rows.unwrap_or_default(), inputs: Some((list, width)) };
    }
}

/// An expansion's texts, with their origins and warnings.
fn expansion_rows(expansion: &Expansion, list: &List, width: usize) -> Vec<Row> {
    let mut lines = vec![vec![piece(safe::line(&expansion.describe()), Meaning::Title)]];
    for note in &list.trace.notes {
        lines.extend(rows(note, "  ", width, Meaning::Warn));
    }
    if let Some(tokens) = expansion.cost.tokens {
        let text = format!("{} tokens read, {} written", tokens.prompt, tokens.reply);
        lines.push(vec![piece(text, Meaning::Muted)]);
    }
    if let Queries::Terms(weights) = &expansion.queries {
        let text: Vec<String> = weights.iter().map(|(term, weight)| format!("{term} {weight:.3}")).collect();
        lines.extend(rows(&text.join(" · "), "  ", width, Meaning::Text));
    }
    for added in &expansion.added {
        lines.push(Row::new());
        let name = added.name.as_ref().map_or_else(String::new, |name| format!("{}: ", safe::line(name)));
        lines
            .push(vec![piece(name, Meaning::Title), piece(origin_text(&added.source, list), Meaning::Muted)]);
        lines.extend(text_rows(added, list, width));
    }
    lines
}

fn origin_text(source: &AddedFrom, list: &List) -> String {
    match source {
        AddedFrom::Given => "from the question set".into(),
        AddedFrom::Statement(i) => format!("statement {} of the question", i + 1),
        AddedFrom::Model { model, recorded: true, .. } => format!("recorded reply of {}", safe::line(model)),
        AddedFrom::Model { model, .. } => format!("written by {}", safe::line(model)),
        AddedFrom::Passage { at, rank } => {
            format!("from the passage at rank {rank}{}", passage_title(*at, list))
        }
        AddedFrom::Feedback => "terms of the first passages".into(),
    }
}

/// A passage's title, if the passage is in the list.
fn passage_title(at: PassageIx, list: &List) -> String {
    let ranked = list.iter().find(|ranked| ranked.at == at);
    ranked.map_or_else(String::new, |ranked| format!(", {}", safe::line(&ranked.passage.title)))
}

/// The text of an expansion. Sentences that a model copied but that are in no passage are marked.
fn text_rows(added: &Added, list: &List, width: usize) -> Vec<Row> {
    let by_model = matches!(added.source, AddedFrom::Model { .. });
    if added.sentences.is_empty() || !by_model {
        return rows(&added.text, "  ", width, Meaning::Text);
    }
    let each = added.sentences.iter().flat_map(|(range, passage)| {
        let text = added.text.get(range.clone()).unwrap_or_default();
        match passage {
            Some(at) => {
                let text = format!("{text} [in the corpus{}]", passage_title(*at, list));
                rows(&text, "  ", width, Meaning::Text)
            }
            None => rows(&format!("{text} [not in the passages]"), "  ", width, Meaning::Warn),
        }
    });
    each.collect()
}
