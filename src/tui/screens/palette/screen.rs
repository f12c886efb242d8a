//! Matches entries with the words that were typed, carries out what is chosen, and draws the box that lists them.

use std::mem;

use clap::ValueEnum;
use crossterm::event::{Event, KeyEvent};
use nucleo_matcher::pattern::{AtomKind, CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};
use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Paragraph};
use tui_input::Input;
use tui_input::backend::crossterm::EventHandler;

use super::{Does, Entry, Picker};
use crate::detect::LabelSource;
use crate::engine::Recipe;
use crate::report::marks::Glyphs;
use crate::report::safe;
use crate::tui::app::{App, Corpus};
use crate::tui::keymap::{Action, Context, shown};
use crate::tui::layout::keep_in_view;
use crate::tui::message::Effect;
use crate::tui::screens::lanes::update::MAX_K;
use crate::tui::screens::lanes::{question, switches, update};
use crate::tui::theme::{Look, Meaning, Theme};
use crate::tui::widgets::text::{columns_of, fit, span};
use crate::work::Job;

/// Finds the entries that match the words; `below` is the context that actions are performed in.
pub fn refresh(app: &mut App, below: Context) {
    let Some(palette) = &app.palette else { return };
    let typed = palette.line.value().trim().to_owned();
    let (all, note) = match palette.of {
        Picker::Actions => (actions(app, below, &typed), None),
        Picker::Lanes => lanes(app, &typed),
        Picker::Questions => questions(app),
        Picker::Corpora => corpora(app, &typed),
    };
    // What was typed as a whole comes first and needs no match.
    let (own, rest): (Vec<Entry>, Vec<Entry>) = all.into_iter().partition(|entry| entry.key == TYPED);
    let texts = rest.into_iter().map(|entry| {
        let text = format!("{} {}", entry.key, entry.text);
        (entry, text)
    });
    let found = matches(&typed, texts);
    let Some(palette) = &mut app.palette else { return };
    palette.found = own.into_iter().chain(found).collect();
    palette.note = note;
    palette.at = palette.at.min(palette.found.len().saturating_sub(1));
}

/// The key of an entry that is what was typed.
const TYPED: &str = "typed";

fn entry(key: impl Into<String>, text: impl Into<String>, does: Does) -> Entry {
    Entry { key: key.into(), text: text.into(), does }
}

/// The actions that can be performed in `below`, then every setting with its values.
fn actions(app: &App, below: Context, typed: &str) -> Vec<Entry> {
    let ascii = app.glyphs == Glyphs::Ascii;
    let here = app.keys.lines().iter().filter(|bound| {
        let line = bound.line;
        line.action != Action::Palette && [below, Context::Anywhere].contains(&line.context)
    });
    let mut all: Vec<Entry> = here
        .map(|bound| {
            let keys = bound.keys.iter().map(|key| shown(key, ascii)).next().unwrap_or_default();
            entry(keys, bound.line.help, Does::Act(bound.line.action))
        })
        .collect();
    let now = |is: bool| if is { " (now)" } else { "" };
    let typed_k =
        typed.split_whitespace().find_map(|word| word.parse().ok()).filter(|k| (1..=MAX_K).contains(k));
    let ks = [1, 3, 5, 10, 20].into_iter().chain(typed_k.filter(|k| ![1, 3, 5, 10, 20].contains(k)));
    all.extend(
        ks.map(|k| entry("k", format!("{k}: let the first {k} count{}", now(k == app.k)), Does::K(k))),
    );
    let (gold, human, labels) = match &app.corpus {
        Corpus::Open(opened) => (opened.labelled, opened.by_hand, format!("{} alone", opened.labels.0)),
        _ => (false, false, String::new()),
    };
    let sources = [
        (LabelSource::Auto, "by hand first, then gold, then the model", true),
        (LabelSource::Model, "the model alone", true),
        (LabelSource::Gold, labels.as_str(), gold),
        (LabelSource::Human, "by hand alone", human),
    ];
    all.extend(sources.into_iter().filter(|(.., is)| *is).map(|(source, words, _)| {
        let is = now(source == app.judgments.source);
        entry("labels", format!("source {source}: {words}{is}"), Does::Source(source))
    }));
    all.extend(
        Look::value_variants().iter().map(|look| {
            entry("theme", format!("{}{}", look.name(), now(*look == app.look)), Does::Look(*look))
        }),
    );
    let glyphs =
        [(Glyphs::Shapes, "unicode: shapes and lines"), (Glyphs::Ascii, "ascii: plain characters alone")];
    all.extend(glyphs.map(|(glyphs, words)| {
        entry("glyphs", format!("{words}{}", now(glyphs == app.glyphs)), Does::Glyphs(glyphs))
    }));
    all.extend([1, 2, 3, 5, 8].map(|rows| {
        let is = now(rows == app.layout.passage_rows);
        entry("layout", format!("at most {rows} rows of a passage{is}"), Does::Rows(rows))
    }));
    all.extend([24, 32, 44, 60].map(|width| {
        let is = now(width == app.layout.lane_width);
        entry("layout", format!("at least {width} columns of a lane{is}"), Does::LaneWidth(width))
    }));
    all
}

