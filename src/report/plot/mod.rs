//! Plots evaluation figures as SVG, as files or within a page.
//!
//! The same figures give the same bytes. A figure that is not a number is shown as `–`. A mark beyond the end of its axis is drawn at that end,
//! next to its true number. Colours follow the reader's light or dark theme; each mark also has a shape, a hatch or a label of its own.
//!
//! This file draws lines over k or λ; `rows` and `sides` draw the other plots. All draw on a `sheet`. May use: report.

use super::marks::share;
use sheet as axis;
use sheet::{COLUMN, NAME, Scale, Shape, Sheet, columns, empty};

mod rows;
mod sheet;
mod sides;

pub use rows::{Group, bars, intervals};
pub use sheet::{png, shorten};
pub use sides::{Leans, Moved, heat, leans, moves, stacks};

/// A line of a plot.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// The name of the lane.
    pub name: String,
    /// Its points, joined in this order.
    pub points: Vec<(f64, f64)>,
    /// The x, the low and the high end of each interval; may be empty.
    pub band: Vec<(f64, f64, f64)>,
}

/// The upper left corner of the plot.
const CORNER: (f64, f64) = (64.0, 40.0);
/// The width of the plot.
const WIDTH: f64 = 520.0;
/// The least distance between the names of lines.
const STEP: f64 = 17.0;
/// The length of the sample of a line before its name.
const SAMPLE: f64 = 26.0;
/// The space around the sample.
const GAP: f64 = 12.0;

impl Series {
    /// Returns the points that are numbers.
    fn finite(&self) -> impl Iterator<Item = (f64, f64)> {
        self.points.iter().copied().filter(|(x, y)| x.is_finite() && y.is_finite())
    }

    /// Returns the intervals whose ends are numbers.
    fn intervals(&self) -> impl Iterator<Item = (f64, f64, f64)> {
        self.band.iter().copied().filter(|(x, low, high)| [x, low, high].iter().all(|end| end.is_finite()))
    }

    /// Returns the value at the greatest x.
    fn last(&self) -> Option<f64> {
        self.finite().max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, y)| y)
    }
}

/// Formats a figure as in the tables.
fn figure(value: f64) -> String {
    if (-1.0..=1.0).contains(&value) { share(value) } else { shorten(&format!("{value:.1}"), 12) }
}

/// Draws lines over `x`. Their names are on the right, in the order in which the lines end. Depths over a wide range have a logarithmic axis.
pub fn curves(series: &[Series], x: &str, y: &str) -> String {
    lines(series, None, x, y)
}

/// Draws lines over places that have names: 0 is the first name, 1 the second. Every point has its interval as a vertical line, and lines
/// stand a little apart, so that no interval hides another.
pub fn paths(series: &[Series], names: &[&str], x: &str, y: &str) -> String {
    lines(series, Some(names), x, y)
}

