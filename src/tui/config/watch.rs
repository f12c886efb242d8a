//! A configuration that is read again when its file has changed, on a thread of its own.

use std::thread;
use std::time::Duration;

use super::{Config, Problems, Source};

/// What was told last.
struct Told {
    /// The last configuration that was good.
    last: Config,
    /// Whether something was wrong after it.
    wrong: bool,
}

impl Told {
    /// Whether what was read is to be told: it is another, or something is or was wrong with it.
    fn news(&mut self, read: &Result<Config, Problems>) -> bool {
        let was = std::mem::replace(&mut self.wrong, read.is_err());
        match read {
            Ok(config) => was | (std::mem::replace(&mut self.last, config.clone()) != *config),
            Err(_) => true,
        }
    }
}

/// How long a change may go unseen.
const PAUSE: Duration = Duration::from_secs(1);

/// Tells every configuration that differs from the last one, and what is wrong with a changed file, until nobody listens. A file
/// is asked for its size and time, and read if one of them is another: what reports changes differs from system to system, and
/// is silent on network disks. What is no regular file is left alone: a pipe can be read once.
pub fn watch(source: Source, last: Config, tell: impl Fn(Result<Config, Problems>) -> bool + Send + 'static) {
    let Some(path) = source.path.clone() else { return };
    thread::spawn(move || {
        let mut told = Told { last, wrong: false };
        let mut seen = None;
        loop {
            let stamp = Some(source.stamp());
            if stamp != seen && (path.is_file() || !path.exists()) {
                seen = stamp;
                let read = source.load();
                if told.news(&read) && !tell(read) {
                    return;
                }
            }
            thread::sleep(PAUSE);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_good_again_is_told_though_it_is_what_it_was() {
        let mut told = Told { last: Config::default(), wrong: false };
        assert!(!told.news(&Ok(Config::default())));
        let wrong = || Err(Problems { file: "config.toml".into(), all: Vec::new() });
        assert!(told.news(&wrong()) && told.news(&wrong()));
        assert!(told.news(&Ok(Config::default())));
        assert!(!told.news(&Ok(Config::default())));
        let other = Config { look: crate::tui::theme::Look::Mono, ..Config::default() };
        assert!(told.news(&Ok(other)));
    }
}
