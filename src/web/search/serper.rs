//! serper.dev, which sells Google's results.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Engine, Search, keyed, paged, texts};
use crate::net::Ask;
use crate::web::WebError;
use crate::work::Stop;

/// Where it is.
pub(super) const PUBLIC: &str = "https://google.serper.dev";

/// The engine.
pub struct Serper {
    engine: Engine,
    key: String,
}

impl Serper {
    /// The engine at an address.
    ///
    /// # Errors
    /// The address is none.
    pub fn at(base: &str, key: &str) -> Result<Self, WebError> {
        Ok(Serper { engine: Engine::at(base)?, key: key.into() })
    }
}

impl Search for Serper {
    fn name(&self) -> String {
        "serper".into()
    }

    fn find(
        &self,
        question: &str,
        wanted: usize,
        delay: Duration,
        stop: &Stop,
    ) -> Result<Vec<String>, WebError> {
        let url = format!("{}/search", self.engine.base);
        let headers = [("x-api-key", self.key.as_str())];
        paged(wanted, delay, stop, |number| {
            let post = Some(json!({ "q": question, "page": number + 1 }).to_string());
            let ask = Ask { headers: &headers, post, ..Ask::of(&url) };
            let answer = self
                .engine
                .ask(&ask, stop, &|refusal| keyed("serper.dev", "PARALLAX_SERPER_KEY", refusal))?;
            Ok(texts(answer.get("organic").unwrap_or(&Value::Null), "link"))
        })
    }
}
