//! Splits texts into terms like Lucene's English analyzer, and stores the term index with tantivy.
//!
//! The analyzer: UAX #29 words, possessives stripped, lower case, Lucene's stop words, the original Porter stemmer. tantivy's own
//! English analyzer uses Porter2 and keeps possessives, which changes published results by whole points.

use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use tantivy::directory::error::{DeleteError, LockError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    Directory, DirectoryLock, FileHandle, Lock, MmapDirectory, OwnedBytes, WatchCallback, WatchHandle,
    WritePtr,
};
use tantivy::indexer::NoMergePolicy;
use tantivy::schema::{FAST, Field, IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::tokenizer::{PreTokenizedString, Token};
use tantivy::{
    HasLen, Index, IndexSettings, IndexWriter, InvertedIndexReader, TantivyDocument, TantivyError,
};
use unicode_segmentation::UnicodeSegmentation;

use super::RetrieveError;
use crate::corpus::{Corpus, PassageIx};
use crate::storage::checked::{Damaged, Summed, open_sums};
use crate::work::{Job, OnProgress, Progress, Stop, Stopped, on_cores};

/// The memory of the writer, large enough that it never flushes a segment by itself.
const WRITER_MEMORY: usize = 256 << 20;
/// The number of passages in a segment: their scores fit into a core's cache, and a search uses all cores.
const SEGMENT: usize = 65_536;
/// The number of passages analysed between two checks of the stop.
const BATCH: usize = 4_096;
/// The number of passages that a thread analyses at a time.
const SHARE: usize = 64;

impl From<TantivyError> for RetrieveError {
    fn from(error: TantivyError) -> Self {
        let cause = match &error {
            TantivyError::IoError(cause)
            | TantivyError::OpenReadError(OpenReadError::IoError { io_error: cause, .. }) => {
                Damaged::of(cause)
            }
            _ => None,
        };
        match cause {
            Some(damaged) => RetrieveError::Damaged(damaged.clone()),
            None => RetrieveError::Index(error.to_string()),
        }
    }
}

impl From<io::Error> for RetrieveError {
    fn from(error: io::Error) -> Self {
        match Damaged::of(&error) {
            Some(damaged) => RetrieveError::Damaged(damaged.clone()),
            None => RetrieveError::Index(error.to_string()),
        }
    }
}

/// The folder of an index, of which every byte is checked before tantivy sees it: damaged ones make it panic, or find other passages.
#[derive(Clone, Debug)]
struct CheckedDirectory {
    inner: MmapDirectory,
    files: Arc<HashMap<PathBuf, Arc<Summed>>>,
}

#[derive(Debug)]
struct CheckedFile {
    bytes: OwnedBytes,
    sums: Arc<Summed>,
}

impl HasLen for CheckedFile {
    fn len(&self) -> usize {
        self.bytes.len()
    }
}

impl FileHandle for CheckedFile {
    fn read_bytes(&self, range: Range<usize>) -> io::Result<OwnedBytes> {
        self.sums.check_bytes(range.start as u64..range.end as u64, &self.bytes)?;
        Ok(self.bytes.slice(range))
    }
}

impl CheckedDirectory {
    fn open(folder: &Path) -> Result<Self, RetrieveError> {
        let named = |sums: Summed| Some((PathBuf::from(sums.path().file_name()?), Arc::new(sums)));
        let files = open_sums(folder)?.into_iter().filter_map(named).collect();
        let inner = MmapDirectory::open(folder).map_err(|error| RetrieveError::Index(error.to_string()))?;
        Ok(CheckedDirectory { inner, files: Arc::new(files) })
    }

    fn sums(&self, path: &Path) -> Result<&Arc<Summed>, OpenReadError> {
        self.files.get(path).ok_or_else(|| OpenReadError::FileDoesNotExist(path.into()))
    }
}

impl Directory for CheckedDirectory {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        let sums = Arc::clone(self.sums(path)?);
        let inner = self.inner.get_file_handle(path)?;
        let bytes = inner.read_bytes(0..inner.len());
        let bytes = bytes.map_err(|error| OpenReadError::wrap_io_error(error, path.into()))?;
        Ok(Arc::new(CheckedFile { bytes, sums }))
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        let sums = self.sums(path)?;
        let bytes = self.inner.atomic_read(path)?;
        let checked = sums.check_bytes(0..sums.bytes(), &bytes);
        checked.map_err(|error| OpenReadError::wrap_io_error(error, path.into()))?;
        Ok(bytes)
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        self.inner.exists(path)
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        self.inner.delete(path)
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        self.inner.open_write(path)
    }

    fn atomic_write(&self, path: &Path, data: &[u8]) -> io::Result<()> {
        self.inner.atomic_write(path, data)
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.inner.sync_directory()
    }

    fn acquire_lock(&self, lock: &Lock) -> Result<DirectoryLock, LockError> {
        self.inner.acquire_lock(lock)
    }

    fn watch(&self, callback: WatchCallback) -> tantivy::Result<WatchHandle> {
        self.inner.watch(callback)
    }
}

