//! Builds questions with their statements from other data sets: an argument and its counter-argument (ArguAna), answers to a question
//! (Kialo), and the options of a survey's question (OpinionQA). What the rules leave open goes to a language model or a person.

use std::collections::HashMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value};
use unicode_segmentation::UnicodeSegmentation;

use super::words::{Word, sentence, words};
use super::{By, Statements, lexicon as lex};
use super::{statements::is_sentence, statements::statements, wordings::ask};
use crate::input::{Expected, InputError, Lines, ending, excerpt, fields, lines};

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Material {
    /// Arguments with their counter-arguments.
    Pairs,
    /// Questions with answers.
    Answers,
    /// Questions with options.
    Options,
}

/// The material of one question.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Its line in the file.
    pub line: usize,
    /// Its id; the number of the line if the file has none.
    pub id: String,
    /// The question; empty for pairs.
    pub question: String,
    /// The answers or options; of a pair, the argument's claim.
    pub texts: Vec<String>,
    /// The text of the argument, which supports its claim.
    pub argument: Option<String>,
}

/// What became of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Made {
    /// A question with its statements.
    Whole(Statements),
    /// No rule decides: what a language model may be asked to turn into two statements, and the reason.
    Left {
        /// The text for the model.
        question: String,
        /// Why no rule applies.
        reason: String,
    },
    /// It is no question with opposite statements.
    Dropped(String),
}

/// A line of JSON, in the names of all three sources.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Object {
    #[serde(alias = "_id", alias = "key")]
    id: Value,
    #[serde(alias = "name")]
    question: String,
    title: String,
    text: String,
    claim: String,
    #[serde(alias = "point")]
    argument: String,
    #[serde(alias = "counterargument")]
    counter: String,
    #[serde(alias = "theses", alias = "perspectives", alias = "options", alias = "references")]
    answers: Vec<Value>,
}

/// Reads a file: JSON lines; survey questions also as CSV or TSV with a header.
///
/// # Errors
/// A line has not what the material needs, or the file has no row.
pub fn read(path: &Path, material: Material) -> Result<Vec<Row>, InputError> {
    let mut rows = Vec::new();
    let separator = match ending(path) {
        Some("csv") => Some(','),
        Some("tsv") => Some('\t'),
        _ => None,
    };
    match (material, separator) {
        (Material::Options, Some(separator)) => table(path, separator, &mut rows)?,
        (Material::Pairs, _) => pairs(path, &mut rows)?,
        _ => lines(path, |number, line| {
            let object = object(line)?;
            let question = if object.question.is_empty() { &object.title } else { &object.question };
            let text = |value: &Value| {
                Some(value.as_str().or_else(|| value.get("text")?.as_str())?.trim().to_owned())
            };
            let texts: Option<Vec<String>> = object.answers.iter().map(text).collect();
            let texts = texts.filter(|texts| !texts.is_empty() && !question.trim().is_empty());
            let Some(texts) = texts else {
                let list = if material == Material::Options { "options" } else { "answers" };
                return Err(Expected(format!("`question` and a list of texts in `{list}`")));
            };
            let id = id_of(&object.id).unwrap_or_else(|| number.to_string());
            rows.push(Row { line: number, id, question: question.trim().into(), texts, argument: None });
            Ok(())
        })?,
    }
    if rows.is_empty() {
        let advice = match material {
            Material::Pairs => "a pair is an argument and its counter-argument: x-point, x-counter",
            _ => "give it one question a line",
        };
        return Err(InputError::Empty { path: path.into(), what: "the file", advice });
    }
    Ok(rows)
}

fn object(line: &str) -> Result<Object, Expected> {
    let read = serde_json::from_str(line).and_then(|mut fields: Map<String, Value>| {
        fields.retain(|_, value| !value.is_null());
        serde_json::from_value(Value::Object(fields))
    });
    read.map_err(|error| Expected(format!("one JSON object a line ({error})")))
}

