//! Makes tables from the answers of a reader: EM against AcEM over k, types of passages, probes, stability, attention.

use serde_json::json;

use crate::measure::significance::SignificanceError;
use crate::read::files::Case;
use crate::read::incremental::{MOST, Reordered, Stands, unstable};
use crate::read::pattern::Probe;
use crate::read::reader::matches;
use crate::read::{Answer, Effect, Pattern, Reader};
use crate::report::marks::count;
use crate::report::means::{Values, cells};
use crate::report::page::READER_OVER_K;
use crate::report::table::{Head, Row, Table};

/// The answers to one question.
#[derive(Default)]
pub struct ReadCase {
    /// Whether the question is in no mean, because it has nothing to read.
    pub left_out: bool,
    /// The answer without passages; `None` if it was not recorded.
    pub alone: Option<Answer>,
    /// The answers from the first 1 … k.
    pub answers: Vec<Answer>,
    /// Whether the answer is right at every depth.
    pub pattern: Pattern,
    /// The same according to a language model, and how often that changed anything.
    pub judged: Option<(Pattern, Judge)>,
    /// For every probe, how many passages it keeps, and whether the answer from its first 1 … k is right; `None` if that answer was not
    /// recorded.
    pub probes: Vec<(usize, Vec<Option<bool>>)>,
    /// The same answers according to a language model.
    pub judged_probes: Vec<Vec<Option<bool>>>,
    /// The answers from the gold passage alone and with 1 … n passages added, by the source of these.
    pub added: Vec<Vec<Answer>>,
    /// The effects that a file gives the passages; `None` for a passage that it lacks.
    pub given: Option<Vec<Option<Effect>>>,
    /// The reader's attention.
    pub attention: Option<Attended>,
    /// The answer without each of the passages.
    pub without: Vec<Answer>,
    /// How often the answer stays in other orders.
    pub orders: Option<Reordered>,
    /// Where each answer stands that replaced a right one.
    pub changed: Vec<Stands>,
}

impl ReadCase {
    /// A question that was not read: wrong at every depth.
    pub fn unread(case: &Case, k: usize) -> Self {
        let depth = case.passages.len().min(k);
        ReadCase { pattern: (0..depth).map(|_| false).collect(), ..ReadCase::default() }
    }
}

/// The reader's attention on the passages of one question.
pub struct Attended {
    /// The share of each passage.
    pub shares: Vec<f64>,
    /// How many passages are left at every threshold, and whether the answer from these is right.
    pub kept: Vec<(usize, bool)>,
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

/// The lists of one lane, read.
pub struct ReadLane {
    /// Its row's name: the lane, or the reader if the questions bring their passages.
    pub name: String,
    /// The questions with their passages.
    pub cases: Vec<Case>,
    /// The answers, question by question; empty without a reader.
    pub read: Vec<ReadCase>,
    /// The questions that failed, each with the reason.
    pub failed: Vec<(String, String)>,
    /// The row of the same lane without switches.
    pub plain: Option<usize>,
}

/// What was read, besides the lanes.
pub struct Study<'a> {
    /// The reader; without one, the tables show what the passages allow.
    pub reader: Option<&'a dyn Reader>,
    /// How many passages were read.
    pub k: usize,
    /// The sources of added passages.
    pub sources: Vec<String>,
}

/// Makes the table of a suite. Each row has one list of values per column, with one value per question.
pub(super) fn rows(
    suite: &'static str,
    columns: Vec<String>,
    rows: Vec<(String, Vec<Values>)>,
    questions: usize,
) -> Result<Table, SignificanceError> {
    let (names, values): (Vec<String>, Vec<Vec<Values>>) = rows.into_iter().unzip();
    let cells = cells(&values, &vec![None; names.len()])?;
    let row = |((lane, cells), values)| Row { lane, cells, values, ..Row::default() };
    Ok(Table {
        suite,
        columns: columns.into_iter().map(Head::from).collect(),
        rows: names.into_iter().zip(cells).zip(values).map(row).collect(),
        questions,
        label_source: "gold answers".into(),
        ..Table::default()
    })
}

pub(super) fn one_if(yes: bool) -> Option<f64> {
    Some(f64::from(u8::from(yes)))
}

