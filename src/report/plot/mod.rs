//! Plots of evaluation figures as SVG, to stand alone or within a page.
//!
//! The same figures give the same bytes. A figure that is not a number is shown as `–`, and a mark beyond the end of its axis
//! stands at that end while its number says how far it is. Colours follow the reader's light or dark theme; each mark also has a
//! shape, a hatch or a label of its own.

mod arrows;
mod axis;
mod bars;
mod curves;
mod intervals;
mod rows;
mod shape;
mod sheet;
mod stacks;

pub use arrows::{Arrow, arrows};
pub use bars::{Group, bars};
pub use curves::{Series, curves};
pub use intervals::intervals;
pub use stacks::stacks;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::markup::assert_balanced;

    /// One of each plot, with a name and a value in it.
    fn all(name: &str, value: f64) -> [String; 5] {
        let name = name.to_owned();
        let both = (value, 0.5);
        [
            curves(&[Series { name: name.clone(), points: vec![(1.0, value), (2.0, 0.5)] }], &name, &name),
            stacks(&[(name.clone(), [value, 0.1, 0.2, 0.3])]),
            arrows(&[Arrow { name: name.clone(), neutral: both, as_support: both, as_oppose: both }]),
            intervals(&[(name.clone(), value, 0.1, 0.9)]),
            bars(&[Group { name: name.clone(), corpus: 0.2, top: vec![(name, value)] }]),
        ]
    }

    #[test]
    fn nothing_to_show_is_said_and_no_error() {
        let plots = [curves(&[], "k", "y"), stacks(&[]), arrows(&[]), intervals(&[]), bars(&[])];
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
    fn what_is_no_number_never_reaches_the_picture() {
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
