//! The explorer and `search --format json` show the same passages, ranks, scores, verdicts, first ranks, measures, and changes by switches.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};

use parallax::corpus::sample;
use parallax::detect::LabelSource;
use parallax::engine::{
    Engine, Figures, FirstRank, Opening, Ranking, Recipe, Reply, SendReply, Setup, sycophancy,
};
use parallax::question::{self, Question};
use parallax::tui::app::{App, Corpus, Lane, LaneState};
use parallax::tui::config::{Config, Source};
use parallax::tui::message::{Effect, Msg};
use parallax::tui::theme::Depth;
use parallax::tui::update::update;
use parallax::tui::{Size, Start};
use parallax::work::Stop;
use serde_json::Value;

use crate::program::{NO_CONFIG, printed, program};

const KS: [usize; 3] = [1, 5, 12];
const SOURCES: [LabelSource; 3] = [LabelSource::Model, LabelSource::Auto, LabelSource::Gold];

/// Every lane with every switch that applies to it. The plain lanes come first.
fn recipes(question: &Question) -> Vec<Recipe> {
    let rerank = ["mmr", "xquad", "pm2"];
    let expand = ["perspectives", "keqe", "csqe", "rm3"];
    let project = [
        "dual-sum",
        "add",
        "add-plus",
        "cast",
        "cast-plus",
        "concat",
        "concat-plus",
        "tri-sum",
        "pap",
        "pap-plus",
    ];
    let bases = ["bm25", "minilm", "hybrid"];
    let mut all: Vec<String> = bases.map(String::from).to_vec();
    for base in bases {
        for switch in rerank.iter().chain(&expand) {
            all.push(format!("{base}+{switch}"));
        }
        for variant in project {
            // The last perspective, so that questions with two sides and with many occur.
            all.push(format!("{base}+{variant}@{}", question.perspectives.len().max(1)));
        }
        all.push(format!("{base}+csqe+mmr@.5"));
        all.push(format!("{base}+perspectives+xquad@.8"));
    }
    let read = all.iter().filter_map(|text| text.parse::<Recipe>().ok());
    let read: Vec<Recipe> = read.collect();
    assert!(read.len() >= 40, "{}", read.len());
    read
}

fn detector() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/detectors/bert")
}

/// An explorer without a screen, on the sample.
struct Explorer {
    engine: Engine,
    messages: Receiver<Reply>,
    opened: Reply,
    start: Start,
}

impl Explorer {
    fn open(data: &Path) -> Self {
        let detector = format!("path:{}", detector().display()).parse().unwrap();
        let opening = Opening { data_dir: data.into(), detector, ..Opening::default() };
        let start = Start { opening, ..crate::stage::start() };
        let (send, messages) = mpsc::channel();
        let send: SendReply = Arc::new(move |reply| drop(send.send(reply)));
        let engine = Engine::start(start.opening.clone(), &send).unwrap();
        let opened = messages.iter().find(|reply| matches!(reply, Reply::Opened(_))).unwrap();
        Explorer { engine, messages, opened, start }
    }

    /// The state after all work on a question has ended.
    fn ask(&self, question: &Question, lanes: &[Recipe], k: usize, source: LabelSource) -> App {
        let start = Start {
            lanes: lanes.to_vec(),
            k,
            source,
            question: question.text.clone(),
            config: Config::default(),
            config_from: Source::default(),
            depth: Depth::Millions,
            ..self.start.clone()
        };
        let mut app = App::new(&start, Size { width: 140, height: 40 });
        self.take(&mut app, Msg::Engine(self.opened.clone()));
        self.settle(&mut app);
        app
    }

    fn take(&self, app: &mut App, msg: Msg) {
        for effect in update(app, msg) {
            if let Effect::Start { turn, plan, reach } = effect {
                self.engine.start_run(turn, plan, reach);
            }
        }
    }

    fn settle(&self, app: &mut App) {
        assert!(matches!(app.corpus, Corpus::Open(_)));
        while !app.settled {
            let reply = self.messages.recv().unwrap();
            self.take(app, Msg::Engine(reply));
        }
    }
}

fn search(data: &Path, question: &Question, lanes: &[Recipe], k: usize, source: LabelSource) -> Value {
    let mut command = Command::new(program());
    command.env("PARALLAX_CONFIG", NO_CONFIG);
    command.args(["search", &question.text, "--format", "json", "-k", &k.to_string()]);
    command.args(["--label-source", &source.to_string(), "--data-dir", &data.display().to_string()]);
    command.arg("--detector").arg(format!("path:{}", detector().display()));
    for lane in lanes {
        command.args(["--lane", &lane.to_string()]);
    }
    let printed = printed(&mut command);
    assert!(printed.out.starts_with('{'), "{}", printed.err);
    serde_json::from_str(&printed.out).unwrap()
}

