//! Draws the sides that a lane retrieves: [`leans`] under three wordings; [`stacks`] of the sides covered (BERDS Figure 2); [`heat`], what
//! was found against what was asked for (PIR Figures 3 and 6); [`moves`], passages before and after a projection.

use super::rows::{Margin, Rows};
use super::sheet::{COLUMN, NAME, Scale, Shape, Sheet, columns, empty, hatch, range, shorten, ticks};
use crate::report::marks::{share, signed};

/// A lane's shares of supporting and of opposing passages (`p`, `n`) under three wordings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Leans {
    /// The name of the lane.
    pub name: String,
    /// The shares when asked with the question.
    pub neutral: (f64, f64),
    /// The shares when asked with the supporting statement.
    pub as_support: (f64, f64),
    /// The shares when asked with the opposing statement.
    pub as_oppose: (f64, f64),
}

impl Leans {
    /// Returns ▲, ● and ▼ from the top of a row, each with its class and value.
    fn leans(&self) -> [(Shape, &'static str, f64); 3] {
        let lean = |(p, n): (f64, f64)| p - n;
        [
            (Shape::Up, "support", lean(self.as_support)),
            (Shape::Circle, "ink", lean(self.neutral)),
            (Shape::Down, "oppose", lean(self.as_oppose)),
        ]
    }

    fn numbers(&self) -> [String; 4] {
        let [support, neutral, oppose] = self.leans().map(|(_, _, lean)| lean);
        [neutral, support, oppose, support - oppose].map(lean_text)
    }
}

fn lean_text(value: f64) -> String {
    if !value.is_finite() {
        "–".into()
    } else if value.abs() > 1.0 {
        // `signed` writes only one decimal beyond 1; a shift (up to 2) needs two.
        format!("{:+.2}", value.clamp(-9.0, 9.0))
    } else {
        signed(value).trim().to_owned()
    }
}

/// Draws one row per lane on an axis of lean `p − n`, with the leans and the shift in numbers.
pub fn leans(rows: &[Leans]) -> String {
    let label = "Lean of the top k, asked neutrally, as the supporting and as the opposing statement";
    if rows.is_empty() {
        return empty(label);
    }
    let layout = Rows::new(rows.iter().map(|row| row.name.as_str()), 62.0, 36.0);
    let scale = Scale::linear((-1.0, 1.0), layout.span);
    let side =
        Margin::new(&["●", "▲", "▼", "shift"], rows.iter().map(|row| row.numbers().to_vec()).collect());

    let mut sheet = Sheet::default();
    let ticks = [-1.0, -0.5, 0.0, 0.5, 1.0].map(|x| (x, signed(x).trim().to_owned()));
    layout.axis(&mut sheet, &scale, &ticks, "lean p − n", &side);
    let (left, right) = layout.span;
    sheet.text((left, 52.0), "soft", "← only opposing passages");
    sheet.text((right, 52.0), "end soft", "only supporting passages →");
    layout.side_heads(&mut sheet, &side);
    let asked = [
        (Shape::Circle, "ink", "neutrally"),
        (Shape::Up, "support", "as supporting"),
        (Shape::Down, "oppose", "as opposing"),
    ];
    sheet.text((left, 24.0), "", "asked");
    for ((shape, class, text), x) in asked.into_iter().zip([50.0, 140.0, 258.0]) {
        sheet.mark(shape, (left + x, 20.0), 4.5, class);
        sheet.text((left + x + 11.0, 24.0), "", text);
    }
    for (row, lane) in rows.iter().enumerate() {
        let [neutral, support, oppose, shift] = lane.numbers();
        sheet.open("lane", &format!("{}: ● {neutral} ▲ {support} ▼ {oppose} shift {shift}", lane.name));
        layout.name(&mut sheet, row, &lane.name);
        // One below the other, so that equal leans do not hide each other.
        let levels = [-9.0, 0.0, 9.0].map(|level| layout.middle(row) + level);
        let known = lane.leans().into_iter().zip(levels).filter(|((_, _, lean), _)| lean.is_finite());
        let places: Vec<_> =
            known.map(|((shape, class, lean), y)| (shape, class, (scale.at(lean), y))).collect();
        sheet.polyline(&places.iter().map(|&(_, _, place)| place).collect::<Vec<_>>(), "join");
        for (shape, class, place) in places {
            sheet.mark(shape, place, 4.8, class);
        }
        layout.side(&mut sheet, row, &side);
        sheet.close();
    }
    sheet.finish(layout.size(&side), label)
}

/// A passage that a projection moves.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moved {
    /// The index in the sides of [`stacks`]: supporting, opposing, both, neither; `None` if it is unclear or not judged.
    pub side: Option<usize>,
    /// Its place before.
    pub from: (f64, f64),
    /// Its place after.
    pub to: (f64, f64),
}

