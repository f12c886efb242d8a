#!/usr/bin/env python3
"""Works out every figure of `eval berds --write FOLDER` again, from the files in the folder alone.

    python3 -m venv venv && venv/bin/pip install 'ir_measures>=0.4,<0.5' pyndeval numpy scipy
    parallax eval berds --write FOLDER --label-source gold --measures alpha_nDCG@5,ERR_IA@5,StRecall@5,P_IA@5,Lean@5,AWRF@10,rKL@10,Cover
    venv/bin/python tools/measures/from_written.py FOLDER

It compares means, 95 % intervals, differences, p-values and shares judged of `table.json`, and the table of `--baseline` or
`--all-pairs`, with its own, up to --tolerance. What ir_measures has (alpha_nDCG, ERR_IA, StRecall, P_IA), ir_measures computes too, on
the questions whose labels name every perspective: the tools take the list of perspectives from the qrels, we take it from the question. Where a model judged, means are expectations under the probabilities in
`probabilities.jsonl`. Exits with 1 if a figure differs or nothing was compared. What it cannot work out, it names: intervals that
draw verdicts, and means of many statements under probabilities, which the program itself estimates from draws.
"""

import argparse
import itertools
import json
import math
import re
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

DEEPEST = 100
DRAWS = 10_000
SIDES = {"only-1": (True, False), "only-2": (False, True), "both": (True, True), "neither": (False, False)}
SAME = 1e-12


# --- files ---

def read_lines(path):
    return [json.loads(line) for line in path.read_text().split("\n") if line.strip()]


def read(folder):
    questions = {q["id"]: q for q in read_lines(folder / "questions.jsonl")}
    runs = {}
    for path in sorted(folder.glob("*.run")):
        lists = defaultdict(list)
        for line in path.read_text().splitlines():
            question, _, passage, rank, _score, _tag = line.split()
            lists[question].append((int(rank), passage))
        runs[path.stem] = {question: [p for _, p in sorted(own)] for question, own in lists.items()}
    labels = defaultdict(dict)
    for line in (folder / "labels.div.qrels").read_text().splitlines():
        question, perspective, passage, label = line.split()
        labels[(question, passage)][int(perspective) - 1] = int(label) > 0
    verdicts = read_lines(folder / "probabilities.jsonl")
    chances = {(one["question"], one["passage"]): one["p"] for one in verdicts}
    unclear = {(one["question"], one["passage"]) for one in verdicts if one["unclear"]}
    return questions, runs, labels, chances, unclear


def file_name(lane):
    return "".join(c if c.isascii() and (c.isalnum() or c in "_.=") else "-" for c in lane)[:150]


# --- what a passage supports ---

def support(question, passage, labels):
    """The set of supported perspectives, or None if it is unjudged. One yes is enough, as in files of positives."""
    own = labels.get((question["id"], passage), {})
    found = frozenset(i for i, label in own.items() if label)
    return found if found or len(own) == len(question["perspectives"]) else None


def outcomes(question, passage, labels, chances):
    """All sets that a passage may support, with probabilities; None if it is unjudged."""
    p = chances.get((question["id"], passage))
    if p is None:
        known = support(question, passage, labels)
        return None if known is None else [(known, 1.0)]
    m = len(question["perspectives"])
    if "each statement" in p:
        each = p["each statement"]
        if m > 6:
            return NotImplemented
        return [(frozenset(i for i in range(m) if chosen >> i & 1),
                 math.prod(each[i] if chosen >> i & 1 else 1 - each[i] for i in range(m))) for chosen in range(1 << m)]
    first, second, both, neither = p["first, second, both, neither"]
    return [(frozenset([0]), first), (frozenset([1]), second), (frozenset([0, 1]), both), (frozenset(), neither)]


def covered(rows):
    """The probability of every set of perspectives that a list covers."""
    sets = {frozenset(): 1.0}
    for row in rows:
        if row is None:
            continue
        after = defaultdict(float)
        for (seen, p), (own, chance) in itertools.product(sets.items(), row):
            after[seen | own] += p * chance
        sets = after
    return sets


# --- measures: one question's rows, in rank order, each a list of (set, probability) or None ---

def mrecall(seen, m, k):
    return float(len(seen) >= k if m > k else len(seen) == m)


def certain(rows):
    """What each passage supports, if no probability is between 0 and 1."""
    known = []
    for row in rows:
        if row is None:
            known.append(None)
        elif len(row) == 1:
            known.append(row[0][0])
        else:
            return None
    return known


def shares(ranked, m, weight):
    sums = [0.0] * m
    for rank, own in enumerate(ranked, 1):
        for i in own or ():
            sums[i] += weight(rank) / len(own)
    total = sum(sums)
    return [one / total for one in sums] if total > 0 else None


