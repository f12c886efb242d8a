//! What ratatui's colours look like outside a terminal.

use std::fmt;

use ratatui::style::Color;

/// A colour of a screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rgb(pub u8, pub u8, pub u8);

impl Rgb {
    /// This colour, with `percent` of it left and the rest of `ground`.
    pub fn over(self, ground: Rgb, percent: u8) -> Rgb {
        let mix = |ours: u8, theirs: u8| {
            let percent = u32::from(percent.min(100));
            // Never above 255: a weighted mean of two bytes.
            ((u32::from(ours) * percent + u32::from(theirs) * (100 - percent)) / 100) as u8
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
    /// Of text without a colour of its own.
    pub text: Rgb,
    /// Behind everything.
    pub ground: Rgb,
    /// The sixteen, in the terminal's order.
    pub sixteen: [Rgb; 16],
}

/// Light on dark; SVG and PNG always use it.
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

/// Dark on light, for readers of the page who prefer it.
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

/// What a colour asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Whatever is usual in that place.
    Usual,
    /// One of the sixteen, which the palette decides.
    Named(usize),
    /// Exactly this, in any palette.
    Fixed(Rgb),
}

/// What `colour` asks for.
pub fn asked(colour: Color) -> Asked {
    match colour {
        Color::Reset => Asked::Usual,
        Color::Black => Asked::Named(0),
        Color::Red => Asked::Named(1),
        Color::Green => Asked::Named(2),
        Color::Yellow => Asked::Named(3),
        Color::Blue => Asked::Named(4),
        Color::Magenta => Asked::Named(5),
        Color::Cyan => Asked::Named(6),
        Color::Gray => Asked::Named(7),
        Color::DarkGray => Asked::Named(8),
        Color::LightRed => Asked::Named(9),
        Color::LightGreen => Asked::Named(10),
        Color::LightYellow => Asked::Named(11),
        Color::LightBlue => Asked::Named(12),
        Color::LightMagenta => Asked::Named(13),
        Color::LightCyan => Asked::Named(14),
        Color::White => Asked::Named(15),
        Color::Rgb(r, g, b) => Asked::Fixed(Rgb(r, g, b)),
        Color::Indexed(i) => match i {
            0..16 => Asked::Named(usize::from(i)),
            16..232 => Asked::Fixed(cube(i - 16)),
            232.. => {
                let level = 8 + 10 * (i - 232);
                Asked::Fixed(Rgb(level, level, level))
            }
        },
    }
}

/// xterm's cube of six levels a channel.
fn cube(i: u8) -> Rgb {
    let level = |n: u8| if n == 0 { 0 } else { 55 + 40 * n };
    Rgb(level(i / 36), level(i / 6 % 6), level(i % 6))
}

impl Palette {
    /// `colour` in this palette, `usual` where it asks for nothing.
    pub fn rgb(&self, colour: Color, usual: Rgb) -> Rgb {
        match asked(colour) {
            Asked::Usual => usual,
            Asked::Named(i) => self.sixteen.get(i).copied().unwrap_or(usual),
            Asked::Fixed(rgb) => rgb,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_below_sixteen_is_the_named_colour() {
        assert_eq!(asked(Color::Indexed(6)), asked(Color::Cyan));
        assert_eq!(DARK.rgb(Color::Indexed(15), DARK.text), DARK.sixteen[15]);
    }

    #[test]
    fn the_rest_of_the_256_follow_xterm() {
        assert_eq!(asked(Color::Indexed(16)), Asked::Fixed(Rgb(0, 0, 0)));
        assert_eq!(asked(Color::Indexed(202)), Asked::Fixed(Rgb(255, 95, 0)));
        assert_eq!(asked(Color::Indexed(231)), Asked::Fixed(Rgb(255, 255, 255)));
        assert_eq!(asked(Color::Indexed(255)), Asked::Fixed(Rgb(238, 238, 238)));
    }

    #[test]
    fn text_of_any_colour_but_black_or_white_can_be_read_on_its_ground() {
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
