//! Label Studio's tasks: one task for each question, passage and statement, with one annotation per annotator.
//!
//! Every field is where Label Studio expects it: `completed_by`, `created_at`, `lead_time`, and results of the types choices,
//! labels and textarea. Evidence that has no character offsets is in the `meta` of the choice. The `.xml` file next to the tasks is
//! their labelling interface.

use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    ExportError, Exported, Imported, Reading, Unmatched, cut_span, date, date_millis, groups, span_of,
    without_text,
};
use crate::annotate::entry::Decision;
use crate::annotate::material::{Material, Model, Row, RowError};
use crate::detect::decision::truth;
use crate::input::{InputError, read_json};

/// The labelling interface.
pub const CONFIG: &str = r#"<View>
  <Header value="$question"/>
  <Header value="$statement" size="4"/>
  <Header value="$title" size="5"/>
  <Labels name="evidence" toName="text">
    <Label value="evidence"/>
  </Labels>
  <Text name="text" value="$text"/>
  <Choices name="supports" toName="text" choice="single-radio" required="true">
    <Choice value="supports" hotkey="1"/>
    <Choice value="does not support" hotkey="0"/>
  </Choices>
  <Choices name="look" toName="text" choice="multiple">
    <Choice value="another look"/>
  </Choices>
  <TextArea name="note" toName="text" maxSubmissions="1" placeholder="a remark"/>
</View>
"#;

const YES: &str = "supports";
const NO: &str = "does not support";

#[derive(Deserialize)]
struct Task {
    data: Map<String, Value>,
    #[serde(default)]
    annotations: Vec<Annotation>,
}

#[derive(Deserialize)]
struct Annotation {
    #[serde(default)]
    completed_by: Value,
    created_at: Option<String>,
    lead_time: Option<f64>,
    #[serde(default)]
    was_cancelled: bool,
    #[serde(default)]
    result: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    #[serde(default)]
    from_name: String,
    #[serde(default)]
    value: Map<String, Value>,
    #[serde(default)]
    meta: Map<String, Value>,
}

/// Reads an export of Label Studio in its JSON format. Cancelled annotations are skipped.
///
/// # Errors
/// The file is not such an export.
pub fn read(path: &Path, reading: &Reading<'_>) -> Result<Imported, InputError> {
    let tasks: Vec<Task> =
        read_json(path, "Label Studio's tasks, an array of objects with `data` and `annotations`")?;
    let mut imported = Imported::default();
    for (i, task) in tasks.iter().enumerate() {
        for annotation in task.annotations.iter().filter(|annotation| !annotation.was_cancelled) {
            let decision = decision(task, annotation, reading);
            imported.take(|| format!("task {}", i + 1), decision);
        }
    }
    if tasks.iter().all(|task| task.annotations.is_empty()) && !tasks.is_empty() {
        let reason = "none of the tasks has an annotation".to_owned();
        imported.unmatched.push(Unmatched { at: format!("{} tasks", tasks.len()), reason });
    }
    Ok(imported)
}

fn decision(task: &Task, annotation: &Annotation, reading: &Reading<'_>) -> Result<Decision, RowError> {
    let data = |keys: [&str; 2]| keys.iter().find_map(|key| task.data.get(*key)?.as_str());
    let row = Row {
        question: data(["question", "question"]),
        passage: data(["passage", "id"]),
        hash: data(["hash", "hash"]),
        title: data(["title", "title"]),
        document: data(["text", "document"]),
        perspective: data(["statement", "perspective"]).ok_or("no `statement` in its data")?,
    };
    let result = |name: &str| annotation.result.iter().find(|item| item.from_name == name);
    let choice = result("supports").ok_or("an annotation without a choice for `supports`")?;
    let chosen =
        strings(&choice.value, "choices").into_iter().next().ok_or("an annotation without a choice")?;
    let supports = match chosen.as_str() {
        YES => true,
        NO => false,
        other => truth(other).map_err(|_| RowError::Label { found: other.into(), yes: YES, no: NO })?,
    };
    let annotator = annotator(&annotation.completed_by);
    let plain = reading.decided(&row, annotator.as_deref(), supports)?;
    let spans: Vec<String> = annotation
        .result
        .iter()
        .filter(|item| item.from_name == "evidence")
        .filter_map(|item| span_text(item, row.document))
        .collect();
    let evidence = if spans.is_empty() {
        choice.meta.get("evidence").and_then(Value::as_str).map(str::to_owned)
    } else {
        Some(spans.join("\n"))
    };
    Ok(Decision {
        evidence,
        seen: choice.meta.get("seen").and_then(|seen| serde_json::from_value(seen.clone()).ok()),
        note: result("note").map(|item| strings(&item.value, "text").join("\n")),
        flagged: result("look").is_some_and(|item| !strings(&item.value, "choices").is_empty()),
        at: annotation.created_at.as_deref().and_then(date_millis).unwrap_or(plain.at),
        took: annotation.lead_time.filter(|time| *time >= 0.0).map(|seconds| (seconds * 1e3).round() as u64),
        ..plain
    })
}

