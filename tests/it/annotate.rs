//! `parallax annotate`, and labels by hand in the other commands.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use parallax::annotate::formats::{Format, Reading};
use parallax::annotate::{
    Act, Decision, Entry, History, Item, Journal, Key, Material, Project, Read, Seen, View, agree, queue,
    repeats, text_hash,
};
use parallax::corpus::{Passage, PassageIx, sample};
use parallax::detect::{By, LabelSource};
use parallax::engine::{Depth, Lists, Opening, Query, Setup, run};
use parallax::measure::seeded::SplitMix64;
use parallax::question::Question;
use parallax::question::set::builtin;
use parallax::work::Stop;
use serde_json::Value;
use tempfile::TempDir;

use crate::stage::QUESTION;

struct Workspace(TempDir);

impl Workspace {
    fn new() -> Self {
        Workspace(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Exit code, standard output and standard error.
    fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_parallax"));
        for (name, _) in
            std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("PARALLAX"))
        {
            command.env_remove(name);
        }
        let printed = command.args(arguments).arg("--data-dir").arg(self.path("data")).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (printed.status.code().unwrap(), text(printed.stdout), text(printed.stderr))
    }

    fn good(&self, arguments: &[&str]) -> String {
        let (code, out, errors) = self.run(arguments);
        assert_eq!(code, 0, "{out}{errors}");
        out
    }

    /// A project on the sample, by one cheap lane.
    fn project(&self) -> PathBuf {
        let folder = self.path("project");
        let out = self.good(&[
            "annotate",
            "new",
            folder.to_str().unwrap(),
            "--lanes",
            "bm25",
            "--depth",
            "3",
            "--annotators",
            "anna,ben",
            "--overlap",
            "0.5",
        ]);
        assert!(
            out.contains("24 questions, to depth 3 of bm25") && out.contains("assigned to two annotators: "),
            "{out}"
        );
        folder
    }
}

/// Writes an answer to every statement of an item into the journal.
fn judge(folder: &Path, by: &str, item: &Item, statements: &[String], supports: bool) {
    judge_in(folder, by, item, statements, supports, None);
}

fn judge_in(folder: &Path, by: &str, item: &Item, statements: &[String], supports: bool, took: Option<u64>) {
    let answers: BTreeMap<String, bool> = statements.iter().map(|text| (text.clone(), supports)).collect();
    let mut journal = Journal::open(&Project::journal(folder, by), by).unwrap().journal;
    let act = Act {
        question: item.question.clone(),
        passage: item.passage.id.clone(),
        text: text_hash(&item.passage),
        view: View { answers, ..View::default() },
        took,
        seen: None,
    };
    journal.append(act).unwrap();
}

fn of_question(folder: &Path) -> (Vec<String>, Vec<Item>) {
    let (project, items) = Project::open(folder).unwrap();
    let statements = project.question(QUESTION).unwrap().perspectives.clone();
    (statements, items.into_iter().filter(|item| item.question == QUESTION).collect())
}

#[test]
fn a_project_is_created_labelled_moved_merged_and_reported() {
    let workspace = Workspace::new();
    let here = workspace.project();
    let (statements, items) = of_question(&here);
    assert_eq!(items.len(), 3);
    judge(&here, "anna", &items[0], &statements, true);
    // The same folder on another machine.
    let there = workspace.path("there");
    fs::create_dir(&there).unwrap();
    for file in ["project.json", "pool.jsonl", "guidelines.md", "anna.jsonl"] {
        fs::copy(here.join(file), there.join(file)).unwrap();
    }
    judge(&here, "anna", &items[0], &statements, false);
    judge(&there, "anna", &items[0], &statements[..1], true);
    let (project, all) = Project::open(&here).unwrap();
    let of_ben = all.iter().find(|item| item.is_for("ben") && item.question != QUESTION).unwrap();
    judge(&there, "ben", of_ben, &project.question(&of_ben.question).unwrap().perspectives, true);
    let (one, other) = (here.to_str().unwrap(), there.to_str().unwrap());
    let printed = workspace.good(&["annotate", "merge", one, other]);
    assert!(printed.contains("anna.jsonl: 1 new entry, 3 in all, 1 conflict"), "{printed}");
    assert!(printed.contains("ben.jsonl: 1 new entry, 1 in all, 0 conflicts"), "{printed}");
    assert!(
        workspace.good(&["annotate", "merge", one, other]).contains("anna.jsonl: 0 new entries, 3 in all")
    );
    // Merging in the other direction gives the same.
    workspace.good(&["annotate", "merge", other, one]);
    for name in ["anna.jsonl", "ben.jsonl"] {
        let lines = |folder: &Path| {
            let text = fs::read_to_string(folder.join(name)).unwrap();
            let mut lines: Vec<String> = text.lines().map(ToOwned::to_owned).collect();
            lines.sort();
            lines
        };
        assert_eq!(lines(&here), lines(&there));
    }
    let one_file = workspace.path("all.jsonl");
    let printed = workspace.good(&["annotate", "merge", one_file.to_str().unwrap(), one, other]);
    assert!(printed.contains("all.jsonl: 4 new entries, 4 in all, 1 conflict"), "{printed}");
    let status = workspace.good(&["annotate", "status", one]);
    let row = |name: &str| -> Vec<String> {
        let row = status.lines().find(|line| line.starts_with(name)).unwrap();
        row.split_whitespace().skip(2).map(ToOwned::to_owned).collect()
    };
    assert_eq!((row("anna"), row("ben")), (words("0 0 0 1"), words("1 0 0 0")));
    assert!(status.contains("gave different labels") && status.contains(&format!("no {}", statements[0])));
    judge(&here, "anna", &items[0], &statements, true);
    assert!(!workspace.good(&["annotate", "status", one]).contains("different labels"));
}

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(ToOwned::to_owned).collect()
}

#[test]
fn labels_by_hand_count_before_gold_labels_and_verdicts() {
    let workspace = Workspace::new();
    let folder = workspace.project();
    let (statements, items) = of_question(&folder);
    judge(&folder, "anna", &items[0], &statements, false);
    judge(&folder, "ben", &items[1], &statements, true);
    let search = |source: &str, journal: &[&str]| -> Value {
        let all =
            ["search", QUESTION, "--lanes", "bm25", "-k", "3", "--format", "json", "--label-source", source];
        let text = workspace.good(&[&all, journal].concat());
        serde_json::from_str(&text).unwrap()
    };
    let journal = ["--journal", folder.to_str().unwrap()];
    let by = |result: &Value| -> Vec<String> {
        let hits = result["lanes"][0]["hits"].as_array().unwrap();
        let one = |hit: &Value| format!("{} {}", hit["verdicts"][0]["by"], hit["verdicts"][0]["supports"]);
        hits.iter().map(one).collect()
    };
    let human = search("human", &journal);
    assert_eq!(by(&human), ["\"human\" false", "\"human\" true", "null null"]);
    assert_eq!((&human["lanes"][0]["judged"], &human["provenance"]["labels"]), (&2.into(), &"human".into()));
    let auto = by(&search("auto", &journal));
    assert_eq!(auto[..2], by(&human)[..2]);
    assert!(auto[2].starts_with("\"gold\""), "{auto:?}");
    let (code, _, errors) =
        workspace.run(&["search", QUESTION, "--lanes", "bm25", "--label-source", "human"]);
    assert!(
        code == 2 && errors.contains("no labels were made by hand") && errors.contains("--journal"),
        "{errors}"
    );
    // Labels stored for the corpus count without being named.
    let print: Value =
        serde_json::from_str(&fs::read_to_string(folder.join("project.json")).unwrap()).unwrap();
    let kept = workspace.path("data").join("annotate").join(print["fingerprint"].as_str().unwrap());
    fs::create_dir_all(&kept).unwrap();
    fs::copy(folder.join("anna.jsonl"), kept.join("anna.jsonl")).unwrap();
    assert_eq!(by(&search("human", &[]))[0], "\"human\" false");
    let table = workspace.good(&["eval", "berds", "--lanes", "bm25", "-k", "1", "--label-source", "human"]);
    assert!(table.contains("labels: human"), "{table}");
}

#[test]
fn a_decision_counts_at_once_without_reading_a_file_again() {
    let workspace = Workspace::new();
    let opening = Opening { data_dir: workspace.path("data"), ..Opening::default() };
    let setup = Setup::open(&opening, &|_| {}, &Stop::never()).unwrap();
    let question = setup.questions.iter().find(|question| question.text == QUESTION).unwrap().clone();
    let query = Query { question, lanes: vec!["bm25".parse().unwrap()], k: 3, source: LabelSource::Human };
    let answered =
        || run(&setup, query.clone(), Depth::Top, Lists::default(), &Stop::never(), &|_| ()).unwrap();
    let first = answered();
    assert_eq!(first.figures(0).unwrap().judged, 0);
    assert!(!setup.has_human() && setup.lacks(LabelSource::Human).is_some());
    let ranked = first.lanes[0].ranking.as_ref().unwrap()[1].clone();
    let answers = query.question.perspectives.iter().map(|text| (text.clone(), true)).collect();
    let act = Act {
        question: QUESTION.into(),
        passage: ranked.passage.id.clone(),
        text: text_hash(&ranked.passage),
        view: View { answers, ..View::default() },
        took: None,
        seen: None,
    };
    let mut journal = Journal::open(&setup.journals.join("anna.jsonl"), "anna").unwrap().journal;
    let entry = journal.append(act).unwrap();
    setup.replace_human(&entry.key(), journal.history().decisions_on(&entry.key()));
    let figures = answered().figures(0).unwrap();
    assert_eq!((figures.judged, figures.supporting), (1, vec![1, 1]));
    // The decision is written into the judgments of the open query.
    let mut judgments = first.judgments;
    judgments.set_human(
        ranked.at,
        0,
        Some(setup.labelled(&query.question.perspectives[0], &ranked.passage.id).human),
    );
    assert_eq!(
        judgments.verdict(ranked.at, 0).map(|verdict| (verdict.supports, verdict.by)),
        Some((Some(true), By::Human))
    );
    // A tie is nobody's verdict, least of all the model's; a label that was taken back leaves the passage to others.
    judgments.set_human(ranked.at, 0, Some(None));
    assert_eq!((judgments.owner(ranked.at), judgments.support(ranked.at)), (By::Human, None));
    judgments.source = LabelSource::Auto;
    assert_eq!((judgments.owner(ranked.at), judgments.verdict(ranked.at, 0)), (By::Human, None));
    judgments.set_human(ranked.at, 0, None);
    judgments.set_human(ranked.at, 1, None);
    assert_ne!(judgments.owner(ranked.at), By::Human);
    let again = Setup::open(&opening, &|_| {}, &Stop::never()).unwrap();
    assert!(again.has_human());
    let entry = journal.undo().unwrap().unwrap();
    setup.replace_human(&entry.key(), journal.history().decisions_on(&entry.key()));
    assert_eq!(answered().figures(0).unwrap().judged, 0);
}

