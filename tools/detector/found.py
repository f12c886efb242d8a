"""Passages of the training sets by reference, so that labels on them can be kept without their text.

A reference such as `wiki:1526#3` is the fourth piece of article 1526 of contentious-wiki, `rfd:120#0` the first of row 120 of the Room for
Debate comments. Pieces begin with a sentence and have 70 to 115 words where the text has as many, at least 40.

`found.jsonl.gz` has one label a line: `ref`, the statements `a` and `b`, `label` (A, B, AB, - by the labels' guide), `conf` (3 sure, 2 fairly
sure, 1 a toss-up) and `crc`, the CRC-32 of the passage. `retrieved` marks passages that BM25 ranks high for the statement and that a detector took for a side, or nearly.

`edited.jsonl.gz` has passages of these turned round: what was changed so that they support the other statement. Its `edits` are `[from, to, words]`: the words
from..to of the passage (counted from 0, `to` is left out) become others; `label` is the side of the result, `crc` its CRC-32. So only the new words are kept.
"""
import collections
import csv
import functools
import glob
import gzip
import json
import os
import re
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
FILE, EDITS = os.path.join(HERE, "found.jsonl.gz"), os.path.join(HERE, "edited.jsonl.gz")
LEAST, MOST, SHORTEST = 70, 115, 40


def pieces(text):
    """A text in passages that begin with a sentence."""
    out, now, words = [], [], 0
    for sentence in re.split(r"(?<=[.!?])\s+", text):
        n = len(sentence.split())
        if now and words + n > MOST:
            if words >= SHORTEST:
                out.append(" ".join(now)[:900])
            now, words = [], 0
        now.append(sentence)
        words += n
        if words >= LEAST:
            out.append(" ".join(" ".join(now).split()[:MOST]))
            now, words = [], 0
    if words >= SHORTEST:
        out.append(" ".join(now))
    return out


def texts(root, clean):
    """(source, key, text) of every text that passages are cut from."""
    d = os.path.join(root, "detector-training")
    for part in ("dev", "test"):
        articles = collections.OrderedDict()
        for line in open(os.path.join(d, "iam", "claims", part + ".txt"), encoding="utf-8"):
            cells = line.rstrip("\n").split("\t")
            articles.setdefault(cells[3], []).append(cells[2])
        for article, sentences in articles.items():
            yield "iam", f"{part}:{article}", clean(" ".join(sentences))
    for source, path in (("arguana", "detector-training/arguana-clean/arguments.jsonl"), ("debate", "detector-training/debate-pro-con-raw/pairs.jsonl"),
                         ("apc", "arguments-pro-con/corpus.jsonl")):
        for i, line in enumerate(open(os.path.join(root, path), encoding="utf-8")):
            yield source, str(i), clean(json.loads(line)["text"])
    with open(os.path.join(d, "ukp-rfd-stance", "exported-3365-stance-taking-arguments.tsv"), encoding="utf-8", newline="") as f:
        for i, row in enumerate(csv.DictReader(f, delimiter="\t", quoting=csv.QUOTE_NONE)):
            yield "rfd", str(i), clean(row["text"])
    for path in sorted(glob.glob(os.path.join(root, "contentious-wiki", "articles", "*.txt"))):
        yield "wiki", os.path.basename(path)[6:-4], clean(open(path, encoding="utf-8", errors="replace").read())


@functools.cache
def passages(root, clean):
    """Reference → passage."""
    return {f"{source}:{key}#{i}": piece for source, key, text in texts(root, clean) for i, piece in enumerate(pieces(text))}


def changed(text, edits):
    """The passage with its edits, which are in order."""
    words = text.split()
    for start, end, new in reversed(edits):
        words[start:end] = new.split()
    return " ".join(words)


def edited(root, clean):
    """The passages that were turned round, each with the passage that it was."""
    rows, known = [json.loads(line) for line in gzip.open(EDITS, "rt", encoding="utf-8")], passages(root, clean)
    for row in rows:
        row["before"] = known.get(row["ref"], "")
        row["text"] = changed(row["before"], row["edits"])
        if zlib.crc32(row["text"].encode()) != row["crc"]:
            raise SystemExit(f"edited.jsonl.gz: the passage {row['ref']} is not the one that was edited; is DATA complete?")
    return rows


def labels(root, clean):
    """The labels with their passages. A passage that is not as it was labelled ends the program."""
    rows = [json.loads(line) for line in gzip.open(FILE, "rt", encoding="utf-8")]
    known = passages(root, clean)
    for row in rows:
        row["text"] = known.get(row["ref"], "")
        if zlib.crc32(row["text"].encode()) != row["crc"]:
            raise SystemExit(f"found.jsonl.gz: the passage {row['ref']} is not the one that was labelled; is DATA complete?")
    return rows
