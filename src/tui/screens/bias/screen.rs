//! Above, the sides that each lane favours; below, whose passages it returns.

use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph};

use super::{Measured, SideRow, measure};
use crate::corpus::store::{Field, NONE};
use crate::engine::{Batch, EXAMPLE, Reply};
use crate::measure::pir::{Crossed, Standing, distance};
use crate::report::marks::{Mark, share, signed};
use crate::report::safe;
use crate::tui::app::{App, Corpus};
use crate::tui::keymap::{Action, Context, Screen};
use crate::tui::layout::panes;
use crate::tui::message::Effect;
use crate::tui::page::Page;
use crate::tui::screens::compare::screen as compare;
use crate::tui::screens::lanes::update as lanes;
use crate::tui::theme::{Meaning, Theme};
use crate::tui::widgets::text::{columns_of, fit, say, span};
use crate::tui::widgets::{heat_cell, lean_bar, scrolled, share_bar, sources_line};
use crate::work::Job;

/// The bias screen.
pub struct Bias;

impl Page for Bias {
    fn screen(&self) -> Screen {
        Screen::BIAS
    }

    fn context(&self, _: &App) -> Context {
        Context::Bias
    }

    fn opened_by(&self) -> Option<Action> {
        Some(Action::Bias)
    }

    fn open(&self, app: &mut App) -> Vec<Effect> {
        open(app)
    }

    fn act(&self, app: &mut App, action: Action) -> Vec<Effect> {
        act(app, action)
    }

    fn reply(&self, app: &mut App, reply: Reply) -> Result<Vec<Effect>, Box<Reply>> {
        match reply {
            Reply::Fields(fields) => {
                app.jobs.retain(|(progress, _)| progress.job != Job::Counting);
                app.biasing.fields = Some(fields);
                Ok(Vec::new())
            }
            other => Err(Box::new(other)),
        }
    }

    fn point(&self, app: &mut App, mouse: MouseEvent) -> Option<Action> {
        if mouse.kind != MouseEventKind::Down(MouseButton::Left) {
            return scrolled(mouse);
        }
        let (above, _) = areas(app, panes(app).body);
        let inner = Block::bordered().inner(above);
        if inner.contains(Position { x: mouse.column, y: mouse.row }) {
            let shown = usize::from(mouse.row - inner.y).saturating_sub(1) / lane_rows(app, inner);
            let lane = first_lane(app, inner) + shown;
            app.lane = lane.min(app.lanes.len().saturating_sub(1));
        }
        None
    }

    fn embedded(&self, app: &mut App) -> Vec<Effect> {
        ask(app)
    }

    fn refresh(&self, app: &mut App) {
        measure::refresh(app);
    }

    fn settled(&self, app: &App) -> bool {
        app.biasing.fields.is_some() && (!app.biasing.over_set || app.comparing.ended())
    }

    fn draw(&self, app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
        draw(app, theme, area, frame);
    }
}

/// Opens the screen on the current question, or on the set if there is no question.
pub fn open(app: &mut App) -> Vec<Effect> {
    if !matches!(app.corpus, Corpus::Open(_)) {
        return Vec::new();
    }
    let asked = !app.question.text.is_empty();
    if !asked && !has_set(app) {
        app.notice = Some("ask a question first, or give a question set with --questions FILE".into());
        return Vec::new();
    }
    app.biasing.over_set = !asked;
    app.screen = Screen::BIAS;
    ask(app)
}

