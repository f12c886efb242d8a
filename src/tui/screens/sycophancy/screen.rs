//! Asks the lanes in three wordings, and draws their lists and figures.

use ratatui::Frame;
use ratatui::layout::{Alignment, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph};

use super::SycophancyScreen;
use crate::engine::sycophancy::UNLIKE;
use crate::engine::{Batch, Reply, Sycophancy};
use crate::measure::bias::SideShares;
use crate::report::marks::{Mark, share, signed};
use crate::report::safe;
use crate::tui::app::App;
use crate::tui::keymap::{Action, Context, Screen};
use crate::tui::message::Effect;
use crate::tui::page::Page;
use crate::tui::screens::lanes::{question, update as lanes};
use crate::tui::theme::{Meaning, Theme};
use crate::tui::widgets::text::{columns_of, fit, paragraph, passage_span, span};

/// The sycophancy screen.
pub struct AsEitherSide;

impl Page for AsEitherSide {
    fn screen(&self) -> Screen {
        Screen::SYCOPHANCY
    }

    fn context(&self, _: &App) -> Context {
        Context::Sycophancy
    }

    fn opened_by(&self) -> Option<Action> {
        Some(Action::Sycophancy)
    }

    fn open(&self, app: &mut App) -> Vec<Effect> {
        open(app)
    }

    fn act(&self, app: &mut App, action: Action) -> Vec<Effect> {
        act(app, action)
    }

    fn reply(&self, app: &mut App, reply: Reply) -> Result<Vec<Effect>, Box<Reply>> {
        match reply {
            Reply::Sycophancy { number, lane, sycophancy } => {
                if number == app.sycophancy_screen.number
                    && let Some(place) = app.sycophancy_screen.lanes.get_mut(lane)
                {
                    *place = Some(sycophancy);
                }
                Ok(Vec::new())
            }
            other => Err(Box::new(other)),
        }
    }

    fn embedded(&self, app: &mut App) -> Vec<Effect> {
        ask(app)
    }

    fn settled(&self, app: &App) -> bool {
        app.sycophancy_screen.lanes.iter().all(Option::is_some)
    }

    fn draw(&self, app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
        draw(app, theme, area, frame);
    }
}

/// Opens the screen and asks all lanes.
pub fn open(app: &mut App) -> Vec<Effect> {
    question::read_line(app);
    if app.question.supports.is_none() || app.question.perspectives.len() != 2 {
        app.notice =
            Some("only a question of two sides can be asked as either; i edits its statements".into());
        return Vec::new();
    }
    app.screen = Screen::SYCOPHANCY;
    ask(app)
}

/// Performs an action.
pub fn act(app: &mut App, action: Action) -> Vec<Effect> {
    lanes::act_with_batch(app, action, ask)
}

/// Asks all lanes in the three wordings.
pub fn ask(app: &mut App) -> Vec<Effect> {
    let number = app.next_batch();
    app.sycophancy_screen = SycophancyScreen { number, lanes: vec![None; app.lanes.len()] };
    vec![Effect::Batch(number, Batch::Sycophancy(app.query()))]
}

/// Columns of a lane's name in the table.
const NAME: usize = 24;

/// Columns of the shift, and of the space after it.
const SHIFT: usize = 12;

/// Draws the screen.
fn draw(app: &App, theme: Theme, body: Rect, frame: &mut Frame<'_>) {
    // The table of all lanes is below, as tall as it needs to be.
    let rows = (app.lanes.len() as u16 + 2).min(body.height / 2);
    let lists = Rect { height: body.height - rows, ..body };
    let table = Rect { y: lists.bottom(), height: rows, ..body };
    draw_lists(app, theme, lists, frame);
    draw_table(app, theme, table, frame);
}

/// The mark and the text of a wording: 0 is neutral, 1 supports, 2 opposes.
fn wording(app: &App, i: usize) -> (Mark, String) {
    let first = app.question.supports.unwrap_or(0);
    let statement = |i: usize| app.question.perspectives.get(i).cloned().unwrap_or_default();
    match i {
        0 => (Mark::None, app.question.text.clone()),
        1 => (Mark::of(first, &app.question), statement(first)),
        _ => (Mark::of(1 - first.min(1), &app.question), statement(1 - first.min(1))),
    }
}

