//! The counterfactual editor: the open passage or the question in other words. The lane's score and rank and the model's verdict follow as you
//! type. Nothing of it enters the corpus.

use std::sync::Arc;

use crossterm::event::{Event, KeyEvent};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph};
use tui_input::Input;
use tui_input::backend::crossterm::EventHandler;

use super::{Answer, Editor};
use crate::corpus::{Passage, PassageIx};
use crate::engine::edit::{Draft, Drafted};
use crate::engine::{Batch, Judgments, Reply};
use crate::question::Question;
use crate::question::edits::Edit;
use crate::report::marks::{Mark, share, signed};
use crate::report::safe;
use crate::tui::app::App;
use crate::tui::keymap::{Action, Context, Screen};
use crate::tui::message::Effect;
use crate::tui::page::Page;
use crate::tui::theme::{Meaning, Theme};
use crate::tui::widgets::text::{columns_of, fit, paragraph, passage_span, span, wrap};

/// The counterfactual editor.
pub struct WhatIf;

impl Page for WhatIf {
    fn screen(&self) -> Screen {
        Screen::EDITOR
    }

    fn context(&self, _: &App) -> Context {
        Context::Edit
    }

    fn act(&self, app: &mut App, action: Action) -> Vec<Effect> {
        act(app, action)
    }

    fn edit(&self, app: &mut App, key: KeyEvent) -> Vec<Effect> {
        let line = line(app);
        let before = line.value().to_owned();
        line.handle_event(&Event::Key(key));
        // Typing goes on with the words as they stand.
        if line.value() == before { Vec::new() } else { ask(app) }
    }

    fn line<'a>(&self, app: &'a mut App) -> Option<&'a mut Input> {
        Some(line(app))
    }

    fn pasted(&self, app: &mut App) -> Vec<Effect> {
        ask(app)
    }

    fn reply(&self, app: &mut App, reply: Reply) -> Result<Vec<Effect>, Box<Reply>> {
        match reply {
            Reply::Edited { number, original, scored, judged } => {
                let editor = &mut app.reading.editor;
                let place = match original {
                    true if number >= editor.since => &mut editor.before,
                    false if number == editor.number => &mut editor.now,
                    _ => return Ok(Vec::new()),
                };
                place.scored = scored.or(place.scored.take());
                place.judged = judged.or(place.judged.take());
                Ok(Vec::new())
            }
            Reply::Rewritten { number, written } if app.reading.editor.rewriting == Some(number) => {
                Ok(take_rewritten(app, written))
            }
            Reply::Rewritten { .. } => Ok(Vec::new()),
            other => Err(Box::new(other)),
        }
    }

    fn embedded(&self, app: &mut App) -> Vec<Effect> {
        app.reading.editor.before = Answer::default();
        ask(app)
    }

    fn settled(&self, app: &App) -> bool {
        let done = |answer: &Answer| answer.scored.is_some() && answer.judged.is_some();
        app.reading.editor.rewriting.is_none()
            && done(&app.reading.editor.before)
            && done(&app.reading.editor.now)
    }

    fn draw(&self, app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
        draw(app, theme, area, frame);
    }
}

/// The field that is typed in.
fn line(app: &mut App) -> &mut Input {
    let editor = &mut app.reading.editor;
    if editor.on_question { &mut editor.question } else { &mut editor.text }
}

/// Opens the editor on the open passage.
pub fn open(app: &mut App) -> Vec<Effect> {
    let Some((at, passage)) = app.open_passage() else { return Vec::new() };
    app.reading.editor = Editor {
        at: Some(at),
        original: Passage::clone(&passage),
        text: start_of(safe::line(&passage.text)),
        question: Input::new(app.question.text.clone()),
        ..Editor::default()
    };
    app.screen = Screen::EDITOR;
    let effects = ask(app);
    app.reading.editor.since = app.reading.editor.number;
    effects
}

/// A text with the cursor before its first letter.
fn start_of(text: String) -> Input {
    Input::new(text).with_cursor(0)
}

