//! A lane's figures: what its first k are, what is missing, MRecall, and the strips and gauges of its three wordings.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Modifier;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::LaneFigures;
use crate::engine::{Doubt, Figures, FirstRank};
use crate::measure::uncertainty::Spread;
use crate::report::marks::{Mark, share, signed};
use crate::tui::app::{App, Lane, LaneState};
use crate::tui::layout::LanePanes;
use crate::tui::theme::{Meaning, Theme};
use crate::tui::widgets::text::{columns_of, fit, span};

/// Draws the figures of one lane.
pub fn draw(app: &App, theme: Theme, pane: &LanePanes, lane: &Lane, frame: &mut Frame<'_>) {
    let area = pane.figures;
    if area.height == 0 || lane.state != LaneState::Ready {
        return;
    }
    let Some(figures) = &lane.figures.now else { return };
    let width = usize::from(area.width);
    if area.height == 1 {
        frame.render_widget(Paragraph::new(compact(app, theme, &lane.figures, figures, width)), area);
        return;
    }
    let rule = Rect { y: area.y.saturating_sub(1), height: 1, ..area };
    frame.render_widget(span("─".repeat(width), Meaning::Muted, theme), rule);
    let mut lines = vec![
        sentence(app, theme, &lane.figures, figures, width),
        missing(app, theme, &lane.figures, figures, width),
    ];
    if figures.sides.is_some() {
        let layout = Layout::of(lane.figures.marks.len(), width);
        lines.push(question_line(app, theme, &lane.figures, figures, layout));
        lines.extend((0..2).map(|side| reworded_line(app, theme, lane, side, layout)));
    } else {
        let strip = cells(app, theme, &lane.figures.marks, width.saturating_sub(LABEL), false);
        lines.push(Line::from([vec![label("question", theme)], strip].concat()));
        lines.extend(per_perspective(app, theme, figures, width));
    }
    lines.truncate(usize::from(area.height));
    frame.render_widget(Paragraph::new(lines), area);
}

/// Columns of the wording before a strip.
pub const LABEL: usize = 11;

fn label(text: &str, theme: Theme) -> Span<'static> {
    span(format!("{text:<LABEL$}"), Meaning::Muted, theme)
}

fn width_of(spans: &[Span<'_>]) -> usize {
    spans.iter().map(|span| columns_of(&span.content)).sum()
}

/// A line whose right part ends at the border. The left part gives way.
fn ends(mut left: Vec<Span<'static>>, right: Vec<Span<'static>>, width: usize) -> Line<'static> {
    let room = width.saturating_sub(width_of(&right));
    let mut used = 0;
    left.retain_mut(|span| {
        let columns = columns_of(&span.content);
        if used + columns > room.saturating_sub(1) {
            span.content = fit(&span.content, room.saturating_sub(used + 1)).into();
        }
        used += columns_of(&span.content);
        !span.content.is_empty()
    });
    left.push(Span::raw(" ".repeat(room.saturating_sub(used))));
    left.extend(right);
    Line::from(left)
}

/// The counts of the first k in words: `0 support · 2 oppose · 2 neither · 1 unclear`; or with marks: `0▲ · 2▼ · 2○ · 1◇`
pub fn counts(app: &App, marks: &[Mark], theme: Theme, brief: bool) -> Vec<Span<'static>> {
    let count = |wanted: Mark| marks.iter().filter(|mark| **mark == wanted).count();
    let many = app.question.sides().is_none();
    let mut parts: Vec<(usize, &str, Mark)> = Vec::new();
    if many {
        let one = marks.iter().filter(|mark| matches!(mark, Mark::Other(_))).count();
        parts.push((one, "for one", Mark::None));
    } else {
        parts.push((count(Mark::Support), "support", Mark::Support));
        parts.push((count(Mark::Oppose), "oppose", Mark::Oppose));
    }
    let others = [
        (if many { "for several" } else { "both" }, Mark::Several),
        (if many { "for none" } else { "neither" }, Mark::None),
        ("unclear", Mark::Unclear),
        ("not judged", Mark::Pending),
    ];
    parts.extend(others.map(|(word, mark)| (count(mark), word, mark)).into_iter().filter(|part| part.0 > 0));
    let mut spans = Vec::new();
    for (i, (count, word, mark)) in parts.into_iter().enumerate() {
        if i > 0 {
            spans.push(span(" · ", Meaning::Muted, theme));
        }
        let meaning = if matches!(mark, Mark::Support | Mark::Oppose) && count > 0 {
            Meaning::Side(mark)
        } else {
            Meaning::Text
        };
        let text = if brief && !(many && word == "for one") {
            format!("{count}{}", mark.glyph(app.glyphs))
        } else {
            format!("{count} {word}")
        };
        spans.push(span(text, meaning, theme));
    }
    spans
}

