//! From the list to the answer: which sides the reader's answer gives, which of them the list has, and where each of its sentences is supported.

use crossterm::event::MouseEvent;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::{Block, Paragraph};

use super::{AnswerSides, SidesShown};
use crate::engine::answer::{Coverage, Sentence};
use crate::engine::{AnswerEvent, Batch, Reply};
use crate::measure::SupportSet;
use crate::report::marks::{Mark, share};
use crate::report::safe;
use crate::tui::app::{App, Corpus};
use crate::tui::keymap::{Action, Context, Screen};
use crate::tui::message::Effect;
use crate::tui::page::Page;
use crate::tui::screens::lanes::update as lanes;
use crate::tui::theme::{Meaning, Theme};
use crate::tui::widgets::scrolled;
use crate::tui::widgets::text::{columns_of, fit, paragraph, passage_span, say, span, wrap};

/// The screen of the answer's sides.
pub struct Sides;

impl Page for Sides {
    fn screen(&self) -> Screen {
        Screen::SIDES
    }

    fn context(&self, _: &App) -> Context {
        Context::AnswerSides
    }

    fn open(&self, app: &mut App) -> Vec<Effect> {
        open(app)
    }

    fn act(&self, app: &mut App, action: Action) -> Vec<Effect> {
        act(app, action)
    }

    fn point(&self, _: &mut App, mouse: MouseEvent) -> Option<Action> {
        scrolled(mouse)
    }

    fn reply(&self, app: &mut App, reply: Reply) -> Result<Vec<Effect>, Box<Reply>> {
        match reply {
            Reply::Answered { number, event } => {
                take(&mut app.answer_sides, number, event);
                Ok(Vec::new())
            }
            other => Err(Box::new(other)),
        }
    }

    fn refresh(&self, app: &mut App) {
        app.answer_sides.shown = shown(app);
    }

    fn settled(&self, app: &App) -> bool {
        !app.answer_sides.going
    }

    fn draw(&self, app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
        draw(app, theme, area, frame);
    }
}

/// The reader's name, and whether its answers were recorded.
fn reader(app: &App) -> Option<(&str, bool)> {
    match &app.corpus {
        Corpus::Open(opened) => opened.reader.as_ref().map(|(name, recorded)| (name.as_str(), *recorded)),
        _ => None,
    }
}

/// Opens the screen and has the reader answer.
pub fn open(app: &mut App) -> Vec<Effect> {
    let why = if reader(app).is_none() {
        "nothing answers here: give a model with --llm or --reader, or recorded answers with --answers".into()
    } else if app.question.perspectives.is_empty() {
        let key = app.key(Context::Lanes, Action::EditStatements);
        format!("an answer gives sides of statements, and there is none; {key} in the lanes writes some")
    } else if app.contexts(app.lane).is_empty() {
        "this lane has no passage to answer from".into()
    } else {
        app.screen = Screen::SIDES;
        return ask(app);
    };
    app.notice = Some(why);
    Vec::new()
}

/// The passages that the lane under the cursor gives the reader, with the changes made on the reader screen.
fn ask(app: &mut App) -> Vec<Effect> {
    let (number, passages) = (app.next_batch(), app.contexts(app.lane));
    let read = app.remaining(app.lane);
    app.answer_sides =
        AnswerSides { number, going: true, lane: app.lane, k: app.k, read, ..AnswerSides::default() };
    let list = list_sides(app);
    vec![Effect::Batch(number, Batch::Answer(app.question.clone(), list, passages))]
}

/// The statements that the passages read support, by the labels that count.
fn list_sides(app: &App) -> SupportSet {
    let sets = app.answer_sides.read.iter().filter_map(|at| app.judgments.support(*at));
    sets.fold(SupportSet::EMPTY, SupportSet::union)
}