/// Asks for score, rank and verdict of the words as they stand; for those of the passage as it is too, until they have arrived.
fn ask(app: &mut App) -> Vec<Effect> {
    let number = app.next_batch();
    let Some(recipe) = app.lanes.get(app.lane).map(|lane| lane.recipe.clone()) else { return Vec::new() };
    let question = app.question.clone();
    let editor = &mut app.reading.editor;
    let Some(at) = editor.at else { return Vec::new() };
    editor.number = number;
    editor.rewriting = None;
    editor.now = Answer::default();
    let known = editor.before.scored.is_some() && editor.before.judged.is_some();
    let original =
        (!known).then(|| Draft { at, passage: editor.original.clone(), question: question.clone() });
    let empty = |text: &str| !text.chars().any(char::is_alphanumeric);
    let emptied = match (empty(editor.text.value()), empty(editor.question.value())) {
        (true, _) => {
            Some("the edit left no word of the passage: nothing finds it, and nothing can be judged")
        }
        (_, true) => Some("the question has no word: nothing can be searched for"),
        _ => None,
    };
    let now = match emptied {
        Some(why) => {
            editor.now = Answer { scored: Some(Err(why.into())), judged: Some(Err(why.into())) };
            None
        }
        None => {
            // As long as nothing is typed, the passage keeps its own line breaks.
            let same = editor.text.value() == safe::line(&editor.original.text);
            let text = if same { editor.original.text.clone() } else { editor.text.value().to_owned() };
            let passage = Passage { text, ..editor.original.clone() };
            Some(Draft {
                at,
                passage,
                question: Question { text: editor.question.value().to_owned(), ..question },
            })
        }
    };
    vec![Effect::Batch(number, Batch::Edit(recipe, Box::new([original, now])))]
}

/// Performs an action.
fn act(app: &mut App, action: Action) -> Vec<Effect> {
    let editor = &mut app.reading.editor;
    match action {
        Action::EditQuestionToo => editor.on_question = !editor.on_question,
        Action::NextEdit => return by_rule(app, 1),
        Action::PreviousEdit => return by_rule(app, Edit::BY_RULE.len() - 1),
        Action::ResetEdit => {
            editor.text = start_of(safe::line(&editor.original.text));
            editor.question = Input::new(app.question.text.clone());
            (editor.edit, editor.by_model) = (None, None);
            return ask(app);
        }
        Action::RewriteEdit if editor.rewriting.is_none() => {
            let passage = editor.original.clone();
            let number = app.next_batch();
            app.reading.editor.rewriting = Some(number);
            return vec![Effect::Batch(number, Batch::Rewrite(passage))];
        }
        // A new batch ends the one in which the model writes.
        Action::Back if editor.rewriting.is_some() => {
            app.notice = Some("the model was stopped; the words are as they were".into());
            return ask(app);
        }
        Action::Back => {
            app.screen = Screen::PASSAGE;
            return vec![Effect::StopBatch(app.next_batch())];
        }
        _ => {}
    }
    Vec::new()
}

/// Takes the passage in the model's words, or says why there is none.
fn take_rewritten(app: &mut App, written: Result<(Passage, String), String>) -> Vec<Effect> {
    let editor = &mut app.reading.editor;
    match written {
        Ok((passage, by)) => {
            editor.text = start_of(safe::line(&passage.text));
            (editor.edit, editor.by_model, editor.on_question) = (None, Some(by), false);
        }
        Err(reason) => app.notice = Some(reason),
    }
    // Asking to rewrite may have ended the scoring of the words as they were.
    ask(app)
}

/// Makes the edit so many steps after the last one, of those that change something. Each begins with the passage as it is.
fn by_rule(app: &mut App, step: usize) -> Vec<Effect> {
    let editor = &mut app.reading.editor;
    let count = Edit::BY_RULE.len();
    let text = safe::line(&editor.original.text);
    // Backwards from nothing is the last edit.
    let mut at = editor.edit.unwrap_or(if step == 1 { count - 1 } else { 0 });
    for _ in 0..count {
        at = (at + step) % count;
        if let Ok(edited) = Edit::BY_RULE[at].of(&text) {
            (editor.edit, editor.by_model) = (Some(at), None);
            editor.text = start_of(edited);
            editor.on_question = false;
            return ask(app);
        }
    }
    app.notice = Some("no edit by rule changes this passage; type your own".into());
    Vec::new()
}

