//! Reads runs in JSON: `[{query, candidates|hits}]` of rank_llm and `[{question, perspectives, ctxs}]` of BERDS, or one such object per
//! line. The caller receives the passages' texts; the run does not keep them.

use std::borrow::Cow;
use std::io::BufRead;

use serde::Deserialize;
use serde::de::{Deserializer, Error};
use serde_json::value::RawValue;

use super::run::{RankedPassage, Run, RunBuilder, RunOrder, finite, folded};
use super::{Problems, TrecError, quoted};

/// A passage in a run file.
#[derive(Clone, Copy, Debug)]
pub struct RunPassage<'a> {
    /// The number of its line, from 1.
    pub line: usize,
    /// Its id, or the [`text_id`] of its text.
    pub id: &'a str,
    /// Its title; may be empty.
    pub title: &'a str,
    /// Its text.
    pub text: &'a str,
}

/// Makes an id for a passage that has none: a hash of its text, ignoring case and spacing.
pub fn text_id(text: &str) -> String {
    format!("{TEXT}{}", &blake3::hash(folded(text).as_bytes()).to_hex()[..32])
}

/// Whether an id was made by [`text_id`].
pub fn is_text_id(id: &str) -> bool {
    id.strip_prefix(TEXT).is_some_and(|hash| hash.len() == 32 && hash.bytes().all(|b| b.is_ascii_hexdigit()))
}

const TEXT: &str = "text-";

/// Reads rank_llm or BERDS results; the question's id is taken from the query, the object, or its hits.
///
/// # Errors
/// JSON that does not parse, objects without the fields above, hits of several questions in one object,
/// and a passage listed twice for a question. Lines are those of the JSON text.
pub fn read_rank_llm(file: &str, reader: impl BufRead, order: RunOrder) -> Result<Run, TrecError> {
    read_json_run(file, reader, order, usize::MAX, &mut |_| {})
}

/// [`read_rank_llm`], but keeps only each question's first `depth` passages, and calls `each` with every text.
///
/// # Errors
/// As for [`read_rank_llm`].
pub fn read_json_run(
    file: &str,
    mut reader: impl BufRead,
    order: RunOrder,
    depth: usize,
    each: &mut dyn FnMut(RunPassage<'_>),
) -> Result<Run, TrecError> {
    let mut text = String::new();
    reader.read_to_string(&mut text).map_err(|source| TrecError::Io { file: file.to_owned(), source })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let mut reading = Reading {
        text: Located::new(text),
        problems: Problems::of(file),
        building: RunBuilder::new(order, depth),
        each,
    };
    for question in reading.objects(text) {
        reading.question(question);
    }
    let run = reading.building.finish();
    reading.problems.finish(run)
}

struct Reading<'a> {
    text: Located<'a>,
    problems: Problems,
    building: RunBuilder,
    each: &'a mut dyn FnMut(RunPassage<'_>),
}

impl<'a> Reading<'a> {
    /// Splits the text into questions without parsing them, so that one bad object does not hide the next.
    fn objects(&mut self, text: &'a str) -> Vec<&'a RawValue> {
        let read = if text.trim_start().starts_with('[') {
            serde_json::from_str(text)
        } else {
            serde_json::Deserializer::from_str(text).into_iter().collect()
        };
        read.unwrap_or_else(|error| {
            self.problems.report(
                error.line().max(1),
                "JSON, `[{query, candidates}]`, `[{question, ctxs}]` or one object a line",
                error.to_string(),
            );
            Vec::new()
        })
    }

    fn question(&mut self, raw: &'a RawValue) {
        let line = self.text.line_of(raw);
        let Some(question) = self.read::<Question<'a>>(raw, "`{query, candidates}` or `{question, ctxs}`")
        else {
            return;
        };
        let (text, qid) = match question.query {
            Query::Text(text) => (text, None),
            Query::Full { text, qid } => (text, qid),
        };
        let mut id = qid.or(question.qid).as_ref().map(Id::text);
        if question.berds && id.is_none() {
            // BERDS identifies questions by their words.
            id = Some(text.clone());
        }
        for raw in question.hits {
            let line = self.text.line_of(raw);
            let Some(hit) = self.read::<Hit<'a>>(raw, "a hit `{docid, score}`") else {
                continue;
            };
            if let Some(own) = hit.qid.as_ref().map(Id::text) {
                let id = id.get_or_insert_with(|| own.clone());
                if *id != own {
                    let expected = format!("hits of question {} only", quoted(id));
                    self.problems.report(line, expected, quoted(&own));
                    continue;
                }
            }
            let Some(id) = &id else {
                self.problems.report(line, "a `qid` in the query or in the hit", "none");
                return;
            };
            let place = self.building.place_of(id);
            let (title, text) = hit.texts();
            let passage = match (hit.docid.as_ref().map(Id::text), text) {
                (Some(id), _) => id,
                (None, Some(text)) => text_id(text),
                (None, None) => {
                    self.problems.report(line, "a hit `{docid, score}`", "neither `docid` nor a text");
                    continue;
                }
            };
            if let Some(text) = text {
                self.building.has_texts();
                (self.each)(RunPassage { line, id: &passage, title, text });
            }
            let passage = RankedPassage { line, rank: hit.rank, id: passage, score: hit.score.0 };
            self.building.add(&mut self.problems, place, passage);
        }
        match id {
            Some(id) => {
                // A question without hits is added too: its list is empty.
                let place = self.building.place_of(&id);
                self.building.describe(place, &text, question.perspectives, question.supports);
            }
            None => self.problems.report(line, "a `qid` in the query or in a hit", "none"),
        }
    }

