//! The engine that serves the explorer, and the threads that end the engines it replaced.
//!
//! Ending an engine takes as long as its threads need for the passage that they work on, so the main thread waits for that only when the
//! program ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::thread::{self, JoinHandle};
use std::{io, mem};

use super::play::reply_sender;
use crate::engine::{Engine, Opening};
use crate::tui::message::Msg;

/// The current engine and its ending predecessors. Dropping it waits until all of them have ended.
pub struct Engines {
    current: Engine,
    /// Whether the replies of the current engine are passed on. False once the engine was replaced: a late reply would be taken for one
    /// of its successor.
    passes: Arc<AtomicBool>,
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
        let (next, passes) = launch(opening, &self.send)?;
        self.passes.store(false, Ordering::Relaxed);
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

fn launch(opening: Opening, send: &Sender<Msg>) -> io::Result<(Engine, Arc<AtomicBool>)> {
    let passes = Arc::new(AtomicBool::new(true));
    let (reply, pass) = (reply_sender(send.clone()), Arc::clone(&passes));
    let engine = Engine::start(
        opening,
        &(Arc::new(move |one| {
            if pass.load(Ordering::Relaxed) {
                reply(one);
            }
        }) as _),
    )?;
    Ok((engine, passes))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
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
            passes: Arc::new(AtomicBool::new(true)),
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
}
