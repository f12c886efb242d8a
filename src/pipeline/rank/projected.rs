//! What `q`, `r` and `p` are in a question, and the question's geometry.
//!
//! Two sides: `r` is the supporting statement, `p` a fixed clause that names the side, `q` both. Projecting out the statement itself
//! would take the topic away. Otherwise, or for a typed perspective: `q` is the perspective, `r` the question, and `q − r` stands
//! for `p`.

use std::collections::HashMap;

use super::super::recipe::{Project, Toward};
use super::super::trace::{Point, Projected, Wording};
use super::{Asked, LaneError};
use crate::corpus::PassageIx;
use crate::encode::{Encoder, Role};
use crate::project::{Degenerate, Parts, Perspective, Projection};
use crate::retrieve::dense::dot;

/// What the two sides are called in a query.
const CLAUSES: [&str; 2] = ["a passage that supports the statement", "a passage that opposes the statement"];

/// A question seen from one perspective.
pub struct Lens<'a> {
    project: &'a Project,
    root: String,
    /// The clause of a side; a perspective in full otherwise.
    perspective: String,
    sided: bool,
    /// Two texts that a passage may lie nearer to: the two statements, or the perspective and the question.
    poles: [String; 2],
}

impl<'a> Lens<'a> {
    /// Looks at a question from the perspective that the recipe names.
    pub fn new(project: &'a Project, asked: Asked<'_>) -> Result<Self, LaneError> {
        let question = asked.question;
        let text = match &project.toward {
            Toward::Text(text) => text,
            Toward::Perspective(i) => question.perspectives.get(*i).ok_or_else(|| {
                LaneError::NoPerspective(format!(
                    "the question has {} perspectives, the projection is toward number {}; give others with --perspective, or i in the explorer",
                    question.perspectives.len(),
                    i + 1
                ))
            })?,
        };
        if let (Toward::Perspective(i), [first, second], Some(supports)) =
            (&project.toward, question.perspectives.as_slice(), question.supports)
        {
            let clause = CLAUSES[usize::from(*i != supports)];
            let root = [first, second][supports.min(1)].clone();
            let poles = [first.clone(), second.clone()];
            return Ok(Lens { project, root, perspective: clause.into(), sided: true, poles });
        }
        let poles = [text.clone(), asked.text.to_owned()];
        Ok(Lens { project, root: asked.text.to_owned(), perspective: text.clone(), sided: false, poles })
    }

    /// The full query.
    pub fn full(&self) -> String {
        if self.sided { self.of(&self.root) } else { self.perspective.clone() }
    }

    /// Another text of the same query, seen from the same perspective.
    pub fn of(&self, text: &str) -> String {
        format!("{}: {text}", self.perspective)
    }

    /// The projection of a full query's vector.
    pub fn projection(
        &self,
        encoder: &dyn Encoder,
        q: Vec<f32>,
    ) -> Result<(Projection, Option<Degenerate>), LaneError> {
        let r = encoder.encode(&self.root, Role::Query)?;
        let p = if self.sided {
            Perspective::Text(encoder.encode(&self.perspective, Role::Query)?)
        } else {
            Perspective::Query
        };
        Ok(Projection::new(self.project.variant, Parts { q, r, p }))
    }

    /// The projection as the trace tells it.
    pub fn told(
        &self,
        query: &Wording,
        projection: &Projection,
        points: HashMap<PassageIx, Point>,
    ) -> Projected {
        let q = match query {
            Wording::Text(text) => text.clone(),
            Wording::Mean(texts) => format!("the mean of {} texts", texts.len()),
            Wording::Terms(_) => String::new(),
        };
        Projected {
            asked: self.project.variant,
            ran: projection.variant(),
            toward: self.project.toward.clone(),
            q,
            r: self.root.clone(),
            p: self.sided.then(|| self.perspective.clone()),
            points,
        }
    }
}

/// Where a passage lies, by its vector.
pub fn geometry(
    lens: &Lens<'_>,
    encoder: &dyn Encoder,
    projection: &Projection,
    q: Vec<f32>,
) -> Result<impl Fn(&[f32]) -> Point, LaneError> {
    let [first, second] = &lens.poles;
    let [first, second] = [encoder.encode(first, Role::Query)?, encoder.encode(second, Role::Query)?];
    let left = [projection.remove(&first), projection.remove(&second)];
    let projection = projection.clone();
    Ok(move |c: &[f32]| {
        let kept = projection.remove(c);
        Point {
            plain: dot(&q, c),
            score: projection.score(c),
            before: dot(&first, c) - dot(&second, c),
            after: dot(&left[0], &kept) - dot(&left[1], &kept),
        }
    })
}
