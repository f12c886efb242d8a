//! Fetches models from a Hugging Face hub into the data folder.
//!
//! ```text
//! DATA/models/ORG--MODEL/                  a whole model, with manifest.json: revision, sizes and hashes
//! DATA/models/ORG--MODEL.REVISION.part/    a partial download; a later call resumes it
//! DATA/models/ORG--MODEL.lock              held during the download
//! ```
//!
//! May use: net, storage, work.

use std::cell::{Cell, RefCell};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::manifest::{self, FetchedFile, Hashes, HubError, HubFile, Manifest};
use super::registry::{MANIFEST, folder};
use crate::net::{Ask, Fetcher, Head, NetError, at, in_clear, keeps_secrets};
use crate::net::{Backoff, is_temporary, wait};
use crate::storage::{Attempt, FileLock, Holder, move_file, replace, replace_folder};
use crate::work::{Job, OnProgress, Progress, Stop};

/// The hub used unless `HF_ENDPOINT` names another.
const PUBLIC: &str = "https://huggingface.co";
/// Attempts per request.
const TRIES: u32 = 5;
/// Redirects followed for one file.
const HOPS: usize = 5;
/// The limit of a listing in bytes.
const LISTING: usize = 8 << 20;

/// A hub, with the means to reach it.
pub struct Hub {
    fetcher: Fetcher,
    endpoint: String,
    token: Option<String>,
    /// The pauses between attempts.
    pub backoff: Backoff,
}

impl Hub {
    /// The hub that the environment names: `HF_ENDPOINT`, `HF_TOKEN`, and `HF_HUB_OFFLINE`, which forbids network access.
    ///
    /// # Errors
    /// Network access is forbidden, or the address is invalid.
    pub fn from_env() -> Result<Self, HubError> {
        let set = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
        let no = ["0", "false", "no", "off"];
        if set("HF_HUB_OFFLINE").is_some_and(|value| !no.contains(&value.to_ascii_lowercase().as_str())) {
            return Err(HubError::Hub(
                "HF_HUB_OFFLINE is set, so no hub is contacted; unset it, or name a folder: path:FOLDER"
                    .into(),
            ));
        }
        let endpoint = set("HF_ENDPOINT").unwrap_or_else(|| PUBLIC.into());
        Hub::at(endpoint.trim(), set("HF_TOKEN").map(|token| token.trim().to_owned()))
    }

    /// A hub at an address.
    ///
    /// # Errors
    /// The address is invalid, or the token cannot be sent.
    pub fn at(endpoint: &str, token: Option<String>) -> Result<Self, HubError> {
        let endpoint = endpoint.trim_end_matches('/').to_owned();
        let wrong = |why: String| {
            HubError::Hub(format!(
                "the hub's address cannot be used: {why}; set HF_ENDPOINT to one such as {PUBLIC}"
            ))
        };
        if endpoint.contains(['@', '?', '#']) {
            return Err(wrong("it contains a @, ? or #".into()));
        }
        at(&endpoint, "/").map_err(|error| wrong(error.to_string()))?;
        if token.as_ref().is_some_and(|token| token.contains(|c: char| !c.is_ascii_graphic())) {
            return Err(HubError::Hub(
                "HF_TOKEN contains spaces or other invalid characters; set it again".into(),
            ));
        }
        if token.is_some() && !keeps_secrets(&endpoint) {
            return Err(HubError::Hub(in_clear(&endpoint, "the token in HF_TOKEN")));
        }
        let fetcher = Fetcher::new(&endpoint).map_err(|error| HubError::Hub(error.to_string()))?;
        Ok(Hub { fetcher, endpoint, token, backoff: Backoff::default() })
    }

    /// Sets how long the hub may be silent.
    pub fn patience(&mut self, patience: Duration) {
        self.fetcher.patience = patience;
    }

