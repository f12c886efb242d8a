//! The passage screen: one passage in full, its ranks, the statements that it supports, and the evidence.
//!
//! May use: as `screens` says.

pub mod editor;
pub mod screen;

use std::collections::HashMap;
use std::sync::Arc;

use tui_input::Input;

use crate::corpus::{Passage, PassageIx};
use crate::detect::{EvidenceSentence, LabelSource};
use crate::engine::edit::Drafted;
use crate::engine::{Explanation, Judgments, Ranking, Recipe};
use crate::question::Question;
use crate::report::marks::Glyphs;
use crate::tui::keymap::action::{Action, Binding, Context, Screen, bind, shared};
use crate::tui::screens::labelling::label_keys;
use crate::tui::widgets::text::Row;

impl Screen {
    /// One passage in full.
    pub const PASSAGE: Screen = Screen("passage");
    /// The counterfactual editor.
    pub const EDITOR: Screen = Screen("editor");
}

/// What is shown of the passage that is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum View {
    /// Its text, then the facts about it.
    #[default]
    Text,
    /// Its record in the corpus.
    Record,
    /// What the lane's indexes hold about it.
    Index,
    /// How the lane's list was made.
    Recipe,
    /// The configuration.
    Settings,
}

/// The index entry of a passage for a lane with this recipe, or why there is none.
pub type IndexEntry = (PassageIx, Recipe, Result<String, String>);

/// The passage that is open.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// What is shown of it.
    pub view: View,
    /// The passage and the recipe of the lane whose index entry was requested and has not arrived.
    pub awaited: Option<(PassageIx, Recipe)>,
    /// Its index entry, once it has arrived.
    pub index: Option<IndexEntry>,
    /// The first visible line of the text.
    pub scroll: usize,
    /// Evidence sentences found so far, by passage and statement; `None` if no single sentence explains the verdict.
    pub evidence: HashMap<(PassageIx, usize), Option<EvidenceSentence>>,
    /// The statements for which evidence was requested, by passage.
    pub requested: HashMap<PassageIx, Vec<usize>>,
    /// The explanation of the passage's rank in the lane with this recipe.
    pub why: Option<(PassageIx, Recipe, Result<Vec<Explanation>, String>)>,
    /// The last study of an earlier question; replies to it and to those before are dropped.
    pub since: u64,
    /// The open passage, laid out.
    pub text: PassageText,
    /// How many rows of the text are visible at once.
    pub rows: usize,
    /// The counterfactual editor.
    pub editor: Editor,
}

/// What the lane and the model say of one form of the passage.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// Score and rank, once they have arrived, or why there are none.
    pub scored: Option<Result<Drafted, String>>,
    /// The model's verdicts under passage 0, once they have arrived, or why there are none.
    pub judged: Option<Result<Arc<Judgments>, String>>,
}

/// The state of the editor.
#[derive(Clone, Debug, Default)]
pub struct Editor {
    /// The batch of the present words.
    pub number: u64,
    /// The first batch since the editor was opened; replies to earlier ones are dropped.
    pub since: u64,
    /// The passage that is edited.
    pub at: Option<PassageIx>,
    /// The passage as it is.
    pub original: Passage,
    /// Its text now.
    pub text: Input,
    /// The question now.
    pub question: Input,
    /// Whether the question is typed in, not the text.
    pub on_question: bool,
    /// The edit by rule that was made last.
    pub edit: Option<usize>,
    /// The batch in which a language model writes the passage anew, until it arrives.
    pub rewriting: Option<u64>,
    /// The language model whose words the text began with.
    pub by_model: Option<String>,
    /// The answer for the passage and the question as they are.
    pub before: Answer,
    /// The answer for the words now.
    pub now: Answer,
}

/// The open passage, laid out for one width.
#[derive(Clone, Debug, Default)]
pub struct PassageText {
    /// Title, origin, ranks and verdicts.
    pub heading: Vec<Row>,
    /// The text, and why the passage has its rank.
    pub body: Vec<Row>,
    /// The inputs of both.
    inputs: Option<Inputs>,
}

/// The inputs of the rows.
#[derive(Clone, Debug)]
struct Inputs {
    at: PassageIx,
    lane: usize,
    width: usize,
    glyphs: Glyphs,
    judgments: (u64, LabelSource),
    question: Question,
    evidence: usize,
    explained: bool,
    view: View,
    indexed: bool,
    /// The configuration, if it is shown.
    settings: Option<String>,
    lists: Vec<(Recipe, Ranking)>,
}