fn lines(series: &[Series], names: Option<&[&str]>, x: &str, y: &str) -> String {
    let label = format!("Lines of {y} over {x}, one per lane");
    let all = || series.iter().flat_map(Series::finite);
    let ends = || series.iter().flat_map(Series::intervals).flat_map(|(_, low, high)| [low, high]);
    let (Some(range), Some(values)) = (x_range(all()), axis::range(all().map(|(_, y)| y).chain(ends())))
    else {
        return empty(&label);
    };
    let range = names.map_or(range, |names| (-0.4, names.len().max(1) as f64 - 0.6));
    let log = range.0 >= 1.0 && range.1 / range.0 >= 20.0;
    let height = (series.len() as f64 * STEP).clamp(300.0, 720.0);
    let places = (CORNER.0 + 8.0, CORNER.0 + WIDTH - 8.0);
    let across = if log { Scale::log(range, places) } else { Scale::linear(range, places) };
    let up = Scale::linear(values, (CORNER.1 + height, CORNER.1));

    let mut sheet = Sheet::default();
    let bottom = CORNER.1 + height;
    for (value, text) in axis::ticks(values) {
        let at = up.at(value);
        sheet.line((CORNER.0, at), (CORNER.0 + WIDTH, at), if value == 0.0 { "zero" } else { "rule" });
        sheet.text((CORNER.0 - 8.0, at + 4.0), "end soft", &text);
    }
    let ticks = match names {
        Some(names) => names.iter().enumerate().map(|(x, name)| (x as f64, (*name).to_owned())).collect(),
        None => x_ticks(&across, range, log, all()),
    };
    // At most a third of the room between two names.
    let apart = |i: usize| match names {
        Some(_) => {
            (across.at(1.0) - across.at(0.0)) / 3.0 * (i as f64 + 0.5 - series.len() as f64 / 2.0)
                / series.len() as f64
        }
        None => 0.0,
    };
    for (value, text) in ticks {
        let at = across.at(value);
        sheet.line((at, bottom), (at, bottom + 5.0), "zero");
        sheet.text((at, bottom + 19.0), "mid soft", &text);
    }
    let scale_note = if log { " (log scale)" } else { "" };
    sheet.text((CORNER.0 + WIDTH / 2.0, bottom + 38.0), "mid soft", &format!("{x}{scale_note}"));
    sheet.text((14.0, 22.0), "strong", y);

    // Below all lines, or a band would hide one.
    for (i, one) in series.iter().enumerate() {
        let low = one.intervals().map(|(x, low, _)| (across.at(x), up.at(low)));
        let mut edge: Vec<_> = one.intervals().map(|(x, _, high)| (across.at(x), up.at(high))).collect();
        edge.reverse();
        let outline: Vec<_> = low.chain(edge).collect();
        if outline.len() > 2 && names.is_none() {
            sheet.polyline(&outline, &format!("area c{}", i % 7));
        }
    }
    let mut order: Vec<usize> = (0..series.len()).collect();
    order.sort_by(|&a, &b| {
        let end = |i: usize| series[i].last().unwrap_or(f64::NEG_INFINITY);
        end(b).total_cmp(&end(a))
    });
    let last = |one: &Series| one.last().map_or_else(|| "–".into(), figure);
    let room = series.iter().map(|one| columns(&last(one))).max().unwrap_or(0) as f64 * COLUMN;
    for (place, &i) in order.iter().enumerate() {
        let one = &series[i];
        sheet.open(&format!("lane c{}", i % 7), &one.name);
        let points: Vec<_> = one.finite().map(|(x, y)| (across.at(x) + apart(i), up.at(y))).collect();
        for (x, low, high) in one.intervals().filter(|_| names.is_some()) {
            let (x, low, high) = (across.at(x) + apart(i), up.at(low), up.at(high));
            sheet.line((x, low), (x, high), "stroke");
            for end in [low, high] {
                sheet.line((x - 4.0, end), (x + 4.0, end), "stroke");
            }
        }
        line(&mut sheet, i, &points);
        let y = CORNER.1 + 8.0 + place as f64 * STEP;
        let end = sample(&mut sheet, i, y) + room;
        sheet.text((end, y + 4.0), "mono end", &last(one));
        sheet.text((end + GAP, y + 4.0), "mono", &shorten(&one.name, NAME));
        sheet.close();
    }
    let widest = series.iter().map(|one| columns(&one.name).min(NAME)).max().unwrap_or(0);
    let legend = CORNER.1 + series.len() as f64 * STEP + 12.0;
    let width = CORNER.0 + WIDTH + SAMPLE + 4.0 * GAP + room + widest as f64 * COLUMN;
    sheet.finish((width, (bottom + 52.0).max(legend)), &label)
}

/// Returns the class of a line. The colours repeat after seven lines, so further lines are dashed.
fn curve_class(i: usize) -> String {
    if i < 7 { "curve".into() } else { format!("curve d{}", i / 7 % 4) }
}

fn line(sheet: &mut Sheet, i: usize, points: &[(f64, f64)]) {
    if points.len() > 1 {
        sheet.polyline(points, &curve_class(i));
    }
    let every = points.len().div_ceil(20).max(1);
    for (at, &place) in points.iter().enumerate() {
        if at % every == 0 || at + 1 == points.len() {
            sheet.mark(Shape::ALL[i % Shape::ALL.len()], place, 3.8, "dot");
        }
    }
}

/// Draws a sample of a line. Returns the x at which its value may begin.
fn sample(sheet: &mut Sheet, i: usize, y: f64) -> f64 {
    let left = CORNER.0 + WIDTH + GAP;
    sheet.line((left, y), (left + SAMPLE, y), &curve_class(i));
    sheet.mark(Shape::ALL[i % Shape::ALL.len()], (left + SAMPLE / 2.0, y), 3.8, "dot");
    left + SAMPLE + GAP
}

