//! A file or folder the user named, recognised as one of the formats, and how it is read.
//!
//! Importers read item by item (a line, a row, a file): memory does not grow with the source, and an interrupted import resumes
//! after the last whole item.

use std::fmt;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

use super::folder::{self, chunks};
use super::importer::{Columns, Sink};
use super::store::{Fingerprint, Passage};
use super::{importer, results};
use crate::input::{self, InputError};
use crate::question::pir;
use crate::storage::entry_identity;

/// The version of the importers, a part of every fingerprint. Change it when an importer would read the same file into other passages, but
/// not for a new format: every stored corpus would be imported again.
const IMPORTERS: &str = "parallax-import-2";

/// The format of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum CorpusFormat {
    /// One JSON object per line: BEIR, Pyserini, Sphere.
    Jsonl,
    /// Comma-separated values with a header.
    Csv,
    /// Tab-separated values with a header: DPR.
    Tsv,
    /// A folder of text files.
    Folder,
    /// Results of rank_llm or BERDS: the passages they contain.
    Results,
}

impl fmt::Display for CorpusFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CorpusFormat::Jsonl => "JSONL",
            CorpusFormat::Csv => "CSV",
            CorpusFormat::Tsv => "TSV",
            CorpusFormat::Folder => "folder of texts",
            CorpusFormat::Results => "results of rank_llm or BERDS",
        })
    }
}

/// How the user wants a source to be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The format, if the file's extension does not show it.
    pub format: Option<CorpusFormat>,
    /// Column names that are not the usual ones.
    pub columns: Columns,
    /// Whether texts are cut into passages of 100 words. A folder's always are.
    pub segment: bool,
    /// Whether links in a folder are followed. They may lead out of it.
    pub follow_links: bool,
}

/// The user's files that hold a corpus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The file or folder; several files only for [`CorpusFormat::Results`].
    paths: Vec<PathBuf>,
    /// Its format.
    pub format: CorpusFormat,
    columns: Columns,
    segment: bool,
    follow_links: bool,
}

/// Path, size, times and number of a file: enough to notice a change. The times of the content can be set back, that of the file's entry
/// cannot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileStamp {
    #[serde(serialize_with = "super::build::lossy")]
    path: PathBuf,
    bytes: u64,
    modified_ns: u64,
    #[serde(default)]
    changed_ns: u64,
    #[serde(default)]
    inode: u64,
}

impl FileStamp {
    fn of(path: PathBuf, about: &Metadata) -> Self {
        let modified = about.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let modified_ns = modified.map_or(0, |since| since.as_nanos() as u64);
        let (changed_ns, inode) = entry_identity(about);
        FileStamp { path, bytes: about.len(), modified_ns, changed_ns, inode }
    }
}

/// The file of PIR's tasks that a path names as FILE or FILE:TASK.
fn tasks_of(path: &Path) -> Option<&Path> {
    let named = path.to_str().and_then(|text| text.rsplit_once(':')).map(|(file, _)| Path::new(file));
    let file = named.filter(|file| !path.exists() && file.is_file()).unwrap_or(path);
    (input::ending(file) == Some("json") && file.is_file() && pir::is_tasks(file)).then_some(file)
}

impl Source {
    /// Recognises a file or folder.
    ///
    /// # Errors
    /// The same as for [`Source::wanted`].
    pub fn recognise(path: &Path) -> Result<Self, InputError> {
        Self::wanted(path, Wanted::default())
    }

