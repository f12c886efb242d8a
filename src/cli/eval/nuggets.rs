//! `eval nuggets`: which key points every lane brings (AutoNuggetizer's nugget recall over clusters of sentences), and with `--matching`
//! how well such clusters agree with key points by hand (Bar-Haim et al., 2020; Friedman-Melamed et al., 2021).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write;
use std::path::Path;

use anyhow::bail;
use serde_json::json;

use crate::cli::eval::args::{Eval, check_thresholds};
use crate::cli::eval::lanes::{LaneNotes, Lanes, name_the_model};
use crate::cli::job::{Meter, stop_on_signal};
use crate::cli::options::Common;
use crate::encode::{Encoder, MiniLm};
use crate::engine::nuggets::{
    KeyPoint, THRESHOLD, embedded, judged as judged_in, key_points, picks_sentences, pool, read, recall,
    to_lines,
};
use crate::engine::{Depth, Ranked, Shares, model_threads};
use crate::input::{Expected, InputError, Lines, fields};
use crate::measure::nuggets::{BCubed, agglomerate};
use crate::report::lists::{make_folder, put};
use crate::report::means::{Values, rows};
use crate::report::safe;
use crate::report::table::{Cell, Head, Row, Table};
use crate::work::{Progress, Stop};

/// The measures of a lane: all, vital and weighted recall, those of either side, and how many only this lane brings.
const COLUMNS: [&str; 6] = ["Nuggets", "Vital", "Weighted", "Nuggets-1", "Nuggets-2", "only"];

/// Returns the tables, or `None` if the user interrupted.
pub fn table(common: &Common, args: &Eval) -> anyhow::Result<Option<Table>> {
    if let Some(folder) = &args.nuggets.matching {
        return matching(args, folder);
    }
    let lanes = Lanes::open(common, args)?;
    check_thresholds(args, lanes.recipes.iter().map(ToString::to_string))?;
    let k = usize::from(common.k);
    let edited =
        args.nuggets.key_points.as_deref().map(|path| read(path, &lanes.setup.questions)).transpose()?;
    let (maxima, count) = (lanes.maxima()?, lanes.recipes.len());
    let mut values: Vec<Vec<Values>> = vec![vec![Values::new(); COLUMNS.len()]; count];
    let (mut failed, mut judged) = (vec![Vec::new(); count], vec![(0, 0); count]);
    let (mut lane_notes, mut shares) = (LaneNotes::default(), Shares::default());
    let mut sources = vec![Shares::default(); count];
    let (mut measured, mut without) = (Vec::new(), Vec::new());
    let (mut lines, mut ranks) = (String::new(), ranks_head(&lanes));
    let mut sums = Sums::default();
    let questions = &lanes.setup.questions;
    for (done, question) in questions.iter().enumerate() {
        lanes.show(done, questions.len());
        let outcome = lanes.run(question, k, Depth::Top, &maxima)?;
        if lanes.stop.is_set() {
            return Ok(None);
        }
        let lists: Vec<&[Ranked]> =
            outcome.lanes.iter().map(|lane| top(lane.ranking.as_deref().ok(), k)).collect();
        let points = match &edited {
            Some(edited) => edited[done].clone(),
            None => {
                let found = judged_in(lists.iter().copied(), &outcome.judgments);
                let pool = pool(&lanes.setup, question, lanes.source, found);
                let progress = |progress: Progress| {
                    if progress.total > MANY {
                        lanes.meter.show(progress)
                    }
                };
                match key_points(&lanes.setup, question, &pool, &progress, &lanes.stop) {
                    Err(error) if error.is_stop() => return Ok(None),
                    points => points?,
                }
            }
        };
        if points.is_empty() {
            without.push(question.id.as_str());
            continue;
        }
        measured.push(question);
        lane_notes.take(&outcome);
        shares = shares.plus(outcome.shares());
        for (own, here) in sources.iter_mut().zip(outcome.shares_by_lane()) {
            *own = own.plus(here);
        }
        for (lane, found) in outcome.lanes.iter().enumerate() {
            failed[lane]
                .extend(found.ranking.as_ref().err().map(|error| (question.id.clone(), error.to_string())));
            judged[lane].1 += lists[lane].len();
            judged[lane].0 +=
                lists[lane].iter().filter(|one| outcome.judgments.support(one.at).is_some()).count();
            for (column, value) in of_lane(&points, &lists, lane, k).into_iter().enumerate() {
                values[lane][column].push(value);
            }
        }
        sums.add(&points, &lists, k);
        lines += &to_lines(question, &points);
        add_ranks(&mut ranks, &question.id, &question.perspectives, &points, &lists);
    }
    lanes.show(questions.len(), questions.len());
    if measured.is_empty() {
        bail!(
            "no question has a key point: no passage among the first {k} of any lane supports a statement; raise -k, or name labels with --labels"
        );
    }
    if let Some(folder) = &args.write {
        make_folder(folder)?;
        put(folder, "key-points.jsonl", lines.as_bytes())?;
        put(folder, "ranks.tsv", ranks.as_bytes())?;
    }
    let names = lanes.recipes.iter().map(ToString::to_string);
    let mut rows = rows(names, values, &lanes.compared_with(), failed, judged)?;
    lane_notes.name(&mut rows);
    name_the_model(&mut rows, &sources);
    let mut notes = sums.notes(measured.len());
    notes.push(match &args.nuggets.key_points {
        Some(path) => format!("key points: {}", path.display()),
        None => made_from(picks_sentences(&lanes.setup)?),
    });
    if !without.is_empty() {
        notes.push(format!(
            "{} questions have no key point and are left out: {}",
            without.len(),
            without.iter().take(5).copied().collect::<Vec<_>>().join(", ")
        ));
    }
    notes.extend(lane_notes.notes());
    let heads = COLUMNS.iter().enumerate().map(|(at, name)| match at {
        0..=2 => Head::plotted(format!("{name}@{k}")),
        _ => Head::from(format!("{name}@{k}")),
    });
    Ok(Some(Table { columns: heads.collect(), rows, notes, ..lanes.table("nuggets", measured, k, shares)? }))
}

