//! A model from a GGUF file, run here by candle: one reply at a time, on a thread of its own.
//!
//! Owns [`Local`]. The header is read when it is opened, so that a wrong file is told at once; the weights when first asked.

mod draw;
mod gguf;
mod header;
mod network;
mod shape;
mod template;
#[cfg(test)]
mod tests;
mod vocabulary;

use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::thread;
use std::time::Duration;

use self::draw::Draw;
use self::gguf::Gguf;
use self::network::Network;
use self::shape::Shape;
use self::template::Template;
use self::vocabulary::Vocabulary;
use super::{Chat, ChatError, Reply, Request, Tokens};
use crate::input::InputError;
use crate::work::{Stop, Stopped};

/// How often a waiting caller looks whether it should stop.
const LOOK: Duration = Duration::from_millis(20);

/// How many tokens of a prompt are read before a stop is asked for again.
const AT_ONCE: usize = 64;

/// A model in a GGUF file.
#[derive(Debug)]
pub struct Local {
    name: String,
    window: usize,
    jobs: Sender<Job>,
}

struct Job {
    request: Request,
    stop: Stop,
    tell: SyncSender<Result<Reply, ChatError>>,
}

impl Local {
    /// Opens a file. Its weights are read when something is first asked.
    ///
    /// # Errors
    /// It is no GGUF file or cut short, its network is none of those that can be read, or it lacks a tokenizer.
    pub fn open(path: &Path) -> Result<Self, InputError> {
        let file = Gguf::open(path)?;
        let shape = Shape::read(&file)?;
        let vocabulary = Vocabulary::read(&file)?;
        let template = Template::new(file.text("tokenizer.chat_template")).map_err(|why| file.wrong(why))?;
        let (name, window) = (name(&file), shape.window);
        let model = Model { name: name.clone(), file, shape, vocabulary, template, network: None };
        let (jobs, told) = channel();
        let begun = thread::Builder::new().name("llm".into()).spawn(move || model.serve(&told));
        begun.map_err(|error| InputError::unreadable(path, &error))?;
        Ok(Local { name, window, jobs })
    }
}

impl Chat for Local {
    fn model(&self) -> &str {
        &self.name
    }

    fn window(&self) -> Option<usize> {
        Some(self.window)
    }

    fn reply(&self, request: &Request, stop: &Stop) -> Result<Reply, ChatError> {
        if stop.is_set() {
            return Err(Stopped.into());
        }
        if !request.temperature.is_finite() {
            return Err(ChatError::Refused(
                "the request cannot be answered (its temperature is no number)".into(),
            ));
        }
        let ended = || {
            ChatError::Unreachable(format!("{}: the thread of the model has ended; start anew", self.name))
        };
        let (tell, told) = sync_channel(1);
        let job = Job { request: request.clone(), stop: stop.clone(), tell };
        self.jobs.send(job).map_err(|_| ended())?;
        // The thread asks as well, but between tokens alone.
        loop {
            match told.recv_timeout(LOOK) {
                Ok(reply) => return reply,
                Err(RecvTimeoutError::Timeout) if !stop.is_set() => {}
                Err(RecvTimeoutError::Timeout) => return Err(Stopped.into()),
                Err(RecvTimeoutError::Disconnected) => return Err(ended()),
            }
        }
    }
}

/// The file's name, and what tells it and its tokenizer from others of that name.
fn name(file: &Gguf) -> String {
    let mut hasher = blake3::Hasher::new();
    file.sample(&mut hasher);
    if let Ok(tokenizer) = std::fs::read(vocabulary::beside(file.path())) {
        hasher.update(&tokenizer);
    }
    let named = file.path().file_name().unwrap_or_default().to_string_lossy();
    format!("{named} {}", &hasher.finalize().to_hex()[..12])
}

/// All that the thread works with.
struct Model {
    name: String,
    file: Gguf,
    shape: Shape,
    vocabulary: Vocabulary,
    template: Template,
    network: Option<Network>,
}

impl Model {
    /// Answers until nobody is left to ask.
    fn serve(mut self, jobs: &Receiver<Job>) {
        for job in jobs {
            let reply =
                if job.stop.is_set() { Err(Stopped.into()) } else { self.reply(&job.request, &job.stop) };
            // Nobody listens any longer when the caller was stopped.
            let _ = job.tell.send(reply);
        }
    }

    fn reply(&mut self, request: &Request, stop: &Stop) -> Result<Reply, ChatError> {
        let Model { name, file, shape, vocabulary, template, network } = self;
        let nonsense = |why: String| ChatError::Nonsense(format!("{name}: {why}"));
        let prompt = template.prompt(&vocabulary.harmless(request), &vocabulary.marks).map_err(&nonsense)?;
        let asked = vocabulary.tokens(&prompt).map_err(&nonsense)?;
        if asked.is_empty() || asked.len() >= shape.window {
            return Err(ChatError::Refused(format!(
                "{name}: the prompt has {} tokens, and the model takes {} with its reply; ask for less, or take another model",
                asked.len(),
                shape.window
            )));
        }
        let network = match network {
            Some(network) => network,
            None => network.insert(
                Network::load(file, *shape).map_err(|error| ChatError::Unreachable(error.to_string()))?,
            ),
        };
        let room = (shape.window - asked.len()).min(request.max_tokens as usize);
        let (mut memory, mut draw) = (network.memory(), Draw::new(request));
        let (mut written, mut unread) = (Vec::new(), asked.clone());
        let mut ended = false;
        while written.len() < room {
            let mut logits = Vec::new();
            for part in unread.chunks(AT_ONCE) {
                if stop.is_set() {
                    return Err(Stopped.into());
                }
                logits = network.read(part, &mut memory).map_err(|error| nonsense(error.to_string()))?;
            }
            let next = draw.next(&logits);
            let next =
                next.ok_or_else(|| nonsense("it computes no numbers; fetch the model again".into()))?;
            ended = vocabulary.is_end(next);
            if ended {
                break;
            }
            written.push(next);
            unread = vec![next];
        }
        let text = vocabulary.text(&written).map_err(&nonsense)?;
        // A letter of several bytes may be cut in the middle.
        let text = if ended { text.as_str() } else { text.trim_end_matches('\u{fffd}') };
        if text.trim().is_empty() {
            return Err(nonsense("an empty reply".into()));
        }
        let tokens = Tokens { prompt: asked.len() as u64, reply: written.len() as u64 };
        Ok(Reply { text: text.to_owned(), model: name.clone(), recorded: false, tokens: Some(tokens) })
    }
}
