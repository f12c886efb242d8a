//! The robustness campaign: what nobody would do on purpose, done very often.
//!
//! `cargo test` runs every part briefly and always the same. `tools/campaign/run.sh` runs them long, by two variables:
//! `PARALLAX_CAMPAIGN` says for how many seconds (or how many kills), `PARALLAX_SEED` from which seed. What is found by chance is
//! repeated with the seed that is printed, or with the input that is kept.

mod fuzz;
mod hostile;
#[cfg(unix)]
mod keys;
#[cfg(unix)]
mod kills;
#[cfg(target_os = "linux")]
mod memory;
mod mutate;
mod peak;
#[cfg(unix)]
mod pty;
mod servers;
mod targets;

use std::env;
use std::fs;
use std::path::PathBuf;

/// How far a long run goes: seconds, or kills. None in a brief one.
fn long() -> Option<u64> {
    let told = env::var("PARALLAX_CAMPAIGN").ok()?;
    Some(
        told.parse()
            .unwrap_or_else(|_| panic!("PARALLAX_CAMPAIGN={told}: expected a number of seconds or kills")),
    )
}

/// The seed of a run; the same one in every brief run.
fn seed() -> u64 {
    match env::var("PARALLAX_SEED") {
        Ok(told) => told.parse().unwrap_or_else(|_| panic!("PARALLAX_SEED={told}: expected a number")),
        Err(_) => 1,
    }
}

/// Prints a line of counts, and appends it to the file that the scripts name.
fn tell(line: &str) {
    use std::io::Write;
    println!("{line}");
    if let Ok(path) = env::var("PARALLAX_COUNTS") {
        let file = fs::OpenOptions::new().create(true).append(true).open(path);
        file.and_then(|mut file| writeln!(file, "{line}")).unwrap();
    }
}

/// Where inputs and key scripts that broke something are kept.
fn kept(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("target/campaign");
    fs::create_dir_all(&folder).unwrap();
    folder.join(name)
}
