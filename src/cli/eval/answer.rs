//! `eval answer`: from the list to the answer. Which sides a reader's answer gives from the first k of every lane, which of them the list
//! has, which it drops or adds, whether it says that the matter is disputed (after DebateQA), and how well its citations support it (after
//! ALCE).

use std::fmt::Write;
use std::sync::Arc;

use anyhow::bail;
use serde_json::json;

use crate::cli::eval::args::{Eval, check_thresholds};
use crate::cli::eval::lanes::{LaneNotes, Lanes, name_the_model};
use crate::cli::options::Common;
use crate::engine::answer::{Assessed, Coverage, Judge, Sentence};
use crate::engine::{Depth, Ranked, Shares, readers};
use crate::measure::SupportSet;
use crate::question::Question;
use crate::read::{Answers, Context, Reader};
use crate::report::lists::{make_folder, put};
use crate::report::means::{Values, rows};
use crate::report::table::{Cell, Head, Row, Table};

/// The measures of a lane, besides the cut-off.
const COLUMNS: [&str; 9] =
    ["List", "Answer", "Kept", "Dropped", "Added", "Aware", "CiteRecall", "CitePrec", "Refused"];

/// Returns the tables, or `None` if the user interrupted.
pub fn table(common: &Common, args: &Eval) -> anyhow::Result<Option<Table>> {
    let mut reader = readers(&common.opening())?.1;
    if let Some(path) = &common.answers {
        // Several lanes have several lists, so an answer must name its passages.
        reader = Some(Arc::new(Answers::read(path)?.of_named_passages()));
    }
    let Some(reader) = reader else {
        bail!("nothing answers: give a model with --llm or --reader, or recorded answers with --answers");
    };
    let long = reader.at_length();
    let reader: &dyn Reader = long.as_deref().unwrap_or(reader.as_ref());
    let lanes = Lanes::open(common, args)?;
    check_thresholds(args, lanes.recipes.iter().map(ToString::to_string))?;
    let (k, maxima, count) = (usize::from(common.k), lanes.maxima()?, lanes.recipes.len());
    let questions: Vec<_> =
        lanes.setup.questions.iter().filter(|question| !question.perspectives.is_empty()).collect();
    let mut values: Vec<Vec<Values>> = vec![vec![Values::new(); COLUMNS.len()]; count];
    let (mut failed, mut judged) = (vec![Vec::new(); count], vec![(0, 0); count]);
    let (mut lane_notes, mut shares) = (LaneNotes::default(), Shares::default());
    let mut sources = vec![Shares::default(); count];
    let (mut pairs, mut lines) = (vec![Vec::new(); count], String::new());
    for (done, question) in questions.iter().enumerate() {
        lanes.show(done, questions.len());
        let outcome = lanes.run(question, k, Depth::Top, &maxima)?;
        if lanes.stop.is_set() {
            return Ok(None);
        }
        lane_notes.take(&outcome);
        shares = shares.plus(outcome.shares());
        for (own, here) in sources.iter_mut().zip(outcome.shares_by_lane()) {
            *own = own.plus(here);
        }
        let judge = Judge { setup: &lanes.setup, question, stop: &lanes.stop };
        for (lane, found) in outcome.lanes.iter().enumerate() {
            let list: &[Ranked] = found.ranking.as_ref().map_or(&[], |list| &list[..list.len().min(k)]);
            let sides = list.iter().filter_map(|one| outcome.judgments.support(one.at));
            judged[lane].0 += sides.clone().count();
            judged[lane].1 += list.len();
            let passages = Context::list(list.iter().map(|one| Arc::clone(&one.passage)));
            let answered = match &found.ranking {
                Err(error) => Err(error.to_string()),
                Ok(_) => match reader.answer(&question.text, &passages, &lanes.stop) {
                    Err(error) if error.is_stop() => return Ok(None),
                    Err(error) if error.is_lasting() => bail!("{}: {error}", reader.name()),
                    answer => answer.map_err(|error| error.to_string()),
                },
            };
            let own = match answered {
                Err(reason) => {
                    failed[lane].push((question.id.clone(), reason));
                    [None; COLUMNS.len()]
                }
                Ok(answer) => {
                    let list = sides.fold(SupportSet::EMPTY, SupportSet::union);
                    match judge.assess(answer, list, &passages) {
                        Err(error) if error.is_stop() => return Ok(None),
                        Err(error) => return Err(error.into()),
                        Ok(assessed) => {
                            pairs[lane].push(assessed.coverage);
                            let lane = lanes.recipes[lane].to_string();
                            let _ = writeln!(lines, "{}", line(&question.text, &lane, &passages, &assessed));
                            measured(&assessed)
                        }
                    }
                }
            };
            values[lane].iter_mut().zip(own).for_each(|(values, value)| values.push(value));
        }
    }
    lanes.show(questions.len(), questions.len());
    if let Some(folder) = &args.write {
        make_folder(folder)?;
        put(folder, "answers.jsonl", lines.as_bytes())?;
    }
    let names: Vec<String> = lanes.recipes.iter().map(ToString::to_string).collect();
    let mut rows = rows(names.iter().cloned(), values, &lanes.compared_with(), failed, judged)?;
    lane_notes.name(&mut rows);
    name_the_model(&mut rows, &sources);
    let none = Question::default();
    let error = Judge { setup: &lanes.setup, question: &none, stop: &lanes.stop }.error()?;
    let mut notes = vec![
        format!("{} answers from the first {k}; the sides of an answer and its citations: {error}", reader.name()),
        "List, Answer: the share of the statements that the list supports, that the answer's sentences support; Kept, Dropped: of the list's \
         statements, those that the answer gives and those that it does not; Added: statements without a passage; Aware: the answer gives more \
         than one, or says that the matter is disputed"
            .into(),
        "CiteRecall: the share of sentences that their cited passages support; CitePrec: the share of citations that support theirs".into(),
    ];
    notes.extend(lane_notes.notes());
    let heads = COLUMNS.iter().enumerate().map(|(at, name)| match at {
        0 | 1 => Head::plotted(format!("{name}@{k}")),
        _ => Head::from(format!("{name}@{k}")),
    });
    let further = vec![by_list(&names, &pairs, k)];
    Ok(Some(Table {
        columns: heads.collect(),
        rows,
        notes,
        further,
        ..lanes.table("answer", questions, k, shares)?
    }))
}