/// The lane whose score and rank are shown: it is asked without its switches.
fn lane_name(app: &App) -> String {
    let Some(lane) = app.lanes.get(app.lane) else { return String::new() };
    let (plain, without) = match lane.recipe.plain() {
        plain if plain == lane.recipe => (plain, ""),
        plain => (plain, " without its switches"),
    };
    format!("{}{without}", fit(&safe::line(&plain.title()), 24))
}

/// Columns of a row's name.
const NAME: usize = 13;

/// Draws the editor.
fn draw(app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
    let editor = &app.reading.editor;
    let room = usize::from(area.width).saturating_sub(4);
    let edit = match (&editor.rewriting, &editor.by_model, editor.edit) {
        (Some(_), ..) => " · a model writes, Esc gives up …".to_owned(),
        (None, Some(by), _) => format!(" · rewritten by {}", safe::line(by)),
        (None, None, Some(at)) => format!(" · {}", Edit::BY_RULE[at]),
        (None, None, None) => String::new(),
    };
    let title = format!(" What if it had other words? Score and rank in {}{edit} ", lane_name(app));
    let mut block = Block::bordered().border_style(theme.style(Meaning::Focus)).title(span(
        fit(&title, room),
        Meaning::Title,
        theme,
    ));
    let foot = fit(" nothing edited enters the corpus ", room);
    block = block.title_bottom(span(foot, Meaning::Muted, theme));
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let width = usize::from(inner.width);
    let mut lines = figures(app, theme, width);
    let field = |on: bool| if on { Meaning::Title } else { Meaning::Muted };
    lines.push(Line::from(span(fit(" question", width), field(editor.on_question), theme)));
    let top = lines.len();
    let question = field_rows(&editor.question, editor.on_question, width, usize::MAX);
    let height = usize::from(inner.height);
    let mut cursor = question.cursor.map(|(x, y)| (x, top + y));
    lines.extend(question.rows.into_iter().map(|row| passage_line(row, theme)));
    lines.push(Line::from(span(fit(" passage", width), field(!editor.on_question), theme)));
    let below = lines.len();
    let text = field_rows(&editor.text, !editor.on_question, width, height.saturating_sub(below).max(1));
    cursor = text.cursor.map(|(x, y)| (x, below + y)).or(cursor);
    lines.extend(text.rows.into_iter().map(|row| passage_line(row, theme)));
    lines.truncate(height);
    frame.render_widget(Paragraph::new(lines), inner);
    if let Some((x, y)) = cursor.filter(|(_, y)| *y < height) {
        let x = inner.x + (x as u16).min(inner.width.saturating_sub(1));
        frame.set_cursor_position((x, inner.y + y as u16));
    }
}

fn passage_line(text: String, theme: Theme) -> Line<'static> {
    Line::from(vec![Span::raw(" "), passage_span(text, Meaning::Text, theme)])
}

/// The rows of a field, with the place of the cursor if it is there.
struct Field {
    rows: Vec<String>,
    cursor: Option<(usize, usize)>,
}

/// Wraps a field, and scrolls it so that the row of the cursor is among the first `most`.
fn field_rows(input: &Input, typed: bool, width: usize, most: usize) -> Field {
    let text = safe::line(input.value());
    let ranges = wrap(&text, width.saturating_sub(2), usize::MAX);
    let at = text.char_indices().nth(input.cursor()).map_or(text.len(), |(at, _)| at);
    let row = ranges.iter().rposition(|range| range.start <= at).unwrap_or(0);
    let first = if typed { (row + 1).saturating_sub(most) } else { 0 };
    let cursor = typed.then(|| {
        let before = ranges.get(row).and_then(|range| text.get(range.start..at.max(range.start)));
        (1 + columns_of(before.unwrap_or_default()), row - first)
    });
    let rows = ranges.into_iter().skip(first).take(most).filter_map(|range| text.get(range));
    Field { rows: rows.map(str::to_owned).collect(), cursor }
}

