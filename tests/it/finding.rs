//! Filters, lanes that scroll together, borders that are dragged, earlier questions.

use crossterm::event::{KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use parallax::tui::app::App;
use parallax::tui::draw::draw;
use parallax::tui::keymap::Screen;
use parallax::tui::layout::arrange;
use parallax::tui::message::{Effect, Msg};
use parallax::tui::query_history::History;
use parallax::tui::theme::{Look, Theme};
use parallax::tui::update::update;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::layout::Rect;

use crate::stage::{QUESTION, asked, empty, press, size};

fn ids(app: &App, lane: usize) -> Vec<&str> {
    let lane = &app.lanes[lane];
    app.shown(lane).into_iter().map(|place| lane.ranking[place].passage.id.as_str()).collect()
}

fn frame(app: &App) -> String {
    let mut terminal = Terminal::new(TestBackend::new(app.size.width, app.size.height)).unwrap();
    terminal.draw(|frame| draw(app, Theme::of(Look::Terminal), frame)).unwrap();
    let buffer = terminal.backend().buffer().clone();
    let rows = buffer.content.chunks(usize::from(app.size.width));
    rows.map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>() + "\n").collect()
}

fn mouse(app: &mut App, kind: MouseEventKind, column: u16, row: u16) -> Vec<Effect> {
    update(app, Msg::Mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE }))
}

fn widths(app: &App) -> Vec<u16> {
    let panes = arrange(Rect::new(0, 0, app.size.width, app.size.height), app);
    panes.lanes.iter().map(|pane| pane.outer.width).collect()
}

#[test]
fn a_filter_shows_the_passages_with_every_word_and_their_original_ranks() {
    let mut app = asked(140, 40);
    press(&mut app, "fCONDOR zoos");
    assert_eq!(ids(&app, 0), ["zoos-05", "zoos-06"]);
    let shown = frame(&app);
    assert!(shown.contains("filter: CONDOR zoos"), "{shown}");
    assert!(shown.contains("shown: 2 of 8, 2 of 8, 2 of 8"), "{shown}");
    assert!(shown.contains(" 5 ") && !shown.contains("Opening times"), "{shown}");
    // The cursor moved with its passage.
    assert_eq!(app.selected().unwrap().passage.id, "zoos-05");
}

#[test]
fn a_filter_stays_until_it_is_cleared_and_the_mark_moves_within_it() {
    let mut app = asked(140, 40);
    press(&mut app, "fban<Enter>");
    let filtered = ids(&app, 0).into_iter().map(str::to_owned).collect::<Vec<_>>();
    assert!(filtered.len() > 2 && filtered.len() < 8, "{filtered:?}");
    press(&mut app, "gj");
    assert_eq!(app.selected().unwrap().passage.id, filtered[1]);
    press(&mut app, "G");
    assert_eq!(app.selected().unwrap().passage.id, filtered[filtered.len() - 1]);
    press(&mut app, "f<Esc>");
    assert_eq!(ids(&app, 0).len(), 8);
    assert!(!frame(&app).contains("filter:"));
}

#[test]
fn if_no_passage_passes_the_filter_none_can_be_opened() {
    let mut app = asked(140, 40);
    press(&mut app, "fnowhere<Enter>");
    assert!(frame(&app).contains("No passage here holds `nowhere`."));
    assert!(app.selected().is_none());
    press(&mut app, "<Enter>jkgG");
    assert_eq!(app.screen, Screen::LANES);
    press(&mut app, "f<Esc>");
    assert!(app.selected().is_some());
}

#[test]
fn lanes_scroll_together_if_asked() {
    let mut app = asked(140, 40);
    press(&mut app, "jj");
    assert_eq!([0, 1, 2].map(|lane| app.lanes[lane].selected), [2, 0, 0]);
    press(&mut app, "=j");
    assert_eq!([0, 1, 2].map(|lane| app.lanes[lane].selected), [3, 3, 3]);
    press(&mut app, "=j");
    assert_eq!([0, 1, 2].map(|lane| app.lanes[lane].selected), [4, 3, 3]);
}

