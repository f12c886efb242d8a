//! The open passage: its layout, its keys, and its requests for evidence. The text comes first, the facts about it second. Both are laid
//! out once for the current width. Its record, its index entry, the lane's recipe and the configuration take the place of the text.

use std::sync::Arc;

use super::{PassageText, View, editor};
use crate::corpus::{Passage, PassageIx};
use crate::detect::{By, DetectError, foreign};
use crate::encode::Met;
use crate::engine::{Explanation, Reply, Study};
use crate::report::marks::{Mark, share};
use crate::report::{explanations, safe};
use crate::retrieve::terms;
use crate::tui::app::{App, Corpus, LaneState};
use crate::tui::keymap::{Action, Context, Screen};
use crate::tui::layout::{beside, panes, reading_text};
use crate::tui::message::Effect;
use crate::tui::page::Page;
use crate::tui::screens::lanes::{draw as lane, switches, update as lanes};
use crate::tui::theme::{Meaning, Theme};
use crate::tui::undo::Label;
use crate::tui::widgets::scrolled;
use crate::tui::widgets::syntax::{Language, coloured, settings, source};
use crate::tui::widgets::text::{
    Highlight, Row, columns_of, fit, highlight_row, line, passage_piece, piece, rows, weighted, with_labels,
    wrap,
};
use crossterm::event::MouseEvent;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

/// One passage in full.
pub struct Open;

impl Page for Open {
    fn screen(&self) -> Screen {
        Screen::PASSAGE
    }

    fn context(&self, _: &App) -> Context {
        Context::Read
    }

    fn opened_by(&self) -> Option<Action> {
        Some(Action::Read)
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
            Reply::Evidence { study, at, perspective, sentence } => {
                if study > app.reading.since {
                    app.reading.evidence.insert((at, perspective), sentence);
                }
                Ok(Vec::new())
            }
            Reply::Explained { study, recipe, at, explanations } => {
                // A late explanation of a passage that is no longer open must not replace that of the open one.
                let open = app.open_passage().is_some_and(|(open, _)| open == at);
                if study > app.reading.since && open {
                    app.reading.why = Some((at, recipe, explanations));
                }
                Ok(Vec::new())
            }
            Reply::IndexEntry { study, at, recipe, entry } => {
                if study > app.reading.since {
                    app.reading.awaited.take_if(|awaited| (awaited.0, &awaited.1) == (at, &recipe));
                    app.reading.index = Some((at, recipe, entry));
                }
                Ok(Vec::new())
            }
            other => Err(Box::new(other)),
        }
    }

    fn changed(&self, app: &mut App) -> Vec<Effect> {
        evidence(app)
    }

    fn settled(&self, app: &App) -> bool {
        let Some(((at, _), lane)) = app.open_passage().zip(app.lanes.get(app.lane)) else { return true };
        let indexed = app.reading.view != View::Index || app.reading.index_of(at, &lane.recipe).is_some();
        (indexed && app.reading.explains(at, &lane.recipe)) || lane.state != LaneState::Ready
    }

    fn refresh(&self, app: &mut App) {
        refresh(app);
    }

    fn draw(&self, app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
        let shown = &app.reading.text;
        let lines = |rows: &[Row], at: Rect, frame: &mut Frame<'_>| {
            let lines: Vec<Line<'_>> = rows.iter().map(|row| line(row, theme)).collect();
            frame.render_widget(Paragraph::new(lines), at);
        };
        lines(&shown.heading, reading_text(app, area, 0), frame);
        let rest = reading_text(app, area, shown.heading.len() as u16);
        let from = app.reading.scroll.min(shown.body.len());
        let to = shown.body.len().min(from + usize::from(rest.height));
        lines(&shown.body[from..to], rest, frame);
        lane::beside(app, theme, beside(app, area), frame);
    }
}