def rkl(ranked, m):
    total, most, found = 0.0, 0.0, False
    for cut in (cut for cut in (5, 10, 20) if cut <= max(len(ranked), 5)):
        own = shares(ranked[:cut], m, lambda _: 1.0)
        if own is None:
            continue
        found = True
        total += sum(s * math.log(s * m) for s in own if s > 0) / math.log2(cut)
        most += math.log(m) / math.log2(cut)
    return total / most if found and most > 0 else (0.0 if found else None)


def awrf(ranked, m, k):
    own = shares(ranked[:k], m, lambda rank: 1 / math.log2(rank + 1))
    return None if own is None else sum(abs(s - 1 / m) for s in own) / 2


def gains(ranked, m, alpha):
    worth = [1.0] * m
    for own in ranked:
        yield sum(worth[i] for i in own or ())
        for i in own or ():
            worth[i] *= 1 - alpha


def alpha_ndcg(ranked, pool, m, alpha, k):
    def discounted(some):
        return sum(gain / math.log2(i + 2) for i, gain in enumerate(gains(some, m, alpha)))
    left, worth, ideal = dict(pool), [1.0] * m, []
    while left and len(ideal) < k:
        best = max(left, key=lambda id_: (sum(worth[i] for i in sorted(left[id_])), id_.encode()))
        ideal.append(left.pop(best))
        for i in ideal[-1]:
            worth[i] *= 1 - alpha
    best = discounted(ideal)
    return discounted(ranked[:k]) / best if best > 0 else 0.0


def err_ia(ranked, m, k):
    gained = sum(gain / (i + 1) for i, gain in enumerate(gains(ranked[:k], m, 0.5)))
    most, unmet = 0.0, float(m)
    for i in range(k):
        most, unmet = most + unmet / (i + 1), unmet / 2
    return gained / most if most > 0 else 0.0


def value(name, rows, question, pool):
    """A question's value: None if it has none, NotImplemented if this script cannot work it out."""
    m, first = len(question["perspectives"]), question.get("supports")
    parsed = re.fullmatch(r"([A-Za-z_0-9-]+?)(?:\(alpha=([\d.]+)\))?(?:@(\d+))?", name)
    base, alpha, k = parsed[1], float(parsed[2] or 0.5), int(parsed[3] or DEEPEST)
    top = rows[:k]
    if any(row is NotImplemented for row in top):
        return NotImplemented
    if base == "Prec":
        return sum(p for row in top if row for own, p in row if own) / k
    if base == "P_IA" and certain(top) is not None:
        return sum(len(own) for own in certain(top) if own) / (k * m)
    if base == "Lean":
        if first is None or m != 2:
            return None
        return sum(p * ((first in own) - (1 - first in own)) for row in top if row for own, p in row) / k
    if base in ("MRecall", "StRecall") or base in SIDES:
        if base in SIDES and first is None:
            return None
        if m > 20 and certain(top) is None:
            return NotImplemented
        def of(seen):
            if base == "MRecall":
                return mrecall(seen, m, k)
            if base == "StRecall":
                return len(seen) / m
            return float((first in seen, 1 - min(first, 1) in seen) == SIDES[base])
        return sum(p * of(seen) for seen, p in covered(top).items())
    ranked = certain(top)
    if ranked is None:
        return NotImplemented
    if base == "Judged":
        return sum(own is not None for own in ranked) / k
    if base == "Cover":
        seen = set()
        for rank, own in enumerate(ranked[:DEEPEST], 1):
            seen |= own or set()
            if len(seen) == m:
                return float(rank)
        return None
    if base == "rKL":
        return rkl(ranked, m)
    if base == "AWRF":
        return awrf(ranked, m, k)
    if base == "ERR_IA":
        return err_ia(ranked, m, k)
    if base == "alpha_nDCG":
        return alpha_ndcg(ranked, pool, m, alpha, k) if pool else None
    return NotImplemented


# --- intervals and tests, with the program's own random numbers ---

def stream(seed, count):
    """The first outputs of SplitMix64."""
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def below(numbers, bound):
    """floor(number · bound / 2^64) without 128 bits."""
    low, high = numbers & np.uint64(0xFFFFFFFF), numbers >> np.uint64(32)
    bound = np.uint64(bound)
    return (high * bound + ((low * bound) >> np.uint64(32))) >> np.uint64(32)


def bootstrap(values):
    n = len(values)
    drawn = below(stream(0, DRAWS * n), n).astype(np.int64).reshape(DRAWS, n)
    means = np.sort(np.asarray(values)[drawn].sum(axis=1) / n)
    return np.quantile(means, 0.025), np.quantile(means, 0.975)