/// Draws the three lists of the lane under the cursor.
fn draw_lists(app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
    let answer = app.sycophancy_screen.lanes.get(app.lane).and_then(Option::as_ref);
    for i in 0..3u16 {
        let (left, right) = (area.width * i / 3, area.width * (i + 1) / 3);
        let pane = Rect { x: area.x + left, width: right - left, ..area };
        let (mark, text) = wording(app, usize::from(i));
        let glyph = if i == 0 { "asked".to_owned() } else { format!("as {}", mark.text(app.glyphs)) };
        let room = usize::from(pane.width).saturating_sub(columns_of(&glyph) + 6);
        let title = format!(" {glyph} {} ", fit(&safe::line(&text), room));
        let mut block = Block::bordered().border_style(theme.style(Meaning::Muted)).title(span(
            title,
            if i == 0 { Meaning::Title } else { Meaning::Side(mark) },
            theme,
        ));
        if i == 0 {
            let name = app.short_title(app.lane, usize::from(pane.width).saturating_sub(4));
            block = block.title_bottom(span(format!(" {name} "), Meaning::Title, theme));
        } else if let Some(Ok(sycophancy)) = answer {
            let new = format!(" {} of {} new ", sycophancy.count_new(usize::from(i), app.k), app.k);
            block =
                block.title_bottom(Line::from(span(new, Meaning::Muted, theme)).alignment(Alignment::Right));
        }
        let inner = block.inner(pane);
        frame.render_widget(block, pane);
        let width = usize::from(inner.width);
        let lines = match answer {
            None => vec![Line::from(span(" …", Meaning::Muted, theme))],
            Some(Err(reason)) => paragraph(reason, " ", width, Meaning::Warn, theme),
            Some(Ok(sycophancy)) => {
                let mut lines = passage_lines(app, theme, sycophancy, usize::from(i), width);
                if let Some(text) = &sycophancy.expanded()[usize::from(i)] {
                    let text = format!("expanded: {text}");
                    lines.extend(paragraph(&text, " ", width, Meaning::Muted, theme));
                }
                if i == 0 && sycophancy.expanded_differently() {
                    lines.extend(paragraph(UNLIKE, " ", width, Meaning::Warn, theme));
                }
                lines.extend(
                    sycophancy.note.iter().flat_map(|note| paragraph(note, " ", width, Meaning::Warn, theme)),
                );
                lines
            }
        };
        frame.render_widget(Paragraph::new(lines), inner);
    }
}

/// The first k of one wording, each with its move against the neutral list.
fn passage_lines(
    app: &App,
    theme: Theme,
    sycophancy: &Sycophancy,
    wording: usize,
    width: usize,
) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    for (i, ranked) in sycophancy.lists[wording].iter().take(app.k).enumerate() {
        let mark = Mark::of_passage(&sycophancy.judgments, ranked.at, &app.question);
        let moved = match sycophancy.lists[0].rank_of(ranked.at) {
            _ if wording == 0 => String::new(),
            Some(was) if was > i + 1 => format!("↑{}", was - i - 1),
            Some(was) if was < i + 1 => format!("↓{}", i + 1 - was),
            Some(_) => "=".into(),
            None => "new".into(),
        };
        let name = if ranked.passage.title.is_empty() { &ranked.passage.id } else { &ranked.passage.title };
        let title = fit(&safe::line(name), width.saturating_sub(7 + columns_of(&moved) + 1));
        let pad = " ".repeat(width.saturating_sub(7 + columns_of(&title) + columns_of(&moved)));
        lines.push(Line::from(vec![
            span(format!("{:>3} ", i + 1), Meaning::Muted, theme),
            span(format!("{:<3}", mark.text(app.glyphs)), Meaning::Side(mark), theme),
            passage_span(title, Meaning::Text, theme),
            Span::raw(pad),
            span(moved, Meaning::Muted, theme),
        ]));
    }
    // Passages of the neutral list that this wording does not retrieve.
    let own = &sycophancy.lists[wording][..sycophancy.lists[wording].len().min(app.k)];
    let gone = sycophancy.lists[0].iter().take(app.k).filter(|was| own.iter().all(|own| own.at != was.at));
    for ranked in gone {
        let mark = Mark::of_passage(&sycophancy.judgments, ranked.at, &app.question);
        let name = if ranked.passage.title.is_empty() { &ranked.passage.id } else { &ranked.passage.title };
        lines.push(Line::from(vec![
            span("  – ", Meaning::Muted, theme),
            span(format!("{:<3}", mark.text(app.glyphs)), Meaning::Side(mark), theme),
            passage_span(fit(&safe::line(name), width.saturating_sub(8)), Meaning::Muted, theme),
        ]));
    }
    lines
}

