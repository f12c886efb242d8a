//! Perspective-aware projection: scores a passage by the root of a query and its perspective instead of the whole query.
//!
//! After Zhao et al., "Beyond Relevance: Evaluate and Improve Retrievers on Perspective Awareness" (2024), section 3.1 and
//! Tables 4 and 8. `q` is the vector of the full query, `r` of its root, `p` of the perspective, `c` of a passage, and
//! `proj(x) = x − (x·p/‖p‖²) p` removes `p`. Passages have unit length, so every score follows from the three dot products of `c`
//! with `q`, `r` and `p`. Pure arithmetic: no texts, no models. May use: vector.

use std::fmt;
use std::str::FromStr;

use crate::vector::{dot, rounding};

/// A vector whose squared length, relative to the original, is below this is only rounding error.
const NEGLIGIBLE: f64 = 1e-6;

/// The parts of a query, as vectors of one encoder.
#[derive(Clone, Debug, PartialEq)]
pub struct Parts {
    /// The full query.
    pub q: Vec<f32>,
    /// The query without its perspective.
    pub r: Vec<f32>,
    /// The perspective.
    pub p: Perspective,
}

/// The vector of the perspective.
#[derive(Clone, Debug, PartialEq)]
pub enum Perspective {
    /// A text of its own.
    Text(Vec<f32>),
    /// The query itself: `cast` and `pap` use `q − r`, the other variants use `q`.
    Query,
    /// None: `cast` and `pap` use `q − r`, the other variants are impossible.
    Missing,
}

/// Why a query is ranked without projection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Degenerate {
    /// The perspective vector is zero.
    #[error("the perspective has no direction of its own, so nothing was projected")]
    NoDirection,
    /// Nothing of the query is left.
    #[error("nothing of the query is left without the perspective, so nothing was projected")]
    NothingLeft,
    /// The variant needs a perspective.
    #[error("there is no perspective to look from, so nothing was projected")]
    NoPerspective,
}

/// A query ready to score passages.
#[derive(Clone, Debug)]
pub struct Projection {
    variant: Variant,
    q: Vec<f32>,
    r: Vec<f32>,
    p: Vec<f32>,
    gram: Gram,
}

/// The dot products of a query's parts with each other.
#[derive(Clone, Copy, Debug, Default)]
struct Gram {
    qq: f64,
    rr: f64,
    pp: f64,
    qp: f64,
    rp: f64,
}

impl Projection {
    /// Prepares a query. If the variant is impossible, it ranks as [`Variant::None`], and the reason is returned.
    pub fn new(variant: Variant, parts: Parts) -> (Self, Option<Degenerate>) {
        let Parts { q, r, p } = parts;
        let contrast = || q.iter().zip(&r).map(|(q, r)| q - r).collect::<Vec<f32>>();
        let (p, missing) = match p {
            Perspective::Text(p) => (p, false),
            _ if variant.removes() => (contrast(), false),
            Perspective::Query => (q.clone(), false),
            Perspective::Missing => (vec![0.0; q.len()], variant != Variant::None),
        };
        let product = |a: &[f32], b: &[f32]| f64::from(dot(a, b));
        let gram = Gram {
            qq: product(&q, &q),
            rr: product(&r, &r),
            pp: product(&p, &p),
            qp: product(&q, &p),
            rp: product(&r, &p),
        };
        let degenerate = match variant {
            Variant::None => None,
            _ if missing => Some(Degenerate::NoPerspective),
            _ if gram.pp <= NEGLIGIBLE * gram.qq.max(gram.rr) => Some(Degenerate::NoDirection),
            _ if gram.left(variant) <= NEGLIGIBLE * gram.qq => Some(Degenerate::NothingLeft),
            _ => None,
        };
        let variant = if degenerate.is_some() { Variant::None } else { variant };
        (Projection { variant, q, r, p, gram }, degenerate)
    }

    /// The variant in effect: [`Variant::None`] if the requested one is impossible.
    pub fn variant(&self) -> Variant {
        self.variant
    }

