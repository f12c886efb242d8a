//! Fields between tabs, quoted where they must be.
//!
//! A field counts as quoted only if it begins and ends with `"` and its inner ones are doubled. A quoted field may hold tabs and
//! line ends. A quote that is not closed is an error with its line, and never swallows what follows: a line inside a quoted field
//! that has the tabs of a whole row shows that the field was meant to end before.

use std::borrow::Cow;
use std::path::Path;

use crate::input::{BadLine, InputError};

/// A row's fields, none where nothing stands between two tabs; `""` is an empty field.
pub type Fields = Vec<Option<String>>;

/// All rows with the number of their first line, blank lines passed over.
pub fn rows(path: &Path) -> Result<Vec<(usize, Fields)>, InputError> {
    let bytes = std::fs::read(path).map_err(|error| InputError::unreadable(path, &error))?;
    let bad = |line: usize, expected: String, found: &str| BadLine {
        file: path.into(),
        line,
        expected,
        found: found.into(),
    };
    let text = match std::str::from_utf8(&bytes) {
        Ok(text) => text.trim_start_matches('\u{feff}'),
        Err(error) => {
            let line = bytes[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count() + 1;
            return Err(InputError::BadLines(vec![bad(line, "UTF-8 text".into(), "other bytes")]));
        }
    };
    let (mut rows, mut told, mut columns) = (Vec::new(), Vec::new(), None);
    let mut lines = text.split_inclusive('\n').enumerate();
    while let Some((i, first)) = lines.next() {
        if first.trim().is_empty() {
            continue;
        }
        let mut row = Cow::Borrowed(first);
        // Lines that were taken for the inside of a quoted field are read again once it shows that they are not.
        let ahead = lines.clone();
        let read = loop {
            match split(&row) {
                Split::Whole(fields) => break Ok(fields),
                Split::Bad(expected) => break Err(expected),
                Split::Open => match lines.next() {
                    Some((_, next)) if columns.is_none_or(|columns| goes_on(next, columns)) => {
                        row.to_mut().push_str(next);
                    }
                    _ => break Err("a quote that is closed, or none"),
                },
            }
        };
        match read {
            Ok(fields) if columns.is_some_and(|columns| columns != fields.len()) => {
                let expected = format!("{} fields, as the header has", columns.unwrap_or_default());
                told.push(bad(i + 1, expected, &format!("{} in {}", fields.len(), row.trim_end())));
            }
            Ok(fields) => {
                columns.get_or_insert(fields.len());
                rows.push((i + 1, fields));
            }
            Err(expected) => {
                told.push(bad(i + 1, expected.into(), first.trim_end()));
                lines = ahead;
            }
        }
    }
    if told.is_empty() { Ok(rows) } else { Err(InputError::BadLines(told)) }
}

/// Whether a line may go on with the quoted field that is open before it: as far as the field reaches into the line, it has fewer
/// tabs than a whole row.
fn goes_on(next: &str, columns: usize) -> bool {
    let inside = match next.replace("\"\"", "  ").find('"') {
        Some(end) => &next[..end],
        None => next,
    };
    inside.matches('\t').count() + 1 < columns
}

/// Whether a text can be read back out of a table of so many columns.
pub fn carries(text: &str, columns: usize) -> bool {
    text.split('\n').skip(1).all(|line| line.matches('\t').count() + 1 < columns)
}

enum Split {
    Whole(Fields),
    Open,
    Bad(&'static str),
}

fn split(row: &str) -> Split {
    let ended = row.strip_suffix('\n').map_or(row, |row| row.strip_suffix('\r').unwrap_or(row));
    let (mut fields, mut rest) = (Vec::new(), ended);
    loop {
        let after = match rest.strip_prefix('"') {
            None => {
                let end = rest.find('\t').unwrap_or(rest.len());
                let field = &rest[..end];
                if field.ends_with('"') && field.matches('"').count() % 2 == 1 {
                    return Split::Bad("a quote that is opened, or none");
                }
                fields.push((!field.is_empty()).then(|| field.to_owned()));
                &rest[end..]
            }
            Some(mut inside) => {
                let mut field = String::new();
                loop {
                    let Some(end) = inside.find('"') else { return Split::Open };
                    field.push_str(&inside[..end]);
                    inside = &inside[end + 1..];
                    match inside.strip_prefix('"') {
                        Some(more) => {
                            field.push('"');
                            inside = more;
                        }
                        None => break,
                    }
                }
                fields.push(Some(field));
                inside
            }
        };
        match after.strip_prefix('\t') {
            Some(next) => rest = next,
            None if after.is_empty() => return Split::Whole(fields),
            None => return Split::Bad("a tab after a closed quote, or inner quotes doubled"),
        }
    }
}

/// A field as it is written.
pub fn field(text: &str) -> Cow<'_, str> {
    let plain =
        !text.is_empty() && text.trim() == text && !text.contains(['"', '\t', '\n', '\r', '\u{feff}']);
    if plain { Cow::Borrowed(text) } else { Cow::Owned(format!("\"{}\"", text.replace('"', "\"\""))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<(usize, Fields)>, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        rows(file.path()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_quoted_field_may_hold_tabs_and_line_ends_and_an_empty_one_is_not_none() {
        let rows = read("a\tb\tc\n1\t\"x\ty\r\n\n\"\"z\"\"\"\t\"\"\r\n\n2\t5\" pipe\t\n").unwrap();
        let fields = |texts: [Option<&str>; 3]| texts.map(|text| text.map(str::to_owned)).to_vec();
        assert_eq!(rows[1], (2, fields([Some("1"), Some("x\ty\r\n\n\"z\""), Some("")])));
        assert_eq!(rows[2], (6, fields([Some("2"), Some("5\" pipe"), None])));
    }

    #[test]
    fn an_unbalanced_quote_is_told_with_its_line_and_swallows_nothing() {
        let rest = "1\tx\ty\n2\tx\ty\"\n3\tx\n";
        let told = read(&format!("a\tb\tc\n0\t\"x\ty\n{rest}")).unwrap_err();
        for line in [
            ":2: expected a quote that is closed",
            ":4: expected a quote that is opened",
            ":5: expected 3 fields",
        ] {
            assert!(told.contains(line), "{told}");
        }
        assert!(
            read("a\tb\n\"x\" he said\ty\n").unwrap_err().contains(":2: expected a tab after a closed quote")
        );
        assert!(read("a\tb\n\"x").unwrap_err().contains(":2: expected a quote that is closed"));
    }
}
