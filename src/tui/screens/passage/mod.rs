//! The passage screen: one passage in full, its ranks, the statements that it supports, and the evidence.
//!
//! May use: as `screens` says.

pub mod screen;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use crate::corpus::PassageIx;
use crate::detect::LabelSource;
use crate::engine::{Explanation, Ranking, Recipe};
use crate::question::Question;
use crate::report::marks::Glyphs;
use crate::tui::keymap::action::{Action, Binding, Context, Screen, bind, shared};
use crate::tui::widgets::text::Row;

impl Screen {
    /// One passage in full.
    pub const PASSAGE: Screen = Screen("passage");
}

/// The passage that is open.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// The first visible line of the text.
    pub scroll: usize,
    /// Evidence sentences found so far, by passage and statement; `None` if no single sentence explains the verdict.
    pub evidence: HashMap<(PassageIx, usize), Option<Range<usize>>>,
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
}

/// The keys.
pub const KEYS: &[Binding] = &[
    bind(Context::Read, &["<Esc>", "q", "<Enter>"], Action::Back, "back", "go back to the lanes"),
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
    shared::label_source(Context::Read),
];
