//! One passage being labelled: who and how far, the question and its statements with their keys, the text, what is held of it.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::read::{styled, with_marks};
use super::{of_passage, paragraph, say, span};
use crate::annotate::Item;
use crate::engine::Desk;
use crate::question::Question;
use crate::report::marks::{Glyphs, Mark, share};
use crate::report::safe;
use crate::tui::app::App;
use crate::tui::desk::Labelling;
use crate::tui::keymap::{Action, Context, shown};
use crate::tui::theme::{Meaning, Theme};
use crate::tui::wrap::{columns_of, fit, wrap};

/// Text is not set wider than this.
const WIDEST: u16 = 100;

/// Draws the screen.
pub fn draw(app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
    let labelling = &app.labelling;
    let key = app.key(Context::Annotate, Action::Back);
    let desk = match &labelling.desk {
        None => return say("Opening the journal …", Meaning::Muted, theme, area, frame),
        Some(Err(reason)) => {
            return say(
                &format!("Nothing can be labelled.\n{reason}\n\nPress {key} to go back."),
                Meaning::Warn,
                theme,
                area,
                frame,
            );
        }
        Some(Ok(desk)) => desk,
    };
    let (Some(item), Some(question)) = (labelling.item(), labelling.question()) else {
        let nothing = if desk.items.is_empty() && desk.lanes.is_empty() {
            "There is nothing to label: ask a question first, or name a project with --journal FOLDER.".into()
        } else {
            format!(
                "There is nothing to label here: no passage was given to you, or the lanes brought up none.\n\nPress {key} to go back."
            )
        };
        return say(&nothing, Meaning::Muted, theme, area, frame);
    };
    let width = usize::from(area.width);
    let mut above = vec![Line::from(span(fit(&about(labelling, desk), width), Meaning::Muted, theme))];
    above.push(Line::from(span(
        fit(&format!(" {}", safe::line(&question.text)), width),
        Meaning::Title,
        theme,
    )));
    above.extend(statements(app, question, theme, width));
    if area.height > 16 {
        above.push(Line::default());
    }
    let below = held(app, question, theme, width);
    let room = area.height.saturating_sub(above.len() as u16 + below.len() as u16);
    let top = Rect { height: (above.len() as u16).min(area.height), ..area };
    let bottom = Rect { y: area.bottom().saturating_sub(below.len() as u16).max(top.bottom()), ..area };
    let bottom = Rect { height: area.bottom() - bottom.y, ..bottom };
    let middle = Rect {
        x: area.x + 1,
        y: top.bottom(),
        width: area.width.saturating_sub(2).min(WIDEST),
        height: room,
    };
    frame.render_widget(Paragraph::new(above), top);
    frame.render_widget(Paragraph::new(below), bottom);
    let lines = if labelling.guide {
        desk.guidelines.lines().flat_map(|line| guideline(line, usize::from(middle.width), theme)).collect()
    } else {
        passage(app, item, question, theme, usize::from(middle.width))
    };
    let last = lines.len().saturating_sub(usize::from(middle.height));
    let lines: Vec<Line<'_>> = lines.into_iter().skip(labelling.scroll.min(last)).collect();
    frame.render_widget(Paragraph::new(lines), middle);
    note(labelling, theme, bottom, frame);
}

/// ` anna · 12 of 50 labelled · 3.2 s each · pooled · κ .82 with ben (12) `
fn about(labelling: &Labelling, desk: &Desk) -> String {
    let pace = labelling.pace;
    let mut said = vec![safe::line(&desk.by), format!("{} of {} labelled", pace.done, pace.all)];
    if pace.skipped > 0 {
        said.push(format!("{} skipped", pace.skipped));
    }
    said.push(labelling.order.name().into());
    if labelling.blind {
        said.push("blind".into());
    }
    if let Some(median) = pace.median {
        let left = (pace.all - pace.done) as u64 * median / 60_000;
        said.push(format!("{:.1} s each", median as f64 / 1000.0));
        if pace.done < pace.all {
            said.push(if left == 0 { "under a minute left".into() } else { format!("{left} min left") });
        }
    }
    if desk.read_only.is_some() {
        said.push("read only".into());
    }
    for (name, agreement) in &labelling.agreement {
        let value = agreement.value.map_or_else(|| "–".into(), share);
        said.push(format!("κ {value} with {} ({} pairs)", safe::line(name), agreement.doubly_labelled));
    }
    format!(" {}", said.join(" · "))
}