fn first_ranks(figures: &Figures) -> Value {
    let rank = |first: &FirstRank| match first {
        FirstRank::At(rank) => serde_json::json!({"rank": rank}),
        FirstRank::Below(judged) => serde_json::json!({"below": judged}),
    };
    figures.first.iter().map(rank).collect()
}

/// A value after printing and reading JSON, in which the last digit of a number may differ.
fn as_printed(value: &impl serde::Serialize) -> Value {
    serde_json::from_str(&serde_json::to_string(&serde_json::json!(value)).unwrap()).unwrap()
}

/// Compares everything that both show for a lane.
fn compare(app: &App, (lane, before): (&Lane, Option<&Ranking>), json: &Value, place: &str) {
    if let LaneState::Failed(reason, _) = &lane.state {
        assert_eq!(json["error"], reason.as_str(), "{place}");
        return;
    }
    assert_eq!(json["error"], Value::Null, "{place}");
    let hits = json["hits"].as_array().unwrap();
    assert_eq!(hits.len(), lane.ranking.len().min(app.k), "{place}");
    for (i, (hit, ranked)) in hits.iter().zip(lane.ranking.iter()).enumerate() {
        assert_eq!(
            (&hit["id"], &hit["rank"]),
            (&ranked.passage.id.as_str().into(), &(i + 1).into()),
            "{place}"
        );
        assert_eq!(hit["score"], as_printed(&ranked.score), "{place}");
        for (perspective, shown) in hit["verdicts"].as_array().unwrap().iter().enumerate() {
            let verdict = app.judgments.verdict(ranked.at, perspective);
            let own = as_printed(&serde_json::json!({
                "p": verdict.and_then(|verdict| verdict.p),
                "supports": verdict.and_then(|verdict| verdict.supports),
                "by": verdict.map(|verdict| verdict.by),
            }));
            for key in ["p", "supports", "by"] {
                assert_eq!(shown[key], own[key], "{place}, rank {}, perspective {perspective}", i + 1);
            }
        }
        let was = before.and_then(|before| before.rank_of(ranked.at));
        assert_eq!(hit["was"], serde_json::json!(was), "{place}, rank {}", i + 1);
    }
    let figures = app.figures(lane);
    let doubt = Figures::doubt(&lane.ranking, &app.judgments, &app.question, app.k);
    let measures = figures.as_ref().map(|figures| figures.by_name(doubt.as_ref()));
    assert_eq!(json["measures"], as_printed(&measures), "{place}");
    assert_eq!(json["first_ranks"], serde_json::json!(figures.as_ref().map(first_ranks)), "{place}");
    let change = before
        .filter(|_| figures.is_some())
        .and_then(|before| Figures::change((&lane.ranking, before), &app.judgments, &app.question, app.k));
    assert_eq!(json["delta"], as_printed(&change.map(|change| change.by_name())), "{place}");
}

/// Asks one question in the explorer and by `search`.
fn holds(explorer: &Explorer, data: &Path, question: &Question, k: usize, source: LabelSource) {
    let lanes = recipes(question);
    let app = explorer.ask(question, &lanes, k, source);
    assert_eq!(app.question.perspectives, question.perspectives);
    // The lane before its switches were turned on.
    let before = |i: usize| {
        let plain = lanes.iter().position(|lane| *lane == lanes[i].plain()).unwrap();
        (plain != i).then(|| &app.lanes[plain].ranking)
    };
    let found = search(data, question, &lanes, k, source);
    let json = found["lanes"].as_array().unwrap();
    assert_eq!(json.len(), app.lanes.len());
    for (i, (lane, json)) in app.lanes.iter().zip(json).enumerate() {
        let place = format!("{}, {}, k = {k}, {source}", question.text, lane.recipe);
        compare(&app, (lane, before(i)), json, &place);
    }
}

fn questions() -> Vec<Question> {
    question::set::builtin(sample::QUESTIONS)
}

