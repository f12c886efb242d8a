//! Every row of the key table does something on its screen.

use std::path::Path;
use std::sync::Arc;

use parallax::engine::Reply;
use parallax::engine::detectors::{DetectorEvent, detectors};
use parallax::tui::app::{App, Corpus};
use parallax::tui::keymap::{Action, Context, TABLE};
use parallax::tui::message::{Effect, Msg};
use parallax::tui::pages::context;
use parallax::tui::script::{Step, parse};
use parallax::tui::update::update;

use crate::stage::{asked, empty, fields, give_reader, press};

/// The explorer after some keys, with everything that is drawn computed.
fn after(mut app: App, keys: &str) -> App {
    press(&mut app, keys);
    app.notice = None;
    let size = app.size;
    update(&mut app, Msg::Resized(size));
    app
}

fn comparing() -> App {
    let mut app = asked(140, 40);
    if let Corpus::Open(opened) = &mut app.corpus {
        let question = opened.questions[0].clone();
        opened.questions.extend([question.clone(), question]);
    }
    after(app, "cj")
}

fn biased() -> App {
    let mut app = after(asked(140, 40), "F");
    update(&mut app, Msg::Engine(Reply::Fields(Arc::new(fields()))));
    after(app, "j")
}

fn answering() -> App {
    let mut app = asked(140, 40);
    give_reader(&mut app, "m", false);
    after(app, "rj")
}

fn choosing(keys: &str) -> App {
    let mut app = after(asked(140, 40), "D");
    let (number, event) = (app.choosing.number, DetectorEvent::Listed(detectors(Path::new("nowhere"))));
    update(&mut app, Msg::Engine(Reply::Detectors { number, event }));
    after(app, keys)
}

/// States of every screen, with cursors between the ends and texts that can be scrolled.
fn states() -> Vec<App> {
    let lanes = || after(asked(140, 40), "<Tab>jj");
    let labelling = || crate::labelling::open(140, 40);
    vec![
        after(empty(140, 40), "zoo"),
        after(empty(140, 40), "zoo<Down>"),
        lanes(),
        after(lanes(), "fzoo"),
        after(asked(40, 14), "jj<Enter>"),
        after(asked(40, 14), "jj<Enter>jj"),
        after(lanes(), "i"),
        after(lanes(), "tjj"),
        after(lanes(), "t<PageDown>"),
        after(lanes(), "t="),
        after(lanes(), "y"),
        after(lanes(), "ywj"),
        after(lanes(), "<Enter>c"),
        after(lanes(), "<Enter>czoo"),
        after(lanes(), "ywi"),
        comparing(),
        biased(),
        answering(),
        after(crate::stage::pointed(140, 40), "j"),
        after(crate::stage::pointed(140, 40), "jxr"),
        after(crate::stage::mixer(140, 40), "j"),
        after(crate::stage::sided(140, 40), "j"),
        after(labelling(), "j"),
        after(labelling(), "lj"),
        after(labelling(), "t"),
        crate::labelling::keys::with_42_statements(30).0,
        after(crate::labelling::keys::with_42_statements(30).0, "<PageDown>"),
        after(labelling(), "elll"),
        choosing("k"),
        choosing("j"),
        after(asked(80, 24), "?jj"),
        after(lanes(), ":<Down>"),
        after(lanes(), "n<Down>"),
    ]
}

#[test]
fn an_action_of_another_screen_does_nothing_on_the_lanes_and_in_a_passage() {
    type Act = fn(&mut App, Action) -> Vec<Effect>;
    let acts: [(App, Act); 2] = [
        (asked(140, 40), parallax::tui::screens::lanes::update::act_on_lanes),
        (after(asked(140, 40), "<Enter>"), parallax::tui::screens::passage::screen::act),
    ];
    for (app, act) in acts {
        let mut next = app.clone();
        assert!(act(&mut next, Action::NextFigure).is_empty());
        assert_eq!(format!("{next:?}"), format!("{app:?}"), "a new action that nobody handles is found");
    }
}

/// Whether a key has an effect or changes the state, its notice included.
fn acts(app: &App, key: &str) -> bool {
    let mut next = app.clone();
    let steps = parse(key).unwrap();
    let [Step::Key(key)] = steps[..] else { panic!("not a key: {key}") };
    !update(&mut next, Msg::Key(key)).is_empty() || format!("{next:?}") != format!("{app:?}")
}

#[test]
fn every_row_of_the_key_table_does_something_on_its_screen() {
    let states = states();
    // The palette marks its first entry again at any key.
    for app in states.iter().filter(|app| context(app) != Context::Palette) {
        assert!(!acts(app, "<F12>"), "a key without an action changes nothing in {:?}", context(app));
    }
    let idle: Vec<String> = TABLE
        .iter()
        .filter(|row| {
            let here = |app: &&App| row.context == Context::Anywhere || context(app) == row.context;
            !states.iter().filter(here).any(|app| acts(app, row.keys[0]))
        })
        .map(|row| format!("{} {}: {}", row.context.name(), row.keys[0], row.help))
        .collect();
    assert_eq!(idle, Vec::<String>::new(), "nobody handles these actions");
}
