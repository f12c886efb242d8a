//! Applies every message to the state and returns its effects. Does no I/O, reads no clock and takes no lock.

use std::mem;
use std::sync::Arc;

use crossterm::event::{KeyEvent, MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::Position;

use super::app::{App, Corpus, LaneState};
use super::config::{Config, Problems};
use super::keymap::{Action, Context, Screen};
use super::layout::{keep_in_view, panes};
use super::message::{Effect, Msg};
use super::pages::{PAGES, context, page};
use super::screens::help::screen as help;
use super::screens::lanes::{self, question, switches};
use super::screens::palette::screen as palette;
use super::screens::palette::{Does, Palette};
use super::session::record;
use super::widgets::footer;
use crate::engine::{Reply, Turn};
use crate::question::By;
use crate::report::{marks::share, safe};
use crate::work::{Job, Progress};

/// Applies a message to the state, works out what is drawn, and returns the effects for the shell to carry out.
pub fn update(app: &mut App, msg: Msg) -> Vec<Effect> {
    let effects = match msg {
        Msg::Key(key) if app.replay.is_some() => record::press(app, key, handle),
        Msg::Mouse(_) | Msg::Pasted(_) if app.replay.is_some() => return Vec::new(),
        Msg::Passed(time) => record::pass(app, time, handle),
        msg => return handle(app, msg),
    };
    // A replay changes more than its acts do: the notice, and at its end the keys and the layout.
    refresh(app);
    effects
}

/// Applies one of several messages that are drawn together, with the same result as [`update`].
///
/// Verdicts arrive in hundreds, and each changes the figures of every lane; each outcome of a comparison changes its statistics. After
/// such a reply, `stale` is set instead of working out what is drawn. The next message of another kind does that first; before drawing,
/// the caller calls [`refresh`] if `stale` is set.
pub fn update_in_burst(app: &mut App, msg: Msg, stale: &mut bool) -> Vec<Effect> {
    if matches!(msg, Msg::Engine(Reply::Verdict { .. } | Reply::Compared { .. })) {
        *stale = true;
        return change(app, msg);
    }
    if mem::take(stale) {
        refresh(app);
    }
    update(app, msg)
}

/// Works out whatever is drawn and depends on something that changed.
pub fn refresh(app: &mut App) {
    lanes::update::refresh(app);
    let page = page(app.screen);
    page.refresh(app);
    let below = page.context(app);
    palette::refresh(app, below);
}

/// Applies a message from outside or an act of a replay, and works out what is drawn.
fn handle(app: &mut App, msg: Msg) -> Vec<Effect> {
    let effects = change(app, msg);
    refresh(app);
    effects
}

fn change(app: &mut App, msg: Msg) -> Vec<Effect> {
    match msg {
        Msg::Key(key) => press(app, key),
        Msg::Mouse(mouse) => point(app, mouse),
        Msg::Pasted(text) => paste(app, &text),
        Msg::Resized(size) => {
            app.size = size;
            keep_in_view(app);
            Vec::new()
        }
        Msg::QuietPeriodEnded { turn, reach } => question::quiet(app, turn, reach),
        Msg::Progressed { progress, text } => {
            take_progress(app, progress, text);
            Vec::new()
        }
        Msg::Engine(reply) => take_reply(app, reply),
        Msg::Configured(read) => {
            take_config(app, read);
            Vec::new()
        }
        Msg::Saved(saved) => {
            app.notice = Some(match saved {
                Ok(name) => format!("saved as {name}"),
                Err(reason) => reason,
            });
            Vec::new()
        }
        Msg::Waits(words) => {
            app.notice = Some(words);
            Vec::new()
        }
        Msg::Gathered(gathered) => question::take_gathered(app, gathered),
        Msg::Terminated => vec![Effect::Quit],
        Msg::StopAsked => vec![Effect::Suspend],
        Msg::Recorded(recording) => {
            record::report(app, recording);
            Vec::new()
        }
        Msg::Passed(_) | Msg::Continued => Vec::new(),
    }
}

/// Takes a changed configuration. One with problems is reported, and the old one stays.
fn take_config(app: &mut App, read: Result<Config, Problems>) {
    app.notice = Some(match read {
        Ok(config) => {
            app.settings = config.clone();
            (app.glyphs, app.look) = (config.glyphs, config.look());
            // A replay keeps the keys and the layout of its session.
            let (keys, layout) = match &mut app.replay {
                Some(replay) => (&mut replay.keys, &mut replay.layout),
                None => (&mut app.keys, &mut app.layout),
            };
            (*keys, *layout) = (config.keys, config.layout);
            keep_in_view(app);
            "the configuration was read again".into()
        }
        Err(problems) => problems.short(),
    });
}

fn press(app: &mut App, key: KeyEvent) -> Vec<Effect> {
    let here = context(app);
    let action = app.keys.action(here, &key);
    let at_once = matches!(action, Some(Action::Quit | Action::Suspend));
    if !at_once && page(app.screen).hold(app, key) {
        return Vec::new();
    }
    (app.notice, app.hint) = (None, None);
    if action != Some(Action::Explain) {
        app.explained = None;
    }
    match action {
        Some(action) => act(app, here, action),
        None if here == Context::Palette => {
            palette::edit(app, key);
            Vec::new()
        }
        None => page(app.screen).edit(app, key),
    }
}

/// Carries out an action.
fn act(app: &mut App, here: Context, action: Action) -> Vec<Effect> {
    match action {
        Action::Quit => return switches::quit(app),
        Action::Suspend => return vec![Effect::Suspend],
        Action::Palette => app.palette = Some(Palette::default()),
        action if here == Context::Palette => {
            let below = page(app.screen).context(app);
            return match palette::act(app, action) {
                Some(Does::Act(chosen)) => act(app, below, chosen),
                Some(chosen) => {
                    let before = question::state(app);
                    let effects = palette::choose(app, chosen);
                    // Nothing of another corpus can be undone.
                    if !matches!(app.corpus, Corpus::Opening) {
                        switches::keep(app, before);
                    }
                    effects
                }
                None => Vec::new(),
            };
        }
        Action::Record => return record::record(app),
        Action::Ask => {
            let effects = watched(app, action);
            offer_statements(app);
            return effects;
        }
        Action::SaveFrame => return vec![Effect::SaveFrame],
        action => return watched(app, action),
    }
    Vec::new()
}

/// Opens the statements for typing if no rule made any for the question that was asked. Once for each question: a user who leaves them
/// without typing wants the lanes alone.
fn offer_statements(app: &mut App) {
    let lacks = app.by == By::None && app.question.perspectives.is_empty() && !app.question.text.is_empty();
    let offered = app.editing.offered.as_ref() == Some(&app.question.text);
    if lacks
        && !offered
        && app.screen == Screen::LANES
        && !app.typing
        && matches!(app.corpus, Corpus::Open(_))
    {
        page(Screen::STATEMENTS).open(app);
        app.editing.offered = Some(app.question.text.clone());
    }
}

/// Carries out an action of a screen, and keeps the state before it if it was an act.
fn watched(app: &mut App, action: Action) -> Vec<Effect> {
    let before = switches::may_change(app, action).then(|| question::state(app));
    let opened = PAGES.into_iter().find(|page| page.opened_by() == Some(action));
    let here = context(app);
    let from_here = app.screen == Screen::LANES || matches!(action, Action::Help | Action::FramingLab);
    let effects = match (action, opened.filter(|_| from_here)) {
        (Action::Undo, _) if switches::is_here(app) => switches::undo(app),
        (Action::Redo, _) if switches::is_here(app) => switches::redo(app),
        (_, Some(page)) => page.open(app),
        (_, None) => page(app.screen).act(app, action),
    };
    if action == Action::Help {
        help::show(app, here);
    }
    if let Some(before) = before {
        switches::keep(app, before);
    }
    effects
}

fn point(app: &mut App, mouse: MouseEvent) -> Vec<Effect> {
    if matches!(mouse.kind, MouseEventKind::Up(_)) {
        app.dragged = None;
    }
    let at = Position { x: mouse.column, y: mouse.row };
    if mouse.kind == MouseEventKind::Down(MouseButton::Left)
        && let Some(action) = footer::target(app, &panes(app), at)
    {
        let here = context(app);
        app.notice = None;
        return act(app, here, action);
    }
    match page(app.screen).point(app, mouse) {
        Some(action) => {
            let here = page(app.screen).context(app);
            act(app, here, action)
        }
        None => Vec::new(),
    }
}

/// Inserts pasted text, as one safe line, at the cursor of the line being typed.
fn paste(app: &mut App, text: &str) -> Vec<Effect> {
    let here = context(app);
    // Only as much of the text is used as can fit.
    let text = safe::line(&text.trim().chars().take(question::LONGEST + 1).collect::<String>());
    if here == Context::Question && mem::take(&mut app.recalled) {
        question::replace_recalled(app);
    }
    let line = match &mut app.palette {
        Some(palette) => Some(&mut palette.line),
        None => page(app.screen).line(app),
    };
    let Some(line) = line else { return Vec::new() };
    let before = line.value().chars().count();
    let cut = question::insert(line, &text, question::LONGEST.saturating_sub(before));
    let more = line.value().chars().count() > before;
    if cut {
        let what = if here == Context::Question { "question" } else { "line" };
        app.notice = Some(format!("a {what} has at most {} characters", question::LONGEST));
    }
    match &mut app.palette {
        Some(palette) => palette.at = 0,
        None if more => return page(app.screen).pasted(app),
        None => {}
    }
    Vec::new()
}

/// Takes a reply of the engine.
fn take_reply(app: &mut App, reply: Reply) -> Vec<Effect> {
    if turn(&reply).is_some_and(|turn| turn != app.turn) {
        return Vec::new();
    }
    match reply {
        Reply::Opened(opened) => {
            app.jobs.retain(|(progress, _)| progress.job == Job::Gathering);
            app.notice = opened.notice.clone().or(app.notice.take());
            app.judgments.decide_by(Arc::clone(&opened.rule));
            app.corpus = Corpus::Open(opened);
            app.returns_to = None;
            if !app.line.value().trim().is_empty() {
                // The user can go on typing while the lanes start.
                if app.typing {
                    return question::changed(app);
                }
                let effects = question::ask(app);
                offer_statements(app);
                return effects;
            }
            question::complete(app);
        }
        Reply::OpenFailed(reason) => {
            app.jobs.retain(|(progress, _)| progress.job == Job::Gathering);
            (app.settled, app.typing) = (true, false);
            if let Some(source) = app.returns_to.take() {
                app.judgments.source = source;
                // What was done there can be undone again.
                if let Some(left) = app.acts.left.take() {
                    app.acts = left.1;
                }
                app.notice = Some(format!("{reason}; the corpus from before is opened again"));
                return vec![Effect::ReturnToCorpus];
            }
            app.corpus = Corpus::Failed(reason);
        }
        // A shell with a clock sends `Msg::Progressed` instead, with a rate.
        Reply::Progress(progress) => take_progress(app, progress, progress.job.name().to_owned()),
        Reply::Embedded(done) => {
            // Embedding and gathering are the only jobs once a corpus is open.
            app.jobs.retain(|(progress, _)| progress.job == Job::Gathering);
            match done {
                Ok(()) => return wake(app),
                Err(reason) => {
                    for lane in app.lanes.iter_mut().filter(|lane| waits(&lane.state)) {
                        lane.state = LaneState::Failed(reason.clone(), None);
                    }
                }
            }
        }
        Reply::LaneReady { lane, ranking, took, .. } => {
            if let Some(lane) = app.lanes.get_mut(lane) {
                // The cursor stays if the list is the same. In another list it follows its passage, if that is still among the first k, so that
                // a label does not hit another one; at the top it stays at the top.
                if !lane.ranking.iter().map(|ranked| ranked.at).eq(ranking.iter().map(|ranked| ranked.at)) {
                    let marked = lane.ranking.get(lane.selected).filter(|_| lane.selected > 0);
                    let now = ranking
                        .iter()
                        .take(app.k)
                        .position(|ranked| marked.is_some_and(|own| own.at == ranked.at));
                    (lane.selected, lane.top) = (now.unwrap_or(0), 0);
                }
                (lane.ranking, lane.took, lane.state) = (ranking, took, LaneState::Ready);
            }
            keep_in_view(app);
            return page(app.screen).changed(app);
        }
        Reply::LaneFailed { lane, reason, waits, .. } => {
            if let Some(lane) = app.lanes.get_mut(lane) {
                lane.state = LaneState::Failed(reason, waits);
                lane.ranking = Default::default();
            }
        }
        Reply::Reworded { lane, lists, .. } => {
            if let Some(lane) = app.lanes.get_mut(lane) {
                lane.reworded = Some(lists);
            }
        }
        Reply::FarOff { best, usual, .. } => {
            let corpus = app.key(Context::Lanes, Action::PickCorpus);
            app.far_off = Some((best, usual));
            // While a question is typed, the notice would come and go below it, and its keys would be typed too. Asking brings it.
            if app.typing {
                return Vec::new();
            }
            // The keys that the notice names would be typed into a draft that nobody asked for.
            if app.screen == Screen::STATEMENTS && app.editing.offered.as_ref() == Some(&app.question.text) {
                app.screen = Screen::LANES;
            }
            let (make, provider) = (app.key(Context::Lanes, Action::MakeCorpus), &app.settings.provider);
            app.notice = Some(format!(
                "nothing here is near this question: best {}, usual {}; {make} makes a corpus for it from {provider}, {corpus} \
                 chooses another one",
                share(f64::from(best)),
                share(f64::from(usual)),
            ));
        }
        Reply::Corpora { corpora, .. } => app.corpora = Some(corpora),
        Reply::LabelSet { number, set } => return switches::take_label(app, number, set),
        Reply::Verdict { judged, .. } => {
            app.acts.take_verdict(&app.question, &judged);
            app.judgments.take(judged.at, judged.perspective, judged.known);
            return page(app.screen).changed(app);
        }
        Reply::AboutVerdicts { text, .. } => app.notice = Some(text).filter(|_| !app.typing),
        Reply::Settled { .. } => app.settled = true,
        reply => return offer(app, reply),
    }
    Vec::new()
}

/// Returns the turn that a reply belongs to, if it belongs to one.
fn turn(reply: &Reply) -> Option<Turn> {
    match reply {
        Reply::LaneReady { turn, .. }
        | Reply::LaneFailed { turn, .. }
        | Reply::Reworded { turn, .. }
        | Reply::FarOff { turn, .. }
        | Reply::Verdict { turn, .. }
        | Reply::AboutVerdicts { turn, .. }
        | Reply::Settled { turn } => Some(*turn),
        _ => None,
    }
}

/// Takes the progress of a long job.
fn take_progress(app: &mut App, progress: Progress, text: String) {
    // The count was cancelled, and this report is late.
    if progress.job == Job::Counting && (app.screen != Screen::BIAS || app.biasing.fields.is_some()) {
        return;
    }
    // Jobs follow one another while a corpus opens; only embedding and gathering run at the same time as another job.
    let stays = |job: Job| job != progress.job && matches!(job, Job::Embedding | Job::Gathering);
    app.jobs.retain(|(known, _)| {
        stays(known.job) || (progress.job == Job::Gathering && known.job != progress.job)
    });
    app.jobs.push((progress, text));
}

fn waits(state: &LaneState) -> bool {
    matches!(state, LaneState::Failed(_, Some(_)))
}

/// Asks the lanes again that waited for the corpus's vectors.
fn wake(app: &mut App) -> Vec<Effect> {
    let mut effects = page(app.screen).embedded(app);
    if app.lanes.iter().any(|lane| waits(&lane.state)) {
        effects.extend(question::again(app));
    }
    effects
}

/// Passes a reply to the screen that takes it, then presses the keys that the screen held back until this reply.
fn offer(app: &mut App, mut reply: Reply) -> Vec<Effect> {
    for page in PAGES {
        match page.reply(app, reply) {
            Ok(mut effects) => {
                while let Some(key) = page.release(app) {
                    effects.extend(press(app, key));
                }
                return effects;
            }
            Err(other) => reply = *other,
        }
    }
    Vec::new()
}