/// Performs an action.
pub fn act(app: &mut App, action: Action) -> Vec<Effect> {
    let page = app.reading.rows.max(1);
    match action {
        Action::Down => app.reading.scroll += 1,
        Action::Up => app.reading.scroll = app.reading.scroll.saturating_sub(1),
        Action::PageDown => app.reading.scroll += page,
        Action::PageUp => app.reading.scroll = app.reading.scroll.saturating_sub(page),
        Action::First => app.reading.scroll = 0,
        Action::Last => app.reading.scroll = usize::MAX / 2,
        Action::NextPassage => return go(app, Action::Down),
        Action::PreviousPassage => return go(app, Action::Up),
        Action::NextLane => return go(app, Action::NextLane),
        Action::NextLabelSource => {
            let mut effects = lanes::next_source(app).unwrap_or_default();
            effects.extend(evidence(app));
            return effects;
        }
        Action::WhatIf => return editor::open(app),
        Action::RawRecord => return view(app, View::Record),
        Action::IndexEntry => return view(app, View::Index),
        Action::ShowRecipe => return view(app, View::Recipe),
        Action::ShowSettings => return view(app, View::Settings),
        Action::Back if app.reading.view != View::Text => {
            let shown = app.reading.view;
            return view(app, shown);
        }
        Action::Back => app.screen = Screen::LANES,
        Action::NextLabelPage => switches::next_label_page(app),
        action => {
            let Some(label) = Label::of(action) else { return Vec::new() };
            return switches::label(app, label);
        }
    }
    Vec::new()
}

/// Shows something in the place of the text, or the text again.
fn view(app: &mut App, view: View) -> Vec<Effect> {
    let reading = &mut app.reading;
    reading.view = if reading.view == view { View::Text } else { view };
    reading.scroll = 0;
    evidence(app)
}

/// Opens another passage: the action moves the cursor on the lanes.
fn go(app: &mut App, action: Action) -> Vec<Effect> {
    lanes::act_on_lanes(app, action);
    if app.selected().is_none() {
        app.screen = Screen::LANES;
        return Vec::new();
    }
    show(app)
}

/// Opens the passage under the cursor.
pub fn open(app: &mut App) -> Vec<Effect> {
    if app.selected().is_none() {
        return Vec::new();
    }
    app.screen = Screen::PASSAGE;
    app.typing = false;
    show(app)
}

/// Shows the passage under the cursor from the top.
fn show(app: &mut App) -> Vec<Effect> {
    app.reading.scroll = 0;
    evidence(app)
}

/// Requests the evidence for every statement that the open passage supports, once each, and the explanation of its rank.
pub fn evidence(app: &mut App) -> Vec<Effect> {
    let Some((at, passage)) = app.open_passage().filter(|_| app.screen == Screen::PASSAGE) else {
        return Vec::new();
    };
    let Some(lane) = app.lanes.get(app.lane) else { return Vec::new() };
    let list = (!app.reading.explains(at, &lane.recipe) && lane.state == LaneState::Ready)
        .then(|| (lane.ranking.clone(), lane.recipe.clone(), app.question.text.clone()));
    let recipe = lane.recipe.clone();
    let shown = app.reading.view == View::Index && app.reading.index_of(at, &recipe).is_none();
    let index = Some((at, recipe)).filter(|wanted| shown && app.reading.awaited.as_ref() != Some(wanted));
    let supported = app.supported(at);
    let requested = app.reading.requested.get(&at).is_some_and(|requested| *requested == supported);
    if (supported.is_empty() || requested) && list.is_none() && index.is_none() {
        return Vec::new();
    }
    // A study for the explanation alone would cancel the search for evidence.
    let sought = supported.iter().filter(|i| !app.reading.evidence.contains_key(&(at, **i)));
    let question = &app.question;
    let other = |i: usize| question.both().map(|both| both[1 - i].to_owned());
    let statements = sought.map(|i| (*i, question.perspectives[*i].clone(), other(*i))).collect();
    // The study replaces the one before. Evidence that the earlier study has not found yet is requested again with its passage.
    let reading = &mut app.reading;
    reading.requested.retain(|other, all| all.iter().all(|i| reading.evidence.contains_key(&(*other, *i))));
    reading.requested.insert(at, supported);
    app.studies += 1;
    // The study before may have been replaced before it replied.
    let index = index.or_else(|| app.reading.awaited.take().filter(|(of, _)| *of == at));
    app.reading.awaited.clone_from(&index);
    let index = index.map(|(_, recipe)| recipe);
    vec![Effect::Study(Box::new(Study { number: app.studies, at, passage, statements, list, index }))]
}

/// Columns of the side mark before a verdict.
const MARK: usize = 4;
/// A statement that would get fewer columns is not shown.
const STATEMENT: usize = 8;

