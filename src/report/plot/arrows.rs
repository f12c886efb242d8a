//! What a lane brings up when the question is put neutrally and as either statement (BERDS Figure 3).

use super::axis::Scale;
use super::rows::{Rows, Side};
use super::shape::Shape;
use super::sheet::{Sheet, empty};
use crate::report::marks::signed;

/// A lane's shares of supporting and of opposing passages (`p`, `n`) under three wordings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Arrow {
    /// The lane.
    pub name: String,
    /// Asked as the question.
    pub neutral: (f64, f64),
    /// Asked as the supporting statement.
    pub as_support: (f64, f64),
    /// Asked as the opposing statement.
    pub as_oppose: (f64, f64),
}

impl Arrow {
    /// ▲, ● and ▼ from the top of a row, with what each stands at.
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
        [neutral, support, oppose, support - oppose].map(number)
    }
}

fn number(value: f64) -> String {
    if !value.is_finite() {
        "–".into()
    } else if value.abs() > 1.0 {
        // A shift goes to 2, where one decimal would be coarser than the rest of the column.
        format!("{:+.2}", value.clamp(-9.0, 9.0))
    } else {
        signed(value).trim().to_owned()
    }
}

/// A row a lane on one axis of lean `p − n`, with the leans and the shift at the side.
pub fn arrows(rows: &[Arrow]) -> String {
    let label = "Lean of the top k, asked neutrally, as the supporting and as the opposing statement";
    if rows.is_empty() {
        return empty(label);
    }
    let layout = Rows::new(rows.iter().map(|row| row.name.as_str()), 62.0, 36.0);
    let scale = Scale::linear((-1.0, 1.0), layout.span);
    let side = Side::new(&["●", "▲", "▼", "shift"], rows.iter().map(|row| row.numbers().to_vec()).collect());

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
    for (row, arrow) in rows.iter().enumerate() {
        let [neutral, support, oppose, shift] = arrow.numbers();
        sheet.open("lane", &format!("{}: ● {neutral} ▲ {support} ▼ {oppose} shift {shift}", arrow.name));
        layout.name(&mut sheet, row, &arrow.name);
        // One above the other, so that equal leans do not hide each other.
        let levels = [-9.0, 0.0, 9.0].map(|level| layout.middle(row) + level);
        let known = arrow.leans().into_iter().zip(levels).filter(|((_, _, lean), _)| lean.is_finite());
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

#[cfg(test)]
mod tests {
    use super::*;

    fn arrow(support: (f64, f64)) -> Arrow {
        Arrow { name: "dense".into(), neutral: (0.4, 0.2), as_support: support, as_oppose: (0.1, 0.6) }
    }

    #[test]
    fn leans_and_the_shift_between_the_two_statements_appear() {
        assert_eq!(arrow((0.7, 0.1)).numbers(), ["+.20", "+.60", "-.50", "+1.10"]);
        assert!(arrows(&[arrow((0.7, 0.1))]).contains(">+1.10</text>"));
    }

    #[test]
    fn a_lean_beyond_the_axis_stands_at_its_end() {
        let end = arrows(&[arrow((1.0, 0.0))]);
        let beyond = arrows(&[arrow((5.0, 0.0))]);
        let marks = |svg: &str| svg.lines().filter(|line| line.contains("<path")).map(String::from).collect();
        let (end, beyond): (Vec<_>, Vec<_>) = (marks(&end), marks(&beyond));
        assert_eq!(end, beyond);
    }

    #[test]
    fn an_unknown_lean_has_no_mark_but_a_dash() {
        assert_eq!(arrow((f64::NAN, 0.0)).numbers(), ["+.20", "–", "-.50", "–"]);
    }
}