/// Endings that make a retriever a recipe; those that a retriever refuses are left out.
const ENDINGS: [&str; 11] = [
    "",
    "+mmr@.75",
    "+perspectives",
    "+keqe",
    "+csqe",
    "+rm3",
    "+pap@2",
    "+ivf@32",
    "+xquad",
    "+pm2",
    "+rerank@ms-marco-minilm",
];

/// A lane like the present one, what was typed, dropped lanes, then every retriever with its switches.
fn lanes(app: &App, typed: &str) -> (Vec<Entry>, Option<String>) {
    let mut all = Vec::new();
    let mut note = Some("type any recipe: bm25+mmr@.5, run:FILE; Tab completes".to_owned());
    match typed.parse::<Recipe>() {
        Ok(recipe) => {
            all.push(entry(
                TYPED,
                format!("add {}", safe::line(&recipe.to_string())),
                Does::Lane(Box::new(recipe)),
            ));
        }
        Err(error) if !typed.is_empty() => note = Some(error.to_string()),
        Err(_) => {}
    }
    if let Some(lane) = app.lanes.get(app.lane) {
        all.push(entry(
            "copy",
            format!("another lane like {}", safe::line(&lane.recipe.to_string())),
            Does::CopyLane,
        ));
    }
    let recipes = |text: &Recipe, key: &str| {
        entry(key, safe::line(&text.to_string()), Does::Lane(Box::new(text.clone())))
    };
    all.extend(app.acts.dropped.iter().map(|recipe| recipes(recipe, "back")));
    let runs = app.lanes.iter().filter(|lane| lane.recipe.run().is_some());
    all.extend(runs.map(|lane| recipes(&lane.recipe.plain(), "run")));
    for base in Recipe::defaults() {
        let made = ENDINGS.iter().filter_map(|ending| format!("{base}{ending}").parse::<Recipe>().ok());
        all.extend(made.map(|recipe| recipes(&recipe, "add")));
    }
    (all, note)
}

/// The questions of the set.
fn questions(app: &App) -> (Vec<Entry>, Option<String>) {
    let Corpus::Open(opened) = &app.corpus else { return (Vec::new(), Some("no corpus is open".into())) };
    let all = opened.questions.iter().enumerate().map(|(i, question)| {
        let sides = match question.perspectives.len() {
            2 => "2 sides".into(),
            count => format!("{count} st."),
        };
        entry(sides, safe::line(&question.text), Does::Question(i))
    });
    let none = "this corpus came without a question set: --questions FILE names one";
    let note = opened.questions.is_empty().then(|| none.to_owned());
    (all.collect(), note)
}

/// The sample, the corpora of the library, and a path that was typed.
fn corpora(app: &App, typed: &str) -> (Vec<Entry>, Option<String>) {
    let mut all = Vec::new();
    let mut note = Some("type the path of a file or folder to add it".to_owned());
    if typed.contains(['/', '\\', '.']) {
        let path = typed.strip_prefix("~/").and_then(|rest| Some(app.home.as_ref()?.join(rest)));
        let path = path.unwrap_or_else(|| typed.into());
        all.push(entry(TYPED, format!("add {}", safe::line(typed)), Does::Corpus(Some(path))));
    }
    all.push(entry("sample", "the built-in sample, with gold labels", Does::Corpus(None)));
    match &app.corpora {
        Some(Ok(corpora)) => all.extend(corpora.iter().map(|corpus| {
            entry(
                safe::line(&corpus.name),
                safe::line(&corpus.about),
                Does::Corpus(Some(corpus.path.clone())),
            )
        })),
        Some(Err(reason)) => note = Some(safe::line(reason)),
        None if matches!(app.corpus, Corpus::Failed(_)) => {}
        None => note = Some("listing the library …".into()),
    }
    (all, note)
}

