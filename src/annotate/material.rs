//! The questions and passages that labels are about, and a detector's probabilities for them.
//!
//! Matches the rows of an imported file with questions, statements and passages, by id or else by text. Must not depend on any file
//! format.

use std::cell::OnceCell;
use std::collections::HashMap;

use super::entry::{Decision, text_hash};
use crate::corpus::{Corpus, Passage, PassageIx};
use crate::detect;
use crate::detect::decision::Heads;
use crate::question::Question;

/// The columns of a row that identify its label.
#[derive(Clone, Copy, Debug, Default)]
pub struct Row<'a> {
    /// The question's text or id.
    pub question: Option<&'a str>,
    /// The passage's id.
    pub passage: Option<&'a str>,
    /// The hash of the passage's title and text. A row with question, passage and hash is accepted without a lookup.
    pub hash: Option<&'a str>,
    /// The passage's title, if the row has one.
    pub title: Option<&'a str>,
    /// The passage's text, if the row has it.
    pub document: Option<&'a str>,
    /// The statement, word for word.
    pub perspective: &'a str,
}

/// The question, passage and statement of a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The question, word for word.
    pub question: String,
    /// The passage's id.
    pub passage: String,
    /// The hash of its title and text.
    pub text: String,
    /// The statement, word for word.
    pub perspective: String,
}

impl Place {
    /// A decision without evidence, note or flag.
    pub fn decided(self, by: &str, supports: bool, at: u64) -> Decision {
        let Place { question, passage, text, perspective } = self;
        let by = by.to_owned();
        Decision {
            by,
            question,
            passage,
            text,
            perspective,
            supports,
            evidence: None,
            note: None,
            flagged: false,
            at,
            took: None,
            seen: None,
        }
    }
}

/// Why the label of a row is not imported.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RowError {
    /// The question set has no such question.
    #[error("no question of the set is `{0}`")]
    Question(String),
    /// The row names no question, and none has its statement.
    #[error("no question of the set has the statement `{0}`")]
    Statement(String),
    /// The row names no question, and several have its statement.
    #[error("several questions have the statement `{0}`")]
    Ambiguous(String),
    /// The row's question has other statements.
    #[error("`{statement}` is not a statement of `{question}`")]
    OtherStatement {
        /// The statement of the row.
        statement: String,
        /// The text of its question.
        question: String,
    },
    /// The corpus has no such passage; its id in backticks, or "its text".
    #[error("no passage of the corpus is {0}")]
    Passage(String),
    /// The passage with the row's id has another text, and none has the row's.
    #[error("the passage `{0}` of the corpus has another text, and a label belongs to its text")]
    OtherText(String),
    /// Neither the row nor the caller names an annotator.
    #[error("the file does not say who labelled this; name the annotator with --by")]
    Annotator,
    /// The row's question has only this many statements.
    #[error("it has only {0} statements")]
    NoPerspective(usize),
    /// The label is not one of the two words.
    #[error("the label `{found}` is neither `{yes}` nor `{no}`")]
    Label {
        /// What the row has.
        found: String,
        /// The word for a passage that supports the statement.
        yes: &'static str,
        /// The word for one that does not.
        no: &'static str,
    },
    /// A field of the row cannot be read.
    #[error("{0}")]
    Field(&'static str),
}

impl From<&'static str> for RowError {
    fn from(reason: &'static str) -> Self {
        RowError::Field(reason)
    }
}

/// A question set and a corpus.
pub struct Material<'a> {
    /// The questions.
    pub questions: &'a [Question],
    corpus: &'a Corpus,
    by_text: OnceCell<HashMap<[u8; 32], Vec<PassageIx>>>,
    by_hash: OnceCell<HashMap<String, PassageIx>>,
}

impl<'a> Material<'a> {
    /// A question set and a corpus to match rows with.
    pub fn new(questions: &'a [Question], corpus: &'a Corpus) -> Self {
        Material { questions, corpus, by_text: OnceCell::new(), by_hash: OnceCell::new() }
    }