fn act(app: &mut App, action: Action) -> Vec<Effect> {
    let state = &mut app.answer_sides;
    let last = state.assessed.as_ref().map_or(0, |(own, _)| own.sentences.len()).saturating_sub(1);
    match action {
        Action::Down => state.at = (state.at + 1).min(last),
        Action::Up => state.at = state.at.saturating_sub(1),
        Action::HaveRead if state.going => return give_up(app),
        Action::HaveRead => return ask(app),
        Action::NextLane | Action::PreviousLane | Action::Deeper | Action::Shallower => {
            let mut effects = give_up(app);
            effects.extend(lanes::act_on_lanes(app, action));
            return effects;
        }
        Action::NextLabelSource => return lanes::act_on_lanes(app, action),
        Action::Back => {
            let effects = give_up(app);
            app.screen = Screen::READER;
            return effects;
        }
        _ => {}
    }
    Vec::new()
}

/// Stops reading and judging. What has arrived stays.
fn give_up(app: &mut App) -> Vec<Effect> {
    if !std::mem::take(&mut app.answer_sides.going) {
        return Vec::new();
    }
    app.answer_sides.number = app.next_batch();
    vec![Effect::StopBatch(app.answer_sides.number)]
}

fn take(state: &mut AnswerSides, number: u64, event: AnswerEvent) {
    if number != state.number || !state.going {
        return;
    }
    match event {
        AnswerEvent::Read(answer) => state.answer = Some(answer),
        AnswerEvent::Judged(Ok(judged)) => {
            let (assessed, error) = *judged;
            state.going = false;
            state.answer = Some(assessed.answer.clone());
            state.assessed = Some((assessed, error));
        }
        AnswerEvent::Judged(Err(reason)) => (state.going, state.failed) = (false, Some(reason)),
    }
}

/// What is drawn. An answer from another list than the present one of the lane is not shown as this one's.
fn shown(app: &App) -> SidesShown {
    let state = &app.answer_sides;
    let now = app.remaining(app.lane);
    let is_present = (state.lane, state.k) == (app.lane, app.k) && state.read == now;
    let m = app.question.perspectives.len();
    let count = |side: usize| {
        let has = |at: &&crate::corpus::PassageIx| {
            app.judgments.support(**at).is_some_and(|set| set.contains(side))
        };
        now.iter().filter(has).count()
    };
    let coverage = state.assessed.as_ref().filter(|_| is_present).map(|(assessed, _)| Coverage {
        // Labels that arrived or changed since then count.
        list: list_sides(app),
        ..assessed.coverage
    });
    SidesShown { is_present, coverage, counts: (0..m).map(count).collect() }
}

/// What became of a side between the list and the answer. A side that only unsupported sentences give has not come from the list.
pub fn fate(coverage: Coverage, side: usize, sentences: &[Sentence]) -> &'static str {
    let is_supported = |one: &Sentence| {
        one.cited.as_ref().is_some_and(|cited| cited.supported)
            || one.found.as_ref().is_some_and(|found| !found.is_empty())
    };
    // Where the passages of a sentence were not looked for, nothing is said against it.
    let is_open = |one: &Sentence| one.cited.is_none() && one.found.is_none();
    let mut giving = sentences.iter().filter(|one| one.sides.contains(side)).peekable();
    let unsupported = giving.peek().is_some() && !giving.any(|one| is_supported(one) || is_open(one));
    match (coverage.list.contains(side), coverage.answer.contains(side)) {
        (true, true) if unsupported => "kept, unsupported",
        (true, true) => "kept",
        (true, false) => "dropped",
        (false, true) => "added",
        (false, false) => "in neither",
    }
}

/// Where a sentence is supported: `[2] supports it; also in 4`. The flag says whether its citations hold.
pub fn support(sentence: &Sentence) -> (String, bool) {
    let list = |places: &mut dyn Iterator<Item = usize>| {
        places.map(|place| (place + 1).to_string()).collect::<Vec<_>>().join(", ")
    };
    let cites = &sentence.claim.cites;
    let (cited, holds) = match &sentence.cited {
        None => ("cites nothing".to_owned(), false),
        Some(cited) if !cited.supported => {
            let word = if cites.len() == 1 { "does not support it" } else { "together do not support it" };
            (format!("[{}] {word}", list(&mut cites.iter().copied())), false)
        }
        Some(cited) => {
            let part = |precise: bool, word: &str| {
                let own = cites.iter().zip(&cited.precise).filter(|(_, own)| **own == precise);
                let own = list(&mut own.map(|(place, _)| *place));
                (!own.is_empty()).then(|| format!("[{own}] {word}"))
            };
            let parts = [part(true, "supports it"), part(false, "adds nothing")];
            (parts.into_iter().flatten().collect::<Vec<_>>().join(", "), true)
        }
    };
    let more = sentence.found.as_ref().map(|found| {
        let others = list(&mut found.iter().copied().filter(|place| !cites.contains(place)));
        match (others.is_empty(), cites.is_empty(), found.is_empty()) {
            (false, false, _) if holds => format!("; also in {others}"),
            (false, false, _) => {
                format!("; {others} alone {}", if others.contains(',') { "do" } else { "does" })
            }
            (false, true, _) => format!("; supported by {others}"),
            (true, _, true) if !holds => "; no passage read supports it alone".into(),
            _ => String::new(),
        }
    });
    (cited + more.as_deref().unwrap_or_default(), holds)
}

