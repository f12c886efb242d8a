//! The parts that all suites over lanes share: the open setup, the vectors, the provenance.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::time::Duration;

use anyhow::bail;
use serde_json::{Value, json};

use crate::cli::eval::args::{Eval, Ties, seed};
use crate::cli::job::{Meter, find_row, open_setup, prompts_in_use, stop_on_signal};
use crate::cli::options::Common;
use crate::detect::{Fitted, LabelSource};
use crate::engine::recipe::{Base, Mmr, Norm, Rerank};
use crate::engine::sycophancy::{UNLIKE, WORDINGS};
use crate::engine::{
    Depth, Lane, List, Lists, Outcome, Probed, Query, Recipe, Setup, Shares, Sycophancy, lane, rank_lanes,
    run,
};
use crate::expand::{Cost, Expansion};
use crate::llm::Tokens;
use crate::measure::trec::RunOrder;
use crate::question::Question;
use crate::report::marks::share;
use crate::report::safe;
use crate::report::table::{Cell, Counted, Head, Row, Table};
use crate::work::{Job, Progress, Stop};

/// The open setup, and the lanes to measure.
pub struct Lanes {
    /// The corpus with its questions, labels and models.
    pub setup: Setup,
    /// The lanes, in the order of the rows.
    pub recipes: Vec<Recipe>,
    /// The labels that count.
    pub source: LabelSource,
    /// Shows the progress.
    pub meter: Meter,
    /// Set once the user interrupts.
    pub stop: Stop,
    /// The prompts with which a language model judges or expands; `None` if there are none.
    pub prompts: Option<Value>,
    /// The lane that all others are compared with, if the user named one.
    pub baseline: Option<usize>,
    /// The version, models, corpus and seed behind the values; null if nothing is judged.
    provenance: Value,
}

impl Lanes {
    /// Opens the corpus with its question set, and embeds it if a lane needs vectors.
    pub fn open(common: &Common, args: &Eval) -> anyhow::Result<Self> {
        Lanes::with(common, args, None)?.described(common)
    }

    /// Opens the corpus with its question set for lists that nobody judges, so that no detector is needed.
    pub fn for_ranking(common: &Common, args: &Eval) -> anyhow::Result<Self> {
        Lanes::with(common, args, None)
    }

    /// Opens the corpus for these questions instead of those of the set, which has another format.
    pub fn over(common: &Common, args: &Eval, questions: Vec<Question>) -> anyhow::Result<Self> {
        Lanes::with(common, args, Some(questions))?.described(common)
    }

    fn with(common: &Common, args: &Eval, questions: Option<Vec<Question>>) -> anyhow::Result<Self> {
        let (meter, stop) = (Meter::default(), stop_on_signal()?);
        let mut opening = common.opening();
        if questions.is_some() {
            opening.questions = None;
        }
        let mut setup = open_setup(&opening, &meter, &stop)?;
        setup.questions = questions.unwrap_or(setup.questions);
        if setup.questions.is_empty() {
            bail!("lanes need questions; name a question set with --questions");
        }
        let source = common.source();
        if let Some(reason) = setup.lacks(source) {
            bail!("{reason}");
        }
        for note in &setup.notes {
            writeln!(safe::stderr(), "parallax: {note}")?;
        }
        let (recipes, baseline) = chosen(common, args)?;
        for run in recipes.iter().filter_map(Recipe::run) {
            // A bad file is one error now instead of a failure on every question.
            setup.runs.read(run, Query::DEPTH, &stop)?;
        }
        setup.embed_for(&recipes, &|progress| meter.show(progress), &stop)?;
        let prompts = prompts_in_use(common, &setup, &recipes);
        Ok(Lanes { setup, recipes, source, meter, stop, prompts, baseline, provenance: Value::Null })
    }

    /// With the provenance of tables. It is made before the measuring, because a detector may fail to load.
    fn described(mut self, common: &Common) -> anyhow::Result<Self> {
        self.provenance = self.provenance(seed(common))?;
        Ok(self)
    }

