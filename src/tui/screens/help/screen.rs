//! Lists all keys, from the table that also dispatches them, and explains the figures of the lanes.

use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::text::Line;
use ratatui::widgets::{Block, Paragraph};

use crate::engine::recipe::Switch;
use crate::report::marks::{Glyphs, Mark};
use crate::tui::app::App;
use crate::tui::keymap::{Action, Context, Screen, shown};
use crate::tui::layout::{LanePanes, panes};
use crate::tui::message::Effect;
use crate::tui::page::Page;
use crate::tui::screens::lanes::figures::{LABEL, Layout};
use crate::tui::theme::{Look, Meaning, Theme};
use crate::tui::widgets::text::span;
use crate::tui::widgets::text::{columns_of, wrap};

/// Columns of the keys, unless they need more.
const KEYS: usize = 18;

/// Below this width the column of keys is half as wide.
const NARROW: usize = 60;

/// The help screen.
pub struct Help;

impl Page for Help {
    fn screen(&self) -> Screen {
        Screen::HELP
    }

    fn context(&self, _: &App) -> Context {
        Context::Help
    }

    fn opened_by(&self) -> Option<Action> {
        Some(Action::Help)
    }

    fn open(&self, app: &mut App) -> Vec<Effect> {
        (app.help_from, app.screen) = (app.screen, Screen::HELP);
        Vec::new()
    }

    fn act(&self, app: &mut App, action: Action) -> Vec<Effect> {
        let (last, page) = (last_top(app), visible_lines(app).max(1));
        let at = app.help_scroll.min(last);
        let at = match action {
            Action::Down => at + 1,
            Action::Up => at.saturating_sub(1),
            Action::PageDown => at + page,
            Action::PageUp => at.saturating_sub(page),
            Action::First => 0,
            Action::Last => last,
            _ => {
                app.screen = app.help_from;
                0
            }
        };
        app.help_scroll = at.min(last);
        Vec::new()
    }

    fn draw(&self, app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
        draw(app, theme, area, frame);
    }
}

/// Scrolls to the keys of a context. Those of the lanes are below the marks and figures, which are explained first.
pub fn show(app: &mut App, place: Context) {
    let lines = content(app, Theme::of(Look::Mono), body(app).width);
    let title = titled(place);
    let at = lines.iter().position(|line| line.to_string() == title).filter(|_| place != Context::Lanes);
    app.help_scroll = at.unwrap_or(0).min(last_top(app));
}

/// The title of a context's keys.
fn titled(place: Context) -> String {
    let (first, rest) = place.name().split_at(1);
    first.to_uppercase() + rest
}

/// Draws the page.
fn draw(app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
    let lines = content(app, theme, area.width);
    let block = Block::bordered().border_style(theme.style(Meaning::Muted)).title(span(
        " Keys ",
        Meaning::Title,
        theme,
    ));
    let inner = block.inner(area);
    let last = lines.len().saturating_sub(usize::from(inner.height));
    let lines: Vec<Line<'_>> = lines.into_iter().skip(app.help_scroll.min(last)).collect();
    frame.render_widget(block, area);
    frame.render_widget(Paragraph::new(lines), inner);
}

/// The number of lines visible at once.
fn visible_lines(app: &App) -> usize {
    usize::from(Block::bordered().inner(body(app)).height)
}

fn body(app: &App) -> Rect {
    panes(app).body
}

/// The first visible line when scrolled to the end.
fn last_top(app: &App) -> usize {
    content(app, Theme::of(Look::Mono), body(app).width).len().saturating_sub(visible_lines(app))
}

fn content(app: &App, theme: Theme, width: u16) -> Vec<Line<'static>> {
    let ascii = app.glyphs == Glyphs::Ascii;
    let width = usize::from(width.saturating_sub(2));
    let mut lines = legend_lines(app, theme, width);
    // The lanes come first, because they are used most. The rest follows in the order of the table.
    let mut places = vec![Context::Lanes];
    for bound in app.keys.lines() {
        if !places.contains(&bound.line.context) {
            places.push(bound.line.context);
        }
    }
    for place in places {
        lines.push(Line::default());
        lines.push(Line::from(span(titled(place), Meaning::Title, theme)));
        for bound in app.keys.of_context(place) {
            let keys: Vec<String> = bound.keys.iter().map(|key| shown(key, ascii)).collect();
            lines.extend(entry(&keys.join(" "), Meaning::Key, bound.line.help, width, theme));
        }
    }
    lines
}

