//! Draws the lanes: passages, figures and completions.

use std::sync::Arc;

use ratatui::Frame;
use ratatui::layout::{Alignment, Position, Rect};
use ratatui::style::Modifier;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType, Clear, Paragraph};
use unicode_width::UnicodeWidthStr;

use super::figures::{self, cell, counts, missing_forms};
use crate::corpus::PassageIx;
use crate::corpus::store::NONE;
use crate::engine::Ranked;
use crate::engine::recipe::Switch;
use crate::report::marks::{Mark, share};
use crate::report::safe;
use crate::tui::app::{App, Corpus, Lane, LaneState, NUMBERS};
use crate::tui::config::Tint;
use crate::tui::keymap::{Action, Context, Screen};
use crate::tui::layout::{LanePanes, Panes, arrange, lane_panes, side_by_side, tab_names};
use crate::tui::screens::help::screen::{legend, welcome};
use crate::tui::theme::{Meaning, Theme};
use crate::tui::widgets::header::NAME;
use crate::tui::widgets::text::{columns_of, fit, passage_span, say, span, wrap};

/// The most characters of a passage in its preview.
const PREVIEW: usize = 600;

/// The most columns of a passage's field value.
const VALUE: usize = 12;

/// Draws the lanes, and over them the completions of the question line.
pub fn draw(app: &App, theme: Theme, frame: &mut Frame<'_>) {
    let panes = arrange(frame.area(), app);
    match &app.corpus {
        Corpus::Failed(reason) => {
            let context = if app.typing { Context::Question } else { Context::Lanes };
            let key = app.key(context, Action::Quit);
            let corpus = app.key(Context::Lanes, Action::PickCorpus);
            let text = format!(
                "What was named could not be opened.\n{reason}\n\nPress {corpus} to choose another corpus, {key} to leave."
            );
            say(&text, Meaning::Warn, theme, panes.body, frame);
        }
        Corpus::Opening => say("Opening the corpus …", Meaning::Muted, theme, panes.body, frame),
        Corpus::Open(_) => {
            tabs(app, theme, panes.tabs, frame);
            for pane in &panes.lanes {
                lane(app, theme, pane, frame);
            }
        }
    }
    legend(app, theme, panes.legend, frame);
    completions(app, theme, &panes, frame);
}

/// Draws the lane with the cursor beside the text of another screen, whose passage is marked in it.
pub fn beside(app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
    of(app, theme, app.lane, area, frame);
}

/// Draws one lane in an area, unless that is empty.
pub fn of(app: &App, theme: Theme, number: usize, area: Rect, frame: &mut Frame<'_>) {
    if !area.is_empty() {
        lane(app, theme, &lane_panes(number, area, app), frame);
    }
}

/// Draws the lanes below another screen, where there is room for their passages.
pub fn below(app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
    if area.height >= 8 && matches!(app.corpus, Corpus::Open(_)) {
        let (names, lanes) = side_by_side(area, app);
        tabs(app, theme, names, frame);
        for pane in &lanes {
            lane(app, theme, pane, frame);
        }
    }
}

/// The names of all lanes.
fn tabs(app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
    let names = tab_names(app, area.width).into_iter().enumerate().flat_map(|(i, name)| {
        let meaning = if i == app.lane { Meaning::Selected } else { Meaning::Muted };
        [Span::raw(" "), span(format!(" {name} "), meaning, theme)]
    });
    frame.render_widget(Line::from(names.collect::<Vec<_>>()), area);
}

