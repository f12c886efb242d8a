//! The looks, and what each shows its colours as: the terminal's own sixteen, their like on a ground of the look's own, or two
//! that are told apart without red and green.

use clap::ValueEnum;
use ratatui::style::Color;

use crate::tui::export::palette::{DARK, LIGHT, Palette, Rgb};

/// How the interface looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Look {
    /// The terminal's own sixteen colours on its own ground.
    #[default]
    Terminal,
    /// Dark on a light ground.
    Light,
    /// Light on a dark ground.
    Dark,
    /// Blue and orange, on the terminal's own ground.
    Deuteranopia,
    /// Weight and underlines alone.
    Mono,
}

/// How many colours a terminal shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Its own sixteen.
    Sixteen,
    /// The 256 of xterm.
    Indexed,
    /// All of them.
    Millions,
}

impl Depth {
    /// What a terminal says of itself in `COLORTERM` and `TERM`. Windows Terminal says nothing there and shows all.
    pub fn told(colorterm: Option<&str>, term: Option<&str>, windows_terminal: bool) -> Self {
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

/// A colour as a look has it: one of the sixteen, and its own shade where it is not the terminal's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hue(Color, Option<Rgb>);

const fn own(colour: Color) -> Hue {
    Hue(colour, None)
}

const fn shade(colour: Color, r: u8, g: u8, b: u8) -> Hue {
    Hue(colour, Some(Rgb(r, g, b)))
}

/// What is less important on a ground of one's own.
pub(super) const GREY: Hue = own(Color::DarkGray);

/// Which colour stands for what.
pub(super) struct Hues {
    pub support: Hue,
    pub oppose: Hue,
    pub several: Hue,
    pub over: Hue,
    pub under: Hue,
    pub warn: Hue,
    /// What tells perspectives of many, and values, apart beside their letters and names.
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

// Of a lightness that is read on a dark ground and on a light one.
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
    /// Its name, in a configuration and for `--theme`.
    pub fn name(self) -> &'static str {
        match self {
            Look::Terminal => "terminal",
            Look::Light => "light",
            Look::Dark => "dark",
            Look::Deuteranopia => "deuteranopia",
            Look::Mono => "mono",
        }
    }

    pub(super) fn hues(self) -> &'static Hues {
        if self == Look::Deuteranopia { &BLUE_AND_ORANGE } else { &SIXTEEN }
    }

    fn palette(self) -> Option<&'static Palette> {
        match self {
            Look::Light => Some(&LIGHT),
            Look::Dark => Some(&DARK),
            Look::Terminal | Look::Deuteranopia | Look::Mono => None,
        }
    }

    /// What a hue is shown as; none where there are no colours.
    pub(super) fn colour(self, Hue(colour, shade): Hue, depth: Depth) -> Option<Color> {
        if self == Look::Mono {
            return None;
        }
        let shade = shade.or_else(|| self.palette().map(|palette| palette.rgb(colour, palette.text)));
        Some(shade.and_then(|shade| deep(shade, depth)).unwrap_or(colour))
    }

    /// Text and ground, where the look has its own and the terminal can show them.
    pub(super) fn ground(self, depth: Depth) -> Option<(Color, Color)> {
        let palette = self.palette()?;
        deep(palette.text, depth).zip(deep(palette.ground, depth))
    }
}

/// A shade as a terminal of that depth shows it; none if it has sixteen colours.
fn deep(shade: Rgb, depth: Depth) -> Option<Color> {
    match depth {
        Depth::Sixteen => None,
        Depth::Indexed => Some(Color::Indexed(nearest(shade))),
        Depth::Millions => Some(Color::Rgb(shade.0, shade.1, shade.2)),
    }
}

/// The nearest of xterm's 256 that no user changes: the cube and the greys behind the first sixteen.
fn nearest(shade: Rgb) -> u8 {
    let distance = |i: &u8| {
        let Rgb(r, g, b) = DARK.rgb(Color::Indexed(*i), DARK.text);
        let square = |a: u8, b: u8| u32::from(a.abs_diff(b)).pow(2);
        square(r, shade.0) + square(g, shade.1) + square(b, shade.2)
    };
    (16..=255).min_by_key(distance).unwrap_or(16)
}

#[cfg(test)]
mod tests;
