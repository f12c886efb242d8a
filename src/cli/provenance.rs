//! What a table was made of: the `.json` beside a written table, and `parallax reproduce`, which makes it again.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::options::Common;
use crate::input::{self, InputError, check_output, open_regular};
use crate::report::safe;
use crate::storage::replace;

/// What stands beside a written table.
#[derive(Debug, Deserialize, Serialize)]
struct Record {
    /// The version of the program.
    version: String,
    /// The command line, without the program.
    command: Vec<String>,
    /// The variables of the environment that stand for options.
    variables: BTreeMap<String, String>,
    /// The folder in which it ran.
    folder: String,
    /// Every file and folder that the command line names, with a hash of its content.
    inputs: Vec<Input>,
    /// Models, prompts, corpus, questions, labels and seed.
    provenance: Value,
    /// The table, as JSON.
    table: Value,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
struct Input {
    /// As on the command line.
    path: String,
    hash: String,
}

/// The options that a variable of the environment can stand for; none of them is secret.
const VARIABLES: [&str; 3] = ["PARALLAX_CORPUS", "PARALLAX_QUESTIONS", "PARALLAX_LABELS"];

/// The file beside a table that says how it was made.
pub fn beside(table: &Path) -> PathBuf {
    let mut path = table.as_os_str().to_owned();
    path.push(".json");
    path.into()
}

/// Checks that a table can be written to this path, and beside it what it was made of.
///
/// # Errors
/// One of both is no regular file, or their folder does not exist.
pub fn check(path: &Path) -> Result<(), InputError> {
    check_output(path)?;
    check_output(&beside(path))
}

/// Writes a table, and beside it what it was made of.
///
/// # Errors
/// A file that the command line names cannot be read, or the table cannot be written.
pub fn write(path: &Path, text: &str, table: &Value) -> anyhow::Result<()> {
    let arguments = std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned());
    let (mut command, mut inputs): (Vec<String>, Vec<Input>) = (Vec::new(), Vec::new());
    let mut written = false;
    for argument in arguments {
        // What is written is no input.
        let option = argument.split('=').next().unwrap_or_default();
        let is_option = NOT_READ.contains(&option);
        let is_output = std::mem::take(&mut written) || is_option;
        written = is_option && option == argument;
        for named in paths_in(&argument).filter(|_| !is_output) {
            if Path::new(&named).exists() && !inputs.iter().any(|known| known.path == named) {
                inputs.push(Input { hash: content_hash(Path::new(&named))?, path: named });
            }
        }
        command.push(without_password(&argument));
    }
    let variables = VARIABLES.iter().filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?)));
    let record = Record {
        version: env!("CARGO_PKG_VERSION").into(),
        command,
        variables: variables.collect(),
        folder: std::env::current_dir().map(|folder| folder.display().to_string()).unwrap_or_default(),
        inputs,
        provenance: table["provenance"].clone(),
        table: table.clone(),
    };
    let unwritable = || format!("{} cannot be written", path.display());
    replace(path, text.as_bytes()).with_context(unwritable)?;
    let record = serde_json::to_string_pretty(&record)? + "\n";
    replace(&beside(path), record.as_bytes()).with_context(unwritable)
}

/// Prints a table, or writes it to `path` with what it was made of.
///
/// # Errors
/// As [`write`].
pub fn print(path: Option<&Path>, text: &str, table: &Value) -> anyhow::Result<()> {
    match path {
        Some(path) => write(path, text, table),
        None => Ok(safe::stdout().write_all(text.as_bytes())?),
    }
}

/// The options whose value is written; the data folder is a cache, and no input.
const NOT_READ: [&str; 5] = ["--out", "--write", "--plots", "--log", "--data-dir"];