/// A question with fewer sentences shows no progress of its own.
const MANY: u64 = 500;

/// The first k of a lane; empty if it has no list.
fn top(list: Option<&crate::engine::List>, k: usize) -> &[Ranked] {
    list.map_or(&[], |list| &list[..list.len().min(k)])
}

fn made_from(picked: bool) -> String {
    let sentences = if picked {
        "the sentences that the detector finds to support it, at least one"
    } else {
        "all its sentences, because this detector judges no single sentences"
    };
    format!(
        "key points: of every passage that supports a statement, {sentences}; clustered by the built-in encoder, average linkage, mean cosine \
         {THRESHOLD} or more; vital: two passages or more make it"
    )
}

/// The values of one lane in the order of [`COLUMNS`].
fn of_lane(points: &[KeyPoint], lists: &[&[Ranked]], lane: usize, k: usize) -> [Option<f64>; 6] {
    let whole = recall(points, lists[lane], k);
    let side = |side: usize| {
        let own: Vec<KeyPoint> = points.iter().filter(|point| point.perspective == side).cloned().collect();
        recall(&own, lists[lane], k).map(|recall| recall.all)
    };
    let others = |point: &&KeyPoint| {
        lists.iter().enumerate().all(|(other, list)| (other == lane) == point.is_in(list, k))
    };
    [
        whole.map(|recall| recall.all),
        whole.and_then(|recall| recall.vital),
        whole.map(|recall| recall.weighted),
        side(0),
        side(1),
        Some(points.iter().filter(others).count() as f64),
    ]
}

/// What all key points are together.
#[derive(Default)]
struct Sums {
    points: usize,
    vital: usize,
    voices: usize,
    missed: usize,
    vital_missed: usize,
}