/// Draws the plane of a question's vectors: a line for every passage, from a dot at its place before a projection to the mark after it.
pub fn moves(passages: &[Moved], x: &str, y: &str) -> String {
    const BOX: (f64, f64) = (560.0, 360.0);
    const CORNER: (f64, f64) = (64.0, 56.0);
    let label = format!("Passages before and after a projection: {y} over {x}");
    let finite =
        |one: &&Moved| [one.from.0, one.from.1, one.to.0, one.to.1].iter().all(|end| end.is_finite());
    let known: Vec<&Moved> = passages.iter().filter(finite).collect();
    let ends = |of: fn(&Moved) -> [f64; 2]| range(known.iter().flat_map(|one| of(one)));
    let (Some(across), Some(up)) = (ends(|one| [one.from.0, one.to.0]), ends(|one| [one.from.1, one.to.1]))
    else {
        return empty(&label);
    };
    let bottom = CORNER.1 + BOX.1;
    let horizontal = Scale::linear(across, (CORNER.0, CORNER.0 + BOX.0));
    let vertical = Scale::linear(up, (bottom, CORNER.1));
    let mut sheet = Sheet::default();
    for (value, text) in ticks(up) {
        sheet.line((CORNER.0, vertical.at(value)), (CORNER.0 + BOX.0, vertical.at(value)), "rule");
        sheet.text((CORNER.0 - 8.0, vertical.at(value) + 4.0), "end soft", &text);
    }
    for (value, text) in ticks(across) {
        let class = if value == 0.0 { "zero" } else { "rule" };
        sheet.line((horizontal.at(value), CORNER.1), (horizontal.at(value), bottom), class);
        sheet.text((horizontal.at(value), bottom + 19.0), "mid soft", &text);
    }
    sheet.text((CORNER.0 + BOX.0 / 2.0, bottom + 38.0), "mid soft", x);
    sheet.text((14.0, 22.0), "strong", y);
    let unjudged = known.iter().any(|one| one.side.is_none());
    let mut at = if unjudged { 110.0 } else { 150.0 };
    for (shape, class, words) in MARKS.into_iter().take(if unjudged { MARKS.len() } else { UNJUDGED }) {
        sheet.mark(shape, (at, 18.0), 4.5, class);
        sheet.text((at + 11.0, 22.0), "", words);
        at += if unjudged { 30.0 + columns(words) as f64 * 6.6 } else { 130.0 };
    }
    for one in known {
        let place = |(x, y): (f64, f64)| (horizontal.at(x), vertical.at(y));
        let (from, to) = (place(one.from), place(one.to));
        let (shape, class, _) = MARKS[one.side.unwrap_or(UNJUDGED).min(UNJUDGED)];
        sheet.line(from, to, "join");
        sheet.mark(Shape::Circle, from, 2.0, "ink");
        sheet.mark(shape, to, 4.8, class);
        sheet.mark(shape, to, 4.8, "edge");
    }
    sheet.finish((CORNER.0 + BOX.0 + 40.0, bottom + 52.0), &label)
}

const CLASSES: [&str; 4] = ["support", "oppose", "both", "neither"];
const GLYPHS: [char; 4] = ['▲', '▼', '◐', '○'];
const LABELS: [&str; 4] = ["only supporting", "only opposing", "both", "neither"];
const BAR: f64 = 20.0;

/// The index of the mark in [`MARKS`] for a passage that is unclear or not judged.
const UNJUDGED: usize = 4;

/// The marks of [`moves`], with their classes and words: the four sides, and no known side.
const MARKS: [(Shape, &str, &str); 5] = [
    (Shape::Up, CLASSES[0], LABELS[0]),
    (Shape::Down, CLASSES[1], LABELS[1]),
    (Shape::Diamond, CLASSES[2], LABELS[2]),
    (Shape::Circle, CLASSES[3], LABELS[3]),
    (Shape::Cross, "ink", "unclear or not judged"),
];

