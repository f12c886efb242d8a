//! A tool of the maintainers: prints the prompts for expanding the sample's questions, in the format of recorded replies but with an empty
//! reply: `cargo run --release --example expansion_requests > requests.jsonl`. To make `sample_data/replies.jsonl`, send the prompts to a
//! language model and fill in `model` and `reply`; do not change `key` and `prompt`.

use std::sync::{Arc, Mutex, PoisonError};

use parallax::engine::recipe::{Base, Switches};
use parallax::engine::{LaneQuery, Lists, Opening, Recipe, Setup, rank};
use parallax::expand::Kind;
use parallax::llm::{Chat, ChatError, Reply, Request};
use parallax::retrieve::bm25::Bm25;
use parallax::work::Stop;

/// Records requests and answers none of them.
#[derive(Default)]
struct RequestLog(Mutex<Vec<Request>>);

impl Chat for RequestLog {
    fn model(&self) -> &str {
        "nobody"
    }

    fn reply(&self, request: &Request, _: &Stop) -> Result<Reply, ChatError> {
        let mut requests = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !requests.contains(request) {
            requests.push(request.clone());
        }
        Err(ChatError::NotRecorded)
    }
}

fn main() -> anyhow::Result<()> {
    let folder = std::env::temp_dir().join("parallax-expansion-requests");
    let opening = Opening { data_dir: folder, ..Opening::default() };
    let mut setup = Setup::open(&opening, &|_| {}, &Stop::never())?;
    let log = Arc::new(RequestLog::default());
    setup.chat = Some(Arc::clone(&log) as Arc<dyn Chat>);
    for question in &setup.questions {
        for kind in [Kind::Perspectives, Kind::Keqe, Kind::Csqe] {
            let switches = Switches { expand: Some(kind.into()), ..Switches::default() };
            let recipe = Recipe { base: Base::Bm25(Bm25::default()), switches };
            rank(&setup, &recipe, LaneQuery::neutral(question), &mut Lists::default(), &Stop::never())?;
        }
        for request in log.0.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            let empty = Reply::default();
            println!("{}", parallax::llm::line(&request, &empty)?);
        }
    }
    Ok(())
}