impl ReadLane {
    /// One value per question; none for those that are left out.
    pub(super) fn each(&self, value: impl Fn(&ReadCase) -> Option<f64>) -> Values {
        self.read.iter().map(|read| if read.left_out { None } else { value(read) }).collect()
    }

    /// The name of one of the lane's rows in a table of several.
    pub(super) fn row(&self, lanes: &[ReadLane], name: &str) -> String {
        if lanes.len() > 1 { format!("{} {name}", self.name) } else { name.to_owned() }
    }

    /// Every measure at one depth.
    fn at(&self, k: usize, by_model: bool) -> Vec<(&'static str, Values)> {
        let judged = |read: &ReadCase, value: fn(&Pattern, usize) -> bool| {
            read.judged.as_ref().map_or_else(|| value(&read.pattern, k), |(pattern, _)| value(pattern, k))
        };
        let mut measures: Vec<(&str, Values)> = Vec::new();
        if !self.read.is_empty() {
            let gap = |read: &ReadCase| one_if(read.pattern.accumulated_em(k) && !read.pattern.em(k));
            measures.push(("EM", self.each(|read| one_if(read.pattern.em(k)))));
            measures.push(("AcEM", self.each(|read| one_if(read.pattern.accumulated_em(k)))));
            measures.push(("Gap", self.each(gap)));
            if by_model {
                measures.push(("SeEM", self.each(|read| one_if(judged(read, Pattern::em)))));
                measures.push(("SeAcEM", self.each(|read| one_if(judged(read, Pattern::accumulated_em)))));
            }
        }
        let held = |(at, case): (usize, &Case)| {
            let left_out = self.read.get(at).is_some_and(|read| read.left_out);
            let holds = (0..case.passages.len().min(k)).any(|at| case.holds_gold(at));
            if left_out { None } else { one_if(holds) }
        };
        measures.push(("Held", self.cases.iter().enumerate().map(held).collect()));
        measures
    }

    /// The passages that were read, each with its effect.
    pub(super) fn effects(&self) -> impl Iterator<Item = (&ReadCase, Vec<Effect>)> {
        self.read.iter().filter(|read| !read.left_out).map(|read| (read, read.pattern.effects()))
    }
}

/// Makes all tables. Without a reader, they only show what the passages allow.
pub fn table(
    lanes: &[ReadLane],
    study: &Study<'_>,
    mut notes: Vec<String>,
) -> Result<Table, SignificanceError> {
    let k = study.k;
    let questions = lanes.first().map_or(0, |lane| lane.cases.len());
    let by_model = lanes.iter().flat_map(|lane| &lane.read).any(|read| read.judged.is_some());
    let third = Probe::all().nth(2).map(|probe| probe.to_string()).unwrap_or_default();
    let (mut heads, mut values) = (Vec::new(), Vec::new());
    for lane in lanes {
        let (mut names, mut own): (Vec<String>, Vec<Values>) =
            lane.at(k, by_model).into_iter().map(|(name, values)| (format!("{name}@{k}"), values)).unzip();
        if study.reader.is_some() {
            names.push(format!("{third}@{k}"));
            own.push(lane.each(|read| one_if((*read.probes.get(2)?.1.last()?)?)));
        }
        heads = names;
        values.push(own);
    }
    let plain: Vec<Option<usize>> = lanes.iter().map(|lane| lane.plain).collect();
    let row = |((lane, cells), values): ((&ReadLane, _), _)| Row {
        lane: lane.name.clone(),
        cells,
        values,
        failed: lane.failed.clone(),
        ..Row::default()
    };
    let made = cells(&values, &plain)?;
    let mut models = json!({"reader": study.reader.map(|reader| reader.name())});
    if let Some(key) = study.reader.and_then(|reader| reader.key()) {
        models["reader_weights"] = key.into();
    }
    let mut table = Table {
        suite: "reader",
        columns: heads.into_iter().map(Head::from).collect(),
        rows: lanes.iter().zip(made).zip(values).map(row).collect(),
        questions,
        question_ids: lanes
            .first()
            .map_or_else(Vec::new, |lane| lane.cases.iter().map(|case| case.id.clone()).collect()),
        k: Some(k),
        label_source: "gold answers".into(),
        provenance: json!({"version": env!("CARGO_PKG_VERSION"), "models": models, "seed": 0}),
        ..Table::default()
    };
    table.further.push(over_k(lanes, k, by_model, questions)?);
    if let Some(reader) = study.reader {
        table.further.push(types(lanes, questions, &mut notes)?);
        table.further.push(probes(lanes, k, questions)?);
        table.further.push(stability(lanes, &study.sources, questions)?);
        table.further.push(with_added(lanes, &study.sources, questions)?);
        notes.extend(caveats(lanes, reader));
    }
    notes.push(
        "AcEM: right at any depth so far; Gap = AcEM − EM; Held: a passage of the first k has a gold answer's words"
            .into(),
    );
    table.notes = notes;
    Ok(table)
}

