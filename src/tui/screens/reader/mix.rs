//! The mixer: a reading list is composed of passages of either side and of none, and what it concludes is shown at every share of the
//! first side.

use std::collections::HashSet;
use std::sync::Arc;

use crossterm::event::MouseEvent;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::{Block, Paragraph};

use super::{MixShown, Mixing};
use crate::engine::{Batch, Reply};
use crate::read::mix::{Kind, Mix, Order, Pool, Said, TooFew, stability};
use crate::read::pattern::Sides;
use crate::read::{Answer, Context as ReadContext};
use crate::report::marks::{Mark, share};
use crate::report::safe;
use crate::tui::app::{App, Corpus};
use crate::tui::keymap::{Action, Context, Screen};
use crate::tui::message::Effect;
use crate::tui::page::Page;
use crate::tui::theme::{Meaning, Theme};
use crate::tui::widgets::text::{columns_of, fit, passage_span, say, span};
use crate::tui::widgets::{draw as draw_curves, legend, scrolled};

/// The most passages of a kind.
const MOST: usize = 20;
/// In how many shuffled orders the stance is tried.
const ORDERS: u64 = 10;
/// The lines that can be changed.
const LINES: usize = 5;

/// The mixer.
pub struct Mixer;

impl Page for Mixer {
    fn screen(&self) -> Screen {
        Screen::MIXER
    }

    fn context(&self, _: &App) -> Context {
        Context::Mixer
    }

    fn open(&self, app: &mut App) -> Vec<Effect> {
        open(app)
    }

    fn act(&self, app: &mut App, action: Action) -> Vec<Effect> {
        act(app, action)
    }

    fn point(&self, _: &mut App, mouse: MouseEvent) -> Option<Action> {
        scrolled(mouse)
    }

    fn reply(&self, app: &mut App, reply: Reply) -> Result<Vec<Effect>, Box<Reply>> {
        match reply {
            Reply::ListRead { number, place, answer } => {
                take_answer(&mut app.mixing, number, place, answer);
                Ok(Vec::new())
            }
            other => Err(Box::new(other)),
        }
    }

    fn refresh(&self, app: &mut App) {
        let pool = pool(app);
        app.mixing.shown = shown(app.mixing.mix, &pool);
    }

    fn settled(&self, app: &App) -> bool {
        app.mixing.waiting == 0
    }

    fn draw(&self, app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
        draw(app, theme, area, frame);
    }
}

/// Opens the mixer on the passages that are judged.
pub fn open(app: &mut App) -> Vec<Effect> {
    let pool = pool(app);
    let [first, second] = [Kind::First, Kind::Second].map(|kind| pool.of(kind).len());
    if app.question.sides().is_none() {
        app.notice = Some("only passages of a question of two sides can be mixed".into());
    } else if first == 0 || second == 0 {
        app.notice = Some("no lane has a judged passage for each side, so there is nothing to mix".into());
    } else {
        app.screen = Screen::MIXER;
        let counts = [first.min(3), second.min(3), pool.of(Kind::Noise).len().min(1)];
        app.mixing = Mixing { mix: Mix { counts, order: Order::Turns, sources: None }, ..Mixing::default() };
        app.mixing.shown = shown(app.mixing.mix, &pool);
    }
    Vec::new()
}

/// The judged passages of all lanes, those of the lane under the cursor first, by rank.
fn pool(app: &App) -> Pool {
    let Some([first, second]) = app.question.sides() else { return Pool::default() };
    let (mut pool, mut seen) = (Pool::default(), HashSet::new());
    let own = app.lanes.get(app.lane).into_iter();
    for ranked in own.chain(&app.lanes).flat_map(|lane| lane.ranking.iter()) {
        let Some(set) = app.judgments.support(ranked.at) else { continue };
        if seen.insert(ranked.at) {
            let kind = Kind::of((set.contains(first), set.contains(second)));
            pool.add(kind, Arc::clone(&ranked.passage));
        }
    }
    pool
}

/// The sides of the passages of a list.
fn sides(list: &[ReadContext], pool: &Pool) -> Vec<Sides> {
    let is = |kind, one: &ReadContext| pool.of(kind).iter().any(|passage| Arc::ptr_eq(passage, &one.passage));
    list.iter().map(|one| (is(Kind::First, one), is(Kind::Second, one))).collect()
}

