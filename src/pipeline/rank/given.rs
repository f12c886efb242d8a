//! A finished run's list for a question.

use std::collections::HashMap;

use super::super::recipe::RunFile;
use super::super::trace::{Step, Stood, Trace};
use super::{Asked, Found, LaneError};
use crate::pipeline::Setup;
use crate::retrieve::Hit;
use crate::work::Stop;

/// The run's list: for the question by its id, else by its words; for another wording by its words alone.
pub fn given(
    setup: &Setup,
    file: &RunFile,
    asked: Asked<'_>,
    depth: usize,
    stop: &Stop,
) -> Result<Found, LaneError> {
    let placed = setup.runs.placed(file, depth, &setup.corpus, stop)?;
    let own = asked.text == asked.question.text;
    let id = Some(asked.question.id.as_str()).filter(|id| own && !id.is_empty());
    let place = placed.run.place(id, asked.text).ok_or_else(|| {
        LaneError::NotInRun(match (own, id) {
            (true, Some(id)) => format!("the run has no list for this question, neither by its id `{id}` nor by its words"),
            (true, None) => "the run has no list for these words; a finished run knows its own questions only".into(),
            (false, _) => "the run has no list for this wording; a finished run is asked as either side only if it holds the statements as questions".into(),
        })
    })?;
    let question = &placed.run.questions()[place];
    let mut trace = Trace::default();
    let (mut hits, mut stood) = (Vec::new(), HashMap::new());
    for (passage, at) in question.passages.iter().zip(&placed.places[place]).take(depth) {
        // A score beyond what 32 bits hold is as great as any.
        let score = (passage.score as f32).clamp(f32::MIN, f32::MAX);
        hits.push(Hit { passage: *at, score });
        stood.insert(*at, Stood { rank: passage.rank, score: passage.score, line: passage.line });
    }
    if hits.iter().any(|hit| hit.passage.as_outside().is_some()) {
        placed.note.iter().for_each(|note| trace.note(note.clone()));
    }
    trace.steps.push(Step::Given {
        run: file.clone(),
        tag: placed.run.tag.clone(),
        question: question.id.clone(),
        stood,
    });
    Ok(Found { hits, trace, comparable: true })
}