/// Makes the table over k. EM also has the answer without passages, where that was read.
fn over_k(
    lanes: &[ReadLane],
    k: usize,
    by_model: bool,
    questions: usize,
) -> Result<Table, SignificanceError> {
    let from_none = lanes.iter().flat_map(|lane| &lane.read).any(|read| read.alone.is_some());
    let mut lines = Vec::new();
    for lane in lanes {
        let depths: Vec<Vec<(&str, Values)>> = (1..=k).map(|k| lane.at(k, by_model)).collect();
        for measure in 0..depths.first().map_or(0, Vec::len) {
            let name = depths[0][measure].0;
            let mut values: Vec<Values> = depths.iter().map(|depth| depth[measure].1.clone()).collect();
            if from_none {
                let gold = lane.cases.iter().map(|case| &case.gold);
                let right = |(read, gold): (&ReadCase, &Vec<String>)| {
                    let answer = read.alone.as_ref().filter(|_| name == "EM" && !read.left_out)?;
                    one_if(matches(&answer.text, gold))
                };
                values.insert(0, lane.read.iter().zip(gold).map(right).collect());
            }
            lines.push((lane.row(lanes, name), values));
        }
    }
    let heads = (usize::from(!from_none)..=k).map(|k| format!("k={k}")).collect();
    rows(READER_OVER_K, heads, lines, questions)
}

pub(super) fn codes() -> Vec<String> {
    Effect::ALL.iter().map(|effect| effect.code().to_owned()).collect()
}

/// Makes the table of how many passages of each type a question has, and notes the counts over all questions.
fn types(lanes: &[ReadLane], questions: usize, notes: &mut Vec<String>) -> Result<Table, SignificanceError> {
    let mut lines = Vec::new();
    for lane in lanes {
        let count = |read: &ReadCase, effect: Effect| {
            read.pattern.effects().iter().filter(|own| **own == effect).count()
        };
        let all = |effect| lane.read.iter().map(|read| count(read, effect)).sum::<usize>();
        let counts = Effect::ALL.map(|effect| format!("{} {}", effect.code(), all(effect)));
        let whose = if lanes.len() > 1 { format!("{}: ", lane.name) } else { String::new() };
        notes.push(format!(
            "{whose}passages by type: {}; the table of types has them per question",
            counts.join(", ")
        ));
        let values = Effect::ALL.map(|effect| lane.each(|read| Some(count(read, effect) as f64)));
        lines.push((lane.name.clone(), values.to_vec()));
    }
    rows("reader-types", codes(), lines, questions)
}

/// Makes the table of answers that are right if only the passages kept by a probe are read, at every size.
fn probes(lanes: &[ReadLane], k: usize, questions: usize) -> Result<Table, SignificanceError> {
    let mut lines = Vec::new();
    for lane in lanes {
        for (at, probe) in Probe::all().enumerate() {
            let kept = || lane.each(|read| Some(read.probes.get(at)?.0 as f64));
            let own = (0..k).map(|size| lane.each(|read| one_if((*read.probes.get(at)?.1.get(size)?)?)));
            lines.push((lane.row(lanes, &probe.to_string()), std::iter::once(kept()).chain(own).collect()));
            if lane.read.iter().any(|read| !read.judged_probes.is_empty()) {
                let judged =
                    (0..k).map(|size| lane.each(|read| one_if((*read.judged_probes.get(at)?.get(size)?)?)));
                let name = lane.row(lanes, &format!("{probe} SeEM"));
                lines.push((name, std::iter::once(kept()).chain(judged).collect()));
            }
        }
    }
    let mut heads = vec!["kept".to_owned()];
    heads.extend((1..=k).map(|size| format!("EM@{size}")));
    let mut table = rows("reader-probes", heads, lines, questions)?;
    table.notes = vec![
        "EM@n: n of the passages that a probe keeps, DP and SP by rank, then the others by rank; if it keeps no more than n, in their order. Of a \
         list without a right answer all are kept"
            .into(),
    ];
    if lanes.iter().flat_map(|lane| &lane.read).any(|read| read.given.is_some()) {
        table.notes.push("the passages are chosen by the types of the file".into());
    }
    Ok(table)
}