fn bordered(title: &str, area: Rect, theme: Theme, meaning: Meaning, frame: &mut Frame<'_>) -> Rect {
    let room = usize::from(area.width).saturating_sub(2);
    let block = Block::bordered().border_style(theme.style(meaning)).title(span(
        fit(title, room),
        Meaning::Title,
        theme,
    ));
    let inner = block.inner(area);
    frame.render_widget(block, area);
    inner
}

fn draw(app: &App, theme: Theme, body: Rect, frame: &mut Frame<'_>) {
    let (left, right) = if body.width >= 90 {
        let width = body.width * 9 / 20;
        (Rect { width, ..body }, Rect { x: body.x + width, width: body.width - width, ..body })
    } else {
        let height = body.height / 2;
        (Rect { height, ..body }, Rect { y: body.y + height, height: body.height - height, ..body })
    };
    draw_sides(app, theme, left, frame);
    draw_answer(app, theme, right, frame);
}

/// Draws what becomes of each side, what that makes, and the passages with the sentences that cite them.
fn draw_sides(app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
    let inner = bordered(" which sides of the list reach the answer ", area, theme, Meaning::Muted, frame);
    let (width, state) = (usize::from(inner.width), &app.answer_sides);
    let SidesShown { coverage, counts, .. } = &state.shown;
    let read = app.answering.lists.get(app.lane).map(|list| list.rows.as_slice()).unwrap_or_default();
    let read: Vec<&super::Row> = read.iter().filter(|row| !row.dropped).collect();
    let mut lines = Vec::new();
    for (side, count) in counts.iter().enumerate() {
        let mark = Mark::of(side, &app.question);
        let sentences =
            state.assessed.as_ref().map_or(&[][..], |(assessed, _)| assessed.sentences.as_slice());
        let fate = coverage.map_or("…", |coverage| fate(coverage, side, sentences));
        let count = format!("in {count} of {} passages", read.len());
        let head = format!(" {:<2} {fate:<17} {count}  ", mark.text(app.glyphs));
        let room = width.saturating_sub(columns_of(&head));
        let statement = app.question.perspectives.get(side).map_or("", String::as_str);
        lines.push(Line::from(vec![
            span(head, Meaning::Side(mark), theme),
            span(fit(&safe::line(statement), room), Meaning::Text, theme),
        ]));
    }
    let own = state.assessed.as_ref().filter(|_| coverage.is_some());
    if let (Some((assessed, error)), Some(coverage)) = (own, coverage) {
        let m = coverage.m;
        let counted = format!(
            "the list gives {} of {m} sides, the answer {}",
            coverage.list.len(),
            coverage.answer.len()
        );
        let disputed = if assessed.aware { "shows" } else { "does not show" };
        let value = |value: Option<f64>| value.map_or_else(|| "–".into(), share);
        let citations = assessed.citations;
        for text in [
            format!("{counted}: {} dropped, {} added", coverage.dropped(), coverage.added()),
            format!("by rule, it {disputed} that the matter is disputed"),
            format!("citation recall {}: sentences that their passages support", value(citations.recall)),
            format!("citation precision {}: citations that are needed", value(citations.precision)),
        ] {
            lines.push(Line::from(span(fit(&format!(" {text}"), width), Meaning::Title, theme)));
        }
        lines.extend(paragraph(error, " ", width, Meaning::Warn, theme));
    }
    for (place, row) in read.iter().enumerate() {
        let mark = app.mark(row.at);
        let citing = own.map_or_else(Vec::new, |(assessed, _)| {
            let cites = |(_, one): &(usize, &Sentence)| one.claim.cites.contains(&place);
            let numbers = assessed.sentences.iter().enumerate().filter(cites);
            numbers.map(|(i, _)| (i + 1).to_string()).collect()
        });
        let tail = if citing.is_empty() { String::new() } else { format!(" cited by {}", citing.join(", ")) };
        let head = format!("{:>3} ", place + 1);
        let title = app.lanes.get(app.lane).and_then(|lane| lane.ranking.get(row.rank - 1));
        let room = width.saturating_sub(columns_of(&head) + 3 + columns_of(&tail));
        lines.push(Line::from(vec![
            span(head, Meaning::Muted, theme),
            span(format!("{:<2} ", mark.text(app.glyphs)), Meaning::Side(mark), theme),
            passage_span(
                fit(&safe::line(title.map_or("", |one| one.passage.heading())), room),
                Meaning::Text,
                theme,
            ),
            span(tail, Meaning::Muted, theme),
        ]));
    }
    lines.truncate(usize::from(inner.height));
    frame.render_widget(Paragraph::new(lines), inner);
}

