//! Records replies, so that no request is sent twice, in this run or a later one.

use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};

use super::chat::{Chat, ChatError, Reply, Request};
use super::recorded::{Recorded, is_damaged, line_of};
use crate::input::InputError;
use crate::storage::Journal;
use crate::work::Stop;

/// Answers from recorded replies, and sends missing ones to a model.
pub struct Recording {
    recorded: RwLock<Recorded>,
    inner: Option<Arc<dyn Chat>>,
    model: String,
    journal: Journal,
    usable: Box<dyn Fn(&Reply) -> bool + Send + Sync>,
    lost: Mutex<Lost>,
    damage: Option<String>,
}

/// The replies that could not be saved.
#[derive(Default)]
struct Lost {
    count: usize,
    reason: String,
}

impl Recording {
    /// Answers from `recorded` and the file `journal`, which need not exist yet. Other requests go to `inner`, and its replies are appended
    /// to `journal`. If both have a reply, the journal's counts. With `inner`, only replies of its model count.
    ///
    /// Damaged lines of the journal are moved to `NAME.damaged` and asked again. A last line that a killed process left unfinished is
    /// skipped.
    ///
    /// # Errors
    /// The journal exists but cannot be read.
    pub fn open(
        recorded: Recorded,
        inner: Option<Arc<dyn Chat>>,
        journal: PathBuf,
    ) -> Result<Self, InputError> {
        let journal = Journal::at(journal);
        let path = journal.path();
        let lines = journal.read().map_err(|error| InputError::unreadable(path, &error))?;
        let damaged = lines.iter().filter(|line| is_damaged(line)).count();
        if damaged > 0 && !lines.iter().any(|line| line.starts_with(b"{")) {
            // No journal at all: whatever it is, it stays.
            return Err(Recorded::parse(&path.display().to_string(), lines.bytes()).err().unwrap_or_else(
                || InputError::Unreadable { path: path.into(), reason: "no recorded replies".into() },
            ));
        }
        let damage = (damaged > 0).then(|| {
            let count = if damaged == 1 { "1 line is".into() } else { format!("{damaged} lines are") };
            match journal.remove_lines(is_damaged) {
                Ok(_) => format!(
                    "{}: {count} damaged; set aside in its file .damaged, and asked again",
                    path.display()
                ),
                Err(error) => {
                    format!("{}: {count} damaged, and cannot be set aside ({error})", path.display())
                }
            }
        });
        let damage = damage.or_else(|| {
            let torn = !lines.torn().is_empty();
            torn.then(|| {
                format!("{}: its last line is damaged, cut short by a kill, and asked again", path.display())
            })
        });
        let mut recorded = recorded.with(Recorded::of_journal(lines.iter()));
        if let Some(inner) = &inner {
            recorded = recorded.of_model(inner.model());
        }
        let model = inner.as_ref().map_or(recorded.model(), |inner| inner.model()).to_owned();
        let recorded = RwLock::new(recorded);
        let (usable, lost) = (Box::new(|_: &Reply| true), Mutex::default());
        Ok(Recording { recorded, inner, model, journal, usable, lost, damage })
    }

    /// Answers only with replies of one model, and bears its name. For a model that cannot be asked.
    #[must_use]
    pub fn of_model(mut self, model: &str) -> Self {
        let recorded = std::mem::take(self.recorded.get_mut());
        *self.recorded.get_mut() = recorded.of_model(model);
        model.clone_into(&mut self.model);
        self
    }

    /// Saves only usable replies. Useless replies that were saved earlier are requested again if there is a model.
    #[must_use]
    pub fn keeping(mut self, usable: impl Fn(&Reply) -> bool + Send + Sync + 'static) -> Self {
        if self.inner.is_some() {
            self.recorded.get_mut().keep_usable(&usable);
        }
        self.usable = Box::new(usable);
        self
    }

    /// The number of replies.
    pub fn len(&self) -> usize {
        self.recorded.read().len()
    }

    /// Whether there are no replies.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A message about replies that were not saved for a later run; `None` if all were saved.
    pub fn unsaved(&self) -> Option<String> {
        let lost = self.lost.lock();
        let replies = if lost.count == 1 { "reply was" } else { "replies were" };
        let (count, path, reason) = (lost.count, self.journal.path().display(), &lost.reason);
        (count > 0).then(|| format!("{count} {replies} not kept in {path}: {reason}"))
    }

    fn find(&self, request: &Request) -> Option<Reply> {
        self.recorded.read().find(request)
    }
}

impl Chat for Recording {
    fn model(&self) -> &str {
        &self.model
    }

    fn window(&self) -> Option<usize> {
        self.inner.as_ref()?.window()
    }

    fn damage(&self) -> Option<String> {
        self.damage.clone()
    }

