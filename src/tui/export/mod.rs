//! Saves frames as SVG, PNG, HTML or text, and sessions as animated SVG. The HTML page follows the reader's preference for dark or light.
//!
//! May use: theme, and `report` for PNG.

use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};

use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier};

use super::theme::palette::{Choice, DARK, LIGHT, Palette, choice};
use crate::input::{InputError, check_output};
use crate::report;
use crate::report::PictureError;
use crate::storage::{create, replace};
use film::Film;
use frame::{Dump, Glyph, Look, escape, heading, rows};

pub mod film;
pub mod frame;
pub mod svg;

/// Pixels per unit of a PNG: sharp on screens with two pixels per point, and in print.
pub const SCALE: f32 = 2.0;

/// The reason why a frame or film was not saved.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The file extension is not a format.
    #[error("{}: end the name with .svg, .png, .html or .txt", .0.display())]
    Ending(PathBuf),
    /// Films are SVG only.
    #[error("{}: end the name with .svg, which alone is written as a moving picture", .0.display())]
    Moving(PathBuf),
    /// What has this name is no file.
    #[error(transparent)]
    Place(InputError),
    /// The file could not be written.
    #[error("{}: {reason}; choose a name in a folder that exists and may be written to", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's message.
        reason: io::Error,
    },
    /// The picture would have too many pixels, or none.
    #[error("no PNG of {columns}x{rows} cells at scale {scale}; make the window smaller or save it as .svg")]
    Large {
        /// The width of the frame.
        columns: u16,
        /// The height of the frame.
        rows: u16,
        /// Pixels per unit.
        scale: f32,
    },
    /// The drawing failed.
    #[error("could not draw the picture: {0}; save it as .svg instead")]
    Picture(String),
}

/// Checks the name of a film before it is made.
///
/// # Errors
/// The name does not end with `.svg`.
pub fn check_film(path: &Path) -> Result<(), ExportError> {
    match path.extension() {
        Some(ending) if ending.eq_ignore_ascii_case("svg") => Ok(()),
        _ => Err(ExportError::Moving(path.into())),
    }
}

/// Saves a film at `path`, which ends with `.svg`. An older file is replaced in one step, so that no half-written file is ever seen.
///
/// # Errors
/// The path has another extension, or the file cannot be written.
pub fn write_film(path: &Path, film: Film) -> Result<(), ExportError> {
    check_film(path)?;
    let title = path.file_stem().unwrap_or_default().to_string_lossy();
    put(path, film.svg(&title).as_bytes())
}

/// Saves a frame at `path`, in the format of its extension: `.svg`, `.png` with so many pixels per unit, `.html` or `.txt`. An older file is replaced in one step,
/// so that no half-written file is ever seen.
///
/// # Errors
/// The extension is not a format, or the file cannot be written.
pub fn write(path: &Path, frame: &Dump, scale: f32) -> Result<(), ExportError> {
    put(path, &encode(path, frame, scale)?)
}

/// Draws a frame in the format of the extension of `path`.
fn encode(path: &Path, frame: &Dump, scale: f32) -> Result<Vec<u8>, ExportError> {
    let ending = path.extension().and_then(|ending| ending.to_str()).map(str::to_ascii_lowercase);
    let title = path.file_stem().unwrap_or_default().to_string_lossy();
    let buffer = frame.buffer();
    match ending.as_deref() {
        Some("svg") => Ok(svg::svg(buffer, &title).into_bytes()),
        Some("png") => png(buffer, scale),
        Some("html") => Ok(html(buffer, &title).into_bytes()),
        Some("txt") => Ok(frame::text(buffer).into_bytes()),
        _ => Err(ExportError::Ending(path.into())),
    }
}

/// Draws a PNG with `scale` pixels per unit; a cell is 10 units wide and 20 high. Whole scales are sharpest.
fn png(buffer: &Buffer, scale: f32) -> Result<Vec<u8>, ExportError> {
    report::png(&svg::svg(buffer, ""), scale).map_err(|error| match error {
        PictureError::Size { .. } => {
            ExportError::Large { columns: buffer.area.width, rows: buffer.area.height, scale }
        }
        PictureError::Drawing(reason) => ExportError::Picture(reason),
    })
}

/// A thread that saves frames as `parallax-N.svg`, each under the first free name, and the plot of a frame as `parallax-N.plot.svg`. Dropping it waits until all of them are on the disk.
pub struct FrameWriter {
    send: Option<Sender<(Dump, Option<String>)>>,
    thread: Option<JoinHandle<()>>,
}

