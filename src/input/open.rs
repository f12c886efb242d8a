//! Opening a file as the user keeps it: plain, gzip (`.gz`), Zstandard (`.zst`), or standard input (`-`).
//!
//! What a file holds is told by the ending below that of the compression: `corpus.jsonl.zst` is JSONL.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::InputError;

/// Bytes read at once.
const BUFFER: usize = 1 << 18;

/// Whether the user means standard input.
pub fn is_standard_input(path: &Path) -> bool {
    path == Path::new("-")
}

/// The name without the ending of a compression.
fn plain(path: &Path) -> &Path {
    let compressed = matches!(raw_ending(path), Some("gz" | "zst"));
    path.file_stem().filter(|_| compressed).map_or(path, Path::new)
}

fn raw_ending(path: &Path) -> Option<&str> {
    path.extension()?.to_str()
}

/// The ending that names the format: `jsonl` of `corpus.jsonl.gz`.
pub fn ending(path: &Path) -> Option<&str> {
    raw_ending(plain(path))
}

/// The name without either ending: `corpus` of `corpus.jsonl.gz`.
pub fn stem(path: &Path) -> String {
    plain(path).file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// Opens a file for reading; what is compressed is unpacked as it is read, never as a whole.
///
/// # Errors
/// It cannot be opened. What cannot be unpacked is told when it is read.
pub fn open(path: &Path) -> Result<Box<dyn BufRead>, InputError> {
    opened(path).map(|(reader, _)| reader)
}

/// As [`open`], with how much of the file is read.
pub(super) fn opened(path: &Path) -> Result<(Box<dyn BufRead>, Share), InputError> {
    if is_standard_input(path) {
        return Ok((Box::new(BufReader::with_capacity(BUFFER, io::stdin())), Share::default()));
    }
    let unreadable = |error: io::Error| InputError::unreadable(path, &error);
    let file = File::open(path).map_err(unreadable)?;
    let about = file.metadata().map_err(unreadable)?;
    if about.is_dir() {
        return Err(InputError::Unreadable { path: path.into(), reason: "a folder; expected a file".into() });
    }
    let share = Share { read: Arc::default(), size: about.len() };
    let file = BufReader::with_capacity(BUFFER, Counted(file, Arc::clone(&share.read)));
    let reader: Box<dyn BufRead> = match raw_ending(path) {
        // A file may be several archives one after another.
        Some("gz") => unpacked(flate2::bufread::MultiGzDecoder::new(file)),
        Some("zst") => unpacked(zstd::stream::read::Decoder::with_buffer(file).map_err(unreadable)?),
        _ => Box::new(file),
    };
    Ok((reader, share))
}

/// How much of a file is read, packed as it is.
#[derive(Default)]
pub(super) struct Share {
    read: Arc<AtomicU64>,
    /// 0 where it is not known.
    size: u64,
}

impl Share {
    /// From 0 to 1; 0 where it is not known.
    pub(super) fn so_far(&self) -> f32 {
        match self.size {
            0 => 0.0,
            size => (self.read.load(Ordering::Relaxed) as f32 / size as f32).min(1.0),
        }
    }
}

struct Counted(File, Arc<AtomicU64>);

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.0.read(buffer)?;
        self.1.fetch_add(got as u64, Ordering::Relaxed);
        Ok(got)
    }
}

fn unpacked(archive: impl Read + 'static) -> Box<dyn BufRead> {
    Box::new(BufReader::with_capacity(BUFFER, Archive(archive)))
}

/// Says of what the decompressors refuse that it is the archive that is wrong, and not its text.
struct Archive<R>(R);

impl<R: Read> Read for Archive<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::Interrupted => error,
            _ => io::Error::other(format!(
                "the compressed file is damaged, or is not what its ending says ({error}); fetch it again"
            )),
        })
    }
}

/// Bytes that a packed file may have, unpacked, where all of it is held at once.
const WHOLE: u64 = 512 << 20;

