//! Formats what is printed: marks for statements, and the results of commands as text, JSON and TSV. Computes nothing but layout.
//!
//! This file describes long jobs in words (progress, rate, time left), and draws an SVG as PNG with a built-in font, so that it looks the same
//! on every machine. May use: everything below `cli` and `tui` (ARCHITECTURE.md).

use std::sync::Arc;
use std::time::{Duration, Instant};

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{FontResolver, Options, Tree, fontdb};

use crate::work::{Job, Progress};

pub mod agreement;
pub(crate) mod analysis;
mod cell;
pub(crate) mod decisions;
pub mod explanations;
pub mod marks;
pub(crate) mod means;
pub mod page;
pub mod plot;
pub(crate) mod reading;
pub mod safe;
pub mod search;
pub mod table;
pub(crate) mod verdicts;

/// Measures the rates of running jobs.
#[derive(Default)]
pub struct Rates(Vec<(Job, Instant, u64)>);

impl Rates {
    /// Describes the progress of a job, with its rate since this process began it.
    pub fn text(&mut self, progress: Progress, now: Instant) -> String {
        let known =
            self.0.iter().find(|(job, _, first)| *job == progress.job && *first <= progress.done).copied();
        let (_, began, first) = known.unwrap_or_else(|| {
            self.0.retain(|(job, ..)| *job != progress.job);
            self.0.push((progress.job, now, progress.done));
            (progress.job, now, progress.done)
        });
        text(progress, progress.done - first, now - began)
    }
}

/// Describes the progress of a job of which `made` steps took `took`: `embedding 12,000/36,000 · 81/s · 4 min 56 s left`.
pub fn text(progress: Progress, made: u64, took: Duration) -> String {
    let Progress { job, done, total } = progress;
    match job {
        Job::Waiting { process: 0 } => {
            return "waiting for another process, which builds the same corpus".into();
        }
        Job::Waiting { process } => {
            return format!("waiting for process {process}, which builds the same corpus");
        }
        _ => {}
    }
    let rate = made as f64 / took.as_secs_f64().max(1e-3);
    let mut text = format!("{} {}", job.name(), thousands(done));
    if total > 0 {
        text.push_str(&format!("/{}", thousands(total)));
    }
    if made > 0 {
        text.push_str(&format!(" · {}/s", thousands(rate as u64)));
        if total > done && rate > 0.0 {
            let left = ((total - done) as f64 / rate).ceil() as u64;
            text.push_str(&match left / 60 {
                0 => format!(" · {left} s left"),
                minutes => format!(" · {minutes} min {:02} s left", left % 60),
            });
        }
    }
    text
}

/// Writes a number with commas: `36,012`.
pub fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// DejaVu Sans Mono, with only the glyphs that frames and plots need.
static FONT: &[u8] = include_bytes!("../../assets/font/DejaVuSansMono-subset.ttf");
/// The most pixels of a PNG: about 270 MB of memory while it is drawn.
const MOST_PIXELS: f64 = 67_000_000.0;

/// The reason why there is no picture.
#[derive(Debug, thiserror::Error)]
pub enum PictureError {
    /// The picture would have too many pixels, or none.
    #[error("no PNG of {wide:.0}x{high:.0} pixels")]
    Size {
        /// The width of the picture.
        wide: f32,
        /// The height of the picture.
        high: f32,
    },
    /// It could not be drawn.
    #[error("could not draw the picture: {0}")]
    Drawing(String),
}

/// Draws an SVG as PNG with `scale` pixels per unit. Whole scales are sharpest.
///
/// # Errors
/// The drawing is not valid SVG, or the PNG would have no pixels or too many.
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
    let failed = |reason: &dyn std::fmt::Display| PictureError::Drawing(reason.to_string());
    let tree = Tree::from_str(drawing, &options).map_err(|reason| failed(&reason))?;
    let side = |length: f32| (length * scale).ceil();
    let (wide, high) = (side(tree.size().width()), side(tree.size().height()));
    // Also false if the scale is not a number.
    let fits = wide >= 1.0 && high >= 1.0 && f64::from(wide) * f64::from(high) <= MOST_PIXELS;
    let pixels = if fits { Pixmap::new(wide as u32, high as u32) } else { None };
    let mut pixels = pixels.ok_or(PictureError::Size { wide, high })?;
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut pixels.as_mut());
    pixels.encode_png().map_err(|reason| failed(&reason))
}

/// Lists and pictures as files.
pub(crate) mod lists;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_has_a_rate_and_an_end() {
        let progress = Progress { job: Job::Embedding, done: 12_000, total: 36_000 };
        assert_eq!(
            text(progress, 6_000, Duration::from_secs(60)),
            "embedding 12,000/36,000 · 100/s · 4 min 00 s left"
        );
        let unknown = Progress { job: Job::Importing, done: 2_000, total: 0 };
        assert_eq!(text(unknown, 0, Duration::ZERO), "importing 2,000");
        let waiting = Progress { job: Job::Waiting { process: 4_711 }, done: 0, total: 1 };
        let message = "waiting for process 4711, which builds the same corpus";
        assert_eq!(text(waiting, 0, Duration::ZERO), message);
    }

    #[test]
    fn invalid_svg_and_too_many_pixels_are_errors() {
        assert!(matches!(png("<svg", 1.0), Err(PictureError::Drawing(_))));
        let drawing = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"10\" height=\"10\"/>";
        assert!(png(drawing, 1.0).unwrap().starts_with(b"\x89PNG"));
        for scale in [0.0, -1.0, f32::NAN, f32::INFINITY, 1e6] {
            assert!(matches!(png(drawing, scale), Err(PictureError::Size { .. })), "{scale}");
        }
    }
}
