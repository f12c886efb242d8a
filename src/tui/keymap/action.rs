//! Actions, the contexts in which keys are looked up, and one line of the table of keys.

use crate::engine::recipe::Switch;

/// What a key does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Put the cursor into the question line.
    EditQuestion,
    /// Put the question to all lanes.
    Ask,
    /// Take the completion that is marked.
    Complete,
    /// Mark the completion below.
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
    /// Show only passages that hold certain words.
    Filter,
    /// Leave the filter's line; the filter stays.
    KeepFilter,
    /// Let all lanes scroll together, or not.
    Together,
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
    /// Show the forms of the switch before.
    PreviousSwitch,
    /// Measure over the question set, or on this question alone.
    OverSet,
    /// Type a perspective to project toward.
    TypePerspective,
    /// Project toward what was typed.
    ApplyPerspective,
    /// Ask every lane neutrally and as either side.
    Sycophancy,
    /// Show the lanes over the question set.
    Compare,
    /// Show which way the lanes lean, and whose passages they bring up.
    Bias,
    /// Show what is read from the lanes' lists.
    Answers,
    /// Show the detectors that can be chosen.
    ChooseDetector,
    /// Leave the passage out of what is read, or take it in again.
    DropPassage,
    /// Let the passage be read later.
    PassageDown,
    /// Let it be read earlier.
    PassageUp,
    /// Have the list read at every depth, or give that up.
    HaveRead,
    /// Have it read without each passage.
    WithoutEach,
    /// Have it read in other orders.
    OtherOrders,
    /// Keep what a probe keeps, by its number from 0.
    Probe(usize),
    /// Show the next field of the passages.
    NextField,
    /// Show the field before.
    PreviousField,
    /// Show the field's values on the lanes, or no longer.
    OnLanes,
    /// Order the questions otherwise.
    NextOrder,
    /// Open the marked question.
    OpenQuestion,
    /// Label passages by hand.
    Annotate,
    /// The passage supports the question's supporting statement alone.
    LabelSupport,
    /// It supports the opposing one alone.
    LabelOppose,
    /// It supports both sides.
    LabelBoth,
    /// It supports none.
    LabelNone,
    /// Choose a perspective, by its number from 0, or choose it no longer.
    ToggleLabel(usize),
    /// It supports what was chosen.
    ApplyLabel,
    /// Pass the passage over for now.
    Skip,
    /// Mark it for another look.
    Flag,
    /// Write a remark on it.
    Note,
    /// Keep the remark.
    ApplyNote,
    /// Mark the words that show what it supports.
    MarkEvidence,
    /// To the next word.
    NextWord,
    /// To the word before.
    PreviousWord,
    /// The evidence begins here.
    BeginSpan,
    /// Keep the marked words.
    ApplySpan,
    /// Take the last act back.
    Undo,
    /// Do again what was taken back.
    Redo,
    /// Let the passages come in another order.
    NextLabelOrder,
    /// Show the interval of another figure.
    NextFigure,
    /// Hide lane, rank and verdict, or show them.
    ToggleBlind,
    /// Show what counts as support.
    Guidelines,
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
    /// Find an action by its words.
    Palette,
    /// Do the action that is marked.
    Choose,
    /// Show all keys.
    Help,
    /// Save the frame as a picture.
    SaveFrame,
    /// Record what is done, or stop.
    Record,
    /// Sleep in the background.
    Suspend,
    /// End.
    Quit,
}

/// What fills the screen, by its name. Each screen's folder names its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Screen(pub &'static str);

/// Where keys are looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Context {
    /// The question line.
    Question,
    /// The lanes.
    Lanes,
    /// Words being typed that passages must hold.
    Filter,
    /// A passage in full.
    Read,
    /// The statements being edited.
    Statements,
    /// A lane in all forms of one switch.
    Tune,
    /// A perspective being typed there.
    Toward,
    /// The lanes asked in three wordings.
    Sycophancy,
    /// The lanes over the question set.
    Compare,
    /// Passages being labelled by hand.
    Annotate,
    /// A remark being typed there.
    Note,
    /// Evidence being marked there.
    Marking,
    /// An action being looked for.
    Palette,
    /// Which way the lanes lean.
    Bias,
    /// What is read from their lists.
    Answer,
    /// The detectors that can be chosen.
    Detectors,
    /// The list of keys.
    Help,
    /// Everywhere.
    Anywhere,
}

impl Action {
    /// Its name in a configuration: `page-down`, `toggle-mmr`. It is made of the variant's own words.
    pub fn name(self) -> String {
        let mut name = String::new();
        for c in format!("{self:?}").chars().filter(char::is_ascii_alphabetic) {
            if c.is_ascii_uppercase() && !name.is_empty() {
                name.push('-');
            }
            name.push(c.to_ascii_lowercase());
        }
        name
    }