/// As [`open`], for what is held as a whole: a packed file that unpacks without end is refused instead of filling the memory.
///
/// # Errors
/// As [`open`].
pub fn open_whole(path: &Path) -> Result<Box<dyn BufRead>, InputError> {
    Ok(bounded(path, open(path)?))
}

/// The same of a file that is open already, and of which the beginning has been looked at.
pub fn bounded(path: &Path, reader: Box<dyn BufRead>) -> Box<dyn BufRead> {
    match raw_ending(path) {
        Some("gz" | "zst") => {
            Box::new(BufReader::with_capacity(BUFFER, Bounded { inner: reader, left: WHOLE }))
        }
        _ => reader,
    }
}

struct Bounded<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.inner.read(buffer)?;
        self.left = self.left.checked_sub(got as u64).ok_or_else(|| {
            io::Error::other(format!(
                "it unpacks to more than {} MB, which is more than is held at once; unpack it if that is meant",
                WHOLE >> 20
            ))
        })?;
        Ok(got)
    }
}

/// The whole of a text file that is not a file of lines.
///
/// # Errors
/// It cannot be read, or is not UTF-8 text.
pub fn text(path: &Path) -> Result<String, InputError> {
    let mut text = String::new();
    open_whole(path)?.read_to_string(&mut text).map_err(|error| InputError::unreadable(path, &error))?;
    Ok(text)
}

/// Fills `bytes` from a place in a file, moving no cursor: many threads read at once.
///
/// # Errors
/// The file cannot be read, or ends before.
#[cfg(unix)]
pub fn read_at(file: &File, bytes: &mut [u8], at: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, at)
}

/// Fills `bytes` from a place in a file, moving no cursor that a reader here hangs on.
///
/// # Errors
/// The file cannot be read, or ends before.
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
    fn a_file_is_unpacked_by_its_ending_even_where_it_is_two_archives() {
        let zst = zstd::encode_all(&b"one\n"[..], 1).unwrap();
        for (ending, one) in [(".txt", b"one\n".to_vec()), (".txt.gz", gz(b"one\n")), (".txt.zst", zst)] {
            assert_eq!(read(ending, &one).unwrap(), "one\n");
            assert_eq!(read(ending, &[&one[..], &one].concat()).unwrap(), "one\none\n");
        }
    }

    #[test]
    fn an_archive_that_is_cut_anywhere_is_told_as_such() {
        let text: String = (0..20_000).map(|i| format!("{} line\n", i * i)).collect();
        let zst = zstd::encode_all(text.as_bytes(), 1).unwrap();
        for (ending, whole) in [(".gz", gz(text.as_bytes())), (".zst", zst)] {
            for kept in [1, 9, 30, whole.len() / 2, whole.len() - 1] {
                let error = read(ending, &whole[..kept]).unwrap_err();
                assert!(error.contains("cut short"), "{ending} {kept}: {error}");
            }
            if ending == ".zst" {
                // Written without a checksum here: damage may read as other text.
                continue;
            }
            let mut damaged = whole.clone();
            damaged[whole.len() / 2..whole.len() / 2 + 40].fill(0x55);
            let error = read(ending, &damaged).unwrap_err();
            assert!(error.contains("damaged") || error.contains("cut short"), "{ending}: {error}");
        }
        assert!(read(".gz", b"plain text").unwrap_err().contains("not what its ending says"));
        assert!(read(".zst", b"plain text").unwrap_err().contains("not what its ending says"));
    }

    #[test]
    fn the_ending_below_a_compression_names_the_format() {
        for (name, expected) in
            [("a/b.jsonl", "jsonl"), ("b.tsv.gz", "tsv"), ("b.csv.zst", "csv"), ("b.x.md", "md")]
        {
            assert_eq!(ending(Path::new(name)), Some(expected));
            assert!(stem(Path::new(name)).starts_with('b'));
        }
        assert_eq!((ending(Path::new("b.gz")), stem(Path::new("b.gz"))), (None, "b".into()));
    }
}