    /// A warning about the values, which depends on the sources of the judgments; `None` if there is none.
    fn caution(&self, shares: Shares) -> anyhow::Result<Option<String>> {
        let by_model = self.setup.model_warning(self.source, shares, &self.setup.questions)?;
        let fitted = self.setup.fitted().map(Fitted::described);
        let notes: Vec<String> = by_model.into_iter().chain(fitted).chain(self.setup.usage()).collect();
        Ok((!notes.is_empty()).then(|| notes.join(" · ")))
    }

    /// The version, models, prompts, corpus and seed behind the values.
    fn provenance(&self, seed: u64) -> anyhow::Result<Value> {
        let detector = self.setup.detector()?;
        let mut custom_encoders = Vec::new();
        for model in self.recipes.iter().filter_map(Recipe::model) {
            custom_encoders.push(self.setup.encoder(Some(model))?.key().to_owned());
        }
        let mut provenance = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "models": {
                "detector": detector.key(),
                "threshold": detector.threshold(),
                "threshold_fitted_on": detector.fitted_on(),
                "encoder": self.setup.encoder(None)?.key(),
                "custom_encoders": custom_encoders,
            },
            "corpus": {
                "name": self.setup.corpus.name,
                "passages": self.setup.corpus.len(),
                "fingerprint": self.setup.corpus.fingerprint.0,
            },
            "questions": hash_of(self.setup.questions.iter().map(|question| json!(question).to_string())),
            "labels": hash_of(self.setup.questions.iter().flat_map(|question| {
                let pool = self.setup.label_pool(question, self.source);
                pool.into_iter().map(|(id, set)| {
                    let sides: Vec<usize> = set.iter().collect();
                    json!([question.id, id, sides]).to_string()
                })
            })),
            "seed": seed,
        });
        if let Some(prompts) = &self.prompts {
            provenance["prompts"] = prompts.clone();
        }
        Ok(provenance)
    }

    /// A table over these questions, without columns and rows yet.
    pub fn table<'q>(
        &self,
        suite: &'static str,
        questions: impl IntoIterator<Item = &'q Question>,
        k: usize,
        shares: Shares,
    ) -> anyhow::Result<Table> {
        let question_ids: Vec<String> = questions.into_iter().map(|question| question.id.clone()).collect();
        Ok(Table {
            suite,
            questions: question_ids.len(),
            question_ids,
            k: Some(k),
            label_source: self.setup.source_name(self.source),
            judged_by: counts(shares, &self.setup.source_name(LabelSource::Gold)),
            baseline: self.baseline.map(|base| self.recipes[base].to_string()),
            caution: self.caution(shares)?,
            provenance: self.provenance.clone(),
            ..Table::default()
        })
    }

    /// The greatest score of each lane that uses MMR normalised over the question set. Prints how many questions have no list.
    pub fn maxima(&self) -> anyhow::Result<Vec<(Recipe, f32)>> {
        let mut maxima: Vec<(Recipe, f32)> = Vec::new();
        for recipe in &self.recipes {
            let norm = match recipe.switches.rerank {
                Some(Rerank::Mmr(Mmr { norm, .. })) => norm,
                _ => Norm::Question,
            };
            let retrieval = recipe.retrieval();
            if norm == Norm::Question || maxima.iter().any(|(known, _)| *known == retrieval) {
                continue;
            }
            let (mut greatest, mut failed) = (f32::NEG_INFINITY, Vec::new());
            for question in &self.setup.questions {
                let query = self.query(question, vec![retrieval.clone()], Query::DEPTH);
                match lane(&self.setup, query, Lists::default(), &self.stop) {
                    Ok(list) => greatest = list.iter().map(|hit| hit.score).fold(greatest, f32::max),
                    Err(error) if error.is_stop() => return Ok(maxima),
                    Err(error) => failed.push(error),
                }
            }
            if let Some(error) = failed.first() {
                let (count, of) = (failed.len(), self.setup.questions.len());
                writeln!(
                    safe::stderr(),
                    "parallax: {retrieval} has no list for {count} of {of} questions, so its greatest score skips them: {error}"
                )?;
            }
            if greatest.is_finite() {
                maxima.push((retrieval, greatest));
            }
        }
        Ok(maxima)
    }

    fn query(&self, question: &Question, lanes: Vec<Recipe>, k: usize) -> Query {
        Query { question: question.clone(), lanes, k, source: self.source }
    }

    /// Runs all lanes on one question, with the question set's maxima for MMR.
    pub fn run(
        &self,
        question: &Question,
        k: usize,
        depth: Depth,
        maxima: &[(Recipe, f32)],
    ) -> anyhow::Result<Outcome> {
        let query = self.query(question, self.recipes.clone(), k);
        let mut lists = Lists::default();
        lists.maxima = maxima.to_vec();
        Ok(run(&self.setup, query, depth, lists, &self.stop, &|_| ())?)
    }

    /// Ranks all lanes on one question and judges nothing.
    pub fn rank(&self, question: &Question, k: usize, maxima: &[(Recipe, f32)]) -> Vec<Lane> {
        let mut lists = Lists::default();
        lists.maxima = maxima.to_vec();
        rank_lanes(&self.setup, self.query(question, self.recipes.clone(), k), lists, &self.stop)
    }

    /// Shows how many questions are done.
    pub fn show(&self, done: usize, of: usize) {
        self.meter.show(Progress { job: Job::Measuring, done: done as u64, total: of as u64 });
    }

    /// The lane that each lane is compared with: the baseline, or without one, for a lane with switches, the same lane without them.
    pub fn compared_with(&self) -> Vec<Option<usize>> {
        match self.baseline {
            Some(base) => (0..self.recipes.len()).map(|lane| (lane != base).then_some(base)).collect(),
            None => self.plain_forms(),
        }
    }

    /// For each lane with switches, the index of the same lane without them, if it is measured too.
    pub fn plain_forms(&self) -> Vec<Option<usize>> {
        plain_forms(&self.recipes)
    }
}

