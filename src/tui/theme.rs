//! Colours by meaning. Widgets ask for a meaning, never for a colour.

mod look;

use ratatui::style::{Color, Modifier, Style};

use crate::report::marks::Mark;
pub use look::{Depth, Look};

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

/// A look, in as many colours as the terminal can show. Where there are none, weight and underlines remain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Theme {
    /// Which.
    pub look: Look,
    /// How many colours.
    pub depth: Depth,
}

impl Theme {
    /// A look in all its colours.
    pub const fn of(look: Look) -> Self {
        Theme { look, depth: Depth::Millions }
    }

    /// The style of a meaning.
    pub fn style(self, meaning: Meaning) -> Style {
        let plain = Style::default();
        let hues = self.look.hues();
        let coloured = |hue| self.look.colour(hue, self.depth).map_or(plain, |colour| plain.fg(colour));
        match meaning {
            Meaning::Side(mark) => self.side(mark),
            Meaning::Value(i) => coloured(hues.others[i % hues.others.len()]),
            Meaning::Over => coloured(hues.over).add_modifier(Modifier::BOLD),
            Meaning::Under => coloured(hues.under),
            Meaning::Muted => self.muted(),
            Meaning::Match => plain.add_modifier(Modifier::BOLD),
            Meaning::Evidence(mark) => self.side(mark).add_modifier(Modifier::UNDERLINED),
            Meaning::Warn => coloured(hues.warn),
            Meaning::Title => plain.add_modifier(Modifier::BOLD),
            Meaning::Selected => plain.add_modifier(Modifier::REVERSED),
            Meaning::Linked => plain.add_modifier(Modifier::UNDERLINED | Modifier::BOLD),
            Meaning::Key => plain.add_modifier(Modifier::BOLD),
            Meaning::Focus => plain.add_modifier(Modifier::BOLD),
            Meaning::Text => plain,
        }
    }

    /// Of text without a colour of its own, and behind everything, where the look paints its own ground.
    pub fn ground(self) -> Option<(Color, Color)> {
        self.look.ground(self.depth)
    }

    /// A ground of one's own asks for a colour: how a terminal dims is known for its own ground alone.
    fn muted(self) -> Style {
        match self.ground().and(self.look.colour(look::GREY, self.depth)) {
            Some(grey) => Style::default().fg(grey),
            None => Style::default().add_modifier(Modifier::DIM),
        }
    }

    fn side(self, mark: Mark) -> Style {
        let hues = self.look.hues();
        let hue = match mark {
            Mark::Support => hues.support,
            Mark::Oppose => hues.oppose,
            Mark::Other(i) => hues.others[i % hues.others.len()],
            Mark::Several => hues.several,
            Mark::None | Mark::Pending => return self.muted(),
        };
        let bold = Style::default().add_modifier(Modifier::BOLD);
        self.look.colour(hue, self.depth).map_or(bold, |colour| bold.fg(colour))
    }
}