/// Edits the words.
pub fn edit(app: &mut App, key: KeyEvent) {
    if let Some(palette) = &mut app.palette {
        palette.line.handle_event(&Event::Key(key));
        palette.at = 0;
    }
}

/// Moves the mark or closes the palette. Returns what was chosen, if anything.
pub fn act(app: &mut App, action: Action) -> Option<Does> {
    let palette = app.palette.as_mut()?;
    match action {
        Action::Down => palette.at = (palette.at + 1).min(palette.found.len().saturating_sub(1)),
        Action::Up => palette.at = palette.at.saturating_sub(1),
        Action::Complete => {
            let completed = match &palette.found.get(palette.at)?.does {
                Does::Lane(recipe) => recipe.to_string(),
                Does::Corpus(Some(path)) => path.display().to_string(),
                _ => return None,
            };
            palette.line = Input::new(completed);
            palette.at = 0;
        }
        Action::Choose => {
            let chosen = palette.found.get(palette.at)?.does.clone();
            app.palette = None;
            return Some(chosen);
        }
        _ => app.palette = None,
    }
    None
}

/// Carries out a choice that is no action of a screen.
pub fn choose(app: &mut App, does: Does) -> Vec<Effect> {
    match does {
        Does::Act(_) => Vec::new(),
        Does::K(k) => update::set_k(app, k),
        Does::Source(source) => {
            app.judgments.source = source;
            question::go_on(app)
        }
        Does::Look(look) => {
            app.look = look;
            vec![Effect::SetLook(look)]
        }
        Does::Glyphs(glyphs) => {
            app.glyphs = glyphs;
            Vec::new()
        }
        Does::Rows(rows) => {
            app.layout.passage_rows = rows;
            keep_in_view(app);
            Vec::new()
        }
        Does::LaneWidth(width) => {
            app.layout.lane_width = width;
            keep_in_view(app);
            Vec::new()
        }
        Does::CopyLane => update::copy_lane(app),
        Does::Lane(recipe) => update::add_lane(app, *recipe),
        Does::Question(i) => {
            let Corpus::Open(opened) = &app.corpus else { return Vec::new() };
            let question = opened.questions.get(i).cloned();
            question.map_or_else(Vec::new, |question| question::ask_question(app, question))
        }
        Does::Corpus(_) if switches::waits_for_labels(app) => Vec::new(),
        Does::Corpus(corpus) => {
            let left = matches!(app.corpus, Corpus::Open(_)).then(|| question::state(app));
            let acts = mem::take(&mut app.acts);
            app.acts.dropped.clone_from(&acts.dropped);
            question::change_corpus(app);
            // Undo leads back.
            app.acts.left = left.map(|state| Box::new((state, acts)));
            // A corpus that is being made would take its place when it has grown.
            let stop = app.gathering.take().map(|_| Effect::StopGathering);
            app.jobs.retain(|(progress, _)| progress.job != Job::Gathering);
            stop.into_iter().chain([Effect::UseCorpus(corpus)]).collect()
        }
    }
}

/// Columns of the box, if there is room.
const WIDTH: u16 = 76;

