//! A language model as a reader, and as a judge of differently worded answers.

use std::sync::Arc;

use super::reader::{Answer, Context, ReadError, Reader, matches, normalised};
use crate::llm::{Chat, ChatError, Job, Prompts, Request};
use crate::work::{Stop, Stopped};

/// The limit of prompt and reply in tokens. Servers do not report their window, so a small one is assumed.
const WINDOW: usize = 8192;
/// The part of the window for the instruction and the reply.
const RESERVED: usize = 768;
/// The approximate number of bytes in a token of English prose.
const BYTES: usize = 4;

/// Reads through a [`Chat`].
pub struct Prompted {
    chat: Arc<dyn Chat>,
    prompts: Prompts,
    /// The statements to choose from, if a stance is asked for.
    sides: Option<[String; 2]>,
    /// Whether the whole reply is the answer, not its first line.
    whole: bool,
}

/// The built-in prompt for an answer in some sentences.
const AT_LENGTH: &str = "read-long";

impl Prompted {
    /// A reader that asks this chat.
    pub fn new(chat: Arc<dyn Chat>, prompts: Prompts) -> Self {
        Prompted { chat, prompts, sides: None, whole: false }
    }

    /// The most tokens of question and passages in one prompt.
    fn tokens(&self) -> usize {
        let window = self.chat.window().map_or(WINDOW, |own| own.min(WINDOW));
        window - RESERVED.min(window / 2)
    }
}

/// Numbers the passages, and cuts them so that together they have at most `room` bytes. Also returns how many were cut.
fn number_passages(passages: &[Context], mut room: usize) -> (Vec<String>, usize) {
    let (mut numbered, mut cut) = (Vec::new(), 0);
    for (i, context) in passages.iter().enumerate() {
        let whole = format!("[{}] {}", i + 1, context.passage.contents());
        let mut end = whole.len().min(room);
        while !whole.is_char_boundary(end) {
            end -= 1;
        }
        cut += usize::from(end < whole.len());
        room -= end;
        if end > 0 {
            numbered.push(whole[..end].to_owned());
        }
    }
    (numbered, cut)
}

impl Prompted {
    /// The request for an answer, and how many passages were cut.
    fn answer_request(&self, question: &str, passages: &[Context]) -> (Request, usize) {
        let (numbered, cut) =
            number_passages(passages, (self.tokens() * BYTES).saturating_sub(question.len()));
        let job = if numbered.is_empty() { Job::ReadAlone } else { Job::Read };
        let values = [("question", question), ("passages", &numbered.join("\n"))];
        (self.prompts.get(job).request(&values, 0), cut)
    }

    /// The request that asks which side the passages take together, and how many passages were cut.
    fn side_request(&self, [a, b]: &[String; 2], passages: &[Context]) -> (Request, usize) {
        let room = (self.tokens() * BYTES).saturating_sub(a.len() + b.len());
        let (numbered, cut) = number_passages(passages, room);
        let values = [("first", a.as_str()), ("second", b), ("passages", &numbered.join("\n"))];
        (self.prompts.get(Job::ReadSides).request(&values, 0), cut)
    }

    /// A reply as one of the screen's words for stances; any other reply is unchanged.
    fn stance<'a>(&self, reply: &'a str) -> &'a str {
        let words = ["supports", "opposes", "balanced", "silent"];
        self.prompts.get(Job::ReadSides).outcome(reply).map_or(reply, |outcome| words[outcome])
    }
}

/// The first line that is not blank, without a leading `Answer:`.
fn bare(reply: &str) -> &str {
    let line = reply.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let lower = line.get(..7).map(str::to_ascii_lowercase);
    if lower.as_deref() == Some("answer:") { line[7..].trim() } else { line }
}

impl Reader for Prompted {
    fn name(&self) -> &str {
        self.chat.model()
    }

    fn order_sensitive(&self) -> bool {
        true
    }

    fn window(&self) -> String {
        format!("about {} tokens, estimated at {BYTES} bytes a token", self.tokens())
    }

    fn answer(&self, question: &str, passages: &[Context], stop: &Stop) -> Result<Answer, ReadError> {
        if stop.is_set() {
            return Err(Stopped.into());
        }
        let (request, cut) = match &self.sides {
            // Without passages there is no stance.
            Some(_) if passages.is_empty() => {
                return Ok(Answer { text: "silent".into(), ..Answer::default() });
            }
            Some(sides) => self.side_request(sides, passages),
            None => self.answer_request(question, passages),
        };
        let reply = self.chat.reply(&request, stop)?;
        let line = bare(reply.answer());
        let text = match &self.sides {
            Some(_) => self.stance(line),
            None if self.whole => reply.answer().trim(),
            None => line,
        };
        Ok(Answer { text: text.to_owned(), recorded: reply.recorded, cut })
    }

