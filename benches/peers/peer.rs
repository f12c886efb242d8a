//! The Python interpreter that runs the peers: one order, one answer, a line of JSON each.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::Outcome;

/// `tools/performance/peers.py`, waiting for orders.
pub struct Peer {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Peer {
    /// Starts the script.
    pub fn start(python: &Path) -> Outcome<Self> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tools/performance/peers.py");
        let mut command = Command::new(python);
        command.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|error| format!("{}: {error}", python.display()))?;
        let orders = child.stdin.take().ok_or("no standard input")?;
        let answers = BufReader::new(child.stdout.take().ok_or("no standard output")?);
        Ok(Peer { child, orders, answers })
    }

    /// Runs one order.
    pub fn ask(&mut self, order: &Value) -> Outcome<Value> {
        writeln!(self.orders, "{order}")?;
        self.orders.flush()?;
        let mut line = String::new();
        if self.answers.read_line(&mut line)? == 0 {
            return Err("the Python script ended; are its requirements installed?".into());
        }
        let answer: Value = serde_json::from_str(&line)?;
        match answer["error"].as_str() {
            Some(error) => Err(error.into()),
            None => Ok(answer),
        }
    }

    /// The versions of the packages that are there, and those that are missing.
    pub fn versions(&mut self) -> Outcome<(String, Vec<String>)> {
        let answer = self.ask(&json!({"do": "versions"}))?;
        let packages = answer.as_object().ok_or("no versions")?;
        let versions =
            packages.iter().filter_map(|(name, version)| Some(format!("{name} {}", version.as_str()?)));
        let missing = packages.iter().filter(|(_, version)| version.is_null());
        Ok((versions.collect::<Vec<_>>().join(", "), missing.map(|(name, _)| name.clone()).collect()))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The seconds of an answer.
pub fn seconds(answer: &Value) -> Outcome<f64> {
    Ok(answer["seconds"].as_f64().ok_or("the answer holds no time")?)
}

/// A list of lists of an answer.
pub fn lists<T: serde::de::DeserializeOwned>(answer: &Value, name: &str) -> Outcome<Vec<Vec<T>>> {
    Ok(serde_json::from_value(answer[name].clone())?)
}