/// Draws the palette if it is open.
pub fn draw(app: &App, theme: Theme, body: Rect, frame: &mut Frame<'_>) {
    let Some(palette) = &app.palette else { return };
    let width = WIDTH.min(body.width);
    let height = (palette.found.len().max(1) as u16 + 3 + u16::from(palette.note.is_some())).min(body.height);
    let title = match palette.of {
        Picker::Actions => " Find an action or a setting ",
        Picker::Lanes => " Add a lane ",
        Picker::Questions => " Choose a question ",
        Picker::Corpora => " Open a corpus ",
    };
    let area = Rect { x: body.x + (body.width - width) / 2, width, height, ..body };
    let block =
        Block::bordered().border_style(theme.style(Meaning::Focus)).title(span(title, Meaning::Title, theme));
    let inner = block.inner(area);
    frame.render_widget(Clear, area);
    frame.render_widget(block, area);
    let room = usize::from(inner.width);
    let typed = safe::line(palette.line.value());
    let mut lines = vec![Line::from(vec![
        span(" : ", Meaning::Key, theme),
        span(fit(&typed, room.saturating_sub(4)), Meaning::Text, theme),
    ])];
    if palette.found.is_empty() {
        lines.push(Line::from(span(" nothing here has these words", Meaning::Warn, theme)));
    }
    // The marked line is always visible.
    let notes = usize::from(palette.note.is_some() && inner.height > 2);
    let rows = usize::from(inner.height).saturating_sub(1 + notes).max(1);
    let first = (palette.at + 1).saturating_sub(rows);
    let widest = palette.found.iter().map(|entry| columns_of(&entry.key)).max().unwrap_or(0).clamp(6, 16);
    for (i, entry) in palette.found.iter().enumerate().skip(first).take(rows) {
        let key = fit(&entry.key, widest);
        let gap = " ".repeat(widest.saturating_sub(columns_of(&key)));
        let text = fit(&format!(" {key}{gap} {}", entry.text), room);
        let pad = " ".repeat(room.saturating_sub(columns_of(&text)));
        let meaning = if i == palette.at { Meaning::Selected } else { Meaning::Text };
        lines.push(Line::from(span(text + &pad, meaning, theme)));
    }
    if let Some(note) = palette.note.as_ref().filter(|_| notes > 0) {
        lines.push(Line::from(span(fit(&format!(" {}", safe::line(note)), room), Meaning::Muted, theme)));
    }
    frame.render_widget(Paragraph::new(lines), inner);
    if inner.width > 4 && inner.height > 0 {
        let column = (3 + palette.line.visual_cursor()).min(room.saturating_sub(1)) as u16;
        frame.set_cursor_position(Position { x: inner.x + column, y: inner.y });
    }
}

/// Returns the items whose text matches every word, best first; ties keep their order. Matches that are less than half as good as the
/// best are left out, because in a long text almost any word matches somewhere.
pub fn matches<T>(typed: &str, items: impl IntoIterator<Item = (T, String)>) -> Vec<T> {
    let pattern = Pattern::new(typed, CaseMatching::Ignore, Normalization::Smart, AtomKind::Fuzzy);
    let mut matcher = Matcher::new(Config::DEFAULT);
    let mut buffer = Vec::new();
    let scored = items.into_iter().filter_map(|(item, text)| {
        let score = pattern.score(Utf32Str::new(&text, &mut buffer), &mut matcher)?;
        Some((item, score))
    });
    let mut scored: Vec<(T, u32)> = scored.collect();
    scored.sort_by_key(|(_, score)| std::cmp::Reverse(*score));
    let least = scored.first().map_or(0, |(_, best)| best.div_ceil(2));
    scored.into_iter().take_while(|(_, score)| *score >= least).map(|(item, _)| item).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found<'a>(typed: &str, lines: &[&'a str]) -> Vec<&'a str> {
        matches(typed, lines.iter().map(|line| (*line, (*line).to_owned())))
    }

    #[test]
    fn every_word_must_match_in_any_order_and_case() {
        let lines = ["Should zoos be banned?", "Is nuclear power safe?"];
        assert_eq!(found("BANNED zoo", &lines), ["Should zoos be banned?"]);
        assert_eq!(found("zoo nuclear", &lines), Vec::<&str>::new());
    }

    #[test]
    fn whole_words_come_before_scattered_letters_and_ties_keep_their_order() {
        assert_eq!(
            found("lane", &["drop the lane", "a plain note", "move the lane"])[..2],
            ["drop the lane", "move the lane"]
        );
        assert_eq!(found("", &["b", "a"]), ["b", "a"]);
    }

    #[test]
    fn a_letter_may_be_missing() {
        assert_eq!(found("expnd", &["expand the query", "project the query"]), ["expand the query"]);
    }
}
