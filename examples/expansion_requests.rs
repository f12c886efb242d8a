//! A tool of the maintainers: prints the prompts that expansions of the sample's questions send, as recorded replies without their reply:
//! `cargo run --release --example expansion_requests > requests.jsonl`. Whoever has a language model fills in `model` and `reply` and
//! leaves `key` and `prompt` as they are; the result is `sample_data/replies.jsonl`.

use std::sync::{Arc, Mutex, PoisonError};

use parallax::engine::recipe::{Base, Switches};
use parallax::engine::{LaneQuery, Lists, Opening, Recipe, Setup, rank};
use parallax::expand::Kind;
use parallax::llm::{Chat, ChatError, Reply, Request};
use parallax::retrieve::bm25::Bm25;
use parallax::work::Stop;

/// Takes requests down and answers none.
#[derive(Default)]
struct Secretary(Mutex<Vec<Request>>);

impl Chat for Secretary {
    fn model(&self) -> &str {
        "nobody"
    }

    fn reply(&self, request: &Request, _: &Stop) -> Result<Reply, ChatError> {
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !taken.contains(request) {
            taken.push(request.clone());
        }
        Err(ChatError::NotRecorded)
    }
}

fn main() -> anyhow::Result<()> {
    let folder = std::env::temp_dir().join("parallax-expansion-requests");
    let opening = Opening { data_dir: folder, ..Opening::default() };
    let mut setup = Setup::open(&opening, &|_| {}, &Stop::never())?;
    let secretary = Arc::new(Secretary::default());
    setup.chat = Some(Arc::clone(&secretary) as Arc<dyn Chat>);
    for question in &setup.questions {
        for kind in [Kind::Perspectives, Kind::Keqe, Kind::Csqe] {
            let switches = Switches { expand: Some(kind), ..Switches::default() };
            let recipe = Recipe { base: Base::Bm25(Bm25::default()), switches };
            rank(&setup, &recipe, LaneQuery::plainly(question), &mut Lists::default(), &Stop::never())?;
        }
        for request in secretary.0.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            let empty = Reply { text: String::new(), model: String::new(), recorded: false, tokens: None };
            println!("{}", parallax::llm::line(&request, &empty)?);
        }
    }
    Ok(())
}