/// For each lane with switches, the index of the same lane without them, if it is among them too.
pub fn plain_forms(recipes: &[Recipe]) -> Vec<Option<usize>> {
    let plain = |recipe: &Recipe| {
        let plain = recipe.plain();
        recipes.iter().position(|other| *other == plain).filter(|_| *recipe != plain)
    };
    recipes.iter().map(plain).collect()
}

/// A hash of lines, in their order.
fn hash_of(lines: impl Iterator<Item = String>) -> String {
    let mut hasher = blake3::Hasher::new();
    for line in lines {
        hasher.update(line.as_bytes()).update(b"\n");
    }
    hasher.finalize().to_hex()[..32].to_owned()
}

/// Says in every row which share of its lane's verdicts is the model's.
pub fn name_the_model(rows: &mut [Row], shares: &[Shares]) {
    for (row, shares) in rows.iter_mut().zip(shares) {
        row.by_model = (shares.all() > 0).then(|| shares.by_model() as f64 / shares.all() as f64);
    }
}

/// How many passages each source judged: `40 by hand, 12 the model's`.
fn counts(shares: Shares, labels: &str) -> String {
    let parts = [(shares.human, "by hand"), (shares.gold, labels), (shares.by_model(), "the model's")];
    let known = parts.iter().filter(|(count, _)| *count > 0);
    known.map(|(count, who)| format!("{count} {who}")).collect::<Vec<_>>().join(", ")
}

/// A recipe whose run, if it has one, is read in the order of `--ties`.
pub fn ordered(mut recipe: Recipe, ties: Ties) -> Recipe {
    if let (Base::Run(file), Ties::TrecEval) = (&mut recipe.base, ties) {
        file.order = RunOrder::TrecEval;
    }
    recipe
}

/// The lanes to measure, with their switches, and the index of the one that `--baseline` or `--compare-to` names. The run of
/// `--compare-to` stays as it was finished: switches are for the other lanes.
///
/// # Errors
/// No lane can use a switch, or there is no such baseline.
pub fn chosen(common: &Common, args: &Eval) -> anyhow::Result<(Vec<Recipe>, Option<usize>)> {
    let mut recipes = common.recipes();
    // It was put at the end.
    let run = args.compare_to.clone().map(|run| ordered(run, args.ties));
    if let Some(at) = run.and_then(|run| recipes.iter().rposition(|recipe| *recipe == run)) {
        let run = recipes.remove(at);
        let mut recipes = args.switches.apply(recipes)?;
        recipes.insert(at, run);
        return Ok((recipes, Some(at)));
    }
    let recipes = args.switches.apply(recipes)?;
    let rows: Vec<String> = recipes.iter().map(ToString::to_string).collect();
    let named = args.baseline.as_deref();
    let baseline = named.map(|name| find_row("--baseline", name.trim(), &rows)).transpose()?;
    Ok((recipes, baseline))
}