/// The sentence, and on the right Prec@k, or how much is judged.
fn sentence(app: &App, theme: Theme, lane: &LaneFigures, figures: &Figures, width: usize) -> Line<'static> {
    let right = if figures.complete() && figures.is_measured() {
        let mean = lane.doubt.map_or(figures.prec, |doubt| doubt.prec.mean);
        let difference = lane.change.as_ref().map(|change| (change.prec, change.gap.map(|gap| gap.prec)));
        let mut spans = vec![span(format!("Prec@{} {}", figures.k, share(mean)), Meaning::Muted, theme)];
        spans.extend(change_span(difference, |by| signed(by).trim().to_owned(), theme));
        spans
    } else {
        vec![span(format!("{}/{} judged", figures.judged, figures.returned), Meaning::Warn, theme)]
    };
    let [in_words, brief] = [false, true].map(|brief| counts(app, &lane.marks, theme, brief));
    let left = if width_of(&in_words) + 1 + width_of(&right) > width { brief } else { in_words };
    let right = if width_of(&left) + 1 + width_of(&right) > width { Vec::new() } else { right };
    ends(left, right, width)
}

/// Whether a side that no verdict supports is there with a probability of .2 or more, by the model.
fn is_doubtful(app: &App, lane: &LaneFigures, side: usize) -> bool {
    let Some(inputs) = lane.inputs.as_ref().filter(|_| lane.doubt.is_some()) else { return false };
    let top = inputs.list.iter().take(app.k);
    let chances = top.filter_map(|ranked| app.judgments.chances(ranked.at));
    1.0 - chances.map(|chances| 1.0 - chances.mean(side)).product::<f64>() >= 0.2
}

