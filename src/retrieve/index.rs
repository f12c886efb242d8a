//! The term index: which passages hold which terms how often, kept by tantivy.

use std::path::Path;

use tantivy::directory::MmapDirectory;
use tantivy::indexer::NoMergePolicy;
use tantivy::schema::{FAST, Field, IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::tokenizer::{PreTokenizedString, Token};
use tantivy::{Index, IndexSettings, IndexWriter, SegmentReader, TantivyDocument};

use super::RetrieveError;
use super::analysis::terms;
use crate::corpus::{Corpus, PassageIx};
use crate::work::{Job, Progress, Stop, Stopped, Tell};

/// Bytes the writer may fill before it writes a segment.
const WRITER_MEMORY: usize = 64 << 20;
const BATCH: u32 = 1_000;

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
}

/// A run of passages whose postings lie together.
pub(super) struct Segment {
    pub reader: SegmentReader,
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
        let index = Index::create_in_ram(schema());
        fill(&index, corpus, &|_| (), &Stop::never())?;
        Self::read(&index)
    }

    /// Indexes a corpus into `folder`, which must be empty.
    ///
    /// # Errors
    /// The folder cannot be written, or `stop` was set; the folder is then of no use.
    pub fn build(folder: &Path, corpus: &Corpus, tell: Tell<'_>, stop: &Stop) -> Result<(), RetrieveError> {
        let directory =
            MmapDirectory::open(folder).map_err(|error| RetrieveError::Index(error.to_string()))?;
        fill(&Index::create(directory, schema(), IndexSettings::default())?, corpus, tell, stop)
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
            Ok(Segment { reader: reader.clone(), first: PassageIx(first as u32), lengths: lengths.collect() })
        });
        Ok(TermIndex { contents, segments: segments.collect::<Result<_, RetrieveError>>()? })
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

/// One indexing thread and no merging, so that a segment holds passages that follow one another.
fn fill(index: &Index, corpus: &Corpus, tell: Tell<'_>, stop: &Stop) -> Result<(), RetrieveError> {
    let field = |name| index.schema().get_field(name);
    let (contents, passage, length) = (field("contents")?, field("passage")?, field("length")?);
    let mut writer: IndexWriter = index.writer_with_num_threads(1, WRITER_MEMORY)?;
    writer.set_merge_policy(Box::new(NoMergePolicy));
    let total = corpus.len() as u64;
    for place in corpus.places() {
        let mut document = TantivyDocument::default();
        let tokens = tokens(&corpus.passage(place).contents());
        document.add_u64(length, tokens.tokens.len() as u64);
        document.add_pre_tokenized_text(contents, tokens);
        document.add_u64(passage, u64::from(place.0));
        writer.add_document(document)?;
        if place.0 % BATCH == 0 {
            if stop.is_set() {
                return Err(Stopped.into());
            }
            tell(Progress { job: Job::Indexing, done: u64::from(place.0), total });
        }
    }
    writer.commit()?;
    tell(Progress { job: Job::Indexing, done: total, total });
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
