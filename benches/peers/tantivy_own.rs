//! tantivy as it comes: its own index of the same terms, its own BM25, its own collector.

use tantivy::collector::TopDocs;
use tantivy::query::{BooleanQuery, Occur, Query, TermQuery};
use tantivy::schema::{
    FAST, Field, IndexRecordOption, NumericOptions, Schema, TextFieldIndexing, TextOptions,
};
use tantivy::tokenizer::{PreTokenizedString, Token};
use tantivy::{Index, IndexWriter, Searcher, TantivyDocument, Term};

use crate::Outcome;

/// An index in memory, of one segment.
pub struct Own {
    searcher: Searcher,
    contents: Field,
}

impl Own {
    /// Indexes passages that are given as terms.
    pub fn index(passages: &[Vec<String>]) -> Outcome<Self> {
        let mut schema = Schema::builder();
        let indexing = TextFieldIndexing::default().set_index_option(IndexRecordOption::WithFreqs);
        let contents =
            schema.add_text_field("contents", TextOptions::default().set_indexing_options(indexing));
        let place = schema.add_u64_field("place", NumericOptions::from(FAST));
        let index = Index::create_in_ram(schema.build());
        let mut writer: IndexWriter = index.writer_with_num_threads(1, 256 << 20)?;
        for (at, terms) in passages.iter().enumerate() {
            let tokens = terms.iter().enumerate().map(|(position, text)| Token {
                position,
                text: text.clone(),
                ..Token::default()
            });
            let mut document = TantivyDocument::default();
            document.add_pre_tokenized_text(
                contents,
                PreTokenizedString { text: String::new(), tokens: tokens.collect() },
            );
            document.add_u64(place, at as u64);
            writer.add_document(document)?;
        }
        writer.commit()?;
        Ok(Own { searcher: index.reader()?.searcher(), contents })
    }

    /// The best `k` passages.
    pub fn search(&self, terms: &[String], k: usize) -> Outcome<Vec<u32>> {
        let clauses = terms.iter().map(|term| {
            let term = Term::from_field_text(self.contents, term);
            let query: Box<dyn Query> = Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs));
            (Occur::Should, query)
        });
        let query = BooleanQuery::new(clauses.collect());
        let found = self.searcher.search(&query, &TopDocs::with_limit(k).order_by_score())?;
        let mut places = Vec::with_capacity(found.len());
        for (_, address) in found {
            let column = self.searcher.segment_reader(address.segment_ord).fast_fields().u64("place")?;
            places.push(column.first(address.doc_id).ok_or("a document has no place")? as u32);
        }
        Ok(places)
    }
}
