//! Parts that several screens share: text, the lines at the top and the bottom, the mouse wheel, strips of sides, leans, and numbered
//! curves with their intervals. `syntax` shows records and code in colours.
//!
//! May use: the state in `app`, keymap, layout, theme.

use crossterm::event::{MouseEvent, MouseEventKind};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Modifier;
use ratatui::symbols::Marker;
use ratatui::text::Span;
use ratatui::widgets::canvas::{Canvas, Line as CanvasLine};
use ratatui::widgets::{Axis, Chart, Dataset, GraphType};

use super::app::App;
use super::keymap::Action;
use super::theme::{Meaning, Theme};
use crate::engine::Sources;
use crate::report::marks::{Glyphs, Mark, share};
use crate::report::plot::Series;
use crate::report::safe;
use text::{columns_of, fit, span};

/// A border's lower line that says on how many judgments a lane's figures rest: ` bm25: .97 judged, .34 by the model `.
pub fn sources_line(name: &str, sources: Sources, width: u16, theme: Theme) -> Span<'static> {
    let Some(judged) = sources.share() else { return Span::raw("") };
    let all = |part: f64| if part >= 1.0 { "all".to_owned() } else { share(part) };
    let model = sources.model_share().filter(|share| *share > 0.0);
    let model = model.map_or_else(String::new, |model| format!(", {} by the model", all(model)));
    let text = format!(" {}: {} judged{model} ", fit(&safe::line(name), 14), all(judged));
    span(fit(&text, usize::from(width).saturating_sub(2)), Meaning::Muted, theme)
}

/// The same for a curve: ` judged by k: 1 1.0, 2 .98, … `, with as many points as fit, the last one among them.
pub fn sources_by_k(sources: &[Sources], width: u16, theme: Theme) -> Span<'static> {
    let point = |k: usize| Some(format!("{} {}", k + 1, share(sources.get(k)?.share()?)));
    let model = sources.last().and_then(|all| all.model_share()).filter(|share| *share > 0.0);
    let model = model.map_or_else(String::new, |model| format!("; {} by the model", share(model)));
    let room = usize::from(width).saturating_sub(2);
    let text = |step: usize| {
        let last = sources.len().saturating_sub(1);
        let points = (0..last).step_by(step).chain([last]).filter_map(point).collect::<Vec<_>>();
        format!(" judged by k: {}{model} ", points.join(", "))
    };
    if sources.iter().all(|one| one.of == 0) {
        return Span::raw("");
    }
    let fitting = (1..=sources.len()).map(text).find(|text| columns_of(text) <= room);
    span(fitting.unwrap_or_else(|| fit(&text(sources.len()), room)), Meaning::Muted, theme)
}

pub mod footer;
pub mod syntax;
pub mod text;

pub mod header {
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
    use crate::tui::app::{App, Corpus, NUMBERS};
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
        let cursor =
            safe::line(&app.line.value().chars().take(app.line.cursor()).collect::<String>()).width();
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
            span(fit(&shown, width), if app.recalled { Meaning::Selected } else { Meaning::Title }, theme)
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
    fn about(app: &App) -> [String; 5] {
        let (k, source) = (app.k, app.judgments.source);
        let corpus = match &app.corpus {
            Corpus::Open(opened) => {
                format!("{} · {} passages   ", safe::line(&opened.corpus), opened.passages)
            }
            _ => String::new(),
        };
        let (long, short) = judged_by(app);
        [
            format!("{corpus}k {k}   {long} "),
            format!("k {k}   {long} "),
            format!("{corpus}k {k}   {short} "),
            format!("k {k}   {short} "),
            format!("k {k} · {source} "),
        ]
    }

