//! Looking for detectors, fetching one, switching to one, and the table of all.

use std::collections::BTreeSet;
use std::sync::Arc;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::{Block, Paragraph};

use super::{Choosing, Decided};
use crate::corpus::PassageIx;
use crate::detect::registry::NamedDetector;
use crate::engine::detectors::{DetectorEvent, DetectorOffer, Presence};
use crate::engine::{Batch, Ranking, Reply};
use crate::report::decisions::Decisions;
use crate::report::plot::{Series, curves};
use crate::report::safe;
use crate::tui::app::{App, Corpus};
use crate::tui::keymap::{Action, Context, Screen};
use crate::tui::message::Effect;
use crate::tui::page::Page;
use crate::tui::screens::lanes::{question, switches};
use crate::tui::theme::{Meaning, Theme};
use crate::tui::widgets;
use crate::tui::widgets::text::{columns_of, fit, paragraph, say, span};

/// The detectors screen.
pub struct Detectors;

impl Page for Detectors {
    fn screen(&self) -> Screen {
        Screen::DETECTORS
    }

    fn context(&self, _: &App) -> Context {
        Context::Detectors
    }

    fn opened_by(&self) -> Option<Action> {
        Some(Action::ChooseDetector)
    }

    fn open(&self, app: &mut App) -> Vec<Effect> {
        open(app)
    }

    fn act(&self, app: &mut App, action: Action) -> Vec<Effect> {
        act(app, action)
    }

    fn reply(&self, app: &mut App, reply: Reply) -> Result<Vec<Effect>, Box<Reply>> {
        match reply {
            Reply::Detectors { number, event } => {
                if number == app.choosing.number {
                    take(app, event);
                }
                Ok(Vec::new())
            }
            other => Err(Box::new(other)),
        }
    }

    fn settled(&self, app: &App) -> bool {
        app.choosing.served.is_some() && app.choosing.fetching.is_none()
    }

    fn refresh(&self, app: &mut App) {
        refresh(app);
    }

    fn plot(&self, app: &App) -> Option<String> {
        plot(app)
    }

    fn draw(&self, app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
        draw(app, theme, area, frame);
    }
}

/// Opens the screen and looks for detectors.
fn open(app: &mut App) -> Vec<Effect> {
    if app.replay.is_some() {
        app.notice = Some("a session that is played keeps the detector it was recorded with".into());
        return Vec::new();
    }
    if !matches!(app.corpus, Corpus::Open(_)) {
        app.notice = Some("the corpus is still being opened".into());
        return Vec::new();
    }
    let number = app.next_batch();
    app.choosing = Choosing { number, ..Choosing::default() };
    app.screen = Screen::DETECTORS;
    vec![Effect::Batch(number, Batch::Detectors)]
}

/// Performs an action.
fn act(app: &mut App, action: Action) -> Vec<Effect> {
    let count = app.choosing.offers().count();
    match action {
        Action::Down => app.choosing.at = (app.choosing.at + 1).min(count.saturating_sub(1)),
        Action::Up => app.choosing.at = app.choosing.at.saturating_sub(1),
        Action::Choose => return choose(app),
        // The part that was fetched is kept; the batch replies once it has stopped.
        Action::Back if app.choosing.fetching.is_some() => return vec![Effect::StopBatch(app.next_batch())],
        Action::Back => return app.leave(),
        _ => {}
    }
    Vec::new()
}

/// Uses the marked detector, or fetches it.
fn choose(app: &mut App) -> Vec<Effect> {
    if app.choosing.fetching.is_some() {
        app.notice = Some("wait for the end of the download, or stop it".into());
        return Vec::new();
    }
    let Some(offer) = app.choosing.offers().nth(app.choosing.at).cloned() else { return Vec::new() };
    if offer.presence == Presence::OnHub {
        let Some(detector) = NamedDetector::find(&offer.name) else { return Vec::new() };
        // The servers found so far stay listed.
        let number = app.next_batch();
        app.choosing.number = number;
        app.choosing.fetching = Some((offer.name, None));
        app.choosing.failed = None;
        return vec![Effect::Batch(number, Batch::Fetch(detector))];
    }
    let used = offer.is_used(&app.detector, app.llm.as_ref());
    if !used && switches::waits_for_labels(app) {
        return Vec::new();
    }
    let mut effects = app.leave();
    if used {
        app.notice = Some(format!("{} judges already", offer.name));
        return effects;
    }
    app.detector = offer.choice.clone();
    app.llm = offer.llm.clone().or(app.llm.take());
    app.notice = Some(format!("{} judges from now on", offer.name));
    // The corpus is opened again with it, and the question asked again.
    question::reopen(app);
    effects.push(Effect::UseDetector { choice: offer.choice, llm: offer.llm });
    effects
}