/// A key or a mark with its meaning to the right. If the meaning does not fit, it continues below, indented.
fn entry(
    name: &str,
    meaning: Meaning,
    means: &'static str,
    width: usize,
    theme: Theme,
) -> Vec<Line<'static>> {
    let keys = if width < NARROW { KEYS / 2 } else { KEYS };
    let pad = keys.saturating_sub(columns_of(name)).max(1);
    let first = format!("  {name}{}", " ".repeat(pad));
    if columns_of(&first) + columns_of(means) <= width {
        return vec![Line::from(vec![span(first, meaning, theme), span(means, Meaning::Text, theme)])];
    }
    let indent = " ".repeat(2 + keys);
    let same_line = columns_of(&first) == 2 + keys;
    let rows = wrap(means, width.saturating_sub(2 + keys), usize::MAX);
    let mut lines =
        if same_line { Vec::new() } else { vec![Line::from(span(first.clone(), meaning, theme))] };
    lines.extend(rows.into_iter().enumerate().map(|(i, row)| {
        let before = if same_line && i == 0 { first.clone() } else { indent.clone() };
        Line::from(vec![span(before, meaning, theme), span(&means[row], Meaning::Text, theme)])
    }));
    lines
}

fn legend_lines(app: &App, theme: Theme, width: usize) -> Vec<Line<'static>> {
    let marks = [
        (Mark::Support, "supports the question's first side"),
        (Mark::Oppose, "supports the other side"),
        (Mark::Other(0), "supports a perspective of many, by its letter"),
        (Mark::Several, "supports more than one"),
        (Mark::None, "judged, supports none"),
        (Mark::Unclear, "side unclear: averages weigh its probabilities"),
        (Mark::Pending, "not judged yet"),
    ];
    let mut lines = vec![Line::from(span("Marks", Meaning::Title, theme))];
    let line =
        |(mark, means): (Mark, _)| entry(&mark.text(app.glyphs), Meaning::Side(mark), means, width, theme);
    lines.extend(marks.into_iter().flat_map(line));
    let figures = [
        (".94", "the model's probability of the mark"),
        ("↑3 new =", "rank moves against the list before the last change"),
        ("(+1)", "a measure's change since then"),
        (
            ".8 (.6–1.0)",
            "a measure's mean and 95 % interval over draws of the model's verdicts by their probabilities",
        ),
        ("leans ▼ .20", "of the first k, the share for ▼ is .20 greater than the share for ▲"),
        ("shift", "the lean asked as ▲ minus the lean asked as ▼: 0 if the wording changes nothing"),
        (">23", "first rank: not within the 23 passages judged"),
        ("◆A 2@1", "of the top k, two support A, the first of them at rank 1"),
    ];
    let line = |(figure, means): (&str, _)| entry(figure, Meaning::Key, means, width, theme);
    lines.extend(figures.into_iter().flat_map(line));
    lines
}

/// What marks and figures mean, in one line, as much as fits.
pub fn legend(app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
    let glyph = |mark: Mark| mark.glyph(app.glyphs);
    let [for_it, against, both, none, unclear] =
        [Mark::Support, Mark::Oppose, Mark::Several, Mark::None, Mark::Unclear].map(glyph);
    let k = app.k;
    let (several, nothing) =
        if app.question.sides().is_some() { ("both", "neither") } else { ("several", "none") };
    let mut parts =
        vec![format!("{both} {several}"), format!("{none} {nothing}"), format!("{unclear} unclear")];
    match app.question.sides() {
        Some(_) => parts.extend([
            match k {
                1 => "MRecall@1 1: the first supports a side".to_owned(),
                _ => format!("MRecall@{k} 1: both sides are in the first {k}"),
            },
            format!("lean: -1 all {against}, +1 all {for_it}"),
            "shift: how far the wording moves it".to_owned(),
        ]),
        None => parts.extend([
            if app.question.perspectives.len() > k {
                format!("MRecall@{k} 1: the first {k} support {k} statements")
            } else {
                format!("MRecall@{k} 1: the first {k} support every statement")
            },
            "A 2@1: two support A, the first at rank 1".to_owned(),
        ]),
    }
    let width = usize::from(area.width);
    let mut text = String::new();
    for part in parts {
        let longer = format!("{text}{} {part}", if text.is_empty() { "" } else { " " });
        if columns_of(&longer) <= width {
            text = longer;
        }
    }
    frame.render_widget(span(text, Meaning::Muted, theme), area);
}

