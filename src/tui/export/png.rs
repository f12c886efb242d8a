//! A frame as PNG, drawn with a font carried in the binary, so that it looks the same on every machine.

use ratatui::buffer::Buffer;

use super::{ExportError, svg};
use crate::report::picture::{self, PictureError};

/// A PNG of the frame with `scale` pixels to a unit; a cell is 10 units wide and 20 high. Whole scales are sharpest.
pub fn png(buffer: &Buffer, scale: f32) -> Result<Vec<u8>, ExportError> {
    picture::png(&svg::svg(buffer, ""), scale).map_err(|error| match error {
        PictureError::Size { .. } => {
            ExportError::Large { columns: buffer.area.width, rows: buffer.area.height, scale }
        }
        PictureError::Drawing(reason) => ExportError::Picture(reason),
    })
}

#[cfg(test)]
mod tests {
    use resvg::tiny_skia::Pixmap;

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
