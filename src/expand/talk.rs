//! Asking a model several things, counting what it costs and keeping what went wrong.

use crate::llm::{Chat, ChatError, Reply, Request, Tokens};
use crate::work::{Stop, Stopped};

/// A conversation of independent prompts.
pub(super) struct Talk<'a> {
    chat: &'a dyn Chat,
    stop: &'a Stop,
    gone: bool,
    troubles: Vec<String>,
    /// What it has cost so far.
    pub(super) tokens: Option<Tokens>,
}

impl<'a> Talk<'a> {
    pub(super) fn new(chat: &'a dyn Chat, stop: &'a Stop) -> Self {
        Talk { chat, stop, gone: false, troubles: Vec::new(), tokens: None }
    }

    /// A reply with something in it, or none.
    pub(super) fn ask(&mut self, request: &Request) -> Result<Option<Reply>, Stopped> {
        if self.stop.is_set() {
            return Err(Stopped);
        }
        // Every further prompt to a server that is not there would wait for its time to run out.
        if self.gone {
            return Ok(None);
        }
        match self.chat.reply(request, self.stop) {
            Ok(mut reply) => {
                self.tokens = match (self.tokens, reply.tokens) {
                    (Some(a), Some(b)) => {
                        Some(Tokens { prompt: a.prompt + b.prompt, reply: a.reply + b.reply })
                    }
                    (a, b) => a.or(b),
                };
                reply.text = reply.said().to_owned();
                if reply.text.is_empty() {
                    self.trouble("an empty reply".into());
                    return Ok(None);
                }
                Ok(Some(reply))
            }
            Err(ChatError::Stopped(stopped)) => Err(stopped),
            Err(error) => {
                self.gone = matches!(error, ChatError::Unreachable(_));
                self.trouble(error.to_string());
                Ok(None)
            }
        }
    }

    /// Keeps what was wrong with a reply.
    pub(super) fn trouble(&mut self, what: String) {
        if !self.troubles.contains(&what) {
            self.troubles.push(what);
        }
    }

    /// What went wrong, behind what came of it; nothing where nothing did.
    pub(super) fn note(&self, outcome: &str) -> Option<String> {
        let troubles = self.troubles.join("; ");
        (!troubles.is_empty()).then(|| format!("{}: {troubles}; {outcome}", self.chat.model()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expand::prompts::answer;
    use crate::expand::testing::Scripted;

    #[test]
    fn thoughts_are_no_part_of_a_reply() {
        for (text, said_of_it) in [
            ("<think>hm</think>\n yes ", "yes"),
            ("hm</think>yes", "yes"),
            ("<think>cut short", ""),
            (" yes", "yes"),
        ] {
            let reply = Reply { text: text.into(), model: String::new(), recorded: false, tokens: None };
            assert_eq!(reply.said(), said_of_it);
        }
    }

    #[test]
    fn a_server_that_is_not_there_is_asked_once_and_one_that_talks_nonsense_again() {
        let never = Stop::never();
        for (error, calls) in [
            (ChatError::Unreachable("connection refused".into()), 1),
            (ChatError::Nonsense("<html>".into()), 3),
            (ChatError::Refused("no".into()), 3),
            (ChatError::NotRecorded, 3),
        ] {
            let said = error.to_string();
            let chat = Scripted::new(vec![Err(error.clone()), Err(error.clone()), Err(error)]);
            let mut talk = Talk::new(&chat, &never);
            for sample in 0..3 {
                assert_eq!(talk.ask(&answer("q", sample)), Ok(None));
            }
            assert_eq!(chat.asked().len(), calls);
            assert_eq!(talk.note("nothing came"), Some(format!("fake: {said}; nothing came")));
        }
    }

    #[test]
    fn costs_add_up_over_replies_of_no_use() {
        let never = Stop::never();
        let chat = Scripted::saying(&["one", "", "three"]);
        let mut talk = Talk::new(&chat, &never);
        let replies: Vec<bool> =
            (0..3).map(|sample| talk.ask(&answer("q", sample)).unwrap().is_some()).collect();
        assert_eq!(replies, [true, false, true]);
        assert_eq!(talk.tokens, Some(Tokens { prompt: 30, reply: 9 }));
    }
}
