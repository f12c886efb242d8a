//! What changed as sentences, one below the other, for screen readers and for terminals without a screen.

use std::collections::{BTreeMap, HashSet};
use std::io::{self, Write};
use std::ops::Range;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Modifier;

use super::play;
use crate::engine::FirstRank;
use crate::report::marks::{Glyphs, Mark, share, signed};
use crate::report::safe;
use crate::tui::app::{App, Corpus, Lane, LaneState};
use crate::tui::keymap::{Action, Context, Screen};
use crate::tui::layout::panes;
use crate::tui::pages::context;
use crate::tui::theme::{Look, Theme};
use crate::tui::widgets::text::{Row, columns_of};

/// Prints what changed as sentences, one below the other, for screen readers and for terminals without a screen.
#[derive(Debug, Default)]
pub struct Linear {
    /// What was said last of each topic.
    said: BTreeMap<String, String>,
    /// The screen and the passage whose lines were printed, and those lines.
    lines: (Option<(Screen, String)>, HashSet<String>),
}

impl Linear {
    /// Prints what has changed since the last call.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn report(&mut self, app: &App, out: &mut impl Write) -> io::Result<()> {
        for sentence in self.changes(app) {
            // In raw mode a new line does not begin at the left.
            write!(out, "{sentence}\r\n")?;
        }
        out.flush()
    }

    /// Returns what has changed since the last call.
    fn changes(&mut self, app: &App) -> Vec<String> {
        let mut changes = Vec::new();
        let topics = topics(app);
        for topic in ["notice", "cursor", "completion"] {
            // Said again if it comes back.
            if topics.iter().all(|(name, _)| name != topic) {
                self.said.remove(topic);
            }
        }
        for (topic, sentence) in topics {
            if self.said.insert(topic, sentence.clone()).as_ref() != Some(&sentence) {
                changes.push(sentence);
            }
        }
        let shown = app.open_passage().filter(|_| app.screen == Screen::PASSAGE);
        let of = (app.screen, shown.map_or_else(String::new, |(_, passage)| passage.id.clone()));
        if self.lines.0.as_ref() != Some(&of) {
            self.lines = (Some(of), HashSet::new());
        }
        changes.extend(lines(app).into_iter().filter(|line| self.lines.1.insert(line.clone())));
        changes
    }
}

/// What is shown, topic by topic, each as a sentence.
fn topics(app: &App) -> Vec<(String, String)> {
    let mut all = vec![("screen".to_owned(), format!("You are here: {}.", context(app).name()))];
    let mut say = |topic: &str, sentence: String| all.push((topic.to_owned(), sentence));
    match &app.corpus {
        Corpus::Opening => say("corpus", "The corpus is being opened.".into()),
        Corpus::Open(opened) => {
            say(
                "corpus",
                format!("Corpus {} with {} passages.", safe::line(&opened.corpus), opened.passages),
            );
        }
        Corpus::Failed(reason) => {
            say("corpus", format!("The corpus could not be opened: {}", safe::line(reason)))
        }
    }
    if app.typing {
        let key = app.key(Context::Question, Action::Ask);
        say("typing", format!("Type a question; {key} asks it."));
        if app.recalled {
            let question = safe::line(app.line.value());
            say(
                "recalled",
                format!("The last one was: {question} {key} asks it again, and what you type replaces it."),
            );
        }
        if let Some(text) = app.completion.and_then(|i| app.completions.get(i)) {
            say("completion", format!("Suggestion: {}", safe::line(text)));
        }
    } else if !app.question.text.is_empty() {
        say("question", format!("Question: {}", safe::line(&app.question.text)));
        for (i, statement) in app.question.perspectives.iter().enumerate() {
            say(&format!("statement {i}"), format!("Statement {}: {}", side(app, i), safe::line(statement)));
        }
    }
    say("k", format!("The first {} passages count. Labels: {}.", app.k, app.judgments.source));
    // The figures of lists that are still being judged would be said a hundred times.
    if app.settled && !app.question.text.is_empty() {
        for (i, (lane, title)) in app.lanes.iter().zip(app.titles()).enumerate() {
            if let Some(sentence) = lane_sentence(app, lane) {
                say(&format!("lane {i}"), format!("Lane {title}: {sentence}"));
            }
        }
    }
    if app.screen == Screen::LANES
        && !app.typing
        && let (Some(ranked), Some(lane)) = (app.selected(), app.lanes.get(app.lane))
    {
        let p = app.judgments.shown(ranked.at).map_or_else(String::new, |p| format!(", {}", share(p)));
        let heading = safe::line(ranked.passage.heading());
        let title = app.titles().swap_remove(app.lane);
        say(
            "cursor",
            format!("{title}, rank {}: {}{p}. {heading}", lane.selected + 1, mark(app, app.mark(ranked.at))),
        );
    }
    if let Some(notice) = &app.notice {
        say("notice", safe::line(notice));
    }
    all
}

