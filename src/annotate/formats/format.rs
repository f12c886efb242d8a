//! The names of the formats, and dispatch to their readers and writers.

use std::path::Path;

use super::tsv::Separator;
use super::{ExportError, Exported, Imported, Reading};
use super::{argilla, berds, jsonl, label_studio, qrels, tsv};
use crate::annotate::entry::Decision;
use crate::annotate::material::{Material, Model};
use crate::input::InputError;

/// The formats by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// A table with a header: question, id, document, perspective, label, and columns for the rest.
    Tsv,
    /// The same table with commas, for a spreadsheet.
    Csv,
    /// One JSON object a line, with a dataset card, for Hugging Face datasets.
    Hf,
    /// TREC qrels: NAME.div.qrels per perspective, and NAME.qrels for any.
    Qrels,
    /// BERDS results with `*-preds`: booleans aligned with `perspectives`.
    Berds,
    /// Label Studio's tasks, as JSON.
    LabelStudio,
    /// Argilla's records, as JSON.
    Argilla,
}

impl Format {
    /// Reads a file of labels.
    ///
    /// # Errors
    /// The file is not of this format. Rows about unknown questions or passages are not errors.
    pub fn read(self, path: &Path, reading: &Reading<'_>) -> Result<Imported, InputError> {
        match self {
            Format::Tsv => tsv::read(path, reading, Separator::Tab),
            Format::Csv => tsv::read(path, reading, Separator::Comma),
            Format::Hf => jsonl::read(path, reading),
            Format::Qrels => qrels::read(path, reading),
            Format::Berds => berds::read(path, reading),
            Format::LabelStudio => label_studio::read(path, reading),
            Format::Argilla => argilla::read(path, reading),
        }
    }

