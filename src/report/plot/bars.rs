//! Shares in the top k against shares of the corpus: which sources or attributes a lane favours.

use super::axis::{Scale, range, ticks};
use super::rows::{Rows, Side};
use super::shape::hatch;
use super::sheet::{NAME, Sheet, empty, shorten};
use crate::report::marks::share;

/// A value of an attribute.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Group {
    /// The value: a country, an outlet, a side.
    pub name: String,
    /// Its share of the corpus.
    pub corpus: f64,
    /// Its share in the top k for each lane.
    pub top: Vec<(String, f64)>,
}

const BAR: f64 = 14.0;

fn number(value: f64) -> String {
    if value.is_finite() { share(value.clamp(-9.0, 9.0)) } else { "–".into() }
}

fn numbers(top: f64, corpus: f64) -> [String; 2] {
    let ratio = top / corpus;
    let known = ratio.is_finite() && corpus > 0.0 && (0.0..1e6).contains(&ratio);
    let times = if known { format!("×{ratio:.2}") } else { "–".into() };
    [number(top), times]
}

/// A bar a lane under each value's name; a mark across them stands at the share of the corpus.
pub fn bars(groups: &[Group]) -> String {
    let label = "Share of each value in the top k against its share of the corpus";
    let inside = |x: f64| if x.is_finite() { x.clamp(0.0, 1.0) } else { 0.0 };
    let shares = groups.iter().flat_map(|group| {
        group.top.iter().map(|(_, top)| *top).chain([group.corpus]).filter(|x| x.is_finite()).map(inside)
    });
    // From 0, as the length of a bar is what is read.
    let Some((_, high)) = range(shares.chain([0.0])).filter(|_| !groups.is_empty()) else {
        return empty(label);
    };
    let values = (0.0, high.min(1.0));
    let names = groups.iter().flat_map(|group| {
        std::iter::once(group.name.as_str()).chain(group.top.iter().map(|(lane, _)| lane.as_str()))
    });
    let layout = Rows::new(names, 44.0, 24.0);
    let scale = Scale::linear(values, layout.span);
    let texts = groups.iter().flat_map(|group| {
        let lanes = group.top.iter().map(|(_, top)| numbers(*top, group.corpus).to_vec());
        std::iter::once(Vec::new()).chain(lanes)
    });
    let side = Side::new(&["top k", "times"], texts.collect());

    let mut sheet = Sheet::default();
    layout.axis(&mut sheet, &scale, &ticks(values), "share", &side);
    layout.side_heads(&mut sheet, &side);
    legend(&mut sheet, layout.span.0);
    let mut row = 0;
    for group in groups {
        let corpus = scale.at(inside(group.corpus));
        let first = row;
        sheet.text((14.0, layout.middle(row) + 4.0), "strong", &shorten(&group.name, NAME));
        let text = format!("corpus {}", number(group.corpus));
        // At the far end the text would run into the numbers.
        if corpus > layout.span.1 - 80.0 {
            sheet.text((corpus - 6.0, layout.middle(row) + 4.0), "mono soft end", &text);
        } else {
            sheet.text((corpus + 6.0, layout.middle(row) + 4.0), "mono soft", &text);
        }
        for (lane, top) in &group.top {
            row += 1;
            sheet.open("lane", &format!("{}, {lane}: {}", group.name, numbers(*top, group.corpus).join(" ")));
            layout.name(&mut sheet, row, lane);
            bar(&mut sheet, layout.middle(row), (layout.span.0, scale.at(inside(*top)), corpus));
            layout.side(&mut sheet, row, &side);
            sheet.close();
        }
        if group.corpus.is_finite() {
            let (from, to) = (layout.middle(first) - 9.0, layout.middle(row) + 10.0);
            sheet.line((corpus, from), (corpus, to), "mark");
        }
        row += 1;
    }
    sheet.finish(layout.size(&side), label)
}

/// What it has of its share, then what is over or what is lacking.
fn bar(sheet: &mut Sheet, middle: f64, (from, top, corpus): (f64, f64, f64)) {
    let y = middle - BAR / 2.0;
    sheet.rect((from, y), (top.min(corpus) - from, BAR), "neither");
    if top > corpus {
        sheet.rect((corpus, y), (top - corpus, BAR), "support");
    } else if top < corpus {
        sheet.path(&hatch((top, y), (corpus - top, BAR), true), "lack");
        sheet.rect((top, y), (corpus - top, BAR), "edge");
    }
    sheet.rect((from, y), (top - from, BAR), "edge");
}

fn legend(sheet: &mut Sheet, left: f64) {
    let bar_of = |sheet: &mut Sheet, x: f64, top: f64, corpus: f64| {
        bar(sheet, 20.0, (left + x, left + x + top, left + x + corpus));
    };
    bar_of(sheet, 0.0, 26.0, 12.0);
    sheet.text((left + 33.0, 24.0), "", "more than its share");
    bar_of(sheet, 168.0, 8.0, 26.0);
    sheet.text((left + 201.0, 24.0), "", "less");
    sheet.line((left + 246.0, 12.0), (left + 246.0, 28.0), "mark");
    sheet.text((left + 253.0, 24.0), "", "share of the corpus");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(corpus: f64, top: f64) -> Group {
        Group { name: "US".into(), corpus, top: vec![("bm25".into(), top)] }
    }

    #[test]
    fn shares_and_how_many_times_the_corpus_appear() {
        let svg = bars(&[group(0.3, 0.45)]);
        assert!(
            svg.contains(">.45</text>")
                && svg.contains(">×1.50</text>")
                && svg.contains(">corpus .30</text>"),
            "{svg}"
        );
    }

    #[test]
    fn a_value_missing_from_the_corpus_has_no_ratio() {
        assert_eq!(numbers(0.2, 0.0), [".20", "–"]);
        assert_eq!(numbers(f64::NAN, 0.5), ["–", "–"]);
    }

    #[test]
    fn a_share_beyond_the_axis_ends_at_it() {
        let ends =
            |svg: &str| svg.lines().filter(|line| line.contains("y=\"73.0\"")).map(String::from).collect();
        let (over, full): (Vec<_>, Vec<_>) =
            (ends(&bars(&[group(0.3, 7.0)])), ends(&bars(&[group(0.3, 1.0)])));
        assert_eq!(over, full);
    }
}
