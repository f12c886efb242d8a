//! The labelling screen: passages labelled by hand.
//!
//! May use: as `screens` says.

pub mod draw;
mod replies;
pub mod state;
pub mod update;

use crate::tui::keymap::action::{Action, Binding, Context, Screen, bind, shared};

impl Screen {
    /// The labelling screen.
    pub const LABELLING: Screen = Screen("labelling");
}

/// The keys that label the passage under the cursor.
pub const fn label_keys(context: Context) -> [Binding; 8] {
    let undo = "undo the last act: lane, switch, k, label, statements";
    [
        bind(context, &["s"], Action::LabelSupport, "▲", "label: it supports the first side"),
        bind(context, &["o"], Action::LabelOppose, "▼", "label: it supports the other side"),
        bind(context, &["b"], Action::LabelBoth, "", "label: it supports both sides"),
        bind(context, &["0"], Action::LabelNone, "", "label: it supports no statement"),
        bind(
            context,
            &["1", "2", "3", "4", "5", "6", "7", "8", "9"],
            Action::ToggleLabel(0),
            "",
            "label: it supports the statement of that number, or no longer",
        ),
        bind(context, &["N"], Action::NextLabelPage, "", "let 1–9 label the next nine statements"),
        bind(context, &["u"], Action::Undo, "undo", undo),
        bind(context, &["U", "<C-r>"], Action::Redo, "", "do it again"),
    ]
}

/// The keys.
pub const KEYS: &[Binding] = &[
    bind(Context::Annotate, &["s"], Action::LabelSupport, "▲", "it supports the first side; on to the next"),
    bind(Context::Annotate, &["o"], Action::LabelOppose, "▼", "it supports the other side"),
    bind(Context::Annotate, &["b"], Action::LabelBoth, "both", "it supports both sides"),
    bind(Context::Annotate, &["0"], Action::LabelNone, "none", "it supports no side"),
    bind(Context::Annotate, &["<Space>"], Action::Skip, "skip", "pass it over for now"),
    bind(Context::Annotate, &["u"], Action::Undo, "undo", "take the last act back; without end"),
    shared::help(Context::Annotate),
    bind(Context::Annotate, &["<Esc>", "q", "a"], Action::Back, "back", "go back to the lanes"),
    bind(Context::Annotate, &["e"], Action::MarkEvidence, "evidence", "mark the words that show it"),
    bind(Context::Annotate, &["t"], Action::Note, "note", "write a remark"),
    bind(Context::Annotate, &["f"], Action::Flag, "flag", "mark it for another look, or no longer"),
    bind(Context::Annotate, &["g"], Action::Guidelines, "guidelines", "show what counts as support"),
    bind(
        Context::Annotate,
        &["<Tab>"],
        Action::NextLabelOrder,
        "order",
        "let them come as ranked, pooled, most uncertain first, or at random",
    ),
    bind(
        Context::Annotate,
        &["B"],
        Action::ToggleBlind,
        "blind",
        "hide lane, rank and verdict, or show them",
    ),
    bind(
        Context::Annotate,
        &["m"],
        Action::NextFigure,
        "",
        "show the interval of another figure, where the questions were drawn",
    ),
    bind(
        Context::Annotate,
        &["1", "2", "3", "4", "5", "6", "7", "8", "9"],
        Action::ToggleLabel(0),
        "",
        "choose the perspective of that number, or choose it no longer",
    ),
    bind(
        Context::Annotate,
        &["<Enter>"],
        Action::ApplyLabel,
        "",
        "it supports what was chosen; on to the next",
    ),
    bind(
        Context::Annotate,
        &["<PageDown>"],
        Action::PageDown,
        "",
        "show the next statements, if there are more than the window holds",
    ),
    bind(Context::Annotate, &["<PageUp>"], Action::PageUp, "", "show the statements before"),
    bind(Context::Annotate, &["<C-r>", "U"], Action::Redo, "redo", "do again what was taken back"),
    bind(Context::Annotate, &["l", "<Right>"], Action::NextPassage, "", "go to the next passage as it is"),
    bind(Context::Annotate, &["h", "<Left>"], Action::PreviousPassage, "", "go to the passage before"),
    shared::down(Context::Annotate, "", "scroll the text down"),
    shared::up(Context::Annotate, "scroll it up"),
    shared::save_frame(Context::Annotate),
    shared::record(Context::Annotate),
    shared::palette(Context::Annotate),
    bind(Context::Note, &["<Enter>"], Action::ApplyNote, "keep", "keep the remark"),
    bind(Context::Note, &["<Esc>"], Action::Back, "cancel", "leave it as it was"),
    bind(Context::Marking, &["l", "<Right>", "w"], Action::NextWord, "word", "go to the next word"),
    bind(Context::Marking, &["h", "<Left>", "b"], Action::PreviousWord, "", "go to the word before"),
    shared::down(Context::Marking, "sentence", "go to the next sentence"),
    shared::up(Context::Marking, "go to the beginning of the sentence, or the one before"),
    bind(
        Context::Marking,
        &["v", "<Space>"],
        Action::BeginSpan,
        "begin here",
        "let the evidence begin at this word",
    ),
    bind(
        Context::Marking,
        &["<Enter>"],
        Action::ApplySpan,
        "keep",
        "keep the words from there to here as evidence",
    ),
    bind(Context::Marking, &["s"], Action::LabelSupport, "▲", "keep them for the first side alone"),
    bind(Context::Marking, &["o"], Action::LabelOppose, "▼", "keep them for the other side alone"),
    bind(
        Context::Marking,
        &["1", "2", "3", "4", "5", "6", "7", "8", "9"],
        Action::ToggleLabel(0),
        "",
        "keep them for the statement of that number alone",
    ),
    bind(Context::Marking, &["<Esc>"], Action::Back, "cancel", "mark nothing"),
];
