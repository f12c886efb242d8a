//! Text: wrapping it into lines, spans with a meaning, and the last pass over a frame.

use std::ops::Range;

use ratatui::Frame;
use ratatui::buffer::{Buffer, CellDiffOption};
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use crate::report::marks::{Glyphs, Mark};
use crate::report::safe;
use crate::tui::theme::{Meaning, Theme};

/// Draws plain text, wrapped.
pub fn say(text: &str, meaning: Meaning, theme: Theme, area: Rect, frame: &mut Frame<'_>) {
    let area = Rect { x: area.x + u16::from(area.width > 2), width: area.width.saturating_sub(2), ..area };
    let mut lines = Vec::new();
    for paragraph in text.lines() {
        let paragraph = safe::line(paragraph);
        let rows = wrap(&paragraph, usize::from(area.width), usize::from(area.height));
        if rows.is_empty() {
            lines.push(Line::default());
        }
        lines.extend(rows.into_iter().map(|row| Line::from(paragraph[row].to_owned())));
    }
    frame.render_widget(Paragraph::new(lines).style(theme.style(meaning)), area);
}

/// A piece of text with a meaning.
pub fn span(text: impl Into<String>, meaning: Meaning, theme: Theme) -> Span<'static> {
    Span::styled(text.into(), theme.style(meaning))
}

/// A piece of a passage; its characters are drawn unchanged even with ASCII glyphs.
pub fn passage_span(text: impl Into<String>, meaning: Meaning, theme: Theme) -> Span<'static> {
    Span::styled(text.into(), theme.style(meaning).add_modifier(OWN))
}

/// A piece of a row before a theme gives it a style.
#[derive(Clone, Debug, PartialEq)]
pub struct Piece {
    /// The characters, safe to draw.
    pub text: String,
    /// Its meanings; each one is laid over the earlier ones.
    pub meanings: Vec<Meaning>,
    /// Whether it is part of a passage, which is drawn unchanged even with ASCII glyphs.
    pub own: bool,
}

/// A row of text that is laid out once and drawn in any theme.
pub type Row = Vec<Piece>;

/// A piece of text with a meaning.
pub fn piece(text: impl Into<String>, meaning: Meaning) -> Piece {
    Piece { text: text.into(), meanings: vec![meaning], own: false }
}

/// A piece of a passage; its characters are drawn unchanged even with ASCII glyphs.
pub fn passage_piece(text: impl Into<String>, meaning: Meaning) -> Piece {
    Piece { text: text.into(), meanings: vec![meaning], own: true }
}

/// The row in a theme's styles.
pub fn line(row: &Row, theme: Theme) -> Line<'_> {
    let span = |piece: &'_ Piece| {
        let layers = piece.meanings.iter().map(|meaning| theme.style(*meaning));
        let style = layers.fold(Style::default(), Style::patch);
        (style, piece.own)
    };
    let spans = row.iter().map(|piece| {
        let (style, own) = span(piece);
        Span::styled(piece.text.as_str(), if own { style.add_modifier(OWN) } else { style })
    });
    Line::from(spans.collect::<Vec<_>>())
}

/// Wraps text behind an indent, as rows.
pub fn rows(text: &str, indent: &'static str, width: usize, meaning: Meaning) -> Vec<Row> {
    let text = safe::line(text);
    let rows = wrap(&text, width.saturating_sub(indent.len()).max(1), usize::MAX);
    rows.into_iter().map(|row| vec![piece(indent, Meaning::Text), piece(&text[row], meaning)]).collect()
}

/// Wraps text behind an indent, as styled lines.
pub fn paragraph(
    text: &str,
    indent: &'static str,
    width: usize,
    meaning: Meaning,
    theme: Theme,
) -> Vec<Line<'static>> {
    let text = safe::line(text);
    let rows = wrap(&text, width.saturating_sub(indent.len()).max(1), usize::MAX);
    let line = |row| Line::from(vec![Span::raw(indent), span(&text[row], meaning, theme)]);
    rows.into_iter().map(line).collect()
}

