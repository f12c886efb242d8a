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
            let mut names: Vec<String> =
                TABLE.iter().filter(|line| applies(line.context)).map(|line| line.action.name()).collect();
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
            let what =
                format!("text is typed there: expected a key such as <C-x>, <F2> or <Enter>, found {found}");
            problems.add(value.span(), what);
        }
    }

    /// Makes the new key that opens a screen close it too, unless the file has keys for closing it.
    fn close(&self, keymap: &mut Keymap) {
        for (opener, keys_at) in &self.0 {
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
                (Some(at), None) => (at, format!("`{key}` is `{first}` here and `{second}` in the preset")),
                (None, Some(at)) => (at, format!("`{key}` is `{second}` here and `{first}` in the preset")),
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
