//! A configuration that is read again when its file has changed, on a thread of its own.

use std::thread;
use std::time::Duration;

use super::{Config, Problems, Source};

/// How long a change may go unseen.
const PAUSE: Duration = Duration::from_secs(1);

/// Tells every configuration that differs from the last one, and what is wrong with a changed file, until nobody listens. A file
/// is asked for its size and time, and read if one of them is another: what reports changes differs from system to system, and
/// is silent on network disks.
pub fn watch(
    source: Source,
    mut last: Config,
    tell: impl Fn(Result<Config, Problems>) -> bool + Send + 'static,
) {
    if source.path.is_none() {
        return;
    }
    thread::spawn(move || {
        let mut seen = None;
        loop {
            let stamp = Some(source.stamp());
            if stamp != seen {
                seen = stamp;
                let read = source.load();
                let news = read.as_ref().map_or(true, |config| *config != last);
                if let Ok(config) = &read {
                    last = config.clone();
                }
                if news && !tell(read) {
                    return;
                }
            }
            thread::sleep(PAUSE);
        }
    });
}
