//! Brave Search, which has an index of its own.

use std::time::Duration;

use serde_json::Value;

use super::{Engine, Search, keyed, paged, texts};
use crate::net::Ask;
use crate::web::{WebError, address};
use crate::work::Stop;

/// Where it is.
pub(super) const PUBLIC: &str = "https://api.search.brave.com";
/// The most results it gives at once.
const COUNT: usize = 20;

/// The engine.
pub struct Brave {
    engine: Engine,
    key: String,
}

impl Brave {
    /// The engine at an address.
    ///
    /// # Errors
    /// The address is none.
    pub fn at(base: &str, key: &str) -> Result<Self, WebError> {
        Ok(Brave { engine: Engine::at(base)?, key: key.into() })
    }
}

impl Search for Brave {
    fn name(&self) -> String {
        "brave".into()
    }

    fn find(
        &self,
        question: &str,
        wanted: usize,
        delay: Duration,
        stop: &Stop,
    ) -> Result<Vec<String>, WebError> {
        let base = format!("{}/res/v1/web/search", self.engine.base);
        let headers = [("x-subscription-token", self.key.as_str()), ("accept", "application/json")];
        let mut ended = false;
        paged(wanted, delay, stop, |number| {
            if ended {
                return Ok(Vec::new());
            }
            let mut url = address::parse(&base).map_err(WebError::Search)?;
            url.query_pairs_mut()
                .append_pair("q", question)
                .append_pair("count", &COUNT.to_string())
                .append_pair("offset", &number.to_string());
            let ask = Ask { headers: &headers, ..Ask::of(url.as_str()) };
            let answer = self
                .engine
                .ask(&ask, stop, &|refusal| keyed("Brave Search", "PARALLAX_BRAVE_KEY", refusal))?;
            ended = answer.pointer("/query/more_results_available").and_then(Value::as_bool) == Some(false);
            Ok(texts(answer.pointer("/web/results").unwrap_or(&Value::Null), "url"))
        })
    }
}