    /// Fetches a repository into its folder below `models`, resuming an earlier call.
    ///
    /// # Errors
    /// See [`HubError`].
    pub fn fetch(
        &self,
        repository: &str,
        models: &Path,
        on_progress: OnProgress<'_>,
        stop: &Stop,
    ) -> Result<PathBuf, HubError> {
        let place = folder(models, repository);
        if place.join(MANIFEST).exists() {
            return Ok(place);
        }
        let keep = |error: io::Error| HubError::Keep { what: models.display().to_string(), error };
        fs::create_dir_all(models).map_err(keep)?;
        let lock =
            FileLock::try_acquire(&with_suffix(&place, ".lock"), &Holder::here("parallax")).map_err(keep)?;
        let Attempt::Acquired(_lock) = lock else {
            return Err(HubError::Busy(repository.into()));
        };
        let listing = manifest::read(&self.listing(repository, stop)?, repository)?;
        let part = with_suffix(&place, &format!(".{}.part", &listing.revision[..12]));
        fs::create_dir_all(&part).map_err(keep)?;
        let total = listing.files.iter().map(|file| file.size.unwrap_or(0)).sum::<u64>();
        let mut manifest = Manifest::of(repository, &listing.revision);
        let mut done = 0;
        for file in &listing.files {
            let before = done;
            let progress = |bytes: u64| {
                let total = if listing.files.iter().all(|file| file.size.is_some()) { total } else { 0 };
                on_progress(Progress {
                    job: Job::Fetching,
                    done: (before + bytes) / 1000,
                    total: total.div_ceil(1000),
                });
            };
            let path = format!("/{repository}/resolve/{}/{}", listing.revision, file.name);
            let fetched = self.file(&path, file, &part, &progress, stop)?;
            done += fetched.size;
            manifest.files.insert(file.name.clone(), fetched);
        }
        on_progress(Progress { job: Job::Fetching, done: done.div_ceil(1000), total: done.div_ceil(1000) });
        let bytes = manifest.bytes();
        replace(&part.join(MANIFEST), &bytes).map_err(keep)?;
        replace_folder(&part, &place).map_err(keep)?;
        Ok(place)
    }

    /// The hub's description of a repository.
    fn listing(&self, repository: &str, stop: &Stop) -> Result<Vec<u8>, HubError> {
        let path = format!("/api/models/{repository}/revision/main?blobs=true");
        let mut page = Vec::new();
        self.patiently(repository, stop, || {
            page.clear();
            let url = self.address(&path)?;
            self.follow(&url, 0, stop, &mut |head| Ok(head.status == 200), &mut |bytes| {
                if page.len() + bytes.len() > LISTING {
                    return Err(std::io::Error::other("the hub's listing is too long"));
                }
                page.extend_from_slice(bytes);
                Ok(())
            })
        })?;
        Ok(page)
    }

    fn address(&self, path: &str) -> Result<String, NetError> {
        at(&format!("{}{path}", self.endpoint), "").map_err(|error| NetError::Unreached(error.to_string()))
    }

    /// Sends a request and follows redirects. Only the hub gets the token: a redirect may lead to any server.
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
            let on_hub = url.strip_prefix(&self.endpoint).is_some_and(|rest| rest.starts_with('/'));
            let token = self.token.as_deref().filter(|_| on_hub);
            let answer = self.fetcher.get(&Ask { token, from, ..Ask::of(&url) }, stop, head, body)?;
            match (answer.status, &answer.location) {
                (300..=399, Some(next)) => url.clone_from(next),
                _ => return Ok(answer),
            }
        }
        Err(NetError::Unreached("it redirects too often".into()))
    }

    /// Retries temporary failures, with pauses; permanent ones end with advice.
    fn patiently(
        &self,
        what: &str,
        stop: &Stop,
        mut once: impl FnMut() -> Result<Head, NetError>,
    ) -> Result<Head, HubError> {
        let mut tried = 0;
        loop {
            tried += 1;
            let (why, requested) = match once() {
                Ok(head) if matches!(head.status, 200 | 206) => return Ok(head),
                Ok(head) if is_temporary(head.status) => (self.refusal(what, head.status), head.pause),
                Ok(head) => return Err(HubError::Hub(self.refusal(what, head.status))),
                Err(NetError::Stopped(stopped)) => return Err(stopped.into()),
                Err(NetError::Keep(error)) => {
                    return Err(HubError::Keep { what: what.into(), error });
                }
                Err(
                    error @ (NetError::Unreached(_)
                    | NetError::Silent(_)
                    | NetError::Slow(_)
                    | NetError::Denied(_)),
                ) => (
                    format!(
                        "{what} could not be fetched from {} ({error}); check the connection or HF_ENDPOINT, then try again: the download resumes",
                        self.endpoint
                    ),
                    None,
                ),
            };
            if self.backoff.is_too_long(requested) {
                let pause = requested.unwrap_or_default();
                return Err(HubError::Hub(format!("{why}; it asks for a pause of {pause:?}")));
            }
            if tried >= TRIES {
                return Err(HubError::Hub(format!("{why} (tried {tried} times)")));
            }
            wait(&self.endpoint, self.backoff.pause(tried, requested), stop)?;
        }
    }

    fn refusal(&self, what: &str, status: u16) -> String {
        let advice = match (status, &self.token) {
            (401 | 403, Some(_)) => {
                "the token in HF_TOKEN may not read it; accept the model's terms on its page, or use another token"
            }
            (401 | 403, None) => {
                "it requires a token, or there is no such model; check the name, or put a token into HF_TOKEN"
            }
            (404, _) => "there is no such model or file; check the name",
            (429, _) => "too many requests; try again later",
            (500..=599, _) => "it has failed; try again later",
            (300..=399, _) => "its redirect has no address; check HF_ENDPOINT",
            _ => "check HF_ENDPOINT",
        };
        format!("{} answered {status} for {what}: {advice}", self.endpoint)
    }
}

