"""Reads what `parallax annotate export` wrote with the tools that the files are for, and compares the labels with the table of the same project.

    python3 -m venv venv && venv/bin/pip install argilla datasets ir_measures label-studio-sdk
    venv/bin/python tools/exports/read_back.py PROJECT [--parallax target/release/parallax] [-- --corpus FILE --questions FILE]

The reference is `--format csv`, read by Python's csv module. Every other format must give the same labels, annotators and, where the tool has a
place for them, evidence and remarks. What comes after `--` goes to every export. The exit code is 1 if anything differs.
"""

import argparse
import csv
import json
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ.setdefault("HF_HUB_OFFLINE", "1")


def export(parallax, project, kind, folder, more):
    out = folder / f"labels.{kind}"
    made = subprocess.run(
        [parallax, "annotate", "export", project, "--format", kind, "--out", out, *more], capture_output=True, text=True
    )
    if made.returncode != 0:
        sys.exit(f"{kind}: {made.stderr}")
    return out


def table(path):
    with open(path, newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    # Question, passage, statement and annotator name a label; then the label, its evidence, its remark, and whether it settles a disagreement.
    return {
        (row["question"], row["id"], row["perspective"], row["annotator"]): (
            row["label"] == "1",
            row["evidence"] or None,
            row["note"] or None,
            bool(row["settles"]),
        )
        for row in rows
    }


def hugging_face(path):
    from datasets import load_dataset

    with tempfile.TemporaryDirectory() as cache:
        rows = list(load_dataset("json", data_files={"train": str(path)}, split="train", cache_dir=cache))
    return {
        (row["question"], row["passage_id"], row["statement"], row["annotator"]): (
            row["supports"],
            row["evidence"],
            row["note"],
        )
        for row in rows
    }


def argilla(path):
    from argilla._models import FieldModel, QuestionModel
    from argilla.records._io import JsonIO

    # Settings.from_json makes these and then asks a server, which is not needed to read a file.
    settings = json.load(open(f"{path}.settings.json", encoding="utf-8"))
    fields = {FieldModel(**field).name for field in settings["fields"]}
    questions = {QuestionModel(**question).name for question in settings["questions"]}
    found = {}
    for record in JsonIO._records_from_json(path):
        unknown = {response.question_name for response in record.responses} - questions
        assert not unknown, f"responses to questions that the settings lack: {unknown}"
        assert set(record.fields.to_dict()) <= fields, record.fields
        names = {one["user_id"]: one for one in record.metadata["labels"]}
        notes = {str(one.user_id): one.value for one in record.responses if one.question_name == "note"}
        # Evidence is a span of the text; words that are not in the text are in the metadata.
        text = record.fields["text"]
        spans = {
            str(one.user_id): text[one.value[0]["start"] : one.value[0]["end"]]
            for one in record.responses
            if one.question_name == "evidence" and one.value
        }
        for response in record.responses:
            if response.question_name != "supports":
                continue
            user = str(response.user_id)
            by = names[user]
            key = (record.fields["question"], record.metadata["passage"], record.fields["statement"], by["annotator"])
            found[key] = (response.value == "supports", spans.get(user) or by.get("evidence"), notes.get(user))
    return found


def label_studio(path, expected):
    from label_studio_sdk._extensions.label_studio_tools.core.label_config import parse_config
    from label_studio_sdk.converter import Converter

    config = pathlib.Path(f"{path}.xml").read_text(encoding="utf-8")
    controls = parse_config(config)
    assert {"supports", "evidence", "note"} <= set(controls), controls
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        Converter(config, None, download_resources=False).convert_to_json_min(str(path), folder, is_dir=False)
        for one in json.load(open(pathlib.Path(folder) / "result.json", encoding="utf-8")):
            by = one["annotator"]
            by = by.get("email") if isinstance(by, dict) else by
            key = (one["question"], one["passage"], one["statement"], by)
            # Evidence is a span of the text, and a remark is a text area: both as the tool shows them.
            spans = [span["text"] for span in one.get("evidence", [])]
            found[key] = (one["supports"] == "supports", spans[0] if spans else None, one.get("note") or None)
    # Words that are not in the text are in `meta`, which the converter leaves out.
    return {key: (said, words or expected.get(key, [None] * 2)[1], note) for key, (said, words, note) in found.items()}


def trec(path):
    import ir_measures

    base = str(path).removesuffix(".qrels")
    return {
        "qrels": {(one.query_id, one.doc_id): one.relevance for one in ir_measures.read_trec_qrels(base + ".qrels")},
        "div": [tuple(line.split()) for line in open(base + ".div.qrels", encoding="utf-8")],
    }


def compare(kind, expected, found, parts=3):
    lacking, more = expected.keys() - found.keys(), found.keys() - expected.keys()
    other = [key for key in expected.keys() & found.keys() if expected[key][:parts] != found[key][:parts]]
    for what, keys in [("lacking", lacking), ("too many", more), ("different", other)]:
        for key in sorted(keys)[:3]:
            print(f"  {what}: {key}: {expected.get(key)} / {found.get(key)}")
    verdict = "the same" if not (lacking or more or other) else "DIFFERENT"
    print(f"{kind}: {len(found)} labels, {verdict}")
    return verdict == "the same"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("project")
    parser.add_argument("--parallax", default="target/release/parallax")
    split = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    args, more = parser.parse_args(sys.argv[1:split]), sys.argv[split + 1 :]
    good = True
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)

        def make(kind):
            return export(args.parallax, args.project, kind, folder, more)

        expected = table(make("csv"))
        print(f"csv: {len(expected)} labels of {len({key[3] for key in expected})} annotators")
        readers = {
            "hf": hugging_face,
            "argilla": argilla,
            "label-studio": lambda path: label_studio(path, expected),
        }
        for kind, read in readers.items():
            good &= compare(kind, expected, read(make(kind)))
        # TREC's files hold the label of the majority; ties are left out, and a passage with one is not in the first file.
        found = trec(make("qrels"))
        votes = {}
        settled = {(passage, statement) for (_, passage, statement, _), (*_, settles) in expected.items() if settles}
        for (_, passage, statement, _), (supports, *_, settles) in expected.items():
            # A third decision counts alone.
            if settles or (passage, statement) not in settled:
                votes.setdefault((passage, statement), []).append(supports)
        majority = {pair: sum(said) * 2 > len(said) for pair, said in votes.items() if sum(said) * 2 != len(said)}
        yes = sum(int(row[3]) > 0 for row in found["div"])
        same = len(found["div"]) == len(majority) and yes == sum(majority.values())
        print(f"qrels: {len(found['div'])} judgments, {yes} of them yes, {'the same' if same else 'DIFFERENT'}")
        good &= same
        relevant = {passage for (passage, _), supports in majority.items() if supports}
        first = {passage for (_, passage), relevance in found["qrels"].items() if relevance > 0}
        wrong = first - relevant
        print(f"qrels: {len(found['qrels'])} passages, read by ir_measures{'; wrong: ' + str(sorted(wrong)[:3]) if wrong else ''}")
        good &= not wrong
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
