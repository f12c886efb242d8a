//! Frames: snapshots of glyphs and styles, and every size without a panic.

mod instruments;
mod lanes;
mod looks;
mod narrow;

use std::sync::Arc;
use std::time::Duration;

use parallax::corpus::PassageIx;
use parallax::corpus::store::Fields;
use parallax::detect::{DetectError, EvidenceSentence, LabelSource, PairLabels};
use parallax::engine::edit::Drafted;
use parallax::engine::recipe::{Diversify, Toward};
use parallax::engine::{
    Compared, Explanation, Figures, Framing, List, Point, Projected, Share, Step, Sycophancy, Tally, Trace,
};
use parallax::engine::{ReadEvent, Reply, Sources};
use parallax::expand::{Added, AddedFrom, Cost, Expansion, Form, Kind, Queries};
use parallax::llm::Tokens;
use parallax::measure::bias::SideShares;
use parallax::project::Variant;
use parallax::question::{By, Question};
use parallax::read::Answer;
use parallax::read::incremental::Reordered;
use parallax::report::marks::Glyphs;
use parallax::rerank::Choice;
use parallax::tui::app::{App, Corpus, LaneState};
use parallax::tui::frame;
use parallax::tui::keymap::Screen;
use parallax::tui::message::Msg;
use parallax::tui::theme::{Depth, Look, Theme};
use parallax::tui::update::update;
use parallax::work::{Job, Progress};
use tui_input::Input;

use crate::stage::{
    self, FOREIGN, PASSAGES, QUESTION, asked, empty, many_sided, press, ranking, said, size, with_lists,
};

const COLOURED: Theme = Theme::of(Look::Terminal);

fn looks(name: &str, app: &App, theme: Theme) {
    let text = frame(app, theme).unwrap().dump(true);
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false, snapshot_path => "../snapshots" }, {
        insta::assert_snapshot!(name, text);
    });
}

fn job(job: Job, done: u64, total: u64, printed: &str) -> (Progress, String) {
    (Progress { job, done, total }, printed.to_owned())
}

fn foreign(width: u16, height: u16) -> App {
    let mut app = with_lists(empty(width, height), &FOREIGN, stage::question());
    for (at, support) in [0.95, 0.92, 0.88, 0.3].into_iter().enumerate() {
        app.judgments.write(PassageIx(at as u32), 0, said(support));
        app.judgments.write(PassageIx(at as u32), 1, said(0.1));
    }
    app
}

fn reading(width: u16, height: u16) -> App {
    let mut app = asked(width, height);
    app.judgments.write(PassageIx(0), 1, PairLabels { gold: Some(true), ..said(0.02) });
    press(&mut app, "<Enter>");
    let text = PASSAGES[0].2;
    let start = text.find("Zoos should be closed").unwrap();
    app.reading
        .evidence
        .insert((PassageIx(0), 0), Some(EvidenceSentence { at: start..text.len(), fall: Some(0.53) }));
    app.reading.evidence.insert((PassageIx(0), 1), None);
    app
}

fn editing(width: u16, height: u16) -> App {
    let mut app = asked(width, height);
    press(&mut app, "i<Down><End><BS> at all.");
    app
}

fn typing(width: u16, height: u16) -> App {
    let mut app = asked(width, height);
    app.typing = true;
    app.line = Input::new("zoos".into());
    app.completions =
        vec![QUESTION.into(), "Are zoos good for children?".into(), "動物園は必要か、zoos?".into()];
    app.completion = Some(1);
    app
}

fn loading(width: u16, height: u16) -> App {
    let mut app = asked(width, height);
    app.settled = false;
    app.lanes[1].state = LaneState::Waiting;
    app.lanes[2].state = LaneState::Waiting;
    app.lanes[2].ranking = Default::default();
    app
}

fn failed(width: u16, height: u16) -> App {
    let mut app = asked(width, height);
    app.lanes[1].state = LaneState::Failed("the model could not be run: the graph refused it".into(), None);
    app.lanes[1].ranking = Default::default();
    app.lanes[2].state =
        LaneState::Failed("the passages are still being embedded".into(), Some(Job::Embedding));
    app.lanes[2].ranking = Default::default();
    app.jobs = vec![job(Job::Embedding, 12_000, 36_000, "embedding 12,000/36,000 · 81/s · 4 min 56 s left")];
    app
}

fn failed_corpus(width: u16, height: u16) -> App {
    let mut app = App::new(&stage::start(), size(width, height));
    let reason = "corpus.jsonl:3: expected a JSON object with `_id`, `text` and perhaps `title` and `metadata`, found `\u{1b}[31m{`\nnothing was taken from it; mend the lines above and try again";
    app.corpus = Corpus::Failed(reason.into());
    app
}

