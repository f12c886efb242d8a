//! The reader: each passage is read once, and the passages vote for an answer.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use lru::LruCache;
use parking_lot::Mutex;

use super::Candidate;
use super::{Card, Extract, GRAPH, Model};
use crate::corpus::Passage;
use crate::input::InputError;
use crate::read::extractive;
use crate::read::reader::{Answer, Context, ReadError, Reader};
use crate::work::{Stop, Stopped};

/// The name of the reader in a folder, without reading its graph.
///
/// # Errors
/// The card is damaged, or the graph is missing.
pub fn name(folder: &Path) -> Result<String, InputError> {
    let card = Card::read(folder)?;
    let graph = folder.join(GRAPH);
    std::fs::metadata(&graph).map_err(|error| InputError::unreadable(&graph, &error))?;
    Ok(card.name)
}

/// An extractive reader.
pub struct Extractive {
    name: String,
    key: Option<String>,
    model: Box<dyn Extract>,
    memory: PassageMemory,
}

impl Extractive {
    /// Loads the reader of a folder.
    ///
    /// # Errors
    /// A file is missing or damaged, or two contradict each other.
    pub fn load(folder: &Path) -> Result<Self, InputError> {
        let card = Card::read(folder)?;
        let (name, key) = (card.name.clone(), Some(card.key()));
        Ok(Extractive {
            name,
            key,
            model: Box::new(Model::load(folder, card)?),
            memory: PassageMemory::default(),
        })
    }
}

impl Reader for Extractive {
    fn name(&self) -> &str {
        &self.name
    }

    fn order_sensitive(&self) -> bool {
        false
    }

    fn key(&self) -> Option<String> {
        self.key.clone()
    }

    fn window(&self) -> String {
        format!("{} MB of a passage", extractive::LONGEST >> 20)
    }

    /// Without passages there is nothing to copy, and the answer is empty.
    fn answer(&self, question: &str, passages: &[Context], stop: &Stop) -> Result<Answer, ReadError> {
        let question = question.trim();
        if question.is_empty() {
            return Err(ReadError::NoQuestion);
        }
        let mut found = Vec::with_capacity(passages.len());
        for Context { passage, .. } in passages {
            if stop.is_set() {
                return Err(Stopped.into());
            }
            found.push(self.memory.get(question, passage, || self.model.read(question, passage, stop))?);
        }
        let cut = passages.iter().filter(|context| extractive::is_cut(&context.passage)).count();
        Ok(Answer { text: winner(&found), recorded: false, cut })
    }
}

/// The answer whose probabilities sum highest over all passages; ties go to the alphabetically first.
fn winner(passages: &[Arc<Vec<Candidate>>]) -> String {
    let mut votes: BTreeMap<&str, Vec<&Candidate>> = BTreeMap::new();
    for candidate in passages.iter().flat_map(|candidates| candidates.iter()) {
        votes.entry(&candidate.normalised).or_default().push(candidate);
    }
    let mut best: Option<(f64, Vec<&Candidate>)> = None;
    for mut candidates in votes.into_values() {
        // Sorted, because a sum of floating-point numbers depends on its order.
        candidates.sort_by(|a, b| b.p.total_cmp(&a.p));
        let sum = candidates.iter().map(|one| one.p).sum();
        if best.as_ref().is_none_or(|(most, _)| sum > *most) {
            best = Some((sum, candidates));
        }
    }
    let wording = best
        .into_iter()
        .flat_map(|(_, candidates)| candidates)
        .max_by(|a, b| a.likeliest.total_cmp(&b.likeliest).then_with(|| b.wording.cmp(&a.wording)));
    wording.map_or_else(String::new, |candidate| candidate.wording.clone())
}

/// The number of passages remembered; a list has at most a hundred.
const REMEMBERED: NonZeroUsize = NonZeroUsize::new(4_096).unwrap();

/// The candidates of each passage for each question. The same list is read many times, and the model runs only once per passage.
/// Candidates depend only on question and passage, so remembering them changes no answer.
pub struct PassageMemory(Mutex<LruCache<[u8; 32], Arc<Vec<Candidate>>>>);

impl Default for PassageMemory {
    fn default() -> Self {
        PassageMemory(Mutex::new(LruCache::new(REMEMBERED)))
    }
}

impl PassageMemory {
    /// The remembered candidates of a passage, or those that `read` returns. Failures are not remembered.
    ///
    /// # Errors
    /// As `read`.
    pub fn get<E>(
        &self,
        question: &str,
        passage: &Passage,
        read: impl FnOnce() -> Result<Vec<Candidate>, E>,
    ) -> Result<Arc<Vec<Candidate>>, E> {
        let key = key(question, passage);
        if let Some(candidates) = self.0.lock().get(&key) {
            return Ok(Arc::clone(candidates));
        }
        let candidates = Arc::new(read()?);
        self.0.lock().put(key, Arc::clone(&candidates));
        Ok(candidates)
    }
}