    fn read<T: Deserialize<'a>>(&mut self, raw: &'a RawValue, expected: &str) -> Option<T> {
        serde_json::from_str(raw.get())
            .map_err(|error| {
                let line = self.text.line_of(raw);
                // serde_json counts lines from the start of this piece, so leave its line out.
                let found = error.to_string();
                let found = found.split(" at line ").next().unwrap_or(&found).to_owned();
                self.problems.report(line, expected, found);
            })
            .ok()
    }
}

/// A text that can find the line of a piece borrowed from it.
struct Located<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Located<'a> {
    fn new(text: &'a str) -> Self {
        let breaks = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n');
        Self { text, starts: breaks.map(|(place, _)| place + 1).collect() }
    }

    fn line_of(&self, piece: &RawValue) -> usize {
        let offset = (piece.get().as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize);
        self.starts.partition_point(|&start| start <= offset) + 1
    }
}

/// An id, which some files write as a number.
#[derive(Deserialize)]
#[serde(untagged, expecting = "an id (a string or a whole number)")]
enum Id {
    Text(String),
    Number(i64),
}

impl Id {
    fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Number(number) => number.to_string(),
        }
    }
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "a query (a string, or {text, qid})")]
enum Query {
    Text(String),
    Full { text: String, qid: Option<Id> },
}

/// A question with its list.
#[derive(Deserialize)]
#[serde(try_from = "Written<'a>", bound(deserialize = "'de: 'a"))]
struct Question<'a> {
    query: Query,
    qid: Option<Id>,
    hits: Vec<&'a RawValue>,
    perspectives: Vec<String>,
    supports: Option<usize>,
    /// Whether it has the field names of BERDS.
    berds: bool,
}

#[derive(Deserialize)]
struct Written<'a> {
    query: Option<Query>,
    question: Option<String>,
    #[serde(alias = "id")]
    qid: Option<Id>,
    #[serde(borrow, alias = "candidates", alias = "ctxs")]
    hits: Vec<&'a RawValue>,
    #[serde(default)]
    perspectives: Vec<String>,
    supports: Option<usize>,
}

impl<'a> TryFrom<Written<'a>> for Question<'a> {
    type Error = &'static str;

    fn try_from(written: Written<'a>) -> Result<Self, Self::Error> {
        let Written { query, question, qid, hits, perspectives, supports } = written;
        let berds = query.is_none();
        let query =
            query.or_else(|| question.map(Query::Text)).ok_or("missing field `query` or `question`")?;
        Ok(Question { query, qid, hits, perspectives, supports, berds })
    }
}

/// A passage of a list.
#[derive(Deserialize)]
struct Hit<'a> {
    qid: Option<Id>,
    #[serde(alias = "id")]
    docid: Option<Id>,
    rank: Option<i64>,
    score: Score,
    #[serde(borrow)]
    title: Option<Cow<'a, str>>,
    #[serde(borrow, alias = "content", alias = "contents")]
    text: Option<Cow<'a, str>>,
    #[serde(borrow)]
    doc: Option<Doc<'a>>,
}

/// A score, which some files write as a string.
struct Score(f64);

impl<'de> Deserialize<'de> for Score {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "a score (a number)")]
        enum Either {
            Number(f64),
            Text(String),
        }
        match Either::deserialize(deserializer)? {
            Either::Number(score) => Ok(Score(score)),
            Either::Text(text) => finite(&text).map(Score).ok_or_else(|| D::Error::custom("not a score")),
        }
    }
}

/// The passage in newer files of rank_llm, with the fields of its index.
#[derive(Deserialize)]
#[serde(untagged)]
enum Doc<'a> {
    Fields {
        #[serde(borrow)]
        title: Option<Cow<'a, str>>,
        #[serde(borrow, alias = "segment", alias = "contents", alias = "content", alias = "passage")]
        text: Option<Cow<'a, str>>,
    },
    Other(serde::de::IgnoredAny),
}

