//! What a decision by hand costs: from the key to its echo, to the next passage, and from the act to the disk; the same in a project of
//! 100,000 labels, and how long that takes to open.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use crossterm::event::{KeyCode, KeyEvent};
use parallax::annotate::{Act, Entry, Item, Journal, Project, View, journals, text_hash};
use parallax::corpus::{Fingerprint, Passage};
use parallax::detect::LabelSource;
use parallax::engine::{Engine, SendReply};
use parallax::engine::{Opening, Recipe};
use parallax::question::Question;
use parallax::tui::app::App;
use parallax::tui::config::{Config, Source};
use parallax::tui::draw::draw;
use parallax::tui::message::{Effect, Msg};
use parallax::tui::theme::{Depth, Look, Theme};
use parallax::tui::update::update;
use parallax::tui::{Size, Start};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

const QUESTION: &str = "Should wolves be brought back to the countryside?";

type Failed = Box<dyn std::error::Error>;

fn main() -> Result<(), Failed> {
    if std::env::args().any(|argument| argument == "--test") {
        return Ok(());
    }
    // In `target`, as a folder for passing files may lie in memory.
    let folder = tempfile::tempdir_in(Path::new(env!("CARGO_MANIFEST_DIR")).join("target"))?;
    disk(folder.path())?;
    keys(folder.path())?;
    many(folder.path())
}

fn report(figure: &str, times: &mut [Duration], goal: &str) {
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1000.0;
    println!("{figure:<52} {:>7.2} / {:>7.2} ms   {goal}", at(0.5), at(0.99));
}

/// From the act to its line on the disk, synced.
fn disk(folder: &Path) -> Result<(), Failed> {
    let mut journal = Journal::open(&folder.join("anna.jsonl"), "anna")?.journal;
    let mut times = Vec::new();
    for n in 0..500 {
        let answers = [("Wolves should be brought back to the countryside.".to_owned(), n % 2 == 0)].into();
        let act = Act {
            question: QUESTION.into(),
            passage: format!("p{n}"),
            text: "0".repeat(32),
            view: View { answers, ..View::default() },
            took: Some(4_000),
            seen: None,
        };
        let began = Instant::now();
        journal.append(act)?;
        times.push(began.elapsed());
    }
    report("act to disk, p50 / p99 of 500", &mut times, "shown, not bounded: the disk's own");
    Ok(())
}

/// The explorer itself, without a terminal.
struct Stage {
    app: App,
    engine: Engine,
    replies: Receiver<Msg>,
    terminal: Terminal<TestBackend>,
}

impl Stage {
    fn take(&mut self, msg: Msg) {
        for effect in update(&mut self.app, msg) {
            match effect {
                Effect::Start { turn, plan, reach } => self.engine.start_run(turn, plan, reach),
                Effect::Batch(number, batch) => self.engine.batch(number, batch),
                Effect::Label(order) => self.engine.label(order),
                _ => {}
            }
        }
    }

    fn draw(&mut self) -> Result<(), Failed> {
        self.terminal.draw(|frame| draw(&self.app, Theme::of(Look::Terminal), frame))?;
        Ok(())
    }

    fn until(&mut self, reached: impl Fn(&App) -> bool) -> Result<(), Failed> {
        while !reached(&self.app) {
            let msg = self.replies.recv_timeout(Duration::from_secs(60))?;
            self.take(msg);
        }
        Ok(())
    }
}

/// Every passage that the lanes bring up for a question of the sample, a key each; the model weighs them meanwhile.
fn keys(folder: &Path) -> Result<(), Failed> {
    let mut stage = stage(folder, Vec::new())?;
    stage.take(Msg::Key(KeyEvent::from(KeyCode::Char('a'))));
    stage.until(|app| app.labelling.open().is_some())?;
    let count = stage.app.labelling.queue.len();
    press(&mut stage, count, "")
}

