#!/usr/bin/env python3
"""Compares our measures with ir_measures 0.4 on random runs over complete qrels, question by question.

    python3 -m venv venv && venv/bin/pip install 'ir_measures>=0.4,<0.5' pyndeval
    cargo build --example measure_oracle
    venv/bin/python tools/measures/compare_ir_measures.py [--oracle target/debug/examples/measure_oracle]

"Complete" means that every perspective of a question has a passage that supports it: the tools take the
list of perspectives from the qrels, we take it from the question (see spec, MRecall).
Exits with 1 if any value differs by more than --tolerance, or if nothing was compared.

Known differences, which the script allows for and counts apart:
- ERR_IA@1: ndeval skips the division at rank 1; its value there is divided by m before comparing.
- ndeval stops at rank 20, so subtopic measures are compared up to there.
- alpha_nDCG where two gains are equal but for rounding: see `div.sort` below.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import ir_measures
from ir_measures import GenericQrel, Qrel, ScoredDoc

GRADED = [
    "nDCG", "nDCG@1", "nDCG@5", "nDCG@10", "nDCG@100",
    "P@1", "P@5", "P@20", "P(rel=2)@5",
    "R@5", "R@100", "R(rel=2)@10", "R(rel=2)@1000",
    "AP", "AP(rel=2)", "AP@10", "AP(rel=3)@5",
    "RR", "RR(rel=2)", "RR@10", "RR(rel=2)@3",
    "Judged@1", "Judged@10", "Judged@100",
]
SUBTOPIC = [
    f"{name}@{k}"
    for name in (
        "alpha_nDCG", "alpha_nDCG(alpha=0.3)", "alpha_nDCG(alpha=0.9)",
        "alpha_nDCG(alpha=0.0)", "alpha_nDCG(alpha=1.0)", "ERR_IA", "StRecall", "P_IA",
    )
    for k in (1, 2, 3, 5, 10, 20)
]


def random_question(rng, qid):
    """One question: graded qrels, perspective qrels that leave no perspective out, a run with score ties."""
    m = rng.choice([1, 2, 2, 2, 3, 4, 7, 12, 42])
    passages = [f"d{number:03}" for number in rng.sample(range(1000), rng.randint(max(4, m // 4), 60))]
    judged = rng.sample(passages, rng.randint(1, len(passages)))
    graded = {passage: rng.choice([0, 0, 0, 1, 1, 2, 3]) for passage in judged}
    density = rng.choice([0.05, 0.2, 0.5])
    supports = {
        (passage, perspective): int(rng.random() < density)
        for passage in judged
        for perspective in range(1, m + 1)
        if rng.random() < 0.9
    }
    for perspective in range(1, m + 1):
        supports[(rng.choice(judged), perspective)] = rng.choice([1, 1, 2])
    retrieved = rng.sample(passages, rng.randint(1, len(passages)))
    # The first third of the questions has ties, which only trec_eval's rule orders; ir_measures gives
    # ndeval another order for them, so the subtopic measures are compared on the untied rest.
    tied = qid % 3 == 0
    levels = 4 if tied else 10**9
    scores = {passage: rng.randrange(levels) / 8 for passage in retrieved}
    if not tied:
        scores = {passage: float(len(retrieved) - rank) for rank, passage in enumerate(retrieved)}
    return m, tied, graded, supports, scores


def theirs(measures, qrels, run):
    parsed = {ir_measures.parse_measure(name): name for name in measures}
    values = {}
    for metric in ir_measures.iter_calc(list(parsed), qrels, run):
        values[(parsed[metric.measure], metric.query_id)] = metric.value
    return values


def ours(oracle, folder, measures, lines):
    paths = []
    for name, rows in zip(("run", "qrels", "div.qrels"), lines):
        path = Path(folder) / name
        path.write_text("".join(rows))
        paths.append(str(path))
    printed = subprocess.run([oracle, *paths, *measures], check=True, capture_output=True, text=True).stdout
    return {(name, qid): value for name, by in json.loads(printed).items() for qid, value in by.items()}


def by_trec_eval(name):
    """RR@k and Judged are ir_measures' own, with ties by id ascending against trec_eval."""
    return name in GRADED and not name.startswith("Judged") and not (name.startswith("RR") and "@" in name)


