//! One passage in full: where it stands, what it supports, and which words and sentences matter.

use std::ops::Range;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::paint::OWN;
use super::{of_passage, paragraph, span};
use crate::corpus::{Passage, PassageIx};
use crate::detect::{By, DetectError, foreign};
use crate::report::marks::{Glyphs, Mark, share};
use crate::report::{reasons, safe};
use crate::retrieve::analysis::terms;
use crate::tui::app::App;
use crate::tui::layout::{arrange, reading_text};
use crate::tui::theme::{Look, Meaning, Theme};
use crate::tui::wrap::{columns_of, fit, wrap};

/// Columns of a mark before its verdict.
const MARK: usize = 4;
/// Columns of a statement that are worth showing.
const STATEMENT: usize = 8;

/// A range of a text, and what it means.
pub type Highlight = (Range<usize>, Meaning);

/// Draws the open passage.
pub fn draw(app: &App, theme: Theme, body: Rect, frame: &mut Frame<'_>) {
    let Some((at, passage)) = app.open_passage() else { return };
    let heading = heading(app, theme, at, &passage, reading_text(body, 0).width);
    let area = reading_text(body, heading.len() as u16);
    frame.render_widget(Paragraph::new(heading), reading_text(body, 0));
    let visible = content(app, theme, at, &passage, usize::from(area.width));
    let visible = visible.into_iter().skip(app.reading.scroll).take(usize::from(area.height));
    frame.render_widget(Paragraph::new(visible.collect::<Vec<_>>()), area);
}

/// The text with its highlights, then why the passage stands where it does.
fn content(app: &App, theme: Theme, at: PassageIx, passage: &Passage, width: usize) -> Vec<Line<'static>> {
    let text = safe::line(&passage.text);
    let (text, marks) = highlights(app, at, passage, &text);
    let rows = wrap(&text, width, usize::MAX);
    let mut lines = Vec::new();
    if let Some(language) = foreign(&passage.text) {
        let told = format!("This seems to be {language}; the carried models were tested on English only.");
        lines.extend(paragraph(&told, "", width, Meaning::Warn, theme));
        lines.push(Line::default());
    }
    lines.extend(rows.into_iter().map(|row| styled(&text, row, &marks, theme)));
    lines.push(Line::default());
    let by_model = |i| app.book.known(at, i).is_some_and(|known| matches!(known.model, Some(Ok(_))));
    if (0..app.book.perspectives).any(by_model) {
        let told = format!("The model's verdict is a yes from {} on.", share(f64::from(app.book.threshold)));
        lines.extend(paragraph(&told, "", width, Meaning::Muted, theme));
        lines.push(Line::default());
    }
    lines.extend(why(app, theme, at, width));
    lines
}

/// Why it stands where it does in the lane with the cursor.
fn why(app: &App, theme: Theme, at: PassageIx, width: usize) -> Vec<Line<'static>> {
    let Some(lane) = app.lanes.get(app.lane) else { return Vec::new() };
    let rank = lane.ranking.rank_of(at).map_or_else(|| "–".into(), |rank| rank.to_string());
    let title = app.titles().swap_remove(app.lane);
    let head = format!("Why rank {rank} in {title}");
    let mut lines = vec![Line::from(span(fit(&head, width), Meaning::Title, theme))];
    let known = app.reading.why.as_ref().filter(|(of, recipe, _)| *of == at && *recipe == lane.recipe);
    match known {
        None => lines.push(Line::from(span("…", Meaning::Muted, theme))),
        Some((_, _, Err(reason))) => lines.extend(paragraph(reason, "", width, Meaning::Warn, theme)),
        Some((_, _, Ok(reasons))) => {
            let told = reasons::lines(reasons, &lane.ranking, &app.question, app.glyphs);
            lines.extend(told.iter().flat_map(|told| paragraph(told, "", width, Meaning::Muted, theme)));
            let trace = &lane.ranking.trace;
            let told = trace.expansion().map(|expansion| safe::line(&expansion.told()));
            lines.extend(told.map(|told| Line::from(span(fit(&told, width), Meaning::Muted, theme))));
            lines
                .extend(trace.notes.iter().flat_map(|note| paragraph(note, "", width, Meaning::Warn, theme)));
        }
    }
    lines
}