/// Draws one lane.
fn lane(app: &App, theme: Theme, pane: &LanePanes, frame: &mut Frame<'_>) {
    let Some(lane) = app.lanes.get(pane.lane) else { return };
    let focused = pane.lane == app.lane && !app.typing;
    let block = Block::bordered()
        .border_type(if focused { BorderType::Thick } else { BorderType::Plain })
        .border_style(theme.style(if focused { Meaning::Focus } else { Meaning::Muted }))
        .title(span(
            format!(" {} ", app.short_title(pane.lane, usize::from(pane.outer.width).saturating_sub(13))),
            Meaning::Title,
            theme,
        ))
        .title(Line::from(span(state_text(app, lane), Meaning::Muted, theme)).alignment(Alignment::Right));
    let block = if app.in_large() { block } else { bottom(app, theme, pane, lane, block) };
    frame.render_widget(block, pane.outer);
    if app.in_large() {
        return present(app, theme, lane, pane.list, frame);
    }
    let stale = lane.state == LaneState::Waiting;
    match &lane.state {
        LaneState::Failed(reason, waits) => {
            let meaning = if waits.is_some() { Meaning::Muted } else { Meaning::Warn };
            say(reason, meaning, theme, pane.list, frame);
        }
        LaneState::Idle => {
            let first = welcome(app, pane.lane);
            // Suggestions stand below the question line, over the lanes.
            let top = pane.list.y.max(app.completions.len() as u16 + 1).min(pane.list.bottom());
            let area = Rect { y: top, height: pane.list.bottom() - top, ..pane.list };
            say(&first, Meaning::Muted, theme, area, frame);
        }
        LaneState::Waiting if lane.ranking.is_empty() => {
            say("Searching …", Meaning::Muted, theme, pane.list, frame)
        }
        LaneState::Ready if lane.ranking.is_empty() => {
            say(
                match lane.recipe.run() {
                    Some(_) => "The run's list for this question is empty.",
                    None => {
                        "Nothing found: no word of the question stands in the corpus. C chooses another one."
                    }
                },
                Meaning::Muted,
                theme,
                pane.list,
                frame,
            );
        }
        _ => passages(app, theme, pane, lane, frame),
    }
    if !stale {
        figures::draw(app, theme, pane, lane, frame);
    }
    if stale && !lane.ranking.is_empty() {
        frame.buffer_mut().set_style(pane.list, ratatui::style::Style::default().add_modifier(Modifier::DIM));
    }
}

/// The frame with what is said below the lane.
fn bottom<'a>(app: &App, theme: Theme, pane: &LanePanes, lane: &Lane, block: Block<'a>) -> Block<'a> {
    let right = linked_rank(app, lane, pane.lane, usize::from(pane.outer.width).saturating_sub(2));
    let room = usize::from(pane.outer.width).saturating_sub(columns_of(&right) + 4);
    let block = match note(lane) {
        // The tuning screen (`t`) shows the whole text.
        Some((text, meaning)) if room >= 12 => {
            block.title_bottom(span(format!(" {} ", fit(&safe::line(&text), room)), meaning, theme))
        }
        _ => block,
    };
    block.title_bottom(Line::from(span(right, Meaning::Muted, theme)).alignment(Alignment::Right))
}

/// How long the list took, or what the lane waits for.
fn state_text(app: &App, lane: &Lane) -> String {
    match &lane.state {
        LaneState::Waiting if lane.recipe.switches.is_on(Switch::Diversify) => " judging … ".into(),
        LaneState::Waiting if lane.recipe.switches.expand.is_some() => " expanding … ".into(),
        LaneState::Waiting => " … ".into(),
        LaneState::Ready => format!(" {:.0} ms ", lane.took.as_secs_f64() * 1e3),
        LaneState::Failed(_, Some(job)) => app.job(*job).filter(|progress| progress.total > 0).map_or_else(
            || format!(" {} … ", job.name()),
            |progress| format!(" {} {} % ", job.name(), progress.done * 100 / progress.total),
        ),
        _ => String::new(),
    }
}

