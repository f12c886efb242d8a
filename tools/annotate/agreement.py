#!/usr/bin/env python3
"""Compares our κ and α with scikit-learn and the krippendorff package: published examples, then drawn labels.

    python3 -m venv venv && venv/bin/pip install scikit-learn krippendorff
    cargo build
    venv/bin/python tools/annotate/agreement.py [--parallax target/debug/parallax] [--rounds 20]

Labels go through the program as a user's would: a table is imported into journals, and `annotate agree` reads those. Prints both
sides and exits with 1 if any value differs by more than --tolerance, or if nothing was compared.
"""

import argparse
import json
import math
import random
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import krippendorff
from sklearn.metrics import cohen_kappa_score

COLUMNS = ["question", "id", "perspective", "label", "annotator", "hash"]


def of_counts(yes_yes, yes_no, no_yes, no_no):
    """Two annotators as rows of labels."""
    kinds = [(1, 1)] * yes_yes + [(1, 0)] * yes_no + [(0, 1)] * no_yes + [(0, 0)] * no_no
    return [list(row) for row in zip(*kinds)]


def of_signs(*rows):
    """Rows as Krippendorff prints them, `.` for no label."""
    return [[None if sign == "." else int(sign) for sign in row] for row in rows]


# What the literature says of them: κ of the first two, α.
PUBLISHED = [
    ("grant proposals: 20, 5, 10, 15 (Cohen's κ .4)", of_counts(20, 5, 10, 15), 0.4, None),
    ("45, 15, 25, 15 (κ .1304)", of_counts(45, 15, 25, 15), 0.1304, None),
    ("25, 35, 5, 35 (κ .2593)", of_counts(25, 35, 5, 35), 0.2593, None),
    ("Krippendorff 2011, A: binary, two observers (α .095)", of_signs("0100000010", "1110010000"), None, 0.095),
]


def drawn(rng):
    """A few annotators with a habit of their own over the same passages, with gaps."""
    items, annotators = rng.randint(5, 60), rng.randint(2, 6)
    share, gap, slip = rng.random(), rng.choice([0, 0.2, 0.5]), rng.choice([0, 0.1, 0.4])
    truth = [rng.random() < share for _ in range(items)]
    label = lambda true: None if rng.random() < gap else int(true != (rng.random() < slip))
    return [[label(true) for true in truth] for _ in range(annotators)]


def ours(parallax, rows, folder):
    table = ["\t".join(COLUMNS)]
    for who, row in enumerate(rows):
        for item, label in enumerate(row):
            if label is not None:
                table.append(f"Q?\tp{item}\tYes.\t{label}\ta{who}\thash of {item}")
    path = folder / "labels.tsv"
    path.write_text("\n".join(table) + "\n")
    run = [parallax, "annotate", "--data-dir", str(folder / "data")]
    into = str(folder / "journals")
    subprocess.run([*run, "import", str(path), "--format", "tsv", "--into", into], check=True, stdout=subprocess.DEVNULL)
    told = subprocess.run([*run, "agree", into, "--format", "json"], check=True, stdout=subprocess.PIPE)
    told = json.loads(told.stdout)
    return told["alpha"]["value"], {tuple(pair["annotators"]): pair for pair in told["pairs"]}


def kappa(left, right):
    both = [(a, b) for a, b in zip(left, right) if a is not None and b is not None]
    if not both:
        return None, 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        value = cohen_kappa_score([a for a, _ in both], [b for _, b in both])
    return (None if math.isnan(value) else float(value)), len(both)


def alpha(rows):
    data = [[math.nan if label is None else label for label in row] for row in rows]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = float(krippendorff.alpha(reliability_data=data, level_of_measurement="nominal"))
    except ValueError:
        # Fewer than two different labels, which we call undefined.
        return None
    return None if math.isnan(value) else value


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parallax", default="target/debug/parallax")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tolerance", type=float, default=1e-9)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    cases = PUBLISHED + [(f"drawn {i + 1}", drawn(rng), None, None) for i in range(args.rounds)]
    compared, wrong = 0, 0

    def compare(what, left, right, tolerance=args.tolerance):
        nonlocal compared, wrong
        compared += 1
        same = left == right if None in (left, right) else abs(left - right) <= tolerance
        wrong += not same
        shown = [("–" if value is None else f"{value:.6f}") for value in (left, right)]
        print(f"{what:64} {shown[0]:>10} {shown[1]:>10}  {'' if same else 'DIFFERENT'}")

    print(f"{'':64} {'ours':>10} {'theirs':>10}")
    for name, rows, published_kappa, published_alpha in cases:
        with tempfile.TemporaryDirectory() as folder:
            our_alpha, pairs = ours(args.parallax, rows, Path(folder))
        compare(f"{name}: α", our_alpha, alpha(rows))
        if published_alpha is not None:
            compare(f"{name}: α as published", our_alpha, published_alpha, 5e-4)
        met = set()
        for left in range(len(rows)):
            for right in range(left + 1, len(rows)):
                theirs, n = kappa(rows[left], rows[right])
                pair = pairs.get((f"a{left}", f"a{right}"))
                if n == 0:
                    wrong += pair is not None
                    continue
                met.add((f"a{left}", f"a{right}"))
                compare(f"{name}: κ of a{left}, a{right} over {n}", pair["kappa"], theirs)
                wrong += pair["n"] != n
        wrong += met != set(pairs)
        if published_kappa is not None:
            compare(f"{name}: κ as published", pairs[("a0", "a1")]["kappa"], published_kappa, 5e-5)
    print(f"{compared} compared, {wrong} different")
    sys.exit(1 if wrong or not compared else 0)


if __name__ == "__main__":
    main()
