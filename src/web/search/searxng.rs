//! SearXNG, a search engine of one's own: its JSON interface.

use std::time::Duration;

use serde_json::Value;

use super::{Engine, Refusal, Search, paged, texts};
use crate::net::Ask;
use crate::web::{WebError, address};
use crate::work::Stop;

/// An instance.
pub struct Searxng(Engine);

impl Searxng {
    /// The instance at an address.
    ///
    /// # Errors
    /// The address is none.
    pub fn at(base: &str) -> Result<Self, WebError> {
        Ok(Searxng(Engine::at(base.trim_end_matches('/').trim_end_matches("/search"))?))
    }

    #[cfg(test)]
    pub(crate) fn hasty(mut self) -> Self {
        self.0.backoff.base = Duration::ZERO;
        self
    }

    fn page(&self, question: &str, number: usize, stop: &Stop) -> Result<Vec<String>, WebError> {
        let base = &self.0.base;
        let mut url = address::parse(&format!("{base}/search")).map_err(WebError::Search)?;
        url.query_pairs_mut()
            .append_pair("q", question)
            .append_pair("format", "json")
            .append_pair("pageno", &(number + 1).to_string());
        let ask = Ask { headers: &[("accept", "application/json")], ..Ask::of(url.as_str()) };
        let answer = self.0.ask(&ask, stop, &|refusal| self.refused(refusal))?;
        let Some(results) = answer.get("results").filter(|results| results.is_array()) else {
            return Err(WebError::Search(format!(
                "{base} sent JSON without a list of `results`; is it a SearXNG?"
            )));
        };
        let urls = texts(results, "url");
        let silent = answer.get("unresponsive_engines").map(engines).unwrap_or_default();
        if urls.is_empty() && number == 0 && !silent.is_empty() {
            return Err(WebError::Search(format!(
                "{base} found nothing, because its engines did not answer: {silent}; try again later, or switch on others in its settings.yml"
            )));
        }
        Ok(urls)
    }

    fn refused(&self, refusal: &Refusal) -> String {
        let advice = match refusal {
            // Its way of saying that the format is switched off, which it is in a fresh instance.
            Refusal { status: 403, .. } | Refusal { status: 200..=299, html: true } => {
                "it gives no JSON; switch it on in its settings.yml (search: formats: [html, json]) and restart it"
            }
            Refusal { status: 429, .. } => {
                "it takes you for a robot; switch its limiter off in settings.yml (server: limiter: false), or try again later"
            }
            Refusal { status: 404, .. } => {
                "there is no SearXNG; check the address, such as http://localhost:8888"
            }
            Refusal { status: 300..=399, .. } => "it points elsewhere; name the address that it points to",
            Refusal { status: 500..=599, .. } => "it fails; look into its log",
            _ => "it is no answer of a SearXNG; check the address",
        };
        format!("{} answered {}: {advice}", self.0.base, refusal.status)
    }
}

/// `google (timeout), bing (CAPTCHA)`
fn engines(list: &Value) -> String {
    let each = list.as_array().into_iter().flatten().filter_map(|one| {
        let name = one.get(0)?.as_str()?;
        Some(format!("{name} ({})", one.get(1).and_then(Value::as_str).unwrap_or("no reason")))
    });
    each.collect::<Vec<_>>().join(", ")
}

impl Search for Searxng {
    fn name(&self) -> String {
        format!("searxng:{}", self.0.base)
    }

    fn find(
        &self,
        question: &str,
        wanted: usize,
        delay: Duration,
        stop: &Stop,
    ) -> Result<Vec<String>, WebError> {
        paged(wanted, delay, stop, |number| self.page(question, number, stop))
    }
}