/// Lays out the heading and the text of the open passage if anything that they depend on has changed.
pub fn refresh(app: &mut App) {
    let Some((at, passage)) = app.open_passage() else {
        app.reading.text = PassageText::default();
        return;
    };
    let body_area = panes(app).body;
    let width = usize::from(reading_text(app, body_area, 0).width);
    let inputs = super::Inputs {
        at,
        lane: app.lane,
        width,
        glyphs: app.glyphs,
        judgments: (app.judgments.revision(), app.judgments.source),
        question: app.question.clone(),
        evidence: app.reading.evidence.len(),
        explained: app.lanes.get(app.lane).is_some_and(|lane| app.reading.explains(at, &lane.recipe)),
        view: app.reading.view,
        indexed: app.lanes.get(app.lane).is_some_and(|lane| app.reading.index_of(at, &lane.recipe).is_some()),
        settings: (app.reading.view == View::Settings).then(|| settings(app).to_string()),
        lists: app.lanes.iter().map(|lane| (lane.recipe.clone(), Arc::clone(&lane.ranking))).collect(),
    };
    if !app.reading.text.inputs.as_ref().is_some_and(|before| before.same(&inputs)) {
        let (heading, body) = match app.reading.view {
            View::Text => (heading(app, at, &passage, width), body(app, at, &passage, width)),
            view => source(app, at, &passage, view, width),
        };
        app.reading.text = PassageText { heading, body, inputs: Some(inputs) };
    }
    let text = &app.reading.text;
    let rows = usize::from(reading_text(app, body_area, text.heading.len() as u16).height);
    app.reading.scroll = app.reading.scroll.min(text.body.len().saturating_sub(rows));
    app.reading.rows = rows;
}

/// The text with its highlights, then the facts: where it comes from, its ranks, and why it has this one.
fn body(app: &App, at: PassageIx, passage: &Passage, width: usize) -> Vec<Row> {
    let mut lines = Vec::new();
    if let Some(language) = foreign(&passage.text) {
        let text = format!("This seems to be {language}; the builtin models were tested on English only.");
        lines.extend(rows(&text, "", width, Meaning::Warn));
        lines.push(Row::new());
    }
    match Language::of_passage(passage) {
        // Code keeps its lines; nothing is marked in it.
        Some(language) => lines.extend(coloured(&passage.text, language, width, app.glyphs)),
        None => {
            let (text, marks) = highlights(app, at, passage, &safe::line(&passage.text));
            let wrapped = wrap(&text, width, usize::MAX);
            lines.extend(wrapped.into_iter().map(|row| highlight_row(&text, row, &marks)));
        }
    }
    lines.push(Row::new());
    lines.extend(facts(app, at, passage, width));
    let by_model = |i| app.judgments.pair(at, i).is_some_and(|known| matches!(known.model, Some(Ok(_))));
    if (0..app.judgments.perspectives).any(by_model) {
        let text = decision_text(app, at);
        lines.extend(rows(&text, "", width, Meaning::Muted));
        lines.push(Row::new());
    }
    lines.extend(explanation(app, at, width));
    lines
}

/// Where the passage comes from, its ranks, and what its marked sentences decide.
fn facts(app: &App, at: PassageIx, passage: &Passage, width: usize) -> Vec<Row> {
    let mut lines = vec![vec![piece("Facts", Meaning::Title)]];
    let about = passage.metadata.iter().map(|(key, value)| match value.as_str() {
        Some(text) => format!("{key}: {text}"),
        None => format!("{key}: {value}"),
    });
    let about: Vec<String> = std::iter::once(passage.id.clone()).chain(about).collect();
    lines.extend(rows(&about.join(" · "), "", width, Meaning::Muted));
    let lanes = app.titles().into_iter().zip(&app.lanes).filter(|(_, lane)| !lane.ranking.is_empty());
    let ranks = lanes.map(|(title, lane)| match app.rank_in(lane, at) {
        Some(rank) => format!("{title} {rank}"),
        None => format!("{title} –"),
    });
    let ranks = format!("rank: {}", ranks.collect::<Vec<_>>().join(" · "));
    lines.extend(rows(&ranks, "", width, Meaning::Muted));
    for (i, fall) in (0..app.judgments.perspectives).filter_map(|i| Some((i, fall(app, at, i)?))) {
        let mark = Mark::of(i, &app.question).text(app.glyphs);
        let text = format!("Without the sentence marked {mark}, the probability of support falls by {fall}.");
        lines.extend(rows(&text, "", width, Meaning::Muted));
    }
    lines.push(Row::new());
    lines
}

