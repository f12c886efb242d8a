//! Records, recipes, configurations and code in colours. The classes come from the grammars of syntect; the explorer's own themes colour
//! them, so they are readable wherever the rest of the frame is.

use std::str::FromStr;
use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};
use syntect::highlighting::{
    Color, HighlightIterator, HighlightState, Highlighter, ScopeSelectors, StyleModifier, Theme, ThemeItem,
};
use syntect::parsing::{ParseState, ScopeStack, SyntaxReference, SyntaxSet};
use unicode_segmentation::UnicodeSegmentation;

use super::text::{Piece, Row, columns_of, fit, piece, rows as paragraph};
use crate::corpus::{Passage, PassageIx};
use crate::report::marks::Glyphs;
use crate::report::{explanations, safe};
use crate::tui::app::App;
use crate::tui::config::Config;
use crate::tui::keymap::{Action, Context};
use crate::tui::screens::passage::View;
use crate::tui::theme::{Code, Meaning};

/// A longer text has no colours: the interface must not wait for them.
const LONGEST: usize = 256 << 10;
/// A longer line has no colours.
const LONGEST_LINE: usize = 16 << 10;
/// The fields of a passage's metadata that say what its text is written in.
const FIELDS: [&str; 3] = ["syntax", "format", "mime"];

/// What a text is written in.
#[derive(Clone, Copy, Debug)]
pub struct Language(&'static SyntaxReference);

impl Language {
    /// JSON.
    pub fn json() -> Self {
        Language::named("json").unwrap_or_else(Language::plain)
    }

    /// TOML. The grammars have none; Python shares its strings, lists, numbers and comments.
    pub fn toml() -> Self {
        Language::named("py").unwrap_or_else(Language::plain)
    }

    fn plain() -> Self {
        Language(grammars().find_syntax_plain_text())
    }

    /// Returns the language of a name or of a file's ending.
    fn named(name: &str) -> Option<Self> {
        let found = grammars().find_syntax_by_token(name).map(Language);
        found.filter(|language| language.0.name != Language::plain().0.name)
    }

    /// Returns what a passage's text is written in, if its metadata says so: `syntax: python`, `mime: text/html`.
    pub fn of_passage(passage: &Passage) -> Option<Self> {
        let values = FIELDS.iter().filter_map(|field| passage.metadata.get(*field)?.as_str());
        let names = values.map(|value| {
            let name = value.rsplit('/').next().unwrap_or(value);
            name.split(';').next().unwrap_or(name).trim().trim_start_matches("x-").to_lowercase()
        });
        names.into_iter().find_map(|name| Language::named(&name))
    }
}

fn grammars() -> &'static SyntaxSet {
    static GRAMMARS: OnceLock<SyntaxSet> = OnceLock::new();
    GRAMMARS.get_or_init(SyntaxSet::load_defaults_newlines)
}

/// The classes, each with the scopes that have it; later ones win. A class's number is the red part of its colour in the theme.
const CLASSES: [(Code, &str); 5] = [
    (Code::Text, "string, markup.quote, markup.raw"),
    (Code::Number, "constant.numeric"),
    (Code::Word, "constant.language, keyword, storage, markup.bold, markup.italic"),
    (
        Code::Name,
        "meta.mapping.key string, meta.structure.dictionary.key string, entity.name, support.function, variable.function, markup.heading",
    ),
    (Code::Comment, "comment"),
];

fn classes() -> &'static Theme {
    static THEME: OnceLock<Theme> = OnceLock::new();
    THEME.get_or_init(|| {
        let items = CLASSES.iter().enumerate().filter_map(|(i, (_, scopes))| {
            let foreground = Some(Color { r: i as u8 + 1, g: 0, b: 0, a: 0xff });
            let style = StyleModifier { foreground, ..StyleModifier::default() };
            Some(ThemeItem { scope: ScopeSelectors::from_str(scopes).ok()?, style })
        });
        Theme { scopes: items.collect(), ..Theme::default() }
    })
}

/// Writes JSON with one entry per line; what fits into a line stands in one.
fn pretty(value: &Value) -> String {
    const LINE: usize = 76;
    fn inline(value: &Value) -> String {
        match value {
            Value::Array(all) => format!("[{}]", all.iter().map(inline).collect::<Vec<_>>().join(", ")),
            Value::Object(all) => {
                let entries = all.iter().map(|(name, value)| format!("{}: {}", json!(name), inline(value)));
                format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
            }
            value => value.to_string(),
        }
    }
    fn write(value: &Value, indent: usize, out: &mut String) {
        let line = inline(value);
        let (open, close, entries): (char, char, Vec<(String, &Value)>) = match value {
            Value::Array(all) if line.len() + indent > LINE => {
                ('[', ']', all.iter().map(|value| (String::new(), value)).collect())
            }
            Value::Object(all) if line.len() + indent > LINE || indent == 0 => {
                ('{', '}', all.iter().map(|(name, value)| (format!("{}: ", json!(name)), value)).collect())
            }
            _ => return out.push_str(&line),
        };
        out.push(open);
        let last = entries.len();
        for (i, (name, value)) in entries.into_iter().enumerate() {
            out.push('\n');
            out.push_str(&" ".repeat(indent + 2));
            out.push_str(&name);
            write(value, indent + 2, out);
            out.push_str(if i + 1 < last { "," } else { "" });
        }
        out.push('\n');
        out.push_str(&" ".repeat(indent));
        out.push(close);
    }
    let mut text = String::new();
    write(value, 0, &mut text);
    text
}