    fn reply(&self, request: &Request, stop: &Stop) -> Result<Reply, ChatError> {
        if let Some(reply) = self.find(request) {
            return Ok(reply);
        }
        let inner = self.inner.as_ref().ok_or(ChatError::NotRecorded)?;
        let reply = inner.reply(request, stop)?;
        // Held during the write, so that there is one append at a time, and two threads with the same request get the same reply.
        let mut lost = self.lost.lock();
        if let Some(earlier) = self.find(request) {
            return Ok(earlier);
        }
        let keep = |line: String| self.journal.append([line]).map(drop).map_err(|error| error.to_string());
        if (self.usable)(&reply)
            && let Err(reason) = line_of(request, &self.model, inner.server(), &reply)
                .map_err(|error| error.to_string())
                .and_then(keep)
        {
            *lost = Lost { count: lost.count + 1, reason };
        }
        self.recorded.write().add(request, &self.model, &reply);
        Ok(reply)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::llm::chat::Alternative;

    /// Answers every request with a new number.
    #[derive(Default)]
    struct Counting(AtomicU32);

    impl Chat for Counting {
        fn model(&self) -> &str {
            "counting"
        }

        fn reply(&self, _: &Request, _: &Stop) -> Result<Reply, ChatError> {
            let text = format!("reply {}", self.0.fetch_add(1, Ordering::Relaxed));
            Ok(Reply { text, model: "counting".into(), ..Reply::default() })
        }
    }

    fn request(prompt: &str, sample: u32) -> Request {
        Request { prompt: prompt.into(), temperature: 1.0, max_tokens: 9, sample, ..Request::default() }
    }

    fn open(journal: &Path, asking: bool) -> Recording {
        let inner = asking.then(|| Arc::new(Counting::default()) as Arc<dyn Chat>);
        Recording::open(Recorded::default(), inner, journal.into()).unwrap()
    }

    fn text(chat: &Recording, prompt: &str, sample: u32) -> Result<String, ChatError> {
        chat.reply(&request(prompt, sample), &Stop::never()).map(|reply| reply.text)
    }

    #[test]
    fn a_recorded_request_is_not_sent_again_even_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new").join("journal.jsonl");
        let first = open(&path, true);
        assert_eq!(text(&first, "a", 0).unwrap(), "reply 0");
        assert_eq!(text(&first, "a", 1).unwrap(), "reply 1");
        assert_eq!(text(&first, "a", 0).unwrap(), "reply 0");
        assert_eq!((first.len(), first.unsaved(), first.model()), (2, None, "counting"));
        let again = open(&path, false);
        let reply = again.reply(&request("a", 1), &Stop::never()).unwrap();
        assert!(reply.recorded && reply.text == "reply 1" && reply.model == "counting");
        assert_eq!(text(&again, "b", 0), Err(ChatError::NotRecorded));
    }

    #[test]
    fn the_tokens_of_a_reply_come_back_and_lines_without_them_are_still_read() {
        struct Sure(Vec<Alternative>);
        impl Chat for Sure {
            fn model(&self) -> &str {
                "sure"
            }
            fn reply(&self, _: &Request, _: &Stop) -> Result<Reply, ChatError> {
                let alternatives = self.0.clone();
                Ok(Reply { text: "Yes".into(), model: "sure".into(), alternatives, ..Reply::default() })
            }
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let alternatives = [(" Yes", -0.105_360_5), ("No", -2.25)]
            .map(|(token, logprob)| Alternative { token: token.into(), logprob });
        let open = |inner| Recording::open(Recorded::default(), inner, path.clone()).unwrap();
        let model = |alternatives: &[Alternative]| Some(Arc::new(Sure(alternatives.into())) as Arc<dyn Chat>);
        text(&open(model(&[])), "old", 0).unwrap();
        assert!(!fs::read_to_string(&path).unwrap().contains("alternatives"), "as earlier versions wrote it");
        text(&open(model(&alternatives)), "new", 0).unwrap();
        let again = open(None);
        // Whether the tokens are wanted does not change the request.
        let wanted = |prompt| Request { outcomes: vec![vec!["yes".into()]], ..request(prompt, 0) };
        let found = |prompt| again.reply(&wanted(prompt), &Stop::never()).unwrap().alternatives;
        assert_eq!((found("old"), found("new")), (Vec::new(), alternatives.to_vec()));
        let changed = fs::read_to_string(&path).unwrap().replace("-2.25", "-0.25");
        assert!(Recorded::parse("r", changed.as_bytes()).unwrap_err().to_string().contains("the sum"));
    }

    #[test]
    fn a_second_model_is_not_answered_with_the_first_ones_replies() {
        struct Named(&'static str);
        impl Chat for Named {
            fn model(&self) -> &str {
                self.0
            }
            fn reply(&self, _: &Request, _: &Stop) -> Result<Reply, ChatError> {
                Ok(Reply { text: format!("of {}", self.0), model: self.0.into(), ..Reply::default() })
            }
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let ask = |model: &'static str| {
            let chat =
                Recording::open(Recorded::default(), Some(Arc::new(Named(model))), path.clone()).unwrap();
            text(&chat, "a", 0).unwrap()
        };
        assert_eq!([ask("one"), ask("two"), ask("one")], ["of one", "of two", "of one"]);
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 2, "each was asked once");
        // Without a server the journal has replies of both: only those of the model that is named count; if none is named, any.
        let of = |model| text(&open(&path, false).of_model(model), "a", 0);
        assert_eq!([of("one"), of("two")], [Ok("of one".into()), Ok("of two".into())]);
        assert_eq!(of("three"), Err(ChatError::NotRecorded));
        assert!(text(&open(&path, false), "a", 0).is_ok());
        assert_eq!(open(&path, false).of_model("three").model(), "three");
    }

    #[test]
    fn a_useless_reply_is_requested_once_per_run() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let open = |asking| open(&path, asking).keeping(|reply| reply.text != "reply 0");
        let first = open(true);
        assert_eq!([0, 0].map(|sample| text(&first, "a", sample).unwrap()), ["reply 0", "reply 0"]);
        assert_eq!(text(&first, "b", 0).unwrap(), "reply 1");
        assert_eq!((open(true).len(), text(&open(false), "a", 0)), (1, Err(ChatError::NotRecorded)));
        // A useless reply that was saved earlier is requested again, and returned if there is no model.
        text(&super::tests::open(&path, true), "a", 0).unwrap();
        assert_eq!((open(true).len(), open(false).len()), (1, 2));
    }

