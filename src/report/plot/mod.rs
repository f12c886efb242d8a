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

use super::picture::{self, PictureError};

/// A plot as PNG, in the colours of paper and the carried font.
///
/// # Errors
/// It is too large, as one of thousands of lanes would be.
pub fn png(plot: &str) -> Result<Vec<u8>, PictureError> {
    picture::png(&plain(plot), 2.0)
}

/// The plot without what follows the reader's theme, each rule's first colour standing alone; the carried font is a wide one.
fn plain(plot: &str) -> String {
    let themed = |line: &&str| !line.starts_with(".plx{--") && !line.starts_with("@media");
    let lines = plot.lines().filter(themed).map(|line| {
        let Some((_, declarations)) =
            line.strip_suffix('}').filter(|_| line.starts_with(".plx")).and_then(|l| l.split_once('{'))
        else {
            return line.to_owned();
        };
        let selector = &line[..line.len() - declarations.len() - 2];
        let kept: Vec<&str> = declarations.split(';').filter(|one| !one.contains("var(")).collect();
        format!("{selector}{{{}}}", kept.join(";").replace("font:12px", "font:11px"))
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::markup::assert_balanced;

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