/// Performs an action.
pub fn act(app: &mut App, action: Action) -> Vec<Effect> {
    let categories = app.biasing.fields.as_ref().map_or(0, |fields| fields.categories.len()).max(1);
    let biasing = &mut app.biasing;
    match action {
        Action::NextField => (biasing.at, biasing.scroll) = ((biasing.at + 1) % categories, 0),
        Action::PreviousField => {
            (biasing.at, biasing.scroll) = ((biasing.at + categories - 1) % categories, 0);
        }
        Action::Down => {
            let last = biasing.category(biasing.at).map_or(0, |field| field.values.len().saturating_sub(1));
            biasing.scroll = (biasing.scroll + 1).min(last);
        }
        Action::Up => biasing.scroll = biasing.scroll.saturating_sub(1),
        Action::OnLanes => {
            if biasing.category(biasing.at).is_none() {
                app.notice = Some("the passages have no field that can be shown".into());
                return Vec::new();
            }
            biasing.on_lanes = (biasing.on_lanes != Some(biasing.at)).then_some(biasing.at);
            return app.leave();
        }
        Action::OverSet if app.question.text.is_empty() => {
            let (back, ask) =
                (app.key(Context::Bias, Action::Back), app.key(Context::Lanes, Action::EditQuestion));
            app.notice =
                Some(format!("there is no question yet; press {back} to go back and {ask} to type one"));
        }
        Action::OverSet if !has_set(app) => {
            app.notice = Some("there is no question set; give one with --questions FILE".into());
        }
        Action::OverSet => {
            app.biasing.over_set = !app.biasing.over_set;
            return ask(app);
        }
        action => return lanes::act_with_batch(app, action, ask),
    }
    Vec::new()
}

fn has_set(app: &App) -> bool {
    matches!(&app.corpus, Corpus::Open(opened) if !opened.questions.is_empty())
}

/// Requests what is missing: the fields and, over the set, every question's outcome.
pub fn ask(app: &mut App) -> Vec<Effect> {
    let over_set = app.biasing.over_set;
    let number = app.next_batch();
    if over_set {
        compare::begin(app, number);
    } else if app.biasing.fields.is_some() {
        return vec![Effect::StopBatch(number)];
    }
    vec![Effect::Batch(number, Batch::Bias(app.query(), over_set))]
}

/// Draws the screen.
pub fn draw(app: &App, theme: Theme, body: Rect, frame: &mut Frame<'_>) {
    let measured = &app.biasing.measured;
    let (above, below) = areas(app, body);
    draw_sides(app, theme, measured, above, frame);
    match &app.biasing.fields {
        Some(fields) if !fields.categories.is_empty() => draw_values(app, theme, measured, below, frame),
        fields => {
            let inner = draw_border(theme, " whose passages ".into(), below, frame);
            let reason = match fields {
                None => "Counting the values of the metadata fields …".to_owned(),
                Some(fields) if fields.others.is_empty() => format!(
                    "The passages have no metadata, so there are no shares to count.\nAdd {EXAMPLE} to the lines of the corpus, and open it with --corpus."
                ),
                Some(fields) => format!(
                    "No field divides the passages into groups: the values of {} are too many, or lists.",
                    fields.others.join(", ")
                ),
            };
            say(&reason, Meaning::Muted, theme, inner, frame);
        }
    }
}

/// The area of the sides and that of the values. Without values, the sides are drawn larger.
fn areas(app: &App, body: Rect) -> (Rect, Rect) {
    let lanes = app.lanes.len() as u16;
    let none = app.biasing.fields.as_ref().is_some_and(|fields| fields.categories.is_empty());
    let above = match body.height {
        height if none && height >= 12 => height.saturating_sub(6),
        height if height >= 30 => lanes * 3 + 2,
        height => (lanes + 3).min(height / 2),
    };
    let above = Rect { height: above.min(body.height), ..body };
    (above, Rect { y: above.bottom(), height: body.height - above.height, ..body })
}

/// Draws a border with a title; returns the area inside.
fn draw_border(theme: Theme, title: String, area: Rect, frame: &mut Frame<'_>) -> Rect {
    let title = span(title, Meaning::Title, theme);
    let block = Block::bordered().border_style(theme.style(Meaning::Muted)).title(title);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    inner
}