fn key(question: &str, passage: &Passage) -> [u8; 32] {
    let mut hash = blake3::Hasher::new();
    for part in [question, &passage.title, &passage.text] {
        hash.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
    }
    *hash.finalize().as_bytes()
}

#[cfg(test)]
mod tests {

    use std::path::PathBuf;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use serde_json::{Value, json};
    use tempfile::TempDir;

    use super::*;
    use crate::read::extractive::{CARD, TOKENIZER};
    use crate::read::incremental::{each_k, reordered};
    use crate::read::reader::testing::contexts;

    /// Returns the candidates that a passage such as `Paris .6, Rome .3` lists, and counts the calls.
    struct Written(Arc<AtomicUsize>);

    impl Extract for Written {
        fn read(&self, _: &str, passage: &Passage, _: &Stop) -> Result<Vec<Candidate>, ReadError> {
            self.0.fetch_add(1, Ordering::Relaxed);
            let candidate = |part: &str| {
                let (wording, p) =
                    part.rsplit_once(' ').ok_or_else(|| ReadError::Model("not written".into()))?;
                let p = p.parse().map_err(|_| ReadError::Model("not written".into()))?;
                let normalised = crate::read::reader::normalised(wording);
                Ok(Candidate { normalised, p, wording: wording.into(), likeliest: p })
            };
            passage.text.split(", ").filter(|part| !part.is_empty()).map(candidate).collect()
        }
    }

    fn written() -> (Extractive, Arc<AtomicUsize>) {
        let reads = Arc::<AtomicUsize>::default();
        let model = Box::new(Written(Arc::clone(&reads)));
        (Extractive { name: "written".into(), key: None, model, memory: PassageMemory::default() }, reads)
    }

    fn answer(reader: &Extractive, passages: &[&str]) -> String {
        reader.answer("Where?", &contexts(passages), &Stop::never()).unwrap().text
    }

    #[test]
    fn adding_a_passage_can_turn_the_answer() {
        let (reader, _) = written();
        assert_eq!(answer(&reader, &["Rome .6, Paris .3"]), "Rome");
        assert_eq!(answer(&reader, &["Rome .6, Paris .3", "Paris .4"]), "Paris");
    }

    #[test]
    fn two_passages_that_say_the_same_outvote_one_that_is_surer() {
        let (reader, _) = written();
        assert_eq!(answer(&reader, &["Rome .7", "the Paris .4", "Paris. .39"]), "the Paris");
        assert_eq!(answer(&reader, &["Rome .7", "Paris. .4", "the Paris .4"]), "Paris.", "by the alphabet");
    }

    #[test]
    fn the_order_of_the_passages_does_not_matter_even_where_sums_are_equal() {
        let (reader, _) = written();
        let passages = contexts(&["b .1, c .3", "b .2", "c .1, a .1", "b .3, a .5", "c .2"]);
        let message = reordered(&reader, "q", &passages, (50, 7), &Stop::never()).unwrap();
        assert!(message.same == 50 && !reader.order_sensitive() && !reader.recorded());
        assert_eq!(answer(&reader, &["b .5", "a .5"]), "a");
    }

    #[test]
    fn without_a_passage_that_says_something_there_is_no_answer() {
        let (reader, _) = written();
        assert_eq!(answer(&reader, &[]), "");
        assert_eq!(answer(&reader, &["", ""]), "");
        let reads = |question: &str| reader.answer(question, &contexts(&["a .5"]), &Stop::never());
        assert_eq!(reads(" "), Err(ReadError::NoQuestion));
    }

    #[test]
    fn a_passage_is_read_once_for_a_question_and_failures_are_not_kept() {
        let (reader, reads) = written();
        let passages = contexts(&["a .1", "b .2", "c .3", "d .4"]);
        let count = || reads.load(Ordering::Relaxed);
        for _ in 0..2 {
            each_k(&reader, "q", &passages, 0, &Stop::never(), &mut |_, _| {}).unwrap();
            assert_eq!(count(), 4);
        }
        reader.answer("another", &passages, &Stop::never()).unwrap();
        assert_eq!(count(), 8);
        let broken = contexts(&["a", "b .2"]);
        for _ in 0..2 {
            assert!(reader.answer("q", &broken, &Stop::never()).is_err());
        }
        assert_eq!(count(), 10);
    }

    #[test]
    fn a_stop_ends_the_reading_before_the_next_passage() {
        let (reader, reads) = written();
        let stop = Stop::when_past(&Arc::new(1.into()), 0);
        assert_eq!(reader.answer("q", &contexts(&["a .1"]), &stop), Err(ReadError::Stopped(Stopped)));
        assert_eq!(reads.load(Ordering::Relaxed), 0);
    }

