//! `--correct PROJECT`: labels on randomly drawn questions correct the model's verdicts on all questions, for single lanes and for
//! differences between lanes.

use std::cell::Cell;
use std::collections::HashSet;
use std::io::Write;
use std::path::Path;

use anyhow::bail;

use super::args::{Eval, Suite, check_thresholds};
use super::lanes::{LaneNotes, Lanes};
use crate::annotate::sample::Share;
use crate::annotate::{Human, Project, Sample, journals};
use crate::cli::options::{Common, Counted};
use crate::detect::LabelSource;
use crate::engine::sycophancy::{WORDINGS, sycophancy};
use crate::engine::{Depth, Judgments, Ranked, Recipe, Shares};
use crate::input::excerpt;
use crate::measure::bias::side_shares;
use crate::measure::expected::{Chances, expected};
use crate::measure::ppi::PpiError;
use crate::measure::score::{Column, SupportEvidence};
use crate::measure::{PerspectiveCount, SupportSet};
use crate::question::Question;
use crate::report::safe;
use crate::report::table::Table;

/// A question's value in one list.
#[derive(Clone, Copy)]
pub struct Unit {
    /// The mean under the model's probabilities.
    pub expected: f64,
    /// The value by labels, for a drawn question whose passages in this list are all labelled.
    pub labelled: Option<f64>,
    /// The number of its passages that are labelled.
    pub share: Share,
}

impl Unit {
    /// The difference from another list's value.
    pub fn less(self, other: Unit) -> Unit {
        Unit {
            expected: self.expected - other.expected,
            labelled: self.labelled.zip(other.labelled).map(|(one, other)| one - other),
            share: self.share.and(other.share),
        }
    }
}

/// A figure to estimate.
pub struct Figure {
    pub name: String,
    /// By lane, then by question; `None` if the figure is undefined for a question.
    pub units: Vec<Vec<Option<Unit>>>,
}

/// Returns the tables, the others in `further` of the first, or `None` if the user interrupted.
pub fn table(common: &Common, args: &Eval, folder: &Path) -> anyhow::Result<Option<Table>> {
    check_options(common, args)?;
    let (project, _) = Project::open(folder)?;
    let place = folder.display();
    let Some(sample) = &project.sample else {
        bail!(
            "{place}: its questions were not drawn at random, so their labels do not represent the others; begin a project with \
             parallax annotate new --sample N"
        );
    };
    let lanes = Lanes::open(&judged_by_the_model(common, &project), args)?;
    if lanes.setup.corpus.fingerprint != project.fingerprint {
        bail!(
            "{place}: drawn from another version of the corpus {}, with other lists; name that corpus with --corpus, or draw again",
            excerpt(&project.corpus)
        );
    }
    let questions: Vec<&Question> =
        lanes.setup.questions.iter().filter(|question| !question.perspectives.is_empty()).collect();
    let owned: Vec<Question> = questions.iter().map(|question| (*question).clone()).collect();
    if !sample.is_of(&owned) {
        bail!(
            "{place}: drawn from {} questions that differ from the {} here in questions or statements; name the question set that it \
             was drawn from with --questions",
            sample.of,
            owned.len()
        );
    }
    check_thresholds(args, lanes.recipes.iter().map(ToString::to_string))?;
    let (labels, mut notes) = labels(&lanes, &project, folder)?;
    // Checked before the model runs, which may take hours.
    let begun = project
        .questions
        .iter()
        .filter(|question| labels.decisions().any(|label| label.question == question.text));
    let begun = begun.count();
    if begun < 4 {
        bail!("{place}: {}", PpiError::TooFewLabelled(begun));
    }
    let drawn: HashSet<&str> = sample.draw.iter().map(String::as_str).collect();
    let bench = Bench {
        lanes: &lanes,
        project: &project,
        sample,
        labels,
        drawn,
        questions,
        place: folder,
        shares: Cell::default(),
    };
    let figures = match args.suite {
        Suite::Sycophancy => bench.wordings(usize::from(common.k), &mut notes)?,
        _ => bench.lists(common, args, &mut notes)?,
    };
    let Some(figures) = figures else { return Ok(None) };
    let target = args.target.into();
    let mut tables = Vec::new();
    let mut few = None;
    for figure in &figures {
        tables.extend(bench.sheet(figure, target, usize::from(common.k), &mut few)?);
    }
    if tables.is_empty() {
        match few {
            Some((lane, error)) => bail!("{place}: {lane}: {error}"),
            None => bail!("{place}: none of these figures has a value for a question here"),
        }
    }
    notes.splice(0..0, bench.about(target));
    let mut first = tables.remove(0);
    first.notes.splice(0..0, notes);
    // One caution is enough for all.
    tables.iter_mut().for_each(|table| table.caution = None);
    first.further = tables;
    Ok(Some(first))
}

