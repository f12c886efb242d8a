//! What a path leads to: a regular file, or a stream (standard input, or a pipe that a shell makes of `<(…)`). Everything else is refused.
//!
//! Streams have limits of silence and size, and can be opened again.

use std::fs::{self, File, Metadata};
use std::io::{self, BufRead, BufReader, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// The number of bytes read at once.
pub const BUFFER: usize = 1 << 18;

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
pub fn oddity(about: &Metadata) -> Option<&'static str> {
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

/// The limit of a file that is held in memory as a whole, unpacked, in bytes.
pub const WHOLE: u64 = 512 << 20;

/// The limit in bytes of a file that is not compressed and is held as a whole because its user wants that, such as a run in JSON.
const PLAIN: u64 = 4 << 30;

/// The limit of a file that is held as a whole.
#[derive(Clone, Copy)]
pub(super) enum Limit {
    /// Of a compressed one.
    Unpacked,
    /// Of one that is not.
    Plain,
}

impl Limit {
    fn bytes(self) -> u64 {
        match self {
            Limit::Unpacked => WHOLE,
            Limit::Plain => PLAIN,
        }
    }
}

/// A reader with a limit.
pub(super) struct Bounded<R> {
    inner: R,
    left: u64,
    limit: Limit,
}

impl<R: Read + 'static> Bounded<R> {
    pub(super) fn boxed(inner: R, limit: Limit) -> Box<dyn BufRead> {
        Box::new(BufReader::with_capacity(BUFFER, Bounded { inner, left: limit.bytes(), limit }))
    }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.inner.read(buffer)?;
        self.left = self.left.checked_sub(got as u64).ok_or_else(|| {
            let megabytes = megabytes(self.limit.bytes());
            io::Error::other(match self.limit {
                Limit::Unpacked => format!(
                    "it unpacks to more than {megabytes} MB, the limit for compressed files of this kind; unpack it first if that is intended"
                ),
                Limit::Plain => format!("longer than {megabytes} MB, the limit for files of this kind; divide it"),
            })
        })?;
        Ok(got)
    }
}

/// A size in megabytes, rounded up.
pub(super) fn megabytes(bytes: u64) -> u64 {
    bytes.div_ceil(1_000_000)
}

/// Checks a size.
///
/// # Errors
/// It is above the limit.
pub fn within(size: u64, limit: u64) -> io::Result<()> {
    if size <= limit {
        return Ok(());
    }
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

/// A stream that sends nothing for this long is given up. A person at a terminal may take any time.
const SILENCE: Duration = Duration::from_secs(300);

/// The limit of a stream in bytes.
const LONGEST_STREAM: u64 = 4 << 30;

/// Whether a path names a stream: `-`, `/dev/stdin`, or `/dev/fd/N`, which shells make of `<(…)`.
pub fn is_stream(path: &Path) -> bool {
    let numbered = || {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let folders = [Path::new("/dev/fd"), Path::new("/proc/self/fd")];
        path.parent().is_some_and(|folder| folders.contains(&folder)) && name.parse::<u32>().is_ok()
    };
    let named = cfg!(unix) && (path == Path::new("/dev/stdin") || numbered());
    // It may also be a regular file, from `<FILE`.
    path == Path::new("-") || named && fs::metadata(path).is_ok_and(|about| oddity(&about).is_some())
}

/// The bytes of a stream as they come, with a limit of silence.
pub struct Stream {
    pieces: Receiver<io::Result<Vec<u8>>>,
    piece: io::Cursor<Vec<u8>>,
    /// How long it may be silent; `None` if a person types it.
    patience: Option<Duration>,
}

impl Stream {
    /// Opens a stream.
    ///
    /// # Errors
    /// It cannot be opened, or is a device other than a terminal.
    pub fn open(path: &Path) -> io::Result<Self> {
        let standard = path == Path::new("-");
        let place = if standard && cfg!(unix) { Path::new("/dev/stdin") } else { path };
        let mut from: Box<dyn Read + Send> =
            if standard { Box::new(io::stdin()) } else { Box::new(File::open(path)?) };
        let typed = if standard { io::stdin().is_terminal() } else { File::open(path)?.is_terminal() };
        if !typed && fs::metadata(place).is_ok_and(|about| oddity(&about) == Some("a device")) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a device; expected a file or a pipe"));
        }
        let (send, pieces) = sync_channel(8);
        // The thread ends with the stream, or with the process.
        thread::Builder::new().name("stream".into()).spawn(move || {
            let mut buffer = vec![0; BUFFER];
            loop {
                let read = match from.read(&mut buffer) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    read => read.map(|count| buffer[..count].to_vec()),
                };
                let last = read.as_ref().map_or(true, Vec::is_empty);
                if send.send(read).is_err() || last {
                    return;
                }
            }
        })?;
        Ok(Stream { pieces, piece: io::Cursor::default(), patience: (!typed).then_some(SILENCE) })
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.piece.read(buffer)?;
        if got > 0 || buffer.is_empty() {
            return Ok(got);
        }
        let piece = match self.patience {
            Some(patience) => self.pieces.recv_timeout(patience),
            None => self.pieces.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match piece {
            Ok(piece) => self.piece = io::Cursor::new(piece?),
            // It has ended.
            Err(RecvTimeoutError::Disconnected) => return Ok(0),
            Err(RecvTimeoutError::Timeout) => {
                let silence = self.patience.unwrap_or_default();
                let reason = format!("it sent nothing for {silence:?}; see what writes it");
                return Err(io::Error::new(io::ErrorKind::TimedOut, reason));
            }
        }
        self.piece.read(buffer)
    }
}

