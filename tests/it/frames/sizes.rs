//! Every size without a panic.

use super::*;

#[test]
fn instruments_are_drawn_in_every_size() {
    draws_every_size(swaying);
    draws_every_size(comparing);
    draws_every_size(biased_set);
    draws_every_size(|width, height| {
        let mut app = biased(width, height);
        press(&mut app, "<Enter>");
        app
    });
}

#[test]
fn switches_are_drawn_in_every_size() {
    draws_every_size(switched);
    for tabs in 0..4 {
        draws_every_size(|width, height| tuning(width, height, tabs));
    }
}

#[test]
fn what_is_read_is_drawn_in_every_size() {
    for stage in [answering, stances] {
        draws_every_size(stage);
    }
    draws_every_size(|width, height| {
        let mut app = foreign(width, height);
        stage::give_reader(&mut app, "\u{1b}[31mモデル", true);
        press(&mut app, "r<Enter>");
        let text = "動物園\u{202e}は必要か \u{1b}[2J 👩\u{200d}🚀".to_owned();
        stage::heard(&mut app, Heard::Answer(1, Answer { text, ..Answer::default() }));
        stage::heard(&mut app, Heard::Ended(Some("the server went away in the middle of it".into())));
        app
    });
    draws_every_size(|width, height| {
        let mut app = many_sided(width, height);
        stage::give_reader(&mut app, "llama-3", false);
        press(&mut app, "r");
        app
    });
}

#[test]
fn a_passage_being_labelled_is_drawn_in_every_size() {
    draws_every_size(labelling);
    draws_every_size(|width, height| {
        let mut app = labelling(width, height);
        press(&mut app, "tso what<C-a>");
        app
    });
    draws_every_size(|width, height| {
        let mut app = labelling(width, height);
        press(&mut app, "g");
        app
    });
}

#[test]
fn the_lanes_are_drawn_in_every_size() {
    draws_every_size(asked);
    draws_every_size(|width, height| {
        let mut app = asked(width, height);
        press(&mut app, "<Tab>G");
        app
    });
}

#[test]
fn foreign_scripts_are_drawn_in_every_size() {
    draws_every_size(foreign);
    for at in 0..FOREIGN.len() {
        draws_every_size(|width, height| {
            let mut app = foreign(width, height);
            app.lanes[0].selected = at;
            press(&mut app, "<Enter>");
            app
        });
    }
}