/// The key that chooses a statement.
fn key(app: &App, question: &Question, i: usize) -> String {
    match Mark::of(i, question) {
        Mark::Support if question.perspectives.len() == 2 => app.key(Context::Annotate, Action::LabelSupport),
        Mark::Oppose => app.key(Context::Annotate, Action::LabelOppose),
        _ => {
            let all = app.keys.of_place(Context::Annotate);
            let mut numbers = all.filter(|bound| bound.line.action == Action::ToggleLabel(0));
            let key = numbers.next().and_then(|bound| bound.keys.get(i));
            key.map(|key| shown(key, app.glyphs == Glyphs::Ascii)).unwrap_or_default()
        }
    }
}

/// A line a statement: its key, its mark, whether it is chosen, what the model says.
fn statements(app: &App, question: &Question, theme: Theme, width: usize) -> Vec<Line<'static>> {
    let labelling = &app.labelling;
    let line = |(i, statement): (usize, &String)| {
        let mark = Mark::of(i, question);
        let chosen = labelling.draft.answers.get(statement);
        let ascii = app.glyphs == Glyphs::Ascii;
        let said = match chosen {
            Some(true) if ascii => "yes",
            Some(true) => "✓",
            Some(false) if ascii => "no",
            Some(false) => "✗",
            None => "",
        };
        let model = labelling.model().and_then(|said| said.get(i).copied().flatten());
        let model = match model {
            _ if labelling.blind => String::new(),
            Some(p) => format!("  model {}", share(f64::from(p))),
            None => "  model …".into(),
        };
        let head = format!(" {} ", key(app, question, i));
        let glyph = format!("{} ", mark.text(app.glyphs));
        let answer = format!("{said:<3} ");
        let used = columns_of(&head) + columns_of(&glyph) + 4 + columns_of(&model);
        let text = fit(&safe::line(statement), width.saturating_sub(used + 1));
        let meaning = if chosen == Some(&true) { Meaning::Side(mark) } else { Meaning::Text };
        Line::from(vec![
            span(head, Meaning::Key, theme),
            span(glyph, Meaning::Side(mark), theme),
            span(answer, Meaning::Side(mark), theme),
            span(text, meaning, theme),
            span(model, Meaning::Muted, theme),
        ])
    };
    question.perspectives.iter().enumerate().take(9).map(line).collect()
}

/// Title, where it comes from, and the text with the evidence in it.
fn passage(app: &App, item: &Item, question: &Question, theme: Theme, width: usize) -> Vec<Line<'static>> {
    let labelling = &app.labelling;
    let title = if item.passage.title.is_empty() { "(without a title)" } else { &item.passage.title };
    let mut lines = vec![Line::from(of_passage(fit(&safe::line(title), width), Meaning::Title, theme))];
    if !labelling.blind {
        let mut ranks: Vec<(&String, &usize)> = item.ranks.iter().collect();
        ranks.sort_by_key(|(lane, rank)| (**rank, *lane));
        let ranks = ranks.iter().map(|(lane, rank)| format!(" · {} {rank}", name(lane)));
        let about = format!("{}{}", item.passage.id, ranks.collect::<String>());
        lines.push(Line::from(span(fit(&safe::line(&about), width), Meaning::Muted, theme)));
    }
    lines.push(Line::default());
    let text = safe::line(&item.passage.text);
    let mut marks = Vec::new();
    let mut mark = |words: &str, meaning| {
        let words = safe::line(words);
        if let Some(start) = text.find(words.as_str()).filter(|_| !words.is_empty()) {
            marks.push((start..start + words.len(), meaning));
        }
    };
    for (i, statement) in question.perspectives.iter().enumerate() {
        if let Some(words) = labelling.draft.evidence.get(statement) {
            mark(words, Meaning::Evidence(Mark::of(i, question)));
        }
    }
    if let Some(words) = &labelling.marked {
        mark(words, Meaning::Evidence(Mark::None));
    }
    if let Some(marking) = &labelling.marking {
        // The same bytes of the safe text, which may be longer than the raw one.
        let safe_at = |at: usize| safe::line(item.passage.text.get(..at).unwrap_or_default()).len();
        let range = marking.range();
        marks.push((safe_at(range.start)..safe_at(range.end), Meaning::Selected));
    }
    let (text, marks) = with_marks(&text, marks, app.glyphs);
    lines.extend(wrap(&text, width, usize::MAX).into_iter().map(|row| styled(&text, row, &marks, theme)));
    lines
}

