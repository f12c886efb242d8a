//! `eval mix`: what a reader concludes from lists mixed of both sides, as the share of the first side goes from 0 to 1, and where its
//! conclusion tips. Over questions of two sides, or over RAMDocs, where right answers stand against misinformation.

use std::path::Path;
use std::sync::Arc;

use anyhow::bail;
use serde_json::json;

use crate::cli::eval::args::{Eval, RESAMPLING_SEED, check_thresholds};
use crate::cli::eval::choices::MixOrder;
use crate::cli::eval::lanes::Lanes;
use crate::cli::job::{Meter, stop_on_signal};
use crate::cli::options::Common;
use crate::engine::nuggets::{judged, pool as known};
use crate::engine::{Depth, Ranked, Shares, readers};
use crate::measure::seeded::{SplitMix64, hashed};
use crate::measure::significance::{DRAWS, bootstrap_interval};
use crate::read::mix::{self, Kind, Mix, Mixed, Order, Pool, Said, TooFew, stability, tipping_point};
use crate::read::pattern::Sides;
use crate::read::{Context, ReadError, Reader, files};
use crate::report::page::MIX_OVER_SHARE;
use crate::report::table::{Cell, Head, Row, Table};
use crate::work::{Job, Progress, Stop};

/// The row of the stance that the verdicts alone make.
const VERDICTS: &str = "verdicts alone";
/// The measures over the share of the first side; the first is the curve that tips.
const MEASURES: [&str; 7] = ["side", "first", "second", "both", "neither", "refused", "stability"];

/// Returns the tables, or `None` if the user interrupted.
pub fn table(common: &Common, args: &Eval) -> anyhow::Result<Option<Table>> {
    let plan = Plan::of(args);
    match common.questions.first() {
        Some(path) if files::is_reading(path)? => of_file(common, args, path, &plan),
        _ => of_labels(common, args, &plan),
    }
}

/// Which lists are read of every question.
struct Plan {
    mix: Mix,
    both: usize,
    orders: Vec<Order>,
}

impl Plan {
    fn of(args: &Eval) -> Self {
        let mixing = &args.mix;
        let orders = match mixing.order {
            MixOrder::Shuffled => (0..u64::from(mixing.orders)).map(Order::Shuffled).collect(),
            MixOrder::Turns => vec![Order::Turns],
            MixOrder::First => vec![Order::FirstSide],
            MixOrder::Second => vec![Order::SecondSide],
        };
        let both = usize::from(mixing.both);
        let mix = Mix {
            counts: [both, 0, usize::from(mixing.noise)],
            order: Order::default(),
            sources: mixing.sources.map(usize::from),
        };
        Plan { mix, both, orders }
    }

    /// The lists of every share of the first side, in every order. Each question is shuffled in ways of its own.
    fn lists(&self, id: &str, pool: &Pool) -> Result<Vec<Vec<Vec<Context>>>, TooFew> {
        let own = |order: &Order| match order {
            Order::Shuffled(seed) => Order::Shuffled(hashed(id).wrapping_add(*seed)),
            order => *order,
        };
        let at = |first: usize| {
            let mix = self.mix.at(first, self.both);
            self.orders.iter().map(|order| Mix { order: own(order), ..mix }.list(pool)).collect()
        };
        (0..=self.both).map(at).collect()
    }

    fn shares(&self) -> impl Iterator<Item = f64> + '_ {
        (0..=self.both).map(|first| first as f64 / self.both as f64)
    }

    fn words(&self) -> String {
        let Mix { counts, sources, .. } = self.mix;
        let orders = match self.orders.len() {
            1 => self.orders[0].name().to_owned(),
            n => format!("{n} shuffled orders"),
        };
        let repeats = sources.map_or_else(String::new, |most| {
            format!(", at most {most} different passages of a kind, repeated")
        });
        format!(
            "lists of {} passages for the two sides and {} for none, {orders}{repeats}",
            self.both, counts[2]
        )
    }
}

/// What was said of one question: by share of the first side, then by order.
type OfQuestion = Vec<Vec<Said>>;

/// A reader with what it said of every question.
struct Readings {
    name: String,
    said: Vec<OfQuestion>,
    failed: Vec<(String, String)>,
}

/// The pool of a question of two sides, and the sides that each of its passages takes.
struct Sided {
    id: String,
    text: String,
    statements: [String; 2],
    pool: Pool,
}

