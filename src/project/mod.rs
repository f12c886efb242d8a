//! Perspective-aware projection: scoring a passage by the root of a query and its perspective instead of the query as a whole.
//!
//! After Zhao et al., "Beyond Relevance: Evaluate and Improve Retrievers on Perspective Awareness" (2024), section 3.1 and
//! Tables 4 and 8. `q` is the vector of the full query, `r` of its root, `p` of the perspective, `c` of a passage, and
//! `proj(x) = x − (x·p/‖p‖²) p`: it takes `p` *away*. Passages have unit length, so every score follows from the three dot
//! products of `c` with `q`, `r` and `p`. Pure arithmetic: no texts, no models.

mod variant;

pub use variant::{UnknownVariant, Variant};

use crate::encode::rounding;
use crate::retrieve::dense::dot;

/// A vector shorter than this, against the one it came from, is nothing but rounding.
const NOTHING: f64 = 1e-6;

/// What a query is made of, as vectors of one encoder.
#[derive(Clone, Debug, PartialEq)]
pub struct Parts {
    /// The full query.
    pub q: Vec<f32>,
    /// The query without its perspective.
    pub r: Vec<f32>,
    /// The perspective, if there is one that is not the query itself.
    pub p: Perspective,
}

/// Which vector stands for the perspective.
#[derive(Clone, Debug, PartialEq)]
pub enum Perspective {
    /// A text of its own.
    Text(Vec<f32>),
    /// Its text is the query itself: `cast` and `pap` take `q − r`, the others the text.
    Query,
    /// There is none: `cast` and `pap` take `q − r`, the others cannot be made.
    Missing,
}

/// Why a query ranks as if nothing had been projected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Degenerate {
    /// There is nothing to take away.
    #[error("the perspective has no direction of its own, so nothing was projected")]
    NoDirection,
    /// Nothing is left of the query.
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
    /// Prepares a query. Where the variant cannot be made of it, it ranks as [`Variant::None`], and the reason is given.
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
            _ if gram.pp <= NOTHING * gram.qq.max(gram.rr) => Some(Degenerate::NoDirection),
            _ if gram.left(variant) <= NOTHING * gram.qq => Some(Degenerate::NothingLeft),
            _ => None,
        };
        let variant = if degenerate.is_some() { Variant::None } else { variant };
        (Projection { variant, q, r, p, gram }, degenerate)
    }

    /// The variant that scores, which is `none` where the one asked for cannot be made.
    pub fn variant(&self) -> Variant {
        self.variant
    }

    /// The score of a passage by its vector, which has unit length: a cosine, or for the sums two or three of them added.
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

    /// The direction that the score runs along: the score of a passage is the dot product with it and a constant, give or take the
    /// number beside it, which is what rounding may do. None where the score divides by something of the passage's.
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

    /// `proj(x)`, brought back to unit length; zeros where nothing is left. What plots of a question's geometry show.
    pub fn remove(&self, x: &[f32]) -> Vec<f32> {
        let share = if self.gram.pp > 0.0 { f64::from(dot(x, &self.p)) / self.gram.pp } else { 0.0 };
        let left: Vec<f32> = x.iter().zip(&self.p).map(|(x, p)| x - share as f32 * p).collect();
        let length = dot(&left, &left).sqrt();
        if length > 0.0 { left.iter().map(|x| x / length).collect() } else { left }
    }
}

impl Gram {
    /// The squared length of the query that the variant ranks by, where something is taken from it.
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

#[cfg(test)]
mod tests;
