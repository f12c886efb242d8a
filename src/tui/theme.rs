//! Colours by meaning. Widgets ask for a meaning, never for a colour. May use: report (marks).

pub mod palette;

use clap::ValueEnum;
use ratatui::style::{Color, Modifier, Style};

use crate::report::marks::Mark;
use palette::{DARK, LIGHT, Palette, Rgb, luminance};

/// The meaning of a piece of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// The mark of a statement, or of a passage that supports none.
    Side(Mark),
    /// Less important text.
    Muted,
    /// A value of a metadata field, by index.
    Value(usize),
    /// A part of a record or of code.
    Code(Code),
    /// A lane's curve and its name, by index. Never a side's colour.
    Lane(usize),
    /// A background that hints at a side, for a title row; nothing if the background or the shades of the terminal are unknown.
    Tint(Mark),
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

/// A part of a record, a configuration or code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// The name of a field, a setting, a function or a tag.
    Name,
    /// A text.
    Text,
    /// A number.
    Number,
    /// A word of the language: `true`, `if`.
    Word,
    /// A comment.
    Comment,
    /// Brackets, commas and anything else.
    Other,
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
            Meaning::Value(i) | Meaning::Lane(i) => coloured(hues.lanes[i % hues.lanes.len()]),
            Meaning::Tint(mark) => self.tint(mark),
            Meaning::Code(code) => match code {
                Code::Name => coloured(hues.code[0]).add_modifier(Modifier::BOLD),
                Code::Text => coloured(hues.code[1]),
                Code::Number | Code::Word => coloured(hues.code[2]),
                Code::Comment => self.muted(),
                Code::Other => plain,
            },
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

    /// Returns the style of a cell that shows a share from 0 to 1: the more, the stronger its background. With sixteen colours or none,
    /// high shares are reversed and low ones muted.
    pub fn heat(self, share: f64) -> Style {
        let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
        let palette = self.look.palette().unwrap_or(&DARK);
        let percent = 12 + (share * 78.0) as u8;
        let shade = HEAT.over(palette.ground, percent);
        let ink = if luminance(shade) > 0.18 { Rgb(0, 0, 0) } else { Rgb(255, 255, 255) };
        let coloured = at_depth(shade, self.depth).zip(at_depth(ink, self.depth));
        match coloured.filter(|_| self.look != Look::Mono) {
            Some((shade, ink)) => Style::default().fg(ink).bg(shade),
            None if share >= 2.0 / 3.0 => Style::default().add_modifier(Modifier::REVERSED),
            None if share <= 1.0 / 3.0 => Style::default().add_modifier(Modifier::DIM),
            None => Style::default(),
        }
    }

    /// Returns the background that hints at a side.
    fn tint(self, mark: Mark) -> Style {
        let hues = self.look.hues();
        let hue = match mark {
            Mark::Support => hues.support,
            Mark::Oppose => hues.oppose,
            Mark::Other(i) => hues.others[i % hues.others.len()],
            Mark::Several | Mark::None | Mark::Unclear | Mark::Pending => return Style::default(),
        };
        let known = self.look.palette().filter(|_| self.depth == Depth::Millions);
        known.map_or_else(Style::default, |palette| {
            let Rgb(r, g, b) = palette.rgb(hue.0, palette.text).over(palette.ground, TINT);
            Style::default().bg(Color::Rgb(r, g, b))
        })
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
            // Both sides, so neither side's colour.
            Mark::Several => return Style::default().add_modifier(Modifier::BOLD),
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
/// The background of a cell that shows a share of 1.
const HEAT: Rgb = Rgb(0x7a, 0x8c, 0xff);
/// How much of a side's colour, in percent, lies behind a title row.
const TINT: u8 = 14;

/// The colours of meanings. Only sides have the colours of sides.
struct Hues {
    support: Hue,
    oppose: Hue,
    over: Hue,
    under: Hue,
    warn: Hue,
    /// For the statements of a many-sided question. Their letters are always shown too.
    others: [Hue; 6],
    /// Names, texts and numbers in records and code.
    code: [Hue; 3],
    /// For lanes and for the values of a field. Their numbers or names are always shown too.
    lanes: [Hue; 5],
}

// Cyan and yellow stay distinct without red, green or blue cones in the palettes of common terminals; cyan and magenta do not.
const SIXTEEN: Hues = Hues {
    support: own(Color::Cyan),
    oppose: own(Color::Yellow),
    over: own(Color::Green),
    under: own(Color::Blue),
    warn: own(Color::Red),
    others: [
        own(Color::Cyan),
        own(Color::Yellow),
        own(Color::Magenta),
        own(Color::Green),
        own(Color::Blue),
        own(Color::Red),
    ],
    code: [own(Color::Blue), own(Color::Green), own(Color::Magenta)],
    lanes: [
        own(Color::Green),
        own(Color::Magenta),
        own(Color::Blue),
        own(Color::LightGreen),
        own(Color::LightMagenta),
    ],
};

// Readable on dark and on light backgrounds.
const BLUE: Hue = shade(Color::LightBlue, 0x3a, 0x86, 0xd6);
const ORANGE: Hue = shade(Color::Yellow, 0xc8, 0x76, 0x00);
const GREYISH: Hue = shade(Color::Gray, 0x84, 0x88, 0x90);
const GREEN: Hue = shade(Color::Green, 0x00, 0x9e, 0x73);
const PURPLE: Hue = shade(Color::Magenta, 0xc0, 0x70, 0x9c);

const BLUE_AND_ORANGE: Hues = Hues {
    support: BLUE,
    oppose: ORANGE,
    over: GREEN,
    under: PURPLE,
    warn: PURPLE,
    others: [BLUE, ORANGE, GREYISH, GREEN, PURPLE, BLUE],
    code: [GREYISH, GREEN, PURPLE],
    lanes: [GREEN, PURPLE, GREYISH, GREEN, PURPLE],
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
    use super::palette::vision::{TERMINALS, Vision, contrast, difference};
    use super::*;

    fn meanings() -> Vec<Meaning> {
        let mut all = vec![Meaning::Over, Meaning::Under, Meaning::Warn, Meaning::Muted, Meaning::Text];
        let marks = [Mark::Support, Mark::Oppose, Mark::Several, Mark::None, Mark::Unclear, Mark::Pending];
        all.extend(marks.map(Meaning::Side));
        all.extend((0..6).map(|i| Meaning::Side(Mark::Other(i))));
        all.extend((0..6).flat_map(|i| [Meaning::Value(i), Meaning::Lane(i)]));
        all.extend([Code::Name, Code::Text, Code::Number, Code::Word, Code::Comment].map(Meaning::Code));
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
        for Hue(_, shade) in [BLUE, ORANGE, GREYISH, GREEN, PURPLE] {
            for ground in [DARK.ground, LIGHT.ground, Rgb(0, 0, 0), Rgb(255, 255, 255)] {
                let ratio = contrast(shade.unwrap(), ground);
                assert!(ratio >= 3.0, "{shade:?} on {ground}: {ratio:.2}");
            }
        }
    }

    /// The two sides' colours as a theme shows them on a terminal with this palette, with its background.
    fn sides(theme: Theme, palette: &Palette) -> ([Rgb; 2], Rgb) {
        let sides = [Mark::Support, Mark::Oppose].map(|mark| shown(theme, Meaning::Side(mark), palette));
        let ground = theme.ground().map_or(palette.ground, |(_, ground)| palette.rgb(ground, palette.ground));
        (sides, ground)
    }

    #[test]
    fn the_two_sides_are_readable_and_stay_apart_for_every_kind_of_colour_vision() {
        let own = [(Look::Light, &LIGHT), (Look::Dark, &DARK), (Look::Terminal, &DARK)];
        let both = [&LIGHT, &DARK].map(|palette| (Theme::of(Look::Deuteranopia), palette));
        let shaded = own.into_iter().flat_map(|(look, palette)| {
            [Depth::Indexed, Depth::Millions].map(|depth| (Theme { look, depth }, palette))
        });
        let sixteen =
            TERMINALS.iter().map(|palette| (Theme { look: Look::Terminal, depth: Depth::Sixteen }, palette));
        for (theme, palette) in shaded.chain(both).chain(sixteen) {
            let ([support, oppose], ground) = sides(theme, palette);
            for side in [support, oppose] {
                let ratio = contrast(side, ground);
                assert!(ratio >= 3.0, "{theme:?}: {side} on {ground} has a contrast of {ratio:.2}");
            }
            for vision in Vision::ALL {
                let apart = difference(vision.sees(support), vision.sees(oppose));
                assert!(apart >= 20.0, "{theme:?}, {vision:?}: {support} and {oppose} are {apart:.0} apart");
            }
        }
    }

    #[test]
    fn cyan_and_magenta_of_common_terminals_would_not_stay_apart() {
        let least = |palette: &Palette| {
            let [cyan, magenta] = [6, 5].map(|i: usize| palette.sixteen[i]);
            let apart = Vision::ALL.map(|vision| difference(vision.sees(cyan), vision.sees(magenta)));
            apart.into_iter().fold(f64::MAX, f64::min)
        };
        assert!(TERMINALS.iter().filter(|palette| least(palette) < 20.0).count() >= 2);
    }

    #[test]
    fn only_sides_have_the_colours_of_sides() {
        for look in [Look::Terminal, Look::Light, Look::Dark, Look::Deuteranopia] {
            let theme = Theme::of(look);
            let ([support, oppose], _) = sides(theme, &DARK);
            let others = (0..6).flat_map(|i| [Meaning::Value(i), Meaning::Lane(i)]);
            for meaning in others.chain([Meaning::Over, Meaning::Under, Meaning::Warn, Meaning::Title]) {
                let colour = shown(theme, meaning, &DARK);
                assert!(colour != support && colour != oppose, "{look:?} {meaning:?}: {colour}");
            }
        }
    }

    #[test]
    fn a_stronger_share_has_a_stronger_background_on_which_its_figure_is_readable() {
        for (look, palette) in [(Look::Light, &LIGHT), (Look::Dark, &DARK), (Look::Terminal, &DARK)] {
            let mut before = 0.0;
            for step in 0..=10 {
                let style = Theme::of(look).heat(f64::from(step) / 10.0);
                let [ink, shade] =
                    [style.fg, style.bg].map(|colour| palette.rgb(colour.unwrap(), palette.text));
                assert!(contrast(ink, shade) >= 4.0, "{look:?} {step}: {ink} on {shade}");
                let apart = difference(shade, palette.ground);
                assert!(apart >= before, "{look:?} {step}");
                before = apart;
            }
            let plain = Theme { look, depth: Depth::Sixteen };
            assert_ne!(plain.heat(1.0), plain.heat(0.5));
            assert_ne!(plain.heat(0.5), plain.heat(0.0));
            assert_eq!(Theme::of(look).heat(f64::NAN), Theme::of(look).heat(0.0));
        }
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
