//! Draws one passage being labelled: progress, the question and its statements with their keys, the text, and the label so far.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::state::Labelling;
use super::text::WIDEST;
use crate::annotate::narrowing::Narrowing;
use crate::engine::AnnotationState;
use crate::question::Question;
use crate::report::marks::{Glyphs, Mark, share};
use crate::report::safe;
use crate::tui::app::App;
use crate::tui::keymap::{Action, Context, shown};
use crate::tui::theme::{Meaning, Theme};
use crate::tui::widgets::text::{columns_of, fit, line, say, span};

/// Draws the screen.
pub fn draw(app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
    let labelling = &app.labelling;
    let key = app.key(Context::Annotate, Action::Back);
    let annotation = match &labelling.annotation {
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
        Some(Ok(annotation)) => annotation,
    };
    let (Some(_), Some(question)) = (labelling.item(), labelling.question()) else {
        let nothing = if annotation.items.is_empty() && annotation.lanes.is_empty() {
            "There is nothing to label: ask a question first, or name a project with --journal FOLDER.".into()
        } else {
            format!(
                "There is nothing to label here: no passage was given to you, or the lanes brought up none.\n\nPress {key} to go back."
            )
        };
        return say(&nothing, Meaning::Muted, theme, area, frame);
    };
    let width = usize::from(area.width);
    let mut above =
        vec![Line::from(span(fit(&progress_text(labelling, annotation), width), Meaning::Muted, theme))];
    if let Some((figure, narrowing)) = &labelling.narrowing {
        let key = app.key(Context::Annotate, Action::NextFigure);
        let text = format!(" {} · {key} another figure", narrowing_text(figure, narrowing));
        above.push(Line::from(span(fit(&text, width), Meaning::Muted, theme)));
    }
    let shown = labelling.on_screen(app.size.height);
    let part = match question.perspectives.len() {
        all if all > shown.len() && !shown.is_empty() => {
            let key = app.key(Context::Annotate, Action::PageDown);
            format!("  statements {}–{} of {all} · {key} more", shown.start + 1, shown.end)
        }
        _ => String::new(),
    };
    let asked = fit(&format!(" {}", safe::line(&question.text)), width.saturating_sub(columns_of(&part)));
    above.push(Line::from(vec![span(asked, Meaning::Title, theme), span(part, Meaning::Muted, theme)]));
    above.extend(statement_lines(app, question, theme, width));
    if area.height > 16 {
        above.push(Line::default());
    }
    let below = label_lines(app, question, theme, width);
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
    let rows = &labelling.text.rows;
    let last = rows.len().saturating_sub(usize::from(middle.height));
    let shown = rows.iter().skip(labelling.scroll.min(last)).take(usize::from(middle.height));
    let lines: Vec<Line<'_>> = shown.map(|row| line(row, theme)).collect();
    frame.render_widget(Paragraph::new(lines), middle);
    draw_note(labelling, theme, bottom, frame);
}

/// ` anna · 12 of 50 labelled · 3.2 s each · pooled · κ .82 with ben (12) `
fn progress_text(labelling: &Labelling, annotation: &AnnotationState) -> String {
    let pace = labelling.pace;
    let mut said = vec![safe::line(&annotation.by), format!("{} of {} labelled", pace.done, pace.all)];
    if pace.skipped > 0 {
        said.push(format!("{} skipped", pace.skipped));
    }
    said.push(labelling.order.name().into());
    if labelling.blind {
        said.push("blind".into());
    }
    if annotation.adjudicates {
        said.push("settles disagreements".into());
    }
    if let Some(median) = pace.median {
        let left = (pace.all - pace.done) as u64 * median / 60_000;
        said.push(format!("{:.1} s each", median as f64 / 1000.0));
        if pace.done < pace.all {
            said.push(if left == 0 { "under a minute left".into() } else { format!("{left} min left") });
        }
    }
    if annotation.read_only.is_some() {
        said.push("read only".into());
    }
    for (name, agreement) in &labelling.agreement {
        let value = agreement.value.map_or_else(|| "–".into(), share);
        said.push(format!("κ {value} with {} ({} pairs)", safe::line(name), agreement.doubly_labelled));
    }
    format!(" {}", said.join(" · "))
}

