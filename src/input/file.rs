//! Opens a user's file (plain, gzip, Zstandard or a stream), and the errors of reading one.
//!
//! The extension below the compression names the format: `corpus.jsonl.zst` is JSONL.

use std::fmt;
use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::de::DeserializeOwned;

use super::stream::{BUFFER, Bounded, Limit, Spooled, WHOLE, is_stream, oddity, open_regular, within};

/// The number of bad lines that one message lists; the others are only counted.
pub const LISTED: usize = 20;

/// Reading stops after this many bad lines, because the file probably has another format.
pub const ENOUGH: usize = 1_000;

/// The expected content of a line: the words after "expected" in a [`BadLine`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {0}")]
pub struct Expected(pub String);

impl From<String> for Expected {
    fn from(words: String) -> Self {
        Expected(words)
    }
}

impl From<&str> for Expected {
    fn from(words: &str) -> Self {
        Expected(words.to_owned())
    }
}

impl From<Expected> for String {
    fn from(Expected(words): Expected) -> Self {
        words
    }
}

/// One line that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadLine {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: usize,
    /// What was expected there.
    pub expected: String,
    /// What was found.
    pub found: String,
}

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A parser that was given one line counts it as the first.
        let expected = self.expected.replace(" at line 1 column ", " at column ");
        write!(
            f,
            "{}:{}: expected {expected}, found {}",
            self.file.display(),
            self.line,
            excerpt(&self.found)
        )
    }
}

/// Why a user's file or folder was not read. Nothing of it was used.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// The file or folder could not be opened or read.
    #[error("{}: {reason}", path.display())]
    Unreadable {
        /// The file or folder.
        path: PathBuf,
        /// The system's message, or what to do.
        reason: String,
    },
    /// Some lines do not follow the format.
    #[error("{}", list_lines(.0))]
    BadLines(Vec<BadLine>),
    /// It is empty.
    #[error("{}: {what} is empty; {advice}", path.display())]
    Empty {
        /// The file or folder.
        path: PathBuf,
        /// What it should contain, such as `the corpus`.
        what: &'static str,
        /// What to do.
        advice: &'static str,
    },
}

impl InputError {
    /// An unreadable file, with the system's reason.
    pub fn unreadable(path: &Path, error: &io::Error) -> Self {
        let reason = match error.kind() {
            // Whoever made the error knows more than its kind says.
            _ if error.get_ref().is_some() => error.to_string(),
            io::ErrorKind::NotFound => "no such file or folder".into(),
            io::ErrorKind::InvalidData => "not UTF-8 text; convert it with `iconv -t utf-8`".into(),
            io::ErrorKind::UnexpectedEof => "it is cut short; fetch it again".into(),
            _ => error.to_string(),
        };
        InputError::Unreadable { path: path.into(), reason }
    }
}

fn list_lines(lines: &[BadLine]) -> String {
    let mut text: Vec<String> = lines.iter().take(LISTED).map(ToString::to_string).collect();
    if lines.len() > LISTED {
        let least = if lines.len() >= ENOUGH { "at least " } else { "" };
        text.push(format!("… and {least}{} more bad lines", lines.len() - LISTED));
    }
    text.push("nothing was taken from it; correct the lines above and try again".into());
    text.join("\n")
}

/// The number of characters of a foreign message that are shown.
const REPEATED: usize = 300;

/// A message from a server or a parser of another crate, shortened and safe to print.
pub fn tame(message: &str) -> String {
    let mut chars = message.trim().chars();
    let mut tame: String =
        chars.by_ref().take(REPEATED).map(|c| if is_harmful(c) { '·' } else { c }).collect();
    if chars.next().is_some() {
        tame.push('…');
    }
    tame
}

/// Whether a character moves the cursor, colours the terminal, takes no column or reverses the order of letters. The joiner takes none
/// either, and is harmless: emoji need it.
pub fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{61c}'
                | '\u{200b}'
                | '\u{200e}'
                | '\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{2069}'
                | '\u{feff}'
        )
}

/// The beginning of a text, safe to print in a message.
pub fn excerpt(text: &str) -> String {
    let mut out = String::from("`");
    for (i, c) in text.chars().enumerate() {
        if i == 60 {
            out.push('…');
            break;
        }
        out.push(if is_harmful(c) { '·' } else { c });
    }
    out.push('`');
    out
}

/// The path without the extension of a compression.
fn plain(path: &Path) -> &Path {
    let compressed = matches!(raw_ending(path), Some("gz" | "zst"));
    path.file_stem().filter(|_| compressed).map_or(path, Path::new)
}