def effect(differences):
    """The mean in standard deviations, with its interval; None without any spread."""
    n = len(differences)
    if n < 2 or np.std(differences, ddof=1) <= SAME:
        return None
    drawn = np.asarray(differences)[below(stream(0, DRAWS * n), n).astype(np.int64).reshape(DRAWS, n)]
    spread = drawn.std(axis=1, ddof=1)
    found = np.sort(drawn.mean(axis=1)[spread > SAME] / spread[spread > SAME])
    return np.mean(differences) / np.std(differences, ddof=1), np.quantile(found, 0.025), np.quantile(found, 0.975)


def detectable(differences):
    """The difference that a paired t-test at .05 finds 80 % of the time."""
    from scipy.stats import t
    n = len(differences)
    return (t.ppf(0.975, n - 1) + t.ppf(0.8, n - 1)) * np.std(differences, ddof=1) / math.sqrt(n)


def randomisation(left, right):
    differences = np.asarray(left) - np.asarray(right)
    n = len(differences)
    heads = (stream(0, DRAWS * n) >> np.uint64(63)).astype(bool).reshape(DRAWS, n)
    sums = np.abs(np.where(heads, differences, -differences).sum(axis=1))
    slack = 1e-12 * np.abs(differences).sum()
    return ((sums >= abs(differences.sum()) - slack).sum() + 1) / (DRAWS + 1)


def holm(ps):
    order, adjusted, running = sorted(range(len(ps)), key=ps.__getitem__), [0.0] * len(ps), 0.0
    for step, i in enumerate(order):
        running = max(running, min(ps[i] * (len(ps) - step), 1.0))
        adjusted[i] = running
    return adjusted


# --- ir_measures ---

def by_ir_measures(name, run, questions, labels):
    """The values by question, on questions whose labels name every perspective."""
    import ir_measures
    from ir_measures import GenericQrel, ScoredDoc

    complete = [id_ for id_, question in questions.items()
                if {i for (q, _), own in labels.items() if q == id_ for i, yes in own.items() if yes}
                == set(range(len(question["perspectives"])))]
    qrels = [GenericQrel(q, passage, int(label), f"{i:03}") for (q, passage), own in labels.items() if q in complete
             for i, label in sorted(own.items())]
    qrels.sort(key=lambda one: one.iteration)
    docs = [ScoredDoc(q, passage, float(len(ids) - rank)) for q, ids in run.items() if q in complete
            for rank, passage in enumerate(ids)]
    if not complete:
        return {}
    measure = ir_measures.parse_measure(name)
    found = {one.query_id: one.value for one in ir_measures.iter_calc([measure], qrels, docs)}
    # ndeval skips the division at rank 1.
    if name == "ERR_IA@1":
        found = {q: v / len(questions[q]["perspectives"]) for q, v in found.items()}
    return found


# --- comparison ---

def paired(values, own, base):
    """The values of two lanes on the questions of which both have one."""
    return tuple(zip(*[(a, b) for a, b in zip(values[own], values[base]) if a is not None and b is not None]))