fn opening(width: u16, height: u16) -> App {
    let mut app = App::new(&stage::start(), size(width, height));
    app.jobs = vec![job(Job::Importing, 4_000, 0, "importing 4,000 · 60,000/s")];
    app
}

fn help(width: u16, height: u16) -> App {
    let mut app = asked(width, height);
    press(&mut app, "?");
    app
}

/// No statements can be derived from it.
fn without_statements(width: u16, height: u16) -> App {
    let question = Question { text: "Who pays for zoos?".into(), ..Question::default() };
    let mut app = with_lists(empty(width, height), &PASSAGES, question);
    app.by = By::None;
    app
}

/// The same after some keys.
fn after(mut app: App, keys: &str) -> App {
    press(&mut app, keys);
    app
}

/// The same with other keys.
fn rebound(width: u16, height: u16) -> App {
    let text = "[keys]\npreset = 'vim'\nhelp = '<F1>'\n[keys.lanes]\nedit-question = '<C-o>'\nedit-statements = 'I'\n";
    let (config, problems) = parallax::tui::config::read(text);
    assert_eq!(problems, []);
    let mut app = without_statements(width, height);
    update(&mut app, Msg::Configured(Ok(config)));
    app
}

/// The first lane re-ranked: rank moves, changed measures, a warning.
fn switched(width: u16, height: u16) -> App {
    let mut app = asked(width, height);
    press(&mut app, "m");
    let mut list = List::clone(&ranking(&PASSAGES, &[1, 0, 6, 3, 2], 12.5));
    list.trace.note("MMR compares passages by MiniLM, which this lane also ranks by".into());
    let (turn, took) = (app.turn, Duration::from_millis(3));
    update(&mut app, Msg::Engine(Reply::LaneReady { turn, lane: 0, ranking: Arc::new(list), took }));
    app
}

/// The second lane being tuned, with figures of the first forms and a list with its steps.
fn tuning(width: u16, height: u16, tabs: usize) -> App {
    let mut app = asked(width, height);
    press(&mut app, &format!("<Tab>t{}jj", "<Tab>".repeat(tabs)));
    let figures: Vec<_> =
        app.lanes.iter().map(|lane| Figures::of(&lane.ranking, &app.judgments, &app.question, 5)).collect();
    let mut tallies = vec![Tally::default(); app.tuning.forms.len()];
    for (tally, figures) in tallies.iter_mut().zip(&figures) {
        let of = figures.as_ref().map_or(0, |figures| figures.judged);
        tally.add(figures.as_ref(), None, Sources { judged: of, of: 5, by_model: of });
    }
    tallies[1].add(None, None, Sources::default());
    let number = app.tuning.number;
    update(&mut app, Msg::Engine(Reply::Swept { number, tallies: Ok(tallies), ended: false }));
    let mut list = List::clone(&ranking(&PASSAGES, &[5, 0, 1, 2], 0.7));
    list.trace = printed();
    let (turn, took) = (app.turn, Duration::from_millis(3));
    update(&mut app, Msg::Engine(Reply::LaneReady { turn, lane: 1, ranking: Arc::new(list), took }));
    app
}

/// A trace with every step that the screen draws.
fn printed() -> Trace {
    let reply = "No cage is kind. \u{1b}[31mBears pace.".to_owned();
    let added = [
        Added {
            sentences: vec![(0..16, Some(PassageIx(0))), (17..reply.len(), None)],
            text: reply,
            name: Some("Welfare".into()),
            source: AddedFrom::Model { model: "llama".into(), recorded: true, sample: 0 },
        },
        Added {
            text: "Zoos should not be banned.".into(),
            name: None,
            source: AddedFrom::Statement(1),
            sentences: Vec::new(),
        },
    ];
    let expansion = Expansion {
        kind: Kind::Csqe,
        form: Form::CsqeByModel,
        queries: Queries::Each(vec![QUESTION.into()]),
        added: added.to_vec(),
        notes: Vec::new(),
        cost: Cost { replies: 2, recorded: 0, tokens: Some(Tokens { prompt: 812, reply: 96 }) },
    };
    let point = |i: u32| {
        let at = i as f32 / 10.0;
        (PassageIx(i), Point { plain: 0.7 - at, score: 0.6 - at, before: at - 0.3, after: 0.3 - at })
    };
    let projected = Projected {
        asked: Variant::PapPlus,
        ran: Variant::PapPlus,
        toward: Toward::Perspective(1),
        q: "a passage that opposes the statement: Zoos should be banned.".into(),
        r: "Zoos should be banned.".into(),
        p: Some("a passage that opposes the statement".into()),
        points: (0..6).map(point).collect(),
    };
    let choices = [2, 0, 1, 3].map(|passage| Choice {
        passage,
        relevance: 1.0 - passage as f32 / 10.0,
        gains: vec![0.31, 0.02],
        value: 0.66,
    });
    let diversify = Step::Diversify {
        method: Diversify::Xquad,
        weight: 0.5,
        choices: choices.to_vec(),
        pool: (0..4).map(PassageIx).collect(),
        judged: 8,
    };
    Trace {
        steps: vec![Step::Expand(Arc::new(expansion)), Step::Project(Box::new(projected)), diversify],
        notes: vec!["2 of 4 replies are used".into()],
    }
}

