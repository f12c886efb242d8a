//! Draws one passage being labelled: progress, the question and its statements with their keys, the text, and the label so far.

use std::collections::BTreeMap;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph};

use super::state::Labelling;
use crate::annotate::Item;
use crate::annotate::narrowing::Narrowing;
use crate::engine::AnnotationState;
use crate::question::Question;
use crate::report::marks::{Glyphs, Mark, share};
use crate::report::safe;
use crate::tui::app::App;
use crate::tui::keymap::{Action, Context, shown};
use crate::tui::layout::beside;
use crate::tui::screens::lanes::draw as lane;
use crate::tui::theme::{Meaning, Theme};
use crate::tui::widgets::text::{columns_of, fit, line, passage_span, say, span};
use text::WIDEST;

/// Draws the screen.
pub fn draw(app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
    let labelling = &app.labelling;
    let side = beside(app, area);
    draw_beside(app, theme, side, frame);
    let area = Rect { width: area.width - side.width, ..area };
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

/// Draws the list of the lane with the cursor, with the passage marked in it. If lanes are hidden, or the passage belongs to another question,
/// draws the passages in the order of labelling instead.
fn draw_beside(app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
    let labelling = &app.labelling;
    let (Some(annotation), Some(item)) = (labelling.open(), labelling.item()) else { return };
    if area.is_empty() {
        return;
    }
    let listed = app.lanes.get(app.lane).is_some_and(|lane| !lane.ranking.is_empty());
    if !labelling.blind && listed && item.question == app.question.text {
        return lane::beside(app, theme, area, frame);
    }
    let title = format!(" {} of {} ", labelling.at + 1, labelling.queue.len());
    let block =
        Block::bordered().border_style(theme.style(Meaning::Muted)).title(span(title, Meaning::Title, theme));
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let (rows, width) = (usize::from(inner.height), usize::from(inner.width));
    let first = labelling.at.saturating_sub(rows / 2).min(labelling.queue.len().saturating_sub(rows));
    let line = |(at, entry): (usize, &usize)| {
        let passage = annotation.items.get(entry.checked_rem(annotation.items.len())?)?;
        let mark = own_mark(labelling, annotation, passage, *entry);
        let title = fit(&safe::line(passage.passage.heading()), width.saturating_sub(8));
        let meaning = if at == labelling.at { Meaning::Selected } else { Meaning::Text };
        Some(Line::from(vec![
            span(format!("{:>3} ", at + 1), Meaning::Muted, theme),
            span(format!("{:<3} ", mark.text(app.glyphs)), Meaning::Side(mark), theme),
            passage_span(title, meaning, theme),
        ]))
    };
    let lines = labelling.queue.iter().enumerate().skip(first).take(rows).filter_map(line);
    frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()), inner);
}

/// What the annotator said of a passage. Nothing of one that comes again, because its first label must not be seen.
fn own_mark(labelling: &Labelling, annotation: &AnnotationState, item: &Item, entry: usize) -> Mark {
    let shown = labelling.item().is_some_and(|shown| shown.key("") == item.key(""));
    if entry >= annotation.items.len() || (shown && labelling.asks_again()) {
        return Mark::Pending;
    }
    let question = annotation.questions.iter().find(|question| question.text == item.question);
    let view = annotation.history.view(&item.key(&annotation.by));
    let Some((question, view)) = question.zip(view) else { return Mark::Pending };
    mark_of(&view.answers, question)
}

/// The mark of a label.
fn mark_of(answers: &BTreeMap<String, bool>, question: &Question) -> Mark {
    let says = |i: &usize| answers.get(&question.perspectives[*i]) == Some(&true);
    let supported: Vec<usize> = (0..question.perspectives.len()).filter(says).collect();
    match supported.as_slice() {
        [] if answers.is_empty() => Mark::Pending,
        [] => Mark::None,
        [one] => Mark::of(*one, question),
        _ => Mark::Several,
    }
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
            let all = app.keys.of_context(Context::Annotate);
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
    let mark = mark_of(&draft.answers, question);
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
    said += &evidence_text(app, question, &written.evidence);
    let room = width.saturating_sub(columns_of(state) + 4);
    spans.push(span(fit(&said, room), Meaning::Text, theme));
    vec![Line::default(), Line::from(spans)]
}

