//! A frame as a page that follows the reader's choice of dark or light.

use std::fmt::Write;

use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier};

use super::grid::{Glyph, Look, escape, heading, rows};
use super::palette::{Asked, DARK, LIGHT, Palette, asked};

// Rows a little lower than the font, so that vertical lines and grounds of neighbouring rows meet.
const PAGE: &str = "\
body{margin:1rem;background:var(--ground);color:var(--text)}
pre{margin:0;font:15px/17px 'DejaVu Sans Mono',Menlo,Consolas,'Cascadia Mono','Liberation Mono',monospace;\
font-variant-ligatures:none;direction:ltr;unicode-bidi:bidi-override}
pre .g{display:inline-block;vertical-align:bottom;text-align:center;white-space:pre}
";

/// How a stretch of a row keeps to the grid.
#[derive(Clone, Copy, PartialEq)]
enum Hold {
    /// Every monospace font has these, as wide as the rest.
    Flow,
    /// Lines and blocks: most fonts have them; a box around a whole stretch bounds the error.
    Stretch,
    /// May come from any font: a box of its own.
    Alone,
}

/// A self-contained page with the frame in a `<pre>`.
pub fn html(buffer: &Buffer, title: &str) -> String {
    let mut classes: Vec<String> = Vec::new();
    let mut body = String::new();
    for row in rows(buffer) {
        line(&row, &mut classes, &mut body);
        body.push('\n');
    }
    let mut css = variables(":root", &DARK);
    let _ = writeln!(css, "@media (prefers-color-scheme:light){{{}}}", variables(":root", &LIGHT).trim_end());
    css.push_str(PAGE);
    for (i, class) in classes.iter().enumerate() {
        let _ = writeln!(css, ".s{i}{{{class}}}");
    }
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <meta name=\"color-scheme\" content=\"dark light\">\n<title>{}</title>\n\
         <style>\n{css}</style>\n</head>\n<body>\n<pre>\n{body}</pre>\n</body>\n</html>\n",
        heading(title)
    )
}

fn variables(of: &str, palette: &Palette) -> String {
    let mut css = format!("{of}{{--text:{};--ground:{}", palette.text, palette.ground);
    for (i, colour) in palette.sixteen.iter().enumerate() {
        let _ = write!(css, ";--c{i}:{colour}");
    }
    css + "}\n"
}

fn line(row: &[Glyph], classes: &mut Vec<String>, body: &mut String) {
    // A row without style needs no blanks at its end.
    let plain = |glyph: &Glyph| glyph.text == " " && css(glyph.look).is_empty();
    let end = row.iter().rposition(|glyph| !plain(glyph)).map_or(0, |last| last + 1);
    let together = |a: &Glyph, b: &Glyph| a.look == b.look && hold(a) == hold(b) && hold(a) != Hold::Alone;
    for part in row[..end].chunk_by(together) {
        let Some(first) = part.first() else { continue };
        let text = escape(&part.iter().map(|glyph| glyph.text.as_str()).collect::<String>());
        let look = css(first.look);
        let class = (!look.is_empty()).then(|| {
            classes.iter().position(|known| *known == look).unwrap_or_else(|| {
                classes.push(look);
                classes.len() - 1
            })
        });
        let columns: usize = part.iter().map(|glyph| glyph.columns).sum();
        let name = class.map(|i| format!("s{i}")).unwrap_or_default();
        let _ = match (hold(first), class) {
            (Hold::Flow, None) => write!(body, "{text}"),
            (Hold::Flow, Some(_)) => write!(body, "<span class=\"{name}\">{text}</span>"),
            _ => {
                let names = format!("g {name}");
                write!(body, "<span class=\"{}\" style=\"width:{columns}ch\">{text}</span>", names.trim_end())
            }
        };
    }
}

fn hold(glyph: &Glyph) -> Hold {
    match glyph.single() {
        Some(' '..='~' | '\u{a0}'..='\u{24f}') => Hold::Flow,
        Some('\u{2500}'..='\u{259f}') => Hold::Stretch,
        _ => Hold::Alone,
    }
}

/// Empty for a cell without style.
fn css(look: Look) -> String {
    let has = |modifier| look.modifier.contains(modifier);
    let (mut fg, mut bg) = (value(look.fg, "var(--text)"), value(look.bg, "var(--ground)"));
    if has(Modifier::REVERSED) {
        (fg, bg) = (bg, fg);
    }
    if has(Modifier::DIM) {
        fg = format!("color-mix(in srgb,{fg} 60%,{bg})");
    }
    if has(Modifier::HIDDEN) {
        fg.clone_from(&bg);
    }
    let mut rules = Vec::new();
    if fg != "var(--text)" {
        rules.push(format!("color:{fg}"));
    }
    if bg != "var(--ground)" {
        rules.push(format!("background:{bg}"));
    }
    if has(Modifier::BOLD) {
        rules.push("font-weight:bold".into());
    }
    if has(Modifier::ITALIC) {
        rules.push("font-style:italic".into());
    }
    let lines: Vec<&str> = [(Modifier::UNDERLINED, "underline"), (Modifier::CROSSED_OUT, "line-through")]
        .into_iter()
        .filter_map(|(modifier, line)| has(modifier).then_some(line))
        .collect();
    if !lines.is_empty() {
        rules.push(format!("text-decoration:{}", lines.join(" ")));
    }
    rules.join(";")
}

fn value(colour: Color, usual: &str) -> String {
    match asked(colour) {
        Asked::Usual => usual.into(),
        Asked::Named(i) => format!("var(--c{i})"),
        Asked::Fixed(rgb) => rgb.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use ratatui::style::Style;

    use super::*;

    fn page(line: &str, style: Style) -> String {
        let mut buffer = Buffer::with_lines([line]);
        buffer.set_style(buffer.area, style);
        html(&buffer, "a & b")
    }

    #[test]
    fn special_characters_are_escaped_in_the_text_and_the_title() {
        let page = page("<b>&\"'", Style::new());
        assert!(page.contains("<pre>\n&lt;b&gt;&amp;&quot;&#39;\n</pre>"), "{page}");
        assert!(page.contains("<title>a &amp; b</title>"), "{page}");
    }

    #[test]
    fn named_colours_follow_the_reader_and_exact_ones_do_not() {
        assert!(page("x", Style::new().fg(Color::Cyan)).contains(".s0{color:var(--c6)}"));
        assert!(page("x", Style::new().fg(Color::Rgb(1, 2, 3))).contains(".s0{color:#010203}"));
        assert!(page("x", Style::new()).contains("prefers-color-scheme:light"));
    }

    #[test]
    fn reversed_text_swaps_text_and_ground() {
        let page = page("x ", Style::new().add_modifier(Modifier::REVERSED));
        assert!(page.contains(".s0{color:var(--ground);background:var(--text)}"), "{page}");
        assert!(page.contains("<span class=\"s0\">x </span>"), "{page}");
    }

    #[test]
    fn a_wide_character_has_a_box_of_two_columns() {
        let page = page("a物b", Style::new());
        assert!(page.contains("a<span class=\"g\" style=\"width:2ch\">物</span>b"), "{page}");
    }

    #[test]
    fn a_border_is_one_box() {
        assert!(page("┌───┐", Style::new()).contains("style=\"width:5ch\">┌───┐</span>"));
    }
}