impl FrameWriter {
    /// Starts the thread. `saved` gets the name of every saved file, or the reason why it could not be saved.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(
        folder: PathBuf,
        saved: impl Fn(Result<String, ExportError>) + Send + 'static,
    ) -> io::Result<Self> {
        let (send, frames) = mpsc::channel::<(Dump, Option<String>)>();
        let writing = move || {
            for (frame, plot) in frames {
                saved(write_numbered(&folder, &frame, plot.as_deref()));
            }
        };
        let thread = thread::Builder::new().name("frames".into()).spawn(writing)?;
        Ok(FrameWriter { send: Some(send), thread: Some(thread) })
    }

    /// Saves a frame and the plot in it after all earlier ones.
    pub fn save(&self, frame: Dump, plot: Option<String>) {
        if let Some(send) = &self.send {
            // The thread ends only when the sender is dropped.
            let _ = send.send((frame, plot));
        }
    }
}

impl Drop for FrameWriter {
    fn drop(&mut self) {
        self.send = None;
        if let Some(thread) = self.thread.take() {
            // The panic hook has reported a thread that panicked.
            let _ = thread.join();
        }
    }
}

/// Saves a frame under the first free `parallax-N.svg` and returns that name; with a plot, both names.
fn write_numbered(folder: &Path, frame: &Dump, plot: Option<&str>) -> Result<String, ExportError> {
    let mut n = 1u32;
    loop {
        let name = format!("parallax-{n}.svg");
        let path = folder.join(&name);
        if !path.exists() {
            match create(&path, &encode(&path, frame, SCALE)?) {
                // Another program has just taken the name.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(reason) => return Err(ExportError::Write { path, reason }),
                Ok(()) => {
                    let Some(plot) = plot else { return Ok(name) };
                    let beside = format!("parallax-{n}.plot.svg");
                    put(&folder.join(&beside), plot.as_bytes())?;
                    return Ok(format!("{name} and {beside}"));
                }
            }
        }
        n += 1;
    }
}

fn put(path: &Path, bytes: &[u8]) -> Result<(), ExportError> {
    check_output(path).map_err(ExportError::Place)?;
    replace(path, bytes).map_err(|reason| ExportError::Write { path: path.into(), reason })
}

// Rows are a little lower than the font, so that vertical lines and backgrounds of neighbouring rows meet.
const PAGE: &str = "\
body{margin:1rem;background:var(--ground);color:var(--text)}
pre{margin:0;font:15px/17px 'DejaVu Sans Mono',Menlo,Consolas,'Cascadia Mono','Liberation Mono',monospace;\
font-variant-ligatures:none;direction:ltr;unicode-bidi:bidi-override}
pre .g{display:inline-block;vertical-align:bottom;text-align:center;white-space:pre}
";

/// How text is held to the grid.
#[derive(Clone, Copy, PartialEq)]
enum Hold {
    /// Every monospace font has these characters at full width.
    Flow,
    /// Lines and blocks, which most fonts have: one box around a run limits the error.
    Stretch,
    /// Characters that may come from any font: each has its own box.
    Alone,
}

/// Writes a self-contained page with the frame in a `<pre>`.
pub fn html(buffer: &Buffer, title: &str) -> String {
    let mut classes: Vec<String> = Vec::new();
    let mut body = String::new();
    for row in rows(buffer) {
        line(&row, &mut classes, &mut body);
        body.push('\n');
    }
    let mut css = variables(":root", &DARK);
    let _ = writeln!(css, "@media (prefers-color-scheme:light){{{}}}", variables(":root", &LIGHT).trim_end());
    css.push_str(PAGE);
    for (i, class) in classes.iter().enumerate() {
        let _ = writeln!(css, ".s{i}{{{class}}}");
    }
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <meta name=\"color-scheme\" content=\"dark light\">\n<title>{}</title>\n\
         <style>\n{css}</style>\n</head>\n<body>\n<pre>\n{body}</pre>\n</body>\n</html>\n",
        heading(title)
    )
}

fn variables(of: &str, palette: &Palette) -> String {
    let mut css = format!("{of}{{--text:{};--ground:{}", palette.text, palette.ground);
    for (i, colour) in palette.sixteen.iter().enumerate() {
        let _ = write!(css, ";--c{i}:{colour}");
    }
    css + "}\n"
}