def compare_lanes(table, values, check, skipped):
    """The table of `--baseline` or `--all-pairs`: differences, effects, counts, p-values and what could have been seen."""
    by_measure = defaultdict(list)
    for row in table["rows"]:
        name, lanes = row["lane"].split(": ", 1)
        own, base = lanes.split(" − ")
        if (own, name) not in values or (base, name) not in values:
            skipped[f"comparison {name}"] += 1
            continue
        left, right = paired(values, (own, name), (base, name))
        by_measure[name].append((row, left, right, randomisation(left, right)))
    for rows in by_measure.values():
        for (row, left, right, _), p in zip(rows, holm([p for *_, p in rows])):
            what, cells = f"comparison {row['lane']}", row["measures"]
            differences = [a - b for a, b in zip(left, right)]
            low, high = bootstrap(differences)
            for part, here in [("mean", sum(differences) / len(differences)), ("low", low), ("high", high)]:
                check(f"{what} {part}", cells["difference"][part], here)
            if found := effect(differences):
                for part, here in zip(["mean", "low", "high"], found):
                    check(f"{what} effect {part}", cells["effect"][part], here)
                check(f"{what} seen at 80 %", cells["seen at 80 %"]["mean"], detectable(differences))
            for count, here in [
                ("wins", sum(d > SAME for d in differences)),
                ("ties", sum(abs(d) <= SAME for d in differences)),
                ("losses", sum(d < -SAME for d in differences)),
            ]:
                check(f"{what} {count}", cells[count]["mean"], here)
            check(f"{what} p", cells["p"]["mean"], p)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tolerance", type=float, default=1e-6)
    args = parser.parse_args()
    questions, runs, labels, chances, unclear = read(args.folder)
    table = json.loads((args.folder / "table.json").read_text())
    pools = defaultdict(dict)
    for question, passage in labels:
        found = support(questions[question], passage, labels)
        if found is not None:
            pools[question][passage] = found
    compared, wrong, skipped, theirs, everything = 0, [], defaultdict(int), 0, {}

    def check(what, printed, own):
        nonlocal compared
        compared += 1
        if printed is None or own is None or abs(printed - own) > args.tolerance:
            wrong.append(f"{what}: printed {printed}, here {own}")

    for own_table in [table, *table.get("further", [])]:
        values = {}
        for row in own_table["rows"] if own_table["suite"] != "comparison" else []:
            lane = row["lane"]
            run = runs.get(file_name(lane))
            if run is None:
                skipped[f"{lane}: no run was written"] += 1
                continue
            rows = {q: [outcomes(question, passage, labels, chances) for passage in run.get(q, [])]
                    for q, question in questions.items()}
            for name, cell in row["measures"].items():
                # A list that a model judged has no pool.
                by_question = [value(name, rows[q], question, pools[q]) for q, question in questions.items()]
                if any(one is NotImplemented for one in by_question):
                    skipped[f"{own_table['suite']} {name}"] += 1
                    continue
                values[(lane, name)] = by_question
                known = [one for one in by_question if one is not None]
                what = f"{own_table['suite']} {lane} {name}"
                check(what, cell["mean"], sum(known) / len(known))
                check(f"{what} n", cell["n"], len(known))
                if cell.get("low") is not None:
                    low, high = bootstrap(known)
                    check(f"{what} low", cell["low"], low)
                    check(f"{what} high", cell["high"], high)
                if "@" in name:
                    k = int(name.split("@")[1])
                    # An unclear passage has probabilities, but no verdict.
                    looked = [row is not None and (question, passage) not in unclear
                              for (question, own), one in zip(rows.items(), by_question) if one is not None
                              for row, passage in zip(own[:k], run.get(question, []))]
                    if looked and cell.get("judged") is not None:
                        check(f"{what} judged", cell["judged"], sum(looked) / len(looked))
                if cell.get("doubt"):
                    skipped[f"{own_table['suite']} {name}: the interval that draws verdicts"] += 1
                if re.match(r"(alpha_nDCG|ERR_IA|StRecall|P_IA)", name) and not chances:
                    k = int(name.split("@")[1])
                    if k > 20:
                        continue
                    order = list(questions)
                    for q, found in by_ir_measures(name, run, questions, labels).items():
                        theirs += 1
                        check(f"{what} of {q} by ir_measures", by_question[order.index(q)], found)
        # The comparisons: every lane with the baseline that the table names.
        for name in {name for _, name in values}:
            pairs = [(row["lane"], row["measures"][name]) for row in own_table["rows"]
                     if own_table["suite"] != "comparison" and name in row["measures"] and row["measures"][name].get("p") is not None]
            ps = []
            for lane, cell in pairs:
                base = cell.get("versus")
                if base is None or (base, name) not in values or (lane, name) not in values:
                    ps = None
                    break
                ps.append(randomisation(*paired(values, (lane, name), (base, name))))
            if ps is None:
                skipped[f"{own_table['suite']} {name}: p"] += len(pairs)
                continue
            for (lane, cell), p in zip(pairs, holm(ps)):
                what = f"{own_table['suite']} {lane} {name}"
                check(f"{what} p", cell["p"], p)
                if cell.get("change"):
                    own, base = paired(values, (lane, name), (cell["versus"], name))
                    differences = [a - b for a, b in zip(own, base)]
                    low, high = bootstrap(differences)
                    plain = sum(base) / len(base)
                    mean = sum(differences) / len(differences)
                    for part, here in [("mean", mean), ("low", low), ("high", high)]:
                        check(f"{what} change {part}", cell["change"][part], here)
                    if plain:
                        check(f"{what} change percent", cell["change"]["percent"], 100 * mean / plain)
        everything.update(values)
        if own_table["suite"] == "comparison":
            compare_lanes(own_table, everything, check, skipped)
    for what, count in sorted(skipped.items()):
        print(f"not worked out here: {what} ({count})")
    print(f"{compared} figures compared, {theirs} of them with ir_measures; {len(wrong)} differ by more than {args.tolerance}")
    for line in wrong[:20]:
        print(f"  {line}")
    return 1 if wrong or not compared else 0


if __name__ == "__main__":
    sys.exit(main())
