//! Draws the frame from the state, without changing it or working anything out; and plots as pictures, where the terminal shows some.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::{Clear, Paragraph};

use super::app::App;
use super::layout::arrange;
use super::pages::page;
use super::screens::palette::screen as palette;
use super::session::record;
use super::theme::{Meaning, Theme};
use super::widgets::{footer, header, text};

/// Draws a whole frame.
pub fn draw(app: &App, theme: Theme, frame: &mut Frame<'_>) {
    let area = frame.area();
    let panes = arrange(area, app);
    let page = page(app.screen);
    if page.fills_the_top() {
        let top = Rect { y: area.y, height: panes.body.bottom() - area.y, ..panes.body };
        page.draw(app, theme, top, frame);
    } else {
        header::draw(app, theme, &panes, frame);
        page.draw(app, theme, panes.body, frame);
    }
    palette::draw(app, theme, panes.body, frame);
    record::draw(app, theme, panes.caption, frame);
    footer::draw(app, theme, &panes, frame);
    hint(app, theme, panes.footer, frame);
    text::finish(theme, app.glyphs, frame.buffer_mut());
}

/// The most rows of an explanation.
const HINT_ROWS: usize = 5;

/// Explains a figure in place of the keys, and of the rows above them if it needs more.
fn hint(app: &App, theme: Theme, footer: Rect, frame: &mut Frame<'_>) {
    let Some(hint) = app.hint.as_ref().filter(|_| footer.height > 0) else { return };
    let rows = text::wrap(hint, usize::from(footer.width).saturating_sub(1), HINT_ROWS);
    let height = (rows.len() as u16).clamp(1, footer.bottom());
    let area = Rect { y: footer.bottom() - height, height, ..footer };
    let line = |row: std::ops::Range<usize>| {
        Line::from(text::span(format!(" {}", &hint[row]), Meaning::Title, theme))
    };
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(rows.into_iter().map(line).collect::<Vec<_>>()), area);
}

pub mod pictures {
    //! Plots as pictures by kitty's protocol, iTerm2's, or as sixels. A frame leaves their cells out, so it never writes over them.

    use std::collections::BTreeMap;
    use std::fmt::Write as _;
    use std::io::{self, Stdout, Write};

    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use ratatui::Terminal;
    use ratatui::backend::CrosstermBackend;
    use ratatui::buffer::{Buffer, CellDiffOption};
    use ratatui::layout::Rect;

    use crate::report::{self, PictureError, Pixels};
    use crate::tui::app::App;
    use crate::tui::config::Pictures;
    use crate::tui::pages::page;
    use crate::tui::theme::Theme;

    /// The most characters of base64 in one sequence of kitty's.
    const CHUNK: usize = 4096;

    /// The terminal that frames are drawn to.
    pub type Screenful = Terminal<CrosstermBackend<Stdout>>;