    /// The score of a passage's vector, which has unit length: a cosine, or the sum of two or three cosines for the variants with sums.
    pub fn score(&self, c: &[f32]) -> f32 {
        let along = |x: &[f32]| f64::from(dot(x, c));
        let Gram { qq, rr, pp, qp, rp } = self.gram;
        let (qc, pc) = (along(&self.q), along(&self.p));
        let ratio = |top: f64, a: f64, b: f64| if a > 0.0 && b > 0.0 { top / (a * b).sqrt() } else { 0.0 };
        (match self.variant {
            Variant::None => ratio(qc, qq, 1.0),
            Variant::Add => ratio(along(&self.r) + pc, rr + 2.0 * rp + pp, 1.0),
            Variant::AddPlus => ratio(qc + pc, qq + 2.0 * qp + pp, 1.0),
            Variant::Concat => ratio(along(&self.r) + pp, rr + pp, 1.0 + pp),
            Variant::ConcatPlus => ratio(qc + pp, qq + pp, 1.0 + pp),
            Variant::Cast => ratio(qc - pc, qq - 2.0 * qp + pp, 1.0),
            Variant::CastPlus => ratio(qc - pc - qp + pp, qq - 2.0 * qp + pp, 1.0 - 2.0 * pc + pp),
            Variant::DualSum => ratio(along(&self.r), rr, 1.0) + ratio(pc, pp, 1.0),
            Variant::TriSum => ratio(along(&self.r), rr, 1.0) + ratio(pc, pp, 1.0) + ratio(qc, qq, 1.0),
            Variant::Pap => ratio(qc - qp * pc / pp, qq - qp * qp / pp, 1.0),
            Variant::PapPlus => ratio(qc - qp * pc / pp, qq - qp * qp / pp, 1.0 - pc * pc / pp),
        }) as f32
    }

    /// The direction of the score: a passage's score is its dot product with this vector plus a constant, within the returned rounding
    /// error. `None` if the score is divided by a number that depends on the passage.
    pub fn direction(&self) -> Option<(Vec<f32>, f32)> {
        let Gram { qq, rr, pp, qp, rp } = self.gram;
        let over = |a: f64, b: f64| if a > 0.0 && b > 0.0 { (a * b).sqrt().recip() } else { 0.0 };
        let [q, r, p] = match self.variant {
            Variant::None => [over(qq, 1.0), 0.0, 0.0],
            Variant::Add => [0.0, 1.0, 1.0].map(|x| x * over(rr + 2.0 * rp + pp, 1.0)),
            Variant::AddPlus => [1.0, 0.0, 1.0].map(|x| x * over(qq + 2.0 * qp + pp, 1.0)),
            Variant::Concat => [0.0, over(rr + pp, 1.0 + pp), 0.0],
            Variant::ConcatPlus => [over(qq + pp, 1.0 + pp), 0.0, 0.0],
            Variant::Cast => [1.0, 0.0, -1.0].map(|x| x * over(qq - 2.0 * qp + pp, 1.0)),
            Variant::DualSum => [0.0, over(rr, 1.0), over(pp, 1.0)],
            Variant::TriSum => [over(qq, 1.0), over(rr, 1.0), over(pp, 1.0)],
            Variant::Pap => [1.0, 0.0, -qp / pp].map(|x| x * over(qq - qp * qp / pp, 1.0)),
            Variant::CastPlus | Variant::PapPlus => return None,
        };
        let parts = self.q.iter().zip(&self.r).zip(&self.p);
        let direction =
            parts.map(|((a, b), c)| (q * f64::from(*a) + r * f64::from(*b) + p * f64::from(*c)) as f32);
        let lengths = q.abs() * qq.sqrt() + r.abs() * rr.sqrt() + p.abs() * pp.sqrt();
        Some((direction.collect(), 2.0 * lengths as f32 * rounding(self.q.len())))
    }

    /// `proj(x)` scaled to unit length, for the plot of a question's geometry; zeros if nothing is left.
    pub fn remove(&self, x: &[f32]) -> Vec<f32> {
        let share = if self.gram.pp > 0.0 { f64::from(dot(x, &self.p)) / self.gram.pp } else { 0.0 };
        let left: Vec<f32> = x.iter().zip(&self.p).map(|(x, p)| x - share as f32 * p).collect();
        let length = dot(&left, &left).sqrt();
        if length > 0.0 { left.iter().map(|x| x / length).collect() } else { left }
    }
}

impl Gram {
    /// The squared length of the query after the variant's projection.
    fn left(&self, variant: Variant) -> f64 {
        match variant {
            Variant::Cast | Variant::CastPlus => self.qq - 2.0 * self.qp + self.pp,
            Variant::Pap | Variant::PapPlus => self.qq - self.qp * self.qp / self.pp,
            Variant::Add => self.rr + 2.0 * self.rp + self.pp,
            Variant::AddPlus => self.qq + 2.0 * self.qp + self.pp,
            _ => self.qq.max(self.rr),
        }
    }
}

/// How a passage is scored, after Tables 4 and 8 of the paper; all similarities are cosines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Variant {
    /// `cos(q, c)`.
    #[default]
    None,
    /// `cos(r + p, c)`.
    Add,
    /// `cos(q + p, c)`.
    AddPlus,
    /// `cos([r; p], [c; p])`.
    Concat,
    /// `cos([q; p], [c; p])`.
    ConcatPlus,
    /// `cos(q − p, c)`.
    Cast,
    /// `cos(q − p, c − p)`.
    CastPlus,
    /// `cos(r, c) + cos(p, c)`.
    DualSum,
    /// `cos(r, c) + cos(p, c) + cos(q, c)`.
    TriSum,
    /// `cos(proj q, c)`.
    Pap,
    /// `cos(proj q, proj c)`.
    PapPlus,
}