    #[test]
    fn a_line_torn_by_a_killed_process_is_ignored_and_moved_aside_before_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        // Longer than one block of the search for the start of the line.
        let long = "long ü ".repeat(20_000);
        let writer = open(&path, true);
        text(&writer, "a", 0).unwrap();
        let first = fs::read(&path).unwrap().len();
        text(&writer, &long, 0).unwrap();
        let whole = fs::read(&path).unwrap();
        for end in [first + 1, first + 9, first + 200, first + 70_001, whole.len() - 2] {
            fs::write(&path, &whole[..end]).unwrap();
            let again = open(&path, true);
            assert_eq!(again.len(), 1, "{end}");
            text(&again, "b", 0).unwrap();
            assert_eq!(again.unsaved(), None);
            let read = Recorded::read(&path).unwrap();
            assert_eq!(read.len(), 2, "{end}");
            assert_eq!(fs::read(&path).unwrap()[..first], whole[..first]);
        }
    }

    #[test]
    fn a_whole_last_line_without_a_line_feed_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        text(&open(&path, true), "a", 0).unwrap();
        let whole = fs::read(&path).unwrap();
        fs::write(&path, &whole[..whole.len() - 1]).unwrap();
        text(&open(&path, true), "b", 0).unwrap();
        assert_eq!(Recorded::read(&path).unwrap().len(), 2);
    }

    #[test]
    fn a_file_that_is_not_a_journal_is_neither_read_nor_changed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes.txt");
        let chat = open(&path, true);
        fs::write(&path, "my notes").unwrap();
        let error = Recording::open(Recorded::default(), None, path.clone()).err().unwrap().to_string();
        assert!(error.contains("notes.txt:1"), "{error}");
        text(&chat, "a", 0).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"my notes");
        assert!(chat.unsaved().unwrap().contains("name another file"));
    }

    #[test]
    fn a_reply_that_cannot_be_saved_is_returned() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let chat = open(&path, true);
        fs::create_dir(&path).unwrap();
        assert_eq!(text(&chat, "a", 0).unwrap(), "reply 0");
        assert_eq!(text(&chat, "a", 0).unwrap(), "reply 0");
        assert!(chat.unsaved().unwrap().starts_with("1 reply was not kept in "));
        text(&chat, "b", 0).unwrap();
        assert!(chat.unsaved().unwrap().starts_with("2 replies were"));
    }

    #[test]
    fn many_writers_append_whole_lines_and_agree_on_one_reply() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        // Two recordings act as two processes.
        let chats = [open(&path, true), open(&path, true)];
        std::thread::scope(|scope| {
            for (name, chat) in ["one", "two"].iter().zip(&chats) {
                for _ in 0..2 {
                    scope.spawn(move || {
                        for sample in 0..20 {
                            let error = text(chat, name, sample).unwrap();
                            assert_eq!(text(chat, name, sample).unwrap(), error);
                        }
                    });
                }
            }
        });
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 40);
        assert_eq!(open(&path, false).len(), 40);
    }

    #[test]
    fn the_journals_reply_counts_if_both_have_one() {
        let folder = tempfile::tempdir().unwrap();
        let (old, new) = (folder.path().join("old"), folder.path().join("new"));
        text(&open(&old, true), "a", 0).unwrap();
        let chat = open(&new, true);
        text(&chat, "b", 0).unwrap();
        text(&chat, "a", 0).unwrap();
        let both = Recording::open(Recorded::read(&old).unwrap(), None, new).unwrap();
        assert_eq!(text(&both, "a", 0).unwrap(), "reply 1");
    }
}