/// A lane's name, padded to a column.
fn lane_name(app: &App, theme: Theme, lane: usize, width: usize) -> [Span<'static>; 2] {
    let meaning = if lane == app.lane { Meaning::Selected } else { Meaning::Text };
    let title = app.lanes.get(lane).map_or_else(String::new, |lane| lane.recipe.title());
    let title = fit(&safe::line(&title), width.saturating_sub(1));
    let pad = " ".repeat(width.saturating_sub(columns_of(&title)));
    [span(title, meaning, theme), Span::raw(pad)]
}

/// Draws how often each side is covered, the lane's lean, how uneven its order is, and how many passages take no side.
fn draw_sides(app: &App, theme: Theme, measured: &Measured, area: Rect, frame: &mut Frame<'_>) {
    let k = app.k;
    let what = match (app.biasing.over_set, app.comparing.questions.len()) {
        (false, _) => "this question".to_owned(),
        (true, all) => {
            format!("{}/{all} questions", app.comparing.questions.iter().flatten().count())
        }
    };
    let title = span(format!(" favoured side in the first {k} · {what} "), Meaning::Title, theme);
    let sources = measured.sides.get(app.lane).map(|row| row.sources).unwrap_or_default();
    let below = sources_line(&app.short_title(app.lane, 14), sources, area.width, theme);
    let block = Block::bordered().border_style(theme.style(Meaning::Muted)).title(title);
    let block = block.title_bottom(below);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let total = usize::from(inner.width);
    let wide = total >= 70;
    let width = if wide { 20 } else { 12 };
    let covers = if measured.as_shares { "▲only  ▼only  both none " } else { "covers" };
    let covers = if total >= 100 { format!("{covers:<26}") } else { String::new() };
    let figures = 7 + 7 + 7 + 7;
    let bar = total.saturating_sub(2 + width + figures + columns_of(&covers) + 1);
    let bar = if bar >= 9 { bar } else { 0 };
    let pad = if bar > 0 { " ".repeat(bar + 1) } else { String::new() };
    let head = format!("  {:<width$}{pad}{:<7}{covers}{:<7}{:<7}{}", "", "lean", "rKL", "AWRF", "no side");
    let mut lines = vec![Line::from(span(head, Meaning::Muted, theme))];
    let rows = lane_rows(app, inner);
    for (lane, row) in measured.sides.iter().enumerate().take(app.lanes.len()).skip(first_lane(app, inner)) {
        let mut spans = vec![Span::raw("  ")];
        spans.extend(lane_name(app, theme, lane, width));
        let SideRow { lean, interval, covered, rkl, awrf, no_side, .. } = row;
        if bar > 0 && !row.supporters.is_empty() {
            spans.extend(supporters(app, theme, row, bar));
            spans.push(Span::raw(" "));
        } else if bar > 0 {
            let drawn = lean_bar(lean.unwrap_or(f64::NAN), *interval, bar, theme, app.glyphs);
            let used: usize = drawn.iter().map(|span| columns_of(&span.content)).sum();
            spans.extend(drawn);
            spans.push(Span::raw(" ".repeat((bar + 1).saturating_sub(used))));
        }
        let lean = lean.map_or_else(|| "–".into(), |lean| signed(lean).trim().to_owned());
        spans.push(span(format!("{lean:<7}"), Meaning::Title, theme));
        if !covers.is_empty() {
            spans.push(Span::raw(format!("{covered:<26}")));
        }
        spans.push(Span::raw(format!("{rkl:<7}{awrf:<7}{no_side}")));
        lines.push(Line::from(spans));
        for row_below in 1..rows {
            let last = row_below + 1 == rows && rows > 2;
            let mut spans = vec![Span::raw(" ".repeat(2 + width))];
            spans.extend(stack(app, theme, row, bar).into_iter().filter(|_| !last));
            lines.push(Line::from(spans));
        }
    }
    lines.truncate(usize::from(inner.height));
    frame.render_widget(Paragraph::new(lines), inner);
}

/// The most rows of a lane.
const TALLEST: usize = 14;

/// The rows of a lane: where there is room, the shares of the sides are drawn below the lean, then a gap.
fn lane_rows(app: &App, inner: Rect) -> usize {
    (usize::from(inner.height).saturating_sub(1) / app.lanes.len().max(1)).clamp(1, TALLEST)
}