/// Lays out a text in a language, in lines of `width` columns. In ASCII mode, and if the text is too long, it has no colours.
pub fn coloured(text: &str, language: Language, width: usize, glyphs: Glyphs) -> Vec<Row> {
    let lines = text.lines().map(safe::line);
    if glyphs == Glyphs::Ascii || text.len() > LONGEST {
        return lines.flat_map(|line| folded(vec![code(line, Code::Other)], width)).collect();
    }
    let theme = classes();
    let highlighter = Highlighter::new(theme);
    let mut parser = ParseState::new(language.0);
    let mut state = HighlightState::new(&highlighter, ScopeStack::new());
    let mut parsed = |line: String| -> Row {
        let whole = format!("{line}\n");
        let operations =
            (line.len() <= LONGEST_LINE).then(|| parser.parse_line(&whole, grammars()).ok()).flatten();
        let Some(operations) = operations else { return vec![code(line, Code::Other)] };
        let styled = HighlightIterator::new(&mut state, &operations, &whole, &highlighter);
        let parts = styled.map(|(style, part)| {
            let class = usize::from(style.foreground.r).checked_sub(1).and_then(|i| CLASSES.get(i));
            code(part.trim_end_matches('\n').to_owned(), class.map_or(Code::Other, |(class, _)| *class))
        });
        parts.filter(|piece| !piece.text.is_empty()).collect()
    };
    lines.flat_map(|line| folded(parsed(line), width)).collect()
}

fn code(text: String, class: Code) -> Piece {
    Piece { own: true, ..piece(text, Meaning::Code(class)) }
}

/// Folds a row at `width` columns. Continued lines are indented like their first one, and a little more.
fn folded(row: Row, width: usize) -> Vec<Row> {
    let first: String = row.iter().flat_map(|piece| piece.text.chars()).take_while(|c| *c == ' ').collect();
    let indent = (first.len() + 2).min(width.saturating_sub(2) / 2);
    let (mut rows, mut used) = (vec![Row::new()], 0);
    for piece in row {
        let mut text = String::new();
        for cluster in piece.text.graphemes(true) {
            let wide = columns_of(cluster);
            if used + wide > width.max(1) && used > 0 {
                let part = Piece { text: std::mem::take(&mut text), ..piece.clone() };
                if let Some(last) = rows.last_mut() {
                    last.push(part);
                }
                rows.push(vec![code(" ".repeat(indent), Code::Other)]);
                used = indent;
            }
            text.push_str(cluster);
            used += wide;
        }
        if let Some(last) = rows.last_mut() {
            last.push(Piece { text, ..piece });
        }
    }
    rows
}

/// The present settings: some were changed since the file was read.
pub fn settings(app: &App) -> Config {
    Config { glyphs: app.glyphs, layout: app.layout, keys: Arc::clone(&app.keys), ..app.settings.clone() }
}