/// Draws the answer, sentence by sentence.
fn draw_answer(app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
    let state = &app.answer_sides;
    let name = reader(app).map_or_else(String::new, |(name, recorded)| {
        let by = if recorded { "recorded in" } else { "by" };
        format!(" {by} {}", safe::line(name))
    });
    let title = format!(" answer{name} from the first {} of {} ", app.k, app.short_title(app.lane, 24));
    let inner = bordered(&title, area, theme, Meaning::Focus, frame);
    let (width, height) = (usize::from(inner.width), usize::from(inner.height));
    let key = app.key(Context::AnswerSides, Action::HaveRead);
    if !state.shown.is_present {
        return say(&format!("{key} has this list answered from"), Meaning::Muted, theme, inner, frame);
    }
    if let Some(reason) = &state.failed {
        return say(&safe::line(reason), Meaning::Warn, theme, inner, frame);
    }
    let Some((assessed, _)) = &state.assessed else {
        let text = match (&state.answer, state.going) {
            (_, false) => format!("given up; {key} has this list answered from"),
            (None, true) => format!("answering … {key} gives it up"),
            (Some(answer), true) => format!("judging … {key} gives it up: {}", safe::line(&answer.text)),
        };
        return say(&text, Meaning::Muted, theme, inner, frame);
    };
    if assessed.sentences.is_empty() {
        let what = if assessed.answer.is_refusal() { "it refuses" } else { "it has no sentence" };
        let text = format!("{what}, so it gives no side: {}", safe::line(&assessed.answer.text));
        return say(&text, Meaning::Warn, theme, inner, frame);
    }
    let blocks: Vec<Vec<Line<'static>>> = assessed
        .sentences
        .iter()
        .enumerate()
        .map(|(i, own)| sentence_lines(app, theme, i, own, width))
        .collect();
    // The marked sentence is in view, with as many before it as fit.
    let at = state.at.min(blocks.len() - 1);
    let mut first = at;
    while first > 0 && blocks[first - 1..=at].iter().map(Vec::len).sum::<usize>() <= height {
        first -= 1;
    }
    let lines: Vec<Line<'static>> = blocks.into_iter().skip(first).flatten().take(height).collect();
    frame.render_widget(Paragraph::new(lines), inner);
}