/// What a list says of itself. The list holds texts, too many to keep.
pub struct ListFacts {
    notes: BTreeSet<String>,
    form: Option<String>,
    /// How many sentences a model copied for its expansion, and how many of them exactly.
    copied: (usize, usize),
    probed: Probed,
    cost: Cost,
    took: Duration,
}

impl ListFacts {
    /// The facts of a list whose query took so long.
    pub fn of(list: &List, took: Duration) -> Self {
        let expansion = list.trace.expansion();
        ListFacts {
            notes: notes_of(list),
            form: list.trace.form(),
            copied: expansion.map(Expansion::copied).unwrap_or_default(),
            probed: list.trace.probed().unwrap_or_default(),
            cost: list.trace.cost(),
            took,
        }
    }
}

/// What one lane costs over all questions.
#[derive(Clone, Copy, Default)]
struct LaneCost {
    lists: usize,
    copied: (usize, usize),
    probed: Probed,
    cost: Cost,
    took: Duration,
}

/// The notes of one list: the writer of its expansion, and the fallbacks that ran.
fn notes_of(list: &List) -> BTreeSet<String> {
    let writer = list.trace.expansion().map(Expansion::describe);
    writer.into_iter().chain(list.trace.own_notes().cloned()).collect()
}

/// The notes of all lanes, each with its questions: the writers of expansions, and the fallbacks that ran.
#[derive(Default)]
pub struct LaneNotes {
    notes: BTreeMap<(String, String), BTreeSet<String>>,
    /// By lane, the forms of its expansion with the number of lists.
    forms: BTreeMap<String, BTreeMap<String, usize>>,
    costs: BTreeMap<String, LaneCost>,
}

impl LaneNotes {
    /// Adds what is known of one question's list.
    pub fn take_list(&mut self, recipe: &Recipe, question: &Question, facts: ListFacts) {
        facts.notes.into_iter().for_each(|text| self.add(recipe.to_string(), text, question));
        if let Some(form) = facts.form {
            *self.forms.entry(recipe.to_string()).or_default().entry(form).or_default() += 1;
        }
        let sum = self.costs.entry(recipe.to_string()).or_default();
        *sum = LaneCost {
            lists: sum.lists + 1,
            copied: (sum.copied.0 + facts.copied.0, sum.copied.1 + facts.copied.1),
            probed: sum.probed.plus(facts.probed),
            cost: sum.cost.plus(facts.cost),
            took: sum.took + facts.took,
        };
    }

    /// What every lane costs a query, for `--cost`; finished runs cost nothing here.
    pub fn cost_table(&self, recipes: &[Recipe]) -> Table {
        let row = |recipe: &Recipe| {
            let lane = recipe.to_string();
            let sum = self.costs.get(&lane).copied().unwrap_or_default();
            let n = sum.lists;
            let each = |count: usize| (n > 0).then(|| count as f64 / n as f64);
            let cell = |mean: f64| Cell { mean, n, ..Cell::default() };
            let (of, exact) = sum.copied;
            let tokens = |part: fn(Tokens) -> u64| each(sum.cost.tokens.map(part)? as usize);
            let asks = recipe.switches.asks_chat();
            let cells = vec![
                each(sum.cost.replies).filter(|_| asks).map(cell),
                each(sum.cost.recorded).filter(|_| asks).map(cell),
                tokens(|tokens| tokens.prompt).map(cell),
                tokens(|tokens| tokens.reply).map(cell),
                (of > 0).then(|| Cell { n: of, ..cell(exact as f64 / of as f64) }),
                (n > 0).then(|| cell(sum.took.as_secs_f64() * 1000.0 / n as f64)),
            ];
            Row { lane, cells, ..Row::default() }
        };
        let columns = ["replies", "recorded", "tokens read", "tokens written", "copied", "ms"];
        Table {
            suite: "cost",
            columns: columns.map(Head::from).to_vec(),
            rows: recipes.iter().map(row).collect(),
            notes: [
                "a query: replies of a language model, how many of them were recorded, so that no model was asked, and the tokens of all; a \
                 lane that shares its expansion with one above counts the same replies",
                "copied: share of the sentences copied by a model that stand in their passages word for word",
                "ms: from question to list, without the time to open indexes and models; recorded replies take none; it differs from run to run",
            ]
            .map(str::to_owned)
            .to_vec(),
            ..Table::default()
        }
    }

