//! Tables of what an answer hangs on: where a changed one stands, types from a file, attention, passages left out, other orders; and the
//! files that `eval reader --write` makes.

use serde_json::{Value, json};

use crate::measure::agreement::{ClassScores, class_scores};
use crate::measure::significance::SignificanceError;
use crate::read::Effect;
use crate::read::files::Case;
use crate::read::incremental::{Stands, THRESHOLDS};
use crate::read::reader::{matches, same};
use crate::report::means::Values;
use crate::report::reading::{ReadCase, ReadLane, codes, one_if, rows};
use crate::report::table::{Cell, Head, Row, Table};

/// Makes all of these tables, without those that nothing was read for.
///
/// # Errors
/// A value is not a number.
pub fn tables(lanes: &[ReadLane]) -> Result<Vec<Table>, SignificanceError> {
    let questions = lanes.first().map_or(0, |lane| lane.cases.len());
    let mut tables: Vec<Table> =
        changed(lanes, questions).into_iter().chain(scored(lanes, questions)).collect();
    tables.extend(attention(lanes, questions)?);
    tables.extend(left_out(lanes, questions)?);
    tables.extend(orders(lanes, questions)?);
    Ok(tables)
}

fn place(effect: Effect) -> usize {
    Effect::ALL.iter().position(|own| *own == effect).unwrap_or_default()
}

/// A table of counts.
fn counts(
    suite: &'static str,
    heads: Vec<String>,
    lines: Vec<(String, Vec<usize>)>,
    questions: usize,
) -> Table {
    let cell =
        |all: usize| move |count: usize| Cell { mean: count as f64, n: all, count: true, ..Cell::default() };
    let row = |(lane, counts): (String, Vec<usize>)| {
        let all = counts.last().copied().unwrap_or(0);
        Row { lane, cells: counts.into_iter().map(cell(all)).map(Some).collect(), ..Row::default() }
    };
    Table {
        suite,
        columns: heads.into_iter().map(Head::from).collect(),
        rows: lines.into_iter().map(row).collect(),
        questions,
        label_source: "gold answers".into(),
        ..Table::default()
    }
}

/// Makes the table of where the answers stand that replaced right ones; `None` if none did.
fn changed(lanes: &[ReadLane], questions: usize) -> Option<Table> {
    let line = |lane: &ReadLane| {
        let all = || lane.read.iter().flat_map(|read| &read.changed);
        let mut found = Stands::ALL.map(|place| all().filter(|own| **own == place).count()).to_vec();
        found.push(all().count());
        (lane.name.clone(), found)
    };
    let lines: Vec<_> = lanes.iter().map(line).collect();
    let heads = Stands::ALL.map(|place| place.name().to_owned()).into_iter().chain(["DN".to_owned()]);
    let mut table = counts("reader-changed", heads.collect(), lines.clone(), questions);
    table.notes = vec!["where the answer stands that a DN put in place of a right one: in the DN itself, else in a passage before it, else nowhere".into()];
    lines.iter().any(|(_, counts)| counts.last().is_some_and(|all| *all > 0)).then_some(table)
}

