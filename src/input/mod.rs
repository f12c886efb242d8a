//! Reads the user's files, plain or compressed, and reports bad lines with file and line number.
//!
//! `stream` accepts regular files and streams and nothing else, `file` opens them within limits and defines the errors; this file reads
//! line by line and splits table rows. Reading line by line needs memory for the longest line only, at most [`LONGEST`]. Of formats, only
//! table rows and JSON are known here.
//! May use: nothing of this crate.

use std::io;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use file::{Share, open_with_share};
use stream::{Stream, within};

mod file;
mod stream;

pub use file::{
    BadLine, ENOUGH, Expected, InputError, LISTED, SMALL, bounded, bytes, check_output, check_replaceable,
    ending, excerpt, is_harmful, open, open_whole, read_json, stem, tame, text,
};
pub use stream::{WHOLE, check_regular, is_stream, open_regular, read_at, read_regular, read_regular_text};

/// The limit of a line in bytes. A longer one is a bad line: an archive that unpacks without end, or a file without lines.
pub const LONGEST: usize = 64 << 20;

/// The limit in bytes, unpacked, of a file of lines that is held in memory, such as labels or questions.
const HELD: u64 = 1 << 30;

/// The number of bytes of a bad line that are shown in the message.
const SHOWN: usize = 400;

/// One line that is not blank.
pub struct Line<'a> {
    /// Its number, from 1; for a row of several lines, that of the first.
    pub number: usize,
    /// Its text without the line break.
    pub text: &'a str,
    /// Whether all earlier lines were valid.
    pub clean: bool,
    /// The share of the file read so far, from 0 to 1; 0 if unknown.
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
    /// The number of lines read.
    read: usize,
    /// The number of bytes read, unpacked.
    size: u64,
    /// The number of the last line returned.
    number: usize,
    bad: Vec<BadLine>,
}