    /// Makes the next frame draw every cell. `clear` would ask the terminal for its cursor, and the listening thread would take the reply.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn redraw_all(terminal: &mut Screenful) -> io::Result<()> {
        let area = terminal.size()?;
        terminal.resize(Rect::new(0, 0, area.width, area.height))
    }

    /// The picture of the plot on screen.
    #[derive(Debug)]
    pub struct Picture {
        by: Pictures,
        /// Its place and its drawing.
        shown: Option<(Rect, String)>,
    }

    impl Picture {
        /// No picture yet, in a terminal that shows them this way.
        pub fn of(by: Pictures) -> Self {
            Picture { by, shown: None }
        }

        /// Whether the terminal shows pictures.
        pub fn is_shown(&self) -> bool {
            !matches!(self.by, Pictures::Auto | Pictures::Off)
        }

        /// Forgets the picture, because the screen was drawn over.
        pub fn forget(&mut self) {
            self.shown = None;
        }

        /// Draws a frame, and the picture of its plot where the terminal shows pictures.
        ///
        /// # Errors
        /// The terminal is gone.
        pub fn draw(&mut self, app: &App, theme: Theme, terminal: &mut Screenful) -> io::Result<()> {
            let left = frame(app, theme, terminal)?;
            if !app.pictures {
                return Ok(());
            }
            // A picture would hide the list of actions over its plot.
            let drawing = page(app.screen).plot(app).filter(|_| app.palette.is_none());
            let wanted = left.zip(drawing);
            if wanted == self.shown {
                return Ok(());
            }
            if self.shown.take().is_some() {
                io::stdout().write_all(clear(self.by).as_bytes())?;
                redraw_all(terminal)?;
                frame(app, theme, terminal)?;
            }
            if let Some((place, drawing)) = &wanted {
                let known = crossterm::terminal::window_size().ok();
                let known = known.filter(|size| size.width > 0 && size.columns > 0 && size.rows > 0);
                let cell = known.map_or(CELL, |size| (size.width / size.columns, size.height / size.rows));
                // A plot that cannot be drawn stays blank; it can still be saved.
                if let Ok(text) = show(self.by, drawing, *place, cell) {
                    io::stdout().write_all(text.as_bytes())?;
                    io::stdout().flush()?;
                }
            }
            self.shown = wanted;
            Ok(())
        }
    }

    /// Draws a frame. Returns the cells that it left to a picture.
    fn frame(app: &App, theme: Theme, terminal: &mut Screenful) -> io::Result<Option<Rect>> {
        let mut left = None;
        terminal.draw(|frame| {
            super::draw(app, theme, frame);
            left = place(frame.buffer_mut());
        })?;
        Ok(left)
    }

    /// The pixels of a cell, if the terminal does not say.
    const CELL: (u16, u16) = (8, 16);

    /// The cells of a frame that were left to a picture; `None` if there are none.
    pub fn place(buffer: &Buffer) -> Option<Rect> {
        let left = buffer.area.positions().filter(|at| buffer[*at].diff_option == CellDiffOption::Skip);
        left.map(|at| Rect::new(at.x, at.y, 1, 1)).reduce(Rect::union)
    }

    /// What takes all pictures off the screen, where writing text over them does not.
    pub fn clear(by: Pictures) -> &'static str {
        match by {
            Pictures::Kitty => "\x1b_Ga=d,d=A,q=2\x1b\\",
            _ => "",
        }
    }

    /// What shows a drawing in an area of the screen, whose cells have so many pixels. The cursor stays.
    ///
    /// # Errors
    /// The drawing is not valid SVG, or there is no room.
    pub fn show(by: Pictures, drawing: &str, area: Rect, cell: (u16, u16)) -> Result<String, PictureError> {
        let room = |cells: u16, pixels: u16| f32::from(cells) * f32::from(pixels);
        let pixels = report::fitted(drawing, (room(area.width, cell.0), room(area.height, cell.1)))?;
        let mut out = format!("\x1b7{}", clear(by));
        for row in area.top()..area.bottom() {
            let _ = write!(out, "\x1b[{};{}H{:w$}", row + 1, area.x + 1, "", w = usize::from(area.width));
        }
        let _ = write!(out, "\x1b[{};{}H", area.y + 1, area.x + 1);
        out += &match by {
            Pictures::Kitty => kitty(&pixels),
            Pictures::ITerm2 => iterm2(&pixels),
            Pictures::Sixel => sixel(&pixels),
            Pictures::Auto | Pictures::Off => String::new(),
        };
        Ok(out + "\x1b8")
    }

    /// A PNG in kitty's graphics protocol, transmitted and shown at once.
    fn kitty(pixels: &Pixels) -> String {
        let text = STANDARD.encode(&pixels.png);
        let chunks = text.as_bytes().chunks(CHUNK);
        let last = chunks.len().saturating_sub(1);
        let mut out = String::new();
        for (i, chunk) in chunks.enumerate() {
            let keys = if i == 0 { "a=T,f=100,q=2,C=1," } else { "" };
            let more = u8::from(i < last);
            let _ = write!(out, "\x1b_G{keys}m={more};{}\x1b\\", String::from_utf8_lossy(chunk));
        }
        out
    }

    /// A PNG as an inline image of iTerm2.
    fn iterm2(Pixels { wide, high, png, .. }: &Pixels) -> String {
        let (size, text) = (png.len(), STANDARD.encode(png));
        format!(
            "\x1b]1337;File=inline=1;size={size};width={wide}px;height={high}px;doNotMoveCursor=1:{text}\x07"
        )
    }

    /// The steps of red, green and blue of a sixel's colours: six of each are enough for lines and letters.
    const STEPS: usize = 6;

    /// Sixels (DEC STD 070): bands of six rows, in each band one line for every colour, and in it a character for every column.
    fn sixel(Pixels { wide, high, colours, .. }: &Pixels) -> String {
        let step = |part: u8| (usize::from(part) * (STEPS - 1) + 127) / 255;
        let index = |[r, g, b]: [u8; 3]| (step(r) * STEPS + step(g)) * STEPS + step(b);
        let indexed: Vec<usize> = colours.iter().map(|colour| index(*colour)).collect();
        let mut out = format!("\x1bPq\"1;1;{wide};{high}");
        let mut used = [false; STEPS * STEPS * STEPS];
        indexed.iter().for_each(|colour| used[*colour] = true);
        for colour in (0..used.len()).filter(|colour| used[*colour]) {
            let percent = [colour / STEPS / STEPS, colour / STEPS % STEPS, colour % STEPS]
                .map(|part| part * 100 / (STEPS - 1));
            let _ = write!(out, "#{colour};2;{};{};{}", percent[0], percent[1], percent[2]);
        }
        for band in indexed.chunks(6 * wide.max(&1)) {
            let mut lines: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
            for (at, colour) in band.iter().enumerate() {
                lines.entry(*colour).or_insert_with(|| vec![0; *wide])[at % wide] |= 1 << (at / wide);
            }
            for (colour, bits) in lines {
                let _ = write!(out, "#{colour}");
                for run in bits.chunk_by(|one, other| one == other) {
                    let sixel = char::from(b'?' + run[0]);
                    let _ = match run.len() {
                        1..=3 => run.iter().try_for_each(|_| write!(out, "{sixel}")),
                        count => write!(out, "!{count}{sixel}"),
                    };
                }
                out.push('$');
            }
            out.push('-');
        }
        out + "\x1b\\"
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        /// A red square on the left of a white one.
        const DRAWING: &str = r#"<svg xmlns="http://www.w3.org/2000/svg" width="20" height="10"><rect width="10" height="10" fill="red"/></svg>"#;

        fn shown(by: Pictures) -> String {
            show(by, DRAWING, Rect::new(4, 2, 10, 10), (10, 20)).unwrap()
        }

        #[test]
        fn a_picture_is_drawn_over_blank_cells_and_leaves_the_cursor_where_it_was() {
            for by in [Pictures::Kitty, Pictures::ITerm2, Pictures::Sixel] {
                let text = shown(by);
                assert!(text.starts_with("\x1b7") && text.ends_with("\x1b8"), "{by:?}");
                assert!(text.contains("\x1b[3;5H          \x1b[4;5H"), "{by:?}");
            }
            assert!(shown(Pictures::Kitty).contains(clear(Pictures::Kitty)), "the picture before goes");
        }

        #[test]
        fn kitty_and_iterm2_get_a_png_as_large_as_fits() {
            let kitty = shown(Pictures::Kitty);
            let data = |text: &str, from: &str, to: char| {
                let at = text.find(from).unwrap() + from.len();
                let text = &text[at..];
                STANDARD.decode(&text[..text.find(to).unwrap()]).unwrap()
            };
            let png = data(&kitty, "a=T,f=100,q=2,C=1,m=0;", '\x1b');
            assert_eq!(&png[1..4], b"PNG");
            let width = u32::from_be_bytes(png[16..20].try_into().unwrap());
            assert!((98..=100).contains(&width), "ten cells of ten pixels: {width}");
            assert_eq!(data(&shown(Pictures::ITerm2), "doNotMoveCursor=1:", '\x07'), png);
        }

        #[test]
        fn a_long_picture_reaches_kitty_in_pieces_of_which_only_the_last_ends_it() {
            let pixels = Pixels { wide: 1, high: 1, colours: vec![[0; 3]], png: vec![7; 7_000] };
            let text = kitty(&pixels);
            assert_eq!(text.matches("m=1;").count(), 2);
            assert_eq!(text.matches("m=0;").count(), 1);
            assert_eq!(text.matches("a=T").count(), 1);
        }

        #[test]
        fn sixels_have_one_line_for_every_colour_of_a_band_of_six_rows() {
            let red = [255, 0, 0];
            let colours = [vec![red; 4], vec![[255; 3]; 4]].concat();
            let pixels = Pixels { wide: 4, high: 2, colours, png: Vec::new() };
            // Colour 180 is red: 5 · 36. The upper row is bit 1, the lower one bit 2.
            assert_eq!(
                sixel(&pixels),
                "\x1bPq\"1;1;4;2#180;2;100;0;0#215;2;100;100;100#180!4@$#215!4A$-\x1b\\"
            );
        }

        #[test]
        fn a_terminal_is_known_by_its_environment_and_a_multiplexer_passes_nothing_on() {
            let by = |pairs: &[(&str, &str)]| {
                let find = |name: &str| {
                    pairs.iter().find(|(own, _)| *own == name).map(|(_, value)| (*value).to_owned())
                };
                Pictures::Auto.of_terminal(find)
            };
            assert_eq!(by(&[("TERM", "xterm-kitty")]), Pictures::Kitty);
            assert_eq!(by(&[("TERM", "xterm-256color"), ("KITTY_WINDOW_ID", "1")]), Pictures::Kitty);
            assert_eq!(by(&[("TERM", "xterm-256color"), ("TERM_PROGRAM", "iTerm.app")]), Pictures::ITerm2);
            assert_eq!(by(&[("TERM", "foot")]), Pictures::Sixel);
            assert_eq!(by(&[("TERM", "xterm-256color")]), Pictures::Off);
            assert_eq!(by(&[("TERM", "xterm-kitty"), ("TMUX", "socket,1,0")]), Pictures::Off);
            assert_eq!(Pictures::Sixel.of_terminal(|_| None), Pictures::Sixel, "the configuration wins");
        }

        #[test]
        fn the_cells_left_out_of_a_frame_are_the_place_of_its_picture() {
            let mut buffer = Buffer::empty(Rect::new(0, 0, 20, 10));
            assert_eq!(place(&buffer), None);
            for at in Rect::new(3, 2, 5, 4).positions() {
                buffer[at].set_diff_option(CellDiffOption::Skip);
            }
            assert_eq!(place(&buffer), Some(Rect::new(3, 2, 5, 4)));
        }
    }
}
