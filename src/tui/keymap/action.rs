//! Actions, the contexts in which keys are looked up, and the lines of the key table.

use crate::engine::recipe::Switch;

/// The effect of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Put the cursor into the question line.
    EditQuestion,
    /// Ask all lanes the question.
    Ask,
    /// Take the marked completion.
    Complete,
    /// Mark the completion below.
    NextCompletion,
    /// Mark the completion above.
    PreviousCompletion,
    /// Leave the question line or the screen.
    Back,
    /// Go to the lane on the right.
    NextLane,
    /// Go to the lane on the left.
    PreviousLane,
    /// Go one down.
    Down,
    /// Go one up.
    Up,
    /// Go a screen down.
    PageDown,
    /// Go a screen up.
    PageUp,
    /// Go to the first.
    First,
    /// Go to the last.
    Last,
    /// Read the passage.
    Read,
    /// Go to the next passage.
    NextPassage,
    /// Go to the passage before.
    PreviousPassage,
    /// Show the passage's record.
    RawRecord,
    /// Show the passage's index entry.
    IndexEntry,
    /// Show how the lane's list was made.
    ShowRecipe,
    /// Show the configuration.
    ShowSettings,
    /// Edit the passage or the question, to see what changes.
    WhatIf,
    /// Type in the question, or in the passage.
    EditQuestionToo,
    /// Make the next edit by rule.
    NextEdit,
    /// Make the edit by rule before.
    PreviousEdit,
    /// Have a language model write the passage anew.
    RewriteEdit,
    /// Go back to the words as they are.
    ResetEdit,
    /// Show only passages that contain certain words.
    Filter,
    /// Leave the filter's line; the filter stays.
    KeepFilter,
    /// Let all lanes scroll together, or not.
    Together,
    /// Increase k by one.
    Deeper,
    /// Decrease k by one.
    Shallower,
    /// Switch to the next label source.
    NextLabelSource,
    /// Flip a switch of the lane.
    Toggle(Switch),
    /// Flip a switch of every lane that can use it.
    ToggleEverywhere(Switch),
    /// Have the next model re-rank the lane, or none after the last.
    Rerank,
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
    /// Measure over the question set, or on this question only.
    OverSet,
    /// Type a perspective to project toward.
    TypePerspective,
    /// Project toward what was typed.
    ApplyPerspective,
    /// Ask every lane neutrally and as either side.
    Sycophancy,
    /// Ask the lanes in more wordings.
    FramingLab,
    /// Type the marked wording anew.
    TypeWording,
    /// Ask in the words that were typed.
    ApplyWording,
    /// Show the lanes over the question set.
    Compare,
    /// Show which sides the lanes favour, and whose passages they return.
    Bias,
    /// Open the reader screen.
    Answers,
    /// Show the detectors that can be chosen.
    ChooseDetector,
    /// Drop the passage from the list that is read, or restore it.
    DropPassage,
    /// Move the passage down in the list that is read.
    PassageDown,
    /// Move it up.
    PassageUp,
    /// Read the list at every depth, or stop reading.
    HaveRead,
    /// Read the list without each of its passages.
    WithoutEach,
    /// Read the list in other orders.
    OtherOrders,
    /// Keep the passages that a probe keeps; the probe's index.
    Probe(usize),
    /// Mix a reading list by hand.
    Mix,
    /// Have mixed lists read at every share of the first side.
    SweepMix,
    /// Show which sides the answer gives, and where it is supported.
    AnswerSides,
    /// Show the key points of the question.
    KeyPoints,
    /// Type another name for the key point.
    NamePoint,
    /// Keep the name.
    ApplyName,
    /// Mark the key point to be merged, or merge the marked one into it.
    MergePoint,
    /// Split the key point into its sentences.
    SplitPoint,
    /// Drop the key point.
    DropPoint,
    /// Call the key point vital, or okay.
    ToggleVital,
    /// Copy the key points as JSON lines.
    CopyPoints,
    /// Show the next field of the passages.
    NextField,
    /// Show the field before.
    PreviousField,
    /// Show the field's values on the lanes, or no longer.
    OnLanes,
    /// Change the order of the questions.
    NextOrder,
    /// Show another measure.
    NextMeasure,
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
    /// It supports no side.
    LabelNone,
    /// Choose a statement by its index, or choose it no longer.
    ToggleLabel(usize),
    /// Label the passage with the chosen statements.
    ApplyLabel,
    /// Skip the passage for now.
    Skip,
    /// Mark it to look at again.
    Flag,
    /// Write a note on it.
    Note,
    /// Keep the note.
    ApplyNote,
    /// Mark the words that are evidence for the label.
    MarkEvidence,
    /// Go to the next word.
    NextWord,
    /// Go to the word before.
    PreviousWord,
    /// Begin the evidence at this word.
    BeginSpan,
    /// Keep the marked words.
    ApplySpan,
    /// Undo the last change.
    Undo,
    /// Redo the change that was undone.
    Redo,
    /// Change the order of the passages.
    NextLabelOrder,
    /// Show the interval of another figure.
    NextFigure,
    /// Hide lane, rank and verdict, or show them.
    ToggleBlind,
    /// Show what counts as support.
    Guidelines,
    /// Swap the lanes with the state that differences are shown from.
    Swap,
    /// Show differences from the present state, or from the last act again.
    Pin,
    /// Show two lanes in large, or all lanes again.
    Present,
    /// Explain the next figure of the lane.
    Explain,
    /// Let the number keys label the next nine statements.
    NextLabelPage,
    /// Give the lane the marked form.
    TakeForm,
    /// Choose a question of the set.
    PickQuestion,
    /// Choose a corpus.
    PickCorpus,
    /// Make a corpus for the question from the web.
    MakeCorpus,
    /// Choose a lane to add.
    NewLane,
    /// Drop the lane.
    DropLane,
    /// Move the lane to the left.
    LaneLeft,
    /// Move the lane to the right.
    LaneRight,
    /// Copy the lane's recipe.
    CopyRecipe,
    /// Edit the statements.
    EditStatements,
    /// Add a statement.
    AddStatement,
    /// Drop the statement.
    DropStatement,
    /// Swap the supporting and the opposing statement.
    SwapSides,
    /// Use the edited statements.
    ApplyStatements,
    /// Find an action by its words.
    Palette,
    /// Use the marked entry.
    Choose,
    /// Show all keys.
    Help,
    /// Save the frame as a picture.
    SaveFrame,
    /// Start recording the session, or stop.
    Record,
    /// Suspend the program.
    Suspend,
    /// Quit the program.
    Quit,
}