    /// The source of the judgments on screen: a long and a short form.
    fn judged_by(app: &App) -> (String, String) {
        let (shares, rule) = (app.judged_by, app.judgments.rule());
        let source = app.judgments.source;
        let labels = match &app.corpus {
            Corpus::Open(opened) => safe::line(&opened.labels.1),
            _ => "gold labels".into(),
        };
        if shares.all() == 0 {
            let name = match (source, &app.corpus) {
                (LabelSource::Gold, _) => &labels,
                (LabelSource::Human, _) => "labels by hand",
                (LabelSource::Auto, Corpus::Open(opened)) if opened.labelled => &labels,
                _ => "the model",
            };
            return (format!("judged by {name}"), format!("labels: {source}"));
        }
        let words = safe::line(&shares.words(rule, &labels));
        let name = if shares.by_model() == shares.all() {
            fit(&safe::line(&rule.about.name), 24)
        } else {
            let parts =
                [(shares.human, "labels by hand"), (shares.gold, &labels), (shares.by_model(), "the model")];
            parts.into_iter().filter(|(of, _)| *of > 0).map(|(_, by)| by).collect::<Vec<_>>().join(", ")
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
                None => {
                    format!(" No statements could be derived from this question: press {key} to type them.")
                }
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
        let opening = if count > 2 { super::text::shared_opening(&question.perspectives) } else { 0 };
        for (i, statement) in question.perspectives.iter().enumerate() {
            let mark = Mark::of(i, question);
            // The number that labels it, as in the column beside the passages.
            let number = i.checked_sub(app.statement_page() * NUMBERS).filter(|i| count > 2 && *i < NUMBERS);
            let number = number.map(|i| format!("{} ", i + 1)).unwrap_or_default();
            let glyph = format!(" {number}{} ", mark.text(app.glyphs));
            let text = super::text::fit_past(statement, opening, width.saturating_sub(glyph.width() + 1));
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
}

/// The action of the mouse wheel on a screen whose text scrolls.
pub fn scrolled(mouse: MouseEvent) -> Option<Action> {
    match mouse.kind {
        MouseEventKind::ScrollDown => Some(Action::Down),
        MouseEventKind::ScrollUp => Some(Action::Up),
        _ => None,
    }
}

/// One cell per rank: what each passage of a list supports, in `wide` columns. Cells of three columns and more are filled.
pub fn rank_cells(
    marks: impl Iterator<Item = Mark>,
    wide: usize,
    theme: Theme,
    glyphs: Glyphs,
) -> Vec<Span<'static>> {
    let cell = |mark: Mark| {
        let whole = mark.text(glyphs);
        // One column has room for the letter of a statement, not for its shape too.
        let letter = whole.chars().find(char::is_ascii_alphanumeric).filter(|_| wide < 2);
        let text = letter.map_or(whole, String::from);
        let left = wide.saturating_sub(columns_of(&text)) / 2;
        let right = wide.saturating_sub(columns_of(&text) + left);
        let sided = !matches!(mark, Mark::None | Mark::Unclear | Mark::Pending);
        let style = theme.style(Meaning::Side(mark));
        let filled = if wide >= 3 && sided { style.add_modifier(Modifier::REVERSED) } else { style };
        let text = Span::styled(format!("{}{text}{}", " ".repeat(left), " ".repeat(right)), filled);
        // Filled neighbours need a gap, or five cells look like one bar.
        [text, Span::raw(if wide >= 3 { " " } else { "" })]
    };
    marks.flat_map(cell).filter(|span| !span.content.is_empty()).collect()
}

/// The columns of a strip.
pub fn cells_width(cells: usize, wide: usize) -> usize {
    cells * if wide >= 3 { wide + 1 } else { wide }
}

/// A lean from −1 to 1 as a bar from the zero in the middle, to the left for ▼ and to the right for ▲, with the interval around its end.
/// `width` includes the marks at both ends.
pub fn lean_bar(
    lean: f64,
    interval: Option<(f64, f64)>,
    width: usize,
    theme: Theme,
    glyphs: Glyphs,
) -> Vec<Span<'static>> {
    let end = |mark: Mark| span(mark.glyph(glyphs).to_string(), Meaning::Side(mark), theme);
    let inner = width.saturating_sub(4);
    if inner < 3 || !lean.is_finite() {
        return vec![span("–", Meaning::Muted, theme)];
    }
    let half = (inner - 1) / 2;
    let column = |x: f64| (half as f64 + x.clamp(-1.0, 1.0) * half as f64).round() as usize;
    let (zero, at) = (half, column(lean));
    let bar = zero.min(at)..=zero.max(at);
    let ends = interval.map(|(low, high)| (column(low), column(high))).filter(|(low, high)| low < high);
    let meaning = match at.cmp(&zero) {
        std::cmp::Ordering::Less => Meaning::Side(Mark::Oppose),
        std::cmp::Ordering::Greater => Meaning::Side(Mark::Support),
        std::cmp::Ordering::Equal => Meaning::Muted,
    };
    let cell = |i: usize| match ends {
        _ if i == zero => ('┼', Meaning::Muted),
        Some((low, _)) if i == low => ('├', Meaning::Text),
        Some((_, high)) if i == high => ('┤', Meaning::Text),
        _ if bar.contains(&i) => ('█', meaning),
        Some((low, high)) if (low..high).contains(&i) => ('─', Meaning::Text),
        _ => ('·', Meaning::Muted),
    };
    let mut spans = vec![end(Mark::Oppose), Span::raw(" ")];
    let cells: Vec<(char, Meaning)> = (0..=2 * half).map(cell).collect();
    for run in cells.chunk_by(|a, b| a.1 == b.1) {
        spans.push(span(run.iter().map(|(c, _)| *c).collect::<String>(), run[0].1, theme));
    }
    spans.push(Span::raw(" ".repeat(1 + inner - (2 * half + 1))));
    spans.push(end(Mark::Support));
    spans
}

/// A share on its heat in `width` columns, of which the last is a gap.
pub fn heat_cell(theme: Theme, value: Option<f64>, width: usize, bold: bool) -> [Span<'static>; 2] {
    let text = value.map_or_else(|| "–".to_owned(), share);
    let style = value.map_or_else(|| theme.style(Meaning::Muted), |value| theme.heat(value));
    let style = if bold { style.add_modifier(Modifier::BOLD) } else { style };
    [Span::styled(format!("{text:^w$}", w = width.saturating_sub(1)), style), Span::raw(" ")]
}

/// A bar of eighths for a share from 0 to 1.
pub fn share_bar(value: f64, width: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let all =
        if value.is_finite() { (value.clamp(0.0, 1.0) * width as f64 * 8.0).round() as usize } else { 0 };
    // A share above 0 is never drawn as none.
    let all = if value > 0.0 { all.max(1) } else { all };
    format!("{}{}", "█".repeat(all / 8), EIGHTHS[all % 8])
}

/// The meaning of a curve and of its name in [`legend`].
fn meaning(curve: usize) -> Meaning {
    Meaning::Lane(curve)
}

/// The curves' names, for the title. The numbers distinguish them without colours.
pub fn legend<'a>(
    names: impl Iterator<Item = String> + 'a,
    theme: Theme,
) -> impl Iterator<Item = Span<'static>> + 'a {
    names.enumerate().map(move |(i, name)| span(format!(" {} {name} ", i + 1), meaning(i), theme))
}

