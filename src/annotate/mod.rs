//! Labels by hand: journals of annotators, the labels that count, agreement, and label files in and out.
//!
//! An annotator's actions are lines of a [`Journal`], to which lines are only added. A [`History`] is the union of any number of
//! journals and holds the current labels; [`Human`] holds those that count. A [`Project`] lists the passages to judge and their
//! annotators. [`agree`] measures agreement, [`refit`](fn@refit::refit) fits the detector's threshold, [`sample`] draws questions whose
//! labels correct the detector ([`narrowing`]), [`formats`] reads and writes label files.
//!
//! Must not depend on how labels are displayed or used in ranking. May use: corpus, detect, input, measure, question, storage.
//!
//! To add a label format: a file in `formats/` and a variant of [`formats::Format`]. `--labels` is read elsewhere, by `detect/labels.rs`.

pub mod agree;
mod entry;
mod file;
pub mod formats;
mod history;
mod human;
mod journal;
mod material;
pub mod narrowing;
mod order;
mod project;
pub mod refit;
pub mod sample;
mod transfer;

pub use entry::{Act, Decision, Entry, Key, Seen, VERSION, View, guidelines_hash, text_hash};
pub use file::{Read, ReadOnly, is_name, journals, one_name, repair};
pub use history::History;
pub use human::Human;
pub use journal::{Journal, JournalError, Opened};
pub use material::{Material, Model, Place, Row, RowError};
pub use order::{Repeat, assign, doubt, drop_repeats, plant, queue, repeats};
pub use project::{Item, Order, Progress, Project};
pub use sample::{Sample, distinct};
pub use transfer::{Lost, ONCE_SHOWN, Remap, entries, name_for_journal, remap, restate, unseen};

#[cfg(test)]
mod testing {
    use std::collections::BTreeMap;
    use std::path::Path;

    use super::entry::{Act, Decision, Entry, Key, View, text_hash};
    use super::history::History;
    use super::journal::Journal;
    use super::material::Model;
    use crate::corpus::{Corpus, Passage};

    /// The question of all tests.
    pub const QUESTION: &str = "Should zoos be banned?";
    /// Its first statement.
    pub const YES: &str = "Zoos should be banned.";

    /// A passage whose text is only its number.
    pub fn passage(n: usize) -> Passage {
        Passage { id: format!("p{n}"), text: format!("Text {n}."), ..Passage::default() }
    }

    /// An answer on passage `n`.
    pub fn act(n: usize, supports: bool) -> Act {
        let passage = passage(n);
        let answers = BTreeMap::from([(YES.to_owned(), supports)]);
        let (text, view) = (text_hash(&passage), View { answers, ..View::default() });
        Act { question: QUESTION.into(), passage: passage.id, text, view, took: Some(1200), seen: None }
    }

    /// The journal, opened for writing.
    pub fn open(path: &Path) -> Journal {
        let journal = Journal::open(path, "anna").unwrap().journal;
        assert!(journal.read_only().is_none());
        journal
    }

    /// The answer of the journal's annotator on passage `n`.
    pub fn said(journal: &Journal, n: usize) -> Option<bool> {
        let act = act(n, true);
        let key =
            Key { by: journal.by().into(), question: act.question.clone(), passage: act.passage.clone() };
        journal.history().view(&key)?.answers.get(YES).copied()
    }

    /// A decision about passage `p<number>` of a question.
    pub fn decision(by: &str, question: &str, passage: usize, supports: bool) -> Decision {
        Decision {
            by: by.into(),
            question: question.into(),
            passage: format!("p{passage}"),
            text: format!("hash of p{passage}"),
            perspective: "Yes.".into(),
            supports,
            evidence: None,
            note: None,
            flagged: false,
            at: 1,
            took: None,
            seen: None,
        }
    }

    /// A detector that gives passage `p<i>` the probability `ps[i]`.
    pub fn model(ps: &[f32]) -> Model {
        let p = ps.iter().enumerate().map(|(i, p)| ((format!("hash of p{i}"), "Yes.".to_owned()), *p));
        Model { detector: "parallax-x".into(), threshold: 0.5, p: p.collect(), ..Model::default() }
    }

    /// A corpus of these passages.
    pub fn corpus(passages: &[Passage]) -> Corpus {
        let lines: String = passages.iter().map(|one| serde_json::to_string(one).unwrap() + "\n").collect();
        Corpus::builtin("test", Box::leak(lines.into_bytes().into_boxed_slice()))
    }

    /// The history of these acts, each with the name of its annotator.
    pub fn history(acts: &[(&str, Act)]) -> History {
        let mut history = History::default();
        for (by, act) in acts {
            let was = history.heads_of(act, by);
            history.take(Entry::new(act.clone(), by, was, 0).unwrap());
        }
        history
    }
}

#[cfg(test)]
mod damage_tests {
    use std::fs;
    use std::fs::File;
    use std::io::Read as _;
    use std::path::Path;

    use super::file::ReadOnly;
    use super::file::{Read, repair};
    use super::journal::{Journal, JournalError};
    use super::testing::{act, open, said};
    use crate::measure::seeded::SplitMix64;
    use crate::storage::testing::{FullDisk, OpenDisk};

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
            journal.file = journal.file.clone().unsynced();
            journal.append(act(9, true)).unwrap();
            drop(journal);
            let read = Read::file(&place).unwrap();
            assert!(read.is_whole() && read.entries.len() == whole + 1, "{end}: {read:?}");
            // What was cut off is kept, byte for byte.
            let torn = &bytes[lines(&bytes[..end]).checked_sub(1).map_or(0, |n| nth_end(&bytes, n))..end];
            let kept =
                fs::read(folder.path().join(format!("{end}")).join("anna.jsonl.torn")).unwrap_or_default();
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

