//! The question line, the completions below it, and the statements.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use unicode_width::UnicodeWidthStr;

use crate::detect::LabelSource;
use crate::question::By;
use crate::report::marks::Mark;
use crate::report::safe;
use crate::tui::app::{App, Corpus};
use crate::tui::keymap::{Action, Context, Screen};
use crate::tui::layout::Panes;
use crate::tui::theme::{Meaning, Theme};
use crate::tui::widgets::text::{fit, span};

/// The text before the question line.
pub const NAME: &str = " parallax  ";

/// From this width on, the question is cut so that the source of the labels stays visible.
const NARROWEST: usize = 32;

/// Draws the question and its statements.
pub fn draw(app: &App, theme: Theme, panes: &Panes, frame: &mut Frame<'_>) {
    question(app, theme, panes.question, frame);
    statements(app, theme, panes.statements, frame);
}

fn question(app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
    let room = usize::from(area.width);
    let name = if room >= 48 { NAME } else { " " };
    let value = safe::line(app.line.value());
    // The description of the corpus is shortened before the question is.
    let fits = |about: &String| name.width() + value.width().max(24) + 3 + about.width() <= room;
    let forms = about(app);
    let least = forms.last().filter(|_| !app.typing && room >= NARROWEST).cloned();
    let about = forms.iter().find(|about| fits(about)).cloned().or(least).unwrap_or_default();
    let width = room.saturating_sub(name.width() + about.width() + 2);
    let cursor = safe::line(&app.line.value().chars().take(app.line.cursor()).collect::<String>()).width();
    let skipped = if app.typing { cursor.saturating_sub(width.saturating_sub(1)) } else { 0 };
    let mut columns = 0;
    let shown: String = value
        .chars()
        .skip_while(|c| {
            columns += unicode_width::UnicodeWidthChar::width(*c).unwrap_or(0);
            columns <= skipped
        })
        .collect();
    let line = if value.is_empty() {
        let hint = if app.typing {
            "type a question, such as: Should zoos be banned?".to_owned()
        } else {
            format!("{} to ask a question", app.key(Context::Lanes, Action::EditQuestion))
        };
        span(fit(&hint, width), Meaning::Muted, theme)
    } else {
        span(fit(&shown, width), Meaning::Title, theme)
    };
    frame.render_widget(Line::from(vec![span(name, Meaning::Muted, theme), line]), area);
    if !about.is_empty() {
        let right = Rect { x: area.right() - about.width() as u16, width: about.width() as u16, ..area };
        frame.render_widget(span(about, Meaning::Muted, theme), right);
    }
    if app.typing && app.screen == Screen::LANES && area.height > 0 {
        let x = area.x + (name.width() + cursor - skipped) as u16;
        frame.set_cursor_position((x.min(area.right().saturating_sub(1)), area.y));
    }
}

/// The corpus, k and the source of the judgments, longest form first. Every form names k and the source, because all figures depend on
/// them.
fn about(app: &App) -> [String; 4] {
    let (k, source) = (app.k, app.judgments.source);
    let corpus = match &app.corpus {
        Corpus::Open(opened) => format!("{} · {} passages   ", safe::line(&opened.corpus), opened.passages),
        _ => String::new(),
    };
    let (long, short) = judged_by(app);
    [
        format!("{corpus}k {k}   {long} "),
        format!("k {k}   {long} "),
        format!("k {k}   {short} "),
        format!("k {k} · {source} "),
    ]
}

/// The source of the judgments on screen: a long and a short form.
fn judged_by(app: &App) -> (String, String) {
    let (shares, rule) = (app.judged_by, app.judgments.rule());
    let source = app.judgments.source;
    if shares.all() == 0 {
        let name = match (source, &app.corpus) {
            (LabelSource::Gold, _) => "gold labels",
            (LabelSource::Human, _) => "labels by hand",
            (LabelSource::Auto, Corpus::Open(opened)) if opened.labelled => "gold labels",
            _ => "the model",
        };
        return (format!("judged by {name}"), format!("labels: {source}"));
    }
    let words = safe::line(&shares.words(rule));
    let name = if shares.by_model() == shares.all() {
        fit(&safe::line(&rule.about.name), 24)
    } else if shares.gold == shares.all() {
        "gold labels".into()
    } else if shares.human == shares.all() {
        "labels by hand".into()
    } else {
        format!("{source}, {} of {} by the model", shares.by_model(), shares.all())
    };
    let key = app.key(Context::Lanes, Action::Annotate);
    let words = match shares.gold == shares.all() && source == LabelSource::Auto && !key.is_empty() {
        true => format!("{words}; {key}: label a passage to count your own"),
        false => words,
    };
    (words, format!("judged by {name}"))
}

fn statements(app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
    let question = &app.question;
    let count = question.perspectives.len();
    if area.height == 0 || question.text.is_empty() {
        return;
    }
    if count == 0 && app.typing {
        return;
    }
    if count == 0 {
        let key = app.key(Context::Lanes, Action::EditStatements);
        let text = match app.foreign {
            Some(language) => format!(
                " This question seems to be {language}; statements can be derived from English questions only: press {key} to type them."
            ),
            None => format!(" No statements could be derived from this question: press {key} to type them."),
        };
        frame.render_widget(span(fit(&text, usize::from(area.width)), Meaning::Warn, theme), area);
        return;
    }
    let note = match app.by {
        By::Rule => "  (by rule)",
        By::User => "  (yours)",
        _ => "",
    };
    let columns = count.div_ceil(usize::from(area.height).min(count));
    let width = usize::from(area.width).saturating_sub(note.width()) / columns;
    let mut lines = vec![vec![]; usize::from(area.height)];
    for (i, statement) in question.perspectives.iter().enumerate() {
        let mark = Mark::of(i, question);
        let glyph = format!(" {} ", mark.text(app.glyphs));
        let text = fit(&safe::line(statement), width.saturating_sub(glyph.width() + 1));
        let pad = " ".repeat(width.saturating_sub(glyph.width() + text.width()));
        if let Some(line) = lines.get_mut(i / columns) {
            line.extend([span(glyph, Meaning::Side(mark), theme), Span::raw(text), Span::raw(pad)]);
        }
    }
    if let Some(first) = lines.first_mut() {
        first.push(span(note, Meaning::Muted, theme));
    }
    frame.render_widget(Paragraph::new(lines.into_iter().map(Line::from).collect::<Vec<_>>()), area);
}