#[test]
fn the_engine_reads_a_journal_again_that_another_process_changed() {
    use parallax::engine::{Engine, Reply};
    use std::sync::{Arc, mpsc};
    use std::time::Duration;
    let workspace = Workspace::new();
    let folder = workspace.project();
    let (statements, items) = of_question(&folder);
    judge(&folder, "anna", &items[0], &statements, true);
    let opening =
        Opening { data_dir: workspace.path("data"), journals: vec![folder.clone()], ..Opening::default() };
    let (send, replies) = mpsc::channel();
    let _engine = Engine::start(opening, &(Arc::new(move |reply| drop(send.send(reply))) as _)).unwrap();
    let next = || replies.recv_timeout(Duration::from_secs(60)).expect("a reply of the engine");
    while !matches!(next(), Reply::Opened(_)) {}
    judge(&folder, "ben", &items[0], &statements, false);
    let changed = loop {
        if let Reply::LabelsChanged(changed) = next() {
            break changed;
        }
    };
    assert_eq!((changed.by, changed.error), (vec!["ben".to_owned()], None));
    let ties: Vec<_> =
        changed.labels.iter().map(|(_, statement, label)| (statement.clone(), *label)).collect();
    let mut expected: Vec<_> = statements.iter().map(|statement| (statement.clone(), Some(None))).collect();
    expected.sort();
    assert_eq!(ties, expected, "anna says yes and ben says no");
}

#[test]
fn a_label_from_the_lanes_says_that_verdicts_were_in_sight_and_what_is_put_back_keeps_its_own_circumstances()
{
    use parallax::engine::{Engine, Labelling, Reply, SetLabel, SetTo};
    use std::sync::{Arc, mpsc};
    use std::time::Duration;
    let workspace = Workspace::new();
    let folder = workspace.project();
    let (statements, items) = of_question(&folder);
    let guidelines = parallax::annotate::guidelines_hash(&Project::guidelines(&folder).unwrap().unwrap());
    let seen = |blind| Some(Seen { blind, guidelines: guidelines.clone(), settles: None, again: false });
    let answers =
        |yes: bool| -> BTreeMap<String, bool> { statements.iter().map(|text| (text.clone(), yes)).collect() };
    let mut journal = Journal::open(&Project::journal(&folder, "anna"), "anna").unwrap().journal;
    let blind = View { answers: answers(true), ..View::default() };
    let (question, passage) = (items[0].question.clone(), items[0].passage.id.clone());
    let text = text_hash(&items[0].passage);
    let act = Act { question, passage, text, view: blind.clone(), took: Some(900), seen: seen(true) };
    journal.append(act).unwrap();
    drop(journal);
    let opening = Opening {
        data_dir: workspace.path("data"),
        journals: vec![folder.clone()],
        annotator: Some("anna".into()),
        ..Opening::default()
    };
    let (send, replies) = mpsc::channel();
    let engine = Engine::start(opening, &(Arc::new(move |reply| drop(send.send(reply))) as _)).unwrap();
    let next = || replies.recv_timeout(Duration::from_secs(60)).expect("a reply of the engine");
    while !matches!(next(), Reply::Opened(_)) {}
    let (project, _) = Project::open(&folder).unwrap();
    let set = |number, to| {
        let question = project.question(QUESTION).unwrap().clone();
        let passage = Arc::new(items[0].passage.clone());
        engine.label(Labelling::Set(Box::new(SetLabel { number, question, passage, to })));
        loop {
            if let Reply::LabelSet { set, .. } = next() {
                break set.unwrap().0.entry;
            }
        }
    };
    assert_eq!(set(1, SetTo::Answers(answers(false))).seen, seen(false));
    let kept = folder.join("guidelines").join(format!("{guidelines}.md"));
    assert_eq!(
        fs::read_to_string(kept).ok(),
        Project::guidelines(&folder).unwrap(),
        "the text that it was made under"
    );
    assert_eq!(set(2, SetTo::View(blind)).seen, seen(true));
    drop(engine);
    let agreed = workspace.run(&["annotate", "agree", folder.to_str().unwrap(), "--blind"]);
    assert!(agreed.2.contains("0 labels of 2 left out"), "{}", agreed.2);
}

/// Three people, and a fourth who settles what they disagree on.
const PEOPLE: [&str; 4] = ["anna", "ben", "cleo", "dora"];

/// One machine's copy of a project of 24 questions.
struct Machine {
    folder: PathBuf,
    depth: usize,
}

impl Machine {
    /// The pool to this depth; the passages below the second came as the project grew.
    fn pool(depth: usize) -> Vec<Item> {
        let corpus = sample::corpus();
        let item = |(at, question): (usize, &Question), rank: usize| Item {
            question: question.text.clone(),
            passage: corpus.passage(PassageIx((at * 25 + rank) as u32)),
            ranks: BTreeMap::from([("bm25".to_owned(), rank + 1)]),
            round: rank.saturating_sub(1),
            ..Item::default()
        };
        let questions = builtin(sample::QUESTIONS);
        let all = questions.iter().enumerate();
        all.flat_map(|question| (0..depth).map(move |rank| (question, rank)))
            .map(|(question, rank)| item(question, rank))
            .collect()
    }

    fn new(folder: PathBuf, depth: usize) -> Self {
        let questions = builtin(sample::QUESTIONS);
        let fingerprint = sample::corpus().fingerprint;
        let mut project = Project::new("sample".into(), fingerprint, questions, vec!["bm25".into()], depth);
        project.annotators = PEOPLE[..3].iter().map(|name| (*name).to_owned()).collect();
        project.write(&Machine::pool(depth), &folder).unwrap();
        Machine { folder, depth }
    }

    /// Takes over what the project grew by; the passages that were there keep their places in the queue.
    fn grow(&mut self, depth: usize) {
        let queue = |items: &[Item], project: &Project| -> Vec<(String, String)> {
            let places = queue(items, project.order, project.seed, &project.lanes, &|_| None);
            places.into_iter().map(|at| (items[at].question.clone(), items[at].passage.id.clone())).collect()
        };
        let (mut project, had) = Project::open(&self.folder).unwrap();
        (project.depth, self.depth) = (depth, depth);
        project.rewrite(&Machine::pool(depth), &self.folder).unwrap();
        let (project, has) = Project::open(&self.folder).unwrap();
        assert_eq!(queue(&has, &project)[..had.len()], queue(&had, &project));
    }

    fn path(&self, by: &str) -> PathBuf {
        Project::journal(&self.folder, by)
    }

    fn journal(&self, by: &str) -> Journal {
        // A command that another test starts holds a copy of this process's locks for a moment, between fork and exec.
        loop {
            let journal = Journal::open(&self.path(by), by).unwrap().journal;
            if journal.read_only().is_none() {
                return journal;
            }
            std::thread::yield_now();
        }
    }

    /// What is on the disk; half a line of a killed process does not count.
    fn on_disk(&self, by: &str) -> Vec<Entry> {
        if !self.path(by).exists() {
            return Vec::new();
        }
        let read = Read::file(&self.path(by)).unwrap();
        assert!(read.bad.is_empty(), "{:?}", read.bad);
        read.entries
    }

    /// Writes an act, by this machine's clock or by one that says anything.
    fn write(&self, act: Act, by: &str, rng: &mut SplitMix64) -> Entry {
        let mut journal = self.journal(by);
        if rng.coin() {
            return journal.append(act).unwrap();
        }
        let key = Key { by: by.into(), question: act.question.clone(), passage: act.passage.clone() };
        let was = journal.history().heads(&key).iter().map(|head| head.id.clone()).collect();
        let entry = Entry::new(act, by, was, rng.below(1 << 40) as u64).unwrap();
        journal.take([entry.clone()]).unwrap();
        entry
    }

    /// The process is killed in the middle of a line.
    fn killed(&self, act: Act, by: &str, rng: &mut SplitMix64) {
        let line = Entry::new(act, by, Vec::new(), 1).unwrap().line().unwrap();
        let mut file = fs::OpenOptions::new().create(true).append(true).open(self.path(by)).unwrap();
        file.write_all(&line.as_bytes()[..rng.below(line.len())]).unwrap();
    }

    /// Takes over what another machine has; a killed merge takes the first lines alone.
    fn merge(&self, from: &Machine, rng: &mut SplitMix64) {
        for by in PEOPLE {
            let mut entries = from.on_disk(by);
            if rng.below(4) == 0 {
                entries.truncate(rng.below(entries.len() + 1));
            }
            if !entries.is_empty() {
                self.journal(by).take(entries).unwrap();
            }
        }
    }
}

/// What somebody says of a passage, with evidence for each statement of its own.
fn random_act(question: &Question, passage: &Passage, step: usize, rng: &mut SplitMix64) -> Act {
    let answers: BTreeMap<String, bool> =
        question.perspectives.iter().map(|text| (text.clone(), rng.coin())).collect();
    let yes: Vec<&String> = answers.iter().filter(|(_, yes)| **yes).map(|(text, _)| text).collect();
    let mut evidence = BTreeMap::new();
    for statement in yes {
        if rng.coin() {
            let (from, length) = (rng.below(60), 1 + rng.below(60));
            evidence.insert(statement.clone(), passage.text.chars().skip(from).take(length).collect());
        }
    }
    let note = rng.coin().then(|| format!("remark {step}"));
    let seen = rng.coin().then(|| Seen {
        blind: rng.coin(),
        guidelines: "g".into(),
        settles: None,
        again: rng.coin(),
    });
    let view = View { answers, evidence, note, ..View::default() };
    let (text, took) = (text_hash(passage), Some(rng.below(90_000) as u64));
    Act { question: question.text.clone(), passage: passage.id.clone(), text, view, took, seen }
}

/// In memory, if the system has such a folder: 15,000 labels need not wait for the disk.
fn quick_folder() -> TempDir {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    made.or_else(|_| tempfile::tempdir()).unwrap()
}

