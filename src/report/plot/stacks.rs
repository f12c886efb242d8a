//! Which sides the top k covers: only the supporting one, only the opposing one, both or neither (BERDS Figure 2).

use super::axis::{Scale, ticks};
use super::rows::{Rows, Side};
use super::shape::{Shape, hatch};
use super::sheet::{COLUMN, Sheet, columns, empty};
use crate::report::marks::share;

const CLASSES: [&str; 4] = ["support", "oppose", "both", "neither"];
const GLYPHS: [char; 4] = ['▲', '▼', '◐', '○'];
const LABELS: [&str; 4] = ["only supporting", "only opposing", "both", "neither"];
const BAR: f64 = 20.0;

/// Shares of the questions for each lane: only ▲, only ▼, both, neither.
pub fn stacks(rows: &[(String, [f64; 4])]) -> String {
    let label = "Share of questions whose top k covers only the supporting side, only the opposing side, both or neither";
    if rows.is_empty() {
        return empty(label);
    }
    let layout = Rows::new(rows.iter().map(|(name, _)| name.as_str()), 44.0, 30.0);
    let scale = Scale::linear((0.0, 1.0), layout.span);
    let side = Side::new(&[""; 4], rows.iter().map(|(_, shares)| too_small(shares)).collect());

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

/// Whether a number has room in its part of the bar.
fn fits(part: f64) -> bool {
    part >= 0.07
}

fn number(value: f64) -> String {
    if value.is_finite() { share(value.clamp(-9.0, 9.0)) } else { "–".into() }
}

/// Each part with its start and end, none for those without any width; together never more than the whole bar.
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

/// The numbers that have no room within the bar, each in a place of its own.
fn too_small(shares: &[f64; 4]) -> Vec<String> {
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
    // Only opposing has one hatch and both has the two, so that the bar reads without colour.
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

    #[test]
    fn numbers_stand_in_the_bars_and_beside_them_where_they_do_not_fit() {
        let svg = stacks(&[("bm25".into(), [0.42, 0.03, 0.0, 0.55])]);
        assert!(svg.contains("on-support\"") && svg.contains(">.42</text>"), "{svg}");
        assert!(svg.contains(">▼ .03</text>"), "{svg}");
        assert!(!svg.contains(">.00</text>"));
    }

    #[test]
    fn shares_outside_their_range_fill_the_bar_and_no_more() {
        let parts = parts(&[3.0, -1.0, f64::NAN, 1.0]);
        assert_eq!(parts, [(0, 0.0, 0.5), (3, 0.5, 1.0)]);
        assert_eq!(too_small(&[3.0, -1.0, f64::NAN, 0.0]), ["", "▼ -1.0", "◐ –", ""]);
    }
}