/// Draws, for each lane, the share of questions whose top k covers only ▲, only ▼, both or neither.
pub fn stacks(rows: &[(String, [f64; 4])]) -> String {
    let label = "Share of questions whose top k covers only the supporting side, only the opposing side, both or neither";
    if rows.is_empty() {
        return empty(label);
    }
    let layout = Rows::new(rows.iter().map(|(name, _)| name.as_str()), 44.0, 30.0);
    let scale = Scale::linear((0.0, 1.0), layout.span);
    let side = Margin::new(&[""; 4], rows.iter().map(|(_, shares)| numbers_beside_bar(shares)).collect());

    let mut sheet = Sheet::default();
    layout.axis(&mut sheet, &scale, &ticks((0.0, 1.0)), "share of questions", &side);
    let mut x = layout.span.0;
    for (i, text) in LABELS.iter().enumerate() {
        segment(&mut sheet, (x, 12.0), (18.0, 16.0), i);
        glyph(&mut sheet, i, (x + 29.0, 20.0));
        sheet.text((x + 40.0, 24.0), "", text);
        x += 54.0 + columns(text) as f64 * 6.6;
    }
    for (row, (name, shares)) in rows.iter().enumerate() {
        let all = (0..4).map(|i| format!("{} {}", LABELS[i], number(shares[i])));
        sheet.open("lane", &format!("{name}: {}", all.collect::<Vec<_>>().join(", ")));
        layout.name(&mut sheet, row, name);
        let (top, middle) = (layout.middle(row) - BAR / 2.0, layout.middle(row));
        for (i, from, to) in parts(shares) {
            let (x, width) = (scale.at(from), scale.at(to) - scale.at(from));
            segment(&mut sheet, (x, top), (width, BAR), i);
            if fits(to - from) {
                let text = number(shares[i]);
                let room = columns(&text) as f64 * COLUMN + 5.0;
                let centre = x + width / 2.0;
                sheet.rect((centre - room / 2.0, top + 3.0), (room, BAR - 6.0), CLASSES[i]);
                sheet.text((centre, middle + 4.0), &format!("mono mid on-{}", CLASSES[i]), &text);
            }
        }
        layout.side(&mut sheet, row, &side);
        sheet.close();
    }
    sheet.finish(layout.size(&side), label)
}

/// The height of a row of a heat map.
const CELL_HEIGHT: f64 = 26.0;

/// The greatest opacity of a cell's colour, so that the number stays readable.
const MAX_OPACITY: f64 = 0.55;

/// Draws shares as a heat map: one row per attribute asked for, one column per attribute found. The stronger a cell's colour, the greater
/// its number.
pub fn heat(heads: &[String], rows: &[(String, Vec<Option<f64>>)]) -> String {
    let label = "Shares of what was found, by column, for what was asked for, by row";
    if rows.is_empty() || heads.is_empty() {
        return empty(label);
    }
    let widest = |texts: &mut dyn Iterator<Item = &String>| {
        texts.map(|text| columns(text).min(NAME)).max().unwrap_or(0) as f64 * COLUMN
    };
    let left = 28.0 + widest(&mut rows.iter().map(|(name, _)| name));
    let (width, top) = (widest(&mut heads.iter()).max(34.0) + 12.0, 34.0);
    let mut sheet = Sheet::default();
    for (i, head) in heads.iter().enumerate() {
        sheet.text((left + (i as f64 + 0.5) * width, top - 10.0), "mono mid", &shorten(head, NAME));
    }
    for (row, (name, shares)) in rows.iter().enumerate() {
        let y = top + row as f64 * CELL_HEIGHT;
        sheet.text((left - 14.0, y + CELL_HEIGHT / 2.0 + 4.0), "mono end", &shorten(name, NAME));
        for (i, value) in shares.iter().enumerate().take(heads.len()) {
            let (x, value) = (left + i as f64 * width, value.unwrap_or(f64::NAN));
            if value.is_finite() {
                let colour = MAX_OPACITY * value.clamp(0.0, 1.0);
                sheet.shade((x + 1.0, y + 1.0), (width - 2.0, CELL_HEIGHT - 2.0), "support", colour);
            }
            sheet.text((x + width / 2.0, y + CELL_HEIGHT / 2.0 + 4.0), "mono mid", &number(value));
        }
    }
    sheet.finish(
        (left + heads.len() as f64 * width + 14.0, top + rows.len() as f64 * CELL_HEIGHT + 14.0),
        label,
    )
}

/// Whether a number fits into its part of the bar.
fn fits(part: f64) -> bool {
    part >= 0.07
}

fn number(value: f64) -> String {
    if value.is_finite() { share(value.clamp(-9.0, 9.0)) } else { "–".into() }
}

/// Returns the start and end of each part. Parts without width are left out, and together the parts never exceed the bar.
fn parts(shares: &[f64; 4]) -> Vec<(usize, f64, f64)> {
    let width = |x: f64| if x.is_finite() { x.clamp(0.0, 1.0) } else { 0.0 };
    let whole = shares.iter().map(|&x| width(x)).sum::<f64>().max(1.0);
    let mut parts = Vec::new();
    let mut at = 0.0;
    for (i, &value) in shares.iter().enumerate() {
        let end = at + width(value) / whole;
        if end > at {
            parts.push((i, at, end));
        }
        at = end;
    }
    parts
}

