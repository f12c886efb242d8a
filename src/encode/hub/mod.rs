//! Fetching models from a Hugging Face hub into the data folder.
//!
//! ```text
//! DATA/models/ORG--MODEL/                  a whole model, with manifest.json: revision, sizes and hashes
//! DATA/models/ORG--MODEL.REVISION.part/    one that is being fetched; a later call goes on from there
//! DATA/models/ORG--MODEL.lock              held meanwhile
//! ```

mod file;
mod listing;
mod manifest;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::named::{MANIFEST, folder};
use crate::corpus::library::replace;
use crate::net::retry::{Backoff, passes, wait};
use crate::net::{Ask, Fetcher, Head, NetError, at};
use crate::work::{Job, Progress, Stop, Stopped, Tell};

pub use manifest::{Kept, Manifest};

/// The hub that is asked if `HF_ENDPOINT` names none.
const PUBLIC: &str = "https://huggingface.co";
/// How often something is asked for that may come later.
const TRIES: u32 = 5;
/// Redirects followed for one file.
const HOPS: usize = 5;
/// A listing is not read further than this.
const LISTING: usize = 8 << 20;

/// Why a model was not fetched. What came is kept, and the same command goes on from there.
#[derive(Debug, thiserror::Error)]
pub enum HubError {
    /// The hub refused, could not be reached, or sent what it should not.
    #[error("{0}")]
    Hub(String),
    /// What came could not be kept.
    #[error("{0}; make room there or name another folder with --data-dir, what came so far is kept")]
    Keep(String),
    /// Stopped on request.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// A hub, and how it may be asked.
pub struct Hub {
    fetcher: Fetcher,
    endpoint: String,
    token: Option<String>,
    /// The pauses between tries.
    pub backoff: Backoff,
}

impl Hub {
    /// The hub that the environment names: `HF_ENDPOINT`, `HF_TOKEN`, and `HF_HUB_OFFLINE`, which forbids asking at all.
    ///
    /// # Errors
    /// It may not be asked, or its address is none.
    pub fn from_env() -> Result<Self, HubError> {
        let set = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
        let no = ["0", "false", "no", "off"];
        if set("HF_HUB_OFFLINE").is_some_and(|value| !no.contains(&value.to_ascii_lowercase().as_str())) {
            return Err(HubError::Hub(
                "HF_HUB_OFFLINE is set, so no hub is asked; unset it, or name a folder: path:FOLDER".into(),
            ));
        }
        let endpoint = set("HF_ENDPOINT").unwrap_or_else(|| PUBLIC.into());
        Hub::at(endpoint.trim(), set("HF_TOKEN").map(|token| token.trim().to_owned()))
    }

    /// A hub at an address.
    ///
    /// # Errors
    /// The address is none, or the token cannot be sent.
    pub fn at(endpoint: &str, token: Option<String>) -> Result<Self, HubError> {
        let endpoint = endpoint.trim_end_matches('/').to_owned();
        let wrong = |why: String| {
            HubError::Hub(format!(
                "the hub's address cannot be used: {why}; set HF_ENDPOINT to one such as {PUBLIC}"
            ))
        };
        if endpoint.contains(['@', '?', '#']) {
            return Err(wrong("it holds a @, ? or #".into()));
        }
        at(&endpoint, "/").map_err(wrong)?;
        if token.as_ref().is_some_and(|token| token.contains(|c: char| !c.is_ascii_graphic())) {
            return Err(HubError::Hub("HF_TOKEN holds blanks or odd characters; set it anew".into()));
        }
        let fetcher = Fetcher::new(&endpoint).map_err(HubError::Hub)?;
        Ok(Hub { fetcher, endpoint, token, backoff: Backoff::default() })
    }

    /// How long the hub may send nothing at all.
    pub fn patience(&mut self, patience: Duration) {
        self.fetcher.patience = patience;
    }

    /// Fetches a repository into its folder below `models`, going on from where an earlier call ended.
    ///
    /// # Errors
    /// See [`HubError`].
    pub fn fetch(
        &self,
        repository: &str,
        models: &Path,
        tell: Tell<'_>,
        stop: &Stop,
    ) -> Result<PathBuf, HubError> {
        let place = folder(models, repository);
        if place.join(MANIFEST).exists() {
            return Ok(place);
        }
        let keep = |error: std::io::Error| {
            HubError::Keep(format!("{} cannot be written ({error})", models.display()))
        };
        fs::create_dir_all(models).map_err(keep)?;
        let lock = File::create(beside(&place, ".lock")).map_err(keep)?;
        if lock.try_lock().is_err() {
            return Err(HubError::Hub(format!("another process is fetching {repository}; wait for its end")));
        }
        let listing = listing::read(&self.listing(repository, stop)?, repository)?;
        let part = beside(&place, &format!(".{}.part", &listing.revision[..12]));
        fs::create_dir_all(&part).map_err(keep)?;
        let total = listing.files.iter().map(|file| file.size.unwrap_or(0)).sum::<u64>();
        let mut manifest = Manifest::of(repository, &listing.revision);
        let mut done = 0;
        for file in &listing.files {
            let before = done;
            let progress = |bytes: u64| {
                let total = if listing.files.iter().all(|file| file.size.is_some()) { total } else { 0 };
                tell(Progress {
                    job: Job::Fetching,
                    done: (before + bytes) / 1000,
                    total: total.div_ceil(1000),
                });
            };
            let path = format!("/{repository}/resolve/{}/{}", listing.revision, file.name);
            let kept = self.file(&path, file, &part, &progress, stop)?;
            done += kept.size;
            manifest.files.insert(file.name.clone(), kept);
        }
        tell(Progress { job: Job::Fetching, done: done.div_ceil(1000), total: done.div_ceil(1000) });
        let bytes = manifest.bytes();
        replace(&part.join(MANIFEST), &bytes).map_err(keep)?;
        fs::rename(&part, &place).map_err(keep)?;
        Ok(place)
    }