    /// The question with this text or id.
    pub fn question(&self, name: &str) -> Option<&'a Question> {
        let by = |is: fn(&Question) -> &str| self.questions.iter().find(|question| is(question) == name);
        by(|question| &question.text).or_else(|| by(|question| &question.id))
    }

    /// The passage with a decision's text, under the same id or another. The first lookup of another id reads the whole corpus.
    pub fn passage(&self, decision: &Decision) -> Option<Passage> {
        let same = |passage: &Passage| text_hash(passage) == decision.text;
        let named = self.corpus.find(&decision.passage).map(|ix| self.corpus.passage(ix));
        if let Some(passage) = named.filter(same) {
            return Some(passage);
        }
        let hashed = |ix| (text_hash(&self.corpus.passage(ix)), ix);
        let by_hash = self.by_hash.get_or_init(|| self.corpus.places().map(hashed).collect());
        by_hash.get(&decision.text).map(|ix| self.corpus.passage(*ix))
    }

    /// Finds the question, passage and statement of a row.
    ///
    /// # Errors
    /// The question, statement or passage of the row is unknown.
    pub fn place(&self, row: &Row<'_>) -> Result<Place, RowError> {
        if let (Some(question), Some(passage), Some(hash)) = (row.question, row.passage, row.hash) {
            return Ok(Place {
                question: question.to_owned(),
                passage: passage.to_owned(),
                text: hash.to_owned(),
                perspective: row.perspective.to_owned(),
            });
        }
        let question = self.question_of(row)?;
        if !question.perspectives.iter().any(|statement| statement == row.perspective) {
            return Err(RowError::OtherStatement {
                statement: row.perspective.into(),
                question: question.text.clone(),
            });
        }
        let named = row.passage.and_then(|id| self.corpus.find(id));
        let text = row.document.filter(|text| !text.trim().is_empty());
        let same = |ix: &PassageIx| text.is_none_or(|text| self.has_text(*ix, text));
        let found = named.filter(same).or_else(|| self.of_text(row.title, text?));
        let Some(found) = found else {
            let name = row.passage.map_or_else(|| "its text".to_owned(), |id| format!("`{id}`"));
            return Err(match (named, row.passage) {
                (Some(_), Some(id)) => RowError::OtherText(id.into()),
                _ => RowError::Passage(name),
            });
        };
        let passage = self.corpus.passage(found);
        Ok(Place {
            question: question.text.clone(),
            text: text_hash(&passage),
            passage: passage.id,
            perspective: row.perspective.to_owned(),
        })
    }

    fn question_of(&self, row: &Row<'_>) -> Result<&'a Question, RowError> {
        if let Some(name) = row.question {
            return self.question(name).ok_or_else(|| RowError::Question(name.into()));
        }
        let mut with =
            self.questions.iter().filter(|q| q.perspectives.iter().any(|one| one == row.perspective));
        match (with.next(), with.next()) {
            (Some(question), None) => Ok(question),
            (Some(_), Some(_)) => Err(RowError::Ambiguous(row.perspective.into())),
            (None, _) => Err(RowError::Statement(row.perspective.into())),
        }
    }

    /// Whether a row's text is that of a passage, perhaps with its title before it.
    fn has_text(&self, ix: PassageIx, text: &str) -> bool {
        let passage = self.corpus.passage(ix);
        [&passage.text, &passage.contents()].into_iter().any(|own| bare(own) == bare(text))
    }

    /// The passage with this text; if there are several, the one with this title. The first call reads the whole corpus.
    fn of_text(&self, title: Option<&str>, text: &str) -> Option<PassageIx> {
        let by_text = self.by_text.get_or_init(|| {
            let mut all: HashMap<_, Vec<_>> = HashMap::new();
            for ix in self.corpus.places() {
                all.entry(bare(&self.corpus.passage(ix).text)).or_default().push(ix);
            }
            all
        });
        let found = by_text.get(&bare(text))?;
        let titled =
            found.iter().find(|ix| title.is_some_and(|title| self.corpus.passage(**ix).title == title));
        titled.or_else(|| found.first()).copied()
    }
}

/// The hash of a text, without regard to white space.
fn bare(text: &str) -> [u8; 32] {
    let mut hash = blake3::Hasher::new();
    for word in text.split_whitespace() {
        hash.update(word.as_bytes()).update(b" ");
    }
    *hash.finalize().as_bytes()
}

