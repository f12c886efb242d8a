//! Colours by meaning. Widgets ask for a meaning, never for a colour.

pub mod palette;

use clap::ValueEnum;
use ratatui::style::{Color, Modifier, Style};

use crate::report::marks::Mark;
use palette::{DARK, LIGHT, Palette, Rgb};

/// The meaning of a piece of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// The mark of a statement, or of a passage that supports none.
    Side(Mark),
    /// Less important text.
    Muted,
    /// A value of a metadata field, by index.
    Value(usize),
    /// A value that is more frequent than in the corpus.
    Over,
    /// A value that is less frequent than in the corpus.
    Under,
    /// A term of the question.
    Match,
    /// The sentence that a verdict about a statement rests on.
    Evidence(Mark),
    /// An error, or something unreliable.
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

/// A look in as many colours as the terminal has. Without colours, weight and underlines remain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Theme {
    /// The look.
    pub look: Look,
    /// How many colours the terminal has.
    pub depth: Depth,
}

impl Theme {
    /// Returns a look in true colour.
    pub const fn of(look: Look) -> Self {
        Theme { look, depth: Depth::Millions }
    }

    /// Returns the style of a meaning.
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

    /// Returns the text colour and the background, if the look has its own.
    pub fn ground(self) -> Option<(Color, Color)> {
        self.look.ground(self.depth)
    }

    /// Returns the style of muted text. On a look's own background it needs a colour: terminals dim for their own background only.
    fn muted(self) -> Style {
        match self.ground().and(self.look.colour(GREY, self.depth)) {
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
            Mark::None | Mark::Unclear | Mark::Pending => return self.muted(),
        };
        let bold = Style::default().add_modifier(Modifier::BOLD);
        self.look.colour(hue, self.depth).map_or(bold, |colour| bold.fg(colour))
    }
}

/// The colours of the interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Look {
    /// The terminal's own sixteen colours on its own background.
    #[default]
    Terminal,
    /// Dark on light.
    Light,
    /// Light on dark.
    Dark,
    /// Blue and orange on the terminal's own background.
    Deuteranopia,
    /// No colours, only weight and underlines.
    Mono,
}

/// How many colours a terminal has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Sixteen colours.
    Sixteen,
    /// The 256 of xterm.
    Indexed,
    /// True colour.
    Millions,
}

impl Depth {
    /// Works the number out from `COLORTERM` and `TERM`. Windows Terminal sets neither and has true colour.
    pub fn of_terminal(colorterm: Option<&str>, term: Option<&str>, windows_terminal: bool) -> Self {
        let (colorterm, term) = (colorterm.unwrap_or_default(), term.unwrap_or_default());
        if windows_terminal || ["truecolor", "24bit"].contains(&colorterm) || term.ends_with("-direct") {
            Depth::Millions
        } else if term.contains("256color") {
            Depth::Indexed
        } else {
            Depth::Sixteen
        }
    }
}

/// A colour of a look: one of the sixteen, and an exact shade if the terminal's own shade is not wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hue(Color, Option<Rgb>);

const fn own(colour: Color) -> Hue {
    Hue(colour, None)
}

const fn shade(colour: Color, r: u8, g: u8, b: u8) -> Hue {
    Hue(colour, Some(Rgb(r, g, b)))
}

/// The colour of muted text on a look's own background.
const GREY: Hue = own(Color::DarkGray);

/// The colours of meanings.
struct Hues {
    pub support: Hue,
    pub oppose: Hue,
    pub several: Hue,
    pub over: Hue,
    pub under: Hue,
    pub warn: Hue,
    /// For the statements of a many-sided question and for values. Their letters and names are always shown too.
    pub others: [Hue; 6],
}

const SIXTEEN: Hues = Hues {
    support: own(Color::Cyan),
    oppose: own(Color::Magenta),
    several: own(Color::Yellow),
    over: own(Color::Yellow),
    under: own(Color::Blue),
    warn: own(Color::Yellow),
    others: [
        own(Color::Cyan),
        own(Color::Magenta),
        own(Color::Green),
        own(Color::Yellow),
        own(Color::Blue),
        own(Color::Red),
    ],
};