/// Draws `p .60 n .20 lean +.40 Δ .67` for each wording of every lane, and the shift.
fn draw_table(app: &App, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
    let title = match area.width {
        ..74 => " lean: asked, as either side; shift ",
        _ => " lean when asked neutrally, as either side, and the shift between them ",
    };
    let block =
        Block::bordered().border_style(theme.style(Meaning::Muted)).title(span(title, Meaning::Title, theme));
    let answer = |i: usize| app.sycophancy_screen.lanes.get(i)?.as_ref()?.as_ref().ok();
    let unlike = (0..app.lanes.len())
        .filter(|i| answer(*i).is_some_and(|sycophancy| sycophancy.expanded_differently()));
    let unlike: Vec<String> = unlike.map(|i| app.short_title(i, NAME - 2)).collect();
    let block = if unlike.is_empty() {
        block
    } else {
        let names = format!(" not expanded alike: {} ", unlike.join(", "));
        block.title_bottom(span(names, Meaning::Warn, theme))
    };
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let width = usize::from(inner.width);
    // A lane's name is cut before a figure is.
    let (name_width, form) = match width {
        _ if width >= NAME + 3 * 34 + SHIFT => (NAME, Form::All),
        _ if width >= NAME + 3 * 9 + SHIFT => (NAME, Form::Lean),
        _ => (width.saturating_sub(3 * 6 + SHIFT - 2).clamp(4, NAME), Form::Close),
    };
    // The lane under the cursor is always visible.
    let fits = usize::from(inner.height).max(1);
    let first = (app.lane + 1).saturating_sub(fits);
    let lines = (first..app.lanes.len().min(first + fits)).map(|i| {
        let meaning = if i == app.lane { Meaning::Selected } else { Meaning::Text };
        let name = app.short_title(i, name_width - 2);
        let pad = " ".repeat(name_width.saturating_sub(columns_of(&name) + 1));
        let mut spans = vec![Span::raw(" "), span(name, meaning, theme), Span::raw(pad)];
        match app.sycophancy_screen.lanes.get(i).and_then(Option::as_ref) {
            None => spans.push(span("…", Meaning::Muted, theme)),
            Some(Err(_)) => spans.push(span("no list", Meaning::Warn, theme)),
            Some(Ok(sycophancy)) => {
                for (wording, shares) in sycophancy.shares.iter().enumerate() {
                    let mark = [Mark::None, Mark::Support, Mark::Oppose][wording];
                    spans.push(span(mark.glyph(app.glyphs).to_string(), Meaning::Side(mark), theme));
                    spans.push(Span::raw(figures_text(*shares, form)));
                }
                spans.push(span(
                    format!("shift {}", signed(sycophancy.shift()).trim()),
                    Meaning::Title,
                    theme,
                ));
            }
        }
        Line::from(spans)
    });
    frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()), inner);
}

/// The form of a wording's figures.
#[derive(Clone, Copy)]
enum Form {
    /// Shares, lean and Δ.
    All,
    /// Only the lean, with a gap after its mark.
    Lean,
    /// Only the lean, as narrow as possible.
    Close,
}

/// A wording's figures as text.
fn figures_text(shares: SideShares, form: Form) -> String {
    let lean = signed(shares.lean()).trim().to_owned();
    match form {
        Form::Close => return format!("{lean:<5}"),
        Form::Lean => return format!(" {lean:<7}"),
        Form::All => {}
    }
    let delta = shares.delta().map_or_else(|| "–".into(), |delta| signed(delta).trim().to_owned());
    format!(" {:<32}", format!("p {} n {} lean {lean} Δ {delta}", share(shares.p), share(shares.n)))
}
