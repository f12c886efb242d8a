//! The framing lab, the second page of the sycophancy screen: one lane asked in ten wordings and in one that you type. Above are the
//! wordings with their figures, below the passages that the marked one keeps, adds and loses against the neutral one.

use crossterm::event::{Event, KeyEvent, MouseEvent, MouseEventKind};
use ratatui::Frame;
use ratatui::layout::{Alignment, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph};
use tui_input::Input;
use tui_input::backend::crossterm::EventHandler;

use super::Lab;
use super::screen::passage_lines;
use crate::engine::{Batch, FramedList, Framing, Reply};
use crate::question::By;
use crate::question::wordings::{Frame as Form, Framed, Missing, PERSONA, distinct, wordings};
use crate::report::marks::{Mark, share, signed};
use crate::report::safe;
use crate::tui::app::App;
use crate::tui::keymap::{Action, Context, Screen};
use crate::tui::message::Effect;
use crate::tui::page::Page;
use crate::tui::screens::lanes::{question, update as lanes};
use crate::tui::theme::{Meaning, Theme};
use crate::tui::widgets::text::{columns_of, fit, paragraph, span};
use crate::tui::widgets::{cells_width, rank_cells};

/// The framing lab.
pub struct FramingLab;

impl Page for FramingLab {
    fn screen(&self) -> Screen {
        Screen::FRAMING
    }

    fn context(&self, app: &App) -> Context {
        if app.sycophancy_screen.lab.typed.is_some() { Context::Wording } else { Context::Framing }
    }

    fn opened_by(&self) -> Option<Action> {
        Some(Action::FramingLab)
    }

    fn open(&self, app: &mut App) -> Vec<Effect> {
        open(app)
    }

    fn act(&self, app: &mut App, action: Action) -> Vec<Effect> {
        act(app, action)
    }

    fn edit(&self, app: &mut App, key: KeyEvent) -> Vec<Effect> {
        if let Some(line) = &mut app.sycophancy_screen.lab.typed {
            line.handle_event(&Event::Key(key));
        }
        Vec::new()
    }

    fn line<'a>(&self, app: &'a mut App) -> Option<&'a mut Input> {
        app.sycophancy_screen.lab.typed.as_mut()
    }

    fn reply(&self, app: &mut App, reply: Reply) -> Result<Vec<Effect>, Box<Reply>> {
        match reply {
            Reply::Framing { number, lane, framing } => {
                let lab = &mut app.sycophancy_screen.lab;
                if number == lab.number {
                    // A language model may have worded the question in the engine.
                    if let Ok(framing) = &framing {
                        lab.wordings = framing.asked.iter().map(|asked| asked.framed.clone()).collect();
                    }
                    if let Some(place) = lab.lanes.get_mut(lane) {
                        *place = Some(framing);
                    }
                }
                Ok(Vec::new())
            }
            other => Err(Box::new(other)),
        }
    }

    fn embedded(&self, app: &mut App) -> Vec<Effect> {
        ask(app)
    }

    fn settled(&self, app: &App) -> bool {
        app.sycophancy_screen.lab.lanes.iter().all(Option::is_some)
    }

    fn point(&self, _: &mut App, mouse: MouseEvent) -> Option<Action> {
        match mouse.kind {
            MouseEventKind::ScrollDown => Some(Action::Down),
            MouseEventKind::ScrollUp => Some(Action::Up),
            _ => None,
        }
    }

    fn draw(&self, app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
        draw(app, theme, area, frame);
    }
}

/// Opens the lab and asks all lanes in all wordings.
pub fn open(app: &mut App) -> Vec<Effect> {
    question::read_line(app);
    if app.question.text.is_empty() {
        app.notice = Some("ask a question first; it can then be worded in other ways".into());
        return Vec::new();
    }
    let mut all = wordings(&app.question, PERSONA);
    all.push(Framed { frame: Form::Typed, text: Err(Missing::NoRule), by: By::None });
    app.sycophancy_screen.lab = Lab { wordings: all, ..Lab::default() };
    app.screen = Screen::FRAMING;
    send(app, None)
}

/// Asks all lanes again in the wordings as they stand.
fn ask(app: &mut App) -> Vec<Effect> {
    let all = app.sycophancy_screen.lab.wordings.clone();
    send(app, Some(all))
}

