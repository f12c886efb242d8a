"""Pairs without a label, for a teacher to judge: passages that train, with statements that nobody labelled them for.

python cross.py --data pairs.jsonl --out crossings.jsonl.gz [--most 100000] [--seed 7]

A passage gets other forms of its own statements (negations, opposites, paraphrases), the statements of near questions,
and now and then those of a far one. Only rows of the training split are read, so nothing of the other splits gets in.
"""
import argparse
import collections
import gzip
import json
import math
import os
import random

import common
import prepare

# statements drawn for a passage of the source: the passages that are most like those in use come first
EACH = {"labels": 8, "written": 5, "rfd": 4, "debate": 3, "arguana": 3, "iam": 1, "argq-long": 2, "argq": .5, "perspectrum": .5}


def nearest(statements, most=6):
    """For every statement others that share its rarer words, on other questions."""
    keys = [prepare.key(s) for s in statements]
    index = collections.defaultdict(list)
    for i, k in enumerate(keys):
        for w in k:
            index[w].append(i)
    idf = {w: math.log(len(keys) / len(x)) for w, x in index.items()}
    out = []
    for i, k in enumerate(keys):
        got = collections.Counter()
        for w in k:
            if len(index[w]) <= 300:
                for j in index[w]:
                    got[j] += idf[w]
        size = sum(idf[w] for w in k)
        near = [(x / (size + sum(idf[w] for w in keys[j]) - x + 1e-6), j) for j, x in got.items() if keys[j] != k]
        out.append([j for x, j in sorted(near, reverse=True)[:most] if x > .1])
    return out


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--data", required=True)
    ap.add_argument("--out", required=True)
    ap.add_argument("--most", type=int, default=100000, help="pairs of a passage with a statement and its opposite")
    ap.add_argument("--seed", type=int, default=7)
    a = ap.parse_args()
    rng = random.Random(a.seed)
    own = collections.defaultdict(set)
    for r in common.read(a.data):
        src = "labels" if r["source"].startswith("labels") else r["source"]
        if r["split"] == "train" and src in EACH:
            own[(src, r["passage"])].add(r["statement"])
    # one statement for each subject: the many forms of a debate's claim would crowd out the rest
    plain = {}
    for _, s in sorted((len(s), s) for x in own.values() for s in x):
        plain.setdefault(prepare.key(s), s)
    statements = sorted(plain.values())
    at = {prepare.key(s): i for i, s in enumerate(statements)}
    near = nearest(statements)
    groups = []
    for (src, passage), mine in sorted(own.items()):
        mine, n = sorted(mine), EACH[src]
        for _ in range(int(n) + (rng.random() < n % 1)):
            s, x = rng.choice(mine), rng.random()
            if x < .55:
                others = near[at[prepare.key(s)]]
                s = statements[rng.choice(others)] if others else s
            elif x < .65:
                s = rng.choice(statements)
            two = prepare.both_forms(s, rng)
            if not set(two) & set(mine):
                groups.append((passage, two))
    # in the order of the passages: what is alike stands together and compresses well
    kept = [groups[i] for i in sorted(rng.sample(range(len(groups)), min(a.most, len(groups))))]
    with gzip.open(a.out + ".new", "wt", encoding="utf-8") as f:
        for i, (passage, two) in enumerate(kept):
            for s in two:
                f.write(json.dumps({"passage": passage, "statement": s, "label": None, "source": "cross", "weight": 1.0,
                                    "split": "train", "group": f"x{i}"}, ensure_ascii=False) + "\n")
    os.replace(a.out + ".new", a.out)
    print(len(groups), "drawn,", len(kept), "kept,", len(statements), "statements")


if __name__ == "__main__":
    main()