fn of_labels(common: &Common, args: &Eval, plan: &Plan) -> anyhow::Result<Option<Table>> {
    let lanes = Lanes::open(common, args)?;
    let (k, maxima) = (usize::from(common.k), lanes.maxima()?);
    let reader = readers(&common.opening())?.1;
    let names: Vec<String> = std::iter::once(VERDICTS.to_owned())
        .chain(reader.as_ref().map(|one| one.name().to_owned()))
        .collect();
    check_thresholds(args, names)?;
    let (mut pools, mut shares) = (Vec::new(), Shares::default());
    for (done, question) in lanes.setup.questions.iter().enumerate() {
        lanes.show(done, lanes.setup.questions.len());
        let Some([first, second]) = question.sides() else { continue };
        let outcome = lanes.run(question, k, Depth::Top, &maxima)?;
        if lanes.stop.is_set() {
            return Ok(None);
        }
        shares = shares.plus(outcome.shares());
        let lists: Vec<&[Ranked]> =
            outcome.lanes.iter().filter_map(|lane| Some(&lane.ranking.as_ref().ok()?[..])).collect();
        let tops = lists.iter().map(|list| &list[..list.len().min(k)]);
        let found = judged(tops, &outcome.judgments);
        let mut all = known(&lanes.setup, question, lanes.source, found);
        // As the first lane ranks them; the others after these, in the order of the corpus.
        let rank = |at| {
            lists.first().and_then(|list| list.iter().position(|one| one.at == at)).unwrap_or(usize::MAX)
        };
        all.sort_by_key(|(at, _)| rank(*at));
        let mut pool = Pool::default();
        for (at, set) in all {
            let kind = Kind::of((set.contains(first), set.contains(second)));
            pool.add(kind, Arc::new(lanes.setup.passage(at)));
        }
        let statements = [first, second].map(|side| question.perspectives[side].clone());
        pools.push(Sided { id: question.id.clone(), text: question.text.clone(), statements, pool });
    }
    let mut usable = Usable::default();
    let mut alone = Readings { name: VERDICTS.into(), said: Vec::new(), failed: Vec::new() };
    let mut read = reader.as_ref().map(|reader| Readings { name: reader.name().into(), ..Readings::new() });
    let total = pools.len();
    for (done, Sided { id, text, statements, pool }) in pools.iter().enumerate() {
        lanes.show(done, total);
        let lists = match plan.lists(id, pool) {
            Ok(lists) => lists,
            Err(short) => {
                usable.left_out(id, short);
                continue;
            }
        };
        usable.ids.push(id.clone());
        let sides = |context: &Context| -> Sides {
            let is = |kind| pool.of(kind).iter().any(|one| Arc::ptr_eq(one, &context.passage));
            (is(Kind::First), is(Kind::Second))
        };
        let of_passages =
            |list: &Vec<Context>| Said::of_passages(&list.iter().map(sides).collect::<Vec<_>>());
        alone.said.push(lists.iter().map(|orders| orders.iter().map(of_passages).collect()).collect());
        if let (Some(reader), Some(read)) = (&reader, &mut read) {
            let Some(reader) = reader.on_sides(statements.clone()) else {
                bail!(
                    "{}: this reader copies words and takes no side; questions of two sides need --llm",
                    reader.name()
                );
            };
            let say = |answer| Said::of_stance(&answer);
            if !read.add(reader.as_ref(), (id, text), &lists, &say, &lanes.stop)? {
                return Ok(None);
            }
        }
    }
    lanes.show(total, total);
    let mut notes = usable.notes(plan)?;
    notes.push("side: 1 the first side, ½ both, 0 the second, over the readings that take one; tip: the share of the first side at which it reaches ½".into());
    notes.push(format!(
        "{VERDICTS}: the stance of the passages together at weight 1/log2(rank + 1), without a reader"
    ));
    let base = lanes.table(
        "mix",
        lanes.setup.questions.iter().filter(|one| usable.ids.contains(&one.id)),
        k,
        shares,
    )?;
    Ok(Some(Table {
        k: None,
        ..tables(plan, [Some(alone), read].into_iter().flatten().collect(), notes, base)?
    }))
}

/// The questions whose lists could be mixed.
#[derive(Default)]
struct Usable {
    ids: Vec<String>,
    short: Vec<(String, TooFew)>,
}

impl Usable {
    fn left_out(&mut self, id: &str, short: TooFew) {
        self.short.push((id.into(), short));
    }

