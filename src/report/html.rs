//! Tables and plots as one HTML file that needs nothing else.

use std::fmt::Write;

use serde_json::{Value, json};

use super::marks::share;
use super::markup::escape;
use super::table::{Cell, Row, Table};

/// A part of the page.
#[derive(Clone, Debug, Default)]
pub struct Section<'a> {
    /// What stands over it.
    pub heading: String,
    /// Paragraphs, with an empty line between them.
    pub text: String,
    /// Its tables.
    pub tables: Vec<&'a Table>,
    /// Its plots, as [`super::plot`] makes them: they are trusted to be well-formed.
    pub plots: Vec<String>,
}

/// The page; `command` is what makes it anew.
pub fn page(title: &str, command: &str, sections: &[Section]) -> String {
    let mut body = String::new();
    if sections.len() > 2 {
        body.push_str("<nav><ul>\n");
        for (i, section) in sections.iter().enumerate() {
            let _ = writeln!(body, "<li><a href=\"#s{i}\">{}</a></li>", escape(&section.heading));
        }
        body.push_str("</ul></nav>\n");
    }
    for (i, section) in sections.iter().enumerate() {
        let _ = writeln!(body, "<section id=\"s{i}\"><h2>{}</h2>", escape(&section.heading));
        for paragraph in paragraphs(&section.text) {
            let _ = writeln!(body, "<p>{}</p>", escape(&paragraph));
        }
        for plot in &section.plots {
            let _ = writeln!(body, "<figure>{}</figure>", plot.trim_end());
        }
        for one in &section.tables {
            table(&mut body, one);
        }
        body.push_str("</section>\n");
    }
    let (title, command_text) = (escape(title), escape(command));
    let (style, script) = (include_str!("html.css"), include_str!("html.js"));
    let provenance = lines(&format!("{:#}", provenance(command, sections)));
    // The policy keeps whatever a text might smuggle in from loading anything.
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
         script-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{title}</title>\n<style>\n{style}</style></head>\n<body>\n\
         <header><h1>{title}</h1>\n<p><code>{command_text}</code></p></header>\n<main>\n{body}\
         <details><summary>Provenance</summary><pre>{provenance}</pre></details>\n\
         </main>\n<script>\n{script}</script>\n</body></html>\n"
    )
}

fn paragraphs(text: &str) -> Vec<String> {
    let mut paragraphs = vec![String::new()];
    for line in text.lines().map(str::trim) {
        match paragraphs.last_mut() {
            Some(last) if !line.is_empty() => {
                last.push_str(line);
                last.push(' ');
            }
            _ => paragraphs.push(String::new()),
        }
    }
    paragraphs.retain(|paragraph| !paragraph.is_empty());
    paragraphs.iter().map(|paragraph| paragraph.trim_end().to_owned()).collect()
}

/// Each line made safe, the breaks kept.
fn lines(text: &str) -> String {
    text.lines().map(escape).collect::<Vec<_>>().join("\n")
}

/// The command, and what lies behind the tables; those that share it stand together.
fn provenance(command: &str, sections: &[Section]) -> Value {
    let mut sources: Vec<(Vec<&str>, &Value)> = Vec::new();
    for table in sections.iter().flat_map(|section| &section.tables) {
        match sources.iter_mut().find(|(_, known)| **known == table.provenance) {
            Some((suites, _)) if suites.contains(&table.suite) => {}
            Some((suites, _)) => suites.push(table.suite),
            None => sources.push((vec![table.suite], &table.provenance)),
        }
    }
    let sources: Vec<Value> =
        sources.iter().map(|(suites, value)| json!({"suites": suites, "provenance": value})).collect();
    json!({"command": command, "sources": sources})
}

fn table(out: &mut String, table: &Table) {
    let judged = table.rows.iter().any(|row| row.judged.is_some());
    let depth = table.k.map_or_else(String::new, |k| format!(", k = {k}"));
    let _ = writeln!(out, "<div class=\"wide\"><table><caption>{}{depth}</caption>", escape(&table.name()));
    out.push_str("<thead><tr><th scope=\"col\">lane</th>");
    for head in table.columns.iter().map(String::as_str).chain(judged.then_some("judged")) {
        let _ = write!(out, "<th scope=\"col\">{}</th>", escape(head));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in &table.rows {
        let _ = write!(out, "<tr><th scope=\"row\">{}{}</th>", escape(&row.lane), failed(row));
        // A row may be short of cells, and then the share judged must not slip to the left.
        for i in 0..table.columns.len() {
            cell(out, row.cells.get(i).and_then(Option::as_ref));
        }
        match row.judged {
            _ if !judged => {}
            Some(part) if part.is_finite() => {
                let _ = write!(out, "<td data-v=\"{part}\"><b>{}</b></td>", share(part));
            }
            _ => cell(out, None),
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n<ul class=\"remarks\">\n");
    for remark in table.remarks() {
        let _ = writeln!(out, "<li>{}</li>", escape(&remark));
    }
    out.push_str("</ul>\n");
}

fn failed(row: &Row) -> String {
    if row.failed.is_empty() {
        return String::new();
    }
    format!(" <small>({} failed)</small>", row.failed.len())
}

/// A value with its star, and below it its interval and n; `data-v` is what the script sorts by.
fn cell(out: &mut String, cell: Option<&Cell>) {
    let Some(Cell { mean, interval, n, p, doubt, .. }) = cell.filter(|cell| cell.mean.is_finite()) else {
        out.push_str("<td>–</td>");
        return;
    };
    let within = |x: f64| (-1.0..=1.0).contains(&x);
    let value = if within(*mean) { format!("{mean:.4}") } else { format!("{mean:.2}") };
    let short = |x: f64| match x {
        x if !x.is_finite() => "–".to_owned(),
        x if within(x) => share(x),
        x => format!("{x:.1}"),
    };
    let star = if p.is_some_and(|p| p < 0.05) { "<sup>*</sup>" } else { "" };
    let chance = p.map_or_else(String::new, |p| format!(" title=\"p = {p:.4}\""));
    let interval = interval
        .map_or_else(String::new, |(low, high)| format!("<span>({}–{})</span> ", short(low), short(high)));
    let doubt = doubt.map_or_else(String::new, |doubt| {
        format!("<span>[{}–{}]</span> ", short(doubt.low), short(doubt.high))
    });
    let _ = write!(
        out,
        "<td data-v=\"{mean}\"{chance}><b>{value}</b>{star}<br><small>{interval}{doubt}n&#160;{n}</small></td>"
    );
}

#[cfg(test)]
#[path = "html_tests.rs"]
mod tests;