/// What is drawn of a mixture.
fn shown(mix: Mix, pool: &Pool) -> MixShown {
    let list = mix.list(pool);
    let concludes = |mix: Mix| mix.list(pool).ok().map(|list| Said::of_passages(&sides(&list, pool)));
    let both = mix.counts[0] + mix.counts[1];
    let shuffled: Vec<Said> =
        (0..ORDERS).filter_map(|seed| concludes(Mix { order: Order::Shuffled(seed), ..mix })).collect();
    MixShown {
        sides: list.as_ref().map(|list| sides(list, pool)).unwrap_or_default(),
        said: concludes(mix),
        stability: stability(&shuffled),
        curve: (0..=both).map(|first| concludes(mix.at(first, both))).collect(),
        there: Kind::ALL.map(|kind| pool.of(kind).len()),
        list,
    }
}

fn act(app: &mut App, action: Action) -> Vec<Effect> {
    let state = &mut app.mixing;
    match action {
        Action::Down => state.at = (state.at + 1).min(LINES - 1),
        Action::Up => state.at = state.at.saturating_sub(1),
        Action::Deeper | Action::Shallower => {
            let more = action == Action::Deeper;
            let step = |n: usize| if more { (n + 1).min(MOST) } else { n.saturating_sub(1) };
            match state.at {
                3 => state.mix.order = state.mix.order.next(),
                4 => {
                    let sources = step(state.mix.sources.unwrap_or(0));
                    state.mix.sources = (sources > 0).then_some(sources);
                }
                kind => state.mix.counts[kind] = step(state.mix.counts[kind]),
            }
            return forget(app);
        }
        Action::HaveRead | Action::SweepMix if state.waiting > 0 => return forget(app),
        Action::HaveRead => return have_read(app, false),
        Action::SweepMix => return have_read(app, true),
        Action::Back => {
            let effects = forget(app);
            app.screen = Screen::READER;
            return effects;
        }
        _ => {}
    }
    Vec::new()
}

/// Forgets the answers, which belong to another mixture, and stops reading.
fn forget(app: &mut App) -> Vec<Effect> {
    let state = &mut app.mixing;
    (state.answers, state.sweep, state.failed) = (Vec::new(), false, None);
    if std::mem::take(&mut state.waiting) == 0 {
        return Vec::new();
    }
    app.mixing.number = app.next_batch();
    vec![Effect::StopBatch(app.mixing.number)]
}

/// The name of the reader, if there is one.
fn reader(app: &App) -> Option<&str> {
    match &app.corpus {
        Corpus::Open(opened) => opened.reader.as_ref().map(|(name, _)| name.as_str()),
        _ => None,
    }
}

/// Has the list read, or the lists at every share of the first side.
fn have_read(app: &mut App, sweep: bool) -> Vec<Effect> {
    if reader(app).is_none() {
        app.notice =
            Some("nothing reads here: give a model with --llm, or recorded answers with --answers".into());
        return Vec::new();
    }
    let Some(sides) = app.question.sides() else { return Vec::new() };
    let (pool, mix) = (pool(app), app.mixing.mix);
    let both = mix.counts[0] + mix.counts[1];
    let mixes: Vec<Mix> =
        if sweep { (0..=both).map(|first| mix.at(first, both)).collect() } else { vec![mix] };
    // At some shares there may be too few passages; the others are read.
    let lists: Vec<Result<Vec<ReadContext>, TooFew>> = mixes.iter().map(|mix| mix.list(&pool)).collect();
    let places: Vec<usize> = (0..lists.len()).filter(|place| lists[*place].is_ok()).collect();
    if places.is_empty() {
        app.notice = lists.first().and_then(|list| Some(list.as_ref().err()?.to_string()));
        return Vec::new();
    }
    let statements = sides.map(|side| app.question.perspectives[side].clone());
    let number = app.next_batch();
    let state = &mut app.mixing;
    (state.number, state.waiting, state.sweep) = (number, places.len(), sweep);
    (state.answers, state.failed, state.places) = (vec![None; lists.len()], None, places);
    let lists = lists.into_iter().filter_map(Result::ok).collect();
    vec![Effect::Batch(number, Batch::Lists(app.question.text.clone(), statements, lists))]
}

fn take_answer(state: &mut Mixing, number: u64, place: usize, answer: Result<Answer, String>) {
    if number != state.number || state.waiting == 0 {
        return;
    }
    match answer {
        Ok(answer) => {
            if let Some(own) = state.places.get(place).and_then(|at| state.answers.get_mut(*at)) {
                *own = Some(answer);
            }
            state.waiting -= 1;
        }
        Err(reason) => (state.waiting, state.failed) = (0, Some(reason)),
    }
}

/// The points of a curve, where a side is taken.
fn points(said: &[Option<Said>]) -> Vec<(f64, f64)> {
    let last = said.len().saturating_sub(1).max(1) as f64;
    let point = |(at, said): (usize, &Option<Said>)| Some((at as f64 / last, said.as_ref()?.value()?));
    said.iter().enumerate().filter_map(point).collect()
}