/// A warning about the lane's list, or else the kind of its expansion. If the expansion warns, its kind comes first, because the rest
/// may not fit.
fn note(lane: &Lane) -> Option<(String, Meaning)> {
    if lane.state != LaneState::Ready {
        return None;
    }
    let trace = &lane.ranking.trace;
    let expansion = trace.expansion();
    match (trace.notes.first(), expansion) {
        (Some(note), Some(expansion)) if expansion.notes.contains(note) => {
            // The lane's name contains the method.
            let form = expansion.form.to_string();
            let whose = form.split_once(", ").map_or(&*form, |(_, whose)| whose);
            Some((format!("{whose}: {note}"), Meaning::Warn))
        }
        (Some(note), _) => Some((note.clone(), Meaning::Warn)),
        (None, expansion) => Some((expansion?.describe(), Meaning::Muted)),
    }
}

/// The marked passage of the lane with the cursor, if the filter lets it through; while labelling, the passage being labelled.
fn marked(app: &App) -> Option<&Ranked> {
    let lane = app.lanes.get(app.lane)?;
    if app.screen == Screen::LABELLING {
        let id = &app.labelling.item()?.passage.id;
        return lane.ranking.iter().find(|ranked| ranked.passage.id == *id);
    }
    lane.ranking.get(lane.selected).filter(|_| lane.figures.shown.contains(&lane.selected))
}

/// The rank in this lane of the passage marked in the focused lane.
fn linked_rank(app: &App, lane: &Lane, index: usize, width: usize) -> String {
    match marked(app) {
        Some(selected) if index != app.lane && !lane.ranking.is_empty() => {
            match app.rank_in(lane, selected.at) {
                Some(rank) => format!(" marked passage: rank {rank} "),
                None => {
                    let short = format!(" not in the first {} ", lane.ranking.len());
                    let whole = format!(" marked passage:{short}");
                    if columns_of(&whole) <= width { whole } else { short }
                }
            }
        }
        _ => String::new(),
    }
}

fn passages(app: &App, theme: Theme, pane: &LanePanes, lane: &Lane, frame: &mut Frame<'_>) {
    let selected = marked(app).map(|ranked| ranked.at);
    let width = usize::from(pane.list.width);
    let places = &lane.figures.shown;
    if places.is_empty() {
        let words = safe::line(app.filter.line.value());
        say(&format!("No passage here holds `{words}`."), Meaning::Muted, theme, pane.list, frame);
    }
    // Beside another screen's text, fewer passages may fit than on the lanes.
    let own = selected.filter(|_| pane.lane == app.lane && app.screen != Screen::LANES);
    let at = own.and_then(|at| places.iter().position(|i| lane.ranking[*i].at == at));
    let top = at.map_or(lane.top, |at| lane.top.clamp((at + 1).saturating_sub(pane.shown().max(1)), at));
    let visible = || places.iter().copied().skip(top).take(pane.shown());
    // Labels have no probabilities, so their column goes to the titles.
    let probable = app.judgments.is_by_model(&lane.ranking);
    for (row, i) in visible().enumerate() {
        let ranked = &lane.ranking[i];
        let marked = selected == Some(ranked.at) && !app.typing;
        let mine = marked && pane.lane == app.lane;
        let mark = app.mark(ranked.at);
        let title_meaning = match (mine, marked, mark) {
            (true, ..) => Meaning::Selected,
            (_, true, _) => Meaning::Linked,
            _ if i >= app.k => Meaning::Muted,
            (.., Mark::None | Mark::Unclear | Mark::Pending) => Meaning::Title,
            (.., mark) => Meaning::Side(mark),
        };
        let gutter = || gutter(mark, theme);
        let inner = width.saturating_sub(1);
        let mut title = vec![gutter()];
        title.extend(head(app, theme, (lane, i), ranked, (inner, probable), title_meaning));
        let mut lines = vec![Line::from(title)];
        lines.extend(preview(theme, ranked, inner, usize::from(pane.rows) - 1, i >= app.k).into_iter().map(
            |mut line| {
                line.spans.insert(0, gutter());
                line
            },
        ));
        let area = Rect { y: pane.list.y + row as u16 * pane.rows, height: pane.rows, ..pane.list };
        frame.render_widget(Paragraph::new(lines), area);
        if app.settings.tint == Tint::On && i < app.k && !mine {
            let behind = Rect { height: area.height.min(1), ..area };
            frame.buffer_mut().set_style(behind, theme.style(Meaning::Tint(mark)));
        }
    }
}

