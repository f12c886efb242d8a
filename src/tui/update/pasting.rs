//! Text that is pasted: taken at once, as one safe line, and no more of it than a line may hold.

use tui_input::Input;

use super::super::app::App;
use super::super::keymap::Context;
use super::super::message::Effect;
use super::{asking, context, moving};
use crate::report::safe;

/// No line is longer; what is pasted beyond is not taken.
pub const LONGEST: usize = 2_000;

/// Puts a text at the cursor of the line that is being typed, if there is one.
pub fn paste(app: &mut App, text: &str) -> Vec<Effect> {
    let place = context(app);
    // Whatever was pasted, no more of it than fits is looked at.
    let text = safe::line(&text.trim().chars().take(LONGEST + 1).collect::<String>());
    let Some(line) = line(app, place) else { return Vec::new() };
    let before = line.value().chars().count();
    let cut = insert(line, &text, LONGEST.saturating_sub(before));
    let more = line.value().chars().count() > before;
    if cut {
        let what = if place == Context::Question { "question" } else { "line" };
        app.notice = Some(format!("a {what} has at most {LONGEST} characters"));
    }
    match place {
        Context::Question if more => {
            app.history.forget();
            return asking::changed(app);
        }
        Context::Filter => moving::keep_in_view(app),
        Context::Palette => app.palette.iter_mut().for_each(|palette| palette.at = 0),
        _ => {}
    }
    Vec::new()
}

fn line(app: &mut App, place: Context) -> Option<&mut Input> {
    match place {
        Context::Question => Some(&mut app.line),
        Context::Filter => Some(&mut app.filter.line),
        Context::Statements => app.editing.lines.get_mut(app.editing.at),
        Context::Toward => app.tuning.typed.as_mut(),
        Context::Note => app.labelling.typed.as_mut(),
        Context::Palette => app.palette.as_mut().map(|palette| &mut palette.line),
        _ => None,
    }
}

/// Puts at most `room` characters of a text at the cursor. Whether some did not fit.
fn insert(line: &mut Input, text: &str, room: usize) -> bool {
    let at = line.cursor();
    let taken: String = text.chars().take(room).collect();
    let count = taken.chars().count();
    let value = line.value().chars();
    let value = value.clone().take(at).chain(taken.chars()).chain(value.skip(at)).collect::<String>();
    *line = Input::new(value).with_cursor(at + count);
    text.chars().nth(room).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_put_at_the_cursor_and_no_more_of_it_than_fits() {
        let mut line = Input::new("zoos 動物".into()).with_cursor(5);
        assert!(!insert(&mut line, "é動", 9));
        assert_eq!((line.value(), line.cursor()), ("zoos é動動物", 7));
        assert!(insert(&mut line, "abc", 2));
        assert_eq!((line.value(), line.cursor()), ("zoos é動ab動物", 9));
    }
}
