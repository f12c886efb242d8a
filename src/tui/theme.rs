//! Colours by meaning. Widgets ask for a meaning, never for a colour.

use ratatui::style::{Color, Modifier, Style};

use crate::report::marks::Mark;

/// What a piece of the screen means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// A perspective, or what stands in its place.
    Side(Mark),
    /// Less important.
    Muted,
    /// A value of a field that passages carry, by its place.
    Value(usize),
    /// More of it than in the corpus.
    Over,
    /// Less of it than in the corpus.
    Under,
    /// A term of the question.
    Match,
    /// The sentence that carries a verdict for a perspective.
    Evidence(Mark),
    /// Something went wrong, or cannot be relied on.
    Warn,
    /// A heading.
    Title,
    /// The marked passage, in the lane with the cursor.
    Selected,
    /// The same passage in another lane.
    Linked,
    /// A key.
    Key,
    /// The frame of the lane with the cursor.
    Focus,
    /// Plain text.
    Text,
}

/// What tells perspectives of many, and values, apart beside their letters and names.
const OTHERS: [Color; 6] =
    [Color::Cyan, Color::Magenta, Color::Green, Color::Yellow, Color::Blue, Color::Red];

/// Colours or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Theme {
    /// Whether colours may be used; without them, weight and underlines remain.
    pub colours: bool,
}

impl Theme {
    /// The style of a meaning, from the terminal's own sixteen colours.
    pub fn style(self, meaning: Meaning) -> Style {
        let plain = Style::default();
        let coloured = |colour| if self.colours { plain.fg(colour) } else { plain };
        match meaning {
            Meaning::Side(mark) => self.side(mark),
            Meaning::Value(i) => coloured(OTHERS[i % OTHERS.len()]),
            Meaning::Over => coloured(Color::Yellow).add_modifier(Modifier::BOLD),
            Meaning::Under => coloured(Color::Blue),
            Meaning::Muted => plain.add_modifier(Modifier::DIM),
            Meaning::Match => plain.add_modifier(Modifier::BOLD),
            Meaning::Evidence(mark) => self.side(mark).add_modifier(Modifier::UNDERLINED),
            Meaning::Warn => coloured(Color::Yellow),
            Meaning::Title => plain.add_modifier(Modifier::BOLD),
            Meaning::Selected => plain.add_modifier(Modifier::REVERSED),
            Meaning::Linked => plain.add_modifier(Modifier::UNDERLINED | Modifier::BOLD),
            Meaning::Key => plain.add_modifier(Modifier::BOLD),
            Meaning::Focus => plain.add_modifier(Modifier::BOLD),
            Meaning::Text => plain,
        }
    }

    fn side(self, mark: Mark) -> Style {
        let colour = match mark {
            Mark::Support => Color::Cyan,
            Mark::Oppose => Color::Magenta,
            Mark::Other(i) => OTHERS[i % OTHERS.len()],
            Mark::Several => Color::Yellow,
            Mark::None | Mark::Pending => return Style::default().add_modifier(Modifier::DIM),
        };
        let bold = Style::default().add_modifier(Modifier::BOLD);
        if self.colours { bold.fg(colour) } else { bold }
    }
}
