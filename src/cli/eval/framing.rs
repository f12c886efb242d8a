//! `eval framing`: how much the wording of a question decides what a lane returns, and whether a lane reads a negation; with `--pairs`,
//! NevIR's pairwise accuracy on a file of pairs. `eval ask`: what n wordings buy against one deeper list.

use std::path::Path;

use anyhow::bail;
use serde_json::json;

use crate::cli::eval::args::{Eval, check_thresholds};
use crate::cli::eval::lanes::{Lanes, name_the_model};
use crate::cli::job::{Meter, stop_on_signal};
use crate::cli::options::Common;
use crate::engine::framing::{Answers, asking, framing, rank_pair, worded};
use crate::engine::pir::setup_of;
use crate::engine::{Recipe, Setup, Shares};
use crate::question::pir::Task;
use crate::question::set::read_pairs;
use crate::question::wordings::{Frame, Framed, PERSONA};
use crate::report::means::{Values, rows, rows as means_of};
use crate::report::table::{Head, Row, Table};
use crate::retrieve::Fusion;
use crate::work::{Job, Progress};

/// Up to how many wordings `eval ask` asks by default.
const TIMES: u8 = 8;

/// `eval ask`: MRecall over the number of wordings. Returns `None` if the user interrupted.
///
/// # Errors
/// The question set is not valid, or nothing could be measured.
pub fn ask(common: &Common, args: &Eval) -> anyhow::Result<Option<Table>> {
    let lanes = Lanes::open(common, args)?;
    let (k, most) = (usize::from(common.k), usize::from(args.framing.times.unwrap_or(TIMES)));
    let by = args.framing.by.as_deref().unwrap_or("rrf");
    let by = Fusion::ALL.into_iter().find(|own| own.name() == by).unwrap_or_default();
    if let Some(recipe) = lanes.recipes.iter().find(|recipe| recipe.switches.ask.is_some()) {
        bail!("{recipe}: eval ask adds +ask@1 to +ask@{most} itself; leave the switch out");
    }
    if let Some((recipe, why)) =
        lanes.recipes.iter().find_map(|recipe| Some((recipe, recipe.base.refuses_wordings()?)))
    {
        bail!("{recipe}: {why}");
    }
    let names: Vec<String> = lanes
        .recipes
        .iter()
        .flat_map(|recipe| {
            [
                format!("{recipe} asked n times, first {k} of the fused list"),
                format!("{recipe} asked n times, first {k} of each list"),
                format!("{recipe} asked once, first {k}·n"),
            ]
        })
        .collect();
    check_thresholds(args, names.iter().cloned())?;
    let (questions, left_out): (Vec<_>, Vec<_>) =
        lanes.setup.questions.iter().partition(|question| !question.perspectives.is_empty());
    let maxima = lanes.maxima()?;
    let mut values: Vec<Vec<Values>> = vec![vec![Values::new(); most]; names.len()];
    let mut distinct: Vec<Vec<Values>> = vec![vec![Values::new(); most]; lanes.recipes.len()];
    let (mut failed, mut judged) = (vec![Vec::new(); names.len()], vec![(0, 0); names.len()]);
    let (mut shares, mut fewer) = (vec![Shares::default(); names.len()], 0usize);
    for (done, question) in questions.iter().enumerate() {
        lanes.show(done, questions.len());
        for (lane, recipe) in lanes.recipes.iter().enumerate() {
            let (source, how) = ((k, lanes.source), (most, by));
            let answers = asking(&lanes.setup, recipe, question, source, how, &maxima, &lanes.stop);
            if lanes.stop.is_set() {
                return Ok(None);
            }
            let answers = match answers {
                Ok(Answers { each, wordings, judgments, passages }) => {
                    fewer += usize::from(lane == 0 && wordings < most);
                    let known = passages.iter().filter(|at| judgments.support(**at).is_some()).count();
                    let own = Shares::of(&judgments, passages.iter().copied());
                    for row in 3 * lane..3 * lane + 3 {
                        judged[row] = (judged[row].0 + known, judged[row].1 + passages.len());
                        shares[row] = shares[row].plus(own);
                    }
                    each
                }
                Err(error) => {
                    failed[3 * lane].push((question.id.clone(), error.to_string()));
                    Vec::new()
                }
            };
            for n in 0..most {
                let answer = answers.get(n);
                let three = [
                    answer.map(|answer| answer.fused),
                    answer.map(|answer| answer.pooled),
                    answer.map(|answer| answer.deeper),
                ];
                three.into_iter().enumerate().for_each(|(row, value)| values[3 * lane + row][n].push(value));
                distinct[lane][n].push(answer.map(|answer| answer.distinct as f64));
            }
        }
    }
    lanes.show(questions.len(), questions.len());
    // The lists of n wordings are compared with the deeper list that costs as many passages.
    let versus: Vec<Option<usize>> = (0..names.len()).map(|row| (row % 3 == 1).then_some(row + 1)).collect();
    let mut rows = rows(names, values, &versus, failed, judged)?;
    name_the_model(&mut rows, &shares);
    let all = shares.iter().step_by(3).fold(Shares::default(), |sum, own| sum.plus(*own));
    let table = lanes.table("ask", questions.iter().copied(), k, all)?;
    let columns: Vec<Head> = (1..=most).map(|n| Head::from(format!("n={n}"))).collect();
    let mut notes = vec![
        format!(
            "MRecall; n wordings by rule, the question's own first, fused by {}; n lists of {k} cost as many passages as one list of {k}·n,              with which they are compared, paired by question",
            by.name()
        ),
        "the wordings in their order: as asked, as either side, loaded for either side, one side but not the other, negated, as keywords, as a          person asks"
            .into(),
    ];
    if fewer > 0 {
        notes.push(format!("{fewer} questions have fewer than {most} wordings; all that they have count"));
    }
    if !left_out.is_empty() {
        notes.push(format!("{} questions have no statements and are left out", left_out.len()));
    }
    let pool = Table {
        suite: "ask-distinct",
        columns: columns.clone(),
        rows: means_of(
            lanes.recipes.iter().map(ToString::to_string),
            distinct,
            &vec![None; lanes.recipes.len()],
            vec![Vec::new(); lanes.recipes.len()],
            vec![(0, 0); lanes.recipes.len()],
        )?,
        notes: vec![format!("how many different passages the first {k} of n lists hold")],
        caution: None,
        ..table.clone()
    };
    Ok(Some(Table { columns, rows, notes, further: vec![pool], ..table }))
}