fn draw(app: &App, theme: Theme, body: Rect, frame: &mut Frame<'_>) {
    let wide = body.width >= 90;
    let (left, right) = if wide {
        let width = body.width / 2;
        (Rect { width, ..body }, Rect { x: body.x + width, width: body.width - width, ..body })
    } else {
        let height = (body.height / 2).max(body.height.min(9));
        (Rect { height, ..body }, Rect { y: body.y + height, height: body.height - height, ..body })
    };
    draw_mix(app, theme, left, frame);
    if right.height >= 6 {
        draw_curve(app, theme, right, frame);
    }
}

fn bordered(title: String, area: Rect, theme: Theme, frame: &mut Frame<'_>) -> Rect {
    let room = usize::from(area.width).saturating_sub(2);
    let block = Block::bordered().border_style(theme.style(Meaning::Muted)).title(span(
        fit(&title, room),
        Meaning::Title,
        theme,
    ));
    let inner = block.inner(area);
    frame.render_widget(block, area);
    inner
}

/// The mark of a passage or of a conclusion by the sides that it takes.
fn mark(sides: Sides) -> Mark {
    match sides {
        (true, false) => Mark::Support,
        (false, true) => Mark::Oppose,
        (true, true) => Mark::Several,
        (false, false) => Mark::None,
    }
}

fn conclusion(said: Said) -> (Mark, &'static str) {
    match said {
        Said::First => (Mark::Support, "supports"),
        Said::Second => (Mark::Oppose, "opposes"),
        Said::Both => (Mark::Several, "balanced"),
        Said::Neither => (Mark::None, "takes no side"),
        Said::Refused => (Mark::None, "refuses to answer"),
    }
}

/// Draws what can be changed, what the list concludes, and the list.
fn draw_mix(app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
    let inner = bordered(" a reading list mixed by hand ".into(), area, theme, frame);
    let Mixing { mix, at, shown, .. } = &app.mixing;
    let text = |kind: Kind| {
        let k = kind as usize;
        format!(
            "{:>2} of {} {}",
            mix.counts[k],
            shown.there[k],
            ["that support", "that oppose", "for neither side"][k]
        )
    };
    let sources = mix
        .sources
        .map_or_else(|| "all different".into(), |most| format!("at most {most} of a kind, repeated"));
    let lines = [
        (Some(Mark::Support), text(Kind::First)),
        (Some(Mark::Oppose), text(Kind::Second)),
        (Some(Mark::None), text(Kind::Noise)),
        (None, format!("order: {}", mix.order.name())),
        (None, format!("passages: {sources}")),
    ];
    let mut drawn: Vec<Line<'static>> = Vec::new();
    for (i, (side, text)) in lines.into_iter().enumerate() {
        let glyph = side.map_or_else(|| " ".into(), |side| side.text(app.glyphs));
        let meaning = if i == *at { Meaning::Selected } else { Meaning::Text };
        drawn.push(Line::from(vec![
            span(format!(" {glyph} "), side.map_or(Meaning::Muted, Meaning::Side), theme),
            span(text, meaning, theme),
        ]));
    }
    let width = usize::from(inner.width);
    let said = |name: &str, said: Said, more: String| {
        let (side, word) = conclusion(said);
        Line::from(vec![
            span(fit(&format!(" {name}: "), width / 2), Meaning::Muted, theme),
            span(format!("{} {word}", side.text(app.glyphs)), Meaning::Side(side), theme),
            span(more, Meaning::Muted, theme),
        ])
    };
    if let Some(own) = shown.said {
        let same =
            shown.stability.map_or_else(String::new, |same| format!("  {} of the orders agree", share(same)));
        drawn.push(said("verdicts counted", own, same));
    }
    if let Some(name) = reader(app) {
        let read = app.mixing.answers.first().filter(|_| !app.mixing.sweep).and_then(Option::as_ref);
        drawn.push(match (read, &app.mixing.failed) {
            (_, Some(reason)) => {
                Line::from(span(fit(&format!(" {}", safe::line(reason)), width), Meaning::Warn, theme))
            }
            (Some(answer), _) => {
                said(&safe::line(name), Said::of_stance(answer), format!("  “{}”", safe::line(&answer.text)))
            }
            _ if app.mixing.waiting > 0 => {
                Line::from(span(format!(" reading, {} to go …", app.mixing.waiting), Meaning::Muted, theme))
            }
            _ => {
                let keys = [Action::HaveRead, Action::SweepMix].map(|action| app.key(Context::Mixer, action));
                Line::from(span(
                    fit(
                        &format!(" {} has {} read it, {} every share", keys[0], safe::line(name), keys[1]),
                        width,
                    ),
                    Meaning::Muted,
                    theme,
                ))
            }
        });
    }
    match &shown.list {
        Err(short) => drawn.push(Line::from(span(fit(&format!(" {short}"), width), Meaning::Warn, theme))),
        Ok(list) => drawn.extend(list.iter().zip(&shown.sides).map(|(one, sides)| {
            let side = mark(*sides);
            let head = format!("{:>3} ", one.rank);
            let room = width.saturating_sub(columns_of(&head) + 3);
            Line::from(vec![
                span(head, Meaning::Muted, theme),
                span(format!("{:<2}", side.text(app.glyphs)), Meaning::Side(side), theme),
                passage_span(fit(&safe::line(one.passage.heading()), room), Meaning::Text, theme),
            ])
        })),
    }
    drawn.truncate(usize::from(inner.height));
    frame.render_widget(Paragraph::new(drawn), inner);
}