/// Takes an event of the batch.
fn take(app: &mut App, event: DetectorEvent) {
    let choosing = &mut app.choosing;
    match event {
        DetectorEvent::Listed(local) => {
            let used = local.iter().position(|one| one.is_used(&app.detector, app.llm.as_ref()));
            choosing.at = used.unwrap_or(0);
            choosing.local = local;
        }
        DetectorEvent::Served(served) => choosing.served = Some(served),
        DetectorEvent::Fetching(progress) => {
            if let Some((_, so_far)) = &mut choosing.fetching {
                *so_far = Some(progress);
            }
        }
        DetectorEvent::Fetched(local, failed) => {
            let name = choosing.fetching.take().map(|(name, _)| name).unwrap_or_default();
            let here = local.iter().any(|one| one.name == name && one.presence == Presence::Here);
            choosing.local = local;
            app.notice = Some(match (&failed, here) {
                (Some(_), _) => format!("{name} was not fetched"),
                (None, true) => format!("{name} is here: <Enter> uses it"),
                (None, false) => format!("{name}: stopped; what came is kept, and <Enter> goes on"),
            });
            choosing.failed = failed;
        }
    }
}

/// The columns of the table: heading and greatest width.
const COLUMNS: [(&str, usize); 6] =
    [("detector", 24), ("", 15), ("MB", 6), ("languages", 13), ("licence", 18), ("measured on our test", 44)];

fn cells(offer: &DetectorOffer) -> [String; 6] {
    [
        safe::line(&offer.name),
        offer.presence.words().to_owned(),
        offer.megabytes.map(|mb| mb.to_string()).unwrap_or_default(),
        offer.languages.to_owned(),
        offer.licence.to_owned(),
        offer.measured.clone(),
    ]
}

/// A row of the table. Without room for all columns the licence goes first, then the languages: how good a detector is stays.
fn table_row(cells: &[String; 6], width: usize) -> String {
    let whole: usize = COLUMNS.iter().map(|(_, width)| width + 1).sum::<usize>() - 1;
    let goes: &[&str] = match width {
        _ if width >= whole => &[],
        _ if width + COLUMNS[4].1 + 1 >= whole => &["licence"],
        _ => &["licence", "languages"],
    };
    let kept = cells.iter().zip(COLUMNS).filter(|(_, (heading, _))| !goes.contains(heading));
    let columns = kept.map(|(text, (_, width))| {
        let text = fit(text, width);
        let pad = " ".repeat(width.saturating_sub(columns_of(&text)));
        text + &pad
    });
    fit(columns.collect::<Vec<_>>().join(" ").trim_end(), width)
}

fn draw(app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
    let block = Block::bordered().border_style(theme.style(Meaning::Focus)).title(span(
        " What judges whether a passage supports a statement ",
        Meaning::Title,
        theme,
    ));
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let width = usize::from(inner.width);
    let mut below = lines_below(app, width, theme);
    below.truncate(usize::from(inner.height).saturating_sub(3));
    let headings = COLUMNS.map(|(heading, _)| heading.to_owned());
    let heading = format!("   {}", table_row(&headings, width.saturating_sub(3)));
    let mut lines = vec![Line::from(span(heading, Meaning::Muted, theme))];
    let rows = usize::from(inner.height).saturating_sub(1 + below.len()).max(1);
    let choosing = &app.choosing;
    let first = (choosing.at + 1).saturating_sub(rows);
    for (i, offer) in choosing.offers().enumerate().skip(first).take(rows) {
        let used = if offer.is_used(&app.detector, app.llm.as_ref()) { "*" } else { " " };
        let text = format!(" {used} {}", table_row(&cells(offer), width.saturating_sub(3)));
        let pad = " ".repeat(width.saturating_sub(columns_of(&text)));
        let meaning = if i == choosing.at { Meaning::Selected } else { Meaning::Text };
        lines.push(Line::from(span(text + &pad, meaning, theme)));
    }
    lines.extend(below);
    let used = (lines.len() as u16).min(inner.height);
    frame.render_widget(Paragraph::new(lines), inner);
    draw_risk(app, theme, Rect { y: inner.y + used, height: inner.height - used, ..inner }, frame);
}

/// The decisions of the detector on the passages of the lanes that have labels, measured against these; `None` without two sides or labels.
fn measure(app: &App) -> Option<Decisions> {
    app.question.sides()?;
    let places: BTreeSet<PassageIx> =
        app.lanes.iter().flat_map(|lane| lane.ranking.iter().map(|ranked| ranked.at)).collect();
    let known = places.into_iter().filter_map(|at| {
        let decision = app.judgments.by_model_alone(at)?;
        let label = |i: usize| app.judgments.pair(at, i).and_then(|pair| pair.human.or(pair.gold));
        Some((decision, [label(0)?, label(1)?]))
    });
    let known: Vec<_> = known.collect();
    Decisions::of(&known).filter(|decisions| !decisions.curve().is_empty())
}

