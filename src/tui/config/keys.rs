//! `[keys]`: a preset, keys for an action wherever it is an order, keys for it in one place, and keys that would mean two things.

use std::collections::HashMap;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::read::{Told, in_order, near, shown};
use crate::tui::keymap::{Action, Context, Keymap, Preset, TABLE, written};

/// Names of keys that are no characters, for whoever writes one otherwise.
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

/// Keys as they were given, with their place in the text.
type Given = Vec<(String, usize)>;

/// What was given so far: for every line of the table, where in the text each of its keys stands.
#[derive(Default)]
struct Rebound(HashMap<usize, Given>);

/// Reads the table. What is wrong in it leaves the keys as they were.
pub(super) fn read(value: &Spanned<DeValue<'_>>, told: &mut Told<'_>) -> Keymap {
    let Some(table) = told.table(value, "preset = \"vim\"") else { return Keymap::default() };
    let mut keymap = Keymap::default();
    if let Some(preset) = table.get("preset") {
        let all = Preset::ALL.map(|preset| (preset.name(), preset));
        keymap = Keymap::of(told.one_of(preset, all.to_vec()).unwrap_or_default());
    }
    let mut rebound = Rebound::default();
    let entries = in_order(table);
    let (places, actions): (Vec<_>, Vec<_>) =
        entries.into_iter().partition(|(_, value)| value.get_ref().is_table());
    for (name, value) in actions.into_iter().filter(|(name, _)| name.get_ref() != "preset") {
        rebound.take(name, value, None, told);
    }
    // What is said of one place stands above what is said of all.
    for (name, value) in places {
        let known: Vec<String> = places_known();
        match TABLE.iter().map(|line| line.context).find(|place| place.key() == name.get_ref().as_ref()) {
            Some(place) => rebound.take_place(place, value.get_ref().as_table(), told),
            None => {
                let near = near(name.get_ref(), &known);
                told.wrong(name.span(), format!("there is no place `{}`; {near}", name.get_ref()));
            }
        }
    }
    for (line, given) in &rebound.0 {
        keymap.give(*line, given.iter().map(|(key, _)| key.clone()).collect());
    }
    rebound.close(&mut keymap);
    rebound.clashes(&keymap, told);
    keymap
}

fn places_known() -> Vec<String> {
    let mut all: Vec<String> = TABLE.iter().map(|line| line.context.key()).collect();
    all.sort();
    all.dedup();
    all
}

impl Rebound {
    fn take_place(&mut self, place: Context, table: Option<&DeTable<'_>>, told: &mut Told<'_>) {
        for (name, value) in table.into_iter().flat_map(in_order) {
            self.take(name, value, Some(place), told);
        }
    }

    /// Takes the keys of an action, in one place or wherever it is an order.
    fn take(
        &mut self,
        name: &Spanned<std::borrow::Cow<'_, str>>,
        value: &Spanned<DeValue<'_>>,
        place: Option<Context>,
        told: &mut Told<'_>,
    ) {
        let there = |context| place.is_none_or(|place| place == context);
        let lines: Vec<usize> = (0..TABLE.len())
            .filter(|i| there(TABLE[*i].context) && TABLE[*i].action.name() == name.get_ref().as_ref())
            .collect();
        let Some(first) = lines.first() else {
            let mut known: Vec<String> =
                TABLE.iter().filter(|line| there(line.context)).map(|line| line.action.name()).collect();
            known.sort();
            known.dedup();
            let there = place.map_or_else(String::new, |place| format!(" in {}", place.key()));
            let near = near(name.get_ref(), &known);
            return told
                .wrong(name.span(), format!("there is no action `{}`{there}; {near}", name.get_ref()));
        };
        let Some(given) = keys(value, told) else { return };
        let most = TABLE[*first].keys.len();
        if TABLE[*first].action.at(1) != TABLE[*first].action && given.len() > most {
            let what = format!("expected at most {most} keys, one a number, found {}", given.len());
            return told.wrong(value.span(), what);
        }
        let mut taken = false;
        for line in lines {
            let takes_text = TABLE[line].context.takes_text();
            let here: Given = given.iter().filter(|(key, _)| !takes_text || is_order(key)).cloned().collect();
            if !here.is_empty() {
                taken = true;
                self.0.insert(line, here);
            }
        }
        if !taken {
            let found = shown(value.get_ref());
            let what =
                format!("text is typed there: expected a key such as <C-x>, <F2> or <Enter>, found {found}");
            told.wrong(value.span(), what);
        }
    }

