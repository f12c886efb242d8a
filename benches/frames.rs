//! How long a key takes from its press to the drawn frame: 2,000 seeded random keys at 140×40 with six lanes, verdicts arriving in between.
//!
//! `cargo bench --all-features --bench frames` prints the median and the 99th percentile, of the whole and of drawing alone.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crossterm::event::KeyEvent;
use parallax::corpus::{Passage, PassageIx};
use parallax::detect::{LabelSource, PairLabels, Reading};
use parallax::engine::{Judged, Opened, Opening, Ranked, Ranking, Recipe, Reply};
use parallax::question::Question;
use parallax::tui::app::App;
use parallax::tui::config::{Config, Source};
use parallax::tui::draw::draw;
use parallax::tui::keymap::TABLE;
use parallax::tui::message::{Effect, Msg};
use parallax::tui::script::{Step, parse};
use parallax::tui::theme::Depth;
use parallax::tui::update::update;
use parallax::tui::{Size, Start};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

const KEYS: usize = 2_000;
/// After so many keys the six lanes begin anew: keys also remove lanes and leave their screen.
const SESSION: usize = 50;
const LANES: [&str; 6] = ["bm25", "minilm", "hybrid", "bm25+mmr@.75", "minilm+pap@1", "hybrid+csqe"];
/// Passages of a lane.
const DEEP: usize = 100;
/// Passages that the lanes draw on.
const PASSAGES: u32 = 400;
/// Verdicts that arrive between two keys.
const VERDICTS: u64 = 3;

/// xorshift: the same keys on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

fn main() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let start = start();
    let mut terminal = Terminal::new(TestBackend::new(140, 40)).expect("a backend in memory");
    let theme = start.theme();
    let keys = keys();
    let mut app = asked(&start, &mut random);
    let (mut whole, mut drawing, mut six) = (Vec::new(), Vec::new(), 0);
    for pressed in 0..KEYS {
        if pressed % SESSION == 0 {
            app = asked(&start, &mut random);
        }
        let key = keys[random.below(keys.len() as u64) as usize];
        let began = Instant::now();
        let effects = update(&mut app, Msg::Key(key));
        answer(&mut app, effects, &mut random);
        judge(&mut app, &mut random);
        let drawn = Instant::now();
        terminal.draw(|frame| draw(&app, theme, frame)).expect("a backend in memory");
        drawing.push(drawn.elapsed());
        whole.push(began.elapsed());
        six += usize::from(app.lanes.len() == LANES.len());
    }
    println!("{KEYS} keys at 140×40, {VERDICTS} verdicts a key; {six} frames with six lanes");
    report("key, verdicts and frame", whole);
    report("frame alone", drawing);
}

/// Six lanes with lists, and the first verdicts.
fn asked(start: &Start, random: &mut Random) -> App {
    let mut app = App::new(start, Size { width: 140, height: 40 });
    update(&mut app, Msg::Engine(Reply::Opened(Box::new(opened()))));
    press(&mut app, "Should zoos be banned?<Enter>", random);
    assert_eq!(app.lanes.len(), LANES.len());
    app
}

fn start() -> Start {
    Start {
        opening: Opening::default(),
        lanes: LANES.map(|lane| lane.parse::<Recipe>().expect("a recipe")).to_vec(),
        k: 10,
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

fn opened() -> Opened {
    let question = |i: usize| Question {
        id: format!("q{i}"),
        text: if i == 0 {
            "Should zoos be banned?".into()
        } else {
            format!("Should practice {i} be banned?")
        },
        perspectives: vec!["Zoos should be banned.".into(), "Zoos should not be banned.".into()],
        supports: Some(0),
        ..Question::default()
    };
    Opened {
        corpus: "bench".into(),
        passages: PASSAGES as usize,
        questions: (0..50).map(question).collect(),
        labelled: true,
        labels: ("gold".into(), "gold labels".into()),
        by_hand: false,
        reader: None,
        rerankers: Vec::new(),
        rule: Arc::default(),
        detector: None,
        notice: None,
    }
}

fn random_list(random: &mut Random) -> Ranking {
    const WORDS: [&str; 8] =
        ["zoos", "animals", "captivity", "should", "conservation", "banned", "keepers", "visitors"];
    let mut taken = std::collections::HashSet::new();
    let mut list: Vec<Ranked> = Vec::new();
    while list.len() < DEEP {
        let at = random.below(u64::from(PASSAGES)) as u32;
        if !taken.insert(at) {
            continue;
        }
        let words: Vec<&str> =
            (0..120).map(|i| WORDS[(i * 7 + at as usize * 3 + i / 5) % WORDS.len()]).collect();
        let passage = Passage {
            id: format!("p{at}"),
            title: format!("Passage {at} on zoos"),
            text: words.join(" "),
            ..Passage::default()
        };
        let score = 1.0 - list.len() as f32 / 200.0;
        list.push(Ranked { at: PassageIx(at), passage: Arc::new(passage), score });
    }
    Arc::new(list.into())
}

/// Answers a plan at once, as an engine would that has its lists and goes on judging.
fn answer(app: &mut App, effects: Vec<Effect>, random: &mut Random) {
    for effect in effects {
        if let Effect::Start { turn, .. } = effect {
            for lane in 0..app.lanes.len() {
                let (ranking, took) = (random_list(random), Duration::from_millis(1));
                update(app, Msg::Engine(Reply::LaneReady { turn, lane, ranking, took }));
                let lists = Ok([random_list(random), random_list(random)]);
                update(app, Msg::Engine(Reply::Reworded { turn, lane, lists }));
            }
        }
    }
}

fn judge(app: &mut App, random: &mut Random) {
    for _ in 0..VERDICTS {
        let (at, perspective) =
            (PassageIx(random.below(u64::from(PASSAGES)) as u32), random.below(2) as usize);
        let known = PairLabels {
            model: Some(Ok(Reading::of(random.below(100) as f32 / 100.0))),
            ..PairLabels::default()
        };
        let judged = Judged { at, perspective, known };
        update(app, Msg::Engine(Reply::Verdict { turn: app.turn, judged }));
    }
}

fn press(app: &mut App, keys: &str, random: &mut Random) {
    for step in parse(keys).expect("a key script") {
        if let Step::Key(key) = step {
            let effects = update(app, Msg::Key(key));
            answer(app, effects, random);
        }
    }
}

/// Every key of the table but those that leave the program or open labelling, which waits for the disk.
fn keys() -> Vec<KeyEvent> {
    let all = TABLE.iter().flat_map(|binding| binding.keys);
    let kept = all.filter(|key| !["q", "a", "<C-c>", "<C-z>"].contains(*key));
    let steps = kept.filter_map(|key| parse(key).ok()?.into_iter().next());
    steps.filter_map(|step| if let Step::Key(key) = step { Some(key) } else { None }).collect()
}

fn report(what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |share: usize| times[(times.len() * share / 100).min(times.len() - 1)].as_secs_f64() * 1e3;
    println!("{what}: p50 {:.2} ms, p99 {:.2} ms, most {:.2} ms", at(50), at(99), at(100));
}