/// Lines that the open passage takes.
pub fn lines(app: &App) -> usize {
    let Some((at, passage)) = app.open_passage() else { return 0 };
    let width = usize::from(text_area(app).width);
    content(app, Theme::of(Look::Mono), at, &passage, width).len()
}

/// Lines of it that are shown at once.
pub fn shown_lines(app: &App) -> usize {
    usize::from(text_area(app).height)
}

fn text_area(app: &App) -> Rect {
    let body = arrange(Rect::new(0, 0, app.size.width, app.size.height), app).body;
    let rows = app.open_passage().map_or(0, |(at, passage)| {
        heading(app, Theme::of(Look::Mono), at, &passage, reading_text(body, 0).width).len()
    });
    reading_text(body, rows as u16)
}

fn heading(app: &App, theme: Theme, at: PassageIx, passage: &Passage, width: u16) -> Vec<Line<'static>> {
    let width = usize::from(width);
    let title = if passage.title.is_empty() { "(without a title)" } else { &passage.title };
    let mut lines = vec![Line::from(of_passage(fit(&safe::line(title), width), Meaning::Title, theme))];
    let about = passage.metadata.iter().map(|(key, value)| match value.as_str() {
        Some(text) => format!("{key}: {text}"),
        None => format!("{key}: {value}"),
    });
    let about: Vec<String> = std::iter::once(passage.id.clone()).chain(about).collect();
    lines.push(Line::from(span(fit(&safe::line(&about.join(" · ")), width), Meaning::Muted, theme)));
    let lanes = app.titles().into_iter().zip(&app.lanes).filter(|(_, lane)| !lane.ranking.is_empty());
    let ranks = lanes.map(|(title, lane)| match app.rank_in(lane, at) {
        Some(rank) => format!("{title} {rank}"),
        None => format!("{title} –"),
    });
    lines.push(Line::from(span(
        fit(&format!("rank: {}", ranks.collect::<Vec<_>>().join(" · ")), width),
        Meaning::Muted,
        theme,
    )));
    lines.push(Line::default());
    for (i, statement) in app.question.perspectives.iter().enumerate() {
        let mark = Mark::of(i, &app.question);
        // A verdict is never cut: without its last words it may say the opposite.
        let verdict = safe::line(&verdict(app, at, i));
        let rows = wrap(&verdict, width.saturating_sub(MARK), usize::MAX);
        let last = rows.len().saturating_sub(1);
        for (row, range) in rows.into_iter().enumerate() {
            let glyph = if row == 0 { mark.text(app.glyphs) } else { String::new() };
            let text = &verdict[range];
            let mut spans = vec![
                span(format!("{glyph:<MARK$}"), Meaning::Side(mark), theme),
                span(text.to_owned(), Meaning::Title, theme),
            ];
            let room = width.saturating_sub(MARK + columns_of(text) + 2);
            if row == last && room >= STATEMENT {
                let statement = fit(&safe::line(statement), room);
                spans.extend([Span::raw("  "), span(statement, Meaning::Text, theme)]);
            }
            lines.push(Line::from(spans));
        }
    }
    lines.push(Line::default());
    lines
}