#[test]
fn no_decision_of_three_people_on_three_machines_is_lost_or_changed_by_kills_merges_and_any_format() {
    let (questions, corpus) = (builtin(sample::QUESTIONS), sample::corpus());
    let material = Material::new(&questions, &corpus);
    let sorted = |mut all: Vec<Decision>| {
        all.sort_by_key(|one| {
            (one.question.clone(), one.passage.clone(), one.perspective.clone(), one.by.clone())
        });
        all
    };
    for seed in 0..500 {
        let mut rng = SplitMix64::new(seed);
        let place = quick_folder();
        let mut machines: Vec<Machine> =
            (0..3).map(|n| Machine::new(place.path().join(n.to_string()), 2)).collect();
        // The entries that were reported as written.
        let mut acknowledged: Vec<Entry> = Vec::new();
        for step in 0..30 {
            // The project grows twice on the first machine; the others follow sooner or later.
            if step == 10 || step == 20 {
                let depth = machines[0].depth + 1;
                machines[0].grow(depth);
            }
            let (machine, who, depth) = (rng.below(3), rng.below(3), machines[0].depth);
            if machines[machine].depth < depth && rng.coin() {
                machines[machine].grow(depth);
            }
            let machine = &machines[machine];
            let at = rng.below(questions.len());
            let passage = corpus.passage(PassageIx((at * 25 + rng.below(machine.depth)) as u32));
            let act = random_act(&questions[at], &passage, step, &mut rng);
            match rng.below(6) {
                0 => machine.killed(act, PEOPLE[who], &mut rng),
                1 => {
                    acknowledged.push(machine.write(act, PEOPLE[who], &mut rng));
                    let (from, to) = (rng.below(3), rng.below(3));
                    if from != to {
                        machines[to].merge(&machines[from], &mut rng);
                    }
                }
                _ => acknowledged.push(machine.write(act, PEOPLE[who], &mut rng)),
            }
        }
        let merged = |machines: &[Machine], rng: &mut SplitMix64| {
            let read = |machine: &Machine| PEOPLE.map(|by| machine.on_disk(by)).concat();
            let mut entries: Vec<Entry> = machines.iter().flat_map(read).collect();
            rng.shuffle(&mut entries);
            let mut all = History::default();
            for entry in entries {
                all.take(entry);
            }
            all
        };
        let before = merged(&machines, &mut rng);
        assert!(acknowledged.iter().all(|entry| before.entry(&entry.id) == Some(entry)), "seed {seed}");
        assert_eq!(before.len(), acknowledged.len(), "seed {seed}: nothing was made up");
        // A fourth person settles what the others disagree on.
        let labels = before.decisions();
        for item in agree::items(&labels, None) {
            if !matches!(item.votes(), (1.., 1..)) {
                continue;
            }
            let about = item.about;
            let key =
                Key { by: "dora".into(), question: about.question.clone(), passage: about.passage.clone() };
            let mut view = machines[0].journal("dora").history().view(&key).cloned().unwrap_or_default();
            view.answers.insert(about.perspective.clone(), rng.coin());
            let settles = Some("it says so".into());
            let seen = Some(Seen { blind: false, guidelines: "g".into(), settles, again: false });
            let (question, passage, text) = (key.question, key.passage, about.text.clone());
            machines[0].write(Act { question, passage, text, view, took: None, seen }, "dora", &mut rng);
        }
        let decisions = merged(&machines, &mut rng).decisions();
        assert_eq!(merged(&machines, &mut rng).decisions(), decisions);
        let own = decisions.iter().filter(|one| one.by != "dora").cloned().collect();
        assert_eq!(sorted(own), sorted(labels), "settling changes nobody's own label");
        assert!(agree::items(&decisions, None).iter().all(|item| item.majority().is_some()), "seed {seed}");
        for format in [
            Format::Tsv,
            Format::Csv,
            Format::Hf,
            Format::LabelStudio,
            Format::Argilla,
            Format::Berds,
            Format::Qrels,
        ] {
            let exported = format.write(&decisions, &material, None).unwrap();
            let rest = exported.files.iter().find(|(ending, _)| ending.ends_with(".rest.jsonl"));
            let (read_as, bytes) = match rest {
                Some((_, bytes)) => (Format::Hf, bytes),
                None => (format, &exported.files[0].1),
            };
            let file = place.path().join("exported");
            fs::write(&file, bytes).unwrap();
            let reading = Reading { material: &material, by: None, at: 0 };
            let back = read_as.read(&file, &reading).unwrap();
            assert_eq!(back.unmatched, [], "{format:?}");
            assert_eq!(sorted(back.decisions), sorted(decisions.clone()), "{format:?}, seed {seed}");
        }
    }
}

#[test]
fn the_models_and_the_gold_label_never_overrule_a_tie_or_a_partial_label() {
    let workspace = Workspace::new();
    let folder = workspace.project();
    let (statements, items) = of_question(&folder);
    // A tie on the first statement; and one label of two.
    judge(&folder, "anna", &items[0], &statements, true);
    judge(&folder, "ben", &items[0], &statements[..1], false);
    judge(&folder, "anna", &items[1], &statements[..1], true);
    // Labels of one passage that nobody labelled by hand, so that the third is the model's.
    let labels = workspace.path("labels.tsv");
    fs::write(&labels, format!("id\tperspective\tlabel\nzoos-25\t{}\t1\n", statements[0])).unwrap();
    let labels = format!("{}:positives", labels.display());
    for more in [&[][..], &["--labels", labels.as_str()]] {
        let plan = ["search", QUESTION, "--lanes", "bm25", "-k", "3", "--format", "json"];
        let with = ["--label-source", "auto", "--journal", folder.to_str().unwrap()];
        let found: Value = serde_json::from_str(&workspace.good(&[&plan[..], &with, more].concat())).unwrap();
        let said = |hit: usize| -> Vec<(String, Option<bool>)> {
            let verdicts = found["lanes"][0]["hits"][hit]["verdicts"].as_array().unwrap();
            let one =
                |one: &Value| (one["by"].as_str().unwrap_or("nobody").to_owned(), one["supports"].as_bool());
            verdicts.iter().map(one).collect()
        };
        let (nobody, human) = (("nobody".to_owned(), None), ("human".to_owned(), Some(true)));
        assert_eq!(said(0), [nobody.clone(), human.clone()], "a tie");
        assert_eq!(said(1), [human, nobody], "a partial label");
        let other = if more.is_empty() { "gold" } else { "model" };
        assert!(said(2).iter().all(|(by, _)| by == other), "{:?}", said(2));
    }
}

#[test]
fn planted_checks_and_repeats_are_labelled_on_screen_and_reported() {
    let workspace = Workspace::new();
    let folder = workspace.path("project");
    let place = folder.to_str().unwrap();
    let set =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/sample_data/questions.jsonl")).unwrap();
    let two = workspace.path("two.jsonl");
    fs::write(&two, set.lines().take(2).collect::<Vec<_>>().join("\n")).unwrap();
    let questions = ["--questions", two.to_str().unwrap()];
    let new = ["annotate", "new", place, "--lanes", "bm25", "--depth", "6", "--annotators", "anna,ben"];
    let planted = ["--checks", ".25", "--repeats", ".4", "--blind", "--seed", "3"];
    let printed = workspace.good(&[&new[..], &questions, &planted].concat());
    assert!(printed.contains("checks: 3 passages"), "{printed}");
    let (project, items) = Project::open(&folder).unwrap();
    let checks: Vec<&Item> = items.iter().filter(|item| !item.labels.is_empty()).collect();
    assert!(checks.len() == 3 && checks.iter().all(|item| item.is_for("anna") && item.is_for("ben")));
    // Anna says *neither* of everything, and changes her mind on the first passage that comes again.
    let own: Vec<Item> = items.iter().filter(|item| item.is_for("anna")).cloned().collect();
    let again = repeats(&own, project.repeats, "anna", project.seed).len();
    assert!(again > 1, "{again} of {}", own.len());
    let keys = format!("<Esc>a<Wait>{}s{}<Wait>", "0".repeat(own.len()), "0".repeat(again - 1));
    let frame =
        ["--journal", place, "--annotator", "anna", "--lanes", "bm25", "frame", "--size", "100x30", "--keys"];
    let frame = workspace.good(&[&questions[..], &frame, &[keys.as_str()]].concat());
    let all = own.len() + again;
    assert!(frame.contains(&format!("{all} of {all} labelled")) && !frame.contains("check"), "{frame}");
    // Ben knows every answer, and is not asked twice.
    let gold = include_str!("../../sample_data/labels.tsv");
    let is_gold = |id: &str, statement: &str| gold.contains(&format!("\t{id}\t{statement}\t1"));
    for item in items.iter().filter(|item| item.is_for("ben")) {
        let statements = &project.question(&item.question).unwrap().perspectives;
        let answers = statements.iter().map(|text| (text.clone(), is_gold(&item.passage.id, text))).collect();
        let act = Act {
            question: item.question.clone(),
            passage: item.passage.id.clone(),
            text: text_hash(&item.passage),
            view: View { answers, ..View::default() },
            took: None,
            seen: None,
        };
        Journal::open(&Project::journal(&folder, "ben"), "ben").unwrap().journal.append(act).unwrap();
    }
    let report: Value =
        serde_json::from_str(&workspace.good(&["annotate", "report", place, "--format", "json"])).unwrap();
    let cell = |by: usize, column: &str| {
        let cell = &report["rows"][by]["measures"][column];
        (cell["mean"].as_f64(), cell["n"].as_u64())
    };
    // The second label of a passage counts.
    let journal = Journal::show(&Project::journal(&folder, "anna"), "anna").unwrap().journal;
    let right = journal.history().decisions().into_iter().filter_map(|one| {
        let check =
            checks.iter().find(|item| item.passage.id == one.passage && item.question == one.question)?;
        Some(check.labels[&one.perspective] == one.supports)
    });
    let right: Vec<bool> = right.collect();
    let share = right.iter().filter(|right| **right).count() as f64 / 6.0;
    assert_eq!((right.len(), cell(0, "checks")), (6, (Some(share), Some(6))), "{report}");
    let labels = 2 * again;
    let same = (labels - 1) as f64 / labels as f64;
    assert_eq!(cell(0, "with oneself"), (Some(same), Some(labels as u64)), "{report}");
    assert_eq!(cell(0, "blind").0, Some(2.0 * own.len() as f64));
    assert_eq!((cell(1, "checks"), cell(1, "with oneself").0), ((Some(1.0), Some(6)), None), "{report}");
    let page = workspace.good(&["annotate", "report", place, "--format", "html"]);
    assert!(page.contains("with oneself") && page.contains("checks"), "{}", &page[..300]);
}