/// The postings of one corpus.
pub struct TermIndex {
    pub(super) contents: Field,
    pub(super) segments: Vec<Segment>,
    /// The average number of terms of a passage.
    pub(super) average: f32,
    /// Room for the scores of a segment.
    pub(super) zeros: Zeros,
}

/// Rows of zeros for the next searches: the system takes longer to give so much memory than a search needs for a segment.
#[derive(Default)]
pub(super) struct Zeros(Mutex<Vec<Vec<f32>>>);

impl Zeros {
    /// The most rows that are kept.
    const KEPT: usize = 16;

    pub fn take(&self, length: usize) -> Vec<f32> {
        let mut row = self.0.lock().pop().unwrap_or_default();
        row.resize(length, 0.0);
        row
    }

    /// The row may hold anything.
    pub fn give_back(&self, mut row: Vec<f32>) {
        row.fill(0.0);
        let mut rows = self.0.lock();
        if rows.len() < Self::KEPT {
            rows.push(row);
        }
    }
}

/// Consecutive passages with their postings.
pub(super) struct Segment {
    pub postings: Arc<InvertedIndexReader>,
    /// The passage of document 0; the others follow in order.
    pub first: PassageIx,
    /// The exact number of terms of every document.
    pub lengths: Vec<f32>,
}

impl TermIndex {
    /// Its folder inside a corpus's folder. Change the name whenever the analyzer or the fields change.
    pub const FOLDER: &str = "terms-2";

    /// Indexes a small corpus in memory.
    ///
    /// # Errors
    /// tantivy failed.
    pub fn in_memory(corpus: &Corpus) -> Result<Self, RetrieveError> {
        Self::in_segments_of(SEGMENT, corpus)
    }

    pub(super) fn in_segments_of(passages: usize, corpus: &Corpus) -> Result<Self, RetrieveError> {
        let index = Index::create_in_ram(schema());
        fill(&index, corpus, passages, &|_| (), &Stop::never())?;
        Self::read(&index)
    }

    /// Indexes a corpus into `folder`, which must be empty.
    ///
    /// # Errors
    /// The folder cannot be written, or `stop` was set; the folder is unusable then.
    pub fn build(
        folder: &Path,
        corpus: &Corpus,
        on_progress: OnProgress<'_>,
        stop: &Stop,
    ) -> Result<(), RetrieveError> {
        let directory =
            MmapDirectory::open(folder).map_err(|error| RetrieveError::Index(error.to_string()))?;
        fill(
            &Index::create(directory, schema(), IndexSettings::default())?,
            corpus,
            SEGMENT,
            on_progress,
            stop,
        )
    }

    /// Opens an index that [`TermIndex::build`] wrote and that has checksums.
    ///
    /// # Errors
    /// It is missing, incomplete or damaged.
    pub fn open(folder: &Path) -> Result<Self, RetrieveError> {
        Self::read(&Index::open(CheckedDirectory::open(folder)?)?)
    }