/// The side's colour beside every row of a passage; blank for one that takes no side.
fn gutter(mark: Mark, theme: Theme) -> Span<'static> {
    match mark {
        Mark::None | Mark::Unclear | Mark::Pending => Span::raw(" "),
        mark => span("▌", Meaning::Side(mark), theme),
    }
}

/// Rank, mark, probability, title, score.
fn head(
    app: &App,
    theme: Theme,
    (lane, i): (&Lane, usize),
    ranked: &Ranked,
    (width, probable): (usize, bool),
    meaning: Meaning,
) -> Vec<Span<'static>> {
    let mark = app.mark(ranked.at);
    let p = app.judgments.shown(ranked.at).map_or_else(String::new, share);
    let score = format!("{}{}", rank_move(lane, i, ranked), lane.recipe.score(ranked.score));
    let rank = format!("{:>2} ", i + 1);
    let p = if probable { format!("{p:>3} ") } else { String::new() };
    let value = field_value(app, theme, ranked, (width / 4).clamp(4, VALUE));
    let tag = value.as_ref().map_or(0, |value| value.width() + 1);
    let column = statement_column(app, theme, ranked.at, width);
    let marks = column.as_ref().map_or(3, |column| column.len() + 1);
    let fixed = rank.width() + marks + p.width() + columns_of(&score) + 1 + tag;
    // The text of a passage that only a run names says no more than that.
    let outside = ranked.at.as_outside().is_some() && ranked.passage.title.is_empty();
    let heading = if outside { &ranked.passage.id } else { ranked.passage.heading() };
    let title = fit(&safe::line(heading), width.saturating_sub(fixed));
    let pad = " ".repeat(width.saturating_sub(fixed + columns_of(&title)) + 1);
    let of_p = Meaning::Side(if mark == Mark::Pending { Mark::None } else { mark });
    let mut spans = vec![span(rank, Meaning::Muted, theme)];
    match column {
        Some(column) => spans.extend(column.into_iter().chain([Span::raw(" ")])),
        None => spans.push(span(format!("{:<3}", mark.text(app.glyphs)), Meaning::Side(mark), theme)),
    }
    let mut title = passage_span(title, meaning, theme);
    if i < app.k && !matches!(mark, Mark::None | Mark::Unclear | Mark::Pending) {
        // The cursor keeps the side's colour.
        title.style = theme.style(Meaning::Side(mark)).patch(title.style);
    }
    spans.extend([span(p, of_p, theme), title, Span::raw(pad)]);
    spans.extend(value.into_iter().flat_map(|value| [value, Span::raw(" ")]));
    spans.push(span(score, Meaning::Muted, theme));
    spans
}

/// The columns of a lane that leave room for a cell for every statement beside the title.
const ROOMY: usize = 36;

/// One cell a statement of a many-sided question, in its colour and with its number: filled if the passage supports it, blank if not, and the mark
/// of a passage that supports none. The page of statements that the number keys label; `None` for two sides, or without room.
fn statement_column(app: &App, theme: Theme, at: PassageIx, width: usize) -> Option<Vec<Span<'static>>> {
    let count = app.question.perspectives.len();
    if count < 3 || width < ROOMY || app.judgments.support(at).is_none() {
        return None;
    }
    let supported = app.supported(at);
    let first = app.statement_page() * NUMBERS;
    let cells = (first..(first + NUMBERS).min(count)).map(|i| {
        let own = theme.style(Meaning::Side(Mark::of(i, &app.question)));
        match supported.contains(&i) {
            true => Span::styled((i - first + 1).to_string(), own.add_modifier(Modifier::REVERSED)),
            false if i == first && supported.is_empty() => {
                span(Mark::None.glyph(app.glyphs).to_string(), Meaning::Muted, theme)
            }
            false => Span::raw(" "),
        }
    });
    Some(cells.collect())
}