/// How far a statement's support falls without its evidence, if that was measured.
fn fall(app: &App, at: PassageIx, perspective: usize) -> Option<String> {
    let sentence = app.reading.evidence.get(&(at, perspective))?.as_ref()?;
    app.supported(at).contains(&perspective).then_some(())?;
    Some(share(f64::from(sentence.fall?)))
}

/// The basis of the model's verdicts: one decision on two opposite statements, or else one probability per statement.
fn decision_text(app: &App, at: PassageIx) -> String {
    let rule = app.judgments.rule();
    let Some(decision) = app.judgments.by_model_alone(at) else {
        return format!("The model's verdict is a yes from {} on.", share(f64::from(rule.threshold)));
    };
    explanations::decision(&decision, rule, &app.question, app.glyphs)
}

/// The explanation of the passage's rank in the lane under the cursor.
fn explanation(app: &App, at: PassageIx, width: usize) -> Vec<Row> {
    let Some(lane) = app.lanes.get(app.lane) else { return Vec::new() };
    let rank = lane.ranking.rank_of(at).map_or_else(|| "–".into(), |rank| rank.to_string());
    let title = app.titles().swap_remove(app.lane);
    let head = format!("Why rank {rank} in {title}");
    let mut lines = vec![vec![piece(fit(&head, width), Meaning::Title)]];
    match app.reading.reasons(at, &lane.recipe) {
        None => lines.push(vec![piece("…", Meaning::Muted)]),
        Some(Err(reason)) => lines.extend(rows(reason, "", width, Meaning::Warn)),
        Some(Ok(reasons)) => {
            let text = explanations::lines(reasons, &lane.ranking, &app.question, app.glyphs);
            lines.extend(text.iter().flat_map(|text| rows(text, "", width, Meaning::Muted)));
            for reason in reasons {
                if let Explanation::Scored { met, .. } | Explanation::Tokens { met, .. } = reason
                    && !met.is_empty()
                {
                    lines.extend(heat(met, width));
                }
                let Explanation::Sparse(found) = reason else { continue };
                // Terms that met stand in the colour of the side that the passage supports.
                let met = match app.supported(at).first().map(|i| Mark::of(*i, &app.question)) {
                    Some(mark) => (mark.text(app.glyphs), Meaning::Side(mark)),
                    None => ("=".to_owned(), Meaning::Match),
                };
                lines.extend(weighted("the query's terms: ", &found.query, &met, width));
                lines.extend(weighted("the passage's terms: ", &found.passage, &met, width));
            }
            let trace = &lane.ranking.trace;
            let text = trace.expansion().map(|expansion| safe::line(&expansion.describe()));
            lines.extend(text.map(|text| vec![piece(fit(&text, width), Meaning::Muted)]));
            lines.extend(trace.notes.iter().flat_map(|note| rows(note, "", width, Meaning::Warn)));
        }
    }
    lines
}

/// Which word of the query met which of the passage, and how closely; those at or above the mean stand out.
fn heat(met: &[Met], width: usize) -> Vec<Row> {
    let close = Met::close(met);
    let term = |met: &Met| (format!("{}:{}", met.query, met.passage), met.similarity, close.contains(&met));
    let terms: Vec<_> = met.iter().filter(|met| !met.query.is_empty()).map(term).collect();
    let mark = (String::new(), Meaning::Match);
    weighted("the query's words and what they met: ", &terms, &mark, width)
}

/// Title, or the beginning of the text, and the verdict on each statement.
fn heading(app: &App, at: PassageIx, passage: &Passage, width: usize) -> Vec<Row> {
    let title = match passage.title.is_empty() {
        true => format!("Passage {} (without a title)", passage.id),
        false => passage.title.clone(),
    };
    let mut lines = vec![vec![passage_piece(fit(&safe::line(&title), width), Meaning::Title)]];
    for (i, statement) in app.question.perspectives.iter().enumerate() {
        let mark = Mark::of(i, &app.question);
        // A verdict is never cut: without its last words it could say the opposite.
        let verdict = safe::line(&verdict(app, at, i));
        let wrapped = wrap(&verdict, width.saturating_sub(MARK), usize::MAX);
        let last = wrapped.len().saturating_sub(1);
        for (row, range) in wrapped.into_iter().enumerate() {
            let glyph = if row == 0 { mark.text(app.glyphs) } else { String::new() };
            let text = &verdict[range];
            let mut spans = vec![
                piece(format!("{glyph:<MARK$}"), Meaning::Side(mark)),
                piece(text.to_owned(), Meaning::Title),
            ];
            let room = width.saturating_sub(MARK + columns_of(text) + 2);
            if row == last && room >= STATEMENT {
                let statement = fit(&safe::line(statement), room);
                spans.extend([piece("  ", Meaning::Text), piece(statement, Meaning::Text)]);
            }
            lines.push(spans);
        }
    }
    lines.push(Row::new());
    lines
}

