#!/usr/bin/env python3
"""Key scripts of two simulated annotators, for a project on the carried sample.

They label as the sample's gold labels do, and each turns some of the answers, drawn with a seed: a project with known noise, labelled through
the real interface. Prints nothing; writes NAME.keys beside the project.

    parallax annotate new project --lanes bm25 --depth 15 --annotators anna,ben --overlap .4
    python3 tools/annotate/key_scripts.py project sample_data/labels.tsv anna=.02 ben=.05
    parallax --journal project --annotator anna --lanes bm25 frame --timeout 300 --keys "$(cat anna.keys)"
    parallax --journal project --annotator ben --lanes bm25 frame --timeout 300 --keys "$(cat ben.keys)"
    parallax annotate agree project
"""

import csv
import json
import random
import sys
from pathlib import Path


def key(question, answers):
    """What is pressed for these answers."""
    supports = question.get("supports")
    if len(answers) == 2 and supports is not None:
        if all(answers):
            return "b"
        if not any(answers):
            return "0"
        return "s" if answers[supports] else "o"
    return "".join(str(i + 1) for i, yes in enumerate(answers) if yes) + "<Enter>"


def main(project, labels, *annotators):
    with open(labels, encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        gold = {(row["perspective"], row["id"]): row["label"] == "1" for row in rows}
    card = json.loads(Path(project, "project.json").read_text(encoding="utf-8"))
    questions = {question["text"]: question for question in card["questions"]}
    pool = [json.loads(line) for line in Path(project, "pool.jsonl").read_text(encoding="utf-8").splitlines()]
    for seed, annotator in enumerate(annotators, 1):
        name, noise = annotator.split("=")
        drawn, keys = random.Random(seed), []
        mine = [item for item in pool if name in item["to"]]
        asked = list(dict.fromkeys(item["question"] for item in mine))
        mine.sort(key=lambda item: (asked.index(item["question"]), min(item["ranks"].values()), item["passage"]["_id"]))
        for item in mine:
            question = questions[item["question"]]
            turned = lambda text: gold.get((text, item["passage"]["_id"]), False) != (drawn.random() < float(noise))
            keys.append(key(question, [turned(text) for text in question["perspectives"]]))
        Path(f"{name}.keys").write_text("<Esc>a<Wait>" + "".join(keys) + "<Wait>", encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
