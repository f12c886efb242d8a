//! The key points of the question: which of them each lane brings, edited by the user, and the sentences that make the marked one.

use crossterm::event::{Event, KeyEvent, MouseEvent};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph};
use tui_input::Input;
use tui_input::backend::crossterm::EventHandler;

use super::Points;
use crate::engine::nuggets::{KeyPoint, judged, merge, recall, split, to_lines};
use crate::engine::{Batch, PointsEvent, Ranked, Reply};
use crate::measure::nuggets::NuggetRecall;
use crate::report::marks::{Mark, share};
use crate::report::{safe, thousands};
use crate::tui::app::App;
use crate::tui::keymap::{Action, Context, Screen};
use crate::tui::message::Effect;
use crate::tui::page::Page;
use crate::tui::screens::lanes::{question, update as lanes};
use crate::tui::theme::{Meaning, Theme};
use crate::tui::widgets::scrolled;
use crate::tui::widgets::text::{columns_of, fit, paragraph, passage_span, say, span, wrap};

/// The screen of the key points.
pub struct KeyPoints;

impl Page for KeyPoints {
    fn screen(&self) -> Screen {
        Screen::POINTS
    }

    fn context(&self, app: &App) -> Context {
        if app.points.name.is_some() { Context::PointName } else { Context::KeyPoints }
    }

    fn opened_by(&self) -> Option<Action> {
        Some(Action::KeyPoints)
    }

    fn open(&self, app: &mut App) -> Vec<Effect> {
        open(app)
    }

    fn act(&self, app: &mut App, action: Action) -> Vec<Effect> {
        act(app, action)
    }

    fn edit(&self, app: &mut App, key: KeyEvent) -> Vec<Effect> {
        if let Some(line) = &mut app.points.name {
            let _ = line.handle_event(&Event::Key(key));
        }
        Vec::new()
    }

    fn line<'a>(&self, app: &'a mut App) -> Option<&'a mut Input> {
        app.points.name.as_mut()
    }

    fn point(&self, _: &mut App, mouse: MouseEvent) -> Option<Action> {
        scrolled(mouse)
    }

    fn reply(&self, app: &mut App, reply: Reply) -> Result<Vec<Effect>, Box<Reply>> {
        match reply {
            Reply::KeyPoints { number, event } => {
                if number == app.points.number {
                    match event {
                        PointsEvent::Progress(progress) => app.points.progress = Some(progress),
                        PointsEvent::Found(found) => app.points.found = Some(found),
                    }
                }
                Ok(Vec::new())
            }
            other => Err(Box::new(other)),
        }
    }

    fn settled(&self, app: &App) -> bool {
        app.points.found.is_some()
    }

    fn draw(&self, app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
        draw(app, theme, area, frame);
    }
}

/// Opens the screen and has the key points found.
fn open(app: &mut App) -> Vec<Effect> {
    question::read_line(app);
    if app.question.perspectives.is_empty() {
        let key = app.key(Context::Lanes, Action::EditStatements);
        app.notice =
            Some(format!("key points are arguments for a statement, and there is none; {key} writes some"));
        return Vec::new();
    }
    app.screen = Screen::POINTS;
    ask(app)
}

/// The first k of every lane.
fn lists(app: &App) -> Vec<&[Ranked]> {
    app.lanes.iter().map(|lane| &lane.ranking[..lane.ranking.len().min(app.k)]).collect()
}

fn ask(app: &mut App) -> Vec<Effect> {
    let number = app.next_batch();
    app.points = Points { number, ..Points::default() };
    let judged = judged(lists(app), &app.judgments);
    vec![Effect::Batch(number, Batch::KeyPoints(app.question.clone(), app.judgments.source, judged))]
}

/// The key points, once they are found.
fn points(app: &App) -> &[KeyPoint] {
    app.points.found.as_ref().and_then(|found| found.as_deref().ok()).unwrap_or_default()
}

fn act(app: &mut App, action: Action) -> Vec<Effect> {
    let last = points(app).len().saturating_sub(1);
    let state = &mut app.points;
    match action {
        Action::Down => state.at = (state.at + 1).min(last),
        Action::Up => state.at = state.at.min(last).saturating_sub(1),
        Action::NextLane | Action::PreviousLane | Action::NextLabelSource => {
            return lanes::act_with_batch(app, action, ask);
        }
        Action::Back if state.name.take().is_some() => {}
        Action::Back => return app.leave(),
        Action::NamePoint => {
            let name = points(app).get(app.points.at).map(|point| point.name.clone());
            app.points.name = name.map(Input::new);
        }
        Action::ApplyName => {
            let typed = state.name.take().map(|line| line.value().trim().to_owned()).unwrap_or_default();
            if typed.is_empty() {
                app.notice = Some("the name is empty, so the key point keeps its own".into());
            } else {
                change(app, |points, at| points.get_mut(at).map(|point| point.name = typed).is_some());
            }
        }
        Action::MergePoint => merge_marked(app),
        Action::SplitPoint => {
            let divided = change(app, split);
            if !divided {
                app.notice = Some("a key point of one sentence cannot be split".into());
            }
        }
        Action::DropPoint => {
            change(app, |points, at| {
                at < points.len() && !points.is_empty() && {
                    points.remove(at);
                    true
                }
            });
        }
        Action::ToggleVital => {
            change(app, |points, at| points.get_mut(at).map(|point| point.vital = !point.vital).is_some());
        }
        Action::Undo => match state.past.pop() {
            Some(before) => (state.found, state.merging) = (Some(Ok(before)), None),
            None => app.notice = Some("nothing was changed".into()),
        },
        Action::CopyPoints => {
            let text = to_lines(&app.question, points(app));
            app.notice = Some(format!("{} key points copied as JSON lines", points(app).len()));
            return vec![Effect::Copy(text)];
        }
        _ => {}
    }
    app.points.at = app.points.at.min(points(app).len().saturating_sub(1));
    Vec::new()
}

