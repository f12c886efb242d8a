//! The user's settings from one TOML file: theme, glyphs, mouse, layout and keys. A flag overrides the environment, which overrides the
//! file, which overrides the defaults.
//!
//! All problems of a file are reported together, each with its line and column, what was expected and the nearest name. That is why the
//! reader walks the parsed table itself: serde's `deny_unknown_fields` stops at the first error.
//!
//! May use: keymap, theme, script; does not use screens.

use std::collections::HashSet;
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::input::nearest;
use crate::report::safe;

mod settings;

pub use settings::{Config, Layout, Mouse, Pictures, Source, Tint, read, watch};

#[cfg(test)]
mod tests;

/// The most problems that are reported of one file; a file with more is hardly a configuration.
const MOST: usize = 100;
/// The most characters of one message.
const LONGEST: usize = 1_000;

/// One problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Line and column, from 1; `None` for the whole file.
    pub at: Option<(usize, usize)>,
    /// What was expected, what was found, what to do.
    pub what: String,
}

impl Problem {
    /// A problem of the whole file.
    pub fn of_file(what: String) -> Self {
        Problem { at: None, what }
    }

    /// A problem at a byte of a text.
    pub fn at(text: &str, byte: usize, what: String) -> Self {
        Problem { at: Some(place(text, byte)), what }
    }
}

/// Returns line and column of a byte, from 1; columns count characters.
pub fn place(text: &str, byte: usize) -> (usize, usize) {
    let before = text.get(..byte).unwrap_or(text);
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    (before.matches('\n').count() + 1, before[start..].chars().count() + 1)
}

/// All problems of a file, in the order of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems {
    /// The file.
    pub file: PathBuf,
    /// The problems; at least one.
    pub all: Vec<Problem>,
}

impl Problems {
    /// Returns one line per problem: `FILE:LINE:COLUMN: …`.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        self.all.iter().map(|problem| match problem.at {
            Some((line, column)) => format!("{}:{line}:{column}: {}", self.file.display(), problem.what),
            None => format!("{}: {}", self.file.display(), problem.what),
        })
    }

    /// Returns the first problem in one line, with the file's name instead of its path, and the number of further ones.
    pub fn short(&self) -> String {
        let name = self.file.file_name().unwrap_or(self.file.as_os_str()).to_string_lossy().into_owned();
        let short = Problems { file: name.into(), all: self.all.iter().take(1).cloned().collect() };
        let more = self.all.len() - short.all.len();
        let more = if more == 0 { String::new() } else { format!(" (and {more} more)") };
        format!("{}{more}", short.lines().collect::<String>())
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in self.lines() {
            writeln!(f, "{line}")?;
        }
        match self.all.iter().any(|problem| problem.at.is_some()) {
            true => f.write_str("nothing was taken from it; correct these lines and try again"),
            false => f.write_str("nothing was taken from it; name another file"),
        }
    }
}

impl std::error::Error for Problems {}

/// Returns a table's entries in the order of the file.
fn in_order<'a, 'i>(
    table: &'a DeTable<'i>,
) -> Vec<(&'a Spanned<std::borrow::Cow<'i, str>>, &'a Spanned<DeValue<'i>>)> {
    let mut all: Vec<_> = table.iter().collect();
    all.sort_by_key(|(name, _)| name.span().start);
    all
}

/// Returns `did you mean …?` with the nearest of the names, or lists them all if none is near.
fn suggest(text: &str, names: &[impl AsRef<str>]) -> String {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    match nearest(text, names.iter().copied()) {
        Some(name) => format!("did you mean `{name}`?"),
        None => format!("expected one of {}", names.join(", ")),
    }
}

/// Collects the problems of one text.
struct Collector<'t> {
    text: &'t str,
    found: Vec<(usize, String)>,
}

impl<'t> Collector<'t> {
    pub fn of(text: &'t str) -> Self {
        Collector { text, found: Vec::new() }
    }

    /// Adds a problem. Messages quote the file, so they are made safe for a terminal and shortened.
    pub fn add(&mut self, at: Range<usize>, what: String) {
        let mut what = safe::line(&what);
        if let Some((cut, _)) = what.char_indices().nth(LONGEST) {
            what.replace_range(cut.., "…");
        }
        self.found.push((at.start, what));
    }

    /// Adds the problem that another value was expected.
    pub fn expected(&mut self, what: &str, value: &Spanned<DeValue<'_>>) {
        self.add(value.span(), format!("expected {what}, found {}", shown(value.get_ref())));
    }