fn id_of(value: &Value) -> Option<String> {
    match value {
        Value::String(id) if !id.is_empty() => Some(id.clone()),
        Value::Number(id) => Some(id.to_string()),
        _ => None,
    }
}

/// Reads arguments and counter-arguments, on one line or on two.
fn pairs(path: &Path, rows: &mut Vec<Row>) -> Result<(), InputError> {
    // The place of a point's row, and whether its counter was seen.
    let mut halves: HashMap<String, (Option<Row>, bool)> = HashMap::new();
    let mut order = Vec::new();
    lines(path, |number, line| {
        let own = object(line)?;
        let id = id_of(&own.id);
        let row = |id: String, text: &str| {
            let texts = vec![claim(&own.claim, &own.title, text)];
            Row { line: number, id, question: String::new(), texts, argument: Some(text.trim().to_owned()) }
        };
        if !own.argument.is_empty() && !own.counter.is_empty() {
            let id = id.unwrap_or_else(|| number.to_string());
            order.push(id.clone());
            halves.insert(id.clone(), (Some(row(id, &own.argument)), true));
            return Ok(());
        }
        let (half, is_point) = id.as_deref().and_then(half).ok_or(
            "an `id` that ends with -point or -counter, or with a or b behind a number; or `argument` and `counter`",
        )?;
        if own.text.trim().is_empty() {
            return Err("a `text` that is not empty".into());
        }
        let pair = halves.entry(half.to_owned()).or_insert_with(|| {
            order.push(half.to_owned());
            (None, false)
        });
        if is_point {
            pair.0 = Some(row(half.to_owned(), &own.text));
        } else {
            pair.1 = true;
        }
        Ok(())
    })?;
    // An argument without a counter-argument is no pair.
    let mut whole = |id: &String| halves.remove(id).filter(|(_, countered)| *countered)?.0;
    rows.extend(order.iter().filter_map(&mut whole));
    Ok(())
}

/// The pair that an id belongs to, and whether it is the argument's.
fn half(id: &str) -> Option<(&str, bool)> {
    for (end, is_point) in [("-point", true), ("-counter", false)] {
        if let Some(pair) = id.strip_suffix(end) {
            return Some((pair, is_point));
        }
    }
    let (pair, is_point) = match id.strip_suffix('a') {
        Some(pair) => (pair, true),
        None => (id.strip_suffix('b')?, false),
    };
    pair.ends_with(|c: char| c.is_ascii_digit()).then_some((pair, is_point))
}

/// The claim of an argument: its own field, a title that is a sentence, or the first sentence of the text.
fn claim(claim: &str, title: &str, text: &str) -> String {
    let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let titled = title.trim_start().starts_with(char::is_uppercase) && is_sentence(title);
    let first =
        || before_run_in(text.unicode_sentences().find(|text| !text.trim().is_empty()).unwrap_or_default());
    plain(match (claim.trim().is_empty(), titled) {
        (false, _) => claim,
        (true, true) => title,
        (true, false) => first(),
    })
}

/// The heading before a sentence that follows without a stop, as in ArguAna's texts: `… on high speed rail The network is …`.
fn before_run_in(text: &str) -> &str {
    let (mut last, mut at) = ("", 0);
    for (place, word) in text.split_whitespace().enumerate() {
        at += text[at..].find(word).unwrap_or(0);
        let key = word.to_lowercase();
        let opens = lex::is_determiner(&key)
            || (lex::is_pronoun(&key) && key != "i")
            || lex::is_preposition(&key)
            || lex::is_subordinator(&key)
            || lex::is_auxiliary(&key)
            || lex::is_adverb(&key);
        let runs_in = word.starts_with(char::is_uppercase) && last.starts_with(char::is_lowercase);
        if place > 2 && opens && runs_in && last.ends_with(char::is_alphanumeric) {
            return text[..at].trim_end();
        }
        (last, at) = (word, at + word.len());
    }
    text
}