/// `MRecall@5 of bm25, 24 of 79 questions: ± .21 (10) → ± .15 (20) → ± .12 now · ± .08 expected with 44`
fn narrowing_text(figure: &str, Narrowing { labelled, of, widths, next }: &Narrowing) -> String {
    let mut text = format!("{}, {labelled} of {of} questions: ", safe::line(figure));
    match widths.split_last() {
        None => text += "an interval needs 4 labelled questions",
        Some(((_, now), before)) => {
            for (n, half) in &before[before.len().saturating_sub(3)..] {
                text += &format!("± {} ({n}) → ", share(*half));
            }
            text += &format!("± {} now", share(*now));
        }
    }
    if let Some((n, half)) = next {
        text += &format!(" · ± {} expected with {n}", share(*half));
    }
    text
}

/// The key that chooses a statement.
fn statement_key(app: &App, question: &Question, i: usize) -> String {
    match Mark::of(i, question) {
        Mark::Support if question.perspectives.len() == 2 => app.key(Context::Annotate, Action::LabelSupport),
        Mark::Oppose => app.key(Context::Annotate, Action::LabelOppose),
        _ => {
            let all = app.keys.of_place(Context::Annotate);
            let mut numbers = all.filter(|bound| bound.line.action == Action::ToggleLabel(0));
            let place = i - app.labelling.on_screen(app.size.height).start.min(i);
            let key = numbers.next().and_then(|bound| bound.keys.get(place));
            key.map(|key| shown(key, app.glyphs == Glyphs::Ascii)).unwrap_or_default()
        }
    }
}

/// One line per statement: its key, its mark, whether it is chosen, and the model's probability.
fn statement_lines(app: &App, question: &Question, theme: Theme, width: usize) -> Vec<Line<'static>> {
    let labelling = &app.labelling;
    let row = |(i, statement): (usize, &String)| {
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
            Some(p) if labelling.is_unclear() => {
                format!("  model {} {}", Mark::Unclear.glyph(app.glyphs), share(f64::from(p)))
            }
            Some(p) => format!("  model {}", share(f64::from(p))),
            None => "  model …".into(),
        };
        let head = format!(" {} ", statement_key(app, question, i));
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
    let shown = labelling.on_screen(app.size.height);
    question.perspectives.iter().enumerate().skip(shown.start).take(shown.len()).map(row).collect()
}

/// The label of the passage: whether it is on the disk, flag, note and evidence.
fn label_lines(app: &App, question: &Question, theme: Theme, width: usize) -> Vec<Line<'static>> {
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
    let state = if labelling.saving.is_some() {
        "being written …"
    } else if labelling.in_conflict() {
        "two of your machines say different things: decide again"
    } else if draft.answers.is_empty() && written.skipped {
        "skipped"
    } else if draft.answers.is_empty() {
        "not labelled yet"
    } else if draft.answers == written.answers {
        "on the disk"
    } else {
        &format!("{} keeps it", app.key(Context::Annotate, Action::ApplyLabel))
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

/// Draws the note being typed over the last line.
fn draw_note(labelling: &Labelling, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
    let Some(typed) = &labelling.typed else { return };
    if area.height == 0 || area.width < 10 {
        return;
    }
    let row = Rect { y: area.bottom() - 1, height: 1, ..area };
    let prompt = if labelling.settling.is_some() { " why:  " } else { " note: " };
    let room = usize::from(area.width).saturating_sub(9);
    let shown = typed.value().chars().skip(typed.visual_scroll(room)).collect::<String>();
    let line = Line::from(vec![
        span(prompt, Meaning::Key, theme),
        span(format!("{:<room$}", fit(&safe::line(&shown), room)), Meaning::Text, theme),
    ]);
    frame.render_widget(ratatui::widgets::Clear, row);
    frame.render_widget(line, row);
    let column = 7 + typed.visual_cursor().saturating_sub(typed.visual_scroll(room)).min(room);
    frame.set_cursor_position((row.x + column as u16, row.y));
}
