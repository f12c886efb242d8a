//! What answers from passages, and what judges which answers mean the same.

use std::sync::Arc;

use super::setup::client;
use super::{Opening, SetupError};
use crate::input::InputError;
use crate::llm::{Chat, Recorded, Recording};
use crate::read::{Answers, Prompted, Reader, brought};

/// Where the replies of models that read or judge answers are kept, in the data folder: a file a model.
const READ: &str = "read";

/// Answers from a file before a model's, and a model that was made to read before one that can be asked anything.
///
/// A reader from a folder is looked at here, and its weights are read when it is first asked.
pub(super) fn reader(
    opening: &Opening,
    model: Option<Arc<dyn Chat>>,
) -> Result<Option<Arc<dyn Reader>>, InputError> {
    if let Some(path) = &opening.answers {
        return Ok(Some(Arc::new(Answers::read(path)?)));
    }
    if let Some(folder) = &opening.reader {
        return Ok(Some(Arc::new(brought::Waiting::at(folder)?)));
    }
    Ok(chat(opening, model)?.map(prompted))
}

/// What reads and what judges answers, without a corpus: both only where the user named them. All of a reader is read at once.
///
/// # Errors
/// A file is not right, or the server's address is none.
#[allow(clippy::type_complexity)]
pub fn readers(opening: &Opening) -> Result<(Option<Arc<dyn Chat>>, Option<Arc<dyn Reader>>), SetupError> {
    let chat = chat(opening, client(opening)?)?;
    let reader = match (&opening.answers, &opening.reader) {
        (None, None) => chat.clone().map(prompted),
        (None, Some(folder)) => Some(brought::open(folder)?),
        (Some(path), _) => Some(Arc::new(Answers::read(path)?) as Arc<dyn Reader>),
    };
    Ok((chat, reader))
}

fn prompted(chat: Arc<dyn Chat>) -> Arc<dyn Reader> {
    Arc::new(Prompted::new(chat))
}

/// The replies that were named, then the model. What it says is recorded in a file of its own: what one model was asked is asked in
/// the same words of the next, and must not be answered for it.
fn chat(opening: &Opening, model: Option<Arc<dyn Chat>>) -> Result<Option<Arc<dyn Chat>>, InputError> {
    let recorded = match &opening.replies {
        Some(path) => Recorded::read(path)?,
        None => Recorded::default(),
    };
    let Some(model) = model else {
        return Ok(opening.replies.is_some().then(|| Arc::new(recorded) as Arc<dyn Chat>));
    };
    let journal = opening.data_dir.join(READ).join(file(model.model()));
    Ok(Some(Arc::new(Recording::open(recorded, Some(model), journal)?)))
}

/// The name of a model's file: its own as far as every system takes it, and a hash that tells it from others.
fn file(model: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let slug: String = model.chars().take(40).map(plain).collect();
    format!("{slug}-{}.jsonl", &blake3::hash(model.as_bytes()).to_hex()[..12])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_look_alike_have_files_of_their_own() {
        assert!(file("org/Model:8b").starts_with("org-model-8b-"), "{}", file("org/Model:8b"));
        assert_ne!(file("org/Model:8b"), file("org-model-8b"));
        assert!(file(&"../".repeat(100)).len() < 70 && file("../x").starts_with("---x-"));
    }
}