#[test]
fn a_border_is_dragged_and_both_lanes_stay_usable() {
    let mut app = asked(140, 40);
    let before = widths(&app);
    let border = before[0] - 1;
    mouse(&mut app, MouseEventKind::Down(MouseButton::Left), border, 10);
    mouse(&mut app, MouseEventKind::Drag(MouseButton::Left), border + 20, 10);
    let after = widths(&app);
    assert_eq!((after[0], after[2]), (before[0] + 20, before[2]));
    assert_eq!(after.iter().sum::<u16>(), 140);
    // Not further than the minimum width of the next lane, 16 of the dragged columns; rounding may take one.
    mouse(&mut app, MouseEventKind::Drag(MouseButton::Left), 139, 10);
    assert!(widths(&app)[1] >= 15, "{:?}", widths(&app));
    mouse(&mut app, MouseEventKind::Up(MouseButton::Left), 139, 10);
    let before = widths(&app);
    mouse(&mut app, MouseEventKind::Drag(MouseButton::Left), 20, 10);
    assert_eq!(widths(&app), before);
    // A click on a border does not mark a passage.
    assert_eq!(app.lanes[1].selected, 0);
}

#[test]
fn a_dragged_border_survives_a_resize() {
    for width in [8, 30, 64, 80, 139, 200] {
        for to in [0, 7, 31, 79, 199] {
            let mut app = asked(140, 40);
            let border = widths(&app)[0] - 1;
            mouse(&mut app, MouseEventKind::Down(MouseButton::Left), border, 10);
            mouse(&mut app, MouseEventKind::Drag(MouseButton::Left), to, 10);
            update(&mut app, Msg::Resized(size(width, 24)));
            let _ = frame(&app);
            assert!(widths(&app).iter().sum::<u16>() <= width);
        }
    }
}

#[test]
fn up_recalls_earlier_questions_and_down_returns_to_what_was_typed() {
    let mut app = empty(140, 40);
    app.history = History::of(["Is tea better?".to_owned(), "Are zoos good?".to_owned()]);
    press(&mut app, "Should<Up>");
    assert_eq!(app.line.value(), "Are zoos good?");
    press(&mut app, "<Up>");
    assert_eq!(app.line.value(), "Is tea better?");
    press(&mut app, "<Up><Down><Down>");
    assert_eq!(app.line.value(), "Should");
    // The question asked last is recalled first.
    press(&mut app, "<C-u>");
    app.line = tui_input::Input::new(QUESTION.into());
    press(&mut app, "<Enter>/<C-u><Up>");
    assert_eq!(app.line.value(), QUESTION);
}

#[test]
fn a_click_on_a_tab_moves_the_cursor_to_its_lane() {
    let mut app = asked(80, 24);
    let tabs = arrange(Rect::new(0, 0, 80, 24), &app).tabs;
    let row = frame(&app).lines().nth(usize::from(tabs.y)).unwrap().to_owned();
    for (lane, name) in [(2, "Hybrid"), (0, "BM25"), (1, "MiniLM")] {
        let column = row.find(name).unwrap() as u16 + 1;
        mouse(&mut app, MouseEventKind::Down(MouseButton::Left), column, tabs.y);
        assert_eq!(app.lane, lane, "{name} in {row}");
    }
}

#[test]
fn the_wheel_moves_the_lane_below_the_mouse_and_the_cursor_stays_in_its_own() {
    let mut app = asked(140, 40);
    mouse(&mut app, MouseEventKind::ScrollDown, 130, 10);
    assert_eq!((app.lane, app.lanes[0].selected, app.lanes[2].selected), (0, 0, 1));
    mouse(&mut app, MouseEventKind::ScrollUp, 130, 10);
    mouse(&mut app, MouseEventKind::ScrollDown, 10, 10);
    assert_eq!((app.lane, app.lanes[0].selected, app.lanes[2].selected), (0, 1, 0));
}