fn line(row: &[Glyph], classes: &mut Vec<String>, body: &mut String) {
    // Unstyled blanks at the end of a row are dropped.
    let plain = |glyph: &Glyph| glyph.text == " " && css(glyph.look).is_empty();
    let end = row.iter().rposition(|glyph| !plain(glyph)).map_or(0, |last| last + 1);
    let together = |a: &Glyph, b: &Glyph| a.look == b.look && hold(a) == hold(b) && hold(a) != Hold::Alone;
    for part in row[..end].chunk_by(together) {
        let Some(first) = part.first() else { continue };
        let text = escape(&part.iter().map(|glyph| glyph.text.as_str()).collect::<String>());
        let look = css(first.look);
        let class = (!look.is_empty()).then(|| {
            classes.iter().position(|known| *known == look).unwrap_or_else(|| {
                classes.push(look);
                classes.len() - 1
            })
        });
        let columns: usize = part.iter().map(|glyph| glyph.columns).sum();
        let name = class.map(|i| format!("s{i}")).unwrap_or_default();
        let _ = match (hold(first), class) {
            (Hold::Flow, None) => write!(body, "{text}"),
            (Hold::Flow, Some(_)) => write!(body, "<span class=\"{name}\">{text}</span>"),
            _ => {
                let names = format!("g {name}");
                write!(body, "<span class=\"{}\" style=\"width:{columns}ch\">{text}</span>", names.trim_end())
            }
        };
    }
}

fn hold(glyph: &Glyph) -> Hold {
    match glyph.single() {
        Some(' '..='~' | '\u{a0}'..='\u{24f}') => Hold::Flow,
        Some('\u{2500}'..='\u{259f}') => Hold::Stretch,
        _ => Hold::Alone,
    }
}

/// Returns the CSS rules of a cell; empty for a cell without style.
fn css(look: Look) -> String {
    let has = |modifier| look.modifier.contains(modifier);
    let (mut fg, mut bg) = (value(look.fg, "var(--text)"), value(look.bg, "var(--ground)"));
    if has(Modifier::REVERSED) {
        (fg, bg) = (bg, fg);
    }
    if has(Modifier::DIM) {
        fg = format!("color-mix(in srgb,{fg} 60%,{bg})");
    }
    if has(Modifier::HIDDEN) {
        fg.clone_from(&bg);
    }
    let mut rules = Vec::new();
    if fg != "var(--text)" {
        rules.push(format!("color:{fg}"));
    }
    if bg != "var(--ground)" {
        rules.push(format!("background:{bg}"));
    }
    if has(Modifier::BOLD) {
        rules.push("font-weight:bold".into());
    }
    if has(Modifier::ITALIC) {
        rules.push("font-style:italic".into());
    }
    let lines: Vec<&str> = [(Modifier::UNDERLINED, "underline"), (Modifier::CROSSED_OUT, "line-through")]
        .into_iter()
        .filter_map(|(modifier, line)| has(modifier).then_some(line))
        .collect();
    if !lines.is_empty() {
        rules.push(format!("text-decoration:{}", lines.join(" ")));
    }
    rules.join(";")
}

