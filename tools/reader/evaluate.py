"""Exact match of an exported reader at every k, computed apart from the program, to check its `eval reader` against.

python evaluate.py --model FOLDER --base BASE FILE   (FiD's JSON, RAMDocs' or RetrievalQA's JSONL)
"""
import argparse
import json
import os

import numpy as np

import export
import spans as R
import text as T
import train


def questions(path):
    with open(path, encoding="utf-8") as f:
        read = f.read()
    for r in json.loads(read) if read.lstrip().startswith("[") else map(json.loads, read.splitlines()):
        gold = r.get("answers") or r.get("gold_answers") or r.get("ground_truth")
        passages = r.get("ctxs") or r.get("documents") or r.get("context") or []
        yield r["question"], gold, [("", p) if isinstance(p, str) else (p.get("title", ""), p["text"]) for p in passages]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--model", required=True)
    ap.add_argument("--base", required=True)
    ap.add_argument("--depth", type=int, default=10)
    ap.add_argument("file")
    a = ap.parse_args()
    with open(os.path.join(a.model, "reader.json"), encoding="utf-8") as f:
        card = json.load(f)
    tok, session = R.M.tokenizer(a.base), export.detector.session(os.path.join(a.model, "reader.onnx"), 2)
    at = []
    for question, gold, passages in questions(a.file):
        total, right = {}, []
        for title, text in passages[:a.depth]:
            c = R.context(title, text)
            e = R.Encoded(tok, question, c, card["max_tokens"], card["question_tokens"])
            for k, (p, _) in train.texts(train.span_logits(export.predicted(session, e), [e])[0] / card["temperature"], e, c).items():
                total[k] = total.get(k, 0) + p
            right.append(T.exact(max(total, key=lambda t: (total[t], t), default=""), gold))
        if right:
            at.append([right[min(k, len(right) - 1)] for k in range(a.depth)])
    at = np.array(at, dtype=float)
    for k in range(a.depth):
        print(f"EM@{k + 1} {at[:, k].mean():.4f}  AcEM@{k + 1} {at[:, :k + 1].max(1).mean():.4f}")
    print(len(at), "questions")


if __name__ == "__main__":
    main()