/// Returns the range of x; a wider one if all are equal.
fn x_range(points: impl Iterator<Item = (f64, f64)>) -> Option<(f64, f64)> {
    const FAR: f64 = 1e12;
    let (low, high) = points
        .map(|(x, _)| x.clamp(-FAR, FAR))
        .fold(None, |ends: Option<(f64, f64)>, x| Some(ends.map_or((x, x), |(a, b)| (a.min(x), b.max(x)))))?;
    Some(if high - low < 1e-6 * high.abs().max(1.0) { (low - 0.5, high + 0.5) } else { (low, high) })
}

/// Returns the ticks of x: the measured depths or weights themselves, if they are few.
fn x_ticks(
    scale: &Scale,
    range: (f64, f64),
    log: bool,
    points: impl Iterator<Item = (f64, f64)>,
) -> Vec<(f64, String)> {
    let mut measured: Vec<f64> = points.map(|(x, _)| x).filter(|x| x.abs() < 1e6).collect();
    measured.sort_by(f64::total_cmp);
    measured.dedup();
    let ticks = if (1..=13).contains(&measured.len()) {
        measured.into_iter().map(|x| (x, axis::plain(x))).collect()
    } else if log {
        axis::log_ticks(range)
    } else {
        axis::ticks(range)
    };
    let widest = ticks.iter().map(|(_, text)| columns(text)).max().unwrap_or(1);
    axis::thin_out(scale, ticks, 12.0 + widest as f64 * COLUMN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(name: &str, points: &[(f64, f64)]) -> Series {
        Series { name: name.into(), points: points.to_vec(), ..Series::default() }
    }

    #[test]
    fn an_interval_is_an_area_below_all_lines_and_inside_the_axis() {
        let banded =
            Series { band: vec![(1.0, 0.0, 0.4), (5.0, 0.1, 0.9)], ..one("low", &[(1.0, 0.2), (5.0, 0.5)]) };
        let svg = curves(&[banded, one("high", &[(1.0, 0.3), (5.0, 0.6)])], "k", "MRecall");
        assert_eq!(svg.matches("class=\"area c0\"").count(), 1);
        assert!(svg.find("class=\"area").unwrap() < svg.find("class=\"curve").unwrap());
        // The axis goes up to the end of the interval, not only to the highest mean.
        assert!(svg.contains(">0.8<"), "{svg}");
        let open = Series { band: vec![(1.0, f64::NAN, 0.4)], ..one("none", &[(1.0, 0.2)]) };
        assert!(!curves(&[open], "k", "y").contains("class=\"area"));
    }

    #[test]
    fn names_are_in_the_order_in_which_the_lines_end_with_their_last_value() {
        let svg = curves(
            &[one("low", &[(1.0, 0.1), (5.0, 0.2)]), one("high", &[(1.0, 0.3), (5.0, 0.81)])],
            "k",
            "MRecall",
        );
        let place = |text: &str| svg.find(text).unwrap();
        assert!(place(">.81<") < place(">.20<"));
        assert!(svg.contains(">MRecall</text>") && svg.contains(">k</text>"));
    }

    #[test]
    fn lines_over_names_have_an_interval_at_every_point_and_do_not_hide_each_other() {
        let banded = |name: &str| Series {
            band: vec![(0.0, -0.5, 0.1), (2.0, 0.2, 0.8)],
            ..one(name, &[(0.0, -0.2), (2.0, 0.5)])
        };
        let names = ["as opposing", "neutrally", "as supporting"];
        let svg = paths(&[banded("bm25"), banded("minilm")], &names, "asked", "Δ");
        assert!(names.iter().all(|name| svg.contains(&format!(">{name}</text>"))), "{svg}");
        assert!(svg.contains(">bm25</text>") && svg.contains(">minilm</text>"));
        // Two lanes, two intervals of a line and two ends each.
        let strokes: Vec<&str> = svg.lines().filter(|line| line.contains("class=\"stroke\"")).collect();
        assert_eq!(strokes.len(), 12);
        let distinct: std::collections::HashSet<_> = strokes.iter().collect();
        assert_eq!(distinct.len(), 12, "{svg}");
        assert!(!svg.contains("class=\"area"));
    }

    #[test]
    fn depths_over_a_wide_range_have_a_logarithmic_axis_and_weights_do_not() {
        let depths = [(1.0, 0.1), (10.0, 0.2), (100.0, 0.3)];
        assert!(curves(&[one("a", &depths)], "k", "y").contains("k (log scale)"));
        let weights = [(0.0, 0.1), (0.5, 0.2), (1.0, 0.3)];
        let svg = curves(&[one("a", &weights)], "λ", "y");
        assert!(svg.contains(">λ</text>") && svg.contains(">0.5</text>"), "{svg}");
    }

    #[test]
    fn a_line_without_values_is_still_named() {
        let svg = curves(&[one("none", &[(1.0, f64::NAN)]), one("some", &[(1.0, 0.5)])], "k", "y");
        assert!(svg.contains("–"), "{svg}");
        assert!(svg.contains(">none</text>"), "{svg}");
    }
}

#[cfg(test)]
mod every_plot_tests {
    use super::*;
    use crate::report::safe::assert_balanced;

    #[test]
    fn every_plot_is_drawn_as_png_in_its_own_colours() {
        for plot in all("bm25", 0.4) {
            let drawn = resvg::tiny_skia::Pixmap::decode_png(&png(&plot).unwrap()).unwrap();
            let colours: std::collections::HashSet<_> =
                drawn.pixels().iter().map(|pixel| (pixel.red(), pixel.green(), pixel.blue())).collect();
            assert_eq!(drawn.pixel(0, 0).map(|pixel| pixel.red()), Some(255), "the paper is white");
            let coloured = colours.iter().filter(|(r, g, b)| r.abs_diff(*b) > 60 || g.abs_diff(*b) > 60);
            assert!(coloured.count() > 0, "{plot}");
        }
    }

    /// Draws one of each plot, with a name and a value in it.
    fn all(name: &str, value: f64) -> [String; 7] {
        let name = name.to_owned();
        let both = (value, 0.5);
        [
            curves(
                &[Series {
                    name: name.clone(),
                    points: vec![(1.0, value), (2.0, 0.5)],
                    band: vec![(1.0, value, 0.6), (2.0, 0.4, value)],
                }],
                &name,
                &name,
            ),
            paths(
                &[Series {
                    name: name.clone(),
                    points: vec![(0.0, value), (1.0, 0.5)],
                    band: vec![(0.0, value, 0.6), (1.0, 0.4, value)],
                }],
                &[&name, "b"],
                &name,
                &name,
            ),
            stacks(&[(name.clone(), [value, 0.1, 0.2, 0.3])]),
            moves(&[Moved { side: Some(0), from: (0.1, 0.2), to: both }], &name, &name),
            leans(&[Leans { name: name.clone(), neutral: both, as_support: both, as_oppose: both }]),
            intervals(&[(name.clone(), value, 0.1, 0.9)]),
            bars(&[Group { name: name.clone(), corpus: 0.2, top: vec![(name, value)] }]),
        ]
    }

    #[test]
    fn a_plot_without_data_says_so() {
        let plots = [
            curves(&[], "k", "y"),
            paths(&[], &[], "k", "y"),
            moves(&[], "x", "y"),
            stacks(&[]),
            leans(&[]),
            intervals(&[]),
            bars(&[]),
        ];
        for plot in plots {
            assert_balanced(&plot);
            assert!(plot.contains("nothing to show"), "{plot}");
        }
    }

    #[test]
    fn names_cannot_break_out_of_the_picture() {
        for plot in all("</text><script>alert(\"1\")</script>&'", 0.4) {
            assert_balanced(&plot);
            assert!(!plot.contains("<script"), "{plot}");
            assert!(plot.contains("&lt;script"), "{plot}");
        }
    }

    #[test]
    fn the_same_figures_give_the_same_bytes() {
        assert_eq!(all("bm25", 0.4), all("bm25", 0.4));
    }

    #[test]
    fn a_value_that_is_not_a_number_never_reaches_the_picture() {
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN, f64::MIN_POSITIVE, -0.0]
        {
            for plot in all("lane", value) {
                assert_balanced(&plot);
                let body = plot.split("</style>").nth(1).unwrap();
                assert!(!body.contains("NaN") && !body.contains("inf"), "{value}: {body}");
                assert!(plot.len() < 20_000, "{value}: {} bytes", plot.len());
            }
        }
    }

    #[test]
    fn forty_long_names_and_one_of_another_script_stay_balanced() {
        for count in [1, 40] {
            let names = (0..count).map(|i| format!("bm25@k1=0.9,b=0.4+perspectives+xquad@0.{i}+動物園"));
            let rows: Vec<_> = names.map(|name| (name, [0.1, 0.2, 0.3, 0.4])).collect();
            assert_balanced(&stacks(&rows));
        }
    }
}