/// A stream that was read to its end, into a file without a name.
#[derive(Clone)]
pub struct Spooled {
    file: Arc<File>,
    at: u64,
    /// Its length in bytes.
    pub size: u64,
}

impl Spooled {
    /// Reads a stream to its end, unless an earlier call did.
    ///
    /// # Errors
    /// It cannot be read, falls silent, or is too long.
    pub fn of(path: &Path) -> io::Result<Self> {
        static SPOOLED: Mutex<Vec<(PathBuf, Spooled)>> = Mutex::new(Vec::new());
        let mut all = SPOOLED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, spooled)) = all.iter().find(|(earlier, _)| earlier == path) {
            return Ok(spooled.clone());
        }
        let mut file = tempfile::tempfile()?;
        let size = io::copy(&mut Stream::open(path)?.take(LONGEST_STREAM + 1), &mut file)?;
        within(size, LONGEST_STREAM)?;
        let spooled = Spooled { file: Arc::new(file), at: 0, size };
        all.push((path.to_path_buf(), spooled.clone()));
        Ok(spooled)
    }
}

impl Read for Spooled {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = buffer.len().min(usize::try_from(self.size - self.at).unwrap_or(usize::MAX));
        read_at(&self.file, &mut buffer[..count], self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::io::Write;
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn only_names_of_streams_are_streams() {
        assert!(is_stream(Path::new("-")));
        for other in ["--", "stdin", "/dev/fd/x", "/dev/fd", "/dev/null", "/proc/self/fd/999999"] {
            assert!(!is_stream(Path::new(other)), "{other}");
        }
    }

    #[test]
    fn a_pipe_is_read_once_and_can_be_opened_again() {
        let (reader, mut writer) = io::pipe().unwrap();
        writer.write_all(b"one\ntwo\n").unwrap();
        drop(writer);
        let path = PathBuf::from(format!("/dev/fd/{}", reader.as_raw_fd()));
        assert!(is_stream(&path));
        for _ in 0..2 {
            assert_eq!(crate::input::text(&path).unwrap(), "one\ntwo\n");
        }
        let device = File::open("/dev/zero").unwrap();
        let path = PathBuf::from(format!("/dev/fd/{}", device.as_raw_fd()));
        assert!(
            crate::input::text(&path)
                .unwrap_err()
                .to_string()
                .contains("a device; expected a file or a pipe")
        );
    }

    #[test]
    fn a_pipe_that_falls_silent_is_given_up() {
        let (mut silent, _open) = UnixStream::pair().unwrap();
        let (send, pieces) = sync_channel(1);
        let mut stream =
            Stream { pieces, piece: io::Cursor::default(), patience: Some(Duration::from_millis(20)) };
        thread::spawn(move || send.send(silent.read(&mut [0; 8]).map(|_| Vec::new())));
        let error = stream.read(&mut [0; 8]).unwrap_err();
        assert!(error.to_string().contains("sent nothing"), "{error}");
    }
}