    /// Returns the line of a byte.
    pub fn line(&self, at: usize) -> usize {
        place(self.text, at).0
    }

    /// Returns the table in a value; `example` is one of its settings.
    pub fn table<'a, 'i>(
        &mut self,
        value: &'a Spanned<DeValue<'i>>,
        example: &str,
    ) -> Option<&'a DeTable<'i>> {
        let table = value.get_ref().as_table();
        if table.is_none() {
            self.expected(&format!("a table with settings such as `{example}`"), value);
        }
        table
    }

    /// Returns the meaning of a text that must be one of these names.
    pub fn one_of<T: Copy>(&mut self, value: &Spanned<DeValue<'_>>, all: Vec<(&str, T)>) -> Option<T> {
        let text = value.get_ref().as_str();
        let found = text.and_then(|text| all.iter().find(|(name, _)| *name == text));
        if found.is_none() {
            let names: Vec<String> = all.iter().map(|(name, _)| format!("{name:?}")).collect();
            self.expected(&format!("one of {}", names.join(", ")), value);
        }
        found.map(|(_, meaning)| *meaning)
    }

    /// Returns a number in this range.
    pub fn number(&mut self, value: &Spanned<DeValue<'_>>, within: Range<u16>) -> Option<u16> {
        let number = value.get_ref().as_integer();
        let number = number.and_then(|number| u16::from_str_radix(number.as_str(), number.radix()).ok());
        let number = number.filter(|number| within.contains(number));
        if number.is_none() {
            self.expected(&format!("a number from {} to {}", within.start, within.end - 1), value);
        }
        number
    }

    /// Returns all problems in the order of the file. The first `syntax` ones are about TOML itself; one is dropped if a later problem
    /// at the same place says more.
    pub fn in_order(mut self, syntax: usize) -> Vec<Problem> {
        let settings = self.found.split_off(syntax);
        let places: HashSet<usize> = settings.iter().map(|(at, _)| *at).collect();
        self.found.retain(|(at, _)| !places.contains(at));
        self.found.extend(settings);
        self.found.sort_by_key(|(at, _)| *at);
        self.found.truncate(MOST);
        self.found.into_iter().map(|(at, what)| Problem::at(self.text, at, what)).collect()
    }
}

