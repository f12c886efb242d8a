//! `eval edit`: passages of the first k with other words, one at a time. Whether the lane scores the edited passage above its original, and
//! how many ranks it moves: source bias, outlet, length, position, tone.

use anyhow::bail;

use crate::cli::eval::args::{EditArgs, Eval, check_thresholds};
use crate::cli::eval::lanes::Lanes;
use crate::cli::options::Common;
use crate::corpus::Passage;
use crate::engine::edit::{Draft, rewrite, score_draft};
use crate::engine::recipe::Base;
use crate::engine::{Lists, Query, Shares, rank_lanes};
use crate::question::edits::Edit;
use crate::report::means::{Values, rows};
use crate::report::table::{Head, Table};

/// The edits that were asked for.
fn edits(common: &Common, args: &EditArgs) -> anyhow::Result<Vec<Edit>> {
    let all = || Edit::BY_RULE.into_iter().chain([Edit::Rewritten]);
    if args.edits.is_empty() {
        return Ok(all().filter(|edit| *edit != Edit::Rewritten || common.llm.is_some()).collect());
    }
    let read = |name: &String| match all().find(|edit| edit.name() == name.trim()) {
        Some(edit) => Ok(edit),
        None => {
            let names: Vec<&str> = all().map(Edit::name).collect();
            bail!("--edits: there is no edit `{}`, only {}", name.trim(), names.join(", "))
        }
    };
    args.edits.iter().map(read).collect()
}

/// Returns the table, or `None` if the user interrupted.
///
/// # Errors
/// An edit is unknown, a lane's scores are not made here, or nothing could be measured.
pub fn table(common: &Common, args: &Eval) -> anyhow::Result<Option<Table>> {
    let edits = edits(common, &args.edit)?;
    let lanes = Lanes::open(common, args)?;
    let k = usize::from(common.k);
    for recipe in &lanes.recipes {
        if matches!(recipe.base, Base::Run(_) | Base::Remote(_)) {
            bail!(
                "{recipe}: its scores are not made here, so an edited passage has none; name bm25, minilm, hybrid or another encoder"
            );
        }
        if *recipe != recipe.plain() {
            bail!(
                "{recipe}: eval edit scores single passages, which switches cannot; name {}",
                recipe.plain()
            );
        }
    }
    let names: Vec<String> = lanes
        .recipes
        .iter()
        .flat_map(|recipe| edits.iter().map(move |edit| format!("{recipe} {edit}")))
        .collect();
    check_thresholds(args, names.iter().cloned())?;
    let questions: Vec<_> = lanes.setup.questions.iter().collect();
    let mut values: Vec<Vec<Values>> = vec![vec![Values::new(); 3]; names.len()];
    let mut failed = vec![Vec::new(); names.len()];
    let mut trouble: Vec<String> = Vec::new();
    for (done, question) in questions.iter().enumerate() {
        lanes.show(done, questions.len());
        for (lane, recipe) in lanes.recipes.iter().enumerate() {
            let query =
                Query { question: (*question).clone(), lanes: vec![recipe.clone()], k, source: lanes.source };
            let first = rank_lanes(&lanes.setup, query, Lists::default(), &lanes.stop).into_iter().next();
            let list = first.map(|lane| lane.ranking);
            let mut lists = Lists::default();
            for (at, edit) in edits.iter().enumerate() {
                let row = lane * edits.len() + at;
                let (mut higher, mut moved, mut changed, mut of) = (0.0, 0.0, 0usize, 0usize);
                let list = match &list {
                    Some(Ok(list)) => list,
                    Some(Err(error)) if !error.is_stop() => {
                        failed[row].push((question.id.clone(), error.to_string()));
                        values[row].iter_mut().for_each(|values| values.push(None));
                        continue;
                    }
                    _ => return Ok(None),
                };
                for (place, own) in list.iter().take(k).enumerate() {
                    of += 1;
                    let edited = match edit {
                        Edit::Rewritten => match rewrite(&lanes.setup, &own.passage, &lanes.stop) {
                            Ok(passage) => passage,
                            Err(error) if error.is_stop() => return Ok(None),
                            Err(error) => {
                                let error = error.to_string();
                                if !trouble.contains(&error) {
                                    trouble.push(error);
                                }
                                continue;
                            }
                        },
                        edit => match edit.of(&own.passage.text) {
                            Ok(text) => Passage { text, ..Passage::clone(&own.passage) },
                            Err(_) => continue,
                        },
                    };
                    let draft = Draft { at: own.at, passage: edited, question: (*question).clone() };
                    let scored = score_draft(&lanes.setup, recipe, &draft, &mut lists, &lanes.stop);
                    if lanes.stop.is_set() {
                        return Ok(None);
                    }
                    let scored = scored?;
                    changed += 1;
                    higher += match scored.score.total_cmp(&own.score) {
                        std::cmp::Ordering::Greater => 1.0,
                        std::cmp::Ordering::Equal => 0.5,
                        std::cmp::Ordering::Less => 0.0,
                    };
                    let now = scored.rank.unwrap_or(scored.depth + 1);
                    moved += (place + 1) as f64 - now as f64;
                }
                let mean = |sum: f64| (changed > 0).then(|| sum / changed as f64);
                let share = (of > 0).then(|| changed as f64 / of as f64);
                let figures = [mean(higher), mean(moved), share];
                values[row].iter_mut().zip(figures).for_each(|(values, figure)| values.push(figure));
            }
        }
    }
    lanes.show(questions.len(), questions.len());
    let judged = vec![(0, 0); names.len()];
    let versus = vec![None; names.len()];
    let rows = rows(names, values, &versus, failed, judged)?;
    let mut notes = vec![
        format!(
            "of the first {k} passages, one at a time, the others as they are: higher: share of edited passages that the lane scores above \
             their original, equal scores half; ranks: ranks gained, below 0 lost, where a passage below the list counts as one below its \
             end; changed: share of the passages that the edit changes"
        ),
        "means over the questions with a passage that the edit changes; .5 and 0 are no bias".to_owned(),
    ];
    notes.extend(trouble.iter().take(3).map(|text| format!("not rewritten: {text}")));
    Ok(Some(Table {
        columns: vec![
            Head::plotted(format!("higher@{k}")),
            Head::plotted(format!("ranks@{k}")),
            Head::from(format!("changed@{k}")),
        ],
        rows,
        notes,
        ..lanes.table("edit", questions.iter().copied(), k, Shares::default())?
    }))
}