/// What is missing in words, longest form first.
pub fn missing_forms(app: &App, lane: &LaneFigures, figures: &Figures) -> Vec<Vec<(String, Option<Mark>)>> {
    let at = |i: usize| figures.first.get(i).copied().unwrap_or(FirstRank::Below(0));
    let covered = |i: &usize| figures.covered.contains(*i);
    let text = |i: usize| Mark::of(i, &app.question).text(app.glyphs);
    let part = |i: usize, words: String| (words, Some(Mark::of(i, &app.question)));
    let plain = |words: &str| (words.to_owned(), None);
    let Some(sides) = app.question.sides() else {
        let all: Vec<usize> = (0..app.question.perspectives.len()).collect();
        let (there, gone): (Vec<usize>, Vec<usize>) = all.into_iter().partition(covered);
        let of = format!("{} of {}", there.len(), there.len() + gone.len());
        if gone.is_empty() {
            return vec![vec![plain(&format!("{of} statements"))], vec![plain(&of)]];
        }
        // Labels that were made without a statement say nothing about it.
        let unknown: Vec<usize> = gone.iter().copied().filter(|i| !is_judged(app, *i)).collect();
        let (lack, of_them) = if unknown.is_empty() { ("missing", gone) } else { ("not judged", unknown) };
        let names = of_them.into_iter().map(text).collect::<Vec<_>>().join(" ");
        return vec![
            vec![plain(&format!("{of} statements, {lack} {names}"))],
            vec![plain(&format!("{of}, {lack} {names}"))],
            vec![plain(&format!("{of} statements"))],
            vec![plain(&of)],
        ];
    };
    let gone: Vec<usize> = sides.into_iter().filter(|i| !covered(i)).collect();
    if let Some(side) = unlabelled(app, figures) {
        return vec![
            vec![part(side, format!("{} has no labels", text(side)))],
            vec![part(side, format!("{} unlabelled", text(side)))],
        ];
    }
    // A passage that is unclear may take that side, and so may one whose verdict is wrong.
    let unclear = figures.unclear > 0 || gone.iter().any(|side| is_doubtful(app, lane, *side));
    let found = |i: usize| first_rank_text(at(i));
    let later = |i: usize| match at(i) {
        FirstRank::At(rank) => format!(": first at rank {rank}"),
        FirstRank::Below(judged) if judged > figures.k && app.settled => format!(" down to rank {judged}"),
        FirstRank::Below(judged) if judged > figures.k => format!(": not down to rank {judged}"),
        FirstRank::Below(_) => String::new(),
    };
    match gone.as_slice() {
        [] => {
            let ranks = |i: usize| part(i, format!("{} at {}", text(i), found(i)));
            let [first, other] = sides;
            vec![
                vec![plain("both sides are there: "), ranks(first), plain(", "), ranks(other)],
                vec![plain("first "), ranks(first), plain(", "), ranks(other)],
                vec![plain("both sides")],
            ]
        }
        [one] if unclear => {
            let whole = format!("{} may be missing", text(*one));
            vec![
                vec![part(*one, whole.clone()), plain(&later(*one))],
                vec![part(*one, whole)],
                vec![part(*one, format!("maybe no {}", text(*one)))],
            ]
        }
        [one] => vec![
            vec![part(*one, format!("{} is missing", text(*one))), plain(&later(*one))],
            vec![part(*one, format!("{} missing", text(*one))), plain(&later(*one))],
            vec![part(*one, format!("{} is missing", text(*one)))],
            vec![part(*one, format!("no {}", text(*one)))],
        ],
        _ => {
            let [first, other] = sides.map(|i| part(i, text(i)));
            let (whole, short) = if unclear {
                ("both sides may be missing", vec![plain("maybe no "), first, plain(" "), other])
            } else {
                ("both sides are missing", vec![plain("no "), first, plain(", no "), other])
            };
            vec![vec![plain(whole)], short]
        }
    }
}

/// Of two sides, one on which no passage of a lane that found some has a label or a verdict: whether it is covered, and to which side the
/// lane leans, is unknown.
fn unlabelled(app: &App, figures: &Figures) -> Option<usize> {
    let known = |i: usize| figures.covered.contains(i) || is_judged(app, i);
    app.question.sides()?.into_iter().find(|i| figures.returned > 0 && figures.is_measured() && !known(*i))
}

/// Whether any listed passage has a label or a verdict on this statement.
fn is_judged(app: &App, statement: usize) -> bool {
    let listed = app.lanes.iter().flat_map(|lane| lane.ranking.iter());
    listed
        .filter_map(|ranked| app.judgments.pair(ranked.at, statement))
        .any(|pair| pair.is_labelled() || pair.model.is_some())
}

/// What is missing, and MRecall.
fn missing(app: &App, theme: Theme, lane: &LaneFigures, figures: &Figures, width: usize) -> Line<'static> {
    let shortest = missing_forms(app, lane, figures).last().map_or(0, |form| columns(form));
    let right = recall(app, theme, lane, figures, width.saturating_sub(shortest + 1));
    let room = width.saturating_sub(width_of(&right) + 1);
    let forms = missing_forms(app, lane, figures);
    let open = !figures.is_measured() || (figures.mrecall < 1.0 && !figures.complete());
    let form = forms.iter().find(|form| columns(form) <= room).or(forms.last()).filter(|_| !open);
    let meaning = |mark: &Option<Mark>| mark.map_or(Meaning::Text, Meaning::Side);
    let left = form.into_iter().flatten().map(|(words, mark)| span(words.clone(), meaning(mark), theme));
    ends(left.collect(), right, width)
}

fn columns(form: &[(String, Option<Mark>)]) -> usize {
    form.iter().map(|(words, _)| columns_of(words)).sum()
}