/// Reads a survey's questions from a table with the columns `question` and `references` or `options`, and perhaps `key` or `id`.
fn table(path: &Path, separator: char, rows: &mut Vec<Row>) -> Result<(), InputError> {
    let mut columns: Option<[Option<usize>; 3]> = None;
    let mut read = Lines::rows(path)?;
    while let Some(line) = read.next_line()? {
        let number = line.number;
        let row = fields(line.text, separator);
        let taken = row.and_then(|row| {
            let Some([question, options, id]) = columns else {
                let place = |names: &[&str]| row.iter().position(|field| names.contains(&field.trim()));
                let found = [
                    place(&["question"]),
                    place(&["references", "options", "option_mapping"]),
                    place(&["key", "id"]),
                ];
                if found[0].is_none() || found[1].is_none() {
                    return Err("a header with `question` and `references` or `options`".into());
                }
                columns = Some(found);
                return Ok(None);
            };
            let field =
                |place: Option<usize>| place.and_then(|place| row.get(place)).map(|field| field.trim());
            let (Some(question), Some(options)) =
                (field(question).filter(|text| !text.is_empty()), field(options))
            else {
                return Err("as many fields as the header has, and a question that is not empty".into());
            };
            let texts = listed(options);
            if texts.is_empty() {
                return Err("options as a list, ['Yes', 'No', 'Refused'], or with | between them".into());
            }
            let id = field(id).filter(|id| !id.is_empty()).map_or_else(|| number.to_string(), str::to_owned);
            Ok(Some(Row { line: number, id, question: question.into(), texts, argument: None }))
        });
        match taken {
            Ok(row) => rows.extend(row),
            Err(expected) => read.bad(expected),
        }
    }
    read.end()
}

/// The texts of a list as Python or JSON writes it, of a mapping's values, or of a text with `|` between them.
fn listed(text: &str) -> Vec<String> {
    if !text.starts_with(['[', '{']) {
        return text.split('|').map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned).collect();
    }
    let (mut found, mut open): (Vec<String>, Option<(char, String)>) = (Vec::new(), None);
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match &mut open {
            None if matches!(letter, '\'' | '"') => open = Some((letter, String::new())),
            None => {}
            Some((_, own)) if letter == '\\' => own.extend(letters.next()),
            Some((mark, own)) if letter == *mark => {
                found.push(own.trim().to_owned());
                open = None;
            }
            Some((_, own)) => own.push(letter),
        }
    }
    found.retain(|text| !text.is_empty());
    found
}

/// A claim of more words is not turned into a question by rule.
const LONGEST: usize = 25;

/// Makes a question with its statements of a row.
pub fn make(material: Material, row: &Row) -> Made {
    match material {
        Material::Pairs => of_pair(row.texts.first().map_or("", String::as_str)),
        Material::Answers => of_answers(&row.question, &row.texts),
        Material::Options => of_options(&row.question, &row.texts),
    }
}

fn whole(question: &str, perspectives: Vec<String>, supports: Option<usize>, by: By) -> Made {
    Made::Whole(Statements { question: question.to_owned(), perspectives, supports, by })
}

fn of_pair(claim: &str) -> Made {
    let count = claim.split_whitespace().count();
    if count > LONGEST {
        let reason = format!("its claim has {count} words, more than a question should have");
        return Made::Left { question: claim.to_owned(), reason };
    }
    let made = ask(claim).map(|question| statements(&question));
    match made.filter(|made| made.by == By::Rule) {
        Some(made) => Made::Whole(made),
        None => Made::Left {
            question: claim.to_owned(),
            reason: format!("no rule makes a question of {}", excerpt(claim)),
        },
    }
}