fn raw_ending(path: &Path) -> Option<&str> {
    path.extension()?.to_str()
}

/// The extension that names the format: `jsonl` for `corpus.jsonl.gz`.
pub fn ending(path: &Path) -> Option<&str> {
    raw_ending(plain(path))
}

/// The name without either extension: `corpus` for `corpus.jsonl.gz`.
pub fn stem(path: &Path) -> String {
    plain(path).file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// Checks a file that is to be written: a regular one, or none in a folder that exists.
///
/// # Errors
/// It is another kind of file, or its folder does not exist.
pub fn check_output(path: &Path) -> Result<(), InputError> {
    check_replaceable(path)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    match folder.filter(|folder| !folder.is_dir()) {
        Some(folder) => {
            let reason = format!("there is no folder {}; make it first", folder.display());
            Err(InputError::Unreadable { path: path.into(), reason })
        }
        None => Ok(()),
    }
}

/// Checks a file that is about to be replaced: a regular one, or none. Not even `/dev/null` may be replaced.
///
/// # Errors
/// It is another kind of file.
pub fn check_replaceable(path: &Path) -> Result<(), InputError> {
    match fs::metadata(path) {
        Ok(about) if !about.is_file() => {
            let reason = format!("{}; expected a file", oddity(&about).unwrap_or("a device"));
            Err(InputError::Unreadable { path: path.into(), reason })
        }
        _ => Ok(()),
    }
}

/// So many zero bytes in a row are no text.
const ZEROS: usize = 64;

/// Opens a file for reading; a compressed one is unpacked while reading, never as a whole. A stream (`-`, `/dev/stdin`, `/dev/fd/N`) is
/// read to its end first, so that it can be opened again.
///
/// # Errors
/// It cannot be opened, or is neither a regular file nor a stream. Damage in an archive appears while reading.
pub fn open(path: &Path) -> Result<Box<dyn BufRead>, InputError> {
    open_with_share(path).map(|(reader, _)| reader)
}

/// Like [`open`], with the share of the file read so far.
pub(super) fn open_with_share(path: &Path) -> Result<(Box<dyn BufRead>, Share), InputError> {
    let unreadable = |error: io::Error| InputError::unreadable(path, &error);
    let (file, size): (Box<dyn Read>, u64) = if is_stream(path) {
        let spooled = Spooled::of(path).map_err(unreadable)?;
        let size = spooled.size;
        (Box::new(spooled), size)
    } else {
        let file = open_regular(path).map_err(unreadable)?;
        let size = file.metadata().map_err(unreadable)?.len();
        (Box::new(file), size)
    };
    let share = Share { read: Arc::default(), size };
    let mut file = BufReader::with_capacity(BUFFER, Counted(file, Arc::clone(&share.read)));
    // A sparse file of gigabytes would be read as one line, and an archive has another beginning too.
    let begins = file.fill_buf().map_err(unreadable)?;
    if begins.len() >= ZEROS && begins[..ZEROS].iter().all(|byte| *byte == 0) {
        let reason = "not a text file: it begins with zero bytes".into();
        return Err(InputError::Unreadable { path: path.into(), reason });
    }
    let reader: Box<dyn BufRead> = match raw_ending(path) {
        // A file may consist of several archives.
        Some("gz") => unpack(flate2::bufread::MultiGzDecoder::new(file)),
        Some("zst") => unpack(zstd::stream::read::Decoder::with_buffer(file).map_err(unreadable)?),
        _ => Box::new(file),
    };
    Ok((reader, share))
}

/// The share of a file read so far, in bytes on disk.
#[derive(Default)]
pub(super) struct Share {
    read: Arc<AtomicU64>,
    /// 0 if unknown.
    pub(super) size: u64,
}

impl Share {
    /// From 0 to 1; 0 if unknown.
    pub(super) fn so_far(&self) -> f32 {
        match self.size {
            0 => 0.0,
            size => (self.read.load(Ordering::Relaxed) as f32 / size as f32).min(1.0),
        }
    }
}

struct Counted<R>(R, Arc<AtomicU64>);

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.0.read(buffer).map_err(|error| io::Error::new(error.kind(), OfDisk(error)))?;
        self.1.fetch_add(got as u64, Ordering::Relaxed);
        Ok(got)
    }
}

/// An error of reading the file itself, which a decompressor passes on.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
struct OfDisk(io::Error);

fn unpack(archive: impl Read + 'static) -> Box<dyn BufRead> {
    Box::new(BufReader::with_capacity(BUFFER, Archive(archive)))
}