impl Sums {
    fn add(&mut self, points: &[KeyPoint], lists: &[&[Ranked]], k: usize) {
        for point in points {
            let missed = lists.iter().all(|list| !point.is_in(list, k));
            self.points += 1;
            self.voices += point.voices.len();
            self.vital += usize::from(point.vital);
            self.missed += usize::from(missed);
            self.vital_missed += usize::from(missed && point.vital);
        }
    }

    fn notes(&self, questions: usize) -> Vec<String> {
        let Sums { points, vital, voices, missed, vital_missed } = self;
        vec![
            format!("{points} key points of {voices} sentences over {questions} questions, {vital} vital"),
            format!(
                "no lane brings {missed} of them, {vital_missed} of these vital; `only`: those that no other lane brings, a question"
            ),
        ]
    }
}

fn ranks_head(lanes: &Lanes) -> String {
    let names: Vec<String> = lanes.recipes.iter().map(|recipe| safe::field(&recipe.to_string())).collect();
    format!("question\tstatement\tkey_point\tvital\tpassages\t{}\n", names.join("\t"))
}

/// One line for each key point, with the rank at which each lane brings it; empty if it does not within the first k.
fn add_ranks(out: &mut String, id: &str, statements: &[String], points: &[KeyPoint], lists: &[&[Ranked]]) {
    for point in points {
        let statement = statements.get(point.perspective).map_or("", String::as_str);
        let ranks =
            lists.iter().map(|list| point.rank_in(list).map_or_else(String::new, |rank| rank.to_string()));
        let _ = writeln!(
            out,
            "{}\t{}\t{}\t{}\t{}\t{}",
            safe::field(id),
            safe::field(statement),
            safe::field(&point.name),
            u8::from(point.vital),
            point.passages(),
            ranks.collect::<Vec<_>>().join("\t")
        );
    }
}

/// The sentences of one topic and side, each with the key points that it matches.
struct Group {
    name: String,
    texts: Vec<String>,
    matched: Vec<Vec<usize>>,
}

/// Reads the rows of a CSV file with these columns.
fn csv(path: &Path, columns: &[&str]) -> Result<Vec<Vec<String>>, InputError> {
    let (mut rows, mut found) = (Vec::new(), Lines::rows(path)?);
    while let Some(line) = found.next_line()? {
        let first = line.number == 1;
        let row = fields(line.text, ',').and_then(|row| match row.len() == columns.len() {
            _ if first && row != columns => Err(Expected(format!("the columns {}", columns.join(",")))),
            true => Ok(row),
            false => Err(Expected(format!("{} fields: {}", columns.len(), columns.join(",")))),
        });
        match row {
            Ok(_) if first => {}
            Ok(row) => rows.push(row),
            Err(expected) => found.bad(expected),
        }
    }
    found.end()?;
    Ok(rows)
}

/// Reads one part of the shared task's data. Sentences that match no key point are left out.
fn groups(folder: &Path, part: &str) -> Result<Vec<Group>, InputError> {
    let kind = if part == "test" { "test_data" } else { "kpm_data" };
    let file = |what: &str| folder.join(format!("{kind}-{what}_{part}.csv"));
    let mut points: HashMap<String, usize> = HashMap::new();
    for row in csv(&file("key_points"), &["key_point_id", "key_point", "topic", "stance"])? {
        let next = points.len();
        points.entry(row[0].clone()).or_insert(next);
    }
    let mut matched: HashMap<String, BTreeSet<usize>> = HashMap::new();
    for row in csv(&file("labels"), &["arg_id", "key_point_id", "label"])? {
        if let (Some(point), "1") = (points.get(&row[1]), row[2].as_str()) {
            matched.entry(row[0].clone()).or_default().insert(*point);
        }
    }
    let mut groups: BTreeMap<(String, String), Group> = BTreeMap::new();
    for row in csv(&file("arguments"), &["arg_id", "argument", "topic", "stance"])? {
        let Some(own) = matched.get(&row[0]) else { continue };
        let group = groups.entry((row[2].clone(), row[3].clone())).or_insert_with(|| Group {
            name: format!("{} ({})", row[2], row[3]),
            texts: Vec::new(),
            matched: Vec::new(),
        });
        group.texts.push(row[1].clone());
        group.matched.push(own.iter().copied().collect());
    }
    Ok(groups.into_values().collect())
}

