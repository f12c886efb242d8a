//! An SVG drawing as PNG, with a font carried in the binary, so that it looks the same on every machine.

use std::sync::Arc;

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{FontResolver, Options, Tree, fontdb};

/// DejaVu Sans Mono, cut to what frames and plots need.
static FONT: &[u8] = include_bytes!("../../assets/font/DejaVuSansMono-subset.ttf");
/// About 270 MB of memory while it is drawn.
const MOST_PIXELS: f64 = 67_000_000.0;

/// Why there is no picture.
#[derive(Debug, thiserror::Error)]
pub enum PictureError {
    /// More pixels than a picture may have, or none.
    #[error("no PNG of {wide:.0}x{high:.0} pixels")]
    Size {
        /// Of the picture.
        wide: f32,
        /// Of the picture.
        high: f32,
    },
    /// It could not be drawn.
    #[error("could not draw the picture: {0}")]
    Drawing(String),
}

/// A PNG of the drawing with `scale` pixels to a unit. Whole scales are sharpest.
///
/// # Errors
/// It is no SVG, or would have no pixels or too many.
pub fn png(drawing: &str, scale: f32) -> Result<Vec<u8>, PictureError> {
    let mut fonts = fontdb::Database::new();
    let face = fonts.load_font_source(fontdb::Source::Binary(Arc::new(FONT))).first().copied();
    let face = face.ok_or_else(|| PictureError::Drawing("its font cannot be read".into()))?;
    let options = Options {
        fontdb: Arc::new(fonts),
        font_resolver: FontResolver {
            select_font: Box::new(move |_, _| Some(face)),
            select_fallback: FontResolver::default_fallback_selector(),
        },
        ..Options::default()
    };
    let told = |reason: &dyn std::fmt::Display| PictureError::Drawing(reason.to_string());
    let tree = Tree::from_str(drawing, &options).map_err(|reason| told(&reason))?;
    let side = |length: f32| (length * scale).ceil();
    let (wide, high) = (side(tree.size().width()), side(tree.size().height()));
    // Also false for a scale that is no number.
    let fits = wide >= 1.0 && high >= 1.0 && f64::from(wide) * f64::from(high) <= MOST_PIXELS;
    let pixels = if fits { Pixmap::new(wide as u32, high as u32) } else { None };
    let mut pixels = pixels.ok_or(PictureError::Size { wide, high })?;
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut pixels.as_mut());
    pixels.encode_png().map_err(|reason| told(&reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_drawing_or_has_too_many_pixels_is_an_error() {
        assert!(matches!(png("<svg", 1.0), Err(PictureError::Drawing(_))));
        let drawing = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"10\" height=\"10\"/>";
        assert!(png(drawing, 1.0).unwrap().starts_with(b"\x89PNG"));
        for scale in [0.0, -1.0, f32::NAN, f32::INFINITY, 1e6] {
            assert!(matches!(png(drawing, scale), Err(PictureError::Size { .. })), "{scale}");
        }
    }
}