/// The passage's value of the field shown on the lanes.
fn field_value(app: &App, theme: Theme, ranked: &Ranked, width: usize) -> Option<Span<'static>> {
    let field = app.biasing.category(app.biasing.on_lanes?)?;
    let place = field.place(&ranked.passage.metadata)?;
    let (value, _) = field.values.get(place)?;
    let meaning = if value == NONE { Meaning::Muted } else { Meaning::Value(place) };
    Some(span(fit(&safe::line(value), width), meaning, theme))
}

/// `↑3 `, `new `, `= `: how the rank differs from the baseline's.
fn rank_move(lane: &Lane, i: usize, ranked: &Ranked) -> String {
    let Some(before) = lane.figures.before.as_ref().filter(|before| !Arc::ptr_eq(before, &lane.ranking))
    else {
        return String::new();
    };
    match before.rank_of(ranked.at) {
        None => "new ".into(),
        Some(was) if was > i + 1 => format!("↑{} ", was - i - 1),
        Some(was) if was < i + 1 => format!("↓{} ", i + 1 - was),
        Some(_) => "= ".into(),
    }
}

fn preview(theme: Theme, ranked: &Ranked, width: usize, rows: usize, deep: bool) -> Vec<Line<'static>> {
    let end = ranked.passage.text.char_indices().nth(PREVIEW).map_or(ranked.passage.text.len(), |(i, _)| i);
    let text = safe::line(&ranked.passage.text[..end]);
    let lines = wrap(&text, width.saturating_sub(3), rows);
    let meaning = if deep { Meaning::Muted } else { Meaning::Text };
    let line = |range: std::ops::Range<usize>| {
        Line::from(vec![Span::raw("   "), passage_span(&text[range], meaning, theme)])
    };
    lines.into_iter().map(line).collect()
}

/// The rows of the completions, below the question line.
fn completion_area(app: &App, panes: &Panes) -> Rect {
    let left = if panes.question.width >= 48 { columns_of(NAME) as u16 - 1 } else { 0 };
    Rect {
        x: left,
        y: panes.question.bottom(),
        width: panes.question.width.saturating_sub(left),
        height: (app.completions.len() as u16)
            .min(app.size.height.saturating_sub(panes.question.bottom() + 1)),
    }
}

/// The completion at a place, as an index.
pub fn completion_at(app: &App, panes: &Panes, at: Position) -> Option<usize> {
    let area = completion_area(app, panes);
    (app.typing && area.contains(at)).then(|| usize::from(at.y - area.y))
}

/// Draws the completions below the question line, over the panes.
fn completions(app: &App, theme: Theme, panes: &Panes, frame: &mut Frame<'_>) {
    if !app.typing || app.completions.is_empty() {
        return;
    }
    let area = completion_area(app, panes);
    let line = |(i, text): (usize, &String)| {
        let text = format!(" {} ", fit(&safe::line(text), usize::from(area.width).saturating_sub(2)));
        let pad = " ".repeat(usize::from(area.width).saturating_sub(columns_of(&text)));
        let meaning = if app.completion == Some(i) { Meaning::Selected } else { Meaning::Text };
        Line::from(span(text + &pad, meaning, theme))
    };
    frame.render_widget(Clear, area);
    frame.render_widget(
        Paragraph::new(app.completions.iter().enumerate().map(line).collect::<Vec<_>>()),
        area,
    );
}

/// The most rows and columns of a cell.
const TALLEST: usize = 8;
const WIDEST: usize = 13;