/// A detector's probabilities.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Model {
    /// The detector's key: its name, and a hash of its weights.
    pub detector: String,
    /// The lowest probability at which a verdict is yes.
    pub threshold: f32,
    /// The probabilities, by [`text_hash`] of the passage and statement.
    pub p: HashMap<(String, String), f32>,
    /// The verdicts of decisions on both statements of a question, by [`text_hash`] of the passage and statement: whether the statement
    /// is supported (`None` if that is unclear), and the probability.
    pub joint: HashMap<(String, String), (Option<bool>, f32)>,
    /// The decisions, each with [`text_hash`] of the passage and both statements.
    pub decisions: Vec<(String, [String; 2], detect::Decision)>,
    /// The parameters of the decisions; `None` for verdicts of other programs.
    pub heads: Option<Heads>,
}

impl Model {
    /// The detector's verdict on the passage and statement of a decision, and its probability. The verdict is `None` if it is unclear
    /// which side the passage takes. The result is `None` if the detector did not run or failed.
    pub fn says(&self, decision: &Decision) -> Option<(Option<bool>, f32)> {
        let joint = self.joint.get(&(decision.text.clone(), decision.perspective.clone()));
        joint.copied().or_else(|| self.p(decision).map(|p| (Some(p >= self.threshold), p)))
    }

    /// The detector's probability for the passage and this single statement, if there is one.
    pub fn p(&self, decision: &Decision) -> Option<f32> {
        self.p.get(&(decision.text.clone(), decision.perspective.clone())).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::sample;
    use crate::question::set::builtin;

    #[test]
    fn a_row_without_id_is_found_by_its_text_and_one_without_question_by_its_statement() {
        let (questions, corpus) = (builtin(sample::QUESTIONS), sample::corpus());
        let material = Material::new(&questions, &corpus);
        let first = corpus.passage(PassageIx(7));
        let document = first.text.replace(' ', "  ");
        let row = Row { document: Some(&document), perspective: "Zoos should be banned.", ..Row::default() };
        let place = material.place(&row).unwrap();
        assert_eq!((place.passage, place.question.as_str()), (first.id.clone(), "Should zoos be banned?"));
        assert_eq!(place.text, text_hash(&first));
        // The text decides, also beside the id of another passage.
        let other = Row { passage: Some("zoos-01"), ..row };
        assert_eq!(material.place(&other).unwrap().passage, first.id);
    }

    #[test]
    fn an_unknown_row_is_reported_and_never_guessed() {
        let (questions, corpus) = (builtin(sample::QUESTIONS), sample::corpus());
        let material = Material::new(&questions, &corpus);
        let good = Row {
            question: Some("zoos"),
            passage: Some("zoos-01"),
            perspective: "Zoos should be banned.",
            ..Row::default()
        };
        assert!(
            material.place(&good).is_ok() && material.place(&Row { document: Some(" "), ..good }).is_ok()
        );
        for (row, expected) in [
            (Row { question: Some("zoo"), ..good }, "no question of the set is `zoo`"),
            (Row { perspective: "Zoos.", ..good }, "is not a statement of `Should zoos be banned?`"),
            (Row { question: None, perspective: "Zoos.", ..good }, "no question of the set has"),
            (Row { passage: Some("zoos-99"), ..good }, "no passage of the corpus is `zoos-99`"),
            (Row { passage: None, document: Some("x"), ..good }, "no passage of the corpus is its text"),
            (Row { document: Some("x"), ..good }, "the passage `zoos-01` of the corpus has another text"),
        ] {
            assert!(material.place(&row).unwrap_err().to_string().contains(expected), "{expected}");
        }
    }

    #[test]
    fn a_renamed_passage_is_found_by_its_text_and_a_changed_one_is_not() {
        let (questions, corpus) = (builtin(sample::QUESTIONS), sample::corpus());
        let material = Material::new(&questions, &corpus);
        let row = Row {
            question: Some("zoos"),
            passage: Some("zoos-01"),
            perspective: "Zoos should be banned.",
            ..Row::default()
        };
        let mut decision = material.place(&row).unwrap().decided("anna", true, 0);
        decision.passage = "another".into();
        assert_eq!(material.passage(&decision).unwrap().id, "zoos-01");
        decision.text = "of a changed text".into();
        assert_eq!(material.passage(&decision), None);
    }
}
