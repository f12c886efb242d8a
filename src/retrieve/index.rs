//! The term index: which passages hold which terms how often, kept by tantivy.

use std::path::Path;
use std::sync::Arc;

use tantivy::directory::MmapDirectory;
use tantivy::indexer::NoMergePolicy;
use tantivy::schema::{FAST, Field, IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::tokenizer::{PreTokenizedString, Token};
use tantivy::{Index, IndexSettings, IndexWriter, InvertedIndexReader, TantivyDocument};

use super::RetrieveError;
use super::analysis::terms;
use crate::corpus::{Corpus, PassageIx};
use crate::work::{Job, Progress, Stop, Stopped, Tell, on_cores};

/// Bytes the writer may fill before it writes a segment of its own accord.
const WRITER_MEMORY: usize = 256 << 20;
/// Passages of a segment: their scores fit into a core's own cache, and all cores have a share in a search.
const SEGMENT: usize = 65_536;
/// Passages analysed between two looks at the stop.
const BATCH: usize = 4_096;
/// Passages that a thread analyses at a time.
const SHARE: usize = 64;

impl From<tantivy::TantivyError> for RetrieveError {
    fn from(error: tantivy::TantivyError) -> Self {
        RetrieveError::Index(error.to_string())
    }
}

impl From<std::io::Error> for RetrieveError {
    fn from(error: std::io::Error) -> Self {
        RetrieveError::Index(error.to_string())
    }
}

/// The postings of one corpus.
pub struct TermIndex {
    pub(super) contents: Field,
    pub(super) segments: Vec<Segment>,
    /// Terms of a passage, on average.
    pub(super) average: f32,
}

/// A run of passages whose postings lie together.
pub(super) struct Segment {
    pub postings: Arc<InvertedIndexReader>,
    /// The passage its document 0 is; the others follow in order.
    pub first: PassageIx,
    /// Terms of every document, counted exactly.
    pub lengths: Vec<f32>,
}

impl TermIndex {
    /// Where it lies below a corpus's folder; renamed whenever the analysis or the fields change.
    pub const FOLDER: &str = "terms-2";

    /// Indexes a small corpus in memory.
    ///
    /// # Errors
    /// tantivy refused it.
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
    /// The folder cannot be written, or `stop` was set; the folder is then of no use.
    pub fn build(folder: &Path, corpus: &Corpus, tell: Tell<'_>, stop: &Stop) -> Result<(), RetrieveError> {
        let directory =
            MmapDirectory::open(folder).map_err(|error| RetrieveError::Index(error.to_string()))?;
        fill(&Index::create(directory, schema(), IndexSettings::default())?, corpus, SEGMENT, tell, stop)
    }

    /// Opens what [`TermIndex::build`] wrote.
    ///
    /// # Errors
    /// It is not there or not whole.
    pub fn open(folder: &Path) -> Result<Self, RetrieveError> {
        Self::read(&Index::open_in_dir(folder)?)
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
        Ok(TermIndex { contents, segments, average })
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

/// One indexing thread and no merging, so that a segment holds passages that follow one another. What costs most, the analysis, is
/// done on all cores beside it.
fn fill(
    index: &Index,
    corpus: &Corpus,
    segment: usize,
    tell: Tell<'_>,
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
        for document in documents.into_iter().flatten() {
            writer.add_document(document)?;
            written += 1;
            if written % segment == 0 {
                writer.commit()?;
            }
        }
        tell(Progress { job: Job::Indexing, done: start as u64, total: total as u64 });
    }
    writer.commit()?;
    tell(Progress { job: Job::Indexing, done: total as u64, total: total as u64 });
    Ok(())
}

/// The terms of a text as tantivy takes them; it is given no text of its own to keep.
fn tokens(text: &str) -> PreTokenizedString {
    let token = |(position, term): (usize, super::analysis::Term)| Token {
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
