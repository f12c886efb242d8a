//! One table of context, keys, action and help. Dispatch, the footer, the help screen and the README come from it.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::pipeline::recipe::Switch;

/// What a key orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Put the cursor into the question line.
    EditQuestion,
    /// Put the question to all lanes.
    Ask,
    /// Take the completion that is marked.
    Complete,
    /// Mark the completion below or above.
    NextCompletion,
    /// Mark the completion above.
    PreviousCompletion,
    /// Leave the question line or the screen.
    Back,
    /// The lane to the right.
    NextLane,
    /// The lane to the left.
    PreviousLane,
    /// One down.
    Down,
    /// One up.
    Up,
    /// A screen down.
    PageDown,
    /// A screen up.
    PageUp,
    /// To the first.
    First,
    /// To the last.
    Last,
    /// Read the passage.
    Read,
    /// The passage after this one.
    NextPassage,
    /// The passage before this one.
    PreviousPassage,
    /// Let one more passage count.
    Deeper,
    /// Let one passage less count.
    Shallower,
    /// Let other labels count.
    NextLabelSource,
    /// Flip a switch of the lane.
    Toggle(Switch),
    /// Flip a switch of every lane that has a use for it.
    ToggleEverywhere(Switch),
    /// Let relevance count more in re-ranking.
    MoreRelevance,
    /// Let difference count more in re-ranking.
    LessRelevance,
    /// Show the lane in all forms of one switch.
    Tune,
    /// Show the next switch's forms.
    NextSwitch,
    /// Show the switch's before.
    PreviousSwitch,
    /// Measure over the question set, or on this question alone.
    OverSet,
    /// Type a perspective to project toward.
    TypePerspective,
    /// Project toward what was typed.
    ApplyPerspective,
    /// Ask every lane neutrally and as either side.
    Sway,
    /// Show the lanes over the question set.
    Compare,
    /// Order the questions otherwise.
    NextOrder,
    /// Open the marked question.
    OpenQuestion,
    /// Swap the lanes with what they were before the last change.
    Swap,
    /// Another lane like this one.
    NewLane,
    /// Drop the lane.
    DropLane,
    /// Move the lane to the left.
    LaneLeft,
    /// Move the lane to the right.
    LaneRight,
    /// Copy the lane's recipe.
    CopyRecipe,
    /// Change the statements.
    EditStatements,
    /// Another statement.
    AddStatement,
    /// Drop the statement.
    DropStatement,
    /// Let the other of two statements be the supporting one.
    SwapSides,
    /// Use the statements as they stand.
    ApplyStatements,
    /// Show all keys.
    Help,
    /// Save the frame as a picture.
    SaveFrame,
    /// Sleep in the background.
    Suspend,
    /// End.
    Quit,
}

/// Where a key means something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Context {
    /// The question line.
    Question,
    /// The lanes.
    Lanes,
    /// A passage in full.
    Read,
    /// The statements being edited.
    Statements,
    /// A lane in all forms of one switch.
    Tune,
    /// A perspective being typed there.
    Toward,
    /// The lanes asked in three wordings.
    Sway,
    /// The lanes over the question set.
    Compare,
    /// The list of keys.
    Help,
    /// Everywhere.
    Anywhere,
}

/// One line of the table.
pub struct Binding {
    /// Where.
    pub context: Context,
    /// Keys in Vim's notation, the first one being the one that is shown.
    pub keys: &'static [&'static str],
    /// What.
    pub action: Action,
    /// A word or two for the footer; empty where it has no room.
    pub short: &'static str,
    /// A sentence for the help screen.
    pub help: &'static str,
}

const fn bind(
    context: Context,
    keys: &'static [&'static str],
    action: Action,
    short: &'static str,
    help: &'static str,
) -> Binding {
    Binding { context, keys, action, short, help }
}