impl Variant {
    /// All variants, in the order of the paper's tables.
    pub const ALL: [Variant; 11] = [
        Variant::None,
        Variant::Add,
        Variant::AddPlus,
        Variant::Concat,
        Variant::ConcatPlus,
        Variant::Cast,
        Variant::CastPlus,
        Variant::DualSum,
        Variant::TriSum,
        Variant::Pap,
        Variant::PapPlus,
    ];

    /// The name in recipes and tables.
    pub fn name(self) -> &'static str {
        match self {
            Variant::None => "none",
            Variant::Add => "add",
            Variant::AddPlus => "add-plus",
            Variant::Concat => "concat",
            Variant::ConcatPlus => "concat-plus",
            Variant::Cast => "cast",
            Variant::CastPlus => "cast-plus",
            Variant::DualSum => "dual-sum",
            Variant::TriSum => "tri-sum",
            Variant::Pap => "pap",
            Variant::PapPlus => "pap-plus",
        }
    }

    /// Whether the perspective is removed from the query, so that `q − r` replaces a missing one.
    pub fn removes(self) -> bool {
        matches!(self, Variant::Cast | Variant::CastPlus | Variant::Pap | Variant::PapPlus)
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// No variant has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a projection; expected one of add, concat, cast, pap (each also with -plus), dual-sum, tri-sum"
)]
pub struct UnknownVariant(String);

impl FromStr for Variant {
    type Err = UnknownVariant;

