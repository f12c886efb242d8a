#!/usr/bin/env python3
"""Checks the carried sample data: its size, its labels, and that the words alone do not give a side away.

    python3 tools/sample/check.py [--data sample_data]

The folder holds `corpus.jsonl`, `questions.jsonl` and `labels.tsv`. A passage belongs to the question that
its id begins with (`QUESTION-NN`). In each question 2 passages of 25 are off-topic on purpose and 7 are
on the topic but lean to no side; the labels do not tell the two apart, so their share is counted together.
Exits with 1 and lists what failed if any check fails.
"""

import argparse
import collections
import csv
import json
import re
import sys
from pathlib import Path
from statistics import mean

MIN_QUESTIONS = 24
MIN_TWO_SIDED = 20
MANY_SIDED = 4
MANY_SIDED_SIZE = range(3, 7)
MIN_PASSAGES = 600
WORDS = range(60, 111)
MAX_LENGTH_GAP = 0.10
MAX_BASELINE = 0.60
MIN_NEUTRAL = 0.25
HEADER = ["question", "id", "perspective", "label", "evidence"]

STOP_WORDS = frozenset("""
    a an and are as at be by can could did do does for from how in is it its may more most must no not of
    on or s should so t than that the their there this through to was were what which who will with would
    """.split())


def words(text):
    return re.findall(r"[a-z]+", text.lower())


def content_words(text):
    """The words of a text that are not stop words, without a final `s`."""
    kept = (word for word in words(text) if word not in STOP_WORDS)
    return {word[:-1] if word.endswith("s") and len(word) > 3 else word for word in kept}


def share_found(wanted, text_words):
    return len(wanted & text_words) / len(wanted) if wanted else 0.0


