//! Prints every figure of speed, memory and size that the documents claim.
//!
//! ```text
//! cargo bench                                   # on the built-in sample
//! PARALLAX_DATA=FOLDER cargo bench              # also on contentious-wiki below that folder
//! cargo bench --bench claims -- strips verdicts  # these parts alone
//! ```
//!
//! Indices and vectors of the large corpus are stored in `target/claims`, so the second run builds nothing.

use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crossterm::event::{KeyCode, KeyEvent};
use parallax::detect::LabelSource;
use parallax::encode::{Encoder, MiniLm, Role};
use parallax::engine::Engine;
use parallax::engine::nuggets::THRESHOLD;
use parallax::engine::{
    self, Event, LaneQuery, Lists, Opening, Query, Recipe, Run, Setup, model_threads, rank,
};
use parallax::measure::nuggets::agglomerate;
use parallax::measure::seeded::SplitMix64;
use parallax::tui::app::App;
use parallax::tui::config::{Config, Source};
use parallax::tui::draw::draw;
use parallax::tui::message::{Effect, Msg};
use parallax::tui::theme::{Depth, Look, Theme};
use parallax::tui::update::{refresh, update, update_in_burst};
use parallax::tui::{Size, Start};
use parallax::work::{Stop, on_all};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

const ROWS: NonZero<u16> = NonZero::new(40).unwrap();
const COLUMNS: NonZero<u16> = NonZero::new(140).unwrap();
const QUESTION: &str = "Should wolves be brought back to the countryside?";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // `cargo test --benches` only asks whether this builds.
    if std::env::args().any(|arg| arg == "--test") {
        return Ok(());
    }
    let named: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    println!("{:<58} {:>22}   goal", "figure", "measured");
    type Measure = fn() -> Result<(), Box<dyn std::error::Error>>;
    let parts: [(&str, Measure); 9] = [
        ("size", size),
        ("start", first_frame),
        ("keys", key_to_frame),
        ("switches", toggles),
        ("strips", strips),
        ("encoder", encoding),
        ("verdicts", verdicts),
        ("clustering", clustering),
        ("memory", || memory("peak memory, one question on the sample", &[], QUESTION, "≤ 300 MB")),
    ];
    if let Some(other) =
        named.iter().find(|name| parts.iter().all(|(part, _)| part != name) && *name != "wiki")
    {
        let known: Vec<&str> = parts.iter().map(|(part, _)| *part).collect();
        return Err(format!("no part is called `{other}`; there are {}, wiki", known.join(", ")).into());
    }
    let wanted = |part: &str| named.is_empty() || named.iter().any(|name| name == part);
    for (_, measure) in parts.iter().filter(|(part, _)| wanted(part)) {
        measure()?;
    }
    if !wanted("wiki") {
        return Ok(());
    }
    match std::env::var_os("PARALLAX_DATA") {
        Some(data) => wiki(&PathBuf::from(data).join("contentious-wiki"))?,
        None => println!("contentious-wiki: skipped: no data (PARALLAX_DATA is not set)"),
    }
    Ok(())
}

fn report(figure: &str, measured: &str, goal: &str) {
    println!("{figure:<58} {measured:>22}   {goal}");
}

fn binary() -> &'static str {
    env!("CARGO_BIN_EXE_parallax")
}

fn size() -> Result<(), Box<dyn std::error::Error>> {
    let bytes = std::fs::metadata(binary())?.len();
    report("binary", &format!("{:.1} MB", bytes as f64 / 1e6), "≤ 140 MB");
    Ok(())
}

fn percentile(times: &mut [Duration], share: f64) -> f64 {
    times.sort_unstable();
    let place = ((times.len() as f64 * share).ceil() as usize).clamp(1, times.len());
    times[place - 1].as_secs_f64() * 1e3
}