    /// Writes labels, and the detector's verdicts if the format has a place for them.
    ///
    /// # Errors
    /// The format cannot express an id or a date.
    pub fn write(
        self,
        decisions: &[Decision],
        material: &Material<'_>,
        model: Option<&Model>,
    ) -> Result<Exported, ExportError> {
        match self {
            Format::Tsv => tsv::write(decisions, material, Separator::Tab),
            Format::Csv => tsv::write(decisions, material, Separator::Comma),
            Format::Hf => jsonl::write(decisions, material),
            Format::Qrels => qrels::write(decisions, material),
            Format::Berds => berds::write(decisions, material),
            Format::LabelStudio => label_studio::write(decisions, material, model),
            Format::Argilla => argilla::write(decisions, material, model),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::annotate::entry::{Seen, text_hash};
    use crate::annotate::material::Row;
    use crate::corpus::{Corpus, PassageIx, sample};
    use crate::measure::seeded::SplitMix64;
    use crate::question::Question;
    use crate::question::set::builtin;

    const ODD: [&str; 16] = [
        "\t",
        "\n",
        "\r\n",
        "\"",
        "\"\"",
        "'",
        ",",
        "🐎",
        "👩‍🚀",
        "שלום",
        "مرحبا",
        "\u{202e}",
        "a",
        " ",
        "\\t",
        "\u{feff}",
    ];

    fn odd(rng: &mut SplitMix64) -> String {
        (0..rng.below(8)).map(|_| ODD[rng.below(ODD.len())]).collect()
    }

    fn perhaps<T>(rng: &mut SplitMix64, value: impl FnOnce(&mut SplitMix64) -> T) -> Option<T> {
        rng.coin().then(|| value(rng))
    }

    /// Labels of sample passages and of unknown passages, by annotators with odd names, with everything that a label may have.
    fn drawn(seed: u64, questions: &[Question], corpus: &Corpus) -> Vec<Decision> {
        let mut rng = SplitMix64::new(seed);
        let mut made: Vec<Decision> = Vec::new();
        for _ in 0..40 {
            let question = &questions[rng.below(questions.len())];
            let passage = corpus.passage(PassageIx(rng.below(corpus.len()) as u32));
            let strange = rng.below(4) == 0;
            let evidence = perhaps(&mut rng, |rng| match rng.below(3) {
                0 => odd(rng),
                1 => passage.text.chars().skip(rng.below(50)).take(1 + rng.below(40)).collect(),
                _ => passage.text.clone(),
            });
            made.push(Decision {
                by: format!("a{}{}", rng.below(3), odd(&mut rng)),
                question: if strange { format!("q{}", odd(&mut rng)) } else { question.text.clone() },
                passage: if strange { format!("p{}", odd(&mut rng)) } else { passage.id.clone() },
                text: if strange { format!("h{}", odd(&mut rng)) } else { text_hash(&passage) },
                perspective: if strange {
                    format!("s{}", odd(&mut rng))
                } else {
                    question.perspectives[0].clone()
                },
                supports: rng.coin(),
                evidence,
                note: perhaps(&mut rng, odd),
                flagged: rng.coin(),
                at: rng.below(4_000_000_000_000) as u64,
                took: perhaps(&mut rng, |rng| rng.below(10_000_000) as u64),
                seen: perhaps(&mut rng, |rng| Seen {
                    blind: rng.coin(),
                    guidelines: odd(rng),
                    settles: perhaps(rng, odd),
                    again: rng.coin(),
                }),
            });
        }
        sorted(made)
    }

    fn sorted(mut decisions: Vec<Decision>) -> Vec<Decision> {
        let key = |one: &Decision| {
            (one.question.clone(), one.passage.clone(), one.perspective.clone(), one.by.clone())
        };
        decisions.sort_by_key(key);
        decisions.dedup_by_key(|one| key(one));
        decisions
    }

    /// Writes labels, and reads back the file with this ending.
    fn round(
        format: Format,
        decisions: &[Decision],
        reading: &Reading<'_>,
        ending: &str,
    ) -> (Imported, Exported) {
        let exported = format.write(decisions, reading.material, None).unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        let (_, bytes) = exported.files.iter().find(|(name, _)| *name == ending).unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        let imported = format.read(file.path(), reading);
        (imported.unwrap_or_else(|error| panic!("{format:?}: {error}")), exported)
    }

    #[test]
    fn the_formats_that_carry_everything_lose_nothing() {
        let (questions, corpus) = (builtin(sample::QUESTIONS), sample::corpus());
        let material = Material::new(&questions, &corpus);
        let reading = Reading { material: &material, by: None, at: 7 };
        for seed in 0..30 {
            let decisions = drawn(seed, &questions, &corpus);
            for format in [Format::Tsv, Format::Csv, Format::Hf, Format::LabelStudio, Format::Argilla] {
                let (imported, _) = round(format, &decisions, &reading, "");
                assert_eq!(imported.unmatched, [], "{format:?}, seed {seed}");
                assert_eq!(sorted(imported.decisions), decisions, "{format:?}, seed {seed}");
            }
        }
    }

    #[test]
    fn what_a_format_cannot_hold_is_in_its_side_file_evidence_first() {
        let (questions, corpus) = (builtin(sample::QUESTIONS), sample::corpus());
        let material = Material::new(&questions, &corpus);
        let reading = Reading { material: &material, by: None, at: 7 };
        let mut decisions = bare(&questions, &corpus, &["anna", "ben"]);
        for (i, one) in decisions.iter_mut().enumerate() {
            one.evidence = (i % 3 == 0).then(|| format!("words {i}"));
            one.note = (i % 5 == 0).then(|| format!("remark {i}"));
        }
        for format in [Format::Qrels, Format::Berds] {
            let exported = format.write(&decisions, &material, None).unwrap();
            let (_, rest) = exported.files.iter().find(|(ending, _)| *ending == jsonl::REST).unwrap();
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), rest).unwrap();
            let imported = Format::Hf.read(file.path(), &reading).unwrap();
            assert_eq!(sorted(imported.decisions), decisions, "{format:?}");
            assert!(exported.left_out[0].contains("evidence") && exported.left_out[0].contains(jsonl::REST));
        }
    }

    /// Labels of the sample's own passages for all statements, without evidence, notes or flags.
    fn bare(questions: &[Question], corpus: &Corpus, names: &[&str]) -> Vec<Decision> {
        let mut rng = SplitMix64::new(1);
        let mut made = Vec::new();
        for (i, question) in questions.iter().enumerate() {
            for passage in 0..5 {
                let passage = corpus.passage(PassageIx((i * 25 + passage) as u32));
                for statement in &question.perspectives {
                    for by in names {
                        let row = Row {
                            question: Some(&question.id),
                            passage: Some(&passage.id),
                            perspective: statement,
                            ..Row::default()
                        };
                        let place = Material::new(questions, corpus).place(&row).unwrap();
                        made.push(place.decided(by, rng.coin(), 7));
                    }
                }
            }
        }
        sorted(made)
    }