/// The first lane shown: the lane under the cursor is always among those that fit.
fn first_lane(app: &App, inner: Rect) -> usize {
    let fits = usize::from(inner.height).saturating_sub(1) / lane_rows(app, inner);
    (app.lane + 1).saturating_sub(fits.max(1))
}

/// The shares of one side, the other, both and neither, each as a run of its mark.
fn stack(app: &App, theme: Theme, row: &SideRow, width: usize) -> Vec<Span<'static>> {
    let Some(shares) = row.shares else { return Vec::new() };
    let marks = [Mark::Support, Mark::Oppose, Mark::Several, Mark::None];
    let mut ends = 0.0;
    let mut at = 0;
    let runs = shares.into_iter().zip(marks).map(|(share, mark)| {
        ends += share;
        let end = ((ends * width as f64).round() as usize).min(width);
        let run = mark.glyph(app.glyphs).to_string().repeat(end.saturating_sub(at));
        at = at.max(end);
        span(run, Meaning::Side(mark), theme)
    });
    runs.collect()
}

/// How many of the first k support each statement, as bars side by side: `◆A 2 ██▍`. Those that do not fit are left out.
fn supporters(app: &App, theme: Theme, row: &SideRow, width: usize) -> Vec<Span<'static>> {
    const LEAST: usize = 9;
    let each = (width / row.supporters.len().max(1)).clamp(LEAST, 24);
    let mut spans = Vec::new();
    for (i, count) in row.supporters.iter().enumerate().take(width / each) {
        let mark = Mark::of(i, &app.question);
        let name = format!("{} {count} ", mark.text(app.glyphs));
        let room = each.saturating_sub(columns_of(&name) + 1);
        let bar = share_bar(*count as f64 / app.k.max(1) as f64, room);
        let text = fit(&(name + &bar), each - 1);
        let gap = " ".repeat(each - columns_of(&text));
        spans.extend([span(text, Meaning::Side(mark), theme), Span::raw(gap)]);
    }
    let used: usize = spans.iter().map(|span| columns_of(&span.content)).sum();
    spans.push(Span::raw(" ".repeat(width.saturating_sub(used))));
    spans
}

/// Columns of a value's name.
const NAME: usize = 17;
/// Columns of the corpus's share.
const CORPUS: usize = 8;
/// Columns of a lane.
const LANE: usize = 14;
/// Columns of a retrieved value.
const RETRIEVED: usize = 8;
/// A share this far over or under the corpus's (log2) gets an arrow.
const MARKED: f64 = 0.5;

/// Draws the table of shares, and the matrix if any question asks for a value.
fn draw_values(app: &App, theme: Theme, measured: &Measured, area: Rect, frame: &mut Frame<'_>) {
    let Some(field) = app.biasing.category(app.biasing.at) else { return };
    let rows = &measured.matrix;
    let tall = rows.len() as u16 + 3;
    let (table, matrix) = match (rows.is_empty(), area.width >= 110) {
        (true, _) => (area, Rect::ZERO),
        (false, true) => {
            let left = area.width * 3 / 5;
            (Rect { width: left, ..area }, Rect { x: area.x + left, width: area.width - left, ..area })
        }
        (false, false) if area.height >= 12 => {
            let below = tall.min(area.height / 2);
            let above = area.height - below;
            (Rect { height: above, ..area }, Rect { y: area.y + above, height: below, ..area })
        }
        (false, false) => (area, Rect::ZERO),
    };
    draw_shares(app, theme, field, measured, table, frame);
    if !matrix.is_empty() {
        draw_matrix(app, theme, field, rows, matrix, frame);
    }
}

/// A value's colour; passages without a value are muted.
fn value_meaning(field: &Field, place: usize) -> Meaning {
    match field.values.get(place) {
        Some((value, _)) if value != NONE => Meaning::Value(place),
        _ => Meaning::Muted,
    }
}