    fn notes(&self, plan: &Plan) -> anyhow::Result<Vec<String>> {
        let mut notes = vec![plan.words()];
        if let Some((id, short)) = self.short.first() {
            if self.ids.is_empty() {
                bail!(
                    "no question has passages enough ({id}: {short}); lower --both or --noise, or repeat passages with --sources"
                );
            }
            notes.push(format!(
                "{} questions are left out, as they have too few passages ({id}: {short}); --sources N repeats them",
                self.short.len()
            ));
        }
        if self.ids.is_empty() {
            bail!("no question has two sides, so nothing can be mixed");
        }
        Ok(notes)
    }
}

impl Readings {
    fn new() -> Self {
        Readings { name: String::new(), said: Vec::new(), failed: Vec::new() }
    }

    /// Reads all lists of a question. Returns false if the user interrupted. A question that fails is left out with its reason.
    fn add(
        &mut self,
        reader: &dyn Reader,
        (id, question): (&str, &str),
        lists: &[Vec<Vec<Context>>],
        say: &dyn Fn(crate::read::Answer) -> Said,
        stop: &Stop,
    ) -> anyhow::Result<bool> {
        let read = |list: &Vec<Context>| reader.answer(question, list, stop).map(say);
        let all: Result<OfQuestion, ReadError> =
            lists.iter().map(|orders| orders.iter().map(read).collect()).collect();
        match all {
            Ok(said) => self.said.push(said),
            Err(error) if error.is_stop() => return Ok(false),
            // Every further question would fail in the same way, after as long a wait.
            Err(error) if error.is_lasting() => bail!("{}: {error}", self.name),
            Err(error) => self.failed.push((id.into(), error.to_string())),
        }
        Ok(true)
    }
}

fn of_file(common: &Common, args: &Eval, path: &Path, plan: &Plan) -> anyhow::Result<Option<Table>> {
    let all = mix::read(path)?;
    let Some(reader) = readers(&common.opening())?.1 else {
        bail!(
            "nothing reads the lists: give a model with --reader or --llm, or recorded answers with --answers"
        );
    };
    check_thresholds(args, [reader.name().to_owned()])?;
    let (stop, meter) = (stop_on_signal()?, Meter::default());
    let (mut usable, mut read) =
        (Usable::default(), Readings { name: reader.name().into(), ..Readings::new() });
    let total = all.len() as u64;
    for (done, Mixed { id, question, pool, right, wrong }) in all.iter().enumerate() {
        meter.show(Progress { job: Job::Measuring, done: done as u64, total });
        match plan.lists(id, pool) {
            Err(short) => usable.left_out(id, short),
            Ok(lists) => {
                usable.ids.push(id.clone());
                let say = |answer| Said::of_answer(&answer, right, wrong);
                if !read.add(reader.as_ref(), (id, question), &lists, &say, &stop)? {
                    return Ok(None);
                }
            }
        }
    }
    meter.show(Progress { job: Job::Measuring, done: total, total });
    let mut notes = usable.notes(plan)?;
    notes.push(
        "first: the answer holds a right answer and no wrong one; second: a wrong one; both: both; the first side of a list are its passages with \
         a right answer, the second its misinformation; tip: the share of the first at which side reaches ½"
            .into(),
    );
    let base = Table {
        suite: "mix",
        questions: usable.ids.len(),
        question_ids: usable.ids.clone(),
        label_source: "the types of the documents".into(),
        provenance: json!({"version": env!("CARGO_PKG_VERSION"), "reader": reader.name()}),
        ..Table::default()
    };
    Ok(Some(tables(plan, vec![read], notes, base)?))
}

