//! The question line, the statements, pastes, finding an action, corpora, settings, lists.

use parallax::engine::{Batch, Shelved};
use parallax::tui::message::Gathered;
use parallax::tui::theme::Look;

use crossterm::event::{KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

use super::*;

#[test]
fn a_key_that_only_moves_the_cursor_starts_no_query() {
    let mut app = empty(140, 40);
    press(&mut app, "zoos");
    let turn = app.turn;
    assert_eq!(press(&mut app, "<Left><Home>"), []);
    assert_eq!(app.turn, turn);
}

#[test]
fn enter_on_an_empty_line_says_what_to_do() {
    let mut app = empty(140, 40);
    assert_eq!(
        press(&mut app, "<Space><Enter>").iter().filter(|e| matches!(e, Effect::Start { .. })).count(),
        0
    );
    assert!(app.typing);
    assert!(app.notice.as_deref().is_some_and(|notice| notice.contains("type a question first")));
}

#[test]
fn enter_asks_all_lanes_and_a_question_of_the_set_brings_its_own_statements() {
    let mut app = empty(140, 40);
    press(&mut app, "should zoos be banned?");
    let (turn, reach, statements) = started(&press(&mut app, "<Enter>"));
    assert_eq!((turn, reach), (app.turn, Reach::All));
    assert_eq!(statements, stage::question().perspectives);
    assert_eq!(app.by, By::Given);
    assert!(!app.typing && app.lanes.iter().all(|lane| lane.state == LaneState::Waiting));
}

#[test]
fn edited_statements_become_the_question_s_and_are_asked() {
    let mut app = asked(140, 40);
    let before = app.turn;
    press(&mut app, "i");
    assert_eq!(app.screen, Screen::STATEMENTS);
    let (turn, reach, statements) = started(&press(&mut app, "<End><BS>, all of them.<Enter>"));
    assert!(turn > before && reach == Reach::All);
    assert_eq!(statements, ["Zoos should be banned, all of them.", "Zoos should not be banned."]);
    assert_eq!(
        (app.question.perspectives.clone(), app.by, app.screen),
        (statements, By::User, Screen::LANES)
    );
    assert_eq!(app.judgments.pair(PassageIx(0), 0), None, "verdicts on other statements do not count");
}

#[test]
fn unchanged_statements_start_no_query_and_escape_discards_the_edit() {
    let mut app = asked(140, 40);
    let turn = app.turn;
    assert_eq!(press(&mut app, "i<Enter>ixyz<Esc>"), []);
    assert_eq!((app.turn, app.question.clone(), app.screen), (turn, stage::question(), Screen::LANES));
}

#[test]
fn a_third_statement_makes_the_question_many_sided_and_dropping_all_leaves_none() {
    let mut app = asked(140, 40);
    let (.., statements) = started(&press(&mut app, "i<C-n>Zoos should be free.<Enter>"));
    assert_eq!((statements.len(), app.question.supports), (3, None));
    let (.., statements) = started(&press(&mut app, "i<C-x><C-x><C-u><End><C-w><C-w><C-w><C-w><C-w><Enter>"));
    assert_eq!((statements, app.by), (Vec::<String>::new(), By::None));
}

#[test]
fn swapping_sides_keeps_the_order_and_makes_the_other_statement_supporting() {
    let mut app = asked(140, 40);
    let (.., statements) = started(&press(&mut app, "i<C-s><Enter>"));
    assert_eq!((statements, app.question.supports), (stage::question().perspectives, Some(1)));
}

#[test]
fn pasted_text_becomes_one_safe_line() {
    let mut app = empty(140, 40);
    update(&mut app, Msg::Pasted(" Should zoos\n\u{1b}[31mbe banned? ".into()));
    assert!(!app.line.value().contains(['\n', '\u{1b}']));
    assert!(app.line.value().starts_with("Should zoos "));
}

#[test]
fn typing_continues_while_the_corpus_is_opened() {
    let mut app = App::new(&stage::start(), stage::size(140, 40));
    press(&mut app, "Should a ");
    receive(&mut app, Reply::Opened(Box::new(stage::opened())));
    assert!(app.typing);
    assert!(press(&mut app, "quiet").iter().all(|effect| *effect != Effect::Quit));
    assert_eq!(app.line.value(), "Should a quiet");
}

#[test]
fn a_question_of_the_set_keeps_the_text_of_the_set_however_it_is_typed() {
    let mut app = asked(140, 40);
    press(&mut app, &format!("/<C-u>{}<Enter>", QUESTION.to_lowercase()));
    assert_eq!((app.query().question, app.by), (stage::question(), By::Given));
    assert_ne!(app.line.value(), QUESTION);
}

#[test]
fn a_label_by_hand_survives_a_change_of_k() {
    let mut app = asked(140, 40);
    app.judgments.set_human(PassageIx(0), 0, Some(Some(true)));
    press(&mut app, "+");
    assert!(app.judgments.pair(PassageIx(0), 0).is_some_and(|pair| pair.human.is_some()));
}

#[test]
fn escape_in_the_question_line_puts_the_question_back() {
    let mut app = asked(140, 40);
    press(&mut app, "/<C-u>Should cats be banned?");
    let turn = app.turn;
    update(&mut app, Msg::QuietPeriodEnded { turn, reach: Reach::All });
    assert_eq!(app.question.perspectives[0], "Cats should be banned.");
    press(&mut app, "<Esc>");
    assert_eq!((app.line.value(), app.question.clone(), app.typing), (QUESTION, stage::question(), false));
    assert!(app.lanes.iter().all(|lane| lane.state == LaneState::Ready && lane.ranking.len() == 8));
    assert!(app.judgments.pair(PassageIx(0), 0).is_some(), "with its verdicts");
    press(&mut app, "/<C-u>Should cats<Esc>");
    assert_eq!(app.line.value(), QUESTION, "also if no pause has asked it yet");
}

#[test]
fn another_question_is_an_act_that_can_be_undone() {
    let mut app = asked(140, 40);
    press(&mut app, "/<C-u>Should cats be banned?<Enter>");
    assert_eq!(app.question.perspectives[0], "Cats should be banned.");
    press(&mut app, "u");
    assert_eq!((app.line.value(), app.question.clone()), (QUESTION, stage::question()));
    press(&mut app, "U");
    assert_eq!(app.question.text, "Should cats be banned?");
}

#[test]
fn a_question_that_no_rule_turns_into_statements_gets_a_draft() {
    let mut app = asked(140, 40);
    press(&mut app, "/<C-u>immigration");
    let (_, reach, none) = started(&press(&mut app, "<Enter>"));
    assert_eq!((reach, none.len()), (Reach::All, 0), "the lanes are asked meanwhile");
    assert_eq!(app.screen, Screen::STATEMENTS, "the statements open by themselves");
    let notice = app.notice.clone().unwrap();
    assert!(
        notice.contains("no rule turns this text into two sides: this is a draft") && notice.contains("Esc"),
        "{notice}"
    );
    let (.., statements) = started(&press(&mut app, "<Enter>"));
    let sides = ["for", "against"].map(|side| format!("There is a good case {side} immigration."));
    assert_eq!((statements.as_slice(), app.by), (&sides[..], By::User));
}

#[test]
fn escape_leaves_the_draft_and_the_question_is_not_offered_again() {
    let mut app = asked(140, 40);
    press(&mut app, "/<C-u>immigration<Enter>");
    press(&mut app, "<Esc>");
    assert_eq!((app.screen, app.question.perspectives.len()), (Screen::LANES, 0));
    press(&mut app, "/<Enter>");
    assert_eq!(app.screen, Screen::LANES, "a user who left it wants the lanes alone");
    press(&mut app, "i");
    assert_eq!(app.editing.lines.len(), 2, "the draft is there again on request");
    press(&mut app, "<Esc>/<C-u>Warum verbieten viele Menschen heute die alten Zoos der Stadt nicht?<Enter>");
    assert_eq!(app.screen, Screen::STATEMENTS);
    let notice = app.notice.clone().unwrap();
    assert!(notice.contains("English alone") && notice.contains("another language"), "{notice}");
    assert!(app.editing.lines.iter().all(|line| line.value().is_empty()));
    let mut app = asked(140, 40);
    press(&mut app, "/<C-u>Should cats be banned?<Enter>");
    assert_eq!(app.screen, Screen::LANES, "a rule made its statements");
}

#[test]
fn a_suggestion_that_is_clicked_is_asked() {
    let mut app = asked(140, 40);
    press(&mut app, "/<C-u>zoos");
    assert_eq!(app.completions, [QUESTION]);
    let at = |row| MouseEvent {
        kind: MouseEventKind::Down(MouseButton::Left),
        column: 14,
        row,
        modifiers: KeyModifiers::NONE,
    };
    let (.., statements) = started(&update(&mut app, Msg::Mouse(at(1))));
    assert_eq!((app.line.value(), app.typing), (QUESTION, false));
    assert_eq!(statements, stage::question().perspectives);
}

/// An explorer whose configuration names a contact, as wikis require, after another question.
fn with_contact() -> App {
    let mut app = asked(140, 40);
    app.settings.contact = Some("me@example.org".into());
    press(&mut app, "/<C-u>Should cats be banned?<Enter>");
    app
}

#[test]
fn making_a_corpus_opens_it_as_it_grows_and_escape_stops_it() {
    let mut app = asked(140, 40);
    assert_eq!(press(&mut app, "B"), []);
    let notice = app.notice.clone().unwrap();
    assert!(notice.contains("contact = ") && notice.contains("parallax config path"), "{notice}");
    let mut app = with_contact();
    let effects = press(&mut app, "B");
    let [Effect::Gather(order)] = effects.as_slice() else { panic!("{effects:?}") };
    assert_eq!(
        (order.question.text.as_str(), order.provider.to_string()),
        ("Should cats be banned?", "wikipedia:en".into())
    );
    assert_eq!(order.question.perspectives.len(), 2);
    assert!(!parallax::tui::pages::settled(&app));
    assert_eq!(press(&mut app, "B"), [], "one at a time");
    let grew = |app: &mut App| update(app, Msg::Gathered(Gathered::Grew("web/cats/corpus.jsonl".into())));
    let opens = Effect::UseCorpus(Some("web/cats/corpus.jsonl".into()));
    assert_eq!(grew(&mut app), std::slice::from_ref(&opens));
    assert_eq!(grew(&mut app), [], "while it is being opened, nothing is opened again");
    let (.., statements) = started(&receive(&mut app, Reply::Opened(Box::new(stage::opened()))));
    assert_eq!(statements[0], "Cats should be banned.", "the question is asked there");
    let turn = app.turn;
    receive(&mut app, Reply::Settled { turn });
    press(&mut app, "i");
    assert_eq!(app.screen, Screen::STATEMENTS);
    assert_eq!(grew(&mut app), [], "the corpus is not replaced while the user types");
    press(&mut app, "<Esc>");
    assert_eq!(press(&mut app, "<Esc>"), [Effect::StopGathering]);
    let ended =
        Ok((Some("web/cats/corpus.jsonl".into()), "wikipedia:en: 3 of 20 pages have a text".to_owned()));
    assert_eq!(update(&mut app, Msg::Gathered(Gathered::Ended(ended))), [opens]);
    assert!(app.gathering.is_none() && app.notice.as_deref().unwrap().contains("3 of 20 pages"));
}

#[test]
fn a_corpus_that_was_made_for_another_question_is_named_and_not_opened() {
    let mut app = with_contact();
    press(&mut app, "B/<C-u>Should dogs be banned?<Enter>");
    let ended =
        Ok((Some("web/cats/corpus.jsonl".into()), "wikipedia:en: 3 of 20 pages have a text".to_owned()));
    assert_eq!(update(&mut app, Msg::Gathered(Gathered::Ended(ended))), []);
    assert!(
        app.notice.as_deref().unwrap().contains("`Should cats be banned?` is web/cats/corpus.jsonl"),
        "{:?}",
        app.notice
    );
    let mut app = with_contact();
    press(&mut app, "B");
    update(&mut app, Msg::Gathered(Gathered::Ended(Err("wikipedia:en answered 503: it fails".into()))));
    assert_eq!(app.notice.as_deref(), Some("wikipedia:en answered 503: it fails"));
    press(&mut app, "B");
    let effects = press(&mut app, "C./own.jsonl<Enter>");
    assert_eq!(effects.last(), Some(&Effect::UseCorpus(Some("./own.jsonl".into()))));
    assert!(effects.contains(&Effect::StopGathering), "another corpus was chosen");
    let late = Msg::Gathered(Gathered::Ended(Ok((Some("web/cats/corpus.jsonl".into()), "late".into()))));
    assert_eq!(update(&mut app, late), []);
}

#[test]
fn settings_are_found_by_their_words_and_take_effect() {
    let mut app = asked(140, 40);
    let effects = press(&mut app, ":theme light<Enter>");
    assert_eq!((effects, app.look), (vec![Effect::SetLook(Look::Light)], Look::Light));
    let effects = press(&mut app, ":first 7 count<Enter>");
    assert!(matches!(effects.as_slice(), [Effect::Start { .. }]) && app.k == 7, "{} {effects:?}", app.k);
    press(&mut app, ":model alone<Enter>");
    assert_eq!(app.judgments.source, LabelSource::Model);
    press(&mut app, "uu");
    assert_eq!((app.k, app.judgments.source), (5, LabelSource::Auto), "both are acts");
    press(&mut app, ":at most 1 rows<Enter>");
    assert_eq!(app.layout.passage_rows, 1);
}

#[test]
fn a_question_of_the_set_and_another_corpus_are_chosen_from_lists() {
    let mut app = asked(140, 40);
    press(&mut app, "/<C-u>Is tea good?<Enter>");
    press(&mut app, "Qzoos<Enter>");
    assert_eq!(app.question, stage::question());
    let effects = press(&mut app, "C");
    assert!(matches!(effects.as_slice(), [Effect::Batch(_, Batch::Corpora)]), "{effects:?}");
    let shelf = Shelved { name: "wolves".into(), about: "12 passages".into(), path: "abcdef".into() };
    let number = app.batches;
    receive(&mut app, Reply::Corpora { number, corpora: Ok(vec![shelf]) });
    let effects = press(&mut app, "wolves<Enter>");
    assert_eq!(effects, [Effect::UseCorpus(Some("abcdef".into()))]);
    assert!(matches!(app.corpus, Corpus::Opening) && app.lanes.iter().all(|lane| lane.ranking.is_empty()));
    let (.., statements) = started(&receive(&mut app, Reply::Opened(Box::new(stage::opened()))));
    assert_eq!(statements, stage::question().perspectives, "the question is asked there");
    press(&mut app, "++");
    assert_ne!(press(&mut app, "uu"), [Effect::ReturnToCorpus], "what was done there is undone first");
    assert_eq!(press(&mut app, "u"), [Effect::ReturnToCorpus], "then the corpus before is opened again");
    started(&receive(&mut app, Reply::Opened(Box::new(stage::opened()))));
    assert_eq!((app.question.clone(), app.k), (stage::question(), 5));
    press(&mut app, "u");
    assert_eq!(app.question.text, "Is tea good?", "what was done there can be undone too");
    let effects = press(&mut app, "C./own.jsonl<Enter>");
    assert_eq!(effects.last(), Some(&Effect::UseCorpus(Some("./own.jsonl".into()))));
}

#[test]
fn a_very_long_paste_is_cut_and_can_be_cleared() {
    let mut app = asked(140, 40);
    press(&mut app, "/<C-u>");
    let effects = update(&mut app, Msg::Pasted("zoo ".repeat(1_000)));
    assert!(effects.iter().any(|effect| matches!(effect, Effect::WaitQuiet { reach: Reach::All, .. })));
    assert_eq!(app.line.value().chars().count(), 2_000);
    press(&mut app, "<C-u>");
    assert_eq!(app.line.value(), "");
}

#[test]
fn an_action_is_found_by_its_words_and_done() {
    let mut app = asked(140, 40);
    press(&mut app, ":mmr none");
    assert!(app.palette.is_some() && app.lanes.iter().all(|lane| !lane.recipe.to_string().contains("mmr")));
    press(&mut app, "<Down><Up><Enter>");
    assert!(app.palette.is_none());
    assert!(app.lanes.iter().all(|lane| lane.recipe.to_string().contains("mmr")));
}

#[test]
fn words_that_no_action_has_do_nothing_and_escape_changes_nothing() {
    let mut app = asked(140, 40);
    assert_eq!(press(&mut app, ":xyzzy<Enter>"), []);
    assert!(app.palette.is_some());
    assert_eq!(press(&mut app, "<Esc>q"), [Effect::Quit]);
}

#[test]
fn an_action_is_looked_for_among_those_of_the_screen_it_was_called_from() {
    let mut app = asked(140, 40);
    press(&mut app, "<Enter>:next pass<Enter>");
    assert_eq!((app.screen, app.lanes[0].selected), (Screen::PASSAGE, 1));
}

#[test]
fn what_is_kept_for_one_question_is_never_taken_for_that_of_another() {
    let mut app = asked(140, 40);
    // Revisions say whether something that was worked out from the judgments still holds.
    let mut last = app.judgments.revision();
    for keys in ["i<End><BS>, all of them.<Enter>", "/<C-u>Should cats be banned?<Enter>"] {
        press(&mut app, keys);
        assert!(app.judgments.revision() > last, "{keys}");
        last = app.judgments.revision();
    }
}

#[test]
fn a_far_question_is_said_to_be_far_once_it_is_asked_and_not_while_it_is_typed() {
    let mut app = empty(140, 40);
    press(&mut app, "immigration");
    let far = |app: &mut App| {
        let turn = app.turn;
        receive(app, Reply::FarOff { turn, best: 0.3, usual: 0.7 });
    };
    far(&mut app);
    assert_eq!((app.notice.as_deref(), app.far_off), (None, Some((0.3, 0.7))));
    press(&mut app, "<Enter>");
    far(&mut app);
    let notice = app.notice.as_deref().unwrap();
    assert!(notice.starts_with("nothing here is near this question: best .30, usual .70"), "{notice}");
}

#[test]
fn what_is_typed_replaces_the_question_of_the_last_start_and_escape_puts_it_back() {
    let recalled = || {
        let mut app = asked(140, 40);
        (app.typing, app.recalled) = (true, true);
        app
    };
    let mut app = recalled();
    press(&mut app, "Is tea good?");
    assert_eq!((app.line.value(), app.recalled), ("Is tea good?", false));
    press(&mut app, "<Esc>");
    assert_eq!((app.line.value(), app.typing), (QUESTION, false));
    let mut app = recalled();
    update(&mut app, Msg::Pasted("Is tea good?".into()));
    assert_eq!(app.line.value(), "Is tea good?");
    let mut app = recalled();
    press(&mut app, "<Left><End> Why?");
    assert_eq!(app.line.value(), format!("{QUESTION} Why?"), "moving the cursor keeps it");
    let mut app = recalled();
    assert!(matches!(press(&mut app, "<Enter>").as_slice(), [Effect::Start { .. }]) && !app.typing);
}