/// A recipe as a lane's title, where it is one.
fn name(recipe: &str) -> String {
    recipe.parse::<crate::pipeline::Recipe>().map_or_else(|_| recipe.to_owned(), |recipe| recipe.title())
}

/// Marks of Markdown that mean something without a browser: headings and lists.
fn guideline(line: &str, width: usize, theme: Theme) -> Vec<Line<'static>> {
    match line.trim_start_matches('#') {
        heading if heading.len() < line.len() => paragraph(heading.trim(), "", width, Meaning::Title, theme),
        "" => vec![Line::default()],
        text => paragraph(text, "", width, Meaning::Text, theme),
    }
}

/// What is held of the passage: the label, whether it is on the disk, flag, note, evidence.
fn held(app: &App, question: &Question, theme: Theme, width: usize) -> Vec<Line<'static>> {
    let labelling = &app.labelling;
    let draft = &labelling.draft;
    let says = |i: &usize| draft.answers.get(&question.perspectives[*i]) == Some(&true);
    let supported: Vec<usize> = (0..question.perspectives.len()).filter(says).collect();
    let mark = match supported.as_slice() {
        [] if draft.answers.is_empty() => Mark::Pending,
        [] => Mark::None,
        [one] => Mark::of(*one, question),
        _ => Mark::Several,
    };
    let written = labelling.held();
    let state = match () {
        () if labelling.saving.is_some() => "being written …",
        () if labelling.in_conflict() => "two of your machines say different things: decide again",
        () if draft.answers.is_empty() && written.skipped => "skipped",
        () if draft.answers.is_empty() => "not labelled yet",
        () if draft.answers == written.answers => "on the disk",
        () => &format!("{} keeps it", app.key(Context::Annotate, Action::ApplyLabel)),
    };
    let mut spans = vec![
        Span::raw(" "),
        span(format!("{} ", mark.text(app.glyphs)), Meaning::Side(mark), theme),
        span(state.to_owned(), Meaning::Muted, theme),
    ];
    let mut said = String::new();
    if written.flagged {
        said += " · flagged";
    }
    if let Some(note) = &written.note {
        said += &format!(" · note: {}", safe::line(note));
    }
    if let Some(words) = labelling.marked.as_ref().or_else(|| written.evidence.values().next()) {
        said += &format!(" · evidence: “{}”", safe::line(words));
    }
    let room = width.saturating_sub(columns_of(state) + 4);
    spans.push(span(fit(&said, room), Meaning::Text, theme));
    vec![Line::default(), Line::from(spans)]
}

/// The remark being typed, over the last line.
fn note(labelling: &Labelling, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
    let Some(typed) = &labelling.typed else { return };
    if area.height == 0 || area.width < 10 {
        return;
    }
    let row = Rect { y: area.bottom() - 1, height: 1, ..area };
    let room = usize::from(area.width).saturating_sub(9);
    let shown = typed.value().chars().skip(typed.visual_scroll(room)).collect::<String>();
    let line = Line::from(vec![
        span(" note: ", Meaning::Key, theme),
        span(format!("{:<room$}", fit(&safe::line(&shown), room)), Meaning::Text, theme),
    ]);
    frame.render_widget(ratatui::widgets::Clear, row);
    frame.render_widget(line, row);
    let column = 7 + typed.visual_cursor().saturating_sub(typed.visual_scroll(room)).min(room);
    frame.set_cursor_position((row.x + column as u16, row.y));
}