    fn read(index: &Index) -> Result<Self, RetrieveError> {
        let contents = index.schema().get_field("contents")?;
        let searcher =
            index.reader_builder().reload_policy(tantivy::ReloadPolicy::Manual).try_into()?.searcher();
        let segments = searcher.segment_readers().iter().map(|reader| {
            let first = reader.fast_fields().u64("passage")?.first(0).unwrap_or_default();
            let lengths = reader.fast_fields().u64("length")?;
            let lengths = (0..reader.max_doc()).map(|at| lengths.first(at).unwrap_or_default() as f32);
            let lengths = lengths.collect();
            let postings = reader.inverted_index(contents)?;
            Ok(Segment { postings, first: PassageIx(first as u32), lengths })
        });
        let segments = segments.collect::<Result<Vec<Segment>, RetrieveError>>()?;
        let lengths = || segments.iter().flat_map(|segment| &segment.lengths);
        let terms: f64 = lengths().map(|terms| f64::from(*terms)).sum();
        let average = (terms / lengths().count().max(1) as f64) as f32;
        Ok(TermIndex { contents, segments, average, zeros: Zeros::default() })
    }
}

fn schema() -> Schema {
    let mut schema = Schema::builder();
    let indexing =
        TextFieldIndexing::default().set_index_option(IndexRecordOption::WithFreqs).set_fieldnorms(false);
    schema.add_text_field("contents", TextOptions::default().set_indexing_options(indexing));
    schema.add_u64_field("passage", FAST);
    schema.add_u64_field("length", FAST);
    schema.build()
}

/// Indexes all passages. One thread writes and segments are not merged, so that a segment holds consecutive passages. The expensive part,
/// the analysis, runs on all cores.
fn fill(
    index: &Index,
    corpus: &Corpus,
    segment: usize,
    on_progress: OnProgress<'_>,
    stop: &Stop,
) -> Result<(), RetrieveError> {
    let field = |name| index.schema().get_field(name);
    let (contents, passage, length) = (field("contents")?, field("passage")?, field("length")?);
    let mut writer: IndexWriter = index.writer_with_num_threads(1, WRITER_MEMORY)?;
    writer.set_merge_policy(Box::new(NoMergePolicy));
    let total = corpus.len();
    let document = |place: usize| {
        let mut document = TantivyDocument::default();
        let tokens = tokens(&corpus.passage(PassageIx(place as u32)).contents());
        document.add_u64(length, tokens.tokens.len() as u64);
        document.add_pre_tokenized_text(contents, tokens);
        document.add_u64(passage, place as u64);
        document
    };
    let mut written = 0;
    for start in (0..total).step_by(BATCH) {
        let shares = (total - start).min(BATCH).div_ceil(SHARE);
        let documents = on_cores(shares, stop, |i| {
            let from = start + i * SHARE;
            (from..(from + SHARE).min(start + BATCH).min(total)).map(document).collect::<Vec<_>>()
        });
        if documents.len() < shares {
            return Err(Stopped.into());
        }
        corpus.sound()?;
        for document in documents.into_iter().flatten() {
            writer.add_document(document)?;
            written += 1;
            if written % segment == 0 {
                writer.commit()?;
            }
        }
        on_progress(Progress { job: Job::Indexing, done: start as u64, total: total as u64 });
    }
    writer.commit()?;
    on_progress(Progress { job: Job::Indexing, done: total as u64, total: total as u64 });
    Ok(())
}

/// The terms of a text for tantivy, which stores no text.
fn tokens(text: &str) -> PreTokenizedString {
    let token = |(position, term): (usize, self::Term)| Token {
        offset_from: term.at.start,
        offset_to: term.at.end,
        position,
        text: term.text,
        position_length: 1,
    };
    PreTokenizedString {
        text: String::new(),
        tokens: terms(text).into_iter().enumerate().map(token).collect(),
    }
}

const STOP: [&str; 33] = [
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it", "no",
    "not", "of", "on", "or", "such", "that", "the", "their", "then", "there", "these", "they", "this", "to",
    "was", "will", "with",
];