/// Reports the errors of a decompressor as damage to the archive, not to the text in it.
struct Archive<R>(R);

impl<R: Read> Read for Archive<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer).map_err(|error| match error.kind() {
            _ if error.get_ref().is_some_and(|inner| inner.is::<OfDisk>()) => error,
            io::ErrorKind::Interrupted => error,
            kind @ io::ErrorKind::UnexpectedEof => io::Error::new(
                kind,
                "the compressed file is cut short; nothing was taken from it, fetch it again",
            ),
            _ => io::Error::other(format!(
                "the compressed file is damaged, or is not what its extension says ({error}); fetch it again"
            )),
        })
    }
}

/// The limit in bytes of a file of settings or parameters.
pub const SMALL: u64 = 16 << 20;

/// Like [`open`], for files that are held in memory as a whole. One that is longer than [`WHOLE`], or unpacks to more, is refused.
///
/// # Errors
/// The same as for [`open`], or it is too long.
pub fn open_whole(path: &Path) -> Result<Box<dyn BufRead>, InputError> {
    let (reader, share) = open_with_share(path)?;
    within(share.size, WHOLE).map_err(|error| InputError::unreadable(path, &error))?;
    Ok(bounded(path, reader))
}

/// Applies a limit to an open file that is held in memory as a whole: [`WHOLE`] if it is compressed.
pub fn bounded(path: &Path, reader: Box<dyn BufRead>) -> Box<dyn BufRead> {
    match raw_ending(path) {
        Some("gz" | "zst") => Bounded::boxed(reader, Limit::Unpacked),
        _ => Bounded::boxed(reader, Limit::Plain),
    }
}

/// The bytes of a file, unpacked, that is held in memory as a whole.
///
/// # Errors
/// It cannot be read, or is too long.
pub fn bytes(path: &Path) -> Result<Vec<u8>, InputError> {
    let mut bytes = Vec::new();
    open_whole(path)?.read_to_end(&mut bytes).map_err(|error| InputError::unreadable(path, &error))?;
    Ok(bytes)
}

/// The whole of a text file that is not read line by line.
///
/// # Errors
/// It cannot be read, or is not UTF-8 text.
pub fn text(path: &Path) -> Result<String, InputError> {
    let mut text = String::new();
    open_whole(path)?.read_to_string(&mut text).map_err(|error| InputError::unreadable(path, &error))?;
    Ok(text)
}

/// Reads a file that is one JSON value; `expected` describes its form.
///
/// # Errors
/// The file cannot be read, or is not such a value.
pub fn read_json<T: DeserializeOwned>(path: &Path, expected: &str) -> Result<T, InputError> {
    let text = text(path)?;
    let text = text.trim_start_matches('\u{feff}');
    serde_json::from_str(text).map_err(|error| {
        let line = error.line().max(1);
        let found = text.lines().nth(line - 1).unwrap_or_default().to_owned();
        let expected = format!("{expected} ({error})");
        InputError::BadLines(vec![BadLine { file: path.into(), line, expected, found }])
    })
}

#[cfg(test)]
mod tests {
    use super::super::{check_regular, read_regular};
    use super::*;
    use std::io::Write;

    fn gz(text: &[u8]) -> Vec<u8> {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packer.write_all(text).unwrap();
        packer.finish().unwrap()
    }