/// The table.
pub const TABLE: &[Binding] = &[
    bind(Context::Question, &["<Enter>"], Action::Ask, "ask", "put the question to all lanes"),
    bind(Context::Question, &["<Tab>"], Action::Complete, "complete", "take the marked question of the set"),
    bind(Context::Question, &["<Esc>"], Action::Back, "to the lanes", "leave the question line"),
    bind(Context::Question, &["<Down>"], Action::NextCompletion, "", "mark the next question of the set"),
    bind(Context::Question, &["<Up>"], Action::PreviousCompletion, "", "mark the one before"),
    bind(Context::Lanes, &["<Enter>"], Action::Read, "read", "read the passage in full"),
    bind(Context::Lanes, &["/"], Action::EditQuestion, "ask", "edit the question"),
    bind(Context::Lanes, &["?"], Action::Help, "keys", "show all keys"),
    bind(
        Context::Lanes,
        &["m"],
        Action::Toggle(Switch::Mmr),
        "mmr",
        "re-rank the lane by MMR, or not (M: every lane)",
    ),
    bind(
        Context::Lanes,
        &["e"],
        Action::Toggle(Switch::Expand),
        "expand",
        "expand the lane's query, or not (E: every lane)",
    ),
    bind(
        Context::Lanes,
        &["p"],
        Action::Toggle(Switch::Project),
        "project",
        "project the lane's query, or not (P: every lane)",
    ),
    bind(
        Context::Lanes,
        &["v"],
        Action::Toggle(Switch::Diversify),
        "diversify",
        "re-rank the lane by verdicts, or not (V: every lane)",
    ),
    bind(Context::Lanes, &["t"], Action::Tune, "tune", "compare all forms of the lane's switches"),
    bind(Context::Lanes, &["x"], Action::Swap, "before/after", "swap the lanes with what they were before"),
    bind(
        Context::Lanes,
        &["y"],
        Action::Sway,
        "sycophancy",
        "ask every lane neutrally and as either side, to see how far it follows the wording",
    ),
    bind(Context::Lanes, &["c"], Action::Compare, "compare", "compare the lanes over the question set"),
    bind(Context::Lanes, &["q"], Action::Quit, "quit", "leave"),
    bind(Context::Lanes, &["<Tab>", "<Right>", "l"], Action::NextLane, "lane", "go to the next lane"),
    bind(Context::Lanes, &["<S-Tab>", "<Left>", "h"], Action::PreviousLane, "", "go to the lane before"),
    bind(Context::Lanes, &["j", "<Down>"], Action::Down, "", "go to the next passage"),
    bind(Context::Lanes, &["k", "<Up>"], Action::Up, "", "go to the passage before"),
    bind(Context::Lanes, &["<PageDown>", "<C-d>"], Action::PageDown, "", "go a screen down"),
    bind(Context::Lanes, &["<PageUp>", "<C-u>"], Action::PageUp, "", "go a screen up"),
    bind(Context::Lanes, &["g", "<Home>"], Action::First, "", "go to the first passage"),
    bind(Context::Lanes, &["G", "<End>"], Action::Last, "", "go to the last passage"),
    bind(Context::Lanes, &["+"], Action::Deeper, "depth", "let one more passage count (k)"),
    bind(Context::Lanes, &["-"], Action::Shallower, "", "let one passage less count (k)"),
    bind(
        Context::Lanes,
        &["s"],
        Action::NextLabelSource,
        "labels",
        "let other labels count: auto, model, gold",
    ),
    bind(
        Context::Lanes,
        &["M"],
        Action::ToggleEverywhere(Switch::Mmr),
        "",
        "re-rank every lane by MMR, or none",
    ),
    bind(
        Context::Lanes,
        &["E"],
        Action::ToggleEverywhere(Switch::Expand),
        "",
        "expand the query of every lane, or of none",
    ),
    bind(
        Context::Lanes,
        &["P"],
        Action::ToggleEverywhere(Switch::Project),
        "",
        "project the query of every lane of vectors, or of none",
    ),
    bind(
        Context::Lanes,
        &["V"],
        Action::ToggleEverywhere(Switch::Diversify),
        "",
        "re-rank every lane by verdicts, or none",
    ),
    bind(
        Context::Lanes,
        &[">"],
        Action::MoreRelevance,
        "",
        "let relevance count more in the lane's re-ranking",
    ),
    bind(
        Context::Lanes,
        &["<lt>"],
        Action::LessRelevance,
        "",
        "let difference count more in the lane's re-ranking",
    ),
    bind(Context::Lanes, &["n"], Action::NewLane, "new lane", "open another lane like this one"),
    bind(Context::Lanes, &["d"], Action::DropLane, "", "drop the lane"),
    bind(Context::Lanes, &["["], Action::LaneLeft, "", "move the lane to the left"),
    bind(Context::Lanes, &["]"], Action::LaneRight, "", "move the lane to the right"),
    bind(Context::Lanes, &["Y"], Action::CopyRecipe, "", "copy the lane's recipe, for --lane"),
    bind(
        Context::Lanes,
        &["S"],
        Action::SaveFrame,
        "",
        "save the frame as an SVG picture in the present folder",
    ),
    bind(Context::Lanes, &["i"], Action::EditStatements, "statements", "edit the question's statements"),
    bind(Context::Read, &["<Esc>", "q", "<Enter>"], Action::Back, "back", "go back to the lanes"),
    bind(Context::Read, &["S"], Action::SaveFrame, "", "save the frame as an SVG picture"),
    bind(Context::Read, &["?"], Action::Help, "keys", "show all keys"),
    bind(Context::Read, &["j", "<Down>"], Action::Down, "scroll", "scroll down"),
    bind(Context::Read, &["k", "<Up>"], Action::Up, "", "scroll up"),
    bind(Context::Read, &["<PageDown>", "<C-d>", "<Space>"], Action::PageDown, "", "scroll a screen down"),
    bind(Context::Read, &["<PageUp>", "<C-u>"], Action::PageUp, "", "scroll a screen up"),
    bind(Context::Read, &["g", "<Home>"], Action::First, "", "scroll to the top"),
    bind(Context::Read, &["G", "<End>"], Action::Last, "", "scroll to the end"),
    bind(Context::Read, &["n", "<Right>", "l"], Action::NextPassage, "next", "read the lane's next passage"),
    bind(
        Context::Read,
        &["p", "<Left>", "h"],
        Action::PreviousPassage,
        "previous",
        "read the lane's passage before",
    ),
    bind(Context::Read, &["<Tab>"], Action::NextLane, "lane", "read on in the next lane"),
    bind(
        Context::Read,
        &["s"],
        Action::NextLabelSource,
        "labels",
        "let other labels count: auto, model, gold",
    ),
    bind(
        Context::Statements,
        &["<Enter>"],
        Action::ApplyStatements,
        "use them",
        "use the statements and ask again",
    ),
    bind(Context::Statements, &["<Esc>"], Action::Back, "cancel", "leave them as they were"),
    bind(Context::Statements, &["<Down>", "<Tab>"], Action::Down, "choose", "go to the next statement"),
    bind(Context::Statements, &["<Up>", "<S-Tab>"], Action::Up, "", "go to the statement before"),
    bind(Context::Statements, &["<C-n>"], Action::AddStatement, "add", "add a statement"),
    bind(Context::Statements, &["<C-x>"], Action::DropStatement, "drop", "drop the statement"),
    bind(
        Context::Statements,
        &["<C-s>"],
        Action::SwapSides,
        "swap sides",
        "let the other of two be the supporting one",
    ),
    bind(
        Context::Tune,
        &["<Tab>", "<Right>", "l"],
        Action::NextSwitch,
        "switch",
        "go to the next switch: MMR, expansion, projection, diversifier",
    ),
    bind(Context::Tune, &["<S-Tab>", "<Left>", "h"], Action::PreviousSwitch, "", "go to the switch before"),
    bind(Context::Tune, &["j", "<Down>"], Action::Down, "form", "give the lane the next form"),
    bind(Context::Tune, &["k", "<Up>"], Action::Up, "", "give the lane the form before"),
    bind(
        Context::Tune,
        &["o"],
        Action::OverSet,
        "over the set",
        "measure over the question set, or on this question alone",
    ),
    bind(
        Context::Tune,
        &["="],
        Action::TypePerspective,
        "toward",
        "project toward a perspective that you type",
    ),
    bind(Context::Toward, &["<Enter>"], Action::ApplyPerspective, "project", "project toward what was typed"),
    bind(Context::Toward, &["<Esc>"], Action::Back, "cancel", "leave the projection as it was"),
    bind(Context::Tune, &["<PageDown>", "<C-d>"], Action::PageDown, "scroll", "scroll what the form did"),
    bind(Context::Tune, &["<PageUp>", "<C-u>"], Action::PageUp, "", "scroll back"),
    bind(Context::Tune, &["<Esc>", "q", "<Enter>", "t"], Action::Back, "back", "go back to the lanes"),
    bind(Context::Tune, &["S"], Action::SaveFrame, "", "save the frame as an SVG picture"),
    bind(Context::Tune, &["?"], Action::Help, "keys", "show all keys"),
    bind(Context::Sway, &["<Tab>", "<Right>", "l"], Action::NextLane, "lane", "show the next lane"),
    bind(Context::Sway, &["<S-Tab>", "<Left>", "h"], Action::PreviousLane, "", "show the lane before"),
    bind(
        Context::Sway,
        &["s"],
        Action::NextLabelSource,
        "labels",
        "let other labels count: auto, model, gold",
    ),
    bind(Context::Sway, &["<Esc>", "q", "y"], Action::Back, "back", "go back to the lanes"),
    bind(Context::Sway, &["S"], Action::SaveFrame, "", "save the frame as an SVG picture"),
    bind(Context::Sway, &["?"], Action::Help, "keys", "show all keys"),
    bind(
        Context::Compare,
        &["<Enter>"],
        Action::OpenQuestion,
        "open",
        "open the marked question with the same lanes",
    ),
    bind(Context::Compare, &["j", "<Down>"], Action::Down, "", "go to the next question"),
    bind(Context::Compare, &["k", "<Up>"], Action::Up, "", "go to the question before"),
    bind(Context::Compare, &["<PageDown>", "<C-d>"], Action::PageDown, "", "go a screen down"),
    bind(Context::Compare, &["<PageUp>", "<C-u>"], Action::PageUp, "", "go a screen up"),
    bind(Context::Compare, &["g", "<Home>"], Action::First, "", "go to the first question"),
    bind(Context::Compare, &["G", "<End>"], Action::Last, "", "go to the last question"),
    bind(
        Context::Compare,
        &["o"],
        Action::NextOrder,
        "order",
        "order the questions as in the set, by disagreement, or worst first",
    ),
    bind(
        Context::Compare,
        &["<Tab>", "<Right>", "l"],
        Action::NextLane,
        "lane",
        "compare the lanes with the next one",
    ),
    bind(
        Context::Compare,
        &["<S-Tab>", "<Left>", "h"],
        Action::PreviousLane,
        "",
        "compare the lanes with the one before",
    ),
    bind(
        Context::Compare,
        &["s"],
        Action::NextLabelSource,
        "labels",
        "let other labels count: auto, model, gold",
    ),
    bind(
        Context::Compare,
        &["<Esc>", "q", "c"],
        Action::Back,
        "back",
        "go back to the lanes; the comparison stops",
    ),
    bind(Context::Compare, &["S"], Action::SaveFrame, "", "save the frame as an SVG picture"),
    bind(Context::Compare, &["?"], Action::Help, "keys", "show all keys"),
    bind(Context::Help, &["<Esc>", "q", "?"], Action::Back, "back", "go back"),
    bind(Context::Help, &["j", "<Down>"], Action::Down, "scroll", "scroll down"),
    bind(Context::Help, &["k", "<Up>"], Action::Up, "", "scroll up"),
    bind(Context::Anywhere, &["<C-z>"], Action::Suspend, "", "sleep; `fg` wakes it"),
    bind(Context::Anywhere, &["<C-c>"], Action::Quit, "", "leave at once"),
];