/// Draws the curves. The x axis goes from `ends.0` to `ends.1`, the y axis from 0 to 1.
pub fn draw(
    app: &App,
    theme: Theme,
    curves: &[Vec<(f64, f64)>],
    axis: ((f64, f64), Vec<String>),
    area: Rect,
    frame: &mut Frame<'_>,
) {
    let plain = |points: &Vec<(f64, f64)>| Series { points: points.clone(), ..Series::default() };
    draw_with_bands(app, theme, &curves.iter().map(plain).collect::<Vec<_>>(), axis, area, frame);
}

/// Draws the curves with the ends of their intervals as dotted lines.
pub fn draw_with_bands(
    app: &App,
    theme: Theme,
    curves: &[Series],
    (ends, labels): ((f64, f64), Vec<String>),
    area: Rect,
    frame: &mut Frame<'_>,
) {
    if text::left_to_a_picture(app.shows_pictures(), area, frame) {
        return;
    }
    let marker = if app.glyphs == Glyphs::Ascii { Marker::Dot } else { Marker::Braille };
    let bands: Vec<(usize, Vec<(f64, f64)>)> = curves
        .iter()
        .enumerate()
        .flat_map(|(i, curve)| {
            let edge = |end: fn(&(f64, f64, f64)) -> (f64, f64)| dotted(curve.band.iter().map(end).collect());
            [(i, edge(|(x, low, _)| (*x, *low))), (i, edge(|(x, _, high)| (*x, *high)))]
        })
        .collect();
    // Each number is at a different place along its curve, because several curves can end at the same point.
    let numbers = curves.iter().enumerate().filter_map(|(i, Series { points, .. })| {
        let apart = (points.len() / curves.len()).max(1);
        let point = points.iter().rev().nth(i * apart % points.len().max(1))?;
        let digit = char::from_digit(i as u32 + 1, 10)?;
        Some((i, Marker::Custom(digit), GraphType::Scatter, std::slice::from_ref(point)))
    });
    let edges = bands.iter().map(|(i, points)| (*i, marker, GraphType::Scatter, points.as_slice()));
    let lines = curves.iter().enumerate().map(|(i, curve)| (i, marker, GraphType::Line, &curve.points[..]));
    let datasets = edges.chain(lines).chain(numbers).map(|(i, marker, kind, points)| {
        Dataset::default().marker(marker).graph_type(kind).style(theme.style(meaning(i))).data(points)
    });
    let muted = theme.style(Meaning::Muted);
    let chart = Chart::new(datasets.collect())
        .legend_position(None)
        .x_axis(Axis::default().bounds([ends.0, ends.1]).labels(labels).style(muted))
        .y_axis(Axis::default().bounds([0.0, 1.0]).labels(["0", ".5", "1"]).style(muted));
    frame.render_widget(chart, area);
}