/// Lucene cuts longer words into pieces of this many characters.
const LONGEST: usize = 255;

/// A term and its position in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// The stem.
    pub text: String,
    /// The byte range of its word.
    pub at: Range<usize>,
}

/// The terms of a text, in order.
pub fn terms(text: &str) -> Vec<Term> {
    let mut out = Vec::new();
    for (start, word) in text.unicode_word_indices() {
        let mut from = start;
        for piece in pieces(word) {
            let at = from..from + piece.len();
            from = at.end;
            if let Some(text) = term(piece) {
                out.push(Term { text, at });
            }
        }
    }
    out
}

fn pieces(word: &str) -> impl Iterator<Item = &str> {
    let mut rest = word;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = rest.char_indices().nth(LONGEST).map_or(rest.len(), |(i, _)| i);
        let (piece, tail) = rest.split_at(end);
        rest = tail;
        Some(piece)
    })
}

fn term(word: &str) -> Option<String> {
    let word = word
        .strip_suffix(['s', 'S'])
        .and_then(|w| w.strip_suffix(['\'', '\u{2019}', '\u{ff07}']))
        .unwrap_or(word);
    let lower = word.to_lowercase();
    if lower.is_empty() || STOP.contains(&lower.as_str()) {
        return None;
    }
    Some(stem(&lower))
}

/// The original Porter stemmer with the two changes that its author published later and Lucene has: `bli` → `ble` and
/// `logi` → `log`, after a vowel and a consonant.
fn stem(word: &str) -> String {
    // Lucene leaves words of one or two UTF-16 units as they are; letters other than a–z count as consonants.
    if word.encode_utf16().count() < 3 {
        return word.to_owned();
    }
    let departure = [
        ("blies", "ble"),
        ("bly", "ble"),
        ("bli", "ble"),
        ("logies", "log"),
        ("logy", "log"),
        ("logi", "log"),
    ]
    .iter()
    .find_map(|(ending, other)| Some((word.strip_suffix(ending)?, other)))
    .filter(|(before, _)| has_measure(before))
    .map(|(before, other)| format!("{before}{other}"));
    let porter = frostem::Stemmer::new(frostem::Algorithm::Porter);
    porter.stem(departure.as_deref().unwrap_or(word)).into_owned()
}

/// Porter's m > 0: a consonant follows a vowel somewhere.
fn has_measure(text: &str) -> bool {
    let mut vowel_before = false;
    text.chars().any(|c| {
        let vowel = matches!(c, 'a' | 'e' | 'i' | 'o' | 'u') || (c == 'y' && !vowel_before);
        let turn = vowel_before && !vowel;
        vowel_before = vowel;
        turn
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<String> {
        terms(text).into_iter().map(|term| term.text).collect()
    }

    #[test]
    fn words_are_lowered_stemmed_and_stopped_as_in_lucene() {
        assert_eq!(
            texts("The keepers' animals were NOT relational; it's Zoo's"),
            ["keeper", "anim", "were", "relat", "zoo"]
        );
    }

    #[test]
    fn the_later_changes_of_porters_stemmer_are_included_as_in_lucene() {
        assert_eq!(
            texts("possibly possible archaeology archaeological technologies naïve"),
            ["possibl", "possibl", "archaeolog", "archaeolog", "technolog", "naïv"]
        );
    }

    #[test]
    fn a_term_has_the_byte_range_of_its_word() {
        let text = "wide Züge running";
        assert_eq!(
            terms(text).iter().map(|t| &text[t.at.clone()]).collect::<Vec<_>>(),
            ["wide", "Züge", "running"]
        );
    }

    #[test]
    fn every_ideograph_is_a_term_and_a_very_long_word_is_cut() {
        assert_eq!(texts("動物園"), ["動", "物", "園"]);
        assert_eq!(texts(&"x".repeat(600)).iter().map(String::len).collect::<Vec<_>>(), [255, 255, 90]);
        assert_eq!(texts("🦁 … \u{1b}[31m").len(), 1);
    }
}