/// Sends the batch. Without wordings, the engine makes them: by rule, and by the language model if one is named.
fn send(app: &mut App, wordings: Option<Vec<Framed>>) -> Vec<Effect> {
    let number = app.next_batch();
    let lab = &mut app.sycophancy_screen.lab;
    (lab.number, lab.lanes) = (number, vec![None; app.lanes.len()]);
    vec![Effect::Batch(number, Batch::Framing(app.query(), wordings))]
}

/// Performs an action.
fn act(app: &mut App, action: Action) -> Vec<Effect> {
    let lab = &mut app.sycophancy_screen.lab;
    let last = lab.wordings.len().saturating_sub(1);
    match action {
        Action::Down => lab.at = (lab.at + 1).min(last),
        Action::Up => lab.at = lab.at.saturating_sub(1),
        Action::TypeWording => {
            let text = lab.wordings.get(lab.at).and_then(|framed| framed.text.clone().ok());
            lab.typed = Some(Input::new(text.unwrap_or_default()));
        }
        Action::ApplyWording => return apply(app),
        Action::Back if lab.typed.is_some() => lab.typed = None,
        Action::Back if app.question.sides().is_some() => return super::screen::open(app),
        action => return lanes::act_with_batch(app, action, ask),
    }
    Vec::new()
}

/// Uses the typed wording in the place of the marked one.
fn apply(app: &mut App) -> Vec<Effect> {
    let lab = &mut app.sycophancy_screen.lab;
    let Some(typed) = lab.typed.take() else { return Vec::new() };
    let text = typed.value().trim().to_owned();
    let Some(own) = lab.wordings.get_mut(lab.at) else { return Vec::new() };
    if text.is_empty() {
        app.notice = Some("an empty wording finds nothing, so the wording stays as it was".into());
        return Vec::new();
    }
    if own.text.as_ref() == Ok(&text) {
        return Vec::new();
    }
    *own = Framed { frame: own.frame, text: Ok(text), by: By::User };
    lab.wordings = distinct(std::mem::take(&mut lab.wordings));
    if let Some(Framed { text: Err(Missing::SameAs(name)), .. }) = lab.wordings.get(lab.at) {
        app.notice = Some(format!("these are the words of `{name}`; a list for them is there already"));
    }
    ask(app)
}

/// Columns of a wording's name.
const NAME: usize = 10;
/// Columns of the four figures.
const FIGURES: usize = 27;

/// The answer of a lane, if it has arrived and did not fail.
fn answer(app: &App, lane: usize) -> Option<&Framing> {
    app.sycophancy_screen.lab.lanes.get(lane)?.as_ref()?.as_deref().ok()
}

/// Draws the lab.
fn draw(app: &App, theme: Theme, body: Rect, frame: &mut Frame<'_>) {
    let rows = app.sycophancy_screen.lab.wordings.len() as u16 + 3;
    let top = Rect { height: rows.min(body.height), ..body };
    draw_wordings(app, theme, top, frame);
    draw_lists(app, theme, Rect { y: top.bottom(), height: body.height - top.height, ..body }, frame);
}

/// ` BM25 · lists differ by .42 · reads “not” .31, “but not” .00 (chance .25) `. The last two count pairs that are ranked right.
fn headline(app: &App, lane: usize, width: usize) -> String {
    let name = app.short_title(lane, (width / 4).clamp(12, 24));
    let figure = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), share);
    match app.sycophancy_screen.lab.lanes.get(lane).and_then(Option::as_ref) {
        None => format!("{name} · asking …"),
        Some(Err(_)) => format!("{name} · no list"),
        Some(Ok(own)) => {
            let [differ, not, but_not] = [own.sensitivity, own.negation, own.exclusion].map(figure);
            let read = format!("“not” {not}, “but not” {but_not}");
            let forms = [
                format!("{name} · lists differ by {differ} · reads {read} (chance .25)"),
                format!("{name} · differ {differ} · {read} (chance .25)"),
                format!("{name} · {read} (chance .25)"),
            ];
            let fits = |form: &String| columns_of(form) <= width;
            forms.into_iter().find(fits).unwrap_or_else(|| format!("{name} · differ {differ} · {read}"))
        }
    }
}

