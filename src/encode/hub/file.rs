//! One file: resumed, checked, renamed.

use std::cell::{Cell, RefCell};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use super::listing::Listed;
use super::manifest::{Hashes, Kept};
use super::{Hub, HubError, beside};
use crate::net::{Head, NetError};
use crate::work::Stop;

impl Hub {
    /// Fetches a file into `folder`. It has its name there once its hash is right.
    pub(super) fn file(
        &self,
        path: &str,
        file: &Listed,
        folder: &Path,
        progress: &dyn Fn(u64),
        stop: &Stop,
    ) -> Result<Kept, HubError> {
        let place = folder.join(&file.name);
        let keep =
            |error: io::Error| HubError::Keep(format!("{} cannot be written ({error})", place.display()));
        if place.exists() {
            return Ok(Hashes::of(&place).map_err(keep)?.kept);
        }
        if let Some(parent) = place.parent() {
            fs::create_dir_all(parent).map_err(keep)?;
        }
        let part = beside(&place, ".part");
        let hash = RefCell::new(file.hash.clone());
        let size = Cell::new(file.size);
        self.patiently(&file.name, stop, || {
            let out = RefCell::new(OpenOptions::new().create(true).append(true).open(&part)?);
            let (have, more) = (Cell::new(out.borrow().metadata()?.len()), Cell::new(false));
            if size.get() == Some(have.get()) && have.get() > 0 {
                // All of it came before the end was noted.
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
                            return Err(NetError::Unreached(
                                "it sent another part than was asked for".into(),
                            ));
                        }
                        size.set(size.get().or_else(|| Some(from + number("content-length")?)));
                        Ok(true)
                    }
                    200 => {
                        // The server knows no ranges: from the beginning, then.
                        out.borrow().set_len(0)?;
                        have.set(0);
                        size.set(size.get().or_else(|| number("content-length")));
                        Ok(true)
                    }
                    416 => {
                        out.borrow().set_len(0)?;
                        Err(NetError::Unreached("it has less than came before".into()))
                    }
                    _ => Ok(false),
                }
            };
            let answer = self.follow(&url, from, stop, &mut head, &mut |bytes| {
                out.borrow_mut().write_all(bytes)?;
                have.set(have.get() + bytes.len() as u64);
                if let Some(size) = size.get().filter(|size| have.get() > *size) {
                    // It may have no end, and would fill the disk.
                    out.borrow().set_len(0)?;
                    more.set(true);
                    return Err(std::io::Error::other(format!("more than {size} bytes")));
                }
                progress(have.get());
                Ok(())
            });
            let answer = match answer {
                Err(_) if more.get() => {
                    return Err(NetError::Unreached("it sends more than is listed".into()));
                }
                answer => answer?,
            };
            out.borrow().sync_all()?;
            match size.get() {
                Some(size) if matches!(answer.status, 200 | 206) && have.get() < size => {
                    Err(NetError::Unreached(format!("{} of {size} bytes came", have.get())))
                }
                _ => Ok(answer),
            }
        })?;
        let hashes = Hashes::of(&part).map_err(keep)?;
        let hash = hash.into_inner();
        let right = hash.as_ref().is_none_or(|hash| hashes.are(hash));
        if !right || size.get().is_some_and(|size| size != hashes.kept.size) {
            fs::remove_file(&part).map_err(keep)?;
            return Err(HubError::Hub(format!(
                "{} is not what the hub lists: {} bytes with SHA-256 {}, and {} was promised; it was removed, try again",
                file.name,
                hashes.kept.size,
                hashes.kept.sha256,
                hash.unwrap_or_else(|| "another size".into()),
            )));
        }
        File::open(&part).and_then(|file| file.sync_all()).map_err(keep)?;
        fs::rename(&part, &place).map_err(keep)?;
        Ok(hashes.kept)
    }
}