// Readable on dark and on light backgrounds.
const BLUE: Hue = shade(Color::LightBlue, 0x3a, 0x86, 0xd6);
const ORANGE: Hue = shade(Color::Yellow, 0xc8, 0x76, 0x00);
const GREYISH: Hue = shade(Color::Gray, 0x84, 0x88, 0x90);

const BLUE_AND_ORANGE: Hues = Hues {
    support: BLUE,
    oppose: ORANGE,
    several: GREYISH,
    over: ORANGE,
    under: BLUE,
    warn: ORANGE,
    others: [BLUE, ORANGE, GREYISH, BLUE, ORANGE, GREYISH],
};

impl Look {
    /// Returns its name, as in a configuration and for `--theme`.
    pub fn name(self) -> &'static str {
        match self {
            Look::Terminal => "terminal",
            Look::Light => "light",
            Look::Dark => "dark",
            Look::Deuteranopia => "deuteranopia",
            Look::Mono => "mono",
        }
    }

    fn hues(self) -> &'static Hues {
        if self == Look::Deuteranopia { &BLUE_AND_ORANGE } else { &SIXTEEN }
    }

    fn palette(self) -> Option<&'static Palette> {
        match self {
            Look::Light => Some(&LIGHT),
            Look::Dark => Some(&DARK),
            Look::Terminal | Look::Deuteranopia | Look::Mono => None,
        }
    }

    /// Returns the colour to draw with; `None` if the look has no colours.
    fn colour(self, Hue(colour, shade): Hue, depth: Depth) -> Option<Color> {
        if self == Look::Mono {
            return None;
        }
        let shade = shade.or_else(|| self.palette().map(|palette| palette.rgb(colour, palette.text)));
        Some(shade.and_then(|shade| at_depth(shade, depth)).unwrap_or(colour))
    }

    /// Returns text colour and background, if the look has its own and the terminal can show them.
    fn ground(self, depth: Depth) -> Option<(Color, Color)> {
        let palette = self.palette()?;
        at_depth(palette.text, depth).zip(at_depth(palette.ground, depth))
    }
}

/// Returns a shade as a terminal of that depth shows it; `None` with sixteen colours.
fn at_depth(shade: Rgb, depth: Depth) -> Option<Color> {
    match depth {
        Depth::Sixteen => None,
        Depth::Indexed => Some(Color::Indexed(nearest_indexed(shade))),
        Depth::Millions => Some(Color::Rgb(shade.0, shade.1, shade.2)),
    }
}

