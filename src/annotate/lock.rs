//! Who writes a journal.
//!
//! The lock is the system's own on `NAME.lock`, so that it ends with its owner, however that ends. What stands in the file only says
//! who holds it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// Who holds a journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// The annotator.
    pub by: String,
    /// The process.
    pub pid: u32,
    /// The machine.
    pub host: String,
    /// Since when, in milliseconds since 1970.
    pub since: u64,
}

impl Owner {
    /// This process, now, for that annotator.
    pub fn here(by: &str) -> Self {
        Owner { by: by.into(), pid: std::process::id(), host: host(), since: now() }
    }
}

impl std::fmt::Display for Owner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let since = UNIX_EPOCH.checked_add(Duration::from_millis(self.since));
        // The formatter panics beyond the year 9999, and anybody may have written this file.
        let since = since.filter(|_| self.since < 253_402_300_800_000).map(httpdate::fmt_http_date);
        let (by, pid, host) = (&self.by, self.pid, &self.host);
        write!(f, "{by} (process {pid} on {host}")?;
        since.map_or(Ok(()), |since| write!(f, ", since {since}"))?;
        f.write_str(")")
    }
}

/// The right to write, until it is dropped.
#[derive(Debug)]
pub struct Lock {
    _held: File,
}

/// What asking for the lock gave.
pub enum Asked {
    /// It is ours.
    Ours(Lock),
    /// Somebody else's, who may have said who it is.
    Theirs(Option<Owner>),
}

impl Lock {
    /// Asks for the lock of a journal, without waiting.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn ask(journal: &Path, owner: &Owner) -> io::Result<Asked> {
        let path = journal.with_extension("lock");
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                let _ = file.read_to_string(&mut text);
                return Ok(Asked::Theirs(serde_json::from_str(&text).ok()));
            }
            // Some network disks have no locks. What others wrote is looked for before every append; two that append in the same moment
            // are not kept apart there.
            Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
        // Never removed: whoever waits to read it would hold another file.
        file.set_len(0)?;
        file.rewind()?;
        file.write_all(serde_json::to_string(owner)?.as_bytes())?;
        Ok(Asked::Ours(Lock { _held: file }))
    }
}

/// This machine's name, as far as it is told.
fn host() -> String {
    let named = ["HOSTNAME", "COMPUTERNAME"].into_iter().find_map(|name| std::env::var(name).ok());
    let kernel = || std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    named.or_else(kernel).map_or_else(|| "this machine".into(), |name| name.trim().to_owned())
}

/// Milliseconds since 1970.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}