    #[test]
    fn berds_keeps_every_annotators_labels_and_finds_passages_without_ids() {
        let (questions, corpus) = (builtin(sample::QUESTIONS), sample::corpus());
        let material = Material::new(&questions, &corpus);
        let reading = Reading { material: &material, by: None, at: 7 };
        let mut decisions = bare(&questions, &corpus, &["anna", "ben"]);
        decisions.remove(3);
        let (imported, exported) = round(Format::Berds, &decisions, &reading, "");
        assert_eq!(imported.unmatched, []);
        assert_eq!(sorted(imported.decisions), decisions);
        assert!(
            exported.left_out[1].contains("1 passages were not labelled for every statement"),
            "{exported:?}"
        );

        let mut lines: Vec<serde_json::Value> = exported.files[0]
            .1
            .split(|byte| *byte == b'\n')
            .filter_map(|line| serde_json::from_slice(line).ok())
            .collect();
        for ctx in lines.iter_mut().flat_map(|line| line["ctxs"].as_array_mut().unwrap()) {
            ctx.as_object_mut().unwrap().remove("id");
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), serde_json::to_vec(&lines).unwrap()).unwrap();
        let imported = Format::Berds.read(file.path(), &reading).unwrap();
        assert_eq!(sorted(imported.decisions), decisions);
    }

    #[test]
    fn qrels_keep_every_label_of_one_annotator_and_the_majoritys_of_many() {
        let (questions, corpus) = (builtin(sample::QUESTIONS), sample::corpus());
        let material = Material::new(&questions, &corpus);
        let reading = Reading { material: &material, by: Some("anna"), at: 7 };
        let decisions = bare(&questions, &corpus, &["anna"]);
        let (imported, exported) = round(Format::Qrels, &decisions, &reading, ".div.qrels");
        assert_eq!(sorted(imported.decisions), decisions);
        let any = String::from_utf8(exported.files[0].1.clone()).unwrap();
        assert_eq!((exported.files[0].0, any.lines().count()), (".qrels", 24 * 5));

        let two = bare(&questions, &corpus, &["anna", "ben"]);
        let (imported, exported) = round(Format::Qrels, &two, &reading, ".div.qrels");
        let tied = two.len() / 2 - imported.decisions.len();
        assert!(
            tied > 0 && exported.left_out[1].starts_with(&format!("{tied} passages are left out")),
            "{exported:?}"
        );
    }

    fn read(format: Format, text: &str, by: Option<&str>) -> Result<Imported, String> {
        let (questions, corpus) = (builtin(sample::QUESTIONS), sample::corpus());
        let material = Material::new(&questions, &corpus);
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        format
            .read(file.path(), &Reading { material: &material, by, at: 7 })
            .map_err(|error| error.to_string())
    }

    #[test]
    fn the_samples_gold_labels_are_such_a_table() {
        let gold = read(Format::Tsv, sample::LABELS, Some("gold")).unwrap();
        assert_eq!(gold.unmatched, []);
        assert_eq!(gold.decisions.len(), sample::LABELS.lines().count() - 1);
        assert!(gold.decisions.iter().all(|one| one.by == "gold" && one.at == 7));
        let nobody = read(Format::Tsv, sample::LABELS, None).unwrap();
        assert!(
            nobody.decisions.is_empty()
                && nobody.unmatched[0].to_string().contains("line 2: the file does not say who")
        );
    }

    #[test]
    fn what_label_studio_and_argilla_export_themselves_is_read() {
        let (statement, text) = ("Zoos should be banned.", sample::corpus().passage(PassageIx(0)));
        let data = serde_json::json!({"question": "Should zoos be banned?", "statement": statement, "text": text.text});
        let choice = |chosen: &str| serde_json::json!({"from_name": "supports", "type": "choices", "value": {"choices": [chosen]}});
        let tasks = serde_json::json!([{"id": 5, "data": data, "annotations": [
            {"id": 1, "completed_by": 3, "lead_time": 12.3456, "created_at": "2024-03-05T10:35:38.123456Z", "was_cancelled": false,
             "result": [choice("supports"), {"from_name": "evidence", "type": "labels", "value": {"start": 0, "end": 4, "labels": ["evidence"]}}]},
            {"id": 2, "completed_by": {"id": 4, "email": "b@example.org"}, "was_cancelled": true, "result": []},
            {"id": 3, "completed_by": {"id": 4, "email": "b@example.org"}, "result": [choice("perhaps")]},
        ]}]);
        let read_back = read(Format::LabelStudio, &tasks.to_string(), None).unwrap();
        let [one] = read_back.decisions.as_slice() else { panic!("{read_back:?}") };
        assert_eq!((one.by.as_str(), one.took, one.at), ("3", Some(12_346), 1_709_634_938_123));
        assert_eq!(one.evidence.as_deref(), Some(&text.text[..4]));
        assert_eq!(one.passage, text.id);
        assert_eq!(
            read_back.unmatched[0].to_string(),
            "task 1: the label `perhaps` is neither `supports` nor `does not support`"
        );

        let user = "4f1b6b8e-0000-4000-8000-000000000001";
        let records = serde_json::json!([{"id": "x", "_server_id": "y", "status": "completed", "fields": data, "metadata": {},
        "suggestions": {}, "vectors": {}, "responses": {
            "supports": [{"value": "does not support", "user_id": user}],
            "evidence": [{"value": [{"start": 0, "end": 4, "label": "evidence"}], "user_id": user}]}}]);
        let read_back = read(Format::Argilla, &records.to_string(), None).unwrap();
        let [one] = read_back.decisions.as_slice() else { panic!("{read_back:?}") };
        assert_eq!((one.by.as_str(), one.supports, one.at), (user, false, 7));
        assert_eq!(one.evidence.as_deref(), Some(&text.text[..4]));
    }

    #[test]
    fn a_file_of_another_kind_is_refused_with_its_line_and_what_was_expected() {
        for (format, text, expected) in [
            (Format::Tsv, "id\tlabel\nzoos-01\t1\n", ":1: expected a header that names `perspective`"),
            (Format::Tsv, "id\tperspective\tlabel\nzoos-01\tx\tmaybe\n", ":2: expected a label of 1 or 0"),
            (Format::Tsv, "id\tperspective\tlabel\nzoos-01\tx\n", ":2: expected 3 fields, as the header has"),
            (Format::Tsv, "", "the label file is empty"),
            (Format::Csv, "id\tperspective\tlabel\n", "separated by commas"),
            (Format::Hf, "{\"statement\":\"x\"}\n", ":1: expected a label whose `supports` is true or false"),
            (Format::Qrels, "zoos 0 zoos-01 1\n", ":1: expected a perspective from 1"),
            (Format::Berds, "{\"question\":\"x\"}\n", ":1: expected BERDS results"),
            (
                Format::Berds,
                "{\"question\":\"x\",\"perspectives\":[\"a\"],\"ctxs\":[{\"a-preds\":[1]}]}",
                ":1: expected in `a-preds` of passage 1 1 booleans",
            ),
            (
                Format::Berds,
                "{\"question\":\"x\",\"perspectives\":[\"a\"],\"ctxs\":[{}]}",
                "a key that ends in `-preds`",
            ),
            (Format::LabelStudio, "{}", ":1: expected Label Studio's tasks"),
            (Format::LabelStudio, "[\n{\"data\": 1}]", ":2: expected Label Studio's tasks"),
            (Format::Argilla, "[{}]", ":1: expected Argilla's records"),
            (Format::Argilla, "[", ":1: expected Argilla's records"),
        ] {
            let error = read(format, text, Some("anna")).unwrap_err();
            assert!(error.contains(expected), "{format:?} {text:?}: {error}");
        }
    }

    #[test]
    fn a_note_that_looks_like_rows_of_the_table_is_refused_by_it_alone() {
        let (questions, corpus) = (builtin(sample::QUESTIONS), sample::corpus());
        let material = Material::new(&questions, &corpus);
        let mut decisions = bare(&questions, &corpus, &["anna"]);
        decisions[0].note = Some(format!("a\nb{}", "\tc".repeat(15)));
        let error = Format::Tsv.write(&decisions, &material, None).unwrap_err().to_string();
        assert!(error.contains("as many tabs as the table has columns"), "{error}");
        assert!(Format::Argilla.write(&decisions, &material, None).is_ok());
    }

    #[test]
    fn the_detectors_verdict_goes_out_as_a_prediction_and_a_suggestion() {
        let (questions, corpus) = (builtin(sample::QUESTIONS), sample::corpus());
        let material = Material::new(&questions, &corpus);
        let decisions = bare(&questions, &corpus, &["anna"]);
        let about = &decisions[0];
        let p = [((about.text.clone(), about.perspective.clone()), 0.75)].into();
        let mut model = Model { detector: "parallax-x".into(), threshold: 0.5, p, ..Model::default() };
        let written = |format: Format| -> serde_json::Value {
            let exported = format.write(&decisions[..1], &material, Some(&model)).unwrap();
            serde_json::from_slice(&exported.files[0].1).unwrap()
        };
        let prediction = &written(Format::LabelStudio)[0]["predictions"][0];
        assert_eq!(
            (&prediction["model_version"], &prediction["score"]),
            (&"parallax-x".into(), &0.75.into())
        );
        assert_eq!(prediction["result"][0]["value"]["choices"][0], "supports");
        let suggestion = serde_json::json!({"value": "supports", "score": 0.75, "agent": "parallax-x"});
        assert_eq!(written(Format::Argilla)[0]["suggestions"]["supports"], suggestion);
        model.joint.insert((about.text.clone(), about.perspective.clone()), (None, 0.6));
        let written = |format: Format| -> serde_json::Value {
            let exported = format.write(&decisions[..1], &material, Some(&model)).unwrap();
            serde_json::from_slice(&exported.files[0].1).unwrap()
        };
        assert_eq!(
            written(Format::LabelStudio)[0]["predictions"],
            serde_json::json!([]),
            "an unclear side is unjudged"
        );
        assert_eq!(written(Format::Argilla)[0]["suggestions"], serde_json::json!({}));
    }
}
