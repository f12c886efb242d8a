use super::*;
use crate::report::marks::Mark;
use crate::tui::theme::{Meaning, Theme};

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
    let marks = [Mark::Support, Mark::Oppose, Mark::Several, Mark::None, Mark::Pending];
    all.extend(marks.map(Meaning::Side));
    all.extend((0..6).map(|i| Meaning::Side(Mark::Other(i))));
    all.extend((0..6).map(Meaning::Value));
    all
}

fn shown(theme: Theme, meaning: Meaning, palette: &Palette) -> Rgb {
    palette.rgb(theme.style(meaning).fg.unwrap_or(Color::Reset), palette.text)
}

#[test]
fn everything_can_be_read_on_the_looks_own_ground() {
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
fn blue_and_orange_can_be_read_on_a_dark_ground_and_on_a_light_one() {
    for Hue(_, shade) in [BLUE, ORANGE, GREYISH] {
        for ground in [DARK.ground, LIGHT.ground, Rgb(0, 0, 0), Rgb(255, 255, 255)] {
            let ratio = contrast(shade.unwrap(), ground);
            assert!(ratio >= 3.0, "{shade:?} on {ground}: {ratio:.2}");
        }
    }
}

/// What remains of a colour without the cones for green: Viénot, Brettel and Mollon 1999, in linear light.
fn without_green(Rgb(r, g, b): Rgb) -> [f64; 3] {
    let [r, g, b] = [r, g, b].map(linear);
    let red = 0.29275 * r + 0.70725 * g;
    [red, red, -0.02234 * r + 0.02234 * g + b]
}

#[test]
fn the_two_sides_stay_apart_without_the_cones_for_green() {
    let theme = Theme::of(Look::Deuteranopia);
    let apart = |a: Rgb, b: Rgb| {
        let (a, b) = (without_green(a), without_green(b));
        a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
    };
    let [support, oppose] =
        [Mark::Support, Mark::Oppose].map(|mark| shown(theme, Meaning::Side(mark), &DARK));
    assert!(apart(support, oppose) > 0.5, "{}", apart(support, oppose));
    // What this is measured against: a red and a green that anyone else tells apart at once.
    assert!(apart(Rgb(0xb0, 0x60, 0x30), Rgb(0x60, 0x80, 0x30)) < 0.1);
}

#[test]
fn a_terminal_of_sixteen_colours_keeps_its_own_and_its_ground() {
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
fn a_terminal_says_how_many_colours_it_has() {
    assert_eq!(Depth::told(Some("truecolor"), Some("xterm-256color"), false), Depth::Millions);
    assert_eq!(Depth::told(None, Some("xterm-256color"), false), Depth::Indexed);
    assert_eq!(Depth::told(Some(""), Some("linux"), false), Depth::Sixteen);
    assert_eq!(Depth::told(None, None, true), Depth::Millions);
    assert_eq!(Depth::told(None, Some("dumb"), false), Depth::Sixteen);
}

#[test]
fn the_nearest_of_256_colours_is_its_own() {
    assert_eq!(nearest(Rgb(255, 95, 0)), 202);
    assert_eq!(nearest(Rgb(238, 238, 238)), 255);
}