    fn from_str(text: &str) -> Result<Self, UnknownVariant> {
        // The paper writes `PAP+`.
        let name = text.trim().to_ascii_lowercase().replace('+', "-plus");
        Variant::ALL
            .into_iter()
            .find(|variant| variant.name() == name)
            .ok_or_else(|| UnknownVariant(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(x: &[f32]) -> Vec<f32> {
        let length = dot(x, x).sqrt();
        x.iter().map(|x| x / length).collect()
    }

    /// Pseudo-random vectors.
    fn drawn(seed: u64) -> Vec<f32> {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 40) as f32 / (1u64 << 24) as f32 - 0.5
        };
        unit(&(0..16).map(|_| next()).collect::<Vec<_>>())
    }

    fn cos(a: &[f32], b: &[f32]) -> f32 {
        dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
    }

    fn each(a: &[f32], b: &[f32], f: impl Fn(f32, f32) -> f32) -> Vec<f32> {
        a.iter().zip(b).map(|(a, b)| f(*a, *b)).collect()
    }

    fn project(x: &[f32], p: &[f32]) -> Vec<f32> {
        let share = dot(x, p) / dot(p, p);
        each(x, p, |x, p| x - share * p)
    }

    /// The definitions on whole vectors.
    fn by_definition(variant: Variant, q: &[f32], r: &[f32], p: &[f32], c: &[f32]) -> f32 {
        let (add, sub) = (|x: f32, y: f32| x + y, |x: f32, y: f32| x - y);
        match variant {
            Variant::None => cos(q, c),
            Variant::Add => cos(&each(r, p, add), c),
            Variant::AddPlus => cos(&each(q, p, add), c),
            Variant::Concat => cos(&[r, p].concat(), &[c, p].concat()),
            Variant::ConcatPlus => cos(&[q, p].concat(), &[c, p].concat()),
            Variant::Cast => cos(&each(q, p, sub), c),
            Variant::CastPlus => cos(&each(q, p, sub), &each(c, p, sub)),
            Variant::DualSum => cos(r, c) + cos(p, c),
            Variant::TriSum => cos(r, c) + cos(p, c) + cos(q, c),
            Variant::Pap => cos(&project(q, p), c),
            Variant::PapPlus => cos(&project(q, p), &project(c, p)),
        }
    }

    fn parts(seed: u64) -> (Vec<f32>, Vec<f32>, Vec<f32>) {
        (drawn(seed), drawn(seed + 1000), drawn(seed + 2000))
    }

    fn prepared(variant: Variant, q: &[f32], r: &[f32], p: &[f32]) -> Projection {
        let parts = Parts { q: q.to_vec(), r: r.to_vec(), p: Perspective::Text(p.to_vec()) };
        let (projection, degenerate) = Projection::new(variant, parts);
        assert_eq!(degenerate, None, "{variant}");
        projection
    }

    #[test]
    fn every_variant_scores_as_its_definition_on_whole_vectors() {
        for seed in 1..40 {
            let (q, r, p) = parts(seed);
            for variant in Variant::ALL {
                let projection = prepared(variant, &q, &r, &p);
                for c in (0..20).map(|i| drawn(seed * 100 + i + 5000)) {
                    let (found, expected) = (projection.score(&c), by_definition(variant, &q, &r, &p, &c));
                    assert!((found - expected).abs() < 2e-6, "{variant}: {found} {expected}");
                }
            }
        }
    }

    #[test]
    fn pap_removes_the_perspective_as_computed_by_hand() {
        // q lies between the topic (first axis) and the perspective (second axis).
        let (q, r, p) = ([0.6, 0.8, 0.0], [1.0, 0.0, 0.0], [0.0, 2.0, 0.0]);
        let pap = prepared(Variant::Pap, &q, &r, &p);
        let plus = prepared(Variant::PapPlus, &q, &r, &p);
        assert!((pap.score(&[1.0, 0.0, 0.0]) - 1.0).abs() < 1e-6);
        assert!((pap.score(&[0.6, 0.8, 0.0]) - 0.6).abs() < 1e-6);
        assert!((plus.score(&[0.6, 0.8, 0.0]) - 1.0).abs() < 1e-6);
        assert_eq!(plus.remove(&[0.6, 0.8, 0.0]), [1.0, 0.0, 0.0]);
        // A passage that equals the perspective has nothing left to compare.
        assert_eq!(plus.score(&[0.0, 1.0, 0.0]), 0.0);
    }

    fn order(projection: &Projection, passages: &[Vec<f32>]) -> Vec<usize> {
        let mut order: Vec<usize> = (0..passages.len()).collect();
        order.sort_by(|a, b| projection.score(&passages[*b]).total_cmp(&projection.score(&passages[*a])));
        order
    }

    #[test]
    fn on_unit_vectors_add_ranks_as_dual_sum_concat_as_the_root_and_concat_plus_as_none() {
        for seed in 1..60 {
            let (q, r, p) = parts(seed);
            let passages: Vec<Vec<f32>> = (0..40).map(|i| drawn(seed * 77 + i)).collect();
            let ranks = |variant| order(&prepared(variant, &q, &r, &p), &passages);
            assert_eq!(ranks(Variant::Add), ranks(Variant::DualSum));
            assert_eq!(ranks(Variant::Concat), order(&prepared(Variant::None, &r, &r, &p), &passages));
            assert_eq!(ranks(Variant::ConcatPlus), ranks(Variant::None));
        }
    }

    #[test]
    fn a_perspective_that_is_the_query_or_missing_is_the_query_without_its_root() {
        let (q, r, _) = parts(3);
        let c = drawn(9);
        let contrast = each(&q, &r, |q, r| q - r);
        for variant in Variant::ALL.into_iter().filter(|variant| variant.removes()) {
            for p in [Perspective::Query, Perspective::Missing] {
                let (projection, degenerate) =
                    Projection::new(variant, Parts { q: q.clone(), r: r.clone(), p });
                assert_eq!(degenerate, None);
                assert!((projection.score(&c) - by_definition(variant, &q, &r, &contrast, &c)).abs() < 2e-6);
            }
        }
        let parts = Parts { q: q.clone(), r: r.clone(), p: Perspective::Query };
        let (sum, _) = Projection::new(Variant::DualSum, parts);
        assert!((sum.score(&c) - cos(&r, &c) - cos(&q, &c)).abs() < 2e-6);
    }

    #[test]
    fn an_impossible_projection_ranks_as_none_with_the_reason() {
        let (q, r, _) = parts(4);
        let c = drawn(11);
        let made = |variant, r: &[f32], p| Projection::new(variant, Parts { q: q.clone(), r: r.to_vec(), p });
        let cases = [
            (made(Variant::Pap, &r, Perspective::Text(vec![0.0; 16])), Degenerate::NoDirection),
            (made(Variant::PapPlus, &q, Perspective::Missing), Degenerate::NoDirection),
            (made(Variant::Pap, &r, Perspective::Text(q.clone())), Degenerate::NothingLeft),
            (made(Variant::Cast, &r, Perspective::Text(q.clone())), Degenerate::NothingLeft),
            (made(Variant::Add, &r, Perspective::Missing), Degenerate::NoPerspective),
        ];
        for ((projection, degenerate), expected) in cases {
            assert_eq!(degenerate, Some(expected));
            assert_eq!(projection.variant(), Variant::None);
            assert!((projection.score(&c) - cos(&q, &c)).abs() < 1e-6);
        }
    }

    #[test]
    fn a_name_is_read_back_and_a_wrong_one_lists_the_right_ones() {
        for variant in Variant::ALL {
            assert_eq!(variant.to_string().parse(), Ok(variant));
        }
        assert_eq!("PAP+".parse(), Ok(Variant::PapPlus));
        assert!("papp".parse::<Variant>().unwrap_err().to_string().contains("dual-sum"));
    }
}