    fn at_length(&self) -> Option<Box<dyn Reader>> {
        // A prompt of the user's own stays.
        let own = self.prompts.get(Job::Read).id.name != Job::Read.name();
        let prompts = if own { self.prompts.clone() } else { Prompts::with(&[AT_LENGTH.into()]).ok()? };
        Some(Box::new(Prompted { chat: Arc::clone(&self.chat), prompts, sides: None, whole: true }))
    }

    fn on_sides(&self, sides: [String; 2]) -> Option<Box<dyn Reader>> {
        let (chat, prompts) = (Arc::clone(&self.chat), self.prompts.clone());
        Some(Box::new(Prompted { chat, prompts, sides: Some(sides), whole: false }))
    }
}

/// A list of gold answers that a model has extended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Widened {
    /// The gold answers, then those that the model found equivalent.
    pub gold: Vec<String>,
    /// The number of answers added.
    pub added: usize,
    /// The number of replies that began with neither Yes nor No; they are ignored.
    pub discarded: usize,
}

/// Asks the model, for each distinct wrong answer, whether it means the same as a gold answer.
///
/// # Errors
/// The model did not answer, or `stop` was set.
pub fn widen_gold(
    chat: &dyn Chat,
    prompts: &Prompts,
    question: &str,
    answers: &[Answer],
    gold: &[String],
    stop: &Stop,
) -> Result<Widened, ReadError> {
    let prompt = prompts.get(Job::SameAnswer);
    let mut widened = Widened { gold: gold.to_vec(), ..Widened::default() };
    let mut compared: Vec<String> = Vec::new();
    for answer in answers {
        let plain = normalised(&answer.text);
        if answer.is_empty() || matches(&answer.text, gold) || compared.contains(&plain) {
            continue;
        }
        compared.push(plain);
        for right in gold {
            let values = [("question", question), ("first", right.as_str()), ("second", &answer.text)];
            let reply = match chat.reply(&prompt.request(&values, 0), stop) {
                Ok(reply) => reply,
                Err(ChatError::Nonsense(_)) => {
                    widened.discarded += 1;
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            match prompt.verdict(&reply) {
                Some(0) => {
                    widened.gold.push(answer.text.clone());
                    widened.added += 1;
                    break;
                }
                Some(_) => {}
                None => widened.discarded += 1,
            }
        }
    }
    Ok(widened)
}

#[cfg(test)]
mod prompted_tests {
    use super::*;
    use crate::corpus::Passage;
    use crate::llm::{ChatError, Reply};

    fn contexts(texts: &[String]) -> Vec<Context> {
        let passage = |text: &String| Arc::new(Passage { text: text.clone(), ..Passage::default() });
        Context::list(texts.iter().map(passage))
    }

    #[test]
    fn the_passages_stand_in_the_order_they_are_given_and_none_asks_the_question_alone() {
        let mut two = contexts(&["one".into(), "two".into()]);
        two.reverse();
        let reader = Prompted::new(Arc::new(Small(WINDOW)), Prompts::builtin().unwrap());
        let (request, cut) = reader.answer_request("Why?", &two);
        assert!(request.prompt.contains("[1] two\n[2] one") && cut == 0);
        assert!(request.prompt.ends_with("Question: Why?\nAnswer:"));
        assert!(!reader.answer_request("Why?", &[]).0.prompt.contains("passages"));
    }

    #[test]
    fn what_is_past_the_window_is_cut_between_characters_and_counted() {
        let long = "é".repeat(20_000);
        let reader = Prompted::new(Arc::new(Small(WINDOW)), Prompts::builtin().unwrap());
        let (request, cut) = reader.answer_request("Why?", &contexts(&["short".into(), long, "late".into()]));
        assert_eq!(cut, 2);
        assert!(request.prompt.len() < WINDOW * BYTES);
        assert!(request.prompt.contains("short") && !request.prompt.contains("late"));
        assert_eq!(reader.answer_request(&"?".repeat(1 << 20), &contexts(&["gone".into()])).1, 1);
    }

    struct Small(usize);

    impl Chat for Small {
        fn model(&self) -> &str {
            "small"
        }

        fn window(&self) -> Option<usize> {
            Some(self.0)
        }

        fn reply(&self, request: &Request, _: &Stop) -> Result<Reply, ChatError> {
            let text = request.prompt.len().to_string();
            Ok(Reply { text, model: "small".into(), ..Reply::default() })
        }
    }

    #[test]
    fn a_model_that_knows_its_window_is_given_no_more_than_it_takes() {
        let long = contexts(&["word ".repeat(20_000)]);
        for (window, room) in [(1 << 20, WINDOW), (1_024, 1_024), (512, 512)] {
            let reader = Prompted::new(Arc::new(Small(window)), Prompts::builtin().unwrap());
            let answer = reader.answer("Why?", &long, &Stop::never()).unwrap();
            let length: usize = answer.text.parse().unwrap();
            assert!(length < (room - 100) * BYTES && answer.cut == 1, "{window}: {length}");
            assert!(length > room / 3 * BYTES, "{window}: {length}");
        }
    }

    /// Says one thing to whoever names both statements and a passage.
    struct Weighs(&'static str);

    impl Chat for Weighs {
        fn model(&self) -> &str {
            "weighs"
        }

        fn reply(&self, request: &Request, _: &Stop) -> Result<Reply, ChatError> {
            assert!(request.prompt.contains("A. Yes.\nB. No.") && request.prompt.contains("[1] one"));
            Ok(Reply { text: self.0.into(), model: "weighs".into(), ..Reply::default() })
        }
    }

    #[test]
    fn of_two_sides_it_says_which_one_the_passages_take_and_keeps_what_it_does_not_know() {
        let read = |reply, passages: &[String]| {
            let reader = Prompted::new(Arc::new(Weighs(reply)), Prompts::builtin().unwrap());
            let reader = reader.on_sides(["Yes.".into(), "No.".into()]).unwrap();
            reader.answer("Is it?", &contexts(passages), &Stop::never()).unwrap().text
        };
        for (reply, stance) in [
            ("A", "supports"),
            (" b.", "opposes"),
            ("Answer: **Balanced**", "balanced"),
            ("both", "balanced"),
            ("Neither.", "silent"),
            ("Neither of them", "Neither of them"),
            ("I'm sorry, no.", "I'm sorry, no."),
            ("Any", "Any"),
        ] {
            assert_eq!(read(reply, &["one".into()]), stance, "{reply}");
        }
        assert_eq!(read("A", &[]), "silent", "nobody is asked about nothing");
    }

    struct Paragraphs;

    impl Chat for Paragraphs {
        fn model(&self) -> &str {
            "paragraphs"
        }

        fn reply(&self, request: &Request, _: &Stop) -> Result<Reply, ChatError> {
            let text = if request.prompt.contains("[2][4]") { " One [1].\nTwo. " } else { "One.\nTwo." };
            Ok(Reply { text: text.into(), model: "paragraphs".into(), ..Reply::default() })
        }
    }

    #[test]
    fn at_length_the_whole_reply_to_a_prompt_of_its_own_is_the_answer() {
        let reader = Prompted::new(Arc::new(Paragraphs), Prompts::builtin().unwrap());
        let passages = contexts(&["one".into()]);
        let text = |reader: &dyn Reader| reader.answer("Why?", &passages, &Stop::never()).unwrap().text;
        assert_eq!(text(&reader), "One.");
        assert_eq!(text(reader.at_length().unwrap().as_ref()), "One [1].\nTwo.");
    }

    #[test]
    fn the_answer_is_the_first_line_that_says_something() {
        for (reply, answer) in
            [("\n Paris \nbecause", "Paris"), ("Answer: Paris", "Paris"), ("", ""), ("é: Paris", "é: Paris")]
        {
            assert_eq!(bare(reply), answer);
        }
    }
}

#[cfg(test)]
mod equivalence_tests {
    use std::sync::Mutex;

    use super::*;
    use crate::llm::Reply;

    struct Judge(Mutex<Vec<&'static str>>);

    impl Chat for Judge {
        fn model(&self) -> &str {
            "judge"
        }

        fn reply(&self, _: &Request, _: &Stop) -> Result<Reply, ChatError> {
            let text = self.0.lock().unwrap().remove(0).to_owned();
            Ok(Reply { text, model: "judge".into(), ..Reply::default() })
        }
    }

    #[test]
    fn a_yes_joins_the_gold_list_a_no_does_not_and_anything_else_is_discarded() {
        let judge = Judge(Mutex::new(vec!["No.", "<think>hm</think>Yes.", "Yesterday", "no"]));
        let reply = |text: &str| Answer { text: text.into(), ..Answer::default() };
        let answers = [reply("UK"), reply("the uk"), reply("London"), reply("Britain"), reply("")];
        let gold = ["Great Britain".to_owned(), "London".to_owned()];
        let prompts = Prompts::builtin().unwrap();
        let found = widen_gold(&judge, &prompts, "Where?", &answers, &gold, &Stop::never()).unwrap();
        assert_eq!(found.gold, ["Great Britain", "London", "UK"]);
        assert_eq!((found.added, found.discarded), (1, 1));
        assert!(judge.0.lock().unwrap().is_empty(), "the right answer and the repeated one are not asked");
    }
}
