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
        [Effect::Study(study)] => Some(Study::clone(study)),
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
            "side right .",
            "nli-base",
            "739",
            "Apache-2.0",
            "not measured here",
            "bear-7b",
            "on a server",
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
        for _ in 0..6 {
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

mod undo {
    //! Undo of everything: random acts, with replies that come at once or late, and the way back to the first frame.

    use std::collections::{BTreeMap, VecDeque};
    use std::sync::Arc;

    use parallax::annotate::{Act, Entry, View, text_hash};
    use parallax::corpus::PassageIx;
    use parallax::detect::PairLabels;
    use parallax::engine::{Judged, Labelling, LaneQuery, Query, Reply, SetTo, Turn, Written};
    use parallax::tui::app::{App, Corpus};
    use parallax::tui::message::{Effect, Msg};
    use parallax::tui::shell::play::frame;
    use parallax::tui::update::{refresh, update, update_in_burst};

    use crate::stage::{self, PASSAGES, asked, press, ranking, said};

    /// A generator of numbers, so that a run can be repeated from its seed.
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, end: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) as usize % end
        }
    }

    fn hash(text: &str) -> u64 {
        text.bytes()
            .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
    }

    /// An engine whose lists depend on recipe and wording alone, and a journal.
    #[derive(Default)]
    struct Double {
        replies: VecDeque<Reply>,
        journal: BTreeMap<(String, String), View>,
    }

    impl Double {
        fn order(recipe: &str, text: &str) -> Vec<usize> {
            let mut numbers = Numbers(hash(&format!("{recipe}\n{text}")));
            let mut left: Vec<usize> = (0..PASSAGES.len()).collect();
            (0..PASSAGES.len()).map(|_| left.remove(numbers.below(left.len()))).collect()
        }

        fn take(&mut self, effects: Vec<Effect>) {
            for effect in effects {
                match effect {
                    Effect::Start { turn, plan, .. } => self.run(turn, &plan),
                    Effect::Label(Labelling::Set(order)) => {
                        let key = (order.question.text.clone(), order.passage.id.clone());
                        let before = self.journal.get(&key).cloned().unwrap_or_default();
                        let view = match order.to {
                            SetTo::View(view) => view,
                            SetTo::Answers(answers) => {
                                let mut view = before.clone();
                                view.answers.extend(answers);
                                view
                            }
                        };
                        self.journal.insert(key, view.clone());
                        let (question, passage) = (order.question.text.clone(), order.passage.id.clone());
                        let text = text_hash(&order.passage);
                        let act = Act { question, passage, text, view: view.clone(), took: None, seen: None };
                        let at = PASSAGES.iter().position(|(id, ..)| *id == order.passage.id).unwrap();
                        let label =
                            |text: &String| (text.clone(), view.answers.get(text).map(|label| Some(*label)));
                        let written = Written {
                            entry: Entry::new(act, "anna", Vec::new(), 1).unwrap(),
                            at: Some(PassageIx(at as u32)),
                            labels: order.question.perspectives.iter().map(label).collect(),
                        };
                        let set = Ok(Box::new((written, before)));
                        self.replies.push_back(Reply::LabelSet { number: order.number, set });
                    }
                    _ => {}
                }
            }
        }

        fn run(&mut self, turn: Turn, plan: &Query) {
            let list = |recipe: &str, text: &str| ranking(&PASSAGES, &Self::order(recipe, text), 1.0);
            for (lane, recipe) in plan.lanes.iter().enumerate() {
                let recipe = recipe.to_string();
                let ranking = list(&recipe, LaneQuery::neutral(&plan.question).text);
                let took = std::time::Duration::from_millis(1);
                self.replies.push_back(Reply::LaneReady { turn, lane, ranking, took });
                if let Some(sides) = plan.question.sides() {
                    let lists = Ok(sides.map(|side| list(&recipe, &plan.question.perspectives[side])));
                    self.replies.push_back(Reply::Reworded { turn, lane, lists });
                }
            }
            for at in 0..PASSAGES.len() {
                for perspective in 0..plan.question.perspectives.len() {
                    let statement = &plan.question.perspectives[perspective];
                    let yes = hash(&format!("{at} {statement}")).is_multiple_of(3);
                    let known = PairLabels { gold: Some(yes), ..said(if yes { 0.9 } else { 0.1 }) };
                    let judged = Judged { at: PassageIx(at as u32), perspective, known };
                    self.replies.push_back(Reply::Verdict { turn, judged });
                }
            }
            self.replies.push_back(Reply::Settled { turn });
        }

        /// The number of passages with a label in the journal.
        fn answered(&self) -> usize {
            self.journal.values().filter(|view| !view.answers.is_empty()).count()
        }

        /// Delivers the first replies, and what follows from them if all are delivered.
        fn deliver(&mut self, app: &mut App, mut count: usize) {
            let mut stale = false;
            while count > 0
                && let Some(reply) = self.replies.pop_front()
            {
                let effects = update_in_burst(app, Msg::Engine(reply), &mut stale);
                self.take(effects);
                count -= 1;
            }
            refresh(app);
        }
    }

    /// Keys of an act. `<Tab>` and `j` before it move the cursor, which is part of it.
    const ACTS: [&str; 27] = [
        "m",
        "e",
        "v",
        "<Tab>m",
        "<Tab>p",
        "<Tab>e",
        "M",
        "E",
        ">",
        "<lt>",
        "+",
        "-",
        "++",
        "n<Enter>",
        "d",
        "]",
        "[",
        "x",
        "X",
        "jjs",
        "jo",
        "b",
        "<Tab>0",
        "i<End><BS>, all of them.<Enter>",
        "i<C-s><Enter>",
        "LL",
        "U",
    ];

    fn look(app: &App) -> String {
        frame(app, stage::start().theme()).unwrap().dump(true)
    }

    fn run(seed: u64) {
        let mut numbers = Numbers(seed);
        let mut app = asked(140, 40);
        let mut double = Double::default();
        if let Corpus::Open(opened) = &mut app.corpus {
            opened.labelled = true;
        }
        double.run(app.turn, &app.query());
        double.deliver(&mut app, usize::MAX);
        press(&mut app, "<F12>");
        let first = look(&app);
        for _ in 0..200 {
            let effects = press(&mut app, ACTS[numbers.below(ACTS.len())]);
            double.take(effects);
            // Most replies come before the next act, some late, some never because of a newer turn.
            let count = [usize::MAX, usize::MAX, usize::MAX, 0, 7][numbers.below(5)];
            double.deliver(&mut app, count);
            if numbers.below(12) == 0 {
                let effects = press(&mut app, "u");
                double.take(effects);
            }
        }
        let mut undone = 0;
        loop {
            let effects = press(&mut app, "u");
            double.take(effects);
            let count = [usize::MAX, 0, 3][numbers.below(3)];
            double.deliver(&mut app, count);
            if app.notice.as_deref() == Some("nothing is left to undo") {
                break;
            }
            undone += 1;
            assert!(undone <= 500, "undo ends");
        }
        double.deliver(&mut app, usize::MAX);
        // Cursors that moved before the first act.
        press(&mut app, &"g<Tab>".repeat(3));
        while app.lane > 0 {
            press(&mut app, "<Tab>");
        }
        press(&mut app, "<F12>");
        assert_eq!(look(&app), first, "seed {seed}, after {undone} acts undone");
        assert!(undone > 60, "seed {seed}: {undone}");
        let answered = double.answered();
        assert_eq!(answered, 0, "seed {seed}: no label is left in the journal");
    }

    #[test]
    fn two_hundred_random_acts_undone_end_on_exactly_the_first_frame() {
        std::thread::scope(|scope| {
            for first in 0..2 {
                scope.spawn(move || (0..25).for_each(|seed| run(2 * seed + first)));
            }
        });
    }

    #[test]
    fn a_label_in_the_lanes_moves_every_figure_and_is_taken_back() {
        let mut app = asked(140, 40);
        let mut double = Double::default();
        let supports =
            |app: &App| app.lanes.iter().map(|lane| lane.figures.marks.clone()).collect::<Vec<_>>();
        press(&mut app, "<F12>");
        let before = supports(&app);
        let effects = press(&mut app, "js");
        double.take(effects);
        assert_eq!(supports(&app), before, "nothing counts that is not on disk");
        assert!(!parallax::tui::pages::settled(&app));
        double.deliver(&mut app, usize::MAX);
        assert_ne!(supports(&app), before);
        assert!(
            app.lanes.iter().all(|lane| lane.figures.marks.contains(&parallax::report::marks::Mark::Support))
        );
        assert!(
            app.notice.as_deref().unwrap().starts_with("labelled by anna: ▲ · u takes it back"),
            "{:?}",
            app.notice
        );
        // Undone before the journal has answered, it is taken back as soon as it is there.
        let effects = press(&mut app, "o");
        let undone = press(&mut app, "uu");
        double.take(effects);
        double.take(undone);
        double.deliver(&mut app, usize::MAX);
        assert_eq!(double.answered(), 0);
        assert!(app.judgments.pair(PassageIx(1), 0).is_none_or(|pair| pair.human.is_none()));
    }

    /// The number of labels in the journal after these keys, and after all replies. A `.` delivers the replies so far.
    fn left(keys: &str) -> usize {
        let (mut app, mut double) = (asked(140, 40), Double::default());
        for (i, keys) in keys.split('.').enumerate() {
            if i > 0 {
                double.deliver(&mut app, usize::MAX);
            }
            // All keys come before the first reply.
            let effects = press(&mut app, keys);
            double.take(effects);
        }
        double.deliver(&mut app, usize::MAX);
        double.answered()
    }

    #[test]
    fn labels_undone_before_they_are_on_disk_are_taken_back_in_order() {
        let cases = [
            ("an act after the undo, so that it cannot be done again", "su+", 0),
            ("undone to before that act", "su+u", 0),
            ("two labels of one passage, both on their way", "souu", 0),
            ("two labels of one passage, one on its way", "s.ouu", 0),
            ("another label of the passage after the undo", "suo", 1),
            ("and that one undone too", "suou", 0),
            ("once on disk", "suo.u", 0),
            ("done again before it is on disk", "suU", 1),
            ("and undone again", "suUu", 0),
            ("done again, then on disk, then undone", "suU.u", 0),
            ("undone, on disk, done again, undone", "su.Uu", 0),
            ("two passages", "sjouu", 0),
        ];
        let wrong: Vec<_> = cases
            .iter()
            .map(|(case, keys, count)| (*case, left(keys), *count))
            .filter(|(_, left, count)| left != count)
            .collect();
        assert!(wrong.is_empty(), "case, labels left, labels expected: {wrong:?}");
    }

    /// What the annotator says of a passage's first statement.
    fn human(app: &App, at: u32) -> Option<bool> {
        app.judgments.pair(PassageIx(at), 0).and_then(|pair| pair.human)
    }

    #[test]
    fn a_label_that_is_on_disk_only_after_a_later_act_stays_when_that_act_is_undone() {
        let (mut app, mut double) = (asked(140, 40), Double::default());
        let mut go = |app: &mut App, keys: &str| {
            let effects = press(app, keys);
            double.take(effects);
            double.deliver(app, usize::MAX);
            double.answered()
        };
        // k changes while the label is on its way.
        assert_eq!(go(&mut app, "s+"), 1);
        assert_eq!((human(&app, 0), app.k), (Some(true), 6));
        go(&mut app, "u");
        assert_eq!(
            (human(&app, 0), app.k),
            (Some(true), 5),
            "the label is no part of the act that was undone"
        );
        assert_eq!(go(&mut app, "u"), 0);
        assert_eq!(human(&app, 0), None);
        assert_eq!(go(&mut app, "UU"), 1);
        assert_eq!((human(&app, 0), app.k), (Some(true), 6));
    }

    #[test]
    fn a_label_that_is_being_taken_back_is_not_lost_by_leaving_or_by_another_corpus() {
        let (mut app, mut double) = (asked(140, 40), Double::default());
        let effects = press(&mut app, "su");
        assert_eq!(
            effects.iter().filter(|one| matches!(one, Effect::Label(_))).count(),
            1,
            "what was there before is not known yet"
        );
        double.take(effects);
        assert!(
            !press(&mut app, "C./own.jsonl<Enter>").iter().any(|one| matches!(one, Effect::UseCorpus(_)))
        );
        assert!(app.notice.as_deref().unwrap().contains("labels are being written"));
        assert_eq!(press(&mut app, "q"), [], "it leaves once the label is back as it was");
        let mut next = |app: &mut App, effects: Vec<Effect>| {
            double.take(effects);
            let reply =
                double.replies.iter().position(|reply| matches!(reply, Reply::LabelSet { .. })).unwrap();
            update(app, Msg::Engine(double.replies.remove(reply).unwrap()))
        };
        let effects = next(&mut app, Vec::new());
        assert!(matches!(effects.as_slice(), [Effect::Label(Labelling::Set(_))]), "{effects:?}");
        assert_eq!(next(&mut app, effects), [Effect::Quit]);
        assert_eq!(double.answered(), 0);
        let mut app = asked(140, 40);
        press(&mut app, "suq");
        assert_eq!(press(&mut app, "q"), [Effect::Quit], "a second time leaves at once");
    }

    #[test]
    fn a_label_that_cannot_be_written_is_no_act_and_says_why() {
        let mut app = asked(140, 40);
        let effects = press(&mut app, "s");
        let [Effect::Label(Labelling::Set(order))] = effects.as_slice() else { panic!("{effects:?}") };
        let answers: Vec<bool> = match &order.to {
            SetTo::Answers(answers) => answers.values().copied().collect(),
            SetTo::View(_) => Vec::new(),
        };
        assert_eq!(answers, [true, false], "both statements are answered");
        let reply =
            Reply::LabelSet { number: order.number, set: Err("another program holds the journal".into()) };
        super::receive(&mut app, reply);
        assert_eq!(app.notice.as_deref(), Some("another program holds the journal"));
        press(&mut app, "u");
        assert_eq!(app.notice.as_deref(), Some("nothing is left to undo"));
        let many = stage::many_sided(140, 40);
        let mut app = many;
        let effects = press(&mut app, "3");
        let [Effect::Label(Labelling::Set(order))] = effects.as_slice() else { panic!("{effects:?}") };
        let SetTo::Answers(answers) = &order.to else { panic!() };
        assert_eq!(answers.values().filter(|yes| **yes).count(), 1);
        assert!(answers["Zoos should be licensed."]);
        assert!(Arc::ptr_eq(&order.passage, &app.lanes[0].ranking[0].passage));
    }
}