def untied(values, cases):
    """Questions left out of a run come back as 0, which is no measurement."""
    return {key: value for key, value in values.items() if not cases[key[1]][1]}


def compare(oracle, questions, seed, tolerance):
    rng = random.Random(seed)
    cases = {str(qid): random_question(rng, qid) for qid in range(questions)}
    run_lines, qrel_lines, div_lines = [], [], []
    run, qrels, div, untied_run = [], [], [], []
    for qid, (_, tied, graded, supports, scores) in cases.items():
        for rank, (passage, score) in enumerate(scores.items(), 1):
            run_lines.append(f"{qid} Q0 {passage} {rank} {score} t\n")
            run.append(ScoredDoc(qid, passage, score))
            if not tied:
                untied_run.append(ScoredDoc(qid, passage, score))
        for passage, grade in graded.items():
            qrel_lines.append(f"{qid} 0 {passage} {grade}\n")
            qrels.append(Qrel(qid, passage, grade))
        for (passage, perspective), grade in supports.items():
            div_lines.append(f"{qid} {perspective} {passage} {grade}\n")
            div.append(GenericQrel(qid, passage, grade, str(perspective)))

    # pyndeval numbers subtopics as it first meets them, over all questions. Its greedy ideal sums in that
    # order, and a last-bit difference can break a tie and move the value by 1e-3: fix the order to ours.
    div.sort(key=lambda judgement: int(judgement.iteration))

    # One measure a call: ir_measures 0.4.3 hands one spent iterator to every alpha after the first (all 0
    # then), and its `Judged` keeps the cut-off of a short ranking for the questions after it.
    expected = {}
    for name in GRADED + SUBTOPIC:
        if by_trec_eval(name):
            expected |= theirs([name], qrels, run)
        elif name in SUBTOPIC:
            expected |= untied(theirs([name], div, untied_run), cases)
        elif name.startswith("Judged"):
            for qid, (_, tied, *_) in cases.items():
                if not tied:
                    expected |= theirs([name], [q for q in qrels if q.query_id == qid],
                                       [d for d in untied_run if d.query_id == qid])
        else:
            expected |= untied(theirs([name], qrels, untied_run), cases)
    with tempfile.TemporaryDirectory() as folder:
        found = ours(oracle, folder, GRADED + SUBTOPIC, (run_lines, qrel_lines, div_lines))

    worst, wrong, compared = {}, 0, {}
    for (name, qid), value in sorted(expected.items()):
        if name == "ERR_IA@1":
            value /= cases[qid][0]
        difference = abs(value - found[(name, qid)])
        compared[name] = compared.get(name, 0) + 1
        worst[name] = max(worst.get(name, 0.0), difference)
        if difference > tolerance:
            wrong += 1
            if wrong <= 20:
                print(f"{name} question {qid}: theirs {value:.8f}, ours {found[(name, qid)]:.8f}")
    for name in GRADED + SUBTOPIC:
        print(f"{name:28} questions {compared.get(name, 0):4}  worst difference {worst.get(name, float('nan')):.1e}")
    missing = [name for name in GRADED + SUBTOPIC if not compared.get(name)]
    print(f"{len(expected)} values compared, {wrong} differ by more than {tolerance:g}; never compared: {missing or 'none'}")
    return wrong == 0 and not missing


def worked():
    """The value of the worked case in src/measure/subtopic.rs."""
    supports = {"d1": [1, 2], "d2": [1], "d3": [3], "d4": [2, 3], "d5": [1], "d6": []}
    qrels = [GenericQrel("q", d, int(p in have), str(p)) for d, have in supports.items() for p in (1, 2, 3)]
    ranking = ["d3", "d9", "d1", "d6", "d2", "d4"]
    run = [ScoredDoc("q", d, float(-rank)) for rank, d in enumerate(ranking)]
    print(theirs(["alpha_nDCG@10"], qrels, run))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--oracle", default="target/debug/examples/measure_oracle")
    parser.add_argument("--questions", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tolerance", type=float, default=1e-6)
    parser.add_argument("--worked", action="store_true", help="only print the worked case of alpha_nDCG")
    options = parser.parse_args()
    if options.worked:
        worked()
        return 0
    return 0 if compare(options.oracle, options.questions, options.seed, options.tolerance) else 1


if __name__ == "__main__":
    sys.exit(main())