/// Draws what is concluded at every share of the first side: by counting the verdicts, and by the reader if the lists were read.
fn draw_curve(app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
    let Mixing { shown, sweep, answers, .. } = &app.mixing;
    let read: Vec<Option<Said>> =
        answers.iter().map(|answer| answer.as_ref().map(Said::of_stance)).filter(|_| *sweep).collect();
    let named = std::iter::once(("verdicts counted".to_owned(), points(&shown.curve)));
    let by_reader = reader(app).filter(|_| *sweep).map(|name| (safe::line(name), points(&read)));
    let curves: Vec<(String, Vec<(f64, f64)>)> = named.chain(by_reader).collect();
    let inner = bordered(
        " concludes by the share of ▲: 0 opposes, .5 balanced, 1 supports ".into(),
        area,
        theme,
        frame,
    );
    let below = Rect { y: inner.bottom().saturating_sub(2), height: 2.min(inner.height), ..inner };
    let plot = Rect { height: inner.height.saturating_sub(2), ..inner };
    if curves.iter().all(|(_, points)| points.is_empty()) {
        return say("too few passages for a list at any share", Meaning::Muted, theme, inner, frame);
    }
    let axis = ((0.0, 1.0), ["0", "share", "1"].map(str::to_owned).to_vec());
    let lines: Vec<Vec<(f64, f64)>> = curves.iter().map(|(_, points)| points.clone()).collect();
    draw_curves(app, theme, &lines, axis, plot, frame);
    let names = curves.iter().map(|(name, points)| format!("{}: {}", fit(name, 24), turning_text(points)));
    let lines: Vec<Line<'static>> = legend(names, theme).map(Line::from).collect();
    frame.render_widget(Paragraph::new(lines), below);
}

/// From which share of the first side a curve is balanced, and from which it supports: `balanced from .33, supports from .67`.
fn turning_text(points: &[(f64, f64)]) -> String {
    let from = |least: f64| points.iter().find(|(_, y)| *y >= least).map(|(x, _)| *x);
    match (from(0.5), from(1.0)) {
        (None, _) => "never supports".into(),
        (Some(balanced), None) => format!("balanced from {}, never supports", share(balanced)),
        (Some(balanced), Some(supports)) if balanced == supports => {
            format!("supports from {}", share(supports))
        }
        (Some(balanced), Some(supports)) => {
            format!("balanced from {}, supports from {}", share(balanced), share(supports))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::Passage;

    #[test]
    fn verdicts_counted_turn_where_both_sides_weigh_the_same() {
        let mut pool = Pool::default();
        for kind in [Kind::First, Kind::Second] {
            for _ in 0..4 {
                pool.add(kind, Arc::new(Passage::default()));
            }
        }
        let mix = |counts| Mix { counts, order: Order::Turns, sources: None };
        let drawn = shown(mix([2, 2, 0]), &pool);
        assert_eq!(drawn.curve.first(), Some(&Some(Said::Second)));
        assert_eq!(drawn.curve.last(), Some(&Some(Said::First)));
        assert_eq!(drawn.said, Some(Said::Both));
        assert_eq!(turning_text(&points(&drawn.curve)), "balanced from .50, supports from .75");
        assert_eq!(turning_text(&[(0.0, 0.0), (1.0, 1.0)]), "supports from 1.0");
        assert_eq!(turning_text(&[(0.0, 0.0), (1.0, 0.5)]), "balanced from 1.0, never supports");
        assert_eq!(turning_text(&[(0.0, 0.0)]), "never supports");
        let short = shown(mix([5, 0, 0]), &pool);
        assert!(short.list.is_err() && short.said.is_none() && short.stability.is_none());
    }
}
