//! An explorer with hand-made passages and verdicts, so that tests run no model.

use std::sync::Arc;
use std::time::Duration;

use parallax::corpus::store::{Field, Fields, NONE};
use parallax::corpus::{Passage, PassageIx};
use parallax::detect::{LabelSource, PairLabels, Reading, Rule};
use parallax::engine::answer::{Assessed, Citations, Cited, Claim, Coverage, Sentence};
use parallax::engine::nuggets::{KeyPoint, Voice};
use parallax::engine::{AnswerEvent, Opened, PointsEvent, ReadEvent, Reply, Turn};
use parallax::engine::{Judgments, Opening, Ranked, Ranking, Recipe};
use parallax::measure::SupportSet;
use parallax::question::{By, Question};
use parallax::read::Answer as ReadAnswer;
use parallax::tui::app::{App, Corpus, LaneState};
use parallax::tui::config::{Config, Source};
use parallax::tui::message::{Effect, Msg};
use parallax::tui::script::{Step, parse};
use parallax::tui::theme::Depth;
use parallax::tui::update::update;
use parallax::tui::{Size, Start};
use serde_json::json;
use tui_input::Input;

pub const QUESTION: &str = "Should zoos be banned?";

/// Id, title, text.
type Written = (&'static str, &'static str, &'static str);

pub const PASSAGES: [Written; 8] = [
    (
        "zoos-01",
        "Captivity is not conservation",
        "Most zoos keep animals that are in no danger at all. The bears pace. Elephants in captivity live half as long as wild ones. Zoos should be closed and their money given to reserves.",
    ),
    (
        "zoos-02",
        "What a licence buys",
        "Strict licensing protects animals better than an outright ban would, because it keeps veterinary research in one place. A ban on zoos would drive the trade into back yards.",
    ),
    ("zoos-03", "Opening times", "The zoo opens at nine and closes at six. Children under four pay nothing."),
    (
        "zoos-04",
        "Two letters to the editor",
        "Ban them, writes one reader: no cage is kind. Keep them, writes another: my daughter became a vet because of one.",
    ),
    (
        "zoos-05",
        "",
        "A passage without a title, about the breeding of condors in zoos and their return to the hills.",
    ),
    (
        "zoos-06",
        "The condor that came back from twenty-two birds and what it cost the county of Ventura over thirty years",
        "Without zoos there would be no condors.",
    ),
    ("zoos-07", "A keeper's diary", "We closed the old house. I do not miss the bars, and nor do the apes."),
    (
        "zoos-08",
        "Circuses",
        "A ban on wild animals in circuses passed; a ban on zoos did not come to a vote.",
    ),
];

/// Passages with control sequences and unusual scripts.
pub const FOREIGN: [Written; 6] = [
    (
        "動物園-1",
        "動物園は教育の場である",
        "子どもたちは動物園で初めて本物の象に会う。禁止すればその機会は失われる。",
    ),
    ("emoji-1", "👩‍🚀 🦁 Lions 🇫🇷 say no", "🦁🦁🦁 A pride of lions 👨‍👩‍👧‍👦 and a family. ✊🏽"),
    ("rtl-1", "حديقة الحيوان", "يجب حظر حدائق الحيوان \u{202e}desrever si siht\u{202c} لأن الحيوانات تعاني."),
    (
        "esc-1",
        "\u{1b}[31mRed\u{1b}[0m title",
        "\u{1b}]0;owned\u{7}Text\r\nwith \u{1b}[2J escapes \u{9b}31m and \u{0}nul.",
    ),
    (
        "comb-1",
        "e\u{301}le\u{301}phants et ze\u{300}bres",
        "Z\u{310}a\u{30a}l\u{337}g\u{34f}o and zero\u{200b}width.",
    ),
    (
        "long-1",
        "Donaudampfschifffahrtsgesellschaftskapitänsmützenabzeichenverleihung",
        "Aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    ),
];

/// The start of the explorer in these tests.
pub fn start() -> Start {
    Start {
        opening: Opening::default(),
        lanes: Recipe::defaults(),
        k: 5,
        source: LabelSource::Auto,
        question: String::new(),
        perspectives: Vec::new(),
        history: None,
        config: Config::default(),
        config_from: Source::default(),
        depth: Depth::Millions,
        linear: false,
        home: None,
        presenting: false,
    }
}

pub fn size(width: u16, height: u16) -> Size {
    Size { width, height }
}

/// The two-sided question of these tests.
pub fn question() -> Question {
    Question {
        id: "zoos".into(),
        text: QUESTION.into(),
        perspectives: vec!["Zoos should be banned.".into(), "Zoos should not be banned.".into()],
        supports: Some(0),
        ..Question::default()
    }
}

pub fn opened() -> Opened {
    Opened {
        corpus: "sample".into(),
        passages: 600,
        questions: vec![question()],
        labelled: false,
        labels: ("gold".into(), "gold labels".into()),
        by_hand: false,
        reader: None,
        rerankers: vec![],
        rule: rule(),
        detector: None,
        notice: None,
    }
}

/// A ranking of passages by their index in `all`, with falling scores from `best`.
pub fn ranking(all: &[Written], order: &[usize], best: f32) -> Ranking {
    let ranked = order.iter().enumerate().map(|(i, at)| {
        let (id, title, text) = all[*at];
        let mut passage =
            Passage { id: id.into(), title: title.into(), text: text.into(), ..Passage::default() };
        passage.metadata.insert("voice".into(), json!("op-ed"));
        Ranked {
            at: PassageIx(*at as u32),
            passage: Arc::new(passage),
            score: best * (1.0 - i as f32 / 16.0),
        }
    });
    Arc::new(ranked.collect::<Vec<_>>().into())
}

/// Two categories, as if counted over a corpus of ten passages.
pub fn fields() -> Fields {
    let field = |name: &str, values: &[(&str, usize)]| Field {
        name: name.into(),
        values: values.iter().map(|(value, count)| ((*value).to_owned(), *count)).collect(),
    };
    let voice = field("voice", &[("news", 5), ("op-ed", 2), ("動物園の掲示板", 2), (NONE, 1)]);
    Fields { passages: 10, categories: vec![voice, field("year", &[("1999", 9), (NONE, 1)])], others: vec![] }
}

/// What the model says comes from this.
pub fn rule() -> Arc<Rule> {
    let mut rule = Rule::default();
    rule.about.name = "parallax-minilm-l6".into();
    Arc::new(rule)
}

pub fn said(p: f32) -> PairLabels {
    PairLabels { model: Some(Ok(Reading::of(p))), ..PairLabels::default() }
}

/// An open corpus with the cursor in an empty question line.
pub fn empty(width: u16, height: u16) -> App {
    let mut app = App::new(&start(), size(width, height));
    app.corpus = Corpus::Open(Box::new(opened()));
    app
}

/// The question with three lists and their verdicts, and the cursor in the first lane.
pub fn asked(width: u16, height: u16) -> App {
    let mut app = with_lists(empty(width, height), &PASSAGES, question());
    // Support and oppose of each passage; the last is not judged yet.
    let verdicts =
        [(0.94, 0.02), (0.06, 0.91), (0.01, 0.03), (0.81, 0.77), (0.04, 0.85), (0.03, 0.97), (0.86, 0.05)];
    for (at, (support, oppose)) in verdicts.into_iter().enumerate() {
        app.judgments.write(PassageIx(at as u32), 0, said(support));
        app.judgments.write(PassageIx(at as u32), 1, said(oppose));
    }
    app
}

/// Another question over another set of passages, without verdicts.
pub fn with_lists(mut app: App, all: &[Written], question: Question) -> App {
    app.line = Input::new(question.text.clone());
    app.typing = false;
    app.turn = Turn(1);
    app.by = By::Given;
    app.judgments = Judgments::new(&question, LabelSource::Auto, rule());
    app.question = question;
    let forward: Vec<usize> = (0..all.len()).collect();
    let backward: Vec<usize> = (0..all.len()).rev().collect();
    let mixed: Vec<usize> =
        forward.iter().step_by(2).chain(forward.iter().skip(1).step_by(2)).copied().collect();
    for (lane, (order, best, micros)) in
        app.lanes.iter_mut().zip([(&forward, 12.5, 800), (&backward, 0.62, 14_000), (&mixed, 0.033, 15_200)])
    {
        lane.ranking = ranking(all, order, best);
        lane.took = Duration::from_micros(micros);
        lane.state = LaneState::Ready;
        if app.question.sides().is_some() {
            lane.reworded = Some(Ok([&forward, &mixed].map(|order| ranking(all, order, best))));
        }
    }
    app
}

/// A question of seven perspectives.
pub fn many_sided(width: u16, height: u16) -> App {
    let sides = [
        "banned",
        "kept",
        "licensed",
        "turned into reserves",
        "paid for by visitors",
        "free",
        "run by towns",
    ];
    let question = Question {
        id: "many".into(),
        text: "What should become of zoos?".into(),
        perspectives: sides.iter().map(|side| format!("Zoos should be {side}.")).collect(),
        supports: None,
        ..Question::default()
    };
    let mut app = with_lists(empty(width, height), &PASSAGES, question);
    for at in 0..PASSAGES.len() {
        for side in 0..sides.len() {
            let p = if side == at || (at == 3 && side < 2) { 0.9 } else { 0.1 };
            app.judgments.write(PassageIx(at as u32), side, said(p));
        }
    }
    app
}

/// The key points of the question are found: one of two passages and one of a single passage for the first side, two for the other.
pub fn pointed(width: u16, height: u16) -> App {
    let mut app = asked(width, height);
    press(&mut app, "K");
    let point = |perspective, voices: &[(usize, &str)]| {
        let voices =
            voices.iter().map(|(at, text)| Voice { passage: PASSAGES[*at].0.into(), text: (*text).into() });
        let voices: Vec<Voice> = voices.collect();
        KeyPoint { perspective, name: voices[0].text.clone(), vital: voices.len() > 1, voices }
    };
    let points = vec![
        point(
            0,
            &[
                (0, "Elephants in captivity live half as long as wild ones."),
                (6, "I do not miss the bars, and nor do the apes."),
            ],
        ),
        point(0, &[(3, "No cage is kind, writes one reader.")]),
        point(
            1,
            &[
                (5, "Without zoos there would be no condors."),
                (4, "The breeding of condors in zoos returned them to the hills."),
            ],
        ),
        point(1, &[(1, "A ban on zoos would drive the trade into back yards.")]),
    ];
    let (number, event) = (app.points.number, PointsEvent::Found(Ok(points)));
    update(&mut app, Msg::Engine(Reply::KeyPoints { number, event }));
    app
}

/// The mixer, with a reader.
pub fn mixer(width: u16, height: u16) -> App {
    let mut app = asked(width, height);
    give_reader(&mut app, "m", false);
    press(&mut app, "rm");
    app
}

/// The sides of an answer: two sentences give the first side, of which one cites what does not support it; nothing gives the other.
pub fn sided(width: u16, height: u16) -> App {
    let mut app = asked(width, height);
    give_reader(&mut app, "m", false);
    press(&mut app, "ra");
    let set = |sides: &[usize]| SupportSet::of(sides.iter().copied()).unwrap();
    let sentence = |text: &str, cites: &[usize], sides, cited, found: &[usize]| Sentence {
        claim: Claim { text: text.into(), cites: cites.to_vec() },
        sides,
        cited,
        found: Some(found.to_vec()),
    };
    let cited = |supported, precise: &[bool]| Some(Cited { supported, precise: precise.to_vec() });
    let sentences = vec![
        sentence("Elephants die young in zoos.", &[0, 2], set(&[0]), cited(true, &[true, false]), &[0]),
        sentence("No cage is kind.", &[1], set(&[0]), cited(false, &[false]), &[3]),
        sentence("Visitors like the apes.", &[], set(&[]), None, &[]),
    ];
    let citations = Citations::of(sentences.iter().map(|own| own.cited.as_ref()));
    let assessed = Assessed {
        answer: ReadAnswer {
            text: "Elephants die young in zoos [1][3]. …".into(), ..ReadAnswer::default()
        },
        coverage: Coverage { list: set(&[0, 1]), answer: set(&[0]), m: 2 },
        aware: false,
        sentences,
        citations,
    };
    let event = AnswerEvent::Judged(Ok(Box::new((assessed, "judged by the model".into()))));
    let number = app.answer_sides.number;
    update(&mut app, Msg::Engine(Reply::Answered { number, event }));
    app
}

/// Adds a reader.
pub fn give_reader(app: &mut App, name: &str, recorded: bool) {
    let Corpus::Open(opened) = &mut app.corpus else { panic!("not open") };
    opened.reader = Some((name.into(), recorded));
}

/// Delivers an event of the current batch.
pub fn heard(app: &mut App, heard: ReadEvent) {
    let number = app.answering.number;
    update(app, Msg::Engine(Reply::ReadEvent { number, event: heard }));
}

/// Presses the keys of a script and returns their effects.
pub fn press(app: &mut App, keys: &str) -> Vec<Effect> {
    let steps = parse(keys).unwrap();
    let effects = steps.into_iter().flat_map(|step| match step {
        Step::Key(key) => update(app, Msg::Key(key)),
        Step::Resize(size) => update(app, Msg::Resized(size)),
        other => panic!("not a key: {other:?}"),
    });
    effects.collect()
}
