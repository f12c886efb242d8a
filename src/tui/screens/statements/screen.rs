//! Edits the statements, and draws the editor.

use crossterm::event::{Event, KeyEvent};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph};
use tui_input::Input;
use tui_input::backend::crossterm::EventHandler;
use unicode_width::UnicodeWidthStr;

use super::Editing;
use crate::measure::support::MAX_PERSPECTIVES;
use crate::question::{By, Question, draft};
use crate::report::marks::Mark;
use crate::report::safe;
use crate::tui::app::App;
use crate::tui::keymap::{Action, Context, Screen};
use crate::tui::message::Effect;
use crate::tui::page::Page;
use crate::tui::screens::lanes::{draw as lanes, question};
use crate::tui::theme::{Meaning, Theme};
use crate::tui::widgets::text::{fit, span};

/// The editor of the statements.
pub struct Statements;

impl Page for Statements {
    fn screen(&self) -> Screen {
        Screen::STATEMENTS
    }

    fn context(&self, _: &App) -> Context {
        Context::Statements
    }

    fn opened_by(&self) -> Option<Action> {
        Some(Action::EditStatements)
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
        app.editing.lines.get_mut(app.editing.at)
    }

    fn draw(&self, app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
        draw(app, theme, area, frame);
    }
}

/// Opens the editor on the present statements.
pub fn open(app: &mut App) -> Vec<Effect> {
    question::read_line(app);
    if app.question.text.is_empty() {
        app.notice = Some("ask a question first; its statements can then be edited".into());
        return Vec::new();
    }
    let mut lines: Vec<Input> = app.question.perspectives.iter().cloned().map(Input::new).collect();
    if lines.is_empty() {
        let key = |action| app.key(Context::Statements, action);
        let (take, leave) = (key(Action::ApplyStatements), key(Action::Back));
        let (why, what) = match (app.foreign, draft(&app.question.text)) {
            (Some(language), _) => (
                format!("statements are made from English alone, and this is {language}"),
                "type what each side says",
            ),
            (None, Some(draft)) => {
                lines = draft.map(Input::new).into();
                ("no rule turns this text into two sides".into(), "this is a draft, change it")
            }
            (None, None) => ("no rule turns this text into two sides".into(), "type what each side says"),
        };
        app.notice = Some(format!("{why}: {what}; {take} uses it, {leave} goes on without sides"));
    }
    while lines.len() < 2 {
        lines.push(Input::default());
    }
    let supports = app.question.supports.unwrap_or(0);
    app.editing = Editing { lines, at: 0, supports, offered: app.editing.offered.take() };
    app.screen = Screen::STATEMENTS;
    Vec::new()
}

/// Performs an action.
pub fn act(app: &mut App, action: Action) -> Vec<Effect> {
    let editing = &mut app.editing;
    let count = editing.lines.len().max(1);
    match action {
        Action::Down => editing.at = (editing.at + 1) % count,
        Action::Up => editing.at = (editing.at + count - 1) % count,
        Action::AddStatement if count < MAX_PERSPECTIVES => {
            editing.lines.push(Input::default());
            editing.at = editing.lines.len() - 1;
        }
        Action::DropStatement if count > 1 => {
            editing.lines.remove(editing.at);
            editing.at = editing.at.min(editing.lines.len() - 1);
        }
        Action::SwapSides if count == 2 => editing.supports = 1 - editing.supports.min(1),
        Action::Back => app.screen = Screen::LANES,
        Action::ApplyStatements => return apply(app),
        _ => {}
    }
    Vec::new()
}

/// Edits the statement under the cursor.
pub fn edit(app: &mut App, key: KeyEvent) -> Vec<Effect> {
    if let Some(line) = app.editing.lines.get_mut(app.editing.at) {
        line.handle_event(&Event::Key(key));
    }
    Vec::new()
}

/// Uses the statements. Empty ones are left out; if none is left, the question has no statements.
fn apply(app: &mut App) -> Vec<Effect> {
    let written = app.editing.lines.iter().map(|line| line.value().trim().to_owned());
    let perspectives: Vec<String> = written.filter(|text| !text.is_empty()).collect();
    let supports = (perspectives.len() == 2).then_some(app.editing.supports.min(1));
    app.screen = Screen::LANES;
    if perspectives == app.question.perspectives && supports == app.question.supports {
        return Vec::new();
    }
    let by = if perspectives.is_empty() { By::None } else { By::User };
    let question = Question { perspectives, supports, ..app.question.clone() };
    question::ask_instead(app, question, by);
    question::restart(app)
}

/// Draws the editor, and below it the lanes that its statements colour.
fn draw(app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
    let editing = &app.editing;
    let rows = (editing.lines.len() as u16 + 2).min(area.height);
    let rest = Rect { y: area.y + rows, height: area.height - rows, ..area };
    lanes::below(app, theme, rest, frame);
    let area = Rect { height: rows, ..area };
    let texts: Vec<String> = editing.lines.iter().map(|line| line.value().to_owned()).collect();
    let supports = (texts.len() == 2).then_some(editing.supports);
    let question = Question { perspectives: texts.clone(), supports, ..app.question.clone() };
    let block = Block::bordered().border_style(theme.style(Meaning::Focus)).title(span(
        " Statements of the question, one sentence each ",
        Meaning::Title,
        theme,
    ));
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let width = usize::from(inner.width).saturating_sub(5);
    let first = (editing.at + 1).saturating_sub(usize::from(inner.height));
    let mut lines = Vec::new();
    for (i, text) in texts.iter().enumerate().skip(first) {
        let mark = Mark::of(i, &question);
        let meaning = if i == editing.at { Meaning::Title } else { Meaning::Text };
        // A long statement is scrolled so that the cursor is visible.
        let text = safe::line(text);
        let cursor =
            safe::line(&editing.lines[i].value().chars().take(editing.lines[i].cursor()).collect::<String>());
        let hidden = if i == editing.at { cursor.width().saturating_sub(width.saturating_sub(1)) } else { 0 };
        let shown: String = text.chars().skip(hidden).collect();
        if i == editing.at && inner.height > 0 {
            let x = inner.x + 5 + (cursor.width() - hidden) as u16;
            frame.set_cursor_position((x.min(inner.right().saturating_sub(1)), inner.y + (i - first) as u16));
        }
        lines.push(Line::from(vec![
            Span::raw(" "),
            span(format!("{:<4}", mark.text(app.glyphs)), Meaning::Side(mark), theme),
            span(fit(&shown, width), meaning, theme),
        ]));
    }
    frame.render_widget(Paragraph::new(lines), inner);
}