/// A statement in words.
fn side(app: &App, i: usize) -> String {
    match Mark::of(i, &app.question) {
        Mark::Support => "in support".into(),
        Mark::Oppose => "opposed".into(),
        _ => (i + 1).to_string(),
    }
}

/// What a passage supports, in words.
fn mark(app: &App, mark: Mark) -> String {
    match mark {
        Mark::Support => "supports".into(),
        Mark::Oppose => "opposes".into(),
        Mark::Other(i) => format!("supports statement {}", i + 1),
        Mark::Several if app.question.perspectives.len() == 2 => "supports both sides".into(),
        Mark::Several => "supports several statements".into(),
        Mark::None => "supports none".into(),
        Mark::Unclear => "side unclear".into(),
        Mark::Pending => "not judged".into(),
    }
}

/// A lane's list and its figures as a sentence; `None` while it is on its way.
fn lane_sentence(app: &App, lane: &Lane) -> Option<String> {
    match &lane.state {
        LaneState::Failed(reason, _) => return Some(format!("no list: {}", safe::line(reason))),
        LaneState::Ready => {}
        LaneState::Idle | LaneState::Waiting => return None,
    }
    let top = &lane.ranking[..lane.ranking.len().min(app.k)];
    let mut counts: Vec<(String, usize)> = Vec::new();
    for ranked in top {
        let words = mark(app, app.mark(ranked.at));
        match counts.iter_mut().find(|(known, _)| *known == words) {
            Some((_, count)) => *count += 1,
            None => counts.push((words, 1)),
        }
    }
    let said = |(words, count): (String, usize)| match count {
        1 => format!("1 {words}"),
        _ => format!("{count} {}", words.replace("supports", "support").replace("opposes", "oppose")),
    };
    let counts: Vec<String> = counts.into_iter().map(said).collect();
    let mut sentence = format!("of the first {}, {}.", top.len(), counts.join("; "));
    let Some(figures) = &lane.figures.now else { return Some(sentence) };
    match lane.figures.doubt {
        Some(doubt) => {
            let [mean, low, high] = [doubt.mrecall.mean, doubt.mrecall.low, doubt.mrecall.high].map(share);
            sentence += &format!(" MRecall is {mean}, from {low} to {high}.");
        }
        None => sentence += &format!(" MRecall is {}.", figures.mrecall_text()),
    }
    let drawn = lane.figures.doubt.and_then(|doubt| doubt.lean).map(|lean| lean.mean);
    if let Some(lean) = drawn.or(figures.lean()) {
        sentence += &format!(" Lean {}.", signed(lean).trim());
    }
    for (i, first) in figures.first.iter().enumerate() {
        sentence += &match first {
            FirstRank::At(rank) => format!(" Statement {} first at rank {rank}.", side(app, i)),
            FirstRank::Below(judged) => format!(" Statement {} is not in the first {judged}.", side(app, i)),
        };
    }
    Some(sentence)
}

/// What a glyph means, to be read aloud.
fn spoken(glyph: char) -> Option<&'static str> {
    Some(match glyph {
        '▲' => " support ",
        '▼' => " oppose ",
        '◐' => " both ",
        '○' => " none ",
        '◇' => " unclear ",
        // A letter or a number says which statement, or where on a gauge.
        '█' | '·' | '◆' | '●' | '■' | '★' | '□' => " ",
        'Δ' => " change ",
        '\u{2581}'..='\u{258f}' | '\u{2800}'..='\u{28ff}' => " ",
        _ => return None,
    })
}