/// A line of `answers.jsonl`. Numbers of passages are from 1, as the answer cites them.
fn line(question: &str, lane: &str, read: &[Context], assessed: &Assessed) -> serde_json::Value {
    let numbers = |places: &[usize]| places.iter().map(|place| place + 1).collect::<Vec<_>>();
    let sides = |set: SupportSet| set.iter().collect::<Vec<_>>();
    let sentence = |own: &Sentence| {
        json!({
            "text": own.claim.text,
            "sides": sides(own.sides),
            "cites": numbers(&own.claim.cites),
            "supported": own.cited.as_ref().map(|cited| cited.supported),
            "found_in": own.found.as_deref().map(numbers),
        })
    };
    json!({
        "question": question,
        "lane": lane,
        "k": read.len(),
        "passages": read.iter().map(|one| &one.passage.id).collect::<Vec<_>>(),
        "answer": assessed.answer.text,
        "list_sides": sides(assessed.coverage.list),
        "answer_sides": sides(assessed.coverage.answer),
        "sentences": assessed.sentences.iter().map(sentence).collect::<Vec<_>>(),
    })
}

/// The values of an answer, in the order of [`COLUMNS`]. A refusal has no citations to measure.
fn measured(assessed: &Assessed) -> [Option<f64>; 9] {
    let Assessed { answer, coverage, aware, citations, .. } = assessed;
    let flag = |is: bool| Some(f64::from(u8::from(is)));
    [
        Some(coverage.of_list()),
        Some(coverage.of_answer()),
        Some(coverage.retained() as f64),
        Some(coverage.dropped() as f64),
        Some(coverage.added() as f64),
        flag(*aware),
        citations.recall,
        citations.precision,
        flag(answer.is_refusal()),
    ]
}