/// The text of a span.
fn span_text(item: &Item, document: Option<&str>) -> Option<String> {
    if let Some(text) = item.value.get("text").and_then(Value::as_str) {
        return Some(text.to_owned());
    }
    let number = |key: &str| usize::try_from(item.value.get(key)?.as_u64()?).ok();
    cut_span(document?, number("start")?, number("end")?)
}

/// The value of a field that holds one string or a list of strings.
fn strings(value: &Map<String, Value>, key: &str) -> Vec<String> {
    match value.get(key) {
        Some(Value::String(one)) => vec![one.clone()],
        Some(Value::Array(many)) => many.iter().filter_map(|one| one.as_str().map(str::to_owned)).collect(),
        _ => Vec::new(),
    }
}

/// The annotator's email, name or number, if the export gives one.
fn annotator(completed_by: &Value) -> Option<String> {
    match completed_by {
        Value::String(name) => Some(name.clone()),
        Value::Number(id) => Some(id.to_string()),
        Value::Object(user) => {
            let name = ["email", "username", "id"].iter().find_map(|key| user.get(*key))?;
            annotator(name)
        }
        _ => None,
    }
}

/// Writes the tasks, with the detector's verdicts as predictions, and the labelling interface.
///
/// # Errors
/// The format cannot express a date.
pub fn write(
    decisions: &[Decision],
    material: &Material<'_>,
    model: Option<&Model>,
) -> Result<Exported, ExportError> {
    let mut tasks = Vec::new();
    let mut unseen = 0;
    for (task, group) in groups(decisions).iter().enumerate() {
        let Some(about) = group.first() else { continue };
        let passage = material.passage(about);
        unseen += usize::from(passage.is_none());
        let passage = passage.unwrap_or_default();
        let annotations = group.iter().enumerate();
        let annotations =
            annotations.map(|(i, one)| annotation(one, &passage.text, &format!("{}-{}", task + 1, i + 1)));
        // If the side is unclear, there is no prediction.
        let says = |model: &Model| model.says(about).and_then(|(says, p)| Some((says?, p)));
        let predictions = model.and_then(|model| Some((model, says(model)?))).map(|(model, (supports, p))| {
            let result = choice("p", "supports", if supports { YES } else { NO });
            json!({"model_version": model.detector, "score": if supports { p } else { 1.0 - p }, "result": [result]})
        });
        tasks.push(json!({
            // Label Studio's converter refuses a task without a number; the server gives its own.
            "id": task + 1,
            "data": {
                "question": about.question,
                "statement": about.perspective,
                "title": passage.title,
                "text": passage.text,
                "passage": about.passage,
                "hash": about.text,
            },
            "annotations": annotations.collect::<Result<Vec<_>, _>>()?,
            "predictions": predictions.into_iter().collect::<Vec<_>>(),
        }));
    }
    let left_out = without_text(unseen);
    let tasks = format!("{:#}\n", Value::Array(tasks));
    Ok(Exported { files: vec![("", tasks.into_bytes()), (".xml", CONFIG.into())], left_out })
}

fn choice(id: &str, name: &str, chosen: &str) -> Value {
    json!({"id": id, "from_name": name, "to_name": "text", "type": "choices", "value": {"choices": [chosen]}})
}

fn annotation(decision: &Decision, document: &str, id: &str) -> Result<Value, ExportError> {
    let mut chosen = choice(&format!("{id}-supports"), "supports", if decision.supports { YES } else { NO });
    let mut result = Vec::new();
    if let Some(evidence) = &decision.evidence {
        match span_of(evidence, document) {
            Some((start, end)) => result.push(json!({
                "id": format!("{id}-evidence"), "from_name": "evidence", "to_name": "text", "type": "labels",
                "value": {"start": start, "end": end, "text": evidence, "labels": ["evidence"]},
            })),
            None => chosen["meta"] = json!({"evidence": evidence}),
        }
    }
    if let Some(seen) = &decision.seen {
        chosen["meta"]["seen"] = json!(seen);
    }
    result.insert(0, chosen);
    if decision.flagged {
        result.push(choice(&format!("{id}-look"), "look", "another look"));
    }
    if let Some(note) = &decision.note {
        result.push(json!({
            "id": format!("{id}-note"), "from_name": "note", "to_name": "text", "type": "textarea", "value": {"text": [note]},
        }));
    }
    let date = date(decision)?;
    let mut annotation =
        json!({"completed_by": {"email": decision.by}, "created_at": date, "result": result});
    if let Some(took) = decision.took {
        annotation["lead_time"] = json!(took as f64 / 1e3);
    }
    Ok(annotation)
}