/// The texts of an argument that may be paths: the whole, what stands after `=`, the parts of a list, each without the prefix of a lane or
/// a detector and without the suffix of labels.
fn paths_in(argument: &str) -> impl Iterator<Item = String> {
    let value = match argument.split_once('=') {
        Some((option, value)) if option.starts_with("--") => value,
        _ => argument,
    };
    let bare = |text: &str| {
        let text =
            ["run:", "path:", "file:"].iter().find_map(|prefix| text.strip_prefix(prefix)).unwrap_or(text);
        let text = [":complete", ":positives"].iter().find_map(|end| text.strip_suffix(end)).unwrap_or(text);
        let text = text.rsplit_once(":preds=").map_or(text, |(file, _)| file);
        // A lane's switches follow the file.
        text.to_owned()
    };
    let parts: Vec<String> = std::iter::once(value).chain(value.split(',')).map(bare).collect();
    let is_option = argument.starts_with('-');
    parts.into_iter().filter(move |part| !(part.is_empty() || is_option && part.starts_with('-')))
}

/// An address without the password in it.
fn without_password(argument: &str) -> String {
    let Some((scheme, rest)) = argument.split_once("://") else { return argument.to_owned() };
    let place = rest.split('/').next().unwrap_or_default();
    match place.rsplit_once('@') {
        Some((user, _)) => format!("{scheme}://…{}", &rest[user.len()..]),
        None => argument.to_owned(),
    }
}

/// A hash of a file's bytes, or of the names and bytes of all files in a folder. Locks and files under way do not count.
pub fn content_hash(path: &Path) -> anyhow::Result<String> {
    fn add(hasher: &mut blake3::Hasher, path: &Path, name: &Path) -> anyhow::Result<()> {
        let unreadable = || format!("{} cannot be read", path.display());
        if path.is_dir() {
            let mut below: Vec<OsString> = Vec::new();
            for entry in std::fs::read_dir(path).with_context(unreadable)? {
                below.push(entry.with_context(unreadable)?.file_name());
            }
            below.sort();
            for one in below.iter().filter(|one| !one.to_string_lossy().ends_with(".lock")) {
                add(hasher, &path.join(one), &name.join(one))?;
            }
            return Ok(());
        }
        let name = name.to_string_lossy();
        hasher.update(&(name.len() as u64).to_le_bytes()).update(name.as_bytes());
        let mut file = open_regular(path).with_context(unreadable)?;
        let mut own = blake3::Hasher::new();
        let mut buffer = vec![0; 1 << 16];
        loop {
            match file.read(&mut buffer).with_context(unreadable)? {
                0 => break,
                n => drop(own.update(&buffer[..n])),
            }
        }
        hasher.update(own.finalize().as_bytes());
        Ok(())
    }
    let mut hasher = blake3::Hasher::new();
    add(&mut hasher, path, Path::new(""))?;
    Ok(hasher.finalize().to_hex()[..32].to_owned())
}

/// `parallax reproduce`
#[derive(Debug, clap::Args)]
pub struct Reproduce {
    /// The file beside a table that `--out` wrote.
    pub file: PathBuf,
    /// Where the inputs lie now, if not where they lay: a folder that holds them by the ends of their paths. Default: the folder of FILE.
    #[arg(long, value_name = "FOLDER")]
    pub inputs: Option<PathBuf>,
}