/// The lines of a passage or of any screen but the lanes, without frames, the marked one named.
fn lines(app: &App) -> Vec<String> {
    if app.screen == Screen::LANES && app.palette.is_none() {
        return Vec::new();
    }
    if app.screen == Screen::PASSAGE && app.palette.is_none() {
        let text = &app.reading.text;
        let line = |row: &Row| row.iter().map(|piece| piece.text.as_str()).collect::<String>();
        let all = text.heading.iter().chain(&text.body).map(line);
        return all.filter(|line| !line.trim().is_empty()).collect();
    }
    // ASCII frames consist of characters that figures have too.
    let drawn = App { glyphs: Glyphs::Shapes, ..app.clone() };
    let Ok(frame) = play::frame(&drawn, Theme::of(Look::Terminal)) else { return Vec::new() };
    let buffer = frame.buffer();
    read_panes(buffer, panes(app).body)
}

/// The lines of all panes that frames divide `body` into, one pane after the other, each from left to right and from top to bottom.
fn read_panes(buffer: &Buffer, body: Rect) -> Vec<String> {
    // A pane is the rows, one below the other, of what stands between the same two borders.
    let mut panes: Vec<(Range<u16>, u16, Vec<String>)> = Vec::new();
    for y in body.top()..body.bottom() {
        for columns in between_borders(buffer, body, y) {
            let line = read_line(buffer, columns.clone(), y);
            match panes.iter_mut().rev().find(|(of, last, _)| *of == columns && last + 1 == y) {
                Some((_, last, lines)) => {
                    *last = y;
                    lines.extend(line);
                }
                None => panes.push((columns, y, line.into_iter().collect())),
            }
        }
    }
    panes.into_iter().flat_map(|(_, _, lines)| lines).collect()
}

/// The columns of a row between its borders.
fn between_borders(buffer: &Buffer, body: Rect, y: u16) -> Vec<Range<u16>> {
    let is_border =
        |x: &u16| buffer.cell((*x, y)).is_some_and(|cell| "│┃┌┐└┘┏┓┗┛├┤┠┨".contains(cell.symbol()));
    let borders = (body.left()..body.right()).filter(is_border);
    let mut from = body.left();
    let mut all = Vec::new();
    for x in borders.chain([body.right()]) {
        all.push(from..x);
        from = x + 1;
    }
    all.retain(|columns| !columns.is_empty());
    all
}