/// The action of a key in a context.
pub fn action(context: Context, key: &KeyEvent) -> Option<Action> {
    let name = name(key)?;
    let here = |binding: &&Binding| {
        (binding.context == context || binding.context == Context::Anywhere)
            && binding.keys.contains(&name.as_str())
    };
    TABLE.iter().find(here).map(|binding| binding.action)
}

/// A key in Vim's notation; none for keys that have no name there.
pub fn name(key: &KeyEvent) -> Option<String> {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    let special = match key.code {
        KeyCode::Char(' ') if !control => "Space",
        KeyCode::Char('<') if !control => "lt",
        KeyCode::Char(c) if control => return Some(format!("<C-{}>", c.to_ascii_lowercase())),
        KeyCode::Char(c) => return Some(c.to_string()),
        KeyCode::Enter => "Enter",
        KeyCode::Esc => "Esc",
        KeyCode::Tab => "Tab",
        KeyCode::BackTab => "S-Tab",
        KeyCode::Backspace => "BS",
        KeyCode::Delete => "Del",
        KeyCode::Up => "Up",
        KeyCode::Down => "Down",
        KeyCode::Left => "Left",
        KeyCode::Right => "Right",
        KeyCode::Home => "Home",
        KeyCode::End => "End",
        KeyCode::PageUp => "PageUp",
        KeyCode::PageDown => "PageDown",
        _ => return None,
    };
    Some(format!("<{special}>"))
}

/// How a key is shown to people: `⏎` instead of `<Enter>`.
pub fn shown(key: &str, ascii: bool) -> String {
    let inner = key.strip_prefix('<').and_then(|rest| rest.strip_suffix('>')).unwrap_or(key);
    match (inner, ascii) {
        ("Enter", false) => "⏎".into(),
        ("Up", false) => "↑".into(),
        ("Down", false) => "↓".into(),
        ("Left", false) => "←".into(),
        ("Right", false) => "→".into(),
        _ => inner.strip_prefix("C-").map_or_else(|| inner.to_owned(), |letter| format!("^{letter}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_key_means_two_things_in_one_place() {
        let mut seen = HashSet::new();
        for binding in TABLE {
            for key in binding.keys {
                assert!(seen.insert((binding.context, key)), "{key} in {:?}", binding.context);
            }
        }
    }

    #[test]
    fn every_key_of_the_table_can_be_typed() {
        for binding in TABLE {
            for key in binding.keys {
                let script = crate::tui::script::parse(key).unwrap();
                let [crate::tui::script::Step::Key(event)] = script.as_slice() else { panic!("{key}") };
                assert_eq!(name(event).as_deref(), Some(*key));
            }
        }
    }
}