/// ` 1 ▲ Bears pace in cages.` and below it where it is supported.
fn sentence_lines(
    app: &App,
    theme: Theme,
    i: usize,
    sentence: &Sentence,
    width: usize,
) -> Vec<Line<'static>> {
    let mark = Mark::of_set(Some(sentence.sides), &app.question);
    let meaning = if i == app.answer_sides.at { Meaning::Selected } else { Meaning::Text };
    let head = format!("{:>3} ", i + 1);
    let indent = columns_of(&head) + 3;
    let text = safe::line(&sentence.claim.text);
    let mut lines = Vec::new();
    for (row, part) in
        wrap(&text, width.saturating_sub(indent + 1).max(1), usize::MAX).into_iter().enumerate()
    {
        let lead = match row {
            0 => vec![
                span(head.clone(), Meaning::Muted, theme),
                span(format!("{:<2} ", mark.text(app.glyphs)), Meaning::Side(mark), theme),
            ],
            _ => vec![span(" ".repeat(indent), Meaning::Muted, theme)],
        };
        lines.push(Line::from([lead, vec![passage_span(text[part].to_owned(), meaning, theme)]].concat()));
    }
    let (where_from, holds) = support(sentence);
    let meaning = if holds { Meaning::Muted } else { Meaning::Warn };
    let room = width.saturating_sub(indent + 1).max(1);
    for part in wrap(&where_from, room, 3) {
        lines.push(Line::from(span(format!("{}{}", " ".repeat(indent), &where_from[part]), meaning, theme)));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::answer::{Cited, Claim};

    fn sentence(cites: &[usize], cited: Option<Cited>, found: Option<&[usize]>) -> Sentence {
        let claim = Claim { text: "Bears pace.".into(), cites: cites.to_vec() };
        Sentence { claim, sides: SupportSet::EMPTY, cited, found: found.map(<[usize]>::to_vec) }
    }

    #[test]
    fn a_passage_that_supports_what_its_citations_do_not_is_named() {
        let cited = Some(Cited { supported: false, precise: vec![false] });
        let text = |found: &[usize]| support(&sentence(&[1], cited.clone(), Some(found))).0;
        assert_eq!(text(&[0]), "[2] does not support it; 1 alone does");
        assert_eq!(text(&[0, 3]), "[2] does not support it; 1, 4 alone do");
        assert_eq!(
            text(&[0, 1]),
            "[2] does not support it; 1 alone does",
            "the cited one is not named again"
        );
    }

    #[test]
    fn a_sentence_names_the_citations_that_hold_and_the_passages_that_support_it_uncited() {
        let own = |supported, precise: &[bool]| Some(Cited { supported, precise: precise.to_vec() });
        let text = |cites: &[usize], cited, found| support(&sentence(cites, cited, found));
        assert_eq!(
            text(&[1], own(true, &[true]), Some(&[1, 3])),
            ("[2] supports it; also in 4".into(), true)
        );
        let two = text(&[1, 0], own(true, &[true, false]), Some(&[1]));
        assert_eq!(two, ("[2] supports it, [1] adds nothing".into(), true));
        let wrong = text(&[0, 2], own(false, &[false, false]), Some(&[]));
        let said = "[1, 3] together do not support it; no passage read supports it alone";
        assert_eq!(wrong, (said.into(), false));
        assert_eq!(text(&[], None, Some(&[0])), ("cites nothing; supported by 1".into(), false));
        assert_eq!(text(&[], None, None), ("cites nothing".into(), false));
    }

    /// The list has sides 0 and 1, the answer 1 and 2.
    #[test]
    fn a_side_is_kept_dropped_added_or_in_neither() {
        let set = |sides: &[usize]| SupportSet::of(sides.iter().copied()).unwrap();
        let coverage = Coverage { list: set(&[0, 1]), answer: set(&[1, 2]), m: 4 };
        let fates: Vec<&str> = (0..4).map(|side| fate(coverage, side, &[])).collect();
        assert_eq!(fates, ["dropped", "kept", "added", "in neither"]);
        // The only sentence on side 1 is not in the list, by its citation or by any passage; a second one is.
        let side_1 = |one: Sentence| Sentence { sides: set(&[1]), ..one };
        let made_up =
            side_1(sentence(&[0], Some(Cited { supported: false, precise: vec![false] }), Some(&[])));
        let held = side_1(sentence(&[], None, Some(&[2])));
        assert_eq!(fate(coverage, 1, std::slice::from_ref(&made_up)), "kept, unsupported");
        assert_eq!(fate(coverage, 1, &[made_up, held]), "kept");
        assert_eq!(fate(coverage, 1, &[side_1(sentence(&[], None, None))]), "kept");
    }
}
