//! A model and the thread that runs it, one reply at a time.

use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::thread;
use std::time::Duration;

use super::gguf::Gguf;
use super::network::{Network, Shape};
use super::prompt::{PromptError, Template, Vocabulary};
use crate::input::InputError;
use crate::llm::chat::{ALTERNATIVES, Alternative, Chat, ChatError, Reply, Request, Tokens, outcome_place};
use crate::llm::recorded::key;
use crate::work::{Stop, Stopped};

/// How often a waiting caller checks its stop.
pub(super) const LOOK: Duration = Duration::from_millis(20);

/// The number of prompt tokens read between two checks of the stop.
pub(super) const AT_ONCE: usize = 64;

/// A model in a GGUF file.
#[derive(Debug)]
pub struct Local {
    name: String,
    window: usize,
    pub(super) jobs: Sender<Job>,
}

pub(super) struct Job {
    pub(super) request: Request,
    pub(super) stop: Stop,
    pub(super) sender: SyncSender<Result<Reply, ChatError>>,
}

impl Local {
    /// Opens a file. Its weights are read at the first request.
    ///
    /// # Errors
    /// The file is not a GGUF file or is cut short, its network is not supported, or it lacks a tokenizer.
    pub fn open(path: &Path) -> Result<Self, InputError> {
        let file = Gguf::open(path)?;
        let shape = Shape::read(&file)?;
        let vocabulary = Vocabulary::read(&file)?;
        let template = Template::new(file.text("tokenizer.chat_template"))
            .map_err(|error| file.wrong(error.to_string()))?;
        let (name, window) = (name(&file), shape.window);
        let model = Model { name: name.clone(), file, shape, vocabulary, template, network: None };
        let (jobs, queue) = channel();
        let started = thread::Builder::new().name("llm".into()).spawn(move || model.serve(&queue));
        started.map_err(|error| InputError::unreadable(path, &error))?;
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
                "the request cannot be answered (its temperature is not a finite number)".into(),
            ));
        }
        let ended = || {
            ChatError::Unreachable(format!(
                "{}: the thread of the model has ended; start the program again",
                self.name
            ))
        };
        let (sender, receiver) = sync_channel(1);
        let job = Job { request: request.clone(), stop: stop.clone(), sender };
        self.jobs.send(job).map_err(|_| ended())?;
        // The thread checks the stop as well, but only between tokens.
        loop {
            match receiver.recv_timeout(LOOK) {
                Ok(reply) => return reply,
                Err(RecvTimeoutError::Timeout) if !stop.is_set() => {}
                Err(RecvTimeoutError::Timeout) => return Err(Stopped.into()),
                Err(RecvTimeoutError::Disconnected) => return Err(ended()),
            }
        }
    }
}

/// The file's name, and a hash that distinguishes it and its tokenizer from others of that name.
fn name(file: &Gguf) -> String {
    let mut hasher = blake3::Hasher::new();
    file.hash_sample(&mut hasher);
    if let Ok(tokenizer) =
        crate::input::read_regular(&super::prompt::tokenizer_path(file.path()), crate::input::WHOLE)
    {
        hasher.update(&tokenizer);
    }
    let file_name = file.path().file_name().unwrap_or_default().to_string_lossy();
    format!("{file_name} {}", &hasher.finalize().to_hex()[..12])
}

/// The state of the thread.
struct Model {
    name: String,
    file: Gguf,
    shape: Shape,
    vocabulary: Vocabulary,
    template: Template,
    network: Option<Network>,
}

impl Model {
    /// Answers until all senders are gone.
    fn serve(mut self, jobs: &Receiver<Job>) {
        for job in jobs {
            let reply =
                if job.stop.is_set() { Err(Stopped.into()) } else { self.reply(&job.request, &job.stop) };
            // The receiver is gone if the caller was stopped.
            let _ = job.sender.send(reply);
        }
    }