/// A screen, by its name. Each screen's folder defines its constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Screen(pub &'static str);

/// The place where keys are looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Context {
    /// The question line.
    Question,
    /// The lanes.
    Lanes,
    /// The filter being typed.
    Filter,
    /// A passage in full.
    Read,
    /// A passage being edited in the counterfactual editor.
    Edit,
    /// The statements being edited.
    Statements,
    /// The tuning screen.
    Tune,
    /// A perspective being typed on the tuning screen.
    Toward,
    /// The sycophancy screen.
    Sycophancy,
    /// The framing lab.
    Framing,
    /// A wording being typed in the framing lab.
    Wording,
    /// The comparison screen.
    Compare,
    /// The labelling screen.
    Annotate,
    /// A note being typed on the labelling screen.
    Note,
    /// Evidence being marked on the labelling screen.
    Marking,
    /// The palette.
    Palette,
    /// The bias screen.
    Bias,
    /// The reader screen.
    Answer,
    /// The mixer.
    Mixer,
    /// The sides of the answer.
    AnswerSides,
    /// The key points.
    KeyPoints,
    /// The name of a key point being typed.
    PointName,
    /// The detectors screen.
    Detectors,
    /// The list of keys.
    Help,
    /// Everywhere.
    Anywhere,
}

impl Action {
    /// Its name in a configuration, made of the variant's words: `page-down`, `toggle-mmr`.
    pub fn name(self) -> String {
        let words = format!("{self:?}");
        words.chars().filter(char::is_ascii_alphabetic).fold(String::new(), |name, c| {
            let dash = if c.is_ascii_uppercase() && !name.is_empty() { "-" } else { "" };
            name + dash + c.to_ascii_lowercase().encode_utf8(&mut [0; 4])
        })
    }

    /// The context of the screen that it opens; the same key closes that screen.
    pub(in crate::tui) fn opens(self) -> Option<Context> {
        Some(match self {
            Action::Tune => Context::Tune,
            Action::Sycophancy => Context::Sycophancy,
            Action::FramingLab => Context::Framing,
            Action::Compare => Context::Compare,
            Action::Bias => Context::Bias,
            Action::Answers => Context::Answer,
            Action::KeyPoints => Context::KeyPoints,
            Action::Mix => Context::Mixer,
            Action::AnswerSides => Context::AnswerSides,
            Action::ChooseDetector => Context::Detectors,
            Action::Help => Context::Help,
            _ => return None,
        })
    }

    /// The action of a line's key at an index: lines of number keys have one action per key.
    pub(in crate::tui) fn at(self, place: usize) -> Action {
        match self {
            Action::ToggleLabel(_) => Action::ToggleLabel(place),
            Action::Probe(_) => Action::Probe(place),
            action => action,
        }
    }
}

impl Context {
    /// Its name on screen.
    pub fn name(self) -> &'static str {
        match self {
            Context::Question => "question line",
            Context::Lanes => "lanes",
            Context::Filter => "typing a filter",
            Context::Read => "reading",
            Context::Edit => "editing a passage",
            Context::Statements => "statements",
            Context::Tune => "tuning",
            Context::Sycophancy => "asking as either side",
            Context::Framing => "asking in all wordings",
            Context::Wording => "typing a wording",
            Context::Compare => "comparing",
            Context::Bias => "bias of the lanes",
            Context::Answer => "reader",
            Context::KeyPoints => "list of key points",
            Context::Mixer => "mixer",
            Context::AnswerSides => "sides of an answer",
            Context::PointName => "naming a key point",
            Context::Detectors => "detectors",
            Context::Toward => "typing a perspective",
            Context::Annotate => "labelling",
            Context::Note => "writing a remark",
            Context::Marking => "marking evidence",
            Context::Palette => "choosing from a list",
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
        use Context::{
            Anywhere, Edit, Filter, Note, Palette, PointName, Question, Statements, Toward, Wording,
        };
        matches!(
            self,
            Question | Filter | Statements | Toward | Note | PointName | Palette | Wording | Edit | Anywhere
        )
    }
}

/// One line of the key table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Binding {
    /// The context in which the keys work.
    pub context: Context,
    /// Keys in Vim's notation; the first is the one shown.
    pub keys: &'static [&'static str],
    /// The action.
    pub action: Action,
    /// A word or two for the footer; empty if the line is not shown there.
    pub short: &'static str,
    /// A sentence for the help screen.
    pub help: &'static str,
}

/// Makes a line of the key table.
pub(in crate::tui) const fn bind(
    context: Context,
    keys: &'static [&'static str],
    action: Action,
    short: &'static str,
    help: &'static str,
) -> Binding {
    Binding { context, keys, action, short, help }
}

/// Lines that several screens have, each with its keys written once.
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
        bind(context, &["L"], Action::NextLabelSource, "labels", help)
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