/// Makes the table that scores the types of a file against those of the reader; `None` without a file.
fn scored(lanes: &[ReadLane], questions: usize) -> Option<Table> {
    let mut lines = Vec::new();
    let mut missing = 0;
    for lane in lanes {
        let pairs: Vec<(Effect, Option<Effect>)> = lane
            .effects()
            .filter_map(|(read, effects)| {
                Some(effects.into_iter().zip(read.given.clone()?).collect::<Vec<_>>())
            })
            .flatten()
            .collect();
        if pairs.is_empty() {
            continue;
        }
        missing += pairs.iter().filter(|(_, given)| given.is_none()).count();
        let codes: Vec<(usize, Option<usize>)> =
            pairs.iter().map(|(own, given)| (place(*own), given.map(place))).collect();
        let classes: Vec<usize> = (0..Effect::ALL.len()).collect();
        for (effect, class) in Effect::ALL.iter().zip(&classes) {
            let scores = class_scores(&codes, std::slice::from_ref(class));
            lines.push((lane.row(lanes, effect.code()), ClassScores { accuracy: None, ..scores }));
        }
        lines.push((lane.row(lanes, "all five"), class_scores(&codes, &classes)));
        let two = [place(Effect::DefinitePositive), place(Effect::DefiniteNegative)];
        let decisive: Vec<_> = codes.iter().copied().filter(|(own, _)| two.contains(own)).collect();
        let scores = class_scores(&decisive, &two[1..]);
        let accuracy = class_scores(&decisive, &two).accuracy;
        lines.push((lane.row(lanes, "DP or DN"), ClassScores { accuracy, n: decisive.len(), ..scores }));
    }
    let cell = |value: Option<f64>, n: usize| value.map(|mean| Cell { mean, n, ..Cell::default() });
    let row = |(lane, ClassScores { accuracy, precision, recall, f1, n }): (String, ClassScores)| {
        let count = Cell { mean: n as f64, n, count: true, ..Cell::default() };
        let mut cells = vec![Some(count)];
        cells.extend([accuracy, precision, recall, f1].map(|value| cell(value, n)));
        Row { lane, cells, ..Row::default() }
    };
    let table = Table {
        suite: "reader-types-scored",
        columns: ["n", "accuracy", "P", "R", "F1"].map(Head::from).to_vec(),
        rows: lines.into_iter().map(row).collect(),
        questions,
        label_source: "the reader's types".into(),
        notes: vec![format!(
            "the types of the file against the reader's; all five: the mean of the classes; DP or DN: over the passages that are one of these for the reader, with DN to be found; {missing} passages have no type in the file, which counts as wrong"
        )],
        ..Table::default()
    };
    (!table.rows.is_empty()).then_some(table)
}

/// Makes the tables of attention: by type, and answers from the passages with at least a share of it.
fn attention(lanes: &[ReadLane], questions: usize) -> Result<Vec<Table>, SignificanceError> {
    let (mut by_type, mut by_threshold) = (Vec::new(), Vec::new());
    for lane in lanes.iter().filter(|lane| lane.read.iter().any(|read| read.attention.is_some())) {
        let of = |read: &ReadCase, effect: Effect| -> Option<Vec<f64>> {
            let effects = read.pattern.effects();
            let shares = effects.into_iter().zip(&read.attention.as_ref()?.shares);
            Some(shares.filter(|(own, _)| *own == effect).map(|(_, share)| *share).collect())
        };
        let mean = |effect| {
            lane.each(|read| {
                let shares = of(read, effect)?;
                (!shares.is_empty()).then(|| shares.iter().sum::<f64>() / shares.len() as f64)
            })
        };
        let most = |effect| {
            lane.each(|read| {
                let shares = &read.attention.as_ref()?.shares;
                let best =
                    (0..shares.len()).reduce(|best, at| if shares[at] > shares[best] { at } else { best })?;
                one_if(*read.pattern.effects().get(best)? == effect)
            })
        };
        by_type.push((lane.row(lanes, "mean share"), Effect::ALL.map(mean).to_vec()));
        by_type.push((lane.row(lanes, "most attended"), Effect::ALL.map(most).to_vec()));
        let at = |place: usize| move |read: &ReadCase| read.attention.as_ref()?.kept.get(place).copied();
        let places = 0..THRESHOLDS.len();
        let whole = lane.each(|read| one_if(read.pattern.em(read.pattern.len())));
        let right = places.clone().map(|place| lane.each(|read| one_if(at(place)(read)?.1)));
        by_threshold.push((lane.row(lanes, "EM"), std::iter::once(whole).chain(right).collect()));
        let all = lane.each(|read| Some(read.pattern.len() as f64));
        let kept = places.map(|place| lane.each(|read| Some(at(place)(read)?.0 as f64)));
        by_threshold.push((lane.row(lanes, "kept"), std::iter::once(all).chain(kept).collect()));
    }
    if by_type.is_empty() {
        return Ok(Vec::new());
    }
    let mut by_type = rows("reader-attention", codes(), by_type, questions)?;
    by_type.notes = vec![
        "mean share: of the attention as the answer begins, by passage of a type; most attended: how often the passage with the greatest share has the type".into(),
    ];
    let heads = std::iter::once("all".to_owned()).chain(THRESHOLDS.map(|least| format!("≥{least}")));
    let mut by_threshold = rows("reader-attended", heads.collect(), by_threshold, questions)?;
    by_threshold.notes = vec![
        "only the passages with at least this share of the attention are read again; all if none has it"
            .into(),
    ];
    Ok(vec![by_type, by_threshold])
}