fn pad(text: &str, width: usize) -> String {
    let text = fit(&safe::line(text), width.saturating_sub(1));
    let pad = " ".repeat(width.saturating_sub(columns_of(&text)));
    text + &pad
}

/// Draws one row per value: its share of the corpus, and of each lane's first k.
fn draw_shares(
    app: &App,
    theme: Theme,
    field: &Field,
    measured: &Measured,
    area: Rect,
    frame: &mut Frame<'_>,
) {
    let passages = app.biasing.fields.as_ref().map_or(0, |fields| fields.passages);
    let title = format!(" whose passages: the first {} against all {passages}, log2 of the ratio ", app.k);
    let inner = draw_border(theme, title, area, frame);
    let width = usize::from(inner.width);
    // In a narrow area, names are cut before lanes are dropped; in a low one, the tabs are dropped before values.
    let (named, own) = if width < 60 { (NAME - 5, CORPUS - 1) } else { (NAME, CORPUS) };
    let low = inner.height < 6;
    let shown = (width.saturating_sub(named + own + 1) / LANE).min(app.lanes.len());
    let first = (app.lane + 1).saturating_sub(shown).min(app.lanes.len().saturating_sub(shown));
    let lanes = first..first + shown;
    // What a wide area leaves is for bars.
    let wide = (width.saturating_sub(named + own + 1) / shown.max(1)).clamp(LANE, 3 * LANE);
    let bar = |share: f64, columns: usize, meaning: Meaning| -> [Span<'static>; 2] {
        let bar = share_bar(share, columns.saturating_sub(2));
        let pad = " ".repeat(columns.saturating_sub(columns_of(&bar)));
        [span(bar, meaning, theme), Span::raw(pad)]
    };
    let mut head = vec![Span::raw(" "), span(pad("", named), Meaning::Muted, theme)];
    head.push(span(pad("corpus", own), Meaning::Muted, theme));
    head.extend(lanes.clone().flat_map(|lane| lane_name(app, theme, lane, wide)));
    let mut lines = if low { Vec::new() } else { vec![tabs(app, theme)] };
    lines.push(Line::from(head));
    let shown = measured.standings.get(lanes).unwrap_or_default();
    let room = usize::from(inner.height).saturating_sub(lines.len() + usize::from(!low)).max(1);
    let each = (room / field.values.len().max(1)).clamp(1, 3);
    // Scrolling stops when the last value is visible.
    let top = app.biasing.scroll.min(field.values.len().saturating_sub(room));
    for (place, (value, count)) in field.values.iter().enumerate().skip(top).take(room) {
        let part = share(*count as f64 / passages.max(1) as f64);
        let mut spans = vec![Span::raw(" "), span(pad(value, named), value_meaning(field, place), theme)];
        spans.push(Span::raw(format!("{part:<own$}")));
        spans.extend(shown.iter().filter_map(|lane| lane.get(place)).flat_map(|standing| {
            let mut spans = cell(theme, *standing).to_vec();
            spans.extend(bar(standing.top_share().unwrap_or(0.0), wide - LANE, value_meaning(field, place)));
            spans
        }));
        lines.push(Line::from(spans));
        lines.extend(std::iter::repeat_n(Line::default(), each - 1));
    }
    let far = shown.iter().map(|lane| format!("{:<wide$}", distance(lane).map_or_else(|| "–".into(), share)));
    let hidden = field.values.len().saturating_sub(top + room);
    let label = if hidden > 0 { format!("distance (+{hidden})") } else { "distance".into() };
    let far = far.collect::<String>();
    lines.push(Line::from(span(
        format!(" {}{}{far}", pad(&label, named), " ".repeat(own)),
        Meaning::Muted,
        theme,
    )));
    frame.render_widget(Paragraph::new(lines), inner);
}