    /// The context of the screen that it opens; the same key closes that screen.
    pub(in crate::tui) fn opens(self) -> Option<Context> {
        Some(match self {
            Action::Tune => Context::Tune,
            Action::Sycophancy => Context::Sycophancy,
            Action::Compare => Context::Compare,
            Action::Bias => Context::Bias,
            Action::Answers => Context::Answer,
            Action::ChooseDetector => Context::Detectors,
            Action::Help => Context::Help,
            _ => return None,
        })
    }

    /// The action of the key at a place, where the keys are numbers.
    pub(in crate::tui) fn at(self, place: usize) -> Action {
        match self {
            Action::ToggleLabel(_) => Action::ToggleLabel(place),
            Action::Probe(_) => Action::Probe(place),
            action => action,
        }
    }
}

impl Context {
    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Context::Question => "question line",
            Context::Lanes => "lanes",
            Context::Filter => "typing a filter",
            Context::Read => "reading",
            Context::Statements => "statements",
            Context::Tune => "tuning",
            Context::Sycophancy => "asking as either side",
            Context::Compare => "comparing",
            Context::Bias => "bias of the lanes",
            Context::Answer => "reader",
            Context::Detectors => "detectors",
            Context::Toward => "typing a perspective",
            Context::Annotate => "labelling",
            Context::Note => "writing a remark",
            Context::Marking => "marking evidence",
            Context::Palette => "finding an action",
            Context::Help => "list of keys",
            Context::Anywhere => "everywhere",
        }
    }

    /// Its name in a configuration: `question-line`.
    pub fn key(self) -> String {
        self.name().replace(' ', "-")
    }

    /// Whether text is typed there. In text fields, printable and editing keys cannot be rebound.
    pub fn takes_text(self) -> bool {
        use Context::{Anywhere, Filter, Note, Palette, Question, Statements, Toward};
        matches!(self, Question | Filter | Statements | Toward | Note | Palette | Anywhere)
    }
}

/// One line of the table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Binding {
    /// Where.
    pub context: Context,
    /// Keys in Vim's notation; the first is the one shown.
    pub keys: &'static [&'static str],
    /// What.
    pub action: Action,
    /// A word or two for the footer; empty where it has no room.
    pub short: &'static str,
    /// A sentence for the help screen.
    pub help: &'static str,
}

/// A line of the table.
pub(in crate::tui) const fn bind(
    context: Context,
    keys: &'static [&'static str],
    action: Action,
    short: &'static str,
    help: &'static str,
) -> Binding {
    Binding { context, keys, action, short, help }
}

/// Rows that several screens have, each with its keys written once.
pub(in crate::tui) mod shared {
    use super::{Action, Binding, Context, bind};

    pub const fn down(context: Context, short: &'static str, help: &'static str) -> Binding {
        bind(context, &["j", "<Down>"], Action::Down, short, help)
    }

    pub const fn up(context: Context, help: &'static str) -> Binding {
        bind(context, &["k", "<Up>"], Action::Up, "", help)
    }

    pub const fn page_down(context: Context, short: &'static str, help: &'static str) -> Binding {
        bind(context, &["<PageDown>", "<C-d>"], Action::PageDown, short, help)
    }

    pub const fn page_up(context: Context, help: &'static str) -> Binding {
        bind(context, &["<PageUp>", "<C-u>"], Action::PageUp, "", help)
    }

    pub const fn first(context: Context, help: &'static str) -> Binding {
        bind(context, &["g", "<Home>"], Action::First, "", help)
    }

    pub const fn last(context: Context, help: &'static str) -> Binding {
        bind(context, &["G", "<End>"], Action::Last, "", help)
    }

    pub const fn next_lane(context: Context, help: &'static str) -> Binding {
        bind(context, &["<Tab>", "<Right>", "l"], Action::NextLane, "lane", help)
    }

    pub const fn previous_lane(context: Context, help: &'static str) -> Binding {
        bind(context, &["<S-Tab>", "<Left>", "h"], Action::PreviousLane, "", help)
    }

    pub const fn label_source(context: Context) -> Binding {
        let help = "let other labels count: auto, model, gold, human";
        bind(context, &["s"], Action::NextLabelSource, "labels", help)
    }

    pub const fn save_frame(context: Context) -> Binding {
        bind(context, &["S"], Action::SaveFrame, "", "save the frame as an SVG picture")
    }

    pub const fn record(context: Context) -> Binding {
        bind(context, &["R"], Action::Record, "", "record the session, or stop")
    }

    pub const fn help(context: Context) -> Binding {
        bind(context, &["?"], Action::Help, "keys", "show all keys")
    }

    pub const fn palette(context: Context) -> Binding {
        bind(context, &[":"], Action::Palette, "", "find an action by its words")
    }
}