/// Runs the command of a table again, and says what differs.
///
/// # Errors
/// The file is not such a record, an input is not to be found, or the command fails.
pub fn reproduce(common: &Common, args: &Reproduce) -> anyhow::Result<ExitCode> {
    let name = args.file.display();
    let text = input::text(&args.file)?;
    let then: Record = serde_json::from_str(&text).with_context(|| {
        format!("{name}: expected the .json beside a table that --out wrote, such as table.md.json")
    })?;
    let mut out = safe::stdout();
    let mut differs = Vec::new();
    if then.version != env!("CARGO_PKG_VERSION") {
        differs.push(format!("version: {} then, {} now", then.version, env!("CARGO_PKG_VERSION")));
    }
    let beside = args.file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let root = args.inputs.as_deref().unwrap_or(beside);
    let mut places: Vec<(String, PathBuf)> = Vec::new();
    for input in &then.inputs {
        let Some(place) = find(input, &then.folder, root) else {
            bail!(
                "{name}: {} is not there: neither where it lay nor under {}; name the folder that holds it with --inputs",
                safe::line(&input.path),
                root.display()
            );
        };
        let hash = content_hash(&place)?;
        if hash != input.hash {
            differs.push(format!("{}: its content is not the same", place.display()));
        }
        places.push((input.path.clone(), place.canonicalize().unwrap_or(place)));
    }
    let scratch = tempfile::tempdir()?;
    let table = scratch.path().join("table");
    let mut command = std::process::Command::new(std::env::current_exe()?);
    command.args(again(&then.command, &places, &table)).current_dir(scratch.path());
    for variable in VARIABLES {
        command.env_remove(variable);
    }
    for (variable, value) in &then.variables {
        let place =
            places.iter().find(|(path, _)| path == value).map(|(_, place)| place.display().to_string());
        command.env(variable, place.unwrap_or_else(|| value.clone()));
    }
    if common.typed.iter().any(|option| option == "data_dir") {
        command.arg("--data-dir").arg(&common.opening().data_dir);
    }
    command.stdout(std::process::Stdio::null());
    let status = command.status()?;
    let made = input::text(&self::beside(&table));
    let Ok(made) = made else {
        bail!("the command failed ({status}); it was: parallax {}", then.command.join(" "));
    };
    let now: Record = serde_json::from_str(&made)?;
    // A corpus is named after its file or folder, which may have another name here.
    let content = |record: &Record| {
        let mut provenance = record.provenance.clone();
        provenance.get_mut("corpus").and_then(Value::as_object_mut).map(|corpus| corpus.remove("name"));
        provenance
    };
    leaves("", &content(&then), &content(&now), &mut differs);
    let made_of = differs.len();
    leaves("", &figures(&then.table), &figures(&now.table), &mut differs);
    for line in &differs {
        writeln!(out, "{}", safe::line(line))?;
    }
    let (figures, made_of) = (differs.len() - made_of, made_of);
    match (figures, made_of) {
        (0, 0) => writeln!(out, "{name}: every figure is the same, made of the same inputs")?,
        (0, _) => writeln!(out, "{name}: every figure is the same, though the inputs differ")?,
        _ => writeln!(out, "{name}: {figures} figures differ")?,
    }
    Ok(ExitCode::from(u8::from(figures > 0)))
}

/// An input where it lay, or under `root` by the end of its path, the longest end first. A file with the recorded content is preferred.
fn find(input: &Input, folder: &str, root: &Path) -> Option<PathBuf> {
    let path = Path::new(&input.path);
    let parts: Vec<_> = path.components().collect();
    let ends = (0..parts.len()).map(|from| root.join(parts[from..].iter().collect::<PathBuf>()));
    let all: Vec<PathBuf> =
        std::iter::once(Path::new(folder).join(path)).chain(ends).filter(|place| place.exists()).collect();
    let same = all.iter().find(|place| content_hash(place).is_ok_and(|hash| hash == input.hash)).cloned();
    same.or_else(|| all.into_iter().next())
}

/// The command line with the inputs where they lie now, and the table written to `table`. Other files are not written again.
fn again(command: &[String], places: &[(String, PathBuf)], table: &Path) -> Vec<String> {
    let mut arguments = Vec::new();
    let mut skip = false;
    for argument in command {
        if std::mem::take(&mut skip) {
            continue;
        }
        let option = argument.split('=').next().unwrap_or_default();
        if NOT_READ.contains(&option) {
            skip = !argument.contains('=');
            continue;
        }
        let mut moved = argument.clone();
        // The longest path first, because one may be the beginning of another.
        let mut named: Vec<&(String, PathBuf)> = places.iter().collect();
        named.sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
        if let Some((path, place)) =
            named.into_iter().find(|(path, _)| paths_in(argument).any(|part| part == *path))
        {
            moved = moved.replacen(path.as_str(), &place.display().to_string(), 1);
        }
        arguments.push(moved);
    }
    arguments.extend(["--out".to_owned(), table.display().to_string()]);
    arguments
}