/// A record, an index entry, a recipe or the configuration below its name.
pub fn source(app: &App, at: PassageIx, passage: &Passage, view: View, width: usize) -> (Vec<Row>, Vec<Row>) {
    let lane = app.lanes.get(app.lane);
    let titles = app.titles();
    let title = titles.get(app.lane).map_or("", String::as_str);
    let json = Language::json();
    let (name, text, language) = match view {
        View::Text | View::Record => {
            let record = serde_json::to_value(passage).map(|record| pretty(&record)).unwrap_or_default();
            (format!("Record of {}", passage.id), Ok(record), json)
        }
        View::Index => {
            let entry = lane.and_then(|lane| app.reading.index_of(at, &lane.recipe)).cloned();
            let entry = entry.unwrap_or_else(|| Ok("…".into()));
            // It comes as JSON; anything else is shown as it is.
            let laid_out = |text: String| serde_json::from_str(&text).map_or(text, |value| pretty(&value));
            (format!("Index entry in {title}"), entry.map(laid_out), json)
        }
        View::Recipe => {
            let recipe = lane.map(|lane| {
                pretty(&json!({
                    "lane": title,
                    "recipe": lane.recipe.to_string(),
                    "question": app.question.text,
                    "passages": lane.ranking.len(),
                    "notes": lane.ranking.trace.notes,
                    "steps": explanations::json(&lane.ranking, app.k),
                }))
            });
            (format!("Recipe of {title}"), Ok(recipe.unwrap_or_default()), json)
        }
        View::Settings => ("Configuration".into(), Ok(settings(app).to_string()), Language::toml()),
    };
    let key = app.key(Context::Read, Action::Back);
    let mut heading = vec![vec![piece(fit(&safe::line(&name), width), Meaning::Title)]];
    heading.push(vec![piece(fit(&format!("{key}: back to the text"), width), Meaning::Muted)]);
    heading.push(Row::new());
    let body = match text {
        Ok(text) => coloured(&text, language, width, app.glyphs),
        Err(reason) => paragraph(&reason, "", width, Meaning::Warn),
    };
    (heading, body)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classes_of(text: &str, language: Language) -> Vec<(String, Code)> {
        let rows = coloured(text, language, 80, Glyphs::Shapes);
        let pieces = rows.into_iter().flatten().map(|piece| match piece.meanings[..] {
            [Meaning::Code(class)] => (piece.text, class),
            _ => panic!("{piece:?}"),
        });
        pieces.filter(|(text, _)| !text.trim().is_empty()).collect()
    }

    fn class_of(text: &str, part: &str, language: Language) -> Code {
        let all = classes_of(text, language);
        all.iter().find(|(text, _)| text.contains(part)).unwrap_or_else(|| panic!("{all:?}")).1
    }

    #[test]
    fn names_texts_and_numbers_of_a_record_have_their_own_classes() {
        let record = "{\n  \"title\": \"Zoos\",\n  \"year\": 1999,\n  \"open\": true\n}";
        let of = |part| class_of(record, part, Language::json());
        assert_eq!([of("Zoos"), of("1999"), of("true")], [Code::Text, Code::Number, Code::Word]);
        assert_eq!([of("title"), of("year")], [Code::Name, Code::Name]);
    }

    #[test]
    fn json_has_an_entry_per_line_and_means_the_same() {
        let value = json!({"terms": [{"term": "zoo", "times": 2}, {"term": "bear", "times": 1}], "long": "x".repeat(90), "none": {}});
        let text = pretty(&value);
        assert!(text.contains("\n  \"terms\": [{\"term\": \"zoo\", \"times\": 2}, "), "{text}");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
        assert!(pretty(&json!({"a": 1})).starts_with("{\n  \"a\": 1\n}"));
    }

    #[test]
    fn settings_and_comments_of_a_configuration_have_their_own_classes() {
        let text = "[layout]\nlane-width = 32  # columns\ntheme = \"dark\"\n";
        let of = |part| class_of(text, part, Language::toml());
        assert_eq!([of("32"), of("columns"), of("dark")], [Code::Number, Code::Comment, Code::Text]);
    }

    #[test]
    fn a_passage_says_what_it_is_written_in() {
        let passage = |field: &str, value: &str| {
            let mut passage = Passage::default();
            passage.metadata.insert(field.into(), value.into());
            Language::of_passage(&passage)
        };
        assert!(
            passage("syntax", "python").is_some() && passage("mime", "text/html; charset=utf-8").is_some()
        );
        assert!(passage("format", "x-c").is_some());
        assert!(passage("mime", "text/plain").is_none());
        assert!(passage("syntax", "klingon").is_none());
        assert!(passage("author", "python").is_none());
    }

    #[test]
    fn nothing_of_a_text_is_lost_at_any_width() {
        let text = "{\n    \"text\": \"動物園は必要か \u{1b}[31m🦁 and a long line that is folded\"\n}\n";
        for width in 0..60 {
            let rows = coloured(text, Language::json(), width, Glyphs::Shapes);
            for row in &rows {
                let wide: usize = row.iter().map(|piece| columns_of(&piece.text)).sum();
                assert!(wide <= width.max(2), "{width}: {wide}");
            }
            let shown: String = rows.iter().flatten().flat_map(|piece| piece.text.chars()).collect();
            let letters = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
            let whole: String = text.lines().map(safe::line).collect();
            assert_eq!(letters(&shown), letters(&whole), "{width}");
        }
    }

    #[test]
    fn ascii_mode_and_long_texts_have_no_colours() {
        let plain = coloured("{\"a\": 1}", Language::json(), 80, Glyphs::Ascii);
        assert!(plain.iter().flatten().all(|piece| piece.meanings == [Meaning::Code(Code::Other)]));
        let long = format!("{{\"a\": \"{}\"}}", "x".repeat(LONGEST));
        let rows = coloured(&long, Language::json(), 80, Glyphs::Shapes);
        assert!(rows.iter().flatten().all(|piece| piece.meanings == [Meaning::Code(Code::Other)]));
    }
}