/// Formats a value as messages quote it.
fn shown(value: &DeValue<'_>) -> String {
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

mod keys {
    //! Reads the table `[keys]` (a preset, and keys of an action on all screens or on one) and reports conflicts between keys.

    use std::collections::HashMap;

    use toml::Spanned;
    use toml::de::{DeTable, DeValue};

    use super::{Collector, in_order, shown, suggest};
    use crate::tui::keymap::{Action, Context, Keymap, Preset, TABLE, written};

    /// Keys that are not characters, to recognise other spellings of them.
    const NAMED: [&str; 14] = [
        "<Enter>",
        "<Esc>",
        "<Tab>",
        "<S-Tab>",
        "<BS>",
        "<Del>",
        "<Up>",
        "<Down>",
        "<Left>",
        "<Right>",
        "<Home>",
        "<End>",
        "<PageUp>",
        "<PageDown>",
    ];

    /// Keys of the file, each with the byte at which it begins.
    type KeysAt = Vec<(String, usize)>;

    /// The keys read from the file so far, by the index of their line in the key table.
    #[derive(Default)]
    struct Rebound(HashMap<usize, KeysAt>);

    /// Reads the table. An entry with a problem changes no keys.
    pub(super) fn read(value: &Spanned<DeValue<'_>>, problems: &mut Collector<'_>) -> Keymap {
        let Some(table) = problems.table(value, "preset = \"vim\"") else { return Keymap::default() };
        let mut keymap = Keymap::default();
        if let Some(preset) = table.get("preset") {
            let all = Preset::ALL.map(|preset| (preset.name(), preset));
            keymap = Keymap::of(problems.one_of(preset, all.to_vec()).unwrap_or_default());
        }
        let mut rebound = Rebound::default();
        let entries = in_order(table);
        let (places, actions): (Vec<_>, Vec<_>) =
            entries.into_iter().partition(|(_, value)| value.get_ref().is_table());
        for (name, value) in actions.into_iter().filter(|(name, _)| name.get_ref() != "preset") {
            rebound.take(name, value, None, problems);
        }
        // Keys for one place override keys for all places.
        for (name, value) in places {
            match TABLE.iter().map(|line| line.context).find(|place| place.key() == name.get_ref().as_ref()) {
                Some(place) => rebound.take_place(place, value.get_ref().as_table(), problems),
                None => {
                    let hint = suggest(name.get_ref(), &place_names());
                    problems.add(name.span(), format!("there is no place `{}`; {hint}", name.get_ref()));
                }
            }
        }
        for (line, keys) in &rebound.0 {
            keymap.give(*line, keys.iter().map(|(key, _)| key.clone()).collect());
        }
        rebound.close(&mut keymap);
        rebound.clashes(&keymap, problems);
        keymap
    }

    fn place_names() -> Vec<String> {
        let mut all: Vec<String> = TABLE.iter().map(|line| line.context.key()).collect();
        all.sort();
        all.dedup();
        all
    }

    impl Rebound {
        fn take_place(&mut self, place: Context, table: Option<&DeTable<'_>>, problems: &mut Collector<'_>) {
            for (name, value) in table.into_iter().flat_map(in_order) {
                self.take(name, value, Some(place), problems);
            }
        }

        /// Takes the keys of an action, in one place or everywhere.
        fn take(
            &mut self,
            name: &Spanned<std::borrow::Cow<'_, str>>,
            value: &Spanned<DeValue<'_>>,
            place: Option<Context>,
            problems: &mut Collector<'_>,
        ) {
            let applies = |context| place.is_none_or(|place| place == context);
            let lines: Vec<usize> = (0..TABLE.len())
                .filter(|i| applies(TABLE[*i].context) && TABLE[*i].action.name() == name.get_ref().as_ref())
                .collect();
            let Some(first) = lines.first() else {
                let mut names: Vec<String> = TABLE
                    .iter()
                    .filter(|line| applies(line.context))
                    .map(|line| line.action.name())
                    .collect();
                names.sort();
                names.dedup();
                let within = place.map_or_else(String::new, |place| format!(" in {}", place.key()));
                let hint = suggest(name.get_ref(), &names);
                return problems
                    .add(name.span(), format!("there is no action `{}`{within}; {hint}", name.get_ref()));
            };
            let Some(keys) = keys(value, problems) else { return };
            let most = TABLE[*first].keys.len();
            if TABLE[*first].action.at(1) != TABLE[*first].action && keys.len() > most {
                let what = format!("expected at most {most} keys, one per number, found {}", keys.len());
                return problems.add(value.span(), what);
            }
            let mut taken = false;
            for line in lines {
                let takes_text = TABLE[line].context.takes_text();
                let here: KeysAt =
                    keys.iter().filter(|(key, _)| !takes_text || works_in_text(key)).cloned().collect();
                if !here.is_empty() {
                    taken = true;
                    self.0.insert(line, here);
                }
            }
            if !taken {
                let found = shown(value.get_ref());
                let what = format!(
                    "text is typed there: expected a key such as <C-x>, <F2> or <Enter>, found {found}"
                );
                problems.add(value.span(), what);
            }
        }

        /// Makes the new key that opens a screen close it too, unless the file has keys for closing it.
        fn close(&self, keymap: &mut Keymap) {
            for (opener, keys_at) in &self.0 {
                let Some(place) = TABLE[*opener].action.opens() else { continue };
                let back =
                    |line: &usize| TABLE[*line].context == place && TABLE[*line].action == Action::Back;
                let Some(line) = (0..TABLE.len()).find(back).filter(|line| !self.0.contains_key(line)) else {
                    continue;
                };
                let old = TABLE[*opener].keys;
                let mut keys = keymap.lines()[line].keys.clone();
                let closes = keys.iter().any(|key| old.contains(&key.as_str()));
                keys.retain(|key| !old.contains(&key.as_str()));
                let free = |key: &&String| keymap.here(place).all(|bound| !bound.keys.contains(*key));
                let new: Vec<String> = keys_at.iter().map(|(key, _)| key).filter(free).cloned().collect();
                if closes {
                    keys.extend(new);
                    keymap.give(line, keys);
                }
            }
        }

        /// Reports every key that has two meanings in a place. One pair of meanings is reported once, with all its places.
        fn clashes(&self, keymap: &Keymap, problems: &mut Collector<'_>) {
            let mut places: Vec<(usize, String, Vec<&str>)> = Vec::new();
            for clash in keymap.clashes() {
                let at = |line: usize| {
                    let (_, at) = self.0.get(&line)?.iter().find(|(key, _)| *key == clash.key)?;
                    Some(*at)
                };
                let name = |line: usize| TABLE[line].action.name();
                let (key, first, second) = (&clash.key, name(clash.first), name(clash.second));
                let (at, what) = match (at(clash.first), at(clash.second)) {
                    (Some(a), Some(b)) => {
                        let (one, other) = if a < b { (first, second) } else { (second, first) };
                        let line = problems.line(a.min(b));
                        (a.max(b), format!("`{key}` is `{other}` here and `{one}` in line {line}"))
                    }
                    (Some(at), None) => {
                        (at, format!("`{key}` is `{first}` here and `{second}` in the preset"))
                    }
                    (None, Some(at)) => {
                        (at, format!("`{key}` is `{second}` here and `{first}` in the preset"))
                    }
                    // Presets have no conflicts.
                    (None, None) => continue,
                };
                let place = TABLE[clash.second].context;
                let place = if place == Context::Anywhere { TABLE[clash.first].context } else { place };
                match places.iter_mut().find(|(other, message, _)| *other == at && *message == what) {
                    Some((.., all)) => all.push(place.name()),
                    None => places.push((at, what, vec![place.name()])),
                }
            }
            for (at, what, places) in places {
                let what = format!("{what}, both in: {}; give one of them another key", places.join(", "));
                problems.add(at..at, what);
            }
        }
    }

    /// Whether a key can be bound in a text field. Keys that type or edit text cannot.
    fn works_in_text(key: &str) -> bool {
        let types = ["<Space>", "<lt>", "<BS>", "<Del>", "<Left>", "<Right>", "<Home>", "<End>"];
        key.starts_with('<') && !types.contains(&key)
    }

    /// Reads one key or a list of keys; `None` after a problem.
    fn keys(value: &Spanned<DeValue<'_>>, problems: &mut Collector<'_>) -> Option<KeysAt> {
        let all: Vec<&Spanned<DeValue<'_>>> = match value.get_ref() {
            DeValue::Array(all) if !all.is_empty() => all.iter().collect(),
            DeValue::String(_) => vec![value],
            _ => {
                problems.expected("a key such as \"<C-x>\", or a list of keys", value);
                return None;
            }
        };
        let mut found = KeysAt::new();
        for one in &all {
            let Some(text) = one.get_ref().as_str() else {
                problems.expected("a key such as \"<C-x>\"", one);
                continue;
            };
            match written(text) {
                Some(key) if found.iter().any(|(other, _)| *other == key) => {
                    problems.add(one.span(), format!("`{key}` is twice in this list"));
                }
                Some(key) => found.push((key, one.span().start)),
                None => {
                    let hint = meant(text).map_or_else(
                        || "write x, <C-x>, <F2>, <Enter>, <Space> or <lt>".into(),
                        |key| format!("did you mean \"{key}\"?"),
                    );
                    problems.add(one.span(), format!("expected one key, found {text:?}; {hint}"));
                }
            }
        }
        (found.len() == all.len()).then_some(found)
    }

    /// Returns the key that another spelling means: `ctrl-x`, `^X`, `enter`, `page down`.
    fn meant(text: &str) -> Option<String> {
        let plain: String =
            text.trim_matches(['<', '>']).to_lowercase().chars().filter(|c| !" _".contains(*c)).collect();
        let control = ["ctrl-", "ctrl+", "control-", "c-", "c+", "^"];
        if let Some(rest) = control.iter().find_map(|start| plain.strip_prefix(start)) {
            return written(&format!("<C-{rest}>"));
        }
        match plain.as_str() {
            "return" | "ret" => return Some("<Enter>".into()),
            "escape" => return Some("<Esc>".into()),
            "space" => return Some("<Space>".into()),
            "backspace" => return Some("<BS>".into()),
            "delete" => return Some("<Del>".into()),
            "shift-tab" | "backtab" => return Some("<S-Tab>".into()),
            "pgup" => return Some("<PageUp>".into()),
            "pgdn" | "pgdown" => return Some("<PageDown>".into()),
            _ => {}
        }
        let named = NAMED.iter().find(|key| key.trim_matches(['<', '>']).to_lowercase() == plain);
        named.map(ToString::to_string).or_else(|| written(&format!("<{}>", plain.to_uppercase())))
    }
}
