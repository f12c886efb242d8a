//! A text file, line by line. Memory is bounded by the longest line, and that by [`LONGEST`].

use std::io::{self, BufRead, Read};
use std::path::{Path, PathBuf};

use super::open::{Share, opened};
use super::{BadLine, ENOUGH, InputError};

/// Bytes that a line may have. A longer one is a bad line: something unpacks without end, or is no file of lines.
pub const LONGEST: usize = 64 << 20;

/// Bytes of a bad line that are kept for the message.
const KEPT: usize = 400;

/// One line that is not blank.
pub struct Line<'a> {
    /// Its number from 1; of several lines that are one row, the first.
    pub number: usize,
    /// Its text without the line break.
    pub text: &'a str,
    /// Whether all lines before it were right.
    pub clean: bool,
    /// How much of the file is read, from 0 to 1; 0 where that is not known.
    pub share: f32,
}

/// Reads a file line by line and collects the bad ones.
pub struct Lines {
    path: PathBuf,
    reader: Box<dyn BufRead>,
    share: Share,
    /// Whether a line break between quotes belongs to the line.
    quoted: bool,
    bytes: Vec<u8>,
    /// Lines read.
    read: usize,
    /// The number of the line last given.
    number: usize,
    bad: Vec<BadLine>,
}

impl Lines {
    /// The lines of a file.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(path: &Path) -> Result<Self, InputError> {
        let (reader, share) = opened(path)?;
        let (bytes, bad) = (Vec::new(), Vec::new());
        Ok(Lines { path: path.into(), reader, share, quoted: false, bytes, read: 0, number: 0, bad })
    }

    /// The lines of what the program carries under this name.
    pub fn carried(name: &Path, bytes: &'static [u8]) -> Self {
        let (reader, share) = (Box::new(bytes), Share::default());
        let (bytes, bad) = (Vec::new(), Vec::new());
        Lines { path: name.into(), reader, share, quoted: false, bytes, read: 0, number: 0, bad }
    }

    /// The rows of a file: a line break between quotes does not end a row.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn rows(path: &Path) -> Result<Self, InputError> {
        Ok(Lines { quoted: true, ..Lines::open(path)? })
    }

    /// Passes over all lines up to this one.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn skip_to(&mut self, number: usize) -> Result<(), InputError> {
        while self.read < number && self.more()? {
            self.bytes.clear();
        }
        Ok(())
    }

    /// The next line that is not blank and is text; `None` at the end of the file, or after [`ENOUGH`] bad lines.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn next_line(&mut self) -> Result<Option<Line<'_>>, InputError> {
        loop {
            self.bytes.clear();
            if self.bad.len() >= ENOUGH || !self.more()? {
                return Ok(None);
            }
            self.number = self.read;
            if self.bytes.len() > LONGEST {
                self.bad(format!("a line of at most {} MB", LONGEST >> 20));
                self.rest_of_line()?;
                continue;
            }
            if self.quoted && !self.close_quotes()? {
                self.bad("a quote that is closed".into());
                continue;
            }
            if self.number == 1 && self.bytes.starts_with("\u{feff}".as_bytes()) {
                self.bytes.drain(..3);
            }
            match std::str::from_utf8(&self.bytes) {
                Ok(text) if text.trim().is_empty() => {}
                Ok(_) => break,
                Err(_) => self.bad("UTF-8 text".into()),
            }
        }
        // Looked at twice, so that the loop does not hold what it gives away.
        let text = std::str::from_utf8(&self.bytes).unwrap_or_default().trim_end_matches(['\n', '\r']);
        Ok(Some(Line { number: self.number, text, clean: self.bad.is_empty(), share: self.share.so_far() }))
    }

    /// The line last given is not what was expected.
    pub fn bad(&mut self, expected: String) {
        let found = String::from_utf8_lossy(&self.bytes[..self.bytes.len().min(KEPT)]).trim_end().into();
        self.bad.push(BadLine { file: self.path.clone(), line: self.number, expected, found });
    }

    /// The end.
    ///
    /// # Errors
    /// Any line was bad.
    pub fn end(self) -> Result<(), InputError> {
        if self.bad.is_empty() { Ok(()) } else { Err(InputError::BadLines(self.bad)) }
    }

    /// Appends the next line, or the beginning of one that is too long; whether there was one.
    fn more(&mut self) -> Result<bool, InputError> {
        let room = (LONGEST + 1).saturating_sub(self.bytes.len()) as u64;
        let got = self.reader.by_ref().take(room).read_until(b'\n', &mut self.bytes);
        let got = got.map_err(|error| InputError::unreadable(&self.path, &error))?;
        self.read += usize::from(got > 0);
        Ok(got > 0)
    }

    /// Appends lines until no quote is open; whether that was possible.
    fn close_quotes(&mut self) -> Result<bool, InputError> {
        let quotes = |bytes: &[u8]| bytes.iter().filter(|byte| **byte == b'"').count();
        let mut open = quotes(&self.bytes) % 2 == 1;
        while open {
            let before = self.bytes.len();
            if before > LONGEST || !self.more()? {
                return Ok(false);
            }
            open = quotes(&self.bytes[before..]) % 2 == 0;
        }
        Ok(true)
    }

    fn rest_of_line(&mut self) -> Result<(), InputError> {
        loop {
            let unreadable = |error: io::Error| InputError::unreadable(&self.path, &error);
            let buffer = self.reader.fill_buf().map_err(unreadable)?;
            if buffer.is_empty() {
                return Ok(());
            }
            let (used, ended) = match buffer.iter().position(|byte| *byte == b'\n') {
                Some(at) => (at + 1, true),
                None => (buffer.len(), false),
            };
            self.reader.consume(used);
            if ended {
                return Ok(());
            }
        }
    }
}

