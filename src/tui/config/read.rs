//! A configuration from its text: every setting, and everything that is wrong.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use clap::ValueEnum;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::problem::{Problem, place};
use super::{Config, Layout, Mouse, keys};
use crate::measure::name::levenshtein;
use crate::report::marks::Glyphs;
use crate::report::safe;
use crate::tui::theme::Look;

/// Problems that are told of one file; with more it is no configuration.
const MOST: usize = 100;
/// Letters of what is told of one thing that is wrong.
const LONGEST: usize = 1_000;

/// All settings.
const SETTINGS: [&str; 5] = ["theme", "glyphs", "mouse", "layout", "keys"];
const ROOM: [&str; 2] = ["lane-width", "passage-rows"];

/// Reads a text. What is wrong is told in its order; the rest is taken.
pub fn read(text: &str) -> (Config, Vec<Problem>) {
    let mut told = Told { text, found: Vec::new() };
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        told.wrong(error.span().unwrap_or(0..0), error.message().trim().replace('\n', "; "));
    }
    let broken = told.found.len();
    let mut config = Config::default();
    for (name, value) in in_order(table.get_ref()) {
        match name.get_ref().as_ref() {
            "theme" => {
                let all = Look::value_variants().iter().map(|look| (look.name(), *look));
                config.look = told.one_of(value, all.collect()).unwrap_or_default();
            }
            "glyphs" => {
                let all = vec![("unicode", Glyphs::Shapes), ("ascii", Glyphs::Ascii)];
                config.glyphs = told.one_of(value, all).unwrap_or_default();
            }
            "mouse" => match value.get_ref().as_bool() {
                Some(heard) => config.mouse = if heard { Mouse::Heard } else { Mouse::Left },
                None => told.expected("true or false", value),
            },
            "layout" => config.layout = layout(value, &mut told),
            "keys" => config.keys = Arc::new(keys::read(value, &mut told)),
            unknown => {
                let what = format!("there is no setting `{unknown}`; {}", near(unknown, &SETTINGS));
                told.wrong(name.span(), what);
            }
        }
    }
    (config, told.in_order(broken))
}

fn layout(value: &Spanned<DeValue<'_>>, told: &mut Told<'_>) -> Layout {
    let mut layout = Layout::default();
    let Some(table) = told.table(value, "lane-width = 32") else { return layout };
    for (name, value) in in_order(table) {
        match name.get_ref().as_ref() {
            "lane-width" => layout.lane_width = told.number(value, 20..201).unwrap_or(layout.lane_width),
            "passage-rows" => layout.passage_rows = told.number(value, 1..11).unwrap_or(layout.passage_rows),
            unknown => {
                let what = format!("there is no setting `{unknown}` in [layout]; {}", near(unknown, &ROOM));
                told.wrong(name.span(), what);
            }
        }
    }
    layout
}

/// A table's entries as they stand in the file.
pub(super) fn in_order<'a, 'i>(
    table: &'a DeTable<'i>,
) -> Vec<(&'a Spanned<std::borrow::Cow<'i, str>>, &'a Spanned<DeValue<'i>>)> {
    let mut all: Vec<_> = table.iter().collect();
    all.sort_by_key(|(name, _)| name.span().start);
    all
}

/// `did you mean …?`, or which there are.
pub(super) fn near(given: &str, known: &[impl AsRef<str>]) -> String {
    let nearest = known.iter().map(AsRef::as_ref).min_by_key(|name| levenshtein(given, name));
    match nearest {
        Some(name) if levenshtein(given, name) <= name.len() / 2 => format!("did you mean `{name}`?"),
        _ => {
            let all: Vec<&str> = known.iter().map(AsRef::as_ref).collect();
            format!("there are {}", all.join(", "))
        }
    }
}

/// What was found to be wrong.
pub(super) struct Told<'t> {
    text: &'t str,
    found: Vec<(usize, String)>,
}

impl Told<'_> {
    /// Names are repeated as they stand there, so they are made safe for a terminal, and not repeated without end.
    pub fn wrong(&mut self, at: Range<usize>, what: String) {
        let mut what = safe::line(&what);
        if let Some((cut, _)) = what.char_indices().nth(LONGEST) {
            what.replace_range(cut.., "…");
        }
        self.found.push((at.start, what));
    }

    pub fn expected(&mut self, what: &str, value: &Spanned<DeValue<'_>>) {
        self.wrong(value.span(), format!("expected {what}, found {}", shown(value.get_ref())));
    }

    /// The line of a place in the text.
    pub fn line(&self, at: usize) -> usize {
        place(self.text, at).0
    }

    pub fn table<'a, 'i>(&mut self, value: &'a Spanned<DeValue<'i>>, such: &str) -> Option<&'a DeTable<'i>> {
        let table = value.get_ref().as_table();
        if table.is_none() {
            self.expected(&format!("a table with settings such as `{such}`"), value);
        }
        table
    }

    pub fn one_of<T: Copy>(&mut self, value: &Spanned<DeValue<'_>>, all: Vec<(&str, T)>) -> Option<T> {
        let given = value.get_ref().as_str();
        let found = given.and_then(|given| all.iter().find(|(name, _)| *name == given));
        if found.is_none() {
            let names: Vec<String> = all.iter().map(|(name, _)| format!("{name:?}")).collect();
            self.expected(&format!("one of {}", names.join(", ")), value);
        }
        found.map(|(_, meant)| *meant)
    }

    fn number(&mut self, value: &Spanned<DeValue<'_>>, within: Range<u16>) -> Option<u16> {
        let given = value.get_ref().as_integer();
        let given = given.and_then(|number| u16::from_str_radix(number.as_str(), number.radix()).ok());
        let given = given.filter(|number| within.contains(number));
        if given.is_none() {
            self.expected(&format!("a number from {} to {}", within.start, within.end - 1), value);
        }
        given
    }

    /// Everything, in the order of the file. The first are about TOML itself: where something is known that should stand there, that
    /// says more.
    fn in_order(mut self, broken: usize) -> Vec<Problem> {
        let judged = self.found.split_off(broken);
        let known: HashSet<usize> = judged.iter().map(|(at, _)| *at).collect();
        self.found.retain(|(at, _)| !known.contains(at));
        self.found.extend(judged);
        self.found.sort_by_key(|(at, _)| *at);
        self.found.truncate(MOST);
        self.found.into_iter().map(|(at, what)| Problem::at(self.text, at, what)).collect()
    }
}

/// A value as a message shows it.
pub(super) fn shown(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("{:?}", text.chars().take(60).collect::<String>()),
        DeValue::Integer(number) => number.as_str().into(),
        DeValue::Float(number) => number.as_str().into(),
        DeValue::Boolean(is) => is.to_string(),
        DeValue::Datetime(date) => date.to_string(),
        DeValue::Array(_) => "a list".into(),
        DeValue::Table(_) => "a table".into(),
    }
}