impl Inputs {
    /// Whether nothing has changed. Lists are compared by identity: they are replaced, never changed.
    fn same(&self, now: &Inputs) -> bool {
        let lists = |before: &(Recipe, Ranking), now: &(Recipe, Ranking)| {
            before.0 == now.0 && Arc::ptr_eq(&before.1, &now.1)
        };
        (self.at, self.lane, self.width, self.glyphs) == (now.at, now.lane, now.width, now.glyphs)
            && (self.judgments, self.evidence, self.explained) == (now.judgments, now.evidence, now.explained)
            && (self.view, self.indexed, &self.settings) == (now.view, now.indexed, &now.settings)
            && self.question == now.question
            && self.lists.len() == now.lists.len()
            && self.lists.iter().zip(&now.lists).all(|(before, now)| lists(before, now))
    }
}

impl Reading {
    /// Whether the explanation of a passage's rank in a lane with this recipe has arrived.
    pub fn explains(&self, at: PassageIx, recipe: &Recipe) -> bool {
        self.why.as_ref().is_some_and(|(of, made, _)| *of == at && made == recipe)
    }

    /// The index entry of a passage for a lane with this recipe, if it has arrived.
    pub fn index_of(&self, at: PassageIx, recipe: &Recipe) -> Option<&Result<String, String>> {
        self.index.as_ref().filter(|(of, made, _)| *of == at && made == recipe).map(|(.., entry)| entry)
    }
}

/// The keys that label the open passage.
pub const LABELS: [Binding; 8] = label_keys(Context::Read);

/// The keys.
pub const KEYS: &[Binding] = &[
    bind(
        Context::Read,
        &["<Esc>", "q", "<Enter>"],
        Action::Back,
        "back",
        "go back to the text, then to the lanes",
    ),
    shared::save_frame(Context::Read),
    shared::record(Context::Read),
    shared::help(Context::Read),
    shared::palette(Context::Read),
    shared::down(Context::Read, "scroll", "scroll down"),
    shared::up(Context::Read, "scroll up"),
    bind(Context::Read, &["<PageDown>", "<C-d>", "<Space>"], Action::PageDown, "", "scroll a screen down"),
    shared::page_up(Context::Read, "scroll a screen up"),
    shared::first(Context::Read, "scroll to the top"),
    shared::last(Context::Read, "scroll to the end"),
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
        &["r"],
        Action::RawRecord,
        "record",
        "show the passage's record in the corpus, or its text",
    ),
    bind(
        Context::Read,
        &["e"],
        Action::IndexEntry,
        "index",
        "show what the lane's indexes hold about it, or its text",
    ),
    bind(Context::Read, &["y"], Action::ShowRecipe, "", "show how the lane's list was made, or the text"),
    bind(Context::Read, &["C"], Action::ShowSettings, "", "show the configuration, or the text"),
    shared::label_source(Context::Read),
    bind(
        Context::Read,
        &["c"],
        Action::WhatIf,
        "what if",
        "edit the passage or the question: score, rank and verdict follow",
    ),
    bind(
        Context::Edit,
        &["<Tab>"],
        Action::EditQuestionToo,
        "question",
        "type in the question, or in the passage",
    ),
    bind(Context::Edit, &["<Down>", "<C-n>"], Action::NextEdit, "next edit", "make the next edit by rule"),
    bind(Context::Edit, &["<Up>", "<C-p>"], Action::PreviousEdit, "", "make the edit by rule before"),
    bind(
        Context::Edit,
        &["<C-l>"],
        Action::RewriteEdit,
        "rewritten",
        "have a language model write the passage anew; Esc gives that up",
    ),
    bind(Context::Edit, &["<C-x>"], Action::ResetEdit, "as it is", "go back to the words as they are"),
    bind(Context::Edit, &["<Esc>"], Action::Back, "back", "go back to the passage; the edit is dropped"),
];

impl Reading {
    /// The reasons for a passage's rank in a lane, once they are there.
    pub fn reasons(&self, at: PassageIx, lane: &Recipe) -> Option<&Result<Vec<Explanation>, String>> {
        self.why.as_ref().filter(|(of, by, _)| *of == at && by == lane).map(|(_, _, why)| why)
    }
}