/// From the start of the process to its first output in a pseudo-terminal, the whole first frame included.
fn first_frame() -> Result<(), Box<dyn std::error::Error>> {
    use std::io::Read;
    let mut times = Vec::new();
    for _ in 0..11 {
        let folder = tempfile::tempdir()?;
        let size = portable_pty::PtySize { rows: 40, cols: 140, pixel_width: 0, pixel_height: 0 };
        let pair = portable_pty::native_pty_system().openpty(size)?;
        let mut command = portable_pty::CommandBuilder::new(binary());
        command.arg("--data-dir");
        command.arg(folder.path());
        command.env("TERM", "xterm-256color");
        let began = Instant::now();
        let mut child = pair.slave.spawn_command(command)?;
        let mut reader = pair.master.try_clone_reader()?;
        let mut screen = vt100::Parser::new(ROWS, COLUMNS, 0);
        let mut bytes = [0; 65_536];
        // The footer is drawn last.
        while !screen.screen().contents().contains("to the lanes") {
            let read = reader.read(&mut bytes)?;
            screen.process(&bytes[..read]);
        }
        times.push(began.elapsed());
        child.kill()?;
        child.wait()?;
    }
    report(
        "first frame after start, sample (median of 11)",
        &format!("{:.0} ms", percentile(&mut times, 0.5)),
        "≤ 100 ms",
    );
    Ok(())
}

fn opening(folder: &Path) -> Opening {
    Opening { data_dir: folder.into(), ..Opening::default() }
}

/// Keys every 15 ms while all lanes and the detector work on one new question after another.
fn key_to_frame() -> Result<(), Box<dyn std::error::Error>> {
    enum Event {
        Key(Instant, KeyEvent),
        Other(Box<Msg>),
        End,
    }
    let folder = tempfile::tempdir()?;
    let start = asked(folder.path(), QUESTION);
    let (send, receive) = mpsc::channel();
    let replies = send.clone();
    let engine = Engine::start(
        start.opening.clone(),
        &(std::sync::Arc::new(move |reply| drop(replies.send(Event::Other(Box::new(Msg::Engine(reply))))))
            as parallax::engine::SendReply),
    )?;
    let questions: Vec<String> = parallax::question::set::builtin(parallax::corpus::sample::QUESTIONS)
        .into_iter()
        .map(|question| question.text)
        .collect();
    std::thread::spawn(move || {
        // The first question is asked when the corpus opens; then a new one every 40 keys.
        for question in questions {
            for i in 0..40 {
                std::thread::sleep(Duration::from_millis(15));
                let key = KeyCode::Char(if i % 2 == 0 { 'j' } else { 'k' });
                let _ = send.send(Event::Key(Instant::now(), KeyEvent::from(key)));
            }
            let _ = send.send(Event::Key(Instant::now(), KeyEvent::from(KeyCode::Char('/'))));
            let _ = send.send(Event::Other(Box::new(Msg::Key(KeyEvent::new(
                KeyCode::Char('u'),
                crossterm::event::KeyModifiers::CONTROL,
            )))));
            let _ = send.send(Event::Other(Box::new(Msg::Pasted(question))));
            let _ = send.send(Event::Key(Instant::now(), KeyEvent::from(KeyCode::Enter)));
        }
        let _ = send.send(Event::End);
    });
    let mut app = App::new(&start, Size { width: 140, height: 40 });
    let mut terminal = Terminal::new(TestBackend::new(140, 40))?;
    let mut times = Vec::new();
    let mut verdicts = 0;
    'events: while let Ok(first) = receive.recv() {
        let mut pressed = Vec::new();
        for event in std::iter::once(first).chain(receive.try_iter().take(255)) {
            let msg = match event {
                Event::Key(at, key) => {
                    pressed.push(at);
                    Msg::Key(key)
                }
                Event::Other(msg) => *msg,
                Event::End => break 'events,
            };
            verdicts += usize::from(matches!(msg, Msg::Engine(parallax::engine::Reply::Verdict { .. })));
            for effect in update(&mut app, msg) {
                carry_out(&engine, effect);
            }
        }
        terminal.draw(|frame| draw(&app, Theme::of(Look::Terminal), frame))?;
        times.extend(pressed.iter().map(Instant::elapsed));
    }
    let figures = format!("{:.1} / {:.1} ms", percentile(&mut times, 0.5), percentile(&mut times, 0.99));
    report(
        &format!("key to frame p50 / p99 ({} keys beside {verdicts} verdicts)", times.len()),
        &figures,
        "p99 ≤ 16 ms",
    );
    Ok(())
}

fn carry_out(engine: &Engine, effect: Effect) {
    match effect {
        Effect::Start { turn, plan, reach } => engine.start_run(turn, plan, reach),
        Effect::Study(study) => engine.study(*study),
        _ => {}
    }
}