#[test]
fn a_project_grows_and_nobodys_queue_moves_and_a_third_person_settles_what_is_split() {
    let workspace = Workspace::new();
    let folder = workspace.project();
    let path = folder.to_str().unwrap();
    let queue_of = |by: &str| -> Vec<(String, String)> {
        let (project, items) = Project::open(&folder).unwrap();
        let places = queue(&items, project.order, project.seed, &project.lanes, &|_| None);
        let own = places.into_iter().map(|at| &items[at]).filter(|item| item.is_for(by));
        own.map(|item| (item.question.clone(), item.passage.id.clone())).collect()
    };
    let before = ["anna", "ben"].map(queue_of);
    let (statements, items) = of_question(&folder);
    judge(&folder, "anna", &items[0], &statements, true);
    judge(&folder, "ben", &items[0], &statements, false);
    let out = workspace.good(&[
        "annotate",
        "grow",
        path,
        "--depth",
        "5",
        "--lanes",
        "minilm",
        "--annotators",
        "cleo",
    ]);
    assert!(
        out.contains("added") && out.contains("minilm: 120 found, ") && out.contains("by no other lane"),
        "{out}"
    );
    for (by, had) in ["anna", "ben"].into_iter().zip(&before) {
        assert_eq!(&queue_of(by)[..had.len()], had, "{by}");
        assert!(queue_of(by).len() > had.len());
    }
    assert!(!queue_of("cleo").is_empty());
    let status = workspace.good(&["annotate", "status", path]);
    assert!(
        status.contains("2 pairs of passage and statement are tied, labelled yes as often as no"),
        "{status}"
    );
    let (code, _, err) = workspace.run(&["annotate", "grow", path, "--adjudicators", "anna"]);
    assert!(code == 2 && err.contains("somebody else must settle"), "{err}");
    workspace.good(&["annotate", "grow", path, "--adjudicators", "dora"]);
    let frame = workspace.good(&[
        "--journal",
        path,
        "--annotator",
        "dora",
        "--lanes",
        "bm25",
        "frame",
        "--size",
        "100x30",
        "--keys",
        "<Esc>a<Wait>s<Enter>it quotes the keepers<Enter><Wait>",
    ]);
    assert!(frame.contains("1 of 1 labelled") && frame.contains("settles disagreements"), "{frame}");
    let history =
        Journal::show(&Project::journal(&folder, "dora"), "dora").unwrap().journal.history().clone();
    let settled = history.decisions();
    assert_eq!(settled[0].seen.as_ref().unwrap().settles.as_deref(), Some("it quotes the keepers"));
    assert!(!workspace.good(&["annotate", "status", path]).contains("labelled yes as often as no"));
    let agreed = workspace.good(&["annotate", "agree", path]);
    assert!(agreed.contains("after adjudication of 2: 1.0000"), "{agreed}");
    let page = workspace.good(&["annotate", "report", path, "--format", "html"]);
    assert!(page.contains("The quality of the labels") && page.contains("anna"), "{}", &page[..300]);
    // Report and agreement are made again from what stands beside them, until a label is another one.
    for (what, figure) in [("report", "anna labels"), ("agree", "pairs 1 agreed")] {
        let (out, record) = (workspace.path(what), workspace.path(&format!("{what}.json")));
        workspace.good(&["annotate", what, path, "--out", out.to_str().unwrap()]);
        assert!(fs::read_to_string(&out).unwrap().starts_with("annotator"));
        let again = ["reproduce", record.to_str().unwrap()];
        let same = workspace.good(&again);
        assert!(same.contains("every figure is the same, made of the same inputs"), "{same}");
        let journal = folder.join("anna.jsonl");
        let before = fs::read(&journal).unwrap();
        judge(&folder, "anna", &items[0], &statements[..1], false);
        let (code, differs, _) = workspace.run(&again);
        assert!(
            code == 1 && differs.contains("content is not the same") && differs.contains(figure),
            "{differs}"
        );
        fs::write(&journal, before).unwrap();
    }
    // Other guidelines: what was decided under the earlier ones is listed, and their text is still there.
    fs::write(folder.join("guidelines.md"), "Look twice.\n").unwrap();
    let status = workspace.good(&["annotate", "status", path]);
    assert!(status.contains("1 passage was labelled under other guidelines"), "{status}");
    assert_eq!(fs::read_dir(folder.join("guidelines")).unwrap().count(), 1);
}

#[test]
fn a_growth_that_was_cut_short_is_finished_by_the_same_command_and_nobody_settles_an_own_label() {
    let workspace = Workspace::new();
    let folder = workspace.path("project");
    let path = folder.to_str().unwrap();
    workspace.good(&["annotate", "new", path, "--lanes", "bm25", "--depth", "2", "--annotators", "anna"]);
    let pool = folder.join("pool.jsonl");
    let before = fs::read(&pool).unwrap();
    let there = workspace.path("there");
    fs::create_dir(&there).unwrap();
    fs::copy(folder.join("project.json"), there.join("project.json")).unwrap();
    fs::copy(&pool, there.join("pool.jsonl")).unwrap();
    let grow = ["annotate", "grow", path, "--depth", "3", "--annotators", "ben", "--overlap", "1"];
    let out = workspace.good(&grow);
    assert!(out.contains("24 passages and 0 questions added"), "{out}");
    let whole = fs::read(&pool).unwrap();
    let (project, items) = Project::open(&folder).unwrap();
    assert_eq!((project.overlap, items[48..].iter().all(|item| item.annotators.len() == 2)), (1.0, true));
    // Killed between the card and the pool.
    fs::write(&pool, &before).unwrap();
    assert!(workspace.good(&["annotate", "grow", path, "--depth", "3"]).contains("24 passages"));
    assert_eq!(fs::read(&pool).unwrap(), whole);
    assert!(
        workspace.good(&["annotate", "grow", path, "--depth", "3"]).contains("0 passages and 0 questions")
    );
    let (statements, items) = of_question(&folder);
    judge(&folder, "cleo", &items[0], &statements, true);
    let (code, _, errors) = workspace.run(&["annotate", "grow", path, "--adjudicators", "cleo"]);
    assert!(code == 2 && errors.contains("cleo has labelled passages of this project"), "{errors}");
    // A copy that has not grown takes the labels, and says what it lacks.
    let (code, _, errors) = workspace.run(&["annotate", "merge", there.to_str().unwrap(), path]);
    assert!(code == 0 && errors.contains("has 24 passages that"), "{errors}");
    assert!(there.join("cleo.jsonl").exists());
    let (code, _, errors) = workspace.run(&["annotate", "grow", path, "--overlap", "2"]);
    assert!(code == 2 && errors.contains("--overlap: expected a share from 0 to 1"), "{errors}");
}

#[test]
fn an_export_never_takes_the_place_of_a_journal_and_only_journals_are_written_to() {
    let workspace = Workspace::new();
    let folder = workspace.project();
    let (statements, items) = of_question(&folder);
    judge(&folder, "anna", &items[0], &statements, true);
    let (project, journal) = (folder.to_str().unwrap(), folder.join("anna.jsonl"));
    let lone = workspace.path("lone.jsonl");
    fs::copy(&journal, &lone).unwrap();
    let before = fs::read(&journal).unwrap();
    for (format, out) in [
        ("hf", journal.clone()),
        ("berds", lone.clone()),
        ("qrels", folder.join("labels")),
        ("hf", folder.join("new.jsonl")),
    ] {
        let plan = ["annotate", "export", project, "--format", format, "--out", out.to_str().unwrap()];
        let (code, _, errors) = workspace.run(&plan);
        assert!(code == 2 && errors.contains("write the export elsewhere"), "{format}: {errors}");
    }
    assert_eq!((fs::read(&journal).unwrap(), fs::read(&lone).unwrap()), (before.clone(), before));
    // A label belongs to the text of its question, so that two with one text would share their labels.
    let twice = workspace.path("twice.jsonl");
    let line =
        serde_json::json!({"id": "a", "question": "Ban it?", "perspectives": ["Yes.", "No."]}).to_string();
    fs::write(&twice, format!("{line}\n{}\n", line.replace("\"a\"", "\"b\""))).unwrap();
    let other = workspace.path("other");
    let (code, _, errors) =
        workspace.run(&["annotate", "new", other.to_str().unwrap(), "--questions", twice.to_str().unwrap()]);
    assert!(code == 2 && errors.contains("two questions have the same text"), "{errors}");
    assert!(!folder.join("labels.qrels").exists() && !folder.join("new.jsonl").exists());
    let pool = fs::read(folder.join("pool.jsonl")).unwrap();
    let into = folder.join("pool.jsonl");
    let merge = ["annotate", "merge", into.to_str().unwrap(), lone.to_str().unwrap()];
    let (code, _, errors) = workspace.run(&merge);
    assert!(code == 2 && errors.contains("none of its lines is a label"), "{errors}");
    assert_eq!(fs::read(folder.join("pool.jsonl")).unwrap(), pool);
    // A new file of that name would never be read as a journal.
    let fresh = workspace.path("pool.jsonl");
    let merge = ["annotate", "merge", fresh.to_str().unwrap(), lone.to_str().unwrap()];
    assert_eq!((workspace.run(&merge).0, fresh.exists()), (2, false));
}

#[test]
fn fsck_names_labels_of_statements_that_were_not_on_screen_and_takes_them_back() {
    let workspace = Workspace::new();
    let statements: Vec<String> = (0..42).map(|n| format!("Zoos should have {n:02} gates.")).collect();
    let question = serde_json::json!({"id": "g", "question": "How many gates?", "perspectives": statements});
    fs::write(workspace.path("gates.jsonl"), format!("{question}\n")).unwrap();
    let path = workspace.path("anna.jsonl");
    let mut journal = Journal::open(&path, "anna").unwrap().journal;
    let answers = statements.iter().enumerate().map(|(i, text)| (text.clone(), i == 3)).collect();
    let view = View { answers, ..View::default() };
    journal
        .append(Act {
            question: "How many gates?".into(),
            passage: "p".into(),
            text: "t".into(),
            view,
            took: Some(4_000),
            seen: None,
        })
        .unwrap();
    drop(journal);
    let (file, questions) = (path.to_str().unwrap(), workspace.path("gates.jsonl"));
    let (code, out, _) = workspace.run(&["annotate", "fsck", file]);
    assert!(code == 0 && out.contains("1 entry labels more than nine statements at once"), "{out}");
    let with = ["annotate", "fsck", file, "--questions", questions.to_str().unwrap()];
    let (code, out, _) = workspace.run(&with);
    assert_eq!(code, 1);
    assert!(
        out.contains("33 labels are of statements that were not on screen, on 1 passage; --unseen"),
        "{out}"
    );
    let out = workspace.good(&[&with[..], &["--unseen"]].concat());
    assert!(out.contains("taken back: 33 labels"), "{out}");
    assert!(!workspace.good(&with).contains("not on screen"));
    let history = Journal::show(&path, "anna").unwrap().journal.history().clone();
    assert_eq!((history.decisions().len(), history.len()), (9, 2), "the old entry stays in the journal");
}

#[test]
fn fsck_reports_damage_with_its_line_and_keeps_the_old_file() {
    let workspace = Workspace::new();
    let folder = workspace.project();
    let (statements, items) = of_question(&folder);
    for item in &items {
        judge(&folder, "anna", item, &statements, true);
    }
    let path = folder.join("anna.jsonl");
    let journal = path.to_str().unwrap();
    assert!(workspace.good(&["annotate", "fsck", journal]).contains("3 entries, 3 current, 0 conflicts"));
    let mut bytes = fs::read(&path).unwrap();
    let second = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 30;
    bytes[second] ^= 2;
    bytes.extend_from_slice(&[0; 100]);
    fs::write(&path, &bytes).unwrap();
    let (code, out, _) = workspace.run(&["annotate", "fsck", folder.to_str().unwrap()]);
    assert_eq!(code, 1);
    assert!(
        out.contains("anna.jsonl:2: expected the id")
            && out.contains("100 bytes after the last complete line"),
        "{out}"
    );
    let (_, _, notes) = workspace.run(&["search", QUESTION, "--lanes", "bm25", "--journal", journal]);
    assert!(notes.contains("1 line damaged, the last line unfinished; the rest counts"), "{notes}");
    let printed = workspace.good(&["annotate", "fsck", journal, "--repair"]);
    assert!(printed.contains("repaired; the old file is"), "{printed}");
    assert!(workspace.good(&["annotate", "fsck", journal]).contains("2 entries, 2 current"));
    assert_eq!(fs::read(folder.join("anna.jsonl.damaged-1")).unwrap(), bytes);
}