/// Returns the nearest of xterm's fixed colours: the cube and the greys after the first sixteen.
fn nearest_indexed(shade: Rgb) -> u8 {
    let distance = |i: &u8| {
        let Rgb(r, g, b) = DARK.rgb(Color::Indexed(*i), DARK.text);
        let square = |a: u8, b: u8| u32::from(a.abs_diff(b)).pow(2);
        square(r, shade.0) + square(g, shade.1) + square(b, shade.2)
    };
    (16..=255).min_by_key(distance).unwrap_or(16)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One channel in linear light (IEC 61966-2-1).
    fn linear(channel: u8) -> f64 {
        let c = f64::from(channel) / 255.0;
        if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
    }

    fn luminance(Rgb(r, g, b): Rgb) -> f64 {
        0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b)
    }

    /// The contrast ratio of WCAG 2.
    fn contrast(a: Rgb, b: Rgb) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    fn meanings() -> Vec<Meaning> {
        let mut all = vec![Meaning::Over, Meaning::Under, Meaning::Warn, Meaning::Muted, Meaning::Text];
        let marks = [Mark::Support, Mark::Oppose, Mark::Several, Mark::None, Mark::Unclear, Mark::Pending];
        all.extend(marks.map(Meaning::Side));
        all.extend((0..6).map(|i| Meaning::Side(Mark::Other(i))));
        all.extend((0..6).map(Meaning::Value));
        all
    }

    fn shown(theme: Theme, meaning: Meaning, palette: &Palette) -> Rgb {
        palette.rgb(theme.style(meaning).fg.unwrap_or(Color::Reset), palette.text)
    }

    #[test]
    fn every_meaning_is_readable_on_the_background_of_its_look() {
        for (look, palette) in [(Look::Light, &LIGHT), (Look::Dark, &DARK)] {
            for depth in [Depth::Indexed, Depth::Millions] {
                let theme = Theme { look, depth };
                let ground = palette.rgb(theme.ground().unwrap().1, palette.ground);
                for meaning in meanings() {
                    let ratio = contrast(shown(theme, meaning, palette), ground);
                    assert!(ratio >= 4.0, "{look:?} {depth:?} {meaning:?}: {ratio:.2}");
                }
            }
        }
    }

    #[test]
    fn blue_and_orange_are_readable_on_dark_and_light_backgrounds() {
        for Hue(_, shade) in [BLUE, ORANGE, GREYISH] {
            for ground in [DARK.ground, LIGHT.ground, Rgb(0, 0, 0), Rgb(255, 255, 255)] {
                let ratio = contrast(shade.unwrap(), ground);
                assert!(ratio >= 3.0, "{shade:?} on {ground}: {ratio:.2}");
            }
        }
    }

    /// A colour as seen without green cones: Viénot, Brettel and Mollon 1999, in linear light.
    fn without_green(Rgb(r, g, b): Rgb) -> [f64; 3] {
        let [r, g, b] = [r, g, b].map(linear);
        let red = 0.29275 * r + 0.70725 * g;
        [red, red, -0.02234 * r + 0.02234 * g + b]
    }

    #[test]
    fn the_two_sides_stay_distinct_without_green_cones() {
        let theme = Theme::of(Look::Deuteranopia);
        let apart = |a: Rgb, b: Rgb| {
            let (a, b) = (without_green(a), without_green(b));
            a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
        };
        let [support, oppose] =
            [Mark::Support, Mark::Oppose].map(|mark| shown(theme, Meaning::Side(mark), &DARK));
        assert!(apart(support, oppose) > 0.5, "{}", apart(support, oppose));
        // For comparison: a red and a green that are easy to distinguish with green cones.
        assert!(apart(Rgb(0xb0, 0x60, 0x30), Rgb(0x60, 0x80, 0x30)) < 0.1);
    }

    #[test]
    fn a_terminal_with_sixteen_colours_keeps_them_and_its_background() {
        for look in [Look::Light, Look::Dark, Look::Deuteranopia, Look::Terminal] {
            let theme = Theme { look, depth: Depth::Sixteen };
            assert_eq!(theme.ground(), None);
            for meaning in meanings() {
                let colour = theme.style(meaning).fg;
                assert!(!matches!(colour, Some(Color::Rgb(..) | Color::Indexed(_))), "{look:?} {meaning:?}");
            }
        }
    }

    #[test]
    fn mono_has_no_colour_at_any_depth() {
        for depth in [Depth::Sixteen, Depth::Indexed, Depth::Millions] {
            let theme = Theme { look: Look::Mono, depth };
            assert!(theme.ground().is_none() && meanings().iter().all(|m| theme.style(*m).fg.is_none()));
        }
    }

    #[test]
    fn the_environment_says_how_many_colours_a_terminal_has() {
        assert_eq!(Depth::of_terminal(Some("truecolor"), Some("xterm-256color"), false), Depth::Millions);
        assert_eq!(Depth::of_terminal(None, Some("xterm-256color"), false), Depth::Indexed);
        assert_eq!(Depth::of_terminal(Some(""), Some("linux"), false), Depth::Sixteen);
        assert_eq!(Depth::of_terminal(None, None, true), Depth::Millions);
        assert_eq!(Depth::of_terminal(None, Some("dumb"), false), Depth::Sixteen);
    }

    #[test]
    fn the_nearest_of_256_colours_to_one_of_them_is_itself() {
        assert_eq!(nearest_indexed(Rgb(255, 95, 0)), 202);
        assert_eq!(nearest_indexed(Rgb(238, 238, 238)), 255);
    }
}