impl Lines {
    /// The lines of a file.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(path: &Path) -> Result<Self, InputError> {
        let (reader, share) = open_with_share(path)?;
        Ok(Lines::of(path, reader, share))
    }

    /// Reads a stream as data arrives, and any other file as [`Lines::open`] does.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open_streaming(path: &Path) -> Result<Self, InputError> {
        if !is_stream(path) {
            return Lines::open(path);
        }
        let stream = Stream::open(path).map_err(|error| InputError::unreadable(path, &error))?;
        Ok(Lines::of(path, Box::new(BufReader::new(stream)), Share::default()))
    }

    fn of(path: &Path, reader: Box<dyn BufRead>, share: Share) -> Self {
        let (bytes, bad) = (Vec::new(), Vec::new());
        Lines { path: path.into(), reader, share, quoted: false, bytes, read: 0, size: 0, number: 0, bad }
    }

    /// The lines of a built-in file, under this name.
    pub fn builtin(name: &Path, bytes: &'static [u8]) -> Self {
        Lines::of(name, Box::new(bytes), Share::default())
    }

    /// The rows of a file: a line break between quotes does not end a row.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn rows(path: &Path) -> Result<Self, InputError> {
        Ok(Lines { quoted: true, ..Lines::open(path)? })
    }

    /// Skips the first `number` lines.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn skip_to(&mut self, number: usize) -> Result<(), InputError> {
        while self.read < number && self.read_more()? {
            self.bytes.clear();
        }
        Ok(())
    }

    /// The next non-blank line of text; `None` at the end of the file, or after [`ENOUGH`] bad lines.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn next_line(&mut self) -> Result<Option<Line<'_>>, InputError> {
        loop {
            self.bytes.clear();
            if self.bad.len() >= ENOUGH || !self.read_more()? {
                return Ok(None);
            }
            self.number = self.read;
            let closed = !self.quoted || self.close_quotes()?;
            if self.bytes.len() > LONGEST {
                let what = if self.read == self.number { "line" } else { "row" };
                self.bad(format!("a {what} of at most {} MB", LONGEST >> 20));
                if !self.bytes.ends_with(b"\n") {
                    self.skip_rest_of_line()?;
                }
                continue;
            }
            if !closed {
                self.bad("a quote that is closed");
                continue;
            }
            if self.number == 1 && self.bytes.starts_with("\u{feff}".as_bytes()) {
                self.bytes.drain(..3);
            }
            match std::str::from_utf8(&self.bytes) {
                Ok(text) if text.trim().is_empty() => {}
                Ok(_) => break,
                Err(_) => self.bad("UTF-8 text"),
            }
        }
        // Converted again, because the borrow checker does not let the loop return a line that it borrowed.
        let text = std::str::from_utf8(&self.bytes).unwrap_or_default().trim_end_matches(['\n', '\r']);
        Ok(Some(Line { number: self.number, text, clean: self.bad.is_empty(), share: self.share.so_far() }))
    }

    /// Records the last line as bad.
    pub fn bad(&mut self, expected: impl Into<Expected>) {
        let found = String::from_utf8_lossy(&self.bytes[..self.bytes.len().min(SHOWN)]).trim_end().into();
        let Expected(expected) = expected.into();
        self.bad.push(BadLine { file: self.path.clone(), line: self.number, expected, found });
    }

    /// Ends the reading and reports the bad lines.
    ///
    /// # Errors
    /// Any line was bad.
    pub fn end(self) -> Result<(), InputError> {
        if self.bad.is_empty() { Ok(()) } else { Err(InputError::BadLines(self.bad)) }
    }

    /// Appends the next line, or the beginning of one that is too long. Returns whether there was one.
    fn read_more(&mut self) -> Result<bool, InputError> {
        let room = (LONGEST + 1).saturating_sub(self.bytes.len()) as u64;
        let got = self.reader.by_ref().take(room).read_until(b'\n', &mut self.bytes);
        let got = got.map_err(|error| InputError::unreadable(&self.path, &error))?;
        // Text has no runs of zero bytes; without this check a sparse file of gigabytes would be read to its end as one line.
        if self.bytes.len() > LONGEST && self.bytes.ends_with(&[0; 64]) {
            let reason = "not a text file: it holds zero bytes".into();
            return Err(InputError::Unreadable { path: self.path.clone(), reason });
        }
        self.read += usize::from(got > 0);
        self.size += got as u64;
        Ok(got > 0)
    }

    /// Appends lines until no quote is open. Returns whether that succeeded.
    fn close_quotes(&mut self) -> Result<bool, InputError> {
        let quotes = |bytes: &[u8]| bytes.iter().filter(|byte| **byte == b'"').count();
        let mut open = quotes(&self.bytes) % 2 == 1;
        while open {
            let before = self.bytes.len();
            if before > LONGEST || !self.read_more()? {
                return Ok(false);
            }
            open = quotes(&self.bytes[before..]) % 2 == 0;
        }
        Ok(true)
    }

    fn skip_rest_of_line(&mut self) -> Result<(), InputError> {
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
/// `each` returns what it expected if a line is invalid. Blank lines are skipped.
///
/// # Errors
/// The file cannot be read, or any line was bad.
pub fn lines(
    path: &Path,
    mut each: impl FnMut(usize, &str) -> Result<(), Expected>,
) -> Result<(), InputError> {
    let mut lines = Lines::open(path)?;
    let held = |size| within(size, HELD).map_err(|error| InputError::unreadable(path, &error));
    held(lines.share.size)?;
    while let Some(line) = lines.next_line()? {
        if let Err(expected) = each(line.number, line.text) {
            lines.bad(expected);
        }
        held(lines.size)?;
    }
    lines.end()
}

/// The fields of a table row, unquoted by the rule of [`unquote`]. A comma between quotes belongs to its field; a tab always
/// separates.
///
/// Does not use the `csv` crate, which never reports an unbalanced quote: one lone quote would swallow the rest of a file.
///
/// # Errors
/// The quotes are not balanced.
pub fn fields(row: &str, separator: char) -> Result<Vec<String>, Expected> {
    let (mut fields, mut start, mut open) = (Vec::new(), 0, false);
    for (at, c) in row.char_indices() {
        open ^= c == '"' && separator == ',';
        if c == separator && !open {
            fields.push(unquote(&row[start..at])?);
            start = at + c.len_utf8();
        }
    }
    fields.push(unquote(&row[start..])?);
    Ok(fields)
}

/// Returns the name nearest to `text`, if at most half of the name's characters differ: for "did you mean …?". Ignores case. Of equally
/// near names it returns the first.
pub fn nearest<'n>(text: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let text = text.to_lowercase();
    let length = text.chars().count();
    let near = names.into_iter().filter_map(|name| {
        let lower = name.to_lowercase();
        let count = lower.chars().count();
        // Texts differ by at least the difference of their lengths, so a text of a megabyte is not compared character by character.
        if count.abs_diff(length) > count / 2 {
            return None;
        }
        let distance = strsim::levenshtein(&text, &lower);
        (distance <= count / 2).then_some((distance, name))
    });
    near.min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}

