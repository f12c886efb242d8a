//! A frame as PNG, drawn with a font carried in the binary, so that it looks the same on every machine.

use std::sync::Arc;

use ratatui::buffer::Buffer;
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{FontResolver, Options, Tree, fontdb};

use super::{ExportError, svg};

/// DejaVu Sans Mono, cut to what a frame needs.
static FONT: &[u8] = include_bytes!("../../../assets/font/DejaVuSansMono-subset.ttf");
/// About 270 MB of memory while it is drawn.
const MOST_PIXELS: f64 = 67_000_000.0;

/// A PNG of the frame with `scale` pixels to a unit; a cell is 10 units wide and 20 high. Whole scales are sharpest.
pub fn png(buffer: &Buffer, scale: f32) -> Result<Vec<u8>, ExportError> {
    let drawing = svg::svg(buffer, "");
    let mut fonts = fontdb::Database::new();
    let face = fonts.load_font_source(fontdb::Source::Binary(Arc::new(FONT))).first().copied();
    let face = face.ok_or_else(|| ExportError::Picture("its font cannot be read".into()))?;
    let options = Options {
        fontdb: Arc::new(fonts),
        font_resolver: FontResolver {
            select_font: Box::new(move |_, _| Some(face)),
            select_fallback: FontResolver::default_fallback_selector(),
        },
        ..Options::default()
    };
    let tree =
        Tree::from_str(&drawing, &options).map_err(|reason| ExportError::Picture(reason.to_string()))?;
    let side = |length: f32| (length * scale).ceil();
    let (wide, high) = (side(tree.size().width()), side(tree.size().height()));
    // Also false for a scale that is no number.
    let fits = wide >= 1.0 && high >= 1.0 && f64::from(wide) * f64::from(high) <= MOST_PIXELS;
    let pixels = if fits { Pixmap::new(wide as u32, high as u32) } else { None };
    let mut pixels =
        pixels.ok_or(ExportError::Large { columns: buffer.area.width, rows: buffer.area.height, scale })?;
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut pixels.as_mut());
    pixels.encode_png().map_err(|reason| ExportError::Picture(reason.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pixels(line: &str) -> Pixmap {
        Pixmap::decode_png(&png(&Buffer::with_lines([line]), 2.0).unwrap()).unwrap()
    }

    #[test]
    fn the_picture_is_as_large_as_cells_margin_and_scale_say() {
        let drawn = pixels("abcd");
        assert_eq!((drawn.width(), drawn.height()), ((4 * 10 + 20) * 2, (20 + 20) * 2));
    }

    #[test]
    fn text_marks_and_braille_leave_ink_and_blanks_do_not() {
        let colours = |line: &str| {
            let drawn = pixels(line);
            let first = drawn.pixels()[0];
            drawn.pixels().iter().filter(|pixel| **pixel != first).count()
        };
        assert_eq!(colours("    "), 0);
        for mark in "aé─█░⣿▲▼○◐◆●↑↓→⏎…λЖ═".chars() {
            assert!(colours(&mark.to_string()) > 20, "{mark}");
        }
    }

    #[test]
    fn marks_are_not_drawn_as_missing() {
        let missing = pixels("\u{e000}");
        for mark in "▲▼○◐◆●◇■□★▸↑↓←→⏎–…·−λ“”═║╬✓".chars()
        {
            assert_ne!(pixels(&mark.to_string()).data(), missing.data(), "{mark}");
        }
    }

    #[test]
    fn a_horizontal_line_has_no_gap() {
        let drawn = pixels("────");
        let row = |y: u32| (20..100).map(move |x| drawn.pixel(x, y).unwrap()).collect::<Vec<_>>();
        let inked = row(40);
        assert!(inked.iter().all(|pixel| *pixel == inked[0]) && inked[0].red() > 200, "{inked:?}");
    }

    #[test]
    fn a_scale_that_makes_no_picture_is_an_error_that_says_what_to_do() {
        for scale in [0.0, -1.0, f32::NAN, f32::INFINITY, 1e6] {
            let error = png(&Buffer::with_lines(["a"]), scale).unwrap_err();
            assert!(error.to_string().contains(".svg"), "{error}");
        }
    }
}
