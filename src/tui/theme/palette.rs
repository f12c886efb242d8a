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

/// Returns one channel in linear light (IEC 61966-2-1).
fn linear(channel: u8) -> f64 {
    let c = f64::from(channel) / 255.0;
    if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
}

/// Returns the relative luminance of WCAG 2, from 0 to 1.
pub fn luminance(Rgb(r, g, b): Rgb) -> f64 {
    0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b)
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
        for palette in [DARK, LIGHT] {
            for colour in palette.sixteen[1..15].iter().chain([&palette.text]) {
                let contrast = vision::contrast(*colour, palette.ground);
                assert!(contrast >= 4.0, "{colour} on {}: {contrast:.2}", palette.ground);
            }
        }
    }

    #[test]
    fn the_difference_of_two_colours_is_that_of_the_published_test_data() {
        // Pairs 1, 17 and 25 of Sharma, Wu and Dalal 2005.
        let pairs = [
            ([50.0, 2.6772, -79.7751], [50.0, 0.0, -82.7485], 2.0425),
            ([50.0, 2.5, 0.0], [73.0, 25.0, -18.0], 27.1492),
            ([60.2574, -34.0099, 36.2677], [60.4626, -34.1751, 39.4387], 1.2644),
        ];
        for (one, other, expected) in pairs {
            let found = vision::ciede2000(one, other);
            assert!((found - expected).abs() < 1e-4, "{found}");
        }
    }
}

/// How colours are seen: contrast, colour vision deficiencies, and differences.
#[cfg(test)]
pub(crate) mod vision {
    use super::{Palette, Rgb, linear, luminance};

    /// Returns the contrast ratio of WCAG 2.
    pub fn contrast(a: Rgb, b: Rgb) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    /// A kind of colour vision.
    #[derive(Clone, Copy, Debug)]
    pub enum Vision {
        Common,
        Protanopia,
        Deuteranopia,
        Tritanopia,
    }

    impl Vision {
        pub const ALL: [Vision; 4] =
            [Vision::Common, Vision::Protanopia, Vision::Deuteranopia, Vision::Tritanopia];

        /// Returns a colour as it is seen, in linear light: the matrices of Machado, Oliveira and Fernandes 2009 for severity 1.
        pub fn sees(self, Rgb(r, g, b): Rgb) -> [f64; 3] {
            let matrix = match self {
                Vision::Common => [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
                Vision::Protanopia => [
                    [0.152286, 1.052583, -0.204868],
                    [0.114503, 0.786281, 0.099216],
                    [-0.003882, -0.048116, 1.051998],
                ],
                Vision::Deuteranopia => [
                    [0.367322, 0.860646, -0.227968],
                    [0.280085, 0.672501, 0.047413],
                    [-0.011820, 0.042940, 0.968881],
                ],
                Vision::Tritanopia => [
                    [1.255528, -0.076749, -0.178779],
                    [-0.078411, 0.930809, 0.147602],
                    [0.004733, 0.691367, 0.303900],
                ],
            };
            let light = [r, g, b].map(linear);
            matrix.map(|row| row.iter().zip(light).map(|(a, x)| a * x).sum::<f64>().clamp(0.0, 1.0))
        }
    }