    /// Writes into every row the form in which its lane was expanded, with counts if there were several.
    pub fn name(&self, rows: &mut [Row]) {
        for row in rows {
            row.form = self.forms.get(&row.lane).map(|forms| match forms.len() {
                1 => forms.keys().cloned().collect(),
                _ => {
                    let each = forms.iter().map(|(form, count)| format!("{form}: {count}"));
                    each.collect::<Vec<_>>().join("; ")
                }
            });
        }
    }

    /// Adds the notes of one question's lists.
    pub fn take(&mut self, outcome: &Outcome) {
        self.take_lanes(&outcome.query.question, &outcome.query.lanes, &outcome.lanes);
    }

    /// Adds the notes of one question's lanes.
    pub fn take_lanes(&mut self, question: &Question, recipes: &[Recipe], lanes: &[Lane]) {
        for (recipe, lane) in recipes.iter().zip(lanes) {
            let Ok(list) = &lane.ranking else { continue };
            self.take_list(recipe, question, ListFacts::of(list, lane.took));
        }
    }

    /// Adds the notes of a lane that ran one question in three wordings. A note on only some wordings names them.
    pub fn take_sycophancy(&mut self, recipe: &Recipe, question: &Question, sycophancy: &Sycophancy) {
        let mut by_text: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for (list, wording) in sycophancy.lists.iter().zip(WORDINGS) {
            let sum = self.costs.entry(recipe.to_string()).or_default();
            sum.probed = sum.probed.plus(list.trace.probed().unwrap_or_default());
            for text in notes_of(list) {
                by_text.entry(text).or_default().push(wording);
            }
        }
        for (text, wordings) in by_text {
            let all = wordings.len() == WORDINGS.len();
            let lane = if all { recipe.to_string() } else { format!("{recipe} {}", wordings.join(", ")) };
            self.add(lane, text, question);
        }
        sycophancy.note.iter().for_each(|note| self.add(recipe.to_string(), note.clone(), question));
        if sycophancy.expanded_differently() {
            self.add(recipe.to_string(), UNLIKE.to_owned(), question);
        }
    }

    fn add(&mut self, lane: String, text: String, question: &Question) {
        self.notes.entry((lane, text)).or_default().insert(question.id.clone());
    }

    /// The notes, each with the number of its questions.
    pub fn counted(&self) -> Vec<Counted> {
        let note = |((lane, text), questions): (&(String, String), &BTreeSet<String>)| Counted {
            text: format!("{lane}: {text}"),
            questions: questions.len(),
        };
        self.notes.iter().map(note).collect()
    }

    /// For lanes that copied sentences, the share of exact copies; for those that search some lists of vectors, what they found.
    pub fn sums(&self) -> impl Iterator<Item = String> {
        self.costs.iter().flat_map(|(lane, sum)| {
            let of = |(part, all): (usize, usize)| share(part as f64 / all as f64);
            let copied = (sum.copied.0 > 0).then(|| {
                let ((of_all, exact), shown) = (sum.copied, of((sum.copied.1, sum.copied.0)));
                format!("{lane}: {exact} of {of_all} copied sentences ({shown}) stand in their passages word for word")
            });
            let Probed { lists: (probes, lists), found, of: all } = sum.probed;
            let probed = (lists > 0).then(|| {
                let shown = of((found, all));
                format!("{lane}: nprobe {probes} of {lists} lists, {shown} of the first ten passages of an exact search found")
            });
            copied.into_iter().chain(probed)
        })
    }

    /// All of them as lines.
    pub fn notes(&self) -> impl Iterator<Item = String> {
        self.counted().into_iter().map(|note| note.to_string()).chain(self.sums())
    }
}