/// `supports .94 (model)`, and the other labels if they differ.
fn verdict(app: &App, at: PassageIx, perspective: usize) -> String {
    let Some(known) = app.judgments.pair(at, perspective) else { return "not judged yet".into() };
    match app.judgments.verdict(at, perspective) {
        None => match &known.model {
            Some(Err(DetectError::Empty(what))) => format!("no verdict: the {what} is empty"),
            Some(Err(error)) => format!("no verdict: {error}"),
            _ if known.tied => "unjudged: as many annotators say yes as no".into(),
            Some(Ok(_)) if app.judgments.owner(at) == By::Model => {
                "no verdict: the other statement has none".into()
            }
            None if app.judgments.owner(at) == By::Model => "not judged yet".into(),
            _ => "no label".into(),
        },
        Some(verdict) => {
            let says = match verdict.supports {
                Some(true) => "supports",
                Some(false) => "does not",
                None => "unclear",
            };
            // The probability of what is said of this statement.
            let sure = |p: Option<f32>, supports| match (p.map(f64::from), supports) {
                (Some(p), Some(true)) => format!(" {}", share(p)),
                (Some(p), Some(false)) => format!(" {}", share(1.0 - p)),
                _ => String::new(),
            };
            let p = sure(verdict.p, verdict.supports);
            let gold = match &app.corpus {
                Corpus::Open(opened) => safe::line(&opened.labels.0),
                _ => "gold".into(),
            };
            let by = match verdict.by {
                By::Model => "model",
                By::Gold => &gold,
                By::Human => "human",
            };
            let mut other = String::new();
            for (name, label) in [("human", known.human), (gold.as_str(), known.gold)] {
                match label.filter(|label| Some(*label) != verdict.supports) {
                    Some(true) => other += &format!(", {name}: yes"),
                    Some(false) => other += &format!(", {name}: no"),
                    None => {}
                }
            }
            if let Some(model) = app.judgments.by_model(at, perspective)
                && model.supports != verdict.supports
            {
                let says = match model.supports {
                    Some(true) => ": yes",
                    Some(false) => ": no",
                    None => " unclear",
                };
                other += &format!(", model{says}{}", sure(model.p, model.supports));
            }
            format!("{says}{p} ({by}{other})")
        }
    }
}

/// The safe text with side marks before its evidence, and the ranges of the evidence and of the question's terms.
fn highlights(app: &App, at: PassageIx, passage: &Passage, text: &str) -> (String, Vec<Highlight>) {
    let mut marks = Vec::new();
    for perspective in app.supported(at) {
        let evidence = app.reading.evidence.get(&(at, perspective)).and_then(Clone::clone);
        if let Some(sentence) = evidence.and_then(|found| passage.text.get(found.at)).map(safe::line)
            && let Some(start) = text.find(sentence.trim_end())
        {
            let mark = Mark::of(perspective, &app.question);
            let score = fall(app, at, perspective).unwrap_or_default();
            let label = format!("{}{score} ", mark.text(app.glyphs));
            marks.push((start..start + sentence.trim_end().len(), Meaning::Evidence(mark), label));
        }
    }
    let (text, mut marks) = with_labels(text, marks);
    let mut asked: Vec<String> = terms(&app.question.text).into_iter().map(|term| term.text).collect();
    let lane = app.lanes.get(app.lane);
    if let Some(Ok(reasons)) = lane.and_then(|lane| app.reading.reasons(at, &lane.recipe)) {
        let close = reasons.iter().flat_map(|reason| match reason {
            Explanation::Scored { met, .. } | Explanation::Tokens { met, .. } => Met::close(met),
            _ => Vec::new(),
        });
        asked.extend(close.flat_map(|word| terms(&word.passage)).map(|term| term.text));
    }
    let found = terms(&text).into_iter().filter(|term| asked.contains(&term.text));
    marks.extend(found.map(|term| (term.at, Meaning::Match)));
    (text, marks)
}