/// Score, rank and the model's verdicts: before and now.
fn figures(app: &App, theme: Theme, width: usize) -> Vec<Line<'static>> {
    let editor = &app.reading.editor;
    let row = |name: &str, before: String, now: String, change: String| {
        let text = format!(" {name:NAME$} {before:>12} {now:>12}  {change}");
        Line::from(span(fit(&text, width), Meaning::Text, theme))
    };
    let head = format!(" {:NAME$} {:>12} {:>12}", "", "as it is", "now");
    let mut lines = vec![Line::from(span(fit(&head, width), Meaning::Muted, theme))];
    let drafted = |answer: &Answer| answer.scored.clone().and_then(Result::ok);
    let (before, now) = (drafted(&editor.before), drafted(&editor.now));
    let recipe = app.lanes.get(app.lane).map(|lane| lane.recipe.plain());
    let score = |drafted: &Option<Drafted>| match (drafted, &recipe) {
        (Some(drafted), Some(recipe)) => recipe.score(drafted.score),
        _ => "…".to_owned(),
    };
    let rank = |drafted: &Option<Drafted>| match drafted {
        Some(Drafted { rank: Some(rank), .. }) => rank.to_string(),
        Some(Drafted { depth: 0, .. }) => "not found".into(),
        Some(Drafted { depth, .. }) => format!("below {depth}"),
        None => "…".to_owned(),
    };
    let ranks = |drafted: &Option<Drafted>| drafted.as_ref().map(|own| own.rank);
    let moved = match (ranks(&before), ranks(&now)) {
        (Some(Some(was)), Some(Some(is))) if was > is => format!("↑{}", was - is),
        (Some(Some(was)), Some(Some(is))) if was < is => format!("↓{}", is - was),
        (Some(Some(_)), Some(None)) => "↓".into(),
        (Some(None), Some(Some(_))) => "↑".into(),
        (Some(_), Some(_)) => "=".into(),
        _ => String::new(),
    };
    lines.push(row("score", score(&before), score(&now), String::new()));
    lines.push(row("rank", rank(&before), rank(&now), moved));
    let judged = |answer: &Answer| answer.judged.clone().and_then(Result::ok);
    let (was, is) = (judged(&editor.before), judged(&editor.now));
    for side in 0..app.question.perspectives.len().min(4) {
        let mark = Mark::of(side, &app.question);
        let p = |judgments: &Option<Arc<Judgments>>| -> Option<f64> {
            judgments.as_ref()?.by_model(PassageIx(0), side)?.p.map(f64::from)
        };
        let text = |p: Option<f64>| p.map_or_else(|| "…".to_owned(), share);
        // The change is that of the figures as they stand.
        let cents = |p: f64| (p * 100.0).round();
        let by = p(&was).zip(p(&is)).map(|(was, is)| (cents(is) - cents(was)) / 100.0);
        let change = by
            .map_or_else(String::new, |by| if by == 0.0 { "=".into() } else { signed(by).trim().to_owned() });
        let name = format!("model says {}", mark.text(app.glyphs));
        let text = format!(" {name:NAME$} {:>12} {:>12}  {change}", text(p(&was)), text(p(&is)));
        lines.push(Line::from(span(fit(&text, width), Meaning::Side(mark), theme)));
    }
    if !app.question.perspectives.is_empty() {
        let verdict = |judgments: &Option<Arc<Judgments>>| {
            let mark = judgments.as_ref().map(|own| Mark::of_passage(own, PassageIx(0), &app.question));
            mark.map_or_else(|| "…".to_owned(), |mark| mark.text(app.glyphs))
        };
        lines.push(row("verdict", verdict(&was), verdict(&is), String::new()));
    }
    let failed = |answer: &Answer| -> Option<String> {
        let score = answer.scored.as_ref().and_then(|own| own.as_ref().err().cloned());
        score.or_else(|| answer.judged.as_ref().and_then(|own| own.as_ref().err().cloned()))
    };
    if let Some(reason) = failed(&editor.now).or_else(|| failed(&editor.before)) {
        lines.extend(paragraph(&reason, " ", width, Meaning::Warn, theme));
    }
    lines
}