def read_lines(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


def read_labels(path):
    with open(path, encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file, delimiter="\t")
    if header != HEADER:
        sys.exit(f"{path.name}: the first line has {header}, not {HEADER}")
    return rows


class Report:
    def __init__(self):
        self.failures = []

    def require(self, holds, failure):
        if not holds:
            self.failures.append(failure)

    def line(self, name, value):
        print(f"{name:<44} {value}")


def check_size(report, questions, passages):
    sizes = [len(question["perspectives"]) for question in questions.values()]
    two_sided = sizes.count(2)
    many_sided = sum(size in MANY_SIDED_SIZE for size in sizes)
    report.line("questions", len(sizes))
    report.line("  with two sides", two_sided)
    report.line("  with 3 to 6 perspectives", many_sided)
    report.require(len(sizes) >= MIN_QUESTIONS, f"{len(sizes)} questions, fewer than {MIN_QUESTIONS}")
    report.require(two_sided >= MIN_TWO_SIDED, f"{two_sided} two-sided questions, fewer than {MIN_TWO_SIDED}")
    report.require(many_sided == MANY_SIDED, f"{many_sided} many-sided questions instead of {MANY_SIDED}")

    lengths = {name: len(passage["text"].split()) for name, passage in passages.items()}
    report.line("passages", len(passages))
    if lengths:
        least, most = min(lengths.values()), max(lengths.values())
        report.line("  words each", f"{least} to {most}, mean {mean(lengths.values()):.1f}")
    report.require(len(passages) >= MIN_PASSAGES, f"{len(passages)} passages, fewer than {MIN_PASSAGES}")
    for name, length in lengths.items():
        report.require(length in WORDS, f"{name}: {length} words, not {WORDS[0]} to {WORDS[-1]}")
    for name, passage in passages.items():
        report.require(question_of(name) in questions, f"{name}: there is no such question")
        report.require("voice" in passage.get("metadata", {}), f"{name}: no voice")


def question_of(passage):
    return passage.rpartition("-")[0]


def check_labels(report, questions, passages, rows):
    """Checks every row and gives, for each passage, the numbers of the perspectives it supports."""
    seen = set()
    supports = {name: set() for name in passages}
    for number, row in enumerate(rows, start=2):
        where = f"labels.tsv, line {number}"
        if len(row) != len(HEADER):
            report.require(False, f"{where}: {len(row)} fields")
            continue
        question, passage, perspective, label, evidence = row
        if question not in questions or passage not in passages:
            report.require(False, f"{where}: no question {question} or no passage {passage}")
            continue
        if perspective not in questions[question]["perspectives"]:
            report.require(False, f"{where}: {question} has no perspective {perspective!r}")
            continue
        report.require(question_of(passage) == question, f"{where}: {passage} is not a passage of {question}")
        report.require((passage, perspective) not in seen, f"{where}: labelled twice")
        report.require(label in ("0", "1"), f"{where}: label {label!r}")
        seen.add((passage, perspective))
        if label == "1":
            supports[passage].add(questions[question]["perspectives"].index(perspective))
            exact = evidence != "" and evidence in passages[passage]["text"]
            report.require(exact, f"{where}: the evidence is not in the text of {passage}")
        else:
            report.require(evidence == "", f"{where}: evidence for a label of 0")
    pairs = {
        (name, perspective)
        for name in passages
        if question_of(name) in questions
        for perspective in questions[question_of(name)]["perspectives"]
    }
    for name, perspective in sorted(pairs - seen):
        report.require(False, f"{name}: no label for {perspective!r}")
    positive = sum(map(len, supports.values()))
    report.line("labels", f"{len(rows)}, {positive} positive, {len(pairs)} pairs expected")
    return supports


def check_overlap(report, questions, passages, supports):
    """How many of a supported statement's content words stand in the passage; none may hold the statement itself."""
    overlaps = []
    for name, sides in supports.items():
        text = passages[name]["text"]
        found = content_words(text)
        for side in sorted(sides):
            statement = questions[question_of(name)]["perspectives"][side]
            overlaps.append(share_found(content_words(statement), found))
            copied = " ".join(words(statement)) in " ".join(words(text))
            report.require(not copied, f"{name}: holds {statement!r} word for word")
    if overlaps:
        report.line("content words of the supported statement", f"mean {mean(overlaps):.3f}")


def check_sides(report, questions, passages, supports):
    """Length and word overlap of the passages that support exactly one side of a two-sided question."""
    lengths = ([], [])
    right = ties = 0.0
    for name, sides in supports.items():
        if len(sides) != 1 or len(questions[question_of(name)]["perspectives"]) != 2:
            continue
        (side,) = sides
        text = passages[name]["text"]
        lengths[side].append(len(text.split()))
        found = set(words(text))
        shares = [share_found(set(words(s)), found) for s in questions[question_of(name)]["perspectives"]]
        if shares[side] == shares[1 - side]:
            ties += 1
            right += 0.5
        elif shares[side] > shares[1 - side]:
            right += 1
    if not all(lengths):
        report.require(False, "a side of the two-sided questions has no passages")
        return
    first, second = map(mean, lengths)
    gap = abs(first - second) / ((first + second) / 2)
    report.line("passages of one side only", f"{len(lengths[0])} and {len(lengths[1])}")
    report.line("  mean words of the two sides", f"{first:.1f} and {second:.1f}, {gap:.1%} apart")
    report.require(gap <= MAX_LENGTH_GAP, f"the sides' mean lengths are {gap:.1%} apart")

    count = len(lengths[0]) + len(lengths[1])
    baseline = right / count
    report.line("  word overlap picks the right side in", f"{baseline:.1%} of {count}, {ties:.0f} ties")
    report.require(baseline <= MAX_BASELINE, f"word overlap picks the right side in {baseline:.1%}")


def check_neutral(report, supports):
    without = sum(not sides for sides in supports.values())
    share = without / len(supports) if supports else 0.0
    report.line("neutral or off-topic", f"{without}, {share:.1%} (2 of 25 a question are off-topic)")
    report.require(share >= MIN_NEUTRAL, f"only {share:.1%} of the passages are neutral or off-topic")


def print_voices(questions, passages, supports):
    """Voices by side for the two-sided questions; the last column counts the many-sided ones whole."""
    columns = ["first side", "second side", "both", "neither", "many-sided"]
    counts = collections.defaultdict(collections.Counter)
    for name, sides in supports.items():
        if len(questions[question_of(name)]["perspectives"]) != 2:
            column = "many-sided"
        elif len(sides) == 1:
            column = columns[min(sides)]
        else:
            column = "both" if sides else "neither"
        counts[passages[name].get("metadata", {}).get("voice", "?")][column] += 1
    print(f"\n{'voice':<16}" + "".join(f"{column:>13}" for column in columns))
    for voice in sorted(counts):
        print(f"{voice:<16}" + "".join(f"{counts[voice][column]:>13}" for column in columns))


def main():
    default = Path(__file__).resolve().parent.parent.parent / "sample_data"
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=default, help="the folder of the sample data")
    folder = parser.parse_args().data

    report = Report()
    question_rows = read_lines(folder / "questions.jsonl")
    passage_rows = read_lines(folder / "corpus.jsonl")
    questions = {row["id"]: row for row in question_rows}
    passages = {row["_id"]: row for row in passage_rows}
    report.require(len(questions) == len(question_rows), "a question's id occurs twice")
    report.require(len(passages) == len(passage_rows), "a passage's id occurs twice")

    check_size(report, questions, passages)
    supports = check_labels(report, questions, passages, read_labels(folder / "labels.tsv"))
    supports = {name: sides for name, sides in supports.items() if question_of(name) in questions}
    check_overlap(report, questions, passages, supports)
    check_sides(report, questions, passages, supports)
    check_neutral(report, supports)
    print_voices(questions, passages, supports)

    if report.failures:
        print(f"\n{len(report.failures)} failures:")
        for failure in report.failures:
            print(f"  {failure}")
        return 1
    print("\nAll checks passed.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