/// Changes the key points at the marked one, and remembers them for undo if the change was made.
fn change(app: &mut App, edit: impl FnOnce(&mut Vec<KeyPoint>, usize) -> bool) -> bool {
    let state = &mut app.points;
    let Some(Ok(points)) = &mut state.found else { return false };
    let before = points.clone();
    let done = edit(points, state.at);
    if done {
        state.past.push(before);
        state.merging = None;
    }
    done
}

fn merge_marked(app: &mut App) {
    let at = app.points.at;
    match app.points.merging.filter(|marked| *marked != at) {
        None if app.points.merging.take().is_none() && at < points(app).len() => {
            app.points.merging = Some(at);
            let key = app.key(Context::KeyPoints, Action::MergePoint);
            app.notice = Some(format!("marked; {key} on another key point of its side merges it into that"));
        }
        None => {}
        Some(marked) => {
            if !change(app, |points, into| merge(points, marked, into)) {
                app.notice = Some("only key points of one side are merged".into());
            } else if marked < at {
                app.points.at -= 1;
            }
        }
    }
}

fn draw(app: &App, theme: Theme, body: Rect, frame: &mut Frame<'_>) {
    let below = if body.height >= 14 { (body.height / 3).min(9) } else { 0 };
    let table = Rect { height: body.height - below, ..body };
    draw_points(app, theme, table, frame);
    if below > 0 {
        draw_voices(app, theme, Rect { y: table.bottom(), height: below, ..body }, frame);
    }
}

/// Columns before the name: the side, whether it is vital, and how many passages make it.
const BEFORE: usize = 10;

/// Draws one row for each key point, with the rank at which each lane brings it.
fn draw_points(app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
    let all = points(app);
    let title = match &app.points.found {
        Some(Ok(_)) => format!(
            " {} key points, ● vital, each of n passages; the rank at which a lane brings it among its first {} ",
            thousands(all.len() as u64),
            app.k
        ),
        _ => " key points ".to_owned(),
    };
    let room = usize::from(area.width).saturating_sub(2);
    let block = Block::bordered().border_style(theme.style(Meaning::Focus)).title(span(
        fit(&glyphs(app, &title), room),
        Meaning::Title,
        theme,
    ));
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let reason = match (&app.points.found, app.points.progress) {
        (Some(Err(reason)), _) => Some((safe::line(reason), Meaning::Warn)),
        (None, None) => Some(("looking for the arguments …".to_owned(), Meaning::Muted)),
        (None, Some(progress)) => Some((
            format!(
                "{} sentences: {} of {}",
                progress.job.name(),
                thousands(progress.done),
                thousands(progress.total)
            ),
            Meaning::Muted,
        )),
        (Some(Ok(_)), _) if all.is_empty() => Some((
            format!(
                "no passage among the first {} of any lane supports a statement, so there is no argument",
                app.k
            ),
            Meaning::Muted,
        )),
        _ => None,
    };
    if let Some((reason, meaning)) = reason {
        return say(&reason, meaning, theme, inner, frame);
    }
    let (width, lists) = (usize::from(inner.width), lists(app));
    let wide = if width >= 80 { 9 } else { 6 };
    let shown = (width.saturating_sub(BEFORE + 12) / wide).clamp(1, app.lanes.len().max(1));
    let first = (app.lane + 1).saturating_sub(shown);
    let shown = first..app.lanes.len().min(first + shown);
    let named = width.saturating_sub(BEFORE + wide * shown.len());
    let mut lines = vec![head(app, theme, shown.clone(), named, wide)];
    let recalls: Vec<Option<NuggetRecall>> =
        shown.clone().map(|lane| recall(all, lists[lane], app.k)).collect();
    type Figure = fn(&NuggetRecall) -> Option<f64>;
    let figures: [(&str, Figure); 3] = [
        ("found of all", |recall| Some(recall.all)),
        ("found of the vital", |recall| recall.vital),
        ("found, weighted: the others count half", |recall| Some(recall.weighted)),
    ];
    let rows = if inner.height >= 9 { figures.len() } else { 1 };
    for (name, of) in figures.into_iter().take(rows) {
        let mut spans =
            vec![span(pad(&format!("{:BEFORE$}{name}", ""), BEFORE + named), Meaning::Muted, theme)];
        spans.extend(recalls.iter().map(|recall| {
            let value = recall.as_ref().and_then(of).map_or_else(|| "–".into(), share);
            span(pad(&value, wide), Meaning::Title, theme)
        }));
        lines.push(Line::from(spans));
    }
    let fits = usize::from(inner.height).saturating_sub(lines.len()).max(1);
    let top = (app.points.at + 1).saturating_sub(fits);
    for (i, point) in all.iter().enumerate().skip(top).take(fits) {
        let mut spans = row(app, theme, i, point, named);
        spans.extend(shown.clone().map(|lane| {
            let (text, meaning) = match point.rank_in(lists[lane]) {
                Some(rank) => (rank.to_string(), Meaning::Side(Mark::of(point.perspective, &app.question))),
                None => (app.glyphs.dot().to_owned(), Meaning::Muted),
            };
            span(pad(&text, wide), meaning, theme)
        }));
        lines.push(Line::from(spans));
    }
    frame.render_widget(Paragraph::new(lines), inner);
}

