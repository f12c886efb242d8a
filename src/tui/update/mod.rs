//! What every message does to the state, and what it orders. No input or output, no clock, no locks.

pub mod answering;
mod asking;
mod biasing;
mod comparing;
pub mod labelling;
mod lanes;
mod marking;
mod moving;
pub mod palette;
mod pasting;
mod reading;
mod replaying;
mod replies;
mod statements;
mod swaying;
mod switching;
pub mod tuning;

use crossterm::event::{KeyEvent, MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::{Position, Rect};

use super::app::{App, Palette, Screen};
use super::config::{Config, Problems};
use super::draw::help;
use super::keymap::{Action, Context};
use super::layout::{self, Panes, arrange};
use super::message::{Effect, Msg};
use crate::work::Job;

/// Changes the state as the message asks, and orders what follows from it.
pub fn update(app: &mut App, msg: Msg) -> Vec<Effect> {
    match msg {
        Msg::Key(key) if app.replay.is_some() => replaying::press(app, key),
        Msg::Mouse(_) | Msg::Pasted(_) if app.replay.is_some() => Vec::new(),
        Msg::Passed(time) => replaying::pass(app, time),
        Msg::Recorded(what) => {
            replaying::recorded(app, what);
            Vec::new()
        }
        msg => heard(app, msg),
    }
}

/// As [`update`], whether a person did it or a replay does it again.
fn heard(app: &mut App, msg: Msg) -> Vec<Effect> {
    match msg {
        Msg::Key(key) => press(app, key),
        Msg::Mouse(mouse) => point(app, mouse),
        Msg::Pasted(text) => pasting::paste(app, &text),
        Msg::Resized(size) => {
            app.size = size;
            moving::keep_in_view(app);
            reading::keep_in_view(app);
            Vec::new()
        }
        Msg::QuietPeriodEnded { turn, reach } => asking::quiet(app, turn, reach),
        Msg::Progressed { progress, told } => {
            replies::progressed(app, progress, told);
            Vec::new()
        }
        Msg::Engine(reply) => replies::take(app, reply),
        Msg::Configured(read) => {
            configured(app, read);
            Vec::new()
        }
        Msg::Saved(saved) => {
            app.notice = Some(match saved {
                Ok(name) => format!("saved as {name}"),
                Err(reason) => reason,
            });
            Vec::new()
        }
        Msg::Terminated => vec![Effect::Quit],
        Msg::Passed(_) | Msg::Recorded(_) => Vec::new(),
    }
}

/// Takes a changed configuration; one that is wrong leaves the old one as it is.
fn configured(app: &mut App, read: Result<Config, Problems>) {
    app.notice = Some(match read {
        Ok(config) => {
            app.glyphs = config.glyphs;
            // A session is played with its own keys and layout.
            let (keys, layout) = match &mut app.replay {
                Some(replay) => (&mut replay.keys, &mut replay.layout),
                None => (&mut app.keys, &mut app.layout),
            };
            (*keys, *layout) = (config.keys, config.layout);
            moving::keep_in_view(app);
            "the configuration was read again".into()
        }
        Err(problems) => problems.short(),
    });
}

/// Where the panes stand now.
fn panes(app: &App) -> Panes {
    arrange(Rect::new(0, 0, app.size.width, app.size.height), app)
}

/// Where keys go now.
pub fn context(app: &App) -> Context {
    if app.palette.is_some() { Context::Palette } else { below(app) }
}

/// Where keys go when no action is being looked for.
fn below(app: &App) -> Context {
    match app.screen {
        Screen::Explore if app.typing => Context::Question,
        Screen::Explore if app.filter.typing => Context::Filter,
        Screen::Explore => Context::Lanes,
        Screen::Read => Context::Read,
        Screen::Statements => Context::Statements,
        Screen::Tune if app.tuning.typed.is_some() => Context::Toward,
        Screen::Tune => Context::Tune,
        Screen::Sway => Context::Sway,
        Screen::Compare => Context::Compare,
        Screen::Annotate if app.labelling.typed.is_some() => Context::Note,
        Screen::Annotate if app.labelling.marking.is_some() => Context::Marking,
        Screen::Annotate => Context::Annotate,
        Screen::Bias => Context::Bias,
        Screen::Answer => Context::Answer,
        Screen::Help => Context::Help,
    }
}

fn press(app: &mut App, key: KeyEvent) -> Vec<Effect> {
    let context = context(app);
    let acts = app.keys.action(context, &key);
    let at_once = matches!(acts, Some(Action::Quit | Action::Suspend));
    if app.screen == Screen::Annotate && app.labelling.saving.is_some() && !at_once {
        app.labelling.ahead.push_back(key);
        return Vec::new();
    }
    app.notice = None;
    match acts {
        Some(action) => act(app, context, action),
        None if context == Context::Question => asking::edit(app, key),
        None if context == Context::Filter => moving::edit_filter(app, key),
        None if context == Context::Statements => statements::edit(app, key),
        None if context == Context::Toward => tuning::edit(app, key),
        None if context == Context::Note => labelling::edit(app, key),
        None if context == Context::Palette => palette::edit(app, key),
        None => Vec::new(),
    }
}

/// Leaves an instrument for the lanes; its survey is given up.
fn leave(app: &mut App) -> Vec<Effect> {
    app.screen = Screen::Explore;
    app.jobs.retain(|(progress, _)| progress.job != Job::Counting);
    vec![Effect::StopSurvey(app.next_survey())]
}

fn act(app: &mut App, context: Context, action: Action) -> Vec<Effect> {
    match (context, action) {
        (_, Action::Quit) => return vec![Effect::Quit],
        (_, Action::Suspend) => return vec![Effect::Suspend],
        (_, Action::Palette) => app.palette = Some(Palette::default()),
        (Context::Palette, action) => return palette::act(app, action),
        (_, Action::Record) => return replaying::record(app),
        (_, Action::SaveFrame) => return vec![Effect::SaveFrame],
        (_, Action::Help) => (app.help_from, app.screen) = (app.screen, Screen::Help),
        (Context::Question, action) => return asking::act(app, action),
        (Context::Filter, action) => return moving::act_on_filter(app, action),
        (Context::Statements, action) => return statements::act(app, action),
        (Context::Read, action) => return reading::act(app, action),
        (Context::Compare, action) => return comparing::act(app, action),
        (Context::Annotate, action) => return labelling::act(app, action),
        (Context::Note, action) => return labelling::act_on_note(app, action),
        (Context::Marking, action) => return marking::act(app, action),
        (Context::Bias, action) => return biasing::act(app, action),
        (Context::Answer, action) => return answering::act(app, action),
        (Context::Sway, action) => return swaying::act(app, action),
        (Context::Tune | Context::Toward, action) => return tuning::act(app, action),
        (Context::Help, action) => scroll_help(app, action),
        (_, action) => return moving::act(app, action),
    }
    Vec::new()
}

fn scroll_help(app: &mut App, action: Action) {
    let (last, page) = (help::last(app), help::shown_lines(app).max(1));
    let at = app.help_scroll.min(last);
    let at = match action {
        Action::Down => at + 1,
        Action::Up => at.saturating_sub(1),
        Action::PageDown => at + page,
        Action::PageUp => at.saturating_sub(page),
        Action::First => 0,
        Action::Last => last,
        _ => {
            app.screen = app.help_from;
            0
        }
    };
    app.help_scroll = at.min(last);
}

fn point(app: &mut App, mouse: MouseEvent) -> Vec<Effect> {
    let at = Position { x: mouse.column, y: mouse.row };
    match (app.screen, mouse.kind) {
        (Screen::Explore, MouseEventKind::Down(MouseButton::Left)) => {
            let panes = panes(app);
            if panes.question.contains(at) {
                return moving::act(app, Action::EditQuestion);
            }
            app.dragged = layout::border_at(&panes, at);
            if app.dragged.is_some() {
                return Vec::new();
            }
            if let Some((lane, passage)) = layout::passage_at(&panes, app, at) {
                app.typing = false;
                let again = app.lane == lane && passage == Some(app.lanes[lane].selected);
                app.lane = lane;
                if let Some(passage) = passage {
                    app.lanes[lane].selected = passage;
                }
                // A second click on the marked passage opens it.
                return if again { moving::act(app, Action::Read) } else { Vec::new() };
            }
        }
        (Screen::Explore, MouseEventKind::Drag(MouseButton::Left)) => {
            if let Some(lane) = app.dragged
                && let Some((left, right)) = layout::dragged(&panes(app), app, lane, mouse.column)
            {
                (app.lanes[lane].width, app.lanes[lane + 1].width) = (left, right);
            }
        }
        (_, MouseEventKind::Up(_)) => app.dragged = None,
        (Screen::Explore, MouseEventKind::ScrollDown) => return moving::act(app, Action::Down),
        (Screen::Explore, MouseEventKind::ScrollUp) => return moving::act(app, Action::Up),
        (Screen::Annotate, MouseEventKind::ScrollDown) => return labelling::act(app, Action::Down),
        (Screen::Annotate, MouseEventKind::ScrollUp) => return labelling::act(app, Action::Up),
        (Screen::Read, MouseEventKind::ScrollDown) => return reading::act(app, Action::Down),
        (Screen::Read, MouseEventKind::ScrollUp) => return reading::act(app, Action::Up),
        _ => {}
    }
    Vec::new()
}
