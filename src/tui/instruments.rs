//! What the instruments' screens know: lanes asked as either side, compared, biased, tuned; a passage that is open; statements being
//! edited; an action being looked for.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use tui_input::Input;

use crate::corpus::PassageIx;
use crate::corpus::fields::{Field, Fields};
use crate::expand::Kind;
use crate::pipeline::recipe::{Diversify, Mmr, Norm, Project, Switch, Switches, Toward};
use crate::pipeline::{Compared, Ranked, Reason, Recipe, Swayed, Tally};
use crate::project::Variant;

/// Words that passages must hold to be shown.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// The words.
    pub line: Input,
    /// Whether they are being typed.
    pub typing: bool,
}

impl Filter {
    /// Whether title or text hold every word, in any case of letters.
    pub fn lets(&self, ranked: &Ranked) -> bool {
        let mut words = self.line.value().split_whitespace().map(str::to_lowercase).peekable();
        if words.peek().is_none() {
            return true;
        }
        let held = [&ranked.passage.title, &ranked.passage.text].map(|text| text.to_lowercase());
        words.all(|word| held.iter().any(|text| text.contains(&word)))
    }
}

/// The lanes asked in three wordings.
#[derive(Clone, Debug, Default)]
pub struct Swaying {
    /// The survey whose answers are shown.
    pub number: u64,
    /// One a lane, once it is there.
    pub lanes: Vec<Option<Result<Arc<Swayed>, String>>>,
}

/// The lanes over the question set.
#[derive(Clone, Debug, Default)]
pub struct Comparing {
    /// The survey whose outcome is shown.
    pub number: u64,
    /// One a question of the set, once it is there.
    pub questions: Vec<Option<Result<Compared, String>>>,
    /// The marked row, from 0.
    pub at: usize,
    /// How the rows are ordered.
    pub order: Order,
}

/// Which way the lanes lean. Over the question set, what is known of it stands in [`Comparing`].
#[derive(Clone, Debug, Default)]
pub struct Biasing {
    /// The metadata fields of the corpus, once they are counted.
    pub fields: Option<Arc<Fields>>,
    /// The category that is shown, from 0.
    pub at: usize,
    /// Over the whole question set, not this question alone.
    pub over_set: bool,
    /// The first value that is shown, from 0.
    pub scroll: usize,
    /// The category whose values stand on the lanes.
    pub on_lanes: Option<usize>,
}

impl Biasing {
    /// A category, from 0.
    pub fn category(&self, at: usize) -> Option<&Field> {
        self.fields.as_ref()?.categories.get(at)
    }
}

/// How the questions of a comparison are ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// As in the set.
    #[default]
    Set,
    /// Where the lanes differ most, first.
    Disagreement,
    /// Where the lane with the cursor is worst, first.
    Worst,
}

impl Comparing {
    /// The questions' numbers in the order they are shown.
    pub fn rows(&self, lane: usize) -> Vec<usize> {
        let mut rows: Vec<usize> = (0..self.questions.len()).collect();
        let known = |i: &usize| self.questions[*i].as_ref().and_then(|compared| compared.as_ref().ok());
        let value = |i: &usize| match self.order {
            Order::Set => 0.0,
            Order::Disagreement => known(i).map_or(f64::INFINITY, |compared| -compared.disagreement()),
            Order::Worst => known(i)
                .and_then(|compared| compared.figures.get(lane)?.as_ref())
                .map_or(f64::INFINITY, |figures| figures.mrecall + figures.prec),
        };
        rows.sort_by(|a, b| value(a).total_cmp(&value(b)).then(a.cmp(b)));
        rows
    }
}

/// The options that each switch was last used with.
#[derive(Clone, Debug)]
pub struct Options {
    /// MMR's.
    pub mmr: Mmr,
    /// Expansion's.
    pub expand: Kind,
    /// Projection's.
    pub project: Project,
    /// The diversifier's.
    pub diversify: (Diversify, f32),
}

impl Default for Options {
    fn default() -> Self {
        Options {
            mmr: Mmr { lambda: Switches::LAMBDA, norm: Norm::Question },
            expand: Kind::Perspectives,
            project: Project { variant: Variant::PapPlus, toward: Toward::Perspective(1) },
            diversify: (Diversify::Xquad, Switches::BALANCE),
        }
    }
}

/// The passage that is open.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// First line of the text that is shown.
    pub scroll: usize,
    /// Evidence sentences found so far, by passage and perspective; `None` where no sentence carries the verdict.
    pub evidence: HashMap<(PassageIx, usize), Option<Range<usize>>>,
    /// Passages whose evidence was asked for.
    pub asked: HashMap<PassageIx, Vec<usize>>,
    /// Why the passage stands where it does in the lane made like this.
    pub why: Option<(PassageIx, Recipe, Result<Vec<Reason>, String>)>,
    /// Studies up to this one belong to an earlier question.
    pub since: u64,
}

/// A lane being tuned.
#[derive(Clone, Debug)]
pub struct Tuning {
    /// Which switch.
    pub switch: Switch,
    /// The lane in all forms of that switch, the first one being off.
    pub forms: Vec<Recipe>,
    /// The marked form.
    pub at: usize,
    /// Over the whole question set, not this question alone.
    pub over_set: bool,
    /// The survey whose figures are shown.
    pub number: u64,
    /// What is known of each form.
    pub tallies: Result<Vec<Tally>, String>,
    /// No more figures will come.
    pub ended: bool,
    /// First line that is shown of what the form did.
    pub scroll: usize,
    /// A perspective being typed, to project toward.
    pub typed: Option<Input>,
}

impl Default for Tuning {
    fn default() -> Self {
        Tuning {
            switch: Switch::Mmr,
            forms: Vec::new(),
            at: 0,
            over_set: false,
            number: 0,
            tallies: Ok(Vec::new()),
            ended: true,
            scroll: 0,
            typed: None,
        }
    }
}

/// An action being looked for.
#[derive(Clone, Debug, Default)]
pub struct Palette {
    /// Words that the action's help must hold.
    pub line: Input,
    /// The marked one of those that do.
    pub at: usize,
}

/// The statements being edited.
#[derive(Clone, Debug, Default)]
pub struct Editing {
    /// One line each.
    pub lines: Vec<Input>,
    /// The line with the cursor.
    pub at: usize,
    /// Which of two is the supporting one.
    pub supports: usize,
}