/// The number of columns of a text as a terminal draws it, cluster by cluster. The width of the whole string would be smaller if letters of
/// two clusters can join (Arabic lam and alef).
pub fn columns_of(text: &str) -> usize {
    text.graphemes(true).map(UnicodeWidthStr::width).sum()
}

/// The lines of `text`, at most `most`, as byte ranges. Lines break at spaces, and inside words that are wider than a line.
pub fn wrap(text: &str, width: usize, most: usize) -> Vec<Range<usize>> {
    let width = width.max(1);
    let mut lines = Vec::new();
    let (mut start, mut end, mut columns) = (0, 0, 0);
    for (at, word) in words(text) {
        let wide = columns_of(word);
        let gap = usize::from(columns > 0);
        if columns + gap + wide <= width {
            if columns == 0 {
                start = at;
            }
            (end, columns) = (at + word.len(), columns + gap + wide);
            continue;
        }
        if columns > 0 {
            lines.push(start..end);
        }
        (start, end, columns) = (at, at, 0);
        for (i, cluster) in word.grapheme_indices(true) {
            let wide = cluster.width();
            if columns + wide > width && columns > 0 {
                lines.push(start..end);
                (start, columns) = (at + i, 0);
            }
            (end, columns) = (at + i + cluster.len(), columns + wide);
            if lines.len() >= most {
                break;
            }
        }
        if lines.len() >= most {
            break;
        }
    }
    if columns > 0 {
        lines.push(start..end);
    }
    lines.truncate(most);
    lines
}

fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.split(' ')
        .scan(0, |at, word| {
            let start = *at;
            *at += word.len() + 1;
            Some((start, word))
        })
        .filter(|(_, word)| !word.is_empty())
}