    fn reply(&mut self, request: &Request, stop: &Stop) -> Result<Reply, ChatError> {
        let Model { name, file, shape, vocabulary, template, network } = self;
        let nonsense = |why: String| ChatError::Nonsense(format!("{name}: {why}"));
        let failed = |error: PromptError| nonsense(error.to_string());
        let prompt = template.prompt(&vocabulary.escape(request), &vocabulary.marks).map_err(failed)?;
        let prompt_tokens = vocabulary.tokens(&prompt).map_err(failed)?;
        if prompt_tokens.is_empty() || prompt_tokens.len() >= shape.window {
            return Err(ChatError::Refused(format!(
                "{name}: the prompt has {} tokens, and the model takes {} with its reply; ask for less, or take another model",
                prompt_tokens.len(),
                shape.window
            )));
        }
        let network = match network {
            Some(network) => network,
            None => network.insert(
                Network::load(file, *shape).map_err(|error| ChatError::Unreachable(error.to_string()))?,
            ),
        };
        let room = (shape.window - prompt_tokens.len()).min(request.max_tokens as usize);
        let (mut memory, mut draw) = (network.memory(), Draw::new(request));
        let (mut written, mut unread) = (Vec::new(), prompt_tokens.clone());
        let (mut ended, mut likeliest) = (false, Vec::new());
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
                next.ok_or_else(|| nonsense("its output is NaN or infinite; fetch the model again".into()))?;
            ended = vocabulary.is_end(next);
            if ended {
                break;
            }
            if !request.outcomes.is_empty() {
                likeliest.push(log_probabilities(&logits, ALTERNATIVES));
            }
            written.push(next);
            unread = vec![next];
        }
        let text = vocabulary.text(&written).map_err(failed)?;
        // A character of several bytes may be cut at the token limit.
        let text = if ended { text.as_str() } else { text.trim_end_matches('\u{fffd}') };
        if text.trim().is_empty() {
            return Err(nonsense("an empty reply".into()));
        }
        let spelled = |id: u32| vocabulary.text(&[id]).map_err(failed);
        let mut alternatives = Vec::new();
        if !request.outcomes.is_empty() {
            let spellings = written.iter().map(|id| spelled(*id)).collect::<Result<Vec<_>, _>>()?;
            let place = outcome_place(&request.outcomes, spellings.iter());
            for (id, logprob) in place.map(|place| likeliest.swap_remove(place)).unwrap_or_default() {
                alternatives.push(Alternative { token: spelled(id)?, logprob });
            }
        }
        let tokens = Tokens { prompt: prompt_tokens.len() as u64, reply: written.len() as u64 };
        let cut = (!ended).then(|| "length".to_owned());
        let (text, model, tokens) = (text.to_owned(), name.clone(), Some(tokens));
        Ok(Reply { text, model, recorded: false, tokens, cut, alternatives })
    }
}

/// The likeliest tokens with the logarithms of their probabilities, best first.
pub(super) fn log_probabilities(logits: &[f32], most: usize) -> Vec<(u32, f32)> {
    let top = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = logits.iter().map(|logit| (f64::from(*logit) - f64::from(top)).exp()).sum();
    let log_sum = f64::from(top) + sum.ln();
    let mut ids: Vec<u32> = (0..).take(logits.len()).collect();
    let best_first = |a: &u32, b: &u32| logits[*b as usize].total_cmp(&logits[*a as usize]).then(a.cmp(b));
    if ids.len() > most {
        ids.select_nth_unstable_by(most, best_first);
        ids.truncate(most);
    }
    ids.sort_unstable_by(best_first);
    ids.into_iter().map(|id| (id, (f64::from(logits[id as usize]) - log_sum) as f32)).collect()
}

/// Draws tokens for one request.
pub(super) struct Draw {
    temperature: f64,
    chance: blake3::OutputReader,
}

impl Draw {
    /// A generator seeded by the whole request and the sample number.
    pub fn new(request: &Request) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(key(request).as_bytes()).update(&request.sample.to_le_bytes());
        Draw { temperature: request.temperature.into(), chance: hasher.finalize_xof() }
    }

    /// The next token; `None` if a logit is NaN or none is finite.
    pub fn next(&mut self, logits: &[f32]) -> Option<u32> {
        if logits.iter().any(|logit| logit.is_nan()) {
            return None;
        }
        let (best, top) =
            logits.iter().enumerate().reduce(|best, one| if one.1 > best.1 { one } else { best })?;
        if self.temperature <= 0.0 || !top.is_finite() {
            return u32::try_from(best).ok().filter(|_| top.is_finite());
        }
        let temperature = self.temperature;
        let weight = |logit: &f32| ((f64::from(*logit) - f64::from(*top)) / temperature).exp();
        let mut left = self.unit() * logits.iter().map(weight).sum::<f64>();
        let drawn = logits.iter().position(|logit| {
            left -= weight(logit);
            left < 0.0
        });
        u32::try_from(drawn.unwrap_or(best)).ok()
    }

    /// A number in [0, 1).
    fn unit(&mut self) -> f64 {
        let mut bytes = [0; 8];
        self.chance.fill(&mut bytes);
        (u64::from_le_bytes(bytes) >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(temperature: f32, sample: u32) -> Draw {
        Draw::new(&Request { prompt: "p".into(), temperature, max_tokens: 9, sample, ..Request::default() })
    }

    #[test]
    fn at_temperature_zero_the_first_of_the_likeliest_tokens_is_taken() {
        assert_eq!(draw(0.0, 0).next(&[0.0, 2.0, -1.0, 2.0]), Some(1));
    }

    #[test]
    fn tokens_are_drawn_by_their_probability_and_reproducibly() {
        let logits = [0.0, f32::ln(3.0), f32::NEG_INFINITY];
        let drawn = |sample| {
            let mut draw = draw(1.0, sample);
            (0..4000).map(|_| draw.next(&logits).unwrap()).collect::<Vec<_>>()
        };
        let ones = drawn(0).iter().filter(|token| **token == 1).count();
        assert!((2900..3100).contains(&ones) && !drawn(0).contains(&2), "{ones}");
        assert_eq!(drawn(0), drawn(0));
        assert_ne!(drawn(0), drawn(1));
    }

    #[test]
    fn logits_that_are_nan_or_infinite_give_no_token() {
        assert_eq!(draw(0.0, 0).next(&[0.0, f32::NAN]), None);
        assert_eq!(draw(1.0, 0).next(&[f32::NEG_INFINITY]), None);
        assert_eq!(draw(0.0, 0).next(&[]), None);
    }
}
