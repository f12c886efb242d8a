"""`parallax detect` beside the same work in ONNX Runtime, in turns.

python speed.py --parallax ../../target/release/parallax [--pairs 542] [--rounds 3]

The pairs are the sample's: a passage with the two statements of its question. Either side starts from the files: graphs, tokens, logits,
each text's vector once, cosines, the joint decision. One unpadded sequence an inference, two workers of one thread each. What Python takes to
start and to import is not counted; the whole process of `parallax` is. Prints seconds, pairs a second, and the ratio of each round.
"""
import argparse
import csv
import json
import os
import subprocess
import tempfile
import time

import numpy as np

import cosine
import decision
import model as M
from export import predict_onnx

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")


def sample(count):
    """(question, passage, statement) rows of the sample, the statements of a passage one after the other."""
    read = lambda name: [json.loads(line) for line in open(os.path.join(ROOT, "sample_data", name), encoding="utf-8")]
    asked = {q["id"]: q for q in read("questions.jsonl") if len(q["perspectives"]) == 2}
    rows = []
    for p in read("corpus.jsonl"):
        question = asked.get(p["_id"].rsplit("-", 1)[0])
        for statement in question["perspectives"] if question else []:
            rows.append({"question": question["question"], "passage": p["text"] + " " + p["title"], "title": p["title"], "text": p["text"],
                         "statement": statement})
    return rows[:count - count % 2]


def ours(binary, rows, threads):
    with tempfile.TemporaryDirectory() as folder:
        pairs = os.path.join(folder, "pairs.tsv")
        with open(pairs, "w", newline="", encoding="utf-8") as f:
            out = csv.writer(f, delimiter="\t")
            out.writerow(["question", "title", "document", "perspective"])
            out.writerows((r["question"], r["title"], r["text"], r["statement"]) for r in rows)
        env = {k: v for k, v in os.environ.items() if not k.startswith("PARALLAX")} | {"RAYON_NUM_THREADS": str(threads)}
        start = time.perf_counter()
        printed = subprocess.run([binary, "detect", "--pairs", pairs, "--format", "json", "--offline", "--data-dir", os.path.join(folder, "data")],
                                 check=True, capture_output=True, text=True, env=env).stdout
        spent = time.perf_counter() - start
    assert len(json.loads(printed)["pairs"]) == len(rows), "a pair has no verdict"
    return spent


def theirs(rows, threads):
    folder = os.path.join(ROOT, "assets", "detector")
    start = time.perf_counter()
    joint = json.load(open(os.path.join(folder, "joint.json"), encoding="utf-8"))
    z = predict_onnx(os.path.join(folder, "detector.onnx"), M.tokenizer(folder), rows, 256, threads)
    cos = cosine.of(os.path.join(ROOT, "assets", "minilm"), rows, threads)
    decision.decide(joint, z.reshape(-1, 2, 3), np.array(cos).reshape(-1, 2))
    return time.perf_counter() - start


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--parallax", required=True)
    ap.add_argument("--pairs", type=int, default=542)
    ap.add_argument("--rounds", type=int, default=3)
    ap.add_argument("--threads", type=int, default=2)
    a = ap.parse_args()
    rows = sample(a.pairs)
    ours(a.parallax, rows[:2], a.threads), theirs(rows[:2], a.threads)    # files come from memory afterwards
    for turn in range(a.rounds):
        order = (lambda: ours(a.parallax, rows, a.threads), lambda: theirs(rows, a.threads))
        times = [order[i]() for i in ((0, 1) if turn % 2 == 0 else (1, 0))]
        here, there = times if turn % 2 == 0 else times[::-1]
        print(f"{len(rows)} pairs: parallax {here:.2f} s ({len(rows) / here:.1f} a second), ONNX Runtime {there:.2f} s "
              f"({len(rows) / there:.1f}), ratio {there / here:.3f}", flush=True)


if __name__ == "__main__":
    main()