/// Returns the table, or `None` if the user interrupted.
///
/// # Errors
/// The question set or the file of pairs is not valid, or nothing could be measured.
pub fn table(common: &Common, args: &Eval) -> anyhow::Result<Option<Table>> {
    match &args.framing.pairs {
        Some(file) => of_pairs(common, args, file),
        None => of_questions(common, args),
    }
}

/// The sums of one lane.
struct Lane {
    /// Framing sensitivity, negation and exclusion accuracy.
    main: Vec<Values>,
    /// By wording: MRecall, lean, distance and share of new passages.
    by_wording: Vec<Vec<Values>>,
    failed: Vec<(String, String)>,
    judged: (usize, usize),
    shares: Shares,
}

/// The forms that have a row of their own. Sides are those of a two-sided question: 0 supports it.
const FORMS: [Frame; 10] = [
    Frame::Neutral,
    Frame::As(0),
    Frame::As(1),
    Frame::Loaded(0),
    Frame::Loaded(1),
    Frame::Only(0),
    Frame::Only(1),
    Frame::Negated,
    Frame::Keywords,
    Frame::Persona,
];

fn of_questions(common: &Common, args: &Eval) -> anyhow::Result<Option<Table>> {
    let lanes = Lanes::open(common, args)?;
    check_thresholds(args, lanes.recipes.iter().map(ToString::to_string))?;
    let k = usize::from(common.k);
    let persona = args.framing.persona.as_deref().unwrap_or(PERSONA);
    let by_model = common.llm.is_some() || common.is_typed("replies");
    let maxima = lanes.maxima()?;
    let questions: Vec<_> = lanes.setup.questions.iter().collect();
    let empty = || Lane {
        main: vec![Values::new(); 3],
        by_wording: vec![vec![Values::new(); 4]; FORMS.len()],
        failed: Vec::new(),
        judged: (0, 0),
        shares: Shares::default(),
    };
    let mut all: Vec<Lane> = lanes.recipes.iter().map(|_| empty()).collect();
    let (mut notes, mut missing, mut lane_notes) = (Vec::new(), vec![0usize; FORMS.len()], Vec::new());
    for (done, question) in questions.iter().enumerate() {
        lanes.show(done, questions.len());
        let words = match worded(&lanes.setup, question, persona, by_model, &lanes.stop) {
            Err(error) if error.is_stop() => return Ok(None),
            words => words?,
        };
        let sides = question.sides().unwrap_or([0, 1]);
        // The table's sides are the supporting and the opposing one, whatever their order in the file.
        let form = |framed: &Framed| {
            let own = |side: usize| sides.iter().position(|known| *known == side).unwrap_or(side);
            match framed.frame {
                Frame::As(side) => Frame::As(own(side)),
                Frame::Loaded(side) => Frame::Loaded(own(side)),
                Frame::Only(side) => Frame::Only(own(side)),
                other => other,
            }
        };
        let place = |framed: &Framed| FORMS.iter().position(|known| *known == form(framed));
        for (at, count) in missing.iter_mut().enumerate() {
            let known = words.iter().find(|framed| place(framed) == Some(at));
            *count += usize::from(known.is_none_or(|framed| framed.text.is_err()));
        }
        for (lane, recipe) in all.iter_mut().zip(&lanes.recipes) {
            let source = (k, lanes.source);
            let own = framing(&lanes.setup, recipe, question, &words, source, &maxima, &lanes.stop);
            if lanes.stop.is_set() {
                return Ok(None);
            }
            lane.by_wording.iter_mut().flatten().for_each(|values| values.push(None));
            let own = match own {
                Ok(own) => own,
                Err(error) => {
                    lane.failed.push((question.id.clone(), error.to_string()));
                    lane.main.iter_mut().for_each(|values| values.push(None));
                    continue;
                }
            };
            let figures = [own.sensitivity, own.negation, own.exclusion];
            lane.main.iter_mut().zip(figures).for_each(|(values, figure)| values.push(figure));
            for asked in &own.asked {
                let (Some(at), Some(list)) = (place(&asked.framed), &asked.list) else { continue };
                let top = &list[..list.len().min(k)];
                lane.judged.1 += top.len();
                lane.judged.0 += top.iter().filter(|one| own.judgments.support(one.at).is_some()).count();
                lane.shares = lane.shares.plus(Shares::of(&own.judgments, top.iter().map(|one| one.at)));
                let lean = asked.shares.map(|shares| shares.lean());
                let new = asked.new.map(|new| new as f64 / k as f64);
                let figures = [asked.mrecall, lean, asked.distance, new];
                for (values, figure) in lane.by_wording[at].iter_mut().zip(figures) {
                    if let Some(last) = values.last_mut() {
                        *last = figure;
                    }
                }
            }
            let note = own.note.map(|note| format!("{recipe}: {note}"));
            lane_notes.extend(note.filter(|note| !lane_notes.contains(note)));
        }
    }
    lanes.show(questions.len(), questions.len());
    let names = || lanes.recipes.iter().map(ToString::to_string);
    let shares = all.iter().map(|lane| lane.shares).fold(Shares::default(), Shares::plus);
    let main = all.iter().map(|lane| lane.main.clone()).collect();
    let failed = all.iter().map(|lane| lane.failed.clone()).collect();
    let judged = all.iter().map(|lane| lane.judged).collect();
    let mut rows = rows(names(), main, &lanes.plain_forms(), failed, judged)?;
    name_the_model(&mut rows, &all.iter().map(|lane| lane.shares).collect::<Vec<_>>());
    notes.extend([
        format!(
            "sensitivity: mean rank-biased distance (1 − RBO, p = .9) between the lists of every two wordings, to rank 100; {} wordings by rule{}",
            FORMS.len(),
            if by_model { ", the language model's words in their place" } else { "" }
        ),
        "negation: NevIR's pairwise accuracy on the two statements, exclusion: on “reasons why …, but not reasons why …”, over every pair of \
         labelled passages of which one supports the first side alone and one the second; chance is .25, a lane deaf to the negation has 0"
            .into(),
    ]);
    let left_out: Vec<String> = FORMS
        .iter()
        .zip(&missing)
        .filter(|(_, count)| **count > 0)
        .map(|(form, count)| format!("{} {count}", form.name()))
        .collect();
    if !left_out.is_empty() {
        notes.push(format!(
            "questions without a wording, because no rule makes it or it has the words of another: {}",
            left_out.join(", ")
        ));
    }
    notes.extend(lane_notes);
    let table = lanes.table("framing", questions.iter().copied(), k, shares)?;
    let wordings = by_wording(&lanes.recipes, &all, k)?;
    let columns = ["sensitivity", "negation", "exclusion"].map(Head::plotted).to_vec();
    let further = vec![Table {
        provenance: table.provenance.clone(),
        caution: None,
        ..Table { suite: "framing-wordings", ..wordings }
    }];
    let further = further
        .into_iter()
        .map(|own| Table {
            questions: table.questions,
            question_ids: table.question_ids.clone(),
            k: Some(k),
            label_source: table.label_source.clone(),
            ..own
        })
        .collect();
    Ok(Some(Table { columns, rows, notes, further, ..table }))
}

