//! The questions and passages that labels are about, and what a row of somebody's file means among them.
//!
//! Owns the matching of rows to questions, statements and passages: by name where it is known, else by text. It must not know
//! any file format.

use std::cell::OnceCell;
use std::collections::HashMap;

use super::{Decision, text_hash};
use crate::corpus::{Corpus, Passage, PassageIx};
use crate::question::Question;

/// What a row says about the place of its label.
#[derive(Clone, Copy, Debug, Default)]
pub struct Row<'a> {
    /// The question's text or id.
    pub question: Option<&'a str>,
    /// The passage's id.
    pub passage: Option<&'a str>,
    /// The hash of the passage's title and text; a row that has all three names is taken at its word.
    pub hash: Option<&'a str>,
    /// The passage's title, where the row has one.
    pub title: Option<&'a str>,
    /// The passage's text, where the row has it.
    pub document: Option<&'a str>,
    /// The statement, word for word.
    pub perspective: &'a str,
}

/// Where a label belongs.
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
    /// The plain decision for this place.
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
        }
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
    /// What labels are matched with.
    pub fn new(questions: &'a [Question], corpus: &'a Corpus) -> Self {
        Material { questions, corpus, by_text: OnceCell::new(), by_hash: OnceCell::new() }
    }

    /// The question of that text or id.
    pub fn question(&self, name: &str) -> Option<&'a Question> {
        let by = |is: fn(&Question) -> &str| self.questions.iter().find(|question| is(question) == name);
        by(|question| &question.text).or_else(|| by(|question| &question.id))
    }

    /// The passage a decision is about: the one of its text, under its id or another. The first that is not found under its id
    /// reads the corpus.
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

    /// Where a row's label belongs.
    ///
    /// # Errors
    /// What is not known here, in words.
    pub fn place(&self, row: &Row<'_>) -> Result<Place, String> {
        if let (Some(question), Some(passage), Some(hash)) = (row.question, row.passage, row.hash) {
            return Ok(Place {
                question: question.to_owned(),
                passage: passage.to_owned(),
                text: hash.to_owned(),
                perspective: row.perspective.to_owned(),
            });
        }
        let question = self.asked(row)?;
        if !question.perspectives.iter().any(|statement| statement == row.perspective) {
            return Err(format!("`{}` is no statement of `{}`", row.perspective, question.text));
        }
        let named = row.passage.and_then(|id| self.corpus.find(id));
        let found = named.or_else(|| self.of_text(row.title, row.document?));
        let Some(found) = found else {
            let name = row.passage.map_or_else(|| "its text".to_owned(), |id| format!("`{id}`"));
            return Err(format!("no passage of the corpus is {name}"));
        };
        let passage = self.corpus.passage(found);
        Ok(Place {
            question: question.text.clone(),
            text: text_hash(&passage),
            passage: passage.id,
            perspective: row.perspective.to_owned(),
        })
    }

    fn asked(&self, row: &Row<'_>) -> Result<&'a Question, String> {
        if let Some(name) = row.question {
            return self.question(name).ok_or_else(|| format!("no question of the set is `{name}`"));
        }
        let mut with =
            self.questions.iter().filter(|q| q.perspectives.iter().any(|one| one == row.perspective));
        match (with.next(), with.next()) {
            (Some(question), None) => Ok(question),
            (Some(_), Some(_)) => Err(format!("several questions have the statement `{}`", row.perspective)),
            (None, _) => Err(format!("no question of the set has the statement `{}`", row.perspective)),
        }
    }

    /// The passage of that text; of several, the one of that title. The first call reads the corpus.
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

/// A text's hash, whatever white space it is set with.
fn bare(text: &str) -> [u8; 32] {
    let mut hash = blake3::Hasher::new();
    for word in text.split_whitespace() {
        hash.update(word.as_bytes()).update(b" ");
    }
    *hash.finalize().as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::sample;
    use crate::question::set::carried;

    #[test]
    fn a_row_without_id_is_found_by_its_text_and_one_without_question_by_its_statement() {
        let (questions, corpus) = (carried(sample::QUESTIONS), sample::corpus());
        let material = Material::new(&questions, &corpus);
        let first = corpus.passage(PassageIx(7));
        let document = first.text.replace(' ', "  ");
        let row = Row { document: Some(&document), perspective: "Zoos should be banned.", ..Row::default() };
        let place = material.place(&row).unwrap();
        assert_eq!((place.passage, place.question.as_str()), (first.id.clone(), "Should zoos be banned?"));
        assert_eq!(place.text, text_hash(&first));
    }

    #[test]
    fn what_is_not_known_is_told_and_never_guessed() {
        let (questions, corpus) = (carried(sample::QUESTIONS), sample::corpus());
        let material = Material::new(&questions, &corpus);
        let good = Row {
            question: Some("zoos"),
            passage: Some("zoos-01"),
            perspective: "Zoos should be banned.",
            ..Row::default()
        };
        assert!(material.place(&good).is_ok());
        for (row, told) in [
            (Row { question: Some("zoo"), ..good }, "no question of the set is `zoo`"),
            (Row { perspective: "Zoos.", ..good }, "is no statement of `Should zoos be banned?`"),
            (Row { question: None, perspective: "Zoos.", ..good }, "no question of the set has"),
            (Row { passage: Some("zoos-99"), ..good }, "no passage of the corpus is `zoos-99`"),
            (Row { passage: None, document: Some("x"), ..good }, "no passage of the corpus is its text"),
        ] {
            assert!(material.place(&row).unwrap_err().contains(told), "{told}");
        }
    }

    #[test]
    fn a_renamed_passage_is_found_by_its_text_and_a_changed_one_is_not() {
        let (questions, corpus) = (carried(sample::QUESTIONS), sample::corpus());
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