#[test]
fn labels_follow_renamed_passages_and_reworded_statements() {
    let workspace = Workspace::new();
    let (old, new) = (workspace.path("old.jsonl"), workspace.path("new.jsonl"));
    let line = |id: &str, text: &str| format!("{{\"_id\":\"{id}\",\"text\":\"{text}\"}}\n");
    fs::write(&old, line("a", "Zoos are cruel.") + &line("b", "Zoos save species.")).unwrap();
    fs::write(&new, line("z", "Zoos are cruel.") + &line("c", "Farms are cruel.")).unwrap();
    let questions = workspace.path("questions.jsonl");
    fs::write(&questions, "{\"id\":\"q\",\"question\":\"Should zoos be banned?\"}\n").unwrap();
    let folder = workspace.path("project");
    let on = |corpus: &Path, arguments: &[&str]| {
        let more = ["--corpus", corpus.to_str().unwrap(), "--questions", questions.to_str().unwrap()];
        workspace.run(&[arguments, &more].concat())
    };
    let place = folder.to_str().unwrap();
    let (code, _, errors) = on(&old, &["annotate", "new", place, "--lanes", "bm25"]);
    assert_eq!(code, 0, "{errors}");
    let (project, items) = Project::open(&folder).unwrap();
    for item in &items {
        judge(&folder, "anna", item, &project.questions[0].perspectives, true);
    }
    let search =
        ["search", "Should zoos be banned?", "--lanes", "bm25", "--label-source", "auto", "--journal", place];
    let (_, _, notes) = on(&new, &search);
    assert!(notes.contains("4 of passages that this corpus does not hold"), "{notes}");
    let (code, out, _) = on(&new, &["annotate", "remap", place]);
    assert_eq!(code, 1);
    assert!(out.contains("1 passage remapped") && out.contains("[b]: no passage has its text"), "{out}");
    let (_, _, notes) = on(&new, &search);
    assert!(notes.contains("2 of passages"), "{notes}");
    let status = workspace.good(&["annotate", "status", place]);
    assert!(status.contains("[z]") && status.contains("no such passage in the pool"), "{status}");
    let reworded = ["annotate", "remap", place, "--from", "Zoos should be banned.", "--to", "Ban zoos."];
    let (code, out, _) = on(&new, &reworded);
    assert!(code == 0 && out.contains("2 passages remapped"), "{out}");
    let (_, _, notes) = on(&new, &search);
    assert!(notes.contains("1 of statements that no question of the set has word for word"), "{notes}");
    let labels = workspace.path("labels.tsv");
    fs::write(&labels, "id\tperspective\tlabel\nb\tZoos should be banned.\t1\nz\tOther.\t1\n").unwrap();
    let (_, _, notes) =
        on(&new, &["search", "Zoos?", "--lanes", "bm25", "--labels", labels.to_str().unwrap()]);
    assert!(
        notes.contains("--labels: 1 of 2 labels are of passages that this corpus does not hold"),
        "{notes}"
    );
    assert!(notes.contains("--labels: 1 of 2 labels are of statements"), "{notes}");
}

#[test]
fn a_project_is_never_overwritten_and_bad_names_and_shares_are_reported() {
    let workspace = Workspace::new();
    let folder = workspace.project();
    let place = folder.to_str().unwrap();
    let elsewhere = workspace.path("other");
    let other = elsewhere.to_str().unwrap();
    for (arguments, expected) in [
        (vec!["annotate", "new", place], "already holds a project"),
        (vec!["annotate", "new", other, "--annotators", "a/b"], "annotator's name"),
        (vec!["annotate", "new", other, "--annotators", "a,a"], "twice"),
        (vec!["annotate", "new", other, "--annotators", "anna,Anna"], "differ only in case"),
        (vec!["annotate", "new", other, "--annotators", "Pool"], "annotator's name"),
        (vec!["annotate", "grow", place, "--annotators", "../cleo"], "annotator's name"),
        (vec!["annotate", "grow", place, "--annotators", "ANNA"], "differ only in case"),
        (vec!["annotate", "grow", place, "--adjudicators", "dora,dora"], "twice"),
        (vec!["annotate", "grow", place, "--adjudicators", "do\\ra"], "annotator's name"),
        (vec!["annotate", "new", other, "--overlap", "2"], "from 0 to 1"),
        (vec!["annotate", "status", other], "no such file"),
        (vec!["annotate", "fsck", other], "no such file"),
        (vec!["annotate", "merge", place, other], "no such file"),
    ] {
        let (code, _, errors) = workspace.run(&arguments);
        assert!(code == 2 && errors.contains(expected), "{arguments:?}: {errors}");
    }
    assert!(!elsewhere.exists());
}

#[test]
fn two_people_of_one_name_lose_no_label_and_what_they_disagree_on_counts_for_nobody() {
    let workspace = Workspace::new();
    let here = workspace.project();
    let (statements, items) = of_question(&here);
    let there = workspace.path("there");
    fs::create_dir(&there).unwrap();
    for file in ["project.json", "pool.jsonl", "guidelines.md"] {
        fs::copy(here.join(file), there.join(file)).unwrap();
    }
    // Each has a machine, and neither knows of the other. They take different times, since equal acts of one millisecond are one entry.
    for (at, (first, second)) in [(true, true), (true, false), (false, false)].into_iter().enumerate() {
        judge_in(&here, "anna", &items[at], &statements, first, Some(1000));
        judge_in(&there, "anna", &items[at], &statements, second, Some(2000));
    }
    let (one, other) = (here.to_str().unwrap(), there.to_str().unwrap());
    let printed = workspace.good(&["annotate", "merge", one, other]);
    assert!(printed.contains("anna.jsonl: 3 new entries, 6 in all, 1 conflict"), "{printed}");
    let status = workspace.good(&["annotate", "status", one]);
    let said = [format!("yes {}", statements[0]), format!("no {}", statements[0])];
    assert!(
        status.contains("gave different labels") && said.iter().all(|said| status.contains(said)),
        "{status}"
    );
    // As far as they agree, there is one label; the other passage is unjudged.
    let source = ["--label-source", "human", "--journal", one, "--format", "json", "-k", "3"];
    let plan = ["search", QUESTION, "--lanes", "bm25"];
    let (_, out, notes) = workspace.run(&[&plan[..], &source].concat());
    assert!(notes.contains("1 passages on which two machines of one annotator disagree"), "{notes}");
    let found: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(found["lanes"][0]["judged"], 2, "{out}");
    let agreed: Value =
        serde_json::from_str(&workspace.good(&["annotate", "agree", one, "--format", "json"])).unwrap();
    assert_eq!(agreed["annotators"][0]["labels"], 4, "{agreed}");
    // Journals of both in one folder under names of their own are two people.
    let table = workspace.path("two.tsv");
    let row = |by: &str| format!("{}\t{}\t1\t{by}\n", items[0].passage.id, statements[0]);
    let head = "id\tperspective\tlabel\tannotator\n";
    fs::write(&table, head.to_owned() + &row("anna/1") + &row("anna-1")).unwrap();
    let into = workspace.path("into");
    let import = ["annotate", "import", table.to_str().unwrap(), "--format", "tsv", "--into"];
    let (code, _, errors) = workspace.run(&[&import[..], &[into.to_str().unwrap()]].concat());
    assert!(code == 2 && errors.contains("would both be anna-1"), "{errors}");
    fs::write(&table, head.to_owned() + &row("../../anna")).unwrap();
    workspace.good(&[&import[..], &[into.to_str().unwrap()]].concat());
    assert!(into.join("anna.jsonl").exists(), "a name with separators stays in its folder");
}

#[test]
fn labels_of_texts_that_changed_and_of_a_corpus_that_shrank_do_not_count_and_are_kept() {
    let workspace = Workspace::new();
    let (old, new) = (workspace.path("old.jsonl"), workspace.path("new.jsonl"));
    let line = |id: &str, text: &str| format!("{{\"_id\":\"{id}\",\"text\":\"{text}\"}}\n");
    let same = line("a", "Zoos are cruel.");
    fs::write(&old, same.clone() + &line("b", "Zoos save species.") + &line("c", "Zoos teach children."))
        .unwrap();
    fs::write(&new, same + &line("b", "Zoos save no species.")).unwrap();
    let questions = workspace.path("questions.jsonl");
    fs::write(&questions, "{\"id\":\"q\",\"question\":\"Should zoos be banned?\"}\n").unwrap();
    let folder = workspace.path("project");
    let place = folder.to_str().unwrap();
    let on = |corpus: &Path, arguments: &[&str]| {
        let more = ["--corpus", corpus.to_str().unwrap(), "--questions", questions.to_str().unwrap()];
        workspace.run(&[arguments, &more].concat())
    };
    assert_eq!(on(&old, &["annotate", "new", place, "--lanes", "bm25"]).0, 0);
    let (project, items) = Project::open(&folder).unwrap();
    for item in &items {
        judge(&folder, "anna", item, &project.questions[0].perspectives, true);
    }
    let source = ["--label-source", "human", "--journal", place];
    let search =
        [&["search", "Should zoos be banned?", "--lanes", "bm25", "--format", "json"][..], &source].concat();
    let (_, out, notes) = on(&new, &search);
    assert!(notes.contains("2 of passages that this corpus does not hold"), "{notes}");
    assert!(notes.contains("2 of passages whose text has changed since"), "{notes}");
    let found: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(found["lanes"][0]["judged"], 1, "{out}");
    let (code, _, errors) = on(&new, &["annotate", "grow", place, "--depth", "20"]);
    assert!(code == 2 && errors.contains("a pool is of one corpus"), "{errors}");
    // The project holds its passages, so that all of it can be seen and exported.
    let (code, frame, errors) = on(
        &new,
        &[
            "--journal",
            place,
            "--annotator",
            "anna",
            "--lanes",
            "bm25",
            "frame",
            "--size",
            "100x30",
            "--keys",
            "<Esc>a<Wait>",
        ],
    );
    assert!(code == 0 && frame.contains("3 of 3 labelled"), "{frame}{errors}");
    let table = workspace.path("all.tsv");
    let export = ["annotate", "export", place, "--format", "tsv", "--out", table.to_str().unwrap()];
    let (code, _, notes) = on(&new, &export);
    assert_eq!((code, fs::read_to_string(&table).unwrap().lines().count()), (0, 7), "{notes}");
}

#[test]
fn near_duplicates_are_left_out_of_a_drawn_project_and_named() {
    let workspace = Workspace::new();
    let long = "Zoos keep rare animals safe and breed them so that some can return to the wild one day";
    let corpus = crate::program::jsonl(&[
        ("a", "", long),
        ("b", "", &format!("{long}!")),
        ("c", "", "Zoos should be banned because animals suffer in cages."),
    ]);
    fs::write(workspace.path("corpus.jsonl"), corpus).unwrap();
    fs::write(workspace.path("set.jsonl"), "{\"question\": \"Should zoos be banned?\"}\n").unwrap();
    let (corpus, set) = (workspace.path("corpus.jsonl"), workspace.path("set.jsonl"));
    let files = ["--corpus", corpus.to_str().unwrap(), "--questions", set.to_str().unwrap()];
    let folder = workspace.path("drawn");
    let place = folder.to_str().unwrap();
    let new = ["annotate", "new", place, "--sample", "1", "--seed", "1", "--depth", "5", "--lanes", "bm25"];
    let printed = workspace.good(&[&new[..], &files, &["--no-near-duplicates", ".9"]].concat());
    assert!(printed.contains("2 passages of 1 question"), "{printed}");
    assert!(printed.contains("left out as near duplicates: 1 passage"), "{printed}");
    assert!(
        printed.contains("has 1.00 of its words in common with [")
            && printed.contains("Should zoos be banned?"),
        "{printed}"
    );
    assert!(printed.contains("to correct a model, leave --no-near-duplicates out"), "{printed}");
    let card = fs::read_to_string(folder.join("project.json")).unwrap();
    assert!(card.contains("\"near_duplicates\": 0.9"), "{card}");
    // A project that grows leaves the same out.
    let grown = workspace.good(&[&["annotate", "grow", place, "--depth", "6"][..], &files[..2]].concat());
    assert!(grown.contains("0 passages") && grown.contains("near duplicates: 1 passage"), "{grown}");
    let (code, _, errors) = workspace.run(&["annotate", "new", "x", "--no-near-duplicates", "1.5"]);
    assert!(code == 2 && errors.contains("above 0, at most 1"), "{errors}");
}