/// Makes the table of answers without one passage, by the type of that passage.
fn left_out(lanes: &[ReadLane], questions: usize) -> Result<Option<Table>, SignificanceError> {
    let mut lines = Vec::new();
    for lane in lanes.iter().filter(|lane| lane.read.iter().any(|read| !read.without.is_empty())) {
        let golds: Vec<&Vec<String>> = lane.cases.iter().map(|case| &case.gold).collect();
        type Counts = fn(bool, bool, bool) -> bool;
        let kinds: [(&str, Counts); 3] = [
            ("changes", |_, _, same| !same),
            ("mends", |whole, without, _| !whole && without),
            ("breaks", |whole, without, _| whole && !without),
        ];
        for (name, counts) in kinds {
            let share = |effect: Effect| {
                let one = |(read, gold): (&ReadCase, &&Vec<String>)| {
                    let whole = read.answers.last().filter(|_| !read.left_out)?;
                    let right = read.pattern.em(read.pattern.len());
                    let effects = read.pattern.effects();
                    let of = read.without.iter().zip(effects).filter(|(_, own)| *own == effect);
                    let found: Vec<bool> = of
                        .map(|(answer, _)| {
                            let same = same(&answer.text, &whole.text);
                            counts(right, matches(&answer.text, gold), same)
                        })
                        .collect();
                    let yes = found.iter().filter(|yes| **yes).count();
                    (!found.is_empty()).then(|| yes as f64 / found.len() as f64)
                };
                lane.read.iter().zip(&golds).map(one).collect::<Values>()
            };
            lines.push((lane.row(lanes, name), Effect::ALL.map(share).to_vec()));
        }
    }
    if lines.is_empty() {
        return Ok(None);
    }
    let mut table = rows("reader-without", codes(), lines, questions)?;
    table.notes = vec![
        "the list read without one passage: how often that changes the answer, makes a wrong one right (mends) or a right one wrong (breaks), by the passage's type".into(),
    ];
    Ok(Some(table))
}

/// Makes the table of answers in other orders.
fn orders(lanes: &[ReadLane], questions: usize) -> Result<Option<Table>, SignificanceError> {
    let lanes = lanes.iter().filter(|lane| lane.read.iter().any(|read| read.orders.is_some()));
    let lines: Vec<_> = lanes
        .map(|lane| {
            let same = lane.each(|read| {
                let orders = read.orders?;
                Some(orders.same as f64 / orders.of as f64)
            });
            let all = lane.each(|read| one_if(read.orders?.same == read.orders?.of));
            (lane.name.clone(), vec![same, all])
        })
        .collect();
    if lines.is_empty() {
        return Ok(None);
    }
    let heads = vec!["same".to_owned(), "all same".to_owned()];
    let mut table = rows("reader-orders", heads, lines, questions)?;
    table.notes = vec![
        "same: the share of ten seeded orders with the answer of the list's own; all same: in all ten".into(),
    ];
    Ok(Some(table))
}

/// The files of `--write`, each with its name: the answers of every list, the types of its passages, and what replaced right answers as
/// a corpus, questions and a run that `annotate new` takes.
pub fn files(lanes: &[ReadLane]) -> Vec<(&'static str, String)> {
    let (mut patterns, mut types) = (Vec::new(), Vec::new());
    let (mut corpus, mut questions, mut run) = (Vec::new(), Vec::new(), String::new());
    for lane in lanes {
        let read = lane.cases.iter().zip(&lane.read).filter(|(_, read)| !read.left_out);
        for (case, read) in read.filter(|(case, _)| lane.failed.iter().all(|(id, _)| *id != case.id)) {
            let effects = read.pattern.effects();
            patterns.push(pattern_line(lane, case, read));
            for (at, (context, effect)) in case.passages.iter().zip(&effects).enumerate() {
                let before = if at == 0 { read.alone.as_ref() } else { read.answers.get(at - 1) };
                types.push(json!({
                    "id": case.id, "question": case.question, "lane": lane.name, "rank": at + 1,
                    "passage": context.passage.id, "title": context.passage.title, "text": context.passage.text,
                    "type": effect.code(), "before": before.map(|answer| &answer.text),
                    "after": read.answers.get(at).map(|answer| &answer.text),
                }));
                if *effect == Effect::DefiniteNegative && at > 0 {
                    let after = read.answers.get(at).map_or("", |answer| answer.text.as_str());
                    let id = format!("dn-{}", corpus.len() + 1);
                    corpus.push(
                        json!({"_id": id, "title": context.passage.title, "text": context.passage.text}),
                    );
                    questions.push(changed_question(&id, case, after));
                    run += &format!("{id} 0 {id} 1 1 changed\n");
                }
            }
        }
    }
    let lines = |values: Vec<Value>| values.iter().map(|value| format!("{value}\n")).collect::<String>();
    vec![
        ("patterns.jsonl", lines(patterns)),
        ("types.jsonl", lines(types)),
        ("changed.corpus.jsonl", lines(corpus)),
        ("changed.questions.jsonl", lines(questions)),
        ("changed.run", run),
    ]
}