/// `MRecall@5 1 (+1)`, or if a model judged, mean and interval: `MRecall@5 .93 (.00–1.0)`
fn recall(app: &App, theme: Theme, lane: &LaneFigures, figures: &Figures, room: usize) -> Vec<Span<'static>> {
    if unlabelled(app, figures).is_some() {
        return vec![span(format!("MRecall@{} –", figures.k), Meaning::Title, theme)];
    }
    let (change, doubt) = (lane.change.as_ref(), lane.doubt);
    let difference = change.map(|change| (change.mrecall, change.gap.map(|gap| gap.mrecall)));
    let (mean, interval) = match doubt {
        Some(Doubt { mrecall, .. }) => (share(mrecall.mean), Some(interval(mrecall, share))),
        None => (figures.mrecall_text(), None),
    };
    let delta = change_span(difference, change_text, theme);
    let value = span(format!("MRecall@{} {mean}", figures.k), Meaning::Title, theme);
    let with = interval.map(|interval| span(format!(" {interval}"), Meaning::Muted, theme));
    // The change gives way first: a figure that the judge could turn over keeps its interval.
    let forms = [[Some(value.clone()), with.clone(), delta], [Some(value.clone()), with, None]];
    let mut forms = forms.into_iter().map(|form| form.into_iter().flatten().collect::<Vec<_>>());
    forms.find(|spans| width_of(spans) <= room).unwrap_or_else(|| vec![value])
}

/// `+1` from labels to labels, `+.16` where a model judged before or now.
fn change_text(by: f64) -> String {
    if by.fract() == 0.0 { format!("{by:+.0}") } else { signed(by).trim().to_owned() }
}

/// `(.00–1.0)`
fn interval(spread: Spread, format: fn(f64) -> String) -> String {
    let [low, high] = [spread.low, spread.high].map(|x| format(x).trim().to_owned());
    format!("({low}–{high})")
}

/// ` (+1)`: the difference of a measure from the baseline; ` (±)` if the model's doubt leaves its sign open.
fn change_span(
    difference: Option<(f64, Option<Spread>)>,
    text: impl Fn(f64) -> String,
    theme: Theme,
) -> Option<Span<'static>> {
    match difference {
        Some((_, Some(spread))) if spread.holds_zero() && spread.high - spread.low > 0.0 => {
            Some(span(" (±)", Meaning::Muted, theme))
        }
        Some((by, _)) if by.abs() >= 0.005 => Some(span(format!(" ({})", text(by)), Meaning::Warn, theme)),
        _ => None,
    }
}

/// One cell a rank: what the first k are, in their order. As many as fit, with `…` for the rest.
pub fn cells(app: &App, theme: Theme, marks: &[Mark], room: usize, wide: bool) -> Vec<Span<'static>> {
    let each = if wide { 2 } else { 1 };
    let fits = room / each;
    let shown = if marks.len() > fits { fits.saturating_sub(1) } else { marks.len() };
    let mut spans: Vec<Span<'static>> =
        marks[..shown].iter().map(|mark| cell(app, theme, *mark, if wide { " " } else { "" })).collect();
    if shown < marks.len() && fits > 0 {
        spans.push(span("…", Meaning::Muted, theme));
    }
    spans
}

/// A cell of a strip: filled with its side's colour, or the bare glyph of a passage that takes no side.
pub fn cell(app: &App, theme: Theme, mark: Mark, pad: &str) -> Span<'static> {
    let style = theme.style(Meaning::Side(mark));
    let style = match mark {
        Mark::None | Mark::Unclear | Mark::Pending => style,
        _ => style.add_modifier(Modifier::REVERSED),
    };
    Span::styled(format!("{}{pad}", mark.glyph(app.glyphs)), style)
}

/// The columns of a lean gauge, its ends included, and of a narrow one.
const GAUGE: usize = 13;
const NARROW: usize = 9;

/// How the rows of strips and gauges are divided, the same for all of them, so that they can be compared.
#[derive(Clone, Copy)]
pub struct Layout {
    width: usize,
    /// Whether a cell has two columns.
    pub wide: bool,
    /// The columns of a gauge; `None` without room for it.
    gauge: Option<usize>,
}