#[test]
fn the_status_of_a_project_that_nobody_has_touched_says_how_to_begin() {
    let workspace = Workspace::new();
    let folder = workspace.path("fresh");
    let place = folder.to_str().unwrap();
    workspace.good(&["annotate", "new", place, "--lanes", "bm25", "--depth", "1"]);
    let status = workspace.good(&["annotate", "status", place]);
    assert!(status.contains(&format!("parallax --journal {place} --annotator NAME")), "{status}");
    assert!(!status.contains("assigned"), "{status}");
}

mod agreement {
    //! Labels by hand through the program: two annotators of the sample, their agreement, and label files.

    use std::collections::BTreeMap;

    use parallax::measure::seeded::SplitMix64;
    use serde_json::Value;

    use crate::program::Workspace;

    /// Gold labels of the sample's first questions, under an annotator's name, a seeded share of them inverted.
    fn table(by: &str, seed: u64, one_in: usize) -> Vec<(String, bool, String)> {
        let mut rng = SplitMix64::new(seed);
        let gold = include_str!("../../sample_data/labels.tsv").lines().skip(1).take(400);
        gold.map(|line| {
            let fields: Vec<&str> = line.split('\t').collect();
            let label = (fields[3] == "1") != (rng.below(one_in) == 0);
            let row = format!("{}\t{}\t{}\t{}\t{by}", fields[0], fields[1], fields[2], u8::from(label));
            (format!("{}\t{}", fields[1], fields[2]), label, row)
        })
        .collect()
    }

    /// A project's folder with the journals of two annotators, imported from one table; and the counts yes/yes, yes/no, no/yes, no/no.
    fn two_annotators(workspace: &Workspace) -> [usize; 4] {
        let (anna, ben) = (table("anna", 1, 10), table("ben", 2, 5));
        let mut text = "question\tid\tperspective\tlabel\tannotator\n".to_owned();
        let mut counts = [0; 4];
        for ((left_key, left, left_row), (right_key, right, right_row)) in anna.iter().zip(&ben) {
            assert_eq!(left_key, right_key);
            counts[2 * usize::from(!left) + usize::from(!right)] += 1;
            text += &format!("{left_row}\n{right_row}\n");
        }
        workspace.write("labels.tsv", text);
        let out = workspace
            .run(&["annotate", "import", "labels.tsv", "--format", "tsv", "--into", "project"])
            .good();
        assert!(out.contains("anna.jsonl: 400 labels of anna, 200 passages changed"), "{out}");
        counts
    }

    /// κ by its definition.
    fn kappa([yes_yes, yes_no, no_yes, no_no]: [usize; 4]) -> f64 {
        let n = (yes_yes + yes_no + no_yes + no_no) as f64;
        let observed = (yes_yes + no_no) as f64 / n;
        let yes = (yes_yes + yes_no) as f64 / n * ((yes_yes + no_yes) as f64 / n);
        let no = (no_yes + no_no) as f64 / n * ((yes_no + no_no) as f64 / n);
        (observed - yes - no) / (1.0 - yes - no)
    }

    #[test]
    fn agreement_figures_match_those_computed_by_hand() {
        let workspace = Workspace::new();
        let counts = two_annotators(&workspace);
        let expected = kappa(counts);
        let printed = workspace.json(&["annotate", "agree", "project"]);
        let pair = &printed["pairs"][0];
        assert_eq!(pair["annotators"], serde_json::json!(["anna", "ben"]));
        assert!((pair["kappa"].as_f64().unwrap() - expected).abs() < 1e-9, "{pair} {expected}");
        let names = ["yes_yes", "yes_no", "no_yes", "no_no"];
        assert_eq!(names.map(|name| pair["confusion"][name].as_u64().unwrap() as usize), counts);
        for (name, count) in names.iter().zip(counts) {
            let rows = pair["by_perspective"].as_array().unwrap();
            let sum: u64 = rows.iter().map(|row| row["confusion"][name].as_u64().unwrap()).sum();
            assert_eq!(sum as usize, count);
        }
        // Two annotators, nothing missing: α from the same counts.
        let [n, yes] = [2 * 400, 2 * counts[0] + counts[1] + counts[2]].map(|count| count as f64);
        let split = (counts[1] + counts[2]) as f64;
        let alpha = 1.0 - (n - 1.0) * 2.0 * split / (2.0 * yes * (n - yes));
        assert!(
            (printed["alpha"]["value"].as_f64().unwrap() - alpha).abs() < 1e-9,
            "{} {alpha}",
            printed["alpha"]
        );
        assert_eq!(printed["queue"].as_array().unwrap().len(), counts[1] + counts[2]);
        assert_eq!((&printed["detector"], &printed["refit"]), (&Value::Null, &Value::Null));

        let text = workspace.run(&["annotate", "agree", "project"]).good();
        let line = text.lines().find(|line| line.starts_with("anna       ben")).unwrap();
        assert!(line.ends_with(&format!("{expected:.4}")), "{line}");
        assert!(text.contains("to talk over") && text.contains("anna yes · ben no"), "{text}");
        let markdown = workspace.run(&["annotate", "agree", "project", "--format", "md"]).good();
        assert!(markdown.contains("| anna | ben | 400 |"), "{markdown}");
        let tsv = workspace.run(&["annotate", "agree", "project", "--format", "tsv"]).good();
        assert!(tsv.contains(&format!("anna\tben\t\t\t\tkappa\t{expected:.6}\n")), "{tsv}");
    }

    #[test]
    fn one_annotator_is_measured_against_another_as_a_detector_is() {
        let workspace = Workspace::new();
        let counts @ [yes_yes, yes_no, no_yes, no_no] = two_annotators(&workspace);
        let table = workspace.json(&["annotate", "agree", "project", "--against", "anna"]);
        let lanes: Vec<&str> =
            table["rows"].as_array().unwrap().iter().map(|row| row["lane"].as_str().unwrap()).collect();
        assert_eq!(lanes, ["ben", "random", "always no"]);
        let ben = &table["rows"][0]["measures"];
        let mean = |name: &str| ben[name]["mean"].as_f64().unwrap();
        let near = |value: f64, expected: f64| assert!((value - expected).abs() < 1e-9, "{value} {expected}");
        near(mean("yes"), (yes_yes + no_yes) as f64 / 400.0);
        near(mean("accuracy"), (yes_yes + no_no) as f64 / 400.0);
        near(mean("F1"), 2.0 * yes_yes as f64 / (2 * yes_yes + yes_no + no_yes) as f64);
        near(mean("κ"), kappa(counts));
        let (low, high) = (ben["κ"]["low"].as_f64().unwrap(), ben["κ"]["high"].as_f64().unwrap());
        assert!(low < mean("κ") && mean("κ") < high, "{ben}");
        let never = &table["rows"][2]["measures"];
        near(never["accuracy"]["mean"].as_f64().unwrap(), (no_yes + no_no) as f64 / 400.0);
        assert_eq!((never["F1"]["mean"].as_f64(), never["κ"]["mean"].as_f64()), (Some(0.0), Some(0.0)));
        workspace
            .run(&["annotate", "agree", "project", "--against", "carl"])
            .bad(&["--against carl: no label is by this annotator"]);
    }

    /// All labels in a folder of journals, in the form of the table.
    fn dumped(workspace: &Workspace, journals: &str, name: &str) -> String {
        workspace.run(&["annotate", "export", journals, "--format", "tsv", "--out", name]).good();
        std::fs::read_to_string(workspace.files.path().join(name)).unwrap()
    }

    #[test]
    fn exported_labels_are_imported_unchanged() {
        let workspace = Workspace::new();
        two_annotators(&workspace);
        let before = dumped(&workspace, "project", "before.tsv");
        assert_eq!(before.lines().count(), 801);
        for format in ["tsv", "label-studio", "argilla"] {
            let (file, back) = (format!("{format}.out"), format!("back-{format}"));
            workspace.run(&["annotate", "export", "project", "--format", format, "--out", &file]).good();
            workspace.run(&["annotate", "import", &file, "--format", format, "--into", &back]).good();
            assert_eq!(dumped(&workspace, &back, "after.tsv"), before, "{format}");
        }
        workspace.run(&["annotate", "export", "project", "--format", "berds", "--out", "berds.jsonl"]).good();
        workspace
            .run(&["annotate", "import", "berds.jsonl", "--format", "berds", "--into", "back-berds"])
            .good();
        let labels = |text: &str| -> BTreeMap<String, String> {
            let row = |line: &str| {
                let fields: Vec<&str> = line.split('\t').collect();
                (format!("{} {} {}", fields[1], fields[3], fields[5]), fields[4].to_owned())
            };
            text.lines().map(row).collect()
        };
        assert_eq!(labels(&dumped(&workspace, "back-berds", "after.tsv")), labels(&before));
        for beside in ["label-studio.out.xml", "argilla.out.settings.json"] {
            assert!(workspace.files.path().join(beside).exists(), "{beside}");
        }
        // The table is valid for --labels.
        workspace
            .run(&["annotate", "export", "project/anna.jsonl", "--format", "tsv", "--out", "anna.tsv"])
            .good();
        let found = workspace.json(&[
            "search",
            "Should zoos be banned?",
            "--labels",
            "anna.tsv",
            "--lanes",
            "bm25",
            "--label-source",
            "gold",
        ]);
        assert!(found["lanes"][0]["hits"].is_array());
    }

    #[test]
    fn exported_qrels_report_what_they_leave_out_and_are_imported_again() {
        let workspace = Workspace::new();
        two_annotators(&workspace);
        let one = workspace.run(&[
            "annotate",
            "export",
            "project/anna.jsonl",
            "--format",
            "qrels",
            "--out",
            "anna.qrels",
        ]);
        assert!(one.err.contains("anna.div.qrels: 400 of 400 labels"), "{}", one.err);
        assert!(
            one.err.contains("the format has no place for") && one.err.contains(".rest.jsonl"),
            "{}",
            one.err
        );
        one.good();
        let rest = ["annotate", "import", "anna.rest.jsonl", "--format", "hf", "--into", "whole.jsonl"];
        workspace.run(&rest).good();
        assert_eq!(workspace.json(&["annotate", "agree", "whole.jsonl"])["annotators"][0]["labels"], 400);
        let again = workspace.run(&[
            "annotate",
            "import",
            "anna.div.qrels",
            "--format",
            "qrels",
            "--into",
            "back.jsonl",
            "--by",
            "anna",
        ]);
        again.good();
        let out = workspace.json(&["annotate", "agree", "back.jsonl"]);
        assert_eq!(out["annotators"][0]["labels"], 400);
        let both = workspace.json(&["annotate", "agree", "project/anna.jsonl"]);
        assert_eq!(out["annotators"][0]["yes"], both["annotators"][0]["yes"]);
    }

