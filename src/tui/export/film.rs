//! Writes frames as an animated SVG without a script. Every distinct row is drawn once. The contents of a row of the screen are laid side by
//! side, and a style sheet moves them so that the right one is in the picture.

use std::collections::HashMap;
use std::fmt::Write;
use std::time::Duration;

use super::frame::{Dump, rows};
use super::frame::{HIGH, WIDE};
use super::svg::{MARGIN, Picture, beginning, ground};
use crate::tui::theme::palette::Rgb;

/// The contents of one row of the screen over time.
#[derive(Default)]
struct FilmRow {
    /// The numbers of its distinct contents.
    pieces: Vec<usize>,
    /// Times in seconds, each with the place in `pieces` of what is shown from then on.
    changes: Vec<(f64, usize)>,
}

/// An animation that grows frame by frame. It holds distinct rows but no frames, so a long session in a large terminal does not fill the
/// memory.
#[derive(Default)]
pub struct Film {
    /// Every distinct row as markup, with its number.
    drawn: HashMap<String, usize>,
    rows: Vec<FilmRow>,
    columns: u16,
    ground: Option<Rgb>,
    /// The length in seconds.
    end: f64,
    /// The start and duration of the longest frame.
    still: (f64, Duration),
}

impl Film {
    /// Adds a frame and its duration.
    pub fn take(&mut self, frame: &Dump, lasts: Duration) {
        let buffer = frame.buffer();
        let ground = *self.ground.get_or_insert_with(|| ground(buffer));
        let rows = rows(buffer);
        self.columns = self.columns.max(buffer.area.width);
        while self.rows.len() < rows.len() {
            let mut row = FilmRow::default();
            // Earlier frames were shorter.
            if self.end > 0.0 {
                row.show(0.0, self.number(String::new()));
            }
            self.rows.push(row);
        }
        for i in 0..self.rows.len() {
            let mut picture = Picture::on(ground);
            if let Some(row) = rows.get(i) {
                picture.row(row, 0.0);
            }
            let row = self.number(picture.markup());
            self.rows[i].show(self.end, row);
        }
        if lasts > self.still.1 {
            self.still = (self.end, lasts);
        }
        self.end += lasts.as_secs_f64();
    }

    /// Returns the number of a drawn row, a new one if it was not drawn before.
    fn number(&mut self, drawn: String) -> usize {
        let next = self.drawn.len();
        *self.drawn.entry(drawn).or_insert(next)
    }

    /// Returns a self-contained SVG that plays in a loop. A viewer that does not animate it, or is set to reduced motion, shows the longest
    /// frame.
    pub fn svg(self, title: &str) -> String {
        let ground = self.ground.unwrap_or(Rgb(0, 0, 0));
        let high = self.rows.len() as u16;
        let far = f32::from(self.columns) * WIDE + 2.0 * MARGIN;
        let mut style =
            String::from("<style>\n@media(prefers-reduced-motion:reduce){g{animation:none!important}}\n");
        let mut body = String::new();
        for (i, row) in self.rows.iter().enumerate() {
            row.write(i, (self.still.0, self.end), far, &mut style, &mut body);
        }
        style.push_str("</style>\n<defs>\n");
        let mut all: Vec<_> = self.drawn.into_iter().filter(|(markup, _)| !markup.is_empty()).collect();
        all.sort_by_key(|(_, number)| *number);
        for (markup, number) in all {
            let _ = writeln!(style, "<g id=\"{number}\">{}</g>", markup.trim_end());
        }
        style.push_str("</defs>\n");
        beginning((self.columns, high), ground, title, &style) + &body + "</g>\n</svg>\n"
    }
}

impl FilmRow {
    /// Shows the drawn row of this number from `now` on.
    fn show(&mut self, now: f64, row: usize) {
        let place = self.pieces.iter().position(|known| *known == row).unwrap_or_else(|| {
            self.pieces.push(row);
            self.pieces.len() - 1
        });
        if self.changes.last().is_none_or(|(_, shown)| *shown != place) {
            self.changes.push((now, place));
        }
    }