#[test]
fn the_explorer_and_search_show_the_same() {
    let data = tempfile::tempdir().unwrap();
    let explorer = Explorer::open(data.path());
    let questions = questions();
    let many = questions.iter().position(|question| question.perspectives.len() > 5).unwrap();
    // A part of all combinations, with every k and every source.
    let cases = [(many, 1, 0), (3, 2, 1), (11, 0, 2)];
    for (question, k, source) in cases {
        holds(&explorer, data.path(), &questions[question], KS[k], SOURCES[source]);
    }
}

#[test]
#[ignore = "needs minutes"]
fn the_explorer_and_search_show_the_same_for_every_question_and_k() {
    let data = tempfile::tempdir().unwrap();
    let explorer = Explorer::open(data.path());
    for question in questions() {
        for k in KS {
            for source in SOURCES {
                holds(&explorer, data.path(), &question, k, source);
            }
        }
    }
}

#[test]
fn a_label_source_chosen_later_gives_the_same_as_search() {
    let data = tempfile::tempdir().unwrap();
    let explorer = Explorer::open(data.path());
    let question = &questions()[3];
    let lanes = Recipe::defaults();
    let mut app = explorer.ask(question, &lanes, 5, LabelSource::Gold);
    while app.judgments.source != LabelSource::Model {
        explorer
            .take(&mut app, Msg::Key(crossterm::event::KeyEvent::from(crossterm::event::KeyCode::Char('L'))));
        explorer.settle(&mut app);
    }
    let found = search(data.path(), question, &lanes, 5, LabelSource::Model);
    for (lane, json) in app.lanes.iter().zip(found["lanes"].as_array().unwrap()) {
        compare(&app, (lane, None), json, &lane.recipe.to_string());
    }
}

#[test]
fn every_lane_is_asked_as_either_side_in_the_background_with_the_lists_of_the_sycophancy_screen() {
    let data = tempfile::tempdir().unwrap();
    let explorer = Explorer::open(data.path());
    let question = &questions()[3];
    let lanes: Vec<Recipe> = ["bm25", "minilm+mmr@.75", "hybrid"].map(|lane| lane.parse().unwrap()).into();
    let mut app = explorer.ask(question, &lanes, 5, LabelSource::Gold);
    let setup = Setup::open(&explorer.start.opening, &|_| (), &Stop::never()).unwrap();
    let order = |list: &Ranking| list.iter().map(|ranked| ranked.at).collect::<Vec<_>>();
    let check = |app: &App| {
        for lane in &app.lanes {
            let asked = (app.k, LabelSource::Gold);
            let apart = sycophancy(&setup, &lane.recipe, question, asked, &[], &Stop::never()).unwrap();
            let lists = lane.reworded.as_ref().unwrap().as_ref().unwrap();
            assert_eq!(lists.each_ref().map(order), [order(&apart.lists[1]), order(&apart.lists[2])]);
            let strips = lane.figures.asked.as_ref().unwrap();
            assert!(strips.iter().all(|asked| asked.marks.len() == app.k && asked.lean.is_some()));
            assert_eq!(lane.figures.shift.map(|(shift, _)| shift), apart.shift());
        }
    };
    check(&app);
    // A switch moves them too.
    let key = crossterm::event::KeyCode::Char('m');
    explorer.take(&mut app, Msg::Key(key.into()));
    assert!(app.lanes[0].reworded.is_none(), "strips of the old recipe are not shown for the new one");
    explorer.settle(&mut app);
    check(&app);
    // Many statements have no two sides to ask as.
    let many = questions().into_iter().find(|question| question.perspectives.len() > 5).unwrap();
    let app = explorer.ask(&many, &lanes, 5, LabelSource::Gold);
    assert!(app.lanes.iter().all(|lane| lane.reworded.is_none()));
}

#[test]
fn a_question_far_from_every_passage_is_said_to_be_and_one_of_the_set_is_not() {
    let data = tempfile::tempdir().unwrap();
    let explorer = Explorer::open(data.path());
    let lanes: Vec<Recipe> = vec!["bm25".parse().unwrap()];
    let near = explorer.ask(&questions()[3], &lanes, 5, LabelSource::Gold);
    assert_eq!(near.far_off, None);
    let text = "Should the offside rule of ice hockey be abolished?".to_owned();
    let far = explorer.ask(&Question { text, ..Question::default() }, &lanes, 5, LabelSource::Gold);
    let (best, usual) = far.far_off.unwrap();
    assert!(best < usual, "{best} {usual}");
    assert!(
        far.notice.as_deref().unwrap().starts_with("nothing here is near this question"),
        "{:?}",
        far.notice
    );
}