/// The explorer on the sample with a question.
fn asked(folder: &Path, question: &str) -> Start {
    Start {
        opening: opening(folder),
        lanes: Recipe::defaults(),
        k: 5,
        source: LabelSource::Model,
        question: question.into(),
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

/// From the press of a switch on the MiniLM lane to the next frame, and to the frame with the lane's new order; every verdict of
/// the question is there.
fn toggles() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let start = asked(folder.path(), "");
    let (send, receive) = mpsc::channel();
    let send_reply: parallax::engine::SendReply =
        std::sync::Arc::new(move |reply| drop(send.send(Msg::Engine(reply))));
    let engine = Engine::start(start.opening.clone(), &send_reply)?;
    let mut app = App::new(&start, Size { width: 140, height: 40 });
    let mut terminal = Terminal::new(TestBackend::new(140, 40))?;
    let key = |c| Msg::Key(KeyEvent::from(KeyCode::Char(c)));
    let mut stale = false;
    let mut take = |app: &mut App, msg: Msg| {
        let effects = update_in_burst(app, msg, &mut stale);
        effects.into_iter().for_each(|effect| carry_out(&engine, effect));
    };
    while !matches!(app.corpus, parallax::tui::app::Corpus::Open(_)) {
        take(&mut app, receive.recv()?);
    }
    let questions = parallax::question::set::builtin(parallax::corpus::sample::QUESTIONS);
    for (c, name) in [('m', "MMR"), ('p', "projection")] {
        let (mut frames, mut orders) = (Vec::new(), Vec::new());
        for question in questions.iter().filter(|question| question.perspectives.len() == 2) {
            for msg in [
                key('/'),
                Msg::Key(KeyEvent::new(KeyCode::Char('u'), crossterm::event::KeyModifiers::CONTROL)),
                Msg::Pasted(question.text.clone()),
                Msg::Key(KeyEvent::from(KeyCode::Enter)),
            ] {
                take(&mut app, msg);
            }
            while !app.settled {
                take(&mut app, receive.recv()?);
            }
            app.lane = 1;
            let pressed = Instant::now();
            take(&mut app, key(c));
            terminal.draw(|frame| draw(&app, Theme::of(Look::Terminal), frame))?;
            frames.push(pressed.elapsed());
            while app.lanes[1].state != parallax::tui::app::LaneState::Ready {
                take(&mut app, receive.recv()?);
                receive.try_iter().for_each(|msg| take(&mut app, msg));
            }
            refresh(&mut app);
            terminal.draw(|frame| draw(&app, Theme::of(Look::Terminal), frame))?;
            orders.push(pressed.elapsed());
            // Off again for the next question.
            take(&mut app, key(c));
            while !app.settled {
                take(&mut app, receive.recv()?);
            }
        }
        let figures = format!("{:.1} / {:.1} ms", percentile(&mut frames, 0.5), percentile(&mut frames, 1.0));
        report(&format!("{name} switched: next frame, p50 / max"), &figures, "≤ 16 ms");
        let figures = format!("{:.1} / {:.1} ms", percentile(&mut orders, 0.5), percentile(&mut orders, 1.0));
        report(&format!("{name} switched: new order on screen, p50 / max"), &figures, "≤ 50 ms");
    }
    Ok(())
}

/// From the Enter key of a question to the frame with all lanes, their colours and MRecall, and the strips of all three wordings in every lane.
/// Each question is asked once, in a data folder without verdicts. The first one also waits for the models to be read. Deeper ranks, which are judged
/// until every side is found, may still be open.
fn strips() -> Result<(), Box<dyn std::error::Error>> {
    for (source, name, goal) in
        [(LabelSource::Gold, "gold", "≤ 700 ms"), (LabelSource::Model, "carried model", "≤ 2500 ms")]
    {
        let folder = tempfile::tempdir()?;
        let start = Start { source, ..asked(folder.path(), "") };
        let (send, receive) = mpsc::channel();
        let send_reply: parallax::engine::SendReply =
            std::sync::Arc::new(move |reply| drop(send.send(Msg::Engine(reply))));
        let engine = Engine::start(start.opening.clone(), &send_reply)?;
        let mut app = App::new(&start, Size { width: 140, height: 40 });
        let mut terminal = Terminal::new(TestBackend::new(140, 40))?;
        let mut stale = false;
        let mut take = |app: &mut App, msg: Msg| {
            let effects = update_in_burst(app, msg, &mut stale);
            effects.into_iter().for_each(|effect| carry_out(&engine, effect));
        };
        while !matches!(app.corpus, parallax::tui::app::Corpus::Open(_)) {
            take(&mut app, receive.recv()?);
        }
        let questions = parallax::question::set::builtin(parallax::corpus::sample::QUESTIONS);
        let mut times = Vec::new();
        for question in questions.iter().filter(|question| question.perspectives.len() == 2) {
            app.typing = true;
            app.line = question.text.clone().into();
            let pressed = Instant::now();
            take(&mut app, Msg::Key(KeyEvent::from(KeyCode::Enter)));
            let mut shown = None;
            while !app.settled {
                take(&mut app, receive.recv()?);
                receive.try_iter().for_each(|msg| take(&mut app, msg));
                refresh(&mut app);
                terminal.draw(|frame| draw(&app, Theme::of(Look::Terminal), frame))?;
                if shown.is_none() && whole(&app) {
                    shown = Some(pressed.elapsed());
                }
            }
            let shown =
                shown.ok_or_else(|| format!("`{}` has no three strips in every lane", question.text))?;
            times.push(shown);
        }
        let first = times[0].as_secs_f64() * 1e3;
        let figures = format!("{:.0} / {:.0} ms", percentile(&mut times, 0.5), percentile(&mut times, 1.0));
        report(&format!("question → lanes, MRecall, three strips, {name}, p50 / max"), &figures, goal);
        report(&format!("the first of them, {name}, with the models read"), &format!("{first:.0} ms"), goal);
    }
    Ok(())
}

/// Every lane has the figures of its first k, and those of all three wordings.
fn whole(app: &App) -> bool {
    app.lanes.iter().all(|lane| {
        let asked = lane.figures.asked.as_ref();
        let strips = asked.is_some_and(|asked| asked.iter().all(|own| own.lean.is_some()));
        strips && lane.figures.now.as_ref().is_some_and(|figures| figures.complete())
    })
}

/// Passages cut to 128 tokens, one sequence an inference, on all cores.
fn encoding() -> Result<(), Box<dyn std::error::Error>> {
    let encoder = MiniLm::builtin()?;
    // Some 128 tokens with the two special ones.
    let text = "the keeper walked from one gate to the next and wrote down what she saw ".repeat(9);
    encoder.encode(&text, Role::Passage)?;
    let texts: Vec<String> = (0..256).map(|_| text[..text.len() - 80].to_owned()).collect();
    let began = Instant::now();
    on_all(&model_threads()?, texts.len(), &Stop::never(), |i| {
        encoder.encode(&texts[i], Role::Passage).is_ok()
    });
    let rate = texts.len() as f64 / began.elapsed().as_secs_f64();
    report("MiniLM, texts of some 128 tokens", &format!("{rate:.0} texts/s"), "≥ 75 texts/s");
    Ok(())
}

/// Ranking and judging the top 5 of three lanes, nothing cached.
fn verdicts() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let setup = Setup::open(&opening(folder.path()), &|_| (), &Stop::never())?;
    setup.detector()?;
    setup.vectors(None)?;
    let (mut times, mut pairs, mut spent) = (Vec::new(), 0, Duration::ZERO);
    for question in &setup.questions {
        let began = Instant::now();
        let query =
            Query { question: question.clone(), lanes: Recipe::defaults(), k: 5, source: LabelSource::Model };
        let mut run = Run::new(query, engine::Depth::Top, Lists::default());
        run.rank(&setup, &|_| true, &Stop::never(), &|_| ());
        let (judging, judged) = (Instant::now(), AtomicUsize::new(0));
        run.judge(&setup, &Stop::never(), &|event| {
            let verdict = matches!(event, Event::Judged(judged) if judged.known.model.is_some());
            judged.fetch_add(usize::from(verdict), Ordering::Relaxed);
        })?;
        (pairs, spent) = (pairs + judged.into_inner(), spent + judging.elapsed());
        if question.perspectives.len() == 2 {
            times.push(began.elapsed());
        }
    }
    let figures = format!("{:.0} / {:.0} ms", percentile(&mut times, 0.5), percentile(&mut times, 1.0));
    report("question → all verdicts of 3 lanes × 5, cold, p50 / max", &figures, "≤ 1000 ms");
    let rate = pairs as f64 / spent.as_secs_f64();
    report("detector, sample passages", &format!("{rate:.0} pairs/s"), "≥ 40 pairs/s");
    Ok(())
}