/// The names of the categories; the one shown is highlighted, and the one on the lanes is named as such.
fn tabs(app: &App, theme: Theme) -> Line<'static> {
    let categories = app.biasing.fields.iter().flat_map(|fields| &fields.categories);
    let one = |(i, field): (usize, &Field)| {
        let meaning = if i == app.biasing.at { Meaning::Selected } else { Meaning::Muted };
        let on = if app.biasing.on_lanes == Some(i) { " (on the lanes)" } else { "" };
        [Span::raw(" "), span(format!("{}{on}", fit(&safe::line(&field.name), 24)), meaning, theme)]
    };
    // If they do not all fit, the one shown must.
    Line::from(
        categories.enumerate().skip(app.biasing.at.saturating_sub(2)).flat_map(one).collect::<Vec<_>>(),
    )
}

/// `.40 +1.2↑ 10`: the share, how much over or under the corpus, and how many passages.
fn cell(theme: Theme, standing: Standing) -> Vec<Span<'static>> {
    let part = standing.top_share().map_or_else(|| "–".into(), share);
    let (over, meaning) = match standing.over() {
        None => ("–".to_owned(), Meaning::Muted),
        // No sign before a zero.
        Some(over) if over >= MARKED => (format!("{over:+.1}↑"), Meaning::Over),
        Some(over) if over <= -MARKED => (format!("{over:+.1}↓"), Meaning::Under),
        Some(over) => (format!("{:+.1}=", (over * 10.0).round() / 10.0 + 0.0), Meaning::Muted),
    };
    let count = format!(" {}", standing.top);
    let pad = " ".repeat(LANE.saturating_sub(4 + columns_of(&over) + count.len()));
    vec![Span::raw(format!("{part:<4}")), span(over, meaning, theme), Span::raw(count), Span::raw(pad)]
}

/// Draws the matrix of the lane under the cursor: one row per value that questions ask for, one column per value retrieved.
fn draw_matrix(app: &App, theme: Theme, field: &Field, rows: &[Crossed], area: Rect, frame: &mut Frame<'_>) {
    let lane = app.lanes.get(app.lane).map_or_else(String::new, |lane| lane.recipe.title());
    let title = fit(&safe::line(&lane), usize::from(area.width).saturating_sub(32));
    let inner = draw_border(theme, format!(" asked for × retrieved · {title} "), area, frame);
    let fits = usize::from(inner.width).saturating_sub(NAME + 6 + RETRIEVED) / RETRIEVED;
    let columns: Vec<usize> = rows.iter().map(|row| row.desired).take(fits).collect();
    let value = |place: usize| field.values.get(place).map_or("", |(value, _)| value.as_str());
    let mut head = vec![span(format!(" {:<NAME$}{:<5}", "asked for", "n"), Meaning::Muted, theme)];
    head.extend(columns.iter().map(|at| span(pad(value(*at), RETRIEVED), value_meaning(field, *at), theme)));
    head.push(span("others", Meaning::Muted, theme));
    let mut lines = vec![Line::from(head)];
    let tall = if rows.len() * 2 < usize::from(inner.height) { 2 } else { 1 };
    for row in rows {
        let all: usize = row.retrieved.iter().sum();
        let part = |count: usize| (all > 0).then(|| count as f64 / all as f64);
        let mut spans = vec![
            Span::raw(" "),
            span(pad(value(row.desired), NAME), value_meaning(field, row.desired), theme),
            span(format!("{:<5}", row.questions.len()), Meaning::Muted, theme),
        ];
        let mut others = all;
        for at in &columns {
            let count = row.retrieved.get(*at).copied().unwrap_or(0);
            others -= count;
            spans.extend(heat_cell(theme, part(count), RETRIEVED, *at == row.desired));
        }
        spans.extend(heat_cell(theme, part(others), RETRIEVED, false));
        // Where there is room, a cell is a block and not a line.
        let blank = |span: &Span<'static>| Span::styled(" ".repeat(columns_of(&span.content)), span.style);
        let below = Line::from(spans.iter().map(blank).collect::<Vec<_>>());
        lines.push(Line::from(spans));
        lines.extend((tall > 1).then_some(below));
    }
    frame.render_widget(Paragraph::new(lines), inner);
}