    /// What the hub says of a repository.
    fn listing(&self, repository: &str, stop: &Stop) -> Result<Vec<u8>, HubError> {
        let path = format!("/api/models/{repository}/revision/main?blobs=true");
        let mut page = Vec::new();
        self.patiently(repository, stop, || {
            page.clear();
            let url = self.address(&path)?;
            self.follow(&url, 0, stop, &mut |head| Ok(head.status == 200), &mut |bytes| {
                if page.len() + bytes.len() > LISTING {
                    return Err(std::io::Error::other("the hub's listing does not end"));
                }
                page.extend_from_slice(bytes);
                Ok(())
            })
        })?;
        Ok(page)
    }

    fn address(&self, path: &str) -> Result<String, NetError> {
        at(&format!("{}{path}", self.endpoint), "").map_err(NetError::Unreached)
    }

    /// Asks, and goes where the answers point. The token is for the hub alone: what a redirect leads to may be anybody's.
    fn follow(
        &self,
        url: &str,
        from: u64,
        stop: &Stop,
        head: &mut dyn FnMut(&Head) -> Result<bool, NetError>,
        body: &mut dyn FnMut(&[u8]) -> std::io::Result<()>,
    ) -> Result<Head, NetError> {
        let mut url = url.to_owned();
        for _ in 0..=HOPS {
            let home = url.strip_prefix(&self.endpoint).is_some_and(|rest| rest.starts_with('/'));
            let token = self.token.as_deref().filter(|_| home);
            let answer = self.fetcher.get(&Ask { token, from, ..Ask::of(&url) }, stop, head, body)?;
            match (answer.status, &answer.location) {
                (300..=399, Some(next)) => url.clone_from(next),
                _ => return Ok(answer),
            }
        }
        Err(NetError::Unreached("it sends from one address to the next without end".into()))
    }

    /// Tries again what may pass, with pauses; what will not is told with what to do.
    fn patiently(
        &self,
        what: &str,
        stop: &Stop,
        mut once: impl FnMut() -> Result<Head, NetError>,
    ) -> Result<Head, HubError> {
        let mut tried = 0;
        loop {
            tried += 1;
            let (why, asked) = match once() {
                Ok(head) if matches!(head.status, 200 | 206) => return Ok(head),
                Ok(head) if passes(head.status) => (self.refused(what, head.status), head.pause),
                Ok(head) => return Err(HubError::Hub(self.refused(what, head.status))),
                Err(NetError::Stopped(stopped)) => return Err(stopped.into()),
                Err(NetError::Keep(error)) => {
                    return Err(HubError::Keep(format!("{what} could not be written ({error})")));
                }
                Err(NetError::Unreached(why) | NetError::Denied(why)) => (
                    format!(
                        "{what} could not be fetched from {} ({why}); look at the connection or HF_ENDPOINT, then try again: it goes on from there",
                        self.endpoint
                    ),
                    None,
                ),
            };
            if tried >= TRIES {
                return Err(HubError::Hub(format!("{why} (tried {tried} times)")));
            }
            wait(self.backoff.pause(tried, asked), stop)?;
        }
    }

    fn refused(&self, what: &str, status: u16) -> String {
        let advice = match (status, &self.token) {
            (401 | 403, Some(_)) => {
                "the token in HF_TOKEN may not read it; accept the model's terms on its page, or use another token"
            }
            (401 | 403, None) => {
                "it asks for a token, or there is no such model; check the name, or put a token into HF_TOKEN"
            }
            (404, _) => "there is no such model or file; check the name",
            (429, _) => "too much was asked of it; try again later",
            (500..=599, _) => "it fails; try again later",
            (300..=399, _) => "it points nowhere; check HF_ENDPOINT",
            _ => "check HF_ENDPOINT",
        };
        format!("{} answered {status} for {what}: {advice}", self.endpoint)
    }
}

/// A path with more at its end; a model's name may hold dots.
fn beside(place: &Path, more: &str) -> PathBuf {
    let mut name = place.file_name().unwrap_or_default().to_owned();
    name.push(more);
    place.with_file_name(name)
}

#[cfg(test)]
mod tests;
