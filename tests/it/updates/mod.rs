//! Messages, and the state and effects that follow.

mod bound;
mod turns;
mod typing;

use std::sync::Arc;
use std::time::Duration;

use parallax::corpus::PassageIx;
use parallax::detect::LabelSource;
use parallax::engine::Judged;
use parallax::engine::{Reach, Reply, Study, Turn};
use parallax::question::By;
use parallax::tui::app::{App, Corpus, LaneState};
use parallax::tui::keymap::Screen;
use parallax::tui::message::{Effect, Msg};
use parallax::tui::update::update;
use parallax::work::{Job, Progress};

use crate::stage::{self, PASSAGES, QUESTION, asked, empty, press, ranking, said};

fn receive(app: &mut App, reply: Reply) -> Vec<Effect> {
    update(app, Msg::Engine(reply))
}

fn lane_ready(turn: u64, lane: usize, order: &[usize]) -> Reply {
    let ranking = ranking(&PASSAGES, order, 1.0);
    Reply::LaneReady { turn: Turn(turn), lane, ranking, took: Duration::from_millis(1) }
}

fn verdict(turn: u64, at: u32, perspective: usize, p: f32) -> Reply {
    Reply::Verdict { turn: Turn(turn), judged: Judged { at: PassageIx(at), perspective, known: said(p) } }
}

/// Turn, reach and statements of the only effect, which starts a query.
fn started(effects: &[Effect]) -> (Turn, Reach, Vec<String>) {
    let [Effect::Start { turn, plan, reach }] = effects else { panic!("expected one query: {effects:?}") };
    (*turn, *reach, plan.question.perspectives.clone())
}

fn studied(effects: &[Effect]) -> Option<Study> {
    match effects {
        [Effect::Study(study)] => Some(study.clone()),
        [] => None,
        other => panic!("{other:?}"),
    }
}

/// Sends the explanation of the open passage's rank.
fn explained(app: &mut App) {
    let (at, _) = app.open_passage().unwrap();
    let (study, recipe) = (app.studies, app.lanes[app.lane].recipe.clone());
    receive(app, Reply::Explained { study, recipe, at, explanations: Ok(Vec::new()) });
}

mod detectors {
    //! The page of detectors: choosing, fetching and stopping, and the effects.

    use parallax::corpus::PassageIx;
    use parallax::detect::Choice;
    use parallax::engine::detectors::{DetectorEvent, DetectorOffer, Presence, detectors};
    use parallax::engine::{Batch, Reply};
    use parallax::tui::app::{App, Corpus, LaneState};
    use parallax::tui::export::frame::text;
    use parallax::tui::keymap::Screen;
    use parallax::tui::message::{Effect, Msg};
    use parallax::tui::pages::settled;
    use parallax::tui::shell::play::frame;
    use parallax::tui::update::update;
    use parallax::work::{Job, Progress};

    use crate::stage::{asked, press, start};

    fn receive(app: &mut App, event: DetectorEvent) {
        let number = app.choosing.number;
        assert!(update(app, Msg::Engine(Reply::Detectors { number, event })).is_empty());
    }

    fn listed() -> Vec<DetectorOffer> {
        detectors(std::path::Path::new("nowhere"))
    }

    /// The page with its list, and a model server on this machine.
    fn page() -> App {
        let mut app = asked(140, 30);
        let effects = press(&mut app, "D");
        let [Effect::Batch(_, Batch::Detectors)] = &effects[..] else { panic!("{effects:?}") };
        assert_eq!(app.screen, Screen::DETECTORS);
        receive(&mut app, DetectorEvent::Listed(listed()));
        let bear = DetectorOffer {
            name: "bear-7b".into(),
            choice: Choice::Llm,
            llm: Some(("http://127.0.0.1:11434/v1".into(), "bear-7b".into())),
            presence: Presence::Served,
            megabytes: None,
            origin: "Ollama at http://127.0.0.1:11434/v1".into(),
            ..listed()[0].clone()
        };
        receive(&mut app, DetectorEvent::Served(vec![bear]));
        app
    }

    fn drawn(app: &App) -> String {
        text(frame(app, start().theme()).unwrap().buffer())
    }

    #[test]
    fn all_detectors_are_listed_with_their_figures_and_the_one_in_use_is_marked() {
        let text = drawn(&page());
        for words in [
            "* builtin",
            "right side .",
            "nli-base",
            "739",
            "Apache-2.0",
            "not measured here",
            "bear-7b",
            "on this machine",
        ] {
            assert!(text.contains(words), "{words}:\n{text}");
        }
    }