/// The beginning of `text` that fits `width` columns, ending in `…` if anything was cut.
pub fn fit(text: &str, width: usize) -> String {
    if columns_of(text) <= width {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut columns = 0;
    for cluster in text.graphemes(true) {
        let wide = cluster.width();
        if columns + wide + 1 > width {
            break;
        }
        out.push_str(cluster);
        columns += wide;
    }
    if width > 0 {
        out.push('…');
    }
    out
}

/// Marks the cells of a passage's characters for [`finish`], which does not replace them with ASCII. No theme uses blinking.
pub const OWN: Modifier = Modifier::RAPID_BLINK;

/// Sets the ground colours of every cell, and replaces glyphs if only ASCII can be shown.
pub fn finish(theme: Theme, glyphs: Glyphs, buffer: &mut Buffer) {
    let ground = theme.ground();
    plain_clusters(buffer);
    for cell in &mut buffer.content {
        if let Some((text, ground)) = ground {
            cell.fg = if cell.fg == Color::Reset { text } else { cell.fg };
            cell.bg = if cell.bg == Color::Reset { ground } else { cell.bg };
        }
        let own = cell.modifier.contains(OWN);
        cell.modifier.remove(OWN);
        if glyphs == Glyphs::Ascii
            && let Some(glyph) = only_char(cell.symbol())
            && let Some(plain) = ascii_of_inserted(glyph).or_else(|| ascii_of_glyph(glyph).filter(|_| !own))
        {
            cell.set_char(plain);
        }
    }
}

/// Replaces clusters about whose width terminals disagree, so that none leaves half a character behind when it is drawn over. A flag becomes
/// the letters of its country; an emoji of several parts becomes its first part.
fn plain_clusters(buffer: &mut Buffer) {
    let wide = usize::from(buffer.area.width).max(1);
    for row in buffer.content.chunks_mut(wide) {
        for at in 0..row.len() {
            let symbol = row[at].symbol();
            let mut chars = symbol.chars();
            let (Some(first), Some(second)) = (chars.next(), chars.next()) else { continue };
            if let (Some(one), Some(other)) = (flag_letter(first), flag_letter(second)) {
                row[at].set_char(one);
                let style = row[at].style();
                if let Some(next) = row.get_mut(at + 1) {
                    next.set_char(other).set_style(style);
                }
                continue;
            }
            let joined = |c: char| {
                matches!(c, '\u{200d}' | '\u{fe0e}' | '\u{fe0f}' | '\u{20e3}' | '\u{1f3fb}'..='\u{1f3ff}')
            };
            if symbol.chars().any(joined) {
                // What is left of a cluster of two columns may take one; the other is a blank, which the buffer holds already.
                row[at].set_char(first);
            }
        }
    }
}

/// The letter of a regional indicator: two of them are a flag.
fn flag_letter(c: char) -> Option<char> {
    let letter = u32::from(c).checked_sub(0x1f1e6).filter(|i| *i < 26)?;
    char::from_u32(u32::from('A') + letter)
}

/// The character of a cell that has exactly one.
fn only_char(symbol: &str) -> Option<char> {
    let mut chars = symbol.chars();
    chars.next().filter(|_| chars.next().is_none())
}

/// The ASCII for characters that the explorer inserts into a passage: an ellipsis, and pictures of control characters.
fn ascii_of_inserted(glyph: char) -> Option<char> {
    match glyph {
        '…' => Some('~'),
        '\u{2400}'..='\u{2421}' | '\u{fffd}' => Some('?'),
        _ => None,
    }
}

/// The ASCII for a glyph of the explorer. The frame of the focused lane keeps a different line, because there may be no colour.
fn ascii_of_glyph(glyph: char) -> Option<char> {
    Some(match glyph {
        '─' | '–' | '−' => '-',
        '│' | '┤' | '├' => '|',
        '┌' | '┐' | '└' | '┘' | '┬' | '┴' | '┼' => '+',
        '━' => '=',
        '┃' | '┏' | '┓' | '┗' | '┛' => '#',
        '█' | '▉' | '▊' | '▋' => '@',
        '▍' | '▎' => '|',
        '▒' => ':',
        '▲' => 'Y',
        '▼' => 'N',
        '◆' | '●' | '■' | '★' | '□' => '#',
        '◇' => '?',
        '○' => 'o',
        '◐' => '*',
        '↑' => '^',
        '↓' => 'v',
        '←' => '<',
        '→' | '▸' => '>',
        '▏' | '▌' => '|',
        '✓' => 'y',
        '✗' => 'n',
        '·' => '.',
        '×' => 'x',
        '±' => '~',
        '≠' => '#',
        '“' | '”' => '"',
        'α' => 'a',
        'κ' => 'k',
        'λ' => 'l',
        'Δ' => 'D',
        '•' => '*',
        '\u{2800}' => ' ',
        '\u{2801}'..='\u{28ff}' => '*',
        _ => return None,
    })
}

/// A range of a text, and what it means.
pub type Highlight = (Range<usize>, Meaning);

/// Returns the text with a side's mark before every piece of evidence, and the ranges moved accordingly.
pub fn with_marks(text: &str, ranges: Vec<Highlight>, glyphs: Glyphs) -> (String, Vec<Highlight>) {
    let labelled = ranges.into_iter().map(|(range, meaning)| {
        let label = match meaning {
            Meaning::Evidence(mark) if mark != Mark::None => format!("{} ", mark.text(glyphs)),
            _ => String::new(),
        };
        (range, meaning, label)
    });
    with_labels(text, labelled.collect())
}

/// Returns the text with a label before every range, because without colours they look alike, and the ranges moved accordingly.
pub fn with_labels(text: &str, ranges: Vec<(Range<usize>, Meaning, String)>) -> (String, Vec<Highlight>) {
    let mut inserts: Vec<(usize, &str)> =
        ranges.iter().map(|(range, _, label)| (range.start, label.as_str())).collect();
    inserts.sort_by_key(|(at, _)| *at);
    let (mut whole, mut from) = (String::new(), 0);
    for (at, label) in &inserts {
        whole.push_str(&text[from..*at]);
        whole.push_str(label);
        from = *at;
    }
    whole.push_str(&text[from..]);
    let now = |at: usize| {
        let before = inserts.iter().filter(|(place, _)| *place < at);
        at + before.map(|(_, label)| label.len()).sum::<usize>()
    };
    let moved = ranges.iter().map(|(range, meaning, _)| (now(range.start)..now(range.end), *meaning));
    (whole, moved.collect())
}

/// A row of the text, split at the ends of the highlights.
pub fn highlight_row(text: &str, row: Range<usize>, marks: &[Highlight]) -> Row {
    let mut cuts = vec![row.start, row.end];
    for (range, _) in marks {
        cuts.extend([range.start, range.end].into_iter().filter(|cut| row.contains(cut)));
    }
    cuts.sort_unstable();
    cuts.dedup();
    let pieces = cuts.windows(2).map(|cut| {
        let covering = marks.iter().filter(|(range, _)| range.start <= cut[0] && cut[1] <= range.end);
        let meanings = std::iter::once(Meaning::Text).chain(covering.map(|(_, meaning)| *meaning)).collect();
        Piece { text: text[cut[0]..cut[1]].to_owned(), meanings, own: true }
    });
    pieces.collect()
}

/// Leaves a plot's area to a picture, if pictures are `shown`: its cells are not drawn, so that no frame writes over the picture. Returns
/// whether it did.
pub fn left_to_a_picture(shown: bool, area: Rect, frame: &mut Frame<'_>) -> bool {
    let left = shown && area.width >= 20 && area.height >= 6;
    if left {
        for at in area.intersection(frame.area()).positions() {
            frame.buffer_mut()[at].set_symbol(" ").set_diff_option(CellDiffOption::Skip);
        }
    }
    left
}

/// The most terms that are shown of one text.
const TERMS: usize = 40;

/// Terms with their weights after a label, in rows of at most `width` columns. Those that met another text's have this mark and meaning.
pub fn weighted(
    label: &str,
    terms: &[(String, f32, bool)],
    (mark, meaning): &(String, Meaning),
    width: usize,
) -> Vec<Row> {
    let (mut lines, mut row) = (Vec::new(), vec![piece(label, Meaning::Muted)]);
    let mut used = columns_of(label);
    let rest = terms.len().saturating_sub(TERMS);
    let more = (rest > 0).then(|| (format!("and {rest} more"), Meaning::Muted));
    let shown = terms.iter().take(TERMS).map(|(term, weight, met)| {
        let (mark, meaning) = if *met { (mark.as_str(), *meaning) } else { ("", Meaning::Muted) };
        (format!("{mark}{} {weight:.2}", safe::line(term)), meaning)
    });
    for (text, meaning) in shown.chain(more) {
        let text = fit(&text, width);
        if used + columns_of(&text) > width {
            lines.push(std::mem::take(&mut row));
            used = 0;
        }
        used += columns_of(&text) + 2;
        row.extend([piece(text, meaning), piece("  ", Meaning::Text)]);
    }
    lines.push(row);
    lines
}

/// The bytes of the opening words that all texts share and go on after; they differ only later.
pub fn shared_opening(texts: &[String]) -> usize {
    let Some(first) = texts.first() else { return 0 };
    let shared = |end: &usize| texts.iter().all(|text| text.len() > *end && text.starts_with(&first[..*end]));
    first.match_indices(' ').map(|(at, _)| at + 1).take_while(shared).last().unwrap_or(0)
}

/// A text in one line; if it does not fit, without its first `opening` bytes.
pub fn fit_past(text: &str, opening: usize, width: usize) -> String {
    let whole = safe::line(text);
    if opening == 0 || columns_of(&whole) <= width {
        return fit(&whole, width);
    }
    fit(&format!("… {}", safe::line(&text[opening..])), width)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str, width: usize) -> Vec<&str> {
        wrap(text, width, usize::MAX).into_iter().map(|range| &text[range]).collect()
    }

    #[test]
    fn statements_that_do_not_fit_leave_out_the_words_with_which_all_begin() {
        let all = ["Towns should build walls.", "Towns should move inland."].map(String::from);
        let opening = shared_opening(&all);
        assert_eq!(opening, "Towns should ".len());
        assert_eq!(fit_past(&all[0], opening, 14), "… build walls.");
        assert_eq!(fit_past(&all[0], opening, 25), all[0], "it fits");
        assert_eq!(shared_opening(&["Ban it".into(), "Ban it now".into()]), "Ban ".len());
        assert_eq!(shared_opening(&["Yes.".into(), "No.".into()]), 0);
    }

    #[test]
    fn lines_break_at_spaces_and_inside_words_that_are_too_wide() {
        assert_eq!(lines("the bears paced", 9), ["the bears", "paced"]);
        assert_eq!(lines("unbreakable", 4), ["unbr", "eaka", "ble"]);
        assert_eq!(lines("", 4), Vec::<&str>::new());
    }

    #[test]
    fn wide_characters_count_two_columns() {
        assert_eq!(lines("動物園は", 4), ["動物", "園は"]);
        assert_eq!(fit("動物園は", 5), "動物…");
    }

    #[test]
    fn flags_and_joined_emoji_become_characters_on_whose_width_terminals_agree() {
        let shown = |text: &str| {
            let mut buffer = Buffer::empty(Rect::new(0, 0, 10, 1));
            buffer.set_string(0, 0, text, Style::default());
            finish(Theme::of(crate::tui::theme::Look::Terminal), Glyphs::Shapes, &mut buffer);
            (0..10).map(|x| buffer[(x, 0)].symbol().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(shown("🇫🇷x")[..3], ["F", "R", "x"]);
        assert_eq!(shown("👩\u{200d}🚀x")[..3], ["👩", " ", "x"]);
        assert_eq!(shown("✊🏽x")[..3], ["✊", " ", "x"]);
        assert_eq!(shown("❤\u{fe0f}x")[..3], ["❤", " ", "x"]);
        // Accents stay: every terminal draws them into the cell before.
        assert_eq!(shown("e\u{301}x")[..2], ["e\u{301}", "x"]);
        assert_eq!(shown("動x")[..3], ["動", " ", "x"]);
    }

    #[test]
    fn no_width_panics_and_a_long_text_costs_only_the_lines_that_are_shown() {
        let text = "x".repeat(1_000_000);
        for width in 0..5 {
            assert_eq!(wrap(&text, width, 3).len(), 3);
            assert!(fit("動物園", width).width() <= width);
        }
    }

    #[test]
    fn weighted_terms_wrap_at_the_width_and_those_that_met_are_marked() {
        let terms = [("zoo".to_owned(), 2.0, true), ("ban".into(), 1.0, false), ("cage".into(), 0.5, true)];
        let rows = weighted("terms: ", &terms, &("+".into(), Meaning::Match), 18);
        let text: Vec<String> =
            rows.iter().map(|row| row.iter().map(|piece| piece.text.as_str()).collect()).collect();
        assert_eq!(text, ["terms: +zoo 2.00  ", "ban 1.00  ", "+cage 0.50  "]);
        assert!(
            rows.iter()
                .flatten()
                .any(|piece| piece.text.contains("zoo") && piece.meanings == [Meaning::Match])
        );
        let many: Vec<_> = (0..50).map(|i| (format!("t{i}"), 1.0, false)).collect();
        let rows = weighted("", &many, &("+".into(), Meaning::Match), 500);
        assert!(rows.iter().flatten().any(|piece| piece.text == "and 10 more"));
    }
}