    #[test]
    fn an_export_counts_the_labels_in_its_files_and_an_empty_one_is_an_error() {
        let workspace = Workspace::new();
        let rows = "question\tid\tperspective\tlabel\tannotator\n";
        let row =
            |id: &str, label: u8, by: &str| format!("zoos\t{id}\tZoos should be banned.\t{label}\t{by}\n");
        let tied = rows.to_owned() + &row("zoos-01", 1, "anna") + &row("zoos-01", 0, "ben");
        let import = |text: &str, name: &str| {
            workspace.write("some.tsv", text);
            workspace.run(&["annotate", "import", "some.tsv", "--format", "tsv", "--into", name]).good();
        };
        import(&tied, "tied");
        let export =
            |name: &str| workspace.run(&["annotate", "export", name, "--format", "qrels", "--out", "out"]);
        let nothing = export("tied");
        nothing.bad(&[
            "no label was written",
            "as many annotators say yes as no",
            "out.div.qrels: 0 of 2 labels",
        ]);
        import(&(tied + &row("zoos-02", 1, "anna") + &row("zoos-02", 1, "ben")), "more");
        let one = export("more");
        assert!(one.err.contains("out.div.qrels: 1 of 4 labels"), "{}", one.err);
        one.good();
    }

    #[test]
    fn contradictory_rows_are_refused_or_settled_as_asked() {
        let workspace = Workspace::new();
        let row = |id: &str, label: u8| format!("{id}\tZoos should be banned.\t{label}\n");
        let head = "id\tperspective\tlabel\n".to_owned();
        let twice: String =
            (1..6).map(|n| row(&format!("zoos-0{n}"), 1) + &row(&format!("zoos-0{n}"), 0)).collect();
        workspace.write("some.tsv", head + &twice + &row("zoos-07", 1) + &row("zoos-07", 1));
        let import = |into: &str, more: &[&str]| {
            let plan = ["annotate", "import", "some.tsv", "--format", "tsv", "--by", "anna", "--into", into];
            workspace.run(&[&plan[..], more].concat())
        };
        let refused = import("a.jsonl", &[]);
        refused.bad(&[
            "5 pairs have labels of one annotator that contradict each other",
            "the first three",
            "yes, no",
        ]);
        assert_eq!(refused.err.matches("Zoos should be banned.: yes, no").count(), 3, "{}", refused.err);
        let yes = |into: &str| {
            let out = workspace.json(&["annotate", "agree", into]);
            (out["annotators"][0]["labels"].clone(), out["annotators"][0]["yes"].clone())
        };
        for (how, labels, expected) in [("first", 6, 6), ("last", 6, 1), ("tie", 1, 1)] {
            let into = format!("{how}.jsonl");
            let done = import(&into, &["--on-conflict", how]);
            assert!(done.err.contains("5 pairs have"), "{}", done.err);
            done.good();
            assert_eq!(yes(&into), (labels.into(), expected.into()), "{how}");
        }
    }

    #[test]
    fn rows_that_match_nothing_are_reported_and_the_others_are_imported() {
        let workspace = Workspace::new();
        let rows = "id\tperspective\tlabel\nzoos-01\tZoos should be banned.\t1\nzoos-99\tZoos should be banned.\t0\n";
        workspace.write("some.tsv", rows);
        let printed = workspace
            .run(&["annotate", "import", "some.tsv", "--format", "tsv", "--into", "j.jsonl", "--by", "anna"]);
        assert_eq!(printed.code, Some(1), "{}", printed.err);
        assert!(
            printed.err.contains("some.tsv: line 3: no passage of the corpus is `zoos-99`"),
            "{}",
            printed.err
        );
        assert!(printed.out.contains("1 label of anna, 1 passage changed"), "{}", printed.out);
        let again = workspace
            .run(&["annotate", "import", "some.tsv", "--format", "tsv", "--into", "j.jsonl", "--by", "anna"]);
        assert!(again.out.contains("0 passages changed"), "{}", again.out);
        let none = workspace.run(&["annotate", "import", "some.tsv", "--format", "tsv", "--into", "k.jsonl"]);
        none.bad(&[
            "line 2: the file does not say who labelled this; name the annotator with --by",
            "none of its labels",
        ]);
        workspace.run(&["annotate", "agree", "nothing"]).bad(&["nothing: no such file or folder"]);
        workspace
            .run(&["annotate", "export", "j.jsonl", "--format", "qrels", "--out", "x", "--model"])
            .bad(&["--model is for label-studio and argilla"]);
    }

    #[test]
    fn the_detector_can_be_an_annotator_and_its_threshold_is_fitted() {
        let workspace = Workspace::new();
        let gold = include_str!("../../sample_data/labels.tsv").lines().skip(1);
        let few = gold.enumerate().filter(|(i, _)| i % 50 < 6).take(18).map(|(_, line)| line);
        let rows = few.map(|line| line.split('\t').take(4).collect::<Vec<_>>().join("\t") + "\tanna\n");
        workspace.write(
            "few.tsv",
            "question\tid\tperspective\tlabel\tannotator\n".to_owned() + &rows.collect::<String>(),
        );
        workspace
            .run(&["annotate", "import", "few.tsv", "--format", "tsv", "--into", "j.jsonl", "--by", "anna"])
            .good();
        let printed = workspace.json(&["annotate", "agree", "j.jsonl", "--model", "--refit=fitted.json"]);
        let detector = printed["detector"]["key"].as_str().unwrap();
        assert_eq!(printed["pairs"][0]["annotators"], serde_json::json!(["anna", detector]));
        // An unclear item is not a label of the detector.
        let confusion = &printed["unclear"]["confusion"];
        let unclear = confusion["yes_yes"].as_u64().unwrap() + confusion["yes_no"].as_u64().unwrap();
        assert_eq!(printed["unclear"]["n"], 18);
        let both = Value::from(18 - unclear);
        assert_eq!((&printed["pairs"][0]["n"], &printed["alpha_with_model"]["n"]), (&both, &both));
        let file = std::fs::read_to_string(workspace.files.path().join("fitted.json")).unwrap();
        let file: Value = serde_json::from_str(&file).unwrap();
        assert_eq!((&file["fitted_on"], &file["labels"]), (&"human labels".into(), &18.into()));
        assert_eq!(
            (&file["detector"], &file["threshold"]),
            (&detector.into(), &printed["refit"]["threshold"])
        );
        assert!(file["date"].as_str().unwrap().ends_with('Z'));
        assert!(file["f1"].as_f64().unwrap() >= file["f1_before"].as_f64().unwrap());
        let text = workspace.run(&["annotate", "agree", "j.jsonl", "--refit=fitted.json"]).good();
        assert!(text.contains("threshold fitted on 18 labels by hand"), "{text}");
        // Unless requested, the detector is not an annotator.
        assert!(!text.contains(detector), "{text}");
        // In use, it is printed in words and figures; a threshold of another detector is refused.
        let found = workspace.json(&[
            "search",
            "Should zoos be banned?",
            "--lanes",
            "bm25",
            "--detector-threshold",
            "fitted.json",
        ]);
        let models = &found["provenance"]["models"];
        assert_eq!((&models["threshold"], &models["threshold_fitted_on"]), (&file["threshold"], &18.into()));
        let said = workspace.run(&[
            "search",
            "Should zoos be banned?",
            "--lanes",
            "bm25",
            "--detector-threshold",
            "fitted.json",
        ]);
        assert!(said.err.contains("fitted on 18 labels by hand"), "{}", said.err);
        workspace.write("other.json", r#"{"threshold": 0.5, "labels": 3, "detector": "another"}"#);
        let refused =
            ["search", "Should zoos be banned?", "--lanes", "bm25", "--detector-threshold", "other.json"];
        workspace
            .run(&refused)
            .bad(&["the threshold was fitted for the detector another", "annotate agree --refit"]);
    }
}

mod correcting {
    //! Labels on drawn questions correct the model's verdicts: the draw, its order, refused labels, and the figures.

    use std::collections::HashSet;

    use super::*;

    const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/sample_data");

    impl Workspace {
        #[track_caller]
        fn refused(&self, arguments: &[&str], words: &[&str]) {
            let (code, out, errors) = self.run(arguments);
            assert!(code == 2 && out.is_empty(), "{code} {out}{errors}");
            for word in words {
                assert!(errors.contains(word), "no `{word}` in {errors}");
            }
        }

        /// A project with `count` drawn questions and these lanes.
        fn drawn(&self, name: &str, count: usize, lanes: &str) -> PathBuf {
            let (folder, count) = (self.path(name), count.to_string());
            let place = folder.to_str().unwrap();
            let out =
                self.good(&["annotate", "new", place, "--sample", &count, "--seed", "7", "--lanes", lanes]);
            assert!(out.contains("drawn at random from 24 questions with seed 7"), "{out}");
            folder
        }
    }

    /// The pairs of statement and passage with the gold label yes.
    fn gold() -> HashSet<(String, String)> {
        let text = fs::read_to_string(format!("{SAMPLE}/labels.tsv")).unwrap();
        let rows = text.lines().skip(1).map(|line| line.split('\t').collect::<Vec<_>>());
        rows.filter(|row| row[3] == "1").map(|row| (row[2].to_owned(), row[1].to_owned())).collect()
    }

    /// Labels passages from gold, as anna.
    fn label(folder: &Path, wanted: impl Fn(usize, usize, &Item) -> bool) {
        let (project, items) = Project::open(folder).unwrap();
        let gold = gold();
        let mut journal = Journal::open(&Project::journal(folder, "anna"), "anna").unwrap().journal;
        for (place, question) in project.questions.iter().enumerate() {
            let own = items.iter().filter(|item| item.question == question.text).enumerate();
            for (_, item) in own.filter(|(at, item)| wanted(place, *at, item)) {
                let says = |statement: &String| gold.contains(&(statement.clone(), item.passage.id.clone()));
                let answers: BTreeMap<String, bool> = question
                    .perspectives
                    .iter()
                    .map(|statement| (statement.clone(), says(statement)))
                    .collect();
                let act = Act {
                    question: item.question.clone(),
                    passage: item.passage.id.clone(),
                    text: text_hash(&item.passage),
                    view: View { answers, ..View::default() },
                    took: None,
                    seen: None,
                };
                journal.append(act).unwrap();
            }
        }
    }

