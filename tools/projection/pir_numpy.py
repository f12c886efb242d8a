#!/usr/bin/env python3
"""pRecall@k of every projection over PIR's tasks, from the definitions written out on whole vectors.

    python3 -m venv venv && venv/bin/pip install numpy
    parallax eval pir --questions demo_pir_dataset.json --format json > ours.json
    venv/bin/python tools/projection/pir_numpy.py demo_pir_dataset.json --compare ours.json

Vectors come from `cargo run --release --example embed_texts`, or from the program named by --embed. Everything else
is computed here: `q` full query, `r` root, `p` perspective, `c` passage, proj(x) = x - (x.p / |p|^2) p, in double
precision. Prints the table, and the shares of the sides that root queries bring up. With --compare it says the greatest
difference from that JSON and exits with 1 if it is above --tolerance, if a figure is there on one side only, or
if nothing was compared. BM25 is not computed here; its rows are left out.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
DIMENSIONS = 384
REMOVING = {"cast", "cast-plus", "pap", "pap-plus"}
VARIANTS = [
    "none", "add", "add-plus", "concat", "concat-plus", "cast", "cast-plus",
    "dual-sum", "tri-sum", "pap", "pap-plus",
]


def embed(command, role, texts):
    """One row a text."""
    run = subprocess.run(
        [*command, role], input=json.dumps(texts).encode(), stdout=subprocess.PIPE, check=True, cwd=ROOT
    )
    rows = np.frombuffer(run.stdout, dtype="<f4").astype(np.float64).reshape(-1, DIMENSIONS)
    assert len(rows) == len(texts), (len(rows), len(texts))
    return rows


def cos(x, rows):
    """The cosine of one vector with each row; 0 where one of them has no length."""
    lengths = np.linalg.norm(x) * np.linalg.norm(rows, axis=1)
    return np.divide(rows @ x, lengths, out=np.zeros(len(rows)), where=lengths > 1e-9)


def beside(rows, p):
    """Every row with p behind it."""
    return np.hstack([rows, np.tile(p, (len(rows), 1))])


def scores(variant, q, r, p, c):
    """The scores of the passages `c`; None where the definition has nothing to divide by."""
    def proj(x):
        return x - np.outer(x @ p / (p @ p), p).reshape(x.shape)

    if variant == "none":
        return cos(q, c)
    if p is None or np.linalg.norm(p) < 1e-3:
        return None
    left = {"cast": q - p, "cast-plus": q - p, "pap": proj(q), "pap-plus": proj(q)}.get(variant)
    if left is not None and np.linalg.norm(left) < 1e-3:
        return None
    return {
        "add": lambda: cos(r + p, c),
        "add-plus": lambda: cos(q + p, c),
        "concat": lambda: cos(np.concatenate([r, p]), beside(c, p)),
        "concat-plus": lambda: cos(np.concatenate([q, p]), beside(c, p)),
        "cast": lambda: cos(q - p, c),
        "cast-plus": lambda: cos(q - p, c - p),
        "dual-sum": lambda: cos(r, c) + cos(p, c),
        "tri-sum": lambda: cos(r, c) + cos(p, c) + cos(q, c),
        "pap": lambda: cos(proj(q), c),
        "pap-plus": lambda: cos(proj(q), proj(c)),
    }[variant]()


class Task:
    """A task with its vectors."""

    def __init__(self, name, fields, command):
        self.name = name
        self.queries, self.roots = fields["queries"], fields["source_queries"]
        self.perspectives, self.labels = fields["perspectives"], fields["query_labels"]
        self.gold = {int(i): g if isinstance(g, list) else [g] for i, g in fields["key_ref"].items()}
        self.rows = [i for i in range(len(self.queries)) if self.gold.get(i)]
        # A passage that stands twice has one score, in whatever order a matrix product adds up.
        passages = sorted(set(fields["corpus"]))
        self.place = np.array([passages.index(text) for text in fields["corpus"]])
        self.c = embed(command, "passage", passages)
        asked = [*self.queries, *self.roots, *(p for p in self.perspectives if p)]
        asked = sorted(set(asked))
        self.asked = dict(zip(asked, embed(command, "query", asked)))

    def ranking(self, variant, row):
        """All passages in order; `q - r` stands for a perspective to be removed that is the query itself, or missing."""
        q, r = self.asked[self.queries[row]], self.asked[self.roots[row]]
        text = self.perspectives[row]
        if not (text and text.strip()):
            p = q - r if variant in REMOVING else None
        elif text == self.queries[row] and variant in REMOVING:
            p = q - r
        else:
            p = self.asked[text]
        found = scores(variant, q, r, p, self.c)
        if found is None:
            found = cos(q, self.c)
        return self.order(found)

    def order(self, unique):
        return np.argsort(-np.round(unique, 12)[self.place], kind="stable")

    def groups(self):
        """The rows of every root."""
        groups = {}
        for row in self.rows:
            groups.setdefault(self.roots[row], []).append(row)
        return groups

    def p_recall(self, variant, k, reading):
        top = {row: set(self.ranking(variant, row)[:k].tolist()) for row in self.rows}
        values = []
        for rows in self.groups().values():
            gold = {row: set(self.gold[row]) for row in rows}
            if reading == "notebook":
                if len(rows) == 1:
                    values.append(0.0)
                    continue
                gold[rows[0]] = set().union(*gold.values())
            values.append(np.mean([bool(top[row] & gold[row]) for row in rows]))
        return float(np.mean(values)) if values else None

    def sides(self, k):
        """Shares of the sides among the gold passages that root queries bring up, and of how many."""
        names = sorted({self.labels[row] for row in self.rows if self.labels[row].lower() != "general"})
        if len(names) < 2:
            return {}, 0
        counts, passages = dict.fromkeys(names, 0.0), 0
        for root, rows in self.groups().items():
            for passage in self.order(cos(self.asked[root], self.c))[:k]:
                on = {self.labels[row] for row in rows if passage in self.gold[row]} & set(names)
                passages += bool(on)
                for side in on:
                    counts[side] += 1 / len(on)
        return {side: count / passages for side, count in counts.items() if passages}, passages


def measure(tasks, k, bias_k, reading):
    """Every figure by lane and column."""
    figures = {}
    for variant in VARIANTS:
        lane = "minilm" if variant == "none" else f"minilm+{variant}"
        values = {task.name: task.p_recall(variant, k, reading) for task in tasks}
        values = {name: value for name, value in values.items() if value is not None}
        values["avg"] = float(np.mean(list(values.values())))
        figures |= {(lane, column): value for column, value in values.items()}
    for task in tasks:
        shares, _ = task.sides(bias_k)
        figures |= {("minilm", f"{task.name}/{side}@{bias_k}"): share for side, share in shares.items()}
    return figures


def show_sides(tasks, k):
    print(f"\nsides among the gold passages in the top {k} of root queries")
    for task in tasks:
        shares, passages = task.sides(k)
        if shares:
            named = ", ".join(f"{side} {share:.4f}" for side, share in shares.items())
            print(f"{task.name}: {named}, of {passages}")


def show(figures, columns, reading, k):
    width = max(len(lane) for lane, _ in figures) + 2
    print(f"\npRecall@{k}, {reading}")
    print("lane".ljust(width) + "".join(column.rjust(13) for column in columns))
    for lane in dict.fromkeys(lane for lane, _ in figures):
        cells = (figures.get((lane, column)) for column in columns)
        print(lane.ljust(width) + "".join(("-" if x is None else f"{x:.4f}").rjust(13) for x in cells))


def read_ours(path):
    told = json.loads(Path(path).read_text())
    figures = {}
    for table in [told, *told.get("further", [])]:
        for row in table["rows"]:
            if not row["lane"].startswith("bm25"):
                figures |= {(row["lane"], name): value["mean"] for name, value in row["measures"].items()}
    bias_k = next((table["k"] for table in told.get("further", [])), 1)
    return figures, told["provenance"]["reading"], told["k"], bias_k


def compare(ours, figures, tolerance, reading):
    only = sorted(set(ours) ^ set(figures))
    both = sorted(set(ours) & set(figures))
    worst = max(both, key=lambda at: abs(ours[at] - figures[at]), default=None)
    if worst is None:
        print("nothing was compared")
        return False
    difference = abs(ours[worst] - figures[worst])
    print(f"{reading}: {len(both)} figures, greatest difference {difference:.3g} at {worst[0]} {worst[1]}")
    for at in only:
        print(f"only on one side: {at}")
    return difference <= tolerance and not only


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tasks")
    parser.add_argument("-k", type=int, default=5)
    parser.add_argument("--bias-k", type=int, default=1)
    parser.add_argument("--embed", help="the built example embed_texts; built and run by cargo if not given")
    parser.add_argument("--compare", action="append", default=[], help="JSON of `parallax eval pir`; repeat for more")
    parser.add_argument("--tolerance", type=float, default=1e-4)
    arguments = parser.parse_args()
    cargo = ["cargo", "run", "--release", "--quiet", "--example", "embed_texts", "--"]
    command = [str(Path(arguments.embed).resolve())] if arguments.embed else cargo
    fields = json.loads(Path(arguments.tasks).read_text())
    tasks = [Task(name, fields[name], command) for name in sorted(fields)]
    columns = [task.name for task in tasks] + ["avg"]
    for reading in ("paper", "notebook"):
        figures = measure(tasks, arguments.k, arguments.bias_k, reading)
        show(figures, columns, reading, arguments.k)
    show_sides(tasks, arguments.bias_k)
    good = True
    for path in arguments.compare:
        ours, reading, k, bias_k = read_ours(path)
        print(f"\n{path}")
        good &= compare(ours, measure(tasks, k, bias_k, reading), arguments.tolerance, reading)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
