//! What a journal survives.

use std::fs;
use std::fs::File;
use std::io::{Read as _, Seek, SeekFrom, Write};

use super::super::disk::Disk;
use super::super::testing::{act, open, said};
use super::*;
use crate::measure::seeded::SplitMix64;

/// A journal of `count` answers, as bytes.
fn written(path: &Path, count: usize) -> Vec<u8> {
    let mut journal = open(path);
    for n in 0..count {
        journal.append(act(n, n % 2 == 0)).unwrap();
    }
    fs::read(path).unwrap()
}

fn lines(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte == b'\n').count()
}

#[test]
fn cut_at_any_byte_a_journal_loses_no_more_than_the_torn_line_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("anna.jsonl");
    let bytes = written(&path, 2);
    for end in 0..=bytes.len() {
        let place = folder.path().join(format!("{end}")).join("anna.jsonl");
        fs::create_dir(place.parent().unwrap()).unwrap();
        fs::write(&place, &bytes[..end]).unwrap();
        let mut journal = open(&place);
        // A line that only lacks its line feed is whole.
        let whole = lines(&bytes[..end]) + usize::from(bytes.get(end) == Some(&b'\n'));
        assert_eq!(journal.history().len(), whole, "{end}");
        assert!((0..whole).all(|n| said(&journal, n) == Some(n % 2 == 0)), "{end}");
        // Hundreds of journals need not wait for the disk.
        journal.disk = |path| Ok(Box::new(Unsynced(super::open(path)?)));
        journal.append(act(9, true)).unwrap();
        drop(journal);
        let read = Read::file(&place).unwrap();
        assert!(read.is_whole() && read.entries.len() == whole + 1, "{end}: {read:?}");
        // What was cut off is kept, byte for byte.
        let torn = &bytes[lines(&bytes[..end]).checked_sub(1).map_or(0, |n| nth_end(&bytes, n))..end];
        let kept = fs::read(folder.path().join(format!("{end}")).join("anna.jsonl.torn")).unwrap_or_default();
        let expected = if whole > lines(&bytes[..end]) || torn.is_empty() { &[][..] } else { torn };
        assert_eq!(kept.strip_suffix(b"\n").unwrap_or(&kept), expected, "{end}");
    }
}

/// Where line `n` ends, from 0.
fn nth_end(bytes: &[u8], n: usize) -> usize {
    bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').nth(n).map_or(0, |(at, _)| at + 1)
}

#[test]
fn a_tail_of_zeros_is_moved_aside_and_costs_no_whole_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("anna.jsonl");
    let bytes = written(&path, 3);
    let last = nth_end(&bytes, 1);
    for keep in [last, last + 1, bytes.len() - 2, bytes.len()] {
        for zeros in [1, 511, 4096] {
            let mut tail = bytes[..keep].to_vec();
            tail.resize(keep + zeros, 0);
            fs::write(&path, &tail).unwrap();
            let mut journal = open(&path);
            let whole = if keep == bytes.len() { 3 } else { 2 };
            assert_eq!(journal.history().len(), whole, "{keep} {zeros}");
            journal.append(act(7, true)).unwrap();
            assert_eq!(Read::file(&path).unwrap().entries.len(), whole + 1);
            assert!(Read::file(&path).unwrap().is_whole());
        }
    }
}

#[test]
fn a_flipped_bit_costs_its_line_and_is_told_with_its_number_and_repair_keeps_the_old_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("anna.jsonl");
    let bytes = written(&path, 6);
    let mut rng = SplitMix64::new(7);
    for _ in 0..300 {
        let at = rng.below(bytes.len());
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << rng.below(8);
        let read = Read::bytes(&path, &flipped);
        let line = lines(&bytes[..at]);
        // A lost or new line feed joins or parts lines, at most two of them.
        let feed = bytes[at] == b'\n' || flipped[at] == b'\n';
        assert!(read.entries.len() >= 6 - 1 - usize::from(feed), "{at}");
        if bytes[at] == b'\n' && line == 5 {
            assert_eq!(read.torn, bytes.len() - nth_end(&bytes, 4));
            continue;
        }
        // A carriage return before the line feed is no damage; nothing else passes.
        assert!(read.bad.iter().any(|bad| bad.line == line + 1), "{at}: {read:?}");
    }
    let mut flipped = bytes.clone();
    flipped[nth_end(&bytes, 1) + 20] ^= 4;
    fs::write(&path, &flipped).unwrap();
    let kept = super::super::repair(&path).unwrap().unwrap();
    assert_eq!(fs::read(kept).unwrap(), flipped);
    let read = Read::file(&path).unwrap();
    assert!(read.is_whole() && read.entries.len() == 5);
    assert_eq!(super::super::repair(&path).unwrap(), None);
}

struct Unsynced(File);

impl Disk for Unsynced {
    fn put(&mut self, from: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.seek(SeekFrom::Start(from))?;
        self.0.write_all(bytes)
    }

    fn cut(&mut self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }
}

/// A disk with room for a few bytes more, which may not even let itself be cut.
struct Full {
    file: File,
    room: usize,
    cuts: bool,
}

impl Disk for Full {
    fn put(&mut self, from: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(from))?;
        self.file.write_all(&bytes[..bytes.len().min(self.room)])?;
        Err(io::ErrorKind::StorageFull.into())
    }

    fn cut(&mut self, len: u64) -> io::Result<()> {
        if self.cuts { self.file.set_len(len) } else { Err(io::ErrorKind::Other.into()) }
    }
}

#[test]
fn a_full_disk_is_told_and_changes_nothing_and_once_there_is_room_the_same_act_succeeds() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("anna.jsonl");
    let before = written(&path, 2);
    let full: [Open; 3] = [
        |path| Ok(Box::new(Full { file: super::open(path)?, room: 0, cuts: true })),
        |path| Ok(Box::new(Full { file: super::open(path)?, room: 40, cuts: true })),
        |path| Ok(Box::new(Full { file: super::open(path)?, room: 40, cuts: false })),
    ];
    for disk in full {
        let mut journal = open(&path);
        let usual = std::mem::replace(&mut journal.disk, disk);
        let known = journal.history().len();
        let error = journal.append(act(5, true)).unwrap_err().to_string();
        assert!(error.contains("not written down") && error.contains("make room"), "{error}");
        let error = journal.undo().unwrap_err().to_string();
        assert!(error.contains("not written down"), "{error}");
        assert_eq!((journal.history().len(), said(&journal, 5)), (known, None));
        journal.disk = usual;
        journal.append(act(5, true)).unwrap();
        assert_eq!(said(&journal, 5), Some(true));
        drop(journal);
        let mut bytes = Vec::new();
        File::open(&path).unwrap().read_to_end(&mut bytes).unwrap();
        assert!(bytes.starts_with(&before) && Read::bytes(&path, &bytes).is_whole());
        fs::write(&path, &before).unwrap();
    }
}

#[test]
fn a_journal_of_a_later_version_can_be_read_only_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("anna.jsonl");
    let mut bytes = written(&path, 2);
    bytes.extend_from_slice(b"{\"v\":2,\"by\":\"anna\",\"says\":[1]}\n");
    fs::write(&path, &bytes).unwrap();
    let mut opened = Journal::open(&path, "anna").unwrap();
    assert_eq!((opened.read.newer, opened.journal.history().len()), (1, 2));
    assert!(opened.journal.read_only().unwrap().contains("later version of parallax"));
    assert!(matches!(opened.journal.append(act(3, true)), Err(JournalError::ReadOnly(_))));
    assert_eq!(fs::read(&path).unwrap(), bytes);
}