/// A path with `suffix` appended; `with_extension` would break names with dots.
fn with_suffix(place: &Path, suffix: &str) -> PathBuf {
    let mut name = place.file_name().unwrap_or_default().to_owned();
    name.push(suffix);
    place.with_file_name(name)
}

impl Hub {
    /// Fetches a file into `folder`, resuming a partial download. It gets its name once its hash is correct.
    pub(super) fn file(
        &self,
        path: &str,
        file: &HubFile,
        folder: &Path,
        progress: &dyn Fn(u64),
        stop: &Stop,
    ) -> Result<FetchedFile, HubError> {
        let place = folder.join(&file.name);
        let keep = |error: io::Error| HubError::Keep { what: place.display().to_string(), error };
        if place.exists() {
            return Ok(Hashes::of(&place).map_err(keep)?.file);
        }
        if let Some(parent) = place.parent() {
            fs::create_dir_all(parent).map_err(keep)?;
        }
        let part = with_suffix(&place, ".part");
        let hash = RefCell::new(file.hash.clone());
        let size = Cell::new(file.size);
        self.patiently(&file.name, stop, || {
            let out = RefCell::new(OpenOptions::new().create(true).append(true).open(&part)?);
            let (have, too_long) = (Cell::new(out.borrow().metadata()?.len()), Cell::new(false));
            if size.get() == Some(have.get()) && have.get() > 0 {
                // An earlier run fetched all bytes but was stopped before the check.
                return Ok(Head::whole());
            }
            let url = self.address(path)?;
            let from = have.get();
            let mut head = |head: &Head| {
                let linked = head
                    .header("x-linked-etag")
                    .or_else(|| head.header("etag").filter(|_| head.status < 300));
                let linked = linked.map(|tag| tag.trim_start_matches("W/").trim_matches('"').to_owned());
                if hash.borrow().is_none() {
                    hash.replace(linked.filter(|tag| matches!(tag.len(), 40 | 64)));
                }
                let number = |name: &str| head.header(name)?.parse::<u64>().ok();
                match head.status {
                    206 => {
                        let start = head.header("content-range").and_then(|range| {
                            range.strip_prefix("bytes ")?.split('-').next()?.parse::<u64>().ok()
                        });
                        if start != Some(from) {
                            out.borrow().set_len(0)?;
                            return Err(NetError::Unreached("it did not send the requested part".into()));
                        }
                        size.set(size.get().or_else(|| Some(from + number("content-length")?)));
                        Ok(true)
                    }
                    200 => {
                        // The server does not support ranges: start over.
                        out.borrow().set_len(0)?;
                        have.set(0);
                        size.set(size.get().or_else(|| number("content-length")));
                        Ok(true)
                    }
                    416 => {
                        out.borrow().set_len(0)?;
                        Err(NetError::Unreached("its file is shorter than the part fetched earlier".into()))
                    }
                    _ => Ok(false),
                }
            };
            let answer = self.follow(&url, from, stop, &mut head, &mut |bytes| {
                out.borrow_mut().write_all(bytes)?;
                have.set(have.get() + bytes.len() as u64);
                if let Some(size) = size.get().filter(|size| have.get() > *size) {
                    // An endless response would fill the disk.
                    out.borrow().set_len(0)?;
                    too_long.set(true);
                    return Err(std::io::Error::other(format!("more than {size} bytes")));
                }
                progress(have.get());
                Ok(())
            });
            let answer = match answer {
                Err(_) if too_long.get() => {
                    return Err(NetError::Unreached("it sends more bytes than it lists".into()));
                }
                answer => answer?,
            };
            out.borrow().sync_all()?;
            match size.get() {
                Some(size) if matches!(answer.status, 200 | 206) && have.get() < size => {
                    Err(NetError::Unreached(format!("only {} of {size} bytes arrived", have.get())))
                }
                _ => Ok(answer),
            }
        })?;
        let hashes = Hashes::of(&part).map_err(keep)?;
        let hash = hash.into_inner();
        let matches = hash.as_ref().is_none_or(|hash| hashes.contain(hash));
        if !matches || size.get().is_some_and(|size| size != hashes.file.size) {
            fs::remove_file(&part).map_err(keep)?;
            return Err(HubError::Hub(format!(
                "{} is not what the hub lists: {} bytes with SHA-256 {}, expected {}; it was removed, try again",
                file.name,
                hashes.file.size,
                hashes.file.sha256,
                hash.unwrap_or_else(|| "another size".into()),
            )));
        }
        File::open(&part).and_then(|file| file.sync_all()).map_err(keep)?;
        move_file(&part, &place).map_err(keep)?;
        Ok(hashes.file)
    }
}

#[cfg(test)]
mod double_tests;