#[test]
fn a_key_has_each_fetched_re_ranker_order_the_lane_in_turn_and_then_none() {
    use parallax::encode::reranker::source;
    let mut app = asked(140, 40);
    let order = |app: &App| app.lanes[0].recipe.to_string().split_once('+').map(|(_, on)| on.to_owned());
    // None is here: the notice says how to fetch one, and nothing is asked.
    assert!(press(&mut app, "O").is_empty());
    assert!(app.notice.as_deref().unwrap().contains("models get ms-marco-minilm"), "{:?}", app.notice);
    let Corpus::Open(opened) = &mut app.corpus else { panic!("not open") };
    opened.rerankers = ["ms-marco-minilm", "colbertv2"].map(|name| source(name).unwrap()).to_vec();
    let effects = press(&mut app, "O");
    assert!(matches!(effects.as_slice(), [Effect::Start { .. }]), "{effects:?}");
    assert_eq!(order(&app).as_deref(), Some("rerank@colbertv2"));
    assert!(app.notice.as_deref().unwrap().contains("colbertv2 re-ranks the first 100 passages"));
    press(&mut app, "O");
    assert_eq!(order(&app).as_deref(), Some("rerank@ms-marco-minilm"));
    press(&mut app, "O");
    assert_eq!(order(&app), None);
    press(&mut app, "u");
    assert_eq!(order(&app).as_deref(), Some("rerank@ms-marco-minilm"));
    // A model that another lane names is offered too, with its depth.
    app.lanes[1].recipe = "minilm+rerank@path:own,depth=20".parse().unwrap();
    press(&mut app, "O");
    assert_eq!(order(&app).as_deref(), Some("rerank@path%3Aown,depth=20"));
    press(&mut app, "O");
    assert_eq!(order(&app), None);
}