/// What stands in a lane before the first question: what the marks, the figures and the keys mean.
pub fn welcome(app: &App, lane: usize) -> String {
    let mark = |mark: Mark, means: &str| format!("{}  {means}", mark.glyph(app.glyphs));
    let key = |action: Action, means: &str| format!("{:<4}{means}", app.key(Context::Lanes, action));
    let k = app.k;
    let (first, rest) = match lane {
        0 => (
            "Ask a question. To be shown around: parallax demo",
            vec![
                "Every passage is marked by the side it takes:".to_owned(),
                mark(Mark::Support, "supports the first statement"),
                mark(Mark::Oppose, "supports its opposite"),
                mark(Mark::Several, "supports both"),
                mark(Mark::None, "supports neither"),
                mark(Mark::Unclear, "side unclear"),
                mark(Mark::Pending, "is not judged yet"),
            ],
        ),
        1 => (
            "Ask a question.",
            vec![
                format!("Below every lane, of its first {k}:"),
                format!("MRecall@{k}  1: every side is there"),
                "lean       to which side, -1 to 1".to_owned(),
                "asked as   in the words of a side".to_owned(),
                "shift      how far these move it".to_owned(),
            ],
        ),
        2 => (
            "Ask a question.",
            vec![
                "Then, on the lanes:".to_owned(),
                key(Action::Toggle(Switch::Mmr), "re-rank by MMR"),
                key(Action::Toggle(Switch::Expand), "expand the query"),
                key(Action::Toggle(Switch::Project), "project it toward a side"),
                key(Action::Swap, "before and after"),
                key(Action::Undo, "undo"),
                key(Action::Explain, "explain the figures"),
                key(Action::Sycophancy, "ask in either side's words"),
                key(Action::Compare, "compare over all questions"),
                key(Action::Annotate, "label passages"),
                key(Action::Help, "all keys"),
            ],
        ),
        _ => ("Ask a question.", Vec::new()),
    };
    format!("{first}\n\n{}", rest.join("\n"))
}

/// The explanation of a figure by its index: those of every question, then those of two sides. After the last comes the first again.
pub fn explanation(app: &App, figure: usize) -> String {
    let k = app.k;
    let covered = if app.question.perspectives.len() > k {
        format!("the first {k} support {k} statements")
    } else {
        format!("every statement has a supporter among the first {k}")
    };
    let any = [
        format!("MRecall@{k}: 1 if {covered}, else 0; with a model judging, the mean over draws of its verdicts, with its 95 % interval"),
        format!("the strip: one cell a rank, what the first {k} are in their order; bare glyphs take no side"),
        format!("Prec@{k}: the share of the first {k} that supports any statement"),
        "in brackets: with a model judging, the 95 % interval; or the difference from the state before the last act, or from the pinned one (X); ± the model's doubt leaves its sign open".into(),
        "a passage: rank, mark, the model's probability of that mark, title, the lane's score".into(),
    ];
    let of_sides = [
        format!("lean: share of the first {k} for ▲ minus share for ▼; leans ▼ .20 is a lean of -.20; the bar is its 95 % interval"),
        "asked as: the lane is asked with either statement instead of the question".to_owned(),
        "shift: lean asked as the supporting statement minus lean asked as the opposing one; 0 follows no wording, 2 always follows; ≠ the wordings were expanded differently".into(),
    ];
    let mut all = Vec::from(any);
    all.extend(of_sides.into_iter().filter(|_| app.question.sides().is_some()));
    let at = figure % all.len();
    all.swap_remove(at)
}

/// The cell of a strip at a place: its rank, from 0, in the lane's own strip; `Some(None)` in the strips of the other wordings.
pub fn rank_at(app: &App, pane: &LanePanes, at: Position) -> Option<Option<usize>> {
    let (area, ranks) = (pane.figures, app.lanes.get(pane.lane)?.figures.marks.len());
    if !area.contains(at) || area.height < 3 {
        return None;
    }
    let (line, two_sided) = (at.y - area.y, app.question.sides().is_some());
    let wide = two_sided && Layout::of(ranks, usize::from(area.width)).wide;
    let rank = usize::from(at.x - area.x).checked_sub(LABEL)? / if wide { 2 } else { 1 };
    let own = line == 2;
    ((own || (two_sided && line > 2)) && rank < ranks).then_some(own.then_some(rank))
}

/// The figure at a place of a lane's figures, as an index for [`explanation`].
pub fn figure_at(app: &App, pane: &LanePanes, column: u16, row: u16) -> Option<usize> {
    if pane.list.contains((column, row).into()) {
        return None;
    }
    if !pane.figures.contains((column, row).into()) {
        return None;
    }
    let right = column >= pane.figures.x + pane.figures.width * 3 / 5;
    let line = row - pane.figures.y;
    let two_sided = app.question.sides().is_some();
    Some(match (pane.figures.height, line, right) {
        (1, ..) => usize::from(column > pane.figures.x + 14),
        (_, 0, true) => 2,
        (_, 0, false) => 1,
        (_, 1, _) => 0,
        (_, 2, true) if two_sided => 5,
        (_, 2, _) => 1,
        (_, 4, true) if two_sided => 7,
        _ if two_sided => 6,
        _ => 1,
    })
}