    /// Returns CIELAB under D65.
    fn lab([r, g, b]: [f64; 3]) -> [f64; 3] {
        let xyz = [
            (0.4124564 * r + 0.3575761 * g + 0.1804375 * b) / 0.95047,
            0.2126729 * r + 0.7151522 * g + 0.0721750 * b,
            (0.0193339 * r + 0.1191920 * g + 0.9503041 * b) / 1.08883,
        ];
        let [x, y, z] = xyz
            .map(|t: f64| if t > 216.0 / 24389.0 { t.cbrt() } else { (24389.0 / 27.0 * t + 16.0) / 116.0 });
        [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
    }

    /// Something that has linear light.
    pub trait Seen {
        fn light(self) -> [f64; 3];
    }

    impl Seen for Rgb {
        fn light(self) -> [f64; 3] {
            Vision::Common.sees(self)
        }
    }

    impl Seen for [f64; 3] {
        fn light(self) -> [f64; 3] {
            self
        }
    }

    /// Returns ΔE of CIEDE2000.
    pub fn difference<T: Seen>(one: T, other: T) -> f64 {
        ciede2000(lab(one.light()), lab(other.light()))
    }

    /// Returns ΔE of two colours in CIELAB, by Sharma, Wu and Dalal 2005.
    pub fn ciede2000([l1, a1, b1]: [f64; 3], [l2, a2, b2]: [f64; 3]) -> f64 {
        let power = |c: f64| (c.powi(7) / (c.powi(7) + 25f64.powi(7))).sqrt();
        let grey = 0.5 * (1.0 - power((a1.hypot(b1) + a2.hypot(b2)) / 2.0));
        let (a1, a2) = (a1 * (1.0 + grey), a2 * (1.0 + grey));
        let (c1, c2) = (a1.hypot(b1), a2.hypot(b2));
        let hue = |a: f64, b: f64| b.atan2(a).to_degrees().rem_euclid(360.0);
        let (h1, h2) = (hue(a1, b1), hue(a2, b2));
        let turn = match h2 - h1 {
            _ if c1 * c2 == 0.0 => 0.0,
            d if d > 180.0 => d - 360.0,
            d if d < -180.0 => d + 360.0,
            d => d,
        };
        let mean_hue = match h1 + h2 {
            sum if c1 * c2 == 0.0 => sum,
            sum if (h1 - h2).abs() <= 180.0 => sum / 2.0,
            sum if sum < 360.0 => (sum + 360.0) / 2.0,
            sum => (sum - 360.0) / 2.0,
        };
        let (mean_l, mean_c) = ((l1 + l2) / 2.0, (c1 + c2) / 2.0);
        let cos = |degrees: f64| degrees.to_radians().cos();
        let t =
            1.0 - 0.17 * cos(mean_hue - 30.0) + 0.24 * cos(2.0 * mean_hue) + 0.32 * cos(3.0 * mean_hue + 6.0)
                - 0.20 * cos(4.0 * mean_hue - 63.0);
        let off = (mean_l - 50.0).powi(2);
        let l = (l2 - l1) / (1.0 + 0.015 * off / (20.0 + off).sqrt());
        let c = (c2 - c1) / (1.0 + 0.045 * mean_c);
        let h = 2.0 * (c1 * c2).sqrt() * (turn / 2.0).to_radians().sin() / (1.0 + 0.015 * mean_c * t);
        let angle = 60.0 * (-((mean_hue - 275.0) / 25.0).powi(2)).exp();
        let rotation = -2.0 * power(mean_c) * angle.to_radians().sin();
        (l * l + c * c + h * h + rotation * c * h).sqrt()
    }

    const fn terminal(ground: u32, sixteen: [u32; 16]) -> Palette {
        const fn rgb(hex: u32) -> Rgb {
            Rgb((hex >> 16) as u8, (hex >> 8) as u8, hex as u8)
        }
        let mut all = [Rgb(0, 0, 0); 16];
        let mut i = 0;
        while i < all.len() {
            all[i] = rgb(sixteen[i]);
            i += 1;
        }
        Palette { text: all[7], ground: rgb(ground), sixteen: all }
    }

    /// The sixteen colours of xterm, of VS Code (dark) and of Solarized (dark), each with its background.
    pub const TERMINALS: [Palette; 3] = [
        terminal(
            0x000000,
            [
                0x000000, 0xcd0000, 0x00cd00, 0xcdcd00, 0x0000ee, 0xcd00cd, 0x00cdcd, 0xe5e5e5, 0x7f7f7f,
                0xff0000, 0x00ff00, 0xffff00, 0x5c5cff, 0xff00ff, 0x00ffff, 0xffffff,
            ],
        ),
        terminal(
            0x1e1e1e,
            [
                0x000000, 0xcd3131, 0x0dbc79, 0xe5e510, 0x2472c8, 0xbc3fbc, 0x11a8cd, 0xe5e5e5, 0x666666,
                0xf14c4c, 0x23d18b, 0xf5f543, 0x3b8eea, 0xd670d6, 0x29b8db, 0xe5e5e5,
            ],
        ),
        terminal(
            0x002b36,
            [
                0x073642, 0xdc322f, 0x859900, 0xb58900, 0x268bd2, 0xd33682, 0x2aa198, 0xeee8d5, 0x002b36,
                0xcb4b16, 0x586e75, 0x657b83, 0x839496, 0x6c71c4, 0x93a1a1, 0xfdf6e3,
            ],
        ),
    ];
}