    #[cfg(unix)]
    #[test]
    fn a_folder_replaced_by_a_copy_is_locked_again_and_never_written_by_two() {
        let folder = tempfile::tempdir().unwrap();
        let [place, copy, old] = ["project", "copy", "old"].map(|name| folder.path().join(name));
        let path = place.join("anna.jsonl");
        let mut first = open(&path);
        first.append(act(1, true)).unwrap();
        let replaced = |old: &Path| {
            fs::create_dir(&copy).unwrap();
            for name in ["anna.jsonl", "anna.lock"] {
                fs::copy(place.join(name), copy.join(name)).unwrap();
            }
            fs::rename(&place, old).unwrap();
            fs::rename(&copy, &place).unwrap();
        };
        replaced(&old);
        first.append(act(2, true)).unwrap();
        let held = Journal::open(&path, "anna").unwrap().journal;
        assert!(matches!(held.read_only(), Some(ReadOnly::Held { .. })), "the copy is locked now");
        replaced(&folder.path().join("older"));
        let mut second = open(&path);
        let refused = first.append(act(3, true)).unwrap_err();
        assert!(matches!(refused, JournalError::ReadOnly(ReadOnly::Held { .. })), "{refused}");
        second.append(act(3, false)).unwrap();
        assert_eq!(Read::file(&path).unwrap().entries.len(), 3);
    }

    #[test]
    fn a_flipped_bit_costs_its_line_and_is_reported_with_its_number_and_repair_keeps_the_old_file() {
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
            // A carriage return before the line feed is not damage; every other change is reported.
            assert!(read.bad.iter().any(|bad| bad.line == line + 1), "{at}: {read:?}");
        }
        let mut flipped = bytes.clone();
        flipped[nth_end(&bytes, 1) + 20] ^= 4;
        fs::write(&path, &flipped).unwrap();
        let kept = repair(&path).unwrap().unwrap();
        assert_eq!(fs::read(kept).unwrap(), flipped);
        let read = Read::file(&path).unwrap();
        assert!(read.is_whole() && read.entries.len() == 5);
        assert_eq!(repair(&path).unwrap(), None);
    }

    #[test]
    fn a_full_disk_is_reported_and_changes_nothing_and_with_room_the_same_act_succeeds() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("anna.jsonl");
        let before = written(&path, 2);
        let full: [OpenDisk; 3] = [
            |path| FullDisk::open(path, 0, true),
            |path| FullDisk::open(path, 40, true),
            |path| FullDisk::open(path, 40, false),
        ];
        for disk in full {
            let mut journal = open(&path);
            let usual = journal.file.clone();
            journal.file = usual.clone().on(disk);
            let known = journal.history().len();
            let error = journal.append(act(5, true)).unwrap_err().to_string();
            assert!(error.contains("not written down") && error.contains("make room"), "{error}");
            let error = journal.undo().unwrap_err().to_string();
            assert!(error.contains("not written down"), "{error}");
            assert_eq!((journal.history().len(), said(&journal, 5)), (known, None));
            journal.file = usual;
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
        bytes.extend_from_slice(b"{\"v\":3,\"by\":\"anna\",\"says\":[1]}\n");
        fs::write(&path, &bytes).unwrap();
        let mut opened = Journal::open(&path, "anna").unwrap();
        assert_eq!((opened.read.newer, opened.journal.history().len()), (1, 2));
        assert!(matches!(opened.journal.read_only(), Some(ReadOnly::Newer(_))));
        assert!(matches!(opened.journal.append(act(3, true)), Err(JournalError::ReadOnly(_))));
        assert_eq!(fs::read(&path).unwrap(), bytes);
    }
}

#[cfg(test)]
mod machine_tests {
    use std::fs;

    use super::testing::{act, open, said};

    #[test]
    fn a_journal_holds_what_another_machine_wrote_meanwhile() {
        let folder = tempfile::tempdir().unwrap();
        let (here, there) = (folder.path().join("anna.jsonl"), folder.path().join("there.jsonl"));
        let mut journal = open(&here);
        journal.append(act(1, true)).unwrap();
        fs::copy(&here, &there).unwrap();
        open(&there).append(act(2, false)).unwrap();
        fs::copy(&there, &here).unwrap();
        let new = journal.refresh().unwrap();
        assert_eq!((new.len(), said(&journal, 2)), (1, Some(false)));
        journal.append(act(2, true)).unwrap();
        assert_eq!(said(&journal, 2), Some(true));
    }

    #[test]
    fn undo_takes_back_what_was_labelled_on_another_machine_meanwhile_and_not_an_earlier_act_over_it() {
        let folder = tempfile::tempdir().unwrap();
        let (here, there) = (folder.path().join("anna.jsonl"), folder.path().join("there.jsonl"));
        let mut journal = open(&here);
        journal.append(act(1, true)).unwrap();
        journal.append(act(2, true)).unwrap();
        fs::copy(&here, &there).unwrap();
        open(&there).append(act(2, false)).unwrap();
        fs::copy(&there, &here).unwrap();
        journal.refresh().unwrap();
        journal.undo().unwrap();
        assert_eq!((said(&journal, 1), said(&journal, 2)), (Some(true), Some(true)));
        journal.undo().unwrap();
        assert_eq!((said(&journal, 1), said(&journal, 2)), (Some(true), None));
    }
}
