//! A lane in all forms of one switch: their figures on the left, what the marked form did on the right.

mod did;
mod inspector;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph};

use super::span;
use crate::pipeline::recipe::{Mmr, Project, Rerank, Switch, Toward};
use crate::pipeline::{Recipe, Tally};
use crate::report::marks::{Mark, share};
use crate::report::safe;
use crate::tui::app::App;
use crate::tui::theme::{Meaning, Theme};
use crate::tui::update::tuning::SWITCHES;
use crate::tui::wrap::{columns_of, fit};

/// Columns of a form's name.
const NAME: usize = 17;
/// The same where the shares of the sides have no room.
const NAME_NARROW: usize = 12;
/// Columns of the table of forms.
const TABLE: u16 = 60;
/// Columns below which the switches have short names.
const NARROW: u16 = 60;

/// Draws the screen.
pub fn draw(app: &App, theme: Theme, body: Rect, frame: &mut Frame<'_>) {
    let tabs = Rect { height: body.height.min(1), ..body };
    frame.render_widget(names(app, theme, tabs.width), tabs);
    let rest = Rect { y: body.y + tabs.height, height: body.height - tabs.height, ..body };
    // Where both do not fit side by side, what the form did stands below.
    let beside = rest.width >= TABLE + 30;
    let rows = (app.tuning.forms.len() as u16 + 3).min(rest.height);
    let (table, did) = if !beside && !did::has_something(app, Rect { height: rest.height / 2, ..rest }) {
        (rest, Rect::ZERO)
    } else if beside {
        let right = Rect { x: rest.x + TABLE, width: rest.width - TABLE, ..rest };
        (Rect { width: TABLE, ..rest }, right)
    } else {
        let rows = rows.min(rest.height.div_ceil(2));
        (Rect { height: rows, ..rest }, Rect { y: rest.y + rows, height: rest.height - rows, ..rest })
    };
    forms(app, theme, table, frame);
    if !did.is_empty() {
        did::draw(app, theme, did, frame);
    }
}

fn names(app: &App, theme: Theme, width: u16) -> Line<'static> {
    if let Some(typed) = &app.tuning.typed {
        return Line::from(vec![
            span(" project toward: ", Meaning::Title, theme),
            span(safe::line(typed.value()), Meaning::Text, theme),
            span("▏", Meaning::Focus, theme),
        ]);
    }
    let lane = app.lanes.get(app.lane).map_or_else(String::new, |lane| lane.recipe.to_string());
    let mut spans = vec![Span::raw(" ")];
    for switch in SWITCHES {
        let meaning = if switch == app.tuning.switch { Meaning::Selected } else { Meaning::Muted };
        spans.extend([span(format!(" {} ", name(switch, width < NARROW)), meaning, theme), Span::raw(" ")]);
    }
    spans.push(span(format!("  {}", safe::line(&lane)), Meaning::Title, theme));
    Line::from(spans)
}

fn name(switch: Switch, narrow: bool) -> &'static str {
    match switch {
        Switch::Mmr => "MMR",
        Switch::Expand if narrow => "expand",
        Switch::Project if narrow => "project",
        Switch::Diversify if narrow => "diversify",
        Switch::Expand => "expansion",
        Switch::Project => "projection",
        Switch::Diversify => "diversifier",
    }
}

