use ratatui::style::{Color, Style};
use resvg::usvg::roxmltree::Document;

use super::super::shapes::shape;
use super::*;

fn styled(line: &str, style: Style) -> Buffer {
    let mut buffer = Buffer::with_lines([line]);
    buffer.set_style(buffer.area, style);
    buffer
}

/// Characters with the x that the document gives each.
fn places(svg: &str) -> Vec<(char, f32)> {
    let document = Document::parse(svg).unwrap();
    let mut all = Vec::new();
    for text in document.descendants().filter(|node| node.has_tag_name("text")) {
        let x: f32 = text.attribute("x").unwrap().parse().unwrap();
        let chars = text.text().unwrap();
        let long = text.attribute("textLength").map_or(WIDE, |long| long.parse().unwrap());
        let wide = long / chars.chars().count() as f32;
        all.extend(chars.chars().enumerate().map(|(i, c)| (c, x + i as f32 * wide)));
    }
    all
}

#[test]
fn special_characters_survive_as_themselves() {
    let svg = svg(&Buffer::with_lines(["<>&\"'"]), "<\"&'>\u{1}");
    assert!(svg.contains(">&lt;&gt;&amp;&quot;&#39;</text>"), "{svg}");
    let read: String = places(&svg).iter().map(|(c, _)| *c).collect();
    assert_eq!(read, "<>&\"'");
    assert!(svg.contains("<title>&lt;&quot;&amp;&#39;&gt;\u{fffd}</title>"), "{svg}");
}

#[test]
fn a_control_character_in_a_cell_leaves_a_readable_document() {
    let mut buffer = Buffer::with_lines(["abc"]);
    buffer[(1, 0)].set_symbol("\u{1b}");
    // Of another width in many fonts, so centred on its cell.
    assert_eq!(places(&svg(&buffer, "t"))[1], ('\u{fffd}', MARGIN + 1.5 * WIDE));
}

#[test]
fn reversed_text_has_the_ground_for_its_colour() {
    let style = Style::new().fg(Color::Cyan).add_modifier(Modifier::REVERSED);
    let svg = svg(&styled("ab", style), "t");
    let (cyan, ground) = (DARK.sixteen[6], DARK.ground);
    assert!(svg.contains(&format!("width=\"20\" height=\"20\" fill=\"{cyan}\"")), "{svg}");
    assert!(svg.contains(&format!("fill=\"{ground}\">ab</text>")), "{svg}");
}

#[test]
fn dim_text_lies_between_its_colour_and_the_ground() {
    let svg = svg(&styled("ab", Style::new().add_modifier(Modifier::DIM)), "t");
    assert!(svg.contains(&format!("fill=\"{}\">ab<", DARK.text.over(DARK.ground, 60))), "{svg}");
}

#[test]
fn an_underline_runs_through_wide_characters_and_blanks() {
    let svg = svg(&styled("a 物b", Style::new().add_modifier(Modifier::UNDERLINED)), "t");
    assert!(svg.contains("<rect x=\"10\" y=\"28\" width=\"50\" height=\"1\""), "{svg}");
}

#[test]
fn every_character_stands_at_the_x_of_its_cell() {
    let line: String = ('!'..='~').cycle().take(140).collect();
    let expected: Vec<_> = line.chars().zip((0..140).map(|i| MARGIN + i as f32 * WIDE)).collect();
    assert_eq!(places(&svg(&Buffer::with_lines([line.as_str()]), "t")), expected);
}

#[test]
fn what_follows_a_wide_character_stands_two_cells_further() {
    let svg = svg(&Buffer::with_lines(["物b"]), "t");
    assert!(svg.contains("<text x=\"20\" text-anchor=\"middle\""), "{svg}");
    assert_eq!(places(&svg)[1], ('b', 30.0));
}

#[test]
fn one_style_is_one_element_and_blanks_at_the_end_are_none() {
    let svg = svg(&Buffer::with_lines(["  one and two    "]), "t");
    assert_eq!(svg.matches("<text").count(), 1);
    assert!(svg.contains(">one and two</text>"), "{svg}");
}

#[test]
fn blanks_in_a_row_are_a_place_and_never_text() {
    let svg = svg(&Buffer::with_lines(["one two   three"]), "t");
    assert!(svg.contains(">one two</text>") && svg.contains("<text x=\"110\" textLength=\"50\""), "{svg}");
}

#[test]
fn a_border_is_drawn_without_text() {
    let svg = svg(&Buffer::with_lines(["┌─┐", "│█│", "╰━╯", "⣿░▐"]), "t");
    assert!(!svg.contains("<text"), "{svg}");
    assert!(Document::parse(&svg).is_ok());
}

#[test]
fn a_line_that_goes_on_is_one_piece_and_a_bar_too() {
    let svg = svg(&Buffer::with_lines(["┌────┐ ██▒▒"]), "t");
    assert!(svg.contains("M20 20h40v1h-40z") && svg.contains("M80 10h20v20h-20z"), "{svg}");
}

#[test]
fn the_margin_has_the_ground_of_the_frame() {
    let svg = svg(&styled("ab", Style::new().bg(Color::Rgb(1, 2, 3))), "t");
    assert_eq!(svg.matches("<rect").count(), 1, "{svg}");
    assert!(svg.contains("height=\"40\" fill=\"#010203\""), "{svg}");
}

#[test]
fn neighbouring_lines_share_an_edge() {
    let path = |c, x| shape(c, x, 0.0).unwrap().path;
    assert_eq!(path('─', 0.0), "M0 10h10v1h-10z");
    assert_eq!(path('─', 10.0), "M10 10h10v1h-10z");
    assert_eq!(path('└', 0.0), "M5 0h1v11h-1zM5 10h5v1h-5z");
}

#[test]
fn double_lines_stop_at_each_other() {
    let path = |c| shape(c, 0.0, 0.0).unwrap().path;
    assert_eq!(path('╔'), "M7 12h3v1h-3zM3 8h7v1h-7zM3 8h1v12h-1zM7 12h1v8h-1z");
}

#[test]
fn every_line_block_and_braille_pattern_has_a_shape() {
    for c in ('\u{2500}'..='\u{259f}').chain('\u{2801}'..='\u{28ff}') {
        assert!(shape(c, 0.0, 0.0).is_some_and(|shape| !shape.path.is_empty()), "{c}");
    }
    assert_eq!(shape('a', 0.0, 0.0), None);
}