/// Measures the decisions again if a list or a judgment has changed.
fn refresh(app: &mut App) {
    let lists: Vec<Ranking> = app.lanes.iter().map(|lane| Arc::clone(&lane.ranking)).collect();
    let judgments = (app.judgments.revision(), app.judgments.source);
    let same = |(before, judged): &(Vec<Ranking>, _)| {
        *judged == judgments
            && before.len() == lists.len()
            && before.iter().zip(&lists).all(|(one, other)| Arc::ptr_eq(one, other))
    };
    if !app.choosing.decided.inputs.as_ref().is_some_and(same) {
        app.choosing.decided = Decided { decisions: measure(app), inputs: Some((lists, judgments)) };
    }
}

/// The fewest rows of the curve, with its title.
const CURVE_ROWS: u16 = 9;

/// Draws risk over coverage on the labelled passages of the present question, where there is room.
fn draw_risk(app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
    if area.height < CURVE_ROWS {
        return;
    }
    let Some(decisions) = &app.choosing.decided.decisions else {
        let key = app.key(Context::Lanes, Action::NextLabelSource);
        let text = match app.question.sides() {
            Some(_) => format!(
                "\nNo labelled passage of this question was judged, so there is no curve of risk over coverage. {key} on the lanes \
                 lets the model's verdicts count; then labelled passages are judged too."
            ),
            None => "\nRisk over coverage is shown for a question with two sides.".into(),
        };
        return say(&text, Meaning::Muted, theme, area, frame);
    };
    let points = decisions.curve().to_vec();
    let title = format!(
        " risk (share of the shown sides that are wrong) over coverage (share shown), this question: {} labelled passages for one side ",
        decisions.one_sided()
    );
    let title = fit(&title, usize::from(area.width));
    frame.render_widget(span(title, Meaning::Title, theme), Rect { y: area.y + 1, height: 1, ..area });
    let below = Rect { y: area.y + 2, height: area.height - 2, ..area };
    let labels = ["0", ".25", ".5", ".75", "1"].map(str::to_owned).to_vec();
    widgets::draw(app, theme, &[points], ((0.0, 1.0), labels), below, frame);
}

/// The curve of risk over coverage as a picture.
fn plot(app: &App) -> Option<String> {
    let decisions = app.choosing.decided.decisions.as_ref()?;
    let (name, points) = (app.detector.to_string(), decisions.curve().to_vec());
    let series = [Series { name, points, ..Series::default() }];
    Some(curves(
        &series,
        "coverage: share of the passages whose side is shown",
        "risk: share of these that are wrong",
    ))
}

/// The lines below the table: the marked detector's origin, and what is in progress.
fn lines_below(app: &App, width: usize, theme: Theme) -> Vec<Line<'static>> {
    let choosing = &app.choosing;
    let mut rows = vec![Line::default()];
    let mut say = |text: &str, meaning| rows.extend(paragraph(text, " ", width, meaning, theme));
    if let Some((name, progress)) = &choosing.fetching {
        let done = match progress {
            Some(progress) if progress.total > 0 => {
                format!("{} of {} MB", progress.done / 1_000, progress.total.div_ceil(1_000))
            }
            Some(progress) => format!("{} MB", progress.done / 1_000),
            None => "asking the hub".to_owned(),
        };
        let key = app.key(Context::Detectors, Action::Back);
        say(&format!("Fetching {name}: {done}. {key} stops it; what came is kept."), Meaning::Text);
    } else if let Some(reason) = &choosing.failed {
        say(&safe::line(reason), Meaning::Warn);
    }
    match choosing.offers().nth(choosing.at).map(|offer| (offer, offer.presence)) {
        Some((offer, Presence::OnHub)) => say(&format!("From {}.", offer.origin), Meaning::Muted),
        Some((offer, Presence::Served)) => {
            let used = offer.is_used(&app.detector, app.llm.as_ref());
            let sources = app.judgments.sources().words().filter(|_| used);
            let sources = sources.unwrap_or_else(|| {
                "probabilities from tokens where the server gives them, else from words".into()
            });
            let (origin, sent) = (safe::line(&offer.origin), "passages and statements will be sent there");
            say(&format!("{origin}: {sent}; each verdict is a request; {sources}."), Meaning::Muted);
        }
        Some((offer, _)) if !offer.origin.is_empty() => say(&offer.origin, Meaning::Muted),
        _ => {}
    }
    if choosing.served.is_none() {
        say("Looking for model servers on this machine …", Meaning::Muted);
    }
    say(
        "* judges now. With another detector the corpus is opened anew and the question asked again.",
        Meaning::Muted,
    );
    rows
}