/// The signs of the title in plain ASCII if the terminal draws no shapes.
fn glyphs(app: &App, text: &str) -> String {
    text.replace('●', vital_glyph(app))
}

fn vital_glyph(app: &App) -> &'static str {
    if app.glyphs == crate::report::marks::Glyphs::Ascii { "*" } else { "●" }
}

fn pad(text: &str, width: usize) -> String {
    let text = fit(text, width.saturating_sub(1));
    let pad = " ".repeat(width.saturating_sub(columns_of(&text)));
    text + &pad
}

/// The names of the lanes.
fn head(app: &App, theme: Theme, lanes: std::ops::Range<usize>, named: usize, wide: usize) -> Line<'static> {
    let mut spans = vec![span(pad("        n", BEFORE + named), Meaning::Muted, theme)];
    spans.extend(lanes.map(|lane| {
        let meaning = if lane == app.lane { Meaning::Selected } else { Meaning::Text };
        span(pad(&app.short_title(lane, wide - 1), wide), meaning, theme)
    }));
    Line::from(spans)
}

/// ` ▲ ●   3 Animals suffer in cages`, with the name being typed in its place.
fn row(app: &App, theme: Theme, i: usize, point: &KeyPoint, named: usize) -> Vec<Span<'static>> {
    let mark = Mark::of(point.perspective, &app.question);
    let here = i == app.points.at;
    let vital = if point.vital { vital_glyph(app) } else { " " };
    let flag = if app.points.merging == Some(i) { ">" } else { " " };
    let meaning = if here { Meaning::Selected } else { Meaning::Text };
    let name = match app.points.name.as_ref().filter(|_| here) {
        Some(line) => format!("{}▏", line.value()),
        None => point.name.clone(),
    };
    let before = format!("{flag}{:<3}", mark.text(app.glyphs));
    vec![
        span(before, Meaning::Side(mark), theme),
        span(format!("{vital} "), Meaning::Title, theme),
        span(format!("{:>3} ", point.passages()), Meaning::Muted, theme),
        passage_span(pad(&safe::line(&name), named), meaning, theme),
    ]
}

/// Draws the sentences that make the marked key point.
fn draw_voices(app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
    let Some(point) = points(app).get(app.points.at) else { return };
    let title = format!(
        " {} like sentences of {} passages, grouped by a model ",
        point.voices.len(),
        point.passages()
    );
    let block =
        Block::bordered().border_style(theme.style(Meaning::Muted)).title(span(title, Meaning::Title, theme));
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let width = usize::from(inner.width);
    let mut lines = paragraph(&safe::line(&point.name), " ", width, Meaning::Title, theme);
    lines.truncate(2);
    let height = usize::from(inner.height);
    for (before, voice) in point.voices.iter().enumerate() {
        let left = point.voices.len() - before;
        let id = format!(" {} ", fit(&safe::line(&voice.passage), 16));
        let text = safe::line(&voice.text);
        let room = width.saturating_sub(columns_of(&id) + 1).max(1);
        let parts = wrap(&text, room, 2);
        // The last line says how many do not fit.
        if lines.len() + parts.len() + usize::from(left > 1) > height {
            lines.push(Line::from(span(format!(" … {left} more"), Meaning::Muted, theme)));
            break;
        }
        for (i, part) in parts.into_iter().enumerate() {
            let lead = if i == 0 { id.clone() } else { " ".repeat(columns_of(&id)) };
            lines.push(Line::from(vec![
                span(lead, Meaning::Muted, theme),
                passage_span(text[part].to_owned(), Meaning::Text, theme),
            ]));
        }
    }
    lines.truncate(height);
    frame.render_widget(Paragraph::new(lines), inner);
}