    fn fixtures() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/readers")
    }

    fn words() -> Extractive {
        Extractive::load(&fixtures().join("words")).unwrap_or_else(|error| panic!("{error}"))
    }

    /// A folder with this graph and its card, changed.
    fn folder(graph: &str, change: impl FnOnce(&mut Value)) -> TempDir {
        let folder = TempDir::new().unwrap();
        let bytes = std::fs::read(fixtures().join(graph)).unwrap();
        let hash = ring::digest::digest(&ring::digest::SHA256, &bytes);
        let hash: String = hash.as_ref().iter().map(|b| format!("{b:02X}")).collect();
        let mut card = json!({
            "name": "words", "max_tokens": 32, "question_tokens": 8, "answer_tokens": 8, "temperature": 1.0, "sha256": hash, "by": "test"
        });
        change(&mut card);
        std::fs::write(folder.path().join(GRAPH), bytes).unwrap();
        std::fs::write(folder.path().join(CARD), card.to_string()).unwrap();
        folder
    }

    #[track_caller]
    fn refused(folder: &TempDir, words: &[&str]) {
        let message = Extractive::load(folder.path()).err().expect("it is refused").to_string();
        for word in words {
            assert!(message.contains(word), "no `{word}` in {message}");
        }
    }

    fn candidates(reader: &Extractive, title: &str, text: &str) -> Arc<Vec<Candidate>> {
        let passage = Passage { title: title.into(), text: text.into(), ..Passage::default() };
        let read = || reader.model.read("Where is the tour?", &passage, &Stop::never());
        reader.memory.get(title, &passage, read).unwrap()
    }

    #[test]
    fn a_word_has_the_probability_that_the_graph_gives_it_and_the_words_of_the_passage() {
        let reader = words();
        assert_eq!(reader.name(), "words");
        let found = candidates(&reader, "", "It stands in PARIS, they say.");
        assert_eq!((found[0].normalised.as_str(), found[0].wording.as_str()), ("paris", "PARIS"));
        assert!((found[0].p - 0.9).abs() < 0.01, "{found:?}");
        assert!(found.len() <= 20);
        // A title is read too, and the question's own words are none of the passage's.
        assert_eq!(candidates(&reader, "Rome", "It is there.")[0].wording, "Rome");
        assert!(candidates(&reader, "", "It is there.").iter().all(|one| one.p < 0.01));
    }

    #[test]
    fn the_temperature_flattens_what_the_graph_gives() {
        let reader =
            Extractive::load(folder("words/reader.onnx", |card| card["temperature"] = json!(2)).path());
        let found = candidates(&reader.unwrap(), "", "Paris");
        assert!((found[0].p - 0.75).abs() < 0.01, "{found:?}");
    }

    #[test]
    fn passages_vote_through_the_whole_reader_in_any_order() {
        let reader = words();
        let [paris, rome, lyon] = ["It is in Paris.", "It is in Rome.", "In Lyon it is."];
        assert_eq!(answer(&reader, &[lyon]), "Lyon");
        assert_eq!(answer(&reader, &[lyon, rome]), "Rome");
        assert_eq!(answer(&reader, &[lyon, rome, "I saw it in Lyon"]), "Lyon");
        assert_eq!(answer(&reader, &[paris, lyon, rome]), "Paris");
        let message =
            reordered(&reader, "q", &contexts(&[lyon, rome, paris, lyon]), (10, 3), &Stop::never()).unwrap();
        assert_eq!(message.same, 10);
    }

    #[test]
    fn a_broken_word_is_no_answer() {
        // Its last piece alone, and its first, score more than the word.
        let found = candidates(&words(), "", "It is Zyzzyva.");
        assert_eq!(found[0].wording, "Zyzzyva");
        assert!((found[0].p - 0.6).abs() < 0.01, "{found:?}");
        assert!(found.iter().all(|one| one.normalised != "va" && one.normalised != "z"));
    }

    #[test]
    fn a_long_passage_is_read_to_its_end_and_letters_outside_ascii_keep_their_places() {
        let reader = words();
        let filler = "Où était la société naïve ? ".repeat(40);
        let context = |text: String| Context::list([Arc::new(Passage { text, ..Passage::default() })]);
        let read = |text: String| reader.answer("Where?", &context(text), &Stop::never()).unwrap();
        let answer = read(format!("{filler}À Paris — là. {filler}"));
        assert_eq!((answer.text.as_str(), answer.cut), ("Paris", 0));
        // The surest window counts: Rome twice, each in windows of its own, is Rome once.
        let found = candidates(&reader, "", &format!("Rome. {filler} Rome."));
        assert!((found[0].p - 0.6).abs() < 0.01, "{found:?}");
    }

    #[test]
    fn what_is_past_the_beginning_of_an_endless_passage_is_reported_as_cut() {
        let (reader, _) = written();
        let endless = format!("{}Rome .5", ", ".repeat(extractive::LONGEST / 2));
        let answer = reader.answer("Where?", &contexts(&["Paris .6", &endless]), &Stop::never());
        assert_eq!(answer.map(|answer| answer.cut), Ok(1));
        assert_eq!(reader.window(), "1 MB of a passage");
    }

    #[test]
    fn a_question_of_any_length_is_cut_and_an_empty_passage_says_nothing() {
        let reader = words();
        let long = "Is it Rome or not? ".repeat(500);
        let read =
            |passages: &[&str]| reader.answer(&long, &contexts(passages), &Stop::never()).unwrap().text;
        assert_eq!(read(&["", "It is in Paris.", " "]), "Paris");
        assert_eq!(read(&["", "\u{0}\u{7}"]), "");
    }

    #[test]
    fn logits_that_are_no_numbers_are_a_failure_and_no_answer() {
        let reader = Extractive::load(folder("not_a_number.onnx", |_| {}).path()).unwrap();
        assert_eq!(answer(&reader, &["Paris"]), "Paris");
        let message = reader.answer("Where?", &contexts(&["Paris", "nothing"]), &Stop::never()).unwrap_err();
        assert!(message.to_string().contains("logits contain NaN or infinity"), "{message}");
    }

    #[test]
    fn a_graph_of_another_kind_is_refused_when_it_is_opened() {
        refused(
            &folder("logits.onnx", |_| {}),
            &["reader.onnx: ", "spans", "expected a graph of `input_ids`"],
        );
        refused(&folder("one_input.onnx", |_| {}), &["attention_mask"]);
        refused(&folder("one_column.onnx", |_| {}), &["shape [1,", "[1, n, 2]"]);
        refused(&folder("one_bias.onnx", |_| {}), &["cannot be run here"]);
        refused(&folder("few_places.onnx", |_| {}), &["with 32 tokens, the `max_tokens` of reader.json"]);
        let fits = folder("few_places.onnx", |card| {
            card["max_tokens"] = json!(24);
            card["answer_tokens"] = json!(4);
        });
        assert!(Extractive::load(fits.path()).is_ok());
        refused(&folder("../../../Cargo.toml", |_| {}), &["reader.onnx: ", "expected a graph"]);
    }

    #[test]
    fn a_card_that_is_not_of_the_graph_or_cannot_be_is_refused() {
        let graph = "words/reader.onnx";
        let other = folder(graph, |card| card["sha256"] = json!("0".repeat(64)));
        refused(&other, &["its SHA-256 is", "`000000", "fetch the folder again"]);
        for (field, value, message) in [
            ("temperature", json!(0), "a `temperature` above 0"),
            ("temperature", Value::Null, "expected a JSON object with `name`"),
            ("name", json!(" "), "a `name`"),
            ("answer_tokens", json!(0), "at least 1"),
            ("question_tokens", json!(-1), "expected a JSON object"),
            ("max_tokens", json!(26), "`max_tokens` of at least"),
            ("question_tokens", json!(u64::MAX), "`max_tokens` of at least"),
            ("max_tokens", json!(4_097), "`max_tokens` of at most 4096"),
            ("answer_tokens", json!(257), "`answer_tokens` of at most 256"),
        ] {
            refused(&folder(graph, |card| card[field] = value), &["reader.json: ", message]);
        }
        let bare = folder(graph, |_| {});
        std::fs::write(bare.path().join(CARD), "{").unwrap();
        refused(&bare, &["reader.json: expected a JSON object"]);
        std::fs::remove_file(bare.path().join(GRAPH)).unwrap();
        std::fs::copy(fixtures().join("words").join(CARD), bare.path().join(CARD)).unwrap();
        refused(&bare, &["reader.onnx: no such file"]);
    }

    #[test]
    fn a_tokenizer_of_the_folder_is_taken_and_a_broken_one_refused() {
        let own = folder("words/reader.onnx", |_| {});
        std::fs::write(own.path().join(TOKENIZER), crate::assets::MINILM_TOKENIZER).unwrap();
        // This file turns padding and truncation on, which must have no effect.
        let filler = "and so on ".repeat(300);
        assert_eq!(
            candidates(&Extractive::load(own.path()).unwrap(), "", &format!("{filler} Paris"))[0].wording,
            "Paris"
        );
        std::fs::write(own.path().join(TOKENIZER), "{}").unwrap();
        refused(&own, &["tokenizer.json: not a readable tokenizer"]);
        let fixture = fixtures().with_file_name("encoders/mpnet/tokenizer.json");
        std::fs::copy(fixture, own.path().join(TOKENIZER)).unwrap();
        refused(&own, &["it has no [CLS]"]);
    }
}