/// The first lane asked in three wordings, the second failed, the third on its way.
fn sycophancy_screen(width: u16, height: u16) -> App {
    let mut app = asked(width, height);
    press(&mut app, "y");
    let lists = [&[0, 1, 2, 3, 4][..], &[0, 3, 5, 6], &[1, 5, 4]];
    let lists = lists.map(|order| ranking(&PASSAGES, order, 1.0));
    let shares = [(0.4, 0.4), (0.6, 0.4), (0.0, 0.6)].map(|(p, n)| Some(SideShares { p, n }));
    let measured = Sycophancy::of(&app.question, app.k, lists, app.judgments.clone(), None);
    let sycophancy = Sycophancy { shares, ..measured };
    let number = app.sycophancy_screen.number;
    update(
        &mut app,
        Msg::Engine(Reply::Sycophancy { number, lane: 0, sycophancy: Ok(Arc::new(sycophancy)) }),
    );
    let failed = Err("the model could not be run".into());
    update(&mut app, Msg::Engine(Reply::Sycophancy { number, lane: 1, sycophancy: failed }));
    app
}

/// The first lane asked in all wordings, of which each has another order, the second failed, the third on its way.
fn framing_lab(width: u16, height: u16) -> App {
    let mut app = asked(width, height);
    press(&mut app, "ywj");
    let orders = [&[0, 1, 2, 3, 4][..], &[0, 3, 5, 6], &[1, 5, 4], &[0, 1, 2, 3, 4]];
    let words = app.sycophancy_screen.lab.wordings.clone();
    let lists = words.into_iter().enumerate().map(|(i, framed)| {
        let list = framed.text.is_ok().then(|| ranking(&PASSAGES, orders[i % orders.len()], 1.0));
        (framed, list)
    });
    let framing = Framing::of(&app.question, app.k, lists.collect(), app.judgments.clone());
    let framing = Framing { negation: Some(0.31), exclusion: Some(0.0), ..framing };
    let number = app.sycophancy_screen.lab.number;
    update(&mut app, Msg::Engine(Reply::Framing { number, lane: 0, framing: Ok(Arc::new(framing)) }));
    let failed = Err("the model could not be run".into());
    update(&mut app, Msg::Engine(Reply::Framing { number, lane: 1, framing: failed }));
    app
}

/// The first passage without its first sentence: score and rank fell, and the model is less sure.
fn what_if(width: u16, height: u16) -> App {
    let mut app = asked(width, height);
    press(&mut app, "<Enter>c");
    let first = app.reading.editor.number;
    let judged = |p: f32, other: f32| {
        let mut judgments = app.judgments.clone();
        judgments.source = LabelSource::Model;
        judgments.write(PassageIx(0), 0, said(p));
        judgments.write(PassageIx(0), 1, said(other));
        Some(Ok(Arc::new(judgments)))
    };
    let (was, is) = (judged(0.94, 0.02), judged(0.8, 0.05));
    let drafted = |score, rank| Some(Ok(Drafted { score, rank: Some(rank), depth: 100 }));
    press(&mut app, "<Down>");
    let number = app.reading.editor.number;
    let before = Reply::Edited { number: first, original: true, scored: drafted(3.9, 1), judged: was };
    update(&mut app, Msg::Engine(before));
    let now = Reply::Edited { number, original: false, scored: drafted(2.81, 4), judged: is };
    update(&mut app, Msg::Engine(now));
    app
}

/// Two questions of three compared.
fn comparing(width: u16, height: u16) -> App {
    let mut app = asked(width, height);
    if let Corpus::Open(opened) = &mut app.corpus {
        let question = opened.questions[0].clone();
        opened.questions.push(Question {
            text: "動物園は必要か、動物園は必要か、動物園は必要か？".into(),
            ..question.clone()
        });
        opened.questions.push(question);
    }
    press(&mut app, "c");
    for (i, orders) in [[&[0, 1, 2][..], &[5, 6], &[2]], [&[3], &[0, 4], &[1, 0]]].into_iter().enumerate() {
        let lists = orders.map(|order| ranking(&PASSAGES, order, 1.0));
        let lists: Vec<_> = lists.iter().map(|list| Some(&list[..])).collect();
        let compared = Compared::of(&app.question, 5, &lists, &app.judgments);
        let (number, compared) = (app.comparing.number, Ok(compared));
        update(&mut app, Msg::Engine(Reply::Compared { number, question: i, compared }));
    }
    app
}