/// Makes the table of SER@1 … SER@4, over the questions that are right from the gold passage alone.
fn stability(lanes: &[ReadLane], sources: &[String], questions: usize) -> Result<Table, SignificanceError> {
    let mut lines = Vec::new();
    for lane in lanes {
        for (from, source) in sources.iter().enumerate() {
            let differs = |(read, case): (&ReadCase, &Case)| unstable(read.added.get(from)?, &case.gold);
            let differs: Vec<_> = lane.read.iter().zip(&lane.cases).map(differs).collect();
            let at = |n: usize| differs.iter().map(|one| one_if(*one.as_ref()?.get(n)?)).collect::<Values>();
            if lane.read.iter().any(|read| read.added.get(from).is_some()) {
                lines.push((lane.row(lanes, source), (0..MOST).map(at).collect()));
            }
        }
    }
    let heads = (1..=MOST).map(|n| format!("SER@{n}")).collect();
    let mut table = rows("reader-stability", heads, lines, questions)?;
    let alone = |(read, case): (&ReadCase, &Case)| {
        read.added.iter().flat_map(|answers| answers.first()).any(|one| matches(&one.text, &case.gold))
    };
    let right = lanes.iter().map(|lane| lane.read.iter().zip(&lane.cases).filter(|one| alone(*one)).count());
    let right = right.max().unwrap_or(0);
    table.counts = true;
    table.notes = vec![format!(
        "{} right from the gold passage alone. SER@n: how often n added passages without a gold answer change the answer, over the n=… of them to which so many can be added and whose answers are known; – if there are none",
        count(right, "question is", "questions are")
    )];
    Ok(table)
}

/// Makes the table of EM and AcEM from the gold passage with 0 … 4 passages added.
fn with_added(lanes: &[ReadLane], sources: &[String], questions: usize) -> Result<Table, SignificanceError> {
    let mut lines = Vec::new();
    for lane in lanes.iter().filter(|lane| lane.read.iter().any(|read| !read.added.is_empty())) {
        for (from, source) in sources.iter().enumerate() {
            let pattern = |(read, case): (&ReadCase, &Case)| -> Option<Pattern> {
                Some(read.added.get(from)?.iter().map(|answer| matches(&answer.text, &case.gold)).collect())
            };
            let patterns: Vec<Option<Pattern>> =
                lane.read.iter().zip(&lane.cases).map(pattern).map(|p| p.filter(|p| !p.is_empty())).collect();
            for (name, value) in
                [("EM", Pattern::em as fn(&Pattern, usize) -> bool), ("AcEM", Pattern::accumulated_em)]
            {
                let at = |n: usize| {
                    let one = |pattern: &Option<Pattern>| {
                        let pattern = pattern.as_ref().filter(|pattern| pattern.len() > n)?;
                        one_if(value(pattern, n + 1))
                    };
                    patterns.iter().map(one).collect::<Values>()
                };
                lines.push((lane.row(lanes, &format!("{source} {name}")), (0..=MOST).map(at).collect()));
            }
        }
    }
    let heads = (0..=MOST).map(|n| format!("gold+{n}")).collect();
    rows("reader-added", heads, lines, questions)
}

/// Returns notes about the answers.
fn caveats(lanes: &[ReadLane], reader: &dyn Reader) -> Vec<String> {
    let read = || lanes.iter().flat_map(|lane| &lane.read);
    let answers = || read().flat_map(|read| &read.answers);
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
    let judges = || read().filter_map(|read| read.judged.as_ref().map(|(_, judge)| judge));
    let (added, discarded): (usize, usize) =
        (judges().map(|judge| judge.added).sum(), judges().map(|judge| judge.discarded).sum());
    if judges().count() > 0 {
        notes
            .push(format!("{added} answers joined a gold list; {discarded} replies were neither Yes nor No"));
    }
    notes
}