/// The words of a row's columns, without frames; `Marked: ` stands before them if they are highlighted.
fn read_line(buffer: &Buffer, columns: Range<u16>, y: u16) -> Option<String> {
    let (mut line, mut marked) = (String::new(), false);
    let mut x = columns.start;
    while x < columns.end {
        let Some(cell) = buffer.cell((x, y)) else { break };
        let symbol = cell.symbol();
        // The second column of a wide character holds nothing.
        x += columns_of(symbol).max(1) as u16;
        match symbol.chars().next() {
            Some('\u{2500}'..'\u{2580}') | None => line.push(' '),
            Some(glyph) => match spoken(glyph) {
                Some(word) => line.push_str(word),
                None => line.push_str(symbol),
            },
        }
        marked |= cell.modifier.contains(Modifier::REVERSED) && symbol.chars().all(char::is_alphabetic);
    }
    let words: Vec<&str> = line.split_whitespace().collect();
    (!words.is_empty()).then(|| format!("{}{}", if marked { "Marked: " } else { "" }, words.join(" ")))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::corpus::{Passage, PassageIx};
    use crate::detect::{LabelSource, PairLabels};
    use crate::engine::{Judgments, Opening, Ranked, Recipe};
    use crate::question::Question;
    use crate::tui::app::Start;
    use crate::tui::config::{Config, Source};
    use crate::tui::message::Msg;
    use crate::tui::script::{Size, Step, parse};
    use crate::tui::theme::Depth;
    use crate::tui::update::update;

    fn app_with_a_list() -> App {
        let start = Start {
            opening: Opening::default(),
            lanes: vec!["bm25".parse::<Recipe>().unwrap()],
            k: 2,
            source: LabelSource::Auto,
            question: String::new(),
            perspectives: Vec::new(),
            history: None,
            config: Config::default(),
            config_from: Source::default(),
            depth: Depth::Millions,
            linear: true,
            home: None,
            presenting: false,
        };
        let mut app = App::new(&start, Size { width: 80, height: 24 });
        app.question = Question {
            text: "Should zoos be banned?".into(),
            perspectives: vec!["Zoos should be banned.".into(), "Zoos should be kept.".into()],
            supports: Some(0),
            ..Question::default()
        };
        app.typing = false;
        app.judgments = Judgments::new(&app.question, LabelSource::Auto, Default::default());
        let ranked = ["Behind glass", "Arks, not prisons"].iter().enumerate().map(|(i, title)| Ranked {
            at: PassageIx(i as u32),
            passage: Arc::new(Passage { id: i.to_string(), title: (*title).into(), ..Passage::default() }),
            score: 1.0,
        });
        app.lanes[0].ranking = Arc::new(ranked.collect::<Vec<_>>().into());
        app.lanes[0].state = LaneState::Ready;
        for at in 0..2 {
            for side in 0..2 {
                let gold = PairLabels { gold: Some(side == 0 && at == 0), ..PairLabels::default() };
                app.judgments.write(PassageIx(at), side, gold);
            }
        }
        crate::tui::update::refresh(&mut app);
        app
    }

    fn press(app: &mut App, keys: &str) {
        for step in parse(keys).unwrap() {
            if let Step::Key(key) = step {
                update(app, Msg::Key(key));
            }
        }
    }

    #[test]
    fn only_what_changed_is_said_and_sides_are_said_in_words() {
        let mut app = app_with_a_list();
        let mut linear = Linear::default();
        let first = linear.changes(&app).join("\n");
        for expected in [
            "You are here: lanes.",
            "Question: Should zoos be banned?",
            "Statement in support: Zoos should be banned.",
            "of the first 2, 1 supports; 1 supports none.",
            "MRecall is 0.",
            "Statement opposed is not in the first 2.",
            "rank 1: supports",
            "Behind glass",
        ] {
            assert!(first.contains(expected), "{expected}\n{first}");
        }
        assert_eq!(linear.changes(&app), Vec::<String>::new());
        press(&mut app, "j");
        let moved = linear.changes(&app);
        assert!(
            moved.len() == 1 && moved[0].contains("rank 2: supports none. Arks, not prisons"),
            "{moved:?}"
        );
    }

    #[test]
    fn a_passage_and_other_screens_are_said_line_by_line_without_frames() {
        let mut app = app_with_a_list();
        let mut linear = Linear::default();
        linear.changes(&app);
        press(&mut app, "?");
        let help = linear.changes(&app).join("\n");
        assert!(help.contains("You are here: list of keys.") && help.contains("\nMarks\n"), "{help}");
        assert!(!help.chars().any(|c| ('\u{2500}'..'\u{2580}').contains(&c)), "{help}");
        press(&mut app, "<Esc><Enter>");
        let passage = linear.changes(&app).join("\n");
        assert!(passage.contains("Behind glass") && passage.contains("Facts"), "{passage}");
        assert_eq!(linear.changes(&app), Vec::<String>::new());
    }

    #[test]
    fn panes_side_by_side_are_read_one_after_the_other() {
        let rows = ["┌ BM25 ─┐┏ MiniLM ┓", "│ ▲ 1   │┃ ▼ 2    ┃", "└───────┘┗━━━━━━━━┛", " below both"];
        let buffer = Buffer::with_lines(rows);
        let read = read_panes(&buffer, buffer.area);
        assert_eq!(read, ["BM25", "support 1", "MiniLM", "oppose 2", "below both"]);
    }

    #[test]
    fn sentences_are_plain_lines_without_control_sequences() {
        let mut app = app_with_a_list();
        app.question.text = "Zoos \u{1b}[31m?".into();
        let mut out = Vec::new();
        Linear::default().report(&app, &mut out).unwrap();
        let out = String::from_utf8(out).unwrap();
        assert!(!out.contains('\u{1b}') && out.ends_with("\r\n"), "{out:?}");
    }
}