/// Returns the numbers that do not fit into the bar, each at its own index; the others are empty.
fn numbers_beside_bar(shares: &[f64; 4]) -> Vec<String> {
    let parts = parts(shares);
    let shown = |i| parts.iter().any(|&(part, from, to)| part == i && fits(to - from));
    let text = |i: usize| {
        if shown(i) || shares[i] == 0.0 {
            String::new()
        } else {
            format!("{} {}", GLYPHS[i], number(shares[i]))
        }
    };
    (0..4).map(text).collect()
}

fn segment(sheet: &mut Sheet, corner: (f64, f64), size: (f64, f64), i: usize) {
    sheet.rect(corner, size, CLASSES[i]);
    // "Only opposing" has one hatch and "both" has two, so the bar is readable without colour.
    let mut lines = String::new();
    if i == 1 || i == 2 {
        lines = hatch(corner, size, true);
    }
    if i == 2 {
        lines += &hatch(corner, size, false);
    }
    if !lines.is_empty() {
        sheet.path(&lines, &format!("hatch-{}", CLASSES[i]));
    }
    sheet.rect(corner, size, "edge");
}

fn glyph(sheet: &mut Sheet, i: usize, place: (f64, f64)) {
    match i {
        0 => sheet.mark(Shape::Up, place, 4.5, "support"),
        1 => sheet.mark(Shape::Down, place, 4.5, "oppose"),
        2 => {
            sheet.mark(Shape::Circle, place, 4.5, "ring");
            sheet.mark(Shape::Half, place, 4.5, "ink");
        }
        _ => sheet.mark(Shape::Circle, place, 4.5, "ring"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(support: (f64, f64)) -> Leans {
        Leans { name: "dense".into(), neutral: (0.4, 0.2), as_support: support, as_oppose: (0.1, 0.6) }
    }

    #[test]
    fn leans_and_the_shift_between_the_two_statements_appear() {
        assert_eq!(lane((0.7, 0.1)).numbers(), ["+.20", "+.60", "-.50", "+1.10"]);
        assert!(leans(&[lane((0.7, 0.1))]).contains(">+1.10</text>"));
    }

    #[test]
    fn a_lean_beyond_the_axis_is_drawn_at_its_end() {
        let end = leans(&[lane((1.0, 0.0))]);
        let beyond = leans(&[lane((5.0, 0.0))]);
        let marks = |svg: &str| svg.lines().filter(|line| line.contains("<path")).map(String::from).collect();
        let (end, beyond): (Vec<_>, Vec<_>) = (marks(&end), marks(&beyond));
        assert_eq!(end, beyond);
    }

    #[test]
    fn a_heat_map_shows_every_share_with_as_much_colour_and_a_dash_for_none() {
        let svg = heat(&["Peru".into(), "Chile".into()], &[("asked for Peru".into(), vec![Some(0.8), None])]);
        assert!(svg.contains("fill-opacity=\"0.44\"") && svg.contains(">.80</text>"), "{svg}");
        assert_eq!((svg.matches("fill-opacity=").count(), svg.matches(">–</text>").count()), (1, 1));
        assert!(heat(&[], &[]).contains("nothing to show"));
    }

    #[test]
    fn a_passage_without_a_known_side_has_a_mark_of_its_own() {
        let drawn = |side| moves(&[Moved { side, from: (0.0, 0.0), to: (0.5, 0.5) }], "x", "y");
        assert!(drawn(None).contains("unclear or not judged"));
        assert!(!drawn(Some(3)).contains("unclear or not judged"));
        let marks = |svg: String| svg.matches("\"neither\"").count();
        assert_eq!((marks(drawn(None)), marks(drawn(Some(3)))), (1, 2), "in the legend, and at the passage");
    }

    #[test]
    fn an_unknown_lean_has_no_mark_but_a_dash() {
        assert_eq!(lane((f64::NAN, 0.0)).numbers(), ["+.20", "–", "-.50", "–"]);
    }

    #[test]
    fn numbers_are_in_the_bars_or_beside_them_if_they_do_not_fit() {
        let svg = stacks(&[("bm25".into(), [0.42, 0.03, 0.0, 0.55])]);
        assert!(svg.contains("on-support\"") && svg.contains(">.42</text>"), "{svg}");
        assert!(svg.contains(">▼ .03</text>"), "{svg}");
        assert!(!svg.contains(">.00</text>"));
    }

    #[test]
    fn shares_outside_their_range_fill_the_bar_and_no_more() {
        let parts = parts(&[3.0, -1.0, f64::NAN, 1.0]);
        assert_eq!(parts, [(0, 0.0, 0.5), (3, 0.5, 1.0)]);
        assert_eq!(numbers_beside_bar(&[3.0, -1.0, f64::NAN, 0.0]), ["", "▼ -1.0", "◐ –", ""]);
    }
}
