//! What a lane's steps did, as lines of text: every text that was added and where it came from.

use ratatui::text::Line;

use super::super::{paragraph, span};
use crate::corpus::PassageIx;
use crate::expand::{Added, Expansion, Queries, Source};
use crate::pipeline::List;
use crate::report::safe;
use crate::tui::theme::{Meaning, Theme};

/// Everything that is to be known of an expansion.
pub fn lines(expansion: &Expansion, list: &List, width: usize, theme: Theme) -> Vec<Line<'static>> {
    let mut lines = vec![Line::from(span(safe::line(&expansion.told()), Meaning::Title, theme))];
    for note in &list.trace.notes {
        lines.extend(paragraph(note, "  ", width, Meaning::Warn, theme));
    }
    if let Some(tokens) = expansion.tokens {
        let text = format!("{} tokens read, {} written", tokens.prompt, tokens.reply);
        lines.push(Line::from(span(text, Meaning::Muted, theme)));
    }
    if let Queries::Terms(weights) = &expansion.queries {
        let text: Vec<String> = weights.iter().map(|(term, weight)| format!("{term} {weight:.3}")).collect();
        lines.extend(paragraph(&text.join(" · "), "  ", width, Meaning::Text, theme));
    }
    for added in &expansion.added {
        lines.push(Line::default());
        let name = added.name.as_ref().map_or_else(String::new, |name| format!("{}: ", safe::line(name)));
        lines.push(Line::from(vec![
            span(name, Meaning::Title, theme),
            span(origin(&added.source, list), Meaning::Muted, theme),
        ]));
        lines.extend(sentences(added, list, width, theme));
    }
    lines
}

fn origin(source: &Source, list: &List) -> String {
    match source {
        Source::Given => "from the question set".into(),
        Source::Statement(i) => format!("statement {} of the question", i + 1),
        Source::Model { model, recorded: true, .. } => format!("recorded reply of {}", safe::line(model)),
        Source::Model { model, .. } => format!("written by {}", safe::line(model)),
        Source::Passage { at, rank } => format!("from the passage at rank {rank}{}", title(*at, list)),
        Source::Feedback => "terms of the first passages".into(),
    }
}

/// A passage's title, where the list holds it.
fn title(at: PassageIx, list: &List) -> String {
    let found = list.iter().find(|ranked| ranked.at == at);
    found.map_or_else(String::new, |ranked| format!(", {}", safe::line(&ranked.passage.title)))
}

/// The text; of sentences copied by a model, those that stand in no passage are marked.
fn sentences(added: &Added, list: &List, width: usize, theme: Theme) -> Vec<Line<'static>> {
    let by_model = matches!(added.source, Source::Model { .. });
    if added.sentences.is_empty() || !by_model {
        return paragraph(&added.text, "  ", width, Meaning::Text, theme);
    }
    let each = added.sentences.iter().flat_map(|(range, found)| {
        let text = added.text.get(range.clone()).unwrap_or_default();
        match found {
            Some(at) => {
                let text = format!("{text} [in the corpus{}]", title(*at, list));
                paragraph(&text, "  ", width, Meaning::Text, theme)
            }
            None => paragraph(&format!("{text} [not in the passages]"), "  ", width, Meaning::Warn, theme),
        }
    });
    each.collect()
}