fn of_answers(question: &str, answers: &[String]) -> Made {
    let sides = statements(question).perspectives;
    let key = |text: &str| text.to_lowercase().chars().filter(|c| c.is_alphanumeric()).collect::<String>();
    let (mut said, mut first): (Vec<String>, Option<usize>) = (Vec::new(), None);
    for answer in answers {
        let Some((text, side)) = of_answer(question, answer, &sides) else {
            let reason = format!("no rule makes a statement of the answer {}", excerpt(answer));
            return match answers {
                [one, other] => {
                    Made::Left { question: format!("{question} “{one}” or “{other}”?"), reason }
                }
                _ => Made::Dropped(format!("{reason}; write it as a sentence")),
            };
        };
        if said.iter().any(|known| key(known) == key(&text)) {
            continue;
        }
        let side = side.or_else(|| sides.iter().position(|known| key(known) == key(&text)));
        // Of two answers, the one that does not oppose supports.
        first = first.or(side.map(|side| if side == 0 { said.len() } else { 1 - said.len().min(1) }));
        said.push(text);
    }
    match said.len() {
        0 | 1 => Made::Dropped("fewer than two different answers".into()),
        2 => whole(question, said, first, By::Rule),
        _ => whole(question, said, None, By::Rule),
    }
}

/// An answer as a statement, and the side that it takes if it says yes or no.
fn of_answer(question: &str, answer: &str, sides: &[String]) -> Option<(String, Option<usize>)> {
    let all = words(answer);
    let side = match all.first()?.key.as_str() {
        "yes" => Some(0),
        "no" if all.len() == 1 || all[0].ends_phrase() || all[0].after.contains('.') => Some(1),
        _ => None,
    };
    let own = if side.is_some() { &all[1..] } else { &all[..] };
    if own.is_empty() {
        return Some((sides.get(side?)?.clone(), side));
    }
    let text = sentence(own);
    if is_sentence(&text) {
        return Some((text, side));
    }
    // `What is the best form of government?` – `Democracy`
    let asked = words(question);
    let [wh, verb, article, ..] = &asked[..] else { return None };
    let copular = matches!(wh.key.as_str(), "what" | "who" | "which") && lex::is_be(&verb.key);
    let named =
        copular && matches!(article.key.as_str(), "the" | "a" | "an") && side.is_none() && own.len() < 9;
    let bare: Vec<Word> = own.iter().map(|word| Word { after: String::new(), ..word.clone() }).collect();
    named.then(|| (sentence(bare.iter().chain(&asked[1..])), None))
}

/// What respondents say who choose no side.
const NO_SIDE: &str = "refused|refusal|don't know|not sure|unsure|no answer|no opinion|neither|other|depends|about the same|no difference";
/// Words at the first end of a scale.
const FIRST: &str = "yes favor favour support agree approve good better right lot great likely satisfied true more increase acceptable \
    major important confident";
/// Words at the other end.
const SECOND: &str = "no not oppose disagree disapprove bad worse wrong none unlikely dissatisfied false less fewer decrease \
    unacceptable never nothing little unimportant";

/// The end of its scale at which an option stands.
fn end_of(option: &str) -> Option<usize> {
    let all = words(option);
    let among = |known: &str| all.iter().any(|word| known.split_whitespace().any(|one| one == word.key));
    match (among(FIRST), among(SECOND)) {
        // `Not important` holds words of both ends.
        (_, true) => Some(1),
        (true, false) => Some(0),
        (false, false) => None,
    }
}