/// Two fields counted; the first is shown.
fn biased(width: u16, height: u16) -> App {
    let mut app = asked(width, height);
    press(&mut app, "F");
    update(&mut app, Msg::Engine(Reply::Fields(Arc::new(stage::fields()))));
    app
}

/// The same over a set whose first question asks for a voice.
fn biased_set(width: u16, height: u16) -> App {
    let mut app = biased(width, height);
    if let Corpus::Open(opened) = &mut app.corpus {
        let question = opened.questions[0].clone();
        opened.questions[0].text = "What does the op-ed say of zoos?".into();
        opened.questions.extend([question.clone(), question]);
    }
    press(&mut app, "o");
    for (i, orders) in [[&[0, 1, 2][..], &[5, 6], &[2]], [&[3], &[0, 4], &[1, 0]]].into_iter().enumerate() {
        let lists = orders.map(|order| ranking(&PASSAGES, order, 1.0));
        let lists: Vec<_> = lists.iter().map(|list| Some(&list[..])).collect();
        let compared = Ok(Compared::of(&app.question, 5, &lists, &app.judgments));
        let number = app.comparing.number;
        update(&mut app, Msg::Engine(Reply::Compared { number, question: i, compared }));
    }
    app
}

/// A list that was read at every k, one passage dropped and one moved before.
fn answering(width: u16, height: u16) -> App {
    let mut app = asked(width, height);
    stage::give_reader(&mut app, "llama-3", false);
    app.question.answers = vec!["yes".into()];
    press(&mut app, "rJjjjx");
    press(&mut app, "<Enter>");
    for (k, text) in [(1, "Yes"), (2, "No"), (3, "I'm sorry, no."), (4, "yes")] {
        let answer = Answer { text: text.into(), cut: usize::from(k == 3), ..Answer::default() };
        stage::heard(&mut app, ReadEvent::Answer(k, answer));
    }
    stage::heard(&mut app, ReadEvent::Ended(None));
    press(&mut app, "o");
    stage::heard(&mut app, ReadEvent::Reordered(Reordered { same: 7, of: 10 }));
    stage::heard(&mut app, ReadEvent::Ended(None));
    press(&mut app, "w");
    stage::heard(&mut app, ReadEvent::Attention(vec![0.125, 0.5, 0.25, 0.125]));
    stage::heard(&mut app, ReadEvent::Ended(None));
    app
}

/// The same without a reader.
fn stances(width: u16, height: u16) -> App {
    let mut app = asked(width, height);
    press(&mut app, "r");
    app
}

/// All of 1..=20 × 1..=12, then in steps up to 200 × 60.
fn sizes() -> impl Iterator<Item = (u16, u16)> {
    let small = (1..=20).flat_map(|width| (1..=12).map(move |height| (width, height)));
    let large =
        (1..=200).step_by(13).flat_map(|width| (1..=60).step_by(9).map(move |height| (width, height)));
    let edges =
        [(200, 60), (200, 1), (1, 60), (31, 13), (32, 13), (64, 20), (96, 20), (128, 20), (47, 8), (48, 8)];
    small.chain(large).chain(edges)
}

fn draws_every_size(stage: impl Fn(u16, u16) -> App) {
    for glyphs in [Glyphs::Shapes, Glyphs::Ascii] {
        let mut resized = stage(80, 24);
        resized.glyphs = glyphs;
        for (width, height) in sizes() {
            update(&mut resized, Msg::Resized(size(width, height)));
            let dump = frame(&resized, COLOURED).unwrap().dump(false);
            assert_eq!(dump.lines().count(), usize::from(height), "{width}x{height}");
        }
    }
    for (width, height) in sizes().step_by(7) {
        frame(&stage(width, height), COLOURED).unwrap();
    }
}

/// A passage with evidence marked and a perspective chosen, not yet kept.
fn labelling(width: u16, height: u16) -> App {
    let mut app = crate::labelling::open(width, height);
    press(&mut app, "evlll<Enter>1");
    app
}

fn looking_for_an_action(width: u16, height: u16) -> App {
    let mut app = asked(width, height);
    press(&mut app, ":re-rank<Down>");
    app
}
