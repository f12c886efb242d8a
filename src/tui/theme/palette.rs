//! Ratatui's colours outside a terminal.

use std::fmt;

use ratatui::style::Color;

/// An sRGB colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rgb(pub u8, pub u8, pub u8);

impl Rgb {
    /// Mixes `percent` of this colour with the rest of `ground`.
    pub fn over(self, ground: Rgb, percent: u8) -> Rgb {
        let mix = |own: u8, other: u8| {
            let percent = u32::from(percent.min(100));
            // Never above 255: a weighted mean of two bytes.
            ((u32::from(own) * percent + u32::from(other) * (100 - percent)) / 100) as u8
        };
        Rgb(mix(self.0, ground.0), mix(self.1, ground.1), mix(self.2, ground.2))
    }
}

impl fmt::Display for Rgb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{:02x}{:02x}{:02x}", self.0, self.1, self.2)
    }
}

/// A terminal's colours.
#[derive(Clone, Copy, Debug)]
pub struct Palette {
    /// Text without a colour of its own.
    pub text: Rgb,
    /// The background.
    pub ground: Rgb,
    /// The sixteen colours in the terminal's order.
    pub sixteen: [Rgb; 16],
}

/// Light on dark; SVG and PNG always use this.
pub const DARK: Palette = Palette {
    text: Rgb(0xd6, 0xda, 0xe2),
    ground: Rgb(0x15, 0x18, 0x1e),
    sixteen: [
        Rgb(0x2b, 0x30, 0x3b),
        Rgb(0xe0, 0x6c, 0x75),
        Rgb(0x8c, 0xc2, 0x65),
        Rgb(0xe0, 0xb0, 0x55),
        Rgb(0x6c, 0xa8, 0xf0),
        Rgb(0xd3, 0x7f, 0xe0),
        Rgb(0x4f, 0xc1, 0xc9),
        Rgb(0xb4, 0xba, 0xc5),
        Rgb(0x78, 0x80, 0x8f),
        Rgb(0xff, 0x8f, 0x97),
        Rgb(0xa9, 0xde, 0x83),
        Rgb(0xff, 0xd0, 0x7a),
        Rgb(0x95, 0xc4, 0xff),
        Rgb(0xed, 0xa6, 0xf7),
        Rgb(0x7f, 0xe0, 0xe6),
        Rgb(0xff, 0xff, 0xff),
    ],
};

/// Dark on light, for readers who prefer it.
pub const LIGHT: Palette = Palette {
    text: Rgb(0x22, 0x26, 0x2e),
    ground: Rgb(0xfb, 0xfb, 0xf9),
    sixteen: [
        Rgb(0x22, 0x26, 0x2e),
        Rgb(0xb4, 0x23, 0x2f),
        Rgb(0x2f, 0x70, 0x1b),
        Rgb(0x86, 0x5b, 0x00),
        Rgb(0x1f, 0x5d, 0xb8),
        Rgb(0x93, 0x2d, 0xa3),
        Rgb(0x00, 0x6b, 0x75),
        Rgb(0x6b, 0x72, 0x80),
        Rgb(0x58, 0x60, 0x6e),
        Rgb(0xc9, 0x3a, 0x45),
        Rgb(0x3b, 0x7d, 0x26),
        Rgb(0x8f, 0x66, 0x08),
        Rgb(0x2f, 0x6f, 0xce),
        Rgb(0xa5, 0x40, 0xb5),
        Rgb(0x0a, 0x78, 0x82),
        Rgb(0xe4, 0xe6, 0xea),
    ],
};

/// How a colour is chosen from a palette.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The default for text or background.
    Default,
    /// One of the palette's sixteen colours, by index.
    Named(usize),
    /// The same colour in every palette.
    Fixed(Rgb),
}

/// Returns how `colour` is chosen.
pub fn choice(colour: Color) -> Choice {
    match colour {
        Color::Reset => Choice::Default,
        Color::Black => Choice::Named(0),
        Color::Red => Choice::Named(1),
        Color::Green => Choice::Named(2),
        Color::Yellow => Choice::Named(3),
        Color::Blue => Choice::Named(4),
        Color::Magenta => Choice::Named(5),
        Color::Cyan => Choice::Named(6),
        Color::Gray => Choice::Named(7),
        Color::DarkGray => Choice::Named(8),
        Color::LightRed => Choice::Named(9),
        Color::LightGreen => Choice::Named(10),
        Color::LightYellow => Choice::Named(11),
        Color::LightBlue => Choice::Named(12),
        Color::LightMagenta => Choice::Named(13),
        Color::LightCyan => Choice::Named(14),
        Color::White => Choice::Named(15),
        Color::Rgb(r, g, b) => Choice::Fixed(Rgb(r, g, b)),
        Color::Indexed(i) => match i {
            0..16 => Choice::Named(usize::from(i)),
            16..232 => Choice::Fixed(cube(i - 16)),
            232.. => {
                let level = 8 + 10 * (i - 232);
                Choice::Fixed(Rgb(level, level, level))
            }
        },
    }
}

/// Returns a colour of xterm's cube of six levels per channel.
fn cube(i: u8) -> Rgb {
    let level = |n: u8| if n == 0 { 0 } else { 55 + 40 * n };
    Rgb(level(i / 36), level(i / 6 % 6), level(i % 6))
}

impl Palette {
    /// Returns `colour` in this palette, or `default` if it names no colour.
    pub fn rgb(&self, colour: Color, default: Rgb) -> Rgb {
        match choice(colour) {
            Choice::Default => default,
            Choice::Named(i) => self.sixteen.get(i).copied().unwrap_or(default),
            Choice::Fixed(rgb) => rgb,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_below_sixteen_is_the_named_colour() {
        assert_eq!(choice(Color::Indexed(6)), choice(Color::Cyan));
        assert_eq!(DARK.rgb(Color::Indexed(15), DARK.text), DARK.sixteen[15]);
    }

    #[test]
    fn the_rest_of_the_256_follow_xterm() {
        assert_eq!(choice(Color::Indexed(16)), Choice::Fixed(Rgb(0, 0, 0)));
        assert_eq!(choice(Color::Indexed(202)), Choice::Fixed(Rgb(255, 95, 0)));
        assert_eq!(choice(Color::Indexed(231)), Choice::Fixed(Rgb(255, 255, 255)));
        assert_eq!(choice(Color::Indexed(255)), Choice::Fixed(Rgb(238, 238, 238)));
    }

    #[test]
    fn every_colour_but_black_and_white_is_readable_on_the_background() {
        let light = |c: Rgb| {
            let part = |b: u8| {
                let b = f64::from(b) / 255.0;
                if b <= 0.04045 { b / 12.92 } else { ((b + 0.055) / 1.055).powf(2.4) }
            };
            0.2126 * part(c.0) + 0.7152 * part(c.1) + 0.0722 * part(c.2)
        };
        for palette in [DARK, LIGHT] {
            let ground = light(palette.ground);
            for colour in palette.sixteen[1..15].iter().chain([&palette.text]) {
                let (high, low) = (light(*colour).max(ground), light(*colour).min(ground));
                let contrast = (high + 0.05) / (low + 0.05);
                assert!(contrast >= 4.0, "{colour} on {}: {contrast:.2}", palette.ground);
            }
        }
    }
}