/// The explorer on the sample, with the journals of this project.
fn stage(folder: &Path, journals: Vec<PathBuf>) -> Result<Stage, Failed> {
    let start = Start {
        opening: Opening {
            data_dir: folder.join("data"),
            annotator: Some("anna".into()),
            journals,
            ..Opening::default()
        },
        lanes: Recipe::defaults(),
        k: 5,
        source: LabelSource::Auto,
        question: QUESTION.into(),
        perspectives: Vec::new(),
        history: None,
        config: Config::default(),
        config_from: Source::default(),
        depth: Depth::Millions,
        linear: false,
        home: None,
        presenting: false,
    };
    let (send, replies) = mpsc::channel();
    let send_reply: SendReply = Arc::new(move |reply| drop(send.send(Msg::Engine(reply))));
    let engine = Engine::start(start.opening.clone(), &send_reply)?;
    let app = App::new(&start, Size { width: 140, height: 40 });
    let terminal = Terminal::new(TestBackend::new(140, 40))?;
    let mut stage = Stage { app, engine, replies, terminal };
    stage.until(|app| app.settled && app.selected().is_some())?;
    Ok(stage)
}

/// Presses that many keys, each a label.
fn press(stage: &mut Stage, count: usize, of: &str) -> Result<(), Failed> {
    let (mut echo, mut next) = (Vec::new(), Vec::new());
    for n in 0..count {
        let key = ['s', 'o', 'b', '0'][n % 4];
        let began = Instant::now();
        stage.take(Msg::Key(KeyEvent::from(KeyCode::Char(key))));
        stage.draw()?;
        echo.push(began.elapsed());
        stage.until(|app| app.labelling.saving.is_none())?;
        stage.draw()?;
        next.push(began.elapsed());
    }
    report(&format!("key to echo{of}, p50 / p99 of {count}"), &mut echo, "p99 ≤ 16 ms");
    report(&format!("key to the next passage{of}, p50 / p99 of {count}"), &mut next, "with the disk");
    Ok(())
}

/// A project of 50,100 passages on two-sided questions, of which anna and ben have labelled 25,000 each, for both statements.
fn many(folder: &Path) -> Result<(), Failed> {
    let place = folder.join("many");
    let sides =
        |n: usize| [format!("Thing {n} should be banned."), format!("Thing {n} should not be banned.")];
    let questions: Vec<Question> = (0..50)
        .map(|n| Question {
            id: format!("q{n}"),
            text: format!("Should thing {n} be banned?"),
            perspectives: sides(n).to_vec(),
            supports: Some(0),
            ..Question::default()
        })
        .collect();
    let item = |at: usize| Item {
        question: questions[at / 1_002].text.clone(),
        passage: Passage {
            id: format!("p{at}"),
            text: format!("Passage {at} {}", "says some words on the thing and more. ".repeat(18)),
            ..Passage::default()
        },
        ranks: [("bm25".to_owned(), at % 1_002 + 1)].into(),
        ..Item::default()
    };
    let items: Vec<Item> = (0..50_100).map(item).collect();
    let project =
        Project::new("sample".into(), Fingerprint("none".into()), questions, vec!["bm25".into()], 5);
    project.write(&items, &place)?;
    for (by, half) in [("anna", 0), ("ben", 1)] {
        let mut lines = String::new();
        for at in (0..50_000).filter(|at| at % 2 == half) {
            let item = &items[at];
            let answers = sides(at / 1_002).map(|side| (side, at % 3 == 0)).into();
            let view = View { answers, ..View::default() };
            let (question, passage) = (item.question.clone(), item.passage.id.clone());
            let act = Act {
                question,
                passage,
                text: text_hash(&item.passage),
                view,
                took: Some(4_000),
                seen: None,
            };
            lines += &(Entry::new(act, by, Vec::new(), at as u64)?.line()? + "\n");
        }
        std::fs::write(Project::journal(&place, by), lines)?;
    }
    let began = Instant::now();
    let labels = journals(std::slice::from_ref(&place))?.0.decisions().len();
    println!(
        "{:<52} {:>7.0} ms   ≤ 1000 ms",
        format!("{labels} labels read"),
        began.elapsed().as_secs_f64() * 1e3
    );
    let mut stage = stage(folder, vec![place])?;
    let began = Instant::now();
    stage.take(Msg::Key(KeyEvent::from(KeyCode::Char('a'))));
    stage.until(|app| app.labelling.open().is_some())?;
    stage.draw()?;
    let took = began.elapsed().as_secs_f64() * 1e3;
    println!("{:<52} {took:>7.0} ms   ≤ 1000 ms", "their project opened in the explorer");
    press(&mut stage, 60, " among them")
}