/// `supports .94 (model)`, and what the others say where they say otherwise.
fn verdict(app: &App, at: PassageIx, perspective: usize) -> String {
    let Some(known) = app.book.known(at, perspective) else { return "not judged yet".into() };
    match app.book.verdict(at, perspective) {
        None => match &known.model {
            Some(Err(DetectError::Empty(what))) => format!("no verdict: the {what} is empty"),
            Some(Err(error)) => format!("no verdict: {error}"),
            _ => "no label".into(),
        },
        Some(verdict) => {
            let says = if verdict.supports { "supports" } else { "does not" };
            let p = verdict.p.map_or_else(String::new, |p| format!(" {}", share(f64::from(p))));
            let by = match verdict.by {
                By::Model => "model",
                By::Gold => "gold",
                By::Human => "human",
            };
            let mut other = String::new();
            for (name, label) in [("human", known.human), ("gold", known.gold)] {
                match label.filter(|label| *label != verdict.supports) {
                    Some(true) => other += &format!(", {name}: yes"),
                    Some(false) => other += &format!(", {name}: no"),
                    None => {}
                }
            }
            if let Some(Ok(p)) = &known.model
                && (*p >= app.book.threshold) != verdict.supports
            {
                other += &format!(", model {}", share(f64::from(*p)));
            }
            format!("{says}{p} ({by}{other})")
        }
    }
}

/// The safe text with the marks of its evidence, and in it the ranges of evidence sentences and terms of the question.
fn highlights(app: &App, at: PassageIx, passage: &Passage, text: &str) -> (String, Vec<Highlight>) {
    let mut marks = Vec::new();
    for perspective in app.supported(at) {
        let found = app.reading.evidence.get(&(at, perspective)).and_then(Clone::clone);
        if let Some(sentence) = found.and_then(|range| passage.text.get(range)).map(safe::line)
            && let Some(start) = text.find(sentence.trim_end())
        {
            let mark = Mark::of(perspective, &app.question);
            marks.push((start..start + sentence.trim_end().len(), Meaning::Evidence(mark)));
        }
    }
    let (text, mut marks) = with_marks(text, marks, app.glyphs);
    let asked: Vec<String> = terms(&app.question.text).into_iter().map(|term| term.text).collect();
    marks.extend(
        terms(&text)
            .into_iter()
            .filter(|term| asked.contains(&term.text))
            .map(|term| (term.at, Meaning::Match)),
    );
    (text, marks)
}

/// The text with the mark of its side before every piece of evidence, for without colours these look alike. The ranges move with
/// it.
pub fn with_marks(text: &str, ranges: Vec<Highlight>, glyphs: Glyphs) -> (String, Vec<Highlight>) {
    let mut put: Vec<(usize, String)> = Vec::new();
    for (range, meaning) in &ranges {
        if let Meaning::Evidence(mark) = meaning
            && *mark != Mark::None
        {
            put.push((range.start, format!("{} ", mark.text(glyphs))));
        }
    }
    put.sort_by_key(|(at, _)| *at);
    let (mut whole, mut from) = (String::new(), 0);
    for (at, mark) in &put {
        whole.push_str(&text[from..*at]);
        whole.push_str(mark);
        from = *at;
    }
    whole.push_str(&text[from..]);
    let now =
        |at: usize| at + put.iter().filter(|(put, _)| *put < at).map(|(_, mark)| mark.len()).sum::<usize>();
    let moved = ranges.into_iter().map(|(range, meaning)| (now(range.start)..now(range.end), meaning));
    (whole, moved.collect())
}

/// A row of the text, cut where a highlight begins or ends.
pub fn styled(text: &str, row: Range<usize>, marks: &[Highlight], theme: Theme) -> Line<'static> {
    let mut cuts = vec![row.start, row.end];
    for (range, _) in marks {
        cuts.extend([range.start, range.end].into_iter().filter(|cut| row.contains(cut)));
    }
    cuts.sort_unstable();
    cuts.dedup();
    let spans = cuts.windows(2).map(|cut| {
        let style = marks
            .iter()
            .filter(|(range, _)| range.start <= cut[0] && cut[1] <= range.end)
            .fold(theme.style(Meaning::Text), |style, (_, meaning)| style.patch(theme.style(*meaning)));
        Span::styled(text[cut[0]..cut[1]].to_owned(), style.add_modifier(OWN))
    });
    Line::from(spans.collect::<Vec<_>>())
}