    #[test]
    fn a_detector_on_the_hub_is_fetched_with_progress_stopped_resumed_and_then_used() {
        let mut app = page();
        let effects = press(&mut app, "j<Enter>");
        let [Effect::Batch(number, Batch::Fetch(detector))] = &effects[..] else { panic!("{effects:?}") };
        assert_eq!((detector.name, *number), ("nli-xsmall", app.choosing.number));
        receive(
            &mut app,
            DetectorEvent::Fetching(Progress { job: Job::Fetching, done: 120_000, total: 284_000 }),
        );
        assert!(drawn(&app).contains("Fetching nli-xsmall: 120 of 284 MB"), "{}", drawn(&app));
        assert!(press(&mut app, "<Enter>").is_empty(), "nothing else is begun meanwhile");
        let [Effect::StopBatch(past)] = press(&mut app, "<Esc>")[..] else { panic!() };
        assert!(past > app.choosing.number && app.screen == Screen::DETECTORS);
        receive(&mut app, DetectorEvent::Fetched(listed(), None));
        assert!(app.notice.as_deref().unwrap().contains("stopped; what came is kept"), "{:?}", app.notice);
        press(&mut app, "<Enter>");
        receive(&mut app, DetectorEvent::Fetched(listed(), Some("the hub fails; try again later".into())));
        assert!(drawn(&app).contains("the hub fails; try again later"));
        press(&mut app, "<Enter>");
        let mut here = listed();
        here[1].presence = Presence::Here;
        receive(&mut app, DetectorEvent::Fetched(here, None));
        let effects = press(&mut app, "<Enter>");
        let [Effect::StopBatch(_), Effect::UseDetector { choice, llm: None }] = &effects[..] else {
            panic!("{effects:?}")
        };
        assert_eq!(choice.to_string(), "nli-xsmall");
        assert!(matches!(app.corpus, Corpus::Opening) && app.screen == Screen::LANES);
        assert_eq!(app.detector, *choice);
    }

    #[test]
    fn another_detector_begins_without_the_verdicts_and_evidence_of_the_old_one() {
        let mut app = asked(140, 30);
        // The study of this passage has not ended when the detector is changed.
        press(&mut app, "<Enter>");
        let study = app.studies;
        press(&mut app, "<Esc>D");
        receive(&mut app, DetectorEvent::Listed(listed()));
        let mut here = listed();
        here[1].presence = Presence::Here;
        receive(&mut app, DetectorEvent::Fetched(here, None));
        receive(&mut app, DetectorEvent::Served(Vec::new()));
        let waits = Some(Job::Embedding);
        app.lanes[1].state = LaneState::Failed("embedding".into(), waits);
        press(&mut app, "j<Enter>");
        super::receive(&mut app, super::verdict(1, 0, 0, 0.9));
        let evidence = Reply::Evidence {
            study,
            at: PassageIx(0),
            perspective: 0,
            sentence: Some(parallax::detect::EvidenceSentence { at: 0..4, fall: None }),
        };
        super::receive(&mut app, evidence);
        super::receive(&mut app, Reply::Embedded(Ok(())));
        assert!(app.judgments.pair(PassageIx(0), 0).is_none(), "no verdict of the old detector is left");
        assert!(app.reading.evidence.is_empty() && app.reading.requested.is_empty());
        let opened = Reply::Opened(Box::new(crate::stage::opened()));
        let (turn, ..) = super::started(&super::receive(&mut app, opened));
        assert!(app.judgments.pair(PassageIx(0), 0).is_none() && !settled(&app));
        super::receive(&mut app, Reply::Settled { turn });
        assert!(settled(&app), "nothing waits for the old engine");
    }

    #[test]
    fn a_language_model_on_this_machine_is_used_only_when_it_is_chosen() {
        let mut app = page();
        for _ in 0..5 {
            assert!(press(&mut app, "j").is_empty());
        }
        assert!(drawn(&app).contains("passages and statements will be sent there"), "{}", drawn(&app));
        let effects = press(&mut app, "<Enter>");
        let [_, Effect::UseDetector { choice: Choice::Llm, llm: Some((url, model)) }] = &effects[..] else {
            panic!("{effects:?}")
        };
        assert_eq!((url.as_str(), model.as_str()), ("http://127.0.0.1:11434/v1", "bear-7b"));
    }

    #[test]
    fn leaving_the_page_changes_nothing_and_the_detector_in_use_is_not_opened_again() {
        let mut app = page();
        let effects = press(&mut app, "<Esc>");
        assert!(matches!(effects[..], [Effect::StopBatch(_)]) && app.screen == Screen::LANES);
        let mut app = page();
        let effects = press(&mut app, "<Enter>");
        assert!(matches!(effects[..], [Effect::StopBatch(_)]), "{effects:?}");
        assert_eq!(app.notice.as_deref(), Some("builtin judges already"));
    }
}