/// Draws passages in a plane as arrows from a place before to a place after, each with the mark of its side at the new place. `names` are
/// those of both axes.
pub fn draw_moves(
    app: &App,
    theme: Theme,
    moves: &[(Mark, [(f64, f64); 2])],
    names: (&str, &str),
    area: Rect,
    frame: &mut Frame<'_>,
) {
    let bounds = |axis: fn(&(f64, f64)) -> f64| {
        let all = moves.iter().flat_map(|(_, ends)| ends).map(axis).filter(|x| x.is_finite());
        let (low, high) = all.fold((f64::MAX, f64::MIN), |(low, high), x| (low.min(x), high.max(x)));
        let margin = ((high - low) * 0.06).max(1e-3);
        [low - margin, high + margin]
    };
    let left = app.shows_pictures() && !moves.is_empty();
    if text::left_to_a_picture(left, area, frame) || moves.is_empty() || area.height < 5 || area.width < 20 {
        return;
    }
    let (x, y) = (bounds(|end| end.0), bounds(|end| end.1));
    let marker = if app.glyphs == Glyphs::Ascii { Marker::Dot } else { Marker::Braille };
    let muted = theme.style(Meaning::Muted);
    let axes = Rect { y: area.bottom() - 1, height: 1, ..area };
    let below = format!("→ {}   ↑ {}   the mark is where a passage moved to", names.0, names.1);
    frame.render_widget(span(text::fit(&below, usize::from(area.width)), Meaning::Muted, theme), axes);
    let canvas = Canvas::default().marker(marker).x_bounds(x).y_bounds(y).paint(|context| {
        if x[0] < 0.0 && x[1] > 0.0 {
            let colour = muted.fg.unwrap_or_default();
            context.draw(&CanvasLine { x1: 0.0, y1: y[0], x2: 0.0, y2: y[1], color: colour });
            context.layer();
        }
        for (mark, [from, to]) in moves {
            let color = theme.style(Meaning::Side(*mark)).fg.unwrap_or_default();
            context.draw(&CanvasLine { x1: from.0, y1: from.1, x2: to.0, y2: to.1, color });
        }
        context.layer();
        for (mark, [_, to]) in moves {
            context.print(to.0, to.1, span(mark.text(app.glyphs), Meaning::Side(*mark), theme));
        }
    });
    frame.render_widget(canvas, Rect { height: area.height - 1, ..area });
}