/// Removes the quotes of a field. It counts as quoted if it begins and ends with `"`. A field in quotes must double its inner
/// quotes.
///
/// # Errors
/// The quotes are not balanced. A lone quote must never swallow the rest of a file without an error.
pub fn unquote(field: &str) -> Result<String, Expected> {
    let inner = field.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let Some(inner) = inner else {
        let unbalanced =
            field.starts_with('"') || (field.ends_with('"') && field.matches('"').count() % 2 == 1);
        return if unbalanced { Err("quotes that are closed, or none".into()) } else { Ok(field.to_owned()) };
    };
    let single = inner.replace("\"\"", "");
    if single.contains('"') { Err("inner quotes doubled".into()) } else { Ok(inner.replace("\"\"", "\"")) }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

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
    fn blank_lines_are_skipped_but_counted_and_a_byte_order_mark_is_removed() {
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
    fn a_sparse_file_is_no_text_and_is_not_read_to_its_end() {
        let file = file(b"a\n");
        file.as_file().set_len(1 << 40).unwrap();
        let mut lines = Lines::open(file.path()).unwrap();
        assert!(lines.next_line().unwrap().is_some());
        assert!(lines.next_line().is_err_and(|error| error.to_string().contains("zero bytes")));
    }

    #[test]
    fn a_bad_line_of_json_is_named_by_its_place_in_the_file_alone() {
        let file = file(b"{}\nnot json\n");
        let read = |_, line: &str| match serde_json::from_str::<serde_json::Value>(line) {
            Ok(_) => Ok(()),
            Err(error) => Err(Expected(format!("an object ({error})"))),
        };
        let error = lines(file.path(), read).unwrap_err().to_string();
        assert!(
            error.contains(":2: expected an object (expected ident at column 2), found `not json`"),
            "{error}"
        );
    }

    #[test]
    fn a_file_of_bad_lines_is_not_read_to_the_end() {
        let file = file("x\n".repeat(5_000).as_bytes());
        let mut seen = 0;
        let error = lines(file.path(), |_, _| {
            seen += 1;
            Err("y".into())
        });
        let message = error.unwrap_err().to_string();
        assert_eq!((seen, message.lines().count()), (ENOUGH, 22), "{message}");
        assert!(message.contains("and at least 980 more"), "{message}");
    }

    #[test]
    fn a_row_continues_over_a_line_break_between_quotes_and_an_open_quote_is_reported_at_its_start() {
        let file = file(b"a,\"b\nc\"\n\nd,e\nf,\"g\nh\n");
        let (found, end) = all(Lines::rows(file.path()).unwrap());
        assert_eq!(found, [(1, "a,\"b\nc\"".to_owned()), (4, "d,e".to_owned())]);
        assert!(end.unwrap_err().contains(":5: expected a quote that is closed, found `f,"));
    }

    #[test]
    fn a_row_that_grows_too_long_in_its_quotes_is_reported_as_too_long() {
        let mut bytes = b"a,b\nc,\"".to_vec();
        bytes.resize(LONGEST, b'x');
        bytes.extend(b"\nxx\nxx\nxx\nxx\nxx\nxx\nxx");
        let file = file(&bytes);
        let (found, end) = all(Lines::rows(file.path()).unwrap());
        assert_eq!(found[0], (1, "a,b".to_owned()));
        assert!(end.unwrap_err().contains(":2: expected a row of at most 64 MB, found `c,"));
    }

    #[test]
    fn lines_read_before_are_skipped() {
        let file = file(b"a\nb\nc\n");
        let mut lines = Lines::open(file.path()).unwrap();
        lines.skip_to(2).unwrap();
        assert_eq!(all(lines).0, [(3, "c".to_owned())]);
    }

    #[test]
    fn the_nearest_name_differs_in_at_most_half_of_its_characters_in_any_case() {
        let names = ["theme", "glyphs", "mouse", "動物園"];
        assert_eq!(nearest("Thme", names), Some("theme"));
        assert_eq!(nearest("muose", names), Some("mouse"));
        // One of three characters, though three of nine bytes.
        assert_eq!(nearest("動物", names), Some("動物園"));
        assert_eq!(nearest("物物物", names), None);
        assert_eq!(nearest("colours", names), None);
        assert_eq!(nearest(&"theme".repeat(1_000_000), names), None);
        assert_eq!(nearest("aa", ["ab", "ac"]), Some("ab"));
    }

    #[test]
    fn separators_and_line_breaks_between_quotes_belong_to_the_field() {
        assert_eq!(fields("1,\"a, \"\"b\"\"\nc\",", ',').unwrap(), ["1", "a, \"b\"\nc", ""]);
        assert_eq!(
            fields("1\t\"a, \"\"b\"\"\"\tHe said \"hi\" twice", '\t').unwrap()[1..],
            ["a, \"b\"", "He said \"hi\" twice"]
        );
        assert!(fields("1\t\"a\tb", '\t').unwrap_err().0.contains("quotes that are closed"));
    }
}