/// ` · evidence: “…”`, or ` · evidence ▲ “…” ▼ “…”` if it differs between statements.
fn evidence_text(app: &App, question: &Question, written: &BTreeMap<String, String>) -> String {
    let labelling = &app.labelling;
    let words = |(i, statement): (usize, &String)| {
        let words = labelling.marked_for.get(statement).or_else(|| written.get(statement))?;
        Some((Mark::of(i, question).text(app.glyphs), safe::line(words)))
    };
    let own: Vec<_> = question.perspectives.iter().enumerate().filter_map(words).collect();
    match (&labelling.marked, own.as_slice()) {
        (Some(words), _) if labelling.marked_for.is_empty() => {
            format!(" · evidence: “{}”", safe::line(words))
        }
        (_, []) => String::new(),
        (_, [(_, first), rest @ ..])
            if labelling.marked_for.is_empty() && rest.iter().all(|(_, words)| words == first) =>
        {
            format!(" · evidence: “{first}”")
        }
        _ => {
            let each: Vec<String> = own.iter().map(|(mark, words)| format!("{mark} “{words}”")).collect();
            format!(" · evidence {}", each.join(" "))
        }
    }
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

pub mod text {
    //! The text of the screen: the passage with its evidence, or the guidelines, laid out for the present width.

    use ratatui::layout::Rect;

    use super::super::state::{Inputs, LabelText};
    use crate::annotate::Item;
    use crate::question::Question;
    use crate::report::marks::Mark;
    use crate::report::safe;
    use crate::tui::app::App;
    use crate::tui::layout::beside;
    use crate::tui::theme::Meaning;
    use crate::tui::widgets::text::{Row, fit, highlight_row, passage_piece, piece, rows, with_marks, wrap};

    /// The most columns of the text.
    pub const WIDEST: u16 = 100;

    /// The columns of the text: those that the lane beside it leaves.
    fn width(app: &App) -> u16 {
        let all = Rect::new(0, 0, app.size.width, app.size.height);
        (all.width - beside(app, all).width).saturating_sub(2).min(WIDEST)
    }

    /// Lays the text out again if its inputs have changed.
    pub fn refresh(app: &mut App) {
        let labelling = &app.labelling;
        let inputs = Inputs {
            item: labelling.item().map(|item| (item.question.clone(), item.passage.id.clone())),
            width: usize::from(width(app)),
            glyphs: app.glyphs,
            shown: (labelling.blind, labelling.guide),
            evidence: labelling.draft.evidence.clone(),
            marked: (labelling.marked.clone(), labelling.marked_for.clone()),
            marking: labelling.marking.as_ref().map(|marking| marking.range()),
            said: labelling.said_by_others(),
        };
        if labelling.text.inputs.as_ref() == Some(&inputs) {
            return;
        }
        let rows = match (labelling.open(), labelling.item(), labelling.question()) {
            (Some(annotation), ..) if labelling.guide => {
                annotation.guidelines.lines().flat_map(|line| guideline_rows(line, inputs.width)).collect()
            }
            (Some(_), Some(item), Some(question)) => passage_rows(app, item, question, inputs.width),
            _ => Vec::new(),
        };
        app.labelling.text = LabelText { rows, inputs: Some(inputs) };
    }

    /// The title, its origin, and the text with its evidence marked.
    fn passage_rows(app: &App, item: &Item, question: &Question, width: usize) -> Vec<Row> {
        let labelling = &app.labelling;
        let title = if item.passage.title.is_empty() { "(without a title)" } else { &item.passage.title };
        let mut lines = vec![vec![passage_piece(fit(&safe::line(title), width), Meaning::Title)]];
        if !labelling.blind {
            let mut ranks: Vec<(&String, &usize)> = item.ranks.iter().chain(&item.later).collect();
            ranks.sort_by_key(|(lane, rank)| (**rank, *lane));
            let ranks = ranks.iter().map(|(lane, rank)| format!(" · {} {rank}", lane_title(lane)));
            let about = format!("{}{}", item.passage.id, ranks.collect::<String>());
            lines.push(vec![piece(fit(&safe::line(&about), width), Meaning::Muted)]);
        }
        for said in labelling.said_by_others() {
            lines.extend(rows(&safe::line(&said), "", width, Meaning::Muted));
        }
        lines.push(Row::new());
        let text = safe::line(&item.passage.text);
        let mut marks = Vec::new();
        let mut mark = |words: &str, meaning| {
            let words = safe::line(words);
            if let Some(start) = text.find(words.as_str()).filter(|_| !words.is_empty()) {
                marks.push((start..start + words.len(), meaning));
            }
        };
        for (i, statement) in question.perspectives.iter().enumerate() {
            let words =
                labelling.marked_for.get(statement).or_else(|| labelling.draft.evidence.get(statement));
            if let Some(words) = words {
                mark(words, Meaning::Evidence(Mark::of(i, question)));
            }
        }
        if let Some(words) = &labelling.marked {
            mark(words, Meaning::Evidence(Mark::None));
        }
        if let Some(marking) = &labelling.marking {
            // The same place in the safe text, which can be longer than the raw text.
            let safe_at = |at: usize| safe::line(item.passage.text.get(..at).unwrap_or_default()).len();
            let range = marking.range();
            marks.push((safe_at(range.start)..safe_at(range.end), Meaning::Selected));
        }
        let (text, marks) = with_marks(&text, marks, app.glyphs);
        lines.extend(wrap(&text, width, usize::MAX).into_iter().map(|row| highlight_row(&text, row, &marks)));
        // Below the text there is room for what counts as support.
        if let Some(annotation) = labelling.open() {
            lines.extend([Row::new(), Row::new()]);
            lines.extend(annotation.guidelines.lines().flat_map(|line| guideline_rows(line, width)));
        }
        lines
    }

    /// The title of a recipe; other names stay as they are.
    fn lane_title(recipe: &str) -> String {
        recipe.parse::<crate::engine::Recipe>().map_or_else(|_| recipe.to_owned(), |recipe| recipe.title())
    }

    /// One line of Markdown: headings are highlighted, other lines are plain text.
    fn guideline_rows(line: &str, width: usize) -> Vec<Row> {
        match line.trim_start_matches('#') {
            heading if heading.len() < line.len() => rows(heading.trim(), "", width, Meaning::Title),
            "" => vec![Row::new()],
            text => rows(text, "", width, Meaning::Text),
        }
    }
}
