//! Makes tables from the answers of a reader: EM against AcEM over k, types of passages, probes, stability.

use serde_json::json;

use crate::measure::significance::SignificanceError;
use crate::read::files::Case;
use crate::read::incremental::MOST;
use crate::read::pattern::Probe;
use crate::read::{Answer, Effect, Pattern, Reader};
use crate::report::means::{Values, cells};
use crate::report::page::READER_OVER_K;
use crate::report::table::{Head, Row, Table};

/// The answers to one question.
#[derive(Default)]
pub struct ReadCase {
    /// The answers from the first 1 … k.
    pub answers: Vec<Answer>,
    /// Whether the answer is right at every depth.
    pub pattern: Pattern,
    /// The same according to a language model, and how often that changed anything.
    pub judged: Option<(Pattern, Judge)>,
    /// For every probe, how many passages it keeps, and whether the answer from its first 1 … k is right; `None` if that answer was not
    /// recorded.
    pub probes: Vec<(usize, Vec<Option<bool>>)>,
    /// Whether the answer changes when 1 … n passages are added: retrieved ones, then random ones.
    pub unstable: [Option<Vec<bool>>; 2],
}

/// The name of the row that shows what the passages allow any reader.
pub const HELD: &str = "a passage holds it";

/// How often a language model changed whether an answer counts.
#[derive(Clone, Copy, Default)]
pub struct Judge {
    /// Answers that joined a gold list.
    pub added: usize,
    /// Replies that were neither Yes nor No.
    pub discarded: usize,
}

/// Makes the table of a suite. Each row has one list of values per column, with one value per question.
fn rows(
    suite: &'static str,
    columns: Vec<String>,
    rows: Vec<(String, Vec<Values>)>,
    failed: &[(String, String)],
    questions: usize,
) -> Result<Table, SignificanceError> {
    let (names, values): (Vec<String>, Vec<Vec<Values>>) = rows.into_iter().unzip();
    let cells = cells(&values, &vec![None; names.len()])?;
    let row =
        |((lane, cells), values)| Row { lane, cells, values, failed: failed.to_vec(), ..Row::default() };
    Ok(Table {
        suite,
        columns: columns.into_iter().map(Head::from).collect(),
        rows: names.into_iter().zip(cells).zip(values).map(row).collect(),
        questions,
        label_source: "gold answers".into(),
        ..Table::default()
    })
}

fn one_if(yes: bool) -> Option<f64> {
    Some(f64::from(u8::from(yes)))
}

/// Makes all tables. Without a reader, they only show what the passages allow.
pub fn table(
    cases: &[Case],
    read: &[ReadCase],
    failed: &[(String, String)],
    reader: Option<&dyn Reader>,
    k: usize,
    mut notes: Vec<String>,
) -> Result<Table, SignificanceError> {
    let first = |case: &Case| (0..case.passages.len().min(k)).find(|at| case.holds_gold(*at));
    let first: Vec<Option<usize>> = cases.iter().map(first).collect();
    let held =
        |k: usize| first.iter().map(|first| one_if(first.is_some_and(|at| at < k))).collect::<Values>();
    let each = |value: &dyn Fn(&ReadCase) -> Option<f64>| read.iter().map(value).collect::<Values>();
    let judged = |read: &ReadCase, value: fn(&Pattern, usize) -> bool, k: usize| {
        read.judged.as_ref().map_or_else(|| value(&read.pattern, k), |(pattern, _)| value(pattern, k))
    };
    let by_model = read.iter().any(|read| read.judged.is_some());
    let at = |k: usize| {
        let mut measures: Vec<(&str, Values)> = Vec::new();
        if reader.is_some() {
            let gap = |read: &ReadCase| {
                Some(f64::from(u8::from(read.pattern.accumulated_em(k) && !read.pattern.em(k))))
            };
            measures.push(("EM", each(&|read| one_if(read.pattern.em(k)))));
            measures.push(("AcEM", each(&|read| one_if(read.pattern.accumulated_em(k)))));
            measures.push(("Gap", each(&gap)));
            if by_model {
                measures.push(("SeEM", each(&|read| one_if(judged(read, Pattern::em, k)))));
                measures.push(("SeAcEM", each(&|read| one_if(judged(read, Pattern::accumulated_em, k)))));
            }
        }
        measures.push(("Held", held(k)));
        measures
    };
    let named = reader.map(|reader| reader.name());
    let name = named.unwrap_or(HELD).to_owned();
    let (heads, values): (Vec<String>, Vec<Values>) =
        at(k).into_iter().map(|(measure, values)| (format!("{measure}@{k}"), values)).unzip();
    let mut table = rows("reader", heads, vec![(name.clone(), values)], failed, cases.len())?;
    table.question_ids = cases.iter().map(|case| case.id.clone()).collect();
    table.k = Some(k);
    let mut models = json!({"reader": named});
    if let Some(key) = reader.and_then(|reader| reader.key()) {
        models["reader_weights"] = key.into();
    }
    table.provenance = json!({"version": env!("CARGO_PKG_VERSION"), "models": models, "seed": 0});

    let depths: Vec<Vec<(&str, Values)>> = (1..=k).map(at).collect();
    let measures = depths.first().map_or(0, Vec::len);
    let over = (0..measures).map(|measure| {
        let values = depths.iter().map(|depth| depth[measure].1.clone()).collect();
        (depths[0][measure].0.to_owned(), values)
    });
    let heads = (1..=k).map(|k| format!("k={k}")).collect();
    table.further.push(rows(READER_OVER_K, heads, over.collect(), &[], cases.len())?);
    if let Some(reader) = reader {
        let (types, counts) = types(read);
        notes.push(counts);
        table.further.push(rows("reader-types", codes(), vec![(name, types)], &[], cases.len())?);
        table.further.push(probes(read, k, cases.len())?);
        table.further.push(stability(read, cases.len())?);
        notes.extend(caveats(read, reader));
    }
    notes.push(
        "AcEM: right at any depth so far; Gap = AcEM − EM; Held: a passage of the first k has a gold answer's words"
            .into(),
    );
    table.notes = notes;
    Ok(table)
}