impl Layout {
    /// The layout for so many ranks in so many columns.
    pub fn of(ranks: usize, width: usize) -> Self {
        let [text, whole] = [" leans ▼ .20 ", " leans ▼ .20 (+.20) "].map(columns_of);
        let fits = |cell: usize, text: usize, gauge: usize| LABEL + cell * ranks + text + gauge <= width;
        let wide = fits(2, whole, NARROW);
        let cell = if wide { 2 } else { 1 };
        let gauge = if fits(cell, whole, GAUGE) { GAUGE } else { NARROW };
        Layout { width, wide, gauge: fits(cell, text, gauge).then_some(gauge) }
    }
}

/// `▼────●┼─────▲`: the lean on an axis with its zero in the middle, and its interval if the model judged.
fn gauge(app: &App, theme: Theme, lean: f64, spread: Option<Spread>, width: usize) -> Vec<Span<'static>> {
    let inner = width.saturating_sub(2).max(1);
    let place = |lean: f64| ((lean.clamp(-1.0, 1.0) + 1.0) / 2.0 * (inner - 1) as f64).round() as usize;
    let dot = place(lean);
    let side = |mark: Mark| span(mark.glyph(app.glyphs).to_string(), Meaning::Side(mark), theme);
    let mut spans = vec![side(Mark::Oppose)];
    for i in 0..inner {
        let within = spread.is_some_and(|spread| (place(spread.low)..=place(spread.high)).contains(&i));
        spans.push(match i {
            _ if i == dot => span("●", Meaning::Title, theme),
            _ if i == inner / 2 => span("┼", if within { Meaning::Text } else { Meaning::Muted }, theme),
            _ if within => span("━", Meaning::Text, theme),
            _ => span("─", Meaning::Muted, theme),
        });
    }
    spans.push(side(Mark::Support));
    spans
}

/// A figure with its difference, if there is room for that, and its gauge.
fn with_gauge(
    mut figure: Vec<Span<'static>>,
    difference: Option<Span<'static>>,
    gauge: Option<Vec<Span<'static>>>,
    room: usize,
) -> Vec<Span<'static>> {
    // What has changed is said before it is drawn.
    let with = width_of(&figure) + difference.as_ref().map_or(0, |by| columns_of(&by.content));
    let gauge = gauge.filter(|gauge| difference.is_none() || with + 1 + width_of(gauge) < room);
    figure.extend(difference.filter(|_| with < room));
    let gap = if figure.is_empty() { "" } else { " " };
    figure.extend(gauge.into_iter().flat_map(|gauge| [vec![Span::raw(gap)], gauge].concat()));
    figure
}

/// `question   ▼○◇○▼   leans ▼ .20 ▼──●─┼────▲`
fn question_line(
    app: &App,
    theme: Theme,
    lane: &LaneFigures,
    figures: &Figures,
    Layout { width, wide, gauge: columns }: Layout,
) -> Line<'static> {
    let strip = cells(app, theme, &lane.marks, width.saturating_sub(LABEL), wide);
    let left = [vec![label("question", theme)], strip].concat();
    let spread = lane.doubt.and_then(|doubt| doubt.lean);
    let lean =
        spread.map(|spread| spread.mean).or(figures.lean()).filter(|_| unlabelled(app, figures).is_none());
    let Some(lean) = lean else { return Line::from(left) };
    let change = lane.change.as_ref();
    let difference = change.and_then(|change| Some((change.lean?, change.gap.and_then(|gap| gap.lean))));
    let delta = change_span(difference, |by| signed(by).trim().to_owned(), theme);
    let gauge = columns.map(|columns| gauge(app, theme, lean, spread, columns));
    let room = width.saturating_sub(width_of(&left));
    ends(left, with_gauge(leaning(app, theme, lean), delta, gauge, room), width)
}

/// `leans ▼ .20`, or `balanced`: which side a lean favours, in words.
fn leaning(app: &App, theme: Theme, lean: f64) -> Vec<Span<'static>> {
    let favoured = if lean < 0.0 { Mark::Oppose } else { Mark::Support };
    match share(lean.abs()).as_str() {
        ".00" => vec![span("balanced", Meaning::Text, theme)],
        by => vec![
            span("leans ", Meaning::Text, theme),
            span(format!("{} {by}", favoured.glyph(app.glyphs)), Meaning::Side(favoured), theme),
        ],
    }
}

