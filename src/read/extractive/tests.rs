//! The vote with passages whose texts are written here, and the whole reader on a graph of a few words (`tests/fixtures/readers`).

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::read::incremental::{each_k, reordered};
use crate::read::testing::contexts;

/// Takes `Paris .6, Rome .3` at its word, and counts how often it is asked.
struct Written(Arc<AtomicUsize>);

impl Extract for Written {
    fn read(&self, _: &str, passage: &Passage, _: &Stop) -> Result<Vec<Said>, ReadError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        let said = |part: &str| {
            let (wording, p) = part.rsplit_once(' ').ok_or_else(|| ReadError::Model("not written".into()))?;
            let p = p.parse().map_err(|_| ReadError::Model("not written".into()))?;
            let normalised = crate::read::answer::normalised(wording);
            Ok(Said { normalised, p, wording: wording.into(), likeliest: p })
        };
        passage.text.split(", ").filter(|part| !part.is_empty()).map(said).collect()
    }
}

fn written() -> (Extractive, Arc<AtomicUsize>) {
    let asked = Arc::<AtomicUsize>::default();
    let model = Box::new(Written(Arc::clone(&asked)));
    (Extractive { name: "written".into(), key: None, model, kept: Kept::default() }, asked)
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
    let told = reordered(&reader, "q", &passages, (50, 7), &Stop::never()).unwrap();
    assert!(told.same == 50 && !reader.order_sensitive() && !reader.recorded());
    assert_eq!(answer(&reader, &["b .5", "a .5"]), "a");
}

#[test]
fn without_a_passage_that_says_something_there_is_no_answer() {
    let (reader, _) = written();
    assert_eq!(answer(&reader, &[]), "");
    assert_eq!(answer(&reader, &["", ""]), "");
    let asked = |question: &str| reader.answer(question, &contexts(&["a .5"]), &Stop::never());
    assert_eq!(asked(" "), Err(ReadError::NoQuestion));
}

#[test]
fn a_passage_is_read_once_for_a_question_and_failures_are_not_kept() {
    let (reader, asked) = written();
    let passages = contexts(&["a .1", "b .2", "c .3", "d .4"]);
    let count = || asked.load(Ordering::Relaxed);
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
    let (reader, asked) = written();
    let stop = Stop::when_past(&Arc::new(1.into()), 0);
    assert_eq!(reader.answer("q", &contexts(&["a .1"]), &stop), Err(ReadError::Stopped(Stopped)));
    assert_eq!(asked.load(Ordering::Relaxed), 0);
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
    let told = Extractive::load(folder.path()).err().expect("it is refused").to_string();
    for word in words {
        assert!(told.contains(word), "no `{word}` in {told}");
    }
}

fn said(reader: &Extractive, title: &str, text: &str) -> Arc<Vec<Said>> {
    let passage = Passage { title: title.into(), text: text.into(), ..Passage::default() };
    let read = || reader.model.read("Where is the tour?", &passage, &Stop::never());
    reader.kept.get(title, &passage, read).unwrap()
}

#[test]
fn a_word_has_the_probability_that_the_graph_gives_it_and_the_words_of_the_passage() {
    let reader = words();
    assert_eq!(reader.name(), "words");
    let found = said(&reader, "", "It stands in PARIS, they say.");
    assert_eq!((found[0].normalised.as_str(), found[0].wording.as_str()), ("paris", "PARIS"));
    assert!((found[0].p - 0.9).abs() < 0.01, "{found:?}");
    assert!(found.len() <= 20);
    // A title is read too, and the question's own words are none of the passage's.
    assert_eq!(said(&reader, "Rome", "It is there.")[0].wording, "Rome");
    assert!(said(&reader, "", "It is there.").iter().all(|one| one.p < 0.01));
}

#[test]
fn the_temperature_flattens_what_the_graph_gives() {
    let reader = Extractive::load(folder("words/reader.onnx", |card| card["temperature"] = json!(2)).path());
    let found = said(&reader.unwrap(), "", "Paris");
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
    let told =
        reordered(&reader, "q", &contexts(&[lyon, rome, paris, lyon]), (10, 3), &Stop::never()).unwrap();
    assert_eq!(told.same, 10);
}

#[test]
fn a_broken_word_is_no_answer() {
    // Its last piece alone, and its first, score more than the word.
    let found = said(&words(), "", "It is Zyzzyva.");
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
    let found = said(&reader, "", &format!("Rome. {filler} Rome."));
    assert!((found[0].p - 0.6).abs() < 0.01, "{found:?}");
}

#[test]
fn what_is_past_the_beginning_of_an_endless_passage_is_told_as_cut() {
    let (reader, _) = written();
    let endless = format!("{}Rome .5", ", ".repeat(model::LONGEST / 2));
    let answer = reader.answer("Where?", &contexts(&["Paris .6", &endless]), &Stop::never());
    assert_eq!(answer.map(|answer| answer.cut), Ok(1));
    assert_eq!(reader.window(), "1 MB of a passage");
}

#[test]
fn a_question_of_any_length_is_cut_and_an_empty_passage_says_nothing() {
    let reader = words();
    let long = "Is it Rome or not? ".repeat(500);
    let read = |passages: &[&str]| reader.answer(&long, &contexts(passages), &Stop::never()).unwrap().text;
    assert_eq!(read(&["", "It is in Paris.", " "]), "Paris");
    assert_eq!(read(&["", "\u{0}\u{7}"]), "");
}

#[test]
fn logits_that_are_no_numbers_are_a_failure_and_no_answer() {
    let reader = Extractive::load(folder("not_a_number.onnx", |_| {}).path()).unwrap();
    assert_eq!(answer(&reader, &["Paris"]), "Paris");
    let told = reader.answer("Where?", &contexts(&["Paris", "nothing"]), &Stop::never()).unwrap_err();
    assert!(told.to_string().contains("logits that are no numbers"), "{told}");
}

#[test]
fn a_graph_of_another_kind_is_refused_when_it_is_opened() {
    refused(&folder("logits.onnx", |_| {}), &["reader.onnx: ", "spans", "expected a graph of `input_ids`"]);
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
    refused(&other, &["its SHA-256 is", "`000000", "bring the folder anew"]);
    for (field, value, told) in [
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
        refused(&folder(graph, |card| card[field] = value), &["reader.json: ", told]);
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
    std::fs::write(own.path().join(TOKENIZER), crate::assets::TOKENIZER).unwrap();
    // The carried file pads and cuts by itself, which must not count.
    let filler = "and so on ".repeat(300);
    assert_eq!(
        said(&Extractive::load(own.path()).unwrap(), "", &format!("{filler} Paris"))[0].wording,
        "Paris"
    );
    std::fs::write(own.path().join(TOKENIZER), "{}").unwrap();
    refused(&own, &["tokenizer.json: no tokenizer that can be read"]);
    let fixture = fixtures().with_file_name("encoders/mpnet/tokenizer.json");
    std::fs::copy(fixture, own.path().join(TOKENIZER)).unwrap();
    refused(&own, &["it knows no [CLS]"]);
}
