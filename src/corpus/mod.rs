//! Passages, the importers that read them, and the library that stores imported corpora.
//!
//! | file | holds |
//! | --- | --- |
//! | `store` | [`Passage`], [`Corpus`]: the passages of one corpus, read from disk on demand; metadata fields with few values |
//! | `source` | the format of a file or folder |
//! | `importer` | the parts that all importers share (columns, positions, the sink), and the importer of JSONL and tables |
//! | `folder`, `results` | the importers of folders of texts and of the results of other tools |
//! | `build` | imports into the store, resumable |
//! | `library` | all stored corpora: open, add, list, remove |
//! | `sample` | the built-in sample |
//!
//! Must not know about queries, rankings or models. May use: input, measure (run formats), question (PIR's files), storage, work.

mod build;
mod folder;
mod importer;
pub mod library;
pub mod source;
pub mod store;

pub use build::{About, BuildError, Census, OFFSETS, PASSAGES, Repeats};
pub use folder::{HtmlError, Page, chunks, main_text};
pub use importer::{Columns, Refused, exact_object};
pub use library::StoredCorpus;
pub use store::{Corpus, Fingerprint, Passage, PassageIx};

/// The built-in sample: questions, passages, gold labels, recorded replies, and the passages' vectors.
pub mod sample {
    use super::store::Corpus;

    /// Passages, one per line.
    pub const CORPUS: &[u8] = include_bytes!("../../sample_data/corpus.jsonl");
    /// Questions with their perspectives, one per line.
    pub const QUESTIONS: &str = include_str!("../../sample_data/questions.jsonl");
    /// Gold labels: question, id, perspective, label, evidence.
    pub const LABELS: &str = include_str!("../../sample_data/labels.tsv");
    /// Recorded replies of a language model to the expansions' prompts for these questions.
    pub const REPLIES: &[u8] = include_bytes!("../../sample_data/replies.jsonl");
    /// The passages' vectors by the built-in encoder, `[passages, 384]` little-endian f32, after a 32-byte key.
    pub const VECTORS: &[u8] = include_bytes!("../../sample_data/minilm.f32");

    /// The sample as a corpus.
    pub fn corpus() -> Corpus {
        Corpus::builtin("sample", CORPUS)
    }
}

pub mod results {
    //! Imports the passages in result files of rank_llm and BERDS, each passage once.

    use std::collections::HashMap;
    use std::io::{BufRead, Read};
    use std::path::{Path, PathBuf};

    use super::importer::{At, Refused, Sink};
    use super::store::Passage;
    use crate::input::{self, BadLine, Expected, InputError};
    use crate::measure::trec::{Run, RunOrder, RunPassage, TrecError, read_json_run};

    /// Bytes read to recognise a file.
    const LOOK: u64 = 1 << 16;