/// `asked as ▲ ▲○○▼▼   shift +.60 ▼────●┼─────▲`
fn reworded_line(
    app: &App,
    theme: Theme,
    lane: &Lane,
    side: usize,
    Layout { width, wide, gauge: columns }: Layout,
) -> Line<'static> {
    let mark = [Mark::Support, Mark::Oppose][side];
    let mut left = vec![
        span("asked as ", Meaning::Muted, theme),
        span(format!("{} ", mark.glyph(app.glyphs)), Meaning::Side(mark), theme),
    ];
    let Some(asked) = lane.figures.asked.as_ref().map(|asked| &asked[side]) else {
        let text = match &lane.reworded {
            Some(Err(reason)) => reason.clone(),
            _ if app.settled => "not asked: it would cost, y asks".into(),
            _ => "…".into(),
        };
        left.push(span(fit(&text, width.saturating_sub(LABEL)), Meaning::Muted, theme));
        return Line::from(left);
    };
    left.extend(cells(app, theme, &asked.marks, width.saturating_sub(LABEL), wide));
    let known = lane.figures.now.as_ref().is_none_or(|figures| unlabelled(app, figures).is_none());
    let Some(lean) = asked.lean.filter(|_| known) else { return Line::from(left) };
    let room = width.saturating_sub(width_of(&left));
    let gauge = columns.map(|columns| gauge(app, theme, lean, None, columns));
    let (mut text, mut delta) = (Vec::new(), None);
    if let Some((shift, difference)) = lane.figures.shift.filter(|_| side == 1) {
        let unlike = if lane.figures.unlike { "≠" } else { "" };
        text.push(span(format!("shift{unlike} {}", signed(shift).trim()), Meaning::Text, theme));
        delta = change_span(difference.map(|by| (by, None)), |by| signed(by).trim().to_owned(), theme);
    }
    ends(left, with_gauge(text, delta, gauge, room), width)
}

/// `MRecall@5 0  ▼○◇○▼`, for a lane with one row of figures.
fn compact(app: &App, theme: Theme, lane: &LaneFigures, figures: &Figures, width: usize) -> Line<'static> {
    let mut spans = recall(app, theme, lane, figures, width.saturating_sub(lane.marks.len() + 2));
    spans.push(Span::raw("  "));
    let room = width.saturating_sub(width_of(&spans));
    spans.extend(cells(app, theme, &lane.marks, room, 2 * lane.marks.len() <= room));
    Line::from(spans)
}

fn first_rank_text(rank: FirstRank) -> String {
    match rank {
        FirstRank::At(rank) => rank.to_string(),
        FirstRank::Below(0) => "…".into(),
        FirstRank::Below(judged) => format!(">{judged}"),
    }
}

/// One count and first rank per statement, as many in a line as fit.
fn per_perspective(app: &App, theme: Theme, figures: &Figures, width: usize) -> Vec<Line<'static>> {
    const CELL: usize = 10;
    let cells = figures.supporting.iter().zip(&figures.first).enumerate().map(|(i, (count, at))| {
        let mark = Mark::of(i, &app.question);
        let text = format!("{} {count}@{}", mark.text(app.glyphs), first_rank_text(*at));
        span(format!("{text:<CELL$}"), Meaning::Side(mark), theme)
    });
    let cells: Vec<Span<'static>> = cells.collect();
    cells.chunks((width / CELL).max(1)).map(|row| Line::from(row.to_vec())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_mrecall_is_never_rounded_to_nothing() {
        assert_eq!([1.0, -1.0, 0.16, -0.08].map(change_text), ["+1", "-1", "+.16", "-.08"]);
    }

    #[test]
    fn the_gauge_gives_way_to_what_has_changed() {
        let text = |room: usize, change: Option<&'static str>| {
            let gauge = Some(vec![Span::raw("▼───●───▲")]);
            let spans = with_gauge(vec![Span::raw("balanced")], change.map(Span::raw), gauge, room);
            spans.iter().map(|span| span.content.as_ref()).collect::<String>()
        };
        assert_eq!(text(30, Some(" (+.20)")), "balanced (+.20) ▼───●───▲");
        assert_eq!(text(20, Some(" (+.20)")), "balanced (+.20)");
        assert_eq!(text(20, None), "balanced ▼───●───▲");
    }
}
