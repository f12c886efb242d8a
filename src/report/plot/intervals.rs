//! Means with their intervals.

use super::axis::{Scale, range, ticks};
use super::rows::{Rows, Side};
use super::shape::Shape;
use super::sheet::{Sheet, empty, shorten};
use crate::report::marks::share;

fn number(value: f64) -> String {
    if !value.is_finite() {
        "–".into()
    } else if (-1.0..=1.0).contains(&value) {
        share(value)
    } else {
        shorten(&format!("{value:.1}"), 12)
    }
}

fn mean_text(mean: f64) -> String {
    if (-1.0..=1.0).contains(&mean) { format!("{mean:.4}") } else { number(mean) }
}

/// Each lane's mean, and the low and high end of its 95 % interval.
pub fn intervals(rows: &[(String, f64, f64, f64)]) -> String {
    let label = "Mean of each lane with its 95 % interval";
    let Some(values) = range(rows.iter().flat_map(|&(_, mean, low, high)| [mean, low, high])) else {
        return empty(label);
    };
    let layout = Rows::new(rows.iter().map(|(name, ..)| name.as_str()), 20.0, 26.0);
    let scale = Scale::linear(values, layout.span);
    let means = rows.iter().map(|&(_, mean, ..)| mean_text(mean));
    let ends = rows.iter().map(|&(_, _, low, high)| match low.is_finite() && high.is_finite() {
        true => format!("({}–{})", number(low), number(high)),
        false => String::new(),
    });
    let numbers: Vec<Vec<String>> = means.zip(ends).map(|(mean, ends)| vec![mean, ends]).collect();
    let side = Side::new(&[""; 2], numbers.clone());

    let mut sheet = Sheet::default();
    layout.axis(&mut sheet, &scale, &ticks(values), "mean and 95 % interval", &side);
    for (row, (name, mean, low, high)) in rows.iter().enumerate() {
        sheet.open("lane", &format!("{name}: {}", numbers[row].join(" ")));
        layout.name(&mut sheet, row, name);
        let y = layout.middle(row);
        if low.is_finite() && high.is_finite() {
            let (from, to) = (scale.at(low.min(*high)), scale.at(high.max(*low)));
            sheet.line((from, y), (to, y), "whisker");
            for end in [from, to] {
                sheet.line((end, y - 5.0), (end, y + 5.0), "whisker");
            }
        }
        if mean.is_finite() {
            sheet.mark(Shape::Circle, (scale.at(*mean), y), 4.5, "ink");
        }
        layout.side(&mut sheet, row, &side);
        sheet.close();
    }
    sheet.finish(layout.size(&side), label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_and_both_ends_appear_in_numbers() {
        let svg = intervals(&[("bm25".into(), 0.3712, 0.3, 0.42), ("size".into(), 17.8, 12.0, 24.0)]);
        assert!(svg.contains(">0.3712</text>") && svg.contains(">(.30–.42)</text>"), "{svg}");
        assert!(svg.contains(">17.8</text>") && svg.contains(">(12.0–24.0)</text>"), "{svg}");
    }

    #[test]
    fn a_mean_without_an_interval_is_a_dot_alone() {
        let svg = intervals(&[("bm25".into(), 0.5, f64::NAN, f64::NAN)]);
        assert!(svg.contains(">0.5000</text>") && !svg.contains("class=\"whisker\""), "{svg}");
    }
}