/// Draws the wordings of the lane under the cursor with their figures; below, one line for the other lanes.
fn draw_wordings(app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
    let lab = &app.sycophancy_screen.lab;
    let room = usize::from(area.width).saturating_sub(4);
    let name = if room >= 100 { "Framing lab, one question in many wordings" } else { "Framing lab" };
    let own = headline(app, app.lane, room.saturating_sub(columns_of(name) + 4));
    let title = fit(&format!(" {name}: {own} "), room);
    let others = (0..app.lanes.len()).filter(|lane| *lane != app.lane);
    let others: Vec<String> = others.map(|lane| headline(app, lane, 16)).collect();
    let mut block =
        Block::bordered().border_style(theme.style(Meaning::Focus)).title(span(title, Meaning::Title, theme));
    if !others.is_empty() {
        let text = fit(&format!(" {} ", others.join(" | ")), room);
        block = block.title_bottom(Line::from(span(text, Meaning::Muted, theme)).alignment(Alignment::Right));
    }
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let (width, own) = (usize::from(inner.width), answer(app, app.lane));
    if let Some(Some(Err(reason))) = lab.lanes.get(app.lane) {
        return frame
            .render_widget(Paragraph::new(paragraph(reason, " ", width, Meaning::Warn, theme)), inner);
    }
    // The strip and the figures go before the text is cut to less than a few words.
    let strip = cells_width(app.k, 2) + 1;
    let has_figures = width >= NAME + 2 + FIGURES + 14;
    let has_strip = width >= NAME + 2 + FIGURES + strip + 24;
    let mut head = format!(" {:NAME$} ", "asked as");
    if has_strip {
        head.push_str(&format!("{:strip$}", fit("first k", strip)));
    }
    if has_figures {
        head.push_str(&format!("{:>6} {:>7} {:>6} {:>4}  ", "lean", "MRecall", "differ", "new"));
    }
    let mut lines = vec![Line::from(span(fit(&head, width), Meaning::Muted, theme))];
    let shown = usize::from(inner.height).saturating_sub(1).max(1);
    let first = (lab.at + 1).saturating_sub(shown);
    for (i, framed) in lab.wordings.iter().enumerate().skip(first).take(shown) {
        let asked = own.and_then(|own| own.asked.get(i));
        let side = framed.frame.side().map(|side| Mark::of(side, &app.question));
        let meaning = match (i == lab.at, side) {
            (true, _) => Meaning::Selected,
            (false, Some(mark)) => Meaning::Side(mark),
            (false, None) => Meaning::Title,
        };
        let name = fit(&wording_name(app, framed.frame), NAME);
        let mut spans = vec![Span::raw(" "), span(format!("{name:NAME$}"), meaning, theme), Span::raw(" ")];
        if has_strip {
            let cells = asked.and_then(|asked| Some((own?, asked.list.as_ref()?))).map(|(own, list)| {
                let top = list.iter().take(app.k);
                let marks = top.map(|one| Mark::of_passage(&own.judgments, one.at, &app.question));
                rank_cells(marks, 2, theme, app.glyphs)
            });
            let cells = cells.unwrap_or_default();
            let used: usize = cells.iter().map(|span| columns_of(&span.content)).sum();
            spans.extend(cells);
            spans.push(Span::raw(" ".repeat(strip.saturating_sub(used))));
        }
        if has_figures {
            spans.push(span(figures(asked), Meaning::Text, theme));
        }
        let used: usize = spans.iter().map(|span| columns_of(&span.content)).sum();
        let left = width.saturating_sub(used);
        spans.push(match (&lab.typed, &framed.text) {
            (Some(line), _) if i == lab.at => {
                let cursor: String = line.value().chars().take(line.cursor()).collect();
                let hidden = columns_of(&safe::line(&cursor)).saturating_sub(left.saturating_sub(1));
                let x = inner.x + (used + columns_of(&safe::line(&cursor)) - hidden) as u16;
                let y = inner.y + (i - first + 1) as u16;
                frame.set_cursor_position((x.min(inner.right().saturating_sub(1)), y));
                let shown: String = safe::line(line.value()).chars().skip(hidden).collect();
                span(fit(&shown, left), Meaning::Title, theme)
            }
            (_, Ok(text)) => span(fit(&safe::line(text), left), Meaning::Text, theme),
            (_, Err(missing)) => {
                let key = app.key(Context::Framing, Action::TypeWording);
                let why = match (framed.frame, missing) {
                    (Form::Typed, _) => format!("{key} types a wording of your own"),
                    (_, Missing::NoRule) => format!("no rule words this question so; {key} types it"),
                    (_, missing) => format!("{missing}; {key} types others"),
                };
                span(fit(&safe::line(&why), left), Meaning::Muted, theme)
            }
        });
        lines.push(Line::from(spans));
    }
    frame.render_widget(Paragraph::new(lines), inner);
}