fn of_options(question: &str, options: &[String]) -> Made {
    let chosen = |option: &&String| {
        let text = option.to_lowercase().replace(['’', '‘'], "'");
        !NO_SIDE.split('|').any(|known| text.starts_with(known))
    };
    let sides: Vec<&String> = options.iter().filter(chosen).collect();
    if let [first, second] = sides[..]
        && is_sentence(first)
        && is_sentence(second)
    {
        return whole(question, vec![sentence(&words(first)), sentence(&words(second))], Some(0), By::Rule);
    }
    let ends: Vec<Option<usize>> = sides.iter().map(|option| end_of(option)).collect();
    let opposite = ends.contains(&Some(0)) && ends.contains(&Some(1));
    if opposite {
        let made = statements(question);
        if made.by == By::Rule {
            return Made::Whole(made);
        }
    }
    match sides[..] {
        [first, second] => Made::Left {
            question: format!("{question} “{first}” or “{second}”?"),
            reason: "no rule makes statements of the two options".into(),
        },
        _ if opposite => Made::Left {
            question: question.to_owned(),
            reason: "no rule makes statements of the question".into(),
        },
        _ => Made::Dropped(format!("its {} options have no two opposite ends", sides.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(all: &[&str]) -> Vec<String> {
        all.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn answers_become_statements_and_yes_supports() {
        let made = |question: &str, answers: &[&str]| of_answers(question, &texts(answers));
        let two = texts(&["Zoos should not be banned.", "Zoos should be banned."]);
        for answers in [["No", "Yes"], ["No, zoos should not be banned", "Yes. Zoos should be banned!"]] {
            assert_eq!(
                made("Should zoos be banned?", &answers),
                whole("Should zoos be banned?", two.clone(), Some(1), By::Rule)
            );
        }
        let answers = ["Milk.", "A tea", "milk", "No drink is best."];
        let three = texts(&["Milk is the best drink.", "A tea is the best drink.", "No drink is best."]);
        let drink = "What is the best drink?";
        assert_eq!(made(drink, &answers), whole(drink, three, None, By::Rule));
        assert!(
            matches!(made("Tea or coffee?", &["Tea", "Coffee"]), Made::Left { question, .. } if question == "Tea or coffee? “Tea” or “Coffee”?")
        );
        assert!(matches!(made("Should zoos be banned?", &["Yes", "yes"]), Made::Dropped(_)));
    }

    #[test]
    fn options_are_kept_if_they_have_two_opposite_ends() {
        let made = |question: &str, options: &[&str]| of_options(question, &texts(options));
        let scale = ["Strongly favor", "Favor", "Oppose", "Strongly oppose", "Refused"];
        let Made::Whole(whole) = made("Do you think marijuana should be legal?", &scale) else { panic!() };
        assert_eq!(whole.perspectives, ["Marijuana should be legal.", "Marijuana should not be legal."]);
        let own = [
            "The economic system generally favors powerful interests",
            "The economic system is generally fair to most Americans",
            "Refused",
        ];
        let Made::Whole(whole) = made("Which statement comes closer to your own view?", &own) else {
            panic!()
        };
        assert_eq!((whole.perspectives.len(), whole.supports), (2, Some(0)));
        assert!(matches!(made("Which matters more?", &["Wealth", "Health", "Not sure"]), Made::Left { .. }));
        assert!(
            matches!(made("How often do you pray?", &["Daily", "Weekly", "Monthly", "Refused"]), Made::Dropped(reason) if reason.starts_with("its 3 options"))
        );
    }

    #[test]
    fn a_heading_that_runs_into_its_text_is_the_claim() {
        let text = "The power of art The painters knew it.";
        assert_eq!(claim("", "arts", text), "The power of art");
        assert_eq!(
            claim("", "arts", "Britain is behind Europe on rail. It is slow."),
            "Britain is behind Europe on rail."
        );
        assert_eq!(claim("Zoos harm.", "Zoos should close now", text), "Zoos harm.");
        assert_eq!(claim("", "Zoos should close now", text), "Zoos should close now");
        assert!(
            matches!(of_pair(&"word ".repeat(26)), Made::Left { reason, .. } if reason.contains("26 words"))
        );
    }

    #[test]
    fn lists_are_read_as_python_and_json_write_them() {
        assert_eq!(listed(r#"['Yes', "Don't know", 'It\'s so']"#), ["Yes", "Don't know", "It's so"]);
        assert_eq!(listed("{1.0: 'A lot', 99.0: 'Refused'}"), ["A lot", "Refused"]);
        assert_eq!((listed("Yes | No"), listed("[]")), (texts(&["Yes", "No"]), vec![]));
    }
}