fn forms(app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
    let tuning = &app.tuning;
    let over = if tuning.over_set { "over the question set" } else { "on this question" };
    let going = if tuning.ended { "" } else { " …" };
    let block = Block::bordered().border_style(theme.style(Meaning::Focus)).title(span(
        format!(" {over}{going} "),
        Meaning::Title,
        theme,
    ));
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let (recall, prec) = (format!("MRecall@{}", app.k), format!("Prec@{}", app.k));
    let shares = "share of each";
    let questions = if tuning.over_set { "of" } else { "" };
    let narrow = inner.width < TABLE - 2;
    let head = match narrow {
        true => format!("   {:<NAME_NARROW$}{recall:<11}{prec:<8}{questions}", ""),
        false => format!("   {:<NAME$}{recall:<12}{prec:<9}{shares:<15}{questions}", ""),
    };
    let mut lines = vec![Line::from(span(head, Meaning::Muted, theme))];
    let shown = usize::from(inner.height).saturating_sub(1).max(1);
    let first = (tuning.at + 1).saturating_sub(shown);
    for (i, form) in tuning.forms.iter().enumerate().skip(first) {
        let tally = tuning.tallies.as_ref().ok().and_then(|tallies| tallies.get(i));
        lines.push(row(app, theme, form, tally, i == tuning.at, narrow));
    }
    if let Err(reason) = &tuning.tallies {
        lines.push(Line::from(span(safe::line(reason), Meaning::Warn, theme)));
    }
    frame.render_widget(Paragraph::new(lines), inner);
}

/// `▸ λ .75   .42   .60   ▲.30 ▼.20   24`
fn row(
    app: &App,
    theme: Theme,
    form: &Recipe,
    tally: Option<&Tally>,
    marked: bool,
    narrow: bool,
) -> Line<'static> {
    let named = if narrow { NAME_NARROW } else { NAME };
    let name = fit(&safe::line(&label(form, app.tuning.switch)), named - 1);
    let pad = " ".repeat(named - columns_of(&name));
    let meaning = if marked { Meaning::Selected } else { Meaning::Text };
    let mut spans =
        vec![Span::raw(if marked { " > " } else { "   " }), span(name, meaning, theme), Span::raw(pad)];
    let Some(tally) = tally.filter(|tally| tally.questions + tally.failed > 0) else {
        spans.push(span("…", Meaning::Muted, theme));
        return Line::from(spans);
    };
    let figure = |value: Option<f64>| value.map_or_else(|| "–".into(), share);
    let (recall, prec) = (figure(tally.mrecall()), figure(tally.prec()));
    spans.push(Span::raw(match narrow {
        true => format!("{recall:<11}{prec:<8}"),
        false => format!("{recall:<12}{prec:<9}"),
    }));
    if let Some((p, n)) = tally.sides().filter(|_| !narrow) {
        for (mark, value) in [(Mark::Support, p), (Mark::Oppose, n)] {
            let text = format!("{}{}", mark.text(app.glyphs), share(value));
            spans.push(span(format!("{text:<6}"), Meaning::Side(mark), theme));
        }
        spans.push(Span::raw("   "));
    }
    if app.tuning.over_set {
        spans.push(span(tally.questions.to_string(), Meaning::Muted, theme));
    }
    if tally.failed > 0 {
        spans.push(span(format!(" {} failed", tally.failed), Meaning::Warn, theme));
    }
    Line::from(spans)
}

/// What a form does to the lane, in a word.
fn label(form: &Recipe, switch: Switch) -> String {
    let on = &form.switches;
    match (switch, on.rerank) {
        (Switch::Mmr, Some(Rerank::Mmr(Mmr { lambda, .. }))) => format!("λ {}", share(f64::from(lambda))),
        (Switch::Diversify, Some(Rerank::Diversify(method, weight))) => {
            format!("{method} {}", share(f64::from(weight)))
        }
        (Switch::Diversify, Some(Rerank::Mmr(Mmr { lambda, .. }))) => {
            format!("MMR {}", share(f64::from(lambda)))
        }
        (Switch::Mmr, Some(Rerank::Diversify(method, weight))) => {
            format!("{method} {}", share(f64::from(weight)))
        }
        (Switch::Expand, _) if on.expand.is_some() => {
            on.expand.map_or_else(String::new, |kind| kind.to_string())
        }
        (Switch::Project, _) if on.project.is_some() => match &on.project {
            Some(Project { variant, toward: Toward::Perspective(i) }) => format!("{variant} → {}", i + 1),
            Some(Project { variant, toward: Toward::Text(text) }) => format!("{variant} → “{text}”"),
            None => String::new(),
        },
        _ => "off".into(),
    }
}