    /// Recognises a file or folder, read as `wanted`.
    ///
    /// # Errors
    /// It does not exist, or is neither a folder nor a file of a known format.
    pub fn wanted(path: &Path, wanted: Wanted) -> Result<Self, InputError> {
        if input::is_stream(path) {
            let reason = "a corpus is read more than once; write it to a file first".into();
            return Err(InputError::Unreadable { path: "standard input".into(), reason });
        }
        if let Some(file) = tasks_of(path).filter(|_| wanted.format.is_none()) {
            let reason = "tasks of PIR: each has passages, queries and gold of its own, which belong together, so none is stored as a corpus; \
                          open one with --corpus FILE:TASK, or measure all with `parallax eval pir --questions FILE`";
            return Err(InputError::Unreadable { path: file.into(), reason: reason.into() });
        }
        let path = path.canonicalize().map_err(|error| InputError::unreadable(path, &error))?;
        if path.to_str().is_none() {
            let reason =
                "its name is not UTF-8 text, so the library cannot keep it; rename the file or its folder"
                    .into();
            return Err(InputError::Unreadable { path, reason });
        }
        // A folder in BEIR's layout.
        let candidates = ["corpus.jsonl", "corpus.jsonl.gz", "corpus.jsonl.zst"].map(|name| path.join(name));
        let corpus = candidates.into_iter().find(|inside| inside.is_file());
        if let Some(link) = corpus.as_ref().filter(|inside| !wanted.follow_links && leads_out(inside, &path))
        {
            let reason = "a link out of its folder; name the file itself, or follow links with `parallax corpus add FOLDER --follow-links`";
            return Err(InputError::Unreadable { path: link.clone(), reason: reason.into() });
        }
        let path = corpus.unwrap_or(path);
        let format = match (path.is_dir(), wanted.format, input::ending(&path)) {
            (true, None | Some(CorpusFormat::Folder), _) => CorpusFormat::Folder,
            (false, Some(format), _) if format != CorpusFormat::Folder => format,
            (false, None, Some("jsonl" | "json" | "ndjson")) if results::is_results(&path)? => {
                CorpusFormat::Results
            }
            (false, None, Some("jsonl" | "json" | "ndjson")) => CorpusFormat::Jsonl,
            (false, None, Some("csv")) => CorpusFormat::Csv,
            (false, None, Some("tsv")) => CorpusFormat::Tsv,
            (is_folder, Some(format), _) => {
                let what = if is_folder { "a folder" } else { "a file" };
                let reason = format!("{what}, which cannot be read as {format}");
                return Err(InputError::Unreadable { path, reason });
            }
            _ => {
                let reason = "expected a corpus: .jsonl, .csv or .tsv (perhaps with .gz or .zst), or a folder of .txt, .md and .html files; name the format with `parallax corpus add FILE --format FORMAT`";
                return Err(InputError::Unreadable { path, reason: reason.into() });
            }
        };
        if format != CorpusFormat::Folder {
            // Before its content is hashed: what is no text is refused by its beginning.
            drop(input::open(&path)?);
        }
        let segment = wanted.segment && format != CorpusFormat::Folder;
        let (paths, columns, follow_links) = (vec![path], wanted.columns, wanted.follow_links);
        Ok(Source { paths, format, columns, segment, follow_links })
    }

    /// The passages contained in result files: at least one, with full paths.
    pub fn results(paths: Vec<PathBuf>) -> Self {
        let (format, columns) = (CorpusFormat::Results, Columns::default());
        Source { paths, format, columns, segment: false, follow_links: false }
    }

    /// The file or folder; the first of several.
    pub fn path(&self) -> &Path {
        self.paths.first().map_or(Path::new(""), PathBuf::as_path)
    }

    /// All its files, or its folder.
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// A name for the user: `arguana` for `…/arguana/corpus.jsonl`.
    pub fn name(&self) -> String {
        if self.paths.len() > 1 {
            return format!("{} runs", self.paths.len());
        }
        let stem = input::stem(self.path());
        let parent = self.path().parent().and_then(Path::file_name);
        match (stem.as_str(), parent) {
            ("corpus" | "articles" | "passages", Some(parent)) => parent.to_string_lossy().into_owned(),
            _ => stem,
        }
    }

    /// The recognised format, with the columns used.
    ///
    /// # Errors
    /// Its first line cannot be read.
    pub fn recognised(&self) -> Result<String, InputError> {
        let path = self.path();
        let described = match self.format {
            CorpusFormat::Jsonl => importer::describe_jsonl(path, &self.columns)?,
            CorpusFormat::Csv => importer::describe_table(path, ',', &self.columns)?,
            CorpusFormat::Tsv => importer::describe_table(path, '\t', &self.columns)?,
            CorpusFormat::Folder => {
                let links = folder::files(path, self.follow_links)?.links;
                let links = match links {
                    0 => String::new(),
                    1 => ", without a link (--follow-links)".into(),
                    links => format!(", without {links} links (--follow-links)"),
                };
                format!("folder of .txt, .md and .html files{links}")
            }
            CorpusFormat::Results => format!("{}: the passages they contain", self.format),
        };
        let cut = self.segment || self.format == CorpusFormat::Folder;
        Ok(if cut {
            format!("{described}; cut into passages of {} words", super::folder::WORDS)
        } else {
            described
        })
    }