/// Does a more balanced list make a more balanced answer? The mean coverage of answers by how many statements their lists support.
fn by_list(names: &[String], pairs: &[Vec<Coverage>], k: usize) -> Table {
    let most = pairs.iter().flatten().map(|one| one.list.len()).max().unwrap_or(0);
    let row = |lane: String, all: &[Coverage]| {
        let cell = |sides: usize| {
            let own: Vec<f64> =
                all.iter().filter(|one| one.list.len() == sides).map(|one| one.of_answer()).collect();
            let n = own.len();
            (n > 0).then(|| Cell { mean: own.iter().sum::<f64>() / n as f64, n, ..Cell::default() })
        };
        Row { lane, cells: (0..=most).map(cell).collect(), ..Row::default() }
    };
    let mut rows: Vec<Row> = names.iter().zip(pairs).map(|(name, own)| row(name.clone(), own)).collect();
    rows.push(row("all lanes".into(), &pairs.concat()));
    Table {
        suite: "answer-by-list",
        columns: (0..=most).map(|sides| Head::from(format!("list={sides}"))).collect(),
        rows,
        questions: pairs.first().map_or(0, Vec::len),
        k: Some(k),
        label_source: "the judge".into(),
        notes: vec!["the coverage of the answer, by the number of statements that the list supports".into()],
        counts: true,
        ..Table::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::Passage;
    use crate::engine::{Opening, Setup};
    use crate::read::Answer;
    use crate::work::Stop;

    #[test]
    fn a_refusal_gives_no_side_and_has_no_citations_to_measure() {
        let folder = tempfile::tempdir().unwrap();
        let opening = Opening { data_dir: folder.path().to_owned(), ..Opening::default() };
        let stop = Stop::never();
        let setup = Setup::open(&opening, &|_| (), &stop).unwrap();
        let question = &setup.questions[0];
        let both = SupportSet::of([0, 1]).unwrap();
        let judge = Judge { setup: &setup, question, stop: &stop };
        let answer = |text: &str| Answer { text: text.into(), ..Answer::default() };
        let refused = judge.assess(answer("I cannot say; the debate goes on [1]."), both, &[]).unwrap();
        let values = measured(&refused);
        assert_eq!(values[..6], [Some(1.0), Some(0.0), Some(0.0), Some(2.0), Some(0.0), Some(0.0)]);
        assert_eq!((values[6], values[7], values[8]), (None, None, Some(1.0)));
        let read = Context::list([Arc::new(Passage { text: "Bears pace.".into(), ..Passage::default() })]);
        let whole = judge.assess(answer("Critics object. They pace [1]."), both, &read).unwrap();
        assert_eq!((whole.sentences.len(), whole.aware), (2, true));
        let written = line("Why?", "bm25", &read, &whole);
        assert_eq!(written["sentences"][1]["cites"], json!([1]));
        assert_eq!(written["sentences"][0]["supported"], json!(null), "it cites nothing");
    }

    /// Two answers from lists with both sides give one and both of two, one from a list with one side gives it: 3/4 and 1/2.
    #[test]
    fn answers_are_grouped_by_the_sides_of_their_lists() {
        let set = |sides: &[usize]| SupportSet::of(sides.iter().copied()).unwrap();
        let pair = |list: &[usize], answer: &[usize]| Coverage { list: set(list), answer: set(answer), m: 2 };
        let pairs = [vec![pair(&[0, 1], &[0]), pair(&[0, 1], &[0, 1]), pair(&[0], &[0])]];
        let table = by_list(&["bm25".into()], &pairs, 5);
        let means: Vec<Option<f64>> =
            table.rows[1].cells.iter().map(|cell| cell.as_ref().map(|cell| cell.mean)).collect();
        assert_eq!(means, [None, Some(0.5), Some(0.75)]);
    }
}