fn codes() -> Vec<String> {
    Effect::ALL.iter().map(|effect| effect.code().to_owned()).collect()
}

/// Returns how many passages of each type every question has, and the counts over all questions in words.
fn types(read: &[ReadCase]) -> (Vec<Values>, String) {
    let count =
        |read: &ReadCase, effect: Effect| read.pattern.effects().iter().filter(|own| **own == effect).count();
    let all = |effect: Effect| read.iter().map(|read| count(read, effect)).sum::<usize>();
    let values = Effect::ALL.map(|effect| read.iter().map(|read| Some(count(read, effect) as f64)).collect());
    let counts = Effect::ALL.map(|effect| format!("{} {}", effect.code(), all(effect)));
    (
        values.to_vec(),
        format!("passages by type: {}; the table of types has them per question", counts.join(", ")),
    )
}

/// Makes the table of answers that are right if only the passages kept by a probe are read, at every size.
fn probes(read: &[ReadCase], k: usize, questions: usize) -> Result<Table, SignificanceError> {
    let row = |(at, probe): (usize, Probe)| {
        let of = |read: &ReadCase| read.probes.get(at).cloned();
        let kept = read.iter().map(|read| Some(of(read)?.0 as f64)).collect::<Values>();
        let right = (0..k).map(|size| {
            let right = |read: &ReadCase| one_if((*of(read)?.1.get(size)?)?);
            read.iter().map(right).collect::<Values>()
        });
        (probe.to_string(), std::iter::once(kept).chain(right).collect())
    };
    let mut heads = vec!["kept".to_owned()];
    heads.extend((1..=k).map(|size| format!("EM@{size}")));
    let mut table =
        rows("reader-probes", heads, Probe::all().enumerate().map(row).collect(), &[], questions)?;
    table.notes = vec![
        "EM@n: n of the passages that a probe keeps, DP and SP by rank, then the others by rank; if it keeps no more than n, in their order. Of a \
         list without a right answer all are kept"
            .into(),
    ];
    Ok(table)
}

/// Makes the table of SER@1 … SER@4, over the questions that are right from the gold passage alone.
fn stability(read: &[ReadCase], questions: usize) -> Result<Table, SignificanceError> {
    let row = |from: usize| {
        let at = |n: usize| {
            let one =
                |read: &ReadCase| read.unstable[from].as_ref()?.get(n).and_then(|differs| one_if(*differs));
            read.iter().map(one).collect::<Values>()
        };
        (0..MOST).map(at).collect::<Vec<Values>>()
    };
    let lines = vec![("retrieved".to_owned(), row(0)), ("random".to_owned(), row(1))];
    let heads = (1..=MOST).map(|n| format!("SER@{n}")).collect();
    let mut table = rows("reader-stability", heads, lines, &[], questions)?;
    let right = read.iter().filter(|read| read.unstable.iter().any(Option::is_some)).count();
    table.counts = true;
    table.notes = vec![format!(
        "{right} questions are right from the gold passage alone. SER@n: how often n added passages without a gold answer change the answer, over the n=… of them to which so many can be added and whose answers are known; – if there are none"
    )];
    Ok(table)
}

/// Returns notes about the answers.
fn caveats(read: &[ReadCase], reader: &dyn Reader) -> Vec<String> {
    let answers = || read.iter().flat_map(|read| &read.answers);
    let (empty, refused, cut) = (
        answers().filter(|answer| answer.is_empty()).count(),
        answers().filter(|answer| answer.is_refusal()).count(),
        answers().filter(|answer| answer.cut > 0).count(),
    );
    let all = answers().count();
    let mut notes = vec![format!(
        "{all} answers over k: {empty} empty, never right; {refused} refusals, kept as answers"
    )];
    if cut > 0 {
        notes.push(format!("{cut} readings were cut at {}: the rest was not read", reader.window()));
    }
    let judges = || read.iter().filter_map(|read| read.judged.as_ref().map(|(_, judge)| judge));
    let (added, discarded): (usize, usize) =
        (judges().map(|judge| judge.added).sum(), judges().map(|judge| judge.discarded).sum());
    if judges().count() > 0 {
        notes
            .push(format!("{added} answers joined a gold list; {discarded} replies were neither Yes nor No"));
    }
    notes
}