/// Draws one lane in large: its sentence, and a strip for each wording.
fn present(app: &App, theme: Theme, lane: &Lane, area: Rect, frame: &mut Frame<'_>) {
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    let Some(figures) = lane.figures.now.as_ref().filter(|_| lane.state == LaneState::Ready) else {
        let text = match &lane.state {
            LaneState::Failed(reason, _) => reason.as_str(),
            LaneState::Idle => "Ask a question.",
            LaneState::Ready => "This question has no statements, so there are no sides to show.",
            LaneState::Waiting => "Searching …",
        };
        say(text, Meaning::Muted, theme, area, frame);
        return;
    };
    let mut strips: Vec<(Vec<Span<'static>>, &[Mark])> =
        vec![(vec![span(format!("the first {}", app.k), Meaning::Title, theme)], &lane.figures.marks)];
    for (i, asked) in lane.figures.asked.iter().flatten().enumerate() {
        let mark = [Mark::Support, Mark::Oppose][i];
        let sides = app.question.sides().unwrap_or_default();
        let statement = app.question.perspectives.get(sides[i]).map(|text| safe::line(text));
        let title = format!("asked as {} {}", mark.glyph(app.glyphs), statement.unwrap_or_default());
        strips.push((
            vec![span(fit(&title, width.saturating_sub(2)), Meaning::Side(mark), theme)],
            &asked.marks,
        ));
    }
    // Two rows of sentence and a gap; each strip has a title and a gap.
    let rest = height.saturating_sub(3);
    let each = rest / strips.len().max(1);
    let tall = each.saturating_sub(2).clamp(1, TALLEST);
    let columns = (width.saturating_sub(2) / app.k.max(1)).clamp(1, WIDEST);
    let fits = |spans: &Vec<Span<'static>>| spans.iter().map(Span::width).sum::<usize>() < width;
    let in_words = Some(counts(app, &lane.figures.marks, theme, false)).filter(fits);
    let sentence = in_words.unwrap_or_else(|| counts(app, &lane.figures.marks, theme, true));
    let mut lines = vec![Line::from([vec![Span::raw(" ")], sentence].concat())];
    let forms = missing_forms(app, &lane.figures, figures);
    // The form without ranks, if there is one.
    let room = |form: &&Vec<(String, Option<Mark>)>| {
        form.iter().map(|(words, _)| columns_of(words)).sum::<usize>() < width
    };
    let form =
        forms.iter().skip(2).find(room).or(forms.iter().find(room)).or(forms.last()).into_iter().flatten();
    let words =
        form.map(|(words, mark)| span(words.clone(), mark.map_or(Meaning::Title, Meaning::Side), theme));
    lines.push(Line::from(std::iter::once(Span::raw(" ")).chain(words).collect::<Vec<_>>()));
    for (title, marks) in strips {
        if lines.len() + 2 > height {
            break;
        }
        lines.push(Line::default());
        lines.push(Line::from([vec![Span::raw(" ")], title].concat()));
        for row in 0..tall {
            lines.push(row_of_cells(app, theme, marks, (columns, width), row == tall / 2));
        }
    }
    frame.render_widget(Paragraph::new(lines), area);
}

/// One row of a strip's cells; the middle one has the glyphs.
fn row_of_cells(
    app: &App,
    theme: Theme,
    marks: &[Mark],
    (columns, width): (usize, usize),
    middle: bool,
) -> Line<'static> {
    let fits = width.saturating_sub(2) / columns;
    let gap = usize::from(columns > 2);
    let mut spans = vec![Span::raw(" ")];
    for mark in marks.iter().take(fits) {
        let filled = columns - gap;
        let whole = cell(app, theme, *mark, "");
        let glyph = if middle { whole.content.to_string() } else { " ".into() };
        let left = (filled - 1) / 2;
        let text = format!("{}{glyph}{}", " ".repeat(left), " ".repeat(filled - 1 - left));
        spans.push(Span::styled(text, whole.style));
        spans.push(Span::raw(" ".repeat(gap)));
    }
    Line::from(spans)
}