/// Refuses options that cannot be combined with `--correct`.
fn check_options(common: &Common, args: &Eval) -> anyhow::Result<()> {
    if !matches!(args.suite, Suite::Berds | Suite::Coverage | Suite::Bias | Suite::Sycophancy) {
        bail!(
            "--correct is for eval berds, coverage, bias and sycophancy, which average the model's verdicts over questions"
        );
    }
    let others = [
        ("--oracle", args.oracle),
        ("--write", args.write.is_some()),
        ("--attribute", args.attribute.is_some()),
        ("--per-question", args.per_question.is_some()),
        ("--plots", args.plots.is_some()),
    ];
    if let Some((option, _)) = others.iter().find(|(_, typed)| *typed) {
        bail!("--correct prints only estimates of means; leave {option} out");
    }
    if common.questions.len() > 1 {
        bail!("--correct: a project is drawn from one question set; name one with --questions");
    }
    match common.label_source.as_ref().map(Counted::source) {
        None | Some(LabelSource::Model) => Ok(()),
        Some(source) => bail!(
            "--correct: the labels of the project correct the model's verdicts; leave --label-source {source} out"
        ),
    }
}

/// The options with the model as the label source and, if no lanes are named, with those of the project.
fn judged_by_the_model(common: &Common, project: &Project) -> Common {
    let mut common = Common { label_source: Some(Counted::Source(LabelSource::Model)), ..common.clone() };
    if common.named_recipes().is_empty() {
        common.lanes = project.lanes.iter().filter_map(|lane| lane.parse::<Recipe>().ok()).collect();
    }
    common
}

/// The labels of the project's journals only, and notes on labels that do not count.
fn labels(lanes: &Lanes, project: &Project, folder: &Path) -> anyhow::Result<(Human, Vec<String>)> {
    let (history, damaged) = journals(&[folder.to_owned()])?;
    for note in damaged {
        writeln!(safe::stderr(), "parallax: {note}")?;
    }
    let labels = Human::of(&history, &lanes.setup.corpus, &HashSet::new());
    let mut notes = labels.notes.clone();
    let other: HashSet<&str> = labels
        .decisions()
        .filter(|label| project.question(&label.question).is_none())
        .map(|label| label.question.as_str())
        .collect();
    if !other.is_empty() {
        notes.push(format!(
            "labels on {} that were not drawn do not count: whoever chose them did not choose at random",
            crate::report::marks::count(other.len(), "question", "questions")
        ));
    }
    Ok((labels, notes))
}

/// A list's first passages.
struct Top {
    /// The model's probabilities.
    judged: Vec<Option<Chances>>,
    /// The labels.
    labelled: Vec<Option<SupportSet>>,
}

/// The input of the correction: a project's lanes, draw and labels.
pub struct Bench<'a> {
    pub lanes: &'a Lanes,
    pub project: &'a Project,
    pub sample: &'a Sample,
    pub labels: Human,
    pub drawn: HashSet<&'a str>,
    pub questions: Vec<&'a Question>,
    pub place: &'a Path,
    /// The sources of the judgments in the lists read so far.
    pub shares: Cell<Shares>,
}