/// Clustering rows around 500 centres, as the sentences of a question are clustered into key points.
fn clustering() -> Result<(), Box<dyn std::error::Error>> {
    let mut draw = SplitMix64::new(1);
    let mut noise = || (0..12).map(|_| draw.below(1_000_001) as f32 / 1e6).sum::<f32>() - 6.0;
    let mut row = |centre: &[f32], far: f32| -> Vec<f32> {
        let row: Vec<f32> = centre.iter().map(|x| x + far * noise()).collect();
        let length = row.iter().map(|x| x * x).sum::<f32>().sqrt();
        row.iter().map(|x| x / length).collect()
    };
    let centres: Vec<Vec<f32>> = (0..500).map(|_| row(&[0.0; 384], 1.0)).collect();
    let rows: Vec<Vec<f32>> = (0..10_000).map(|i| row(&centres[i % 500], 0.04)).collect();
    let began = Instant::now();
    let clusters = agglomerate(&rows, THRESHOLD, &|_| (), &Stop::never())?;
    let took = began.elapsed().as_secs_f64();
    let count = clusters.iter().max().map_or(0, |last| last + 1);
    report(
        &format!("clustering 10,000 sentences into {count} key points"),
        &format!("{took:.1} s"),
        "≤ 30 s",
    );
    Ok(())
}