    fn corrected<'a>(folder: &'a Path, more: &[&'a str]) -> Vec<&'a str> {
        let all = ["eval", "berds", "--format", "json", "--correct", folder.to_str().unwrap()];
        [&all[..], &["--detector", crate::TINY_DETECTOR], more].concat()
    }

    /// The printed form of the BM25 lane.
    const BM25: &str = "bm25@k1=0.9,b=0.4";

    /// The rows of every figure, by the names of figure and row.
    fn figures(json: &str) -> BTreeMap<(String, String), Value> {
        let table: Value = serde_json::from_str(json).unwrap();
        let further = table["further"].as_array().cloned().unwrap_or_default();
        let mut all = BTreeMap::new();
        for table in std::iter::once(table).chain(further) {
            for row in table["rows"].as_array().unwrap() {
                let measures = row["measures"].as_object().unwrap();
                let beside = ["labels alone", "model alone", "λ", "n", "N", "width"];
                let name = measures.keys().find(|name| !beside.contains(&name.as_str())).unwrap();
                let lane = row["lane"].as_str().unwrap();
                all.insert((name.clone(), lane.to_owned()), row["measures"].clone());
            }
        }
        all
    }

    #[test]
    fn a_draw_is_saved_in_the_project_and_pool_and_status_follow_its_order() {
        let workspace = Workspace::new();
        let folder = workspace.drawn("project", 6, "bm25");
        let (project, items) = Project::open(&folder).unwrap();
        let sample = project.sample.clone().unwrap();
        assert_eq!((sample.seed, sample.of, sample.draw.len(), project.depth), (7, 24, 6, 5));
        let ids: Vec<&str> = project.questions.iter().map(|question| question.id.as_str()).collect();
        assert_eq!(ids, sample.draw);
        let mut order: Vec<&str> = items.iter().map(|item| item.question.as_str()).collect();
        order.dedup();
        let texts: Vec<&str> = project.questions.iter().map(|question| question.text.as_str()).collect();
        assert_eq!(order, texts, "the pool is in the order of the draw");
        let more = Project::open(&workspace.drawn("more", 9, "bm25")).unwrap().0;
        assert_eq!(
            more.sample.unwrap().draw[..6],
            sample.draw,
            "a smaller draw is the beginning of a larger one"
        );
        let card = fs::read_to_string(folder.join("project.json")).unwrap();
        assert!(card.contains("\"draw\": ["), "{card}");
        label(&folder, |place, at, _| place < 2 || (place == 2 && at < 3));
        let status = workspace.good(&["annotate", "status", folder.to_str().unwrap()]);
        assert!(
            status.contains("draw: 2 of 6 questions labelled from the beginning, drawn from 24"),
            "{status}"
        );
        let next = status.lines().find(|line| line.trim_start().starts_with("3 ")).unwrap();
        assert!(next.contains("3 of 5") && next.contains(texts[2]), "{status}");
        let place = workspace.path("none");
        workspace.refused(
            &["annotate", "new", place.to_str().unwrap(), "--sample", "25", "--lanes", "bm25"],
            &["--sample 25: expected at most 24"],
        );
    }

    #[test]
    fn with_every_question_labelled_from_gold_the_figures_are_those_of_gold() {
        let workspace = Workspace::new();
        let folder = workspace.drawn("project", 24, "bm25,minilm");
        label(&folder, |_, _, _| true);
        let made = figures(&workspace.good(&corrected(&folder, &["--measures", "Lean@5"])));
        let plain = ["eval", "berds", "--format", "json", "--lanes", "bm25,minilm", "--measures", "Lean@5"];
        let gold: Value =
            serde_json::from_str(&workspace.good(&[&plain[..], &["--label-source", "gold"]].concat()))
                .unwrap();
        for (lane, row) in [BM25, "minilm"].into_iter().zip(gold["rows"].as_array().unwrap()) {
            for name in ["MRecall@5", "Prec@5", "Prec@1", "only-1@5", "both@5", "Lean@5"] {
                let own = &made[&(name.to_owned(), lane.to_owned())];
                let expected = row["measures"][name]["mean"].as_f64().unwrap();
                for (column, end) in [(name, "mean"), (name, "low"), (name, "high"), ("labels alone", "mean")]
                {
                    let value = own[column][end].as_f64().unwrap();
                    assert!(
                        (value - expected).abs() < 1e-9,
                        "{lane} {name} {column} {end}: {value}, {expected}"
                    );
                }
                // Sides are measured on the 20 questions with two sides.
                let units = Some(if ["only-1@5", "both@5", "Lean@5"].contains(&name) { 20.0 } else { 24.0 });
                assert_eq!((own["n"]["mean"].as_f64(), own["N"]["mean"].as_f64()), (units, units), "{name}");
            }
        }
        let mean = |row: usize| gold["rows"][row]["measures"]["Prec@5"]["mean"].as_f64().unwrap();
        let difference = &made[&("Prec@5".to_owned(), format!("minilm − {BM25}"))]["Prec@5"]["mean"];
        assert!((difference.as_f64().unwrap() - (mean(1) - mean(0))).abs() < 1e-9, "{difference}");
        // The population of the questions is unknown, however many are labelled.
        let population = figures(&workspace.good(&corrected(&folder, &["--target", "population"])));
        let prec = &population[&("Prec@5".to_owned(), BM25.to_owned())]["Prec@5"];
        assert!(
            prec["low"].as_f64() < prec["mean"].as_f64() && prec["mean"].as_f64() < prec["high"].as_f64()
        );
        for (suite, name) in [("bias", "Lean@5"), ("coverage", "covered@5")] {
            let arguments = ["eval", suite, "--format", "json", "--correct", folder.to_str().unwrap()];
            let arguments = [&arguments[..], &["--detector", crate::TINY_DETECTOR]].concat();
            assert!(figures(&workspace.good(&arguments)).contains_key(&(name.to_owned(), BM25.to_owned())));
        }
    }

    #[test]
    fn only_the_beginning_of_the_draw_counts_and_a_gap_is_reported() {
        let workspace = Workspace::new();
        let folder = workspace.drawn("project", 12, "bm25");
        let (project, _) = Project::open(&folder).unwrap();
        let named = |place: usize| project.questions[place].text.clone();
        label(&folder, |place, _, _| place < 3);
        workspace.refused(&corrected(&folder, &[]), &["expected at least 4 labelled units, found 3"]);
        label(&folder, |place, _, _| (3..8).contains(&place));
        let made = figures(&workspace.good(&corrected(&folder, &[])));
        let prec = &made[&("Prec@5".to_owned(), BM25.to_owned())];
        assert_eq!((prec["n"]["mean"].as_f64(), prec["N"]["mean"].as_f64()), (Some(8.0), Some(24.0)));
        assert!(prec["λ"]["mean"].as_f64().is_none_or(|weight| (0.0..=1.0).contains(&weight)), "{prec}");
        label(&folder, |place, at, _| place == 9 && at < 5);
        let (skipped, later) = (named(8), named(9));
        workspace
            .refused(&corrected(&folder, &[]), &["question 9 of the draw", &skipped, "was skipped", &later]);
        label(&folder, |place, at, _| place == 8 && at == 0);
        workspace.refused(&corrected(&folder, &[]), &[&skipped, "half done: 1 of 5 passages of bm25"]);
        let status = workspace.good(&["annotate", "status", &folder.display().to_string()]);
        assert!(
            status.contains("question 9 of the draw is half done: 1 of 5 passages have labels"),
            "{status}"
        );
        label(&folder, |place, _, _| place == 8);
        let made = figures(&workspace.good(&corrected(&folder, &[])));
        assert_eq!(made[&("Prec@5".to_owned(), BM25.to_owned())]["n"]["mean"].as_f64(), Some(10.0));
        // The passages of a lane outside the project are labelled only by chance.
        workspace.refused(&corrected(&folder, &["--lanes", "minilm"]), &["not this lane"]);
        workspace
            .refused(&corrected(&folder, &["-k", "10"]), &["the project holds the first 5", "--depth 10"]);
    }

    #[test]
    fn labels_on_questions_that_were_not_drawn_are_refused() {
        let workspace = Workspace::new();
        let undrawn = workspace.path("undrawn");
        workspace.good(&["annotate", "new", undrawn.to_str().unwrap(), "--lanes", "bm25", "--depth", "5"]);
        workspace.refused(&corrected(&undrawn, &[]), &["not drawn at random", "--sample"]);
        let folder = workspace.drawn("project", 12, "bm25");
        workspace.refused(
            &corrected(&folder, &["--label-source", "gold"]),
            &["correct the model's verdicts", "--label-source gold"],
        );
        workspace.refused(&corrected(&folder, &["--oracle"]), &["--oracle"]);
        let all = fs::read_to_string(format!("{SAMPLE}/questions.jsonl")).unwrap();
        let fewer = workspace.path("fewer.jsonl");
        fs::write(&fewer, all.lines().take(20).collect::<Vec<_>>().join("\n")).unwrap();
        workspace.refused(
            &corrected(&folder, &["--questions", fewer.to_str().unwrap()]),
            &["drawn from 24 questions that differ", "--questions"],
        );
        let passages = fs::read_to_string(format!("{SAMPLE}/corpus.jsonl")).unwrap();
        let (other, questions) = (workspace.path("other.jsonl"), format!("{SAMPLE}/questions.jsonl"));
        fs::write(&other, passages.lines().take(100).collect::<Vec<_>>().join("\n")).unwrap();
        workspace.refused(
            &corrected(&folder, &["--corpus", other.to_str().unwrap(), "--questions", &questions]),
            &["another version of the corpus"],
        );
        workspace.refused(&["eval", "berds", "--target", "population"], &["--target is for --correct"]);
        // Labels on a question that was not drawn do not count.
        let (project, _) = Project::open(&folder).unwrap();
        let (_, others) = Project::open(&undrawn).unwrap();
        let drawn: Vec<&str> = project.questions.iter().map(|question| question.text.as_str()).collect();
        label(&folder, |place, _, _| place < 6);
        let mut journal = Journal::open(&Project::journal(&folder, "ben"), "ben").unwrap().journal;
        let item = others.iter().find(|item| !drawn.contains(&item.question.as_str())).unwrap();
        let act = Act {
            question: item.question.clone(),
            passage: item.passage.id.clone(),
            text: text_hash(&item.passage),
            view: View { answers: BTreeMap::from([("Something.".to_owned(), true)]), ..View::default() },
            took: None,
            seen: None,
        };
        journal.append(act).unwrap();
        let printed = workspace.good(&corrected(&folder, &[]));
        assert!(printed.contains("labels on 1 question that were not drawn do not count"), "{printed}");
    }

    #[test]
    fn sycophancy_is_corrected_if_the_project_has_the_lists_of_all_wordings() {
        let workspace = Workspace::new();
        let folder = workspace.path("project");
        let place = folder.to_str().unwrap();
        workspace.good(&["annotate", "new", place, "--sample", "24", "--lanes", "bm25", "--wordings"]);
        label(&folder, |_, _, _| true);
        let arguments = [
            "eval",
            "sycophancy",
            "--format",
            "json",
            "--correct",
            place,
            "--detector",
            crate::TINY_DETECTOR,
        ];
        let made = figures(&workspace.good(&arguments));
        let plain = ["eval", "sycophancy", "--format", "json", "--lanes", "bm25", "--label-source", "gold"];
        let gold: Value = serde_json::from_str(&workspace.good(&plain)).unwrap();
        for name in ["p@5 neutral", "lean@5 as-1", "n@5 as-2", "shift@5"] {
            let own = made[&(name.to_owned(), BM25.to_owned())][name]["mean"].as_f64().unwrap();
            let expected = gold["rows"][0]["measures"][name]["mean"].as_f64().unwrap();
            assert!((own - expected).abs() < 1e-9, "{name}: {own}, {expected}");
        }
    }
}