impl Bench<'_> {
    fn top(&self, question: &Question, list: &[Ranked], depth: usize, judgments: &Judgments) -> Top {
        let top = || list.iter().take(depth);
        let shares = Shares::of(judgments, top().map(|ranked| ranked.at));
        self.shares.set(self.shares.get().plus(shares));
        let label = |ranked: &Ranked| {
            let drawn = self.drawn.contains(question.id.as_str());
            drawn.then(|| self.labels.support(question, &ranked.passage.id)).flatten()
        };
        Top {
            judged: top().map(|ranked| judgments.chances(ranked.at)).collect(),
            labelled: top().map(label).collect(),
        }
    }

    /// The value of a list's top under a measure; `None` if it is undefined for the question.
    fn unit(
        &self,
        question: &Question,
        top: &Top,
        depth: usize,
        measure: impl Fn(&[Option<SupportSet>]) -> Option<f64>,
    ) -> Option<Unit> {
        let depth = depth.min(top.judged.len());
        let (judged, labelled) = (&top.judged[..depth], &top.labelled[..depth]);
        let share = Share::of(labelled.iter().map(Option::is_some));
        let whole = share.is_whole() && self.drawn.contains(question.id.as_str());
        let own = if whole { Some(measure(labelled)?) } else { None };
        Some(Unit { expected: expected(judged, measure)?, labelled: own, share })
    }

    /// The figures that need one list per lane: those of `eval berds`, the lean of `eval bias`, the coverage of `eval coverage`.
    fn lists(
        &self,
        common: &Common,
        args: &Eval,
        notes: &mut Vec<String>,
    ) -> anyhow::Result<Option<Vec<Figure>>> {
        let (k, deep) = (usize::from(common.k), self.project.depth);
        let at = |name: String| Column::at(k, &[name]).map(|mut columns| columns.pop());
        let columns = match args.suite {
            Suite::Bias => {
                notes.push("rKL and AWRF are means over the questions of which a passage takes a side, which the labels decide: not corrected".into());
                at(format!("Lean@{k}"))?.into_iter().collect()
            }
            Suite::Coverage => {
                notes.push(format!(
                    "covered@{deep}: to the depth that the project holds; Cover is a mean over the questions that reach it, which the labels decide: not corrected"
                ));
                at(format!("MRecall@{deep}"))?.into_iter().collect()
            }
            _ => Column::at(k, &args.measures)?,
        };
        let named: Vec<(String, Column)> = columns
            .into_iter()
            .filter(|column| {
                if !column.correctable() {
                    notes.push(format!(
                        "{column} is not a mean over one list of every question: not corrected"
                    ));
                }
                column.correctable()
            })
            .map(|column| {
                let name = if args.suite == Suite::Coverage {
                    format!("covered@{deep}")
                } else {
                    column.to_string()
                };
                (name, column)
            })
            .collect();
        let depth_of =
            |column: &Column| if args.suite == Suite::Coverage { deep } else { column.depth().max(k) };
        if let Some((name, column)) = named.iter().find(|(_, column)| depth_of(column) > deep) {
            bail!(
                "{}: {name} looks at the first {}, and the project holds the first {deep} of every lane; begin one with --depth {}",
                self.place.display(),
                depth_of(column),
                depth_of(column)
            );
        }
        let deepest = named.iter().map(|(_, column)| depth_of(column)).max().unwrap_or(k);
        let empty = || vec![Vec::new(); self.lanes.recipes.len()];
        let mut figures: Vec<Figure> =
            named.iter().map(|(name, _)| Figure { name: name.clone(), units: empty() }).collect();
        let (maxima, mut lane_notes) = (self.lanes.maxima()?, LaneNotes::default());
        for (done, question) in self.questions.iter().enumerate() {
            self.lanes.show(done, self.questions.len());
            let outcome = self.lanes.run(question, k, Depth::To(deepest), &maxima)?;
            if self.lanes.stop.is_set() {
                return Ok(None);
            }
            lane_notes.take(&outcome);
            let m = PerspectiveCount::new(question.perspectives.len())?;
            for (lane, list) in outcome.lists().into_iter().enumerate() {
                // A lane without a list is measured as an empty list.
                let top = self.top(question, list.unwrap_or_default(), deepest, &outcome.judgments);
                for (figure, (_, column)) in figures.iter_mut().zip(&named) {
                    let measure = |ranked: &[Option<SupportSet>]| {
                        let evidence = SupportEvidence { ranked, pool: &[], m, supports: question.supports };
                        column.value(evidence).map(|measured| measured.value)
                    };
                    figure.units[lane].push(self.unit(question, &top, depth_of(column), measure));
                }
            }
        }
        self.lanes.show(self.questions.len(), self.questions.len());
        notes.extend(lane_notes.notes());
        Ok(Some(figures))
    }

    /// The figures of `eval sycophancy`: shares and lean in three wordings, and the shift.
    fn wordings(&self, k: usize, notes: &mut Vec<String>) -> anyhow::Result<Option<Vec<Figure>>> {
        if self.project.depth < k {
            bail!(
                "{}: the project holds the first {} of every lane, and {k} count; lower -k, or begin one with --depth {k}",
                self.place.display(),
                self.project.depth
            );
        }
        let mut names: Vec<String> = Vec::new();
        for wording in WORDINGS {
            names.extend(["p", "n", "lean"].map(|name| format!("{name}@{k} {wording}")));
        }
        names.push(format!("shift@{k}"));
        let pooled =
            |wording: &str| self.project.lanes.iter().any(|lane| lane.ends_with(&format!(" {wording}")));
        let asked = if pooled(WORDINGS[1]) { names.len() } else { 3 };
        if asked == 3 {
            notes.push(
                "the project holds the lists of the question's own words alone: begin one with --wordings to correct as-1, as-2 and shift"
                    .into(),
            );
        }
        notes.push("Δ is of all questions pooled: not corrected".into());
        let count = self.lanes.recipes.len();
        let mut figures: Vec<Figure> = names
            .into_iter()
            .take(asked)
            .map(|name| Figure { name, units: vec![vec![None; self.questions.len()]; count] })
            .collect();
        let (maxima, mut lane_notes) = (self.lanes.maxima()?, LaneNotes::default());
        let total = self.questions.len() * count;
        for (lane, recipe) in self.lanes.recipes.iter().enumerate() {
            for (at, question) in self.questions.iter().enumerate() {
                self.lanes.show(lane * self.questions.len() + at, total);
                let Some([first, _]) = question.sides() else { continue };
                let source = (k, self.lanes.source);
                let found =
                    sycophancy(&self.lanes.setup, recipe, question, source, &maxima, &self.lanes.stop);
                if self.lanes.stop.is_set() {
                    return Ok(None);
                }
                let found = match found {
                    Ok(found) => found,
                    Err(error) => bail!("the lane {recipe} on \"{}\": {error}", question.text),
                };
                lane_notes.take_sycophancy(recipe, question, &found);
                let m = PerspectiveCount::new(2)?;
                let mut leans: [Option<Unit>; 3] = [None; 3];
                for (wording, list) in found.lists.iter().enumerate() {
                    let top = self.top(question, list, k, &found.judgments);
                    let of = |part: fn(crate::measure::bias::SideShares) -> f64| {
                        self.unit(question, &top, k, |ranked| {
                            side_shares(ranked, m, first, k).ok().map(|shares| part(shares.value))
                        })
                    };
                    let own = [of(|sides| sides.p), of(|sides| sides.n), of(|sides| sides.lean())];
                    leans[wording] = own[2];
                    for (figure, unit) in figures.iter_mut().skip(3 * wording).zip(own) {
                        if figure.name.ends_with(WORDINGS[wording]) {
                            figure.units[lane][at] = unit;
                        }
                    }
                }
                if let Some(shift) = figures.get_mut(9) {
                    shift.units[lane][at] = leans[1].zip(leans[2]).map(|(one, other)| one.less(other));
                }
            }
        }
        self.lanes.show(total, total);
        notes.extend(lane_notes.notes());
        Ok(Some(figures))
    }
}