/// One question of one lane: what was answered at every depth, and what each passage did.
fn pattern_line(lane: &ReadLane, case: &Case, read: &ReadCase) -> Value {
    let answers = read.alone.iter().chain(&read.answers).map(|answer| &answer.text);
    let pattern: String =
        (1..=read.pattern.len()).map(|k| if read.pattern.em(k) { '1' } else { '0' }).collect();
    let effects = read.pattern.effects();
    let passages = case.passages.iter().zip(&effects);
    let passages = passages
        .map(|(context, effect)| json!({"id": context.passage.id, "type": effect.code()}))
        .collect::<Vec<_>>();
    let negative = (0..effects.len()).filter(|at| effects[*at] == Effect::DefiniteNegative);
    let changed = negative.clone().zip(&read.changed).map(|(at, stands)| {
        json!({
            "rank": at + 1, "passage": case.passages[at].passage.id, "before": read.answers[at - 1].text,
            "after": read.answers[at].text, "stands": stands.name(),
        })
    });
    json!({
        "id": case.id, "question": case.question, "lane": lane.name, "gold": case.gold,
        "from": u8::from(read.alone.is_none()), "answers": answers.collect::<Vec<_>>(), "pattern": pattern,
        "passages": passages, "changed": changed.collect::<Vec<_>>(),
        "attention": read.attention.as_ref().map(|attended| &attended.shares),
    })
}

