//! Marks and hatches, drawn as paths: fonts differ in how they draw ▲, and patterns would need names that clash when several
//! pictures share a page.

use std::fmt::Write;

/// A mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// ●
    Circle,
    /// ■
    Square,
    /// ▲
    Up,
    /// ◆
    Diamond,
    /// ▼
    Down,
    /// ✚
    Cross,
    /// The filled half of ◐.
    Half,
}

impl Shape {
    /// The shapes that tell lines apart.
    pub const ALL: [Shape; 6] =
        [Shape::Circle, Shape::Square, Shape::Up, Shape::Diamond, Shape::Down, Shape::Cross];

    /// Its outline about a place, of about the same area for each.
    pub fn path(self, (x, y): (f64, f64), r: f64) -> String {
        let closed = |corners: &[(f64, f64)]| {
            let mut path = String::new();
            for (i, (dx, dy)) in corners.iter().enumerate() {
                let letter = if i == 0 { 'M' } else { 'L' };
                let _ = write!(path, "{letter}{:.1} {:.1}", x + dx * r, y + dy * r);
            }
            path + "Z"
        };
        let top = y - r;
        match self {
            Shape::Circle => {
                format!("M{x:.1} {top:.1}a{r:.1} {r:.1} 0 1 0 .01 0Z")
            }
            Shape::Half => format!("M{x:.1} {top:.1}a{r:.1} {r:.1} 0 0 0 0 {:.1}Z", 2.0 * r),
            Shape::Square => closed(&[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]),
            Shape::Up => closed(&[(0.0, -1.15), (1.2, 0.95), (-1.2, 0.95)]),
            Shape::Down => closed(&[(0.0, 1.15), (1.2, -0.95), (-1.2, -0.95)]),
            Shape::Diamond => closed(&[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)]),
            Shape::Cross => {
                let (a, b) = (0.42, 1.2);
                closed(&[
                    (-a, -b),
                    (a, -b),
                    (a, -a),
                    (b, -a),
                    (b, a),
                    (a, a),
                    (a, b),
                    (-a, b),
                    (-a, a),
                    (-b, a),
                    (-b, -a),
                    (-a, -a),
                ])
            }
        }
    }
}

/// Slanting lines across a rectangle, rising to the right or falling.
pub fn hatch((x, y): (f64, f64), (width, height): (f64, f64), rising: bool) -> String {
    const GAP: f64 = 7.0;
    let mut path = String::new();
    let mut start = GAP / 2.0 - height;
    while start < width {
        let (from, to) = (start.max(0.0), (start + height).min(width));
        let (down, up) = (from - start, to - start);
        let (y1, y2) = if rising { (y + height - down, y + height - up) } else { (y + down, y + up) };
        if to > from {
            let _ = write!(path, "M{:.1} {y1:.1}L{:.1} {y2:.1}", x + from, x + to);
        }
        start += GAP;
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hatch_stays_within_its_rectangle() {
        for rising in [false, true] {
            for width in [0.0, 2.0, 50.0] {
                let path = hatch((10.0, 20.0), (width, 18.0), rising);
                for pair in path.split(['M', 'L']).filter(|pair| !pair.is_empty()) {
                    let (x, y) = pair.split_once(' ').unwrap();
                    let (x, y): (f64, f64) = (x.parse().unwrap(), y.parse().unwrap());
                    assert!((10.0..=10.1 + width).contains(&x) && (20.0..=38.0).contains(&y), "{path}");
                }
            }
        }
    }

    #[test]
    fn every_shape_has_an_outline_of_its_own() {
        let paths: std::collections::BTreeSet<_> =
            Shape::ALL.iter().map(|shape| shape.path((0.0, 0.0), 4.0)).collect();
        assert_eq!(paths.len(), Shape::ALL.len());
    }
}