impl Hit<'_> {
    /// Title and text.
    fn texts(&self) -> (&str, Option<&str>) {
        let (title, text) = match &self.doc {
            Some(Doc::Fields { title, text }) => (title.as_deref(), text.as_deref()),
            _ => (None, None),
        };
        let title = self.title.as_deref().or(title).unwrap_or_default();
        (title, self.text.as_deref().or(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Run, TrecError> {
        read_rank_llm("r.json", text.as_bytes(), RunOrder::AsGiven)
    }

    fn message(text: &str) -> String {
        read(text).unwrap_err().to_string()
    }

    #[test]
    fn the_older_form_has_the_question_id_in_its_hits() {
        let run = read(
            r#"[{"query": "who", "hits": [
            {"content": "t", "qid": 7, "docid": "a", "rank": 1, "score": 2},
            {"content": "t", "qid": "7", "docid": 12, "rank": 2, "score": 1.5}]}]"#,
        )
        .unwrap();
        let question = run.question("7").unwrap();
        assert_eq!(question.ids().collect::<Vec<_>>(), ["a", "12"]);
        assert_eq!(question.text.as_deref(), Some("who"));
    }

    #[test]
    fn the_newer_form_has_it_in_the_query_and_may_stand_one_a_line() {
        let line = r#"{"query":{"text":"who","qid":"Q"},"candidates":[{"docid":"a","score":1.0,"doc":{"segment":"t"}}]}"#;
        let run = read(&format!("{line}\n{}\n", line.replace("\"Q\"", "8"))).unwrap();
        assert_eq!(run.questions().len(), 2);
        assert_eq!(run.question("8").unwrap().passages[0].score, 1.0);
    }

    #[test]
    fn a_question_that_found_nothing_is_still_there() {
        let run = read(r#"[{"query":{"text":"who","qid":"q"},"candidates":[]}]"#).unwrap();
        assert!(run.question("q").unwrap().passages.is_empty());
    }

    #[test]
    fn berds_results_are_known_by_their_words_and_passages_without_an_id_by_their_text() {
        let text = r#"{"question":"Who  pays?","perspectives":["a","b"],"ctxs":[{"text":"It is  Us.","title":"t","score":"1.5"},{"id":"d","text":"x","score":1,"gpt-preds":[true,false]}]}"#;
        let mut carried = Vec::new();
        let run = read_json_run("r", text.as_bytes(), RunOrder::AsGiven, 1, &mut |passage| {
            carried.push((passage.id.to_owned(), passage.title.to_owned()));
        })
        .unwrap();
        let place = run.place(Some("7"), " who pays?").unwrap();
        let question = &run.questions()[place];
        assert_eq!((question.perspectives.len(), question.passages.len(), run.texts), (2, 1, true));
        assert_eq!(question.passages[0].id, text_id("it is us."));
        assert!(is_text_id(&carried[0].0) && !is_text_id("text-1"));
        assert_eq!(carried[1], ("d".into(), String::new()));
        assert!(message(r#"[{"question":"w","ctxs":[{"score":1}]}]"#).contains("neither `docid` nor a text"));
    }

    #[test]
    fn order_can_be_trec_evals() {
        let text =
            r#"[{"query":{"text":"w","qid":"q"},"hits":[{"docid":"a","score":1},{"docid":"b","score":1}]}]"#;
        let run = read_rank_llm("r.json", text.as_bytes(), RunOrder::TrecEval).unwrap();
        assert_eq!(run.questions()[0].ids().collect::<Vec<_>>(), ["b", "a"]);
    }

    #[test]
    fn each_bad_object_is_reported_with_the_line_it_starts_on() {
        let text = "[\n{\"query\": 5, \"hits\": []},\n{\"query\": \"w\", \"hits\": [\n\
                {\"qid\": 1, \"docid\": \"a\", \"score\": 1},\n{\"qid\": 1, \"score\": 1},\n\
                {\"qid\": 2, \"docid\": \"b\", \"score\": 1},\n{\"qid\": 1, \"docid\": \"a\", \"score\": 1}]},\n\
                {\"query\": \"w\", \"hits\": []}]";
        let message = message(text);
        let lines: Vec<&str> = message.lines().collect();
        assert!(
            lines[0].starts_with("r.json:2: expected `{query, candidates}` or `{question, ctxs}`, found ")
        );
        assert_eq!(
            lines[1..],
            [
                "r.json:5: expected a hit `{docid, score}`, found neither `docid` nor a text",
                "r.json:6: expected hits of question `1` only, found `2`",
                "r.json:7: expected one line for each passage of question `1`, found `a` again (first on line 4)",
                "r.json:8: expected a `qid` in the query or in a hit, found none",
            ]
        );
    }

    #[test]
    fn json_that_breaks_off_says_where() {
        let message = message("[{\"query\": \"w\",\n \"hits\": [");
        assert!(message.starts_with("r.json:2: expected JSON"), "{message}");
        assert!(read("[]").unwrap().questions().is_empty());
    }
}