/// The question that an annotator answers about an answer that replaced a right one (Oh & Thorne, A.3).
fn changed_question(id: &str, case: &Case, after: &str) -> Value {
    let gold = case.gold.join("” or “");
    json!({
        "id": id,
        "question": format!("{} The answer “{gold}” became “{after}”.", case.question),
        "perspectives": [
            format!("“{after}” is equivalent: it means the same as “{gold}”."),
            format!("“{after}” is an alternative: another right answer."),
            format!("“{after}” is temporal: it is right at another time."),
            format!("“{after}” is damaged: it is wrong."),
        ],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::Answer;
    use crate::read::incremental::{pattern, stands};
    use crate::read::reader::testing::contexts;
    use crate::report::reading::{Attended, Study, table};

    fn answer(text: &str) -> Answer {
        Answer { text: text.into(), ..Answer::default() }
    }

    /// Ann, Bob, Ann, Eve from four passages: DP DN DP DN; the first DN holds its answer, the second has it from nowhere.
    fn lane() -> ReadLane {
        let passages = contexts(&["Ann", "Bob", "it is Ann", "nothing"]);
        let answers = ["Ann", "Bob", "the Ann", "Eve"].map(answer).to_vec();
        let gold = vec!["Ann".to_owned()];
        let changed = [1, 3].map(|at: usize| stands(&answers[at].text, &passages, at)).to_vec();
        let read = ReadCase {
            alone: Some(answer("Bob")),
            pattern: pattern(&answers, &gold),
            answers,
            changed,
            given: Some(vec![
                Some(Effect::DefinitePositive),
                Some(Effect::DefinitePositive),
                None,
                Some(Effect::DefiniteNegative),
            ]),
            attention: Some(Attended {
                shares: vec![0.1, 0.6, 0.2, 0.1],
                kept: vec![(4, false), (4, false), (4, false), (4, false), (2, true)],
            }),
            ..ReadCase::default()
        };
        let case = Case { id: "q".into(), question: "Who?".into(), gold, passages, marked: vec![0] };
        ReadLane { name: "bm25".into(), cases: vec![case], read: vec![read], failed: Vec::new(), plain: None }
    }

    fn value(table: &Table, row: usize, column: usize) -> Option<f64> {
        table.rows[row].cells[column].as_ref().map(|cell| cell.mean)
    }

    #[test]
    fn it_is_counted_where_the_answers_stand_that_replaced_right_ones() {
        let table = changed(&[lane()], 1).unwrap();
        assert_eq!([0, 1, 2, 3].map(|column| value(&table, 0, column)), [1.0, 0.0, 1.0, 2.0].map(Some));
        assert!(table.text().contains("in the DN"));
        let none = ReadLane { read: vec![ReadCase::default()], ..lane() };
        assert!(changed(&[none], 1).is_none());
    }

    #[test]
    fn types_of_a_file_are_scored_by_class_and_as_dp_or_dn() {
        // True: DP DN DP DN. Given: DP DP – DN.
        let table = scored(&[lane()], 1).unwrap();
        let row = |name: &str| table.rows.iter().position(|row| row.lane == name).unwrap();
        let of = |name: &str| [0, 1, 2, 3, 4].map(|column| value(&table, row(name), column));
        assert_eq!(of("DP"), [Some(2.0), None, Some(0.5), Some(0.5), Some(0.5)]);
        assert_eq!(of("DN"), [Some(2.0), None, Some(1.0), Some(0.5), Some(2.0 / 3.0)]);
        assert_eq!(of("all five")[..2], [Some(4.0), Some(0.5)]);
        assert_eq!(of("DP or DN"), [Some(4.0), Some(0.5), Some(1.0), Some(0.5), Some(2.0 / 3.0)]);
        assert!(table.notes[0].contains("1 passages have no type"), "{}", table.notes[0]);
    }

    #[test]
    fn attention_is_shared_out_by_type_and_its_thresholds_have_an_em_each() {
        let [by_type, by_threshold] = attention(&[lane()], 1).unwrap().try_into().unwrap();
        // IZ DP DN SP SN
        let mean = [None, Some(0.15), Some(0.35), None, None];
        for (column, expected) in mean.into_iter().enumerate() {
            let found = value(&by_type, 0, column);
            assert!(
                found.zip(expected).map_or(found == expected, |(a, b)| (a - b).abs() < 1e-9),
                "{found:?}"
            );
        }
        assert_eq!([1, 2].map(|column| value(&by_type, 1, column)), [Some(0.0), Some(1.0)]);
        assert_eq!([0, 1, 5].map(|column| value(&by_threshold, 0, column)), [0.0, 0.0, 1.0].map(Some));
        assert_eq!([0, 5].map(|column| value(&by_threshold, 1, column)), [4.0, 2.0].map(Some));
    }

    #[test]
    fn the_files_hold_the_answers_the_types_and_what_annotators_decide() {
        let files = files(&[lane()]);
        let text = |name: &str| &files.iter().find(|(own, _)| *own == name).unwrap().1;
        let line: Value = serde_json::from_str(text("patterns.jsonl").trim()).unwrap();
        assert_eq!((line["pattern"].as_str(), line["from"].as_u64()), (Some("1010"), Some(0)));
        assert_eq!(line["answers"], json!(["Bob", "Ann", "Bob", "the Ann", "Eve"]));
        assert_eq!(line["passages"][1], json!({"id": "Bob", "type": "DN"}));
        assert_eq!(line["changed"][0]["after"], "Bob");
        assert_eq!(line["changed"][1]["stands"], "nowhere");
        assert_eq!(text("types.jsonl").lines().count(), 4);
        assert_eq!(text("changed.questions.jsonl").lines().count(), 2);
        assert!(text("changed.questions.jsonl").contains("“Bob” is equivalent"));
        assert_eq!(text("changed.run").lines().next(), Some("dn-1 0 dn-1 1 1 changed"));
    }

    #[test]
    fn several_lanes_share_every_table_and_the_answer_without_passages_is_k_0() {
        let lanes = [lane(), ReadLane { name: "minilm".into(), plain: Some(0), ..lane() }];
        let reader = crate::read::reader::testing::Last;
        let study = Study { reader: Some(&reader), k: 4, sources: vec!["list".into()] };
        let all = table(&lanes, &study, Vec::new()).unwrap();
        assert_eq!(all.rows.iter().map(|row| row.lane.as_str()).collect::<Vec<_>>(), ["bm25", "minilm"]);
        let over = &all.further[0];
        assert_eq!((over.columns[0].name.as_str(), over.rows[4].lane.as_str()), ("k=0", "minilm EM"));
        assert_eq!([0, 1, 2].map(|column| value(over, 0, column)), [0.0, 1.0, 0.0].map(Some));
        assert_eq!(value(over, 1, 0), None, "AcEM begins at the first passage");
    }
}