    /// Whether a file contains such results: a JSON list, or objects that contain one.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn is_results(path: &Path) -> Result<bool, InputError> {
        let unreadable = |error| InputError::unreadable(path, &error);
        let mut begins = Vec::new();
        input::open(path)?.take(LOOK).read_to_end(&mut begins).map_err(unreadable)?;
        let text = String::from_utf8_lossy(&begins);
        let text = text.trim_start_matches('\u{feff}').trim_start();
        let object = text.lines().next().unwrap_or_default();
        let lists = ["\"candidates\"", "\"hits\"", "\"ctxs\""];
        // A line of BEIR has an id and no list.
        Ok(text.starts_with('[')
            || (object.starts_with('{')
                && !object.contains("\"_id\"")
                && lists.iter().any(|name| text.contains(name))))
    }

    /// Reads a JSON run and calls `each` for every passage in it.
    ///
    /// # Errors
    /// It does not follow the format.
    pub fn read_run(
        path: &Path,
        order: RunOrder,
        each: &mut dyn FnMut(RunPassage<'_>),
    ) -> Result<Run, InputError> {
        let reader = input::bounded(path, input::open(path)?);
        let run = read_json_run(&path.display().to_string(), reader, order, 1, each);
        run.map_err(|error| match error {
            TrecError::Io { source, .. } => InputError::unreadable(path, &source),
            TrecError::Lines(lines) => InputError::Unreadable {
                path: path.into(),
                reason: format!("not a run of rank_llm or BERDS; nothing was taken from it\n{lines}"),
            },
        })
    }

    /// Reads the passages of all `files` after the first `done` into `sink`, in the order in which their ids first occur.
    ///
    /// # Errors
    /// A file is not such results, or an id has two texts.
    pub fn read(files: &[PathBuf], done: usize, sink: Sink<'_>) -> Result<(), InputError> {
        let mut seen = HashMap::new();
        let mut stopped = false;
        for (number, file) in files.iter().enumerate() {
            let mut bad = Vec::new();
            read_run(file, RunOrder::AsGiven, &mut |entry| {
                if stopped {
                    return;
                }
                let result = take(&mut seen, &entry, number, files).and_then(|new| {
                    if !new || seen.len() <= done {
                        return Ok(());
                    }
                    let (id, title, text) = (entry.id.into(), entry.title.into(), entry.text.into());
                    let at = At { item: seen.len(), clean: bad.is_empty(), share: 0.0 };
                    sink(at, Passage { id, title, text, ..Passage::default() })
                });
                match result {
                    Ok(()) => {}
                    Err(Refused::Enough) => stopped = true,
                    Err(Refused::Bad(expected)) => {
                        let (line, found) = (entry.line, entry.text.into());
                        bad.push(BadLine { file: file.clone(), line, expected: expected.0, found });
                    }
                }
            })?;
            if stopped {
                return Ok(());
            }
            if !bad.is_empty() {
                return Err(InputError::BadLines(bad));
            }
        }
        Ok(())
    }

    /// The first occurrence of an id: the file's number, the line, and the text as [`letters`].
    type First = (usize, usize, [u8; 16]);

    /// Whether a passage is new. A repeated one must have the same text.
    fn take(
        seen: &mut HashMap<String, First>,
        entry: &RunPassage<'_>,
        number: usize,
        files: &[PathBuf],
    ) -> Result<bool, Refused> {
        let letters = letters(entry.title, entry.text);
        match seen.get(entry.id) {
            None => {
                seen.insert(entry.id.into(), (number, entry.line, letters));
                Ok(true)
            }
            Some((.., first)) if *first == letters => Ok(false),
            Some((other, line, _)) => Err(Refused::Bad(Expected(format!(
                "the text that passage `{}` has at {}:{line}; give the corpus with --corpus",
                entry.id,
                files[*other].display()
            )))),
        }
    }

    /// A hash of a text's ASCII letters and digits, if it has any: published runs of one corpus differ in how they encode the rest.
    fn letters(title: &str, text: &str) -> [u8; 16] {
        let mut hasher = blake3::Hasher::new();
        for part in [title, text] {
            let letters: Vec<u8> = part.bytes().filter(u8::is_ascii_alphanumeric).collect();
            hasher.update(if letters.is_empty() { part.as_bytes() } else { &letters }).update(&[0]);
        }
        hasher.finalize().as_bytes()[..16].try_into().unwrap_or_default()
    }

    /// Whether a file is JSON, by its first character.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn is_json(reader: &mut impl BufRead) -> std::io::Result<bool> {
        let begins = reader.fill_buf()?;
        let begins = begins.strip_prefix(b"\xef\xbb\xbf").unwrap_or(begins);
        Ok(begins.iter().find(|byte| !byte.is_ascii_whitespace()).is_some_and(|byte| b"[{".contains(byte)))
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        fn file(folder: &Path, name: &str, text: &str) -> PathBuf {
            let path = folder.join(name);
            std::fs::write(&path, text).unwrap();
            path
        }

        fn passages(files: &[PathBuf]) -> Result<Vec<Passage>, String> {
            let mut all = Vec::new();
            read(files, 0, &mut |_, passage| {
                all.push(passage);
                Ok(())
            })
            .map(|()| all)
            .map_err(|error| error.to_string())
        }

        #[test]
        fn passages_of_several_runs_are_read_once_whatever_their_encoding() {
            let folder = tempfile::tempdir().unwrap();
            let one = file(
                folder.path(),
                "a.json",
                r#"[{"query":"w","hits":[{"qid":1,"docid":7,"score":1,"content":"It’s so."}]}]"#,
            );
            let other = file(
                folder.path(),
                "b.jsonl",
                r#"{"question":"w","ctxs":[{"id":"7","score":1,"text":"Itâ€™s so."},{"score":1,"title":"T","text":"New."}]}"#,
            );
            assert!(is_results(&one).unwrap() && is_results(&other).unwrap());
            let all = passages(&[one, other]).unwrap();
            assert_eq!(all.iter().map(|p| p.text.as_str()).collect::<Vec<_>>(), ["It’s so.", "New."]);
            assert_eq!(all[1].title, "T");
        }

        #[test]
        fn items_read_before_are_skipped_and_enough_stops_the_import() {
            let folder = tempfile::tempdir().unwrap();
            let hit = |id: u32| format!(r#"{{"qid":1,"docid":{id},"score":1,"content":"text {id}"}}"#);
            let text = |ids: &[u32]| {
                let hits: Vec<String> = ids.iter().map(|id| hit(*id)).collect();
                format!(r#"[{{"query":"w","hits":[{}]}}]"#, hits.join(","))
            };
            let files = [
                file(folder.path(), "a.json", &text(&[1, 2])),
                file(folder.path(), "b.json", &text(&[2, 3, 4])),
            ];
            let mut seen = Vec::new();
            read(&files, 1, &mut |at, passage| {
                seen.push((at.item, passage.id));
                if at.item == 3 { Err(Refused::Enough) } else { Ok(()) }
            })
            .unwrap();
            assert_eq!(seen, [(2, "2".to_owned()), (3, "3".to_owned())]);
        }

        #[test]
        fn an_id_with_two_texts_is_reported_with_both_places() {
            let folder = tempfile::tempdir().unwrap();
            let text = |text: &str| {
                format!(
                    "[\n{{\"query\":\"w\",\"hits\":[{{\"qid\":1,\"docid\":7,\"score\":1,\"content\":\"{text}\"}}]}}]"
                )
            };
            let files =
                [file(folder.path(), "a.json", &text("one")), file(folder.path(), "b.json", &text("two"))];
            let error = passages(&files).unwrap_err();
            assert!(error.contains("b.json:2: expected the text that passage `7` has at "), "{error}");
            assert!(error.contains("a.json:2") && error.contains("found `two`"), "{error}");
        }

        #[test]
        fn a_corpus_is_not_taken_for_results() {
            let folder = tempfile::tempdir().unwrap();
            let corpus =
                file(folder.path(), "c.jsonl", "{\"_id\":\"1\",\"text\":\"the \\\"hits\\\" list\"}\n");
            assert!(!is_results(&corpus).unwrap());
        }
    }
}