/// The thresholds that are tried.
fn grid() -> impl Iterator<Item = f64> {
    (10..=40).map(|step| f64::from(step) / 50.0)
}

/// Precision, recall and F1 of each group, clustered at a threshold.
fn scored(groups: &[(Group, Vec<Vec<f32>>)], threshold: f64, stop: &Stop) -> anyhow::Result<Vec<Values>> {
    let mut values = vec![Values::new(); 3];
    for (group, rows) in groups {
        let clusters = agglomerate(rows, threshold, &|_| (), stop)?;
        push(&mut values, BCubed::of(&clusters, &group.matched));
    }
    Ok(values)
}

fn push(values: &mut [Values], agreement: Option<BCubed>) {
    let all =
        [agreement.map(|one| one.precision), agreement.map(|one| one.recall), agreement.map(BCubed::f1)];
    values.iter_mut().zip(all).for_each(|(values, value)| values.push(value));
}

fn mean(values: &Values) -> f64 {
    let known: Vec<f64> = values.iter().flatten().copied().collect();
    known.iter().sum::<f64>() / known.len().max(1) as f64
}

/// Fits the threshold on the training part, and compares clusters with key points by hand on the others. `None` if the user interrupted.
fn matching(args: &Eval, folder: &Path) -> anyhow::Result<Option<Table>> {
    if !folder.is_dir() {
        bail!(
            "{}: not a folder; expected one with kpm_data-arguments_train.csv and the files beside it",
            folder.display()
        );
    }
    check_thresholds(args, ["clusters", "one cluster", "each alone"].map(str::to_owned))?;
    let (stop, meter) = (stop_on_signal()?, Meter::default());
    let (encoder, threads) = (MiniLm::builtin()?, model_threads()?);
    type Embedded = (Group, Vec<Vec<f32>>);
    let read = |parts: &[&str]| -> anyhow::Result<Option<Vec<Embedded>>> {
        let mut all = Vec::new();
        for part in parts {
            for group in groups(folder, part)? {
                let texts: Vec<&str> = group.texts.iter().map(String::as_str).collect();
                let progress = |progress| meter.show(progress);
                match embedded(&encoder, &threads, &texts, &progress, &stop) {
                    Err(error) if error.is_stop() => return Ok(None),
                    rows => all.push((group, rows?)),
                }
            }
        }
        Ok(Some(all))
    };
    let Some(train) = read(&["train"])? else { return Ok(None) };
    let Some(held) = read(&["dev", "test"])? else { return Ok(None) };
    if train.is_empty() || held.is_empty() {
        bail!("{}: no sentence matches a key point", folder.display());
    }
    let mut fitted = Vec::new();
    for threshold in grid() {
        if stop.is_set() {
            return Ok(None);
        }
        fitted.push((threshold, scored(&train, threshold, &stop)?));
    }
    let best = fitted.iter().map(|(threshold, values)| (*threshold, mean(&values[2])));
    // Of equal ones the first.
    let best =
        best.reduce(|best, next| if next.1 > best.1 { next } else { best }).map_or(THRESHOLD, |best| best.0);
    let (mut one, mut alone) = (vec![Values::new(); 3], vec![Values::new(); 3]);
    for (group, _) in &held {
        let n = group.texts.len();
        push(&mut one, BCubed::of(&vec![0; n], &group.matched));
        push(&mut alone, BCubed::of(&(0..n).collect::<Vec<_>>(), &group.matched));
    }
    let own = scored(&held, best, &stop)?;
    let names = ["clusters", "one cluster", "each alone"].map(str::to_owned);
    let heads = || ["precision", "recall", "F1"].map(Head::from).to_vec();
    let rows =
        rows(names, vec![own, one, alone], &[None, Some(0), Some(0)], vec![Vec::new(); 3], vec![(0, 0); 3])?;
    let sentences =
        |groups: &[(Group, Vec<Vec<f32>>)]| groups.iter().map(|(group, _)| group.texts.len()).sum::<usize>();
    let fit = |(threshold, values): &(f64, Vec<Values>)| {
        let cell = |values: &Values| Some(Cell { mean: mean(values), n: values.len(), ..Cell::default() });
        Row { lane: format!("{threshold:.2}"), cells: values.iter().map(cell).collect(), ..Row::default() }
    };
    let curve = Table {
        suite: "nuggets-threshold",
        columns: heads(),
        rows: fitted.iter().map(fit).collect(),
        questions: train.len(),
        label_source: "key points by hand".into(),
        notes: vec![format!("the training part, {} sentences: each threshold", sentences(&train))],
        ..Table::default()
    };
    Ok(Some(Table {
        suite: "nuggets-matching",
        question_ids: held.iter().map(|(group, _)| group.name.clone()).collect(),
        columns: heads(),
        rows,
        questions: held.len(),
        label_source: "key points by hand".into(),
        baseline: Some("clusters".into()),
        notes: vec![
            format!(
                "a question is a topic and side of `dev` and `test`, {} sentences that match a key point; B-cubed: two sentences belong together \
                 if they match a key point in common",
                sentences(&held)
            ),
            format!(
                "the greatest F1 on `train` is at a mean cosine of {best:.2}; the program uses {THRESHOLD}"
            ),
        ],
        provenance: json!({"version": env!("CARGO_PKG_VERSION"), "encoder": encoder.key(), "threshold": best}),
        further: vec![curve],
        ..Table::default()
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARGUMENTS: &str = "arg_id,argument,topic,stance\na1,\"They pace, and\nsuffer\",Zoos,1\na2,They suffer,Zoos,1\na3,Too dear,Zoos,1\na4,Nothing,Zoos,1\na5,They teach,Zoos,-1\n";
    const POINTS: &str =
        "key_point_id,key_point,topic,stance\nk1,Suffering,Zoos,1\nk2,Cost,Zoos,1\nk3,Teaching,Zoos,-1\n";
    const LABELS: &str =
        "arg_id,key_point_id,label\na1,k1,1\na2,k1,1\na2,k2,0\na3,k2,1\na3,k1,1\na4,k1,0\na5,k3,1\n";

    fn folder(arguments: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [("arguments", arguments), ("key_points", POINTS), ("labels", LABELS)] {
            std::fs::write(folder.path().join(format!("kpm_data-{name}_dev.csv")), text).unwrap();
        }
        folder
    }

    #[test]
    fn sentences_are_grouped_by_topic_and_side_with_the_key_points_that_they_match() {
        let groups = groups(folder(ARGUMENTS).path(), "dev").unwrap();
        assert_eq!(
            groups.iter().map(|group| group.name.as_str()).collect::<Vec<_>>(),
            ["Zoos (-1)", "Zoos (1)"]
        );
        assert_eq!(groups[1].texts, ["They pace, and\nsuffer", "They suffer", "Too dear"]);
        assert_eq!(groups[1].matched, [vec![0], vec![0], vec![0, 1]]);
    }

    #[test]
    fn a_row_or_a_head_that_is_not_as_expected_is_named_with_its_line() {
        let error = |text: &str| groups(folder(text).path(), "dev").err().unwrap().to_string();
        let missing = error("arg_id,argument,topic,stance\na1,They pace,Zoos\n");
        assert!(missing.contains("_dev.csv:2: expected 4 fields"), "{missing}");
        let head = error("id,argument,topic,stance\n");
        assert!(head.contains(":1: expected the columns arg_id,argument,topic,stance"), "{head}");
        let none = groups(Path::new("/nowhere"), "dev").err().unwrap().to_string();
        assert!(none.contains("kpm_data-key_points_dev.csv"), "{none}");
    }
}