/// One row for each lane and wording.
fn by_wording(recipes: &[Recipe], all: &[Lane], k: usize) -> anyhow::Result<Table> {
    let (mut names, mut values, mut versus) = (Vec::new(), Vec::new(), Vec::new());
    for (recipe, lane) in recipes.iter().zip(all) {
        let neutral = names.len();
        for (form, own) in FORMS.iter().zip(&lane.by_wording) {
            versus.push((*form != Frame::Neutral).then_some(neutral));
            names.push(format!("{recipe} {}", form.name()));
            values.push(own.clone());
        }
    }
    let (failed, judged) = (vec![Vec::new(); names.len()], vec![(0, 0); names.len()]);
    let columns = vec![
        Head::plotted(format!("MRecall@{k}")),
        Head::plotted(format!("lean@{k}")),
        Head::from("distance"),
        Head::from(format!("new@{k}")),
    ];
    Ok(Table {
        columns,
        rows: rows(names, values, &versus, failed, judged)?,
        notes: vec![
            "each wording against the neutral one: the differences and stars are paired by question; new: share of the first k that the \
             neutral wording does not bring; as-1, loaded-1 and only-1 take the supporting side"
                .into(),
        ],
        ..Table::default()
    })
}

/// NevIR: every lane ranks the passages of all pairs for either query of each pair.
fn of_pairs(common: &Common, args: &Eval, file: &Path) -> anyhow::Result<Option<Table>> {
    if common.corpus.is_some() || !common.questions.is_empty() {
        bail!("--pairs bring their own passages and queries; leave --corpus and --questions out");
    }
    let recipes = args.switches.apply(common.recipes())?;
    if let Some(run) = recipes.iter().find(|recipe| recipe.run().is_some()) {
        bail!("{run}: a finished run has no list for the queries of pairs; name a lane that searches");
    }
    check_thresholds(args, recipes.iter().map(ToString::to_string))?;
    let pairs = read_pairs(file)?;
    let name = file.file_stem().map_or_else(|| "pairs".into(), |stem| stem.to_string_lossy().into_owned());
    let corpus: Vec<String> = pairs.iter().flat_map(|pair| pair.passages.clone()).collect();
    let (meter, stop) = (Meter::default(), stop_on_signal()?);
    let task = Task { name: name.clone(), corpus, rows: Vec::new() };
    let setup: Setup = setup_of(&task, &common.opening(), &|progress| meter.show(progress), &stop)?;
    setup.embed_for(&recipes, &|progress| meter.show(progress), &stop)?;
    let total = (pairs.len() * recipes.len()) as u64;
    let mut values: Vec<Vec<Values>> = vec![vec![Values::new(); 3]; recipes.len()];
    let mut failed = vec![Vec::new(); recipes.len()];
    for (at, pair) in pairs.iter().enumerate() {
        let ids = [2 * at, 2 * at + 1].map(|place| format!("{place:010}"));
        for (lane, recipe) in recipes.iter().enumerate() {
            meter.show(Progress { job: Job::Measuring, done: (at * recipes.len() + lane) as u64, total });
            let right = rank_pair(&setup, recipe, pair, [&ids[0], &ids[1]], &stop);
            if stop.is_set() {
                return Ok(None);
            }
            let figures = match right {
                Ok([first, second]) => {
                    [first && second, first, second].map(|yes| Some(f64::from(u8::from(yes))))
                }
                Err(error) => {
                    failed[lane].push((pair.id.clone(), error.to_string()));
                    [None; 3]
                }
            };
            values[lane].iter_mut().zip(figures).for_each(|(values, figure)| values.push(figure));
        }
    }
    meter.show(Progress { job: Job::Measuring, done: total, total });
    let judged = vec![(0, 0); recipes.len()];
    let names = recipes.iter().map(ToString::to_string);
    let rows: Vec<Row> = rows(names, values, &vec![None; recipes.len()], failed, judged)?;
    Ok(Some(Table {
        suite: "framing-pairs",
        set: Some(name.clone()),
        columns: vec![Head::plotted("pairwise"), "q1 right".into(), "q2 right".into()],
        rows,
        questions: pairs.len(),
        question_ids: pairs.iter().map(|pair| pair.id.clone()).collect(),
        label_source: "the pairs' own".into(),
        notes: vec![
            "pairwise: both queries of a pair rank their own passage above the other (NevIR); chance is .25; a passage that a lane does not \
             return is below, and two of them are level, which is not right"
                .into(),
        ],
        provenance: json!({
            "version": env!("CARGO_PKG_VERSION"),
            "pairs": name,
            "corpus": { "passages": setup.corpus.len(), "fingerprint": setup.corpus.fingerprint.0 },
        }),
        ..Table::default()
    }))
}