    /// The error of a source without a passage.
    pub fn empty(&self) -> InputError {
        let advice = "give it at least one passage: a line of JSON, a row of a table, or a .txt, .md or .html file with words in it";
        InputError::Empty { path: self.path().into(), what: "the corpus", advice }
    }

    /// Reads all passages after the first `done` items into `sink`.
    ///
    /// # Errors
    /// The source does not follow its format.
    pub fn read(&self, done: usize, sink: Sink<'_>) -> Result<(), InputError> {
        if !self.segment {
            return self.read_whole(done, sink);
        }
        self.read_whole(done, &mut |at, whole| {
            // A passage without words stays one passage, as without cutting.
            let mut cut = chunks(&whole.text).peekable();
            let empty = cut.peek().is_none().then(String::new);
            for (i, text) in cut.chain(empty).enumerate() {
                sink(at, Passage { id: format!("{}#{}", whole.id, i + 1), text, ..whole.clone() })?;
            }
            Ok(())
        })
    }

    fn read_whole(&self, done: usize, sink: Sink<'_>) -> Result<(), InputError> {
        let path = self.path();
        match self.format {
            CorpusFormat::Jsonl => importer::read_jsonl(path, &self.columns, done, sink),
            CorpusFormat::Csv => importer::read_table(path, ',', &self.columns, done, sink),
            CorpusFormat::Tsv => importer::read_table(path, '\t', &self.columns, done, sink),
            CorpusFormat::Folder => folder::read(path, self.follow_links, done, sink),
            CorpusFormat::Results => results::read(&self.paths, done, sink),
        }
    }

    /// Path, size, times and number of every file.
    ///
    /// # Errors
    /// A file cannot be inspected.
    pub fn listing(&self) -> Result<Vec<FileStamp>, InputError> {
        let files = match self.format {
            CorpusFormat::Folder => folder::files(self.path(), self.follow_links)?.files,
            _ => self.paths.clone(),
        };
        files
            .into_iter()
            .map(|path| {
                let about = path.metadata().map_err(|error| InputError::unreadable(&path, &error))?;
                Ok(FileStamp::of(path, &about))
            })
            .collect()
    }

    /// Identifies the source by its path and by the options for reading it.
    pub fn key(&self) -> String {
        let mut all = blake3::Hasher::new();
        for path in &self.paths {
            all.update(path.to_string_lossy().as_bytes()).update(b"\n");
        }
        all.update(self.options().as_bytes());
        all.finalize().to_hex()[..24].to_owned()
    }

    /// Identifies the content, which is read in full, and the options for reading it.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn fingerprint(&self, listing: &[FileStamp]) -> Result<Fingerprint, InputError> {
        let mut all = blake3::Hasher::new();
        all.update(self.options().as_bytes());
        for FileStamp { path, .. } in listing {
            let mut one = blake3::Hasher::new();
            // Not mapped: if the file is truncated meanwhile, this is an error and not a bus error; and memory stays small.
            let read = input::open_regular(path).and_then(|file| one.update_reader(file).map(|_| ()));
            read.map_err(|error| InputError::unreadable(path, &error))?;
            // Only the path inside the source counts, so a moved corpus keeps its index.
            let inside = path.strip_prefix(self.path()).unwrap_or(Path::new(""));
            all.update(inside.to_string_lossy().as_bytes()).update(one.finalize().as_bytes());
        }
        Ok(Fingerprint(all.finalize().to_hex()[..24].to_owned()))
    }

    /// Everything besides the bytes on which the passages depend.
    fn options(&self) -> String {
        let is_packed = |path: &PathBuf| path.extension().is_some_and(|end| end == "gz" || end == "zst");
        // A packed file's extension decides how it is read; other names do not count.
        let packed: Vec<_> =
            self.paths.iter().map(|path| path.extension().filter(|_| is_packed(path))).collect();
        format!("{IMPORTERS} {:?} {:?} {packed:?} {}", self.format, self.columns, self.segment)
    }
}

