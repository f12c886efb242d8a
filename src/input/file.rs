//! Opens a user's file (plain, gzip, Zstandard or a stream). Every file that a user names is opened here.
//!
//! The extension below the compression names the format: `corpus.jsonl.zst` is JSONL.

use std::fs::{self, File, Metadata};
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::de::DeserializeOwned;

use super::stream::{Spooled, is_stream};
use super::{BadLine, InputError};

/// The number of characters of a server's or parser's message that are shown.
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

/// Whether a character moves the cursor, colours the terminal or reverses the order of letters.
fn is_harmful(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
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

/// The number of bytes read at once.
pub(super) const BUFFER: usize = 1 << 18;

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

/// Whether it is the device that is empty, which stands for no file.
#[cfg(unix)]
fn is_null(about: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    fs::metadata("/dev/null").is_ok_and(|null| null.rdev() == about.rdev())
}

#[cfg(not(unix))]
fn is_null(_: &Metadata) -> bool {
    false
}

/// What a path leads to, in words; `None` for a regular file and for `/dev/null`.
pub(super) fn oddity(about: &Metadata) -> Option<&'static str> {
    if about.is_file() || is_null(about) {
        return None;
    }
    if about.is_dir() {
        return Some("a folder");
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        if about.file_type().is_fifo() {
            return Some("a named pipe");
        }
        if about.file_type().is_socket() {
            return Some("a socket");
        }
    }
    Some("a device")
}

fn only_regular(about: &Metadata) -> io::Result<()> {
    match oddity(about) {
        None => Ok(()),
        Some(what) => Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{what}; expected a file"))),
    }
}

/// Opens a regular file. A folder, a named pipe, a socket or a device is refused at once: reading one may never end.
///
/// # Errors
/// It cannot be opened, or is not a regular file.
pub fn open_regular(path: &Path) -> io::Result<File> {
    // Before it is opened: opening a named pipe waits for its writer.
    only_regular(&fs::metadata(path)?)?;
    let file = File::open(path)?;
    only_regular(&file.metadata()?)?;
    Ok(file)
}

/// Checks a file that another module opens by its path: a regular one of at most `limit` bytes, or none.
///
/// # Errors
/// It is another kind of file, or longer.
pub fn check_regular(path: &Path, limit: u64) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(about) => only_regular(&about).and_then(|()| within(about.len(), limit)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// Checks a file that is about to be replaced: a regular one, or none. Not even `/dev/null` may be replaced.
///
/// # Errors
/// It is another kind of file.
pub fn check_output(path: &Path) -> Result<(), InputError> {
    match fs::metadata(path) {
        Ok(about) if !about.is_file() => {
            let reason = format!("{}; expected a file", oddity(&about).unwrap_or("a device"));
            Err(InputError::Unreadable { path: path.into(), reason })
        }
        _ => Ok(()),
    }
}

pub(super) fn within(size: u64, limit: u64) -> io::Result<()> {
    if size <= limit {
        return Ok(());
    }
    let megabytes = |bytes: u64| bytes.div_ceil(1_000_000);
    let reason =
        format!("{} MB; expected at most {} MB for a file of this kind", megabytes(size), megabytes(limit));
    Err(io::Error::new(io::ErrorKind::FileTooLarge, reason))
}

/// The bytes of a regular file of at most `limit` bytes.
///
/// # Errors
/// It cannot be read, is not a regular file, or is longer.
pub fn read_regular(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let file = open_regular(path)?;
    let size = file.metadata()?.len();
    within(size, limit)?;
    let mut bytes = Vec::with_capacity(size as usize);
    file.take(limit + 1).read_to_end(&mut bytes)?;
    // It may have grown meanwhile.
    within(bytes.len() as u64, limit)?;
    Ok(bytes)
}

/// The text of a regular file of at most `limit` bytes.
///
/// # Errors
/// As for [`read_regular`], or it is not UTF-8 text.
pub fn read_regular_text(path: &Path, limit: u64) -> io::Result<String> {
    let bytes = read_regular(path, limit)?;
    String::from_utf8(bytes).map_err(|_| io::ErrorKind::InvalidData.into())
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
        let got = self.0.read(buffer)?;
        self.1.fetch_add(got as u64, Ordering::Relaxed);
        Ok(got)
    }
}

fn unpack(archive: impl Read + 'static) -> Box<dyn BufRead> {
    Box::new(BufReader::with_capacity(BUFFER, Archive(archive)))
}

/// Reports the errors of a decompressor as damage to the archive, not to the text in it.
struct Archive<R>(R);

impl<R: Read> Read for Archive<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::Interrupted => error,
            _ => io::Error::other(format!(
                "the compressed file is damaged, or is not what its extension says ({error}); fetch it again"
            )),
        })
    }
}

/// The limit in bytes of a file that is held in memory as a whole, unpacked.
pub const WHOLE: u64 = 512 << 20;

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
        Some("gz" | "zst") => {
            Box::new(BufReader::with_capacity(BUFFER, Bounded { inner: reader, left: WHOLE, limit: WHOLE }))
        }
        _ => Box::new(BufReader::with_capacity(BUFFER, Bounded { inner: reader, left: PLAIN, limit: PLAIN })),
    }
}

/// The limit in bytes of a file that is not compressed and is held as a whole because its user wants that, such as a run in JSON.
const PLAIN: u64 = 4 << 30;

struct Bounded<R> {
    inner: R,
    left: u64,
    limit: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.inner.read(buffer)?;
        self.left = self.left.checked_sub(got as u64).ok_or_else(|| {
            let megabytes = self.limit >> 20;
            io::Error::other(match self.limit {
                WHOLE => format!(
                    "it unpacks to more than {megabytes} MB, the limit for compressed files of this kind; unpack it first if that is intended"
                ),
                _ => format!("longer than {megabytes} MB, the limit for files of this kind; divide it"),
            })
        })?;
        Ok(got)
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

/// Fills `bytes` from an offset without moving the cursor, so many threads can read at once.
///
/// # Errors
/// The file cannot be read, or ends earlier.
#[cfg(unix)]
pub fn read_at(file: &File, bytes: &mut [u8], at: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, at)
}

/// Fills `bytes` from an offset. The cursor moves, which no reader here depends on.
///
/// # Errors
/// The file cannot be read, or ends earlier.
#[cfg(windows)]
pub fn read_at(file: &File, mut bytes: &mut [u8], mut at: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, bytes, at)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => {
                bytes = &mut bytes[read..];
                at += read as u64;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
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
        File::create(&long).unwrap().set_len(2 << 30).unwrap();
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
