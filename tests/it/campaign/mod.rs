//! The robustness campaign: random inputs, keys, kills and hostile servers, many times.
//!
//! `cargo test` runs every part briefly and always the same way. `tools/campaign/run.sh` runs them long: `PARALLAX_CAMPAIGN` is the
//! number of seconds (or kills), `PARALLAX_SEED` the seed. To repeat a failure, use the seed that it prints or the input that it saved.

mod fuzz;
mod hostile;
#[cfg(unix)]
mod keys;
#[cfg(unix)]
mod kills;
mod memory;
mod models;
#[cfg(unix)]
mod pty;
mod servers;
mod targets;

use std::env;
use std::fs;
use std::path::PathBuf;

/// The seconds or kills of a long run; `None` in a brief one.
fn long() -> Option<u64> {
    let text = env::var("PARALLAX_CAMPAIGN").ok()?;
    let number = text.parse();
    Some(number.unwrap_or_else(|_| panic!("PARALLAX_CAMPAIGN={text}: expected a number of seconds or kills")))
}

/// The seed of a run; 1 in every brief run.
fn seed() -> u64 {
    match env::var("PARALLAX_SEED") {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("PARALLAX_SEED={text}: expected a number")),
        Err(_) => 1,
    }
}

/// Prints a line of counts and appends it to the file named by `PARALLAX_COUNTS`.
fn report(line: &str) {
    use std::io::Write;
    println!("{line}");
    if let Ok(path) = env::var("PARALLAX_COUNTS") {
        let file = fs::OpenOptions::new().create(true).append(true).open(path);
        file.and_then(|mut file| writeln!(file, "{line}")).unwrap();
    }
}

/// A file for an input or key script that broke something.
fn campaign_file(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("target/campaign");
    fs::create_dir_all(&folder).unwrap();
    folder.join(name)
}