/// The highest resident set, mapped pages included, of the explorer answering one question.
fn memory(
    figure: &str,
    args: &[&std::ffi::OsStr],
    question: &str,
    goal: &str,
) -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let mut command = Command::new(binary());
    command
        .arg("frame")
        .arg("--timeout")
        .arg("600")
        .arg("--keys")
        .arg(format!("{question}<Enter><Wait><Enter>"));
    command.args(args);
    if args.is_empty() {
        command.arg("--data-dir").arg(folder.path());
    }
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let mut peak = 0u64;
    while child.try_wait()?.is_none() {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
        peak = peak.max(kilobytes.unwrap_or(0));
        std::thread::sleep(Duration::from_millis(2));
    }
    let measured =
        if peak > 0 { format!("{:.0} MB", peak as f64 * 1024.0 / 1e6) } else { "not on this system".into() };
    report(figure, &measured, goal);
    Ok(())
}

fn wiki(folder: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/claims");
    let opening = Opening {
        corpus: Some(folder.join("articles")),
        questions: Some(folder.join("questions.jsonl")),
        data_dir: home.clone(),
        ..Opening::default()
    };
    let began = Instant::now();
    let setup = Setup::open(&opening, &|_| (), &Stop::never())?;
    let opened = began.elapsed();
    let passages = setup.corpus.len();
    report(
        &format!("open {passages} wiki passages (import and index if new)"),
        &format!("{:.2} s", opened.as_secs_f64()),
        "",
    );
    let began = Instant::now();
    setup.embed(None, &|_| (), &Stop::never())?;
    report(
        "embed them (nothing to do if done before)",
        &format!("{:.1} s", began.elapsed().as_secs_f64()),
        "",
    );
    for (recipe, goal) in Recipe::defaults().into_iter().zip(["p50 ≤ 2, p99 ≤ 10 ms", "", ""]) {
        let mut times = lane_times(&setup, &recipe)?;
        let figures = format!("{:.2} / {:.2} ms", percentile(&mut times, 0.5), percentile(&mut times, 0.99));
        report(&format!("{recipe} over the wiki passages p50 / p99"), &figures, goal);
    }
    drop(setup);
    let question = "Should violent video games be banned?";
    let args: Vec<&std::ffi::OsStr> = vec![
        "--corpus".as_ref(),
        opening.corpus.as_deref().map(Path::as_os_str).unwrap_or_default(),
        "--data-dir".as_ref(),
        home.as_os_str(),
    ];
    memory("peak memory, one question on the wiki passages", &args, question, "≤ 600 MB")?;
    Ok(())
}

fn lane_times(setup: &Setup, recipe: &Recipe) -> Result<Vec<Duration>, Box<dyn std::error::Error>> {
    let mut times = Vec::new();
    for round in 0..6 {
        for question in &setup.questions {
            let began = Instant::now();
            rank(setup, recipe, LaneQuery::neutral(question), &mut Lists::default(), &Stop::never())?;
            // The first round warms the page cache.
            if round > 0 {
                times.push(began.elapsed());
            }
        }
    }
    Ok(times)
}