/// Points along a line, far enough apart to look like dots.
fn dotted(line: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    const DOTS: usize = 12;
    let along = |pair: &[(f64, f64)]| {
        let [(x1, y1), (x2, y2)] = [pair[0], pair[1]];
        (0..DOTS).map(move |i| i as f64 / DOTS as f64).map(move |t| (x1 + t * (x2 - x1), y1 + t * (y2 - y1)))
    };
    let last = line.last().copied();
    line.windows(2).flat_map(along).chain(last).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(spans: &[Span<'_>]) -> String {
        spans.iter().map(|span| span.content.as_ref()).collect()
    }

    #[test]
    fn a_lean_leaves_the_zero_toward_its_side_and_shows_its_interval() {
        let theme = Theme::of(crate::tui::theme::Look::Terminal);
        let bar = |lean, interval| text(&lean_bar(lean, interval, 15, theme, Glyphs::Shapes));
        assert_eq!(bar(0.0, None), "▼ ·····┼····· ▲");
        assert_eq!(bar(1.0, None), "▼ ·····┼█████ ▲");
        assert_eq!(bar(-0.4, None), "▼ ···██┼····· ▲");
        assert_eq!(bar(0.4, Some((0.2, 0.8))), "▼ ·····┼├█─┤· ▲");
        assert_eq!(bar(f64::NAN, None), "–");
        for width in 0..40 {
            let wide = columns_of(&text(&lean_bar(0.3, Some((-2.0, 5.0)), width, theme, Glyphs::Shapes)));
            assert!(wide <= width.max(1), "{width}: {wide}");
        }
    }

    #[test]
    fn a_strip_has_one_cell_per_rank_and_wide_cells_are_filled_with_their_side() {
        let theme = Theme::of(crate::tui::theme::Look::Terminal);
        let marks = [Mark::Support, Mark::None, Mark::Oppose, Mark::Unclear];
        assert_eq!(text(&rank_cells(marks.into_iter(), 1, theme, Glyphs::Shapes)), "▲○▼◇");
        let many = [Mark::Other(2), Mark::Other(27), Mark::Several];
        assert_eq!(text(&rank_cells(many.into_iter(), 1, theme, Glyphs::Shapes)), "CB◐");
        let wide = rank_cells(marks.into_iter(), 5, theme, Glyphs::Shapes);
        assert_eq!(text(&wide), "  ▲     ○     ▼     ◇   ");
        assert_eq!(columns_of(&text(&wide)), cells_width(4, 5));
        let filled = wide.iter().filter(|span| span.style.add_modifier.contains(Modifier::REVERSED));
        assert_eq!(filled.count(), 2, "neither and unclear are no sides");
    }

    #[test]
    fn a_bar_of_a_share_is_never_longer_than_its_room_and_never_empty_for_some() {
        assert_eq!(share_bar(1.0, 4), "████");
        assert_eq!(share_bar(0.5, 4), "██");
        assert_eq!(share_bar(0.001, 4), "▏");
        assert_eq!(share_bar(0.0, 4), "");
        assert_eq!(share_bar(f64::NAN, 4), "");
        assert_eq!(columns_of(&share_bar(7.0, 4)), 4);
    }
}