/// Whether a path is a link whose end lies outside `folder`.
fn leads_out(path: &Path, folder: &Path) -> bool {
    path.is_symlink() && path.canonicalize().map_or(true, |end| !end.starts_with(folder))
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;
    use crate::work::{Job, Progress};

    #[cfg(unix)]
    #[test]
    fn other_bytes_of_the_same_size_and_time_are_another_source() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.jsonl");
        let write =
            |text: &str| std::fs::write(&path, format!("{{\"_id\":\"1\",\"text\":\"{text}\"}}\n")).unwrap();
        let library = crate::corpus::library::Library::at(&folder.path().join("data"));
        let text = || {
            let source = Source::recognise(&path).unwrap();
            let corpus = library.open(&source, &|_| (), &crate::work::Stop::never()).unwrap();
            corpus.passage(crate::corpus::PassageIx(0)).text
        };
        write("cages");
        let time = std::fs::metadata(&path).unwrap().modified().unwrap();
        assert_eq!(text(), "cages");
        write("zebra");
        File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
        assert_eq!(text(), "zebra");
        // A file that takes the other's place, with both times of the content.
        let other = folder.path().join("other");
        std::fs::write(&other, std::fs::read_to_string(&path).unwrap().replace("zebra", "horse")).unwrap();
        File::options().write(true).open(&other).unwrap().set_modified(time).unwrap();
        std::fs::rename(&other, &path).unwrap();
        assert_eq!(text(), "horse");
    }

    #[cfg(unix)]
    #[test]
    fn a_corpus_file_that_is_a_link_out_of_its_folder_is_refused_unless_links_are_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (inside, outside) = (folder.path().join("set"), folder.path().join("other.jsonl"));
        std::fs::create_dir(&inside).unwrap();
        std::fs::write(&outside, "{\"_id\":\"1\",\"text\":\"a\"}\n").unwrap();
        std::os::unix::fs::symlink(&outside, inside.join("corpus.jsonl")).unwrap();
        let error = Source::recognise(&inside).unwrap_err().to_string();
        assert!(error.contains("corpus.jsonl") && error.contains("--follow-links"), "{error}");
        let followed = Wanted { follow_links: true, ..Wanted::default() };
        assert_eq!(Source::wanted(&inside, followed).unwrap().format, CorpusFormat::Jsonl);
    }

    #[test]
    fn an_import_extrapolates_its_total_from_the_share_read() {
        let folder = tempfile::tempdir().unwrap();
        // Words that hardly compress, so the archive has many blocks too.
        let text = |i: usize| {
            let hash = |j: usize| blake3::hash(&[i.to_le_bytes(), j.to_le_bytes()].concat()).to_hex();
            (0..4).map(|j| format!("{} ", hash(j))).collect::<String>()
        };
        let line = |i: usize| format!("{{\"_id\": \"{i}\", \"text\": \"{}\"}}\n", text(i));
        let lines: String = (0..20_000).map(line).collect();
        let packed = zstd::encode_all(lines.as_bytes(), 1).unwrap();
        for (name, bytes) in [("c.jsonl", lines.as_bytes()), ("c.jsonl.zst", &packed)] {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            let source = Source::wanted(&path, Wanted::default()).unwrap();
            let (mut taken, mut last) = (0, Progress { job: Job::Importing, done: 0, total: 0 });
            let mut halves = Vec::new();
            source
                .read(0, &mut |at, _| {
                    taken += 1;
                    last = at.progress(taken);
                    if taken == 10_000 {
                        halves.push(last.total);
                    }
                    Ok(())
                })
                .unwrap();
            assert_eq!((last.done, last.total), (20_000, 20_000), "{name}");
            assert!((16_000..=20_200).contains(&halves[0]), "{name}: {halves:?}");
        }
    }
}