/// `as ▲`: tables number the sides, but here their marks are known.
fn wording_name(app: &App, frame: Form) -> String {
    let name = frame.name();
    let side = frame.side().map(|side| Mark::of(side, &app.question).text(app.glyphs));
    match side.zip(name.rsplit_once('-')) {
        Some((mark, (kind, _))) => format!("{kind} {mark}"),
        None => name,
    }
}

/// Lean, MRecall, distance from the neutral list and the number of new passages, in [`FIGURES`] columns.
fn figures(asked: Option<&FramedList>) -> String {
    let text = |value: Option<f64>, form: fn(f64) -> String| {
        value.filter(|_| asked.is_some_and(|asked| asked.list.is_some())).map_or_else(|| "–".into(), form)
    };
    let lean =
        text(asked.and_then(|asked| Some(asked.shares?.lean())), |value| signed(value).trim().to_owned());
    let mrecall = text(asked.and_then(|asked| asked.mrecall), share);
    let distance = text(asked.and_then(|asked| asked.distance), share);
    let new = text(asked.and_then(|asked| Some(asked.new? as f64)), |value| format!("{value:.0}"));
    format!("{lean:>6} {mrecall:>7} {distance:>6} {new:>4}  ")
}

/// Draws the marked wording's list against the neutral one, side by side where there is room.
fn draw_lists(app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
    let lab = &app.sycophancy_screen.lab;
    let (Some(framed), Some(own)) = (lab.wordings.get(lab.at), answer(app, app.lane)) else { return };
    if area.height < 3 {
        return;
    }
    let pair = [own.asked.first(), own.asked.get(lab.at)];
    let Some(neutral) = pair[0].and_then(|asked| asked.list.clone()) else { return };
    let panes: Vec<(usize, Rect)> = if area.width >= 80 && lab.at > 0 {
        let half = area.width / 2;
        vec![
            (0, Rect { width: half, ..area }),
            (1, Rect { x: area.x + half, width: area.width - half, ..area }),
        ]
    } else {
        vec![(1, area)]
    };
    for (which, pane) in panes {
        let marked = which == 1 && lab.at > 0;
        let name = if marked { wording_name(app, framed.frame) } else { "neutral".to_owned() };
        let new = pair[1].and_then(|asked| asked.new).filter(|_| marked);
        let mut block = Block::bordered().border_style(theme.style(Meaning::Muted)).title(span(
            fit(&format!(" {name} "), usize::from(pane.width).saturating_sub(2)),
            Meaning::Title,
            theme,
        ));
        if let Some(new) = new {
            let text = format!(" {new} of {} new ", app.k);
            block =
                block.title_bottom(Line::from(span(text, Meaning::Muted, theme)).alignment(Alignment::Right));
        }
        let inner = block.inner(pane);
        frame.render_widget(block, pane);
        let size = (usize::from(inner.width), usize::from(inner.height));
        let Some(list) = pair[which].and_then(|asked| asked.list.as_ref()) else {
            let text = framed.text.as_ref().err().map(|missing| safe::line(&missing.to_string()));
            let text = text.unwrap_or_else(|| "asking …".into());
            let lines = paragraph(&text, " ", size.0, Meaning::Muted, theme);
            frame.render_widget(Paragraph::new(lines), inner);
            continue;
        };
        let mut lines = passage_lines(app, theme, (&neutral, list, &own.judgments), marked, size);
        if let Some(note) = own.note.as_ref().filter(|_| marked) {
            lines.extend(paragraph(note, " ", size.0, Meaning::Warn, theme));
        }
        frame.render_widget(Paragraph::new(lines), inner);
    }
}