fn value(colour: Color, default: &str) -> String {
    match choice(colour) {
        Choice::Default => default.into(),
        Choice::Named(i) => format!("var(--c{i})"),
        Choice::Fixed(rgb) => rgb.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use ratatui::style::Style;
    use resvg::tiny_skia::Pixmap;

    use super::*;

    fn frame() -> Dump {
        Dump::of(Buffer::with_lines(["┌ab┐", "│物│", "└──┘"]))
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn the_extension_chooses_the_format_and_no_other_file_is_left() {
        let folder = tempfile::tempdir().unwrap();
        for (name, start) in
            [("a.svg", "<svg "), ("a.PNG", "\u{fffd}PNG"), ("a.html", "<!DOCTYPE html>"), ("a.txt", "┌ab┐\n")]
        {
            write(&folder.path().join(name), &frame(), SCALE).unwrap();
            let bytes = std::fs::read(folder.path().join(name)).unwrap();
            assert!(String::from_utf8_lossy(&bytes).starts_with(start), "{name}");
        }
        assert_eq!(names(folder.path()), ["a.PNG", "a.html", "a.svg", "a.txt"]);
    }

    #[test]
    fn every_saved_frame_has_a_name_of_its_own_and_is_on_the_disk_when_the_writer_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("parallax-2.svg"), "mine").unwrap();
        let (send, saved) = mpsc::channel();
        let writer = FrameWriter::start(folder.path().into(), move |name| send.send(name).unwrap()).unwrap();
        writer.save(frame(), None);
        writer.save(frame(), Some("<svg/>".into()));
        drop(writer);
        let reported: Vec<String> = saved.iter().map(Result::unwrap).collect();
        assert_eq!(reported, ["parallax-1.svg", "parallax-3.svg and parallax-3.plot.svg"]);
        let all = ["parallax-1.svg", "parallax-2.svg", "parallax-3.plot.svg", "parallax-3.svg"];
        assert_eq!(names(folder.path()), all);
        assert_eq!(std::fs::read_to_string(folder.path().join(all[2])).unwrap(), "<svg/>");
    }

    #[cfg(unix)]
    #[test]
    fn a_name_that_is_taken_unseen_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        // `exists` does not see a link to nothing.
        std::os::unix::fs::symlink("nothing", folder.path().join("parallax-1.svg")).unwrap();
        assert_eq!(write_numbered(folder.path(), &frame(), None).unwrap(), "parallax-2.svg");
        assert_eq!(names(folder.path()), ["parallax-1.svg", "parallax-2.svg"]);
        assert!(folder.path().join("parallax-1.svg").is_symlink());
    }

    #[test]
    fn the_error_for_an_unknown_extension_names_all_four() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["frame.gif", "frame", ".svg"] {
            let error = write(&folder.path().join(name), &frame(), SCALE).unwrap_err().to_string();
            for ending in [".svg", ".png", ".html", ".txt"] {
                assert!(error.contains(ending), "{error}");
            }
        }
        assert!(names(folder.path()).is_empty());
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_left_unchanged() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("file"), "old").unwrap();
        for path in ["missing/a.txt", "file/a.txt"] {
            let error = write(&folder.path().join(path), &frame(), SCALE).unwrap_err().to_string();
            assert!(error.contains("there is no folder"), "{error}");
        }
        assert_eq!(names(folder.path()), ["file"]);
    }

    #[test]
    fn a_target_that_cannot_be_replaced_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("a.txt")).unwrap();
        assert!(write(&folder.path().join("a.txt"), &frame(), SCALE).is_err());
        assert_eq!(names(folder.path()), ["a.txt"]);
    }

    fn pixels(line: &str) -> Pixmap {
        Pixmap::decode_png(&png(&Buffer::with_lines([line]), 2.0).unwrap()).unwrap()
    }

    #[test]
    fn the_size_follows_from_cells_margin_and_scale() {
        let drawn = pixels("abcd");
        assert_eq!((drawn.width(), drawn.height()), ((4 * 10 + 20) * 2, (20 + 20) * 2));
    }

    #[test]
    fn text_marks_and_braille_are_drawn_and_blanks_are_empty() {
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
    fn the_font_has_every_mark() {
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
    fn an_impossible_scale_is_an_error_that_suggests_svg() {
        for scale in [0.0, -1.0, f32::NAN, f32::INFINITY, 1e6] {
            let error = png(&Buffer::with_lines(["a"]), scale).unwrap_err();
            assert!(error.to_string().contains(".svg"), "{error}");
        }
    }

    fn page(line: &str, style: Style) -> String {
        let mut buffer = Buffer::with_lines([line]);
        buffer.set_style(buffer.area, style);
        html(&buffer, "a & b")
    }

    #[test]
    fn special_characters_are_escaped_in_the_text_and_the_title() {
        let page = page("<b>&\"'", Style::new());
        assert!(page.contains("<pre>\n&lt;b&gt;&amp;&quot;&#39;\n</pre>"), "{page}");
        assert!(page.contains("<title>a &amp; b</title>"), "{page}");
    }

    #[test]
    fn named_colours_follow_the_reader_and_exact_ones_do_not() {
        assert!(page("x", Style::new().fg(Color::Cyan)).contains(".s0{color:var(--c6)}"));
        assert!(page("x", Style::new().fg(Color::Rgb(1, 2, 3))).contains(".s0{color:#010203}"));
        assert!(page("x", Style::new()).contains("prefers-color-scheme:light"));
    }

    #[test]
    fn reversed_text_swaps_text_and_background() {
        let page = page("x ", Style::new().add_modifier(Modifier::REVERSED));
        assert!(page.contains(".s0{color:var(--ground);background:var(--text)}"), "{page}");
        assert!(page.contains("<span class=\"s0\">x </span>"), "{page}");
    }

    #[test]
    fn a_wide_character_has_a_box_of_two_columns() {
        let page = page("a物b", Style::new());
        assert!(page.contains("a<span class=\"g\" style=\"width:2ch\">物</span>b"), "{page}");
    }

    #[test]
    fn a_border_is_one_box() {
        assert!(page("┌───┐", Style::new()).contains("style=\"width:5ch\">┌───┐</span>"));
    }
}