    /// The key that opens a screen closes it too, also one that was given; unless keys were given for closing.
    fn close(&self, keymap: &mut Keymap) {
        for (opener, given) in &self.0 {
            let Some(place) = TABLE[*opener].action.opens() else { continue };
            let back = |line: &usize| TABLE[*line].context == place && TABLE[*line].action == Action::Back;
            let Some(line) = (0..TABLE.len()).find(back).filter(|line| !self.0.contains_key(line)) else {
                continue;
            };
            let old = TABLE[*opener].keys;
            let mut keys = keymap.lines()[line].keys.clone();
            let closes = keys.iter().any(|key| old.contains(&key.as_str()));
            keys.retain(|key| !old.contains(&key.as_str()));
            let free = |key: &&String| keymap.here(place).all(|bound| !bound.keys.contains(*key));
            let new: Vec<String> = given.iter().map(|(key, _)| key).filter(free).cloned().collect();
            if closes {
                keys.extend(new);
                keymap.give(line, keys);
            }
        }
    }

    /// Tells every key that would mean two things in one place, once for all places.
    fn clashes(&self, keymap: &Keymap, told: &mut Told<'_>) {
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
                    let line = told.line(a.min(b));
                    (a.max(b), format!("`{key}` is `{other}` here and `{one}` in line {line}"))
                }
                (Some(at), None) => (at, format!("`{key}` is `{first}` here and `{second}` in the preset")),
                (None, Some(at)) => (at, format!("`{key}` is `{second}` here and `{first}` in the preset")),
                // No preset has one.
                (None, None) => continue,
            };
            let place = TABLE[clash.second].context;
            let place = if place == Context::Anywhere { TABLE[clash.first].context } else { place };
            match places.iter_mut().find(|(known, said, _)| *known == at && *said == what) {
                Some((.., all)) => all.push(place.name()),
                None => places.push((at, what, vec![place.name()])),
            }
        }
        for (at, what, places) in places {
            let what = format!("{what}, both in: {}; give one of them another key", places.join(", "));
            told.wrong(at..at, what);
        }
    }
}

/// Whether a key can be an order where text is typed: it neither types nor edits.
fn is_order(key: &str) -> bool {
    let types = ["<Space>", "<lt>", "<BS>", "<Del>", "<Left>", "<Right>", "<Home>", "<End>"];
    key.starts_with('<') && !types.contains(&key)
}

/// One key or a list of them; none if something is wrong with it.
fn keys(value: &Spanned<DeValue<'_>>, told: &mut Told<'_>) -> Option<Given> {
    let all: Vec<&Spanned<DeValue<'_>>> = match value.get_ref() {
        DeValue::Array(all) if !all.is_empty() => all.iter().collect(),
        DeValue::String(_) => vec![value],
        _ => {
            told.expected("a key such as \"<C-x>\", or a list of keys", value);
            return None;
        }
    };
    let mut given = Given::new();
    for one in &all {
        let Some(text) = one.get_ref().as_str() else {
            told.expected("a key such as \"<C-x>\"", one);
            continue;
        };
        match written(text) {
            Some(key) if given.iter().any(|(known, _)| *known == key) => {
                told.wrong(one.span(), format!("`{key}` stands twice in this list"));
            }
            Some(key) => given.push((key, one.span().start)),
            None => {
                let meant = meant(text).map_or_else(
                    || "write x, <C-x>, <F2>, <Enter>, <Space> or <lt>".into(),
                    |key| format!("did you mean \"{key}\"?"),
                );
                told.wrong(one.span(), format!("expected one key, found {text:?}; {meant}"));
            }
        }
    }
    (given.len() == all.len()).then_some(given)
}

/// The key that is written otherwise elsewhere: `ctrl-x`, `^X`, `enter`, `page down`.
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