    /// Writes the row. The content shown at `still` lies in the picture; the animation moves it by whole widths from there.
    fn write(&self, i: usize, (still, end): (f64, f64), far: f32, style: &mut String, body: &mut String) {
        let before = |(at, _): &&(f64, usize)| *at <= still;
        let in_place = self.changes.iter().take_while(before).last().map_or(0, |(_, place)| *place);
        let aside = |place: usize| (place as f32 - in_place as f32) * far;
        let y = MARGIN + i as f32 * HIGH;
        let moves = self.changes.len() > 1;
        if moves {
            let _ = write!(style, "@keyframes r{i}{{");
            for (at, place) in &self.changes {
                let percent = format!("{:.3}", at / end.max(f64::MIN_POSITIVE) * 100.0);
                let percent = percent.trim_end_matches('0').trim_end_matches('.');
                let _ = write!(style, "{percent}%{{transform:translate({}px)}}", 0.0 - aside(*place));
            }
            let _ = writeln!(style, "}}\n.r{i}{{animation:r{i} {end:.2}s step-end infinite}}");
            let _ = write!(body, "<g class=\"r{i}\">");
        }
        for (place, row) in self.pieces.iter().enumerate() {
            let _ = write!(body, "<use href=\"#{row}\" x=\"{}\" y=\"{y}\"/>", aside(place));
        }
        body.push_str(if moves { "</g>\n" } else { "\n" });
    }
}

#[cfg(test)]
mod tests {
    use ratatui::buffer::Buffer;
    use resvg::usvg::roxmltree::Document;

    use super::*;

    fn second(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    fn film(frames: &[(&Buffer, Duration)], title: &str) -> String {
        of(frames).svg(title)
    }

    fn of(frames: &[(&Buffer, Duration)]) -> Film {
        let mut film = Film::default();
        frames.iter().for_each(|(frame, lasts)| film.take(&Dump::of((*frame).clone()), *lasts));
        film
    }

    fn frames<const N: usize>(texts: [[&str; 2]; N]) -> Vec<Buffer> {
        texts.map(Buffer::with_lines).into()
    }

    #[test]
    fn a_row_is_drawn_once_however_often_it_is_shown() {
        let all = frames([["same", "one"], ["same", "two"], ["same", "one"]]);
        let film = film(&[(&all[0], second(1)), (&all[1], second(2)), (&all[2], second(1))], "a & b");
        Document::parse(&film).unwrap();
        for text in [">same<", ">one<", ">two<"] {
            assert_eq!(film.matches(text).count(), 1, "{text}");
        }
        assert!(film.contains("<title>a &amp; b</title>"));
        assert_eq!(film.matches("@keyframes").count(), 1);
    }

    #[test]
    fn changes_happen_at_their_share_of_the_length_and_the_longest_frame_is_in_place() {
        let all = frames([["abcd", "one"], ["abcd", "two"], ["abcd", "one"]]);
        let film = film(&[(&all[0], second(1)), (&all[1], second(2)), (&all[2], second(1))], "t");
        let moves =
            "0%{transform:translate(60px)}25%{transform:translate(0px)}75%{transform:translate(60px)}";
        assert!(film.contains(moves), "{film}");
        assert!(film.contains("animation:r1 4.00s step-end infinite"), "{film}");
        assert!(
            film.contains("<use href=\"#1\" x=\"-60\" y=\"30\"/><use href=\"#2\" x=\"0\" y=\"30\"/>"),
            "{film}"
        );
    }

    #[test]
    fn memory_grows_with_distinct_rows_and_not_with_frames() {
        let all = frames([["same", "one"], ["same", "two"]]);
        let long: Vec<_> = (0..1000).map(|i| (&all[i % 2], second(1))).collect();
        let film = of(&long);
        assert_eq!(film.drawn.len(), 3);
        let held: Vec<_> = film.rows.iter().map(|row| (row.pieces.len(), row.changes.len())).collect();
        assert_eq!(held, [(1, 1), (2, 1000)]);
    }

    #[test]
    fn a_film_without_frames_is_a_valid_document() {
        Document::parse(&film(&[], "t")).unwrap();
    }

    #[test]
    fn frames_of_several_sizes_fit_the_largest() {
        let (small, large) = (Buffer::with_lines(["ab"]), Buffer::with_lines(["abcd", "efgh"]));
        let film = film(&[(&small, second(1)), (&large, second(1))], "t");
        assert!(film.contains("width=\"60\" height=\"60\""), "{film}");
    }
}
