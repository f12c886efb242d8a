//! From values to places on the sheet, and which values are named along the way.

/// Values beyond this are drawn at it, so that a span never overflows.
const FAR: f64 = 1e12;

/// An axis.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    log: bool,
}

impl Scale {
    /// Values `low`–`high` at the places `from`–`to`.
    pub fn linear((low, high): (f64, f64), (from, to): (f64, f64)) -> Self {
        Scale { low, high, from, to, log: false }
    }

    /// The same with equal ratios equally far; both ends must be above 0.
    pub fn log(values: (f64, f64), places: (f64, f64)) -> Self {
        Scale { log: true, ..Scale::linear(values, places) }
    }

    /// Where a value stands; the nearest end for one outside.
    pub fn at(&self, value: f64) -> f64 {
        let map = |x: f64| if self.log { x.ln() } else { x };
        let span = map(self.high) - map(self.low);
        let inside = value.clamp(self.low, self.high);
        let part = if span > 0.0 { (map(inside) - map(self.low)) / span } else { 0.5 };
        self.from + part * (self.to - self.from)
    }
}

/// A range round all the values that are numbers, with round ends and, where it is near, with 0; none without any.
pub fn range(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let finite = values.filter(|x| x.is_finite()).map(|x| x.clamp(-FAR, FAR));
    let (low, high) = finite
        .fold(None, |ends: Option<(f64, f64)>, x| Some(ends.map_or((x, x), |(a, b)| (a.min(x), b.max(x)))))?;
    // Shares that are all about the same would otherwise look as if they differed widely.
    let low = if low > 0.0 && low < 0.6 * high { 0.0 } else { low };
    let least = (high.abs().max(low.abs()) * 0.1).max(0.01);
    let below = if low >= 0.0 { (low - least).max(0.0) } else { low - least };
    let (low, high) = if high - low < least { (below, high + least) } else { (low, high) };
    let step = step(low, high);
    Some(((low / step).floor() * step, (high / step).ceil() * step))
}

/// The least round step with at most about six in the range.
fn step(low: f64, high: f64) -> f64 {
    let raw = (high - low) / 6.0;
    let magnitude = 10f64.powf(raw.log10().floor());
    let round = [1.0, 2.0, 5.0].into_iter().find(|m| m * magnitude >= raw * 0.999).unwrap_or(10.0);
    round * magnitude
}

/// Round values within the range, with their texts.
pub fn ticks((low, high): (f64, f64)) -> Vec<(f64, String)> {
    let step = step(low, high);
    let decimals = (-(step * 1.001).log10().floor()).clamp(0.0, 6.0) as usize;
    let (first, last) = ((low / step - 0.001).ceil() as i64, (high / step + 0.001).floor() as i64);
    // Adding 0 turns the -0 of a range below 0 into 0.
    let tick = |i| i as f64 * step + 0.0;
    (first..=last).take(20).map(tick).map(|x| (x, format!("{x:.decimals$}"))).collect()
}

/// 1, 2, 5, 10, … within the range.
pub fn log_ticks((low, high): (f64, f64)) -> Vec<(f64, String)> {
    let rounds = (0..13).flat_map(|power| [1.0, 2.0, 5.0].map(|x| x * 10f64.powi(power)));
    rounds.filter(|x| (low..=high).contains(x)).map(|x| (x, plain(x))).collect()
}

/// A value without needless decimals.
pub fn plain(value: f64) -> String {
    let text = format!("{value:.4}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".into() } else { text.into() }
}

/// Those of the values named on an axis that stand at least `gap` from the one before.
pub fn spaced(scale: &Scale, ticks: Vec<(f64, String)>, gap: f64) -> Vec<(f64, String)> {
    let mut kept: Vec<(f64, String)> = Vec::new();
    for (value, text) in ticks {
        if kept.last().is_none_or(|(last, _)| (scale.at(value) - scale.at(*last)).abs() >= gap) {
            kept.push((value, text));
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(ticks: Vec<(f64, String)>) -> Vec<String> {
        ticks.into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn values_outside_stand_at_the_nearest_end() {
        let scale = Scale::linear((-1.0, 1.0), (100.0, 300.0));
        assert_eq!([scale.at(-9.0), scale.at(0.0), scale.at(9.0)], [100.0, 200.0, 300.0]);
        assert_eq!(Scale::linear((2.0, 2.0), (0.0, 10.0)).at(2.0), 5.0);
    }

    #[test]
    fn a_tenfold_is_equally_far_everywhere_on_a_log_axis() {
        let scale = Scale::log((1.0, 100.0), (0.0, 200.0));
        assert_eq!(scale.at(10.0).round(), 100.0);
        assert_eq!(texts(log_ticks((1.0, 100.0))), ["1", "2", "5", "10", "20", "50", "100"]);
    }

    #[test]
    fn ticks_are_round_and_have_the_decimals_they_need() {
        assert_eq!(texts(ticks((0.0, 1.0))), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(texts(ticks((-0.1, 0.1))), ["-0.10", "-0.05", "0.00", "0.05", "0.10"]);
        assert_eq!(texts(ticks((0.0, 30.0))), ["0", "5", "10", "15", "20", "25", "30"]);
    }

    #[test]
    fn a_range_is_round_holds_all_values_and_0_where_it_is_near() {
        assert_eq!(range([0.11, 0.93].into_iter()), Some((0.0, 1.0)));
        assert_eq!(range([f64::NAN].into_iter()), None);
        let (low, high) = range([0.5].into_iter()).unwrap();
        assert!(low < 0.5 && 0.5 < high);
    }

    #[test]
    fn crowded_ticks_are_left_out() {
        let scale = Scale::linear((0.0, 10.0), (0.0, 100.0));
        let all = (0..=10).map(|x| (f64::from(x), plain(f64::from(x)))).collect();
        assert_eq!(texts(spaced(&scale, all, 25.0)), ["0", "3", "6", "9"]);
    }
}
