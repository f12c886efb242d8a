//! Undo, clocks, and several processes.

use std::fs;
use std::io::{BufRead, BufReader, Read as _};
use std::process::{Command, Stdio};

use super::super::testing::{act, open, said};
use super::*;

#[test]
fn undo_and_redo_go_on_without_end_and_even_after_a_restart_and_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep").join("anna.jsonl");
    let mut journal = open(&path);
    for n in 0..50 {
        journal.append(act(n % 5, n % 3 == 0)).unwrap();
    }
    for _ in 0..50 {
        assert!(journal.undo().unwrap().is_some());
    }
    assert!(journal.undo().unwrap().is_none());
    assert!((0..5).all(|n| said(&journal, n).is_none()));
    for _ in 0..50 {
        assert!(journal.redo().unwrap().is_some());
    }
    assert!(journal.redo().unwrap().is_none());
    assert_eq!((said(&journal, 4), said(&journal, 0)), (Some(false), Some(true)));
    journal.undo().unwrap();
    journal.append(act(0, true)).unwrap();
    assert!(journal.redo().unwrap().is_none());
    drop(journal);
    let mut journal = open(&path);
    let entries = journal.history().len();
    assert_eq!(entries, 152);
    journal.append(act(8, true)).unwrap();
    journal.undo().unwrap();
    assert_eq!(said(&journal, 8), None);
    // The restart knows what came before.
    assert!(journal.undo().unwrap().is_some());
    assert_eq!(journal.history().len(), entries + 3);
}

#[test]
fn a_restart_goes_on_undoing_where_the_last_run_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("anna.jsonl");
    let mut journal = open(&path);
    for (n, yes) in [(1, true), (2, true), (3, false)] {
        journal.append(Act { took: Some(900), ..act(n, yes) }).unwrap();
    }
    journal.undo().unwrap();
    drop(journal);
    let mut journal = open(&path);
    journal.undo().unwrap();
    assert_eq!((said(&journal, 1), said(&journal, 2), said(&journal, 3)), (Some(true), None, None));
    journal.redo().unwrap();
    journal.redo().unwrap();
    assert_eq!((said(&journal, 2), said(&journal, 3)), (Some(true), Some(false)));
    assert!(journal.redo().unwrap().is_none());
}

#[test]
fn a_clock_that_goes_backwards_changes_no_label_and_is_noted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("anna.jsonl");
    let mut journal = open(&path);
    journal.clock = || 2_000;
    journal.append(act(1, true)).unwrap();
    journal.clock = || 1_000;
    journal.append(act(1, false)).unwrap();
    drop(journal);
    let Opened { journal, read } = Journal::open(&path, "anna").unwrap();
    assert_eq!(said(&journal, 1), Some(false));
    assert_eq!(read.backwards, [2]);
    assert!(read.is_whole());
}

#[test]
fn a_file_that_was_put_back_to_an_earlier_state_gets_its_lines_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("anna.jsonl");
    let mut journal = open(&path);
    journal.append(act(1, true)).unwrap();
    let earlier = fs::read(&path).unwrap();
    journal.append(act(2, true)).unwrap();
    fs::remove_file(&path).unwrap();
    fs::write(&path, &earlier).unwrap();
    journal.append(act(3, true)).unwrap();
    drop(journal);
    let journal = open(&path);
    assert_eq!((1..=3).map(|n| said(&journal, n)).collect::<Vec<_>>(), [Some(true); 3]);
}

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
fn a_name_that_would_leave_the_folder_or_hide_a_file_is_refused() {
    for name in ["", "../anna", "a/b", "a\\b", ".hidden", "pool", "project", "a b", &"a".repeat(61)] {
        assert!(matches!(Journal::open(Path::new("x.jsonl"), name), Err(JournalError::Name(_))), "{name}");
    }
    assert!(["anna", "Ünal", "a.b-c_1", "安娜"].into_iter().all(is_name));
}

/// Does nothing, unless it was started by one of the tests below: then it labels until it is killed.
#[test]
fn the_other_process() {
    let Some(path) = std::env::var_os("PARALLAX_TEST_JOURNAL") else { return };
    let mut journal = open(Path::new(&path));
    for n in 0.. {
        journal.append(act(n, true)).unwrap();
        println!("written {n}");
        if std::env::var_os("PARALLAX_TEST_HOLD").is_some() {
            // Until the other end is closed.
            let _ = io::stdin().read(&mut [0]);
        }
    }
}

fn other(path: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "annotate::journal::tests::the_other_process", "--nocapture"]);
    command.env("PARALLAX_TEST_JOURNAL", path).stdin(Stdio::piped()).stdout(Stdio::piped());
    command.stderr(Stdio::null());
    command
}

#[test]
fn a_second_process_can_read_only_and_is_told_who_writes_and_a_dead_owner_holds_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("anna.jsonl");
    let mut child = other(&path).env("PARALLAX_TEST_HOLD", "1").spawn().unwrap();
    let told = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(told.map_while(Result::ok).any(|line| line.ends_with("written 0")));
    let mut second = Journal::open(&path, "anna").unwrap().journal;
    let reason = second.read_only().unwrap();
    let owner = format!("anna (process {} on ", child.id());
    assert!(reason.contains(&owner) && reason.contains("since") && reason.contains("GMT"), "{reason}");
    assert_eq!(said(&second, 0), Some(true));
    assert!(matches!(second.append(act(1, true)), Err(JournalError::ReadOnly(_))));
    child.kill().unwrap();
    child.wait().unwrap();
    open(&path).append(act(1, false)).unwrap();
    assert_eq!(second.refresh().unwrap().len(), 1);
}

#[test]
fn what_was_said_to_be_written_is_there_after_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("anna.jsonl");
    let mut child = other(&path).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let written = lines.filter(|line| line.contains("written ")).take(20).count();
    child.kill().unwrap();
    child.wait().unwrap();
    let journal = open(&path);
    assert_eq!(written, 20);
    assert!((0..20).all(|n| said(&journal, n) == Some(true)));
}

#[test]
fn two_handles_on_one_journal_never_write_both() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("anna.jsonl");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for n in 0..20 {
                    let mut journal = Journal::open(&path, "anna").unwrap().journal;
                    let may = journal.read_only().is_none();
                    assert_eq!(journal.append(act(n, true)).is_ok(), may);
                }
            });
        }
    });
    let read = Read::file(&path).unwrap();
    assert!(read.is_whole() && read.backwards.is_empty());
    let mut history = History::default();
    read.entries.into_iter().for_each(|entry| assert!(history.take(entry)));
    assert!(history.conflicts().is_empty());
}

#[test]
fn a_journal_that_is_only_looked_at_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journals").join("anna.jsonl");
    let mut journal = Journal::show(&path, "anna").unwrap().journal;
    assert!(journal.read_only().is_some_and(|why| why.contains("open it again to label")));
    assert!(journal.undo().is_ok_and(|undone| undone.is_none()));
    assert!(!folder.path().join("journals").exists());
}