    fn read(ending: &str, bytes: &[u8]) -> Result<String, String> {
        let mut file = tempfile::Builder::new().suffix(ending).tempfile().unwrap();
        file.write_all(bytes).unwrap();
        text(file.path()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_file_is_unpacked_by_its_extension_even_if_it_is_two_archives() {
        let zst = zstd::encode_all(&b"one\n"[..], 1).unwrap();
        for (ending, one) in [(".txt", b"one\n".to_vec()), (".txt.gz", gz(b"one\n")), (".txt.zst", zst)] {
            assert_eq!(read(ending, &one).unwrap(), "one\n");
            assert_eq!(read(ending, &[&one[..], &one].concat()).unwrap(), "one\none\n");
        }
    }

    #[test]
    fn an_archive_cut_short_anywhere_is_reported_as_cut_short() {
        let text: String = (0..20_000).map(|i| format!("{} line\n", i * i)).collect();
        let zst = zstd::encode_all(text.as_bytes(), 1).unwrap();
        for (ending, whole) in [(".gz", gz(text.as_bytes())), (".zst", zst)] {
            for length in [1, 9, 30, whole.len() / 2, whole.len() - 1] {
                let error = read(ending, &whole[..length]).unwrap_err();
                assert!(error.contains("cut short"), "{ending} {length}: {error}");
            }
            if ending == ".zst" {
                // This archive has no checksum, so damage may read as other text.
                continue;
            }
            let mut damaged = whole.clone();
            damaged[whole.len() / 2..whole.len() / 2 + 40].fill(0x55);
            let error = read(ending, &damaged).unwrap_err();
            assert!(error.contains("damaged") || error.contains("cut short"), "{ending}: {error}");
        }
        assert!(read(".gz", b"plain text").unwrap_err().contains("not what its extension says"));
        assert!(read(".zst", b"plain text").unwrap_err().contains("not what its extension says"));
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_a_device_a_folder_and_a_file_that_is_too_long_are_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let (pipe, long) = (folder.path().join("pipe"), folder.path().join("long"));
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let mut file = fs::File::create(&long).unwrap();
        file.write_all(b"text\n").unwrap();
        file.set_len(2 << 30).unwrap();
        for (path, reason) in [
            (pipe.as_path(), "a named pipe; expected a file"),
            (Path::new("/dev/zero"), "a device; expected a file"),
            (folder.path(), "a folder; expected a file"),
            (&long, "2148 MB; expected at most"),
        ] {
            let errors = [
                text(path).unwrap_err().to_string(),
                read_regular(path, SMALL).unwrap_err().to_string(),
                check_regular(path, SMALL).unwrap_err().to_string(),
                super::super::lines(path, |_, _| Ok(())).unwrap_err().to_string(),
            ];
            assert!(errors.iter().all(|error| error.contains(reason)), "{errors:?}");
        }
        assert!(check_regular(&folder.path().join("none"), SMALL).is_ok());
        assert!(check_output(&pipe).is_err() && check_output(&long).is_ok());
        assert!(check_output(Path::new("/dev/null")).is_err());
        let nowhere = folder.path().join("none/table.txt");
        assert!(check_output(&nowhere).unwrap_err().to_string().contains("make it first"));
        assert!(check_replaceable(&nowhere).is_ok() && check_output(Path::new("table.txt")).is_ok());
    }

    #[test]
    fn a_disk_that_fails_below_an_archive_is_no_damage_to_the_archive() {
        struct Failing(io::Cursor<Vec<u8>>);
        impl Read for Failing {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                match self.0.read(buffer)? {
                    0 => Err(io::Error::from_raw_os_error(5)),
                    got => Ok(got),
                }
            }
        }
        let text: String = (0..20_000).map(|i| format!("{} line\n", i * i)).collect();
        let half = |packed: Vec<u8>| {
            let file = Failing(io::Cursor::new(packed[..packed.len() / 2].to_vec()));
            BufReader::new(Counted(file, Arc::default()))
        };
        let gz = unpack(flate2::bufread::MultiGzDecoder::new(half(gz(text.as_bytes()))));
        let zst = half(zstd::encode_all(text.as_bytes(), 1).unwrap());
        let zst = unpack(zstd::stream::read::Decoder::with_buffer(zst).unwrap());
        let system = io::Error::from_raw_os_error(5);
        for mut reader in [gz, zst] {
            let error = reader.read_to_end(&mut Vec::new()).unwrap_err();
            assert_eq!((error.kind(), error.to_string()), (system.kind(), system.to_string()));
        }
    }

    #[test]
    fn an_error_with_a_message_of_its_own_keeps_it() {
        let path = Path::new("a");
        let said = |error: io::Error| InputError::unreadable(path, &error).to_string();
        assert!(said(io::ErrorKind::InvalidData.into()).contains("not UTF-8"));
        assert_eq!(said(io::Error::new(io::ErrorKind::InvalidData, "a.sums differs")), "a: a.sums differs");
        assert_eq!(said(io::Error::new(io::ErrorKind::UnexpectedEof, "3 of 4 rows")), "a: 3 of 4 rows");
    }

    #[test]
    fn the_extension_below_a_compression_names_the_format() {
        for (name, expected) in
            [("a/b.jsonl", "jsonl"), ("b.tsv.gz", "tsv"), ("b.csv.zst", "csv"), ("b.x.md", "md")]
        {
            assert_eq!(ending(Path::new(name)), Some(expected));
            assert!(stem(Path::new(name)).starts_with('b'));
        }
        assert_eq!((ending(Path::new("b.gz")), stem(Path::new("b.gz"))), (None, "b".into()));
    }
}