/// The mean of the values that there are.
fn mean(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let known: Vec<f64> = values.flatten().collect();
    (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
}

/// The values of a question at one share, in the order of [`MEASURES`].
fn measured(said: &[Said]) -> [Option<f64>; 7] {
    let share =
        |one: Said| Some(said.iter().filter(|other| **other == one).count() as f64 / said.len() as f64);
    [
        mean(said.iter().map(|one| one.value())),
        share(Said::First),
        share(Said::Second),
        share(Said::Both),
        share(Said::Neither),
        share(Said::Refused),
        stability(said),
    ]
}

/// The curve of the mean side over the share, of these questions.
fn curve(shares: &[f64], questions: &[&OfQuestion]) -> Vec<(f64, f64)> {
    let at = |(place, share): (usize, &f64)| {
        let side = mean(questions.iter().map(|of| measured(&of[place])[0]))?;
        Some((*share, side))
    };
    shares.iter().enumerate().filter_map(at).collect()
}

/// The tipping point with the interval over questions drawn again.
fn tipped(shares: &[f64], said: &[OfQuestion]) -> Option<Cell> {
    let all: Vec<&OfQuestion> = said.iter().collect();
    let whole = tipping_point(&curve(shares, &all))?;
    let mut draw = SplitMix64::new(RESAMPLING_SEED);
    let mut drawn: Vec<f64> = (0..DRAWS / 10)
        .filter_map(|_| {
            let again: Vec<&OfQuestion> = (0..said.len()).map(|_| all[draw.below(said.len())]).collect();
            tipping_point(&curve(shares, &again))
        })
        .collect();
    drawn.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| drawn.get(((drawn.len() as f64 - 1.0) * share).round() as usize).copied();
    Some(Cell { mean: whole, interval: at(0.025).zip(at(0.975)), n: said.len(), ..Cell::default() })
}

/// A row for each reader, and below it the measures over the share of the first side.
fn tables(plan: &Plan, readings: Vec<Readings>, notes: Vec<String>, base: Table) -> anyhow::Result<Table> {
    let shares: Vec<f64> = plan.shares().collect();
    let cell = |values: Vec<Option<f64>>| -> anyhow::Result<Option<Cell>> {
        let known: Vec<f64> = values.into_iter().flatten().collect();
        if known.is_empty() {
            return Ok(None);
        }
        let interval = bootstrap_interval(&known, 0.95, DRAWS, RESAMPLING_SEED)?;
        let n = known.len();
        Ok(Some(Cell {
            mean: interval.mean,
            interval: Some((interval.low, interval.high)),
            n,
            ..Cell::default()
        }))
    };
    let heads = || shares.iter().map(|share| Head::from(format!("share={share:.2}"))).collect::<Vec<_>>();
    let below = |suite, note: String, rows, questions| Table {
        suite,
        columns: heads(),
        rows,
        questions,
        label_source: base.label_source.clone(),
        notes: vec![note],
        turned: true,
        ..Table::default()
    };
    let (mut rows, mut curves, mut further) = (Vec::new(), Vec::new(), Vec::new());
    for Readings { name, said, failed } in readings {
        let over = |measure: usize| {
            let question = |of: &OfQuestion| mean(of.iter().map(|at| measured(at)[measure]));
            said.iter().map(question).collect::<Vec<_>>()
        };
        let cells = vec![tipped(&shares, &said), cell(over(6))?, cell(over(5))?];
        rows.push(Row { lane: name.clone(), cells, failed, ..Row::default() });
        let mut measures = Vec::new();
        for (measure, lane) in MEASURES.into_iter().enumerate() {
            let at = |place: usize| cell(said.iter().map(|of| measured(&of[place])[measure]).collect());
            let cells = (0..shares.len()).map(at).collect::<anyhow::Result<_>>()?;
            measures.push(Row { lane: lane.into(), cells, ..Row::default() });
        }
        curves.push(Row { lane: name.clone(), ..measures[0].clone() });
        further.push(below("mix-measures", name, measures, said.len()));
    }
    let note = "side, by the share of the first side".to_owned();
    further.insert(0, below(MIX_OVER_SHARE, note, curves, base.questions));
    let columns = ["tip", "stability", "refused"].map(Head::from).to_vec();
    Ok(Table { columns, rows, notes, further, ..base })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two orders at the shares 0, ½ and 1. The first question says the second side, then one of each, then the first side; the second takes
    /// no side in the middle, so the curve there is that of the first alone.
    #[test]
    fn a_curve_is_the_mean_over_questions_of_the_readings_that_take_a_side() {
        use Said::{Both, First, Neither, Second};
        let one: OfQuestion = vec![vec![Second, Second], vec![First, Second], vec![First, First]];
        let other: OfQuestion = vec![vec![Both, Both], vec![Neither, Neither], vec![First, First]];
        let shares = [0.0, 0.5, 1.0];
        assert_eq!(curve(&shares, &[&one, &other]), [(0.0, 0.25), (0.5, 0.5), (1.0, 1.0)]);
        assert_eq!(
            measured(&one[1]),
            [Some(0.5), Some(0.5), Some(0.5), Some(0.0), Some(0.0), Some(0.0), Some(0.5)]
        );
        assert_eq!(measured(&other[1])[0], None);
        let tip = tipped(&shares, &[one, other]).unwrap();
        assert_eq!((tip.mean, tip.n), (0.5, 2));
    }
}
