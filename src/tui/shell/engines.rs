//! The engine that serves the explorer, and the threads that end the engines it replaced.
//!
//! Ending an engine takes as long as its threads need for the passage that they work on, so the main thread waits for that only when the
//! program ends.

use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::{io, mem};

use crate::engine::{Engine, Opening, SendReply};
use crate::tui::message::Msg;

/// Whether the replies of an engine are passed on. False once the engine was replaced: a late reply would be taken for one of its
/// successor. The lock is held while a reply is sent, so all replies of an engine come before those of its successor.
type Passes = Arc<Mutex<bool>>;

/// The current engine and its ending predecessors. Dropping it waits until all of them have ended.
pub struct Engines {
    current: Engine,
    passes: Passes,
    /// Where the replies go.
    send: Sender<Msg>,
    ending: Vec<JoinHandle<()>>,
}

impl Engines {
    /// Starts the first engine.
    ///
    /// # Errors
    /// The system gives no threads.
    pub fn start(opening: Opening, send: Sender<Msg>) -> io::Result<Self> {
        let (current, passes) = launch(opening, &send)?;
        Ok(Engines { current, passes, send, ending: Vec::new() })
    }

    /// Returns the current engine.
    pub fn current(&mut self) -> &mut Engine {
        &mut self.current
    }

    /// Starts an engine in place of the current one, which ends on a thread of its own.
    ///
    /// # Errors
    /// The system gives no threads.
    pub fn replace(&mut self, opening: Opening) -> io::Result<()> {
        set(&self.passes, false);
        let (next, passes) = launch(opening, &self.send).inspect_err(|_| set(&self.passes, true))?;
        let old = mem::replace(&mut self.current, next);
        self.passes = passes;
        self.ending.retain(|thread| !thread.is_finished());
        self.ending.push(thread::Builder::new().name("engine_end".into()).spawn(move || drop(old))?);
        Ok(())
    }
}

impl Drop for Engines {
    fn drop(&mut self) {
        for thread in self.ending.drain(..) {
            // The panic hook has reported a thread that panicked.
            let _ = thread.join();
        }
    }
}

fn set(passes: &Passes, pass: bool) {
    *passes.lock().unwrap_or_else(PoisonError::into_inner) = pass;
}

fn launch(opening: Opening, send: &Sender<Msg>) -> io::Result<(Engine, Passes)> {
    let passes = Arc::new(Mutex::new(true));
    let engine = Engine::start(opening, &while_open(reply_sender(send.clone()), Arc::clone(&passes)))?;
    Ok((engine, passes))
}

fn while_open(reply: SendReply, passes: Passes) -> SendReply {
    Arc::new(move |one| {
        let passes = passes.lock().unwrap_or_else(PoisonError::into_inner);
        if *passes {
            reply(one);
        }
    })
}

/// Returns a function that sends the engine's replies to the interface. Once the interface has ended, replies are dropped.
fn reply_sender(send: Sender<Msg>) -> SendReply {
    Arc::new(move |reply| drop(send.send(Msg::Engine(reply))))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::engine::Reply;

    fn missing() -> Opening {
        Opening { corpus: Some("no-such-corpus.jsonl".into()), ..Opening::default() }
    }

    #[test]
    fn replacing_an_engine_does_not_wait_for_its_threads_but_dropping_does() {
        let (reached, replied) = mpsc::channel();
        let (release, gate) = mpsc::channel::<()>();
        let gate = Mutex::new(gate);
        // The thread that opens the corpus cannot end before the gate opens.
        let blocking: Arc<dyn Fn(Reply) + Send + Sync> = Arc::new(move |_| {
            let _ = reached.send(());
            let _ = gate.lock().map(|gate| gate.recv());
        });
        let (send, _messages) = mpsc::channel();
        let mut engines = Engines {
            current: Engine::start(missing(), &blocking).unwrap(),
            passes: Arc::new(Mutex::new(true)),
            send,
            ending: Vec::new(),
        };
        let held = Arc::downgrade(&blocking);
        drop(blocking);
        replied.recv().unwrap();
        engines.replace(missing()).unwrap();
        assert!(held.upgrade().is_some(), "the old engine still runs");
        drop(release);
        drop(engines);
        assert!(held.upgrade().is_none(), "all threads of the old engine have ended");
    }

    #[test]
    fn a_reply_of_a_replaced_engine_is_dropped() {
        let (send, messages) = mpsc::channel();
        let mut engines = Engines::start(missing(), send.clone()).unwrap();
        let late = while_open(reply_sender(send), Arc::clone(&engines.passes));
        engines.replace(missing()).unwrap();
        late(Reply::OpenFailed("late".into()));
        drop(engines);
        let is_late = |msg: Msg| matches!(msg, Msg::Engine(Reply::OpenFailed(reason)) if reason == "late");
        assert!(!messages.try_iter().any(is_late));
    }
}