/// Calls `each` on every line of a text file with its number from 1, collecting the bad ones.
///
/// `each` returns what was expected when a line is not right. Blank lines are passed over.
///
/// # Errors
/// The file cannot be read, or any line was bad.
pub fn lines(path: &Path, mut each: impl FnMut(usize, &str) -> Result<(), String>) -> Result<(), InputError> {
    let mut lines = Lines::open(path)?;
    while let Some(line) = lines.next_line()? {
        if let Err(expected) = each(line.number, line.text) {
            lines.bad(expected);
        }
    }
    lines.end()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn file(bytes: &[u8]) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    fn all(mut lines: Lines) -> (Vec<(usize, String)>, Result<(), String>) {
        let mut found = Vec::new();
        while let Some(line) = lines.next_line().unwrap() {
            found.push((line.number, line.text.to_owned()));
        }
        (found, lines.end().map_err(|error| error.to_string()))
    }

    #[test]
    fn blank_lines_are_passed_over_and_counted_and_a_byte_order_mark_is_no_text() {
        let file = file("\u{feff}a\r\n\n \nb".as_bytes());
        let (found, end) = all(Lines::open(file.path()).unwrap());
        assert_eq!((found, end), (vec![(1, "a".into()), (4, "b".into())], Ok(())));
    }

    #[test]
    fn a_line_that_is_too_long_is_bad_and_the_next_one_is_read() {
        let mut bytes = vec![b'x'; LONGEST + 3_000];
        bytes.extend(b"\nb\n");
        let file = file(&bytes);
        let (found, end) = all(Lines::open(file.path()).unwrap());
        assert_eq!(found, [(2, "b".to_owned())]);
        assert!(end.unwrap_err().contains(":1: expected a line of at most 64 MB, found `xxx"));
    }

    #[test]
    fn a_file_of_bad_lines_is_not_read_to_its_end() {
        let file = file("x\n".repeat(5_000).as_bytes());
        let mut seen = 0;
        let error = lines(file.path(), |_, _| {
            seen += 1;
            Err("y".into())
        });
        let told = error.unwrap_err().to_string();
        assert_eq!((seen, told.lines().count()), (ENOUGH, 22), "{told}");
        assert!(told.contains("and at least 980 more"), "{told}");
    }

    #[test]
    fn a_row_goes_on_over_a_line_break_between_quotes_and_an_open_quote_is_told_where_it_begins() {
        let file = file(b"a,\"b\nc\"\n\nd,e\nf,\"g\nh\n");
        let (found, end) = all(Lines::rows(file.path()).unwrap());
        assert_eq!(found, [(1, "a,\"b\nc\"".to_owned()), (4, "d,e".to_owned())]);
        assert!(end.unwrap_err().contains(":5: expected a quote that is closed, found `f,"));
    }

    #[test]
    fn what_was_read_before_is_passed_over() {
        let file = file(b"a\nb\nc\n");
        let mut lines = Lines::open(file.path()).unwrap();
        lines.skip_to(2).unwrap();
        assert_eq!(all(lines).0, [(3, "c".to_owned())]);
    }
}