/// The figures of a table and of those below it: by suite, lane and measure. Finished runs go by the names of their files.
fn figures(table: &Value) -> Value {
    let mut all = Map::new();
    if !table["rows"].is_array() {
        // A sheet on agreement: all of it, but for what it was made of.
        all.extend(tree(table).as_object().cloned().unwrap_or_default());
        all.remove("provenance");
        return Value::Object(all);
    }
    let below = table["further"].as_array().into_iter().flatten();
    for own in std::iter::once(table).chain(below) {
        let suite =
            [own["suite"].as_str(), own["set"].as_str()].into_iter().flatten().collect::<Vec<_>>().join(" ");
        for row in own["rows"].as_array().into_iter().flatten() {
            let lane = row["lane"].as_str().unwrap_or_default();
            let file = |word: &str| match word.split_once("run:") {
                Some((before, path)) => format!("{before}run:{}", path.rsplit('/').next().unwrap_or(path)),
                None => word.to_owned(),
            };
            let lane = lane.split(' ').map(file).collect::<Vec<_>>().join(" ");
            for (measure, cell) in row["measures"].as_object().into_iter().flatten() {
                let mut cell = cell.clone();
                if let Some(cell) = cell.as_object_mut() {
                    cell.remove("versus");
                }
                all.insert(format!("{suite} {lane} {measure}"), cell);
            }
        }
    }
    Value::Object(all)
}

/// A JSON value whose lists are objects by number, so that what differs has a name.
fn tree(value: &Value) -> Value {
    match value {
        Value::Array(all) => all
            .iter()
            .enumerate()
            .map(|(at, one)| ((at + 1).to_string(), tree(one)))
            .collect::<Map<_, _>>()
            .into(),
        Value::Object(all) => {
            all.iter().map(|(name, one)| (name.clone(), tree(one))).collect::<Map<_, _>>().into()
        }
        other => other.clone(),
    }
}

/// The leaves at which two JSON values differ.
fn leaves(at: &str, then: &Value, now: &Value, differs: &mut Vec<String>) {
    match (then, now) {
        (Value::Object(old), Value::Object(new)) => {
            let names: std::collections::BTreeSet<&String> = old.keys().chain(new.keys()).collect();
            for name in names {
                let at = if at.is_empty() { name.clone() } else { format!("{at} {name}") };
                let of = |side: &Map<String, Value>| side.get(name).cloned().unwrap_or(Value::Null);
                leaves(&at, &of(old), &of(new), differs);
            }
        }
        _ if then != now => differs.push(format!("{at}: {then} then, {now} now")),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_are_found_in_lanes_labels_and_lists_and_an_address_loses_its_password() {
        let paths = |argument: &str| paths_in(argument).collect::<Vec<_>>();
        assert!(paths("run:a/b.run").contains(&"a/b.run".to_owned()));
        assert!(paths("--labels=gold.tsv:complete").contains(&"gold.tsv".to_owned()));
        assert!(paths("results.jsonl:preds=mistral").contains(&"results.jsonl".to_owned()));
        assert!(paths("bm25,run:x.run").contains(&"x.run".to_owned()));
        assert_eq!(without_password("os:https://me:secret@host/x"), "os:https://…@host/x");
        assert_eq!(without_password("os:https://host/a@b"), "os:https://host/a@b");
    }

    #[test]
    fn a_command_runs_again_with_its_inputs_elsewhere_and_writes_nothing_else() {
        let command = [
            "eval",
            "berds",
            "--labels",
            "d/g.tsv:complete",
            "--write",
            "out",
            "--data-dir=x",
            "--out",
            "t.md",
        ];
        let command = command.map(str::to_owned);
        let places = [("d/g.tsv".to_owned(), PathBuf::from("moved/g.tsv"))];
        let made = again(&command, &places, Path::new("scratch/t"));
        assert_eq!(made, ["eval", "berds", "--labels", "moved/g.tsv:complete", "--out", "scratch/t"]);
    }

    #[test]
    fn a_folders_hash_is_of_names_and_contents_and_not_of_locks() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        file("a", "1");
        let first = content_hash(folder.path()).unwrap();
        file("a.lock", "held");
        assert_eq!(content_hash(folder.path()).unwrap(), first);
        file("b", "");
        assert_ne!(content_hash(folder.path()).unwrap(), first);
    }

    #[test]
    fn what_differs_is_named_by_its_place() {
        let mut differs = Vec::new();
        let (then, now) = (json!({"a": {"b": 1, "c": 2}}), json!({"a": {"b": 1, "c": 3}, "d": 4}));
        leaves("", &then, &now, &mut differs);
        assert_eq!(differs, ["a c: 2 then, 3 now", "d: null then, 4 now"]);
    }
}
