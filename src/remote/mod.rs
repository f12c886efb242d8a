//! Search engines on other machines: searched by lanes, filled by `corpus push`.
//!
//! Holds the protocols and schemas. Servers receive passages with their ids, but no positions in a corpus. Every response is checked.
//!
//! May use: corpus, encode (vectors), input, net, work.

mod address;
#[cfg(feature = "milvus")]
mod milvus;
mod open_search;
mod push;

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

pub use address::{By, Kind, Place, PlaceError, Remote};
pub use address::{Engine, RemoteError, Row, Scored};
pub use push::{PushError, Pushed, push};

/// A client for a place; secrets come from the environment. Nothing is sent yet.
///
/// # Errors
/// The address cannot be used.
pub fn open(place: &Place) -> Result<Arc<dyn Engine>, RemoteError> {
    match place.kind {
        #[cfg(feature = "milvus")]
        Kind::Milvus => Ok(Arc::new(milvus::Milvus::from_env(place)?)),
        #[cfg(not(feature = "milvus"))]
        Kind::Milvus => Err(RemoteError::Refused("this program was built without Milvus".into())),
        Kind::OpenSearch => Ok(Arc::new(open_search::OpenSearch::from_env(place)?)),
    }
}

/// The clients that lanes share: one per place.
#[derive(Default)]
pub struct Remotes {
    open: Mutex<HashMap<Place, Arc<dyn Engine>>>,
    offline: bool,
}

impl Remotes {
    /// Without clients; if `offline`, every request for one fails.
    pub fn new(offline: bool) -> Self {
        Remotes { open: Mutex::default(), offline }
    }

    /// The client for a place.
    ///
    /// # Errors
    /// The same as for [`open`].
    pub fn engine(&self, place: &Place) -> Result<Arc<dyn Engine>, RemoteError> {
        if self.offline {
            return Err(RemoteError::Refused("--offline: no engine elsewhere is asked".into()));
        }
        let mut open = self.open.lock();
        if let Some(engine) = open.get(place) {
            return Ok(Arc::clone(engine));
        }
        let engine = self::open(place)?;
        open.insert(place.clone(), Arc::clone(&engine));
        Ok(engine)
    }
}
